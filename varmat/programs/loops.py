"""From statements on whole arrays to a loop over blocks of them, in which every step is written into memory that is there already.

The statements are those of `varmat.programs.expressions`. Scalars are computed once, before the loop; what is needed of an array is
computed in registers: buffers as long as a block, used again as soon as nobody reads them, or the place of a result. So all that
is gone through stays in the cache, and nothing is allocated in the loop but the results of comparisons and of `where`.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from varmat.core.elementwise import for_arrays
from varmat.core.rules import IN_PLACE
from varmat.programs.expressions import COMPARISONS, OPERATORS, Code, Writer, tree_of

# Elements of all arguments, registers and results together, for one block: they stay in the L2 cache. A quarter of it takes a fifth
# longer, for the calls.
CACHE = 1 << 17
_SYMBOLS = OPERATORS | COMPARISONS
_NAMESPACE = {name: getattr(np, name) for name in ("array", "copyto", "empty", "negative", *IN_PLACE.values())}

# Register it defines (or None), text with {} for its operands and, last, for the register that it writes in place, operands.
Instruction = tuple[str | None, str, list[str]]


class Blocks:
    """Rewrites the statements of one function.

    Parameters
    ----------
    arrays : iterable of str
        The names that are arrays: arguments, and what is assigned to.
    functions : iterable of str
        The functions that are called.
    statements : list of str
        Assignments, among them those of sums, which are added up over the blocks, and conditions that raise.
    results : list of str
        Elementwise results, arrays.
    """

    def __init__(self, arrays: Iterable[str], functions: Iterable[str], statements: list[str], results: list[str]) -> None:
        self._arrays = set(arrays)
        self._ufuncs = {name for name in functions if isinstance(for_arrays(name), np.ufunc)}
        self.before: list[str] = []
        self.steps: list[Instruction] = []
        # Registers that are arrays of their own, because what computes them cannot write in place.
        self.own: set[str] = set()
        self._numbers: dict[str, str] = {}
        self._known: dict[Any, str] = {}
        # Abbreviations are computed when they are first needed.
        self._later: dict[str, ast.expr] = {}
        self._placed: set[str] = set()
        trees = [ast.parse(statement).body[0] for statement in statements]
        outputs = list(map(tree_of, results))
        names = [node for tree in (*trees, *outputs) for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self._uses = Counter(node.id for node in names if isinstance(node.ctx, ast.Load))
        for tree in trees:
            self._statement(tree)
        self.places = {self._output(tree): f"o_{i}" for i, tree in enumerate(outputs)}

    def _is_array(self, node: ast.AST) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self._arrays for part in ast.walk(node))

    def _statement(self, tree: ast.stmt) -> None:
        if isinstance(tree, ast.If):
            self.steps.append((None, *self._condition(tree.test.operand)))  # type: ignore[attr-defined]
            return
        assert isinstance(tree, ast.Assign)
        name, value = tree.targets[0].id, tree.value  # type: ignore[attr-defined]
        if not self._is_array(value):
            self.before.append(ast.unparse(tree))
        elif name in self._arrays:
            self._later[name] = value
        else:
            assert isinstance(value, ast.Call)
            self.before.append(f"{name} = 0.0")
            if isinstance(value.func, ast.Attribute):
                operands = [self._register(value.func.value), self._register(value.args[0])]
                self.steps.append((None, f"{name} += {{}}.dot({{}})", operands))
            else:
                text = f"{name} += {value.func.id}({', '.join(['{}'] * len(value.args))})"  # type: ignore[attr-defined]
                self.steps.append((None, text, [self._register(argument) for argument in value.args]))

    def _condition(self, node: ast.expr) -> tuple[str, list[str]]:
        """What raises unless a condition holds."""
        text, operands = self._truth(node)
        return f"if not {text}: raise Outside", operands

    def _truth(self, node: ast.expr) -> tuple[str, list[str]]:
        if not self._is_array(node):
            return ast.unparse(node), []
        if isinstance(node, ast.BoolOp):
            parts = [self._truth(part) for part in node.values]
            return f"({' and '.join(text for text, _ in parts)})", [name for _, names in parts for name in names]
        if isinstance(node, ast.Compare):  # of an extreme element
            call, bound = node.left, ast.unparse(node.comparators[0])
            return f"{call.func.id}({{}}) {_SYMBOLS[type(node.ops[0])]} {bound}", [self._register(call.args[0])]  # type: ignore[attr-defined]
        return "{}.all()", [self._register(node.func.value)]  # type: ignore[attr-defined]

    def _register(self, node: ast.expr) -> str:
        """Where the value of an expression is: an argument, a register, or a number as an array of no dimensions."""
        if not self._is_array(node):
            return self._number(node)
        if isinstance(node, ast.Name):
            if node.id in self._later:
                self._known[node.id] = self._register(self._later.pop(node.id))
            return self._known.get(node.id, node.id)
        if isinstance(node, ast.UnaryOp):
            operand = node.operand
            if isinstance(operand, ast.Name) and self._uses[operand.id] == 1 and operand.id in self._later:
                operand = self._later.pop(operand.id)
            if isinstance(operand, ast.BinOp) and isinstance(operand.op, (ast.Mult, ast.Div)) and not self._is_array(operand.right):
                # The sign of the number, instead of another pass.
                return self._register(ast.BinOp(operand.left, operand.op, ast.UnaryOp(ast.USub(), operand.right)))
            return self._step("negative", [operand])
        if isinstance(node, ast.BinOp) and type(node.op) in IN_PLACE:
            return self._step(IN_PLACE[type(node.op)], [node.left, node.right])
        if isinstance(node, ast.Call) and node.func.id in self._ufuncs:  # type: ignore[attr-defined]
            return self._step(node.func.id, node.args)  # type: ignore[attr-defined]
        return self._own(node)

    def _number(self, node: ast.expr) -> str:
        # NumPy takes half as long for an array of no dimensions as for a float beside an array.
        text = ast.unparse(node)
        if text not in self._numbers:
            self._numbers[text] = f"k_{len(self._numbers)}"
            self.before.append(f"{self._numbers[text]} = array({text})")
        return self._numbers[text]

    def _step(self, function: str, nodes: list[ast.expr]) -> str:
        operands = [self._register(node) for node in nodes]
        return self._define(f"{function}({', '.join(['{}'] * len(operands))}, out={{}})", operands)

    def _own(self, node: ast.expr) -> str:
        if isinstance(node, ast.Call):
            operands, text = node.args, f"{node.func.id}({', '.join(['{}'] * len(node.args))})"  # type: ignore[attr-defined]
        elif isinstance(node, ast.Compare):
            operands, text = [node.left, *node.comparators], f"{{}} {_SYMBOLS[type(node.ops[0])]} {{}}"
        else:
            assert isinstance(node, ast.BinOp)
            operands, text = [node.left, node.right], f"{{}} {_SYMBOLS[type(node.op)]} {{}}"
        name = self._define(f"{{}} = {text}", [self._register(operand) for operand in operands])
        self.own.add(name)
        return name

    def _define(self, text: str, operands: list[str]) -> str:
        key = (text, *operands)
        if key not in self._known:
            self._known[key] = f"r_{len(self.steps)}"
            self.steps.append((self._known[key], text, operands))
        return self._known[key]

    def _output(self, tree: ast.expr) -> str:
        """The register whose place is that of a result."""
        found = register = self._register(tree)
        if found in self.own or found in self._placed or not found.startswith("r_"):
            register = f"r_{len(self.steps)}"
            self.steps.append((register, "copyto({1}, {0})", [found]))
        self._placed.add(register)
        return register

    # --- from registers to buffers ---

    def body(self) -> tuple[list[str], int]:
        """The statements of the loop, and the number of buffers."""
        last = {operand: i for i, (_, _, operands) in enumerate(self.steps) for operand in operands}
        # The place of a result is a buffer too, up to the step that writes the result: memory that comes from afar is best written
        # to while the arguments come. At 10^6 elements that takes 0.6 to 0.95 of the time.
        due = {self.places[register]: i for i, (register, _, _) in enumerate(self.steps) if register in self.places}
        place, free = dict(self.places), [*due]
        lines, count = [], 0
        for i, (register, text, operands) in enumerate(self.steps):
            names = [place.get(operand, operand) for operand in operands]
            free += [place[operand] for operand in dict.fromkeys(operands) if last[operand] == i and operand in place]
            if register in self.own:
                names.insert(0, register)
            elif register is not None:
                if register not in place:
                    end = last[register]
                    fitting = [name for name in free if end <= due.get(name, end)]
                    found = min(fitting, key=lambda name: due.get(name, math.inf), default="")
                    if found:
                        free.remove(found)
                    else:
                        found = f"b_{count}"
                        count += 1
                    place[register] = found
                names.append(place[register])
            lines.append(text.format(*names))
        return lines, count


def blocked(parameters: list[str], writer: Writer, value: str, partials: list[Code], **others: Any) -> tuple[Any, Any]:
    """What ``writer.function`` makes of its statements, with a loop over blocks in their place."""
    arrays = writer.arrays
    blocks = Blocks(arrays, writer.functions, writer.statements, [text for text, is_array in partials if is_array])
    body, count = blocks.body()
    given = [name for name in parameters if name in arrays]
    buffers = [f"b_{i}" for i in range(count)]
    results = [f"a_{i}" for i in range(len(blocks.places))]
    places = iter(results)
    lines = [
        *blocks.before,
        # Blocks of about the same length.
        f"length_ = -(-size // max(1, round(size / {CACHE // (len(given) + len(results) + count)})))",
        *(f"{name} = empty(size)" for name in results),
        *(f"{name} = empty(length_)" for name in buffers),
        *(f"all_{name} = {name}" for name in given),
        "for start_ in range(0, size, length_):",
        "    part_ = slice(start_, start_ + length_)",
        *(f"    {name} = all_{name}[part_]" for name in given),
        *(f"    o_{i} = {name}[part_]" for i, name in enumerate(results)),
        *([f"    if size - start_ < length_: {'; '.join(f'{b} = {b}[: size - start_]' for b in buffers)}"] if buffers else []),
        *(f"    {line}" for line in body),
        *(f"{name} = all_{name}" for name in given),
    ]
    outcome = (next(places) if is_array else text for text, is_array in partials)
    return writer.function(parameters, lines, value, outcome, **_NAMESPACE, **others)
