"""Runners execute programs: `numpy` by bound calls of NumPy, `native` by machine
code that LLVM makes.
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import TYPE_CHECKING

from varmat.interrupts import Attempt, uninterrupted
from varmat.locks import Once
from varmat.programs.ir.program import Program

if TYPE_CHECKING:
    from varmat.programs.run.native import NativeRunner
    from varmat.programs.run.numpy import NumpyRunner

RUNNERS = ("auto", "numpy", "native")
# The first release of llvmlite that has all that is called of it.
LEAST = (0, 46)


def check_runner(function: str, runner: str) -> str:
    """Raise if the runner does not exist, or is native and this process has none."""
    if runner not in RUNNERS:
        raise ValueError(
            f"{function}: runner is {runner!r}, but must be one of {', '.join(map(repr, RUNNERS))}!"
        )
    if runner == "native" and why_not_native():
        raise ImportError(f"{function}: {why_not_native()}")
    return runner


def _is_installed() -> bool:
    return importlib.util.find_spec("llvmlite") is not None


@Once
def why_not_native() -> str:
    """Return why this process has no native runner; empty if it has one.

    It is decided once, by a function that is compiled and called: where memory may not be made
    executable, a call ends the process, and other releases of llvmlite raise other errors.
    """
    if not _is_installed():
        return (
            "the native runner needs llvmlite, which is not installed: in a clone of varmat, "
            'pip install -e ".[native]"'
        )
    # Any error of another library, because its release and its state are not known.
    with uninterrupted(), Attempt() as failed:
        import llvmlite

        version = llvmlite.__version__
        if tuple(int(name) for name in version.split(".")[:2]) < LEAST:
            least = ".".join(map(str, LEAST))
            return f"the native runner needs llvmlite {least} or newer, but {version} is installed"
        from varmat.programs.run.compiler import try_out

        try_out()
    if failed.error is not None:
        kind, text = type(failed.error).__name__, " ".join(str(failed.error).split())
        return f"the native runner cannot use llvmlite here: {kind}: {text}"
    return ""


def has_native() -> bool:
    """Return whether this process has the native runner."""
    return not why_not_native()


@Once
def _warn(reason: str) -> None:
    text = f"recorded functions run in NumPy, several times as slow: {reason}"
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def runner_for(program: Program, runner: str = "auto") -> NativeRunner | NumpyRunner:
    """Make the runner of a program: a function from a list of arguments to a list of outputs."""
    if runner == "native" or (runner == "auto" and has_native()):
        with uninterrupted():
            from varmat.programs.run.compiler import UnresolvedError
            from varmat.programs.run.native import NativeRunner
        try:
            return NativeRunner(program)
        except UnresolvedError as error:
            if runner == "native":
                raise
            _warn(str(error))
    elif runner == "auto":
        _warn(why_not_native())
    from varmat.programs.run.numpy import NumpyRunner

    return NumpyRunner(program)
