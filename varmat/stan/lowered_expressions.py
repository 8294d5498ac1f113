"""Expressions of Stan programs as statements over numbers.

A scalar is a number of Python or a cell. Any other value is its sizes and what writes the
statements of an element (`Elements`): nothing is computed until an element is wanted. Integers are
constants of Python as far as data decide, and cells with bounds otherwise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from varmat.core.elementwise import ROWS as ELEMENTWISE
from varmat.core.elementwise import Elementwise
from varmat.programs.build.scalar_functions import ADD, MULTIPLY, SAME, ScalarFunction
from varmat.programs.ir import statements as ir
from varmat.programs.ir.statements import Cell, Number, Statement, Storage
from varmat.stan import operators, types
from varmat.stan import syntax as s
from varmat.stan.translate import Expressions
from varmat.stan.types import Type
from varmat.stan.values import MATRICES, ROWS, SCALARS, VECTORS, innermost
from varmat.stan.vectorized_expressions import BoundError

Bounds = tuple[int, int]


@dataclass
class Elements:
    """A value that is not a number.

    Attributes
    ----------
    shape : tuple of Number
    most : tuple of int
        The sizes are at most these.
    at : callable
        From indices, which begin with 0, to a number; it writes the statements that make it.
    buffer : Storage, optional
        Where the elements lie, if this is a whole array.
    is_view : bool
        Whether an element only has to be loaded.
    bounds : tuple of int, optional
        Between which the elements lie, if they are integers.
    places : callable, optional
        For a part of an array: from its indices to indices of the array.
    """

    shape: tuple[Number, ...]
    most: tuple[int, ...]
    at: Callable[..., Number]
    buffer: Storage | None = None
    is_view: bool = False
    bounds: Bounds | None = None
    places: Callable[..., tuple[Number, ...]] | None = None


Lowered = Number | Elements


# --- functions of numbers ---


SUBTRACT, DIVIDE = (ScalarFunction(f, 2) for f in (np.subtract, np.divide))
MAXIMUM, MINIMUM = (ScalarFunction(f, 2) for f in (np.maximum, np.minimum))
NEGATIVE, SQUARE = (ScalarFunction(f, 1) for f in (np.negative, np.square))


def of_row(row: Elementwise) -> ScalarFunction:
    """Make a function from a row of the elementwise table; its derivatives may use its value."""
    slopes = [lambda *x, f=f: f(1.0, *x) for f in row.pushes]
    return ScalarFunction(row, row.arity, is_expensive=True, slopes=slopes)


# As how many expressions one counts that gives an array of another size.
OF_OTHER_SIZE = 200
EXP, LOG, POWER = (of_row(ELEMENTWISE[name]) for name in ("exp", "log", "power"))
# Whole numbers, whose quotients of less than 2**53 are exact.
QUOTIENT = ScalarFunction(lambda x, y: np.trunc(x / y), 2, is_discrete=True)
REMAINDER = ScalarFunction(lambda x, y: x - y * np.trunc(x / y), 2, is_discrete=True)
_COMPARISONS = {
    name: ScalarFunction(lambda x, y, f=f: f(x, y) * 1.0, 2, is_discrete=True)
    for name, f in {
        "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
        "==": np.equal, "!=": np.not_equal,
    }.items()
}  # fmt: skip
# Functions of integers that are extreme where the arguments are.
_OF_INTEGERS: dict[ScalarFunction, Callable[[int, int], int]] = {
    ADD: int.__add__, SUBTRACT: int.__sub__, MULTIPLY: int.__mul__, MAXIMUM: max, MINIMUM: min,
}  # fmt: skip
_NOT = ScalarFunction(lambda x: np.equal(x, 0.0) * 1.0, 1, is_discrete=True)
_ARITHMETIC = {
    "+": ADD, "-": SUBTRACT, "*": MULTIPLY, ".*": MULTIPLY, "/": DIVIDE, "./": DIVIDE, "^": POWER,
    ".^": POWER,
}  # fmt: skip


class LoweredExpressions(ABC):
    """Writes the statements of expressions; abstract.

    Attributes
    ----------
    block : list of Statement
        Where statements go.
    env : dict
        The values of variables by name.
    """

    def __init__(self, translator: Expressions, propto: bool) -> None:
        self.translator, self.propto = translator, propto
        self.block: list[Statement] = []
        self.env: dict[str, Lowered] = {}
        self._bounds: dict[Cell, Bounds] = {}
        # Integers that are sums of others.
        self._affine: dict[Cell, ir.Affine] = {}
        # Functions of the program that are being written.
        self._calls: list[s.FunctionDefinition] = []
        self.in_block = translator.in_block
        # The position of the statement or expression that is written now.
        self.at = s.Position("", 0, 0)
        # How often the statements run that are written now, and how many expressions all of them
        # evaluate.
        self.times, self.operations = 1, 0

    # --- statements ---

    def write(self, statement: Statement) -> None:
        self.block.append(statement)

    @contextmanager
    def having(self, **attributes: object) -> Iterator[None]:
        """Give attributes other values for a while."""
        before = {name: getattr(self, name) for name in attributes}
        self.__dict__.update(attributes)
        yield
        self.__dict__.update(before)

    @contextmanager
    def inside(self, block: list[Statement]) -> Iterator[list[Statement]]:
        """Write into another block, with separate names."""
        with self.having(block=block, env={**self.env}):
            yield block

    def apply(self, function: ScalarFunction, *x: Number) -> Number:
        """Apply a function to numbers, now if these are known."""
        if not any(isinstance(item, Cell) for item in x):
            with np.errstate(all="ignore"):
                return float(function.function(*[np.float64(item) for item in x]))  # type: ignore[arg-type]
        out = Cell()
        self.write(ir.Compute(out, function, x))
        return out

    def integer(self, function: ScalarFunction, *x: Number) -> Number:
        """Apply a function to integers, and track the bounds of the result."""
        result = self.apply(function, *x)
        if not isinstance(result, Cell):
            return int(result)
        if function in (ADD, SUBTRACT):
            left, right = (
                (isinstance(item, Cell) and self._affine.get(item)) or ir.Affine.of(item)
                for item in x
            )
            self._affine[result] = left.plus(right, 1 if function is ADD else -1)
        ends = [self.bounds(item) for item in x]
        if None not in ends and function in _OF_INTEGERS:
            (a, b), (c, d) = ends  # type: ignore[misc]
            every = [_OF_INTEGERS[function](p, q) for p in (a, b) for q in (c, d)]
            self._bounds[result] = min(every), max(every)
        return result

    def places(self, indices: Sequence[Number]) -> ir.Indices:
        """Return indices of elements, with their constant parts separate."""
        return tuple(self._affine.get(i, i) if isinstance(i, Cell) else i for i in indices)

    def bounds(self, x: Number) -> Bounds | None:
        """Return the bounds of an integer, if they are known."""
        if isinstance(x, Cell):
            return self._bounds.get(x)
        return int(x), int(x)

    def limit(self, size: Number, what: str, at: s.Position) -> int:
        """Return an upper limit of a size."""
        ends = self.bounds(size)
        if ends is None:
            raise BoundError(f"it is unknown how large {what} becomes", at)
        return max(ends[1], 0)

    def end_unless(self, holds: Number) -> None:
        """End the run where a condition does not hold."""
        if not isinstance(holds, Cell):
            if not holds:
                raise BoundError("a value is refused", self.at)
            return
        self.write(ir.If(holds, [], [ir.End()]))

    def compare(self, operator: str, x: Number, y: Number) -> Number:
        return self.apply(_COMPARISONS[operator], x, y)

    def variable_cell(self, name: str, value: Number, is_integer: bool = False) -> Cell:
        """Declare a cell that is assigned repeatedly."""
        cell = Cell(name, False, is_integer)
        self.write(ir.Declare(cell))
        self.write(ir.Compute(cell, SAME, (value,)))
        return cell

    def temporary(self, shape: tuple[int, ...], name: str) -> Storage:
        """Declare an array whose elements are assigned once each."""
        buffer = Storage(shape, name, is_temporary=True)
        self.write(ir.Declare(buffer))
        return buffer

    def each(self, x: Elements, body: Callable[..., None]) -> None:
        """Write a loop over the elements of a shape; over one or a few of them a line."""
        self._each([*zip(x.shape, x.most, strict=True)], [], body)

    def _each(
        self, sizes: Sequence[tuple[Number, int]], at: list[Number], body: Callable[..., None]
    ) -> None:
        if not sizes:
            body(*at)
            return
        (n, most), *others = sizes
        if not isinstance(n, Cell) and n == 1:
            self._each(others, [*at, 0], body)
            return
        i, last = Cell("i", is_integer=True), self.integer(SUBTRACT, n, 1)
        self._bounds[i] = 0, most - 1
        with self.inside([]) as inner:
            self._each(others, [*at, i], body)
        self.write(ir.For(i, 0, last, inner, most=most))

    def stored(self, x: Elements) -> Elements:
        """Return elements that are stored in an array, copied if necessary."""
        if x.is_view:
            return x
        return self.copied(x)

    def copied(self, x: Elements) -> Elements:
        """Copy elements into a separate array."""
        buffer = self.temporary(x.most, "copy")
        self.copy(buffer, x)
        return self.array(buffer, x.shape, x.bounds)

    def copy(
        self, to: Storage, x: Lowered, indices: Callable[..., Sequence[Number]] | None = None
    ) -> None:
        """Write the elements of a value into an array; at other places, given by their indices."""

        def put(*i: Number) -> None:
            value = x.at(*i) if isinstance(x, Elements) else x
            self.write(ir.Store(to, self.places(indices(*i) if indices else i), value))

        if isinstance(x, Elements):
            self.each(x, put)
        else:
            put()

    def array(
        self, buffer: Storage, shape: tuple[Number, ...], bounds: Bounds | None = None
    ) -> Elements:
        """Return the elements of an array."""

        def at(*indices: Number) -> Number:
            out = Cell()
            self.write(ir.Load(out, buffer, self.places(indices)))
            if bounds is not None:
                self._bounds[out] = bounds
            return out

        return Elements(shape, buffer.shape, at, buffer, True, bounds)

    # --- reductions ---

    def total(self, x: Elements, function: Callable[..., Number] | None = None) -> Number:
        """Sum the elements, or a function of the indices."""
        total = self.variable_cell("sum", 0.0)

        def add(*i: Number) -> None:
            term = x.at(*i) if function is None else function(*i)
            self.write(ir.Add(total, term))

        self.each(x, add)
        return self.apply(_RESULT, total)

    def extreme(self, x: Elements, function: ScalarFunction, first: float) -> Number:
        """Find the largest or smallest element."""
        extreme = self.variable_cell("m", first)
        self.each(
            x,
            lambda *i: self.write(
                ir.Compute(extreme, SAME, (self.apply(function, extreme, x.at(*i)),))
            ),
        )
        return self.apply(_RESULT, extreme)

    def log_sum_exp(self, x: Elements) -> Number:
        """Compute the log-sum-exp of the elements, with the weights ``exp(x - max) / sum``."""
        x = self.stored(x)
        most = self.extreme(x, LARGEST, -math.inf)
        total = self.total(x, lambda *i: self.apply(EXP, self.apply(SUBTRACT, x.at(*i), most)))
        return self.apply(ADD, most, self.apply(LOG, total))

    # --- expressions ---

    def number(self, e: s.Expression) -> Number:
        """Lower a scalar expression."""
        if e.type not in SCALARS or e.type == types.COMPLEX:
            raise BoundError(f"a {e.type} is not a number", e.at)
        result = self.expression(e)
        assert not isinstance(result, Elements)
        return result

    def elements(self, e: s.Expression) -> Elements:
        result = self.expression(e)
        if not isinstance(result, Elements):
            raise BoundError(f"a {e.type} has no elements", e.at)
        return result

    def expression(self, e: s.Expression) -> Lowered:
        name = _EXPRESSIONS.get(type(e))
        kind = innermost(e.type)
        if name is None or kind not in NUMBERS:
            raise BoundError(f"a loop has a {e.type} in it", e.at)
        self.at = e.at
        self.operations += self.times
        result: Lowered = getattr(self, name)(e)
        if isinstance(result, Elements) and any(isinstance(n, Cell) for n in result.shape):
            # Iterations with arrays of other sizes differ.
            self.operations += OF_OTHER_SIZE * min(self.times, max(result.most) + 1)
        return result

    def _literal(self, e: s.Number) -> Number:
        return e.value  # type: ignore[return-value]

    def _variable(self, e: s.VariableName) -> Lowered:
        result = self.env.get(e.name)
        if result is None:
            raise BoundError(f"`{e.name}` is not a variable of numbers", e.at)
        return result

    def mapped(self, function: ScalarFunction, *x: Lowered) -> Lowered:
        """Apply a function of numbers to each element."""
        containers = [item for item in x if isinstance(item, Elements)]
        if not containers:
            return self.apply(function, *x)  # type: ignore[arg-type]
        first = containers[0]
        for other in containers[1:]:
            self.same_shape(first, other)

        def at(*i: Number) -> Number:
            return self.apply(
                function, *[item.at(*i) if isinstance(item, Elements) else item for item in x]
            )

        return Elements(first.shape, first.most, at)

    def same_shape(self, x: Elements, y: Elements) -> None:
        if len(x.shape) != len(y.shape):
            raise BoundError("the operands have shapes that differ", self.at)
        for n, m in zip(x.shape, y.shape, strict=True):
            if n is not m:
                self.end_unless(self.compare("==", n, m))

    def _unary(self, e: s.Unary) -> Lowered:
        x = self.expression(e.operand)
        if e.operator == "!":
            return self._whole_number(self.apply(_NOT, x))  # type: ignore[arg-type]
        if e.operator == "'":
            return self._transposed(x)
        if e.operator == "+":
            return x
        if e.type == types.INT:
            return self.integer(SUBTRACT, 0, x)  # type: ignore[arg-type]
        return self.mapped(NEGATIVE, x)

    def _transposed(self, x: Lowered) -> Lowered:
        if not isinstance(x, Elements) or len(x.shape) == 1:
            return x
        return Elements(x.shape[::-1], x.most[::-1], lambda *i: x.at(*i[::-1]), is_view=x.is_view)

    def _whole_number(self, x: Number) -> Number:
        if isinstance(x, Cell):
            self._bounds[x] = 0, 1
            return x
        return int(x)

    def _binary(self, e: s.Binary) -> Lowered:
        if e.operator in ("&&", "||"):
            return self._logical(e)
        left, right = self.expression(e.left), self.expression(e.right)
        kinds = e.left.type, e.right.type
        if e.operator in _COMPARISONS:
            return self._whole_number(self.compare(e.operator, left, right))  # type: ignore[arg-type]
        if kinds == (types.INT, types.INT) and e.type == types.INT:
            return self._integers(e.operator, left, right)  # type: ignore[arg-type]
        if e.operator == "*" and all(isinstance(x, Elements) for x in (left, right)):
            return self._product(left, right, kinds)  # type: ignore[arg-type]
        if e.operator not in _ARITHMETIC or (
            e.operator in ("/", "^") and isinstance(right, Elements) and kinds[1] in MATRICES
        ):
            raise BoundError(f"operator `{e.operator}` does not take numbers", e.at)
        if e.operator == "^" and right in (2, 2.0):
            return self.mapped(SQUARE, left)
        return self.mapped(_ARITHMETIC[e.operator], left, right)

    def _integers(self, operator: str, x: Number, y: Number) -> Number:
        if operator in ("/", "%/%", "%"):
            if not isinstance(x, Cell) and not isinstance(y, Cell):
                function = operators.modulus if operator == "%" else operators.divide_integers
                return function(int(x), int(y))
            self.end_unless(self.compare("!=", y, 0))
            return self.integer(REMAINDER if operator == "%" else QUOTIENT, x, y)
        return self.integer(_ARITHMETIC[operator], x, y)

    def _logical(self, e: s.Binary) -> Number:
        """Lower "and" or "or", whose right side is computed where it decides."""
        certain = float(e.operator == "||")
        left = self.compare("!=", self.number(e.left), 0.0)
        if not isinstance(left, Cell):
            if left == certain:
                return int(certain)
            return self._whole_number(self.compare("!=", self.number(e.right), 0.0))
        out = Cell()
        with self.inside([]) as decides:
            right = self.compare("!=", self.number(e.right), 0.0)
            self.write(ir.Compute(out, SAME, (right,)))
        statements: list[Statement] = [ir.Compute(out, SAME, (certain,))]
        yes, no = (statements, decides) if certain else (decides, statements)
        self.write(ir.If(left, yes, no))
        return self._whole_number(out)

    def _choice(self, e: s.Conditional) -> Lowered:
        holds = self.number(e.condition)
        if not isinstance(holds, Cell):
            return self.expression(e.yes if holds else e.no)
        if e.type not in SCALARS:
            raise BoundError("a choice between arrays", e.at)
        out, sides = Cell(), []
        for item in (e.yes, e.no):
            with self.inside([]) as side:
                x = self.number(item)
                self.write(ir.Compute(out, SAME, (x,)))
            sides.append(side)
        self.write(ir.If(holds, *sides))
        return out

    def _product(self, x: Elements, y: Elements, kinds: tuple[Type, Type]) -> Lowered:
        """Multiply matrices and vectors."""
        if kinds[0] in ROWS and kinds[1] in VECTORS:
            return self._dot(x, y)
        x, y = self.stored(x), self.stored(y)
        if kinds[0] in VECTORS and kinds[1] in ROWS:
            return Elements(
                (*x.shape, *y.shape),
                (*x.most, *y.most),
                lambda i, j: self.apply(MULTIPLY, x.at(i), y.at(j)),
            )
        of_row, of_column = kinds[0] in ROWS, kinds[1] in VECTORS
        inner, n = (x.shape[-1], x.most[-1])
        self.end_unless(self.compare("==", inner, y.shape[0]))
        along = Elements((inner,), (n,), lambda k: k)

        def at(*ij: Number) -> Number:
            i, j = (() if of_row else ij[:1]), (() if of_column else ij[-1:])
            return self.total(along, lambda k: self.apply(MULTIPLY, x.at(*i, k), y.at(k, *j)))

        shape = (*x.shape[:-1], *y.shape[1:])
        return self.stored(Elements(shape, (*x.most[:-1], *y.most[1:]), at))

    def _dot(self, x: Elements, y: Elements) -> Number:
        self.same_shape(x, y)
        return self.total(x, lambda *i: self.apply(MULTIPLY, x.at(*i), y.at(*i)))

    def _row(self, e: s.ArrayExpression | s.RowVectorExpression) -> Elements:
        """Lower `{a, b}` or `[a, b]` into an array."""
        result = [self.expression(element) for element in e.elements]
        first = result[0] if result else None
        inner: tuple[Any, Any] = ((), ())
        if isinstance(first, Elements):
            inner = first.shape, first.most
        buffer = self.temporary((len(result), *inner[1]), "row")
        for k, x in enumerate(result):
            self.copy(buffer, x, lambda *i, k=k: (k, *i))
        return self.array(buffer, (len(result), *inner[0]))

    # --- indices ---

    def _index(self, e: s.Indexed) -> Lowered:
        base = self.elements(e.base)
        result = self.part(base, e.indices)
        return result if result.shape else result.at()

    def part(self, base: Elements, indices: Sequence[s.Expression | s.Range]) -> Elements:
        """Return the elements of a part; indices begin with 0."""
        maps: list[Any] = []
        shape, most = list[Number](), list[int]()
        for axis, i in enumerate(indices):
            n, bound = base.shape[axis], base.most[axis]
            if isinstance(i, s.Range):
                low = 1 if i.lower is None else self.number(i.lower)
                high = n if i.upper is None else self.number(i.upper)
                size, limit = self._between(low, high, n, bound)
                start = self.integer(SUBTRACT, low, 1)
                maps.append(lambda j, start=start: self.integer(ADD, j, start))
                shape.append(size)
                most.append(limit)
            elif i.type == types.INT:
                maps.append(self._within(self.number(i), n))
            else:
                of = self.elements(i)
                maps.append(lambda j, of=of, n=n: self._within(of.at(j), n))
                shape.append(of.shape[0])
                most.append(of.most[0])
        outer = base.places
        shape += base.shape[len(indices) :]
        most += base.most[len(indices) :]

        def places(*args: Number) -> tuple[Number, ...]:
            left = [*args]
            result = [x(left.pop(0)) if callable(x) else x for x in maps]
            return (*result, *left)

        return Elements(
            tuple(shape),
            tuple(most),
            lambda *i: base.at(*places(*i)),
            is_view=base.is_view,
            bounds=base.bounds,
            places=places if outer is None else lambda *i: outer(*places(*i)),
        )

    def _within(self, index: Number, n: Number) -> Number:
        """Convert an index of Stan to begin with 0, if it is valid; else the run ends."""
        ends, most = self.bounds(index), self.bounds(n)
        inside = ends is not None and most is not None and ends[0] >= 1 and ends[1] <= most[0]
        if not inside:
            self.end_unless(self.apply(_WITHIN, index, n))
        return self.integer(SUBTRACT, index, 1)

    def _between(self, low: Number, high: Number, n: Number, bound: int) -> tuple[Number, int]:
        """Return the size of a range, and its upper limit."""
        size = self.integer(ADD, self.integer(SUBTRACT, high, low), 1)
        size, ends = self.integer(MAXIMUM, size, 0), self.bounds(size)
        limit = bound if ends is None else max(0, min(bound, ends[1]))
        if isinstance(size, Cell):
            self._bounds[size] = 0, limit
        if size != 0 and (low != 1 or high is not n):
            fits = self.apply(_FITS, low, high, n)
            self.end_unless(fits)
        return size, limit

    @abstractmethod
    def call(self, e: s.Call) -> Lowered:
        """Lower a call of a function."""


# Keeps the result of a loop, so that the loop does not run again.
_RESULT = ScalarFunction(lambda x: x, 1, is_expensive=True)
# The largest number as one that does not depend on any.
LARGEST = ScalarFunction(np.maximum, 2, is_discrete=True)
# Whether a range that is not empty, or a number of elements from one on, fit in an array.
_FITS = ScalarFunction(
    lambda low, high, n: (
        np.logical_or(
            np.less(high, low), np.logical_and(np.greater_equal(low, 1.0), np.less_equal(high, n))
        )
        * 1.0
    ),
    3,
    is_discrete=True,
)
_WITHIN = ScalarFunction(
    lambda i, n: np.logical_and(np.greater_equal(i, 1.0), np.less_equal(i, n)) * 1.0,
    2,
    is_discrete=True,
)
NUMBERS = frozenset({types.INT, types.REAL, types.VECTOR, types.ROW_VECTOR, types.MATRIX})
# The names of methods.
_EXPRESSIONS: dict[type, str] = {
    s.Number: "_literal",
    s.VariableName: "_variable",
    s.Unary: "_unary",
    s.Binary: "_binary",
    s.Indexed: "_index",
    s.Call: "call",
    s.Conditional: "_choice",
    s.ArrayExpression: "_row",
    s.RowVectorExpression: "_row",
}
