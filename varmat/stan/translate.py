"""Evaluate the expressions of Stan programs.

A translator makes functions of syntax trees once: of each expression and statement a function of
a frame, a list with the state of the run in front and a place for each variable. So names of a
program are resolved before anything runs, and the evaluation itself looks nothing up. Run once
while varmat records, it leaves a program of whole-array steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.matvar import to_varmat
from varmat.stan import functions, operators, types
from varmat.stan import syntax as s
from varmat.stan.running import Evaluation, Executed, Frame, StanEvaluated
from varmat.stan.types import ArrayType, Type
from varmat.stan.values import (
    MATRICES,
    SCALARS,
    StanValue,
    innermost,
    promotion,
    read,
    stacked,
    unset,
)


class Routine:
    """A function of a program.

    Its body is translated when it is first called, so functions may call each other.
    """

    def __init__(self, definition: s.FunctionDefinition, translator: Expressions) -> None:
        self.definition = definition
        self._translator = translator
        self._body: Executed | None = None
        self._size = 0
        name = definition.name
        # A density that is called by its own name keeps all its terms.
        self.keeps = name.endswith(("_lpdf", "_lpmf"))

    def __call__(self, run: Evaluation, arguments: Sequence[StanValue]) -> StanValue:
        if self._body is None:
            self.translate()
        frame = [run, *arguments, *[None] * self._size]
        assert self._body is not None
        result = self._body(frame)
        return result[0] if type(result) is tuple else None

    def with_all_terms(self, run: Evaluation, arguments: Sequence[object]) -> StanValue:
        """Evaluate a density that drops no constants."""
        before, run.propto = run.propto, False
        try:
            return self(run, arguments)
        finally:
            run.propto = before

    def translate(self) -> None:
        """Translate the body, which happens once."""
        definition, inner = self.definition, self._translator.for_function(self.definition)
        assert definition.body is not None
        for argument in definition.arguments:
            inner.declare(argument.name, argument.type)
        first = inner.size
        self._body = inner.body(definition.body)
        self._size = inner.size - first


class Expressions(ABC):
    """Makes functions of the expressions of a program; abstract.

    Parameters
    ----------
    routines : dict of FunctionDefinition to Routine
        The functions of the program; those that are met are added.
    written : set of str
        The variables into which elements are assigned.
    result : Type or None
        The result type of the function whose body is translated.
    matvars : set of str
        The variables that have a variable for each element.

    Attributes
    ----------
    size : int
        The number of places in a frame.
    """

    def __init__(
        self,
        routines: dict[s.FunctionDefinition, Routine],
        written: set[str],
        result: Type | None = None,
        matvars: Collection[str] = (),
    ) -> None:
        self._routines, self._written, self._result = routines, written, result
        self.matvars, self.in_block = matvars, True
        self._scopes: list[dict[str, tuple[int, Type]]] = [{}]
        self.size = 1

    def of_variables(self, arguments: Sequence[s.Expression]) -> list[bool]:
        """Tell which arguments of a density Stan treats as variables, whatever their values are in
        a run: else its terms would differ between branches. Calls of a function may differ in that.
        """
        return [
            self.in_block and not e.data and types.innermost(e.type) != types.INT for e in arguments
        ]

    # --- names ---

    def declare(self, name: str, kind: Type) -> int:
        """Assign a slot to a new variable, and return it."""
        self._scopes[-1][name] = self.size, kind
        self.size += 1
        return self.size - 1

    def place(self, name: str) -> tuple[int, Type]:
        """Return the slot of a variable in a frame, and its type."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise KeyError(name)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope; variables declared inside end with it."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def routine(self, definition: s.FunctionDefinition) -> Routine:
        """Return the routine of a definition."""
        if definition not in self._routines:
            self._routines[definition] = Routine(definition, self)
        return self._routines[definition]

    @abstractmethod
    def for_function(self, definition: s.FunctionDefinition) -> Expressions:
        """Make a translator for the body of a function."""

    @abstractmethod
    def body(self, statements: Sequence[s.Statement]) -> Executed:
        """Translate statements in sequence, in a separate scope."""

    # --- declared types ---

    def shape(self, declared_type: s.SizedType) -> Callable[[Frame], tuple[int, ...]] | None:
        """Translate the shape of a declared container; return None if it contains tuples."""
        if declared_type.name == "tuple":
            return None
        parts = [*map(self.expression, (*declared_type.dimensions, *declared_type.sizes))]
        square = innermost(declared_type.unsized) in MATRICES and len(declared_type.sizes) == 1

        def shape(f: Frame) -> tuple[int, ...]:
            sizes = [part(f) for part in parts]
            for size in sizes:
                if size < 0:
                    raise DomainError(f"a size is {size}, but must not be negative!")
            return (*sizes, sizes[-1]) if square else tuple(sizes)

        return shape

    def unset(self, declared_type: s.SizedType) -> StanEvaluated:
        """Translate the value of a variable before it is assigned."""
        kind = declared_type.unsized
        shape = self.shape(declared_type)
        if shape is not None:
            return lambda f: unset(kind, shape(f))
        parts = [*map(self.unset, declared_type.elements)]
        sizes = [*map(self.expression, declared_type.dimensions)]

        def nested(f: Frame, counts: Sequence[int]) -> StanValue:
            if counts:
                return [nested(f, counts[1:]) for _ in range(counts[0])]
            return tuple([part(f) for part in parts])

        return lambda f: nested(f, [size(f) for size in sizes])

    # --- expressions ---

    def expression(self, e: s.Expression) -> StanEvaluated:
        """Translate an expression into the function that evaluates it."""
        return _EXPRESSIONS[type(e)](self, e)

    def promoted(self, e: s.Expression, kind: Type) -> StanEvaluated:
        """Translate an expression whose value is promoted to a type."""
        evaluate, promote = self.expression(e), promotion(e.type, kind)
        if promote is None:
            return evaluate
        if isinstance(e, s.Number):
            constant = promote(e.value)
            return lambda f: constant
        return lambda f: promote(evaluate(f))

    def number(self, e: s.Number) -> StanEvaluated:
        value = e.value
        return lambda f: value

    def variable(self, e: s.VariableName) -> StanEvaluated:
        if isinstance(e.type, types.FunctionType):
            assert e.definition is not None
            call, arguments = self._called(e.name, e.definition), e.definition.arguments
            return lambda f: functions.Passed(call, arguments, f[0])
        place, kind = self.place(e.name)
        if not (e.name in self._written or e.name in self.matvars) or kind in SCALARS:
            return lambda f: f[place]

        def shared(f: Frame) -> StanValue:
            x = f[place]
            if type(x) is np.ndarray:  # from now on an assignment to an element makes a copy
                x.flags.writeable = False
            return to_varmat(x)

        return shared

    def unshared(self, e: s.Expression) -> StanEvaluated:
        """Translate an expression whose elements are read or written one by one."""
        if not isinstance(e, s.VariableName):
            return self.expression(e)
        place, _ = self.place(e.name)
        return lambda f: f[place]

    def may_share(self, e: s.Expression) -> bool:
        """Tell whether the value may be, or be part of, a variable whose elements are assigned."""
        if isinstance(e, s.VariableName):
            return e.name in self._written
        parts: list[Any] = [getattr(e, name, None) for name in ("base", "operand", "yes", "no")]
        parts += getattr(e, "arguments", [])
        return any(self.may_share(part) for part in parts if part is not None)

    def unary(self, e: s.Unary) -> StanEvaluated:
        operand = self.expression(e.operand)
        if e.operator == "-":
            if isinstance(e.operand, s.Number):
                constant = -e.operand.value
                return lambda f: constant
            return lambda f: -operand(f)
        if e.operator == "+":
            return operand
        change = operators.negated if e.operator == "!" else operators.transposed(e.operand.type)
        return lambda f: change(operand(f))

    def binary(self, e: s.Binary) -> StanEvaluated:
        chain = s.in_a_row(e)
        first = self.expression(chain[0].left)
        steps = [*map(self._operation, chain)]
        if len(steps) == 1:
            (only,) = steps
            return lambda f: only(f, first(f))

        def run(f: Frame) -> StanValue:
            x = first(f)
            for step in steps:
                x = step(f, x)
            return x

        return run

    def _operation(self, e: s.Binary) -> Callable[[Frame, StanValue], StanValue]:
        """Return the function of a frame and the value on the left of an operator."""
        right = self.expression(e.right)
        if e.operator == "&&":
            return lambda f, x: int(bool(x) and bool(right(f)))
        if e.operator == "||":
            return lambda f, x: int(bool(x) or bool(right(f)))
        function = operators.binary(e.operator, e.left.type, e.right.type)
        return lambda f, x: function(x, right(f))

    def conditional(self, e: s.Conditional) -> StanEvaluated:
        condition = self.expression(e.condition)
        yes, no = self.promoted(e.yes, e.type), self.promoted(e.no, e.type)

        def choose(f: Frame) -> StanValue:
            result = condition(f)
            if type(result) is int or e.type not in SCALARS:
                return yes(f) if result else no(f)
            return np.where(result, yes(f), no(f))

        return choose

    def indices(
        self, indices: Sequence[s.Expression | s.Range]
    ) -> Callable[[Frame], tuple[StanValue, ...]]:
        """Translate the indices of an element or part."""
        parts = [*map(self._index, indices)]
        if len(parts) == 1:
            (only,) = parts
            return lambda f: (only(f),)
        if len(parts) == 2:
            first, second = parts
            return lambda f: (first(f), second(f))
        return lambda f: tuple([part(f) for part in parts])

    def _index(self, index: s.Expression | s.Range) -> StanEvaluated:
        if isinstance(index, s.Expression):
            return self.expression(index)
        lower = _nothing if index.lower is None else self.expression(index.lower)
        upper = _nothing if index.upper is None else self.expression(index.upper)
        return lambda f: slice(lower(f), upper(f))

    def index(self, e: s.Indexed) -> StanEvaluated:
        base = self.unshared(e.base) if e.type in SCALARS else self.expression(e.base)
        indices = self.indices(e.indices)
        return lambda f: read(base(f), indices(f))

    def projection(self, e: s.Projection) -> StanEvaluated:
        base, place = self.expression(e.base), e.number - 1
        return lambda f: base(f)[place]

    def array(self, e: s.ArrayExpression) -> StanEvaluated:
        assert isinstance(e.type, ArrayType)
        kind = e.type
        parts = [self.promoted(element, kind.element) for element in e.elements]
        return lambda f: stacked([part(f) for part in parts], kind)

    def row_vector(self, e: s.RowVectorExpression) -> StanEvaluated:
        kind = e.type
        parts = [self.expression(element) for element in e.elements]
        return lambda f: stacked([part(f) for part in parts], kind)

    def tuple(self, e: s.TupleExpression) -> StanEvaluated:
        parts = [*map(self.expression, e.elements)]
        return lambda f: tuple([part(f) for part in parts])

    def call(self, e: s.Call) -> StanEvaluated:
        if e.name == "target":
            return lambda f: f[0].target()
        if e.definition is not None:
            return self._call_of_routine(e, e.definition)
        arguments = [self.expression(argument) for argument in e.arguments]
        function = functions.library(
            e.name,
            tuple(argument.type for argument in e.arguments),
            e.type,
            self.of_variables(e.arguments),
        )
        if len(arguments) == 1:
            (only,) = arguments
            return lambda f: function(f[0], only(f))
        return lambda f: function(f[0], *[argument(f) for argument in arguments])

    def _call_of_routine(self, e: s.Call, definition: s.FunctionDefinition) -> StanEvaluated:
        call, arguments = self._called(e.name, definition), self._arguments(e.arguments, definition)
        return lambda f: call(f[0], [argument(f) for argument in arguments])

    def _called(self, name: str, definition: s.FunctionDefinition) -> functions.StanFunction:
        """Find a function of the program; called by its own name, it keeps all its terms."""
        routine = self.routine(definition)
        return routine.with_all_terms if routine.keeps and name == definition.name else routine

    def _arguments(
        self, arguments: Sequence[s.Expression], definition: s.FunctionDefinition
    ) -> list[StanEvaluated]:
        return [
            self.promoted(x, argument.type)
            for x, argument in zip(arguments, definition.arguments, strict=True)
        ]


def _nothing(f: Frame) -> None:
    """Return None, for the end of a range that is not given."""


_EXPRESSIONS: dict[type, Callable[[Expressions, Any], StanEvaluated]] = {
    s.Number: Expressions.number,
    s.VariableName: Expressions.variable,
    s.Unary: Expressions.unary,
    s.Binary: Expressions.binary,
    s.Conditional: Expressions.conditional,
    s.Indexed: Expressions.index,
    s.Projection: Expressions.projection,
    s.ArrayExpression: Expressions.array,
    s.RowVectorExpression: Expressions.row_vector,
    s.TupleExpression: Expressions.tuple,
    s.Call: Expressions.call,
}
