"""Determinants and their logarithms: against 50-digit arithmetic and Stan Math, at singular
matrices, and refusals.
"""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import stan
from functions.matrices import (
    GENERAL,
    GENERALS,
    LARGES,
    SPD,
    SPDS,
    gradients,
    stan_entries,
    symmetric,
    worst_error,
)

import varmat as vm
from varmat.functions.linalg.determinants import cofactor
from varmat.testing import expect_ad, expect_ad_matvar

det, slogdet = np.linalg.det, np.linalg.slogdet


def log_abs(a: Any) -> Any:
    return mp.log(abs(mp.det(a)))


EXACT: dict[str, tuple[Any, Any, Any, bool]] = {
    "det": (det, mp.det, [GENERAL], False),
    "negative det": (det, mp.det, [GENERAL[::-1].copy()], False),
    "log_determinant": (vm.log_determinant, log_abs, [-GENERAL], False),
    "log_determinant_spd": (vm.log_determinant_spd, log_abs, [SPD], True),
    "cofactor": (cofactor, lambda a: mp.det(a) * (a**-1).T, [GENERAL], False),
}


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name: str) -> None:
    f, exact, args, symmetric = EXACT[name]
    assert worst_error(f, exact, args, symmetric) < 1e-14


STAN = ("determinant", "log_determinant", "log_determinant_ldlt", "log_determinant_spd", "trace")


@pytest.mark.parametrize("entry", stan_entries(STAN))
def test_against_stan(entry: Any) -> None:
    # One entry is nearly singular, with a condition number of about 1e7.
    condition = np.linalg.cond(stan.arguments(entry)[0])
    fold = stan.lower if entry["function"].endswith(("spd", "ldlt")) else None
    stan.check(getattr(vm, entry["function"]), entry, rtol=1e-14 * max(1.0, condition), fold=fold)


@pytest.mark.parametrize("entry", stan_entries(STAN, throws=True))
def test_what_stan_refuses(entry: Any) -> None:
    (a,) = stan.arguments(entry)
    with pytest.raises(
        vm.ShapeError if a.shape[0] != a.shape[1] else vm.DomainError,
        match=r": a(\[0, 1\] is| has shape)",
    ):
        getattr(vm, entry["function"])(a)


SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
RANK_ONE = np.outer([1.0, -2.0, 0.5], [2.0, 1.0, 1.0])

CASES: list[tuple[Any, Any]] = [
    (det, GENERAL),
    (det, GENERALS),
    (det, SINGULAR),
    (det, np.zeros((3, 3))),
    (det, np.stack([SINGULAR, GENERAL])),
    (det, np.array([[3.0]])),
    (det, np.array([[0.0]])),
    (det, np.empty((0, 0))),
    (det, np.empty((2, 0, 0))),
    (cofactor, GENERAL),
    (cofactor, GENERALS),
    (cofactor, np.empty((0, 0))),
    (lambda a: tuple(slogdet(a)), GENERAL),
    (lambda a: slogdet(a).logabsdet, -GENERALS),
    (lambda a: slogdet(a).logabsdet, np.empty((0, 0))),
    (lambda a: slogdet(a).sign, GENERALS),
    (vm.log_determinant, np.array([[-2.0]])),
    (symmetric(vm.log_determinant_spd), SPDS),
    (symmetric(vm.log_determinant_spd), SPD[::-1, ::-1]),
    (vm.trace, GENERAL),
    (vm.trace, GENERALS),
    (vm.log_determinant_spd, np.empty((0, 0))),
]


@pytest.mark.parametrize(("f", "a"), CASES)
def test_all_routes(f: Any, a: Any) -> None:
    expect_ad(f, a)
    expect_ad_matvar(f, a)


def minors(a: Any) -> Any:
    """Return the cofactors by their definition."""
    n = len(a)
    return np.array(
        [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)]
            for i in range(n)
        ]
    )


@pytest.mark.parametrize(
    "a", [SINGULAR, RANK_ONE, np.zeros((3, 3)), GENERAL, SINGULAR + 1e-13 * np.eye(3)]
)
def test_the_gradient_is_the_cofactors_also_where_singular(a: Any) -> None:
    for stacked in (False, True):
        _, (adjoint,) = gradients(
            det, [a[None] if stacked else a], [np.array([1.0]) if stacked else 1.0]
        )
        np.testing.assert_allclose(
            adjoint.reshape(3, 3), minors(a), rtol=0, atol=4e-15 * np.linalg.norm(a) ** 2
        )


