"""The algorithms of hidden Markov models on plain arrays: filter and posterior by a tree, in
pieces, and on logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from varmat.core.operation import is_differentiable
from varmat.functions.arrays.exponentials import logsumexp
from varmat.functions.checks import fixed
from varmat.typing import Function, Operand, Plain, Result

Floats = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
# Uninitialised memory of a shape.
Space = Callable[[tuple[int, ...]], Floats]

# Chains of at least LONG_CHAIN steps and at most FEW_STATES states are cut into pieces (measured).
LONG_CHAIN, FEW_STATES = 50, 32
# A further level of the tree is made from more than ROOT_MATRICES matrices. With up to PLANE_STATES
# states matrices are stored element by element, otherwise one by one.
ROOT_MATRICES, PLANE_STATES = 16, 4
# A product is scaled before the logarithm of its largest element falls below LOWEST, and a vector
# at the root before that of its sum falls below LOWEST_AT_ROOT.
LOWEST, LOWEST_AT_ROOT = math.log(1e-60), math.log(1e-150)
# A sum of probabilities that divides is at least TINY.
TINY = float(np.finfo(float).tiny)
# If every transition has at least this probability, a state whose probability underflows cannot
# matter later.
CONNECTED = 1e-150
# The same bound for the tree, whose matrices underflow by their starts as well as by their ends.
CONNECTED_IN_TREE = 1e-60
# Chains of at most FEW_STATES states, with at most TREE_ELEMENTS elements in all their matrices, go
# through the tree (measured).
TREE_ELEMENTS = 4_000_000
# BLAS does up to this many multiplications in one thread. Underflow in its other threads goes
# unseen.
ONE_THREAD = 2**18
# Up to this many states, checks are faster on floats.
FLOAT_STATES = 8


class Filtered(NamedTuple):
    """The emissions and the results for each piece, which the filter keeps for the posterior."""

    # (times, states), scaled to a largest one of 1
    emissions: Floats
    # (pieces + 1, states): probabilities before each piece, and before the rest of the chain
    starts: Floats
    # (pieces, states, states), and the logarithms of row sums; None if the chain is not cut
    transfers: Plain
    logs: Plain
    # (times, states): filtered probabilities in the rest of the chain
    rest: Plain


class TreeLevel(NamedTuple):
    """A level of the tree above the matrices of single times."""

    # (matrices, states, states)
    matrices: Floats
    # a lower bound of the logarithms of their largest elements
    bound: float
    # two arrays (states, matrices) for the way down
    scratch: Floats


class FilterTree(NamedTuple):
    """The results that the tree keeps for the posterior."""

    # (states, times), scaled to a largest one of 1
    emissions: Floats
    # the lowest one first
    levels: list[TreeLevel]
    # the matrices at the root, then, from the top level down, those without a neighbour
    root: Floats
    # the probabilities of states before each of these and after the last, up to factors
    rows: Floats
    # the logarithm of the smallest transition probability
    least: float


def log_marginal(
    log_omegas: Floats, gamma: Floats, rho: Floats, space: Space = np.empty
) -> tuple[float, Filtered | FilterTree | None]:
    """Compute the log marginal, and intermediate results for the posterior: None if that needs
    logarithms.
    """
    states, times = log_omegas.shape
    if not times:
        return 0.0, None
    with np.errstate(all="ignore"):
        peaks = np.maximum.reduce(log_omegas, axis=0)
        if not rho.all():
            peaks[0] = np.max(log_omegas[:, 0], where=rho > 0.0, initial=-math.inf)
        total = float(np.add.reduce(peaks))
    if total == -math.inf:
        return total, None
    least = float(np.minimum.reduce(gamma, axis=None))
    if (
        states <= FEW_STATES
        and states**2 * times <= TREE_ELEMENTS
        and (least >= CONNECTED_IN_TREE or states**3 * times <= ONE_THREAD)
    ):
        try:
            with np.errstate(all="ignore", under=_underflow(least, CONNECTED_IN_TREE)):
                value, tree = _tree(_emissions(log_omegas, peaks, space), gamma, rho, least, space)
                return value + total, tree
        except FloatingPointError:
            pass
    try:
        with np.errstate(all="ignore", under=_underflow(least, CONNECTED)):
            value, filtered = _filter(_emissions(log_omegas, peaks).T.copy(), gamma, rho)
            return value + total, filtered
    except FloatingPointError:
        return _log_value(log_omegas, gamma, rho), None


def _emissions(log_omegas: Floats, peaks: Floats, space: Space = np.empty) -> Floats:
    out = np.subtract(log_omegas, peaks, space(log_omegas.shape))
    return np.exp(out, out)


def _start(rho: Floats, emissions: Floats) -> Floats:
    """Compute the states at the first time. An impossible state stays at zero even if its emission
    overflowed.
    """
    out = rho * emissions
    out[rho == 0.0] = 0.0
    return out


def _underflow(least: float, enough: float) -> Literal["ignore", "raise"]:
    """Return how NumPy should treat underflow. It must raise if states are not connected: the lost
    path may be the likeliest in the end.
    """
    return "ignore" if least >= enough else "raise"


# The tree: all matrices are indexed [time, from, to], however they are stored; vectors are columns.
def _tree(
    emissions: Floats, gamma: Floats, rho: Floats, least: float, space: Space
) -> tuple[float, FilterTree]:
    """Compute the log marginal of scaled emissions, by the product of all matrices."""
    states, count, x = len(rho), emissions.shape[1] - 1, emissions[:, 1:]
    log_least = math.log(least) if least >= CONNECTED_IN_TREE else -math.inf
    value, bound = 0.0, log_least
    levels: list[TreeLevel] = []
    alone: list[Floats] = []
    if count <= ROOT_MATRICES:
        root = gamma * x.T[:, None]
    while count > ROOT_MATRICES:
        if count % 2:
            alone.append(levels[-1].matrices[-1] if levels else gamma * x[:, -1])
        scratch = space((2, states, count))
        count //= 2
        if levels:
            below = levels[-1].matrices
            matrices = _products(below[: 2 * count : 2], below[1 : 2 * count : 2], space, log_least)
        else:
            matrices = _first_products(gamma, x, space, log_least)
        # The largest element of the first matrix need not meet the largest of the second; a
        # transition of probability `least` leads from one to the other.
        bound = 2.0 * bound + log_least
        if bound < LOWEST or count <= ROOT_MATRICES:
            scales = np.maximum(np.maximum.reduce(matrices, axis=(1, 2)), TINY)
            matrices /= scales[:, None, None]
            value += float(np.add.reduce(np.log(scales)))
            bound = 0.0
        levels.append(TreeLevel(matrices, bound, scratch))
    if levels:
        root = np.empty((count + len(alone), states, states))
        root[:count] = levels[-1].matrices
        for i, matrix in enumerate(reversed(alone), count):
            root[i] = matrix
    rows, logs = _steps(_start(rho, emissions[:, 0]), root, log_least)
    return value + logs, FilterTree(emissions, levels, root, rows, log_least)


def _matrices(count: int, states: int, space: Space, log_least: float) -> Floats:
    """Allocate matrices. Storing them element by element is faster for few states, but then
    underflow goes unnoticed, so it is done only if states are connected.
    """
    if states <= PLANE_STATES and log_least > -math.inf:
        return space((states, states, count)).transpose(2, 0, 1)
    return space((count, states, states))


def _products(left: Floats, right: Floats, space: Space, log_least: float) -> Floats:
    out = _matrices(len(left), left.shape[1], space, log_least)
    if out.flags.c_contiguous:
        return np.matmul(left, right, out)
    return np.einsum("tij,tjk->tik", left, right, out=out)


def _first_products(gamma: Floats, x: Floats, space: Space, log_least: float) -> Floats:
    """Compute the products for pairs of times: one matrix multiplication sums over the states in
    between.
    """
    states, count = len(gamma), x.shape[1] // 2
    transitions = (gamma[:, None] * gamma.T).reshape(-1, states)
    first, second = x[:, : 2 * count : 2], x[:, 1 : 2 * count : 2]
    out = _matrices(count, states, space, log_least)
    if out.flags.c_contiguous:
        np.matmul(first.T, transitions.T, out.reshape(count, -1))
    else:
        np.matmul(transitions, first, out.transpose(1, 2, 0).reshape(-1, count))
    out *= second.T[:, None]
    return out


def _steps(a: Floats, matrices: Floats, log_least: float) -> tuple[Floats, float]:
    """Compute the vectors before each matrix and after the last one, and the log sum of the last,
    unscaled.
    """
    rows, logs = np.empty((len(matrices) + 1, len(a))), 0.0
    multiply: Function = np.dot if log_least > -math.inf else np.matmul
    scaled = len(matrices) * log_least < LOWEST_AT_ROOT
    rows[0] = a
    for row, following, matrix in zip(rows, rows[1:], matrices, strict=False):
        if scaled:
            scale = max(float(np.add.reduce(row)), TINY)
            row /= scale
            logs += math.log(scale)
        multiply(row, matrix, following)
    scale = float(np.add.reduce(rows[-1]))
    return rows, logs + math.log(scale) if scale > 0.0 else -math.inf


def _tree_posterior(tree: FilterTree, gamma: Floats, rho: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute the gradient of the log marginal, from the root of the tree down."""
    emissions, levels, root, rows, log_least = tree
    ends = _steps(np.ones(len(rho)), root[::-1].swapaxes(1, 2), log_least)[0][::-1]
    counts = [emissions.shape[1] - 1, *(len(level.matrices) for level in levels)]
    at, x, drift = counts[-1], emissions[:, 1:], 0.0
    a, b = rows[:at].T, ends[1 : at + 1].T
    for i in range(len(levels) - 1, -1, -1):
        count, new = counts[i], levels[i].scratch
        even, odd = slice(0, count - 1, 2), slice(1, count, 2)
        new[0, :, even], new[1, :, odd] = a, b
        into = new[0, :, odd], new[1, :, even]
        if i:
            matrices, bound = levels[i - 1][:2]
            _both_sides(a, b, matrices[even], matrices[odd], into)
            drift += bound + log_least
        else:
            np.multiply(gamma.T @ a, x[:, even], into[0])
            np.matmul(gamma, x[:, odd] * b, into[1])
        if count % 2:
            new[0, :, -1], new[1, :, -1] = rows[at], ends[at + 1]
            at += 1
        if drift < LOWEST:
            new /= np.maximum.reduce(new, axis=1)[:, None]
            drift = 0.0
        a, b = new
    both = np.empty(emissions.shape)
    later = np.matmul(gamma.T, a, both[:, 1:])
    u = b * x
    later *= u
    sums = np.add.reduce(later, axis=0)
    later /= sums
    u /= sums
    start, first = _start(rho, emissions[:, 0]), emissions[:, 0] * ends[0]
    total = np.dot(start, ends[0])
    both[:, 0] = start * ends[0] / total
    return both, a @ u.T, first / total


