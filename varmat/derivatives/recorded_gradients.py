"""Gradients inside a function that is recorded: the program of the value and the gradients, and the
program of their contributions, become steps of the program around them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from varmat.core.tape import Rule
from varmat.core.variables import borrow_leaf
from varmat.derivatives.nested import Gradients
from varmat.derivatives.recorded_tapes import recording_to_write, watched
from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import FLOAT, Program, Value
from varmat.programs.kernels.loop import Loop
from varmat.programs.passes import optimised, without_dead_steps
from varmat.programs.passes.rewriter import Rewriter
from varmat.programs.record.programs import program_of
from varmat.programs.record.tape_programs import TapeProgram, writes
from varmat.typing import Operand, Settings


@writes(Gradients)
def _gradients(
    program: TapeProgram, rule: Rule, result: Operand, args: Sequence[Operand], settings: Settings
) -> None:
    """Write the steps of a value and gradients."""
    op, builder, first = rule.op, program.builder, len(args) - rule.op.mapped
    operands = [program.operand(x) for x in args]
    values = [value for value, _ in operands]
    shared, rows = values[:first], values[first:]
    wrt = builder.inlined(_points(op), *shared)
    _, *created = builder.inlined(_along(_values(op), rows), *shared, *wrt, *rows)
    nodes = [program.node(x, value) for x, value in zip(result, created, strict=True)]

    def back() -> None:
        adjoints = [program.adjoint(node) for node in nodes]
        weights = [
            builder.broadcast(g, node.shape)
            for g, node in zip(adjoints, nodes, strict=True)
            if g is not None
        ]
        pulled = _contributions(op, [g is not None for g in adjoints])
        mapped = [*rows, *weights] if rows else []
        _, *output = builder.inlined(_along(pulled, mapped, first), *values, *weights)
        for (_, operand), c in zip([*operands[first:], *operands[:first]], output, strict=True):
            if operand is not None:
                program.contribute(operand, c, operand.shape)

    program.back(nodes, back)


def _points(op: Gradients) -> Program:
    """Write the program from the shared operands to the variables of the gradients."""
    with recording_to_write() as tape, watched(tape):
        operands = [borrow_leaf(x, tape) for x in op.kept.points]
        shared = operands[: len(operands) - op.mapped]
        _, wrt = op.kept.recompute(operands, wrt=[borrow_leaf(x, tape) for x in op.kept.values])
        return without_dead_steps(program_of(tape, shared, wrt))


def _values(op: Gradients) -> Program:
    """Write the program of zero, the value and the gradients. Its arguments are the shared
    operands, the variables of the gradients, and the operands with rows.
    """
    with recording_to_write() as tape, watched(tape):
        operands = [borrow_leaf(x, tape) for x in op.kept.points]
        wrt = [borrow_leaf(x, tape) for x in op.kept.values]
        y, _ = op.kept.recompute(operands, wrt=wrt)
        first = len(operands) - op.mapped
        args = [*operands[:first], *wrt, *operands[first:]]
        return without_dead_steps(program_of(tape, args, [0.0, y], [y], wrt))


def _contributions(op: Gradients, has: Sequence[bool]) -> Program:
    """Write the program of zero and the contributions to the operands, first to operands with rows.
    Its arguments are the operands, and the adjoints of the results that have one.
    """
    with recording_to_write() as tape, watched(tape):
        operands = [borrow_leaf(x, tape) for x in op.kept.points]
        weights = [
            borrow_leaf(x, tape) if item else None
            for x, item in zip((1.0, *op.kept.values), has, strict=True)
        ]
        y = op.kept.weighted(op.name, operands, weights, tape)
        first, args = len(operands) - op.mapped, [x for x in weights if x is not None]
        requested = [*operands[first:], *operands[:first]]
        return without_dead_steps(program_of(tape, [*operands, *args], [0.0], [y], requested))


def _along(program: Program, rows: Sequence[Value], summed: int = 0) -> Program:
    if not rows:
        return program
    # Passes do not go into the body of a loop.
    return along_rows(optimised(program), len(rows), rows[0].shape[0], summed)


def along_rows(program: Program, rows: int, count: int, summed: int = 0) -> Program:
    """Return the program for all rows of its last arguments.

    Its outputs but the first are stacked, the last of them summed. A loop makes them from the steps
    that depend on the rows."""
    first, outputs = len(program.arguments) - rows, program.outputs[1:]
    builder, args = Builder(), program.arguments[first:]
    columns = [Value((count, *v.shape)) for v in args]
    builder.arguments = [*program.arguments[:first], *columns]
    if not count:
        empty = [builder.constant(np.empty((0, *v.shape))) for v in outputs]
        return builder.program([program.outputs[0], *empty])
    depending = depending_on(program, args)
    body, read = [], {id(v.base): v.base for v in outputs}
    for step in reversed(program.steps):
        # A loop can share numbers only, so steps that make truth values and objects are in it too.
        is_local = any(id(v) in read and v.dtype is not FLOAT for v in step.results)
        if id(step) in depending or is_local:
            body.append(step)
            read.update((id(v.base), v.base) for v in step.operands)
    mine = {id(v) for step in body for v in step.results} | depending
    shared = [v for key, v in read.items() if key not in mine and not v.is_constant]
    builder.steps = [step for step in program.steps if id(step) not in depending]
    arguments = [*args, *(Value(v.shape) for v in shared)]
    rewriter = Rewriter(Program(arguments, body[::-1], outputs))
    rewriter.replace(shared, arguments[rows:])
    for step in rewriter.old.steps:
        rewriter.keep(step)
    loop = Loop(rewriter.program(), count, 0, rows, len(outputs) - summed)
    result = builder.apply(loop, *columns, *shared)
    return builder.program([program.outputs[0], *result])


def depending_on(program: Program, values: Sequence[Value]) -> set[int]:
    """Find the ids of values, and of the steps and results of a program that depend on them."""
    result = {id(v) for v in values}
    for step in program.steps:
        if any(id(v.base) in result for v in step.operands):
            result.update(map(id, (step, *step.results)))
    return result
