"""Elements that move: gathers, and arrays that are made of parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layouts import returning, run_all

from varmat.programs.build.builder import Builder, is_partition
from varmat.programs.kernels.places import GATHER

X, Y = (
    np.array([[0.5, -1.0, 2.0], [0.3, 0.1, -0.7]]),
    np.array([[1.5, 0.2, -0.4], [2.3, -1.1, 0.9]]),
)


@pytest.mark.parametrize(("at", "place"), [
    ((5, 2), (0, (8, 8))), ((2, 5), (0, (8, 8))), ((2, 2, 3), (0, (24, 8, 16))),
     ((3, 2), (8, (0, 24))), ((10, 9), (0, (8, 8))),
    ((4, 3), (72, (-16, 8))),
])  # fmt: skip
def test_windows_that_overlap_are_added_up(at: Any, place: Any) -> None:
    """An element of the result is the sum over all windows that contain it."""
    places = np.ndarray(at, np.int64, np.arange(20), *place)
    for base in (None, np.arange(20.0)):
        builder = Builder()
        x = builder.argument(at)
        parts = [(place, at, x), ((0, ()), (), builder.constant(3.0))]
        whole = builder.assemble((20,), parts, None if base is None else builder.constant(base))
        values = np.random.default_rng(1).normal(size=at)
        expected = np.zeros(20) if base is None else base.copy()
        np.add.at(expected, places, values)
        expected[0] += 3.0
        for found in run_all(returning(builder, whole), values).values():
            np.testing.assert_allclose(found[0], expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("places", "covers"),
    [
        ([((0, (8,)), (2,)), ((16, (8,)), (2,))], True),
        ([((0, (16,)), (2,)), ((8, (16,)), (2,))], True),
        ([((0, (8,)), (2,)), ((8, (8,)), (2,))], False),
        ([((0, (8,)), (2,)), ((16, ()), ())], False),
        ([((0, (8,)), (2,)), ((16, ()), ()), ((24, ()), ())], True),
    ],
)
def test_partitions(places: Any, covers: bool) -> None:
    assert is_partition((4,), places) is covers


def test_gathers_from_arrays_that_are_not_contiguous() -> None:
    builder = Builder()
    x = builder.argument((2, 3))
    made = builder.gather(builder.transposed(x), np.array([[0, 1], [5, 5]]))
    assert [step.kernel for step in builder.steps][-1] is GATHER
    for found in run_all(returning(builder, made), X).values():
        np.testing.assert_array_equal(found[0], X.T.ravel()[[[0, 1], [5, 5]]])
