"""Voigt's profile, Wright's Bessel function, Riemann's zeta function, and the distributions of
Kolmogorov and Smirnov.
"""

from __future__ import annotations

from functools import cache
from math import comb, factorial, lgamma

import numpy as np

from varmat.functions.rarer.special.further_rows import inverse, of_scipy
from varmat.functions.rows import row
from varmat.functions.special.quadrature import on_domain
from varmat.plain_arrays import special
from varmat.typing import Plain

# Faddeeva's function w and its derivatives. The code is twice the order, plus one for the imaginary
# part.

# Where abs(z) is larger, the asymptotic series has all digits.
_FAR = 8.0


def _faddeeva(code: int, a: Plain, b: Plain) -> Plain:
    order, imaginary = divmod(code, 2)
    z = a + 1j * b
    near, previous = special.wofz(z), np.zeros_like(z)
    for n in range(order):  # w' = -2 z w + 2 i / sqrt(pi)
        near, previous = (
            -2.0 * z * near - 2.0 * n * previous + (2j / np.sqrt(np.pi) if n == 0 else 0.0),
            near,
        )
    result = near
    if np.any(np.abs(z) >= _FAR):
        # i / sqrt(pi) times the sum of (2 k - 1)!! / 2**k z**(-2 k - 1), differentiated term by
        # term.
        far = np.where(np.abs(z) >= _FAR, z, _FAR)
        total = np.zeros_like(z)
        for k in range(24, -1, -1):
            factor = np.prod(np.arange(1.0, 2.0 * k, 2.0)) / 2.0**k
            rising = np.prod(np.arange(2.0 * k + 1.0, 2.0 * k + 1.0 + order))
            total = total + (-1.0) ** order * factor * rising * far ** (-2.0 * k - 1.0 - order)
        result = np.where(np.abs(z) >= _FAR, 1j / np.sqrt(np.pi) * total, near)
    return result.imag if imaginary else result.real


_ODD = "(x - 2.0 * floor(0.5 * x))"
# fmt: off
row("faddeeva_derivative", (None, "g * faddeeva_derivative(x + 2.0, y, z)",
    f"g * (2.0 * {_ODD} - 1.0) * faddeeva_derivative(x + 3.0 - 2.0 * {_ODD}, y, z)"),
    "Derivative of Faddeeva's function at ``y + i z``: of order x // 2, the imaginary part if x is "
    "odd", None,
    "(im if x % 2 else re)(diff(lambda t: exp(-t * t) * erfc(-1j * t), mpc(y, z), int(x // 2)))",
    ((2.0, 0.5, 0.7), (3.0, 9.0, 0.5)), domain="x = 0, 1, 2, ..., z > 0", constant=("the code x",),
    tested=False, ufunc=of_scipy(
    lambda x, y, z: on_domain(
    _faddeeva, *np.broadcast_arrays(x, np.isfinite(x + y + z), y, z)
    )
    ))
# fmt: on
# The profile is the real part of w((x + i z) / (y sqrt(2))), over y sqrt(2 pi).
_VOIGT = "faddeeva_derivative({0}, 0.7071067811865476 * x / y, 0.7071067811865476 * z / y)"
_TWO_ROOT_PI = "0.28209479177387814"  # 1 / (2 sqrt(pi))
row(
    "voigt_profile",
    (
        f"{_TWO_ROOT_PI} * g * {_VOIGT.format('2.0')} / square(y)",
        # By the heat equation the derivative in y is y times the second derivative in x.
        f"0.19947114020071635 * g * {_VOIGT.format('4.0')} / square(y)",
        f"-{_TWO_ROOT_PI} * g * {_VOIGT.format('3.0')} / square(y)",
    ),
    "Voigt's profile: the density of the sum of a normal variable of scale y and a Cauchy variable "
    "of scale z",
    None,
    "re(exp(-((x + 1j * z) / y)**2 / 2) * erfc(-1j * (x + 1j * z) / (y * sqrt(2)))) / (y * sqrt(2 "
    "* pi))",
    ((0.5, 1.3, 0.7), (-3.0, 0.8, 2.0), (40.0, 1.5, 0.3)),
    domain="y > 0, z > 0",
)

# Wright's function is the sum of x**k / (k! gamma(a k + b)); its derivative is the function with b
# + a in place of b.

_WRIGHT = "fsum(z**k / factorial(k) * rgamma(x * k + y) for k in range(50))"
_PARAMETERS = ("the parameter x", "the parameter y")
# fmt: off
row("wright_bessel", (None, None, "g * wright_bessel(x, x + y, z)"),
    "Wright's generalised Bessel function", None, _WRIGHT, ((0.7, 1.5, 2.0),),
    domain="x >= 0, y >= 0, z >= 0", constant=_PARAMETERS)
