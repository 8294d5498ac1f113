"""Second derivatives of the multivariate densities against 50-digit arithmetic."""

import mpmath as mp
import numpy as np
import pytest
from comparing import close
from densities.multivariate import DENSITIES, Y
from densities.test_categorical import dirichlet, ordered
from densities.test_matrix_variate import inv_wishart, lkj, lkj_cholesky, wishart
from densities.test_multi_normal import normal, of_factor, student
from densities.test_multivariate_exact import (
    dirichlet_multinomial,
    gp,
    lkj_cov,
    matrix_normal,
    of_factors,
    probit,
)

import varmat as vm

POINTS, N = Y[:3, :2], np.array([1, 3, 4])
MU, SPD, LOWER = [0.1, 0.2], [2.0, 0.5, 1.5], [1.4, 0.3, 1.1]
SYMMETRIC, FACTOR = np.array([[0, 1], [1, 2]]), np.array([[0, 3], [1, 2]])


def of_points(exact):
    return lambda *args: exact(mp.matrix(POINTS.tolist()), *args)


def of_precision(mu, omega):
    return of_points(normal)(mu, omega**-1)


# Density -> the leading data, the 50-digit function of the other arguments, and those arguments. An
# argument is a float, a vector, or a matrix of three elements with an index that says where they
# stand.
CASES = {
    "multi_normal_lpdf": ((POINTS,), of_points(normal), [MU, (SYMMETRIC, SPD)]),
    "multi_normal_prec_lpdf": ((POINTS,), of_precision, [MU, (SYMMETRIC, SPD)]),
    "multi_normal_cholesky_lpdf": ((POINTS,), of_points(of_factor(normal)), [MU, (FACTOR, LOWER)]),
    "multi_student_t_lpdf": ((POINTS,), of_points(student), [3.5, MU, (SYMMETRIC, SPD)]),
    "multi_student_t_cholesky_lpdf": ((POINTS,), of_points(of_factor(student)),
     [3.5, MU, (FACTOR, LOWER)]),
    "dirichlet_lpdf": ((), dirichlet, [[0.2, 0.5, 0.3], [1.2, 0.7, 3.1]]),
    "ordered_logistic_lpmf": ((N,), ordered(N), [[0.4, -0.3, 1.3], [-1.0, 0.2, 1.5]]),
    "wishart_lpdf": ((), wishart, [(SYMMETRIC, SPD), 4.2, (SYMMETRIC, [1.3, 0.2, 0.9])]),
    "inv_wishart_lpdf": ((), inv_wishart, [(SYMMETRIC, SPD), 4.2, (SYMMETRIC, [1.3, 0.2, 0.9])]),
    "lkj_corr_lpdf": ((), lkj, [(SYMMETRIC, [1.0, 0.3, 1.0]), 1.7]),
    "lkj_corr_cholesky_lpdf": ((), lkj_cholesky, [(FACTOR, [1.0, 0.6, 0.8]), 1.7]),
    "wishart_cholesky_lpdf": ((), of_factors(wishart), [(FACTOR, LOWER), 4.2,
        (FACTOR, [1.3, 0.2, 0.9])]),
    "inv_wishart_cholesky_lpdf": ((), of_factors(inv_wishart),
     [(FACTOR, LOWER), 4.2, (FACTOR, [1.3, 0.2, 0.9])]),
    "lkj_cov_lpdf": ((), lkj_cov, [(SYMMETRIC, SPD), MU, [0.7, 1.3], 1.7]),
    "dirichlet_multinomial_lpmf": ((N,), dirichlet_multinomial(N), [[1.2, 0.7, 3.1]]),
    "ordered_probit_lpmf": ((N,), probit(N), [[0.4, -0.3, 1.3], [-1.0, 0.2, 1.5]]),
    "matrix_normal_prec_lpdf": (
        (POINTS[:2], POINTS[1:]),
         lambda *args: matrix_normal(*(mp.matrix(x.tolist()) for x in (POINTS[:2], POINTS[1:])),
         *args),
        [(SYMMETRIC, SPD), (SYMMETRIC, [1.3, 0.2, 0.9])],
    ),
    "multi_gp_lpdf": ((POINTS,), of_points(gp), [(SYMMETRIC, SPD), [0.7, 1.3, 2.0]]),
}  # fmt: skip


def arguments(parts, x, vector, matrix):
    """Make the arguments from the elements of x, one part after the other."""
    args, rest = [], list(x)
    for part in parts:
        if isinstance(part, float):
            args.append(rest.pop(0))
            continue
        index, elements = part if isinstance(part, tuple) else (None, part)
        piece, rest = rest[: len(elements)], rest[len(elements) :]
        args.append(vector(piece) if index is None else matrix(piece, index))
    return args


@pytest.mark.parametrize("name", CASES)
def test_hessian(name):
    data, exact, parts = CASES[name]
    point = np.hstack([part[1] if isinstance(part, tuple) else part for part in parts])

    def f(x):
        # The last place of the index is the zero of a factor.
        args = arguments(parts, x, np.stack, lambda v, index: np.stack([*v, 0.0])[index])
        return DENSITIES[name](*data, *args)

    def truth(*x):
        def matrix(v, index):
            return mp.matrix([[(*v, 0)[i] for i in row] for row in index.tolist()])

        return exact(*arguments(parts, x, mp.matrix, matrix))

    n = len(point)
    expected = np.zeros((n, n))
    with mp.workdps(50):
        for i in range(n):
            for j in range(i + 1):
                orders = tuple((k == i) + (k == j) for k in range(n))
                expected[i, j] = expected[j, i] = float(
                    mp.diff(truth, tuple(map(mp.mpf, point.tolist())), orders)
                )
    hessian = vm.hessian(f, point)
    close(hessian, expected, 0.0, 2e-14 * np.max(np.abs(expected)))
