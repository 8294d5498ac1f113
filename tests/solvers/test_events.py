"""Doses, inputs and groups of subjects: against exponentials of matrices in 50 digits, by all
routes, and what is refused.
"""

import re
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from comparing import close, close_slopes, refuses

import varmat as vm
from varmat.solvers import initial_values, intervals
from varmat.testing import Tolerances, expect_ad

TOLERANCES = Tolerances(
    value=1e-8, forward=1e-7, rounding=1e-7, hessian=1e-5, hessian_finite_difference=1e-4
)
FINE = {"rel_tol": 1e-11, "abs_tol": 1e-11, "max_num_steps": 100_000}
METHODS = ["rk45", "ckrk", "bdf", "adams"]
NAMES = ["y0", "t0", "ts", "event_times", "additions", "input_times", "values", "rates"]
POINT = {
    "y0": [5.0, 1.0, 0.5], "t0": 0.25, "ts": [1.0, 2.0, 3.5, 6.0],
    "event_times": [0.5, 2.5, 4.0],
    "additions": [[80.0, 0.0, 0.0], [60.0, 1.0, 0.0], [0.0, 30.0, 2.0]],
    "input_times": [1.5, 3.0], "values": [10.0, 0.5], "rates": [1.2, 0.4, 0.3, 0.2],
}  # fmt: skip


def amounts(t, y, infusion, rates):
    ka, out, there, back = rates
    inside = infusion + ka * y[0] - (out + there) * y[1] + back * y[2]
    return np.stack([-ka * y[0], inside, there * y[1] - back * y[2]])


def decay(t, y, k):
    return -k * y


def filling(t, y, u, k):
    return u - k * y


def solved(y0, t0, ts, event_times, additions, input_times, values, rates, **settings):
    return vm.solve_ode(
        amounts, y0, t0, ts, rates, events=(event_times, additions),
        inputs=(input_times, values), **{**FINE, **settings},
    )  # fmt: skip


def exact(numbers):
    """The states in 50 digits: each interval is an exponential of the matrix of the system with the
    input as a fourth state. An output comes before what happens at its time.
    """
    place = iter(numbers)
    given = {
        name: np.array([next(place) for _ in range(np.size(x))], dtype=object).reshape(np.shape(x))
        for name, x in POINT.items()
    }
    ka, out, there, back = given["rates"]
    stops = [(t, 0, i) for i, t in enumerate(given["ts"])]
    stops += [(t, 1, i) for i, t in enumerate(given["event_times"])]
    stops += [(t, 2, i) for i, t in enumerate(given["input_times"])]
    now, y, u, found = given["t0"].item(), mpmath.matrix([*given["y0"], 1]), given["values"][0], {}
    for t, kind, i in sorted(stops, key=lambda stop: stop[:2]):
        rate = mpmath.matrix(
            [[-ka, 0, 0, 0], [ka, -out - there, back, u], [0, there, -back, 0], [0, 0, 0, 0]]
        )
        y, now = mpmath.expm(rate * (t - now)) * y, t
        if kind == 0:
            found[i] = [*y[:3]]
        elif kind == 1:
            y = mpmath.matrix([*(y[j] + given["additions"][i, j] for j in range(3)), 1])
        else:
            u = given["values"][i]
    return np.array([found[i] for i in range(len(found))], dtype=object)


WEIGHTS = np.array([[0.3, 1.0, 0.2], [0.1, -0.7, 0.4], [0.5, 0.6, -0.3], [-0.2, 0.9, 0.8]])


@pytest.fixture(scope="module")
def expected():
    """The states, and the gradient of their weighted sum by differences of 20 digits."""
    with mpmath.workdps(60):
        flat = [mpmath.mpf(x) for name in NAMES for x in np.ravel(POINT[name]).tolist()]

        def total(numbers):
            return (WEIGHTS * exact(numbers)).sum()

        gradient, h = [], mpmath.mpf(10) ** -25
        for i in range(len(flat)):
            up, down = [*flat], [*flat]
            up[i] += h
            down[i] -= h
            gradient.append(float((total(up) - total(down)) / (2 * h)))
        return exact(flat).astype(float), np.array(gradient)


