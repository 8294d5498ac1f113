"""Arrays, lists of functions, and checks along all routes, for the tests of reductions."""

from operator import attrgetter

import numpy as np

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(20240611)
A = RNG.normal(size=(2, 3, 2))
M = RNG.normal(size=(3, 4))
V = RNG.normal(size=5)
ZEROS = np.array([[1.0, 0.0, 2.0], [0.0, -3.0, 0.0], [1.5, 2.0, -0.5]])
MASK = np.array([True, False, True, True])
NAME = attrgetter("__name__")
CUMULATIVE = [np.cumsum, np.cumprod, np.nancumsum, np.nancumprod]
EXPONENTIAL = [vm.logsumexp, vm.softmax, vm.log_softmax]


def partial(f, **settings):
    def call(*args):
        return f(*args, **settings)

    call.__name__ = f"{f.__name__}({settings})"
    return call


def both(f, *args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)
