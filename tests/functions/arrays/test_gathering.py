"""Copies, selections, repetitions, triangles."""

from functools import partial

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, equal, refuses, refuses_as
from functions.movement import expect_moves, gradient

import varmat as vm
from varmat.stan import containers
from varmat.testing import expect_ad, expect_ad_matvar

VECTOR = np.array([3.0, -1.0, 2.0, 5.0])
MATRIX = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4) - 7.5

# Functions that move elements: name -> (function, arguments at which it is tried).
MOVES = {
    "copy": (np.copy, [1.5, VECTOR, MATRIX, np.zeros((0, 2))]),
    "broadcast_to new axes": (lambda x: np.broadcast_to(x, (4, 2, 3)),
                              [2.0, MATRIX, MATRIX[:1], MATRIX[:, :1], MATRIX[0]]),
    "broadcast_to nothing": (lambda x: np.broadcast_to(x, (0, 1)), [2.0, [1.0]]),
    "full_like": (
        lambda x: np.full_like(MATRIX, x) if type(x) is float else np.full_like(vm.var(MATRIX), x),
        [2.0, VECTOR[:3]],
    ),
    "tile": (lambda x: np.tile(x, 3), [2.0, VECTOR, MATRIX]),
    "tile axes": (lambda x: np.tile(x, (2, 1, 3)), [2.0, VECTOR, MATRIX]),
    "tile once": (lambda x: np.tile(x, 1), [2.0, VECTOR, MATRIX]),
    "tile never": (lambda x: np.tile(x, (2, 0)), [2.0, VECTOR, MATRIX]),
    "tile by array": (lambda x: np.tile(x, np.array([2, 3])), [VECTOR, np.zeros((0, 2))]),
    "repeat": (lambda x: np.repeat(x, 3), [2.0, VECTOR, MATRIX]),
    "repeat never": (lambda x: np.repeat(x, 0), [2.0, VECTOR, MATRIX]),
    "repeat rows": (lambda x: np.repeat(x, 2, axis=0), [VECTOR, CUBE, np.zeros((2, 0))]),
    "repeat a scalar": (lambda x: np.repeat(x, 3, axis=0), [2.0]),
    "repeat counts": (lambda x: np.repeat(x, [0, 2], axis=0), [MATRIX, CUBE]),
    "repeat last axis": (lambda x: np.repeat(x, 2, axis=-1), [MATRIX, CUBE]),
    "resize": (lambda x: np.resize(x, (3, 3)), [2.0, VECTOR, MATRIX, np.zeros(0)]),
    "roll": (lambda x: np.roll(x, 1), [2.0, VECTOR, MATRIX]),
    "roll axes": (lambda x: np.roll(x, (1, -2), axis=(0, 1)), [MATRIX, CUBE]),
    "take": (lambda x: np.take(x, [1, 0, -1, 1]), [VECTOR, MATRIX]),
    "take one": (lambda x: np.take(x, 1), [VECTOR, MATRIX]),
    "take axis": (lambda x: np.take(x, [[1, 0], [1, 1]], axis=1), [MATRIX, CUBE]),
    "take one of axis": (lambda x: np.take(x, 1, axis=-1), [VECTOR, MATRIX, CUBE]),
    "take wrap": (lambda x: np.take(x, [5, -7], mode="wrap"), [VECTOR, 1.0]),
    "take method": (lambda x: x.take([0, 2]), [VECTOR]),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.array([[0, 0, 1], [1, 0, 1]]), axis=0),
                        [MATRIX]),
    "take_along_axis flat": (lambda x: np.take_along_axis(x, np.array([0, 5, 5]), axis=None),
                             [MATRIX]),
    "compress": (lambda x: np.compress([True, False, True], x, axis=1), [MATRIX, CUBE]),
    "extract": (lambda x: np.extract(np.asarray(MATRIX) > 0, x), [MATRIX]),
    "delete": (lambda x: np.delete(x, [0, 2]), [VECTOR, MATRIX]),
    "delete slice": (lambda x: np.delete(x, np.s_[::2], axis=1), [MATRIX, CUBE]),
    "tril": (np.tril, [MATRIX, CUBE, MATRIX[:, :0]]),
    "triu": (lambda x: np.triu(x, 1), [MATRIX, CUBE]),
    "tril of vector": (np.tril, [VECTOR]),
    "diag of vector": (lambda x: np.diag(x, -1), [VECTOR, np.zeros(0)]),
    "diagflat": (lambda x: np.diagflat(x, 1), [MATRIX, 2.0]),
    "diag_matrix": (vm.diag_matrix, [VECTOR]),
    "sliding_window_view": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 3), [VECTOR]),
    "sliding_window_view axis": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1),
        [MATRIX, CUBE]),
    "pad": (lambda x: np.pad(x, 2), [2.0, VECTOR, MATRIX, np.zeros(0)]),
    "pad one axis": (lambda x: np.pad(x, ((2,), (0,))), [MATRIX]),
    "pad constants": (partial(np.pad, pad_width=((1, 0), (0, 2)),
                              constant_values=((1.5, 2.5), (3.5, -0.5))), [MATRIX]),
    "pad edge": (lambda x: np.pad(x, (1, 2), mode="edge"), [VECTOR, MATRIX]),
    "pad wrap": (lambda x: np.pad(x, 5, mode="wrap"), [VECTOR, MATRIX]),
    "pad reflect": (lambda x: np.pad(x, 1, mode="reflect"), [VECTOR, MATRIX]),
    "pad symmetric": (lambda x: np.pad(x, 3, mode="symmetric"), [VECTOR, MATRIX]),
    "symmetrize_from_lower_tri": (vm.symmetrize_from_lower_tri, [CUBE[:, :, :3]]),
    "symmetrize_from_upper_tri": (vm.symmetrize_from_upper_tri, [CUBE[:, :, :3]]),
    "rep_vector": (lambda x: containers.rep_vector(x, 3), [2.0]),
    "rep_matrix": (lambda x: containers.rep_matrix(x, 3, 2), [2.0]),
    "rep_matrix columns": (lambda x: containers.rep_matrix(x, 3), [VECTOR]),
    "rep_array": (lambda x: containers.rep_array(x, 2, 3), [2.0, VECTOR, MATRIX]),
}  # fmt: skip
CASES = [
    pytest.param(f, x, id=f"{name}-{i}")
    for name, (f, points) in MOVES.items()
    for i, x in enumerate(points)
]