def point():
    return [np.array(POINT[name]) if np.ndim(POINT[name]) else POINT[name] for name in NAMES]


def flat_gradient(found):
    return np.concatenate([np.ravel(x) for x in found])


@pytest.mark.parametrize("method", METHODS)
def test_values_and_gradients_in_everything(method, expected):
    """The jump at an event adds (f before - f after) times the adjoint to its time's derivative."""
    states, gradient = expected
    close(solved(*point(), method=method), states, 1e-7, 1e-7)

    def f(*args):
        return np.sum(WEIGHTS * solved(*args, method=method))

    value, found = vm.value_and_grad(f, tuple(range(8)))(*point())
    close(value, np.sum(WEIGHTS * states), 1e-7)
    close(flat_gradient(found), gradient, 1e-7, 1e-7)


@pytest.mark.parametrize("runner", ["auto", "numpy"])
@pytest.mark.parametrize("method", ["rk45", "bdf"])
def test_recordings_solve_by_loops(method, runner, expected):
    coarse = {"rel_tol": 1e-4, "abs_tol": 1e-4} if runner == "numpy" else {}

    def f(*args):
        return np.sum(WEIGHTS * solved(*args, method=method, **coarse))

    recorded = vm.recorded(f, tuple(range(8)), runner=runner)
    recorded(*point())
    value, found = recorded(*point())
    counts = recorded.program.counts()
    assert counts["loop"]
    assert not counts["states_at_ends"]
    rtol = 2e-2 if coarse else 1e-7
    close(value, np.sum(WEIGHTS * expected[0]), rtol)
    close(flat_gradient(found), expected[1], rtol, rtol)


def test_times_may_pass_each_other_in_a_recording():
    """A dose with a lag, which is before or after an output. The function is not called again."""
    calls = []

    def f(lag):
        calls.append(lag)
        events = (lag + np.array([0.0, 2.0]), np.array([[1.0], [2.0]]))
        inputs = ([1.5], [0.3])
        y = vm.solve_ode(filling, [0.0], 0.0, [1.0, 3.0], 0.7, events=events, inputs=inputs, **FINE)
        return np.sum(y[:, 0])

    recorded = vm.recorded(f)
    recorded(0.5)
    for lag in (0.5, 0.7, 1.2, 1.7, 0.6, 2.5):
        calls.clear()
        value, slope = recorded(lag)
        assert not calls
        close([value, slope], [*vm.value_and_grad(f)(lag)], 1e-7)
        since = np.array([1.0 - lag, 3.0 - lag, 1.0 - lag])
        doses = np.sum(np.where(since > 0.0, [1.0, 1.0, 2.0] * np.exp(-0.7 * since), 0.0))
        close(value, doses - 0.3 / 0.7 * (np.expm1(-0.7) + np.expm1(-2.1)), 1e-8)
        close(slope, 0.7 * doses, 1e-8)


def test_all_routes_agree():
    """Second derivatives in times, additions, inputs and a rate."""

    def f(t0, when, dose, u, k):
        return vm.solve_ode(
            lambda t, y, u, k: u - k * y * y, [1.2], t0, [0.9, 1.5], k,
            events=(np.stack([when]), np.reshape(dose, (1, 1))), inputs=([0.0, 1.2], u),
            rel_tol=1e-10, abs_tol=1e-10,
        )[:, 0]  # fmt: skip

    expect_ad(f, 0.1, 0.5, 0.7, np.array([0.3, 0.4]), 0.6, tolerances=TOLERANCES)


def test_all_routes_agree_if_times_and_doses_are_data():
    """The sensitivities then go on from stop to stop."""

    def f(rates):
        return vm.solve_ode_group(
            lambda t, y, k: -k * y * y, [1.2], 0.0, [[0.9, 1.5], [2.0]], rates,
            events=[([0.5, 0.9], [0.7]), None], rel_tol=1e-10, abs_tol=1e-10,
        )[:, 0]  # fmt: skip

    expect_ad(f, np.array([0.6, 0.4]), tolerances=TOLERANCES)


