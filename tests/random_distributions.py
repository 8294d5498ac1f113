"""Random distributions, truncated, censored and mixed, against those of SciPy.

Run as a script, it compares many of them: ``python tests/random_distributions.py --count 5000``.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import varmat as vm
import varmat.distributions as dist

# A kind of parameter -> its values, of normal numbers.
KINDS: dict[str, Callable[[Any], Any]] = {
    "real": lambda z: z, "positive": lambda z: np.exp(0.5 * z), "shape": lambda z: 2.0 + np.exp(z),
    "small": lambda z: 0.2 * np.tanh(z),
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
    "InvGaussian": ("positive positive", lambda m, s: stats.invgauss(m / s, scale=s)),
    "GeneralizedExtremeValue": ("real positive small", lambda m, s, x: stats.genextreme(-x, m, s)),
    "GeneralizedPareto": ("real positive small", lambda m, s, x: stats.genpareto(x, m, s)),
}  # fmt: skip
DISCRETE: dict[str, tuple[str, Callable[..., Any]]] = {
    "Poisson": ("positive", stats.poisson), "Binomial": ("trials share", stats.binom),
    "NegBinomial2": ("positive positive", lambda m, p: stats.nbinom(p, p / (p + m))),
    "Geometric": ("share", lambda p: stats.geom(p, loc=-1)),
    "DiscreteRange": ("low high", lambda a, b: stats.randint(a, b + 1)),
}  # fmt: skip


# The kinds of parameters without derivatives.
WHOLE = {"trials", "low", "high"}


class Reference(NamedTuple):
    """The density of each element, a probability at values that have one, and the probabilities up
    to an observation and below it.
    """

    density: Callable[[Any], Any]
    cdf: Callable[[Any], Any]
    below: Callable[[Any], Any]


# Makes a distribution, given all parameters.
Build = Callable[[Sequence[Any]], Any]


def truncated(of: Reference, lower: Any, upper: Any) -> Reference:
    before = of.below(lower)
    mass = of.cdf(upper) - before

    def share(probability: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda y: np.clip((probability(y) - before) / mass, 0.0, 1.0)

    def density(y: Any) -> Any:
        return np.where((y < lower) | (y > upper), 0.0, of.density(y) / mass)

    return Reference(density, share(of.cdf), share(of.below))


def censored(of: Reference, lower: Any, upper: Any) -> Reference:
    def density(y: Any) -> Any:
        above = np.where(y == upper, 1.0 - of.below(upper), of.density(y))
        inside = np.where(y == lower, of.cdf(lower), above)
        return np.where((y < lower) | (y > upper), 0.0, inside)

    return Reference(
        density,
        lambda y: np.where(y < lower, 0.0, np.where(y >= upper, 1.0, of.cdf(y))),
        lambda y: np.where(y <= lower, 0.0, np.where(y > upper, 1.0, of.below(y))),
    )


def mixed(weights: Any, parts: Sequence[Reference]) -> Reference:
    def sum_of(each: Sequence[Any]) -> Any:
        return sum(weights[..., k] * x for k, x in enumerate(each))

    def density(y: Any) -> Any:
        """Where one of them has a probability, the densities of the others do not count."""
        jumps = np.broadcast_arrays(*(part.cdf(y) - part.below(y) for part in parts))
        atom = np.any([jump > 0.0 for jump in jumps], axis=0)
        pairs = zip(jumps, parts, strict=True)
        return sum_of([np.where(atom & (jump <= 0.0), 0.0, x.density(y)) for jump, x in pairs])

    return Reference(
        density,
        lambda y: sum_of([part.cdf(y) for part in parts]),
        lambda y: sum_of([part.below(y) for part in parts]),
    )


class Maker:
    """Makes a distribution, and the same from SciPy.

    Attributes
    ----------
    build : callable
        Makes it, given the parameters.
    values : list
        The parameters.
    smooth : list of int
        The places of those that are not whole numbers.
    reference : Reference
    shape : tuple of int
        That of its elements.
    text : str
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.shape = ((), (3,), (2, 3), (2, 1, 2))[rng.integers(4)]
        self.is_discrete = bool(rng.uniform() < 0.4)
        self.text, self.seed = "", seed
        self.values: list[Any] = []
        self.smooth: list[int] = []
        self.build, self.reference = self.made(depth=int(rng.integers(4)))

    def made(self, depth: int) -> tuple[Build, Reference]:
        if not depth:
            return self.alone()
        kind = (self.bounded, self.bounded, self.mixed)[self.rng.integers(3)]
        return kind(depth - 1)

    def part(self) -> tuple[int, ...]:
        """A shape that broadcasts to that of the elements."""
        rng, start = self.rng, self.rng.integers(len(self.shape) + 1)
        return tuple(1 if rng.uniform() < 0.2 else n for n in self.shape[start:])

    def parameter(self, kind: str) -> int:
        x = KINDS[kind](self.rng.normal(size=self.part()))
        self.values.append(x if np.ndim(x) else x.item())
        if kind not in WHOLE:
            self.smooth.append(len(self.values) - 1)
        return len(self.values) - 1

    def alone(self) -> tuple[Build, Reference]:
        table = DISCRETE if self.is_discrete else CONTINUOUS
        name = list(table)[self.rng.integers(len(table))]
        kinds, of_scipy = table[name]
        places = [self.parameter(kind) for kind in kinds.split()]
        if kinds.startswith("real upper"):
            del self.smooth[-2:]  # the ends of a support have no derivatives
        self.text += f"{name}{[self.values[i] for i in places]} "
        theirs, is_discrete = of_scipy(*(self.values[i] for i in places)), self.is_discrete
        log_density = theirs.logpmf if is_discrete else theirs.logpdf
        return lambda values: getattr(dist, name)(*(values[i] for i in places)), Reference(
            lambda y: np.exp(log_density(y)),
            theirs.cdf,
            lambda y: theirs.cdf(np.subtract(y, 1) if is_discrete else y),
        )

    def bounded(self, depth: int) -> tuple[Build, Reference]:
        """One in an interval with both ends or one, for each element or for all."""
        build, of = self.made(depth)
        drawn = build(self.values).rng(self.seed, size=(400, *self.shape))
        lower, upper = (
            np.quantile(drawn, self.rng.uniform(*range_of), axis=0, method="lower")
            for range_of in ((0.05, 0.3), (0.6, 0.95))
        )
        if self.is_discrete:
            upper = np.maximum(upper, np.max(lower) + 1)
        ends = [lower if self.rng.uniform() < 0.5 else np.min(lower), np.max(upper)]
        ends = [x.copy() if np.ndim(x) else x.item() for x in ends]
        missing = self.rng.integers(4)
        if missing < 2:
            ends[missing] = None
        is_truncated = self.rng.uniform() < 0.5
        self.text += f"{'truncated' if is_truncated else 'censored'} {ends} "
        lower, upper = (x if x is not None else (-np.inf, np.inf)[i] for i, x in enumerate(ends))
        if is_truncated:
            return lambda values: build(values).truncated(*ends), truncated(of, lower, upper)
        return lambda values: build(values).censored(*ends), censored(of, lower, upper)

    def mixed(self, depth: int) -> tuple[Build, Reference]:
        parts = [self.made(depth) for _ in range(self.rng.integers(2, 4))]
        weights = self.rng.dirichlet(np.ones(len(parts)), self.part())
        given: Any = weights
        if len(parts) == 2 and self.rng.uniform() < 0.5:
            weights = weights.reshape(-1, 2)[0]
            given = float(weights[0])
        self.text += f"mixed by {given} "
        return (
            lambda values: dist.Mixture(given, [build(values) for build, _ in parts]),
            mixed(weights, [of for _, of in parts]),
        )


