"""What answers for the ufuncs of SciPy that `varmat.functions.special.table` does not know, and why
the others are refused.

Importing this module imports the tables, which are not needed before such a ufunc meets a variable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from varmat.core.dispatch import SPECIAL
from varmat.functions.special import distributions as special_distributions
from varmat.functions.special import elliptic as special_elliptic
from varmat.functions.special import integrals as special_integrals
from varmat.functions.special import noncentral as special_noncentral
from varmat.functions.special import polynomials as special_polynomials
from varmat.functions.special import sums as special_sums
from varmat.functions.special import waves as special_waves
from varmat.functions.special.further_rows import ANSWERS
from varmat.functions.special.table import zeta

__all__: list[str] = []

TABLES = (
    special_distributions,
    special_elliptic,
    special_integrals,
    special_noncentral,
    special_polynomials,
    special_sums,
    special_waves,
)
_COMPLEX = "its results are complex numbers"
_DEGREES = (
    "a derivative in the degrees of freedom is not known, so that there is none of their solution"
)
# The ufuncs that are refused, and those behind functions that SciPy has written in Python.
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
_PRIVATE = {"_zeta": zeta.call, "_riemann_zeta": ANSWERS["_riemann_zeta"]}


def answer(ufunc: Any) -> Callable[..., Any] | None:
    """What answers for a ufunc; None for one that is not of SciPy, or not known."""
    name, special = ufunc.__name__, sys.modules["scipy.special"]
    if all(
        getattr(module, name, None) is not ufunc
        for module in (special, getattr(special, "_ufuncs", None))
    ):
        return None
    if name in REFUSED:
        return _refusing(name)
    return ANSWERS.get(name) or SPECIAL.get(name) or _PRIVATE.get(name)


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise TypeError(
            f"scipy.special.{name.lstrip('_')} is not differentiable here: {REFUSED[name]}"
        )

    return refuse
