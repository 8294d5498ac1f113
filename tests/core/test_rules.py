"""From expressions to rules: which statements write them in place, with as few temporaries as can be."""

from __future__ import annotations

import numpy as np
import pytest

import varmat as vm
from varmat.core.arena import LARGE
from varmat.core.elementwise import ROWS
from varmat.core.rules import in_place
from varmat.testing import expect_ad, expect_value


@pytest.mark.parametrize(
    ("expression", "statements"),
    [
        ("g", ["copyto(out, g)"]),
        ("-g", ["negative(g, out)"]),
        ("g / x", ["divide(g, x, out)"]),
        ("g * y / x", ["multiply(g, y, out)", "divide(out, x, out)"]),
        ("-(g * r)", ["multiply(g, r, out)", "negative(out, out)"]),
        ("g * (1 + r * r)", ["multiply(r, r, out)", "add(1, out, out)", "multiply(g, out, out)"]),
        # Of two sides only one can be written into the result.
        ("(g + x) * (g - y)", ["add(g, x, out)", "multiply(out, g - y, out)"]),
        ("g * exp(-x)", ["multiply(g, exp(-x), out)"]),
        ("g % x", ["copyto(out, g % x)"]),
        ("g * x**2", ["multiply(g, x ** 2, out)"]),
        ("where(x > 0, g, 0.0)", ["copyto(out, where(x > 0, g, 0.0))"]),
        # Numbers are no arrays: they need no memory.
        ("(2.0 * n) * x", ["multiply(2.0 * n, x, out)"]),
        ("-n * x", ["multiply(-n, x, out)"]),
        ("(n + 1.0) / sqrt(n)", ["divide(n + 1.0, sqrt(n), out)"]),
    ],
)
def test_expressions_in_place(expression: str, statements: list[str]) -> None:
    assert in_place(expression, frozenset("n")) == statements


def test_the_names_with_which_derivatives_are_written_cannot_be_taken():
    """The derivative of the hyperbolic cosine would be another one."""
    for name in ("sinh", "square", "expm1"):
        row = ROWS[name]
        with pytest.raises(ValueError, match=rf"^elementwise: the name {name} is taken, and \w+ is written with it; take another"):
            vm.elementwise(name, np.frompyfunc(lambda x: x + 1000.0, 1, 1), "g")
        assert ROWS[name] is row
    try:  # a function of one's own is made anew, as in a notebook
        for factor in (2.0, 3.0):
            mine = vm.elementwise("my_own", np.frompyfunc(lambda x: x, 1, 1), f"{factor} * g * my_own(1.0)")
        assert vm.gradient(mine, 1.0) == 3.0
    finally:
        del ROWS["my_own"]


def test_a_row_of_a_python_function_makes_floats():
    """`numpy.frompyfunc` makes arrays of objects."""
    try:
        softsign = vm.elementwise(
            "own_softsign", np.frompyfunc(lambda x: x / (1 + abs(x)), 1, 1), "g / square(1 + absolute(x))",
            points=[(0.5,)], reference="x / (1 + abs(x))",
        )  # fmt: skip
        expect_value(softsign, "x / (1 + abs(x))", [(0.5,), (-1e-9,), (-300.0,)])
        for f in (
            lambda x: softsign(x) * x, lambda x: np.exp(softsign(x)), lambda x: np.sin(x) * softsign(x)[::-1],
        ):  # fmt: skip
            expect_ad(f, np.array([0.3, 1.2, -2.0]))
            expect_ad(f, np.linspace(-2.0, 2.0, 6).reshape(2, 3))
        x = np.linspace(-2.0, 2.0, LARGE + 3)
        slope = 1.0 / (1.0 + abs(x)) ** 2
        np.testing.assert_allclose(vm.gradient(lambda x: np.sum(softsign(x) * x), x), slope * x + x / (1 + abs(x)), rtol=1e-14)
    finally:
        del ROWS["own_softsign"]
