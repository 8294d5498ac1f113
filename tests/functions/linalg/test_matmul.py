"""The matrix product, small and large: values, adjoints, and where these lie in memory."""

from functools import partial
from operator import matmul

import numpy as np
import pytest
from comparing import close, equal, refuses
from functions.factors import numbers
from functions.large import RNG, A, B, C
from functions.matrices import value_and_adjoints
from kinds import BASE

import varmat as vm
from varmat.core.variables import Large
from varmat.functions.linalg import matmul as matrix_product
from varmat.functions.linalg.lapack import add_outer

# --- values and adjoints against closed forms ---


# Steps of a recurrent network. Each step uses the same weights once.
STEPS = {
    "matrix by vector": (lambda w, h: w @ h, (5,)), "vector by matrix": (lambda w, h: h @ w, (5,)),
    "matrix by columns": (lambda w, h: w @ h, (5, 2)),
    "matrix by more columns": (lambda w, h: w @ h, (5, 3)),
    "rows by matrix": (lambda w, h: h @ w, (2, 5)), "transpose": (lambda w, h: w.T @ h, (5,)),
    "columns by transpose": (lambda w, h: h @ w.T, (2, 5)),
    "another shape": (lambda w, h: w.reshape(-1).reshape(5, 5) @ h, (5,)),
    "every row, backwards": (lambda w, h: w[::-1] @ h, (5,)),
    "rows of a product": (lambda w, h: np.tanh(np.ones((2, 2)) @ h[:2])[:, None] * (h @ w), (5,)),
    "no columns": (lambda w, h: (w @ h[:, :0]).sum() + h, (5, 2)),
    "matrix by stack": (lambda w, h: w @ h, (2, 5, 1)),
    "stack by matrix": (lambda w, h: h @ w, (2, 1, 5)),
}  # fmt: skip


@pytest.mark.parametrize("form", [vm.value_and_grad, vm.recorded])
@pytest.mark.parametrize("name", STEPS)
def test_weights_used_at_every_step(name, form, monkeypatch):
    step, shape = STEPS[name]
    added, evaluated = [], []
    monkeypatch.setattr(
        matrix_product, "add_outer", lambda *args: (added.append(args), add_outer(*args))
    )
    rng = np.random.default_rng(4)
    weights, start = rng.normal(size=(5, 5)), rng.normal(size=shape)

    def loss(first, second, third, h):
        evaluated.append(h)
        for w in (first, second, third):
            h = np.tanh(step(w, h))
            h = h[0] if h.ndim > len(shape) else h
        return np.sum(h * h)

    value, (*apart, of_start) = form(loss, (0, 1, 2, 3))(weights, weights, weights, start)
    function = form(lambda w, h: loss(w, w, w, h), (0, 1))
    function(weights + 1.0, start)
    added.clear()
    evaluated.clear()
    together, gradient = function(weights, start)
    close(together, value, 1e-14)
    # The oracle uses separate copies of the weights, which get one contribution each. Shared
    # weights accumulate the contributions.
    close(gradient[0], sum(apart), 1e-13, 1e-14)
    close(gradient[1], of_start, 1e-13, 1e-14)
    by_parts = len(shape) < 3 and 2 * start.size < weights.size
    if form is vm.recorded:
        assert not evaluated
        assert all(step.kernel.is_native for step in function.program.steps)
        whole = [
            step
            for step in function.program.steps
            if step.results and step.results[0].shape == weights.shape
        ]
        # All steps make one product. It is rearranged where the weights are used through a view.
        assert not by_parts or len(whole) <= 4
    else:
        assert len(added) == 2 * (by_parts and name != "every row, backwards")


