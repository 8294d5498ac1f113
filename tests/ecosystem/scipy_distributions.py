"""The distributions of `scipy.stats` with variables for data, shapes, location and scale, compared
with differences of SciPy's own values.

``python tests/ecosystem/scipy_distributions.py`` prints the table of all calls.
"""

import collections
import sys
import warnings

import numpy as np
import scipy.stats
from scipy.stats._distr_params import distcont, distdiscrete

import varmat as vm

CONTINUOUS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
DISCRETE = ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf")
# Values at these take seconds, and the last iterates over arrays: NumPy 2.0 ends the process if an
# object refuses to become one.
LEFT_OUT = {"studentized_range", "levy_stable", "kstwo"}
# Shapes inside the domain, in place of those at which a formula changes.
SHAPES = {"kappa4": (0.1, 0.2), "genextreme": (0.2,)}
COUNTS = {"N", "n", "M", "r", "low", "high"}


def families(table):
    return {
        name: SHAPES.get(name, tuple(shapes))
        for name, shapes in reversed(table)
        if isinstance(name, str) and name not in LEFT_OUT and all(map(np.isscalar, shapes))
    }


def continuous(name, shapes, method):
    """A function of shapes, location, scale and data, and its point."""
    distribution = getattr(scipy.stats, name)
    inside = distribution.ppf([0.35, 0.71], *shapes, loc=0.3, scale=1.7)
    k, call = len(shapes), getattr(distribution, method)

    def f(q):
        values = call(q[k + 2 :], *(q[i] for i in range(k)), loc=q[k], scale=q[k + 1])
        return np.sum(values * [1.0, 2.0])

    return f, np.array([*shapes, 0.3, 1.7, *inside])


def discrete(name, shapes, method):
    """A function of the shapes that are no counts."""
    distribution = getattr(scipy.stats, name)
    names = (distribution.shapes or "").replace(" ", "").split(",") if shapes else []
    free = [i for i, each in enumerate(names) if each not in COUNTS]
    inside, call = distribution.ppf([0.35, 0.71], *shapes), getattr(distribution, method)

    def f(q):
        full = [q[free.index(i)] if i in free else x for i, x in enumerate(shapes)]
        return np.sum(call(inside, *full) * [1.0, 2.0])

    return f, np.array([float(shapes[i]) for i in free])


def differences(f, x):
    """Central differences of fourth order."""
    slopes = []
    for i in range(len(x)):
        h = np.zeros(len(x))
        h[i] = 1e-4 * max(abs(x[i]), 0.1)
        near, far = f(x + h) - f(x - h), f(x + 2 * h) - f(x - 2 * h)
        slopes.append((8 * near - far) / (12 * h[i]))
    return np.array(slopes)


def derivative(f, x):
    """The value and the gradient; None if SciPy's code refuses variables."""
    try:
        return vm.value_and_grad(f)(x)
    except (TypeError, ValueError, AttributeError):
        return None


def judged(f, x, found):
    """Whether a call is right, is refused, or gives something else."""
    if found is None:
        return "refused"
    value, slope = found
    if not np.allclose(value, f(x), rtol=1e-12, atol=1e-14):
        return "wrong value"
    if np.isnan(slope).any():
        return "nan"
    return "right" if np.allclose(slope, differences(f, x), rtol=1e-6, atol=1e-7) else "wrong"


def calls(methods):
    """The family, the method, and what becomes of it."""
    tables = ((distcont, continuous, methods[0]), (distdiscrete, discrete, methods[1]))
    made = [
        (family, method, f, x)
        for table, make, names in tables
        for family, shapes in sorted(families(table).items())
        for method in names
        for f, x in [make(family, shapes, method)]
        if len(x)
    ]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # Once for all calls, because to replace the names of all modules takes longer than a call.
        with vm.numpy.patched(scipy.stats):
            found = [derivative(f, x) for _, _, f, x in made]
        return [
            (family, method, judged(f, x, derived))
            for (family, method, f, x), derived in zip(made, found, strict=True)
        ]


if __name__ == "__main__":
    found = collections.Counter()
    for family, method, how in calls((CONTINUOUS, DISCRETE)):
        found[method, how] += 1
        if how != "right":
            print(family, method, how, file=sys.stderr)
    for (method, how), count in sorted(found.items()):
        print(f"{method:8} {how:12} {count}")
