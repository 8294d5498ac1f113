"""Pathfinder: normal approximations along the paths of L-BFGS to the modes.

Reference: L. Zhang, B. Carpenter, A. Gelman and A. Vehtari (2022), "Pathfinder: parallel
quasi-Newton variational inference", Journal of Machine Learning Research 23(306), 1-49.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from varmat.core.errors import DomainError
from varmat.models.fitting import density_at
from varmat.models.gradients import DensityModel

# Steps of L-BFGS that the inverse Hessian is made of, and steps of a path at most.
_HISTORY, _STEPS = 6, 1000
# Steps whose gradients have changed less than this in comparison are not used.
_CURVED = 1e-12


class _Normal(NamedTuple):
    """A normal distribution whose covariance is ``diag(alpha) + beta @ gamma @ beta.T``.

    Its square root is ``diag(sqrt(alpha)) (I + Q (L - I) Q')``, where ``Q L L' Q'`` replaces the
    identity in the span of the steps.
    """

    mean: np.ndarray
    scale: np.ndarray
    q: np.ndarray
    factor: np.ndarray

    def draws(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Transform standard normal draws to draws, and return their log densities."""
        inner = z @ self.q
        moved = z + (inner @ self.factor.T - inner) @ self.q.T
        half = np.sum(np.log(self.scale)) + np.sum(np.log(np.diag(self.factor)))
        constant = half + 0.5 * self.mean.size * np.log(2.0 * np.pi)
        return self.mean + moved * self.scale, -0.5 * np.sum(z * z, axis=1) - constant


def _path(model: DensityModel, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Follow L-BFGS: return its points, and the gradients of the log density there."""
    from scipy.optimize import minimize

    points, slopes, history = [start], [], {}

    def objective(q: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = density_at(model, q, True)
        history[q.tobytes()] = gradient
        if not np.isfinite(value):
            return 1e300, np.zeros(q.shape)
        return -value, -gradient

    options = {"maxcor": _HISTORY, "maxiter": _STEPS, "ftol": 1e-12, "gtol": 1e-8}
    keep = {"callback": lambda q: points.append(q.copy())}
    minimize(objective, start, jac=True, method="L-BFGS-B", options=options, **keep)
    slopes = [history[q.tobytes()] for q in points]
    return np.array(points), np.array(slopes)


def _diagonal(alpha: np.ndarray, s: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the diagonal of the inverse Hessian after a step `s` with the change `z` of the
    gradient.
    """
    a, b, c = z @ (alpha * z), z @ s, s @ (s / alpha)
    return np.asarray(1.0 / (a / (b * alpha) + z * z / b - a * (s / alpha) ** 2 / (b * c)))


def _normals(points: np.ndarray, slopes: np.ndarray) -> Iterator[_Normal]:
    """Yield the normal distribution of each point of a path but the first, while it exists."""
    alpha, history = np.ones(points.shape[1]), list[tuple[np.ndarray, np.ndarray]]()
    for i in range(1, len(points)):
        s, z = points[i] - points[i - 1], slopes[i - 1] - slopes[i]
        if s @ z > _CURVED * (z @ z):
            alpha = _diagonal(alpha, s, z)
            history = [*history, (s, z)][-_HISTORY:]
        if history:
            steps = map(np.transpose, zip(*history, strict=True))
            try:
                normal = _normal(points[i], slopes[i], alpha, *steps)
            except np.linalg.LinAlgError:
                return
            yield normal


def _normal(
    point: np.ndarray, slope: np.ndarray, alpha: np.ndarray, s: np.ndarray, z: np.ndarray
) -> _Normal:
    """Make the distribution of a point from the inverse Hessian of L-BFGS in its compact form."""
    count = s.shape[1]
    products = s.T @ z
    inverse = np.linalg.inv(np.triu(products))
    middle = np.diag(np.diag(products)) + z.T @ (alpha[:, np.newaxis] * z)
    gamma = np.zeros((2 * count, 2 * count))
    gamma[:count, count:], gamma[count:, :count] = -inverse, -inverse.T
    gamma[count:, count:] = inverse.T @ middle @ inverse
    beta = np.concatenate([alpha[:, np.newaxis] * z, s], axis=1)
    scale = np.sqrt(alpha)
    q, r = np.linalg.qr(beta / scale[:, np.newaxis])
    factor = np.linalg.cholesky(np.eye(len(r)) + r @ gamma @ r.T)
    mean = point + alpha * slope + beta @ (gamma @ (beta.T @ slope))
    return _Normal(mean, scale, q, factor)


def _best(
    model: DensityModel, start: np.ndarray, draws: int, rng: np.random.Generator
) -> _Normal | None:
    """Find the distribution of a path that is closest to the posterior, with the largest mean
    difference of log densities.
    """
    best, most = None, -np.inf
    for normal in _normals(*_path(model, start)):
        q, log_normal = normal.draws(rng.standard_normal((draws, start.size)))
        gain = float(np.mean([density_at(model, x, True)[0] for x in q] - log_normal))
        if gain > most:
            best, most = normal, gain
    return best


def _fitted(x: np.ndarray) -> tuple[float, float]:
    """Estimate shape and scale of a generalised Pareto distribution from ascending numbers.

    References: J. Zhang and M. A. Stephens (2009), Technometrics 51, 316-325, with the prior of
    Vehtari and others (2024).
    """
    n = len(x)
    count = 30 + int(np.sqrt(n))
    b = 1.0 - np.sqrt(count / (np.arange(1, count + 1) - 0.5))
    b = b / (3.0 * x[int(n / 4 + 0.5) - 1]) + 1.0 / x[-1]
    k = np.mean(np.log1p(-b[:, np.newaxis] * x), axis=1)
    fit = n * (np.log(-b / k) - k - 1.0)
    weights = np.exp(fit - np.max(fit))
    at = float(b @ weights / np.sum(weights))
    shape = float(np.mean(np.log1p(-at * x)))
    return (n * shape + 5.0) / (n + 10.0), -shape / at


def pareto_smoothed(log_ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """Smooth importance weights: replace the largest by quantiles of a Pareto distribution, and
    return its shape.

    Parameters
    ----------
    log_ratios : ndarray, shape (draws,)

    Returns
    -------
    weights : ndarray, shape (draws,)
        They sum to one.
    k : float
        Below 0.7 the weighted draws can be trusted. It is Hill's estimate if that is less than half
        as large as the fitted shape.

    References
    ----------
    A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry (2024), "Pareto smoothed importance
    sampling", Journal of Machine Learning Research 25(72), 1-58.

    B. M. Hill (1975), "A simple general approach to inference about the tail of a distribution",
    Annals of Statistics 3(5), 1163-1174.
    """
    ratios = np.exp(log_ratios - np.max(log_ratios))
    size = math.ceil(min(len(ratios) / 5, 3.0 * np.sqrt(len(ratios))))
    order = np.argsort(ratios)
    tail, k = order[len(ratios) - size :], np.inf
    least = ratios[order[-size - 1]] if size else 0.0
    above = ratios[tail] - least
    if size > 4:
        if above[0] > 0.0:
            k, scale = _fitted(above)
            p = (np.arange(size) + 0.5) / size
            ratios[tail] = np.minimum(least + scale * np.expm1(-k * np.log1p(-p)) / k, 1.0)
        # The fitted shape does not depend on how large the excess is compared with the threshold:
        # a few ratios of 2 above many of nearly 1 give a shape of 2, and equal ratios none. Hill's
        # estimate does depend on it, and is close to the shape of a tail that is really heavy.
        with np.errstate(invalid="ignore"):  # most densities are zero
            hill = np.mean(log_ratios[tail] - log_ratios[order[-size - 1]])
        k = hill if 2.0 * hill < k else k
    return ratios / np.sum(ratios), float(k)


def approximate_by_paths(
    model: DensityModel, starts: list[np.ndarray], draws: int, trials: int, rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Draw unconstrained vectors from the distributions of several paths, weighted, and return them
    with statistics; see `Model.pathfinder`.
    """
    normals = [_best(model, start, trials, rng) for start in starts]
    saved = [(i, normal) for i, normal in enumerate(normals) if normal is not None]
    if not saved:
        raise DomainError("pathfinder: no path led to a normal approximation; try other starts")
    result = [normal.draws(rng.standard_normal((draws, starts[0].size))) for _, normal in saved]
    q = np.concatenate([points for points, _ in result])
    log_normal = np.concatenate([values for _, values in result])
    log_density = np.array([density_at(model, x, True)[0] for x in q])
    weights, k = pareto_smoothed(log_density - log_normal)
    chosen = rng.choice(len(q), draws, p=weights)
    paths = np.repeat([i for i, _ in saved], draws)
    stats = {
        "lp": log_density[chosen],
        "log_approximation": log_normal[chosen],
        "path": paths[chosen],
        "pareto_k": np.full(draws, k),
    }
    return q[chosen], stats
