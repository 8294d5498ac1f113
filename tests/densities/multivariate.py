"""The multivariate densities, arguments for each, and versions of them that accept any numbers."""

import numpy as np

import varmat as vm
from varmat.densities import (
    categorical,
    gaussian_dlm,
    glm_categories,
    lkj,
    matrix_normal,
    multi_normal,
    ordered,
    simplex,
    wishart,
    wishart_cholesky,
)

DENSITIES = {
    name: getattr(module, name)
    for module in (
        multi_normal, simplex, categorical, ordered, lkj, wishart, wishart_cholesky,
         matrix_normal, gaussian_dlm, glm_categories,
    )
    for name in module.__all__
}  # fmt: skip

rng = np.random.default_rng(20240711)
Y, MU = rng.normal(size=(4, 3)), rng.normal(size=3)
B, C = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
SPD, SPD_2 = B @ B.T + np.eye(3), C @ C.T + 2.0 * np.eye(3)
FACTOR, FACTOR_2 = np.linalg.cholesky(SPD), np.linalg.cholesky(SPD_2)
P, P_2 = np.array([0.2, 0.5, 0.3]), np.array([[0.25, 0.25, 0.5], [0.125, 0.125, 0.75]])
CUTS, CUTS_2 = np.array([-1.0, 0.2, 1.5]), np.array([-2.0, -1.5, 0.5])
ETA = np.array([0.4, -0.3, 1.3, 2.0])
CUTS_4 = np.array([0.1, -0.4, 0.7, 0.2])


def normalised(x):
    """Make a Cholesky factor of a correlation matrix from any matrix."""
    x = np.where(np.tri(len(x), dtype=bool), x, 0.0) + 3.0 * np.eye(len(x))
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def positive_definite(x):
    return x @ x.T + np.eye(len(x))


def increasing(x):
    return np.cumsum(np.exp(x), axis=-1) - 2.0


def spread(x):
    return vm.softmax(x, axis=-1)


def correlation(x):
    return (factor := normalised(x)) @ factor.T


def lower(x):
    """Make a lower Cholesky factor from any matrix."""
    return np.where(np.tri(len(x), dtype=bool), x, 0.0) + 3.0 * np.eye(len(x))


CORRELATION, CORRELATION_2 = normalised(B), normalised(C)
# Arguments of a dynamic linear model with two series, three times and two states. Densities of
# matrices with two rows use them too.
SERIES = rng.normal(size=(2, 3))
DESIGN = rng.normal(size=(2, 2))
TRANSITION = 0.5 * rng.normal(size=(2, 2))
W = rng.normal(size=2)
S, S_2 = (x[:2, :2] for x in (SPD, SPD_2))
LOADINGS = rng.normal(size=(3, 4))
# The arguments of each density, and other values for those that may be variables.
ARGUMENTS = {
    "multi_normal_lpdf": ((Y, MU, SPD), (Y + 1.0, -MU, SPD_2)),
    "multi_normal_prec_lpdf": ((Y, MU, SPD), (Y + 1.0, -MU, SPD_2)),
    "multi_normal_cholesky_lpdf": ((Y, MU, FACTOR), (Y + 1.0, -MU, FACTOR_2)),
    "multi_student_t_lpdf": ((Y, 3.5, MU, SPD), (Y + 1.0, 7.0, -MU, SPD_2)),
    "multi_student_t_cholesky_lpdf": ((Y, 3.5, MU, FACTOR), (Y + 1.0, 7.0, -MU, FACTOR_2)),
    "dirichlet_lpdf": ((P, np.array([1.2, 0.7, 3.1])), (P_2[0], np.array([2.0, 3.0, 1.0]))),
    "multinomial_lpmf": ((np.array([3, 1, 0]), P), (None, P_2[0])),
    "categorical_lpmf": ((np.array([1, 3, 3]), P), (None, P_2[0])),
    "categorical_logit_lpmf": ((np.array([1, 3, 3]), MU), (None, -MU)),
    "ordered_logistic_lpmf": ((np.array([1, 3, 4]), MU, CUTS), (None, -MU, CUTS_2)),
    "lkj_corr_cholesky_lpdf": ((CORRELATION, 1.7), (CORRELATION_2, 0.6)),
    "lkj_corr_lpdf": ((CORRELATION @ CORRELATION.T, 1.7), (CORRELATION_2 @ CORRELATION_2.T, 0.6)),
    "wishart_lpdf": ((SPD, 4.2, SPD_2), (SPD_2, 5.0, SPD)),
    "inv_wishart_lpdf": ((SPD, 4.2, SPD_2), (SPD_2, 5.0, SPD)),
    "wishart_cholesky_lpdf": ((FACTOR, 4.2, FACTOR_2), (FACTOR_2, 5.0, FACTOR)),
    "inv_wishart_cholesky_lpdf": ((FACTOR, 4.2, FACTOR_2), (FACTOR_2, 5.0, FACTOR)),
    "lkj_cov_lpdf": ((SPD, MU, P, 1.7), (SPD_2, -MU, P_2[0], 0.6)),
    "dirichlet_multinomial_lpmf": ((np.array([3, 1, 0]), np.array([1.2, 0.7, 3.1])),
        (None, np.array([2.0, 3.0, 1.0]))),
    "multinomial_logit_lpmf": ((np.array([3, 1, 0]), MU), (None, -MU)),
    "ordered_probit_lpmf": ((np.array([1, 3, 4]), MU, CUTS), (None, -MU, CUTS_2)),
    "matrix_normal_prec_lpdf": ((SERIES, SERIES[::-1] / 3, S, SPD_2),
                                (SERIES + 1.0, SERIES / 7, S_2, SPD)),
    "multi_gp_lpdf": ((SERIES, SPD, P[:2]), (SERIES + 1.0, SPD_2, P[1:])),
    "multi_gp_cholesky_lpdf": ((SERIES, FACTOR, P[:2]), (SERIES + 1.0, FACTOR_2, P[1:])),
    "gaussian_dlm_obs_lpdf": ((SERIES[:1, :1], DESIGN[:, :1], TRANSITION, P[:1], S_2, MU[:2], S),
                              (SERIES[:1, :1] + 1.0, DESIGN[:, 1:], TRANSITION / 2, P[1:2], S,
                               MU[1:], S_2)),
    "categorical_logit_glm_lpmf": ((np.array([1, 4, 3, 4]), Y, CUTS_4 / 2, LOADINGS),
        (None, -Y, -CUTS_4, LOADINGS / 2)),
    "ordered_logistic_glm_lpmf": ((np.array([1, 4, 3, 2]), Y, MU, CUTS),
        (None, -Y, MU / 2, CUTS_2)),
}  # fmt: skip


