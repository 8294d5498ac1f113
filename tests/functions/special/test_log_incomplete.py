"""Logarithms of the incomplete gamma and beta functions: value and derivatives in all arguments, in
the bulk and in both tails.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from comparing import close
from densities import references

import varmat as vm
from varmat.functions.special import log_incomplete as rows
from varmat.testing import coverage

INF = math.inf


def compare(function, derivative, exact, point, bound):
    """Compare the value, the gradient, the Hessian, and the rows of derivatives of which they are
    made.
    """
    value, gradient = vm.value_and_grad(function, tuple(range(len(point))))(*point)
    hessian = vm.hessian(lambda x: function(*x), np.array(point))
    with mp.workdps(40):
        given = tuple(map(mp.mpf, point))
        errors = [abs(value / exact(*given) - 1)]
        for i in range(len(point)):
            orders = [[int(k == i) for k in range(len(point))]]
            orders += [[int(k == i) + int(k == j) for k in range(len(point))] for j in range(i + 1)]
            for j, order in enumerate(orders):
                true = mp.diff(exact, given, order)
                found = gradient[i] if j == 0 else hessian[i, j - 1]
                row = derivative(float("".join(map(str, order))), *point)
                errors += [
                    abs(each - true) / abs(true) if true else abs(each) for each in (found, row)
                ]
    assert max(errors) < bound, list(map(float, errors))
    coverage.note(function, point, mpmath=float(max(errors)))


BOTH, LOWER, UPPER = ("", "c"), ("",), ("c",)
# Functions, by the letter of the complement, and points: in the bulk, and in the tail.
POINTS = [
    *((BOTH, x) for x in ((7.5, 6.0), (0.7, 3.0), (2.5, 0.01), (50.0, 60.0))),
    *((UPPER, x) for x in ((7.5, 60.0), (2.5, 700.0), (0.3, 1e4), (1.0, 50.0), (1e4, 1.1e4))),
    *((LOWER, x) for x in ((50.0, 20.0), (20.0, 1.5), (20.0, 1e-3), (1e-3, 1e-5), (1e4, 9e3))),
    *((BOTH, x) for x in ((5.0, 6.5, 0.4), (0.5, 0.7, 0.8), (20.0, 30.0, 0.45))),
    *((UPPER, x) for x in (
        (3.0, 2.0, 0.9999), (0.5, 0.7, 0.99), (40.0, 40.0, 0.9), (1.0, 5.0, 0.95))),
    *((LOWER, x) for x in ((5.0, 6.5, 1e-5), (20.0, 30.0, 0.05), (0.3, 3.0, 1e-6))),
]  # fmt: skip


@pytest.mark.parametrize(("tails", "point"), POINTS)
def test_bulk_and_tails(tails, point):
    for letter in tails:
        name = f"log_{'gamma' if len(point) == 2 else 'beta'}inc{letter}"
        derivative = getattr(rows, f"{name}_derivative")
        compare(getattr(rows, name), derivative, getattr(references, name), point, 1e-12)


def test_where_the_function_is_zero():
    """At these ends the function falls to zero as a power of the distance, or exponentially."""
    for function, point, gradient in (
        (rows.log_gammainc, (2.5, 0.0), (-INF, INF)),
        (rows.log_gammaincc, (2.5, INF), (INF, -1.0)),
        (rows.log_betainc, (2.5, 3.5, 0.0), (-INF, vm.digamma(6.0) - vm.digamma(3.5), INF)),
        (rows.log_betaincc, (2.5, 3.5, 1.0), (vm.digamma(6.0) - vm.digamma(2.5), -INF, -INF)),
    ):
        value, found = vm.value_and_grad(function, tuple(range(len(point))))(*point)
        assert value == -INF
        close(found, gradient, 1e-14)
    assert vm.value_and_grad(vm.binomial_lccdf, 2)(0, 5, 0.0) == (-INF, INF)
    assert vm.value_and_grad(vm.binomial_lcdf, 2)(0, 5, 1.0) == (-INF, -INF)


def test_where_the_function_is_one():
    for function, point in (
        (rows.log_gammainc, (2.5, INF)),      (rows.log_gammaincc, (2.5, 0.0)),
        (rows.log_betainc, (2.5, 3.5, 1.0)),  (rows.log_betaincc, (2.5, 3.5, 0.0)),
    ):  # fmt: skip
        value, gradient = vm.value_and_grad(function, tuple(range(len(point))))(*point)
        assert value == 0.0
        assert not any(gradient)


def test_huge_shapes():
    """For shapes as large as floats go, the distribution is normal."""
    for function, sign in ((rows.log_gammainc, 1.0), (rows.log_gammaincc, -1.0)):
        huge = 1e300
        slope = sign * 2.0 / math.sqrt(2.0 * math.pi * huge)
        value, gradient = vm.value_and_grad(function, (0, 1))(huge, huge)
        close(value, -math.log(2.0), 1e-15)
        close(gradient, [-slope, slope], 1e-12)
