"""Products of vectors, matrices and stacks of them.

`matmul` is the product with rules; NumPy's other products of two arrays are written with it, on
reshaped operands, which are views and cost nothing. Products over arbitrary axes stand in `einsum`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64, is_foreign
from varmat.core.dual import Dual
from varmat.core.errors import ShapeError
from varmat.core.matvar import MatVar
from varmat.core.operation import as_operand, operation
from varmat.core.tape import Rule, join
from varmat.core.variables import ARRAYS, Large, Var, VarMat, adjoint_space, make_result, new
from varmat.functions.arrays.composites import composite
from varmat.functions.arrays.constant import named
from varmat.functions.arrays.gathering import align
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import check_matrix, check_settings, delivered
from varmat.functions.linalg.lapack import add_outer
from varmat.functions.sparse.products import data_times_right, times_data
from varmat.plain_arrays import is_scipy_sparse

__all__ = ["dot_product", "kron", "multiply"]

# --- the matrix product ---

# Elements of a matrix up to which the order of its elements in memory makes no difference.
SMALL = 1024


def _check_matmul(name: str, a: Any, b: Any) -> None:
    p, q = np.shape(a), np.shape(b)
    for title, shape in (("a", p), ("b", q)):
        if not shape:
            raise ShapeError(
                f"{name}: {title} is a scalar, but must be a vector, a matrix or a stack of "
                "matrices!"
            )
    if p[-1] != q[-2 if len(q) > 1 else 0]:
        raise ShapeError(
            f"{name}: b has shape {q}, but must have {p[-1]} rows, for a has shape {p}!"
        )
    try:
        np.broadcast_shapes(p[:-2], q[:-2])
    except ValueError:
        raise ShapeError(
            f"{name}: b has shape {q}, but must have leading axes that broadcast with those of {p}!"
        ) from None


def _product(x: Any, y: Any) -> Any:
    """``x @ y`` for matrices of which one is an adjoint: below a sum it is the same along an axis,
    and a vector will do.
    """
    if x.size and y.size:
        if not x.strides[0]:
            return _repeated(y.T.dot(x[0]), (x.shape[0], y.shape[1]), 0)
        if not y.strides[1]:
            return _repeated(x.dot(y[:, 0]), (x.shape[0], y.shape[1]), 1)
        if not x.strides[1]:
            return np.multiply.outer(x[:, 0], add_reduce(y, 0))
        if not y.strides[0]:
            return np.multiply.outer(add_reduce(x, 1), y[0])
    return x.dot(y)


def _repeated(vector: Any, shape: tuple[int, int], axis: int) -> Any:
    """A matrix with the same vector all along an axis, read-only, without writing it."""
    vector.flags.writeable = False
    return np.ndarray(shape, FLOAT64, vector, 0, (8, 0) if axis else (0, 8))


def _lies_transposed(x: Any) -> bool:
    """Whether a matrix that is not small is the transpose of what lies in memory.

    Its adjoint is one too, and what is added to that in the same order takes a fifth of the time
    for 256 rows."""
    return x.ndim == 2 and x.size > SMALL and x.strides[0] < x.strides[1]  # type: ignore[no-any-return]


def left_factor(g: Any, a: Any, b: Any) -> Any:
    """The contribution ``g bᵀ`` to the adjoint of `a` in ``a @ b``."""
    if _lies_transposed(a) and b.ndim < 3:
        return right_factor(g.T, b.T, a.T).T
    if a.ndim == b.ndim == 2:
        return _product(g, b.T)
    if b.ndim == 1:
        return g * b if a.ndim == 1 else g[..., None] * b
    if a.ndim > 1:
        return np.matmul(g, b.mT)
    return np.matmul(b, g[..., None])[..., 0]


def right_factor(g: Any, a: Any, b: Any) -> Any:
    """The contribution ``aᵀ g`` to the adjoint of `b` in ``a @ b``."""
    if _lies_transposed(b) and a.ndim < 3:
        return left_factor(g.T, b.T, a.T).T
    if a.ndim == b.ndim == 2:
        return _product(a.T, g)
    if a.ndim == 1:
        return g * a if b.ndim == 1 else a[:, None] * g[..., None, :]
    if b.ndim > 2:
        return np.matmul(a.mT, g)
    # one product with all matrices of the stack above each other, instead of a sum of products
    if a.ndim > 2:
        rows = math.prod(a.shape[:-1])
        a, g = a.reshape(rows, a.shape[-1]), g.reshape(rows, *b.shape[1:])
    return a.T.dot(g)


@operation(native=True, stacked=True)
def matmul(a: Any, b: Any) -> Any:
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
    For the adjoint `g` of the result, that of `a` is ``g @ b.T`` and that of `b` is ``a.T @ g``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> vm.gradient(lambda b: np.sum(X @ b), np.ones(2))
    array([4., 6.])
    """
    _check_matmul("matmul", a, b)
    return np.matmul(a, b)


