"""Hidden Markov models: against Stan Math, the sum over all paths in 50-digit arithmetic, and
chains with an exact solution.
"""

import itertools

import mpmath as mp
import numpy as np
import pytest
import stan
from comparing import DOMAIN, SHAPE, close, equal, refuses_as
from recordings import agree

import varmat as vm
from varmat.densities import hmm_filter
from varmat.densities.hmm import hmm_hidden_state_prob, hmm_marginal
from varmat.testing import expect_ad, expect_ad_matvar

rng = np.random.default_rng(7)
value_and_grad = vm.value_and_grad(hmm_marginal, (0, 1, 2))


def simplexes(x):
    e = np.exp(x)
    return e / np.sum(e, axis=-1, keepdims=True)


def free_chain(states, times, spread=1.0):
    return (
        rng.normal(size=(states, times)) * spread,
        rng.normal(size=(states, states)),
        rng.normal(size=states),
    )


def chain(*args):
    log_omegas, gamma, rho = free_chain(*args)
    return log_omegas, simplexes(gamma), simplexes(rho)


@pytest.mark.parametrize("entry", stan.entries("hmm"))
def test_agrees_with_stan(entry):
    if entry["function"] == "hmm_marginal":
        # Stan exponentiates the log densities without scaling. At -700 that loses three digits, see
        # below.
        stan.check(hmm_marginal, entry, rtol=2e-13)
    else:
        close(hmm_hidden_state_prob(*stan.arguments(entry)), entry["output"], 1e-15)


@pytest.mark.parametrize("entry", stan.entries("hmm", throws=True))
def test_refuses_as_stan_does(entry):
    text = "hmm_marginal: Gamma has shape (2, 3), but must be of shape (2, 2)!"
    refuses_as(SHAPE, text, hmm_marginal, *stan.arguments(entry))


def stepped(log_omegas, gamma, rho):
    """Return the marginal and its gradient in 50 digits, by forward and backward recursions."""
    states, times = log_omegas.shape
    k = range(states)
    with mp.workdps(50):
        w = [[mp.exp(mp.mpf(float(x))) for x in column] for column in log_omegas.T]
        gamma = [[mp.mpf(float(x)) for x in row] for row in gamma]
        a, b = [[mp.mpf(float(rho[i])) * w[0][i] for i in k]], [[mp.mpf(1)] * states]
        for t in range(1, times):
            a.append([mp.fsum(a[-1][i] * gamma[i][j] for i in k) * w[t][j] for j in k])
            later = [w[times - t][j] * b[-1][j] for j in k]
            b.append([mp.fsum(gamma[i][j] * later[j] for j in k) for i in k])
        b.reverse()
        total = mp.fsum(a[-1])
        in_gamma = [
            [mp.fsum(a[t - 1][i] * w[t][j] * b[t][j] for t in range(1, times)) / total for j in k]
            for i in k
        ]
        both = [[a[t][i] * b[t][i] / total for t in range(times)] for i in k]
        parts = both, in_gamma, [w[0][i] * b[0][i] / total for i in k]
        return float(mp.log(total)), [np.array(part, dtype=float) for part in parts]


