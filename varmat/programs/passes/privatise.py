"""Variables that each iteration of a loop assigns before it reads them, as its own variables.

They carry nothing then, so that iterations may be independent. Users often declare such variables
before the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from varmat.programs.ir import statements as s
from varmat.programs.ir.statements import Cell, Statement, Storage, Variable


def privatised(statements: Sequence[Statement], saved: Collection[Variable]) -> list[Statement]:
    """Declare variables where each iteration begins, unless these are kept for what comes after."""
    body = [*statements]
    assigned = {x for x in s.assigned(body) if not x.is_temporary} - {*saved}
    for x in sorted(assigned - s.declared(body), key=lambda x: x.name):
        result = _declared(body, x)
        if result is not None:
            body = result
            stores = [y for y in s.walk(body) if isinstance(y, s.Store) and y.array is x]
            x.is_temporary = len(stores) == 1
    return body


def _declared(statements: Sequence[Statement], x: Variable) -> list[Statement] | None:
    """Declare a variable in the innermost loop that contains all its uses, if that is possible."""
    reading = [item for item in statements if x in s.reads([item])]
    if len(reading) != 1:
        return None
    (inside,) = reading
    if not isinstance(inside, s.For) or x in (inside.lower, inside.upper):
        return None
    output = _declared(inside.body, x)
    if output is None and _is_assigned_first(inside.body, x):
        output = [s.Declare(x), *inside.body]
    if output is None:
        return None
    result: list[Statement] = []
    for y in statements:
        if y is inside:
            result.append(replace(inside, body=output))
        elif x not in s.assigned([y]):
            result.append(y)
        elif not isinstance(y, (s.Compute, s.Load, s.Fill)):
            return None
    return result


def _is_assigned_first(statements: Sequence[Statement], x: Variable) -> bool:
    """Return whether all of a variable is assigned before it is read."""
    for y in statements:
        if isinstance(y, (s.Compute, s.Load)) and y.out is x:
            return x not in s.reads([y])
        if (
            isinstance(y, s.If)
            and y.holds is not x
            and all(_is_assigned_first(body, x) for body in s.bodies(y))
        ):
            return True
        if x in s.reads([y]):
            return False
        if isinstance(x, Storage) and _assigns_all(y, x):
            return True
    return False


def _assigns_all(statement: Statement, x: Storage) -> bool:
    """Return whether a statement, or one in loops, assigns every element of an array, once."""
    ranges: dict[Cell, tuple[float, float]] = {}
    while isinstance(statement, s.For):
        if isinstance(statement.lower, Cell) or isinstance(statement.upper, Cell):
            return False
        ranges[statement.index] = statement.lower, statement.upper
        inner = [item for item in statement.body if x in s.assigned([item])]
        if len(inner) != 1:
            return False
        (statement,) = inner
    if not isinstance(statement, s.Store):
        return False
    for i, n in zip(statement.indices, x.shape, strict=True):
        i = s.Affine.of(i)
        if not i.terms and n == 1:
            continue
        own = [cell for cell in ranges if i.terms == ((cell, 1),)]
        if not own:
            return False
        lower, upper = ranges.pop(own[0])
        if lower + i.constant > 0 or upper + i.constant < n - 1:
            return False
    return not ranges
