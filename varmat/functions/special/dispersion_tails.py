"""Derivatives of probabilities in a precision at a fixed mean: of negative binomial counts, and of
proportions.

As sums of derivatives in the shapes of an incomplete beta function they would be small rests of
large terms, by the square of the precision for counts. Here the derivative of the logarithm of a
probability is the mean, over its own tail, of the same derivative of the density, the score, which
is written as the small number that it is. Between zero and one there are only two tails, and a
probability next to one has the derivative of the other one, with the opposite sign."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from varmat.core.elementwise import Elementwise, new_row
from varmat.functions.rows import formula
from varmat.functions.special.gamma_differences import zeta_excess_difference
from varmat.functions.special.precision_scores import less_line
from varmat.functions.special.quadrature import SMOOTH, on_domain
from varmat.functions.special.series import ASYMPTOTIC, DIGAMMA, log_less_line, polynomial
from varmat.functions.special.shape_derivatives import beta_log_weight, beta_mass
from varmat.plain_arrays import special
from varmat.typing import Function, Plain

# A score and its derivative in the precision, as functions of an argument, its complement and the
# logarithms of both.
Score = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
# Added to a code: the derivative in the end of the tail.
_END = 10


def _less_log(z: Plain) -> tuple[Plain, Plain]:
    """``psi(z) - log(z)`` and its derivative."""
    far = np.maximum(z, ASYMPTOTIC)
    inverse = 1.0 / far
    slopes = tuple(2.0 * (k + 1) * c for k, c in enumerate(DIGAMMA))
    value = -0.5 * inverse - inverse**2 * polynomial(inverse**2, DIGAMMA)
    slope = 0.5 * inverse**2 + inverse**3 * polynomial(inverse**2, slopes)
    near = z < ASYMPTOTIC
    return np.where(near, special.psi(z) - np.log(z), value), np.where(
        near, special.zeta(2.0, z) - 1.0 / z, slope
    )


def _of_counts(phi: Plain, m: Plain) -> Score:
    """Make the score of counts: the density of means above which there are m successes or more is
    proportional to x**phi y**m / s, y / x = s / phi.
    """
    remainder = zeta_excess_difference(1.0, phi, m)[:, None]
    in_phi = -zeta_excess_difference(2.0, phi, m)[:, None]
    phi, m = phi[:, None], m[:, None]
    y_mode, x_mode = m / (phi + m), phi / (phi + m)

    def score(x: Plain, y: Plain, log_x: Plain, _: Plain) -> tuple[Plain, Plain]:
        deviation = y - y_mode
        first = (
            less_line(log_x, -y) - log_less_line(x_mode, -y_mode) + remainder + m / phi * deviation
        )
        slope = (
            ((y + y_mode) - m / phi) * deviation / phi
            - m / phi**2 * (x * y - x_mode * y_mode)
            + in_phi
        )
        return first, slope

    return score


def _of_proportions(mu: Plain, kappa: Plain) -> Score:
    nu = 1.0 - mu
    values = [_less_log(z) for z in (kappa, mu * kappa, nu * kappa)]
    remainder, in_kappa = (
        (values[0][i] - mu ** (i + 1) * values[1][i] - nu ** (i + 1) * values[2][i])[:, None]
        for i in (0, 1)
    )
    mu, nu = mu[:, None], nu[:, None]

    def score(x: Plain, y: Plain, log_x: Plain, log_y: Plain) -> tuple[Plain, Plain]:
        deviation = np.where(mu < 0.5, x - mu, nu - y)
        one, other = (
            less_line(log_x - np.log(mu), deviation / mu),
            less_line(log_y - np.log(nu), -deviation / nu),
        )
        return mu * one + nu * other + remainder, in_kappa

    return score


def _moment(score: Score, order: int, *args: Plain) -> Plain:
    """Compute the derivative of the density in the precision, of this order, over the density."""
    first, slope = score(*args)
    return first if order == 1 else first * first + slope


def _tail(
    score: Score, order: int, upper: bool, a: Plain, b: Plain, x: Plain, y: Plain
) -> tuple[Plain, Plain]:
    """Compute the mean over the tail below or above x, and the tail over the density of the
    logarithm of the odds at x.
    """
    one, other, p, q = (a, b, x, y) if upper else (b, a, y, x)
    smooth = np.minimum(a, b) >= SMOOTH
    down, up, mass = beta_mass(bool(smooth[0]), one, other, p, q)
    log_p, log_q = np.log(p)[:, None] - down, np.log(q)[:, None] - up
    new_p, new_q = p[:, None] * np.exp(-down), q[:, None] * np.exp(-up)
    terms = (new_p, new_q, log_p, log_q) if upper else (new_q, new_p, log_q, log_p)
    total = np.sum(mass, axis=-1)
    return np.sum(mass * _moment(score, order, *terms), axis=-1) / total, total


def _derivative(
    make: Function, upper: bool, code: int, a: Plain, b: Plain, x: Plain, y: Plain, *others: Plain
) -> Plain:
    """Compute the derivative of order 1 or 2, as the code says, over the probability; with `_END`
    added, its derivative in the log odds of x.
    """
    of_end, order = divmod(code, _END)
    if order > 2:
        return np.full(x.shape, np.nan)
    low = np.where(x < y, special.betainc(a, b, x), special.betaincc(b, a, y))
    high = np.where(x < y, special.betaincc(a, b, x), special.betainc(b, a, y))
    own = high if upper else low
    result, is_smooth = np.empty(x.shape), np.minimum(a, b) >= SMOOTH
    for small, smooth in ((True, True), (True, False), (False, True), (False, False)):
        which = ((own < 0.6) == small) & (is_smooth == smooth)
        if not which.any():
            continue
        score = make(*(v[which] for v in others))
        values = [v[which] for v in (a, b, x, y)]
        mean, total = _tail(score, order, upper == small, *values)
        share: Plain = 1.0
        if not small:
            # SciPy's complements have two digits less than this.
            other = np.exp(beta_log_weight(*values)) * total
            share = other / (1.0 - other)
        mean = mean if small else -share * mean
        if of_end:
            here = _moment(score, order, *(v[which, None] for v in (x, y, np.log(x), np.log(y))))[
                :, 0
            ]
            mean = (-share if upper else share) * (here - mean) / total
        result[which] = mean
    return result


def _counts(upper: bool, code: Plain, phi: Plain, mu: Plain, m: Plain) -> Plain:
    code, phi, mu, m = np.broadcast_arrays(code, phi, mu, m)
    inside = (phi > 0) & (mu > 0) & (m > 0) & np.isfinite(phi) & np.isfinite(mu) & np.isfinite(m)

    def one(code: int, phi: Plain, mu: Plain, m: Plain) -> Plain:
        total = mu + phi
        # The probability up to a count is the tail below p = phi / (mu + phi); the values of p
        # there belong to larger means.
        result = _derivative(_of_counts, upper, code, phi, m, phi / total, mu / total, phi, m)
        return result / -mu if code >= _END else result

    return on_domain(one, code, inside, phi, mu, m)


def _proportions(upper: bool, code: Plain, theta: Plain, mu: Plain, kappa: Plain) -> Plain:
    code, theta, mu, kappa = np.broadcast_arrays(code, theta, mu, kappa)
    inside = (theta > 0) & (theta < 1) & (mu > 0) & (mu < 1) & (kappa > 0) & np.isfinite(kappa)

    def one(code: int, theta: Plain, mu: Plain, kappa: Plain) -> Plain:
        remainder = 1.0 - theta
        result = _derivative(
            _of_proportions,
            upper,
            code,
            mu * kappa,
            (1.0 - mu) * kappa,
            theta,
            remainder,
            mu,
            kappa,
        )
        return result / (theta * remainder) if code >= _END else result

    return on_domain(one, code, inside, theta, mu, kappa)


def _counts_row(word: str, upper: bool) -> Elementwise:
    name = f"negative_binomial_{word}"
    return new_row(
        name,
        formula(partial(_counts, upper)),
        "nan * g",
        f"g * ({name}(x + 1.0, y, z, w) - r * {name}(1.0, y, z, w))",
        f"g * {name}(x + 10.0, y, z, w)",
        "nan * g",
        doc=f"Derivative of order x in the precision y of the probability of counts {word} w, of "
        "the mean z, over the probability.",
    )


def _proportions_row(word: str, upper: bool) -> Elementwise:
    name, log = f"proportion_{word}", f"log_betainc{'c' * upper}_derivative"
    in_a, in_b, in_aa, in_ab, in_bb = (
        f"{log}({k}.0, z * w, (1.0 - z) * w, y)" for k in (100, 10, 200, 110, 20)
    )
    return new_row(
        name,
        formula(partial(_proportions, upper)),
        "nan * g",
        f"g * {name}(x + 10.0, y, z, w)",
        f"g * ({in_a} - {in_b} + w * (z * {in_aa} + (1.0 - 2.0 * z) * {in_ab} - (1.0 - z) * "
        f"{in_bb}))",
        f"g * ({name}(x + 1.0, y, z, w) - r * {name}(1.0, y, z, w))",
        doc=f"Derivative of order x in the precision w of the probability of proportions {word} y "
        "of the mean z, over it.",
    )


# Not functions for users: names in the expressions of distribution functions.
negative_binomial_below, negative_binomial_above = (
    _counts_row("below", False),
    _counts_row("above", True),
)
proportion_below, proportion_above = (
    _proportions_row("below", False),
    _proportions_row("above", True),
)
