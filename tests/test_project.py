"""The files around the code: versions, Pythons, and the page on contributing, whose examples
run.
"""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
NOX = (ROOT / "noxfile.py").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def test_the_citation_has_the_version():
    stated = re.findall(
        r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert stated == [PROJECT["version"]]


@pytest.mark.parametrize(("file", "pattern"), [
    ("noxfile.py", r"^PYTHONS = \[(.*)\]$"),
    (".github/workflows/check.yml", r"^ *python: \[(.*)\]$"),
])  # fmt: skip
def test_the_same_pythons_are_supported_everywhere(file, pattern):
    (stated,) = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    said = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), flags=re.MULTILINE)
    assert re.findall(r"3\.\d+", stated) == said
    assert PROJECT["requires-python"] == f">={said[0]}"


def test_the_lowest_versions_are_those_of_the_project():
    (stated,) = re.findall(r"^LOWEST = \[(.*)\]$", NOX, flags=re.MULTILINE)
    found = [each.replace(">=", "==") + ".*" for each in PROJECT["dependencies"]]
    assert found == re.findall(r'"(.*?)"', stated)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_worked_examples_run():
    """The examples run in a process of their own, because they add to the tables of the library."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL))
    assert code.count("expect_ad(") >= 3
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr


def test_commands_of_contributing_name_what_is_there():
    text = CONTRIBUTING.read_text(encoding="utf-8")
    sessions = re.findall(r"^def (\w+)\(session", NOX, flags=re.MULTILINE)
    named = re.findall(r"nox -s ([a-z. 0-9-]+?)(?: -- \w+)?`", text)
    assert named
    assert {each.partition("-")[0] for names in named for each in names.split()} <= {*sessions}
    for path in re.findall(r"pytest (tests/\S+?)`", text):
        assert (ROOT / path).exists()


# The rows of the table of platforms, as markers see them.
PLATFORMS = {
    "Linux, x86-64": ("linux", "x86_64"),         "Linux, ARM (aarch64)": ("linux", "aarch64"),
    "macOS, Apple silicon": ("darwin", "arm64"),  "macOS, Intel": ("darwin", "x86_64"),
    "Windows, x86-64": ("win32", "AMD64"),        "Windows, ARM": ("win32", "ARM64"),
}  # fmt: skip


def test_the_table_of_platforms_is_that_of_the_extras():
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    head, _, *rows = re.findall(r"^\|(.*)\|$", page, flags=re.MULTILINE)
    extras = re.findall(r"`(\w+)`: (\w[\w-]*)", head)
    assert len(extras) == 4
    assert [row.split("|")[0].strip() for row in rows] == [*PLATFORMS]
    for row in rows:
        name, *cells = map(str.strip, row.split("|"))
        system, machine = PLATFORMS[name]
        for (extra, package), cell in zip(extras, cells, strict=True):
            wanted = map(Requirement, PROJECT["optional-dependencies"][extra])
            (found,) = (each for each in wanted if package.startswith(each.name))
            platform = {"sys_platform": system, "platform_machine": machine}
            installed = found.marker is None or found.marker.evaluate(platform)
            # An older release of JAX will do.
            assert installed == (cell == "yes" or "0.4.38" in cell), (name, extra)


def is_text_without_encoding(node):
    """Whether a call reads or writes text in the encoding of the system."""
    if not isinstance(node, ast.Call) or {None, "encoding"} & {k.arg for k in node.keywords}:
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in ("read_text", "write_text"):
        return True
    owner = getattr(getattr(node.func, "value", None), "id", "")
    if name != "open" or owner in ("os", "webbrowser"):
        return False
    modes = [x.value for x in ast.walk(node) if isinstance(x, ast.Constant)]
    return not any(isinstance(x, str) and re.fullmatch("[rwax+]*b[+]?", x) for x in modes)


FOLDERS = [".ci", "asv_benchmarks", "docs", "examples", "paper", "tests", "varmat"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_of_text_name_their_encoding(folder):
    """That of the system is another one on Windows."""
    for path in (ROOT / folder).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if re.search("open|(read|write)_text", text) else ()
        wrong = [node.lineno for node in nodes if is_text_without_encoding(node)]
        assert not wrong, (path, wrong)


def test_the_paper_has_what_it_refers_to(tmp_path):
    """Its figures are drawn from the tables of the pages."""
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    sources = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
    known = re.findall(r"^@\w+\{(\w+),", sources, re.MULTILINE)
    assert {*re.findall(r"@(\w+)", text)} == {*known}
    assert len(known) == len({*known})
    pytest.importorskip("matplotlib")
    path = ROOT / "paper" / "figures.py"
    figures = {"__name__": "figures", "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), figures)
    for name in re.findall(r"\]\((\w+)\.png\)", text):
        figures[name](tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_the_recipe_of_conda_is_that_of_the_project():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{PROJECT["version"]}"' in recipe
    assert f"python {PROJECT['requires-python']}" in recipe
    for each in map(Requirement, PROJECT["dependencies"]):
        assert f"- {each.name} {each.specifier}" in recipe
