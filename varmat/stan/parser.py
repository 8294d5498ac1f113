"""From the text of a Stan program to its syntax tree."""

from __future__ import annotations

import copy
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from varmat.stan import lalr, syntax, types
from varmat.stan.errors import StanSyntaxError
from varmat.stan.syntax import Position

__all__ = ["parse"]

BLOCKS = (
    "functions", "data", "transformed_data", "parameters", "transformed_parameters", "model",
    "generated_quantities",
)  # fmt: skip

# Comments and texts, so that nothing inside them is taken for an include; and the old comments.
_PIECES = re.compile(
    r'//[^\n]*|(?P<block>/\*.*?(?P<closed>\*/|\Z))|"[^"\n]*"'
    r'|\#include\s+(?:"(?P<quoted>[^"\n]*)"|<(?P<angled>[^>\n]*)>|(?P<bare>\S+))'
    r"|(?P<comment>\#[^\n]*)",
    re.DOTALL,
)
_ARROW = re.compile(r"(?<=[\n;{})])([ \t]*[A-Za-z]\w*(?:\[[^;<\n]*\])?[ \t]*)<-")


def parse(source: str | Path, include_paths: Sequence[str | Path] = ()) -> syntax.ProgramTree:
    """Parse a Stan program.

    Parameters
    ----------
    source : str or Path
        The path of a file, as a Path or as a text that ends in `.stan` or `.stanfunctions`; or the
        text of a program.
    include_paths : sequence of paths
        Directories in which files named by `#include` are looked up, before the program's own and
        that of the file with the `#include`.

    Raises
    ------
    StanSyntaxError
        If the text does not follow the grammar, or an included file is missing.

    Examples
    --------
    >>> from varmat.stan.parser import parse
    >>> parse("model { target += 1; }").model
    [TargetIncrement(value=Number(value=1))]
    """
    if isinstance(source, Path) or re.fullmatch(r"[^\n]*\.stan(functions)?", source):
        name, text = str(source), Path(source).read_text(encoding="utf-8")
        directories = [*map(Path, include_paths), Path(source).parent]
    else:
        name, text, directories = "program", source, [*map(Path, include_paths)]
    reader = _Reader(directories)
    expanded = "\n".join(reader.lines(name, text))
    if name.endswith(".stanfunctions"):
        expanded = f"functions {{\n{expanded}\n}}"
        reader.places = [(name, 1), *reader.places, (name, 1)]
    try:
        return _parse(expanded, reader)
    except StanSyntaxError:
        # Look for old assignments only in invalid programs, because `a <-1` compares.
        old = _ARROW.sub(r"\1 =", expanded)
        if old == expanded:
            raise
        note = "The arrow `<-` no longer assigns: write `=`."
        for match in _ARROW.finditer(expanded):
            line = expanded.count("\n", 0, match.end())
            reader.note(Position(*reader.places[line], 1), note)
        try:
            return _parse(old, reader)
        except StanSyntaxError:
            pass
        raise


