"""Functions of NumPy and conversions that have no derivative here, each with a sentence that names
what to use instead.
"""

from __future__ import annotations

import dis
import sys
from pathlib import Path
from types import FrameType

import numpy as np
from numpy._core import umath

from varmat.core.dispatch import HOOKS, PATCHED, REFUSED
from varmat.functions.arrays.constant import named
from varmat.typing import Operand, Result

_INTEGERS = (
    "it works on integers, and variables are real numbers; pass x.astype(int), which is a constant"
)
_STRINGS = "it works on strings, and variables are real numbers"
_DATES = "it works on dates, and variables are real numbers"
_COUNTS = (
    "counts have no derivative, and its bin edges may depend on the data; pass the plain numbers, "
    "varmat.value(x), and for sums of weights w use np.bincount(np.digitize(data, edges), "
    "weights=w)"
)
_FILES = "a file holds plain numbers; write varmat.value(x)"
_SETS = (
    "use np.unique of np.concatenate, or pass the plain numbers, varmat.value(x), to select with"
)
_SCIMATH = "it may turn to complex numbers; use the function of the same name in np itself"

_ROOTS = (
    "use np.linalg.eigvals of the companion matrix, or differentiate the equation that a root "
    "solves"
)
_NEXT = "the next floating-point number has no derivative; use np.finfo for a step size"

# Sentence -> names of functions in np.
FUNCTIONS = {
    "its result is complex, also of real numbers; use np.sort of these": "sort_complex",
    _ROOTS: "roots",
    _INTEGERS: "ravel_multi_index unravel_index packbits unpackbits",
    _DATES: "busday_count busday_offset is_busday datetime_as_string",
    _COUNTS: "histogram2d histogramdd histogram_bin_edges",
    _FILES: "save savez savez_compressed savetxt",
    _SETS: "intersect1d setdiff1d setxor1d union1d",
    "use np.meshgrid with sparse=True": "ix_",
    "use np.polyval of the two polynomials": "polydiv",
}
UFUNCS = {
    _INTEGERS: "bitwise_and bitwise_or bitwise_xor bitwise_count invert left_shift right_shift gcd "
    "lcm",
    _DATES: "isnat",
    _NEXT: "nextafter spacing",
    "its exponent is an integer; use np.log2 and np.floor": "frexp",
}
# Modules all of whose functions are refused. They are named, because importing them would make
# `import varmat` slower.
MODULES = {
    "numpy.lib.recfunctions": "it works on structured arrays, and variables are float64",
    "numpy.lib.scimath": _SCIMATH,
    "numpy.lib._scimath_impl": _SCIMATH,  # its name before NumPy 2.1
    "numpy.strings": _STRINGS,
    "numpy.char": _STRINGS,
    "numpy.polynomial.polynomial": "use np.polyval in one variable after the other",
}


def _refuse(module: Operand, table: dict[str, str]) -> None:
    for sentence, names in table.items():
        REFUSED.update(dict.fromkeys(named(names, module), sentence))


_refuse(np, FUNCTIONS)
_refuse(np, UFUNCS)
REFUSED.update(MODULES)


# NumPy's ufuncs for strings are private. They are recognised by having no loop for numbers.
REFUSED.update(
    (ufunc, _STRINGS)
    for ufunc in vars(umath).values()
    if isinstance(ufunc, np.ufunc) and not ufunc.types
)


# --- conversions to plain numbers and arrays ---

_PLAIN = "varmat.value(x) for the plain numbers"
_WRITE = f"make the array that is written into with np.zeros_like(variable, shape=...); {_PLAIN}"
_MODULE = (
    "use np.stack([...]) for an array of variables, or `import varmat.numpy as np`, which is NumPy "
    f"with an array, asarray and zeros that take variables; {_PLAIN}"
)
_DISTRIBUTION = (
    "SciPy's function takes plain numbers alone: use the varmat function of the same name, such as "
    f"varmat.normal_lpdf for scipy.stats.norm.logpdf; {_PLAIN}"
)
_NUMBER = f"use NumPy's function instead of math's (np.exp, not math.exp); {_PLAIN}"
_PANDAS = (
    "write df.to_numpy() @ x or np.dot(df, x), not df @ x or df.dot(x), and y.to_numpy() for other "
    f"data that it meets; {_PLAIN}"
)
_MASKED = "use x.filled(value) or x.compressed() of the data"
# The function that is called to make an array of a variable -> what to write there.
_CALLS = {
    "dot": "write A @ x, not A.dot(x)",
    "matmul": "write A @ x",
    **dict.fromkeys(("full", "fill"), "write np.broadcast_to(x, shape)"),
    **dict.fromkeys(
        (
            *("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require"),
            *("r_", "c_", "atleast_1d", "atleast_2d", "atleast_3d", "full_like"),
        ),
        _MODULE,
    ),
}


