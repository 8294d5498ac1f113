"""Filters of signals, built of linear recurrences: cascades, and filters run forwards and
backwards.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import (
    check_array,
    check_choice,
    check_values,
    in_the_name_of,
    integer,
    misfit,
)
from varmat.functions.signals.recurrences import lfilter
from varmat.typing import Function, Operand, Result, array_valued

__all__ = ["filtfilt", "lfilter_zi", "sosfilt", "sosfilt_zi", "sosfiltfilt"]


def _sections(name: str, sos: Operand) -> Result:
    sos = as_operand(sos, f"{name}: sos")
    if np.ndim(sos) != 2 or np.shape(sos)[1] != 6 or not np.shape(sos)[0]:
        raise misfit(name, "sos", np.shape(sos), "have shape (n, 6), with at least one section")
    return sos


def series_along(name: str, x: Operand, axis: int) -> tuple[Result, int]:
    x = as_operand(x, f"{name}: x")
    check_array(name, "x", x, "have at least one axis")
    return x, normalize_axis_index(axis, np.ndim(x))


def sosfilt(sos: Operand, x: Operand, axis: int = -1, zi: Operand = None) -> Result:
    """Apply a filter in second-order sections, one `lfilter` per section:
    `scipy.signal.sosfilt`.

    Parameters
    ----------
    sos : array_like, shape (n, 6)
        In each row a section's three coefficients of the input and three of the output.
    x : array_like, one axis or more
        The input.
    axis : int
        The axis along which time runs.
    zi : array_like, optional
        The initial states: of shape ``(n, ..., 2, ...)`` where the 2 replaces the length
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
    The derivative follows from the sections, see `lfilter`. SciPy wants the fourth coefficients to
    be 1; here they may be variables.

    References
    ----------
    SciPy reference, `scipy.signal.sosfilt`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> sos = np.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0], [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]])
    >>> vm.gradient(lambda x: vm.sosfilt(sos, x)[2], np.zeros(3))
    array([0.75, 1.5 , 1.  ])
    """
    sos = _sections("sosfilt", sos)
    y, axis = series_along("sosfilt", x, axis)
    if zi is None:
        for i in range(np.shape(sos)[0]):
            y = lfilter(sos[i, :3], sos[i, 3:], y, axis)
        return y
    zi = as_operand(zi, "sosfilt: zi")
    if np.shape(zi)[:1] != np.shape(sos)[:1]:
        raise misfit(
            "sosfilt", "zi", np.shape(zi), f"have {np.shape(sos)[0]} rows, one for each section"
        )
    states = []
    for i in range(np.shape(sos)[0]):
        y, state = lfilter(sos[i, :3], sos[i, 3:], y, axis, zi[i])
        states.append(state)
    return y, np.stack(states)


@array_valued
def lfilter_zi(b: Operand, a: Operand) -> Result:
    """Find the state in which a filter answers a constant input 1 by a constant:
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
        If `b` or `a` is not a vector, or is empty.

    Notes
    -----
    With ``a[0] = 1`` the first element is ``sum(b[1:] - a[1:] b[0]) / sum(a)``, and the others
    follow from the recurrence. The derivative follows from these sums. Where ``sum(a)`` is zero no
    such state exists.

    References
    ----------
    SciPy reference, `scipy.signal.lfilter_zi`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.lfilter_zi([1.0], [1.0, a])[0], -0.5)
    -4.0
    """
    b, a = as_operand(b, "lfilter_zi: b"), as_operand(a, "lfilter_zi: a")
    for name, c in (("b", b), ("a", a)):
        if np.ndim(c) != 1 or not np.size(c):
            raise misfit("lfilter_zi", name, np.shape(c), "be a vector that is not empty")
    order = max(np.size(a), np.size(b)) - 1
    # Arrays of one element keep the kind of their array.
    b, a = _padded(b, order + 1) / a[:1], _padded(a, order + 1) / a[:1]
    remainder = b[1:] - a[1:] * b[:1]
    first = np.sum(remainder, keepdims=True) / np.sum(a)
    earlier = np.concatenate([np.zeros(min(order, 1)), np.cumsum(remainder)[:-1]])
    return np.cumsum(a)[:-1] * first - earlier


def _padded(c: Operand, size: int) -> Result:
    return np.concatenate([c, np.zeros(size - np.size(c))]) if np.size(c) < size else c


@array_valued
def sosfilt_zi(sos: Operand) -> Result:
    """Find the states in which a filter in sections answers a constant input 1 by a constant:
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
    The state of each section is the result of `lfilter_zi` times what the sections before it make
    of a constant 1; so is the derivative.

    References
    ----------
    SciPy reference, `scipy.signal.sosfilt_zi`.

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


def _extended(name: str, x: Operand, axis: int, padtype: Operand, padlen: int) -> Result:
    """Extend the series by `padlen` elements at both ends."""
    check_choice(name, "padtype", padtype, "odd", "even", "constant", None)
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


def _both_ways(x: Operand, axis: int, run: Function, padlen: int) -> Result:
    """Run the filter forwards and then backwards, each time from the state that belongs to the
    first element.
    """
    start = (slice(None),) * axis
    y = run(x, x[(*start, slice(0, 1))])
    y = np.flip(run(np.flip(y, axis), y[(*start, slice(-1, None))]), axis)
    return y[(*start, slice(padlen, np.shape(y)[axis] - padlen))]


@array_valued
def filtfilt(
    b: Operand,
    a: Operand,
    x: Operand,
    axis: int = -1,
    padtype: Operand = "odd",
    padlen: Operand = None,
) -> Result:
    """Run a filter forwards and then backwards, so that nothing is delayed:
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

    References
    ----------
    * F. Gustafsson, "Determining the initial states in forward-backward filtering", IEEE
      Transactions on Signal Processing 44 (1996), 988-992.
    * SciPy reference, `scipy.signal.filtfilt`.

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
    x, axis = series_along("filtfilt", x, axis)
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


def _default_padding(sos: Operand) -> int:
    """SciPy's default: sections of the first order count as such."""
    return 3 * (
        2 * len(sos)
        + 1
        - int(min(np.count_nonzero(sos[:, 2] == 0.0), np.count_nonzero(sos[:, 5] == 0.0)))
    )


@array_valued
def sosfiltfilt(
    sos: Operand, x: Operand, axis: int = -1, padtype: Operand = "odd", padlen: Operand = None
) -> Result:
    """Run a filter in second-order sections forwards and then backwards:
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

    References
    ----------
    * F. Gustafsson, "Determining the initial states in forward-backward filtering", IEEE
      Transactions on Signal Processing 44 (1996), 988-992.
    * SciPy reference, `scipy.signal.sosfiltfilt`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> sos = np.array([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]])
    >>> vm.gradient(lambda x: vm.sosfiltfilt(sos, x, padlen=1)[1], np.array([1.0, 2.0, 4.0, 3.0]))
    array([0.25, 0.5 , 0.25, 0.  ])
    """
    sos = _sections("sosfiltfilt", sos)
    x, axis = series_along("sosfiltfilt", x, axis)
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
