"""From statements to procedures: functions and sums that follow each other become programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from varmat.programs.build.builder import Builder
from varmat.programs.build.symbol import Symbol, lift
from varmat.programs.ir import statements as s
from varmat.programs.ir.program import Value
from varmat.programs.kernels.procedure import Line, Procedure


def procedure(
    inputs: Sequence[s.Storage], outputs: Sequence[s.Storage], body: Sequence[s.Statement]
) -> Procedure:
    """Make the procedure of statements; see `Procedure`."""
    return Procedure(inputs, outputs, in_lines(body))


def in_lines(statements: Sequence[s.Statement]) -> list[s.Statement]:
    """Write functions and sums that follow each other as programs."""
    result: list[s.Statement] = []
    line = _Line()
    for statement in statements:
        if not isinstance(statement, (s.Compute, s.Add)):
            result += line.ended()
            result.append(s.mapped(statement, in_lines))
            line = _Line()
            continue
        if not line.takes(statement):
            result += line.ended()
            line = _Line()
        line.add(statement)
    return [*result, *line.ended()]


class _Line:
    """Functions and sums in sequence."""

    def __init__(self) -> None:
        self._builder, self._values = Builder(), dict[s.Cell, Value]()
        self._inputs: list[s.Cell] = []
        self._outputs: dict[s.Cell, None] = {}
        self._sums: dict[s.Cell, list[Value]] = {}

    def takes(self, x: s.Compute | s.Add) -> bool:
        """Return whether `x` may follow: a sum is not read, and not written either."""
        if isinstance(x, s.Add):
            return x.out not in self._outputs and x.value not in self._sums
        return self._sums.keys().isdisjoint((x.out, *x.arguments))

    def add(self, x: s.Compute | s.Add) -> None:
        with np.errstate(all="ignore"):
            if isinstance(x, s.Add):
                self._sums.setdefault(x.out, []).append(lift(self._builder, self._symbol(x.value)))
                return
            value = lift(self._builder, x.function.function(*map(self._symbol, x.arguments)))
        self._values[x.out] = self._builder.number(value)
        self._outputs[x.out] = None

    def _symbol(self, x: s.Number) -> Any:
        if not isinstance(x, s.Cell):
            return float(x)
        if x not in self._values:
            self._values[x] = self._builder.argument(())
            self._inputs.append(x)
        value = self._values[x]
        return float(value.data) if value.is_constant else Symbol(self._builder, value)

    def ended(self) -> list[s.Statement]:
        """Return a list of the statement, if it has any."""
        if not self._outputs and not self._sums:
            return []
        sums = [self._builder.add_all(terms) for terms in self._sums.values()]
        program = self._builder.program([*(self._values[x] for x in self._outputs), *sums])
        return [Line(program, self._inputs, [*self._outputs], [*self._sums])]
