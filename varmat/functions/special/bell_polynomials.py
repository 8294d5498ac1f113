"""Derivatives of the exponential and the logarithm of a function of two variables, from the
function's derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

from varmat.typing import Operand

# The derivative of order (i, j) of a function.
DerivativeAt = Callable[[int, int], Any]


def bell(n: int, m: int, cumulant: DerivativeAt) -> Operand:
    """Compute the derivative of order (n, m) of exp(f), over exp(f): Bell's polynomial of the
    derivatives (i, j) of f.
    """
    if n == m == 0:
        return 1.0
    if n == 0:
        return bell(m, 0, lambda i, j: cumulant(j, i))
    total: Operand = 0.0
    for i in range(n):
        for j in range(m + 1):
            total = total + comb(n - 1, i) * comb(m, j) * bell(
                n - 1 - i, m - j, cumulant
            ) * cumulant(i + 1, j)
    return total


def unbell(n: int, m: int, moment: DerivativeAt) -> Operand:
    """Invert `bell`: compute the derivative of order (n, m) of f from the derivatives of exp(f),
    over exp(f).
    """
    if n == 0:
        return unbell(m, 0, lambda i, j: moment(j, i))
    total = moment(n, m)
    for i in range(n):
        for j in range(m + 1):
            if (i + 1, j) != (n, m):
                total = total - comb(n - 1, i) * comb(m, j) * moment(n - 1 - i, m - j) * unbell(
                    i + 1, j, moment
                )
    return total
