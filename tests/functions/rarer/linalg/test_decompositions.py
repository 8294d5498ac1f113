"""Triangular, polar and Schur factors and generalised eigenvalues: against 50 digits, SciPy, and
along all routes.
"""

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
from comparing import close, refuses_as
from functions.matrices import GENERAL, SPD, TALL, WIDE, worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

A = np.array([[0.4, 1.3, -0.2], [2.0, 0.7, 0.5], [-0.9, 0.6, 1.8]])
REAL = np.array([[1.0, 0.4, -0.3], [0.2, 2.5, 0.6], [-0.1, 0.3, -2.0]])
SYMMETRIC = REAL + REAL.T


def triangles(a):
    """Factorise without pivoting. The rows are put into SciPy's order before."""
    n = a.rows
    low, up = mp.eye(n), a.copy()
    for k in range(n):
        for i in range(k + 1, n):
            low[i, k] = up[i, k] / up[k, k]
            for j in range(n):
                up[i, j] -= low[i, k] * up[k, j]
    return low, up


def polar(a):
    p = mp.sqrtm(a.T * a)
    return a * mp.inverse(p), p


def generalised(a, b):
    """Return power sums of the eigenvalues, which do not depend on their order."""
    x = mp.inverse(b) * a
    return mp.matrix([[sum((x**k)[i, i] for i in range(a.rows)) for k in (1, 2, 3)]])


def power_sums(a, b):
    w = vm.eigvalsh(a, b)
    return np.stack([np.sum(w**k) for k in (1, 2, 3)])


def symmetrised(a):
    """Return the symmetric matrix with the given lower triangle."""
    return mp.matrix([[a[max(i, j), min(i, j)] for j in range(a.cols)] for i in range(a.rows)])


EXACT = {
    "lu": (lambda a: vm.lu(a)[1:],
        lambda a: triangles(mp.matrix([[0, 1, 0], [1, 0, 0], [0, 0, 1]]) * a), [A]),
    "polar": (vm.polar_decompose, polar, [TALL]),
    "polar of equal singular values": (vm.polar_decompose, polar, [np.eye(3)]),
    "eigvalsh": (power_sums, lambda a, b: generalised(symmetrised(a), symmetrised(b)),
        [SYMMETRIC, SPD]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, args = EXACT[name]
    assert worst_error(f, exact, args) < 1e-14


def test_triangular_factors():
    for a in (A, TALL, WIDE, np.empty((0, 0))):
        expect_ad(lambda a: vm.lu(a)[1:], a)
    expect_ad(lambda a: vm.lu(a, permute_l=True), TALL)
    expect_ad_matvar(lambda a: vm.lu(a)[1:], A)


def test_equal_pivots_are_taken_in_any_order():
    a = np.array([[1.0, 2.0, 0.3], [-1.0, 0.1, 1.0], [1.0, 0.7, 0.2]])
    p, low, up = vm.lu(a)
    close(p @ low @ up, a, 1e-7, 1e-15)


def test_polar_factors():
    expect_ad(vm.polar_decompose, TALL)
    expect_ad(lambda a: vm.polar_decompose(a, "left"), WIDE)
    expect_ad(lambda a: vm.polar_decompose(a)[1], A)
    expect_ad_matvar(vm.polar_decompose, A)
    expect_ad(vm.orthogonal_procrustes, TALL, np.cos(TALL))


def test_schur_factors():
    for a in (REAL, np.array([[2.0]]), np.empty((0, 0))):
        expect_ad(vm.schur, a)
    expect_ad(lambda a: vm.schur(a)[1], REAL)
    expect_ad_matvar(vm.schur, REAL)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_generalised_eigenvectors(kind):
    def f(a, b):
        w, v = vm.eigh(a, b, type=kind)
        return w, v * v  # the signs are arbitrary

    expect_ad(f, SYMMETRIC, SPD)
    for lower in (True, False):
        found = vm.eigh(vm.var(GENERAL), SPD, lower, kind)
        expected = scipy.linalg.eigh(GENERAL, SPD, lower=lower, type=kind)
        for x, y in zip(found, expected, strict=True):
            close(np.abs(x.val), np.abs(y), 1e-11)


def test_symmetric_eigenvectors():
    expect_ad(lambda a: (vm.eigh(a)[0], vm.eigh(a)[1] ** 2, vm.eigvalsh(a, lower=False)), SYMMETRIC)
    expect_ad_matvar(lambda a, b: vm.eigh(a, b)[0], SYMMETRIC, SPD)


@pytest.mark.parametrize(("call", "message"), [
    (lambda a: vm.lu(a[0]), "a has shape (3,), but must be a matrix!"),
    (lambda a: vm.lu(0.0 * a),
     "a leading block of a is singular, so the LU factors are not differentiable!"),
    (lambda a: vm.lu(a * np.nan), "a has elements that are not finite, but must have finite ones!"),
    (lambda a: vm.polar_decompose(a, "up"), "side is 'up', but must be 'right' or 'left'!"),
    (lambda a: vm.polar_decompose(a[:2]),
     "a has shape (2, 3), but must have at least as many rows as columns, or use side='left'!"),
    (lambda a: vm.polar_decompose(a[:, :2], "left"),
     "a has shape (3, 2), but must have at least as many columns as rows, or use side='right'!"),
    (lambda a: vm.polar_decompose(0.0 * a),
     "a does not have full rank, so its factors are not differentiable!"),
    (lambda a: vm.orthogonal_procrustes(a, a[:2]),
     "b has shape (2, 3), but must have shape (3, 3)!"),
    (lambda a: vm.schur(a[0]), "a has shape (3,), but must be a square matrix!"),
    (lambda a: vm.schur(np.zeros((2, 2)) * a[0, 0] + [[0.0, 1.0], [-1.0, 0.0]]),
     "a has complex eigenvalues, but must have real ones!"),
    (lambda a: vm.eigh(a, a[0]), "b has shape (3,), but must be a matrix!"),
    (lambda a: vm.eigh(a, SPD, type=4), "type is 4, but must be 1, 2 or 3!"),
    (lambda a: vm.eigvalsh(a, -SPD), "a has the eigenvalue -10.4, but must be positive definite!"),
])  # fmt: skip
def test_refusals(call, message):
    refuses_as(ValueError, message, call, vm.var(REAL))
