"""The matrix product, small and large: values, adjoints, and where these lie in memory."""

from functools import partial
from operator import matmul

import numpy as np
import pytest
from comparing import close, equal, refuses
from functions.factors import numbers
from functions.large import RNG, A, B, C
from functions.matrices import value_and_adjoints
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from kinds import BASE, VECTOR, expected_type, summed

import varmat as vm
from varmat.core.variables import Large
from varmat.functions.linalg import matmul as matrix_product
from varmat.functions.linalg.lapack import add_outer
from varmat.testing import expect_ad

# --- values and adjoints against closed forms ---

floats = st.integers(-40, 40).map(lambda x: x / 8)  # products of these are exact


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    shapes=arrays.mutually_broadcastable_shapes(
        signature="(m?,k),(k,n?)->(m?,n?)", max_dims=2, max_side=3
    ),
)
def test_matmul_is_the_sum_of_products(data, shapes):
    p, q = shapes.input_shapes
    a, b = (data.draw(arrays.arrays(float, shape, elements=floats)) for shape in (p, q))
    shape = np.matmul(a, b).shape
    g = data.draw(arrays.arrays(float, shape, elements=floats))
    value, (of_a, of_b) = value_and_adjoints(matmul, a, b, weights=g)
    # Write the product out over the broadcast matrices, and sum back.
    rows = a[None, :] if a.ndim == 1 else a
    columns = b[:, None] if b.ndim == 1 else b
    lead = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows, columns = (np.broadcast_to(x, lead + x.shape[-2:]) for x in (rows, columns))
    full = g.reshape((*lead, rows.shape[-2], columns.shape[-1]))
    product = (rows[..., :, :, None] * columns[..., None, :, :]).sum(-2)
    equal(value, product.reshape(shape))
    equal(of_a, summed_to((full[..., :, None, :] * columns[..., None, :, :]).sum(-1), p))
    of_columns = (rows[..., :, :, None] * full[..., :, None, :]).sum(-3)
    equal(of_b, summed_to(of_columns, q if len(q) > 1 else (*q, 1)).reshape(q))


def summed_to(x, shape):
    padded = (1,) * (x.ndim - len(shape)) + tuple(shape)
    axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, padded, strict=True)) if m == 1 != n)
    return x.sum(axis=axes).reshape(shape)


def test_design_matrix_is_data():
    x, b = numbers(20, 3), numbers(3)
    for design in (x, np.asfortranarray(x), x[::-1, ::-1], x[::2]):
        value, (adj,) = value_and_adjoints(lambda v, design=design: design @ v, b)
        close(value, design @ b, 1e-14)
        close(adj, design.sum(0), 1e-13)


# Steps of a recurrent network. Each step uses the same weights once.
STEPS = {
    "matrix by vector": (lambda w, h: w @ h, (5,)),
    "vector by matrix": (lambda w, h: h @ w, (5,)),
    "matrix by columns": (lambda w, h: w @ h, (5, 2)),
    "matrix by more columns": (lambda w, h: w @ h, (5, 3)),
    "rows by matrix": (lambda w, h: h @ w, (2, 5)),
    "transpose": (lambda w, h: w.T @ h, (5,)),
    "columns by transpose": (lambda w, h: h @ w.T, (2, 5)),
    "another shape": (lambda w, h: w.reshape(-1).reshape(5, 5) @ h, (5,)),
    "every row, backwards": (lambda w, h: w[::-1] @ h, (5,)),
    "rows of a product": (lambda w, h: np.tanh(np.ones((2, 2)) @ h[:2])[:, None] * (h @ w), (5,)),
    "no columns": (lambda w, h: (w @ h[:, :0]).sum() + h, (5, 2)),
    "matrix by stack": (lambda w, h: w @ h, (2, 5, 1)),
    "stack by matrix": (lambda w, h: h @ w, (2, 1, 5)),
}


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
@pytest.mark.parametrize(
    "shapes", [((40, 60), (60, 30)), ((40, 60), (60,)), ((60,), (60, 40)), ((2, 40, 60), (60, 30))]
)
def test_adjoints_of_transposes_lie_as_their_values_do(shapes, form):
    a, b = (numbers(*shape) for shape in shapes)
    w = numbers(*np.matmul(a, b).shape)
    turned = [np.ascontiguousarray(x.T) if x.ndim == 2 else x for x in (a, b)]
    column = [
        x[:, None] if x.ndim == 1 else x
        for x in (b, w if b.ndim > 1 or a.ndim == 1 else w[:, None])
    ]
    rows = [x[None] if a.ndim == 1 else x for x in (a, w)]
    expected = (
        (column[1] if a.ndim > 1 else w[None]) @ column[0].mT,
        (rows[0].mT @ (rows[1] if b.ndim > 1 else w[:, None])),
    )
    expected = expected[0].reshape(a.shape), expected[1].reshape(-1, *b.shape).sum(0)

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


