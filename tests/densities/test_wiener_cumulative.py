"""Distribution functions of first passage times: series with 50 digits, integrals.
Their routes and refusals are tested with the density's.
"""

import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from comparing import close
from densities.test_wiener import BOTH, INF, A, B, Y

import varmat as vm
from varmat.densities.first_passage_time import log_passage_after, log_passage_before
from varmat.densities.wiener import wiener_lpdf, wiener_of_drifts
from varmat.densities.wiener_cumulative import wiener_lccdf_unnorm, wiener_lcdf_unnorm
from varmat.testing import coverage

# Terms below exp(-DIGITS) are left out of the series.
DIGITS = 130


def image(d, u, v):
    """Return exp(-d v) times the probability that a motion with drift rate v >= 0 passes the
    distance d before the time u.
    """
    root = mp.sqrt(u)
    return mp.exp(-d * v) * mp.ncdf((v * u - d) / root) + mp.exp(d * v) * mp.ncdf(
        -(v * u + d) / root
    )


def before(u, b, v):
    """Sum over images. At late times, where the eigenfunctions are quicker, subtract the
    probability of a later passage from the total.
    """
    if u > 1:
        return (mp.sinh(v * b) / mp.sinh(v) if v else b) - after(u, b, v)
    count = int(mp.sqrt(2 * DIGITS * u) / 2) + 2
    return mp.fsum(
        image(2 * k + 1 - b, u, abs(v)) - image(2 * k + 1 + b, u, abs(v)) for k in range(count)
    )


def after(u, b, v):
    """Sum over eigenfunctions."""
    count = int(mp.sqrt(2 * DIGITS / u) / mp.pi) + 3

    def term(k):
        rate = (k * k * mp.pi**2 + v * v) / 2
        return -((-1) ** k) * k * mp.sin(k * mp.pi * b) * mp.exp(-rate * u) / rate

    return mp.pi * mp.fsum(map(term, range(1, count)))


@pytest.mark.parametrize("v", [0.0, -0.6, 20.0])
@pytest.mark.parametrize("b", [1e-6, 0.3, 0.7, 0.9999])
@pytest.mark.parametrize("u", [0.01, 0.2, 2.0, 30.0])
def test_integrals_over_times(u, b, v):
    with mp.workdps(60):
        late = after(mp.mpf(u), mp.mpf(b), mp.mpf(v))
        truth = [mp.log(before(mp.mpf(u), mp.mpf(b), mp.mpf(v))), mp.log(late)]
    assert log_passage_before(u, b, v) == pytest.approx(float(truth[0]), rel=5e-15, abs=1e-14)
    assert log_passage_after(u, b, v) == pytest.approx(float(truth[1]), rel=5e-15, abs=1e-14)


def test_times_without_end():
    for b, v in ((0.3, 0.6), (1.0 - 2.0**-30, 3.0), (1e-9, -3.0)):
        truth = math.log(math.sinh(v * b) / math.sinh(v))
        assert log_passage_before(INF, b, v) == pytest.approx(truth, rel=1e-14, abs=1e-15)
        assert log_passage_after(0.0, b, v) == pytest.approx(truth, rel=1e-14, abs=1e-15)
    assert log_passage_before(0.0, 0.3, 0.6) == log_passage_after(INF, 0.3, 0.6) == -INF


def log_probability(function):
    """Return the exact log probability as a function of five arguments."""
    exact = before if function is wiener_lcdf_unnorm else after
    return lambda y, alpha, tau, beta, delta: (
        mp.log(exact((y - tau) / alpha**2, beta, delta * alpha)) + (1 - beta) * delta * alpha
    )


POINTS = [(0.5, 1.2, 0.1, 0.4, 0.6), (1.7, 2.0, 0.3, 0.55, -1.2), (0.61, 1.2, 0.0, 0.9, 3.0)]
TAILS = [(0.15, 3.0, 0.1, 0.3, -2.0), (9.0, 1.2, 0.1, 0.4, 0.6)]


