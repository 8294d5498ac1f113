"""From a tape to a program of values alone: several results of a function of one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.tape import Tape
from varmat.core.variables import VARIABLES
from varmat.programs.ir.program import FLOAT, Program, Value
from varmat.programs.record.tape_programs import TapeProgram

if TYPE_CHECKING:
    from varmat.typing import Operand


def values_of(tape: Tape, leaves: Sequence[Operand], results: Sequence[Operand]) -> Program:
    """The program of results, variables or plain, of a vector that all leaves stand for. Its
    outputs are zero and the results.
    """
    written = TapeProgram()
    builder = written.builder
    argument = builder.argument(leaves[0].shape)
    for leaf in leaves:
        written.node(leaf, argument)
    written.entries(tape, len(leaves), results)

    def value(x: Operand) -> Value:
        found = (
            written.find(x).value if type(x) in VARIABLES else builder.constant(np.array(x, FLOAT))
        )
        return builder.number(found)

    outputs = [builder.constant(0.0), *map(value, results)]
    written.guard_finite()
    return builder.program(outputs)
