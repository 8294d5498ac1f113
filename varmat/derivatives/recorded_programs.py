"""Recordings as programs: functions of a point and, for products with derivatives, of a vector.

The arguments of these programs are the leaves of the point, the leaves of `Mapped` arguments, and
the leaves of the vector. The first output is the value of a gradient; of the other programs it is
zero, but not after a run that ended early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from varmat.core.dual import attached, value_now
from varmat.core.tape import Tape
from varmat.core.variables import VARIABLES, Variable, borrow_leaf
from varmat.derivatives.forward import call_with_tangents, scalar_parts
from varmat.derivatives.inputs_and_outputs import leaf_tree, outputs, pulled_back, scalar_result
from varmat.derivatives.jacobians import has_no_tangent
from varmat.derivatives.recorded_gradients import along_rows, depending_on
from varmat.derivatives.recorded_rows import Mapped
from varmat.derivatives.recorded_tapes import recording_to_write, watched
from varmat.derivatives.sparsity import colours_of, sparsity_pattern
from varmat.derivatives.structure import (
    Arguments,
    ArgumentTree,
    is_container,
    leaves_of,
    map_leaves,
    rebuilt,
    size_of,
    template_of,
    unit_rows,
)
from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import Program, Value
from varmat.programs.passes import optimised, without_dead_steps
from varmat.programs.record.conditions import Branches
from varmat.programs.record.programs import program_of, write_tape
from varmat.programs.record.tape_programs import TapeProgram
from varmat.typing import Entry, Function, Operand, Result, Settings


class Written(NamedTuple):
    """A program of several results.

    Attributes
    ----------
    program : Program
    template : object
        The structure of the results, with zeros in place of the numbers; or a function that makes
        them of the outputs but the first.
    only_reverse : bool
        Whether some operation has no forward rule.
    values : Written, optional
        For products with the transposed Jacobian, the program of the values at the point.
    """

    program: Program
    template: Any
    only_reverse: bool = False
    values: Written | None = None


first_leaf = itemgetter(0)


def assembler(template: ArgumentTree) -> Callable[[list[Operand]], Result]:
    """Return the function that makes a structure of its leaves, fast for common structures."""
    if callable(template):
        return template
    if not is_container(template):
        return first_leaf
    if type(template) is tuple and not any(x is None or is_container(x) for x in template):
        return tuple
    return partial(rebuilt, template)


def record(
    function: Function,
    positions: Sequence[int],
    args: Sequence[object],
    kwargs: Settings,
    *,
    follows: Branches | None = None,
    is_optimised: bool = True,
) -> Program:
    """Record the program of the value and the gradients with respect to the arguments at some
    positions; `follows` is as in `record_values`. Without optimisation its steps are those that the
    tape needs, whatever the data are.

    Raise `ElsewhereError` if the function catches the error of a value that is used as a number: at
    plain values it would take another path."""
    with recording_to_write() as tape:
        arguments, rows = _with_leaves(args, tape)
        inputs = list(arguments)
        for i in dict.fromkeys(positions):
            inputs[i] = leaf_tree("recorded", f"argument {i + 1}", args[i], tape)
        variables = leaves_of([inputs[i] for i in positions])
        with watched(tape, function, args, kwargs, branches=follows):
            y = scalar_result("recorded", function(*inputs, **kwargs), tape)
        decisions = () if follows is None else follows.conditions
        leaves = [*variables, *rows]
        program = program_of(tape, leaves, [y], [y], variables, decisions=decisions)
        return optimised(program) if is_optimised else without_dead_steps(program)


def record_values(
    function: Function, point: np.ndarray, *, follows: Branches | None = None
) -> tuple[Program, list[bool]]:
    """Record the program of several results of a function of one vector, without derivatives. It
    raises the errors of `record`.

    Parameters
    ----------
    function : callable
        Returns a list of variables and plain values.
    point : ndarray of float64
    follows : Branches, optional
        Takes the branches of a function that branches on values. The program then holds where it
        takes the same branches, and ends elsewhere.

    Returns
    -------
    program : Program
        Its outputs are zero and the results.
    varies : list of bool
        For each result, whether it is a variable.
    """
    with recording_to_write() as tape:
        leaf = borrow_leaf(point, tape)
        results = outputs("recorded", _followed(function, leaf, tape, follows), tape)
        decisions = () if follows is None else follows.conditions
        program = program_of(tape, [leaf], [0.0, *results], decisions=decisions)
        return optimised(program), [type(y) in VARIABLES for y in results]


def _followed(function: Function, leaf: object, tape: Tape, branches: Branches | None) -> Result:
    """Record a function, and note its branches or make them raise."""
    with watched(tape, function, branches=branches):
        results = function(leaf)
        if branches is not None:
            branches.add_jumps(tape)
    return results


def margins_of(function: Function, point: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Return the differences of both sides of all comparisons of a function of a vector at a point,
    with their gradients.
    """
    branches, result = Branches(), []
    with recording_to_write() as tape:
        leaf = borrow_leaf(point, tape)
        _followed(function, leaf, tape, branches)
        for x in (item for margin in branches.margins for item in np.ravel(margin)):
            result.append((float(value_now(x)), *pulled_back(tape, [x], [1.0], [leaf])))
    return result


