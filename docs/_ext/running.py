"""The directive `varmat-run`: code of a page that runs while the site is built.

What it prints and draws stands under it. All blocks of a page share their names, as the cells of a
notebook do. Figures become SVG inside the page, and their ink is the colour of the text around
them, so that they are as legible on a dark page as on a light one.
"""

from __future__ import annotations

import html
import io
import re
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

# Each has a contrast of about 3 to 1 or more with white and with the dark page.
CYCLE = ["#2a7de1", "#d9601a", "#1f9a6b", "#b657c9", "#a8842c", "#d94a6a"]
STYLE: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
    "svg.hashsalt": "varmat",
}


def use_style() -> None:
    """Make matplotlib draw in the style of the site."""
    import matplotlib as mpl
    from cycler import cycler

    mpl.use("agg")
    mpl.rcParams.update(STYLE | {"axes.prop_cycle": cycler(color=CYCLE)})


def saved(figure: Any, target: Any, **settings: Any) -> None:
    """Save a figure without its background, also while the gallery replaces `savefig`."""
    from matplotlib.figure import Figure

    getattr(Figure.savefig, "original", Figure.savefig)(
        figure, target, transparent=True, **settings
    )


def inlined(figure: Any, alt: str) -> str:
    """A figure as SVG for the inside of a page."""
    text = io.StringIO()
    saved(figure, text, format="svg", metadata={"Date": None})
    svg = text.getvalue()[text.getvalue().index("<svg") :]
    # What matplotlib leaves without a colour is black, which here is the colour of the text.
    svg = re.sub(r"(?<=: )#000000", "currentColor", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r"(?:#|url\(#)([\w.-]+)", svg))
    svg = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", svg)
    width, height = (float(n) for n in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())  # type: ignore[union-attr]
    # As large as matplotlib means it where there is room, and never too small to read.
    sizes = f"max-width: {width * 4 / 3:.0f}px; min-width: {width * 0.82:.0f}px"
    label = html.escape(alt, quote=True)
    opening = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'role="img" aria-label="{label}" '
        f'viewBox="0 0 {width:g} {height:g}" style="{sizes}" fill="currentColor">'
    )
    svg = re.sub("<svg.*?>", lambda _: opening, svg, count=1, flags=re.DOTALL)
    return f'<div class="figure-inline">{svg}</div>'


def open_figures() -> list[Any]:
    """The figures of pyplot, which are closed."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot

    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return figures


class Run(SphinxDirective):
    """Run the code, and show it with what it printed and drew."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "alt": directives.unchanged_required,  # what the figure shows, for those who do not see it
        "hide-code": directives.flag,
        "caption": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        source = "\n".join(self.content)
        spaces = self.env.temp_data.setdefault("varmat-run", {})
        use_style()
        printed = io.StringIO()
        with redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path, line = self.get_source_info()
            # Blank lines in front make the line numbers of a traceback those of the page.
            exec(compile("\n" * (line + len(self.options)) + source, path, "exec"), spaces)
        found: list[nodes.Node] = []
        if "hide-code" not in self.options:
            found.append(nodes.literal_block(source, source, language="python"))
        if printed.getvalue():
            text = printed.getvalue().rstrip("\n")
            found.append(nodes.literal_block(text, text, language="none", classes=["run-output"]))
        figures = open_figures()
        if figures and "alt" not in self.options:
            raise self.error("a block that draws says in its option alt what is to be seen")
        for figure in figures:
            found.append(nodes.raw("", inlined(figure, self.options["alt"]), format="html"))
        if "caption" in self.options:
            children, _ = self.state.inline_text(self.options["caption"], self.lineno)
            found.append(nodes.paragraph("", "", *children, classes=["run-caption"]))
        return found


class Drawing(SphinxDirective):
    """An SVG file of `_static`, put into the page, where it takes the colours of the text."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir) / "_static" / self.arguments[0]
        self.env.note_dependency(str(path))
        svg = path.read_text(encoding="utf-8")
        return [nodes.raw("", f'<div class="figure-inline drawing">{svg}</div>', format="html")]


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("varmat-run", Run)
    app.add_directive("varmat-drawing", Drawing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
