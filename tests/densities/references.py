"""What the tests of rows of densities share: the row as a function of 50 digits."""

from __future__ import annotations

from typing import Any

import mpmath

from varmat.densities.univariate import Univariate


def log_ncdf(z: Any) -> Any:
    """The logarithm of the normal distribution function: 50 digits of 1 - 1e-300 are 1."""
    half = mpmath.erfc(abs(z) / mpmath.sqrt(2)) / 2
    return mpmath.log1p(-half) if z > 0 else mpmath.log(half)


def log1m_exp(t: Any) -> Any:
    """``log(1 - exp(t))`` for t < 0."""
    return mpmath.log(-mpmath.expm1(t)) if t > -1 else mpmath.log1p(-mpmath.exp(t))


HELPERS = {"log1m_exp": log1m_exp, "log_ncdf": log_ncdf}


def exact(row: Univariate) -> Any:
    code = compile(row.reference, f"<{row.name}>", "eval")
    # The text is that of a row of our own table.
    return lambda *args: eval(code, {**vars(mpmath), **HELPERS, **dict(zip(row.arguments, args, strict=True))})
