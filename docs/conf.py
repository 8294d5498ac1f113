"""Configuration of Sphinx, and the directives that make the reference from the library itself."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from varmat.core import dispatch

sys.path.insert(0, str(Path(__file__).parent))
from families import families

project = "varmat"
author = "The varmat developers"
version = release = installed_version("varmat")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["_build", "coverage_table.md"]
html_theme = "alabaster"
html_theme_options = {"description": "Exact gradients of NumPy code", "page_width": "64rem"}
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
# The pages are also read outside Sphinx, so links to files of the repository stay as they are.
suppress_warnings = ["myst.xref_missing"]
myst_heading_anchors = 3


# The classes whose members, and those of classes above them, are not told again.
FOREIGN = "ArrayMethods, ndarray, ValueError, RuntimeError"


def entries(module: str, names: list[str]) -> list[str]:
    """What is printed of objects of a module: their names on top, then their docstrings."""
    lines = [
        " · ".join(f"{{py:obj}}`{name} <{module}.{name}>`" for name in names),
        "",
        "```{eval-rst}",
    ]
    for name in names:
        thing = getattr(sys.modules[module], name)
        if isinstance(thing, type):
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


class Reference(SphinxDirective):
    """The public objects of a part of varmat, by family."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        for heading, names in families()[self.arguments[0]].items():
            if names:
                lines += [f"### {heading}", "", *entries("varmat", names)]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


class ModuleReference(SphinxDirective):
    """The public objects of a module that is imported by itself."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        module = importlib.import_module(name)
        names = [
            each for each in module.__all__ if not isinstance(getattr(module, each), ModuleType)
        ]
        return self.parse_text_to_nodes("\n".join(entries(name, names)))


class NumpyTable(SphinxDirective):
    """What varmat answers when a NumPy function is called on variables."""

    def run(self) -> list[nodes.Node]:
        rows = [(_full_name(f), "supported") for f in dispatch.SUPPORTED if _is_numpy(f)]
        rows += [(name.replace("numpy", "np", 1), "supported") for name in dispatch.BY_NAME]
        rows += [(f"{_full_name(f)}.{method}", "supported") for f, method in dispatch.UFUNC_METHODS]
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
        lines = ["| function | answer |", "|---|---|"]
        for name, answer in sorted(set(rows)):
            lines.append(f"| `{name}` | " + re.sub(r"([*_`|\[\]])", r"\\\1", answer) + " |")
        return self.parse_text_to_nodes("\n".join(lines))


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


def setup(app: Any) -> None:
    app.add_directive("varmat-reference", Reference)
    app.add_directive("varmat-module-reference", ModuleReference)
    app.add_directive("varmat-numpy-table", NumpyTable)
