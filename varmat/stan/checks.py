"""What Stan's compiler refuses: declarations, assignments, blocks, functions and their returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from varmat.stan import overloads, syntax, types
from varmat.stan.errors import nearest
from varmat.stan.expressions import CONDITIONED, LIBRARY, SPECIAL, ExpressionChecks, Local, operate
from varmat.stan.signatures import names, signatures
from varmat.stan.syntax import Expression, Position, ProgramTree, SizedType, Statement
from varmat.stan.types import (
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    VECTOR,
    ArrayType,
    FunctionType,
    Tuple,
    Type,
)

__all__ = ["check"]

# Whether the code behind a statement is reached: always or sometimes, after a `break`, never.
ON, LEAVES, NEVER = range(3)
RESERVED = frozenset(
    {
        "generated", "quantities", "transformed", "repeat", "until", "then", "true", "false",
        "typedef", "struct", "var", "export", "extern", "static", "auto",
    }
)  # fmt: skip
UNCONSTRAINED = frozenset(types.BASIC) | {"tuple"}


def check(program: ProgramTree) -> ProgramTree:
    """Check a parsed program, and complete its nodes as `varmat.stan.syntax` describes.

    Raises
    ------
    StanSemanticError
        At the first broken rule.

    Examples
    --------
    >>> from varmat.stan.parser import parse
    >>> program = check(parse("transformed data { real x = 1; }"))
    >>> str(program.transformed_data[0].value.type)
    'int'
    """
    _Checks(program).whole()
    return program


class _Checks(ExpressionChecks):
    """Visits the blocks, and keeps the names in scope."""

    def whole(self) -> None:
        for definition in self.program.functions:
            self.definition(definition)
        for definition in self.program.functions:
            self.defined(definition)
        for block in (
            "data", "transformed_data", "parameters", "transformed_parameters", "model",
            "generated_quantities",
        ):  # fmt: skip
            self.block = block
            outside = dict(self.scope)
            for statement in getattr(self.program, block):
                self.statement(statement, outermost=block != "model")
            if block == "model":
                self.scope = outside

    # Functions

    def definition(self, node: syntax.FunctionDefinition) -> None:
        self.name(node.name, node.at)
        if node.name.startswith(SPECIAL) or any(one.variadic for one in signatures(node.name)):
            self.error(f"`{node.name}` is a function of Stan, which cannot be overloaded.", node.at)
        if node.name.endswith(("_lupdf", "_lupmf")):
            self.error(f"Define `{node.name.replace('_lup', '_lp')}` instead.", node.at)
        self.unique(node)
        self.density(node)
        self.scope = {}
        for argument in node.arguments:
            block = "data" if argument.data else "functions"
            local = Local(argument.type, block, argument.at, fixed=True)
            self.declare(argument.name, argument.at, local)
        if node.body is not None:
            self.function = node
            reached = self.statements(node.body)
            if node.result and reached != NEVER:
                reason = f"Not every path through `{node.name}` returns {node.result}."
                self.error(reason, node.at)
        self.function, self.scope = None, {}

    def unique(self, node: syntax.FunctionDefinition) -> None:
        """Check that no other definition, nor Stan, takes the same arguments."""
        mine = overloads.definition_type(node)
        kinds = [argument.type for argument in mine.arguments]
        for other in self.program.functions:
            if other is node:
                break
            theirs = overloads.definition_type(other)
            same = other.name == node.name and kinds == [one.type for one in theirs.arguments]
            if same and mine.result != theirs.result:
                reason = f"`{node.name}` of line {other.at.line} differs in its result alone."
                self.error(reason, node.at)
            declares = (node.body is None) != (other.body is None) and mine == theirs
            if same and not (declares and other.body is None):
                reason = f"`{node.name}` with these arguments is defined in line {other.at.line}."
                self.error(reason, node.at)
        for signature in signatures(node.name):
            if len(signature.arguments) == len(kinds) and all(
                kind in [one.type for one in alternatives]
                for kind, alternatives in zip(kinds, signature.arguments, strict=True)
            ):
                self.error(f"`{node.name}` with these arguments is a function of Stan.", node.at)

    def defined(self, node: syntax.FunctionDefinition) -> None:
        mine = overloads.definition_type(node)
        if node.body is None and not any(
            overloads.definition_type(one) == mine for one in self.functions.get(node.name, ())
        ):
            self.error(f"`{node.name}` is declared, but not defined.", node.at)

    def density(self, node: syntax.FunctionDefinition) -> None:
        """Check the result and the first argument of functions with endings of densities."""
        if not node.name.endswith(CONDITIONED):
            return
        if node.result != REAL:
            got = node.result or "nothing"
            self.error(f"`{node.name}` must return real because of its ending, not {got}.", node.at)
        first = node.arguments[0].type if node.arguments else None
        if node.name.endswith("_lpdf") and (first is None or types.discrete(first)):
            reason = "a density of reals, so its first argument must hold reals"
            self.error(f"`{node.name}` is {reason}, not {first or 'nothing'}.", node.at)
        if node.name.endswith("_lpmf") and (first is None or not types.discrete(first)):
            reason = "a mass of integers, so its first argument must hold integers"
            self.error(f"`{node.name}` is {reason}, not {first or 'nothing'}.", node.at)

    # Names

    def name(self, name: str, at: Position) -> None:
        if name in RESERVED or name.endswith("__"):
            self.error(f"`{name}` is reserved and cannot be a name.", at)

    def declare(self, name: str, at: Position, local: Local) -> None:
        self.name(name, at)
        if name.endswith(("_lupdf", "_lupmf")):
            self.error(f"`{name}` has the ending of densities without constants.", at)
        if earlier := self.scope.get(name):
            self.error(f"`{name}` is declared already, in line {earlier.at.line}.", at)
        self.scope[name] = local

    # Statements

    def statements(self, body: Sequence[Statement]) -> int:
        """Check statements in a separate scope; return whether the code after them is reached."""
        outside, reached = dict(self.scope), ON
        escaped = False
        for statement in body:
            here = self.statement(statement)
            if not escaped:
                reached = LEAVES if LEAVES in (reached, here) else max(here, ON)
            escaped |= isinstance(statement, syntax.Break | syntax.Continue | syntax.Return) or (
                isinstance(statement, syntax.Message) and statement.kind != "print"
            )
        self.scope = outside
        return reached

    def statement(self, node: Statement, outermost: bool = False) -> int:
        """Check a statement; say whether the code behind it is reached."""
        if isinstance(node, syntax.Declaration):
            self.declaration(node, outermost)
            return ON
        if outermost and self.block in {"data", "parameters"}:
            if isinstance(node, syntax.Braces) and not node.body:
                return ON
            self.error(f"The block `{self.block}` takes declarations alone.", node.at)
        reached = getattr(self, f"{type(node).__name__.lower()}_")(node)
        return ON if reached is None else int(reached)

    def declaration(self, node: syntax.Declaration, outermost: bool) -> None:
        self.sized(node.declared, outermost)
        kind = node.declared.unsized
        if (
            outermost
            and self.block in {"parameters", "transformed_parameters"}
            and types.contains_int(kind)
        ):
            self.error(f"Parameters are not discrete, so `{node.name}` cannot hold int.", node.at)
        local = Local(kind, self.block, node.at, whole_block=outermost)
        if node.value is None:
            self.declare(node.name, node.at, local)
            return
        if outermost and self.block in {"data", "parameters"}:
            self.error(f"Nothing can be assigned in the block `{self.block}`.", node.value.at)
        self.expression(node.value)  # before the name is known, because it has no value yet
        self.declare(node.name, node.at, local)
        if types.promotion(kind, node.value.type) is None:
            self.error(f"`{node.name}` is {kind} and cannot hold {node.value.type}.", node.at)

    def sized(self, node: SizedType, outermost: bool) -> None:
        """Check the sizes and the bounds of a declared type."""
        self.sizing = outermost
        for size in [*node.dimensions, *node.sizes]:
            self.expect(size, [INT], "A size")
        self.sizing = False
        for element in node.elements:
            self.sized(element, outermost)
        bounds = [
            (title, bound)
            for title in ("lower", "upper", "offset", "multiplier")
            if (bound := getattr(node, title))
        ]
        if not outermost and (bounds or node.name not in UNCONSTRAINED):
            self.error("Variables inside of blocks and functions have no constraints.", node.at)
        plain = syntax.UNSIZED.get(node.name, REAL)
        for title, bound in bounds:
            if node.name.startswith("complex"):
                self.error("Complex variables have no constraints.", bound.at)
            allowed = [INT] if node.name == "int" else list(dict.fromkeys([INT, REAL, plain]))
            if node.name == "int" and title in {"offset", "multiplier"}:
                self.error(f"Integers have no {title}.", bound.at)
            array = node.unsized
            self.expect(
                bound, [*allowed, *([array] if array not in allowed else [])], title.title()
            )

    def assignment_(self, node: syntax.Assignment) -> None:
        self.target(node.target)
        self.apart(node.target)
        self.expression(node.value)
        if node.operator:
            scalar = node.operator.startswith(".") and node.target.type in (
                INT,
                REAL,
                types.COMPLEX,
            )
            if scalar or operate(node.operator, node.target, node.value) != node.target.type:
                sides = f"{node.target.type} and {node.value.type}"
                self.error(f"`{node.operator}=` does not apply to {sides}.", node.value.at)
        elif types.promotion(node.target.type, node.value.type) is None:
            reason = f"{node.target.type} cannot hold {node.value.type}"
            self.error(f"{reason[0].upper()}{reason[1:]}.", node.value.at)

    def target(self, node: Expression) -> None:
        """Check the left side of an assignment."""
        if isinstance(node, syntax.TupleExpression):
            for element in node.elements:
                self.target(element)
        elif isinstance(node, syntax.VariableName):
            self.assignable(node)
        else:
            base = node
            chosen: list[Expression | syntax.Range] = []
            while isinstance(base, syntax.Indexed | syntax.Projection):
                if base is not node and isinstance(base, syntax.Indexed):
                    chosen += base.indices
                base = base.base
            self.target(base)
            self.expression(node)
            if isinstance(node, syntax.Indexed) and any(
                isinstance(index, syntax.Range) or index.type != INT for index in chosen
            ):
                self.error("Indices of several elements come last in an assignment.", node.at)
        self.expression(node)

    def assignable(self, node: syntax.VariableName) -> None:
        local = self.scope.get(node.name)
        self.name(node.name, node.at)
        if local is None:
            if self.known(node.name):
                self.error(f"`{node.name}` is a function; nothing is assigned to it.", node.at)
            self.unknown(node.name, node.at)
        if local.whole_block and local.block != self.block:
            block = local.block.replace("_", " ")
            reason = f"is from the block `{block}` (line {local.at.line}) and stays as it is there"
            self.error(f"`{node.name}` {reason}.", node.at)
        if local.fixed:
            reason = f"is set by the loop or the call (line {local.at.line}) and stays as it is"
            self.error(f"`{node.name}` {reason}.", node.at)

    def apart(self, node: Expression) -> None:
        """Check that the left side sets each variable once, and reads none of those it sets."""
        paths = [path for leaf in _leaves(node) for path in _paths(leaf, leaf.type)]
        read = {
            inner.name
            for leaf in _leaves(node)
            for index in _indices(leaf)
            for inner in _variables(index)
        }
        for path in paths:
            if paths.count(path) > 1:
                self.error(f"`{path[0]}` is assigned twice in one statement.", node.at)
            if path[0] in read:
                reason = "is assigned and read on the left of one assignment"
                self.error(f"`{path[0]}` {reason}.", node.at)

    def tilde_(self, node: syntax.Tilde) -> None:
        self.expressions([node.value, *node.arguments])
        for bound in (node.lower, node.upper):
            if bound:
                self.expect(bound, [INT, REAL], "A truncation")
        self.name(node.name, node.at)
        if node.name.endswith(("_lpdf", "_lpmf", "_lupdf", "_lupmf")):
            reason = f"write `~ {node.name.rpartition('_')[0]}(...)`"
            self.error(f"The ending belongs to calls: {reason}.", node.at)
        self.increment("`~`", node.at)
        arguments = [node.value, *node.arguments]
        argument_types = [
            overloads.GivenArgument(argument.type, argument.data) for argument in arguments
        ]
        result = self.family(node, argument_types)
        if result is None:
            own = (name.rpartition("_")[0] for name in self.functions)
            library = (name for name in names() if name.endswith(("_lpdf", "_lpmf")))
            value = [*own, *(name.rpartition("_")[0] for name in library)]
            self.error(f"There is no density `{node.name}`.{nearest(node.name, value)}", node.at)
        if isinstance(result, str):
            self.error(result, node.at)
        for bound in (node.lower, node.upper):
            if bound:
                limit = overloads.GivenArgument(bound.type, bound.data)
                for ending in ("_lcdf", "_lccdf"):
                    name = node.name + ending
                    own_ones = self.functions.get(name, ())
                    if not self.known(name) or isinstance(
                        overloads.resolve(name, [limit, *argument_types[1:]], own_ones), str
                    ):
                        self.error(f"Truncation needs `{name}` for the arguments.", node.at)
        if node.definition is not None and (node.lower or node.upper):
            node.truncated = self.truncated(node)
            self.expression(node.truncated.value)

    def truncated(self, node: syntax.Tilde) -> syntax.TargetIncrement:
        """Expand a truncated density of a program's function, using its distribution functions."""
        at, y, lower, upper = node.at, node.value, node.lower, node.upper

        def call(name: str, *arguments: Expression, bar: bool = False) -> Expression:
            return syntax.Call(at, name, [*arguments], bar)

        def tail(ending: str, end: Expression) -> Expression:
            return call(node.name + ending, end, *node.arguments, bar=True)

        # The lower end belongs to the interval. The bounds hold for all numbers of a vector.
        is_whole = types.innermost(y.type) == INT
        below = syntax.Binary(at, "-", lower, syntax.Number(at, 1)) if is_whole and lower else lower
        if below and upper:
            mass = call("log_diff_exp", tail("_lcdf", upper), tail("_lcdf", below))
        else:
            mass = tail("_lccdf", below) if below else tail("_lcdf", upper)  # type: ignore[arg-type]
        least, most, density = y, y, node.function.replace("_lp", "_lup")
        if y.type not in (INT, REAL):
            least, most = call("min", y), call("max", y)
            mass = syntax.Binary(at, "*", call("num_elements", y), mass)
        value: Expression = syntax.Binary(
            at, "-", call(density, y, *node.arguments, bar=True), mass
        )
        for operator, x, end in (("<", least, lower), (">", most, upper)):
            if end:
                outside = syntax.Binary(at, operator, x, end)
                value = syntax.Conditional(at, outside, call("negative_infinity"), value)
        return syntax.TargetIncrement(at, value)

    def family(
        self, node: syntax.Tilde, arguments: list[overloads.GivenArgument]
    ) -> overloads.Found | str | None:
        """Find the density that `~` means, and note it on the node."""
        result: overloads.Found | str | None = None
        for ending in ("_lpmf", "_lpdf", "_log"):
            name = node.name + ending
            if ending == "_log" and name not in self.functions:
                continue
            if name.startswith("laplace_") and self.known(name) and ending == "_lpmf":
                call = syntax.Call(node.at, name, [node.value, *node.arguments], True)
                self.expression(call)
                node.function = name
                return REAL, None
            if not self.known(name):
                continue
            results = overloads.resolve(name, arguments, self.functions.get(name, ()))
            if not isinstance(results, str):
                node.function, node.definition = name, results[1]
                if ending == "_log":
                    text = f"The ending of `{name}` is old: write `{node.name}_lpdf` or `_lpmf`."
                    self.program.notes.append(syntax.Note(node.at, text))
                return results
            result = result or results
        return result

    def increment(self, what: str, at: Position) -> None:
        if not (self.block == "model" or self.inside("_lp")):
            self.error(f"{what} belongs to the model and to functions with `_lp`.", at)

    def targetincrement_(self, node: syntax.TargetIncrement) -> None:
        self.expression(node.value)
        self.increment("`target +=`", node.at)
        self.printable(node.value, "target")

    def jacobianincrement_(self, node: syntax.JacobianIncrement) -> None:
        self.expression(node.value)
        if not (self.block == "transformed_parameters" or self.inside("_jacobian")):
            where = "transformed parameters and to functions with `_jacobian`"
            self.error(f"`jacobian +=` belongs to {where}.", node.at)
        self.printable(node.value, "jacobian")

    def printable(self, node: Expression, what: str) -> None:
        if isinstance(node.type, FunctionType) or node.type == LIBRARY:
            self.error(f"`{what}` takes values, not a function.", node.at)

    def callstatement_(self, node: syntax.CallStatement) -> None:
        self.name(node.call.name, node.at)
        if (result := self.calls(node.call)) is not None:
            reason = f"`{node.call.name}` returns {result}, which nothing uses: assign it"
            self.error(f"{reason}.", node.at)

    def message_(self, node: syntax.Message) -> int:
        for item in node.items:
            if not isinstance(item, str):
                self.expression(item)
                self.printable(item, node.kind)
        return ON if node.kind == "print" else NEVER

    def return_(self, node: syntax.Return) -> int:
        if self.function is None:
            self.error("`return` belongs to functions.", node.at)
        requested = self.function.result
        if node.value is None:
            if requested:
                self.error(f"`{self.function.name}` must return {requested}.", node.at)
            return NEVER
        if requested is None:
            self.error(f"`{self.function.name}` is void and returns nothing.", node.at)
        got = self.expression(node.value)
        if types.promotion(requested, got) is None:
            self.error(f"`{self.function.name}` returns {requested}, not {got}.", node.at)
        return NEVER

    def break_(self, node: syntax.Break) -> int:
        if not self.loops:
            self.error("`break` belongs to loops.", node.at)
        return LEAVES

    def continue_(self, node: syntax.Continue) -> int:
        if not self.loops:
            self.error("`continue` belongs to loops.", node.at)
        return ON

    def if_(self, node: syntax.If) -> int:
        self.expect(node.condition, [INT], "A condition")
        reached = {self.statements(node.body), self.statements(node.otherwise)}
        return LEAVES if LEAVES in reached else min(reached)

    def loop(self, body: Sequence[Statement], **fixed: Local) -> int:
        outside = dict(self.scope)
        for name, local in fixed.items():
            self.declare(name, local.at, local)
        self.loops += 1
        reached = self.statements(body)
        self.loops -= 1
        self.scope = outside
        return reached

    def while_(self, node: syntax.While) -> int:
        self.expect(node.condition, [INT], "A condition")
        reached = self.loop(node.body)
        endless = isinstance(node.condition, syntax.Number) and node.condition.value != 0
        return NEVER if reached == NEVER or (reached == ON and endless) else ON

    def for_(self, node: syntax.For) -> int:
        self.expect(node.lower, [INT], "The first value of a loop")
        self.expect(node.upper, [INT], "The last value of a loop")
        fixed = Local(INT, self.block, node.at, fixed=True)
        return NEVER if self.loop(node.body, **{node.name: fixed}) == NEVER else ON

    def foreach_(self, node: syntax.ForEach) -> int:
        values = self.expression(node.values)
        if not isinstance(values, ArrayType) and values not in (VECTOR, ROW_VECTOR, MATRIX):
            reason = "A loop runs over an array, a vector or a matrix"
            self.error(f"{reason}, not over {values}.", node.values.at)
        element = values.element if isinstance(values, ArrayType) else REAL
        fixed = Local(element, self.block, node.at, fixed=True)
        return NEVER if self.loop(node.body, **{node.name: fixed}) == NEVER else ON

    def braces_(self, node: syntax.Braces | syntax.Profiled) -> int:
        return self.statements(node.body)

    profiled_ = braces_