def _both_sides(
    a: Floats, b: Floats, left: Floats, right: Floats, into: tuple[Floats, Floats]
) -> None:
    """Compute, for all pairs, the vectors before each right matrix and after each left one."""
    if left.strides[0] < left.strides[2]:
        np.einsum("it,tij->jt", a, left, out=into[0])
        np.einsum("tij,jt->it", right, b, out=into[1])
    else:
        np.matmul(a.T[:, None], left, into[0].T[:, None])
        np.matmul(right, b.T[:, :, None], into[1].T[:, :, None])


# The filter: let a be the probabilities of the states given the observations so far, and w the
# emissions at the next time. Then
#     a <- (a Gamma) w / s,  s = sum((a Gamma) w),  log p = sum(log s).
# Backward, with b = p(later observations | state) up to a factor:  b <- Gamma (w b). Of log p
# the derivatives are
#     d/dlog_omegas = a b / sum(a b),  d/drho = w b / p,
#     d/dGamma = sum over times of a (w b)' / (a Gamma w b).
def _filter(emissions: Floats, gamma: Floats, rho: Floats) -> tuple[float, Filtered]:
    times, states = emissions.shape
    start = _start(rho, emissions[0])[None]
    scale = np.sum(start)
    value = math.log(scale) if scale > 0.0 else -math.inf
    length = _length(times - 1, states)
    pieces = (times - 1) // length if length else 0
    starts = np.empty((pieces + 1, states))
    starts[0] = start / max(scale, TINY)
    transfers = logs = None
    if pieces:
        transfers, logs = _transfers(_pieces(emissions, pieces, length), gamma)
        for i in range(pieces):
            weight = np.log(starts[i]) + logs[i]
            top = np.max(weight)
            if top == -math.inf:
                return -math.inf, Filtered(emissions, starts, transfers, logs, None)
            row = np.matmul(np.exp(weight - top), transfers[i], starts[i + 1])
            scale = np.sum(row)
            row /= scale
            value += float(top + np.log(scale))
    remainder, scales = _forward(starts[-1:], emissions[1 + pieces * length :, None], gamma)
    value += float(np.sum(np.log(scales))) if np.all(scales > TINY) else -math.inf
    return value, Filtered(emissions, starts, transfers, logs, remainder[:, 0])