@pytest.mark.parametrize(("f", "x"), CASES)
def test_moves(f, x):
    expect_moves(f, x)


@pytest.mark.parametrize(
    ("f", "x"), [pytest.param(f, points[-1], id=name) for name, (f, points) in MOVES.items()]
)
def test_all_routes(f, x):
    x = np.asarray(x)
    expect_ad(lambda x: f(x) * f(x), x)
    expect_ad_matvar(f, x)


@pytest.mark.parametrize("move", [
    np.tril, np.triu, lambda x: np.pad(x, 1), np.sort, lambda x: np.tile(x, 2),
    lambda x: np.roll(x, 1),
])  # fmt: skip
def test_infinite_and_nan_elements_stay_where_they_are(move):
    x = np.array([[np.inf, -np.inf, np.nan], [1.0, np.nan, 2.0]])
    with vm.nested():
        y = move(vm.var(x))
        equal(vm.value(y), move(x))
    # Infinite and nan adjoints reach only the elements that they belong to.
    weights = np.ones(y.shape)
    weights[-1, -1] = np.nan
    g = gradient(move, MATRIX, weights)
    assert np.isnan(g).sum() <= 1
    assert np.isfinite(g).sum() >= 5


@pytest.mark.parametrize("copy", [
    np.copy, lambda x: np.tile(x, 1), lambda x: np.repeat(x, 1, axis=0), lambda x: np.pad(x, 0),
])  # fmt: skip
def test_results_that_happen_to_be_copies_are_independent(copy):
    x = vm.var(VECTOR)
    copy(x)[0] = 7.0
    equal(x.val, VECTOR)


@pytest.mark.parametrize("trim", ["fb", "f", "b"])
@pytest.mark.parametrize("x", [[0.0, 0.0, 1.0, 0.0, 2.0, 0.0], [1.0], [3.0, 0.0], [0.0, 0.0]])
def test_trim_zeros(x, trim):
    with vm.nested() as tape:
        equal(vm.value(np.trim_zeros(vm.var(x), trim)), np.trim_zeros(np.array(x), trim))
        assert len(tape) == 0
    expect_ad(lambda x: np.trim_zeros(x, trim) ** 2, np.array([1.0, 2.5, 3.0, 1.0]))


def test_trim_zeros_along_axes():
    x = np.zeros((4, 5))
    x[1:3, 2:4] = 1.0, 2.0
    with vm.nested():
        if np.lib.NumpyVersion(np.__version__) >= "2.2.0":
            equal(vm.value(np.trim_zeros(vm.var(x))), x[1:3, 2:4])
            equal(vm.value(np.trim_zeros(vm.var(x), axis=1)), x[:, 2:4])
        equal(vm.value(np.trim_zeros(vm.var(x)[1])), x[1, 2:4])


