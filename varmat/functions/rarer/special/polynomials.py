"""Orthogonal polynomials of SciPy. Derivatives in the argument are polynomials of lower degree;
some have a derivative in the parameter.

A whole degree goes to SciPy as an integer: for integers it has a recurrence that loses no digits.
The other form, a hypergeometric function, serves fractional degrees."""

from __future__ import annotations

from math import factorial

import numpy as np

from varmat.functions.rarer.special.further_rows import of_scipy
from varmat.functions.rows import row
from varmat.functions.special.quadrature import on_domain
from varmat.plain_arrays import special
from varmat.typing import Plain

_DEGREE = "the degree x"


def _evaluated(name: str, n: Plain, *values: Plain) -> Plain:
    """Evaluate a polynomial. For a negative degree it is zero, like the derivative of a constant,
    or nan for Chebyshev's.
    """
    function = getattr(special, name)
    n, *others = np.broadcast_arrays(n, *values)
    is_integer = (n == np.rint(n)) & (n >= 0)
    below = np.where(is_integer, n, 0.0).astype(int)
    result = np.where(
        is_integer, function(below, *others), np.where(("cheby" in name) & (n < -1), np.nan, 0.0)
    )
    other = n != np.rint(n)
    if np.any(other):
        # Hermite's polynomials are defined for whole degrees only.
        fractional = np.nan if "hermite" in name else function(np.where(other, n, 0.5), *others)
        result = np.where(other, fractional, result)
    return result


def _polynomial(
    name: str,
    slope: str,
    about: str,
    reference: str,
    points: Plain,
    parameters: tuple[str, ...] = (),
    domain: str = "",
    in_parameter: str = "",
) -> None:
    domain = (domain + ", " if domain else "") + "the degree is 0 or more"
    before = (None, f"g * {in_parameter}") if in_parameter else (None,) * (1 + len(parameters))
    row(
        name,
        (*before, f"g * ({slope})"),
        about,
        None,
        reference,
        points,
        domain=domain,
        constant=(_DEGREE, *parameters),
        ufunc=of_scipy(lambda *values: _evaluated(name, *values)),
        answers_for=name,
        note="That in the parameter is known of whole degrees" if in_parameter else "",
    )


def _in_parameter(kind: str, order: int, n: int, a: Plain, x: Plain) -> Plain:
    """Compute the derivative of some order in the parameter, by the recurrence with an
    infinitesimal e added to the parameter.
    """
    zero = np.zeros_like(x)

    def times(c: Plain, slope: float, p: list[Plain]) -> list[Plain]:  # (c + slope e) p
        return [c * p[k] + (slope * p[k - 1] if k else zero) for k in range(order + 1)]

    before, here = [zero] * (order + 1), [zero + 1.0, *[zero] * order]
    for k in range(n):
        if kind == "laguerre":
            up, down = times(2.0 * k + 1.0 + a - x, 1.0, here), times(k + a, 1.0, before)
        else:
            up, down = (
                times(2.0 * (k + a) * x, 2.0 * x, here),
                times(k + 2.0 * a - 1.0, 2.0, before),
            )
        before, here = here, [(u - d) / (k + 1.0) for u, d in zip(up, down, strict=True)]
    return factorial(order) * here[order]


