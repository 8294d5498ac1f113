"""Loops over time, hidden Markov chains and initial value problems as functions of JAX."""

import re

import numpy as np
import pytest
from comparing import close, near, refuses

import varmat.programs.passes.fission
from programs.test_jax import double  # noqa: F401 - a fixture

vm = varmat
jax = pytest.importorskip("jax", reason="JAX is not installed")
Y = np.array([0.3, -1.1, 0.6, 0.2, -0.4, 1.3, 0.1])


def agree(f, point):
    """Demand that the program as a function of JAX, compiled and mapped, has the value and gradient
    of ours at several points.
    """
    ours = vm.recorded(f)
    points = point * np.array([[1.0], [0.9], [1.05]])
    values, gradients = map(np.stack, zip(*map(ours, points), strict=True))
    function = ours.program.to_jax()
    near(jax.jit(jax.vmap(function))(points), [values, gradients])
    return ours


# --- loops over time ---


def garch(carry, y, p):
    variance, residual = carry
    variance = p[1] + p[2] * residual**2 + p[3] * variance
    return (variance, y - p[0]), vm.normal_lpdf(y, p[0], np.sqrt(variance))


def garch_density(p, **how):
    (variance, _), terms = vm.scan(garch, (1.0, 0.2), Y, p, **how)
    return terms @ np.arange(7.0) + 0.1 * variance


def kalman(state, y, q, r):
    moves = np.array([[1.0, 1.0], [0.0, 1.0]])
    mean, covariance = moves @ state[0], moves @ state[1] @ moves.T + np.diag(q)
    gain = covariance[:, 0] / (covariance[0, 0] + r)
    error = y - mean[0]
    term = vm.normal_lpdf(error, 0.0, np.sqrt(covariance[0, 0] + r))
    return (mean + gain * error, covariance - np.outer(gain, covariance[0])), term


def kalman_density(p):
    (mean, _), terms = vm.scan(kalman, (p[3:5], np.eye(2)), Y, np.exp(p[:2]), np.exp(p[2]))
    return np.sum(terms) + mean[1]


def volatility(h, x, mu, phi, sigma):
    h = mu + phi * (h - mu) + sigma * x[1]
    return h, vm.normal_lpdf(x[0], 0.0, np.exp(0.5 * h))


def volatility_density(p):
    z = p[3:]
    h, terms = vm.scan(volatility, p[0], (Y, z), p[0], vm.inv_logit(p[1]), np.exp(p[2]))
    return np.sum(terms) + vm.normal_lpdf(z, 0.0, 1.0) + h


P = np.array([0.1, 0.3, 0.2, 0.5])
MODELS = {
    "variances": (garch_density, P),
    "matrices": (kalman_density, np.array([-1.0, -2.0, 0.3, 0.2, -0.1])),
    "variables in rows": (volatility_density, np.concatenate([[-0.3, 1.5, -1.0], np.cos(Y)])),
}


@pytest.mark.parametrize(
    ("name", "long"),
    [("matrices", 100), *((name, n) for name in list(MODELS)[::2] for n in (1, 100))],
)
def test_loops_whole_and_split(name, long, monkeypatch):
    monkeypatch.setattr(varmat.programs.passes.fission, "LONG", long)
    assert agree(*MODELS[name]).program.counts()["loop"] == 2


@pytest.mark.parametrize("how", [{"reverse": True}, {"checkpoints": 3}])
def test_loops_backwards_and_in_loops(how):
    agree(lambda p: garch_density(p, **how), P)


def test_second_derivatives_of_loops():
    hessian = vm.recorded(vm.hessian(garch_density))
    expected = hessian(P)
    _, found = jax.jit(hessian.program.to_jax())(P)
    close(found, expected, 1e-12, 1e-12 * np.max(abs(expected)))


@pytest.mark.parametrize("long", [1, 100])
def test_a_step_that_is_refused_makes_it_nan(long, monkeypatch):
    monkeypatch.setattr(varmat.programs.passes.fission, "LONG", long)

    def f(p):
        return np.sum(vm.scan(lambda s, y, p: (s + p, vm.normal_lpdf(y, 0.0, s)), 1.0, Y, p)[1])

    ours = vm.recorded(f)
    value, slope = ours(0.2)
    found = jax.jit(jax.vmap(ours.program.to_jax()))(np.array([-0.2, 0.2]))
    close(np.array(found), [[np.nan, value], [np.nan, slope]], 1e-12)


