"""Derivatives of the log masses of negative binomial counts in the precision, without cancellation.

With the mean m, the precision r and p = m / (m + r), that of a count n is ``psi(r + n) - psi(r) +
log(1 - p) + (m - n) / (m + r)``. For a large precision it is of the size of its inverse square,
while the terms are as large as n / r, m / r and p. Here it is written in two ways as a sum of terms
that are small themselves:

* ``(psi(r + n) - psi(r) - n / r) + n p / r + (log(1 - p) + p)``. The first term, which is 0 for the
  counts 0 and 1, depends on no mean: equal counts share it. All terms are of the size of the square
  of a count over that of the precision, so that large counts lose digits.
* ``(psi(r + n) - psi(r) - log(1 + n / r)) + (log(1 + d) - d)`` with d = (n - m) / (m + r), where
  the logarithms are in the ratio of n + r and m + r. If the mean is small, the two parts cancel for
  a count of one, and for no other."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from varmat.core.elementwise import Elementwise, new_row
from varmat.functions.rows import formula
from varmat.functions.special.gamma_differences import (
    digamma_excess_far,
    digamma_steps,
    zeta_difference_of_numbers,
    zeta_difference_straight,
    zeta_excess_difference,
)
from varmat.functions.special.series import ASYMPTOTIC, ODD, line_series, log_less_line
from varmat.plain_arrays import special
from varmat.typing import Function, Plain

# Up to the first size of u these terms of the series of log(1 + u) - u have all digits, up to the
# second one three of them.
_NEAR, _NEARER = 0.1, 0.02
_FIVE, _THREE = ODD[:5], ODD[:3]
# With a precision up to the first number, and probabilities from the second on, the difference
# itself leaves thirteen digits of the whole.
_DISPERSED, _COMMON = 250.0, 0.004


def less_line(log: Plain, less_one: Plain) -> Plain:
    """Compute a logarithm less the first term of its series; the argument may underflow."""
    return np.where(np.abs(less_one) < 0.4, log_less_line(1.0 + less_one, less_one), log - less_one)


def _series(u: Plain, terms: tuple[float, ...] = _FIVE) -> Plain:
    """``log(1 + u) - u`` where u is near 0."""
    return line_series(u / (2.0 + u), u, terms)


def _log1m_less_line(x: Plain, y: Plain, phi: Plain) -> Plain:
    bound = _COMMON if np.ndim(phi) == 0 and phi <= _DISPERSED else _NEAR
    if np.minimum.reduce(x, axis=None, initial=1.0) >= bound:
        return x - y
    largest = np.maximum.reduce(x, axis=None, initial=0.0)
    if largest < _NEAR:
        return _series(-x, _FIVE if largest > _NEARER else _THREE)
    result = np.array(x - y, order="C")
    output, points = np.reshape(result, -1), np.ravel(x)
    small = np.flatnonzero(points < bound)
    output[small] = _series(-points[small])
    return result


def _log1m_less_line_straight(x: Plain, y: Plain, phi: Plain) -> Plain:
    return np.where(x < _NEAR, _series(-x), x - y)


def _log1m_less_line_of_numbers(x: float, y: float, phi: float) -> float:
    return float(_series(-x)) if x < _NEAR else x - y


def _digamma_difference(x: Plain, n: Plain) -> Plain:
    return special.psi(x + n) - special.psi(x)


def _digamma_less_line(x: Plain, n: Plain) -> Plain:
    near = x < ASYMPTOTIC
    if np.all(near):
        return np.where(n > 1.0, _digamma_difference(x, n) - n / x, 0.0)
    if not np.any(near):
        return np.where(n > 1.0, _digamma_less_line_far(x, n), 0.0)
    x, n, near = np.broadcast_arrays(x, n, near)
    result = np.empty(x.shape)
    for chosen in (near, ~near):
        result[chosen] = _digamma_less_line(x[chosen], n[chosen])
    return result


def _digamma_less_line_far(x: Plain, n: Plain) -> Plain:
    return digamma_excess_far(x, n) + _log1p_less_line(n / x)


def _log1p_less_line(u: Plain) -> Plain:
    return np.where(u < _NEAR, _series(u), np.log1p(u) - u)


def _digamma_less_line_straight(x: Plain, n: Plain) -> Plain:
    near = x < ASYMPTOTIC
    y = np.where(near, x + ASYMPTOTIC, x)
    line = n / y
    log = np.log1p(line)
    far = np.where(line < _NEAR, _series(line), log - line)
    close = digamma_steps(np.where(near, x, 1.0), n) + log - n / x
    return np.where(n > 1.0, np.where(near, close, far) + digamma_excess_far(y, n), 0.0)


def _digamma_less_line_of_numbers(x: float, n: float) -> float:
    if n <= 1.0:
        return 0.0
    line = n / x
    if x < ASYMPTOTIC:
        return zeta_difference_of_numbers(1.0, x, n) - line
    remainder = _series(line) if line < _NEAR else math.log1p(line) - line
    return float(digamma_excess_far(x, n) + remainder)


def _score(
    difference: Function,
    n: Plain,
    phi: Plain,
    p: Plain,
    softplus: Plain,
    d: Plain,
    log_ratio: Plain,
) -> Plain:
    """Compute the score in the second way, for the counts 0 and 1 in the first, given the
    differences of digamma functions, ``-log(1 - p)`` and ``log(1 + d)``.
    """
    near, far = np.minimum(phi, ASYMPTOTIC), np.maximum(phi, ASYMPTOTIC)
    # The quotient of a count and a tiny precision may overflow.
    logs = np.where(n > near, np.log(n + near) - np.log(near), np.log1p(np.minimum(n / near, 1.0)))
    excess = np.where(phi < ASYMPTOTIC, difference(near, n) - logs, digamma_excess_far(far, n))
    few = n * p / phi + _log1m_less_line_straight(p, softplus, phi)
    return np.where(n > 1.0, excess + less_line(log_ratio, d), few)


def _of_mean(difference: Function, n: Plain, mu: Plain, phi: Plain) -> Plain:
    total = mu + phi
    d, log_ratio = (n - mu) / total, np.log((n + phi) / total)
    return _score(difference, n, phi, mu / total, np.log1p(mu / phi), d, log_ratio)


def _of_log_mean(difference: Function, n: Plain, eta: Plain, phi: Plain) -> Plain:
    t = eta - np.log(phi)
    p, q, e = _chances(t)
    softplus = np.maximum(t, 0.0) + np.log1p(e)
    log_ratio = np.log(n + phi) - np.log(phi) - softplus
    return _score(difference, n, phi, p, softplus, n * q / phi - p, log_ratio)


def _chances(t: Plain) -> tuple[Plain, Plain, Plain]:
    """Return the probability whose log odds are t, its complement, and ``exp(-|t|)``."""
    e = np.exp(-np.abs(t))
    return np.where(t > 0.0, 1.0, e) / (1.0 + e), np.where(t > 0.0, e, 1.0) / (1.0 + e), e


def _in_log_mean(n: Plain, eta: Plain, phi: Plain) -> Plain:
    p, q, _ = _chances(eta - np.log(phi))
    return n * q - phi * p


def _score_row(name: str, function: Function, *partials: str, doc: str) -> Elementwise:
    straight = partial(function, partial(zeta_difference_straight, 1.0))
    computed = formula(partial(function, _digamma_difference), straight)
    return new_row(name, computed, "nan * g", *partials, doc=doc)


# Not functions for users: names in the expressions of densities.
zeta_excess = new_row(
    "zeta_excess_difference", formula(zeta_excess_difference),
    "nan * g",
    "-g * x * zeta_excess_difference(x + 1.0, y, z)",
    "nan * g",
    doc="``zeta_difference(x, y, z)`` less the integral from y to y + z of ``t**-x``, of counts z.",
)  # fmt: skip
digamma_less_line = new_row(
    "digamma_less_line", formula(_digamma_less_line, _digamma_less_line_straight),
    "g * (square(y / x) / (x + y) - zeta_excess_difference(2.0, x, y))",
    "nan * g",
    doc="``digamma(x + y) - digamma(x) - y / x`` of counts y.",
    scalar=_digamma_less_line_of_numbers,
)  # fmt: skip
log1m_less_line = new_row(
    "log1m_less_line", formula(_log1m_less_line, _log1m_less_line_straight),
    "g",
    "-g",
    "0.0 * g",
    doc="``x - y`` where y is ``-log(1 - x)``, to be added to terms of the precision z.",
    scalar=_log1m_less_line_of_numbers,
)  # fmt: skip
_FEW = "{p} * ({p} - x / z * (1.0 + {q})) / z"
_MANY = "square({d}) / (x + z) - zeta_excess_difference(2.0, z, x)"


def _in_precision(p: str, q: str, d: str) -> str:
    """Write the second derivative in the precision, in the two ways."""
    return f"g * where(x > 1.0, {_MANY.format(d=d)}, {_FEW.format(p=p, q=q)})"


neg_binomial_2_score = _score_row(
    "neg_binomial_2_score", _of_mean,
    "g * ((x - y) / (y + z) / (y + z))",
    _in_precision("(y / (y + z))", "(z / (y + z))", "((x - y) / (y + z))"),
    doc="The derivative in the precision z of the log mass of the count x, of the mean y.",
)  # fmt: skip
_P, _Q = "expit(y - log(z))", "expit(log(z) - y)"
_DIFFERENCE = f"(x * {_Q} / z - {_P})"
neg_binomial_2_log_score = _score_row(
    "neg_binomial_2_log_score", _of_log_mean,
    f"g * ({_P} * {_DIFFERENCE})",
    _in_precision(_P, _Q, _DIFFERENCE),
    doc="The derivative in the precision z of the log mass of the count x, of the log mean y.",
)  # fmt: skip
neg_binomial_2_log_mean_score = new_row(
    "neg_binomial_2_log_mean_score", formula(_in_log_mean),
    "nan * g",
    f"-g * ({_P} * {_Q} * (x + z))",
    f"g * ({_P} * {_DIFFERENCE})",
    doc="The derivative in the log mean y of the log mass of the count x, of the precision z.",
)  # fmt: skip