@pytest.mark.parametrize("form", [vm.value_and_grad, vm.recorded])
@pytest.mark.parametrize("shapes", [
    ((40, 60), (60, 30)), ((40, 60), (60,)), ((60,), (60, 40)), ((2, 40, 60), (60, 30)),
    ((40, 60), (2, 60, 30)), ((60,), (2, 60, 30)),
])  # fmt: skip
def test_adjoints_of_transposes_lie_as_their_values_do(shapes, form):
    a, b = (numbers(*shape) for shape in shapes)
    w = numbers(*np.matmul(a, b).shape)
    turned = [np.ascontiguousarray(x.T) if x.ndim == 2 else x for x in (a, b)]
    row, column = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    g = w.reshape(*np.matmul(row, column).shape)
    expected = [c.reshape(-1, *x.shape).sum(0) for c, x in ((g @ column.mT, a), (row.mT @ g, b))]

    def loss(x, y):
        first, second = (z.T if z.ndim == 2 else z for z in (x, y))
        return np.sum((first @ second) * w)

    function = form(loss, (0, 1))
    function(*(x + 1.0 for x in turned))
    value, gradients = function(*turned)
    close(value, np.sum((a @ b) * w), 1e-12)
    for got, x, true in zip(gradients, (a, b), expected, strict=True):
        assert got.flags.c_contiguous
        close(got.T if x.ndim == 2 else got, true, 1e-12, 1e-12)


def test_contributions_of_products_are_added_to_others():
    weights, h = np.eye(8), np.arange(8.0)
    slopes = np.outer(np.cos(h), h)
    once = vm.gradient(lambda w: np.sum(np.sin(w @ h)) + np.sum(np.cos(h @ w)), weights)
    close(once, slopes - np.outer(h, np.sin(h)), 1e-14)
    # The contribution of the sum is one number for all elements, and read-only.
    beside = vm.gradient(
        lambda w: np.sum(np.sin(w @ h)) + np.sum(np.sin(w @ h)) + np.sum(w), weights
    )
    close(beside, 2 * slopes + 1.0, 1e-14)
    # A part has no adjoint of its own.
    of_part = vm.gradient(lambda w: np.sum(np.sin(w[:4] @ h)) + np.sum(np.sin(w[:4] @ h)), weights)
    close(of_part, np.where(np.arange(8)[:, None] < 4, 2 * slopes, 0.0), 1e-14)


def test_contributions_are_not_added_to_an_adjoint_that_is_shared():
    weights, h = np.zeros((200, 200)), np.ones(200)
    shared = vm.gradient(
        lambda p: np.sum(np.sin(p[0] @ h)) + np.sum((p[0] + p[1]) ** 2), (weights, weights + 1.0)
    )
    for mine, exact in zip(shared, (3.0, 2.0), strict=True):
        equal(mine, np.full_like(weights, exact))


def test_infinite_factors_do_not_spread():
    x = np.array([[np.inf, 1.0], [2.0, 3.0]])
    with np.errstate(all="ignore"):
        _, (adj,) = value_and_adjoints(lambda b: (x @ b)[1:], np.array([1.0, 1.0]))
    equal(adj[1], 3.0)


def test_in_place():
    a, b = vm.var(np.eye(2)), vm.var([[1.0, 2.0], [3.0, 4.0]])
    c = np.copy(a)
    d = c
    c @= b
    assert d is c
    np.sum(c * c).grad()
    close(b.adj, 2 * b.val, 1e-7)


def dense(r):
    """Return a sum whose adjoint is an ordinary array."""
    return np.sum(np.ones(r.shape) * r)


