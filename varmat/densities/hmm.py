"""Hidden Markov models: the marginal likelihood of a chain, and the probabilities of its states.

A step of the filter is a handful of NumPy calls on a vector of a few states, and most of its time
is overhead. So the matrices of the steps, transitions times emissions, are multiplied in pairs of
neighbours, level by level up a tree, until a short chain is left at the root. Its forward and
backward probabilities then go down the tree as vectors. Matrices and vectors are scaled before they
can underflow.

The tree takes memory, and many operations if there are many states. Chains that are too large for
it, or that underflow in it, are filtered time by time, with scaling at every time. A long chain of
few states is cut into pieces of equal length, which take their steps together: first from every
state, which gives a transition matrix for each piece, and then forward and backward from the
probabilities at the ends of the pieces. The times left over, or all times of a chain that is not
cut, are a single piece. If the filter underflows too, it is run on logarithms."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.operation import Saved, as_operand, is_differentiable, operation
from varmat.densities.density import possible
from varmat.densities.domains import check_simplex
from varmat.densities.hmm_filter import (
    CONNECTED,
    FLOAT_STATES,
    TINY,
    differentiable_posterior,
    log_marginal,
    posterior_gradient,
)
from varmat.functions.checks import TOLERANCE, is_held, misfit, one
from varmat.programs.build.loops import loop
from varmat.programs.build.symbol import is_symbol, refuse, require
from varmat.typing import Adjoint, Function, Operand, Result, array_valued, scalar_valued

__all__ = ["hmm_hidden_state_prob", "hmm_marginal"]

_NAMES = ("log_omegas", "Gamma", "rho")


def _check(function: str, log_omegas: Operand, gamma: Operand, rho: Operand) -> None:
    states = np.shape(log_omegas)[0] if np.ndim(log_omegas) == 2 else 0
    for name, x, shape, rule in (
        (
            "log_omegas",
            log_omegas,
            np.shape(log_omegas) if states else None,
            "a matrix, at least one state by times",
        ),
        ("Gamma", gamma, (states, states), f"of shape {(states, states)}"),
        ("rho", rho, (states,), f"of shape {(states,)}"),
    ):
        if np.shape(x) != shape:
            raise misfit(function, name, np.shape(x), f"be {rule}")
    # A few numbers are checked faster as floats.
    if states <= FLOAT_STATES and all(
        min(row) >= 0.0 and one.holds(sum(row)) for row in (rho.tolist(), *gamma.tolist())
    ):
        return
    check_simplex(function, rho, "rho")
    check_simplex(function, gamma, "Gamma")


@operation()
@scalar_valued
def hmm_marginal(
    log_omegas: Operand, Gamma: Operand, rho: Operand, workspace: Function = np.empty
) -> Result:
    """Compute the log likelihood of a hidden Markov model, summed over the hidden states.

    Parameters
    ----------
    log_omegas : array_like, shape (states, times)
        Log density of the observation at each time, given each state; -inf where it is impossible.
    Gamma : array_like, shape (states, states)
        Transition matrix: a row for each state, nonnegative with the sum 1.
    rho : array_like, shape (states,)
        Probabilities of the states at the first time, nonnegative with the sum 1.

    Returns
    -------
    float or Var
        Zero for a chain without times; -inf, with the gradient zero, if no path of states is
        possible.

    Raises
    ------
    DomainError
        If a row of `Gamma`, or `rho`, is not a vector of probabilities.
    ShapeError
        If the arguments do not fit.

    Notes
    -----
    The derivative with respect to `log_omegas` is the matrix of the posterior probabilities of the
    states (see `hmm_hidden_state_prob`). The derivatives with respect to `Gamma` and `rho` treat
    their elements as free. One backward pass over the chain computes all of them.

    References
    ----------
    Stan Functions Reference, "Hidden Markov Models"; L. R. Rabiner, "A tutorial on hidden Markov
    models and selected applications in speech recognition", Proceedings of the IEEE 77 (1989),
    257-286.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> log_omegas = np.log([[0.5, 0.2, 0.1], [0.1, 0.4, 0.8]])
    >>> Gamma, rho = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.5, 0.5])
    >>> round(vm.hmm_marginal(log_omegas, Gamma, rho), 12)
    -3.802272141469
    """
    if any(map(is_symbol, (log_omegas, Gamma, rho))):
        return _scaled(log_omegas, Gamma, rho)
    _check("hmm_marginal", log_omegas, Gamma, rho)
    value, filtered = log_marginal(log_omegas, Gamma, rho, workspace)
    return Saved(value, filtered=filtered)


@hmm_marginal.reverse
def hmm_marginal_reverse(
    g: Adjoint, r: Operand, log_omegas: Operand, gamma: Operand, rho: Operand, filtered: Operand
) -> Result:
    if type(filtered) is tuple:  # of a program
        return tuple((lambda part=part: g * part()) for part in filtered)
    parts = posterior_gradient(r, log_omegas, gamma, rho, filtered)
    return tuple((lambda part=part: part if g == 1.0 else g * part) for part in parts)


def _scaled(log_omegas: Operand, Gamma: Operand, rho: Operand) -> Saved:
    """Compute the log marginal in a program, and its gradient: by a filter and a smoother, scaled
    at every time. Emissions are scaled to a largest one of 1. The run ends if a path of states that
    may matter is lost to underflow, or if no path is possible.
    """
    if not np.size(log_omegas):
        refuse()
    for rows in (Gamma, rho):
        require((rows >= 0.0) & (np.abs(np.sum(rows, axis=-1, keepdims=True) - 1.0) <= TOLERANCE))
    peaks, times = np.max(log_omegas, axis=0), np.shape(log_omegas)[1]
    emissions = np.exp(log_omegas - peaks).T
    _, before, scales = loop(_forward, times, [rho], [emissions], [Gamma])
    ones = np.ones(np.shape(rho))
    _, later = loop(_backward, times, [ones], [emissions, scales], [Gamma], backwards=True)
    value, scales = np.sum(np.log(scales)), scales[:, None]
    require(np.isfinite(value))
    # Numbers that are at least this large do not underflow in the next product.
    floor = TINY / np.min(np.where(Gamma > 0.0, Gamma, 1.0))
    for x in (before, later):
        is_kept = (np.minimum(x, 1.0) * emissions >= floor) & (x < np.inf)
        require(is_kept | (x == 0.0) | np.isinf(log_omegas.T) | (np.min(Gamma) >= CONNECTED))
    filtered, weighted = before * emissions / scales, later * emissions / scales
    gradient = (
        lambda: (filtered * later).T,
        lambda: filtered[:-1].T @ weighted[1:],
        lambda: weighted[0],
    )
    return Saved(value + np.sum(peaks), filtered=gradient)


def _forward(before: Operand, emissions: Operand, gamma: Operand) -> tuple[Result, Result]:
    joint = before * emissions
    scale = np.sum(joint)
    return [joint / scale @ gamma], [before, scale]


def _backward(
    later: Operand, emissions: Operand, scale: Operand, gamma: Operand
) -> tuple[Result, Result]:
    return [gamma @ (emissions * later / scale)], [later]


@hmm_marginal.tangent
def hmm_marginal_tangent(r: Operand, log_omegas: Operand, gamma: Operand, rho: Operand) -> Result:
    if not is_held(possible, r):
        return (lambda t: 0.0,) * 3
    parts = differentiable_posterior(log_omegas, gamma, rho)
    return tuple((lambda t, part=part: np.sum(part * t)) for part in parts)


@array_valued
def hmm_hidden_state_prob(log_omegas: Operand, Gamma: Operand, rho: Operand) -> Result:
    """Compute posterior probabilities of the states of a hidden Markov model at each time, given
    all observations.

    Parameters
    ----------
    log_omegas, Gamma, rho : array_like
        As in `hmm_marginal`.

    Returns
    -------
    ndarray or VarMat, shape (states, times)
        The columns sum to one; they are zero if no path of states is possible.

    Raises
    ------
    DomainError
        If a row of `Gamma`, or `rho`, is not a vector of probabilities.
    ShapeError
        If the arguments do not fit.

    Notes
    -----
    It is the gradient of `hmm_marginal` with respect to `log_omegas`. With variables it is composed
    of differentiable functions, time by time.

    References
    ----------
    Stan Functions Reference, "Hidden Markov Models"; L. R. Rabiner, "A tutorial on hidden Markov
    models and selected applications in speech recognition", Proceedings of the IEEE 77 (1989),
    257-286.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> log_omegas = np.log([[0.5, 0.2, 0.1], [0.1, 0.4, 0.8]])
    >>> Gamma, rho = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.5, 0.5])
    >>> np.round(vm.hmm_hidden_state_prob(log_omegas, Gamma, rho), 3)
    array([[0.607, 0.366, 0.226],
           [0.393, 0.634, 0.774]])
    """
    operands = [
        as_operand(x, f"hmm_hidden_state_prob: {name}")
        for name, x in zip(_NAMES, (log_omegas, Gamma, rho), strict=True)
    ]
    values = [*map(plain, operands)]
    _check("hmm_hidden_state_prob", *values)
    if any(map(is_differentiable, operands)) and log_marginal(*values)[0] == -math.inf:
        return np.zeros(np.shape(values[0]))
    return differentiable_posterior(*operands)[0]
