"""SciPy's distributions, unchanged, with variables for data and parameters."""

import collections

import numpy as np
from comparing import close
from ecosystem.scipy_distributions import calls
from scipy import stats

import varmat as vm


def test_they_are_right_or_refused():
    found = collections.Counter()
    others = set()
    for family, method, how in calls((("logpdf", "cdf"), ("logpmf", "cdf"))):
        found[method, how] += 1
        if how not in ("right", "refused"):
            others.add((family, method, how))
    # SciPy computes both of its branches, one of them outside the domain.
    assert others <= {("dgamma", "cdf", "nan")}
    # Fewer in older releases, whose formulas are others.
    assert found["logpdf", "right"] >= 75
    assert found["cdf", "right"] >= 75
    assert found["logpmf", "right"] >= 10


def test_one_number_as_data():
    def f(x):
        return stats.gamma.logpdf(x[0], x[1], scale=x[2]) + stats.norm.logcdf(x[0])

    x = np.array([1.2, 2.5, 0.7])
    with vm.numpy.patched(stats):
        value, slope = vm.value_and_grad(f)(x)

    def ours(x):
        return vm.gamma_lpdf(x[0], x[1], 1.0 / x[2]) + vm.normal_lcdf(x[0], 0.0, 1.0)

    expected, exact = vm.value_and_grad(ours)(x)
    close(value, expected, 1e-13)
    close(slope, exact, 1e-12)
