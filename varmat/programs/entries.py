"""How the entries of a tape are written into a program."""

from __future__ import annotations

import ast
import math
import threading
from functools import cache, partial
from operator import itemgetter
from typing import Any

import numpy as np

from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64
from varmat.core.elementwise import Elementwise
from varmat.core.indexing import ASSIGN, ELEMENT, GATHER
from varmat.core.operation import Operation, Saved
from varmat.core.rules import OPERANDS, ZERO
from varmat.core.variables import ARRAYS, Outputs, View
from varmat.kernels import is_basic, last_writers, scatter_add, unbroadcast
from varmat.programs.blocks import Shape
from varmat.programs.conditions import SYMBOLS
from varmat.programs.program import Gather, Node, Program, copy_for, name_of, substituted, writes

# Values that the interpreter or NumPy's operators compute, as expressions; all others are calls.
_INFIX = {
    "add": "x + y", "subtract": "x - y", "multiply": "x * y", "divide": "x / y", "negative": "-x", "square": "x * x",
    "fma": "x * y + z",
}  # fmt: skip
# As numbers: truth values would be combined in other ways.
_INFIX |= {name: f"where(x {text} y, 1.0, 0.0)" for name, text in SYMBOLS.items()} | {"selection": "where(x, y, z)"}
# Rows whose value and derivative share all factors but one.
_POWERS = {f"power_{n}": n for n in range(3, 9)}


@writes(Elementwise)
def _elementwise(program: Program, rule: Any, result: Any, x: Any, y: Any) -> None:
    row: Elementwise = rule.op
    operands = [program.operand(each) for each in (x if row.arity > 2 else (x, y)[: row.arity])]
    letters = {letter: tree for letter, (tree, _) in zip(OPERANDS, operands, strict=False)}
    text, expressions = _INFIX.get(row.name, f"{row.name}({', '.join(letters)})"), row.partials
    if row.name in _POWERS:
        exponent = _POWERS[row.name]
        below = substituted(" * ".join(["x"] * (exponent - 1)), letters)
        letters["p"] = name_of(program.assign("v", below, result.shape))
        text, expressions = "p * x", (f"g * {exponent} * p",)
    value = substituted(text, letters)
    shape = result.shape
    node = program.define(result, value)
    if shape and all(isinstance(part, (ast.Name, ast.Constant, ast.Mult, ast.BinOp, ast.Load)) for part in ast.walk(value)):
        node.tree = value

    def back() -> None:
        partials = [expression for (_, operand), expression in zip(operands, expressions, strict=True) if operand is not None]
        g = program.adjoint(node, once=uses_of_adjoint(*partials) == 1)
        if any(program.shapes_in(tree) - {shape} for tree, _ in operands):
            # Broadcast: now every expression with `g` in it is of the whole shape.
            g = program.whole(g, shape)
        for (_, operand), expression in zip(operands, expressions, strict=True):
            if operand is not None and expression != ZERO:
                tree = substituted(expression, {**letters, "g": g, "r": name_of(node.name)})
                _contribute(program, operand, tree, shape)

    program.steps.append(((node,), back))


@cache
def uses_of_adjoint(*expressions: str) -> int:
    """How often the adjoint stands in expressions, ``g + g`` being twice its value."""
    parts = [part for each in expressions for part in ast.walk(ast.parse(each.replace("(g + g)", "g")))]
    return sum(isinstance(part, ast.Name) and part.id == "g" for part in parts)


def _contribute(program: Program, operand: Node, tree: ast.expr, shape: Shape) -> None:
    """Add a contribution of a shape to the adjoint of an operand that was broadcast to it."""
    if not operand.shape:
        tree = program.summed(tree, shape) if shape else tree
    elif operand.shape != shape:
        tree = program.call(unbroadcast, operand.shape, program.full(tree, shape), str(operand.shape))
    operand.contributions.append(tree)


@writes(ELEMENT)
def _element(program: Program, rule: Any, result: Any, x: Any, index: int) -> None:
    _part(program, result, x, f".item({index})", itemgetter(index))


@writes(GATHER)
def _gather(program: Program, rule: Any, result: Any, x: Any, index: Any) -> None:
    once = is_basic(index) or (type(index) is np.ndarray and index.dtype == bool)
    read = f"[{program.bind(index, 'i')}]"
    _part(program, result, x, read, itemgetter(index) if once else Gather(index, scatter_add))


def _part(program: Program, result: Any, x: Any, read: str, how: Any) -> None:
    whole = program.find(x)
    node = program.node(result)
    program.write(f"{node.name} = {whole.name}{read}" if node.shape else f"{node.name} = float({whole.name}{read})")

    def back() -> None:
        g = program.adjoint(node)
        whole.parts.append((how, program.whole(g, node.shape) if node.shape else g))

    program.steps.append(((node,), back))


@writes(ASSIGN)
def _assign(program: Program, rule: Any, result: Any, target: Any, assignments: Any) -> None:
    run: list[Any] = []
    for each in assignments:
        if run and type(each[1]) in ARRAYS:  # it may look into the target, whose values are those after the assignments so far
            _assign_to_copy(program, target, run)
            run = []
        if each[0] is Ellipsis and type(each[1]) in ARRAYS and each[1].shape == target.shape and not isinstance(target, View):
            program.assigned(target, program.find(each[1]))  # as x += y ends: from here on it is what was assigned
        else:
            run.append(each)
    if run:
        _assign_to_copy(program, target, run)