row("log_wright_bessel", (None, None, "g * exp(log_wright_bessel(x, x + y, z) - r)"),
    "Logarithm of `wright_bessel`", None, f"log({_WRIGHT})", ((0.7, 1.5, 2.0),),
    domain="x >= 0, y > 0, z >= 0", constant=_PARAMETERS)
# fmt: on

# The derivatives of the zeta functions in the exponent, by the Euler-Maclaurin series in numbers
# with infinitesimals.

_BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
)


def _product(p: list[Plain], q: list[Plain]) -> list[Plain]:
    """Multiply two Taylor polynomials, to the same order."""
    return [sum(p[i] * q[k - i] for i in range(k + 1)) for k in range(len(p))]


def zeta_derivative(order: int, s: Plain, a: Plain) -> Plain:
    """Compute the derivative of Hurwitz' zeta function with respect to s, without the term 1 if a
    is 1.
    """
    n = 12

    def power(base: Plain) -> list[Plain]:  # base**-(s + e), in powers of e
        return [np.power(base, -s) * (-np.log(base)) ** k / factorial(k) for k in range(order + 1)]

    one = [0.0 * s + 1.0, *[0.0 * s] * order]
    total = [0.0 * s] * (order + 1)
    for k in range(n):
        total = [
            t + u
            for t, u in zip(
                total, power(a + k) if k or np.any(a != 1) else [0.0] * (order + 1), strict=True
            )
        ]
    end = a + n
    inverse_of = [(-1.0) ** k / (s - 1.0) ** (k + 1) for k in range(order + 1)]
    total = [
        t + end * u + 0.5 * v
        for t, u, v in zip(total, _product(power(end), inverse_of), power(end), strict=True)
    ]
    rising = one
    for j, number in enumerate(_BERNOULLI, 1):
        # s (s + 1) ... (s + 2 j - 2) end**(-s - 2 j + 1)
        for m in (2 * j - 3, 2 * j - 2) if j > 1 else (0,):
            rising = _product(rising, ([s + m, 1.0 + 0.0 * s] + [0.0 * s] * order)[: order + 1])
        term = _product(rising, power(end))
        total = [
            t + number / factorial(2 * j) * u * end ** (1.0 - 2.0 * j)
            for t, u in zip(total, term, strict=True)
        ]
    return factorial(order) * total[order]


# fmt: off
row("zetac_derivative", (None, "g * zetac_derivative(x + 1.0, y)"),
    "Derivative of order x of `zetac`", None, "zeta(y, 1, int(x))", ((1.0, 2.5), (2.0, 1.2)),
    domain="x = 1, 2, ..., y > 0 and not 1", constant=("the order x",), tested=False,
    ufunc=of_scipy(
    lambda x, y: on_domain(
    zeta_derivative, *np.broadcast_arrays(x, (y > 0.0) & (y != 1.0), y, 1.0)
    )
    ))
row("zetac", "g * zetac_derivative(1.0, x)", "Riemann's zeta function less 1", None, "zeta(x) - 1",
    (2.5, 1.01, 30.0, 0.5), domain="x > 0 and not 1; below there is no derivative")

row("riemann_zeta", "g * zetac_derivative(1.0, x)", "Riemann's zeta function", None, "zeta(x)",
    (2.5, 1.01, 30.0, 0.5), domain="x > 0 and not 1; below there is no derivative",
    ufunc=of_scipy(lambda x: special.zeta(x)), answers_for="_riemann_zeta")
# fmt: on

# Kolmogorov's distribution is a sum of exp(-2 k**2 x**2), and for small x of exp(-(2 k - 1)**2
# pi**2 / (8 x**2)) / x.


@cache
def _hermite(n: int) -> Plain:
    return np.polynomial.hermite.Hermite.basis(n).convert(kind=np.polynomial.Polynomial).coef


@cache
def _inward(n: int, c: float) -> tuple[float, ...]:
    """Compute the derivative of order n of ``u exp(-c u**2)``, with u = 1 / x, in x: a polynomial
    in u times the exponential.
    """
    p = np.polynomial.Polynomial([0.0, 1.0])
    u = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        p = -(u**2) * (p.deriv() - 2.0 * c * u * p)
    return tuple(p.coef)


def kolmogorov_derivative(order: int, x: Plain) -> Plain:
    """Compute the derivative of order 1, 2, ... of the probability above x."""
    above: Plain = 0.0
    far = np.maximum(x, 0.8)
    for k in range(1, 12):
        root = np.sqrt(2.0) * k
        above = above + 2.0 * (-1.0) ** (k - 1) * (
            -root
        ) ** order * np.polynomial.polynomial.polyval(root * far, _hermite(order)) * np.exp(
            -((root * far) ** 2)
        )
    below: Plain = 0.0
    u = 1.0 / np.minimum(x, 0.9)
    for k in range(1, 8):
        c = (2.0 * k - 1.0) ** 2 * np.pi**2 / 8.0
        below = below - np.sqrt(2.0 * np.pi) * np.polynomial.polynomial.polyval(
            u, _inward(order, c)
        ) * np.exp(-c * u * u)
    return np.where(x > 0.85, above, below)


