"""What is shown while something takes long: in a terminal, in a notebook, and nowhere else."""

from __future__ import annotations

import io
import sys

from varmat.models import progress


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_a_terminal_without_unicode(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert progress.bar(1, 2, 35) == "#" * 17 + "." * 18


def test_what_does_not_fit_into_the_terminal(monkeypatch):
    columns = ("Draws", "Divergences", "Step size", "Grad evals", "Elapsed", "Remaining")
    monkeypatch.setattr(sys, "stderr", Terminal())
    for width, size in ((200, 35), (90, 19), (40, 10)):
        monkeypatch.setenv("COLUMNS", str(width))
        heading, rule, line = progress.table("Progress", columns, [(5, 5, range(6))])
        assert len(heading) == len(rule) == len(line)
        assert (len(heading) < width) is (width > 40)
        assert line.split() == ["━" * size, *"012345"]
        for name, cell in zip(columns, "012345", strict=True):
            assert heading.index(name) == line.index(cell)
        sys.stderr.truncate(0)
        progress.Display(True).show(lambda lines=(heading, line): lines)
        assert all(len(each.split("\x1b")[0]) < width for each in sys.stderr.getvalue().strip("\0").splitlines())
    narrow = progress.table("Generated quantities", ("Draws",), [(5, 5, [5])])
    assert narrow[0].index("Draws") == narrow[2].index("5")


def test_the_time_that_remains():
    assert progress.remaining(0, 10, 3.0) == ""
    assert progress.remaining(4, 10, 2.0) == "3s"
    assert progress.remaining(10, 10, 2.0) == "0s"
