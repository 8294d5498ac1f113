"""Stiff problems as loops of programs: the same steps and refusals as through SciPy."""

import numpy as np
import pytest
import scipy.integrate
from comparing import close, refuses

import varmat as vm
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.run import has_native
from varmat.solvers import steppers, sundials

RUNNERS = ["numpy", *(["native"] if has_native() else [])]


def robertson(t, y, k):
    a, b, c = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
    return np.stack([-a + b, a - b - c, c])


def van_der_pol(t, y, mu):
    return np.stack([y[1], mu[0] * (1.0 - y[0] ** 2) * y[1] - y[0]])


def elimination(t, y, th):
    """Michaelis-Menten elimination of an oral dose, which branches at the initial time."""
    dose = 15.0 * th[0] * np.exp(-th[0] * t) if t > 0.0 else 0.0
    return np.stack([dose - th[2] * y[0] / (th[1] + y[0])])


def linear(t, y, k):
    return np.array([[-1.0, 1.0], [0.0, -1000.0]]) @ y * k[0] + k[1]


# Rates, initial state, parameters and times: some repeat or lie within one step.
PROBLEMS = {
    "Robertson": (robertson, [1.0, 0.0, 0.0], [0.04, 1e4, 3e7], [0.4, 40.0, 4e3]),
    "van der Pol": (van_der_pol, [2.0, 0.0], [1000.0], [1.0, 500.0, 800.0]),
    "elimination": (elimination, [0.0], [1.2, 0.5, 4.5], [0.5, 1.0, 1.0, 1.0 + 1e-9, 5.0, 12.0]),
    "linear": (linear, [1.0, 2.0], [1.3, 0.4], [1e-3, 0.1, *np.linspace(2.9, 3.0, 40)]),
}


def weighted(name, tolerance, most=100_000):
    """A scalar function of the initial state and parameters, and of the times; and a point."""
    f, start, parameters, ts = PROBLEMS[name]
    n, weights = len(start), np.cos(np.arange(len(ts) * len(start))).reshape(len(ts), -1)

    def of_point(x, ts):
        return np.sum(
            weights * vm.ode_bdf_tol(f, x[:n], 0.0, ts, tolerance, 1e-3 * tolerance, most, x[n:])
        )

    return of_point, (np.array([*start, *parameters]), np.array(ts))


def count_of_loops(gradient):
    counts = gradient.program.counts()
    assert not counts["ode_solution"]
    return counts["loop"]


@pytest.fixture
def taken(monkeypatch):
    """The steps from each output time on that SciPy takes."""
    steps, go = [], steppers._go
    monkeypatch.setattr(steppers, "_go", lambda *args: (steps.append(args[2]), go(*args)))
    return steps


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
@pytest.mark.parametrize("name", PROBLEMS)
def test_steps_are_those_of_scipy(name, tolerance, taken):
    """Equal states and derivatives up to rounding, and equal numbers of steps between times."""
    function, point = weighted(name, tolerance)
    expected, of_eager = vm.value_and_grad(function, (0, 1))(*point)
    fewest = 1 + max(taken)
    for runner in RUNNERS:
        for most in (fewest, fewest - 1):
            gradient = vm.recorded(weighted(name, tolerance, most)[0], (0, 1), runner=runner)
            gradient(point[0], 1e-4 * point[1])  # where a few steps lead to the end
            assert count_of_loops(gradient)
            if most < fewest:
                refuses(vm.DomainError, "the steps that it may take are used up", gradient, *point)
                continue
            value, found = gradient(*point)
            close(value, expected, 1e-12)
            for g, e in zip(found, of_eager, strict=True):
                close(g, e, 1e-10, 1e-10 * np.max(np.abs(e)))


@pytest.mark.parametrize("name", PROBLEMS)
def test_states_are_those_of_scipy(name):
    """Of the state alone, without derivatives, through `scipy.integrate.solve_ivp`."""
    f, start, parameters, ts = PROBLEMS[name]
    ts = np.unique(ts)
    rates = lambda t, y: f(t, y, parameters)  # noqa: E731
    jacobian = lambda t, y: vm.jacobian(lambda y: rates(t, y), y)  # noqa: E731
    settings = {"rtol": 1e-7, "atol": 1e-9, "jac": jacobian}
    solution = scipy.integrate.solve_ivp(rates, (0.0, ts[-1]), start, "BDF", ts, **settings)
    states = vm.ode_bdf_tol(f, start, 0.0, ts, 1e-7, 1e-9, 10_000, parameters)
    close(states, solution.y.T, 1e-11, 1e-14)


def test_gradients_of_a_solution_without_parameters_and_hessians():
    def in_times(ts):
        return vm.ode_bdf(lambda t, y: -50.0 * (y - np.cos(t)), [1.0], 0.0, ts)[-1, 0]

    gradient, ts = vm.recorded(in_times), np.array([0.1, 0.7])
    y, slopes = gradient(ts)
    close(slopes, [0.0, -50.0 * (y - np.cos(0.7))], 1e-9)
    assert count_of_loops(gradient) == 2

    def decayed(x):
        return vm.ode_bdf_tol(
            lambda t, y, k: -k * y, x[:1], 0.0, [1.5], 1e-10, 1e-10, 10_000, x[1]
        )[0, 0]

    x = np.array([2.0, 0.7])
    exact = np.exp(-1.05) * np.array([[0.0, -1.5], [-1.5, 4.5]])
    hessian = vm.recorded(vm.hessian(decayed))
    for point in (np.array([1.0, 0.1]), x):
        found = hessian(point)
    close(found, exact, 1e-6, 1e-7)


