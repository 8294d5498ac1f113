"""Errors of Stan programs: the place, the line with a caret, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from varmat.stan.syntax import Position

__all__ = ["StanError", "StanSemanticError", "StanSyntaxError", "nearest"]


class StanError(ValueError):
    """Mistake in a Stan program; `position` is its place, `reason` the text without the place.

    Parameters
    ----------
    reason : str
        The mistake and its correction.
    position : Position
        The place of the mistake.
    sources : mapping
        The lines of the program's files by name.
    """

    def __init__(
        self, reason: str, position: Position, sources: Mapping[str, Sequence[str]]
    ) -> None:
        self.reason, self.position = reason, position
        lines = sources.get(position.file, ())
        line = lines[position.line - 1] if position.line <= len(lines) else ""
        # Tabs are kept before the caret because only then it stands below its column.
        before = "".join(c if c == "\t" else " " for c in line[: position.column - 1])
        super().__init__(f"{position}, column {position.column}: {reason}\n{line}\n{before}^")


class StanSyntaxError(StanError):
    """Text that does not follow the grammar of Stan."""


class StanSemanticError(StanError):
    """Program that follows the grammar but breaks a rule of names, types or blocks."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the name that was probably meant, as a sentence or nothing."""
    matches = get_close_matches(name, names, n=1, cutoff=0.7)
    return f" Did you mean `{matches[0]}`?" if matches else ""
