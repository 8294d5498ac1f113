"""From the expressions of a density to one function that computes the value and the partials that are wanted.

A density is a sum over elements of terms, and so are its derivatives with respect to scalars. What an expression becomes depends
on which arguments are scalars and which are arrays: the same ``-0.5 * z * z - log(sigma)`` becomes an inner product and a
number times a logarithm, when sigma is a scalar, or an inner product and a sum of logarithms. The code is compiled for each use
when it is first needed: scalar factors are taken out of sums, products of arrays are summed as inner products, and only what the
wanted results need is computed, once.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from varmat.core.elementwise import for_arrays, for_scalars
from varmat.core.rules import function_of, names_in
from varmat.programs.counts import SUM_FUNCTIONS, SUMS

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|"}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_BOUNDS = {ast.Lt: "largest", ast.LtE: "largest", ast.Gt: "smallest", ast.GtE: "smallest"}

# The text of an expression, and whether it is an array.
Code = tuple[str, bool]


def tree_of(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def arguments_in(expression: str, let: Mapping[str, str]) -> set[str]:
    """The names that an expression uses, also by way of abbreviations."""
    names = names_in(expression)
    return names.union(*(arguments_in(let[name], let) for name in names & let.keys()))


def parts_of(node: ast.expr) -> list[ast.expr]:
    """The expressions that an expression consists of, functions left out."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Call):
        return node.args
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.operand] if isinstance(node, ast.UnaryOp) else []


