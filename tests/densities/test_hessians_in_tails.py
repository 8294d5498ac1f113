"""Second derivatives in the tails of every density, distribution function, truncation and
censoring: finite where the gradient is, and right at 50 digits.
"""

import itertools
import math
from contextlib import suppress

import mpmath
import numpy as np
import pytest
from comparing import close
from densities.references import ROWS, WITH_TAILS, continuous, every, exact, given
from recordings import EVERY_RUNNER

import varmat as vm
import varmat.distributions as dist
from varmat.densities.cumulative.row import Cumulative

DENSITIES = [row for row in ROWS if continuous(row)]
TRUNCATED = [row for row in WITH_TAILS if continuous(row)]
FUNCTIONS = [
    *DENSITIES, *(f for row in TRUNCATED for f in (row.lcdf, row.lccdf, row.cdf)),
]  # fmt: skip
# Distances from the location in scales, and factors of observations and of parameters.
DISTANCES = (-760.0, -41.0, -12.0, 1e-5, 12.0, 38.5, 760.0, 1e5)
FACTORS = (1e-16, 1e-3, 0.1, 6.0, 40.0, 800.0, 1e5)
# Families whose reference is an integral or a series, or whose derivatives are.
SLOW = (
    "beta", "binomial", "chi", "exp_mod", "gamma", "inv_", "neg_", "poisson", "scaled",
    "skew_normal", "student", "von",
)  # fmt: skip
# Their references take seconds.
INTEGRALS = ("skew_normal_lcdf", "skew_normal_lccdf", "skew_normal_cdf")
STEP = mpmath.mpf(10) ** -35


def tail_points(row):
    """The points of a row, and its first ones moved into the tails."""
    yield from (*row.points[:1], *row.tails)
    names, first = [*row.arguments], row.points[0]
    places = [names.index(x) for x in ("mu", "xi", "sigma", "omega") if x in names]
    if len(places) == 2 and not row.name.startswith("lognormal"):
        location, scale = (first[i] for i in places)
        moved = [location + z * scale for z in DISTANCES]
    else:
        moved = [first[0] * z for z in FACTORS]
    yield from ((y, *first[1:]) for y in moved)
    for i, factor in itertools.product(range(1, len(first)), (1e-3, 30.0)):
        yield tuple(x * (factor if i == k else 1.0) for k, x in enumerate(first))


def points(f):
    """The points at which the observation is possible and no square of an argument overflows."""
    rows = tail_points(f.log if isinstance(f, Cumulative) else f)
    found = [
        given(f, p) for p in dict.fromkeys(rows) if all(x == 0 or 1e-60 < abs(x) < 1e30 for x in p)
    ]
    return found[:: 6 if f.name.startswith(SLOW) else 1]


def density_of(f):
    """The density of which f is a distribution function, or f."""
    family = f.name.rpartition("_")[0]
    return getattr(vm, f"{family}_lpdf", None) or getattr(vm, f"{family}_lpmf")


def derivatives(f, x):
    with np.errstate(all="ignore"):
        return (*vm.value_and_grad(f)(x), vm.hessian(f)(x))


def reference(f, args, places):
    """Value, gradient and Hessian by differences of 150 digits."""
    with mpmath.workdps(150):
        x = [mpmath.mpf(v) for v in args]
        step = [STEP * (abs(v) or 1) for v in x]
        known = {}

        def at(*moves):
            key = tuple(sorted(moves))
            if key not in known:
                signs = dict(moves)
                known[key] = f(*(v + signs.get(i, 0) * step[i] for i, v in enumerate(x)))
            return known[key]

        slopes = [(at((i, 1)) - at((i, -1))) / (2 * step[i]) for i in places]
        curved = np.empty((len(places), len(places)))
        for (k, i), (n, j) in itertools.product(enumerate(places), repeat=2):
            twice = at((i, 1)) - 2 * at() + at((i, -1))
            if i != j:
                twice = at((i, 1), (j, 1)) - at((i, 1), (j, -1)) - at((i, -1), (j, 1))
                twice = (twice + at((i, -1), (j, -1))) / 4
            curved[k, n] = twice / (step[i] * step[j])
        return float(at()), np.array([float(s) for s in slopes]), curved


