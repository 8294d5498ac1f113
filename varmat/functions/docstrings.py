"""Docstrings of families of functions.

The text is written once, with fields in braces for the words that differ, at one of the functions,
or at the function that makes them or is called by all of them.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def indented(function: Callable[..., Any]) -> str:
    """Return the docstring of a function, indented by four blanks, which some Pythons strip."""
    return textwrap.indent(inspect.cleandoc(function.__doc__ or ""), " " * 4).lstrip()


def filled(
    name: str = "", like: Callable[..., Any] | None = None, /, **words: str
) -> Callable[[F], F]:
    """Name the decorated function, and fill in its docstring or the one of `like`.

    The field ``{name}`` becomes the name of the function.
    """

    def fill(function: F) -> F:
        function.__name__ = function.__qualname__ = name or function.__name__
        function.__doc__ = indented(like or function).format(name=function.__name__, **words)
        return function

    return fill
