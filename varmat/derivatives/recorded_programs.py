"""Programs of products with Hessians and Jacobians, as functions of the point and the vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from varmat.core.dual import attached
from varmat.core.tape import Tape
from varmat.core.variables import borrow_leaf
from varmat.derivatives.forward import call_with_tangents, scalar_parts
from varmat.derivatives.inputs_and_outputs import outputs, scalar_result
from varmat.derivatives.jacobians import has_no_tangent
from varmat.derivatives.recorded_base import recording_to_write, watched
from varmat.derivatives.recorded_rows import Mapped
from varmat.derivatives.structure import Arguments, ArgumentTree, leaves_of, rebuilt
from varmat.programs.ir.program import Program
from varmat.programs.passes import optimised
from varmat.programs.record.conditions import Branches, following
from varmat.programs.record.tape_programs import TapeProgram, program_of
from varmat.typing import Entry, Function, Operand, Settings


class Written(NamedTuple):
    """A program of several results.

    Attributes
    ----------
    program : Program
        Before optimisation. Its first output is zero; after a run that ended early it is not.
    template : object
        What the function returned, with zeros in place of the numbers.
    only_reverse : bool
        Whether there is an operation without a forward rule.
    """

    program: Program
    template: Any
    only_reverse: bool


def product_program(
    name: str, f: Function, points: ArgumentTree, args: Arguments, named: Settings
) -> Program:
    """The program of the Hessian of a scalar function times a vector, with the point, what is
    `Mapped`, and the vector as arguments.
    """
    with recording_to_write() as tape:
        variables, tangents = _variables(points, tape), _variables(points, tape)
        args, rows = with_leaves(args, tape)
        with watched(tape, f, args, named):
            y, parts = call_with_tangents(
                name, f, (rebuilt(points, variables),), tangents, args, named, attached
            )
            value, tangent = scalar_parts(name, y, parts)
            scalar_result(name, value, tape)
            slope = 0.0 if tangent is None else scalar_result(name, tangent, tape)
        leaves = [*variables, *rows, *tangents]
        return optimised(program_of(tape, leaves, [0.0], [slope], variables))


def tangent_program(
    name: str,
    f: Function,
    points: Sequence[object],
    args: Arguments = (),
    named: Settings | None = None,
) -> Written:
    """The program of values and of their derivatives in a direction, with the point, what is
    `Mapped`, and the direction as arguments.

    The structure `points` is that of the first arguments of the function, and `args` are the
    others."""
    with recording_to_write() as tape:
        variables, tangents = _variables(points, tape), _variables(points, tape)
        args, rows = with_leaves(args, tape)
        with watched(tape, f, args, named):
            y, parts = call_with_tangents(
                name, f, rebuilt(points, variables), tangents, args, named, attached
            )
            values = outputs(name, [value for value, _ in parts], tape)
            rates = [
                np.zeros(np.shape(x)) if t is None else t
                for x, (_, t) in zip(values, parts, strict=True)
            ]
            rates = outputs(name, rates, tape)
        program = program_of(tape, [*variables, *rows, *tangents], [0.0, *values, *rates])
        return Written(program, template_of(y, values), False)


def weighted_program(
    name: str,
    f: Function,
    points: Sequence[object],
    args: Arguments = (),
    named: Settings | None = None,
) -> Written:
    """The program of values and of the gradients of their weighted sum, with the point, what is
    `Mapped`, and the weights as arguments.
    """
    with recording_to_write() as tape:
        variables = _variables(points, tape)
        args, rows = with_leaves(args, tape)
        followed = Branches(0)
        with watched(tape, f, args, named), following(followed, tape):
            y = f(*rebuilt(points, variables), *args, **(named or {}))
            values = outputs(name, leaves_of(y), tape)
        only_reverse = any(map(has_no_tangent, tape))
        leaves, ways = [*variables, *rows], followed.conditions
        program = program_of(
            tape, leaves, [0.0, *values], values, variables, weighted=True, ways=ways
        )
        return Written(program, template_of(y, values), only_reverse)


def rolled_entries(
    name: str, f: Callable[[Operand, Tape], Operand], point: Operand
) -> tuple[Sequence[Entry], Sequence[Entry]]:
    """The entries that the recording of a function keeps, and those of them that it rolls into
    loops. The function is given its tape too.
    """
    with recording_to_write() as tape:
        x = borrow_leaf(point, tape)
        with watched(tape, f):
            y = scalar_result(name, f(x, tape), tape)
        program = TapeProgram()
        program.node(x, program.builder.argument(x.shape))
        program.entries(tape, 1, [y])
        rolled: list[Entry] = []
        for loop in program.loops:
            rolled += loop.rolled
        return program.kept, rolled


def part_of(program: Program, arguments: slice, outputs: slice) -> Program:
    """The program of the zero and some of the outputs. `arguments` must be all that these need."""
    return optimised(
        Program(
            program.arguments[arguments],
            program.steps,
            [program.outputs[0], *program.outputs[outputs]],
        )
    )


def with_leaves(args: Sequence[Operand], tape: Tape) -> tuple[Arguments, list[Operand]]:
    """Arguments with variables in place of what is `Mapped`, and all these variables."""
    given, leaves = list(args), []
    for i, x in enumerate(args):
        if type(x) is Mapped:
            given[i] = rebuilt(x.tree, _variables(x.tree, tape))
            leaves += leaves_of(given[i])
    return tuple(given), leaves


def _variables(points: ArgumentTree, tape: Tape) -> list[Operand]:
    return [borrow_leaf(x, tape) for x in leaves_of(points)]


def template_of(y: Operand, values: Sequence[Operand]) -> ArgumentTree:
    """A structure with zeros in place of the numbers, which take no memory."""
    return rebuilt(y, [np.broadcast_to(0.0, x.shape) if np.shape(x) else 0.0 for x in values])
