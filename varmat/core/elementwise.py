"""Elementwise operations: rows of a table.

A row names a ufunc and gives, for each operand, its contribution as an expression of the adjoint
`g` of the result, the operands `x`, `y`, ... and the result `r`: for the logarithm ``g / x``. The
expression is linear in `g`, so with a tangent in place of `g` it is the forward rule too. Reverse
rules, tangent rule, NumPy dispatch and Python operators are made from the row."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64, is_foreign
from varmat.core.dual import Dual, dual_call
from varmat.core.errors import ShapeError, called
from varmat.core.matvar import MatVar, as_objects, to_varmat
from varmat.core.operation import as_operand
from varmat.core.rules import (
    OPERANDS,
    array_rule,
    elementwise_rule,
    function_of,
    large_rule,
    names_in,
    scalar_rule,
)
from varmat.core.tape import Rule, join
from varmat.core.variables import (
    VARIABLES,
    Borrowed,
    Large,
    LargeView,
    Var,
    VarMat,
    View,
    make_result,
    new,
)
from varmat.plain_arrays import where, with_out

if TYPE_CHECKING:
    from varmat.typing import ElementwiseCall

__all__ = ["Elementwise", "elementwise"]

_NUMBERS = frozenset({float, int, np.float64})
_DIFFERENTIABLE = VARIABLES | {Dual}
# All rows by name.
ROWS: dict[str, Elementwise] = {}


def _typed(function: Any) -> ElementwiseCall:
    return function  # type: ignore[no-any-return]


class Elementwise:
    """An elementwise operation: a row of the table; made by `elementwise`."""

    stacked = True

    def __init__(
        self,
        name: str,
        ufunc: Any,
        partials: tuple[str, ...],
        scalar: Any,
        shortcuts: Any,
        with_itself: str | None,
    ) -> None:
        self.__name__ = self.name = name
        self.resolved = None if isinstance(ufunc, str) else _of_floats(ufunc)
        self._special = ufunc
        self.partials = partials
        self.arity = len(partials)
        self.scalar_text = scalar if isinstance(scalar, str) else None
        self.scalar = (
            self._scalar_function(scalar) if isinstance(scalar, str) else scalar or self.ieee
        )
        self.shortcuts: dict[float, str] = shortcuts or {}
        self.with_itself = with_itself
        self.points: Any = ()
        self.reference: str | None = None
        self._rules: dict[Any, Rule] = {}
        self.call: Any = (
            _unary_call(self)
            if self.arity == 1
            else _binary_call(self)
            if self.arity == 2
            else self.general
        )

    def _scalar_function(self, text: str) -> Any:
        return function_of(
            ", ".join(OPERANDS[: self.arity]),
            [f"return {text}"],
            vars(math),
            f"scalar function of {self.name}",
        )

    @cached_property
    def operators(self) -> tuple[dict[type, Any], dict[type, Any]]:
        """The binary operators and their reflections, by type of the operand whose method they
        are.
        """
        return _operators(self)

    @property
    def ufunc(self) -> Any:
        """The ufunc; one of scipy.special is given by its name and imported when it is first
        used.
        """
        if self.resolved is None:
            import scipy.special

            self.resolved = getattr(scipy.special, self._special)
        return self.resolved

    # Rules of the table are expressions: there is nothing that they save.
    wanted: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"<varmat elementwise operation {self.name}>"

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)
                for name in OPERANDS[: self.arity]
            ]
        )

    def __reduce__(self) -> Any:
        return _row, (self.name,)

    @_typed
    def __call__(self, *args: Any, **named: Any) -> Any:
        if len(args) != self.arity or named:
            given = (
                f"{', '.join(named)} is given by name"
                if named
                else f"{len(args)} operands are given"
            )
            raise TypeError(
                called(f"{self.name}: {given}; the signature is {self.name}{self.__signature__}")
            )
        result = self.call(*args)
        if result is NotImplemented:  # for operators: here what comes from another library is data
            result = self.call(
                *(as_operand(x, f"{self.name}: operand {i}") for i, x in enumerate(args, 1))
            )
        return result

    def again(self, x: Any, y: Any) -> Any:
        """Call it with what an entry on the tape holds, and other operands."""
        return self(*(x if self.arity > 2 else (x, y)[: self.arity]))

    def ieee(self, *values: Any) -> float:
        """The value at scalars, in IEEE arithmetic where Python's raises."""
        with np.errstate(all="ignore"):
            return float(self.ufunc(*map(float, values)))

    def rule(self, variable: tuple[bool, ...], compile_rule: Any) -> Rule:
        """The rule for operands of which those marked are variables, compiled by one of the
        functions in `rules`.
        """
        key = (variable, compile_rule)
        if key not in self._rules:
            self._rules[key] = elementwise_rule(self, *key)
        return self._rules[key]

    @property
    def mentions(self) -> set[str]:
        """The functions that its expressions name."""
        return names_in(*self.partials) - {"g", "r", *OPERANDS}

    def namespace(self, scalar: bool = False, plain: bool = True) -> dict[str, Any]:
        """The functions that the expressions name: `math`-like ones for scalars, NumPy's and
        SciPy's for everything else.
        """
        return {
            name: for_scalars(name) if scalar else for_arrays(name, plain) for name in self.mentions
        }

    @cached_property
    def pushes(self) -> list[Any]:
        """The expressions as functions of ``(g, x, ..., r)``, one per operand."""
        parameters = f"g, {', '.join(OPERANDS[: self.arity])}, r"
        title = f"derivative of {self.name}"
        return [
            function_of(parameters, [f"return {p}"], self.namespace(plain=False), title)
            for p in self.partials
        ]

    def push(self, r: Any, values: Any, settings: Any) -> list[Any]:
        """The linear maps of the tangent rule, one per operand."""
        exact = [np.float64(v) if type(v) is float else v for v in (*values, r)]

        def linear(push: Any, x: Any) -> Any:
            missing = (1,) * (getattr(r, "ndim", 0) - getattr(x, "ndim", 0))

            def apply(t: Any) -> Any:
                # directions stay in front of the axes that broadcasting adds
                if missing and np.ndim(t) > np.ndim(x):
                    t = np.reshape(t, (len(t), *missing, *np.shape(x)))
                return push(np.float64(t) if type(t) is float else t, *exact)

            return apply

        return [linear(push, x) for push, x in zip(self.pushes, values, strict=True)]

    def general(self, *args: Any) -> Any:
        """Call with operands of any kinds; NotImplemented for what only the other side may know."""
        if type(args[0]) in _DIFFERENTIABLE:
            if self.with_itself and args[0] is args[1]:
                return ROWS[self.with_itself].call(args[0])
            if self.shortcuts and type(args[1]) in _NUMBERS and args[1] in self.shortcuts:
                return ROWS[self.shortcuts[args[1]]].call(args[0])
        tape: Any = None
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
                return (
                    self.ufunc(*args)
                    if any(type(x) is np.ndarray for x in args)
                    else self.ieee(*args)
                )
            result, compile_rule = self._result(values, tape.top)
        except ValueError as error:
            raise mismatch(self.name, error, *values) from None
        entry = (args, None) if len(args) > 2 else (*args, None)[:2]
        tape.top.append((self.rule(variable, compile_rule), result, *entry))
        return result

    def _result(self, values: Any, tape: Any) -> tuple[Any, Any]:
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

    def _other(self, args: Any) -> Any:
        """Duals, matvars and what converts to data."""
        if any(map(is_foreign, args)):
            return NotImplemented
        has_complex_data = False
        try:
            args = tuple(as_operand(x, f"{self.name}: operand {i}") for i, x in enumerate(args, 1))
        except dispatch.ComplexDataError:
            if self.resolved not in dispatch.complex_answers():
                raise
            has_complex_data = True
        if has_complex_data or any(isinstance(x, dispatch.ComplexKind) for x in args):
            return dispatch.complex_answer(self.resolved, self.name, args, {})
        if any(isinstance(x, Dual) for x in args):
            return dual_call(self, args, {})
        if not any(isinstance(x, MatVar) for x in args):
            return self.call(*args)
        if any(isinstance(x, VarMat) for x in args):
            return self.call(*map(to_varmat, args))
        try:
            result = np.frompyfunc(self.call, self.arity, 1)(*as_objects(args))
        except ValueError as error:
            raise mismatch(self.name, error, *args) from None
        return result.view(MatVar) if isinstance(result, np.ndarray) else result


