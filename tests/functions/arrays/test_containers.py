"""Stan's names for parts of containers, and for results without a derivative: sizes, orders, arrays
made from counts, numbers.
"""

import numpy as np
import pytest
import recordings
import stan
from comparing import DOMAIN, SHAPE, equal, refuses, refuses_as

import varmat as vm
from varmat.stan import containers
from varmat.testing import expect_ad, expect_ad_matvar

VECTOR = np.array([3.0, -1.0, 2.0, 5.0])
MATRIX = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
CUBE = np.arange(24.0).reshape(4, 3, 2) - 7.5

# Views: name -> (function, point).
PARTS = {
    "block": (lambda x: vm.block(x, 0, 1, 2, 2), MATRIX), "row": (lambda x: vm.row(x, 1), MATRIX),
    "sub_row": (lambda x: vm.sub_row(x, 1, 1, 2), MATRIX), "col": (lambda x: vm.col(x, 2), MATRIX),
    "sub_col": (lambda x: vm.sub_col(x, 0, 2, 2), MATRIX),
    "head": (lambda x: vm.head(x, 3), VECTOR),
    "segment": (lambda x: vm.segment(x, 1, 2), VECTOR), "tail": (lambda x: vm.tail(x, 3), VECTOR),
    "segment of slices": (lambda x: vm.segment(x, 1, 2), CUBE),
    "to_array_2d": (vm.to_array_2d, MATRIX),
    "empty block": (lambda x: vm.block(x, 0, 1, 0, 2), MATRIX),
    "empty segment": (lambda x: vm.segment(x, 9, 0), VECTOR),
    "empty head": (lambda x: vm.head(x, 0), VECTOR),
    "empty tail": (lambda x: vm.tail(x, 0), VECTOR),
}  # fmt: skip


@pytest.mark.parametrize(("f", "x"), PARTS.values(), ids=PARTS)
def test_parts_are_views_on_all_routes(f, x):
    expect_ad(lambda x: f(x) * f(x), x)
    expect_ad_matvar(f, x)
    with vm.nested() as tape:
        parent = vm.var(x)
        part = f(parent)
        assert len(tape) == 0
        assert np.shares_memory(part._val, parent._val) or not part.size


def function_of(name):
    return getattr(containers if name in containers.__all__ else vm, name)


def test_linspaced():
    for n in (0, 1, 2, 5):
        expect_ad(
            lambda lower, upper, n=n: containers.linspaced_vector(n, lower, upper) ** 2, -1.0, 2.0
        )
        expect_ad_matvar(
            lambda lower, upper, n=n: containers.linspaced_vector(n, lower, upper), -1.0, 2.0
        )
    equal(containers.linspaced_vector(1, -1.0, 2.0), [2.0])
    equal(containers.linspaced_vector(3, 2.0, 2.0), [2.0, 2.0, 2.0])
    recordings.agree(
        lambda x: np.sum(containers.linspaced_vector(4, x[0], x[1]) ** 2),
        (np.array([-1.0, 2.0]),),
        (np.array([3.0, 3.0]),),
    )


@pytest.mark.parametrize(
    ("count", "lower", "upper"),
    [(6, 0, 3), (4, 0, 3), (3, 0, 3), (2, -4, 9), (7, 2, 2), (5, 1, 13)],
)
def test_equally_spaced_whole_numbers(count, lower, upper):
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
PLACES = {
    "block": (1, 2), "col": (1,), "row": (1,), "segment": (1,), "sub_col": (1, 2),
     "sub_row": (1, 2), "rank": (1,),
    "one_hot_array": (1,), "one_hot_int_array": (1,), "one_hot_row_vector": (1,),
     "one_hot_vector": (1,),
}  # fmt: skip
ORDERS = ("sort_indices_asc", "sort_indices_desc")


def shifted(entry):
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
def test_stan(entry):
    entry = shifted(entry)
    f = function_of(entry["function"])
    if not any(c is not None for _, c in entry["args"]) or entry["weights"] is None:
        kinds = [c is not None for _, c in entry["args"]]
        args = [
            vm.var(x) if variable else x
            for x, variable in zip(stan.arguments(entry), kinds, strict=True)
        ]
        result = f(*args)
        equal(result, stan.number(entry["output"]))
        assert not hasattr(result, "adj")
        return
    stan.check(f, entry, rtol=1e-14)


@pytest.mark.parametrize("entry", stan.entries("containers", throws=True))
def test_what_stan_refuses(entry):
    name = entry["function"]
    message = rf"^(to_vector|{name.partition('_')[0]}\w*): .* but must "
    refuses((DOMAIN, SHAPE), message, function_of(name), *stan.arguments(shifted(entry)))


