"""Functions of arrays of complex variables: elementwise in both parts, products, sums,
spread.

A function that is linear over the real numbers, and moves elements or adds them, is applied to the
real and to the imaginary parts. A function that is linear in each of two operands is four products
of real arrays, or two if one operand is real."""

from __future__ import annotations

import itertools
from functools import reduce, wraps
from typing import Any

import numpy as np

from varmat.complexes.elementwise import absolute, answers_for
from varmat.complexes.operation import complex_operation
from varmat.complexes.variable import joined, parts
from varmat.core.dispatch import COMPLEX, is_complex
from varmat.core.operation import is_differentiable
from varmat.functions.arrays import copies, cumulative, joining, reductions, spreads, sums
from varmat.functions.arrays.constant import named
from varmat.functions.arrays.diagonals import add_diag
from varmat.functions.arrays.moving import moved
from varmat.functions.arrays.reductions import products_of_others
from varmat.functions.arrays.repeating import broadcast_to
from varmat.functions.linalg import products
from varmat.functions.linalg.dot_products import dot_along, dot_self_along
from varmat.functions.linalg.einsum import einsum as real_einsum
from varmat.functions.linalg.norms import dot_self
from varmat.functions.signals import convolutions
from varmat.typing import (
    Adjoint,
    Axis,
    DTypeLike,
    Function,
    Linear,
    Operand,
    Plain,
    Result,
    Setting,
    Shape,
)

# --- part by part ---

# Positions of the arguments that are arrays, or lists of arrays -> functions of NumPy. The other
# arguments are settings.
PARTWISE: dict[tuple[int, ...], str] = {
    (0,): "reshape ravel transpose matrix_transpose swapaxes moveaxis rollaxis squeeze expand_dims "
    "flip fliplr flipud rot90 broadcast_to concatenate stack hstack vstack dstack column_stack "
    "block split array_split "
    "hsplit vsplit dsplit unstack mean cumsum cumulative_sum trace "
    "diagonal diag diagflat tril triu "
    "roll repeat tile take take_along_axis delete resize copy trim_zeros pad trapezoid gradient",
    (0, 1): "append",
    (0, 2): "insert",
    (1,): "compress extract",
    (0, 1, 2): "ediff1d",
    (0, 3, 4): "diff",
    (0, 5): "sum nansum",
    (2, 3, 4): "interp",
}


# Settings that are numbers of the same kind as the array.
NUMBERS = frozenset(
    {"initial", "prepend", "append", "constant_values", "left", "right", "to_begin", "to_end"}
)


def _position(x: Operand, which: int) -> Result:
    """Take the real parts (0) or imaginary parts (1) of an argument, a list or a tuple of them."""
    if x is None:
        return None
    if isinstance(x, (list, tuple)):
        return type(x)(_position(item, which) for item in x)
    if is_complex(x):
        part = parts(x, "the argument")[which]
        return np.asarray(part) if type(part) is float else part
    return (
        np.zeros(np.shape(x))
        if which and not isinstance(x, (int, float))
        else 0.0 * x
        if which
        else x
    )


def partwise(function: Function, positions: tuple[int, ...]) -> Result:
    """Make the handler of a function that does the same to real and to imaginary parts."""

    @wraps(function)
    def answer(*args: Operand, **settings: Setting) -> Result:
        if not args:  # given by the name that NumPy has for it
            first = next(name for name in ("a", "x", "m", "arr", "ary", "A") if name in settings)
            args = (settings.pop(first),)
        if settings.get("dtype") is not None and np.dtype(settings.pop("dtype")) != np.complex128:
            raise TypeError(
                f"{function.__name__}: dtype is given, but must be complex128 for complex "
                "variables!"
            )
        if settings.get("out") is not None:
            raise TypeError(
                f"{function.__name__}: out is given, but must be left out for complex variables!"
            )
        others = {**{f"operand {i + 1}": x for i, x in enumerate(args) if i not in positions},
                  **{name: x for name, x in settings.items() if name not in NUMBERS}}  # fmt: skip
        for name, x in others.items():
            if is_complex(x):
                raise TypeError(f"{function.__name__}: {name} is complex, but must be real!")
        re, im = (
            function(
                *(_position(x, which) if i in positions else x for i, x in enumerate(args)),
                **{
                    name: _position(x, which) if name in NUMBERS else x
                    for name, x in settings.items()
                },
            )
            for which in (0, 1)
        )
        return joined(re, im)

    return answer


