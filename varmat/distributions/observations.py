"""The log density of each observation, of densities whose observations are vectors or categories,
as formulas of whole arrays.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.densities.categorical import rows_of
from varmat.densities.density import HALF_LOG_TWO_PI
from varmat.densities.ordered import cell_ends, log_normal_cell
from varmat.densities.univariate import Univariate
from varmat.functions.arrays.exponentials import log_softmax
from varmat.functions.linalg.triangular_solves import solve_triangular
from varmat.functions.special.gamma_functions import gammaln
from varmat.functions.special.logistic_functions import log1m_exp, log_expit
from varmat.typing import Function, Operand, Plain, Result

__all__ = ["FORMULAS", "is_location_scale"]


def _categories(y: Plain, k: int) -> tuple[Plain, Plain]:
    """Return the categories counted from 0, and whether each observation is a category."""
    inside = (y >= 1) & (y <= k) & (y == np.floor(y))
    return np.where(inside, y, 1).astype(np.intp) - 1, inside


def _chosen(y: Plain, logs: Operand) -> Result:
    """Select the element of each vector that belongs to the observed category."""
    shape = np.shape(logs)
    which, inside = _categories(y, shape[-1])
    return np.where(inside, np.reshape(logs, (-1,))[rows_of(shape) + which], -np.inf)


def _ordered(of_cell: Function) -> Function:
    """Make the log mass of the cell between cutpoints that contains an observation."""

    def formula(y: Plain, eta: Operand, cutpoints: Operand) -> Result:
        shape = np.shape(cutpoints)
        full = np.broadcast_shapes(shape[:-1], np.shape(y), np.shape(eta))
        which, inside = _categories(y, shape[-1] + 1)
        ends = cell_ends(which, shape, full)
        flat = np.reshape(cutpoints, (-1,))
        terms = of_cell(flat[ends.low], flat[ends.high], eta, ends.has_low, ends.has_high)
        return np.where(inside, terms, -np.inf)

    return formula


def _logistic_cell(
    low: Operand, high: Operand, eta: Operand, has_low: Plain, has_high: Plain
) -> Result:
    inner = has_low & has_high
    gap = log1m_exp(np.where(inner, low - high, -1.0))
    below = np.where(has_low, log_expit(eta - low), 0.0)
    above = np.where(has_high, log_expit(high - eta), 0.0)
    return below + above + np.where(inner, gap, 0.0)


def _normal_cell(
    low: Operand, high: Operand, eta: Operand, has_low: Plain, has_high: Plain
) -> Result:
    width = high - low
    return log_normal_cell(low - eta, high - eta, width, has_low=has_low, has_high=has_high)


def _normal(squares: Operand, log_scale: Operand, size: int) -> Result:
    return -0.5 * np.sum(squares, axis=-1) - log_scale - size * HALF_LOG_TWO_PI


def _multi_normal_cholesky(y: Operand, mu: Operand, L: Operand) -> Result:
    """Return the log densities of vectors with one `L` for all: separate ones share no work."""
    residuals, size = y - mu, np.shape(L)[-1]
    rows = np.reshape(residuals, (-1, size))
    z = np.reshape(solve_triangular(L, rows.T, lower=True).T, np.shape(residuals))
    return _normal(z**2, np.sum(np.log(np.diagonal(L))), size)


def _multi_normal_prec(y: Operand, mu: Operand, Omega: Operand) -> Result:  # noqa: N803
    L = np.linalg.cholesky(Omega)
    return _normal(((y - mu) @ L) ** 2, -np.sum(np.log(np.diagonal(L))), np.shape(L)[-1])


def _dirichlet(y: Operand, alpha: Operand) -> Result:
    logs = np.sum((alpha - 1.0) * np.log(y) - gammaln(alpha), axis=-1)
    return logs + gammaln(np.sum(alpha, axis=-1))


def _multinomial(y: Plain, theta: Operand) -> Result:
    log_coefficient = gammaln(np.sum(y, axis=-1) + 1.0) - np.sum(gammaln(y + 1.0), axis=-1)
    seen = y > 0
    return log_coefficient + np.sum(
        np.where(seen, y * np.log(np.where(seen, theta, 1.0)), 0.0), axis=-1
    )


# The name of a density -> its formula, and the axes of the last of its parameters, which must not
# have more: of several matrices each belongs to its own observation.
FORMULAS: dict[str, tuple[Function, float]] = {
    "categorical_lpmf": (lambda y, theta: _chosen(y, np.log(theta)), math.inf),
    "categorical_logit_lpmf": (lambda y, beta: _chosen(y, log_softmax(beta, axis=-1)), math.inf),
    "ordered_logistic_lpmf": (_ordered(_logistic_cell), math.inf),
    "ordered_probit_lpmf": (_ordered(_normal_cell), math.inf),
    "dirichlet_lpdf": (_dirichlet, math.inf),
    "multinomial_lpmf": (_multinomial, math.inf),
    "multi_normal_cholesky_lpdf": (_multi_normal_cholesky, 2),
    "multi_normal_prec_lpdf": (_multi_normal_prec, 2),
    "multi_normal_lpdf": (
        lambda y, mu, Sigma: _multi_normal_cholesky(y, mu, np.linalg.cholesky(Sigma)), 2
    ),
}  # fmt: skip


def is_location_scale(row: Univariate, location: str, scale: str) -> bool:
    """Return whether the row is the density of ``location + scale * z`` for a standard z."""
    names = list(row.arguments)[1:]

    def at(y: float, of_location: float, of_scale: float) -> float:
        parameters = {location: of_location, scale: of_scale}
        return float(row(y, *(parameters.get(name, 0.5) for name in names)))

    differences = [at(0.3 + 1.7 * z, 0.3, 1.7) - at(z, 0.0, 1.0) + np.log(1.7) for z in (-1.5, 0.7)]
    return bool(np.all(np.abs(differences) < 1e-10))