BANDED = np.array([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]])
REVERSAL = np.array([[0.0, -900.0, 0.0], [-5.0, 0.0, -2000.0]])
SLOW_REVERSAL = np.array([[0.0, -500.0, -500.0, 0.0, 0.0], [-5.0, 0.0, 0.0, -600.0, -600.0]])
EXACT = {
    "two states": chain(2, 4), "three states": chain(3, 2), "one state": chain(1, 3),
    "one time": chain(3, 1),
    "far below zero": (np.array([[-0.3, -1.2, -0.8, -700.0], [-2.0, -0.4, -1.5, -705.0]]),
                       *chain(2, 1)[1:]),
    "unlike": chain(2, 4, 400.0),
    "left to right": (rng.normal(size=(3, 3)), BANDED, np.array([1.0, 0.0, 0.0])),
    # A path that is far behind at one time is the likeliest one in the end.
    "lost": (REVERSAL, np.eye(2), np.array([0.5, 0.5])),
    "lost, almost": (REVERSAL, np.array([[1.0, 0.0], [1e-300, 1.0]]), np.array([0.5, 0.5])),
    "lost backward": (REVERSAL[:, ::-1], np.eye(2), np.array([0.5, 0.5])),
    "lost little by little": (SLOW_REVERSAL, np.eye(2), np.array([0.5, 0.5])),
    "lost backward, little by little": (SLOW_REVERSAL[:, ::-1], np.eye(2), np.array([0.5, 0.5])),
    "lost backward alone": (np.array([[0.0, 0.0, -400.0], [0.0] * 3]),
                            np.array([[0.5, 0.5], [1.0, 1e-170]]), np.array([0.5, 0.5])),
    "not lost": (REVERSAL, np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.5, 0.5])),
    # The first observation of the only possible start is almost impossible.
    **{f"unlikely start, {times}": (np.where(np.arange(times), rng.normal(size=(2, times)),
       [[0.0], [-800.0]]), chain(2, 1)[1], np.array([0.0, 1.0])) for times in (5, 60)},
    "periodic": (rng.normal(size=(2, 4)), np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 0.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_agrees_with_fifty_digits(name):
    value, gradients = value_and_grad(*EXACT[name])
    truth, slopes = stepped(*EXACT[name])
    close(value, truth, 1e-14)
    close(gradients, slopes, 1e-12, 1e-290)


@pytest.mark.parametrize("name", [name for name in EXACT if not name.startswith("unlikely")])
def test_a_recording_ends_where_it_loses_a_path(name):
    # Where a path is lost, slopes in probabilities may be infinite.
    ends = name.startswith("lost")
    argnums = (0,) if ends else (0, 1, 2)
    first = chain(*EXACT[name][0].shape)
    # Other data are tried as arguments of the program, which is compared with the function.
    agree(hmm_marginal, first, EXACT[name], argnums=argnums, rtol=1e-12, elsewhere=3 * ends)


def with_rare_transitions(states, smallest):
    gamma = chain(states, 1)[1]
    gamma[0, -1], gamma[-1, 0] = smallest, 0.3 * smallest
    return gamma / gamma.sum(axis=1, keepdims=True)


def one_way(states):
    return simplexes(np.where(np.tri(states, k=-1), -np.inf, rng.normal(size=(states, states))))


def neighbours(states):
    distances = np.subtract.outer(np.arange(states), np.arange(states))
    return simplexes(np.where(np.abs(distances) > 1, -np.inf, rng.normal(size=(states, states))))


def with_holes(states, times):
    return np.where(
        np.add.outer(np.arange(states), np.arange(times)) % (states + 1),
        chain(states, times)[0],
        -np.inf,
    )


def lost_between_pairs(states, times):
    """Make a chain whose first state falls far behind within a product of two times, but overtakes
    the others in the end.
    """
    log_omegas = np.zeros((states, times))
    log_omegas[0, [1, 3]] = -380.0
    log_omegas[1:, 0], log_omegas[1:, [5, 7]] = -200.0, -300.0
    return log_omegas, np.eye(states)


# Name -> a function of the numbers of states and times that returns the log densities and the
# transitions.
LONGER = {
    "connected": lambda k, n: chain(k, n)[:2],
    "alike": lambda k, n: chain(k, n, 0.01)[:2],
    "unlike": lambda k, n: chain(k, n, 30.0)[:2],
    "far": lambda k, n: chain(k, n, 300.0)[:2],
    "banded": lambda k, n: (chain(k, n)[0], neighbours(k)),
    "rare transitions": lambda k, n: (chain(k, n, 5.0)[0], with_rare_transitions(k, 1e-9)),
    "rarer": lambda k, n: (chain(k, n, 50.0)[0], with_rare_transitions(k, 1e-40)),
    "hardly any": lambda k, n: (chain(k, n, 50.0)[0], with_rare_transitions(k, 1e-100)),
    "left to right": lambda k, n: (chain(k, n, 3.0)[0], one_way(k)),
    "lost between pairs": lost_between_pairs,
    "impossible at times": lambda k, n: (with_holes(k, n), chain(k, 1)[1]),
}


# Products in a tree, and the filter, in pieces if the chain is long, and in one.
WAYS = {"tree": {}, "filter": {"TREE_ELEMENTS": 0},
        "in one": {"TREE_ELEMENTS": 0, "LONG_CHAIN": 10**9}}  # fmt: skip


@pytest.mark.parametrize(("kind", "states", "times"), [
    *itertools.product(LONGER, (2, 3, 6), (16, 17, 18, 71)), ("left to right", 2, 1500),
    *itertools.product(("connected", "far", "banded"), (1, 5), (2, 51, 99, 400)),
])  # fmt: skip
def test_all_ways_agree_with_fifty_digits(kind, states, times, monkeypatch):
    args = (
        *LONGER[kind](states, times),
        np.eye(states)[0] if kind == "left to right" else chain(states, 1)[2],
    )
    truth, slopes = stepped(*args)
    # Logarithms are added up, and may cancel.
    rounding = 1e-16 * (np.sum(np.abs(args[0][np.isfinite(args[0])])) + 10 * times)
    for settings in WAYS.values():
        for name, setting in settings.items():
            monkeypatch.setattr(hmm_filter, name, setting)
        value, gradients = value_and_grad(*args)
        close(value, truth, 1e-14 if times < 100 and not settings else 1e-13, rounding)
        close(gradients, slopes, 2e-11, 1e-100)
        close(gradients[0].sum(axis=0), np.ones(times), 1e-14)
    close(hmm_filter._log_value(*args), truth, 1e-13, rounding)
    close(hmm_filter._log_posterior(*args), slopes, 1e-10, 1e-100)


def test_underflow_in_a_tree_is_left_to_the_filter(monkeypatch):
    """The probability of staying in the first state underflows, but the chain is never in that
    state.
    """
    times = 3000
    args = (
        np.array([[-1.0], [0.0]]) * np.ones(times),
        np.array([[0.5, 0.5], [0.0, 1.0]]),
        np.array([0.0, 1.0]),
    )
    monkeypatch.setattr(hmm_filter, "log_filter", None)
    value, gradients = value_and_grad(*args)
    assert value == 0.0
    equal(gradients[0], [[0.0] * times, [1.0] * times])
    close(gradients[1][1, 1], times - 1, 1e-14)


def test_further_reverse_passes_give_the_same():
    args = chain(3, 200)
    with vm.nested():
        x = vm.var(args[0])
        y = hmm_marginal(x, *args[1:])
        y.grad()
        first = x.adj.copy()
        (2.0 * y).grad()
        equal(x.adj, 2.0 * first)
        y.grad()
        equal(x.adj, first)


def free(log_omegas, gamma, rho):
    """Return the marginal for any numbers."""
    return hmm_marginal(log_omegas, simplexes(gamma), simplexes(rho))


@pytest.mark.parametrize("shape", [(2, 4), (3, 2), (2, 1), (1, 3)], ids=str)
def test_all_routes_agree(shape):
    args = free_chain(*shape)
    expect_ad(free, *args)
    expect_ad_matvar(free, *args)


def test_all_routes_agree_for_a_chain_in_pieces(monkeypatch):
    monkeypatch.setattr(hmm_filter, "TREE_ELEMENTS", 0)
    monkeypatch.setattr(hmm_filter, "LONG_CHAIN", 4)
    args = free_chain(2, 8)
    expect_ad(free, *args)
    expect_ad(lambda log_omegas: free(log_omegas, *args[1:]), np.asfortranarray(args[0])[:, ::-1])


@pytest.mark.parametrize("states", [2, 5])
def test_all_routes_agree_for_a_tree(states, monkeypatch):
    monkeypatch.setattr(hmm_filter, "ROOT_MATRICES", 2)
    args = free_chain(states, 12)
    expect_ad(lambda log_omegas: free(log_omegas, *args[1:]), args[0])
    expect_ad(lambda gamma, rho: free(args[0], gamma, rho), *args[1:])
    expect_ad(lambda log_omegas: free(log_omegas, *args[1:]), np.asfortranarray(args[0])[:, ::-1])


@pytest.mark.parametrize("n", [1, 4])
def test_state_probabilities_are_differentiable(n):
    expect_ad(
        lambda x, g, r: hmm_hidden_state_prob(x, simplexes(g), simplexes(r)), *free_chain(2, n)
    )


def test_logarithms_lose_no_digits_far_below_zero():
    log_omegas, gamma, rho = chain(3, 1000)
    near, far = (hmm_filter._log_posterior(log_omegas - drop, gamma, rho) for drop in (0.0, 8192.0))
    close(far, near, 1e-10)


@pytest.mark.parametrize("states", [2, 40])
def test_long_chains(states):
    """Each state is drawn independently of the one before, so the marginal is a product over the
    times.
    """
    times = 50_000 if states == 2 else 300
    log_omegas, _, rho = chain(states, times, 30.0)
    gamma = np.tile(rho, (states, 1))
    value, gradients = value_and_grad(log_omegas - 500.0, gamma, rho)
    joint = np.log(rho)[:, None] + log_omegas
    top = joint.max(axis=0)
    sums = np.exp(joint - top).sum(axis=0)
    close(value, np.sum(top + np.log(sums) - 500.0), 1e-13)
    expected = np.exp(joint - top) / sums
    close(gradients[0], expected, 1e-11, 1e-300)
    close(gradients[1], expected[:, :-1] @ (expected[:, 1:] / rho[:, None]).T, 1e-11)
    close(hmm_hidden_state_prob(log_omegas, gamma, rho), expected, 1e-11, 1e-300)


@pytest.mark.parametrize("largest", [hmm_filter.TREE_ELEMENTS, 0], ids=["tree", "filter"])
@pytest.mark.parametrize("times", [3, 100])
def test_impossible_observations(times, largest, monkeypatch):
    monkeypatch.setattr(hmm_filter, "TREE_ELEMENTS", largest)
    log_omegas, gamma, rho = chain(2, times)
    log_omegas[:, times // 2] = -np.inf
    value, gradients = value_and_grad(log_omegas, gamma, rho)
    assert value == -np.inf
    assert not any(np.any(g) for g in gradients)
    assert not np.any(hmm_hidden_state_prob(log_omegas, gamma, rho))
    assert not np.any(vm.hessian(lambda gamma: hmm_marginal(log_omegas, gamma, rho), gamma))
    assert not np.any(
        vm.gradient(lambda gamma: hmm_hidden_state_prob(log_omegas, gamma, rho)[0, 0], gamma)
    )
    # In the first case the only possible start cannot have produced the first observation. In the
    # second the chain cannot leave that state.
    starts, certain = np.array([1.0, 0.0]), [0.0] * times
    assert hmm_marginal(np.array([[-np.inf] * times, certain]), gamma, starts) == -np.inf
    late = [0.0] + [-np.inf] * (times - 1)
    assert hmm_marginal(np.array([late, certain]), np.eye(2), starts) == -np.inf


def test_no_times():
    value, gradients = value_and_grad(np.empty((2, 0)), np.eye(2), np.array([0.5, 0.5]))
    assert value == 0.0
    assert [g.shape for g in gradients] == [(2, 0), (2, 2), (2,)]
    assert not any(np.any(g) for g in gradients)


LOGS, GAMMA, RHO = chain(2, 3)


@pytest.mark.parametrize("f", [hmm_marginal, hmm_hidden_state_prob])
@pytest.mark.parametrize(("args", "message"), [
    ((LOGS, GAMMA, [0.5, 0.6]), "sum(rho) is 1.1, but must be 1 to within 1e-08!"),
    ((LOGS, GAMMA, [-0.5, 1.5]), "rho[0] is -0.5, but must be nonnegative!"),
    ((LOGS, GAMMA, [np.nan, 1.0]), "rho[0] is nan, but must be nonnegative!"),
    ((LOGS, [[0.5, 0.5], [0.75, 0.5]], RHO),
     "sum(Gamma)[1] is 1.25, but must be 1 to within 1e-08!"),
    ((LOGS, [[0.5, 0.5], [1.5, -0.5]], RHO), "Gamma[1, 1] is -0.5, but must be nonnegative!"),
    ((LOGS[0], GAMMA, RHO), "log_omegas has shape (3,), but must be a matrix"),
    ((LOGS[:0], GAMMA, RHO), "log_omegas has shape (0, 3), but must be a matrix"),
    ((LOGS, GAMMA, np.ones(3) / 3), "rho has shape (3,), but must be of shape (2,)!"),
])  # fmt: skip
def test_refusals(f, args, message):
    error = SHAPE if " has shape " in message else DOMAIN
    for make in (lambda x: x, vm.var):
        with vm.nested() as tape:
            refuses_as(error, f"{f.__name__}: {message}", f, *map(make, args))
            assert not tape


def test_types():
    lists = [[-0.3, -1.2], [-2.0, -0.4]], [[0.7, 0.3], [0.2, 0.8]], [0, 1]
    with vm.nested():
        variable = (vm.var(lists[0]), *lists[1:])
        for f, plain, recorded in (
            (hmm_marginal, float, vm.Var), (hmm_hidden_state_prob, np.ndarray, vm.VarMat),
        ):  # fmt: skip
            assert (type(f(*lists)), type(f(*variable))) == (plain, recorded)
