"""Reverse rules of elementwise rows, compiled from their expressions.

A contribution is written once, as an expression of `g`, the operands `x`, `y`, ... and the result
`r`. It is compiled for the three places where it runs: small arrays (one expression per operand),
large arrays (in place, in warm memory), and scalars (Python floats; where these raise, IEEE
arithmetic answers). Rules are compiled when a reverse pass first needs
them, since most rows are never used in one program.
"""

from __future__ import annotations

import ast
import linecache
import weakref
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.tape import Rule
from varmat.core.variables import Large, VarMat, adjoint_space

if TYPE_CHECKING:
    from varmat.core.elementwise import Elementwise
    from varmat.typing import Function, Settings

OPERANDS = ("x", "y", "z", "w")
# The contribution to an operand in which the result is piecewise constant: zero even where `g` is
# infinite or nan.
ZERO = "where(True, 0.0, g)"
IN_PLACE = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}


def names_in(*sources: str | ast.AST) -> set[str]:
    """Return the names that texts, or syntax trees, use, functions included."""
    trees = [ast.parse(source) if isinstance(source, str) else source for source in sources]
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


def function_of(
    parameters: str, body: list[str], namespace: Settings, title: str | None = None
) -> Function:
    """Compile the text of a function. With a title, tracebacks, profilers and debuggers show its
    lines.
    """
    namespace = dict(namespace)
    source = f"def rule({parameters}):\n    " + "\n    ".join(body)
    file = f"<rule: {body[-1]}>" if title is None else _file_of(source, title)
    exec(compile(source, file, "exec"), namespace)
    # Left among its own globals, the function would keep them alive until the collector comes.
    function: Function = namespace.pop("rule")
    if title is not None:
        # The lines go with the function: in a notebook, a row is made again and again.
        weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
    return function


def _file_of(source: str, title: str) -> str:
    """Put a text where Python looks for the lines of source files, under a unique name."""
    lines = source.splitlines(keepends=True)
    for i in count(1):
        file = f"<varmat {title}>" if i == 1 else f"<varmat {title}, {i}>"
        # No time of modification, or Python would take it for a file that has been deleted.
        entry = (len(source), None, lines, file)
        if linecache.cache.setdefault(file, entry) is entry:
            return file
    raise AssertionError


def in_place(expression: str) -> list[str]:
    """Return statements that write an expression, with its intermediate results, into `out`."""

    def write(node: ast.expr) -> list[str]:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            before, operand = through_out(node.operand)
            return [*before, f"negative({operand}, out)"]
        if not isinstance(node, ast.BinOp) or type(node.op) not in IN_PLACE:
            return [f"copyto(out, {ast.unparse(node)})"]
        before, left = through_out(node.left)
        right = ast.unparse(node.right)
        if not before:
            before, right = through_out(node.right)
        return [*before, f"{IN_PLACE[type(node.op)]}({left}, {right}, out)"]

    def through_out(node: ast.expr) -> tuple[list[str], str]:
        arithmetic = isinstance(node, ast.UnaryOp) or (
            isinstance(node, ast.BinOp) and type(node.op) in IN_PLACE
        )
        has_arrays = bool(names_in(node))
        return (write(node), "out") if arithmetic and has_arrays else ([], ast.unparse(node))

    return write(ast.parse(expression, mode="eval").body)


def elementwise_rule(row: Elementwise, variable: tuple[bool, ...], compile_rule: Function) -> Rule:
    """Make the reverse rule of a row, compiled on first use for the operands that are variables."""

    def first(*entry: object) -> None:
        rule.chain = compile_rule(row, variable)
        rule.chain(*entry)

    rule = Rule(row.name, first, row)
    return rule


def _wanted(row: Elementwise, variable: tuple[bool, ...]) -> list[tuple[str, str]]:
    """Return name and expression of the operands that are variables."""
    return [
        (x, partial) for x, partial, v in zip(OPERANDS, row.partials, variable, strict=False) if v
    ]


def _rule_function(
    row: Elementwise, variable: tuple[bool, ...], body: list[str], namespace: Settings
) -> Function:
    """Compile a rule that loads what its body uses and runs it."""
    parameters = {1: "result, x_, _", 2: "result, x_, y_"}.get(row.arity, "result, operands, _")
    used = names_in("\n".join(body))
    load = [
        f"{x} = {x}_._val" if v else f"{x} = {x}_"
        for x, v in zip(OPERANDS, variable, strict=False)
        if x in used
    ]
    if row.arity > 2:
        load.insert(0, ", ".join(f"{x}_" for x in OPERANDS[: row.arity]) + " = operands")
    if "r" in used:
        load.append("r = result._val")
    lines = ["g = result._adj", *load, *body]
    return function_of(parameters, lines, namespace, f"rule of {row.name}")


def array_rule(row: Elementwise, variable: tuple[bool, ...]) -> Function:
    body = []
    for x, partial in _wanted(row, variable):
        if partial == "g":
            body.append(f"{x}_._add(g)")
        else:
            # A first contribution without broadcasting is the common case. If `g` is one number
            # everywhere, `c` has the layout of the operands, which for data may be any.
            body += [
                f"c = {partial}",
                f"first = type({x}_) is VarMat and {x}_._adj is None and c.shape == {x}.shape",
                f"if first and (c.ndim == 1 or c.flags.c_contiguous): {x}_._adj = c",
                f"else: {x}_._take(c)",
            ]
    return _rule_function(row, variable, body, {**row.namespace(), "VarMat": VarMat})


def large_rule(row: Elementwise, variable: tuple[bool, ...]) -> Function:
    """Compile the rule for large arrays: a first contribution is written into warm memory, which
    also takes its intermediate results.
    """
    body = []
    for x, partial in _wanted(row, variable):
        if partial == "g":
            body.append(f"{x}_._add(g)")
        else:
            body += [
                f"if type({x}_) is Large and {x}_._adj is None and {x}.shape == g.shape:",
                f"    out = adjoint_space({x}_)",
                *(f"    {line}" for line in in_place(partial)),
                f"    {x}_._adj = out",
                f"else: {x}_._take({partial})",
            ]
    ufuncs = {name: getattr(np, name) for name in ("copyto", "negative", *IN_PLACE.values())}
    names = {**row.namespace(), **ufuncs, "Large": Large, "adjoint_space": adjoint_space}
    return _rule_function(row, variable, body, names)


def scalar_rule(row: Elementwise, variable: tuple[bool, ...]) -> Function:
    requested = _wanted(row, variable)
    arguments = ", ".join(f"float64({x})" for x in OPERANDS[: row.arity])
    body = [
        "try:",
        *(f"    c{x} = {partial}" for x, partial in requested),
        "except (ArithmeticError, ValueError):",
        *(f"    c{x} = float(p{x}(float64(g), {arguments}, r))" for x, _ in requested),
        *(f"a = {x}_._adj; {x}_._adj = c{x} if a is None else a + c{x}" for x, _ in requested),
    ]
    general = dict(zip((f"p{x}" for x in OPERANDS), row.pushes, strict=False))
    return _rule_function(
        row, variable, body, {**row.namespace(scalar=True), **general, "float64": np.float64}
    )
