"""What goes into one loop, and what must wait."""

from __future__ import annotations

import numpy as np
import pytest

from varmat.programs import blocks
from varmat.programs.blocks import by_blocks
from varmat.programs.statements import Statement

N = 10
SHAPES = dict.fromkeys(("v0", "v1", "v2", "v3", "a1", "a2", "k1", "v9"), (N,))
FUNCTIONS = {"exp"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 3)


def run(texts, views=()):
    """Run the statements as they are and by blocks, and demand the same; the lines by blocks."""

    def take_part(a, c):
        a[1:3] += c

    lines = by_blocks(list(map(Statement, texts)), SHAPES, FUNCTIONS, set(views))
    found = []
    for body in (texts, lines):
        namespace = {
            "exp": np.exp, "total": np.sum, "empty": np.empty, "blocks": blocks.blocks, "add": np.add, "multiply": np.multiply,
            "subtract": np.subtract, "divide": np.divide, "f1": np.cumsum, "f2": take_part, "i0": slice(1, 4),
            "contiguous": np.ascontiguousarray, "negative": np.negative,
        }  # fmt: skip
        exec("def program(v0, k1):\n    " + "\n    ".join(body), namespace)
        found.append(namespace["program"](np.linspace(0.1, 1.0, N), np.linspace(1.0, 2.0, N)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    return lines


def loops(lines):
    return sum(line.startswith("for ") for line in lines)


def test_forward_and_reverse_are_one_loop():
    lines = run(["v1 = exp(v0)", "v2 = (v1 * k1)", "s3 = total(v2)", "s4 = v1.dot(v2)", "a1 = (2.0 * v2)", "return s3, s4, a1"])
    assert loops(lines) == 1
    assert not any(line.startswith("v1") for line in lines)


def test_what_needs_a_sum_waits_for_it():
    lines = run(["v1 = exp(v0)", "s2 = total(v1)", "v2 = (v1 / s2)", "a1 = (v2 * v2)", "return s2, a1"])
    assert loops(lines) == 2


def test_whole_arrays_stand_between_loops():
    assert loops(run(["v1 = exp(v0)", "v2 = f1(v1)", "v3 = (v2 * v1)", "s4 = v3.dot(v0)", "return s4, v2"])) == 2
    # Before the first, what needs no loop.
    assert loops(run(["v1 = f1(v0)", "v2 = (v1 * v0)", "v3 = exp(v0)", "s4 = v2.dot(v3)", "return s4, v2"])) == 1


def test_what_stays_is_written_where_it_stays():
    lines = run(["v1 = exp(v0)", "v2 = (v1 * k1)", "v3 = (-v2)", "return v1, v2, v3"])
    assert sum("out=" in line for line in lines) == 3


def test_a_loop_of_sums_alone_is_none():
    assert loops(run(["s1 = total(v0)", "s2 = v0.dot(k1)", "return s1, s2"])) == 0


def test_what_is_written_into_is_read_before_or_after_as_it_was():
    run(["v1 = (v0 * 2.0)", "v2 = (v1 * v1)", "v9 = v1", "v9[i0] = 5.0", "v3 = (v9 * k1)", "s4 = total(v2)", "return s4, v3"])
    run(["v1 = (v0 * 2.0)", "s2 = total(v1)", "v2 = (v1 / s2)", "v1[i0] = 7.0", "a1 = (v1 * v2)", "return s2, a1"])
    for same in ("v1", "contiguous(v1)"):
        by_another_name = ["v1 = (v0 * 2.0)", "s2 = total(v1)", "v2 = (v1 / s2)", f"v9 = {same}", "v9[i0] = 7.0"]
        run([*by_another_name, "a1 = (v9 * v2)", "return s2, a1"])
    through_a_view = ["v1 = (v0 * 2.0)", "v3 = v1[:]", "s2 = total(v0)", "v2 = (v3 / s2)", "v1[i0] = 7.0", "a1 = (v1 * v2)"]
    run([*through_a_view, "return s2, a1"], ["v3"])
    run(["a1 = (v0 * 2.0)", "c5 = (v0[1:3] * 1.0)", "f2(a1, c5)", "a2 = (a1 * k1)", "s3 = a2.dot(v0)", "return s3, a1"])


def test_small_arrays_are_left_alone(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", N)
    texts = ["v1 = exp(v0)", "return total(v1), v1"]
    assert by_blocks(list(map(Statement, texts)), SHAPES, FUNCTIONS, set()) == texts
