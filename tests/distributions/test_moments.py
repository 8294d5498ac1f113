"""Means, variances and quantiles agree with SciPy's."""

import mpmath
import numpy as np
import pytest
from comparing import close, equal, refuses
from scipy import integrate, stats

import varmat as vm
import varmat.distributions as dist
from varmat.densities.univariate import Univariate

X = np.array([[0.5, -1.0], [1.0, 2.0], [0.0, 0.3]])
# Distributions of varmat and SciPy.
FAMILIES = [
    (dist.Bernoulli(0.3), stats.bernoulli(0.3)),
    (dist.BernoulliLogit(-0.4), stats.bernoulli(1.0 / (1.0 + np.exp(0.4)))),
    (dist.Beta(2.5, 1.5), stats.beta(2.5, 1.5)),
    (dist.BetaBinomial(9, 2.0, 3.5), stats.betabinom(9, 2.0, 3.5)),
    (dist.BetaNegBinomial(3.0, 4.5, 2.0), stats.betanbinom(3.0, 4.5, 2.0)),
    (dist.BetaProportion(0.3, 4.0), stats.beta(1.2, 2.8)),
    (dist.Binomial(7, 0.35), stats.binom(7, 0.35)),
    (dist.BinomialLogit(7, 0.4), stats.binom(7, 1.0 / (1.0 + np.exp(-0.4)))),
    (dist.Cauchy(1.0, 2.0), stats.cauchy(1.0, 2.0)),
    (dist.ChiSquare(3.5), stats.chi2(3.5)),
    (dist.DiscreteRange(2, 8), stats.randint(2, 9)),
    (dist.DoubleExponential(1.0, 2.0), stats.laplace(1.0, 2.0)),
    (dist.ExpModNormal(1.0, 2.0, 0.7), stats.exponnorm(1.0 / 1.4, 1.0, 2.0)),
    (dist.Exponential(0.7), stats.expon(scale=1.0 / 0.7)),
    (dist.Frechet(2.7, 1.5), stats.invweibull(2.7, scale=1.5)),
    (dist.Frechet(1.5, 1.5), stats.invweibull(1.5, scale=1.5)),
    (dist.Gamma(2.5, 0.5), stats.gamma(2.5, scale=2.0)),
    (dist.GeneralizedExtremeValue(1.0, 2.0, 0.2), stats.genextreme(-0.2, 1.0, 2.0)),
    (dist.GeneralizedExtremeValue(1.0, 2.0, -0.7), stats.genextreme(0.7, 1.0, 2.0)),
    (dist.GeneralizedExtremeValue(1.0, 2.0, 0.0), stats.genextreme(0.0, 1.0, 2.0)),
    (dist.GeneralizedPareto(1.0, 2.0, 0.2), stats.genpareto(0.2, 1.0, 2.0)),
    (dist.GeneralizedPareto(1.0, 2.0, -0.4), stats.genpareto(-0.4, 1.0, 2.0)),
    (dist.GeneralizedPareto(1.0, 2.0, 0.0), stats.genpareto(0.0, 1.0, 2.0)),
    (dist.Geometric(0.3), stats.geom(0.3, loc=-1)),
    (dist.Gumbel(1.0, 2.0), stats.gumbel_r(1.0, 2.0)),
    (dist.InvChiSquare(5.5), stats.invgamma(2.75, scale=0.5)),
    (dist.InvChiSquare(3.0), stats.invgamma(1.5, scale=0.5)),
    (dist.InvGamma(2.5, 0.5), stats.invgamma(2.5, scale=0.5)),
    (dist.InvGamma(0.5, 0.5), stats.invgamma(0.5, scale=0.5)),
    (dist.InvGaussian(1.5, 2.5), stats.invgauss(0.6, scale=2.5)),
    (dist.Logistic(1.0, 2.0), stats.logistic(1.0, 2.0)),
    (dist.Loglogistic(1.5, 2.5), stats.fisk(2.5, scale=1.5)),
    (dist.Loglogistic(1.5, 1.5), stats.fisk(1.5, scale=1.5)),
    (dist.Lognormal(0.3, 0.8), stats.lognorm(0.8, scale=np.exp(0.3))),
    (dist.NegBinomial(2.5, 0.7), stats.nbinom(2.5, 0.7 / 1.7)),
    (dist.NegBinomial2(3.0, 0.7), stats.nbinom(0.7, 0.7 / 3.7)),
    (dist.NegBinomial2Log(0.5, 0.7), stats.nbinom(0.7, 0.7 / (0.7 + np.exp(0.5)))),
    (dist.Normal(1.0, 2.0), stats.norm(1.0, 2.0)),
    (dist.Pareto(1.5, 2.5), stats.pareto(2.5, scale=1.5)),
    (dist.Pareto(1.5, 1.5), stats.pareto(1.5, scale=1.5)),
    (dist.ParetoType2(0.5, 1.5, 2.5), stats.lomax(2.5, 0.5, 1.5)),
    (dist.Poisson(3.5), stats.poisson(3.5)),
    (dist.PoissonLog(0.5), stats.poisson(np.exp(0.5))),
    (dist.Rayleigh(1.5), stats.rayleigh(scale=1.5)),
    (dist.ScaledInvChiSquare(5.5, 1.5), stats.invgamma(2.75, scale=5.5 * 1.5**2 / 2.0)),
    (dist.SkewDoubleExponential(1.0, 2.0, 0.3),
     stats.laplace_asymmetric(np.sqrt(0.3 / 0.7), 1.0, 1.0 / np.sqrt(0.21))),
    (dist.SkewNormal(1.0, 2.0, -3.0), stats.skewnorm(-3.0, 1.0, 2.0)),
    (dist.StdNormal(), stats.norm()),
    (dist.StudentT(4.5, 1.0, 2.0), stats.t(4.5, 1.0, 2.0)),
    (dist.StudentT(1.5, 1.0, 2.0), stats.t(1.5, 1.0, 2.0)),
    (dist.Uniform(-1.0, 2.5), stats.uniform(-1.0, 3.5)),
    (dist.VonMises(0.5, 1.5), stats.vonmises(1.5, 0.5)),
    (dist.Weibull(1.5, 2.0), stats.weibull_min(1.5, scale=2.0)),
    (dist.YuleSimon(2.5), stats.yulesimon(2.5)),
    (dist.YuleSimon(1.5), stats.yulesimon(1.5)),
    (dist.Hypergeometric(4, 7, 5), stats.hypergeom(12, 7, 4)),
]  # fmt: skip
# SciPy has nan for one of them, and a number below zero for the other.
INFINITE_VARIANCE = {"Frechet(alpha=1.5, sigma=1.5)", "Loglogistic(alpha=1.5, beta=1.5)"}
WITHOUT_MOMENTS = {"VonMises", "NormalSufficient"}


