"""Statements over numbers and arrays that are overwritten: loops and branches as they are written.

A variable is a `Cell`, which holds a number, or a `Storage`, which holds an array; truth values and
integers are numbers too. A block is a list of statements; loops and branches hold blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from varmat.programs.build.scalar_functions import ScalarFunction
    from varmat.programs.ir.program import Shape


class Cell:
    """A variable that holds a number.

    Attributes
    ----------
    is_temporary : bool
        Whether it is assigned once in each iteration, before it is read.
    is_integer : bool
        Whether it only holds integers, so that it is one in native code.
    """

    __slots__ = ("is_integer", "is_temporary", "name")

    def __init__(self, name: str = "", is_temporary: bool = True, is_integer: bool = False) -> None:
        self.name, self.is_temporary, self.is_integer = name, is_temporary, is_integer

    @property
    def unset(self) -> float:
        """Its value after it is declared."""
        return -(2.0**31) if self.is_integer else math.nan

    def like(self, name: str, is_temporary: bool) -> Cell:
        """Make another cell, for real numbers."""
        return Cell(name, is_temporary)

    def __repr__(self) -> str:
        return self.name or f"t{id(self) % 10007}"


class Storage:
    """A variable that holds an array of floats.

    Attributes
    ----------
    is_temporary : bool
        Whether each element is assigned once after it is declared, before it is read.
    """

    __slots__ = ("is_temporary", "name", "shape")

    def __init__(self, shape: Shape, name: str = "", is_temporary: bool = False) -> None:
        self.shape, self.name, self.is_temporary = shape, name, is_temporary

    def like(self, name: str, is_temporary: bool) -> Storage:
        """Make another storage of the same shape."""
        return Storage(self.shape, name, is_temporary)

    def __repr__(self) -> str:
        return f"{self.name}{list(self.shape)}"


class Stack:
    """Numbers that are read in the opposite order in which they were kept.

    Attributes
    ----------
    capacity : int
        A run ends that keeps more.
    """

    __slots__ = ("capacity",)

    def __init__(self) -> None:
        self.capacity = 0


# Iterations of a loop for which stacks have room, if their number is unknown.
MANY = 1 << 17
Variable = Cell | Storage
Number = Cell | float


@dataclass(frozen=True, slots=True)
class Affine:
    """A sum of cells, which hold integers, each times a number, and of a constant."""

    terms: tuple[tuple[Cell, int], ...]
    constant: int = 0

    @property
    def cells(self) -> list[Cell]:
        return [cell for cell, _ in self.terms]

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """Return the sum with another one times a number."""
        result = dict(self.terms)
        for cell, n in other.terms:
            result[cell] = result.get(cell, 0) + factor * n
        terms = tuple((cell, n) for cell, n in result.items() if n)
        return Affine(terms, self.constant + factor * other.constant)

    @classmethod
    def of(cls, x: Number | Affine) -> Affine:
        """Convert an index to a sum."""
        if isinstance(x, Affine):
            return x
        return cls(((x, 1),)) if isinstance(x, Cell) else cls((), int(x))


Index = Cell | float | Affine
Indices = tuple[Index, ...]


@dataclass(slots=True, eq=False)
class Statement:
    """Statement; abstract."""


@dataclass(slots=True, eq=False)
class Compute(Statement):
    """``out = function(*arguments)``."""

    out: Cell
    function: ScalarFunction
    arguments: tuple[Number, ...]


@dataclass(slots=True, eq=False)
class Add(Statement):
    """``out = out + value``; several may be added in another order."""

    out: Cell
    value: Number


@dataclass(slots=True, eq=False)
class Load(Statement):
    """``out = array[indices]``; indices are counted from 0, one for each axis."""

    out: Cell
    array: Storage
    indices: Indices


@dataclass(slots=True, eq=False)
class Store(Statement):
    """``array[indices] = value``; with a `log` the index and the earlier value are kept."""

    array: Storage
    indices: Indices
    value: Number
    log: Stack | None = None


@dataclass(slots=True, eq=False)
class AddAt(Statement):
    """``array[indices] += value``; several may be added in another order."""

    array: Storage
    indices: Indices
    value: Number


@dataclass(slots=True, eq=False)
class Fill(Statement):
    """``array[...] = value``, of a number or of another array of the shape."""

    array: Storage
    value: Storage | float


@dataclass(slots=True, eq=False)
class Declare(Statement):
    """A new variable: a cell is unset; elements are nan if the array is not temporary."""

    variable: Variable


@dataclass(slots=True, eq=False)
class Increment(Statement):
    """``total += term``: the total of a procedure, which no other statement reads."""

    term: Number


@dataclass(slots=True, eq=False)
class End(Statement):
    """The run ends."""


@dataclass(slots=True, eq=False)
class For(Statement):
    """``for index in lower, ..., upper``, or from `upper` down to `lower`; `most` times at most."""

    index: Cell
    lower: Number
    upper: Number
    body: list[Statement]
    backwards: bool = False
    most: int = MANY


@dataclass(slots=True, eq=False)
class While(Statement):
    """Run `body` as long as `holds` is not 0 after `condition`."""

    condition: list[Statement]
    holds: Number
    body: list[Statement]


@dataclass(slots=True, eq=False)
class If(Statement):
    """`yes` if `holds` is not 0, else `no`."""

    holds: Number
    yes: list[Statement]
    no: list[Statement] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Push(Statement):
    """Keep the values of cells."""

    stack: Stack
    cells: Sequence[Cell]


@dataclass(slots=True, eq=False)
class Pop(Statement):
    """Give cells the values that were kept last."""

    stack: Stack
    cells: Sequence[Cell]


@dataclass(slots=True, eq=False)
class Recall(Statement):
    """Give cells values of a stack, in the order in which they were kept, from a cursor on."""

    stack: Stack
    cursor: Cell
    cells: Sequence[Cell]


@dataclass(slots=True, eq=False)
class Release(Statement):
    """Forget what a stack has beyond a mark."""

    stack: Stack
    mark: Cell


@dataclass(slots=True, eq=False)
class Mark(Statement):
    """``out`` becomes the number of values on a stack."""

    out: Cell
    stack: Stack


@dataclass(slots=True, eq=False)
class Undo(Statement):
    """Take back the assignments to an array that its log has beyond a mark; without one, the
    last.
    """

    array: Storage
    log: Stack
    mark: Cell | None = None


def size_of(x: Storage) -> int:
    """Return the number of elements of an array."""
    return math.prod(x.shape)


# The fields of statements that are lists of statements.
_BODIES = ("condition", "body", "yes", "no")
# The names of methods for statements.
_NAMES = {"AddAt": "add_at", "For": "loop", "While": "while_loop", "If": "branch"}


def name_of(statement: Statement) -> str:
    """Return the name of a method for a statement."""
    kind = type(statement).__name__
    return _NAMES.get(kind, kind.lower())


def bodies(statement: Statement) -> Iterator[list[Statement]]:
    """Yield the lists of statements in a statement."""
    for name in _BODIES:
        result = getattr(statement, name, None)
        if result is not None:
            yield result


def mapped(
    statement: Statement, function: Callable[[list[Statement]], list[Statement]]
) -> Statement:
    """Replace the bodies of a statement by a function of them."""
    names = [name for name in _BODIES if hasattr(statement, name)]
    if not names:
        return statement
    return replace(statement, **{name: function(getattr(statement, name)) for name in names})


def walk(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements, also those in bodies."""
    for statement in statements:
        yield statement
        for body in bodies(statement):
            yield from walk(body)


