"""NumPy's doors: every function that NumPy can dispatch is supported, constant or refused, and each says what it should."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from numpy.testing.overrides import get_overridable_numpy_array_functions, get_overridable_numpy_ufuncs

import varmat as vm
from varmat.core import dispatch
from varmat.testing import expect_ad

# What came with 2.1 is not there in the oldest NumPy that we support.
NEW_NUMPY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"

PLAIN = np.array([[1.5, -0.5, 2.0], [0.0, 3.0, 1.0]])
KINDS = {
    "Var": lambda x: vm.var(float(np.ravel(x)[0])),
    "VarMat": vm.var,
    "View": lambda x: vm.var(x[::-1])[::-1],
    "MatVar": vm.matvar,
    "Dual": lambda x: vm.Dual(x, np.ones_like(x)),
    "scalar Dual": lambda x: vm.Dual(float(np.ravel(x)[0]), 1.0),
}


def public_functions():
    """What NumPy dispatches; private twins of functions with ``like=`` never arrive at `__array_function__`."""
    functions = get_overridable_numpy_array_functions()
    twins = {f.__name__ for f in functions if f.__module__ == "numpy"}
    return sorted((f for f in functions if not (is_twin(f) and f.__name__ in twins)), key=full_name)


def is_twin(function):
    return function.__module__ == "numpy" and getattr(np, function.__name__, None) is not function


def full_name(function):
    return f"{getattr(function, '__module__', 'numpy')}.{function.__name__}"


def tables(function):
    """The tables in which a function stands; whole modules are refused by their name."""
    refused = function in dispatch.REFUSED or getattr(function, "__module__", None) in dispatch.REFUSED
    where = {"supported": function in dispatch.SUPPORTED, "constant": function in dispatch.CONSTANT, "refused": refused}
    return [name for name, there in where.items() if there]


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


def call(x, function):
    """Bring a function to its door with `x` as the only argument."""
    if isinstance(function, np.ufunc):
        return x.__array_ufunc__(function, "__call__", x)
    return x.__array_function__(function, (type(x),), (x,), {})


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_name_the_function_and_an_alternative(kind):
    x = KINDS[kind](PLAIN)
    for function in [*public_functions(), *get_overridable_numpy_ufuncs()]:
        if tables(function) == ["refused"]:
            sentence = dispatch.REFUSED.get(function) or dispatch.REFUSED[function.__module__]
            name = function.__name__ if isinstance(function, np.ufunc) else full_name(function)
            with pytest.raises(TypeError, match=re.escape(f"{name} is not differentiable here: {sentence}")):
                call(x, function)


@pytest.mark.parametrize(
    ("f", "match"),
    [
        (np.fft.fft, r"numpy.fft.fft is not differentiable here: its result is complex, and variables are real; use np.convolve"),
        (np.linalg.eig, r"numpy.linalg.eig is not .* use np.linalg.eigh or eigvalsh for a symmetric matrix"),
        (lambda x: np.save("x.npy", x), r"numpy.save is not .* write varmat.value\(x\)"),
        (lambda x: np.put(x, 0, 1.0), r"numpy.put is not .* assign instead, x\[index\] = value"),
        (lambda x: np.full_like(np.arange(3), x[0, 0]), r"as of np.full or of np.full_like of data, use np.broadcast_to"),
        (lambda x: np.copyto(np.zeros((2, 3)), x), r"numpy.copyto is not .* assign instead"),
        (lambda x: np.fill_diagonal(x, 1.0), r"numpy.fill_diagonal is not .* assign instead"),
        (np.histogram, r"numpy.histogram is not .* pass the plain numbers, varmat.value\(x\)"),
        (lambda x: np.bitwise_and(x, 1), r"bitwise_and is not .* it works on integers"),
        (np.nextafter, r"nextafter"),
        (np.emath.sqrt, r"numpy.lib.*scimath.*sqrt is not .* use the function of the same name in np itself"),
        *([(lambda x: np.strings.upper(x), r"numpy.strings.upper is not .* it works on strings")] if NEW_NUMPY else []),
        (np.frompyfunc(lambda x: x, 1, 1), r"is not differentiable here: it is not known to varmat; see varmat.elementwise"),
        (lambda x: np.gcd.reduce(x), r"np.gcd.reduce is not differentiable here"),
    ],
)
def test_refusals_in_use(f, match):
    if f is np.nextafter:
        f = lambda x: np.nextafter(x, 1.0)  # noqa: E731 - a binary ufunc
    with pytest.raises(TypeError, match=match):
        f(vm.var(PLAIN))


def test_out_of_several_results_is_refused():
    x = vm.var([1.5, 2.5])
    part = np.zeros_like(x)
    for out in ((None, part), (part, np.zeros_like(x))):
        with pytest.raises(TypeError, match=r"^np\.modf: out= is not supported for several results; assign them"):
            np.modf(x, out=out)


def test_axes_that_do_not_fit_are_refused_by_the_method_too():
    x = vm.var([[1.0, 2.0, 3.0]])
    assert x.transpose().shape == x.transpose(None).shape == x.transpose(1, 0).shape == x.transpose((1, 0)).shape == (3, 1)
    with pytest.raises(ValueError, match="axes don't match array"):
        x.transpose(0)


def test_unknown_functions_are_named():
    def newcomer():
        """A function of a NumPy to come."""

    with pytest.raises(TypeError, match=r"newcomer is not differentiable here: it is not known to varmat; see varmat.operation"):
        call(vm.var(PLAIN), newcomer)


BINARY = "array_equal array_equiv isclose allclose isin result_type"
CALLS = {
    **dict.fromkeys(BINARY.split(), lambda f, x: f(x, x)),
    "argpartition": lambda f, x: f(x, 1),
    "can_cast": lambda f, x: f(x, np.float64),
    "digitize": lambda f, x: f(x, [0.0, 1.0]),
    "einsum_path": lambda f, x: f("...,...", x, x)[0],
    "lexsort": lambda f, x: f((x, x)),
    "searchsorted": lambda f, x: f([0.0, 1.0, 2.0], x),
    # Text of an array, not of the container that NumPy would find in a bare number.
    "array2string": lambda f, x: f(x) if np.ndim(x) else None,
    "array_repr": lambda f, x: f(x) if np.ndim(x) else None,
    "array_str": lambda f, x: f(x) if np.ndim(x) else None,
}


def outcome(function, x):
    """What a function gives, or the type of what it raises."""
    if isinstance(function, np.ufunc):
        return function(*[x] * function.nin)
    try:
        return CALLS.get(function.__name__, lambda f, x: f(x))(function, x)
    except (AttributeError, DeprecationWarning, TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("kind", KINDS)
def test_constant_functions_give_what_they_give_on_plain_values(kind):
    x = KINDS[kind](PLAIN)
    plain = dispatch.plain(x)
    for function in sorted(dispatch.CONSTANT, key=full_name):
        expected, result = outcome(function, plain), outcome(function, x)
        assert type(result) is type(expected), full_name(function)
        np.testing.assert_equal(result, expected, err_msg=full_name(function))


@pytest.mark.parametrize("kind", ["VarMat", "View", "MatVar"])
def test_shared_memory(kind):
    x = KINDS[kind](PLAIN)
    for function in (np.shares_memory, np.may_share_memory):
        assert function(x, x[1])
        assert function(x[:, ::2], x[:1])
        assert not function(x, KINDS[kind](PLAIN))
        assert not function(PLAIN, x)


def test_constant_ufunc_methods():
    x = vm.var(PLAIN)
    assert np.logical_and.reduce(x, axis=1).tolist() == [True, False]
    assert np.less.outer(x[0], [1.0, 0.0]).tolist() == [[False, False], [True, True], [False, False]]
    assert np.isnan(x, dtype=bool).tolist() == [[False] * 3] * 2


def test_constant_result_into_an_array():
    mask = np.zeros((2, 3), bool)
    assert np.greater(vm.var(PLAIN), 1.0, out=mask) is mask
    assert mask.tolist() == (PLAIN > 1.0).tolist()


def test_nothing_is_recorded_by_constant_functions():
    with vm.nested() as tape:
        x = vm.var(PLAIN)
        for function in dispatch.CONSTANT:
            outcome(function, x)
        assert not tape


@pytest.mark.parametrize("kind", ["Var", "VarMat", "Dual"])
def test_ufunc_arguments(kind):
    x = KINDS[kind](PLAIN)
    with pytest.raises(TypeError, match=r"^exp: where is given, but must be left out; use np.where on the result!"):
        np.exp(x, where=True)
    with pytest.raises(TypeError, match=r"^exp: signature is given, but must be left out!"):
        np.exp(x, signature="d->d")
    with pytest.raises(TypeError, match=r"^exp: dtype is float32, but must be float64!"):
        np.exp(x, dtype=np.float32)
    same = np.exp(x, dtype=float, casting="same_kind", order="C", subok=True)
    np.testing.assert_array_equal(vm.value(same), vm.value(np.exp(x)))
    with pytest.raises(TypeError, match=r"np.add.reduceat is not differentiable here: write it with the function, or"):
        np.add.reduceat(x, [0])
    with pytest.raises(TypeError, match=r"np.multiply.at is not .* or x\[index\] = value"):
        np.multiply.at(x, [0], 2.0)
    with pytest.raises(TypeError, match=r"np.add: a variable cannot be written into a plain array"):
        np.add.at(np.zeros(3), [0], x)


def test_ufunc_outer():
    x, y = vm.var([1.0, 2.0]), vm.var([3.0, 4.0, 5.0])
    result = np.multiply.outer(x, y)
    assert vm.value(result).tolist() == [[3.0, 4.0, 5.0], [6.0, 8.0, 10.0]]
    np.sum(result).grad()
    assert x.adj.tolist() == [12.0, 12.0]
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


def test_special_functions_come_through_the_same_door():
    import scipy.special

    x = vm.var([0.5, 1.5])
    np.sum(scipy.special.gammaln(x)).grad()
    assert x.adj == pytest.approx(scipy.special.digamma([0.5, 1.5]), rel=1e-14)
    with pytest.raises(TypeError, match=r"shichi is not differentiable here: it is not known to varmat"):
        scipy.special.shichi(x)

    def gammaln(x):
        """Of another library."""

    with pytest.raises(TypeError, match=r"gammaln is not differentiable here: it is not known to varmat"):
        x.__array_ufunc__(gammaln, "__call__", x)
