"""Programs: what is written once or not at all, the names in them, and where they differ from what the function says, or could."""

from __future__ import annotations

import re

import numpy as np
import pytest
from recordings import LARGE, X, Y, agree, vectors

import varmat as vm
from varmat.programs.program import RecordingError


def test_a_factor_that_is_taken_out_of_a_sum_does_not_make_it_overflow():
    """Nor does it give a value where there is none."""
    for f, x in (
        (lambda x: np.sum(x * 1e-10), [1e308, 1e308]), (lambda x: np.sum(np.cosh(x[0]) * x), [-np.inf, 0.3]),
        (lambda x: np.sum(x * 1e10), [1e300, 1e300]),
    ):  # fmt: skip
        with np.errstate(all="ignore"):
            expected = vm.value_and_grad(f)(np.array(x))
            value, gradient = vm.recorded(f)(np.array(x))
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_array_equal(gradient, expected[1])


def test_zeros_keep_their_signs():
    def f(x):
        return np.sum(np.arctan2(x * 0.0, -1.0)) * 1e3 + np.sum(np.arctan2(x * -0.0, -1.0))

    x = np.array([1.0, 2.0])
    assert vm.recorded(f)(x)[0] == vm.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-15)


def test_the_outcome_of_a_comparison_is_no_key():
    with pytest.raises(RecordingError, match="looks at the value"):
        vm.recorded(lambda x: {True: x[0], False: x[1]}[x[0] > 0])(np.array([1.0, 2.0]))


def test_views_of_views_of_any_depth():
    """As a loop over ``x = x[1:]`` makes them."""
    def neighbours(x):
        total = 0.0
        while len(x) > 1:
            total = total + x[0] * x[1]
            x = x[1:]
        return total

    def turned(x):
        for _ in range(2001):
            x = x.T
        return np.sum(x * np.array([[1.0], [2.0]]))

    x = np.linspace(0.0, 1.0, 1500)
    expected = np.concatenate([x[1:], [0.0]]) + np.concatenate([[0.0], x[:-1]])
    np.testing.assert_allclose(vm.gradient(neighbours, x), expected, rtol=1e-15)
    for gradient in (vm.gradient(turned, np.ones((1, 2))), vm.recorded(turned)(np.ones((1, 2)))[1]):
        assert gradient.tolist() == [[1.0, 2.0]]


def test_what_is_used_more_than_once_is_computed_once():
    g = agree(lambda x, y: np.sum(np.log1p(x * y * y)), (Y**2, Y), (Y**2, 2.0 * Y), argnums=(0, 1))
    assert g.source.count("/") == 1


def test_products_are_the_calls_that_suit_them():
    for f, calls in (
        (lambda x: np.sum(x * Y) + (X @ x[:3]) @ Y + x @ x, ("total(", "matmul_")),
        (lambda x: np.sum(np.outer(x, x) * np.outer(Y, x)), ("whole(",)),
        (lambda x: np.sum(np.exp(x[:2])) + np.sum(np.sin(x[2:])), ("zeros(",)),
    ):
        g = agree(f, *vectors(5))
        assert not any(call in g.source for call in calls), g.source


def test_divisions_by_zero():
    with np.errstate(all="ignore"):
        agree(lambda x: np.sum(x / 0.0), (Y,), (Y**2,), elsewhere=2)


def test_the_text_names_what_it_calls():
    def f(x):
        return vm.normal_lpdf(x[[0, 0]], 0.0, 1.0) + np.sum(np.linalg.inv(np.outer(x, x) + np.eye(2)))

    g = vm.recorded(f)
    g(np.ones(2))
    for name in ("normal_lpdf", "inv", "inv_reverse", "add_at"):
        assert re.search(rf"\b{name}_\d+\(", g.source)
    unnamed = vm.operation()(lambda x: np.cos(x))
    unnamed.reverse(lambda g, r, x: -np.sin(x) * g)
    assert vm.recorded(lambda x: unnamed(x))(0.0) == (1.0, 0.0)


@pytest.mark.parametrize("before", range(6))
def test_names_in_the_text_are_no_names_of_functions(before):
    """Data may not be called after a Bessel function, nor a sum after the operation of that name, whatever came before."""
    rows = np.arange(1.0, 3.0)[:, None]

    def f(x):
        y = x
        for _ in range(before):
            y = np.sum(np.tanh(y) * rows, axis=0)
        total = np.sum(vm.k1(1.5 * x * Y[:3] ** 2 + 2.0)) + np.sum(vm.i1(x[np.array([0, 2])])) + vm.k0(x[1])
        for i in range(1, 12):
            total = total + np.sum(np.sin(i * y))
        return total + np.sum(np.sum(y * rows, axis=1) ** 3)

    agree(f, (np.array([0.3, 0.5, 0.7]),), (np.array([0.6, 0.2, 0.4]),))


def test_the_same_part_taken_again_is_one_view():
    def steps(x):
        h = x[0]
        for _ in range(5):
            h = np.tanh(h @ x.T + x[1][2:] @ x.T[2:])
        return np.sum(h)

    rng = np.random.default_rng(5)
    source = agree(steps, *((rng.normal(size=(4, 4)),) for _ in range(3))).source
    assert len(re.findall(r"= f\d+\(v0\)", source)) == 1
    assert source.count("sum_of_products") == 2

    def assigned(x):
        y = x * 1.5
        first = y.T[0] * y[0]
        y[0] = first
        second = y.T[0] * y[0]
        part = y.T
        part[0] = second
        return np.sum(first * y[0]) + np.sum(y.T[0] * second) + np.sum(part[0] * x.T[1])

    agree(assigned, *((rng.normal(size=(4, 4)),) for _ in range(3)))


@pytest.mark.parametrize("n", [12, LARGE.size])
def test_negative_adjoints_of_parts_are_subtracted(n):
    places = np.array([3, 1, 3])

    def f(x):
        steps = x[1:] - x[:-1]
        backwards = 1.0 - x[::-1]
        gathered = -x[places] + 2.0
        return np.sum(steps**2) + np.sum(np.sin(backwards)) + np.sum(gathered**3) - x[2] - np.sum(x[4:6])

    rng = np.random.default_rng(7)
    source = agree(f, *((rng.normal(size=n),) for _ in range(3)), rtol=1e-11).source
    assert " -= " in source
    whole = agree(lambda x: np.sum(np.exp(-x[:6])) + np.sum(-x[6:]), *((rng.normal(size=12),) for _ in range(3))).source
    assert " -= " not in whole


def test_adjoints_in_another_shape_are_not_copied():
    weights = np.arange(1.0, 13.0)

    def f(x):
        return np.sum((np.sin(x).reshape(-1) + 1.0) * weights) + np.sum(np.cos(x).ravel())

    rng = np.random.default_rng(6)
    source = agree(f, *((rng.normal(size=(3, 4)),) for _ in range(3))).source
    assert "empty" not in source
    assert "zeros" not in source
