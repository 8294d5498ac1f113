"""Elementwise operations: rows of a table.

A row names a ufunc and gives, for each operand, its contribution as an expression of the adjoint
`g` of the result, the operands `x`, `y`, ... and the result `r`: for the logarithm ``g / x``. The
expression is linear in `g`, so with a tangent in place of `g` it is the forward rule too. Reverse
rules, the tangent rule, NumPy dispatch and Python operators are all made from the row.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Sequence, Set
from functools import cached_property
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64, is_foreign
from varmat.core.dual import Dual
from varmat.core.errors import mismatch
from varmat.core.fast_calls import binary_call, operators, unary_call
from varmat.core.matvar import MatVar, as_objects, to_varmat
from varmat.core.operation import as_operand, call_of_kinds
from varmat.core.operators import ANSWERS, attach
from varmat.core.rules import (
    OPERANDS,
    array_rule,
    elementwise_rule,
    function_of,
    large_rule,
    names_in,
    scalar_rule,
)
from varmat.core.tape import Rule, Tape, join
from varmat.core.variables import VARIABLES, Var, VarMat, make_result
from varmat.plain_arrays import special, where, with_out

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from varmat.typing import ElementwiseCall, Function, Linear, Operand, Plain, Settings

__all__ = ["Elementwise", "elementwise"]

_NUMBERS = frozenset({float, int, np.float64})
_DIFFERENTIABLE = VARIABLES | {Dual}
# The library's rows by name: its expressions name these, whatever names users take.
ROWS: dict[str, Elementwise] = {}
# The latest row of a user by each name.
USERS: dict[str, Elementwise] = {}


def _typed(function: Any) -> ElementwiseCall[...]:
    return function  # type: ignore[no-any-return]


class Elementwise:
    """An elementwise operation: a row of the table; made by `elementwise`.

    Attributes
    ----------
    rows : mapping of str to Elementwise
        The meaning of the names in its expressions. The library's rows may name rows that are made
        later; users' rows keep the rows that had the names when they were made.
    """

    stacked = True

    def __init__(
        self,
        name: str,
        ufunc: Function | str,
        *partials: str,
        scalar: str | Function | None = None,
        shortcuts: dict[float, str] | None = None,
        with_itself: str | None = None,
        points: Sequence[tuple[float, ...]] = (),
        reference: str | None = None,
        doc: str | None = None,
        rows: Mapping[str, Elementwise] = ROWS,
    ) -> None:
        self.__name__ = self.name = name
        self.__doc__, self.points, self.reference, self.rows = doc, points, reference, rows
        self.resolved = None if isinstance(ufunc, str) else _of_floats(ufunc)
        self._given: Any = ufunc
        self.partials = partials
        self.arity = len(partials)
        self.scalar_text = scalar if isinstance(scalar, str) else None
        self.scalar = (
            self._scalar_function(scalar) if isinstance(scalar, str) else scalar or self.ieee
        )
        self.shortcuts: dict[float, str] = shortcuts or {}
        self.with_itself = with_itself
        self._rules: dict[Hashable, Rule] = {}
        makers = {1: unary_call, 2: binary_call}
        self.call: Function = makers[self.arity](self) if self.arity in makers else self.general

    def answer(self) -> None:
        """Register the row as the handler of its ufunc for variables."""
        if isinstance(self._given, str):
            dispatch.SPECIAL[self._given] = self.call
        elif isinstance(self._given, np.ufunc):  # other functions do not dispatch
            dispatch.SUPPORTED[self._given] = self.call

    def _scalar_function(self, text: str) -> Function:
        return self._function("{}", text, vars(math), "scalar function")

    def _function(self, parameters: str, text: str, namespace: Settings, kind: str) -> Function:
        operands = ", ".join(OPERANDS[: self.arity])
        title = f"{kind} of {self.name}"
        return function_of(parameters.format(operands), [f"return {text}"], namespace, title)

    @cached_property
    def operators(self) -> tuple[dict[type, Function], dict[type, Function]]:
        """The operators and their reflections, by type of the operand whose method they are."""
        return operators(self)

    @property
    def ufunc(self) -> Any:
        """The ufunc. One of scipy.special is given by name and imported on first use."""
        if self.resolved is None:
            self.resolved = getattr(special, self._given)
        return self.resolved

    # Saved values that the tangent rule wants: none, since the rules of the table are expressions.
    wanted: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"<varmat elementwise operation {self.name}>"

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(x, kind) for x in OPERANDS[: self.arity]])

    def __reduce__(self) -> tuple[Function, tuple[str]]:
        if self.rows is not ROWS and USERS.get(self.name) is not self:
            raise PicklingError(
                f"{self!r} cannot be pickled, because another row of this name was made later"
            )
        return _row if self.rows is ROWS else _users_row, (self.name,)

    @_typed
    def __call__(self, *args: Operand, **kwargs: Operand) -> Operand:
        if len(args) != self.arity or kwargs:
            arguments = (
                f"{', '.join(kwargs)} is given by name"
                if kwargs
                else f"{len(args)} operands are given"
            )
            raise TypeError(
                f"{self.name}: {arguments}; the signature is {self.name}{self.__signature__}"
            )
        result = self.call(*args)
        if (
            result is NotImplemented
        ):  # meant for operators; here objects of other libraries are data
            for x in args:
                if hasattr(x, "apply_row"):  # a symbol of a program that is being made
                    return x.apply_row(self, args)
            result = self.call(
                *(as_operand(x, f"{self.name}: operand {i}") for i, x in enumerate(args, 1))
            )
        return result

    def recompute(self, x: Operand, y: Operand) -> Operand:
        """Recompute an entry of the tape, with other operands."""
        return self(*(x if self.arity > 2 else (x, y)[: self.arity]))

    def ieee(self, *values: Operand) -> float:
        """Return the value at scalars, in IEEE arithmetic where Python's raises."""
        with np.errstate(all="ignore"):
            return float(self.ufunc(*map(float, values)))

    def rule(self, variable: tuple[bool, ...], compile_rule: Function) -> Rule:
        """Return the rule, compiled by one of the functions in `rules`, where `variable` says which
        operands are variables.
        """
        key = (variable, compile_rule)
        rule = self._rules.get(key)
        return rule or self._rules.setdefault(key, elementwise_rule(self, *key))

    def exact(self, *args: Operand) -> Operand:
        """Call with operands of any kinds; numbers have IEEE arithmetic, as the ufunc has.

        Variables are not left to the ufunc, because a user's row may answer for it."""
        return self(*args) if not _DIFFERENTIABLE.isdisjoint(map(type, args)) else self.ufunc(*args)

    @property
    def mentions(self) -> set[str]:
        """The functions that its expressions name."""
        return names_in(*self.partials) - {"g", "r", *OPERANDS}

    def namespace(self, scalar: bool = False, plain: bool = True) -> dict[str, Function]:
        """Return the functions that the expressions name: `math`-like ones for scalars, NumPy's and
        SciPy's for everything else.
        """
        return {
            name: for_scalars(name, self.rows) if scalar else for_arrays(name, plain, self.rows)
            for name in self.mentions
        }

    @cached_property
    def pushes(self) -> list[Function]:
        """The expressions as functions of ``(g, x, ..., r)``, one per operand."""
        namespace = self.namespace(plain=False)
        return [self._function("g, {}, r", p, namespace, "derivative") for p in self.partials]

    def push(self, r: Plain, values: Sequence[Plain], settings: Settings) -> list[Linear]:
        """Return the linear maps of the tangent rule, one per operand."""
        exact = [np.float64(v) if type(v) is float else v for v in (*values, r)]

        def linear(push: Function, x: Operand) -> Linear:
            missing = (1,) * (getattr(r, "ndim", 0) - getattr(x, "ndim", 0))

            def apply(t: Operand) -> Operand:
                # The axis of directions stays in front of the axes that broadcasting adds.
                if missing and np.ndim(t) > np.ndim(x):
                    t = np.reshape(t, (len(t), *missing, *np.shape(x)))
                return push(np.float64(t) if type(t) is float else t, *exact)

            return apply

        return [linear(push, x) for push, x in zip(self.pushes, values, strict=True)]

    def general(self, *args: Operand) -> Operand:
        """Call with operands of any kinds; NotImplemented leaves it to another library's type."""
        if type(args[0]) in _DIFFERENTIABLE:
            if self.with_itself and args[0] is args[1]:
                return self.rows[self.with_itself].call(args[0])
            if self.shortcuts and type(args[1]) in _NUMBERS and args[1] in self.shortcuts:
                return self.rows[self.shortcuts[args[1]]].call(args[0])
        tape: Tape | None = None
        for x in args:
            kind = type(x)
            if kind in VARIABLES:
                tape = x._tape if tape is None or tape is x._tape else join(tape, x._tape)
            elif kind not in _NUMBERS and not (kind is np.ndarray and x.dtype is FLOAT64):
                return self._other(args)
        variable = tuple(type(x) in VARIABLES for x in args)
        values = [x._val if v else x for x, v in zip(args, variable, strict=True)]
        try:
            if tape is None:
                has_arrays = any(type(x) is np.ndarray for x in args)
                return self.ufunc(*args) if has_arrays else self.ieee(*args)
            result, compile_rule = self._result(values, tape.top)
        except ValueError as error:
            raise mismatch(self.name, error, *values) from None
        entry = (args, None) if len(args) > 2 else (*args, None)[:2]
        tape.top.append((self.rule(variable, compile_rule), result, *entry))
        return result

    def _result(self, values: Sequence[object], tape: Tape) -> tuple[Operand, Function]:
        arrays = [v for v in values if isinstance(v, np.ndarray)]
        if not arrays:
            try:
                val = self.scalar(*values)
            except (ArithmeticError, ValueError):
                val = self.ieee(*values)
            return make_result(val, tape), scalar_rule
        if max(v.size for v in arrays) <= LARGE:
            return make_result(self.ufunc(*values), tape), array_rule
        space = tape.workspace(np.broadcast_shapes(*(v.shape for v in arrays)))
        return make_result(self.ufunc(*values, out=space), tape), large_rule

    def _other(self, args: Sequence[object]) -> Operand:
        """Call with duals, matvars, and data of any kind."""
        has_dual = any(isinstance(x, Dual) for x in args)
        if any(is_foreign(x) or (hasattr(x, "apply_row") and not has_dual) for x in args):
            return NotImplemented
        titles = (f"operand {i}" for i in range(1, 1 + len(args)))
        return call_of_kinds(self, self.ufunc, args, titles, {})

    def matvar_call(self, args: Sequence[Operand], _: Settings) -> Operand:
        """Return a varmat if any operand is one; otherwise a matvar."""
        if any(isinstance(x, VarMat) for x in args):
            return self.call(*map(to_varmat, args))
        try:
            result = np.frompyfunc(self.call, self.arity, 1)(*as_objects(args))
        except ValueError as error:
            raise mismatch(self.name, error, *args) from None
        return result.view(MatVar) if isinstance(result, np.ndarray) else result


