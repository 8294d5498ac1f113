"""Gradients for batches of rows of data, by a program that is recorded once.

The data of a recording are constants of its program, and so are values computed from them, such as
products of covariates or flattened indices. Recordings for some rows and for all rows have the same
steps, and show which constants have rows. These become arguments of the program: a call picks their
rows, so that nothing is recorded again for other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from varmat.derivatives.recorded_programs import record
from varmat.derivatives.reverse import value_and_grad
from varmat.interrupts import Attempt, from_signal
from varmat.programs.ir.program import ElsewhereError, Program, RecordingError, Value
from varmat.programs.passes import optimised
from varmat.programs.passes.rewriter import Rewriter
from varmat.programs.run import runner_for
from varmat.typing import Function, Shape

# All rows are recorded in pieces of about this number, which bounds the memory of a recording. Some
# functions take other steps for long arrays, so that short pieces are tried next.
PIECES, MOST_PIECES = (1 << 16, 250), 2000
_OTHER_STEPS = "the function computes other steps for other rows"


class _Batch(NamedTuple):
    """The runner for batches of a size, and the constants with rows: all their rows, first, and the
    axis on which the program has them.
    """

    run: Any
    columns: list[tuple[np.ndarray, int]]

    def __call__(self, point: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
        columns = [np.moveaxis(x.take(rows, 0), 0, axis) for x, axis in self.columns]
        value, gradient = self.run([point, *columns])
        return value, gradient


class RecordedBatches:
    """The value and the gradient of a function at batches of rows of its data.

    Parameters
    ----------
    of_rows : callable
        Takes the indices of rows, and the number of those for which terms are scaled; returns the
        function for these rows: of a vector, to a scalar.
    count : int
        The number of all rows.
    is_recorded : bool
        Record, if possible.

    Attributes
    ----------
    obstacle : Exception or None
        Why batches are not recorded; the function is then evaluated at each call.
    """

    def __init__(
        self, of_rows: Callable[[np.ndarray, int], Function], count: int, is_recorded: bool = True
    ) -> None:
        self._of_rows, self._count, self._is_recorded = of_rows, count, is_recorded
        self._batches: dict[int, _Batch] = {}
        self.obstacle: Exception | None = None

    @property
    def recordings(self) -> int:
        """The number of programs, one for each size of a batch."""
        return len(self._batches)

    def __call__(self, point: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
        batch = self._batches.get(len(rows))
        if batch is None and self.obstacle is None and self._is_recorded:
            with Attempt() as attempt:
                batch = self._batches[len(rows)] = self._recorded(point, rows)
            self.obstacle = attempt.error
        if batch is not None:
            try:
                value, gradient = batch(point, rows)
                if np.isfinite(value):
                    return value, gradient
            except (ArithmeticError, ValueError, ElsewhereError) as error:
                if from_signal(error):
                    raise
        return self._eager(point, rows)

    def _eager(self, point: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
        result: tuple[float, np.ndarray] = value_and_grad(self._of_rows(rows, len(rows)))(point)
        return result

    def _program(self, point: np.ndarray, rows: np.ndarray, size: int) -> Program:
        return record(self._of_rows(rows, size), (0,), (point,), {}, is_optimised=False)

    def _recorded(self, point: np.ndarray, rows: np.ndarray) -> _Batch:
        """Record batches of as many rows. Raise `RecordingError` if that is not possible."""
        size = len(rows)
        others = np.random.default_rng(0).integers(self._count, size=size)
        program = self._program(point, rows, size)
        samples = [(rows, program), (others, self._program(point, others, size))]
        columns: dict[int, tuple[np.ndarray, int]] = {}
        values: list[Value] = []
        for constant, data, parts in self._constants(program, point, size, samples):
            axis = _axis_of_rows(data[0].shape, parts[0].shape, size)
            if axis is None:
                _check_shared(data, parts, size, self._count)
                continue
            if id(constant) in columns:
                continue
            column = np.concatenate([np.moveaxis(x, axis, 0) for x in parts])
            for x, (chosen, _) in zip(data, samples, strict=True):
                if not np.array_equal(np.moveaxis(x, axis, 0), column[chosen]):
                    raise RecordingError("the function computes with other rows of a batch")
            values.append(constant)
            columns[id(constant)] = np.ascontiguousarray(column), axis
        batch = _Batch(runner_for(_with_arguments(program, values)), [*columns.values()])
        (value, slope), expected = batch(point, others), self._eager(point, others)
        if not np.allclose(np.append(slope, value), np.append(*expected[::-1]), 1e-8, 1e-12):
            raise RecordingError(_OTHER_STEPS)
        return batch

    def _constants(
        self,
        program: Program,
        point: np.ndarray,
        size: int,
        samples: Sequence[tuple[np.ndarray, Program]],
    ) -> Iterator[tuple[Value, list[np.ndarray], list[np.ndarray]]]:
        """Yield the constants that steps read, with their data in the samples, and in all rows in
        pieces.
        """
        names = _kernels(program)
        for piece in PIECES:
            pieces = self._pieces(size, piece)
            if len(pieces) > MOST_PIECES:
                continue
            wholes = (self._program(point, x, size) for x in pieces)
            like = [x for _, x in samples] + [*takewhile(lambda x: _kernels(x) == names, wholes)]
            if len(like) == len(samples) + len(pieces):
                break
        else:
            raise RecordingError(_OTHER_STEPS)
        for value, *others in zip(_read(program), *map(_read, like), strict=True):
            if value.is_constant:
                if not all(x.is_constant for x in others):
                    raise RecordingError(_OTHER_STEPS)
                data = [np.asarray(x.data) for x in others]
                yield value, data[: len(samples)], data[len(samples) :]

    def _pieces(self, size: int, piece: int) -> list[np.ndarray]:
        """Return all rows in pieces of other sizes."""
        for count in range(-(-self._count // piece), self._count + 1):
            pieces = np.array_split(np.arange(self._count), count)
            if size not in map(len, pieces):
                return pieces
        raise RecordingError("there are too few rows")


def _kernels(program: Program) -> list[str]:
    return [step.kernel.name for step in program.steps]


def _check_shared(
    data: Sequence[np.ndarray], parts: Sequence[np.ndarray], size: int, count: int
) -> None:
    """Refuse a constant without rows that is not the same for all rows, or proportional to their
    number.
    """
    first = data[0]
    whole = sum(parts[1:], parts[0]) if first.dtype.kind == "f" else parts[0]
    is_same = all(np.array_equal(first, x, first.dtype.kind == "f") for x in (*data, *parts))
    if is_same or (
        all(np.array_equal(first, x) for x in data)
        and np.allclose(whole * size, first * count, 1e-12, 0.0)
    ):
        return
    raise RecordingError("the function computes with data of all rows of a batch")


def _read(program: Program) -> list[Value]:
    """List what steps read, and the outputs: the values in whose memory they lie."""
    values = [v for step in program.steps for v in step.operands]
    return [v.base for v in (*values, *program.outputs)]


def _axis_of_rows(shape: Shape, whole: Shape, size: int) -> int | None:
    """Return the axis of the rows of a constant; None if it has none."""
    if shape == whole:
        return None
    pairs = enumerate(zip(shape, whole, strict=False))
    axes = [axis for axis, (n, m) in pairs if n != m]
    if len(shape) != len(whole) or len(axes) != 1 or shape[axes[0]] != size:
        raise RecordingError("the function computes with data of all rows of a batch")
    return axes[0]


def _with_arguments(program: Program, constants: Sequence[Value]) -> Program:
    """Return the program with constants as further arguments."""
    arguments = [Value(v.shape, v.dtype) for v in constants]
    rewriter = Rewriter(Program([*program.arguments, *arguments], program.steps, program.outputs))
    rewriter.replace(constants, arguments)
    for step in rewriter.old.steps:
        rewriter.keep(step)
    return optimised(rewriter.program())