@matmul.reverse
def matmul_reverse(g: Any, r: Any, a: Any, b: Any) -> Any:
    return lambda: left_factor(g, a, b), lambda: right_factor(g, a, b)


@matmul.tangent
def matmul_tangent(r: Any, a: Any, b: Any) -> Any:
    return lambda t: _left_tangent(t, a, b), lambda t: _right_tangent(t, a, b)


def _left_tangent(t: Any, a: Any, b: Any) -> Any:
    """The product of tangents of `a`, maybe with an axis of directions in front, and `b`."""
    if np.ndim(t) == np.ndim(a) or np.ndim(b) < 3:
        return np.matmul(t, b)
    if np.ndim(a) == 1:  # as rows
        return np.matmul(np.reshape(t, (len(t), *(1,) * (np.ndim(b) - 1), -1)), b)[..., 0, :]
    return np.matmul(align(t, a, b), b)


def _right_tangent(t: Any, a: Any, b: Any) -> Any:
    """The product of `a` and tangents of `b`, maybe with an axis of directions in front."""
    if np.ndim(t) == np.ndim(b):
        return np.matmul(a, t)
    if np.ndim(b) == 1:  # one product with the vectors of all directions
        return (
            np.matmul(t, np.transpose(a))
            if np.ndim(a) < 3
            else np.moveaxis(np.matmul(a, np.transpose(t)), -1, 0)
        )
    return np.matmul(a, align(t, b, a))


def _matmul_chain(result: Any, a: Any, b: Any) -> None:
    g = result._adj
    x = a._val if type(a) in ARRAYS else a
    y = b._val if type(b) in ARRAYS else b
    if a is b and x.ndim == 1:
        a._take((g + g) * x)
        return
    if type(g) is float:
        _scaled(a, g, y)
        _scaled(b, g, x)
        return
    if x is not a and not (x.ndim == 2 and _added(a, g, y)):
        a._take(left_factor(g, x, y))
    if y is not b and not (y.ndim == 2 and _added(b, x.T, g.T)):
        b._take(right_factor(g, x, y))


def _added(x: Any, p: Any, q: Any) -> bool:
    """Add ``p qᵀ``, of vectors or matrices, to the adjoint of `x` without making it first: True if
    that was done.

    Not for a first contribution, nor for factors with as many elements as the adjoint. For 64 x 64
    elements and vectors it takes a fifth of the time, for 256 x 256 and matrices of eight columns
    two thirds: weights of a recurrent network get one each step."""
    c = x._adj if type(x) in ARRAYS else None
    if (
        c is None
        or p.size + q.size >= c.size
        or p.ndim > 2
        or not getattr(x, "_root", x)._adj.flags.writeable
    ):
        return False
    if c.flags.c_contiguous:
        add_outer(c, p, q)
    elif c.flags.f_contiguous:
        add_outer(c.T, q, p)
    else:
        return False
    return True


