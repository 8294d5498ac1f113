"""Random distributions, truncated, censored and mixed, against those of SciPy.

Run as a script, it compares many of them: ``python tests/random_distributions.py --count 5000``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import varmat.distributions as dist

# A kind of parameter -> its values, of normal numbers.
KINDS: dict[str, Callable[[Any], Any]] = {
    "real": lambda z: z, "positive": lambda z: np.exp(0.5 * z), "shape": lambda z: 2.0 + np.exp(z),
    "share": lambda z: 1.0 / (1.0 + np.exp(-z)), "upper": lambda z: 4.0 + np.abs(z),
    "trials": lambda z: 1 + np.floor(3.0 * np.abs(z)).astype(int),
    "low": lambda z: np.floor(np.abs(z)).astype(int),
    "high": lambda z: 5 + np.floor(np.abs(z)).astype(int),
}  # fmt: skip
# The name of a distribution -> the kinds of its parameters, and that of SciPy.
CONTINUOUS: dict[str, tuple[str, Callable[..., Any]]] = {
    "Normal": ("real positive", stats.norm), "Cauchy": ("real positive", stats.cauchy),
    "StudentT": ("shape real positive", stats.t), "Logistic": ("real positive", stats.logistic),
    "DoubleExponential": ("real positive", stats.laplace),
    "Gumbel": ("real positive", stats.gumbel_r), "Uniform": ("real upper", lambda a, b:
     stats.uniform(a, b - a)),
    "Exponential": ("positive", lambda b: stats.expon(scale=1.0 / b)),
    "Gamma": ("positive positive", lambda a, b: stats.gamma(a, scale=1.0 / b)),
    "InvGamma": ("positive positive", lambda a, b: stats.invgamma(a, scale=b)),
    "Lognormal": ("real positive", lambda m, s: stats.lognorm(s, scale=np.exp(m))),
    "Weibull": ("positive positive", lambda a, s: stats.weibull_min(a, scale=s)),
    "Beta": ("positive positive", stats.beta),
}  # fmt: skip
DISCRETE: dict[str, tuple[str, Callable[..., Any]]] = {
    "Poisson": ("positive", stats.poisson), "Binomial": ("trials share", stats.binom),
    "NegBinomial2": ("positive positive", lambda m, p: stats.nbinom(p, p / (p + m))),
    "DiscreteRange": ("low high", lambda a, b: stats.randint(a, b + 1)),
}  # fmt: skip


class Reference(NamedTuple):
    """Log density and distribution function of each element."""

    log_density: Callable[[Any], Any]
    cdf: Callable[[Any], Any]


class Maker:
    """Makes a distribution, and the same from SciPy.

    Attributes
    ----------
    made : Distribution
    reference : Reference
    shape : tuple of int
        That of its elements.
    text : str
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.shape = ((), (3,), (2, 3), (2, 1, 2))[rng.integers(4)]
        self.is_discrete = bool(rng.uniform() < 0.4)
        self.text = ""
        kinds = (self.alone, self.truncated, self.truncated, self.censored, self.mixed, self.mixed)
        self.made, self.reference = kinds[rng.integers(len(kinds))]()

    def part(self) -> tuple[int, ...]:
        """A shape that broadcasts to that of the elements."""
        rng, start = self.rng, self.rng.integers(len(self.shape) + 1)
        return tuple(1 if rng.uniform() < 0.2 else n for n in self.shape[start:])

    def base(self) -> tuple[Any, Any]:
        table = DISCRETE if self.is_discrete else CONTINUOUS
        name = list(table)[self.rng.integers(len(table))]
        kinds, of_scipy = table[name]
        values = [KINDS[kind](self.rng.normal(size=self.part())) for kind in kinds.split()]
        values = [x if np.ndim(x) else x.item() for x in values]
        self.text += f"{name}{values} "
        return getattr(dist, name)(*values), of_scipy(*values)

    def log_density(self, theirs: Any) -> Callable[[Any], Any]:
        return theirs.logpmf if self.is_discrete else theirs.logpdf  # type: ignore[no-any-return]

    def alone(self) -> tuple[Any, Reference]:
        ours, theirs = self.base()
        return ours, Reference(self.log_density(theirs), theirs.cdf)

    def interval(self, theirs: Any) -> list[Any]:
        """Both ends or one, for each element or for all."""
        lower, upper = (
            np.broadcast_to(theirs.ppf(share), self.shape)
            for share in (self.rng.uniform(0.05, 0.3), self.rng.uniform(0.6, 0.95))
        )
        if self.is_discrete:
            lower = lower.astype(int)
            upper = np.maximum(upper.astype(int), np.max(lower) + 1)
        ends = [lower if self.rng.uniform() < 0.5 else np.min(lower), np.max(upper)]
        ends = [x.copy() if np.ndim(x) else x.item() for x in ends]
        missing = self.rng.integers(4)
        if missing < 2:
            ends[missing] = None
        self.text += f"in {ends} "
        return ends

    def truncated(self) -> tuple[Any, Reference]:
        ours, theirs = self.base()
        lower, upper = self.interval(theirs)
        made = ours.truncated(lower, upper)
        lower, upper = -np.inf if lower is None else lower, np.inf if upper is None else upper
        below = theirs.cdf(np.subtract(lower, 1) if self.is_discrete else lower)
        mass = theirs.cdf(upper) - below
        log_density = self.log_density(theirs)
        return made, Reference(
            lambda y: np.where((y < lower) | (y > upper), -np.inf, log_density(y) - np.log(mass)),
            lambda y: np.where(
                y < lower, 0.0, np.where(y >= upper, 1.0, (theirs.cdf(y) - below) / mass)
            ),
        )

    def censored(self) -> tuple[Any, Reference]:
        ours, theirs = self.base()
        lower, upper = self.interval(theirs)
        made = ours.censored(lower, upper)
        lower, upper = -np.inf if lower is None else lower, np.inf if upper is None else upper
        above = 1.0 - theirs.cdf(np.subtract(upper, 1) if self.is_discrete else upper)
        log_density = self.log_density(theirs)
        return made, Reference(
            lambda y: np.where(
                y <= lower,
                np.log(theirs.cdf(lower)),
                np.where(y >= upper, np.log(above), log_density(y)),
            ),
            lambda y: np.where(y < lower, 0.0, np.where(y >= upper, 1.0, theirs.cdf(y))),
        )

    def mixed(self) -> tuple[Any, Reference]:
        parts = [self.base() for _ in range(self.rng.integers(2, 4))]
        weights = self.rng.dirichlet(np.ones(len(parts)), self.part())
        given: Any = weights
        if len(parts) == 2 and self.rng.uniform() < 0.5:
            weights = weights.reshape(-1, 2)[0]
            given = float(weights[0])
        self.text += f"mixed by {given}"

        def sum_of(each: list[Any]) -> Any:
            return sum(weights[..., k] * x for k, x in enumerate(each))

        logs = [self.log_density(theirs) for _, theirs in parts]
        return dist.Mixture(given, [ours for ours, _ in parts]), Reference(
            lambda y: np.log(sum_of([np.exp(f(y)) for f in logs])),
            lambda y: sum_of([theirs.cdf(y) for _, theirs in parts]),
        )


