"""What the multivariate densities refuse: the same message for data and for variables, with and
without dropped terms, and nothing is recorded.
"""

import math

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, refuses
from densities.multivariate import CUTS, FACTOR, FACTOR_2, MU, SERIES, SPD, P, S, W, Y

import varmat as vm

INF, NAN = math.inf, math.nan
EYE, TWO, THREE = np.eye(2), np.zeros(2), np.zeros(3)
ASYMMETRIC, INDEFINITE = np.array([[2.0, 0.5], [0.1, 1.0]]), np.array([[1.0, 2.0], [2.0, 1.0]])
ALPHA = np.array([1.2, 0.7, 3.1])
THETAS = np.array([[0.25, 0.25, 0.5], [1e-9, 0.25, 0.75 - 1e-9]])
N, CATEGORIES = np.array([1, 3, 3, 2]), np.array([1, 2, 3])
X = np.array([[0.3, -1.2], [1.1, 0.4], [-0.7, 0.8]])
NORMALS = (vm.multi_normal_lpdf, vm.multi_normal_cholesky_lpdf, vm.multi_normal_prec_lpdf)


def definite(title):
    return f"{title} has the eigenvalue -1, but must be positive definite!"


def symmetric(title):
    return f"{title}[0, 1] is 0.5, but must be 0.1, as {title}[1, 0] is, for a symmetric matrix!"


def square(title, shape):
    return f"{title} has shape {shape}, but must be a square matrix!"


def fitting(title, shape, other):
    return (
        f"{title} has shape {shape}, but must have 2 elements along its last axis, as many as "
        f"{other} has rows!"
    )


def matching(title, shape, other):
    return f"{title} has shape {shape}, but must match {other}!"


def increasing(place, value, before, least):
    return (
        f"Cut-points[{place}] is {value}, but must be greater than Cut-points[{before}], {least}!"
    )


def dlm(place, bad):
    """Return arguments of a dynamic linear model, one of which is bad."""
    good = [SERIES, S, S, P[:2], S, W, S]
    return (*good[:place], bad, *good[place + 1 :])


