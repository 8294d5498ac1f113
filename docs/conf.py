"""Configuration of Sphinx, and the two directives that make the reference from the library itself."""

from __future__ import annotations

import importlib
import pkgutil
import re
from importlib.metadata import version as installed_version
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import varmat
from varmat.core import dispatch

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


def families() -> dict[str, list[str]]:
    """Name of a module -> the public names that it contributes, each name once."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for info in sorted(pkgutil.walk_packages(varmat.__path__, "varmat."), key=lambda info: info.name):
        if info.ispkg:
            continue
        module = importlib.import_module(info.name)
        names = [name for name in getattr(module, "__all__", []) if name not in seen and hasattr(varmat, name)]
        if names:
            found[info.name] = sorted(names, key=str.lower)
            seen.update(names)
    return found


class Reference(SphinxDirective):
    """All public objects, by module, from their docstrings."""

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        found = families()
        if missing := set(varmat.__all__).difference(*found.values()):
            raise self.error(f"no module lists {', '.join(sorted(missing))} in its __all__")
        for module_name, names in found.items():
            title = (importlib.import_module(module_name).__doc__ or module_name).strip().splitlines()[0].rstrip(".")
            lines += [f"## {title}", "", f"`{module_name}`", "", "```{eval-rst}"]
            for name in names:
                if isinstance(getattr(varmat, name), type):
                    lines += [f".. autoclass:: varmat.{name}", "   :members:", f"   :inherited-members: {FOREIGN}", ""]
                else:
                    lines += [f".. autofunction:: varmat.{name}", ""]
            lines += ["```", ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


class NumpyTable(SphinxDirective):
    """What varmat answers when a NumPy function is called on variables."""

    def run(self) -> list[nodes.Node]:
        rows = [(_full_name(f), "supported") for f in dispatch.SUPPORTED if _is_numpy(f)]
        rows += [(name.replace("numpy", "np", 1), "supported") for name in dispatch.BY_NAME]
        rows += [(f"{_full_name(f)}.{method}", "supported") for f, method in dispatch.UFUNC_METHODS]
        rows += [(_full_name(f), "a constant: evaluated on the values") for f in dispatch.CONSTANT if _is_numpy(f)]
        rows += [(_full_name(f), f"refused: {sentence}") for f, sentence in dispatch.REFUSED.items() if _is_numpy(f)]
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
    app.add_directive("varmat-numpy-table", NumpyTable)
