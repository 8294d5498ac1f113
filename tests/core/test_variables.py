"""Variables: making them, what they refuse, and the promise that arrays taken from them never
change.
"""

import gc
import weakref

import numpy as np
import pytest
from comparing import close, equal
from hypothesis import given, settings
from hypothesis import strategies as st

import varmat as vm
from core.tapes import fresh_tape  # noqa: F401 - a fixture
from varmat.core.arena import LARGE
from varmat.core.operation import OPERATIONS
from varmat.core.tape import current_tape


@pytest.mark.parametrize("x", [1, 1.5, True, np.float32(0.5), np.int64(3), np.array(2.0)])
def test_scalars_become_var(x):
    v = vm.var(x)
    assert type(v) is vm.Var
    assert type(v.val) is float
    assert v.val == float(x)


@pytest.mark.parametrize("x", [
    *([1, 2], (1.0, 2.0), np.ones((2, 3), np.float32), np.ones((2, 3), order="F")),
    *(np.arange(6)[::-2], np.empty((0, 3)), np.ones((1, 1))),
])  # fmt: skip
def test_arrays_become_varmat(x):
    v = vm.var(x)
    assert isinstance(v, vm.VarMat)
    assert v._val.dtype == np.float64
    assert v._val.flags.c_contiguous
    equal(v.val, x)


@pytest.mark.parametrize("n", [3, LARGE + 1])
def test_var_copies(n):
    x = np.ones(n)
    v = vm.var(x)
    x[:] = 5.0
    assert np.all(v.val == 1.0)


def test_value():
    x = vm.var([1.0, 2.0])
    y = vm.value({"a": [x, 1.0], "b": (vm.var(3.0), "text")})
    assert (y["a"][0].tolist(), y["b"]) == ([1.0, 2.0], (3.0, "text"))
    for copy in (vm.value(x), vm.value([{"a": (x,)}])[0]["a"][0]):
        copy[:] = 9.0
    assert x.val.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        x.val[0] = 3.0
    assert vm.value(vm.Dual(1.0, 2.0)) == 1.0
    assert vm.value(vm.matvar([1.0])).tolist() == [1.0]
    # A named tuple stays a named tuple.
    assert vm.value(np.linalg.eigh(vm.var(np.diag([2.0, 3.0])))).eigenvalues.tolist() == [2.0, 3.0]


def test_assignment_into_what_a_value_function_holds_read_only():
    held = np.array([1.0, 2.0])
    held.flags.writeable = False

    @vm.operation()
    def constant_shift(x):
        return held

    constant_shift.reverse(lambda g, r, x: g)
    x = vm.var([5.0, 6.0])
    try:
        y = constant_shift(x)
        y[0] = x[1]
        np.sum(y * y).grad()
        assert (x.adj.tolist(), held.tolist()) == ([0.0, 16.0], [1.0, 2.0])
    finally:
        del OPERATIONS["constant_shift"]


def test_adj_can_be_written_to():
    x = vm.var([1.0, 2.0, 3.0])
    x.adj += 1.0
    x.adj[0] = 5.0
    x[1:].adj += 1.0
    assert x.adj.tolist() == [5.0, 2.0, 2.0]
    x.adj = 0.5
    assert x.adj.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("n", [4, LARGE + 4])
def test_views_share_values_and_adjoints_and_record_nothing(n):
    x = vm.var(np.arange(2.0 * n).reshape(2, n))
    views = [x[0], x[:, 1:], x.T, x.reshape(-1), x[::-1, ::2].T[1:], x.ravel()[3:].reshape(-1, 1)]
    views += [x[None], x[..., 0:2], np.squeeze(x[0:1])]
    assert len(current_tape()) == 0
    for view in views:
        assert np.shares_memory(view._val, x._val)
    views[0].adj += 1.0
    views[2].adj += 1.0
    assert np.all(x.adj[0] == 2.0)
    assert np.all(x.adj[1] == 1.0)


@pytest.mark.parametrize("n", [4, LARGE + 4])
def test_results_lie_in_row_major_order_whatever_their_operands_do(n):
    x, a = vm.var(np.ones((2, n))), np.ones((2, n)).T
    for y in (
        np.exp(x.T), x.T * 2.0, a - x.T, x.T * x[:, ::-1].T, vm.fma(x.T, a, 1.0),
        np.clip(x.T, 0.0, a), np.sort(x.T, axis=0),
    ):  # fmt: skip
        assert np.shares_memory(y.reshape(-1)._val, y._val)
        before = np.sum(np.reshape(y, -1)[:1] * 3.0)
        y.reshape(-1)[0] = 5.0
        assert y.val[0, 0] == 5.0
        (before + y[0, 0]).grad()
        assert np.sum(x.adj != 0.0) <= 2


@pytest.mark.parametrize("n", [4, LARGE + 4])
def test_contributions_through_views_add_up(n):
    x = vm.var(np.ones((2, n)))
    s = np.sum(x[0] * 2.0) + np.sum(x.T[1:] * 3.0) + np.sum(x) + np.sum(x[0][1:][1:] * x[1, 2:])
    s.grad()
    expected = np.ones((2, n))
    expected[0] += 2.0
    expected[:, 1:] += 3.0
    expected[:, 2:] += 1.0
    equal(x.adj, expected)