# The adjoint of a summed array is one number everywhere. After one more product it is constant
# along an axis.
@pytest.mark.parametrize(("product", "args"), [
    (lambda a, b: a @ b, (A, B)),
    (lambda a, b, c: a @ b @ c, (A, B, C)),
    (lambda a, b, c: a @ (b @ c), (A, B, C)),
    (lambda a, b: a @ b.T, (A, RNG.normal(size=(60, 50)))),
    (lambda a, b: a @ b, (RNG.normal(size=(1, 50)), RNG.normal(size=(50, 2000)))),
    (lambda a, b: a @ b, (RNG.normal(size=(2000, 3)), RNG.normal(size=(3, 1)))),
    (lambda a, b: a @ b, (RNG.normal(size=(2000, 1)), RNG.normal(size=(1, 1)))),
    (lambda a, b: a @ b, (np.empty((40, 0)), np.empty((0, 50)))),
    (lambda a, b: a @ b, (np.empty((0, 3)), np.empty((3, 50)))),
])  # fmt: skip
def test_products_below_a_sum(product, args):
    every = tuple(range(len(args)))
    value, gradients = vm.value_and_grad(lambda *x: np.sum(product(*x)), every)(*args)
    expected, dense_gradients = vm.value_and_grad(lambda *x: dense(product(*x)), every)(*args)
    close(value, expected, 1e-12)
    for found, g in zip(gradients, dense_gradients, strict=True):
        assert found.flags.c_contiguous
        assert found.flags.writeable
        close(found, g, 1e-12, 1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_products_below_a_sum_along_an_axis(axis):
    w = RNG.normal(size=(60, 40)[axis])
    found = vm.value_and_grad(lambda a, b: w @ np.sum(a @ b, axis=axis), (0, 1))(A, B)[1]
    g = np.broadcast_to(w if axis == 0 else w[:, None], (40, 60))
    close(found, (g @ B.T, A.T @ g), 1e-12, 1e-12)


@pytest.mark.parametrize(("p", "q", "subscripts"), [
    ((190, 180), (180, 190), "ij,jk->ik"),
    ((40_000, 2), (2,), "ij,j->i"),
    ((2, 100, 180), (180, 190), "hij,jk->hik"),
    ((1, 180, 190), (2, 190, 100), "...ij,...jk->...ik"),
])  # fmt: skip
def test_products_as_large_as_their_factors(p, q, subscripts):
    a, b = RNG.normal(size=p), RNG.normal(size=q)
    w = RNG.normal(size=(a @ b).shape)
    (value, gradients), (expected, others) = (
        vm.value_and_grad(lambda x, y, f=f: np.vdot(w, f(x, y)), (0, 1))(a, b)
        for f in (matmul, partial(np.einsum, subscripts))
    )
    close(value, expected, 1e-11)
    close(gradients, others, 1e-10, 1e-10)
    with vm.nested():
        assert type(vm.var(a) @ b) is Large
        refuses(vm.ShapeError, "matmul: b has shape", lambda: vm.var(a[..., :-1]) @ b)


def test_one_matrix_twice_and_what_is_not_finite():
    s = RNG.normal(size=(40, 40))
    expected = s.sum(axis=1) + s.sum(axis=0)[:, None]
    close(vm.gradient(lambda a: np.sum(a @ a), s), expected, 1e-12, 1e-12)
    with np.errstate(invalid="ignore"):
        s[3, 5] = np.inf
        g = vm.gradient(lambda a: np.sum(a @ C[:40]), s)
        close(g, np.broadcast_to(C[:40].sum(axis=1), g.shape), 1e-12)


def test_kinds():
    """A varmat among the operands makes the product a varmat, and a dual makes it a dual."""
    x, one = BASE.T, np.ones_like(BASE)
    for a, b, kind in (
        (vm.var(BASE), vm.matvar(x), vm.VarMat), (vm.matvar(BASE), vm.var(x), vm.VarMat),
        (vm.matvar(BASE), x, vm.MatVar), (BASE, vm.matvar(x), vm.MatVar),
        (vm.Dual(BASE, one), vm.var(x), vm.Dual), (vm.var(BASE), vm.Dual(x, one.T), vm.Dual),
        (vm.matvar(BASE[0]), vm.matvar(BASE[1]), vm.Var),
    ):  # fmt: skip
        assert type(a @ b) is kind
    close((vm.Dual(BASE, one) @ vm.Dual(x, x)).tan, one @ x + BASE @ x, 1e-14)
