"""Norms and condition numbers: against 50-digit arithmetic, along all routes, at kinks, and
refusals.
"""

from functools import partial
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses_as
from functions.matrices import GENERAL, GENERALS, TALL, TALLS, VECTOR, gradients, worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

norm, cond = np.linalg.norm, np.linalg.cond
VECTOR_ORDERS = [None, 1, 2, 3, 2.5, 0.5, -1, -2, np.inf, -np.inf]
MATRIX_ORDERS = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


@pytest.mark.parametrize("ord", [1, 2, 3, 2.5, 0.5, -1, -2])
def test_vectors_against_50_digits(ord):
    def exact(x):
        return mp.fsum(abs(x[i]) ** ord for i in range(len(x))) ** (1 / mp.mpf(ord))

    assert worst_error(lambda x: norm(x, ord), exact, [VECTOR]) < 1e-14


@pytest.mark.parametrize(
    ("ord", "pick"), [("nuc", mp.fsum), (2, max), (-2, min), ("fro", lambda s: mp.norm(s, 2))]
)
def test_matrices_against_50_digits(ord, pick):
    exact = lambda a: pick(list(mp.svd_r(a, compute_uv=False)))  # noqa: E731 - closes over pick
    assert worst_error(lambda a: norm(a, ord), exact, [TALL]) < 1e-13


def slope(x, ord):
    """Return the norm and its gradient in 50 digits."""
    with mp.workdps(50):
        x = [mp.mpf(float(each)) for each in x]
        r = mp.fsum(abs(each) ** ord for each in x) ** (1 / mp.mpf(ord))
        return r, [mp.sign(each) * (abs(each) / r) ** (ord - 1) for each in x]


@pytest.mark.parametrize("ord", [1, 2, 3, 2.5, 0.5, -1, -2])
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_vectors_near_the_ends_against_50_digits(ord, scale):
    rows = np.stack([VECTOR * scale, VECTOR, 2.0 * VECTOR * scale])
    values, slopes = zip(*(slope(row, ord) for row in rows), strict=True)
    values, slopes = np.array(values, float), np.array(slopes, float)
    (value,), (adjoint,) = gradients(lambda x: norm(x, ord), [rows[0]], [1.0])
    close(value, values[0], 1e-14)
    close(adjoint, slopes[0], 1e-14)
    for x, axis in ((rows, 1), (rows.T, 0)):
        (value,), (adjoint,) = gradients(lambda x: norm(x, ord, axis=axis), [x], [np.ones(3)])  # noqa: B023 - called here
        close(value, values, 1e-14)
        close(adjoint if axis else adjoint.T, slopes, 1e-14)
        # Along x itself the norm has the derivative norm(x).
        close(norm(vm.Dual(x, x), ord, axis=axis).tan, values, 1e-14)


@pytest.mark.parametrize("power", [-600, 600])
@pytest.mark.parametrize("f", [norm, vm.norm2, partial(norm, ord="fro"), np.linalg.matrix_norm])
def test_derivatives_of_matrices_near_the_ends(f, power):
    scale = 2.0**power
    close(f(vm.var(TALL * scale)).val, f(TALL) * scale, 1e-15)
    close(vm.gradient(f, TALL * scale), TALL / norm(TALL), 1e-15)
    r, n = norm(TALL), TALL.size
    exact = (np.eye(n) - np.outer(TALL, TALL) / r**2).reshape(TALL.shape * 2) / r
    np.testing.assert_allclose(
        vm.hessian(f, TALL * scale), exact / scale, rtol=1e-13, atol=1e-16 / scale
    )


def test_a_recording_meets_other_scales():
    f = vm.recorded(lambda x: norm(x) + np.sum(norm(np.reshape(x, (2, 2)), 3, axis=1)))
    x = np.array([3.0, -4.0, 1.0, 2.0])
    value, gradient = f(x)
    for scale in (1e-200, 1e200):
        there = f(x * scale)
        close(there[0], value * scale, 1e-14)
        close(there[1], gradient, 1e-14)


ENDS = [np.array([np.inf, 1.0]), np.array([np.nan, 1.0])]


@pytest.mark.parametrize("x", [VECTOR, VECTOR * 1e-130, VECTOR * 1e150, np.zeros(3), *ENDS])
def test_the_value_is_that_of_numpy(x):
    """The value is NumPy's wherever NumPy's own does not overflow or underflow."""
    equal([vm.norm2(x), norm(vm.var(x)).val], norm(x))
    rows = np.stack([x, x])
    equal(norm(vm.var(rows), axis=1).val, norm(rows, axis=1))


