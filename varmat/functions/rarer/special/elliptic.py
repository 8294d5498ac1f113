"""Elliptic integrals and functions, and the arithmetic-geometric mean, with derivatives in all
operands.

A derivative of an elliptic integral is one of Carlson's integrals with other exponents. Their
integrands are positive, so they are computed directly and nothing cancels."""

from __future__ import annotations

import numpy as np

from varmat.core.elementwise import ROWS
from varmat.core.rules import OPERANDS
from varmat.functions.rarer.special.further_rows import of_scipy, results, rows
from varmat.functions.rows import row
from varmat.functions.special.quadrature import on_domain
from varmat.locks import Once
from varmat.typing import Plain

# The step of the trapezoidal rule in log t, whose error is exp(-2 pi**2 / step), and how far the
# nodes reach beyond the operands.
_STEP, _REACH = 0.4, 84.0


def carlson(halves: tuple[int, ...], power: int, *operands: Plain) -> Plain:
    """Compute the integral over t from 0 to infinity of ``t**power`` and of ``(t + x)**(-k / 2)``
    for each operand x and number k.

    A trapezoidal rule in log t, which converges exponentially. Only operands whose exponent is one
    half may be zero."""
    operands = np.broadcast_arrays(*operands)
    used = [(k, x) for k, x in zip(halves, operands, strict=True) if k]
    inside = np.all([(x >= 0) & np.isfinite(x) & ((x > 0) | (k == 1)) for k, x in used], axis=0)
    inside &= np.sum([x > 0 for _, x in used], axis=0) >= (
        len(used) if power == 0 and len(used) == 1 else 1
    )

    def parts(_: int, *xs: Plain) -> Plain:
        columns = np.array(xs)
        low = np.log(np.min(np.where(columns > 0, columns, np.inf), axis=0))
        high = np.log(np.max(columns, axis=0))
        count = int(np.max(high - low) / _STEP + 2.0 * _REACH / _STEP) + 1
        u = (low - _REACH)[:, None] + _STEP * np.arange(count)
        total = (power + 1.0) * u
        for k, x in zip((k for k, _ in used), xs, strict=True):
            total = total - 0.5 * k * np.logaddexp(u, np.log(x)[:, None])
        return _STEP * np.sum(np.exp(total), axis=1)

    with np.errstate(all="ignore"):
        return on_domain(
            parts, np.zeros(inside.shape, int), inside, *(x for _, x in used), at_once=64
        )


def _above(halves: tuple[int, ...]) -> list[tuple[int, ...]]:
    """List the exponents of the derivatives of an integral, one for each operand."""
    return [tuple(k + 2 * (i == j) for j, k in enumerate(halves)) for i in range(len(halves))]


@Once
def carlson_row(power: int, *halves: int) -> str:
    """Make the row of an integral and return its name. The rows of its derivatives are made when it
    is first evaluated.
    """
    name = "carlson_" + "_".join(map(str, halves)) + f"_{power}"
    above = _above(halves)

    def value(*operands: Plain) -> Plain:
        for x in above:
            carlson_row(power, *x)
        return carlson(halves, power, *operands)

    operands = ", ".join(OPERANDS[: len(halves)])
    names = ["carlson_" + "_".join(map(str, x)) + f"_{power}" for x in above]
    partials = tuple(
        f"{-0.5 * k!r} * g * {x}({operands})" for k, x in zip(halves, names, strict=True)
    )
    factors = " * ".join(
        f"(t + {x})**(mpf({-k}) / 2)" for k, x in zip(halves, OPERANDS, strict=False)
    )
    if name not in ROWS:
        row(
            name,
            partials,
            "An integral of Carlson's kind",
            None,
            f"quad(lambda t: t**{power} * {factors}, [0, 1, inf])",
            ((0.5, 1.7, 2.5, 0.9)[: len(halves)],),
            domain="positive operands",
            ufunc=of_scipy(value),
            tested=False,
        )
    return name


