"""The statements of loops of Stan programs as statements over numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from varmat.core.matvar import to_varmat
from varmat.core.operation import is_differentiable
from varmat.programs.build.scalar_functions import ADD, SAME, ScalarFunction
from varmat.programs.ir import statements as ir
from varmat.programs.ir.statements import Cell, Number, Statement, Storage
from varmat.programs.passes.reverse import Source
from varmat.solvers.procedures import StatementCode
from varmat.stan import syntax as s
from varmat.stan import types
from varmat.stan.lowered_expressions import NUMBERS, SUBTRACT, Elements, Lowered
from varmat.stan.lowered_functions import LoweredFunctions
from varmat.stan.translate import Expressions
from varmat.stan.values import MATRICES, SCALARS, StanValue, innermost
from varmat.stan.vectorized import assigned_in
from varmat.stan.vectorized_expressions import BoundError

# Passes that a `while` is thought to have.
OFTEN = 10
# Numbers that a local array may have at most.
LARGEST = 1 << 24


class Lowering(LoweredFunctions):
    """Writes the statements of a loop."""

    def __init__(self, translator: Expressions, propto: bool) -> None:
        super().__init__(translator, propto)
        self._leaves: list[tuple[Storage, StanValue]] = []
        self._data: list[tuple[Storage, np.ndarray]] = []
        # Cells that are 1 after `break`, `continue` or `return`, and the cell of a result.
        self._flags: dict[str, Cell] = {}
        self._result: Any = None
        self._result_type: types.Type | None = None
        self._reassigned: set[str] = set()
        # Where the loop begins, if not where it says.
        self.first: int | None = None

    def loop(
        self,
        loop: s.Statement,
        values: dict[str, object],
        kinds: dict[str, tuple[int, types.Type]],
        assigned: Sequence[str],
        results: Sequence[str],
    ) -> tuple[StatementCode, list[StanValue]]:
        """Lower a loop, and return its code and the values of its leaves."""
        outputs, ends = dict[str, Storage](), list[Statement]()
        for name, x in values.items():
            kind = kinds[name][1]
            if innermost(kind) not in NUMBERS:
                continue
            bound = self._given(name, x, kind)
            if name in assigned:
                if kind in SCALARS:
                    cell = Cell(name, False, kind == types.INT)
                    self.write(ir.Compute(cell, SAME, (bound,)))  # type: ignore[arg-type]
                    out = Storage((), name)
                    if name in results:
                        ends.append(ir.Store(out, (), cell))
                    self.env[name] = cell
                else:
                    assert isinstance(bound, Elements)
                    out = Storage(bound.most, name)
                    self.write(ir.Fill(out, bound.buffer))  # type: ignore[arg-type]
                    self.env[name] = self.array(out, bound.shape)
                outputs[name] = out
            else:
                self.env[name] = bound
        if outputs.keys() != {*assigned}:
            raise BoundError("a loop assigns to something other than an array of numbers", loop.at)
        self._reassigned = assigned_in([loop])
        self.statement(loop)
        source = Source(
            [b for b, _ in self._leaves],
            [b for b, _ in self._data],
            [outputs[name] for name in results],
            [*self.block, *ends],
        )
        return StatementCode(source, [x for _, x in self._data]), [x for _, x in self._leaves]

    def _given(self, name: str, x: StanValue, kind: types.Type) -> Lowered:
        """Lower a variable from outside to a constant, or an operand."""
        is_scalar = kind in SCALARS
        if is_differentiable(x):
            x = to_varmat(x)
            buffer = Storage(np.shape(x), name)
            self._leaves.append((buffer, x))
            if is_scalar:
                cell = Cell(name)
                self.write(ir.Load(cell, buffer, ()))
                return cell
            return self.array(buffer, buffer.shape)
        if is_scalar:
            return x  # type: ignore[no-any-return]
        plain = np.asarray(x)
        buffer = Storage(plain.shape, name)
        self._data.append((buffer, np.ascontiguousarray(plain, float)))
        bounds = None
        if innermost(kind) == types.INT and plain.size:
            bounds = int(plain.min()), int(plain.max())
        return self.array(buffer, buffer.shape, bounds)

    # --- statements ---

    def statements(self, body: Sequence[s.Statement]) -> None:
        for k, item in enumerate(body):
            self.at = item.at
            self.statement(item)
            remainder = body[k + 1 :]
            if remainder and _leaves(item):
                flags = [x for name, x in self._flags.items() if name in _FLAGS]
                holds = flags[0]
                for x in flags[1:]:
                    holds = self.apply(ADD, holds, x)  # type: ignore[assignment]
                with self.inside([]) as inner:
                    self.statements(remainder)
                self.write(ir.If(holds, [], inner))
                return

    def statement(self, statement: s.Statement) -> None:
        name = _STATEMENTS.get(type(statement))
        if name is None:
            kind = type(statement).__name__.lower()
            raise BoundError(f"a loop has a statement of the kind {kind!r}", statement.at)
        getattr(self, name)(statement)

    def _declaration(self, d: s.Declaration) -> None:
        kind = d.declared.unsized
        if innermost(kind) not in NUMBERS:
            raise BoundError(f"a loop declares a {kind}", d.at)
        if kind in SCALARS:
            cell = Cell(d.name, False, kind == types.INT)
            x = None if d.value is None else self.number(d.value)
            self.write(ir.Declare(cell))
            if x is not None:
                self.write(ir.Compute(cell, SAME, (x,)))
                ends = self.bounds(x) if kind == types.INT else None
                if ends is not None and d.name not in self._reassigned:
                    self._bounds[cell] = ends
            self.env[d.name] = cell
            return
        sizes = [self.number(e) for e in (*d.declared.dimensions, *d.declared.sizes)]
        if innermost(kind) in MATRICES and len(d.declared.sizes) == 1:
            sizes.append(sizes[-1])
        most = [self.limit(n, f"`{d.name}`", d.at) for n in sizes]
        if np.prod(most, dtype=float) > LARGEST:
            raise BoundError(f"`{d.name}` may become large", d.at)
        value = None if d.value is None else self.elements(d.value)
        buffer = Storage(tuple(most), d.name)
        self.write(ir.Declare(buffer))
        variable = self.array(buffer, tuple(sizes))
        if value is not None:
            self.same_shape(variable, value)
            self.copy(buffer, value)
        self.env[d.name] = variable

    def _assignment(self, a: s.Assignment) -> None:
        name, value = s.root(a.target), a.value
        variable = self.env.get(name)
        if variable is None or not isinstance(a.target, (s.VariableName, s.Indexed)):
            raise BoundError(f"a loop assigns to `{name}`", a.at)
        if a.operator:
            combined = s.Binary(a.at, a.operator, a.target, value)
            combined.type, combined.data = a.target.type, False
            value = combined
        if isinstance(variable, Cell):
            x = self.number(value)
            if (
                isinstance(value, s.Binary) and value.operator == "+"
                and isinstance(value.left, s.VariableName) and value.left.name == name
                and isinstance(self.block[-1], ir.Compute) and self.block[-1].out is x
            ):  # fmt: skip
                # As a sum, which loops need not keep.
                self.block[-1] = ir.Add(variable, self.block[-1].arguments[1])
                return
            self.write(ir.Compute(variable, SAME, (x,)))
            return
        if not isinstance(variable, Elements) or variable.buffer is None:
            raise BoundError(f"a loop assigns to `{name}`", a.at)
        buffer = variable.buffer
        target = self._target(a.target, variable)
        lowered: Lowered
        if a.target.type in SCALARS:
            lowered = self.number(value)
        else:
            lowered = self.elements(value)
            self.same_shape(target, lowered)
            if name in s.names_in(value):
                lowered = self.copied(lowered)
        self.copy(buffer, lowered, target.places)

    def _target(self, e: s.Expression, variable: Elements) -> Elements:
        if isinstance(e, s.VariableName):
            return variable
        assert isinstance(e, s.Indexed)
        return self.part(self._target(e.base, variable), e.indices)

    def _tilde(self, d: s.Tilde) -> None:
        if d.lower is not None or d.upper is not None:
            raise BoundError("a truncated density", d.at)
        arguments = [d.value, *d.arguments]
        if d.definition is not None:
            call = s.Call(d.at, d.function, arguments, True)
            call.type, call.data, call.definition = types.REAL, False, d.definition
            result = self.routine(call, d.definition, drops=True)
            assert not isinstance(result, Elements)
            self.write(ir.Increment(result))
            return
        self.write(ir.Increment(self.density(d.function, arguments, True, d.at)))

    def _increment(self, t: s.TargetIncrement) -> None:
        x = self.expression(t.value)
        self.write(ir.Increment(self.total(x) if isinstance(x, Elements) else x))

    def _conditional(self, i: s.If) -> None:
        holds = self.number(i.condition)
        if not isinstance(holds, Cell):
            with self._scope():
                self.statements(i.body if holds else i.otherwise)
            return
        sides = []
        for body in (i.body, i.otherwise):
            with self.inside([]) as side:
                self.statements(body)
            sides.append(side)
        self.write(ir.If(holds, *sides))

    def _scope(self) -> Any:
        return self.inside(self.block)

    def _for(self, w: s.For) -> None:
        lower, upper = self.number(w.lower), self.number(w.upper)
        if self.first is not None:
            lower, self.first = self.first, None
        self._loop(w, lower, upper, lambda i: i)

    def _loop(
        self, w: s.For | s.ForEach, lower: Number, upper: Number, value: Callable[[Number], Lowered]
    ) -> None:
        """Lower a loop over integers, whose variable has a value for each of them."""
        ends = self.bounds(lower), self.bounds(upper)
        limits = None
        if ends[0] is not None and ends[1] is not None:
            limits = ends[0][0], max(ends[1][1], ends[0][0])
        most = ir.MANY if limits is None else limits[1] - limits[0] + 1
        early = any(map(_leaves, w.body))
        # The bounds are those before the first pass.
        last = self.apply(SAME, upper) if early else upper
        index = self.variable_cell(w.name, lower, True) if early else Cell(w.name, is_integer=True)
        if limits is not None:
            self._bounds[index] = limits
        if not early:
            with self._passes(most) as inner:
                self.env[w.name] = value(index)
                self.statements(w.body)
            self.write(ir.For(index, lower, last, inner, most=most))
            return
        stopped = self.variable_cell("break", 0.0, True)
        condition = list[Statement]()
        with self.inside(condition):
            go = self._goes_on(self.compare("<=", index, last), stopped)
        with self._passes(most) as inner:
            self.env[w.name] = value(index)
            self._pass(w.body, {**self._flags, "break": stopped})
            self.write(ir.Add(index, 1.0))
        self.write(ir.While(condition, go, inner))

    @contextmanager
    def _passes(self, most: int) -> Iterator[list[Statement]]:
        """Write the body of a loop with this many iterations."""
        with self.having(times=self.times * max(most, 0)), self.inside([]) as inner:
            yield inner

    def _goes_on(self, holds: Number, stopped: Cell) -> Number:
        """Compute whether a loop continues: if a condition holds, and nothing has ended it."""
        flags = self._flags
        for flag in (stopped, *([flags["return"]] if "return" in flags else [])):
            holds = self.apply(_AND_NOT, holds, flag)
        return holds

    def _pass(self, body: Sequence[s.Statement], flags: dict[str, Cell]) -> None:
        """Lower one iteration, which `continue` may end."""
        if any(isinstance(node, s.Continue) for node in s.walk(body)):
            flags = {**flags, "continue": self.variable_cell("continue", 0.0, True)}
        with self.having(_flags=flags):
            self.statements(body)

    def _while(self, w: s.While) -> None:
        stopped = self.variable_cell("break", 0.0, True)
        condition = list[Statement]()
        with self.inside(condition):
            go = self._goes_on(self.compare("!=", self.number(w.condition), 0.0), stopped)
        with self._passes(OFTEN) as inner:
            self._pass(w.body, {**self._flags, "break": stopped})
        self.write(ir.While(condition, go, inner))

    def _break(self, b: s.Break) -> None:
        self.write(ir.Compute(self._flags["break"], SAME, (1.0,)))

    def _continue(self, b: s.Continue) -> None:
        self.write(ir.Compute(self._flags["continue"], SAME, (1.0,)))

    def _message(self, m: s.Message) -> None:
        if m.kind == "print":
            raise BoundError("a loop prints", m.at)
        self.write(ir.End())  # and is run as it is written, which raises the error

    def _braces(self, b: s.Braces | s.Profiled) -> None:
        with self._scope():
            self.statements(b.body)

    def _foreach(self, w: s.ForEach) -> None:
        values = w.values
        if values.type in MATRICES or (
            isinstance(values, s.VariableName) and values.name in assigned_in(w.body)
        ):
            raise BoundError("a loop over the elements of a matrix", w.at)
        x = self.stored(self.elements(values))

        def element(i: Number) -> Lowered:
            if len(x.shape) == 1:
                return x.at(i)
            return Elements(x.shape[1:], x.most[1:], lambda *j: x.at(i, *j), is_view=True)

        self._loop(w, 0, self.integer(SUBTRACT, x.shape[0], 1), element)

    # --- functions of the program ---

    def _call_statement(self, c: s.CallStatement) -> None:
        assert c.call.definition is not None
        self.routine(c.call, c.call.definition)

    def routine(self, e: s.Call, definition: s.FunctionDefinition, drops: bool = False) -> Lowered:
        if definition in self._calls or not definition.body:
            raise BoundError(f"`{e.name}` calls itself", e.at)
        env: dict[str, Lowered] = {}
        for argument, value in zip(definition.arguments, e.arguments, strict=True):
            if innermost(argument.type) not in NUMBERS:
                raise BoundError(f"`{e.name}` takes a {argument.type}", e.at)
            x = self.expression(value)
            env[argument.name] = self.stored(x) if isinstance(x, Elements) else x
        drops = drops or "_lup" in e.name
        keeps = definition.name.endswith(("_lpdf", "_lpmf")) and not drops
        body, flags, result = definition.body, dict[str, Cell](), None
        if any(isinstance(x, s.Return) for item in body[:-1] for x in s.walk(item)) or (
            not isinstance(body[-1], s.Return) and definition.result is not None
        ):
            flags["return"] = self.variable_cell("return", 0.0, True)
        if definition.result in SCALARS:
            result = Cell("result", False, definition.result == types.INT)
            self.write(ir.Declare(result))
        with self.having(
            env=env, propto=self.propto and not keeps, in_block=False, _flags=flags,
            _result=result, _result_type=definition.result, _reassigned=assigned_in(body),
            _calls=[*self._calls, definition],
        ):  # fmt: skip
            self.statements(body)
            output = self._result
        if isinstance(output, Cell):
            return self.apply(SAME, output)
        return output if definition.result is not None else 0.0

    def _return(self, r: s.Return) -> None:
        if r.value is not None:
            if self._result_type in SCALARS:
                x = self.number(r.value)
                self.write(ir.Compute(self._result, SAME, (x,)))
            elif "return" in self._flags:
                raise BoundError("a function returns arrays here and there", r.at)
            else:
                self._result = self.copied(self.elements(r.value))
        if "return" in self._flags:
            self.write(ir.Compute(self._flags["return"], SAME, (1.0,)))


def _leaves(statement: s.Statement) -> bool:
    """Tell whether a statement may end the iteration, the loop or the function around it."""
    if isinstance(statement, (s.Break, s.Continue, s.Return)):
        return True
    if isinstance(statement, (s.For, s.While, s.ForEach)):
        return any(isinstance(x, s.Return) for x in s.walk(statement.body))
    bodies = [getattr(statement, name, []) for name in ("body", "otherwise")]
    return any(_leaves(x) for body in bodies for x in body)


_AND_NOT = ScalarFunction(
    lambda x, y: np.logical_and(np.not_equal(x, 0.0), np.equal(y, 0.0)) * 1.0, 2, is_discrete=True
)
_FLAGS = ("break", "continue", "return")
# The names of methods.
_STATEMENTS: dict[type, str] = {
    s.Declaration: "_declaration",
    s.Assignment: "_assignment",
    s.Tilde: "_tilde",
    s.TargetIncrement: "_increment",
    s.CallStatement: "_call_statement",
    s.Message: "_message",
    s.Return: "_return",
    s.Break: "_break",
    s.Continue: "_continue",
    s.If: "_conditional",
    s.While: "_while",
    s.For: "_for",
    s.ForEach: "_foreach",
    s.Braces: "_braces",
    s.Profiled: "_braces",
}
