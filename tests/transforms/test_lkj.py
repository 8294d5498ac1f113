"""Covariances by correlations and scales, readers of partial correlations, matrices with sums of
zero, and the identity.
"""

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, refuses, refuses_as

import varmat as vm
from varmat.testing import coverage, expect_ad, expect_ad_matvar

X = np.array([-1.2, 0.4, 2.3, 0.1, -0.6, 0.9])
Z = np.array([0.3, -0.7, 0.999, 0.2, -0.1, 0.55])
SDS = np.array([0.5, 2.0, 30.0, 1e-3])
STACK = np.stack([X, 0.3 * X[::-1]])
RECTANGLE = np.array([[1.0, -2.0, 0.3], [4.0, 5.0, -6.0]])

CASES = [
    (lambda x: vm.cov_matrix_constrain_lkj(x, 3), (X,)),
    (lambda x: vm.cov_matrix_constrain_lkj(x, 3, jacobian=True), (STACK,)),
    (lambda x: vm.cov_matrix_free_lkj(vm.tcrossprod(x)),
     (np.tril(np.ones((3, 3))) + np.diag(X[:3] ** 2),)),
    (lambda z: vm.read_corr_L(z, 4, jacobian=True), (Z,)),
    (lambda z: vm.read_corr_matrix(z, 3, jacobian=True), (Z.reshape(2, 3),)),
    (lambda z, sds: vm.read_cov_L(z, sds, jacobian=True), (Z, SDS)),
    (lambda z, sds: vm.read_cov_matrix(z, sds, jacobian=True), (Z, SDS)),
    (vm.sum_to_zero_matrix_constrain, (RECTANGLE,)),
    (vm.sum_to_zero_matrix_constrain, (STACK.reshape(2, 2, 3),)),
    (lambda x: vm.sum_to_zero_matrix_free(2.0 * vm.sum_to_zero_matrix_constrain(x)), (RECTANGLE,)),
    (lambda x: vm.identity_constrain(x, jacobian=True)[0] ** 2, (X,)),
    (lambda x: vm.identity_free(x) ** 2, (X,)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), CASES)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


def test_jacobians_are_those_of_the_lower_triangles():
    low, whole, strictly = np.tril_indices(3), np.tril_indices(4), np.tril_indices(4, -1)
    for f, x, jacobian in (
        (lambda x: vm.cov_matrix_constrain_lkj(x, 3)[low], X,
         vm.cov_matrix_constrain_lkj(X, 3, jacobian=True)[1]),
        (lambda z: vm.read_corr_matrix(z, 4)[strictly], Z,
         vm.read_corr_matrix(Z, 4, jacobian=True)[1]),
        (lambda x: vm.read_cov_matrix(x[:6], x[6:])[whole], np.append(Z, SDS),
         vm.read_cov_matrix(Z, SDS, jacobian=True)[1]),
    ):  # fmt: skip
        close(jacobian, float(np.linalg.slogdet(vm.jacobian(f, x))[1]), 1e-12)
    both = vm.cov_matrix_constrain_lkj(STACK, 3, jacobian=True)[1]
    close(both, sum(vm.cov_matrix_constrain_lkj(x, 3, jacobian=True)[1] for x in STACK), 1e-14)


def test_ways_there_and_back():
    for x in (X, 2.0 * X, STACK):
        again = vm.cov_matrix_free_lkj(vm.cov_matrix_constrain_lkj(x, 3))
        close(again, x, 1e-10)
    # A covariance matrix is made from its parts, by the transforms of other names.
    m = 3
    expected = vm.read_cov_matrix(np.tanh(X[:m]), np.exp(X[m:]))
    close(vm.cov_matrix_constrain_lkj(X, 3), expected, 1e-14)
    close(vm.read_corr_matrix(np.tanh(X), 4), vm.corr_matrix_constrain(X, 4), 1e-14)
    factor = vm.read_cov_L(Z, SDS)
    close(factor @ factor.T, vm.read_cov_matrix(Z, SDS), 1e-14)
    assert vm.cov_matrix_constrain_lkj(np.empty(0), 0).shape == (0, 0)


def test_matrices_with_sums_of_zero():
    y = vm.sum_to_zero_matrix_constrain(RECTANGLE)
    assert y.shape == (3, 4)
    close(np.sum(y, axis=0), 0.0, 1e-7, 1e-15)
    close(np.sum(y, axis=1), 0.0, 1e-7, 1e-15)
    close(np.linalg.norm(y), np.linalg.norm(RECTANGLE), 1e-15)
    error = np.max(np.abs(vm.sum_to_zero_matrix_free(y) - RECTANGLE))
    assert error < 1e-14
    coverage.note(vm.sum_to_zero_matrix_constrain, varmat=error)
    assert vm.sum_to_zero_matrix_constrain(RECTANGLE, jacobian=True)[1] == 0.0
    assert vm.sum_to_zero_matrix_constrain(np.empty((0, 2))).shape == (1, 3)


def test_a_recorded_reader_refuses():
    program = vm.recorded(lambda z: np.sum(vm.read_corr_L(z, 4)))
    program(Z)
    message = r"^read_corr_L: z\[2\] is 1.0, but must be between -1 and 1!"
    refuses(vm.DomainError, message, program, np.where(Z == 0.999, 1.0, Z))


REFUSALS = [
    (lambda: vm.cov_matrix_constrain_lkj(X[:5], 3), SHAPE,
     "x has shape (5,), but must be a vector of size 6!"),
    (lambda: vm.cov_matrix_constrain_lkj(X, -3), DOMAIN, "K is -3, but must be a nonneg"),
    (lambda: vm.cov_matrix_free_lkj([[1.0, 0.5], [0.4, 1.0]]), DOMAIN,
     "Covariance matrix variable[0, 1] is 0.5, but must be 0.4, as Covariance matrix"),
    (lambda: vm.cov_matrix_free_lkj(RECTANGLE), SHAPE, "y has shape (2, 3), but"),
    (lambda: vm.read_corr_matrix([-1.0], 2), DOMAIN, "z[0] is -1.0, but must be between -1 and 1!"),
    (lambda: vm.read_corr_L(Z, 3), SHAPE, "z has shape (6,), but must be a vector of size 3!"),
    (lambda: vm.read_cov_L([0.5], [1.0, 0.0]), DOMAIN,
     "sds[1] is 0.0, but must be positive finite!"),
    (lambda: vm.read_cov_matrix(STACK, SDS), SHAPE,
     "sds has shape (4,), but must match z, of shape (2, 6)!"),
    (lambda: vm.sum_to_zero_matrix_free([[1.0, -1.0], [1.0, -1.0]]), DOMAIN,
     "sum(column of Zero sum matrix)[0] is 2.0, but must be 0 to within 1e-08!"),
    (lambda: vm.sum_to_zero_matrix_free([[1.0, 1.0], [-1.0, -1.0]]), DOMAIN,
     "sum(row of Zero sum matrix)[0] is 2.0, but must be 0 to within 1e-08!"),
    (lambda: vm.sum_to_zero_matrix_constrain(X), SHAPE, "x has shape (6,), but"),
    (lambda: vm.sum_to_zero_matrix_free(np.empty((0, 2))), SHAPE,
     "y has shape (0, 2), but must be a matrix that is not empty!"),
    (lambda: vm.identity_constrain("a"), TypeError, "x has dtype"),
    (lambda: vm.identity_free("a"), TypeError, "y has dtype"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS)
def test_refusals(call, error, text):
    refuses_as(error, text, call)
