"""Checks of the rows of SciPy's further ufuncs: against mpmath at their points, and along all
routes.
"""

import math
import warnings

import mpmath
import numpy as np
from comparing import close
from functions.partials import error, slopes
from recordings import agree

import varmat as vm
from varmat.core.elementwise import ROWS
from varmat.core.rules import ZERO
from varmat.functions.rows import RARE
from varmat.testing import expect_ad, expect_ad_matvar

MOST_DIGITS = 30
# Largest relative errors of values and first derivatives, and of second derivatives. A row may
# state others.
FIRST, SECOND = 1e-12, 1e-11
# The names that references use: mpmath's own elliptic integrals, Bessel functions and the like.
NAMES = {**vars(mpmath), "math": math}


def mathieu(odd, m, q):
    """Return the characteristic value of a Mathieu function."""
    m, size = int(m), 14
    first = m % 2 if not odd else 2 - m % 2
    a = mpmath.zeros(size)
    for k in range(size):
        a[k, k] = (first + 2 * k) ** 2 + ((-q if odd else q) if m % 2 and not k else 0)
        if k:
            a[k, k - 1] = a[k - 1, k] = q * (
                mpmath.sqrt(2) if k == 1 and not m % 2 and not odd else 1
            )
    return sorted(mpmath.eigsy(a, eigvals_only=True))[(m - first) // 2]


def spheroidal(m, n, q):
    """Return the characteristic value of a spheroidal function; q is the square of its
    parameter.
    """
    m, n, size = int(m), int(n), 14
    step = lambda k: mpmath.sqrt(mpmath.mpf(k * k - m * m) / (4 * k * k - 1))  # noqa: E731 - used here alone
    a = mpmath.zeros(size)
    for i in range(size):
        k = m + (n - m) % 2 + 2 * i
        a[i, i] = k * (k + 1) + q * (step(k) ** 2 + step(k + 1) ** 2)
        if i:
            a[i, i - 1] = a[i - 1, i] = q * step(k - 1) * step(k)
    return sorted(mpmath.eigsy(a, eigvals_only=True))[(n - m) // 2]


# The routes of these rows take long, and are tested with similar rows.
SLOW = {"chdtriv", "mathieu_b", "obl_cv", "pro_cv", "stdtridf"}
NAMES.update(mathieu=mathieu, spheroidal=spheroidal)


def free(row):
    """Return the operands whose derivative is not zero everywhere."""
    return [i for i, partial in enumerate(row.partials) if partial not in ("nan * g", ZERO)]


def bound(row, point):
    """Return the row as a function of its free operands; the others come from the point."""

    def function(*xs):
        operands = list(point)
        for i, x in zip(free(row), xs, strict=True):
            operands[i] = x
        return row(*operands)

    function.__name__ = row.name
    return function


def oracle(row, point):
    """Return the value and the first and second partial derivatives in the free operands, from
    mpmath.
    """
    scale = [min(abs(x), 1.0) or 1.0 for x in point]
    return slopes(row.reference, NAMES, point, free(row), scale, MOST_DIGITS)


def worst(row):
    """Return the worst relative errors over the points: of values, of first and of second
    derivatives.
    """
    found = np.zeros(3)
    for point in row.points:
        function, args = bound(row, point), [float(point[i]) for i in free(row)]
        value, gradient, curvature = oracle(row, point)
        spread = lambda p, f=function: f(*(p[i] for i in range(p.shape[0])))  # noqa: E731 - in a loop
        with np.errstate(all="ignore"):
            ours, blocks = vm.gradient(spread, np.array(args)), vm.hessian(spread, np.array(args))
        # A second derivative that is nearly zero is compared on the scale of the first derivatives.
        floor = np.abs(gradient)[:, None] / np.maximum(1.0, np.abs(args))
        errors = [
            error(function(*args), value),
            error(ours, gradient),
            error(blocks, curvature, np.maximum(floor, floor.T)),
        ]
        found = np.maximum(found, errors)
    return tuple(found.tolist())


def undone(row, point):
    """Put the inverse of a function into the function, which must give the probability. All
    derivatives of the inverse follow from those of the function.
    """
    first, second = RARE[row.name].reached or (FIRST, SECOND)
    place = row.partials.index(
        next(partial for partial in row.partials if partial.startswith("g / "))
    )
    places = free(row)

    def through(p):
        operands = list(point)
        for i, x in zip(places, range(len(places)), strict=True):
            operands[i] = p[x]
        solution = row(*operands)
        return ROWS[row.reference](*(solution if i == place else x for i, x in enumerate(operands)))

    p = np.array([point[i] for i in places])
    close(through(p), point[place], first)
    close(vm.gradient(through, p), [float(i == place) for i in places], 1e-7, first)
    close(vm.hessian(through, p), 0.0, 1e-7, 10.0 * second)


def check_points(row):
    """Demand the bar, or the error that the row states."""
    first, second = RARE[row.name].reached or (FIRST, SECOND)
    # mpmath does not have this function, so finite differences along all routes are the oracle.
    if not row.reference:
        return
    if row.reference in ROWS:
        for point in row.points:
            undone(row, point)
        return
    value, slope, curvature = worst(row)
    assert max(value, slope) <= first, (value, slope)
    assert curvature <= second, curvature


def check_routes(row):
    """Demand that all routes agree at the first point. Rows with many operands take long, so only
    reverse mode and recordings are compared.
    """
    point = row.points[0]
    function = bound(row, point)
    args = [np.array([float(point[i]), float(point[i]) * 1.001]) for i in free(row)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if len(args) > 2 or row.name in SLOW:
            agree(lambda *xs: np.sum(function(*xs)), tuple(args), argnums=tuple(range(len(args))))
            return
        expect_ad(function, *args)
        if len(args) == 1:
            expect_ad_matvar(function, *args)
