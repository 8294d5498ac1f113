"""The documentation runs: the README, every page of docs, and the example in every public
docstring.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from comparing import refuses

import varmat as vm
from varmat import distributions
from varmat.densities.density import Proportional

ROOT = Path(__file__).parents[1]
PACKAGE = Path(vm.__file__).parent
# An index of packages shows the README, so its links are absolute.
REPOSITORY = "https://github.com/varmat/varmat/blob/main/"
PICTURES = "https://raw.githubusercontent.com/varmat/varmat/main/"
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


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def without_blocks(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^ *(```+).*?^ *\1$", "", text, flags=re.MULTILINE | re.DOTALL)


class Checker(doctest.OutputChecker):
    """Compare numbers without their last digits, which depend on the processor, and arrays without
    their blanks.
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
    vm.recover_memory()  # pages print what is recorded
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), namespace)
    run_doctest("\n".join(blocks(page, "pycon")), page.name)


def test_tutorial_is_short():
    code = "\n".join(blocks(ROOT / "docs" / "tutorial_engine.md", "python"))
    assert sum(map(bool, code.splitlines())) <= 130


def test_first_example_gives_the_gradient():
    namespace: dict[str, Any] = {}
    exec(blocks(ROOT / "README.md", "python")[0], namespace)
    y, error = namespace["y"], namespace["error"]
    # At zero tau is 1. The derivative in log(tau) is -2 / 26 from the Cauchy density and 1 from the
    # transform.
    expected = np.concatenate([[np.sum(y / error**2), 1.0 - 2.0 / 26.0], y / error**2])
    assert type(namespace["value"]) is float
    np.testing.assert_allclose(namespace["gradient"], expected, rtol=1e-13)


