"""Faster ways to compute on plain arrays give the same results as NumPy's functions."""

import itertools
import math

import numpy as np
import pytest
from comparing import close, equal

from varmat import plain_arrays
from varmat.programs.build import symbol

RNG = np.random.default_rng(5)
SHAPES = [
    (240, 3), (240, 1), (240, 12), (240, 13), (199, 2), (200, 2), (2, 150, 4), (300,), (0, 3),
    (3, 0), (),
]  # fmt: skip


def variants(shape):
    """Return arrays of a shape in several layouts, and with elements that are not finite."""
    x = RNG.normal(size=shape)
    wild = np.where(
        RNG.random(shape) < 0.02, RNG.choice([math.inf, -math.inf, math.nan], size=shape), x
    )
    return [
        x, wild, np.asfortranarray(x), np.repeat(x[..., None], 2, -1)[..., 0],
        np.broadcast_to(np.float64(2.0), shape),
    ]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_sums(shape):
    axes = [
        None, (), *range(-len(shape), len(shape)),
        *itertools.combinations(range(len(shape)), 2),
    ]  # fmt: skip
    for x, axis, keepdims in itertools.product(variants(shape), axes, (False, True)):
        expected = np.sum(x, axis=axis, keepdims=keepdims)
        found = plain_arrays.summed(x, axis, keepdims)
        assert np.shape(found) == np.shape(expected)
        close(np.atleast_1d(found), np.atleast_1d(expected), 1e-13, 1e-13)


@pytest.mark.parametrize(("x", "inside"), [
    ([2.0, 3.0], True), ([1.0, 2.0], False), ([2.0, 4.0], False), ([2.0, math.nan], False),
    ([0.0, 2.0], False), ([-2.0, 2.0], False), ([], True),
])  # fmt: skip
def test_ranges(x, inside):
    assert symbol.is_between(np.array(x), 1.0, 4.0) is inside
    assert symbol.is_between(np.array([x, x]), 1.0, 4.0) is inside
    numbers = [number(each) for each in x for number in (float, np.float64)]
    assert all(symbol.is_between(each, 1.0, 4.0) for each in numbers) is inside


def test_divisors():
    assert symbol.is_safe_divisor(np.array([-2.0, 3.0]))
    unsafe = (0.0, 1e-300, -1e300, math.inf, math.nan)
    assert not any(symbol.is_safe_divisor(np.array([1.0, x])) for x in unsafe)


def test_arrays_with_short_rows():
    x = np.ones((300, 4))
    assert plain_arrays.has_short_rows(x)
    assert not any(map(plain_arrays.has_short_rows, (
        x.T, x[:100], x[:, :1], x.astype(np.float32), x.astype(object), x[0], x.tolist(),
    )))  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_columns(shape):
    for x in variants(shape):
        for axis in (None, -1, 0, len(shape) - 1, (-1,)):
            found = plain_arrays.by_columns(x, axis)
            equal(found, x)
            if axis == -1 and plain_arrays.has_short_rows(x):
                assert found.strides[-1] == max(found.strides)


BROADCAST = [
    ((240, 3), (3,)), ((240, 3), (240, 1)), ((240, 3), (1, 1)), ((2, 240, 3), (240, 1)),
    ((5, 2), (1, 5, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("whole", "part"), BROADCAST)
def test_contributions_to_what_was_broadcast(whole, part):
    c = RNG.normal(size=whole)
    found = plain_arrays.unbroadcast(c, part)
    assert found.shape == part
    x = RNG.normal(size=part)
    expected = np.vdot(c, np.broadcast_to(x, np.broadcast_shapes(whole, part)))
    close(np.vdot(found, x), expected, 1e-12)


@pytest.mark.parametrize("size", [10, plain_arrays.BLIND, plain_arrays.BLIND + 1])
def test_choices(size):
    x = RNG.normal(size=size)
    x[:4] = math.inf, -math.inf, math.nan, -0.0
    condition = RNG.random(size) < 0.5
    condition[:3] = False
    column, row, numbers = x[:, None], x[:8], 2 * condition
    for kept in (
        x, 1.5, -2.0, math.inf, np.float64(0.25), np.broadcast_to(np.float64(3.0), size),
        x.astype(np.float32),
    ):  # fmt: skip
        for zero in (0.0, 0, 1.0):
            for args in (
                (condition, kept, zero),  (condition, zero, kept),  (~condition, kept, zero),
                (True, kept, zero),
            ):  # fmt: skip
                equal(plain_arrays.where(*args), np.where(*args))
    for args in (
        (condition, column, 0.0), (condition[:, None], row, 0.0), (numbers, x, 0.0),
        (condition, x, -x),
    ):  # fmt: skip
        equal(plain_arrays.where(*args), np.where(*args))
    assert plain_arrays.where(condition, x, 0.0) is not x


A, B = RNG.integers(-4, 4, size=50), RNG.integers(0, 3, size=50)
INDICES = [
    (4, A), (4, A.reshape(5, 10)), (4, A.astype(np.int8)), (4, B.astype(np.uint8)), (4, A > 0),
    (4, 2), (4, slice(1, 3)), ((4, 3), (A, B)),
    ((4, 3), (A.reshape(10, 5), B.reshape(10, 5))),
    ((4, 3), (A[:, None], B[:7])), ((4, 3), (A, 1)), ((4, 3), (2, 1)), ((4, 3), A),
    ((4, 3), (slice(None), B)), ((4, 3), (A, slice(0, 2))), ((4, 3), (..., B)),
    ((4, 3), (None, A, B)), ((4, 40), A), ((4, 90), A.reshape(5, 10)), ((40, 4), (slice(None), A)),
    ((9, 4, 3), (slice(None), A.astype(np.int8))),
    ((4, 3, 90), (slice(None), B)),
    ((3, 2, 40, 4), (slice(None), slice(None), slice(None), A)),
    ((9000, 20), A * 9), ((40, 4), (..., A)), ((40, 4), (slice(0, 40), A)),
    ((4, 40), (A, slice(None))), ((40, 4, 3), (A, slice(None), B)), ((4, 40), A[:0]),
    ((4, 40), B.astype(np.uint32)), ((4, 3), np.ones((4, 3), bool)), ((4, 3, 2), (A, B, 0)),
    ((4, 3, 2), (A, B)), ((4, 3), (np.array(1), B)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "index"), INDICES, ids=[f"{shape} {i}" for i, (shape, _) in enumerate(INDICES)]
)
def test_scatter(shape, index):
    if isinstance(index, np.ndarray) and index.dtype == bool and index.ndim == 1:
        index = index[:4]
    for order in "CF":
        start = np.array(RNG.normal(size=shape), order=order)
        c = RNG.normal(size=np.shape(start[index]))
        for given in (c, 1.5):
            found, expected = start.copy(order), start.copy(order)
            plain_arrays.scatter_add(found, index, given)
            np.add.at(expected, index, given)
            close(np.atleast_1d(found), np.atleast_1d(expected), 1e-13, 1e-13)
