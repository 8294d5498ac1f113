"""A program: the value and the gradient of one recording as a straight line of NumPy calls.

The values of variables are ``v0``, ``v1``, ...; data are ``k0``, ``k1``, ...; adjoints are ``a0``, ``a1``, .... Contributions to
adjoints are kept as expressions and written down where all of them are known, so that most adjoints of scalars, and those that are
the same number for all elements of an array, are never more than a number, and factors of one disappear.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from functools import cache
from operator import itemgetter, methodcaller
from typing import Any, NamedTuple

import numpy as np

from varmat.core.elementwise import ROWS, for_arrays, for_scalars
from varmat.core.errors import TapeError, refusals
from varmat.core.indexing import index_of
from varmat.core.rules import IN_PLACE, function_of
from varmat.core.tape import Rule
from varmat.core.variables import VARIABLES, View
from varmat.programs.blocks import Shape, blocks, by_blocks
from varmat.programs.expressions import OPERATORS, Code, Writer, factors, total
from varmat.programs.memory import with_deletions, without_needless_copies
from varmat.programs.statements import negated, statements_of, without_dead_statements

# Elements up to which equal elements are written out.
WRITTEN = 1024
# Terms of a sum that is written in one statement.
MOST_TERMS = 20
# Parts of an expression that may become part of another one.
MOST_PARTS = 60
# From a rule, or from the type of the operation behind it -> the function that writes an entry.
WRITERS: dict[Any, Callable[[Program, Any, Any, Any, Any], None]] = {}


def writes(*keys: Any) -> Callable[[Any], Any]:
    """Register the function that writes the entries of a rule, or of all rules whose operation is of a type."""

    def register(function: Any) -> Any:
        WRITERS.update(dict.fromkeys(keys, function))
        return function

    return register


class ElsewhereError(Exception):
    """A program has come to where its straight line does not hold: the function is to be evaluated as it is written."""


class RecordingError(TapeError):
    """A recording cannot be made once for all values."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        refusals.of_looks += 1


class Product(NamedTuple):
    """A contribution that is a call of a function, or, beside others, ``left.T @ right``."""

    function: Any
    texts: tuple[str, ...]
    left: str
    right: str


class Node:
    """A variable of the recording.

    Attributes
    ----------
    name : str
        What its value is called.
    shape : tuple of int
    tree : ast.expr, optional
        The product of named arrays that it is, if it is one.
    contributions : list of ast.expr
        To its adjoint: each is an array of the shape of the node, or a number, which stands for equal elements.
    parts : list
        Contributions to a part of it: the place and the expression.
    products : list of Product
        Contributions that are products of matrices with fewer elements than the node has.
    """

    __slots__ = ("contributions", "name", "parts", "products", "shape", "tree")

    def __init__(self, name: str, shape: Shape) -> None:
        self.name = name
        self.shape = shape
        self.tree: ast.expr | None = None
        self.contributions: list[ast.expr] = []
        self.parts: list[tuple[Any, ast.expr]] = []
        self.products: list[Product] = []

    @property
    def reached(self) -> bool:
        """Whether there are contributions to its adjoint."""
        return bool(self.contributions or self.parts or self.products)


def writer_of(rule: Rule) -> Callable[[Program, Any, Any, Any, Any], None]:
    """The function that writes the entries of a rule; refuses a rule that has none."""
    writer = WRITERS.get(rule) or WRITERS.get(type(rule.op))
    if writer is None:
        raise RecordingError(f"recorded: {rule.name} cannot be written as a program; varmat.value_and_grad can do it")
    return writer


def tuple_of(texts: list[str]) -> str:
    return f"({', '.join(texts)},)" if texts else "()"


def name_of(text: str) -> ast.expr:
    return ast.Name(text, ast.Load())


def number(x: float) -> ast.expr:
    return ast.Constant(float(x))


