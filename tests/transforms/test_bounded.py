"""Transforms of each element alone: bounds that are infinite, and bounds that are variables."""

import numpy as np
from comparing import close, equal
from transforms.constraints import X, inf

import varmat as vm
from varmat.transforms import bounded


def test_no_bound_does_not_overflow():
    x, free = np.array([1e4, 1.0]), np.array([inf, 3.0])
    equal(vm.gradient(lambda x: np.sum(bounded.lb_constrain(x, -free)), x), [1.0, np.exp(1.0)])
    equal(vm.gradient(lambda x: np.sum(bounded.ub_constrain(x, free)), x), [1.0, -np.exp(1.0)])


# --- bounds that are variables ---


def test_gradient_flows_into_the_bounds():
    # beta between 0 and 1 - alpha: y = (1 - alpha) expit(x), log|J| = log(1 - alpha) + ...
    def f(alpha):
        y, log_jacobian = bounded.lub_constrain(0.3, 0.0, 1.0 - alpha, jacobian=True)
        return y + 2.0 * log_jacobian

    expected = -1.0 / (1.0 + np.exp(-0.3)) - 2.0 / 0.8
    close(vm.gradient(f, 0.2), expected, 1e-14)


def test_a_bound_with_the_value_zero_is_a_variable_all_the_same():
    equal(vm.gradient(lambda lb: np.sum(bounded.lb_constrain(X, lb)), 0.0), 3.0)
