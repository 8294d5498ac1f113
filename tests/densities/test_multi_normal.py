"""Multivariate normal and Student t densities: 50 digits, comparison of the parameterisations,
limits, refusals.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from comparing import close, equal, refuses
from densities.multivariate import (
    DENSITIES,
    FACTOR,
    MANY,
    MU,
    SPD,
    B,
    Y,
    expect_refusal,
    positive_definite,
)
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


@pytest.mark.parametrize("y", [Y[0], Y, np.concatenate([MANY, Y])], ids=["one", "few", "many"])
def test_parameterisations_agree(y):
    def of_precision(mu, b):
        return multi_normal_prec_lpdf(y, mu, vm.inverse_spd(positive_definite(b)))

    def of_factor(mu, b):
        return multi_normal_cholesky_lpdf(y, mu, np.linalg.cholesky(positive_definite(b)))

    value, gradients = vm.value_and_grad(
        lambda mu, b: multi_normal_lpdf(y, mu, positive_definite(b)), (0, 1)
    )(MU, B)
    for f in (of_precision, of_factor):
        other, others = vm.value_and_grad(f, (0, 1))(MU, B)
        close(other, value, 1e-14)
        close(gradients, others, 1e-13, 1e-14)


def test_independent_components_are_univariate():
    scales = np.array([0.5, 1.5, 3.0])
    expected = vm.value_and_grad(lambda mu: vm.normal_lpdf(Y, mu, scales))(MU)
    for f, matrix in (
        (multi_normal_lpdf, np.diag(scales**2)),
        (multi_normal_cholesky_lpdf, np.diag(scales)),
    ):
        value, gradient = vm.value_and_grad(lambda mu, f=f, matrix=matrix: f(Y, mu, matrix))(MU)
        close(value, expected[0], 1e-14)
        close(gradient, expected[1], 1e-14)


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


BAD = [
    (0, 0, math.nan, "Random variable[0] is nan, but must be not nan!"),
    (1, 1, math.nan, "Location parameter[1] is nan, but must be finite!"),
    (1, 0, -INF, "Location parameter[0] is -inf, but must be finite!"),
    (2, (0, 0), INF, "[0, 0] is inf, but must be finite!"),
    (2, (1, 1), math.nan, "[1, 1] is nan, but must be finite!"),
]
BAD_FACTOR = [
    (2, (1, 0), INF, "Cholesky factor[1, 0] is inf, but must be finite!"),
    (2, (2, 1), math.nan, "Cholesky factor[2, 1] is nan, but must be finite!"),
    (2, (1, 1), 0.0, "Cholesky factor[1, 1] is 0.0, but must be positive!"),
    (2, (2, 2), -0.5, "Cholesky factor[2, 2] is -0.5, but must be positive!"),
]


@pytest.mark.parametrize("y", [
    np.zeros(3), np.array([0.5, 0.0, -2.0]), np.array([0.5, 1.0, -2.0]),
    np.array([1e200, 0.0, 1.0]),
])  # fmt: skip
def test_bad_arguments_beside_one_observation(y):
    """An argument outside its domain is refused even if the value is finite. Valid arguments are
    accepted even if the value is not finite.
    """
    for name in ("multi_normal_lpdf", "multi_normal_cholesky_lpdf", "multi_normal_prec_lpdf"):
        for i, place, value, message in BAD + BAD_FACTOR * ("cholesky" in name):
            args = [y.copy(), np.zeros(3), np.eye(3)]
            args[i][place] = value
            title = (
                DENSITIES[name].arguments[list(DENSITIES[name].arguments)[2]][0]
                if message.startswith("[")
                else ""
            )
            expect_refusal(DENSITIES[name], args, vm.DomainError, title + message)
            # With propto=True the determinant of a constant matrix is dropped, so it cannot reveal
            # a bad matrix.
            for free in range(3):

                def f(x, args=args, free=free, name=name):
                    return DENSITIES[name](*args[:free], x, *args[free + 1 :], propto=True)

                refuses(vm.DomainError, "must be", vm.gradient, f, args[free])
    infinite = np.array([INF, 0.0, 1.0])
    with pytest.raises(vm.DomainError, match=r"Location parameter\[0\] is inf"):
        multi_normal_lpdf(infinite, infinite, np.eye(3))
    assert multi_normal_cholesky_lpdf(infinite, y, np.eye(3)) == -INF


EYE = np.eye(2)
ASYMMETRIC = np.array([[2.0, 0.5], [0.1, 1.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
TWO = np.zeros(2)
REFUSALS = [
    (multi_normal_lpdf, (TWO, TWO, ASYMMETRIC), vm.DomainError,
     (r"Covariance matrix[0, 1] is 0.5, but must be 0.1, as Covariance matrix[1, 0] is, for a "
     r"symmetric matrix!")),
    (multi_normal_prec_lpdf, (TWO, TWO, ASYMMETRIC), vm.DomainError,
     ("Precision matrix[0, 1] is 0.5, but must be 0.1, as Precision matrix[1, 0] is, for a "
     "symmetric matrix!")),
    (multi_student_t_lpdf, (TWO, 4.0, TWO, ASYMMETRIC), vm.DomainError,
     ("Scale parameter[0, 1] is 0.5, but must be 0.1, as Scale parameter[1, 0] is, for a symmetric "
     "matrix!")),
    (multi_normal_lpdf, (TWO, TWO, INDEFINITE), np.linalg.LinAlgError,
     "Covariance matrix has the eigenvalue -1, but must be positive definite!"),
    (multi_normal_lpdf, (np.empty((0, 2)), TWO, INDEFINITE), vm.DomainError,
     "Covariance matrix has the eigenvalue -1, but must be positive definite!"),
    (multi_normal_prec_lpdf, (TWO, TWO, INDEFINITE), vm.DomainError,
     "Precision matrix has the eigenvalue -1, but must be positive definite!"),
    (multi_student_t_lpdf, (TWO, 4.0, TWO, INDEFINITE), vm.DomainError,
     "Scale parameter has the eigenvalue -1, but must be positive definite!"),
    (multi_normal_lpdf, (TWO, TWO, np.array([[INF, 0.0], [0.0, 1.0]])), vm.DomainError,
     "Covariance matrix[0, 0] is inf, but must be finite!"),
    (multi_normal_cholesky_lpdf, (TWO, TWO, -EYE), vm.DomainError,
     "Cholesky factor[0, 0] is -1.0, but must be positive!"),
    (multi_normal_cholesky_lpdf, (TWO, TWO, EYE * [1.0, 0.0]), vm.DomainError,
     "Cholesky factor[1, 1] is 0.0, but must be positive!"),
    (multi_normal_cholesky_lpdf, (TWO, TWO, np.array([[1.0, 0.0], [INF, 1.0]])), vm.DomainError,
     "Cholesky factor[1, 0] is inf, but must be finite!"),
    (multi_normal_lpdf, (np.array([TWO, [0.0, math.nan]]), TWO, EYE), vm.DomainError,
     "Random variable[1, 1] is nan, but must be not nan!"),
    (multi_normal_lpdf, (TWO, np.array([0.0, INF]), EYE), vm.DomainError,
     "Location parameter[1] is inf, but must be finite!"),
    (multi_student_t_lpdf, (TWO, 0.0, TWO, EYE), vm.DomainError,
     "Degrees of freedom parameter is 0.0, but must be positive!"),
    (multi_student_t_lpdf, (TWO, np.ones(2), TWO, EYE), vm.ShapeError,
     "Degrees of freedom parameter has shape (2,), but must be a scalar!"),
    (multi_normal_lpdf, (TWO, TWO, TWO), vm.ShapeError,
     "Covariance matrix has shape (2,), but must be a square matrix!"),
    (multi_normal_lpdf, (TWO, TWO, 1.0), vm.ShapeError,
     "Covariance matrix has shape (), but must be a square matrix!"),
    (multi_normal_lpdf, (TWO, TWO, EYE[None]), vm.ShapeError,
     "Covariance matrix has shape (1, 2, 2), but must be a square matrix!"),
    (multi_normal_lpdf, (np.zeros(3), TWO, EYE), vm.ShapeError,
     ("Random variable has shape (3,), but must have 2 elements along its last axis, as many as "
     "Covariance matrix has rows!")),
    (multi_normal_lpdf, (0.0, TWO, EYE), vm.ShapeError,
     ("Random variable has shape (), but must have 2 elements along its last axis, as many as "
     "Covariance matrix has rows!")),
    (multi_normal_cholesky_lpdf, (TWO, np.zeros(1), EYE), vm.ShapeError,
     ("Location parameter has shape (1,), but must have 2 elements along its last axis, as many as "
     "Cholesky factor has rows!")),
    (multi_student_t_lpdf, (np.zeros((2, 2)), 4.0, np.zeros((3, 2)), EYE), vm.ShapeError,
     ("Location parameter has shape (3, 2), but must broadcast with Random variable, of shape (2, "
     "2)!")),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "error", "message"), REFUSALS, ids=[m for *_, m in REFUSALS])
def test_refusals(f, args, error, message):
    expect_refusal(f, args, error, message)
