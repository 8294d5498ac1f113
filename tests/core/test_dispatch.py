"""NumPy's protocols: every function that NumPy dispatches is supported, constant or refused, and
each refusal names what to use instead.
"""

from functools import partial

import numpy as np
import pytest
from comparing import equal, refuses
from kinds import KINDS, PLAIN, call, full_name, public_functions, tables
from numpy.testing.overrides import (
    get_overridable_numpy_array_functions,
    get_overridable_numpy_ufuncs,
)

import varmat as vm
from varmat.core import dispatch
from varmat.testing import expect_ad


def test_every_function_is_in_exactly_one_table():
    wrong = {full_name(f): tables(f) for f in public_functions() if len(tables(f)) != 1}
    assert not wrong


def test_every_ufunc_is_in_exactly_one_table():
    wrong = {u.__name__: tables(u) for u in get_overridable_numpy_ufuncs() if len(tables(u)) != 1}
    assert not wrong


def test_tables_hold_nothing_that_numpy_does_not_dispatch():
    known = get_overridable_numpy_array_functions() | get_overridable_numpy_ufuncs()
    functions = [f for f in [*dispatch.CONSTANT, *dispatch.REFUSED] if not isinstance(f, str)]
    assert [full_name(f) for f in functions if f not in known] == []


def test_out_is_an_array():
    x = vm.var(0.5)
    with pytest.raises(TypeError, match=r"^np\.sin: out is a number, but must be an array!"):
        np.sin(x, out=np.zeros_like(x), where=True)


def test_out_of_several_results_is_refused():
    x = vm.var([1.5, 2.5])
    part = np.zeros_like(x)
    message = r"^np\.modf: out= is not supported for several results; assign them"
    for out in ((None, part), (part, np.zeros_like(x))):
        refuses(TypeError, message, np.modf, x, out=out)


def test_axes_that_do_not_fit_are_refused_by_the_method_too():
    x = vm.var([[1.0, 2.0, 3.0]])
    assert {x.transpose(*axes).shape for axes in ((), (None,), (1, 0), ((1, 0),))} == {(3, 1)}
    refuses(ValueError, "axes don't match array", x.transpose, 0)


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: np.exp(x, where=True),
     "^exp: where is given, but must be left out; use np.where on the result!"),
    (lambda x: np.exp(x, signature="d->d"), "^exp: signature is given, but must be left out!"),
    (lambda x: np.exp(x, dtype=np.float32), "^exp: dtype is float32, but must be float64!"),
    (lambda x: np.add.reduceat(x, [0]),
     "np.add.reduceat is not differentiable here: write it with the function, or"),
    (lambda x: np.multiply.at(x, [0], 2.0), r"np.multiply.at is not .* or x\[index\] = value"),
    (lambda x: np.add.at(np.zeros(3), [0], x),
     "np.add: a variable cannot be written into a plain array"),
    (lambda x: call(x, newcomer),
     "newcomer is not differentiable here: it is not known to varmat; see varmat.operation"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["Var", "VarMat", "Dual"])
def test_refused_arguments_of_ufuncs(kind, call, message):
    refuses(TypeError, message, call, KINDS[kind](PLAIN))


@pytest.mark.parametrize("kind", ["Var", "VarMat", "Dual"])
def test_arguments_of_ufuncs_that_change_nothing(kind):
    x = KINDS[kind](PLAIN)
    same = np.exp(x, dtype=float, casting="same_kind", order="C", subok=True)
    equal(vm.value(same), vm.value(np.exp(x)))


def newcomer():
    """Stands for a function of a future version of NumPy."""


def test_ufunc_outer():
    x, y = vm.var([1.0, 2.0]), vm.var([3.0, 4.0, 5.0])
    result = np.multiply.outer(x, y)
    assert vm.value(result).tolist() == [[3.0, 4.0, 5.0], [6.0, 8.0, 10.0]]
    assert np.sum(result).grad(x).tolist() == [12.0, 12.0]
    assert y.adj.tolist() == [3.0, 3.0, 3.0]


def test_out_into_a_variable_is_an_assignment():
    x, y = vm.var([1.0, 2.0]), vm.var([0.0, 0.0])
    assert np.multiply(x, 3.0, out=y) is y
    np.sum(y * y).grad()
    assert vm.value(y).tolist() == [3.0, 6.0]
    assert x.adj.tolist() == [18.0, 36.0]


def test_only_what_is_selected_is_computed():
    def quotient(x, mask):
        r = x * 0.5
        assert np.divide(x + 1.0, x[:1], out=r, where=mask) is r
        return r

    x = np.array([[2.0, 4.0, 0.0], [3.0, 4.0, 5.0]])
    expect_ad(partial(quotient, mask=x[0] != 0), x)
    expect_ad(partial(quotient, mask=[[True, False, False], [False, True, False]]), x)
    result = np.zeros((2, 3))
    np.greater(vm.var(x), 2.0, out=result, where=x[0] != 0)
    assert result.tolist() == [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]


def test_special_functions_are_dispatched_too():
    import scipy.special

    x = vm.var([0.5, 1.5])
    np.sum(scipy.special.gammaln(x)).grad()
    assert x.adj == pytest.approx(scipy.special.digamma([0.5, 1.5]), rel=1e-14)
    message = r"hankel1 is not differentiable here: its results are complex"
    refuses(TypeError, message, scipy.special.hankel1, 1.0, x)

    def gammaln(x):
        """A function of another library."""

    message = r"gammaln is not differentiable here: it is not known to varmat"
    refuses(TypeError, message, x.__array_ufunc__, gammaln, "__call__", x)


def test_methods_of_ufuncs_without_a_derivative():
    """Methods of comparisons and logical functions return plain values. Those that would write into
    a variable are refused.
    """
    x = vm.var([1.0, 3.0])
    found = np.greater.outer(x, [0.0, 2.0])
    assert type(found) is np.ndarray
    assert found.tolist() == [[True, False], [True, True]]
    assert np.logical_and.reduce(x) is np.True_
    with pytest.raises(TypeError, match=r"^np\.logical_and\.at is not differentiable here"):
        np.logical_and.at(x, [0], 1.0)
