"""Generalised hypergeometric functions of any numbers of parameters, with derivatives in all of
them.

The power series is summed in decimal arithmetic, with as many digits as its terms lose by
cancellation, so that all digits of the result are right wherever it converges. The derivatives are
summed with it: a term is a number with one infinitesimal for each differentiation, and the squares
of infinitesimals are zero. Parameters that are negative integers are therefore no special case."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from varmat.core.operation import as_operand, operation
from varmat.functions.checks import misfit, outside
from varmat.typing import Adjoint, Linear, Plain, Shape, scalar_valued

__all__ = ["hypergeometric_2F2", "hypergeometric_3F2", "hypergeometric_pFq"]

# The digits of the first attempt at a series, the digits that must be left after cancellation, and
# the most digits that are tried.
_DIGITS, _WANTED, _MOST_DIGITS = 40, 20, 2000
_TERMS = 200_000
# With this number of digits beyond those of the largest term, even a sum as small as the smallest
# float is exact.
_RANGE = 350


class _SeriesError(Exception):
    """Why a series is not summed."""


def _times(term: list[Plain], c: Plain, bits: int) -> list[Plain]:
    """Multiply a number with infinitesimals by ``c`` plus the infinitesimals in `bits`."""
    product = [c * part for part in term]
    for m in range(1, len(term) if bits else 1):
        for bit in _bits(m & bits):
            product[m] += term[m ^ bit]
    return product


def _over(term: list[Plain], c: Plain, bits: int) -> list[Plain]:
    """Divide a number with infinitesimals by ``c`` plus the infinitesimals in `bits`."""
    quotient = [term[0] / c]
    for m in range(1, len(term)):
        part = term[m]
        for bit in _bits(m & bits):
            part = part - quotient[m ^ bit]
        quotient.append(part / c)
    return quotient


def _bits(m: int) -> list[int]:
    return [1 << k for k in range(m.bit_length()) if m >> k & 1]


def _ratio(above: Plain, below: Plain, z: Plain, k: int) -> float:
    """Return an upper bound of the ratios of successive terms, from the k-th on.

    A quotient ``(a + k) / (b + k)`` of positive numbers goes to 1 monotonically. So a pair of an
    upper and a lower parameter counts at least 1, and lower parameters without a partner count with
    their present value."""
    upper = sorted(float(c) + k for c in above)
    lower = sorted([*(float(c) + k for c in below), 1.0 + k])
    ratio = abs(float(z))
    for a, b in zip(upper, lower, strict=False):
        ratio *= max(a / b, 1.0)
    for b in lower[len(upper) :]:
        ratio /= b
    return ratio


def _summed(
    above: Plain, below: Plain, z: Plain, bits: list[int], digits: int
) -> tuple[Plain, Plain]:
    """Compute the part of the sum with all infinitesimals, and the size of the largest term of any
    part, from which the rounding error comes.
    """
    number = type(z)
    parts = 1 << max(bits, default=0).bit_length()
    term = [number(1)] + [number(0)] * (parts - 1)
    total, largest = term[-1], number(1)
    small, rounding = number(10) ** -_WANTED, number(10) ** -digits
    # From this index on no parameter plus k is negative.
    last = max(0.0, *(-float(c) for c in (*above, *below)))
    p = len(above)
    # The factors without infinitesimals are multiplied together first.
    fixed = number(1) if bits[-1] else z
    fixed_above = [c for c, bit in zip(above, bits, strict=False) if not bit]
    moving = [(c, bit) for c, bit in zip(above, bits, strict=False) if bit]
    fixed_below = [c for c, bit in zip(below, bits[p:], strict=False) if not bit]
    moving_below = [(c, bit) for c, bit in zip(below, bits[p:], strict=False) if bit]
    for k in range(_TERMS):
        factor = fixed
        for c in fixed_above:
            factor *= c + k
        divisor = number(k + 1)
        for c in fixed_below:
            divisor *= c + k
        factor /= divisor
        term = [factor * part for part in term]
        for c, bit in moving:
            term = _times(term, c + k, bit)
        if bits[-1]:
            term = _times(term, z, bits[-1])
        for c, bit in moving_below:
            term = _over(term, c + k, bit)
        total += term[-1]
        size = max(map(abs, term))
        largest = max(largest, size)
        if not size:
            return total, largest
        if k > last and size <= small * (abs(total) + rounding * largest):
            remainder = 1.0 - _ratio(above, below, z, k + 1)
            if remainder > 0.0 and size <= number(remainder) * small * (
                abs(total) + rounding * largest
            ):
                return total, largest
    raise _SeriesError(f"the series converges in {_TERMS} terms")


# Cached, because a Hessian asks for each of them several times.
@lru_cache(maxsize=1024)
def _series(
    above: tuple[float, ...], below: tuple[float, ...], z: float, axes: tuple[int, ...]
) -> float:
    """Compute the derivative along the given axes: upper parameters first, then lower ones, then
    the argument.
    """
    import decimal  # imported here because that takes longer than the rest of this module

    bits = [0] * (len(above) + len(below) + 1)
    for k, axis in enumerate(axes):
        bits[axis] |= 1 << k
    digits = _DIGITS
    while True:
        context = decimal.Context(
            digits, decimal.ROUND_HALF_EVEN, decimal.MIN_EMIN, decimal.MAX_EMAX, traps=[]
        )
        with decimal.localcontext(context):
            exact = [[decimal.Decimal(c) for c in group] for group in (above, below, (z,))]
            total, largest = _summed(exact[0], exact[1], exact[2][0], bits, digits)
            if abs(total) >= largest * decimal.Decimal(10) ** (_WANTED - digits):
                return float(total)
        enough = largest.adjusted() + _RANGE
        if digits >= enough:
            return 0.0  # because it is less than the smallest float
        if digits >= _MOST_DIGITS:
            raise _SeriesError(
                f"the terms of the series do not cancel in all of {_MOST_DIGITS} digits"
            )
        digits = min(2 * digits, enough, _MOST_DIGITS)


@operation()
def hypergeometric_series(
    c: Plain, *, p: int, axes: tuple[int, ...] = (), function: str = "hypergeometric_pFq"
) -> Plain:
    """Compute the derivative of a hypergeometric function along some axes.

    `c` holds the `p` parameters above, those below, and the argument.
    """
    _check_convergence(function, p, c)
    numbers = tuple(c.tolist())
    try:
        return _series(numbers[:p], numbers[p:-1], numbers[-1], tuple(sorted(axes)))
    except _SeriesError as error:
        raise outside(function, "z", numbers[-1], f"be such that {error}") from None


@hypergeometric_series.reverse
def hypergeometric_series_reverse(
    g: Adjoint, r: Plain, c: Plain, p: int, axes: Shape, function: str
) -> Adjoint:
    return np.array(
        [
            g * hypergeometric_series.function(c, p=p, axes=(*axes, i), function=function)
            for i in range(c.size)
        ]
    )


@hypergeometric_series.tangent
def hypergeometric_series_tangent(r: Plain, c: Plain, p: int, axes: Shape, function: str) -> Linear:
    slopes = np.stack(
        [
            hypergeometric_series(c, p=p, axes=(*axes, i), function=function)
            for i in range(np.size(c))
        ]
    )
    return lambda t: np.sum(slopes * t)


def _check(function: str, a: Plain, b: Plain, z: Plain, orders: tuple[int, int] | None) -> None:
    for i, (name, x) in enumerate((("a", a), ("b", b))):
        shape = np.shape(x)
        if len(shape) != 1 or (orders is not None and shape != (orders[i],)):
            rule = "a vector" if orders is None else f"a vector of {orders[i]} parameters"
            raise misfit(function, name, shape, f"be {rule}")
    if np.shape(z):
        raise misfit(function, "z", np.shape(z), "be a scalar")


def _check_convergence(function: str, p: int, c: Plain) -> None:
    """Refuse plain values at which the series is not defined or does not converge."""
    z, below = float(c[-1]), c[p:-1]
    for i, x in enumerate(c):
        name = f"a[{i}]" if i < p else f"b[{i - p}]" if i < c.size - 1 else "z"
        if not math.isfinite(x):
            raise outside(function, name, float(x), "be finite")
    for i, x in enumerate(below):
        if x <= 0 and x == round(x):
            raise outside(function, f"b[{i}]", float(x), "not be 0 or a negative integer")
    if p > below.size + 1 and z:
        raise outside(
            function, "z", z, f"be 0 where there are {p} parameters above and {below.size} below"
        )
    if p == below.size + 1 and abs(z) >= 1:
        raise outside(
            function, "z", z, "be between -1 and 1 where there is one parameter more above"
        )


def _evaluated(
    function: str, a: Plain, b: Plain, z: Plain, orders: tuple[int, int] | None = None
) -> Plain:
    a, b, z = (
        as_operand(a, f"{function}: a"),
        as_operand(b, f"{function}: b"),
        as_operand(z, f"{function}: z"),
    )
    _check(function, a, b, z, orders)
    p = np.shape(a)[0]
    c = np.concatenate([a, b, np.stack([z])])
    return hypergeometric_series(c, p=p, function=function)


@scalar_valued
def hypergeometric_pFq(a: Plain, b: Plain, z: Plain) -> Plain:  # noqa: N802 - Stan's name
    """Compute the generalised hypergeometric function pFq(a; b; z).

    Parameters
    ----------
    a : array_like, shape (p,)
        The parameters above.
    b : array_like, shape (q,)
        The parameters below: not 0, -1, -2, ...
    z : scalar
        Between -1 and 1 if ``p == q + 1``, any number if there are fewer above.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If `a` or `b` is not a vector, or `z` not a scalar.
    DomainError
        If the series does not converge, needs more than 200000 terms, or loses more than 2000
        digits.

    Notes
    -----
    The sum over k = 0, 1, ... of ``prod(poch(a, k)) / prod(poch(b, k)) * z**k / k!``. The
    derivatives, in all parameters and of any order, are sums over the terms' derivatives. They are
    summed in as many digits as the terms lose by cancellation, so that value and derivatives are
    right to the last digit or two. A series takes about a microsecond per term and parameter; for
    arrays of arguments there are `hyp1f1` and `hyp2f1`.

    References
    ----------
    NIST Digital Library of Mathematical Functions, 16.2.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a, b = np.array([0.5, 1.2]), np.array([2.3, 1.7])
    >>> print(f"{vm.hypergeometric_pFq(a, b, 0.6):.12f}")
    1.103429314316
    >>> np.round(vm.gradient(lambda a: vm.hypergeometric_pFq(a, b, 0.6), a), 6)
    array([0.214911, 0.091731])
    """
    return _evaluated("hypergeometric_pFq", a, b, z)


@scalar_valued
def hypergeometric_2F2(a: Plain, b: Plain, z: Plain) -> Plain:  # noqa: N802 - Stan's name
    """Compute the hypergeometric function 2F2(a; b; z): `hypergeometric_pFq` of two and two
    parameters.

    Parameters
    ----------
    a : array_like, shape (2,)
        The parameters above.
    b : array_like, shape (2,)
        The parameters below: not 0, -1, -2, ...
    z : scalar

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If `a` or `b` does not have two elements, or `z` is not a scalar.
    DomainError
        If the series does not exist, needs more than 200000 terms, or loses more than 2000 digits.

    Notes
    -----
    The derivatives are the same as for `hypergeometric_pFq`.

    References
    ----------
    NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 16.2.1, 16.3.1.

    Examples
    --------
    >>> import varmat as vm
    >>> print(f"{vm.hypergeometric_2F2([0.5, 1.2], [2.3, 1.7], -30.0):.12f}")
    0.297264300264
    """
    return _evaluated("hypergeometric_2F2", a, b, z, (2, 2))


@scalar_valued
def hypergeometric_3F2(a: Plain, b: Plain, z: Plain) -> Plain:  # noqa: N802 - Stan's name
    """Compute the hypergeometric function 3F2(a; b; z): `hypergeometric_pFq` of three and two
    parameters.

    Parameters
    ----------
    a : array_like, shape (3,)
        The parameters above.
    b : array_like, shape (2,)
        The parameters below: not 0, -1, -2, ...
    z : scalar
        Between -1 and 1.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If `a` does not have three elements or `b` two, or `z` is not a scalar.
    DomainError
        If the series does not converge, needs more than 200000 terms, or loses more than 2000
        digits.

    Notes
    -----
    The derivatives are the same as for `hypergeometric_pFq`.

    References
    ----------
    NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 16.2.1, 16.3.1.

    Examples
    --------
    >>> import varmat as vm
    >>> print(f"{vm.hypergeometric_3F2([0.5, 1.2, 0.8], [2.3, 1.7], 0.6):.12f}")
    1.094833750410
    """
    return _evaluated("hypergeometric_3F2", a, b, z, (3, 2))