def _register() -> None:
    for positions, names in PARTWISE.items():
        for function in named(names):
            COMPLEX[function] = partwise(function, positions)
    for function in (np.linalg.trace, np.linalg.diagonal, np.linalg.matrix_transpose):
        COMPLEX[function] = partwise(function, (0,))


_register()
for _op in (moved, broadcast_to):
    COMPLEX[_op] = partwise(_op, (0,))
COMPLEX[add_diag] = partwise(add_diag, (0, 1))
COMPLEX[np.add, "reduce"] = lambda a, axis=0, **settings: COMPLEX[np.sum](a, axis=axis, **settings)
COMPLEX[np.add, "accumulate"] = lambda a, axis=0: np.cumsum(a, axis=axis)
COMPLEX[np.multiply, "reduce"] = lambda a, axis=0: np.prod(a, axis=axis)


@answers_for(np.average)
def average(a: Operand, axis: Axis = None, weights: Operand = None, **settings: Setting) -> Result:
    if is_complex(weights):
        raise TypeError("average: weights are complex, but must be real!")
    return joined(*(np.average(part, axis, weights, **settings) for part in parts(a, "average: a")))


@answers_for(np.where)
def where(condition: Operand, x: Operand, y: Operand) -> Result:
    if is_complex(condition):
        condition = np.not_equal(condition, 0.0)
    (a, b), (c, d) = parts(x, "where: x"), parts(y, "where: y")
    return joined(
        np.where(condition, a, c),
        np.where(condition, 0.0 if b is None else b, 0.0 if d is None else d),
    )


@answers_for(np.select)
def select(condlist: Operand, choicelist: Operand, default: Operand = 0) -> Result:
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        if is_complex(condition):
            raise TypeError("select: condlist is complex, but must be boolean!")
        result = np.where(condition, choice, result)
    return result


def _alike(x: Operand, of_real: Function, shape: int | Shape | None = None) -> Result:
    """Make an array of complex variables like `x`; a function of NumPy gives the real part."""
    re, im = parts(x, "the argument")
    return joined(of_real(re, shape=shape), np.zeros_like(im, shape=shape))


for _function in (np.zeros_like, np.empty_like, np.ones_like):
    COMPLEX[_function] = lambda a, dtype=None, *, shape=None, function=_function, **settings: (
        _alike(a, function, shape)
    )


@answers_for(np.full_like)
def full_like(a: Operand, fill_value: Operand, dtype: DTypeLike | None = None) -> Result:
    result = np.zeros_like(a)
    result[...] = fill_value
    return result


def _atleast(function: Function) -> Result:
    def answer(*arrays: Operand) -> Result:
        results = tuple(
            joined(
                *(None if part is None else function(part) for part in parts(x, function.__name__))
            )
            for x in arrays
        )
        return results[0] if len(results) == 1 else results

    return answer


COMPLEX.update(
    (_function, _atleast(_function)) for _function in (np.atleast_1d, np.atleast_2d, np.atleast_3d)
)


@answers_for(*named("broadcast_arrays"))
def broadcast_arrays(*args: Operand) -> Result:
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(np.broadcast_to(x, shape) for x in args)


# --- spread ---


