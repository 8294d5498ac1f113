"""Tables as HTML for notebooks, in their colours. Names that users chose are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

# Rows of a table that are shown, at most.
ROWS = 60


def escape(x: str) -> str:
    """Escape a text for HTML, because names of users may look like tags."""
    from html import escape  # with its table of entities, for notebooks only

    return escape(x)


def text(x: Any) -> str:
    """Describe anything in short: a number with six digits, a long array by its shape."""
    if isinstance(x, float):
        return f"{x:.6g}"
    shape = getattr(x, "shape", None)
    return f"array of shape {shape}" if shape and getattr(x, "size", 0) > 8 else str(x)


def paragraph(x: Any) -> str:
    """Make a paragraph of a text."""
    return f"<p>{escape(str(x))}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> str:
    """Make a table with a row of titles; the first cell of each row is the title of the row."""
    lines, left = ["<table>"], 0
    if title:
        lines.append(f"<caption>{escape(title)}</caption>")
    lines.append(f"<thead><tr>{''.join(f'<th>{escape(x)}</th>' for x in head)}</tr></thead><tbody>")
    for i, (first, *others) in enumerate(rows):
        if i >= ROWS:
            left += 1
            continue
        cells = "".join(f"<td>{escape(text(x))}</td>" for x in others)
        lines.append(f"<tr><th>{escape(text(first))}</th>{cells}</tr>")
    lines.append("</tbody></table>")
    if left:
        lines.append(paragraph(f"and {left} more"))
    return "".join(lines)
