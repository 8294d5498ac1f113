"""B-splines and interpolation on grids: against SciPy, functions that they reproduce, and along all
routes.
"""

import numpy as np
import pytest
import scipy.interpolate
from comparing import DOMAIN, SHAPE, close, equal, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(13)
X = np.array([0.0, 0.7, 1.5, 2.0, 3.1, 4.0, 4.4])
Y = RNG.normal(size=(7, 2))
Z = np.array([-0.45, 0.2, 0.71, 1.9, 3.9, 4.6])
INSIDE = Z[1:-1]
KNOTS = np.array([0.0, 0.1, 0.2, 1.2, 2.5, 4.0, 4.5, 5.0])
CLAMPED = np.array([0.0, 0.0, 0.0, 0.0, 1.2, 2.5, 4.4, 4.4, 4.4, 4.4])
SPREAD = np.array([-0.3, -0.2, -0.1, 1.0, 2.1, 2.2, 2.3])
C = RNG.normal(size=(5, 2))
GRID = (np.array([0.0, 1.0, 2.5]), np.array([0.0, 2.0, 3.0, 4.0]))
VALUES = RNG.normal(size=(3, 4, 2))
PLACES = np.array([[0.3, 0.2], [2.0, 3.6], [1.1, 2.1]])


@pytest.mark.parametrize("k", range(6))
def test_interpolation_of_all_degrees(k):
    f, g = vm.make_interp_spline(X, vm.var(Y), k), scipy.interpolate.make_interp_spline(X, Y, k)
    equal(f.t, g.t)
    for nu in range(4):
        # For more derivatives than degrees, SciPy 1.15 reads memory that is not its own.
        expected = g(INSIDE, nu) if nu <= k else np.zeros((4, 2))
        close(f(INSIDE, nu).val, expected, 1e-10, 1e-10)
    close(vm.value(f(Z, extrapolate=False)), g(Z, extrapolate=False), 1e-11)
    if k:
        close(f.derivative()(INSIDE).val, g.derivative()(INSIDE), 1e-9)


@pytest.mark.parametrize("bc", ["natural", "clamped", ([(1, 0.5)], [(2, 0.0)])], ids=str)
def test_given_derivatives(bc):
    found = vm.make_interp_spline(X, vm.var(Y[:, 0]), bc_type=bc)(Z).val
    close(found, scipy.interpolate.make_interp_spline(X, Y[:, 0], bc_type=bc)(Z), 1e-11)


def test_coefficients_places_and_knots_by_all_routes():
    expect_ad(lambda t, c, x: (
        vm.BSpline(t, c, 2)(x), vm.BSpline(t, c, 2)(x, 1),
    ), KNOTS, C, np.array([0.3, 1.0, 2.1, 3.1]))  # fmt: skip
    expect_ad(lambda c, x: vm.BSpline(KNOTS, c.T, 2, "periodic", 1)(x), C, Z[2:5])
    expect_ad(lambda c, x: vm.BSpline(KNOTS, c, 2)(x, 3), C, Z)
    expect_ad_matvar(lambda c: vm.BSpline(KNOTS, c, 2)(Z), C[:, 0])


def test_the_derivative_in_coefficients_is_the_design_matrix():
    expected = scipy.interpolate.BSpline.design_matrix(X, CLAMPED, 3).toarray()
    close(vm.BSpline.design_matrix(X, CLAMPED, 3), expected, 1e-7, 1e-15)
    close(vm.jacobian(lambda c: vm.BSpline(CLAMPED, c, 3)(X), np.zeros(6)), expected, 1e-7, 1e-15)


def test_interpolation_by_all_routes():
    expect_ad(lambda x, y, z: vm.make_interp_spline(x, y)(z), X[:5], Y[:5, 0], Z[:3])
    expect_ad(lambda x, y, v: vm.make_interp_spline(
        x, y, bc_type=([(1, v)], [(2, 0.0)]),
    )(0.3), X[:5], Y[:5, 0], 0.4)  # fmt: skip
    expect_ad(lambda y, t: vm.make_interp_spline(X[:4], y, 2, t)(0.6), Y[:4, 0], SPREAD)
    expect_ad_matvar(lambda y: vm.make_interp_spline(X, y, 1)(Z), Y[:, 0])


