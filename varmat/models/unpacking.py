"""The simplest parameters of a model, read off its unconstrained vector together, and the sum that ends a log density.

Numbers, and numbers or arrays bounded on one side by a number, are one entry on the tape, with their log-Jacobian. A model of ten
scalars would otherwise record thirty operations before its first line.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from varmat.core.operation import operation
from varmat.core.tape import Rule
from varmat.core.variables import Outputs, make_result
from varmat.programs.program import Program, binary, name_of, number, writes
from varmat.transforms import Lower, Positive, Real, Transform, Upper


class Step(NamedTuple):
    """A parameter that is ``bound + sign * exp(x)``, or `x` itself if `sign` is zero; `where` its `x` stands."""

    where: Any
    shape: tuple[int, ...]
    sign: float
    bound: float


def step(transform: Transform, where: Any) -> Step | None:
    """How a parameter is read off; None if it is not one of the simple ones (or a view, which costs nothing)."""
    shape = transform.shape
    if isinstance(transform, Real):
        return None if shape else Step(where, shape, 0.0, 0.0)
    if isinstance(transform, Positive):
        return Step(where, shape, 1.0, 0.0)
    if isinstance(transform, (Lower, Upper)) and type(transform.bound) is float and math.isfinite(transform.bound):
        return Step(where, shape, 1.0 if isinstance(transform, Lower) else -1.0, transform.bound)
    return None


def _exp(x: Any) -> Any:
    if type(x) is not float:
        return np.exp(x)
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def read_off(q: Any, steps: Sequence[Step]) -> tuple[Any, ...]:
    """The parameters, variables on the tape of `q`, a `VarMat`, and the sum of their log-Jacobians."""
    tape, total, values = q._tape.top, 0.0, []
    for where, shape, sign, bound in steps:
        x = q._val[where].reshape(shape) if shape else float(q._val[where])
        values.append(bound + sign * _exp(x) if sign else x)
        if sign:
            total += float(np.add.reduce(x, None)) if shape else x
    results = Outputs(make_result(value, tape) for value in (*values, total))
    tape.append((_RULE, results, q, steps))
    return results


def _chain(results: Any, q: Any, steps: Sequence[Step]) -> None:
    adjoint, h = q._writable_adjoint(), results[-1]._adj or 0.0
    for result, (where, shape, sign, _) in zip(results, steps, strict=False):
        g = 0.0 if result._adj is None else result._adj
        x = q._val[where] if shape else float(q._val[where])
        adjoint[where] += sign * _exp(x) * (np.reshape(g, -1) if shape else g) + h if sign else g


_RULE = Rule("parameters", _chain)


@writes(_RULE)
def _write_parameters(program: Program, rule: Any, results: Any, x: Any, steps: Sequence[Step]) -> None:
    q = program.find(x)
    nodes, terms, slopes = [], [], []
    for result, (where, shape, sign, bound) in zip(results, steps, strict=False):
        node = program.node(result)
        index = program.bind(where, "i")
        taken = f"{q.name}[{index}].reshape({shape})" if shape else f"{q.name}.item({where})"
        name = program.new_name("x", shape)
        free = name_of(name)
        program.write(f"{name} = {taken}")
        slope: Any = None
        value: Any = free
        if sign:
            slope = value = name_of(program.assign("e", ast.Call(name_of("exp"), [free], []), shape))
            terms.append(program.summed(free, shape) if shape else free)
            if sign < 0 or bound:
                slope = binary(number(sign), ast.Mult(), slope)
                value = binary(number(bound), ast.Add(), slope)
        program.write(f"{node.name} = {program.code(value)[0]}")
        nodes.append(node)
        slopes.append(slope)
    jacobian = program.node(results[-1])
    program.write(f"{jacobian.name} = {' + '.join(program.code(term)[0] for term in terms) or '0.0'}")

    def back() -> None:
        h = program.adjoint(jacobian)
        for node, slope, (where, shape, sign, _) in zip(nodes, slopes, steps, strict=True):
            g = program.adjoint(node)
            if g is not None and sign:
                g = binary(g, ast.Mult(), slope)
            if h is not None and sign:
                g = h if g is None else binary(g, ast.Add(), h)
            if g is not None:
                if shape and program.is_array(g):
                    g = program.call(np.reshape, (math.prod(shape),), program.code(g)[0], "-1")
                q.parts.append((itemgetter(where), g))

    program.steps.append(((*nodes, jacobian), back))


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
    program.write(f"{node.name} = {' + '.join(program.code(tree)[0] for tree in trees)}")

    def back() -> None:
        g = program.adjoint(node)
        for _, operand in operands:
            if operand is not None:
                operand.contributions.append(g)

    program.steps.append(((node,), back))