def _with_tangents(
    name: str,
    f: Function,
    points: Sequence[object],
    args: Sequence[object],
    kwargs: Settings | None,
    tape: Tape,
) -> tuple[Operand, list[tuple[Operand, Operand]], list[Operand], list[Operand]]:
    """Return the results of `call_with_tangents`, the leaves of the point, and the leaves of the
    arguments of the program.
    """
    variables, tangents = _variables(points, tape), _variables(points, tape)
    args, rows = _with_leaves(args, tape)
    with watched(tape, f, args, kwargs):
        inputs = rebuilt(points, variables)
        y, parts = call_with_tangents(name, f, inputs, tangents, args, kwargs, attached)
        return y, parts, variables, [*variables, *rows, *tangents]


def product_program(
    name: str,
    f: Function,
    points: Sequence[object],
    args: Sequence[object] = (),
    kwargs: Settings | None = None,
) -> Written:
    """Write the program of the Hessian of a scalar function of one point times a vector."""
    with recording_to_write() as tape:
        y, parts, variables, leaves = _with_tangents(name, f, points, args, kwargs, tape)
        value, tangent = scalar_parts(name, y, parts)
        scalar_result(name, value, tape)
        slope = 0.0 if tangent is None else scalar_result(name, tangent, tape)
        program = optimised(program_of(tape, leaves, [0.0], [slope], variables))
        return Written(program, template_of(points[0]))


def tangent_program(
    name: str,
    f: Function,
    points: Sequence[object],
    args: Sequence[object] = (),
    kwargs: Settings | None = None,
) -> Written:
    """Write the program of values and of their derivatives in a direction, not optimised; the
    template is the structure of the values.

    The items of `points` are the first arguments of the function, and `args` are the others."""
    with recording_to_write() as tape:
        y, parts, _, leaves = _with_tangents(name, f, points, args, kwargs, tape)
        values = outputs(name, [value for value, _ in parts], tape)
        rates = [
            np.zeros(np.shape(x)) if t is None else t
            for x, (_, t) in zip(values, parts, strict=True)
        ]
        rates = outputs(name, rates, tape)
        return Written(
            program_of(tape, leaves, [0.0, *values, *rates]), template_of(rebuilt(y, values))
        )


def weighted_program(
    name: str,
    f: Function,
    points: Sequence[object],
    args: Sequence[object] = (),
    kwargs: Settings | None = None,
) -> Written:
    """Write the program of values and of the gradients of their weighted sum, not optimised. The
    weights are the vector, and the template is the structure of the values.
    """
    with recording_to_write() as tape:
        variables = _variables(points, tape)
        args, rows = _with_leaves(args, tape)
        followed = Branches(0)
        with watched(tape, f, args, kwargs, branches=followed):
            y = f(*rebuilt(points, variables), *args, **(kwargs or {}))
            values = outputs(name, leaves_of(y), tape)
        only_reverse = any(map(has_no_tangent, tape))
        leaves, decisions = [*variables, *rows], followed.conditions
        program = program_of(
            tape, leaves, [0.0, *values], values, variables, weighted=True, decisions=decisions
        )
        return Written(program, template_of(rebuilt(y, values)), only_reverse)


def pushforward_program(*call: Any) -> Written:
    """Write the program of `varmat.jvp`."""
    result = tangent_program(*call)
    return Written(_results_from(result.program, 0), (result.template, result.template))


def pullback_program(name: str, f: Function, points: Sequence[object], *_: object) -> Written:
    """Write the programs of `varmat.vjp`."""
    result, leaves = weighted_program(name, f, points), leaves_of(points)
    results = len(leaves_of(result.template))
    values = part_of(result.program, slice(len(leaves)), slice(1, 1 + results))
    return Written(
        _results_from(result.program, results),
        template_of(points),
        values=Written(values, result.template),
    )


def hessian_program(name: str, f: Function, points: Sequence[Any], *others: Any) -> Written:
    """Write the program of the Hessian: a loop over the products with the unit vectors."""
    result = product_program(name, f, points, *others)
    return _along_units(result.program, result.template, result.template)


def jacobian_program(name: str, f: Function, points: Sequence[Any], *others: Any) -> Written:
    """Write the program of the Jacobian: a loop over its rows, or columns if these are fewer."""
    result, (x,) = weighted_program(name, f, points, *others), points
    template, by_columns, (rows, columns) = (
        result.template,
        False,
        (sum(map(size_of, leaves_of(tree))) for tree in (result.template, x)),
    )
    if columns < rows and not result.only_reverse:
        result, by_columns = tangent_program(name, f, points, *others), True
    program = _results_from(result.program, len(leaves_of(template)))
    return _along_units(program, template, template_of(x), by_columns)