def test_every_family_has_moments():
    tested = {type(ours).__name__ for ours, _ in FAMILIES}
    rows = {
        name for name in dir(dist) if isinstance(getattr(getattr(dist, name), "row", 0), Univariate)
    }
    assert rows - tested == {"NormalSufficient"}
    for name in WITHOUT_MOMENTS:
        made = getattr(dist, name)(*[1.0] * len(getattr(dist, name).__signature__.parameters))
        refuses(TypeError, f"^{name} has no mean!$", made.mean)
        refuses(TypeError, f"^{name} has no variance!$", made.variance)


@pytest.mark.parametrize(("ours", "theirs"), FAMILIES, ids=[repr(ours) for ours, _ in FAMILIES])
def test_families(ours, theirs):
    if type(ours).__name__ not in WITHOUT_MOMENTS:
        found = [ours.mean(), ours.variance()]
        assert [type(x) for x in found] == [float, float]
        with np.errstate(all="ignore"):
            expected = [float(x) for x in theirs.stats("mv")]
        if repr(ours) in INFINITE_VARIANCE:
            expected[1] = np.inf
        close(np.array(found), expected, 1e-11)
    if type(ours).__name__ == "Hypergeometric":
        refuses(TypeError, "^Hypergeometric has no lcdf!$", ours.ppf, 0.5)
        return
    p = np.array([1e-3, 0.01, 0.2, 0.5, 0.77, 0.999])
    if type(ours).__name__ == "VonMises":
        close(theirs.cdf(ours.ppf(p)) - theirs.cdf(-np.pi), p, 1e-9)
        return
    found = ours.ppf(p)
    if ours.is_discrete:
        equal(found, theirs.ppf(p))
    else:
        close(ours.lcdf.pointwise(found), np.log(p), 1e-11)
        close(found, theirs.ppf(p), 1e-7, 1e-9)
    lower, upper = ours.support()
    equal(ours.ppf([0.0, 1.0, -0.1, 1.1, np.nan]), [lower, upper, np.nan, np.nan, np.nan])
    equal([lower, upper], theirs.support())


