"""Reading and assigning parts of variables: NumPy's semantics and exact derivatives.

NumPy itself is the oracle for programs that only move elements: their Jacobian is the program
applied to unit vectors.
"""

from array import array
from copy import deepcopy

import numpy as np
import pytest
from comparing import close, equal, refuses
from functions.movement import expect_moves
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import varmat as vm
from varmat.core.arena import LARGE
from varmat.testing import expect_ad, expect_ad_matvar

SHAPES = hnp.array_shapes(max_dims=3, max_side=4)
MATRIX = np.arange(1.0, 13.0).reshape(3, 4)
VECTOR = np.array([3.0, -1.0, 2.0, 5.0])


def values_of(shape):
    return np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape)


@st.composite
def shape_and_index(draw):
    """Draw a shape, and a basic or fancy index for it."""
    shape = draw(SHAPES)
    size = shape[0]
    places = st.lists(st.integers(-size, size - 1), min_size=0, max_size=4).map(
        lambda i: np.array(i, dtype=int)
    )
    mixed = st.tuples(places, hnp.basic_indices(shape[1:], allow_ellipsis=False)).map(
        lambda i: (i[0], *(i[1] if isinstance(i[1], tuple) else (i[1],)))
    )
    kinds = [
        hnp.basic_indices(shape, allow_newaxis=True),   hnp.integer_array_indices(shape),
        hnp.arrays(bool, shape),                        hnp.arrays(bool, size),
        places,                                         places.map(list),
    ]  # fmt: skip
    return shape, draw(st.one_of(*kinds, mixed) if len(shape) > 1 else st.one_of(*kinds))


@given(shape_and_index())
@settings(max_examples=150, deadline=None)
def test_reading(case):
    shape, index = case
    expect_moves(lambda x: x[index], values_of(shape))


READS = {
    "element": np.s_[1, 2], "negative element": np.s_[-1, -1],              "row": np.s_[1],
    "column": np.s_[:, -1], "steps": np.s_[::-2, ::3],                      "nothing": np.s_[2:1],
    "new axes": np.s_[None, 1:, ..., None],         "ellipsis and element": np.s_[..., 1],
    "all": np.s_[...],      "empty tuple": (),      "numpy integer": np.int64(2),
    "list": [2, 0, 0],      "empty list": [],
    "empty list beside a slice": (slice(1, None), []),
    "duplicates": np.array([[1, 1], [2, 1]]),
    "negative duplicates": (np.array([-1, -1, 2]), slice(None)),            "mask": MATRIX > 5,
    "mask of rows": np.array([True, False, True]),  "list mask": [False, True, True],
    "mask and integer": (np.array([True, False, True]), 1),
    "slice and places": (slice(None, None, -1), [3, 3, 0]),
    "separated places": ([0, 2], None, [1, 1]),     "broadcast places": ([[0], [2]], [1, 3, 3]),
    "true": True,           "false": False,
}  # fmt: skip


@pytest.mark.parametrize("index", READS.values(), ids=READS)
def test_reads_of_a_matrix(index):
    expect_moves(lambda x: x[index], MATRIX)
    expect_ad(lambda x: x[index] * x[index], MATRIX)
    expect_ad_matvar(lambda x: x[index], MATRIX)


def test_basic_reads_record_nothing():
    with vm.nested() as tape:
        x = vm.var(MATRIX)
        for index in (
            np.s_[1], np.s_[:, 1], np.s_[::-1, 1:2], np.s_[None], np.s_[...], np.s_[1, ..., None],
            np.int32(1),
        ):  # fmt: skip
            assert np.shares_memory(x[index]._val, x._val)
        assert len(tape) == 0
        assert np.shares_memory([*x][1]._val, x._val)
        assert type(x[1, 1]) is vm.Var
        assert type(x[[1, 1]]) is vm.VarMat
        assert len(tape) == 2


@pytest.mark.parametrize(
    "index", [3, -4, np.s_[0, 4], np.s_[0, 0, 0], [5], np.ones(4, dtype=bool), 1.0, "a"]
)
def test_indices_that_do_not_fit(index):
    with vm.nested() as tape:
        x = vm.var(MATRIX)
        refuses(IndexError, None, lambda: x[index])
        with pytest.raises(IndexError):
            x[index] = 1.0
        assert len(tape) == 0
        equal(x.val, MATRIX)


