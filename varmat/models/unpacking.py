"""All parameters of a model read off its unconstrained vector at once, and the sum that ends a log
density.

One entry on the tape gives the parameters and the sum of their log-Jacobians. It holds scalars,
parameters bounded by numbers, and those that one operation makes, such as simplexes. Otherwise a
model of ten scalars would record thirty operations before its first line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from varmat.core.dual import value_now
from varmat.core.operation import Operation, operation
from varmat.core.tape import Rule
from varmat.core.variables import Outputs, make_result, own_tape
from varmat.programs.build.symbol import Symbol
from varmat.programs.record.entries import OperationCall, contributions_of, value_of
from varmat.programs.record.tape_programs import TapeProgram, place_of, writes
from varmat.transforms import Lower, Positive, Real, Transform, Upper
from varmat.transforms.bounded import from_bound
from varmat.transforms.transform import FromFunctions
from varmat.typing import Adjoint, Index, Operand, Plain, Result, Shape

WITH_JACOBIAN = {"jacobian": True}


class BoundedParameter(NamedTuple):
    """A parameter that is ``bounds[0] + sign * exp(x)``, or `x` itself if `sign` is zero.

    Its `x` is at `where` in the unconstrained vector and has the given shape. If there is an
    operation, it makes the parameter and its log-Jacobian from `x` and the bounds.
    """

    where: Index
    shape: Shape
    sign: float
    bounds: tuple[float, ...] = (0.0,)
    operation: Operation | None = None


def part_of(transform: Transform, where: object) -> BoundedParameter | None:
    """Describe a parameter that is read together with others. Return None if it is read separately:
    it may be a view, which costs nothing.
    """
    shape = transform.unconstrained_shape
    if isinstance(transform, Real):
        return None if shape else BoundedParameter(where, shape, 0.0)
    if isinstance(transform, Positive):
        return BoundedParameter(where, shape, 1.0)
    if isinstance(transform, FromFunctions):
        function, bounds = transform.constraint
        if all(type(bound) is float and math.isfinite(bound) for bound in bounds):
            if isinstance(transform, (Lower, Upper)):
                return BoundedParameter(
                    where, shape, 1.0 if isinstance(transform, Lower) else -1.0, bounds
                )
            if isinstance(function, Operation):
                return BoundedParameter(where, shape, 0.0, bounds, function)
    return None


def _exp(x: Operand) -> Result:
    if type(x) is not float:
        return np.exp(x)
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def read_off(q: object, parts: Sequence[BoundedParameter]) -> tuple[Result, ...]:
    """Return the parameters and the sum of their log-Jacobians, on the tape of `q`, a `VarMat`."""
    tape, total, values, free = own_tape(q).top, 0.0, [], value_now(q)
    retained: list[Result] = []
    for where, shape, sign, bounds, op in parts:
        x = free[where].reshape(shape) if shape else float(free[where])
        if op is not None:
            (value, term), saved = value_of(op, WITH_JACOBIAN, (x, *bounds))
            total += term
            retained.append(((value, term), saved))
        else:
            value = from_bound(bounds[0], _exp(x), sign) if sign else x
            if sign:
                total += float(np.add.reduce(x, None)) if shape else x
            retained.append(None)
        values.append(value)
    results = Outputs(make_result(value, tape) for value in (*values, total))
    tape.append((_RULE, results, q, (parts, retained)))
    return results


def _chain(results: Operand, q: Operand, saved: Operand) -> None:
    adjoint, free, (*adjoints, of_jacobian) = (
        q.adj,
        value_now(q),
        [result._adj for result in results],
    )
    h = of_jacobian or 0.0
    for g, (where, shape, sign, bounds, op), retained in zip(adjoints, *saved, strict=True):
        c = h
        x: Plain = free[where].reshape(shape) if shape else float(free[where])
        if op is not None and (g is not None or h):
            spans = ((0, shape),)
            (c,) = contributions_of(
                op, WITH_JACOBIAN, spans, tuple, (g, h), retained[0], (x, *bounds), retained[1]
            )
        elif g is not None:
            c = sign * _exp(x) * g + h if sign else g
        elif not sign:
            continue
        adjoint[where] += np.reshape(c, -1) if shape else c


def _read_again(results: object, q: Operand, saved: Operand) -> tuple[Result, ...]:
    values, total = [], 0.0
    for where, shape, sign, bounds, op in saved[0]:
        x = np.reshape(q[where], shape) if shape else q[where]
        if op is not None:
            x, term = op(x, *bounds, **WITH_JACOBIAN)
            total = total + term
        elif sign:
            total = total + np.sum(x)
            x = from_bound(bounds[0], _exp(x), sign)
        values.append(x)
    return (*values, total)


_RULE = Rule("parameters", _chain, None, _read_again)


@writes(_RULE)
def _write_parameters(
    program: TapeProgram, rule: Rule, results: Operand, x: object, saved: Operand
) -> None:
    q, builder = program.find(x), program.builder
    nodes, terms, backs = [], [], []
    for result, item in zip(results, saved[0], strict=False):
        if item.shape:
            free = builder.view(q.value, itemgetter(item.where))
            free = builder.reshaped(free, item.shape)
        else:
            free = builder.element(q.value, item.where)
        value, term, of_x = (_bounded if item.operation is None else _by_operation)(
            program, item, free, result.shape
        )
        if term is not None:
            terms.append(term)
        nodes.append(program.node(result, value))
        place = place_of(q.shape, itemgetter(item.where)) if item.shape else (8 * item.where, ())
        backs.append((item, place, of_x))
    jacobian = program.node(results[-1], builder.add_all(terms))

    def back() -> None:
        h = program.adjoint(jacobian)
        for node, (each, place, of_x) in zip(nodes, backs, strict=True):
            c = of_x(program.adjoint(node), h)
            if c is not None:
                shape = (math.prod(each.shape),) if each.shape else ()
                c = builder.reshaped(c, shape) if c.shape else builder.broadcast(c, shape)
                q.parts.append((place, shape, c))

    program.back((*nodes, jacobian), back)


def _bounded(
    program: TapeProgram, each: BoundedParameter, free: Operand, _: object
) -> tuple[Result, Result, Result]:
    """Compute a parameter that is free or bounded on one side. Return its value, its log-Jacobian,
    and a function of their adjoints that returns the contribution to `x`.
    """
    builder, (bound,), sign = program.builder, each.bounds, each.sign
    if not sign:
        return free, None, lambda g, h: g
    distance = builder.ufunc(np.exp, free)
    value = from_bound(bound, Symbol(builder, distance), sign).value
    slope = distance if sign > 0.0 else builder.ufunc(np.negative, distance)

    def of_x(g: Adjoint, h: Operand) -> Result:
        if g is None:
            return h
        g = builder.ufunc(np.multiply, g, slope)
        return g if h is None else builder.ufunc(np.add, g, h)

    return value, builder.sum(free), of_x


def _by_operation(
    program: TapeProgram, each: BoundedParameter, free: Operand, shape: Operand
) -> tuple[Result, Result, Result]:
    """Compute a parameter by its operation; return the same as `_bounded`."""
    op: Any = each.operation
    builder = program.builder
    operands = [free, *map(builder.constant, each.bounds)]
    call = OperationCall(program, op, WITH_JACOBIAN, operands, [shape, ()], tuple)
    value, term = call.values()

    def of_x(g: Adjoint, h: Operand) -> Result:
        return None if g is None and h is None else call.contributions([g, h], [(0, each.shape)])[0]

    return value, term, of_x


@operation(variadic=True)
def sum_of_terms(*terms: Operand) -> Result:
    """Sum all elements of all terms."""
    return float(sum(x if type(x) is float else np.add.reduce(x, None) for x in terms))


@sum_of_terms.reverse
def sum_of_terms_reverse(g: Adjoint, r: Operand, *terms: Operand) -> Result:
    return tuple(np.broadcast_to(g, x.shape) if type(x) is np.ndarray else g for x in terms)


@sum_of_terms.tangent
def sum_of_terms_tangent(r: Operand, *terms: Operand) -> Result:
    return (np.sum,) * len(terms)


@writes(sum_of_terms.rule)
def _write_sum(
    program: TapeProgram, rule: Rule, result: Operand, terms: Operand, settings: object
) -> None:
    operands = [program.operand(term) for term in terms]
    node = program.node(
        result, program.builder.add_all([program.builder.sum(value) for value, _ in operands])
    )

    def back() -> None:
        g: Result = program.adjoint(node)
        for _, operand in operands:
            if operand is not None:
                operand.contributions.append(g)

    program.back((node,), back)
