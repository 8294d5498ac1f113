"""The arguments of NumPy's reductions: where, initial, out, degrees of freedom."""

import re

import numpy as np
import pytest
from comparing import close, equal, refuses
from functions.sums import MASK, NAME, M, both, partial

import varmat as vm


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "nansum", "nanmean"])
def test_where(name):
    both(partial(getattr(np, name), axis=1, where=MASK), M)


@pytest.mark.parametrize("f", [np.max, np.min, np.nanmax, np.nanmin])
def test_where_of_extremes(f):
    both(partial(f, axis=1, where=MASK, initial=0.25), M)


@pytest.mark.parametrize(
    "ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.logaddexp], ids=NAME
)
def test_ufunc_reduce(ufunc):
    both(lambda x: ufunc.reduce(x), M)
    both(lambda x: ufunc.reduce(x, axis=-1, keepdims=True), M)
    both(lambda x: ufunc.reduce(x, None, initial=0.5), M)


def test_out_is_assigned():
    x, out = vm.var(M), vm.var(np.zeros(4))
    assert np.sum(x, axis=0, out=out) is out
    np.sum(out * out).grad()
    close(x.adj, np.broadcast_to(2 * M.sum(0), M.shape), 1e-7)


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (1,)])
def test_out_has_the_shape_of_the_result(shape):
    out = vm.var(np.zeros(shape))
    message = r"out has shape \(.*\), but must have the shape of the result, \(4,\)!"
    refuses(vm.ShapeError, message, np.sum, vm.var(M), axis=0, out=out)
    equal(out.val, 0.0)


def test_extreme_of_nothing_with_a_start():
    assert np.max(vm.var(np.zeros((0, 2))), axis=0, initial=1.5).val.tolist() == [1.5, 1.5]


def test_degrees_of_freedom_may_be_small_integers():
    """NumPy's small integers would wrap around, or could not be subtracted."""
    x = np.arange(300.0)
    close(np.var(vm.var(x), ddof=np.uint8(1)).val, np.var(x, ddof=1), 1e-14)
    with np.errstate(divide="ignore"):
        assert np.std(vm.var(x[:4]), ddof=np.uint8(5)).val == np.inf
    assert np.isnan(np.var(vm.var(x), ddof=np.nan).val)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.mean, np.var, np.nansum])
def test_where_must_be_boolean_and_broadcast(function):
    x = vm.var([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="where has dtype int64, but must be boolean!"):
        function(x, where=np.array([0, 1, 2]))
    message = re.escape("where has shape (2, 3), but must broadcast to the shape of a, (3,)!")
    refuses(vm.ShapeError, message, function, x, where=np.ones((2, 3), dtype=bool))
