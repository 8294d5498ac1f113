"""Checks that functions of several families share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.errors import ShapeError
from varmat.core.tape import ALWAYS, Rule
from varmat.core.variables import VARIABLES
from varmat.programs.program import Program, writes

__all__: list[str] = []


def check_values(check: Callable[[Any], None], x: Any) -> None:
    """Call a function that may refuse the plain value of an operand: now, and whenever a recording of this is run."""
    if type(x) not in VARIABLES:
        check(plain(x))
        return
    check(x._val)
    tape = x._tape
    if tape.watch is not None:
        tape.top.append((_CHECK, ALWAYS, x, check))


_CHECK = Rule("check", lambda result, x, check: None)


@writes(_CHECK)
def _write_check(program: Program, rule: Any, result: Any, x: Any, check: Any) -> None:
    program.write(f"{program.bind(check)}({program.find(x).name})")


def check_square(function: str, name: str, shape: tuple[int, ...]) -> None:
    """Raise `ShapeError` unless `shape` is that of a square matrix or a stack of them."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"{function}: {name} has shape {shape}, but must be a square matrix (or a stack of them)!")


def check_matrix(function: str, name: str, x: Any) -> None:
    """Raise `ShapeError` unless `x` is a matrix or a stack of them."""
    if np.ndim(x) < 2:
        raise ShapeError(f"{function}: {name} has shape {np.shape(x)}, but must be a matrix (or a stack of them)!")


def broadcastable(*shapes: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes go together."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True
