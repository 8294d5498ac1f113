"""Probabilities of intervals much narrower than the distribution, and of few counts: value,
gradient, Hessian and draws of every family.
"""

import math

import mpmath
import numpy as np
import pytest
from comparing import close
from densities.references import WITH_TAILS, continuous, every, exact, given
from recordings import EVERY_RUNNER

import varmat as vm
import varmat.distributions as dist

SMOOTH = [row for row in WITH_TAILS if not row.discrete]
COUNTS = [row for row in WITH_TAILS if row.discrete and continuous(row)]
# The probabilities of the intervals, nearly.
MASSES = (1e-14, 1e-9, 1e-5, 2e-3, 0.03)
STEP = mpmath.mpf(10) ** -20


def class_of(row):
    return getattr(dist, dist.class_name(row.name.split("_")[:-1]))


def interval(row, point, mass):
    y, *parameters = point
    lower, width = y, mass * math.exp(-row(y, *parameters))
    return lower, lower + max(width, 40.0 * np.spacing(abs(lower)))


def differences(f, args):
    """Value, gradient and diagonal of the Hessian by differences, in 60 digits."""
    with mpmath.workdps(70):
        x = [mpmath.mpf(v) for v in args]
        # Moving an end by more than the interval is wide would turn it round.
        steps = [STEP * (abs(v) or 1) for v in x[:-2]] + [STEP * (x[-1] - x[-2])] * 2
        middle, slopes, curved = f(*x), [], []
        for i, h in enumerate(steps):
            up, down = (f(*x[:i], x[i] + s * h, *x[i + 1 :]) for s in (1, -1))
            slopes.append(float((up - down) / (2 * h)))
            curved.append(float((up - 2 * middle + down) / h**2))
        return float(middle), np.array(slopes), np.array(curved)


# Gauss and Legendre's on (0, 1).
RULE = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).calc_nodes(3, 240)
NODES = [((1 + x) / 2, w / 2) for x, w in RULE]


def log_mass(row):
    formula = exact(row)

    def f(*args):
        *parameters, lower, upper = args
        middle = formula((lower + upper) / 2, *parameters)
        total = sum(
            w * mpmath.exp(formula(lower + (upper - lower) * x, *parameters) - middle)
            for x, w in NODES
        )
        return middle + mpmath.log(total * (upper - lower))

    return f


@every(SMOOTH)
def test_every_family(row):
    tried = []
    for point in row.points[:2]:
        for mass in MASSES:
            lower, upper = interval(row, point, mass)
            if not abs(row(upper, *point[1:]) - row(*point)) < 1.0:  # out in a tail
                continue
            tried.append(mass)

            def of(x):
                made = vm.truncated(row, lower=x[-2], upper=x[-1])
                return made.log_probability(*(x[i] for i in range(len(x) - 2)))

            args = np.array([*point[1:], lower, upper])
            value, slopes = vm.value_and_grad(of)(args)
            curved = np.diag(vm.hessian(of)(args))
            expected, g, h = differences(log_mass(row), args)
            kink = "double_exponential" in row.name and lower < point[1] < upper
            bound = 1e-7 if kink else 1e-11
            assert value == pytest.approx(expected, rel=bound, abs=bound)
            per = np.where(args == 0.0, 1.0, np.abs(args))
            np.testing.assert_array_less(np.abs(slopes - g), 1e2 * bound * (np.abs(g) + 1.0 / per))
            np.testing.assert_array_less(
                np.abs(curved - h), 1e4 * bound * (np.abs(h) + g * g + 1.0 / per**2)
            )
    assert len(tried) >= len(MASSES)


@pytest.mark.parametrize("more", [0, 1, 3])
@every(COUNTS)
def test_few_counts(row, more):
    n, *parameters = given(row, row.points[0])
    places = [i - 1 for i in continuous(row)]

    def values(x):
        active = dict(zip(places, x, strict=True))
        return [active.get(i, v) for i, v in enumerate(parameters)]

    def of(x):
        return vm.truncated(row, lower=n, upper=n + more).log_probability(*values(x))

    def sum_of(x):
        logs = [row.pointwise(n + k, *values(x)) for k in range(more + 1)]
        return vm.logsumexp(np.stack(logs))

    x = np.array([float(parameters[i]) for i in places])
    for functional in (vm.gradient, vm.hessian):
        found, expected = functional(of, x), functional(sum_of, x)
        close(found, expected, 1e-12)
    close(of(x), sum_of(x), 1e-14)


def test_one_count_has_no_derivative():
    made = vm.truncated(vm.poisson_lpmf, lower=0, upper=0)
    assert vm.value_and_grad(lambda x: made(0, x))(3.0) == (0.0, 0.0)
    assert vm.hessian(lambda x: made(0, x))(3.0) == 0.0
    fractions = vm.truncated(vm.poisson_lpmf, lower=0.5, upper=2.5)
    close(fractions(1, 2.0), math.log(0.5), 1e-15)


