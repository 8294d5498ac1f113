"""Hidden Markov models: the marginal likelihood of a chain, and the probabilities of its states.

A step of the filter is a handful of NumPy calls on a vector of a few states, most of it overhead.
So the matrices of the steps, transitions times emissions, are multiplied with their neighbours, all
pairs together, up a tree; what is left near its root is a short chain. Its probabilities, forward
and backward, go down the tree again, as vectors. Matrices and vectors are scaled before they can
underflow.

The tree takes memory, and many operations where there are many states, and it scales whole
matrices. For chains that are too large for it, and for those in which something underflows, there
is the filter, scaled at every time. A long chain of few states is cut into pieces of equal length,
which take their steps together: once from every state, which gives a transition matrix for each
piece, then, with the probabilities at the ends known, forward and backward. Pieces are joined one
after the other. The rest of a chain, or all of it, is a single piece. If something underflows here
as well, there are logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.errors import ShapeError
from varmat.core.operation import Saved, as_operand, is_differentiable, operation
from varmat.densities.density import possible
from varmat.densities.domains import check_simplex
from varmat.densities.hmm_filter import SMALL, _marginal, _posterior, _posterior_of_anything
from varmat.functions.checks import TOLERANCE, is_held, one
from varmat.programs.kernels import Kernel
from varmat.programs.program import FLOAT, Value
from varmat.programs.symbols import called, refuse, require

__all__ = ["hmm_hidden_state_prob", "hmm_marginal"]

_NAMES = ("log_omegas", "Gamma", "rho")


def _check(function: str, log_omegas: Any, gamma: Any, rho: Any) -> None:
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
            raise ShapeError(f"{function}: {name} has shape {np.shape(x)}, but must be {rule}!")
    # Floats are quicker where they are few.
    if states <= SMALL and all(
        min(row) >= 0.0 and one.holds(sum(row)) for row in (rho.tolist(), *gamma.tolist())
    ):
        return
    check_simplex(function, rho, "rho")
    check_simplex(function, gamma, "Gamma")


@operation()
def hmm_marginal(log_omegas: Any, Gamma: Any, rho: Any, workspace: Any = np.empty) -> Any:  # noqa: N803 (the name in Stan)
    """Log likelihood of a hidden Markov model, summed over the hidden states.

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
    states, see `hmm_hidden_state_prob`; those with respect to `Gamma` and `rho` are as if their
    elements were free. They come from one pass backward, made in the reverse pass.

    References
    ----------
    Stan Functions Reference, section "Hidden Markov models with discrete latent variables"; L. R.
    Rabiner, "A tutorial on hidden Markov models", Proceedings of the IEEE 77 (1989).

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> log_omegas = np.log([[0.5, 0.2, 0.1], [0.1, 0.4, 0.8]])
    >>> Gamma, rho = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0.5, 0.5])
    >>> round(vm.hmm_marginal(log_omegas, Gamma, rho), 12)
    -3.802272141469
    """
    _check("hmm_marginal", log_omegas, Gamma, rho)
    value, filtered = _marginal(log_omegas, Gamma, rho, workspace)
    return Saved(value, filtered=filtered)


@hmm_marginal.reverse
def hmm_marginal_reverse(
    g: Any, r: Any, log_omegas: Any, gamma: Any, rho: Any, filtered: Any
) -> Any:
    parts = _posterior(r, log_omegas, gamma, rho, filtered)
    return tuple((lambda part=part: part if g == 1.0 else g * part) for part in parts)


class Chain(Kernel):
    """Of a chain of emissions, a row for each time: the log marginal, posterior probabilities, and
    slopes in `Gamma` and `rho`.
    """

    name = "hmm_chain"

    def results(self, *operands: Value) -> list[tuple[Any, Any]]:
        emissions, gamma, rho = (v.shape for v in operands)
        # The last two are where it works.
        shapes = ((), emissions, gamma, rho, emissions[:1], (2, *rho))
        return [(shape, FLOAT) for shape in shapes]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        emissions, gamma, rho = map(np.array, operands)
        with np.errstate(all="ignore"):
            log_omegas = np.log(emissions.T)
        value, filtered = _marginal(log_omegas, gamma, rho)
        posterior, in_gamma, in_rho = _posterior(value, log_omegas, gamma, rho, filtered)
        return (
            value,
            posterior.T,
            in_gamma,
            in_rho,
            np.zeros(len(emissions)),
            np.zeros((2, len(rho))),
        )

    def rows(self, table: Any, operands: Any, results: Any) -> None:
        times, states = operands[0].shape
        table.call(table.own("chain"), [*operands, *results], (times, states), ())


CHAIN = Chain()


# Emissions are scaled to a largest one of 1 at each time; where a probability underflows all the
# same the run ends.
@hmm_marginal.straight
def hmm_marginal_straight(log_omegas: Any, Gamma: Any, rho: Any) -> Any:  # noqa: N803
    if not np.size(log_omegas):
        refuse()
    for rows in (Gamma, rho):
        require((rows >= 0.0) & (np.abs(np.sum(rows, axis=-1, keepdims=True) - 1.0) <= TOLERANCE))
    peaks = np.max(log_omegas, axis=0)
    emissions = np.exp(log_omegas - peaks).T
    value, posterior, in_gamma, in_rho, *_ = called(CHAIN, emissions, Gamma, rho)
    require(np.isfinite(value))
    return value + np.sum(peaks), lambda g: (
        lambda: g * posterior.T,
        lambda: g * in_gamma,
        lambda: g * in_rho,
    )


@hmm_marginal.tangent
def hmm_marginal_tangent(r: Any, log_omegas: Any, gamma: Any, rho: Any) -> Any:
    if not is_held(possible, r):
        return (lambda t: 0.0,) * 3
    parts = _posterior_of_anything(log_omegas, gamma, rho)
    return tuple((lambda t, part=part: np.sum(part * t)) for part in parts)


def hmm_hidden_state_prob(log_omegas: Any, Gamma: Any, rho: Any) -> Any:  # noqa: N803
    """Posterior probabilities of the states of a hidden Markov model at each time, given all
    observations.

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
    The gradient of `hmm_marginal` with respect to `log_omegas`. Of variables it is a composition,
    one time after the other.

    References
    ----------
    Stan Functions Reference, section "Hidden Markov models with discrete latent variables".

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
    if any(map(is_differentiable, operands)) and _marginal(*values)[0] == -math.inf:
        return np.zeros(np.shape(values[0]))
    return _posterior_of_anything(*operands)[0]


# The filter: with the probabilities a of the states given the observations so far, and the emissions w at the next time,
# a <- (a Gamma) w / s,  s = sum((a Gamma) w),  log p = sum(log s).
# Backward, with b = p(later observations | state) up to a factor:  b <- Gamma (w b).
# Of the logarithm of p: d/dlog_omegas = a b / sum(a b),  d/dGamma = sum over times of a (w b)' / (a Gamma w b),  d/drho = w b / p.


# The tree. All matrices are indexed [time, from, to], however they are stored; vectors are in
# columns.


# The same by logarithms, for chains with states that are not connected, where the scaled
# probabilities underflow.
