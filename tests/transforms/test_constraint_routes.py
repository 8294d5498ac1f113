"""Constraint transforms: all routes to their derivatives, their Jacobians, the ways there and back,
and what they refuse.
"""

import numpy as np
import pytest
from comparing import close, equal, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from recordings import RUNNERS
from transforms.constraints import X2, X, gradient_of, inf, nan

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

X6 = np.array([-1.2, 0.4, 2.3, 0.1, -0.6, 0.9])
X62 = np.stack([X6, 0.5 * X6[::-1]])
LOW, HIGH = np.array([-1.0, -inf, 0.0]), np.array([1.5, 2.0, inf])
ONE, NONE, EMPTY, NOTHING = X[:1], np.empty(0), np.empty((0, 2)), np.empty((2, 0))

# Function -> its arguments. Those that are neither floats nor arrays of floats are sizes.
CONSTRAIN = [
    (vm.lb_constrain,
     [(X, 1.5), (X, 0.0), (0.4, -1.0), (X, LOW), (0.3, -inf), (X, -inf),
      (X2, np.array([[1.0], [2.0]])), (NONE, 1.0)]),
    (vm.ub_constrain, [(X, 1.5), (0.4, -1.0), (X, HIGH), (0.3, inf), (X2, X), (NONE, 1.0)]),
    (vm.lub_constrain,
     [(X, -1.0, 1.5), (0.4, -1.0, 2.0), (X, LOW, HIGH), (0.3, -inf, inf), (0.3, -inf, 2.0),
      (0.3, 1.0, inf), (X, -inf, HIGH), (X2, np.array([[1.0], [-inf]]), np.array([2.0, inf, 3.0])),
      (X2, np.array([[1.0], [2.0]]), 5.0), (NONE, 1.0, 2.0)]),
    (vm.offset_multiplier_constrain,
     [(X, 1.5, 2.0), (0.4, -1.0, 2.0), (X, X, np.exp(X)), (X2, 0.0, np.ones((2, 1))),
      (NONE, 1.0, 2.0), (EMPTY, 1.0, X[1:])]),
    *((f, [(X,), (0.3,), (X2,), (EMPTY,)]) for f in (vm.positive_constrain, vm.prob_constrain,
    vm.corr_constrain)),
    (vm.ordered_constrain, [(X,), (X2,), (NONE,), (NOTHING,), (EMPTY,), (ONE,)]),
    (vm.positive_ordered_constrain, [(X,), (X2,), (NONE,), (ONE,)]),
    (vm.simplex_constrain, [(X,), (X2,), (NONE,), (NOTHING,), (EMPTY,), (ONE,), (X2[None],)]),
    (vm.stochastic_column_constrain, [(X2,), (X2[None],)]),
    (vm.sum_to_zero_constrain, [(X,), (X2,), (NONE,), (NOTHING,), (ONE,)]),
    (vm.unit_vector_constrain, [(X,), (X2,), (ONE,), (EMPTY,)]),
    (vm.cholesky_corr_constrain,
     [(X6, 4), (X62, 4), (NONE, 0), (NONE, 1), (NOTHING, 1), (np.empty((0, 3)), 3)]),
    (vm.corr_matrix_constrain, [(X6, 4), (X62, 4), (NONE, 1)]),
    (vm.cov_matrix_constrain, [(X6, 3), (X62, 3), (NONE, 0)]),
    (vm.cholesky_factor_constrain,
     [(X6, 3), (X62, 3), (X62[:, :3], 2, 2), (np.append(X6, 0.3), 4, 2), (NONE, 3, 0)]),
]  # fmt: skip
FREE = [
    (vm.lb_free, [(X, -1.5), (X, LOW - 1.0), (0.3, -inf), (0.4, -1.0)]),
    (vm.ub_free, [(X, 3.5), (X, HIGH), (0.3, inf)]),
    (vm.lub_free,
     [(X, -1.5, 3.0), (X, LOW - 1.0, HIGH), (0.3, -inf, inf), (0.3, 0.0, inf), (0.3, -inf, 1.0)]),
    (vm.offset_multiplier_free, [(X, -1.5, 3.0)]),
    (vm.positive_free, [(np.exp(X),)]),
    (vm.prob_free, [(np.array([0.1, 0.7]),), (0.2,)]),
    (vm.corr_free, [(np.array([0.1, -0.7]),), (0.2,)]),
    (vm.ordered_free, [(np.array([-1.0, 0.5, 0.75]),), (NONE,), (ONE,)]),
    (vm.positive_ordered_free, [(np.array([1.0, 1.5, 4.0]),), (NONE,)]),
]  # fmt: skip


