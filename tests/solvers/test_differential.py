"""Differential equations: closed forms, reference solutions, derivatives by all routes, Stan's
values, and what is refused.
"""

import re

import numpy as np
import pytest
from comparing import close, close_slopes, refuses
from stan import entries, number

import varmat as vm
from varmat.solvers import differential, sundials, systems
from varmat.testing import Tolerances, expect_ad

# Stan's default tolerances are too wide for some of the comparisons.
FINE = (1e-11, 1e-11, 100_000)
METHODS = ["rk45", "ckrk", "bdf", "adams"]
ADJOINT = (1e-11,) * 6 + (100_000, 100, 1)


def solver(method, limits=FINE):
    """(f, y0, t0, ts, *args) -> states."""
    if method.startswith("adjoint"):
        which = 1 + (method == "adjoint bdf")
        return lambda f, y0, t0, ts, *args: vm.ode_adjoint_tol_ctl(
            f, y0, t0, ts, *ADJOINT, which, which, *args
        )
    return lambda f, y0, t0, ts, *args: getattr(vm, f"ode_{method}_tol")(
        f, y0, t0, ts, *limits, *args
    )


def linear(t, y, a):
    return a @ y


def lotka_volterra(t, y, th):
    return [th[0] * y[0] - th[1] * y[0] * y[1], -th[2] * y[1] + th[3] * y[0] * y[1]]


def oscillator(t, y, th):
    return np.stack([y[1], -y[0] - th * y[1] + 0.1 * np.sin(t)])


def damped(t, y, theta, x_r, x_i):
    return np.stack([y[1], -y[0] - theta[0] * y[1]])


MODELS = {
    "Lotka-Volterra": lotka_volterra, "forced damped oscillator": oscillator, "dy0=y1": damped,
}  # fmt: skip


def called(entry):
    """The function that an entry of the reference values is about."""
    name, f = entry["function"], MODELS[entry["model"]]
    more = (1e-10,) * 6 + (100_000, 100, 1, 2, 2) if "adjoint" in name else ()
    rest = ([], []) if name.startswith("integrate") else ()
    return lambda y0, t0, ts, th: getattr(vm, name)(f, y0, t0, ts, *more, th, *rest)


@pytest.fixture(params=["SUNDIALS", "SciPy"])
def backend(request, monkeypatch):
    if request.param == "SUNDIALS":
        pytest.importorskip("sksundae", reason="scikit-sundae is not installed")
    monkeypatch.setattr(sundials, "has_sundials", lambda: request.param == "SUNDIALS")
    return request.param


@pytest.mark.parametrize("entry", entries("differential_equations"))
def test_agrees_with_stan(entry):
    """Both are accurate to the tolerances of their steps."""
    args = [np.asarray(number(x)) if isinstance(x, list) else x for x, _ in entry["args"]]
    gradients = [g for _, g in entry["args"]]
    f, weights = called(entry), np.array(entry["weights"])
    rtol = 1e-4 if "rk" in entry["function"] or entry["function"].startswith("integrate") else 2e-7
    close(f(*args), entry["output"], rtol)
    wanted = tuple(i for i, g in enumerate(gradients) if g is not None)
    if wanted:
        found = vm.grad(lambda *args: np.sum(weights * f(*args)), wanted)(*args)
        for i, g in zip(wanted, found, strict=True):
            close(g, gradients[i], rtol, rtol)


@pytest.mark.parametrize("entry", entries("differential_equations", throws=True))
def test_refuses_what_stan_refuses(entry):
    args = [number(x) if isinstance(x, (list, str)) else x for x, _ in entry["args"]]
    refuses((vm.DomainError, vm.ShapeError), None, lambda: called(entry)(*args))


@pytest.mark.parametrize("method", [*METHODS, "adjoint adams", "adjoint bdf"])
def test_linear_systems(method, backend):
    """exp(a t) y0, whose derivatives are those of varmat's matrix exponential."""
    a = np.array([[-0.5, 1.0], [-1.0, -0.2]])
    y0, ts = np.array([1.0, 0.5]), np.array([0.4, 1.5])
    weights = np.array([[1.0, -0.5], [0.7, 0.3]])

    def exact(y0, t0, ts, a):
        states = np.stack([vm.matrix_exp(a * (ts[i] - t0)) @ y0 for i in range(2)])
        return np.sum(weights * states)

    def solved(y0, t0, ts, a):
        return np.sum(weights * solver(method)(linear, y0, t0, ts, a))

    args = (y0, 0.1, ts, a)
    found, expected = (vm.value_and_grad(f, (0, 1, 2, 3))(*args) for f in (solved, exact))
    close_slopes(found, expected, 2e-7, 1e-8)


