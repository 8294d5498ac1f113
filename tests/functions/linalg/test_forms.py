"""Stan's quadratic forms and other products: against 50-digit arithmetic and Stan Math, along all
routes, and refusals.
"""

import mpmath as mp
import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal
from functions.matrices import (
    COLUMN_STACK,
    COLUMNS,
    GENERAL,
    GENERALS,
    SPD,
    TALL,
    TALLS,
    VECTOR,
    WIDE,
    gradients,
    refuses,
    worst_error,
)

import varmat as vm
from varmat.functions.linalg import matrix_functions
from varmat.testing import expect_ad, expect_ad_matvar

SQUARE = np.array([[1.2, -0.7], [0.4, 2.1]])
SQUARES = np.stack([SQUARE, 1.5 - SQUARE])
VECTORS = np.stack([VECTOR, VECTOR[::-1] + 0.5])


def lower(m):
    return mp.matrix(m.rows, m.cols) + mp.matrix(
        [[m[i, j] if j <= i else 0 for j in range(m.cols)] for i in range(m.rows)]
    )


def trace(m):
    return mp.fsum(m[i, i] for i in range(m.rows))


def diagonal(v):
    return mp.diag(list(v))


def product(m, x):
    return mp.expm(m, method="taylor") * x


# Function, arguments, the same in 50-digit arithmetic. Vectors are columns there.
EXACT = [
    (vm.quad_form, [GENERAL, COLUMNS], lambda a, b: b.T * a * b),
    (vm.quad_form, [GENERAL, VECTOR], lambda a, b: b.T * a * b),
    (vm.quad_form_sym, [SPD, COLUMNS], lambda a, b: b.T * a * b),
    (vm.quad_form_sym, [SPD, VECTOR], lambda a, b: b.T * a * b),
    (vm.trace_quad_form, [GENERAL, COLUMNS], lambda a, b: trace(b.T * a * b)),
    (vm.trace_gen_quad_form, [SQUARE, GENERAL, COLUMNS], lambda d, a, b: trace(d * b.T * a * b)),
    (vm.crossprod, [TALL], lambda m: m.T * m), (vm.tcrossprod, [TALL], lambda m: m * m.T),
    (vm.multiply_lower_tri_self_transpose, [GENERAL], lambda m: lower(m) * lower(m).T),
    (vm.diag_pre_multiply, [VECTOR, WIDE], lambda v, m: diagonal(v) * m),
    (vm.diag_post_multiply, [TALL, VECTOR], lambda m, v: m * diagonal(v)),
    (vm.quad_form_diag, [GENERAL, VECTOR], lambda m, v: diagonal(v) * m * diagonal(v)),
    (vm.matrix_exp_multiply, [GENERAL, COLUMNS], product),
    (vm.scale_matrix_exp_multiply, [0.7, GENERAL, COLUMNS], lambda t, a, b: product(t * a, b)),
    (vm.scale_matrix_exp_multiply, [-0.4, GENERAL, VECTOR], lambda t, a, b: product(t * a, b)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "exact"), EXACT)
def test_against_50_digits(f, args, exact):
    tolerance = 1e-13 if "exp" in f.__name__ else 1e-14
    assert worst_error(f, exact, args, symmetric=f is vm.quad_form_sym) < tolerance


def symmetrised(f):
    """Turn a function of a symmetric matrix into a function of any matrix."""
    return lambda c, b: f(c + c.mT, b)


