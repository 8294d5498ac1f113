"""Inner products of rows and columns, and distances: against 50-digit arithmetic and Stan Math, and
at the edges.
"""

import mpmath as mp
import numpy as np
import pytest
from comparing import SHAPE, close, equal
from functions.matrices import TALL, TALLS, VECTOR, WIDE, gradients, refuses, worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar


def rows(a, b):
    return [mp.fsum(a[i, j] * b[i, j] for j in range(a.cols)) for i in range(a.rows)]


def square(x, y):
    return mp.fsum((x[i] - y[i]) ** 2 for i in range(x.rows))


# Name -> arguments, and the function in 50-digit arithmetic.
EXACT = {
    "rows_dot_product": ([TALL, TALL[::-1].copy()], rows),
    "rows_dot_self": ([TALL], lambda a: rows(a, a)),
    "columns_dot_product": ([TALL, TALL[::-1].copy()], lambda a, b: rows(a.T, b.T)),
    "columns_dot_self": ([TALL], lambda a: rows(a.T, a.T)),
    "squared_distance": ([VECTOR, VECTOR[::-1].copy()], square),
    "distance": ([VECTOR, VECTOR[::-1].copy()], lambda x, y: mp.sqrt(square(x, y))),
}


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    args, exact = EXACT[name]
    assert worst_error(getattr(vm, name), exact, args) < 1e-15


# Function -> the points at which all routes are compared.
CASES = {
    vm.squared_distance: [(VECTOR, VECTOR[::-1] + 1.0), (np.empty(0), np.empty(0))],
    vm.distance: [(VECTOR, VECTOR[::-1] + 1.0), (np.array([1.0]), np.array([3.0]))],
    **{f: [(TALL,), (TALLS,), (VECTOR,), (np.empty((0, 2)),), (np.empty((3, 0)),)]
       for f in (vm.rows_dot_self, vm.columns_dot_self)},
    **{f: [(TALL, TALL[::-1] + 0.1), (TALLS, TALL), (VECTOR, VECTOR + 1.0),
           (np.empty((0, 2)), np.empty((0, 2)))]
       for f in (vm.rows_dot_product, vm.columns_dot_product)},
}  # fmt: skip


@pytest.mark.parametrize(
    ("f", "args"), [(f, args) for f, points in CASES.items() for args in points]
)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


def test_a_vector_is_a_column():
    x, y = VECTOR, VECTOR[::-1]
    equal(vm.rows_dot_product(x, y), x * y)
    equal(vm.rows_dot_self(x), x * x)
    close(vm.columns_dot_product(x, y), [x @ y], 1e-15)
    close(vm.columns_dot_self(x), [x @ x], 1e-15)


@pytest.mark.parametrize("x", [VECTOR, np.zeros(2), np.empty(0)])
def test_coincident_points(x):
    (value,), adjoints = gradients(vm.distance, [x, x])
    assert value == 0
    for adjoint in adjoints:
        equal(adjoint, np.zeros(x.shape))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_distances_neither_overflow_nor_underflow(scale):
    (value,), (of_x, of_y) = gradients(
        vm.distance, [np.array([3.0, 0.0]) * scale, np.array([0.0, 4.0]) * scale], [1.0]
    )
    close(value, 5.0 * scale, 1e-15)
    close(of_x, [0.6, -0.8], 1e-15)
    equal(of_y, -of_x)


# Function, arguments, error, message.
REFUSED = [
    (vm.rows_dot_product, (TALL, WIDE), SHAPE,
     "b has shape (3, 4), but must have the shape of a, (4, 3)!"),
    (vm.columns_dot_product, (TALL, 1.0), SHAPE, "b is a scalar, but must be a vector"),
    (vm.columns_dot_self, (1.0,), SHAPE, "a is a scalar, but must be a vector, a matrix"),
    (vm.squared_distance, (VECTOR, VECTOR[:2]), SHAPE,
     "y has shape (2,), but must be a vector as long as x, of shape (3,)!"),
    (vm.distance, (TALL, TALL), SHAPE,
     "y has shape (4, 3), but must be a vector as long as x, of shape (4, 3)!"),
    (vm.distance, (VECTOR, "abc"), TypeError, "y has dtype"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "error", "message"), REFUSED)
def test_refusals(f, args, error, message):
    refuses(f, args, error, message)
