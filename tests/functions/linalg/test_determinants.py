"""Determinants and their logarithms: against 50-digit arithmetic and Stan Math, at singular
matrices, and refusals.
"""

import mpmath as mp
import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses_as
from functions.matrices import (
    GENERAL,
    GENERALS,
    LARGES,
    SPD,
    SPDS,
    gradients,
    symmetric,
    worst_error,
)

import varmat as vm
from varmat.functions.linalg.determinants import cofactor
from varmat.testing import expect_ad, expect_ad_matvar

det, slogdet = np.linalg.det, np.linalg.slogdet


def log_abs(a):
    return mp.log(abs(mp.det(a)))


EXACT = {
    "det": (det, mp.det, [GENERAL], False),
    "negative det": (det, mp.det, [GENERAL[::-1].copy()], False),
    "log_determinant": (vm.log_determinant, log_abs, [-GENERAL], False),
    "log_determinant_spd": (vm.log_determinant_spd, log_abs, [SPD], True),
    "cofactor": (cofactor, lambda a: mp.det(a) * (a**-1).T, [GENERAL], False),
}


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, args, symmetric = EXACT[name]
    assert worst_error(f, exact, args, symmetric) < 1e-14


SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
RANK_ONE = np.outer([1.0, -2.0, 0.5], [2.0, 1.0, 1.0])

CASES = [
    *((det, a) for a in (
        GENERAL, GENERALS, SINGULAR, np.zeros((3, 3)), np.stack([SINGULAR, GENERAL]),
        np.array([[3.0]]), np.array([[0.0]]), np.empty((0, 0)), np.empty((2, 0, 0)),
    )),
    (cofactor, GENERAL), (cofactor, GENERALS), (cofactor, np.empty((0, 0))),
    (lambda a: tuple(slogdet(a)), GENERAL), (lambda a: slogdet(a).logabsdet, -GENERALS),
    (lambda a: slogdet(a).logabsdet, np.empty((0, 0))), (lambda a: slogdet(a).sign, GENERALS),
    (vm.log_determinant, np.array([[-2.0]])), (symmetric(vm.log_determinant_spd), SPDS),
    (symmetric(vm.log_determinant_spd), SPD[::-1, ::-1]),
    (vm.log_determinant_spd, np.empty((0, 0))), (vm.trace, GENERAL), (vm.trace, GENERALS),
]  # fmt: skip


@pytest.mark.parametrize(("f", "a"), CASES)
def test_all_routes(f, a):
    expect_ad(f, a)
    expect_ad_matvar(f, a)


def minors(a):
    """Return the cofactors by their definition."""
    return np.array([[
        (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)
    ] for i in range(3)])  # fmt: skip


@pytest.mark.parametrize("a", [
    SINGULAR, RANK_ONE, np.zeros((3, 3)), GENERAL, SINGULAR + 1e-13 * np.eye(3),
])  # fmt: skip
def test_the_gradient_is_the_cofactors_also_where_singular(a):
    # A matrix of nan does not spoil others of the stack.
    stack = np.stack([np.full((3, 3), np.nan), a])
    with np.errstate(invalid="ignore"):
        _, (beside,) = gradients(det, [stack], [np.ones(2)])
    assert np.isnan(beside[0]).all()
    for adjoint in (beside[1], gradients(det, [a], [1.0])[1][0]):
        close(adjoint, minors(a), 0.0, 4e-15 * np.linalg.norm(a) ** 2)


HALVES = np.repeat([1e-2, 1e2], 200)
BEYOND = [
    (np.diag(HALVES), 1.0), (np.diag(HALVES[::-1]), 1.0),
    (np.diag(np.repeat([1e-2, 1e2], [161, 200])), 1e78), (1e-160 * np.eye(2), 1e-320),
    (1e-200 * np.eye(2), 0.0), (1e160 * np.eye(2), np.inf), (1e160 * np.eye(2)[None], np.inf),
]  # fmt: skip


@pytest.mark.parametrize(("a", "expected"), BEYOND)
def test_products_that_leave_the_range_of_a_float(a, expected):
    with np.errstate(over="ignore"):
        (value,), (adjoint,) = gradients(det, [a], [np.ones(a.shape[:-2]) if a.ndim > 2 else 1.0])
    first = a if a.ndim == 2 else a[0]
    close(np.ravel(value)[0], expected, 1e-12)
    others = [np.exp(np.sum(np.log(np.delete(np.diag(first), i)))) for i in (0, -1)]
    close(adjoint.reshape(-1, *first.shape)[0][[0, -1], [0, -1]], others, 1e-12)


def test_second_derivative_at_a_singular_matrix():
    # The second derivative of det([[a, b], [c, d]]) = a d - b c is constant.
    _, (adjoint,) = gradients(cofactor, [np.zeros((2, 2))], [np.array([[1.0, 2.0], [3.0, 4.0]])])
    close(adjoint, [[4.0, -3.0], [-2.0, 1.0]], 1e-15)


