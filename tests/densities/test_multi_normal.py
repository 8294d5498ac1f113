"""Multivariate normal and Student t densities: 50 digits, comparison of the parameterisations,
limits, refusals.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from comparing import close, equal
from densities.multivariate import DENSITIES, FACTOR, MANY, MU, SPD, B, Y, positive_definite
from functions.matrices import worst_error

import varmat as vm
from varmat.densities.multi_normal import (
    multi_normal_cholesky_lpdf,
    multi_normal_lpdf,
    multi_normal_prec_lpdf,
    multi_student_t_cholesky_lpdf,
    multi_student_t_lpdf,
)

INF = math.inf


def lower(a):
    return mp.matrix([[a[i, j] if j <= i else 0 for j in range(a.cols)] for i in range(a.rows)])


def residuals(y, mu):
    """Return the residuals of the rows of y, or of a single vector y, as columns."""
    return [y - mu] if y.cols == 1 else [y[i, :].T - mu for i in range(y.rows)]


def normal(y, mu, covariance):
    x, constant = covariance**-1, mp.log(mp.det(covariance)) + covariance.rows * mp.log(2 * mp.pi)
    return -mp.fsum((d.T * x * d)[0] + constant for d in residuals(y, mu)) / 2


def student(y, nu, mu, scale):
    k, x = scale.rows, scale**-1
    constant = (
        mp.loggamma((nu + k) / 2)
        - mp.loggamma(nu / 2)
        - (k * mp.log(nu * mp.pi) + mp.log(mp.det(scale))) / 2
    )
    return mp.fsum(
        constant - (nu + k) / 2 * mp.log(1 + (d.T * x * d)[0] / nu) for d in residuals(y, mu)
    )


def of_factor(exact):
    return lambda *args: exact(*args[:-1], lower(args[-1]) * lower(args[-1]).T)


EXACT = {
    "multi_normal_lpdf": (normal, SPD),
    "multi_normal_cholesky_lpdf": (of_factor(normal), FACTOR + np.triu(B, 1)),
    "multi_normal_prec_lpdf": (lambda y, mu, omega: normal(y, mu, omega**-1), SPD),
    "multi_student_t_lpdf": (student, SPD),
    "multi_student_t_cholesky_lpdf": (of_factor(student), FACTOR + np.triu(B, 1)),
}


@pytest.mark.parametrize("y", [Y[0], Y, MANY], ids=["one", "few", "many"])
@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name, y):
    exact, matrix = EXACT[name]
    nu = (3.5,) if "student" in name else ()
    assert (
        worst_error(DENSITIES[name], exact, [y, *nu, MU, matrix], symmetric="cholesky" not in name)
        < 5e-15
    )


@pytest.mark.parametrize(
    ("nu", "tolerance"), [(0.1, 1e-14), (30.0, 1e-14), (1e3, 1e-12), (1e6, 1e-9)]
)
def test_degrees_of_freedom(nu, tolerance):
    """The derivative is of order 1 / nu**2, but a difference of terms of order 1 / nu, so it loses
    digits.
    """
    value, (slope,) = vm.value_and_grad(multi_student_t_lpdf, (1,))(Y, nu, MU, SPD)
    with mp.workdps(60):
        y, mu, s = (mp.matrix(x.tolist()) for x in (Y, MU, SPD))
        close(value, float(student(y, mp.mpf(nu), mu, s)), 1e-14 if nu < 1e5 else 1e-10)
        close(slope, float(mp.diff(lambda t: student(y, t, mu, s), mp.mpf(nu))), tolerance)


def test_infinite_degrees_of_freedom():
    args = (MU, SPD)
    value, (nu, *gradients) = vm.value_and_grad(lambda *a: multi_student_t_lpdf(Y, *a), (0, 1, 2))(
        INF, *args
    )
    normal_value, normal_gradients = vm.value_and_grad(lambda *a: multi_normal_lpdf(Y, *a), (0, 1))(
        *args
    )
    close(value, normal_value, 1e-14)
    close(multi_student_t_lpdf(Y, 1e17, *args), value, 1e-14)
    assert nu == 0.0
    close(gradients, normal_gradients, 1e-13)


@pytest.mark.parametrize(("k", "n"), [(70, 1), (70, 150), (130, 3)])
def test_large(k, n):
    """The matrices span several blocks, and lie on both sides of the switch from solves to
    products.
    """
    rng = np.random.default_rng(k)
    y, a = rng.normal(size=(n, k)), rng.normal(size=(k, k))
    s = positive_definite(a)
    value, (mu, matrix) = vm.value_and_grad(lambda mu, s: multi_normal_lpdf(y, mu, s), (0, 1))(
        np.zeros(k), s
    )
    x = np.linalg.inv(s)
    quadratic = np.einsum("ni,ij,nj->", y, x, y)
    expected = -0.5 * (quadratic + n * (np.linalg.slogdet(s)[1] + k * math.log(2 * math.pi)))
    close(value, expected, 1e-12)
    close(mu, x @ y.sum(axis=0), 0.0, 1e-11)
    full = 0.5 * (x @ y.T @ y @ x - n * x)
    close(matrix, np.tril(2.0 * full) - np.diag(np.diag(full)), 0.0, 1e-10)
    factor = np.linalg.cholesky(s)
    _, (of_factor,) = vm.value_and_grad(lambda f: multi_normal_cholesky_lpdf(y, 0.0, f), (0,))(
        factor
    )
    close(of_factor, np.tril(2.0 * full @ factor), 0.0, 1e-9)


@pytest.mark.parametrize("f", [multi_normal_lpdf, multi_normal_prec_lpdf])
def test_only_the_lower_triangle_is_read(f):
    shaken = SPD + np.triu(np.full((3, 3), 1e-9), 1)
    assert f(Y, MU, shaken) == f(Y, MU, SPD)
    equal(np.triu(vm.gradient(lambda s: f(Y, MU, s), SPD), 1), np.zeros((3, 3)))


@pytest.mark.parametrize(
    "f", [multi_normal_cholesky_lpdf, lambda y, mu, c: multi_student_t_cholesky_lpdf(y, 4.0, mu, c)]
)
def test_the_triangle_above_a_factor_is_not_read(f):
    for y in (Y, MANY):
        other = FACTOR + np.triu(np.full((3, 3), math.nan), 1)
        results = [vm.value_and_grad(lambda c, y=y: f(y, MU, c))(c) for c in (other, FACTOR)]
        assert results[0][0] == results[1][0]
        equal(results[0][1], results[1][1])


def test_far_observations_overflow_to_zero_density():
    f = vm.value_and_grad(lambda y, mu: multi_normal_lpdf(y, mu, np.eye(2)), (0, 1))
    value, (y, mu) = f(np.array([1e200, 0.0]), np.zeros(2))
    assert value == -INF
    equal(y, [-1e200, 0.0])
    equal(mu, [1e200, 0.0])


@pytest.mark.parametrize(
    "name", ["multi_normal_lpdf", "multi_normal_cholesky_lpdf", "multi_normal_prec_lpdf"]
)
@pytest.mark.parametrize("k", [1, 2, 7, 70])
def test_one_observation_as_a_vector_and_as_a_row(name, k):
    """One observation gives the same as a matrix with one row. A second reverse pass gives the
    gradient of the first one times the adjoint.
    """
    rng = np.random.default_rng(k)
    f, y, mu = DENSITIES[name], rng.normal(size=k), rng.normal(size=k)
    matrix = np.eye(k) + np.tril(rng.normal(size=(k, k))) / (2 * k)
    if "cholesky" not in name:
        matrix = matrix @ matrix.T
    for layout in (np.array, np.asfortranarray, lambda x: np.repeat(x, 2, axis=0)[::2]):
        value, (of_y, of_mu, of_matrix) = vm.value_and_grad(f, (0, 1, 2))(y, mu, layout(matrix))
        row, (of_row, *others) = vm.value_and_grad(f, (0, 1, 2))(y[None], mu, matrix)
        close(value, row, 1e-14)
        close((of_y, of_mu, of_matrix), (of_row[0], *others), 1e-12, 1e-13)
        assert f(y, mu, layout(matrix)) == value
    shared = vm.gradient(lambda m: f(y, m, matrix), 0.5)
    close(shared, np.sum(vm.gradient(lambda m: f(y, m, matrix), np.full(k, 0.5))), 1e-11)
    jacobian = vm.jacobian(lambda m: np.array([1.0, -3.0]) * f(y, m, matrix), mu)
    close(jacobian, np.multiply.outer([1.0, -3.0], of_mu), 1e-14)
