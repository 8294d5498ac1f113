"""Reductions: closed forms, the ends of the range, Stan's values, conventions, and refusals."""

import inspect
import json
import math
from pathlib import Path

import numpy as np
import pytest
from functions.matrices import adjoint, value_and_adjoints
from functions.sums import CUMULATIVE, EXPONENTIAL, MASK, NAME, RNG, ZEROS, A, M, V, both, partial
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

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

floats = st.floats(-5.0, 5.0).map(lambda x: round(x, 3))


@st.composite
def reductions(draw):
    """Draw an array, axes to reduce, and weights for the result."""
    x = draw(
        arrays.arrays(
            float, arrays.array_shapes(min_dims=1, max_dims=3, max_side=3), elements=floats
        )
    )
    axis = draw(
        st.none() | arrays.valid_tuple_axes(x.ndim, min_size=1) | st.integers(-x.ndim, x.ndim - 1)
    )
    keepdims = draw(st.booleans())
    shape = np.sum(x, axis=axis, keepdims=keepdims).shape
    return x, axis, keepdims, RNG.normal(size=shape) if shape else float(RNG.normal())


def by_element(function):
    """Return the derivative of a weighted reduction, slice by slice. The partial derivatives of one
    slice are given by `function`.
    """

    def derivative(x, axis, weights):
        axes = tuple(range(x.ndim)) if axis is None else np.atleast_1d(axis) % x.ndim
        kept = [i for i in range(x.ndim) if i not in axes]
        slices = np.transpose(x, (*kept, *axes)).reshape(-1, math.prod(x.shape[i] for i in axes))
        rows = np.array([w * function(s) for s, w in zip(slices, np.ravel(weights), strict=True)])
        moved = rows.reshape([x.shape[i] for i in (*kept, *axes)])
        return np.transpose(moved, np.argsort((*kept, *axes)))

    return derivative


def products_of_others(s):
    return np.array([math.prod([*s[:i], *s[i + 1 :]]) for i in range(len(s))])


CLOSED = {
    "sum": (np.sum, np.sum, lambda s: np.ones(len(s))),
    "mean": (np.mean, np.mean, lambda s: np.full(len(s), 1 / len(s))),
    "prod": (np.prod, np.prod, products_of_others),
    "var": (np.var, np.var, lambda s: 2 * (s - s.mean()) / len(s)),
    "max": (np.max, np.max, lambda s: (s == s.max()) / np.count_nonzero(s == s.max())),
    "min": (np.min, np.min, lambda s: (s == s.min()) / np.count_nonzero(s == s.min())),
    "logsumexp": (
        vm.logsumexp,
        lambda x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
        lambda s: np.exp(s) / np.sum(np.exp(s)),
    ),
}


@pytest.mark.parametrize("name", CLOSED)
@settings(max_examples=25, deadline=None)
@given(case=reductions())
def test_closed_forms(name, case):
    f, plain, derivative = CLOSED[name]
    x, axis, keepdims, weights = case
    value, (adj,) = value_and_adjoints(
        lambda v: f(v, axis=axis, keepdims=keepdims), x, weights=weights
    )
    np.testing.assert_allclose(
        value, plain(x, axis=axis, keepdims=keepdims), rtol=1e-12, atol=1e-13
    )
    assert np.shape(value) == np.shape(weights)
    np.testing.assert_allclose(
        adj, by_element(derivative)(x, axis, weights), rtol=1e-12, atol=1e-12
    )


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
        np.testing.assert_allclose(adjoint(np.prod, x), others, rtol=1e-13)
        chain = [others_of_prefix(x, i) for i in range(len(x))]
        np.testing.assert_allclose(adjoint(np.cumprod, x), chain, rtol=1e-13)


def others_of_prefix(x, i):
    return sum(math.prod(np.delete(x[: k + 1], i)) for k in range(i, len(x)))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_norm2_at_all_scales(scale):
    value, (adj,) = value_and_adjoints(vm.norm2, np.array([3.0, -4.0]) * scale)
    np.testing.assert_allclose(value, 5 * scale, rtol=1e-15)
    np.testing.assert_allclose(adj, [0.6, -0.8], rtol=1e-15)


@pytest.mark.parametrize("f", [np.var, np.std, vm.variance, vm.sd], ids=NAME)
def test_spread_far_from_the_origin(f):
    x = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(adjoint(f, x + 1024.0), adjoint(f, x), rtol=1e-12)


# --- Stan's values ---

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "data" / "reductions.json").read_text(encoding="utf-8")
)
OF_STAN = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "min": np.min, "max": np.max}


def numbers(x):
    return np.array(x, dtype=float)


@pytest.mark.parametrize("entry", REFERENCE["entries"], ids=lambda entry: entry["id"])
def test_stan(entry):
    f = OF_STAN.get(entry["function"]) or getattr(vm, entry["function"])
    (argument,) = entry["args"]
    if "throws" in entry:
        with pytest.raises(vm.ShapeError, match="must not be empty!"):
            f(vm.var(numbers(argument["value"])))
        return
    weights = 1.0 if entry["weights"] is None else numbers(entry["weights"])
    with np.errstate(all="ignore"):
        value, (adj,) = value_and_adjoints(f, numbers(argument["value"]), weights=weights)
    np.testing.assert_allclose(value, numbers(entry["output"]), rtol=1e-13)
    np.testing.assert_allclose(adj, numbers(argument["grad"]), rtol=1e-12, atol=1e-15)


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
        np.testing.assert_allclose(got, value, rtol=1e-15)
        np.testing.assert_allclose(adj, derivative, rtol=1e-15)
        # Forward mode multiplies infinite partials by the zeros of a direction.
        if np.isfinite(derivative).all():
            forward = [f(vm.Dual(np.array(x), unit)).tan for unit in np.eye(len(x))]
            np.testing.assert_allclose(forward, derivative, rtol=1e-15)


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

    np.testing.assert_allclose(adjoint(f, np.array([1.0, NAN])), [2.0, 0.0])


