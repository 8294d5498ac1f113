"""Third derivatives, exactly and from differences; derivatives of functions of one number."""

import mpmath
import numpy as np
import pytest
import scipy.optimize
from comparing import close, equal, refuses

import varmat as vm
from varmat import testing

POINT = np.array([0.7, -1.2, 0.4])


def f(x):
    return x[0] ** 2 * x[1] + 3 * x[1] ** 2 + np.exp(0.5 * x[2]) * x[0] + np.sin(x[1] * x[2])


def exact():
    def function(a, b, c):
        return a**2 * b + 3 * b**2 + mpmath.exp(c / 2) * a + mpmath.sin(b * c)

    def element(*axes):
        return float(mpmath.diff(function, POINT.tolist(), tuple(axes.count(i) for i in range(3))))

    with mpmath.workdps(60):
        return np.array([element(*axes) for axes in np.ndindex(3, 3, 3)]).reshape(3, 3, 3)


EXACT = exact()
M = np.array([[1.0, 0.2, 0.3], [0.4, 2.0, 0.6], [0.7, 0.8, 3.0]])
# Stan Math 4.9.0, entry grad_tr_mat_times_hessian#1.
STAN = [2.116052068620127, -2.2154557287274956, 4.036752588909915]


def test_third_derivatives_against_fifty_digits():
    found = vm.grad_hessian(f, POINT)
    close(found, EXACT, 1e-13, 1e-15)
    for axes in ((1, 0, 2), (2, 1, 0), (0, 2, 1)):
        close(found, np.transpose(found, axes), 1e-14, 1e-15)
    trace = vm.grad_tr_mat_times_hessian(f, POINT, M)
    close(trace, np.einsum("ijk,jk->i", EXACT, M), 1e-13)
    close(trace, STAN, 1e-13)


@pytest.mark.parametrize("g", [
    lambda x: vm.gamma_lpdf(np.array([1.0, 2.0, 3.0]), np.exp(x), np.exp(x[0])),
    lambda x: vm.multi_normal_lpdf(np.ones(3), x, np.outer(x, x) + 2.0 * np.eye(3)),
    lambda x: np.sum(np.where(x > 0, x**4, x * x[0])) + np.sum(np.sort(x)[:2] ** 3),
    lambda x: (vm.trace_inv_quad_form_ldlt(np.outer(x, x) + np.eye(3), x)
               * vm.log_determinant_spd(np.outer(x, x) + np.eye(3))),
    lambda x: vm.student_t_lpdf(0.3, np.exp(x[0]), x[1], np.exp(x[2])),
])  # fmt: skip
def test_third_derivatives_of_densities_and_matrices(g):
    expected = testing.finite_diff_grad_hessian(g, POINT)
    close(vm.grad_hessian(g, POINT), expected, 1e-8, 1e-9)
    traces = np.einsum("ijk,jk->i", expected, M)
    close(vm.grad_tr_mat_times_hessian(g, POINT, M), traces, 1e-8, 1e-8)


def test_functions_that_assign_and_further_arguments():
    def g(x, k, *, scale):
        y = x.copy()
        y[0] = x[1] * x[2]
        return scale * np.sum(y**k)

    expected = testing.finite_diff_grad_hessian(lambda x: g(x, 3, scale=2.0), POINT)
    close(vm.grad_hessian(g, POINT, 3, scale=2.0), expected, 1e-9, 1e-9)
    found = vm.grad_tr_mat_times_hessian(g, POINT, M, 3, scale=2.0)
    close(found, np.einsum("ijk,jk->i", expected, M), 1e-9)


@pytest.mark.parametrize(
    "g", [lambda x: 1.0, lambda x: x[0], lambda x: np.sum(x), lambda x: vm.value(x)[0] ** 3]
)
def test_functions_without_third_derivatives(g):
    equal(vm.grad_hessian(g, POINT), np.zeros((3, 3, 3)))
    equal(vm.grad_tr_mat_times_hessian(g, POINT, M), np.zeros(3))


def test_differences():
    close(testing.finite_diff_grad_hessian(f, POINT), EXACT, 1e-10, 1e-10)
    close(testing.finite_diff_grad_hessian(f, POINT, eps=1e-2), EXACT, 1e-8, 1e-8)
    close(testing.finite_diff_grad_hessian_auto(f, POINT), EXACT, 1e-10, 1e-10)
    hessian = scipy.optimize.rosen_hess(POINT)

    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    got = testing.finite_diff_hessian_auto(rosenbrock, POINT)
    close(got, hessian, 1e-9, 1e-9)
    equal(got, got.T)
    for v in (np.array([1.0, -2.0, 0.5]), np.array([1e6, 0.0, 1.0]), np.zeros(3)):
        got = testing.finite_diff_hessian_times_vector_auto(rosenbrock, POINT, v)
        close(
            got, hessian @ v, 1e-9, 1e-13 * np.max(np.abs(hessian @ v)) + 1e-9 * np.max(np.abs(v))
        )
    assert testing.finite_diff_stepsize(0.5) == np.cbrt(2.0**-52)
    assert testing.finite_diff_stepsize(-8.0) == 8 * np.cbrt(2.0**-52)


