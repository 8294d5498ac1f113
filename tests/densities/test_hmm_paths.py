"""The most probable path of hidden states, and its refusals."""

import itertools

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, equal, refuses_as

import varmat as vm

STATES, TIMES = 3, 5


def chain(rng, *stack):
    ones = np.ones(STATES)
    return (
        rng.normal(size=(*stack, STATES, TIMES)),
        rng.dirichlet(ones, (*stack, STATES)),
        rng.dirichlet(ones, stack or None),
    )


def log_probability(path, log_omegas, gamma, rho):
    moves = sum(np.log(gamma[i, j]) for i, j in itertools.pairwise(path))
    return np.log(rho[path[0]]) + moves + sum(log_omegas[k, t] for t, k in enumerate(path))


def test_path_is_that_of_all_paths():
    rng = np.random.default_rng(1)
    for _ in range(20):
        case = chain(rng)
        paths = itertools.product(range(STATES), repeat=TIMES)
        best = max(paths, key=lambda path: log_probability(path, *case))
        assert tuple(vm.hmm_viterbi(*case)) == best


def test_stacks_are_their_chains():
    log_omegas, gamma, rho = chain(np.random.default_rng(2), 4)
    for transitions, starts in ((gamma, rho), (gamma[0], rho[0]), (gamma, rho[0])):
        paths = vm.hmm_viterbi(log_omegas, transitions, starts)
        for i, path in enumerate(paths):
            one = (
                transitions[i] if transitions.ndim > 2 else transitions,
                starts[i] if starts.ndim > 1 else starts,
            )
            equal(path, vm.hmm_viterbi(log_omegas[i], *one))


@pytest.mark.parametrize(("place", "bad", "error", "text"), [
    (0, np.zeros(3), SHAPE, "log_omegas has shape (3,), but must be a matrix, or a stack of them!"),
    (1, np.eye(2), SHAPE, "Gamma has shape (2, 2), but must end with (3, 3)!"),
    (2, [0.5, 0.5], SHAPE, "rho has shape (2,), but must end with (3,)!"),
    (1, np.eye(3) * 0.5, DOMAIN, "sum(Gamma)[0] is 0.5, but must be 1 to within 1e-08!"),
    (0, np.full((3, 2), -np.inf), DOMAIN,
     "log_omegas, Gamma and rho allow no path of states, but must allow at least one!"),
    (2, vm.var([1.0, 0.0, 0.0]), TypeError,
     "rho is a variable, but a path has no derivative: pass varmat.value of it!"),
])  # fmt: skip
def test_refusals(place, bad, error, text):
    case = [*chain(np.random.default_rng(1))]
    case[place] = bad
    refuses_as(error, f"hmm_viterbi: {text}", vm.hmm_viterbi, *case)
