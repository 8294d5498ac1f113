"""Reductions: closed forms, the ends of the range, Stan's values, conventions, and refusals."""

import math

import numpy as np
import pytest
import stan
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from functions.matrices import adjoint, value_and_adjoints
from functions.sums import CUMULATIVE, EXPONENTIAL, MASK, NAME, ZEROS, A, M, V, both, partial

import varmat as vm
from varmat.testing import expect_ad

AXES = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, -1)}, {"keepdims": True}]

NUMPY = [
    np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.nansum, np.nanprod, np.nanmean,
    np.nanvar, np.nanmax,
]  # fmt: skip
STAN = [vm.sd, vm.variance, vm.norm1, vm.norm2, vm.dot_self]


# --- all routes agree ---


@pytest.mark.parametrize("settings", AXES, ids=str)
@pytest.mark.parametrize("f", [*NUMPY, vm.logsumexp], ids=NAME)
def test_axes(f, settings):
    both(partial(f, **settings), A)


@pytest.mark.parametrize("f", [*NUMPY, *STAN, *CUMULATIVE, *EXPONENTIAL, np.ptp], ids=NAME)
def test_vectors_and_matrices(f):
    both(f, V)
    both(f, M.T[::-1])


@pytest.mark.parametrize("f", [np.sum, np.prod, np.max, *CUMULATIVE[:2], *EXPONENTIAL], ids=NAME)
def test_scalars(f):
    both(f, 1.3)
    both(partial(f, axis=0), 1.3)
    # NumPy refuses the axis of a scalar, and so do we.
    both(partial(np.mean, axis=0), 1.3)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_prod_with_zeros(axis):
    both(partial(np.prod, axis=axis), ZEROS)
    both(partial(np.prod, axis=axis), np.zeros((2, 3)))


COMPOSITE = {
    "spread of two": (lambda x: np.std(x, axis=0, ddof=1) + vm.sd(x[:, 0]), M[:2]),
    "var of a given mean": (lambda x, m: np.var(x, axis=0, mean=m, correction=1), M,
        M.mean(0, keepdims=True)),
    "initial": (lambda x: np.sum(x, axis=0, initial=2.0) * np.prod(x, initial=3.0), M),
    "ptp": (lambda x: np.ptp(x, axis=1, keepdims=True), M),
    "methods": (lambda x: (x.sum(0) + x.mean(0) + x.var(0,
        ddof=1) + x.std(axis=0) + x.max(0) - x.min(0) + x.prod(0)), M),
    "cumulative methods": (lambda x: x.cumsum(1) * x.cumprod(0), M),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPOSITE, ids=str)
def test_composite(case):
    both(*COMPOSITE[case])


# --- values and derivatives against closed forms ---


def products_of_others(s):
    return np.array([math.prod([*s[:i], *s[i + 1 :]]) for i in range(len(s))])


# --- arithmetic with 400 digits, and the ends of the range ---


ENDS = [
    [1e-200, 1e-200, 1e250], [1e200, 1e-300, 1e200, 3.0], [1e-308, 3.0, 0.5], [1e154, 1e154, 0.25],
    [-2.0, 1e-160, 0.0],
]  # fmt: skip


@pytest.mark.parametrize("x", ENDS, ids=str)
def test_products_near_the_ends(x):
    x = np.array(x)
    with np.errstate(all="ignore"):
        others = products_of_others(x)
        close(adjoint(np.prod, x), others, 1e-13)
        chain = [others_of_prefix(x, i) for i in range(len(x))]
        close(adjoint(np.cumprod, x), chain, 1e-13)


def others_of_prefix(x, i):
    return sum(math.prod(np.delete(x[: k + 1], i)) for k in range(i, len(x)))


@pytest.mark.parametrize("f", [np.var, np.std, vm.variance, vm.sd], ids=NAME)
def test_spread_far_from_the_origin(f):
    x = np.array([1.0, 2.0, 4.0])
    close(adjoint(f, x + 1024.0), adjoint(f, x), 1e-12)


# --- Stan's values ---


# --- conventions ---

