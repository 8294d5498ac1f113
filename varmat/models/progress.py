"""Progress in the manner of nutpie, where nutpie shows none: for chains that are sampled one by
one, and after sampling.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

_BAR = 35
# Seconds.
_BETWEEN = 0.1


def _columns() -> int:
    """Return the width of the terminal."""
    import shutil  # here, because it imports the modules for compression

    return shutil.get_terminal_size().columns


class Display:
    """Lines that are overwritten in a terminal or a notebook; elsewhere nothing is shown.

    Parameters
    ----------
    is_on : bool
        With False, nothing is shown anywhere.
    """

    def __init__(self, is_on: bool) -> None:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        self._in_notebook = is_on and hasattr(shell, "kernel")
        self._in_terminal = is_on and not self._in_notebook and sys.stderr.isatty()
        self._cell: Any = None
        self._written = 0
        self._last = -float("inf")

    def show(self, lines: Callable[[], Sequence[str]], at_once: bool = False) -> None:
        """Write lines over the last ones, at most a few times a second unless `at_once`."""
        now = time.monotonic()
        if not (self._in_terminal or self._in_notebook) or not (
            at_once or now - self._last >= _BETWEEN
        ):
            return
        self._last = now
        if self._in_notebook:
            content = {"text/plain": "\n".join(lines())}
            if self._cell is None:
                display = sys.modules["IPython"].display.display
                self._cell = display(content, raw=True, display_id=True)
            else:
                self._cell.update(content, raw=True)
            return
        width = _columns() - 1
        back = f"\x1b[{self._written}F" if self._written else ""
        text = [f"{line[:width]}\x1b[K\n" for line in lines()]
        self._written = len(text)
        sys.stderr.write(back + "".join(text))
        sys.stderr.flush()


def table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[int, int, Sequence[object]]]
) -> list[str]:
    """Return lines with a bar each, below a heading.

    Parameters
    ----------
    title : str
        What the bars are about.
    columns : sequence of str
        Names of the figures next to them.
    rows : sequence of tuple
        How much is done, of how much, and the figures.
    """
    widths = [max(9, len(name) + 2) for name in columns]
    # Where the terminal is narrow, the bar is short.
    size = max(10, min(_BAR, _columns() - 6 - sum(widths)))
    first = max(size, len(title))

    def line(start: str, cells: Sequence[object]) -> str:
        return f"  {start:{first}}   " + "".join(
            f"{cell!s:{width}}" for cell, width in zip(cells, widths, strict=True)
        )

    heading, lines = line(title, columns), (line(bar(n, of, size), x) for n, of, x in rows)
    return [heading, " " + "-" * (len(heading) - 1), *lines]


def bar(done: int, of: int, size: int) -> str:
    """Make a bar that shows how much is done."""
    full = size * done // of if of else size
    filled, remainder = (
        ("━", " ") if "utf" in (getattr(sys.stderr, "encoding", None) or "").lower() else ("#", ".")
    )
    return filled * full + remainder * (size - full)


def remaining(done: int, of: int, seconds: float) -> str:
    """Estimate the time that is left, at the speed so far."""
    return f"{seconds * (of - done) / done:.0f}s" if done else ""


class Count:
    """How many of a number of draws are done.

    Parameters
    ----------
    title : str
    total : int
    is_on : bool
        Whether to show it.
    """

    def __init__(self, title: str, total: int, is_on: bool) -> None:
        self.done = 0
        self._title, self._total = title, total
        self._display, self._begun = Display(is_on), time.monotonic()

    def add(self, draws: int = 1) -> None:
        """Count more draws."""
        self.done += draws
        self._display.show(self._lines, self.done == self._total)

    def _lines(self) -> list[str]:
        seconds = time.monotonic() - self._begun
        figures = self.done, f"{seconds:.0f}s", remaining(self.done, self._total, seconds)
        return table(
            self._title, ("Draws", "Elapsed", "Remaining"), [(self.done, self._total, figures)]
        )
