"""The fast forms for arrays, of densities and cumulative functions, agree with the careful forms
element by element.
"""

import math

import numpy as np
import pytest
from comparing import close
from densities.references import ROWS, TAILS, continuous, every

import varmat as vm
from varmat.densities import univariate

CONDITIONAL = [
    row for row in (*ROWS, *TAILS) if row.fast and row.graph(True).parts.when is not None
]
both_lengths = pytest.mark.parametrize("long", [univariate.LONG, 1], ids=["short", "long"])


def one_by_one(row, points):
    """Return value and gradients, computed from single numbers."""
    single = [vm.value_and_grad(row, continuous(row))(*point) for point in points]
    return math.fsum(v for v, _ in single), [
        np.array(g) for g in zip(*(g for _, g in single), strict=True)
    ]


def agree(row, points, rtol=1e-12):
    value, gradients = vm.value_and_grad(row, continuous(row))(
        *map(np.array, zip(*points, strict=True))
    )
    expected, in_each = one_by_one(row, points)
    close(value, expected, rtol)
    close(gradients, in_each, rtol, 1e-300)


def as_floats(points):
    return [tuple(map(float, point)) for point in points]


@both_lengths
@every(CONDITIONAL)
def test_conditional_forms(row, long, monkeypatch):
    """The points lie in the bulk, in the tails, and beside an observation that needs the careful
    form.
    """
    monkeypatch.setattr(univariate, "LONG", long)
    monkeypatch.setattr(row, "_uses", {})
    if continuous(row):
        agree(row, as_floats(row.points))
        for point in row.tails:
            agree(row, as_floats([point, row.points[0]]), 1e-9)
        family = row.name.removesuffix("_lccdf").removesuffix("_lcdf")
        other = getattr(vm, f"{family}_lcdf" if row.name.endswith("_lccdf") else f"{family}_lccdf")
        # At these points the probability of this function is one.
        for point in other.outside:
            agree(row, as_floats([row.points[0], point, row.points[1]]))


def extremes():
    """Return points at which 1 - exp(-t) is tiny or one, and at which t overflows."""
    return [
        (vm.weibull_lcdf, [(1e-160, 2.0, 1.0), (0.4, 2.0, 1.0)]),
        (vm.weibull_lcdf, [(1e200, 2.0, 1.0), (0.4, 2.0, 1.0)]),
        (vm.weibull_lcdf, [(37.0, 1.0, 1.0), (0.69, 1.0, 1.0), (0.7, 1.0, 1.0), (1e-17, 1.0, 1.0)]),
        (vm.rayleigh_lcdf, [(1e-160, 2.0), (1e200, 2.0), (3.0, 2.0)]),
        (
            vm.gumbel_lccdf,
            [(-800.0, 0.0, 1.0), (0.4, 2.0, 1.0), (300.0, 0.0, 1.0), (1000.0, 0.0, 1.0)],
        ),
        (vm.frechet_lccdf, [(1e160, 2.0, 1.0), (1e-200, 2.0, 1.0), (0.4, 2.0, 1.0)]),
        (vm.cauchy_lcdf, [(1e160, 2.0, 1.0), (0.0, 0.0, 1.0), (-1e160, 2.0, 1.0)]),
        (vm.cauchy_lccdf, [(1e15, 2.0, 1.0), (2.0, 2.0, 1.0), (-1e15, 2.0, 1.0)]),
        (vm.inv_chi_square_lpdf, [(1e-300, 2.0), (1e9, 1e-3)]),
        (vm.scaled_inv_chi_square_lpdf, [(1.0, 2e4, 1.01), (1e300, 2.0, 1.1)]),
        (vm.exp_mod_normal_lpdf, [(-60.0, 0.0, 1.0, 1e-3), (1e4, 0.0, 1.0, 2.0)]),
    ]


@pytest.mark.parametrize(("row", "points"), extremes(), ids=lambda x: getattr(x, "name", ""))
def test_extremes(row, points):
    agree(row, points, 1e-12)