def _spread(function: Function) -> Result:
    def answer(a: Operand, axis: Axis = None, *, ddof: float = 0, keepdims: bool = False) -> Result:
        re, im = parts(a, f"{function.__name__}: a")
        total = sum(np.var(part, axis=axis, ddof=ddof, keepdims=keepdims) for part in (re, im))
        if function is np.var:
            return total
        # As that of real numbers: zero where all elements are equal.
        flat = total == 0.0
        return np.where(flat, 0.0, np.sqrt(np.where(flat, 1.0, total)))

    return answer


COMPLEX[np.var], COMPLEX[np.std] = _spread(np.var), _spread(np.std)


@answers_for(np.linalg.norm)
def norm(x: Operand, ord: Setting = None, axis: Axis = None, keepdims: bool = False) -> Result:
    """Compute a norm of the moduli, as NumPy's norms of vectors and matrices are, except norms by
    singular values.
    """
    axes = np.ndim(x) if axis is None else np.size(axis)
    if axes == 2 and ord in (2, -2, "nuc"):
        raise TypeError(
            f"norm: ord is {ord!r}, which takes singular values: complex variables do not "
            "support it!"
        )
    return np.linalg.norm(absolute(x), ord, axis, keepdims)


# --- products ---


def bilinear(function: Function, a: Operand, b: Operand, name: str) -> Result:
    """Apply a function that is linear in each of two operands."""
    (p, q), (r, s) = parts(a, f"{name}: a"), parts(b, f"{name}: b")
    if s is None:
        return joined(function(p, r), function(q, r))
    if q is None:
        return joined(function(p, r), function(p, s))
    return joined(function(p, r) - function(q, s), function(p, s) + function(q, r))


def _product(function: Function, conjugates: int | None = None) -> Result:
    def answer(a: Operand, b: Operand, *more: Operand, **settings: Setting) -> Result:
        if is_complex([*more, *settings.values()]):
            raise TypeError(f"{function.__name__}: only its two operands may be complex!")
        a, b = np.conjugate(a) if conjugates == 0 else a, np.conjugate(b) if conjugates == 1 else b
        return bilinear(lambda x, y: function(x, y, *more, **settings), a, b, function.__name__)

    return answer


_BILINEAR: tuple[Any, ...] = (
    np.matmul,
    np.dot,
    np.inner,
    np.outer,
    np.tensordot,
    np.kron,
    np.convolve,
    np.cross,
)
_BILINEAR += (np.linalg.matmul, np.linalg.outer, np.linalg.tensordot, dot_along)
COMPLEX.update((_function, _product(_function)) for _function in _BILINEAR)
COMPLEX[products.multiply] = lambda a, b: (
    a * b if not np.ndim(a) or not np.ndim(b) else np.matmul(a, b)
)
COMPLEX[np.vdot] = _product(np.vdot, 0)
for _squares in (dot_self, dot_self_along):
    COMPLEX[_squares] = lambda a, f=_squares, **settings: (
        f(np.real(a), **settings) + f(np.imag(a), **settings)
    )
COMPLEX[np.correlate] = _product(np.correlate, 1)
for _vecdot in (*named("vecdot"), np.linalg.vecdot):
    COMPLEX[_vecdot] = lambda a, b, axis=-1: np.sum(np.conjugate(a) * b, axis=axis)


@answers_for(np.einsum)
def einsum(subscripts: Operand, *operands: Operand, optimize: Operand = False) -> Result:
    """Sum over all choices of the real or the imaginary part of each operand."""
    if not isinstance(subscripts, str):
        raise TypeError("einsum: the subscripts must be a string for complex variables!")
    pairs = [parts(x, f"einsum: operand {i}") for i, x in enumerate(operands, 1)]
    sums: list[list[Operand]] = [[], []]
    for choice in itertools.product(*((0,) if im is None else (0, 1) for _, im in pairs)):
        term = np.einsum(
            subscripts,
            *(pair[which] for pair, which in zip(pairs, choice, strict=True)),
            optimize=optimize,
        )
        power = sum(choice)  # the power of i
        sums[power % 2].append(-term if power % 4 > 1 else term)
    return joined(*(reduce(np.add, terms) for terms in sums))


