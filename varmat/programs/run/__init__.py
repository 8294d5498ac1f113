"""Runners execute programs: `numpy` by bound calls of NumPy, `native` by machine
code that LLVM makes.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING

from varmat.interrupts import uninterrupted
from varmat.programs.ir.program import Program

if TYPE_CHECKING:
    from varmat.programs.run.native import NativeRunner
    from varmat.programs.run.numpy import NumpyRunner

RUNNERS = ("auto", "numpy", "native")


def check_runner(function: str, runner: str) -> str:
    """Refuse what is no runner, and the native one where it is not installed."""
    if runner not in RUNNERS:
        raise ValueError(
            f"{function}: runner is {runner!r}, but must be one of {', '.join(map(repr, RUNNERS))}!"
        )
    if runner == "native" and not has_native():
        raise ImportError(
            f"{function}: the native runner needs llvmlite, which is not installed: in a clone of "
            'varmat, pip install -e ".[native]"'
        )
    return runner


@cache
def has_native() -> bool:
    """Whether the native runner is installed; it is not imported for that."""
    return importlib.util.find_spec("llvmlite") is not None


def runner_for(program: Program, runner: str = "auto") -> NativeRunner | NumpyRunner:
    """What runs a program: a function from the list of arguments to the list of outputs."""
    if runner == "native" or (runner == "auto" and has_native()):
        with uninterrupted():
            from varmat.programs.run.native import NativeRunner
        return NativeRunner(program)
    from varmat.programs.run.numpy import NumpyRunner

    return NumpyRunner(program)
