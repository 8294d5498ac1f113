"""Discrete cosine and sine transforms: the real relatives of Fourier transforms.

A transform is a matrix, and the transposed matrix is again a transform, of type 3 for type 2 and
the reverse, but for weights of the elements at the edges, which the definitions count once where
the others count twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import integer

__all__ = ["dct", "dctn", "dst", "dstn", "idct", "idctn", "idst", "idstn"]

# Type -> that of the transposed matrix, and of the inverse.
_TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}
_INVERSE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _transform(x: Any, sine: bool, kind: int, axis: int, norm: str, orthogonalize: bool) -> Any:
    from scipy import fft

    return (fft.dst if sine else fft.dct)(
        x, kind, axis=axis, norm=norm, orthogonalize=orthogonalize
    )


@operation(stacked=True)
def trigonometric_transform(
    x: Any, *, sine: bool, kind: int, axis: int, norm: str, orthogonalize: bool
) -> Any:
    """A cosine or sine transform along an axis, counted from the end, without changing its
    length.
    """
    return _transform(x, sine, kind, axis, norm, orthogonalize)


def _edges(size: int, axis: int, sine: bool, kind: int) -> np.ndarray:
    """How often the type counts the elements of its argument: of the first kind 1, 2, ..., 2, 1,
    otherwise twice at one end.
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
    g: Any, r: Any, x: Any, sine: bool, kind: int, axis: int, norm: str, orthogonalize: bool
) -> Any:
    settings = (sine, _TRANSPOSED[kind], axis, norm, orthogonalize)
    if orthogonalize or kind == 4 or (sine and kind == 1):
        return _transform(g, *settings)
    w = _edges(x.shape[axis], axis, sine, kind)
    if kind == 2:
        return _transform(g * w, *settings)
    return w * _transform(g / w, *settings) if kind == 1 else _transform(g, *settings) / w


@trigonometric_transform.tangent
def trigonometric_transform_tangent(r: Any, x: Any, **settings: Any) -> Any:
    return lambda t: trigonometric_transform(t, **settings)


def _fitted(x: Any, n: int, axis: int) -> Any:
    """An array with `n` elements along an axis: the rest left out, or zeros added."""
    missing = n - np.shape(x)[axis]
    if missing > 0:
        return np.concatenate(
            [x, np.zeros((*np.shape(x)[:axis], missing, *np.shape(x)[axis + 1 :]))], axis=axis
        )
    return x[(slice(None),) * axis + (slice(n),)] if missing else x


def _along(name: str, x: Any, kind: int, n: Any, axis: int, norm: Any, orthogonalize: Any) -> Any:
    """A transform along one axis, the arguments checked."""
    x = as_operand(x, f"{name}: x")
    if not np.ndim(x):
        raise ShapeError(f"{name}: x is a scalar, but must have at least one axis!")
    if kind not in _TRANSPOSED:
        raise DomainError(f"{name}: type is {kind!r}, but must be 1, 2, 3 or 4!")
    norm = "backward" if norm is None else norm
    if norm not in _INVERSE:
        raise DomainError(
            f"{name}: norm is {norm!r}, but must be 'backward', 'ortho' or 'forward'!"
        )
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
    x = _fitted(x, size, axis)
    axis -= np.ndim(x)
    return trigonometric_transform(
        x, sine=sine, kind=int(kind), axis=axis, norm=norm, orthogonalize=orthogonalize
    )


def _several(name: str, x: Any, kind: int, s: Any, axes: Any, norm: Any, orthogonalize: Any) -> Any:
    """The transform along several axes, one after the other."""
    x = as_operand(x, f"{name}: x")
    s = None if s is None else np.atleast_1d(s).tolist()
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(np.ndim(x))
    axes = np.atleast_1d(np.asarray(axes, dtype=int)).tolist()
    s = [None] * len(axes) if s is None else s
    if len(s) != len(axes):
        raise ShapeError(
            f"{name}: s has {len(s)} lengths, but must have one for each of {len(axes)} axes!"
        )
    for n, axis in zip(s, axes, strict=True):
        x = _along(name, x, kind, None if n == -1 else n, axis, norm, orthogonalize)
    return x


def dct(
    x: Any,
    type: int = 2,
    n: Any = None,
    axis: int = -1,
    norm: Any = None,
    *,
    orthogonalize: Any = None,
) -> Any:
    """The discrete cosine transform: `scipy.fft.dct`.

    Parameters
    ----------
    x : array_like, one axis or more
    type : {1, 2, 3, 4}
        The type of the transform.
    n : int, optional
        The length of the transform; `x` is cut, or zeros are added.
    axis : int
    norm : {'backward', 'ortho', 'forward'}, optional
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
    The derivative is the transform itself. The adjoint is its transpose: type 3 for type 2 and the
    reverse, the others their own, with weights for the elements at the edges.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.dct(x)[1], np.zeros(3))
    array([ 1.73205081,  0.        , -1.73205081])
    """
    return _along("dct", x, type, n, axis, norm, orthogonalize)


