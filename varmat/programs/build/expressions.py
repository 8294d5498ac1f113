"""Rows of the elementwise table in programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.elementwise import Elementwise
from varmat.programs.build.builder import Builder
from varmat.programs.build.symbol import (
    Symbol,
    UntraceableError,
    apply_ufunc,
    builder_of,
    is_traced,
    lift,
)
from varmat.programs.ir.program import Value
from varmat.programs.kernels.elementwise import PythonFunction
from varmat.programs.record.conditions import COMPARISON_OF, FIXED, SELECTION

if TYPE_CHECKING:
    from varmat.typing import Operand


def apply_row(builder: Builder, row: Elementwise, values: list[Value]) -> Value:
    """Apply an elementwise operation to values: as its ufunc, as its NumPy expression, or else as a
    call of Python.
    """
    if row is SELECTION:
        return builder.where(*values)
    if row is FIXED:
        return values[0]
    if row in COMPARISON_OF:
        return builder.compare(COMPARISON_OF[row], *values)
    ufunc = row.ufunc
    if isinstance(ufunc, np.ufunc) and is_traced(ufunc):
        return apply_ufunc(builder, ufunc, values)
    # Set by `varmat.plain_arrays.with_out`, or for the row.
    formula = getattr(row, "formula", None) or getattr(ufunc, "formula", None)
    if formula is not None:
        builder.in_formula = True
        try:
            inputs = (
                Symbol(builder, v) if v.data is None else v.data[()]
                for v in map(builder.number, values)
            )
            return lift(builder, formula(*inputs))
        except (UntraceableError, TypeError, AttributeError):
            pass
        finally:
            builder.in_formula = False
    kernel = _FUNCTIONS.setdefault(row, PythonFunction(row.name, ufunc))
    return builder.call(kernel, *map(builder.number, values))


def _apply_to_symbols(self: Symbol, row: Elementwise, operands: Sequence[object]) -> Symbol:
    """Apply an elementwise operation to this symbol and other operands, as its builder has it."""
    builder = self.builder
    return self.of(
        (builder.apply_row or apply_row)(builder, row, [lift(builder, x) for x in operands])
    )


Symbol.apply_row = _apply_to_symbols  # type: ignore[attr-defined]


def applied(row: Elementwise, *operands: object) -> Operand:
    """Apply an elementwise operation to symbols and plain values, in rules that are traced."""
    if not any(isinstance(x, Symbol) for x in operands):
        return row(*operands)
    builder = builder_of(*operands)
    return Symbol(builder, apply_row(builder, row, [lift(builder, x) for x in operands]))


def plain_or_symbol(builder: Builder, value: Value) -> Operand:
    """Return a constant unchanged, because traced rules may read it; make others symbols."""
    if value.data is None:
        return Symbol(builder, value)
    return value.data if value.shape else float(value.data)


# A row -> the kernel of its function.
_FUNCTIONS: dict[Elementwise, PythonFunction] = {}
