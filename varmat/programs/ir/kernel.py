"""What every kernel has: a name for people, a meaning for Python, code for the native runner.

A kernel is what a step of a program computes.

    results     the shapes and types of what it makes of its operands
    evaluate    arrays to new arrays: its meaning, for constants and for the interpreter
    bind        arrays and places for the results to a function of nothing that computes into them
    code        what the native runner makes of it; without it a step calls Python

A kernel without settings is one object for all steps; one with settings equals another with the
same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from varmat.programs.ir.program import Array, Layout, Shape, Value

if TYPE_CHECKING:
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function

Arrays = Sequence[Array]
# JAX, which is imported only when it is used.
Module: TypeAlias = Any
Results = tuple[Array, ...]
# A step bound to its arrays.
Run = Callable[[], object]


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
    # Whether it has `code`; a step of any other kernel is a call of Python.
    is_native = True

    def results(self, *operands: Value) -> list[Layout]:
        raise NotImplementedError(f"{self.name} does not say what it makes")

    def settings(self, *operands: Value) -> str:
        """What print says beside the operands."""
        return ""

    def evaluate(self, *operands: np.ndarray) -> Results:
        raise NotImplementedError(f"{self.name} has no meaning")

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        evaluate = self.evaluate

        def run() -> None:
            for place, made in zip(results, evaluate(*operands), strict=True):
                place[...] = made

        return run

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        """Say in a graph of the native runner what the results are."""
        raise NotImplementedError(f"{self.name} is not native")

    def in_jax(self, jax: Module) -> Function | None:
        """The kernel as a function of JAX: of the step and its operands, to what it makes. None if
        JAX cannot run it. Those of this package are listed in `varmat.programs.run.jax` instead.
        """
        return None

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


def shape_of(operands: Sequence[Value]) -> Shape:
    shapes = {v.shape for v in operands if v.shape}
    return np.broadcast_shapes(*shapes) if len(shapes) != 1 else shapes.pop()


# The index of the only element of a `memoryview` of an array without axes. Python's arithmetic on
# these takes a third of the time of a call of NumPy's.
HERE = ()
