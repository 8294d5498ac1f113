"""Covariances by correlations and scales, readers of partial correlations, matrices with sums of
zero, and the identity.
"""

import numpy as np
import pytest
import recordings
import stan
from comparing import close, refuses

import varmat as vm
from varmat.testing import coverage, expect_ad, expect_ad_matvar

X = np.array([-1.2, 0.4, 2.3, 0.1, -0.6, 0.9])
Z = np.array([0.3, -0.7, 0.999, 0.2, -0.1, 0.55])
SDS = np.array([0.5, 2.0, 30.0, 1e-3])
STACK = np.stack([X, 0.3 * X[::-1]])
RECTANGLE = np.array([[1.0, -2.0, 0.3], [4.0, 5.0, -6.0]])

CASES = {
    "cov_matrix_constrain_lkj": (lambda x: vm.cov_matrix_constrain_lkj(x, 3), (X,)),
    "cov_matrix_constrain_lkj with Jacobian": (
        lambda x: vm.cov_matrix_constrain_lkj(x, 3, jacobian=True), (STACK,)),
    "cov_matrix_free_lkj": (lambda x: vm.cov_matrix_free_lkj(vm.tcrossprod(x)),
                            (np.tril(np.ones((3, 3))) + np.diag(X[:3] ** 2),)),
    "read_corr_L": (lambda z: vm.read_corr_L(z, 4, jacobian=True), (Z,)),
    "read_corr_matrix": (lambda z: vm.read_corr_matrix(z, 3, jacobian=True), (Z.reshape(2, 3),)),
    "read_cov_L": (lambda z, sds: vm.read_cov_L(z, sds, jacobian=True), (Z, SDS)),
    "read_cov_matrix": (lambda z, sds: vm.read_cov_matrix(z, sds, jacobian=True), (Z, SDS)),
    "sum_to_zero_matrix_constrain": (vm.sum_to_zero_matrix_constrain, (RECTANGLE,)),
    "sum_to_zero_matrix_constrain of a stack": (lambda x: vm.sum_to_zero_matrix_constrain(x)[0],
        (STACK.reshape(2, 2, 3),)),
    "sum_to_zero_matrix_free": (
        lambda x: vm.sum_to_zero_matrix_free(2.0 * vm.sum_to_zero_matrix_constrain(x)),
        (RECTANGLE,),
    ),
    "identity_constrain": (lambda x: vm.identity_constrain(x, jacobian=True)[0] ** 2, (X,)),
    "identity_free": (lambda x: vm.identity_free(x) ** 2, (X,)),
}  # fmt: skip


@pytest.mark.parametrize(("f", "args"), CASES.values(), ids=CASES)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


@pytest.mark.parametrize("entry", stan.entries("lkj_constraints"))
def test_stan(entry):
    f = getattr(vm, entry["function"])
    fold = stan.lower if entry["function"].endswith("free_lkj") else None
    if not entry.get("jacobian"):
        stan.check(f, entry, rtol=1e-13, fold=fold)
        return
    pair = {key: item for key, item in entry.items() if key != "tuple"}
    for key in ("output", "weights"):
        value, log_jacobian = entry[key]
        pair[key] = [*np.ravel(stan.number(value)).tolist(), log_jacobian]

    def flat(*args):
        value, log_jacobian = f(*args, jacobian=True)
        return np.concatenate([np.reshape(value, -1), np.reshape(log_jacobian, 1)])

    stan.check(flat, pair, rtol=1e-13)


def log_volume(f, x):
    """The logarithm of the absolute determinant of the Jacobian, by automatic differentiation of
    the elements alone.
    """
    return float(np.linalg.slogdet(vm.jacobian(f, x))[1])


