"""Evaluate the statements and functions of Stan programs.

See `varmat.stan.translate` for how names are resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.tape import current_tape
from varmat.stan import functions, types
from varmat.stan import syntax as s
from varmat.stan.loops import Tracing, lowered_loop
from varmat.stan.recurrences import scanned
from varmat.stan.running import (
    BREAK,
    CONTINUE,
    Executed,
    FatalError,
    Frame,
    Setter,
    StanEvaluated,
    group_alike,
    in_sequence,
    proportional,
)
from varmat.stan.translate import Expressions, Routine
from varmat.stan.types import ArrayType, Tuple, Type
from varmat.stan.values import (
    MATRICES,
    SCALARS,
    StanValue,
    by_element,
    innermost,
    owned,
    scalar,
    shape_of,
    write,
)
from varmat.stan.vectorized import FEW, are_apart, declared_in, vectorized
from varmat.stan.vectorized_expressions import BoundError


class Translator(Expressions):
    """Makes functions of the parts of a program; see `Expressions` for other parameters.

    Parameters
    ----------
    matvars : dict of FunctionDefinition or None to set of str
        The variables with a variable for each element, of functions, and of blocks at None.

    Attributes
    ----------
    loops : list of tuple of For and BoundError or None
        The loops that were translated, also in functions, and why their iterations run one by one.
    scanned : list of For
        Those that recordings make one scan of.
    tracing : Tracing
    following : list of sequences of Statement
        What comes after the statement that is translated.
    lasting : set of str
        Variables that are read when all statements have run.
    """

    def __init__(
        self,
        routines: dict[s.FunctionDefinition, Routine],
        written: set[str],
        matvars: Mapping[s.FunctionDefinition | None, set[str]] | None = None,
        function: s.FunctionDefinition | None = None,
    ) -> None:
        self._matvars_by_function = matvars or {}
        own = self._matvars_by_function.get(function, set())
        super().__init__(routines, written, function.result if function else None, own)
        self.in_block = function is None
        self.loops: list[tuple[s.For, BoundError | None]] = []
        self.scanned: list[s.For] = []
        self.tracing = Tracing()
        self.following: list[Sequence[s.Statement]] = []
        self.lasting: set[str] = set()

    def for_function(self, definition: s.FunctionDefinition) -> Translator:
        """Make a translator for the body of a function."""
        assert definition.body is not None
        written = written_in(definition.body)
        inner = Translator(self._routines, written, self._matvars_by_function, definition)
        inner.loops, inner.scanned, inner.tracing = self.loops, self.scanned, self.tracing
        return inner

    # --- statements ---

    def statement(self, statement: s.Statement) -> Executed:
        """Translate a statement into the function that runs it."""
        return _STATEMENTS[type(statement)](self, statement)

    def body(self, statements: Sequence[s.Statement]) -> Executed:
        """Translate statements in sequence, in a separate scope."""
        with self.scope():
            return self.sequence(statements)

    def sequence(self, statements: Sequence[s.Statement]) -> Executed:
        """Translate statements in sequence."""
        steps = []
        for k, statement in enumerate(statements):
            self.following.append(statements[k + 1 :])
            steps.append((self.statement(statement), statement.at))
            self.following.pop()
        return in_sequence(steps)

    def lasting_sequence(self, statements: Sequence[s.Statement]) -> Executed:
        """Translate statements in sequence, whose variables are read later."""
        self.lasting |= declared_in(statements)
        return self.sequence(statements)

    def declaration(self, d: s.Declaration) -> Executed:
        kind = d.declared.unsized
        initial = self.unset(d.declared)
        if d.value is None:
            place = self.declare(d.name, kind)

            def declare(f: Frame) -> None:
                f[place] = initial(f)

            return declare
        value = self.promoted(d.value, kind)
        place = self.declare(d.name, kind)
        if kind in SCALARS:

            def assign(f: Frame) -> None:
                f[place] = value(f)

            return assign
        sizes, keep = self.shape(d.declared), self.copied(d.name, kind, d.value)

        def assign_container(f: Frame) -> None:
            x = value(f)
            if sizes is not None:
                check_shape(d.name, shape_of(x), sizes(f))
            f[place] = keep(x)

        return assign_container

    def assignment(self, a: s.Assignment) -> Executed:
        if a.operator:
            combined = s.Binary(a.at, a.operator, a.target, a.value)
            value = self.binary(combined)
        else:
            value = self.promoted(a.value, a.target.type)
        if isinstance(a.target, s.VariableName):
            place, kind = self.place(a.target.name)
            keep = self.copied(a.target.name, kind, None if a.operator else a.value)
            assign = _whole(place, kind, a.target.name, keep)
        else:
            assign = self.setter(a.target)

        def run(f: Frame) -> None:
            assign(f, value(f))

        return run

    def setter(self, target: s.Expression) -> Setter:
        """Return the function that assigns to a variable or a part of one."""
        if isinstance(target, s.VariableName):
            place, kind = self.place(target.name)
            return _whole(place, kind, target.name, self.copied(target.name, kind, target))
        if isinstance(target, s.TupleExpression):
            setters = [*map(self.setter, target.elements)]

            def assign_all(f: Frame, x: StanValue) -> None:
                for assign, item in zip(setters, x, strict=True):
                    assign(f, item)

            return assign_all
        assert isinstance(target, (s.Indexed, s.Projection))
        target = _joined(target)
        base = self.unshared(target.base)
        assign = self.part_setter(target.base)
        if isinstance(target, s.Projection):
            number = target.number - 1

            def project(f: Frame, x: object) -> None:
                before = base(f)
                assign(f, (*before[:number], owned(x), *before[number + 1 :]))

            return project
        indices, matvar = self.indices(target.indices), s.root(target) in self.matvars

        def set_part(f: Frame, x: object) -> None:
            before = base(f)
            after = write(before, indices(f), x, matvar)
            if after is not before:
                assign(f, after)

        return set_part

    def copied(
        self, name: str, kind: Type, value: s.Expression | None
    ) -> Callable[[StanValue], StanValue]:
        """Return the function that converts assigned values to store; `value` is None if new."""
        if name in self.matvars:
            return by_element
        return owned if value is not None and self._copies(name, kind, value) else _same

    def _copies(self, name: str, kind: Type, value: s.Expression) -> bool:
        """Tell whether a variable needs a copy of a value, because elements of one are assigned."""
        if isinstance(innermost(kind), Tuple):
            return True
        result = isinstance(value, (s.Binary, s.ArrayExpression, s.RowVectorExpression))
        return not result and (name in self._written or self.may_share(value))

    def part_setter(self, target: s.Expression) -> Setter:
        """Return the function that stores a changed value to which nothing else refers."""
        if isinstance(target, s.VariableName):
            place, _ = self.place(target.name)
            return lambda f, x: f.__setitem__(place, x)
        return self.setter(target)

    def distribution(self, d: s.Tilde) -> Executed:
        full = [d.value, *d.arguments]
        if d.truncated is not None:
            return self.increment(d.truncated)
        if d.definition is not None:
            routine = self.routine(d.definition)
            arguments = self._arguments(full, d.definition)
            density = _applied(lambda run, *values: routine(run, values), arguments)
        else:
            arguments = [*map(self.expression, full)]
            function = functions.implementation(d.function, tuple(e.type for e in full))
            function = proportional(function, self.of_variables(full))
            density = _applied(function, arguments)
        if d.lower is not None or d.upper is not None:
            density = self._truncated(d, arguments)

        def run(f: Frame) -> None:
            f[0].terms.append(density(f))

        return run

    def _truncated(self, d: s.Tilde, arguments: Sequence[StanEvaluated]) -> StanEvaluated:
        ends = [None if e is None else self.expression(e) for e in (d.lower, d.upper)]
        function = functions.truncated(d.function)

        def density(f: Frame) -> StanValue:
            lower, upper = (None if end is None else end(f) for end in ends)
            return function(lower, upper, *[argument(f) for argument in arguments])

        return density

    def increment(self, t: s.TargetIncrement) -> Executed:
        value = self.expression(t.value)

        def run(f: Frame) -> None:
            x = value(f)
            f[0].terms.append(x if np.ndim(x) == 0 else np.sum(x))

        return run

    def jacobian(self, t: s.JacobianIncrement) -> Executed:
        value = self.expression(t.value)

        def run(f: Frame) -> None:
            if f[0].jacobian:
                f[0].terms.append(np.sum(value(f)))

        return run

    def call_statement(self, c: s.CallStatement) -> Executed:
        call = self.expression(c.call)

        def run(f: Frame) -> None:
            call(f)

        return run

    def message(self, m: s.Message) -> Executed:
        parts = [x if isinstance(x, str) else self.expression(x) for x in m.items]

        def run(f: Frame) -> None:
            text = "".join(part if isinstance(part, str) else printed(part(f)) for part in parts)
            if m.kind == "print":
                print(text)
            else:
                raise DomainError(text) if m.kind == "reject" else FatalError(text)

        return run

    def returned(self, r: s.Return) -> Executed:
        if r.value is None:
            return lambda f: (None,)
        assert self._result is not None
        value = self.promoted(r.value, self._result)
        return lambda f: (value(f),)

    def conditional_statement(self, i: s.If) -> Executed:
        condition = self.expression(i.condition)
        body, otherwise = self.body(i.body), self.body(i.otherwise)
        return lambda f: body(f) if condition(f) else otherwise(f)

    def loop(self, body: Executed, passes: Callable[[Frame], Iterator[None]]) -> Executed:
        """Return the function that runs a loop; `passes` prepares the frame for each iteration."""

        def run(f: Frame) -> Any:
            for _ in passes(f):
                signal = body(f)
                if signal is BREAK:
                    break
                if signal is not None and signal is not CONTINUE:
                    return signal
            return None

        return run

    def repeated(self, loop: s.For | s.ForEach | s.While) -> Executed:
        """Translate the body of a loop, after which another iteration may follow."""
        self.following.append([loop])
        body = self.body(loop.body)
        self.following.pop()
        return body

    def lowered(self, loop: s.For | s.ForEach | s.While) -> Callable[..., bool]:
        """Return the function that records a loop as one procedure, if it can be."""
        read = {*s.names_in(self.following)} | self.lasting
        return lowered_loop(self, loop, read, self.tracing)

    def while_loop(self, w: s.While) -> Executed:
        condition, body = self.expression(w.condition), self.repeated(w)
        lowered = self.lowered(w)

        def passes(f: Frame) -> Iterator[None]:
            while condition(f):
                yield

        run = self.loop(body, passes)
        return lambda f: None if lowered(f) else run(f)

    def for_loop(self, w: s.For) -> Executed:
        lower, upper = self.expression(w.lower), self.expression(w.upper)
        with self.scope():
            place, count = self.declare(w.name, types.INT), self.declare("", types.INT)
            body = self.repeated(w)
            try:
                together = vectorized(self, w, count, self._written)
                self.loops.append((w, None))
            except BoundError as error:
                together = None
                self.loops.append((w, error))
            as_scan = None if together else scanned(self, w, body, place, count)
            if as_scan is not None:
                self.scanned.append(w)
            lowered = self.lowered(w)

        is_apart = are_apart(w)
        is_nested = any(isinstance(node, (s.For, s.While)) for node in s.walk(w.body))
        least = 1 if is_nested else FEW

        def passes(f: Frame, first: int, last: int) -> Iterator[None]:
            tape, starts = current_tape(), list[int]()
            for f[place] in range(first, last + 1):
                starts.append(len(tape))
                yield
            if is_apart and len(starts) > FEW:
                group_alike(tape, starts)

        def by_pass(f: Frame) -> Any:
            first, last = lower(f), upper(f)
            start = as_scan(f, first, last) if as_scan else first
            if start is None:
                return None
            by_one = self.loop(body, lambda f: passes(f, start, last))

            def run() -> Any:
                return None if last - start >= least and lowered(f, start) else by_one(f)

            watch = f[0].watch
            return watch(w, max(last - first + 1, 0), run) if watch else run()

        if together is None:
            return by_pass

        def run(f: Frame) -> Any:
            first, last = lower(f), upper(f)
            if last - first < FEW:
                return by_pass(f)
            f[place], f[count] = np.arange(first, last + 1), last - first + 1
            return None if together(f) else by_pass(f)

        return run

    def foreach_loop(self, w: s.ForEach) -> Executed:
        values, kind = self.expression(w.values), w.values.type
        # Read a variable in each iteration, as compiled programs do: the body may assign to it.
        repeated = values if isinstance(w.values, s.VariableName) else None
        element = kind.element if isinstance(kind, ArrayType) else types.REAL
        with self.scope():
            place = self.declare(w.name, element)
            body = self.repeated(w)
            lowered = self.lowered(w)

        def passes(f: Frame) -> Iterator[None]:
            container = values(f)
            # Row by row, as compiled programs do; by Stan's manual it were by columns.
            indices = np.ndindex(np.shape(container)) if kind in MATRICES else range(len(container))
            for i in indices:
                f[place] = scalar((repeated(f) if repeated else container)[i])
                yield

        run = self.loop(body, passes)
        return lambda f: None if lowered(f) else run(f)

    def block(self, b: s.Braces | s.Profiled) -> Executed:
        return self.body(b.body)


def _applied(
    function: Callable[..., StanValue], arguments: Sequence[StanEvaluated]
) -> StanEvaluated:
    """Return the function that evaluates a call."""
    return lambda f: function(f[0], *[argument(f) for argument in arguments])


def _joined(target: s.Indexed | s.Projection) -> s.Indexed | s.Projection:
    """Rewrite `x[i][j]` as `x[i, j]`."""
    while (
        isinstance(target, s.Indexed)
        and isinstance(target.base, s.Indexed)
        and all(isinstance(i, s.Expression) and i.type == types.INT for i in target.base.indices)
    ):
        target = s.Indexed(target.at, target.base.base, [*target.base.indices, *target.indices])
    return target


def _same(x: object) -> StanValue:
    return x


def _whole(place: int, kind: Type, name: str, keep: Callable[[StanValue], StanValue]) -> Setter:
    """Return the function that assigns to a whole variable."""
    if kind in SCALARS:
        return lambda f, x: f.__setitem__(place, x)

    def assign(f: Frame, x: StanValue) -> None:
        before = f[place]
        if not isinstance(before, (tuple, list)) and before.size:
            check_shape(name, np.shape(x), np.shape(before))
        f[place] = keep(x)

    return assign


def check_shape(name: str, shape: tuple[int, ...], declared_shape: tuple[int, ...]) -> None:
    """Raise unless a value has the shape of the variable to which it is assigned."""
    if shape != declared_shape:
        raise ShapeError(
            f"{name}: the value has shape {shape}, but must have the declared shape "
            f"{declared_shape}!"
        )


def printed(x: StanValue) -> str:
    """Format a value as Stan prints it."""
    if isinstance(x, tuple):
        return f"({','.join(map(printed, x))})"
    x = getattr(x, "val", x)
    if np.ndim(x) or isinstance(x, list):
        return f"[{','.join(map(printed, x))}]"
    return f"{x:.6g}" if isinstance(x, float) else str(x)


def written_in(statements: Sequence[s.Statement]) -> set[str]:
    """Return the names of the variables into which elements are assigned."""
    result: set[str] = set()

    def target(e: s.Expression) -> None:
        if isinstance(e, s.TupleExpression):
            for element in e.elements:
                target(element)
        elif isinstance(e, (s.Indexed, s.Projection)):
            base: s.Expression = e
            while isinstance(base, (s.Indexed, s.Projection)):
                base = base.base
            if isinstance(base, s.VariableName):
                result.add(base.name)

    def walk(statements: Sequence[s.Statement]) -> None:
        for statement in statements:
            if isinstance(statement, s.Assignment):
                target(statement.target)
            for inner in ("body", "otherwise"):
                walk(getattr(statement, inner, ()))

    walk(statements)
    return result


_STATEMENTS: dict[type, Callable[[Translator, Any], Executed]] = {
    s.Declaration: Translator.declaration,
    s.Assignment: Translator.assignment,
    s.Tilde: Translator.distribution,
    s.TargetIncrement: Translator.increment,
    s.JacobianIncrement: Translator.jacobian,
    s.CallStatement: Translator.call_statement,
    s.Message: Translator.message,
    s.Return: Translator.returned,
    s.Break: lambda translator, statement: lambda f: BREAK,
    s.Continue: lambda translator, statement: lambda f: CONTINUE,
    s.If: Translator.conditional_statement,
    s.While: Translator.while_loop,
    s.For: Translator.for_loop,
    s.ForEach: Translator.foreach_loop,
    s.Braces: Translator.block,
    s.Profiled: Translator.block,
}