def test_large_arrays():
    x = RNG.normal(size=(20, 1000))
    with vm.nested():
        v = vm.var(x)
        y = np.sum(v) + np.mean(v) + np.sum(np.sum(v, axis=0)) + vm.logsumexp(v)
        y.grad()
        np.testing.assert_allclose(v.adj, 2 + 1 / x.size + np.exp(x - vm.logsumexp(x)), rtol=1e-13)


# --- names and refusals ---


def test_cumulative_sum():
    assert vm.cumulative_sum(vm.var([1.0, 2.0])).val.tolist() == [1.0, 3.0]


def test_log_sum_exp_of_two_operands():
    """In Stan log_sum_exp has a form with two operands. A single integer after the array is an
    axis, as in SciPy.
    """
    x, y = np.array([1.0, 2.0, -3.0]), np.array([0.5, 2.5, 1.0])
    assert vm.log_sum_exp(1.0, 2.0) == np.logaddexp(1.0, 2.0)
    expect_ad(vm.log_sum_exp, x, y)
    expect_ad(vm.log_sum_exp, 0.3, 1.4)
    expect_ad(lambda x: vm.log_sum_exp(x, 0.7), x)
    np.testing.assert_array_equal(
        vm.log_sum_exp([1.0, 2.0], [3.0, 4.0]), np.logaddexp([1.0, 2.0], [3.0, 4.0])
    )
    np.testing.assert_array_equal(
        vm.log_sum_exp(np.ones((2, 3)), 1), vm.logsumexp(np.ones((2, 3)), axis=1)
    )


def refusal(call, error, match):
    return pytest.param(
        call, error, match, id=inspect.getsource(call).split(":", 1)[1].strip()[:40]
    )


REFUSALS = [
    refusal(lambda x: np.sum(x, dtype=int), TypeError, "sum: dtype is int64, but must be float64!"),
    refusal(lambda x: np.cumsum(x, dtype=np.float32), TypeError,
        "cumsum: dtype is float32, but must be float64!"),
    refusal(lambda x: np.sum(x, out=np.zeros(())), TypeError,
        "sum: a variable cannot be written into a plain array"),
    refusal(lambda x: np.sum(x, axis=3), ValueError, "axis 3 is out of bounds"),
    refusal(lambda x: np.max(x[:0]), vm.ShapeError,
        r"max: a has shape \(0, 4\), but must not be empty along the reduced axes!"),
    refusal(lambda x: np.min(x[:0], axis=0), vm.ShapeError,
        r"min: a has shape \(0, 4\), but must not be empty"),
    refusal(lambda x: np.max(x, axis=5), ValueError, "axis 5 is out of bounds"),
    refusal(lambda x: np.max(x, where=MASK), vm.DomainError,
        "max: initial is None, but must be a number where elements"),
    refusal(lambda x: np.var(x, ddof=1, correction=1), vm.DomainError,
        "var: ddof is 1, but must be left out where correction is"),
    refusal(lambda x: vm.logsumexp(x, x, keepdims=True), TypeError,
        r"logsumexp: axis is a VarMat, but must be an integer"),
    refusal(lambda x: vm.sd(x[:0]), vm.ShapeError,
        r"sd: x has shape \(0, 4\), but must not be empty!"),
    refusal(lambda x: vm.variance(x[:0]), vm.ShapeError,
        r"variance: x has shape \(0, 4\), but must not be empty!"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "match"), REFUSALS)
def test_refusals(call, error, match):
    with vm.nested() as tape:
        x = vm.var(M)
        before = len(tape)
        with pytest.raises(error, match="(?s)" + match):
            call(x)
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
        np.testing.assert_allclose(result.reshape(values.shape), values, rtol=1e-13, atol=1e-15)
        assert result.flags.c_contiguous
    if f in (np.sum, np.mean, np.max, np.min):
        np.testing.assert_array_equal(f(vm.var(x), axis=-1, keepdims=True).val[..., 0], result)
    expected = np.concatenate([vm.gradient(weighted, part) for part in parts]).reshape(shape)
    np.testing.assert_allclose(vm.gradient(weighted, x), expected, rtol=1e-12, atol=1e-15)
    x, recorded = (
        np.sin(np.arange(x.size, dtype=float)).reshape(shape),
        vm.recorded(lambda x: np.sum(f(x, axis=-1) * weights)),
    )
    gradients = [vm.gradient(weighted, x), recorded(x)[1], recorded(x)[1]]
    assert all(gradient.flags.c_contiguous for gradient in gradients)
    np.testing.assert_allclose(gradients[1:], gradients[:1] * 2, rtol=1e-13, atol=1e-15)
