"""The gallery of the examples: how sphinx-gallery runs them and where it finds their figures.

The examples are scripts for the command line, so they run with the options `--quick` and
`--output`, and save their figure to a file. Here nothing is saved: the figure goes into the page as
SVG, and a small picture of it without words becomes the thumbnail.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from running import inlined, saved, use_style

# Seen on a light and on a dark card.
INK = "#7d848c"
_saved: list[Any] = []


def options_of(_: Any, __: Any) -> list[str]:
    """What an example is called with, for sphinx-gallery's `reset_argv`."""
    return ["--quick", "--output", tempfile.gettempdir()]


def with_style(_: Any, __: Any) -> None:
    """Before an example: the style of the site, and a `Figure.savefig` that keeps the figure."""
    from matplotlib.figure import Figure

    use_style()
    _saved.clear()

    def savefig(self: Any, *_: Any, **__: Any) -> None:
        _saved.append(self)

    savefig.original = getattr(Figure.savefig, "original", Figure.savefig)  # type: ignore[attr-defined]
    Figure.savefig = savefig  # type: ignore[method-assign, assignment]


def thumbnail(figure: Any, path: Path) -> None:
    """Save a figure with what is black in grey, and without words, which would be too small."""
    import matplotlib as mpl

    for part in figure.findobj():
        for name in ("color", "edgecolor", "facecolor", "markeredgecolor", "markerfacecolor"):
            colour = getattr(part, f"get_{name}", lambda: None)()
            if (
                isinstance(colour, str | tuple)
                and mpl.colors.is_color_like(colour)
                and mpl.colors.to_hex(colour) == "#000000"
            ):
                alpha = mpl.colors.to_rgba(colour)[3]
                getattr(part, f"set_{name}")((*mpl.colors.to_rgb(INK), alpha))
    for axes in figure.axes:
        axes.tick_params(which="both", color=INK, labelbottom=False, labelleft=False)
        axes.set(title="", xlabel="", ylabel="")
    for part in (*figure.legends, *(axes.get_legend() for axes in figure.axes), figure._suptitle):
        if part is not None:
            part.remove()
    # A smaller sheet makes lines and points larger beside it.
    figure.set_size_inches(4.4, 2.75)
    path.parent.mkdir(parents=True, exist_ok=True)
    saved(figure, path, dpi=100)


def scraper(_: Any, variables: dict[str, Any], __: Any) -> str:
    """The figures of an example, as reStructuredText."""
    found, figures = [], _saved.copy()
    _saved.clear()
    title = Path(variables["src_file"]).read_text(encoding="utf-8").split("\n", 1)[0].strip('"')
    for figure in figures:
        svg = inlined(figure, f"The figure of the example: {title}")
        thumbnail(figure, Path(next(variables["image_path_iterator"])))
        found.append(".. raw:: html\n\n    " + svg.replace("\n", "\n    ") + "\n")
    _saved.clear()
    return "\n".join(found)
