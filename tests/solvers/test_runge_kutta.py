"""Initial value problems as loops of programs: the same steps and refusals as through SciPy."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from comparing import close, close_slopes, equal, refuses

import varmat as vm
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.run import has_native
from varmat.solvers import steppers, systems

RUNNERS = ["numpy", *(["native"] if has_native() else [])]
TIMES = np.array([0.3, 1.0, 1.0, 2.5, 20.0])
# Four parameters, the initial state and the initial time.
POINT = np.array([0.55, 0.028, 0.84, 0.026, 33.9, 5.9, 0.05])
WEIGHTS = np.cos(np.arange(10.0)).reshape(5, 2)


def lotka_volterra(t, y, th):
    return [(th[0] - th[1] * y[1]) * y[0], (-th[2] + th[3] * y[0]) * y[1]]


def solver(method, tolerance=1e-6, most=10_000):
    solve = getattr(vm, f"ode_{method}_tol")
    return lambda f, y0, t0, ts, *args: solve(f, y0, t0, ts, tolerance, tolerance, most, *args)


def weighted(method, tolerance=1e-6, most=10_000):
    """A scalar function of all operands."""
    solve = solver(method, tolerance, most)
    return lambda x, ts=TIMES: np.sum(WEIGHTS * solve(lotka_volterra, x[4:6], x[6], ts, x[:4]))


def is_loops(gradient):
    """Whether a recording solves by loops, and not by a call of Python."""
    counts = gradient.program.counts()
    assert bool(counts["loop"]) is not bool(counts["ode_solution"])
    return bool(counts["loop"])


def steps_of_scipy(monkeypatch):
    """A list that gets, for each step of SciPy's, the number of steps from the last output time."""
    taken, go = [], steppers._go
    monkeypatch.setattr(steppers, "_go", lambda *args: (taken.append(args[2]), go(*args)))
    return taken


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("method", ["rk45", "ckrk"])
def test_steps_are_those_of_scipy(method, tolerance, monkeypatch):
    """Equal states and derivatives up to rounding, and equal numbers of steps between times."""
    taken = steps_of_scipy(monkeypatch)
    expected, of_scipy = vm.value_and_grad(weighted(method, tolerance), (0, 1))(POINT, TIMES)
    fewest = 1 + max(taken)

    def recorded(most):
        """A recording, made where a few steps lead to the end."""
        gradient = vm.recorded(weighted(method, tolerance, most), (0, 1), runner="numpy")
        gradient(np.append(POINT[:-1], -1e-3), np.full(5, 1e-3))
        return gradient

    gradient = recorded(fewest)
    value, *gradients = interpret(gradient.program, POINT, TIMES)
    for found, by in ((value, gradients), gradient(POINT, TIMES)):
        close(found, expected, 1e-13)
        for g, e in zip(by, of_scipy, strict=True):
            close(g, e, 1e-13, 1e-13 * np.max(np.abs(e)))
    gradient = recorded(fewest - 1)
    refuses(ElsewhereError, None, interpret, gradient.program, POINT, TIMES)
    refuses(vm.DomainError, "the steps that it may take are used up", gradient, POINT, TIMES)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("methods", [("rk45", "ckrk"), ("bdf",)], ids=["explicit", "stiff"])