@answers_for(np.linalg.multi_dot)
def multi_dot(arrays: Operand) -> Result:
    return reduce(np.matmul, arrays)


# --- products of elements ---


@complex_operation()
def complex_prod(a: Operand) -> Result:
    """Multiply the elements along the last axis."""
    return np.prod(a, axis=-1)


@complex_prod.pull
def complex_prod_pull(g: Adjoint, r: Plain, a: Plain) -> Any:
    return lambda: np.asarray(g)[..., None] * np.conjugate(products_of_others(a))


@complex_prod.push
def complex_prod_push(r: Plain, a: Plain) -> Linear:
    if not is_differentiable(a):
        others = products_of_others(a)
    else:  # products of rows, each with one element replaced by 1
        n = np.shape(a)[-1]
        others = complex_prod(np.where(np.eye(n, dtype=bool), 1.0, a[..., None, :]))
    return lambda t: np.sum(others * t, axis=-1)


@answers_for(np.prod)
def prod(
    a: Operand,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Operand = None,
    keepdims: bool = False,
) -> Result:
    if np.ndim(a) == 0:
        return np.positive(a)
    axes = (
        tuple(range(np.ndim(a)))
        if axis is None
        else tuple(i % np.ndim(a) for i in np.atleast_1d(axis))
    )
    shape = [n for i, n in enumerate(np.shape(a)) if i not in axes]
    moved = np.moveaxis(a, axes, range(-len(axes), 0))
    result = complex_prod(np.reshape(moved, (*shape, -1) if np.size(a) else (*shape, 0)))
    saved = [1 if i in axes else n for i, n in enumerate(np.shape(a))]
    return np.reshape(result, saved) if keepdims else result


@answers_for(np.cumprod, (np.multiply, "accumulate"))
def cumprod(a: Operand, axis: Any = None) -> Result:
    """Compute running products, in sequence."""
    if axis is None:
        a, axis = np.ravel(a), 0
    slices = list(np.moveaxis(a, axis, 0))
    if not slices:
        return np.copy(a)
    running = [slices[0]]
    for x in slices[1:]:
        running.append(running[-1] * x)
    return np.stack(running, axis=axis)


# --- polynomials ---


@answers_for(np.polyval)
def polyval(p: Operand, x: Operand) -> Result:
    result = np.zeros(np.shape(x))
    for c in p:
        result = result * x + c
    return result


@answers_for(np.vander)
def vander(x: Operand, N: int | None = None, increasing: bool = False) -> Result:
    n = len(x) if N is None else N
    columns = [np.ones(len(x))]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    columns = columns[:n]
    return (
        np.stack(columns if increasing else columns[::-1], axis=-1) if n else np.zeros((len(x), 0))
    )


# --- the library's own functions ---


# The operations behind functions of NumPy that have other names here, or are called with complex
# data and a variable.
for _op in (
    sums.sum, sums.mean, reductions.prod, spreads.var, spreads.std, cumulative.cumsum,
    cumulative.cumprod, copies.copy, products.vdot, products.cross, convolutions.convolve,
):  # fmt: skip
    COMPLEX.setdefault(_op, COMPLEX[getattr(np, _op.name)])
COMPLEX[real_einsum] = lambda *arrays, subscripts, optimize: einsum(
    subscripts, *arrays, optimize=optimize
)
COMPLEX[joining.where] = lambda x, y, condition: where(condition, x, y)
COMPLEX[joining.concatenate] = lambda *arrays, **settings: np.concatenate(
    [*map(_complexes, arrays)], **settings
)
COMPLEX[joining.stack] = lambda *arrays, **settings: np.stack(
    [*map(_complexes, arrays)], **settings
)


def _complexes(x: Operand) -> Result:
    """Convert any operand to a complex variable, or to complex data."""
    re, im = parts(x, "the argument")
    return joined(re, np.zeros(np.shape(re)) if im is None else im)
