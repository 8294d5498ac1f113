"""Random matrices of normal numbers, time series and hidden states."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from varmat.core.domains import Domain, nonnegative
from varmat.densities.domains import ScalarDomain, simplex
from varmat.densities.gaussian_dlm import gaussian_dlm_obs_lpdf, semidefinite
from varmat.densities.hmm_paths import filtered, into
from varmat.densities.matrix_normal import (
    matrix_normal_prec_lpdf,
    multi_gp_cholesky_lpdf,
    multi_gp_lpdf,
)
from varmat.densities.random_numbers.row import Generator, random_numbers
from varmat.densities.random_numbers.vectors import chosen, solved
from varmat.functions.linalg.lapack import cholesky_factor
from varmat.typing import Operand, Result, Shape

__all__ = [
    "gaussian_dlm_obs_rng",
    "hmm_latent_rng",
    "matrix_normal_prec_rng",
    "multi_gp_cholesky_rng",
    "multi_gp_rng",
]


# --- matrices of normal numbers ---


@random_numbers(
    matrix_normal_prec_lpdf,
    "matrix normal distribution, by precision matrices",
    "nm",
    mu="nm",
    Sigma="nn",
    D="mm",
)
def matrix_normal_prec_rng(
    rng: Generator, shape: Shape, mu: Operand, Sigma: Operand, D: Operand
) -> Result:
    """With standard normal Z and the Cholesky factors K of `Sigma` and L of `D` a draw is
    ``mu + inv(K).T @ Z @ inv(L)``: `Sigma` is the precision of the columns, `D` that of the
    rows.

    >>> import numpy as np, varmat as vm
    >>> mu, Sigma = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[2.0, 1.0], [1.0, 2.0]]
    >>> D = np.diag([1.0, 2.0, 3.0])
    >>> vm.matrix_normal_prec_rng(mu, Sigma, D, rng=1).shape
    (2, 3)
    """
    rows, columns = (
        cholesky_factor("matrix_normal_prec_rng", x, name=f"{which} precision matrix")
        for x, which in ((Sigma, "Row"), (D, "Column"))
    )
    z = rng.standard_normal((*shape, len(Sigma), len(D)))
    return mu + solved(rows, solved(columns, z).mT).mT


@random_numbers(
    multi_gp_lpdf, "multivariate Gaussian process distribution", "kn", Sigma="nn", w="k"
)
def multi_gp_rng(rng: Generator, shape: Shape, Sigma: Operand, w: Operand) -> Result:
    """Each row of a draw is a vector of normal numbers with this covariance, divided by the root of
    its kernel scale.

    >>> import varmat as vm
    >>> vm.multi_gp_rng([[4.0, 2.0], [2.0, 2.0]], [1.0, 2.0, 0.5], rng=1).shape
    (3, 2)
    """
    return _processes(
        rng, shape, cholesky_factor("multi_gp_rng", Sigma, name="Covariance matrix"), w
    )


@random_numbers(
    multi_gp_cholesky_lpdf,
    "multivariate Gaussian process distribution, by the Cholesky factor",
    "kn",
    L="nn",
    w="k",
)
def multi_gp_cholesky_rng(rng: Generator, shape: Shape, L: Operand, w: Operand) -> Result:
    """Each row of a draw is a vector of normal numbers with this covariance, divided by the root of
    its kernel scale.

    >>> import varmat as vm
    >>> vm.multi_gp_cholesky_rng([[2.0, 0.0], [1.0, 1.0]], [1.0, 2.0, 0.5], rng=1).shape
    (3, 2)
    """
    return _processes(rng, shape, np.tril(L), w)


def _processes(rng: Generator, shape: Shape, factor: Operand, w: Operand) -> Result:
    z = rng.standard_normal((*shape, np.shape(w)[-1], len(factor)))
    return z @ factor.T / np.sqrt(w)[..., None]


# --- linear dynamics ---


def _root(covariance: Operand) -> Result:
    """Compute a matrix square root of a covariance, which may be singular."""
    if np.ndim(covariance) == 1:
        return np.diag(np.sqrt(covariance))
    values, axes = np.linalg.eigh(covariance)
    return axes * np.sqrt(np.maximum(values, 0.0))


@random_numbers(
    gaussian_dlm_obs_lpdf,
    "Gaussian dynamic linear model",
    "rt",
    F="nr!",
    G="nn!",
    V="rr/r!",
    W="nn",
    m0="n",
    C0=("nn", semidefinite),
    T=("#", ScalarDomain(nonnegative), "Number of times"),
)
def gaussian_dlm_obs_rng(
    rng: Generator,
    shape: Shape,
    F: Operand,
    G: Operand,
    V: Operand,
    W: Operand,
    m0: Operand,
    C0: Operand,
    T: Operand,
) -> Result:
    """A state, of the mean `m0` and the covariance `C0` before the first time, moves on as
    :math:`\\theta_t = G \\theta_{t-1} + w_t` and is observed as :math:`y_t = F^T \\theta_t + v_t`,
    with the covariances W of w and V of v, which may be singular. Row i of a draw is the series of
    the i-th observable, R by T as in Stan.

    >>> import varmat as vm
    >>> walk = vm.gaussian_dlm_obs_rng([[1.0]], [[1.0]], [[0.0]], [[1.0]], [0.0], [[0.0]], 5, rng=1)
    >>> walk.shape
    (1, 5)
    """
    state = m0 + rng.standard_normal((*shape, len(G))) @ _root(C0).T
    moves = rng.standard_normal((int(T), *shape, len(G))) @ _root(W).T
    y = rng.standard_normal((int(T), *shape, F.shape[1])) @ _root(V).T
    for t, move in enumerate(moves):
        state = state @ G.T + move
        y[t] += state @ F
    return np.moveaxis(y, 0, -1)


# --- hidden states ---

below_infinity = Domain("below infinity", lambda x: x < math.inf)


@random_numbers(
    None,
    "hidden states of a Markov model, given the observations",
    "t",
    integer=True,
    log_omegas=("kt", below_infinity, "log_omegas"),
    Gamma=("kk", simplex, "Gamma"),
    rho=("k", simplex, "rho"),
)
def hmm_latent_rng(
    rng: Generator, shape: Shape, log_omegas: Operand, Gamma: Operand, rho: Operand
) -> Result:
    """The arguments are as for `hmm_marginal`. The probabilities of the states given the
    observations so far are filtered forwards; then the last state is drawn, and each one before it
    given the next. Numbers of states are 1, ..., K as in Stan.

    >>> import numpy as np, varmat as vm
    >>> log_omegas = np.log([[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]])
    >>> vm.hmm_latent_rng(log_omegas, [[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], rng=1)
    array([1, 1, 1])
    """
    states = np.empty((*shape, log_omegas.shape[-1]), np.int64)
    if states.shape[-1] and log_omegas.size:
        # For one chain this takes half the time of `logsumexp`.
        add = partial(np.logaddexp.reduce, axis=-2)
        logs, log_gamma = filtered("hmm_latent_rng", add, log_omegas, Gamma, rho)
        state = chosen(rng, shape, np.exp(logs.pop()))
        states[..., -1] = state
        for t, x in reversed([*enumerate(logs)]):
            # The probabilities of the states at this time, given the one at the next.
            before = x + into(log_gamma, state - 1)
            before = np.exp(before - np.max(before, axis=-1, keepdims=True))
            states[..., t] = state = chosen(rng, shape, before)
    return states