def test_what_jax_cannot_run_in_a_loop_is_named():
    @vm.operation()
    def cube(x):
        return x**3

    @cube.reverse
    def _(g, r, x):
        return 3.0 * x**2 * g

    f = vm.recorded(lambda p: np.sum(vm.scan(lambda c, y, p: (c + cube(p), c), 0.0, Y, p)[1]))
    f(0.3)
    names = "cube in loop, cube.reverse in loop"
    message = re.escape(f"to_jax: JAX cannot run the steps {names} of this program")
    refuses(TypeError, message, f.program.to_jax)


# --- hidden Markov chains ---


def test_hidden_markov_chains():
    def f(x):
        stay = vm.inv_logit(x[:2])
        moves = np.diag(stay) + np.array([[0.0, 1.0], [1.0, 0.0]]) * (1.0 - stay)[:, None]
        at = np.linspace(-1.0, 1.0, 40)
        log_omegas = -0.5 * (at - x[2:, None]) ** 2 - 40.0  # would underflow without scales
        return vm.hmm_marginal(log_omegas, moves, np.stack([stay[0], 1.0 - stay[0]]))

    assert agree(f, np.array([0.3, -0.2, 0.5, 1.1])).program.counts()["loop"] == 2
    agree(lambda x: vm.hmm_marginal(x[:2, None], np.eye(2), [0.4, 0.6]), np.array([0.3, -0.2]))


def test_a_chain_that_is_impossible_is_nan():
    f = vm.recorded(lambda x: vm.hmm_marginal(np.stack([x, x]), np.eye(2), [0.5, 0.5]))
    f(np.zeros(3))
    value, gradient = jax.jit(f.program.to_jax())(np.array([0.0, -np.inf, 0.0]))
    assert np.isnan(value)
    assert np.isnan(gradient).all()


# --- initial value problems ---


def predators(t, y, a, b, c, d):
    return np.stack([(a - b * y[1]) * y[0], (d * y[0] - c) * y[1]])


TIMES = np.array([0.5, 2.0, 2.0, 7.0])
THETA = np.array([0.55, 0.3, 0.84, 0.4])


@pytest.mark.parametrize("solver", [vm.ode_rk45, vm.ode_adams])
def test_initial_value_problems(solver):
    def f(x):
        return np.sum(np.cos(solver(predators, 1.0 + x[:2], 0.1 * x[0], TIMES, *x)))

    assert agree(f, THETA).program.counts()["loop"] == 1


def test_initial_value_problems_in_times_alone():
    def f(x):
        return np.sum(np.cos(vm.ode_ckrk(predators, [1.0, 2.0], 0.0, np.cumsum(x), *THETA)))

    agree(f, THETA)


@pytest.mark.parametrize(("most", "x"), [(10000, 2.0), (21, 0.9)])
def test_where_a_solution_ends_it_is_nan(most, x):
    """y' = x y^2 has no solution at 1 if x is above 1, and takes many steps if it is close."""

    def f(x):
        return np.sum(
            vm.ode_rk45_tol(lambda t, y, x: x * y**2, [1.0], 0.0, [1.0], 1e-6, 1e-6, most, x)
        )

    ours = vm.recorded(f)
    expected = ours(0.5)
    function = jax.jit(ours.program.to_jax())
    close(function(0.5), expected, 1e-12)
    assert np.isnan(function(x)).all()
    refuses(vm.DomainError, "the solver stopped", ours, x)


def test_stiff_initial_value_problems():
    def f(x):
        return np.sum(np.cos(vm.ode_bdf_tol(stiff, [1.0, 0.5], 0.0, TIMES, 1e-5, 1e-7, 1000, x)))

    def stiff(t, y, x):
        return np.stack([-x[0] * y[0] * y[1], 500.0 * (x[1] * y[0] - y[1])])

    agree(f, THETA[:2])


def test_solvers_that_are_called_are_refused():
    limits = 1e-6, np.full(2, 1e-6), 1e-6, np.full(2, 1e-6), 1e-6, 1e-6, 1000, 100, 1, 2, 2
    solver = vm.ode_adjoint_tol_ctl
    f = vm.recorded(lambda x: np.sum(solver(predators, [1.0, 2.0], 0.0, TIMES, *limits, *x)))
    f(THETA)
    refuses(TypeError, "to_jax: JAX cannot run the steps ode_solution", f.program.to_jax)
