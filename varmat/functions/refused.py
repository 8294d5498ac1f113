"""NumPy functions that have no derivative here, each with a sentence that names what to use instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy._core import umath

from varmat.core.dispatch import REFUSED
from varmat.functions.constant import named

__all__: list[str] = []

_COMPLEX = "its result is complex, and variables are real"
_INTEGERS = "it works on integers, and variables are real numbers; pass the plain numbers: varmat.value(x).astype(int)"
_STRINGS = "it works on strings, and variables are real numbers"
_DATES = "it works on dates, and variables are real numbers"
_COUNTS = "counts have no derivative, and its bin edges may depend on the data; pass the plain numbers, varmat.value(x)"
_FILES = "a file holds plain numbers; write varmat.value(x)"
_ASSIGN = "it writes into its argument; assign instead, x[index] = value, which is recorded"
_SETS = "use np.unique of np.concatenate, or pass the plain numbers, varmat.value(x), to select with"
_SCIMATH = "it may turn to complex numbers; use the function of the same name in np itself"

# Sentence -> names of functions in np.
FUNCTIONS = {
    _COMPLEX + "; use np.sort": "sort_complex",
    _COMPLEX + "; find the root outside and differentiate the equation it solves": "roots",
    _INTEGERS: "ravel_multi_index unravel_index packbits unpackbits",
    _DATES: "busday_count busday_offset is_busday datetime_as_string",
    _COUNTS: "histogram histogram2d histogramdd histogram_bin_edges",
    _FILES: "save savez savez_compressed savetxt",
    _ASSIGN + "; for a constant array, as of np.full or of np.full_like of data, use np.broadcast_to": "copyto",
    _ASSIGN: "put place putmask put_along_axis fill_diagonal",
    _SETS: "intersect1d setdiff1d setxor1d union1d",
    "use np.meshgrid with sparse=True": "ix_",
    "use np.linalg.lstsq(np.vander(x, degree + 1), y)[0]": "polyfit",
    "use np.polyval of the two polynomials": "polydiv",
}
UFUNCS = {
    _INTEGERS: "bitwise_and bitwise_or bitwise_xor bitwise_count invert left_shift right_shift gcd lcm",
    _DATES: "isnat",
    "the next floating-point number has no derivative; use np.finfo for a step size": "nextafter spacing",
    "its exponent is an integer; use np.log2 and np.floor": "frexp",
}
# Modules whose functions are all refused. By name: importing them for this would make `import varmat` slower.
MODULES = {
    "numpy.lib.recfunctions": "it works on structured arrays, and variables are float64",
    "numpy.lib.scimath": _SCIMATH,
    "numpy.lib._scimath_impl": _SCIMATH,  # its name before NumPy 2.1
    "numpy.strings": _STRINGS,
    "numpy.char": _STRINGS,
    "numpy.polynomial.polynomial": "use np.polyval in one variable after the other",
}


def _refuse(module: Any, table: dict[str, str]) -> None:
    for sentence, names in table.items():
        REFUSED.update(dict.fromkeys(named(names, module), sentence))


_refuse(np, FUNCTIONS)
_refuse(np, UFUNCS)
REFUSED.update(MODULES)


# NumPy's ufuncs for strings are private; what tells them apart is that they have no loop for any type of number.
REFUSED.update((ufunc, _STRINGS) for ufunc in vars(umath).values() if isinstance(ufunc, np.ufunc) and not ufunc.types)