EMPTY = np.empty((0, 0))
NO_ROWS, NO_COLUMNS = np.empty((0, 2)), np.empty((3, 0))
ONE = np.array([[1.5]])
# Function -> the points at which all routes are compared.
CASES = {
    **{form: [
        (GENERAL, COLUMNS), (GENERAL, VECTOR), (GENERALS, COLUMN_STACK), (GENERAL, COLUMN_STACK),
        (GENERALS, VECTOR), (GENERALS[:, None], COLUMN_STACK), (ONE, np.array([2.0])),
        (EMPTY, NO_ROWS), (GENERAL, NO_COLUMNS),
    ] for form in (vm.quad_form, symmetrised(vm.quad_form_sym), vm.trace_quad_form)},
    vm.trace_gen_quad_form: [
        (SQUARES, GENERALS, COLUMNS), (SQUARE, GENERAL, COLUMN_STACK), (EMPTY, GENERAL, NO_COLUMNS),
        (SQUARE, EMPTY, NO_ROWS),
    ],
    vm.diag_pre_multiply: [(VECTOR, COLUMNS), (VECTORS, COLUMNS), (np.empty(0), NO_ROWS)],
    vm.diag_post_multiply: [(TALLS, VECTORS), (TALL, VECTORS), (NO_COLUMNS, np.empty(0))],
    vm.quad_form_diag: [(GENERAL, VECTORS), (GENERALS, VECTOR), (EMPTY, np.empty(0))],
    vm.matrix_exp_multiply: [(SQUARE, SQUARES[0, 0]), (SQUARES, COLUMNS[:2]), (EMPTY, NO_ROWS)],
    vm.scale_matrix_exp_multiply: [
        (0.5, SQUARE, SQUARE[1]), (0.5, SQUARE, SQUARES[..., :1]), (0.5, EMPTY, NO_ROWS),
    ],
    **{f: [(TALL,), (TALLS,), (NO_ROWS,), (NO_COLUMNS,)]
       for f in (vm.crossprod, vm.tcrossprod, vm.multiply_lower_tri_self_transpose)},
}  # fmt: skip


@pytest.mark.parametrize(
    ("f", "args"), [(f, args) for f, points in CASES.items() for args in points]
)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


def test_products_are_exactly_symmetric():
    rng = np.random.default_rng(1)
    stack, b = rng.normal(size=(2, 17, 23)), rng.normal(size=(17, 9))
    a, near = vm.crossprod(rng.normal(size=(20, 17))), SPD + 9e-9 * np.eye(3, k=2)
    for r in (
        vm.crossprod(stack), vm.tcrossprod(stack), vm.multiply_lower_tri_self_transpose(stack),
        vm.quad_form_sym(a, b), vm.quad_form_diag(a, b[:, 0]), vm.quad_form_sym(near, COLUMNS),
    ):  # fmt: skip
        equal(r, r.mT)


def test_the_upper_triangle_of_a_factor_is_never_read():
    m = np.where(np.tri(3, dtype=bool), GENERAL, np.nan)
    (value,), (adjoint,) = gradients(vm.multiply_lower_tri_self_transpose, [m])
    close(value, np.tril(GENERAL) @ np.tril(GENERAL).T, 1e-7)
    assert np.isfinite(adjoint).all()
    equal(np.triu(adjoint, 1), np.zeros((3, 3)))


@pytest.mark.parametrize(("f", "written_out"), [
    (vm.quad_form_diag, lambda m, v: v[:, None] * m * v),
    (lambda m, v: vm.diag_pre_multiply(v, m), lambda m, v: v[:, None] * m),
    (lambda m, v: vm.multiply_lower_tri_self_transpose(m), lambda m, v: np.tril(m) @ np.tril(m).T),
    (lambda m, v: vm.multiply_lower_tri_self_transpose(m[:90]),
     lambda m, v: np.tril(m[:90]) @ np.tril(m[:90]).T),
])  # fmt: skip
def test_large_matrices(f, written_out):
    # These sizes exceed those at which matrices lie in the arena and triangles are taken whole.
    rng = np.random.default_rng(2)
    args = [rng.normal(size=(130, 130)), rng.normal(size=130)]
    for ours, expected in zip(gradients(f, args), gradients(written_out, args), strict=True):
        close(ours, expected, 1e-12, 1e-12)


def test_the_time_derivative_needs_no_derivative_of_the_exponential(monkeypatch):
    monkeypatch.setattr(matrix_functions, "expm_reverse", None)
    (value,), (of_t,) = gradients(lambda t: vm.scale_matrix_exp_multiply(t, GENERAL, VECTOR), [0.3])
    close(of_t, gradients(lambda r: r, [value])[1][0] @ GENERAL @ value, 1e-14)


