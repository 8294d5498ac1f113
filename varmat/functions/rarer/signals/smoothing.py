"""Smoothing, detrending and resampling of signals, and the analytic signal."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.functions.checks import check_choice, integer, outside
from varmat.functions.rarer.signals.filters import series_along
from varmat.functions.rarer.signals.nd_convolutions import nd_convolution
from varmat.plain_arrays import scipy_signal
from varmat.typing import Operand, Result, array_valued

__all__ = ["detrend", "hilbert", "resample", "savgol_filter"]

_EXTENSIONS = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


@array_valued
def savgol_filter(
    x: Operand,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Operand = 0.0,
) -> Result:
    """Smoothing by local polynomials: `scipy.signal.savgol_filter`.

    Parameters
    ----------
    x : array_like, one axis or more
    window_length, polyorder : int
        How many elements go into each polynomial, and its order.
    deriv : int
        Which derivative of the polynomials to take.
    delta : float
        The distance of the elements.
    axis : int
    mode : {'interp', 'mirror', 'constant', 'nearest', 'wrap'}
        What is done at the ends; by default the outermost polynomials are read there.
    cval : float
        The constant.

    Returns
    -------
    VarMat, of the shape of `x`

    Raises
    ------
    DomainError
        If `mode` is unknown.
    ShapeError
        If `x` is a scalar, or has fewer elements than `window_length` with ``mode='interp'``.

    Notes
    -----
    The smoother is linear: a correlation with fixed weights, whose adjoint is a convolution with
    them.

    References
    ----------
    * A. Savitzky and M. J. E. Golay, "Smoothing and differentiation of data by simplified least
      squares procedures", Analytical Chemistry 36 (1964), 1627-1639.
    * SciPy reference, `scipy.signal.savgol_filter`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.savgol_filter(x, 3, 1)[1], np.zeros(4)).round(12)
    array([0.33333333, 0.33333333, 0.33333333, 0.        ])
    """
    window_length, polyorder, deriv = (
        integer("savgol_filter", name, value)
        for name, value in (
            ("window_length", window_length),
            ("polyorder", polyorder),
            ("deriv", deriv),
        )
    )
    x, axis = series_along("savgol_filter", x, axis)
    if mode != "interp" and mode not in _EXTENSIONS:
        raise outside(
            "savgol_filter", "mode", mode, "be 'interp', 'mirror', 'constant', 'nearest' or 'wrap'"
        )
    size = np.shape(x)[axis]
    if mode == "interp" and size < window_length:
        raise ShapeError(
            f"savgol_filter: x has {size} elements along the axis, but must have at least "
            f"{window_length}!"
        )
    weights = scipy_signal.savgol_coeffs(window_length, polyorder, deriv, delta)
    half, shape = window_length // 2, [1] * np.ndim(x)
    shape[axis] = -1
    settings = {"mode": "valid", "method": "direct", "axes": tuple(range(-np.ndim(x), 0))}
    if mode != "interp":
        around = [(0, 0)] * np.ndim(x)
        around[axis] = (window_length - 1 - half, half)
        extra = {"constant_values": cval} if mode == "constant" else {}
        padded: np.ndarray = np.pad(x, around, mode=_EXTENSIONS[mode], **extra)  # type: ignore[call-overload]
        return nd_convolution(padded, weights.reshape(shape), **settings)
    middle = nd_convolution(x, weights.reshape(shape), **settings)
    # The weights at the ends are what SciPy makes of the columns of the identity.
    ends = scipy_signal.savgol_filter(
        np.eye(window_length), window_length, polyorder, deriv, delta, axis=0
    )
    along = (slice(None),) * axis

    def product(rows: Operand, part: Operand) -> Result:
        return np.moveaxis(np.moveaxis(x[(*along, part)], axis, -1) @ rows.T, -1, axis)

    left = product(ends[:half], slice(0, window_length))
    right = product(ends[window_length - half :], slice(size - window_length, size))
    middle = middle[(*along, slice(2 * half - window_length + 1, None))]
    return np.concatenate([left, middle, right], axis=axis)


@array_valued
def detrend(data: Operand, axis: int = -1, type: str = "linear", bp: Operand = 0) -> Result:
    """Remove the straight line, or the mean, from a series: `scipy.signal.detrend`.

    Parameters
    ----------
    data : array_like, one axis or more
    axis : int
    type : {'linear', 'constant'}
        Whether a line or the mean is subtracted.
    bp : int or sequence of int
        Places at which a new line begins.

    Returns
    -------
    VarMat, of the shape of `data`

    Raises
    ------
    DomainError
        If `type` is unknown.
    ShapeError
        If `data` is a scalar.

    Notes
    -----
    A projection, which is its own adjoint.

    References
    ----------
    SciPy reference, `scipy.signal.detrend`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.detrend(x, type="constant")[0], np.zeros(4))
    array([ 0.75, -0.25, -0.25, -0.25])
    """
    x, axis = series_along("detrend", data, axis)
    size = np.shape(x)[axis]
    check_choice("detrend", "type", type, "linear", "constant")
    if type == "constant":
        return x - np.mean(x, axis=axis, keepdims=True)
    indices = sorted({0, size, *np.atleast_1d(bp).tolist()})
    x, pieces = np.moveaxis(x, axis, -1), []
    for start, stop in pairwise(indices):
        piece, times = x[..., start:stop], np.arange(stop - start) - (stop - start - 1) / 2.0
        piece = piece - np.mean(piece, axis=-1, keepdims=True)
        square = np.sum(times**2)
        pieces.append(
            piece - np.sum(piece * times, axis=-1, keepdims=True) * (times / square)
            if square
            else piece
        )
    return np.moveaxis(np.concatenate(pieces, axis=-1), -1, axis)


def hilbert(x: Operand, N: int | None = None, axis: int = -1) -> Result:
    """Compute the analytic signal, whose real part is `x` and whose absolute value is the envelope:
    `scipy.signal.hilbert`.

    Parameters
    ----------
    x : array_like, one axis or more
    N : int, optional
        The length of the transform; `x` is cut, or zeros are added.
    axis : int

    Returns
    -------
    ComplexVar

    Raises
    ------
    DomainError
        If `N` is not positive.
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    The Fourier transform without the negative frequencies, the positive ones twice, transformed
    back; so is the derivative.

    References
    ----------
    * Alan V. Oppenheim and Ronald W. Schafer, Discrete-Time Signal Processing.
    * SciPy reference, `scipy.signal.hilbert`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.imag(vm.hilbert(x))[0], np.zeros(4))
    array([ 0. , -0.5,  0. ,  0.5])
    """
    x, axis = series_along("hilbert", x, axis)
    n = np.shape(x)[axis] if N is None else integer("hilbert", "N", N)
    if n < 1:
        raise DomainError(f"hilbert: N is {n}, but must be at least 1!")
    weights = np.zeros(n)
    weights[: n // 2 + 1] = 2.0
    weights[0] = 1.0
    if n % 2 == 0:
        weights[n // 2] = 1.0
    return np.fft.ifft(np.fft.fft(x, n, axis) * _column_along(weights, axis, np.ndim(x)), axis=axis)


def _column_along(weights: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """Shape a vector to lie along one of several axes."""
    return weights.reshape([-1 if i == axis else 1 for i in range(ndim)])


@array_valued
def resample(x: Operand, num: int, axis: int = 0) -> Result:
    """Compute a periodic series at another number of places, by Fourier transforms:
    `scipy.signal.resample`.

    Parameters
    ----------
    x : array_like, one axis or more
    num : int
        How many places.
    axis : int

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If `num` is not positive.
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    High frequencies are left out, or zero ones added; of an even number the highest one counts half
    of what it stands for. The derivative follows from the transforms.

    References
    ----------
    SciPy reference, `scipy.signal.resample`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.resample(x, 4)[1], np.zeros(2))
    array([0.5, 0.5])
    """
    x, axis = series_along("resample", x, axis)
    num, n = integer("resample", "num", num), np.shape(x)[axis]
    if num < 1:
        raise DomainError(f"resample: num is {num}, but must be at least 1!")
    least = min(num, n)
    weights = np.zeros(n // 2 + 1)
    weights[: least // 2 + 1] = num / n
    if least % 2 == 0 and num != n:
        weights[least // 2] *= 2.0 if num < n else 0.5
    spectrum = np.fft.rfft(x, axis=axis) * _column_along(weights, axis, np.ndim(x))
    return np.fft.irfft(spectrum, num, axis)