def _derivative_row(name: str, kind: str, slope: str, reference: str) -> None:
    """Make the row of the derivatives in the parameter."""

    def value(*values: Plain) -> Plain:
        order, n, a, x = np.broadcast_arrays(*values)
        code = np.where((n >= 0) & (n == np.rint(n)) & (n < 1e5), order * 1e5 + n, 0.0)
        inside = (code == order * 1e5 + n) & np.isfinite(a + x)
        result = on_domain(
            lambda c, *v: _in_parameter(kind, c // 100_000, c % 100_000, *v), code, inside, a, x
        )
        return np.where((n < 0) & (n == np.rint(n)), 0.0, result)

    row(
        name,
        (None, None, f"g * {name}(x + 1.0, y, z, w)", f"g * ({slope})"),
        f"Derivative of order x of `{name[:-11]}` in its parameter",
        None,
        f"diff(lambda t: {reference}, z, int(x))",
        ((1.0, 5.0, 0.7, 0.2),),
        domain="y = 0, 1, 2, ...",
        constant=("the order x", "the degree y"),
        ufunc=of_scipy(value),
        tested=False,
    )


# fmt: off
_derivative_row("eval_genlaguerre_derivative", "laguerre",
    "-eval_genlaguerre_derivative(x, y - 1.0, z + 1.0, w)", "laguerre(y, t, w)")
_derivative_row("eval_gegenbauer_derivative", "gegenbauer",
    "2.0 * z * eval_gegenbauer_derivative(x, y - 1.0, z + 1.0, w) + "
    "2.0 * x * eval_gegenbauer_derivative(maximum(x - 1.0, 0.0), y - 1.0, z + 1.0, w)",
    "gegenbauer(y, t, w)")


_AT = ((5.0, 0.3), (2.0, -0.8), (0.0, 0.5), (30.0, 0.01))
_ANY = (*_AT, (2.5, 0.4))
_polynomial("eval_jacobi", "0.5 * (x + y + z + 1.0) * eval_jacobi(x - 1.0, y + 1.0, z + 1.0, w)",
    "Jacobi polynomial of degree x", "jacobi(x, y, z, w)",
    ((5.0, 0.7, -0.3, 0.2), (0.0, 0.7, -0.3, 0.2), (20.0, 1.5, 2.0, -0.6)),
    ("the parameter y", "the parameter z"))
_polynomial("eval_sh_jacobi", "x * eval_sh_jacobi(x - 1.0, y + 2.0, z + 1.0, w)",
    "Shifted Jacobi polynomial of degree x",
    "jacobi(x, y - z, z - 1, 2 * w - 1) / binomial(2 * x + y - 1, x)",
    ((5.0, 2.7, 1.3, 0.2), (8.0, 3.5, 2.0, 0.6)), ("the parameter y", "the parameter z"))
_polynomial("eval_gegenbauer", "2.0 * y * eval_gegenbauer(x - 1.0, y + 1.0, z)",
    "Gegenbauer polynomial of degree x", "gegenbauer(x, y, z)",
    ((5.0, 0.7, 0.2), (20.0, 1.5, -0.6)), in_parameter="eval_gegenbauer_derivative(1.0, x, y, z)")
_polynomial("eval_genlaguerre", "-eval_genlaguerre(x - 1.0, y + 1.0, z)",
    "Generalised Laguerre polynomial of degree x", "laguerre(x, y, z)",
    ((5.0, 0.7, 0.2), (20.0, 1.5, 3.0)), in_parameter="eval_genlaguerre_derivative(1.0, x, y, z)")
_polynomial("eval_laguerre", "-eval_genlaguerre(x - 1.0, 1.0, y)",
    "Laguerre polynomial of degree x", "laguerre(x, 0, y)",
    ((5.0, 0.3), (0.0, 0.5), (20.0, 3.0), (2.5, 0.4)))
_polynomial("eval_legendre", "eval_gegenbauer(x - 1.0, 1.5, y)", "Legendre polynomial of degree x",
    "legendre(x, y)", _ANY)
_polynomial("eval_sh_legendre", "2.0 * eval_gegenbauer(x - 1.0, 1.5, 2.0 * y - 1.0)",
    "Shifted Legendre polynomial of degree x", "legendre(x, 2 * y - 1)",
    ((5.0, 0.3), (2.0, 0.9), (0.0, 0.5), (2.5, 0.4)))
_polynomial("eval_chebyt", "x * eval_chebyu(x - 1.0, y)", "Chebyshev polynomial of the first kind",
    "chebyt(x, y)", _ANY)
_polynomial("eval_chebyu", "2.0 * eval_gegenbauer(x - 1.0, 2.0, y)",
    "Chebyshev polynomial of the second kind", "chebyu(x, y)", _ANY)
_polynomial("eval_chebyc", "x * eval_chebyu(x - 1.0, 0.5 * y)",
    "Chebyshev polynomial of the first kind on (-2, 2)", "2 * chebyt(x, y / 2)", _ANY)
_polynomial("eval_chebys", "eval_gegenbauer(x - 1.0, 2.0, 0.5 * y)",
    "Chebyshev polynomial of the second kind on (-2, 2)", "chebyu(x, y / 2)", _ANY)
_polynomial("eval_sh_chebyt", "2.0 * x * eval_chebyu(x - 1.0, 2.0 * y - 1.0)",
    "Shifted Chebyshev polynomial of the first kind", "chebyt(x, 2 * y - 1)",
    ((5.0, 0.3), (2.0, 0.9), (0.0, 0.5), (2.5, 0.4)))
_polynomial("eval_sh_chebyu", "4.0 * eval_gegenbauer(x - 1.0, 2.0, 2.0 * y - 1.0)",
    "Shifted Chebyshev polynomial of the second kind", "chebyu(x, 2 * y - 1)",
    ((5.0, 0.3), (2.0, 0.9), (0.0, 0.5), (2.5, 0.4)))
_polynomial("eval_hermite", "2.0 * x * eval_hermite(x - 1.0, y)",
    "Hermite polynomial of the physicists", "hermite(x, y)",
    ((5.0, 0.3), (2.0, -0.8), (0.0, 0.5), (20.0, 3.0)), domain="whole degrees")
_polynomial("eval_hermitenorm", "x * eval_hermitenorm(x - 1.0, y)",
    "Hermite polynomial of the statisticians", "hermite(x, y / sqrt(2)) / sqrt(mpf(2))**x",
    ((5.0, 0.3), (2.0, -0.8), (0.0, 0.5), (20.0, 3.0)), domain="whole degrees")
# fmt: on
