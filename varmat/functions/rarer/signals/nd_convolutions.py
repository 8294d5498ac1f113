"""Convolution and correlation of arrays of any number of axes, directly and by Fourier transforms:
those of `scipy.signal`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_choice, misfit
from varmat.plain_arrays import scipy_fft, scipy_signal, unbroadcast
from varmat.typing import Adjoint, Axes, Operand, Plain, Result, array_valued

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve", "oaconvolve"]

_METHODS = ("auto", "direct", "fft")


def _convolved(a: Operand, v: Operand, mode: str, method: str, axes: tuple[int, ...]) -> Result:
    """SciPy's value. `axes`, counted from the end, are those along which an operand slides."""
    if method in _METHODS and len(axes) == np.ndim(a):
        return np.asarray(scipy_signal.convolve(a, v, mode, method))
    along = (scipy_signal.oaconvolve if method == "overlap" else scipy_signal.fftconvolve)(
        a, v, mode, axes=axes
    )
    return np.asarray(along)


def _scipy_window(m: int, n: int, mode: str) -> slice:
    """Return the part of the full convolution of m and n elements that a mode of SciPy keeps: by
    the first operand.
    """
    if mode == "same":
        return slice((n - 1) // 2, (n - 1) // 2 + m)
    return slice(0, m + n - 1) if mode == "full" else slice(min(m, n) - 1, max(m, n))


@operation(linear=True)
def nd_convolution(
    a: Operand, v: Operand, *, mode: str, method: str, axes: tuple[int, ...]
) -> Result:
    """Convolve along `axes`; along the others the operands are broadcast."""
    return _convolved(a, v, mode, method, axes)


def _correlated(
    full: np.ndarray, other: np.ndarray, axes: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """Correlate one array with a longer one in which it slides; what would wrap around is not
    computed.
    """
    sizes = [scipy_fft.next_fast_len(full.shape[i], real=True) for i in axes]
    product = scipy_fft.rfftn(full, sizes, axes) * np.conj(scipy_fft.rfftn(other, sizes, axes))
    r = scipy_fft.irfftn(product, sizes, axes)
    window = [slice(None)] * full.ndim
    for i in axes:
        window[i] = slice(0, shape[i])
    return np.ascontiguousarray(r[tuple(window)])


@nd_convolution.reverse
def nd_convolution_reverse(
    g: Adjoint, r: Plain, a: Plain, v: Plain, mode: str, method: str, axes: tuple[int, ...]
) -> Adjoint:
    shape, window = list(g.shape), [slice(None)] * g.ndim
    for i in axes:
        shape[i], window[i] = (
            a.shape[i] + v.shape[i] - 1,
            _scipy_window(a.shape[i], v.shape[i], mode),
        )
    full = np.zeros(shape)
    full[tuple(window)] = g

    def correlation(other: Operand, own: Operand) -> Result:
        # If few elements of long arrays are wanted, cutting into pieces does not help, and no
        # padding is needed.
        by_transforms = method == "fft" or (method == "overlap" and own.size < other.size)
        correlated = _correlated(full, other, axes, own.shape) if by_transforms else None
        return unbroadcast(
            _convolved(full, np.flip(other, axes), "valid", method, axes)
            if correlated is None
            else correlated,
            own.shape,
        )

    return lambda: correlation(v, a), lambda: correlation(a, v)


def _checked(name: str, in1: Operand, in2: Operand, mode: str) -> tuple[Result, Result]:
    """Check that the operands have equally many axes and at least one element, and return them."""
    a, v = as_operand(in1, f"{name}: in1"), as_operand(in2, f"{name}: in2")
    if np.ndim(a) != np.ndim(v):
        raise ShapeError(
            f"{name}: in1 has shape {np.shape(a)}, in2 has shape {np.shape(v)}, but they must have "
            "the same number of axes!"
        )
    for title, x in (("in1", a), ("in2", v)):
        if not np.size(x):
            raise misfit(name, title, np.shape(x), "not be empty")
    check_choice(name, "mode", mode, "full", "same", "valid")
    return a, v


def _check_valid(name: str, a: Operand, v: Operand, axes: Iterable[int]) -> None:
    pairs = [(np.shape(a)[i], np.shape(v)[i]) for i in axes]
    if not (all(m >= n for m, n in pairs) or all(m <= n for m, n in pairs)):
        raise ShapeError(
            f"{name}: in1 has shape {np.shape(a)}, in2 has shape {np.shape(v)}, but with "
            "mode='valid' one must be at least as large along every axis!"
        )


def _over(
    name: str, in1: Operand, in2: Operand, mode: str, method: str, axes: Axes, reverse: bool = False
) -> Result:
    a, v = _checked(name, in1, in2, mode)
    if not np.ndim(a):
        return a * v
    ndim = np.ndim(a)
    along = range(ndim) if axes is None else np.atleast_1d(axes).tolist()
    axes = tuple(sorted(normalize_axis_index(i, ndim) - ndim for i in along))
    for i in set(range(-ndim, 0)) - set(axes):
        m, n = np.shape(a)[i], np.shape(v)[i]
        if m != n and 1 not in (m, n):
            raise ShapeError(
                f"{name}: in1 has shape {np.shape(a)}, in2 has shape {np.shape(v)}, which do not "
                "match!"
            )
    if mode == "valid":
        _check_valid(name, a, v, axes)
    return nd_convolution(a, np.flip(v) if reverse else v, mode=mode, method=method, axes=axes)


@array_valued
def convolve(in1: Operand, in2: Operand, mode: str = "full", method: str = "auto") -> Result:
    """Convolution of arrays with the same number of axes: `scipy.signal.convolve`.

    Parameters
    ----------
    in1, in2 : array_like, as many axes each, not empty
    mode : {'full', 'valid', 'same'}
        Everything, what needs no zeros around the operands, or the part of the shape of `in1` in
        the middle.
    method : {'auto', 'direct', 'fft'}
        How to compute; by default what SciPy takes for the faster one.

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If `mode` or `method` is unknown.
    ShapeError
        If an operand is empty, or they have not as many axes, or with ``mode='valid'`` none is the
        larger one.

    Notes
    -----
    The adjoint of an operand is the correlation of the result's adjoint with the other operand, by
    the same method. `numpy.convolve` of vectors is the same but for ``mode='same'``, which there
    has the length of the longer vector.

    References
    ----------
    SciPy reference, `scipy.signal.convolve`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.convolve(a, np.array([[1.0, 2.0]]))[0, 1], np.zeros((2, 2)))
    array([[2., 1.],
           [0., 0.]])
    """
    check_choice("convolve", "method", method, *_METHODS)
    return _over("convolve", in1, in2, mode, method, None)


@array_valued
def correlate(in1: Operand, in2: Operand, mode: str = "full", method: str = "auto") -> Result:
    """Cross-correlation of arrays with the same number of axes: `scipy.signal.correlate`.

    Parameters
    ----------
    in1, in2 : array_like, as many axes each, not empty
    mode : {'full', 'valid', 'same'}
    method : {'auto', 'direct', 'fft'}

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If `mode` or `method` is unknown.
    ShapeError
        If an operand is empty, or they have not as many axes, or with ``mode='valid'`` none is the
        larger one.

    Notes
    -----
    It is `convolve` with the second operand reversed, and so is the derivative.

    References
    ----------
    SciPy reference, `scipy.signal.correlate`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.correlate(a, np.array([1.0, 2.0]))[1], np.zeros(2))
    array([1., 2.])
    """
    check_choice("correlate", "method", method, *_METHODS)
    return _over("correlate", in1, in2, mode, method, None, reverse=True)


@array_valued
def fftconvolve(in1: Operand, in2: Operand, mode: str = "full", axes: Axes = None) -> Result:
    """Convolution by Fourier transforms: `scipy.signal.fftconvolve`.

    Parameters
    ----------
    in1, in2 : array_like, as many axes each, not empty
    mode : {'full', 'valid', 'same'}
    axes : int or sequence of int, optional
        Along which to convolve, by default all; along the others the operands are broadcast.

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If `mode` is unknown.
    ShapeError
        If an operand is empty, or their shapes do not go together.

    Notes
    -----
    The adjoint of an operand is the correlation of the result's adjoint with the other operand,
    again by Fourier transforms. Small elements next to large ones are as exact as those.

    References
    ----------
    SciPy reference, `scipy.signal.fftconvolve`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.round(vm.gradient(lambda a: vm.fftconvolve(a, np.array([1.0, 2.0]))[1], np.zeros(2)), 12)
    array([2., 1.])
    """
    return _over("fftconvolve", in1, in2, mode, "fft", axes)


@array_valued
def oaconvolve(in1: Operand, in2: Operand, mode: str = "full", axes: Axes = None) -> Result:
    """Convolution by Fourier transforms piece by piece, of a long array with a short one:
    `scipy.signal.oaconvolve`.

    Parameters
    ----------
    in1, in2 : array_like, as many axes each, not empty
    mode : {'full', 'valid', 'same'}
    axes : int or sequence of int, optional
        Along which to convolve, by default all; along the others the operands are broadcast.

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If `mode` is unknown.
    ShapeError
        If an operand is empty, or their shapes do not go together.

    Notes
    -----
    The adjoint of an operand is the correlation of the result's adjoint with the other operand, by
    the same method.

    References
    ----------
    SciPy reference, `scipy.signal.oaconvolve`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.round(vm.gradient(lambda a: vm.oaconvolve(a, np.array([1.0, 2.0]))[1], np.zeros(2)), 12)
    array([2., 1.])
    """
    return _over("oaconvolve", in1, in2, mode, "overlap", axes)


_PADDING = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _two_dimensional(
    name: str,
    in1: Operand,
    in2: Operand,
    mode: str,
    boundary: Operand,
    fillvalue: Operand,
    reverse: bool,
) -> Result:
    a, v = _checked(name, in1, in2, mode)
    if np.ndim(a) != 2:
        raise misfit(name, "in1", np.shape(a), "be a matrix")
    check_choice(name, "boundary", boundary, *_PADDING)
    if mode == "valid":
        _check_valid(name, a, v, (0, 1))
    v = v[::-1, ::-1] if reverse else v
    settings = {"method": "direct", "axes": (-2, -1)}
    # SciPy puts the zero lag into the middle of a correlation, and the element before it for a
    # convolution of even length.
    later = int(reverse and mode == "same")
    plain = boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0
    if mode == "valid" or (plain and not later):
        return nd_convolution(a, v, mode=mode, **settings)
    around: list[tuple[int, int]] = []
    for m, n in zip(np.shape(a), np.shape(v), strict=True):
        part = _scipy_window(m, n + later, mode)
        around.append((n - 1 - part.start, part.stop - m))
    extra = {"constant_values": fillvalue} if boundary == "fill" else {}
    padded: np.ndarray = np.pad(a, around, mode=_PADDING[boundary], **extra)  # type: ignore[call-overload]
    return nd_convolution(padded, v, mode="valid", **settings)


@array_valued
def convolve2d(
    in1: Operand, in2: Operand, mode: str = "full", boundary: str = "fill", fillvalue: Operand = 0
) -> Result:
    """Convolution of two matrices, with a choice of what is around the first:
    `scipy.signal.convolve2d`.

    Parameters
    ----------
    in1, in2 : array_like, matrices that are not empty
    mode : {'full', 'valid', 'same'}
    boundary : {'fill', 'wrap', 'symm'}
        What is around `in1`: a constant, itself again, or its mirror image.
    fillvalue : float
        The constant.

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If `mode` or `boundary` is unknown.
    ShapeError
        If an operand is empty or no matrix, or with ``mode='valid'`` none is the larger one.

    Notes
    -----
    The adjoint of an operand is the correlation of the result's adjoint with the other operand;
    what was put around the first is added where it came from.

    References
    ----------
    SciPy reference, `scipy.signal.convolve2d`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> corner = lambda a: vm.convolve2d(a, [[1.0, 2.0]], boundary="wrap")[0, 0]
    >>> vm.gradient(corner, np.zeros((2, 2)))
    array([[1., 2.],
           [0., 0.]])
    """
    return _two_dimensional("convolve2d", in1, in2, mode, boundary, fillvalue, False)


@array_valued
def correlate2d(
    in1: Operand, in2: Operand, mode: str = "full", boundary: str = "fill", fillvalue: Operand = 0
) -> Result:
    """Cross-correlation of two matrices: `scipy.signal.correlate2d`.

    Parameters
    ----------
    in1, in2 : array_like, matrices that are not empty
    mode : {'full', 'valid', 'same'}
    boundary : {'fill', 'wrap', 'symm'}
        What is around `in1`: a constant, itself again, or its mirror image.
    fillvalue : float
        The constant.

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If `mode` or `boundary` is unknown.
    ShapeError
        If an operand is empty or no matrix, or with ``mode='valid'`` none is the larger one.

    Notes
    -----
    It is `convolve2d` with the second operand reversed, and so is the derivative.

    References
    ----------
    SciPy reference, `scipy.signal.correlate2d`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.correlate2d(a, [[1.0, 2.0]], mode="valid")[0, 0], np.zeros((1, 2)))
    array([[1., 2.]])
    """
    return _two_dimensional("correlate2d", in1, in2, mode, boundary, fillvalue, True)