def _scaled(a: Any, g: float, other: Any) -> None:
    """The contribution to a factor of an inner product."""
    if type(a) is Large and a._adj is None:
        a._adj = np.multiply(other, g, adjoint_space(a))
    elif type(a) in ARRAYS:
        a._take(g * other)


MATMUL = Rule("matmul", _matmul_chain, None, lambda _, a, b: np.matmul(a, b))


def _matmul(a: Any, b: Any) -> Any:
    """`matmul`, with the common kinds first: arrays that are variables or data."""
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
    result: Any
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
    tape.append((MATMUL, result, a, b))
    return result


def _shape_of_product(x: Any, y: Any) -> tuple[int, ...]:
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return (*lead, *x.shape[-2:-1], *(y.shape[-1:] if y.ndim > 1 else ()))


def _other_kinds(a: Any, b: Any) -> Any:
    if is_foreign(a) or is_foreign(b):
        return NotImplemented  # the other side may know what to do
    if is_scipy_sparse(a):
        return times_data(a, b)
    if is_scipy_sparse(b):
        return data_times_right(a, b)
    return matmul(a, b)


def _reflected(self: Any, other: Any) -> Any:
    return _matmul(other, self)


def _in_place(self: Any, other: Any) -> Any:
    result = _matmul(self, other)
    if result is not NotImplemented:
        self[...] = result
        return self
    return result


for _kind in (Var, VarMat, Dual):
    for _name, _method in (
        ("__matmul__", _matmul),
        ("__rmatmul__", _reflected),
        ("__imatmul__", _in_place),
    ):
        setattr(_kind, _name, _method)
MatVar.__rmatmul__ = _reflected  # type: ignore[method-assign]


def _answer_ufunc(ufunc_name: str, function: Any) -> None:
    """Let `function` answer for a ufunc, if this version of NumPy has it."""
    dispatch.SUPPORTED.update(dict.fromkeys(named(ufunc_name), function))


_answer_ufunc("matmul", _matmul)
dispatch.SUPPORTED[np.linalg.matmul] = _matmul


# --- products of two arrays, written with it ---


@dispatch.implements(np.dot)
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    check_settings(np.dot, out)
    a, b = as_operand(a, "dot: a"), as_operand(b, "dot: b")
    if not np.ndim(a) or not np.ndim(b):
        r = a * b
    elif np.ndim(b) < 3:
        r = _matmul(a, b)
    else:
        r = _tensordot(a, b, axes=(-1, -2))
    return delivered(np.dot, out, r)


@dispatch.implements(np.inner)
def _inner(a: Any, b: Any) -> Any:
    a, b = as_operand(a, "inner: a"), as_operand(b, "inner: b")
    if not np.ndim(a) or not np.ndim(b):
        return a * b
    return _matmul(a, b) if np.ndim(b) == 1 else _tensordot(a, b, axes=(-1, -1))


@operation(np.vdot, native=True)
def vdot(a: Any, b: Any) -> Any:
    """Sum of the products of all elements: the inner product also of matrices.

    Parameters
    ----------
    a, b : array_like, of one size

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the sizes differ.

    Notes
    -----
    The derivative with respect to each is the other one.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> vm.gradient(lambda a: np.vdot(a, X), np.ones((2, 2)))
    array([[1., 2.],
           [3., 4.]])
    """
    if np.size(a) != np.size(b):
        raise ShapeError(
            f"vdot: b has shape {np.shape(b)}, but must have as many elements as a, of shape "
            f"{np.shape(a)}!"
        )
    return np.ravel(a).dot(np.ravel(b))


@vdot.reverse
def vdot_reverse(g: Any, r: Any, a: Any, b: Any) -> Any:
    return lambda: g * np.reshape(b, np.shape(a)), lambda: g * np.reshape(a, np.shape(b))


