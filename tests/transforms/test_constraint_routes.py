"""Constraint transforms: all routes to their derivatives, their Jacobians, the ways there and back,
and what they refuse.
"""

from functools import partial

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses_as
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


def of_square(x, jacobian=False):
    return vm.stochastic_column_constrain(np.reshape(x, (2, 2)), jacobian=jacobian)


# Each function goes there and back, which is the identity, so finite differences stay in the set.
WAYS = {
    "ordered": (vm.ordered_constrain, vm.ordered_free, 4, ()),
    "positive_ordered": (vm.positive_ordered_constrain, vm.positive_ordered_free, 4, ()),
    "simplex": (vm.simplex_constrain, vm.simplex_free, 4, ()),
    "stochastic_column": (of_square, lambda y: np.reshape(vm.stochastic_column_free(y), -1), 4, ()),
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
def test_all_routes_there_and_back(name):
    there, back, n, sizes = WAYS[name]
    for expect in (expect_ad, expect_ad_matvar):
        expect(lambda x: np.square(back(there(x, *sizes)) + 3.0), 0.5 * np.cos(2.0 * np.arange(n)))


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
        partial(vm.lub_constrain, lb=0.0, ub=1.0, jacobian=True),
        *(partial(f, jacobian=True)
          for f in (vm.prob_constrain, vm.corr_constrain, vm.simplex_constrain)),
        *(partial(f, K=4, jacobian=True)
          for f in (vm.cholesky_corr_constrain, vm.corr_matrix_constrain)),
    ]  # fmt: skip
    for f in functions:
        y, log_jacobian = f(x)
        assert np.isfinite(y).all()
        assert np.isfinite(log_jacobian)
        for part in (0, 1):
            assert np.isfinite(gradient_of(f, x, part)).all()
        assert np.isfinite(vm.hessian(lambda x, f=f: np.sum(f(x)[0]) + f(x)[1], x)).all()


def test_at_the_edge_of_the_set():
    assert vm.lb_free(1.0, 1.0) == vm.ub_free(1.0, 1.0) == vm.prob_free(0.0) == -inf
    assert vm.lub_free(1.0, 1.0, 2.0) == -inf
    assert vm.lub_free(2.0, 1.0, 2.0) == vm.corr_free(1.0) == inf
    equal(vm.simplex_free([0.0, 1.0, 0.0]), [-inf, inf])


# --- refusals ---