@pytest.mark.parametrize(("n", "turned"), [(4, False), (40, True)])
def test_contributions_to_transposes_are_made_as_these_lie_in_memory(n, turned):
    matrix, transpose, vector = numbers(n, n), numbers(n, n).T, numbers(n)
    for c in (
        matrix_product.left_factor(matrix, transpose, matrix),
        matrix_product.left_factor(vector, transpose, vector),
        matrix_product.right_factor(matrix, matrix, transpose),
        matrix_product.right_factor(vector, vector, transpose),
    ):
        assert c.flags.f_contiguous == turned
        assert c.flags.c_contiguous != turned


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


def test_large_product():
    x, b = numbers(20_000, 2), numbers(2)
    residuals = x @ b - 1.0
    value, (adj,) = value_and_adjoints(lambda v: np.dot(x @ v - 1.0, x @ v - 1.0), b)
    close(value, residuals @ residuals, 1e-13)
    close(adj, 2 * x.T @ residuals, 1e-12)


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


def test_inner_products_of_matrices():
    expect_ad(np.vdot, A[:2, :3], B[:3, :2])
    expect_ad(np.vdot, 2.0, np.array([[3.0]]))
    equal(vm.gradient(lambda a: np.vdot(a, B), B + 1.0), B)
    with pytest.raises(
        vm.ShapeError,
        match=r"vdot: b has shape \(3,\), but must have as many elements as a, of shape \(2, 3\)!",
    ):
        np.vdot(vm.var(np.ones((2, 3))), np.ones(3))


MATRICES = {
    "matrix matrix": (BASE, BASE.T),               "matrix vector": (BASE, VECTOR),
    "vector matrix": (VECTOR, BASE.T),             "vector vector": (VECTOR, VECTOR[::-1]),
    "stack": (np.stack([BASE, BASE + 1]), BASE.T),
}  # fmt: skip


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("left", ["data", "var", "matvar", "dual"])
@pytest.mark.parametrize("right", ["data", "var", "matvar", "dual"])
def test_matmul(name, left, right):
    x, y = MATRICES[name]
    if (
        "matvar" in (left, right) and ("dual" in (left, right) or x.ndim > 2)
    ) or left == right == "data":
        return
    make = {
        "data": lambda v: v, "var": vm.var, "matvar": vm.matvar,
        "dual": lambda v: vm.Dual(v, np.ones_like(v)),
    }  # fmt: skip
    a, b = make[left](x), make[right](y)
    result = a @ b
    close(vm.value(result), x @ y, 1e-14)
    if "dual" in (left, right):
        assert type(result) is vm.Dual
        tangent = (np.ones_like(x) @ y if left == "dual" else 0.0) + (
            x @ np.ones_like(y) if right == "dual" else 0.0
        )
        close(vm.value(result.tan), tangent, 1e-14)
        return
    assert type(result) is expected_type(a, b, np.shape(x @ y))
    np.sum(result).grad()
    g = np.ones(np.shape(x @ y))
    if left != "data":
        expected = np.multiply.outer(g, y) if y.ndim == 1 else g @ np.swapaxes(y, -1, -2)
        close(a.adj, summed(expected, x.shape), 1e-14)
    if right != "data":
        expected = np.swapaxes(x, -1, -2) @ g if x.ndim > 1 else np.multiply.outer(x, g)
        close(b.adj, summed(expected, y.shape), 1e-14)
