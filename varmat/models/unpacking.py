"""The parameters of a model, read off its unconstrained vector together, and the sum that ends a log density.

Numbers, numbers or arrays bounded by numbers, and sets for which there is one operation, such as simplexes, are one entry on the
tape, with the log-Jacobian of all of them. A model of ten scalars would otherwise record thirty operations before its first line.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from varmat.core.operation import Operation, operation
from varmat.core.tape import Rule
from varmat.core.variables import Outputs, make_result
from varmat.programs.entries import contributions_of, value_of, write_contributions, write_value
from varmat.programs.program import Program, binary, name_of, number, writes
from varmat.transforms import Lower, Positive, Real, Transform, Upper
from varmat.transforms.classes import FromFunctions

WITH_JACOBIAN = {"jacobian": True}


class Part(NamedTuple):
    """A parameter that is ``bounds[0] + sign * exp(x)``, or `x` itself if `sign` is zero; `where` its `x` stands, of a shape.

    With an operation it is what that makes of `x` and the bounds, and the operation has the log-Jacobian too.
    """

    where: Any
    shape: tuple[int, ...]
    sign: float
    bounds: tuple[float, ...] = (0.0,)
    operation: Operation | None = None


def part_of(transform: Transform, where: Any) -> Part | None:
    """How a parameter is read off; None if it is read off alone (or a view, which costs nothing)."""
    shape = transform.unconstrained_shape
    if isinstance(transform, Real):
        return None if shape else Part(where, shape, 0.0)
    if isinstance(transform, Positive):
        return Part(where, shape, 1.0)
    if isinstance(transform, FromFunctions):
        function, bounds = transform.constraint
        if all(type(bound) is float and math.isfinite(bound) for bound in bounds):
            if isinstance(transform, (Lower, Upper)):
                return Part(where, shape, 1.0 if isinstance(transform, Lower) else -1.0, bounds)
            if isinstance(function, Operation):
                return Part(where, shape, 0.0, bounds, function)
    return None


def _exp(x: Any) -> Any:
    if type(x) is not float:
        return np.exp(x)
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def read_off(q: Any, parts: Sequence[Part]) -> tuple[Any, ...]:
    """The parameters, variables on the tape of `q`, a `VarMat`, and the sum of their log-Jacobians."""
    tape, total, values = q._tape.top, 0.0, []
    kept: list[Any] = []
    for where, shape, sign, bounds, op in parts:
        x = q._val[where].reshape(shape) if shape else float(q._val[where])
        if op is not None:
            (value, term), saved = value_of(op, WITH_JACOBIAN, (x, *bounds))
            total += term
            kept.append((term, saved))
        else:
            value = bounds[0] + sign * _exp(x) if sign else x
            if sign:
                total += float(np.add.reduce(x, None)) if shape else x
            kept.append(None)
        values.append(value)
    results = Outputs(make_result(value, tape) for value in (*values, total))
    tape.append((_RULE, results, q, (parts, kept)))
    return results


def _chain(results: Any, q: Any, saved: Any) -> None:
    adjoint, h = q._writable_adjoint(), results[-1]._adj or 0.0
    for result, (where, shape, sign, bounds, op), kept in zip(results, *saved, strict=False):
        g, c = result._adj, h
        x: Any = q._val[where].reshape(shape) if shape else float(q._val[where])
        if op is not None and (g is not None or h):
            term, rest = kept
            (c,) = contributions_of(op, WITH_JACOBIAN, ((0, shape),), tuple, (g, h), (result._val, term), (x, *bounds), rest)
        elif g is not None:
            c = sign * _exp(x) * g + h if sign else g
        elif not sign:
            continue
        adjoint[where] += np.reshape(c, -1) if shape else c


_RULE = Rule("parameters", _chain)


@writes(_RULE)
def _write_parameters(program: Program, rule: Any, results: Any, x: Any, saved: Any) -> None:
    q = program.find(x)
    nodes, terms, backs = [], [], []
    for result, each in zip(results, saved[0], strict=False):
        node = program.node(result)
        index = program.bind(each.where, "i")
        name = program.new_name("x", each.shape)
        taken = f"{q.name}[{index}].reshape({each.shape})" if each.shape else f"{q.name}.item({each.where})"
        program.write(f"{name} = {taken}")
        write = _write_bounded if each.operation is None else _write_operation
        term, of_x = write(program, node, each, name)
        terms += [term] if term else []
        nodes.append(node)
        backs.append((each, of_x))
    jacobian = program.node(results[-1])
    program.write(f"{jacobian.name} = {program.added(terms)}")

    def back() -> None:
        h = program.adjoint(jacobian)
        for node, (each, of_x) in zip(nodes, backs, strict=True):
            g = of_x(program.adjoint(node), h)
            if g is not None:
                if program.is_array(g):
                    g = program.call(np.reshape, (math.prod(each.shape),), program.code(g)[0], "-1")
                q.parts.append((itemgetter(each.where), g))

    program.steps.append(((*nodes, jacobian), back))


def _write_bounded(program: Program, node: Any, each: Part, name: str) -> tuple[str, Any]:
    """Write the value of a parameter bounded on one side, or free; its log-Jacobian, and what makes the contribution to `x`."""
    (bound,), sign, free, term = each.bounds, each.sign, name_of(name), ""
    slope: Any = free
    value: Any = free
    if sign:
        slope = value = name_of(program.assign("e", ast.Call(name_of("exp"), [free], []), each.shape))
        term = program.code(program.summed(free, each.shape) if each.shape else free)[0]
        if sign < 0 or bound:
            slope = binary(number(sign), ast.Mult(), slope)
            value = binary(number(bound), ast.Add(), slope)
    program.write(f"{node.name} = {program.code(value)[0]}")

    def of_x(g: Any, h: Any) -> Any:
        if not sign:
            return g
        if g is not None:
            g = binary(g, ast.Mult(), slope)
        return g if h is None else h if g is None else binary(g, ast.Add(), h)

    return term, of_x


def _write_operation(program: Program, node: Any, each: Part, name: str) -> tuple[str, Any]:
    """The same of a parameter that an operation makes."""
    op: Any = each.operation
    term, saved = program.new_name("t"), program.new_name("m")
    value, values = f"({node.name}, {term})", f"({', '.join([name, *map(repr, each.bounds)])},)"
    write_value(program, op, WITH_JACOBIAN, value, values, saved)

    def of_x(g: Any, h: Any) -> Any:
        if g is None and h is None:
            return None
        adjoints = [program.full(g, node.shape) if g is not None else "None", "0.0" if h is None else program.code(h)[0]]
        texts = f"({', '.join(adjoints)})", value, values, saved
        (found,) = write_contributions(program, op, WITH_JACOBIAN, ((0, each.shape),), tuple, *texts)
        return name_of(found)

    return term, of_x


@operation(variadic=True)
def sum_of_terms(*terms: Any) -> Any:
    """The sum of all elements of all terms."""
    return float(sum(x if type(x) is float else np.add.reduce(x, None) for x in terms))


@sum_of_terms.reverse
def sum_of_terms_reverse(g: Any, r: Any, *terms: Any) -> Any:
    return tuple(np.broadcast_to(g, x.shape) if type(x) is np.ndarray else g for x in terms)


@sum_of_terms.tangent
def sum_of_terms_tangent(r: Any, *terms: Any) -> Any:
    return (np.sum,) * len(terms)


@writes(sum_of_terms.rule)
def _write_sum(program: Program, rule: Any, result: Any, terms: Any, settings: Any) -> None:
    operands = [program.operand(term) for term in terms]
    shapes = [np.shape(term) for term in terms]
    trees = [program.summed(tree, shape) if shape else tree for (tree, _), shape in zip(operands, shapes, strict=True)]
    node = program.node(result)
    program.write(f"{node.name} = {program.added([program.code(tree)[0] for tree in trees])}")

    def back() -> None:
        g = program.adjoint(node)
        for _, operand in operands:
            if operand is not None:
                operand.contributions.append(g)

    program.steps.append(((node,), back))