REFUSED = [
    (vm.lb_constrain, (X, inf), DOMAIN, "lb is inf, but must be less than inf!"),
    (vm.lb_constrain, (X, np.array([0.0, nan, 0.0])), DOMAIN,
     "lb[1] is nan, but must be less than inf!"),
    (vm.lb_constrain, (X, X2), SHAPE, "lb has shape (2, 3), but must broadcast to the shape (3,)!"),
    (vm.lb_constrain, (0.5, X), SHAPE, "lb has shape (3,), but must broadcast to the shape ()!"),
    (vm.lb_free, (X, 0.0), DOMAIN,
     "Lower bounded variable[0] is -1.2, but must be greater than or equal to 0.0!"),
    (vm.lb_free, (nan, 0.0), DOMAIN,
     "Lower bounded variable is nan, but must be greater than or equal to 0.0!"),
    (vm.ub_constrain, (X, -inf), DOMAIN, "ub is -inf, but must be greater than -inf!"),
    (vm.ub_free, (2.0, 1.5), DOMAIN,
     "Upper bounded variable is 2.0, but must be less than or equal to 1.5!"),
    (vm.lub_constrain, (X, 2.0, 1.0), DOMAIN, "lb is 2.0, but must be less than ub, which is 1.0!"),
    (vm.lub_constrain, (X, 0.0, nan), DOMAIN, "ub is nan, but must be greater than -inf!"),
    (vm.lub_free, (2.0, 0.0, 1.5), DOMAIN,
     "Bounded variable is 2.0, but must be in the interval [0.0, 1.5]!"),
    (vm.lub_free, (2.0, 1.5, 0.0), DOMAIN, "lb is 1.5, but must be less than ub, which is 0.0!"),
    (vm.offset_multiplier_constrain, (X, inf, 1.0), DOMAIN, "offset is inf, but must be finite!"),
    (vm.offset_multiplier_constrain, (X, 0.0, -X), DOMAIN,
     "multiplier[1] is -0.4, but must be positive finite!"),
    (vm.offset_multiplier_free, (inf, 0.0, 1.0), DOMAIN,
     "Affinely transformed variable is inf, but must be finite!"),
    (vm.positive_free, (0.0,), DOMAIN, "Positive variable is 0.0, but must be positive!"),
    (vm.prob_free, (1.5,), DOMAIN,
     "Probability variable is 1.5, but must be in the interval [0.0, 1.0]!"),
    (vm.corr_free, (-1.5,), DOMAIN,
     "Correlation variable is -1.5, but must be in the interval [-1, 1]!"),
    *((f, (1.0,), SHAPE, f"{letter} has shape (), but must be a vector") for letter, f in (
        ("x", vm.ordered_constrain), ("x", vm.positive_ordered_constrain),
        ("x", vm.simplex_constrain), ("x", vm.sum_to_zero_constrain),
        ("x", vm.unit_vector_constrain), ("y", vm.ordered_free),
        ("y", vm.positive_ordered_free), ("y", vm.simplex_free), ("y", vm.sum_to_zero_free),
        ("y", vm.unit_vector_free),
    )),
    *((f, (NONE,), SHAPE, f"{letter} has shape (0,), but must be a vector of size 1 or more!")
      for letter, f in (("y", vm.simplex_free), ("y", vm.sum_to_zero_free),
                        ("x", vm.unit_vector_constrain))),
    *((f, (X, size), SHAPE, "x has shape (3,), but must be a vector of size 6!") for size, f in (
        (4, vm.cholesky_corr_constrain), (4, vm.corr_matrix_constrain),
        (3, vm.cov_matrix_constrain), (3, vm.cholesky_factor_constrain),
    )),
    *((f, (X2,), SHAPE, "y has shape (2, 3), but must be a square matrix")
      for f in (vm.cholesky_corr_free, vm.cov_matrix_free)),
    *((f, (np.array([[1.0, 2.0], [2.0, 1.0]]),), DOMAIN,
       f"{kind} matrix variable has the eigenvalue -1, but must be positive definite!")
      for kind, f in (("Correlation", vm.corr_matrix_free), ("Covariance", vm.cov_matrix_free))),
    (vm.ordered_free, (-X2,), DOMAIN,
     "Ordered variable[0, 2] is -0.5, but must be greater than the element before it!"),
    (vm.positive_ordered_free, (X,), DOMAIN,
     ("Positive ordered variable[0] is -1.2, but must be positive and greater than the "
     "element before it!")),
    (vm.simplex_free, ([1.5, -0.5],), DOMAIN,
     "Simplex variable[1] is -0.5, but must be nonnegative!"),
    (vm.simplex_free, ([0.75, 0.5],), DOMAIN,
     "sum(Simplex variable) is 1.25, but must be 1 to within 1e-08!"),
    (vm.stochastic_column_constrain, (X,), SHAPE, "x has shape (3,), but must be a matrix or"),
    (vm.stochastic_column_free, (X,), SHAPE, "y has shape (3,), but must be a matrix with 1"),
    (vm.stochastic_column_free, (EMPTY,), SHAPE,
     "y has shape (0, 2), but must be a matrix with 1 or more rows!"),
    (vm.stochastic_column_free, ([[0.5, -0.5], [0.5, 1.5]],), DOMAIN,
     "Stochastic matrix variable[0, 1] is -0.5, but must be nonnegative!"),
    (vm.stochastic_column_free, ([[0.5, 0.5], [0.5, 0.25]],), DOMAIN,
     "sum(column of Stochastic matrix variable)[1] is 0.75, but must be 1 to within 1e-08!"),
    (vm.sum_to_zero_free, ([1.0, 0.5],), DOMAIN,
     "sum(Zero sum variable) is 1.5, but must be 0 to within 1e-08!"),
    (vm.unit_vector_constrain, (np.zeros((2, 3)),), DOMAIN,
     "norm(x)[0] is 0.0, but must be positive!"),
    (vm.unit_vector_free, ([1.0, 0.5],), DOMAIN,
     "sum(Unit vector variable**2) is 1.25, but must be 1 to within 1e-08!"),
    (vm.cholesky_corr_constrain, (X, 2.5), DOMAIN, "K is 2.5, but must be a nonnegative integer!"),
    (vm.cholesky_corr_free, (np.ones((2, 2)),), DOMAIN,
     "Cholesky factor of a correlation matrix[0, 1] is 1.0, but must be 0 above the diagonal!"),
    (vm.cholesky_corr_free, (np.diag([1.0, -1.0]),), DOMAIN,
     "diagonal of Cholesky factor of a correlation matrix[1] is -1.0, but must be positive!"),
    (vm.cholesky_corr_free, (np.tril(np.ones((2, 2))),), DOMAIN,
     ("sum(row of Cholesky factor of a correlation matrix**2)[1] is 2.0, but must be 1 to "
     "within 1e-08!")),
    (vm.corr_matrix_free, (np.diag([1.0, 2.0]),), DOMAIN,
     "diagonal of Correlation matrix variable[1] is 2.0, but must be 1 to within 1e-08!"),
    (vm.corr_matrix_free, (np.tril(np.ones((2, 2))),), DOMAIN,
     ("Correlation matrix variable[0, 1] is 0.0, but must be 1.0, as Correlation matrix "
     "variable[1, 0] is")),
    (vm.cov_matrix_free, (np.array([[2.0, np.nan], [np.nan, 1.0]]),), DOMAIN,
     "Covariance matrix variable[0, 1] is nan, but must be finite!"),
    (vm.cholesky_factor_constrain, (X, 1, 2), DOMAIN,
     "M is 1, but must be at least N, which is 2!"),
    (vm.cholesky_factor_free, (X2,), SHAPE,
     "y has shape (2, 3), but must have at least as many rows as columns!"),
    (vm.cholesky_factor_free, (np.diag([1.0, 0.0]),), DOMAIN,
     "diagonal of Cholesky factor variable[1] is 0.0, but must be positive!"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "error", "text"), REFUSED)
