"""Arguments that are no structures of plain numbers are refused."""

from __future__ import annotations

import numpy as np
import pytest

import varmat as vm


def quadratic(x):
    return np.sum(x * x)


@pytest.mark.parametrize(("x", "message"), [
    ("a", "^gradient: argument 1 has dtype <U1"),
    (None, "^gradient: argument 1 has dtype object"),
    (quadratic, "^gradient: argument 1 is a function, but must be plain numbers!"),
    ({"a": [1.0, None]}, r"^gradient: argument 1\['a'\]\[1\] has dtype object"),
    (np.array(["2020-01-01"], "datetime64[D]"), r"^gradient: argument 1 has dtype datetime64\[D\]"),
])
def test_arguments_that_are_no_numbers(x, message):
    with pytest.raises(TypeError, match=message):
        vm.gradient(lambda x: 1.0, x)


def test_variables_as_arguments_are_refused():
    with vm.nested():
        for x in (vm.var(1.0), vm.var([1.0, 2.0]), vm.matvar([1.0]), {"a": vm.var(1.0)}, vm.Dual(1.0, 1.0)):
            with pytest.raises(TypeError, match=r"^gradient: argument 1.* is a \w+, but must be plain numbers"):
                vm.gradient(quadratic, x)