def _length(steps: int, states: int) -> int:
    """Choose the length of pieces, about equal to their number; zero if the chain is not cut."""
    return math.isqrt(steps) if steps >= LONG_CHAIN and states <= FEW_STATES else 0


def _pieces(x: Floats, pieces: int, length: int) -> Floats:
    """Reshape the times after the first to (steps, pieces, states)."""
    return x[1 : 1 + pieces * length].reshape(pieces, length, -1).swapaxes(0, 1).copy()


def _forward(a: Floats, emissions: Floats, gamma: Floats) -> tuple[Floats, Floats]:
    """Filter all pieces together: the probabilities after each step, as (steps, pieces, states),
    and the sums by which they were divided.
    """
    ones = np.ones(len(gamma))
    out, scales = np.empty(emissions.shape), np.empty(emissions.shape[:2])
    for w, row, scale in zip(emissions, out, scales, strict=True):
        np.matmul(a, gamma, row)
        row *= w
        np.maximum(np.matmul(row, ones, scale), TINY, out=scale)
        row /= scale[:, None]
        a = row
    return out, scales


def _transfers(emissions: Floats, gamma: Floats) -> tuple[Floats, Floats]:
    """Compute the transition matrix over each piece and its observations, with rows scaled to a sum
    of 1, and the logarithms of those sums.
    """
    steps, pieces, states = emissions.shape
    ones, scales = np.ones(states), np.empty((steps, pieces * states))
    now, then = np.tile(np.eye(states), (pieces, 1)), np.empty((pieces * states, states))
    for w, scale in zip(emissions, scales, strict=True):
        np.matmul(now, gamma, then)
        by_piece = then.reshape(pieces, states, states)
        by_piece *= w[:, None]
        np.maximum(np.matmul(then, ones, scale), TINY, out=scale)
        then /= scale[:, None]
        now, then = then, now
    impossible = np.min(scales, axis=0) <= TINY
    logs = np.where(impossible, -np.inf, np.sum(np.log(scales), axis=0))
    return now.reshape(pieces, states, states), logs.reshape(pieces, states)