_KOLMOGOROV = "(2 * sum((-1)**(k - 1) * exp(-2 * (k * x)**2) for k in range(1, 80)))"
# fmt: off
row("kolmogorov_derivative", (None, "g * kolmogorov_derivative(x + 1.0, y)"),
    "Derivative of order x of `kolmogorov`", None, f"diff(lambda x: {_KOLMOGOROV}, y, int(x))",
    ((1.0, 0.9), (1.0, 0.4)), domain="x = 1, 2, ..., y > 0", constant=("the order x",),
    tested=False,
    ufunc=of_scipy(
    lambda x, y: on_domain(kolmogorov_derivative, *np.broadcast_arrays(x, y > 0, y))
    ))
row("kolmogorov", "g * kolmogorov_derivative(1.0, x)",
    "Probability above x in Kolmogorov's distribution", None, _KOLMOGOROV, (0.9, 0.5, 0.3, 3.0),
    domain="x > 0")
inverse("kolmogi", ("kolmogorov_derivative(1.0, {0})",), 0, "Inverse of `kolmogorov`", "kolmogorov",
    (0.4, 0.999, 1e-8), domain="0 < x < 1")
# fmt: on

# Smirnov's distribution is x times the sum over j up to n (1 - x) of binom(n, j) (x + j / n)**(j -
# 1) (1 - x - j / n)**(n - j).


def _smirnov(order: int, n: int, x: Plain) -> Plain:
    """Compute the derivative of order 0, 1, ... in x."""
    total = np.zeros(x.shape)
    for j in range(n):
        up, down = x + j / n, 1.0 - x - j / n
        inside = down > 0
        down = np.where(inside, down, 1.0)
        logarithm = lgamma(n + 1) - lgamma(j + 1) - lgamma(n - j + 1)
        term = 0.0
        # Leibniz' rule for the factors x, up**(j - 1) and down**(n - j); the first has only two
        # derivatives that are not zero.
        for i in range(order + 1):
            for k in range(order + 1 - i):
                m = order - i - k
                if i > 1 or m > n - j:
                    continue
                falling = (
                    np.prod(np.arange(j - 1.0, j - 1.0 - k, -1.0))
                    * (-1.0) ** m
                    * np.prod(np.arange(n - j, n - j - m, -1.0))
                )
                coefficients = comb(order, i) * comb(order - i, k)
                if falling:
                    term = term + coefficients * falling * (x if i == 0 else 1.0) * np.exp(
                        logarithm + (j - 1.0 - k) * np.log(up) + (n - j - m) * np.log(down)
                    )
        total = total + np.where(inside, term, 0.0)
    return total


def _smirnov_derivative(order: Plain, n: Plain, x: Plain) -> Plain:
    order, n, x = np.broadcast_arrays(order, n, x)
    inside = (x > 0) & (x < 1) & (n == np.rint(n)) & (n > 0)
    code = np.where(inside, order * 1e6 + n, 0.0)
    return on_domain(lambda c, v: _smirnov(c // 1_000_000, c % 1_000_000, v), code, inside, x)


_SMIRNOV = (
    "(y * fsum(binomial(x, j) * (y + j / x)**(j - 1) * (1 - y - j / x)**(x - j) for j in "
    "range(int(x * (1 - y)) + 1)))"
)
_SIZE = ("the sample size x",)
# fmt: off
row("smirnov_derivative", (None, None, "g * smirnov_derivative(x + 1.0, y, z)"),
    "Derivative of order x of `smirnov` in its argument", None, "0", ((1.0, 7.0, 0.3),),
    domain="x = 1, 2, ..., y = 1, 2, ..., 0 < z < 1", constant=("the order x", "the sample size y"),
    tested=False, ufunc=of_scipy(_smirnov_derivative))
row("smirnov", (None, "g * smirnov_derivative(1.0, x, y)"),
    "Probability above y of the one-sided Kolmogorov-Smirnov statistic of a sample of size x",
    None, _SMIRNOV, ((7.0, 0.3), (25.0, 0.11)), domain="x = 1, 2, ..., 0 < y < 1", constant=_SIZE,
    note="The derivative is a sum of as many terms as the sample has")
inverse("smirnovi", (None, "smirnov_derivative(1.0, {0}, {1})"), 1,
    "Inverse of `smirnov` in its argument", "smirnov", ((7.0, 0.3), (25.0, 0.4)),
    domain="x = 1, 2, ..., 0 < y < 1", constant=_SIZE)
# fmt: on
