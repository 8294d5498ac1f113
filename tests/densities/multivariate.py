"""The multivariate densities, arguments for each, and versions of them that accept any numbers."""

import numpy as np
import pytest

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
from varmat.densities.categorical import categorical_logit_lpmf, categorical_lpmf
from varmat.densities.gaussian_dlm import gaussian_dlm_obs_lpdf
from varmat.densities.glm_categories import categorical_logit_glm_lpmf, ordered_logistic_glm_lpmf
from varmat.densities.lkj import lkj_corr_cholesky_lpdf, lkj_corr_lpdf, lkj_cov_lpdf
from varmat.densities.matrix_normal import (
    matrix_normal_prec_lpdf,
    multi_gp_cholesky_lpdf,
    multi_gp_lpdf,
)
from varmat.densities.ordered import ordered_logistic_lpmf, ordered_probit_lpmf
from varmat.densities.simplex import (
    dirichlet_lpdf,
    dirichlet_multinomial_lpmf,
    multinomial_logit_lpmf,
    multinomial_lpmf,
)
from varmat.densities.wishart import inv_wishart_lpdf, wishart_lpdf
from varmat.densities.wishart_cholesky import inv_wishart_cholesky_lpdf, wishart_cholesky_lpdf

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


def ordered_free(n, eta, x):
    return ordered_logistic_lpmf(n, eta, increasing(x))


def probit_free(n, eta, x):
    return ordered_probit_lpmf(n, eta, increasing(x))


def ordered_glm_free(n, x, beta, c):
    return ordered_logistic_glm_lpmf(n, x, beta, increasing(c))


def trials_free(n, alpha):
    return dirichlet_multinomial_lpmf(n, np.exp(alpha))


def dlm_free(y, f, g, v):
    return gaussian_dlm_obs_lpdf(y, f, g, positive_definite(v), S_2, W, S)


def dlm_of_states(v, w, m0, c0):
    w, c0 = positive_definite(w), positive_definite(c0)
    return gaussian_dlm_obs_lpdf(SERIES[:1, :2], DESIGN[:, :1], TRANSITION, np.exp(v), w, m0, c0)


def matrix_free(y, mu, s, d):
    return matrix_normal_prec_lpdf(y, mu, positive_definite(s), positive_definite(d))


def expect_refusal(f, args, error, message):
    """Demand the same message for data and for variables, with and without dropped terms, and that
    nothing is recorded.
    """
    discrete = f.name.endswith("lpmf")
    for make in (lambda x: x, vm.var):
        with vm.nested() as tape:
            given = [x if discrete and i == 0 else make(x) for i, x in enumerate(args)]
            for propto in (False, True):
                with pytest.raises(error) as caught:
                    f(*given, propto=propto)
                assert str(caught.value) == f"{f.name}: {message}"
            assert not tape


