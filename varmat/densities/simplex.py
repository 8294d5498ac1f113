"""Distributions on the simplex, and of counts with probabilities on it."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.domains import positive, positive_finite
from varmat.core.operation import Saved
from varmat.densities.density import KeptTerms, density, is_count, not_nan
from varmat.densities.domains import finite_vector, simplex, vectors_of
from varmat.functions.arrays.exponentials import log_softmax, softmax
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import check_values, misfit
from varmat.functions.special.gamma_functions import betaln, gammaln
from varmat.functions.special.zeta_functions import digamma, zeta_difference
from varmat.programs.build.symbol import Symbol, holds, number
from varmat.typing import Operand, Plain, Result

__all__ = [
    "dirichlet_lpdf",
    "dirichlet_multinomial_lpmf",
    "multinomial_logit_lpmf",
    "multinomial_lpmf",
]

TRIALS = ("Number of trials variable", not_nan)


def check_shapes(
    function: str, title: str, x: Operand, other_title: str, other: Plain
) -> tuple[int, ...]:
    """Check the lengths of last axes, and return the shape to which the arguments broadcast."""
    shape, other_shape = np.shape(x), np.shape(other)
    try:
        if shape and shape[-1:] == other_shape[-1:]:
            return np.broadcast_shapes(shape, other_shape)
    except ValueError:
        pass
    raise misfit(function, title, shape, f"match {other_title}, of shape {other_shape}")


def repeats(shape: tuple[int, ...], x: Operand) -> float:
    """Count how often each vector of a stack is used when the stack is broadcast to a shape."""
    return float(math.prod(shape[:-1]) / max(1, math.prod(x.shape[:-1])))


def log_products(n: Operand, theta: Operand) -> Result:
    """Compute ``n log(theta)``, and zero where n is zero."""
    if type(theta) is Symbol:
        return np.where(n == 0.0, 0.0, n * np.log(theta))
    n, theta = np.broadcast_arrays(n, theta)
    some = n != 0
    with np.errstate(divide="ignore"):
        return np.multiply(
            n, np.log(theta, out=np.zeros(n.shape), where=some), out=np.zeros(n.shape), where=some
        )


def ratios(n: Operand, theta: Operand) -> Result:
    """Compute ``n / theta``, and zero where n is zero; differentiable."""
    some = n != 0
    return np.where(some, n / np.where(some, theta, 1.0), 0.0)


@density(theta=("probabilities", not_nan), alpha=("prior sample sizes", positive))
def dirichlet_lpdf(theta: Operand, alpha: Operand, keep: KeptTerms) -> Result:
    """Compute the log density of the Dirichlet distribution, summed over the observations.

    Parameters
    ----------
    theta : array_like, shape (..., K)
        Random variable: one simplex, or one in each row; not nan.
    alpha : array_like, shape (..., K)
        Prior sample sizes: positive.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``dirichlet_lupdf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is not a simplex:
        an element is negative, or the sum is not one to 1e-8.

    Raises
    ------
    DomainError
        If an element of `alpha` is not positive, or one of `theta` is nan.
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    The log density is :math:`\\log\\Gamma(\\sum_k \\alpha_k) + \\sum_k [(\\alpha_k - 1)
    \\log\\theta_k - \\log\\Gamma(\\alpha_k)]`, where a term with :math:`\\alpha_k = 1` has no
    :math:`\\theta_k`. The derivatives, with the elements of theta free, are :math:`(\\alpha_k - 1)
    / \\theta_k` and :math:`\\log\\theta_k + \\psi(\\sum_j \\alpha_j) - \\psi(\\alpha_k)`. In SciPy
    ``scipy.stats.dirichlet(alpha)``.

    References
    ----------
    Stan Functions Reference, "Dirichlet distribution"; S. Kotz, N. Balakrishnan and N. L. Johnson,
    "Continuous Multivariate Distributions", volume 1, 2nd edition, Wiley 2000, chapter 49.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda theta: vm.dirichlet_lpdf(theta, [2.0, 3.0]), np.array([0.5, 0.5]))
    array([2., 4.])
    """
    shape = check_shapes("dirichlet_lpdf", "probabilities", theta, "prior sample sizes", alpha)
    if not holds(simplex.holds(theta)):
        return Saved(-math.inf, logs=None)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(theta)
        if alpha.ndim == 1:
            logs = add_reduce(logs.reshape(-1, len(alpha)), axis=0)
        products = (alpha - 1.0) * logs
        value = number(add_reduce(products, None))
        if type(value) is Symbol or value != value:  # zero times the logarithm of zero is nan
            value = number(add_reduce(np.where(alpha == 1.0, 0.0, products), None))
    if "alpha" in keep:
        constant = add_reduce(gammaln(add_reduce(alpha, axis=-1)), None) - add_reduce(
            gammaln(alpha), None
        )
        value += repeats(shape, alpha) * number(constant)
    return Saved(value, logs=logs)


dirichlet_lpdf.data_domain = lambda theta, alpha: simplex


@dirichlet_lpdf.gradient
def dirichlet_gradient(r: Operand, theta: Operand, alpha: Operand, logs: Operand = None) -> Result:
    if logs is None and not check_values(simplex.holds, theta):
        return None

    def of_alpha() -> Result:
        slopes = digamma(np.sum(alpha, axis=-1, keepdims=True)) - digamma(alpha)
        if logs is None:
            return np.log(theta) + slopes
        # The logarithms are already summed over observations that share alpha.
        return logs + (math.prod(theta.shape[:-1]) if alpha.ndim == 1 else 1) * slopes

    return lambda: ratios(alpha - 1.0, theta), of_alpha


@density("n", n=TRIALS, theta=("Probabilities parameter", simplex))
def multinomial_lpmf(n: Operand, theta: Operand, keep: KeptTerms) -> Result:
    """Compute the log mass of the multinomial distribution, summed over the observations.

    Parameters
    ----------
    n : array_like of int, shape (..., K)
        Counts of the categories: one observation, or one in each row; not nan. The number of trials
        is their sum.
    theta : array_like, shape (..., K)
        Probabilities parameter: a simplex, or one in each row.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``multinomial_lupmf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if a count is negative or
        no integer.

    Raises
    ------
    DomainError
        If `theta` is not a simplex, or an element of `n` is nan.
    ShapeError
        If the shapes do not fit.
    TypeError
        If `n` is a variable.

    Notes
    -----
    The log mass is :math:`\\log\\Gamma(1 + \\sum_k n_k) + \\sum_k [n_k \\log\\theta_k -
    \\log\\Gamma(1 + n_k)]` with the derivative :math:`n_k / \\theta_k`, as if the elements of theta
    were free; a term with :math:`n_k = 0` has no :math:`\\theta_k`. In SciPy
    ``scipy.stats.multinomial(sum(n), theta)``.

    References
    ----------
    Stan Functions Reference, "Multinomial distribution"; N. L. Johnson, S. Kotz and N.
    Balakrishnan, "Discrete Multivariate Distributions", Wiley 1997, chapter 35.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda theta: vm.multinomial_lpmf([3, 1], theta), np.array([0.5, 0.5]))
    array([6., 2.])
    """
    shape = check_shapes(
        "multinomial_lpmf", "Number of trials variable", n, "Probabilities parameter", theta
    )
    if not _are_counts(n):
        return -math.inf
    value = number(add_reduce(log_products(n, theta), None))
    return value + repeats(shape, n) * _log_arrangements(n) if "constants" in keep else value


def _log_arrangements(n: Operand) -> float:
    """Sum the logarithms of the multinomial coefficients."""
    return float(
        add_reduce(gammaln(add_reduce(n, axis=-1) + 1.0), None) - add_reduce(gammaln(n + 1.0), None)
    )


def _are_counts(n: object) -> bool:
    return bool(is_count(n).all())


@multinomial_lpmf.gradient
def multinomial_gradient(r: Operand, n: Operand, theta: Operand) -> Result:
    return (None, lambda: ratios(n, theta)) if _are_counts(plain(n)) else None


@density("n", n=TRIALS, gamma=("log-probabilities parameter", finite_vector))
def multinomial_logit_lpmf(n: Operand, gamma: Operand, keep: KeptTerms) -> Result:
    """Compute the log mass of the multinomial distribution with given log odds, summed over the
    observations.

    Parameters
    ----------
    n : array_like of int, shape (..., K)
        Counts of the categories: one observation, or one in each row; not nan. The number of trials
        is their sum.
    gamma : array_like, shape (..., K)
        Logarithms of the probabilities, up to a common constant: finite. One vector, or one in each
        row.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``multinomial_logit_lupmf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if a count is negative or
        no integer.

    Raises
    ------
    DomainError
        If an element of `gamma` is not finite, or one of `n` is nan.
    ShapeError
        If the shapes do not fit.
    TypeError
        If `n` is a variable.

    Notes
    -----
    `multinomial_lpmf` with theta the `softmax` of gamma, by its logarithm. The derivative is
    :math:`n_k - N \\theta_k` with the number of trials N. In SciPy
    ``scipy.stats.multinomial(sum(n), softmax(gamma))``.

    References
    ----------
    Stan Functions Reference, "Multinomial distribution, logit parameterization"; N. L. Johnson, S.
    Kotz and N. Balakrishnan, "Discrete Multivariate Distributions", Wiley 1997, chapter 35.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda gamma: vm.multinomial_logit_lpmf([3, 1], gamma), np.zeros(2))
    array([ 1., -1.])
    """
    shape = check_shapes(
        "multinomial_logit_lpmf", TRIALS[0], n, "log-probabilities parameter", gamma
    )
    if not _are_counts(n):
        return Saved(-math.inf, logs=None)
    logs = log_softmax(gamma, axis=-1)
    value = number(add_reduce(n * logs, None))
    return Saved(
        value + repeats(shape, n) * _log_arrangements(n) if "constants" in keep else value,
        logs=logs,
    )


@multinomial_logit_lpmf.gradient
def multinomial_logit_gradient(
    r: Operand, n: Operand, gamma: Operand, logs: Operand = None
) -> Result:
    if not _are_counts(plain(n)):
        return None

    def of_gamma() -> Result:
        p = softmax(gamma, axis=-1) if logs is None else np.exp(logs)
        return n - add_reduce(n, axis=-1, keepdims=True) * p

    return None, of_gamma


# With N the sum of the counts and A that of alpha:
#     log p = log(N B(A, N)) - sum(log(n B(alpha, n)) where n > 0).
# Written with gamma functions, the terms would cancel.
@density("n", n=TRIALS, alpha=("Prior size parameter", vectors_of(positive_finite)))
def dirichlet_multinomial_lpmf(n: Operand, alpha: Operand, keep: KeptTerms) -> Result:
    """Compute the log mass of the Dirichlet-multinomial distribution, summed over the observations.

    Parameters
    ----------
    n : array_like of int, shape (..., K)
        Counts of the categories: one observation, or one in each row; not nan. The number of trials
        is their sum.
    alpha : array_like, shape (..., K)
        Prior sample sizes: positive and finite. One vector, or one in each row.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``dirichlet_multinomial_lupmf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if a count is negative or
        no integer.

    Raises
    ------
    DomainError
        If an element of `alpha` is not positive and finite, or one of `n` is nan.
    ShapeError
        If the shapes do not fit.
    TypeError
        If `n` is a variable.

    Notes
    -----
    The counts are multinomial with probabilities that have a Dirichlet distribution. With :math:`N
    = \\sum_k n_k` and :math:`A = \\sum_k \\alpha_k` the log mass is :math:`\\log N B(A, N) -
    \\sum_{n_k > 0} \\log n_k B(\\alpha_k, n_k)`, with the derivative :math:`\\psi(\\alpha_k + n_k)
    - \\psi(\\alpha_k) - \\psi(A + N) + \\psi(A)`. In SciPy
    ``scipy.stats.dirichlet_multinomial(alpha, sum(n))``.

    References
    ----------
    Stan Functions Reference, "Dirichlet-multinomial distribution"; N. L. Johnson, S. Kotz and N.
    Balakrishnan, "Discrete Multivariate Distributions", Wiley 1997, chapter 35.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda alpha: vm.dirichlet_multinomial_lpmf([3, 0], alpha), np.ones(2))
    array([ 0.75      , -1.08333333])
    """
    shape = check_shapes("dirichlet_multinomial_lpmf", TRIALS[0], n, "Prior size parameter", alpha)
    if not _are_counts(n):
        return -math.inf
    total, sizes = add_reduce(n, axis=-1), add_reduce(alpha, axis=-1)
    value = number(
        add_reduce(_log_betas(sizes, total), None) - add_reduce(_log_betas(alpha, n), None)
    )
    if "constants" in keep:
        constant = add_reduce(np.log(np.maximum(total, 1.0)), None) - add_reduce(
            np.log(np.maximum(n, 1.0)), None
        )
        value += repeats(shape, n) * float(constant)
    return value


def _log_betas(alpha: Operand, n: Operand) -> Result:
    """Compute ``log(B(alpha, n))``, and zero where n is zero."""
    return np.where(n > 0, betaln(alpha, np.maximum(n, 1.0)), 0.0)


@dirichlet_multinomial_lpmf.gradient
def dirichlet_multinomial_gradient(r: Operand, n: Operand, alpha: Operand) -> Result:
    if not _are_counts(plain(n)):
        return None

    def of_alpha() -> Result:
        of_sums = zeta_difference(
            1.0, np.sum(alpha, axis=-1, keepdims=True), add_reduce(n, axis=-1, keepdims=True)
        )
        return zeta_difference(1.0, alpha, n) - of_sums

    return None, of_alpha
