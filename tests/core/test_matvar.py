"""Arrays of scalar variables: making them, assigning to them, and the uses that they refuse."""

import math
import operator
from collections import deque

import numpy as np
import pytest
from comparing import refuses

import varmat as vm
from core.tapes import fresh_tape  # noqa: F401 - a fixture


@pytest.mark.parametrize("index", [
    0, slice(0, 1), (slice(None), 1), [0, 1], (0, 1), ..., np.array([[True, False], [True, True]]),
], ids=str)  # fmt: skip
def test_a_scalar_variable_is_assigned_to_parts_of_a_matvar(index):
    plain = np.array([[1.0, 2.0], [3.0, 4.0]])
    x, s = vm.matvar(plain), vm.var(7.0)
    x[index], plain[index] = s, 7.0
    np.sum(x * x).grad()
    assert x.val.tolist() == plain.tolist()
    assert s.adj == 14.0 * np.count_nonzero(plain == 7.0)


def test_matvar_takes_numbers_and_scalar_variables_in_lists():
    a, b = vm.var(2.0), vm.var(3.0)
    objects = np.full(2, 7.0, dtype=object)
    objects[0] = a
    for items, values, adjoints in (
        (1.5, 1.5, 3.0),
        ([], [], []),
        ((1, 2.5), [1.0, 2.5], [2.0, 5.0]),
        ([np.array([1.0, 2.0]), [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], [[2.0, 4.0], [6.0, 8.0]]),
        ([a, 1, b], [2.0, 1.0, 3.0], [4.0, 0.0, 6.0]),  # beside variables, numbers are constants
        ([[a, 1.0], (5.0, b)], [[2.0, 1.0], [5.0, 3.0]], [[4.0, 0.0], [0.0, 6.0]]),
        (objects, [2.0, 7.0], [4.0, 0.0]),
    ):
        x = vm.matvar(items)
        assert type(x) is vm.MatVar
        np.testing.assert_array_equal(x.val, np.array(values), strict=True)
        if x.size:
            np.sum(x * x).grad()
        np.testing.assert_array_equal(x.adj, np.array(adjoints), strict=True)


# Older versions of NumPy warn before they ask the element.
@pytest.mark.filterwarnings("ignore:Conversion of an array")
@pytest.mark.parametrize("convert", [float, int, complex, operator.index, math.exp])
def test_a_matvar_is_no_plain_number(convert):
    for x in (1.0, [1.0]):
        refuses(TypeError, None, convert, vm.matvar(x))


@pytest.mark.parametrize(("argument", "message"), [
    ([1.0, None, "x"], r"has dtype object \(type NoneType\), but must be real numbers"),
    (["x"], "has dtype <U1, but must be real numbers"),
    ({1.0}, r"has dtype object \(type set\), but must be real numbers"),
    (float, r"has dtype object \(type type\), but must be real numbers"),
])  # fmt: skip
def test_what_is_no_number_is_refused(argument, message):
    refuses(TypeError, f"^matvar: the argument {message}", vm.matvar, argument)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: np.array([1.0, None], object), TypeError,
     r"has dtype object \(type NoneType\), but must be real"),
    (lambda: [vm.var(1.0), "x"], TypeError, "has dtype "),
    (lambda: [vm.var(1.0), [2.0]], vm.ShapeError, r"has shape \(1,\), but must be a scalar!"),
])  # fmt: skip
def test_elements_are_numbers(make, error, message):
    refuses(error, f"^matvar: an element of the argument {message}", vm.matvar, make())


@pytest.mark.parametrize("argument", [
    set, {1.0}, frozenset(), vm.Var, iter([1.0]), {"a": (x for x in [1.0])}, [map(abs, [1.0])],
    {"a": 1.0}.values(), {1.0: 2.0}.keys(), deque([1.0]),
])  # fmt: skip
def test_value_refuses_what_hides_variables(argument):
    message = (
        "^value: the argument is a .*, but must be a variable, or a tuple, list or dict of them"
    )
    refuses(TypeError, message, vm.value, argument)


def test_value_leaves_data_as_it_is():
    for data in (None, "text", 1.5, np.arange(3), np.float32(1.0), range(3)):
        assert vm.value(data) is data
    assert vm.value({"a": [None, (vm.var(1.0),)]}) == {"a": [None, (1.0,)]}
