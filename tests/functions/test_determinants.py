"""Determinants and their logarithms: against 50-digit arithmetic and Stan Math, at singular matrices, and what they refuse."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from matrices import GENERAL, GENERALS, SPD, SPDS, fold, gradients, stan_entries, stan_error, worst_error

import varmat as vm
from varmat.functions.determinants import cofactor
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


STAN = {"determinant": vm.determinant, "log_determinant": vm.log_determinant, "log_determinant_spd": vm.log_determinant_spd}


@pytest.mark.parametrize("entry", [e for e in stan_entries("linear_algebra") if e["function"] in STAN], ids=lambda e: e["id"])
def test_against_stan(entry: Any) -> None:
    # One entry is nearly singular, with a condition of 1e10 or so.
    condition = np.linalg.cond(np.array(entry["args"][0][0]))
    error = stan_error(STAN[entry["function"]], entry, symmetric=entry["function"].endswith("spd"))
    assert error < 1e-14 * max(1.0, condition)


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
    (vm.log_determinant_spd, SPDS),
    (vm.log_determinant_spd, SPD[::-1, ::-1]),
    (vm.log_determinant_spd, np.empty((0, 0))),
]


@pytest.mark.parametrize(("f", "a"), CASES)
def test_all_routes(f: Any, a: Any) -> None:
    expect_ad(f, a)
    expect_ad_matvar(f, a)


def minors(a: Any) -> Any:
    """Cofactors by their definition."""
    n = len(a)
    return np.array([
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)]
        for i in range(n)
    ])  # fmt: skip


@pytest.mark.parametrize("a", [SINGULAR, RANK_ONE, np.zeros((3, 3)), GENERAL, SINGULAR + 1e-13 * np.eye(3)])
def test_the_gradient_is_the_cofactors_also_where_singular(a: Any) -> None:
    for stacked in (False, True):
        _, (adjoint,) = gradients(det, [a[None] if stacked else a], [np.array([1.0]) if stacked else 1.0])
        np.testing.assert_allclose(adjoint.reshape(3, 3), minors(a), rtol=0, atol=4e-15 * np.linalg.norm(a) ** 2)


def test_second_derivative_at_a_singular_matrix() -> None:
    # Of det([[a, b], [c, d]]) = a d - b c it is constant.
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
    np.testing.assert_allclose(spd, fold(general), rtol=0, atol=tolerance * np.max(np.abs(spd)))


@pytest.mark.parametrize(("f", "name"), [(det, "det"), (slogdet, "slogdet"), (vm.log_determinant_spd, "log_determinant_spd")])
def test_refusals(f: Any, name: str) -> None:
    with pytest.raises(vm.ShapeError, match=rf"{name}: a has shape \(2, 3\), but must be a square matrix"):
        f(vm.var(np.ones((2, 3))))


def test_not_positive_definite() -> None:
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    message = "log_determinant_spd: a has the eigenvalue -1, but must be positive definite!"
    for argument in (a, vm.var(a)):
        with pytest.raises(vm.DomainError, match=message) as caught:
            vm.log_determinant_spd(argument)
        assert isinstance(caught.value, np.linalg.LinAlgError)
        assert caught.value.is_recoverable


def test_names() -> None:
    from varmat.functions import determinants

    assert vm.determinant is determinants.det
    assert slogdet(vm.var(GENERAL))._fields == ("sign", "logabsdet")