@pytest.mark.parametrize("scale", [1e12, 1e16, 1e200])
def test_wide_scales(scale):
    """The distribution is uniform on the interval, to all digits."""
    for row in (vm.normal_lpdf, vm.cauchy_lpdf, vm.logistic_lpdf, vm.gumbel_lpdf):
        made = vm.truncated(row, lower=0.0, upper=1.0)
        value, slopes = vm.value_and_grad(lambda x, f=made: f(0.4, x[0], x[1]))([0.3, scale])
        close(value, 0.0, 0.0, 1e-12)
        assert np.max(np.abs(slopes)) < 10.0 / scale
        assert np.all(np.isfinite(vm.hessian(lambda x, f=made: f(0.4, x[0], x[1]))([0.3, scale])))


def test_narrow_and_wide_elements():
    lower, upper = np.array([0.0, 0.0, 1.0, -np.inf]), np.array([1.0, np.inf, 1.0 + 1e-9, 0.5])

    def of(x, lower=lower, upper=upper):
        made = vm.truncated(vm.normal_lpdf, lower=lower, upper=upper)
        return made.log_probability(x[0], x[1])

    x = np.array([0.3, 3.0])
    found = vm.jacobian(of)(x)
    for i, ends in enumerate(zip(lower, upper, strict=True)):
        close(of(x)[i], of(x, *ends), 1e-14)
        close(found[i], vm.gradient(lambda x, e=ends: of(x, *e), x), 1e-13)


@pytest.mark.parametrize("runner", EVERY_RUNNER)
def test_recorded(runner):
    """A recording made where the interval is wide is right where it is narrow, and the other way
    round.
    """

    def f(x):
        made = vm.truncated(vm.normal_lpdf, lower=0.0, upper=1.0)
        return made(0.4, x[0], x[1]) + made(0.2, x[0], x[1])

    points = [np.array([0.3, 1.5]), np.array([0.3, 1e13]), np.array([0.2, 1e5])]
    for functional in (lambda f: f, vm.hessian):
        for first in points:
            recorded = vm.recorded(functional(f), runner=runner)
            recorded(first)
            for x in points:
                expected = (vm.value_and_grad if functional is not vm.hessian else vm.hessian)(f)(x)
                close(recorded(x), expected, 1e-9, 1e-14)


@every(WITH_TAILS)
def test_draws(row):
    """Draws of a narrow interval are uniform on it; counts are those of the interval."""
    point = given(row, row.points[0])
    parameters = point[1:]
    if row.discrete:
        made = class_of(row)(*parameters).truncated(point[0], point[0])
        assert np.all(made.rng(1, size=5) == point[0])
        return
    lower, upper = interval(row, point, 1e-10)
    drawn = class_of(row)(*parameters).truncated(lower, upper).rng(1, size=200)
    places = (drawn - lower) / (upper - lower)
    assert np.all((places >= 0.0) & (places <= 1.0))
    assert abs(np.mean(places) - 0.5) < 0.1
    assert abs(np.std(places) - math.sqrt(1.0 / 12.0)) < 0.05


def test_many_counts():
    """So many that they are summed only if the difference has lost digits."""

    def of(x, last):
        return vm.truncated(vm.poisson_lpmf, lower=10**8, upper=last).log_probability(x)

    x, last = 1.00001e8, 10**8 + 70
    logs = np.array([vm.poisson_lpmf(n, x) for n in range(10**8, last + 1)])
    slopes = np.arange(10**8, last + 1) / x - 1.0
    weights = np.exp(logs - vm.logsumexp(logs))
    close(of(x, last), vm.logsumexp(logs), 1e-14)
    close(vm.gradient(lambda x: of(x, last), x), weights @ slopes, 1e-9)
    curved = weights @ (slopes**2 - (slopes + 1.0) / x) - (weights @ slopes) ** 2
    close(vm.hessian(lambda x: of(x, last))(x), curved, 1e-6)
    wide = of(1e8, 10**8 + 10**6)
    close(wide, math.log(0.5), 0.0, 1e-4)
    several = vm.truncated(vm.poisson_lpmf, lower=np.array([0, 3]), upper=np.array([0, 80]))
    assert several.log_probability(np.array([[2.0], [3.0]])).shape == (2, 2)


@pytest.mark.parametrize(("density", "parameters", "ends"), [
    (vm.gumbel_lpdf, (0.1, 1.5), (-1e6, 0.3)),
    (vm.weibull_lpdf, (60.0, 1.5), (0.3, 1e6)),
    (vm.frechet_lpdf, (200.0, 0.5), (1e-3, 0.6)),
    (vm.yule_simon_lpmf, (700.0,), (1, 10**6)),
])  # fmt: skip
def test_an_end_that_no_probability_reaches(density, parameters, ends):
    """Its logarithm overflows. The other end has all derivatives."""
    x = np.array(parameters)
    lower, upper = ends
    one_sided = {"upper": upper} if lower < 0.1 else {"lower": lower}

    def of(x, **ends):
        return vm.truncated(density, **ends).log_probability(*x)

    for functional in (vm.gradient, vm.hessian):
        found = functional(lambda x: of(x, lower=lower, upper=upper), x)
        expected = functional(lambda x: of(x, **one_sided), x)
        close(found, expected, 1e-12, 1e-300)
        assert np.all(np.isfinite(found))
