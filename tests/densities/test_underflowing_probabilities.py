"""Derivatives of distribution functions where the probability, or its complement, underflows and
the derivative does not.
"""

import math
from functools import partial

import mpmath
import numpy as np
import pytest
from comparing import close
from densities.references import WITH_TAILS, continuous, exact
from recordings import EVERY_RUNNER

import varmat as vm

# These have no such derivative; the exponential only where the product of the arguments underflows.
NEVER = {
    f"{family}_cdf"
    for family in (
        "bernoulli", "cauchy", "exponential", "geometric", "inv_chi_square", "std_normal",
        "uniform", "von_mises", "yule_simon"
    )
}  # fmt: skip
FAR = [row for row in WITH_TAILS if continuous(row) and row.cdf.name not in NEVER]
SCALES = {"sigma", "omega", "scale", "s", "y_min"}
OTHER_SCALES = {"gumbel": "beta", "inv": "lam", "loglogistic": "alpha"}


def drawn(row, rng):
    """Draw arguments of all magnitudes, with an observation near the others or far from them."""
    scale = 10.0 ** rng.uniform(-240.0, 2.0)
    z = float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.uniform(-4.0, 3.3)
    if rng.random() < 0.3:
        z = 10.0 ** rng.uniform(-240.0, 240.0)
    first, *others = row.arguments
    point, location = [], None
    for name in others:
        phrase = row.arguments[name][1].phrase
        if name in row.discrete:
            x = int(10.0 ** rng.uniform(0.0, 2.0))
        elif (name in SCALES and row is not vm.lognormal_lpdf) or name == OTHER_SCALES.get(
            row.name.partition("_")[0]
        ):
            x = scale
        elif phrase == "finite":
            x = rng.normal() if location is not None else scale * rng.normal()
            location = x if location is None else location
        elif "1" in phrase:
            x = rng.uniform(0.01, 0.99) if rng.random() < 0.6 else 10.0 ** rng.uniform(-240, -1)
        else:
            x = 10.0 ** rng.uniform(*((-1.0, 1.5) if rng.random() < 0.8 else (-240.0, 0.0)))
        if name == "rate" and row.name.startswith("exp_mod"):
            x = 10.0 ** rng.uniform(-1.0, 1.0) / scale
        point.append(x)
    if first in row.discrete:
        return int(10.0 ** rng.uniform(0.0, 2.0)), *point
    if first == "theta":
        return 10.0 ** rng.uniform(-240.0, 0.0), *point
    return scale * abs(z) if location is None else location + scale * z, *point


def outlasts(tail, point, names):
    """Whether the probability of a tail underflows and one of its derivatives does not."""
    with np.errstate(all="ignore"):
        log = tail(*point)
        if not -math.inf < log < -720.0:
            return False
        slopes = vm.value_and_grad(tail, names)(*point)[1]
    return any(
        math.isfinite(slope) and -640.0 < math.log(abs(slope)) + log < 640.0
        for slope in slopes
        if slope
    )


def found(row):
    """Return points in both tails, where there are some."""
    rng, names = np.random.default_rng(31), continuous(row)
    points = {row.lcdf: [], row.lccdf: []}
    for k in range(5000):
        if all(len(chosen) == 2 for chosen in points.values()) or (
            k > 300 and any(points.values())
        ):
            break
        point = drawn(row, rng)
        for tail, chosen in points.items():
            try:
                if len(chosen) < 2 and outlasts(tail, point, names):
                    chosen.append(point)
            except vm.DomainError:
                continue
    return [point for chosen in points.values() for point in chosen]


def derivatives(row, point):
    """Return differences at 80 digits, which have some 30 right."""
    made, log = [], exact(row.cdf.log)
    with mpmath.workdps(80):
        values = [mpmath.mpf(x) for x in point]
        for i in continuous(row):
            step = abs(values[i] or values[0]) * mpmath.mpf(10) ** -20
            ends = [log(*values[:i], values[i] + h, *values[i + 1 :]) for h in (step, -step)]
            made.append(float(mpmath.exp(log(*values)) * (ends[0] - ends[1]) / (2 * step)))
    return made


@pytest.fixture(scope="module", params=FAR, ids=lambda row: row.name)
def far(request):
    """Return a row, points and the derivatives there."""
    points = found(request.param)
    assert points
    return request.param, [(point, derivatives(request.param, point)) for point in points]


def of_vector(row, point):
    """Return the probability as a function of a vector of the continuous arguments."""
    names = continuous(row)

    def probability(x):
        args = list(point)
        for i, name in enumerate(names):
            args[name] = x[i]
        return row.cdf(*args)

    return probability, np.array([point[i] for i in names])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_derivatives_outlast_probabilities(far):
    row, cases = far
    names, bulk = continuous(row), row.lcdf.points[0]
    for point, expected in cases:
        assert any(1e-285 < abs(x) < 1e285 for x in expected)
        agree = partial(np.testing.assert_allclose, desired=expected, rtol=1e-11, atol=1e-300)
        value, gradient = vm.value_and_grad(row.cdf, names)(*point)
        assert value == row.cdf(*point)
        agree(gradient)
        f, x = of_vector(row, point)
        agree([vm.jvp(f, (x,), (e,))[1] for e in np.eye(x.size)])
        # Each element, and beside a certain and a moderate one.
        columns = [np.array([x, y]) for x, y in zip(point, bulk, strict=True)]
        total = lambda *x: np.sum(row.cdf.pointwise(*x))  # noqa: E731
        gradients = vm.value_and_grad(total, names)(*columns)[1]
        agree([g[0] for g in gradients])
        close([g[1] for g in gradients], vm.value_and_grad(row.cdf, names)(*bulk)[1], 1e-12)


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_recordings_follow(far, runner):
    row, cases = far
    point, _ = cases[-1]
    f, x = of_vector(row, point)
    bulk = np.array([row.lcdf.points[0][i] for i in continuous(row)])
    for recorded, order in ((vm.recorded(f, runner=runner), o) for o in ((bulk, x), (x, bulk))):
        for at in (*order, *order):
            value, gradient = recorded(at)
            assert (value, [*gradient]) == (
                pytest.approx(f(at), rel=1e-13),
                pytest.approx([*vm.gradient(f, at)], rel=1e-12, abs=1e-300),
            )


@pytest.mark.parametrize(("row", "point", "curvature"), [
    (vm.beta_cdf, (1e-200, 2.0, 3.0), 12.0),
    (vm.weibull_cdf, (1e-200, 2.0, 1.0), 2.0),
    (vm.normal_cdf, (-4e-99, 0.0, 1e-100), None),
    (vm.normal_cdf, (4e-99, 0.0, 1e-100), None),
    (vm.gumbel_cdf, (8e-98, 0.0, 1e-100), None),
    (vm.beta_cdf, (1e-120, 3.0, 2.0), 24.0 * 1e-120),
])  # fmt: skip
def test_second_derivatives(row, point, curvature):
    """In the observation they are the derivatives of the density."""
    in_y, in_location = vm.hessian(lambda x: row(x[0], x[1], point[2]), np.array(point[:2]))[0]
    if curvature is None:
        density = row.density
        curvature = math.exp(density(*point)) * vm.grad(density)(*point)
        close(in_location, -curvature, 1e-11)
    close(in_y, curvature, 1e-11)
    close(vm.grad(vm.grad(row))(*point), curvature, 1e-11)