def _backward(b: Floats, emissions: Floats, gamma: Floats) -> tuple[Floats, Floats]:
    """Compute probabilities of later observations, up to a factor, after each step and at the
    start.
    """
    ones, out, transposed = np.ones(len(gamma)), np.empty(emissions.shape), gamma.T.copy()
    for w, row in zip(emissions[::-1], out[::-1], strict=True):
        row[...] = b
        b = np.matmul(w * row, transposed)
        b /= np.maximum(np.matmul(b, ones), TINY)[:, None]
    return out, b


def posterior_gradient(
    value: float,
    log_omegas: Floats,
    gamma: Floats,
    rho: Floats,
    filtered: Filtered | FilterTree | None,
) -> tuple[Floats, Floats, Floats]:
    """Compute the gradient of the log marginal."""
    if value == -math.inf or not log_omegas.shape[1]:
        return np.zeros(log_omegas.shape), np.zeros(gamma.shape), np.zeros(rho.shape)
    least = float(np.minimum.reduce(gamma, axis=None))
    if isinstance(filtered, FilterTree):
        try:
            with np.errstate(all="ignore", under=_underflow(least, CONNECTED_IN_TREE)):
                return _tree_posterior(filtered, gamma, rho)
        except FloatingPointError:
            pass
    try:
        with np.errstate(all="ignore", under=_underflow(least, CONNECTED)):
            if isinstance(filtered, FilterTree):
                filtered = _filter(filtered.emissions.T.copy(), gamma, rho)[1]
            if filtered is not None:
                return _filter_posterior(filtered, gamma, rho)
    except FloatingPointError:
        pass
    return _log_posterior(log_omegas, gamma, rho)


def _filter_posterior(
    filtered: Filtered, gamma: Floats, rho: Floats
) -> tuple[Floats, Floats, Floats]:
    a, b = _both_ways(*filtered, gamma)
    w = filtered.emissions
    with np.errstate(under="ignore"):
        both, u = a * b, w * b
        both /= np.sum(both, axis=1, keepdims=True)
        share = u[1:] / np.sum((a[:-1] @ gamma) * u[1:], axis=1, keepdims=True)
        return both.T, a[:-1].T @ share, u[0] / np.dot(_start(rho, w[0]), b[0])


def _both_ways(
    emissions: Floats,
    starts: Floats,
    transfers: Floats,
    logs: Floats,
    remainder: Floats,
    gamma: Floats,
) -> tuple[Floats, Floats]:
    """Compute at each time the probabilities of states given earlier observations, and of later
    observations given the state, up to factors.
    """
    a, b = np.empty(emissions.shape), np.empty(emissions.shape)
    pieces, length = len(starts) - 1, _length(len(emissions) - 1, len(gamma))
    end = 1 + pieces * length
    a[0], a[end:] = starts[0], remainder
    later, start = _backward(np.ones((1, len(gamma))), emissions[end:, None], gamma)
    b[end:], b[0] = later[:, 0], start[0]
    if pieces:
        ends = np.empty((pieces + 1, len(gamma)))
        ends[-1] = start[0]
        for i in range(pieces - 1, -1, -1):
            weight = logs[i] + np.log(transfers[i] @ ends[i + 1])
            ends[i] = np.exp(weight - np.max(weight))
        parts = _pieces(emissions, pieces, length)
        a[1:end] = _forward(starts[:-1], parts, gamma)[0].swapaxes(0, 1).reshape(end - 1, -1)
        b[1:end] = _backward(ends[1:], parts, gamma)[0].swapaxes(0, 1).reshape(end - 1, -1)
        b[0] = ends[0]
    return a, b


