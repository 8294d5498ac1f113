"""Discrete cosine and sine transforms: the real relatives of Fourier transforms.

A transform is a matrix. Its transpose is again a transform (type 3 for type 2 and the reverse), up
to weights of the elements at the edges, which the definitions count once where others count twice.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_array, check_choice, integer
from varmat.functions.docstrings import filled
from varmat.plain_arrays import scipy_fft
from varmat.typing import Adjoint, ArrayFunction, Axes, Operand, Plain, Result, array_valued

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

# Type -> the types of the transposed matrix and of the inverse.
_TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}
_INVERSE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _transform(
    x: Operand, sine: bool, kind: int, axis: int, norm: str, orthogonalize: bool
) -> Result:
    return (scipy_fft.dst if sine else scipy_fft.dct)(
        x, kind, axis=axis, norm=norm, orthogonalize=orthogonalize
    )


@operation(stacked=True, linear=True)
def trigonometric_transform(
    x: Operand, *, sine: bool, kind: int, axis: int, norm: str, orthogonalize: bool
) -> Result:
    """Compute a cosine or sine transform along an axis, counted from the end, without changing its
    length.
    """
    return _transform(x, sine, kind, axis, norm, orthogonalize)


def _edges(size: int, axis: int, sine: bool, kind: int) -> np.ndarray:
    """Return how often a type counts each element of its argument: 1, 2, ..., 2, 1 for the first
    type, otherwise twice except at one end.
    """
    if kind == 1:
        weights = np.full(size, 2.0)
        weights[[0, -1]] = 1.0
    else:
        weights = np.ones(size)
        weights[-1 if sine else 0] = 2.0
    return weights.reshape((-1,) + (1,) * (-axis - 1))


@trigonometric_transform.reverse
def trigonometric_transform_reverse(
    g: Adjoint, r: Plain, x: Plain, sine: bool, kind: int, axis: int, norm: str, orthogonalize: bool
) -> Adjoint:
    settings = (sine, _TRANSPOSED[kind], axis, norm, orthogonalize)
    if orthogonalize or kind == 4 or (sine and kind == 1):
        return _transform(g, *settings)
    w = _edges(x.shape[axis], axis, sine, kind)
    if kind == 2:
        return _transform(g * w, *settings)
    return w * _transform(g / w, *settings) if kind == 1 else _transform(g, *settings) / w


def fitted(x: Operand, n: int, axis: int) -> Result:
    """Cut or pad an array with zeros to `n` elements along an axis."""
    missing = n - np.shape(x)[axis]
    if missing > 0:
        return np.concatenate(
            [x, np.zeros((*np.shape(x)[:axis], missing, *np.shape(x)[axis + 1 :]))], axis=axis
        )
    return x[(slice(None),) * axis + (slice(n),)] if missing else x


def _along(
    name: str,
    x: Operand,
    kind: int,
    n: Operand,
    axis: int,
    norm: str | None,
    orthogonalize: bool | None,
) -> Result:
    """Compute a transform along one axis, after checking the arguments."""
    x = as_operand(x, f"{name}: x")
    check_array(name, "x", x, "have at least one axis")
    check_choice(name, "type", kind, *_TRANSPOSED)
    norm = "backward" if norm is None else norm
    check_choice(name, "norm", norm, *_INVERSE)
    axis = normalize_axis_index(axis, np.ndim(x))
    size = np.shape(x)[axis] if n is None else integer(name, "n", n)
    sine, least = "s" in name, 2 if kind == 1 and "s" not in name else 1
    if size < least:
        raise ShapeError(
            f"{name}: there are {size} elements along the axis, but there must be at least {least}!"
        )
    orthogonalize = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    if name.startswith("i"):
        kind, norm = _TRANSPOSED[kind], _INVERSE[norm]
    x = fitted(x, size, axis)
    axis -= np.ndim(x)
    return trigonometric_transform(
        x, sine=sine, kind=int(kind), axis=axis, norm=norm, orthogonalize=orthogonalize
    )


def _several(
    name: str,
    x: Operand,
    kind: int,
    s: Operand,
    axes: Axes,
    norm: str | None,
    orthogonalize: bool | None,
) -> Result:
    """Compute the transform along several axes in sequence."""
    x = as_operand(x, f"{name}: x")
    s = None if s is None else np.atleast_1d(s).tolist()
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(np.ndim(x))
    along: list[int] = np.atleast_1d(np.asarray(axes, dtype=int)).tolist()
    s = [None] * len(along) if s is None else s
    if len(s) != len(along):
        raise ShapeError(
            f"{name}: s has {len(s)} lengths, but must have one for each of {len(along)} axes!"
        )
    for n, axis in zip(s, along, strict=True):
        x = _along(name, x, kind, None if n == -1 else n, axis, norm, orthogonalize)
    return x


_MAKHOUL = """* J. Makhoul, "A fast cosine transform in one and two dimensions", IEEE Transactions
      on Acoustics, Speech and Signal Processing 28 (1980), 27-34.
    """


def _of_one_axis(name: str, title: str, example: str) -> ArrayFunction[...]:
    @filled(name, title=title, example=example, makhoul=_MAKHOUL if "ct" in name else "")
    @array_valued
    def transform(
        x: Operand,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        *,
        orthogonalize: bool | None = None,
    ) -> Result:
        """{title}: `scipy.fft.{name}`.

        Parameters
        ----------
        x : array_like, one axis or more
        type : {{1, 2, 3, 4}}
            The type of the transform.
        n : int, optional
            The length of the transform; `x` is cut, or zeros are added.
        axis : int
        norm : {{'backward', 'ortho', 'forward'}}, optional
            The normalisation, as in SciPy.
        orthogonalize : bool, optional
            Whether the matrix is a multiple of an orthogonal one; by default with ``norm='ortho'``.

        Returns
        -------
        VarMat

        Raises
        ------
        DomainError
            If `type` or `norm` is unknown.
        ShapeError
            If `x` is a scalar, or has too few elements.

        Notes
        -----
        The derivative is the transform itself. The adjoint is its transpose: type 3 for type 2 and
        the reverse, the others their own, with weights for the elements at the edges.

        References
        ----------
        {makhoul}* SciPy reference, `scipy.fft.{name}`.

        Examples
        --------
        >>> import numpy as np, varmat as vm
        {example}
        """
        return _along(name, x, type, n, axis, norm, orthogonalize)

    return transform


def _of_axes(name: str, title: str) -> ArrayFunction[...]:
    makhoul = _MAKHOUL if "ct" in name else ""

    @filled(name, title=title, one=name.removesuffix("n"), makhoul=makhoul)
    @array_valued
    def transform(
        x: Operand,
        type: int = 2,
        s: Operand = None,
        axes: Axes = None,
        norm: str | None = None,
        *,
        orthogonalize: bool | None = None,
    ) -> Result:
        """{title}: `scipy.fft.{name}`.

        Parameters
        ----------
        x : array_like, one axis or more
        type : {{1, 2, 3, 4}}
            The type of the transform.
        s : sequence of int, optional
            The lengths along `axes`.
        axes : sequence of int, optional
            All axes by default, or the last ones if `s` is given.
        norm : {{'backward', 'ortho', 'forward'}}, optional
        orthogonalize : bool, optional

        Returns
        -------
        VarMat

        Raises
        ------
        DomainError
            If `type` or `norm` is unknown.
        ShapeError
            If `s` and `axes` have different lengths, or an axis has too few elements.

        Notes
        -----
        It is `{one}` along each axis in turn, and so is the derivative.

        References
        ----------
        {makhoul}* SciPy reference, `scipy.fft.{name}`.

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> vm.gradient(lambda x: vm.{name}(x, norm="ortho")[0, 0], np.zeros((2, 2)))
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        return _several(name, x, type, s, axes, norm, orthogonalize)

    return transform