def idct(
    x: Any,
    type: int = 2,
    n: Any = None,
    axis: int = -1,
    norm: Any = None,
    *,
    orthogonalize: Any = None,
) -> Any:
    """The inverse of `dct`: `scipy.fft.idct`.

    Parameters
    ----------
    x : array_like, one axis or more
    type : {1, 2, 3, 4}
        The type of the transform.
    n : int, optional
        The length of the transform; `x` is cut, or zeros are added.
    axis : int
    norm : {'backward', 'ortho', 'forward'}, optional
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
    The derivative is the transform itself. The adjoint is its transpose: type 3 for type 2 and the
    reverse, the others their own, with weights for the elements at the edges.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.idct(x)[1], np.zeros(3))
    array([ 0.16666667,  0.        , -0.33333333])
    """
    return _along("idct", x, type, n, axis, norm, orthogonalize)


def dst(
    x: Any,
    type: int = 2,
    n: Any = None,
    axis: int = -1,
    norm: Any = None,
    *,
    orthogonalize: Any = None,
) -> Any:
    """The discrete sine transform: `scipy.fft.dst`.

    Parameters
    ----------
    x : array_like, one axis or more
    type : {1, 2, 3, 4}
        The type of the transform.
    n : int, optional
        The length of the transform; `x` is cut, or zeros are added.
    axis : int
    norm : {'backward', 'ortho', 'forward'}, optional
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
    The derivative is the transform itself. The adjoint is its transpose: type 3 for type 2 and the
    reverse, the others their own, with weights for the elements at the edges.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.dst(x)[1], np.zeros(3))
    array([ 1.73205081,  0.        , -1.73205081])
    """
    return _along("dst", x, type, n, axis, norm, orthogonalize)


def idst(
    x: Any,
    type: int = 2,
    n: Any = None,
    axis: int = -1,
    norm: Any = None,
    *,
    orthogonalize: Any = None,
) -> Any:
    """The inverse of `dst`: `scipy.fft.idst`.

    Parameters
    ----------
    x : array_like, one axis or more
    type : {1, 2, 3, 4}
        The type of the transform.
    n : int, optional
        The length of the transform; `x` is cut, or zeros are added.
    axis : int
    norm : {'backward', 'ortho', 'forward'}, optional
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
    The derivative is the transform itself. The adjoint is its transpose: type 3 for type 2 and the
    reverse, the others their own, with weights for the elements at the edges.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.idst(x)[1], np.zeros(3))
    array([ 0.33333333, -0.        , -0.16666667])
    """
    return _along("idst", x, type, n, axis, norm, orthogonalize)


def dctn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    *,
    orthogonalize: Any = None,
) -> Any:
    """The discrete cosine transform along several axes: `scipy.fft.dctn`.

    Parameters
    ----------
    x : array_like, one axis or more
    type : {1, 2, 3, 4}
        The type of the transform.
    s : sequence of int, optional
        The lengths along `axes`.
    axes : sequence of int, optional
        All axes by default, or the last ones if `s` is given.
    norm : {'backward', 'ortho', 'forward'}, optional
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
    It is `dct` along one axis after the other, and so is the derivative.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.dctn(x, norm="ortho")[0, 0], np.zeros((2, 2)))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return _several("dctn", x, type, s, axes, norm, orthogonalize)


def idctn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    *,
    orthogonalize: Any = None,
) -> Any:
    """The inverse of `dctn`: `scipy.fft.idctn`.

    Parameters
    ----------
    x : array_like, one axis or more
    type : {1, 2, 3, 4}
        The type of the transform.
    s : sequence of int, optional
        The lengths along `axes`.
    axes : sequence of int, optional
        All axes by default, or the last ones if `s` is given.
    norm : {'backward', 'ortho', 'forward'}, optional
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
    It is `idct` along one axis after the other, and so is the derivative.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.idctn(x, norm="ortho")[0, 0], np.zeros((2, 2)))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return _several("idctn", x, type, s, axes, norm, orthogonalize)


def dstn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    *,
    orthogonalize: Any = None,
) -> Any:
    """The discrete sine transform along several axes: `scipy.fft.dstn`.

    Parameters
    ----------
    x : array_like, one axis or more
    type : {1, 2, 3, 4}
        The type of the transform.
    s : sequence of int, optional
        The lengths along `axes`.
    axes : sequence of int, optional
        All axes by default, or the last ones if `s` is given.
    norm : {'backward', 'ortho', 'forward'}, optional
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
    It is `dst` along one axis after the other, and so is the derivative.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.dstn(x, norm="ortho")[0, 0], np.zeros((2, 2)))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return _several("dstn", x, type, s, axes, norm, orthogonalize)


def idstn(
    x: Any,
    type: int = 2,
    s: Any = None,
    axes: Any = None,
    norm: Any = None,
    *,
    orthogonalize: Any = None,
) -> Any:
    """The inverse of `dstn`: `scipy.fft.idstn`.

    Parameters
    ----------
    x : array_like, one axis or more
    type : {1, 2, 3, 4}
        The type of the transform.
    s : sequence of int, optional
        The lengths along `axes`.
    axes : sequence of int, optional
        All axes by default, or the last ones if `s` is given.
    norm : {'backward', 'ortho', 'forward'}, optional
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
    It is `idst` along one axis after the other, and so is the derivative.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.idstn(x, norm="ortho")[0, 0], np.zeros((2, 2)))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    return _several("idstn", x, type, s, axes, norm, orthogonalize)