def _parts(values: Iterable[object]) -> Iterator[object]:
    """Yield the cells of indices, and all else."""
    for x in values:
        if isinstance(x, Affine):
            yield from x.cells
        else:
            yield x


def variables(statements: Iterable[Statement]) -> Iterator[Variable | Stack]:
    """Yield all variables and stacks, some of them several times."""
    for statement in walk(statements):
        for part in fields(statement):
            result = getattr(statement, part.name)
            for x in _parts(result if isinstance(result, (list, tuple)) else (result,)):
                if isinstance(x, (Cell, Storage, Stack)):
                    yield x


def assigned(statements: Iterable[Statement]) -> set[Variable]:
    """Return the variables to which statements assign."""
    result: set[Variable] = set()
    for statement in walk(statements):
        if isinstance(statement, (Compute, Load, Add)):
            result.add(statement.out)
        elif isinstance(statement, (Store, AddAt, Fill)):
            result.add(statement.array)
        elif isinstance(statement, Declare):
            result.add(statement.variable)
        elif isinstance(statement, For):
            result.add(statement.index)
        elif isinstance(statement, (Pop, Recall)):
            result.update(statement.cells)
    return result


def declared(statements: Iterable[Statement]) -> set[Variable]:
    """Return the variables that are declared in statements."""
    return {statement.variable for statement in walk(statements) if isinstance(statement, Declare)}


def reads(statements: Iterable[Statement]) -> set[Variable]:
    """Return the variables that statements read."""
    result: set[object] = set()
    for statement in walk(statements):
        if isinstance(statement, Compute):
            result.update(statement.arguments)
        elif isinstance(statement, Load):
            result.update((statement.array, *_parts(statement.indices)))
        elif isinstance(statement, (Store, AddAt)):
            result.update((*_parts(statement.indices), statement.value))
        elif isinstance(statement, (Add, Fill)):
            result.add(statement.value)
        elif isinstance(statement, Increment):
            result.add(statement.term)
        elif isinstance(statement, For):
            result.update((statement.lower, statement.upper))
        elif isinstance(statement, (While, If)):
            result.add(statement.holds)
    return {x for x in result if isinstance(x, (Cell, Storage))}