def _advice_array(frame: FrameType) -> str:
    """Say what to write where NumPy requires a plain array."""
    is_masked = frame.f_globals.get("__name__", "").startswith("numpy.ma.")
    frame = outside(frame, "numpy")
    module = frame.f_globals.get("__name__", "") if frame is not None else ""
    if module.startswith(("pandas.", "xarray.")):
        return _PANDAS
    if is_masked:
        if file_in_library(frame) and not _is_patched(frame):
            return _patch("a masked array", frame)
        return f"a masked array{in_library(frame)}: {_MASKED}"
    from varmat.functions import scipy_names  # a long table, which only refusals need

    result = scipy_names.known(frame) if module.startswith("scipy.") else None
    # SciPy's code is like a user's if it is patched itself.
    caller = frame if _is_patched(frame) else outside(frame, "numpy", "scipy", "contextlib")
    instruction, name = what_runs(caller)
    is_stored = instruction.startswith("STORE_")
    if file_in_library(caller):
        if result is not None:
            if not _is_patched(caller) and scipy_names.has_form(*result):
                return _patch(".".join(result), caller)
            return scipy_names.sentence(*result, place=_at(caller))
        if module.startswith("scipy.") and caller is not frame:
            return _patch(name, caller, "scipy")
        return _in_library(caller, name, is_stored)
    if result is not None:
        return scipy_names.sentence(*result)
    if module.startswith("scipy."):
        return _DISTRIBUTION
    return _WRITE if is_stored else _CALLS.get(name, _MODULE)


def _advice_number(frame: FrameType) -> str:
    """Say what to write where Python requires a plain number."""
    caller = outside(frame, "numpy")
    instruction, name = what_runs(caller)
    is_stored = instruction.startswith("STORE_")
    if file_in_library(caller):
        return _in_library(caller, name, is_stored)
    return _WRITE if is_stored else _NUMBER


# --- inside installed packages, whose code the user does not write ---


def outside(frame: FrameType | None, *packages: str) -> Result:
    """Find the first frame outwards from the given one that belongs to none of the packages."""
    while frame is not None:
        is_text = frame.f_code.co_filename.startswith(("<varmat ", "<rule: "))
        if not is_text and frame.f_globals.get("__name__", "").partition(".")[0] not in packages:
            break
        frame = frame.f_back
    return frame


def file_in_library(frame: FrameType | None) -> str:
    """Return the file of a frame as a path below the folder of installed packages, or nothing."""
    parts = Path(frame.f_code.co_filename).parts if frame is not None else ()
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            return "/".join(parts[parts.index(folder) + 1 :])
    return ""


def in_library(frame: FrameType | None) -> str:
    """Say where an installed package uses a variable: empty if the code is the user's."""
    frame = outside(frame, "varmat", "numpy", "scipy", "contextlib", "functools")
    return _at(frame) if file_in_library(frame) else ""


def what_runs(frame: FrameType | None) -> tuple[str, str]:
    """Return the instruction that a frame executes, and, for a call, the name of its function.

    Only conversions need this, because `np.array` and `x[i] = y` look the same to a variable."""
    if frame is None:
        return "", ""
    steps = [x for x in dis.get_instructions(frame.f_code) if x.offset <= frame.f_lasti]
    # the callee is the longest expression before the arguments that begins where the call does
    start = (steps[-1].positions or ())[::2]
    names = [
        step.argval
        for step in steps
        if step.opname.startswith("LOAD_")
        and isinstance(step.argval, str)
        and (step.positions or ())[::2] == start
    ]
    return steps[-1].opname, names[-1] if names else ""


def _is_patched(frame: FrameType | None) -> bool:
    module = sys.modules.get(frame.f_globals.get("__name__", "")) if frame is not None else None
    return id(module) in PATCHED


def _at(frame: FrameType) -> str:
    return f" inside {file_in_library(frame)}:{frame.f_lineno}"


def _patch(what: str, frame: FrameType, *more: str) -> str:
    packages = ", ".join([frame.f_globals.get("__name__", "").partition(".")[0], *more])
    return f"{what}{_at(frame)}: run it under varmat.numpy.patched({packages})"


def _in_library(frame: FrameType, name: str, is_stored: bool) -> str:
    """Say what to write where an installed package makes a plain array or number of a variable."""
    what = "the assignment" if is_stored else name or "the call"
    if (is_stored or name in _CALLS) and not _is_patched(frame):
        return _patch(what, frame)
    if is_stored:
        reason = "the array was made outside what is patched; make it with varmat.numpy.zeros"
    elif name in _CALLS:
        reason = "a method of a plain array, or a function that patched cannot reach"
    else:
        reason = "it takes plain numbers alone; give it varmat.value(x)"
    return f"{what}{_at(frame)}: {reason}"


HOOKS.update(array=_advice_array, number=_advice_number, place=in_library)
