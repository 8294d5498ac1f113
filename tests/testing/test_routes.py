"""For large arrays the routes take samples."""

from math import inf

import numpy as np
from comparing import equal

from varmat.testing import Tolerances, expect_ad, routes


def test_large_arrays_are_sampled():
    calls = []

    def f(x):
        calls.append(1)
        return x * x

    expect_ad(f, np.linspace(0.5, 2.0, 1000), tolerances=Tolerances(hessian_finite_difference=inf))
    assert len(calls) < 2500  # 16 calls for every element would be far more


def test_a_flipped_point_is_in_the_domain():
    spd = np.array([[2.0, 0.5], [0.5, 1.0]])
    for f, args, expected in (
        (np.multiply, (0.5, np.array([1.0, -2.0])), (-0.5, np.array([-1.0, 2.0]))),
        (np.sqrt, (0.5,), (2.0,)),
        (lambda x, y: np.log(x) * y, (0.5, 3.0), (2.0, -3.0)),
        (np.linalg.cholesky, (spd,), (spd[::-1, ::-1],)),
    ):
        equal(routes.flipped(routes.Case(f, args)).args, expected)
    # None of the ways, and not all arguments together.
    assert (
        routes.flipped(routes.Case(lambda x: np.sqrt(1.0 - (x - 0.5) ** 2 * 1e6), (0.5,))) is None
    )
    assert routes.flipped(routes.Case(lambda x, y: np.log(x + y + 1.2), (0.7, 0.6))) is None