# Views of all elements of a three-dimensional array, in another shape or order.
WHOLE = {
    "reshape": lambda x: x.reshape(-1),             "transpose": np.transpose,
    "transpose of a reshape": lambda x: x.reshape(2, -1).T,
    "reshape of a part that is all": lambda x: x[:, ::-1][:, ::-1].reshape(-1, 2),
    "backwards": lambda x: x[::-1],                 "axes": lambda x: np.moveaxis(x[None], 1, -1),
    "the array itself": lambda x: x,
}  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4, LARGE // 4), (1, 1, 2), (2, 0, 4)])
@pytest.mark.parametrize("first", WHOLE)
def test_first_contributions_through_views_of_all_elements(first, shape):
    places, rng = np.arange(float(np.prod(shape))).reshape(shape), np.random.default_rng(1)
    for k, second in enumerate(WHOLE):
        hows = [WHOLE[first], WHOLE[second]]
        weights = [rng.normal(size=how(places).shape) for how in hows]
        expected = np.zeros(places.size)
        for how, w in zip(hows, weights, strict=True):
            expected[how(places).ravel().astype(int)] += w.ravel()

        def loss(x, hows=hows, weights=weights):
            y = np.sin(x)
            parts = [np.sum(how(y) * w) for how, w in zip(hows, weights, strict=True)]
            alone = np.sum(hows[0](x) + 1.0)  # shares its adjoint with its operand
            return parts[0] + parts[1] + alone

        slope = np.cos(places) * expected.reshape(shape) + 1.0
        # Recordings of all pairs, and machine code of each view once.
        native = k == list(WHOLE).index(first) and shape == (2, 3, 4)
        runner = "auto" if native else "numpy"
        for found in (vm.gradient(loss, places), vm.recorded(loss, runner=runner)(places)[1]):
            np.testing.assert_allclose(found, slope, rtol=1e-12, atol=1e-13, err_msg=second)


# Functions of a square matrix. If the matrix is large, its adjoint is shared and has another memory
# layout than the values.
SHARED = {
    "sum along rows": lambda x, w: np.sum(np.sum(x, axis=1) * w),
    "sum along columns": lambda x, w: np.sum(np.sum(x, axis=0) * w),
    "frame": lambda x, w: np.sum(np.pad(x, 1)[1:-1, 1:-1] * w),
    "transpose": lambda x, w: np.sum(np.copy(x.T) * w),
    "nothing": lambda x, w: 0.0,
}
PARTS = {
    "part of a reshape": lambda x: x.reshape(-1).reshape(x.shape)[1:3],
    "part of a row of all": lambda x: x.reshape(-1)[3:7],
    "part of a transpose": lambda x: x.T[1:][2:, :5],
    "reshape of a part": lambda x: x[2:].reshape(-1)[1:9],
    "gathered from a reshape": lambda x: x.reshape(-1).reshape(x.shape)[np.array([1, 1, 2])],
    "element of a reshape": lambda x: x.reshape(-1).reshape(x.shape)[1, 2],
    "all": lambda x: x.reshape(-1).reshape(x.shape).T,
}


@pytest.mark.parametrize("n", [8, 200])
@pytest.mark.parametrize("shared", SHARED)
@pytest.mark.parametrize("part", PARTS)
def test_contributions_to_parts_of_variables_with_a_shared_adjoint(part, shared, n):
    """Every contribution reaches the adjoint itself and not a copy of it."""
    x, w = np.arange(float(n * n)).reshape(n, n), np.arange(n)
    places = PARTS[part](x).astype(int)
    expected = np.bincount(places.ravel(), minlength=n * n).reshape(n, n) * 2.0
    if shared != "nothing":
        expected += {"sum along rows": w[:, None], "transpose": w[:, None]}.get(shared, w)
    for form in (vm.gradient, lambda f, x: vm.recorded(f)(x)[1]):
        equal(form(lambda x: np.sum(PARTS[part](x) * 2.0) + SHARED[shared](x, w), x), expected)


DATA = np.linspace(0.5, 1.5, LARGE + 10)
# Each case is an elementwise expression of `x` and its gradient. The operands overlap in memory.
OVERLAPPING = {
    "later part first": (
        lambda x: x[1:] * x[:-1], lambda x: shifted(x[:-1], 1) + shifted(x[1:], 0)),
    "earlier part first": (
        lambda x: x[:-3] * x[3:], lambda x: shifted(x[:-3], 3) + shifted(x[3:], 0)),
    "a part and others": (
        lambda x: vm.fma(x[:-2], 3.0 * x[1:-1], x[2:]), lambda x: shifted(1.0, 2) + products(x)),
    "added to a product of itself": (lambda x: vm.fma(x, DATA, x), lambda x: DATA + 1.0),
    "the same mirrored": (lambda x: vm.fma(DATA, x, x), lambda x: DATA + 1.0),
    "of itself with itself": (lambda x: vm.fma(x, x, x), lambda x: 2.0 * x + 1.0),
    "a part alone": (lambda x: np.exp(x[2:]), lambda x: shifted(np.exp(x[2:]), 2)),
    "a part with data": (lambda x: x[2:] / DATA[2:], lambda x: shifted(1.0 / DATA[2:], 2)),
    "all of it as a part": (lambda x: np.arctan2(x, x.reshape(-1)), lambda x: 0.0 * x),
}  # fmt: skip