REFUSALS = {
    vm.dirichlet_lpdf: [
        ((P, [1.0, 0.0, 1.0]), "prior sample sizes[1] is 0.0, but must be positive!"),
        ((P, ALPHA[:2]), matching("probabilities", (3,), "prior sample sizes, of shape (2,)")),
        ((P, 1.0), matching("probabilities", (3,), "prior sample sizes, of shape ()")),
        ((THETAS, np.ones((3, 3))),
         matching("probabilities", (2, 3), "prior sample sizes, of shape (3, 3)")),
    ],
    vm.multinomial_lpmf: [
        (([3, 1, 4], [0.25, 0.5, 0.5]),
         "sum(Probabilities parameter) is 1.25, but must be 1 to within 1e-08!"),
        (([3, 1, 4], [-0.25, 0.5, 0.75]),
         "Probabilities parameter[0] is -0.25, but must be nonnegative!"),
        (([3, 1], P),
         matching("Number of trials variable", (2,), "Probabilities parameter, of shape (3,)")),
    ],
    vm.categorical_lpmf: [
        ((1, [[0.5, 0.5], [0.5, 0.75]]),
         "sum(Probabilities parameter)[1] is 1.25, but must be 1 to within 1e-08!"),
        ((1, 1.0),
         "Probabilities parameter has shape (), but must be a vector (or a stack of them)!"),
        ((N, THETAS), "Number of categories has shape (4,), but must broadcast with (2,)!"),
        ((1, np.empty(0)), "sum(Probabilities parameter) is 0.0, but must be 1 to within 1e-08!"),
    ],
    vm.categorical_logit_lpmf: [
        ((1, [0.0, INF]), "log odds parameter[1] is inf, but must be finite!"),
        ((N, Y[:2]),
         "categorical outcome out of support has shape (4,), but must broadcast with (2,)!"),
    ],
    vm.ordered_logistic_lpmf: [
        ((1, INF, CUTS), "Location parameter is inf, but must be finite!"),
        ((1, 0.0, [-INF, 1.0]), "Cut-points[0] is -inf, but must be finite!"),
        ((1, 0.0, [0.0, 2.0, 1.0]), increasing("2", 1.0, "1", 2.0)),
        ((1, 0.0, [[0.0, 1.0], [1.0, 1.0]]), increasing("1, 1", 1.0, "1, 0", 1.0)),
        ((1, 0.0, 1.0), "Cut-points has shape (), but must be a vector (or a stack of them)!"),
        ((N, THREE, CUTS), "Location parameter has shape (3,), but must broadcast with (4,)!"),
        ((N, 0.0, [CUTS, CUTS]), "Random variable has shape (4,), but must broadcast with (2,)!"),
    ],
    vm.ordered_probit_lpmf: [
        ((1, INF, CUTS), "Location parameter is inf, but must be finite!"),
        (([1, 2], MU, CUTS), "Location parameter has shape (3,), but must broadcast with (2,)!"),
    ],
    vm.dirichlet_multinomial_lpmf: [
        (([1, 2, 3], [1.0, INF, 1.0]),
         "Prior size parameter[1] is inf, but must be positive finite!"),
        (([1, 2], P),
         matching("Number of trials variable", (2,), "Prior size parameter, of shape (3,)")),
    ],
    vm.multinomial_logit_lpmf: [
        (([1, 2], [0.0, -INF]), "log-probabilities parameter[1] is -inf, but must be finite!"),
    ],
    vm.lkj_corr_cholesky_lpdf: [
        ((EYE, 0.0), "Shape parameter is 0.0, but must be positive finite!"),
        ((np.ones(2), 1.0), square("Random variable", (2,))),
    ],
    vm.lkj_corr_lpdf: [
        ((EYE, INF), "Shape parameter is inf, but must be positive finite!"),
        ((EYE, np.ones(2)), "Shape parameter has shape (2,), but must be a scalar!"),
        ((EYE[:1], 1.0), square("Correlation matrix", (1, 2))),
    ],
    vm.lkj_cov_lpdf: [
        ((SPD, W, P, 1.0),
         "Location parameter has shape (2,), but must be a scalar or have the shape (3,)!"),
        ((SPD, MU, -P, 1.0), "Scale parameter[0] is -0.2, but must be positive finite!"),
    ],
    **{f: [
        ((EYE, 1.0, EYE),
         "Degrees of freedom parameter is 1.0, but must be finite and greater than 1!"),
        ((EYE, INF, EYE),
         "Degrees of freedom parameter is inf, but must be finite and greater than 1!"),
        ((EYE, 4.0, ASYMMETRIC), symmetric("scale parameter")),
        ((EYE, 4.0, INDEFINITE), definite("scale parameter")),
        ((np.eye(3), 4.0, EYE),
         "random variable has shape (3, 3), but must have the shape of scale parameter, (2, 2)!"),
        ((EYE, 4.0, 1.0), square("scale parameter", ())),
    ] for f in (vm.wishart_lpdf, vm.inv_wishart_lpdf)},
    vm.wishart_cholesky_lpdf: [
        ((FACTOR, 1.5, FACTOR_2),
         "Degrees of freedom parameter is 1.5, but must be finite and greater than 2!"),
        ((FACTOR, 4.0, -FACTOR_2),
         f"Cholesky Scale matrix[0, 0] is {-float(FACTOR_2[0, 0])!r}, but must be positive!"),
    ],
    vm.inv_wishart_cholesky_lpdf: [
        ((EYE, 4.0, FACTOR), ("Cholesky random variable has shape (2, 2), but must have the "
        "shape of "
         "Cholesky Scale matrix, (3, 3)!")),
    ],
    vm.multi_normal_lpdf: [
        ((TWO, TWO, ASYMMETRIC), symmetric("Covariance matrix")),
        ((TWO, TWO, INDEFINITE), definite("Covariance matrix")),
        ((np.empty((0, 2)), TWO, INDEFINITE), definite("Covariance matrix")),
        (([TWO, [0.0, NAN]], TWO, EYE), "Random variable[1, 1] is nan, but must be not nan!"),
        ((TWO, TWO, TWO), square("Covariance matrix", (2,))),
        ((TWO, TWO, 1.0), square("Covariance matrix", ())),
        ((TWO, TWO, EYE[None]), square("Covariance matrix", (1, 2, 2))),
        ((THREE, TWO, EYE), fitting("Random variable", (3,), "Covariance matrix")),
        ((0.0, TWO, EYE), fitting("Random variable", (), "Covariance matrix")),
    ],
    vm.multi_normal_prec_lpdf: [
        ((TWO, TWO, ASYMMETRIC), symmetric("Precision matrix")),
        ((TWO, TWO, INDEFINITE), definite("Precision matrix")),
    ],
    vm.multi_normal_cholesky_lpdf: [
        ((TWO, np.zeros(1), EYE), fitting("Location parameter", (1,), "Cholesky factor")),
    ],
    vm.multi_student_t_lpdf: [
        ((TWO, 4.0, TWO, ASYMMETRIC), symmetric("Scale parameter")),
        ((TWO, 4.0, TWO, INDEFINITE), definite("Scale parameter")),
        ((TWO, 0.0, TWO, EYE), "Degrees of freedom parameter is 0.0, but must be positive!"),
        ((TWO, np.ones(2), TWO, EYE),
         "Degrees of freedom parameter has shape (2,), but must be a scalar!"),
        ((np.zeros((2, 2)), 4.0, np.zeros((3, 2)), EYE), ("Location parameter has shape (3, 2), "
         "but must broadcast with Random variable, of shape (2, 2)!")),
    ],
    vm.matrix_normal_prec_lpdf: [
        ((SERIES, 0.0, SPD, SPD), ("Random variable has shape (2, 3), but must have the shape "
         "(3, 3), as the precision matrices say!")),
        ((SERIES, W, S, SPD),
         "Location parameter has shape (2,), but must be a scalar or have the shape (2, 3)!"),
        ((SERIES, 0.0, INDEFINITE, SPD), definite("Row precision matrix")),
    ],
    vm.multi_gp_lpdf: [
        ((SERIES, SPD, -P[:2]), "Kernel scales[0] is -0.2, but must be positive finite!"),
        ((SERIES, S, P[:2]), ("Random variable has shape (2, 3), but must be a matrix with 2 "
         "columns, as many as Covariance matrix has rows!")),
        ((SERIES, SPD, P), ("Kernel scales has shape (3,), but must have the shape (2,): one for "
         "each row of Random variable!")),
    ],
    vm.gaussian_dlm_obs_lpdf: [
        (dlm(2, SPD), "G has shape (3, 3), but must have the shape (2, 2), as F has (2, 2)!"),
        (dlm(3, -P[:2]), "V[0] is -0.2, but must be nonnegative and finite!"),
        (dlm(3, 1.0), "V has shape (), but must be a matrix, or a vector: its diagonal!"),
        (dlm(4, -EYE), "W has the eigenvalue -1, but must be positive semidefinite!"),
        (dlm(6, -EYE), definite("C0")),
        (dlm(0, W), "y has shape (2,), but must be a matrix!"),
    ],
    vm.categorical_logit_glm_lpmf: [
        ((CATEGORIES, X, MU, np.ones(3)), ("Weight vector has shape (3,), but must be a matrix "
         "with 2 rows and a column for each category!")),
        ((CATEGORIES, X, W, np.ones((2, 3))),
         "Intercept has shape (2,), but must have the shape (3,)!"),
        ((CATEGORIES[:2], X, MU, np.ones((2, 3))), ("Vector of dependent variables has shape "
         "(2,), but must be a scalar or have the shape (3,)!")),
    ],
    vm.ordered_logistic_glm_lpmf: [
        ((CATEGORIES, X, MU, CUTS), "Weight vector has shape (3,), but must have the shape (2,)!"),
        ((CATEGORIES, X, W, [CUTS, CUTS]), "Cut-points has shape (2, 3), but must be a vector!"),
        ((CATEGORIES, np.ones((1, 2, 2)), W, CUTS), ("Matrix of independent variables has shape "
         "(1, 2, 2), but must be a matrix, or a vector: one row!")),
        ((CATEGORIES, X, W, CUTS[::-1]), increasing("1", 0.2, "0", 1.5)),
    ],
}  # fmt: skip
ROWS = [
    pytest.param(f, args, text, id=f"{f.name}: {text}")
    for f, rows in REFUSALS.items()
    for args, text in rows
]


