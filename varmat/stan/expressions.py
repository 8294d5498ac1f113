"""Types of expressions: the half of the checks that looks inside of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NoReturn

from varmat.stan import overloads, syntax, types
from varmat.stan.errors import StanSemanticError, nearest
from varmat.stan.overloads import GivenArgument
from varmat.stan.signatures import Signature, names, signatures
from varmat.stan.syntax import Expression, FunctionDefinition, Position, ProgramTree, Range
from varmat.stan.types import (
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    VECTOR,
    Argument,
    ArrayType,
    Basic,
    FunctionType,
    Tuple,
    Type,
)

__all__ = ["CONDITIONED", "ExpressionChecks", "Local"]

CONDITIONED = ("_lpdf", "_lupdf", "_lpmf", "_lupmf", "_cdf", "_lcdf", "_lccdf")
LIBRARY = Basic("function of Stan's library")
BINARY = {
    "+": ["add"], "-": ["subtract"], "*": ["multiply"], "/": ["mdivide_right", "divide"],
    "%": ["modulus"], "\\": ["mdivide_left"], ".*": ["elt_multiply"], "./": ["elt_divide"],
    "^": ["pow"], ".^": ["pow"], "||": ["logical_or"], "&&": ["logical_and"],
    "==": ["logical_eq"], "!=": ["logical_neq"], "<": ["logical_lt"], "<=": ["logical_lte"],
    ">": ["logical_gt"], ">=": ["logical_gte"],
}  # fmt: skip
UNARY = {"+": "plus", "-": "minus", "!": "logical_negation", "'": "transpose"}
# What old programs call otherwise.
RENAMED = {
    "fabs": "abs", "multiply_log": "lmultiply", "binomial_coefficient_log": "lchoose",
    "cov_exp_quad": "gp_exp_quad_cov", "get_lp": "target",
}  # fmt: skip
SUPERSEDED = {
    "integrate_ode": "ode_rk45", "integrate_ode_rk45": "ode_rk45", "integrate_ode_bdf": "ode_bdf",
    "integrate_ode_adams": "ode_adams", "algebra_solver": "solve_powell",
    "algebra_solver_newton": "solve_newton",
}  # fmt: skip
LAPLACE = {
    "bernoulli_logit": (ArrayType(INT), ArrayType(INT), VECTOR),
    "neg_binomial_2_log": (ArrayType(INT), ArrayType(INT), VECTOR, VECTOR),
    "poisson_log": (ArrayType(INT), ArrayType(INT), VECTOR),
}


class Local(NamedTuple):
    """Variable in scope: its type, the block it is from, and whether it may change."""

    type: Type
    block: str
    at: Position
    whole_block: bool = False
    fixed: bool = False


class ExpressionChecks:
    """Finds the types of expressions in a scope."""

    def __init__(self, program: ProgramTree) -> None:
        self.program = program
        self.block = "functions"
        self.scope: dict[str, Local] = {}
        self.functions: dict[str, list[FunctionDefinition]] = {}
        self.function: FunctionDefinition | None = None
        self.loops = 0
        self.sizing = False
        for definition in program.functions:
            if definition.body is not None:
                self.functions.setdefault(definition.name, []).append(definition)

    def error(self, reason: str, at: Position) -> NoReturn:
        raise StanSemanticError(reason, at, self.program.sources)

    def inside(self, *endings: str) -> bool:
        """Tell whether the code belongs to a function of the program with one of the endings."""
        return self.function is not None and self.function.name.endswith(endings)

    def unknown(self, name: str, at: Position) -> NoReturn:
        value = [*self.scope, *self.functions, *names(), "target"]
        self.error(f"There is no `{name}`.{nearest(name, value)}", at)

    def known(self, name: str) -> bool:
        """Tell whether a function has the name."""
        name = overloads.library_name(name)
        return name in self.functions or name in names() or name.startswith(SPECIAL)

    # Expressions

    def expression(self, node: Expression) -> Type:
        """Find the type of an expression and what it depends on; both stay on the node."""
        node.type, node.data = getattr(self, type(node).__name__.lower())(node)
        return node.type

    def expressions(self, nodes: Iterable[Expression]) -> bool:
        """Find the types of expressions, and whether all depend only on data."""
        data = [(self.expression(node), node.data)[1] for node in nodes]
        return all(data)

    def expect(self, node: Expression, expected: Sequence[Type], title: str) -> None:
        """Check that an expression has one of several types."""
        if self.expression(node) not in expected:
            kinds = " or ".join(map(str, expected))
            self.error(f"{title} must be {kinds}, but is {node.type}.", node.at)

    def number(self, node: syntax.Number) -> tuple[Type, bool]:
        if isinstance(node.value, int) and node.value >= 2**31:
            self.error("Integers of Stan end at 2147483647.", node.at)
        kinds: dict[type, Type] = {int: INT, float: REAL, complex: types.COMPLEX}
        return kinds[type(node.value)], True

    def variablename(self, node: syntax.VariableName) -> tuple[Type, bool]:
        self.unnormalized(node.name, node.at)
        if local := self.scope.get(node.name):
            if self.sizing and local.block in {
                "parameters", "transformed_parameters", "generated_quantities",
            }:  # fmt: skip
                self.error(f"Sizes depend on data alone, but `{node.name}` is not data.", node.at)
            return local.type, self.constant(local.type, local.block)
        if own := self.functions.get(overloads.library_name(node.name)):
            node.definition = own[0]
            return overloads.definition_type(own[0]), True
        if not self.known(node.name):
            self.unknown(node.name, node.at)
        return LIBRARY, True

    def constant(self, kind: Type, block: str) -> bool:
        """Tell whether a variable from a block is data for the purposes of the current block."""
        if block in {"data", "transformed_data", "generated_quantities"}:
            return True
        return types.discrete(kind) or self.block == "generated_quantities"

    def unary(self, node: syntax.Unary) -> tuple[Type, bool]:
        data = self.expressions([node.operand])
        meaning = overloads.resolve(UNARY[node.operator], [_argument(node.operand)], ())
        if isinstance(meaning, str) or meaning[0] is None:
            self.error(f"`{node.operator}` does not apply to {node.operand.type}.", node.at)
        return meaning[0], data

    def binary(self, node: syntax.Binary) -> tuple[Type, bool]:
        chain = syntax.in_a_row(node)
        self.expression(chain[0].left)
        for x in chain:
            data = self.expressions([x.right]) and x.left.data
            result = operate(x.operator, x.left, x.right)
            if result is None:
                sides = f"{x.left.type} and {x.right.type}"
                self.error(f"`{x.operator}` does not apply to {sides}.", x.at)
            x.type, x.data = result, data
        return node.type, node.data

    def conditional(self, node: syntax.Conditional) -> tuple[Type, bool]:
        self.expect(node.condition, [INT], "The condition before `?`")
        data = self.expressions([node.yes, node.no]) and node.condition.data
        result = types.common(node.yes.type, node.no.type)
        if result is None or isinstance(result, FunctionType) or result == LIBRARY:
            sides = f"{node.yes.type} and {node.no.type}"
            self.error(f"Both sides of `:` must have one type, but are {sides}.", node.at)
        return result, data

    def indexed(self, node: syntax.Indexed) -> tuple[Type, bool]:
        self.expression(node.base)
        several, data = [], node.base.data
        for index in node.indices:
            if isinstance(index, syntax.Range):
                data &= self.range(index)
            else:
                self.expect(index, [INT, ArrayType(INT)], "An index")
                data &= index.data
            several.append(isinstance(index, syntax.Range) or index.type != INT)
        result = indexed(node.base.type, several)
        if result is None:
            reason = f"{node.base.type} does not have {len(several)} indices."
            self.error(reason, node.at)
        return result, data or (result == INT and node.base.data)

    def range(self, node: Range) -> bool:
        bounds = [bound for bound in (node.lower, node.upper) if bound]
        for bound in bounds:
            self.expect(bound, [INT], "A bound of a range")
        return all(bound.data for bound in bounds)

    def projection(self, node: syntax.Projection) -> tuple[Type, bool]:
        base = self.expression(node.base)
        if not isinstance(base, Tuple):
            self.error(f"`.{node.number}` takes an element of a tuple, not of {base}.", node.at)
        if not 1 <= node.number <= len(base.elements):
            self.error(f"The tuple has {len(base.elements)} elements, not {node.number}.", node.at)
        if isinstance(node.base, syntax.TupleExpression):
            return node.base.elements[node.number - 1].type, node.base.elements[
                node.number - 1
            ].data
        element = base.elements[node.number - 1]
        return element, node.base.data or self.constant(element, self.block)

    def arrayexpression(self, node: syntax.ArrayExpression) -> tuple[Type, bool]:
        data = self.expressions(node.elements)
        kind = node.elements[0].type
        for element in node.elements:
            wider = types.common(kind, element.type)
            if wider is None:
                self.error(f"An array of {kind} cannot hold {element.type}.", element.at)
            kind = wider
        return ArrayType(kind), data

    def rowvectorexpression(self, node: syntax.RowVectorExpression) -> tuple[Type, bool]:
        data = self.expressions(node.elements)
        rows = bool(node.elements) and node.elements[0].type in (
            ROW_VECTOR,
            types.COMPLEX_ROW_VECTOR,
        )
        kind: Type = ROW_VECTOR if rows else REAL
        for element in node.elements:
            wider = types.common(kind, element.type)
            if wider is None:
                holder = "A matrix of row vectors" if rows else "A row vector"
                self.error(f"{holder} cannot hold {element.type}.", element.at)
            kind = wider
        results: dict[Type, Type] = {
            REAL: ROW_VECTOR, types.COMPLEX: types.COMPLEX_ROW_VECTOR, ROW_VECTOR: MATRIX,
            types.COMPLEX_ROW_VECTOR: types.COMPLEX_MATRIX,
        }  # fmt: skip
        return results[kind], data

    def tupleexpression(self, node: syntax.TupleExpression) -> tuple[Type, bool]:
        data = self.expressions(node.elements)
        return Tuple(tuple(element.type for element in node.elements)), data

    # Calls

    def call(self, node: syntax.Call) -> tuple[Type, bool]:
        result = self.calls(node)
        if result is None:
            self.error(f"`{node.name}` returns nothing.", node.at)
        data = all(argument.data for argument in node.arguments)
        return result, data or types.innermost(result) == INT

    def calls(self, node: syntax.Call) -> Type | None:
        """Find the type of the result of a call; None if it has no result."""
        data = self.expressions(node.arguments)
        self.rename(node)
        if node.name == "target":
            if self.block not in {"model", "transformed_parameters"} and not self.inside("_lp"):
                self.error("`target()` belongs to the model and functions with `_lp`.", node.at)
            if not node.arguments:
                node.data = False
                return REAL
        self.rules(node, data)
        name = overloads.library_name(node.name)
        if name in self.scope and name not in names():
            self.error(f"`{node.name}` is a variable, not a function.", node.at)
        if not self.known(name):
            self.unknown(node.name, node.at)
        if name in {"reduce_sum", "reduce_sum_static"}:
            return self.reduce_sum(node)
        if name.startswith("laplace_"):
            return self.laplace(node)
        if any(signature.variadic for signature in signatures(name)):
            return self.forwarding(node, lambda _: signatures(name)[0])
        return self.meaning(node, name)

    def meaning(self, node: syntax.Call, name: str) -> Type | None:
        arguments = list(map(_argument, node.arguments))
        for argument in node.arguments:
            if isinstance(argument, syntax.VariableName) and argument.definition:
                self.plain(node, argument.name)
        output = overloads.resolve(name, arguments, self.functions.get(name, ()))
        if isinstance(output, str):
            self.error(output, node.at)
        result, node.definition = output
        return result

    def rename(self, node: syntax.Call) -> None:
        """Give a call its present name, with a note, if it has an old one."""
        name = node.name
        if name in SUPERSEDED and name not in self.functions:
            text = (
                f"`{name}` is superseded: write `{SUPERSEDED[name]}`, which takes other arguments."
            )
            self.program.notes.append(syntax.Note(node.at, text))
        if self.known(name) or name in self.scope:
            return
        stem, old, _ = name.rpartition("_log")
        candidates = [RENAMED.get(name, "")]
        if old and name.endswith("_log"):
            for ending, present in [("_ccdf", "_lccdf"), ("_cdf", "_lcdf")]:
                if stem.endswith(ending):
                    candidates.append(stem.removesuffix(ending) + present)
            candidates += [stem + "_lpdf", stem + "_lpmf"]
        for candidate in candidates:
            if candidate == "target" or (candidate and self.known(candidate)):
                bar = candidate.endswith(CONDITIONED)
                form = f"`{candidate}({'y | ...' if bar else ''})`"
                note = syntax.Note(node.at, f"`{name}` is gone: write {form}.")
                self.program.notes.append(note)
                node.name, node.bar = candidate, bar
                return

    def rules(self, node: syntax.Call, data: bool) -> None:
        """Check where functions with certain endings may be called, and how."""
        name, at = node.name, node.at
        if name.endswith(CONDITIONED):
            if not node.bar and name.endswith("_cdf") and len(node.arguments) > 1:
                text = f"Write `|` after the first argument of `{name}`."
                self.program.notes.append(syntax.Note(at, text))
            elif not node.bar and len(node.arguments) > 1:
                self.error(f"`{name}` needs `|` after its first argument, not a comma.", at)
        elif node.bar:
            endings = ", ".join(CONDITIONED)
            self.error(f"Only functions with {endings} take `|`, `{name}` does not.", at)
        if name.endswith("_lp") and not (
            self.block in {"model", "transformed_parameters"} or self.inside("_lp")
        ):
            self.error(f"`{name}` adds to the target, which only the model and `_lp` may.", at)
        if name.endswith("_jacobian") and not (
            self.block == "transformed_parameters" or self.inside("_jacobian")
        ):
            where = "transformed parameters and functions with `_jacobian`"
            self.error(f"`{name}` belongs to {where}.", at)
        if name.endswith("_rng") and (
            self.sizing
            or not (
                self.block in {"transformed_data", "generated_quantities"} or self.inside("_rng")
            )
        ):
            where = "transformed data, generated quantities and functions with `_rng`"
            self.error(f"`{name}` draws at random, which only {where} may.", at)
        self.unnormalized(name, at)

    def unnormalized(self, name: str, at: Position) -> None:
        if name.endswith(("_lupdf", "_lupmf")) and not (
            self.block == "model" or self.inside("_lpdf", "_lpmf")
        ):
            where = "the model and functions with `_lpdf` or `_lpmf`"
            self.error(f"`{name}` drops constants, which only {where} may.", at)

    # Functions that call functions

    def passed(self, node: syntax.Call, position: int) -> list[FunctionDefinition]:
        """List the functions of the program that an argument of a call can mean."""
        argument = node.arguments[position] if position < len(node.arguments) else None
        own = (
            self.functions.get(overloads.library_name(argument.name), [])
            if isinstance(argument, syntax.VariableName) and argument.name not in self.scope
            else []
        )
        if not own:
            at = argument.at if argument else node.at
            self.error(f"Argument {position + 1} of `{node.name}` must be a function.", at)
        self.plain(node, own[0].name)
        return own

    def plain(self, node: syntax.Call, name: str) -> None:
        """Check that a function passed to another has no ending that gives it rights."""
        endings = [*CONDITIONED, "_rng", "_lp", "_jacobian"]
        if node.name.startswith("reduce_sum"):
            endings = [ending for ending in endings if ending not in ("_lpdf", "_lpmf")]
        if name.endswith(tuple(endings)):
            self.error(
                f"`{node.name}` cannot call a function with the ending of `{name}`.", node.at
            )

    def forwarding(
        self, node: syntax.Call, signature_for: Callable[[FunctionDefinition], Signature]
    ) -> Type | None:
        """Check a call of a function that passes arguments on to its first argument."""
        own = self.passed(node, 0)
        arguments = list(map(_argument, node.arguments[1:]))
        result = overloads.forward(node.name, arguments, own, signature_for)
        if isinstance(result, str):
            self.error(result, node.at)
        first = node.arguments[0]
        assert isinstance(first, syntax.VariableName)
        first.definition, first.type = result, overloads.definition_type(result)
        return signature_for(result).result

    def reduce_sum(self, node: syntax.Call) -> Type | None:
        self.passed(node, 0)
        sliced = node.arguments[1].type if len(node.arguments) > 1 else REAL
        element = types.innermost(sliced)
        if not isinstance(sliced, ArrayType) or element not in (
            INT,
            REAL,
            VECTOR,
            ROW_VECTOR,
            MATRIX,
        ):
            self.error(f"`{node.name}` slices an array, not {sliced}.", node.at)

        def signature_for(definition: FunctionDefinition) -> Signature:
            first = Argument(definition.arguments[0].type if definition.arguments else sliced)
            partial = FunctionType((first, Argument(INT), Argument(INT)), REAL)
            return Signature(((Argument(partial),), (first,), (Argument(INT),)), REAL, True)

        return self.forwarding(node, signature_for)

    def laplace(self, node: syntax.Call) -> Type:
        """Check a marginal over latent normals, which takes functions and tuples for them."""
        name, remainder = node.name, 0
        family = next((family for family in LAPLACE if f"_{family}_" in name), None)
        if family:
            remainder = len(LAPLACE[family])
            kinds = [argument.type for argument in node.arguments[:remainder]]
            if len(kinds) < remainder or any(
                types.promotion(*pair) is None for pair in zip(LAPLACE[family], kinds, strict=True)
            ):
                requested = ", ".join(map(str, LAPLACE[family]))
                self.error(f"`{name}` begins with arguments ({requested}).", node.at)
        else:
            self.forwarded(node, 0, (Argument(VECTOR),), REAL)
            remainder = 2
        size = node.arguments[remainder] if remainder < len(node.arguments) else None
        if size is None or size.type not in (INT, VECTOR):
            at = size.at if size else node.at
            reason = "the size of a block of the Hessian, int, or the first vector"
            self.error(f"Argument {remainder + 1} of `{name}` must be {reason}.", at)
        self.forwarded(node, remainder + 1, (), MATRIX)
        extra = node.arguments[remainder + 3 :]
        if "_tol" not in name and extra:
            self.error(f"`{name}` takes {remainder + 3} arguments.", extra[0].at)
        if "_tol" in name and not extra:
            self.error(f"`{name}` ends with a tuple of tolerances.", node.at)
        if name.endswith("_rng"):
            return VECTOR
        return Tuple((VECTOR, MATRIX)) if "_solve" in name else REAL

    def forwarded(
        self, node: syntax.Call, position: int, first: tuple[Argument, ...], result: Type
    ) -> None:
        """Check a function and the tuple of its arguments behind `first`."""
        own = self.passed(node, position)
        pack = node.arguments[position + 1] if position + 1 < len(node.arguments) else None
        if pack is None or not isinstance(pack.type, Tuple):
            at = pack.at if pack else node.at
            self.error(f"Argument {position + 2} of `{node.name}` must be a tuple.", at)
        arguments = [GivenArgument(argument.type, argument.data) for argument in first]
        if isinstance(pack, syntax.TupleExpression):
            arguments += map(_argument, pack.elements)
        else:
            arguments += [GivenArgument(element, pack.data) for element in pack.type.elements]
        output = overloads.resolve("", arguments, own)
        if isinstance(output, str) or output[0] != result:
            kinds = ", ".join(str(argument.type) for argument in arguments)
            reason = f"`{node.name}` calls `{own[0].name}` with ({kinds}) for {result}"
            self.error(f"{reason}, but it is {overloads.definition_type(own[0])}.", pack.at)
        function = node.arguments[position]
        assert isinstance(function, syntax.VariableName)
        function.definition = output[1]


SPECIAL = ("reduce_sum", "laplace_marginal", "laplace_latent")


def _argument(node: Expression) -> GivenArgument:
    return GivenArgument(node.type, node.data)


def operate(operator: str, left: Expression, right: Expression) -> Type | None:
    """Find the result of an operator, or None if it does not apply."""
    if operator == "%/%":
        return INT if left.type == right.type == INT else None
    for name in BINARY[operator]:
        result = overloads.resolve(name, [_argument(left), _argument(right)], ())
        if not isinstance(result, str):
            return result[0]
    return None


def indexed(base: Type, several: Sequence[bool]) -> Type | None:
    """Find the type of what indices take, each of them several elements or one, or None."""
    if not several:
        return base
    if isinstance(base, ArrayType):
        element = indexed(base.element, several[1:])
        return ArrayType(element) if several[0] and element else element
    if (
        base in (VECTOR, ROW_VECTOR, types.COMPLEX_VECTOR, types.COMPLEX_ROW_VECTOR)
        and len(several) == 1
    ):
        scalar = REAL if base in (VECTOR, ROW_VECTOR) else types.COMPLEX
        return base if several[0] else scalar
    if base in (MATRIX, types.COMPLEX_MATRIX) and len(several) <= 2:
        real = base == MATRIX
        rows, columns = (*several, True)[:2]
        if rows and columns:
            return base
        if columns:
            return ROW_VECTOR if real else types.COMPLEX_ROW_VECTOR
        if rows:
            return VECTOR if real else types.COMPLEX_VECTOR
        return REAL if real else types.COMPLEX
    return None