def test_a_newer_jacobian_is_used(taken):
    """A state that becomes stiff: Newton's method does not converge with the first Jacobian, and
    the program does without Python what SciPy does.
    """

    def f(x):
        def rates(t, y, k):
            return -k * (1.0 + 1e4 * t**4) * (y**3 - np.sin(t))

        return np.sum(vm.ode_bdf_tol(rates, [1.0], 0.0, [2.0, 5.0], 1e-6, 1e-8, 10_000, x))

    gradient = vm.recorded(f)
    gradient(1.0)
    taken.clear()
    (value, slope), (expected, of_eager) = gradient(30.0), vm.value_and_grad(f)(30.0)
    steps = len(taken)
    close(value, expected, 1e-10)
    close(slope, of_eager, 1e-8)
    taken.clear()
    vm.value_and_grad(f)(30.0)
    assert len(taken) == steps  # the recording took none of SciPy's


def ended(rates, y0, ts, *args):
    return vm.ode_bdf_tol(rates, y0, 0.0, ts, 1e-6, 1e-6, 1_000, *args)


@pytest.mark.parametrize(("rates", "good", "bad", "message"), [
    (lambda t, y, k: -y * np.sqrt(k - t + 0.0 * y), 2.0, 0.5, "the next step would be too small"),
    (lambda t, y, k: k * y**2, 0.25, 1.5, "the next step would be too small"),
    (lambda t, y, k: np.log(k * y), 2.0, -1.0, "the rates of change are not finite"),
    (lambda t, y, k: 1e-5 * np.sin(k * t) * k**1.2 + 0.0 * y, 1.0, 1e5, "used up"),
], ids=["not finite", "infinite", "not finite at first", "oscillation"])  # fmt: skip
def test_refusals(rates, good, bad, message):
    """They are those of the operation itself, recorded or not."""

    def f(k):
        return ended(rates, [1.0], [1.0], k)[0, 0]

    gradient = vm.recorded(f)
    gradient(good)
    assert count_of_loops(gradient)
    refuses(ElsewhereError, None, interpret, gradient.program, np.array(bad))
    for called in (gradient, vm.value_and_grad(f)):
        with pytest.raises(
            vm.DomainError, match=rf"^ode_bdf_tol: the solver stopped at t = \S+ after .*{message}"
        ):
            called(bad)


def test_rates_without_second_derivatives():
    """Newton's method then does without how the derivatives' rates depend on the state."""

    @vm.operation()
    def square(y):
        return y * y

    @square.reverse
    def _(g, r, y):
        return 2.0 * g * y

    @square.tangent
    def _(r, y):
        slopes = 2.0 * np.array(y.tolist())  # of numbers alone
        return lambda t: slopes * t

    def f(k):
        return ended(lambda t, y, k: -k * square(y), [1.0], [2.0], k)[0, 0]

    for called in (vm.value_and_grad(f), vm.recorded(f)):
        value, slope = called(0.5)
        close(value, 0.5, 1e-5)
        close(slope, -0.5, 1e-4)


def test_older_names_need_no_python():
    def of_older(k):
        rates = lambda t, y, theta, x_r, x_i: -theta[0] * y  # noqa: E731
        return vm.integrate_ode_bdf(rates, [1.0], 0.0, [1.0, 2.0], np.stack([k]), [], [])[1, 0]

    gradient = vm.recorded(of_older)
    expected = (pytest.approx(np.exp(-1.0), rel=1e-4), pytest.approx(-2.0 * np.exp(-1.0), rel=1e-4))
    assert gradient(0.5) == expected
    assert count_of_loops(gradient)


@pytest.mark.skipif(not sundials.has_sundials(), reason="scikit-sundae is not installed")
def test_sundials_goes_on_close_to_rounding_errors():
    """At the jumps of a relaxation oscillator, with the default tolerances."""

    def f(mu):
        return np.sum(vm.ode_bdf(van_der_pol, [2.0, 0.0], 0.0, [500.0, 900.0], [mu]))

    def with_slopes(t, z):
        y, s = z[:2], z[2:]
        force = (1.0 - y[0] ** 2) * y[1]
        slope = 1000.0 * ((1.0 - y[0] ** 2) * s[1] - 2.0 * y[0] * y[1] * s[0]) - s[0] + force
        return [*van_der_pol(t, y, [1000.0]), s[1], slope]

    args = with_slopes, (0.0, 900.0), [2.0, 0.0, 0.0, 0.0], "Radau", [500.0, 900.0]
    solution = scipy.integrate.solve_ivp(*args, rtol=1e-9, atol=1e-9)
    value, slope = vm.value_and_grad(f)(1000.0)
    close(value, np.sum(solution.y[:2]), 1e-6)
    close(slope, np.sum(solution.y[2:]), 0.05)  # two phases that drift apart
