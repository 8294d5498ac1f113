"""Covariance functions: against 50-digit arithmetic and Stan Math, at coincident points, and
refusals.
"""

import inspect

import mpmath as mp
import numpy as np
import pytest
import stan
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from functions.large import RNG, A, B
from functions.matrices import gradients, worst_error

import varmat as vm
from varmat.functions import stationary_covariances
from varmat.testing import expect_ad, expect_ad_matvar

LINE = np.array([0.1, 0.7, 1.9, -0.4])
OTHER_LINE = np.array([0.4, 2.2])
PLANE = np.array([[0.1, 0.3], [0.7, -0.4], [1.9, 0.8]])
OTHER_PLANE = np.array([[0.4, -0.2], [2.2, 1.0]])
SCALES = np.array([0.8, 1.7])


def periodic(r, scale, period):
    return mp.exp(-2 * mp.sin(mp.pi * r / period) ** 2 / scale**2)


# Name -> the correlation at a distance in units of the length scale.
STATIONARY = {
    "gp_exp_quad_cov": lambda r: mp.exp(-r * r / 2),
    "gp_exponential_cov": lambda r: mp.exp(-r),
    "gp_matern32_cov": lambda r: (1 + mp.sqrt(3) * r) * mp.exp(-mp.sqrt(3) * r),
    "gp_matern52_cov": lambda r: (1 + mp.sqrt(5) * r + 5 * r * r / 3) * mp.exp(-mp.sqrt(5) * r),
}


def rows(x):
    return [[x[i, k] for k in range(x.cols)] for i in range(x.rows)]


def distance(u, v, scale):
    scales = [scale[k] for k in range(len(u))] if isinstance(scale, mp.matrix) else [scale] * len(u)
    return mp.sqrt(mp.fsum(((p - q) / s) ** 2 for p, q, s in zip(u, v, scales, strict=True)))


def exact_covariances(correlation):
    def exact(x1, x2, sigma, scale):
        return [sigma**2 * correlation(distance(u, v, scale)) for u in rows(x1) for v in rows(x2)]

    return exact


def periodic_covariances(x1, x2, sigma, scale, period):
    return [
        sigma**2 * periodic(distance(u, v, 1), scale, period) for u in rows(x1) for v in rows(x2)
    ]


@pytest.mark.parametrize("name", STATIONARY)
@pytest.mark.parametrize(("x1", "x2", "scale"), [
    (LINE, OTHER_LINE, 0.8), (PLANE, OTHER_PLANE, 0.8), (PLANE, OTHER_PLANE, SCALES),
])  # fmt: skip
def test_stationary_against_50_digits(name, x1, x2, scale):
    exact = exact_covariances(STATIONARY[name])
    assert worst_error(getattr(vm, name), exact, [x1, x2, 1.3, scale]) < 2e-14


def test_others_against_50_digits():
    args = [PLANE, OTHER_PLANE, 1.3, 0.8, 2.3]
    assert worst_error(vm.gp_periodic_cov, periodic_covariances, args) < 1e-14
    dots = lambda x1, x2, sigma: x1 * x2.T + sigma**2 * mp.ones(x1.rows, x2.rows)  # noqa: E731 - one expression
    assert worst_error(vm.gp_dot_prod_cov, dots, args[:3]) < 1e-14


@pytest.mark.parametrize("entry", stan.entries("covariances"))
def test_against_stan(entry):
    stan.check(getattr(vm, entry["function"]), entry, rtol=1e-14)


CASES = [
    *((name, [LINE, 1.3, 0.8]) for name in STATIONARY),
    *((name, [PLANE, OTHER_PLANE, 1.3, SCALES]) for name in STATIONARY),
    *(("gp_exp_quad_cov", args) for args in (
        [PLANE[::-1, ::-1], 1.3, SCALES], [np.array([0.5]), 1.3, 0.8], [np.empty(0), 1.3, 0.8],
        [LINE, np.empty(0), 1.3, 0.8], [np.empty((3, 0)), 1.3, 0.8],
    )),
    ("gp_periodic_cov", [LINE, 1.3, 0.8, 2.3]),
    ("gp_periodic_cov", [PLANE, OTHER_PLANE, 1.3, 0.8, 2.3]),
    ("gp_dot_prod_cov", [LINE, 1.3]), ("gp_dot_prod_cov", [PLANE, OTHER_PLANE, 1.3]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), CASES)
def test_all_routes(name, args):
    expect_ad(getattr(vm, name), *args)
    expect_ad_matvar(getattr(vm, name), *args)