INF, NAN = np.inf, np.nan
CONVENTIONS = {
    "max, ties": (np.max, [1.0, 3.0, 3.0], 3.0, [0.0, 0.5, 0.5]),
    "min, ties": (np.min, [2.0, 2.0], 2.0, [0.5, 0.5]),
    "max of nan": (np.max, [1.0, NAN, 2.0], NAN, [0.0, 1.0, 0.0]),
    "max of inf": (np.max, [INF, 1.0], INF, [1.0, 0.0]),
    "nanmax": (np.nanmax, [1.0, NAN, 2.0], 2.0, [0.0, 0.0, 1.0]),
    "nanmin of nan only": (np.nanmin, [NAN, NAN], NAN, [0.0, 0.0]),
    "nansum": (np.nansum, [1.0, NAN, 2.0], 3.0, [1.0, 0.0, 1.0]),
    "nanmean": (np.nanmean, [1.0, NAN, 2.0], 1.5, [0.5, 0.0, 0.5]),
    "nanprod": (np.nanprod, [2.0, NAN, 3.0], 6.0, [3.0, 0.0, 2.0]),
    "nanvar": (np.nanvar, [1.0, NAN, 3.0], 1.0, [-1.0, 0.0, 1.0]),
    "nanvar without freedom": (lambda x: np.nanvar(x, ddof=2), [1.0, NAN, 3.0], NAN,
        [NAN, 0.0, NAN]),
    "nanstd without freedom": (lambda x: np.nanstd(x, ddof=3), [1.0, NAN, 3.0], NAN,
        [NAN, 0.0, NAN]),
    "var without freedom": (lambda x: np.var(x, ddof=2, where=~np.isnan(x)), [1.0, NAN, 3.0], INF,
        [NAN, 0.0, NAN]),
    "nanstd of equals": (np.nanstd, [2.0, NAN, 2.0], 0.0, [0.0, 0.0, 0.0]),
    "nancumsum": (lambda x: np.nancumsum(x)[-1], [1.0, NAN, 2.0], 3.0, [1.0, 0.0, 1.0]),
    "prod of inf": (np.prod, [2.0, INF, 3.0], INF, [INF, 6.0, INF]),
    "prod of nothing": (np.prod, [], 1.0, []),
    "sum of nothing": (np.sum, [], 0.0, []),
    "std of equals": (np.std, [2.0, 2.0], 0.0, [0.0, 0.0]),
    "std of equals whose mean is rounded": (np.std, [0.1, 0.1, 0.1], 0.0, [0.0, 0.0, 0.0]),
    "std of large equals whose mean is rounded": (np.std, [987654321.123] * 5, 0.0, [0.0] * 5),
    "sd of one": (vm.sd, [2.0], 0.0, [0.0]),
    "variance of one": (vm.variance, [2.0], 0.0, [0.0]),
    "norm1 at zero": (vm.norm1, [0.0, -2.0], 2.0, [0.0, -1.0]),
    "norm2 at the origin": (vm.norm2, [0.0, 0.0], 0.0, [0.0, 0.0]),
    "norm2 of nan": (vm.norm2, [NAN, 1.0], NAN, [NAN, NAN]),
    "logsumexp of nothing": (vm.logsumexp, [], -INF, []),
    "logsumexp of -inf": (vm.logsumexp, [-INF, -INF], -INF, [0.0, 0.0]),
    "logsumexp with -inf": (vm.logsumexp, [-INF, 1.0], 1.0, [0.0, 1.0]),
    "logsumexp with inf": (vm.logsumexp, [INF, 1.0, INF], INF, [0.5, 0.0, 0.5]),
    "logsumexp of nan": (vm.logsumexp, [NAN, 1.0], NAN, [NAN, NAN]),
    "logsumexp, weight zero": (lambda x: vm.logsumexp(x, b=np.array([0.0, 1.0])), [INF, 1.0], 1.0,
        [0.0, 1.0]),
    "logsumexp, no weight": (lambda x: vm.logsumexp(x, b=np.zeros(2)), [0.0, 1.0], -INF,
        [0.0, 0.0]),
    "softmax with -inf": (lambda x: vm.softmax(x)[1], [-INF, 1.0], 1.0, [0.0, 0.0]),
    "softmax with inf": (lambda x: vm.softmax(x)[0], [INF, 1.0], 1.0, [0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("case", CONVENTIONS)
def test_conventions(case):
    f, x, value, derivative = CONVENTIONS[case]
    with np.errstate(all="ignore"):
        got, (adj,) = value_and_adjoints(f, np.array(x))
        close(np.append(got, adj), [value, *derivative], 1e-15)
        # Forward mode multiplies infinite partials by the zeros of a direction.
        if np.isfinite(derivative).all():
            forward = [f(vm.Dual(np.array(x), unit)).tan for unit in np.eye(len(x))]
            close(forward, derivative, 1e-15)


@pytest.mark.parametrize("f", [np.sum, np.prod, *CUMULATIVE[:2], *EXPONENTIAL], ids=NAME)
@pytest.mark.parametrize("settings", [{}, {"axis": 0}, {"axis": 1}], ids=str)
def test_empty(f, settings):
    both(partial(f, **settings), np.zeros((0, 3)))


@pytest.mark.parametrize("f", [np.mean, np.var, np.std], ids=NAME)
def test_moments_of_nothing_are_nan_with_numpys_warning(f):
    with pytest.warns(RuntimeWarning):
        assert np.isnan(f(vm.var(np.zeros(0))).val)


def test_an_adjoint_that_is_not_selected_is_not_touched():
    def f(x):
        return np.sum(np.where(np.isnan(x), 0.0, np.mean(x, where=~np.isnan(x)) + x))

    close(adjoint(f, np.array([1.0, NAN])), [2.0, 0.0], 1e-7)


# --- names and refusals ---


def test_log_sum_exp_of_two_operands():
    """In Stan log_sum_exp has a form with two operands. A single integer after the array is an
    axis, as in SciPy.
    """
    x, y = np.array([1.0, 2.0, -3.0]), np.array([0.5, 2.5, 1.0])
    assert vm.log_sum_exp(1.0, 2.0) == np.logaddexp(1.0, 2.0)
    expect_ad(vm.log_sum_exp, x, y)
    expect_ad(vm.log_sum_exp, 0.3, 1.4)
    expect_ad(lambda x: vm.log_sum_exp(x, 0.7), x)
    equal(vm.log_sum_exp([1.0, 2.0], [3.0, 4.0]), np.logaddexp([1.0, 2.0], [3.0, 4.0]))
    equal(vm.log_sum_exp(np.ones((2, 3)), 1), vm.logsumexp(np.ones((2, 3)), axis=1))


REFUSALS = [
    (lambda x: np.sum(x, dtype=int), TypeError, "dtype is int64, but must be float64!"),
    (lambda x: np.cumsum(x, dtype=np.float32), TypeError, "dtype is float32, but must be float64!"),
    (lambda x: np.sum(x, out=np.zeros(())), TypeError,
     "np.sum: a variable cannot be written into a plain array (out=, or an in-place operator"),
    (lambda x: np.sum(x, axis=3), ValueError, "axis 3 is out of bounds"),
    (lambda x: np.max(x[:0]), SHAPE,
     "a has shape (0, 4), but must not be empty along the reduced axes!"),
    (lambda x: np.min(x[:0], axis=0), SHAPE, "a has shape (0, 4), but must not be empty"),
    (lambda x: np.max(x, axis=5), ValueError, "axis 5 is out of bounds"),
    (lambda x: np.max(x, where=MASK), DOMAIN,
     "initial is None, but must be a number if where leaves out elements!"),
    (lambda x: np.var(x, ddof=1, correction=1), DOMAIN,
     "ddof is 1, but must be left out where correction is given!"),
    (lambda x: vm.logsumexp(x, x, keepdims=True), TypeError,
     "axis is a VarMat, but must be an integer or a tuple if b or keepdims is given!"),
    (lambda x: vm.sd(x[:0]), SHAPE, "x has shape (0, 4), but must not be empty!"),
    (lambda x: vm.variance(x[:0]), SHAPE, "x has shape (0, 4), but must not be empty!"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "match"), REFUSALS)
def test_refusals(call, error, match):
    with vm.nested() as tape:
        x = vm.var(M)
        before = len(tape)
        refuses_as(error, match, call, x)
        assert len(tape) == before


# Rows with infinities and nan, and sums in which one element dominates.
WILD = [
    *([0.0, -math.inf, 1.0], [-math.inf] * 3, [math.inf, 1.0, math.inf], [math.nan, 1.0, 2.0]),
    *([700.0, -700.0, 700.0], [1e-9, -60.0, -60.0]),
]


SHORT = [
    np.sum, np.mean, np.prod, np.std, np.linalg.norm, np.max, np.min, vm.logsumexp, vm.softmax,
    vm.log_softmax,
]  # fmt: skip


@pytest.mark.parametrize("f", SHORT, ids=NAME)
@pytest.mark.parametrize("shape", [(240, 3), (2, 120, 3), (240, 12), (240, 13), (240, 1)])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_short_rows(f, shape):
    """Many short rows are reduced by another algorithm than a few long ones."""
    x, k = np.random.default_rng(3).normal(size=shape), shape[-1]
    if k == 3 and f not in (np.prod, np.std, np.linalg.norm):
        x.reshape(-1, 3)[: len(WILD)] = WILD
    weights = 1.0 + 0.1 * np.arange(k) if f in (vm.softmax, vm.log_softmax) else 1.5

    def weighted(x):
        y = f(x, axis=-1)
        finite = np.isfinite(vm.value(y))
        return np.sum(np.where(finite, y, 0.0) * np.where(finite, weights, 0.0))

    parts = np.split(x.reshape(-1, k), 30)
    values = np.concatenate([f(vm.var(part), axis=1).val for part in parts])
    for axis in (-1, len(shape) - 1):
        result = f(vm.var(x), axis=axis).val
        close(result.reshape(values.shape), values, 1e-13, 1e-15)
        assert result.flags.c_contiguous
    if f in (np.sum, np.mean, np.max, np.min):
        equal(f(vm.var(x), axis=-1, keepdims=True).val[..., 0], result)
    expected = np.concatenate([vm.gradient(weighted, part) for part in parts]).reshape(shape)
    close(vm.gradient(weighted, x), expected, 1e-12, 1e-15)
    x, recorded = (
        np.sin(np.arange(x.size, dtype=float)).reshape(shape),
        vm.recorded(lambda x: np.sum(f(x, axis=-1) * weights)),
    )
    gradients = [vm.gradient(weighted, x), recorded(x)[1], recorded(x)[1]]
    assert all(gradient.flags.c_contiguous for gradient in gradients)
    close(gradients[1:], gradients[:1] * 2, 1e-13, 1e-15)


FILES = ("reductions", "stan_reductions")
NAMES = {
    "cumulative_sum": np.cumsum, "max": np.max, "mean": np.mean, "min": np.min, "prod": np.prod,
    "sum": np.sum,
}  # fmt: skip
THIRD, NAN = 1.0 / 3.0, math.nan
# Our value and gradient for entries with another convention. We treat nan as NumPy does, share the
# derivative among ties, take the smallest subgradient of a norm at the origin, and take the limit
# for sums of exponentials at infinity.
DIFFERENT = {
    "log_sum_exp#13": (math.inf, [0.0, 1.0, 0.0]), "max#5": (NAN, [0.0, 1.0, 0.0]),
    "max#11": (2.0, [THIRD, THIRD, THIRD]),        "min#4": (2.0, [THIRD, THIRD, THIRD]),
    "min#5": (NAN, [0.0, 1.0, 0.0]),               "min#7": (0.0, [0.5, 0.0, 0.5]),
    "min#11": (2.0, [THIRD, THIRD, THIRD]),        "min#12": (NAN, [0.0, 1.0, 0.0]),
    "norm2#2": (0.0, [0.0, 0.0]),
}  # fmt: skip
# The maximum of an empty array is -inf in Stan and an error in NumPy.
NOTHING = "max#10"


def named(entry):
    return NAMES.get(entry["function"]) or getattr(vm, entry["function"])


def selected(pick, throws=False):
    return [entry for file in FILES for entry in stan.entries(file, throws) if pick(entry.id)]


@pytest.mark.parametrize("entry", selected(lambda name: name not in {*DIFFERENT, NOTHING}))
def test_against_stan(entry):
    # At +-1000 Stan's gradient of log_sum_exp is off by 1.2e-14. Ours agrees with 50 digits.
    stan.check(named(entry), entry, rtol=1.3e-14)


@pytest.mark.parametrize("entry", selected(DIFFERENT.__contains__))
def test_conventions_other_than_stans(entry):
    value, gradient = DIFFERENT[entry["id"]]
    stan.check(
        named(entry),
        entry | {"output": value, "args": [[entry["args"][0][0], gradient]]},
        rtol=1e-15,
    )
    refuses(AssertionError, "disagree", lambda: stan.check(named(entry), entry, rtol=1e-3))


@pytest.mark.parametrize(
    "entry",
    selected(NOTHING.__eq__) + [each for file in FILES for each in stan.entries(file, throws=True)],
)
def test_nothing_to_reduce(entry):
    x = vm.var(np.empty(0))
    if entry["function"] == "mean":  # the mean of an empty array is nan, as in NumPy
        with np.errstate(invalid="ignore"):
            assert math.isnan(vm.value(np.mean(x)))
        return
    message = rf"{entry['function']}: . has shape \(0,\), but must not be empty"
    refuses(vm.ShapeError, message, lambda: named(entry)(x))
