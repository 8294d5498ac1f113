"""Expressions of Stan programs as text of Python.

Places count from 0 in the result: an index loses 1, and a loop whose variable is mostly an index
starts one earlier, so that most additions of 1 disappear.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence

import varmat as vm
from varmat.stan import functions, types
from varmat.stan import syntax as s
from varmat.stan.errors import StanError
from varmat.stan.types import ArrayType, Type
from varmat.stan.values import MATRICES, ROWS, SCALARS, VECTORS, innermost

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
_CONDITIONS = {name for name, (_, result) in _OPERATORS.items() if result in (OR, AND, COMPARED)}
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
_KINDS = ("vector", "row_vector", "array")
_TEXTS = {
    "num_elements": ("np.size({f0})", ATOM), "inv": ("1 / {0}", PRODUCT),
    "dot_product": ("{0} @ {1}", PRODUCT), "pow": ("{0} ** {1}", POWER),
    "head": ("{0}[:{f1}]", ATOM), "col": ("{0}[:, {m1}]", ATOM), "row": ("{0}[{m1}]", ATOM),
    "append_array": ("np.concatenate([{f0}, {f1}])", ATOM),
    "reduce_sum": ("{f0}({f1}, 1, len({f1}){rest3})", ATOM),
    "transpose": ("{0}.T", ATOM), "cov_exp_quad": ("vm.gp_exp_quad_cov({all})", ATOM),
    **{f"zeros_{kind}": ("np.zeros({f0})", ATOM) for kind in _KINDS},
    **{f"ones_{kind}": ("np.ones({f0})", ATOM) for kind in _KINDS},
    **{f"one_hot_{kind}": ("np.eye({f0})[{m1}]", ATOM) for kind in _KINDS},
    "zeros_int_array": ("np.zeros({f0}, int)", ATOM),
    "ones_int_array": ("np.ones({f0}, int)", ATOM),
    "one_hot_int_array": ("np.eye({f0}, dtype=int)[{m1}]", ATOM),
    "identity_matrix": ("np.eye({f0})", ATOM),
    "uniform_simplex": ("np.full({f0}, 1 / {0})", ATOM),
    "is_nan": ("np.isnan({f0})", ATOM), "is_inf": ("np.isinf({f0})", ATOM),
}  # fmt: skip
_TEXTS["reduce_sum_static"] = _TEXTS["reduce_sum"]
_CONSTANTS = {
    "pi": "np.pi", "e": "np.e", "sqrt2": "np.sqrt(2)", "log2": "np.log(2)", "log10": "np.log(10)",
    "not_a_number": "np.nan", "positive_infinity": "np.inf", "negative_infinity": "-np.inf",
    "machine_precision": "np.finfo(float).eps",
}  # fmt: skip


def renamed(name: str) -> str:
    """Convert a name of the program to one of Python."""
    name = name.rstrip(s.PRIME)
    return f"{name}_" if keyword.iskeyword(name) or name in _RESERVED else name


def added_arguments(name: str) -> list[str]:
    """Return the arguments that a function of the program has only in Python."""
    return ["rng"] * name.endswith("_rng") + ["terms"] * name.endswith("_lp")


def may_be_view(e: s.Expression) -> bool:
    """Tell whether the array of an expression may be a view of another one."""
    if isinstance(e, s.Call):
        return e.definition is not None or e.name not in _NUMPY or e.name == "diagonal"
    is_transposed = isinstance(e, s.Unary) and e.operator == "'"
    return is_transposed or isinstance(e, (s.VariableName, s.Indexed, s.Projection, s.Conditional))


class ExpressionWriter:
    """Writes expressions.

    Attributes
    ----------
    shifted : set of str
        Variables of loops that start one earlier than in the program.
    of_variables : bool
        Whether arrays of variables are made, for which NumPy itself has no function.
    """

    def __init__(self, sources: dict[str, list[str]]) -> None:
        self._sources = sources
        self.shifted: set[str] = set()
        self.of_variables = False

    def text(self, e: s.Expression, precedence: int = LOOSEST) -> str:
        """Write an expression, in brackets if it binds less than it must."""
        text, result = self._expression(e)
        return f"({text})" if result < precedence else text

    def condition(self, e: s.Expression, precedence: int = LOOSEST) -> str:
        """Write an expression used only as a condition."""
        if not (isinstance(e, s.Binary) and e.operator in _CONDITIONS):
            return self.text(e, precedence)
        text, result = self._binary(e)
        return f"({text})" if result < precedence else text

    def _expression(self, e: s.Expression) -> tuple[str, int]:
        match e:
            case s.Number():
                value = e.value
                return repr(value), ATOM
            case s.VariableName():
                if e.name in self.shifted:
                    return self._whole(e, 0)
                return renamed(e.name), ATOM
            case s.Call():
                return self._call(e)
            case s.Unary(operator="'"):
                inner = self.text(e.operand, ATOM)
                return (f"{inner}.T" if e.operand.type in MATRICES else inner), ATOM
            case s.Unary(operator="!"):
                return f"not {self.condition(e.operand, NOT)}", NOT
            case s.Unary():
                return f"{e.operator}{self.text(e.operand, SIGN)}", SIGN
            case s.Binary() if e.operator in _CONDITIONS:
                # A number, because NumPy's truth values do not add up.
                if _OPERATORS[e.operator][1] != COMPARED:
                    return f"int(bool({self.condition(e)}))", ATOM
                if e.data:
                    return f"int({self.condition(e)})", ATOM
                return f"1 * {self.condition(e, SIGN)}", PRODUCT
            case s.Binary():
                return self._binary(e)
            case s.Conditional():
                yes, no = self.text(e.yes, OR), self.text(e.no, OR)
                return f"{yes} if {self.condition(e.condition, OR)} else {no}", LOOSEST
            case s.Indexed():
                return self._index(e), ATOM
            case s.Projection():
                return f"{self.text(e.base, ATOM)}[{e.number - 1}]", ATOM
            case s.ArrayExpression() | s.RowVectorExpression():
                self.of_variables |= not e.data
                return f"np.array([{', '.join(map(self.text, e.elements))}])", ATOM
            case s.TupleExpression():
                return f"({', '.join(map(self.text, e.elements))})", ATOM
        raise self.refusal(e, "this expression")

    def refusal(self, node: s.SyntaxNode, what: str) -> StanError:
        return StanError(f"to_python cannot write {what}", node.at, self._sources)

    def _whole(self, e: s.Expression, offset: int) -> tuple[str, int]:
        """Write an integer expression plus an offset, with its constants added up."""
        terms: list[tuple[int, str]] = []

        def collect(x: s.Expression, sign: int) -> int:
            if isinstance(x, s.Number):
                return sign * int(x.value.real)
            if isinstance(x, s.VariableName) and x.name in self.shifted:
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
        """Write an index, counted from 0."""
        if e.type == types.INT:
            return self._whole(e, -1)[0]
        if isinstance(e, s.ArrayExpression):
            return f"[{', '.join(map(self.place, e.elements))}]"
        return f"{self.text(e, SUM)} - 1"

    def _index(self, e: s.Indexed) -> str:
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
        if not arrays:
            return f"{base}[{', '.join(parts)}]"
        # Numbers in front are read first, because NumPy puts axes of separate arrays in front.
        kinds = ["range" if isinstance(x, s.Range) else x.type for x in e.indices[: len(parts)]]
        first = next(i for i, kind in enumerate(kinds) if kind != types.INT)
        if first:
            base, parts, kinds = f"{base}[{', '.join(parts[:first])}]", parts[first:], kinds[first:]
        if arrays > 1:
            if len(parts) > arrays:
                raise self.refusal(e, "several arrays of indices with ranges or numbers")
            return f"{base}[np.ix_({', '.join(parts)})]"
        if kinds[0] == "range" and "range" in kinds[1:] and types.INT in kinds:
            raise self.refusal(e, "an array of indices between ranges, with numbers")
        return f"{base}[{', '.join(parts)}]"

    def _binary(self, e: s.Binary) -> tuple[str, int]:
        left, right = e.left.type, e.right.type
        both_integers = left == types.INT and right == types.INT
        if both_integers and e.operator in "+-":
            return self._whole(e, 0)
        if both_integers and e.operator in ("/", "%/%"):
            return f"int({self.text(e.left, PRODUCT)} / {self.text(e.right, POWER)})", ATOM
        if both_integers and e.operator == "%":
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
        as_operand = self.condition if precedence in (OR, AND) else self.text
        text = f"{operator} {as_operand(e.right, high)}"
        first = e.left
        while e.operator in "+-" and isinstance(first, s.Binary) and first.operator in "+-":
            if first.type == types.INT:
                break
            text = f"{first.operator} {self.text(first.right, high)} {text}"
            first = first.left
        if both_integers and precedence == POWER and not isinstance(e.right, s.Number):
            text = f"float({self.text(first)}) {text}"
        else:
            text = f"{as_operand(first, low)} {text}"
        return (
            text.replace(" ** ", "**") if " " not in text.replace(" ** ", "") else text
        ), precedence

    def _call(self, e: s.Call) -> tuple[str, int]:
        name, kinds = e.name, [argument.type for argument in e.arguments]
        if name == "target":
            return "sum(map(np.sum, terms))", ATOM
        if e.definition is not None:
            name = e.definition.name  # of a call up to a constant, too
            arguments = [*map(self.text, e.arguments), *added_arguments(name)]
            return f"{renamed(name)}({', '.join(arguments)})", ATOM
        if not kinds and name in _CONSTANTS:
            text = _CONSTANTS[name]
            return text, SIGN if text.startswith("-") else ATOM
        for special in (self._converted, self._read, self._joined):
            if result := special(name, e, kinds):
                return result, ATOM
        if name in _TEXTS:
            return self._filled(*_TEXTS[name], e.arguments)
        if name in _NUMPY:
            return f"np.{_NUMPY[name]}({', '.join(map(self.text, e.arguments))})", ATOM
        arguments = [*map(self.text, e.arguments), *["rng=rng"] * name.endswith("_rng")]
        plain = name.replace("_lupdf", "_lpdf").replace("_lupmf", "_lpmf")
        if name in functions.BY_TYPES or name in functions.FUNCTIONS or not hasattr(vm, plain):
            raise self.refusal(e, f"the function {name}")
        return f"vm.{plain}({', '.join(arguments)})", ATOM

    def _filled(
        self, template: str, precedence: int, arguments: Sequence[s.Expression]
    ) -> tuple[str, int]:
        values = {"all": ", ".join(map(self.text, arguments))}
        values["rest3"] = "".join(f", {self.text(x)}" for x in arguments[3:])
        for i, argument in enumerate(arguments):
            values[f"f{i}"] = self.text(argument)
            if argument.type == types.INT:
                values[f"m{i}"] = self.place(argument)
        operands = [self.text(x, min(precedence + 1, ATOM)) for x in arguments]
        return template.format(*operands, **values), precedence

    # Functions whose text depends on the types of their arguments.

    def _converted(self, name: str, e: s.Call, kinds: Sequence[Type]) -> str | None:
        """Write a conversion, a repetition or an extreme; return None for other functions."""
        arguments = ", ".join(map(self.text, e.arguments))
        if name in ("to_vector", "to_row_vector", "to_array_1d"):
            inner = self.text(e.arguments[0], ATOM)
            if kinds[0] in MATRICES:
                return f"{inner}.T.reshape(-1)"
            is_flat = not isinstance(kinds[0], ArrayType) or kinds[0].element in SCALARS
            return inner if is_flat else f"{inner}.reshape(-1)"
        if name == "to_matrix" and len(kinds) == 1 and kinds[0] not in VECTORS | ROWS:
            return self.text(e.arguments[0], ATOM)
        if name in ("max", "min"):
            return f"{name if len(kinds) == 2 else f'np.{name}'}({arguments})"
        if name == "log_sum_exp":
            return f"{'np.logaddexp' if len(kinds) == 2 else 'vm.log_sum_exp'}({arguments})"
        if name.startswith("gp_") and not (len(kinds) > 1 and isinstance(kinds[1], ArrayType)):
            return f"vm.{name}({arguments})"
        if name.startswith("linspaced_") and name != "linspaced_int_array":
            count, lower, upper = map(self.text, e.arguments)
            if count.isdigit() and count != "1":
                return f"np.linspace({lower}, {upper}, {count})"
            return f"np.linspace({upper}, {lower}, {count})[::-1]"  # one element is the upper end
        if name not in ("rep_vector", "rep_row_vector", "rep_matrix", "rep_array"):
            return None
        value, *sizes = map(self.text, e.arguments)
        if kinds[0] in ROWS | VECTORS and name == "rep_matrix":
            base = self.text(e.arguments[0], ATOM)
            if kinds[0] in ROWS:
                return f"np.tile({value}, ({sizes[0]}, 1))"
            return f"np.tile({base}[:, np.newaxis], (1, {sizes[0]}))"
        if e.arguments[0].data and kinds[0] in SCALARS:
            shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
            is_whole = innermost(e.type) == types.INT
            if value in ("0", "0.0"):
                return f"np.zeros({shape}{', int' * is_whole})"
            return f"np.full({shape}, {value}{'.0' * (value.isdigit() and not is_whole)})"
        if name == "rep_array":
            return None
        shape = sizes[0] if len(sizes) == 1 else f"({', '.join(sizes)})"
        return f"np.tile({value}, {shape})"

    def _read(self, name: str, e: s.Call, kinds: Sequence[Type]) -> str | None:
        """Write a function that reads a part; return None for other functions."""
        if name == "dims":
            return f"{self.text(e.arguments[0], ATOM)}.shape"
        if name in ("size", "rows", "cols"):
            (x,) = e.arguments
            if kinds[0] in MATRICES:
                text = f"{self.text(x, ATOM)}.shape[{int(name == 'cols')}]"
                return f"np.size({self.text(x)})" if name == "size" else text
            is_one = kinds[0] in {"size": SCALARS, "rows": ROWS, "cols": VECTORS}[name]
            return "1" if is_one else f"len({self.text(x)})"
        if name == "tail":
            arguments, n = (self.text(argument, ATOM) for argument in e.arguments)
            return f"{arguments}[len({arguments}) - {n}:]"
        if name not in ("segment", "sub_col", "sub_row"):
            return None
        x, *indices, count = e.arguments
        if name == "sub_row":
            indices.reverse()
        start, *other = indices
        end = s.Binary(e.at, "+", start, count)
        end.type = types.INT
        parts = [f"{self.place(start)}:{self.place(end)}", *map(self.place, other)]
        if name == "sub_row":
            parts.reverse()
        return f"{self.text(x, ATOM)}[{', '.join(parts)}]"

    def _joined(self, name: str, e: s.Call, kinds: Sequence[Type]) -> str | None:
        """Write a function that joins two values; return None for other functions."""
        if name not in ("append_row", "append_col"):
            return None
        along = VECTORS if name == "append_row" else ROWS
        if all(kind in along | SCALARS for kind in kinds):
            function = "concatenate"
        elif any(kind in MATRICES for kind in kinds) or name == "append_col":
            function = "vstack" if name == "append_row" else "column_stack"
        else:
            return None
        parts = []
        for x in e.arguments:
            text = f"[{self.text(x)}]" if x.type in SCALARS else self.text(x)
            self.of_variables |= text[0] == "[" and not x.data
            parts.append(text if text[0] != "[" or x.data else f"np.array({text})")
        return f"np.{function}([{', '.join(parts)}])"
