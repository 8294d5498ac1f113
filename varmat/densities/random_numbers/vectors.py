"""Random vectors and categories: normal and Student t vectors, simplexes, multinomial counts, one
of K categories.
"""

from __future__ import annotations

import numpy as np

from varmat.core.domains import nonnegative, positive
from varmat.densities.categorical import categorical_logit_lpmf, categorical_lpmf
from varmat.densities.domains import Matrices, lower_factor, symmetric_matrix
from varmat.densities.multi_normal import (
    multi_normal_cholesky_lpdf,
    multi_normal_lpdf,
    multi_normal_prec_lpdf,
    multi_student_t_cholesky_lpdf,
    multi_student_t_lpdf,
)
from varmat.densities.ordered import ordered_logistic_lpmf, ordered_probit_lpmf
from varmat.densities.poisson_binomial import poisson_binomial_lpmf
from varmat.densities.random_numbers.row import Generator, log_gamma, random_numbers
from varmat.densities.simplex import (
    dirichlet_lpdf,
    dirichlet_multinomial_lpmf,
    multinomial_logit_lpmf,
    multinomial_lpmf,
)
from varmat.functions.arrays.exponentials import softmax
from varmat.functions.linalg.lapack import cholesky_factor
from varmat.typing import Operand, Result, Shape

__all__ = [
    "categorical_logit_rng",
    "categorical_rng",
    "dirichlet_multinomial_rng",
    "dirichlet_rng",
    "multi_normal_cholesky_rng",
    "multi_normal_prec_rng",
    "multi_normal_rng",
    "multi_student_t_cholesky_rng",
    "multi_student_t_rng",
    "multinomial_logit_rng",
    "multinomial_rng",
    "ordered_logistic_rng",
    "ordered_probit_rng",
    "poisson_binomial_rng",
]

# --- normal and Student t ---

COVARIANCES, FACTORS = ("kk", Matrices(symmetric_matrix)), ("kk", Matrices(lower_factor))


def normal_vectors(rng: Generator, shape: Shape, mu: Operand) -> Result:
    """Draw standard normal vectors."""
    return rng.standard_normal((*shape, np.shape(mu)[-1]))


def student_factors(rng: Generator, shape: Shape, nu: Operand) -> Result:
    """Draw the factors that turn normal vectors into vectors with Student's distribution."""
    degrees = np.where(np.isinf(nu), 1.0, nu)
    return np.where(np.isinf(nu), 1.0, np.sqrt(degrees / rng.chisquare(degrees, shape)))[..., None]


def turned(factor: Operand, z: Operand) -> Result:
    """Compute ``factor @ z`` for vectors along the last axis, at once if there is one matrix."""
    return z @ factor.T if factor.ndim == 2 else (factor @ z[..., None])[..., 0]


def solved(factor: Operand, z: Operand) -> Result:
    """Compute ``inv(factor).T @ z`` for vectors along the last axis."""
    if factor.ndim > 2:
        return np.linalg.solve(factor.mT, z[..., None])[..., 0]
    return (
        np.linalg.solve(factor.T, z.reshape(-1, len(factor)).T).T.reshape(z.shape) if z.size else z
    )


@random_numbers(
    multi_normal_lpdf, "multivariate normal distribution", "k", mu="k", Sigma=COVARIANCES
)
def multi_normal_rng(rng: Generator, shape: Shape, mu: Operand, Sigma: Operand) -> Result:
    """With z of ``numpy.random.Generator.standard_normal`` a draw is ``mu + L @ z`` with the
    Cholesky factor L of the covariance.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.multi_normal_rng([0.0, 1.0], [[4.0, 2.0], [2.0, 2.0]], rng=1, size=1000)
    >>> draws.shape
    (1000, 2)
    >>> bool(np.mean(draws[:, 0]) < np.mean(draws[:, 1]))
    True
    """
    factor = cholesky_factor("multi_normal_rng", Sigma, name="Covariance matrix")
    return mu + turned(factor, normal_vectors(rng, shape, mu))


@random_numbers(
    multi_normal_cholesky_lpdf,
    "multivariate normal distribution, by the Cholesky factor",
    "k",
    mu="k",
    L=FACTORS,
)
def multi_normal_cholesky_rng(rng: Generator, shape: Shape, mu: Operand, L: Operand) -> Result:
    """With z of ``numpy.random.Generator.standard_normal`` a draw is ``mu + L @ z``.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.multi_normal_cholesky_rng([0.0, 1.0], [[2.0, 0.0], [1.0, 1.0]], rng=1, size=1000)
    >>> draws.shape
    (1000, 2)
    >>> bool(np.mean(draws[:, 0]) < np.mean(draws[:, 1]))
    True
    """
    return mu + turned(np.tril(L), normal_vectors(rng, shape, mu))


