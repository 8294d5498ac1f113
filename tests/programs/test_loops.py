"""Loops over blocks compute what the same statements compute on whole arrays, and the place of a result serves until it is due."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from varmat.programs import expressions, loops
from varmat.programs.expressions import Writer, tree_of

FUNCTIONS = {"log": np.log, "exp": np.exp, "where": np.where, "maximum": np.maximum}
LET = {"z": "(a - x) / b", "s": "z * z", "w": "1.0 / (s + x)", "l": "log(b)", "u": "x + x", "h": "s * x"}

# Elementwise results, and sums.
PROGRAMS = {
    "sums only": ([], ["z", "z * w", "-0.5 * s - l"]),
    "one result": (["z * w"], ["s"]),
    "several": (["-z * w", "z * w", "w * l"], ["s * w - l"]),
    "in the other order": (["l", "s", "z"], ["w"]),
    "the same twice": (["z", "z"], ["z"]),
    "an argument": (["a", "-a"], ["b"]),
    "an argument once": (["-a"], ["b"]),
    "the sign of a number": (["-h"], []),
    "of a number": (["a * u", "u * b"], ["u"]),
    "late sums": (["z"], ["exp(-s) * w", "exp(-s)", "l"]),
    "what cannot be written in place": (["where(a > x, z, l)", "z"], ["where(b > a, s, w)"]),
    "deep": (["((a + b) * (a - b) + (z + w) * (z - w)) / ((a * b) + (z * w))"], ["l"]),
}


def by_blocks(name: str, size: int) -> tuple[Any, str, dict[str, Any]]:
    """The function, its text, and arguments for it."""
    elementwise, sums = PROGRAMS[name]
    writer = Writer({"a", "b"}, LET)
    partials = [writer.code(tree_of(expression)) for expression in elementwise]
    totals = [(f"float({writer.sum(tree_of(expression))})", False) for expression in sums]
    texts: list[str] = []

    def compiled(parameters: Any, statements: Any, *functions: Any, **others: Any) -> Any:
        texts.extend(statements)
        return original(parameters, statements, *functions, **others)

    original = expressions.compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expressions, "compiled", compiled)
        function, _ = loops.blocked(["a", "b", "x"], writer, "0.0", [*partials, *totals])
    rng = np.random.default_rng(size)
    return function, "\n".join(texts), {"a": rng.normal(size=size), "b": rng.uniform(0.5, 2.0, size=size), "x": 0.8}


@pytest.mark.parametrize("size", [1, 7, 63, 64, 65, 1000])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "CACHE", 64)
    function, _, arguments = by_blocks(name, size)
    before = {key: np.copy(x) for key, x in arguments.items()}
    _, results = function(*arguments.values(), size)
    known: dict[str, Any] = FUNCTIONS | arguments
    for key, abbreviated in LET.items():
        known[key] = eval(abbreviated, known)
    elementwise, sums = PROGRAMS[name]
    for expression, result in zip(elementwise, results, strict=False):
        np.testing.assert_allclose(result, eval(expression, known), rtol=1e-14)
        assert all(result is other or not np.may_share_memory(result, other) for other in [*arguments.values(), *results])
    for expression, result in zip(sums, results[len(elementwise) :], strict=True):
        terms = np.broadcast_to(eval(expression, known), size)
        assert math.isclose(result, math.fsum(terms), rel_tol=1e-12, abs_tol=1e-12)
    for key, x in arguments.items():
        np.testing.assert_array_equal(x, before[key])


def test_results_are_computed_in_their_places() -> None:
    _, text, _ = by_blocks("one result", 100)
    assert "b_0 = empty" in text
    assert "subtract(a, k_0, out=o_0)" in text
    _, text, _ = by_blocks("in the other order", 100)
    assert "subtract(a, k_1, out=o_2)" in text
    assert "b_0" not in text
    _, text, _ = by_blocks("the sign of a number", 100)
    assert "negative" not in text
