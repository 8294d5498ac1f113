"""The distributions of some elements of vectors whose distribution is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from varmat.distributions.distribution import Distribution
from varmat.functions.linalg.spd_solves import inverse_spd

if TYPE_CHECKING:
    from varmat.typing import Operand, Result

# Densities of vectors, and the parameter from which their covariance or scale matrix is made.
_MATRICES = {
    "multi_normal_lpdf": "Sigma",
    "multi_normal_prec_lpdf": "Omega",
    "multi_normal_cholesky_lpdf": "L",
    "multi_student_t_lpdf": "Sigma",
    "multi_student_t_cholesky_lpdf": "L",
}


def marginal(
    distribution: Distribution, columns: np.ndarray, rows: np.ndarray, count: int
) -> Distribution | None:
    """Return the distribution of some elements of some vectors; None if no formula is known.

    Parameters
    ----------
    distribution : Distribution
        A distribution of vectors.
    columns : ndarray of int
        The elements.
    rows : ndarray of int
        The vectors.
    count : int
        The number of all vectors, for which the location may have one row each.
    """
    from varmat import distributions

    name = getattr(getattr(distribution, "row", None), "name", "")
    if name not in _MATRICES:
        return None
    others: dict[str, Operand] = {
        title: np.asarray(x) if isinstance(x, (list, tuple)) else x
        for title, x in distribution.parts().items()
    }
    mu, matrix = others.pop("mu"), others.pop(_MATRICES[name])
    if np.ndim(matrix) > 2 or np.ndim(others.get("nu", 0.0)):
        return None
    if np.ndim(mu) > 1:
        mu = np.reshape(mu, (-1, np.shape(mu)[-1]))
        mu = mu[rows] if np.shape(mu)[0] == count else mu
    if "cholesky" in name:
        matrix = matrix[columns]
        scale = matrix @ matrix.T
    else:
        scale = inverse_spd(matrix) if "prec" in name else matrix
        scale = scale[columns][:, columns]
    of = distributions.MultiStudentT if "student" in name else distributions.MultiNormal
    result: Distribution = of(**others, mu=mu[..., columns], Sigma=scale)
    return result


def observed_terms(distribution: Distribution, terms: Operand, y: np.ndarray) -> Result:
    """Return the log density of the observed elements of each vector that has any.

    Vectors with a gap are left out unless `marginal` knows their distribution.

    Parameters
    ----------
    distribution : Distribution
    terms : array_like
        The log density of each vector with all its elements.
    y : ndarray, shape (..., k)
        The vectors; nan is missing.
    """
    y = y.reshape(-1, y.shape[-1])
    seen = ~np.isnan(y)
    order, parts = [np.flatnonzero(seen.all(axis=1))], [np.reshape(terms, -1)]
    parts[0] = parts[0][order[0]]
    for pattern in np.unique(seen[seen.any(axis=1) & ~seen.all(axis=1)], axis=0):
        rows, columns = np.flatnonzero((seen == pattern).all(axis=1)), np.flatnonzero(pattern)
        part = marginal(distribution, columns, rows, len(y))
        if part is not None:
            order.append(rows)
            parts.append(part.lpdf.pointwise(y[rows][:, columns]))
    return np.concatenate(parts)[np.argsort(np.concatenate(order))]