@pytest.mark.parametrize("name", [*STATIONARY, "gp_periodic_cov"])
def test_coincident_points(name):
    x = np.array([1.0, 1.0, 2.0])
    if name == "gp_exponential_cov":  # at its kink the derivative is zero
        equal(vm.gradient(lambda x: np.sum(vm.gp_exponential_cov(x, 1.3, 0.8)), x[:2]), [0.0, 0.0])
        return
    period = [2.3] if name == "gp_periodic_cov" else []
    expect_ad(getattr(vm, name), x, np.array([1.0, 3.0]), 1.3, 0.8, *period)


@pytest.mark.parametrize("distance", [0.0, 1e-200, 1e-9])
def test_curvature_of_a_periodic_covariance_at_and_near_coincident_points(distance):
    curvature = vm.hessian(
        lambda x: np.sum(vm.gp_periodic_cov(x, np.zeros(1), 1.3, 0.8, 2.3)), np.array([distance])
    )
    close(curvature[0, 0], -4.0 * (1.3 * np.pi / (0.8 * 2.3)) ** 2, 1e-13)


@pytest.mark.parametrize("name", STATIONARY)
def test_the_matrix_is_exactly_symmetric_and_close_points_lose_no_digits(name):
    k, x = getattr(vm, name), 1e6 + np.cos(np.arange(20.0)).reshape(10, 2)
    args = [x[:3], x[3:5], 1.3, SCALES]
    assert worst_error(k, exact_covariances(STATIONARY[name]), args) < 1e-13
    # On both sides of the switch to products differences are exact.
    for n in (10, 99, 130):
        x = 1e6 + np.cos(np.arange(1.0 * n))
        found = k(x, 1.3, 0.8)
        equal(found, found.T)
        equal(np.diagonal(found), 1.3 * 1.3)
        close(found[:20, :20], k(x[:20], 1.3, 0.8), 1e-15)


def test_points_given_as_other_than_arrays_of_floats():
    def at(x):
        return vm.value_and_grad(lambda s: np.sum(vm.gp_exp_quad_cov(x, s, 0.8)))(1.3)

    expected = at(np.array([0.0, 2.0, 3.0]))
    for x in ([0, 2, 3], np.array([0, 2, 3]), (0.0, 2.0, 3.0), np.array([0, 2, 3], np.float32)):
        assert at(x) == expected
    refuses(
        TypeError, "gp_exp_quad_cov: x is a masked array", at, np.ma.masked_array([0.0], [True])
    )


def test_far_points_underflow_quietly():
    (k,), (x, sigma, scale) = gradients(
        vm.gp_exp_quad_cov, [np.array([0.0, 1e6]), 1.3, 0.8], [np.array([[0.0, 1.0], [1.0, 0.0]])]
    )
    equal(k, [[1.3 * 1.3, 0.0], [0.0, 1.3 * 1.3]])
    equal([*x, sigma, scale], 0.0)


def test_one_entry_and_only_what_is_variable():
    with vm.nested() as tape:
        sigma = vm.var(1.3)
        k = vm.gp_exp_quad_cov(PLANE, sigma, SCALES)
        assert len(tape) == 1
        np.sum(k).grad()
        close(sigma.adj, 2.0 * np.sum(k.val) / 1.3, 1e-14)


def test_signatures_name_the_parameters():
    """Programs such as editors read these signatures."""
    for name in STATIONARY:
        assert str(inspect.signature(getattr(vm, name))) == "(x, sigma, length_scale)"
    assert str(inspect.signature(vm.gp_periodic_cov)) == "(x, sigma, length_scale, period)"
    assert str(inspect.signature(vm.gp_dot_prod_cov)) == "(x, sigma)"


def test_parameters_by_name():
    expected = vm.gp_exp_quad_cov(LINE, 1.3, 0.8)
    equal(vm.gp_exp_quad_cov(LINE, length_scale=0.8, sigma=1.3), expected)
    equal(vm.gp_exp_quad_cov(LINE, LINE[:1], 1.3, length_scale=0.8), expected[:, :1])
    periodic = vm.gp_periodic_cov(LINE, 1.3, length_scale=0.8, period=2.0)
    equal(periodic, vm.gp_periodic_cov(LINE, 1.3, 0.8, 2.0))
    equal(vm.gp_dot_prod_cov(LINE, sigma=0.5), vm.gp_dot_prod_cov(LINE, 0.5))
    for args, named in (
        ((LINE, 0.8), {"sigma": 1.3}), ((LINE, 1.3), {"scale": 0.8}), ((LINE,), {"sigma": 1.3}),
    ):  # fmt: skip
        message = r"must be \(x, sigma, length_scale\) or \(x1, x2, sigma, length_scale\)!"
        refuses(TypeError, message, vm.gp_exp_quad_cov, *args, **named)


