"""The entries of the engine's own rules as steps: elementwise and structured operations, elements,
gathers, assignments.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64
from varmat.core.elementwise import Elementwise
from varmat.core.indexing import ASSIGN, ELEMENT, GATHER
from varmat.core.operation import Operation, Saved
from varmat.core.rules import ZERO
from varmat.core.tape import Rule
from varmat.core.variables import Outputs
from varmat.plain_arrays import unbroadcast
from varmat.programs.build.expressions import apply_row, plain_or_symbol
from varmat.programs.build.symbol import Symbol, UntraceableError, is_refusal, lift
from varmat.programs.ir.program import FLOAT, OBJECT, Shape, Value
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.record.places import TripLayout, collected, taken
from varmat.programs.record.tape_programs import Operands, TapeProgram, writes

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Results
    from varmat.programs.ir.program import Output
    from varmat.typing import Adjoint, Function, Index, Operand, Settings
# The constructor of tuples of several results; None for operations with a single one.
Kind = Callable[[Iterable[Any]], tuple[Any, ...]] | None


@writes(
    Elementwise,
    operands=Operands(
        lambda rule, x, y: (x if rule.op.arity > 2 else (x, y)[: rule.op.arity], None),
        lambda rule, x, y, new: (new, None) if rule.op.arity > 2 else (*new, None)[:2],
    ),
)
def _elementwise(program: TapeProgram, rule: Rule, result: Operand, x: Operand, y: Operand) -> None:
    row: Elementwise = rule.op
    operands = [program.operand(item) for item in (x if row.arity > 2 else (x, y)[: row.arity])]
    builder, shape = program.builder, result.shape
    values = [value for value, _ in operands]
    output = apply_row(builder, row, values)
    number = output if output.dtype is FLOAT else builder.number(output)
    value = builder.broadcast(number, shape)
    node = program.node(result, value)
    if value.is_constant:
        return

    def back() -> None:
        inputs = [*map(program.symbol, (program.adjoint(node), *values, output))]  # type: ignore[arg-type]
        for (_, operand), text, push in zip(operands, row.partials, row.pushes, strict=True):
            if operand is not None and text != ZERO:
                program.contribute(operand, lift(builder, push(*inputs)), shape)

    program.back((node,), back)


# The only operand, and the index.
_PART = Operands(lambda rule, x, y: ((x,), y), lambda rule, x, y, new: (new[0], y), True)


@writes(ELEMENT, GATHER, operands=_PART)
def _elements(program: TapeProgram, rule: Rule, result: Operand, x: Operand, index: Index) -> None:
    source, indices = program.place(x)
    value, contribute = taken(program, source, np.asarray(indices[index]))
    node = program.node(result, value)
    if contribute is not None:
        program.back((node,), lambda: contribute(program.adjoint(node)))  # type: ignore[arg-type]


@writes(
    ASSIGN,
    operands=Operands(
        lambda rule, sources, layout: (sources, layout),
        lambda rule, sources, layout, new: (new, layout),
    ),
)
def _assign(
    program: TapeProgram,
    rule: Rule,
    result: Operand,
    sources: Sequence[Operand],
    layout: TripLayout,
) -> None:
    """Make an array of parts, see `record.assignments`."""
    value, contribute = collected(program, result.shape, sources, layout)
    node = program.node(result, value)
    if contribute is not None:
        program.back((node,), lambda: contribute(program.adjoint(node)))  # type: ignore[arg-type]


# --- structured operations ---


def _settings_of(op: Operation, settings: Settings) -> Settings:
    """Return the settings without values saved for the reverse rule."""
    return {name: setting for name, setting in settings.items() if name in op.signature.parameters}


@writes(
    Operation,
    operands=Operands(
        lambda rule, x, y: (x, _settings_of(rule.op, y)), lambda rule, x, y, new: (new, y)
    ),
)
def structured(
    program: TapeProgram, rule: Rule, result: Operand, args: Sequence[Operand], settings: Settings
) -> None:
    """Write any structured operation: trace its value and reverse rule, or call them by Python."""
    op: Operation = rule.op
    settings = _settings_of(op, settings)
    operands = [program.operand(x) for x in args]
    kind = type(result).kind if isinstance(result, Outputs) else None
    items = list(result) if kind is not None else [result]
    values, shapes = [value for value, _ in operands], [item.shape for item in items]
    call = OperationCall(program, op, settings, values, shapes, kind)
    nodes = [program.node(item, value) for item, value in zip(items, call.values(), strict=True)]
    requested = [(i, operand) for i, (_, operand) in enumerate(operands) if operand is not None]

    def back() -> None:
        adjoints = [program.adjoint(node) for node in nodes]
        output = call.contributions(adjoints, [(i, node.shape) for i, node in requested])
        for (_, operand), c in zip(requested, output, strict=True):
            program.contribute(operand, c, operand.shape)

    if requested:
        program.back(nodes, back)


class OperationCall:
    """A structured operation in a program.

    Parameters
    ----------
    program : TapeProgram
    op : Operation
    settings : dict
    operands : sequence of Value
    shapes : sequence of tuple
        The shapes of the results.
    kind : callable, optional
        Makes the tuples of several results.
    """

    def __init__(
        self,
        program: TapeProgram,
        op: Operation,
        settings: Settings,
        operands: Sequence[Value],
        shapes: Sequence[Shape],
        kind: Kind,
    ) -> None:
        self.program, self.op, self.settings = program, op, settings
        self.operands, self.shapes, self.kind = operands, shapes, kind
        self.saved: Settings = {}
        self.results: list[Value] = []
        # From the adjoints to the contributions, if the value function gives that.
        self.pull: Function | None = None
        # The object that a call of Python saved for the reverse rule.
        self.token: Value | None = None

    def values(self) -> list[Value]:
        """Write the results."""
        if self.op.is_traceable:
            try:
                self.results = self._traced_values()
                return self.results
            except (UntraceableError, ValueError) as error:
                if not is_refusal(error):
                    raise
        self.results, self.token = self._called_values()
        return self.results

    def _symbols(self) -> list[Operand]:
        return [plain_or_symbol(self.program.builder, v) for v in self.operands]

    def _settings(self, workspace: Function) -> Settings:
        extra = {"workspace": workspace} if self.op.wants_workspace else {}
        return {**self.settings, **extra}

    def _traced_values(self) -> list[Value]:
        op, builder, symbols = self.op, self.program.builder, self._symbols()
        for name, symbol in zip(op.operands, symbols, strict=False):
            if name in op.domains and isinstance(symbol, Symbol):
                builder.guard(builder.truth(lift(builder, op.domains[name][1].holds(symbol))))
        value, self.saved = op.function(*symbols, **self._settings(unplaced)), {}
        if type(value) is Saved:
            value, self.saved = value.value, value.saved
        self.pull = self.saved.pop("pull", None)
        result = [lift(builder, x) for x in (value if self.kind is not None else (value,))]
        if [v.shape for v in result] != list(self.shapes):
            raise UntraceableError
        return [builder.number(v) for v in result]

    def _called_values(self) -> tuple[list[Value], Value]:
        op = self.op
        settings = self._settings(Workspace())
        makes = [*((shape, FLOAT) for shape in self.shapes), ((), OBJECT)]
        function = partial(_value_of, op, settings, [v.shape for v in self.operands], self.kind)
        # Not pure: it stays even if its results are never read, because it may raise at a point.
        *results, token = self.program.builder.apply(
            PythonCall(op.name, function, makes, False), *self.operands
        )
        return results, token

    def contributions(
        self, adjoints: Sequence[Value | None], wrt: Sequence[tuple[int, Shape]]
    ) -> list[Value]:
        """Write the contributions to the operands at some positions, in their shapes."""
        builder = self.program.builder
        inputs = [
            None if g is None else builder.broadcast(g, shape)
            for g, shape in zip(adjoints, self.shapes, strict=True)
        ]
        if self.token is None:
            try:
                return self._traced_contributions(inputs, wrt)
            except (UntraceableError, ValueError) as error:
                if not is_refusal(error):
                    raise
        values = [g for g in inputs if g is not None]
        has = [g is not None for g in inputs]
        tail = [] if self.token is None else [self.token]
        settings = self._settings(Workspace()) if self.token is None else self.settings
        shapes = [v.shape for v in self.operands]
        function = partial(
            _contributions_of, self.op, settings, tuple(wrt), self.kind, has, shapes, self.shapes
        )
        kernel = PythonCall(
            f"{self.op.name}.reverse", function, [(shape, FLOAT) for _, shape in wrt], True
        )
        return list(builder.apply(kernel, *values, *self.results, *self.operands, *tail))

    def _traced_contributions(
        self, inputs: Sequence[Value | None], wrt: Sequence[tuple[int, Shape]]
    ) -> list[Value]:
        program, op = self.program, self.op
        builder = program.builder
        g: Operand = tuple(None if x is None else Symbol(builder, x) for x in inputs)
        r: Operand = tuple(Symbol(builder, result) for result in self.results)
        g, r = (g[0], r[0]) if self.kind is None else (self.kind(g), self.kind(r))
        parts = (
            op.parts(g, r, self._symbols(), {**self.settings, **self.saved})
            if self.pull is None
            else self.pull(g)
        )
        parts = parts if type(parts) is tuple else (parts,)
        results = []
        for i, shape in wrt:
            c = lift(builder, parts[i]() if callable(parts[i]) else parts[i])
            results.append(c if c.shape in (shape, ()) else builder.unbroadcast(c, c.shape, shape))
        return results


def unplaced(shape: Shape) -> None:
    """Make no workspace for a traced function: memory is assigned later."""


class Workspace(threading.local):
    """Memory for what an operation saves. Each call in a thread gets the same large arrays, which
    are warm.
    """

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []
        self.taken = 0

    def __call__(self, shape: Shape) -> np.ndarray:
        if np.prod(shape, dtype=int) <= LARGE:
            return np.empty(shape)
        if self.taken == len(self._arrays):
            self._arrays.append(np.empty(shape))
        elif self._arrays[self.taken].shape != shape:
            self._arrays[self.taken] = np.empty(shape)
        self.taken += 1
        return self._arrays[self.taken - 1]


def value_of(
    op: Operation, settings: Settings, values: Sequence[Operand]
) -> tuple[Operand, Settings]:
    """Compute the value of an operation at plain operands, and what its reverse rule needs."""
    if op.domains:
        op.check(values)
    if op.wants_workspace:
        settings["workspace"].taken = 0
    value, saved = op.function(*values, **settings), {}
    if type(value) is Saved:
        value, saved = value.value, value.saved
    return tuple(map(_number_or_array, value)) if isinstance(value, tuple) else _number_or_array(
        value
    ), saved


def _number_or_array(x: Operand) -> Operand:
    if type(x) is not np.ndarray or not x.ndim:
        return float(x)
    return x if x.dtype is FLOAT64 else x.astype(FLOAT64)


def plain(values: Sequence[Operand], shapes: Sequence[Shape]) -> list[Operand]:
    """Return operands as functions of plain arrays expect them: a number is a float."""
    return [x if shape else float(x) for x, shape in zip(values, shapes, strict=True)]


def _value_of(
    op: Operation, settings: Settings, shapes: Sequence[Shape], kind: Kind, *values: Operand
) -> Results:
    value, saved = value_of(op, settings, plain(values, shapes))
    return (*(value if kind is not None else (value,)), saved)


def _contributions_of(
    op: Operation,
    settings: Settings,
    wrt: Sequence[tuple[int, Shape]],
    kind: Kind,
    has: Sequence[bool],
    shapes: Sequence[Shape],
    result_shapes: Sequence[Shape],
    *args: Operand,
) -> Results:
    """Compute the contributions, from the adjoints that exist, the results, the operands, and the
    saved values, if any.
    """
    following = iter(args)
    g = [
        plain([next(following)], [shape])[0] if there else None
        for there, shape in zip(has, result_shapes, strict=True)
    ]
    r = plain([next(following) for _ in result_shapes], result_shapes)
    values = plain([next(following) for _ in shapes], shapes)
    saved = next(following, None)
    if saved is None:
        saved = value_of(op, settings, values)[1]
        settings = {name: setting for name, setting in settings.items() if name != "workspace"}
    adjoint, result = (g[0], r[0]) if kind is None else (tuple(g), tuple(r))
    return tuple(contributions_of(op, settings, wrt, kind, adjoint, result, values, saved))


def contributions_of(
    op: Operation,
    settings: Settings,
    wrt: Sequence[tuple[int, Shape]],
    kind: Kind,
    g: Adjoint,
    r: Operand,
    values: Sequence[Operand],
    saved: Settings,
) -> list[Output]:
    """Compute the contributions to the operands at given positions, in their shapes; `kind` makes
    the tuples of several results.
    """
    if kind is not None:
        g, r = kind(g), kind(r)
    parts = op.parts(g, r, values, {**settings, **saved})
    result: list[Output] = []
    for i, shape in wrt:
        c = parts[i]() if callable(parts[i]) else parts[i]
        if shape:
            c = c if type(c) is np.ndarray and c.dtype is FLOAT64 else op.contribution(i, c)
            result.append(c if c.shape == shape else unbroadcast(c, shape))
        else:
            result.append(c if type(c) is float else float(np.sum(c)))
    return result
