"""The files around the code: versions, Pythons, and the page on contributing, whose examples
run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def test_the_citation_has_the_version():
    stated = re.findall(
        r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert stated == [PROJECT["version"]]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("noxfile.py", r"^PYTHONS = \[(.*)\]$"),
        (".github/workflows/check.yml", r"^ *python: \[(.*)\]$"),
    ],
)
def test_the_same_pythons_are_supported_everywhere(file, pattern):
    (stated,) = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    said = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), flags=re.MULTILINE)
    assert re.findall(r"3\.\d+", stated) == said
    assert PROJECT["requires-python"] == f">={said[0]}"


def test_the_lowest_versions_are_those_of_the_project():
    (stated,) = re.findall(
        r"^LOWEST = \[(.*)\]$",
        (ROOT / "noxfile.py").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert [each.replace(">=", "==") + ".*" for each in PROJECT["dependencies"]] == re.findall(
        r'"(.*?)"', stated
    )


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
    sessions = re.findall(
        r"^def (\w+)\(session",
        (ROOT / "noxfile.py").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    named = re.findall(r"nox -s ([a-z. 0-9-]+?)(?: -- \w+)?`", text)
    assert named
    assert {each.partition("-")[0] for names in named for each in names.split()} <= {*sessions}
    for path in re.findall(r"pytest (tests/\S+?)`", text):
        assert (ROOT / path).exists()
