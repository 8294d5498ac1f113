"""Linear recurrences: against SciPy's values and 50-digit arithmetic, along all routes, and
refusals.
"""

import mpmath as mp
import numpy as np
import pytest
import scipy.signal
from comparing import DOMAIN, SHAPE, close, equal, refuses_as
from functions.matrices import gradients, worst_error

import varmat as vm
from varmat.functions.signals.recurrences import lfilter
from varmat.testing import expect_ad, expect_ad_matvar

B, A = np.array([0.7, -0.3, 0.2]), np.array([1.5, -0.4])
X = np.array([0.3, -1.2, 0.8, 2.1, 0.4, -0.9])
ZI = np.array([0.5, -0.2])
SERIES = 0.9 * np.cos(1.7 * np.arange(24.0)).reshape(2, 4, 3) + 0.2

# The order of b may be larger than, smaller than or equal to the order of a.
ORDERS = {
    "b longer": (B, A),
    "a longer": (A, B),
    "same": (B, np.array([-1.1, 0.4, 0.3])),
    "no a": (B, A[:1]),
    "no b": (B[:1], np.array([0.8, -0.5, 0.2])),
    "order 0": (B[:1], A[:1]),
    "unstable": (B, np.array([1.0, -2.5, 0.7])),
    "zero coefficients": (np.array([0.0, 0.4, 0.0]), np.array([1.0, 0.0, -0.3])),
}
# Every order, and every length of the series.
CASES = [*((name, 2) for name in ORDERS), *(("b longer", n) for n in (6, 1, 0)), ("no a", 0)]


def with_state(b, a, x, zi):
    return lfilter(b, a, x, zi=zi)


def exact(b, a, x, zi):
    """Evaluate the recurrence by its definition. The final state is what would enter after the
    end.
    """
    order, length = max(len(a), len(b)) - 1, len(x)
    y = []
    entering = []
    for t in range(length + order):
        known = mp.fsum(b[i] * x[t - i] for i in range(len(b)) if 0 <= t - i < length)
        known -= mp.fsum(a[i] * y[t - i] for i in range(1, len(a)) if 0 <= t - i < length)
        entering.append(known / a[0] + (zi[t] if t < order else 0))
        y.append(entering[-1])
    return y[:length], entering[length:]


@pytest.mark.parametrize("length", [6, 2])
@pytest.mark.parametrize("name", ORDERS)
def test_against_50_digits(name, length):
    b, a = ORDERS[name]
    order = max(len(a), len(b)) - 1
    if order:
        assert worst_error(with_state, exact, [b, a, X[:length], ZI[:order]]) < 1e-14
    found = worst_error(lfilter, lambda b, a, x: exact(b, a, x, [0] * order)[0], [b, a, X[:length]])
    assert found < 1e-14


def test_a_long_series_that_explodes():
    a, x = np.array([1.0, -1.9, 0.88]), np.cos(np.arange(300.0))
    assert worst_error(with_state, exact, [B, a, x, ZI]) < 1e-12


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_values_and_shapes_are_those_of_scipy(name, axis):
    b, a = ORDERS[name]
    order = max(len(a), len(b)) - 1
    shape = [2, 4, 3]
    shape[axis] = order
    whole = np.sin(np.arange(np.prod(shape))).reshape(shape)
    single = np.take(whole, [1], axis=0 if axis % 3 else 1)
    for zi in (None, whole, single):
        expected = scipy.signal.lfilter(b, a, SERIES, axis, zi)
        for args in ((b, a, SERIES), (vm.var(b), vm.var(a), vm.var(SERIES))):
            found = lfilter(*args, axis, zi)
            for ours, theirs in (
                [(found, expected)] if zi is None else zip(found, expected, strict=True)
            ):
                equal(vm.value(ours), theirs)


@pytest.mark.parametrize(("name", "length"), CASES)
def test_all_routes(name, length):
    b, a = ORDERS[name]
    zi = ZI[: max(len(a), len(b)) - 1]
    for f, args in ((lfilter, (b, a, X[:length])), (with_state, (b, a, X[:length], zi))):
        expect_ad(f, *args)
        expect_ad_matvar(f, *args)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_all_routes_along_an_axis(axis):
    order, x = 2, SERIES[:, :2]
    shape = list(x.shape)
    shape[axis] = order
    whole = np.sin(np.arange(np.prod(shape))).reshape(shape)
    for zi in (whole, np.take(whole, [0], axis=axis - 1)):
        expect_ad(lambda b, a, x, zi: lfilter(b, a, x, axis, zi), B, A, x, zi)
    expect_ad_matvar(lambda x: lfilter(B, A, x, axis), x)


