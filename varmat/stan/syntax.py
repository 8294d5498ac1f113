"""Syntax trees of Stan programs.

`parse` makes a `ProgramTree` of these nodes, `check` completes it. Every node has a position `at`.
Nodes are compared and hashed by identity, so they can be keys; `repr` shows the structure alone.

The checks fill in, and an evaluator may rely on:

* `type` of every expression: its Stan type before any promotion. So `a / b` divides integers if
  both sides have the type `INT`, and an argument of type `INT` becomes real on the way into a
  function whose `ArgumentDeclaration` is real.
* `data` of every expression: whether it depends on data alone. Local variables of the model and of
  transformed parameters do not, unless they are integers.
* `definition` of calls, of distribution statements and of names of functions: the
  `FunctionDefinition` meant among the overloads (the one with a body), or None for a function of
  Stan's library.
* `function` of a distribution statement: the whole name of its density, as `normal_lpdf`.

The parser unifies spellings: parentheses are dropped; bodies of loops and branches are lists of
statements, with or without braces; each name of `real x, y;` has its own `Declaration`;
`target()` is a call; the old `real x[3]`, `x <- 1`, `increment_log_prob(x)` get their present form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from varmat.stan import types
from varmat.stan.types import ArrayType, Tuple, Type


class Position(NamedTuple):
    """Place in a source: file, line and column, both from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


@dataclass(slots=True, eq=False)
class SyntaxNode:
    """Part of a program."""

    at: Position = field(repr=False)


# Expressions


@dataclass(slots=True, eq=False)
class Expression(SyntaxNode):
    """Expression; `type` and `data` exist once the program is checked."""

    type: Type = field(init=False, repr=False)
    data: bool = field(init=False, repr=False)


@dataclass(slots=True, eq=False)
class Number(Expression):
    """Literal: an `int`, a `float`, or a `complex` for `2.5i`."""

    value: complex


@dataclass(slots=True, eq=False)
class VariableName(Expression):
    """Name of a variable, or of a function that is passed to a function such as `ode_rk45`."""

    name: str
    definition: FunctionDefinition | None = field(default=None, init=False, repr=False)


@dataclass(slots=True, eq=False)
class Call(Expression):
    """Call of a function; `bar` if `|` follows the first argument."""

    name: str
    arguments: list[Expression]
    bar: bool = False
    definition: FunctionDefinition | None = field(default=None, init=False, repr=False)


@dataclass(slots=True, eq=False)
class Unary(Expression):
    """Operator `-`, `+` or `!` before an expression, or `'` behind it."""

    operator: str
    operand: Expression


@dataclass(slots=True, eq=False)
class Binary(Expression):
    """Operator between two expressions."""

    operator: str
    left: Expression
    right: Expression


@dataclass(slots=True, eq=False)
class Conditional(Expression):
    """`condition ? yes : no`."""

    condition: Expression
    yes: Expression
    no: Expression


@dataclass(slots=True, eq=False)
class Range(SyntaxNode):
    """Index `lower:upper`; either may be missing: `lower:`, `:upper`, `:` and nothing at all."""

    lower: Expression | None
    upper: Expression | None


@dataclass(slots=True, eq=False)
class Indexed(Expression):
    """`base[indices]`; an index is a range, an integer, or an array of integers (by its type)."""

    base: Expression
    indices: list[Expression | Range]


@dataclass(slots=True, eq=False)
class Projection(Expression):
    """`base.number`: element of a tuple, from 1."""

    base: Expression
    number: int


@dataclass(slots=True, eq=False)
class ArrayExpression(Expression):
    """`{a, b}`."""

    elements: list[Expression]


@dataclass(slots=True, eq=False)
class RowVectorExpression(Expression):
    """`[a, b]`: a row vector, or a matrix of row vectors (by its type)."""

    elements: list[Expression]


@dataclass(slots=True, eq=False)
class TupleExpression(Expression):
    """`(a, b)`, also on the left of an assignment."""

    elements: list[Expression]


# Types as declared


