"""The liveness of variables of statements: which are assigned once, and which are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from varmat.programs.ir import statements as s
from varmat.programs.ir.statements import Cell, Compute, Statement, Storage, Variable


class _Access(NamedTuple):
    """An access to an element: how many statements come before it, and the loops around it inside
    the scope of the array.
    """

    number: int
    loops: list[Statement]
    statement: s.Load | s.Store | s.Fill

    @property
    def indices(self) -> Sequence[s.Affine]:
        """The indices of an element."""
        x = self.statement
        return () if isinstance(x, s.Fill) else [*map(s.Affine.of, x.indices)]

    def axis(self, loop: Statement) -> int | None:
        """Return the axis whose index is the loop's, or differs from it by a constant."""
        terms = [i.terms for i in self.indices]
        own = ((loop.index, 1),) if isinstance(loop, s.For) else None
        return terms.index(own) if own in terms else None

    def is_before(self, load: _Access) -> bool:
        """Return whether what is read is assigned before, or never; for a store to other elements
        in every iteration.
        """
        for loop, other in zip(self.loops, load.loops, strict=False):
            axis = self.axis(loop)
            if loop is not other or axis is None:
                break
            if not load.indices:
                return False
            i, j = self.indices[axis], load.indices[axis]
            if j.terms != i.terms or j.constant > i.constant:
                return False
            if j.constant < i.constant:
                return True
        return self.number < load.number


def assigned_once(statements: Sequence[Statement]) -> tuple[set[Variable], set[Variable]]:
    """Find the arrays to which one statement assigns, to other elements in every iteration: arrays
    that nothing else fills before, and arrays that are read only where they do not change any more.
    """
    result: dict[Storage, list[_Access]] = {}
    depths: dict[Variable, int] = {}
    count = 0

    def visit(statements: Sequence[Statement], loops: list[Statement]) -> None:
        nonlocal count
        for y in statements:
            count += 1
            if isinstance(y, s.Declare):
                depths[y.variable] = len(loops)
            elif isinstance(y, (s.Load, s.Store)):
                around = loops[depths.get(y.array, 0) :]
                result.setdefault(y.array, []).append(_Access(count, around, y))
            elif isinstance(y, s.Fill) and isinstance(y.value, Storage):
                around = loops[depths.get(y.value, 0) :]
                result.setdefault(y.value, []).append(_Access(count, around, y))
            is_loop = isinstance(y, (s.For, s.While))
            for body in s.bodies(y):
                visit(body, [*loops, y] if is_loop else loops)

    visit(statements, [])
    filled = {y.array for y in s.walk(statements) if isinstance(y, s.Fill)}
    # Arrays that are filled before all loops have elements that iterations may read before they
    # assign to them.
    backward = filled - {y.array for y in statements if isinstance(y, s.Fill)}
    once: set[Variable] = {x for x in result if x.is_temporary}
    lasting = set[Variable]()
    for x, accesses in result.items():
        stores = [item for item in accesses if isinstance(item.statement, s.Store)]
        if len(stores) == 1 and all(stores[0].axis(loop) is not None for loop in stores[0].loops):
            loads = [item for item in accesses if item is not stores[0]]
            if x not in filled:
                once.add(x)
            if x not in backward and all(map(stores[0].is_before, loads)):
                lasting.add(x)
    return once, lasting


def needed_variables(statements: Sequence[Statement], others: set[Variable]) -> set[Variable]:
    """Return the variables on which others, arrays, and the control flow depend."""
    every, result, before = [*leaves(statements)], {*others}, 0
    while before != len(result):
        before = len(result)
        for item in every:
            if isinstance(item, (Compute, s.Load, s.Add)):
                result |= s.reads([item]) if item.out in result else set()
            elif isinstance(item, (s.Store, s.AddAt, s.Fill, s.For, s.While, s.If)):
                result |= s.reads([item])
            elif not isinstance(item, s.Declare):
                result.update(x for x in s.variables([item]) if not isinstance(x, s.Stack))
    return result


def without(statements: Sequence[Statement], cells: set[Cell]) -> list[Statement]:
    """Leave out statements that compute some cells."""
    return [
        s.mapped(x, lambda body: without(body, cells))
        for x in statements
        if not (isinstance(x, (Compute, s.Load, s.Add)) and x.out in cells)
    ]


def leaves(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements without their bodies."""
    for x in s.walk(statements):
        yield s.mapped(x, lambda _: [])


def is_sum(body: Sequence[Statement], x: Variable) -> bool:
    """Return whether statements only add to a cell."""
    added = [y for y in s.walk(body) if isinstance(y, s.Add) and y.out is x]
    mentions = sum((x in s.assigned([leaf])) + (x in s.reads([leaf])) for leaf in leaves(body))
    return isinstance(x, Cell) and mentions == len(added) > 0
