"""Functions whose result has no derivative."""

import numpy as np
import pytest
from kinds import KINDS, PLAIN, full_name

import varmat as vm
from varmat.core import dispatch


def test_einsum_path_is_constant():
    assert np.einsum_path("ij,j", vm.var(np.ones((2, 2))), np.ones(2))[0] == ["einsum_path", (0, 1)]


BINARY = "array_equal array_equiv isclose allclose isin result_type"
CALLS = {
    **dict.fromkeys(BINARY.split(), lambda f, x: f(x, x)), "argpartition": lambda f, x: f(x, 1),
    "can_cast": lambda f, x: f(x, np.float64), "digitize": lambda f, x: f(x, [0.0, 1.0]),
    "einsum_path": lambda f, x: f("...,...", x, x)[0], "lexsort": lambda f, x: f((x, x)),
    "searchsorted": lambda f, x: f([0.0, 1.0, 2.0], x),
    # A bare number has no text as an array.
    "array2string": lambda f, x: f(x) if np.ndim(x) else None, "array_repr": lambda f,
    x: f(x) if np.ndim(x) else None, "array_str": lambda f, x: f(x) if np.ndim(x) else None,
}  # fmt: skip


def outcome(function, x):
    """Return the result of a function, or the type of its exception."""
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
    found = np.less.outer(x[0], [1.0, 0.0]).tolist()
    assert found == [[False, False], [True, True], [False, False]]
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
