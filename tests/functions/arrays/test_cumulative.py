"""Cumulative sums and products: all routes, closed forms, and refusals."""

from itertools import pairwise

import numpy as np
import pytest
from comparing import equal, refuses
from functions.sums import CUMULATIVE, NAME, ZEROS, M, V, both, partial

import varmat as vm
from varmat.testing import expect_ad


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("f", CUMULATIVE[:2], ids=NAME)
@pytest.mark.parametrize("x", [
    M, ZEROS, np.zeros((2, 3)), np.ones((2, 1)),
], ids=["numbers", "zeros", "only zeros", "one"])  # fmt: skip
def test_cumulative(f, axis, x):
    both(partial(f, axis=axis), x)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum], ids=NAME)
def test_ufunc_accumulate(ufunc):
    both(lambda x: ufunc.accumulate(x), M)
    both(lambda x: ufunc.accumulate(x, axis=1), M)


def test_running_extremes_at_nan_and_at_ties():
    x = np.array([1.0, 3.0, 3.0, 2.0, np.nan, 5.0])
    equal(vm.value(np.maximum.accumulate(vm.var(x))), np.maximum.accumulate(x))
    found = vm.gradient(lambda x: np.sum(np.maximum.accumulate(x)[:4]), x).tolist()
    assert found == [1.0, 1.0, 2.0, 0.0, 0.0, 0.0]


def test_cumulative_of_the_array_api():
    # from NumPy 2.1
    for f in [
        getattr(np, name) for name in ("cumulative_sum", "cumulative_prod") if hasattr(np, name)
    ]:
        both(partial(f, axis=1, include_initial=True), M)
        both(partial(f, include_initial=True), V)
        expect_ad(f, 2.0)
        expect_ad(partial(f, axis=0, include_initial=True), 2.0)
        message = r"x has shape \(3, 4\), but must have one dimension if no axis is given!"
        refuses(vm.ShapeError, message, f, vm.var(M))


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum], ids=NAME)
def test_scalars_are_not_accumulated(ufunc):
    message = f"np.{ufunc.__name__}.accumulate: the argument is a scalar, but must be an array!"
    refuses(TypeError, message, ufunc.accumulate, vm.var(2.0))


def test_passes_grow_with_the_logarithm():
    """The scan for products with zeros doubles its step each time."""
    sizes = []
    for n in (16, 256):
        with vm.nested() as tape:
            np.sum(np.cumprod(vm.Dual(vm.var(np.zeros(n)), np.ones(n))).tan)
            sizes.append(len(tape))
    assert all(b < 2.5 * a for a, b in pairwise(sizes))


@pytest.mark.parametrize("function", [np.cumsum, np.cumprod])
def test_axis_of_a_cumulative_dual_may_be_unsigned(function):
    x = vm.Dual(np.full((2, 3), 2.0), np.ones((2, 3)))
    equal(function(x, axis=np.uint8(1)).tan, function(x, axis=1).tan)


def test_axis_of_a_cumulative_sum_is_an_integer():
    # from NumPy 2.1 on
    for function in (np.cumsum, *([np.cumulative_sum] if hasattr(np, "cumulative_sum") else [])):
        for axis in (0.0, (), []):
            refuses(TypeError, None, function, vm.var([1.0, 2.0]), axis=axis)