REFUSALS = [
    ("gp_exp_quad_cov", [LINE, -1.0, 0.8], DOMAIN, "sigma is -1.0, but must be positive finite!"),
    ("gp_matern32_cov", [LINE, 1.0, 0.0], DOMAIN,
     "length_scale is 0.0, but must be positive finite!"),
    ("gp_matern52_cov", [PLANE, 1.0, [1.0, -2.0]], DOMAIN, "length_scale[1] is -2.0, but must be"),
    ("gp_exponential_cov", [[1.0, np.nan], 1.0, 1.0], DOMAIN, "x[1] is nan, but must be finite!"),
    ("gp_exp_quad_cov", [LINE, [np.inf], 1.0, 1.0], DOMAIN, "x2[0] is inf, but must be finite!"),
    ("gp_exp_quad_cov", [LINE, PLANE, 1.0, 1.0], SHAPE,
     "x2 has shape (3, 2), but must have points of shape (), as x has!"),
    ("gp_exp_quad_cov", [1.0, 1.0, 1.0], SHAPE, "x has shape (), but must have one row"),
    ("gp_exp_quad_cov", [PLANE, [1.0], 1.0], SHAPE, "sigma has shape (1,), but must be a scalar!"),
    ("gp_exp_quad_cov", [PLANE, 1.0, [1.0]], SHAPE, "length_scale has shape (1,), but must be"),
    ("gp_exp_quad_cov", [LINE, 1.0], TypeError,
     "2 arguments are given, but must be (x, sigma, length_scale) or (x1, x2, sigma,"),
    ("gp_periodic_cov", [LINE, 1.0, 1.0, 0.0], DOMAIN,
     "period is 0.0, but must be positive finite!"),
    ("gp_periodic_cov", [LINE, 1.0, [1.0], 1.0], SHAPE, "length_scale has shape"),
    ("gp_dot_prod_cov", [LINE, -1.0], DOMAIN, "sigma is -1.0, but must be nonnegative!"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "error", "message"), REFUSALS)
def test_refusals(name, args, error, message):
    for arguments in (args, [vm.var(x) for x in args]):
        refuses_as(error, message, getattr(vm, name), *arguments)


@pytest.mark.parametrize("function", [vm.gp_dot_prod_cov, vm.gp_exp_quad_cov, vm.gp_periodic_cov])
def test_parameters_are_real_numbers(function):
    """Their types are checked by name before anything is recorded, whether the points are variables
    or not.
    """
    count = {vm.gp_dot_prod_cov: 1, vm.gp_exp_quad_cov: 2, vm.gp_periodic_cov: 3}[function]
    for wrong in (1j, np.array(1j), "a", np.ma.masked_array(1.0), None):
        for x in ([1.0, 2.0], vm.var([1.0, 2.0]), vm.matvar([1.0, 2.0])):
            message = f"{function.__name__}: .* must be real numbers"
            with vm.nested() as tape:
                refuses(TypeError, message, function, x, *(1.0,) * (count - 1), wrong)
            assert not tape


@pytest.mark.parametrize("name", STATIONARY)
@pytest.mark.parametrize(("points", "scale"), [
    ((A[:, 0],), 0.8),
    ((A[:7, :2], B[:30, :2]), 0.8),
    ((A[:, :3], B[:9, :3]), np.array([0.8, 1.7, 2.2])),
])  # fmt: skip
def test_covariances_by_blocks(name, points, scale, monkeypatch):
    args = (*points, 1.3, scale)
    count = tuple(range(len(args)))
    weights = RNG.normal(size=(len(points[0]), len(points[-1])))
    differentiated = vm.value_and_grad(lambda *x: np.vdot(weights, getattr(vm, name)(*x)), count)
    value, gradients = differentiated(*args)
    for block in (1, 64):
        monkeypatch.setattr(stationary_covariances, "BLOCK", block)
        found, others = differentiated(*args)
        close(found, value, 1e-12)
        close(others, gradients, 1e-11, 1e-12)


@pytest.mark.parametrize("length_scale", [1e-101, 1e-155, 1e-165, 1e-320])
@pytest.mark.parametrize("name", STATIONARY)
def test_the_shortest_length_scales_leave_the_variances(name, length_scale):
    """Coincident points have the full variance as covariance, and distinct points have none."""
    k, x = getattr(vm, name), np.array([0.0, 1.0, 3.0])
    with np.errstate(over="ignore"):
        equal(k(x[[0, 1, 1]], 2.0, length_scale), 4.0 * np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]]))
    if length_scale < 1e-300:
        return
    of_each = vm.value_and_grad(lambda *q: np.sum(k(*q)), (0, 1, 2))(x, 1.0, length_scale)[1]
    equal(of_each, (np.zeros(3), 6.0, 0.0))
    two = np.stack([x, x], axis=1)
    of_scales = vm.gradient(
        lambda scales: np.sum(k(two, 1.0, scales)), np.array([1.0, length_scale])
    )
    equal(of_scales, [0.0, 0.0])
