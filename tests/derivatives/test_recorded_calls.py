"""Recorded Hessians and products with Jacobians, for functions whose tangent rules depend on the
values of variables.
"""

import numpy as np
import pytest
from comparing import close, near, refuses
from recordings import EVERY_RUNNER, agree_everywhere

import varmat as vm

Q = np.array([0.3, -0.8, 1.2])
DIRECTION = np.array([0.5, 2.0, -1.0])
# A nearby point and far points, where the scales and choices of the recorded point are wrong.
NEAR, FAR, HUGE = 1.7 * Q[::-1], -40.0 * Q, 1e180 * Q
TIES, ZEROS = np.array([2.0, 2.0, -1.0]), np.zeros(3)
TIMES, SPACE = np.linspace(0.0, 1.0, 6), np.array([0.0, 0.5, 0.5, 2.0])
WEIGHTS = np.random.default_rng(4).normal(size=(3, 3))
BASE = WEIGHTS @ WEIGHTS.T + 4.0 * np.eye(3)


def matrix(q):
    return np.outer(q, q) + BASE


def slope(q):
    """Make a matrix of rank two at the recorded point, and of rank one where the first two elements
    are equal.
    """
    return np.stack([q[:2], q[:2][::-1], q[1:] * 0.0 + q[0]])


def markov(q):
    gamma = vm.softmax(np.stack([q[:2], q[1:]]), axis=1)
    return vm.hmm_marginal(np.outer(q[:2], TIMES), gamma, vm.softmax(q[:2]))


def covariance(function, *more):
    return lambda q: (
        np.sum(function(SPACE, np.exp(0.1 * q[0]), np.exp(0.1 * q[1]), *more) ** 2) * q[2]
    )


CASES = {
    "norm": (lambda q: np.linalg.norm(q) * q[0], NEAR, FAR, TIES),
    "norm of what is huge": (lambda q: np.linalg.norm(q), NEAR, FAR, HUGE),
    "norm of order 1": (lambda q: np.linalg.norm(q, 1) * q[0], NEAR, FAR, TIES),
    "norm of order 3": (lambda q: np.linalg.norm(q, 3.0) * q[0], NEAR, FAR),
    "largest element": (lambda q: np.linalg.norm(q, np.inf) ** 2, NEAR, FAR, TIES),
    "norms of rows": (lambda q: np.sum(np.linalg.norm(np.outer(q, Q), axis=1) ** 3), NEAR, FAR,
     TIES),
    "nuclear norm": (lambda q: np.linalg.norm(matrix(q), "nuc") ** 2, NEAR, FAR, ZEROS),
    "max and min": (lambda q: np.max(q) ** 2 * np.min(q), NEAR, FAR, TIES),
    "max of rows": (lambda q: np.sum(np.max(np.outer(q, q), axis=1) ** 2), NEAR, FAR, TIES),
    "sd": (lambda q: vm.sd(q) ** 3, NEAR, FAR, TIES, ZEROS),
    "logsumexp": (lambda q: vm.logsumexp(q) ** 2, NEAR, 1e3 * Q, TIES),
    "logsumexp of rows": (lambda q: np.sum(vm.logsumexp(np.outer(q, q), axis=1) ** 2), NEAR, FAR,
     1e3 * Q),
    "weighted logsumexp": (lambda q: vm.logsumexp(q, b=np.array([2.0, 0.0, 1.0])) ** 2, NEAR,
     1e3 * Q, -FAR),
    "det": (lambda q: np.linalg.det(np.outer(q, q) + np.diag(q)), NEAR, FAR, ZEROS,
     np.array([1.0, 0.0, 0.0])),
    "log_determinant": (lambda q: vm.log_determinant(matrix(q)) ** 2, NEAR, FAR, ZEROS),
    "log_determinant of a stack": (lambda q: np.sum(vm.log_determinant(q[:, None,
        None] * BASE) ** 2), NEAR, FAR),
    "slogdet": (lambda q: np.linalg.slogdet(matrix(q))[1] ** 2, NEAR, FAR),
    "eigenvalues": (lambda q: np.sum(np.linalg.eigvalsh(matrix(q)) ** 1.5), NEAR, FAR, ZEROS),
    "eigenvectors": (lambda q: np.sum(np.linalg.eigh(matrix(q))[1] ** 2 * WEIGHTS), NEAR, FAR,
     ZEROS),
    "singular values": (lambda q: np.sum(np.linalg.svdvals(matrix(q)) ** 1.5), NEAR, FAR, ZEROS),
    "pinv": (lambda q: np.sum(np.linalg.pinv(slope(q), rcond=0.2) ** 2), NEAR,
     np.array([1.0, 1.02, 0.4]), FAR),
    "condition number": (lambda q: np.linalg.cond(matrix(q)), NEAR, FAR),
    "choice": (lambda q: np.sum(np.where(q > 0.5, np.exp(q), q**3)), NEAR, -Q),
    "quadratic forms of a stack": (lambda q: np.sum(vm.quad_form(np.stack([matrix(q), BASE]), q)),
     NEAR, FAR),
    "expm": (lambda q: np.sum(vm.matrix_exp(0.1 * np.outer(q, Q))), NEAR, FAR),
    "unit vector": (lambda q: np.sum(vm.unit_vector_constrain(q) ** 3), NEAR, FAR, HUGE),
    "hidden Markov": (markov, NEAR, -6.0 * Q),
    "exponentiated quadratic": (covariance(vm.gp_exp_quad_cov), NEAR, FAR),
    "exponential": (covariance(vm.gp_exponential_cov), NEAR, FAR),
    "Matern": (covariance(vm.gp_matern32_cov), NEAR, FAR),
    "periodic": (covariance(vm.gp_periodic_cov, 1.5), NEAR, FAR),
    "covariance of points": (lambda q: np.sum(vm.gp_matern52_cov(q, 1.3, 0.7) ** 2), NEAR, FAR,
     TIES),
}  # fmt: skip