def test_refusals(f, args, error, text):
    for wrap in (lambda x: x, vm.var):
        refuses_as(error, text, f, wrap(args[0]), *args[1:])
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


_CORRELATIONS = np.array([[1.0, 0.3, 0.2], [0.3, 1.0, 0.1], [0.2, 0.1, 1.0]])
_FACTOR = np.linalg.cholesky(_CORRELATIONS)
_SIMPLEX = np.array([0.2, 0.3, 0.5])
_ASCENDING = np.array([1.0, 2.0, 3.5])
_SUM_TO_ZERO = np.array([[1.0, -2.0, 1.0], [-1.0, 0.5, 0.5], [0.0, 1.5, -1.5]])
# Name -> arguments, the first of which is a variable, and a first argument that is refused.
BACK = {
    "corr_free": ((np.array([0.3]),), np.array([1.3])), "identity_free": ((_ASCENDING,), None),
    "lb_free": ((_ASCENDING, 0.5), _ASCENDING - 1.0), "lub_free": ((_SIMPLEX, 0.0, 1.0), -_SIMPLEX),
    "offset_multiplier_free": ((_ASCENDING, 1.0, 2.0), _ASCENDING * np.inf),
    "positive_free": ((_ASCENDING,), -_ASCENDING), "prob_free": ((_SIMPLEX,), 3.0 * _SIMPLEX),
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
}  # fmt: skip


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


