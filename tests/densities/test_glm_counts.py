"""Regressions of counts in one pass: against 50 digits, the densities of the linear predictors, and
along all routes.
"""

import inspect
import math

import mpmath as mp
import numpy as np
import pytest
from comparing import close, equal, refuses
from functions.matrices import worst_error
from recordings import agree

import varmat as vm
from varmat.densities import glm
from varmat.densities.glm_counts import binomial_logit_glm_lpmf, neg_binomial_2_log_glm_lpmf
from varmat.testing import expect_ad, expect_ad_matvar

X, BETA = np.array([[0.3, -1.2], [1.1, 0.4], [-0.7, 0.8]]), np.array([0.6, -0.9])
ALPHAS, PHIS = np.array([0.25, -0.1, 0.5]), np.array([2.3, 0.7, 5.0])
WINS, TRIALS, COUNTS = np.array([2, 0, 4]), np.array([5, 3, 4]), np.array([3, 0, 5])


def predictors(x, alpha, beta):
    products = [mp.fsum(x[i, j] * beta[j] for j in range(x.cols)) for i in range(x.rows)]
    return [p + (alpha if isinstance(alpha, mp.mpf) else alpha[i]) for i, p in enumerate(products)]


def binomial(n, trials):
    def exact(x, alpha, beta):
        eta = predictors(x, alpha, beta)
        return mp.fsum(
            mp.log(mp.binomial(k, m)) - m * mp.log1p(mp.exp(-t)) - (k - m) * mp.log1p(mp.exp(t))
            for m, k, t in zip(n.tolist(), trials.tolist(), eta, strict=True)
        )

    return exact


def neg_binomial(y):
    def exact(x, alpha, beta, phi):
        total = mp.mpf(0)
        for i, (n, t) in enumerate(zip(y.tolist(), predictors(x, alpha, beta), strict=True)):
            p = phi if isinstance(phi, mp.mpf) else phi[i]
            total += mp.loggamma(n + p) - mp.loggamma(p) - mp.loggamma(n + 1)
            total -= n * mp.log1p(p * mp.exp(-t)) + p * mp.log1p(mp.exp(t) / p)
        return total

    return exact


def binomial_row(alpha, beta=BETA, n=WINS, trials=TRIALS):
    return (
        lambda *args: binomial_logit_glm_lpmf(n, trials, *args),
        binomial(n, trials),
        [X, alpha, beta],
    )


def neg_binomial_row(alpha, phi, beta=BETA, y=COUNTS):
    return (
        lambda *args: neg_binomial_2_log_glm_lpmf(y, *args),
        neg_binomial(y),
        [X, alpha, beta, phi],
    )


EXACT = {
    "binomial": binomial_row(0.25),
    "binomial, rows": binomial_row(ALPHAS),
    "binomial, certain": binomial_row(60.0, n=TRIALS),
    "binomial, surprised": binomial_row(np.array([700.0, -900.0, 30.0])),
    "neg_binomial": neg_binomial_row(0.25, 2.3),
    "neg_binomial, rows": neg_binomial_row(ALPHAS, PHIS),
    "neg_binomial, large": neg_binomial_row(
        np.array([4.0, 5.0, 8.0]), 35.0, y=np.array([90, 110, 5000])
    ),
    "neg_binomial, rare": neg_binomial_row(-30.0, 1e-2, y=np.array([0, 0, 1])),
}


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, args = EXACT[name]
    assert worst_error(f, exact, args) < 5e-14


