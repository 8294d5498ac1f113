"""50-digit versions of the rows of densities, for their tests."""

from __future__ import annotations

from typing import Any

import mpmath

from varmat.densities.univariate import Univariate


def log_ncdf(z: Any) -> Any:
    """Return the logarithm of the normal distribution function. Even 50 digits of 1 - 1e-300 are 1,
    hence the logarithm of the complement.
    """
    half = mpmath.erfc(abs(z) / mpmath.sqrt(2)) / 2
    return mpmath.log1p(-half) if z > 0 else mpmath.log(half)


def log1m_exp(t: Any) -> Any:
    """Return ``log(1 - exp(t))`` for t < 0."""
    return mpmath.log(-mpmath.expm1(t)) if t > -1 else mpmath.log1p(-mpmath.exp(t))


def _logs(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the logarithms of a probability and of its complement, given one of the two."""
    return (
        (mpmath.log(lower), mpmath.log1p(-lower))
        if upper is None
        else (mpmath.log1p(-upper), mpmath.log(upper))
    )


def _log_gamma(a: Any, x: Any) -> tuple[Any, Any]:
    if x < a:
        return _logs(mpmath.gammainc(a, 0, x, regularized=True), None)
    return _logs(None, mpmath.gammainc(a, x, mpmath.inf, regularized=True))


def log_gammainc(a: Any, x: Any) -> Any:
    """Return the logarithm of P(a, x)."""
    return _log_gamma(a, x)[0]


def log_gammaincc(a: Any, x: Any) -> Any:
    """Return the logarithm of Q(a, x)."""
    return _log_gamma(a, x)[1]


def _betainc(a: Any, b: Any, x: Any, y: Any) -> Any:
    """Sum the series DLMF 8.17.8. Its terms are positive, and decrease if x is below the mean."""
    term = total = x**a * y**b / (a * mpmath.beta(a, b))
    k = 0
    while term > total * mpmath.eps:
        term *= x * (a + b + k) / (a + 1 + k)
        total += term
        k += 1
    return total


def _log_beta(a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any]:
    return (
        _logs(_betainc(a, b, x, y), None)
        if x * (a + b) < a or (x < 0.5 and a + b < 100)
        else _logs(None, _betainc(b, a, y, x))
    )


def log_betainc(a: Any, b: Any, x: Any, y: Any = None) -> Any:
    """Return the logarithm of the regularised incomplete beta function; y is 1 - x."""
    return _log_beta(a, b, x, 1 - x if y is None else y)[0]


def log_betaincc(a: Any, b: Any, x: Any, y: Any = None) -> Any:
    """Return the logarithm of the complement of the regularised incomplete beta function."""
    return _log_beta(a, b, x, 1 - x if y is None else y)[1]


def log_t_tail(nu: Any, z: Any) -> Any:
    """Return the logarithm of the probability that Student's t exceeds z >= 0."""
    u = nu / (nu + z * z)
    return (
        log_betainc(nu / 2, mpmath.mpf(1) / 2, u, z * z / (nu + z * z)) - mpmath.log(2)
        if z
        else -mpmath.log(2)
    )


def log_exp_mod_normal(z: Any, a: Any) -> tuple[Any, Any]:
    """Return the logarithms of both probabilities of the sum of a standard normal variable and an
    exponential variable of rate a.
    """
    second = mpmath.exp(a * a / 2 - a * z) * mpmath.ncdf(z - a)
    lower, upper = mpmath.ncdf(z) - second, mpmath.ncdf(-z) + second
    return _logs(lower, None) if lower < 0.5 else _logs(None, upper)


def log_skew_normal(z: Any, alpha: Any) -> Any:
    """Return the logarithm of the distribution function of the skew normal distribution. Like
    Owen's, it is an integral of a positive function.
    """
    if z > 0:
        return mpmath.log1p(-mpmath.exp(log_skew_normal(-z, -alpha)))
    # The integrand is exp(-(z**2) (1 + t**2) / 2) / (1 + t**2), and t runs from alpha to infinity.
    # It is negligible beyond the last place.
    start, scale = max(alpha, 0), 1 / (z * z * max(alpha, 0) + abs(z))
    places = [start + k * scale for k in ((0, 2, 8, 30, 130) if alpha > 0 else (0, 1, 4, 16))]
    places += [start + 4**k for k in range(12) if 4**k < 16 * scale]
    if alpha < 0:
        places += [alpha, *(-place for place in places[1:] if -place > alpha)]
    half = z * z / 2
    total = mpmath.quad(
        lambda t: mpmath.exp(half * (start - t) * (start + t)) / (1 + t * t), sorted(places)
    )
    return mpmath.log(total / mpmath.pi) - half * (1 + start * start)


def log_von_mises(y: Any, mu: Any, kappa: Any) -> Any:
    """Return the logarithms of the probabilities of angles between -pi and y and of angles between
    y and pi, from a Fourier series.
    """
    with mpmath.workdps(mpmath.mp.dps + 100):
        count = int(2 * kappa) + 200
        above, here = mpmath.mpf(0), mpmath.mpf(1)
        total = mpmath.mpf(0)
        for n in range(count, 0, -1):
            total += here * (mpmath.sin(n * (y - mu)) - mpmath.sin(n * (-mpmath.pi - mu))) / n
            above, here = here, above + 2 * n / kappa * here
        lower = (y + mpmath.pi + 2 * total / here) / (2 * mpmath.pi)
        return _logs(lower, None) if lower < 0.5 else _logs(None, 1 - lower)


HELPERS = {
    f.__name__: f for f in (log1m_exp, log_betainc, log_betaincc, log_exp_mod_normal, log_gammainc,
     log_gammaincc, log_ncdf,
        log_skew_normal, log_t_tail, log_von_mises)
}  # fmt: skip


def exact(row: Univariate) -> Any:
    code = compile(row.reference, f"<{row.name}>", "eval")
    # The evaluated text comes from a row of the library's own table.
    return lambda *args: eval(
        code, {**vars(mpmath), **HELPERS, **dict(zip(row.arguments, args, strict=True))}
    )
