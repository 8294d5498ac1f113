"""Operations that users make: what their rules may return, and the errors for anything else."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from comparing import close, equal, refuses

import varmat as vm
from varmat.core.operation import OPERATIONS

X = np.array([1.0, -2.0, 3.0])
SAVED = {size: np.ones(size) for size in (3, 40_000)}


@pytest.fixture(autouse=True)
def _forget_operations(monkeypatch):
    for name in ("f", "pair"):
        monkeypatch.delitem(OPERATIONS, name, raising=False)


def made(value, reverse):
    """Make an operation of one operand."""

    def f(x):
        return value(x)

    op = vm.operation()(f)
    op.reverse(reverse)
    return op


def gradients(f):
    """Return value and gradient twice: evaluated eagerly, and run from a recording made at another
    point.
    """
    recorded = vm.recorded(f)
    recorded(X + 0.5)
    return [vm.value_and_grad(f)(X), recorded(X)]


def expect_gradients(f, points, expected):
    """Demand the gradients of both arguments, eagerly and recorded, each of them new arrays."""
    for function in (vm.value_and_grad(f, (0, 1)), vm.recorded(f, (0, 1))):
        for _ in range(2):
            given = [x.copy() for x in points]
            for gradient, slopes, x, before in zip(
                function(*given)[1], expected, given, points, strict=True
            ):
                equal(gradient, slopes)
                gradient += 1.0
                equal(x, before)


def test_contributions_may_be_numbers():
    total = made(np.sum, lambda g, r, x: 1.0 * g)
    for value, gradient in gradients(lambda x: total(x) + total(x) * total(2.0 * x)):
        assert value == 10.0
        equal(gradient, np.full(3, 9.0))
    double = made(lambda x: 2.0 * x, lambda g, r, x: 2 * int(g))
    assert vm.gradient(double, 3.0) == 2.0


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_contributions_of_other_types_become_float64(dtype):
    double = made(lambda x: 2.0 * x, lambda g, r, x: (2 * g).astype(dtype))
    for _, gradient in gradients(lambda x: np.sum(0.1 * x) + np.sum(double(x))):
        assert gradient.dtype == np.float64
        equal(gradient, np.full(3, 2.1))


def test_read_only_contributions_in_another_order_become_gradients():
    def reverse(g, r, x):
        c = np.array(2.0 * g, order="F")
        c.flags.writeable = False
        return c

    double = made(lambda x: 2.0 * x, reverse)
    gradient = vm.gradient(
        lambda x: np.sum(double(x) * np.arange(6.0).reshape(2, 3)), np.ones((2, 3))
    )
    equal(gradient, 2.0 * np.arange(6.0).reshape(2, 3))
    assert gradient.flags.c_contiguous
    assert gradient.flags.writeable


def test_values_of_other_types_become_float64():
    """Fractions can be assigned into them, in a recording too."""
    step = made(lambda x: x > 0, lambda g, r, x: 0.0 * g)

    def f(x):
        s = step(x)
        s[0] = 0.5 * x[1]
        return np.sum(s * x)

    for value, gradient in gradients(f):
        assert value == 2.0
        equal(gradient, [-1.0, 0.5, 1.0])


class Pair(NamedTuple):
    total: Any
    doubled: Any


def test_reverse_rules_get_named_tuples():
    @vm.operation()
    def pair(x):
        return Pair(np.sum(x), 2.0 * x)

    @pair.reverse
    def pair_reverse(g, r, x):
        assert r.total == np.sum(x)
        return (0.0 if g.total is None else g.total) + (
            0.0 if g.doubled is None else 2.0 * g.doubled
        )

    for f, slope in (
        (lambda y: y.total, 1.0),
        (lambda y: np.sum(y.doubled), 2.0),
        (lambda y: y.total + np.sum(y.doubled), 3.0),
    ):
        for _, gradient in gradients(lambda x, f=f: f(pair(x))):
            equal(gradient, np.full(3, slope))


@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("returned", [
    lambda c, x, y: (c, c),
    lambda c, x, y: (lambda: c, lambda: c[:]),
    lambda c, x, y: (c.reshape(1, -1)[0], c),
    lambda c, x, y: (x, y),
    lambda c, x, y: (y, y),
    lambda c, x, y: (SAVED[len(c)], c),
])  # fmt: skip
def test_a_rule_may_return_one_array_several_times(returned, size):
    """An array that a rule returns does not become an adjoint that another variable, or the caller,
    also holds.
    """

    @vm.operation()
    def pair(x, y):
        return vm.Saved(np.sum(x) + np.sum(y), saved=SAVED[size])

    @pair.reverse
    def pair_reverse(g, r, x, y, saved):
        return returned(np.full(size, g), x, y)

    ones = np.ones(size)
    for f, expected in (
        (pair, (1.0, 1.0)),
        (lambda x, y: np.sum(y * y) + pair(x, y), (1.0, 3.0)),
        (lambda x, y: np.sum(3.0 * x) + pair(x, y) + np.sum(y * y), (4.0, 3.0)),
    ):
        expect_gradients(f, (ones, ones), [slope * ones for slope in expected])


@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("returned", [lambda g: g, lambda g: g[:], lambda g: g.reshape(1, -1)[0]])
def test_the_adjoint_of_the_result_that_a_rule_returns_is_not_added_to(returned, size):
    shifted = made(lambda x: 1.0 + x, lambda g, r, x: returned(g))
    weights = np.arange(1.0, size + 1.0)
    with vm.nested():
        x = vm.var(np.ones(size))
        before = np.sum(3.0 * x)
        y = shifted(x)
        equal((before + np.sum(y * weights)).grad(y), weights)
        equal(x.adj, weights + 3.0)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (200, 200)])
def test_a_new_array_that_a_rule_returns_becomes_the_adjoint(shape):
    contributions = []

    def reverse(g, r, x):
        contributions.append(2.0 * g)
        return contributions[-1]

    double = made(lambda x: 2.0 * x, reverse)
    with vm.nested():
        x = vm.var(np.ones(shape))
        np.sum(np.exp(double(x))).grad()
        assert x.adj is contributions[0]


@pytest.mark.parametrize("size", [3, 40_000])
def test_one_array_for_operands_that_are_one_variable(size):
    @vm.operation()
    def triple(x, y, z):
        return x + y + z

    @triple.reverse
    def triple_reverse(g, r, x, y, z):
        c = g * 1.0
        return c, lambda: c, c.reshape(size)

    x, y = np.arange(1.0, size + 1.0), np.full(size, 2.0)
    for f, expected in (
        (lambda x, y: np.sum(triple(x, x, x) * y), (3.0 * y, 3.0 * x)),
        (lambda x, y: np.sum(triple(x, x, y)), (np.full(size, 2.0), np.ones(size))),
        (lambda x, y: np.sum(triple(x * 1.0, y, x) * y), (2.0 * y, 2.0 * x + 2.0 * y)),
    ):
        expect_gradients(f, (x, y), expected)


@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("part", [lambda y: y, lambda y: y[:], lambda y: y.reshape(-1)[::-1][::-1]])
def test_an_operand_that_is_returned_may_be_assigned_to(part, size):
    @vm.operation()
    def inner(x, y):
        return np.sum(x * y)

    @inner.reverse
    def inner_reverse(g, r, x, y):
        return y, x

    def f(x, y):
        y = y * 1.0
        y[:2] = x[:2] ** 2
        return inner(x, part(y))

    x, y = np.full(size, 3.0), np.full(size, 2.0)
    first = np.arange(size) < 2
    expect_gradients(f, (x, y), (np.where(first, 27.0, 2.0), np.where(first, 0.0, 3.0)))


@pytest.mark.parametrize(("returned", "refusal"), [
    (lambda g, r, x: None, "f: the contribution to x has dtype object"),
    (lambda g, r, x: (g, g), "f: the reverse rule returns 2 contributions for 1 operands"),
    (lambda g, r, x: np.ones(5), "could not be broadcast"),
])  # fmt: skip
def test_wrong_contributions_are_refused(returned, refusal):
    double = made(lambda x: 2.0 * x, returned)
    with pytest.raises((TypeError, ValueError), match=refusal) as caught:
        vm.gradient(lambda x: np.sum(double(x)), X)
    assert caught.value.__notes__ == ["in the reverse rule of f"]


def test_an_operand_given_twice_is_refused_with_the_signature():
    a = np.eye(2)
    message = r"^quad_form: multiple values for argument 'a'; the signature is quad_form\(a, b\)"
    for x in (a, vm.var(a), vm.matvar(a), vm.Dual(a, a)):
        refuses(TypeError, message, vm.quad_form, x, a, a=a)


def test_a_plain_array_of_variables_is_a_matvar():
    with vm.nested():
        x = np.full(3, 0.5, dtype=object)
        x[0], x[2] = vm.var(1.0), vm.var(3.0)
        for f in (
            vm.softmax,
            vm.inv_logit,
            lambda x: vm.fma(x, 2.0, x),
            lambda x: vm.normal_lpdf(x, 0.0, x),
        ):
            y = f(x)
            close(vm.value(y), f(np.array([1.0, 0.5, 3.0])), 1e-14)
            np.sum(y * X).grad()
            slopes = vm.gradient(lambda x, f=f: np.sum(f(x) * X), np.array([1.0, 0.5, 3.0]))
            close([x[0].adj, x[2].adj], slopes[[0, 2]], 1e-13)
        assert isinstance(vm.softmax(x), vm.MatVar)
        assert isinstance(vm.inv_logit(x), vm.MatVar)


def test_operands_of_several_kinds():
    """The operands are lists of variables, variables beside matvars, and matvars with several
    results.
    """
    double = made(lambda x: 2.0 * x, lambda g, r, x: 2.0 * g)
    with vm.nested():
        x, m, v = vm.var(3.0), vm.matvar(np.eye(2)), vm.var(np.eye(2))
        y = double([x, 1.0])
        equal(y.val, [6.0, 2.0])
        assert np.sum(y * y).grad(x) == 24.0
        assert [type(each) for each in np.linalg.qr(m)] == [vm.MatVar] * 2
        assert isinstance(np.matmul(m, v), vm.VarMat)
        assert isinstance(vm.quad_form(m, v), vm.VarMat)


def test_an_operation_without_rules_says_so():
    @vm.operation()
    def f(x):
        return 2.0 * x

    assert repr(f) == "<varmat operation f(x)>"
    refuses(TypeError, r"^f has no reverse rule, so there is no gradient", vm.gradient, f, 1.0)
    refuses(TypeError, r"^f has no tangent rule, so there is no forward", vm.jvp, f, (1.0,), (1.0,))
