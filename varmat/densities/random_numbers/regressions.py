"""Random observations of generalised linear models."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.domains import nonnegative
from varmat.densities.glm import bernoulli_logit_glm_lpmf, normal_id_glm_lpdf, poisson_log_glm_lpmf
from varmat.densities.glm_categories import categorical_logit_glm_lpmf, ordered_logistic_glm_lpmf
from varmat.densities.glm_counts import binomial_logit_glm_lpmf, neg_binomial_2_log_glm_lpmf
from varmat.densities.random_numbers.row import Generator, log_gamma, poisson_counts, random_numbers
from varmat.densities.random_numbers.vectors import cell, chosen
from varmat.functions.arrays.exponentials import softmax
from varmat.functions.special.logistic_functions import expit
from varmat.typing import Operand, Result, Shape

__all__ = [
    "bernoulli_logit_glm_rng",
    "binomial_logit_glm_rng",
    "categorical_logit_glm_rng",
    "neg_binomial_2_log_glm_rng",
    "normal_id_glm_rng",
    "ordered_logistic_glm_rng",
    "poisson_log_glm_rng",
]


_DATA: dict[str, Any] = {"X": "nk", "alpha": "n/", "beta": "k"}


# In the functions below `rng` is a generator and `shape` the shape in front of vectors of
# observations.
def predictors(shape: Shape, x: Operand, alpha: Operand, beta: Operand) -> tuple[Shape, np.ndarray]:
    """Return the shape of all observations, and the linear predictors."""
    eta = alpha + (beta @ x.mT if np.ndim(x) == 2 else np.einsum("...nk,...k->...n", x, beta))
    return (*shape, np.shape(x)[-2]), eta


@random_numbers(normal_id_glm_lpdf, "normal linear model", "n", **_DATA, sigma="n/")
def normal_id_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand, sigma: Operand
) -> Result:
    """With ``eta = alpha + X @ beta`` the observations are drawn as by ``normal_rng(eta, sigma)``.
    A ``size`` is the shape in front of such vectors.

    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
    >>> vm.normal_id_glm_rng(X, 0.5, [1.0, -0.5], 2.0, rng=1, size=100).shape
    (100, 3)
    """
    shape, eta = predictors(shape, X, alpha, beta)
    return eta + sigma * rng.standard_normal(shape)


@random_numbers(bernoulli_logit_glm_lpmf, "Bernoulli model of linear log odds", "n", **_DATA)
def bernoulli_logit_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand
) -> Result:
    """With ``eta = alpha + X @ beta`` the observations are drawn as by
    ``bernoulli_logit_rng(eta)``. A ``size`` is the shape in front of such vectors.

    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
    >>> vm.bernoulli_logit_glm_rng(X, 0.5, [1.0, -0.5], rng=1, size=100).shape
    (100, 3)
    """
    shape, eta = predictors(shape, X, alpha, beta)
    return rng.random(shape) < expit(eta)


@random_numbers(
    binomial_logit_glm_lpmf,
    "binomial model of linear log odds",
    "n",
    N=("#n/", nonnegative),
    **_DATA,
)
def binomial_logit_glm_rng(
    rng: Generator, shape: Shape, N: Operand, X: Operand, alpha: Operand, beta: Operand
) -> Result:
    """With ``eta = alpha + X @ beta`` the observations are drawn as by ``binomial_logit_rng(N,
    eta)``. A ``size`` is the shape in front of such vectors.

    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
    >>> vm.binomial_logit_glm_rng(10, X, 0.5, [1.0, -0.5], rng=1, size=100).shape
    (100, 3)
    """
    shape, eta = predictors(shape, X, alpha, beta)
    return rng.binomial(N, expit(eta), shape)


@random_numbers(poisson_log_glm_lpmf, "Poisson model of linear log rates", "n", **_DATA)
def poisson_log_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand
) -> Result:
    """With ``eta = alpha + X @ beta`` the observations are drawn as by ``poisson_log_rng(eta)``.
    A ``size`` is the shape in front of such vectors.

    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
    >>> vm.poisson_log_glm_rng(X, 0.5, [1.0, -0.5], rng=1, size=100).shape
    (100, 3)
    """
    shape, eta = predictors(shape, X, alpha, beta)
    return poisson_counts("poisson_log_glm_rng", rng, np.exp(eta), shape)


@random_numbers(
    neg_binomial_2_log_glm_lpmf,
    "negative binomial model of linear log means",
    "n",
    **_DATA,
    phi="n/",
)
def neg_binomial_2_log_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand, phi: Operand
) -> Result:
    """With ``eta = alpha + X @ beta`` the observations are drawn as by
    ``neg_binomial_2_log_rng(eta, phi)``. A ``size`` is the shape in front of such vectors.

    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
    >>> vm.neg_binomial_2_log_glm_rng(X, 0.5, [1.0, -0.5], 2.0, rng=1, size=100).shape
    (100, 3)
    """
    shape, eta = predictors(shape, X, alpha, beta)
    rate = np.exp(eta + log_gamma(rng, phi, shape) - np.log(phi))
    return poisson_counts("neg_binomial_2_log_glm_rng", rng, rate, shape)


@random_numbers(
    ordered_logistic_glm_lpmf,
    "ordered logistic model of linear locations",
    "n",
    X="nk",
    beta="k",
    cutpoints="c",
)
def ordered_logistic_glm_rng(
    rng: Generator, shape: Shape, X: Operand, beta: Operand, cutpoints: Operand
) -> Result:
    """With ``eta = X @ beta`` the observations are drawn as by ``ordered_logistic_rng(eta,
    cutpoints)``. A ``size`` is the shape in front of such vectors.

    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
    >>> vm.ordered_logistic_glm_rng(X, [1.0, -0.5], [-1.0, 1.0], rng=1, size=100).shape
    (100, 3)
    """
    shape, eta = predictors(shape, X, 0.0, beta)
    return cell(eta + rng.logistic(size=shape), cutpoints[..., None, :])


@random_numbers(
    categorical_logit_glm_lpmf,
    "categorical model of linear log odds",
    "n",
    X="nk",
    alpha="c",
    beta="kc",
)
def categorical_logit_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand
) -> Result:
    """With ``eta = alpha + X @ beta`` the observations are drawn as by
    ``categorical_logit_rng(eta)``, row by row. A ``size`` is the shape in front of such vectors.

    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
    >>> alpha, beta = [0.0, 0.5], [[1.0, -0.5], [0.0, 0.0]]
    >>> vm.categorical_logit_glm_rng(X, alpha, beta, rng=1, size=100).shape
    (100, 3)
    """
    weights = softmax(X @ beta + alpha[..., None, :], axis=-1)
    return chosen(rng, (*shape, np.shape(X)[-2]), weights)
