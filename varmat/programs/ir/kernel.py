"""The protocol of kernels: a name for people, a meaning for Python, and traits.

A kernel is what a step of a program computes. Everything about it is on its class: passes and
runners read traits, and name no class.

    results     the shapes and types of what it makes of its operands
    evaluate    arrays to new arrays: its meaning, for constants and for the interpreter
    bind        arrays and memory for results to a function of no arguments that writes into it
    code        what the native runner makes of it; without it a step calls Python
    in_jax      the same as a function of JAX
    batched     one step in place of many similar ones

A kernel without settings is one object for all steps; one with settings equals another with the
same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from varmat.programs.ir.program import ArrayLayout, Output, Program, Shape, Step, Value

if TYPE_CHECKING:
    from varmat.programs.kernels.loop import Loop
    from varmat.programs.passes.batching import Batch
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function

Arrays = Sequence[Any]
# JAX, which is imported only when it is used.
Module: TypeAlias = ModuleType
Results = tuple[Output, ...]
# A step bound to its arrays.
Run = Callable[[], object]
T = TypeVar("T")
# The position of a part in an array, its shape there, the part and, without a position, its index.
Parts = list[tuple[Any, Shape, T, T | None]]


class Kernel:
    """The computation of a step.

    Attributes
    ----------
    name : str
    is_pure : bool
        Whether a step may be left out if nothing reads its results, and shared with an equal one.
    is_native : bool
        Whether it has `code`; a step of any other kernel is a call of Python.
    is_foldable : bool
        Whether a step of constants is computed when the program is made.
    is_guard : bool
        Whether it makes nothing, and ends the run unless its one operand meets a condition.
    is_batchable : bool
        Whether it has `batched`.
    elementwise : callable, optional
        The function of arrays behind an elementwise kernel: its ufunc, if it has one.
    otherwise : callable, optional
        For a guard in code made of a program: the function of the same arguments that takes over.
    bodies : sequence of Program
        The programs that a step runs, if any.
    as_loop : Loop, optional
        The kernel, if it is a loop.
    overwritable : slice
        The operands over which the first result may be written, if they have its shape and layout.
        A kernel with which these are all operands reads an element of each of them before it writes
        there.
    """

    name = ""
    is_pure = is_native = is_foldable = True
    is_guard = is_batchable = False
    elementwise: Function | None = None
    otherwise: Function | None = None
    bodies: Sequence[Program] = ()
    as_loop: Loop | None = None
    overwritable = slice(0)

    def results(self, *operands: Value) -> list[ArrayLayout]:
        raise NotImplementedError(f"{self.name} does not say what it makes")

    def settings(self, *operands: Value) -> str:
        """Return what print shows after the operands."""
        return ""

    def parts(self, operands: Sequence[T]) -> tuple[T | None, Parts[T]]:
        """Split an array into the base, or None, and the parts that are added to it."""
        return None, []

    def evaluate(self, *operands: np.ndarray) -> Results:
        raise NotImplementedError(f"{self.name} has no meaning")

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        evaluate = self.evaluate

        def run() -> None:
            for place, result in zip(results, evaluate(*operands), strict=True):
                place[...] = result

        return run

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        """Define the results in a graph of the native runner."""
        raise NotImplementedError(f"{self.name} is not native")

    def in_jax(self, jax: Module, step: Step) -> Function | None:
        """Return a step as a function of JAX, from its operands to its results; for a guard, to
        whether it holds. None if JAX cannot run it.
        """
        return None

    def is_liftable(self, operands: Sequence[Value]) -> bool:
        """Return whether the steps of all iterations of a loop become one by `batched`."""
        return self.is_batchable or self.is_guard

    def batched(self, batch: Batch) -> Value | None:
        """Return the results of many steps, with a leading axis; None if the operands do not allow
        it. This implementation is right for elementwise kernels.
        """
        return batch.builder.call(self, *batch.operands())

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def shape_of(operands: Sequence[Value]) -> Shape:
    shapes = {v.shape for v in operands if v.shape}
    return np.broadcast_shapes(*shapes) if len(shapes) != 1 else shapes.pop()


# The index of the only element of a `memoryview` of an array without axes. Python's arithmetic on
# these takes a third of the time of a call of NumPy's.
HERE = ()