class Writer:
    """Writes the statements of a function for one use of a density.

    Parameters
    ----------
    arrays : set of str
        The arguments that are arrays, all one-dimensional and of one length; the others are floats.
    let : dict
        The abbreviations that expressions may use.
    where : str, optional
        A condition on floats. Where it does not hold, or the value is not finite, the function hands over to one called `careful`.
    """

    def __init__(self, arrays: set[str], let: Mapping[str, str], where: str | None = None) -> None:
        self._where = where
        self.statements: list[str] = []
        self.functions: set[str] = set()
        self._arrays = set(arrays)
        self._let = {name: tree_of(expression) for name, expression in let.items()}
        self._written: set[str] = set()
        self._sums: dict[str, str] = {}

    @property
    def arrays(self) -> set[str]:
        """The names that are arrays so far: arguments and abbreviations."""
        return self._arrays

    def function(
        self, parameters: Iterable[str], lines: list[str], value: str, partials: Iterable[str], **others: Any
    ) -> tuple[Any, Any]:
        """The function of `parameters` and ``size`` that runs `lines` and returns the value and the list of partials."""
        parameters = [*parameters, "size"]
        lines, outcome = [*lines, f"value_ = {value}"], f"return value_, [{', '.join(partials)}]"
        if self._where is not None:
            careful = f"return careful({', '.join(parameters)})"
            lines = [f"if not {self._where}: {careful}", *lines, f"if not -inf < value_ < inf: {careful}"]
        return compiled(parameters, [*lines, outcome], self.functions, plain=True, **others)

    def code(self, node: ast.expr) -> Code:
        """The elementwise value of an expression."""
        if isinstance(node, ast.Constant):
            return repr(float(node.value)), False  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.UnaryOp):
            text, is_array = self.code(node.operand)
            return f"(-{text})", is_array
        if isinstance(node, ast.BinOp):
            (a, x), (b, y) = self.code(node.left), self.code(node.right)
            return f"({a} {OPERATORS[type(node.op)]} {b})", x or y
        if isinstance(node, ast.Compare):
            (a, x), (b, y) = self.code(node.left), self.code(node.comparators[0])
            return f"({a} {COMPARISONS[type(node.ops[0])]} {b})", x or y
        return self._call(node)  # type: ignore[arg-type]

    def _name(self, name: str) -> Code:
        """An argument, or an abbreviation, which is computed when it is first used."""
        if name in self._let and name not in self._written:
            self._written.add(name)
            text, is_array = self.code(self._let[name])
            self.statements.append(f"{name} = {text}")
            if is_array:
                self._arrays.add(name)
        return name, name in self._arrays

    def is_array(self, node: ast.expr) -> bool:
        """Whether the value of an expression is an array."""
        if isinstance(node, ast.Name):
            return node.id in self._arrays or (node.id in self._let and self.is_array(self._let[node.id]))
        return any(map(self.is_array, parts_of(node)))

    def _call(self, node: ast.Call) -> Code:
        name = node.func.id  # type: ignore[attr-defined]
        parts = [self.code(argument) for argument in node.args]
        is_array = any(x for _, x in parts)
        texts = [text for text, _ in parts]
        if name == "where" and not is_array:
            # As a branch, so that what is not selected may be undefined.
            return f"({texts[1]} if {texts[0]} else {texts[2]})", False
        self.functions.add(name)
        return f"{name}{'' if is_array else '_scalar'}({', '.join(texts)})", is_array

    def all(self, node: ast.expr) -> str:
        """Whether a condition holds for all elements."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            return f"({self.all(node.left)} and {self.all(node.right)})"
        text, is_array = self.code(node)
        if not is_array:
            return text
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _BOUNDS and not self.is_array(node.comparators[0]):
            # The extreme element is enough, and is nan if one is.
            return f"({_BOUNDS[type(node.ops[0])]}({self.code(node.left)[0]}) {text.partition(' ')[2]}"
        return f"{text}.all()"

    def sum(self, node: ast.expr) -> str:
        """The sum over all elements."""
        if not self.is_array(node):
            return f"(size * {self.code(node)[0]})"
        if isinstance(node, ast.Call) and (text := ast.unparse(node)) in SUMS:
            return self._name_of_sum(text, SUMS[text])
        if isinstance(node, ast.Call) and node.func.id == "where" and not self.is_array(node.args[0]):  # type: ignore[attr-defined]
            condition, a, b = node.args
            return f"({self.sum(a)} if {self.code(condition)[0]} else {self.sum(b)})"
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and self._may_split(node):
            return f"({self.sum(node.left)} {OPERATORS[type(node.op)]} {self.sum(node.right)})"
        if isinstance(node, ast.UnaryOp):
            return f"(-{self.sum(node.operand)})"
        numbers: list[tuple[str, bool]] = []
        over: list[ast.expr] = []
        under: list[ast.expr] = []
        for factor, inverse in self._factors(node):
            if not self.is_array(factor):
                numbers.append((self.code(factor)[0], inverse))
            else:
                (under if inverse else over).append(factor)
        result = self._product_sum(over, under)
        for text, inverse in numbers:
            result = f"{result} / {text}" if inverse else f"{text} * {result}"
        return f"({result})"

    def _may_split(self, node: ast.BinOp) -> bool:
        """Whether to sum both sides apart: not for a plain difference, whose sum would lose its digits."""

        def is_computed(side: ast.expr) -> bool:
            side = self._let.get(side.id, side) if isinstance(side, ast.Name) else side
            return isinstance(side, (ast.Call, ast.UnaryOp)) or len(factors(side)) > 1

        return is_computed(node.left) or is_computed(node.right)

    def _factors(self, node: ast.expr) -> list[tuple[ast.expr, bool]]:
        """The factors of a product; an abbreviation for one or two arrays times numbers is taken apart, for an inner product."""
        found = []
        for factor, inverse in factors(node):
            if isinstance(factor, ast.Name) and factor.id in self._let and factor.id not in self._written:
                parts = factors(self._let[factor.id], inverse)
                arrays = [part for part, _ in parts if self.is_array(part)]
                if 0 < len(arrays) < 3 and all(isinstance(part, ast.Name) for part in arrays):
                    found += self._factors(self._let[factor.id]) if not inverse else parts
                    continue
            found.append((factor, inverse))
        return found

    def inner_product(self, left: str, right: str) -> str:
        """The text of the sum of a product of two arrays."""
        return f"{left}.dot({right})"

    def total(self, x: str) -> str:
        """The text of the sum of an array."""
        return f"total({x})"

    def _product_sum(self, over: list[ast.expr], under: list[ast.expr]) -> str:
        """The sum of a product of arrays."""
        if len(over) == 1 and not under and isinstance(over[0], ast.BinOp) and self._may_split(over[0]):
            return self.sum(over[0])
        texts = [self.code(factor)[0] for factor in over]
        key = " ".join([*sorted(texts), "/", *sorted(self.code(factor)[0] for factor in under)])
        last = texts.pop() if len(texts) > 1 else None
        product = " * ".join(texts) or "1.0"
        for factor in under:
            product = f"{product} / {self.code(factor)[0]}"
        product = f"({product})" if len(texts) + len(under) > 1 else product
        return self._name_of_sum(key, self.inner_product(product, last) if last else self.total(product))

    def _name_of_sum(self, key: str, text: str) -> str:
        """The name of a sum, of which this is the text."""
        if key not in self._sums:
            self._sums[key] = f"sum{len(self._sums)}"  # an operation called sum is sum_3, say
            self.statements.append(f"{self._sums[key]} = {text}")
        return self._sums[key]


def factors(node: ast.expr, inverse: bool = False) -> list[tuple[ast.expr, bool]]:
    """The factors of a product, and whether each stands under the fraction bar."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        below = inverse != isinstance(node.op, ast.Div)
        return factors(node.left, inverse) + factors(node.right, below)
    if isinstance(node, ast.UnaryOp):
        return [(ast.Constant(-1.0), False), *factors(node.operand, inverse)]
    return [(node, inverse)]


def total(x: Any) -> Any:
    """The sum of an array of one dimension."""
    # Below some 30 elements Python's sum is faster than the set-up of NumPy's.
    return sum(x.tolist()) if x.size < 32 else np.add.reduce(x)


def compiled(
    parameters: Iterable[str], statements: list[str], functions: Iterable[str], plain: bool = False, **others: Any
) -> tuple[Any, Any]:
    """The function of these statements, and the same in IEEE arithmetic, for arguments where Python's floats raise.

    What is no scalar is an array, or a variable unless `plain`.
    """
    arrays = {name: for_arrays(name, plain) for name in functions}
    shared = {"inf": math.inf, "total": total, "smallest": np.minimum.reduce, "largest": np.maximum.reduce}
    shared |= SUM_FUNCTIONS | arrays | others
    quick, exact = ({f"{name}_scalar": of(name) for name in arrays} for of in (for_scalars, arrays.get))
    return tuple(function_of(", ".join(parameters), statements, shared | scalars) for scalars in (quick, exact))
