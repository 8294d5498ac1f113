"""Generalised linear models of counts: binomial and negative binomial, in one pass through the
matrix of independent variables.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, NamedTuple

import numpy as np

from varmat.core.domains import finite, nonnegative, positive_finite
from varmat.densities.density import Domains, KeptTerms, is_count, not_nan, positional, typed
from varmat.densities.glm import Glm, glm, titles
from varmat.densities.row_pass import Pass, PassSums, part
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.special.gamma_functions import lchoose
from varmat.functions.special.logistic_functions import expit
from varmat.functions.special.precision_scores import (
    digamma_less_line,
    log1m_less_line,
    neg_binomial_2_log_mean_score,
    neg_binomial_2_log_score,
)
from varmat.programs.kernels.counts import (
    digamma_less_lines,
    log_binomials,
    log_factorials,
    log_rising_factorials,
    tally,
)
from varmat.typing import Operand, Plain, Propto, Result, Setting

__all__ = ["binomial_logit_glm_lpmf", "neg_binomial_2_log_glm_lpmf"]


def dotted(c: Operand, x: Operand) -> float:
    """The sum of the products with a number, or with a vector."""
    return c * float(add_reduce(x)) if type(c) is float else float(c.dot(x))


class Odds(NamedTuple):
    """Of all observations: the probability p, and minus the logarithms of p and of its complement
    q, without cancellation.
    """

    p: Plain
    minus_log_p: Plain
    minus_log_q: Plain


# With the odds E = exp(t) the weights are a q - b p = (a - b E) / (1 + E), which takes the fewest
# passes over a block. All else is made of the odds of all observations at once. If they overflow or
# underflow somewhere, exp(-abs(t)) does not.
def weigh_odds(one_pass: Pass, shift: Operand, wins: Operand, losses: Operand) -> Odds:
    """Make the pass with the weights ``a q - b p`` of numbers a of wins and b of losses, and of the
    log odds with an intercept.
    """
    odds, space = np.empty(one_pass.size), np.empty(one_pass.rows)
    is_shifted = shift.__class__ is not float or shift != 0.0

    def weigh(t: Operand, here: slice) -> None:
        if is_shifted:
            t += part(shift, here)
        e, other = odds[here], space[: len(t)]
        np.exp(t, e)
        np.add(e, 1.0, other)
        np.multiply(part(losses, here), e, t)
        np.subtract(part(wins, here), t, t)
        t /= other

    one_pass.run(weigh)
    if odds.min() > 1e-300 and odds.max() < 1e300:
        return Odds(odds / (1.0 + odds), np.log1p(1.0 / odds), np.log1p(odds))
    return _weigh_far_odds(one_pass, shift, wins, losses)


def _weigh_far_odds(one_pass: Pass, shift: Operand, wins: Operand, losses: Operand) -> Odds:
    found = Odds(*np.empty((3, one_pass.size)))

    def weigh(t: Operand, here: slice) -> None:
        t += part(shift, here)
        e, above = np.exp(-np.abs(t)), t > 0.0
        p, q, m = np.maximum(above, e) / (1.0 + e), np.maximum(~above, e) / (1.0 + e), np.log1p(e)
        found.p[here] = p
        found.minus_log_p[here] = np.maximum(-t, 0.0) + m
        found.minus_log_q[here] = np.maximum(t, 0.0) + m
        t[...] = part(wins, here) * q - part(losses, here) * p

    one_pass.run(weigh)
    return found


class Trials(Glm):
    """A density that is called with the numbers of trials after those of successes: (n, N, X,
    alpha, beta).
    """

    def __init__(
        self,
        family: Setting,
        arguments: Domains,
        support: Operand,
        partials: Operand,
        discrete: Operand,
    ) -> None:
        super().__init__(family, arguments, support, partials, ("n", "N"))
        n, x, alpha, beta, trials = self.names
        self.takes(positional([n, trials, x, alpha, beta]))
        # In messages about what is missing.
        operation = self.operation
        operation.__signature__, operation.signature = map(
            self._in_order, (operation.__signature__, operation.signature)
        )

    def _in_order(self, signature: inspect.Signature) -> inspect.Signature:
        return signature.replace(
            parameters=[*self.parameters, *[*signature.parameters.values()][5:]]
        )

    @typed
    def __call__(self, *args: Operand, propto: Propto = False, **named: Operand) -> Result:
        if named and len(args) + len(named) == 5:
            args, named = self.__signature__.bind(*args, **named).args, {}
        if len(args) != 5:
            return super().__call__(*args, propto=propto, **named)
        n, trials, x, alpha, beta = args
        return super().__call__(n, x, alpha, beta, trials, propto=propto, **named)


def binomial_partials(n: Operand, eta: Operand, trials: Operand) -> dict[str, Result]:
    return {"eta": n * expit(-eta) - (trials - n) * expit(eta)}


def _are_successes(n: Operand, trials: Operand) -> Result:
    return np.all((n <= trials) & is_count(n))


# With p = 1 / (1 + exp(-eta)) and q = 1 - p:
# log p(n) = log(N choose n) + n log(p) + (N - n) log(q),
# d/deta = n q - (N - n) p.
@glm(
    binomial_partials,
    _are_successes,
    Trials,
    n=("Successes variable", not_nan),
    X=("Matrix of independent variables", finite),
    alpha=("Intercept", finite),
    beta=("Weight vector", finite),
    N=("Population size parameter", nonnegative),
)
def binomial_logit_glm_lpmf(
    one_pass: Pass, n: Operand, alpha: Operand, trials: Operand, keep: KeptTerms
) -> PassSums:
    """Log mass of a binomial regression: ``binomial_logit_lpmf(n, N, alpha + X @ beta)`` in one
    pass through `X`.

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
        The sum over the observations; zero if there are none, and -inf, with the gradient zero, if
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
    rest = trials - n
    odds = weigh_odds(one_pass, alpha, n, rest)
    value = -dotted(n, odds.minus_log_p) - dotted(rest, odds.minus_log_q)
    if "constants" in keep:
        single = type(n) is type(trials) is float
        value += (
            one_pass.size * float(lchoose(trials, n)) if single else float(_log_choices(trials, n))
        )
    return PassSums(value, one_pass.weights, one_pass.product)