@st.composite
def assignment(draw):
    """Draw a shape and a list of assignments. Each assignment is an index and a function that makes
    the assigned values from the variable.
    """
    shape, steps = None, []
    for _ in range(draw(st.integers(1, 3))):
        s, index = draw(shape_and_index())
        if shape is None:
            shape = s
        elif s != shape:
            index = draw(st.one_of(hnp.basic_indices(shape), hnp.arrays(bool, shape)))
        part = np.shape(np.zeros(shape)[index])
        source = draw(st.sampled_from(["whole", "row", "scalar", "data", "number"]))
        steps.append((index, part, source))
    return shape, steps


def source_of(x, part, source):
    """Return an array that has the shape of the part, or broadcasts to it."""
    if source == "number":
        return 7.0
    if source == "scalar":
        return np.ravel(x)[0] * 2.0
    shape = part if source != "row" else part[-1:]
    if source == "data":
        return -values_of(shape)
    return np.resize(np.ravel(x)[::-1], shape)


@given(assignment())
@settings(max_examples=150, deadline=None)
def test_assigning(case):
    shape, steps = case

    def program(x):
        y = np.copy(x)
        z = np.copy(x)
        for index, part, source in steps:
            y[index] = source_of(x, part, source)
            z = z + y
        return z

    expect_moves(program, values_of(shape))


def shift(x):
    y = np.copy(x)
    y[1:] = y[:-1]
    return y


def reverse_in_place(x):
    y = np.copy(x)
    y[...] = y[::-1]
    return y


def duplicates(x):
    y = np.copy(x)
    y[[0, 1, 0, 0]] = y[[1, 2, 2, 3]]
    return y


def through_views(x):
    y = np.copy(x)
    part = np.reshape(y[::-1], (2, 2)).T[1:]
    part[0, 1] = x[0]
    part[:, :1] = 2.5
    return y


def in_place_operators(x):
    y = np.copy(x)
    part = y[1:]
    part += x[:-1]
    y[:2] *= 2.0
    y -= 1.0
    part /= 2.0
    return y


def swap(x):
    y = np.copy(x)
    y[0], y[1] = y[1], y[0]
    return y


def after_use(x):
    y = np.copy(x)
    first = y[1:] + y[:-1]
    y[1] = 10.0 * x[3]
    second = y[1:] + y[:-1]
    y[:] = 0.0
    return np.concatenate([first, second, y])


PROGRAMS = (shift, reverse_in_place, duplicates, in_place_operators, swap, after_use, through_views)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program):
    expect_moves(program, VECTOR)
    expect_ad(lambda x: program(x) * program(x), VECTOR)
    expect_ad_matvar(program, VECTOR)


def recursion(a, e):
    """Fill in an autoregression step by step."""
    x = e + 0.0 * a
    for t in range(1, len(e)):
        x[t] = a * x[t - 1] + e[t]
    return x


def powers(x):
    """Use values, overwrite them with results made from them, and use them again."""
    y = np.copy(x)
    for _ in range(3):
        y[1:] = y[1:] * y[:-1]
        y[0] = np.sin(y[0])
    return y


def elimination(a):
    """Return the pivots of Gaussian elimination, done in place."""
    u = np.copy(a)
    for k in range(len(a)):
        u[k + 1 :] -= np.reshape(u[k + 1 :, k] / u[k, k], (-1, 1)) * u[k]
    return np.diagonal(u) * 1.0


@pytest.mark.parametrize(("program", "args"), [
    (recursion, (0.7, VECTOR)), (powers, (VECTOR,)),
    (elimination, (np.diag([4.0, 5.0, 6.0]) + 1.0,)),
])  # fmt: skip
def test_programs_with_products(program, args):
    expect_ad(program, *args)
    expect_ad_matvar(program, *args)


def test_recursion_against_the_closed_form():
    """The derivative of x[n] with respect to e[t] is a^(n - t)."""
    a, n = 0.7, 30
    with vm.nested():
        e, coefficient = vm.var(np.ones(n)), vm.var(a)
        x = recursion(coefficient, e)
        close(x[-1].grad(e), a ** np.arange(n)[::-1], 1e-13)
        k = np.arange(n)
        close(coefficient.adj, np.sum(k[1:] * a ** (k[1:] - 1.0)), 1e-13)
        close(x.val, (1 - a ** (k + 1)) / (1 - a), 1e-14)


