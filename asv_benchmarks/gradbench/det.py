"""The determinant by expansion by minors."""

import numpy as np
from gradbench import wrap

import varmat as vm

# Rows of matrices that are expanded one by one, so that only their minors are in memory at once.
ALONE = 8


def determinant(a):
    """Expand the determinants of square matrices, stacked along leading axes, by first rows.

    No minor is shared: as in the recursion that the eval prescribes, there are n! products.
    """
    n = a.shape[-1]
    if n == 1:
        return a[..., 0, 0]
    if n == ALONE and a.ndim > 2:
        _, found = vm.scan(lambda _, each: ((), determinant(each)), (), a.reshape(-1, n, n))
        return found.reshape(a.shape[:-2])
    others = np.nonzero(~np.eye(n, dtype=bool))[1].reshape(n, n - 1)
    minors = np.moveaxis(a[..., 1:, others], -2, -3)
    signs = (-1.0) ** np.arange(n)
    return np.sum(signs * a[..., 0, :] * determinant(minors), axis=-1)


determinant_gradient = vm.recorded(determinant)


def prepare(input):
    return np.array(input["A"]).reshape(input["ell"], input["ell"])


@wrap.multiple_runs(pre=prepare, post=float)
def primal(a):
    return determinant(a)


@wrap.multiple_runs(pre=prepare, post=lambda gradient: gradient.ravel().tolist())
def gradient(a):
    return determinant_gradient(a)[1]
