"""What the tests of products share: random operands, all routes."""

import numpy as np

from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(20240612)


def numbers(*shape):
    return RNG.normal(size=shape) if shape else float(RNG.normal())


def both(f, *shapes):
    args = [numbers(*shape) for shape in shapes]
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)
