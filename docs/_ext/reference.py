"""The directives that make the reference from the library itself, and its pages.

There is a page for each family of `families.py`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from docutils import nodes
from families import EVERYDAY, families, slug
from numpydoc import docscrape_sphinx
from sphinx.util.docutils import SphinxDirective

import varmat
from varmat.core import dispatch

# The classes whose members, and those of classes above them, are not told again.
FOREIGN = "ArrayMethods, ndarray, ValueError, RuntimeError"


def write_pages(source: Path) -> None:
    """Write the folder `reference`, and remove the pages of families that are no more."""
    folder = source / "reference"
    folder.mkdir(exist_ok=True)
    wanted = {"all_names.md": ALL_NAMES}
    for headings in families().values():
        for heading, names in headings.items():
            if names:
                wanted[f"{slug(heading)}.md"] = (
                    f"# {heading}\n\n```{{varmat-family}} {heading}\n```\n"
                )
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        # A page that is as it was keeps its time, so that Sphinx does not read it again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


ALL_NAMES = """# All names

Every public name of `varmat`, with the family that it belongs to. Type into the box: each word
narrows the list.

```{varmat-all-names}
```
"""


def first_sentence(thing: Any) -> str:
    """What a docstring begins with, as MyST."""
    paragraph = inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=[.:])\s", paragraph)[0].rstrip(":")
    sentence = re.sub(r":[a-z:]+:`([^`]*)`", r"`\1`", sentence)
    return re.sub(r"`+", "`", sentence).replace("|", "\\|")


def table(
    names: list[str], module: str = "varmat", families_of: dict[str, str] | None = None
) -> list[str]:
    """Names with their first sentences, and with their families where these are given."""
    lines = ["````{div} names", "```{list-table}", ":header-rows: 1"]
    lines += (
        [":class: names-table of-all wide", ":widths: 25 50 25"]
        if families_of
        else [":class: names-table", ":widths: 30 70"]
    )
    lines.append("")
    lines += ["* - name", "  - what it is", *(["  - family"] if families_of else [])]
    for name in names:
        lines += [
            f"* - {{py:obj}}`{name} <{module}.{name}>`",
            f"  - {first_sentence(getattr(sys.modules[module], name))}",
        ]
        if families_of:
            lines.append(f"  - [{families_of[name]}]({slug(families_of[name])}.md)")
    return [*lines, "```", "````", ""]


def entries(module: str, names: list[str], members: Sequence[str] = ()) -> list[str]:
    """A table of objects of a module, then their docstrings. Of classes those of the `members` that
    are their own are told, or all.
    """
    lines = [*table(names, module), "```{eval-rst}"]
    for name in names:
        thing = getattr(sys.modules[module], name)
        if isinstance(thing, type) and members:
            own = [each for each in members if getattr(vars(thing).get(each), "__doc__", None)]
            told = [f"   :members: {', '.join(own)}"] if own else []
            lines += [f".. autoclass:: {module}.{name}", *told, ""]
        elif isinstance(thing, type):
            lines += [
                f".. autoclass:: {module}.{name}",
                "   :members:",
                f"   :inherited-members: {FOREIGN}",
                "",
            ]
        else:
            lines += [
                f".. {'autofunction' if callable(thing) else 'autodata'}:: {module}.{name}",
                "",
            ]
    return [*lines, "```", ""]


def links(names: Sequence[str]) -> str:
    """Public names, each with a link to its entry."""
    return ", ".join(f"{{py:obj}}`{name} <varmat.{name}>`" for name in names)


def two_columns(rows: dict[str, str]) -> list[str]:
    """A table of headings and what belongs to them."""
    lines = ["```{list-table}", ":class: families-table", ":widths: 35 65", ""]
    for heading, text in rows.items():
        lines += [f"* - {heading}", f"  - {text}"]
    return [*lines, "```"]


class Reference(SphinxDirective):
    """The families of a part of varmat: a table of them, and their place in the navigation."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        part = {heading: names for heading, names in families()[self.arguments[0]].items() if names}
        lines = ["```{toctree}", ":hidden:", f":caption: {self.arguments[0]}", ""]
        lines += [f"reference/{slug(heading)}" for heading in part]
        lines += ["```", ""]
        rows = {}
        for heading, names in part.items():
            some = names if len(names) < 9 else names[: 9 * (len(names) // 9) : len(names) // 9]
            more = "" if some is names else f", … ({len(names)})"
            rows[f"[{heading}](reference/{slug(heading)}.md)"] = links(some) + more
        return self.parse_text_to_nodes("\n".join([*lines, *two_columns(rows)]))


class Everyday(SphinxDirective):
    """The names to meet first."""

    def run(self) -> list[nodes.Node]:
        rows = {heading: links(names.split()) for heading, names in EVERYDAY.items()}
        return self.parse_text_to_nodes("\n".join(two_columns(rows)))


class Family(SphinxDirective):
    """The public objects of a family."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        for headings in families().values():
            if self.arguments[0] in headings:
                return self.parse_text_to_nodes(
                    "\n".join(entries("varmat", headings[self.arguments[0]]))
                )
        raise self.error(f"families.py has no family {self.arguments[0]!r}")


class AllNames(SphinxDirective):
    """Every public name, its first sentence and its family."""

    def run(self) -> list[nodes.Node]:
        of = {
            name: heading
            for headings in families().values()
            for heading, names in headings.items()
            for name in names
        }
        return self.parse_text_to_nodes("\n".join(table(sorted(of, key=str.lower), families_of=of)))


class ModuleReference(SphinxDirective):
    """The public objects of a module that is imported by itself: its name, then the members of
    classes that are told, if not all are.
    """

    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        name, *members = self.arguments
        module = importlib.import_module(name)
        names = [
            each for each in module.__all__ if not isinstance(getattr(module, each), ModuleType)
        ]
        return self.parse_text_to_nodes("\n".join(entries(name, names, members)))


def home_of(name: str) -> str:
    """The module below varmat that defines a class."""
    for info in pkgutil.walk_packages(varmat.__path__, "varmat."):
        # The reference has no class of these, and some of them need llvmlite or pytest.
        if info.name.startswith(("varmat.programs.run.", "varmat.testing.")):
            continue
        thing = getattr(importlib.import_module(info.name), name, None)
        if isinstance(thing, type) and thing.__module__ == info.name:
            return info.name
    raise LookupError(f"no module below varmat defines a class {name}")


class Result(SphinxDirective):
    """A class that functions return: its name, then the members that are told."""

    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        name, *members = self.arguments
        lines = ["```{eval-rst}", f".. autoclass:: {home_of(name)}.{name}"]
        lines += [f"   :members: {', '.join(members)}"] if members else []
        return self.parse_text_to_nodes("\n".join([*lines, "```"]))


class NumpyTable(SphinxDirective):
    """What varmat answers when a NumPy function is called on variables."""

    def run(self) -> list[nodes.Node]:
        rows = []
        for key in dispatch.SUPPORTED:
            if isinstance(key, str):
                rows.append((key.replace("numpy", "np", 1), "supported"))
            elif isinstance(key, tuple):
                rows.append((f"{_full_name(key[0])}.{key[1]}", "supported"))
            elif _is_numpy(key):
                rows.append((_full_name(key), "supported"))
        rows += [
            (_full_name(f), "a constant: evaluated on the values")
            for f in dispatch.CONSTANT
            if _is_numpy(f)
        ]
        rows += [
            (_full_name(f), f"refused: {sentence}")
            for f, sentence in dispatch.REFUSED.items()
            if _is_numpy(f)
        ]
        lines = [
            "```{list-table}",
            ":header-rows: 1",
            ":class: wide",
            ":widths: 35 65",
            "",
            "* - function",
            "  - answer",
        ]
        for name, answer in sorted(set(rows)):
            lines += [f"* - `{name}`", "  - " + re.sub(r"([*_`|\[\]])", r"\\\1", answer)]
        return self.parse_text_to_nodes("\n".join([*lines, "```"]))


def _is_numpy(function: Any) -> bool:
    if isinstance(function, str):  # a whole module
        return True
    module = getattr(function, "__module__", None) or "numpy"
    return module.startswith("numpy.") or (module == "numpy" and hasattr(np, function.__name__))


def _full_name(function: Any) -> str:
    if isinstance(function, str):
        return f"{function}.*".replace("numpy", "np", 1)
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{function.__name__}".replace("numpy", "np", 1)


def share_template() -> None:
    """Let numpydoc compile its template once. By itself it does so twice for each docstring."""
    shared: dict[str, Any] = {}
    made = docscrape_sphinx.SandboxedEnvironment
    docscrape_sphinx.SandboxedEnvironment = lambda loader: shared.setdefault(
        "environment", made(loader=loader)
    )


def short_citations(app: Any, tree: nodes.document, page: str) -> None:
    """Show references to citations by their numbers, without what numpydoc puts before them."""
    for text in [*tree.findall(nodes.Text)]:
        short = re.sub(r"\[R[0-9a-f]{10,}-(\w+)\]", r"[\1]", text)
        if short != text:
            text.parent.replace(text, nodes.Text(short))


def setup(app: Any) -> dict[str, Any]:
    share_template()
    app.connect("doctree-resolved", short_citations)
    app.add_directive("varmat-everyday", Everyday)
    app.add_directive("varmat-reference", Reference)
    app.add_directive("varmat-family", Family)
    app.add_directive("varmat-all-names", AllNames)
    app.add_directive("varmat-module-reference", ModuleReference)
    app.add_directive("varmat-result", Result)
    app.add_directive("varmat-numpy-table", NumpyTable)
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