def test_reference_has_every_name_once(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    families = importlib.import_module("families")
    parts = families.families()
    told = [name for headings in parts.values() for names in headings.values() for name in names]
    assert sorted(told) == sorted(vm.__all__)
    everyday = " ".join(families.EVERYDAY.values()).split()
    assert len(everyday) == len({*everyday} & {*told})
    text = read("docs", "reference.md")
    printed = re.findall(r"^```{varmat-reference} (.*)$", text, flags=re.MULTILINE)
    assert sorted(printed) == sorted(parts)
    message = r"no heading has a pattern for f, of varmat\.nowhere"
    refuses(LookupError, message, families.family, "f", "nowhere")
    pages = [families.slug(heading) for headings in parts.values() for heading in headings]
    assert len(set(pages)) == len(pages)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as MyST and code hosts make them."""
    headings = re.findall(r"^#{1,3} (.*)$", without_blocks(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    """Sphinx does not warn of dead links to files, because outside the site links to any file are
    right.
    """
    text = re.sub(rf"`[^`]*`|{REPOSITORY}|{PICTURES}", "", without_blocks(page))
    made_at_build = ("reference/", "examples/", "history/")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if path.startswith(("http", "mailto")) or (
            page.parent.name == "docs" and path.startswith(made_at_build)
        ):
            continue
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


# Turns that are never plain English, and what to write instead.
TURNS = {
    r"\bof (which|whom)\b": "whose, or two sentences",
    r"\b(and|or) (its|the|their) like\b": "and similar functions", r"\banew\b": "again",
    r"\bin the place of\b": "instead of", r"\bone after the other\b": "in sequence",
    r"\b(no|some)body\b": "nothing, or the one who acts",
    r"\b(up to|from) which\b": "at most, at least",
    r"\bwhat (is|are) (it|they)\b": "the thing by its name",
    r"\bas (it is|they are) (written|there)\b": "unchanged",
    r", for (it|they|he|this|these|there)\b": "because",
    r", for (the|a|an) [\w-]+ (is|are|has|have|may|can)\b": "because",
    r"(^|[.;:] )(What|Who)\b[^?.|]*\.": "a noun at the start of the sentence",
}  # fmt: skip
# These pages are written by programs.
WRITTEN = {"coverage_table", "scipy_functions", "scipy_functions_arrays"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem not in WRITTEN], ids=lambda page: page.name
)
def test_prose_is_plain(page):
    found, text = [], re.sub(r"`[^`]*`", "`", without_blocks(page))
    for paragraph in re.split(r"\n\s*\n|\n(?=[*#|])", text):
        line = " ".join(paragraph.split()).lstrip("*# ")
        for turn, better in TURNS.items():
            if match := re.search(turn, line):
                around = line[max(match.start() - 40, 0) : match.end() + 40]
                found.append(f"{match[0]!r} in {around!r}: write {better}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_rows_of_tables_are_whole(page):
    """Each row is a line that begins and ends with a bar, and has as many bars as the first."""
    text = without_blocks(page) + "\n"
    for table in re.findall(r"(?:^\|.*\n(?:.+\n)*)+", text, flags=re.MULTILINE):
        rows = [re.sub(r"`[^`]*`|\\\|", "", line).strip() for line in table.splitlines()]
        assert len(rows) > 2, rows
        for row in rows:
            assert row[:1] == row[-1:] == "|", row
            assert row.count("|") == rows[0].count("|"), row


def toctree(page: Path) -> list[str]:
    """Return the pages below a page, in the order of the navigation."""
    found = []
    for block in blocks(page, "{toctree}"):
        lines = [line.strip() for line in block.splitlines()]
        found += [
            re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and not line.startswith(":")
        ]
    return found


def test_every_page_is_in_the_navigation():
    reached, waiting = set(), ["index"]
    while waiting:
        name = waiting.pop()
        assert name not in reached, f"{name} is in the navigation twice"
        reached.add(name)
        page = ROOT / "docs" / f"{name}.md"
        waiting += toctree(page) if page.exists() else []
    # coverage_table is a part of another page.
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"coverage_table"}
    assert reached == pages | {"examples/index", "reference/all_names"}


@pytest.mark.parametrize("section", ["getting_started", "howto", "explanation"])
def test_sections_link_their_pages(section):
    linked = set(re.findall(r"\]\((\w+)\.md\)", read("docs", f"{section}.md")))
    assert not set(toctree(ROOT / "docs" / f"{section}.md")) - linked


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_is_fit_for_the_gallery(example):
    """It has a title, cells and a figure, and uses only what the gallery defines."""
    text = example.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, line, *_ = ast.get_docstring(tree).splitlines()
    assert line == "=" * len(title)
    assert not title.endswith(".")
    cells = re.findall(r"^# %%\n# (.*)\n# -+$", text, flags=re.MULTILINE)
    short = ["The data", "The model", "The fit", "The picture"]
    assert cells == short or cells[-2:] == ["The figure", "All of it"]
    assert f'"{example.stem}.png"' in text
    assert "__file__" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("page", ["first_model", "howto_sampling", "index", "performance"])
def test_blocks_that_run_at_build_say_what_they_draw(page):
    """The build runs the blocks, but it cannot see what a figure shows."""
    drawn = 0
    for block in blocks(ROOT / "docs" / f"{page}.md", "{varmat-run}"):
        options = re.match(r"(?::.*\n)*", block)[0]
        ast.parse(block[len(options) :])
        draws = re.search(r"plt\.(subplots|figure)\(", block)
        assert bool(draws) == (":alt: " in options)
        drawn += bool(draws)
    assert drawn


def test_speed_in_the_readme_is_that_of_the_documentation():
    rows = re.findall(r"^\| .* [num]s \| .*$", read("README.md"), flags=re.MULTILINE)
    assert len(rows) >= 5
    assert not {*rows} - {*read("docs", "performance.md").splitlines()}


@pytest.mark.parametrize("page", ["tutorial_engine.md", "tutorial_programs.md"])
def test_modules_that_a_tutorial_names_exist(page):
    modules = re.findall(r"`(\w+/[\w/]+\.py)`", read("docs", page))
    assert len(modules) > 5
    assert not [module for module in modules if not (PACKAGE / module).exists()]


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring_has_an_example_that_runs(name):
    thing = getattr(vm, name)
    text = thing.__doc__ or ""
    assert text.strip(), f"{name} has no docstring"
    if not (isinstance(thing, type) and issubclass(thing, Exception)):
        assert ">>>" in text, f"the docstring of {name} has no example"
    run_doctest(text, name)


@pytest.mark.parametrize("name", ["", *distributions.__all__])
def test_examples_of_distributions_run(name):
    thing = getattr(distributions, name) if name else distributions
    assert thing.__doc__
    if not hasattr(thing, "row"):  # the density has the example
        assert ">>>" in thing.__doc__
    run_doctest(thing.__doc__, name or "varmat.distributions")


METHODS = (FunctionType, property, classmethod, staticmethod)


def examples_of_methods() -> dict[str, str]:
    """Return the docstrings with examples that methods have, of all classes of the package: a
    class need not be public for its objects to reach users. Those that NumPy wrote are left out.
    """
    classes = {
        cls
        for module in [*sys.modules.values()]
        if getattr(module, "__name__", "").startswith("varmat")
        for cls in vars(module).values()
        if isinstance(cls, type) and cls.__module__.startswith("varmat")
    }
    return {
        f"{cls.__module__}.{cls.__name__}.{name}": text
        for cls in sorted(classes, key=lambda cls: (cls.__module__, cls.__qualname__))
        for name, method in vars(cls).items()
        if isinstance(method, METHODS) and ">>>" in (text := inspect.getdoc(method) or "")
        if text != inspect.getdoc(getattr(np.ndarray, name, None))
    }


@pytest.mark.parametrize(("name", "text"), examples_of_methods().items(), ids=examples_of_methods())
def test_examples_of_methods_run(name, text):
    run_doctest(text, name)


def is_told_in_full(thing: Any) -> bool:
    """Classes have sections of their own. Densities without constants refer to those with
    constants.
    """
    return not isinstance(thing, (type, Proportional))


def test_docstring_has_its_sections():
    """A docstring says what a function takes, returns and refuses. The notes of a differentiable
    function give its derivative or its formula.
    """
    told = [name for name in PUBLIC if is_told_in_full(getattr(vm, name))]
    assert not {name: missing for name in told if (missing := missing_sections(getattr(vm, name)))}


def missing_sections(thing: Any) -> set[str]:
    thing = getattr(thing, "alias_of", thing)
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
    return wanted - found
