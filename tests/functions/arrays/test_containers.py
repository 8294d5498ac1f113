"""Stan's names for parts of containers, and for results without a derivative: sizes, orders, arrays
made from counts, numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import recordings
import stan
from functions.movement import expect_moves

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

VECTOR = np.array([3.0, -1.0, 2.0, 5.0])
MATRIX = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
CUBE = np.arange(24.0).reshape(4, 3, 2) - 7.5

# Views: name -> (function, point).
PARTS: dict[str, tuple[Any, Any]] = {
    "block": (lambda x: vm.block(x, 0, 1, 2, 2), MATRIX),
    "row": (lambda x: vm.row(x, 1), MATRIX),
    "col": (lambda x: vm.col(x, 2), MATRIX),
    "sub_row": (lambda x: vm.sub_row(x, 1, 1, 2), MATRIX),
    "sub_col": (lambda x: vm.sub_col(x, 0, 2, 2), MATRIX),
    "segment": (lambda x: vm.segment(x, 1, 2), VECTOR),
    "segment of slices": (lambda x: vm.segment(x, 1, 2), CUBE),
    "head": (lambda x: vm.head(x, 3), VECTOR),
    "tail": (lambda x: vm.tail(x, 3), VECTOR),
    "to_array_2d": (vm.to_array_2d, MATRIX),
}
# The parts are empty.
EMPTY: dict[str, tuple[Any, Any]] = {
    "block": (lambda x: vm.block(x, 0, 1, 0, 2), MATRIX),
    "segment": (lambda x: vm.segment(x, 9, 0), VECTOR),
    "head": (lambda x: vm.head(x, 0), VECTOR),
    "tail": (lambda x: vm.tail(x, 0), VECTOR),
}


@pytest.mark.parametrize(
    ("f", "x"),
    [*PARTS.values(), *EMPTY.values()],
    ids=[*PARTS, *(f"empty {name}" for name in EMPTY)],
)
def test_moves(f: Any, x: Any) -> None:
    expect_moves(f, x)


@pytest.mark.parametrize(("f", "x"), PARTS.values(), ids=PARTS)
def test_parts_are_views_on_all_routes(f: Any, x: Any) -> None:
    expect_ad(lambda x: f(x) * f(x), x)
    expect_ad_matvar(f, x)
    with vm.nested() as tape:
        parent = vm.var(x)
        part = f(parent)
        assert len(tape) == 0
        assert np.shares_memory(part._val, parent._val)


def test_linspaced() -> None:
    for n in (0, 1, 2, 5):
        expect_ad(lambda lower, upper, n=n: vm.linspaced_vector(n, lower, upper) ** 2, -1.0, 2.0)
        expect_ad_matvar(lambda lower, upper, n=n: vm.linspaced_vector(n, lower, upper), -1.0, 2.0)
    np.testing.assert_array_equal(vm.linspaced_vector(1, -1.0, 2.0), [2.0])
    np.testing.assert_array_equal(vm.linspaced_vector(3, 2.0, 2.0), [2.0, 2.0, 2.0])
    recordings.agree(
        lambda x: np.sum(vm.linspaced_vector(4, x[0], x[1]) ** 2),
        (np.array([-1.0, 2.0]),),
        (np.array([3.0, 3.0]),),
    )


@pytest.mark.parametrize(
    ("count", "lower", "upper"),
    [(6, 0, 3), (4, 0, 3), (3, 0, 3), (2, -4, 9), (7, 2, 2), (5, 1, 13)],
)
def test_equally_spaced_whole_numbers(count: int, lower: int, upper: int) -> None:
    found = vm.linspaced_int_array(count, lower, upper)
    steps = np.diff(found)
    assert found.dtype == np.int64
    assert found[0] == lower
    assert found[-1] <= upper
    if count <= upper - lower + 1:  # the steps are the largest whole distance that fits
        assert set(steps) == {(upper - lower) // (count - 1)}
    else:  # each number occurs equally often, the last one perhaps less often
        repeats = np.unique(found, return_counts=True)[1]
        assert set(steps) <= {0, 1}
        assert set(repeats[:-1]) <= {repeats[0]}
        assert repeats[-1] <= repeats[0]


# Positions of the arguments and outputs that are indices, which Stan counts from 1.
PLACES: dict[str, tuple[int, ...]] = {
    "block": (1, 2), "col": (1,), "row": (1,), "segment": (1,), "sub_col": (1, 2),
     "sub_row": (1, 2), "rank": (1,),
    "one_hot_array": (1,), "one_hot_int_array": (1,), "one_hot_row_vector": (1,),
     "one_hot_vector": (1,),
}  # fmt: skip
ORDERS = ("sort_indices_asc", "sort_indices_desc")


def shifted(entry: Any) -> Any:
    """Return the entry with its indices counted from 0."""
    args = [
        [x - 1, c] if i in PLACES.get(entry["function"], ()) else [x, c]
        for i, (x, c) in enumerate(entry["args"])
    ]
    output = entry.get("output")
    if entry["function"] in ORDERS:
        output = [i - 1 for i in output]
    return {**entry, "args": args, "output": output}


@pytest.mark.parametrize("entry", stan.entries("containers"))
def test_stan(entry: Any) -> None:
    entry = shifted(entry)
    f = getattr(vm, entry["function"])
    if not any(c is not None for _, c in entry["args"]) or entry["weights"] is None:
        kinds = [c is not None for _, c in entry["args"]]
        args = [
            vm.var(x) if variable else x
            for x, variable in zip(stan.arguments(entry), kinds, strict=True)
        ]
        result = f(*args)
        np.testing.assert_array_equal(result, stan.number(entry["output"]))
        assert not hasattr(result, "adj")
        return
    stan.check(f, entry, rtol=1e-14)


@pytest.mark.parametrize("entry", stan.entries("containers", throws=True))
def test_what_stan_refuses(entry: Any) -> None:
    name = entry["function"]
    with pytest.raises(
        (vm.DomainError, vm.ShapeError),
        match=rf"^(to_vector|{name.partition('_')[0]}\w*): .* but must ",
    ):
        getattr(vm, name)(*stan.arguments(shifted(entry)))


REFUSALS: dict[str, tuple[Any, type[Exception], str]] = {
    "block before": (lambda: vm.block(MATRIX, -1, 0, 1, 1), vm.DomainError,
        "block: i is -1, but must be an index from 0 to 1!"),
    "block beyond": (lambda: vm.block(MATRIX, 1, 0, 2, 1), vm.DomainError,
        "block: n_rows is 2, but must be at most 1, because i is 1 and there are 2 elements!"),
    "block columns": (lambda: vm.block(MATRIX, 0, 3, 1, 1), vm.DomainError,
        "block: j is 3, but must be an index from 0 to 2!"),
    "block count": (lambda: vm.block(MATRIX, 0, 0, 1, -1), vm.DomainError,
        "block: n_cols is -1, but must be nonnegative!"),
    "block of a vector": (lambda: vm.block(VECTOR, 0, 0, 1, 1), vm.ShapeError,
        r"block: x has shape \(4,\), but must be a matrix!"),
    "row": (lambda: vm.row(MATRIX, 2), vm.DomainError,
        "row: i is 2, but must be an index from 0 to 1!"),
    "row of nothing": (lambda: vm.row(MATRIX[:0], 0), vm.DomainError,
        "row: i is 0, but must be left out: there is no element!"),
    "row fraction": (lambda: vm.row(MATRIX, 1.0), TypeError,
        "row: i is 1.0, but must be an integer!"),
    "col": (lambda: vm.col(MATRIX, -1), vm.DomainError,
        "col: j is -1, but must be an index from 0 to 2!"),
    "segment": (lambda: vm.segment(VECTOR, 2, 3), vm.DomainError,
        "segment: n is 3, but must be at most 2, because i is 2 and there are 4 elements!"),
    "head": (lambda: vm.head(VECTOR, 5), vm.DomainError,
        "head: n is 5, but must be at most 4, the number of elements!"),
    "tail": (lambda: vm.tail(2.0, 1), vm.ShapeError,
        "tail: x is a scalar, but must have at least one axis!"),
    "tail words": (lambda: vm.tail(["a"], 1), TypeError, "tail: x has dtype"),
    "to_array_2d": (lambda: vm.to_array_2d(VECTOR), vm.ShapeError,
        r"to_array_2d: x has shape \(4,\), but must be a matrix!"),
    "linspaced": (lambda: vm.linspaced_vector(3, vm.var(2.0), 1.0), vm.DomainError,
        "linspaced_vector: upper is 1.0, but must be at least lower, which is 2.0!"),
    "linspaced ends": (lambda: vm.linspaced_vector(3, VECTOR, 1.0), vm.ShapeError,
        r"linspaced_vector: lower has shape \(4,\), but must be a scalar!"),
    "rows": (lambda: vm.rows(CUBE), vm.ShapeError,
        r"rows: x has shape \(4, 3, 2\), but must be a vector or a matrix!"),
    "cols": (lambda: vm.cols(1.0), vm.ShapeError,
        r"cols: x has shape \(\), but must be a vector or a matrix!"),
    "rank": (lambda: vm.rank(VECTOR, 4), vm.DomainError,
        "rank: s is 4, but must be an index from 0 to 3!"),
    "rank nan": (lambda: vm.rank([1.0, np.nan], 0), vm.DomainError,
        r"rank: x\[1\] is nan, but must be a number!"),
    "sort_indices": (lambda: vm.sort_indices_asc(MATRIX), vm.ShapeError,
        r"sort_indices_asc: x has shape \(2, 3\), but must be a vector!"),
    "one_hot": (lambda: vm.one_hot_vector(3, 3), vm.DomainError,
        "one_hot_vector: k is 3, but must be an index from 0 to 2!"),
    "one_hot of nothing": (lambda: vm.one_hot_int_array(0, 0), vm.DomainError,
        "one_hot_int_array: K is 0, but must be positive!"),
    "zeros": (lambda: vm.zeros_vector(-1), vm.DomainError,
        "zeros_vector: n is -1, but must be nonnegative!"),
    "linspaced_int": (lambda: vm.linspaced_int_array(3, 5, 1), vm.DomainError,
        "linspaced_int_array: upper is 1, but must be at least lower, which is 5!"),
    "unitspaced": (lambda: vm.unitspaced_array(3, 2), vm.DomainError,
        "unitspaced_array: upper is 2, but must be at least lower"),
    "simplex": (lambda: vm.uniform_simplex(0), vm.DomainError,
        "uniform_simplex: n is 0, but must be positive!"),
    "choose": (lambda: vm.choose(2.5, 1), TypeError,
        "choose: n has dtype float64, but must be whole numbers!"),
    "choose negative": (lambda: vm.choose([3, -1], 1), vm.DomainError,
        r"choose: n\[1\] is -1, but must be nonnegative!"),
    "choose large": (lambda: vm.choose(70, 35), vm.DomainError,
        "choose: the coefficient is 112186277816662845432, but must be"),
    "to_int": (lambda: vm.to_int([1.0, np.nan]), vm.DomainError,
        r"to_int: x\[1\] is nan, but must be between -2\*\*63"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(call: Any, error: type[Exception], text: str) -> None:
    with vm.nested() as tape, pytest.raises(error, match=f"^{text}"):
        call()
    assert len(tape) == 0


def test_sizes_and_orders_of_variables() -> None:
    """Sizes and orders depend on values. Where the order changes, a recording that used it
    evaluates the function instead.
    """
    x = vm.var(VECTOR)
    assert (vm.dims(x), vm.num_elements(x), vm.rows(x), vm.cols(x)) == ((4,), 4, 4, 1)
    assert vm.dims(vm.matvar(MATRIX)) == (2, 3)
    assert vm.dims(2.0) == ()
    np.testing.assert_array_equal(vm.sort_indices_asc(x), [1, 2, 0, 3])
    np.testing.assert_array_equal(vm.sort_indices_desc(vm.Dual(VECTOR, VECTOR)), [3, 0, 2, 1])
    assert vm.rank(vm.matvar(VECTOR), 0) == 2
    assert vm.to_int(vm.var(-2.7)) == -2
    assert vm.int_step(vm.var(0.0)) == 0
    assert type(vm.choose(np.int64(5), 2)) is int
    np.testing.assert_array_equal(vm.choose([[5], [6]], [0, 2, 7]), [[1, 10, 0], [1, 15, 0]])
    for f in (
        lambda x: np.sum(x[vm.sort_indices_asc(x)] * np.arange(4.0)),
        lambda x: np.sum(x[vm.sort_indices_desc(x)] * np.arange(4.0)),
        lambda x: x[0] * vm.rank(x, 0),
        lambda x: np.sum(x * vm.to_int(x)),
        lambda x: np.sum(x * vm.int_step(x)),
    ):
        other = VECTOR[::-1] - 2.5
        recordings.agree(f, (VECTOR,), (VECTOR * 1.001,), (other,), elsewhere=1)
