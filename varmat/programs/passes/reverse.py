"""The derivatives of procedures: their statements backwards, and along a direction.

A block is reversed by its *forward* statements, which also keep partial derivatives in cells, and
its *backward* ones, which add to adjoints and restore overwritten values. Loops are of two kinds. A
loop whose iterations carry nothing that has an adjoint runs each iteration forward and then
backward, and keeps nothing. Any other loop keeps the cells that it carries, a log of overwritten
elements, and expensive values; backwards it restores the first two, iteration by iteration, and
runs each iteration again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from varmat.programs.build.procedures import procedure
from varmat.programs.build.scalar_functions import ADD, FMA, MULTIPLY, SAME
from varmat.programs.ir import statements as s
from varmat.programs.ir.statements import Cell, Compute, Statement, Storage, Variable
from varmat.programs.passes.liveness import assigned_once, is_sum, needed_variables, without
from varmat.programs.passes.privatise import privatised

if TYPE_CHECKING:
    from varmat.programs.kernels.procedure import Procedure

V = TypeVar("V", Cell, Storage)
# Forward and backward statements.
Pair = tuple[list[Statement], list[Statement]]
# Numbers for which all stacks together have room at most: a quarter of a gigabyte of addresses.
ROOM = 1 << 25


@dataclass(eq=False)
class Source:
    """Statements from which procedures are made.

    Attributes
    ----------
    leaves, data : list of Storage
        Arrays with derivatives, and arrays without.
    outputs : list of Storage
        The results in addition to the total.
    body : list of Statement
    """

    leaves: list[Storage]
    data: list[Storage]
    outputs: list[Storage]
    body: list[Statement]

    def __post_init__(self) -> None:
        self.body = privatised(self.body, self.outputs)

    def depends(self, x: Storage) -> bool:
        """Return whether an output depends on leaves, also by which statements run."""
        return self.branches() or x in self._dependent

    def branches(self) -> bool:
        """Return whether the choice of the statements that run depends on leaves."""
        for statement in s.walk(self.body):
            if isinstance(statement, s.If) and all(
                isinstance(x, s.End) for body in s.bodies(statement) for x in body
            ):
                continue  # a check
            ends = [getattr(statement, name, 0.0) for name in ("holds", "lower", "upper")]
            if not self._dependent.isdisjoint(ends):
                return True
        return False

    @cached_property
    def _dependent(self) -> set[Variable]:
        """The variables that depend on leaves."""
        return self.active(self.leaves, with_discrete=True)

    def active(self, leaves: Sequence[Storage], *, with_discrete: bool = False) -> set[Variable]:
        """Return the variables that have derivatives with respect to some leaves; or that depend on
        them, `with_discrete` functions too.
        """
        result: set[object] = {*leaves}
        before = 0
        every = [*s.walk(self.body)]
        while before != len(result):
            before = len(result)
            for x in every:
                if isinstance(x, Compute):
                    passes_on = with_discrete or not x.function.is_discrete
                    if passes_on and not result.isdisjoint(x.arguments):
                        result.add(x.out)
                elif (isinstance(x, s.Load) and x.array in result) or (
                    isinstance(x, s.Add) and x.value in result
                ):
                    result.add(x.out)
                elif (isinstance(x, s.Store) and x.value in result) or (
                    isinstance(x, s.Fill) and x.value in result
                ):
                    result.add(x.array)
        return result  # type: ignore[return-value]

    def forward(self) -> Procedure:
        """Write the procedure of the total, and the other results."""
        total = _Total()
        body = [*total.begin, *total.counted(self.body), *total.end]
        return procedure([*self.leaves, *self.data], [total.buffer, *self.outputs], body)

    def backward(self) -> Procedure:
        """Write the procedure of the adjoints of the leaves; its last operands are the results'."""
        seeds = [Storage(()), *(Storage(x.shape) for x in self.outputs)]
        reverse = Reverse(self)
        first = [
            s.Load(reverse.seed, seeds[0], ()),
            *(
                s.Fill(reverse.adjoint(x), seed)
                for x, seed in zip(self.outputs, seeds[1:], strict=True)
            ),
        ]
        forward, backward = reverse.block(self.body, set(), False)
        adjoints = [reverse.adjoint(x) for x in self.leaves]
        reverse.set_capacities([*forward, *backward])
        return procedure(
            [*self.leaves, *self.data, *seeds], adjoints, [*first, *forward, *backward]
        )

    def with_gradient(self) -> Procedure:
        """Write the procedure of the total and its gradient, if the source has no other results."""
        total, reverse = _Total(), Reverse(self)
        first = Compute(reverse.seed, SAME, (1.0,))
        forward, backward = reverse.block(self.body, set(), True)
        reverse.set_capacities([*forward, *backward])
        body = [first, *total.begin, *total.counted([*forward, *backward]), *total.end]
        adjoints = [reverse.adjoint(x) for x in self.leaves]
        return procedure([*self.leaves, *self.data], [total.buffer, *adjoints], body)

    def along(self, which: int) -> Source:
        """Return the derivative along a leaf, as a function of leaves and a tangent."""
        return Tangents(self, which).source


