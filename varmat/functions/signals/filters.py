"""Filters of signals, built of linear recurrences: cascades, filters run forwards and backwards,
smoothing and detrending.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import check_values, in_the_name_of, integer
from varmat.functions.signals.nd_convolutions import nd_convolution
from varmat.functions.signals.recurrences import lfilter

__all__ = [
    "detrend",
    "filtfilt",
    "hilbert",
    "lfilter_zi",
    "resample",
    "savgol_filter",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
]


def _sections(name: str, sos: Any) -> Any:
    sos = as_operand(sos, f"{name}: sos")
    if np.ndim(sos) != 2 or np.shape(sos)[1] != 6 or not np.shape(sos)[0]:
        raise ShapeError(
            f"{name}: sos has shape {np.shape(sos)}, but must have shape (n, 6), with at least one "
            "section!"
        )
    return sos


def _series(name: str, x: Any, axis: int) -> tuple[Any, int]:
    x = as_operand(x, f"{name}: x")
    if not np.ndim(x):
        raise ShapeError(f"{name}: x is a scalar, but must have at least one axis!")
    return x, normalize_axis_index(axis, np.ndim(x))


def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A filter in second-order sections, one `lfilter` after the other: `scipy.signal.sosfilt`.

    Parameters
    ----------
    sos : array_like, shape (n, 6)
        In each row the three coefficients of the input and those of the output of a section.
    x : array_like, one axis or more
        The input.
    axis : int
        The axis along which time runs.
    zi : array_like, optional
        The initial states: of shape ``(n, ..., 2, ...)`` where the 2 stands in place of the length
        of `x` along `axis`.

    Returns
    -------
    y : VarMat
        The output, of the shape of `x`.
    zf : VarMat
        The final states; only if `zi` is given.

    Raises
    ------
    DomainError
        If the fourth coefficient of a section is zero.
    ShapeError
        If `sos` or `zi` does not fit.

    Notes
    -----
    The derivative is that of the sections, see `lfilter`. SciPy wants the fourth coefficients to be
    1; here they may be variables.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> sos = np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0], [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]])
    >>> vm.gradient(lambda x: vm.sosfilt(sos, x)[2], np.zeros(3))
    array([0.75, 1.5 , 1.  ])
    """
    sos = _sections("sosfilt", sos)
    y, axis = _series("sosfilt", x, axis)
    if zi is None:
        for i in range(np.shape(sos)[0]):
            y = lfilter(sos[i, :3], sos[i, 3:], y, axis)
        return y
    zi = as_operand(zi, "sosfilt: zi")
    if np.shape(zi)[:1] != np.shape(sos)[:1]:
        raise ShapeError(
            f"sosfilt: zi has shape {np.shape(zi)}, but must have {np.shape(sos)[0]} rows, one for "
            "each section!"
        )
    states = []
    for i in range(np.shape(sos)[0]):
        y, state = lfilter(sos[i, :3], sos[i, 3:], y, axis, zi[i])
        states.append(state)
    return y, np.stack(states)


def lfilter_zi(b: Any, a: Any) -> Any:
    """The state in which a filter answers a constant input 1 by a constant:
    `scipy.signal.lfilter_zi`.

    Parameters
    ----------
    b, a : array_like, vectors
        The coefficients, see `lfilter`; ``a[0]`` is not zero.

    Returns
    -------
    VarMat, shape (max(len(a), len(b)) - 1,)

    Raises
    ------
    ShapeError
        If `b` or `a` is no vector, or empty.

    Notes
    -----
    With ``a[0] = 1`` the first element is ``sum(b[1:] - a[1:] b[0]) / sum(a)``, and the others
    follow from the recurrence. The derivative is that of these sums. Where ``sum(a)`` is zero there
    is no such state.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.lfilter_zi([1.0], [1.0, a])[0], -0.5)
    -4.0
    """
    b, a = as_operand(b, "lfilter_zi: b"), as_operand(a, "lfilter_zi: a")
    for name, c in (("b", b), ("a", a)):
        if np.ndim(c) != 1 or not np.size(c):
            raise ShapeError(
                f"lfilter_zi: {name} has shape {np.shape(c)}, but must be a vector that is not "
                "empty!"
            )
    order = max(np.size(a), np.size(b)) - 1
    # By arrays of one element, which are of the kind of their array.
    b, a = _padded(b, order + 1) / a[:1], _padded(a, order + 1) / a[:1]
    rest = b[1:] - a[1:] * b[:1]
    first = np.sum(rest, keepdims=True) / np.sum(a)
    earlier = np.concatenate([np.zeros(min(order, 1)), np.cumsum(rest)[:-1]])
    return np.cumsum(a)[:-1] * first - earlier


