"""NumPy's functions of symbols."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.build.contractions import contracted
from varmat.programs.build.symbol import (
    Symbol,
    builder_of,
    diagonal,
    joined,
    lift,
    normalised,
    reduced,
    refuse,
    stacked,
)
from varmat.programs.kernels.matrices import (
    CHOLESKY,
    DETERMINANT,
    INVERSE,
    LOG_DETERMINANT,
    SOLVE,
    SOLVE_ONE,
)

if TYPE_CHECKING:
    from varmat.typing import Axis, Function, Operand, Setting


def _where(condition: Operand, x: Operand, y: Operand) -> Symbol:
    builder = builder_of(condition, x, y)
    return Symbol(builder, builder.where(*(lift(builder, each) for each in (condition, x, y))))


def _dot(a: Operand, b: Operand) -> Symbol:
    builder = builder_of(a, b)
    x, y = lift(builder, a), lift(builder, b)
    if not x.shape or not y.shape:
        return Symbol(builder, builder.ufunc(np.multiply, x, y))
    return (
        Symbol(builder, builder.matmul(x, y)) if max(len(x.shape), len(y.shape)) < 3 else refuse()
    )


def _inner_of_all(a: Operand, b: Operand) -> Symbol:
    """`numpy.vdot`."""
    builder = builder_of(a, b)
    x, y = (builder.reshaped(v, (v.size,)) for v in (lift(builder, a), lift(builder, b)))
    return Symbol(builder, builder.matmul(x, y))


def _moved(x: Symbol, source: Operand, destination: Setting) -> Symbol:
    like = np.moveaxis(np.empty(tuple(range(2, 2 + x.ndim))), source, destination)
    return x.transpose([n - 2 for n in like.shape])


def _expanded(x: Symbol, axis: int | tuple[int, ...]) -> Symbol:
    return x.reshape(np.expand_dims(np.empty(x.shape, bool), axis).shape)


def _outer(a: Operand, b: Operand) -> Symbol:
    builder = builder_of(a, b)
    x, y = (lift(builder, each) for each in (a, b))
    return Symbol(
        builder,
        builder.ufunc(
            np.multiply, builder.reshaped(x, (x.size, 1)), builder.reshaped(y, (1, y.size))
        ),
    )


def _sine_quotient(x: Operand) -> Operand:
    return np.sin(x) / x


def _solved(a: Operand, b: Operand) -> Symbol:
    builder = builder_of(a, b)
    x, y = lift(builder, a), lift(builder, b)
    return Symbol(builder, builder.call(SOLVE_ONE if len(y.shape) == 1 else SOLVE, x, y))


def _flipped(x: Symbol, axis: Axis = None) -> Symbol:
    axes = normalised(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


# What answers when one of NumPy's functions is called on symbols.
ANSWERS: dict[Function, Function] = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
    np.sum: lambda x, axis=None, keepdims=False: reduced(x, np.add, axis, keepdims),
    np.linalg.cholesky: lambda a: a.of(a.builder.call(CHOLESKY, a.builder.contiguous(a.value))),
    np.linalg.inv: lambda a: a.of(a.builder.call(INVERSE, a.value)),
    np.linalg.det: lambda a: a.of(a.builder.call(DETERMINANT, a.value)),
    np.linalg.slogdet: lambda a: tuple(map(a.of, a.builder.apply(LOG_DETERMINANT, a.value))),
    np.linalg.solve: lambda a, b: _solved(a, b),
    np.all: lambda x, axis=None: x.all(axis),
    np.any: lambda x: x.any(),
    np.cumprod: lambda x, axis=None: np.multiply.accumulate(
        x.ravel() if axis is None else x, axis=axis or 0
    ),
    np.tril: lambda x, k=0: _where(np.tri(x.shape[-2], x.shape[-1], k, bool), x, 0.0),
    np.sinc: lambda x: _sine_quotient(np.multiply(math.pi, _where(x == 0.0, 1e-20, x))),
    np.diff: lambda x: x[..., 1:] - x[..., :-1],
    np.prod: lambda x, axis=None, keepdims=False: reduced(x, np.multiply, axis, keepdims),
    np.max: lambda x, axis=None, keepdims=False: reduced(x, np.maximum, axis, keepdims),
    np.amax: lambda x, axis=None, keepdims=False: reduced(x, np.maximum, axis, keepdims),
    np.min: lambda x, axis=None, keepdims=False: reduced(x, np.minimum, axis, keepdims),
    np.cumsum: lambda x, axis=None: np.add.accumulate(
        x.ravel() if axis is None else x, axis=axis or 0
    ),
    np.dot: _dot,
    np.vdot: _inner_of_all,
    np.inner: lambda a, b: _dot(a, b) if np.ndim(a) <= 1 and np.ndim(b) <= 1 else refuse(),
    np.outer: _outer,
    np.where: _where,
    np.reshape: lambda x, shape, order="C": x.reshape(shape, order=order),
    np.ravel: lambda x, order="C": x.ravel(order),
    np.transpose: lambda x, axes=None: x.transpose(*axes or ()),
    np.matrix_transpose: lambda x: x.mT,
    np.swapaxes: lambda x, a, b: _moved(x, (a, b), (b, a)),
    np.moveaxis: _moved,
    np.expand_dims: _expanded,
    np.squeeze: lambda x, axis=None: x.reshape(np.squeeze(np.empty(x.shape, bool), axis).shape),
    np.broadcast_to: lambda x, shape: x.part(
        x.builder.broadcast(x.value, tuple(shape) if np.iterable(shape) else (shape,))
    ),
    np.concatenate: joined,
    np.stack: stacked,
    np.diagonal: diagonal,
    np.diag: lambda x, k=0: diagonal(x, k) if x.ndim == 2 else refuse(),
    np.trace: lambda x: reduced(diagonal(x), np.add),
    np.copy: lambda x: x.copy(),
    np.zeros_like: lambda x, shape=None: np.zeros(x.shape if shape is None else shape),
    np.ones_like: lambda x, shape=None: np.ones(x.shape if shape is None else shape),
    np.take: lambda x, indices, axis=None: (
        x.ravel()[indices] if axis is None else x[(slice(None),) * (axis % x.ndim) + (indices,)]
    ),
    np.mean: lambda x, axis=None: (
        reduced(x, np.add, axis) / (x.size / max(math.prod(reduced(x, np.add, axis).shape), 1))
    ),
    np.flip: _flipped,
    np.einsum: contracted,
}