@vdot.tangent
def vdot_tangent(r: Any, a: Any, b: Any) -> Any:
    return lambda t: vdot(t, b), lambda t: vdot(a, t)


@composite(np.outer)
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    check_settings(np.outer, out)
    a, b = np.ravel(as_operand(a, "outer: a")), np.ravel(as_operand(b, "outer: b"))
    r = _matmul(a[:, None], b[None, :])
    return delivered(np.outer, out, r if out is None else np.broadcast_to(r, np.shape(out)))


@dispatch.implements(np.linalg.outer)
def _linalg_outer(x1: Any, x2: Any) -> Any:
    for name, x in (("x1", x1), ("x2", x2)):
        if np.ndim(x) != 1:
            raise ShapeError(f"outer: {name} has shape {np.shape(x)}, but must be a vector!")
    return _outer(x1, x2)


def _contracted(axes: Any, a_ndim: int, b_ndim: int) -> tuple[list[int], list[int]]:
    """The axes of both operands over which `numpy.tensordot` sums, none negative."""
    if isinstance(axes, (int, np.integer)):
        pairs: Any = (range(-int(axes), 0), range(int(axes)))
    else:
        pairs = [[i] if isinstance(i, (int, np.integer)) else list(i) for i in axes]
    return [normalize_axis_index(i, a_ndim) for i in pairs[0]], [
        normalize_axis_index(i, b_ndim) for i in pairs[1]
    ]


