"""Right-hand sides that branch: one program of all branches, and jumps that are refused."""

import numpy as np
import pytest
from comparing import close, close_slopes, refuses

import varmat as vm

TIMES = np.linspace(0.25, 3.0, 12)


def dosed(t, y, k, dose):
    rate = -k * y
    if t >= 1.0:
        rate = rate + dose
    return rate


@pytest.mark.parametrize("solver", [vm.ode_rk45, vm.ode_adams])
def test_a_dose_from_a_time_on_is_recorded(solver):
    """The solution is ``exp(-k t)``, and from time 1 on ``dose (1 - exp(k - k t)) / k`` more."""

    def f(k, dose):
        return np.sum(solver(dosed, np.ones(1), 0.0, TIMES, k, dose) * TIMES[:, None])

    def exact(k, dose):
        after = TIMES[TIMES >= 1.0]
        more = dose * (1.0 - np.exp(k * (1.0 - after))) / k
        return np.sum(np.exp(-k * TIMES) * TIMES) + np.sum(more * after)

    recorded = vm.recorded(f, (0, 1))
    for point in ((0.7, 2.0), (1.3, -0.5), (0.4, 0.0)):
        close_slopes(recorded(*point), vm.value_and_grad(exact, (0, 1))(*point), 1e-4)
    if solver is vm.ode_rk45:
        assert not recorded.program.python_steps()
        assert len(recorded._recordings) == 1


def test_a_right_hand_side_that_cannot_be_recorded_is_called_as_it_is_written():
    def rate(t, y, k):
        return np.interp(t, [0.0, 1.0, 4.0], [0.0, 1.0, 0.0]) - k * y

    def f(k):
        return np.sum(vm.ode_rk45(rate, np.ones(1), 0.0, TIMES, k))

    recorded, expected = vm.recorded(f), vm.value_and_grad(f)
    for k in (0.7, 1.3):
        close(recorded(k), expected(k), 1e-12)
    assert recorded.program is not None


def switched(kind):
    def rate(t, y, k, end):
        if kind == "if":
            return -k * y if t <= end else 0.0 * y
        choices = {
            "where": lambda: np.where(t <= end, -k * y, 0.0 * y),
            "state": lambda: -k * np.where(y > end, y, 0.1 * y),
            "step": lambda: -k * y * np.heaviside(end - t, 1.0),
            "sign": lambda: -k * (y + 0.1 * np.sign(y - end)),
            "repeated": lambda: -k * y + np.floor(t / end),
            "saw": lambda: -k * y + np.remainder(t, end),
            "product": lambda: -k * y * (t < end),
            "curved": lambda: -k * np.where(t**2 * k > end + y, y, 0.1 * y),
            "ramp": lambda: np.where(t <= end, -k * y, -k * y * np.exp(end - t)),
            "capped": lambda: -k * np.where(y > end, end, y),
        }
        return choices[kind]()

    return rate


@pytest.mark.parametrize("solver", [vm.ode_rk45, vm.ode_bdf, vm.ode_adjoint_tol_ctl])
@pytest.mark.parametrize("kind", [
    "if", "where", "state", "step", "sign", "repeated", "saw", "product", "curved",
])  # fmt: skip
def test_jumps_where_time_or_state_passes_a_variable_are_refused(kind, solver):
    """The derivative in the time of the jump would be zero."""
    one = np.full(1, 1e-8)
    settings = (1e-8, one, 1e-8, one, 1e-8, 1e-8, 10**6, 100, 1, 1, 1)
    settings = settings if solver is vm.ode_adjoint_tol_ctl else ()

    def f(q):
        return np.sum(solver(switched(kind), np.ones(1), 0.0, TIMES, *settings, *q))

    message = f"{solver.__name__}: f jumps where the time or the state passes a variable"
    for functional in (vm.value_and_grad, vm.recorded):
        refuses(vm.TapeError, message, functional(f), np.array([0.5, 0.7]))
    # Without derivatives there is nothing to lose.
    assert np.isfinite(f(np.array([0.5, 0.7])))


def ramp(k, end):
    after = np.exp(-k * (end + 1.0 - np.exp(end - TIMES)))
    return np.where(end >= TIMES, np.exp(-k * TIMES), after)


def capped(k, end):
    change = (1.0 - end) / (k * end)
    return np.where(change >= TIMES, 1.0 - k * end * TIMES, end * np.exp(-k * (TIMES - change)))


@pytest.mark.parametrize("exact", [ramp, capped])
def test_rates_that_are_continuous_where_they_switch_have_derivatives(exact):
    rates, q = switched(exact.__name__), np.array([0.5, 0.7])

    def f(q):
        return np.sum(vm.ode_rk45_tol(rates, np.ones(1), 0.0, TIMES, 1e-12, 1e-12, 10**6, *q))

    expected = vm.grad(lambda q: np.sum(exact(*q)))(q)
    close(vm.value_and_grad(f)(q)[1], expected, 1e-8)
