"""Calls of elementwise operations on the common kinds, with separate code for each kind.

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
    """Make the call of a unary row: the common kinds first."""
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


# `self` is x or y, whichever side of the operator it is on.
_OPERATOR = """
{itself}
kind = type(other)
if {is_variable}:
    tape = self._tape
    tape = tape.top if tape is other._tape else join(tape, other._tape)
    {other} = other._val
    rule = both
elif {is_constant}:
    {shortcut}
    tape = self._tape.top
    {other} = other = {constant}
    rule = one
else:
    return {otherwise}
{self} = self._val
{compute}
result._adj = None
result._tape = tape
tape.append((rule, result, {order}))
return result
"""

_ARRAYS = {
    "is_variable": "kind is VarMat or kind is Var or kind is View",
    "is_constant": "kind is float or kind is int or kind is float64 or (\n"
    "    kind is ndarray and other.dtype is FLOAT64 and other.size <= LARGE\n)",
    "constant": "other",
    "otherwise": "general({order})",
    "compute": """
try: val = ufunc(x, y)
except ValueError as error: raise mismatch(name, error, x, y) from None
result = new(VarMat)
result._val = val if val.ndim == 1 or val.flags.c_contiguous else array(val, order="C")
""",
}
_SCALARS = {
    "is_variable": "kind is Var",
    "is_constant": "kind is float or kind is int or kind is float64",
    "constant": "float(other) if kind is float64 else other",
    "otherwise": "mirrored(other, self) if kind is VarMat or kind is View else general({order})",
    "compute": """
result = new(Var)
try: result._val = {scalar}
except (ArithmeticError, ValueError): result._val = ieee(x, y)
""",
}


def operators(row: Elementwise) -> tuple[Methods, Methods]:
    """Compile the operators of a row and their reflections, by type."""
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
        kinds: dict[str, str], compile_rule: Function, reflected: bool, mirrored: Function | None
    ) -> Function:
        x, y = ("y", "x") if reflected else ("x", "y")
        texts = {
            "self": x, "other": y, "order": "other, self" if reflected else "self, other",
            "shortcut": "" if reflected else shortcut, "itself": itself,
            "scalar": row.scalar_text or "scalar(x, y)",
        }  # fmt: skip
        texts |= {name: text.format(**texts).strip() for name, text in kinds.items()}
        rules = {
            "both": row.rule((True, True), compile_rule),
            "one": row.rule((not reflected, reflected), compile_rule),
        }
        names = {**vars(math), **namespace, **rules, "scalar": row.scalar, "mirrored": mirrored}
        body = _OPERATOR.format(**texts).strip().split("\n")
        return function_of("self, other", body, names, f"operator of {row.name}")

    forward: Methods = dict.fromkeys(
        (Large, LargeView, Spread, Dual), lambda self, other: general(self, other)
    )
    backward: Methods = dict.fromkeys(forward, lambda self, other: general(other, self))
    for kind in (VarMat, View):
        forward[kind] = make(_ARRAYS, array_rule, False, None)
        backward[kind] = make(_ARRAYS, array_rule, True, None)
    forward[Var] = make(_SCALARS, scalar_rule, False, backward[VarMat])
    backward[Var] = make(_SCALARS, scalar_rule, True, forward[VarMat])
    return forward, backward


def binary_call(row: Elementwise) -> Function:
    """Make the call of a binary row, by way of its operators, which are compiled on first use."""

    def call(x: object, y: object) -> Operand:
        method = row.operators[0].get(type(x))
        if method is not None:
            return method(x, y)
        method = row.operators[1].get(type(y))
        return row.general(x, y) if method is None else method(y, x)

    return call