def checked(f, args):
    """Compare the second derivatives with 50 digits, if the gradient is finite."""
    places = continuous(f)
    x = np.array([float(args[i]) for i in places])

    def of(x):
        values = dict(zip(places, x, strict=True))
        return f(*(values.get(i, v) for i, v in enumerate(args)))

    try:
        value, slopes, curved = derivatives(of, x)
    except vm.DomainError:
        return False
    if not (math.isfinite(value) and np.all(np.isfinite(slopes))):
        assert not math.isfinite(value), args
        return False
    assert np.all(np.isfinite(curved)), args
    if not math.isfinite(density_of(f)(*args)):  # the formula is not that of f
        return False
    with np.errstate(all="ignore"):
        log, g, h = reference(exact(f.log if isinstance(f, Cumulative) else f), args, places)
        squares = np.abs(np.outer(g, g))
        if isinstance(f, Cumulative):  # two parts, which cancel
            factor = math.exp(log)
            g, h, squares = factor * g, factor * (h + np.outer(g, g)), factor * squares
            if factor == 0.0:
                g, h, squares = np.zeros_like(g), np.zeros_like(h), np.zeros_like(h)
        # Elements that cancel are right relative to their parts, and slopes are ratios of
        # probabilities, from rounded logarithms.
        rounding = 1e-4 + 1e-7 * abs(log)
        own, per = np.sqrt(np.abs(np.diag(h))), np.where(x == 0.0, 1.0, np.abs(x))
        crossed = np.abs(np.outer(g, 1.0 / per))
        parts = np.max([np.outer(own, own), crossed, crossed.T, rounding * squares], axis=0)
        near = np.abs(curved - h) <= 1e-6 * np.abs(h) + 1e-8 * parts + 1e-280
    assert np.all(near), (args, curved, h)
    return True


@every([f for f in FUNCTIONS if f.name not in INTEGRALS])
def test_every_function(row):
    tried = [checked(row, args) for args in points(row)]
    assert any(tried)


@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals(name):
    """Their references take seconds: these are differences of the gradient."""
    f = getattr(vm, name)
    for args in points(f):
        args = np.array(args)
        value, slopes, curved = derivatives(lambda x: f(*x), args)
        if math.isfinite(value) and np.all(np.isfinite(slopes)):
            assert np.all(np.isfinite(curved)), args
            if abs(args[0]) < 60.0:
                steps = 1e-6 * np.maximum(np.abs(args), 0.01)
                columns = [
                    (
                        vm.gradient(lambda x: f(*x), args + e)
                        - vm.gradient(lambda x: f(*x), args - e)
                    )
                    / (2.0 * np.max(e))
                    for e in np.diag(steps)
                ]
                size = np.max(np.abs(curved)) + np.max(np.abs(slopes)) + 1e-270
                close(curved, columns, 1e-4, 1e-5 * size)


def far_points(row):
    """Points at which the density is finite, of families with parameters."""
    found = []
    for point in points(row) if len(continuous(row)) > 1 or len(row.discrete) > 0 else []:
        with suppress(vm.DomainError):
            found += [point] if math.isfinite(row.lcdf(*point) + row(*point)) else []
    return found[:: 2 if row.name.startswith(SLOW) else 3]


@every(TRUNCATED)
def test_truncations(row):
    """An end at infinity changes nothing, and no truncation far out in a tail breaks anything."""
    places = [i - 1 for i in continuous(row) if i]
    for y, *parameters in far_points(row):
        x = np.array([float(parameters[i]) for i in places])

        def of(x, f, y=y, parameters=parameters):
            values = dict(zip(places, x, strict=True))
            return f(y, *(values.get(i, v) for i, v in enumerate(parameters)))

        made = []
        most = math.pi if row is vm.von_mises_lpdf else math.inf
        for lower, upper in ((y, None), (y, most), (None, y), (-most, y)):
            truncated = vm.truncated(row, lower=lower, upper=upper)
            value, slopes, curved = derivatives(lambda x, f=truncated: of(x, f), x)
            if math.isfinite(value) and np.all(np.isfinite(slopes)):
                assert np.all(np.isfinite(curved)), (lower, upper, parameters)
            made.append(curved)
        for one, other in (made[:2], made[2:]):
            size = np.max(np.abs(one[np.isfinite(one)]), initial=0.0)
            close(other, one, 1e-9, 1e-9 * size)