def _log_choices(trials: Operand, n: Operand) -> Result:
    return log_binomials(*np.broadcast_arrays(trials, n))


def neg_binomial_partials(y: Operand, eta: Operand, phi: Operand) -> dict[str, Any]:
    return {
        "eta": neg_binomial_2_log_mean_score(y, eta, phi),
        "phi": neg_binomial_2_log_score(y, eta, phi),
    }


# With t = eta - log(phi), p = 1 / (1 + exp(-t)) and q = 1 - p:
# log p(y) = log(gamma(phi + y) / (gamma(phi) y!)) + y log(p) + phi log(q),
# d/deta = y q - phi p,
# d/dphi = (digamma(phi + y) - digamma(phi) - y / phi) + (p + log(q)) + y p / phi, see
# `varmat.functions.special.precision_scores`.
@glm(
    neg_binomial_partials,
    lambda y, phi: np.all(is_count(y)),
    **titles(not_nan, phi=("Precision parameter", positive_finite)),
)
def neg_binomial_2_log_glm_lpmf(
    one_pass: Pass, y: Operand, alpha: Operand, phi: Operand, keep: KeptTerms
) -> PassSums:
    """Log mass of a negative binomial regression: ``neg_binomial_2_log_lpmf(y, alpha + X @ beta,
    phi)`` in one pass through `X`.

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
        The sum over the observations; zero if there are none, and -inf, with the gradient zero, if
        one of them is no count.

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
    several = type(phi) is not float
    log_phi = np.log(phi) if several else math.log(phi)
    odds = weigh_odds(one_pass, alpha - log_phi, y, phi)
    value = -dotted(y, odds.minus_log_p) - dotted(phi, odds.minus_log_q)
    # Where nothing but the precision is variable, the term y eta is dropped.
    if not keep & {"X", "alpha", "beta"}:
        value -= dotted(y, odds.minus_log_q - odds.minus_log_p + log_phi)
    n = one_pass.size
    pair = (phi, y) if several or type(y) is not float else (np.full(1, phi), np.full(1, y))
    times = n if pair[0] is not phi else 1
    shared, counts = _of_one_shape(*pair)
    tallied = tally(counts) if "phi" in keep and not several else None
    if "phi" in keep:
        value += times * float(log_rising_factorials(shared, counts, tallied))
    if "constants" in keep:
        value -= n * math.lgamma(y + 1.0) if type(y) is float else float(log_factorials(y))

    def slope(w: Operand) -> Result:
        each = log1m_less_line.ufunc(odds.p, odds.minus_log_q, phi)
        if several:
            return each + y * odds.p / phi + digamma_less_line.ufunc(phi, y)
        counted = float(digamma_less_lines(shared, counts, tallied))
        return float(add_reduce(each)) + dotted(y, odds.p) / phi + times * counted

    return PassSums(value, one_pass.weights, one_pass.product, 1.0, {"phi": slope})


def _of_one_shape(phi: Operand, y: Operand) -> Result:
    """A number stays one where the other is a vector of counts: then equal counts are taken
    together.
    """
    return (phi, y) if np.ndim(phi) == 0 else np.broadcast_arrays(phi, y)