def _of_floats(ufunc: Function) -> Function:
    """Return the ufunc. One made by `numpy.frompyfunc` makes arrays of objects, and is wrapped to
    make floats.
    """
    if not isinstance(ufunc, np.ufunc) or not all(loop.endswith("O") for loop in ufunc.types):
        return ufunc
    return with_out(lambda *values: np.asarray(ufunc(*values), FLOAT64))


def _row(name: str) -> Elementwise:
    return ROWS[name]


def _users_row(name: str) -> Elementwise:
    return USERS[name]


def for_scalars(name: str, rows: Mapping[str, Elementwise] = ROWS) -> Function:
    """Return the function of floats that a name in an expression means."""
    if name in rows:
        return rows[name].scalar
    if name == "where":
        return lambda condition, x, y: x if condition else y
    return getattr(math, name)  # type: ignore[no-any-return]


def for_arrays(name: str, plain: bool = False, rows: Mapping[str, Elementwise] = ROWS) -> Function:
    """Return the function of arrays (also variables unless `plain`) for a name in an expression."""
    row = rows.get(name)
    if row is not None:
        takes_ufunc = isinstance(row.ufunc, np.ufunc) or (plain and type(row) is Elementwise)
        of_ufunc: Function = row.ufunc if plain else row.exact
        return of_ufunc if takes_ufunc else row
    return where if plain and name == "where" else getattr(np, name)