def _check(maker: Maker, seed: int) -> None:
    made, reference, rng = maker.build(maker.values), maker.reference, maker.rng
    y = made.rng(seed, size=(200, *maker.shape))
    # Equal draws are spread over the step of the distribution function at them.
    low, high = reference.below(y), reference.cdf(y)
    shares = low + (high - low) * rng.uniform(size=np.shape(high))
    assert stats.kstest(np.ravel(shares), "uniform").pvalue > 1e-6, "draws"
    one = made.rng(seed)
    assert np.shape(one) == np.shape(reference.cdf(1.0)), "shape"
    if not made.has_atoms:
        assert len(np.unique(one)) == np.size(one), "the draw of one element is that of another"
    seen = y[:9]
    expected = np.log(reference.density(seen))
    np.testing.assert_allclose(made.lpdf.pointwise(seen), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(made.lpdf(seen), np.sum(expected), rtol=1e-7, atol=1e-7)
    around = np.concatenate([seen, seen[:3] + 1, seen[:3] - 1, seen[:3] + 9, seen[:3] - 9])
    share = np.clip(reference.cdf(around), 0.0, 1.0)
    for name, x in {"cdf": share, "lcdf": np.log(share), "lccdf": np.log1p(-share)}.items():
        found = getattr(made, name).pointwise(around)
        is_far = (x < -12.0) & (found < -12.0)  # the reference has no digits there
        np.testing.assert_allclose(
            np.where(is_far, 0.0, found), np.where(is_far, 0.0, x), rtol=1e-6, atol=1e-7
        )
    _check_intervals(made, reference, np.sort(y[:18].reshape(2, 9, *maker.shape), axis=0))
    _check_gradient(maker, seen)


def _check_intervals(made: Any, reference: Reference, ends: Any) -> None:
    """Demand the probabilities of pairs: exact, open to either side, closed."""
    left, right = ends.astype(float)
    right[:2], left[2:4], right[4:6] = left[:2], -np.inf, np.inf
    pairs, below = np.stack([left, right], axis=-1), np.zeros(np.shape(left))
    below[np.isfinite(left)] = reference.below(left)[np.isfinite(left)]
    expected = np.where(
        left == right,
        reference.density(np.where(np.isfinite(left), left, right)),
        np.where(np.isinf(right), 1.0, reference.cdf(np.minimum(right, 1e300))) - below,
    )
    found = made.interval_censored()
    np.testing.assert_allclose(found.lpdf.pointwise(pairs), np.log(expected), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.lpdf(pairs), np.log(expected).sum(), rtol=1e-6, atol=1e-7)


def _check_gradient(maker: Maker, y: Any) -> None:
    """Demand that the derivative in a direction of all parameters is that of differences."""
    direction = {i: maker.rng.normal(size=np.shape(maker.values[i])) for i in maker.smooth}

    def f(t: Any, of: str) -> Any:
        values = [x + t * direction[i] if i in direction else x
                  for i, x in enumerate(maker.values)]  # fmt: skip
        made = maker.build(values)
        if of == "interval":
            pairs = np.stack([y - 1.0, y + 1.0], axis=-1)
            return made.interval_censored().lpdf(pairs)
        return made.lpdf(y) if of == "sum" else np.sum(made.lpdf.pointwise(y))

    for of in ("sum", "each", "interval"):
        found = vm.gradient(lambda t, of=of: f(t, of), 0.0)
        steps = [(f(h, of) - f(-h, of)) / (2.0 * h) for h in (1e-4, 5e-5)]
        expected, size = (4.0 * steps[1] - steps[0]) / 3.0, 1.0 + abs(steps[0])
        if np.isfinite(expected) and abs(steps[1] - steps[0]) < 1e-4 * size:  # no kink nearby
            assert abs(found - expected) < 1e-5 * size, (
                f"the gradient of the {of} is {found}, but {expected} by differences"
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