def test_all_routes_agree():
    """The methods differ only in their steps. The next test has second derivatives in the state."""

    def f(t0, ts, k):
        return vm.ode_rk45_tol(lambda t, y, k: -k * y * t, [1.2], t0, ts, 1e-9, 1e-9, 10_000, k)[0]

    # The steps depend on how many sensitivities are integrated with the state.
    tolerances = Tolerances(
        value=1e-8, forward=1e-7, rounding=1e-7, hessian=1e-5, hessian_finite_difference=1e-4
    )
    expect_ad(f, 0.1, np.array([0.3]), 0.6, tolerances=tolerances)


def test_hessians_of_a_closed_form():
    """exp(-k t): second derivatives in k and in the initial state."""

    def f(x):
        return vm.ode_rk45_tol(lambda t, y, k: -k * y, x[:1], 0.0, [1.5], *FINE, x[1])[0, 0]

    def exact(x):
        return x[0] * np.exp(-1.5 * x[1])

    x = np.array([2.0, 0.7])
    close(vm.hessian(f, x), vm.hessian(exact, x), 1e-8, 1e-9)
    expected = vm.hessian(exact, x) @ [1.0, 2.0]
    close(vm.hessian_times_vector(f, x, np.array([1.0, 2.0])), expected, 1e-8)


def robertson(t, y, k):
    a, b, c = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
    return np.stack([-a + b, a - b - c, c])


def test_robertson():
    """A stiff system: the state at t = 40 in SUNDIALS' documentation, and the conserved sum, which
    depends on no parameter.
    """
    k = np.array([0.04, 1e4, 3e7])
    states, pullback = vm.vjp(
        lambda k: vm.ode_bdf_tol(
            robertson, [1.0, 0.0, 0.0], 0.0, [0.4, 40.0], 1e-7, 1e-12, 10_000, k
        ),
        k,
    )
    close(states[0], [9.8517e-01, 3.3864e-05, 1.4794e-02], 1e-4)
    close(states[1], [7.1583e-01, 9.1855e-06, 2.8416e-01], 1e-4)
    close(np.sum(states, axis=1), 1.0, 1e-6)
    (in_sum,) = pullback(np.array([[0.0] * 3, [1.0] * 3]))
    close(in_sum * k, 0.0, 1e-7, 1e-5)
    (gradient,) = pullback(np.array([[0.0] * 3, [1.0, 0.0, 0.0]]))

    def shifted(i, h):
        moved = k * (1.0 + h * (np.arange(3) == i))
        return vm.ode_bdf_tol(robertson, [1.0, 0.0, 0.0], 0.0, [40.0], 1e-9, 1e-13, 100_000, moved)[
            0, 0
        ]

    differences = [(shifted(i, 1e-3) - shifted(i, -1e-3)) / (2e-3 * k[i]) for i in range(3)]
    close(gradient, differences, 1e-4)


def test_parameters_in_structures_and_data():
    def pharmacokinetic(t, y, p, dose, absorbed):
        rate = p["rates"][0] * dose
        return [-p["rates"][0] * y[0] if absorbed else -rate, rate * y[0] - p["rates"][1] * y[1]]

    def after(ka, ke):
        return vm.ode_rk45_tol(
            pharmacokinetic, [1.0, 0.0], 0.0, [2.0], *FINE, {"rates": [ka, ke]}, 1.0, True
        )[0, 1]

    ka, ke = 1.3, 0.4
    exact = ka / (ka - ke) * (np.exp(-2.0 * ke) - np.exp(-2.0 * ka))
    close(after(ka, ke), exact, 1e-9)
    expected = vm.gradient(lambda ka: ka / (ka - ke) * (np.exp(-2.0 * ke) - np.exp(-2.0 * ka)), ka)
    close(vm.gradient(after, ka, ke), expected, 1e-8)


@pytest.mark.parametrize("method", ["rk45", "bdf"])
def test_rates_may_be_written_into_an_array(method):
    def written(t, y, th):
        rates = vm.numpy.zeros(2)
        rates[0], rates[1] = lotka_volterra(t, y, th)
        return rates

    def last(f):
        return lambda th: np.sum(solver(method)(f, np.array([1.0, 0.5]), 0.0, np.array([2.0]), th))

    theta = np.array([0.6, 0.3, 0.8, 0.4])
    found, expected = (vm.value_and_grad(last(f))(theta) for f in (written, lotka_volterra))
    close_slopes(found, expected, 1e-12)


