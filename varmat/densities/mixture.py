"""Mixtures: the logarithm of a weighted sum of densities, from the logarithms of these."""

from __future__ import annotations

import numpy as np

from varmat.core.errors import ShapeError
from varmat.core.operation import Saved, operation
from varmat.densities.density import LARGEST_EXPONENT, not_nan, probability
from varmat.functions.arrays.exponentials import logsumexp
from varmat.programs.build.symbol import Symbol, holds, number
from varmat.typing import Adjoint, Operand, Result, scalar_or_array_valued

__all__ = ["log_mix"]


@scalar_or_array_valued
def log_mix(theta: Operand, *log_densities: Operand) -> Result:
    """Compute the log density of a mixture.

    ``log_mix(theta, lp1, lp2)`` is the mixture of two components, elementwise, and ``log_mix(theta,
    lps)`` that of any number, summed over the observations.

    Parameters
    ----------
    theta : array_like
        With two components: the probability of the first, in [0, 1]. Otherwise the probabilities of
        the components along the last axis, shape (k,) or (n, k), each in [0, 1].
    lp1, lp2 : array_like
        Log densities of the observations in each component; they broadcast with each other and with
        `theta`.
    lps : array_like, shape (k,) or (n, k)
        Log densities, a row for each observation and a column for each component.

    Returns
    -------
    float, ndarray, Var or VarMat
        With two components the log density of each observation, of the shape to which the arguments
        broadcast: sum them for a log likelihood. Otherwise their sum, a scalar.

    Raises
    ------
    DomainError
        If a probability is outside [0, 1] or a log density is nan.
    ShapeError
        If the arguments do not fit.

    Notes
    -----
    The derivatives with respect to the log densities are the responsibilities :math:`r_k =
    \\theta_k \\exp(l_k - l)`, with the log density :math:`l` of the mixture, and with respect to
    the probabilities :math:`\\exp(l_k - l)`: also where one is zero. An observation that is
    impossible in every component (log density -inf) has no gradient. That the probabilities sum to
    one is not checked, as in Stan.

    References
    ----------
    Stan Functions Reference, section "Composed functions"; Stan User's Guide, chapter "Finite
    mixtures".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.log_mix(0.25, np.array([0.0, -2.0]), np.array([-1.0, -1.0]))
    array([-0.64262598, -1.17201106])
    >>> vm.gradient(lambda lps: vm.log_mix([0.5, 0.5], lps), np.array([[0.0, 0.0], [1.0, -np.inf]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    if len(log_densities) == 2:
        return log_mix_of_two(theta, *log_densities)
    if len(log_densities) == 1:
        total = np.sum(log_mix_of_many(theta, *log_densities))
        return float(total) if isinstance(total, np.generic) else total
    raise TypeError(
        f"log_mix: {len(log_densities)} arguments follow theta, but there must be two, lp1 and "
        "lp2, or one array lps"
    )


def _check(theta: object, **log_densities: object) -> None:
    for name, x in log_densities.items():
        not_nan.check("log_mix", name, x)
    probability.check("log_mix", "theta", theta)


def _exponent(x: Operand, total: Operand) -> Result:
    """Compute ``x - total``, and -inf where both are -inf; a run of a program ends there."""
    if type(total) is Symbol:
        return x - total
    impossible = total == -np.inf
    return np.where(impossible, -np.inf, x - np.where(impossible, 0.0, total))


def _share(theta: Operand, exponent: Operand) -> Result:
    """Compute ``theta * exp(exponent)``; it and its derivative are zero where theta is, even if the
    exponential overflows.
    """
    return theta * np.exp(np.minimum(exponent, LARGEST_EXPONENT))


# With l = log(theta exp(a) + (1 - theta) exp(b)):
#     dl/dtheta = exp(a - l) - exp(b - l),  dl/da = theta exp(a - l).
@operation()
def log_mix_of_two(theta: Operand, lp1: Operand, lp2: Operand) -> Result:
    """Compute the mixture of two components, elementwise: see `log_mix`."""
    with np.errstate(all="ignore"):
        try:
            first, second = np.log(theta) + lp1, np.log1p(np.negative(theta)) + lp2
            d = first - second
        except ValueError:
            shapes = ", ".join(str(np.shape(x)) for x in (theta, lp1, lp2))
            raise ShapeError(
                f"log_mix: theta, lp1 and lp2 have the shapes {shapes}, but must have shapes that "
                "broadcast!"
            ) from None
        # This takes a third of the time of np.logaddexp, and the same exponential gives the shares
        # of the components.
        e = np.exp(-np.abs(d))
        result = np.maximum(first, second) + np.log1p(e)
        if holds(np.isfinite(result)):
            return Saved(result if np.ndim(result) else number(result), d=d, e=e)
        _check(theta, lp1=lp1, lp2=lp2)
        result = np.logaddexp(first, second)
        return Saved(result if np.ndim(result) else float(result), d=None, e=None)


def two_rates(r: Operand, theta: Operand, lp1: Operand, lp2: Operand) -> Result:
    first, second = _exponent(lp1, r), _exponent(lp2, r)
    return np.exp(first) - np.exp(second), _share(theta, first), _share(1.0 - theta, second)


@log_mix_of_two.reverse
def log_mix_of_two_reverse(
    g: Adjoint, r: Operand, theta: Operand, lp1: Operand, lp2: Operand, d: Operand, e: Operand
) -> Result:
    if d is None or not holds((theta > 0) & (theta < 1)):
        return tuple((lambda rate=rate: g * rate) for rate in two_rates(r, theta, lp1, lp2))
    larger = 1.0 / (1.0 + e)
    smaller, is_first = e * larger, d >= 0.0
    first, second = np.where(is_first, larger, smaller), np.where(is_first, smaller, larger)
    return (
        lambda: g * (first / theta - second / (1.0 - theta)),
        lambda: g * first,
        lambda: g * second,
    )


@log_mix_of_two.tangent
def log_mix_of_two_tangent(r: Operand, theta: Operand, lp1: Operand, lp2: Operand) -> Result:
    return tuple((lambda t, rate=rate: t * rate) for rate in two_rates(r, theta, lp1, lp2))


# l = log(sum_k theta_k exp(l_k)):  dl/dtheta_k = exp(l_k - l),  dl/dl_k = theta_k exp(l_k - l).
@operation()
def log_mix_of_many(theta: Operand, lps: Operand) -> Result:
    """Compute the mixture of any number of components for each observation; the last axis is kept,
    with length one.
    """
    shape, components = np.shape(lps), np.shape(theta)
    if len(shape) not in (1, 2) or components not in (shape, shape[-1:]):
        raise ShapeError(
            f"log_mix: theta has shape {components} and lps {shape}, but must be (k,) or (n, k), "
            "with a column for each component!"
        )
    _check(theta, lps=lps)
    with np.errstate(all="ignore"):
        return logsumexp(np.log(theta) + lps, axis=-1, keepdims=True)


@log_mix_of_many.reverse
def log_mix_of_many_reverse(g: Adjoint, r: Operand, theta: Operand, lps: Operand) -> Result:
    exponents = _exponent(lps, r)
    return (lambda: g * np.exp(exponents)), (lambda: g * _share(theta, exponents))


@log_mix_of_many.tangent
def log_mix_of_many_tangent(r: Operand, theta: Operand, lps: Operand) -> Result:
    exponents = _exponent(lps, r)
    return (
        (lambda t: np.sum(np.exp(exponents) * t, axis=-1, keepdims=True)),
        (lambda t: np.sum(_share(theta, exponents) * t, axis=-1, keepdims=True)),
    )
