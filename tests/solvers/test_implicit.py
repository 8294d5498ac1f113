"""Solutions of equations: values, derivatives by all routes, Stan's reference values, and what is
refused.
"""

import re

import numpy as np
import pytest
from comparing import close, refuses
from scipy.optimize import brentq, minimize

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

# Computed with Stan Math for the system below: function, guess, parameters, solution, gradient of
# the weighted sum.
STAN = [
    ("solve_newton", [0.1, 1.0], [3.0, 0.6], [0.6171119780559983, 1.146432865544121],
        [0.21718050093031202, -0.7354520867475726]),
    ("solve_powell", [0.5, 0.5], [2.2, 1.4], [0.5728698496308705, 0.4266509992942324],
        [0.048747900613552, -0.1632462366403084]),
    ("algebra_solver", [0.1, 1.0], [3.0, 0.6], [0.6171119691721977, 1.146432854701783],
        [0.2171805013636607, -0.7354520776553588]),
    ("algebra_solver_newton", [0.5, 0.5], [2.2, 1.4], [0.5728698496382437, 0.42665099929877065],
        None),
]  # fmt: skip
WEIGHTS = np.array([-0.3125, 0.5625])


def system(y, a, *_):
    return np.stack([np.exp(y[0]) + y[1] - a[0], y[0] - a[1] * y[1] + 0.1 * y[0] * y[1]])


def solver(name, guess):
    """A solver of the system, as a function of its parameters."""
    more = {"solve_newton_tol": (1e-3, 1e-6, 100), "solve_powell_tol": (1e-10, 1e-6, 100)}
    data = ([], []) if name.startswith("algebra") else ()
    return lambda a: getattr(vm, name)(system, guess, *more.get(name, ()), a, *data)


@pytest.mark.parametrize(("name", "guess", "a", "solution", "gradient"), STAN)
def test_agrees_with_stan(name, guess, a, solution, gradient):
    """Stan's own solutions are within its tolerance of 1e-6."""
    solve, a = solver(name, guess), np.array(a)
    close(solve(a), solution, 2e-8)
    if gradient is not None:
        close(vm.gradient(lambda a: WEIGHTS @ solve(a), a), gradient, 1e-7)


@pytest.mark.parametrize("name", [
    "solve_newton", "solve_newton_tol", "solve_powell", "solve_powell_tol", "algebra_solver",
    "algebra_solver_newton",
])  # fmt: skip
def test_all_routes_agree(name):
    expect_ad(solver(name, [0.5, 0.5]), np.array([2.2, 1.4]))


def test_the_derivative_is_the_exact_one():
    """y^2 = a: derivatives are exact to the last digits, although the tolerance is 1e-6."""
    for solve in (vm.solve_newton, vm.solve_powell):

        def root(a, solve=solve):
            return solve(lambda y, a: y**2 - a, [1.0], a)[0]

        close(vm.value_and_grad(root)(2.0), (2.0**0.5, 0.5 * 2.0**-0.5), 1e-15)
        close(vm.hessian(root, 2.0), -0.25 * 2.0**-1.5, 1e-14)


def test_matvars_and_structures():
    expect_ad_matvar(lambda a: vm.solve_newton(system, [0.5, 0.5], a), np.array([2.2, 1.4]))

    def f(y, p, k):
        return y * p["rate"] - p["levels"][0] * np.arange(1, k + 1)

    def solve(rate, level):
        return vm.solve_newton(f, np.ones(2), {"rate": rate, "levels": [level]}, 2)

    close(solve(2.0, 3.0), [1.5, 3.0], 1e-7)
    expect_ad(solve, 2.0, 3.0)


def test_a_solver_of_ones_own():
    root = vm.implicit(
        lambda a: brentq(lambda y: y**3 + a * y - 1.0, 0.0, 1.0, xtol=1e-15),
        lambda y, a: y**3 + a * y - 1.0,
    )
    y = root(1.0)
    close(vm.gradient(root, 1.0), -y / (3.0 * y**2 + 1.0), 1e-14)
    expect_ad(root, 1.0)
    calls = []

    def solve(a, b):
        calls.append(1)
        return np.linalg.solve(a, b)

    linear = vm.implicit(solve, lambda y, a, b: a @ y - b)
    a, b = np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([1.0, -1.0])
    expected = vm.gradient(lambda a: np.sum(np.linalg.solve(a, b) ** 2), a)
    close(vm.gradient(lambda a: np.sum(linear(a, b) ** 2), a), expected, 1e-13)
    assert len(calls) == 1
    expect_ad(linear, a, b)


def test_fixed_points():
    def g(y, a):
        return np.stack([0.3 * np.cos(y[1]) + 0.2 * a[0], 0.4 * np.sin(y[0]) * a[1] + 0.1])

    a = np.array([1.2, 0.7])
    scales = [1.0, 1.0], [1.0, 1.0]
    y = vm.algebra_solver_fp(lambda y, a, *_: g(y, a), [0.5, 0.5], a, [], [], *scales)
    # Computed with Stan Math.
    close(y, [0.5312685597713583, 0.24185568781579414], 1e-8)
    expected = [-0.03473923488781797, 0.11652032598751912]
    close(vm.gradient(lambda a: WEIGHTS @ vm.fixed_point(g, [0.5, 0.5], a), a), expected, 1e-7)
    close(g(vm.fixed_point(g, [0.5, 0.5], a), a), vm.fixed_point(g, [0.5, 0.5], a), 1e-15)
    expect_ad(lambda a: vm.fixed_point(g, [0.5, 0.5], a), a)


