"""Configuration of Sphinx. The modules in `_ext` make what is made while the site is built."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

# One thread for BLAS, before NumPy is imported: the pages show times.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Collect garbage rarely, because the trees of the pages are large and hardly any of it is garbage:
# with Python's own thresholds a seventh of the time goes into looking for it.
gc.set_threshold(50_000, 50, 1000)

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "_ext")]

from gallery import options_of, scraper, with_style  # noqa: E402 - found by the path above

project = "varmat"
author = "The varmat developers"
copyright = "the varmat developers"
version = release = installed_version("varmat")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "reference",
    "running",
]
exclude_patterns = [
    "_build",
    "_ext",
    "coverage_table.md",
    "examples/README.rst",
    "examples/*.ipynb",
]

html_title = "varmat"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("filter.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "changes": []}
html_theme_options = {
    "logo": {
        "text": f"varmat {version}",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "alt_text": "varmat",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

add_function_parentheses = False
toc_object_entries_show_parents = "hide"
# The docstrings say what is taken and returned, with shapes.
autodoc_typehints = "none"
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
# The pages are also read outside Sphinx, so links to files of the repository stay as they are.
suppress_warnings = ["myst.xref_missing", "config.cache"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "image_scrapers": (scraper,),
    "reset_argv": options_of,
    "reset_modules": (with_style,),
    "reset_modules_order": "before",
    "only_warn_on_example_error": False,
    "abort_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    # In as many processes as the option -j of sphinx-build says.
    "parallel": True,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),
    "thumbnail_size": (440, 275),
    "copyfile_regex": r"^$",
}

# What `asv publish` made, where somebody has called it, is copied into the site, and linked.
HISTORY = HERE.parent / ".asv" / "html"


def copy_history(app: Any, error: Exception | None) -> None:
    if error is None and HISTORY.is_dir() and app.builder.format == "html":
        shutil.copytree(HISTORY, Path(app.outdir) / "history", dirs_exist_ok=True)


def leave_out_of_search(app: Any, tree: Any) -> None:
    """Leave out pages that name everything and explain nothing to those who search."""
    if app.env.docname in ("changes", "design"):
        app.env.metadata[app.env.docname]["nosearch"] = True


def setup(app: Any) -> None:
    app.connect("doctree-read", leave_out_of_search)
    if HISTORY.is_dir():
        app.tags.add("history")
    app.connect("build-finished", copy_history)