def _assign_to_copy(program: Program, target: Any, assignments: Any) -> None:
    root, hows = target, []
    while isinstance(root, View):
        hows.append(root._how)
        root = root._parent

    def within(text: str) -> str:
        for how in reversed(hows):
            text = f"{program.bind(how)}({text})"
        return text

    parts = [(program.bind(index, "i"), program.operand(source)) for index, source, _ in assignments]
    before = program.find(root)
    node = program.assigned(root)
    copy = copy_for(hows)
    program.write(f"{node.name} = {before.name}{copy}")
    for name, (value, _) in parts:
        program.write(f"{within(node.name)}[{name}] = {program.code(value)[0]}")

    def back() -> None:
        rest = program.new_name("c", node.shape)
        program.write(f"{rest} = {program.full(program.adjoint(node), node.shape)}{copy}")
        for (name, (_, operand)), (index, _, overwritten) in zip(reversed(parts), reversed(assignments), strict=True):
            if operand is not None:
                shape = np.shape(overwritten)
                tree: Any = name_of(program.new_name("c", shape))
                program.write(f"{tree.id} = copied({within(rest)}[{name}])")
                if shape and not is_basic(index):
                    tree = program.call(last_writers, shape, str(target.shape), name, tree.id)
                _contribute(program, operand, tree, shape)
            program.write(f"{within(rest)}[{name}] = 0.0")
        before.contributions.append(name_of(rest))

    program.steps.append(((node,), back))


@writes(Operation)
def structured(program: Program, rule: Any, result: Any, args: Any, settings: Any) -> None:
    """Any structured operation: its value and its reverse rule are called as the eager pass does."""
    op: Operation = rule.op
    settings = {name: each for name, each in settings.items() if name in op.signature.parameters}
    operands = [program.operand(x) for x in args]
    texts = [program.code(tree)[0] for tree, _ in operands]
    wanted = [(i, operand) for i, (_, operand) in enumerate(operands) if operand is not None]
    several = isinstance(result, Outputs)
    nodes = [program.node(item) for item in (result if several else (result,))]
    saved = program.new_name("m")
    value = ", ".join(node.name for node in nodes)
    value = f"({value},)" if several else value
    values = f"({', '.join(texts)},)"
    calling = {**settings, "workspace": Workspace()} if op.wants_workspace else settings
    write_value(program, op, calling, value, values, saved)

    def back() -> None:
        adjoints = [program.adjoint(node) for node in nodes]
        g = ", ".join("None" if a is None else program.full(a, node.shape) for a, node in zip(adjoints, nodes, strict=True))
        places = tuple((i, operand.shape) for i, operand in wanted)
        kind = type(result).kind if several else None
        texts = f"({g},)" if several else g, value, values, saved
        for (_, operand), name in zip(wanted, write_contributions(program, op, settings, places, kind, *texts), strict=True):
            operand.contributions.append(name_of(name))

    program.steps.append((tuple(nodes), back))


def write_value(program: Program, op: Operation, settings: Any, value: str, values: str, saved: str) -> None:
    """Write the call that computes the value of an operation; all texts are those of names, or of tuples of them."""
    program.write(f"{value}, {saved} = {program.bind(partial(value_of, op, settings), op.name + '_')}({values})")


def write_contributions(program: Program, op: Operation, settings: Any, places: Any, kind: Any, *texts: str) -> list[str]:
    """Write the call of its reverse rule, of the texts of what `contributions_of` takes; the names of the contributions."""
    names = [program.new_name("c", shape) for _, shape in places]
    reverse = program.bind(partial(contributions_of, op, settings, places, kind), f"{op.name}_reverse_")
    program.write(f"{', '.join(names)}, = {reverse}({', '.join(texts)})")
    return names


class Workspace(threading.local):
    """Memory for what an operation saves: large arrays are the same ones at every call in a thread, so that they are warm."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []
        self.taken = 0

    def __call__(self, shape: Shape) -> np.ndarray:
        if math.prod(shape) <= LARGE:
            return np.empty(shape)
        if self.taken == len(self._arrays):
            self._arrays.append(np.empty(shape))
        elif self._arrays[self.taken].shape != shape:
            self._arrays[self.taken] = np.empty(shape)
        self.taken += 1
        return self._arrays[self.taken - 1][...]  # a view, for `alone`: it is not the caller's


def value_of(op: Operation, settings: Any, values: Any) -> tuple[Any, dict[str, Any]]:
    """The value of an operation at plain operands, and what its reverse rule wants back."""
    if op.domains:
        op.check(values)
    if op.wants_workspace:
        settings["workspace"].taken = 0
    value, saved = op.function(*values, **settings), {}
    if type(value) is Saved:
        value, saved = value.value, value.saved
    return tuple(map(_number_or_array, value)) if isinstance(value, tuple) else _number_or_array(value), saved


def _number_or_array(x: Any) -> Any:
    if type(x) is not np.ndarray or not x.ndim:
        return float(x)
    return x if x.dtype is FLOAT64 else x.astype(FLOAT64)


def contributions_of(op: Operation, settings: Any, places: Any, kind: Any, g: Any, r: Any, values: Any, saved: Any) -> list[Any]:
    """The contributions to the operands at given places, in their shapes; `kind` makes the tuples of several results."""
    held = [*values, *((g, r) if kind is None else (*g, *r)), *saved.values()]
    if kind is not None:
        g, r = kind(g), kind(r)
    parts = op.parts(g, r, values, {**settings, **saved})
    found: list[Any] = []
    for i, shape in places:
        c = parts[i]() if callable(parts[i]) else parts[i]
        if shape:
            c = c if type(c) is np.ndarray and c.dtype is FLOAT64 else op.contribution(i, c)
            for each in held:
                if c is each:
                    c = c.view()  # for `alone`: it is not the caller's yet
                    break
            held.append(c)
            found.append(c if c.shape == shape else unbroadcast(c, shape))
        else:
            found.append(c if type(c) is float else float(np.sum(c)))
    return found