def test_jacobians_are_those_of_the_lower_triangles():
    low = np.tril_indices(3)
    strictly = np.tril_indices(4, -1)
    cases = [
        (log_volume(lambda x: vm.cov_matrix_constrain_lkj(x, 3)[low], X),
            vm.cov_matrix_constrain_lkj(X, 3, jacobian=True)[1]),
        (log_volume(lambda z: vm.read_corr_matrix(z, 4)[strictly], Z),
            vm.read_corr_matrix(Z, 4, jacobian=True)[1]),
        (log_volume(lambda x: vm.read_cov_matrix(x[:6], x[6:])[np.tril_indices(4)],
            np.append(Z, SDS)), vm.read_cov_matrix(Z, SDS, jacobian=True)[1]),
    ]  # fmt: skip
    for exact, found in cases:
        close(found, exact, 1e-12)
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


def test_readers_recorded():
    recordings.agree(
        lambda z: np.sum(vm.read_cov_matrix(z, SDS) * np.arange(16.0).reshape(4, 4)),
        (Z,),
        (0.5 * Z,),
        rtol=1e-12,
    )
    program = vm.recorded(lambda z: np.sum(vm.read_corr_L(z, 4)))
    program(Z)
    message = r"^read_corr_L: z\[2\] is 1.0, but must be between -1 and 1!"
    refuses(vm.DomainError, message, program, np.where(Z == 0.999, 1.0, Z))


REFUSALS = {
    "size": (lambda: vm.cov_matrix_constrain_lkj(X[:5], 3), vm.ShapeError,
        r"cov_matrix_constrain_lkj: x has shape \(5,\), but must be a vector of size 6!"),
    "K": (lambda: vm.cov_matrix_constrain_lkj(X, -3), vm.DomainError,
        "cov_matrix_constrain_lkj: K is -3, but must be a nonneg"),
    "asymmetric": (lambda: vm.cov_matrix_free_lkj([[1.0, 0.5], [0.4, 1.0]]), vm.DomainError,
        "cov_matrix_free_lkj: Covariance matrix variable"),
    "not square": (lambda: vm.cov_matrix_free_lkj(RECTANGLE), vm.ShapeError,
        r"cov_matrix_free_lkj: y has shape \(2, 3\), but"),
    "z": (lambda: vm.read_corr_matrix([-1.0], 2), vm.DomainError,
        r"read_corr_matrix: z\[0\] is -1.0, but must be between -1 and 1!"),
    "z size": (lambda: vm.read_corr_L(Z, 3), vm.ShapeError,
        r"read_corr_L: z has shape \(6,\), but must be a vector of size 3!"),
    "sds": (lambda: vm.read_cov_L([0.5], [1.0, 0.0]), vm.DomainError,
        r"read_cov_L: sds\[1\] is 0.0, but must be positive finite!"),
    "stacks": (lambda: vm.read_cov_matrix(STACK, SDS), vm.ShapeError,
        r"read_cov_matrix: sds has shape \(4,\), but must match z, of shape \(2, 6\)!"),
    "sums": (lambda: vm.sum_to_zero_matrix_free([[1.0, -1.0], [1.0, -1.0]]), vm.DomainError,
        (r"sum_to_zero_matrix_free: sum\(column of Zero sum matrix\)\[0\] is 2.0, but must be 0 "
        r"to within 1e-08!")),
    "sums of rows": (lambda: vm.sum_to_zero_matrix_free([[1.0, 1.0], [-1.0, -1.0]]), vm.DomainError,
        r"sum_to_zero_matrix_free: sum\(row of Zero sum matrix\)\[0\] is 2.0, but must be 0"),
    "vector": (lambda: vm.sum_to_zero_matrix_constrain(X), vm.ShapeError,
        r"sum_to_zero_matrix_constrain: x has shape \(6,\), but"),
    "empty": (lambda: vm.sum_to_zero_matrix_free(np.empty((0, 2))), vm.ShapeError,
        r"sum_to_zero_matrix_free: y has shape \(0, 2\), but must be a matrix that is not empty!"),
    "identity": (lambda: vm.identity_constrain("a"), TypeError, "identity_constrain: x has dtype"),
    "identity_free": (lambda: vm.identity_free("a"), TypeError, "identity_free: y has dtype"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(call, error, text):
    refuses(error, f"^{text}", call)