def loops_in(program):
    """Count the loops of a program, those in the bodies of its steps included."""
    kernels = [step.kernel for step in program.steps]
    within = sum(loops_in(body) for kernel in kernels for body in kernel.bodies)
    return within + sum(kernel.name == "loop" for kernel in kernels)


@pytest.mark.parametrize("method", ["rk45", "ckrk"])
def test_stages_may_be_written_out(method, monkeypatch):
    """Steps with stages in a loop, as for long rates, are those with stages written out."""
    found = []
    for few in (0, 1000):
        monkeypatch.setattr(initial_values, "FEW_STEPS", few)
        recorded = vm.recorded(
            lambda rates, few=few: np.sum(
                WEIGHTS * solved(*point()[:-1], rates, method=method, rel_tol=1e-5)
            )
        )
        recorded(point()[-1])
        found.append((*recorded(point()[-1]), loops_in(recorded.program)))
    (value, gradient, rolled), (also, slopes, written) = found
    close(value, also, 1e-12)
    close(gradient, slopes, 1e-11)
    assert rolled > written > 0


def test_stops_at_equal_times():
    """An output is the state before what happens at its time; doses at the initial time count."""
    y = vm.solve_ode(
        decay, [1.0], 0.0, [0.0, 0.0, 2.0, 3.0], 0.0,
        events=([0.0, 2.0, 2.0, 3.0, 9.0], [[10.0], [100.0], [1000.0], [1e4], [1e5]]),
    )  # fmt: skip
    close(y[:, 0], [1.0, 1.0, 11.0, 1111.0], 1e-12)
    inputs = ([0.0, 0.5, 1.0], [1.0, 2.0, 3.0])
    y = vm.solve_ode(filling, [0.0], 1.0, [1.0, 2.0], 0.0, inputs=inputs)
    close(y[:, 0], [0.0, 3.0], 1e-12)
    inputs = ([5.0], np.full((1, 2, 3), 7.0))
    y = vm.solve_ode(lambda t, y, u: u[0, :1], [0.0], 1.0, [2.0], inputs=inputs)
    close(y, [[7.0]], 1e-12)
    close(
        vm.solve_ode(decay, [1.0], 0.0, [1.0, 2.0], 1.0, **FINE)[:, 0], np.exp([-1.0, -2.0]), 1e-9
    )


def test_one_addition_for_all_events():
    y = vm.solve_ode(decay, [0.0, 0.0], 0.0, [9.0], 0.0, events=([1.0, 2.0, 3.0], [5.0, 1.0]))
    close(y, [[15.0, 3.0]], 1e-12)


def test_groups_are_their_subjects():
    """Ragged subjects; arguments by subject and for all, variables and data."""
    rng = np.random.default_rng(2)
    counts, doses = [3, 1, 4], [2, 0, 3]
    ts = [1.0 + np.cumsum(rng.exponential(size=n)) for n in counts]
    events = [
        (np.sort(3.0 * rng.random(n)) + 0.5, 20.0 * rng.random((n, 3))) if n else None
        for n in doses
    ]
    inputs = [(np.array([0.0, 1.0]), rng.random(2)) for _ in counts]
    y0, t0 = 10.0 * rng.random((3, 3)), np.array([0.1, 0.3, 0.2])
    weight, weights = np.array([1.0, 2.0, 3.0]), rng.normal(size=(8, 3))

    def change(t, y, u, rates, given, name):
        assert name == "a name"
        return amounts(t, y, u * given["size"], [*rates, given["back"]])

    def group(y0, times, rates, back):
        given = {"size": weight, "back": back}
        y = vm.solve_ode_group(
            change, y0, t0, [ts[0], times, ts[2]], rates, given, "a name",
            events=events, inputs=inputs, **FINE,
        )  # fmt: skip
        return np.sum(weights * y)

    def alone(y0, times, rates, back):
        found = []
        for s in range(3):
            given = {"size": float(weight[s]), "back": back}
            args = y0[s], t0[s], times if s == 1 else ts[s], rates[s], given, "a name"
            own = {"events": events[s], "inputs": inputs[s]}
            found.append(vm.solve_ode(change, *args, **own, **FINE))
        return np.sum(weights * np.concatenate(found))

    args = y0, ts[1], rng.random((3, 3)), 0.4
    for which in ((0, 1, 2, 3), (2, 3)):
        expected = vm.value_and_grad(alone, which)(*args)
        recorded = vm.recorded(group, which)
        recorded(*args)
        for found in (vm.value_and_grad(group, which)(*args), recorded(*args)):
            close(found[0], expected[0], 1e-9)
            close(found[1], expected[1], 1e-7, 1e-8)