def test_differences_of_structures():
    point = {"a": 2.0, "b": np.array([[1.0, 3.0]])}

    def g(p):
        return p["a"] ** 2 * np.sum(p["b"] ** 2)

    expected = [[20.0, 8.0, 24.0], [8.0, 8.0, 0.0], [24.0, 0.0, 8.0]]
    close(testing.finite_diff_hessian_auto(g, point), expected, 1e-10, 1e-10)
    product = testing.finite_diff_hessian_times_vector_auto(
        g, point, {"a": 1.0, "b": np.array([[0.0, 1.0]])}
    )
    close(product["a"], 44.0, 1e-10)
    close(product["b"], [[8.0, 32.0]], 1e-10)


def test_functions_of_one_number():
    # Stan Math 4.9.0, entry derivative#1.
    close(vm.derivative(lambda x: x**2 * np.exp(0.7 * x), 0.9), 4.4443042411187, 1e-14)
    assert vm.derivative(lambda x, k: k * x, 2, 3.0) == 3.0
    assert vm.derivative(lambda x: 1.0, 2.0) == 0.0


def times_one(f, x):
    return vm.grad_tr_mat_times_hessian(f, x, np.eye(np.size(x)))


ONES, DUAL = np.ones(2), "the result is a Dual that the function created"


@pytest.mark.parametrize(("f", "x", "error", "message"), [
    (np.sum, np.ones((1, 2)), vm.ShapeError, r"x has shape \(1, 2\), but must be a vector!"),
    (np.sin, ONES, vm.ShapeError, r"the result has shape \(2,\), but must be a scalar"),
    (lambda x: None, ONES, TypeError, "the result is None"),
    (lambda x: np.sum(x * vm.Dual(1.0, 1.0)), ONES, vm.TapeError, DUAL),
])  # fmt: skip
@pytest.mark.parametrize("functional", [vm.grad_hessian, times_one])
def test_refusals(functional, f, x, error, message):
    refuses(error, rf"^grad_\w+: {message}", functional, f, x)


def squared(x):
    return vm.make_callback_var(vm.value(x) ** 2, lambda y: None)


@pytest.mark.parametrize(("name", "args", "error", "message"), [
    ("grad_hessian", (np.sum, {}), vm.ShapeError, "x is a dict, but must be a vector!"),
    ("grad_tr_mat_times_hessian", (f, POINT, ONES), vm.ShapeError,
     r"m has shape \(2,\), but must have shape \(3, 3\)!"),
    ("derivative", (np.sum, ONES), vm.ShapeError,
     r"x has shape \(2,\), but must be a scalar; see varmat.gradient!"),
    ("derivative", (lambda x: np.stack([x, x]), 1.0), vm.ShapeError,
     r"the result has shape \(2,\), but must be a scalar"),
    ("grad_hessian", (lambda x: np.sum(squared(x)) + np.sum(x**3), POINT), TypeError,
     "the function uses make_callback_var, which has no tangent rule"),
    ("finite_diff_grad_hessian", (np.sin, 1.0), vm.ShapeError, r"x has shape \(\), but must be a"),
    ("finite_diff_grad_hessian_auto", (np.sin, 1.0), vm.ShapeError,
     r"x has shape \(\), but must be a vector!"),
    ("finite_diff_gradient_auto", (lambda x: x, POINT), vm.ShapeError, "the result has shape"),
    ("finite_diff_hessian_times_vector_auto", (f, POINT, ONES), vm.ShapeError,
     r"v has shape \(2,\), but must"),
])  # fmt: skip
def test_further_refusals(name, args, error, message):
    module = testing if name.startswith("finite_diff") else vm
    refuses(error, f"^{name}: {message}", getattr(module, name), *args)


def test_variables_from_outside_are_refused():
    with vm.nested():
        outside = vm.var(2.0)
        message = r"^grad_hessian: the function uses a Var of shape"
        refuses(vm.TapeError, message, vm.grad_hessian, lambda x: np.sum(x**3) * outside, POINT)