def mismatch(name: str, error: ValueError, *values: Any) -> ValueError:
    """What to raise where operands do not broadcast; any other error stays what it is."""
    shapes = " and ".join(str(np.shape(v)) for v in values)
    return (
        ShapeError(f"{name}: operands have shapes {shapes}, but must broadcast!")
        if "broadcast" in str(error)
        else error
    )


def _of_floats(ufunc: Any) -> Any:
    """The ufunc itself, or, for one of `numpy.frompyfunc`, which makes arrays of objects, a
    function like it that makes floats.
    """
    if not isinstance(ufunc, np.ufunc) or not all(loop.endswith("O") for loop in ufunc.types):
        return ufunc
    return with_out(lambda *values: np.asarray(ufunc(*values), FLOAT64))


def _row(name: str) -> Elementwise:
    return ROWS[name]


def for_scalars(name: str) -> Any:
    """The function of floats that a name in an expression means."""
    if name in ROWS:
        return ROWS[name].scalar
    if name == "where":
        return lambda condition, x, y: x if condition else y
    return getattr(math, name)


def for_arrays(name: str, plain: bool = False) -> Any:
    """The function of arrays, and of variables unless `plain`, that a name in an expression
    means.
    """
    row = ROWS.get(name)
    if row is not None:  # its ufunc, which dispatches, if it is a true one
        return (
            row.ufunc
            if isinstance(row.ufunc, np.ufunc) or (plain and type(row) is Elementwise)
            else row
        )
    return where if plain and name == "where" else getattr(np, name)


