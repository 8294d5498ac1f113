"""What is shown while something takes long: in a terminal, in a notebook, and nowhere else."""

import io
import re
import sys

from varmat.models import progress


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True

    def table(self):
        """The cells of each line that was shown last."""
        last = re.split("\x1b\\[\\dF", self.getvalue())[-1].replace("\x1b[K", "")
        return [line.split() for line in last.splitlines()]


def test_a_count_in_a_terminal_and_in_a_notebook(monkeypatch):
    monkeypatch.setattr(progress, "_BETWEEN", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "80")
    count = progress.Count("Generated quantities", 2, True)
    count.add()
    count.add()
    first, second = sys.stderr.getvalue().split("\x1b[3F")
    assert first.splitlines()[0].startswith("  Generated quantities")
    assert first.splitlines()[2].split()[:2] == ["━" * 17, "1"]
    assert second.splitlines()[2].split()[:2] == ["━" * 35, "2"]

    class Shell:
        kernel = None

    class Cell:
        def update(self, content, raw):
            shown.append(content)

    class Notebook:
        get_ipython = Shell
        display = None

    def display(content, raw, display_id):
        shown.append(content)
        return Cell()

    shown = []
    Notebook.display = type("display", (), {"display": staticmethod(display)})
    monkeypatch.setitem(sys.modules, "IPython", Notebook)
    count = progress.Count("Generated quantities", 2, True)
    count.add()
    count.add()
    assert ["━" * 18 in each["text/plain"] for each in shown] == [False, True]
    assert len(sys.stderr.getvalue().split("\x1b[3F")) == 2


def test_a_terminal_without_unicode(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert progress.bar(1, 2, 35) == "#" * 17 + "." * 18


def test_nothing_is_shown_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    progress.Count("Generated quantities", 1, True).add()
    assert not sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress.Count("Generated quantities", 1, False).add()
    assert not sys.stderr.getvalue()


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
        assert all(
            len(each.split("\x1b")[0]) < width
            for each in sys.stderr.getvalue().strip("\0").splitlines()
        )
    narrow = progress.table("Generated quantities", ("Draws",), [(5, 5, [5])])
    assert narrow[0].index("Draws") == narrow[2].index("5")


def test_the_time_that_remains():
    assert progress.remaining(0, 10, 3.0) == ""
    assert progress.remaining(4, 10, 2.0) == "3s"
    assert progress.remaining(10, 10, 2.0) == "0s"