@dataclass(slots=True, eq=False)
class SizedType(SyntaxNode):
    """Declared type: `array[dimensions] name<lower=, ...>[sizes]`, or a tuple of `elements`.

    `name` is the word of the program: `real`, `cholesky_factor_cov`, `tuple`, ...
    """

    name: str
    sizes: list[Expression]
    dimensions: list[Expression]
    elements: list[SizedType] = field(default_factory=list)
    lower: Expression | None = None
    upper: Expression | None = None
    offset: Expression | None = None
    multiplier: Expression | None = None

    @property
    def unsized(self) -> Type:
        """Type of the declared variable."""
        if self.name == "tuple":
            unsized: Type = Tuple(tuple(element.unsized for element in self.elements))
        else:
            unsized = UNSIZED[self.name]
        for _ in self.dimensions:
            unsized = ArrayType(unsized)
        return unsized


UNSIZED: dict[str, Type] = {
    **{name: types.Basic(name) for name in types.BASIC},
    **dict.fromkeys(
        ["simplex", "unit_vector", "ordered", "positive_ordered", "sum_to_zero_vector"],
        types.VECTOR,
    ),
    **dict.fromkeys(
        (
            "corr_matrix", "cov_matrix", "cholesky_factor_corr", "cholesky_factor_cov",
            "sum_to_zero_matrix", "column_stochastic_matrix", "row_stochastic_matrix",
        ),
        types.MATRIX,
    ),
}  # fmt: skip


# Statements


@dataclass(slots=True, eq=False)
class Statement(SyntaxNode):
    """Statement."""


@dataclass(slots=True, eq=False)
class Declaration(Statement):
    """Declaration of one variable, which `value` sets if there is one."""

    declared: SizedType
    name: str
    value: Expression | None = None


@dataclass(slots=True, eq=False)
class Assignment(Statement):
    """`target operator= value`; operator is empty, or one of `+ - * / .* ./`.

    `target` is a `VariableName`, `Indexed` or `Projection` of one, or a `TupleExpression` of those.
    """

    target: Expression
    operator: str
    value: Expression


@dataclass(slots=True, eq=False)
class Tilde(Statement):
    """`value ~ name(arguments) T[lower, upper]`.

    If a density of the program is truncated, `truncated` says the same as an increment.
    """

    value: Expression
    name: str
    arguments: list[Expression]
    lower: Expression | None = None
    upper: Expression | None = None
    function: str = field(default="", init=False, repr=False)
    definition: FunctionDefinition | None = field(default=None, init=False, repr=False)
    truncated: TargetIncrement | None = field(default=None, init=False, repr=False)


@dataclass(slots=True, eq=False)
class TargetIncrement(Statement):
    """`target += value`, where `value` may have any shape."""

    value: Expression


@dataclass(slots=True, eq=False)
class JacobianIncrement(Statement):
    """`jacobian += value`."""

    value: Expression


@dataclass(slots=True, eq=False)
class CallStatement(Statement):
    """Call of a function that returns nothing."""

    call: Call


@dataclass(slots=True, eq=False)
class Message(Statement):
    """`print`, `reject` or `fatal_error` (the `kind`) of texts and expressions."""

    kind: str
    items: list[Expression | str]


@dataclass(slots=True, eq=False)
class Return(Statement):
    """`return value`."""

    value: Expression | None


@dataclass(slots=True, eq=False)
class Break(Statement):
    """`break`."""


@dataclass(slots=True, eq=False)
class Continue(Statement):
    """`continue`."""


@dataclass(slots=True, eq=False)
class If(Statement):
    """`if (condition) body else otherwise`."""

    condition: Expression
    body: list[Statement]
    otherwise: list[Statement]


@dataclass(slots=True, eq=False)
class While(Statement):
    """`while (condition) body`."""

    condition: Expression
    body: list[Statement]


@dataclass(slots=True, eq=False)
class For(Statement):
    """`for (name in lower:upper) body`."""

    name: str
    lower: Expression
    upper: Expression
    body: list[Statement]


@dataclass(slots=True, eq=False)
class ForEach(Statement):
    """`for (name in values) body`: elements of an array, a vector, or a matrix by columns."""

    name: str
    values: Expression
    body: list[Statement]


@dataclass(slots=True, eq=False)
class Braces(Statement):
    """`{ body }`."""

    body: list[Statement]


@dataclass(slots=True, eq=False)
class Profiled(Statement):
    """`profile(name) { body }`."""

    name: str
    body: list[Statement]


# Programs