def test_within_a_recording_the_equations_are_solved_anew():
    f = vm.recorded(lambda a: np.sum(vm.solve_newton(lambda y, a: y**2 - a, np.ones(2), a)))
    for a in (np.array([4.0, 9.0]), np.array([1.0, 16.0])):
        value, gradient = f(a)
        close(value, np.sum(np.sqrt(a)), 1e-15)
        close(gradient, 0.5 / np.sqrt(a), 1e-14)


NO_ROOT = (
    "the norm of the residual is 2.0 after 0 steps, but must be at most the function tolerance, "
    "1e-06; start nearer to a solution or allow more steps; there may be no solution!"
)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vm.solve_newton(system, [np.nan, 0.5], [2.2, 1.4]), vm.DomainError,
     "solve_newton: y_guess[0] is nan, but must be finite!"),
    (lambda: vm.solve_powell(system, [], [2.2, 1.4]), vm.ShapeError,
     "solve_powell: y_guess has no elements, but must have at least one!"),
    (lambda: vm.solve_powell(system, np.ones((2, 2)), [2.2, 1.4]), vm.ShapeError,
     "solve_powell: y_guess has shape (2, 2), but must be a vector!"),
    (lambda: vm.solve_newton(system, [1.0], [2.2, 1.4]), IndexError,
     "index 1 is out of bounds for axis 0 with size 1"),
    (lambda: vm.solve_newton(lambda y: y[:1], [1.0, 2.0]), vm.ShapeError,
     "solve_newton: the residual has 1 elements, but must have 2, one for each unknown!"),
    (lambda: vm.solve_newton(lambda y, a: y**2 + a, [0.0], 2.0), vm.DomainError,
     f"solve_newton: {NO_ROOT}"),
    (lambda: vm.solve_newton_tol(system, [1.0, 1.0], 1e-3, -1.0, 10, [2.2, 1.4]), vm.DomainError,
     "solve_newton_tol: f_tol is -1.0, but must be positive!"),
    (lambda: vm.algebra_solver_fp(lambda y, *_: y, [1.0], [], [], [], u_scale=[0.0]),
     vm.DomainError, "algebra_solver_fp: u_scale is [0.0], but must be positive!"),
    (lambda: vm.gradient(lambda a: vm.implicit(lambda a: 0.0, lambda y, a: y**2 - a)(a), 0.0),
     vm.DomainError,
     ("implicit: the Jacobian of the residual is singular at the solution, so the solution has no "
     "derivative!")),
    (lambda: vm.solve_newton(3.0, [1.0]), TypeError,
     "solve_newton: the function is a float, but must be a function!"),
    (lambda: vm.implicit(3.0, system), TypeError,
     "implicit: solve is a float, but must be a function!"),
])  # fmt: skip
def test_errors(call, error, message):
    refuses(error, f"^{re.escape(message)}", call)


def test_no_root():
    for name in ("solve_newton", "solve_powell"):
        message = rf"{name}: the norm of the residual is 2\.\d* after \d+ steps, but must be at"
        refuses(vm.DomainError, message, getattr(vm, name), lambda y, a: y**2 + a, [1.0], 2.0)
    message = "fixed_point: no convergence after 20 steps"
    refuses(vm.DomainError, message, vm.fixed_point, lambda y: y**2 + 1.0, [0.3], max_steps=20)


def test_variables_from_outside_are_refused():
    """Their derivative would be lost."""
    with pytest.raises(vm.TapeError):
        vm.gradient(lambda a: vm.solve_newton(lambda y: y**2 - a, [1.0])[0], 2.0)


def test_a_solver_is_called_on_numbers_only():
    """In a recording too: what it catches would else decide the result."""

    def solve(a):
        try:
            return brentq(lambda y: y**3 + a * y - 1.0, 0.0, 1.0, xtol=1e-15)
        except Exception:
            return 0.5

    root = vm.implicit(solve, lambda y, a: y**3 + a * y - 1.0)
    for runner in ("numpy", "auto"):
        recorded = vm.recorded(root, runner=runner)
        for a in (1.0, 1.3, 0.4):
            close(recorded(a), vm.value_and_grad(root)(a), 1e-13)


def test_an_integrand_that_catches_a_refusal_is_refused():
    def integrand(x, xc, a):
        try:
            return x * float(a)
        except TypeError:
            return 0.0

    def f(a):
        return vm.integrate_1d(integrand, 0.0, 1.0, a)

    close(f(3.0), 1.5, 1e-6)
    for functional in (vm.value_and_grad, vm.recorded):
        refuses(TypeError, "the function caught this error", functional(f), 3.0)


def test_a_recorded_problem_whose_solver_differentiates():
    def solve(a):
        f = vm.value_and_grad(lambda y: np.sum((y - a) ** 2) + np.sum(y**4))
        return minimize(f, np.zeros(2), jac=True, tol=1e-14).x

    inner = vm.implicit(solve, lambda y, a: 2 * (y - a) + 4 * y**3)

    def outer(a):
        return np.sum(inner(a) ** 2)

    recorded = vm.recorded(outer)
    for a in (np.array([1.0, 2.0]), np.array([-0.5, 0.3])):
        close(recorded(a)[1], vm.value_and_grad(outer)(a)[1], 1e-12)