@pytest.mark.parametrize("function", BOTH, ids=lambda f: f.name)
@pytest.mark.parametrize("point", [*POINTS, *TAILS])
def test_against_50_digits(function, point):
    exact = log_probability(function)
    value, gradient = vm.value_and_grad(function, (0, 1, 2, 3, 4))(*point)
    with mp.workdps(50):
        given = tuple(map(mp.mpf, point))
        truth = [mp.diff(exact, given, [int(i == j) for j in range(5)]) for i in range(5)]
        errors = [float(abs(value - exact(*given)) / abs(exact(*given)))]
        errors += [float(abs(a - b) / abs(b)) for a, b in zip(gradient, truth, strict=True)]
    assert max(errors) < 1e-12
    coverage.note(function, point, mpmath=max(errors))


def test_hessian():
    point = POINTS[0]
    for function in BOTH:
        exact = log_probability(function)
        hessian = vm.hessian(lambda x, f=function: f(*x), np.array(point))
        with mp.workdps(30):
            given = tuple(map(mp.mpf, point))
            for i, j in ((1, 0), (1, 1), (3, 1), (3, 3), (4, 2), (4, 4)):
                true = float(mp.diff(exact, given, [(k == i) + (k == j) for k in range(5)]))
                assert hessian[i, j] == pytest.approx(true, rel=1e-12, abs=1e-13)


VARIABLE = [
    (0.9, 1.0, 0.1, 0.4, 0.8, 0.4, 0.2, 0.2),
    (1.7, 2.0, 0.3, 0.55, -1.2, 0.8, 0.0, 0.3),
    (0.25, 1.3, 0.2, 0.5, 3.0, 0.5, 0.6, 0.3),
    (0.5, 1.2, 0.1, 0.4, 0.6, 3.0, 0.0, 0.0),
]  # fmt: skip


every_variable = pytest.mark.parametrize("point", VARIABLE)


def averaged(upper, point):
    """Average over starting points and decision times with many nodes. The result is a function of
    the arguments on which the ends of the integrals do not depend.
    """
    y, _, tau, *_, var_tau = point
    places, weights = np.polynomial.legendre.leggauss(60)
    places, weights = 0.5 * (1.0 + places), 0.5 * weights
    nodes, of_nodes = np.polynomial.legendre.leggauss(40)
    least, most = max(y - tau - var_tau, 0.0), y - tau
    ends = (
        [most * 2.0**k for k in range(11)]
        if upper
        else [0.0, *(least * 2.0**-k for k in range(6, -1, -1) if least)]
    )
    # The share of the decision times at which a passage counts.
    parts = [(a, b, lambda s: 1.0) for a, b in pairwise(ends)]
    if var_tau and upper:
        parts.append((least, most, lambda s: (s - most + var_tau) / var_tau))
    elif var_tau:
        parts.append((least, most, lambda s: (most - s) / var_tau))

    def probability(alpha, beta, delta, var_delta, var_beta):
        total = 0.0
        starts = beta + 0.5 * var_beta * nodes[:, None]
        for start, stop, share in parts:
            root = start**0.25 + (stop**0.25 - start**0.25) * places
            jacobian = 4.0 * root**3 * (stop**0.25 - start**0.25) * weights * share(root**4)
            density = np.exp(
                wiener_of_drifts.pointwise(1.0 + root**4, alpha, 1.0, starts, delta, var_delta)
            )
            total = total + np.sum(0.5 * of_nodes[:, None] * density * jacobian)
        return np.log(total)

    return probability


@every_variable
@pytest.mark.parametrize("function", BOTH, ids=lambda f: f.name)
def test_variability(function, point):
    y, alpha, _, beta, delta, var_delta, var_beta, var_tau = point
    value, gradient = vm.value_and_grad(function, tuple(range(8)))(*point)
    inner = (alpha, beta, delta, var_delta, var_beta)
    true, slopes = vm.value_and_grad(
        averaged(function is wiener_lccdf_unnorm, point), (0, 1, 2, 3, 4)
    )(*inner)
    close(value, true, 1e-12)
    close([gradient[i] for i in (1, 3, 4, 5, 6)], slopes, 1e-11, 1e-12)
    # The derivative in the time is the density.
    sign = 1.0 if function is wiener_lcdf_unnorm else -1.0
    rate = sign * math.exp(wiener_lpdf(*point) - value)
    close(gradient[0], rate, 1e-11)
    close(gradient[2], -rate, 1e-11)
    # The derivative of a mean over an interval, in the width of the interval, comes from the value
    # at its end.
    if var_tau:
        end = math.exp(function(y - var_tau, *point[1:7], 0.0) - value)
        close(gradient[7], (end - 1.0) / var_tau, 1e-10)
    else:
        close(gradient[7], -0.5 * rate, 1e-12)


