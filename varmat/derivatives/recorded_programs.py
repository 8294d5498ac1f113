"""Programs of products with Hessians and Jacobians, as functions of the point and the vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.core.dual import attached
from varmat.core.tape import Tape
from varmat.core.variables import VARIABLES, borrow_leaf
from varmat.derivatives.forward import call_with_tangents, scalar_parts
from varmat.derivatives.inputs_and_outputs import outputs, scalar_result
from varmat.derivatives.jacobians import has_no_tangent
from varmat.derivatives.recorded_base import recording_to_write, watched
from varmat.derivatives.structure import leaves_of, rebuilt
from varmat.programs.ir.program import FLOAT, Program
from varmat.programs.passes import optimised
from varmat.programs.record.tape_programs import TapeProgram

if TYPE_CHECKING:
    from varmat.derivatives.structure import Arguments, Tree
    from varmat.typing import Function, Operand, Settings


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
    template: Tree
    only_reverse: bool


def product_program(
    name: str, f: Function, points: Tree, args: Arguments, named: Settings
) -> Program:
    """The program of the Hessian of a scalar function times a vector, with the point and the vector
    as arguments.
    """
    with recording_to_write() as tape:
        variables, tangents = _variables(points, tape), _variables(points, tape)
        with watched(tape, f, args, named):
            y, parts = call_with_tangents(
                name, f, (rebuilt(points, variables),), tangents, args, named, attached
            )
            value, tangent = scalar_parts(name, y, parts)
            scalar_result(name, value, tape)
            slope = 0.0 if tangent is None else scalar_result(name, tangent, tape)
        return optimised(written(tape, [*variables, *tangents], (), (slope,), variables))


def tangent_program(
    name: str, f: Function, points: Tree, args: Arguments = (), named: Settings | None = None
) -> Written:
    """The program of values and of their derivatives in a direction, with the point and the
    direction as arguments.

    The structure `points` is that of the first arguments of the function, and `args` are the
    others."""
    with recording_to_write() as tape:
        variables, tangents = _variables(points, tape), _variables(points, tape)
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
        program = written(tape, [*variables, *tangents], [*values, *rates])
        return Written(program, _template(y, values), False)


def weighted_program(
    name: str, f: Function, points: Tree, args: Arguments = (), named: Settings | None = None
) -> Written:
    """The program of values and of the gradients of their weighted sum, with the point and the
    weights as arguments.
    """
    with recording_to_write() as tape:
        variables = _variables(points, tape)
        with watched(tape, f, args, named):
            y = f(*rebuilt(points, variables), *args, **(named or {}))
            values = outputs(name, leaves_of(y), tape)
        only_reverse = any(map(has_no_tangent, tape))
        program = written(tape, variables, values, values, variables, weighted=True)
        return Written(program, _template(y, values), only_reverse)


def part_of(program: Program, arguments: slice, outputs: slice) -> Program:
    """The program of the zero and some of the outputs. `arguments` must be all that these need."""
    return optimised(
        Program(
            program.arguments[arguments],
            program.steps,
            [program.outputs[0], *program.outputs[outputs]],
        )
    )


def _variables(points: Tree, tape: Tape) -> list[Operand]:
    return [borrow_leaf(x, tape) for x in leaves_of(points)]


def _template(y: Operand, values: Sequence[Operand]) -> Tree:
    return rebuilt(y, [np.broadcast_to(0.0, x.shape) if np.shape(x) else 0.0 for x in values])


def written(
    tape: Tape,
    leaves: Sequence[Operand],
    values: Sequence[Operand],
    pulled: Sequence[Operand] = (),
    wanted: Sequence[Operand] = (),
    weighted: bool = False,
) -> Program:
    """The program of what was recorded, as a function of leaves.

    Parameters
    ----------
    tape : Tape
    leaves : sequence of variables
        The arguments of the program; other leaves become constants.
    values : sequence of variables and plain values
        The outputs, after a zero.
    pulled, wanted : sequences of variables
        Further outputs: the gradients of the sum of `pulled` with respect to `wanted`.
    weighted : bool
        Whether the program takes weights for the sum as further arguments.
    """
    program = TapeProgram()
    builder = program.builder
    nodes = {id(x): program.node(x, builder.argument(x.shape)) for x in leaves}
    program.entries(tape, len(leaves), [*values, *pulled])
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
    zero = builder.constant(0.0)
    gradients = []
    for x in wanted:
        g = program.adjoint(nodes[id(x)])
        gradients.append(builder.full(zero if g is None else g, x.shape))
    return builder.program([zero, *map(builder.number, returned), *gradients])