@composite(np.tensordot, np.linalg.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = as_operand(a, "tensordot: a"), as_operand(b, "tensordot: b")
    p, q = np.shape(a), np.shape(b)
    over_a, over_b = _contracted(axes, len(p), len(q))
    lengths = [p[i] for i in over_a]
    if (
        lengths != [q[i] for i in over_b]
        or len(set(over_a)) < len(over_a)
        or len(set(over_b)) < len(over_b)
    ):
        raise ShapeError(
            f"tensordot: b has shape {q}, but must fit a of shape {p} along the axes {over_a} and "
            f"{over_b}!"
        )
    rows, columns = (
        [i for i in range(len(p)) if i not in over_a],
        [i for i in range(len(q)) if i not in over_b],
    )
    free = (*(p[i] for i in rows), *(q[i] for i in columns))
    # Without free axes an operand is a vector, so that a full contraction is a scalar.
    k = math.prod(lengths)
    left = np.reshape(
        np.transpose(a, (*rows, *over_a)), (math.prod(p[i] for i in rows), k) if rows else (k,)
    )
    right = np.reshape(
        np.transpose(b, (*over_b, *columns)),
        (k, math.prod(q[i] for i in columns)) if columns else (k,),
    )
    return np.reshape(_matmul(left, right), free) if free else _matmul(left, right)


@composite(np.kron)
def _kron(a: Any, b: Any) -> Any:
    a, b = as_operand(a, "kron: a"), as_operand(b, "kron: b")
    p, q = np.shape(a), np.shape(b)
    ndim = np.maximum(len(p), len(q))
    p, q = (1,) * (ndim - len(p)) + p, (1,) * (ndim - len(q)) + q
    if not ndim:
        return a * b
    apart = np.reshape(a, [n for m in p for n in (m, 1)]) * np.reshape(
        b, [n for m in q for n in (1, m)]
    )
    return np.reshape(apart, [m * n for m, n in zip(p, q, strict=True)])


def _vecdot(x1: Any, x2: Any, /, *, axis: int = -1, keepdims: bool = False) -> Any:
    x1, x2 = as_operand(x1, "vecdot: x1"), as_operand(x2, "vecdot: x2")
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    if np.shape(x1)[-1:] != np.shape(x2)[-1:]:
        raise ShapeError(
            f"vecdot: x2 has shape {np.shape(x2)}, but must have vectors as long as those of x1, "
            f"{np.shape(x1)}!"
        )
    r = np.einsum("...i,...i->...", x1, x2)
    return np.expand_dims(r, axis) if keepdims else r


def _vecdot_ufunc(x1: Any, x2: Any, axis: int = -1, keepdims: bool = False, **settings: Any) -> Any:
    dispatch.refuse_settings(np.vecdot, settings)
    return _vecdot(x1, x2, axis=axis, keepdims=keepdims)


def _matvec(x1: Any, x2: Any) -> Any:
    check_matrix("matvec", "x1", x1)
    x2 = as_operand(x2, "matvec: x2")
    return _matmul(x1, x2) if np.ndim(x2) == 1 else _matmul(x1, x2[..., None])[..., 0]


def _vecmat(x1: Any, x2: Any) -> Any:
    check_matrix("vecmat", "x2", x2)
    x1 = as_operand(x1, "vecmat: x1")
    return _matmul(x1, x2) if np.ndim(x1) == 1 else _matmul(x1[..., None, :], x2)[..., 0, :]


_answer_ufunc("vecdot", _vecdot)
_answer_ufunc("matvec", _matvec)
_answer_ufunc("vecmat", _vecmat)
dispatch.SUPPORTED[np.linalg.vecdot] = _vecdot
dispatch.UFUNC_METHODS.update(
    dict.fromkeys(((f, "__call__") for f in named("vecdot")), _vecdot_ufunc)
)


@dispatch.implements(np.linalg.multi_dot)
def _multi_dot(arrays: Any, *, out: Any = None) -> Any:
    check_settings(np.linalg.multi_dot, out)
    arrays = [as_operand(x, f"multi_dot: array {i}") for i, x in enumerate(arrays)]
    if len(arrays) < 2:
        raise ShapeError(f"multi_dot: arrays has {len(arrays)} items, but must have at least two!")
    for i, x in enumerate(arrays):
        if np.ndim(x) != 2 and not (np.ndim(x) == 1 and i in (0, len(arrays) - 1)):
            raise ShapeError(
                f"multi_dot: arrays[{i}] has shape {np.shape(x)}, but must be a matrix (the ends "
                "may be vectors)!"
            )
    lengths = [np.shape(x)[0] if np.ndim(x) == 2 else 1 for x in arrays[:1]]
    lengths += [np.shape(x)[0] for x in arrays[1:]]
    lengths.append(np.shape(arrays[-1])[1] if np.ndim(arrays[-1]) == 2 else 1)
    return delivered(
        np.linalg.multi_dot, out, _chain_product(arrays, _cheapest_splits(lengths), 0, len(arrays))
    )


def _cheapest_splits(lengths: list[int]) -> dict[tuple[int, int], int]:
    """Where to split the product of the matrices ``i:j`` so that the whole takes the fewest
    multiplications.
    """
    count = len(lengths) - 1
    cost = {(i, i + 1): 0 for i in range(count)}
    splits = {}
    for width in range(2, count + 1):
        for i in range(count - width + 1):
            j = i + width
            costs = [
                (cost[i, k] + cost[k, j] + lengths[i] * lengths[k] * lengths[j], k)
                for k in range(i + 1, j)
            ]
            cost[i, j], splits[i, j] = sorted(costs)[0]
    return splits


def _chain_product(arrays: Any, splits: Any, i: int, j: int) -> Any:
    if j == i + 1:
        return arrays[i]
    k = splits[i, j]
    return _matmul(_chain_product(arrays, splits, i, k), _chain_product(arrays, splits, k, j))


@dispatch.implements(np.trace)
def _trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    check_settings(np.trace, out, dtype)
    return delivered(np.trace, out, np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1))


@dispatch.implements(np.linalg.trace)
def _linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return _trace(x, offset, -2, -1, dtype)


# --- the vector product ---


