"""A least-squares fit of a polynomial to the sign function."""

import numpy as np
from gradbench import wrap

import varmat as vm


def least_squares(x, n):
    t = np.linspace(-1.0, 1.0, n)
    powers = np.vander(t, x.size, increasing=True)
    return 0.5 * np.sum((np.sign(t) - powers @ x) ** 2)


least_squares_gradient = vm.recorded(least_squares)


def prepare(input):
    return np.array(input["x"], dtype=np.float64), input["n"]


@wrap.multiple_runs(pre=prepare, post=float)
def primal(input):
    return least_squares(*input)


@wrap.multiple_runs(pre=prepare, post=np.ndarray.tolist)
def gradient(input):
    return least_squares_gradient(*input)[1]
