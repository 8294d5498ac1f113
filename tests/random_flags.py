"""Random bodies of `scan`, `while_loop`, `cond` and loops of Python that hand on a number, a
counter, a truth value and a vector.

Run as a script, it compares recordings, eager evaluation and plain numbers for many of them:
``python tests/random_flags.py --count 2000 --seed 7``.
"""

from __future__ import annotations

import random
from argparse import ArgumentParser
from typing import Any

import numpy as np

import varmat as vm
from varmat.programs.ir.program import RecordingError

# Expressions of each kind: a float, an integer, a truth value and a vector. Comparisons are moved a
# little, so that no two sides differ by rounding alone.
FORMS = {
    "f": (
        "({f} + {f})", "np.sin({f})", "({f} * {f})", "np.where({b}, {f}, {f})", "({i} * 0.25)",
        "({i} / 3)", "np.sum({v})", "({b} * {f})", "np.maximum({f}, {f} + 0.01)", "({f} - {i})",
        "np.mean({v} > {f} + 0.00137)", "{v}[1]",
    ),
    "i": (
        "({i} + 1)", "({i} + {i})", "({b} + {i})", "np.sum({v} > {f} + 0.00211)",
        "np.where({b}, {i}, {i})", "({i} * {b})", "({i} // 2)", "({i} % 3)", "np.maximum({i}, {i})",
    ),
    "b": (
        "np.greater({f}, {f} + 0.00173)", "({b} & {b})", "({b} | {b})", "(~{b})", "({b} == {b})",
        "np.logical_xor({b}, {b})", "np.greater({i}, 1)", "np.any({v} > {f} + 0.00119)",
        "np.all({v} < {f} - 0.00157)", "({b} + {b})", "np.where({b}, {b}, {b})",
    ),
    "v": (
        "({v} + {f})", "np.tanh({v})", "np.where({v} > {f} + 0.00191, {v}, {f})", "({v} * {b})",
        "({v} * ({v} > 0.00103))", "0.1 * np.cumsum({v})",
        "(({v} > {f} + 0.00149) + ({v} > 0.00163)) * {f}",
    ),
}  # fmt: skip
OUTSIDE = {
    "f": ("q[0]", "q[1]", "number"), "i": ("2", "1", "3"), "b": ("np.True_", "(q[0] > q[1])"),
    "v": ("q", "data"),
}  # fmt: skip
INSIDE = {
    "f": ("a", "q[2]", "x"), "i": ("n", "2"), "b": ("t", "np.greater(a, 0.1)"), "v": ("w", "q")
}  # fmt: skip
KINDS = {
    "scan": """
    def step(carry, x, q):
        a, n, t, w = carry
        return (np.tanh({f}), ({i}) % 5, {b}, np.tanh({v})), ({f}, {b})
    (a, n, t, w), (y, truths) = vm.scan(step, (a, n, t, w), rows, q)
    a = a + np.sum((truths + truths) * y)""",
    "while": """
    def step(carry, q):
        x, a, n, t, w = carry
        return x + 0.5, np.tanh({f}), ({i}) % 5, {b}, np.tanh({v})
    x, a, n, t, w = vm.while_loop(
        lambda carry, q: carry[0] < 1.3, step, (0.0, a, n, t, w), q, max_iterations=5)""",
    "cond": """
    x = number
    a, n, t, w = vm.cond({b}, lambda a, n, t, w, q: ({f}, {i}, {b}, {v}),
                         lambda a, n, t, w, q: ({f}, {i}, {b}, {v}), a, n, t, w, q)""",
    "for": """
    for x in rows:
        a, n, t, w = np.tanh({f}), ({i}) % 5, {b}, np.tanh({v})""",
}
TEXT = """
def f(q):
    a, n, t, w = {start}{body}
    return a + n * q[3] + np.where(t, q[0], q[1]) + np.sum(w * data) + (t + np.True_) * 0.5
"""
ROWS = np.array([0.5, -1.0, 0.25, 0.8, -0.3]), np.array([1, 0, 2, 1, 3]), np.array([True, False])
POINTS = np.array(
    [[0.3137, -0.7213, 1.2071, 0.9333], [-0.4219, 0.8123, 0.1077, -1.3311], [1.1, 0.2, -0.6, 0.45]]
)


def filled(text: str, names: dict[str, tuple[str, ...]], rng: random.Random, depth: int = 0) -> str:
    """Replace the kinds in a text by random expressions."""
    for kind in FORMS:
        while f"{{{kind}}}" in text:
            ends = depth > 2 or rng.random() < 0.25
            form = rng.choice(names[kind] if ends else FORMS[kind])
            text = text.replace(f"{{{kind}}}", filled(form, names, rng, depth + 1), 1)
    return text


def random_function(seed: int) -> tuple[str, Any]:
    """Return a random function of four numbers, and its text."""
    rng = random.Random(seed)
    start = filled("{f} * number, {i}, {b}, {v} * number", OUTSIDE, rng, 2)
    body = filled(KINDS[rng.choice([*KINDS])], INSIDE, rng)
    text = TEXT.format(start=start, body=body)
    names = {"np": np, "vm": vm, "data": np.array([0.5, -1.0, 0.25, 2.0]), "rows": rng.choice(ROWS),
             "number": np.float64(1.1)}  # fmt: skip
    exec(text, names)
    return text, names["f"]


def check(seed: int) -> bool:
    """Compare the values and gradients of a random function; False if it is refused."""
    text, f = random_function(seed)
    recorded = vm.recorded(f)
    try:
        plain = [f(q) for q in POINTS]
        eager = [vm.value_and_grad(f)(q) for q in POINTS]
        found = [recorded(q) for q in (*POINTS, POINTS[0])]
    except (RecordingError, IndexError, TypeError):  # a scalar has no element 1, for example
        return False
    for value, (expected, gradient), (again, same) in zip(plain, eager, found, strict=False):
        np.testing.assert_allclose([expected, again], value, 1e-12, err_msg=text)
        np.testing.assert_allclose(same, gradient, 1e-11, 1e-13, err_msg=text)
    return True


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    print(f"{sum(map(check, seeds))} of {options.count} agree; the others are refused")


if __name__ == "__main__":
    main()
