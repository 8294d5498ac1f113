"""The statements of a program, with what they read and what they set."""

from __future__ import annotations

import ast
import re
from typing import Any

from varmat.core.rules import names_in

# The names of what structured operations keep for their reverse rules.
SAVED = re.compile(r"m\d+\Z")
_NAME = re.compile(r"\b[A-Za-z_]\w*")


class Statement:
    """A statement.

    Attributes
    ----------
    text : str
    tree : ast.stmt
    bound : set of str
        The names that it gives a value to.
    loaded : set of str
        All other names in it, those of methods too.
    written : set of str
        The names among these through which something is written into an array, and of what leads there.
    target : str
        The name that it binds, if it is the assignment of `value` to one name; otherwise empty.
    value : ast.expr, optional
    """

    def __init__(self, text: str, tree: ast.stmt | None = None) -> None:
        self.text = text
        self.tree = tree or ast.parse(text).body[0]
        place: Any = None
        if isinstance(self.tree, ast.Assign):
            (place,) = self.tree.targets
        elif isinstance(self.tree, ast.AugAssign):
            place = self.tree.target
        self.target, self.value = "", None
        self.bound, self.written = set[str](), set[str]()
        if isinstance(place, ast.Name):
            self.target, self.value, self.bound = place.id, self.tree.value, {place.id}  # type: ignore[attr-defined]
        elif isinstance(place, ast.Subscript):
            self.written = names_in(place)
        elif place is not None:
            self.bound = names_in(place)
        self.loaded = {*_NAME.findall(text)} - self.bound
        if isinstance(self.tree, ast.Expr):  # a call for the sake of what it does to an array
            self.written = self.loaded


def statements_of(lines: list[str]) -> list[Statement]:
    """The statements of a program, one in each line."""
    return [Statement(*each) for each in zip(lines, ast.parse("\n".join(lines)).body, strict=True)]


def called(value: ast.expr | None) -> str:
    """The name of the function or method that an expression calls, if it does."""
    if not isinstance(value, ast.Call):
        return ""
    return value.func.attr if isinstance(value.func, ast.Attribute) else value.func.id  # type: ignore[attr-defined]


def negated(value: ast.expr | None) -> ast.expr | None:
    """What an expression is the negative of, if it is written as one."""
    return value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else None


def without_dead_statements(statements: list[Statement]) -> list[Statement]:
    """Leave out those that give values only to names that nothing uses. Structured operations stay: they may refuse a point."""
    kept: list[Statement] = []
    used: set[str] = set()
    for statement in reversed(statements):
        if not statement.bound or statement.bound & used or any(SAVED.match(name) for name in statement.bound):
            used |= statement.loaded
            kept.append(statement)
    return kept[::-1]
