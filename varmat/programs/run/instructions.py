"""Statements as instructions: what numbers and vectors have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from varmat.programs.ir import statements as s
from varmat.programs.run.compiler import BIT, INT

if TYPE_CHECKING:
    from varmat.programs.run.code import Code


class Instructions(ABC):
    """The instructions of statements; abstract.

    Attributes
    ----------
    code : Code
    b : IRBuilder
    kind : llvmlite.ir.Type
        The type of a number.
    """

    code: Code
    b: ir.IRBuilder
    kind: ir.Type

    @abstractmethod
    def number(self, x: s.Number) -> ir.Value:
        """Return the value of a number."""

    @abstractmethod
    def set(self, x: s.Cell, value: ir.Value) -> None:
        """Assign to a cell."""

    @abstractmethod
    def common_integer(self, x: s.Number) -> ir.Value:
        """Return an integer that is the same for all lanes."""

    @abstractmethod
    def common_slot(self, x: s.Cell | s.Stack) -> ir.Value:
        """Return where such an integer lies, or how much is on a stack."""

    @abstractmethod
    def entry(self, stack: s.Stack, at: ir.Value) -> ir.Value:
        """Return the address of a number on a stack."""

    @abstractmethod
    def capacity(self, stack: s.Stack) -> int:
        """Return how many numbers a stack can hold."""

    @abstractmethod
    def take_back(self, x: s.Undo) -> None:
        """Take back the last assignment to an array."""

    # --- blocks ---

    def block(self, statements: Sequence[s.Statement]) -> None:
        for statement in statements:
            getattr(self, s.name_of(statement))(statement)

    def end(self, x: s.End) -> None:
        self.code.unless(BIT(0), self.code.ended)

    def while_true(self, begin: Callable[[], ir.Value], body: Callable[[], None]) -> None:
        """Emit a loop that runs as long as a truth value holds."""
        b = self.b
        head, inside, after = (b.append_basic_block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(begin(), inside, after)
        b.position_at_end(inside)
        body()
        b.branch(head)
        b.position_at_end(after)

    def either(
        self, holds: ir.Value, yes: Sequence[s.Statement], no: Sequence[s.Statement]
    ) -> None:
        """Emit one block where a truth value holds, and another where not."""
        b = self.b
        inside, other, after = (b.append_basic_block() for _ in range(3))
        b.cbranch(holds, inside, other)
        for block, body in ((inside, yes), (other, no)):
            b.position_at_end(block)
            self.block(body)
            b.branch(after)
        b.position_at_end(after)

    # --- stacks ---

    def _top(self, stack: s.Stack) -> ir.Value:
        return self.b.load(self.common_slot(stack), typ=INT)

    def _read(self, stack: s.Stack, first: ir.Value, count: int) -> list[ir.Value]:
        b = self.b
        entries = (self.entry(stack, b.add(first, INT(i))) for i in range(count))
        return [b.load(place, align=8, typ=self.kind) for place in entries]

    def pushed(self, stack: s.Stack, values: Sequence[ir.Value]) -> None:
        """Put values on a stack."""
        b, top = self.b, self._top(stack)
        after = b.add(top, INT(len(values)))
        self.code.unless(b.icmp_signed("<=", after, INT(self.capacity(stack))), self.code.ended)
        for i, x in enumerate(values):
            b.store(x, self.entry(stack, b.add(top, INT(i))), align=8)
        b.store(after, self.common_slot(stack))

    def popped(self, stack: s.Stack, count: int) -> list[ir.Value]:
        """Take the last values from a stack."""
        top = self.b.sub(self._top(stack), INT(count))
        self.b.store(top, self.common_slot(stack))
        return self._read(stack, top, count)

    def push(self, x: s.Push) -> None:
        self.pushed(x.stack, [self.number(cell) for cell in x.cells])

    def pop(self, x: s.Pop) -> None:
        for cell, value in zip(x.cells, self.popped(x.stack, len(x.cells)), strict=True):
            self.set(cell, value)

    def recall(self, x: s.Recall) -> None:
        b, at, count = self.b, self.common_integer(x.cursor), len(x.cells)
        for cell, value in zip(x.cells, self._read(x.stack, at, count), strict=True):
            self.set(cell, value)
        b.store(b.add(at, INT(count)), self.common_slot(x.cursor))

    def release(self, x: s.Release) -> None:
        self.b.store(self.common_integer(x.mark), self.common_slot(x.stack))

    def mark(self, x: s.Mark) -> None:
        self.b.store(self._top(x.stack), self.common_slot(x.out))

    def undo(self, x: s.Undo) -> None:
        if x.mark is None:
            self.take_back(x)
            return
        mark = self.common_integer(x.mark)
        self.while_true(
            lambda: self.b.icmp_signed(">", self._top(x.log), mark), lambda: self.take_back(x)
        )