@random_numbers(
    multi_normal_prec_lpdf,
    "multivariate normal distribution, by the precision matrix",
    "k",
    mu="k",
    Omega=COVARIANCES,
)
def multi_normal_prec_rng(rng: Generator, shape: Shape, mu: Operand, Omega: Operand) -> Result:  # noqa: N803
    """With z of ``numpy.random.Generator.standard_normal`` a draw is ``mu + inv(L).T @ z`` with the
    Cholesky factor L of the precision.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.multi_normal_prec_rng([0.0, 1.0], [[4.0, 2.0], [2.0, 2.0]], rng=1, size=1000)
    >>> draws.shape
    (1000, 2)
    >>> bool(np.mean(draws[:, 0]) < np.mean(draws[:, 1]))
    True
    """
    factor = cholesky_factor("multi_normal_prec_rng", Omega, name="Precision matrix")
    return mu + solved(factor, normal_vectors(rng, shape, mu))


@random_numbers(
    multi_student_t_lpdf,
    "multivariate Student t distribution",
    "k",
    nu=("", positive),
    mu="k",
    Sigma=COVARIANCES,
)
def multi_student_t_rng(
    rng: Generator, shape: Shape, nu: Operand, mu: Operand, Sigma: Operand
) -> Result:
    """With z of ``numpy.random.Generator.standard_normal`` a draw is ``mu + L @ z / sqrt(c / nu)``
    with the Cholesky factor L of the scale and a chi-square number c.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.multi_student_t_rng(4.0, [0.0, 1.0], [[4.0, 2.0], [2.0, 2.0]], rng=1, size=1000)
    >>> draws.shape
    (1000, 2)
    >>> bool(np.mean(draws[:, 0]) < np.mean(draws[:, 1]))
    True
    """
    factor = cholesky_factor("multi_student_t_rng", Sigma, name="Scale parameter")
    return mu + turned(factor, normal_vectors(rng, shape, mu)) * student_factors(rng, shape, nu)


@random_numbers(
    multi_student_t_cholesky_lpdf,
    "multivariate Student t distribution, by the Cholesky factor",
    "k",
    nu=("", positive),
    mu="k",
    L=FACTORS,
)
def multi_student_t_cholesky_rng(
    rng: Generator, shape: Shape, nu: Operand, mu: Operand, L: Operand
) -> Result:
    """With z of ``numpy.random.Generator.standard_normal`` a draw is ``mu + L @ z / sqrt(c / nu)``
    with a chi-square number c.

    >>> import numpy as np, varmat as vm
    >>> mu, L = [0.0, 1.0], [[2.0, 0.0], [1.0, 1.0]]
    >>> draws = vm.multi_student_t_cholesky_rng(4.0, mu, L, rng=1, size=1000)
    >>> draws.shape
    (1000, 2)
    >>> bool(np.mean(draws[:, 0]) < np.mean(draws[:, 1]))
    True
    """
    return mu + turned(np.tril(L), normal_vectors(rng, shape, mu)) * student_factors(rng, shape, nu)


# --- simplexes, and counts of K categories ---


def simplexes(rng: Generator, shape: Shape, alpha: Operand) -> Result:
    """Draw vectors with a Dirichlet distribution, from log gamma numbers: these do not underflow
    for small shapes.
    """
    return softmax(log_gamma(rng, alpha, (*shape, np.shape(alpha)[-1])), axis=-1)


def multinomial_counts(rng: Generator, shape: Shape, theta: Operand, trials: Operand) -> Result:
    """Draw multinomial counts. Probabilities are scaled, because NumPy tolerates less in their sum
    than we do.
    """
    return rng.multinomial(trials, theta / np.sum(theta, axis=-1, keepdims=True), shape)


@random_numbers(dirichlet_lpdf, "Dirichlet distribution", "k", alpha="k")
def dirichlet_rng(rng: Generator, shape: Shape, alpha: Operand) -> Result:
    """A draw is a vector of gamma numbers of these shapes, divided by their sum. That is done
    with logarithms, so that shapes may be small.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.dirichlet_rng([1.0, 2.0, 7.0], rng=1, size=100)
    >>> draws.shape
    (100, 3)
    >>> bool(np.allclose(np.sum(draws, axis=-1), 1.0))
    True
    """
    return simplexes(rng, shape, alpha)


@random_numbers(
    multinomial_lpmf,
    "multinomial distribution",
    "k",
    theta="k",
    N=("#", nonnegative, "Number of trials variable"),
)
def multinomial_rng(rng: Generator, shape: Shape, theta: Operand, N: Operand) -> Result:
    """The counts are drawn with ``numpy.random.Generator.multinomial(N, theta)``.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.multinomial_rng([0.2, 0.3, 0.5], 10, rng=1, size=100)
    >>> np.unique(np.sum(draws, axis=-1))
    array([10])
    """
    return multinomial_counts(rng, shape, theta, N)


