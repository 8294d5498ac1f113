"""Arguments that are not structures of plain numbers are refused."""

import numpy as np
import pytest
from comparing import equal, refuses

import varmat as vm


def quadratic(x):
    return np.sum(x * x)


@pytest.mark.parametrize(("x", "message"), [
    ("a", "^gradient: argument 1 has dtype <U1"),
    (None, "^gradient: argument 1 has dtype object"),
    (quadratic, "^gradient: argument 1 is a function, but must be plain numbers!"),
    ({"a": [1.0, "b"]}, r"^gradient: argument 1\['a'\]\[1\] has dtype <U1"),
    (np.array(["2020-01-01"], "datetime64[D]"), r"^gradient: argument 1 has dtype datetime64\[D\]"),
])  # fmt: skip
def test_arguments_that_are_no_numbers(x, message):
    refuses(TypeError, message, vm.gradient, lambda x: 1.0, x)


def test_variables_as_arguments():
    """The gradient depends on variables that are given as arguments."""

    def cubes(x):
        return sum(np.sum(part**3) for part in (x.values() if isinstance(x, dict) else [x]))

    with vm.nested():
        for x in (vm.var(1.0), vm.var([1.0, 2.0]), vm.matvar([1.0]), {"a": vm.var(1.0)}):
            leaf = x["a"] if isinstance(x, dict) else x
            gradient = vm.gradient(cubes, x)
            gradient = gradient["a"] if isinstance(x, dict) else gradient
            equal(vm.value(gradient), 3.0 * vm.value(leaf) ** 2)
            np.sum(gradient).grad()
            equal(leaf.adj, 6.0 * vm.value(leaf))
    found = vm.gradient(cubes, vm.Dual(2.0, 1.0))
    assert (found.val, found.tan) == (12.0, 12.0)