def cases(table):
    return [
        pytest.param(f, args, id=f"{f.__name__}-{i}")
        for f, each in table
        for i, args in enumerate(each)
    ]


@pytest.mark.parametrize(("f", "args"), cases(CONSTRAIN))
def test_all_routes(f, args):
    def g(*args):
        return f(*args, jacobian=True)

    expect_ad(g, *args)
    close(f(*args), g(*args)[0], 1e-15)
    if args is dict(CONSTRAIN)[f][0]:
        expect_ad(f, *args)
    # A scalar bound becomes a varmat when elements are selected from it, and so does the result.
    if f is not vm.lub_constrain or np.ndim(args[1]) == np.ndim(args[2]):
        expect_ad_matvar(g, *args)


@pytest.mark.parametrize(("f", "args"), cases(FREE))
def test_all_routes_back(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


# Each function goes there and back, which is the identity, so finite differences stay in the set.
WAYS = {
    "ordered": (vm.ordered_constrain, vm.ordered_free, 4, ()),
    "positive_ordered": (vm.positive_ordered_constrain, vm.positive_ordered_free, 4, ()),
    "simplex": (vm.simplex_constrain, vm.simplex_free, 4, ()),
    "stochastic_column": (
        lambda x, jacobian=False: vm.stochastic_column_constrain(np.reshape(x, (2, 2)),
         jacobian=jacobian),
        lambda y: np.reshape(vm.stochastic_column_free(y), -1), 4, (),
    ),
    "sum_to_zero": (vm.sum_to_zero_constrain, vm.sum_to_zero_free, 4, ()),
    "cholesky_corr": (vm.cholesky_corr_constrain, vm.cholesky_corr_free, 6, (4,)),
    "corr_matrix": (vm.corr_matrix_constrain, vm.corr_matrix_free, 6, (4,)),
    "cov_matrix": (vm.cov_matrix_constrain, vm.cov_matrix_free, 6, (3,)),
    "cholesky_factor": (vm.cholesky_factor_constrain, vm.cholesky_factor_free, 7, (4, 2)),
    "lb": (vm.lb_constrain, lambda y: vm.lb_free(y, 1.5), 3, (1.5,)),
    "ub": (vm.ub_constrain, lambda y: vm.ub_free(y, 1.5), 3, (1.5,)),
    "lub": (vm.lub_constrain, lambda y: vm.lub_free(y, -1.0, 2.0), 3, (-1.0, 2.0)),
    "partly bounded": (vm.lub_constrain, lambda y: vm.lub_free(y, LOW, HIGH), 3, (LOW, HIGH)),
    "offset_multiplier": (vm.offset_multiplier_constrain,
                          lambda y: vm.offset_multiplier_free(y, 1.0, X + 2.0), 3, (1.0, X + 2.0)),
    "positive": (vm.positive_constrain, vm.positive_free, 3, ()),
    "prob": (vm.prob_constrain, vm.prob_free, 3, ()),
    "corr": (vm.corr_constrain, vm.corr_free, 3, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_the_way_back_has_the_inverse_derivative(name):
    there, back, n, sizes = WAYS[name]
    x = 0.5 * np.cos(2.0 * np.arange(n))
    close(vm.jacobian(lambda x: back(there(x, *sizes)), x), np.eye(n), 1e-7, 1e-13)
    close(vm.hessian(lambda x: np.sum(back(there(x, *sizes))), x), np.zeros((n, n)), 1e-7, 1e-12)


@pytest.mark.parametrize("name", WAYS)
def test_all_routes_there_and_back(name):
    there, back, n, sizes = WAYS[name]
    expect_ad(lambda x: np.square(back(there(x, *sizes)) + 3.0), 0.5 * np.cos(2.0 * np.arange(n)))
    expect_ad_matvar(
        lambda x: np.square(back(there(x, *sizes)) + 3.0), 0.5 * np.cos(2.0 * np.arange(n))
    )


@pytest.mark.parametrize("name", WAYS)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_there_and_back(name, data):
    there, back, n, sizes = WAYS[name]
    x = data.draw(arrays(np.float64, n, elements=st.floats(-2.0, 2.0)))
    y = there(x, *sizes)
    again = back(y)
    # Differences of large elements lose digits.
    close(again, x, 1e-9, 1e-8)
    close(there(again, *sizes), y, 1e-12, 1e-13 * np.max(np.abs(y)))


def test_back_from_far_out():
    x = np.array([-700.0, -300.0, 300.0, 700.0])
    close(vm.lub_free(vm.lub_constrain(x, -1.0, 0.0)[2:], -1.0, 0.0), x[2:], 1e-14)
    close(vm.lub_free(vm.lub_constrain(x, 0.0, 3.0)[:2], 0.0, 3.0), x[:2], 1e-14)
    close(vm.simplex_free(vm.simplex_constrain(x[:2])), x[:2], 1e-14)
    close(vm.cholesky_corr_free(vm.cholesky_corr_constrain(x[1:2], 2)), x[1:2], 1e-14)


# --- Jacobians ---


def coordinates(name, y):
    """As many elements of the constrained value as are free."""
    if name in ("cholesky_corr", "corr_matrix"):
        return y[np.tril_indices(4, -1)]
    if name == "cov_matrix":
        return y[np.tril_indices(3)]
    if name == "cholesky_factor":
        return y[np.tril_indices(4, 0, 2)]
    if name == "simplex":
        return y[:-1]
    return np.reshape(y[:-1], -1) if name == "stochastic_column" else y


@pytest.mark.parametrize("name", [name for name in WAYS if name != "sum_to_zero"])
def test_log_jacobian_is_that_of_the_coordinates(name):
    there, _, n, sizes = WAYS[name]
    x = 0.7 * np.cos(2.0 * np.arange(n) + 1.0)
    _, log_jacobian = there(x, *sizes, jacobian=True)
    determinant = np.linalg.slogdet(vm.jacobian(lambda x: coordinates(name, there(x, *sizes)), x))
    assert abs(determinant.logabsdet - log_jacobian) < 1e-13 * max(1.0, abs(log_jacobian))
    if n == 3:  # elementwise: the sum of the logarithms of the derivatives
        assert abs(determinant.sign) == 1.0


STACKED = [
    "ordered", "positive_ordered", "simplex", "sum_to_zero", "cholesky_corr", "corr_matrix",
    "cov_matrix", "cholesky_factor",
]  # fmt: skip


@pytest.mark.parametrize("name", STACKED)
def test_a_stack_is_many_at_once(name):
    there, back, n, sizes = WAYS[name]
    x = np.cos(2.0 * np.arange(6 * n)).reshape(2, 3, n)
    y, log_jacobian = there(x, *sizes, jacobian=True)
    each = [there(item, *sizes, jacobian=True) for item in x.reshape(6, n)]
    close(y, np.reshape([item for item, _ in each], y.shape), 1e-14, 1e-15)
    close(log_jacobian, sum(item for _, item in each), 1e-14)
    close(back(y), x, 1e-11, 1e-12)


# --- far out ---


def test_nothing_is_nan_far_out():
    x = np.array([-700.0, 700.0, -750.0, 1e4, -1e4, 0.0])
    functions = [
        lambda x: vm.lub_constrain(x, 0.0, 1.0, jacobian=True),
        lambda x: vm.prob_constrain(x, jacobian=True),
        lambda x: vm.corr_constrain(x, jacobian=True),
        lambda x: vm.simplex_constrain(x, jacobian=True),
        lambda x: vm.cholesky_corr_constrain(x, 4, jacobian=True),
        lambda x: vm.corr_matrix_constrain(x, 4, jacobian=True),
    ]  # fmt: skip
    for f in functions:
        y, log_jacobian = f(x)
        assert np.isfinite(y).all()
        assert np.isfinite(log_jacobian)
        for part in (0, 1):
            assert np.isfinite(gradient_of(f, x, part)).all()
        assert np.isfinite(vm.hessian(lambda x, f=f: np.sum(f(x)[0]) + f(x)[1], x)).all()


def test_at_the_edge_of_the_set():
    assert (
        vm.lb_free(1.0, 1.0)
        == vm.ub_free(1.0, 1.0)
        == vm.lub_free(1.0, 1.0, 2.0)
        == vm.prob_free(0.0)
        == -inf
    )
    assert vm.lub_free(2.0, 1.0, 2.0) == vm.corr_free(1.0) == inf
    equal(vm.simplex_free([0.0, 1.0, 0.0]), [-inf, inf])


# --- refusals ---

DOMAIN, SHAPE = vm.DomainError, vm.ShapeError
REFUSED = [
    (vm.lb_constrain, (X, inf), DOMAIN, "lb_constrain: lb is inf, but must be less than inf!"),
    (vm.lb_constrain, (X, np.array([0.0, nan, 0.0])), DOMAIN,
     r"lb_constrain: lb\[1\] is nan, but must be less than inf!"),
    (vm.lb_constrain, (X, X2), SHAPE,
     r"lb_constrain: lb has shape \(2, 3\), but must broadcast to the shape \(3,\)!"),
    (vm.lb_constrain, (0.5, X), SHAPE,
     r"lb_constrain: lb has shape \(3,\), but must broadcast to the shape \(\)!"),
    (vm.lb_free, (X, 0.0), DOMAIN,
     r"lb_free: Lower bounded variable\[0\] is -1.2, but must be greater than or equal to 0.0!"),
    (vm.lb_free, (X, np.array([-2.0, 1.0, 0.0])), DOMAIN,
     r"variable\[1\] is 0.4, but must be greater than or equal to 1.0!"),
    (vm.lb_free, (nan, 0.0), DOMAIN,
     "lb_free: Lower bounded variable is nan, but must be greater than or equal to 0.0!"),
    (vm.ub_constrain, (X, -inf), DOMAIN,
     "ub_constrain: ub is -inf, but must be greater than -inf!"),
    (vm.ub_free, (2.0, 1.5), DOMAIN,
     "ub_free: Upper bounded variable is 2.0, but must be less than or equal to 1.5!"),
    (vm.lub_constrain, (X, 2.0, 1.0), DOMAIN,
     "lub_constrain: lb is 2.0, but must be less than ub, which is 1.0!"),
    (vm.lub_constrain, (X, X, X), DOMAIN,
     r"lub_constrain: lb\[0\] is -1.2, but must be less than ub, which is -1.2!"),
    (vm.lub_constrain, (X, 0.0, nan), DOMAIN,
     "lub_constrain: ub is nan, but must be greater than -inf!"),
    (vm.lub_free, (2.0, 0.0, 1.5), DOMAIN,
     r"lub_free: Bounded variable is 2.0, but must be in the interval \[0.0, 1.5\]!"),
    (vm.lub_free, (2.0, 1.5, 0.0), DOMAIN,
     "lub_free: lb is 1.5, but must be less than ub, which is 0.0!"),
    (vm.offset_multiplier_constrain, (X, inf, 1.0), DOMAIN, "offset is inf, but must be finite!"),
    (vm.offset_multiplier_constrain, (X, 0.0, -X), DOMAIN,
     r"multiplier\[1\] is -0.4, but must be positive finite!"),
    (vm.offset_multiplier_free, (inf, 0.0, 1.0), DOMAIN,
     "Affinely transformed variable is inf, but must be finite!"),
    (vm.positive_free, (0.0,), DOMAIN,
     "positive_free: Positive variable is 0.0, but must be positive!"),
    (vm.prob_free, (1.5,), DOMAIN,
     r"prob_free: Probability variable is 1.5, but must be in the interval \[0.0, 1.0\]!"),
    (vm.corr_free, (-1.5,), DOMAIN,
     r"corr_free: Correlation variable is -1.5, but must be in the interval \[-1, 1\]!"),
    (vm.ordered_constrain, (1.0,), SHAPE,
     r"ordered_constrain: x has shape \(\), but must be a vector or a stack of them!"),
    *((f, (1.0,), SHAPE, rf"{f.__name__}: \w has shape \(\), but must be a vector") for f in (
        vm.ordered_free, vm.positive_ordered_constrain, vm.positive_ordered_free, vm.simplex_free,
         vm.sum_to_zero_free,
        vm.unit_vector_constrain, vm.unit_vector_free,
    )),
    (vm.ordered_free, (-X2,), DOMAIN,
     r"Ordered variable\[0, 2\] is -0.5, but must be greater than the element before it!"),
    (vm.positive_ordered_free, (X,), DOMAIN,
     r"\[0\] is -1.2, but must be positive and greater than the element before it!"),
    (vm.simplex_constrain, (1.0,), SHAPE,
     r"simplex_constrain: x has shape \(\), but must be a vector"),
    (vm.simplex_free, (NONE,), SHAPE,
     r"simplex_free: y has shape \(0,\), but must be a vector of size 1 or more!"),
    (vm.simplex_free, ([1.5, -0.5],), DOMAIN,
     r"simplex_free: Simplex variable\[1\] is -0.5, but must be nonnegative!"),
    (vm.simplex_free, ([0.75, 0.5],), DOMAIN,
     r"simplex_free: sum\(Simplex variable\) is 1.25, but must be 1 to within 1e-08!"),
    (vm.stochastic_column_constrain, (X,), SHAPE,
     r"^stochastic_column_constrain: x has shape .*, but must be a matrix or"),
    (vm.stochastic_column_free, (X,), SHAPE,
     r"^stochastic_column_free: y has shape .*, but must be a matrix with 1"),
    (vm.stochastic_column_free, (EMPTY,), SHAPE,
     r"y has shape \(0, 2\), but must be a matrix with 1 or more rows!"),
    (vm.stochastic_column_free, ([[0.5, -0.5], [0.5, 1.5]],), DOMAIN,
     r"^stochastic_column_free: .*\[0, 1\] is -0.5, but"),
    (vm.stochastic_column_free, ([[0.5, 0.5], [0.5, 0.25]],), DOMAIN,
     r"sum\(column of Stochastic .*\)\[1\] is 0.75, but must be 1"),
    (vm.sum_to_zero_free, (NONE,), SHAPE,
     r"sum_to_zero_free: y has shape \(0,\), but must be a vector of size 1 or more!"),
    (vm.sum_to_zero_free, ([1.0, 0.5],), DOMAIN,
     r"sum\(Zero sum variable\) is 1.5, but must be 0 to within 1e-08!"),
    (vm.sum_to_zero_constrain, (1.0,), SHAPE,
     r"sum_to_zero_constrain: x has shape \(\), but must be a vector"),
    (vm.unit_vector_constrain, (np.zeros((2, 3)),), DOMAIN,
     r"unit_vector_constrain: norm\(x\)\[0\] is 0.0, but must be positive!"),
    (vm.unit_vector_constrain, (NONE,), SHAPE,
     "unit_vector_constrain: .* a vector of size 1 or more!"),
    (vm.unit_vector_free, ([1.0, 0.5],), DOMAIN,
     r"sum\(Unit vector variable\*\*2\) is 1.25, but must be 1 to within 1e-08!"),
    (vm.cholesky_corr_constrain, (X, 4), SHAPE,
     r"x has shape \(3,\), but must be a vector of size 6!"),
    (vm.cholesky_corr_constrain, (X, 2.5), DOMAIN,
     "cholesky_corr_constrain: K is 2.5, but must be a nonnegative integer!"),
    (vm.cholesky_corr_free, (X2,), SHAPE,
     r"cholesky_corr_free: y has shape \(2, 3\), but must be a square matrix"),
    (vm.cholesky_corr_free, (np.ones((2, 2)),), DOMAIN,
     r"correlation matrix\[0, 1\] is 1.0, but must be 0 above the diagonal!"),
    (vm.cholesky_corr_free, (np.diag([1.0, -1.0]),), DOMAIN,
     r"diagonal of .*\[1\] is -1.0, but must be positive!"),
    (vm.cholesky_corr_free, (np.tril(np.ones((2, 2))),), DOMAIN,
     r"\[1\] is 2.0, but must be 1 to within 1e-08!"),
    (vm.corr_matrix_constrain, (X, 4), SHAPE,
     r"corr_matrix_constrain: x has shape \(3,\), but must be a vector of size 6!"),
    (vm.corr_matrix_free, (np.diag([1.0, 2.0]),), DOMAIN,
     r"diagonal of Correlation matrix variable\[1\] is 2.0, but must be 1"),
    (vm.corr_matrix_free, (np.tril(np.ones((2, 2))),), DOMAIN,
    (r"corr_matrix_free: Correlation matrix variable\[0, 1\] is 0.0, but must be 1.0, as "
    r"Correlation matrix variable\[1, 0\] is")),
    (vm.corr_matrix_free, (np.array([[1.0, 2.0], [2.0, 1.0]]),), DOMAIN,
    ("corr_matrix_free: Correlation matrix variable has the eigenvalue -1, but must be positive "
    "definite!")),
    (vm.cov_matrix_constrain, (X, 3), SHAPE,
     r"cov_matrix_constrain: x has shape \(3,\), but must be a vector of size 6!"),
    (vm.cov_matrix_free, (-np.eye(2),), DOMAIN,
    ("cov_matrix_free: Covariance matrix variable has the eigenvalue -1, but must be positive "
    "definite!")),
    (vm.cov_matrix_free, (np.array([[2.0, np.nan], [np.nan, 1.0]]),), DOMAIN,
     r"cov_matrix_free: Covariance matrix variable\[0, 1\] is nan, but must be finite!"),
    (vm.cov_matrix_free, (X2,), SHAPE,
     r"cov_matrix_free: y has shape \(2, 3\), but must be a square matrix"),
    (vm.cholesky_factor_constrain, (X, 1, 2), DOMAIN,
     "cholesky_factor_constrain: M is 1, but must be at least N, which is 2!"),
    (vm.cholesky_factor_constrain, (X, 3), SHAPE,
     r"x has shape \(3,\), but must be a vector of size 6!"),
    (vm.cholesky_factor_free, (X2,), SHAPE,
     r"y has shape \(2, 3\), but must have at least as many rows as columns!"),
    (vm.cholesky_factor_free, (np.diag([1.0, 0.0]),), DOMAIN,
     r"variable\[1\] is 0.0, but must be positive!"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("f", "args", "error", "text"),
    REFUSED,
    ids=[f"{f.__name__}-{i}" for i, (f, *_) in enumerate(REFUSED)],
)
def test_refusals(f, args, error, text):
    for wrap in (lambda x: x, vm.var):
        refuses(error, text, f, wrap(args[0]), *args[1:])
    vm.recover_memory()


def test_nan_goes_through():
    x = np.array([nan, 0.3, 0.2])
    for f in (
        vm.prob_constrain, vm.ordered_constrain, vm.simplex_constrain, vm.unit_vector_constrain,
        vm.sum_to_zero_constrain,
    ):  # fmt: skip
        assert np.isnan(f(x)).any()
    assert np.isnan(vm.cov_matrix_constrain(x, 2)).any()
    assert np.isnan(vm.cholesky_corr_constrain(x, 3)).any()


def test_array_likes():
    equal(vm.lb_constrain([0, 0], [1, 2]), [2.0, 3.0])
    equal(vm.offset_multiplier_constrain([0, 1], 1, 2), [1.0, 3.0])
    assert type(vm.lub_constrain(0, -1, 1)) is float
    x = vm.var(2.0)
    close(vm.value(vm.ordered_constrain([x, 0.0])), [2.0, 3.0], 1e-7)
    vm.recover_memory()


OUTPUTS = {
    "cholesky_corr": (lambda x: vm.cholesky_corr_constrain(x, 3, jacobian=True), 3),
    "corr_matrix": (lambda x: vm.corr_matrix_constrain(x, 3, jacobian=True), 3),
    "cov_matrix": (lambda x: vm.cov_matrix_constrain(x, 2, jacobian=True), 3),
    "cholesky_factor": (lambda x: vm.cholesky_factor_constrain(x, 2, 2, jacobian=True), 3),
    "simplex": (lambda x: vm.simplex_constrain(x, jacobian=True), 3),
    "ordered": (lambda x: vm.ordered_constrain(x, jacobian=True), 3),
    "positive_ordered": (lambda x: vm.positive_ordered_constrain(x, jacobian=True), 3),
    "unit_vector": (lambda x: vm.unit_vector_constrain(x, jacobian=True), 3),
    "lub": (lambda x: vm.lub_constrain(x, 1.0, 2.0, jacobian=True), 3),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_value_and_log_jacobian_each_alone(name):
    constrain, size = OUTPUTS[name]
    x = np.linspace(0.1, 0.4, size)
    weights = 1.0 + np.arange(np.size(constrain(x)[0]))

    def weighted(x, a, b):
        y, log_jacobian = constrain(x)
        return a * np.sum(weights * np.ravel(y)) + b * log_jacobian

    of_value = vm.gradient(lambda x: np.sum(weights * np.ravel(constrain(x)[0])), x)
    of_log_jacobian = vm.gradient(lambda x: constrain(x)[1], x)
    close(of_value, vm.gradient(lambda x: weighted(x, 1.0, 0.0), x), 1e-13, 1e-15)
    close(of_log_jacobian, vm.gradient(lambda x: weighted(x, 0.0, 1.0), x), 1e-13, 1e-15)


_CORRELATIONS = np.array([[1.0, 0.3, 0.2], [0.3, 1.0, 0.1], [0.2, 0.1, 1.0]])
_FACTOR = np.linalg.cholesky(_CORRELATIONS)
_SIMPLEX = np.array([0.2, 0.3, 0.5])
_ASCENDING = np.array([1.0, 2.0, 3.5])
_SUM_TO_ZERO = np.array([[1.0, -2.0, 1.0], [-1.0, 0.5, 0.5], [0.0, 1.5, -1.5]])
# Name -> arguments, the first of which is a variable, and a first argument that is refused.
BACK = {
    "corr_free": ((np.array([0.3]),), np.array([1.3])),
    "identity_free": ((_ASCENDING,), None),
    "lb_free": ((_ASCENDING, 0.5), _ASCENDING - 1.0),
    "lub_free": ((_SIMPLEX, 0.0, 1.0), -_SIMPLEX),
    "offset_multiplier_free": ((_ASCENDING, 1.0, 2.0), _ASCENDING * np.inf),
    "positive_free": ((_ASCENDING,), -_ASCENDING),
    "prob_free": ((_SIMPLEX,), 3.0 * _SIMPLEX),
    "ub_free": ((_ASCENDING, 9.0), 9.0 * _ASCENDING),
    "cholesky_corr_free": ((_FACTOR,), 2.0 * _FACTOR),
    "cholesky_factor_free": ((_FACTOR,), -_FACTOR),
    "corr_matrix_free": ((_CORRELATIONS,), 2.0 * _CORRELATIONS),
    "cov_matrix_free": ((_CORRELATIONS,), -_CORRELATIONS),
    "ordered_free": ((_ASCENDING,), _ASCENDING[::-1].copy()),
    "positive_ordered_free": ((_ASCENDING,), -_ASCENDING),
    "simplex_free": ((_SIMPLEX,), 2.0 * _SIMPLEX),
    "stochastic_column_free": ((np.stack([_SIMPLEX, _SIMPLEX[::-1]], axis=1),), np.ones((3, 2))),
    "stochastic_row_free": ((np.stack([_SIMPLEX, _SIMPLEX[::-1]]),), np.ones((2, 3))),
    "sum_to_zero_free": ((_SUM_TO_ZERO[0],), _ASCENDING),
    "sum_to_zero_matrix_free": ((_SUM_TO_ZERO,), np.ones((3, 3))),
    "unit_vector_free": ((np.array([0.6, 0.8]),), np.ones(2)),
}


def test_every_way_back_is_there():
    assert set(BACK) == {name for name in vm.__all__ if name.endswith("_free")}


@pytest.mark.parametrize("name", BACK)
def test_the_way_back_is_recorded_with_its_checks(name):
    (y, *bounds), refused = BACK[name]
    f = getattr(vm, name)
    weights = np.arange(1.0, 1.0 + np.size(f(y, *bounds))).reshape(np.shape(f(y, *bounds)))

    def weighted(y):
        return np.sum(weights * f(y, *bounds))

    for runner in RUNNERS:
        recorded = vm.recorded(weighted, runner=runner)
        close(recorded(y), vm.value_and_grad(weighted)(y), 1e-13, 1e-14)
        if refused is not None:
            with pytest.raises(vm.DomainError) as eager:
                weighted(refused)
            with pytest.raises(vm.DomainError) as later:
                recorded(refused)
            assert str(eager.value) == str(later.value)
            assert str(eager.value).startswith(name)


PARTS = {
    "cholesky_corr_constrain": (np.arange(3.0) / 10.0, 3),
    "cholesky_factor_constrain": (np.arange(6.0) / 10.0, 3),
    "corr_matrix_constrain": (np.arange(3.0) / 10.0, 3),
    "cov_matrix_constrain": (np.arange(6.0) / 10.0, 3),
    "lb_constrain": (np.arange(3.0) / 10.0, 0.5),
    "lub_constrain": (np.arange(3.0) / 10.0, 0.5, 2.0),
    "ordered_constrain": (np.arange(3.0) / 10.0,),
    "positive_ordered_constrain": (np.arange(3.0) / 10.0,),
    "simplex_constrain": (np.arange(3.0) / 10.0,),
    "stochastic_column_constrain": (np.arange(6.0).reshape(2, 3) / 10.0,),
    "unit_vector_constrain": (np.arange(1.0, 4.0) / 10.0,),
}


@pytest.mark.parametrize("part", [0, 1], ids=["value", "jacobian"])
@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_the_result_alone_is_recorded_without_calls_of_python(name, part):
    """A parameter that only its declaration mentions, as in programs with optional parts."""
    x, *others = PARTS[name]

    def f(x):
        return np.sum(getattr(vm, name)(x, *others, jacobian=True)[part])

    recorded = vm.recorded(f, runner="numpy")
    value, gradient = vm.value_and_grad(f)(x)
    np.testing.assert_allclose(recorded(x)[0], value, 1e-13)
    np.testing.assert_allclose(recorded(x)[1], gradient, 1e-12, 1e-14)
    assert all(step.kernel.is_native for step in recorded.program.steps)


@pytest.mark.parametrize(("shape", "rows"), [((0, 3), 3), ((2, 0), 1), ((0,), 1), ((0,), 0)])
def test_no_correlation_matrices_are_recorded_without_calls_of_python(shape, rows):
    def f(x):
        factors, jacobian = vm.cholesky_corr_constrain(
            np.reshape(x[1:], shape), rows, jacobian=True
        )
        return np.sum(factors) + jacobian + x[0]

    recorded = vm.recorded(f, runner="numpy")
    value, gradient = recorded(np.array([0.5]))
    assert value == 0.5 + np.prod(shape[:-1]) * (rows == 1)
    np.testing.assert_array_equal(gradient, [1.0])
    assert all(step.kernel.is_native for step in recorded.program.steps)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_nothing_with_sum_zero_is_recorded_without_calls_of_python(shape):
    def f(x):
        return np.sum(vm.sum_to_zero_constrain(np.reshape(x[1:], shape))) + x[0]

    recorded = vm.recorded(f, runner="numpy")
    value, gradient = recorded(np.array([0.5]))
    assert value == 0.5
    np.testing.assert_array_equal(gradient, [1.0])
    assert all(step.kernel.is_native for step in recorded.program.steps)
