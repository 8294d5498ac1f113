"""Expressions of tables: rows of the elementwise table and the names in their partials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.elementwise import ROWS, Elementwise
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
from varmat.programs.kernels.elementwise import Function
from varmat.programs.record.conditions import COMPARISON_OF, FIXED, SELECTION

if TYPE_CHECKING:
    from varmat.typing import Operand


def apply_row(builder: Builder, row: Elementwise, values: list[Value]) -> Value:
    """An elementwise operation of values: as its ufunc, as the NumPy expression behind it, or else
    as a call of Python.
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
            given = (
                Symbol(builder, v) if v.data is None else v.data[()]
                for v in map(builder.number, values)
            )
            return lift(builder, formula(*given))
        except (UntraceableError, TypeError, AttributeError):
            pass
        finally:
            builder.in_formula = False
    kernel = _FUNCTIONS.setdefault(row, Function(row.name, ufunc))
    return builder.call(kernel, *map(builder.number, values))


def applied(row: Elementwise, *operands: Operand) -> Operand:
    """An elementwise operation of symbols and plain values, in rules that are traced."""
    if not any(isinstance(x, Symbol) for x in operands):
        return row(*operands)
    builder = builder_of(*operands)
    return Symbol(builder, apply_row(builder, row, [lift(builder, x) for x in operands]))


def plain_or_symbol(builder: Builder, value: Value) -> Operand:
    """A constant as it is, any other value as a symbol: a traced rule may look at constants."""
    if value.data is None:
        return Symbol(builder, value)
    return value.data if value.shape else float(value.data)


# A row -> the kernel of its function.
_FUNCTIONS: dict[Elementwise, Function] = {}


class Scope(dict[str, Any]):
    """The names in an expression: letters and abbreviations for symbols, and functions of a table,
    the library's unless another is given.
    """

    def __init__(
        self,
        builder: Builder,
        letters: dict[str, Operand],
        let: dict[str, str] | None = None,
        rows: Mapping[str, Elementwise] = ROWS,
    ) -> None:
        super().__init__(letters)
        self.builder, self.let, self.rows = builder, let or {}, rows

    def __missing__(self, name: str) -> Operand:
        if name in self.let:
            self[name] = eval(compiled(self.let[name]), {"__builtins__": {}}, self)
            return self[name]
        row, builder = self.rows.get(name), self.builder
        if row is not None:
            return lambda *args: Symbol(
                builder, apply_row(builder, row, [lift(builder, x) for x in args])
            )
        if name == "where":
            return lambda *args: Symbol(builder, builder.where(*(lift(builder, x) for x in args)))
        return (
            getattr(math, name)
            if hasattr(math, name) and not callable(getattr(math, name))
            else getattr(np, name)
        )

    def evaluate(self, expression: str) -> Value:
        return lift(self.builder, eval(compiled(expression), {"__builtins__": {}}, self))

    def symbol(self, expression: str) -> Symbol:
        return Symbol(self.builder, self.evaluate(expression))


def scope_of(values: Sequence[Operand], names: Iterable[str], let: dict[str, str]) -> Scope:
    """A scope in which names stand for symbols and plain values."""
    builder = builder_of(*values)
    return Scope(
        builder,
        {name: Symbol(builder, lift(builder, x)) for name, x in zip(names, values, strict=True)},
        let,
    )


@cache
def compiled(expression: str) -> Operand:
    """The code of an expression of a table."""
    return compile(expression, f"<expression: {expression}>", "eval")
