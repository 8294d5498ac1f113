"""Derivatives of derivatives: functionals inside functions that are differentiated themselves.

In forward mode there is nothing to do: the parts of a dual may be duals of other levels, or
variables. A reverse pass, however, gives numbers. If a function that is differentiated in reverse
mode uses variables from outside, its value and gradients become the results of one operation on
these variables. The operation keeps the entries of the tape that the value depends on. Its own
derivatives compute these entries again, on duals whose tangents are the adjoints `w` of the
gradient: the derivative of ``w @ gradient`` is the gradient of the derivative along `w`. The user's
function is not called again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from varmat.core.callbacks import CALLBACKS
from varmat.core.dispatch import ComplexKind, plain
from varmat.core.dual import Dual, Level, newest, paired, value_now
from varmat.core.errors import TapeError
from varmat.core.indexing import ASSIGN
from varmat.core.matvar import to_varmat
from varmat.core.operation import Operation
from varmat.core.tape import ALWAYS, Rule, Tape, current_tape, nested, scope
from varmat.core.variables import (
    ARRAYS,
    VARIABLES,
    Outputs,
    Var,
    View,
    borrow_leaf,
    make_leaf,
    make_view,
    outsiders,
    own_tape,
    root_of,
)
from varmat.derivatives.inputs_and_outputs import (
    bottom,
    check_fresh,
    has_outside,
    is_outer,
    plain_copy,
    pulled_back,
)
from varmat.derivatives.structure import leaves_of, map_leaves
from varmat.typing import Adjoint, Entry, Function, Operand, Plain, Result, Settings

Finish: TypeAlias = Callable[[], Any]  # makes, after its scope, a value and its gradients


def refuse_finished(function: str, y: Operand, tape: Tape) -> None:
    """Raise for a result that is a dual of a call that has ended, or a dual that the function made
    explicitly.
    """
    while isinstance(y, Dual):
        if y.level in tape.by_hand:
            raise TapeError(
                f"{function}: the result is a Dual that the function created, whose derivative is "
                "not the requested one: return x.val or x.tan"
            )
        if y.level.is_over:
            raise TapeError(
                f"{function}: the result has a derivative of varmat.{y.level.function}, which "
                "has returned: do not keep results of one function for another"
            )
        y = y.val


# --- functions that are kept ---


def _parts(*fields: object) -> list[Operand]:
    """Return the variables of an entry."""
    flat = [item for x in fields for item in (x if isinstance(x, (list, tuple)) else (x,))]
    return [x for x in flat if type(x) in VARIABLES]


def _sources(entry: Entry) -> list[Operand]:
    rule, _, x, y = entry
    return (
        [source for _, source, _ in y if type(source) in VARIABLES]
        if rule is ASSIGN
        else _parts(x, y)
    )


class KeptFunction:
    """A scalar of a tape, or several results, as a function of some of its variables, to be
    computed again.

    Parameters
    ----------
    y : Var, or tuple of variables
    wrt : sequence of variables
        Variables of the tape with respect to which its gradients are wanted.
    tape : Tape
    operands : sequence of variables, optional
        The variables that it is a function of; by default those from outside.
    """

    def __init__(
        self,
        y: Operand,
        wrt: Sequence[Operand],
        tape: Tape,
        operands: Sequence[Operand] | None = None,
    ) -> None:
        self.y, self.wrt = y, list(wrt)
        self.entries, roots = _needed(tape, y)
        used = {**roots, **{id(x): x for x in self.wrt}}
        output = {id(x) for _, result, _, _ in self.entries for x in _parts(result)}
        outside = [x for x in used.values() if own_tape(x) is not tape]
        self.operands = outside if operands is None else list(operands)
        assigned = {id(root_of(target)) for rule, _, target, _ in self.entries if rule is ASSIGN}
        self.assigned = assigned
        inside = output | set(map(id, self.operands))
        for assignment in reversed(tape.assignments):
            assignment.undo()
        self.constants = [
            (x, np.copy(value_now(x)) if x.shape else value_now(x))
            for x in used.values()
            if id(x) not in inside
        ]
        # Where a recording becomes a program of this function, later.
        is_recorded = tape.watch is not None
        self.points = [plain_copy(x) for x in self.operands] if is_recorded else []
        self.values = [plain_copy(x) for x in self.wrt] if is_recorded else []
        for assignment in tape.assignments:
            assignment.redo()

    def recompute(
        self,
        operands: Sequence[Operand],
        level: Level | None = None,
        seeds: Sequence[Operand] | None = None,
        wrt: Sequence[Operand] | None = None,
    ) -> tuple[Operand, list[Operand]]:
        """Recompute the scalar, and the variables `wrt`, on the current tape for other operands.

        Parameters
        ----------
        operands : sequence
            Variables, plain numbers and arrays, or duals of the level.
        level : Level, optional
        seeds : sequence, optional
            Tangents for the variables `wrt`, which become duals of that level.
        wrt : sequence of variables, optional
            Replacements of the variables `wrt`, which are returned as they were.
        """
        tape = current_tape()
        indices = {id(x): i for i, x in enumerate(self.wrt)}
        env: dict[int, Operand] = {}
        before: dict[int, Operand] = {}

        def define(variable: Operand, x: Operand) -> None:
            place = indices.get(id(variable))
            if place is not None and wrt is not None:
                before[id(variable)], x = x, wrt[place]
            if place is not None and not is_outer(x):
                x = borrow_leaf(x if type(x) is np.ndarray else float(x), tape)
            if place is not None and seeds is not None:
                x = paired(x, seeds[place], level)  # type: ignore[arg-type]
            env[id(variable)] = _writable(x, tape, level) if id(variable) in self.assigned else x

        for variable, x in [*zip(self.operands, operands, strict=True), *self.constants]:
            define(variable, x)
        for rule, result, x, y in self.entries:
            if rule is ASSIGN:
                for index, source, _ in y:
                    _found(env, x)[index] = _found(env, source)
                continue
            recompute = rule.recompute
            x, y = _found(env, x), _found(env, y)
            new = rule.op.recompute(x, y) if recompute is None else recompute(result, x, y)
            if isinstance(result, Outputs):
                for item, value in zip(result, new, strict=True):
                    define(item, value)
            elif result is not ALWAYS:
                define(result, new)
        return _found(env, self.y), [(before or env)[id(x)] for x in self.wrt]

    def weighted(
        self, name: str, operands: Sequence[Operand], weights: Sequence[Operand], tape: Tape
    ) -> Operand:
        """Sum the scalar and its gradients with these weights, where None is zero: the derivative
        along the weights is the product of the gradients with them."""
        c, *adjoints = weights
        level, seeds = None, None
        if any(w is not None for w in adjoints):
            level = Level(name)
            seeds = [
                w
                if type(w) in VARIABLES
                else make_leaf(plain_copy(np.zeros(x.shape) if w is None else w), tape)
                for w, x in zip(adjoints, self.wrt, strict=True)
            ]
        y, _ = self.recompute(operands, level, seeds)
        slope = y.tan if isinstance(y, Dual) else 0.0
        return slope if c is None else slope + c * bottom(y)


def _needed(tape: Tape, y: Operand) -> tuple[list[Operand], dict[int, Operand]]:
    """Find the entries that a variable, or a tuple of them, depends on, in order, and the roots of
    all variables in them.
    """
    roots = {id(root_of(x)): root_of(x) for x in _parts(y)}
    entries = []
    for entry in reversed(tape):
        rule, result, target, _ = entry
        here = [target] if rule is ASSIGN else [] if result is ALWAYS else _parts(result)
        # Keep checks, because what they reject here they reject at other points too.
        if (result is ALWAYS and rule is not ASSIGN) or any(id(root_of(x)) in roots for x in here):
            entries.append(entry)
            roots.update({id(root_of(x)): root_of(x) for x in _sources(entry)})
    return entries[::-1], roots


def _found(env: dict[int, Operand], x: Operand) -> Operand:
    """Replace the variables of an operand of an entry by what `env` has for them."""
    if type(x) in VARIABLES:
        cached = env.get(id(x))
        if cached is None and isinstance(x, View):
            return _seen(_found(env, x.parent), x.how)
        return cached
    if isinstance(x, (list, tuple)) and _parts(x):
        return tuple(_found(env, item) for item in x)
    return x


def _seen(x: Operand, how: Function) -> Any:
    """Take a part of an array of any kind; a view if the part of a plain array would be one."""
    if isinstance(x, Dual):
        return paired(_seen(x.val, how), _seen(x.tan, how), x.level)
    return make_view(x, how, how(value_now(x))) if type(x) in ARRAYS else how(x)


def _writable(x: Operand, tape: Tape, level: Level | None) -> Operand:
    """Make an array into which variables, and duals of the level, can be written."""
    if isinstance(x, Dual):
        return paired(_writable(x.val, tape, None), _writable(x.tan, tape, None), x.level)
    if type(x) not in VARIABLES:
        x = make_leaf(np.array(x, order="C"), tape)
    return x if level is None else paired(x, make_leaf(np.zeros(x.shape), tape), level)


# --- their gradients ---


class Gradients(Operation):
    """The value and the gradients of a kept scalar, as an operation on its operands.

    Parameters
    ----------
    name : str
    kept : KeptFunction
    mapped : int
        How many of the last operands have a first axis of directions: then the results have it too.
    """

    twin_of: Operation | None = None

    def __init__(self, name: str, saved: KeptFunction, mapped: int = 0) -> None:
        def value_and_gradients(*values: Operand) -> tuple[Plain, ...]:
            result = [_values(saved, direction) for direction in _directions(values, mapped)]
            return tuple(map(np.stack, zip(*result, strict=True))) if mapped else result[0]

        value_and_gradients.__name__ = name
        super().__init__(value_and_gradients, None, variadic=True, stacked=False, native=False)
        self.kept, self.mapped = saved, mapped
        # A partial, not a method: if the operation referred to itself, what it keeps would wait for
        # the cyclic collector.
        self.reverse_rule = partial(_contributions, name, saved, mapped)
        self._tangent = True  # `general` is the tangent rule, for all operands at once

    @property
    def rule(self) -> Rule:
        op = self if self.twin_of is None else self.twin_of
        return Rule(op.name, op.chain, op)

    @rule.setter
    def rule(self, _: Rule) -> None:
        pass

    def known(self, value: Operand, *args: object, **settings: Any) -> Result:
        twin = self._computing(lambda *_, **__: value)
        twin.twin_of = self  # type: ignore[attr-defined]
        return twin(*args, **settings)

    def general(self, args: Sequence[Operand], settings: Settings) -> Result:
        duals = [x for x in args if isinstance(x, Dual)]
        if not duals:
            return super().general(args, settings)
        level = newest(duals)
        mine = [isinstance(x, Dual) and x.level is level for x in args]
        values = [x.val if is_mine else x for x, is_mine in zip(args, mine, strict=True)]
        tangents = [x.tan for x, is_mine in zip(args, mine, strict=True) if is_mine]
        (k,) = {x.directions for x, is_mine in zip(args, mine, strict=True) if is_mine}
        results = self(*values)
        if k is None or not self.mapped:
            rates = self._pushed(values, mine, tangents, k)
        else:
            item = [self._pushed(values, mine, [t[i] for t in tangents]) for i in range(k)]
            rates = tuple(np.stack(parts) for parts in zip(*item, strict=True))
        return tuple(paired(r, t, level) for r, t in zip(results, rates, strict=True))

    def _pushed(
        self, values: list[Operand], mine: list[bool], tangents: list[Operand], k: int | None = None
    ) -> Result:
        """Differentiate value and gradients in a direction, or in `k`: return the value and the
        gradients of the directional derivative.
        """
        shared, args = len(values) - self.mapped, [*values, *tangents]
        is_row = [i >= shared for i in range(len(values))]
        is_row += [k is not None or is_row[i] for i, is_mine in enumerate(mine) if is_mine]
        order = sorted(range(len(args)), key=is_row.__getitem__)  # what is mapped comes last
        with scope(getattr(current_tape(), "recorder", None)) as tape:
            leaves = [
                borrow_leaf(_row(value_now(x), 0) if item else value_now(x), tape)
                for x, item in zip(args, is_row, strict=True)
            ]
            level, rates = Level(self.name), iter(leaves[len(values) :])
            operands = [
                paired(x, next(rates), level) if is_mine else x
                for x, is_mine in zip(leaves, mine, strict=False)
            ]
            y, wrt = self.kept.recompute(operands, level)
            slope = y.tan if isinstance(y, Dual) else 0.0
            if type(slope) is not Var:
                axis = np.shape(args[order[-1]])[: any(is_row)]
                return tuple(np.zeros(axis + np.shape(x))[()] for x in (0.0, *wrt))
            saved = KeptFunction(slope, [bottom(x) for x in wrt], tape, [leaves[i] for i in order])
        return Gradients(self.name, saved, sum(is_row))(*(args[i] for i in order))


def _row(x: np.ndarray, i: int) -> Plain:
    return x[i] if x.ndim > 1 else float(x[i])


def _directions(values: Sequence[Plain], mapped: int) -> Iterator[list[Plain]]:
    """Yield the operands for each direction."""
    shared = len(values) - mapped
    for i in range(len(values[shared]) if mapped else 1):
        yield [*values[:shared], *(_row(x, i) for x in values[shared:])]


def _values(saved: KeptFunction, values: Sequence[Plain]) -> tuple[Plain, ...]:
    """Compute the value and the gradients."""
    with nested() as tape:
        y, wrt = saved.recompute(values)
        return _swept(y, wrt, tape)


def _contributions(
    name: str, saved: KeptFunction, mapped: int, g: Adjoint, r: Plain, *values: Operand
) -> tuple[Operand, ...]:
    """Apply the reverse rule: return the gradients of value and gradients times their adjoints."""
    contributions = []
    for i, operands in enumerate(_directions(values, mapped)):
        weights = [_row(w, i) if mapped and w is not None else w for w in g]
        with nested() as tape:
            leaves = [borrow_leaf(x, tape) for x in operands]
            y = saved.weighted(name, leaves, weights, tape)
            contributions.append(_swept(y, leaves, tape)[1:])
    if not mapped:
        return contributions[0]
    columns, shared = [*zip(*contributions, strict=True)], len(values) - mapped
    return *map(sum, columns[:shared]), *map(np.stack, columns[shared:])


def _swept(y: Operand, wrt: Sequence[Operand], tape: Tape) -> tuple[Operand, ...]:
    """Return the number and its gradients, as plain arrays."""
    value = float(value_now(y))
    if type(y) is not Var or own_tape(y) is not tape:
        return value, *(plain_copy(np.zeros(np.shape(x))) for x in wrt)
    return value, *pulled_back(tape, [y], [1.0], [bottom(x) for x in wrt])


def gradients_of(
    function: str,
    y: Operand,
    wrt: Sequence[Operand],
    tape: Tape,
    rows: Sequence[tuple[Operand, np.ndarray]] = (),
) -> Finish:
    """Make a function that returns, after the scope, the value of a scalar and its gradients.

    Parameters
    ----------
    function : str
        The functional, for messages.
    y : Var, Dual or float
    wrt : sequence of variables
        Variables of the tape.
    tape : Tape
        The tape of the scope, which is the current one.
    rows : sequence of tuple, optional
        Leaves of the tape, and their replacements, along a first axis, which value and gradients
        then have too.
    """
    refuse_finished(function, y, tape)
    if isinstance(y, Dual):
        values, level, k = gradients_of(function, y.val, wrt, tape, rows), y.level, y.directions
        if k is not None and (rows or tape.watch is None):
            item = [gradients_of(function, y.tan[i], wrt, tape, rows) for i in range(k)]
            return lambda: tuple(
                paired(v, np.stack(t), level)
                for v, t in zip(values(), zip(*(part() for part in item), strict=True), strict=True)
            )
        if k is None:
            rates = gradients_of(function, y.tan, wrt, tape, rows)
        else:  # in a program a loop over the directions
            weights = make_leaf(np.ones(k), tape)
            rates = gradients_of(function, weights @ y.tan, wrt, tape, [(weights, np.eye(k))])
        return lambda: tuple(paired(v, t, level) for v, t in zip(values(), rates(), strict=True))
    if type(y) is not Var or own_tape(y) is not tape:
        if type(y) in VARIABLES:
            check_fresh([y])
        axis = np.shape(rows[0][1])[:1] if rows else ()
        zeros = [plain_copy(np.zeros(axis + x.shape)) for x in wrt]
        return lambda: (np.broadcast_to(y, axis) if rows else y, *zeros)
    entries, roots = _needed(tape, y)
    outside = [x for x in roots.values() if own_tape(x) is not tape]
    if outside:
        check_fresh(outside)
        _refuse_what_cannot(function, entries, outside, tape)
    if rows:
        saved = KeptFunction(y, wrt, tape, [*outside, *(x for x, _ in rows)])
        mapped = Gradients(function, saved, len(rows))
        return lambda: mapped(*outside, *(x for _, x in rows))
    before = [(x, x._adj) for x in outside]
    try:
        for x in outside:
            x._adj = None
        results = _swept(y, wrt, tape)
    finally:
        for x, adjoint in before:  # a pass that is under way may need them
            x._adj = adjoint
    if not outside:
        return lambda: results
    result = Gradients(function, KeptFunction(y, wrt, tape))
    return lambda: result.known(results, *result.kept.operands)


def _refuse_what_cannot(
    function: str, entries: list[Operand], outside: list[Operand], tape: Tape
) -> None:
    """Raise for a gradient that could not be differentiated in the variables from outside."""
    for x in outside:
        if tape.parent is not None and not passed_by(tape, x):
            continue
        raise TapeError(
            f"{function}: the function uses a {type(x).__name__} of shape {np.shape(x)} from "
            "outside and is called in the reverse pass of that variable, so its derivative would "
            "be lost: use varmat.value(x)"
        )
    for rule, _, _, _ in entries:
        lacks = rule.recompute is None and (
            rule.op is None or getattr(rule.op, "_tangent", True) is None
        )
        if rule in CALLBACKS or (lacks and rule is not ASSIGN):
            raise TypeError(
                f"{function}: the function uses {rule.name}, which has no tangent rule, and "
                "variables from outside, in which the gradient cannot be differentiated therefore: "
                "make it an operation with one, see varmat.operation, or use varmat.value(x) for "
                "what is a constant here"
            )


def refuse_complex(function: str, x: Operand) -> None:
    """Raise for complex points if the gradient depends on variables from outside."""
    if isinstance(x, ComplexKind):
        raise TypeError(
            f"{function}: an argument is complex, but must be real where the function uses "
            "variables from outside: differentiate with respect to its real and imaginary parts"
        )


def passed_by(tape: Tape, x: Operand) -> bool:
    """Return whether a reverse pass is under way between a scope and a variable from outside: it
    does not see what is recorded for that variable now.
    """
    for item in tape.chain():
        if item.sweeping or item is own_tape(x):
            return item.sweeping
    return False


def is_outer_result(y: Operand, tape: Tape) -> bool:
    """Return whether a result depends on variables from outside, or the scope has used some."""
    if isinstance(y, Dual):
        return True
    if not has_outside(tape):
        return False
    return (type(y) in VARIABLES and own_tape(y) is not tape) or bool(outsiders(tape))


# --- what a function returns in addition to its scalar ---


def set_aside(function: str, tree: object, tape: Tape) -> Finish:
    """Make a function that returns, after the scope, a structure with plain numbers in place of
    variables.

    Results that depend on variables from outside are computed again in the scope around this one,
    because they have derivatives there."""

    def prepared(x: Operand, _: str) -> Operand:
        x = to_varmat(x)
        refuse_finished(function, x, tape)
        if type(x) in VARIABLES or isinstance(x, Dual) or not hasattr(type(x), "_plain"):
            return x
        # A complex or a sparse variable.
        parts = filter(is_outer, [to_varmat(getattr(x, name)) for name in x.__slots__])
        if outsiders(tape) or any(
            type(part) not in VARIABLES or own_tape(part) is not tape for part in parts
        ):
            raise TypeError(
                f"{function}: the second item of the result has a {type(x).__name__}, but must "
                "have real variables only where the function uses variables from outside: return "
                "its parts, or varmat.value(x) if it is a constant here"
            )
        return plain(x)

    tree = map_leaves(prepared, tree)
    variables = flattened(leaves_of(tree))

    def filled(output: Sequence[Operand]) -> Result:
        following = iter(output)

        def fill(x: Operand, _: str = "") -> Operand:
            if isinstance(x, Dual):
                return paired(fill(x.val), fill(x.tan), x.level)
            if type(x) not in VARIABLES:
                return x
            y = next(following)
            return y if is_outer(y) else plain_copy(y)

        return map_leaves(fill, tree)

    if outsiders(tape) or any(own_tape(x) is not tape for x in variables):
        saved = KeptFunction(tuple(variables), (), tape)
        check_fresh(saved.operands)
        if saved.operands:
            _refuse_what_cannot(function, saved.entries, saved.operands, tape)
            return lambda: filled(saved.recompute(saved.operands)[0])
    result = filled([value_now(x) for x in variables])
    return lambda: result


# --- forward mode ---


def adopt(tape: Tape, results: Sequence[Operand]) -> None:
    """Move the entries of a scope, and results that are views, to the scope around it."""
    parent: Any = tape.parent
    values = [x for _, result, x, y in tape for x in _parts(result, x, y)]
    values += [*tape.leaves, *_parts(tape.kept), *flattened(results)]
    values += [
        source
        for assignment in tape.assignments
        for _, source, _ in assignment
        if type(source) in VARIABLES
    ]
    for x in values:
        while own_tape(x) is tape:
            x._tape = parent
            x = getattr(x, "parent", x)
    move(tape, parent)


def move(tape: Tape, other: Tape) -> None:
    """Move everything on a tape to another one. The arena does not reuse memory that something
    still refers to.
    """
    stacks: Any = (tape, tape.leaves, tape.kept, tape.assignments)
    others: Any = (other, other.leaves, other.kept, other.assignments)
    for mine, theirs in zip(stacks, others, strict=True):
        theirs.extend(mine)
        mine.clear()


def flattened(results: Sequence[Operand]) -> list[Operand]:
    flat = []
    for x in results:
        flat += flattened((x.val, x.tan)) if isinstance(x, Dual) else _parts(x)
    return flat


def holds_variables(x: Operand) -> bool:
    """Return whether something is a variable, or a dual with a variable among its parts."""
    return bool(flattened([x]))