def sparse_jacobian_program(name: str, f: Function, points: Sequence[Any], *others: Any) -> Written:
    """Write the program of the elements of the Jacobian that its pattern has: a loop over
    directions, each the sum of unit vectors whose rows, or columns, have no element in common.
    """
    tangent, (x,) = tangent_program(name, f, points, *others), points
    y = tangent.template
    if is_container(x) or is_container(y):
        what = "x" if is_container(x) else "the result"
        raise TypeError(f"{name}: {what} is a structure, but must be an array!")
    pattern = sparsity_pattern(tangent.program, tangent.program.outputs[1])
    rows, columns = pattern.tocoo().coords
    by_rows, by_columns = colours_of(pattern.T), colours_of(pattern)
    is_forward = not tangent.only_reverse and by_columns.max(initial=-1) <= by_rows.max(initial=-1)
    created = tangent if is_forward else weighted_program(name, f, points, *others)
    colours, args, along, across = (
        (by_columns, x, columns, rows) if is_forward else (by_rows, y, rows, columns)
    )
    program, count = _results_from(created.program, 1), int(colours.max(initial=-1)) + 1
    seeds = np.equal.outer(np.arange(count), colours).astype(float)
    builder = Builder()
    builder.arguments = program.arguments[:-1]
    seed = builder.constant(seeds.reshape(count, *np.shape(args)))
    zero, products = builder.inlined(along_rows(program, 1, count), *builder.arguments, seed)
    width = pattern.shape[0 if is_forward else 1]
    elements = builder.gather(products, colours[along] * width + across)
    output = without_dead_steps(builder.program([zero, elements]))

    def sparse(leaves: Sequence[np.ndarray]) -> Result:
        """Make the sparse array of the elements."""
        result = pattern.astype(float)
        result.data = np.array(leaves[0])
        return result

    return Written(output, sparse)


def _along_units(
    program: Program, results: ArgumentTree, point: ArgumentTree, by_columns: bool = False
) -> Written:
    """Write the program of a matrix, of the results by the point, from the program of its product
    with a vector: from the left or, for `by_columns`, from the right.
    """
    vector, others = (point, results) if by_columns else (results, point)
    rows, columns = leaves_of(vector), leaves_of(others)
    builder, units = Builder(), unit_rows(rows)
    builder.arguments = program.arguments[: len(program.arguments) - len(rows)]
    along = along_rows(program, len(rows), sum(map(size_of, rows)))
    zero, *products = builder.inlined(along, *builder.arguments, *map(builder.constant, units))
    blocks: dict[tuple[int, int], Value] = {}
    ends = np.cumsum([0, *map(size_of, rows)]).tolist()
    for i, x in enumerate(rows):
        for j, y in enumerate(columns):
            part = builder.view(products[j], itemgetter(slice(ends[i], ends[i + 1])))
            block = builder.reshaped(part, np.shape(x) + np.shape(y))
            if by_columns:
                axes, m = range(len(block.shape)), np.ndim(x)
                block = builder.contiguous(builder.transposed(block, [*axes[m:], *axes[:m]]))
            blocks[(j, i) if by_columns else (i, j)] = block
    result = [blocks[key] for key in sorted(blocks)]
    full = without_dead_steps(builder.program([zero, *result]))
    template = map_leaves(lambda y, _: template_of(point, np.shape(y)), results)
    return Written(full, template)


def rolled_entries(
    name: str, f: Callable[[Operand, Tape], Operand], point: object
) -> tuple[Sequence[Entry], Sequence[Entry]]:
    """Return the entries that the recording of a function keeps, and the entries among them that it
    rolls into loops. The function is given its tape too.
    """
    with recording_to_write() as tape:
        x = borrow_leaf(point, tape)
        with watched(tape, f):
            y = scalar_result(name, f(x, tape), tape)
        program = TapeProgram()
        program.node(x, program.builder.argument(x.shape))
        write_tape(program, tape, 1, [y])
        rolled: list[Entry] = []
        for loop in program.loops:
            rolled += loop.rolled
        return program.entries, rolled


def part_of(program: Program, arguments: slice, outputs: slice) -> Program:
    """Return the program of the first and some other outputs. `arguments` must be all that these
    need, and come first. Guards that depend on others are left out.
    """
    chosen, args = [program.outputs[0], *program.outputs[outputs]], program.arguments[arguments]
    depending = depending_on(program, program.arguments[len(args) :])
    steps = [step for step in program.steps if id(step) not in depending]
    return optimised(Program(args, steps, chosen))


def _results_from(program: Program, number: int) -> Program:
    """Return the program of the first output and the results from a number on."""
    return part_of(program, slice(None), slice(1 + number, None))


def _with_leaves(args: Sequence[object], tape: Tape) -> tuple[Arguments, list[Operand]]:
    """Replace `Mapped` arguments by variables; return the arguments and all these variables."""
    inputs, leaves = list(args), []
    for i, x in enumerate(args):
        if type(x) is Mapped:
            inputs[i] = rebuilt(x.tree, _variables(x.tree, tape))
            leaves += leaves_of(inputs[i])
    return tuple(inputs), leaves


def _variables(points: ArgumentTree, tape: Tape) -> list[Variable]:
    return [borrow_leaf(x, tape) for x in leaves_of(points)]
