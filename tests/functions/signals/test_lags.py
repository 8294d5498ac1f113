"""Autocovariances, quadratic forms with an inverse, triangular systems, the inverse of softmax."""

import mpmath
import numpy as np
import pytest
import recordings
import stan
from comparing import DOMAIN, SHAPE, close, equal, refuses_as

import varmat as vm
from varmat.functions.signals.lags import causal_convolution, lagged_products
from varmat.testing import coverage, expect_ad, expect_ad_matvar

Y = np.array([1.0, 2.0, 1.5, 0.3, -0.4, 0.7, 1.1])
S = np.array([[2.0, 0.5, -0.3], [0.5, 1.5, 0.2], [-0.3, 0.2, 1.1]])
G = np.array([[1.2, -0.7, 0.3], [0.4, 2.1, -0.5], [0.9, 0.2, -1.4]])
B = np.array([[1.0, 0.2], [-0.5, 1.7], [0.3, -0.9]])
D = np.array([[2.0, 0.5], [0.1, 1.0]])
THETA = np.array([0.2, 0.5, 0.3])


def of_symmetric(a, b, d=None):
    a = 0.5 * (a + np.matrix_transpose(a))
    if d is None:
        return vm.trace_inv_quad_form_ldlt(a, b)
    return vm.trace_gen_inv_quad_form_ldlt(d, a, b)


CASES = [
    (vm.autocovariance, (Y,)), (vm.autocorrelation, (Y,)),
    (lagged_products, (Y, Y[::-1] ** 2)), (causal_convolution, (Y, Y[::-1] ** 2)),
    (lambda x: vm.inverse_softmax(vm.softmax(x)), (Y,)), (vm.mdivide_left_tri, (G, B)),
    (lambda a, b: vm.mdivide_left_tri(a, b, lower=False), (G, B[:, 0])),
    (vm.mdivide_right_tri, (B.T, G)),
    (lambda b, a: vm.mdivide_right_tri(b, a, lower=False), (B[:, 0], G)),
    (of_symmetric, (S, B)), (of_symmetric, (S, B[:, 0])), (of_symmetric, (S, B, D)),
    (of_symmetric, (np.stack([S, 2.0 * S]), B)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), CASES)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


@pytest.mark.parametrize(
    "entry", [each for each in stan.entries("series_and_forms") if not each.id.startswith("hyper")]
)
def test_stan(entry):
    f, name = getattr(vm, entry["function"]), entry["function"]
    if entry.get("note") == "upper triangle":
        stan.check(lambda a, b: f(a, b, lower=False), entry, rtol=1e-14)
    else:
        stan.check(f, entry, rtol=1e-13, fold=stan.lower if name.endswith("_ldlt") else None)


@pytest.mark.parametrize("n", [1, 2, 5, 63, 64, 65])
def test_autocovariances_are_sums_of_products(n):
    rng = np.random.default_rng(n)
    y = rng.normal(size=n) + 30.0
    with mpmath.workdps(50):
        mean = mpmath.fsum(map(mpmath.mpf, y)) / n
        d = [mpmath.mpf(x) - mean for x in y]
        exact = [
            float(mpmath.fsum(d[i] * d[i + k] for i in range(n - k)) / (n - k)) for k in range(n)
        ]
        scale = float(d[0] ** 2 if n == 1 else mpmath.fsum(x * x for x in d) / n)
    found = vm.autocovariance(y)
    # The error is relative to the largest sum, because the sums of large lags cancel. The mean is
    # rounded too.
    error = np.max(np.abs((found - exact) * (n - np.arange(n)) / n)) / max(scale, 1.0)
    assert error < 1e-13
    coverage.note(vm.autocovariance, mpmath=float(error))
    if n > 1:
        close(vm.autocorrelation(y), found / found[0], 1e-15)


def test_long_series():
    """The time does not grow with the square of the length."""
    y = np.sin(np.arange(2e5))
    value, gradient = vm.value_and_grad(lambda y: np.sum(vm.autocovariance(y)[:3]))(y)
    assert value == pytest.approx(0.5 * (1.0 + np.cos(1.0) + np.cos(2.0)), rel=1e-4)
    c, n = np.pad(y - np.mean(y), 2), y.size
    expected = 2.0 * c[2:-2] / n + (c[3:-1] + c[1:-3]) / (n - 1) + (c[4:] + c[:-4]) / (n - 2)
    close(gradient, expected - np.mean(expected), 1e-8, 1e-16)
    assert np.isnan(vm.autocorrelation(np.ones(3))).all()


def test_values_of_quadratic_forms_and_systems():
    x = np.linalg.solve(S, B)
    close(vm.trace_inv_quad_form_ldlt(S, B), np.trace(B.T @ x), 1e-14)
    close(vm.trace_gen_inv_quad_form_ldlt(D, S, B), np.trace(D @ B.T @ x), 1e-14)
    close(np.tril(G) @ vm.mdivide_left_tri(G, B), B, 1e-13)
    close(vm.mdivide_right_tri(B.T, G, lower=False) @ np.triu(G), B.T, 1e-13)


def test_inverse_softmax():
    close(vm.softmax(vm.inverse_softmax(THETA)), THETA, 1e-15)
    equal(vm.inverse_softmax([0.0, 1.0]), [-np.inf, 0.0])
    recordings.agree(lambda x: np.sum(vm.inverse_softmax(vm.softmax(x)) ** 2), (Y,), (Y[::-1],))


REFUSALS = [
    (lambda: vm.autocovariance(G), SHAPE, "y has shape (3, 3), but must be a vector that"),
    (lambda: vm.autocorrelation([]), SHAPE, "y has shape (0,), but must be a"),
    (lambda: vm.autocovariance([1.0, np.nan]), DOMAIN, "y[1] is nan, but must be finite!"),
    (lambda: vm.inverse_softmax([1.5, -0.5]), DOMAIN, "theta[1] is -0.5, but must be nonnegative!"),
    (lambda: vm.inverse_softmax([0.5, 0.4]), DOMAIN, "sum(theta) is 0.9, but must be 1"),
    (lambda: vm.inverse_softmax(1.0), SHAPE, "theta has shape (), but must be a vector"),
    (lambda: vm.mdivide_left_tri(G, B.T), SHAPE, "b has shape (2, 3), but must have 3 rows"),
    (lambda: vm.mdivide_right_tri(B, G), SHAPE, "b has shape (3, 2), but must have 3"),
    (lambda: vm.mdivide_left_tri(0.0 * G, B), DOMAIN, "a[0, 0] is 0.0, but must be nonzero!"),
    (lambda: vm.mdivide_right_tri(B.T, 0.0 * G), DOMAIN, "a[0, 0] is 0.0, but must be nonzero!"),
    (lambda: vm.trace_inv_quad_form_ldlt(B, B), SHAPE, "a has shape (3, 2)"),
    (lambda: vm.trace_inv_quad_form_ldlt(G, B), DOMAIN, "trace_inv_quad_form_ldlt: "),
    (lambda: vm.trace_gen_inv_quad_form_ldlt(D, -S, B), DOMAIN, "trace_gen_inv_quad_form_ldlt: "),
    (lambda: vm.trace_gen_inv_quad_form_ldlt(S, S, B), SHAPE,
     "b has shape (3, 2), but must have 3 columns and match d, of shape (3, 3)!"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS)
def test_refusals(call, error, text):
    refuses_as(error, text, call)
