"""Functions of NumPy and conversions that have no derivative here, each with a sentence that names
what to use instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy._core import umath

from varmat.core.dispatch import ADVICE, REFUSED
from varmat.functions.arrays.constant import named
from varmat.functions.callers import outside, what_runs

if TYPE_CHECKING:
    from varmat.typing import Operand

__all__: list[str] = []

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
_ASSIGN = "it writes into its argument; assign instead, x[index] = value, which is recorded"
_SETS = (
    "use np.unique of np.concatenate, or pass the plain numbers, varmat.value(x), to select with"
)
_SCIMATH = "it may turn to complex numbers; use the function of the same name in np itself"

_ROOTS = (
    "use np.linalg.eigvals of the companion matrix, or differentiate the equation that a root "
    "solves"
)
_CONSTANT = "for a constant array, as of np.full or of np.full_like of data, use np.broadcast_to"
_NEXT = "the next floating-point number has no derivative; use np.finfo for a step size"

# Sentence -> names of functions in np.
FUNCTIONS = {
    "its result is complex, also of real numbers; use np.sort of these": "sort_complex",
    _ROOTS: "roots",
    _INTEGERS: "ravel_multi_index unravel_index packbits unpackbits",
    _DATES: "busday_count busday_offset is_busday datetime_as_string",
    _COUNTS: "histogram2d histogramdd histogram_bin_edges",
    _FILES: "save savez savez_compressed savetxt",
    f"{_ASSIGN}; {_CONSTANT}": "copyto",
    _ASSIGN: "put place putmask put_along_axis fill_diagonal",
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
_WRITE = "make the array that is written into with np.zeros_like(variable, shape=...)"
_MODULE = (
    "`import varmat.numpy as np` is NumPy with an array, asarray, zeros and their like that take "
    "variables"
)
_ARRAY = (
    f"use np.stack([...]) or np.concatenate for an array of variables, {_PLAIN}, y.to_numpy() for "
    "data of pandas or xarray that it meets, and for functions outside NumPy the varmat function "
    "of the same name (varmat.normal_lpdf for scipy.stats.norm.logpdf)"
)
_NUMBER = (
    "use NumPy's function instead of math's (np.exp, not math.exp), np.zeros_like(variable, "
    "shape=...) for an array to write into, " + _PLAIN
)
# The function that is called to make an array of a variable -> what to write there.
_CALLS = {
    "dot": "write A @ x, not A.dot(x)",
    "matmul": "write A @ x",
    **dict.fromkeys(("full", "fill"), "write np.broadcast_to(x, shape)"),
    **dict.fromkeys(
        (
            "array",
            "asarray",
            "asanyarray",
            "ascontiguousarray",
            "asfarray",
            "r_",
            "c_",
            "atleast_1d",
        ),
        _MODULE,
    ),
}
_PANDAS = (
    "write df.to_numpy() @ x or np.dot(df, x), not df @ x or df.dot(x), and y.to_numpy() for other "
    "data that it meets"
)


def _advice_array(frame: Any) -> str:
    """What to write where NumPy asks for a plain array."""
    frame = outside(frame, "numpy")
    module = frame.f_globals.get("__name__", "") if frame is not None else ""
    if module.startswith("pandas."):
        return f"{_PANDAS}; {_PLAIN}"
    if module.startswith("scipy."):
        from varmat.functions.scipy_names import advice

        return advice(frame) or _ARRAY
    instruction, name = what_runs(frame)
    if instruction.startswith("STORE_"):
        return f"{_WRITE}; {_PLAIN}"
    if name in _CALLS:
        return f"{_CALLS[name]}; otherwise {_ARRAY}"
    return f"{_ARRAY}; {_MODULE}"


def _advice_number(frame: Any) -> str:
    """What to write where Python asks for a plain number."""
    instruction, _ = what_runs(outside(frame, "numpy"))
    if instruction.startswith("STORE_"):
        return f"{_WRITE}; {_PLAIN}"
    return _NUMBER


ADVICE["array"], ADVICE["number"] = _advice_array, _advice_number