def shifted(values, start):
    """Return an array with the values from index `start` on and zeros elsewhere."""
    result = np.zeros(DATA.size)
    result[start : start + (np.size(values) if np.ndim(values) else DATA.size)] = values
    return result


def products(x):
    return shifted(3.0 * x[1:-1], 0) + shifted(3.0 * x[:-2], 1)


@pytest.mark.parametrize("leaf", [True, False])
@pytest.mark.parametrize(("f", "expected"), OVERLAPPING.values(), ids=OVERLAPPING)
def test_large_operands_that_overlap(f, expected, leaf):
    """Writing one operand's contribution does not overwrite another operand's
    contribution.
    """
    x = np.linspace(2.0, 3.0, DATA.size)
    g = vm.gradient(lambda x: np.sum(f(x if leaf else x * 1.0)), x)
    close(g, expected(x), 1e-14, 1e-15)


@pytest.mark.parametrize("n", [10, LARGE + 10])
def test_a_gradient_of_parts_is_freed_at_once(n):
    gc.disable()
    try:
        left = weakref.ref(
            vm.gradient(lambda x: np.sum(x[1:] * 2.0) + np.sum(x.reshape(2, -1).T), np.ones(n))
        )
        assert left() is None
    finally:
        gc.enable()


# This is the promise: an array that the user has taken never changes, whatever is recorded,
# differentiated or recovered later.

ACTIONS = {
    "record": lambda x: np.exp(x * 0.5) + x,
    "overwrite": lambda x: x.__setitem__(slice(None), -3.0),
    "overwrite part": lambda x: x[1:].__setitem__(0, x[0]),
    "add in place": lambda x: x.__iadd__(1.0),
    "sweep": lambda x: np.sum(x * x).grad(),
    "sweep through a view": lambda x: np.sum(x[1:] * x[:-1]).grad(),
    "sweep twice": lambda x: [y.grad() for y in [np.sum(x)] * 2],
    "zero": lambda x: vm.set_zero_all_adjoints(),
    "gradient": lambda x: vm.gradient(lambda z: np.sum(np.sin(z) * z), np.full(x.size, 0.3)),
    "recover": lambda x: vm.recover_memory(),
    "nested": lambda x: nested_sweep(x.size),
}


def nested_sweep(n):
    with vm.nested():
        z = vm.var(np.full(n, 4.0))
        np.sum(z * z + np.cos(z)).grad()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(ACTIONS)), min_size=1, max_size=12),
    st.sampled_from([5, LARGE + 3]),
)
def test_arrays_that_were_taken_never_change(actions, n):
    vm.recover_memory()
    taken = []

    def take(array):
        taken.append((array, np.array(array)))

    x = vm.var(np.linspace(0.1, 1.0, n))
    for action in actions:
        np.sum(x * np.sin(x)).grad()
        y = x * 2.0
        for array in (x.val, x.adj, x[1:].val, x[1:].adj, x.adj[::2], y.val, vm.value(x)):
            take(array)
        take(vm.gradient(lambda z: np.sum(z * z), x.val))
        result = ACTIONS[action](x)
        if isinstance(result, np.ndarray):
            take(result)
        if action == "recover":
            x = vm.var(np.linspace(0.1, 1.0, n))
    vm.recover_memory()
    nested_sweep(n)
    for array, copy in taken:
        equal(array, copy)


@pytest.mark.parametrize("f", [
    np.exp, np.log1p, vm.inv_logit, vm.lgamma, lambda v: np.float64(2.0) * v, lambda v: v**2.5,
     lambda v: np.arctan2(v, 2.0),
    lambda v: np.where(v > 0, v, 1.0), lambda v: np.sum(v), lambda v: vm.normal_lpdf(v, 0.0, 1.0),
     lambda v: vm.fma(v, v, v),
])  # fmt: skip
def test_values_and_adjoints_of_scalars_are_floats(f):
    v = vm.var(1.5)
    y = f(v)
    assert type(y.val) is float
    y.grad()
    assert type(v.adj) is float


def test_adjoints_lie_as_the_values_do():
    """The first contribution is no exception, even if its rule returns other strides."""
    x = vm.var(np.arange(6.0).reshape(2, 3))
    np.sum(np.reshape(x.T @ np.eye(2), -1) * np.arange(6.0)).grad()
    assert x.adj.flags.c_contiguous
    equal(x.adj, [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]])

    @vm.operation()
    def f(x):
        return np.sum(x)

    f.reverse(lambda g, r, x: np.full(x.shape, g, order="F"))
    try:
        f(x).grad()
    finally:
        del OPERATIONS["f"]
    assert x.adj.flags.c_contiguous