def _unary_call(row: Elementwise) -> Any:
    """The call of a unary row: the common kinds first."""
    of_array, of_scalar = row.rule((True,), array_rule), row.rule((True,), scalar_rule)
    general, scalar, ieee = row.general, row.scalar, row.ieee

    def call(x: Any) -> Any:
        kind = type(x)
        result: Any
        if kind is Var:
            result = new(Var)
            try:
                result._val = scalar(x._val)
            except (ArithmeticError, ValueError):
                result._val = ieee(x._val)
            rule = of_scalar
        elif kind is VarMat or kind is View:
            result = new(VarMat)
            val = (row.resolved or row.ufunc)(x._val)
            result._val = (
                val if val.ndim == 1 or val.flags.c_contiguous else np.array(val, order="C")
            )
            rule = of_array
        else:
            return general(x)
        result._adj = None
        result._tape = tape = x._tape.top
        tape.append((rule, result, x, None))
        return result

    return call


# The binary operators are the hottest code of the library. They are made from text, so that every
# operator of every type has code of its own, for the interpreter specialises code for the types it
# sees in it. `self` is x or y, whichever side it stands on.
_ARRAY_OPERATOR = """
{itself}
kind = type(other)
if kind is VarMat or kind is Var or kind is View:
    tape = self._tape
    tape = tape.top if tape is other._tape else join(tape, other._tape)
    {other} = other._val
    rule = both
elif kind is float or kind is int or kind is float64 or (kind is ndarray and other.dtype is FLOAT64 and other.size <= LARGE):
    {shortcut}
    tape = self._tape.top
    {other} = other
    rule = one
else:
    return general({order})
{self} = self._val
try: val = ufunc(x, y)
except ValueError as error: raise mismatch(name, error, x, y) from None
result = new(VarMat)
result._val = val if val.ndim == 1 or val.flags.c_contiguous else array(val, order="C")
result._adj = None
result._tape = tape
tape.append((rule, result, {order}))
return result
"""

_SCALAR_OPERATOR = """
{itself}
kind = type(other)
if kind is Var:
    tape = self._tape
    tape = tape.top if tape is other._tape else join(tape, other._tape)
    {other} = other._val
    rule = both
elif kind is float or kind is int or kind is float64:
    if kind is float64:
        other = float(other)
    {shortcut}
    tape = self._tape.top
    {other} = other
    rule = one
elif kind is VarMat or kind is View:
    return mirrored(other, self)
else:
    return general({order})
{self} = self._val
result = new(Var)
try:
    result._val = {scalar}
except (ArithmeticError, ValueError):
    result._val = ieee(x, y)
result._adj = None
result._tape = tape
tape.append((rule, result, {order}))
return result
"""


