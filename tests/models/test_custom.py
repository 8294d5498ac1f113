"""Distributions with densities of the user: of plain functions, and objects with methods."""

import functools

import numpy as np
import pytest
from comparing import close

import varmat as vm
import varmat.distributions as dist

Y = np.linspace(-1.0, 2.0, 6)
CUMULATIVE = {"lcdf": vm.normal_lcdf, "lccdf": vm.normal_lccdf}


def normal_lpdf(y, mu, sigma):
    return -0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)


def normal_rng(mu, sigma, rng, size):
    return rng.normal(mu, sigma, size)


class Normal:
    """An object with methods, which knows nothing of varmat's classes."""

    def __init__(self, mu, sigma):
        self.mu, self.sigma = mu, sigma

    def lpdf(self, y):
        return normal_lpdf(y, self.mu, self.sigma)

    def lcdf(self, y):
        return vm.normal_lcdf.pointwise(y, self.mu, self.sigma)

    def lccdf(self, y):
        return vm.normal_lccdf.pointwise(y, self.mu, self.sigma)

    def rng(self, generator, size):
        return generator.normal(self.mu, self.sigma, size)


def lomax_lpdf(y, alpha, scale):
    return np.log(alpha / scale) - (alpha + 1.0) * np.log1p(y / scale)


def lomax_lccdf(y, alpha, scale):
    return -alpha * np.log1p(y / scale)


def lomax_cdf(y, alpha, scale):
    return 1.0 - np.exp(lomax_lccdf(y, alpha, scale))


def lomax_rng(alpha, scale, rng, size):
    return scale * rng.pareto(alpha, size)


Lomax = functools.partial(dist.Custom, lomax_lpdf, rng=lomax_rng, cdf=lomax_cdf, lccdf=lomax_lccdf)
KINDS = {
    "functions": functools.partial(dist.Custom, normal_lpdf, rng=normal_rng, **CUMULATIVE),
    "those of varmat": functools.partial(
        dist.Custom, vm.normal_lpdf, rng=vm.normal_rng, **CUMULATIVE
    ),
    "an object": Normal,
}


def hierarchy(of):
    return vm.Model(
        mu=vm.real(prior=of(0.0, 5.0)),
        tau=vm.positive(prior=lambda: of(0.0, 2.0)),
        theta=vm.real(6, prior=lambda mu, tau: of(mu, tau)),
        y=vm.observed(Y, lambda theta: of(theta, 1.5)),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_model_is_that_of_the_same_distribution_of_varmat(kind):
    ours, theirs = hierarchy(dist.Normal), hierarchy(KINDS[kind])
    q = np.linspace(-0.5, 0.6, 8)
    close(theirs.log_density(q), ours.log_density(q, propto=False), 1e-13)  # all terms count
    for found, expected in zip(
        theirs.log_density_hessian(q), ours.log_density_hessian(q, propto=False), strict=True
    ):
        close(found, expected, 1e-12, 1e-12)
    assert repr(theirs.graph()) == repr(ours.graph())
    point = ours.constrain(q)
    found, expected = (model.stated.pointwise(**point)["y"] for model in (theirs, ours))
    close(found, expected, 1e-13)
    other = [model.with_data(y=Y + 1.0).log_density(q, propto=False) for model in (theirs, ours)]
    close(other[0], other[1], 1e-13)