def test_groups_without_data_of_their_own():
    y = vm.solve_ode_group(decay, [2.0], 0.0, [[1.0], [1.0, 3.0]], 0.5, **FINE)
    close(y[:, 0], 2.0 * np.exp(-0.5 * np.array([1.0, 1.0, 3.0])), 1e-8)


def ragged(executor, f=decay, count=5):
    """A weighted sum for subjects with one to `count` times, and doses at a time that varies."""
    ts = [1.0 + np.arange(1.0 + s) for s in range(count)]
    weights = np.random.default_rng(3).normal(size=(sum(map(len, ts)), 1))

    def total(rates, dose, lag):
        events = [(np.stack([0.5 + lag, 1.5 + lag]), np.stack([dose, dose])[:, None])] * count
        y0 = np.arange(1.0, count + 1.0)[:, None]
        y = vm.solve_ode_group(f, y0, 0.0, ts, rates, events=events, executor=executor, **FINE)
        return np.sum(weights * y)

    return total


RAGGED = np.linspace(0.3, 0.9, 5), 2.0, 0.1


@pytest.mark.parametrize("which", [(0,), (0, 1, 2)])
def test_groups_are_solved_in_threads(which, monkeypatch):
    """The same as in sequence, natively, in threads and in sequence, recorded and not."""
    expected = vm.value_and_grad(ragged(None), which)(*RAGGED)
    with ThreadPoolExecutor(2) as pool:
        for executor in ("threads", pool, None):
            monkeypatch.setattr(intervals, "LARGE", 0)
            monkeypatch.setattr(intervals, "in_sequence", refused_after_the_first())
            f = ragged(executor)
            value, gradient = vm.value_and_grad(f, which)(*RAGGED)
            monkeypatch.undo()
            recorded = vm.recorded(f, which)
            recorded(*RAGGED)
            for found, slopes in ((value, gradient), recorded(*RAGGED)):
                close(found, expected[0], 1e-8)
                close(flat_gradient(slopes), flat_gradient(expected[1]), 1e-7)
            close(f(*RAGGED), expected[0], 1e-8)
            assert bool(recorded.program.python_steps()) is (executor is not None)


def refused_after_the_first():
    """`in_sequence`, which is called for the first subject only."""
    taken, in_sequence = [], intervals.in_sequence

    def once(*args):
        assert not taken
        taken.append(args)
        return in_sequence(*args)

    return once


def test_threads_leave_what_they_cannot_solve():
    """Subjects that take another branch, rates without a program, and errors."""

    def branches(t, y, k):
        return -k * y if y[0] > 3.0 else -0.5 * k * y

    @vm.operation()
    def unknown(y):
        return -np.asarray(y)

    @unknown.reverse
    def unknown_reverse(g, r, y):
        return -g

    @unknown.tangent
    def unknown_tangent(r, y):
        return lambda t: -t

    for f in (branches, lambda t, y, k: k * unknown(y)):
        expected = vm.value_and_grad(ragged(None, f), 0)(*RAGGED)
        value, gradient = vm.value_and_grad(ragged("threads", f), 0)(*RAGGED)
        close(value, expected[0], 1e-8)
        close(gradient, expected[1], 1e-6)
    rates = np.array([0.1, 1e3, 0.1, 0.1, 0.1])
    message = "^solve_ode_group: the solver stopped at t = "
    for run in (vm.gradient, lambda f, x: f(x)):
        refuses(
            vm.DomainError, message, run,
            lambda k: ragged("threads", lambda t, y, k: k * y**2)(k, 2.0, 0.1), rates,
        )  # fmt: skip


def below(t, y, rate, limit):
    return y[0] - limit


def falling(t, y, rate, limit):
    return -rate * y