HALVES = np.repeat([1e-2, 1e2], 200)
BEYOND: list[tuple[Any, float]] = [
    (np.diag(HALVES), 1.0),
    (np.diag(HALVES[::-1]), 1.0),
    (np.diag(np.repeat([1e-2, 1e2], [161, 200])), 1e78),
    (1e-160 * np.eye(2), 1e-320),
    (1e-200 * np.eye(2), 0.0),
    (1e160 * np.eye(2), np.inf),
    (1e160 * np.eye(2)[None], np.inf),
]


@pytest.mark.parametrize(("a", "expected"), BEYOND)
def test_products_that_leave_the_range_of_a_float(a: Any, expected: float) -> None:
    with np.errstate(over="ignore"):
        (value,), (adjoint,) = gradients(det, [a], [np.ones(a.shape[:-2]) if a.ndim > 2 else 1.0])
    first = a if a.ndim == 2 else a[0]
    np.testing.assert_allclose(np.ravel(value)[0], expected, rtol=1e-12)
    others = [np.exp(np.sum(np.log(np.delete(np.diag(first), i)))) for i in (0, -1)]
    np.testing.assert_allclose(
        adjoint.reshape(-1, *first.shape)[0][[0, -1], [0, -1]], others, rtol=1e-12
    )


def test_nan_beside_a_singular_matrix() -> None:
    a = np.stack([np.full((3, 3), np.nan), SINGULAR])
    with np.errstate(invalid="ignore"):
        _, (adjoint,) = gradients(det, [a], [np.ones(2)])
    assert np.isnan(adjoint[0]).all()
    np.testing.assert_allclose(adjoint[1], minors(SINGULAR), rtol=0, atol=1e-13)


def test_second_derivative_at_a_singular_matrix() -> None:
    # The second derivative of det([[a, b], [c, d]]) = a d - b c is constant.
    _, (adjoint,) = gradients(cofactor, [np.zeros((2, 2))], [np.array([[1.0, 2.0], [3.0, 4.0]])])
    np.testing.assert_allclose(adjoint, [[4.0, -3.0], [-2.0, 1.0]], rtol=1e-15)


@pytest.mark.parametrize("a", [SINGULAR, SINGULAR[None], np.stack([GENERAL, SINGULAR])])
def test_log_of_zero(a: Any) -> None:
    (value,), (adjoint,) = gradients(vm.log_determinant, [a])
    assert np.ravel(value)[-1] == -np.inf
    assert np.isnan(adjoint[(-1,) * (a.ndim - 2)]).all()
    if len(a) == 2:
        assert np.isfinite(adjoint[0]).all()


def test_the_sign_has_no_derivative() -> None:
    _, (adjoint,) = gradients(lambda a: slogdet(a).sign, [GENERAL])
    np.testing.assert_array_equal(adjoint, np.zeros((3, 3)))


def test_nothing_overflows_in_the_logarithm() -> None:
    a = 1e200 * GENERAL
    with np.errstate(over="ignore"):
        assert det(a) == np.inf
    _, (adjoint,) = gradients(vm.log_determinant, [a], [1.0])
    np.testing.assert_allclose(adjoint, np.linalg.inv(GENERAL).T / 1e200, rtol=1e-13)


def test_hilbert() -> None:
    a = 1.0 / (np.arange(8)[:, None] + np.arange(8) + 1.0)
    tolerance = 10 * np.linalg.cond(a) * np.finfo(float).eps
    assert worst_error(vm.log_determinant, log_abs, [a]) < tolerance
    assert worst_error(vm.log_determinant_spd, log_abs, [a], symmetric=True) < tolerance
    _, (general,) = gradients(vm.log_determinant, [a])
    _, (spd,) = gradients(vm.log_determinant_spd, [a])
    np.testing.assert_allclose(
        spd, stan.lower(general), rtol=0, atol=tolerance * np.max(np.abs(spd))
    )