@random_numbers(
    multinomial_logit_lpmf,
    "multinomial distribution, by log odds",
    "k",
    gamma="k",
    N=("#", nonnegative, "Number of trials variable"),
)
def multinomial_logit_rng(rng: Generator, shape: Shape, gamma: Operand, N: Operand) -> Result:
    """The counts are drawn with ``numpy.random.Generator.multinomial(N, softmax(gamma))``.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.multinomial_logit_rng([0.0, 1.0, -1.0], 10, rng=1, size=100)
    >>> np.unique(np.sum(draws, axis=-1))
    array([10])
    """
    return multinomial_counts(rng, shape, softmax(gamma, axis=-1), N)


@random_numbers(
    dirichlet_multinomial_lpmf,
    "Dirichlet-multinomial distribution",
    "k",
    alpha="k",
    N=("#", nonnegative, "Number of trials variable"),
)
def dirichlet_multinomial_rng(rng: Generator, shape: Shape, alpha: Operand, N: Operand) -> Result:
    """The counts are multinomial, of probabilities drawn as by `dirichlet_rng`.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.dirichlet_multinomial_rng([1.0, 2.0, 7.0], 10, rng=1, size=100)
    >>> np.unique(np.sum(draws, axis=-1))
    array([10])
    """
    return multinomial_counts(rng, shape, simplexes(rng, shape, alpha), N)


@random_numbers(poisson_binomial_lpmf, "Poisson binomial distribution", theta="k")
def poisson_binomial_rng(rng: Generator, shape: Shape, theta: Operand) -> Result:
    """A draw is the number of successes in trials with these probabilities.

    >>> import varmat as vm
    >>> vm.poisson_binomial_rng([0.0, 1.0, 1.0], rng=1)
    2
    """
    return np.sum(rng.random((*shape, np.shape(theta)[-1])) < theta, axis=-1)


# --- one of K categories, from 1 to K ---


def chosen(rng: Generator, shape: Shape, weights: Operand) -> Result:
    """Draw categories 1, 2, ... with probabilities proportional to weights, by inversion."""
    sums = np.cumsum(weights, axis=-1)
    # A number below the sum, even after rounding, never chooses a category of probability zero.
    u = rng.random(shape) * sums[..., -1]
    if sums.ndim == 1:
        return 1 + np.searchsorted(sums, u, side="right")
    return 1 + np.sum(sums <= u[..., None], axis=-1)


@random_numbers(categorical_lpmf, "categorical distribution", theta="k")
def categorical_rng(rng: Generator, shape: Shape, theta: Operand) -> Result:
    """A draw is one of the categories 1, ..., K, as in Stan and in the mass, by inversion of the
    sums of the probabilities.

    >>> import numpy as np, varmat as vm
    >>> np.unique(vm.categorical_rng([0.0, 0.4, 0.6], rng=1, size=100))
    array([2, 3])
    """
    return chosen(rng, shape, theta)


@random_numbers(categorical_logit_lpmf, "categorical distribution, by log odds", beta="k")
def categorical_logit_rng(rng: Generator, shape: Shape, beta: Operand) -> Result:
    """A draw is one of the categories 1, ..., K, as in Stan and in the mass, by inversion of the
    sums of ``exp(beta)``.

    >>> import numpy as np, varmat as vm
    >>> np.unique(vm.categorical_logit_rng([-1000.0, 0.0, 1.0], rng=1, size=100))
    array([2, 3])
    """
    return chosen(rng, shape, softmax(beta, axis=-1))


def cell(latent: Operand, cutpoints: Operand) -> Result:
    """Find the cell between cutpoints, counted from 1, in which each number lies."""
    return 1 + np.sum(cutpoints < latent[..., None], axis=-1)


@random_numbers(ordered_logistic_lpmf, "ordered logistic distribution", eta="", cutpoints="c")
def ordered_logistic_rng(rng: Generator, shape: Shape, eta: Operand, cutpoints: Operand) -> Result:
    """A draw is one of the categories 1, ..., K, as in Stan and in the mass. It says between which
    cutpoints a number lies that is logistic with the location `eta` and the scale 1.

    >>> import numpy as np, varmat as vm
    >>> np.unique(vm.ordered_logistic_rng(0.0, [-1.0, 1.0], rng=1, size=100))
    array([1, 2, 3])
    """
    return cell(eta + np.asarray(rng.logistic(size=shape)), cutpoints)


@random_numbers(ordered_probit_lpmf, "ordered probit distribution", eta="", cutpoints="c")
def ordered_probit_rng(rng: Generator, shape: Shape, eta: Operand, cutpoints: Operand) -> Result:
    """A draw is one of the categories 1, ..., K, as in Stan and in the mass. It says between which
    cutpoints a number lies that is normal with the location `eta` and the scale 1.

    >>> import numpy as np, varmat as vm
    >>> np.unique(vm.ordered_probit_rng(0.0, [-1.0, 1.0], rng=1, size=100))
    array([1, 2, 3])
    """
    return cell(eta + np.asarray(rng.standard_normal(shape)), cutpoints)
