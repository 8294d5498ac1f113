"""Mixtures: against Stan Math, against 50-digit arithmetic, and at their limits."""

import mpmath as mp
import numpy as np
import pytest
import stan
from comparing import close, equal, refuses, refuses_as

import varmat as vm
from varmat.densities.mixture import log_mix
from varmat.testing import expect_ad, expect_ad_matvar

THETAS = np.array([0.2, 0.5, 0.3])
LPS = np.array([[-1.2, 0.4, 2.1], [0.3, -900.0, -901.5], [-3.0, -2.5, -40.0], [5.0, 5.0, 5.0]])
ROWS = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [1.0, 0.0, 0.0]])
LP1, LP2 = np.array([0.7, -1200.0, -3.0]), np.array([-0.4, -1201.5, 50.0])


@pytest.mark.parametrize("entry", stan.entries("log_mix"))
def test_agrees_with_stan(entry):
    stan.check(log_mix, entry, rtol=1e-15)


@pytest.mark.parametrize("entry", stan.entries("log_mix", throws=True))
def test_refuses_as_stan_does(entry):
    message = r"^log_mix: theta.* is 1\.[23], but must be in the interval \[0, 1\]!$"
    refuses(vm.DomainError, message, log_mix, *stan.arguments(entry))


def exact_two(theta, a, b):
    return mp.log(theta * mp.exp(a) + (1 - theta) * mp.exp(b))