# The filter on logarithms, for chains with states that are not connected, whose scaled
# probabilities underflow, and for paths.
def log_filter(
    log_omegas: Floats, log_gamma: Floats, log_rho: Floats, combine: Function
) -> tuple[list[Floats], list[Floats]]:
    """Filter on logarithms. Arguments may be stacks.

    Parameters
    ----------
    log_omegas, log_gamma, log_rho : ndarray
    combine : callable
        What adds over the states before, the last axis but one, or takes the largest of them.

    Returns
    -------
    logs : list of ndarray of shape (..., states)
        For each time, the logarithm of the probability of each state and the observations so far,
        scaled to a largest one of 0. They end where no state is possible.
    scales : list of ndarray of shape (..., 1)
        The logarithms by which they were scaled.
    """
    logs: list[Floats] = []
    scales: list[Floats] = []
    before = log_rho
    for t in range(log_omegas.shape[-1]):
        joint = before + log_omegas[..., t]
        scales.append(np.max(joint, axis=-1, keepdims=True))
        if np.any(scales[-1] == -math.inf):
            break
        logs.append(joint - scales[-1])
        before = combine(logs[-1][..., None] + log_gamma)
    return logs, scales


_added = partial(logsumexp, axis=-2)


def _log_value(log_omegas: Floats, gamma: Floats, rho: Floats) -> float:
    with np.errstate(all="ignore"):
        logs, scales = log_filter(log_omegas, np.log(gamma), np.log(rho), _added)
        return float(np.sum(scales) + (logsumexp(logs[-1], 0) if logs else 0.0))


def _log_posterior(log_omegas: Floats, gamma: Floats, rho: Floats) -> tuple[Floats, Floats, Floats]:
    with np.errstate(all="ignore"):
        log_gamma, in_gamma, b = np.log(gamma), np.zeros(gamma.shape), np.zeros(len(gamma))
        a = log_filter(log_omegas, log_gamma, np.log(rho), _added)[0]
        both = np.empty((len(a), len(gamma)))
        for t in range(len(a) - 1, -1, -1):
            joint = a[t] + b
            both[t] = np.exp(joint - logsumexp(joint, 0))
            u = log_omegas[:, t] + b
            if t:
                b = logsumexp(log_gamma + u, 1)
                scale = logsumexp(a[t - 1] + b, 0)
                in_gamma += np.exp(a[t - 1][:, None] + (u - scale))
                b -= np.max(b)
        return both.T, in_gamma, np.exp(u - logsumexp(np.log(rho) + u, 0))


def differentiable_posterior(
    log_omegas: Operand, gamma: Operand, rho: Operand
) -> tuple[Result, Result, Result]:
    """Compute the gradient of the log marginal, differentiable. With variables it goes time by
    time.
    """
    if not any(map(is_differentiable, (log_omegas, gamma, rho))):
        with np.errstate(all="ignore"):
            value, filtered = log_marginal(log_omegas, gamma, rho)
            return posterior_gradient(value, log_omegas, gamma, rho, filtered)
    times = np.shape(log_omegas)[1]
    peaks = np.max(fixed(log_omegas), axis=0)
    w = np.exp(log_omegas - np.where(np.abs(peaks) < np.inf, peaks, 0.0)).T
    a, b, in_gamma = [rho * w[0]], np.ones(np.shape(rho)), 0.0
    for t in range(1, times):
        before = a[-1] / np.sum(a[-1])
        a.append((before @ gamma) * w[t])
    both: list[Plain] = []
    for t in range(times - 1, -1, -1):
        joint = a[t] * b
        both.append(joint / np.sum(joint))
        u = w[t] * b
        if t:
            in_gamma = in_gamma + a[t - 1][:, None] * (u / np.sum((a[t - 1] @ gamma) * u))
            b = gamma @ u
            b = b / np.sum(fixed(b))
    return np.stack(both[::-1], axis=1), in_gamma, u / np.sum(rho * u)