NON_SYMMETRIC = np.array([np.eye(3), np.eye(3)])
NON_SYMMETRIC[1, 2, 0] = 1.5
WITH_NAN = np.array([[1.0, np.nan], [np.nan, 1.0]])
# Function, arguments, error, message.
REFUSED = [
    (vm.quad_form, (TALL, COLUMNS), SHAPE, "a has shape (4, 3), but must be a square matrix"),
    (vm.quad_form, (GENERAL, TALL), SHAPE, "b has shape (4, 3), but must have 3 rows, as a has!"),
    (vm.quad_form, (GENERAL, 2.0), SHAPE, "b has shape (), but must have 3 rows, as a has!"),
    (vm.quad_form, (2.0, VECTOR), SHAPE, "a has shape (), but must be a square matrix"),
    (vm.quad_form, (GENERALS, np.ones((3, 3, 2))), SHAPE,
     "b has shape (3, 3, 2), but must match a, of shape (2, 3, 3)!"),
    (vm.quad_form, (GENERAL, 1j * VECTOR), TypeError,
     "b has dtype complex128, but must be real numbers (float64, or what converts to it)"),
    (vm.quad_form_sym, (SQUARE, SQUARE[:1]), SHAPE, "b has shape (1, 2), but must have 2 rows"),
    (vm.quad_form_sym, (SQUARE, SQUARE), DOMAIN,
     "a[0, 1] is -0.7, but must be 0.4, as a[1, 0] is, for a symmetric matrix!"),
    (vm.quad_form_sym, (NON_SYMMETRIC, VECTOR), DOMAIN,
     "a[1, 0, 2] is 0.0, but must be 1.5, as a[1, 2, 0] is, for a symmetric matrix!"),
    (vm.quad_form_sym, (WITH_NAN, SQUARE), DOMAIN, "a[0, 1] is nan, but must be finite!"),
    (vm.trace_quad_form, (GENERAL, TALL), SHAPE, "b has shape (4, 3), but must have 3 rows"),
    (vm.trace_gen_quad_form, (COLUMNS, GENERAL, COLUMNS), SHAPE,
     "d has shape (3, 2), but must be a square matrix (or a stack of them)!"),
    (vm.trace_gen_quad_form, (GENERAL, GENERAL, COLUMNS), SHAPE,
     "b has shape (3, 2), but must have 3 columns and match d, of shape (3, 3)!"),
    (vm.trace_gen_quad_form, (SQUARE, GENERAL, VECTOR), SHAPE,
     "b has shape (3,), but must be a matrix (or a stack of them)!"),
    (vm.trace_gen_quad_form, (np.ones((3, 2, 2)), GENERALS, COLUMNS), SHAPE,
     "b has shape (3, 2), but must have 2 columns and match d, of shape (3, 2, 2)!"),
    (vm.crossprod, (VECTOR,), SHAPE,
     "m has shape (3,), but must be a matrix (or a stack of them)!"),
    (vm.tcrossprod, (VECTOR,), SHAPE, "m has shape (3,), but must be a matrix"),
    (vm.multiply_lower_tri_self_transpose, (VECTOR,), SHAPE, "m has shape (3,)"),
    (vm.diag_pre_multiply, (VECTOR, TALL), SHAPE,
     "v has shape (3,), but must have one element for each row of m, of shape (4, 3)!"),
    (vm.diag_pre_multiply, (VECTOR, VECTOR), SHAPE, "m has shape (3,), but must be a matrix"),
    (vm.diag_pre_multiply, (np.ones((3, 3)), GENERALS), SHAPE, "v has shape (3, 3), but must"),
    (vm.diag_pre_multiply, (2.0, TALL), SHAPE, "v has shape (), but must have one element"),
    (vm.diag_post_multiply, (COLUMNS, VECTOR), SHAPE,
     "v has shape (3,), but must have one element for each column of m, of shape (3, 2)!"),
    (vm.quad_form_diag, (TALL, VECTOR), SHAPE, "m has shape (4, 3), but must be a square matrix"),
    (vm.quad_form_diag, (SQUARE, VECTOR), SHAPE, "v has shape (3,), but must have one element for"),
    (vm.matrix_exp_multiply, (TALL, VECTOR), SHAPE, "a has shape (4, 3), but must be a square"),
    (vm.matrix_exp_multiply, (SQUARE, VECTOR), SHAPE, "b has shape (3,), but must have 2 rows"),
    (vm.scale_matrix_exp_multiply, (VECTOR, GENERAL, VECTOR), SHAPE,
     "t has shape (3,), but must be a scalar!"),
    (vm.scale_matrix_exp_multiply, (1.0, GENERAL, SQUARE), SHAPE,
     "b has shape (2, 2), but must have 3 rows, as a has!"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "error", "message"), REFUSED)
def test_refusals(f, args, error, message):
    refuses(f, args, error, message)
