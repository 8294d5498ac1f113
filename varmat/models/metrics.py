"""Metrics that are known before sampling: covariances, given or of earlier draws.

nutpie takes no metric. The sampler moves in standardised coordinates instead, in which the
covariance of the posterior is about the identity, and adapts a diagonal metric there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from varmat.core.data import data
from varmat.core.errors import DomainError
from varmat.functions.checks import misfit
from varmat.models.blocks import rows_of
from varmat.models.fitting import SomeModel
from varmat.models.predictive import draws_of
from varmat.models.results import groups_of
from varmat.typing import Operand, Settings

if TYPE_CHECKING:
    from varmat.models.gradients import DensityModel

# The most draws that a covariance is estimated from.
_MOST = 2000


def with_metric(
    model: SomeModel, metric: object, inits: object, settings: Settings
) -> tuple[SomeModel, Operand]:
    """Return the model in the coordinates that a metric standardises, and where chains start: by
    default at draws, if the metric is made from them. Set the metric that nutpie adapts.
    """
    for name in settings:
        if name.startswith("store_"):
            raise TypeError(
                f"Model.sample: {name} cannot be combined with a given metric: it would store "
                "standardised coordinates!"
            )
    settings["metric"] = "diag"
    if inits is None and type(metric) is not dict and groups_of(metric) is not None:
        inits = metric
    return model.standardised(_scale_of(model, metric)), inits


def _scale_of(model: DensityModel, metric: object) -> np.ndarray:
    """Return the Cholesky factor of a covariance of the unconstrained vector, or its standard
    deviations.

    Parameters
    ----------
    model : DensityModel
    metric : array_like, LaplaceApproximation, or draws
        Variances of shape (N,), a covariance of shape (N, N), or what has draws of the parameters.
    """
    name, size = "Model.sample", model.param_unc_num()
    if hasattr(metric, "covariance"):
        metric = metric.covariance
    elif groups_of(metric) is not None:
        metric = _covariance(model, metric)
    scale = np.asarray(data(metric, f"{name}: metric"))
    if scale.shape not in ((size,), (size, size)):
        raise misfit(name, "metric", scale.shape, f"have shape {(size,)} or {(size, size)}")
    if scale.ndim == 1 and np.all((scale > 0.0) & np.isfinite(scale)):
        deviations: np.ndarray = np.sqrt(scale)
        return deviations
    try:
        factor: np.ndarray = np.linalg.cholesky(scale)
    except np.linalg.LinAlgError:
        factor = np.full(size, np.nan)
    if scale.ndim == 1 or not np.all(np.isfinite(factor)) or not np.allclose(scale, scale.T):
        rule = "variances, or a covariance that is symmetric and positive definite"
        raise DomainError(f"{name}: metric has invalid numbers, but must be {rule}!")
    return factor


def _covariance(model: DensityModel, draws: object) -> np.ndarray:
    """Return the covariance of unconstrained draws, shrunk towards a small identity as in Stan."""
    arrays, _ = draws_of("Model.sample", draws, model.layout.parameters)
    rows = rows_of(arrays)
    chosen = rows[:: -(-len(rows) // _MOST)]
    points = np.array([model.param_unconstrain(row) for row in chosen])
    count, size = points.shape
    if count <= size:
        raise DomainError(
            f"Model.sample: metric has {count} draws, but must have more than the {size} elements "
            "of the unconstrained vector!"
        )
    share = count / (count + 5.0)
    covariance = np.cov(points.T).reshape(size, size)
    drawn: np.ndarray = share * covariance + 1e-3 * (1.0 - share) * np.eye(size)
    return drawn
