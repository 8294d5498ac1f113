"""What the tests of constraint transforms share."""

import numpy as np

import varmat as vm

inf, nan = np.inf, np.nan

X = np.array([-1.2, 0.4, 2.3])
X2 = np.array([[0.3, -1.2, 0.5], [1.1, 0.4, -2.0]])


def gradient_of(f, x, part):
    return vm.gradient(lambda x: np.sum(f(x)[part]), x)
