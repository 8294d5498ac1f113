"""Logarithms of the incomplete gamma and beta functions: value and derivatives in all arguments, in
the bulk and in both tails.
"""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy
from comparing import close
from densities import references

import varmat as vm
from varmat.functions.special import log_incomplete as rows
from varmat.testing import coverage

INF = math.inf
GAMMAS = {False: rows.log_gammainc, True: rows.log_gammaincc}
BETAS = {False: rows.log_betainc, True: rows.log_betaincc}
IN_GAMMAS = {False: rows.log_gammainc_derivative, True: rows.log_gammaincc_derivative}
IN_BETAS = {False: rows.log_betainc_derivative, True: rows.log_betaincc_derivative}


def compare(function, derivative, exact, point, bound):
    """Compare the value, the gradient, the Hessian, and the rows of derivatives of which they are
    made.
    """
    value, gradient = vm.value_and_grad(function, tuple(range(len(point))))(*point)
    hessian = vm.hessian(lambda x: function(*x), np.array(point))
    with mp.workdps(40):
        given = tuple(map(mp.mpf, point))
        errors = [abs(value / exact(*given) - 1)]
        for i in range(len(point)):
            orders = [[int(k == i) for k in range(len(point))]]
            orders += [[int(k == i) + int(k == j) for k in range(len(point))] for j in range(i + 1)]
            for j, order in enumerate(orders):
                true = mp.diff(exact, given, order)
                found = gradient[i] if j == 0 else hessian[i, j - 1]
                row = derivative(float("".join(map(str, order))), *point)
                errors += [
                    abs(each - true) / abs(true) if true else abs(each) for each in (found, row)
                ]
    assert max(errors) < bound, list(map(float, errors))
    coverage.note(function, point, mpmath=float(max(errors)))


@pytest.mark.parametrize("point", [(7.5, 6.0), (0.7, 3.0), (2.5, 0.01), (50.0, 60.0)])
@pytest.mark.parametrize("upper", [False, True])
def test_gamma(upper, point):
    exact = references.log_gammaincc if upper else references.log_gammainc
    compare(GAMMAS[upper], IN_GAMMAS[upper], exact, point, 1e-12)


@pytest.mark.parametrize(("upper", "point"), [
    (True, (7.5, 60.0)), (True, (2.5, 700.0)), (True, (0.3, 1e4)), (True, (1.0, 50.0)),
    (True, (1e4, 1.1e4)), (False, (50.0, 20.0)), (False, (20.0, 1.5)), (False, (20.0, 1e-3)),
    (False, (1e-3, 1e-5)), (False, (1e4, 9e3)),
])  # fmt: skip
def test_gamma_in_its_tail(upper, point):
    exact = references.log_gammaincc if upper else references.log_gammainc
    compare(GAMMAS[upper], IN_GAMMAS[upper], exact, point, 1e-12)


@pytest.mark.parametrize("point", [(5.0, 6.5, 0.4), (0.5, 0.7, 0.8), (20.0, 30.0, 0.45)])
@pytest.mark.parametrize("upper", [False, True])
def test_beta(upper, point):
    exact = references.log_betaincc if upper else references.log_betainc
    compare(BETAS[upper], IN_BETAS[upper], exact, point, 1e-12)


@pytest.mark.parametrize(("upper", "point"), [
    (True, (3.0, 2.0, 0.9999)), (True, (0.5, 0.7, 0.99)), (True, (40.0, 40.0, 0.9)),
    (True, (1.0, 5.0, 0.95)), (False, (5.0, 6.5, 1e-5)), (False, (20.0, 30.0, 0.05)),
    (False, (0.3, 3.0, 1e-6)),
])  # fmt: skip
def test_beta_in_its_tail(upper, point):
    exact = references.log_betaincc if upper else references.log_betainc
    compare(BETAS[upper], IN_BETAS[upper], exact, point, 1e-12)


def by_integral(weight, exponent, scores, scale, upper):
    """Return the logarithm of a probability and its derivatives in the shapes. The probability is
    an integral, and `scale` is the step between its nodes.
    """
    places = [(k if upper else -k) * scale for k in (0, 2, 6, 16)]
    rule = [
        mp.quad(lambda u, f=f: mp.exp(exponent(u)) * f(u), sorted(places))
        for f in (lambda _: 1, *scores)
    ]
    return [weight + mp.log(rule[0]), *(each / rule[0] for each in rule[1:])]


