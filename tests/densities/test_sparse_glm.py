"""Generalised linear models with a sparse matrix of independent variables: the same as with the
dense matrix, which is never made.
"""

import math

import numpy as np
import pytest
import scipy.sparse
from comparing import DOMAIN, SHAPE, close, refuses, refuses_as
from recordings import agree

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(4)
X = scipy.sparse.random_array((7, 4), density=0.4, rng=RNG, format="csr")
DENSE, BETA, ALPHAS = X.toarray(), RNG.normal(size=4), RNG.normal(size=7)
# Name -> the observations, and the arguments after the weights.
CASES = {
    "normal_id_glm_lpdf": (RNG.normal(size=7), (0.7,)),
    "bernoulli_logit_glm_lpmf": (np.array([0, 1, 1, 0, 1, 0, 1]), ()),
    "poisson_log_glm_lpmf": (np.array([0, 3, 1, 0, 2, 0, 5]), ()),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("alpha", [0.3, ALPHAS])
def test_all_routes(name, alpha):
    y, others = CASES[name]

    def f(alpha, beta, *others):
        return getattr(vm, name)(y, X, alpha, beta, *others)

    args = (alpha, BETA, *others)
    assert expect_ad(f, *args).worst < 1e-13
    assert expect_ad_matvar(f, *args).worst < 1e-13


@pytest.mark.parametrize("name", CASES)
def test_as_with_the_dense_matrix(name):
    (y, others), f = CASES[name], getattr(vm, name)
    args = (ALPHAS, BETA, *others)
    argnums = tuple(range(len(args)))
    for propto in (False, True):
        value, gradients = vm.value_and_grad(
            lambda *v, p=propto: f(y, DENSE, *v, propto=p), argnums
        )(*args)
        hessian = vm.hessian(lambda b, p=propto: f(y, DENSE, 0.5, b, *others, propto=p))(BETA)
        for x in (X, X.tocsc(), X.tocoo(), X.tolil(), X.todok(), scipy.sparse.csr_matrix(X)):
            found, ours = vm.value_and_grad(
                lambda *v, x=x, p=propto: f(y, x, *v, propto=p), argnums
            )(*args)
            close(found, value, 1e-14)
            close(ours, gradients, 1e-13)
        close(
            vm.hessian(lambda b, p=propto: f(y, X, 0.5, b, *others, propto=p))(BETA), hessian, 1e-12
        )
    close(f(y, X, *args), f(y, DENSE, *args), 1e-14)
    assert f(y=y, X=X, alpha=ALPHAS, beta=BETA, **dict(zip(["sigma"], others, strict=False))) == f(
        y, X, *args
    )


def test_observations_that_are_variables():
    y = CASES["normal_id_glm_lpdf"][0]
    f = vm.normal_id_glm_lpdf
    expected = vm.gradient(lambda y: f(y, DENSE, 0.3, BETA, 0.7), y)
    close(vm.gradient(lambda y: f(y, X, 0.3, BETA, 0.7), y), expected, 1e-13)
    scales = np.linspace(0.5, 2.0, 7)
    expected = vm.gradient(lambda s: f(y, DENSE, 0.3, BETA, s), scales)
    close(vm.gradient(lambda s: f(y, X, 0.3, BETA, s), scales), expected, 1e-13)


@pytest.mark.parametrize("name", CASES)
def test_recorded(name):
    """No step of the program calls Python, and no memory is set aside for a dense matrix."""
    rng = np.random.default_rng(9)
    x = scipy.sparse.random_array((400, 50), density=0.03, rng=rng, format="csr")
    y, others = (np.arange(400) % 2).astype(float), CASES[name][1]
    points = [(a, rng.normal(size=50), *others) for a in (0.3, -0.1)]
    recorded = agree(
        lambda a, b, *o: getattr(vm, name)(y, x, a, b, *o),
        *points,
        argnums=tuple(range(len(points[0]))),
        rtol=1e-12,
    )
    assert not recorded.program.python_steps()
    found = max(v.size for step in recorded.program.steps for v in (*step.operands, *step.results))
    assert found <= x.nnz


@pytest.mark.parametrize("name", CASES)
def test_one_row_and_none(name):
    (y, others), f = CASES[name], getattr(vm, name)
    row = X[[1]]
    close(f(y, row, 0.3, BETA, *others), f(y, DENSE[[1]], 0.3, BETA, *others), 1e-14)
    assert f(y[:0], scipy.sparse.csr_array((0, 4)), 0.3, BETA, *others) == 0.0


@pytest.mark.parametrize(("x", "beta", "error", "text"), [
    (X, BETA[:3], SHAPE, "Weight vector has shape (3,), but must have the shape (4,)!"),
    (X[:5], BETA, SHAPE, ("Vector of dependent variables has shape (7,), but must be a scalar or "
     "have the shape (5,)!")),
    (X * math.inf, BETA, DOMAIN,
     "Matrix of independent variables[0, 1] is inf, but must be finite!"),
    (X * 1j, BETA, TypeError, "X has dtype complex128, but must be real numbers"),
    (vm.var(X), BETA, TypeError,
     "X has dtype object (type SparseVar), but must be real numbers"),
    (X, BETA * math.nan, DOMAIN, "Weight vector[0] is nan, but must be finite!"),
])  # fmt: skip
@pytest.mark.parametrize("name", CASES)
def test_refusals(name, x, beta, error, text):
    y, others = CASES[name]
    refuses_as(error, f"{name}: {text}", getattr(vm, name), y, x, 0.3, beta, *others)


def test_discrete_observations_and_impossible_ones():
    f, y = vm.poisson_log_glm_lpmf, CASES["poisson_log_glm_lpmf"][0]
    title = f"{f.name}: Vector of dependent variables"
    refuses_as(TypeError, f"{title} is a variable, but has no", f, vm.var(y), X, 0.3, BETA)
    assert f(y - 1.0, X, 0.3, BETA) == -math.inf
    refuses(vm.DataError, f"^{title}", vm.value_and_grad(lambda b: f(y - 1.0, X, 0.3, b)), BETA)
