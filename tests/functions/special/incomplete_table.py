"""Exact values of the incomplete gamma and beta functions over all shapes: the table
``tests/data/incomplete_functions.json``.

The points are spread evenly over the logarithms of the shapes, from 1e-8 to 1e10, and over the
distance from the mean in standard deviations, on both sides. Each tail is an integral over the
logarithm of the variable, or over its log odds, by Gauss' rule with 64 nodes on pieces that grow
from the point and from the corners of the integrand, with 70 digits. The table is made by

    python tests/functions/special/incomplete_table.py
"""

import json
import math
import random
from functools import cache
from itertools import pairwise
from pathlib import Path

import mpmath as mp
import numpy as np

TABLE = Path(__file__).parents[2] / "data" / "incomplete_functions.json"
DIGITS, DROP = 70, 150.0


@cache
def gauss():
    """Return the nodes and weights on (-1, 1), polished by Newton's method."""
    rule = []
    for start in np.polynomial.legendre.leggauss(64)[0]:
        t = mp.mpf(float(start))
        for _ in range(3):
            before, here = mp.mpf(1), t
            for k in range(2, 65):
                before, here = here, ((2 * k - 1) * t * here - (k - 1) * before) / k
            slope = 64 * (t * here - before) / (t * t - 1)
            t -= here / slope
        rule.append((t, 2 / ((1 - t * t) * slope * slope)))
    return rule


def moments(exponent, scores,
            corners):  # fmt: skip
    """Integrate exp(exponent) and its products with the scores from 0 upwards."""
    step = 1e-16
    while exponent(mp.mpf(step)) > -DROP:
        step *= 1.2
    end = step
    while exponent(mp.mpf(step)) < -4:
        step /= 1.2
    cuts = {0.0, end}
    for corner in (0.0, *corners):
        width = min(step, 0.25)
        for k in range(400):
            places = {corner + width * 1.6**k, corner - width * 1.6**k, corner}
            inside = {p for p in places if 0.0 < p < end}
            if k and not inside - {corner}:
                break
            cuts |= inside
    ordered = sorted(cuts)
    sums = []
    for low, high in pairwise(ordered):
        half, middle = mp.mpf(high - low) / 2, (mp.mpf(high) + mp.mpf(low)) / 2
        for t, weight in gauss():
            u = middle + half * t
            mass = mp.exp(exponent(u)) * weight * half
            terms = [mass, *(mass * score for score in scores(u))]
            sums = [s + term for s, term in zip(sums, terms, strict=True)] if sums else terms
    return sums


def both(tail, slope):
    """Return the logarithm of a tail and its derivatives, and those of the other tail."""
    share = mp.exp(tail[0])
    odds = share / (1 - share)
    first = [*tail, slope / share]
    return [
        [float(x) for x in row]
        for row in (first, [mp.log1p(-share), *(-odds * x for x in first[1:])])
    ]


def gamma_entry(shape, argument):
    """Return P and Q: the logarithm, and its derivatives in the shape and the argument."""
    a, x = mp.mpf(shape), mp.mpf(argument)
    upper = x > max(a, 1)
    sign = 1 if upper else -1
    sums = moments(
        lambda u: (a - x) * sign * u - x * (mp.expm1(sign * u) - sign * u),
        lambda u: [sign * u],
        [math.log(argument)] if argument > 1.0 and not upper else [],
    )
    weight = a * mp.log(x) - x - mp.loggamma(a)
    tail = [weight + mp.log(sums[0]), mp.log(x) - mp.digamma(a) + sums[1] / sums[0]]
    rows = both(tail, sign * -mp.exp(weight) / x)
    return rows[::-1] if upper else rows


def beta_entry(first, second, argument):
    """Return I and its complement: the logarithm, and its derivatives in the shapes and the
    argument.
    """
    a, b, x = mp.mpf(first), mp.mpf(second), mp.mpf(argument)
    upper = x > a / (a + b)
    one, other, p = (a, b, x) if upper else (b, a, 1 - x)
    sums = moments(
        lambda u: one * u - (one + other) * mp.log1p(p * mp.expm1(u)),
        lambda u: [u - mp.log1p(p * mp.expm1(u)), -mp.log1p(p * mp.expm1(u))],
        [float(-mp.log(p)), float(-mp.log(p) - mp.log(1 + other))],
    )
    total = mp.digamma(a + b)
    scores = [
        mp.log(p) - mp.digamma(one) + total + sums[1] / sums[0],
        mp.log(1 - p) - mp.digamma(other) + total + sums[2] / sums[0],
    ]
    density = (a - 1) * mp.log(x) + (b - 1) * mp.log(1 - x)
    density += mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    weight = one * mp.log(p) + other * mp.log(1 - p)
    weight += mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    tail = [weight + mp.log(sums[0]), *(scores if upper else scores[::-1])]
    rows = both(tail, mp.exp(density) * (-1 if upper else 1))
    return rows[::-1] if upper else rows


def points(seed, count):
    """Return arguments of the two functions."""
    draw = random.Random(seed)
    gammas, betas = [], []
    while len(gammas) < count:
        a = 10 ** draw.uniform(-8, 10)
        x = a + draw.choice([-1, 1]) * 10 ** draw.uniform(-2, 1.5) * math.sqrt(a)
        if x <= 0.0 or draw.random() < 0.1:
            x = a * math.exp(draw.uniform(-40, 1))
        gammas.append((a, x))
    while len(betas) < count:
        a, b = 10 ** draw.uniform(-8, 10), 10 ** draw.uniform(-8, 10)
        mean = a / (a + b)
        deviation = math.sqrt(mean * (b / (a + b)) / (a + b + 1.0))
        x = mean + draw.choice([-1, 1]) * 10 ** draw.uniform(-2, 1.5) * deviation
        if not 0.0 < x < 1.0 or draw.random() < 0.1:
            x = draw.choice([mean * math.exp(-draw.uniform(0, 40)), draw.random()])
        if 1e-200 < x < 1.0:
            betas.append((a, b, x))
    return gammas, betas


def main():
    """Write the table."""
    mp.mp.dps = DIGITS
    gammas, betas = points(1, 120)
    TABLE.write_text(json.dumps({
        "source": "mpmath with 70 digits: tests/functions/special/incomplete_table.py",
        "entry": "arguments; logarithm of the function and its derivatives; of its "
            "complement the same",
        "gamma": [[p, *gamma_entry(*p)] for p in gammas],
        "beta": [[p, *beta_entry(*p)] for p in betas],
    }).replace("]], [[", "]],\n [[") + "\n", encoding="utf-8")  # fmt: skip


if __name__ == "__main__":
    main()
