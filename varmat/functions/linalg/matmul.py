"""The matrix product: its rules, and the operator ``@``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64, is_foreign
from varmat.core.dual import Dual
from varmat.core.operation import operation
from varmat.core.operators import ANSWERS
from varmat.core.tape import join
from varmat.core.variables import (
    ARRAYS,
    Large,
    Var,
    VarMat,
    adjoint_space,
    make_result,
    new,
    root_of,
)
from varmat.functions.arrays.constant import named
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.arrays.repeating import align
from varmat.functions.checks import check_array, misfit
from varmat.functions.linalg.lapack import add_outer
from varmat.functions.sparse.products import data_times_right, times_data
from varmat.plain_arrays import is_scipy_sparse
from varmat.programs.build.symbol import is_symbol
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Settings, Thunk

# For matrices of up to this many elements their order in memory makes no difference.
ORDER_MATTERS = 1024


def check_matmul(name: str, a: Operand, b: Operand) -> None:
    p, q = np.shape(a), np.shape(b)
    for title, x in (("a", a), ("b", b)):
        check_array(name, title, x, "be a vector, a matrix or a stack of matrices")
    if p[-1] != q[-2 if len(q) > 1 else 0]:
        raise misfit(name, "b", q, f"have {p[-1]} rows, because a has shape {p}")
    try:
        np.broadcast_shapes(p[:-2], q[:-2])
    except ValueError:
        raise misfit(
            name,
            "b",
            q,
            f"have leading axes that broadcast with the leading axes of a, of shape {p}",
        ) from None


def _adjoint_product(x: Operand, y: Operand) -> Result:
    """``x @ y`` where one factor is an adjoint. Below a sum the adjoint repeats along an axis, so
    that a product with one vector is enough.
    """
    if x.size and y.size and type(x) is type(y) is np.ndarray:
        if not x.strides[0]:
            return _repeated_vector(np.dot(y.T, x[0]), (x.shape[0], y.shape[1]), 0)
        if not y.strides[1]:
            return _repeated_vector(np.dot(x, y[:, 0]), (x.shape[0], y.shape[1]), 1)
        if not x.strides[1]:
            return np.multiply.outer(x[:, 0], add_reduce(y, 0))
        if not y.strides[0]:
            return np.multiply.outer(add_reduce(x, 1), y[0])
    return np.dot(x, y)


def _outer(column: Operand, row: Operand) -> Result:
    """Columns times rows; of symbols a product of matrices, because programs make one product of
    many whose sum is wanted.
    """
    if is_symbol(column) or is_symbol(row):
        return np.matmul(column[..., None], row[..., None, :])
    return column[..., None] * (row if row.ndim == 1 else row[..., None, :])


def _repeated_vector(vector: Plain, shape: tuple[int, int], axis: int) -> Result:
    """Return a read-only matrix that repeats a vector along an axis, without writing it."""
    vector.flags.writeable = False
    return np.ndarray(shape, FLOAT64, vector, 0, (8, 0) if axis else (0, 8))


def _lies_transposed(x: Operand) -> bool:
    """Tell whether a matrix, if it is not small, lies in memory by columns.

    So does its adjoint, and adding to it in the same order takes a fifth of the time for 256 rows.
    """
    is_large = type(x) is np.ndarray and x.ndim == 2 and x.size > ORDER_MATTERS
    return is_large and x.strides[0] < x.strides[1]


def left_factor(g: Adjoint, a: Operand, b: Operand) -> Result:
    """Compute the contribution ``g bᵀ`` to the adjoint of `a` in ``a @ b``."""
    if _lies_transposed(a) and b.ndim < 3:
        return right_factor(g.T, b.T, a.T).T
    if a.ndim == b.ndim == 2:
        return _adjoint_product(g, b.T)
    if b.ndim == 1:
        return g * b if a.ndim == 1 else _outer(g, b)
    if a.ndim > 1:
        return np.matmul(g, b.mT)
    return np.matmul(b, g[..., None])[..., 0]


def right_factor(g: Adjoint, a: Operand, b: Operand) -> Result:
    """Compute the contribution ``aᵀ g`` to the adjoint of `b` in ``a @ b``."""
    if _lies_transposed(b) and a.ndim < 3:
        return left_factor(g.T, b.T, a.T).T
    if a.ndim == b.ndim == 2:
        return _adjoint_product(a.T, g)
    if a.ndim == 1:
        return g * a if b.ndim == 1 else _outer(a, g)
    if b.ndim > 2:
        return np.matmul(a.mT, g)
    # One product, with the matrices of the stack above each other, replaces a sum of products.
    if a.ndim > 2:
        rows = math.prod(a.shape[:-1])
        a, g = a.reshape(rows, a.shape[-1]), g.reshape(rows, *b.shape[1:])
    return np.dot(a.T, g)


@operation(native=True, stacked=True)
def matmul(a: Plain, b: Plain) -> Plain:
    """Matrix product of vectors, matrices, and stacks of matrices.

    Parameters
    ----------
    a, b : array_like
        Of shapes ``(..., m, k)`` and ``(..., k, n)``, leading axes broadcast, or vectors of length
        `k`.

    Returns
    -------
    Var or VarMat
        Of shape ``(..., m, n)``, without the axis of a vector.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    For the adjoint `g` of the result, `a` has the adjoint ``g @ b.T`` and `b` has ``a.T @ g``.

    References
    ----------
    Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> vm.gradient(lambda b: np.sum(X @ b), np.ones(2))
    array([4., 6.])
    """
    check_matmul("matmul", a, b)
    return np.matmul(a, b)


@matmul.reverse
def matmul_reverse(g: Adjoint, r: Plain, a: Plain, b: Plain) -> tuple[Thunk, ...]:
    return lambda: left_factor(g, a, b), lambda: right_factor(g, a, b)


@matmul.tangent
def matmul_tangent(r: Result, a: Operand, b: Operand) -> tuple[Linear, ...]:
    return lambda t: _left_tangent(t, a, b), lambda t: _right_tangent(t, a, b)


def _left_tangent(t: Result, a: Operand, b: Operand) -> Result:
    """Multiply tangents of `a`, maybe with an axis of directions in front, by `b`."""
    if np.ndim(t) == np.ndim(a) or np.ndim(b) < 3:
        return np.matmul(t, b)
    if np.ndim(a) == 1:  # as rows
        return np.matmul(np.reshape(t, (len(t), *(1,) * (np.ndim(b) - 1), -1)), b)[..., 0, :]
    return np.matmul(align(t, a, b), b)


def _right_tangent(t: Result, a: Operand, b: Operand) -> Result:
    """Multiply `a` by tangents of `b`, maybe with an axis of directions in front."""
    if np.ndim(t) == np.ndim(b):
        return np.matmul(a, t)
    if np.ndim(b) == 1:  # one product with the vectors of all directions
        return (
            np.matmul(t, np.transpose(a))
            if np.ndim(a) < 3
            else np.moveaxis(np.matmul(a, np.transpose(t)), -1, 0)
        )
    return np.matmul(a, align(t, b, a))


@matmul.chained
def _matmul_chain(result: Operand, operands: Sequence[Operand], _: Settings) -> None:
    g, (a, b) = result._adj, operands
    x = a._val if type(a) in ARRAYS else a
    y = b._val if type(b) in ARRAYS else b
    if a is b and x.ndim == 1:
        a._take((g + g) * x)
        return
    if type(g) is float:
        _take_multiple(a, g, y)
        _take_multiple(b, g, x)
        return
    if x is not a and not (x.ndim == 2 and _added_in_place(a, g, y)):
        a._take(left_factor(g, x, y))
    if y is not b and not (y.ndim == 2 and _added_in_place(b, x.T, g.T)):
        b._take(right_factor(g, x, y))


def _added_in_place(x: Operand, p: Operand, q: Operand) -> bool:
    """Add ``p qᵀ``, of vectors or matrices, to the adjoint of `x` without making it first: True if
    that was done.

    Weights of a recurrent network get a contribution at each step. Adding it so takes a fifth of
    the time for 64 x 64 elements and vectors, two thirds for 256 x 256 and eight columns. First
    contributions, and factors with as many elements as the adjoint, are left to an ordinary
    product."""
    c: Adjoint = x._adj if type(x) in ARRAYS else None
    if c is None or p.size + q.size >= c.size or p.ndim > 2 or not root_of(x)._adj.flags.writeable:
        return False
    if c.flags.c_contiguous:
        add_outer(c, p, q)
    elif c.flags.f_contiguous:
        add_outer(c.T, q, p)
    else:
        return False
    return True


def _take_multiple(a: Operand, g: float, other: Operand) -> None:
    """Add the contribution of an inner product to the adjoint of one factor."""
    if type(a) is Large and a._adj is None:
        a._adj = np.multiply(other, g, adjoint_space(a))
    elif type(a) in ARRAYS:
        a._take(g * other)


def matmul_operator(a: Operand, b: Operand) -> Result:
    """``a @ b``. Arrays that are variables or data are recorded here, others by `matmul`."""
    if type(a) in ARRAYS:
        x, tape = a._val, a._tape
        if type(b) in ARRAYS:
            y = b._val
            tape = tape.top if tape is b._tape else join(tape, b._tape)
        elif type(b) is np.ndarray and b.dtype is FLOAT64:
            y, tape = b, tape.top
        else:
            return _other_kinds(a, b)
    elif type(b) in ARRAYS and type(a) is np.ndarray and a.dtype is FLOAT64:
        x, y, tape = a, b._val, b._tape.top
    else:
        return _other_kinds(a, b)
    result: Result
    try:
        if (
            x.size > LARGE
            and y.ndim
            and (shape := _shape_of_product(x, y))
            and math.prod(shape) > LARGE
        ):
            result = make_result(np.matmul(x, y, out=tape.workspace(shape)), tape)
        else:
            val = x.dot(y) if 0 < x.ndim < 3 and 0 < y.ndim < 3 else np.matmul(x, y)
            result = new(VarMat if val.__class__ is np.ndarray else Var)
            result._val = val if val.__class__ is np.ndarray else float(val)
            result._adj = None
            result._tape = tape
    except ValueError:
        return matmul(a, b)  # says what does not fit
    tape.append((matmul.rule, result, (a, b), {}))
    return result


def _shape_of_product(x: Operand, y: Operand) -> tuple[int, ...]:
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return (*lead, *x.shape[-2:-1], *(y.shape[-1:] if y.ndim > 1 else ()))


def _other_kinds(a: Operand, b: Operand) -> Result:
    if is_foreign(a) or is_foreign(b):
        return NotImplemented  # the other side may know what to do
    if is_scipy_sparse(a):
        return times_data(a, b)
    if is_scipy_sparse(b):
        return data_times_right(a, b)
    return matmul(a, b)


def _reflected(self: Operand, other: Operand) -> Result:
    return matmul_operator(other, self)


_VARIABLES = (Var, VarMat, Dual)
matmul.call, ANSWERS["matmul"] = matmul_operator, matmul
matmul.operators = (
    dict.fromkeys(_VARIABLES, matmul_operator),
    dict.fromkeys(_VARIABLES, _reflected),
)


def answer_ufunc(ufunc_name: str, function: Function) -> None:
    """Let `function` answer for a ufunc, if this version of NumPy has it."""
    dispatch.SUPPORTED.update(dict.fromkeys(named(ufunc_name), function))


answer_ufunc("matmul", matmul_operator)
dispatch.SUPPORTED[np.linalg.matmul] = matmul_operator
