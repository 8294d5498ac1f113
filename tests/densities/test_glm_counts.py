"""Regressions of counts in one pass: against 50 digits, the densities of the linear predictors, and
along all routes.
"""

import inspect
import math
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses_as
from densities.test_glm import ALPHAS, BETA, COUNTS, X, in_rows
from functions.matrices import worst_error
from recordings import agree

import varmat as vm
from varmat.densities import glm
from varmat.densities.glm_counts import binomial_logit_glm_lpmf, neg_binomial_2_log_glm_lpmf
from varmat.testing import expect_ad, expect_ad_matvar

PHIS, WINS, TRIALS = np.array([2.3, 0.7, 5.0]), np.array([2, 0, 4]), np.array([5, 3, 4])


def binomial(m, k, t):
    return mp.log(mp.binomial(k, m)) - m * mp.log1p(mp.exp(-t)) - (k - m) * mp.log1p(mp.exp(t))


def neg_binomial(n, t, p):
    rising = mp.loggamma(n + p) - mp.loggamma(p) - mp.loggamma(n + 1)
    return rising - n * mp.log1p(p * mp.exp(-t)) - p * mp.log1p(mp.exp(t) / p)


def binomial_row(alpha, n=WINS):
    return binomial, binomial_logit_glm_lpmf, (n, TRIALS), [X, alpha, BETA]


def neg_binomial_row(alpha, phi, y=COUNTS):
    return neg_binomial, neg_binomial_2_log_glm_lpmf, (y,), [X, alpha, BETA, phi]


EXACT = {
    "binomial": binomial_row(0.25),
    "binomial, rows": binomial_row(ALPHAS),
    "binomial, certain": binomial_row(60.0, TRIALS),
    "binomial, surprised": binomial_row(np.array([700.0, -900.0, 30.0])),
    "neg_binomial": neg_binomial_row(0.25, 2.3),
    "neg_binomial, rows": neg_binomial_row(ALPHAS, PHIS),
    "neg_binomial, large": neg_binomial_row(4.0 * ALPHAS + 5.0, 35.0, np.array([90, 110, 5000])),
    "neg_binomial, rare": neg_binomial_row(-30.0, 1e-2, np.array([0, 0, 1])),
}


@pytest.mark.parametrize(("mass", "f", "data", "args"), EXACT.values(), ids=EXACT)
def test_against_50_digits(mass, f, data, args):
    assert worst_error(partial(f, *data), in_rows(mass, *data), args) < 5e-14


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


BINOMIAL, NEGATIVE = binomial_logit_glm_lpmf, neg_binomial_2_log_glm_lpmf
BAD = [
    (BINOMIAL, (WINS, -TRIALS, X, 0.25, BETA),
     "Population size parameter[0] is -5.0, but must be nonnegative!"),
    (BINOMIAL, (WINS, TRIALS, X, math.nan, BETA), "Intercept is nan, but must be finite!"),
    (BINOMIAL, ([0.0, math.nan, 1.0], TRIALS, X, 0.25, BETA),
     "Successes variable[1] is nan, but must be not nan!"),
    (BINOMIAL, (WINS, TRIALS[:2], X, 0.25, BETA),
     "Population size parameter has shape (2,), but must be a scalar or have the shape (3,)!"),
    (NEGATIVE, (COUNTS, X, 0.25, BETA, 0.0),
     "Precision parameter is 0.0, but must be positive finite!"),
    (NEGATIVE, (COUNTS, X, 0.25, BETA[:1], 1.0),
     "Weight vector has shape (1,), but must have the shape (2,)!"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "text"), BAD, ids=[m for *_, m in BAD])
def test_refusals(f, args, text):
    error = SHAPE if " has shape " in text else DOMAIN
    for make in (lambda x: x, vm.var):
        with vm.nested() as tape:
            refuses_as(error, f"{f.name}: {text}", f, *args[:-1], make(args[-1]))
            assert not tape


def test_discrete_arguments_refuse_variables():
    text = "is a variable, but has no derivative"
    call = binomial_logit_glm_lpmf
    for title, args in (
        ("Successes variable", (vm.var(WINS), TRIALS)),
        ("Population size parameter", (WINS, vm.var(TRIALS))),
    ):
        refuses_as(TypeError, f"{call.name}: {title} {text}", call, *args, X, 0.25, BETA)


def test_trials_come_second():
    f, arguments = binomial_logit_glm_lpmf, "(n, N, X, alpha, beta"
    assert str(inspect.signature(f)) == f"{arguments}, *, propto=False)"
    assert str(inspect.signature(vm.binomial_logit_glm_lupmf)) == f"{arguments})"
    expected = f(WINS, TRIALS, X, 0.25, BETA)
    assert f(WINS, beta=BETA, alpha=0.25, N=TRIALS, X=X) == expected
    assert f(WINS, TRIALS, X, beta=vm.var(BETA), alpha=0.25, propto=True).val != expected
    text = f"{f.name}: missing a required argument: 'X'; the signature is {f.name}{arguments}, *, "
    refuses_as(TypeError, text, f, WINS, TRIALS)
