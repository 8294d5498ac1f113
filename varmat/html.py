"""Tables as HTML, as notebooks show them: what users have named is escaped, and colours are those
of the notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

# So many rows of a table are shown.
ROWS = 60


def escape(x: str) -> str:
    """A text as HTML, where names of users may look like tags."""
    from html import escape  # with its table of entities, for notebooks only

    return escape(x)


def text(x: Any) -> str:
    """Anything in short: a number with six digits, an array by its shape if it is long."""
    if isinstance(x, float):
        return f"{x:.6g}"
    shape = getattr(x, "shape", None)
    return f"array of shape {shape}" if shape and getattr(x, "size", 0) > 8 else str(x)


def paragraph(x: Any) -> str:
    """A line of text."""
    return f"<p>{escape(str(x))}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> str:
    """A table with a row of titles; the first cell of each row is the title of the row."""
    lines, left = ["<table>"], 0
    if title:
        lines.append(f"<caption>{escape(title)}</caption>")
    lines.append(
        f"<thead><tr>{''.join(f'<th>{escape(each)}</th>' for each in head)}</tr></thead><tbody>"
    )
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