def test_the_error_of_sensitivities_is_controlled():
    """The state is constant but its derivative is not: the steps must be small enough for it."""
    solve = solver("rk45", (1e-8, 1e-10, 10_000))
    rates = lambda t, y, k: k * np.cos(20.0 * t) + 0.0 * y  # noqa: E731
    gradient = vm.gradient(lambda k: solve(rates, [0.0], 0.0, [3.0], k)[0, 0], 0.0)
    close(gradient, np.sin(60.0) / 20.0, 1e-6)


def test_few_evaluations():
    """Sensitivities are integrated with the state: the system is called once at each stage, and
    recorded at the second.
    """
    calls = []

    def f(t, y, k):
        calls.append(1)
        return -k * y

    vm.gradient(lambda k: vm.ode_rk45(f, [1.0], 0.0, [1.0], k)[0, 0], 0.5)
    assert len(calls) <= 4


NAMES = [f"ode_{method}{tol}" for method in METHODS for tol in ("", "_tol")]


@pytest.mark.parametrize("name", NAMES)
def test_messages_name_the_function_that_was_called(name):
    limits = FINE if name.endswith("_tol") else ()

    def call(y0=(1.0, 0.0), t0=0.0, ts=(1.0, 2.0), th=0.1, f=oscillator):
        return getattr(vm, name)(f, np.array(y0), t0, np.array(ts), *limits, th)

    for given, error, message in [
        ({"y0": [np.nan, 0.0]}, vm.DomainError, "y0[0] is nan, but must be finite!"),
        ({"y0": []}, vm.ShapeError, "y0 has no elements, but must have at least one!"),
        ({"y0": [[1.0]]}, vm.ShapeError, "y0 has shape (1, 1), but must be a vector!"),
        ({"t0": 1.0}, vm.DomainError, "t0 is 1.0, but must be less than ts[0], 1.0!"),
        ({"t0": np.inf}, vm.DomainError, "t0 is inf, but must be finite!"),
        ({"ts": [2.0, 1.0]}, vm.DomainError, "ts[1] is 1.0, but must not be below ts[0], 2.0!"),
        ({"th": np.nan}, vm.DomainError,
         "an argument of f has an element nan, but must be finite!"),
        ({"y0": [1.0, 0.0, 2.0]}, vm.ShapeError,
         "f returns rates of shape (2,), but must return one for each state, (3,)!"),
        ({"f": 3.0}, TypeError, "the function is a float, but must be a function!"),
    ]:  # fmt: skip
        refuses(error, f"^{re.escape(f'{name}: {message}')}$", call, **given)


@pytest.mark.parametrize("method", METHODS)
def test_steps_are_limited(method, backend):
    solve = solver(method, (1e-10, 1e-10, 3))
    message = rf"^ode_{method}_tol: the solver stopped at t = "
    refuses(vm.DomainError, message, solve, oscillator, [1.0, 0.0], 0.0, [50.0], 0.1)


def test_settings_are_checked():
    given = oscillator, [1.0, 0.0], 0.0, [1.0]
    message = r"^ode_rk45_tol: rel_tol is 0\.0, but must be positive and finite!$"
    refuses(vm.DomainError, message, vm.ode_rk45_tol, *given, 0.0, 1e-6, 100, 0.1)
    message = r"^ode_adjoint_tol_ctl: solver_forward is 3, but must be 1 or 2!$"
    refuses(vm.DomainError, message, vm.ode_adjoint_tol_ctl, *given, *ADJOINT, 3, 1, 0.1)


def test_variables_from_outside_are_refused():
    with pytest.raises(vm.TapeError, match="ode_rk45: the function uses a Var"):
        vm.gradient(lambda k: vm.ode_rk45(lambda t, y: -k * y, [1.0], 0.0, [1.0])[0, 0], 0.5)
    assert differential.ONE_STEP[0] == 1e-6