def expect_refusal(f, args, text):
    error = SHAPE if " has shape " in text else DOMAIN
    discrete = f.name.endswith("lpmf")
    for make in (lambda x: x, vm.var):
        with vm.nested() as tape:
            given = [x if discrete and i == 0 else make(x) for i, x in enumerate(args)]
            for propto in (False, True):
                with pytest.raises(error) as caught:
                    f(*given, propto=propto)
                assert str(caught.value) == f"{f.name}: {text}"
                assert isinstance(caught.value, np.linalg.LinAlgError) == ("eigenvalue" in text)
            assert not tape


@pytest.mark.parametrize(("f", "args", "text"), ROWS)
def test_refusals(f, args, text):
    expect_refusal(f, args, text)


# Place of an argument, place of a bad element, the element, and the message; that of the matrix
# follows its title.
BAD = [
    (0, 0, NAN, "Random variable[0] is nan, but must be not nan!"),
    (1, 1, NAN, "Location parameter[1] is nan, but must be finite!"),
    (1, 0, -INF, "Location parameter[0] is -inf, but must be finite!"),
    (2, (0, 0), INF, "[0, 0] is inf, but must be finite!"),
    (2, (1, 1), NAN, "[1, 1] is nan, but must be finite!"),
]
BAD_FACTOR = [
    (2, (1, 0), INF, "[1, 0] is inf, but must be finite!"),
    (2, (2, 1), NAN, "[2, 1] is nan, but must be finite!"),
    (2, (1, 1), 0.0, "[1, 1] is 0.0, but must be positive!"),
    (2, (2, 2), -0.5, "[2, 2] is -0.5, but must be positive!"),
]


