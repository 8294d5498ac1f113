"""The digamma function and its derivatives, and the zeta functions, as a table."""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.aliases import alias
from varmat.functions.checks import outside
from varmat.functions.rows import formula, row
from varmat.functions.special import gamma_differences
from varmat.plain_arrays import special
from varmat.typing import Operand, elementwise_valued

__all__ = ["digamma", "polygamma", "psi", "trigamma", "zeta"]

# fmt: off
digamma = row("digamma", "g * zeta(2.0, x)",
    "Digamma function, the derivative of `gammaln`; SciPy also calls it psi",
    None, "psi(0, x)", (0.5, 1e-10, 3.7, 150.0, 1e8, -2.3), 4.9348,
    source="DLMF 5.2.2, 5.15.1; SciPy", domain="not 0, -1, -2, ...", ufunc="psi")
psi = alias("psi", digamma)
# SciPy has no value below the exponent 1, so there is no derivative either.
zeta = row("zeta", (None, "-g * (where(x < 1.0, nan, x) * zeta(x + 1.0, y))"),
    "Hurwitz zeta function: the sum over k = 0, 1, ... of ``1 / (k + y)**x``",
    None, "zeta(x, y)", ((2.0, 0.5), (3.5, 1e-5), (2.0, 100.0), (5.0, 3.3)), -16.8288,
    source="DLMF 25.11.1, 25.11.17; SciPy", domain="x > 1, y > 0", constant=("the exponent x",))
# Of SciPy's function, which is written in Python, the ufunc behind it.
zeta.formula = lambda x, y: special._ufuncs._zeta(x, y)  # type: ignore[attr-defined]
zeta_difference = row("zeta_difference",
    (None, "-g * x * zeta_difference(x + 1.0, y, z)", "g * x * zeta(x + 1.0, y + z)"),
    "``zeta(x, y) - zeta(x, y + z)`` without cancellation; for x = 1 it is ``digamma(y + z) - "
    "digamma(y)``",
    gamma_differences.zeta_difference_of_numbers,
    "psi(0, y + z) - psi(0, y) if x == 1 else zeta(x, y) - zeta(x, y + z)", ((1.0, 0.5, 2.0),
    (1.0, 3.0, 4.5), (2.0, 1e-5, 1.0), (1.0, 100.0, 2.5), (2.0, 1e10, 2.0), (1.0, 2.0, 1e10),
    (3.0, 15.5, 0.5)), -4.44444,
    source="DLMF 5.7.6, 25.11.1, 25.11.17", domain="x >= 1, y > 0, y + z > 0",
    constant=("the exponent x",),
    ufunc=formula(gamma_differences.zeta_difference,
    straight=gamma_differences.zeta_difference_straight), module=__name__)
# fmt: on


@elementwise_valued
def polygamma(n: int, x: Operand) -> Operand:
    """Derivative of order n of `digamma`.

    Parameters
    ----------
    n : int
        Order, from 0 to 170: the factorial is a float.
    x : array_like of real numbers
        Not 0, -1, -2, ...

    Returns
    -------
    Var, VarMat or MatVar

    Raises
    ------
    DomainError
        If `n` is less than 0 or greater than 170.
    TypeError
        If `n` is not an integer.

    Notes
    -----
    The derivative is ``polygamma(n + 1, x)``. Computed as ``(-1)**(n + 1) n! zeta(n + 1, x)``.

    References
    ----------
    * NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 5.15, 25.11.12.
    * SciPy reference, `scipy.special.polygamma`.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(0.5)
    >>> vm.polygamma(1, x).grad()
    >>> print(f"{x.adj:.6g}")
    -16.8288
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"polygamma: the order n is {n!r}, but must be an integer!")
    if n < 0:
        raise outside("polygamma", "the order n", n, "be nonnegative")
    if n > 170:
        raise outside("polygamma", "the order n", n, "be at most 170")
    n = int(n)
    if n == 0:
        return digamma(x)
    return (-1.0) ** (n + 1) * math.factorial(n) * zeta(n + 1.0, x)


@elementwise_valued
def trigamma(x: Operand) -> Operand:
    """Trigamma function, the derivative of `digamma`.

    Parameters
    ----------
    x : array_like of real numbers
        Not 0, -1, -2, ...

    Returns
    -------
    Var, VarMat or MatVar

    Notes
    -----
    The same as ``zeta(2, x)``; the derivative is ``polygamma(2, x)``.

    References
    ----------
    * NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 5.15.
    * Stan Functions Reference, "Combinatorial functions".

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(0.5)
    >>> vm.trigamma(x).grad()
    >>> print(f"{x.adj:.6g}")
    -16.8288
    """
    return zeta(2.0, x)
