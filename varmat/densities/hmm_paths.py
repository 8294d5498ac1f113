"""Paths of the hidden states of Markov models: the most probable one, and random ones.

Arguments may be stacks, as for many draws of the parameters, whose paths are computed together.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.core.variables import data
from varmat.densities.domains import check_simplex
from varmat.densities.hmm_filter import log_filter
from varmat.functions.checks import misfit
from varmat.typing import Function, Operand

__all__ = ["hmm_viterbi"]


def hmm_viterbi(log_omegas: Operand, Gamma: Operand, rho: Operand) -> np.ndarray:
    """Find the most probable path of the hidden states, given all observations.

    Parameters
    ----------
    log_omegas : array_like, shape (..., states, times)
        Log density of the observation at each time, given each state; -inf where it is impossible.
    Gamma : array_like, shape (..., states, states)
        Transition matrix: a row for each state, nonnegative with the sum 1.
    rho : array_like, shape (..., states)
        Probabilities of the states at the first time, nonnegative with the sum 1.

    Returns
    -------
    ndarray of int64, shape (..., times)
        States, counted from 0 as Python counts. `hmm_latent_rng`, which is Stan's, counts from 1.
        The first of equally probable states is taken.

    Raises
    ------
    DomainError
        If a row of `Gamma`, or `rho`, is not a vector of probabilities, or no path is possible.
    ShapeError
        If the arguments do not fit.
    TypeError
        If an argument is a variable, because a path has no derivative.

    Notes
    -----
    The path maximises the joint density of states and observations, in a time proportional to the
    number of times. It has no derivative.

    References
    ----------
    A. J. Viterbi, "Error bounds for convolutional codes and an asymptotically optimum decoding
    algorithm", IEEE Transactions on Information Theory 13 (1967), 260-269.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> log_omegas = np.log([[0.5, 0.2, 0.1], [0.1, 0.4, 0.8]])
    >>> vm.hmm_viterbi(log_omegas, [[0.9, 0.1], [0.3, 0.7]], [0.5, 0.5])
    array([1, 1, 1])
    """
    values = []
    for name, x, axes in (("log_omegas", log_omegas, 2), ("Gamma", Gamma, 2), ("rho", rho, 1)):
        if is_differentiable(x):
            raise TypeError(
                f"hmm_viterbi: {name} is a variable, but a path has no derivative: pass "
                "varmat.value of it!"
            )
        values.append(np.asarray(data(x, f"hmm_viterbi: {name}")))
        shape, states = values[-1].shape, values[0].shape[-2] if values[0].ndim > 1 else 0
        requested = ((), (states, states), (states,))[len(values) - 1]
        if len(shape) < axes or (requested and shape[-axes:] != requested):
            rule = f"end with {requested}" if requested else "be a matrix, or a stack of them"
            raise misfit("hmm_viterbi", name, shape, rule)
    check_simplex("hmm_viterbi", values[1], "Gamma")
    check_simplex("hmm_viterbi", values[2], "rho")
    logs, log_gamma = filtered("hmm_viterbi", partial(np.maximum.reduce, axis=-2), *values)
    states = np.empty((*logs[-1].shape[:-1], len(logs)), np.int64)
    later = np.zeros(())
    for t in range(len(logs) - 1, -1, -1):
        states[..., t] = np.argmax(logs[t] + later, axis=-1)
        later = into(log_gamma, states[..., t])
    return states


def filtered(
    function: str, combine: Function, log_omegas: np.ndarray, gamma: np.ndarray, rho: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Compute the log probabilities of `log_filter`, and log `gamma`; raise for a chain without a
    possible path.
    """
    with np.errstate(all="ignore"):
        log_gamma = np.log(gamma)
        logs, _ = log_filter(log_omegas, log_gamma, np.log(rho), combine)
    if len(logs) < log_omegas.shape[-1]:
        raise DomainError(
            f"{function}: log_omegas, Gamma and rho allow no path of states, but must allow at "
            "least one!"
        )
    return logs, log_gamma


def into(log_gamma: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the log probabilities of moving from each state into given ones."""
    columns = np.swapaxes(log_gamma, -1, -2)
    if columns.ndim == 2:
        return np.take(columns, states, axis=0)
    columns = np.broadcast_to(columns, (*states.shape, *columns.shape[-2:]))
    return np.take_along_axis(columns, states[..., None, None], axis=-2)[..., 0, :]
