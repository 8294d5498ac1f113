"""Large arrays block by block: elementwise statements and the sums over them become loops whose temporaries stay in the cache.

The statements of a program, forward and reverse, are assigned to rounds. A round is what can be computed before a sum of the same
round is known: first the statements that need whole arrays, then a loop for each shape. Most models need one round: the reverse
pass of a sum needs what the forward pass computes, but not the sum. What no other round uses is never more than a block.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

from varmat.core.elementwise import for_arrays
from varmat.core.rules import IN_PLACE
from varmat.programs.statements import Statement, called, negated

Shape = tuple[int, ...]

# Elements of a block. Measured with an L2 cache of 1 MB: half of it takes up to a tenth longer, for the calls; twice and four times
# of it are as good.
BLOCK = 1 << 14
# What sums all elements of an array, or of a product of two.
SUMS = frozenset({"total", "vdot", "whole"})
_ELEMENTWISE = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.cmpop, ast.Load)


class Step:
    """A statement, and whether it goes into a loop.

    Attributes
    ----------
    shape : tuple of int, optional
        Of the large arrays, if it is an elementwise statement or a sum over them.
    sums : bool
        Whether it is such a sum.
    written : set of str
        The arrays that it writes into.
    stored : set of str
        These and the names that it binds.
    """

    def __init__(self, statement: Statement, shapes: Mapping[str, Shape], functions: frozenset[str]) -> None:
        self.statement, self.text, self.loaded = statement, statement.text, statement.loaded
        self.written = statement.written & shapes.keys()
        self.stored = statement.bound | self.written
        self.sums = False
        self.shape: Shape | None = None
        if statement.target:
            self._look(statement.value, statement.target, shapes, functions)

    def _look(self, value: Any, target: str, shapes: Mapping[str, Shape], functions: frozenset[str]) -> None:
        found = {shapes[name] for name in self.loaded if name in shapes}
        if len(found) != 1 or math.prod(*found) <= 2 * BLOCK or isinstance(value, ast.Name):
            return
        (shape,) = found
        parts = [value]
        if called(value) == "dot" and len(shape) == 1:
            parts, self.sums = [value.func.value, *value.args], True
        elif called(value) in SUMS:
            parts, self.sums = value.args, True
        if all(is_elementwise(part, functions) for part in parts) and (self.sums or shapes.get(target) == shape):
            self.shape = shape


def is_elementwise(expression: ast.expr | None, functions: frozenset[str]) -> bool:
    """Whether an expression consists of operators and elementwise functions."""
    if isinstance(expression, ast.Call):
        known = isinstance(expression.func, ast.Name) and expression.func.id.removesuffix("_scalar") in functions
        return known and all(is_elementwise(argument, functions) for argument in expression.args)
    if not isinstance(expression, _ELEMENTWISE):
        return False
    return all(is_elementwise(part, functions) for part in ast.iter_child_nodes(expression) if isinstance(part, ast.expr))


class _Renamed(ast.NodeTransformer):
    """A statement on blocks."""

    def __init__(self, arrays: set[str]) -> None:
        self.arrays = arrays

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(f"{node.id}_", node.ctx) if node.id in self.arrays else node


def by_blocks(
    statements: list[Statement], shapes: Mapping[str, Shape], functions: Iterable[str], views: set[str],
    strided: Set[str] = frozenset(),
) -> list[str]:  # fmt: skip
    """The lines of a program with its elementwise statements on large arrays in loops.

    `views` are names of views of others, `strided` are arrays that do not lie in one piece.
    """
    known = frozenset(functions)
    steps = [Step(statement, shapes, known) for statement in statements]
    rounds = _rounds(steps, shapes, views)
    last = max(rounds)
    lines: list[str] = []
    for r in range(last + 1):
        here = [s for s, at in zip(steps, rounds, strict=True) if at == r]
        end = [s.text for s in here if isinstance(s.statement.tree, ast.Return)]
        lines += [s.text for s in here if s.shape is None and s.text not in end]
        for shape in dict.fromkeys(s.shape for s in here if s.shape is not None):
            inside = [s for s in here if s.shape == shape]
            if all(s.sums for s in inside):  # nothing in between
                lines += [s.text for s in inside]
                continue
            outside = set().union(*(s.loaded for s in steps if s not in inside))
            lines += _loop(inside, shape, shapes, outside, strided)
        lines += end
    return lines


def _rounds(steps: list[Step], shapes: Mapping[str, Shape], views: set[str]) -> list[int]:
    """The round of each statement."""
    # From which round on a loop, and from which a statement on whole arrays, may use a name.
    in_loops: dict[str, int] = {}
    whole: dict[str, int] = {}
    # Name of a view, or another name -> the array whose memory it is; and the first round in which that may be written to.
    memory: dict[str, str] = {}
    unread: dict[str, int] = {}
    rounds = []
    for s in steps:
        arrays = {memory.get(name, name) for name in s.loaded & shapes.keys()}
        if s.shape is None:
            r = max((whole.get(name, 0) for name in s.loaded | s.stored), default=0)
            r = max(r, *(unread.get(memory.get(name, name), 0) for name in s.written), 0)
            after, read = (r, r), r
        else:
            r = max((in_loops.get(name, 0) for name in s.loaded), default=0)
            after, read = ((r + 1, r + 1) if s.sums else (r, r + 1)), r + 1
        for name in arrays:
            unread[name] = max(unread.get(name, 0), read)
        for name in s.stored:
            in_loops[name], whole[name] = after
            value = s.statement.value
            if len(arrays) == 1 and (name in views or isinstance(value, ast.Name) or called(value) == "contiguous"):
                (memory[name],) = arrays
        rounds.append(r)
    return rounds


def _loop(
    inside: list[Step], shape: Shape, shapes: Mapping[str, Shape], outside: set[str], strided: Set[str]
) -> list[str]:
    """The lines of one loop; `outside` are the names that are used elsewhere."""
    made = set().union(*(s.stored for s in inside if not s.sums))
    read = sorted({name for s in inside for name in s.loaded if shapes.get(name) == shape} - made)
    kept = sorted(made & outside)
    sums = [name for s in inside if s.sums for name in s.stored]
    lines = [f"{name} = empty({shape})" for name in kept]
    # A flat block of what does not lie in one piece would be part of a copy of all of it; one of rows is a view.
    row = math.prod(shape[1:])
    by_rows = len(shape) > 1 and row <= BLOCK and not strided.isdisjoint(read)
    lines += [f"{name}_whole = {name}{'' if by_rows else '.reshape(-1)'}" for name in [*read, *kept]]
    lines += [f"{name} = 0.0" for name in sums]
    lines.append(f"for block in blocks({f'{shape[0]}, {BLOCK // row}' if by_rows else math.prod(shape)}):")
    lines += [f"    {name}_ = {name}_whole[block]" for name in read]
    renamed = _Renamed({*made, *read})
    for s in inside:
        (assignment,) = renamed.visit(ast.parse(s.text)).body
        text = ast.unparse(assignment)
        (name,) = s.stored
        if name in kept:
            place = f"{name}_whole[block]"
            ufunc, operands = _last_call(assignment.value)
            if ufunc:  # which writes where the values stay
                lines.append(f"    {name}_ = {ufunc}({', '.join(map(ast.unparse, operands))}, out={place})")
            else:
                lines += [f"    {text}", f"    {place} = {name}_"]
        else:
            lines.append("    " + (text.replace(" = ", " += ", 1) if s.sums else text))
    return lines


def _last_call(value: Any) -> tuple[str, list[ast.expr]]:
    """The ufunc that comes last in an elementwise expression, and its operands; no name if it is something else."""
    if isinstance(value, ast.BinOp) and type(value.op) in IN_PLACE:
        return IN_PLACE[type(value.op)], [value.left, value.right]
    if (operand := negated(value)) is not None:
        return "negative", [operand]
    return (called(value), value.args) if called(value) and isinstance(for_arrays(called(value)), np.ufunc) else ("", [])


def blocks(size: int, step: int = 0) -> list[slice]:
    """The parts of an array of a size, of so many elements or rows each."""
    step = step or BLOCK
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]
