"""Programs written again, with some values replaced."""

from __future__ import annotations

from collections.abc import Iterable

from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import Program, Step, Value


class Rewriter:
    """Writes a program again. A step is kept unchanged unless something that it reads was replaced.

    Parameters
    ----------
    old : Program

    Attributes
    ----------
    builder : Builder
        The builder of the new program, which has the same arguments.
    """

    def __init__(self, old: Program) -> None:
        self.old, self.builder = old, Builder()
        self.builder.arguments = old.arguments
        # By the id of an old value, which the old program holds.
        self._new: dict[int, Value] = {}

    def replace(self, old: Iterable[Value], new: Iterable[Value]) -> None:
        """Replace old values by new ones, made by steps of the new program."""
        self._new.update((id(v), x) for v, x in zip(old, new, strict=True))

    def value(self, old: Value) -> Value:
        """Return the value that replaces an old one; views are taken of their new base."""
        new, base = self._new.get(id(old)), self._new.get(id(old.base))
        if new is None and base is not None:
            new = self._new[id(old)] = self.builder.part_like(old, base)
        return self.builder.adopted(old) if new is None else new

    def keep(self, step: Step) -> None:
        """Take a step over."""
        operands = tuple(map(self.value, step.operands))
        saved = step if operands == step.operands else None
        result = self.builder.apply(step.kernel, *operands, step=saved)
        if result is not step.results:
            self.replace(step.results, result)

    def program(self) -> Program:
        """Return the new program, with the outputs of the old one."""
        return self.builder.program(map(self.value, self.old.outputs))