@operation()
def cross(a: Any, b: Any) -> Any:
    """Vector product of vectors with three elements, along the last axis.

    Parameters
    ----------
    a, b : array_like, shape (..., 3)
        Leading axes broadcast.

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If a vector does not have three elements.

    Notes
    -----
    For the adjoint `g` of the result, that of `a` is ``cross(b, g)`` and that of `b` is ``cross(g,
    a)``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.cross(vm.var([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    VarMat([0., 0., 1.])
    """
    for name, x in (("a", a), ("b", b)):
        if np.shape(x)[-1:] != (3,):
            raise ShapeError(
                f"cross: {name} has shape {np.shape(x)}, but must have three elements along the "
                "axis of vectors!"
            )
    return np.cross(a, b)


@cross.reverse
def cross_reverse(g: Any, r: Any, a: Any, b: Any) -> Any:
    return lambda: np.cross(b, g), lambda: np.cross(g, a)


@cross.tangent
def cross_tangent(r: Any, a: Any, b: Any) -> Any:
    return lambda t: cross(t, b), lambda t: cross(a, t)


@dispatch.implements(np.cross)
def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (
        x if not np.ndim(x) or i in (-1, np.ndim(x) - 1) else np.moveaxis(x, i, -1)
        for x, i in ((as_operand(a, "cross: a"), axisa), (as_operand(b, "cross: b"), axisb))
    )
    r = cross(a, b)
    return r if axisc in (-1, np.ndim(r) - 1) else np.moveaxis(r, -1, axisc)


@dispatch.implements(np.linalg.cross)
def _linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return _cross(x1, x2, axis=axis)


# --- Stan's names ---


@operation(native=True)
def multiply(a: Any, b: Any) -> Any:
    """Product in the sense of linear algebra: of a scalar with anything, of matrices and vectors
    (Stan's ``multiply``).

    Parameters
    ----------
    a, b : scalar or array_like
        If neither is a scalar, shapes as for `numpy.matmul`.

    Returns
    -------
    Var or VarMat

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    For the elementwise product write ``a * b``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.multiply(np.array([[1.0, 2.0], [3.0, 4.0]]), vm.var([1.0, 1.0]))
    VarMat([3., 7.])
    """
    if not np.ndim(a) or not np.ndim(b):
        return a * b
    _check_matmul("multiply", a, b)
    return np.matmul(a, b)


@multiply.reverse
def multiply_reverse(g: Any, r: Any, a: Any, b: Any) -> Any:
    if not np.ndim(a) or not np.ndim(b):
        return lambda: g * b, lambda: g * a
    return matmul_reverse(g, r, a, b)


@multiply.tangent
def multiply_tangent(r: Any, a: Any, b: Any) -> Any:
    if not np.ndim(a) or not np.ndim(b):
        return lambda t: t * b, lambda t: a * t
    return matmul_tangent(r, a, b)


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: `numpy.kron`, under the name that others have too.

    Parameters
    ----------
    a, b : array_like, any shape

    Returns
    -------
    Var or VarMat

    Notes
    -----
    Each element of the result is a product of one of `a` and one of `b`; each receives the adjoint
    times the other, summed.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.kron(vm.var([1.0, 2.0]), [3.0, 4.0])
    VarMat([3., 4., 6., 8.])
    """
    return _kron(a, b)


def dot_product(a: Any, b: Any) -> Any:
    """Inner product of two vectors of one length.

    Parameters
    ----------
    a, b : array_like, vectors

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the operands are not vectors of one length.

    Notes
    -----
    The derivative with respect to each is the other one.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.dot_product(x, x), np.array([1.0, 2.0]))
    array([2., 4.])
    """
    a, b = as_operand(a, "dot_product: a"), as_operand(b, "dot_product: b")
    if np.ndim(a) != 1 or np.shape(a) != np.shape(b):
        raise ShapeError(
            f"dot_product: b has shape {np.shape(b)}, but must be a vector as long as a, of shape "
            f"{np.shape(a)}!"
        )
    return _matmul(a, b)