# For these functions one of the points is a kink, is singular, or has squares that overflow. There
# the run ends, and the function is called.
CALLED = {"norm of what is huge", "det", "unit vector"}


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize("name", CASES)
def test_recordings_hold_at_other_points(name, runner):
    f, *others = CASES[name]
    calls = []

    def counted(q):
        calls.append(q)
        return f(q)

    product = vm.recorded(vm.hessian_times_vector(counted), runner=runner)
    forward = vm.recorded(vm.jvp(counted), runner=runner)
    for point in (Q, *others):
        near(product(point, DIRECTION), vm.hessian_times_vector(f, point, DIRECTION), 1e-9)
        near(forward((point,), (DIRECTION,)), vm.jvp(f, (point,), (DIRECTION,)), 1e-11)
    assert (len(calls) > 2) if name in CALLED else (len(calls) == 2)


@vm.operation()
def wave(x):
    """An operation whose tangent rule branches and uses the saved values."""
    return vm.Saved(np.abs(np.sin(x)), slope=np.cos(x))


@wave.reverse
def wave_reverse(g, r, x, slope):
    return g * np.sign(np.sin(x)) * slope


@wave.tangent
def wave_tangent(r, x, slope):
    if np.all(np.sin(x) > 0):
        return lambda t: np.cos(x) * t
    return lambda t: np.sign(np.sin(x)) * np.cos(x) * t


@vm.operation()
def both(x, y):
    """An operation with two results, of which a recording may use one alone."""
    return x * y, float(np.sum(x) - y)


@both.reverse
def both_reverse(g, r, x, y):
    first, second = (np.zeros(3) if g[0] is None else g[0]), (0.0 if g[1] is None else g[1])
    return lambda: first * y + second, lambda: float(np.sum(first * x)) - second


@both.tangent
def both_tangent(r, x, y):
    sign = 1.0 if y > 0 else -1.0
    return lambda t: (t * y, np.sum(t)), lambda t: (x * np.abs(y) * sign * t / y, -t)


USERS = {
    "saved and branching": lambda q: np.sum(wave(q) * wave(2.0 * q)),
    "several results": lambda q: np.sum(both(q, q[0])[0] ** 2) * both(np.exp(q), q[1])[1],
    "of a number and data": lambda q: (
        np.sum(both(np.ones(3), q[0])[0] ** 2) + both(q**2, -0.5)[1] ** 2
    ),
    "one result of two": lambda q: np.sum(both(q * q, q[1])[0]),
}


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize("name", USERS)
def test_tangent_rules_of_users_are_called_at_every_run(name, runner):
    f = USERS[name]
    hessian = vm.recorded(vm.hessian(f), runner=runner)
    forward = vm.recorded(vm.jvp(f), runner=runner)
    for point in (Q, NEAR, -3.0 * Q):
        near(hessian(point), vm.hessian(f, point), 1e-12)
        near(forward((point,), (DIRECTION,)), vm.jvp(f, (point,), (DIRECTION,)), 1e-12)


