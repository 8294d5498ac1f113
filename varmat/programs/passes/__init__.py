"""Passes: functions from program to program.

Simplifications of single steps are made with the program, in `varmat.programs.build.builder`. These
passes need the whole program.
"""

from __future__ import annotations

from varmat.programs.ir.program import Program
from varmat.programs.passes.batching import batched
from varmat.programs.passes.dead_steps import without_dead_steps
from varmat.programs.passes.fewer_rows import with_fewer_rows
from varmat.programs.passes.fission import fissioned
from varmat.programs.passes.sums import flattened

__all__ = ["fissioned", "optimised", "without_dead_steps"]


def optimised(program: Program) -> Program:
    """Run all passes, in order."""
    program = without_dead_steps(fissioned(without_dead_steps(program)))
    return without_dead_steps(batched(with_fewer_rows(flattened(program))))
