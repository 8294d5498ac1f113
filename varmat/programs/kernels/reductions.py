"""Sums and similar functions: reductions over axes, running results, sums of several values."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.kernel import HERE, Arrays, Kernel, Results, Run, shape_of
from varmat.programs.ir.program import FLOAT, ArrayLayout, Step, Value
from varmat.programs.run import nests
from varmat.programs.run.nodes import NotFusedError

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Module
    from varmat.programs.ir.program import Array
    from varmat.programs.passes.batching import Batch
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function


@dataclass(frozen=True, repr=False)
class Reduce(Kernel):
    """A reduction by a ufunc over axes, counted from the front."""

    ufunc: np.ufunc
    axes: tuple[int, ...]

    is_batchable = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.ufunc.__name__}.reduce"

    def results(self, *operands: Value) -> list[ArrayLayout]:
        (x,) = operands
        return [(tuple(n for i, n in enumerate(x.shape) if i not in self.axes), x.dtype)]

    def settings(self, *operands: Value) -> str:
        return (
            f"axes {', '.join(map(str, self.axes))}"
            if len(self.axes) < len(operands[0].shape)
            else ""
        )

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (self.ufunc.reduce(operands[0], self.axes),)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        (x,), (out,), ufunc = operands, results, self.ufunc
        axes = None if len(self.axes) == x.ndim else self.axes
        if ufunc in (np.maximum, np.minimum) and any(stride < 0 for stride in x.strides):
            # NumPy 2.0 takes wrong elements if it is to write into an array.
            return lambda: np.copyto(out, ufunc.reduce(x, axes))
        return partial(ufunc.reduce, x, axes, None, out)

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        try:
            graph.reduced(self.ufunc.__name__, operands[0], self.axes, results[0])
        except NotFusedError:
            nests.reduce(graph, self.ufunc, operands[0], self.axes, results[0])

    def in_jax(self, jax: Module, step: Step) -> Function | None:
        jnp = jax.numpy
        by_name = {
            "add": jnp.sum, "multiply": jnp.prod, "maximum": jnp.max, "minimum": jnp.min,
            "logical_and": jnp.all, "logical_or": jnp.any, "logaddexp": jax.nn.logsumexp,
        }  # fmt: skip
        function = by_name.get(self.ufunc.__name__)
        return None if function is None else partial(function, axis=self.axes)

    def batched(self, batch: Batch) -> Value | None:
        return batch.builder.reduce(self.ufunc, batch.columns[0].make(), [i + 1 for i in self.axes])


@dataclass(frozen=True, repr=False)
class Accumulate(Kernel):
    """Running results of a ufunc of two operands along an axis."""

    is_batchable = True
    ufunc: np.ufunc
    axis: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.ufunc.__name__}.accumulate"

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(operands[0].shape, FLOAT)]

    def settings(self, *operands: Value) -> str:
        return f"axis {self.axis}" if len(operands[0].shape) > 1 else ""

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (self.ufunc.accumulate(operands[0], self.axis),)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        return partial(self.ufunc.accumulate, operands[0], self.axis, None, results[0])

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        array, axes = graph.nodes(operands[0])
        if self.axis in axes:
            nests.accumulate(graph, self.ufunc, operands[0], self.axis, results[0])
            return
        name = self.ufunc.__name__
        result = np.frompyfunc(lambda a, b: graph.apply(name, a, b), 2, 1)
        graph.put(results[0], result.accumulate(array, self.axis), axes)

    def in_jax(self, jax: Module, step: Step) -> Function | None:
        lax = jax.lax
        by_name = {
            "add": lax.cumsum, "multiply": lax.cumprod, "maximum": lax.cummax,
            "minimum": lax.cummin, "logaddexp": lax.cumlogsumexp,
        }  # fmt: skip
        function = by_name.get(self.ufunc.__name__)
        return None if function is None else partial(function, axis=self.axis)

    def batched(self, batch: Batch) -> Value | None:
        return batch.builder.accumulate(self.ufunc, batch.full(batch.columns[0]), self.axis + 1)


class Sum(Kernel):
    """The sum of several values that broadcast: contributions to an adjoint, terms of a density."""

    name = "sum"
    is_batchable = True
    overwritable = slice(2)

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(shape_of(operands), FLOAT)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (_added(*operands),)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        (out,) = results
        if not out.ndim:
            terms: list[memoryview] = [memoryview(x) for x in operands]
            place: memoryview = memoryview(out)

            def run_numbers() -> None:
                place[HERE] = sum([x[HERE] for x in terms])

            return run_numbers
        if len(operands) == 2:
            return partial(np.add, *operands, out)
        remainder = operands[2:]

        def run() -> None:
            np.add(operands[0], operands[1], out)
            for x in remainder:
                np.add(out, x, out)

        return run

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (out,) = results
        graph.put(out, *graph.mapped(graph.summed, operands, out.shape))

    def in_jax(self, jax: Module, step: Step) -> Function:
        return _added


SUM = Sum()


def _added(*terms: Array) -> Array:
    return reduce(operator.add, terms)
