"""Formulas as MathML, which browsers set by themselves, without a script and without a network."""

from __future__ import annotations

from typing import Any

from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def converted(text: str, node: Any, as_block: bool) -> str:
    try:
        return tex2mathml(text, as_block)
    except MathError as error:
        logger.warning("no MathML for the formula %r: %s", text, error, location=node)
        return f"<code>{text}</code>"


def inline(self: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    self.body.append(converted(node.astext(), node, False))
    raise SkipNode


def block(self: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    self.body.append(
        self.starttag(node, "div", CLASS="math") + converted(node.astext(), node, True) + "</div>\n"
    )
    raise SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
