"""Variables that each iteration of a loop assigns before it reads them, as its own variables.

They carry nothing then, so that iterations may be independent. Users often declare such variables
before the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from varmat.programs.ir import statements as s
from varmat.programs.ir.statements import Cell, Statement, Storage, Variable


def privatised(statements: Sequence[Statement], kept: Collection[Variable]) -> list[Statement]:
    """Declare variables where each iteration begins, unless these are kept for what comes after."""
    body = [*statements]
    assigned = {x for x in s.assigned(body) if not x.is_temporary} - {*kept}
    for x in sorted(assigned - s.declared(body), key=lambda x: x.name):
        found = _declared(body, x)
        if found is not None:
            body = found
            stores = [
                each for each in s.walk(body) if isinstance(each, s.Store) and each.array is x
            ]
            x.is_temporary = len(stores) == 1
    return body


def _declared(statements: Sequence[Statement], x: Variable) -> list[Statement] | None:
    """Declare a variable in the innermost loop that contains all its uses, if that is possible."""
    reading = [each for each in statements if x in s.reads([each])]
    if len(reading) != 1:
        return None
    (inside,) = reading
    if not isinstance(inside, s.For) or x in (inside.lower, inside.upper):
        return None
    made = _declared(inside.body, x)
    if made is None and _is_assigned_first(inside.body, x):
        made = [s.Declare(x), *inside.body]
    if made is None:
        return None
    found: list[Statement] = []
    for each in statements:
        if each is inside:
            found.append(replace(inside, body=made))
        elif x not in s.assigned([each]):
            found.append(each)
        elif not isinstance(each, (s.Compute, s.Load, s.Fill)):
            return None
    return found


def _is_assigned_first(statements: Sequence[Statement], x: Variable) -> bool:
    """Return whether all of a variable is assigned before it is read."""
    for each in statements:
        if isinstance(each, (s.Compute, s.Load)) and each.out is x:
            return x not in s.reads([each])
        if isinstance(each, s.Fill) and each.array is x:
            return each.value is not x
        if (
            isinstance(each, s.If)
            and each.holds is not x
            and all(_is_assigned_first(body, x) for body in s.bodies(each))
        ):
            return True
        if x in s.reads([each]):
            return False
        if isinstance(x, Storage) and _assigns_all(each, x):
            return True
    return False


def _assigns_all(statement: Statement, x: Storage) -> bool:
    """Return whether a statement, or one in loops, assigns every element of an array, once."""
    ranges: dict[Cell, tuple[float, float]] = {}
    while isinstance(statement, s.For):
        if isinstance(statement.lower, Cell) or isinstance(statement.upper, Cell):
            return False
        ranges[statement.index] = statement.lower, statement.upper
        inner = [each for each in statement.body if x in s.assigned([each])]
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
