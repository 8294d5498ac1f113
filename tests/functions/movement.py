"""An exact oracle for functions that only move elements: their Jacobian is the function applied to
unit vectors.
"""

import numpy as np
from comparing import equal

import varmat as vm
from varmat.core.variables import backward


def jacobian(f, x):
    """Return the exact Jacobian of an affine map, by plain NumPy. Its rows belong to the elements
    of x.
    """
    origin = np.asarray(f(np.zeros(x.shape)))
    units = np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([np.ravel(f(unit) - origin) for unit in units]).reshape(x.size, origin.size)


def gradient(f, x, weights):
    """Return the gradient of the weighted sum of f at x, which is an array or a variable."""
    with vm.nested():
        leaf = vm.var(x)
        result = f(leaf)
        assert result.shape == np.shape(weights)
        backward(result, np.array(weights) if result.shape else float(weights))
        return np.array(leaf.adj)


def expect_moves(f, x):
    """Demand the exact value, gradient and tangents of a map that moves elements, in one direction
    and in several.
    """
    x = np.asarray(x, dtype=np.float64)
    expected = np.asarray(f(x))
    weights = np.arange(1.0, expected.size + 1).reshape(expected.shape)
    exact = jacobian(f, x)
    with vm.nested():
        result = f(vm.var(x))
        assert type(result) is vm.Var or isinstance(result, vm.VarMat)
        np.testing.assert_array_equal(vm.value(result), expected, strict=bool(expected.shape))
    equal(gradient(f, x, weights), (exact @ weights.ravel()).reshape(x.shape))
    directions = np.arange(2.0 * x.size).reshape(2, *x.shape)
    pushed = (directions.reshape(2, -1) @ exact).reshape(2, *expected.shape)
    equal(f(vm.Dual(x, directions)).tan, pushed)
    equal(f(vm.Dual(x, directions[1])).tan, pushed[1])
    with vm.nested():  # the tangents are variables
        tangents = f(vm.Dual(vm.var(x), vm.var(directions))).tan
        equal(vm.value(tangents), pushed)
