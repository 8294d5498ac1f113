"""NumPy's functions of symbols: they become the steps that arrays would take."""

import numpy as np
import pytest
from comparing import refuses
from layouts import X, check_traced, traced

from varmat.programs.build.symbol import UntraceableError

# Functions of a matrix, a vector and a number.
TRACED = {
    "sums": lambda x, y, s:
        np.sum(x, axis=0) + x.sum() + x.sum(axis=-1, keepdims=True) * np.add.reduce(y)
        + np.mean(x, axis=0),
    "largest": lambda x, y, s:
        np.max(x, axis=0) - x.min() + np.maximum.reduce(x, 1)[:, None] + np.prod(x, axis=1)[0],
    "running": lambda x, y, s:
        np.cumsum(x, axis=1) + np.add.accumulate(y) + np.multiply.accumulate(x, axis=0),
    "all of a running sum": lambda x, y, s: np.cumsum(x) + np.cumsum(x).reshape(6),
    "products": lambda x, y, s:
        x @ y + np.dot(x, y) + np.matmul(x, y) * np.vdot(x, x) + y @ y + np.inner(y, y) + x.dot(y),
    "outer": lambda x, y, s: np.outer(y, y) + np.multiply.outer(y, y) + np.add.outer(y, y).T,
    "shapes": lambda x, y, s:
        x.reshape(3, 2) + x.T + np.reshape(x, -1).reshape((3, 2)) + np.transpose(x)
        + x.transpose(1, 0) + x.mT + np.swapaxes(x, 0, 1),
    "more shapes": lambda x, y, s:
        np.moveaxis(x[None], 0, 2)[..., 0] + np.expand_dims(x, 1)[:, 0] + np.squeeze(x[None])
        + np.broadcast_to(y, (2, 3)) + np.flip(x, 1) + x.ravel()[0],
    "joined": lambda x, y, s:
        np.concatenate([x, y[None], x * s])[1:] + np.stack([y, y * 2.0, y, y])[0]
        + np.stack([s, s, 1.0]),
    "diagonals": lambda x, y, s: np.diagonal(x) + np.diag(x) * np.trace(x) + np.diagonal(x, 1),
    "likes": lambda x, y, s:
        np.zeros_like(x) + np.ones_like(y) * x + np.copy(x) + x.copy() + x.astype(float),
    "systems": lambda x, y, s:
        np.linalg.solve(x[:, :2], y[:2]) * np.linalg.slogdet(x[:, 1:])[1] + np.linalg.det(x[:, :2])
        + np.linalg.inv(x[:, ::2]) + np.linalg.solve(x[:, 1:], x[:, :2]),
    "stacks of systems": lambda x, y, s:
        np.linalg.solve(np.stack([x[:, :2], x[:, 1:]]), x[:, :2])
        + np.linalg.inv(np.stack([x[:, 1:], x[:, ::2]]))
        + np.linalg.slogdet(np.stack([x[:, :2], x[:, 1:]]))[1],
    "places": lambda x, y, s: np.take(x, [2, 0], axis=-1) + np.take(x, 4) * np.tril(x, -1)[:, :2],
    "quotients of sines": lambda x, y, s: np.sinc(x - 0.5),
    "triangles": lambda x, y, s: np.tril(x[:, :2]) + np.tril(x.T)[:2] * np.diff(y) + x.diagonal(),
    "shapes that are asked for": lambda x, y, s:
        x * np.shape(y)[0] + np.ndim(x) * np.size(y) + x.shape[1] * y.size + x.ndim,
}  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_symbols_do_what_arrays_do(name):
    check_traced(TRACED[name])


@pytest.mark.parametrize("f", [
    lambda x: np.dot(x.reshape(1, 2, 3), x.T),
    lambda x: np.inner(x, x),
    lambda x: np.diag(x[0]),
    np.median,
])  # fmt: skip
def test_other_functions_are_refused(f):
    refuses(UntraceableError, None, traced, f, X)
