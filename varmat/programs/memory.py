"""The memory of programs: arrays are not copied for nothing, and not kept for longer than somebody reads them.

A program copies an array before it assigns into it, and need not if nobody reads the old one any more.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping

from varmat.core.arena import LARGE
from varmat.programs.blocks import Shape, is_elementwise
from varmat.programs.statements import SAVED, Statement, called

# The target of an assignment into an array.
_INTO = re.compile(r"[\w)]\[")

# Methods and functions that keep nothing of their argument.
_NUMBERS = frozenset({"dot", "item", "total", "vdot", "whole", "float", "summed"})
_NEW = frozenset({"copied", "copy", "empty", "filled", "zeros"})


def without_needless_copies(statements: list[Statement], functions: Iterable[str], views: set[str]) -> list[Statement]:
    """Leave out the copies of arrays that were made here, and that nothing reads afterwards, nor any view of them.

    Parameters
    ----------
    statements : list of Statement
    functions : iterable of str
        The elementwise functions.
    views : set of str
        The names of views of other arrays.
    """
    if not any(called(s.value) == "copy" for s in statements):
        return statements
    known = frozenset(functions)
    # Name of an array made here, or of a view of it or of another name for it -> the name under which it was made.
    base: dict[str, str] = {}
    kept_by_others: set[str] = set()
    last_read: dict[str, int] = {}
    for i, s in enumerate(statements):
        read = {base[name] for name in s.loaded & base.keys()}
        last_read.update(dict.fromkeys(read, i))
        if not s.target:
            # Into an array values are copied; everything else that takes arrays may keep them.
            if isinstance(s.tree, ast.Expr) or not s.written:
                kept_by_others |= read
        elif isinstance(s.value, ast.Name) or s.target in views:
            if read:
                (base[s.target],) = read
        elif called(s.value) in _NEW or is_elementwise(s.value, known):
            base[s.target] = s.target
        elif called(s.value) not in _NUMBERS:
            kept_by_others |= read
    shortened = []
    for i, s in enumerate(statements):
        old, _, order = s.text.partition(" = ")[2].partition(".copy") if called(s.value) == "copy" else ("", "", "")
        needless = old in base and base[old] not in kept_by_others and last_read[base[old]] == i
        same = old if order == "()" else f"contiguous({old})"
        shortened.append(Statement(f"{s.target} = {same}") if needless else s)
    return shortened


def with_deletions(lines: list[str], shapes: Mapping[str, Shape]) -> list[str]:
    """Let go of large arrays after their last use, so that the next ones are made in their memory, which is warm."""
    large = {name for name, shape in shapes.items() if math.prod(shape) > LARGE}
    if not large:
        return lines
    # A loop is gone through as a whole.
    groups: list[list[str]] = []
    for line in lines:
        if line.startswith(" "):
            groups[-1].append(line)
        else:
            groups.append([line])
    names = [set(re.findall(r"\w+", " ".join(group))) for group in groups]
    last = {name: i for i, found in enumerate(names) for name in found}
    last = {name: i for name, i in last.items() if name.removesuffix("_whole") in large or SAVED.match(name)}
    result = []
    made: set[str] = set()
    for i, group in enumerate(groups):
        result += group
        targets = [line.partition(" = ")[0] for line in group if " = " in line]
        made |= {name for target in targets if not _INTO.search(target) for name in re.findall(r"\w+", target)}
        gone = sorted(name for name in names[i] & made if last.get(name) == i < len(groups) - 1)
        result += [f"del {', '.join(gone)}"] if gone else []
    return result
