"""Linear state space models with normal noise: the density of a series with gaps, and what is
known of its states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.densities.density import HALF_LOG_TWO_PI
from varmat.distributions.distribution import Distribution
from varmat.distributions.terms import DensityTerms
from varmat.functions.checks import misfit
from varmat.functions.missing import refuse_missing, with_missing
from varmat.solvers.scan import scan
from varmat.typing import Operand, Plain, Result, Shape


class States(NamedTuple):
    """Means and covariances by time.

    Attributes
    ----------
    mean : ndarray, shape (T, n)
    covariance : ndarray, shape (T, n, n)
    """

    mean: np.ndarray
    covariance: np.ndarray


class LinearStateSpace(Distribution):
    """Observations of a state that moves linearly with normal noise; the states are integrated out.

    The state of a time is normal with mean ``G @ state`` before it and covariance `W`; its
    observation is normal with mean ``F.T @ state`` and covariance `V`. Observations that are nan
    are missing: they are integrated out too. A row may be missing in parts.

    Parameters
    ----------
    F : array_like, shape (n, r) or (n,)
        What an observation sees of the state; a vector for a series of numbers.
    G : array_like, shape (n, n)
    V : array_like, shape (r, r), (r,) or ()
        A vector has the variances of independent parts.
    W : array_like, shape (n, n) or (n,)
        Positive semidefinite.
    m0, C0 : array_like, shape (n,), (n, n)
        The mean and the covariance of the state before the first time. Only symmetric parts of
        covariances are meant; they are checked for shape alone.

    See Also
    --------
    varmat.gaussian_dlm_obs_lpdf : The same density as Stan has it, of series without gaps.

    Notes
    -----
    ``lpdf.pointwise`` has the log density of each time given those before it. A series `y` has
    shape ``(T, r)``, or ``(T,)`` if `F` is a vector.

    References
    ----------
    M. West and J. Harrison (1997), Bayesian Forecasting and Dynamic Models, second edition,
    Springer, section 4.2. J. Durbin and S. J. Koopman (2012), Time Series Analysis by State Space
    Methods, second edition, Oxford University Press, sections 4.4, 4.9 and 4.10.

    Examples
    --------
    A level that wanders, with a gap:

    >>> import numpy as np, varmat.distributions as dist
    >>> level = dist.LinearStateSpace([1.0], [[1.0]], 0.5, [[0.1]], [0.0], [[10.0]])
    >>> y = np.array([1.0, np.nan, 1.4, 0.8])
    >>> round(level.lpdf(y), 9)
    -4.185635994
    >>> level.smooth(y).mean[:, 0].round(3)
    array([1.04 , 1.059, 1.077, 1.031])
    >>> level.forecast(y, 2).mean[:, 0].round(3)
    array([1.031, 1.031])
    """

    def __init__(
        self, F: Operand, G: Operand, V: Operand, W: Operand, m0: Operand, C0: Operand
    ) -> None:
        matrices = {"F": F, "G": G, "V": V, "W": W, "m0": m0, "C0": C0}
        for name, x in matrices.items():
            refuse_missing(x, f"LinearStateSpace: {name}")
        matrices = {
            n: np.asarray(x, float) if not is_differentiable(x) else x for n, x in matrices.items()
        }
        self.F, self.G, self.V, self.W, self.m0, self.C0 = matrices.values()
        self.is_series = np.ndim(self.F) == 1
        n, r = (*np.shape(self.F), 1)[:2] if np.ndim(self.F) in (1, 2) else (0, 0)
        shapes: dict[str, tuple[Shape, ...]] = {
            "F": ((n, r), (n,)) if n else (),
            "G": ((n, n),),
            "V": ((r, r), (r,), ()) if r == 1 else ((r, r), (r,)),
            "W": ((n, n), (n,)),
            "m0": ((n,),),
            "C0": ((n, n),),
        }
        for name, allowed in shapes.items():
            if np.shape(matrices[name]) not in allowed:
                rule = " or ".join(map(str, allowed)) or "(n, r) or (n,)"
                raise misfit(
                    "LinearStateSpace", name, np.shape(matrices[name]), f"have shape {rule}"
                )
        self.n, self.r = n, r

    is_discrete = False

    def parts(self) -> dict[str, Operand]:
        return {name: getattr(self, name) for name in ("F", "G", "V", "W", "m0", "C0")}

    @property
    def event(self) -> int:
        return 0 if self.is_series else 1

    def extent(self) -> tuple[Shape, int]:
        return (), self.event

    # --- the density ---

    def _model(self) -> tuple[Result, ...]:
        """Return `F`, `G`, `V` and `W` as matrices."""
        f = np.reshape(self.F, (self.n, self.r))
        v, w = self.V, self.W
        v = np.reshape(v, (1, 1)) if self.r == 1 else _matrix(v)
        return f, self.G, v, _matrix(w)

    def _rows(self, y: Operand) -> tuple[Result, np.ndarray]:
        """Return observations in rows, with 0 for missing ones, and an array that is 1 where they
        exist.
        """
        if not is_differentiable(y):
            y = with_missing(y)[0]
        if np.ndim(y) != 2 - self.is_series or (not self.is_series and np.shape(y)[1] != self.r):
            rule = "have a number for each time" if self.is_series else f"have shape (T, {self.r})"
            raise misfit("LinearStateSpace", "y", np.shape(y), rule)
        y = np.reshape(y, (np.shape(y)[0], self.r))
        if is_differentiable(y):
            return y, np.ones(np.shape(y))
        there = ~np.isnan(y)
        if np.isinf(y).any():
            raise DomainError("LinearStateSpace: y is infinite, but must be finite or missing!")
        return np.where(there, y, 0.0), there.astype(float)

    def _each(self, y: Operand) -> Result:
        y, there = self._rows(y)
        if not len(there):
            return np.zeros(0)
        _, terms = scan(_step, (self.m0, self.C0), (y, there), *self._model())
        return terms

    def cumulative(self, name: str) -> DensityTerms:
        raise TypeError(f"LinearStateSpace has no {name}!")

    # --- plain results ---

    def _plain_model(self) -> tuple[np.ndarray, ...]:
        if any(map(is_differentiable, self.parts().values())):
            raise TypeError(
                "LinearStateSpace: a parameter is a variable, but must be numbers for draws, "
                "filter, smooth and forecast!"
            )
        return tuple(map(np.asarray, (*self._model(), self.m0, self.C0)))

    def _filtered(self, y: object) -> tuple[States, States]:
        """Return the moments of the states before and after each observation."""
        f, g, v, w, mean, covariance = self._plain_model()
        rows, there = self._rows(y)
        before, after = [], []
        for row, seen in zip(rows, there, strict=True):
            mean, covariance = g @ mean, g @ covariance @ g.T + w
            before.append((mean, covariance))
            mean, covariance, _ = _observed(mean, covariance, row, seen, f, v)
            after.append((mean, covariance))
        return _states(before, self.n), _states(after, self.n)

    def filter(self, y: object) -> States:
        """Return the mean and covariance of each state, given the observations up to its time."""
        return self._filtered(y)[1]

    def smooth(self, y: object) -> States:
        """Return the mean and covariance of each state, given all observations."""
        g = self._plain_model()[1]
        before, after = self._filtered(y)
        moments: list[tuple[np.ndarray, np.ndarray]] = []
        for t in range(len(after.mean))[::-1]:
            mean, covariance = after.mean[t], after.covariance[t]
            if moments:
                back = covariance @ g.T @ np.linalg.pinv(before.covariance[t + 1], hermitian=True)
                next_mean, next_covariance = moments[-1]
                mean = mean + back @ (next_mean - before.mean[t + 1])
                change = next_covariance - before.covariance[t + 1]
                covariance = covariance + back @ change @ back.T
            moments.append((mean, covariance))
        return _states(moments[::-1], self.n)

    def forecast(self, y: object, steps: int) -> States:
        """Return the mean and covariance of the next observations, given the observations.

        Parameters
        ----------
        y : array_like, shape (T,) or (T, r)
        steps : int
            How many times follow.

        Returns
        -------
        States
            Its ``mean`` has shape (steps, r), its ``covariance`` (steps, r, r).
        """
        f, g, v, w, *start = self._plain_model()
        after = self._filtered(y)[1]
        mean, covariance = (after.mean[-1], after.covariance[-1]) if len(after.mean) else start
        forecasts = []
        for _ in range(steps):
            mean, covariance = g @ mean, g @ covariance @ g.T + w
            forecasts.append((f.T @ mean, f.T @ covariance @ f + v))
        return _states(forecasts, self.r)

    def latent(self, y: object, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Draw the states of all times, shape (T, n), given the observations."""
        rng = np.random.default_rng(rng)
        _, g, _, w, *_ = self._plain_model()
        after = self._filtered(y)[1]
        states = np.empty(np.shape(after.mean))
        for t in range(len(states))[::-1]:
            mean, covariance = after.mean[t], after.covariance[t]
            if t + 1 < len(states):
                back = covariance @ g.T @ np.linalg.pinv(g @ covariance @ g.T + w, hermitian=True)
                mean = mean + back @ (states[t + 1] - g @ mean)
                covariance = covariance - back @ g @ covariance
            states[t] = _normal(rng, mean, covariance)
        return states

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        f, g, v, w, mean, covariance = self._plain_model()
        (times,) = size or (1,)
        state, result = _normal(rng, mean, covariance), np.empty((times, self.r))
        for t in range(times):
            state = _normal(rng, g @ state, w)
            result[t] = _normal(rng, f.T @ state, v)
        return result[:, 0] if self.is_series else result