MANY = rng.normal(size=(8, 3))
# Functions with their arguments. They are defined wherever finite differences step to. Integer
# arguments are not differentiated.
FREE = {
    **{name: multi(name, *ARGUMENTS[name][0][:-1]) for name in multi_normal.__all__},
    **{f"{name}, many": multi(name, MANY,
        *ARGUMENTS[name][0][1:-1]) for name in multi_normal.__all__},
    "multi_normal_lpdf, one": multi("multi_normal_lpdf", Y[0], MU),
    "multi_normal_lpdf, one y": multi("multi_normal_lpdf", Y[0], Y[::-1]),
    "multi_normal_lpdf, stack": multi("multi_normal_lpdf", Y.reshape(2, 2, 3), Y[:2]),
    "multi_normal_lpdf, scalar mu": multi("multi_normal_lpdf", Y[::-2], 0.5),
    "multi_normal_lpdf, size one": (lambda y, mu, b: multi_normal.multi_normal_lpdf(y, mu, b * b),
        (Y[:, :1], MU[:1], B[:1, :1])),
    "multi_normal_cholesky_lpdf, empty": multi("multi_normal_cholesky_lpdf", Y[:0], MU),
    "multi_student_t_lpdf, empty": multi("multi_student_t_lpdf", Y[:0], 4.0, MU),
    "multi_student_t_lpdf, normal": (
        lambda *args: multi("multi_student_t_lpdf")[0](args[0], np.inf, *args[1:]), (Y, MU, B)),
    "multi_normal_lpdf, no elements": (multi_normal.multi_normal_lpdf,
        (np.empty(0), np.empty(0), np.empty((0, 0)))),
    "dirichlet_lpdf": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (MU, B[0])),
    "dirichlet_lpdf, batch": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (Y, B[0])),
    "dirichlet_lpdf, one theta": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (MU, B[:2])),
    "dirichlet_lpdf, size one": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)),
        (MU[:1], B[0, :1])),
    "dirichlet_lpdf, empty": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (Y[:0], B[0])),
    "multinomial_lpmf": (lambda n, x: multinomial_lpmf(n, spread(x)), (np.array([3, 0, 4]), MU)),
    "multinomial_lpmf, batch": (lambda n, x: multinomial_lpmf(n, spread(x)),
                                (np.array([[3, 0, 4], [1, 2, 0]]), MU)),
    "multinomial_lpmf, one n": (lambda n, x: multinomial_lpmf(n, spread(x)),
                                (np.array([3, 0, 4]), Y)),
    "multinomial_lpmf, empty": (lambda n, x: multinomial_lpmf(n, spread(x)),
                                (np.empty((0, 3), int), MU)),
    "categorical_lpmf": (lambda n, x: categorical_lpmf(n, spread(x)), (2, MU)),
    "categorical_lpmf, batch": (lambda n, x: categorical_lpmf(n, spread(x)),
                                (np.array([2, 2, 1]), MU)),
    "categorical_lpmf, rows": (lambda n, x: categorical_lpmf(n, spread(x)),
                               (np.array([2, 2, 1, 3]), Y)),
    "categorical_logit_lpmf": (categorical_logit_lpmf, (2, MU)),
    "categorical_logit_lpmf, batch": (categorical_logit_lpmf,
        (np.array([[2, 3, 1], [1, 1, 1]]), MU)),
    "categorical_logit_lpmf, rows": (categorical_logit_lpmf,
        (np.array([[2, 2, 1, 3], [1, 2, 3, 3]]), Y)),
    "categorical_logit_lpmf, one n": (categorical_logit_lpmf, (3, Y)),
    "categorical_logit_lpmf, empty": (categorical_logit_lpmf, (np.empty(0, int), MU)),
    "categorical_logit_lpmf, no rows": (categorical_logit_lpmf, (1, Y[:0])),
    "ordered_logistic_lpmf": (ordered_free, (2, 0.3, MU)),
    "ordered_logistic_lpmf, batch": (ordered_free, (np.array([1, 4, 2]), MU, B[0])),
    "ordered_logistic_lpmf, rows": (ordered_free, (np.array([1, 4, 2]), 0.5, B)),
    "ordered_logistic_lpmf, one n": (ordered_free, (3, MU, B[0])),
    "ordered_logistic_lpmf, empty": (ordered_free, (np.empty(0, int), 0.5, MU)),
    "ordered_logistic_lpmf, no cutpoints": (ordered_logistic_lpmf, (np.array([1, 1]), 0.5, MU[:0])),
    "lkj_corr_cholesky_lpdf": (lambda x, eta: lkj_corr_cholesky_lpdf(normalised(x), eta), (B, 1.7)),
    "lkj_corr_cholesky_lpdf, size one": (lambda x, eta: lkj_corr_cholesky_lpdf(normalised(x), eta),
        (B[:1, :1], 1.7)),
    "lkj_corr_lpdf": (lambda x, eta: lkj_corr_lpdf((y := normalised(x)) @ y.T, eta), (B, 0.8)),
    "wishart_lpdf": (lambda w, nu, s: wishart_lpdf(positive_definite(w), nu, positive_definite(s)),
                     (B, 4.2, C)),
    "inv_wishart_lpdf": (lambda w, nu,
        s: inv_wishart_lpdf(positive_definite(w), nu, positive_definite(s)), (B, 4.2, C)),
    "wishart_lpdf, size one": (lambda w, nu, s: wishart_lpdf(w * w, nu, s * s),
                               (B[:1, :1], 0.7, C[:1, :1])),
    "wishart_cholesky_lpdf": (lambda y, nu, s: wishart_cholesky_lpdf(lower(y), nu, lower(s)),
                              (B, 4.2, C)),
    "inv_wishart_cholesky_lpdf": (
        lambda y, nu, s: inv_wishart_cholesky_lpdf(lower(y), nu, lower(s)), (B, 4.2, C)),
    "lkj_cov_lpdf": (lambda y, mu, s, eta: lkj_cov_lpdf(positive_definite(y), mu, np.exp(s), eta),
                     (B, MU, MU, 1.7)),
    "lkj_cov_lpdf, scalars": (lambda y, mu, s,
        eta: lkj_cov_lpdf(positive_definite(y), mu, np.exp(s), eta), (B, 0.3, 0.2, 1.7)),
    "dirichlet_multinomial_lpmf": (trials_free, (np.array([3, 0, 4]), MU)),
    "dirichlet_multinomial_lpmf, one n": (trials_free, (np.array([3, 0, 4]), Y)),
    "dirichlet_multinomial_lpmf, one alpha": (trials_free, (np.array([[3, 0, 4], [0, 0, 0]]), MU)),
    "dirichlet_multinomial_lpmf, empty": (trials_free, (np.empty((0, 3), int), MU)),
    "multinomial_logit_lpmf": (multinomial_logit_lpmf, (np.array([3, 0, 4]), MU)),
    "multinomial_logit_lpmf, one n": (multinomial_logit_lpmf, (np.array([3, 0, 4]), Y)),
    "multinomial_logit_lpmf, one gamma": (multinomial_logit_lpmf,
        (np.array([[3, 0, 4], [0, 0, 0]]), MU)),
    "multinomial_logit_lpmf, empty": (multinomial_logit_lpmf, (np.empty((0, 3), int), MU)),
    "ordered_probit_lpmf": (probit_free, (2, 0.3, MU)),
    "ordered_probit_lpmf, batch": (probit_free, (np.array([1, 4, 2]), MU, B[0])),
    "ordered_probit_lpmf, rows": (probit_free, (np.array([1, 4, 2]), 0.5, B)),
    "ordered_probit_lpmf, one n": (probit_free, (3, MU, B[0])),
    "ordered_probit_lpmf, empty": (probit_free, (np.empty(0, int), 0.5, MU)),
    "ordered_probit_lpmf, no cutpoints": (ordered_probit_lpmf, (np.array([1, 1]), 0.5, MU[:0])),
    "matrix_normal_prec_lpdf": (matrix_free, (SERIES, SERIES[::-1] / 3, TRANSITION, B)),
    "matrix_normal_prec_lpdf, scalar mu": (matrix_free, (SERIES, 0.3, TRANSITION, B)),
    "multi_gp_lpdf": (lambda y, s, w: multi_gp_lpdf(y, positive_definite(s), np.exp(w)),
                      (SERIES, B, W)),
    "multi_gp_lpdf, many": (lambda y, s, w: multi_gp_lpdf(y, positive_definite(s), np.exp(w)),
                            (MANY, B, MANY[:, 0])),
    "multi_gp_cholesky_lpdf": (lambda y, s, w: multi_gp_cholesky_lpdf(y, lower(s), np.exp(w)),
                               (SERIES, B, W)),
    "gaussian_dlm_obs_lpdf": (dlm_free, (SERIES[:, :2], DESIGN, TRANSITION, S)),
    "gaussian_dlm_obs_lpdf, states": (dlm_of_states, (W[:1], S_2, W, DESIGN)),
    "gaussian_dlm_obs_lpdf, empty": (dlm_free, (SERIES[:, :0], DESIGN, TRANSITION, S)),
    "categorical_logit_glm_lpmf": (categorical_logit_glm_lpmf,
        (np.array([1, 4, 3, 4]), Y, CUTS_4, LOADINGS)),
    "categorical_logit_glm_lpmf, a row": (categorical_logit_glm_lpmf,
        (np.array([1, 4]), Y[0], CUTS_4, LOADINGS)),
    "categorical_logit_glm_lpmf, one y": (categorical_logit_glm_lpmf, (2, Y, CUTS_4, LOADINGS)),
    "categorical_logit_glm_lpmf, empty": (categorical_logit_glm_lpmf,
        (np.empty(0, int), Y[:0], CUTS_4, LOADINGS)),
    "ordered_logistic_glm_lpmf": (ordered_glm_free, (np.array([1, 4, 3, 2]), Y, MU, B[0])),
    "ordered_logistic_glm_lpmf, a row": (ordered_glm_free, (np.array([1, 4]), Y[0], MU, B[0])),
    "ordered_logistic_glm_lpmf, one y": (ordered_glm_free, (2, Y, MU, B[0])),
    "ordered_logistic_glm_lpmf, two": (ordered_glm_free, (np.array([1, 2, 2, 2]), Y, MU, B[0, :1])),
    "ordered_logistic_glm_lpmf, empty": (ordered_glm_free, (np.empty(0, int), Y[:0], MU, B[0])),
}  # fmt: skip