def test_values_after_the_reverse_pass_are_the_assigned_ones():
    x = vm.var(VECTOR)
    y = np.copy(x)
    before = np.sum(y * y)
    y[1:3] = x[0] * np.array([1.0, 2.0])
    y[0] = 4.0
    total = before + np.sum(y * y)
    assigned = [4.0, 3.0, 6.0, 5.0]
    for _ in range(3):
        total.grad()
        equal(y.val, assigned)
        equal(x.adj, 2 * VECTOR + [2 * 3.0 + 4 * 6.0, 0.0, 0.0, 2 * 5.0])
    # Recording goes on after a reverse pass.
    y[3] = x[1] * 3.0
    equal(np.sum(y).grad(x), [3.0, 3.0, 0.0, 0.0])


def test_assigning_into_a_leaf():
    """The adjoint of a leaf belongs to the values with which the leaf was made."""
    with vm.nested():
        x = vm.var(VECTOR)
        total = np.sum(x * x)
        x[1:3] = 1.0
        equal((total + np.sum(x * x * x)).grad(x), 2 * VECTOR + 3 * VECTOR**2 * [1, 0, 0, 1])
        equal(x.val, [3.0, 1.0, 1.0, 5.0])


@pytest.mark.parametrize("n", [5, LARGE + 5])
@pytest.mark.parametrize("view", [False, True])
def test_assigning_inside_a_functional_leaves_the_callers_array_alone(n, view):
    x = np.arange(1.0, n + 1)
    original = x.copy()

    def f(theta):
        early = theta[1:]
        vm.keep_alive(object())
        first = np.sum(theta * theta)
        part = theta[:3] if view else theta
        part[0] = 5.0
        part[1:2] = theta[2:3] * 2.0
        return first + np.sum(theta * 3.0) + np.sum(early * early)

    g = vm.gradient(f, x)
    expected = 2 * original + 3.0 + 2 * original
    expected[0], expected[1] = 2 * original[0], 2 * original[1]
    expected[2] += 2.0 * (3.0 + 2.0 * (2.0 * original[2]))
    equal(g, expected)
    equal(x, original)


def test_infinite_and_nan_overwritten_elements_have_no_influence():
    with vm.nested():
        x = vm.var([np.nan, np.inf, 2.0])
        y = x * x
        y[:2] = 1.0
        np.sum(y).grad()
        assert x.adj[2] == 4.0
        z = np.copy(x)
        z[x.val > 1e300] = 0.0
        z[np.isnan(x.val)] = x[2]
        equal(np.sum(z).grad(x), [0.0, 0.0, 2.0])


@pytest.mark.parametrize(
    "f", [lambda x: x + 1.0, lambda x: 2.0 + x, np.copy, lambda x: np.reshape(x.T, -1)]
)
@pytest.mark.parametrize("k", [None, 2])
def test_the_result_of_an_operation_on_duals_is_its_own(f, k):
    tangents = np.ones((2, 2)) if k is None else np.ones((k, 2, 2))
    for wrap in (lambda t: t, vm.var):
        with vm.nested():
            x = vm.Dual(values_of((2, 2)), wrap(tangents))
            y = f(x)
            y[...] = 5.0
            equal(vm.value(x.val), values_of((2, 2)))
            equal(vm.value(x.tan), tangents)


def test_views_follow_a_large_argument_that_is_assigned_into():
    """Until then the argument is the caller's own array."""
    x = np.arange(40_000.0)

    def f(x):
        part = x[:3]
        x[0] = 5.0
        return np.sum(part**2)

    value, gradient = vm.value_and_grad(f)(x)
    assert (value, x[0]) == (30.0, 0.0)
    equal(gradient[:4], [0.0, 2.0, 4.0, 0.0])