def _check(maker: Maker, seed: int) -> None:
    made, reference, rng = maker.made, maker.reference, maker.rng
    y = made.rng(seed, size=(200, *maker.shape))
    # Equal draws are spread over the step of the distribution function at them.
    step = 1 if maker.is_discrete else 1e-9 * (1.0 + np.abs(y))
    low, high = reference.cdf(y - step), reference.cdf(y)
    shares = low + (high - low) * rng.uniform(size=np.shape(high))
    assert stats.kstest(np.ravel(shares), "uniform").pvalue > 1e-6, "draws"
    one = made.rng(seed)
    assert np.shape(one) == np.shape(reference.cdf(1.0)), "shape"
    if not maker.is_discrete and not isinstance(made, dist.Censored):
        assert len(np.unique(one)) == np.size(one), "the draw of one element is that of another"
    seen = y[:9]
    expected = reference.log_density(seen)
    np.testing.assert_allclose(made.lpdf.pointwise(seen), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(made.lpdf(seen), np.sum(expected), rtol=1e-8, atol=1e-8)
    around = np.concatenate([seen, seen[:3] + 1, seen[:3] - 1, seen[:3] + 9, seen[:3] - 9])
    share = np.clip(reference.cdf(around), 0.0, 1.0)
    for name, x in {"cdf": share, "lcdf": np.log(share), "lccdf": np.log1p(-share)}.items():
        found = getattr(made, name).pointwise(around)
        is_far = (x < -12.0) & (found < -12.0)  # the reference has no digits there
        np.testing.assert_allclose(
            np.where(is_far, 0.0, found), np.where(is_far, 0.0, x), rtol=1e-6, atol=1e-7
        )


def check(seed: int) -> None:
    """Demand that a random distribution agrees with that of SciPy."""
    maker = Maker(seed)
    try:
        with np.errstate(all="ignore"):
            _check(maker, seed)
    except Exception as error:
        error.add_note(f"of seed {seed}: {maker.text}")
        raise


def main() -> None:
    parser = ArgumentParser(description="Compare random distributions with those of SciPy.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given, failed = parser.parse_args(), 0
    for k in range(given.count):
        try:
            check(given.seed * 1_000_000 + k)
        except Exception as error:
            failed += 1
            print(f"{type(error).__name__}: {error}", *error.__notes__, sep="\n", flush=True)
    print(f"{given.count} distributions, {failed} with a difference")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
