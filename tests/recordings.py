"""What the tests of recorded functions share: a recording gives the eager value and gradients."""

from __future__ import annotations

import numpy as np

import varmat as vm

X = np.random.default_rng(1).normal(size=(5, 3))
Y = np.array([0.5, -1.0, 2.0, 0.3, 0.1])


def agree(f, *points, argnums=0, rtol=1e-13, elsewhere=0):
    """Demand that a recording made at the first point gives the eager value and gradients at all of them.

    So many points are those at which the program leaves its line, so that the function is evaluated as it is written.
    """
    evaluations = []

    def counted(*args):
        evaluations.append(args)
        return f(*args)

    recorded, eager = vm.recorded(counted, argnums), vm.value_and_grad(f, argnums)
    for point in points:
        value, gradient = recorded(*point)
        expected, true = eager(*point)
        np.testing.assert_allclose(value, expected, rtol=1e-14)
        assert type(value) is float
        for g, t in zip(vm.functionals.structure.leaves_of(gradient), vm.functionals.structure.leaves_of(true), strict=True):
            assert type(g) is type(t)
            np.testing.assert_allclose(g, t, rtol=rtol, atol=1e-15 + 0.1 * rtol * np.max(np.abs(t), initial=0.0))
            assert type(g) is float or (g.flags.c_contiguous and g.dtype == np.float64)
    assert len(evaluations) == len(recorded._recordings) + elsewhere
    return recorded


def vectors(n, count=3):
    rng = np.random.default_rng(n)
    return [(rng.normal(size=n),) for _ in range(count)]


LARGE = np.linspace(0.0, 1.0, 40_000)
