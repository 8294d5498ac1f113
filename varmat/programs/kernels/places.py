"""Kernels that move elements: copies, gathers, and arrays made of parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.kernel import Arrays, Kernel, Parts, Results, Run, T
from varmat.programs.ir.program import BOOL, FLOAT, Layout, Shape, Step, Value, element_places
from varmat.programs.run import assembling
from varmat.programs.run.loops import NoLoopError

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Module
    from varmat.programs.ir.program import Array, Place
    from varmat.programs.passes.batching import Batch
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function


class Copy(Kernel):
    """The values of a view, or of a number repeated, in memory of their own."""

    is_batchable = True
    overwritable = slice(None)

    def __init__(self, shape: Shape) -> None:
        self.shape, self.name = shape, "copy"

    def results(self, *operands: Value) -> list[Layout]:
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
    """A copy of what is about to be written over: it keeps its place among the steps, and is never
    batched.
    """

    is_batchable = False


@cache
def copy_kernel(shape: Shape) -> Copy:
    return Copy(shape)


@cache
def kept_kernel(shape: Shape) -> Kept:
    return Kept(shape)


class Gather(Kernel):
    """Elements of a contiguous array, by their places in it: ``x.reshape(-1)[index]``."""

    name = "gather"
    is_batchable = True

    def results(self, *operands: Value) -> list[Layout]:
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
        return False  # because `batched` needs the place of the array

    def batched(self, batch: Batch) -> Value | None:
        """Elements of parts of one value as elements of it."""
        array, index = batch.columns
        if array.whole is None:
            return None
        x, offsets = array.whole
        places = index.make().data + (offsets // 8).reshape(-1, *(1,) * len(index.shape))
        return batch.builder.call(self, x, batch.builder.constant(places))


GATHER = Gather()


@dataclass(frozen=True, repr=False)
class Assemble(Kernel):
    """An array made of parts: zeros, or the first operand, with the other operands added at their
    places.

    A place is ``(offset, strides)``, in bytes, of a view of the result. If it is None, the part is
    followed by the places of its elements in the flattened result. With `is_partition` the parts
    cover the result and do not overlap.
    """

    shape: Shape
    places: tuple[Place, ...]
    has_base: bool = False
    is_partition: bool = False
    # Other than float64 only with `is_partition`, for truth values and indices.
    dtype: np.dtype = FLOAT
    shapes: tuple[Shape, ...] = ()

    name = "assemble"
    is_batchable = True

    @property
    def overwritable(self) -> slice:  # type: ignore[override]
        return slice(self.has_base)

    def results(self, *operands: Value) -> list[Layout]:
        return [(self.shape, self.dtype)]

    def parts(self, operands: Sequence[T]) -> tuple[T | None, Parts[T]]:
        following = iter(operands)
        base = next(following) if self.has_base else None
        return base, [
            (place, shape, next(following), next(following) if place is None else None)
            for place, shape in zip(self.places, self.shapes, strict=True)
        ]

    def settings(self, *operands: Value) -> str:
        places = [
            "listed" if place is None else str(place[0] // self.dtype.itemsize)
            for place in self.places
        ]
        return f"at {', '.join(places)}" if len(places) > 1 else ""

    def evaluate(self, *operands: np.ndarray) -> Results:
        result = (
            np.array(operands[0], self.dtype) if self.has_base else np.zeros(self.shape, self.dtype)
        )
        for run in self._runs(operands, result):
            run()
        return (result,)

    def _runs(self, operands: Arrays, result: np.ndarray) -> list[Run]:
        runs: list[Run] = []
        flat = result.reshape(-1)
        for place, shape, part, index in self.parts(operands)[1]:
            if index is not None:
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

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        (result,) = results
        runs = self._runs(operands, result)
        if self.has_base and not np.may_share_memory(result, operands[0]):
            runs.insert(0, partial(np.copyto, result, operands[0]))
        elif not (self.has_base or self.is_partition):
            runs.insert(0, partial(result.fill, 0.0))
        return runs[0] if len(runs) == 1 else partial(_run_all, runs)

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (result,) = results
        if self.dtype not in (FLOAT, BOOL):
            raise NoLoopError("integers")
        assembling.assemble(graph, result, *self.parts(operands), self.is_partition)

    def in_jax(self, jax: Module, step: Step) -> Function:
        jnp = jax.numpy

        def rule(*operands: Array) -> Array:
            whole, parts = self.parts(operands)
            if whole is None:
                whole = jnp.zeros(self.shape, jax.dtypes.canonicalize_dtype(self.dtype))
            flat = jnp.reshape(whole, (-1,))
            for place, shape, part, index in parts:
                values = jnp.broadcast_to(part, shape)
                if place is None:
                    flat = flat.at[jnp.reshape(index, (-1,))].add(jnp.reshape(values, (-1,)))
                else:
                    here = flat.at[element_places(shape, place[1], place[0], self.dtype.itemsize)]
                    flat = here.set(values) if self.is_partition else here.add(values)
            return jnp.reshape(flat, self.shape)

        return rule

    def batched(self, batch: Batch) -> Value | None:
        if self.dtype != FLOAT:
            return None
        base, given = self.parts(batch.columns)
        n, builder, row, parts = batch.n, batch.builder, 8 * math.prod(self.shape), []
        for place, shape, column, index in given:
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


@dataclass(frozen=True, repr=False)
class Write(Kernel):
    """An array with one part replaced, as by an assignment.

    The place is ``(offset, strides)``, in bytes, of the part in the result.
    """

    shape: Shape
    place: tuple[int, Shape]
    part: Shape

    name = "write"
    overwritable = slice(1)

    def results(self, *operands: Value) -> list[Layout]:
        return [(self.shape, FLOAT)]

    def evaluate(self, *operands: np.ndarray) -> Results:
        result = np.array(operands[0], order="C")
        np.copyto(np.ndarray(self.part, FLOAT, result, *self.place), operands[1])
        return (result,)

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        (result,), (before, part) = results, operands
        run = partial(np.copyto, np.ndarray(self.part, FLOAT, result, *self.place), part)
        if np.may_share_memory(result, before):
            return run
        return partial(_run_all, [partial(np.copyto, result, before), run])

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        (before, part), (result,) = operands, results
        assembling.assemble(graph, result, before, [(self.place, self.part, part, None)], True)

    def in_jax(self, jax: Module, step: Step) -> Function:
        jnp, places = jax.numpy, element_places(self.part, *self.place[::-1])

        def rule(before: Array, part: Array) -> Array:
            flat = jnp.reshape(before, (-1,)).at[places].set(jnp.broadcast_to(part, self.part))
            return jnp.reshape(flat, self.shape)

        return rule


def _run_all(runs: Sequence[Run]) -> None:
    for run in runs:
        run()