BY_ORDER = [
    *product(VECTOR_ORDERS, [(VECTOR, None, False), (TALL, 0, True), (TALLS[::-1], -2, False)]),
    *product(MATRIX_ORDERS, [(TALL, None, False), (TALLS, (0, 2), True), (TALLS, (2, -2), False)]),
]


@pytest.mark.parametrize(("ord", "given"), BY_ORDER)
def test_norms_by_all_routes(ord, given):
    x, axis, keepdims = given
    f = partial(norm, ord=ord, axis=axis, keepdims=keepdims)
    expect_ad(f, x)
    expect_ad_matvar(f, x)


@pytest.mark.parametrize(("f", "x"), [
    (norm, TALLS), (norm, 2.5), (partial(norm, keepdims=True), TALLS), (norm, np.empty(0)),
    (partial(norm, ord=1, axis=1), np.empty((2, 0))),
    *((partial(norm, ord=ord), np.empty(shape))
      for ord, shape in product((1, 2, np.inf), ((0, 3), (3, 0)))),
    (partial(norm, ord=2, axis=(1, 2), keepdims=True), np.empty((2, 0, 3))),
    (cond, np.empty((0, 3))), (partial(np.linalg.vector_norm, axis=(0, 2), ord=3), TALLS),
    (partial(np.linalg.vector_norm, keepdims=True), TALLS), (np.linalg.matrix_norm, TALLS),
    (partial(np.linalg.matrix_norm, ord="nuc", keepdims=True), TALLS), (cond, TALL),
    (partial(cond, p=-2), GENERALS), (partial(cond, p=1), GENERAL),
    (partial(cond, p="fro"), GENERALS),
])  # fmt: skip
def test_others_by_all_routes(f, x):
    expect_ad(f, x)
    expect_ad_matvar(f, x)


@pytest.mark.parametrize("ord", [None, 1, 2, 3, 1.5])
def test_the_vector_of_zeros_has_derivative_zero(ord):
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    (value,), (adjoint,) = gradients(lambda x: norm(x, ord, axis=1), [x], [np.ones(2)])
    assert value[1] == norm(vm.Dual(np.zeros(3), np.ones(3)), ord).tan == 0.0
    equal(adjoint[1], np.zeros(2))
    assert np.all(adjoint[0] > 0.0)


@pytest.mark.parametrize("ord", [1, 2, 3, 1.5, 0.5])
def test_elements_that_are_zero_have_derivative_zero(ord):
    _, (adjoint,) = gradients(lambda x: norm(x, ord), [np.array([0.0, 2.0, 0.0])], [1.0])
    close(adjoint, [0.0, 1.0, 0.0], 1e-15)


def test_counting_is_constant():
    x = vm.var(np.array([[1.0, 0.0], [2.0, 3.0]]))
    equal(norm(x, 0, axis=0), [2.0, 1.0])
    assert norm(x[0], 0) == 1.0


@pytest.mark.parametrize(("f", "x", "error", "message"), [
    (lambda x: norm(x, "fro"), VECTOR, DOMAIN, "ord is 'fro', but must be a number for a vector!"),
    (lambda x: norm(x, 3), TALL, DOMAIN, "ord is 3, but must be None, 'fro'"),
    (lambda x: norm(x, 2), TALLS, SHAPE,
     "axis is (0, 1, 2), but must be one axis of vectors or two of matrices!"),
    (lambda x: norm(x, axis=3), TALL, SHAPE,
     "axis is 3, but must be distinct axes of an array that has 2!"),
    (lambda x: norm(x, axis=(0, 0)), TALL, SHAPE, "axis is (0, 0), but must be distinct axes"),
    (np.linalg.matrix_norm, VECTOR, SHAPE, "x has shape (3,), but must be a matrix"),
    (lambda x: vm.norm1("x"), VECTOR, TypeError, "x has dtype <U1, but must be real numbers"),
    (lambda x: vm.norm2(1j), VECTOR, TypeError, "x has dtype complex128, but must be real numbers"),
    (cond, VECTOR, SHAPE, "x has shape (3,), but must be a matrix (or a stack of them)!"),
    (lambda x: cond(x, 1), np.ones((2, 2)), DOMAIN, "inv: a is singular, but must be invertible!"),
])  # fmt: skip
def test_refusals(f, x, error, message):
    refuses_as(error, message, f, vm.var(x))


@pytest.mark.parametrize("p", [None, 2, -2])
def test_the_condition_of_a_zero_matrix(p):
    assert np.linalg.cond(vm.var(np.zeros((2, 2))), p).val == np.inf
