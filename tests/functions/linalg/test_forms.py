"""Stan's quadratic forms and other products: against 50-digit arithmetic and Stan Math, along all
routes, and refusals.
"""

import mpmath as mp
import numpy as np
import pytest
import stan
from comparing import close, equal
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


# Name -> arguments, and the function in 50-digit arithmetic. Vectors are columns there.
EXACT = {
    "quad_form": ([GENERAL, COLUMNS], lambda a, b: b.T * a * b),
    "quad_form of a vector": ([GENERAL, VECTOR], lambda a, b: b.T * a * b),
    "quad_form_sym": ([SPD, COLUMNS], lambda a, b: b.T * a * b),
    "quad_form_sym of a vector": ([SPD, VECTOR], lambda a, b: b.T * a * b),
    "trace_quad_form": ([GENERAL, COLUMNS], lambda a, b: trace(b.T * a * b)),
    "trace_gen_quad_form": ([SQUARE, GENERAL, COLUMNS], lambda d, a, b: trace(d * b.T * a * b)),
    "crossprod": ([TALL], lambda m: m.T * m),
    "tcrossprod": ([TALL], lambda m: m * m.T),
    "multiply_lower_tri_self_transpose": ([GENERAL], lambda m: lower(m) * lower(m).T),
    "diag_pre_multiply": ([VECTOR, WIDE], lambda v, m: diagonal(v) * m),
    "diag_post_multiply": ([TALL, VECTOR], lambda m, v: m * diagonal(v)),
    "quad_form_diag": ([GENERAL, VECTOR], lambda m, v: diagonal(v) * m * diagonal(v)),
    "matrix_exp_multiply": ([GENERAL, COLUMNS], product),
    "scale_matrix_exp_multiply": ([0.7, GENERAL, COLUMNS], lambda t, a, b: product(t * a, b)),
    "scale_matrix_exp_multiply of a vector": ([-0.4, GENERAL, VECTOR],
        lambda t, a, b: product(t * a, b)),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    args, exact = EXACT[name]
    function = name.split(" ")[0]
    tolerance = 1e-13 if "exp" in function else 1e-14
    found = worst_error(getattr(vm, function), exact, args, symmetric=function == "quad_form_sym")
    assert found < tolerance


def named(entry):
    return getattr(vm, entry["function"])


@pytest.mark.parametrize("entry", stan.entries("forms"))
def test_against_stan(entry):
    # Stan distributes the derivative in a symmetric matrix differently over its two triangles.
    stan.check(
        named(entry),
        entry,
        rtol=1e-13,
        fold=stan.lower if entry["function"] == "quad_form_sym" else None,
    )


@pytest.mark.parametrize("entry", stan.entries("forms", throws=True))
def test_what_stan_refuses(entry):
    with pytest.raises(ValueError, match=r"must be|must have|broadcast"):
        named(entry)(*stan.arguments(entry))


def symmetrised(f):
    """Turn a function of a symmetric matrix into a function of any matrix."""
    return lambda c, b: f(c + c.mT, b)


EMPTY = np.empty((0, 0))
NO_ROWS, NO_COLUMNS = np.empty((0, 2)), np.empty((3, 0))
ONE = np.array([[1.5]])
# Function -> the points at which all routes are compared.
CASES = {
    **{form: [
        (GENERAL, COLUMNS), (GENERAL, VECTOR), (GENERALS, COLUMN_STACK), (GENERALS, COLUMNS),
        (GENERAL, COLUMN_STACK), (GENERALS, VECTOR), (GENERALS[:, None], COLUMN_STACK),
        (GENERAL, GENERAL), (ONE, np.array([[2.0]])), (ONE, np.array([2.0])), (EMPTY, NO_ROWS),
        (EMPTY, np.empty(0)), (GENERAL, NO_COLUMNS),
    ] for form in (vm.quad_form, symmetrised(vm.quad_form_sym), vm.trace_quad_form)},
    vm.trace_gen_quad_form: [
        (SQUARE, GENERAL, COLUMNS), (SQUARES, GENERALS, COLUMNS), (SQUARE, GENERAL, COLUMN_STACK),
        (GENERAL, GENERAL, GENERAL), (EMPTY, GENERAL, NO_COLUMNS), (SQUARE, EMPTY, NO_ROWS),
    ],
    vm.diag_pre_multiply: [
        (VECTOR, COLUMNS), (VECTORS, COLUMNS), (VECTOR, COLUMN_STACK), (np.empty(0), NO_ROWS),
    ],
    vm.diag_post_multiply: [
        (TALL, VECTOR), (TALLS, VECTORS), (TALL, VECTORS), (NO_COLUMNS, np.empty(0)),
    ],
    vm.quad_form_diag: [
        (GENERAL, VECTOR), (GENERALS, VECTORS), (GENERAL, VECTORS), (GENERALS, VECTOR),
        (EMPTY, np.empty(0)),
    ],
    vm.matrix_exp_multiply: [(SQUARE, SQUARES[0, 0]), (SQUARES, COLUMNS[:2]), (EMPTY, NO_ROWS)],
    vm.scale_matrix_exp_multiply: [
        (0.5, SQUARE, SQUARE[1]), (0.5, SQUARES, COLUMNS[:2, :1]), (0.5, SQUARE, SQUARES[..., :1]),
        (0.5, EMPTY, NO_ROWS),
    ],
    **{f: [(TALL,), (TALLS,), (WIDE,), (ONE,), (NO_ROWS,), (NO_COLUMNS,)]
       for f in (vm.crossprod, vm.tcrossprod, vm.multiply_lower_tri_self_transpose)},
}  # fmt: skip


@pytest.mark.parametrize(
    ("f", "args"), [(f, args) for f, points in CASES.items() for args in points]
)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


@pytest.mark.parametrize("f", [vm.crossprod, vm.tcrossprod, vm.multiply_lower_tri_self_transpose])
def test_products_with_the_transpose_are_exactly_symmetric(f):
    rng = np.random.default_rng(1)
    r = f(rng.normal(size=(2, 17, 23)))
    equal(r, r.mT)


def test_forms_of_symmetric_matrices_are_exactly_symmetric():
    rng = np.random.default_rng(1)
    b = rng.normal(size=(17, 9))
    a = vm.crossprod(rng.normal(size=(20, 17)))
    for r in (vm.quad_form_sym(a, b), vm.quad_form_diag(a, b[:, 0])):
        equal(r, r.T)


def test_nearly_symmetric_matrices_pass():
    a = SPD.copy()
    a[0, 2] += 9e-9
    value = vm.quad_form_sym(a, COLUMNS)
    equal(value, value.T)
    close(value, COLUMNS.T @ a @ COLUMNS, 1e-7, 1e-7)


def test_the_adjoint_of_a_symmetric_matrix_is_symmetric():
    _, (adjoint, _) = gradients(vm.quad_form_sym, [SPD, COLUMNS])
    close(adjoint, adjoint.T, 1e-14)


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


NON_SYMMETRIC = np.array([SPD, SPD])
NON_SYMMETRIC[1, 2, 0] = 1.5
WITH_NAN = np.array([[1.0, np.nan], [np.nan, 1.0]])
# Function, arguments, error, message.
REFUSED = [
    (vm.quad_form, (TALL, COLUMNS), vm.ShapeError,
     r"quad_form: a has shape \(4, 3\), but must be a square matrix"),
    (vm.quad_form, (GENERAL, TALL), vm.ShapeError,
     r"quad_form: b has shape \(4, 3\), but must have 3 rows, as a has!"),
    (vm.quad_form, (GENERAL, 2.0), vm.ShapeError,
     r"quad_form: b has shape \(\), but must have 3 rows, as a has!"),
    (vm.quad_form, (2.0, VECTOR), vm.ShapeError,
     r"quad_form: a has shape \(\), but must be a square matrix"),
    (vm.quad_form, (GENERALS, np.ones((3, 3, 2))), vm.ShapeError,
     r"quad_form: b has shape \(3, 3, 2\), but must match a"),
    (vm.quad_form, (GENERAL, 1j * VECTOR), TypeError,
     "quad_form: b has dtype complex128, but must be real numbers"),
    (vm.quad_form_sym, (SQUARE, SQUARE[:1]), vm.ShapeError,
     r"quad_form_sym: b has shape \(1, 2\), but must have 2 rows"),
    (vm.quad_form_sym, (SQUARE, SQUARE), vm.DomainError,
     (r"quad_form_sym: a\[0, 1\] is -0.7, but must be 0.4, as a\[1, 0\] is, for a symmetric "
      "matrix!")),
    (vm.quad_form_sym, (NON_SYMMETRIC, VECTOR), vm.DomainError,
     r"quad_form_sym: a\[1, 0, 2\] is .*, but must be 1.5, as a"),
    (vm.quad_form_sym, (WITH_NAN, SQUARE), vm.DomainError,
     r"quad_form_sym: a\[0, 1\] is nan, but must be finite!"),
    (vm.trace_quad_form, (GENERAL, TALL), vm.ShapeError,
     r"trace_quad_form: b has shape \(4, 3\), but must have 3 rows"),
    (vm.trace_gen_quad_form, (COLUMNS, GENERAL, COLUMNS), vm.ShapeError,
     r"trace_gen_quad_form: d has shape \(3, 2\), but must be a square"),
    (vm.trace_gen_quad_form, (GENERAL, GENERAL, COLUMNS), vm.ShapeError,
     (r"trace_gen_quad_form: b has shape \(3, 2\), but must have 3 columns and match d, of shape "
     r"\(3, 3\)!")),
    (vm.trace_gen_quad_form, (SQUARE, GENERAL, VECTOR), vm.ShapeError,
     r"trace_gen_quad_form: b has shape \(3,\), but must be a matrix"),
    (vm.trace_gen_quad_form, (np.ones((3, 2, 2)), GENERALS, COLUMNS), vm.ShapeError,
     (r"trace_gen_quad_form: b has shape \(3, 2\), but must have 2 columns and match d, of shape "
     r"\(3, 2, 2\)!")),
    (vm.crossprod, (VECTOR,), vm.ShapeError,
     r"crossprod: m has shape \(3,\), but must be a matrix \(or a stack of them\)!"),
    (vm.tcrossprod, (VECTOR,), vm.ShapeError,
     r"tcrossprod: m has shape \(3,\), but must be a matrix"),
    (vm.multiply_lower_tri_self_transpose, (VECTOR,), vm.ShapeError,
     r"multiply_lower_tri_self_transpose: m has shape \(3,\)"),
    (vm.diag_pre_multiply, (VECTOR, TALL), vm.ShapeError,
     (r"diag_pre_multiply: v has shape \(3,\), but must have one element for each row of m, of "
     r"shape \(4, 3\)!")),
    (vm.diag_pre_multiply, (VECTOR, VECTOR), vm.ShapeError,
     r"diag_pre_multiply: m has shape \(3,\), but must be a matrix"),
    (vm.diag_pre_multiply, (np.ones((3, 3)), GENERALS), vm.ShapeError,
     r"diag_pre_multiply: v has shape \(3, 3\), but must"),
    (vm.diag_pre_multiply, (2.0, TALL), vm.ShapeError,
     r"diag_pre_multiply: v has shape \(\), but must have one element"),
    (vm.diag_post_multiply, (COLUMNS, VECTOR), vm.ShapeError,
     (r"diag_post_multiply: v has shape \(3,\), but must have one element for each column of m, of "
     r"shape \(3, 2\)!")),
    (vm.quad_form_diag, (TALL, VECTOR), vm.ShapeError,
     r"quad_form_diag: m has shape \(4, 3\), but must be a square matrix"),
    (vm.quad_form_diag, (SQUARE, VECTOR), vm.ShapeError,
     r"quad_form_diag: v has shape \(3,\), but must have one element for"),
    (vm.matrix_exp_multiply, (TALL, VECTOR), vm.ShapeError,
     r"matrix_exp_multiply: a has shape \(4, 3\), but must be a square"),
    (vm.matrix_exp_multiply, (SQUARE, VECTOR), vm.ShapeError,
     r"matrix_exp_multiply: b has shape \(3,\), but must have 2 rows"),
    (vm.scale_matrix_exp_multiply, (VECTOR, GENERAL, VECTOR), vm.ShapeError,
     r"scale_matrix_exp_multiply: t has shape \(3,\), but must be a scalar!"),
    (vm.scale_matrix_exp_multiply, (1.0, GENERAL, SQUARE), vm.ShapeError,
     r"scale_matrix_exp_multiply: b has shape \(2, 2\), but must have 3 rows"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "error", "message"), REFUSED)
def test_refusals(f, args, error, message):
    refuses(f, args, error, message)


def test_names():
    from varmat.core.dispatch import SUPPORTED

    for name, ufunc in (
        ("elt_multiply", np.multiply), ("elt_divide", np.divide),     ("plus", np.positive),
        ("minus", np.negative),
    ):  # fmt: skip
        row = getattr(vm, name)
        assert row.alias_of.call is SUPPORTED[ufunc]
        args = (TALL, TALL[0])[: ufunc.nin]
        equal(row(*args), ufunc(*args))
        expect_ad(row, *args)
        expect_ad_matvar(row, *args)