@pytest.mark.parametrize(
    "f", [vm.determinant, lambda a: slogdet(a).logabsdet, vm.log_determinant_spd]
)
def test_stacks_of_large_matrices(f: Any) -> None:
    # Large matrices of a stack are factorised one by one.
    (values,), (adjoint,) = gradients(f, [LARGES], [np.ones(LARGES.shape[:-2])])
    for index in np.ndindex(LARGES.shape[:-2]):
        (value,), (one,) = gradients(f, [LARGES[index]], [1.0])
        np.testing.assert_allclose(values[index], value, rtol=1e-13)
        np.testing.assert_allclose(adjoint[index], one, rtol=0, atol=1e-13 * np.max(np.abs(one)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sign_of_larger_matrices(sign: float) -> None:
    a = LARGES[0, 0][::-1].copy()
    a[0] *= sign
    np.testing.assert_array_equal(vm.value(slogdet(vm.var(a)).sign), np.linalg.slogdet(a)[0])
    np.testing.assert_allclose(vm.determinant(a), np.linalg.det(a), rtol=1e-12)
    stacked = slogdet(vm.var(np.stack([a, np.zeros_like(a), np.full_like(a, np.nan)])))
    np.testing.assert_array_equal(vm.value(stacked.sign), [np.linalg.slogdet(a)[0], 0.0, np.nan])


@pytest.mark.parametrize(
    ("f", "name"),
    [(det, "det"), (slogdet, "slogdet"), (vm.log_determinant_spd, "log_determinant_spd")],
)
def test_refusals(f: Any, name: str) -> None:
    with pytest.raises(
        vm.ShapeError, match=rf"{name}: a has shape \(2, 3\), but must be a square matrix"
    ):
        f(vm.var(np.ones((2, 3))))


def test_the_trace_of_a_rectangle() -> None:
    x = np.arange(12.0).reshape(2, 2, 3)
    expect_ad(vm.trace, x[0])
    expect_ad(vm.trace, x)
    expect_ad(lambda a: vm.trace(a.T), x[1])
    assert vm.trace(x).tolist() == [4.0, 16.0]
    with pytest.raises(
        vm.ShapeError,
        match=r"^trace: a has shape \(3,\), but must be a matrix \(or a stack of them\)!",
    ):
        vm.trace(x[0, 0])


def test_not_positive_definite() -> None:
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    message = "log_determinant_spd: a has the eigenvalue -1, but must be positive definite!"
    for argument in (a, vm.var(a)):
        with pytest.raises(vm.DomainError, match=message) as caught:
            vm.log_determinant_spd(argument)
        assert isinstance(caught.value, np.linalg.LinAlgError)
        assert caught.value.is_recoverable


def test_not_symmetric() -> None:
    message = (
        r"log_determinant_spd: a\[0, 1\] is 0.5, but must be 0.1, as a\[1, 0\] is, for a "
        r"symmetric matrix!"
    )
    with pytest.raises(vm.DomainError, match=message):
        vm.log_determinant_spd(vm.var([[2.0, 0.5], [0.1, 1.0]]))


def test_names_of_results() -> None:
    assert slogdet(vm.var(GENERAL))._fields == ("sign", "logabsdet")


def test_second_derivatives_where_products_of_some_singular_values_overflow() -> None:
    a, e = np.diag([1e8] * 40 + [1e-8] * 40), np.zeros((80, 80))
    e[0, 0] = 1.0
    product = vm.hessian_times_vector(det, a, e)
    np.testing.assert_allclose(
        product, np.diag([0.0] + [1e-16] * 39 + [1.0] * 40), rtol=1e-12, atol=1e-20
    )


@pytest.mark.parametrize("f", [vm.log_determinant, lambda a: np.linalg.slogdet(a).logabsdet])
def test_a_singular_matrix_does_not_spoil_others_of_the_stack(f: Any) -> None:
    stack = np.stack([np.zeros((2, 2)), np.array([[2.0, 1.0], [0.0, 4.0]])])
    second = lambda a: f(a)[1]  # noqa: E731
    assert vm.jvp(second, (stack,), (np.ones((2, 2, 2)),))[1] == pytest.approx(0.625, rel=1e-14)
    np.testing.assert_allclose(
        vm.hessian(second, stack)[1, :, :, 1], vm.hessian(f, stack[1]), rtol=1e-14
    )
