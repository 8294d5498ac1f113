"""The logarithm of a sum of exponentials."""

import numpy as np
from gradbench import wrap

import varmat as vm


def logsumexp(x):
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


logsumexp_gradient = vm.recorded(logsumexp)


def prepare(input):
    return np.array(input["x"], dtype=np.float64)


@wrap.multiple_runs(pre=prepare, post=float)
def primal(x):
    return logsumexp(x)


@wrap.multiple_runs(pre=prepare, post=np.ndarray.tolist)
def gradient(x):
    return logsumexp_gradient(x)[1]