@pytest.mark.parametrize("runner", ["numpy", "native"])
@pytest.mark.parametrize("y", [[0.5, 3.0, 7.0], [0.5, 1e-200, 7.0], [0.5, math.inf, 7.0]])
def test_recorded(runner, y):
    """The condition of the fast form holds for data, holds for parameters too, or fails."""

    def log_probability(alpha, sigma):
        return vm.weibull_lcdf(np.array(y), alpha, sigma)

    recorded = vm.recorded(log_probability, (0, 1), runner=runner)
    for args in ((1.5, 2.0), (2.5, 1.0), (1.5, 2.0)):
        value, gradients = vm.value_and_grad(log_probability, (0, 1))(*args)
        found, others = recorded(*args)
        close(found, value, 1e-13)
        close(others, gradients, 1e-12)


@pytest.mark.parametrize("runner", ["numpy", "native"])
@pytest.mark.parametrize("row", [vm.normal_lpdf, vm.lognormal_lpdf], ids=lambda row: row.name)
def test_recorded_scales_whose_squares_underflow(row, runner):
    """Squares of residuals are summed before they are divided by the scale, so the function itself
    is evaluated where they would be lost.
    """
    y = 1e-170 * np.array([1.0, -2.0, 3.0])
    y = np.exp(y) if row is vm.lognormal_lpdf else y

    def log_density(mu, sigma):
        return row(y, mu, sigma)

    recorded = vm.recorded(log_density, (0, 1), runner=runner)
    recorded(0.0, 1.0)
    value, gradients = vm.value_and_grad(log_density, (0, 1))(1e-171, 1e-170)
    assert recorded(1e-171, 1e-170) == (value, gradients)
    assert math.isfinite(gradients[1])


@pytest.mark.parametrize("runner", ["numpy", "native"])
def test_counts_in_programs(runner):
    """For counts that are data, a program computes each distinct value once."""
    n = np.random.default_rng(1).poisson(3.0, size=(40, 5))
    rows = [
        (lambda mu, phi: vm.neg_binomial_2_lpmf(n, mu, phi), (2.5, 1.5)),
        (lambda mu, phi: vm.neg_binomial_2_lpmf(n, mu, phi), (np.linspace(1.0, 3.0, 5), 1.5)),
        (lambda alpha, beta: vm.beta_binomial_lpmf(n, 30, alpha, beta), (2.5, 1.5)),
        (lambda alpha, beta: vm.neg_binomial_lpmf(n, alpha, beta), (2.5, 1.5)),
        (lambda alpha, beta: vm.neg_binomial_lpmf(n[:2], alpha, beta), (2.5, np.full(5, 1.5))),
    ]
    for function, args in rows:
        recorded = vm.recorded(function, (0, 1), runner=runner)
        value, gradients = vm.value_and_grad(function, (0, 1))(*args)
        found, others = recorded(*args)
        close(found, value, 1e-13)
        close(others, gradients, 1e-11)
        longest = max(value.size for step in recorded.program.steps for value in step.results)
        assert longest <= 4 * n.size  # a sum over single logarithms would take twelve times as many


@pytest.mark.parametrize(
    ("name", "y", "near", "far"),
    [
        ("bernoulli_logit_lpmf", [0, 1], (0.3,), [(-800.0,), (800.0,), (1e10,)]),
        ("bernoulli_lpmf", [0, 1], (0.3,), [(1e-300,), (1.0 - 2.0**-53,)]),
        ("beta_lpdf", [0.3, 0.9], (1.5, 2.0), [(1e4, 1e-3), (1e-200, 1.0)]),
        ("gamma_lpdf", [0.3, 0.9], (1.5, 2.0), [(1e4, 1e-3), (1e-200, 1.0)]),
        ("pareto_lpdf", [2.0, 3.0], (1.0, 2.0), [(1e-300, 1.0), (1.0, 1e200)]),
        ("weibull_lpdf", [2.0, 3.0], (1.0, 2.0), [(1e-3, 1e-200), (0.5, 1e200)]),
    ],
)
def test_a_recording_holds_far_from_where_it_was_made(name, y, near, far):
    """Without a call of the function, which decides wherever the program is not finite."""
    calls = []

    def f(q):
        calls.append(q)
        return getattr(vm, name)(y, *(q[i] for i in range(len(near))))

    recorded = vm.recorded(f)
    recorded(np.array(near))
    made = len(calls)
    for point in map(np.array, far):
        value, gradient = recorded(point)
        assert len(calls) == made
        expected = vm.value_and_grad(getattr(vm, name), (*range(1, len(near) + 1),))(y, *point)
        np.testing.assert_allclose(value, expected[0], 1e-13)
        np.testing.assert_allclose(gradient, expected[1], 1e-12)