REFUSALS = [
    (lambda: vm.block(MATRIX, -1, 0, 1, 1), DOMAIN, "i is -1, but must be an index from 0 to 1!"),
    (lambda: vm.block(MATRIX, 1, 0, 2, 1), DOMAIN,
     "n_rows is 2, but must be at most 1, because i is 1 and there are 2 elements!"),
    (lambda: vm.block(MATRIX, 0, 3, 1, 1), DOMAIN, "j is 3, but must be an index from 0 to 2!"),
    (lambda: vm.block(MATRIX, 0, 0, 1, -1), DOMAIN, "n_cols is -1, but must be nonnegative!"),
    (lambda: vm.block(VECTOR, 0, 0, 1, 1), SHAPE, "x has shape (4,), but must be a matrix!"),
    (lambda: vm.row(MATRIX, 2), DOMAIN, "i is 2, but must be an index from 0 to 1!"),
    (lambda: vm.row(MATRIX[:0], 0), DOMAIN, "i is 0, but must be left out: there is no element!"),
    (lambda: vm.row(MATRIX, 1.0), TypeError, "i is 1.0, but must be an integer!"),
    (lambda: vm.col(MATRIX, -1), DOMAIN, "j is -1, but must be an index from 0 to 2!"),
    (lambda: vm.segment(VECTOR, 2, 3), DOMAIN,
     "n is 3, but must be at most 2, because i is 2 and there are 4 elements!"),
    (lambda: vm.head(VECTOR, 5), DOMAIN, "n is 5, but must be at most 4, the number of elements!"),
    (lambda: vm.tail(2.0, 1), SHAPE, "x is a scalar, but must have at least one axis!"),
    (lambda: vm.tail(["a"], 1), TypeError, "x has dtype"),
    (lambda: vm.to_array_2d(VECTOR), SHAPE, "x has shape (4,), but must be a matrix!"),
    (lambda: containers.linspaced_vector(3, vm.var(2.0), 1.0), DOMAIN,
     "upper is 1.0, but must be at least lower, which is 2.0!"),
    (lambda: containers.linspaced_vector(3, VECTOR, 1.0), SHAPE,
     "lower has shape (4,), but must be a scalar!"),
    (lambda: vm.rows(CUBE), SHAPE, "x has shape (4, 3, 2), but must be a vector or a matrix!"),
    (lambda: vm.cols(1.0), SHAPE, "x has shape (), but must be a vector or a matrix!"),
    (lambda: vm.rank(VECTOR, 4), DOMAIN, "s is 4, but must be an index from 0 to 3!"),
    (lambda: vm.rank([1.0, np.nan], 0), DOMAIN, "x[1] is nan, but must be a number!"),
    (lambda: vm.sort_indices_asc(MATRIX), SHAPE, "x has shape (2, 3), but must be a vector!"),
    (lambda: containers.one_hot_vector(3, 3), DOMAIN, "k is 3, but must be an index from 0 to 2!"),
    (lambda: containers.one_hot_int_array(0, 0), DOMAIN, "K is 0, but must be positive!"),
    (lambda: containers.zeros_vector(-1), DOMAIN, "n is -1, but must be nonnegative!"),
    (lambda: vm.linspaced_int_array(3, 5, 1), DOMAIN,
     "upper is 1, but must be at least lower, which is 5!"),
    (lambda: containers.unitspaced_array(3, 2), DOMAIN, "upper is 2, but must be at least lower"),
    (lambda: containers.uniform_simplex(0), DOMAIN, "n is 0, but must be positive!"),
    (lambda: vm.choose(2.5, 1), TypeError, "n has dtype float64, but must be whole numbers!"),
    (lambda: vm.choose([3, -1], 1), DOMAIN, "n[1] is -1, but must be nonnegative!"),
    (lambda: vm.choose(70, 35), DOMAIN, "the coefficient is 112186277816662845432, but must be"),
    (lambda: vm.to_int([1.0, np.nan]), DOMAIN, "x[1] is nan, but must be between -2**63"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS)
def test_refusals(call, error, text):
    with vm.nested() as tape:
        refuses_as(error, text, call)
    assert len(tape) == 0


def test_sizes_and_orders_of_variables():
    """Sizes and orders depend on values. Where the order changes, a recording that used it
    evaluates the function instead.
    """
    x = vm.var(VECTOR)
    assert (vm.dims(x), vm.num_elements(x), vm.rows(x), vm.cols(x)) == ((4,), 4, 4, 1)
    assert vm.dims(vm.matvar(MATRIX)) == (2, 3)
    assert vm.dims(2.0) == ()
    equal(vm.sort_indices_asc(x), [1, 2, 0, 3])
    equal(vm.sort_indices_desc(vm.Dual(VECTOR, VECTOR)), [3, 0, 2, 1])
    assert vm.rank(vm.matvar(VECTOR), 0) == 2
    assert vm.to_int(vm.var(-2.7)) == -2
    assert vm.int_step(vm.var(0.0)) == 0
    assert type(vm.choose(np.int64(5), 2)) is int
    equal(vm.choose([[5], [6]], [0, 2, 7]), [[1, 10, 0], [1, 15, 0]])
    for f in (
        lambda x: np.sum(x[vm.sort_indices_asc(x)] * np.arange(4.0)),
        lambda x: np.sum(x[vm.sort_indices_desc(x)] * np.arange(4.0)),
        lambda x: x[0] * vm.rank(x, 0),
        lambda x: np.sum(x * vm.to_int(x)),
        lambda x: np.sum(x * vm.int_step(x)),
    ):
        other = VECTOR[::-1] - 2.5
        recordings.agree(f, (VECTOR,), (VECTOR * 1.001,), (other,), elsewhere=1)