def _leaves(node: Expression) -> Iterator[Expression]:
    """Yield what the left side of an assignment sets, tuples taken apart."""
    if isinstance(node, syntax.TupleExpression):
        for element in node.elements:
            yield from _leaves(element)
    else:
        yield node


def _paths(node: Expression, kind: Type) -> list[tuple[str | int, ...]]:
    """List the variables, with the numbers of elements of tuples, that an assignment sets."""
    numbers: tuple[str | int, ...] = ()
    while isinstance(node, syntax.Indexed | syntax.Projection):
        if isinstance(node, syntax.Projection):
            numbers = (node.number, *numbers)
        node = node.base
    assert isinstance(node, syntax.VariableName)
    kind = types.innermost(kind)
    ends: list[tuple[str | int, ...]] = [()]
    if isinstance(kind, Tuple):
        ends = [
            (number, *path[1:])
            for number, element in enumerate(kind.elements, 1)
            for path in _paths(node, element)
        ]
    return [(node.name, *numbers, *end) for end in ends]


def _indices(node: Expression) -> Iterator[syntax.SyntaxNode]:
    while isinstance(node, syntax.Indexed | syntax.Projection):
        if isinstance(node, syntax.Indexed):
            yield from node.indices
        node = node.base


def _variables(node: object) -> Iterator[syntax.VariableName]:
    """Yield the variables in an expression."""
    if isinstance(node, syntax.VariableName):
        yield node
    elif isinstance(node, list):
        for item in node:
            yield from _variables(item)
    elif isinstance(node, syntax.Expression | syntax.Range):
        for field in node.__dataclass_fields__:
            if field not in {"at", "type", "data", "definition"}:
                yield from _variables(getattr(node, field))
