"""Gradient descent as the evals particle and saddle prescribe it, and gradients in two modes."""

import numpy as np

import varmat as vm


def forward_gradient(f, record=lambda f: f):
    """Return a function that computes the gradient of `f` with respect to its first argument, by a
    tangent for each element. `record` may be `varmat.recorded`.
    """
    tangent = record(vm.jvp(f))

    def gradient(x, *others):
        zeros = [np.zeros_like(other) for other in others]
        units = np.eye(np.size(x))
        return np.stack([tangent((x, *others), (unit, *zeros))[1] for unit in units])

    return gradient


def reverse_gradient(f, record=lambda f: f):
    return record(vm.grad(f))


# By the letters in the names of the functions of the evals.
GRADIENTS = {"f": forward_gradient, "r": reverse_gradient}


def argmin(f, gradient, x):
    """Find a minimum of `f` from `x` on, with steps that grow after ten successes in a row."""
    value, slope, step, successes = f(x), gradient(x), 1e-5, 0
    while np.linalg.norm(slope) > 1e-5:
        if successes == 10:
            step, successes = 2.0 * step, 0
            continue
        new = x - step * slope
        if np.linalg.norm(new - x) <= 1e-5:
            break
        new_value = f(new)
        if new_value < value:
            x, value, slope, successes = new, new_value, gradient(new), successes + 1
        else:
            step, successes = step / 2.0, 0
    return x
