"""Products of vectors and matrices that are written with `matmul`, on reshaped operands, which are
views and cost nothing; the vector product; and Stan's names of products.

Products over arbitrary axes are in `einsum`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core import dispatch
from varmat.core.elementwise import ROWS
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.aliases import alias
from varmat.functions.arrays.composites import composite
from varmat.functions.arrays.constant import named
from varmat.functions.checks import check_matrix, check_settings, check_vectors, delivered, misfit
from varmat.functions.linalg.matmul import (
    answer_ufunc,
    check_matmul,
    matmul_operator,
    matmul_reverse,
)
from varmat.typing import (
    Adjoint,
    DTypeLike,
    Index,
    Operand,
    Plain,
    Result,
    Setting,
    Thunk,
    scalar_or_array_valued,
    scalar_valued,
)

__all__ = ["dot_product", "elt_divide", "elt_multiply", "kron", "minus", "multiply", "plus"]


# --- products of two arrays, written with matmul ---


@dispatch.implements(np.dot)
def _dot(a: Operand, b: Operand, out: Operand = None) -> Result:
    check_settings(np.dot, out)
    a, b = as_operand(a, "dot: a"), as_operand(b, "dot: b")
    if not np.ndim(a) or not np.ndim(b):
        r = a * b
    elif np.ndim(b) < 3:
        r = matmul_operator(a, b)
    else:
        r = _tensordot(a, b, axes=(-1, -2))
    return delivered(np.dot, out, r)


@dispatch.implements(np.inner)
def _inner(a: Operand, b: Operand) -> Result:
    a, b = as_operand(a, "inner: a"), as_operand(b, "inner: b")
    if not np.ndim(a) or not np.ndim(b):
        return a * b
    return matmul_operator(a, b) if np.ndim(b) == 1 else _tensordot(a, b, axes=(-1, -1))


@operation(np.vdot, native=True, linear=True)
def vdot(a: Plain, b: Plain) -> Plain:
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
        raise misfit(
            "vdot", "b", np.shape(b), f"have as many elements as a, of shape {np.shape(a)}"
        )
    return np.ravel(a).dot(np.ravel(b))


@vdot.reverse
def vdot_reverse(g: Adjoint, r: Plain, a: Plain, b: Plain) -> tuple[Thunk, ...]:
    return lambda: g * np.reshape(b, np.shape(a)), lambda: g * np.reshape(a, np.shape(b))


@composite(np.outer)
def _outer(a: Operand, b: Operand, out: Operand = None) -> Result:
    check_settings(np.outer, out)
    a, b = np.ravel(as_operand(a, "outer: a")), np.ravel(as_operand(b, "outer: b"))
    r = matmul_operator(a[:, None], b[None, :])
    return delivered(np.outer, out, r if out is None else np.broadcast_to(r, np.shape(out)))


@dispatch.implements(np.linalg.outer)
def _linalg_outer(x1: Operand, x2: Operand) -> Result:
    for name, x in (("x1", x1), ("x2", x2)):
        if np.ndim(x) != 1:
            raise misfit("outer", name, np.shape(x), "be a vector")
    return _outer(x1, x2)


def _contracted(axes: Setting, a_ndim: int, b_ndim: int) -> tuple[list[int], list[int]]:
    """Return the axes of both operands over which `numpy.tensordot` sums, none negative."""
    if isinstance(axes, (int, np.integer)):
        pairs: Sequence[Sequence[Index]] = (range(-int(axes), 0), range(int(axes)))
    else:
        pairs = [[i] if isinstance(i, (int, np.integer)) else list(i) for i in axes]
    return [normalize_axis_index(i, a_ndim) for i in pairs[0]], [
        normalize_axis_index(i, b_ndim) for i in pairs[1]
    ]


@composite(np.tensordot, np.linalg.tensordot)
def _tensordot(a: Operand, b: Operand, axes: Setting = 2) -> Result:
    a, b = as_operand(a, "tensordot: a"), as_operand(b, "tensordot: b")
    p, q = np.shape(a), np.shape(b)
    over_a, over_b = _contracted(axes, len(p), len(q))
    lengths = [p[i] for i in over_a]
    if (
        lengths != [q[i] for i in over_b]
        or len(set(over_a)) < len(over_a)
        or len(set(over_b)) < len(over_b)
    ):
        raise misfit(
            "tensordot", "b", q, f"fit a of shape {p} along the axes {over_a} and {over_b}"
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
    return np.reshape(matmul_operator(left, right), free) if free else matmul_operator(left, right)


@composite(np.kron)
def _kron(a: Operand, b: Operand) -> Result:
    a, b = as_operand(a, "kron: a"), as_operand(b, "kron: b")
    p, q = np.shape(a), np.shape(b)
    ndim = np.maximum(len(p), len(q))
    p, q = (1,) * (ndim - len(p)) + p, (1,) * (ndim - len(q)) + q
    if not ndim:
        return a * b
    product = np.reshape(a, [n for m in p for n in (m, 1)]) * np.reshape(
        b, [n for m in q for n in (1, m)]
    )
    return np.reshape(product, [m * n for m, n in zip(p, q, strict=True)])


def _vecdot(x1: Operand, x2: Operand, /, *, axis: int = -1, keepdims: bool = False) -> Result:
    x1, x2 = as_operand(x1, "vecdot: x1"), as_operand(x2, "vecdot: x2")
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    if np.shape(x1)[-1:] != np.shape(x2)[-1:]:
        raise misfit(
            "vecdot",
            "x2",
            np.shape(x2),
            f"have vectors as long as the vectors of x1, {np.shape(x1)}",
        )
    r = np.einsum("...i,...i->...", x1, x2)
    return np.expand_dims(r, axis) if keepdims else r


def _vecdot_ufunc(
    x1: Operand, x2: Operand, axis: int = -1, keepdims: bool = False, **settings: Setting
) -> Result:
    dispatch.refuse_settings(np.vecdot, settings)
    return _vecdot(x1, x2, axis=axis, keepdims=keepdims)


def _matvec(x1: Operand, x2: Operand) -> Result:
    check_matrix("matvec", "x1", x1)
    x2 = as_operand(x2, "matvec: x2")
    return (
        matmul_operator(x1, x2) if np.ndim(x2) == 1 else matmul_operator(x1, x2[..., None])[..., 0]
    )


def _vecmat(x1: Operand, x2: Operand) -> Result:
    check_matrix("vecmat", "x2", x2)
    x1 = as_operand(x1, "vecmat: x1")
    return (
        matmul_operator(x1, x2)
        if np.ndim(x1) == 1
        else matmul_operator(x1[..., None, :], x2)[..., 0, :]
    )


answer_ufunc("vecdot", _vecdot)
answer_ufunc("matvec", _matvec)
answer_ufunc("vecmat", _vecmat)
dispatch.SUPPORTED[np.linalg.vecdot] = _vecdot
dispatch.SUPPORTED.update(dict.fromkeys(((f, "__call__") for f in named("vecdot")), _vecdot_ufunc))


@dispatch.implements(np.linalg.multi_dot)
def _multi_dot(arrays: Operand, *, out: Operand = None) -> Result:
    check_settings(np.linalg.multi_dot, out)
    arrays = [as_operand(x, f"multi_dot: array {i}") for i, x in enumerate(arrays)]
    if len(arrays) < 2:
        raise ShapeError(f"multi_dot: arrays has {len(arrays)} items, but must have at least two!")
    for i, x in enumerate(arrays):
        if np.ndim(x) != 2 and not (np.ndim(x) == 1 and i in (0, len(arrays) - 1)):
            raise misfit(
                "multi_dot", f"arrays[{i}]", np.shape(x), "be a matrix (the ends may be vectors)"
            )
    lengths = [np.shape(x)[0] if np.ndim(x) == 2 else 1 for x in arrays[:1]]
    lengths += [np.shape(x)[0] for x in arrays[1:]]
    lengths.append(np.shape(arrays[-1])[1] if np.ndim(arrays[-1]) == 2 else 1)
    return delivered(
        np.linalg.multi_dot, out, _chain_product(arrays, _cheapest_splits(lengths), 0, len(arrays))
    )


def _cheapest_splits(lengths: list[int]) -> dict[tuple[int, int], int]:
    """Find where to split the product of the matrices ``i:j`` so that the whole takes the fewest
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