@pytest.mark.parametrize("function", [
    np.ones_like,
    lambda x: np.full_like(x, 2.5),
    lambda x: np.full_like(x, 1, shape=2),
    lambda x: np.full_like(x, 1, dtype=int),
    lambda x: np.zeros_like(x, dtype=int, shape=3),
    lambda x: np.empty_like(x, dtype=bool).shape * np.ones(2, int),
])  # fmt: skip
@pytest.mark.parametrize("make", [vm.var, vm.matvar, lambda x: vm.Dual(x, x)])
def test_filled_with_data_is_data(function, make):
    with vm.nested():
        result = function(make(MATRIX))
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, function(MATRIX), strict=True)


@pytest.mark.parametrize("make", [np.zeros_like, np.empty_like])
def test_arrays_to_write_into(make):
    def filled(x):
        path = make(x, shape=(2, 3))
        path[0, 0] = 1.0
        for t in range(1, 6):
            path[t // 3, t % 3] = 0.5 * path[(t - 1) // 3, (t - 1) % 3] ** 2 + x[t % 2]
        both = make(path)
        both[:] = path * x[1]
        both[0] += path[1]
        return both

    expect_ad(filled, np.array([0.3, -0.7]))
    expect_ad_matvar(filled, np.array([0.3, -0.7]))


def test_arrays_to_write_into_are_of_the_kind_of_their_model():
    models = (
        vm.var(MATRIX), vm.matvar(MATRIX), vm.Dual(MATRIX, np.stack([MATRIX, MATRIX])),
        vm.Dual(vm.var(MATRIX), MATRIX),
    )  # fmt: skip
    with vm.nested():
        for x in models:
            for shape in (None, 2, (2, 3), ()):
                made = np.zeros_like(x, shape=shape)
                assert made.shape == np.zeros_like(MATRIX, shape=shape).shape
                assert type(made) is type(x) or (type(x) is vm.VarMat and shape == ())
                assert not np.any(vm.value(made))
        scalar = np.zeros_like(vm.var(2.0))
        assert type(scalar) is vm.Var
        assert scalar.val == 0.0
    refuses(vm.TapeError, "stale", np.zeros_like, scalar)


@pytest.mark.parametrize("settings", [{}, {"indexing": "ij", "sparse": True}])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_meshgrid(n, settings):
    vectors = [np.arange(1.0, 3.0 + i) for i in range(n)]
    expect_ad(lambda *x: np.meshgrid(*x, **settings), *vectors)


def test_meshgrid_and_broadcast_arrays_take_scalars():
    expect_ad(lambda x, y: np.meshgrid(x, y), 2.0, VECTOR)
    expect_ad(lambda *x: np.broadcast_arrays(*x), 2.0, VECTOR, CUBE)
    expect_ad_matvar(lambda *x: np.broadcast_arrays(*x), 2.0, VECTOR, CUBE)
    expect_ad_matvar(lambda *x: np.meshgrid(*x), 2.0, VECTOR)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract])
@pytest.mark.parametrize("index", [
    [0, 0, 2], ([1, 1, 1], [0, 0, 2]), np.s_[1:, ::2], 1, (0, 1), (slice(None), [1, 1]),
], ids=str)  # fmt: skip
def test_added_as_often_as_the_index_says(ufunc, index):
    def program(x, part):
        z = x * x
        ufunc.at(z, index, part(x))
        return z * z

    x = np.arange(1.0, 10.0).reshape(3, 3)
    for part in (lambda x: 0.5 * x[index], lambda x: x[0, 1], lambda x: 1.5):
        expect_ad(partial(program, part=part), x)


@pytest.mark.parametrize("shapes", [
    ((3, 3), (3,)), ((2, 3), (2,)), ((3, 2), (2,)), ((2, 3, 4), (3,)), ((2, 4, 3), ()),
    ((0, 0), (0,)),
])  # fmt: skip
def test_add_diag(shapes):
    m, d = (np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape) for shape in shapes)
    expected = np.array(m)
    places = np.arange(min(m.shape[-2:]))
    expected[..., places, places] += d
    equal(vm.add_diag(m, d), expected)
    expect_ad(vm.add_diag, m, d if d.shape else float(d))