def binary(left: ast.expr, operator: ast.operator, right: ast.expr) -> ast.expr:
    """The operation on two expressions, without numbers that change nothing."""
    constant = [x.value if isinstance(x, ast.Constant) else None for x in (left, right)]
    if isinstance(operator, ast.Mult) and 1.0 in constant:
        return right if constant[0] == 1.0 else left
    if isinstance(operator, ast.Div) and constant[1] == 1.0:
        return left
    if None not in constant and not (isinstance(operator, ast.Div) and constant[1] == 0.0):
        x, y = map(float, constant)  # type: ignore[arg-type]
        folded = {ast.Add: x + y, ast.Sub: x - y, ast.Mult: x * y}.get(type(operator), x / (y or 1.0))
        if math.isfinite(folded):
            return number(folded)
    return ast.BinOp(left, operator, right)


class _Substitution(ast.NodeTransformer):
    """An expression of the table with other expressions in place of its letters; a new tree, for the old one is used again."""

    def __init__(self, letters: dict[str, ast.expr]) -> None:
        self.letters = letters

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.letters.get(node.id) or number(getattr(math, node.id))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return ast.Call(node.func, [self.visit(argument) for argument in node.args], [])

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        return ast.Compare(self.visit(node.left), node.ops, [self.visit(each) for each in node.comparators])

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return number(node.value)  # type: ignore[arg-type]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        is_number = isinstance(operand, ast.Constant)
        return number(-operand.value) if is_number else ast.UnaryOp(node.op, operand)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.Add) and ast.dump(node.left) == ast.dump(node.right):
            return binary(number(2.0), ast.Mult(), self.visit(node.left))
        return binary(self.visit(node.left), node.op, self.visit(node.right))


def substituted(expression: str, letters: dict[str, ast.expr]) -> ast.expr:
    tree: ast.expr = _Substitution(letters).visit(_parsed(expression))
    return tree


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


