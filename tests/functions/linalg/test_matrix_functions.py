"""Exponentials and powers of matrices: against 50-digit arithmetic and Stan Math, and at the
edges.
"""

import mpmath as mp
import numpy as np
import pytest
from comparing import SHAPE, close, equal, refuses_as
from functions.matrices import GENERAL, GENERALS, gradients, worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

power = np.linalg.matrix_power
NILPOTENT = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])


def exponential(a):
    return mp.expm(a, method="taylor")


EXACT = [
    *((vm.expm, exponential, a) for a in (GENERAL, -6.0 * GENERAL, 1e-3 * GENERAL, NILPOTENT)),
    (lambda a: power(a, 3), lambda a: a**3, GENERAL),
    (lambda a: power(a, -2), lambda a: a**-2, GENERAL),
]  # fmt: skip


@pytest.mark.parametrize(("f", "exact", "a"), EXACT)
def test_against_50_digits(f, exact, a):
    assert worst_error(f, exact, [a]) < 1e-13


@pytest.mark.parametrize("c", [1e4, 1e10])
def test_the_adjoint_of_expm_far_from_normal_matrices(c):
    """Scaling by the norm would square too often here. The oracle is the exponential of a block
    matrix in 60 digits.
    """
    a, w = np.array([[-1.0, c], [0.0, -1.0]]), np.array([[0.3, -0.7], [1.1, 0.4]])
    with mp.workdps(60):
        block = exponential(mp.matrix(np.block([[a.T, w], [np.zeros((2, 2)), a.T]])))
        exact = np.array((block[:2, 2:]).tolist(), dtype=float)
    found = vm.gradient(lambda a: np.sum(w * vm.expm(a)), a)
    close(found, exact, 1e-7, 1e-10 * np.abs(exact).max())


@pytest.mark.parametrize("scale", [0.05, 20.0])
def test_the_adjoint_of_expm_by_both_ways(scale):
    rng = np.random.default_rng(1)
    a, w, t = (
        scale * rng.normal(size=(2, 40, 40)),
        rng.normal(size=(2, 40, 40)),
        rng.normal(size=(2, 40, 40)),
    )
    assert np.sum(vm.gradient(lambda a: np.sum(w * vm.expm(a)), a) * t) == pytest.approx(
        vm.jvp(lambda a: np.sum(w * vm.expm(a)), (a,), (t,))[1], rel=1e-9
    )


MATRICES = [
    GENERAL, GENERALS[:, :2, :2], NILPOTENT, np.zeros((2, 2)), np.array([[0.3]]), np.empty((0, 0)),
    GENERAL.T[::-1][:2, :2],
]  # fmt: skip


@pytest.mark.parametrize("a", MATRICES)
def test_expm_by_all_routes(a):
    expect_ad(vm.expm, a)
    expect_ad_matvar(vm.expm, a)


@pytest.mark.parametrize("x", [np.nan, np.inf, 10.0])
def test_results_that_are_not_finite_have_no_derivative(x):
    a = np.stack([[[x, 1.0], [0.0, 1.0]], np.eye(2)])
    with np.errstate(over="ignore"):
        adjoint = vm.gradient(lambda a: np.sum(np.exp(vm.expm(a))), a)
    assert np.isnan(adjoint[0]).all()
    close(adjoint[1], vm.gradient(lambda a: np.sum(np.exp(vm.expm(a))), np.eye(2)), 1e-14)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 6, 7, -1, -3, np.int64(4)])
@pytest.mark.parametrize("a", [GENERAL, GENERALS, np.empty((0, 0))])
def test_powers_by_all_routes(a, n):
    expect_ad(lambda a: power(a, n), a)
    expect_ad_matvar(lambda a: power(a, n), a)


def test_the_zeroth_power_is_a_variable_without_derivative():
    _, (adjoint,) = gradients(lambda a: power(a, 0), [np.array([[np.inf, 0.0], [np.nan, 1.0]])])
    equal(adjoint, np.zeros((2, 2)))


@pytest.mark.parametrize(("f", "a", "error", "message"), [
    (vm.expm, np.ones((2, 3)), SHAPE, "a has shape (2, 3), but must be a square matrix"),
    (lambda a: power(a, 2), np.ones((2, 3)), SHAPE, "matrix_power: a has shape (2, 3)"),
    (lambda a: power(a, 0.5), GENERAL, TypeError,
     "matrix_power: n is 0.5, but must be an integer!"),
    (lambda a: power(a, -1), np.ones((2, 2)), np.linalg.LinAlgError, "inv: a is singular"),
])  # fmt: skip
def test_refusals(f, a, error, message):
    refuses_as(error, message, f, vm.var(a))


def test_matrix_power():
    equal(vm.matrix_power([[2.0, 1.0], [0.0, 1.0]], 3), [[8.0, 7.0], [0.0, 1.0]])


def test_power_may_be_the_smallest_integer_of_its_type():
    """The smallest integer has no negative of the same type."""
    close(vm.matrix_power(np.eye(1) * 1.01, np.int8(-128)), [[1.01**-128]], 1e-12)