def elementwise(
    name: str,
    ufunc: Function | str,
    *partials: str,
    scalar: str | Callable[..., float] | None = None,
    operator: str | None = None,
    shortcuts: dict[float, str] | None = None,
    with_itself: str | None = None,
    points: Sequence[tuple[float, ...]] = (),
    reference: str | None = None,
    doc: str | None = None,
) -> Elementwise:
    """Make an elementwise operation: one row of the table.

    Parameters
    ----------
    name : str
        The name of the function, with which expressions of rows made later can name it. It may be
        a name of the library's, whose own expressions keep to the library's rows.
    ufunc : ufunc or str
        The function that computes it on arrays (with ``out=``); the name of a `scipy.special` ufunc
        is imported on first use.
    *partials : str
        For each operand its contribution, an expression of the adjoint `g` of the result (linear in
        it), of the operands ``x``, ``y``, ``z``, ``w`` and of the result ``r``, with names of other
        rows, and of ``where``, that are differentiable themselves. A name means the row that has it
        now, yours before the library's.
    scalar : str or callable, optional
        The function for Python floats, an expression in ``x``, ``y`` with names of `math`, or a
        function; by default the ufunc.
    operator : str, optional
        Name of the Python operator for which it answers ("add" for ``+``).
    shortcuts : dict, optional
        Second operand, a constant -> name of the unary row that is called instead.
    with_itself : str, optional
        The unary row that is called when both operands are one variable: ``x * x`` is
        ``square(x)``.
    points : sequence of tuples
        Reference points for the tests, inside the domain.
    reference : str, optional
        The function as an mpmath expression in ``x``, ``y``, ... for the tests.
    doc : str, optional
        The docstring.

    Returns
    -------
    Elementwise
        The function; it also answers when the ufunc is called on variables.

    Raises
    ------
    ValueError
        If an expression has an error of syntax or names something unknown (rows that it names come
        first); if a contribution does not depend on `g`.
    TypeError
        If an expression is not a string.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def softsign_of(x):
    ...     return x / (1 + abs(x))
    >>> softsign = vm.elementwise(
    ...     "softsign", np.frompyfunc(softsign_of, 1, 1), "g / square(1 + absolute(x))",
    ...     scalar=softsign_of, points=[(0.5,)],
    ... )
    >>> vm.gradient(lambda x: np.sum(softsign(x)), np.array([1.0, 3.0]))
    array([0.25  , 0.0625])
    """
    rows = {**ROWS, **USERS}
    _check_expressions(name, partials, scalar, rows.keys())
    others = {*(shortcuts or {}).values(), *([with_itself] if with_itself else [])}
    for other in sorted(others - rows.keys()):
        raise ValueError(
            f"elementwise: {name} is to be replaced by {other}, but must be by a row of the table!"
        )
    functions = (names_in(*partials) | others) & rows.keys() - {"where"}
    chosen = {x: rows[x] for x in functions}
    row = USERS[name] = Elementwise(
        name,
        ufunc,
        *partials,
        scalar=scalar,
        shortcuts=shortcuts,
        with_itself=with_itself,
        points=points,
        reference=reference,
        doc=doc,
        rows=chosen,
    )
    if name in names_in(*partials):
        chosen[name] = row
    row.answer()
    if operator is not None:
        ANSWERS[row] = row
        attach(operator, row, row.arity, (Var, VarMat, Dual))
    return row


