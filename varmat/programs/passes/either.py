"""Two branches of a function, as one program."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.build.builder import Builder
from varmat.programs.kernels.guards import GUARD
from varmat.programs.passes import optimised

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Kernel
    from varmat.programs.ir.program import Program, Step, Value


class _Demands(Builder):
    """Keeps what guards demand instead of writing them."""

    def __init__(self) -> None:
        super().__init__()
        self.demands: list[Value] = []

    def apply(
        self, kernel: Kernel, *operands: Value, step: Step | None = None
    ) -> tuple[Value, ...]:
        if not kernel.is_guard:
            return super().apply(kernel, *operands, step=step)
        (x,) = operands
        self.demands.append(self.reduce(np.logical_and, x, range(len(x.shape))))
        return ()


def either(first: Program, second: Program) -> Program:
    """Make the program of two branches of one function.

    All steps of both are computed, and the outputs are from the first program where it holds, else
    from the second, whatever the other makes of that point. The run ends where neither holds. Both
    have the same arguments, and as many outputs.
    """
    builder = _Demands()
    builder.arguments = first.arguments
    holds, result = [], []
    for program in (first, second):
        builder.demands = [builder.constant(True)]
        result.append(builder.inlined(program, *builder.arguments))
        holds.append(reduce(partial(builder.logical, np.logical_and), builder.demands))
    Builder.apply(builder, GUARD, builder.logical(np.logical_or, *holds))
    outputs = [builder.where(holds[0], *x) for x in zip(*result, strict=True)]
    return optimised(builder.program(outputs))