def _operators(row: Elementwise) -> tuple[dict[type, Any], dict[type, Any]]:
    """The binary operators of a row and their reflections, by type."""
    general = row.general
    namespace = {
        name: globals()[name]
        for name in ("FLOAT64", "LARGE", "Var", "VarMat", "View", "join", "new")
    }
    namespace |= {"array": np.array, "ndarray": np.ndarray, "float64": np.float64}
    namespace |= {
        "ufunc": row.ufunc,
        "general": general,
        "ieee": row.ieee,
        "mismatch": mismatch,
        "name": row.name,
    }
    shortcut = (
        "if kind is not ndarray and other in shortcuts: return shortcuts[other](self)"
        if row.shortcuts
        else ""
    )
    itself = "if other is self: return square(self)" if row.with_itself else ""
    namespace["square"] = ROWS[row.with_itself].call if row.with_itself else None
    namespace["shortcuts"] = {constant: ROWS[name].call for constant, name in row.shortcuts.items()}

    def make(text: str, compile_rule: Any, mirrored: Any, reflected: bool) -> Any:
        x, y = ("y", "x") if reflected else ("x", "y")
        scalar = row.scalar_text or "scalar(x, y)"
        order = "other, self" if reflected else "self, other"
        constants = "" if reflected else shortcut
        body = text.format(
            self=x, other=y, order=order, shortcut=constants, itself=itself, scalar=scalar
        ).strip()
        rules = {
            "both": row.rule((True, True), compile_rule),
            "one": row.rule((not reflected, reflected), compile_rule),
        }
        names = {**vars(math), **namespace, **rules, "scalar": row.scalar, "mirrored": mirrored}
        return function_of("self, other", body.split("\n"), names, f"operator of {row.name}")

    forward: dict[type, Any] = dict.fromkeys(
        (Large, Borrowed, LargeView, Dual), lambda self, other: general(self, other)
    )
    backward: dict[type, Any] = dict.fromkeys(forward, lambda self, other: general(other, self))
    for kind in (VarMat, View):
        forward[kind] = make(_ARRAY_OPERATOR, array_rule, None, False)
        backward[kind] = make(_ARRAY_OPERATOR, array_rule, None, True)
    forward[Var] = make(_SCALAR_OPERATOR, scalar_rule, backward[VarMat], False)
    backward[Var] = make(_SCALAR_OPERATOR, scalar_rule, forward[VarMat], True)
    return forward, backward


def _binary_call(row: Elementwise) -> Any:
    """The call of a binary row, by way of its operators, which are made when they are first
    needed.
    """

    def call(x: Any, y: Any) -> Any:
        method = row.operators[0].get(type(x))
        if method is not None:
            return method(x, y)
        method = row.operators[1].get(type(y))
        return row.general(x, y) if method is None else method(y, x)

    return call


def _install_operator(row: Elementwise, name: str) -> None:
    """Make the row answer for a Python operator on all types."""
    if row.arity == 1:
        for each in (Var, VarMat, Dual):
            setattr(each, f"__{name}__", lambda self: row.call(self))
        return

    def in_place(self: Any, other: Any) -> Any:
        result = row.call(self, other)
        if result is NotImplemented or not self.shape:
            return result
        self[...] = result
        return self

    # Compiling the operators takes longer than importing the rest, so it waits for the first use of
    # each.
    def first_use(method: str) -> Any:
        def operator(self: Any, other: Any) -> Any:
            for prefix, methods in zip(("", "r"), row.operators, strict=True):
                for kind, function in methods.items():
                    setattr(kind, f"__{prefix}{name}__", function)
            return getattr(self, method)(other)

        return operator

    for each in (Var, VarMat, Dual):
        setattr(each, f"__{name}__", first_use(f"__{name}__"))
        setattr(each, f"__r{name}__", first_use(f"__r{name}__"))
    for each in (VarMat, Dual):
        setattr(each, f"__i{name}__", in_place)
    # NumPy's own would leave it to pandas, which would make a Series of variables.
    setattr(MatVar, f"__r{name}__", lambda self, other: row.call(other, self))


