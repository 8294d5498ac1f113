"""From a tape to a program without its adjoint: several results of a function of one vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from varmat.core.tape import Tape
from varmat.core.variables import VARIABLES
from varmat.programs.program import FLOAT, Program, Value
from varmat.programs.tape_programs import TapeProgram


def values_of(tape: Tape, leaves: Sequence[Any], results: Sequence[Any]) -> Program:
    """The program of results, variables or plain, of leaves that all are the same vector; its
    outputs are zero and the results.
    """
    written = TapeProgram()
    builder = written.builder
    argument = builder.argument(leaves[0].shape)
    for leaf in leaves:
        written.node(leaf, argument)
    # As for a gradient: each assignment has its own values, and nobody reads the variables any
    # more.
    for assignment in reversed(tape.assignments):
        assignment.undo()
    for leaf in tape.leaves[len(leaves) :]:
        written.node(leaf, builder.constant(np.copy(leaf._val) if leaf.shape else leaf._val))
    for entry in tape:
        written.entry(*entry)

    def value(x: Any) -> Value:
        found = (
            written.find(x).value if type(x) in VARIABLES else builder.constant(np.array(x, FLOAT))
        )
        return builder.number(found)

    return builder.program([builder.constant(0.0), *map(value, results)])
