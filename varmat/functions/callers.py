"""The name by which the caller called a function, for messages. Nothing here runs unless something
is refused.

A function with several names is one object, which cannot know by which name it was called. The code
of the caller tells."""

from __future__ import annotations

import dis
import sys
from functools import cache
from pathlib import Path
from types import FrameType

from varmat.core import errors
from varmat.typing import Result


def outside(frame: FrameType | None, *packages: str) -> Result:
    """The first frame outwards from the given one that belongs to none of the packages, or None."""
    while frame is not None:
        code_of_text = frame.f_code.co_filename.startswith(("<varmat ", "<rule: "))
        if (
            not code_of_text
            and frame.f_globals.get("__name__", "").partition(".")[0] not in packages
        ):
            break
        frame = frame.f_back
    return frame


def file_in_library(frame: FrameType | None) -> str:
    """The file of a frame as a path below the folder of installed packages, or nothing."""
    parts = Path(frame.f_code.co_filename).parts if frame is not None else ()
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return "/".join(parts[parts.index(folder) + 1 :])
    return ""


def in_library(frame: FrameType | None) -> str:
    """Where an installed package does something with a variable, for messages: empty if the code
    that does it is the user's.
    """
    frame = outside(frame, "varmat", "numpy", "scipy", "contextlib", "functools")
    file = file_in_library(frame)
    return f" inside {file}:{frame.f_lineno}" if file and frame is not None else ""


def what_runs(frame: FrameType | None) -> tuple[str, str]:
    """The instruction that a frame executes, and, for a call, the name of what it calls."""
    if frame is None:
        return "", ""
    steps = [each for each in dis.get_instructions(frame.f_code) if each.offset <= frame.f_lasti]
    if not steps:
        return "", ""
    here = steps[-1].positions
    start = (here.lineno, here.col_offset) if here else None
    name = ""
    # the callee is the longest expression before the arguments that begins where the call does
    for each in reversed(steps):
        at = each.positions
        loads = each.opname.startswith("LOAD_") and isinstance(each.argval, str)
        if loads and at and at.lineno is not None and (at.lineno, at.col_offset) == start:
            name = each.argval
            break
    return steps[-1].opname, name


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """The name of a function in messages -> its other public names."""
    found: dict[str, list[str]] = {}
    # functions that are imported later have one name each
    for name, thing in list(vars(sys.modules["varmat"]).items()):
        own = getattr(thing, "__name__", name) if callable(thing) else name
        if own != name and not name.startswith("_"):
            found.setdefault(own, []).append(name)
    return {own: tuple(names) for own, names in found.items()}


def renamed(text: str) -> str:
    """A message that begins with the name of a function, with the name that the caller's code uses
    instead.
    """
    own, colon, _ = text.partition(":")
    others = synonyms().get(own) if colon else None
    if others is None:
        return text
    frame = outside(sys._getframe(2), "varmat", "numpy", "contextlib", "functools")
    if frame is None:
        return text
    code = frame.f_code
    there = {*code.co_names, *code.co_varnames, *code.co_freevars}
    names = [name for name in (own, *others) if name in there]
    # Reading the instructions takes a hundred times as long, and is needed only if several names
    # occur.
    name = what_runs(frame)[1] if len(names) > 1 else names[0] if names else own
    return (
        text
        if name == own or name not in others
        else name + text[len(own) :].replace(f" {own}(", f" {name}(")
    )


errors.RENAME.append(renamed)