_PRINCIPAL = (
    "Of a negative last operand, where it is a principal value, there is no derivative here"
)
_CARLSON = "Carlson's symmetric elliptic integral of the {} kind".format
# Each has: name, exponents in halves, factor, what it is, and points.
# fmt: off
for _name, _halves, _factor, _about, _points in (
    (
        "elliprc",
        (1, 2),
        0.5,
        "Carlson's degenerate symmetric elliptic integral",
        ((0.5, 1.7), (3.0, 0.2), (2.0, 2.0)),
    ),
    ("elliprf", (1, 1, 1), 0.5, _CARLSON("first"), ((0.5, 1.7, 2.5), (1e-3, 2.0, 2.0))),
    ("elliprd", (1, 1, 3), 1.5, _CARLSON("second"), ((0.5, 1.7, 2.5), (1.0, 1.0, 0.1))),
    ("elliprj", (1, 1, 1, 2), 1.5, _CARLSON("third"), ((0.5, 1.7, 2.5, 0.9),)),
):
    _letters = ", ".join(OPERANDS[: len(_halves)])
    row(_name, tuple(
        f"{-0.5 * _factor * k!r} * g * {carlson_row(0, *above)}({_letters})"
        for k, above in zip(_halves, _above(_halves), strict=True)
        ), _about, None, f"{_name}({_letters})", _points,
        domain="positive operands; one operand of a square root may be 0",
        note=_PRINCIPAL if _halves[-1] == 2 else "")
row("elliprg", tuple(
    f"0.125 * g * {carlson_row(1, *(3 if i == j else 1 for j in range(3)))}(x, y, z)"
    for i in range(3)
    ), "Carlson's completely symmetric elliptic integral of the second kind",
    None, "elliprg(x, y, z)",
    ((0.5, 1.7, 2.5),), domain="positive operands, one may be 0")
# This is pi over twice the elliptic integral R_F(0, x**2, y**2). It is homogeneous, so the larger
# operand is taken as the unit.
_MEAN = "0.3183098861837907 * g * square(r / maximum(x, y)) * ({0} / maximum(x, y)) * "
row("agm", tuple(
    _MEAN.format(x)
    + f"{carlson_row(0, 1, *halves)}(0.0, square(x / maximum(x, y)), square(y / maximum(x, y)))"
    for x, halves in (("x", (3, 1)), ("y", (1, 3)))
    ), "Arithmetic-geometric mean", None, "agm(x, y)", ((0.5, 1.7), (3.0, 1e-5), (2.0, 2.0)),
    domain="x > 0, y > 0")
# fmt: on


# Legendre's integrals of sin(t)**(2 n) (1 - m sin(t)**2)**(-k - 1/2) from 0 to phi, with k = n, or
# n - 1 for the second kind. In 1 / sin(t)**2 - 1 / sin(phi)**2 they are Carlson's. The two digits
# of the code are n and n - k.


def _legendre(code: Plain, phi: Plain, m: Plain, remainder: Plain) -> Plain:
    """Legendre's integral, given 1 - m as well."""
    code, phi, m, remainder = np.broadcast_arrays(code, phi, m, remainder)
    turns = np.rint(phi / np.pi)
    with np.errstate(all="ignore"):
        reduced = phi - turns * np.pi
        sine, cosine = np.sin(reduced), np.cos(reduced)
        result = np.sign(sine) * _within(
            code, 1.0 / sine**2, (cosine / sine) ** 2, (cosine / sine) ** 2 + remainder
        )
        result = np.where(sine == 0, 0.0, result)
        is_integer = turns != 0
        if np.any(is_integer):
            full = _within(
                code, np.ones(phi.shape), np.zeros(phi.shape), np.where(is_integer, remainder, 1.0)
            )
            result = result + np.where(is_integer, 2.0 * turns * full, 0.0)
    return np.where(np.isnan(phi + m), np.nan, result)


def _within(code: Plain, x: Plain, y: Plain, z: Plain) -> Plain:
    result = np.full(x.shape, np.nan)
    for item in np.unique(code).astype(int):
        n, less = divmod(int(item), 10)
        which = code == item
        halves = (2 * less + 1, 1, 2 * (n - less) + 1)
        result[which] = 0.5 * carlson(halves, 0, x[which], y[which], z[which])
    return result


