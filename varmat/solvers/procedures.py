"""Statements over numbers as one operation, with derivatives by reversing them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from varmat.core.errors import TapeError
from varmat.core.operation import Saved, operation
from varmat.programs.build.symbol import is_symbol
from varmat.programs.kernels.procedure import Procedure
from varmat.programs.passes.reverse import Source
from varmat.solvers.inner import KernelRunners, filled
from varmat.typing import Adjoint, Linear, Operand, Plain, Result


class StatementCode:
    """A source and its data.

    Attributes
    ----------
    source : Source
    data : list of ndarray
    """

    def __init__(self, source: Source, data: Sequence[np.ndarray]) -> None:
        self.source, self.data = source, [*data]
        self._along: dict[int, StatementCode] = {}
        self._runners = KernelRunners()

    @cached_property
    def forward(self) -> Procedure:
        return self.source.forward()

    @cached_property
    def backward(self) -> Procedure:
        return self.source.backward()

    @cached_property
    def with_gradient(self) -> Procedure:
        return self.source.with_gradient()

    @property
    def is_native(self) -> bool:
        """Whether all that a gradient needs is machine code."""
        gradient = self.backward if self.source.outputs else self.with_gradient
        return self.forward.is_native and gradient.is_native

    def along(self, which: int) -> StatementCode:
        """Differentiate along a leaf."""
        if which not in self._along:
            self._along[which] = StatementCode(self.source.along(which), self.data)
        return self._along[which]

    def run(self, kernel: Procedure, *operands: object) -> list[np.ndarray]:
        """Compute the results of a procedure for operands, before the data."""
        n = len(self.source.leaves)
        arguments = [*operands[:n], *self.data, *operands[n:]]
        result = self._runners.run(kernel, kernel.cost, *arguments)
        if result is None:
            raise TapeError("a loop ends here, and is run as it is written")
        return result


@operation(variadic=True)
def procedure_results(*leaves: Plain, code: StatementCode) -> tuple[Plain, ...] | Saved:
    """Compute the total and the other results of statements."""
    if not code.source.outputs and any(map(is_symbol, leaves)):
        total, *gradient = code.run(code.with_gradient, *leaves)
        return Saved((total,), gradient=gradient)
    return Saved(tuple(code.run(code.forward, *leaves)), gradient=None)


@procedure_results.reverse
def procedure_results_reverse(
    g: Adjoint, r: Plain, *leaves: Plain, code: StatementCode, gradient: Sequence[Plain] | None
) -> tuple[Operand, ...]:
    if gradient is not None:  # of a program, computed together with the total
        return tuple(g[0] * x for x in gradient)
    return tuple(code.run(code.backward, *leaves, *filled(g, r)))


@procedure_results.tangent
def procedure_results_tangent(
    r: Operand, *leaves: Operand, code: StatementCode
) -> tuple[Linear, ...]:
    def along(which: int, t: Operand) -> Result:
        return procedure_results(*leaves, t, code=code.along(which))

    return tuple(partial(along, which) for which in range(len(leaves)))


def procedure(code: StatementCode, leaves: Sequence[Operand]) -> Sequence[Operand]:
    """Compute the total of statements and their other results, for leaves that are variables."""
    return procedure_results(*leaves, code=code)  # type: ignore[no-any-return]