def _matrix(x: Operand) -> Result:
    return x * np.eye(np.shape(x)[0]) if np.ndim(x) == 1 else x


def _states(pairs: Any, size: int) -> States:
    means, covariances = zip(*pairs, strict=True) if pairs else ((), ())
    return States(np.reshape(means, (-1, size)), np.reshape(covariances, (-1, size, size)))


def _normal(rng: np.random.Generator, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Draw a normal vector; the covariance may be singular."""
    variances, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    z = np.sqrt(np.maximum(variances, 0.0)) * rng.standard_normal(len(mean))
    return np.asarray(mean + axes @ z)


def _observed(
    mean: Operand, covariance: Operand, y: Operand, seen: Operand, f: Operand, v: Operand
) -> tuple[Result, Result, Result]:
    """Return the moments of a state after an observation, and its log density. Missing elements do
    not depend on the state and have variance 1, so they change neither.
    """
    f = f * seen
    v = v * (seen[:, None] * seen) + np.eye(len(seen)) * (1.0 - seen)
    error, cross = (y - f.T @ mean) * seen, covariance @ f
    q = f.T @ cross + v
    if np.shape(q) == (1, 1):
        surprise, gain, half = error / q[0, 0], cross / q[0, 0], 0.5 * np.log(q[0, 0])
    else:
        factor = np.linalg.cholesky(q)
        surprise, gain = np.linalg.solve(q, error), np.linalg.solve(q, cross.T).T
        half = np.sum(np.log(np.diagonal(factor)))
    term = -half - 0.5 * np.sum(error * surprise) - HALF_LOG_TWO_PI * np.sum(seen)
    return mean + gain @ error, covariance - gain @ cross.T, term


def _step(
    state: tuple[Operand, Operand],
    row: tuple[Operand, Operand],
    f: Operand,
    g: Operand,
    v: Operand,
    w: Operand,
) -> tuple[tuple[Result, Result], Result]:
    mean, covariance = state
    after = _observed(g @ mean, g @ covariance @ g.T + w, *row, f, v)
    return after[:2], after[2]
