"""Kernels of some rows of NumPy's table, which are faster than NumPy's ufuncs or round as
these do, and powers of small whole numbers as products.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from varmat.core.elementwise import Elementwise
from varmat.functions.rows import formula
from varmat.plain_arrays import BLOCK, blocks
from varmat.programs.build.symbol import is_between, is_symbol
from varmat.typing import Function, Operand

# From this number of elements on, several vectorised steps of NumPy's are faster than one of its
# loops without vector instructions: at 10^4 elements four times as fast.
MANY = 256
# Well above where numbers lose digits to underflow.
TINY = 1e-290


def _log1p_exp_of_minus(e: Operand) -> Operand:
    """Compute ``log(1 + exp(-e))`` in place."""
    return np.log1p(np.exp(np.negative(e, e), e), e)


def softplus(x: Operand, out: Operand = None) -> Operand:
    """Compute ``log(1 + exp(x))``."""
    if np.size(x) < MANY:
        with np.errstate(invalid="ignore"):  # it warns of nan
            return np.logaddexp(0.0, x, out=out)
    e = _log1p_exp_of_minus(np.absolute(x))
    return np.add(e, np.maximum(x, 0.0), out=e if out is None else out)


def length(x: Operand, y: Operand, out: Operand = None) -> Operand:
    """Compute `numpy.hypot`. For many elements whose squares neither overflow nor underflow, the
    root of the sum of squares is faster.
    """
    if max(np.size(x), np.size(y)) >= MANY:
        with np.errstate(all="ignore"):
            squares = np.add(np.square(x), np.square(y))
        if is_between(squares, TINY, np.inf):
            return np.sqrt(squares, squares if out is None else out)
    return np.hypot(x, y, out=out)


def log_of_sum(x: Operand, y: Operand, out: Operand = None) -> Operand:
    """Compute `numpy.logaddexp`, but faster."""
    if max(np.size(x), np.size(y)) >= MANY:
        with np.errstate(all="ignore"):
            e = _log1p_exp_of_minus(np.absolute(np.subtract(x, y)))
            np.add(e, np.maximum(x, y), e)
            if not np.isnan(np.add.reduce(e, None)):  # no difference of infinities
                return e if out is None else np.positive(e, out)
    return np.logaddexp(x, y, out=out)


# In programs, only the shape of an array may tell which way to take, its values may not.
softplus.formula = softplus  # type: ignore[attr-defined]
length.formula = np.hypot  # type: ignore[attr-defined]
log_of_sum.formula = np.logaddexp  # type: ignore[attr-defined]


@formula
def scaled_by_power_of_two(x: Operand, y: Operand) -> Operand:
    """Compute `numpy.ldexp` for exponents of any type with whole values."""
    exponent = np.asarray(y).astype(np.int64)
    if np.any(exponent != y):
        raise TypeError("ldexp: the exponent has fractional values, but must be integers!")
    return np.ldexp(x, exponent)


# --- of Python floats ---


def rounding(function: Callable[[float], int]) -> Callable[[float], float]:
    """Wrap a rounding function of `math` to return a float with the sign of its argument, like
    NumPy's.
    """
    return lambda x: math.copysign(function(x), x)


def log_of_sum_of_numbers(x: float, y: float) -> float:
    return x + math.log(2.0) if x == y else max(x, y) + math.log1p(math.exp(-abs(x - y)))


def sign_of_number(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else abs(0.0 * x)


# --- powers ---

# Powers with these exponents are products: NumPy's power takes 40 ns per element where bases are
# negative, a multiplication a quarter of a nanosecond. A product from left to right grows or
# shrinks all the way, so an intermediate result overflows or underflows only if the result does.
PRODUCTS = {
    n: f"power_{n}" if n > 0 else f"power_minus_{-n}"
    for n in (3, 4, 5, 6, 7, 8, -2, -3, -4, -5, -6, -7, -8)
}


def product_of_power(n: int) -> str:
    """Return the expression of ``x**n`` as a product or a quotient."""
    return " * ".join(["x"] * n) if n > 0 else " / ".join(["1.0", *["x"] * -n])


def power_by_products(n: int) -> Function:
    """Make the power with exponent `n`, called like a ufunc, with every step in place."""
    step = np.multiply if n > 0 else np.divide

    def power(x: Operand, out: Operand = None) -> Operand:
        out = step(x, x, out) if n > 0 else step(1.0, x, out)
        for _ in range(abs(n) - 1 - (n > 0)):
            out = step(out, x, out)
        return out

    def ufunc(x: Operand, out: Operand = None) -> Operand:
        out = np.empty(np.shape(x)) if out is None else out
        if out.size <= BLOCK or not (x.flags.c_contiguous and out.flags.c_contiguous):
            power(x, out)
        else:
            flat, target = x.reshape(-1), out.reshape(-1)
            for here in blocks(out.size, BLOCK):
                power(flat[here], target[here])
        return out

    def straight(x: Operand) -> Operand:
        result = x * x if n > 0 else 1.0 / x
        for _ in range(abs(n) - 1 - (n > 0)):
            result = result * x if n > 0 else result / x
        return result

    ufunc.formula = straight  # type: ignore[attr-defined]
    return ufunc


class PowerBelow(Elementwise):
    """``x**(y - 1)``, given ``r = x**y``. It is differentiated as a function of x and y alone."""

    def __call__(self, *args: Operand) -> Operand:  # type: ignore[override]
        x, y, r = args
        if not isinstance(y, (float, int)) or not y:
            # Where x and y are zero the exponent is 0 instead of -1, so that the derivative of the
            # power is 0 and not 0 * inf. A constant exponent of zero has the derivative 0 for every
            # x, also where 1 / x overflows.
            constant = isinstance(y, (float, int, np.ndarray)) or (
                is_symbol(y) and y.value.is_constant
            )
            return np.power(x, y - 1 + (y == 0 if constant else (x == 0) * (y == 0)))
        # For some 250 elements or more a quotient, with the check of its range, takes half as long
        # as a power. It is wrong where r is zero, or has overflowed or underflowed.
        many = type(x) is type(r) is np.ndarray and r.size >= MANY
        if many and is_between(r, TINY, np.inf):
            return r / x
        return np.power(x, y - 1)


def power_below(name: str) -> PowerBelow:
    """Return the row of `PowerBelow`. It is not a function for users: it has no rules, and nothing
    is recorded under its name.
    """
    return PowerBelow(
        name,
        formula(lambda x, y, r: np.power(x, y - 1.0 + (y == 0.0))),
        *("nan * g",) * 3,
        scalar=lambda x, y, r: math.pow(x, y - 1 + (y == 0)),
    )
