"""Sorted elements."""

import numpy as np
import pytest
from comparing import DOMAIN, equal, refuses_as
from functions.movement import gradient

import varmat as vm
from varmat.functions.arrays.orderings import sort
from varmat.testing import expect_ad, expect_ad_matvar

VECTOR = np.array([3.0, -1.0, 2.0, 5.0])
MATRIX = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


@pytest.mark.parametrize("order", [
    np.sort, vm.sort_asc, vm.sort_desc, lambda x: np.sort(x, axis=0), lambda x: np.partition(x, 1),
    lambda x: np.sort(x, axis=None), lambda x: np.partition(x, 3, axis=None),
    lambda x: np.partition(x, 0, axis=0),
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


REFUSALS = [
    *((f, DOMAIN, "order is 'f', but must be None: variables have no fields!")
      for f in (lambda x: np.sort(x, order="f"), lambda x: np.partition(x, 1, order="f"))),
    (lambda x: np.partition(x, 1, kind="heapsort"), DOMAIN,
     "kind is 'heapsort', but must be 'introselect'!"),
    (lambda x: np.sort(x, axis=1), np.exceptions.AxisError, "axis 1 is out of bounds"),
    (lambda x: vm.sort_asc(x * np.nan), DOMAIN, "x[0] is nan, but must be a number!"),
    (lambda x: vm.sort_desc(x * [1, np.nan, 1, 1]), DOMAIN, "x[1] is nan, but must be a number!"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS)
def test_refusals(call, error, text):
    with vm.nested():
        x = vm.var(VECTOR)
        refuses_as(error, text, call, x)


def test_descending_order():
    v = vm.var([[1.0, np.nan, 3.0, -2.0, 3.0], [0.0, -np.inf, np.inf, -0.5, 1.0]])
    ordered = sort(v, descending=True)  # np.sort has this argument since NumPy 2.5
    expected = [[3.0, 3.0, 1.0, -2.0, np.nan], [np.inf, 1.0, 0.0, -0.5, -np.inf]]
    equal(vm.value(ordered), expected)
    np.sum(ordered[:, 0]).grad()
    assert v.adj.tolist() == [[0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]]


def test_what_is_no_number_is_refused_in_recordings_too():
    recorded = vm.recorded(lambda x: np.sum(vm.sort_asc(x)))
    recorded(VECTOR[:3])
    with pytest.raises(vm.DomainError, match=r"^sort_asc: x\[1\] is nan, but must be a number!"):
        recorded(np.array([1.0, np.nan, 2.0]))