@every_variable
def test_both_probabilities_add_up(point):
    """At any time the two probabilities add up to the probability of this boundary."""
    whole = wiener_lcdf_unnorm(INF, *point[1:])
    close(whole, wiener_lccdf_unnorm(0.0, *point[1:]), 1e-13)
    for y in (point[2] + 1e-4, 0.5 * (point[0] + point[2]), point[0], 4.0, 30.0):
        total = math.exp(wiener_lcdf_unnorm(y, *point[1:])) + math.exp(
            wiener_lccdf_unnorm(y, *point[1:])
        )
        close(total, math.exp(whole), 1e-13)
    other = (*point[1:3], 1.0 - point[3], -point[4], *point[5:])
    close(math.exp(whole) + math.exp(wiener_lcdf_unnorm(INF, *other)), 1.0, 1e-13)


@pytest.mark.parametrize("others", [(), (0.3, 0.2, 0.1)])
def test_ends(others):
    """The ends are times before the nondecision time and infinity."""
    arguments = tuple(range(5 + len(others)))
    for f, y in ((wiener_lcdf_unnorm, 0.05), (wiener_lcdf_unnorm, 0.1), (wiener_lccdf_unnorm, INF)):
        value, gradient = vm.value_and_grad(f, arguments)(y, 1.2, 0.1, 0.4, 0.6, *others)
        assert value == -INF
        assert not any(gradient)
    results = []
    for f, y in (
        (wiener_lcdf_unnorm, INF),   (wiener_lccdf_unnorm, 0.05), (wiener_lccdf_unnorm, -INF),
    ):  # fmt: skip
        results.append(vm.value_and_grad(f, arguments)(y, 1.2, 0.1, 0.4, 0.6, *others))
        assert np.isfinite(vm.hessian(lambda b, f=f, y=y: f(y, 1.2, 0.1, b, 0.6, *others), 0.4))
    for value, gradient in results:
        close(value, results[0][0], 1e-14)
        close(gradient, results[0][1], 1e-12, 1e-13)
        assert gradient[0] == gradient[2] == 0.0
    if not others:
        truth = vm.gradient(lambda b: np.log(np.expm1(-1.44 * b) / np.expm1(-1.44)), 0.4)
        close(results[0][1][3], truth, 1e-13)
    # The end beside another time.
    y = np.array([0.05, 0.5])
    expected = results[0][0] + wiener_lccdf_unnorm(0.5, 1.2, 0.1, 0.4, 0.6, *others)
    close(wiener_lccdf_unnorm(y, 1.2, 0.1, 0.4, 0.6, *others), expected, 1e-13)
    assert wiener_lcdf_unnorm(y, 1.2, 0.1, 0.4, 0.6, *others) == -INF


def test_no_variability_is_that_of_zero():
    for f in BOTH:
        expected = f(Y, A, 0.1, B, 0.6)
        close(f(Y, A, 0.1, B, 0.6, 0.0, 0.0, 0.0), expected, 1e-13)
        close(vm.value_and_grad(f, 7)(Y, A, 0.1, B, 0.6, 0.0, 0.0, 0.0)[0], expected, 1e-13)
        # Widths of zero in an array with other widths.
        some = np.array([0.0, 0.1, 0.3])
        each = [
            f(*p, 0.6, 0.2, 0.0, s) for *p, s in zip(Y, A, np.full(3, 0.1), B, some, strict=True)
        ]
        value, gradient = vm.value_and_grad(f, 7)(Y, A, 0.1, B, 0.6, 0.2, 0.0, some)
        close(value, sum(each), 1e-10)
        found = gradient[0]
        close(found, vm.gradient(lambda s, f=f: f(0.5, 1.2, 0.1, 0.4, 0.6, 0.2, 0.0, s), 0.0), 1e-9)
