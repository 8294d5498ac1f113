"""Which copies a program leaves out, and what it lets go of."""

from __future__ import annotations

import pytest

from varmat.core.arena import LARGE
from varmat.programs.memory import with_deletions, without_needless_copies
from varmat.programs.statements import Statement

BIG = (LARGE + 1,)


def without_copies(statement):
    return statement.replace(".copy()", "").replace(".copy('C')", "").replace("contiguous(v1)", "v1")


@pytest.mark.parametrize(
    ("statements", "left"),
    [
        (["v1 = exp(v0)", "v2 = v1.copy()", "v2[i0] = 1.0", "return total(v2), ()"], 0),
        (["v1 = (v0 * k1)", "v2 = v1.copy()", "v2[i0] = 1.0", "v3 = v2.copy()", "v3[i1] = 2.0", "return total(v3), ()"], 0),
        # The argument of the program.
        (["v2 = v0.copy()", "v2[i0] = 1.0", "return total(v2), ()"], 1),
        # Read later, by itself or through a view.
        (["v1 = exp(v0)", "v2 = v1.copy()", "v2[i0] = 1.0", "return total(v2), (v1,)"], 1),
        (["v1 = exp(v0)", "v5 = v1[i3]", "v2 = v1.copy()", "v2[i0] = 1.0", "return v2.dot(v5), ()"], 1),
        (["v1 = exp(v0)", "v4 = v1", "v2 = v1.copy()", "v2[i0] = 1.0", "v6 = (v2 * v4)", "return total(v6), ()"], 1),
        # Kept by an operation, which may return it or save it.
        (["v1 = exp(v0)", "(v3,), m4 = f5((v1,))", "v2 = v1.copy()", "v2[i0] = 1.0", "return v2.dot(v3), ()"], 1),
        (["v1 = f9(v0)", "v2 = v1.copy()", "v2[i0] = 1.0", "return total(v2), ()"], 1),
        # Written into through a view of an array in order.
        (["v1 = exp(v0)", "v2 = v1.copy('C')", "f3(v2)[i0] = 1.0", "return total(v2), ()"], 0),
        (["v1 = exp(v0)", "v2 = v1.copy('C')", "f3(v2)[i0] = 1.0", "return v1.dot(v2), ()"], 1),
        # Only numbers are taken from it.
        (["v1 = exp(v0)", "v3 = v1.item(2)", "s4 = float(total(v1))", "v2 = v1.copy()", "v2[i0] = v3", "return v2.dot(v0), ()"], 0),
    ],
)
def test_copies_that_are_needed_stay(statements, left):
    found = [each.text for each in without_needless_copies(list(map(Statement, statements)), {"exp"}, {"v5"})]
    assert sum(".copy(" in statement for statement in found) == left
    assert [without_copies(statement) for statement in found] == [without_copies(each) for each in statements]


def test_large_arrays_are_deleted_after_their_last_use():
    lines = ["v1 = exp(v0)", "v2, m3 = f4((v1,))", "v5[i6] = v2", "c7, = f8(m3)"]
    lines += ["for block in blocks(9):", "    v2_ = v2_whole[block]"]
    shapes = {"v0": BIG, "v1": BIG, "v2": (3,), "v5": BIG, "i6": BIG, "c7": BIG}
    found = with_deletions(["v5 = empty(9)", "v2_whole = v1", *lines, "return c7"], shapes)
    assert "del v1" in found[found.index("v2, m3 = f4((v1,))") + 1]
    assert "m3" in found[found.index("c7, = f8(m3)") + 1]
    # Not the argument, not data, not what is returned; small arrays stay.
    gone = {name for line in found if line.startswith("del ") for name in line[4:].split(", ")}
    assert gone == {"v1", "v5", "m3"}


def test_programs_of_small_arrays_stay_as_they_are():
    lines = ["v1 = exp(v0)", "return v1"]
    assert with_deletions(lines, {"v0": (3,), "v1": (3,)}) is lines
