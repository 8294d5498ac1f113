"""The arena: alignment, growth, marks, and reuse of memory to which nothing refers any more."""

from itertools import pairwise

import numpy as np
import pytest
from comparing import equal

import varmat as vm
from varmat.core.arena import FIRST_BLOCK, LARGE, Arena


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 4), (0,), (4, 0)])
def test_taken_arrays_are_aligned_contiguous_and_parallel(shape):
    arena = Arena()
    arena.take((3,))
    values, adjoints = arena.take(shape)
    for array in (values, adjoints):
        assert array.shape == shape
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert address(array) % 64 == 0
    block = arena._used[-1]
    assert address(values) - address(block.values) == address(adjoints) - address(block.adjoints)


def test_taken_arrays_do_not_overlap():
    arena = Arena()
    arrays = [array for n in (5, 8, 9, 1) for array in arena.take((n,))]
    for i, a in enumerate(arrays):
        a[:] = i
    assert all(np.all(a == i) for i, a in enumerate(arrays))


def test_blocks_grow_geometrically_and_a_large_request_gets_what_it_needs():
    arena = Arena()
    for _ in range(4):
        arena.take((FIRST_BLOCK,))
    capacities = [block.capacity for block in arena._used]
    assert all(later >= 2 * earlier for earlier, later in pairwise(capacities))
    arena.take((100 * FIRST_BLOCK,))
    assert arena._used[-1].capacity >= 100 * FIRST_BLOCK


def test_memory_is_used_again_after_release():
    arena = Arena()
    mark = arena.mark()
    first = address(arena.take((1000,))[0])
    arena.release(mark)
    assert address(arena.take((1000,))[0]) == first


def test_a_held_array_keeps_its_block_out_of_use():
    arena = Arena()
    mark = arena.mark()
    values, _ = arena.take((1000,))
    values[:] = 7.0
    part = values[10:20].reshape(2, 5).T  # a view of a view of a view
    del values
    arena.release(mark)
    for _ in range(10):
        inner = arena.mark()
        arena.take((1000,))[0][:] = -1.0
        arena.release(inner)
    assert np.all(part == 7.0)


def test_marks_nest_and_an_outer_scope_goes_on_where_it_was():
    arena = Arena()
    outer = arena.mark()
    a, _ = arena.take((100,))
    a[:] = 1.0
    for _ in range(3):
        inner = arena.mark()
        b, _ = arena.take((50_000,))
        b[:] = 2.0
        del b
        arena.release(inner)
    c, _ = arena.take((100,))
    c[:] = 3.0
    assert address(c) == address(a) + 8 * 104  # rounded up to a cache line
    assert np.all(a == 1.0)
    del a, c
    arena.release(outer)
    assert arena._used == []


def test_scopes_do_not_take_more_blocks_each_time():
    arena = Arena()
    for _ in range(50):
        mark = arena.mark()
        arena.take((FIRST_BLOCK // 2,))
        arena.release(mark)
    assert len(arena._free) == 1


def test_blocks_that_became_too_small_are_given_up():
    arena = Arena()
    mark = arena.mark()
    arena.take((FIRST_BLOCK,))
    arena.release(mark)
    arena.take((FIRST_BLOCK + 1,))
    assert [block.capacity for block in arena._used] == [2 * FIRST_BLOCK]
    assert arena._free == []


def test_bytes_taken_counts_values_and_adjoints():
    arena = Arena()
    arena.take((8,))
    arena.take((9,))
    assert arena.bytes_taken == 2 * 8 * (8 + 16)


@pytest.mark.parametrize("n", [LARGE, LARGE + 1])
def test_only_large_arrays_lie_beside_their_adjoints(n):
    with vm.nested() as tape:
        a = np.ones(n)
        x = vm.var(np.ones(n + 1))
        for make in (
            lambda: vm.var(a), lambda: np.exp(x[1:]), lambda: x[1:] * x[:-1], lambda: a * x[1:],
            lambda: x[1:] / 2.0, lambda: vm.var(2.0) * a, lambda: vm.fma(x[1:], a, 2.0),
        ):  # fmt: skip
            taken = tape.arena.bytes_taken
            y = make()
            assert (tape.arena.bytes_taken - taken) // (16 * n) == (n > LARGE)
            if n > LARGE:
                space = tape.adjoint_buffers[id(y._val)]
                np.sum(y * x[1:]).grad()
                assert np.shares_memory(y.adj, space)


@pytest.mark.parametrize("n", [LARGE, LARGE + 1])
def test_adjoints_of_large_results_are_handed_on(n):
    """An adjoint that two variables share is copied before anything is added to it."""
    w = np.arange(float(n))
    with vm.nested():
        x = vm.var(np.ones(n))
        y = x - w
        np.sum(y * w).grad()
        assert np.shares_memory(x._adj, y._adj) == (n > LARGE)
        x.adj += 1.0
        equal(y.adj, w)
        equal(x.adj, w + 1.0)


def test_a_result_made_in_a_workspace_has_its_adjoint_beside_it():
    """The workspace holds the adjoint of one variable in one reverse pass. A second pass and other
    arrays get memory of their own.
    """
    x = np.linspace(-1.0, 1.0, LARGE + 1)
    w = np.arange(float(x.size))
    with vm.nested() as tape:
        v = vm.var(x)
        s = vm.softmax(v)
        y = s @ w
        space = tape.adjoint_buffers[id(s._val)]
        y.grad()
        assert np.shares_memory(s.adj, space)
        first = s.adj
        equal(first, w)
        (2.0 * y).grad()
        assert not np.shares_memory(s.adj, space)
        equal(first, w)
        equal(s.adj, 2.0 * w)