def _padded(c: Any, size: int) -> Any:
    return np.concatenate([c, np.zeros(size - np.size(c))]) if np.size(c) < size else c


def sosfilt_zi(sos: Any) -> Any:
    """The states in which a filter in sections answers a constant input 1 by a constant:
    `scipy.signal.sosfilt_zi`.

    Parameters
    ----------
    sos : array_like, shape (n, 6)

    Returns
    -------
    VarMat, shape (n, 2)

    Raises
    ------
    ShapeError
        If `sos` has another shape.

    Notes
    -----
    The state of each section is that of `lfilter_zi` times what the sections before it make of a
    constant 1; so is the derivative.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sosfilt_zi([[1.0, 1.0, 0.0, 1.0, -0.5, 0.0]])
    array([[3., 0.]])
    """
    sos = _sections("sosfilt_zi", sos)
    states, scale = [], 1.0
    for i in range(np.shape(sos)[0]):
        b, a = sos[i, :3], sos[i, 3:]
        states.append(scale * lfilter_zi(b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(states)


def _extended(name: str, x: Any, axis: int, padtype: Any, padlen: int) -> Any:
    """The series with `padlen` elements more at both ends."""
    if padtype not in ("odd", "even", "constant", None):
        raise DomainError(
            f"{name}: padtype is {padtype!r}, but must be 'odd', 'even', 'constant' or None!"
        )
    if np.shape(x)[axis] <= padlen:
        raise ShapeError(
            f"{name}: x has {np.shape(x)[axis]} elements along the axis, but must have more than "
            f"padlen={padlen}!"
        )
    if not padlen or padtype is None:
        return x
    start = (slice(None),) * axis
    first, last = x[(*start, slice(0, 1))], x[(*start, slice(-1, None))]
    left, right = x[(*start, slice(padlen, 0, -1))], x[(*start, slice(-2, -padlen - 2, -1))]
    if padtype == "odd":
        left, right = 2.0 * first - left, 2.0 * last - right
    if padtype == "constant":
        left, right = (np.repeat(end, padlen, axis=axis) for end in (first, last))
    return np.concatenate([left, x, right], axis=axis)


def _both_ways(x: Any, axis: int, run: Any, padlen: int) -> Any:
    """The filter forwards and then backwards, each begun in the state that goes with the first
    element.
    """
    start = (slice(None),) * axis
    y = run(x, x[(*start, slice(0, 1))])
    y = np.flip(run(np.flip(y, axis), y[(*start, slice(-1, None))]), axis)
    return y[(*start, slice(padlen, np.shape(y)[axis] - padlen))]


def filtfilt(
    b: Any, a: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None
) -> Any:
    """A filter run forwards and then backwards, so that nothing is delayed:
    `scipy.signal.filtfilt`.

    Parameters
    ----------
    b, a : array_like, vectors
        The coefficients, see `lfilter`.
    x : array_like, one axis or more
    axis : int
        The axis along which time runs.
    padtype : {'odd', 'even', 'constant', None}
        How `x` is continued at both ends.
    padlen : int, optional
        By how many elements; by default three times the number of coefficients.

    Returns
    -------
    VarMat, of the shape of `x`

    Raises
    ------
    DomainError
        If `padtype` is unknown, or ``a[0]`` zero.
    ShapeError
        If a coefficient vector is empty or no vector, or `x` has no more than `padlen` elements.

    Notes
    -----
    Composed of `lfilter`, begun in the states of `lfilter_zi`; so is the derivative, with respect
    to the coefficients too. Of SciPy's two ways to choose the ends this is ``method='pad'``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = np.array([1.0, 2.0, 4.0, 3.0])
    >>> vm.gradient(lambda x: vm.filtfilt([0.5, 0.5], [1.0], x, padlen=1)[1], x)
    array([0.25, 0.5 , 0.25, 0.  ])
    """
    b, a = (
        np.reshape(c, (1,)) if np.ndim(c) == 0 else as_operand(c, "filtfilt: the coefficients")
        for c in (b, a)
    )
    x, axis = _series("filtfilt", x, axis)
    with in_the_name_of("filtfilt"):
        state = lfilter_zi(b, a)
    if padtype is None:
        padlen = 0
    padlen = (
        3 * max(np.size(a), np.size(b)) if padlen is None else integer("filtfilt", "padlen", padlen)
    )
    extended = _extended("filtfilt", x, axis, padtype, padlen)
    zi = np.reshape(state, (1,) * axis + (-1,) + (1,) * (np.ndim(x) - axis - 1))
    return _both_ways(
        extended, axis, lambda y, first: lfilter(b, a, y, axis, zi * first)[0], padlen
    )


def _default_padding(sos: Any) -> int:
    """What SciPy takes: sections of the first order count as such."""
    return 3 * (
        2 * len(sos)
        + 1
        - int(min(np.count_nonzero(sos[:, 2] == 0.0), np.count_nonzero(sos[:, 5] == 0.0)))
    )


def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    """A filter in second-order sections, run forwards and then backwards:
    `scipy.signal.sosfiltfilt`.

    Parameters
    ----------
    sos : array_like, shape (n, 6)
    x : array_like, one axis or more
    axis : int
        The axis along which time runs.
    padtype : {'odd', 'even', 'constant', None}
        How `x` is continued at both ends.
    padlen : int, optional
        By how many elements; by default three times the number of coefficients that are not zero at
        the end of all sections.

    Returns
    -------
    VarMat, of the shape of `x`

    Raises
    ------
    DomainError
        If `padtype` is unknown.
    ShapeError
        If `sos` has another shape, or `x` no more than `padlen` elements.

    Notes
    -----
    Composed of `sosfilt`, begun in the states of `sosfilt_zi`; so is the derivative.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> sos = np.array([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]])
    >>> vm.gradient(lambda x: vm.sosfiltfilt(sos, x, padlen=1)[1], np.array([1.0, 2.0, 4.0, 3.0]))
    array([0.25, 0.5 , 0.25, 0.  ])
    """
    sos = _sections("sosfiltfilt", sos)
    x, axis = _series("sosfiltfilt", x, axis)
    states = sosfilt_zi(sos)
    if padtype is None:
        padlen = 0
    if padlen is None:
        padlen = check_values(_default_padding, sos)
    padlen = integer("sosfiltfilt", "padlen", padlen)
    extended = _extended("sosfiltfilt", x, axis, padtype, padlen)
    n = np.shape(sos)[0]
    zi = np.reshape(states, (n,) + (1,) * axis + (2,) + (1,) * (np.ndim(x) - axis - 1))
    return _both_ways(extended, axis, lambda y, first: sosfilt(sos, y, axis, zi * first)[0], padlen)


_EXTENSIONS = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


def savgol_filter(
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Any:
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

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.savgol_filter(x, 3, 1)[1], np.zeros(4)).round(12)
    array([0.33333333, 0.33333333, 0.33333333, 0.        ])
    """
    from scipy import signal

    window_length, polyorder, deriv = (
        integer("savgol_filter", name, value)
        for name, value in (
            ("window_length", window_length),
            ("polyorder", polyorder),
            ("deriv", deriv),
        )
    )
    x, axis = _series("savgol_filter", x, axis)
    if mode != "interp" and mode not in _EXTENSIONS:
        raise DomainError(
            f"savgol_filter: mode is {mode!r}, but must be 'interp', 'mirror', 'constant', "
            "'nearest' or 'wrap'!"
        )
    size = np.shape(x)[axis]
    if mode == "interp" and size < window_length:
        raise ShapeError(
            f"savgol_filter: x has {size} elements along the axis, but must have at least "
            f"{window_length}!"
        )
    weights = signal.savgol_coeffs(window_length, polyorder, deriv, delta)
    half, shape = window_length // 2, [1] * np.ndim(x)
    shape[axis] = -1
    settings = {"mode": "valid", "method": "direct", "axes": tuple(range(-np.ndim(x), 0))}
    if mode != "interp":
        around = [(0, 0)] * np.ndim(x)
        around[axis] = (window_length - 1 - half, half)
        extra = {"constant_values": cval} if mode == "constant" else {}
        padded: Any = np.pad(x, around, mode=_EXTENSIONS[mode], **extra)  # type: ignore[call-overload]
        return nd_convolution(padded, weights.reshape(shape), **settings)
    middle = nd_convolution(x, weights.reshape(shape), **settings)
    # What SciPy makes of the columns of the identity are the weights at the ends.
    ends = signal.savgol_filter(
        np.eye(window_length), window_length, polyorder, deriv, delta, axis=0
    )
    along = (slice(None),) * axis

    def product(rows: Any, part: Any) -> Any:
        return np.moveaxis(np.moveaxis(x[(*along, part)], axis, -1) @ rows.T, -1, axis)

    left = product(ends[:half], slice(0, window_length))
    right = product(ends[window_length - half :], slice(size - window_length, size))
    middle = middle[(*along, slice(2 * half - window_length + 1, None))]
    return np.concatenate([left, middle, right], axis=axis)


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0) -> Any:
    """What is left of a series without its straight line, or its mean: `scipy.signal.detrend`.

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

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.detrend(x, type="constant")[0], np.zeros(4))
    array([ 0.75, -0.25, -0.25, -0.25])
    """
    x, axis = _series("detrend", data, axis)
    size = np.shape(x)[axis]
    if type not in ("linear", "constant"):
        raise DomainError(f"detrend: type is {type!r}, but must be 'linear' or 'constant'!")
    if type == "constant":
        return x - np.mean(x, axis=axis, keepdims=True)
    places = sorted({0, size, *np.atleast_1d(bp).tolist()})
    x, pieces = np.moveaxis(x, axis, -1), []
    for start, stop in pairwise(places):
        piece, times = x[..., start:stop], np.arange(stop - start) - (stop - start - 1) / 2.0
        piece = piece - np.mean(piece, axis=-1, keepdims=True)
        square = np.sum(times**2)
        pieces.append(
            piece - np.sum(piece * times, axis=-1, keepdims=True) * (times / square)
            if square
            else piece
        )
    return np.moveaxis(np.concatenate(pieces, axis=-1), -1, axis)


def hilbert(x: Any, N: Any = None, axis: int = -1) -> Any:
    """The analytic signal, whose real part is `x` and whose absolute value is the envelope:
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

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.imag(vm.hilbert(x))[0], np.zeros(4))
    array([ 0. , -0.5,  0. ,  0.5])
    """
    x, axis = _series("hilbert", x, axis)
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
    """A vector along one of several axes."""
    return weights.reshape([-1 if i == axis else 1 for i in range(ndim)])


def resample(x: Any, num: int, axis: int = 0) -> Any:
    """A periodic series at another number of places, by Fourier transforms:
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
    of what it stands for. The derivative is that of the transforms.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.resample(x, 4)[1], np.zeros(2))
    array([0.5, 0.5])
    """
    x, axis = _series("resample", x, axis)
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