@pytest.mark.parametrize("shape", [1e5, 1e8])
@pytest.mark.parametrize("deviation", [-3.0, 0.5, 4.0])
@pytest.mark.parametrize("upper", [False, True])
def test_gamma_of_large_shapes(shape, deviation, upper):
    x = shape + deviation * math.sqrt(shape)
    value, gradient = vm.value_and_grad(GAMMAS[upper], (0, 1))(shape, x)
    with mp.workdps(35):
        a, t = mp.mpf(shape), mp.mpf(x)
        weight = a * mp.log(t) - t - mp.loggamma(a)
        score = mp.log(t) - mp.digamma(a)
        log, in_a = by_integral(
            weight, lambda u: a * u - t * mp.expm1(u), [lambda u: score + u], 1 / mp.sqrt(a), upper
        )
        in_x = (-1 if upper else 1) * mp.exp(weight - log) / t
    close(value, float(log), 1e-14)
    close(gradient[0], float(in_a), 2e-12)
    close(gradient[1], float(in_x), 1e-13)


# The incomplete beta function of SciPy before 1.17 has two digits less for large shapes.
IS_OLD_SCIPY = tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17)


@pytest.mark.parametrize("shapes", [(2e4, 300.0), (1e6, 2e6)])
@pytest.mark.parametrize("deviation", [-5.0, 0.5])
@pytest.mark.parametrize("upper", [False, True])
def test_beta_of_large_shapes(shapes, deviation, upper):
    mean = shapes[0] / sum(shapes)
    x = mean + deviation * math.sqrt(mean * (1.0 - mean) / sum(shapes))
    value, gradient = vm.value_and_grad(BETAS[upper], (0, 1, 2))(*shapes, x)
    with mp.workdps(35):
        a, b, t = *map(mp.mpf, shapes), mp.mpf(x)
        weight = a * mp.log(t) + b * mp.log1p(-t) - mp.log(mp.beta(a, b))

        def less(u):
            return mp.log1p(t * mp.expm1(u))

        scores = [
            mp.log(t) - mp.digamma(a) + mp.digamma(a + b),
            mp.log1p(-t) - mp.digamma(b) + mp.digamma(a + b),
        ]
        log, in_a, in_b = by_integral(
            weight,
            lambda u: a * u - (a + b) * less(u),
            [lambda u: scores[0] + u - less(u), lambda u: scores[1] - less(u)],
            1 / mp.sqrt((a + b) * t * (1 - t)),
            upper,
        )
        in_x = (-1 if upper else 1) * mp.exp(weight - log) / (t * (1 - t))
    close(value, float(log), 1e-11 if IS_OLD_SCIPY else 1e-12)
    rtol = 1e-9 if IS_OLD_SCIPY else 1e-12
    close(gradient, [float(in_a), float(in_b), float(in_x)], rtol)


def test_where_the_function_is_zero():
    """At these ends the function falls to zero as a power of the distance, or exponentially."""
    for function, point, gradient in (
        (rows.log_gammainc, (2.5, 0.0), (-INF, INF)),
        (rows.log_gammaincc, (2.5, INF), (INF, -1.0)),
        (rows.log_betainc, (2.5, 3.5, 0.0), (-INF, vm.digamma(6.0) - vm.digamma(3.5), INF)),
        (rows.log_betaincc, (2.5, 3.5, 1.0), (vm.digamma(6.0) - vm.digamma(2.5), -INF, -INF)),
    ):
        value, found = vm.value_and_grad(function, tuple(range(len(point))))(*point)
        assert value == -INF
        close(found, gradient, 1e-14)
    assert vm.value_and_grad(vm.binomial_lccdf, 2)(0, 5, 0.0) == (-INF, INF)
    assert vm.value_and_grad(vm.binomial_lcdf, 2)(0, 5, 1.0) == (-INF, -INF)


def test_where_the_function_is_one():
    for function, point in (
        (rows.log_gammainc, (2.5, INF)),      (rows.log_gammaincc, (2.5, 0.0)),
        (rows.log_betainc, (2.5, 3.5, 1.0)),  (rows.log_betaincc, (2.5, 3.5, 0.0)),
    ):  # fmt: skip
        value, gradient = vm.value_and_grad(function, tuple(range(len(point))))(*point)
        assert value == 0.0
        assert not any(gradient)


def test_huge_shapes():
    """For shapes as large as floats go, the distribution is normal."""
    for upper in (False, True):
        sign, huge = -1.0 if upper else 1.0, 1e300
        slope = sign * 2.0 / math.sqrt(2.0 * math.pi * huge)
        value, gradient = vm.value_and_grad(GAMMAS[upper], (0, 1))(huge, huge)
        close(value, -math.log(2.0), 1e-15)
        close(gradient, [-slope, slope], 1e-12)