@dataclass(slots=True, eq=False)
class ArgumentDeclaration(SyntaxNode):
    """Argument of a function definition; `data` if it must not depend on parameters."""

    type: Type
    name: str
    data: bool = False


@dataclass(slots=True, eq=False)
class FunctionDefinition(SyntaxNode):
    """Function of the program; `result` is None for `void`, `body` in a forward declaration."""

    result: Type | None
    name: str
    arguments: list[ArgumentDeclaration]
    body: list[Statement] | None


@dataclass(slots=True, eq=False)
class Note(SyntaxNode):
    """Advice about old syntax that has been read: what to write today."""

    text: str


@dataclass(slots=True, eq=False)
class ProgramTree(SyntaxNode):
    """Program: its blocks, the lines of its files by name, and notes."""

    functions: list[FunctionDefinition]
    data: list[Declaration]
    transformed_data: list[Statement]
    parameters: list[Declaration]
    transformed_parameters: list[Statement]
    model: list[Statement]
    generated_quantities: list[Statement]
    sources: dict[str, list[str]] = field(repr=False)
    notes: list[Note] = field(repr=False)


# Walks


def parts(node: SyntaxNode) -> Iterator[object]:
    """Yield the parts of a node: nodes, lists of nodes, and other values."""
    for kind in type(node).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if slot not in ("at", "type", "definition", "data"):
                yield getattr(node, slot, None)


def walk(node: object) -> Iterator[SyntaxNode]:
    """Yield all nodes of a tree, or of a list of trees."""
    left = [node]
    while left:
        node = left.pop()
        if isinstance(node, (list, tuple)) and not isinstance(node, Position):
            left.extend(reversed(node))
        elif isinstance(node, SyntaxNode):
            yield node
            left.extend(reversed([*parts(node)]))


def in_a_row(e: Binary) -> list[Binary]:
    """List operators that have the one before on their left, as in a long sum; the last is `e`."""
    operands = [e]
    while isinstance(operands[-1].left, Binary):
        operands.append(operands[-1].left)
    return operands[::-1]


def names_in(node: object) -> Iterator[str]:
    """Yield the names of variables in a tree."""
    return (x.name for x in walk(node) if isinstance(x, VariableName))


# What is added to the name of a variable for each earlier one of the name, whose scope has ended.
PRIME = "'"


def distinguish(program: ProgramTree) -> None:
    """Give the variables of a checked program different names, so that names tell them apart.
    Those of whole blocks keep theirs.
    """
    for definition in program.functions:
        scope: dict[str, str] = {argument.name: argument.name for argument in definition.arguments}
        _distinguish(definition.body or [], scope, Counter(scope.values()))
    blocks: list[Sequence[Statement]] = [
        program.data, program.transformed_data, program.parameters,
        program.transformed_parameters, [Braces(program.at, program.model)],
        program.generated_quantities,
    ]  # fmt: skip
    scope = {x.name: x.name for block in blocks for x in block if isinstance(x, Declaration)}
    count = Counter(scope.values())
    for block in blocks:
        for x in block:
            _distinguish(x.value if isinstance(x, Declaration) else x, scope, count)


def _distinguish(node: object, scope: dict[str, str], count: Counter[str]) -> None:
    """Rename the variables in a tree; `scope` has the new name of each name in scope."""

    def declare(x: Declaration | For | ForEach) -> None:
        name, x.name = x.name, x.name + PRIME * count[x.name]
        scope[name] = x.name
        count[name] += 1

    if isinstance(node, list):
        scope = dict(scope)
        for item in node:
            _distinguish(item, scope, count)
    elif isinstance(node, VariableName):
        node.name = scope.get(node.name, node.name)
    elif isinstance(node, For | ForEach):
        scope = dict(scope)
        _distinguish([x for x in parts(node) if x is not node.body], scope, count)
        declare(node)
        _distinguish(node.body, scope, count)
    elif isinstance(node, SyntaxNode):
        for part in parts(node):
            _distinguish(part, scope, count)
        if isinstance(node, Declaration):
            declare(node)


def root(target: Expression) -> str:
    """Return the name of the variable that is assigned, as a whole or in part."""
    while isinstance(target, (Indexed, Projection)):
        target = target.base
    return target.name if isinstance(target, VariableName) else ""