CASES = {
    "binomial": (binomial_logit_glm_lpmf, WINS, TRIALS, X, 0.25, BETA),
    "binomial, rows": (binomial_logit_glm_lpmf, WINS, TRIALS, X, ALPHAS, BETA),
    "binomial, one n": (binomial_logit_glm_lpmf, 2, TRIALS, X, 0.25, BETA),
    "binomial, a row": (binomial_logit_glm_lpmf, WINS, TRIALS, X[0], 0.25, BETA),
    "binomial, one of each": (binomial_logit_glm_lpmf, 2, 7, X, 0.25, BETA),
    "binomial, no rows": (binomial_logit_glm_lpmf, WINS[:0], TRIALS[:0], X[:0], 0.25, BETA),
    "binomial, impossible": (binomial_logit_glm_lpmf, TRIALS, WINS, X, 0.25, BETA),
    "neg_binomial": (neg_binomial_2_log_glm_lpmf, COUNTS, X, 0.25, BETA, 2.3),
    "neg_binomial, rows": (neg_binomial_2_log_glm_lpmf, COUNTS, X, ALPHAS, BETA, PHIS),
    "neg_binomial, one y": (neg_binomial_2_log_glm_lpmf, 3, X, 0.25, BETA, 2.3),
    "neg_binomial, one y, rows": (neg_binomial_2_log_glm_lpmf, 3, X, 0.25, BETA, PHIS),
    "neg_binomial, a row": (neg_binomial_2_log_glm_lpmf, COUNTS, X[0], 0.25, BETA, 2.3),
    "neg_binomial, no rows": (neg_binomial_2_log_glm_lpmf, COUNTS[:0], X[:0], 0.25, BETA, 2.3),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_all_routes_agree(case):
    expect_ad(*case)


@pytest.mark.parametrize("name", ["binomial", "neg_binomial, rows"])
def test_matvars_agree(name):
    expect_ad_matvar(*CASES[name])


def test_recorded():
    agree(
        lambda a, b: binomial_logit_glm_lpmf(WINS, TRIALS, X, a, b),
        (0.25, BETA),
        (-0.4, -BETA),
        argnums=(0, 1),
    )
    agree(
        lambda a, b, phi: neg_binomial_2_log_glm_lpmf(COUNTS, X, a, b, phi),
        (ALPHAS, BETA, 2.3),
        (-ALPHAS, BETA / 2, 0.7),
        argnums=(0, 1, 2),
        rtol=1e-12,
    )


@pytest.mark.parametrize(("f", "active", "first", "second"), [
    (lambda b: glm.normal_id_glm_lpdf.proportional(ALPHAS, X, 0.1, b, 1.5), 0, (BETA,),
     (BETA / 2,)),
    (lambda s: glm.normal_id_glm_lpdf.proportional(ALPHAS, X, 0.1, BETA, s), 0, (1.3,), (0.4,)),
    (lambda a, b: glm.bernoulli_logit_glm_lpmf.proportional([1, 0, 1], X, a, b), (0, 1),
     (0.1, BETA), (0.4, -BETA)),
    (lambda b: glm.poisson_log_glm_lpmf.proportional(COUNTS, X, 0.1, b), 0, (BETA,), (BETA / 2,)),
    (lambda a: binomial_logit_glm_lpmf.proportional(WINS, TRIALS, X, a, BETA), 0, (0.1,), (0.4,)),
    (lambda b: neg_binomial_2_log_glm_lpmf.proportional(COUNTS, X, 0.1, b, 2.0), 0, (BETA,),
     (BETA / 2,)),
    (lambda phi: neg_binomial_2_log_glm_lpmf.proportional(COUNTS, X, 0.1, BETA, phi), 0, (2.0,),
     (0.7,)),
    (lambda b, phi: neg_binomial_2_log_glm_lpmf.proportional(COUNTS, X, 0.1, b, phi), (0, 1),
     (BETA, 2.0), (-BETA, 0.7)),
])  # fmt: skip
def test_recordings_drop_the_same(f, active, first, second):
    agree(f, first, second, argnums=active, rtol=1e-12)


def test_propto_drops_what_is_data():
    args = (WINS, TRIALS, X, 0.25, BETA)
    constant = math.log(10.0)
    expected = binomial_logit_glm_lpmf(*args) - constant
    close(vm.value_and_grad(binomial_logit_glm_lpmf.proportional, 4)(*args)[0], expected, 1e-14)
    assert binomial_logit_glm_lpmf(*args, propto=True) == 0.0
    # The negative binomial density drops the factorials. It also drops terms in the precision
    # alone, or the counts times the predictors, if they are constant.
    args = (COUNTS, X, 0.25, BETA, 2.3)
    full, factorials = neg_binomial_2_log_glm_lpmf(*args), math.lgamma(4) + math.lgamma(6)
    rising = sum(math.lgamma(n + 2.3) - math.lgamma(2.3) for n in COUNTS)
    for place, dropped in (
        (3, -factorials + rising),
        (4, -factorials + COUNTS @ (0.25 + X @ BETA)),
    ):
        value, gradient = vm.value_and_grad(neg_binomial_2_log_glm_lpmf.proportional, place)(*args)
        close(value, full - dropped, 1e-14)
        equal(gradient, vm.value_and_grad(neg_binomial_2_log_glm_lpmf, place)(*args)[1])


BAD = [
    (binomial_logit_glm_lpmf, (WINS, -TRIALS, X, 0.25, BETA), vm.DomainError,
     "Population size parameter[0] is -5.0, but must be nonnegative!"),
    (binomial_logit_glm_lpmf, (WINS, TRIALS, X, math.nan, BETA), vm.DomainError,
     "Intercept is nan, but must be finite!"),
    (binomial_logit_glm_lpmf, (np.array([0.0, math.nan, 1.0]), TRIALS, X, 0.25, BETA),
     vm.DomainError, "Successes variable[1] is nan, but must be not nan!"),
    (binomial_logit_glm_lpmf, (WINS, TRIALS[:2], X, 0.25, BETA), vm.ShapeError,
     "Population size parameter has shape (2,), but must be a scalar or have the shape (3,)!"),
    (neg_binomial_2_log_glm_lpmf, (COUNTS, X, 0.25, BETA, 0.0), vm.DomainError,
     "Precision parameter is 0.0, but must be positive finite!"),
    (neg_binomial_2_log_glm_lpmf, (COUNTS, X, 0.25, BETA[:1], 1.0), vm.ShapeError,
     "Weight vector has shape (1,), but must have the shape (2,)!"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "error", "message"), BAD, ids=[m for *_, m in BAD])
def test_refusals(f, args, error, message):
    for variable in (False, True):
        with vm.nested() as tape, pytest.raises(error) as caught:
            f(*args[:-1], vm.var(args[-1]) if variable else args[-1])
        assert str(caught.value) == f"{f.name}: {message}"
        assert not tape


def test_discrete_arguments_refuse_variables():
    for name, args in (
        ("Successes variable", (vm.var(WINS), TRIALS)),
        ("Population size parameter", (WINS, vm.var(TRIALS))),
    ):
        with pytest.raises(
            TypeError,
            match=rf"^binomial_logit_glm_lpmf: {name} is a variable, but has no derivative",
        ):
            binomial_logit_glm_lpmf(*args, X, 0.25, BETA)


def test_trials_come_second():
    found = str(inspect.signature(binomial_logit_glm_lpmf))
    assert found == "(n, N, X, alpha, beta, *, propto=False)"
    assert str(inspect.signature(vm.binomial_logit_glm_lupmf)) == "(n, N, X, alpha, beta)"
    expected = binomial_logit_glm_lpmf(WINS, TRIALS, X, 0.25, BETA)
    assert binomial_logit_glm_lpmf(WINS, beta=BETA, alpha=0.25, N=TRIALS, X=X) == expected
    found = binomial_logit_glm_lpmf(WINS, TRIALS, X, beta=vm.var(BETA), alpha=0.25, propto=True).val
    assert found != expected
    message = (
        r"^binomial_logit_glm_lpmf: missing a required argument: 'X'; the signature is "
        r".*\(n, N, X, alpha, beta, \*, propto=False\)"
    )
    refuses(TypeError, message, binomial_logit_glm_lpmf, WINS, TRIALS)
