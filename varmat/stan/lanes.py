"""Loops whose passes do not depend on each other, evaluated for all passes at once.

`for (n in 1:N) y[n] ~ normal(a[group[n]], s);` is a density of whole arrays. Such a loop is found
from its text: the variable of the loop holds all its values, the *lanes*, and every scalar that
depends on it is an array with a lane for each pass. All other loops are run pass by pass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import varmat as vm
from varmat.densities.univariate import Univariate
from varmat.stan import functions, operators, types
from varmat.stan import syntax as s
from varmat.stan.running import in_sequence
from varmat.stan.types import ArrayType
from varmat.stan.values import (
    MATRICES,
    ROWS,
    SCALARS,
    VECTORS,
    StanValue,
    innermost,
    owned,
    place,
    promotion,
    put,
    receiving,
)

if TYPE_CHECKING:
    from varmat.stan.evaluate import Translator
    from varmat.stan.running import Evaluation, Executed, Frame, StanEvaluated

__all__: list[str] = []

# Containers of one axis, which have the lanes in front of it.
_VECTORS = VECTORS | ROWS | {ArrayType(types.REAL)}
# Operators in a row that are still translated for all passes, one inside of the other.
LONG = 100
# Operators that act on each lane alone.
_BY_LANE = frozenset({"+", "-", "*", "/", "^", ".*", "./", ".^"})


class BoundError(Exception):
    """A loop must be run pass by pass: why, and where."""

    def __init__(self, reason: str, at: s.Position) -> None:
        super().__init__(reason)
        self.at = at


def check_independent(loop: s.For, own: Collection[str]) -> None:
    """Raise unless every pass assigns only to elements of its own, and to variables of its own."""
    nodes = [*s.walk(loop.body)]
    targets: dict[str, str] = {}
    for each in nodes:
        if not isinstance(each, s.Assignment):
            continue
        if s.root(each.target) in own:
            continue
        name = _written_element(each.target, loop.name)
        if targets.setdefault(name, repr(each.target)) != repr(each.target):
            raise BoundError(f"a pass assigns to two elements of `{name}`", each.at)
    reads = {id(each.base) for each in nodes
             if isinstance(each, s.Indexed) and isinstance(each.base, s.VariableName)
             and repr(each) == targets.get(each.base.name)}  # fmt: skip
    for each in nodes:
        if isinstance(each, s.VariableName) and each.name in targets and id(each) not in reads:
            raise BoundError(f"a pass reads `{each.name}`, to which others assign", each.at)


def scratch_in(loop: s.For) -> dict[str, s.For]:
    """Containers from outside that each pass fills before it reads them, with the loops that do."""
    found: dict[str, s.For] = {}
    met: set[str] = set()
    for each in loop.body:
        mentioned = {*s.names_in(each)}
        if isinstance(each, s.For):
            found.update((name, each) for name in mentioned - met if _fills(each, name))
        met |= mentioned
    return found


def _fills(loop: s.For, name: str) -> bool:
    """Whether a loop only assigns to the elements of a container, one in each pass."""
    element = repr(
        s.Indexed(loop.at, s.VariableName(loop.at, name), [s.VariableName(loop.at, loop.name)])
    )
    filled = [
        each
        for each in loop.body
        if isinstance(each, s.Assignment) and not each.operator and repr(each.target) == element
    ]
    return len(filled) == [*s.names_in(loop.body)].count(name) == 1


def _written_element(target: s.Expression, name: str) -> str:
    """The variable into which an element is assigned that belongs to the pass alone."""
    if isinstance(target, s.Indexed) and isinstance(target.base, s.VariableName):
        plain = all(isinstance(i, s.Expression) and i.type == types.INT for i in target.indices)
        own = any(isinstance(i, s.VariableName) and i.name == name for i in target.indices)
        if plain and own and target.type in SCALARS:
            return target.base.name
    raise BoundError(f"all passes assign to the same part of `{s.root(target)}`", target.at)


class Lanes:
    """Translates the body of a loop for all its passes.

    Parameters
    ----------
    translator : Translator
        Translates what is the same in all passes.
    loop : For
    count : int
        The place of the number of passes in a frame.
    """

    def __init__(self, translator: Translator, loop: s.For, count: int) -> None:
        self._translator, self._count = translator, count
        self._own = {each.name for each in s.walk(loop.body) if isinstance(each, s.Declaration)}
        scratch = {
            name: each
            for name, each in scratch_in(loop).items()
            if name not in self._own and translator.place(name)[1] in _VECTORS
        }
        self._own |= {*scratch}
        self._scratch = {translator.place(name)[0]: each for name, each in scratch.items()}
        check_independent(loop, self._own)
        # The places of what has lanes, and of variables whose elements belong to single passes.
        self._slots, self._outer = {translator.place(loop.name)[0]}, set[int]()
        self._slots |= {*self._scratch}
        self._varying, before = {loop.name, *scratch}, 0
        while before != len(self._varying):
            before = len(self._varying)
            self._varying.update(self._assigned(loop))

    def _assigned(self, loop: s.For) -> Iterator[str]:
        """The variables of a pass that are given something that varies."""
        for each in s.walk(loop.body):
            if isinstance(each, s.Declaration) and self.varies(each.value):
                yield each.name
            elif (
                isinstance(each, s.Assignment)
                and s.root(each.target) in self._own
                and self.varies([each.target, each.value])
            ):
                yield s.root(each.target)

    def varies(self, e: object) -> bool:
        """Whether an expression differs between passes."""
        return any(name in self._varying for name in s.names_in(e))

    # --- statements ---

    def whole(self, loop: s.For) -> Callable[[Frame], bool]:
        """The function of the loop: False, and nothing done, if it must be run pass by pass."""
        body, count = self.block(loop), self._count
        scratch: list[tuple[int, StanEvaluated, StanEvaluated]] = []
        for slot, each in self._scratch.items():
            if self._own & {*s.names_in([each.lower, each.upper])}:
                raise BoundError("the bounds of a loop inside differ between passes", each.at)
            lower, upper = map(self._translator.expression, (each.lower, each.upper))
            scratch.append((slot, lower, upper))

        def run(f: Frame) -> bool:
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
        make = _STATEMENTS.get(type(statement))
        if make is None:
            kind = type(statement).__name__.lower()
            raise BoundError(f"a statement of the kind {kind!r} is run pass by pass", statement.at)
        return make(self, statement)

    def declaration(self, d: s.Declaration) -> Executed:
        kind = d.declared.unsized
        if (kind not in SCALARS and kind not in _VECTORS) or self.varies(_sizes(d)):
            raise BoundError(f"each pass has a {kind} `{d.name}` of its own", d.at)
        value = (
            self._translator.unset(d.declared) if d.value is None else self.promoted(d.value, kind)
        )
        slot = self._translator.declare(d.name, kind)
        if d.name in self._varying:
            self._slots.add(slot)
        return self._whole(slot, d.name, kind, value)

    def _whole(self, slot: int, name: str, kind: types.Type, value: StanEvaluated) -> Executed:
        """The function that assigns to a variable of the pass."""
        count, has_lanes = self._count, name in self._varying
        axes = (0 if kind in SCALARS else 1) + has_lanes

        def run(f: Frame) -> None:
            x = value(f)
            if np.ndim(x) < axes:
                x = x + np.zeros((f[count], *np.shape(x)))
            f[slot] = x if kind in SCALARS else owned(x)

        return run

    def assignment(self, a: s.Assignment) -> Executed:
        combined = s.Binary(a.at, a.operator, a.target, a.value) if a.operator else a.value
        if a.operator:
            combined.type = a.target.type
        value = self.promoted(combined, a.target.type)
        if isinstance(a.target, s.VariableName):
            slot, kind = self._translator.place(a.target.name)
            return self._whole(slot, a.target.name, kind, value)
        assert isinstance(a.target, s.Indexed)
        assert isinstance(a.target.base, s.VariableName)
        slot, _ = self._translator.place(a.target.base.name)
        indices = self.indices(a.target.indices)
        of_lanes = a.target.base.name in self._varying
        if a.target.type not in SCALARS:
            raise BoundError(f"a pass assigns a whole {a.target.type}", a.at)
        if not of_lanes:
            self._outer.add(slot)
        matvar = not of_lanes and a.target.base.name in self._translator.matvars

        def run(f: Frame) -> None:
            x, before = value(f), f[slot]
            after = f[slot] = receiving(before, x, matvar)
            chosen = indices(f)
            put(after, _own_places(after, *chosen) if of_lanes else _places(after, chosen), x)

        return run

    def distribution(self, d: s.Tilde) -> Executed:
        whole = [d.value, *d.arguments]
        if d.definition is not None or d.lower is not None or d.upper is not None:
            raise BoundError("the distribution is truncated, or a function of the program", d.at)
        density = _elementwise_density(d.function, d.at)
        arguments = self._alike(whole)
        differs, count = self.varies(whole), self._count

        def run(f: Frame) -> None:
            values = [each(f) for each in arguments]
            term = density(*values, propto=f[0].propto)
            f[0].terms.append(term if differs else f[count] * term)

        return run

    def increment(self, t: s.TargetIncrement) -> Executed:
        if t.value.type not in SCALARS:
            raise BoundError(f"the target is given a whole {t.value.type}", t.at)
        value, differs, count = self.expression(t.value), self.varies(t.value), self._count

        def run(f: Frame) -> None:
            x = value(f)
            f[0].terms.append(np.sum(x) if differs else f[count] * x)

        return run

    def block(self, b: s.Braces | s.For) -> Executed:
        with self._translator.scope():
            return in_sequence([(self.statement(each), each.at) for each in b.body])

    def loop(self, w: s.For) -> Executed:
        """A loop inside, whose bounds are the same in all passes, is run pass by pass."""
        if self.varies([w.lower, w.upper]):
            raise BoundError("the bounds of a loop inside differ between passes", w.at)
        lower, upper = map(self._translator.expression, (w.lower, w.upper))
        with self._translator.scope():
            slot = self._translator.declare(w.name, types.INT)
            body = self.block(s.Braces(w.at, w.body))

        def run(f: Frame) -> None:
            for i in range(lower(f), upper(f) + 1):
                f[slot] = i
                body(f)

        return run

    def conditional(self, i: s.If) -> Executed:
        if self.varies(i.condition):
            return self._by_mask(i)
        condition = self._translator.expression(i.condition)
        body, otherwise = (self.block(s.Braces(i.at, each)) for each in (i.body, i.otherwise))
        return lambda f: body(f) if condition(f) else otherwise(f)

    def _by_mask(self, i: s.If) -> Executed:
        """Branches on data that differ between passes: each is run for its lanes."""
        assigned = {
            s.root(each.target)
            for each in s.walk([i.body, i.otherwise])
            if isinstance(each, s.Assignment)
        }
        inside = {each.name for each in s.walk(i) if isinstance(each, s.Declaration)}
        if not i.condition.data or (assigned & self._own) - inside:
            raise BoundError("a condition differs between passes, and depends on parameters", i.at)
        condition = self.expression(i.condition)
        outer = {*self._slots}
        bodies = [self.block(s.Braces(i.at, each)) for each in (i.body, i.otherwise)]
        count = self._count

        def run(f: Frame) -> None:
            holds = np.asarray(condition(f), bool)
            for body, lanes in zip(bodies, (holds, ~holds), strict=True):
                places = np.flatnonzero(lanes)
                if not len(places):
                    continue
                inner = f.copy()
                inner[count] = len(places)
                for slot in outer:
                    inner[slot] = None if f[slot] is None else f[slot][places]
                body(inner)
                for slot in self._outer:
                    f[slot] = inner[slot]

        return run

    # --- expressions ---

    def _alike(self, whole: Sequence[s.Expression]) -> list[StanEvaluated]:
        """The functions of arguments of a density, with scalars beside vectors of lanes."""
        if any(e.type not in SCALARS and e.type not in _ROWS_OF_DATA for e in whole):
            raise BoundError("a density takes matrices, or arrays of vectors", whole[0].at)
        arguments = [*map(self.expression, whole)]
        if all(e.type in SCALARS for e in whole):
            return arguments
        return [self._spread(e, each) for e, each in zip(whole, arguments, strict=True)]

    def expression(self, e: s.Expression) -> StanEvaluated:
        """The function of an expression: an array with the lanes in front if it varies."""
        if not self.varies(e):
            return self._translator.expression(e)
        make = _EXPRESSIONS.get(type(e))
        if make is None or (e.type not in SCALARS and e.type not in _ROWS_OF_DATA):
            raise BoundError(f"a {e.type} differs between passes", e.at)
        return make(self, e)

    def promoted(self, e: s.Expression, kind: types.Type) -> StanEvaluated:
        evaluate, promote = self.expression(e), promotion(e.type, kind)
        return evaluate if promote is None else lambda f: promote(evaluate(f))

    def variable(self, e: s.VariableName) -> StanEvaluated:
        slot, _ = self._translator.place(e.name)
        return lambda f: f[slot]

    def unary(self, e: s.Unary) -> StanEvaluated:
        operand = self.expression(e.operand)
        if e.operator == "!":
            return lambda f: operand(f) == 0
        return (lambda f: -operand(f)) if e.operator == "-" else operand

    def binary(self, e: s.Binary) -> StanEvaluated:
        if len(s.in_a_row(e)) > LONG:
            raise _lacking(f"form of more than {LONG} operators in a row", e)
        left, right = self.expression(e.left), self.expression(e.right)
        kinds = e.left.type, e.right.type
        if e.operator == "*" and kinds[0] in ROWS and kinds[1] in VECTORS:
            if self.varies(e.left):
                if not self.varies(e.right):
                    return lambda f: left(f) @ right(f)
                return lambda f: np.sum(left(f) * right(f), -1)
            return lambda f: right(f) @ left(f)
        if e.operator in _COMPARISONS and all(kind in SCALARS for kind in kinds):
            compare = _COMPARISONS[e.operator]
            return lambda f: compare(left(f), right(f))
        if e.operator not in _BY_LANE or any(kind in MATRICES for kind in kinds):
            raise _lacking(f"operator `{e.operator}` of {kinds[0]} and {kinds[1]}", e)
        if kinds == (types.INT, types.INT):
            if e.operator not in "+-*":
                raise _lacking(f"operator `{e.operator}` of integers", e)
        elif e.type in _VECTORS:
            left, right = self._spread(e.left, left), self._spread(e.right, right)
            if e.operator == "*" and all(kind in _VECTORS for kind in kinds):
                raise _lacking("outer product", e)
        function = _ARITHMETIC[e.operator]
        return lambda f: function(left(f), right(f))

    def _spread(self, e: s.Expression, evaluate: StanEvaluated) -> StanEvaluated:
        """A scalar of each lane as one that acts on all elements of a vector of the lane."""
        if e.type in SCALARS and self.varies(e):
            return lambda f: evaluate(f)[:, None]
        return evaluate

    def index(self, e: s.Indexed) -> StanEvaluated:
        if any(isinstance(i, s.Range) or i.type != types.INT for i in e.indices):
            raise _lacking("range as an index", e)
        if isinstance(innermost(e.base.type), types.Tuple):
            raise _lacking("index of tuples", e)
        if self.varies(e.base):
            if e.base.type not in _VECTORS or len(e.indices) != 1:
                raise _lacking(f"index of a {e.base.type} of each pass", e)
            own, at = self.expression(e.base), self.indices(e.indices)

            def read_own(f: Frame) -> StanValue:
                x = own(f)
                return x[_own_places(x, *at(f))]

            return read_own
        base, indices = self._translator.expression(e.base), self.indices(e.indices)

        def read(f: Frame) -> StanValue:
            x = base(f)
            return x[_places(x, indices(f))]

        return read

    def indices(
        self, indices: Sequence[s.Expression | s.Range]
    ) -> Callable[[Frame], tuple[StanValue, ...]]:
        """The function of integer indices, some of which differ between passes."""
        parts = [self.expression(i) for i in indices if isinstance(i, s.Expression)]
        return lambda f: tuple([part(f) for part in parts])

    def call(self, e: s.Call) -> StanEvaluated:
        if e.definition is not None:
            raise BoundError(f"`{e.name}` is a function of the program", e.at)
        function = self._function(e)
        if e.name.endswith(_DENSITIES):
            arguments = self._alike(e.arguments)
        else:
            arguments = [*map(self.expression, e.arguments)]
        return lambda f: function(f[0], *[each(f) for each in arguments])

    def _function(self, e: s.Call) -> Callable[..., StanValue]:
        kinds = tuple(each.type for each in e.arguments)
        if e.name.endswith(_DENSITIES):
            density = _elementwise_density(e.name.replace("_lup", "_lp"), e.at).pointwise
            drops, rows = "_lup" in e.name, any(kind not in SCALARS for kind in kinds)

            def terms(run: Evaluation, *xs: StanValue) -> StanValue:
                found = density(*xs, propto=drops and run.propto)
                return np.sum(found, -1) if rows else found

            return terms
        if e.name == "log_mix" and len(kinds) == 3:
            return _log_mix
        if len(kinds) == 1 and kinds[0] in _VECTORS and e.type in _VECTORS:
            if e.name in _OF_VECTORS:
                return _OF_VECTORS[e.name]
            if not functions.acts_by_element(e.name) or e.name == "log_sum_exp":
                raise _lacking(f"`{e.name}` of vectors", e)
            by_element = functions.implementation(e.name, kinds)
            return lambda run, x: by_element(x)
        if all(kind in SCALARS for kind in kinds) and functions.acts_by_element(e.name):
            function = functions.implementation(e.name, kinds)
            return lambda run, *xs: function(*xs)
        of_rows = _OF_ROWS.get(e.name)
        if of_rows is None or any(kind not in _VECTORS for kind in kinds):
            raise _lacking(f"`{e.name}`", e)
        if not all(map(self.varies, e.arguments)):
            raise _lacking(f"`{e.name}` of a vector that is the same in all passes", e)
        return of_rows


def _lacking(form: str, e: s.Expression) -> BoundError:
    return BoundError(f"there is no {form} for all passes at once", e.at)


def _sizes(d: s.Declaration) -> list[s.Expression]:
    return [*d.declared.sizes, *d.declared.dimensions]


def _own_places(x: StanValue, index: StanValue) -> StanValue:
    """The place of an element of a vector of each lane."""
    at = place(index, x.shape[1], 1)
    return (slice(None), at) if type(at) is int else (np.arange(x.shape[0]), at)


def _places(x: StanValue, indices: Sequence[StanValue]) -> StanValue:
    """Integer indices of Stan, some with a lane for each pass, as an index of NumPy."""
    places = [place(i, x.shape[axis], axis + 1) for axis, i in enumerate(indices)]
    if sum(type(at) is np.ndarray for at in places) == 1 and len(places) == 1:
        return _as_slice(places[0])
    return tuple(places)


def _as_slice(places: StanValue) -> StanValue:
    """Places one after another as a slice, which is a view."""
    if type(places) is np.ndarray and len(places) and np.all(np.diff(places) == 1):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _elementwise_density(name: str, at: s.Position) -> Any:
    density = getattr(vm, name, None)
    if not isinstance(density, Univariate):
        raise BoundError(f"`{name}` does not act element by element", at)
    return density


def _log_mix(run: Any, theta: StanValue, first: StanValue, second: StanValue) -> StanValue:
    return np.logaddexp(np.log(theta) + first, np.log1p(-theta) + second)


_DENSITIES = ("_lpdf", "_lpmf", "_lupdf", "_lupmf")
_ROWS_OF_DATA = _VECTORS | {ArrayType(types.INT)}
_OF_VECTORS: dict[str, Callable[..., StanValue]] = {
    "softmax": lambda run, x: vm.softmax(x, -1),
    "log_softmax": lambda run, x: vm.log_softmax(x, -1),
}
_COMPARISONS: dict[str, Callable[[StanValue, StanValue], StanValue]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_OF_ROWS: dict[str, Callable[..., StanValue]] = {
    "sum": lambda run, x: np.sum(x, -1),
    "log_sum_exp": lambda run, x: vm.log_sum_exp(x, -1),
    "dot_product": lambda run, x, y: np.sum(x * y, -1),
    "dot_self": lambda run, x: np.sum(x * x, -1),
}
_ARITHMETIC: dict[str, Callable[[StanValue, StanValue], StanValue]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, ".*": np.multiply, "/": np.divide,
    "./": np.divide, "^": operators.powers, ".^": operators.powers,
}  # fmt: skip
_STATEMENTS: dict[type, Callable[[Lanes, Any], Executed]] = {
    s.Declaration: Lanes.declaration,
    s.Assignment: Lanes.assignment,
    s.Tilde: Lanes.distribution,
    s.TargetIncrement: Lanes.increment,
    s.Braces: Lanes.block,
    s.For: Lanes.loop,
    s.If: Lanes.conditional,
}
_EXPRESSIONS: dict[type, Callable[[Lanes, Any], StanEvaluated]] = {
    s.VariableName: Lanes.variable,
    s.Unary: Lanes.unary,
    s.Binary: Lanes.binary,
    s.Indexed: Lanes.index,
    s.Call: Lanes.call,
}