class _Reader:
    """Text with its includes replaced: where each line is from, the files' lines, and notes."""

    def __init__(self, directories: list[Path]) -> None:
        self.directories = directories
        self.places: list[tuple[str, int]] = []
        self.sources: dict[str, list[str]] = {}
        self.notes: list[syntax.Note] = []

    def note(self, at: Position, text: str) -> None:
        self.notes.append(syntax.Note(at, text))

    def lines(self, name: str, text: str, within: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield the lines of a text, its includes replaced."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.sources[name] = text.split("\n")
        saved, start = "", 0
        first = 1
        for match in _PIECES.finditer(text):
            number = 1 + text.count("\n", 0, match.start())
            at = Position(name, number, match.start() - text.rfind("\n", 0, match.start()))
            if match["block"] and not match["closed"]:
                raise StanSyntaxError("This comment has no end.", at, self.sources)
            if match["comment"]:
                self.note(at, "`#` no longer begins a comment: write `//`.")
                saved += text[start : match.start()]
                start = match.end()
            elif path := match["quoted"] or match["angled"] or match["bare"]:
                yield from self._place(name, first, saved + text[start : match.start()])
                yield from self._include(at, path, (*within, name))
                saved, start = "", match.end()
                first = 1 + text.count("\n", 0, start)
        yield from self._place(name, first, saved + text[start:])

    def _place(self, name: str, first: int, text: str) -> Iterator[str]:
        for number, line in enumerate(text.split("\n"), first):
            self.places.append((name, number))
            yield line

    def _include(self, at: Position, path: str, within: tuple[str, ...]) -> Iterator[str]:
        # Packages of R begin paths with a slash, and mean their own directory. Included files name
        # others that are next to them.
        paths = [Path(path)] * Path(path).is_absolute()
        paths += [directory / path.lstrip("/") for directory in self.directories]
        paths += [Path(x).parent / path.lstrip("/") for x in within[1:][-1:]]
        for file in paths:
            if str(file) in within:
                raise StanSyntaxError(f"`{path}` includes itself.", at, self.sources)
            if file.is_file():
                yield from self.lines(str(file), file.read_text(encoding="utf-8"), within)
                return
        where = ", ".join(map(str, self.directories)) or "`include_paths`, which is empty"
        raise StanSyntaxError(f"There is no file `{path}` in {where}.", at, self.sources)


def _parse(text: str, reader: _Reader) -> syntax.ProgramTree:
    builder = _Builder(text, reader)
    try:
        program: syntax.ProgramTree = lalr.parse(text, builder.node)
    except lalr.ParsingError as error:
        at = builder.position(error.start)
        raise StanSyntaxError(_describe(error), at, reader.sources) from None
    return program


# Words for the tokens that may follow: a group is named by one of its tokens.
_GROUPS = {
    "a statement": (
        "IF", "WHILE FOR PROFILE RETURN BREAK CONTINUE MESSAGE TARGET JACOBIAN SEMICOLON LBRACE",
    ),
    "a declaration": (
        "CHOLESKY_FACTOR",
        "SCALAR VECTOR MATRIX CONSTRAINED_VECTOR CONSTRAINED_MATRIX SQUARE_MATRIX ARRAY TUPLE",
    ),
    "an expression": (
        "INTEGER", "REAL DOT_NUMBER IMAGINARY NAME T TARGET BANG PLUS MINUS LPAR LSQB LBRACE",
    ),
    "an operator": (
        "%/%", "|| && == != < <= > >= + - * / % .* ./ \\ ^ .^ ' ? [ DOT_NUMBER",
    ),
    "an assignment": ("OPERATOR_ASSIGN", "ASSIGN PLUS_ASSIGN"),
    "a type": ("SCALAR", "VECTOR MATRIX ARRAY TUPLE"),
    "a name": ("NAME", "T"),
    "the end": ("$END", ""),
}  # fmt: skip


def _describe(error: lalr.ParsingError) -> str:
    """Describe the token found where something else was expected."""
    if not error.expected:
        return f"Unexpected character `{error.text}`."
    words, following = lalr.spellings(), error.expected
    token = f"`{error.text}`" if error.text else "end of the program"
    if "NAME" in following and "INTEGER" not in following and re.match("[A-Za-z]", error.text):
        return f"{token} is a word of the language, not a name."
    expected = []
    for group, (mark, others) in _GROUPS.items():
        spelled = {words.get(name, name) for name in following}
        if mark in following or mark in spelled:
            expected.append(group)
            following = {
                name for name in following if not {name, words.get(name)} & {mark, *others.split()}
            }
    expected = [*(f"`{words[name]}`" for name in sorted(following) if name in words), *expected]
    return f"Unexpected {token}; expected {' or '.join(expected)}."


def _flat(items: Iterable[object]) -> list[Any]:
    """List the statements; a declaration with several names is a list itself."""
    return [part for item in items for part in (item if isinstance(item, list) else [item])]


# Rules whose parts are the fields of a node, and rules that list their parts.
_NODES: dict[str, Callable[..., Any]] = {
    "target_increment": syntax.TargetIncrement, "jacobian_increment": syntax.JacobianIncrement,
    "return_statement": syntax.Return, "break_statement": syntax.Break,
    "continue_statement": syntax.Continue, "if_statement": syntax.If,
    "while_statement": syntax.While, "for_statement": syntax.For,
    "for_each_statement": syntax.ForEach, "conditional": syntax.Conditional,
    "unary": syntax.Unary, "index": syntax.Indexed, "variable": syntax.VariableName,
    "array_expression": syntax.ArrayExpression,
}  # fmt: skip
_LISTS = frozenset({"arguments", "expressions", "indices", "body", "truncation"})


class _Builder:
    """Makes the nodes of the rules of the grammar, each by the method of the rule's name."""

    def __init__(self, text: str, reader: _Reader) -> None:
        self.text, self.reader = text, reader
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.at = Position(reader.places[0][0], 1, 1)
        self.start = self.end = 0

    def position(self, start: int) -> Position:
        line = bisect_right(self.lines, start) - 1
        return Position(*self.reader.places[line], 1 + start - self.lines[line])

    def node(self, name: str, parts: list[object], start: int, end: int) -> Any:
        if end:
            self.at, self.start, self.end = self.position(start), start, end
        if name in BLOCKS:
            return name, self.at, _flat(parts)
        if name in _LISTS:
            return _flat(parts)
        if name in _NODES:
            return _NODES[name](self.at, *parts)
        return getattr(self, name)(self.at, *parts)

    def error(self, reason: str, at: Position) -> StanSyntaxError:
        return StanSyntaxError(reason, at, self.reader.sources)

    def program(
        self, at: Position, *blocks: tuple[str, Position, list[object]]
    ) -> syntax.ProgramTree:
        result: dict[str, list[Any]] = {}
        for name, place, items in blocks:
            title = name.replace("_", " ")
            if name in result:
                raise self.error(f"The block `{title}` is here a second time.", place)
            later = [other for other in result if BLOCKS.index(other) > BLOCKS.index(name)]
            if later:
                reason = f"The block `{title}` must stand before `{later[0].replace('_', ' ')}`."
                raise self.error(reason, place)
            result[name] = items
        parts = {name: result.get(name, []) for name in BLOCKS}
        return syntax.ProgramTree(at, **parts, sources=self.reader.sources, notes=self.reader.notes)

    # Functions

    def function_definition(
        self, at: Position, result: Any, name: str, arguments: Any, body: Any = None
    ) -> syntax.FunctionDefinition:
        return syntax.FunctionDefinition(at, result, name, arguments or [], body)

    def return_type(self, _: Position, result: types.Type | None = None) -> types.Type | None:
        return result

    def argument(
        self, at: Position, data: object, kind: types.Type, name: str
    ) -> syntax.ArgumentDeclaration:
        return syntax.ArgumentDeclaration(at, kind, name, data is not None)

    def unsized_basic(self, _: Position, name: str) -> types.Type:
        return types.Basic(name)

    def unsized_tuple(self, _: Position, *elements: types.Type) -> types.Type:
        return types.Tuple(elements)

    def unsized_array(self, _: Position, dimensions: int, element: types.Type) -> types.Type:
        for _dimension in range(dimensions):
            element = types.ArrayType(element)
        return element

    def old_unsized_array(self, at: Position, element: types.Type, dimensions: int) -> types.Type:
        array = self.unsized_array(at, dimensions, element)
        self.reader.note(at, f"Arrays are declared otherwise today: write `{array}`.")
        return array

    def commas(self, _: Position, *tokens: str) -> int:
        return len(tokens) - 1

    # Declarations

    def declaration(
        self, _: Position, declared_type: syntax.SizedType, *declarators: Any
    ) -> list[syntax.Declaration]:
        written = self.text[self.start : declarators[0][1]].strip()
        result = []
        for at, _, name, dimensions, value in declarators:
            sized = declared_type
            if dimensions:
                sizes, brackets = dimensions
                today = f"array{brackets} {written} {name}"
                self.reader.note(at, f"Arrays are declared otherwise today: write `{today}`.")
                sized = copy.copy(declared_type)
                sized.dimensions = [*sizes, *declared_type.dimensions]
            result.append(syntax.Declaration(at, sized, name, value))
        return result

    def declarator(
        self, at: Position, name: str, dimensions: object, value: object
    ) -> tuple[Any, ...]:
        return at, self.start, name, dimensions, value

    def dimensions(self, _: Position, sizes: list[object]) -> tuple[list[Any], str]:
        return sizes, self.text[self.start : self.end]

    def sized_type(self, at: Position, dimensions: Any, basic: syntax.SizedType) -> Any:
        basic.at, basic.dimensions = at, dimensions[0] if dimensions else []
        return basic

    def tuple_type(self, at: Position, *elements: syntax.SizedType) -> syntax.SizedType:
        return syntax.SizedType(at, "tuple", [], [], list(elements))

    def basic_type(self, at: Position, name: str, *args: Any) -> syntax.SizedType:
        bounds = args[0] if args and isinstance(args[0], dict) else {}
        return syntax.SizedType(at, name, [*args[bool(bounds) :]], [], **bounds)

    def constraint(self, _: Position, *bounds: Any) -> dict[str, syntax.Expression]:
        names = {name for _, name, _ in bounds}
        at, name, _ = bounds[-1]
        if len(bounds) == 2 and names not in ({"lower", "upper"}, {"offset", "multiplier"}):
            raise self.error(f"`{name}` does not match `{bounds[0][1]}`.", at)
        return {name: value for _, name, value in bounds}

    def bound(self, at: Position, name: str, _: str, value: object) -> tuple[Any, ...]:
        return at, name, value

    # Statements

    def assignment(self, at: Position, target: Any, operator: str, value: Any) -> Any:
        if not _assignable(target):
            raise self.error("Nothing can be assigned to this expression.", at)
        return syntax.Assignment(at, target, operator[:-1], value)

    def call_statement(self, at: Position, call: syntax.Call) -> syntax.Statement:
        if call.name == "increment_log_prob" and len(call.arguments) == 1:
            self.reader.note(at, "`increment_log_prob` is gone: write `target += ...`.")
            return syntax.TargetIncrement(at, call.arguments[0])
        return syntax.CallStatement(at, call)

    def distribution(
        self, at: Position, value: Any, name: str, arguments: Any, truncation: Any
    ) -> syntax.Statement:
        limits = truncation or (None, None)
        return syntax.Tilde(at, value, name, arguments or [], *limits)

    def message(self, at: Position, kind: str, *items: Any) -> syntax.Statement:
        texts = [item[1:-1] if isinstance(item, str) else item for item in items]
        return syntax.Message(at, kind, texts)

    def branch(self, _: Position, *statements: object) -> list[syntax.Statement]:
        block = statements[0] if statements else None
        return block.body if isinstance(block, syntax.Braces) else _flat(statements)

    otherwise = branch

    def range(self, at: Position, lower: Any = None, upper: Any = None) -> syntax.Range:
        return syntax.Range(at, lower, upper)

    def profile(self, at: Position, name: str, *statements: object) -> syntax.Statement:
        return syntax.Profiled(at, name[1:-1], _flat(statements))

    def block(self, at: Position, *statements: object) -> syntax.Statement:
        return syntax.Braces(at, _flat(statements))

    # Expressions

    def binary(self, at: Position, left: Any, operator: str, right: Any) -> syntax.Expression:
        return syntax.Binary(at, operator, left, right)

    def transpose(self, at: Position, operand: Any, operator: str) -> syntax.Expression:
        return syntax.Unary(at, operator, operand)

    def projection(self, at: Position, base: Any, number: str) -> syntax.Expression:
        return syntax.Projection(at, base, int(number[1:]))

    def integer(self, at: Position, text: str) -> syntax.Expression:
        return syntax.Number(at, int(text))

    def real(self, at: Position, text: str) -> syntax.Expression:
        return syntax.Number(at, float(text))

    def imaginary(self, at: Position, text: str) -> syntax.Expression:
        return syntax.Number(at, complex(0.0, float(text[:-1])))

    def target(self, at: Position) -> syntax.Expression:
        return syntax.Call(at, "target", [])

    def tuple_expression(self, at: Position, first: Any, others: Any) -> syntax.Expression:
        return syntax.TupleExpression(at, [first, *(others or [])])

    def row_vector_expression(self, at: Position, elements: Any) -> syntax.Expression:
        return syntax.RowVectorExpression(at, elements or [])

    def call(self, at: Position, name: str, arguments: Any) -> syntax.Expression:
        defined = r"\b(int|real|vector|row_vector|matrix)\s+if_else\s*\("
        if name == "if_else" and len(arguments) == 3 and not re.search(defined, self.text):
            self.reader.note(at, "`if_else` is gone: write `condition ? yes : no`.")
            return syntax.Conditional(at, *arguments)
        return syntax.Call(at, name, arguments or [])

    def conditioned_call(self, at: Position, name: str, first: Any, others: Any) -> Any:
        return syntax.Call(at, name, [first, *(others or [])], True)


def _assignable(target: syntax.Expression, is_whole: bool = True) -> bool:
    """Tell whether an expression can be assigned to; tuples of names only as a `is_whole`."""
    if isinstance(target, syntax.TupleExpression):
        return is_whole and all(map(_assignable, target.elements))
    if isinstance(target, syntax.Indexed | syntax.Projection):
        return _assignable(target.base, is_whole=False)
    return isinstance(target, syntax.VariableName)
