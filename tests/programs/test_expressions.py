"""The sums of expressions: what they are, and that numbers, abbreviations and sums of products cost no pass over the arrays."""

from __future__ import annotations

import numpy as np
import pytest

from varmat.programs.expressions import Writer, compiled, tree_of

ARGUMENTS = {"a": np.array([1.5, -0.3, 2.0]), "b": np.array([0.2, 1.1, -0.7]), "c": np.array([0.4, 3.0, 1.2]), "x": 0.8, "y": -2.5}
LET = {"z": "(a - x) / y", "scaled": "a / y", "grown": "exp(b)", "twice": "x + x", "both": "a * b", "three": "a * b * c"}

# Expression -> the statements before the sum.
SUMS = {
    "x * y": [],
    "a": ["sum0 = total(a)"],
    "a - b": ["sum0 = total((a - b))"],
    "x * a / y": ["sum0 = total(a)"],
    "a * b": ["sum0 = a.dot(b)"],
    "a * b * c": ["sum0 = (a * b).dot(c)"],
    "a * b / c": ["sum0 = (a / c).dot(b)"],
    "1.0 / (a * c)": ["sum0 = total((1.0 / a / c))"],
    "-(x * a)": ["sum0 = total(a)"],
    "x * a + b": ["sum0 = total(a)", "sum1 = total(b)"],
    "b - x * a": ["sum0 = total(b)", "sum1 = total(a)"],
    "y * (a * b + exp(c))": ["sum0 = a.dot(b)", "sum1 = total(exp(c))"],
    "y * (a * b + x) * c": ["sum0 = ((a * b) + x).dot(c)"],
    "(x * a + b) / c": ["sum0 = total((((x * a) + b) / c))"],
    "a * b + b * a": ["sum0 = a.dot(b)"],
    "a / b + a * b": ["sum0 = total((a / b))", "sum1 = a.dot(b)"],
    "where(x < y, a, b * c)": ["sum0 = total(a)", "sum1 = b.dot(c)"],
    "-0.5 * z * z": ["z = ((a - x) / y)", "sum0 = z.dot(z)"],
    "scaled * b": ["sum0 = a.dot(b)"],
    "b / scaled": ["sum0 = total((b / a))"],
    "scaled * b + exp(scaled)": ["sum0 = a.dot(b)", "scaled = (a / y)", "sum1 = total(exp(scaled))"],
    "grown + a": ["grown = exp(b)", "sum0 = total(grown)", "sum1 = total(a)"],
    "both * x": ["sum0 = a.dot(b)"],
    "both * c": ["sum0 = (a * b).dot(c)"],
    "three * x": ["three = ((a * b) * c)", "sum0 = total(three)"],
    "twice * a": ["twice = (x + x)", "sum0 = total(a)"],
}


@pytest.mark.parametrize("expression", SUMS)
def test_sums(expression: str) -> None:
    writer = Writer({"a", "b", "c"}, LET)
    text = writer.sum(tree_of(expression))
    assert writer.statements == SUMS[expression]
    for function in compiled([*ARGUMENTS, "size"], [*writer.statements, f"return {text}"], writer.functions):
        known = ARGUMENTS | {"exp": np.exp, "where": np.where}
        for name, abbreviated in LET.items():
            known[name] = eval(abbreviated, known)
        expected = np.sum(eval(expression, known) * np.ones(3))
        assert function(*ARGUMENTS.values(), 3) == pytest.approx(expected, rel=1e-14)