# Rates for which no solver gets to the end, or none that is not for stiff equations.
BAD = {
    "nan at once": lambda t, y: np.log(-y * y),
    "infinite at once": lambda t, y: 1.0 / (y - y),
    "nan where a state is zero": lambda t, y: -np.sqrt(y),
    "nan from a time on": lambda t, y: -y * np.sqrt(0.55 - t + 0.0 * y),
    "infinite in finite time": lambda t, y: y * y,
    "infinite sooner": lambda t, y: np.exp(y),
    "fast oscillation": lambda t, y: 1e5 * np.stack([y[1], -y[0]]),
}  # fmt: skip
# These use up the steps of the one-step methods too, which takes the others long to try.
BAD_FOR_ONE_STEP = {
    "overflow": lambda t, y: 1000.0 * y,
    "jump": lambda t, y: 1e3 * np.where(y > 1.5, -1.0, 1.0),
    "stiff": lambda t, y: -1e9 * (y - np.cos(t)),
}
SOLVERS = {
    "integrate_ode_rk45": ("integrate_ode_rk45", None),
    "ode_ckrk": ("ode_ckrk", None),
    "ode_bdf": ("ode_bdf", None),
    **{f"ode_adams of {backend}": ("ode_adams", backend) for backend in ("SUNDIALS", "SciPy")},
    "dae of SUNDIALS": ("dae", "SUNDIALS"),
}  # fmt: skip


@pytest.fixture
def evaluations(monkeypatch):
    """A list with an element for each evaluation of the rates or their Jacobian."""
    made = []
    run = systems.System._run
    monkeypatch.setattr(systems, "native_pays", lambda count: False)
    monkeypatch.setattr(systems.System, "_run", lambda *args: (made.append(1), run(*args))[1])
    return made


@pytest.mark.parametrize("case", SOLVERS)
def test_a_bad_point_costs_some_hundred_good_ones(case, evaluations, monkeypatch):
    """With the default limits: no error but a refusal, which a sampler rejects."""
    name, backend = SOLVERS[case]
    if backend == "SUNDIALS":
        pytest.importorskip("sksundae", reason="scikit-sundae is not installed")
    monkeypatch.setattr(sundials, "has_sundials", lambda: backend == "SUNDIALS")
    times = np.linspace(0.4, 4.0, 10)

    def cost(f, y0):
        """The evaluations, and the refusal or nothing."""
        evaluations.clear()
        try:
            with np.errstate(all="ignore"):
                if name == "dae":
                    vm.dae(lambda t, y, yp: yp - f(t, y), y0, f(0.0, y0), 0.0, times)
                elif name.startswith("integrate"):
                    solve = getattr(vm, name)
                    solve(lambda t, y, theta, x_r, x_i: f(t, y), y0, 0.0, times, [], [], [])
                else:
                    getattr(vm, name)(f, y0, 0.0, times)
        except vm.DomainError as error:
            return len(evaluations), str(error)
        return len(evaluations), None

    good, refusal = cost(lambda t, y: -y, np.array([1.0, 2.0]))
    assert refusal is None
    for title, f in {**BAD, **(BAD_FOR_ONE_STEP if "rk" in name else {})}.items():
        count, refusal = cost(f, np.array([1.0, 2.0]))
        assert count <= 300 * good, title
        assert refusal is not None, title
        assert refusal.startswith(f"{name}: "), title


def test_the_limit_of_steps_is_the_users():
    """The default refuses what takes thousands of steps; `_tol` and `max_num_steps` do not."""
    args = (lambda t, y: 1e3 * np.stack([y[1], -y[0]]), [1.0, 0.0], 0.0, [4.0])
    refuses(vm.DomainError, r"after 10000 steps .* the steps .* are used up", vm.ode_rk45, *args)
    close(vm.ode_rk45_tol(*args, 1e-6, 1e-6, 30_000)[0, 0], np.cos(4e3), 0.0, 0.05)


@pytest.mark.parametrize("solve", [vm.ode_rk45, vm.ode_bdf])
def test_truth_values_are_arguments_in_recordings_too(solve):
    def f(q):
        rate = lambda t, y, q, fast: -np.where(fast, 2.0, 1.0) * q * y  # noqa: E731
        return np.sum(solve(rate, np.ones(2), 0.0, np.array([0.5, 1.0]), q, q > 0.2))

    recorded = vm.recorded(f)
    for q in (np.array([0.5, 0.1]), np.array([0.1, 0.7])):
        exact = np.exp(-np.outer([0.5, 1.0], np.where(q > 0.2, 2.0, 1.0) * q))
        close(recorded(q)[0], np.sum(exact), 1e-5)
        # The truth values are operands, whose sensitivities the solver follows too.
        close_slopes(recorded(q), vm.value_and_grad(f)(q), 1e-5)