@pytest.mark.parametrize("a", [SINGULAR, SINGULAR[None], np.stack([GENERAL, SINGULAR])])
def test_log_of_zero(a):
    (value,), (adjoint,) = gradients(vm.log_determinant, [a])
    assert np.ravel(value)[-1] == -np.inf
    assert np.isnan(adjoint[(-1,) * (a.ndim - 2)]).all()
    if len(a) == 2:
        assert np.isfinite(adjoint[0]).all()


def test_nothing_overflows_in_the_logarithm():
    a = 1e200 * GENERAL
    with np.errstate(over="ignore"):
        assert det(a) == np.inf
    _, (adjoint,) = gradients(vm.log_determinant, [a], [1.0])
    close(adjoint, np.linalg.inv(GENERAL).T / 1e200, 1e-13)


def test_hilbert():
    a = 1.0 / (np.arange(8)[:, None] + np.arange(8) + 1.0)
    tolerance = 10 * np.linalg.cond(a) * np.finfo(float).eps
    assert worst_error(vm.log_determinant, log_abs, [a]) < tolerance
    assert worst_error(vm.log_determinant_spd, log_abs, [a], symmetric=True) < tolerance


@pytest.mark.parametrize(
    "f", [vm.determinant, lambda a: slogdet(a).logabsdet, vm.log_determinant_spd]
)
def test_stacks_of_large_matrices(f):
    # Large matrices of a stack are factorised one by one.
    (values,), (adjoint,) = gradients(f, [LARGES], [np.ones(LARGES.shape[:-2])])
    for index in np.ndindex(LARGES.shape[:-2]):
        (value,), (one,) = gradients(f, [LARGES[index]], [1.0])
        close(values[index], value, 1e-13)
        close(adjoint[index], one, 0.0, 1e-13 * np.max(np.abs(one)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sign_of_larger_matrices(sign):
    a = LARGES[0, 0][::-1].copy()
    a[0] *= sign
    equal(vm.value(slogdet(vm.var(a)).sign), np.linalg.slogdet(a)[0])
    close(vm.determinant(a), np.linalg.det(a), 1e-12)
    stacked = slogdet(vm.var(np.stack([a, np.zeros_like(a), np.full_like(a, np.nan)])))
    equal(vm.value(stacked.sign), [np.linalg.slogdet(a)[0], 0.0, np.nan])


@pytest.mark.parametrize(("f", "a", "error", "text"), [
    (det, np.ones((2, 3)), SHAPE, "a has shape (2, 3), but must be a square matrix"),
    (slogdet, np.ones((2, 3)), SHAPE, "a has shape (2, 3), but must be a square matrix"),
    (vm.log_determinant_spd, np.ones((2, 3)), SHAPE, "a has shape (2, 3), but must be a square"),
    (vm.log_determinant_spd, [[2.0, 0.5], [0.1, 1.0]], DOMAIN,
     "a[0, 1] is 0.5, but must be 0.1, as a[1, 0] is, for a symmetric matrix!"),
    (vm.trace, np.ones(3), SHAPE, "a has shape (3,), but must be a matrix (or a stack of them)!"),
])  # fmt: skip
def test_refusals(f, a, error, text):
    refuses_as(error, text, f, vm.var(a))


def test_the_trace_of_a_rectangle():
    x = np.arange(12.0).reshape(2, 2, 3)
    expect_ad(vm.trace, x[0])
    expect_ad(vm.trace, x)
    expect_ad(lambda a: vm.trace(a.T), x[1])
    assert vm.trace(x).tolist() == [4.0, 16.0]


def test_not_positive_definite():
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    message = "log_determinant_spd: a has the eigenvalue -1, but must be positive definite!"
    for argument in (a, vm.var(a)):
        with pytest.raises(vm.DomainError, match=message) as caught:
            vm.log_determinant_spd(argument)
        assert isinstance(caught.value, np.linalg.LinAlgError)
        assert caught.value.is_recoverable


def test_second_derivatives_where_products_of_some_singular_values_overflow():
    a, e = np.diag([1e8] * 40 + [1e-8] * 40), np.zeros((80, 80))
    e[0, 0] = 1.0
    product = vm.hessian_times_vector(det, a, e)
    close(product, np.diag([0.0] + [1e-16] * 39 + [1.0] * 40), 1e-12, 1e-20)


@pytest.mark.parametrize("f", [vm.log_determinant, lambda a: np.linalg.slogdet(a).logabsdet])
def test_a_singular_matrix_does_not_spoil_others_of_the_stack(f):
    stack = np.stack([np.zeros((2, 2)), np.array([[2.0, 1.0], [0.0, 4.0]])])
    second = lambda a: f(a)[1]  # noqa: E731
    assert vm.jvp(second, (stack,), (np.ones((2, 2, 2)),))[1] == pytest.approx(0.625, rel=1e-14)
    close(vm.hessian(second, stack)[1, :, :, 1], vm.hessian(f, stack[1]), 1e-14)
