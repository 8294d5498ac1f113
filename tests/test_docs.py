"""The documentation runs: the README, every page of docs, and the example in every public
docstring.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import varmat as vm
from varmat.densities.density import Proportional

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PUBLIC = sorted(
    name
    for name in dir(vm)
    if not name.startswith("_") and not isinstance(getattr(vm, name), ModuleType)
)


@pytest.fixture(autouse=True)
def clean_tape():
    yield
    vm.recover_memory()


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL
    )


class Checker(doctest.OutputChecker):
    """Numbers may differ in the last digits, as they do from one processor to the next, and arrays
    in their blanks.
    """

    NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d*(?:e[-+]?\d+)?")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        texts = ["".join(self.NUMBER.sub("#", text).split()) for text in (want, got)]
        numbers = [[float(number) for number in self.NUMBER.findall(text)] for text in (want, got)]
        return texts[0] == texts[1] and np.allclose(*numbers, rtol=1e-7, atol=1e-14)


def run_doctest(text: str, name: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    report: list[str] = []
    with np.printoptions(legacy=False):
        results = doctest.DocTestRunner(Checker(), optionflags=FLAGS, verbose=False).run(
            test, out=report.append
        )
    assert results.failed == 0, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs(page):
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), namespace)
    run_doctest("\n".join(blocks(page, "pycon")), page.name)


def test_tutorial_is_short():
    lines = [
        line
        for block in blocks(ROOT / "docs" / "tutorial_engine.md", "python")
        for line in block.splitlines()
        if line
    ]
    assert len(lines) <= 130


def test_first_example_gives_the_gradient():
    namespace: dict[str, Any] = {}
    exec(blocks(ROOT / "README.md", "python")[0], namespace)
    X, y = namespace["X"], namespace["y"]
    # At zero: the coefficients get X'y, the logarithm of the scale the sum of squares less their
    # number.
    expected = np.append(X.T @ y, y @ y - y.size)
    assert type(namespace["value"]) is float
    np.testing.assert_allclose(namespace["gradient"], expected, rtol=1e-13)


def test_reference_has_every_name_once(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    families = importlib.import_module("families")
    parts = families.families()
    told = [name for headings in parts.values() for names in headings.values() for name in names]
    assert sorted(told) == sorted(vm.__all__)
    printed = re.findall(
        r"^```{varmat-reference} (.*)$",
        (ROOT / "docs" / "reference.md").read_text(),
        flags=re.MULTILINE,
    )
    assert sorted(printed) == sorted(parts)
    with pytest.raises(LookupError, match=r"no heading has a pattern for f, of varmat\.nowhere"):
        families.family("f", "nowhere")


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert target.startswith("http") or (ROOT / target).exists(), target


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_has_an_example_that_runs(name):
    thing = getattr(vm, name)
    text = thing.__doc__ or ""
    assert text.strip(), f"{name} has no docstring"
    if not (isinstance(thing, type) and issubclass(thing, Exception)):
        assert ">>>" in text, f"the docstring of {name} has no example"
    run_doctest(text, name)


def is_told_in_full(thing: Any) -> bool:
    """Not of classes, and of densities without constants, which refer to those with them."""
    return not isinstance(thing, (type, Proportional))


@pytest.mark.parametrize("name", [name for name in PUBLIC if is_told_in_full(getattr(vm, name))])
def test_docstring_has_its_sections(name):
    """What a function takes, returns and refuses, and in the notes of a differentiable one its
    derivative, or its formula.
    """
    thing = getattr(vm, name)
    function = getattr(thing, "function", thing)
    wanted = {"Examples"}
    if inspect.signature(thing).parameters:
        wanted.add("Parameters")
    if getattr(function, "__annotations__", {}).get("return") != "None":
        wanted.add("Yields" if inspect.isgeneratorfunction(inspect.unwrap(function)) else "Returns")
    engine = inspect.isfunction(thing) and thing.__module__.startswith("varmat.core.")
    if not (engine or re.match(r"varmat\.(models|derivatives|inspection)", thing.__module__)):
        wanted.add("Notes")
    if inspect.isfunction(function) and re.search(
        r"\braise\b|check", inspect.getsource(function).split('"""')[-1]
    ):
        wanted.add("Raises")
    found = set(re.findall(r"^(\w+)\n-{3,}$", inspect.cleandoc(thing.__doc__), flags=re.MULTILINE))
    assert not wanted - found