def test_random_problems(seed, methods):
    """Random rates, sizes, tolerances, times that repeat or lie close, and operands; away from the
    recorded point.
    """
    rng = np.random.default_rng(seed)
    n, m, method = rng.integers(1, 4), rng.integers(0, 3), rng.choice(methods)
    a, c = 0.7 * rng.normal(size=(n, n)), rng.normal(size=(m, n))
    if method == "bdf":
        a -= np.diag(10.0 ** rng.uniform(0.0, 4.0, size=n))
    gaps = rng.exponential(size=5) * rng.choice([0.0, 1e-9, 1e-2, 1.0, 3.0], size=5)
    ts = 1e-3 + np.cumsum(gaps)
    of_start, of_time = rng.random(2) < 0.5
    solve = solver(method, 10.0 ** rng.integers(-9 if method == "bdf" else -10, -2))
    weights, rtol = rng.normal(size=(5, n)), 1e-9 if method == "bdf" else 1e-10

    def rates(t, y, k):
        return np.sin(t) + a @ np.tanh(y) + (k @ c) * np.cos(y)

    def f(x):
        start = x[:n] if of_start else np.ones(n)
        return np.sum(weights * solve(rates, start, x[n] if of_time else 0.0, ts, x[n + 1 :]))

    x = 1e-4 * rng.normal(size=n + 1 + m)
    eager = vm.value_and_grad(f)
    for runner in RUNNERS:
        gradient = vm.recorded(f, runner=runner)
        for factor in (1.0, -3.0, 1.7):
            (value, found), (expected, slopes) = gradient(factor * x), eager(factor * x)
            scale = 1.0 + np.max(np.abs(slopes), initial=0.0)
            close(value, expected, 0.1 * rtol, 0.1 * rtol)
            close(found, slopes, rtol, 0.1 * rtol * scale)
        assert is_loops(gradient)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("method", ["rk45", "ckrk"])
def test_recordings_solve_by_loops(method, runner):
    """Derivatives in the initial state, both kinds of times, and parameters of several shapes."""
    a = np.array([[-0.5, 1.0], [-1.0, -0.2]])

    def linear(t, y, a, rate):
        return a @ y + rate

    def f(x, a):
        states = solver(method, 1e-9)(linear, x[:2], x[2], np.stack([x[3], x[3], x[4]]), a, x[5])
        return np.sum(states * WEIGHTS[:3])

    gradient = vm.recorded(f, (0, 1), runner=runner)
    for x in (np.array([1.0, 0.5, 0.1, 0.4, 1.5, 0.3]), np.array([0.2, -0.5, 0.0, 0.7, 1.1, -0.1])):
        close_slopes(gradient(x, a), vm.value_and_grad(f, (0, 1))(x, a), 1e-12, 1e-12)
    assert is_loops(gradient)


