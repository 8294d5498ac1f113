"""Inverses, determinants, linear systems, eigenvalues, eigenvectors and Schur forms of complex and
real matrices.
"""

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from complexes.pairs import of_pair, of_pairs, parts, recorded

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(7)
A, B = RNG.normal(size=(2, 3, 3))
C, D = RNG.normal(size=(2, 3, 2))
# Two eigenvalues are real, and two are a conjugate pair.
MIXED = np.array(
    [[1.0, 2.0, 0.3, 0.1], [-2.0, 1.2, 0.2, 0.5], [0.1, 0.4, 3.0, 0.2], [0.3, 0.1, 0.6, -1.0]]
)


def test_inverses_and_determinants():
    power = np.linalg.matrix_power
    recorded(expect_ad(of_pair(np.linalg.inv), A, B))
    recorded(expect_ad(of_pair(lambda z: (np.linalg.det(z), *np.linalg.slogdet(z))), A, B))
    recorded(expect_ad(of_pair(lambda z: (power(z, 3), power(z, -1))), A[:2, :2], B[:2, :2]))
    expect_ad(of_pair(np.linalg.det), RNG.normal(size=(2, 2, 2)), RNG.normal(size=(2, 2, 2)))


def test_determinants_of_singular_matrices():
    a = np.array([[1.0, 2.0 + 1j], [2.0, 4.0 + 2j]])
    found = vm.gradient(lambda z: np.real(np.linalg.det(z)), a)
    close(found, [[4.0 - 2j, -2.0], [-2.0 + 1j, 1.0]], 1e-13)


def test_solutions():
    recorded(expect_ad(of_pairs(np.linalg.solve), A, B, C, D))
    recorded(expect_ad(of_pair(lambda z, x: (
        np.linalg.solve(z, x), np.linalg.solve(S, z), vm.mdivide_left(z, x[:, 0]),
    )), A, B, C))  # fmt: skip


S = A + 2.0 * np.eye(3)


PAIR = np.array([[1.2, -0.7], [0.4, 2.1]])


@pytest.mark.parametrize(
    "a", [A, A + A.T, MIXED, PAIR], ids=["general", "symmetric", "mixed", "pair"]
)
def test_eigenvalues_and_vectors_of_real_matrices(a):
    recorded(expect_ad(lambda a: parts(vm.eigendecompose(a)), a))
    expect_ad_matvar(lambda a: parts(vm.eigenvalues(a)), a)


def test_eigenvalues_and_vectors_of_complex_matrices():
    recorded(expect_ad(of_pair(lambda z: tuple(np.linalg.eig(z))), A, B))
    expect_ad(of_pair(lambda z: np.linalg.eigvals(np.stack([z, z @ z]))), A, B)


def test_eigenvalues_and_eigenvectors_alone():
    recorded(expect_ad(lambda a: parts((vm.eigenvectors(a), vm.eigenvalues(a))), MIXED))


def test_eigenvalues_are_complex_even_where_all_are_real():
    for a in (np.eye(2), vm.var([[1.0, 0.0], [0.0, 2.0]])):
        assert all(
            x.dtype == np.complex128
            for x in (vm.eigenvalues(a), *vm.eigendecompose(a), *vm.complex_schur_decompose(a))
        )
    assert np.linalg.eigvals(vm.var([[1.0, 0.0], [0.0, 2.0]])).dtype == np.complex128


def test_repeated_eigenvalues():
    """A sum over repeated eigenvalues has the right derivative. Their eigenvectors have none, and
    neither have second derivatives, which need them.
    """
    a = np.diag([1.0, 1.0, 3.0])
    close(vm.gradient(lambda a: np.real(np.sum(vm.eigenvalues(a) ** 2)), a), 2.0 * a, 1e-7, 1e-14)

    def exponential(a):
        values, v = np.linalg.eig(a)
        return np.real(np.sum(A * ((v * np.exp(values)) @ np.linalg.inv(v))))

    def hermitian(a):
        values, v = np.linalg.eigh(a + 0j)
        return np.real(np.sum(A * ((v * np.exp(values)) @ np.conj(v).T)))

    message = "Argument a has equal eigenvalues, but must have distinct ones where .* matrix_exp"
    for at in (np.eye(3), a):
        for f in (lambda a: np.sum(np.abs(vm.eigenvectors(a)[0]) ** 4), exponential, hermitian):
            refuses(vm.DomainError, message, vm.gradient, f, at)
        with pytest.raises(vm.DomainError, match=message):
            vm.hessian(lambda a: np.real(np.sum(np.log(np.linalg.eigvals(a)))), at)


def test_hermitian_matrices():
    def f(z):
        values, v = np.linalg.eigh(z)
        exponential = (v * np.exp(values)) @ np.conj(v).T
        return values, np.abs(v), exponential, np.linalg.eigvalsh(z, "U")

    recorded(expect_ad(of_pair(f), A + A.T, B - B.T))


def functions_of_schur(z):
    u, t = vm.complex_schur_decompose(z)
    return np.abs(u), np.abs(t), np.diagonal(t), u @ t @ np.conj(u).T


def test_schur_forms():
    recorded(expect_ad(of_pair(functions_of_schur), A, B))
    factors = (vm.complex_schur_decompose_u, vm.complex_schur_decompose_t)
    recorded(expect_ad(lambda a: tuple(np.abs(f(a)) for f in factors), MIXED[:3, :3]))
    u, t = vm.complex_schur_decompose(MIXED)
    close(u @ t @ u.conj().T, MIXED, 1e-7, 1e-13)
    equal(np.tril(t, -1), 0.0)
    equal([f(MIXED) for f in factors], [u, t])


NAMES = [
    "eigenvalues", "eigenvectors", "eigendecompose", "complex_schur_decompose",
    "complex_schur_decompose_t", "complex_schur_decompose_u",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_refusals(name):
    f = getattr(vm, name)
    for kind in (np.asarray, vm.var):
        for x, error, message in [
            (np.ones((2, 3)), vm.ShapeError, r"shape \(2, 3\), but must be a square matrix"),
            (np.ones((0, 0)), vm.ShapeError, r"shape \(0, 0\), but must have at least one row!$"),
            (np.array([[1.0, np.nan], [0.0, 1.0]]), vm.DomainError,
             "elements that are not finite, but must have finite"),
        ]:  # fmt: skip
            refuses(error, f"^{name}: a has {message}", f, kind(x))


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda z: np.linalg.inv(z), np.linalg.LinAlgError, "a is singular, but must be invertible!"),
    (lambda z: np.linalg.solve(z, z), DOMAIN, "a is singular, but must be invertible!"),
    (lambda z: np.linalg.inv(z[0]), SHAPE,
     "a has shape (2,), but must be a square matrix (or a stack of them)!"),
    (lambda z: np.linalg.norm(z, 2), TypeError,
     "ord is 2, which takes singular values: complex variables do not support it!"),
    (lambda z: np.linalg.svd(z), TypeError,
     ("numpy.linalg.svd is not there for complex variables; write it with np.real and "
     "np.imag, or np.abs and np.angle, of them")),
    (lambda z: vm.complex_schur_decompose(np.stack([z, z])), SHAPE,
     "a has shape (2, 2, 2), but must be a square matrix!"),
])  # fmt: skip
def test_other_refusals(call, error, message):
    refuses_as(error, message, call, vm.var([[1.0 + 1j, 1.0 + 1j], [1.0, 1.0]]))