THREE, SIX = np.arange(3.0) / 10.0, np.arange(6.0) / 10.0
PARTS = {
    "cholesky_corr_constrain": (THREE, 3), "cholesky_factor_constrain": (SIX, 3),
    "corr_matrix_constrain": (THREE, 3),   "cov_matrix_constrain": (SIX, 3),
    "lb_constrain": (THREE, 0.5),          "lub_constrain": (THREE, 0.5, 2.0),
    "ordered_constrain": (THREE,),         "positive_ordered_constrain": (THREE,),
    "simplex_constrain": (THREE,),         "stochastic_column_constrain": (SIX.reshape(2, 3),),
    "unit_vector_constrain": (THREE + 0.1,),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_each_part_of_the_result_alone(name):
    """A parameter may be used by its value alone, or only by its Jacobian."""
    (x, *others), f = PARTS[name], getattr(vm, name)
    weights = 1.0 + np.arange(np.size(f(x, *others)))

    def value(x):
        return np.sum(weights * np.ravel(f(x, *others, jacobian=True)[0]))

    def log_jacobian(x):
        return f(x, *others, jacobian=True)[1]

    parts = [vm.gradient(part, x) for part in (value, log_jacobian)]
    close(
        parts[0], vm.gradient(lambda x: np.sum(weights * np.ravel(f(x, *others))), x), 1e-13, 1e-15
    )
    close(sum(parts), vm.gradient(lambda x: value(x) + log_jacobian(x), x), 1e-13, 1e-15)
    for part, slope in zip((value, log_jacobian), parts, strict=True):
        recorded = vm.recorded(part, runner="numpy")
        close(recorded(x), (part(x), slope), 1e-12, 1e-14)
        assert all(step.kernel.is_native for step in recorded.program.steps)


@pytest.mark.parametrize(("f", "shape", "log_jacobian"), [
    *((partial(vm.cholesky_corr_constrain, K=rows), shape, np.prod(shape[:-1]) * (rows == 1))
      for shape, rows in (((0, 3), 3), ((2, 0), 1), ((0,), 1), ((0,), 0))),
    *((vm.sum_to_zero_constrain, shape, 0.0) for shape in ((0,), (2, 0), (0, 3))),
])  # fmt: skip
def test_nothing_is_recorded_without_calls_of_python(f, shape, log_jacobian):
    def total(x):
        value, jacobian = f(np.reshape(x[1:], shape), jacobian=True)
        return np.sum(value) + jacobian + x[0]

    recorded = vm.recorded(total, runner="numpy")
    value, gradient = recorded(np.array([0.5]))
    assert value == 0.5 + log_jacobian
    equal(gradient, [1.0])
    assert all(step.kernel.is_native for step in recorded.program.steps)


def test_no_bound_does_not_overflow():
    x, free = np.array([1e4, 1.0]), np.array([inf, 3.0])
    equal(vm.gradient(lambda x: np.sum(vm.lb_constrain(x, -free)), x), [1.0, np.exp(1.0)])
    equal(vm.gradient(lambda x: np.sum(vm.ub_constrain(x, free)), x), [1.0, -np.exp(1.0)])


def test_a_bound_with_the_value_zero_is_a_variable_all_the_same():
    equal(vm.gradient(lambda lb: np.sum(vm.lb_constrain(X, lb)), 0.0), 3.0)


def test_symmetric_to_rounding_is_enough():
    """This holds relatively for a matrix with large elements, too."""
    y = vm.cov_matrix_constrain(np.array([10.0, 3e4, 11.0]), 2)
    y[0, 1] *= 1.0 + 1e-9
    close(vm.cov_matrix_free(y), [10.0, 3e4, 11.0], 1e-8)


def test_all_routes_of_a_unit_vector_and_back():
    for expect in (expect_ad, expect_ad_matvar):
        expect(lambda x: vm.unit_vector_free(vm.unit_vector_constrain(x)), X2)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_sum_to_zero_is_an_isometry(n):
    h = vm.sum_to_zero_constrain(np.eye(n)).T
    close(h.T @ h, np.eye(n), 1e-7, 1e-14)
    close(h @ h.T, np.eye(n + 1) - 1.0 / (n + 1), 1e-7, 1e-14)
    close(vm.jacobian(vm.sum_to_zero_constrain, np.zeros(n)), h, 1e-15, 1e-16)
    assert vm.sum_to_zero_constrain(np.zeros(n), jacobian=True)[1] == 0.0


def test_unit_vector_has_the_density_of_the_length():
    # In polar coordinates with y[0] = cos(phi) the measure dx is r dr dphi. The factor
    # exp(-r^2 / 2) makes it proper.
    x = np.array([1.5, 0.8])
    y, log_density = vm.unit_vector_constrain(x, jacobian=True)
    close(y, x / 1.7, 1e-15)
    assert log_density == pytest.approx(-0.5 * 1.7**2, rel=1e-15)


@pytest.mark.parametrize("y", [
    [0.5, 0.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.5],
])  # fmt: skip
def test_corners_of_simplexes_there_and_back(y):
    x = vm.simplex_free(y)
    equal(x[np.array(y[:-1]) == 0.0], -inf)
    equal(vm.simplex_constrain(x), y)
    equal(vm.stochastic_column_free(np.transpose([y, y])), np.transpose([x, x]))
    equal(vm.Model(lambda s: 0.0, s=vm.simplex(4)).param_unconstrain({"s": y}), x)
    equal(vm.value(vm.simplex_free(vm.var(np.array(y)))), x)
    vm.recover_memory()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_unit_vectors_of_lengths_whose_squares_are_no_numbers(scale):
    f, x, e = vm.unit_vector_constrain, np.array([3.0, 4.0]), np.array([1.0, 0.0])
    close(f(x * scale), [0.6, 0.8], 1e-15)
    gradients = [vm.gradient(lambda x: f(x)[0], point) for point in (x * scale, x)]
    close(gradients[0] * scale, gradients[1], 1e-13)
    close(vm.jvp(f, (x * scale,), (e * scale,))[1], vm.jvp(f, (x,), (e,))[1], 1e-13)
