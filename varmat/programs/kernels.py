"""Kernels: what a step computes, for people (`name`), for Python (`evaluate`, `bind`) and for the
native runner (`rows`).

    results     the shapes and types of what it makes of its operands
    evaluate    from arrays to new arrays: the meaning, for folding constants and for the interpreter
    bind        from arrays and the places of the results to a function of nothing that computes into them
    rows        the same as rows of the table of the native runner; without it a step is a call of Python

A kernel that is the same for all steps is one object; one with settings is equal to another with
the same settings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from varmat.programs.program import BOOL, FLOAT, OBJECT, ElsewhereError, Shape, Value

Arrays = Sequence[Any]


class Kernel:
    """What a step computes.

    Attributes
    ----------
    name : str
    is_pure : bool
        Whether a step may be left out if nobody reads what it makes, and shared with an equal one.
    in_place : bool
        Whether the first result may be written over any operand of the same shape and layout.
    """

    name = ""
    is_pure = True
    in_place = False
    # Whether it has `rows`: all else is a call of Python.
    is_native = True

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        raise NotImplementedError(f"{self.name} does not say what it makes")

    def settings(self, *operands: Value) -> str:
        """What print says beside the operands."""
        return ""

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        raise NotImplementedError(f"{self.name} has no meaning")

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        evaluate = self.evaluate

        def run() -> None:
            for place, made in zip(results, evaluate(*operands), strict=True):
                place[...] = made

        return run

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        """Add rows to a table of the native runner."""
        raise NotImplementedError(f"{self.name} is not native")

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def shape_of(operands: Sequence[Value]) -> Shape:
    shapes = {v.shape for v in operands if v.shape}
    return np.broadcast_shapes(*shapes) if len(shapes) != 1 else shapes.pop()


# --- element by element ---


class Ufunc(Kernel):
    """A ufunc of NumPy or SciPy; made by `ufunc_kernel`."""

    in_place = True

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc, self.name = ufunc, ufunc.__name__
        self._dtypes: dict[Any, Any] = {}

    def dtype(self, operands: Sequence[Value]) -> Any:
        """The type of the result."""
        key = tuple(v.dtype.char for v in operands)
        if key not in self._dtypes:
            made = self.ufunc.resolve_dtypes(
                (*(v.dtype for v in operands), *(None,) * self.ufunc.nout)
            )[-1]
            self._dtypes[key] = BOOL if made == BOOL else FLOAT
        return self._dtypes[key]

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(shape_of(operands), self.dtype(operands))]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return (self.ufunc(*operands),)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        if not results[0].ndim and self.ufunc in _OF_NUMBERS:
            run: Callable[[], Any] = _OF_NUMBERS[self.ufunc](
                *[memoryview(x) for x in (*operands, *results)]
            )
            return run
        if self.ufunc in (np.maximum, np.minimum):  # which take a third argument for an operand
            return partial(self.ufunc, *operands, out=results[0])
        return partial(self.ufunc, *operands, *results)

    def signature(self, operands: Sequence[Value], results: Sequence[Value]) -> str:
        return f"{''.join(v.dtype.char for v in operands)}->{results[0].dtype.char}"

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        table.elementwise(
            table.loop_of(self.ufunc, self.signature(operands, results)), operands, results[0]
        )


# Arithmetic of numbers, as Python's on the memory of arrays without axes: a third of the time of a
# call of NumPy's.
_HERE = ()


def _added(x: Any, y: Any, out: Any) -> Callable[[], Any]:
    def run() -> None:
        out[_HERE] = x[_HERE] + y[_HERE]

    return run


def _subtracted(x: Any, y: Any, out: Any) -> Callable[[], Any]:
    def run() -> None:
        out[_HERE] = x[_HERE] - y[_HERE]

    return run


def _multiplied(x: Any, y: Any, out: Any) -> Callable[[], Any]:
    def run() -> None:
        out[_HERE] = x[_HERE] * y[_HERE]

    return run


def _divided(x: Any, y: Any, out: Any) -> Callable[[], Any]:
    def run() -> None:
        try:
            out[_HERE] = x[_HERE] / y[_HERE]
        except ZeroDivisionError:
            out[_HERE] = float(np.divide(x[_HERE], y[_HERE]))

    return run


def _negative_of(x: Any, out: Any) -> Callable[[], Any]:
    def run() -> None:
        out[_HERE] = -x[_HERE]

    return run


def _squared(x: Any, out: Any) -> Callable[[], Any]:
    return _multiplied(x, x, out)


_OF_NUMBERS: dict[Any, Any] = {
    np.add: _added, np.subtract: _subtracted, np.multiply: _multiplied, np.divide: _divided,
     np.negative: _negative_of,
    np.square: _squared,
}  # fmt: skip


@cache
def ufunc_kernel(ufunc: np.ufunc) -> Ufunc:
    """The kernel of a ufunc: one object for each."""
    return Ufunc(ufunc)


class Function(Kernel):
    """An elementwise function that is no ufunc: of a user, or of `numpy.frompyfunc`. It is called
    from Python.
    """

    is_native = False

    def __init__(self, name: str, function: Any) -> None:
        self.name, self.function = name, function

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(shape_of(operands), FLOAT)]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return (np.asarray(self.function(*operands), FLOAT),)


class Select(Kernel):
    """``numpy.where``: of three operands, the first of truth values."""

    name = "where"
    in_place = True

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(shape_of(operands), FLOAT)]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return (np.where(*operands),)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        condition, x, y = operands
        (out,) = results

        def run() -> None:
            out[...] = np.where(condition, x, y)

        return run

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        table.elementwise(table.own("select"), operands, results[0])


SELECT = Select()


class Guard(Kernel):
    """Ends the run, and says so, unless all truth values hold."""

    name = "guard"
    is_pure = False

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return []

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        if not np.all(operands[0]):
            raise ElsewhereError
        return ()

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        return partial(self.evaluate, *operands)

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        table.guard(operands[0])


GUARD = Guard()


@dataclass(frozen=True, repr=False)
class GuardBetween(Kernel):
    """Ends the run unless a number lies between two others."""

    low: float
    high: float

    name = "guard_between"
    is_pure = False

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return []

    def settings(self, *operands: Value) -> str:
        return f"{self.low:g} to {self.high:g}"

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        if not self.low < operands[0] < self.high:
            raise ElsewhereError
        return ()

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        x = memoryview(operands[0])

        def run() -> None:
            if not self.low < x[_HERE] < self.high:
                raise ElsewhereError

        return run

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        table.guard_between(operands[0], self.low, self.high)


# --- sums and products ---


@dataclass(frozen=True, repr=False)
class Reduce(Kernel):
    """A reduction by a ufunc over axes, counted from the front."""

    ufunc: np.ufunc
    axes: tuple[int, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.ufunc.__name__}.reduce"

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        (x,) = operands
        return [(tuple(n for i, n in enumerate(x.shape) if i not in self.axes), x.dtype)]

    def settings(self, *operands: Value) -> str:
        return (
            f"axes {', '.join(map(str, self.axes))}"
            if len(self.axes) < len(operands[0].shape)
            else ""
        )

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return (self.ufunc.reduce(operands[0], self.axes),)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        (x,), (out,), ufunc = operands, results, self.ufunc
        axes = None if len(self.axes) == x.ndim else self.axes
        if ufunc in (np.maximum, np.minimum) and any(stride < 0 for stride in x.strides):
            # NumPy 2.0 takes wrong elements if it is to write into an array.
            return lambda: np.copyto(out, ufunc.reduce(x, axes))
        return partial(ufunc.reduce, x, axes, None, out)

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        table.reduce(self.ufunc, operands[0], self.axes, results[0])


@dataclass(frozen=True, repr=False)
class Accumulate(Kernel):
    """Running results of a ufunc of two operands along an axis."""

    ufunc: np.ufunc
    axis: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.ufunc.__name__}.accumulate"

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(operands[0].shape, FLOAT)]

    def settings(self, *operands: Value) -> str:
        return f"axis {self.axis}" if len(operands[0].shape) > 1 else ""

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return (self.ufunc.accumulate(operands[0], self.axis),)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        return partial(self.ufunc.accumulate, operands[0], self.axis, None, results[0])

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        table.accumulate(self.ufunc, operands[0], self.axis, results[0])


class Sum(Kernel):
    """The sum of any number of values that broadcast: contributions to an adjoint, terms of a
    density.
    """

    name = "sum"
    in_place = True

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(shape_of(operands), FLOAT)]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        total = operands[0]
        for x in operands[1:]:
            total = total + x
        return (total,)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        (out,) = results
        if not out.ndim:
            terms: list[Any] = [memoryview(x) for x in operands]
            place: Any = memoryview(out)

            def run_numbers() -> None:
                place[_HERE] = sum([x[_HERE] for x in terms])

            return run_numbers
        if len(operands) == 2:
            return partial(np.add, *operands, out)
        rest = operands[2:]

        def run() -> None:
            np.add(operands[0], operands[1], out)
            for x in rest:
                np.add(out, x, out)

        return run

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (out,), loop = results, table.loop_of(np.add, "dd->d")
        total = operands[0]
        for x in operands[1:]:
            table.elementwise(loop, (total, x), out)
            total = out


SUM = Sum()


class Matmul(Kernel):
    """``numpy.matmul`` of vectors, matrices, and stacks of matrices."""

    name = "matmul"

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        a, b = (v.shape for v in operands)
        leading = np.broadcast_shapes(a[:-2], b[:-2])
        return [(leading + a[-2:-1] + (b[-1:] if len(b) > 1 else ()), FLOAT)]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return (np.matmul(*operands),)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        return partial(np.matmul, *operands, *results)

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (a, b), (out,) = operands, results
        # A vector is a matrix of one row, or of one column.
        a_core = (0, a.strides[0]) if len(a.shape) == 1 else a.strides[-2:]
        b_core = (b.strides[0], 0) if len(b.shape) == 1 else b.strides[-2:]
        m, k, n = (
            (1 if len(a.shape) == 1 else a.shape[-2]),
            a.shape[-1],
            (1 if len(b.shape) == 1 else b.shape[-1]),
        )
        core = list(out.strides[len(out.shape) - (len(a.shape) > 1) - (len(b.shape) > 1) :])
        out_core = (
            core.pop(0) if len(a.shape) > 1 else 8 * n,
            core.pop(0) if len(b.shape) > 1 else 8,
        )
        # BLAS wants rows and columns of one element to have strides as if there were more.
        table.gufunc(
            table.loop_of(np.matmul, "dd->d"),
            [a, b, out],
            [
                max(len(a.shape) - 2, 0),
                max(len(b.shape) - 2, 0),
                len(out.shape) - (len(a.shape) > 1) - (len(b.shape) > 1),
            ],
            (m, k, n),
            (*_spread(a_core, (m, k)), *_spread(b_core, (k, n)), *_spread(out_core, (m, n))),
        )


def _spread(strides: Sequence[int], shape: Sequence[int]) -> tuple[int, int]:
    """The strides of a matrix, with those of axes of length one as if it were C-contiguous."""
    (rows, columns), (m, n) = strides, shape
    if n == 1:
        columns = 8
    if m == 1:
        rows = max(8 * n, columns * n)
    return rows, columns


MATMUL = Matmul()


@dataclass(frozen=True, repr=False, eq=False)
class Gufunc(Kernel):
    """A generalised ufunc of `numpy.linalg`, as ``(m,m),(m,n)->(m,n)``."""

    ufunc: Any

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(self.ufunc.__name__)

    @property
    def axes(self) -> list[str]:
        """The letters of the core axes, of the operands and of the results."""
        return [
            "".join(re.findall(r"\w", each))
            for each in re.findall(r"\(([^)]*)\)", self.ufunc.signature)
        ]

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        leading, lengths = self.parted(operands)
        shape = np.broadcast_shapes(*(v.shape[:n] for v, n in zip(operands, leading, strict=True)))
        return [
            ((*shape, *(lengths[letter] for letter in core)), FLOAT)
            for core in self.axes[self.ufunc.nin :]
        ]

    def parted(self, values: Sequence[Value]) -> tuple[list[int], dict[str, int]]:
        """How many leading axes values have, and how long the core axes are."""
        pairs = list(zip(values, self.axes, strict=False))
        leading = [len(v.shape) - len(core) for v, core in pairs]
        return leading, {
            c: n
            for (v, core), k in zip(pairs, leading, strict=True)
            for c, n in zip(core, v.shape[k:], strict=True)
        }

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        made = self.ufunc(*operands)
        return made if self.ufunc.nout > 1 else (made,)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        return partial(self.ufunc, *operands, *results)

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        values = [*operands, *results]
        leading, lengths = self.parted(values)
        steps = [stride for v, n in zip(values, leading, strict=True) for stride in v.strides[n:]]
        loop = table.loop_of(self.ufunc, f"{'d' * len(operands)}->{'d' * len(results)}")
        table.gufunc(loop, values, leading, list(lengths.values()), steps)


# --- places ---


class Copy(Kernel):
    """The values of a view, or of a number that stands for many, in memory of their own."""

    in_place = True

    def __init__(self, shape: Shape) -> None:
        self.shape, self.name = shape, "copy"

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(self.shape, operands[0].dtype)]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return (np.array(np.broadcast_to(operands[0], self.shape), order="C"),)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        return partial(np.copyto, results[0], operands[0])

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        if results[0].dtype == BOOL:
            table.elementwise(
                table.loop_of(np.logical_or, "??->?"), [*operands, *operands], results[0]
            )
        else:
            table.elementwise(table.loop_of(np.positive, "d->d"), operands, results[0])


class Kept(Copy):
    """A copy of what is about to be written over: it is made where it stands, and not together with
    others.
    """


@cache
def copy_kernel(shape: Shape) -> Copy:
    return Copy(shape)


@cache
def kept_kernel(shape: Shape) -> Kept:
    return Kept(shape)


class Gather(Kernel):
    """Elements of a contiguous array, by their places in it: ``x.reshape(-1)[index]``."""

    name = "gather"

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(operands[1].shape, operands[0].dtype)]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        x, index = operands
        return (np.reshape(x, -1)[index],)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        x, index = operands
        return partial(np.take, x.reshape(-1), index, None, results[0], "clip")

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        table.call(table.own("gather"), [*operands, *results], (results[0].size,), ())


GATHER = Gather()


@dataclass(frozen=True, repr=False)
class Assemble(Kernel):
    """An array of which parts are given, each to be added: zeros, or the first operand, with the
    others added at their places.

    A place is ``(offset, strides)``, in bytes, of a view of the result, or None: then the part is
    followed by the places of its elements in the flattened result. Where `is_partition` the parts
    cover the result and do not overlap."""

    shape: Shape
    places: tuple[Any, ...]
    has_base: bool = False
    is_partition: bool = False
    # Truth values and indices may be assembled from parts that cover the whole.
    dtype: Any = FLOAT
    shapes: tuple[Shape, ...] = ()

    name = "assemble"

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(self.shape, self.dtype)]

    def parts(self, operands: Sequence[Any]) -> list[tuple[Any, Shape, Any, Any]]:
        """For each part its place, the shape there, the values, and the index if it has one."""
        following = iter(operands[self.has_base :])
        return [
            (place, shape, next(following), next(following) if place is None else None)
            for place, shape in zip(self.places, self.shapes, strict=True)
        ]

    def settings(self, *operands: Value) -> str:
        places = [
            "listed" if place is None else str(place[0] // self.dtype.itemsize)
            for place in self.places
        ]
        return f"at {', '.join(places)}" if len(places) > 1 else ""

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        result = (
            np.array(operands[0], self.dtype) if self.has_base else np.zeros(self.shape, self.dtype)
        )
        for run in self._runs(operands, result):
            run()
        return (result,)

    def _runs(self, operands: Arrays, result: Any) -> list[Callable[[], Any]]:
        runs: list[Callable[[], Any]] = []
        flat = result.reshape(-1)
        for place, shape, part, index in self.parts(operands):
            if place is None:
                runs.append(
                    partial(
                        np.add.at, flat, index.reshape(-1), np.broadcast_to(part, shape).reshape(-1)
                    )
                )
                continue
            view = np.ndarray(shape, result.dtype, result, *place)
            runs.append(
                partial(np.copyto, view, part)
                if self.is_partition
                else partial(np.add, view, part, view)
            )
        return runs

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        (result,) = results
        runs = self._runs(operands, result)
        if self.has_base and not np.may_share_memory(result, operands[0]):
            runs.insert(0, partial(np.copyto, result, operands[0]))
        elif not (self.has_base or self.is_partition):
            runs.insert(0, partial(result.fill, 0.0))
        return runs[0] if len(runs) == 1 else partial(_run_all, runs)

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (result,) = results
        copy, add = table.loop_of(np.positive, "d->d"), table.loop_of(np.add, "dd->d")
        if self.has_base:
            if not table.is_same_place(operands[0], result):
                table.elementwise(copy, operands[:1], result)
        elif not self.is_partition:
            table.elementwise(copy, [table.number(0.0)], result)
        for place, shape, part, index in self.parts(operands):
            if place is None:
                table.call(
                    table.own("scatter"),
                    [part, index, result],
                    (math.prod(shape), 8 if part.shape else 0),
                    (),
                )
                continue
            view = result.view(shape, *place)
            table.elementwise(*((copy, [part]) if self.is_partition else (add, [view, part])), view)


@dataclass(frozen=True, repr=False)
class Write(Kernel):
    """An array of which one part is replaced: what an assignment makes of it.

    The place is ``(offset, strides)``, in bytes, of a view of the result, of a shape.
    """

    shape: Shape
    place: tuple[int, Shape]
    part: Shape

    name = "write"

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(self.shape, FLOAT)]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        result = np.array(operands[0], order="C")
        np.copyto(np.ndarray(self.part, FLOAT, result, *self.place), operands[1])
        return (result,)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        (result,), (before, part) = results, operands
        run = partial(np.copyto, np.ndarray(self.part, FLOAT, result, *self.place), part)
        if np.may_share_memory(result, before):
            return run
        return partial(_run_all, [partial(np.copyto, result, before), run])

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (before, part), (result,), copy = operands, results, table.loop_of(np.positive, "d->d")
        if not table.is_same_place(before, result):
            table.elementwise(copy, [before], result)
        table.elementwise(copy, [part], result.view(self.part, *self.place))


def _run_all(runs: Sequence[Callable[[], Any]]) -> None:
    for run in runs:
        run()


# --- linear algebra ---


@dataclass(frozen=True, repr=False)
class SolveTriangular(Kernel):
    """``a^-1 b`` or ``a^-T b`` with a lower triangular matrix, by BLAS."""

    transposed: bool

    name = "solve_triangular"

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return [(operands[1].shape, FLOAT)]

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        from scipy.linalg.blas import dtrsm, dtrsv

        a, b = operands
        # BLAS reads columns first: a C-contiguous lower triangle is an upper one to it, transposed.
        if b.ndim == 1:
            return (dtrsv(a.T, b, lower=0, trans=not self.transposed),)
        return (
            np.ascontiguousarray(dtrsm(1.0, a.T, b.T, side=1, lower=0, trans_a=self.transposed).T),
        )

    def rows(self, table: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (a, b), (out,) = operands, results
        if not table.is_same_place(b, out):
            table.elementwise(table.loop_of(np.positive, "d->d"), [b], out)
        n, columns = a.shape[-1], 1 if len(b.shape) == 1 else b.shape[-1]
        table.call(table.own("solve"), [a, out], (n, columns, int(self.transposed)), ())


# --- Python ---


class PythonCall(Kernel):
    """A call of a Python function of arrays: everything that has no kernel of its own."""

    is_native = False

    def __init__(
        self,
        name: str,
        function: Callable[..., tuple[Any, ...]],
        makes: Sequence[tuple[Shape, Any]],
        pure: bool,
    ) -> None:
        self.name, self.function, self.makes, self.is_pure = name, function, list(makes), pure

    def results(self, *operands: Value) -> list[tuple[Shape, Any]]:
        return self.makes

    def evaluate(self, *operands: Any) -> tuple[Any, ...]:
        return self.function(*operands)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], Any]:
        function = self.function
        pairs = list(
            zip(
                range(len(results)),
                results,
                [dtype is OBJECT for _, dtype in self.makes],
                strict=True,
            )
        )

        def run() -> None:
            made = function(*[x[0] if type(x) is list else x for x in operands])
            for i, place, is_object in pairs:
                if is_object:
                    place[0] = made[i]
                else:
                    place[...] = made[i]

        return run