def duration(start, t0, lag, dose, rate, limit, **settings):
    """When a second dose has fallen to a limit, and the state then."""
    events = np.stack([lag, 1.0 + lag]), np.stack([0.0 * dose, dose])[:, None]
    return vm.solve_ode_until(
        falling, below, np.stack([start]), t0, 50.0, rate, limit, events=events,
        **{**FINE, **settings},
    )  # fmt: skip


def exact_duration(start, t0, lag, dose, rate, limit):
    """start exp(-rate (t - t0)) + dose exp(-rate (t - 1 - lag)) = limit"""
    return np.log((start * np.exp(rate * t0) + dose * np.exp(rate * (1.0 + lag))) / limit) / rate


UNTIL = (5.0, 0.2, 0.5, 3.0, 0.4, 2.0)


@pytest.mark.parametrize("method", METHODS)
def test_an_end_by_a_condition(method):
    """The time and the state, with gradients in all arguments and in the time of a dose."""
    t, y = duration(*UNTIL, method=method)
    close(t, exact_duration(*UNTIL), 1e-9)
    close(y, [2.0], 1e-8)
    every = tuple(range(6))
    expected = vm.grad(exact_duration, every)(*UNTIL)
    close(vm.grad(lambda *x: duration(*x, method=method)[0], every)(*UNTIL), expected, 1e-7)
    of_state = vm.grad(lambda *x: duration(*x, method=method)[1][0], every)(*UNTIL)
    close(of_state, [0.0] * 5 + [1.0], 1e-6, 1e-7)


def test_derivatives_of_an_end_by_other_routes():
    def f(x, tolerance=1e-11):
        return duration(*x, rel_tol=tolerance, abs_tol=tolerance)[0]

    def exact(x):
        return exact_duration(*x)

    x, recorded = np.array(UNTIL), vm.recorded(f)
    close(vm.hessian(lambda x: f(x, 1e-9), x), vm.hessian(exact, x), 1e-5, 1e-7)
    for factor in (1.0, 1.0, 1.02):
        close_slopes(recorded(factor * x), vm.value_and_grad(exact)(factor * x), 1e-7)


def test_only_the_solution_crosses_zero():
    """A dose that passes the limit does not end the solution; inputs hold as in `solve_ode`."""
    t, _ = vm.solve_ode_until(
        falling, below, [1.0], 0.0, 50.0, 1.0, 2.0, events=([1.0], [9.0]), **FINE
    )
    close(t, 1.0 + np.log((9.0 + np.exp(-1.0)) / 2.0), 1e-8)
    inputs = ([0.0, 2.0], [0.0, 3.0])
    f = lambda t, y, u, rate, limit: u + 0.0 * y  # noqa: E731
    for limit in (2.5, 3.0):
        t, y = vm.solve_ode_until(f, below, [1.0], 0.0, 9.0, 1.0, limit, inputs=inputs, **FINE)
        close([t, *y], [2.0 + (limit - 1.0) / 3.0, limit], 1e-9)


# The function, arguments that are right, and of each call what is wrong.
ONE = (vm.solve_ode, {"y0": [1.0], "t0": 0.0, "ts": [1.0, 2.0], "k": 0.5})
GROUP = (vm.solve_ode_group, {"y0": [1.0], "t0": 0.0, "ts": [[1.0], [2.0]], "k": 0.5})
END = (vm.solve_ode_until, {"condition": below, "y0": [5.0], "t0": 0.0, "t_max": 9.0, "k": 0.4,
                            "limit": 2.0})  # fmt: skip