def test_many_threads_run_one_recording():
    gradient = vm.recorded(weighted("rk45"))
    points = POINT * (1.0 + 0.01 * np.arange(16.0)[:, None])
    expected = [gradient(x) for x in points]
    with ThreadPoolExecutor(4) as executor:
        found = list(executor.map(gradient, np.repeat(points, 4, axis=0)))
    for i, (value, g) in enumerate(found):
        assert value == expected[i // 4][0]
        equal(g, expected[i // 4][1])
    values, gradients = gradient.map(points, executor="threads")
    equal(values, [value for value, _ in expected])
    equal(gradients, [g for _, g in expected])


def test_what_f_refuses_is_said_in_its_words():
    def sinking(t, y, speed):
        return -speed + 0.0 * vm.normal_lpdf(0.0, 0.0, y)

    def f(speed):
        return vm.ode_rk45(
            lambda t, y, speed: np.stack([sinking(t, y[0], speed)]), [1.0], 0.0, [1.0], speed
        )[0, 0]

    gradient = vm.recorded(f)
    assert gradient(0.5) == (pytest.approx(0.5), pytest.approx(-1.0))
    for called in (gradient, vm.value_and_grad(f), f):
        message = r"^normal_lpdf: Scale parameter is -.*, but must be positive!"
        refuses(vm.DomainError, message, called, 1.5)


@pytest.mark.parametrize("method", ["bdf", "adams"])
def test_native_rates_of_other_methods(method, monkeypatch):
    """The rates run natively; their errors are those of the function as written."""
    pytest.importorskip("sksundae", reason="scikit-sundae is not installed")
    found = []
    for native in (False, True):
        monkeypatch.setattr(systems, "native_pays", lambda count, native=native: native)
        found.append(vm.value_and_grad(weighted(method))(POINT))
    close(found[0][0], found[1][0], 1e-11)
    close(found[0][1], found[1][1], 1e-10)

    def f(t, y, speed):
        return -speed + 0.0 * vm.normal_lpdf(0.0, 0.0, y[0]) * y

    with pytest.raises(
        vm.DomainError, match=r"^normal_lpdf: Scale parameter is -.*, but must be positive!"
    ):
        vm.gradient(lambda speed: solver(method)(f, [1.0], 0.0, [2.0], speed)[0, 0], 1.0)


def test_stiff_problems_use_up_their_steps():
    def stiff(t, y, mu):
        return np.stack([y[1], mu * (1.0 - y[0] ** 2) * y[1] - y[0]])

    def f(mu):
        return np.sum(solver("rk45", 1e-6, 40)(stiff, [2.0, 0.0], 0.0, [1.0], mu))

    gradient = vm.recorded(f)
    gradient(1.0)
    for called in (gradient, vm.value_and_grad(f)):
        message = r"^ode_rk45_tol: the solver stopped at t = \S+ after 40 steps .* are used up$"
        refuses(vm.DomainError, message, called, 1000.0)


def test_solutions_that_leave_every_bound():
    gradient = vm.recorded(
        lambda k: vm.ode_rk45(lambda t, y, k: k * y**2, [1.0], 0.0, [2.0], k)[0, 0]
    )
    close(gradient(0.25)[0], 2.0, 1e-5)
    message = r"ode_rk45: the solver stopped at t = 1 after \d+ steps .*: the next step would be "
    refuses(vm.DomainError, message, gradient, 1.0)


def test_recordings_refuse_operands():
    gradient = vm.recorded(
        lambda x: np.sum(solver("rk45")(lotka_volterra, x[:2], x[2], x[3:5], x[5:]))
    )
    good = np.array([33.9, 5.9, 0.0, 1.0, 2.0, 0.55, 0.028, 0.84, 0.026])
    gradient(good)
    for i, bad, message in [
        (0, np.inf, "y0[0] is inf, but must be finite!"),
        (2, 1.0, "t0 is 1.0, but must be less than ts[0], 1.0!"),
        (3, 3.0, "ts[1] is 2.0, but must not be below ts[0], 3.0!"),
        (8, np.nan, "an argument of f has an element nan, but must be finite!"),
    ]:
        x = good.copy()
        x[i] = bad
        refuses(vm.DomainError, f"^{re.escape('ode_rk45_tol: ' + message)}$", gradient, x)


def test_functions_that_have_no_program_are_called():
    """Rates that branch or call unknown functions; a recording calls Python for these."""

    @vm.operation()
    def doubled(y):
        return 2.0 * y

    @doubled.reverse
    def _(g, r, y):
        return 2.0 * g

    @doubled.tangent
    def _(r, y):
        return lambda t: 2.0 * t

    def after(f):
        return lambda k: solver("rk45", 1e-9)(f, [1.0], 0.0, [0.5], k)[0, 0]

    gradient = vm.recorded(after(lambda t, y, k: -0.5 * k * doubled(y)))
    for called in (
        gradient,
        vm.value_and_grad(after(lambda t, y, k: -k * y if y[0] > 0.5 else 0.0 * y)),
    ):
        for k in (1.0, 0.5):
            expected = (pytest.approx(np.exp(-0.5 * k)), pytest.approx(-0.5 * np.exp(-0.5 * k)))
            assert called(k) == expected
    assert not is_loops(gradient)


def test_a_step_cut_short_leaves_the_next_as_it_is(monkeypatch):
    """Output times close to each other cost one step each."""
    taken = steps_of_scipy(monkeypatch)
    pairs = np.arange(1.0, 6.0)[:, None] + [0.0, 1e-9]

    def steps(ts):
        taken.clear()
        solver("rk45", 1e-8)(lotka_volterra, POINT[4:6], 0.0, ts, POINT[:4])
        return len(taken)

    assert steps(pairs.ravel()) == steps(pairs[:, 0]) + 5
