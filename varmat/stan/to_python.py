"""Stan programs as modules of NumPy and varmat.

A `Printer` writes each node as text. Places count from 0 in the result: an index loses 1, and a
loop whose variable is mostly an index starts one earlier, so that most additions of 1 disappear.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import varmat as vm
from varmat.stan import functions, types
from varmat.stan import syntax as s
from varmat.stan.errors import StanError
from varmat.stan.types import Array
from varmat.stan.values import MATRICES, ROWS, SCALARS, VECTORS, innermost

if TYPE_CHECKING:
    from varmat.stan.types import Type

__all__: list[str] = []

# Names that the module itself uses, or that a reader would take for something else.
_RESERVED = frozenset({
    "np", "vm", "data", "rng", "terms", "make_model", "log_density", "propto", "log_likelihood",
    "coords", "dims", "observed", "recorded", "transformed_parameters", "generated_quantities",
    "sum", "len", "range", "int", "max", "min", "print", "l", "O", "I",
})  # fmt: skip
# Precedence of Python's operators, from the loosest.
LOOSEST, OR, AND, NOT, COMPARED, SUM, PRODUCT, SIGN, POWER, ATOM = range(10)
_OPERATORS = {
    "||": ("or", OR), "&&": ("and", AND), "==": ("==", COMPARED), "!=": ("!=", COMPARED),
    "<": ("<", COMPARED), "<=": ("<=", COMPARED), ">": (">", COMPARED), ">=": (">=", COMPARED),
    "+": ("+", SUM), "-": ("-", SUM), "*": ("*", PRODUCT), ".*": ("*", PRODUCT),
    "/": ("/", PRODUCT),
    "./": ("/", PRODUCT), "^": ("**", POWER), ".^": ("**", POWER),
}  # fmt: skip
# Functions of Stan that are NumPy's; the others have their own name in varmat, or a text here, with
# the arguments {0}, {1}, ... as operands, {f0} on their own, and {m0} less 1.
_NUMPY = {
    **{name: name for name in (
        "exp", "log", "sqrt", "floor", "ceil", "cos", "sin", "tan", "cosh", "sinh", "tanh", "log1p",
        "expm1", "log10", "square", "cbrt", "trunc", "fmin", "fmax", "hypot", "exp2", "sum", "prod",
        "mean", "diagonal",
    )},
    "abs": "abs", "fabs": "abs", "acos": "arccos", "asin": "arcsin", "atan": "arctan",
    "acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh", "atan2": "arctan2",
    "diag_matrix": "diag", "log2": "log2",
}  # fmt: skip
_TEXTS = {
    "rows": ("{0}.shape[0]", ATOM), "cols": ("{0}.shape[1]", ATOM), "size": ("len({f0})", ATOM),
    "num_elements": ("np.size({f0})", ATOM), "inv": ("1 / {0}", PRODUCT),
    "dot_product": ("{0} @ {1}", PRODUCT), "pow": ("{0} ** {1}", POWER),
    "head": ("{0}[:{f1}]", ATOM), "col": ("{0}[:, {m1}]", ATOM), "row": ("{0}[{m1}]", ATOM),
    "append_array": ("np.concatenate([{f0}, {f1}])", ATOM),
    "reduce_sum": ("{f0}({f1}, 1, len({f1}){rest3})", ATOM),
    "transpose": ("{0}.T", ATOM), "cov_exp_quad": ("vm.gp_exp_quad_cov({all})", ATOM),
    "is_nan": ("np.isnan({f0})", ATOM), "is_inf": ("np.isinf({f0})", ATOM),
}  # fmt: skip
_TEXTS["reduce_sum_static"] = _TEXTS["reduce_sum"]
_CONSTANTS = {
    "pi": "np.pi", "e": "np.e", "sqrt2": "np.sqrt(2)", "log2": "np.log(2)", "log10": "np.log(10)",
    "not_a_number": "np.nan", "positive_infinity": "np.inf", "negative_infinity": "-np.inf",
    "machine_precision": "np.finfo(float).eps",
}  # fmt: skip
_PARAMETERS = {
    "simplex": "simplex", "unit_vector": "unit_vector", "ordered": "ordered",
    "positive_ordered": "positive_ordered", "sum_to_zero_vector": "sum_to_zero",
    "corr_matrix": "corr_matrix", "cov_matrix": "cov_matrix",
    "cholesky_factor_corr": "cholesky_corr", "cholesky_factor_cov": "cholesky_cov",
}  # fmt: skip
_WIDTH = 96


def walk(node: object) -> Iterator[s.Node]:
    """A node and all nodes in it."""
    if isinstance(node, (list, tuple)) and not isinstance(node, s.Position):
        for each in node:
            yield from walk(each)
    elif isinstance(node, s.Node):
        yield node
        for kind in type(node).__mro__:
            for slot in getattr(kind, "__slots__", ()):
                if slot not in ("at", "type", "definition"):
                    yield from walk(getattr(node, slot, None))


def names_in(node: object) -> set[str]:
    """The names of variables in a node."""
    return {each.name for each in walk(node) if isinstance(each, s.Variable)}


def renamed(name: str) -> str:
    """A name of the program as one of Python."""
    return f"{name}_" if keyword.iskeyword(name) or name in _RESERVED else name


def _root(e: s.Expression) -> s.Expression:
    while isinstance(e, (s.Index, s.Projection)):
        e = e.base
    return e


def _is_shifted(loop: s.For) -> bool:
    """Whether the variable of a loop is an index more often than a number."""
    places: list[object] = []
    for each in walk(loop.body):
        if isinstance(each, s.Index):
            places += each.indices
        elif isinstance(each, s.Call) and each.name in ("col", "row", "segment"):
            places += each.arguments[1:2]
    indices, all_uses = (
        sum(isinstance(x, s.Variable) and x.name == loop.name for x in walk(part))
        for part in (places, loop.body)
    )
    return 2 * indices >= all_uses > 0


class Printer:
    """Writes a program as a Python module."""

    def __init__(self, tree: s.Program) -> None:
        self._tree = tree
        self._lines: list[str] = []
        self._depth = 0
        self._shifted: set[str] = set()
        # Variables of which elements are assigned.
        self._written = {
            root.name
            for each in walk([getattr(tree, block) for block in _BLOCKS] + tree.functions)
            if isinstance(each, s.Assignment) and isinstance(each.target, (s.Index, s.Projection))
            and isinstance(root := _root(each.target), s.Variable)
        }  # fmt: skip
        self._assigned = {
            x.name for each in walk([getattr(tree, block) for block in _BLOCKS] + tree.functions)
            if isinstance(each, s.Assignment)
            for x in walk(each.target) if isinstance(x, s.Variable)
        }  # fmt: skip
        # What a term is added to: None while the terms of a straight block are collected.
        self._collected: list[str] | None = None
        # Whether arrays of variables are made, for which NumPy itself has no function.
        self._of_variables = self._is_data = False

    # --- expressions ---

    def text(self, e: s.Expression, precedence: int = LOOSEST) -> str:
        """The text of an expression, in brackets if it binds less than it must."""
        text, found = self._expression(e)
        return f"({text})" if found < precedence else text

    def _expression(self, e: s.Expression) -> tuple[str, int]:
        match e:
            case s.Number():
                value = e.value
                return repr(value), ATOM
            case s.Variable():
                if e.name in self._shifted:
                    return self._whole(e, 0)
                return renamed(e.name), ATOM
            case s.Call():
                return self._call(e)
            case s.Unary(operator="'"):
                inner = self.text(e.operand, ATOM)
                return (f"{inner}.T" if e.operand.type in MATRICES else inner), ATOM
            case s.Unary(operator="!"):
                return f"not {self.text(e.operand, NOT)}", NOT
            case s.Unary():
                return f"{e.operator}{self.text(e.operand, SIGN)}", SIGN
            case s.Binary():
                return self._binary(e)
            case s.Conditional():
                parts = (self.text(x, OR) for x in (e.yes, e.condition, e.no))
                return "{} if {} else {}".format(*parts), LOOSEST
            case s.Index():
                return self._index(e), ATOM
            case s.Projection():
                return f"{self.text(e.base, ATOM)}[{e.number - 1}]", ATOM
            case s.ArrayExpression() | s.RowVectorExpression():
                self._of_variables |= not e.data
                return f"np.array([{', '.join(map(self.text, e.elements))}])", ATOM
            case s.TupleExpression():
                return f"({', '.join(map(self.text, e.elements))})", ATOM
        raise self._refusal(e, "this expression")

    def _refusal(self, node: s.Node, what: str) -> StanError:
        return StanError(f"to_python cannot write {what}", node.at, self._tree.sources)

    def _whole(self, e: s.Expression, offset: int) -> tuple[str, int]:
        """A whole number plus an offset, with its constants added up."""
        terms: list[tuple[int, str]] = []

        def collect(x: s.Expression, sign: int) -> int:
            if isinstance(x, s.Number):
                return sign * int(x.value.real)
            if isinstance(x, s.Variable) and x.name in self._shifted:
                terms.append((sign, renamed(x.name)))
                return sign
            if isinstance(x, s.Binary) and x.operator in "+-" and x.type == types.INT:
                right = sign if x.operator == "+" else -sign
                return collect(x.left, sign) + collect(x.right, right)
            terms.append((sign, self.text(x, SUM if sign > 0 else PRODUCT)))
            return 0

        constant = offset + collect(e, 1)
        terms.sort(key=lambda term: -term[0])
        text = ""
        for sign, term in terms:
            text += (
                (" + " if sign > 0 else " - ") + term if text else ("" if sign > 0 else "-") + term
            )
        if constant or not text:
            operator = (" + " if constant > 0 else " - ") if text else "-" * (constant < 0)
            text += f"{operator}{abs(constant)}"
            return text, SUM if terms or constant < 0 else ATOM
        return text, ATOM if len(terms) == 1 and text.isidentifier() else SUM

    def place(self, e: s.Expression) -> str:
        """An index, counted from 0."""
        if e.type == types.INT:
            return self._whole(e, -1)[0]
        if isinstance(e, s.ArrayExpression):
            return f"[{', '.join(map(self.place, e.elements))}]"
        return f"{self.text(e, SUM)} - 1"

    def _index(self, e: s.Index) -> str:
        parts, arrays = [], 0
        for index in e.indices:
            if isinstance(index, s.Range):
                lower = "" if index.lower is None else self.place(index.lower)
                upper = "" if index.upper is None else self.text(index.upper)
                parts.append(f"{'' if lower == '0' else lower}:{upper}")
            else:
                arrays += index.type != types.INT
                parts.append(self.place(index))
        while len(parts) > 1 and parts[-1] == ":":
            parts.pop()
        base = self.text(e.base, ATOM)
        if arrays > 1:
            if any(":" in part for part in parts):
                raise self._refusal(e, "several arrays of indices with ranges")
            return f"{base}[np.ix_({', '.join(parts)})]"
        return f"{base}[{', '.join(parts)}]"

    def _binary(self, e: s.Binary) -> tuple[str, int]:
        left, right = e.left.type, e.right.type
        whole = left == types.INT and right == types.INT
        if whole and e.operator in "+-":
            return self._whole(e, 0)
        if whole and e.operator in ("/", "%/%"):
            return f"int({self.text(e.left, PRODUCT)} / {self.text(e.right, POWER)})", ATOM
        if whole and e.operator == "%":
            return f"np.fmod({self.text(e.left)}, {self.text(e.right)})", ATOM
        if e.operator == "\\":
            return f"np.linalg.solve({self.text(e.left)}, {self.text(e.right)})", ATOM
        if e.operator == "/" and right in MATRICES:
            return f"vm.mdivide_right({self.text(e.left)}, {self.text(e.right)})", ATOM
        operator, precedence = _OPERATORS[e.operator]
        if e.operator == "*" and not (left in SCALARS or right in SCALARS):
            if left in VECTORS and right in ROWS:
                return f"np.outer({self.text(e.left)}, {self.text(e.right)})", ATOM
            operator = "@"
        # Sums and products group from the left, powers from the right; comparisons do not chain.
        low, high = precedence, precedence + 1
        if precedence in (POWER, COMPARED):
            low, high = high, high if precedence == COMPARED else SIGN
        text = f"{self.text(e.left, low)} {operator} {self.text(e.right, high)}"
        return (
            text.replace(" ** ", "**") if " " not in text.replace(" ** ", "") else text
        ), precedence

    def _call(self, e: s.Call) -> tuple[str, int]:
        name, kinds = e.name, [each.type for each in e.arguments]
        if name == "target":
            return "sum(terms)", ATOM
        if e.definition is not None:
            extra = {"_rng": ["rng"], "_lp": ["terms"]}
            more = next((x for ending, x in extra.items() if name.endswith(ending)), [])
            return (
                f"{_function_name(name)}({', '.join([*map(self.text, e.arguments), *more])})",
                ATOM,
            )
        if not kinds and name in _CONSTANTS:
            text = _CONSTANTS[name]
            return text, SIGN if text.startswith("-") else ATOM
        if found := self._special(name, e, kinds):
            return found
        if name in _TEXTS:
            return self._filled(*_TEXTS[name], e.arguments)
        if name in _NUMPY:
            return f"np.{_NUMPY[name]}({', '.join(map(self.text, e.arguments))})", ATOM
        arguments = [*map(self.text, e.arguments), *["rng=rng"] * name.endswith("_rng")]
        plain = name.replace("_lupdf", "_lpdf").replace("_lupmf", "_lpmf")
        if name in functions._BY_TYPES or name in functions._FUNCTIONS or not hasattr(vm, plain):
            raise self._refusal(e, f"the function {name}")
        return f"vm.{plain}({', '.join(arguments)})", ATOM

    def _filled(
        self, template: str, precedence: int, arguments: Sequence[s.Expression]
    ) -> tuple[str, int]:
        values = {"all": ", ".join(map(self.text, arguments))}
        values["rest3"] = "".join(f", {self.text(each)}" for each in arguments[3:])
        for i, each in enumerate(arguments):
            values[f"f{i}"] = self.text(each)
            if each.type == types.INT:
                values[f"m{i}"] = self.place(each)
        operands = [self.text(each, min(precedence + 1, ATOM)) for each in arguments]
        return template.format(*operands, **values), precedence

    def _special(self, name: str, e: s.Call, kinds: Sequence[Type]) -> tuple[str, int] | None:
        """Functions whose text depends on the types of their arguments."""
        if name in ("to_vector", "to_row_vector", "to_array_1d"):
            inner = self.text(e.arguments[0], ATOM)
            if kinds[0] in MATRICES:
                return f"{inner}.T.reshape(-1)", ATOM
            if isinstance(kinds[0], Array) and kinds[0].element not in SCALARS:
                return f"{inner}.reshape(-1)", ATOM
            return inner, ATOM
        if name == "to_matrix" and len(kinds) == 1 and kinds[0] not in VECTORS | ROWS:
            return self.text(e.arguments[0], ATOM), ATOM
        if name == "rep_matrix" and kinds[0] in ROWS:
            return f"vm.rep_matrix({', '.join(map(self.text, e.arguments))}).T", ATOM
        if name == "tail":
            x, n = (self.text(each, ATOM) for each in e.arguments)
            return f"{x}[len({x}) - {n}:]", ATOM
        if name in ("max", "min"):
            function = name if len(kinds) == 2 else f"np.{name}"
            return f"{function}({', '.join(map(self.text, e.arguments))})", ATOM
        if name == "log_sum_exp":
            function = "np.logaddexp" if len(kinds) == 2 else "vm.log_sum_exp"
            return f"{function}({', '.join(map(self.text, e.arguments))})", ATOM
        if name == "segment":
            start, count = e.arguments[1:]
            end = s.Binary(e.at, "+", start, count)
            end.type = types.INT
            return f"{self.text(e.arguments[0], ATOM)}[{self.place(start)}:{self.place(end)}]", ATOM
        if (
            name in ("rep_vector", "rep_row_vector", "rep_array", "rep_matrix")
            and e.arguments[0].data
        ):
            value, *sizes = map(self.text, e.arguments)
            shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
            if value in ("0", "0.0"):
                return f"np.zeros({shape}{', int' * (innermost(e.type) == types.INT)})", ATOM
            if kinds[0] in SCALARS:
                is_real = innermost(e.type) != types.INT and value.isdigit()
                return f"np.full({shape}, {value}{'.0' * is_real})", ATOM
        if name in ("rep_vector", "rep_row_vector", "rep_matrix") and kinds[0] not in ROWS:
            return f"vm.{name}({', '.join(map(self.text, e.arguments))})", ATOM
        if name == "dims":
            return f"{self.text(e.arguments[0], ATOM)}.shape", ATOM
        if name in ("sub_col", "sub_row"):
            x, i, j, n = e.arguments
            start, other = (i, j) if name == "sub_col" else (j, i)
            end = s.Binary(e.at, "+", start, n)
            end.type = types.INT
            part, place = f"{self.place(start)}:{self.place(end)}", self.place(other)
            inside = f"{part}, {place}" if name == "sub_col" else f"{place}, {part}"
            return f"{self.text(x, ATOM)}[{inside}]", ATOM
        if name in ("append_col", "append_row") and any(kind in MATRICES for kind in kinds):
            function = "column_stack" if name == "append_col" else "vstack"
            return f"np.{function}([{', '.join(map(self.text, e.arguments))}])", ATOM
        if name == "append_col" and all(kind in VECTORS for kind in kinds):
            return f"np.column_stack([{', '.join(map(self.text, e.arguments))}])", ATOM
        if name == "append_col" and all(kind in ROWS | SCALARS for kind in kinds):
            parts = [
                f"[{self.text(x)}]" if x.type in SCALARS else self.text(x) for x in e.arguments
            ]
            return f"np.concatenate([{', '.join(parts)}])", ATOM
        if name == "append_row" and all(kind in VECTORS | SCALARS for kind in kinds):
            parts = [
                f"[{self.text(x)}]" if x.type in SCALARS else self.text(x) for x in e.arguments
            ]
            return f"np.concatenate([{', '.join(parts)}])", ATOM
        if name.startswith("gp_") and not (len(kinds) > 1 and isinstance(kinds[1], Array)):
            return f"vm.{name}({', '.join(map(self.text, e.arguments))})", ATOM
        return None

    # --- statements ---

    def line(self, text: str = "") -> None:
        """Write a line, or several if it is long."""
        self._lines += wrapped("    " * self._depth + text) if text else [""]

    def body(self, statements: Sequence[s.Statement]) -> None:
        """Write statements one level deeper."""
        self._depth += 1
        before = len(self._lines)
        for each in statements:
            self.statement(each)
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def statement(self, statement: s.Statement) -> None:
        match statement:
            case s.Declaration():
                self._declaration(statement)
            case s.Assignment():
                self._assignment(statement)
            case s.Distribution() | s.TargetIncrement():
                self._term(self._density(statement))
            case s.CallStatement():
                self.line(self.text(statement.call))
            case s.Return():
                value = "" if statement.value is None else f" {self.text(statement.value)}"
                self.line(f"return{value}")
            case s.Break():
                self.line("break")
            case s.Continue():
                self.line("continue")
            case s.Message():
                self._message(statement)
            case s.If():
                self._if(statement, "if")
            case s.While():
                self.line(f"while {self.text(statement.condition)}:")
                self.body(statement.body)
            case s.For():
                self._for(statement)
            case s.ForEach():
                values = self.text(statement.values, ATOM)
                if statement.values.type in MATRICES:
                    values = f"{values}.T.reshape(-1)"
                self.line(f"for {renamed(statement.name)} in {values}:")
                self.body(statement.body)
            case s.Block() | s.Profile():
                for each in statement.body:
                    self.statement(each)
            case _:
                raise self._refusal(statement, "this statement")

    def _declaration(self, d: s.Declaration) -> None:
        kind, name = d.declared.unsized, renamed(d.name)
        if d.value is not None:
            value = self.text(d.value)
            is_name = isinstance(d.value, s.Variable) and kind not in SCALARS
            self.line(
                f"{name} = {f'np.copy({value})' if is_name and d.name in self._written else value}"
            )
        elif d.name in self._written or d.name not in self._assigned:
            if d.declared.name == "tuple" or innermost(kind) in (
                types.COMPLEX,
                types.COMPLEX_VECTOR,
            ):
                raise self._refusal(d, f"the declaration of {d.name}")
            shape = self._shape(d.declared)
            self._of_variables |= innermost(kind) != types.INT and not self._is_data
            dtype = ", int" if innermost(kind) == types.INT else ""
            self.line(f"{name} = np.zeros({shape}{dtype})")

    def _shape(self, declared: s.SizedType) -> str:
        sizes = [*declared.dimensions, *declared.sizes]
        if innermost(declared.unsized) in MATRICES and len(declared.sizes) == 1:
            sizes.append(declared.sizes[0])
        texts = [*map(self.text, sizes)]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def _assignment(self, a: s.Assignment) -> None:
        target = self.text(a.target)
        if a.operator:
            combined = s.Binary(a.at, a.operator, a.target, a.value)
            combined.type = a.target.type
            if a.target.type in SCALARS and a.operator in "+-*/":
                self.line(f"{target} {a.operator}= {self.text(a.value)}")
            else:
                self.line(f"{target} = {self.text(combined)}")
            return
        value = self.text(a.value)
        if (
            isinstance(a.target, s.Variable)
            and a.target.name in self._written
            and isinstance(a.value, s.Variable)
        ):
            value = f"np.copy({value})"
        self.line(f"{target} = {value}")

    def _density(self, statement: s.Distribution | s.TargetIncrement) -> str:
        if isinstance(statement, s.TargetIncrement):
            return self.text(statement.value)
        arguments = ", ".join(map(self.text, [statement.value, *statement.arguments]))
        name = statement.function
        if statement.definition is not None:
            function = _function_name(statement.definition.name)
        elif not hasattr(vm, name):
            raise self._refusal(statement, f"the density {name}")
        else:
            function = f"vm.{name}"
        if statement.lower is not None or statement.upper is not None:
            sides = {"lower": statement.lower, "upper": statement.upper}
            ends = [f", {side}={self.text(end)}" for side, end in sides.items() if end is not None]
            function = f"vm.truncated({function}{''.join(ends)})"
        return f"{function}({arguments})"

    def _term(self, text: str) -> None:
        if self._collected is None:
            self.line(f"terms.append({text})")
        else:
            self._collected.append(text)

    def _message(self, m: s.Message) -> None:
        parts = [
            repr(x)[1:-1].replace("{", "{{").replace("}", "}}")
            if isinstance(x, str)
            else f"{{{self.text(x)}}}"
            for x in m.items
        ]
        is_plain = all(isinstance(x, str) for x in m.items)
        text = f'{"" if is_plain else "f"}"{"".join(parts)}"'
        self.line(f"print({text})" if m.kind == "print" else f"raise vm.DomainError({text})")

    def _if(self, statement: s.If, word: str) -> None:
        self.line(f"{word} {self.text(statement.condition)}:")
        self.body(statement.body)
        if len(statement.otherwise) == 1 and isinstance(statement.otherwise[0], s.If):
            self._if(statement.otherwise[0], "elif")
        elif statement.otherwise:
            self.line("else:")
            self.body(statement.otherwise)

    def _for(self, loop: s.For) -> None:
        shifted = _is_shifted(loop)
        first = self._whole(loop.lower, -1 if shifted else 0)[0]
        end = self._whole(loop.upper, 0 if shifted else 1)[0]
        self.line(
            f"for {renamed(loop.name)} in range({'' if first == '0' else f'{first}, '}{end}):"
        )
        if shifted:
            self._shifted.add(loop.name)
        self.body(loop.body)
        self._shifted.discard(loop.name)

    # --- blocks ---

    def module(self) -> str:
        """The text of the module."""
        tree = self._tree
        for definition in tree.functions:
            if definition.body is not None:
                self._function(definition)
        self.line("def make_model(data):")
        self._depth = 1
        self.line('"""The model with data, a dict of the names of the program."""')
        start = len(self._lines)
        self._is_data = True
        for each in tree.transformed_data:
            self.statement(each)
        self._is_data = False
        self.line()
        self._part("log_density", tree.model)
        for block in ("transformed_parameters", "generated_quantities"):
            if any(isinstance(each, s.Declaration) for each in getattr(tree, block)):
                self._part(block, getattr(tree, block))
        self._model()
        self._lines[start:start] = self._data("\n".join(self._lines[start:]))
        text = "\n".join(self._lines)
        imports = ["import varmat as vm"] if "vm." in text else []
        if "np." in text:
            module = "varmat.numpy" if self._of_variables else "numpy"
            imports.insert(0, f"import {module} as np")
        imports.sort(key=lambda each: each.split()[1])
        name = tree.at.file.rsplit("/", 1)[-1]
        title = name if name.endswith(".stan") else "a Stan program"
        return (
            f'"""The model of {title}, in NumPy and varmat."""\n\n'
            + "\n".join(imports)
            + "\n\n\n"
            + text
            + "\n"
        )

    def _data(self, text: str) -> list[str]:
        """The lines that take from the data what is in the text."""
        lines = []
        for d in self._tree.data:
            name, value = renamed(d.name), f'data["{d.name}"]'
            if re.search(rf"\b{name}\b", text):
                is_scalar = d.declared.unsized in SCALARS
                lines.append(f"    {name} = {value if is_scalar else f'np.asarray({value})'}")
        return lines

    def _function(self, definition: s.FunctionDefinition) -> None:
        assert definition.body is not None
        extra = {"_rng": ["rng"], "_lp": ["terms"]}
        more = next((x for ending, x in extra.items() if definition.name.endswith(ending)), [])
        names = [*(renamed(each.name) for each in definition.arguments), *more]
        self.line(f"def {_function_name(definition.name)}({', '.join(names)}):")
        self._collected = None
        self.body(definition.body)
        self.line()
        self.line()

    def _known(self) -> list[str]:
        declared = [d.name for d in self._tree.parameters]
        return declared + _declared(self._tree.transformed_parameters)

    def _part(self, title: str, statements: Sequence[s.Statement]) -> None:
        """Write the function of a block."""
        known = (
            self._known()
            if title != "transformed_parameters"
            else [d.name for d in self._tree.parameters]
        )
        used = names_in(statements)
        own = [name for name in _declared(statements) if title != "log_density"]
        arguments = [renamed(name) for name in known if name in used and name not in own]
        if any(isinstance(x, s.Call) and x.name.endswith("_rng") for x in walk(statements)):
            arguments.append("rng")
        self.line(f"def {title}({', '.join(arguments)}):")
        self._depth += 1
        if title == "log_density":
            self._terms(statements)
        else:
            for each in statements:
                self.statement(each)
            self.line("return {" + ", ".join(f'"{renamed(n)}": {renamed(n)}' for n in own) + "}")
        self._depth -= 1
        self.line()

    def _terms(self, statements: Sequence[s.Statement]) -> None:
        """Write the statements of the model, with one return of all terms if that is possible."""
        count = next((i for i in range(len(statements), 0, -1) if _is_straight(statements[:i])), 0)
        first, rest = statements[:count], statements[count:]
        self._collected = []
        for each in first:
            self.statement(each)
        terms, self._collected = self._collected, None
        if len(terms) == 1 and not rest:
            self.line(f"return {terms[0]}")
            return
        opening, closing = ("terms = [", "]") if rest else ("return (", ")")
        if terms:
            self.line(opening)
            self._depth += 1
            for term in terms:
                self.line(f"{term},")
            self._depth -= 1
            self.line(closing)
        else:
            self.line(opening + closing)
        for each in rest:
            self.statement(each)
        if rest:
            self.line("return terms")

    def _model(self) -> None:
        self.line("return vm.Model(")
        self._depth += 1
        self.line("log_density,")
        for d in self._tree.parameters:
            self.line(f"{renamed(d.name)}={self._parameter(d)},")
        for block in ("transformed_parameters", "generated_quantities"):
            if any(isinstance(each, s.Declaration) for each in getattr(self._tree, block)):
                self.line(f"{block}={block},")
        self._depth -= 1
        self.line(")")
        self._depth = 0

    def _parameter(self, d: s.Declaration) -> str:
        declared = d.declared
        sizes = [*map(self.text, declared.sizes)]
        dimensions = [*map(self.text, declared.dimensions)]
        if declared.name in _PARAMETERS:
            return f"vm.{_PARAMETERS[declared.name]}({', '.join(sizes + dimensions)})"
        if declared.name == "row_stochastic_matrix":
            return f"vm.simplex({', '.join([sizes[1], *dimensions, sizes[0]])})"
        if declared.name not in ("real", "vector", "row_vector", "matrix"):
            raise self._refusal(d, f"a parameter of type {declared.name}")
        shape = dimensions + sizes
        lower, upper = map(self._bound, (declared.lower, declared.upper))
        if lower is not None and upper is not None:
            function, ends = "interval", [lower, upper]
        elif lower is not None:
            function, ends = ("positive", []) if lower in ("0", "0.0") else ("lower", [lower])
        elif upper is not None:
            function, ends = "upper", [upper]
        elif declared.offset is not None or declared.multiplier is not None:
            pair = self._bound(declared.offset) or "0", self._bound(declared.multiplier) or "1"
            function, ends = "offset_multiplier", [*pair]
        else:
            function, ends = "real", []
        return f"vm.{function}({', '.join(ends + shape)})"

    def _bound(self, e: s.Expression | None) -> str | None:
        if e is None:
            return None
        names = [renamed(d.name) for d in self._tree.parameters if d.name in names_in(e)]
        return f"lambda {', '.join(names)}: {self.text(e)}" if names else self.text(e)


_BLOCKS = ("transformed_data", "transformed_parameters", "model", "generated_quantities")


def _function_name(name: str) -> str:
    return renamed(name)


def _declared(statements: Sequence[s.Statement]) -> list[str]:
    return [each.name for each in statements if isinstance(each, s.Declaration)]


def _is_straight(statements: Sequence[s.Statement]) -> bool:
    """Whether terms may be collected in one place: none is in a loop or branch, and nothing that a
    term reads changes after it.
    """
    read: set[str] = set()
    for each in statements:
        if isinstance(each, (s.Block, s.Profile)):
            return False
        if isinstance(each, (s.Distribution, s.TargetIncrement)):
            read |= names_in(each)
            continue
        inside = [*walk(each)]
        if any(isinstance(x, (s.Distribution, s.TargetIncrement)) for x in inside) or any(
            isinstance(x, s.Call) and (x.name == "target" or x.name.endswith("_lp")) for x in inside
        ):
            return False
        changed = {_root(x.target).name for x in inside if isinstance(x, s.Assignment)
                   and isinstance(_root(x.target), s.Variable)}  # fmt: skip
        if changed & read:
            return False
    return not any(isinstance(x, s.Call) and x.name == "target" for x in walk(statements))


def wrapped(line: str) -> list[str]:
    """A line, or its outermost brackets on several lines if it is too long."""
    if len(line) <= _WIDTH:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    for start, character in enumerate(line):
        if character in "([":
            end, is_call = _closing(line, start), (line[:start] or " ")[-1].isidentifier()
            if is_call and character == "[":  # a comma would change an index
                continue
            if end >= len(line.rstrip(":,")) - 1 and end - start > 20:
                parts = _at_commas(line[start + 1 : end])
                comma = "," if is_call or len(parts) > 1 or character == "[" else ""
                inner = [f"{indent}    {part}{comma}" for part in parts]
                return [
                    line[: start + 1],
                    *(each for part in inner for each in wrapped(part)),
                    indent + line[end:],
                ]
    name, equals, value = line.partition(" = ")
    parts = _at_sums(value)
    if equals and len(parts) > 1 and name.strip().replace("_", "").isalnum():
        return [f"{name} = (", *(f"{indent}    {part}" for part in parts), f"{indent})"]
    return [line]


def _at_sums(text: str) -> list[str]:
    """The terms of a sum, each with its sign."""
    parts, start, i = [], 0, 0
    while i < len(text):
        if text[i] in "([{":
            i = _closing(text, i)
        elif text[i : i + 3] in (" + ", " - "):
            parts.append(text[start:i])
            start = i + 1
        i += 1
    return [*parts, text[start:]]


def _closing(text: str, start: int) -> int:
    depth, quote = 0, ""
    for i in range(start, len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c in "([{") - (c in ")]}")
            if not depth:
                return i
    return len(text)


def _at_commas(text: str) -> list[str]:
    parts, start, i = [], 0, 0
    while i < len(text):
        if text[i] in "([{":
            i = _closing(text, i)
        elif text[i] == ",":
            parts.append(text[start:i].strip())
            start = i + 1
        i += 1
    return [*parts, text[start:].strip()]


def to_python(tree: s.Program) -> str:
    """A checked program as the text of a Python module with a function `make_model(data)`."""
    return Printer(tree).module()