class _Total:
    """The total of a procedure."""

    def __init__(self) -> None:
        self.cell, self.buffer = Cell("target", is_temporary=False), Storage((), "target")
        self.begin: list[Statement] = [Compute(self.cell, SAME, (0.0,))]
        self.end: list[Statement] = [s.Store(self.buffer, (), self.cell)]

    def counted(self, statements: Sequence[Statement]) -> list[Statement]:
        """Make statements add to the total."""
        return [
            s.Add(self.cell, statement.term)
            if isinstance(statement, s.Increment)
            else s.mapped(statement, self.counted)
            for statement in statements
        ]


class Reverse:
    """Reverses the statements of a source.

    Attributes
    ----------
    seed : Cell
        The adjoint of the total.
    """

    def __init__(self, source: Source) -> None:
        self.active = source.active(source.leaves)
        self.seed = Cell("seed")
        self._adjoints: dict[Variable, Variable] = {}
        # Arrays whose elements are assigned once, or read only where they do not change any more;
        # and others that are read and overwritten, with what the assignments have kept.
        self._once, lasting = assigned_once(source.body)
        self._lasting = self._once | lasting
        read = s.reads(source.body)
        self._logs = {
            statement.array: s.Stack()
            for statement in s.walk(source.body)
            if isinstance(statement, s.Store) and statement.array in read - self._lasting
        }
        # Arrays that hold what statements that run again would assign to them.
        self._complete: set[Variable] = set()
        # The adjoints of variables that are not made by an iteration of the innermost loop.
        self._outer: set[Variable] = set()
        # Whether statements run again, and where expensive values have been kept for that.
        self._recalls = False
        self._tape: tuple[s.Stack, Cell] | None = None
        # Sums that a loop adds to: their values do not matter backwards.
        self._sums: set[Variable] = set()

    def adjoint(self, x: V) -> V:
        """Return the variable of the adjoint."""
        if x not in self._adjoints:
            self._adjoints[x] = x.like(f"{x.name}'", is_temporary=False)
        return self._adjoints[x]  # type: ignore[return-value]

    def block(self, statements: Sequence[Statement], later: set[Variable], counted: bool) -> Pair:
        """Write the forward and the backward statements.

        Parameters
        ----------
        statements : sequence of Statement
        later : set of Variable
            Variables assigned after them, before they run backwards.
        counted : bool
            Whether the forward statements add to the total.
        """
        parts, backward, later = list[list[Statement]](), list[Statement](), {*later}
        for line in reversed(_lines(statements)):
            for item in reversed(line):
                forward, behind = getattr(self, f"_{s.name_of(item)}")(item, later, counted)
                parts.append(forward)
                backward += behind
                later |= s.assigned([item])
            parts.append(self._recalled(line))
        return [x for part in reversed(parts) for x in part], backward

    def _recalled(self, line: Sequence[Statement]) -> list[Statement]:
        """Write the statement that recalls what is expensive in a line, where that was kept."""
        cells = _expensive(line)
        return [s.Recall(*self._tape, cells)] if self._tape and cells else []

    def _contribute(
        self, x: s.Number, part: s.Number, factor: s.Number = 1.0
    ) -> Iterator[Statement]:
        """Add to the adjoint of a number."""
        if x in self.active and factor != 0.0:
            bar = self.adjoint(x)
            if bar in self._outer:
                product = Cell()
                if factor != 1.0:
                    yield Compute(product, MULTIPLY, (part, factor))
                yield s.Add(bar, part if factor == 1.0 else product)
            elif factor == 1.0:
                yield Compute(bar, ADD, (bar, part))
            else:
                yield Compute(bar, FMA, (bar, part, factor))

    def _taken(self, x: Cell) -> tuple[Cell, list[Statement]]:
        """Move the adjoint of a cell into another one, with zero in its place."""
        bar, taken = self.adjoint(x), Cell()
        return taken, [Compute(taken, SAME, (bar,)), Compute(bar, SAME, (0.0,))]

    def _kept(self, x: Cell) -> Pair:
        """Return statements that keep what a cell holds, and that put it back."""
        return _copies([] if x.is_temporary else [x])

    # --- statements ---

    def _compute(self, x: Compute, later: object, counted: object) -> Pair:
        forward, backward = self._kept(x.out)
        after = list[Statement]()
        if x.out in self.active:
            bar, taken = self._taken(x.out)
            backward = [*taken, *backward]
            arguments, slopes = x.arguments, x.function.slopes
            if slopes and x.out not in arguments:
                arguments = (*arguments, x.out)
            for i, argument in enumerate(x.arguments):
                if argument in self.active:
                    by_value = len(arguments) > len(x.arguments)
                    slope = slopes[i] if by_value else x.function.partial(i)
                    cell = Cell()
                    if not isinstance(slope, float):
                        result = Compute(cell, slope, arguments)
                        (after if by_value else forward).append(result)
                    factor = slope if isinstance(slope, float) else cell
                    backward += self._contribute(argument, bar, factor)
        is_kept = self._tape is not None and _is_expensive(x)
        return [*forward, *([] if is_kept else [x]), *after], backward

    def _add(self, x: s.Add, later: object, counted: object) -> Pair:
        backward = [*self._contribute(x.value, self.adjoint(x.out))] if x.out in self.active else []
        if x.out in self._sums:
            return [], backward
        forward, restore = self._kept(x.out)
        return [*forward, x], [*backward, *restore]

    def _load(self, x: s.Load, later: object, counted: object) -> Pair:
        forward, backward = self._kept(x.out)
        if x.out in self.active:
            bar, taken = self._taken(x.out)
            backward = [*taken, *backward]
            if x.array in self.active:
                backward.append(s.AddAt(self.adjoint(x.array), x.indices, bar))
        return [*forward, x], backward

    def _store(self, x: s.Store, later: object, counted: object) -> Pair:
        log, backward = self._logs.get(x.array), list[Statement]()
        if x.array in self.active:
            adjoint, bar = self.adjoint(x.array), Cell()
            if x.value in self.active:
                backward.append(s.Load(bar, adjoint, x.indices))
            if x.array not in self._once:
                backward.append(s.Store(adjoint, x.indices, 0.0))
            backward += self._contribute(x.value, bar)
        if log is not None:
            backward.append(s.Undo(x.array, log))
        return [] if x.array in self._complete else [replace(x, log=log)], backward

    def _fill(self, x: s.Fill, later: object, counted: object) -> Pair:
        if x.array not in self.active:
            return [x], []
        backward: list[Statement] = [s.Fill(self.adjoint(x.array), 0.0)]
        value = x.value
        if isinstance(value, Storage) and value in self.active:
            bar = Cell()
            backward = [
                *self._each(
                    x.array.shape,
                    lambda *i: [
                        s.Load(bar, self.adjoint(x.array), i),
                        s.AddAt(self.adjoint(value), i, bar),
                    ],
                ),
                *backward,
            ]
        return [x], backward

    def _declare(self, x: s.Declare, later: object, counted: object) -> Pair:
        return [x], []

    def _increment(self, x: s.Increment, later: object, counted: bool) -> Pair:
        return [x] if counted else [], [*self._contribute(x.term, self.seed)]

    def _end(self, x: s.End, later: object, counted: bool) -> Pair:
        # Statements that run again have passed this check before.
        return [] if self._recalls else [x], []

    def _branch(self, x: s.If, later: set[Variable], counted: bool) -> Pair:
        yes, no = (self.block(item, later, counted) for item in (x.yes, x.no))
        holds = Cell()  # its value before the bodies
        backward: list[Statement] = [s.If(holds, yes[1], no[1])] if yes[1] or no[1] else []
        return [Compute(holds, SAME, (x.holds,)), s.If(holds, yes[0], no[0])], backward

    def _loop(self, x: s.For, later: set[Variable], counted: bool) -> Pair:
        inside = s.assigned(x.body)
        own = _own(x.body) | {x.index}
        handed_on = inside - own
        cells = [v for v in handed_on if isinstance(v, Cell)]
        read = s.reads(x.body) & self.active - own
        if len(cells) == len(handed_on) and not handed_on & self.active and not read & later:
            return self._at_once(x, cells, counted)
        lower, upper = (
            Cell(is_integer=True) if isinstance(v, Cell) else v for v in (x.lower, x.upper)
        )
        sums = [v for v in cells if v not in self._sums and is_sum(x.body, v)]
        pairs = ((lower, x.lower), (upper, x.upper))
        bounds = [Compute(y, SAME, (v,)) for y, v in pairs if isinstance(y, Cell)]
        self._sums.update(sums)
        saved, backward, lost = self._passes(x.body, own | self._sums, counted)
        self._sums.difference_update(sums)
        keep, restore = _copies([*sums, *lost])
        loop = replace(x, lower=lower, upper=upper)
        repeated = replace(loop, body=backward, backwards=True)
        return [*bounds, *keep, replace(loop, body=saved)], [repeated, *restore]

    def _at_once(self, x: s.For, cells: Sequence[Cell], counted: bool) -> Pair:
        """Write a loop that runs each iteration forward, and then backward."""
        with self._pass_of(x.body):
            forward, backward = self.block(x.body, set(), counted)
        (keep, restore), (before, after) = _copies(cells), _copies(cells)
        body = [*self._zeros(x.body), *forward, *keep, *backward, *restore]
        return [*before, replace(x, body=body)], after

    def _while_loop(self, x: s.While, later: object, counted: bool) -> Pair:
        count, turn = Cell("count", False, True), Cell("", is_integer=True)
        own = _own(x.body)
        saved, backward, lost = self._passes(x.body, own, counted)
        keep, restore = _copies(lost)
        condition = self._silent(x.condition, {}, True, None)
        loop = replace(x, condition=condition, body=[s.Add(count, 1.0), *saved])
        # The condition does not run backwards, but its variables are put back.
        repeated = s.For(turn, 1.0, count, backward, True)
        return [*keep, Compute(count, SAME, (0.0,)), loop], [repeated, *restore]

    @contextmanager
    def _pass_of(self, body: list[Statement]) -> Iterator[None]:
        before = self._outer
        outer = (s.reads(body) - s.assigned(body)) & self.active
        self._outer = {self.adjoint(x) for x in outer if isinstance(x, Cell)}
        yield
        self._outer = before

    def _passes(
        self, body: list[Statement], own: set[Variable], counted: bool
    ) -> tuple[list[Statement], list[Statement], list[Cell]]:
        """Write an iteration that keeps what it may overwrite, and one that puts it back, runs
        again, and then backward; and the cells that it does not put back, because it does not need
        them.
        """
        handed_on = s.assigned(body) - own
        cells = sorted((v for v in handed_on if isinstance(v, Cell)), key=lambda v: v.name)
        logged = {v: log for v, log in self._logs.items() if v in handed_on}
        tape, cursor = s.Stack(), Cell("cursor", is_integer=True)
        stacks = [*logged.values(), *([tape] if any(map(_is_expensive, s.walk(body))) else [])]
        marks = [Cell(is_integer=True) for _ in stacks]
        silent = self._silent(body, logged, counted, tape)
        before = self._recalls, self._tape, self._complete
        self._recalls, self._tape = True, (tape, cursor)
        self._complete = self._complete | handed_on & self._lasting
        with self._pass_of(body):
            forward, backward = self.block(body, set(), False)
        self._recalls, self._tape, self._complete = before
        if tape in stacks:
            forward = [Compute(cursor, SAME, (marks[-1],)), *forward, s.Release(tape, marks[-1])]
        repeated = [*self._zeros(body), *forward, *backward]
        needed = needed_variables(repeated, {*self._adjoints.values()})
        lost = {v for v in cells if v not in needed}
        stack, every = s.Stack(), [*(v for v in cells if v in needed), *marks]
        saved = [
            *(s.Mark(mark, x) for mark, x in zip(marks, stacks, strict=True)),
            *([s.Push(stack, every)] if every else []),
            *silent,
        ]
        restored = [
            *([s.Pop(stack, every)] if every else []),
            *(s.Undo(v, log, mark) for (v, log), mark in zip(logged.items(), marks, strict=False)),
        ]
        return saved, [*restored, *without(repeated, lost)], [v for v in cells if v in lost]

    def _zeros(self, body: Sequence[Statement]) -> Iterator[Statement]:
        """Yield statements that reset the adjoints of an iteration's own variables."""
        own = _own(body)
        for x in dict.fromkeys(s.variables(_outside_loops(body))):
            if x in own and x in self._adjoints:
                bar = self._adjoints[x]
                yield s.Fill(bar, 0.0) if isinstance(bar, Storage) else Compute(bar, SAME, (0.0,))

    def _silent(
        self,
        statements: Sequence[Statement],
        logs: Mapping[Storage, s.Stack],
        counted: bool,
        tape: s.Stack | None,
    ) -> list[Statement]:
        """Write statements that only log what they overwrite; keep expensive values on `tape`."""
        result = list[Statement]()
        for line in _lines(statements):
            result += self._recalled(line)
            for item in line:
                if isinstance(item, s.Store):
                    log = logs.get(item.array)
                    result += [] if item.array in self._complete else [replace(item, log=log)]
                elif isinstance(item, s.Increment):
                    result += [item] if counted else []
                elif not (self._tape and _is_expensive(item)):
                    result.append(s.mapped(item, lambda x: self._silent(x, logs, counted, tape)))
            cells = _expensive(line)
            result += [s.Push(tape, cells)] if cells and tape else []
        return result

    def _each(
        self, shape: tuple[int, ...], body: Callable[..., list[Statement]]
    ) -> list[Statement]:
        """Write statements for each element of a shape."""
        indices = [Cell("", is_integer=True) for _ in shape]
        result = body(*indices)
        for i, n in zip(reversed(indices), reversed(shape), strict=True):
            result = [s.For(i, 0.0, n - 1.0, result, most=n)]
        return result

    def set_capacities(self, statements: Sequence[Statement]) -> None:
        """Set the capacity of stacks to the most numbers that are pushed."""
        result: dict[s.Stack, int] = {}
        _count(statements, 1, result)
        for stack, size in result.items():
            stack.capacity = min(size, ROOM // len(result))


def _count(statements: Sequence[Statement], times: int, result: dict[s.Stack, int]) -> None:
    """Count the most numbers that are pushed on stacks."""
    for statement in statements:
        if isinstance(statement, s.Push):
            result[statement.stack] = result.get(statement.stack, 0) + times * len(statement.cells)
        elif isinstance(statement, s.Store) and statement.log is not None:
            result[statement.log] = result.get(statement.log, 0) + times * 2
        inner = times * statement.most if isinstance(statement, s.For) else times
        inner = times * s.MANY if isinstance(statement, s.While) else inner
        for body in s.bodies(statement):
            _count(body, inner, result)


def _copies(cells: Sequence[Cell]) -> Pair:
    """Return statements that copy cells, and that put back what they held."""
    pairs = [(v, Cell(is_integer=v.is_integer)) for v in cells]
    return [Compute(y, SAME, (v,)) for v, y in pairs], [Compute(v, SAME, (y,)) for v, y in pairs]


def _own(body: Sequence[Statement]) -> set[Variable]:
    """Return the variables that belong to one iteration."""
    cells = {v for v in s.assigned(body) if isinstance(v, Cell) and v.is_temporary}
    return cells | s.declared(body)


def _outside_loops(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements that run once in an iteration, without their bodies."""
    for statement in statements:
        if not isinstance(statement, (s.For, s.While)):
            yield s.mapped(statement, lambda _: [])
            for body in s.bodies(statement):
                yield from _outside_loops(body)


def _is_expensive(x: Statement) -> bool:
    """Return whether the value of a statement is kept for when it runs again."""
    return isinstance(x, Compute) and x.function.is_expensive and x.out.is_temporary


def _expensive(line: Sequence[Statement]) -> list[Cell]:
    """Return the cells whose values are kept."""
    return [x.out for x in line if isinstance(x, Compute) and _is_expensive(x)]


def _lines(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Group statements without bodies that follow each other, and put each other one by itself."""
    lines: list[list[Statement]] = []
    was_simple = False
    for statement in statements:
        is_simple = not [*s.bodies(statement)]
        if is_simple and was_simple:
            lines[-1].append(statement)
        else:
            lines.append([statement])
        was_simple = is_simple
    return lines


class Tangents:
    """The derivative of a source along one of its leaves.

    Attributes
    ----------
    source : Source
        Its total and its results are the tangents.
    """

    def __init__(self, source: Source, which: int) -> None:
        leaf = source.leaves[which]
        self.active = source.active([leaf])
        self._tangents: dict[Variable, Variable] = {}
        tangent: Storage = self.tangent(leaf)
        outputs = [self.tangent(x) for x in source.outputs]
        body = self.block(source.body)
        self.source = Source([*source.leaves, tangent], source.data, outputs, body)

    def tangent(self, x: V) -> V:
        """Return the variable of the tangent."""
        if x not in self._tangents:
            self._tangents[x] = x.like(f"{x.name}~", x.is_temporary)
        return self._tangents[x]  # type: ignore[return-value]

    def block(self, statements: Sequence[Statement]) -> list[Statement]:
        return [x for statement in statements for x in self._statement(statement)]

    def _of_number(self, x: s.Number) -> s.Number:
        return self.tangent(x) if x in self.active else 0.0

    def _statement(self, x: Statement) -> Iterator[Statement]:
        if isinstance(x, Compute) and x.out in self.active:
            which = tuple(i for i, argument in enumerate(x.arguments) if argument in self.active)
            tangents = [self._of_number(x.arguments[i]) for i in which]
            out: Cell = self.tangent(x.out)
            if which and not x.function.is_discrete:
                yield Compute(out, x.function.tangent(which), (*x.arguments, *tangents))
            else:
                yield Compute(out, SAME, (0.0,))
            yield x
        elif isinstance(x, s.Add) and x.out in self.active:
            if x.value in self.active:
                yield s.Add(self.tangent(x.out), self._of_number(x.value))
            yield x
        elif isinstance(x, s.Load) and x.out in self.active:
            out = self.tangent(x.out)
            if x.array in self.active:
                yield replace(x, out=out, array=self.tangent(x.array))
            else:
                yield Compute(out, SAME, (0.0,))
            yield x
        elif isinstance(x, s.Store) and x.array in self.active:
            tangent: Storage = self.tangent(x.array)
            yield replace(x, array=tangent, value=self._of_number(x.value))
            yield x
        elif isinstance(x, s.Fill) and x.array in self.active:
            is_active = isinstance(x.value, Storage) and x.value in self.active
            value = self.tangent(x.value) if is_active else 0.0  # type: ignore[type-var]
            yield s.Fill(self.tangent(x.array), value)
            yield x
        elif isinstance(x, s.Declare) and x.variable in self.active:
            yield s.Declare(self.tangent(x.variable))  # type: ignore[type-var]
            yield x
        elif isinstance(x, s.Increment):
            if x.term in self.active:
                yield s.Increment(self._of_number(x.term))
        else:
            yield s.mapped(x, self.block)
