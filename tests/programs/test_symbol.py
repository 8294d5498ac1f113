"""Tracing: operations on symbols become the steps that arrays would take, and impossible ones are
refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from layouts import returning, run_all

import varmat as vm
from varmat.core.elementwise import ROWS
from varmat.programs.build.builder import Builder
from varmat.programs.build.expressions import apply_row
from varmat.programs.build.symbol import Symbol, UntraceableError, lift
from varmat.programs.kernels.elementwise import PythonFunction

X, Y = np.array([[0.5, -1.0, 2.0], [0.3, 0.1, -0.7]]), np.array([1.5, 0.2, -0.4])

# Functions of a matrix, a vector and a number.
TRACED = {
    "operators": lambda x, y, s: -x + 2.0 * y - s / (1.0 + y**2) + abs(x) + +x,
    "reflected": lambda x, y, s: 1.0 - x + 3.0 / (y + 2.0) + Y * s + np.float64(2.0) * x,
    "comparisons": lambda x, y, s: np.where((x > y) & (x < 2.0) | ~(y >= s), x,
     0.5 * y) + np.where(x == x, 1.0, y) * (x != y),
    "choices": lambda x, y, s: np.where(x > 0.2, np.where(y <= s, x, 1.0), y),
    "ufuncs": lambda x, y, s: np.exp(x) + np.maximum(x, y) * np.hypot(x,
     s) + scipy.special.gammaln(x + 5.0) + np.square(y),
    "tests": lambda x, y, s: np.where(np.isfinite(x), x, 0.0) + np.where(np.isnan(y), 1.0,
     y) + np.where(np.signbit(x), s, x),
    "parts": lambda x, y, s: x[1] + x[:, ::-1][0] * x[0, 1] + x[..., 1:2] + x[None,
     1][0] + y[[0, 0, 1]] + x.T[[2, 1, 0], 0],
    "elements": lambda x, y, s: x[1, -1] * y[0] + y[-1] + s,
    "a mask": lambda x, y, s: x[X > 0.0] + x[:, np.array([True, False, True])].sum(),
    "rows of a matrix": lambda x, y, s: sum(row * (i + 1.0) for i, row in enumerate(x)) + len(x),
    "sums": lambda x, y, s: np.sum(x, axis=0) + x.sum() + x.sum(axis=-1,
     keepdims=True) * np.add.reduce(y) + np.mean(x, axis=0),
    "largest": lambda x, y, s: np.max(x, axis=0) - x.min() + np.maximum.reduce(x, 1)[:,
     None] + np.prod(x, axis=1)[0],
    "running": lambda x, y,
     s: np.cumsum(x, axis=1) + np.add.accumulate(y) + np.multiply.accumulate(x, axis=0),
    "all of a running sum": lambda x, y, s: np.cumsum(x) + np.cumsum(x).reshape(6),
    "products": lambda x, y, s: x @ y + np.dot(x, y) + np.matmul(x, y) * np.vdot(x,
     x) + y @ y + np.inner(y, y) + x.dot(y),
    "outer": lambda x, y, s: np.outer(y, y) + np.multiply.outer(y, y) + np.add.outer(y, y).T,
    "shapes": lambda x, y, s: (
        x.reshape(3, 2) + x.T + np.reshape(x, -1).reshape((3, 2)) + np.transpose(x) + x.transpose(1,
         0) + x.mT
        + np.swapaxes(x, 0, 1)
    ),
    "more shapes": lambda x, y, s: (
        np.moveaxis(x[None], 0, 2)[..., 0] + np.expand_dims(x, 1)[:,
         0] + np.squeeze(x[None]) + np.broadcast_to(y, (2, 3))
        + np.flip(x, 1) + x.ravel()[0]
    ),
    "joined": lambda x, y, s: np.concatenate([x, y[None], x * s])[1:] + np.stack([y, y * 2.0, y,
        y])[0] + np.stack([s, s, 1.0]),
    "lists": lambda x, y, s: np.add(y, [s, 1.0, s * 2.0]),
    "diagonals": lambda x, y, s: np.diagonal(x) + np.diag(x) * np.trace(x) + np.diagonal(x, 1),
    "likes": lambda x, y,
     s: np.zeros_like(x) + np.ones_like(y) * x + np.copy(x) + x.copy() + x.astype(float),
    "writing": lambda x, y, s: written(x, y, s),
    "systems": lambda x, y, s: (
        np.linalg.solve(x[:, :2], y[:2]) * np.linalg.slogdet(x[:, 1:])[1] + np.linalg.det(x[:,
            :2]) + np.linalg.inv(x[:, ::2])
        + np.linalg.solve(x[:, 1:], x[:, :2])
    ),
    "stacks of systems": lambda x, y, s: (
        np.linalg.solve(np.stack([x[:, :2], x[:, 1:]]), x[:,
            :2]) + np.linalg.inv(np.stack([x[:, 1:], x[:, ::2]]))
        + np.linalg.slogdet(np.stack([x[:, :2], x[:, 1:]]))[1]
    ),
    "einsum": lambda x, y, s: (
        np.einsum("ij,kj->ki", x, x) + np.einsum("ij,ij->", x, x) * np.einsum("ij,j->i", x,
         y) + np.einsum("ij->i", x)
        + np.einsum("ij,kj,k->i", x, x, y[:2]) + np.einsum("i,j->ji", y[:2],
         x[:, 1]) + np.einsum("...i,i->...", x, y)
        + np.einsum("jj->", x[:, :2]) + np.einsum("ij,ij->i", x, 2.0 * x) + np.einsum("jj->j",
         x[:, 1:])
    ),
    "einsum of stacks": lambda x, y, s: (
        np.einsum("nij,njk->nik", np.stack([x, x * s]), np.stack([x.T, x.T]))
        + np.einsum("nij,n->ij", np.stack([x[:, :2]] * 2), y[:2])
    ),
    "triangles": lambda x, y, s: np.tril(x[:, :2]) + np.tril(x.T)[:2] * np.diff(y) + x.diagonal(),
    "shapes that are asked for": lambda x, y,
     s: x * np.shape(y)[0] + np.ndim(x) * np.size(y) + x.shape[1] * y.size + x.ndim,
}  # fmt: skip


def written(x: Any, y: Any, s: Any) -> Any:
    z = x * 1.0
    z += y
    z *= 2.0
    np.add(z, s, out=z)
    z[0] = y
    z[1, :2] = 3.0
    z[:, 2] = s
    return z


def traced(f: Any, *arrays: Any) -> tuple[Any, Any]:
    """Return the program of a function, and its result with symbols."""
    builder = Builder()
    symbols = [Symbol(builder, builder.argument(np.shape(a))) for a in arrays]
    made = f(*symbols)
    return returning(builder, lift(builder, made)), made


@pytest.mark.parametrize("name", TRACED)
def test_symbols_do_what_arrays_do(name: str) -> None:
    f = TRACED[name]
    program, made = traced(f, X, Y, 0.8)
    expected = f(X.copy(), Y.copy(), np.float64(0.8))
    assert made.shape == np.shape(expected)
    assert all(step.kernel.is_native for step in program.steps)
    for runner, found in run_all(program, X, Y, 0.8).items():
        np.testing.assert_allclose(found[0], expected, rtol=1e-13, err_msg=f"{runner}: {program}")


@pytest.mark.parametrize(
    "f",
    [
        bool,
        float,
        int,
        list,
        np.asarray,
        np.array,
        lambda x: 1.0 if x[0, 0] > 0.0 else 0.0,
        lambda x: x[x > 0.0],
        lambda x: x.item(0),
        lambda x: x.tolist(),
        np.sort,
        np.argmax,
        lambda x: range(3)[x[0, 0]],
        lambda x: 1.0 in x,
        lambda x: x.astype(int),
        np.any,
        lambda x: x.reshape(-1, order="F"),
        lambda x: np.cumsum(x, dtype=int),
        lambda x: bool((x > 0).all()),
        np.linalg.eigvalsh,
        np.frexp,
        lambda x: x.real,
        lambda x: np.add(x, x, where=X > 0),
        lambda x: np.add(x, 1.0, out=np.empty((2, 3))),
        lambda x: np.gcd(x, 2),
        lambda x: x + "a",
        lambda x: x + np.array([1j, 2.0, 3.0]),
        lambda x: np.add.at(x, 0, 1.0),
        lambda x: x[x],
        lambda x: x[0].__iadd__(x),
        lambda x: next(iter(x[0, 0])),
        lambda x: len(x[0, 0]),
    ],
)
def test_reading_numbers_of_symbols_is_refused(f: Any) -> None:
    # The rows of a symbol can be listed, but its numbers are not known.
    if f is list:
        f = lambda x: list(map(float, x[0]))  # noqa: E731
    with pytest.raises((UntraceableError, TypeError, ValueError)):
        traced(lambda x: f(x), X)


def test_writing_where_others_look_is_refused() -> None:
    """Otherwise one array would have two values."""

    def into_a_part(x: Any) -> Any:
        x[0][:] = 1.0
        return x

    def under_a_part(x: Any) -> Any:
        y = x * 1.0
        part = y[0]
        y += 1.0
        return part

    for f in (into_a_part, under_a_part):
        with pytest.raises(UntraceableError):
            traced(f, X)


def test_data_stays_data() -> None:
    """Results that do not depend on symbols do not become steps."""
    program, _ = traced(lambda x: x + np.sum(np.exp(X) * 2.0) + np.outer(X[:, 0], Y), X)
    assert list(program.counts()) == ["add"]


def test_rows_of_the_table_become_ufuncs() -> None:
    for name, steps in (("exp", ["exp"]), ("gammaln", ["gammaln"]), ("square", ["square"])):
        builder = Builder()
        apply_row(builder, ROWS[name], [builder.argument((3,))])
        assert [step.kernel.name for step in builder.steps] == steps


@pytest.mark.parametrize("name", [name for name in sorted(ROWS) if ROWS[name].points])
def test_every_row_and_its_partials_are_traced(name: str) -> None:
    """Nothing calls Python, except functions for which there is no ufunc."""
    row = ROWS[name]
    point = np.array(row.points[0], float)
    builder = Builder()
    values = [builder.argument((2,)) for _ in range(row.arity)]
    arrays = [np.array([x, x]) for x in point]
    with np.errstate(all="ignore"):
        expected = np.asarray(row.ufunc(*arrays), float)
    program = returning(builder, apply_row(builder, row, values))
    for found in run_all(program, *arrays).values():
        np.testing.assert_allclose(found[0], expected, rtol=1e-13, equal_nan=True)
    assert not [
        step for step in program.steps if isinstance(step.kernel, PythonFunction)
    ] or not hasattr(row.ufunc, "types")


def test_functions_of_python_that_are_no_formulas_are_called() -> None:
    half = np.frompyfunc(lambda x: x / 2 if x > 0 else x, 1, 1)
    row = vm.elementwise("half_of", half, "g * where(x > 0, 0.5, 1.0)", scalar=half)
    builder = Builder()
    made = apply_row(builder, row, [builder.argument((3,))])
    assert isinstance(made.step.kernel, PythonFunction)
    for found in run_all(returning(builder, made), Y).values():
        np.testing.assert_array_equal(found[0], np.where(Y > 0, Y / 2, Y))
