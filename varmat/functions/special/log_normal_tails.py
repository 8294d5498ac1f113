"""Logarithms of distribution functions that are integrals: of relatives of the normal distribution,
also around the circle.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.rows import ROOT_HALF, ROOT_TWO_OVER_PI, formula, row
from varmat.functions.special.quadrature import gauss
from varmat.plain_arrays import special
from varmat.typing import Plain

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Up to this ratio of the second term to the first their difference loses one or two digits only.
_RATIO = 0.98


def _log_exp_mod_normal(x: Plain, y: Plain) -> Plain:
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    # With Mills' ratio R the function is normal_density(x) (R(-x) - R(y - x)). Above x = 5 the
    # first term is replaced by one, because R overflows.
    left = np.minimum(x, 5.0)
    ratio = special.erfcx((y - left) * math.sqrt(0.5)) / special.erfcx(left * -math.sqrt(0.5))
    first, above = special.log_ndtr(x), x > 5.0
    if above.any():
        x_, y_ = x[above], y[above]
        far = (
            np.log(special.erfcx(np.maximum(y_ - x_, 0.0) * math.sqrt(0.5)))
            - math.log(2.0)
            - 0.5 * x_ * x_
        )
        log_second = np.where(
            x_ < y_, far, y_ * (0.5 * y_ - x_) + special.log_ndtr(np.maximum(x_ - y_, 0.0))
        )
        ratio = np.array(ratio)
        ratio[above] = np.exp(np.minimum(log_second - first[above], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.array(first + np.log1p(-ratio))
    close = (ratio > _RATIO) & np.isfinite(x)
    if close.any():
        result[close] = _log_integral(x[close], y[close])
    return result[()]


def _log_integral(x: Plain, y: Plain) -> Plain:
    """Compute the logarithm of the integral of normal_density(x - s) (1 - exp(-y s)) over s > 0.
    Its terms are positive; it serves where y s is of the order of one.
    """
    nodes, weights = gauss(64)
    start = np.maximum(x - 9.0, 0.0)
    width = np.where(x > 0.0, x + 9.0, 80.0 / (np.sqrt(x * x + 80.0) - np.minimum(x, 0.0))) - start
    s = start[..., None] + width[..., None] * nodes
    below, centre = np.minimum(x, 0.0)[..., None], np.maximum(x, 0.0)[..., None]
    exponent = below * s - 0.5 * (s - centre) ** 2
    total = np.sum(weights * np.exp(exponent) * -np.expm1(-y[..., None] * s), axis=-1)
    return np.log(width * total) - 0.5 * np.minimum(x, 0.0) ** 2 - HALF_LOG_TWO_PI


# The second term over the function, and minus its logarithmic derivative in y: the mean of a normal
# variable beyond y - x.
_OVER = (
    f"exp(where(x < y, log(erfcx({ROOT_HALF} * maximum(y - x, 0.0))) - 0.6931471805599453 - 0.5 * "
    "x * x, y * (0.5 * y - x) + log_ndtr(maximum(x - y, 0.0))) - r)"
)
_MEAN = f"(x - y + {ROOT_TWO_OVER_PI} / erfcx({ROOT_HALF} * maximum(y - x, -37.0)))"


# fmt: off
log_exp_mod_normal = row("log_exp_mod_normal", (f"g * y * {_OVER}", f"g * {_MEAN} * {_OVER}"),
    "Logarithm of the distribution function at x of the sum of a standard normal and an "
    "exponential variable of rate y",
    None, "log((erfc(-x / sqrt(2)) - exp(y * y / 2 - x * y) * erfc((y - x) / sqrt(2))) / 2)",
    ((0.3, 0.5), (-2.0, 1e-3), (6.0, 1e-2), (1.5, 4.0), (-3.0, 20.0)), 0.988518,
    source="DLMF 7.20(iii); Stan Exponentially modified normal distribution", domain="y > 0",
    ufunc=formula(_log_exp_mod_normal), module=__name__)
# fmt: on


def _log_skew_normal(x: Plain, y: Plain) -> Plain:
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    twice = 2.0 * special.owens_t(x, y)
    above = np.asarray(special.ndtr(x) - twice > 0.5)
    # The mirrored distribution has the opposite shape. The smaller of the two probabilities is
    # computed, because it keeps its digits.
    small = np.array(
        _log_small(np.where(above, -x, x), np.where(above, -y, y), np.where(above, -twice, twice))
    )
    small[above] = np.log1p(-np.exp(small[above]))
    return small[()]


def _log_small(x: Plain, y: Plain, twice: Plain) -> Plain:
    normal = special.ndtr(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.array(np.log(normal - twice))
    close = ((twice > _RATIO * normal) | (x < -30.0)) & np.isfinite(x)
    if close.any():
        result[close] = _log_skew_integral(x[close], y[close])
    return result


def _log_skew_integral(x: Plain, y: Plain) -> Plain:
    """Compute the logarithm of the integral of the density, in panels of one scale each: below 0,
    up to where the skewing factor is one, and beyond.
    """
    nodes, weights = gauss(64)
    top, up = np.minimum(x, 0.0), np.maximum(x, 0.0)
    fall = 90.0 / (1.0 + np.maximum(y, 0.0) ** 2)
    knee = np.minimum(up, 9.0 / np.maximum(np.abs(y), 1e-300))
    largest = -0.5 * top * top + special.log_ndtr(y * top)
    total = np.zeros(x.shape)
    for start, stop in (
        (top - fall / (np.sqrt(top * top + fall) - top), top),
        (np.zeros(x.shape), knee),
        (knee, up),
    ):
        which = stop > start
        width = (stop - start)[which]
        t = start[which, None] + width[:, None] * nodes
        exponent = -0.5 * t * t + special.log_ndtr(y[which, None] * t) - largest[which, None]
        total[which] += width * np.sum(weights * np.exp(exponent), axis=-1)
    return largest + np.log(total) + 0.5 * math.log(2.0 / math.pi)


# fmt: off
log_skew_normal = row("log_skew_normal",
    (f"{ROOT_TWO_OVER_PI} * g * exp(log_ndtr(x * y) - 0.5 * x * x - r)",
    f"-{1.0 / math.pi!r} * g * exp(-0.5 * (1.0 + y * y) * (x * x) - r) / (1.0 + y * y)"),
    "Logarithm of the distribution function at x of the skew normal distribution of shape y",
    None,
    "log(quad(lambda t: exp(-t * t / 2) * erfc(-y * t / sqrt(2)), [-inf, min(x, 0) - 6 / (1 + "
    "max(y, 0)), x]) / sqrt(2 * pi))", ((0.3, 0.8), (-2.0, -1.5), (-3.0, 2.0), (0.1, 30.0)), 1.0952,
    source=("Azzalini (1985), A class of distributions which includes the normal ones, "
    "Scandinavian Journal of Statistics 12, 171-178; Stan Skew normal distribution"),
    ufunc=formula(_log_skew_normal), module=__name__)
# fmt: on


def _log_circular(x: Plain, y: Plain, z: Plain) -> Plain:
    return _circular(0, x, y, z)[0]


def _circular(n: Plain, x: Plain, y: Plain, z: Plain) -> tuple[Plain, Plain]:
    """Compute the logarithm of the integral of exp(-z (1 - cos(t))) from x to y, and the mean of (1
    - cos(t))**n under it.
    """
    n, x, y, z = np.broadcast_arrays(
        n, np.asarray(x, float), np.asarray(y, float), np.asarray(z, float)
    )
    nodes, weights = gauss(64)
    # Between multiples of pi the integrand is monotone, so each panel ends where the integrand
    # becomes negligible.
    panels = []
    for k in (-2, -1, 0, 1):
        start, stop = np.clip(x, k * np.pi, (k + 1) * np.pi), np.clip(y, k * np.pi, (k + 1) * np.pi)
        peak = np.pi * (k if k % 2 == 0 else k + 1)
        near, far = (np.abs(v - peak) for v in ((start, stop) if k % 2 == 0 else (stop, start)))
        reach = np.sin(0.5 * near) ** 2 + 22.5 / np.maximum(z, 22.5)
        panels.append(
            (
                near,
                np.minimum(
                    far,
                    np.where(reach < 1.0, 2.0 * np.arcsin(np.sqrt(np.minimum(reach, 1.0))), np.pi),
                ),
            )
        )
    largest = np.max(
        [np.where(far > near, -2.0 * z * np.sin(0.5 * near) ** 2, -np.inf) for near, far in panels],
        axis=0,
    )
    total, moment = np.zeros(x.shape), np.zeros(x.shape)
    for near, far in panels:
        width = np.maximum(far - near, 0.0)
        gap = 2.0 * np.sin(0.5 * (near[..., None] + width[..., None] * nodes)) ** 2
        mass = weights * np.exp(-z[..., None] * gap - np.where(width > 0, largest, 0.0)[..., None])
        total += width * np.sum(mass, axis=-1)
        moment += width * np.sum(mass * gap ** n[..., None], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            np.where(total > 0, largest + np.log(total), -np.inf)[()],
            np.where(total > 0, moment / total, 0.0)[()],
        )


_GAP = "2.0 * square(sin(0.5 * {}))"
_CIRCLE = "-2 * pi <= x <= y <= 2 * pi, z >= 0"


# fmt: off
log_von_mises_integral = row("log_von_mises_integral", (f"-g * exp(-z * ({_GAP.format('x')}) - r)",
    f"g * exp(-z * ({_GAP.format('y')}) - r)", "-g * von_mises_moment(1.0, x, y, z)"),
    "Logarithm of the integral of ``exp(-z (1 - cos(t)))`` over t from x to y",
    None, "log(quad(lambda t: exp(-z * (1 - cos(t))), [x, y]))",
    ((-1.0, 0.5, 2.0), (-4.0, 1.0, 0.5), (0.5, 3.0, 40.0)), -0.327691,
    source="DLMF 10.32(i); Stan Von Mises distribution", domain=_CIRCLE,
    ufunc=formula(_log_circular), module=__name__)
_RATE = "exp(-w * ({0}) - log_von_mises_integral(y, z, w))"
_ENDS = [f"(power({_GAP.format(v)}, x) - r) * " + _RATE.format(_GAP.format(v)) for v in "yz"]
von_mises_moment = row("von_mises_moment", (None, f"-g * {_ENDS[0]}", f"g * {_ENDS[1]}",
    "g * (r * von_mises_moment(1.0, y, z, w) - von_mises_moment(x + 1.0, y, z, w))"),
    "Mean of ``(1 - cos(t))**x`` over t from y to z, with the weight ``exp(-w (1 - cos(t)))``",
    None,
    "quad(lambda t: (1 - cos(t))**x * exp(-w * (1 - cos(t))), [y, z]) / quad(lambda t: exp(-w * "
    "(1 - cos(t))), [y, z])", ((1, -1.0, 0.5, 2.0), (2, -4.0, 1.0, 0.5), (1, 0.5, 3.0, 40.0)),
    -0.120734,
    source="DLMF 10.32(i); Stan Von Mises distribution",
    domain="x = 0, 1, ..., " + _CIRCLE.replace("z", "w").replace("y", "z").replace("<= x", "<= y"),
    constant=("the order x",), ufunc=formula(lambda *v: _circular(*v)[1]), module=__name__)
# fmt: on