class Program(Writer):
    """Writes the program of a recording.

    Attributes
    ----------
    namespace : dict
        What the names in the statements mean.
    steps : list
        For each operation its nodes and the function that writes its part of the reverse pass.
    """

    def __init__(self) -> None:
        super().__init__(set(), {})
        self.namespace: dict[str, Any] = {name: getattr(np, name) for name in ("negative", *IN_PLACE.values())} | {
            "alone": alone, "blocks": blocks, "contiguous": np.ascontiguousarray, "copied": copied, "empty": np.empty,
            "filled": filled, "inf": math.inf, "repeated": np.broadcast_to, "summed": summed, "total": total, "vdot": np.vdot,
            "whole": whole, "zeros": np.zeros,
        }  # fmt: skip
        self.steps: list[tuple[tuple[Node, ...], Callable[[], None]]] = []
        self.shapes: dict[str, Shape] = {}
        # Names of views, of arrays that do not lie in one piece, and of what elementwise operations compute.
        self.views: set[str] = set()
        self.strided: set[str] = set()
        self.computed: set[str] = set()
        # Ids are those of living objects: the tape holds variables, and the namespace what is bound.
        self._nodes: dict[int, Node] = {}
        # Id of a variable -> ids of the views of it that have nodes.
        self._views: dict[int, list[int]] = {}
        # Name of an array and text of a part of it -> the view.
        self._parts: dict[Any, Node] = {}
        self._constants: dict[int, str] = {}
        self._numbers: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        self._equal: dict[str, str] = {}
        self._count = 0
        # Of what is being summed.
        self._summed: Shape = ()

    # --- names ---

    def new_name(self, letter: str, shape: Shape | None = None) -> str:
        """A name for a number, or for an array if a shape is given that is not ()."""
        name = f"{letter}{self._count}"
        self._count += 1
        if name in ROWS:  # a function, such as the Bessel function k1
            return self.new_name(letter, shape)
        if shape:
            self.shapes[name] = shape
            self._arrays.add(name)
        return name

    def bind(self, thing: Any, letter: str = "") -> str:
        """A name for something that does not change: data, or a function, which is called after its own name or another one."""
        name = self._constants.get(id(thing))
        if name is None:
            letter = letter or f"{getattr(thing, '__name__', '').strip('_')}_"
            letter = letter if letter.isidentifier() and letter != "_" else "f"
            name = self._constants[id(thing)] = self.new_name(letter, np.shape(thing) if type(thing) is np.ndarray else None)
            self.namespace[name] = thing
            if type(thing) is np.ndarray and not thing.flags.c_contiguous:
                self.strided.add(name)
        return name

    def node(self, variable: Any) -> Node:
        """A new node for a variable: a leaf, or the result of what is being written."""
        shape = variable.shape
        node = self._nodes[id(variable)] = Node(self.new_name("v", shape), shape)
        return node

    def constant(self, leaf: Any) -> None:
        """A node for a variable that the function made of plain numbers, such as an array to write into."""
        self._nodes[id(leaf)] = Node(self.bind(np.copy(leaf._val) if leaf.shape else leaf._val, "k"), leaf.shape)

    def find(self, variable: Any) -> Node:
        """The node of an operand that is a variable; views are written where they are first used."""
        node: Any = self._nodes.get(id(variable))
        if node is None:
            unknown = [variable]
            while isinstance(unknown[-1], View) and id(unknown[-1]._parent) not in self._nodes:
                unknown.append(unknown[-1]._parent)
            for view in reversed(unknown):
                node = self._view(view)
        return node  # type: ignore[no-any-return]

    def _view(self, view: Any) -> Node:
        if not isinstance(view, View):
            raise TapeError("an operation uses a variable that the recording does not know")
        parent, how = self.find(view._parent), view._how
        self._views.setdefault(id(view._root), []).append(id(view))
        # The same part, taken again, is the same: products with it at every step of a loop become one.
        part = (parent.name, repr(how.__reduce__())) if type(how) in (itemgetter, methodcaller) else None
        if part in self._parts:
            node = self._nodes[id(view)] = self._parts[part]
            return node
        node = self.node(view)
        if part is not None:
            self._parts[part] = node
        self.views.add(node.name)
        if not view._val.flags.c_contiguous:
            self.strided.add(node.name)
        if type(how) is itemgetter:
            index = self.bind(index_of(how), "i")
            self.write(f"{node.name} = {parent.name}[{index}]")
        else:
            self.write(f"{node.name} = {self.bind(how)}({parent.name})")
        self.steps.append(((node,), lambda: parent.parts.append((how, self._adjoint_of_part(node)))))
        return node

    def operand(self, x: Any) -> tuple[ast.expr, Node | None]:
        """An operand as an expression, and its node if it is a variable."""
        if type(x) in VARIABLES:
            node = self.find(x)
            return name_of(node.name), node
        if isinstance(x, np.ndarray) and x.ndim:
            return name_of(self.bind(x, "k")), None
        value = float(x)
        return (number(value) if math.isfinite(value) else name_of(self.bind(value, "k"))), None

    def define(self, variable: Any, value: ast.expr) -> Node:
        """The node of a result whose value is an expression."""
        text = self.code(value)[0]
        node = self.node(variable)
        self.write(f"{node.name} = {text}")
        if not isinstance(value, ast.Name):
            self.computed.add(node.name)
        return node

    def assigned(self, variable: Any, source: Node | None = None) -> Node:
        """A new node for a variable into which something is assigned, or that of what it is then; its views are found anew."""
        for view in self._views.pop(id(variable), ()):
            del self._nodes[view]
        if source is None:
            return self.node(variable)
        self._nodes[id(variable)] = source
        return source

    # --- statements ---

    def write(self, statement: str) -> None:
        self.statements.append(statement)

    def assign(self, letter: str, tree: ast.expr, shape: Shape) -> str:
        """Write an assignment of the value of an expression to a new name."""
        text = self.code(tree)[0]
        name = self.new_name(letter, shape)
        self.write(f"{name} = {text}")
        return name

    def code(self, node: ast.expr) -> Code:
        if not isinstance(node, ast.BinOp) or type(node.op) not in IN_PLACE or not self.is_array(node):
            return super().code(node)
        if isinstance(node.op, (ast.Mult, ast.Div)):
            return self._product(factors(node)), True
        left, right = (self._beside_arrays(side) for side in (node.left, node.right))
        return f"({left} {OPERATORS[type(node.op)]} {right})", True

    def _product(self, parts: list[tuple[ast.expr, bool]]) -> str:
        """The text of a product with arrays in it: numbers are multiplied with each other first, arrays keep their order."""
        constant, numbers, arrays = 1.0, "", []
        for part, below in parts:
            if isinstance(part, ast.Constant) and (part.value or not below):
                value = float(part.value)  # type: ignore[arg-type]
                constant = constant / value if below else constant * value
            elif self.is_array(part):
                arrays.append((self.code(part)[0], below))
            else:
                numbers += f" {'/' if below else '*'} {self.code(part)[0]}"
        text, below = arrays.pop(0)
        if below or numbers or constant != 1.0:
            number = f"({constant!r}{numbers})" if numbers else self._zero_dimensional(constant)
            number = f"({numbers[3:]})" if constant == 1.0 and numbers[:3] == " * " else number
            text = f"({number} {'/' if below else '*'} {text})"
        for other, below in arrays:
            text = f"({text} {'/' if below else '*'} {other})"
        return text

    def _beside_arrays(self, node: ast.expr) -> str:
        return self._zero_dimensional(node.value) if isinstance(node, ast.Constant) else self.code(node)[0]

    def _zero_dimensional(self, value: Any) -> str:
        # NumPy takes half as long for an array of no dimensions as for a float beside an array.
        text = repr(value)  # zeros are equal, and have signs
        if text not in self._numbers:
            self._numbers[text] = self.bind(np.array(value), "k")
        return self._numbers[text]

    def shapes_in(self, tree: ast.expr) -> set[Shape]:
        """The shapes of the arrays in an expression."""
        return {self.shapes[part.id] for part in ast.walk(tree) if isinstance(part, ast.Name) and part.id in self.shapes}

    def summed(self, tree: ast.expr, shape: Shape) -> ast.expr:
        """The sum of the elements of an expression of a shape, as an expression; a number stands for equal elements."""
        if not self.is_array(tree):
            return binary(number(math.prod(shape)), ast.Mult(), tree)
        self._summed = shape
        text = self.sum(tree) if self.shapes_in(tree) == {shape} else f"summed({self.code(tree)[0]}, {shape})"
        name = self.new_name("s")
        self.write(f"{name} = float({text})")
        return name_of(name)

    def added(self, terms: list[str]) -> str:
        """The sum of many numbers, as an expression that is not too deep."""
        while len(terms) > MOST_TERMS:
            name = self.new_name("s")
            self.write(f"{name} = {' + '.join(terms[:MOST_TERMS])}")
            terms = [name, *terms[MOST_TERMS:]]
        return " + ".join(terms) or "0.0"

    def inner_product(self, left: str, right: str) -> str:
        return super().inner_product(left, right) if len(self._summed) == 1 else f"vdot({left}, {right})"

    def total(self, x: str) -> str:
        return super().total(x) if len(self._summed) == 1 else f"whole({x})"

    def sum(self, node: ast.expr) -> str:
        return super().sum(node) if self.is_array(node) else f"({math.prod(self._summed)} * {self.code(node)[0]})"

    # --- the reverse pass ---

    def adjoint(self, node: Node, once: bool = False) -> Any:
        """The adjoint of a node, once all contributions are there: a name or a number, and None if there are no contributions.

        What is used only `once` may be an expression too, whose factors then meet those of the expression it becomes part of.
        """
        if not node.reached:
            return None
        if node.products:
            node.contributions.append(self._sum_of_products(node))
            node.products = []
        tree: Any = None
        for i, each in enumerate(node.contributions):
            tree = each if tree is None else binary(tree, ast.Add(), each)
            if i % MOST_TERMS == MOST_TERMS - 1 and isinstance(tree, ast.BinOp):
                # A sum is a tree as deep as it is long, and there are limits to that.
                tree = self._named(node, tree)
        if node.parts:
            tree = (None if tree else self._reshaped(node)) or name_of(self._assembled(node, tree))
        elif once and len(list(ast.walk(tree))) < MOST_PARTS:
            return tree
        elif not isinstance(tree, (ast.Name, ast.Constant)):
            tree = self._named(node, tree)
        node.contributions, node.parts = [tree], []
        return tree

    def _adjoint_of_part(self, node: Node) -> ast.expr:
        """The same of a view, or the negative of a name: it is subtracted where it becomes part of another."""
        tree = self.adjoint(node, once=True)
        if isinstance(negated(tree), ast.Name) or isinstance(tree, (ast.Name, ast.Constant)):
            return tree  # type: ignore[no-any-return]
        return self._named(node, tree)

    def _named(self, node: Node, tree: ast.expr) -> ast.expr:
        """What is known of the adjoint of a node, under a name."""
        return name_of(self.assign("a", tree, node.shape if self.is_array(tree) else ()))

    def _sum_of_products(self, node: Node) -> ast.Name:
        first, *others = node.products
        if not others:
            return self.call(first.function, node.shape, *first.texts)
        left, right = ([getattr(each, side) for each in node.products] for side in ("left", "right"))
        return self.call(sum_of_products, node.shape, tuple_of(left), tuple_of(right))

    def _reshaped(self, node: Node) -> ast.expr | None:
        """The adjoint of what is only used in another shape, as an expression: that of the other, reshaped back."""
        how, tree = node.parts[0]
        if len(node.parts) > 1 or isinstance(how, Gather):
            return None
        part = how(np.empty(node.shape))
        if np.size(part) != math.prod(node.shape) or not part.flags.c_contiguous:
            return None
        if not self.is_array(tree):
            return tree
        source = self.code(tree)[0] if isinstance(tree, ast.Name) else self.assign("c", tree, part.shape)
        name = self.new_name("c", node.shape)
        self.write(f"{name} = {source}.reshape({node.shape})")
        self.views.add(name)
        return name_of(name)

    def _assembled(self, node: Node, rest: ast.expr | None) -> str:
        """The name of an adjoint some of whose contributions are to parts of it."""
        name, shape = self.new_name("a", node.shape), node.shape
        hits = np.zeros(shape, int)
        for how, _ in node.parts:
            _add_one(hits, how)
        once = rest is None and hits.max(initial=0) <= 1
        if rest is not None:
            text, is_array = self.code(rest)
            copy = copy_for(how for how, _ in node.parts)
            self.write(f"{name} = {text}{copy}" if is_array and isinstance(rest, ast.Name) else f"{name} = filled({text}, {shape})")
        else:
            self.write(f"{name} = {'empty' if once and hits.min(initial=1) else 'zeros'}({shape})")
        for how, tree in node.parts:
            taken = None if once or isinstance(how, Gather) else negated(tree)
            text, sign = self.code(taken or tree)[0], "=" if once else "-=" if taken else "+="
            if type(how) is itemgetter:
                index = index_of(how)
                self.write(f"{name}[{index if type(index) is int else self.bind(index, 'i')}] {sign} {text}")
            elif isinstance(how, Gather):
                self.write(f"{self.bind(how, 'add_at_')}({name}, {text})")
            else:
                self.write(f"{self.bind(how)}({name})[...] {sign} {text}")
        return name

    def full(self, tree: ast.expr, shape: Shape) -> str:
        """The text of an adjoint as an array (or a float) of its whole shape."""
        text, is_array = self.code(tree)
        if is_array or not shape:
            return text
        # As in an eager reverse pass, a long array of equal elements is not written out: products take a short way with it.
        make = "filled" if math.prod(shape) <= WRITTEN else "repeated"
        statement = f"{make}({text}, {shape})"
        if not isinstance(tree, ast.Constant):
            return statement
        if statement not in self._equal:
            constant = self.namespace[make](tree.value, shape)
            constant.flags.writeable = False
            self._equal[statement] = self.bind(constant, "k")
        return self._equal[statement]

    def whole(self, tree: ast.expr, shape: Shape) -> ast.expr:
        """The same as an expression."""
        text = self.full(tree, shape)
        if text == self.code(tree)[0]:
            return tree
        if text.isidentifier():
            return name_of(text)
        name = self.new_name("c", shape)
        self.write(f"{name} = {text}")
        return name_of(name)

    def call(self, function: Any, shape: Shape, *texts: str) -> ast.Name:
        """Write the call of a function whose result is of a shape; the name of the result."""
        statement = f"{self.bind(function)}({', '.join(texts)})"
        if statement not in self._calls:
            self._calls[statement] = self.new_name("c", shape)
            self.write(f"{self._calls[statement]} = {statement}")
        return ast.Name(self._calls[statement], ast.Load())

    def entry(self, rule: Any, result: Any, x: Any, y: Any) -> None:
        """Write the forward part of an entry, and note what writes its reverse part."""
        writer_of(rule)(self, rule, result, x, y)

    def finish(self, output: Node, leaves: list[Node]) -> None:
        """Write the reverse pass from a scalar, and what the program returns: the value and the gradients."""
        output.contributions.append(number(1.0))
        while self.steps:  # they hold the program, which would keep its arrays until the collector comes
            nodes, back = self.steps.pop()
            if any(node.reached for node in nodes):
                back()
        gradients, given = [], set()
        for leaf in leaves:
            tree = self.adjoint(leaf)
            text, is_array = ("0.0", False) if tree is None else self.code(tree)
            if not leaf.shape:
                gradients.append(f"float({text})")
                continue
            # Adjoints, contributions and what is computed are made here and belong to nobody else.
            own = is_array and text not in given and (text[0] in "ac" or text in self.computed)
            given.add(text)
            if own:
                gradients.append(text if text[0] == "a" and len(leaf.shape) == 1 else f"alone({text})")
            else:
                gradients.append(f"filled({text}, {leaf.shape})")
        self.write(f"return {output.name}, {tuple_of(gradients)}")

    def compiled(self, parameters: list[str]) -> tuple[Any, str]:
        """The function, and its text."""
        statements = without_dead_statements(statements_of(self.statements))
        statements = without_needless_copies(statements, self.functions, self.views)
        lines = with_deletions(by_blocks(statements, self.shapes, self.functions, self.views, self.strided), self.shapes)
        for name in self.functions:
            self.namespace[name], self.namespace[f"{name}_scalar"] = for_arrays(name, plain=True), for_scalars(name)
        text = f"def gradient({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)
        return function_of(", ".join(parameters), lines, self.namespace), text


