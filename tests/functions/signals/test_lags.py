"""Autocovariances, quadratic forms with an inverse, triangular systems, the inverse of softmax."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import recordings
import stan

import varmat as vm
from varmat.functions.signals.lags import causal_convolution, lagged_products
from varmat.testing import coverage, expect_ad, expect_ad_matvar

Y = np.array([1.0, 2.0, 1.5, 0.3, -0.4, 0.7, 1.1])
S = np.array([[2.0, 0.5, -0.3], [0.5, 1.5, 0.2], [-0.3, 0.2, 1.1]])
G = np.array([[1.2, -0.7, 0.3], [0.4, 2.1, -0.5], [0.9, 0.2, -1.4]])
B = np.array([[1.0, 0.2], [-0.5, 1.7], [0.3, -0.9]])
D = np.array([[2.0, 0.5], [0.1, 1.0]])
THETA = np.array([0.2, 0.5, 0.3])


def both(a: Any) -> Any:
    """Return the symmetric part of `a`."""
    return 0.5 * (a + np.matrix_transpose(a))


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "autocovariance": (vm.autocovariance, (Y,)),
    "autocorrelation": (vm.autocorrelation, (Y,)),
    "lagged products": (lagged_products, (Y, Y[::-1] ** 2)),
    "convolution": (causal_convolution, (Y, Y[::-1] ** 2)),
    "inverse_softmax": (lambda x: vm.inverse_softmax(vm.softmax(x)), (Y,)),
    "mdivide_left_tri": (vm.mdivide_left_tri, (G, B)),
    "mdivide_left_tri upper": (lambda a, b: vm.mdivide_left_tri(a, b, lower=False), (G, B[:, 0])),
    "mdivide_right_tri": (vm.mdivide_right_tri, (B.T, G)),
    "mdivide_right_tri upper": (lambda b, a: vm.mdivide_right_tri(b, a, lower=False), (B[:, 0], G)),
    "trace_inv_quad_form_ldlt": (lambda a, b: vm.trace_inv_quad_form_ldlt(both(a), b), (S, B)),
    "trace_inv_quad_form_ldlt of a vector": (
        lambda a, b: vm.trace_inv_quad_form_ldlt(both(a), b),
        (S, B[:, 0]),
    ),
    "trace_inv_quad_form_ldlt of a stack": (
        lambda a, b: vm.trace_inv_quad_form_ldlt(both(a), b),
        (np.stack([S, 2.0 * S]), B),
    ),
    "trace_gen_inv_quad_form_ldlt": (
        lambda d, a, b: vm.trace_gen_inv_quad_form_ldlt(d, both(a), b),
        (D, S, B),
    ),
}


@pytest.mark.parametrize(("f", "args"), CASES.values(), ids=CASES)
def test_all_routes(f: Any, args: Any) -> None:
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


@pytest.mark.parametrize(
    "entry", [each for each in stan.entries("series_and_forms") if not each.id.startswith("hyper")]
)
def test_stan(entry: Any) -> None:
    f, name = getattr(vm, entry["function"]), entry["function"]
    if entry.get("note") == "upper triangle":
        stan.check(lambda a, b: f(a, b, lower=False), entry, rtol=1e-14)
    else:
        stan.check(f, entry, rtol=1e-13, fold=stan.lower if name.endswith("_ldlt") else None)


@pytest.mark.parametrize("n", [1, 2, 5, 63, 64, 65])
def test_autocovariances_are_sums_of_products(n: int) -> None:
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
        np.testing.assert_allclose(vm.autocorrelation(y), found / found[0], rtol=1e-15)


def test_long_series() -> None:
    """The time does not grow with the square of the length."""
    y = np.sin(np.arange(2e5))
    value, gradient = vm.value_and_grad(lambda y: np.sum(vm.autocovariance(y)[:3]))(y)
    assert value == pytest.approx(0.5 * (1.0 + np.cos(1.0) + np.cos(2.0)), rel=1e-4)
    c, n = np.pad(y - np.mean(y), 2), y.size
    expected = 2.0 * c[2:-2] / n + (c[3:-1] + c[1:-3]) / (n - 1) + (c[4:] + c[:-4]) / (n - 2)
    np.testing.assert_allclose(gradient, expected - np.mean(expected), rtol=1e-8, atol=1e-16)
    assert np.isnan(vm.autocorrelation(np.ones(3))).all()


def test_values_of_quadratic_forms_and_systems() -> None:
    x = np.linalg.solve(S, B)
    assert vm.trace_inv_quad_form_ldlt(S, B) == pytest.approx(np.trace(B.T @ x), rel=1e-14)
    assert vm.trace_gen_inv_quad_form_ldlt(D, S, B) == pytest.approx(
        np.trace(D @ B.T @ x), rel=1e-14
    )
    np.testing.assert_allclose(
        vm.mdivide_left_tri(G, B), np.linalg.solve(np.tril(G), B), rtol=1e-13
    )
    np.testing.assert_allclose(
        vm.mdivide_right_tri(B.T, G, lower=False) @ np.triu(G), B.T, rtol=1e-13
    )


def test_inverse_softmax() -> None:
    np.testing.assert_allclose(vm.softmax(vm.inverse_softmax(THETA)), THETA, rtol=1e-15)
    np.testing.assert_array_equal(vm.inverse_softmax([0.0, 1.0]), [-np.inf, 0.0])
    recordings.agree(lambda x: np.sum(vm.inverse_softmax(vm.softmax(x)) ** 2), (Y,), (Y[::-1],))


REFUSALS: dict[str, tuple[Any, type[Exception], str]] = {
    "series": (lambda: vm.autocovariance(G), vm.ShapeError,
        r"autocovariance: y has shape \(3, 3\), but must be a vector that"),
    "empty": (lambda: vm.autocorrelation([]), vm.ShapeError,
        r"autocorrelation: y has shape \(0,\), but must be a"),
    "nan": (lambda: vm.autocovariance([1.0, np.nan]), vm.DomainError,
        r"autocovariance: y\[1\] is nan, but must be finite!"),
    "negative": (lambda: vm.inverse_softmax([1.5, -0.5]), vm.DomainError,
        r"inverse_softmax: theta\[1\] is -0.5, but must"),
    "sum": (lambda: vm.inverse_softmax([0.5, 0.4]), vm.DomainError,
        r"inverse_softmax: sum\(theta\) is 0.9, but must be 1"),
    "no vector": (lambda: vm.inverse_softmax(1.0), vm.ShapeError,
        r"inverse_softmax: theta has shape \(\), but must be a vector"),
    "left": (lambda: vm.mdivide_left_tri(G, B.T), vm.ShapeError,
        r"mdivide_left_tri: b has shape \(2, 3\), but must have 3 rows"),
    "right": (lambda: vm.mdivide_right_tri(B, G), vm.ShapeError,
        r"mdivide_right_tri: b has shape \(3, 2\), but must have 3"),
    "singular": (lambda: vm.mdivide_left_tri(0.0 * G, B), vm.DomainError,
        r"mdivide_left_tri: a\[0, 0\] is 0.0, but must be"),
    "right, singular": (lambda: vm.mdivide_right_tri(B.T, 0.0 * G), vm.DomainError,
        r"mdivide_right_tri: a\[0, 0\] is 0.0, but must be nonzero!"),
    "not square": (lambda: vm.trace_inv_quad_form_ldlt(B, B), vm.ShapeError,
        r"trace_inv_quad_form_ldlt: a has shape \(3, 2\)"),
    "asymmetric": (lambda: vm.trace_inv_quad_form_ldlt(G, B), vm.DomainError,
        r"trace_inv_quad_form_ldlt: "),
    "not definite": (lambda: vm.trace_gen_inv_quad_form_ldlt(D, -S, B), vm.DomainError,
        r"trace_gen_inv_quad_form_ldlt: "),
    "columns": (lambda: vm.trace_gen_inv_quad_form_ldlt(S, S, B), vm.ShapeError,
        (r"trace_gen_inv_quad_form_ldlt: b has shape \(3, 2\), but must have 3 columns and match "
        r"d, of shape \(3, 3\)!")),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        call()