@every(TRUNCATED)
def test_censorings(row):
    """Observations beyond an end, among others, have the Hessian of their probability."""
    distribution = getattr(dist, dist.class_name(row.name.split("_")[:-1]))
    places = [i - 1 for i in continuous(row) if i]
    for y, *parameters in far_points(row):
        x = np.array([float(parameters[i]) for i in places])

        def of(x, f, parameters=parameters):
            values = dict(zip(places, x, strict=True))
            return f(*(values.get(i, v) for i, v in enumerate(parameters)))

        for name, end in (("lower", row.lcdf), ("upper", row.lccdf)):
            y_end = y - 1 if name == "upper" and isinstance(y, int) else y
            expected = derivatives(lambda x, f=end, y=y_end: of(x, lambda *v: f(y, *v)), x)
            if not all(np.all(np.isfinite(each)) for each in expected):
                continue
            found = derivatives(
                lambda x, name=name, y=y: of(
                    x, lambda *v: distribution(*v).censored(**{name: y}).lpdf(np.array([y]))
                ),
                x,
            )
            for one, other in zip(found, expected, strict=True):
                size = np.max(np.abs(other)) + 1e-290
                close(one, other, 1e-9, 1e-9 * size)


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize(("f", "points"), [
    (vm.weibull_lcdf, [(40.0, 2.0, 1.0), (3.0, 1.5, 1.0)]),
    (vm.exponential_cdf, [(900.0, 1.0), (3.0, 1.5)]),
    (vm.gumbel_lccdf, [(-600.0, 0.0, 1.0), (0.3, 0.1, 1.0)]),
    (vm.gumbel_cdf, [(-900.0, 0.0, 1.0), (0.3, 0.1, 1.0)]),
    (vm.pareto_type_2_lcdf, [(10.0, 1.0, 1.0, 400.0), (3.0, 0.1, 1.0, 2.0)]),
    (vm.exp_mod_normal_lccdf, [(40.0, 1.0, 0.01, 3.0), (0.3, 0.1, 1.0, 2.0)]),
    (vm.von_mises_lccdf, [(2.8, 2.0, 3500.0), (0.3, 0.1, 2.0)]),
    (vm.normal_cdf, [(math.inf, 0.3, 1.1), (0.3, 0.1, 1.0)]),
])  # fmt: skip
def test_recorded(f, points, runner):
    """Recorded in the bulk or in the tail, the Hessian in the parameters is the eager one."""
    for first, last in (points, points[::-1]):
        at = np.array([points[0][1:], points[1][1:]])
        here = 0 if first is points[0] else 1
        hessian = vm.hessian(lambda x, y=last[0]: f(y, *x))
        recorded = vm.recorded(hessian, runner=runner)
        recorded(at[here])
        with np.errstate(all="ignore"):
            expected = hessian(at[1 - here])
            close(recorded(at[1 - here]), expected, 1e-9, 1e-12)
        assert np.all(np.isfinite(expected))


@every([f for f in FUNCTIONS if getattr(f, "outside", ())])
def test_elements_outside_the_support(row):
    """Beside others they have no second derivative, also where the formula is infinite or nan."""
    f = row
    places = continuous(f)
    inside = given(f, f.points[0])
    for outside in f.outside:
        arrays = [np.array([float(v), float(w)]) for v, w in zip(inside, outside, strict=True)]

        def of(x, arrays=arrays):
            values = dict(zip(places, x, strict=True))
            each = f.pointwise(*(values.get(i, v) for i, v in enumerate(arrays)))
            return np.sum(np.where([True, False], each, 0.0))

        x = np.array([arrays[i] for i in places])
        with np.errstate(all="ignore"):
            curved = vm.hessian(of)(x)
            assert np.all(np.isfinite(vm.gradient(of, x)))
        assert np.all(np.isfinite(curved[:, 0, :, 0]))
        assert np.all(curved[:, 1] == 0.0)
