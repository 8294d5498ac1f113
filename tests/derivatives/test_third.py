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
        return float(
            mpmath.diff(
                function, tuple(map(mpmath.mpf, POINT)), tuple(axes.count(i) for i in range(3))
            )
        )

    with mpmath.workdps(60):
        return np.array(
            [[[element(i, j, k) for k in range(3)] for j in range(3)] for i in range(3)]
        )


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
    lambda x: vm.log_sum_exp(x * x) + np.prod(x) ** 2,
    lambda x: vm.multi_normal_lpdf(np.ones(3), x, np.outer(x, x) + 2.0 * np.eye(3)),
    lambda x: np.sum(np.where(x > 0, x**4, x * x[0])) + np.sum(np.sort(x)[:2] ** 3),
    lambda x: np.sum(vm.softmax(np.concatenate([x, x[:1] ** 2])) ** 3) + np.sum(np.cumsum(x) ** 3),
    lambda x: vm.trace_inv_quad_form_ldlt(np.outer(x, x) + np.eye(3),
     x) * vm.log_determinant_spd(np.outer(x, x) + np.eye(3)),
    lambda x: vm.student_t_lpdf(0.3, np.exp(x[0]), x[1], np.exp(x[2])),
])  # fmt: skip
def test_third_derivatives_of_densities_and_matrices(g):
    expected = testing.finite_diff_grad_hessian(g, POINT)
    close(vm.grad_hessian(g, POINT), expected, 1e-8, 1e-9)
    close(
        vm.grad_tr_mat_times_hessian(g, POINT, M), np.einsum("ijk,jk->i", expected, M), 1e-8, 1e-8
    )


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
    with pytest.raises(vm.ShapeError, match=r"^finite_diff_gradient_auto: "):
        testing.finite_diff_gradient_auto(lambda x: x, POINT)
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


def test_refusals():
    for functional in (
        vm.grad_hessian,
        lambda f, x: vm.grad_tr_mat_times_hessian(f, x, np.eye(np.size(x))),
    ):
        with pytest.raises(
            vm.ShapeError, match=r"^grad_\w+: x has shape \(1, 2\), but must be a vector!"
        ):
            functional(np.sum, np.ones((1, 2)))
        with pytest.raises(
            vm.ShapeError, match=r"^grad_\w+: the result has shape \(2,\), but must be a scalar"
        ):
            functional(np.sin, np.ones(2))
        refuses(TypeError, r"^grad_\w+: the result is None", functional, lambda x: None, np.ones(2))
        with pytest.raises(
            vm.TapeError, match=r"^grad_\w+: the result is a Dual that the function created"
        ):
            functional(lambda x: np.sum(x * vm.Dual(1.0, 1.0)), np.ones(2))
    for call, error, message in [
        (lambda: vm.grad_hessian(np.sum, {}), vm.ShapeError,
         r"^grad_hessian: x is a dict, but must be a vector!"),
        (lambda: vm.grad_tr_mat_times_hessian(f, POINT, np.ones(2)), vm.ShapeError,
         r"^grad_tr_mat_times_hessian: m has shape \(2,\), but must have shape \(3, 3\)!"),
        (lambda: vm.derivative(np.sum, np.ones(2)), vm.ShapeError,
         r"^derivative: x has shape \(2,\), but must be a scalar; see varmat.gradient!"),
        (lambda: vm.derivative(lambda x: np.stack([x, x]), 1.0), vm.ShapeError,
         r"^derivative: the result has shape \(2,\), but must be a scalar"),
    ]:  # fmt: skip
        refuses(error, message, call)
    for name in ("finite_diff_grad_hessian", "finite_diff_grad_hessian_auto"):
        with pytest.raises(
            vm.ShapeError, match=rf"^{name}: x has shape \(\), but must be a vector!"
        ):
            getattr(testing, name)(np.sin, 1.0)
    with pytest.raises(
        vm.ShapeError, match=r"^finite_diff_hessian_times_vector_auto: v has shape \(2,\), but must"
    ):
        testing.finite_diff_hessian_times_vector_auto(f, POINT, np.ones(2))

    def squared(x):
        return vm.make_callback_var(vm.value(x) ** 2, lambda y: None)

    with pytest.raises(
        TypeError,
        match=r"^grad_hessian: the function uses make_callback_var, which has no tangent rule",
    ):
        vm.grad_hessian(lambda x: np.sum(squared(x)) + np.sum(x**3), POINT)
    with vm.nested():
        outside = vm.var(2.0)
        with pytest.raises(vm.TapeError, match=r"^grad_hessian: the function uses a Var of shape"):
            vm.grad_hessian(lambda x: np.sum(x**3) * outside, POINT)
