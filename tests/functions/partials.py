"""Central differences, and the distance from them, for the tests of rows."""

from itertools import combinations

import mpmath
import numpy as np

import varmat as vm
from varmat.core.rules import OPERANDS


def exact(function, point, *axes):
    """Return the partial derivative along the axes, by central differences. The steps leave 19
    digits of a third derivative.
    """
    with mpmath.workdps(64):
        xs = [mpmath.mpf(x) for x in point]

        def difference(f, axis):
            h = (abs(xs[axis]) or 1) * mpmath.mpf(10) ** -15

            def slope(*ts):
                low, high = (f(*ts[:axis], ts[axis] + k * h, *ts[axis + 1 :]) for k in (-1, 1))
                return (high - low) / (2 * h)

            return slope

        for axis in axes:
            function = difference(function, axis)
        return float(mpmath.re(function(*xs)))


def slopes(reference, names, point, places, scale, digits):
    """Return the value of an expression and its first and second partial derivatives at some
    places, by central differences with twice the digits. Steps are in units of `scale`.
    """
    code = compile(reference, f"<{reference}>", "eval")
    with mpmath.workdps(2 * digits):
        steps = [mpmath.mpf(x) * mpmath.mpf(10) ** (-digits // 2) for x in scale]

        def moved(sign, axes):
            xs = [mpmath.mpf(x) + sign * steps[i] * (i in axes) for i, x in enumerate(point)]
            return mpmath.re(eval(code, {**names, **dict(zip(OPERANDS, xs, strict=False))}))

        value = moved(0, ())
        ahead, behind = ({i: moved(sign, (i,)) for i in places} for sign in (1, -1))
        second = {(i, i): ahead[i] + behind[i] - 2 * value for i in places}
        for i, j in combinations(places, 2):
            both = moved(1, (i, j)) + moved(-1, (i, j)) - second[i, i] - second[j, j] - 2 * value
            second[i, j] = second[j, i] = both / 2
        return (
            float(value),
            [float((ahead[i] - behind[i]) / (2 * steps[i])) for i in places],
            [[float(second[i, j] / (steps[i] * steps[j])) for j in places] for i in places],
        )


def gradient(function, columns):
    with vm.nested(), np.errstate(all="ignore"):
        xs = [vm.var(x) for x in columns]
        np.sum(function(*xs)).grad()
        return [x.adj for x in xs]


def relative(ours, truth, scale=0.0):
    truth = np.asarray(truth)
    return float(
        np.max(np.abs(ours - truth) / np.maximum(np.maximum(np.abs(truth), scale), 1e-290))
    )


def error(a, b, floor=0.0):
    """Return the largest relative difference. Near 1e-300 a float64 has lost digits to
    underflow.
    """
    a, b = np.asarray(a, float), np.asarray(b, float)
    with np.errstate(all="ignore"):
        relative = np.where(a == b, 0.0, np.abs(a - b) / (np.abs(b) + floor + 1e-288))
    return float(np.max(np.where(np.isnan(relative), np.inf, relative), initial=0.0))