def elementwise(
    name: str,
    ufunc: Any,
    *partials: str,
    scalar: str | Callable[..., float] | None = None,
    operator: str | None = None,
    shortcuts: dict[float, str] | None = None,
    with_itself: str | None = None,
    points: Any = (),
    reference: str | None = None,
    doc: str | None = None,
) -> Elementwise:
    """Make an elementwise operation: one row of the table.

    Parameters
    ----------
    name : str
        The name of the function, with which expressions of other rows can name it.
    ufunc : ufunc or str
        What computes it on arrays (with ``out=``); the name of a `scipy.special` ufunc is imported
        on first use.
    *partials : str
        For each operand its contribution, an expression of the adjoint `g` of the result (linear in
        it), of the operands ``x``, ``y``, ``z``, ``w`` and of the result ``r``, with names of other
        rows, and of ``where``, that are differentiable themselves.
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
        If the name is that of a row with which derivatives of others are written; if an expression
        has an error of syntax or names something unknown (rows that it names come first); if a
        contribution does not depend on `g`.
    TypeError
        If an expression is not a string.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> softsign = vm.elementwise(
    ...     "softsign", np.frompyfunc(lambda x: x / (1 + abs(x)), 1, 1), "g / square(1 + absolute(x))",
    ...     scalar=lambda x: x / (1 + abs(x)), points=[(0.5,)],
    ... )
    >>> vm.gradient(lambda x: np.sum(softsign(x)), np.array([1.0, 3.0]))
    array([0.25  , 0.0625])
    """
    _check_expressions(name, partials, scalar)
    for other in (*(shortcuts or {}).values(), with_itself or name):
        if other != name and other not in ROWS:
            raise ValueError(
                f"elementwise: {name} is to be replaced by {other}, but must be by a row of the "
                "table!"
            )
    return new_row(
        name,
        ufunc,
        *partials,
        scalar=scalar,
        operator=operator,
        shortcuts=shortcuts,
        with_itself=with_itself,
        points=points,
        reference=reference,
        doc=doc,
    )


def new_row(
    name: str,
    ufunc: Any,
    *partials: str,
    scalar: str | Callable[..., float] | None,
    operator: str | None,
    shortcuts: dict[float, str] | None,
    with_itself: str | None,
    points: Any,
    reference: str | None,
    doc: str | None,
) -> Elementwise:
    """Make a row whose expressions are not looked at: parsing those of the library would take a
    tenth of its import.
    """
    if name in ROWS:
        readers = [
            each.name
            for each in ROWS.values()
            if name in {*each.mentions, *each.shortcuts.values(), each.with_itself}
        ]
        if readers not in ([], [name]):
            raise ValueError(
                f"elementwise: the name {name} is taken, and {readers[0]} is written with it; take "
                "another one!"
            )
    row = Elementwise(name, ufunc, partials, scalar, shortcuts, with_itself)
    row.__doc__, row.points, row.reference = doc, points, reference
    ROWS[name] = row
    if isinstance(ufunc, str):
        dispatch.SPECIAL[ufunc] = row.call
    elif isinstance(ufunc, np.ufunc):  # other functions do not ask their arguments
        dispatch.SUPPORTED[ufunc] = row.call
    if operator is not None:
        _install_operator(row, operator)
    return row


def _check_expressions(name: str, partials: Any, scalar: Any) -> None:
    """Refuse expressions that would fail when they are first used, far from where they are
    written.
    """
    operands = OPERANDS[: len(partials)]
    if not 0 < len(partials) <= len(OPERANDS):
        raise ValueError(
            f"elementwise: {name} has {len(partials)} contributions, but must have one to "
            f"{len(OPERANDS)}!"
        )
    for x, partial in zip(operands, partials, strict=True):
        what = f"the contribution of {name} to {x}"
        used = _names(what, partial)
        for unknown in sorted(used - {"g", "r", "where", name, *operands} - ROWS.keys()):
            # Of a number the functions are those of math.
            if unknown in OPERANDS or unknown not in vars(np) or unknown not in vars(math):
                words = (
                    f"g, r, {', '.join(operands)}, where, rows of the table, and what both "
                    "NumPy and math have"
                )
                raise ValueError(
                    f"elementwise: {what} is {partial!r}, but {unknown} is none of the names it "
                    f"may use: {words}!"
                )
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
            words = f"{', '.join(operands)} and what math has"
            raise ValueError(
                f"elementwise: {what} is {scalar!r}, but {unknown} is none of the names it may "
                f"use: {words}!"
            )


def _names(what: str, expression: Any) -> set[str]:
    """The names in an expression, which must be one."""
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
