"""The program of what was recorded: its value, and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.dual import value_now
from varmat.core.tape import Tape
from varmat.core.variables import VARIABLES, Variable
from varmat.programs.ir.program import FLOAT, Program, Step
from varmat.programs.kernels.elementwise import SELECT, ufunc_kernel
from varmat.programs.record.tape_programs import RecordedVariable, TapeProgram

if TYPE_CHECKING:
    from varmat.typing import Operand


def write_tape(program: TapeProgram, tape: Tape, values: int, results: Sequence[object]) -> None:
    """Write the forward part of a tape whose first `values` leaves have their nodes, and some of
    whose results are wanted.
    """
    # Imported by the first recording, because `import varmat` is quicker without them.
    from varmat.programs.record.assignments import Assignments
    from varmat.programs.record.recurrences import write_entries

    # Undo the assignments, so that each has both its values and the overwritten ones; the variables
    # are not read any more.
    for assignment in reversed(tape.assignments):
        assignment.undo()
    for leaf in tape.leaves[values:]:
        value = value_now(leaf)
        program.node(leaf, program.builder.constant(np.copy(value) if leaf.shape else value))
    assignments = Assignments(tape)
    program.entries = assignments.entries
    output = assignments.now(list(results))
    write_entries(program, program.entries, output)
    for result, value in zip(results, output, strict=True):
        if value is not result:
            program.alias(result, program.find(value))


def _chooses(steps: Sequence[Step]) -> bool:
    """Return whether one of two values that are computed is chosen, also in loops."""
    return any(
        not all(v.is_constant for v in step.operands[1:])
        if step.kernel is SELECT
        else any(_chooses(body.steps) for body in step.kernel.bodies)
        for step in steps
    )


def program_of(
    tape: Tape,
    leaves: Sequence[Variable],
    values: Sequence[Operand],
    pulled: Sequence[Operand] = (),
    requested: Sequence[Variable] = (),
    *,
    weighted: bool = False,
    decisions: Sequence[tuple[Operand, bool]] = (),
) -> Program:
    """Return the program of what was recorded, as a function of leaves.

    Parameters
    ----------
    tape : Tape
    leaves : sequence of variables
        The arguments of the program; other leaves become constants.
    values : sequence of variables and plain values
        The outputs.
    pulled, requested : sequences of variables
        Further outputs: the gradients of the sum of `pulled` with respect to `requested`.
    weighted : bool
        Whether the program takes weights for the sum as further arguments.
    ways : sequence of tuple
        Variables that are zero or one, and whether they must be one: the run ends at other points.
    """
    program = TapeProgram()
    builder = program.builder
    nodes: dict[int, RecordedVariable] = {}
    for x in leaves:
        argument = builder.argument(x.shape)
        if id(x) not in nodes:  # a function may be differentiated by an argument twice
            nodes[id(x)] = program.node(x, argument)
    write_tape(program, tape, len(nodes), [*values, *pulled, *(x for x, _ in decisions)])
    for x, holds in decisions:
        condition = builder.truth(program.find(x).value)
        builder.guard(condition if holds else builder.logical(np.logical_not, condition))
    # The nodes of views take part in the reverse pass, so they are made before it.
    returned = [
        program.find(y).value if type(y) in VARIABLES else builder.constant(np.array(y, FLOAT))
        for y in values
    ]
    for y in pulled:
        weight = builder.argument(np.shape(y)) if weighted else builder.constant(1.0)
        node = program.find(y) if type(y) in VARIABLES else None
        if node is not None and not node.value.is_constant:
            node.contributions.append(weight)
    program.write_reverse()
    program.guard_finite()
    gradients = []
    for x in requested:
        g = program.adjoint(nodes[id(x)])
        gradients.append(builder.full(builder.constant(0.0) if g is None else g, x.shape))
    if not weighted and _chooses(builder.steps):
        # The adjoint of what is not chosen is zero, but times an infinite slope it is nan.
        for g in gradients:
            builder.guard(builder.call(ufunc_kernel(np.isfinite), builder.sum(g)))
    return builder.program([*map(builder.number, returned), *gradients])
