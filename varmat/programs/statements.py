"""The statements of a program, with what they read and what they set."""

from __future__ import annotations

import ast
import re
from typing import Any

# The names of what structured operations keep for their reverse rules.
SAVED = re.compile(r"m\d+\Z")


class Statement:
    """A statement.

    Attributes
    ----------
    text : str
    tree : ast.stmt
    bound : set of str
        The names that it gives a value to.
    loaded : set of str
        All other names in it.
    written : set of str
        The names among these through which something is written into an array, and of what leads there.
    target : str
        The name that it binds, if it is the assignment of `value` to one name; otherwise empty.
    value : ast.expr, optional
    """

    def __init__(self, text: str) -> None:
        self.text = text
        (self.tree,) = ast.parse(text).body
        names = [part for part in ast.walk(self.tree) if isinstance(part, ast.Name)]
        self.bound = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        self.loaded = {name.id for name in names} - self.bound
        self.target, self.value, self.written = "", None, set[str]()
        if isinstance(self.tree, ast.Expr):  # a call for the sake of what it does to an array
            self.written = self.loaded
        elif isinstance(self.tree, (ast.Assign, ast.AugAssign)):
            place: Any = self.tree.targets[0] if isinstance(self.tree, ast.Assign) else self.tree.target
            if isinstance(place, ast.Name):
                self.target, self.value = place.id, self.tree.value
            elif isinstance(place, ast.Subscript):
                self.written = {part.id for part in ast.walk(place) if isinstance(part, ast.Name)}


def called(value: ast.expr | None) -> str:
    """The name of the function or method that an expression calls, if it does."""
    if not isinstance(value, ast.Call):
        return ""
    return value.func.attr if isinstance(value.func, ast.Attribute) else value.func.id  # type: ignore[attr-defined]


def without_dead_statements(statements: list[Statement]) -> list[Statement]:
    """Leave out those that give values only to names that nothing uses. Structured operations stay: they may refuse a point."""
    kept: list[Statement] = []
    used: set[str] = set()
    for statement in reversed(statements):
        if not statement.bound or statement.bound & used or any(SAVED.match(name) for name in statement.bound):
            used |= statement.loaded
            kept.append(statement)
    return kept[::-1]
