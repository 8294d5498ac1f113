"""What answers for the rarer ufuncs of SciPy, and why some are refused.

Importing this module imports their tables. It is imported when such a ufunc first meets a variable.
"""

from __future__ import annotations

import sys

from varmat.core.dispatch import SPECIAL
from varmat.functions.rarer.special import (
    distributions,
    elliptic,
    integrals,
    noncentral,
    polynomials,
    sums,
    waves,
)
from varmat.functions.rows import ANSWERS
from varmat.functions.special.zeta_functions import zeta
from varmat.typing import Function, Operand, Result

TABLES = (distributions, elliptic, integrals, noncentral, polynomials, sums, waves)
_COMPLEX = "its results are complex numbers"
_DEGREES = (
    "a derivative in the degrees of freedom is not known, so that there is none of their solution"
)
# Why ufuncs are refused, and functions that SciPy has written in Python.
REFUSED = {
    "chndtridf": _DEGREES,
    "ncfdtridfd": _DEGREES,
    "ncfdtridfn": _DEGREES,
    "nctdtridf": _DEGREES,
    "hankel1": f"{_COMPLEX}; write scipy.special.jv(v, x) and scipy.special.yv(v, x), which are "
    "its parts",
    "hankel2": f"{_COMPLEX}; write scipy.special.jv(v, x) and -scipy.special.yv(v, x), which are "
    "its parts",
    "hankel1e": f"{_COMPLEX}; write with jv, yv, np.cos and np.sin",
    "hankel2e": f"{_COMPLEX}; write with jv, yv, np.cos and np.sin",
    "kelvin": f"{_COMPLEX}; write scipy.special.ber, bei, ker and kei, which are its parts, and "
    "berp, beip, kerp and keip",
    "modfresnelm": f"{_COMPLEX}; write with scipy.special.fresnel",
    "modfresnelp": f"{_COMPLEX}; write with scipy.special.fresnel",
    "wofz": f"{_COMPLEX}; write np.exp(-x * x) and 2 / np.sqrt(np.pi) * scipy.special.dawsn(x), "
    "which are its parts for real x, or "
    "scipy.special.voigt_profile",
    "_lambertw": f"{_COMPLEX}; write varmat.lambert_w0(x) or varmat.lambert_wm1(x), the real "
    "branches",
}
_PRIVATE = {"_zeta": zeta.call, "_riemann_zeta": ANSWERS["_riemann_zeta"].function}


def answer(ufunc: Function) -> Function | None:
    """Return the handler of a ufunc; None for one that is not SciPy's, or not known."""
    name, special = ufunc.__name__, sys.modules["scipy.special"]
    if all(
        getattr(module, name, None) is not ufunc
        for module in (special, getattr(special, "_ufuncs", None))
    ):
        return None
    if name in REFUSED:
        return _refusing(name)
    if name in ANSWERS:
        return ANSWERS[name].function
    return SPECIAL.get(name) or _PRIVATE.get(name)


def _refusing(name: str) -> Function:
    def refuse(*_: Operand) -> Result:
        raise TypeError(
            f"scipy.special.{name.lstrip('_')} is not differentiable here: {REFUSED[name]}"
        )

    return refuse
