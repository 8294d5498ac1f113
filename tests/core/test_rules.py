"""Rules made from expressions: the statements that compute them in place, with as few temporary
arrays as possible.
"""

import pytest

from varmat.core.rules import function_of, in_place


@pytest.mark.parametrize(("expression", "statements"), [
    ("g", ["copyto(out, g)"]),
    ("-g", ["negative(g, out)"]),
    ("g / x", ["divide(g, x, out)"]),
    ("g * y / x", ["multiply(g, y, out)", "divide(out, x, out)"]),
    ("-(g * r)", ["multiply(g, r, out)", "negative(out, out)"]),
    ("g * (1 + r * r)", ["multiply(r, r, out)", "add(1, out, out)", "multiply(g, out, out)"]),
    # Only one of the two factors can be computed in the result's memory.
    ("(g + x) * (g - y)", ["add(g, x, out)", "multiply(out, g - y, out)"]),
    ("g * exp(-x)", ["multiply(g, exp(-x), out)"]),
    ("g % x", ["copyto(out, g % x)"]),
    ("g * x**2", ["multiply(g, x ** 2, out)"]),
    ("where(x > 0, g, 0.0)", ["copyto(out, where(x > 0, g, 0.0))"]),
    # Numbers alone need no array.
    ("-2.0 * x", ["multiply(-2.0, x, out)"]),
])  # fmt: skip
def test_expressions_in_place(expression, statements):
    assert in_place(expression) == statements


def test_an_untitled_rule_is_named_after_its_last_line():
    rule = function_of("x", ["y = x + 1", "z = 2 * y", "return z"], {})
    assert rule(1.0) == 4.0
    assert rule.__code__.co_filename == "<rule: return z>"