def test_shapes_and_variables():
    equal(dist.Normal(0.5, [1.0, 2.0]).mean(), [0.5, 0.5])
    equal(dist.StudentT([0.5, 1.5, 3.0], 0.0, 1.0).variance(), [np.nan, np.inf, 3.0])
    assert dist.Gamma([[1.0], [2.0]], [1.0, 2.0, 3.0]).ppf(0.5).shape == (2, 3)
    made = dist.BernoulliLogitGLM(X, 0.2, np.array([0.5, -0.3]))
    close(made.mean(), vm.inv_logit(0.2 + X @ [0.5, -0.3]), 1e-14)
    # A moment that does not exist has the derivative zero.
    for moment, at in (("mean", 1.5), ("variance", 2.5), ("variance", 1.5)):

        def f(alpha, moment=moment):
            return getattr(dist.InvGamma(alpha, 2.0), moment)()  # fmt: skip

        found = vm.gradient(f, at)
        step = 1e-6
        expected = (f(at + step) - f(at - step)) / (2 * step) if np.isfinite(f(at)) else 0.0
        close(found, expected, 1e-7)
    refuses(vm.DomainError, r"^Normal.mean: Scale parameter is -1.0, but must be positive!$",
            dist.Normal(0.0, -1.0).mean)  # fmt: skip
    with pytest.raises(TypeError, match=r"^Normal.ppf: a parameter is a variable, but must be"):
        vm.gradient(lambda mu: dist.Normal(mu, 1.0).ppf(0.3), 0.0)


def test_moments_of_extreme_values_near_the_shape_of_gumbel():
    for xi in (1e-12, -1e-7, 1e-4, 0.02, 0.149, 0.151, 0.31, -0.2, -2.0):
        made = dist.GeneralizedExtremeValue(0.5, 2.0, xi)
        with mpmath.workdps(50):
            g = [mpmath.gamma(1 - k * mpmath.mpf(xi)) for k in (1, 2)]
            mean, variance = 0.5 + 2 * (g[0] - 1) / xi, 4 * (g[1] - g[0] ** 2) / mpmath.mpf(xi) ** 2
        close([made.mean(), made.variance()], [float(mean), float(variance)], 1e-13)


BASES = [
    (dist.Normal(1.0, 2.0), stats.norm(1.0, 2.0)),
    (dist.Gamma([0.5, 2.5], 0.5), stats.gamma([0.5, 2.5], scale=2.0)),
    (dist.StudentT(3.5, 0.0, 1.0), stats.t(3.5)),
    (dist.Poisson(3.5), stats.poisson(3.5)),
    (dist.NegBinomial2(3.0, 1.5), stats.nbinom(1.5, 1.5 / 4.5)),
]


