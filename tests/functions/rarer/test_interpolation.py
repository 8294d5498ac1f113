"""Piecewise polynomials and cubic splines: against SciPy, polynomials that they reproduce, and
along all routes.
"""

import numpy as np
import pytest
import scipy.interpolate
from comparing import DOMAIN, SHAPE, close, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(12)
X = np.array([0.0, 0.7, 1.5, 2.0, 3.1, 4.0])
Y = RNG.normal(size=(6, 2))
Z = np.array([-0.45, 0.2, 0.71, 1.9, 3.9, 4.3])
BOUNDARIES = [
    "not-a-knot", "clamped", "natural", ((1, 0.3), (2, -0.4)), ("natural", "not-a-knot"),
    "periodic",
]  # fmt: skip


def scipys(bc, columns=2):
    """Return boundary conditions for SciPy, which needs a value for every series."""
    return (
        tuple((order, np.full(columns, value)) for order, value in bc)
        if isinstance(bc[0], tuple)
        else bc
    )


@pytest.mark.parametrize("bc", BOUNDARIES, ids=str)
def test_values_of_scipy(bc):
    for n in (2, 3, 4, 6):
        y = Y[:n].copy()
        if bc == "periodic":
            y[-1] = y[0]
        f = vm.CubicSpline(X[:n], vm.var(y), 0, bc)
        g = scipy.interpolate.CubicSpline(X[:n], y, 0, scipys(bc))
        for nu in (0, 1, 2, 3):
            close(f(Z, nu).val, g(Z, nu), 1e-7, 1e-12)


def test_methods():
    f, g = vm.CubicSpline(X, Y.T, 1), scipy.interpolate.CubicSpline(X, Y.T, 1)
    for a, b in (
        (f(Z.reshape(2, 3)), g(Z.reshape(2, 3))),
        (f(0.3), g(0.3)),
        (f.c, g.c),
        (f.derivative()(Z), g.derivative()(Z)),
        (f.derivative(4)(Z), 0.0 * g(Z)),
        (f.antiderivative(2)(Z), g.antiderivative(2)(Z)),
        (f.integrate(0.1, 3.0), g.integrate(0.1, 3.0)),
        (f.derivative(-1)(Z), g.antiderivative()(Z)),
        (f(Z, extrapolate=False), g(Z, extrapolate=False)),
    ):
        close(a, b, 1e-7, 1e-12)


def test_cubic_splines_by_all_routes():
    expect_ad(lambda x, y, z: vm.CubicSpline(x, y)(z), X[:5], Y[:5, 0], Z[:3])
    expect_ad(
        lambda x, y, v: vm.CubicSpline(x, y, bc_type=((2, v), (1, v)))(Z[:3]), X[:4], Y[:4, 0], 0.3
    )
    expect_ad(
        lambda y, z: vm.CubicSpline(X, np.append(y, y[0]), bc_type="periodic")(z),
        Y[:5, 0],
        Z[1:4] + 4.0,
    )
    expect_ad(lambda x, y: vm.CubicSpline(x, y).integrate(x[0], 2.2), X[:3], Y[:3, 0])
    expect_ad_matvar(lambda y: vm.CubicSpline(X, y)(Z), Y[:, 0])


def test_piecewise_polynomials():
    c = RNG.normal(size=(3, 5))
    expect_ad(lambda c, x, z: (
        vm.PPoly(c, x)(z, 1), vm.PPoly(c, x).antiderivative()(z), vm.PPoly(c, x)(z, 5),
    ), c, X, Z)  # fmt: skip
    expect_ad(lambda c, x, z: vm.PPoly(c, x, "periodic")(z), c, X, Z)
    expect_ad(lambda y, s: vm.CubicHermiteSpline(X, y, s)(Z), Y, Y[::-1].copy())
    for e in (True, False, "periodic"):
        close(vm.PPoly(c, X, e)(Z), scipy.interpolate.PPoly(c, X, e)(Z), 1e-7, 1e-13)
    f, g = (m.CubicHermiteSpline(X, Y, Y[::-1].copy()) for m in (vm, scipy.interpolate))
    close(f(Z), g(Z), 1e-12)


def test_local_slopes():
    for name, settings in (
        ("PchipInterpolator", {}),
        ("Akima1DInterpolator", {}),
        ("Akima1DInterpolator", {"method": "makima"}),
    ):
        for n in (3, 6):
            f, g = (getattr(m, name)(X[:n], Y[:n], **settings) for m in (vm, scipy.interpolate))
            close(f(Z), g(Z), 1e-7, 1e-13)
        # The interpolant of two points is a line, which SciPy 1.15 misses.
        line = Y[0] + np.outer((Z[1] - X[0]) / (X[1] - X[0]), Y[1] - Y[0])
        found = getattr(vm, name)(X[:2], Y[:2], **settings)(Z[1:2])
        close(found, line, 1e-7, 1e-13)
    expect_ad(
        lambda x, y, z: vm.PchipInterpolator(x, y)(z), X[:4], np.array([0.0, 1.0, 1.3, 3.0]), Z[1:4]
    )
    expect_ad(lambda x, y: vm.PchipInterpolator(x, y)(Z[:4]), X[:5], Y[:5, 0])
    expect_ad(
        lambda x, y, z: vm.Akima1DInterpolator(x, y, extrapolate=True)(z), X[:4], Y[:4, 0], Z[:3]
    )
    expect_ad(lambda y: vm.Akima1DInterpolator(X, y, method="makima")(Z[1:5]), Y)


def test_akima_of_a_straight_line_has_a_derivative():
    assert np.isfinite(vm.jacobian(lambda y: vm.Akima1DInterpolator(X, y)(Z[1:5]), 2.0 * X)).all()


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda y: vm.CubicSpline(X[::-1], y), DOMAIN,
     "x[1] is 3.1, but must be larger than x[0], which is 4.0!"),
    (lambda y: vm.CubicSpline(X[:1], y), SHAPE,
     "x has shape (1,), but must be a vector of at least 2 elements!"),
    (lambda y: vm.CubicSpline(X, y[:3]), SHAPE,
     "y has 3 elements along the axis, but must have 6, as x has!"),
    (lambda y: vm.CubicSpline(X, y, bc_type="periodic"), DOMAIN,
     "the first and the last of y differ, but must be the same for a periodic spline!"),
    (lambda y: vm.CubicSpline(X, y, bc_type="no"), DOMAIN, "bc_type is 'no', but must be of"),
    (lambda y: vm.CubicSpline(X, y, extrapolate="no"), DOMAIN,
     "extrapolate is 'no', but must be True, False or 'periodic'!"),
    (lambda y: vm.PPoly(y, X), SHAPE, "c has shape (6, 2), but must have shape (k, 5, ...)!"),
    (lambda y: vm.Akima1DInterpolator(X, y, method="no"), DOMAIN,
     "method is 'no', but must be 'akima' or 'makima'!"),
    (lambda y: vm.CubicHermiteSpline(X, y, y[:, 0]), SHAPE, "dydx must have the shape of y!"),
    (lambda y: vm.CubicSpline(X, y[0, 0]), SHAPE,
     "y is a scalar, but must have at least one axis!"),
    (lambda y: vm.PPoly(y[:, :1], X[:2], "periodic").integrate(0.0, 1.0), DOMAIN,
     "integrals of periodic extrapolations are not supported; integrate over each period!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(Y))