def multi(name, *points):
    """Return a normal or Student density whose last argument may be any matrix, with arguments for
    it.
    """
    return lambda *args: DENSITIES[name](*args[:-1], positive_definite(args[-1])), (*points, B)


def free(name, **changes):
    """Return a density whose named arguments are made from any numbers by functions."""
    f = DENSITIES[name]
    assert changes.keys() <= f.arguments.keys()

    def density(*args):
        return f(*(changes.get(n, lambda x: x)(x) for n, x in zip(f.arguments, args, strict=True)))

    return density


def dlm_free(y, f, g, v):
    return vm.gaussian_dlm_obs_lpdf(y, f, g, positive_definite(v), S_2, W, S)


def dlm_of_states(v, w, m0, c0):
    w, c0 = positive_definite(w), positive_definite(c0)
    return vm.gaussian_dlm_obs_lpdf(SERIES[:1, :2], DESIGN[:, :1], TRANSITION, np.exp(v), w, m0, c0)


MANY = rng.normal(size=(8, 3))
NO_COUNTS, NO_CATEGORIES = np.empty((0, 3), int), np.empty(0, int)
ONE_COUNT, TWO_COUNTS = np.array([3, 0, 4]), np.array([[3, 0, 4], [0, 0, 0]])
THREE, FOUR = np.array([1, 4, 2]), np.array([1, 4, 3, 2])
CHOSEN = np.array([[2, 3, 1], [1, 1, 1]])
DIRICHLET = free("dirichlet_lpdf", theta=spread, alpha=np.exp)
MULTINOMIAL, CATEGORICAL = (
    free(f"{name}_lpmf", theta=spread) for name in ("multinomial", "categorical")
)
TRIALS = free("dirichlet_multinomial_lpmf", alpha=np.exp)
LOGISTIC, PROBIT = (
    free(f"ordered_{name}_lpmf", cutpoints=increasing) for name in ("logistic", "probit")
)
REGRESSION = free("ordered_logistic_glm_lpmf", cutpoints=increasing)
MATRIX_NORMAL = free("matrix_normal_prec_lpdf", Sigma=positive_definite, D=positive_definite)
GP = free("multi_gp_lpdf", Sigma=positive_definite, w=np.exp)
COVARIANCE = free("lkj_cov_lpdf", Sigma=positive_definite, sigma=np.exp)
# Functions with their arguments. They are defined wherever finite differences step to. Integer
# arguments are not differentiated.
FREE = {
    **{name: multi(name, *ARGUMENTS[name][0][:-1]) for name in multi_normal.__all__},
    **{
        f"{name}, many": multi(name, MANY, *ARGUMENTS[name][0][1:-1])
        for name in multi_normal.__all__
    },
    "multi_normal_lpdf, one": multi("multi_normal_lpdf", Y[0], MU),
    "multi_normal_lpdf, one y": multi("multi_normal_lpdf", Y[0], Y[::-1]),
    "multi_normal_lpdf, stack": multi("multi_normal_lpdf", Y.reshape(2, 2, 3), Y[:2]),
    "multi_normal_lpdf, scalar mu": multi("multi_normal_lpdf", Y[::-2], 0.5),
    "multi_normal_lpdf, size one": (lambda y, mu, b: vm.multi_normal_lpdf(y, mu, b * b),
                                    (Y[:, :1], MU[:1], B[:1, :1])),
    "multi_normal_cholesky_lpdf, empty": multi("multi_normal_cholesky_lpdf", Y[:0], MU),
    "multi_student_t_lpdf, empty": multi("multi_student_t_lpdf", Y[:0], 4.0, MU),
    "multi_student_t_lpdf, normal": (
        lambda *args: multi("multi_student_t_lpdf")[0](args[0], np.inf, *args[1:]), (Y, MU, B)),
    "multi_normal_lpdf, no elements": (vm.multi_normal_lpdf,
                                       (np.empty(0), np.empty(0), np.empty((0, 0)))),
    "dirichlet_lpdf": (DIRICHLET, (MU, B[0])),
    "dirichlet_lpdf, batch": (DIRICHLET, (Y, B[0])),
    "dirichlet_lpdf, one theta": (DIRICHLET, (MU, B[:2])),
    "dirichlet_lpdf, size one": (DIRICHLET, (MU[:1], B[0, :1])),
    "dirichlet_lpdf, empty": (DIRICHLET, (Y[:0], B[0])),
    "multinomial_lpmf": (MULTINOMIAL, (ONE_COUNT, MU)),
    "multinomial_lpmf, batch": (MULTINOMIAL, (np.array([[3, 0, 4], [1, 2, 0]]), MU)),
    "multinomial_lpmf, one n": (MULTINOMIAL, (ONE_COUNT, Y)),
    "multinomial_lpmf, empty": (MULTINOMIAL, (NO_COUNTS, MU)),
    "categorical_lpmf": (CATEGORICAL, (2, MU)),
    "categorical_lpmf, batch": (CATEGORICAL, (np.array([2, 2, 1]), MU)),
    "categorical_lpmf, rows": (CATEGORICAL, (np.array([2, 2, 1, 3]), Y)),
    "categorical_logit_lpmf": (vm.categorical_logit_lpmf, (2, MU)),
    "categorical_logit_lpmf, batch": (vm.categorical_logit_lpmf, (CHOSEN, MU)),
    "categorical_logit_lpmf, rows": (vm.categorical_logit_lpmf,
                                     (np.array([[2, 2, 1, 3], [1, 2, 3, 3]]), Y)),
    "categorical_logit_lpmf, one n": (vm.categorical_logit_lpmf, (3, Y)),
    "categorical_logit_lpmf, empty": (vm.categorical_logit_lpmf, (NO_CATEGORIES, MU)),
    "categorical_logit_lpmf, no rows": (vm.categorical_logit_lpmf, (1, Y[:0])),
    **{
        f"{f.name}{what}": (g, args)
        for f, g in ((vm.ordered_logistic_lpmf, LOGISTIC), (vm.ordered_probit_lpmf, PROBIT))
        for what, g, args in (
            ("", g, (2, 0.3, MU)),
            (", batch", g, (THREE, MU, B[0])),
            (", rows", g, (THREE, 0.5, B)),
            (", one n", g, (3, MU, B[0])),
            (", empty", g, (NO_CATEGORIES, 0.5, MU)),
            (", no cutpoints", f, (np.array([1, 1]), 0.5, MU[:0])),
        )
    },
    "lkj_corr_cholesky_lpdf": (free("lkj_corr_cholesky_lpdf", L=normalised), (B, 1.7)),
    "lkj_corr_cholesky_lpdf, size one": (free("lkj_corr_cholesky_lpdf", L=normalised),
                                         (B[:1, :1], 1.7)),
    "lkj_corr_lpdf": (free("lkj_corr_lpdf", Sigma=correlation), (B, 0.8)),
    "wishart_lpdf": (free("wishart_lpdf", W=positive_definite, S=positive_definite),
                     (B, 4.2, C)),
    "inv_wishart_lpdf": (free("inv_wishart_lpdf", W=positive_definite, S=positive_definite),
                         (B, 4.2, C)),
    "wishart_lpdf, size one": (free("wishart_lpdf", W=np.square, S=np.square),
                               (B[:1, :1], 0.7, C[:1, :1])),
    "wishart_cholesky_lpdf": (free("wishart_cholesky_lpdf", L_Y=lower, L_S=lower), (B, 4.2, C)),
    "inv_wishart_cholesky_lpdf": (free("inv_wishart_cholesky_lpdf", L_Y=lower, L_S=lower),
                                  (B, 4.2, C)),
    "lkj_cov_lpdf": (COVARIANCE, (B, MU, MU, 1.7)),
    "lkj_cov_lpdf, scalars": (COVARIANCE, (B, 0.3, 0.2, 1.7)),
    "dirichlet_multinomial_lpmf": (TRIALS, (ONE_COUNT, MU)),
    "dirichlet_multinomial_lpmf, one n": (TRIALS, (ONE_COUNT, Y)),
    "dirichlet_multinomial_lpmf, one alpha": (TRIALS, (TWO_COUNTS, MU)),
    "dirichlet_multinomial_lpmf, empty": (TRIALS, (NO_COUNTS, MU)),
    "multinomial_logit_lpmf": (vm.multinomial_logit_lpmf, (ONE_COUNT, MU)),
    "multinomial_logit_lpmf, one n": (vm.multinomial_logit_lpmf, (ONE_COUNT, Y)),
    "multinomial_logit_lpmf, one gamma": (vm.multinomial_logit_lpmf, (TWO_COUNTS, MU)),
    "multinomial_logit_lpmf, empty": (vm.multinomial_logit_lpmf, (NO_COUNTS, MU)),
    "matrix_normal_prec_lpdf": (MATRIX_NORMAL, (SERIES, SERIES[::-1] / 3, TRANSITION, B)),
    "matrix_normal_prec_lpdf, scalar mu": (MATRIX_NORMAL, (SERIES, 0.3, TRANSITION, B)),
    "multi_gp_lpdf": (GP, (SERIES, B, W)),
    "multi_gp_lpdf, many": (GP, (MANY, B, MANY[:, 0])),
    "multi_gp_cholesky_lpdf": (free("multi_gp_cholesky_lpdf", L=lower, w=np.exp), (SERIES, B, W)),
    "gaussian_dlm_obs_lpdf": (dlm_free, (SERIES[:, :2], DESIGN, TRANSITION, S)),
    "gaussian_dlm_obs_lpdf, states": (dlm_of_states, (W[:1], S_2, W, DESIGN)),
    "gaussian_dlm_obs_lpdf, empty": (dlm_free, (SERIES[:, :0], DESIGN, TRANSITION, S)),
    "categorical_logit_glm_lpmf": (vm.categorical_logit_glm_lpmf,
                                   (np.array([1, 4, 3, 4]), Y, CUTS_4, LOADINGS)),
    "categorical_logit_glm_lpmf, a row": (vm.categorical_logit_glm_lpmf,
                                          (np.array([1, 4]), Y[0], CUTS_4, LOADINGS)),
    "categorical_logit_glm_lpmf, one y": (vm.categorical_logit_glm_lpmf, (2, Y, CUTS_4, LOADINGS)),
    "categorical_logit_glm_lpmf, empty": (vm.categorical_logit_glm_lpmf,
                                          (NO_CATEGORIES, Y[:0], CUTS_4, LOADINGS)),
    "ordered_logistic_glm_lpmf": (REGRESSION, (FOUR, Y, MU, B[0])),
    "ordered_logistic_glm_lpmf, a row": (REGRESSION, (np.array([1, 4]), Y[0], MU, B[0])),
    "ordered_logistic_glm_lpmf, one y": (REGRESSION, (2, Y, MU, B[0])),
    "ordered_logistic_glm_lpmf, two": (REGRESSION, (np.array([1, 2, 2, 2]), Y, MU, B[0, :1])),
    "ordered_logistic_glm_lpmf, empty": (REGRESSION, (NO_CATEGORIES, Y[:0], MU, B[0])),
}  # fmt: skip
