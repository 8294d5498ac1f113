"""Distributions of one category out of K, by probabilities or by log odds.

Observations that share their parameters are counted first: value and derivatives need only the
counts."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import Domain
from varmat.core.operation import Saved
from varmat.densities.density import KeptTerms, density, integer_to, not_nan
from varmat.densities.domains import broadcast, simplex, vectors_of
from varmat.densities.simplex import log_products, ratios
from varmat.functions.arrays.exponentials import log_softmax, softmax
from varmat.functions.arrays.reductions import add_reduce
from varmat.programs.build.symbol import Symbol, is_symbol, number, refuse, require, spread_back
from varmat.typing import Operand, Result

__all__ = ["categorical_logit_lpmf", "categorical_lpmf"]


def categories(n: Operand, k: int) -> Result:
    """Convert the categories 1, ..., k to 0, ..., k - 1; return None if an element is not a
    category.
    """
    n = np.asarray(n)
    with np.errstate(invalid="ignore"):
        numbers = n.astype(np.intp)
    inside = not n.size or (numbers.min() >= 1 and numbers.max() <= k and (numbers == n).all())
    return numbers - 1 if inside else None


def rows_of(shape: tuple[int, ...]) -> Result:
    """Return the offsets of the vectors of a stack of this shape in its flattened array."""
    return np.arange(0, math.prod(shape), shape[-1] or 1).reshape(shape[:-1])


def tally(function: str, title: str, n: Operand, shape: tuple[int, ...]) -> Result:
    """Count how often each category is observed with each vector of parameters, in their shape.

    Return None if an observation is not a category. In a recorded loop, the only observation of an
    iteration may be a symbol."""
    if isinstance(n, Symbol):
        is_it = np.equal(n, np.arange(1.0, shape[-1] + 1.0))
        require(np.sum(is_it) == 1.0)
        return np.where(is_it, 1.0, 0.0)
    broadcast(function, shape[:-1], (title, n))
    which = categories(n, shape[-1])
    return None if which is None else count(rows_of(shape) + which, shape)


def count(indices: Operand, shape: tuple[int, ...]) -> Result:
    """Count how often each index of a flattened array occurs, in the shape of the array."""
    return (
        np.bincount(indices.ravel(), minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    )


@density("n", n=("Number of categories", not_nan), theta=("Probabilities parameter", simplex))
def categorical_lpmf(n: Operand, theta: Operand, keep: KeptTerms) -> Result:
    """Compute the log mass of the categorical distribution, summed over the observations.

    Parameters
    ----------
    n : int or array_like of int
        The categories, from 1 to K as in Stan; not nan.
    theta : array_like, shape (..., K)
        Probabilities parameter: a simplex, or one for each observation; the axes before the last
        broadcast with `n`.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``categorical_lupmf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is not among 1,
        ..., K.

    Raises
    ------
    DomainError
        If `theta` is not a simplex, or `n` is nan.
    ShapeError
        If the shapes do not fit.
    TypeError
        If `n` is a variable.

    Notes
    -----
    The log mass is :math:`\\log\\theta_n`. The derivative, with the elements of theta free, is
    :math:`1 / \\theta_k` for the observed category and zero for others. In SciPy
    ``scipy.stats.multinomial(1, theta)`` of one-hot vectors.

    References
    ----------
    Stan Functions Reference, "Categorical distribution"; P. McCullagh and J. A. Nelder,
    "Generalized Linear Models", 2nd edition, Chapman & Hall 1989, chapter 5.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> theta = np.array([0.5, 0.25, 0.25])
    >>> vm.gradient(lambda theta: vm.categorical_lpmf([1, 3, 3], theta), theta)
    array([2., 0., 8.])
    """
    counts = tally("categorical_lpmf", "Number of categories", n, theta.shape)
    if is_symbol(counts):
        return Saved(np.log(np.vdot(counts, theta)), counts=counts)
    if is_symbol(theta):  # of the categories that are observed
        indices = refuse() if counts is None else np.flatnonzero(counts)
        logs = np.log(np.reshape(theta, (-1,))[indices])
        return Saved(np.sum(counts.ravel()[indices] * logs), counts=counts)
    value = -math.inf if counts is None else float(add_reduce(log_products(counts, theta), None))
    return Saved(value, counts=counts)


categorical_lpmf.data_domain = lambda n, theta: integer_to(theta.shape[-1])


@categorical_lpmf.gradient
def categorical_gradient(r: Operand, n: Operand, theta: Operand, counts: Operand) -> Result:
    if counts is None:
        return None
    if is_symbol(counts):
        return None, lambda: counts / np.vdot(counts, theta)
    if is_symbol(theta):
        indices, shape = np.flatnonzero(counts), np.shape(theta)
        some = counts.ravel()[indices] / np.reshape(theta, (-1,))[indices]
        return None, lambda: spread_back(some, indices, shape)
    return None, lambda: ratios(counts, theta)


# Impossible categories may have odds of zero.
_log_odds = Domain("finite", lambda x: x < math.inf)


@density(
    "n",
    n=("categorical outcome out of support", not_nan),
    beta=("log odds parameter", vectors_of(_log_odds)),
)
def categorical_logit_lpmf(n: Operand, beta: Operand, keep: KeptTerms) -> Result:
    """Compute the log mass of the categorical distribution with given log odds, summed over the
    observations.

    Parameters
    ----------
    n : int or array_like of int
        The categories, from 1 to K as in Stan; not nan.
    beta : array_like, shape (..., K)
        Log odds parameter: finite, up to a common constant, or -inf for categories that are
        impossible, whose derivative is zero; the axes before the last broadcast with `n`.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``categorical_logit_lupmf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is not among 1,
        ..., K.

    Raises
    ------
    DomainError
        If an element of `beta` is inf or nan, or `n` is nan.
    ShapeError
        If the shapes do not fit.
    TypeError
        If `n` is a variable.

    Notes
    -----
    The log mass is :math:`\\beta_n - \\log\\sum_k e^{\\beta_k}`. With p the `softmax` of beta the
    derivative is :math:`[k = n] - p_k`. In SciPy ``scipy.stats.multinomial(1, softmax(beta))`` of
    one-hot vectors.

    References
    ----------
    Stan Functions Reference, "Categorical distribution"; P. McCullagh and J. A. Nelder,
    "Generalized Linear Models", 2nd edition, Chapman & Hall 1989, chapter 5.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda beta: vm.categorical_logit_lpmf([1, 1, 2], beta), np.zeros(2))
    array([ 0.5, -0.5])
    """
    counts = tally("categorical_logit_lpmf", "categorical outcome out of support", n, beta.shape)
    if counts is None:
        return Saved(-math.inf, counts=None, logs=None)
    logs = log_softmax(beta, axis=-1)
    value = number(np.vdot(counts, logs))
    if is_symbol(value) or value != value:  # a category that is not observed may be impossible
        value = number(np.vdot(counts, np.where(counts > 0.0, logs, 0.0)))
    return Saved(value, counts=counts, logs=logs)


categorical_logit_lpmf.data_domain = lambda n, beta: integer_to(beta.shape[-1])


@categorical_logit_lpmf.gradient
def categorical_logit_gradient(
    r: Operand, n: Operand, beta: Operand, counts: Operand, logs: Operand = None
) -> Result:
    if counts is None:
        return None

    def of_beta() -> Result:
        times = add_reduce(counts, axis=-1, keepdims=True)
        if logs is None:
            return counts - times * softmax(beta, axis=-1)
        c = np.exp(logs)
        c *= -times
        c += counts
        return c

    return None, of_beta