def new_row(name: str, ufunc: Function | str, *partials: str, **settings: Any) -> Elementwise:
    """Make a row of the library, without checking its expressions: parsing them would add a tenth
    to the import time. A row without points is only a name in the expressions of others.
    """
    row = ROWS[name] = Elementwise(name, ufunc, *partials, **settings)
    row.answer()
    if name in ANSWERS:
        ANSWERS[name] = row
    return row


def _check_expressions(
    name: str, partials: Sequence[str], scalar: str | Function | None, rows: Set[str]
) -> None:
    """Raise for expressions that would fail when they are first used, far from where they are
    written; `rows` are the names of all rows.
    """

    def refuse(what: str, expression: str, unknown: str, words: str) -> NoReturn:
        raise ValueError(
            f"elementwise: {what} is {expression!r}, but {unknown} is not among the names it may "
            f"use: {words}!"
        )

    operands = OPERANDS[: len(partials)]
    if not 0 < len(partials) <= len(OPERANDS):
        raise ValueError(
            f"elementwise: {name} has {len(partials)} contributions, but must have one to "
            f"{len(OPERANDS)}!"
        )
    for x, partial in zip(operands, partials, strict=True):
        what = f"the contribution of {name} to {x}"
        used = _names(what, partial)
        for unknown in sorted(used - {"g", "r", "where", name, *operands} - rows):
            # Expressions run on numbers too, with the functions of math.
            if unknown in OPERANDS or unknown not in vars(np) or unknown not in vars(math):
                words = "where, rows of the table, and what both NumPy and math have"
                refuse(what, partial, unknown, f"g, r, {', '.join(operands)}, {words}")
        if "g" not in used:
            raise ValueError(
                f"elementwise: {what} is {partial!r}, but must be linear in g, the adjoint of the "
                "result!"
            )
    if isinstance(scalar, str):
        what = f"the function of {name} for scalars"
        for unknown in sorted(
            _names(what, scalar) - {*operands} - vars(math).keys() - vars(builtins).keys()
        ):
            refuse(what, scalar, unknown, f"{', '.join(operands)} and what math has")


def _names(what: str, expression: object) -> set[str]:
    """Return the names in `expression`; raise unless it is an expression."""
    if not isinstance(expression, str):
        raise TypeError(
            f"elementwise: {what} is a {type(expression).__name__}, but must be an expression in a "
            "string!"
        )
    try:
        return names_in(ast.parse(expression.strip(), mode="eval"))
    except SyntaxError as error:
        raise ValueError(
            f"elementwise: {what} is {expression!r}, but must be an expression ({error.msg})!"
        ) from None
