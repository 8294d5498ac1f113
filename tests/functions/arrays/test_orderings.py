"""Sorted elements."""

import numpy as np
import pytest
from comparing import close, equal, refuses
from functions.movement import gradient
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from recordings import EVERY_RUNNER

import varmat as vm
from varmat.functions.arrays.orderings import sort
from varmat.testing import expect_ad, expect_ad_matvar

VECTOR = np.array([3.0, -1.0, 2.0, 5.0])
MATRIX = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


@given(st.data(), array_shapes(max_dims=3, max_side=4))
@settings(max_examples=40, deadline=None)
def test_sort_and_partition(data, shape):
    values = data.draw(st.permutations(range(int(np.prod(shape)))))
    x = np.array(values, dtype=np.float64).reshape(shape)
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    kth = data.draw(st.integers(0, (x.size if axis is None else shape[axis]) - 1))
    with vm.nested():
        y = vm.var(x)
        ordered, parted = np.sort(y, axis=axis), np.partition(y, kth, axis=axis)
        equal(ordered.val, np.sort(x, axis=axis))
        along = -1 if axis is None else axis
        equal(np.take(parted.val, kth, along), np.take(np.partition(x, kth, axis), kth, along))
    # The weight is then a function of the value, wherever the element stands.
    if axis is None:
        equal(gradient(lambda x: np.sort(x, axis=None), x, np.arange(x.size) ** 2.0), x**2)
    with vm.nested():
        y = vm.var(x)
        (0.5 * np.sum(np.sort(y, axis=axis) ** 2)).grad()
        equal(y.adj, x)
        (0.5 * np.sum(np.partition(y, kth, axis=axis) ** 2)).grad()
        equal(y.adj, x)


@pytest.mark.parametrize("order", [
    np.sort, vm.sort_asc, vm.sort_desc, lambda x: np.sort(x, axis=0), lambda x: np.partition(x, 1),
])  # fmt: skip
def test_orders_on_all_routes(order):
    expect_ad(lambda x: order(x) * order(x), MATRIX)
    expect_ad_matvar(order, MATRIX)


def test_equal_elements_stay_in_their_order():
    x = np.array([2.0, 1.0, 2.0, 1.0])
    equal(gradient(np.sort, x, np.arange(4.0)), [2.0, 0.0, 3.0, 1.0])
    equal(gradient(vm.sort_desc, x, np.arange(4.0)), [1.0, 3.0, 0.0, 2.0])


def test_sort_in_place():
    x = vm.var(VECTOR)
    y = np.copy(x)
    y.sort()
    equal(y.val, np.sort(VECTOR))
    np.sum(y * np.arange(4.0)).grad()
    equal(x.adj, [2.0, 0.0, 1.0, 3.0])


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("special", [None, 0.5, np.nan])
def test_the_order_of_many_elements_is_stable(axis, special):
    """NumPy's algorithms order equal elements and nan differently. Ours always agrees with the
    stable one.
    """
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 50))
    if special is not None:
        x[rng.random(x.shape) < 0.3] = special
    weights = rng.normal(size=np.sort(x, axis).shape)
    order = np.argsort(x, axis, kind="stable")
    expected = np.zeros_like(weights)
    np.put_along_axis(expected, order, weights, axis if axis is not None else 0)
    equal(gradient(lambda x: np.sort(x, axis=axis), x, weights), expected.reshape(x.shape))


REFUSALS = {
    "sort axis": (lambda x: np.sort(x, axis=1), np.exceptions.AxisError, "out of bounds"),
    "sort_asc nan": (lambda x: vm.sort_asc(x * np.nan), vm.DomainError,
        r"^sort_asc: x\[0\] is nan, but must be a number!"),
    "sort_desc nan": (lambda x: vm.sort_desc(x * [1, np.nan, 1, 1]), vm.DomainError,
        r"^sort_desc: x\[1\] is nan, but must be a number!"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(call, error, text):
    with vm.nested():
        x = vm.var(VECTOR)
        refuses(error, text, call, x)


def test_fields_and_other_algorithms_are_refused():
    x = vm.var([3.0, 1.0, 2.0])
    for call, error, message in [
        (lambda: np.sort(x, order="f"), vm.DomainError,
         r"^sort: order is 'f', but must be None: variables have no fields!"),
        (lambda: np.partition(x, 1, order="f"), vm.DomainError,
         r"^partition: order is 'f', but must be None: variables have no fields!"),
        (lambda: np.partition(x, 1, kind="heapsort"), vm.DomainError,
         r"^partition: kind is 'heapsort', but must be 'introselect'!"),
    ]:  # fmt: skip
        refuses(error, message, call)


def test_descending_order():
    v = vm.var([[1.0, np.nan, 3.0, -2.0, 3.0], [0.0, -np.inf, np.inf, -0.5, 1.0]])
    ordered = sort(v, descending=True)  # np.sort has this argument since NumPy 2.5
    expected = [[3.0, 3.0, 1.0, -2.0, np.nan], [np.inf, 1.0, 0.0, -0.5, -np.inf]]
    equal(vm.value(ordered), expected)
    np.sum(ordered[:, 0]).grad()
    assert v.adj.tolist() == [[0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]]


WEIGHTS = np.array([1.0, 10.0, 100.0])
RECORDED = {
    "sort": lambda x: np.sum(WEIGHTS * np.sort(x) ** 3),
    "sort_desc": lambda x: np.sum(WEIGHTS * vm.sort_desc(x) ** 3),
    "sort_asc": lambda x: np.sum(WEIGHTS * vm.sort_asc(x) ** 3),
    "partition": lambda x: np.sum(WEIGHTS * np.partition(x, 1) ** 3),
    "rows": lambda x: np.sum(np.sort(np.outer([1.0, -1.0], x), axis=1) ** 3 * WEIGHTS),
    "in place": lambda x: np.sum(WEIGHTS * sorted_in_place(x) ** 3),
}


def sorted_in_place(x):
    y = x * 2.0
    y.sort(kind="stable")
    return y


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize("name", RECORDED)
def test_recordings_sort_anew_at_every_point(name, runner):
    f = RECORDED[name]
    recorded, hessian = vm.recorded(f, runner=runner), vm.recorded(vm.hessian(f), runner=runner)
    for x in map(np.array, ([1.0, 2.0, 3.0], [3.0, 1.5, 2.2], [2.0, 3.3, -1.0])):
        expected = (*vm.value_and_grad(f)(x), *vm.hessian(f)(x))
        close((*recorded(x), *hessian(x)), expected, 1e-13, 1e-13)


def test_what_is_no_number_is_refused_in_recordings_too():
    recorded = vm.recorded(lambda x: np.sum(vm.sort_asc(x)))
    recorded(WEIGHTS)
    with pytest.raises(vm.DomainError, match=r"^sort_asc: x\[1\] is nan, but must be a number!"):
        recorded(np.array([1.0, np.nan, 2.0]))
