"""Simulation-based calibration: whether model, sampler and simulation are of one distribution."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from varmat.typing import Function, Plain, Settings

# The most places at which the distribution of the ranks is compared.
_PLACES = 128
# Bins of the printed histogram.
_BINS = 8


@dataclass(frozen=True, repr=False)
class Calibration:
    """Ranks of true parameters among draws from their posteriors, as made by `calibration`.

    Attributes
    ----------
    ranks : dict of str to ndarray of int, shape (simulations,)
        For each element of the parameters, ``beta[0]``: how many draws are below the true value.
    draws : int
        The number of draws; ranks are from 0 to this number.
    statistics : dict of str to float
        The smallest tail probability of the number of ranks up to a place, over all places.
    p_values : dict of str to float
        The probability that the statistic of uniform ranks is as small.
    """

    ranks: dict[str, np.ndarray]
    draws: int
    statistics: dict[str, float]
    p_values: dict[str, float]

    def ok(self, rate: float = 0.01) -> bool:
        """Tell whether all p-values are above a rate of false alarms, divided by their number."""
        return all(p > rate / len(self.p_values) for p in self.p_values.values())

    def __bool__(self) -> bool:
        return self.ok()

    def __repr__(self) -> str:
        simulations = len(next(iter(self.ranks.values()), ()))
        width = max(map(len, self.ranks), default=0)
        lines = [
            (
                f"ranks of the truth among {self.draws} draws, {simulations} simulations, in "
                f"{_BINS} bins"
            )
        ]
        for name, ranks in self.ranks.items():
            counts = np.bincount(ranks * _BINS // (self.draws + 1), minlength=_BINS)
            lines.append(
                f"{name:{width}} {' '.join(f'{n:4d}' for n in counts)}   p = "
                f"{self.p_values[name]:.2g}"
            )
        return "\n".join(lines)


def calibration(
    prior: Callable[[np.random.Generator], Mapping[str, Any]] | Any,
    simulate: Function | None = None,
    model_of_data: Callable[[Any], Any] | None = None,
    *,
    simulations: int = 100,
    draws: int = 63,
    thin: int = 4,
    seed: int | np.random.Generator | None = None,
    sample: Callable[[Any, int, int], Mapping[str, Any]] | None = None,
    **settings: object,
) -> Calibration:
    """Check by simulation that draws from posteriors have the right distribution.

    Parameters are drawn from the prior, data are simulated with them, and the posterior given these
    data is sampled. If densities, Jacobians, gradients, sampler and simulation are right, the
    parameters and the draws have the same distribution: the rank of the parameters is uniform.

    Parameters
    ----------
    prior : callable or Model
        Called with a `numpy.random.Generator`; returns a dict of the parameters. A model whose
        parameters and observations state their distributions is enough by itself.
    simulate : callable
        Called with a generator, and the parameters by name; returns data.
    model_of_data : callable
        Called with data; returns the `Model`.
    simulations : int
        How many data sets are simulated.
    draws : int
        How many draws from each posterior there are, nearly independent; one less than a power of 2
        is printed best.
    thin : int
        Every `thin`-th draw of a chain is taken.
    seed : int or numpy.random.Generator, optional
    sample : callable, optional
        Called with the model, the number of draws and a seed; returns a dict of arrays of shape
        (draws, ...), from which all draws are taken. By default it is `Model.sample` with one
        chain.
    **settings
        For `Model.sample`, such as ``tune`` and ``target_accept``.

    Returns
    -------
    Calibration
        True if the ranks are uniform at a rate of false alarms of 0.01, by `Calibration.ok`;
        printed, a histogram for each element. Elements that are the same in all draws, as those
        above the diagonal of a Cholesky factor, are left out.

    Raises
    ------
    TypeError
        If an argument has another type.
    ValueError
        If a number is too small.
    Exception
        What the functions raise.

    Notes
    -----
    The empirical distribution of the ranks is compared at up to 128 places, with both tails of the
    binomial distribution of the number of ranks up to there. The probability that the smallest tail
    of all is as small for uniform ranks is computed exactly, by recursion from place to place, as
    in Säilynoja and others. A rank that is shared with equal draws is one of them at random.

    References
    ----------
    S. Talts, M. Betancourt, D. Simpson, A. Vehtari and A. Gelman (2018), "Validating Bayesian
    inference algorithms with simulation-based calibration", arXiv:1804.06788.

    T. Säilynoja, P.-C. Bürkner and A. Vehtari (2022), "Graphical test for discrete uniformity and
    its applications in goodness-of-fit evaluation and multiple sample comparison", Statistics and
    Computing 32, 32.

    Examples
    --------
    >>> import numpy as np, varmat as vm, varmat.distributions as dist
    >>> from varmat.testing import calibration
    >>> model = vm.Model(
    ...     mu=vm.real(prior=dist.Normal(0.0, 1.0)),
    ...     y=vm.observed(np.zeros(5), lambda mu: dist.Normal(mu, 2.0)),
    ... )
    >>> found = calibration(
    ...     model,
    ...     simulations=30,
    ...     seed=1,
    ...     # exact for normal posteriors
    ...     sample=lambda model, draws, seed: model.laplace(draws=draws, seed=seed).draws,
    ... )
    >>> found.ok()
    True
    """
    for name, count in (("simulations", simulations), ("draws", draws), ("thin", thin)):
        try:
            least = operator.index(count)
        except TypeError:
            raise TypeError(
                f"calibration: {name} is {count!r}, but must be an integer of at least 1!"
            ) from None
        if least < 1:
            raise ValueError(
                f"calibration: {name} is {count}, but must be an integer of at least 1!"
            )
    if hasattr(prior, "simulators"):
        prior, simulate, model_of_data = prior.simulators("calibration")
    if simulate is None or model_of_data is None:
        raise TypeError("calibration: simulate and model_of_data must be given with a prior!")
    rng = np.random.default_rng(seed)
    sampler = _sampler(thin, settings) if sample is None else sample
    result: dict[str, list[tuple[int, bool]]] = {}
    for _ in range(simulations):
        truth = dict(prior(rng))
        model = model_of_data(simulate(rng, **truth))
        posterior = sampler(model, draws, int(rng.integers(2**32)))
        for name, value in truth.items():
            for label, rank, varies in _ranks(name, np.asarray(value), posterior, draws, rng):
                result.setdefault(label, []).append((rank, varies))
    ranks = {
        label: np.array([rank for rank, _ in x])
        for label, x in result.items()
        if any(varies for _, varies in x)
    }
    statistics = {label: _statistic(x, draws) for label, x in ranks.items()}
    p_values = {
        label: _p_value(statistic, simulations, draws) for label, statistic in statistics.items()
    }
    return Calibration(ranks, draws, statistics, p_values)


def _sampler(thin: int, settings: Settings) -> Callable[[Any, int, int], Mapping[str, Any]]:
    """Return a function that draws from one chain of `Model.sample`."""

    def sample(model: Any, draws: int, seed: int) -> Mapping[str, Any]:
        chosen = {"tune": 500, "progress_bar": False, **settings, "chains": 1, "seed": seed}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            posterior = model.sample(draws=thin * draws, **chosen).posterior
        for x in said:
            # Few effective draws are what `thin` is for, and ranks show them.
            if getattr(x.message, "problems", {}).keys() != {"ess"}:
                warnings.warn_explicit(x.message, x.category, x.filename, x.lineno)
        return {name: posterior[name].values[0, ::thin] for name in posterior.data_vars}

    return sample


def _ranks(
    name: str,
    truth: np.ndarray,
    posterior: Mapping[str, object],
    draws: int,
    rng: np.random.Generator,
) -> Iterator[tuple[str, int, bool]]:
    """Yield for each element of a parameter its label, the rank of its true value, and whether its
    draws differ.
    """
    if name not in posterior:
        raise TypeError(
            f"calibration: the sample has no {name}, but must have all that the prior has!"
        )
    x = np.asarray(posterior[name])
    if x.shape != (draws, *truth.shape):
        raise ValueError(
            f"calibration: the draws of {name} have shape {x.shape}, but must have shape "
            f"{(draws, *truth.shape)}!"
        )
    below, equal = np.sum(x < truth, axis=0), np.sum(x == truth, axis=0)
    ranks = below + rng.integers(0, equal, endpoint=True)
    varies = np.max(x, axis=0) > np.min(x, axis=0)
    for index in np.ndindex(*truth.shape):
        label = f"{name}[{', '.join(map(str, index))}]" if index else name
        yield label, int(ranks[index]), bool(varies[index])


def _places(draws: int) -> np.ndarray:
    """Return the ranks up to which ranks are counted: every rank if there are few. No rank is above
    the last one, so it is left out.
    """
    return np.unique(np.linspace(0, draws - 1, min(draws, _PLACES)).round().astype(int))


def _tails(counts: np.ndarray, simulations: int, chances: object) -> Plain:
    """Compute the smaller tail probability of binomial counts: at most, or at least, this many."""
    from scipy.special import bdtr, bdtrc

    at_least = np.where(counts > 0, bdtrc(np.maximum(counts - 1.0, 0.0), simulations, chances), 1.0)
    return np.minimum(bdtr(counts, simulations, chances), at_least)


def _statistic(ranks: np.ndarray, draws: int) -> float:
    indices = _places(draws)
    counts = np.searchsorted(np.sort(ranks), indices, side="right")
    return float(np.min(_tails(counts, len(ranks), (indices + 1) / (draws + 1))))


def _p_value(statistic: float, simulations: int, draws: int) -> float:
    """Compute the probability that uniform ranks have a statistic of at most this one.

    The cumulative counts are a Markov chain along the places, which is followed between the bounds
    at which a tail is as small."""
    from scipy.special import gammaln, xlog1py, xlogy

    chances = (_places(draws) + 1) / (draws + 1)
    every = np.arange(simulations + 1)
    before, inside, last = np.zeros(1), np.ones(1), 0.0
    for chance in chances:
        # Probabilities computed in two ways differ in their last digits.
        now = every[
            _tails(every.astype(float), simulations, chance) > statistic * (1 + 1e-9)
        ].astype(float)
        step = (chance - last) / (1.0 - last)
        remainder, more = (simulations - before)[:, None], now - before[:, None]
        possible = (more >= 0) & (more <= remainder)
        n = np.where(possible, more, 0.0)
        log = (
            gammaln(remainder + 1)
            - gammaln(n + 1)
            - gammaln(remainder - n + 1)
            + xlogy(n, step)
            + xlog1py(remainder - n, -step)
        )
        inside = inside @ np.where(possible, np.exp(log), 0.0)
        before, last = now, float(chance)
    return min(max(1.0 - float(np.sum(inside)), 0.0), 1.0)