@pytest.mark.parametrize(
    "y", [[0.0, 0.0, 0.0], [0.5, 0.0, -2.0], [0.5, 1.0, -2.0], [1e200, 0.0, 1.0]]
)
@pytest.mark.parametrize("f", NORMALS, ids=lambda f: f.name)
def test_bad_arguments_beside_one_observation(f, y):
    """An argument outside its domain is refused even if the value is finite."""
    title = [*f.arguments.values()][2][0]
    for i, place, bad, text in BAD + BAD_FACTOR * ("cholesky" in f.name):
        args = [np.array(y), np.zeros(3), np.eye(3)]
        args[i][place] = bad
        expect_refusal(f, args, title + text if text.startswith("[") else text)
        # With propto=True the determinant of a constant matrix is dropped, so it cannot reveal a
        # bad matrix.
        for free in range(3):

            def of_one(x, args=args, free=free):
                return f(*args[:free], x, *args[free + 1 :], propto=True)

            refuses(DOMAIN, "must be", vm.gradient, of_one, args[free])


def test_infinite_observations_beside_locations():
    infinite = np.array([INF, 0.0, 1.0])
    message = r"Location parameter\[0\] is inf"
    refuses(DOMAIN, message, vm.multi_normal_lpdf, infinite, infinite, np.eye(3))
    assert vm.multi_normal_cholesky_lpdf(infinite, [0.5, 1.0, -2.0], np.eye(3)) == -INF
