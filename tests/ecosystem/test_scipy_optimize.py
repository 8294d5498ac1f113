"""SciPy's optimisers and solvers, with derivatives of functions written in NumPy."""

import pytest
from comparing import close
from scipy import optimize

import varmat as vm
import varmat.numpy as np

START = np.array([-1.2, 1.0, 0.7])


def rosenbrock(x):
    terms = np.zeros(len(x) - 1)
    for i in range(len(x) - 1):
        terms[i] = 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return np.sum(terms)


# Of these methods, the derivatives that they take.
METHODS = {
    "gradients": ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", "trust-constr"],
    "hess": ["Newton-CG", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr"],
    "hessp": ["Newton-CG", "trust-ncg", "trust-krylov"],
}
CASES = [(takes, method) for takes, methods in METHODS.items() for method in methods]


@pytest.mark.parametrize(("takes", "method"), CASES)
def test_minimise(takes, method):
    second = {"gradients": {}, "hess": {"hess": vm.hessian(rosenbrock)},
              "hessp": {"hessp": vm.hessp(rosenbrock)}}[takes]  # fmt: skip
    options = {"options": {"maxfun": 1000}} if method == "TNC" else {}
    # dogleg needs a positive definite Hessian, so it starts where the function is convex
    start = np.array([1.1, 1.2, 1.4]) if method == "dogleg" else START
    f = vm.recorded(rosenbrock) if takes == "hessp" else vm.value_and_grad(rosenbrock)
    fit = optimize.minimize(f, start, jac=True, method=method, **second, **options)
    close(fit.x, np.ones(3), 1e-7, 1e-3)


def test_constraints_have_derivatives():
    def circle(x):
        return np.array([x[0] ** 2 + x[1] ** 2 - 1.0])

    for constraint in (
        optimize.NonlinearConstraint(circle, 0.0, 0.0, jac=vm.jacobian(circle)),
        {"type": "eq", "fun": circle, "jac": vm.jacobian(circle)},
    ):
        fit = optimize.minimize(
            vm.value_and_grad(lambda x: (x[0] + 1.0) ** 2 + (x[1] + 2.0) ** 2),
            [-0.5, -0.5],
            jac=True,
            constraints=constraint,
            method="SLSQP" if isinstance(constraint, dict) else "trust-constr",
        )
        close(fit.x, -np.array([1.0, 2.0]) / np.sqrt(5.0), 1e-7, 1e-3)


TIMES = np.linspace(0.0, 4.0, 9)
OBSERVED = 2.0 * np.exp(-0.7 * TIMES) + 0.3


def residuals(p):
    return np.array([p[0] * np.exp(-p[1] * t) + p[2] for t in TIMES]) - OBSERVED


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
def test_least_squares(method):
    jacobian = vm.jacobian(residuals)
    fit = optimize.least_squares(residuals, [1.0, 1.0, 0.0], jac=jacobian, method=method)
    close(fit.x, [2.0, 0.7, 0.3], 1e-6)


def test_curve_fit():
    def curve(t, a, b, c):
        return a * np.exp(-b * t) + c

    def jacobian(t, *p):
        return vm.jacobian(lambda p: curve(t, *p), np.asarray(p))

    fitted, _ = optimize.curve_fit(curve, TIMES, OBSERVED, p0=[1.0, 1.0, 0.0], jac=jacobian)
    close(fitted, [2.0, 0.7, 0.3], 1e-6)


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_roots(method):
    def equations(x):
        out = np.empty(2)
        out[0] = x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1.0
        out[1] = 0.5 * (x[1] - x[0]) ** 3 + x[1]
        return out

    found = optimize.root(equations, [0.0, 0.0], jac=vm.jacobian(equations), method=method)
    close(found.x, [0.8411639, 0.1588361], 1e-6)


def test_roots_of_one_number():
    def f(x):
        return np.cos(x) - x

    def first(x):
        return vm.derivative(f, x)

    second = lambda x: vm.hessian(f, float(x))  # noqa: E731
    for method in ("newton", "halley"):
        found = optimize.root_scalar(f, x0=1.0, fprime=first, fprime2=second, method=method)
        close(found.root, 0.7390851332151607, 1e-12)
