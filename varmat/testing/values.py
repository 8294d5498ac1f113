"""`expect_value`: a function against a 50-digit reference."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from varmat.core.rules import function_of
from varmat.core.tape import nested
from varmat.core.variables import backward, var
from varmat.testing import coverage, routes
from varmat.testing.compare import Comparison, Report, at
from varmat.typing import Function, Operand, Plain

__all__ = ["expect_value"]

NAMES = ("x", "y", "z", "w")
# The bar for values and gradients in the bulk of a domain.
BULK = 1e-12
# Digits of the reference. Differences are taken with half as many more.
DIGITS = 50
# A difference of values that are all of it, and nothing but rounding.
NOTHING, SLOPE = 1e-60, 1e-5
# Below this, a float64 has lost digits to underflow, so differences of this size are nothing.
TINY = 1e-300
ORACLE = "50-digit reference"


def expect_value(
    f: Function, reference: Operand, points: Sequence[Operand], rtol: float = 1e-12
) -> Report:
    """Demand that value and first derivatives of a scalar function agree with a 50-digit reference.

    The function is called with scalars (`Var`), one point at a time, and with arrays (`VarMat`) of
    all points; it may be elementwise or return the sum over its elements.

    Parameters
    ----------
    f : callable
        Takes one or more real arguments.
    reference : callable or str
        The same function of `mpmath.mpf` arguments, or an expression in ``x``, ``y``, ``z``, ``w``
        with the functions of mpmath. Floats in it are exact binary numbers: write ``mpf(1)/10``,
        not ``0.1``.
    points : sequence of floats or of tuples
        Where to compare. A coordinate that is an `int` is passed unchanged and not differentiated.
    rtol : float
        Largest relative difference accepted, elementwise.

    Returns
    -------
    Report
        The worst relative difference of values and derivatives, by kind of argument.

    Raises
    ------
    AssertionError
        If a value or a derivative disagrees.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import expect_value
    >>> report = expect_value(np.log1p, "log1p(x)", [1e-10, 0.5, 3.0])
    >>> report.worst < 1e-15
    True
    """
    mpmath = _mpmath()
    name = getattr(f, "__name__", None) or repr(f)
    comparison = Comparison(f"expect_value({name})")
    points = [point if isinstance(point, tuple) else (point,) for point in points]
    function = _function(reference, mpmath) if isinstance(reference, str) else reference
    with mpmath.workdps(DIGITS):
        exact = [_exact(function, point, mpmath) for point in points]
    for point, truth in zip(points, exact, strict=True):
        call = f"{name}({', '.join(map(repr, point))})"
        _demand(comparison, "Var", call, _evaluate(f, point), *truth, rtol)
    if points:
        _expect_arrays(f, comparison, points, exact, rtol)
        worst = comparison.report().worst
        if rtol <= BULK:
            coverage.note(f, points[0], mpmath=worst)
        else:
            coverage.note(f, points[0], tails=worst)
    return comparison.report()


def _expect_arrays(
    f: Function,
    comparison: Comparison,
    points: Sequence[object],
    exact: list[tuple[float, list[float]]],
    rtol: float,
) -> None:
    call = f"arrays of {len(points)} points"
    value, partials = _evaluate(f, [_column(column) for column in zip(*points, strict=True)])
    values = np.array([truth[0] for truth in exact])
    if not np.ndim(value):  # a sum over the elements: relative to the size of its terms
        total, size = np.sum(values), float(np.sum(np.abs(values)))
        comparison.close(
            ("VarMat", ORACLE), f"{call}: the sum of the values", value, total, rtol, floor=size
        )
        value = values
    _demand(
        comparison,
        "VarMat",
        call,
        (value, partials),
        values,
        np.array([truth[1] for truth in exact]).T,
        rtol,
    )


def _column(column: tuple[float, ...]) -> Plain:
    same_integer = isinstance(column[0], int) and len(set(column)) == 1
    return column[0] if same_integer else np.array(column)


def _demand(
    comparison: Comparison,
    kind: str,
    call: str,
    result: Operand,
    value: Operand,
    partials: Operand,
    rtol: float,
) -> None:
    """Demand elementwise relative agreement of value and derivatives, each element on its scale."""
    pairs = [("the value", result[0], value)]
    pairs += [
        (f"the derivative with respect to argument {i}", g, partials[i])
        for i, g in result[1].items()
    ]
    for what, a, b in pairs:
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            comparison.fail((kind, ORACLE), f"{call}: {what} has shape {a.shape} against {b.shape}")
        for index in np.ndindex(a.shape):
            comparison.close(
                (kind, ORACLE), f"{call}: {what}{at(index)}", a[index], b[index], rtol, slack=TINY
            )


def _evaluate(f: Function, point: Sequence[Operand]) -> tuple[Plain, dict[int, Plain]]:
    """Compute the value of `f` and the derivatives of the sum of its elements."""
    with nested(), np.errstate(all="ignore"):
        args = [x if np.asarray(x).dtype.kind in "iu" else var(x) for x in point]
        result = f(*args)
        value = routes.numbers(result)[0]
        if hasattr(result, "adj"):
            backward(result, np.ones(result.shape) if result.shape else 1.0)
        return value, {i: np.array(x.adj) for i, x in enumerate(args) if hasattr(x, "adj")}


def _function(expression: str, mpmath: ModuleType) -> Function:
    # The text comes from a test, and is written next to the function it is about.
    operands = ", ".join(f"{name}=None" for name in NAMES)
    return function_of(operands, [f"return {expression}"], vars(mpmath))


def _exact(
    function: Function, point: tuple[float, ...], mpmath: ModuleType
) -> tuple[float, list[float]]:
    """Compute value and partial derivatives at a point, rounded once, to float64."""
    exact = [x if isinstance(x, int) else mpmath.mpf(float(x)) for x in point]
    with mpmath.extradps(DIGITS // 2):
        partials = [
            np.nan if isinstance(x, int) else _slope(function, exact, i, mpmath)
            for i, x in enumerate(exact)
        ]
    return _real(function(*exact)), partials


def _slope(function: Function, exact: list[Operand], i: int, mpmath: ModuleType) -> float:
    """Compute a partial derivative by a central difference, in units of the operand."""
    h = (abs(exact[i]) or mpmath.mpf(1)) * mpmath.mpf(10) ** (-DIGITS // 2)
    ahead, behind = (function(*exact[:i], exact[i] + t, *exact[i + 1 :]) for t in (h, -h))
    gap, size = abs(ahead - behind), abs(ahead) + abs(behind)
    if gap < NOTHING and gap > SLOPE * size:  # two roundings of zero
        return 0.0
    return _real((ahead - behind) / (2 * h))


def _real(x: Operand) -> float:
    number = complex(x)
    if abs(number.imag) > 1e-30 * abs(number.real):
        raise ValueError(f"expect_value: the reference is complex there: {x}")
    return number.real


def _mpmath() -> Any:
    try:
        import mpmath
    except ImportError as error:
        raise ImportError(
            "expect_value compares with mpmath, which is not installed: in a clone of varmat, "
            'pip install -e ".[test]"'
        ) from error
    return mpmath
