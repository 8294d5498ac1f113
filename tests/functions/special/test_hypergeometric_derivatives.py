"""Gauss's hypergeometric function: derivatives of higher order, at one, and at points where its
series cancels.
"""

import mpmath
import numpy as np
from comparing import close, refuses
from functions.partials import exact, gradient, relative

import varmat as vm
from varmat.functions.special.hypergeometric_functions import hyp2f1_da


def test_third_derivative_of_the_hypergeometric_function():
    def third(x):
        with vm.nested():
            v = vm.var(x)
            inner = vm.Dual(vm.Dual(v, 1.0), vm.Dual(1.0, 0.0))
            vm.hyp2f1(inner, 1.5, 2.5, -3.0).tan.tan.grad()
            return v.adj

    close(third(1.2), exact(lambda a: mpmath.hyp2f1(a, 1.5, 2.5, -3), (1.2,), 0, 0, 0), 1e-12)


def test_hypergeometric_function_at_one():
    # Gauss's theorem: gamma(c) gamma(c - a - b) / (gamma(c - a) gamma(c - b)).
    def gauss(a, b, c):
        return mpmath.gammaprod([c, c - a - b], [c - a, c - b])

    point = (0.7, 1.1, 5.0)
    ours = gradient(lambda a, b, c: vm.hyp2f1(a, b, c, 1.0), list(point))
    assert relative(np.array(ours), [exact(gauss, point, i) for i in range(3)]) <= 1e-13
    assert relative(hyp2f1_da(*point, 1.0), exact(gauss, point, 0)) <= 1e-13


def test_a_series_that_cancels_is_refused():
    message = (
        r"^hyp2f1: the arguments are \(30.0, -20.5, 3.0, 0.4\), but must be such that the "
        r"derivative with respect to a "
        "does not cancel!$"
    )
    with vm.nested():
        a = vm.var([2.0, 30.0])
        refuses(vm.DomainError, message, np.sum(vm.hyp2f1(a, -20.5, 3.0, 0.4)).grad)
