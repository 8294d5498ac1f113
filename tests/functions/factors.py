"""Random operands and checks along all routes, for the tests of products."""

import numpy as np

from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(20240612)


def numbers(*shape):
    return RNG.normal(size=shape) if shape else float(RNG.normal())


def both(f, *shapes):
    args = [numbers(*shape) for shape in shapes]
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)
