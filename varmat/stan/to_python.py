"""Stan programs as modules of NumPy and varmat, as a colleague would write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import varmat as vm
from varmat.stan import syntax as s
from varmat.stan import types
from varmat.stan.python_expressions import (
    ATOM,
    ExpressionWriter,
    added_arguments,
    may_be_view,
    renamed,
)
from varmat.stan.values import MATRICES, SCALARS, innermost

_PARAMETERS = {
    "simplex": "simplex", "unit_vector": "unit_vector", "ordered": "ordered",
    "positive_ordered": "positive_ordered", "sum_to_zero_vector": "sum_to_zero",
    "corr_matrix": "corr_matrix", "cov_matrix": "cov_matrix",
    "cholesky_factor_corr": "cholesky_corr", "cholesky_factor_cov": "cholesky_cov",
}  # fmt: skip


def _is_shifted(loop: s.For) -> bool:
    """Tell whether the variable of a loop is an index more often than a number."""
    positions: list[object] = []
    for node in s.walk(loop.body):
        if isinstance(node, s.Indexed):
            positions += node.indices
        elif isinstance(node, s.Call) and node.name in ("col", "row", "segment"):
            positions += node.arguments[1:2]
    indices, all_uses = (
        sum(isinstance(x, s.VariableName) and x.name == loop.name for x in s.walk(part))
        for part in (positions, loop.body)
    )
    return 2 * indices >= all_uses > 0


def _has_jacobian(declared_type: s.SizedType) -> bool:
    """Tell whether the transform to a type has a Jacobian that counts."""
    is_free = declared_type.name in ("real", "vector", "row_vector", "matrix", "tuple")
    limits = (declared_type.lower, declared_type.upper, declared_type.multiplier)
    return not is_free or any(limits) or any(map(_has_jacobian, declared_type.elements))


class Printer(ExpressionWriter):
    """Writes a program as a Python module."""

    def __init__(self, tree: s.ProgramTree) -> None:
        super().__init__(tree.sources)
        self._tree = tree
        self._lines: list[str] = []
        self._depth = 0
        # Variables whose elements are assigned.
        self._written = {
            s.root(node.target)
            for node in s.walk([getattr(tree, block) for block in _BLOCKS] + tree.functions)
            if isinstance(node, s.Assignment) and isinstance(node.target, (s.Indexed, s.Projection))
        }
        self._assigned = {
            x.name for node in s.walk([getattr(tree, block) for block in _BLOCKS] + tree.functions)
            if isinstance(node, s.Assignment)
            for x in s.walk(node.target) if isinstance(x, s.VariableName)
        }  # fmt: skip
        lists: list[Any] = [*(getattr(tree, block) for block in _BLOCKS)]
        lists += [part for node in s.walk([lists, tree.functions]) for part in s.parts(node)]
        # Declarations whose variables may be read before something is assigned to them.
        self._unset = {
            id(x)
            for part in lists if isinstance(part, list)
            for i, x in enumerate(part) if isinstance(x, s.Declaration)
            if _is_assigned(x.name, part[i + 1 :]) is False
        }  # fmt: skip
        # The sum to which a term is added: None while the terms of a straight block are collected.
        self._collected: list[str] | None = None
        self._is_data = False

    # --- statements ---

    def line(self, text: str = "") -> None:
        """Write a line, or several if it is long."""
        self._lines += wrapped("    " * self._depth + text) if text else [""]

    def body(self, statements: Sequence[s.Statement]) -> None:
        """Write statements one level deeper."""
        self._depth += 1
        before = len(self._lines)
        for statement in statements:
            self.statement(statement)
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def statement(self, statement: s.Statement) -> None:
        match statement:
            case s.Declaration():
                self._declaration(statement)
            case s.Assignment():
                self._assignment(statement)
            case s.Tilde() | s.TargetIncrement():
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
                self.line(f"while {self.condition(statement.condition)}:")
                self.body(statement.body)
            case s.For():
                self._for(statement)
            case s.ForEach():
                values = self.text(statement.values, ATOM)
                if statement.values.type in MATRICES:
                    values = f"{values}.reshape(-1)"
                self.line(f"for {renamed(statement.name)} in {values}:")
                self.body(statement.body)
            case s.Braces() | s.Profiled():
                for x in statement.body:
                    self.statement(x)
            case _:
                raise self.refusal(statement, "this statement")

    def _declaration(self, d: s.Declaration) -> None:
        kind, name = d.declared.unsized, renamed(d.name)
        if d.value is not None:
            self.line(f"{name} = {self._copied(d.name, kind, d.value)}")
        elif d.name in self._written or d.name not in self._assigned:
            if d.declared.name == "tuple" or innermost(kind) in (
                types.COMPLEX,
                types.COMPLEX_VECTOR,
            ):
                raise self.refusal(d, f"the declaration of {d.name}")
            shape = self._shape(d.declared)
            self.of_variables |= innermost(kind) != types.INT and not self._is_data
            dtype = ", int" if innermost(kind) == types.INT else ""
            self.line(f"{name} = np.zeros({shape}{dtype})")
        elif id(d) in self._unset and innermost(kind) in {*_REAL, types.INT}:
            shape = "" if kind in SCALARS else self._shape(d.declared)
            if innermost(kind) == types.INT:
                self.line(f"{name} = {f'np.zeros({shape}, int)' if shape else -(2**31)}")
            else:
                self.line(f"{name} = {f'np.full({shape}, np.nan)' if shape else 'np.nan'}")

    def _shape(self, declared_type: s.SizedType) -> str:
        sizes = [*declared_type.dimensions, *declared_type.sizes]
        if innermost(declared_type.unsized) in MATRICES and len(declared_type.sizes) == 1:
            sizes.append(declared_type.sizes[0])
        texts = [*map(self.text, sizes)]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def _assignment(self, a: s.Assignment) -> None:
        target = self.text(a.target)
        if a.operator:
            combined = s.Binary(a.at, a.operator, a.target, a.value)
            combined.type = a.target.type
            is_whole = a.target.type == types.INT
            if a.target.type in SCALARS and a.operator in ("+-*" if is_whole else "+-*/"):
                self.line(f"{target} {a.operator}= {self.text(a.value)}")
            else:
                self.line(f"{target} = {self.text(combined)}")
            return
        if isinstance(a.target, s.VariableName):
            value = self._copied(a.target.name, a.target.type, a.value)
        else:
            value = self.text(a.value)
        self.line(f"{target} = {value}")

    def _copied(self, name: str, kind: types.Type, value: s.Expression) -> str:
        """Write a value; as a copy if elements of it, or of what it is a view of, are assigned
        later.
        """
        if isinstance(value, s.TupleExpression):
            parts = (self._copied("", element.type, element) for element in value.elements)
            return f"({', '.join(parts)})"
        text = self.text(value)
        is_view = may_be_view(value) and not self._written.isdisjoint(s.names_in(value))
        is_kept = kind in SCALARS or isinstance(innermost(kind), types.Tuple)
        if is_kept or not (is_view or name in self._written):
            return text
        if innermost(kind) == types.INT:
            return f"np.copy({text})"
        # Of real numbers, also if the value has integers. A copy may hold variables.
        self.of_variables |= not self._is_data
        return f"np.array({text}, {'float' if innermost(kind) in _REAL else 'complex'})"

    def _density(self, statement: s.Tilde | s.TargetIncrement) -> str:
        statement = getattr(statement, "truncated", None) or statement
        if isinstance(statement, s.TargetIncrement):
            text = self.text(statement.value)
            # A sum, because elements of a vector may be assigned later.
            is_whole = statement.value.type not in SCALARS and self._collected is None
            return f"np.sum({text})" if is_whole else text
        arguments = ", ".join(map(self.text, [statement.value, *statement.arguments]))
        name = statement.function
        if statement.definition is not None:
            function = renamed(statement.definition.name)
        elif not hasattr(vm, name):
            raise self.refusal(statement, f"the density {name}")
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
        self.line(f"{word} {self.condition(statement.condition)}:")
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
            self.shifted.add(loop.name)
        self.body(loop.body)
        self.shifted.discard(loop.name)

    # --- blocks ---

    def module(self) -> str:
        """Write the module."""
        tree = self._tree
        defined = [function for function in tree.functions if function.body is not None]
        names = [x.name for x in defined]
        for definition in defined:
            if names.count(definition.name) > 1:
                raise self.refusal(definition, f"several functions {definition.name}")
            self._function(definition)
        if any(_has_jacobian(d.declared) for d in tree.parameters):
            for node in s.walk([tree.functions, tree.transformed_parameters, tree.model]):
                if isinstance(node, s.Call) and node.name == "target":
                    raise self.refusal(node, "`target()`, which counts Jacobians of parameters")
        self.line("def make_model(data):")
        self._depth = 1
        self.line('"""The model with data, a dict of the names of the program."""')
        start = len(self._lines)
        if any(
            isinstance(x, s.Call) and x.name.endswith("_rng") for x in s.walk(tree.transformed_data)
        ):
            self.line("rng = np.random.default_rng(0)")
        self._is_data = True
        for node in tree.transformed_data:
            self.statement(node)
        self._is_data = False
        self.line()
        self._part("log_density", tree.model)
        for block in ("transformed_parameters", "generated_quantities"):
            if any(isinstance(x, s.Declaration) for x in getattr(tree, block)):
                self._part(block, getattr(tree, block))
        self._model()
        self._lines[start:start] = self._data("\n".join(self._lines[start:]))
        text = "\n".join(self._lines)
        imports = ["import varmat as vm"] if "vm." in text else []
        if "np." in text:
            module = "varmat.numpy" if self.of_variables else "numpy"
            imports.insert(0, f"import {module} as np")
        imports.sort(key=lambda x: x.split()[1])
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
        """Write the lines that read from the data the names in the text."""
        lines = []
        for d in self._tree.data:
            name, value = renamed(d.name), f'data["{d.name}"]'
            if re.search(rf"\b{name}\b", text):
                kind = d.declared.unsized
                if kind not in SCALARS:
                    # An empty list holds integers, too.
                    value = f"np.asarray({value}{', int' * (innermost(kind) == types.INT)})"
                lines.append(f"    {name} = {value}")
        return lines

    def _function(self, definition: s.FunctionDefinition) -> None:
        assert definition.body is not None
        names = [renamed(argument.name) for argument in definition.arguments]
        names += added_arguments(definition.name)
        self.line(f"def {renamed(definition.name)}({', '.join(names)}):")
        self._collected = None
        self.body(definition.body)
        self.line()
        self.line()

    def _known(self) -> list[str]:
        names = [d.name for d in self._tree.parameters]
        return names + _declared(self._tree.transformed_parameters)

    def _part(self, title: str, statements: Sequence[s.Statement]) -> None:
        """Write the function of a block."""
        converters = (
            self._known()
            if title != "transformed_parameters"
            else [d.name for d in self._tree.parameters]
        )
        used = {*s.names_in(statements)}
        own = [name for name in _declared(statements) if title != "log_density"]
        arguments = [renamed(name) for name in converters if name in used and name not in own]
        if any(isinstance(x, s.Call) and x.name.endswith("_rng") for x in s.walk(statements)):
            arguments.append("rng")
        self.line(f"def {title}({', '.join(arguments)}):")
        self._depth += 1
        if title == "log_density":
            self._terms(statements)
        else:
            for statement in statements:
                self.statement(statement)
            self.line("return {" + ", ".join(f'"{renamed(n)}": {renamed(n)}' for n in own) + "}")
        self._depth -= 1
        self.line()

    def _terms(self, statements: Sequence[s.Statement]) -> None:
        """Write the statements of the model, with one return of all terms if that is possible."""
        count = next((i for i in range(len(statements), 0, -1) if _is_straight(statements[:i])), 0)
        first, remainder = statements[:count], statements[count:]
        self._collected = []
        for x in first:
            self.statement(x)
        terms, self._collected = self._collected, None
        if len(terms) == 1 and not remainder:
            self.line(f"return {terms[0]}")
            return
        opening, closing = ("terms = [", "]") if remainder else ("return (", ")")
        if terms:
            self.line(opening)
            self._depth += 1
            for term in terms:
                self.line(f"{term},")
            self._depth -= 1
            self.line(closing)
        else:
            self.line(opening + closing)
        for x in remainder:
            self.statement(x)
        if remainder:
            self.line("return terms")

    def _model(self) -> None:
        self.line("return vm.Model(")
        self._depth += 1
        self.line("log_density,")
        for d in self._tree.parameters:
            self.line(f"{renamed(d.name)}={self._parameter(d)},")
        for block in ("transformed_parameters", "generated_quantities"):
            if any(isinstance(x, s.Declaration) for x in getattr(self._tree, block)):
                self.line(f"{block}={block},")
        self._depth -= 1
        self.line(")")
        self._depth = 0

    def _parameter(self, d: s.Declaration) -> str:
        declared_type = d.declared
        sizes = [*map(self.text, declared_type.sizes)]
        dimensions = [*map(self.text, declared_type.dimensions)]
        if declared_type.name in _PARAMETERS:
            return f"vm.{_PARAMETERS[declared_type.name]}({', '.join(sizes + dimensions)})"
        if declared_type.name == "row_stochastic_matrix":
            return f"vm.simplex({', '.join([sizes[1], *dimensions, sizes[0]])})"
        if declared_type.name not in ("real", "vector", "row_vector", "matrix"):
            raise self.refusal(d, f"a parameter of type {declared_type.name}")
        shape = dimensions + sizes
        lower, upper = map(self._bound, (declared_type.lower, declared_type.upper))
        if lower is not None and upper is not None:
            function, ends = "interval", [lower, upper]
        elif lower is not None:
            function, ends = ("positive", []) if lower in ("0", "0.0") else ("lower", [lower])
        elif upper is not None:
            function, ends = "upper", [upper]
        elif declared_type.offset is not None or declared_type.multiplier is not None:
            pair = (
                self._bound(declared_type.offset) or "0",
                self._bound(declared_type.multiplier) or "1",
            )
            function, ends = "offset_multiplier", [*pair]
        else:
            function, ends = "real", []
        return f"vm.{function}({', '.join(ends + shape)})"

    def _bound(self, e: s.Expression | None) -> str | None:
        if e is None:
            return None
        names = [renamed(d.name) for d in self._tree.parameters if d.name in s.names_in(e)]
        return f"lambda {', '.join(names)}: {self.text(e)}" if names else self.text(e)


_REAL = {types.REAL, types.VECTOR, types.ROW_VECTOR, types.MATRIX}
_BLOCKS = ("transformed_data", "transformed_parameters", "model", "generated_quantities")


def _is_assigned(name: str, statements: Sequence[s.Statement]) -> bool | None:
    """Tell whether a variable is assigned as a whole before it is read; None if not mentioned."""
    for statement in statements:
        if name not in s.names_in(statement):
            continue
        if isinstance(statement, (s.Braces, s.Profiled)):
            return _is_assigned(name, statement.body)
        if isinstance(statement, s.If) and name not in s.names_in(statement.condition):
            return all(_is_assigned(name, part) for part in (statement.body, statement.otherwise))
        return (
            isinstance(statement, s.Assignment)
            and isinstance(statement.target, s.VariableName)
            and not statement.operator
            and name not in s.names_in(statement.value)
        )
    return None


def _declared(statements: Sequence[s.Statement]) -> list[str]:
    return [statement.name for statement in statements if isinstance(statement, s.Declaration)]


def _is_straight(statements: Sequence[s.Statement]) -> bool:
    """Tell whether terms may be collected in one place: none is in a loop or branch, and nothing
    that a term reads changes after it.
    """
    read: set[str] = set()
    for statement in statements:
        inside = [*s.walk(statement)]
        if isinstance(statement, (s.Braces, s.Profiled)) or any(
            isinstance(x, s.Call) and (x.name == "target" or x.name.endswith("_lp")) for x in inside
        ):
            return False
        if isinstance(statement, (s.Tilde, s.TargetIncrement)):
            read |= {*s.names_in(statement)}
            continue
        if any(isinstance(x, (s.Tilde, s.TargetIncrement)) for x in inside):
            return False
        changed = {s.root(x.target) for x in inside if isinstance(x, s.Assignment)}
        if changed & read:
            return False
    return True


def to_python(tree: s.ProgramTree) -> str:
    """Write a checked program as a Python module with a function `make_model(data)`."""
    return Printer(tree).module()


# --- lines that are not too long ---

_WIDTH = 96


def wrapped(line: str) -> list[str]:
    """Break a line that is too long into several, at its outermost brackets."""
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
                    *(x for part in inner for x in wrapped(part)),
                    indent + line[end:],
                ]
    name, equals, value = line.partition(" = ")
    parts = _at_sums(value)
    if equals and len(parts) > 1 and name.strip().replace("_", "").isalnum():
        return [f"{name} = (", *(f"{indent}    {part}" for part in parts), f"{indent})"]
    return [line]


def _at_sums(text: str) -> list[str]:
    """Split a sum into its terms, each with its sign."""
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
