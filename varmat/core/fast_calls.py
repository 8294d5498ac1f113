"""Calls of elementwise operations on the common kinds, with code of its own for each kind.

Operators between variables are the hottest code of the library. They are made from text, so that
every operator of every type has its own code, which the interpreter specialises for the types that
it sees there. Everything else goes to `Elementwise.general`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64
from varmat.core.dual import Dual
from varmat.core.errors import mismatch
from varmat.core.rules import array_rule, function_of, scalar_rule
from varmat.core.tape import join
from varmat.core.variables import Large, LargeView, Spread, Var, VarMat, View, new

if TYPE_CHECKING:
    from varmat.core.elementwise import Elementwise
    from varmat.typing import Function, Operand

Methods = dict[type, Any]


def unary_call(row: Elementwise) -> Function:
    """The call of a unary row: the common kinds first."""
    of_array, of_scalar = row.rule((True,), array_rule), row.rule((True,), scalar_rule)
    general, scalar, ieee = row.general, row.scalar, row.ieee

    def call(x: Operand) -> Operand:
        kind = type(x)
        result: Operand
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


# `self` is x or y, whichever side it stands on.
_ARRAY_OPERATOR = """
{itself}
kind = type(other)
if kind is VarMat or kind is Var or kind is View:
    tape = self._tape
    tape = tape.top if tape is other._tape else join(tape, other._tape)
    {other} = other._val
    rule = both
elif (
    kind is float or kind is int or kind is float64
    or (kind is ndarray and other.dtype is FLOAT64 and other.size <= LARGE)
):
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


def operators(row: Elementwise) -> tuple[Methods, Methods]:
    """The operators of a row and their reflections, by type."""
    if row.arity == 1:
        return dict.fromkeys((Var, VarMat, Dual), row.call), {}
    general, rows = row.general, row.rows
    namespace = {
        "FLOAT64": FLOAT64, "LARGE": LARGE, "Var": Var, "VarMat": VarMat, "View": View,
        "join": join, "new": new, "array": np.array, "ndarray": np.ndarray, "float64": np.float64,
        "ufunc": row.ufunc, "general": general, "ieee": row.ieee, "mismatch": mismatch,
        "name": row.name, "square": rows[row.with_itself].call if row.with_itself else None,
        "shortcuts": {constant: rows[name].call for constant, name in row.shortcuts.items()},
    }  # fmt: skip
    shortcut = (
        "if kind is not ndarray and other in shortcuts: return shortcuts[other](self)"
        if row.shortcuts
        else ""
    )
    itself = "if other is self: return square(self)" if row.with_itself else ""

    def make(
        text: str, compile_rule: Function, mirrored: Function | None, reflected: bool
    ) -> Function:
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

    forward: Methods = dict.fromkeys(
        (Large, LargeView, Spread, Dual), lambda self, other: general(self, other)
    )
    backward: Methods = dict.fromkeys(forward, lambda self, other: general(other, self))
    for kind in (VarMat, View):
        forward[kind] = make(_ARRAY_OPERATOR, array_rule, None, False)
        backward[kind] = make(_ARRAY_OPERATOR, array_rule, None, True)
    forward[Var] = make(_SCALAR_OPERATOR, scalar_rule, backward[VarMat], False)
    backward[Var] = make(_SCALAR_OPERATOR, scalar_rule, forward[VarMat], True)
    return forward, backward


def binary_call(row: Elementwise) -> Function:
    """The call of a binary row, by way of its operators, which are made on first use."""

    def call(x: Operand, y: Operand) -> Operand:
        method = row.operators[0].get(type(x))
        if method is not None:
            return method(x, y)
        method = row.operators[1].get(type(y))
        return row.general(x, y) if method is None else method(y, x)

    return call