@pytest.mark.parametrize(("base", "lower", "upper"), [
    *((base, *ends) for base in (0, 3) for ends in ((1, None), (None, 3), (1, 4))),
    (1, 1, 4), (2, 1, None), (4, None, 3),
])  # fmt: skip
def test_truncated_and_censored(base, lower, upper):
    ours, theirs = BASES[base]
    low, high = -np.inf if lower is None else lower, np.inf if upper is None else upper

    def moments_of(function, is_truncated):
        """Sums, or integrals, over the values inside and of the ends that the others become."""
        if ours.is_discrete:
            n = np.arange(300.0)
            inside = (n >= low) & (n <= high) | (not is_truncated)
            return np.sum(function(np.clip(n, low, high)) * inside * theirs.pmf(n)) / np.sum(
                inside * theirs.pmf(n)
            )
        first = np.maximum(low, theirs.support()[0])
        total, _ = integrate.quad_vec(  # by quantiles, which are finite
            lambda u: np.where((u > theirs.cdf(first)) & (u < theirs.cdf(high)),
                               function(theirs.ppf(u)), 0.0),
            0.0, 1.0, epsrel=1e-7,
        )  # fmt: skip
        if is_truncated:
            return total / (theirs.cdf(high) - theirs.cdf(low))
        ends = [(low, theirs.cdf(low)), (high, theirs.sf(high))]
        return total + sum(function(x) * share for x, share in ends if np.isfinite(x))

    for made, is_truncated in ((ours.truncated(lower, upper), True),
                               (ours.censored(lower, upper), False)):  # fmt: skip
        mean = moments_of(lambda y: y, is_truncated)
        variance = moments_of(lambda y, mean=mean: (y - mean) ** 2, is_truncated)
        rtol = 1e-5
        close(made.mean() + np.zeros(np.shape(mean)), mean, rtol)
        close(made.variance() + np.zeros(np.shape(mean)), variance, rtol)
        p = np.array([[0.03], [0.4], [0.9]])
        found = made.ppf(p)
        below = made.cdf.pointwise(found)
        assert np.all(below >= p - 1e-12)
        before = found - 1 if ours.is_discrete else np.nextafter(found, -np.inf)
        assert np.all(made.cdf.pointwise(before) <= p + 1e-12)


def test_moments_that_truncation_does_not_make_finite():
    message = r"^Truncated has no mean, because an end is infinite, and the mean of its base is not"
    refuses(TypeError, message, dist.Cauchy(0.0, 1.0).truncated(lower=0.0).mean)
    expected = 0.5 * np.log(5.0 / 2.0) / (np.arctan(2.0) + np.pi / 4.0)
    close(dist.Cauchy(0.0, 1.0).truncated(-1.0, 2.0).mean(), expected, 1e-12)
    refuses(TypeError, "^MultiNormal has no mean!$", dist.MultiNormal(np.zeros(2), np.eye(2)).mean)
    with pytest.raises(TypeError, match=r"^Truncated.mean: a parameter is a variable, but must"):
        vm.gradient(lambda mu: dist.Normal(mu, 1.0).truncated(0.0).mean(), 0.0)


def test_mixtures():
    parts = [dist.Normal(0.0, 1.0), dist.Gamma(2.0, 0.5), dist.Poisson(3.0)]
    weights = np.array([0.2, 0.3, 0.5])
    made = dist.Mixture(weights, parts)
    means, variances = (np.array([getattr(d, x)() for d in parts]) for x in ("mean", "variance"))
    mean = weights @ means
    close(made.mean(), mean, 1e-14)
    close(made.variance(), weights @ (variances + means**2) - mean**2, 1e-13)
    two = dist.Mixture(0.2, parts[:2])
    close(two.cdf.pointwise(two.ppf([0.1, 0.7])), [0.1, 0.7], 1e-12)
    slope = vm.gradient(lambda w: dist.Mixture(w, parts[:2]).variance(), 0.2)
    close(slope, variances[0] - variances[1] + (means[0] - means[1]) ** 2 * (1.0 - 0.4), 1e-12)
    drawn = dist.Mixture(0.3, [dist.Normal(0, 1), dist.Normal(4, 1)]).censored(upper=4.5)
    close(drawn.mean(), np.mean(drawn.rng(1, size=200_000)), 0.0, 0.02)


def test_quantiles_of_counts_on_both_sides_of_zero():
    """The support of a distribution of one's own is unknown."""
    theirs = stats.skellam(2.0, 3.0)
    made = dist.Custom(
        theirs.logpmf, cdf=theirs.cdf, lccdf=theirs.logsf, is_discrete=True,
        rng=lambda rng, size: theirs.rvs(size, random_state=rng),
    )  # fmt: skip
    p = [1e-9, 0.01, 0.3, 0.7, 0.999999]
    equal(made.ppf(p), theirs.ppf(p))
    drawn = made.truncated(upper=-12).rng(1, size=500)
    assert drawn.max() <= -12
    close(made.truncated(-3, 4).mean(), made.truncated(-3, 4).rng(1, size=50_000).mean(), 0.0, 0.03)
