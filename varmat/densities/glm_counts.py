"""Generalised linear models of counts: binomial and negative binomial."""

from __future__ import annotations

from varmat.core.domains import finite, nonnegative, positive_finite
from varmat.densities.bernoulli import binomial_logit_lpmf
from varmat.densities.counts import neg_binomial_2_log_lpmf
from varmat.densities.density import not_nan
from varmat.densities.glm import glm, titles
from varmat.densities.univariate import LogDensity, Univariate
from varmat.functions.special.gamma_functions import log_rising_factorial

__all__ = ["binomial_logit_glm_lpmf", "neg_binomial_2_log_glm_lpmf"]


@glm(
    binomial_logit_lpmf,
    "alpha",
    n=("Successes variable", not_nan),
    N=("Population size parameter", nonnegative),
    X=("Matrix of independent variables", finite),
    alpha=("Intercept", finite),
    beta=("Weight vector", finite),
)
def binomial_logit_glm_lpmf() -> None:
    """Compute the log mass of a binomial regression: ``binomial_logit_lpmf(n, N, alpha + X @
    beta)`` in one pass through `X`.

    Parameters
    ----------
    n : array_like of int, shape (n,), or scalar
        Successes variable: counts of at most `N`.
    N : array_like of int, shape (n,), or scalar
        Population size parameter: nonnegative.
    X : array_like, shape (n, m) or (m,)
        Matrix of independent variables, finite; a vector is one row for all observations.
    alpha : array_like, shape (n,), or scalar
        Intercept, or one for each observation, finite.
    beta : array_like, shape (m,)
        Weight vector, finite.
    propto : bool, keyword only
        Drop the terms that depend on data only.

    Returns
    -------
    float or Var
        The sum over the observations; zero without any, and -inf, with the gradient zero, if
        one of them is impossible.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for `n` only nan is.
    ShapeError
        If the arguments do not fit.
    TypeError
        If `n` or `N` is a variable.

    Notes
    -----
    With :math:`p = 1 / (1 + \\exp(-\\alpha - X \\beta))` and :math:`w = n (1 - p) - (N - n) p` the
    derivatives are :math:`w \\beta^T`, :math:`w` and :math:`X^T w`. Neither overflows nor cancels.

    References
    ----------
    Stan Functions Reference, "Binomial-logit generalized linear model (Logistic Regression)"; P.
    McCullagh and J. A. Nelder, "Generalized Linear Models", 2nd edition, Chapman & Hall 1989,
    chapter 4.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X, n, N = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0]), np.array([4, 2])
    >>> vm.gradient(lambda beta: vm.binomial_logit_glm_lpmf(n, N, X, 0.0, beta), np.zeros(2))
    array([-4., -6.])
    """


def _without_factorials(n: object, eta: object, phi: object, fast: bool) -> LogDensity:
    """Compute the negative binomial log mass, whose factorials are dropped with ``propto=True``."""
    result = neg_binomial_2_log_lpmf.form(n, eta, phi, fast)
    result.dropping = log_rising_factorial(phi, n), *result.dropping[1:]
    return result


_ROW = Univariate(
    neg_binomial_2_log_lpmf.name,
    _without_factorials,
    neg_binomial_2_log_lpmf.arguments,
    neg_binomial_2_log_lpmf.discrete,
    fast=neg_binomial_2_log_lpmf.fast,
)
_ROW.data_domain = neg_binomial_2_log_lpmf.data_domain


@glm(_ROW, "eta", **titles(not_nan, phi=("Precision parameter", positive_finite)))
def neg_binomial_2_log_glm_lpmf() -> None:
    """Compute the log mass of a negative binomial regression: ``neg_binomial_2_log_lpmf(y, alpha +
    X @ beta, phi)`` in one pass through `X`.

    Parameters
    ----------
    y : array_like of int, shape (n,), or scalar
        Vector of dependent variables: counts.
    X : array_like, shape (n, m) or (m,)
        Matrix of independent variables, finite; a vector is one row for all observations.
    alpha : array_like, shape (n,), or scalar
        Intercept, or one for each observation, finite.
    beta : array_like, shape (m,)
        Weight vector, finite.
    phi : array_like, shape (n,), or scalar
        Precision, or one for each observation, positive and finite.
    propto : bool, keyword only
        Drop the terms that depend on data only.

    Returns
    -------
    float or Var
        The sum over the observations; zero without any, and -inf, with the gradient zero, if
        one of them is not a count.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for `y` only nan is.
    ShapeError
        If the arguments do not fit.
    TypeError
        If `y` is a variable.

    Notes
    -----
    With :math:`p = \\mu / (\\mu + \\phi)`, :math:`\\mu = \\exp(\\alpha + X \\beta)` and :math:`w =
    y (1 - p) - \\phi p` the derivatives are :math:`w \\beta^T`, :math:`w`, :math:`X^T w`, and
    :math:`\\psi(\\phi + y) - \\psi(\\phi) + p + \\log(1 - p) - y (1 - p) / \\phi` with respect to
    the precision.

    References
    ----------
    Stan Functions Reference, "Negative-binomial-2-log generalized linear model (negative binomial
    regression)"; A. C. Cameron and P. K. Trivedi, "Regression Analysis of Count Data", 2nd edition,
    Cambridge University Press 2013, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([3, 0])
    >>> vm.gradient(lambda beta: vm.neg_binomial_2_log_glm_lpmf(y, X, 0.0, beta, 1.0), np.zeros(2))
    array([-0.5,  0. ])
    """
