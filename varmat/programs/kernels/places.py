"""Kernels that move elements: copies, gathers, and arrays made of parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.ir.kernel import Arrays, Kernel, Parts, Results, Run, T
from varmat.programs.ir.program import FLOAT, ArrayLayout, Shape, Step, Value, element_places
from varmat.programs.run import assembling

if TYPE_CHECKING:
    from jax import Array as JaxArray

    from varmat.programs.ir.kernel import Module
    from varmat.programs.ir.program import Place
    from varmat.programs.passes.batching import Batch
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function


@dataclass(frozen=True, repr=False)
class Copy(Kernel):
    """The values of a view, or of a number repeated, in separate memory."""

    shape: Shape

    name = "copy"
    is_batchable = True
    overwritable = slice(None)

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(self.shape, operands[0].dtype)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        return (np.array(np.broadcast_to(operands[0], self.shape), order="C"),)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        return partial(np.copyto, results[0], operands[0])

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        graph.put(results[0], *graph.copied(operands[0], self.shape))

    def in_jax(self, jax: Module, step: Step) -> Function:
        return lambda x: jax.numpy.broadcast_to(x, self.shape)

    def batched(self, batch: Batch) -> Value | None:
        return batch.builder.full(batch.operands()[0], (batch.n, *self.shape))


class Kept(Copy):
    """A copy of memory that is about to be overwritten: it keeps its position among the steps, and
    is never batched.
    """

    is_batchable = False


copy_kernel, kept_kernel = cache(Copy), cache(Kept)


class Gather(Kernel):
    """Elements of a contiguous array, by their indices in it: ``x.reshape(-1)[index]``."""

    name = "gather"
    is_batchable = True

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(operands[1].shape, operands[0].dtype)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        x, index = operands
        return (np.reshape(x, -1)[index],)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        x, index = operands
        return partial(np.take, x.reshape(-1), index, None, results[0], "clip")

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        graph.put(results[0], *assembling.gathered(graph, *operands))

    def in_jax(self, jax: Module, step: Step) -> Function:
        return lambda x, index: jax.numpy.reshape(x, (-1,))[index]

    def is_liftable(self, operands: Sequence[Value]) -> bool:
        return False  # because `batched` needs the position of the array

    def batched(self, batch: Batch) -> Value | None:
        """Gather elements of parts of one value as elements of it."""
        array, index = batch.columns
        if array.whole is None:
            return None
        x, offsets = array.whole
        indices = index.make().data + (offsets // 8).reshape(-1, *(1,) * len(index.shape))
        return batch.builder.call(self, x, batch.builder.constant(indices))


GATHER = Gather()


@dataclass(frozen=True, repr=False)
class Assemble(Kernel):
    """An array made of parts: zeros, or the first operand, with the other operands added at their
    places.

    A place is ``(offset, strides)``, in bytes, of a view of the result. If it is None, the part is
    followed by the places of its elements in the flattened result. With `replaces` the parts are
    written, not added: they cover the result and do not overlap, or there is one part and a base.
    """

    shape: Shape
    places: tuple[Place | None, ...]
    shapes: tuple[Shape, ...]
    has_base: bool = False
    replaces: bool = False

    name = "assemble"
    is_batchable = True

    @property
    def overwritable(self) -> slice:  # type: ignore[override]
        return slice(self.has_base)

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(self.shape, FLOAT)]

    def parts(self, operands: Sequence[T]) -> tuple[T | None, Parts[T]]:
        following = iter(operands)
        base = next(following) if self.has_base else None
        return base, [
            (place, shape, next(following), next(following) if place is None else None)
            for place, shape in zip(self.places, self.shapes, strict=True)
        ]

    def settings(self, *operands: Value) -> str:
        texts = ["listed" if place is None else str(place[0] // 8) for place in self.places]
        return f"at {', '.join(texts)}" if len(texts) > 1 else ""

    def evaluate(self, *operands: np.ndarray) -> Results:
        result = np.array(operands[0], order="C") if self.has_base else np.zeros(self.shape)
        for run in self._runs(operands, result):
            run()
        return (result,)

    def _runs(self, operands: Arrays, result: np.ndarray) -> list[Run]:
        def run(place: Place, shape: Shape, part: np.ndarray, index: np.ndarray | None) -> Run:
            if index is not None:
                values = np.broadcast_to(part, shape).reshape(-1)
                return partial(np.add.at, result.reshape(-1), index.reshape(-1), values)
            view = np.ndarray(shape, FLOAT, result, *place)
            if self.replaces:
                return partial(np.copyto, view, part)
            return partial(np.add, view, part, view)

        return [run(*part) for part in self.parts(operands)[1]]

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        (result,) = results
        runs = self._runs(operands, result)
        if self.has_base and not np.may_share_memory(result, operands[0]):
            runs.insert(0, partial(np.copyto, result, operands[0]))
        elif not (self.has_base or self.replaces):
            runs.insert(0, partial(result.fill, 0.0))
        return runs[0] if len(runs) == 1 else partial(_run_all, runs)

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        assembling.assemble(graph, results[0], *self.parts(operands), self.replaces)

    def in_jax(self, jax: Module, step: Step) -> Function:
        jnp = jax.numpy

        def rule(*operands: JaxArray) -> Any:
            full, parts = self.parts(operands)
            flat = jnp.reshape(jnp.zeros(self.shape) if full is None else full, (-1,))
            for place, shape, part, index in parts:
                values = jnp.broadcast_to(part, shape)
                if place is None:
                    flat = flat.at[jnp.reshape(index, (-1,))].add(jnp.reshape(values, (-1,)))
                else:
                    here = flat.at[element_places(shape, place[1], place[0])]
                    flat = here.set(values) if self.replaces else here.add(values)
            return jnp.reshape(flat, self.shape)

        return rule

    def batched(self, batch: Batch) -> Value | None:
        base, inputs = self.parts(batch.columns)
        n, builder, row, parts = batch.n, batch.builder, 8 * math.prod(self.shape), []
        for place, shape, column, index in inputs:
            part = batch.aligned(column, shape)
            if index is not None:
                rows = (1 if index.is_shared else n, *shape)
                firsts = (np.arange(n) * (row // 8)).reshape(-1, *(1,) * len(shape))
                place = index.make().data.reshape(rows) + firsts
                part = builder.full(part, (n, *shape))
            else:
                place = place[0], (row, *place[1])
            parts.append((place, (n, *shape), part))
        return builder.assemble((n, *self.shape), parts, None if base is None else batch.full(base))


class Write(Assemble):
    """An array with one part replaced, as by an assignment."""

    name = "write"
    is_batchable = False


def _run_all(runs: Sequence[Run]) -> None:
    for run in runs:
        run()