ROWS = "but must have a row for each of the 2 subjects!"
REFUSED = [
    (ONE, {"t0": 1.5}, vm.DomainError, "ts[0] is 1.0, but must not be below t0, 1.5!"),
    (ONE, {"ts": [2.0, 1.0]}, vm.DomainError, "ts[1] is 1.0, but must not be below ts[0], 2.0!"),
    (ONE, {"ts": []}, vm.ShapeError, "ts has no elements, but must have at least one!"),
    (ONE, {"y0": [np.nan]}, vm.DomainError, "y0[0] is nan, but must be finite!"),
    (ONE, {"k": np.inf}, vm.DomainError,
     "an argument of f has an element inf, but must be finite!"),
    (ONE, {"events": ([-0.5], [[1.0]])}, vm.DomainError,
     "event_times[0] is -0.5, but must not be below t0, 0.0!"),
    (ONE, {"events": ([0.5, 0.2], [1.0])}, vm.DomainError,
     "event_times[1] is 0.2, but must not be below event_times[0], 0.5!"),
    (ONE, {"events": ([0.5], [[1.0, 2.0]])}, vm.ShapeError,
     "additions has shape (1, 2), but must have shape (1, 1)!"),
    (ONE, {"events": ([0.5], [[np.nan]])}, vm.DomainError,
     "additions has an element that is not finite!"),
    (ONE, {"events": [0.5]}, TypeError, "events must be a pair (times, additions)!"),
    (ONE, {"inputs": ([0.0, 1.0], [1.0])}, vm.ShapeError,
     "values has shape (1,), but must have a row for each of the input_times, 2!"),
    (ONE, {"inputs": ([], [])}, vm.ShapeError,
     "values has shape (0,), but must have at least one row!"),
    (ONE, {"inputs": ([1.0, 0.0], [1.0, 2.0])}, vm.DomainError,
     "input_times[1] is 0.0, but must not be below input_times[0], 1.0!"),
    (ONE, {"method": "rk4"}, vm.DomainError,
     "method is 'rk4', but must be 'rk45', 'ckrk', 'bdf' or 'adams'!"),
    (ONE, {"rel_tol": 0.0}, vm.DomainError, "rel_tol is 0.0, but must be positive and finite!"),
    (GROUP, {"y0": [[1.0]]}, vm.ShapeError, f"y0 has shape (1, 1), {ROWS}"),
    (GROUP, {"y0": [[1.0], [np.inf]]}, vm.DomainError,
     "subject 1: y0[0] is inf, but must be finite!"),
    (GROUP, {"t0": [0.0]}, vm.ShapeError, f"t0 has shape (1,), {ROWS}"),
    (GROUP, {"ts": [[1.0], [3.0, 2.0]]}, vm.DomainError,
     "subject 1: ts[1] is 2.0, but must not be below ts[0], 3.0!"),
    (GROUP, {"events": [None]}, vm.ShapeError, f"events has shape (1,), {ROWS}"),
    (GROUP, {"executor": "processes"}, TypeError,
     "executor is 'processes', but must be a ThreadPoolExecutor or \"threads\"!"),
    (GROUP, {"k": [np.ones(3)]}, vm.ShapeError, f"an argument has shape (3,), {ROWS}"),
    (END, {"t_max": 1.0}, vm.DomainError, "the condition does not cross zero up to t_max, 1.0!"),
    (END, {"t_max": 0.0}, vm.DomainError, "t_max is 0.0, but must be finite and above t0!"),
    (END, {"t_max": np.inf}, vm.DomainError, "t_max is inf, but must be finite and above t0!"),
    (END, {"t0": np.nan}, vm.DomainError, "t0 is nan, but must be finite!"),
    (END, {"condition": lambda t, y, *_: y}, vm.ShapeError,
     "the condition has shape (1,), but must be a number!"),
    (END, {"events": ([-1.0], [1.0])}, vm.DomainError,
     "event_times[0] is -1.0, but must not be below t0, 0.0!"),
    (END, {"method": "rk4"}, vm.DomainError,
     "method is 'rk4', but must be 'rk45', 'ckrk', 'bdf' or 'adams'!"),
]  # fmt: skip


@pytest.mark.parametrize(("solver", "given", "error", "message"), REFUSED)
def test_what_is_refused(solver, given, error, message):
    """Before anything is recorded."""
    solve, right = solver
    rates = falling if solver is END else filling if "inputs" in given else decay
    with vm.nested():
        settings = {**right, **given}
        if solver is ONE and "k" not in given:
            settings["k"] = vm.var(0.5)
        args = [settings.pop(name) for name in right]
        text = f"^{re.escape(f'{solve.__name__}: {message}')}$"
        refuses(error, text, solve, rates, *args, **settings)