class Gather:
    """Adds a contribution to those elements that were gathered."""

    def __init__(self, index: Any, add: Callable[[np.ndarray, Any, Any], None]) -> None:
        self.index = index
        self._add = add

    def __call__(self, a: np.ndarray, c: Any) -> None:
        self._add(a, self.index, c)


def _add_one(hits: np.ndarray, how: Any) -> None:
    if isinstance(how, Gather):
        hits += 2  # elements may come several times, and a gather always adds
    elif type(how) is itemgetter:
        hits[index_of(how)] += 1
    else:
        how(hits)[...] += 1


def copy_for(hows: Iterable[Any]) -> str:
    """The text after the name of an array that is to be written into by way of views, which `hows` take, directly or not.

    A reshape is a view of a contiguous array only: where the copy is left out, it must be sure that the array is one.
    """
    return ".copy()" if all(isinstance(how, (itemgetter, Gather)) for how in hows) else ".copy('C')"


def alone(x: np.ndarray) -> np.ndarray:
    """An array that was made here as a C-contiguous one that does not look into the memory of another."""
    return x if x.base is None and x.flags.c_contiguous else np.array(x, order="C")


def copied(x: Any) -> Any:
    """A new array, or a float."""
    return np.array(x) if np.ndim(x) else float(x)


def filled(x: Any, shape: Shape) -> np.ndarray:
    """A new array of a shape, with the elements of something that broadcasts to it."""
    result = np.empty(shape)
    result[...] = x
    return result


def summed(x: Any, shape: Shape) -> float:
    """The sum of what is broadcast to a shape."""
    return float(np.add.reduce(np.broadcast_to(x, shape), None))


def sum_of_products(left: tuple[np.ndarray, ...], right: tuple[np.ndarray, ...]) -> np.ndarray:
    """The sum of ``p.T @ q`` over pairs of matrices, as one product of all of them above each other."""
    result: np.ndarray = np.concatenate(left).T.dot(np.concatenate(right))
    return result


def whole(x: Any) -> float:
    """The sum of an array."""
    return float(np.add.reduce(x, None))
