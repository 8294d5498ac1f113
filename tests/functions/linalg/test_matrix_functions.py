"""Exponentials and powers of matrices: against 50-digit arithmetic and Stan Math, and at the
edges.
"""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import stan
from functions.matrices import GENERAL, GENERALS, gradients, stan_entries, worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

power = np.linalg.matrix_power
NILPOTENT = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])


def exponential(a: Any) -> Any:
    return mp.expm(a, method="taylor")


EXACT: dict[str, tuple[Any, Any, Any]] = {
    "expm": (vm.expm, exponential, GENERAL),
    "expm of a large matrix": (vm.expm, exponential, -6.0 * GENERAL),
    "expm of a small matrix": (vm.expm, exponential, 1e-3 * GENERAL),
    "expm of a nilpotent matrix": (vm.expm, exponential, NILPOTENT),
    "cube": (lambda a: power(a, 3), lambda a: a**3, GENERAL),
    "inverse square": (lambda a: power(a, -2), lambda a: a**-2, GENERAL),
}


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name: str) -> None:
    f, exact, a = EXACT[name]
    assert worst_error(f, exact, [a]) < 1e-13


@pytest.mark.parametrize("c", [1e4, 1e10])
def test_the_adjoint_of_expm_far_from_normal_matrices(c: float) -> None:
    """Scaling by the norm would square too often here. The oracle is the exponential of a block
    matrix in 60 digits.
    """
    a, w = np.array([[-1.0, c], [0.0, -1.0]]), np.array([[0.3, -0.7], [1.1, 0.4]])
    with mp.workdps(60):
        block = exponential(mp.matrix(np.block([[a.T, w], [np.zeros((2, 2)), a.T]])))
        exact = np.array((block[:2, 2:]).tolist(), dtype=float)
    found = vm.gradient(lambda a: np.sum(w * vm.expm(a)), a)
    np.testing.assert_allclose(found, exact, atol=1e-10 * np.abs(exact).max())


@pytest.mark.parametrize("scale", [0.05, 20.0])
def test_the_adjoint_of_expm_by_both_ways(scale: float) -> None:
    rng = np.random.default_rng(1)
    a, w, t = (
        scale * rng.normal(size=(2, 40, 40)),
        rng.normal(size=(2, 40, 40)),
        rng.normal(size=(2, 40, 40)),
    )
    assert np.sum(vm.gradient(lambda a: np.sum(w * vm.expm(a)), a) * t) == pytest.approx(
        vm.jvp(lambda a: np.sum(w * vm.expm(a)), (a,), (t,))[1], rel=1e-9
    )


STAN = ("matrix_exp", "matrix_power")


@pytest.mark.parametrize("entry", stan_entries(STAN))
def test_against_stan(entry: Any) -> None:
    stan.check(getattr(vm, entry["function"]), entry, rtol=1e-13)


@pytest.mark.parametrize("entry", stan_entries(STAN, throws=True))
def test_what_stan_refuses(entry: Any) -> None:
    with pytest.raises(vm.ShapeError, match="must be a square matrix"):
        getattr(vm, entry["function"])(*stan.arguments(entry))


MATRICES = [
    GENERAL, GENERALS[:, :2, :2], NILPOTENT, np.zeros((2, 2)), np.array([[0.3]]), np.empty((0, 0)),
    GENERAL.T[::-1][:2, :2],
]  # fmt: skip


@pytest.mark.parametrize("a", MATRICES)
def test_expm_by_all_routes(a: Any) -> None:
    expect_ad(vm.expm, a)
    expect_ad_matvar(vm.expm, a)


@pytest.mark.parametrize("x", [np.nan, np.inf, 10.0])
def test_results_that_are_not_finite_have_no_derivative(x: float) -> None:
    a = np.stack([[[x, 1.0], [0.0, 1.0]], np.eye(2)])
    with np.errstate(over="ignore"):
        adjoint = vm.gradient(lambda a: np.sum(np.exp(vm.expm(a))), a)
    assert np.isnan(adjoint[0]).all()
    np.testing.assert_allclose(
        adjoint[1], vm.gradient(lambda a: np.sum(np.exp(vm.expm(a))), np.eye(2)), rtol=1e-14
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 6, 7, -1, -3, np.int64(4)])
@pytest.mark.parametrize("a", [GENERAL, GENERALS, np.empty((0, 0))])
def test_powers_by_all_routes(a: Any, n: int) -> None:
    expect_ad(lambda a: power(a, n), a)
    expect_ad_matvar(lambda a: power(a, n), a)


def test_the_zeroth_power_is_a_variable_without_derivative() -> None:
    _, (adjoint,) = gradients(lambda a: power(a, 0), [np.array([[np.inf, 0.0], [np.nan, 1.0]])])
    np.testing.assert_array_equal(adjoint, np.zeros((2, 2)))


@pytest.mark.parametrize(("f", "a", "error", "message"), [
    (vm.expm, np.ones((2, 3)), vm.ShapeError,
        r"expm: a has shape \(2, 3\), but must be a square matrix"),
    (lambda a: power(a, 2), np.ones((2, 3)), vm.ShapeError, r"matrix_power: a has shape \(2, 3\)"),
    (lambda a: power(a, 0.5), GENERAL, TypeError,
        "matrix_power: n is 0.5, but must be an integer!"),
    (lambda a: power(a, -1), np.ones((2, 2)), np.linalg.LinAlgError, "inv: a is singular"),
])  # fmt: skip
def test_refusals(f: Any, a: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        f(vm.var(a))


def test_matrix_power() -> None:
    np.testing.assert_array_equal(
        vm.matrix_power([[2.0, 1.0], [0.0, 1.0]], 3), [[8.0, 7.0], [0.0, 1.0]]
    )


def test_power_may_be_the_smallest_integer_of_its_type():
    """The smallest integer has no negative of the same type."""
    np.testing.assert_allclose(
        vm.matrix_power(np.eye(1) * 1.01, np.int8(-128)), [[1.01**-128]], rtol=1e-12
    )