POINTS = [
    (0.3, 0.7, -0.4), (1e-12, -3.0, -2.0), (0.75, -1200.0, -1201.5), (1e-200, 400.0, -10.0),
    (0.5, 0.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS)
def test_two_agree_with_exact_arithmetic(point):
    value, gradients = vm.value_and_grad(log_mix, (0, 1, 2))(*point)
    with mp.workdps(500):  # resolves differences far below the smallest probability
        at = tuple(map(mp.mpf, point))
        truth = [
            float(mp.diff(exact_two, at, order, h=mp.mpf(10) ** -240))
            for order in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        ]
        close(value, float(exact_two(*at)), 1e-15)
    close(gradients, truth, 2e-13, 1e-200)


@pytest.mark.parametrize("theta", [THETAS, ROWS], ids=["for all", "for each"])
@pytest.mark.parametrize("rows", [slice(None), 0], ids=["matrix", "vector"])
def test_many_agree_with_fifty_digits(theta, rows):
    theta, lps = theta[rows] if theta.ndim == 2 else theta, LPS[rows]
    value, (in_theta, in_lps) = vm.value_and_grad(log_mix, (0, 1))(theta, lps)
    with mp.workdps(50):
        total, ratios = mp.mpf(0), []
        for p, row in zip(
            np.broadcast_to(theta, lps.shape).reshape(-1, 3), lps.reshape(-1, 3), strict=True
        ):
            density = mp.fdot(map(mp.mpf, p), map(mp.exp, row))
            total += mp.log(density)
            ratios.append([float(mp.exp(lp) / density) for lp in row])
    ratios = np.reshape(ratios, lps.shape)
    close(value, float(total), 1e-15)
    close(in_lps, theta * ratios, 2e-13)
    close(in_theta, ratios if theta.ndim == lps.ndim else ratios.sum(axis=0), 2e-13)


CASES = {
    "scalars": (0.3, 0.7, -0.4), "observations": (0.3, LP1, LP2),
    "one each": (np.array([0.1, 0.5, 0.9]), LP1, LP2),
    "outer": (np.array([[0.1], [0.5]]), LP1, -1.0),
    "strided": (0.3, LP1[::-2], LP2[::2]),
    "empty": (0.3, np.empty(0), np.empty(0)),
    "vector": (THETAS, LPS[0]), "matrix": (THETAS, LPS),
    "weights for each": (ROWS[:3], LPS[:3]),
    "fortran": (THETAS[::-1], np.asfortranarray(LPS)),
    "no observations": (THETAS, np.empty((0, 3))),
    "one component": (np.array([0.5]), LPS[:, :1]),
}  # fmt: skip


@pytest.mark.parametrize("args", CASES.values(), ids=CASES)
def test_all_routes_agree(args):
    expect_ad(log_mix, *args)
    expect_ad_matvar(log_mix, *args)


def test_two_components_are_the_case_of_two_columns():
    both = np.stack([LP1, LP2], axis=1)
    close(np.sum(log_mix(0.3, LP1, LP2)), log_mix(np.array([0.3, 0.7]), both), 1e-15)
    equal(log_mix(0.3, LP1, LP2)[0], log_mix(0.3, LP1[0], LP2[0]))


@pytest.mark.parametrize(("args", "value", "gradients"), [
    ((0.0, 1.0, 2.0), 2.0, (np.exp(-1.0) - 1.0, 0.0, 1.0)),
    ((1.0, 1.0, 2.0), 1.0, (1.0 - np.exp(1.0), 1.0, 0.0)),
    ((0.0, 1000.0, 2.0), 2.0, (np.inf, 0.0, 1.0)),
    ((np.array([0.0, 1.0]), np.array([1000.0, 2.0])), 2.0, ([np.inf, 1.0], [0.0, 1.0])),
    ((0.5, -np.inf, 1.0), 1.0 - np.log(2.0), (-2.0, 0.0, 1.0)),
    ((0.5, -np.inf, -np.inf), -np.inf, (0.0, 0.0, 0.0)),
    ((0.0, 3.0, -np.inf), -np.inf, (0.0, 0.0, 0.0)),
    ((np.array([0.0, 1.0]), np.array([1.0, 2.0])), 2.0, ([np.exp(-1.0), 1.0], [0.0, 1.0])),
    ((np.array([0.5, 0.5]), np.array([-np.inf, -np.inf])), -np.inf, ([0.0, 0.0], [0.0, 0.0])),
    ((np.array([0.5, 0.5]), np.array([[-np.inf, 0.0], [-np.inf, -np.inf]])), -np.inf,
     ([0.0, 2.0], [[0.0, 1.0], [0.0, 0.0]])),
])  # fmt: skip
def test_limits(args, value, gradients):
    result = vm.value_and_grad(log_mix, tuple(range(len(args))))(*args)
    close(result[0], value, 1e-15)
    close(result[1], gradients, 1e-14)


@pytest.mark.parametrize("lps", [[800.0, 0.0, 1.0], [-800.0, 0.0, 1.0]])
def test_second_derivatives_beside_a_component_without_weight(lps):
    p = 1.0 / (1.0 + np.e)
    expected = np.zeros((3, 3))
    expected[1:, 1:] = p * (1.0 - p) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    close(vm.hessian(lambda x: log_mix([0.0, 0.5, 0.5], x), lps), expected, 1e-14)
    for theta in (0.0, 1.0):
        found = vm.hessian(lambda x, theta=theta: log_mix(theta, x[0], x[1]), lps[:2])
        equal(found, np.zeros((2, 2)))


INTERVAL, NOT_NAN = "must be in the interval [0, 1]!", "but must be not nan!"


@pytest.mark.parametrize(("args", "text"), [
    ((-0.1, 0.0, 0.0), f"theta is -0.1, but {INTERVAL}"),
    (([0.5, np.nan], 0.0, 0.0), f"theta[1] is nan, but {INTERVAL}"),
    ((0.5, np.nan, 0.0), f"lp1 is nan, {NOT_NAN}"),
    ((0.5, 0.0, [0.0, np.nan]), f"lp2[1] is nan, {NOT_NAN}"),
    ((THETAS, [0.0, 0.0, np.nan]), f"lps[2] is nan, {NOT_NAN}"),
])  # fmt: skip
def test_arguments_outside_their_domain(args, text):
    for make in (lambda x: x, vm.var):
        with vm.nested() as tape:
            refuses_as(vm.DomainError, f"log_mix: {text}", log_mix, *map(make, args))
            assert not tape


@pytest.mark.parametrize("args", [
    (THETAS, LPS[:, :2]),   (0.5, LPS),             (THETAS, 1.0),          (ROWS, LPS[0]),
    (ROWS[:2], LPS),        (THETAS, LP1, LP2[:2]),
])  # fmt: skip
def test_shapes_that_do_not_fit(args):
    refuses(vm.ShapeError, r"^log_mix: theta.* but must ", log_mix, *args)
    text = "log_mix: theta has shape () and lps (2,), but must be (k,) or (n, k)"
    refuses_as(vm.ShapeError, text, log_mix, 0.5, np.array([0.1, 0.2]))


def test_types_and_number_of_arguments():
    assert type(log_mix(0.5, 1, 2)) is float
    assert type(log_mix([0.5, 0.5], [1, 2])) is float
    assert type(log_mix(vm.var([0.5, 0.5]), [1, 2])) is vm.Var
    for args in ((), (1.0, 1.0, 1.0)):
        text = f"log_mix: {len(args)} arguments follow theta, but there must be two"
        refuses_as(TypeError, text, log_mix, 0.5, *args)
