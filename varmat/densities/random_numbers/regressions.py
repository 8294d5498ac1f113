"""Random observations of generalised linear models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from varmat.core.domains import finite, nonnegative, positive_finite
from varmat.densities.domains import finite_vector, ordered
from varmat.densities.glm import bernoulli_logit_glm_lpmf, normal_id_glm_lpdf, poisson_log_glm_lpmf
from varmat.densities.glm_categories import categorical_logit_glm_lpmf, ordered_logistic_glm_lpmf
from varmat.densities.glm_counts import binomial_logit_glm_lpmf, neg_binomial_2_log_glm_lpmf
from varmat.densities.random_numbers.row import Generator, log_gamma, poisson_counts, vectors
from varmat.densities.random_numbers.vectors import cell, chosen
from varmat.functions.arrays.exponentials import softmax
from varmat.functions.special.logistic_functions import expit

if TYPE_CHECKING:
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

MATRIX = ("Matrix of independent variables", finite, "nk")
INTERCEPT = ("Intercept", finite, "n/")
WEIGHTS = ("Weight vector", finite_vector, "k")
# In the functions below `rng` is a generator and `shape` the shape in front of vectors of
# observations.
NOTES = """With ``eta = alpha + X @ beta`` the observations are drawn as by {}.
    A ``size`` is the shape in front of such vectors."""
EXAMPLE = """
>>> import numpy as np, varmat as vm
>>> X = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
>>> vm.{}_glm_rng({}, rng=1, size=100).shape
(100, 3)
"""


def predictors(shape: Shape, x: Operand, alpha: Operand, beta: Operand) -> tuple[Shape, np.ndarray]:
    """The shape of all observations, and the linear predictors."""
    eta = alpha + (beta @ x.mT if np.ndim(x) == 2 else np.einsum("...nk,...k->...n", x, beta))
    return (*shape, np.shape(x)[-2]), eta


@vectors(
    "normal linear model",
    "n",
    density=normal_id_glm_lpdf,
    X=MATRIX,
    alpha=INTERCEPT,
    beta=WEIGHTS,
    sigma=("Scale vector", positive_finite, "n/"),
    notes=NOTES.format("``normal_rng(eta, sigma)``"),
    examples=EXAMPLE.format("normal_id", "X, 0.5, [1.0, -0.5], 2.0"),
)
def normal_id_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand, sigma: Operand
) -> Result:
    shape, eta = predictors(shape, X, alpha, beta)
    return eta + sigma * rng.standard_normal(shape)


@vectors(
    "Bernoulli model of linear log odds",
    "n",
    density=bernoulli_logit_glm_lpmf,
    integer=True,
    X=MATRIX,
    alpha=INTERCEPT,
    beta=WEIGHTS,
    notes=NOTES.format("``bernoulli_logit_rng(eta)``"),
    examples=EXAMPLE.format("bernoulli_logit", "X, 0.5, [1.0, -0.5]"),
)
def bernoulli_logit_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand
) -> Result:
    shape, eta = predictors(shape, X, alpha, beta)
    return rng.random(shape) < expit(eta)


@vectors(
    "binomial model of linear log odds",
    "n",
    density=binomial_logit_glm_lpmf,
    integer=True,
    N=("Population size parameter", nonnegative, "#n/"),
    X=MATRIX,
    alpha=INTERCEPT,
    beta=WEIGHTS,
    notes=NOTES.format("``binomial_logit_rng(N, eta)``"),
    examples=EXAMPLE.format("binomial_logit", "10, X, 0.5, [1.0, -0.5]"),
)
def binomial_logit_glm_rng(
    rng: Generator, shape: Shape, N: Operand, X: Operand, alpha: Operand, beta: Operand
) -> Result:
    shape, eta = predictors(shape, X, alpha, beta)
    return rng.binomial(N, expit(eta), shape)


@vectors(
    "Poisson model of linear log rates",
    "n",
    density=poisson_log_glm_lpmf,
    integer=True,
    X=MATRIX,
    alpha=INTERCEPT,
    beta=WEIGHTS,
    notes=NOTES.format("``poisson_log_rng(eta)``"),
    examples=EXAMPLE.format("poisson_log", "X, 0.5, [1.0, -0.5]"),
)
def poisson_log_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand
) -> Result:
    shape, eta = predictors(shape, X, alpha, beta)
    return poisson_counts("poisson_log_glm_rng", rng, np.exp(eta), shape)


@vectors(
    "negative binomial model of linear log means",
    "n",
    density=neg_binomial_2_log_glm_lpmf,
    integer=True,
    X=MATRIX,
    alpha=INTERCEPT,
    beta=WEIGHTS,
    phi=("Precision parameter", positive_finite, "n/"),
    notes=NOTES.format("``neg_binomial_2_log_rng(eta, phi)``"),
    examples=EXAMPLE.format("neg_binomial_2_log", "X, 0.5, [1.0, -0.5], 2.0"),
)
def neg_binomial_2_log_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand, phi: Operand
) -> Result:
    shape, eta = predictors(shape, X, alpha, beta)
    rate = np.exp(eta + log_gamma(rng, phi, shape) - np.log(phi))
    return poisson_counts("neg_binomial_2_log_glm_rng", rng, rate, shape)


@vectors(
    "ordered logistic model of linear locations",
    "n",
    density=ordered_logistic_glm_lpmf,
    integer=True,
    X=MATRIX,
    beta=WEIGHTS,
    cutpoints=("Cut-points", ordered, "c"),
    notes=NOTES.replace("alpha + ", "").format("``ordered_logistic_rng(eta, cutpoints)``"),
    examples=EXAMPLE.format("ordered_logistic", "X, [1.0, -0.5], [-1.0, 1.0]"),
)
def ordered_logistic_glm_rng(
    rng: Generator, shape: Shape, X: Operand, beta: Operand, cutpoints: Operand
) -> Result:
    shape, eta = predictors(shape, X, 0.0, beta)
    return cell(eta + rng.logistic(size=shape), cutpoints[..., None, :])


@vectors(
    "categorical model of linear log odds",
    "n",
    density=categorical_logit_glm_lpmf,
    integer=True,
    X=MATRIX,
    alpha=("Intercept", finite_vector, "c"),
    beta=("Weight vector", finite, "kc"),
    notes=NOTES.format("``categorical_logit_rng(eta)``, row by row"),
    examples=EXAMPLE.format("categorical_logit", "X, [0.0, 0.5], [[1.0, -0.5], [0.0, 0.0]]"),
)
def categorical_logit_glm_rng(
    rng: Generator, shape: Shape, X: Operand, alpha: Operand, beta: Operand
) -> Result:
    weights = softmax(X @ beta + alpha[..., None, :], axis=-1)
    return chosen(rng, (*shape, np.shape(X)[-2]), weights)