@pytest.mark.parametrize("x", [np.empty((0, 3)), np.empty((2, 0)), np.empty((0, 0))])
def test_empty(x):
    for a in (A, A[:1]):
        expect_ad(lambda b, a, x: lfilter(b, a, x), B, a, x)
        expect_ad(with_state, B, a, x, ZI[None])
    _, zf = lfilter(B, A, x, zi=ZI[None])
    equal(zf, np.broadcast_to(ZI, (len(x), 2)))


def test_scalars_and_lists():
    expect_ad(lambda b, a, x: lfilter(b, [2.0, a], [x, 1.0, x]), 0.5, -0.3, 1.5)
    equal(lfilter(0.5, 2, [1, 2]), [0.25, 0.5])


def test_pieces_make_the_whole():
    def pieces(b, a, x):
        first, state = lfilter(b, a, x[:4], zi=np.zeros(2))
        second, _ = lfilter(b, a, x[4:], zi=state)
        return np.concatenate((first, second))

    close(gradients(pieces, [B, A, X])[1], gradients(lfilter, [B, A, X])[1], 1e-13)


def test_many_series_are_the_sum_of_each():
    _, (b, a, x) = gradients(lfilter, [B, A, SERIES], [SERIES])
    each = [gradients(lfilter, [B, A, row], [row])[1] for row in SERIES.reshape(-1, 3)]
    close(b, sum(c[0] for c in each), 1e-13)
    close(a, sum(c[1] for c in each), 1e-13)
    close(x.reshape(-1, 3), [c[2] for c in each], 1e-13)


def test_nan_stays_where_it_is():
    x = np.array([1.0, 2.0, np.nan, 1.0])
    with np.errstate(invalid="ignore"):
        _, (adjoint,) = gradients(lambda x: lfilter(B, A, x)[:2], [x], [np.ones(2)])
    equal(np.isfinite(adjoint), True)


def test_a_garch_likelihood():
    returns = np.cos(3.1 * np.arange(12.0))

    def log_density(omega, alpha, beta, first):
        later, _ = lfilter(
            1.0, [1.0, -beta], omega + alpha * returns[:-1] ** 2, zi=np.atleast_1d(beta * first)
        )
        return vm.normal_lpdf(returns, 0.0, np.sqrt(np.append(first, later)))

    def by_steps(omega, alpha, beta, first):
        total, variance = 0.0, first
        for r in returns.tolist():
            total = total + vm.normal_lpdf(r, 0.0, np.sqrt(variance))
            variance = omega + alpha * r**2 + beta * variance
        return total

    point = (0.1, 0.2, 0.7, 0.5)
    expect_ad(log_density, *point)
    close(gradients(log_density, point), gradients(by_steps, point), 1e-13)


REFUSED = [
    ((B, [0.0, 1.0], X), {}, DOMAIN, "lfilter: a[0] is 0.0, but must be nonzero!"),
    (([], A, X), {}, SHAPE, "lfilter: b has shape (0,), but must be a vector that is not empty!"),
    ((B, [A], X), {}, SHAPE,
     "lfilter: a has shape (1, 2), but must be a vector that is not empty!"),
    ((B, A, X), {"zi": [1.0]}, SHAPE, "lfilter: zi has shape (1,), but must have shape (2,)!"),
    ((B, A, SERIES), {"zi": ZI}, SHAPE,
     "lfilter: zi has shape (2,), but must have shape (2, 4, 2), or 1 in place of all but 2!"),
    ((B, A, SERIES), {"zi": np.ones((2, 3, 2))}, SHAPE,
     "lfilter: zi has shape (2, 3, 2), but must have shape (2, 4, 2), or 1 in place of all but 2!"),
    ((B, A, SERIES[0]), {"zi": np.ones((3, 2))}, SHAPE,
     "lfilter: zi has shape (3, 2), but must have shape (4, 2), or 1 in place of all but 2!"),
    ((B, A, 1.0), {}, SHAPE, "lfilter: x is a scalar, but must be an array!"),
    ((B, A, X), {"axis": 1}, ValueError, "axis 1 is out of bounds"),
    ((B, A, ["x"]), {}, TypeError, "lfilter: x"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "settings", "error", "text"), REFUSED)
def test_refusals(args, settings, error, text):
    for b in (args[0], vm.var(args[0])):
        refuses_as(error, text, lfilter, b, *args[1:], **settings)
