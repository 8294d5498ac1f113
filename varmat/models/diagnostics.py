"""R-hat and effective sample sizes of draws, and what speaks against a sampling.

ArviZ computes the same numbers. They are computed here because importing ArviZ takes seconds, and
because they are needed after each sampling.

References
----------
A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Buerkner (2021), "Rank-normalization,
folding, and localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis
16, 667-718.
M. Betancourt (2016), "Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo",
arXiv:1604.00695.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

__all__ = ["SamplingWarning"]

DIAGNOSTICS = ("ess_bulk", "ess_tail", "r_hat")
# Vehtari and others recommend to trust draws if R-hat is below the first, and the effective sample
# size of each chain above the second; Betancourt to mistrust an E-BFMI below the third.
LARGEST_R_HAT, LEAST_ESS, LEAST_E_BFMI = 1.01, 100.0, 0.3
# How many numbers are looked at at a time.
_BLOCK = 1 << 20
_NAMED = 3


class SamplingWarning(UserWarning):
    """Something speaks against the draws that `Model.sample` returned.

    Attributes
    ----------
    problems : dict of str to str
        A sentence that says what to do, for each of "divergences", "max_depth", "r_hat", "ess",
        "e_bfmi" and "not_finite" that was found, and of `Model.pathfinder` for "pareto_k".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", vm.SamplingWarning)  # in a pipeline, stop instead
    """

    def __init__(self, problems: Mapping[str, str], method: str = "Model.sample") -> None:
        super().__init__(f"{method}: {'; '.join(problems.values())}")
        self.problems, self._method = dict(problems), method

    def __reduce__(self) -> tuple[type, tuple[dict[str, str], str]]:
        return SamplingWarning, (self.problems, self._method)


def _split(x: np.ndarray) -> np.ndarray:
    """Cut chains of shape (elements, chains, draws) into halves."""
    half = x.shape[2] // 2
    return np.concatenate([x[..., :half], x[..., x.shape[2] - half :]], axis=1)


def _normalised(x: np.ndarray) -> np.ndarray:
    """Return the normal scores of the ranks of all draws of an element; equal draws share a
    rank.
    """
    flat = x.reshape(len(x), -1)
    n = flat.shape[1]
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, 1)
    # The first and the last place of the draws that are equal to each.
    indices, is_new = np.arange(n), np.ones((len(x), n + 1), bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], is_new[:, 1:-1])
    first = np.maximum.accumulate(np.where(is_new[:, :-1], indices, 0), axis=1)
    last = np.minimum.accumulate(np.where(is_new[:, 1:], indices, n)[:, ::-1], axis=1)[:, ::-1]
    scores = np.empty(flat.shape)
    np.put_along_axis(scores, order, _scores(n)[first + last], 1)
    return scores.reshape(x.shape)


@lru_cache(maxsize=1)
def _scores(n: int) -> np.ndarray:
    """Return the normal scores of the ranks 1, 1.5, 2, ..., n of n draws."""
    # scipy.special computes them faster, but its import takes longer than most sampling.
    lower = [*map(NormalDist().inv_cdf, (0.5 * np.arange(2, n + 1) - 0.375) / (n + 0.25))]
    return np.concatenate([lower, [0.0], np.negative(lower[::-1])])


def _r_hat(x: np.ndarray) -> np.ndarray:
    draws = x.shape[2]
    within, between = np.mean(np.var(x, axis=2, ddof=1), axis=1), np.var(x.mean(axis=2), 1, ddof=1)
    return np.asarray(np.sqrt((draws - 1) / draws + between / within))


def _ess(x: np.ndarray) -> np.ndarray:
    """Return the effective draws of the mean, by Geyer's initial monotone sequence."""
    chains, draws = x.shape[1:]
    means = x.mean(axis=2, keepdims=True)
    size = 1 << (2 * draws - 1).bit_length()
    spectrum = np.fft.rfft(x - means, size)
    power = np.mean(spectrum.real**2 + spectrum.imag**2, axis=1)
    covariance = np.fft.irfft(power, size)[:, :draws] / draws
    within = covariance[:, :1] * draws / (draws - 1)
    total = covariance[:, :1] + (np.var(means, axis=1, ddof=1) if chains > 1 else 0.0)
    rho = 1.0 - (within - covariance) / total
    rho[:, 0] = 1.0
    even, odd = rho[:, : draws - draws % 2 : 2], rho[:, 1::2]
    pairs = even + odd
    saved = np.logical_and.accumulate(pairs >= 0.0, axis=1)
    saved[:, max(0, (draws - 3) // 2) :] = False
    sums = np.sum(np.minimum.accumulate(pairs, axis=1), axis=1, where=saved)
    # The first pair that is left out may begin with a correlation above zero.
    after = np.take_along_axis(even, np.argmin(saved, axis=1)[:, np.newaxis], 1)[:, 0]
    time = 2.0 * sums - 1.0 + np.maximum(after, 0.0)
    count = chains * draws
    return np.asarray(count / np.maximum(time, 1.0 / np.log10(count)))


def mean_errors(x: np.ndarray) -> np.ndarray:
    """Return the Monte Carlo standard errors of the means of elements.

    Parameters
    ----------
    x : ndarray, shape (chains, draws, elements)

    Returns
    -------
    ndarray, shape (elements,)
        Nan for fewer than four draws in a chain.
    """
    elements = x.shape[2]
    result = np.full(elements, np.nan)
    for here, part in _blocks(np.moveaxis(x, 2, 0), np.arange(elements if x.shape[1] >= 4 else 0)):
        with np.errstate(all="ignore"):
            result[here] = np.std(part, axis=(1, 2), ddof=1) / np.sqrt(_ess(_split(part)))
    return result


def _blocks(flat: np.ndarray, indices: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield places of elements, which have the first axis, and their draws, some at a time."""
    step = max(1, _BLOCK // max(1, math.prod(flat.shape[1:])))
    for i in range(0, len(indices), step):
        here = indices[i : i + step]
        yield here, np.ascontiguousarray(flat[here])


def diagnostics(x: np.ndarray) -> dict[str, np.ndarray]:
    """Compute the effective draws of the middle and of the tails, and R-hat.

    Parameters
    ----------
    x : ndarray, shape (chains, draws, ...)

    Returns
    -------
    dict of str to ndarray
        For each element, in order; nan for those that are constant or not finite, and for fewer
        than four draws in a chain.
    """
    chains, draws = x.shape[:2]
    flat = np.moveaxis(x.reshape(chains, draws, math.prod(x.shape[2:])).astype(float), 2, 0)
    statistics = np.full((3, len(flat)), np.nan)
    fit = np.isfinite(flat).all(axis=(1, 2)) & (draws >= 4)
    if chains * draws:
        fit &= flat.max(axis=(1, 2)) > flat.min(axis=(1, 2))
    indices = np.flatnonzero(fit)
    for here, part in _blocks(flat, indices):
        halves = _split(part)
        scores = _normalised(halves)
        with np.errstate(all="ignore"):
            folded = _normalised(np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True)))
            tails = np.quantile(part, [0.05, 0.95], axis=(1, 2))[..., np.newaxis, np.newaxis]
            statistics[0, here] = _ess(scores)
            statistics[1, here] = np.fmin(*(_ess(_split(1.0 * (part <= tail))) for tail in tails))
            statistics[2, here] = np.maximum(_r_hat(scores), _r_hat(folded))
    return dict(zip(DIAGNOSTICS, statistics, strict=True))


def _some(names: Sequence[str], values: np.ndarray, bad: np.ndarray, worst: int) -> str:
    """List the worst elements with their values, and the number of the others."""
    indices = np.flatnonzero(bad)
    order = indices[np.argsort(worst * values[indices])][:_NAMED]
    digits = ".2f" if worst < 0 else ".0f"
    more = f" and {len(indices) - _NAMED} more" if len(indices) > _NAMED else ""
    return ", ".join(f"{names[i]} {values[i]:{digits}}" for i in order) + more


def problems(
    names: Sequence[str],
    table: Mapping[str, np.ndarray],
    chains: int,
    draws: int,
    stats: Mapping[str, object],
    finite: np.ndarray,
    centred: Sequence[str] = (),
) -> dict[str, str]:
    """Find reasons not to trust draws, each with a remedy.

    Parameters
    ----------
    names : sequence of str
        The names of the elements.
    table : dict of str to ndarray
        The `diagnostics` of the elements, as far as they are known.
    chains, draws : int
    stats : mapping of str to array_like, shape (chains, draws)
        Statistics of the sampler, as far as there are any.
    finite : ndarray of bool
        Whether all draws of an element are finite.
    centred : sequence of str
        The parameters that have a non-centred form which the model does not use.
    """
    form = "another form of the model"
    if centred:
        form = f"the non-centred form, centred=False, of {', '.join(centred[:_NAMED])}"
    result, total = {}, chains * draws
    if not finite.all():
        text = ", ".join([name for name, ok in zip(names, finite, strict=True) if not ok][:5])
        result["not_finite"] = (
            f"draws are inf or nan, or too large for a standard deviation: {text}; the "
            "posterior may be improper, as without a prior"
        )
    if "diverging" in stats and (count := int(np.sum(np.asarray(stats["diverging"])))):
        result["divergences"] = (
            f"{count} of {total} draws diverged, so the draws may miss a part of the posterior: "
            f"try target_accept=0.95, then {form}"
        )
    deep = "maxdepth_reached"
    if deep in stats and (count := int(np.sum(np.asarray(stats[deep])))):
        result["max_depth"] = (
            f"{count} of {total} draws ended at max_depth, which is slow, but not wrong: scale the "
            'parameters alike, or try metric="low_rank"'
        )
    if "energy" in stats and draws > 1:
        energy = np.asarray(stats["energy"])
        with np.errstate(all="ignore"):
            ratio = np.mean(np.diff(energy, axis=1) ** 2, axis=1) / np.var(energy, axis=1)
        if np.any(low := ratio < LEAST_E_BFMI):
            which = ", ".join(map(str, np.flatnonzero(low)))
            result["e_bfmi"] = (
                f"E-BFMI is {np.min(ratio):.2f}, below {LEAST_E_BFMI:g}, in chains {which}, so the "
                f"tails are explored slowly: look for a heavy tail or a funnel, and try {form}"
            )
    if "r_hat" in table and chains > 1 and np.any(bad := table["r_hat"] > LARGEST_R_HAT):
        result["r_hat"] = (
            f"chains do not agree, r_hat is above {LARGEST_R_HAT}: "
            f"{_some(names, table['r_hat'], bad, -1)}; draw longer, and look for several modes"
        )
    if "ess_bulk" in table:
        least = np.minimum(table["ess_bulk"], table["ess_tail"])
        if np.any(bad := least < LEAST_ESS * chains):
            result["ess"] = (
                f"fewer than {LEAST_ESS * chains:g} effective draws, {LEAST_ESS:g} for each chain: "
                f"{_some(names, least, bad, 1)}; draw longer, or try {form}"
            )
    return result
