"""NumPy's functions of symbols."""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.build.contractions import contracted
from varmat.programs.build.symbol import (
    Symbol,
    as_symbols,
    called,
    joined,
    normalised,
    refuse,
    require,
    stacked,
)
from varmat.programs.kernels.matrices import (
    CHOLESKY,
    DETERMINANT,
    EIGH,
    INVERSE,
    LOG_DETERMINANT,
    SOLVE,
    SOLVE_ONE,
)

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Kernel
    from varmat.typing import Axes, Axis, Function, Operand


def _of(kernel: Kernel, *operands: Operand) -> Symbol:
    return called(kernel, *operands)[0]


def _where(condition: Operand, x: Operand, y: Operand) -> Symbol:
    symbols = as_symbols(condition, x, y)
    return symbols[0].of(symbols[0].builder.where(*(each.value for each in symbols)))


def _dot(a: Operand, b: Operand) -> Operand:
    if not np.ndim(a) or not np.ndim(b):
        return a * b
    return a @ b if max(np.ndim(a), np.ndim(b)) < 3 else refuse()


def _outer(a: Operand, b: Operand) -> Operand:
    x, y = as_symbols(a, b)
    return x.reshape(-1, 1) * y.reshape(1, -1)


def _eigh(a: Symbol, UPLO: str = "L") -> tuple[Operand, ...]:  # noqa: N803 - NumPy's name
    values, vectors = called(EIGH[UPLO.upper()], a)
    require(np.isfinite(values))
    return values, vectors


def _inner_of_all(a: Operand, b: Operand) -> Operand:
    """`numpy.vdot`."""
    x, y = as_symbols(a, b)
    if a is b and list(x.strides) != sorted(x.strides, reverse=True):
        x = y = x.T  # so that columns are not copied
    return x.ravel() @ y.ravel()


def _moved(x: Symbol, source: Axes, destination: Axes) -> Symbol:
    axes = np.moveaxis(np.empty(range(x.ndim)), source, destination).shape  # type: ignore[arg-type]
    return x.transpose(axes)


def _sine_quotient(x: Symbol) -> Operand:
    """`numpy.sinc`."""
    angle = math.pi * _where(x == 0.0, 1e-20, x)
    return np.sin(angle) / angle


def _flipped(x: Symbol, axis: Axis = None) -> Symbol:
    axes = normalised(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


def _accumulated(ufunc: np.ufunc, x: Symbol, axis: int | None = None) -> Operand:
    return ufunc.accumulate(x.ravel() if axis is None else x, axis=axis or 0)


def _taken(x: Symbol, indices: np.ndarray, axis: int | None = None) -> Symbol:
    return x.ravel()[indices] if axis is None else x[(slice(None),) * (axis % x.ndim) + (indices,)]


def _mean(x: Symbol, axis: Axis = None) -> Operand:
    total = x.sum(axis)
    return total / (x.size / max(total.size, 1))


def _like(x: Symbol, function: Function, *axis: Axis) -> Symbol:
    """A symbol in the shape that a function gives to an array of its shape."""
    return x.reshape(function(np.empty(x.shape, bool), *axis).shape)


# What answers when one of NumPy's functions is called on symbols.
ANSWERS: dict[Function, Function] = {
    np.shape: attrgetter("shape"),
    np.ndim: attrgetter("ndim"),
    np.size: attrgetter("size"),
    np.sum: Symbol.sum,
    np.prod: Symbol.prod,
    np.max: Symbol.max,
    np.amax: Symbol.max,
    np.min: Symbol.min,
    np.all: Symbol.all,
    np.any: Symbol.any,
    np.mean: _mean,
    np.cumsum: partial(_accumulated, np.add),
    np.cumprod: partial(_accumulated, np.multiply),
    np.diff: lambda x: x[..., 1:] - x[..., :-1],
    np.sinc: _sine_quotient,
    np.where: _where,
    np.dot: _dot,
    np.vdot: _inner_of_all,
    np.inner: lambda a, b: _dot(a, b) if np.ndim(a) <= 1 and np.ndim(b) <= 1 else refuse(),
    np.outer: _outer,
    np.einsum: contracted,
    np.linalg.cholesky: partial(_of, CHOLESKY),
    np.linalg.inv: partial(_of, INVERSE),
    np.linalg.det: partial(_of, DETERMINANT),
    np.linalg.eigh: _eigh,
    np.linalg.slogdet: lambda a: tuple(called(LOG_DETERMINANT, a)),
    np.linalg.solve: lambda a, b: _of(SOLVE_ONE if np.ndim(b) == 1 else SOLVE, a, b),
    np.reshape: lambda x, shape, order="C": x.reshape(shape, order=order),
    np.ravel: Symbol.ravel,
    np.transpose: lambda x, axes=None: x.transpose(*axes or ()),
    np.matrix_transpose: attrgetter("mT"),
    np.swapaxes: lambda x, a, b: _moved(x, (a, b), (b, a)),
    np.moveaxis: _moved,
    np.expand_dims: lambda x, axis: _like(x, np.expand_dims, axis),
    np.squeeze: lambda x, axis=None: _like(x, np.squeeze, axis),
    np.broadcast_to: lambda x, shape: x.part(
        x.builder.broadcast(x.value, tuple(shape) if np.iterable(shape) else (shape,))
    ),
    np.concatenate: joined,
    np.stack: stacked,
    np.flip: _flipped,
    np.take: _taken,
    np.tril: lambda x, k=0: _where(np.tri(x.shape[-2], x.shape[-1], k, bool), x, 0.0),
    np.diagonal: Symbol.diagonal,
    np.diag: lambda x, k=0: x.diagonal(k) if x.ndim == 2 else refuse(),
    np.trace: lambda x: x.diagonal().sum(),
    np.copy: Symbol.copy,
    np.zeros_like: lambda x, shape=None: np.zeros(x.shape if shape is None else shape),
    np.ones_like: lambda x, shape=None: np.ones(x.shape if shape is None else shape),
}