def test_adjoints_that_lie_in_another_order_meet_reshapes():
    rng = np.random.default_rng(2)
    # The adjoint of a summed array is one number for all elements. What is computed from it takes
    # the layout of the data.
    for shape in ((3, 4), (30, 40), (200, 200)):
        x, weights = rng.normal(size=shape), rng.normal(size=shape[::-1]).T
        g = vm.gradient(
            lambda x, weights=weights: np.sum(np.tanh(np.ravel(x))) + np.sum(x * weights), x
        )
        close(g, weights + 1.0 / np.cosh(x) ** 2, 1e-12)

    # A part of the adjoint of a large array is shared, read-only, without a copy.
    x, beside = rng.normal(size=(200, 200)), np.ones((200, 1))
    g = vm.gradient(
        lambda x: 5.0 * x.reshape(-1)[7] + np.sum(np.concatenate([x, beside], axis=1) ** 2), x
    )
    expected = 2.0 * x
    expected[0, 7] += 5.0
    close(g, expected, 1e-14)


ERRORS = {
    "shape": (np.s_[:2], np.ones(3), vm.ShapeError,
        r"^setitem: the assigned value has shape \(3,\), but the part .* has shape \(2,\)"),
    "axes": (np.s_[:2], np.ones((2, 2)), vm.ShapeError,
        r"^setitem: the assigned value has shape \(2, 2\), but the part"),
    "into an element": (0, np.ones(1), vm.ShapeError,
        r"^setitem: the assigned value has shape \(1,\), but the part .* has shape \(\)"),
    "complex": (0, 1j, TypeError,
        "the assigned value has dtype complex128, but must be real numbers"),
    "text": (0, "a", TypeError, "the assigned value has dtype <U1, but must be real numbers"),
    "dual": (0, vm.Dual(1.0, 1.0), TypeError, "^a Dual cannot be assigned into a VarMat"),
    "nothing": (0, None, TypeError, "the assigned value has dtype object"),
}  # fmt: skip


@pytest.mark.parametrize(("index", "source", "error", "text"), ERRORS.values(), ids=ERRORS)
def test_refused_assignments_change_nothing(index, source, error, text):
    with vm.nested() as tape:
        x = vm.var(VECTOR)
        with pytest.raises(error, match=text):
            x[index] = source
        equal(x.val, VECTOR)
        assert len(tape) == 0
        assert len(tape.assignments) == 0


@pytest.mark.parametrize("index", [0, np.s_[1:2], np.s_[..., 1], [0, 2], np.s_[...]], ids=str)
def test_leading_axes_of_length_one_are_dropped_by_assignment(index):
    def program(x):
        z = np.copy(x)
        z[index] = (x * x)[index][None, None]
        y = np.copy(z)
        y[index] = z[index][None, ..., :1]
        y[:2] = np.array([[[7.0], [8.0]]])
        return y * z

    expect_ad(program, MATRIX)


def test_a_matvar_is_not_converted_by_assignment():
    with vm.nested():
        x = vm.var(VECTOR)
        refuses(TypeError, None, x.__setitem__, slice(None), vm.matvar(VECTOR))
        equal(x.val, VECTOR)


def test_scopes_and_stale_variables():
    outer = vm.var(VECTOR)
    with vm.nested():
        inner = vm.var(1.0)
        message = (
            r"^a variable of an outer scope cannot be assigned to in a nested scope; copy it first"
        )
        for index, source in ((0, inner), (slice(1, None), 0.0)):
            refuses(vm.TapeError, message, outer.__setitem__, index, source)
        mine = outer.copy()
        mine[0] = inner * 3.0
        assert np.sum(mine).grad(inner) == 3.0
    refuses(vm.TapeError, "stale", outer.__setitem__, 0, inner)
    refuses(vm.TapeError, "stale", mine.__setitem__, 0, 1.0)
    refuses(vm.TapeError, "stale", mine.__getitem__, [0])
    equal(outer.val, VECTOR)


def test_a_variable_does_not_go_into_plain_data():
    """NumPy raises its own error, and the one of the element is its cause."""
    data = np.zeros(3)
    with vm.nested(), pytest.raises(ValueError, match="setting an array element") as raised:
        data[0] = vm.var(1.0)
    message = "its derivative would be lost: make the array that is written into with np.zeros_like"
    assert message in str(raised.value.__cause__)
    equal(data, np.zeros(3))


# --- elements, one after the other ---


