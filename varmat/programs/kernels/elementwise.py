"""Kernels that work element by element: ufuncs, functions of users, `numpy.where`."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.locks import Once
from varmat.plain_arrays import where
from varmat.programs.ir.kernel import HERE, Arrays, Kernel, Results, Run, shape_of
from varmat.programs.ir.program import BOOL, FLOAT, ArrayLayout, Step, Value
from varmat.programs.run.loops import LoopLengths, loop_of

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Module
    from varmat.programs.ir.program import Array
    from varmat.programs.passes.batching import Batch
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function as FunctionOfArrays


class Ufunc(Kernel):
    """A ufunc of NumPy or SciPy; made by `ufunc_kernel`."""

    is_batchable = True
    overwritable = slice(None)

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = self.elementwise = ufunc
        self.name = ufunc.__name__

    def dtype(self, operands: Sequence[Value]) -> np.dtype:
        """Return the type of the result."""
        return _result_dtype(self.ufunc, *[v.dtype for v in operands])

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(shape_of(operands), self.dtype(operands))]

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (self.ufunc(*operands),)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        if not results[0].ndim and self.ufunc in _OF_NUMBERS:
            return _of_numbers(self.ufunc, *[memoryview(x) for x in (*operands, *results)])
        if self.ufunc in (np.maximum, np.minimum):  # these take a third argument for an operand
            return partial(self.ufunc, *operands, out=results[0])
        return partial(self.ufunc, *operands, *results)

    def loop(self, operands: Sequence[Value], results: Sequence[Value]) -> LoopLengths:
        """Return the inner loop of the ufunc."""
        inputs = "".join(v.dtype.char for v in operands)
        return loop_of(self.ufunc, f"{inputs}->{results[0].dtype.char}")

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        graph.elementwise(self, self.name if self._is_known() else "", operands, results[0])

    def _is_known(self) -> bool:
        """Return whether the ufunc is NumPy's or SciPy's of that name."""
        homes = (np, sys.modules.get("scipy.special"))
        return any(getattr(home, self.name, None) is self.ufunc for home in homes)

    def in_jax(self, jax: Module, step: Step) -> FunctionOfArrays | None:
        from varmat.programs.run.jax import of_ufunc

        return of_ufunc(jax, self.ufunc)

    def batched(self, batch: Batch) -> Value | None:
        operands = batch.operands()
        if all(v.dtype == FLOAT for v in (*operands, *batch.step.results)):  # in its simplest form
            return batch.builder.ufunc(self.ufunc, *operands)
        return batch.builder.call(self, *operands)


@cache
def _result_dtype(ufunc: np.ufunc, *dtypes: np.dtype) -> np.dtype:
    result = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))[-1]
    return BOOL if result == BOOL else FLOAT


# Python's arithmetic instead of NumPy's, which takes twice as long a step.
_OF_NUMBERS: dict[np.ufunc, Callable[[float, float], float]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.divide: operator.truediv, np.square: operator.mul,
}  # fmt: skip


def _of_numbers(ufunc: np.ufunc, x: Any, *more: Any) -> Run:
    """Make a function of one or two numbers and the memory of the result, each a `memoryview`."""
    *second, out = more
    y, of_floats = second[0] if second else x, _OF_NUMBERS[ufunc]

    def run() -> None:
        try:
            out[HERE] = of_floats(x[HERE], y[HERE])
        except ZeroDivisionError:
            out[HERE] = float(ufunc(x[HERE], y[HERE]))

    return run


@Once
def ufunc_kernel(ufunc: np.ufunc) -> Ufunc:
    """Return the kernel of a ufunc: one object for each."""
    return Ufunc(ufunc)


class PythonFunction(Kernel):
    """An elementwise function that is not a true ufunc, as users' are; a call of Python."""

    is_native = False
    is_batchable = True
    elementwise: FunctionOfArrays

    def __init__(self, name: str, function: Callable[..., Array]) -> None:
        self.name, self.elementwise = name, function

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(shape_of(operands), FLOAT)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (np.asarray(self.elementwise(*operands), FLOAT),)


class Select(Kernel):
    """``numpy.where``: of three operands, the first of truth values."""

    name = "where"
    is_batchable = True
    elementwise = staticmethod(where)
    overwritable = slice(None)

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(shape_of(operands), FLOAT)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (np.where(*operands),)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        condition, x, y = operands
        (out,) = results

        def run() -> None:
            out[...] = np.where(condition, x, y)

        return run

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        graph.each("where", operands, results[0])

    def in_jax(self, jax: Module, step: Step) -> FunctionOfArrays:
        return jax.numpy.where  # type: ignore[no-any-return]


SELECT = Select()
