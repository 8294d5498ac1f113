"""Branches in native code; `tests/programs/test_branch.py` runs them beside the other runners."""

import numpy as np
import pytest
from recordings import agree_in_threads

import varmat as vm
from varmat.programs.run import has_native

pytestmark = pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")


def test_threads_share_a_branch():
    """Each run has scratch memory of its own, in which long results of the branch lie."""

    def f(x):
        y = vm.cond(x[0] > 0.0, lambda x: np.exp(-x * x), lambda x: np.sin(x) * x[1], x)
        return np.sum(y * np.cumsum(y))

    g = vm.recorded(f)
    points = np.random.default_rng(0).normal(size=(4, 500))
    expected = [vm.value_and_grad(f)(x) for x in points]
    agree_in_threads(g, points, expected, 50, 1e-11)
