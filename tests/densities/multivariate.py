"""The multivariate densities, arguments for each, and forms of them whose arguments are free."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import varmat as vm
from varmat.densities import categorical, matrix_variate, multi_normal, ordered, simplex
from varmat.densities.categorical import categorical_logit_lpmf, categorical_lpmf
from varmat.densities.matrix_variate import inv_wishart_lpdf, lkj_corr_cholesky_lpdf, lkj_corr_lpdf, wishart_lpdf
from varmat.densities.ordered import ordered_logistic_lpmf
from varmat.densities.simplex import dirichlet_lpdf, multinomial_lpmf

DENSITIES: dict[str, Any] = {
    name: getattr(module, name)
    for module in (multi_normal, simplex, categorical, ordered, matrix_variate)
    for name in module.__all__
}

rng = np.random.default_rng(20240711)
Y, MU = rng.normal(size=(4, 3)), rng.normal(size=3)
B, C = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
SPD, SPD_2 = B @ B.T + np.eye(3), C @ C.T + 2.0 * np.eye(3)
FACTOR, FACTOR_2 = np.linalg.cholesky(SPD), np.linalg.cholesky(SPD_2)
P, P_2 = np.array([0.2, 0.5, 0.3]), np.array([[0.25, 0.25, 0.5], [0.125, 0.125, 0.75]])
CUTS, CUTS_2 = np.array([-1.0, 0.2, 1.5]), np.array([-2.0, -1.5, 0.5])
ETA = np.array([0.4, -0.3, 1.3, 2.0])


def normalised(x: Any) -> Any:
    """A Cholesky factor of a correlation matrix from any matrix."""
    x = np.where(np.tri(len(x), dtype=bool), x, 0.0) + 3.0 * np.eye(len(x))
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def positive_definite(x: Any) -> Any:
    return x @ x.T + np.eye(len(x))


def increasing(x: Any) -> Any:
    return np.cumsum(np.exp(x), axis=-1) - 2.0


def spread(x: Any) -> Any:
    return vm.softmax(x, axis=-1)


CORRELATION, CORRELATION_2 = normalised(B), normalised(C)
# Arguments, and other values of those that may be variables.
ARGUMENTS: dict[str, tuple[Any, Any]] = {
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
}


def multi(name: str, *points: Any) -> Any:
    """A normal or Student density with a matrix that is what it must be."""
    return lambda *args: DENSITIES[name](*args[:-1], positive_definite(args[-1])), (*points, B)


def ordered_free(n: Any, eta: Any, x: Any) -> Any:
    return ordered_logistic_lpmf(n, eta, increasing(x))


def expect_refusal(f: Any, args: Any, error: Any, message: str) -> None:
    """Demand the same sentence for data and variables, with and without dropped terms, and that nothing is recorded."""
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
# Functions that are defined wherever finite differences step to, with their arguments; integers stay what they are.
FREE: dict[str, tuple[Any, Any]] = {
    **{name: multi(name, *ARGUMENTS[name][0][:-1]) for name in DENSITIES if name.startswith("multi_")},
    **{f"{name}, many": multi(name, MANY, *ARGUMENTS[name][0][1:-1]) for name in DENSITIES if name.startswith("multi_")},
    "multi_normal_lpdf, one": multi("multi_normal_lpdf", Y[0], MU),
    "multi_normal_lpdf, one y": multi("multi_normal_lpdf", Y[0], Y[::-1]),
    "multi_normal_lpdf, stack": multi("multi_normal_lpdf", Y.reshape(2, 2, 3), Y[:2]),
    "multi_normal_lpdf, scalar mu": multi("multi_normal_lpdf", Y[::-2], 0.5),
    "multi_normal_lpdf, size one": (lambda y, mu, b: multi_normal.multi_normal_lpdf(y, mu, b * b), (Y[:, :1], MU[:1], B[:1, :1])),
    "multi_normal_cholesky_lpdf, empty": multi("multi_normal_cholesky_lpdf", Y[:0], MU),
    "multi_student_t_lpdf, empty": multi("multi_student_t_lpdf", Y[:0], 4.0, MU),
    "multi_student_t_lpdf, normal": (lambda *args: multi("multi_student_t_lpdf")[0](args[0], np.inf, *args[1:]), (Y, MU, B)),
    "multi_normal_lpdf, no elements": (multi_normal.multi_normal_lpdf, (np.empty(0), np.empty(0), np.empty((0, 0)))),
    "dirichlet_lpdf": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (MU, B[0])),
    "dirichlet_lpdf, batch": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (Y, B[0])),
    "dirichlet_lpdf, one theta": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (MU, B[:2])),
    "dirichlet_lpdf, size one": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (MU[:1], B[0, :1])),
    "dirichlet_lpdf, empty": (lambda x, a: dirichlet_lpdf(spread(x), np.exp(a)), (Y[:0], B[0])),
    "multinomial_lpmf": (lambda n, x: multinomial_lpmf(n, spread(x)), (np.array([3, 0, 4]), MU)),
    "multinomial_lpmf, batch": (lambda n, x: multinomial_lpmf(n, spread(x)), (np.array([[3, 0, 4], [1, 2, 0]]), MU)),
    "multinomial_lpmf, one n": (lambda n, x: multinomial_lpmf(n, spread(x)), (np.array([3, 0, 4]), Y)),
    "multinomial_lpmf, empty": (lambda n, x: multinomial_lpmf(n, spread(x)), (np.empty((0, 3), int), MU)),
    "categorical_lpmf": (lambda n, x: categorical_lpmf(n, spread(x)), (2, MU)),
    "categorical_lpmf, batch": (lambda n, x: categorical_lpmf(n, spread(x)), (np.array([2, 2, 1]), MU)),
    "categorical_lpmf, rows": (lambda n, x: categorical_lpmf(n, spread(x)), (np.array([2, 2, 1, 3]), Y)),
    "categorical_logit_lpmf": (categorical_logit_lpmf, (2, MU)),
    "categorical_logit_lpmf, batch": (categorical_logit_lpmf, (np.array([[2, 3, 1], [1, 1, 1]]), MU)),
    "categorical_logit_lpmf, rows": (categorical_logit_lpmf, (np.array([[2, 2, 1, 3], [1, 2, 3, 3]]), Y)),
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
    "lkj_corr_cholesky_lpdf, size one": (lambda x, eta: lkj_corr_cholesky_lpdf(normalised(x), eta), (B[:1, :1], 1.7)),
    "lkj_corr_lpdf": (lambda x, eta: lkj_corr_lpdf((y := normalised(x)) @ y.T, eta), (B, 0.8)),
    "wishart_lpdf": (lambda w, nu, s: wishart_lpdf(positive_definite(w), nu, positive_definite(s)), (B, 4.2, C)),
    "inv_wishart_lpdf": (lambda w, nu, s: inv_wishart_lpdf(positive_definite(w), nu, positive_definite(s)), (B, 4.2, C)),
    "wishart_lpdf, size one": (lambda w, nu, s: wishart_lpdf(w * w, nu, s * s), (B[:1, :1], 0.7, C[:1, :1])),
}