@st.composite
def writes(draw):
    """Draw a shape and a list of writes. Each write is an index and the place of an element in
    another array; a place below 0 stands for a number.
    """
    shape = draw(st.sampled_from([(4,), (2, 3)]))
    places = [st.integers(-n, n - 1) for n in shape]
    index = places[0] if len(shape) == 1 else st.tuples(*places)
    return shape, draw(st.lists(st.tuples(index, st.integers(-2, 4)), min_size=1, max_size=12))


@given(writes(), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_writing_elements(case, through_view, interrupted):
    shape, steps = case

    def program(x):
        y = np.copy(np.reshape(x, -1)[: np.prod(shape)].reshape(shape))
        target = y[::-1] if through_view else y
        read = 0.0
        for i, (index, source) in enumerate(steps):
            target[index] = float(source) if source < 0 else x[source]
            if interrupted and i % 3 == 1:
                read = read + y * 2.0
        return y + read

    expect_moves(program, np.arange(1.0, 7.0))


def test_elements_written_in_a_row_are_one_entry():
    with vm.nested() as tape:
        x, v = vm.var(VECTOR), vm.var(2.0)
        y = np.copy(x)
        count = len(tape)
        for i in range(4):
            y[i] = v
            y[i] = 7
        y[1] = v
        assert len(tape) == count + 1 == len(tape.assignments) + count
        np.copy(x)[0] = v
        y[2] = v
        assert len(tape) == count + 4
        total = np.sum(y * [1.0, 10.0, 100.0, 1000.0])
        for _ in range(2):
            assert total.grad(v) == 110.0
            equal(x.adj, 0.0)
            equal(y.val, [7.0, 2.0, 2.0, 7.0])


@pytest.mark.parametrize("seen", [True, False])
def test_elements_written_over_values_that_are_used(seen):
    """The values are right even if nothing depends on them after the writes."""
    with vm.nested():
        x, v = vm.var(VECTOR), vm.var(2.0)
        y = x * 1.0
        total = np.sum(y * y)
        y[0], y[1], y[0] = v, 5.0, v * 3.0
        total = total + np.sum(y) if seen else total
        equal(total.grad(x), 2 * VECTOR + ([0, 0, 1, 1] if seen else 0.0))
        assert v.adj == (3.0 if seen else 0.0)
        equal(y.val, [6.0, 5.0, 2.0, 5.0])


def test_indices_and_data_may_change_after_the_assignment():
    with vm.nested():
        x = vm.var(VECTOR)
        y = x * 1.0
        place, places, piece = np.array(1), [0, 2], np.ones(2)
        y[place] = x[0]
        y[places] = piece
        y[2:] = piece
        place[...], places[0], piece[:] = 3, 1, -1.0
        assigned = y.val
        for _ in range(2):
            equal(np.sum(y * y).grad(x), [6.0, 0.0, 0.0, 0.0])
            equal(y.val, assigned)


# --- arrays assigned to themselves ---


def test_in_place_operators_on_parts_record_one_assignment():
    with vm.nested() as tape:
        x = vm.var(MATRIX)
        y = np.copy(x)
        count = len(tape)
        for index in (
            0, np.s_[1:], np.s_[:, ::-2], np.s_[...], np.s_[-1, 1:], (1,), np.int64(2),
            np.s_[:, None],
        ):  # fmt: skip
            y[index] += 1.0
            count += 2
            assert len(tape) == count
            y[index] = y[index]
            assert len(tape) == count
        y[1:][0] *= x[0]
        assert len(tape) == count + 2


BESIDE = {
    "shifted": (np.s_[1:3], np.s_[:2]),             "reversed": (np.s_[::-1], np.s_[:]),
    "another row": (0, 1),                          "broadcast over rows": (True, 1),
    "the same in a tuple of one": ((True,), 1),     "a row over all": (np.s_[:], 1),
    "as a gather": ([0, 1, 2], np.s_[:3]),
}  # fmt: skip


@pytest.mark.parametrize(("to", "what"), BESIDE.values(), ids=BESIDE)
def test_parts_that_are_not_the_same(to, what):
    def program(x):
        y = np.copy(x)
        y[to] = y[what]
        return y

    expect_moves(program, np.arange(1.0, 10.0).reshape(3, 3))
    with vm.nested() as tape:
        y = vm.var(np.eye(3))
        part = y[what]
        y[to] = part
        assert len(tape) == 1


SLICES = st.tuples(
    *[st.sampled_from([None, 0, 1, 2, -1, -2]) for _ in range(2)], st.sampled_from([None, 1, 2, -1])
).map(lambda bounds: slice(*bounds))
PARTS = st.one_of(
    SLICES,
    st.just(np.s_[...]),
    st.tuples(SLICES),
    SLICES.map(lambda i: (i, None)),
    st.just(np.s_[::-1, None]),
)


@given(st.lists(st.tuples(PARTS, PARTS, st.integers(0, 4), st.booleans()), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None)
def test_views_assigned_to_where_they_are(steps):
    """Take parts of an array, perhaps change the array, and assign the parts to the same or to
    other places.
    """

    def program(x):
        y = np.copy(x)
        for first, second, change, same in steps:
            part = y[first]
            if change == 1:
                y[1] = x[0] * 3.0
            elif change == 2:
                part += 1.0
            elif change == 3:
                y[1:] = x[:-1]
            elif change == 4:
                y = y[::-1]
            y[first if same else second] = part if same or part.shape == y[second].shape else 2.0
        return y + 0.0

    expect_moves(program, VECTOR)


# What is assigned to, the index in it, and the part that is assigned.
OVERLAPS = {
    "other steps": (lambda x: x, slice(None, None, 2), lambda x: x[:4]),
    "ahead": (lambda x: x, slice(1, None), lambda x: x[:-1]),
    "mask": (lambda x: x, np.full(8, True), lambda x: x[::-1]),
    "mask of another view": (lambda x: x, np.arange(8) % 2 == 0,
        lambda x: np.reshape(x, (2, 4))[1]),
    "mask of a view, the whole": (lambda x: x[::-1], np.full(8, True), lambda x: x),
}  # fmt: skip


@pytest.mark.parametrize("name", OVERLAPS)
def test_a_part_assigned_to_a_part_is_read_before_it_is_written(name):
    """NumPy itself, with masks and unequal steps, sometimes reads elements that it has just
    overwritten.
    """
    whole, index, part = OVERLAPS[name]
    point, weights = np.array([3.0, -1.0, 2.0, 5.0, 0.5, -2.0, 4.0, 1.0]), np.arange(1.0, 9.0)

    def f(x):
        y = np.copy(x)
        whole(y)[index] = np.copy(part(y))
        return y

    def overlapping(x):
        y = np.copy(x)
        whole(y)[index] = part(y)
        return y

    expected = f(point)
    jacobian = np.stack([f(unit) for unit in np.eye(8)], axis=1)
    equal(vm.jvp(overlapping, (point,), (point,)), (expected, expected))
    hessian = vm.hessian(lambda x: np.sum(weights * overlapping(x) ** 2), point)
    equal(hessian, 2 * jacobian.T * weights @ jacobian)
    with vm.nested():
        x = vm.var(point)
        y = overlapping(x)
        for _ in range(2):
            np.sum(weights * y).grad()
            equal(y.val, expected)
            equal(x.adj, weights @ jacobian)
    recorded = vm.recorded(lambda x: np.sum(weights * overlapping(x)))
    for q in (point, np.exp(point)):
        value, gradient = recorded(q)
        assert value == pytest.approx(weights @ f(q), rel=1e-14)
        equal(gradient, weights @ jacobian)


class Places:
    """Stands for the index arrays of other libraries."""

    def __init__(self, places):
        self.places = np.array(places)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.places, dtype, copy=copy)


@pytest.mark.parametrize(("places", "later"), [
    (Places([0, 2]), [1, 1]),
    (Places([True, False, True, False]), False),
    (array("q", [0, 2]), array("q", [1, 1])),
])  # fmt: skip
def test_an_index_of_another_library_is_read_once(places, later):
    def read(x, index):
        y = x[index]
        x = x * 1.0
        x[index] = 2.0 * y
        return np.sum(y**2) + np.sum(x * np.arange(4.0))

    def read_and_change(x):
        own = deepcopy(places)
        result = read(x, own)
        (own.places if isinstance(own, Places) else own)[:] = later
        return result

    expected = vm.value_and_grad(lambda x: read(x, np.array(places)))(VECTOR)
    for run in (vm.value_and_grad, vm.recorded):
        equal(run(read_and_change)(VECTOR), expected)
