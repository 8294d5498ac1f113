"""Linear recurrences: the filter behind autoregressive, moving-average and volatility models."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.domains import Domain
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_array, misfit
from varmat.programs.build.loops import loop
from varmat.programs.build.symbol import is_symbol, require
from varmat.typing import Adjoint, Linear, Operand, Plain, Result

__all__ = ["lfilter"]

_nonzero = Domain("nonzero", lambda x: x != 0.0)


def lfilter(b: Operand, a: Operand, x: Operand, axis: int = -1, zi: Operand = None) -> Result:
    """Filter by a linear recurrence with constant coefficients, all of whose arguments may be
    variables: `scipy.signal.lfilter`.

    Along an axis of `x` solves ``a[0] y[t] = b[0] x[t] + b[1] x[t - 1] + ... - a[1] y[t - 1] - a[2]
    y[t - 2] - ...``.

    Parameters
    ----------
    b, a : array_like, vectors that are not empty, or scalars
        The coefficients of the input and of the output; ``a[0]`` is not zero.
    x : array_like, one axis or more
        The input.
    axis : int
        The axis along which time runs.
    zi : array_like, optional
        The initial state: as many axes as `x`, ``max(len(a), len(b)) - 1`` elements along `axis`,
        and in the others the length of `x` or one. ``zi[i]`` is added to ``y[i]`` as if it came
        from before the start. Zero by default.

    Returns
    -------
    y : VarMat
        The output, of the shape of `x`.
    zf : VarMat
        The final state, from which a following piece may go on; only if `zi` is given.

    Raises
    ------
    DomainError
        If ``a[0]`` is zero.
    ShapeError
        If a coefficient vector is empty or no vector, if `x` is a scalar, or if `zi` does not fit.

    Notes
    -----
    The adjoint of the output, filtered backwards in time with the same `a`, is the adjoint of what
    enters the recurrence at each time. The gradients of `b` and `a` are its correlations with `x`
    and `y`, at lags up to the order. For an empty `x` the final state is the initial one.

    References
    ----------
    Oppenheim and Schafer, Discrete-Time Signal Processing, section 6.3 (the transposed direct form
    II).

    Examples
    --------
    The innovations of an ARMA(1, 1) process, ``y[t] = phi y[t - 1] + e[t] + theta e[t - 1]``:

    >>> import numpy as np, varmat as vm
    >>> y = np.array([0.3, -0.2, 0.5, 0.1])
    >>> def log_likelihood(phi, theta):
    ...     return vm.std_normal_lpdf(vm.lfilter([1.0, -phi], [1.0, theta], y))
    >>> [round(slope, 6) for slope in vm.value_and_grad(log_likelihood, (0, 1))(0.5, 0.2)[1]]
    [-0.458413, -0.665786]

    The variances of a GARCH(1, 1) process, ``h[t] = omega + alpha r[t - 1]**2 + beta h[t - 1]``,
    with the first one given:

    >>> def variances(omega, alpha, beta, first):
    ...     state = np.atleast_1d(beta * first)
    ...     later, _ = vm.lfilter(1.0, [1.0, -beta], omega + alpha * y[:-1] ** 2, zi=state)
    ...     return np.append(first, later)
    >>> np.round(variances(0.01, 0.1, 0.8, 0.1), 6)
    array([0.1    , 0.099  , 0.0932 , 0.10956])
    >>> slopes_of = vm.grad(lambda *p: np.sum(variances(*p)), (0, 1, 2, 3))
    >>> slopes = slopes_of(0.01, 0.1, 0.8, 0.1)
    >>> [round(slope, 6) for slope in slopes]
    [5.24, 0.5416, 0.5154, 2.952]
    """
    b, a = _coefficients("b", b), _coefficients("a", a)
    x = as_operand(x, "lfilter: x")
    check_array("lfilter", "x", x)
    shape = () if type(x) is float else x.shape
    axis, last = normalize_axis_index(axis, len(shape)), len(shape) - 1
    order = max(a.shape[0], b.shape[0]) - 1
    if zi is None:
        state = np.zeros((1,) * last + (order,))
    else:
        state = as_operand(zi, "lfilter: zi")
        _check_state(np.shape(state), shape, axis, order)
    if axis == last:
        y, zf = recurrence(b, a, x, state)
    else:
        state = state if zi is None else np.moveaxis(state, axis, -1)
        y, zf = (
            np.moveaxis(item, -1, axis)
            for item in recurrence(b, a, np.moveaxis(x, axis, -1), state)
        )
    return y if zi is None else (y, zf)


def _coefficients(name: str, c: Operand) -> Result:
    c = as_operand(c, f"lfilter: {name}")
    if type(c) is float:
        return np.array([c])
    shape = c.shape
    if not shape:
        return np.reshape(c, (1,))
    if len(shape) > 1 or not shape[0]:
        raise misfit("lfilter", name, shape, "be a vector that is not empty")
    return c


def _check_state(shape: tuple[int, ...], of_x: tuple[int, ...], axis: int, order: int) -> None:
    expected = (*of_x[:axis], order, *of_x[axis + 1 :])
    fits = [
        n == m or (n == 1 and i != axis)
        for i, (n, m) in enumerate(zip(shape, expected, strict=False))
    ]
    if len(shape) != len(expected) or not all(fits):
        alternative = f", or 1 in place of all but {order}" if len(expected) > 1 else ""
        raise misfit("lfilter", "zi", shape, f"have shape {expected}{alternative}")


def _padded(c: Operand, length: int) -> Result:
    """Pad coefficients with zeros at the end."""
    return np.concatenate((c, np.zeros(length - np.size(c)))) if np.size(c) < length else c


@cache
def _scipy_filter() -> Result:
    from scipy.signal import lfilter

    return lfilter


def _filtered(b: Operand, a: Operand, x: Operand, zi: Operand) -> Result:
    """Compute output and final state, by SciPy or, in a program, by a loop over time."""
    if not any(map(is_symbol, (b, a, x, zi))):
        return _scipy_filter()(b, a, x, zi=zi)
    order = zi.shape[-1]
    if not order:
        return b / a[0] * x, zi

    def trip(*args: Operand) -> Result:
        state, (now, b, a) = [*args[:order], 0.0], args[order:]
        y = b[0] * now + state[0]
        return [b[i] * now - a[i] * y + state[i] for i in range(1, order + 1)], [y]

    states = np.moveaxis(zi + np.zeros((*x.shape[:-1], order)), -1, 0)
    coefficients = [_padded(c, order + 1) / a[0] for c in (b, a)]
    rows = [np.moveaxis(x, -1, 0)]
    *final, y = loop(trip, x.shape[-1], [states[i] for i in range(order)], rows, coefficients)
    return np.moveaxis(y, 0, -1), np.stack(final, axis=-1)


def _backwards(a: Operand, g: Adjoint, future: Operand) -> Result:
    """Run the recursion from the end to the start. `future` is its output after the end, nearest
    first.
    """
    state = np.zeros((*g.shape[:-1], a.size - 1))
    for lag in range(1, a.size if future is not None else 0):
        remainder = np.zeros((*g.shape[:-1], a.size - 1 - lag))
        past = a[lag] / a[0] * future[..., lag - 1 :: -1]
        state = state - np.concatenate((past, remainder), axis=-1)
    return _filtered(a[:1], a, g[..., ::-1], state)[0][..., ::-1]


@operation()
def recurrence(b: Operand, a: Operand, x: Operand, zi: Operand) -> Result:
    """Compute output and final state of the filter along the last axis."""
    if is_symbol(a):
        require(a[0] != 0.0)
    elif a[0] == 0.0:
        _nonzero.check("lfilter", "a[0]", float(a[0]))
    if not x.size:
        return np.zeros(x.shape), np.array(np.broadcast_to(zi, (*x.shape[:-1], zi.shape[-1])))
    return _filtered(b, a, x, zi)


# Let g be the adjoint of the output and s that of the final state. The input of the recurrence at
# time t has the adjoint w[t] = g[t] - (a[1] w[t + 1] + a[2] w[t + 2] + ...) / a[0], where w[T + j]
# = s[j], because the final state is the input that would come next.
@recurrence.reverse
def recurrence_reverse(g: Adjoint, r: Plain, b: Plain, a: Plain, x: Plain, zi: Plain) -> Adjoint:
    (y, zf), (g, s), order, length = r, g, zi.shape[-1], x.shape[-1]
    g = np.zeros(x.shape) if g is None else g
    w = _backwards(a, g, s) if a.size > 1 and x.size else g
    later = np.zeros((*x.shape[:-1], order)) if s is None else s
    w = np.concatenate((w, later), axis=-1)

    def correlations(z: Operand, count: int) -> Result:
        """Sum ``z[t] w[t + i]`` over all times and series, for every lag i."""
        if not length:
            return np.zeros(count)
        if z.ndim == 1 and not (is_symbol(w) or is_symbol(z)):
            return np.correlate(w[: length + count - 1], z, "valid") / a[0]
        series, adjoints = z.reshape(-1, length), w.reshape(-1, length + order)
        lags = (adjoints[:, i : i + length] for i in range(count))
        return np.stack([np.einsum("kt,kt->", series, lag) for lag in lags]) / a[0]

    # The derivative of a[0] (y - ...) = ...; only the states do not scale with the coefficients.
    def of_a() -> Result:
        c, first = -correlations(y, a.size), 0.0
        if order:
            first = np.add.reduce(zi * w[..., :order], axis=None) / a[0]
        if s is not None:
            first = first - np.add.reduce(zf * w[..., length:], axis=None) / a[0]
        return np.concatenate((c[:1] + first, c[1:]))

    def of_x() -> Result:
        if b.size == 1 or not x.size:
            return w[..., :length] * (b[0] / a[0])
        if is_symbol(b) or is_symbol(w):
            return sum(b[i] / a[0] * w[..., i : i + length] for i in range(b.size))
        if x.ndim == 1:
            return np.correlate(w[: length + b.size - 1], b / a[0], "valid")
        # A second coefficient makes SciPy take its recursive path, which is fast for many series.
        filtered = _scipy_filter()(b / a[0], np.array([1.0, 0.0]), w[..., ::-1])
        return filtered[..., ::-1][..., :length]

    return lambda: correlations(x, b.size), of_a, of_x, lambda: w[..., :order].copy()


@recurrence.tangent
def recurrence_tangent(r: Plain, b: Plain, a: Plain, x: Plain, zi: Plain) -> tuple[Linear, ...]:
    (y, zf), order = r, np.shape(zi)[-1]
    remainder = np.zeros((1,) * (np.ndim(x) - 1) + (order,))

    def of_a(t: Operand) -> Result:
        rate = t[0] / a[0] if np.size(x) else 0.0
        ty, tz = recurrence(_padded(-t, order + 1), a, y, rate * zi)
        return ty, tz - rate * zf

    return (
        lambda t: recurrence(_padded(t, order + 1), a, x, remainder),
        of_a,
        lambda t: recurrence(_padded(b, order + 1), a, t, remainder),
        lambda t: recurrence(_padded(b, order + 1), a, np.zeros(np.shape(x)), t),
    )