def _chain_product(arrays: Operand, splits: dict[tuple[int, int], int], i: int, j: int) -> Result:
    if j == i + 1:
        return arrays[i]
    k = splits[i, j]
    return matmul_operator(
        _chain_product(arrays, splits, i, k), _chain_product(arrays, splits, k, j)
    )


@dispatch.implements(np.trace)
def _trace(
    a: Operand,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: Operand = None,
) -> Result:
    check_settings(np.trace, out, dtype)
    return delivered(np.trace, out, np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1))


@dispatch.implements(np.linalg.trace)
def _linalg_trace(x: Operand, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Result:
    return _trace(x, offset, -2, -1, dtype)


# --- the vector product ---


@operation(linear=True)
def cross(a: Plain, b: Plain) -> Plain:
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
    For the adjoint `g` of the result, `a` has the adjoint ``cross(b, g)`` and `b` has ``cross(g,
    a)``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.cross(vm.var([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    VarMat([0., 0., 1.])
    """
    for name, x in (("a", a), ("b", b)):
        if np.shape(x)[-1:] != (3,):
            raise misfit(
                "cross", name, np.shape(x), "have three elements along the axis of vectors"
            )
    return np.cross(a, b)


@cross.reverse
def cross_reverse(g: Adjoint, r: Plain, a: Plain, b: Plain) -> tuple[Thunk, ...]:
    return lambda: np.cross(b, g), lambda: np.cross(g, a)


@dispatch.implements(np.cross)
def _cross(
    a: Operand,
    b: Operand,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Result:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (
        x if not np.ndim(x) or i in (-1, np.ndim(x) - 1) else np.moveaxis(x, i, -1)
        for x, i in ((as_operand(a, "cross: a"), axisa), (as_operand(b, "cross: b"), axisb))
    )
    r = cross(a, b)
    return r if axisc in (-1, np.ndim(r) - 1) else np.moveaxis(r, -1, axisc)


@dispatch.implements(np.linalg.cross)
def _linalg_cross(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Result:
    return _cross(x1, x2, axis=axis)


# --- Stan's names ---

elt_multiply = alias("elt_multiply", ROWS["multiply"])
elt_divide = alias("elt_divide", ROWS["divide"])
plus = alias("plus", ROWS["positive"])
minus = alias("minus", ROWS["negative"])


@operation(native=True, linear=True)
@scalar_or_array_valued
def multiply(a: Plain, b: Plain) -> Plain:
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

    References
    ----------
    Bob Carpenter et al., "The Stan Math Library: Reverse-Mode Automatic Differentiation in C++",
    arXiv:1509.07164, 2015.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.multiply(np.array([[1.0, 2.0], [3.0, 4.0]]), vm.var([1.0, 1.0]))
    VarMat([3., 7.])
    """
    if not np.ndim(a) or not np.ndim(b):
        return a * b
    check_matmul("multiply", a, b)
    return np.matmul(a, b)


@multiply.reverse
def multiply_reverse(g: Adjoint, r: Plain, a: Plain, b: Plain) -> Adjoint:
    if not np.ndim(a) or not np.ndim(b):
        return lambda: g * b, lambda: g * a
    return matmul_reverse(g, r, a, b)


@scalar_or_array_valued
def kron(a: Operand, b: Operand) -> Result:
    """Compute the Kronecker product: `numpy.kron`, under the name that others have too.

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

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 1.3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.kron(vm.var([1.0, 2.0]), [3.0, 4.0])
    VarMat([3., 4., 6., 8.])
    """
    return _kron(a, b)


@scalar_valued
def dot_product(a: Operand, b: Operand) -> Result:
    """Inner product of two vectors of one length.

    Parameters
    ----------
    a, b : array_like, vectors

    Returns
    -------
    Var or ComplexVar

    Raises
    ------
    ShapeError
        If the operands are not vectors of one length.

    Notes
    -----
    The derivative with respect to each is the other one. Complex vectors are multiplied as by
    `numpy.vdot`, with the conjugate of `a`, as in Stan.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.dot_product(x, x), np.array([1.0, 2.0]))
    array([2., 4.])
    """
    if dispatch.is_complex(a) or dispatch.is_complex(b):
        check_vectors("dot_product", ("a", "b"), a, b)
        return np.vdot(a, b)
    a, b = as_operand(a, "dot_product: a"), as_operand(b, "dot_product: b")
    check_vectors("dot_product", ("a", "b"), a, b)
    return matmul_operator(a, b)