@pytest.mark.parametrize("runner", EVERY_RUNNER)
def test_jacobians_of_many_outputs_use_tangent_rules_that_look_at_values(runner):
    def f(x):
        return np.concatenate([wave(x), vm.softmax(x), np.array([1.0, 2.0]) * np.linalg.norm(x)])

    jacobian = vm.recorded(vm.jacobian(f), runner=runner)
    for point in (Q, -3.0 * Q):
        near(jacobian(point), vm.jacobian(f, point), 1e-12)


def test_a_rule_that_is_missing_is_missed():
    @vm.operation()
    def one_way(x):
        return 2.0 * x

    one_way.reverse(lambda g, r, x: 2.0 * g)
    with pytest.raises(TypeError, match="one_way has no tangent rule"):
        vm.recorded(vm.hessian(lambda q: np.sum(one_way(q))))(Q)


def test_steps_of_a_rule_before_it_looked_at_values_are_dropped():
    product = vm.recorded(
        vm.hessian_times_vector(lambda q: np.sum(np.linalg.pinv(matrix(q)))), runner="numpy"
    )
    product(Q, DIRECTION)
    names = [step.kernel.name for step in product.program.steps]
    assert names.count("pinv") <= 1 == names.count("pinv.tangent.reverse")


TABLE = np.array([-1.0, 0.0, 1.0, 3.0])
# Functions that order, search or mask by values. Of these the last five make nan on the way.
LOOKING = {
    "interp": lambda x: np.sum(np.interp(x, TABLE, [0.0, 1.0, 4.0, 9.0]) ** 2),
    "interp of all": lambda x: np.sum(np.interp(x[:2], np.sort(x[2:]), x[2:] ** 2)),
    "median": lambda x: np.median(x) ** 2,
    "quantile": lambda x: np.sum(np.quantile(x.reshape(2, 3), [0.3, 0.9], axis=1) ** 2),
    "percentile": lambda x: np.percentile(x, 30) * x[0],
    "largest so far": lambda x: np.sum(np.maximum.accumulate(x) ** 2),
    "least so far": lambda x: np.sum(np.minimum.accumulate(x) * np.arange(6.0)),
    "least squares": lambda x: np.sum(np.linalg.lstsq(SKEW * x[0], x[1:], rcond=None)[0] ** 2),
    "pseudo-inverse": lambda x: np.sum(np.linalg.pinv(SKEW * x[0] + x[1]) ** 2),
    "any": lambda x: np.where(np.any(x > 1.5), 2.0, 1.0) * np.sum(x**2),
    "all of rows": lambda x: np.sum(np.where((x.reshape(2, 3) > -0.5).all(axis=0), x[:3], x[3:])),
    "count": lambda x: np.count_nonzero(x > 0.1) * x[0] ** 2 + np.mean(x > 0.2) * x[1],
    "nan_to_num": lambda x: np.sum(np.nan_to_num(np.sqrt(x)) ** 3),
    "nansum": lambda x: np.nansum(np.log(x)),
    "nanmean": lambda x: np.nanmean(np.log(x)) ** 2,
    "isnan": lambda x: np.sum(np.where(np.isnan(np.log(x)), x * x, np.sin(x))),
    "isfinite": lambda x: np.sum(np.where(np.isfinite(np.log(x)), x**3, np.cos(x))),
}  # fmt: skip
SKEW = np.random.default_rng(0).normal(size=(5, 3))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOOKING)
def test_functions_that_look_at_values_are_recorded(name):
    """At points where their orders, places and masks are others than at the recorded point."""
    x = np.array([0.3, 1.2, -0.7, 2.2, 0.9, -0.1])
    points = [(x,), (x[::-1] * 1.1 + 0.05,), (np.abs(x) + 0.01,), (np.sin(3.0 * x) * 2.0,)]
    agree_everywhere(LOOKING[name], points, tolerance=1e-11)


def test_a_result_that_is_a_whole_number_ends_the_run_where_it_changes():
    def f(x):
        solution, _, rank, _ = np.linalg.lstsq(np.outer(x, x) + np.diag([1.0, 1.0, 0.0]), x)
        return np.sum(solution) * rank

    recorded = vm.recorded(f)
    for x in (np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 0.0]), np.array([0.5, 1.0, 2.0])):
        near(recorded(x), vm.value_and_grad(f)(x), 1e-11)


def test_variables_in_a_function_that_numpy_calls_are_not_lost():
    def f(x):
        bent = np.piecewise(x[:2], [x[:2] > 0.5], [lambda z: z * x[2], lambda z: z**2])
        return np.sum(bent)

    x = np.array([1.0, 0.2, 3.0])
    refuses(vm.TapeError, "looks at the value", lambda: vm.recorded(f)(x))
    close(vm.value_and_grad(f)(x)[0], 3.04, 1e-6)