_FORWARD = "array([ 1.73205081,  0.        , -1.73205081])"
dct = _of_one_axis(
    "dct",
    "Compute the discrete cosine transform",
    ">>> vm.gradient(lambda x: vm.dct(x)[1], np.zeros(3))\n    " + _FORWARD,
)
idct = _of_one_axis(
    "idct",
    "Invert `dct`",
    ">>> vm.gradient(lambda x: vm.idct(x)[1], np.zeros(3))\n"
    "    array([ 0.16666667,  0.        , -0.33333333])",
)
dst = _of_one_axis(
    "dst",
    "Compute the discrete sine transform",
    ">>> vm.gradient(lambda x: vm.dst(x)[1], np.zeros(3)) + 0.0\n    " + _FORWARD,
)
idst = _of_one_axis(
    "idst",
    "Invert `dst`",
    ">>> vm.gradient(lambda x: vm.idst(x)[1], np.zeros(3)) + 0.0\n"
    "    array([ 0.33333333,  0.        , -0.16666667])",
)
dctn = _of_axes("dctn", "Compute the discrete cosine transform along several axes")
idctn = _of_axes("idctn", "Invert `dctn`")
dstn = _of_axes("dstn", "Compute the discrete sine transform along several axes")
idstn = _of_axes("idstn", "Invert `dstn`")