REFUSALS = [
    (lambda x: np.pad(x, 1, mode="mean"), TypeError,
     "mode is 'mean', but must be one of constant, edge, reflect, symmetric, wrap (with"),
    (lambda x: np.pad(x, 1, mode="reflect", reflect_type="odd"), TypeError,
     "mode is 'reflect' with reflect_type='odd', but must be one of constant, edge, reflect,"),
    (lambda x: np.pad(x, 1, constant_values=x[0]), TypeError,
     "constant_values is a variable, but must be plain numbers: join arrays with np.concatenate!"),
    (lambda x: np.take(x, 1, out=np.zeros(())), TypeError,
     "np.take: a variable cannot be written into a plain array (out=, or an in-place"),
    (lambda x: np.meshgrid(x, indexing="xx"), DOMAIN, "indexing is 'xx', but must be 'xy' or"),
    (lambda x: np.take(x, 4), IndexError, "index 4 is out of bounds"),
    (lambda x: np.delete(x, 4), IndexError, "index 4 is out of bounds"),
    (lambda x: np.take_along_axis(x, x, 0), IndexError, "`indices` must be an integer array"),
    (lambda x: np.broadcast_to(x, (3,)), ValueError, "operands could not be broadcast"),
    (lambda x: np.compress([[True]], x), ValueError, "condition must be a 1-d"),
    (vm.symmetrize_from_lower_tri, SHAPE, "a has shape (4,), but must be a square"),
    (lambda x: vm.add_diag(x, 1.0), SHAPE, "m has shape (4,), but must be a matrix"),
    (lambda x: vm.add_diag(MATRIX, x), SHAPE,
     "d has shape (4,), but must be a scalar or have shape (2,)!"),
    (lambda x: containers.rep_vector(x[0], -1), DOMAIN, "n is -1, but must be nonnegative!"),
    (lambda x: containers.rep_array(x, 2, -1), DOMAIN, "counts[1] is -1, but must be nonnegative!"),
    (lambda x: containers.rep_vector(x, 3), SHAPE, "x has shape (4,), but must be a scalar!"),
    (lambda x: containers.rep_matrix(x, 3, 4), SHAPE,
     "x has shape (4,), but must be a scalar where"),
    (lambda x: containers.rep_matrix(x[0], 3), SHAPE, "x has shape (), but must be a vector where"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS)
def test_refusals(call, error, text):
    with vm.nested():
        x = vm.var(VECTOR)
        refuses_as(error, text, call, x)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract])
@pytest.mark.parametrize("given", [2.0, [2.0, 3.0]])
def test_at_in_a_matvar(ufunc, given):
    z, expected = vm.matvar(VECTOR), np.array(VECTOR)
    b = vm.matvar(given) if np.ndim(given) else vm.var(given)
    first = z[0]
    ufunc.at(z, [0, 0], b)
    ufunc.at(expected, [0, 0], given)
    equal(z.val, expected)
    np.sum(z * z).grad()
    sign = ufunc(0.0, 1.0)
    assert first.adj == 2 * expected[0]
    equal(b.adj, (2 if np.ndim(given) == 0 else 1) * sign * first.adj * np.ones(np.shape(given)))


def test_selections_have_the_keywords_of_numpy():
    x, chosen = np.arange(4.0).reshape(2, 2), np.array([True, False])
    v = vm.var(x)
    for function, names in ((np.repeat, ("a", "repeats")), (np.delete, ("arr", "obj"))):
        expected = function(x, 1, axis=1)
        equal(vm.value(function(**dict(zip(names, (v, 1), strict=True)), axis=1)), expected)
    equal(vm.value(np.compress(condition=chosen, a=v, axis=0)), x[:1])
    equal(vm.value(np.extract(condition=x > 1, arr=v)), x[x > 1])
    message = r"np.compress: a variable cannot be written into a plain array \(out="
    refuses(TypeError, message, np.compress, chosen, v, 0, np.zeros((1, 2)))
    refuses(TypeError, "unexpected keyword argument 'nonsense'", np.repeat, v, 2, nonsense=1)


@pytest.mark.parametrize("sparse", [False, True])
def test_grids_are_copies_unless_views_are_wanted(sparse):
    for x in (np.arange(3.0), np.ones(1)):
        v, w = vm.var(x), vm.var(np.ones(1))
        for others in ([], [w], [np.zeros(1)]):
            for grid in np.meshgrid(v, *others, sparse=sparse):
                grid[...] = 9.0
        equal(vm.value(v), x)
        (view,) = np.meshgrid(v, sparse=sparse, copy=False)
        assert np.shares_memory(view, v)


@pytest.mark.parametrize(("mode", "settings"), [
    ("edge", {"constant_values": 7.0}), ("constant", {"reflect_type": "even"}),
])  # fmt: skip
def test_pad_refuses_settings_of_other_modes(mode, settings):
    for x in (VECTOR, vm.var(VECTOR)):
        message = f"unsupported keyword arguments for mode '{mode}'"
        refuses(ValueError, message, np.pad, x, 1, mode, **settings)
