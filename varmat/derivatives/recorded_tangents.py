"""Recorded tangents of operations whose tangent rule looks at values.

A tangent rule may choose a formula by the values of its operands: that of the determinant treats
singular matrices apart. The choice made at the recorded point can be wrong at other points. Such a
tangent is therefore recorded as one operation, which calls the rule anew at every run: in forward
mode for its value, and in forward over reverse mode for its contributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from varmat.core.dual import Dual, Level, paired
from varmat.core.operation import Operation
from varmat.core.tape import nested, start_sweep, sweep
from varmat.core.variables import VARIABLES, borrow_leaf
from varmat.derivatives.inputs_and_outputs import adjoint_of
from varmat.typing import Operand, Result, Settings

if TYPE_CHECKING:
    from varmat.core.elementwise import Elementwise


def called_tangent(
    op: Operation | Elementwise, args: tuple[Operand, ...], settings: Settings
) -> Result:
    """Record the tangent of the result of an operation, or a tuple of tangents, as one call.

    Parameters
    ----------
    op : Operation or Elementwise
    args : tuple
        The operands; at least one is a dual.
    settings : dict
    """
    operands = [x.val if isinstance(x, Dual) else x for x in args]
    places = [i for i, x in enumerate(args) if isinstance(x, Dual)]
    given = [*operands, *(args[i].tan for i in places)]
    return _operation(op, len(args), places, [type(x) in VARIABLES for x in given], settings)(
        *given
    )


def _operation(
    op: Operation | Elementwise,
    count: int,
    places: list[int],
    variable: list[bool],
    settings: Settings,
) -> Operation:
    """The tangent as an operation of its own: its operands are those of `op`, followed by the
    tangents of the operands at `places`.
    """

    level = Level(op.name)

    def tangent(*given: Operand) -> Result:
        operands = list(given[:count])
        for i, t in zip(places, given[count:], strict=True):
            operands[i] = paired(operands[i], t, level)
        y = op(*operands, **settings)
        return tuple(part.tan for part in y) if isinstance(y, tuple) else y.tan

    def reverse(g: Operand, r: Operand, *given: Operand) -> tuple[Operand, ...]:
        with nested() as tape:
            leaves = [
                borrow_leaf(x, tape) if each else x for x, each in zip(given, variable, strict=True)
            ]
            rates = tangent(*leaves)
            start_sweep(tape)
            for rate, c in zip(
                *(x if isinstance(x, tuple) else (x,) for x in (rates, g)), strict=True
            ):
                if type(rate) in VARIABLES and c is not None:
                    rate._add(c)
            sweep(tape)
            return tuple(
                adjoint_of(x) if each else 0.0 for x, each in zip(leaves, variable, strict=True)
            )

    tangent.__name__ = f"{op.name}.tangent"
    made = Operation(tangent, None, variadic=True, stacked=False, native=False)
    made.is_traceable = False
    made.reverse(reverse)
    return made