_ORDERS = ("the code x",)
_DELTA = "(1.0 - z * square(sin(y)))"
_K = "(floor(0.1 * x) - (x - 10.0 * floor(0.1 * x)))"
_THETA = (
    "quad(lambda t: sin(t)**(2 * int(x // 10)) * (1 - {m} * sin(t)**2)**(-(int(x // 10) - int(x % "
    "10)) - mpf(1) / 2), [0, {phi}])"
)
# fmt: off
row("elliptic_derivative", (None,
    f"g * power(square(sin(y)), floor(0.1 * x)) * power({_DELTA}, -0.5 - {_K})",
    f"g * (0.5 + {_K}) * elliptic_derivative(x + 10.0, y, z)"),
    "A derivative of Legendre's elliptic integrals with respect to their parameter", None,
    _THETA.format(phi="y", m="z"), ((10.0, 0.7, 0.6), (11.0, 2.0, -3.0)), domain="z sin(y)**2 < 1",
    constant=_ORDERS, ufunc=of_scipy(lambda code, phi, m: _legendre(code, phi, m, 1.0 - m)),
    tested=False)
row("elliptic_derivative_complete",
    (None, f"-g * (0.5 + {_K}) * elliptic_derivative_complete(x + 10.0, y)"),
    "A derivative of Legendre's complete elliptic integrals with respect to their parameter, at 1 "
    "- y", None, _THETA.format(phi="pi / 2", m="(1 - y)"), ((10.0, 0.4), (11.0, 1e-3)),
    domain="y > 0",
    constant=_ORDERS,
    ufunc=of_scipy(lambda code, k: _within(*np.broadcast_arrays(code, 1.0, 0.0, k))),
    tested=False)
rows(("ellipk", "0.5 * g * elliptic_derivative_complete(10.0, 1.0 - x)",
    "Complete elliptic integral of the first kind", "ellipk(x)"),
    ("ellipe", "-0.5 * g * elliptic_derivative_complete(11.0, 1.0 - x)",
    "Complete elliptic integral of the second kind", "ellipe(x)"),
    points=(0.6, -3.0, 1e-9, 0.9999), domain="x < 1")
row("ellipkm1", "-0.5 * g * elliptic_derivative_complete(10.0, x)",
    "Complete elliptic integral of the first kind, of 1 - x", None, "ellipk(1 - x)", (0.6, 1e-20,
    5.0),
    domain="x > 0")
rows(("ellipkinc", ("g / sqrt(1.0 - y * square(sin(x)))",
    "0.5 * g * elliptic_derivative(10.0, x, y)"), "Incomplete elliptic integral of the first kind",
    "ellipf(x, y)"),
    ("ellipeinc", ("g * sqrt(1.0 - y * square(sin(x)))",
    "-0.5 * g * elliptic_derivative(11.0, x, y)"),
    "Incomplete elliptic integral of the second kind", "ellipe(x, y)"),
    points=((0.7, 0.6), (2.5, -3.0), (-0.3, 0.9), (7.0, 0.3)), domain="y sin(x)**2 < 1")

# Jacobi's functions. The amplitude is the inverse of the incomplete integral, and the others are
# functions of the amplitude.

_IN_PARAMETER = "(-0.5 * ellipj_dn(x, y) * elliptic_derivative(10.0, ellipj_ph(x, y), y))"
_SN_CN = "y * ellipj_sn(x, y) * ellipj_cn(x, y)"
_AMPLITUDE = "findroot(lambda t: ellipf(t, y) - x, x)"
results("ellipj",
    ("sn", ("g * ellipj_cn(x, y) * ellipj_dn(x, y)", f"g * ellipj_cn(x, y) * {_IN_PARAMETER}"),
    "Jacobi's sine", f"sin({_AMPLITUDE})"),
    ("cn", ("g * (-ellipj_sn(x, y)) * ellipj_dn(x, y)",
    f"g * (-ellipj_sn(x, y)) * {_IN_PARAMETER}"), "Jacobi's cosine", f"cos({_AMPLITUDE})"),
    ("dn", ("g * (-y) * ellipj_sn(x, y) * ellipj_cn(x, y)",
    f"g * (-0.5 * square(ellipj_sn(x, y)) - {_SN_CN} * {_IN_PARAMETER}) / r"),
    "Jacobi's delta amplitude", f"sqrt(1 - y * sin({_AMPLITUDE})**2)"),
    ("ph", ("g * ellipj_dn(x, y)", f"g * {_IN_PARAMETER}"), "Amplitude", _AMPLITUDE),
    points=((2.5, 0.6),), domain="0 <= y < 1")
# fmt: on
