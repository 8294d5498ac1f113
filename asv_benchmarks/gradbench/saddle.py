"""A saddle point by gradient descent within gradient descent."""

import numpy as np
from descent import GRADIENTS, argmin
from gradbench import wrap

import varmat as vm


def height(x, y):
    return np.sum(x**2) - np.sum(y**2)


def depth(y, x):
    return -height(x, y)


def variant(modes):
    rise, fall = (
        {mode: GRADIENTS[mode](f, vm.recorded) for mode in modes} for f in (height, depth)
    )
    outer, inner = modes

    @wrap.multiple_runs(pre=lambda input: np.array(input["start"]), post=np.ndarray.tolist)
    def saddle_point(start):
        """Find the `x` at which the maximum over `y` is least, and that `y`."""

        def highest(x, mode):
            return argmin(lambda y: depth(y, x), lambda y: fall[mode](y, x), start)

        # At a maximum the derivative with respect to y is zero, so y is held constant.
        x = argmin(
            lambda x: height(x, highest(x, inner)),
            lambda x: rise[outer](x, highest(x, inner)),
            start,
        )
        return np.concatenate([x, highest(x, outer)])

    return saddle_point


ff, fr, rf, rr = map(variant, ("ff", "fr", "rf", "rr"))
