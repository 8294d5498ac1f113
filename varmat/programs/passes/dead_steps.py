"""Steps whose results nothing reads."""

from __future__ import annotations

from varmat.programs.ir.program import Program


def without_dead_steps(program: Program) -> Program:
    """Leave out steps whose results are never read, unless they may end the run."""
    read = {id(v.base) for v in program.outputs}
    saved = []
    for step in reversed(program.steps):
        if not step.kernel.is_pure or any(id(v) in read for v in step.results):
            read.update(id(v.base) for v in step.operands)
            saved.append(step)
    return Program(program.arguments, saved[::-1], program.outputs)
