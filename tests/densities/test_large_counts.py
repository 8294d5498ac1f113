"""Log masses of counts of up to 10**15 keep their digits, because terms as large as the count are
never added up.
"""

import math

import mpmath
import numpy as np
import pytest
from comparing import close
from densities.references import exact

import varmat as vm
from varmat.densities.univariate import MODERATE

# For each mass the counts and parameters: near the most likely ones, and about a standard deviation
# away or more.
N = 10**10
CASES = [
    (vm.poisson_lpmf, [(N, 1e10), (N, 1.00001e10), (N, 1.0003e10), (N, 1.2e10),
        (10**15, 1.00000003e15), (5000, 5100.0)]),
    (vm.poisson_log_lpmf, [(N, 23.02585092994046), (N, 23.02586), (N, 23.0), (N, 24.0),
        (10**15, 34.538776), (5000, 8.5)]),
    (vm.binomial_lpmf, [(N, 3 * N, 0.33333), (N, 3 * N, 0.34), (N, N + 1, 0.9999999998),
        (3, N, 1e-10), (2000, 5000, 0.41)]),
    (vm.binomial_logit_lpmf, [(N, 3 * N, -0.6931), (N, 3 * N, -0.7), (N, N + 10, 21.0),
        (3, N, -23.0), (2000, 5000, -0.4)]),
    (vm.neg_binomial_2_lpmf, [(N, 1.00001e10, 1e9), (N, 1.1e10, 7.0), (N, 1e10, 1e-3),
        (N, 1.00001e10, 1e13), (5000, 5100.0, 2.0)]),
    (vm.neg_binomial_2_log_lpmf, [(N, 23.02586, 1e9), (N, 23.3, 7.0), (N, 23.0, 1e-3),
        (N, 23.02586, 1e13), (5000, 8.5, 12.0)]),
]  # fmt: skip
CASES = [
    pytest.param(row, point, id=f"{row.name}{point}") for row, points in CASES for point in points
]


@pytest.mark.parametrize(("row", "point"), CASES)
def test_masses_of_large_counts(row, point):
    counts = [int(x) for x in point if isinstance(x, int)]
    parameters = point[len(counts) :]
    with mpmath.workdps(50):
        value = float(exact(row)(*map(mpmath.mpf, point)))
    arrays = [np.full(2, x) for x in (*counts, *parameters)]
    observed = arrays[: len(counts)]
    for args, times in ((point, 1), (arrays, 2), ((*observed, *parameters), 2)):
        close(row(*args), times * value, 1e-13)
        close(vm.value_and_grad(row, len(counts))(*args)[0], times * value, 1e-13)
    close(row.pointwise(*arrays), value, 1e-13)
    for f in (row, lambda *args: np.sum(row.pointwise(*args))):
        recorded = vm.recorded(lambda theta, f=f: f(*observed, theta, *parameters[1:]))
        close(recorded(np.full(2, parameters[0]))[0], 2 * value, 1e-13)


@pytest.mark.parametrize("row", [vm.poisson_lpmf, vm.neg_binomial_2_lpmf], ids=lambda row: row.name)
def test_forms_meet(row):
    """Terms of moderate counts are added up directly, and larger counts take another formula. The
    two agree where they meet.
    """
    rest = [7.0] if row is vm.neg_binomial_2_lpmf else []
    for n in (MODERATE - 1.0, MODERATE, MODERATE + 1.0, 1e9):
        counts, mu = np.array([3.0, n]), 1.01 * np.array([3.0, n])
        with mpmath.workdps(50):
            value = math.fsum(
                float(exact(row)(*map(mpmath.mpf, (k, m, *rest))))
                for k, m in zip(counts, mu, strict=True)
            )
        close(row(counts, mu, *rest), value, 1e-12)
        close(row(counts, mu, *rest), float(np.sum(row.pointwise(counts, mu, *rest))), 1e-12)
        recorded = vm.recorded(lambda mu, counts=counts: row(counts, mu, *rest))
        close(recorded(mu)[0], value, 1e-12)
