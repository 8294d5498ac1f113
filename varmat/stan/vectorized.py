"""Loops whose iterations do not depend on each other, evaluated for all iterations at once.

`for (n in 1:N) y[n] ~ normal(a[group[n]], s);` is a density of whole arrays. Such a loop is found
from its text: the variable of the loop holds all its values, the *lanes*, and every scalar that
depends on it is an array with an element for each iteration. All other loops run one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Self

import numpy as np

import varmat as vm
from varmat.core.tape import current_tape
from varmat.programs.run import has_native
from varmat.stan import functions, types
from varmat.stan import syntax as s
from varmat.stan.running import Executed, Frame, StanEvaluated, dropping, in_sequence
from varmat.stan.translate import Expressions
from varmat.stan.values import SCALARS, StanValue, owned, put, receiving
from varmat.stan.vectorized_expressions import (
    OF_ONE_AXIS,
    STACKED,
    BoundError,
    VectorizedExpressions,
    draws,
    elementwise_density,
    merged,
    own_places,
    places_of,
    repeated,
    selected,
)

# Loops of fewer iterations are run one by one.
FEW = 4


def check_state(node: s.SyntaxNode, endings: tuple[str, ...]) -> None:
    """Raise if this is a call of `target`, or of a function with such an end of its name, which
    does more than to return a value.
    """
    if isinstance(node, s.Call) and (node.name == "target" or node.name.endswith(endings)):
        raise BoundError(f"`{node.name}` does more than to return a value", node.at)


def check_independent(loop: s.For, own: Collection[str]) -> None:
    """Raise unless every iteration assigns only to its own elements and its own variables."""
    nodes = [*s.walk(loop.body)]
    targets: dict[str, str] = {}
    for node in nodes:
        is_routine = isinstance(node, s.Call) and node.definition is not None
        check_state(node, WITH_STATE if is_routine else ("_lp", "_jacobian"))
        if not isinstance(node, s.Assignment):
            continue
        if s.root(node.target) in own:
            continue
        name = _written_element(node.target, loop.name)
        if targets.setdefault(name, repr(node.target)) != repr(node.target):
            raise BoundError(f"an iteration assigns to two elements of `{name}`", node.at)
    reads = {id(x.base) for x in nodes
             if isinstance(x, s.Indexed) and isinstance(x.base, s.VariableName)
             and repr(x) == targets.get(x.base.name)}  # fmt: skip
    for node in nodes:
        if isinstance(node, s.VariableName) and node.name in targets and id(node) not in reads:
            raise BoundError(f"an iteration reads `{node.name}`, to which others assign", node.at)


def are_apart(loop: s.For) -> bool:
    """Tell whether the iterations of a loop only add to the target, and read nothing else of each
    other. Iterations that read the target differ, because it gets more terms.
    """
    return assigned_in(loop.body) <= declared_in(loop.body)


def scratch_in(loop: s.For) -> dict[str, s.For]:
    """Find outer containers that each iteration fills before reading, and the loops that do."""
    result: dict[str, s.For] = {}
    met: set[str] = set()
    for x in loop.body:
        mentioned = {*s.names_in(x)}
        if isinstance(x, s.For):
            result.update((name, x) for name in mentioned - met if _fills(x, name))
        met |= mentioned
    return result


def collapsible_in(loop: s.For, written: Collection[str]) -> list[s.For]:
    """Find inner loops whose iterations may be iterations of the outer one, for pairs of indices:
    apart from data they read numbers that are the same in all, and elements by both indices, in
    order, so that nothing is gathered. The containers of such elements are among those `written`.
    """
    local, result = declared_in(loop.body), []
    for w in s.walk(loop.body):
        if not isinstance(w, s.For):
            continue
        pair, own = [loop.name, w.name], declared_in(w.body)
        reads = [x for x in s.walk(w.body) if isinstance(x, s.Expression) and not x.data]
        gathers = any(
            {*s.names_in(x.indices)} & {*pair, *local}
            and not (s.root(x) in written and [getattr(i, "name", "") for i in x.indices] == pair)
            for x in reads
            if isinstance(x, s.Indexed)
        )
        calls = any(isinstance(x, s.Call) and x.definition is not None for x in reads)
        is_apart = assigned_in(w.body) <= own and not {*s.names_in(reads)} & (local - own)
        if is_apart and not gathers and not calls:
            result.append(w)
    return result


def _fills(loop: s.For, name: str) -> bool:
    """Tell whether a loop only assigns to the elements of a container, one in each iteration."""
    element = repr(
        s.Indexed(loop.at, s.VariableName(loop.at, name), [s.VariableName(loop.at, loop.name)])
    )
    filled = [
        x
        for x in loop.body
        if isinstance(x, s.Assignment) and not x.operator and repr(x.target) == element
    ]
    return len(filled) == [*s.names_in(loop.body)].count(name) == 1


def _written_element(target: s.Expression, name: str) -> str:
    """Return the variable whose element a target is, which must differ between iterations."""
    if isinstance(target, s.Indexed) and isinstance(target.base, s.VariableName):
        plain = all(isinstance(i, s.Expression) and i.type == types.INT for i in target.indices)
        own = any(isinstance(i, s.VariableName) and i.name == name for i in target.indices)
        if plain and own and target.type in SCALARS:
            return target.base.name
    raise BoundError(f"all iterations assign to the same part of `{s.root(target)}`", target.at)


class VectorizedLoop(VectorizedExpressions):
    """Translates the body of a loop, or of a function that it calls, for all its iterations.

    Parameters
    ----------
    translator : Expressions
        Translates expressions that are the same in all iterations.
    node : For or FunctionDefinition
    count : int
        The slot for the number of iterations in a frame.
    varying : collection of str
        The variables from outside that differ between iterations.
    scratch : dict of str to For
        Containers from outside that each pass fills, with the loops that do.
    collapsed : list of For
        Loops inside whose iterations become iterations of this one.
    """

    def __init__(
        self,
        translator: Expressions,
        node: s.For | s.FunctionDefinition,
        count: int,
        varying: Collection[str],
        scratch: Mapping[str, s.For] = MappingProxyType({}),
        collapsed: Sequence[s.For] = (),
    ) -> None:
        super().__init__(translator, count, {*varying, *scratch})
        self._collapsed = {id(x) for x in collapsed}
        self._varying.update(x.name for x in collapsed)
        self.calls: tuple[s.FunctionDefinition, ...] = ()
        # Whether data split the iterations again in each iteration of an inner loop.
        self._splits_again = False
        self._own = declared_in(node.body) | {*scratch}
        # The slots of variables whose elements belong to single iterations.
        self._outer, before = set[int](), 0
        self._scratch = {translator.place(name)[0]: x for name, x in scratch.items()}
        while before != len(self._varying):
            before = len(self._varying)
            self._varying.update(self._assigned(node))

    @classmethod
    def of_loop(
        cls, translator: Expressions, loop: s.For, count: int, collapsed: Sequence[s.For] = ()
    ) -> Self:
        own = declared_in(loop.body)
        scratch = {
            name: x
            for name, x in scratch_in(loop).items()
            if name not in own and translator.place(name)[1] in OF_ONE_AXIS
        }
        check_independent(loop, {*own, *scratch})
        return cls(translator, loop, count, {loop.name}, scratch, collapsed)

    def _assigned(self, node: s.For | s.FunctionDefinition) -> Iterator[str]:
        """Yield the variables of an iteration to which something is assigned that varies."""
        for x in s.walk(node.body):
            if (isinstance(x, s.Declaration) and self.varies(x.value)) or (
                isinstance(x, s.For) and self.varies([x.lower, x.upper])
            ):
                yield x.name
            elif isinstance(x, s.If) and self.varies(x.condition):
                yield from assigned_in([x.body, x.otherwise]) & self._own
            elif (
                isinstance(x, s.Assignment)
                and s.root(x.target) in self._own
                and self.varies([x.target, x.value])
            ):
                yield s.root(x.target)

    # --- statements ---

    def whole(self, loop: s.For) -> Callable[[Frame], bool]:
        """Translate the loop; the function returns False, and does nothing, if it has to be run
        iteration by iteration.
        """
        body, count = self.block(loop), self._count
        scratch: list[tuple[int, StanEvaluated, StanEvaluated]] = []
        for slot, x in self._scratch.items():
            if self._own & {*s.names_in([x.lower, x.upper])}:
                raise BoundError("the bounds of a loop inside differ between iterations", x.at)
            lower, upper = map(self._translator.expression, (x.lower, x.upper))
            scratch.append((slot, lower, upper))

        def run(f: Frame) -> bool:
            # Recorded, there would be steps for each part in each pass of the loop inside.
            if self._splits_again and current_tape().watch is not None and has_native():
                return False
            if any(lower(f) != 1 or upper(f) != f[slot].size for slot, lower, upper in scratch):
                return False
            for slot, *_ in scratch:
                f[slot] = np.full((f[count], f[slot].size), np.nan)
            body(f)
            for slot, *_ in scratch:
                f[slot] = owned(f[slot][-1])
            return True

        return run

    def statement(self, statement: s.Statement) -> Executed:
        name = _STATEMENTS.get(type(statement))
        if name is None:
            kind = type(statement).__name__.lower()
            raise BoundError(
                f"a statement of the kind {kind!r} is run iteration by iteration", statement.at
            )
        result: Executed = getattr(self, name)(statement)
        return result

    def declaration(self, d: s.Declaration) -> Executed:
        kind = d.declared.unsized
        if (kind not in SCALARS and kind not in OF_ONE_AXIS) or self.varies(_sizes(d)):
            raise BoundError(f"each iteration has a {kind} `{d.name}` of its own", d.at)
        value = (
            self._translator.unset(d.declared) if d.value is None else self.promoted(d.value, kind)
        )
        slot = self._translator.declare(d.name, kind)
        if d.name in self._varying:
            self._slots.add(slot)
        return self._assigned_whole(d.name, value, d.value)

    def _assigned_whole(self, name: str, value: StanEvaluated, e: s.Expression | None) -> Executed:
        """Return the function that assigns the value of an expression to a variable of the loop
        body.
        """
        count, has_lanes = self._count, name in self._varying
        slot, kind = self._translator.place(name)
        axes = (0 if kind in SCALARS else 1) + has_lanes
        # A batch of values may be a view of a container that is written into later.
        copies = kind not in SCALARS or (e is not None and self._translator.may_share(e))

        def run(f: Frame) -> None:
            x = value(f)
            if np.ndim(x) < axes:
                x = repeated(x, f[count])
            f[slot] = owned(x) if copies else x

        return run

    def assignment(self, a: s.Assignment) -> Executed:
        combined = s.Binary(a.at, a.operator, a.target, a.value) if a.operator else a.value
        if a.operator:
            combined.type = a.target.type
        value = self.promoted(combined, a.target.type)
        if isinstance(a.target, s.VariableName):
            return self._assigned_whole(a.target.name, value, combined)
        assert isinstance(a.target, s.Indexed)
        assert isinstance(a.target.base, s.VariableName)
        slot, _ = self._translator.place(a.target.base.name)
        indices = self.indices(a.target.indices)
        of_lanes = a.target.base.name in self._varying
        if a.target.type not in SCALARS:
            raise BoundError(f"an iteration assigns a whole {a.target.type}", a.at)
        if not of_lanes:
            self._outer.add(slot)
        matvar = not of_lanes and a.target.base.name in self._translator.matvars

        def run(f: Frame) -> None:
            x, before = value(f), f[slot]
            after = f[slot] = receiving(before, x, matvar)
            chosen = indices(f)
            put(after, own_places(after, *chosen) if of_lanes else places_of(after, chosen), x)

        return run

    def distribution(self, d: s.Tilde) -> Executed:
        arguments = [d.value, *d.arguments]
        if d.truncated is not None:
            return self.increment(d.truncated)
        if d.lower is not None or d.upper is not None:
            return self._added([*arguments, d.lower, d.upper], self._truncated(d, arguments))
        if d.definition is None:
            return self._added(arguments, self._density(d.function, arguments, True, d.at))
        call = s.Call(d.at, d.name, arguments)
        call.type, call.definition = types.REAL, d.definition
        return self.increment(s.TargetIncrement(d.at, call))

    def _truncated(self, d: s.Tilde, full: Sequence[s.Expression]) -> StanEvaluated:
        if any(e.type not in SCALARS for e in full):
            raise BoundError("the truncated density is not a density of numbers", d.at)
        arguments, density = [*map(self.expression, full)], functions.truncated(d.function)
        ends = [None if e is None else self.expression(e) for e in (d.lower, d.upper)]

        def term(f: Frame) -> StanValue:
            lower, upper = (None if end is None else end(f) for end in ends)
            return density(lower, upper, *[argument(f) for argument in arguments])

        return term

    def _density(
        self, name: str, full: Sequence[s.Expression], drops: bool, at: s.Position
    ) -> StanEvaluated:
        """Translate the sum of a density over all iterations."""
        if name in STACKED:
            if any(e.type not in kinds for e, kinds in zip(full, STACKED[name], strict=True)):
                raise BoundError("an iteration has a density of several observations", at)
            density, arguments = getattr(vm, name), [*map(self.expression, full)]
        else:
            density, arguments = elementwise_density(name, at), self.alike(full)
        dropped = drops and dropping(density, self._translator.of_variables(full))
        differs = self.varies(full)

        def summed(f: Frame) -> StanValue:
            values, propto = [x(f) for x in arguments], f[0].propto and dropped
            if f[self._mask] is None:
                return density(*values, propto=propto)
            terms = density.pointwise(*values, propto=propto)
            # The first axis is the batch axis, if the terms differ.
            axis = -1 if differs else None
            return self._counted(f, np.sum(terms, axis) if np.ndim(terms) > differs else terms)

        return summed

    def _counted(self, f: Frame, terms: StanValue) -> StanValue:
        """Sum terms over the iterations that count."""
        mask = f[self._mask]
        return np.sum(terms if mask is None else selected(mask, terms, 0.0))

    def _added(self, arguments: object, term: StanEvaluated) -> Executed:
        """Return the function that adds a term; `count` times if all iterations have the same."""
        differs, count = self.varies(arguments), self._count

        def run(f: Frame) -> None:
            is_sum = differs or f[self._mask] is not None
            f[0].terms.append(term(f) if is_sum else f[count] * term(f))

        return run

    def increment(self, t: s.TargetIncrement) -> Executed:
        if t.value.type not in SCALARS:
            raise BoundError(f"the target is given a whole {t.value.type}", t.at)
        if isinstance(t.value, s.Call) and t.value.definition is None:
            name = t.value.name.replace("_lup", "_lp")
            if name in STACKED:
                arguments = t.value.arguments
                return self._added(
                    arguments, self._density(name, arguments, name != t.value.name, t.at)
                )
        value = self.expression(t.value)
        return self._added(t.value, lambda f: self._counted(f, value(f)))

    def block(self, b: s.Braces | s.For) -> Executed:
        with self._translator.scope():
            body = without_continue(b.body)
            return in_sequence([(self.statement(x), x.at) for x in body])

    def loop(self, w: s.For) -> Executed:
        """Translate an inner loop: one with the same bounds in all iterations runs step by step."""
        if id(w) in self._collapsed or self.varies([w.lower, w.upper]):
            return self._collapse(w)
        lower, upper = map(self._translator.expression, (w.lower, w.upper))
        branches = [x.condition for x in s.walk(w.body) if isinstance(x, s.If)]
        self._splits_again |= any(x.data and self.varies(x) for x in branches)
        with self._translator.scope():
            slot = self._translator.declare(w.name, types.INT)
            body = self.block(s.Braces(w.at, w.body))

        def run(f: Frame) -> None:
            for i in range(lower(f), upper(f) + 1):
                f[slot] = i
                body(f)

        return run

    def _collapse(self, w: s.For) -> Executed:
        """Translate an inner loop by batching all its iterations in all of the outer ones."""
        if assigned_in(w.body) - declared_in(w.body):
            raise BoundError("a loop inside whose bounds differ hands values on", w.at)
        lower, upper = self.full(w.lower, types.INT), self.full(w.upper, types.INT)
        slots, count = {*self._slots}, self._count
        with self._translator.scope():
            index = self._translator.declare(w.name, types.INT)
            self._slots.add(index)
            body = self.block(s.Braces(w.at, w.body))

        def run(f: Frame) -> None:
            first = lower(f)
            times = np.maximum(upper(f) - first + 1, 0)
            of = np.repeat(np.arange(f[count]), times)
            if not len(of):
                return
            inner = self.of_passes(f, slots, of)
            inner[index] = np.arange(len(of)) - (np.cumsum(times) - times - first)[of]
            body(inner)
            for slot in self._outer:
                f[slot] = inner[slot]

        return run

    def conditional(self, i: s.If) -> Executed:
        if self.varies(i.condition):
            return self._by_mask(i)
        condition = self._translator.expression(i.condition)
        body, otherwise = (self.block(s.Braces(i.at, x)) for x in (i.body, i.otherwise))
        return lambda f: body(f) if condition(f) else otherwise(f)

    def slot(self, name: str) -> int:
        """Return the slot for the values that an iteration assigns to a variable."""
        return self._translator.place(name)[0]

    def _by_mask(self, i: s.If) -> Executed:
        """Run branches that differ between iterations, each for its own iterations."""
        if not i.condition.data:
            self._check_maskable(i)
        assigned = (assigned_in([i.body, i.otherwise]) & self._own) - declared_in(i)
        slots = [self.slot(name) for name in assigned]
        branches = self.branches(i.condition)
        bodies = [self.block(s.Braces(i.at, x)) for x in (i.body, i.otherwise)]

        def run(f: Frame) -> None:
            ran = []
            for body, (indices, inner) in zip(bodies, branches(f), strict=True):
                if inner:
                    body(inner)
                    ran.append((indices, inner))
                    for slot in self._outer:
                        f[slot] = inner[slot]
            for slot in slots:
                f[slot] = merged([(positions, inner[slot]) for positions, inner in ran])

        return run

    def _check_maskable(self, i: s.If) -> None:
        """Raise unless a branch on parameters can be computed for all iterations and masked."""
        if draws([i.body, i.otherwise]):
            raise BoundError("an iteration draws random numbers in a branch on parameters", i.at)
        for node in s.walk([i.body, i.otherwise]):
            if isinstance(node, s.Assignment) and s.root(node.target) not in self._own:
                text = f"an iteration assigns to `{s.root(node.target)}` in a branch on parameters"
                raise BoundError(text, node.at)
            is_whole = isinstance(node, s.Tilde) and (
                node.name in STACKED or node.lower is not None or node.upper is not None
                or node.definition is not None
            )  # fmt: skip
            if is_whole or (isinstance(node, s.Call) and node.name in STACKED):
                raise BoundError("a density in a branch on parameters has no terms", node.at)

    def routine(self, e: s.Call, definition: s.FunctionDefinition) -> StanEvaluated:
        """Translate a call of a function of the program, and the body of that function."""
        if definition in self.calls or not definition.body:
            raise BoundError(f"`{e.name}` calls itself", e.at)
        translator = self._translator.for_function(definition)
        for argument in definition.arguments:
            translator.declare(argument.name, argument.type)
        pairs = [*zip(definition.arguments, e.arguments, strict=True)]
        varying = [x.name for x, argument in pairs if self.varies(argument)]
        inner = VectorizedLoop(translator, definition, translator.declare("", types.INT), varying)
        inner.calls = (*self.calls, definition)
        value = inner.result(definition.body, e)
        size, count = translator.size - len(pairs) - 2, self._count
        arguments = [self.promoted(argument, x.type) for x, argument in pairs]
        keeps = self._translator.routine(definition).keeps and e.name == definition.name

        def call(f: Frame) -> StanValue:
            before = f[0].propto
            f[0].propto = before and not keeps
            try:
                return value([f[0], *[x(f) for x in arguments], f[count], *[None] * size])
            finally:
                f[0].propto = before

        return call

    def result(self, body: Sequence[s.Statement], e: s.Call) -> StanEvaluated:
        """Translate the body of a function into its result in all iterations."""
        k, x = next(
            (k, item)
            for k, item in enumerate(body)
            if any(isinstance(inner, s.Return) for inner in s.walk(item))
        )
        with self._translator.scope():
            steps = in_sequence([(self.statement(before), before.at) for before in body[:k]])
            if isinstance(x, s.Return) and x.value is not None:
                value = self.full(x.value, e.type)
            elif isinstance(x, s.If):
                remainder = body[k + 1 :]
                yes, no = (self.result([*part, *remainder], e) for part in (x.body, x.otherwise))
                value = self.either(x.condition, yes, no)
            else:
                raise BoundError(f"`{e.name}` returns from within a loop", x.at)

        def run(f: Frame) -> StanValue:
            steps(f)
            return value(f)

        return run


def vectorized(
    translator: Expressions, loop: s.For, count: int, written: Collection[str]
) -> Callable[[Frame], bool]:
    """Translate a loop for all iterations; inner loops collapse into it where they may. The
    function returns False, and does nothing, if it has to be run iteration by iteration.
    """
    collapsed = collapsible_in(loop, written)
    if collapsed:
        with suppress(BoundError):
            return VectorizedLoop.of_loop(translator, loop, count, collapsed).whole(loop)
    return VectorizedLoop.of_loop(translator, loop, count).whole(loop)


def without_continue(body: Sequence[s.Statement]) -> list[s.Statement]:
    """Move the statements after a `continue` at the end of a branch into the other branch."""
    for k, x in enumerate(body):
        if isinstance(x, s.If) and (x.body or x.otherwise):
            remainder = [*body[k + 1 :]]
            if x.body and isinstance(x.body[-1], s.Continue):
                yes, no = x.body[:-1], [*x.otherwise, *remainder]
            elif x.otherwise and isinstance(x.otherwise[-1], s.Continue):
                yes, no = [*x.body, *remainder], x.otherwise[:-1]
            else:
                continue
            return [*body[:k], s.If(x.at, x.condition, without_continue(yes), without_continue(no))]
    return [*body]


def declared_in(statements: object) -> set[str]:
    """Return the names of the variables that statements declare."""
    return {node.name for node in s.walk(statements) if isinstance(node, s.Declaration)}


def assigned_in(statements: object) -> set[str]:
    """Return the variables that statements assign, as a whole or in part."""
    return {s.root(node.target) for node in s.walk(statements) if isinstance(node, s.Assignment)}


def _sizes(d: s.Declaration) -> list[s.Expression]:
    return [*d.declared.sizes, *d.declared.dimensions]


# How the names of functions end that do more than to return a value.
WITH_STATE = ("_lp", "_rng", "_jacobian")
# The names of methods.
_STATEMENTS = {
    s.Declaration: "declaration",
    s.Assignment: "assignment",
    s.Tilde: "distribution",
    s.TargetIncrement: "increment",
    s.Braces: "block",
    s.For: "loop",
    s.If: "conditional",
}