def test_least_squares():
    found = vm.make_lsq_spline(X, vm.var(Y), CLAMPED, w=X + 1.0)(Z).val
    close(found, scipy.interpolate.make_lsq_spline(X, Y, CLAMPED, w=X + 1.0)(Z), 1e-9)
    knots = np.array([0.0, 0.0, 2.2, 4.4, 4.4])
    expect_ad(lambda x, y, w: vm.make_lsq_spline(x, y, knots, 1, w)(0.3), X, Y[:, 0], X + 1.0)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grids(method):
    for settings, places in (
        ((True,), PLACES),             ((False, None), PLACES - 0.7), ((False,), PLACES - 0.7),
    ):  # fmt: skip
        f, g = (
            m.RegularGridInterpolator(GRID, VALUES, method, *settings)
            for m in (vm, scipy.interpolate)
        )
        close(f(places), g(places), 1e-7, 1e-14)
    expect_ad(lambda v: vm.interpn(GRID, v, PLACES, method), VALUES)
    expect_ad_matvar(lambda v: vm.interpn(GRID[:1], v, PLACES[:, 0], method), VALUES[:, 0, 0])


def test_grids_by_all_routes():
    expect_ad(
        lambda a, b, v, x: vm.RegularGridInterpolator((a, b), v)(x), *GRID, VALUES[..., 0], PLACES
    )
    f, g = (m.RegularGridInterpolator(GRID, VALUES) for m in (vm, scipy.interpolate))
    pair = (PLACES[:, :1], PLACES[:, 1])
    close(f(pair), g(pair), 1e-7, 1e-14)
    close(f(PLACES[0]), g(PLACES[0]), 1e-7, 1e-14)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda c: vm.BSpline(KNOTS[::-1], c, 2), DOMAIN,
     "t[1] is 4.5, but must not be smaller than t[0], which is 5.0!"),
    (lambda c: vm.BSpline(KNOTS[:4], c, 2), SHAPE,
     "t has shape (4,), but must be a vector of at least 6 elements!"),
    (lambda c: vm.BSpline(0.0 * KNOTS, c, 2), DOMAIN,
     "the first or last interval has no length, but must have one!"),
    (lambda c: vm.BSpline(KNOTS, c[:3], 2), SHAPE,
     "c has shape (3, 2), but must have 5 elements along the axis!"),
    (lambda c: vm.BSpline(KNOTS, c, -1), DOMAIN, "k is -1, but must not be negative!"),
    (lambda c: vm.BSpline(KNOTS, c, 2, "no"), DOMAIN,
     "extrapolate is 'no', but must be True, False or 'periodic'!"),
    (lambda c: vm.make_interp_spline(X[:3], c[:3]), SHAPE,
     "x has 3 elements, but must have more than the degree, 3!"),
    (lambda c: vm.make_interp_spline(X[:5], c, bc_type="no"), DOMAIN,
     "bc_type is 'no', but must be None, 'not-a-knot', 'clamped', 'natural' or pairs of"),
    (lambda c: vm.make_interp_spline(X[:5], c, bc_type=([(1, 0.0)], None)), SHAPE,
     ("5 values and 1 derivatives are given, but there must be 7 of both, one for each "
     "coefficient!")),
    (lambda c: vm.make_lsq_spline(X[:5], c, CLAMPED, w=X), SHAPE,
     "w has shape (7,), but must have shape (5,), as x!"),
    (lambda c: vm.interpn(GRID, c, PLACES), SHAPE,
     "values has shape (5, 2), but must begin with (3, 4)!"),
    (lambda c: vm.interpn(GRID, VALUES, c), DOMAIN, "xi[0, 0] is "),
    (lambda c: vm.interpn(GRID, VALUES, c[0, 0]), SHAPE,
     "xi has shape (), but its last axis must have length 2!"),
    (lambda c: vm.interpn(GRID, VALUES, c, "cubic"), DOMAIN,
     "method is 'cubic', but must be 'linear' or 'nearest'!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(C - 9.0))
