"""Products of vectors, matrices and stacks, small and large."""

import json
from functools import partial
from operator import matmul
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from functions.factors import both, numbers
from functions.large import RNG, A, B, C
from functions.matrices import value_and_adjoints
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from kinds import BASE, VECTOR, expected_type, summed
from numpy.testing import assert_allclose, assert_array_equal

import varmat as vm
from varmat.core.variables import Large
from varmat.functions.linalg import products
from varmat.functions.linalg.lapack import add_outer
from varmat.testing import expect_ad

# --- all routes agree ---

MATMUL = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((1, 3), (3, 1)),
    ((2, 2, 3), (3, 4)),
    ((2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((2, 3), (2, 1, 3, 2)),
    ((2, 2, 3), (2, 1, 3, 2)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((0,), (0,)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
    ((2, 3), (3, 0)),
    ((2, 0, 3), (3, 2)),
    ((0, 2, 3), (3, 2)),
    ((2, 3, 0), (0,)),
]
SCALARS = [((), ()), ((), (2,)), ((2, 3), ())]
VECTORS = [((3,), (3,)), ((2, 3), (3,))]

# Function -> shapes of its operands.
SHAPES = {
    matmul: MATMUL,
    np.linalg.matmul: MATMUL[3:5],
    vm.multiply: [*MATMUL[:5], *SCALARS],
    np.dot: [
        *SCALARS,
        *VECTORS,
        ((2, 3), (3, 2)),
        ((2, 2, 3), (3, 2)),
        ((2, 3), (2, 3, 2)),
        ((3,), (2, 3, 2)),
        ((2, 2, 3), (3,)),
    ],
    np.inner: [*SCALARS, *VECTORS, ((3,), (2, 3)), ((2, 2, 3), (4, 3)), ((2, 3), (2, 2, 3))],
    np.vdot: [((), ()), ((3,), (3,)), ((2, 3), (3, 2)), ((2, 3), (6,))],
    np.outer: [*SCALARS, ((3,), (2,)), ((2, 3), (2, 2)), ((0,), (2,))],
    np.linalg.outer: [((3,), (2,))],
    np.kron: [*SCALARS, ((3,), (2,)), ((2, 3), (2, 2)), ((2, 2, 1), (3,)), ((0, 2), (2, 2))],
    np.cross: [((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3))],
    np.linalg.cross: [((2, 3), (2, 3))],
    np.linalg.vecdot: [((2, 3), (3,)), ((3,), (3,))],
    vm.dot_product: [((3,), (3,)), ((0,), (0,))],
    np.convolve: [((m,), (n,)) for m, n in ((1, 1), (1, 3), (4, 3), (5, 4), (2, 5))],
    np.correlate: [((m,), (n,)) for m, n in ((1, 1), (1, 3), (4, 3), (5, 4), (2, 5))],
}
for _name, _shapes in {
    "vecdot": [((2, 3), (3,)), ((3,), (3,))],
    "matvec": [((2, 3), (3,)), ((2, 2, 3), (2, 3))],
    "vecmat": [((2,), (2, 3)), ((2, 2), (2, 2, 3))],
}.items():
    if hasattr(np, _name):
        SHAPES[getattr(np, _name)] = _shapes

PAIRS = [
    pytest.param(f, p, q, id=f"{f.__name__} {p} {q}")
    for f, shapes in SHAPES.items()
    for p, q in shapes
]


@pytest.mark.parametrize(("f", "p", "q"), PAIRS)
def test_pairs(f, p, q):
    both(f, p, q)


CASES = {
    "tensordot 1": (lambda a, b: np.tensordot(a, b, 1), (2, 3), (3, 2)),
    "tensordot 2, a scalar": (np.tensordot, (2, 3), (2, 3)),
    "tensordot 0": (lambda a, b: np.tensordot(a, b, 0), (2, 3), (2,)),
    "tensordot of scalars": (lambda a, b: np.tensordot(a, b, 0), (), (2,)),
    "tensordot, crossed axes": (
        lambda a, b: np.tensordot(a, b, ([1, 2], [1, 0])),
        (2, 3, 4),
        (4, 3, 2),
    ),
    "tensordot, inner axis": (lambda a, b: np.tensordot(a, b, (1, 0)), (2, 3, 4), (3, 2)),
    "tensordot, negative axes": (
        lambda a, b: np.linalg.tensordot(a, b, axes=([-1, 0], [-1, 0])),
        (2, 3),
        (2, 3),
    ),
    "trace": (np.trace, (3, 4)),
    "trace, offset": (lambda a: np.trace(a, -1) + a.trace(2), (3, 4)),
    "trace, axes": (lambda a: np.trace(a, 1, 1, 2), (2, 3, 3)),
    "linalg.trace": (lambda a: np.linalg.trace(a, offset=1), (2, 3, 3)),
    "cross, axes": (lambda a, b: np.cross(a, b, axisa=0, axisb=1, axisc=0), (3, 2), (2, 3)),
    "cross, axis": (lambda a, b: np.linalg.cross(a, b, axis=0), (3, 2), (3, 2)),
    "vecdot, axis": (lambda a, b: np.linalg.vecdot(a, b, axis=0), (3, 2), (3, 2)),
    "vecdot, ufunc": (lambda a, b: np.vecdot(a, b, axis=0, keepdims=True), (3, 2), (3, 2)),
    "multi_dot": (lambda *a: np.linalg.multi_dot(a), (2, 3), (3, 4), (4, 2)),
    "multi_dot of vectors": (lambda *a: np.linalg.multi_dot(a), (3,), (3, 4), (4,)),
    "multi_dot of two": (lambda *a: np.linalg.multi_dot(a), (3, 4), (4,)),
    "multiply.outer": (lambda a, b: np.multiply.outer(a, b), (2, 2), (3,)),
    "subtract.outer": (lambda a, b: np.subtract.outer(a, b), (2,), (3,)),
    "methods": (lambda a: a.dot(a.T) + a.trace(), (2, 3)),
    "powers": (lambda a: a @ a + a @ a @ a * (a[0] @ a[0]), (3, 3)),
    "operators": (
        lambda a, b: (a.T @ a) @ b.T @ b[:, 0] + [1.0, 2.0, 3.0] @ (a.T @ b),
        (2, 3),
        (2, 3),
    ),
    "transposed views": (lambda a, b: a.T[::-1] @ b[:, ::-1].T, (2, 3), (3, 2)),
    "einsum, operand lists": (lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [0, 2]), (2, 3), (3, 2)),
    "einsum, implied lists": (
        lambda a, b: np.einsum(a, [Ellipsis, 0, 1], b, [1, 2]),
        (2, 2, 3),
        (3, 2),
    ),
    "einsum, optimised": (
        lambda a, b, c: np.einsum("ij,jk,kl", a, b, c, optimize=True),
        (2, 3),
        (3, 2),
        (2, 2),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    both(*CASES[case])


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
    # Written out over the broadcast matrices, and summed back.
    rows = a[None, :] if a.ndim == 1 else a
    columns = b[:, None] if b.ndim == 1 else b
    lead = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows, columns = (np.broadcast_to(x, lead + x.shape[-2:]) for x in (rows, columns))
    full = g.reshape((*lead, rows.shape[-2], columns.shape[-1]))
    product = (rows[..., :, :, None] * columns[..., None, :, :]).sum(-2)
    np.testing.assert_array_equal(value, product.reshape(shape))
    np.testing.assert_array_equal(
        of_a, summed_to((full[..., :, None, :] * columns[..., None, :, :]).sum(-1), p)
    )
    of_columns = (rows[..., :, :, None] * full[..., :, None, :]).sum(-3)
    np.testing.assert_array_equal(
        of_b, summed_to(of_columns, q if len(q) > 1 else (*q, 1)).reshape(q)
    )


def summed_to(x, shape):
    padded = (1,) * (x.ndim - len(shape)) + tuple(shape)
    axes = tuple(i for i, (n, m) in enumerate(zip(x.shape, padded, strict=True)) if m == 1 != n)
    return x.sum(axis=axes).reshape(shape)


CLOSED = {
    "outer": (np.outer, (3,), (2,), lambda a, b, g: (g @ b, g.T @ a)),
    "kron": (np.kron, (2, 2), (2, 3), lambda a, b, g: (
        np.array([[np.sum(g[2 * i : 2 * i + 2,
            3 * j : 3 * j + 3] * b) for j in range(2)] for i in range(2)]),
        np.sum([[a[i, j] * g[2 * i : 2 * i + 2,
            3 * j : 3 * j + 3] for j in range(2)] for i in range(2)], axis=(0, 1)),
    )),
    "tensordot": (np.tensordot, (2, 3, 4), (3, 4, 2), lambda a, b, g: (
        (g @ b.reshape(12, 2).T).reshape(2, 3, 4), (a.reshape(2, 12).T @ g).reshape(3, 4, 2),
    )),
    "einsum": (lambda a, b: np.einsum("ij,kj->ki", a, b), (2, 3), (4, 3), lambda a, b,
     g: (g.T @ b, g @ a)),
    "cross": (np.cross, (3,), (3,), lambda a, b, g: (
        np.array([b[1] * g[2] - b[2] * g[1], b[2] * g[0] - b[0] * g[2], b[0] * g[1] - b[1] * g[0]]),
        np.array([g[1] * a[2] - g[2] * a[1], g[2] * a[0] - g[0] * a[2], g[0] * a[1] - g[1] * a[0]]),
    )),
    "convolve": (np.convolve, (4,), (3,), lambda a, b, g: (
        np.array([sum(b[j] * g[i + j] for j in range(3)) for i in range(4)]),
        np.array([sum(a[i] * g[i + j] for i in range(4)) for j in range(3)]),
    )),
}  # fmt: skip


@pytest.mark.parametrize("case", CLOSED)
def test_closed_forms(case):
    f, p, q, derivative = CLOSED[case]
    a, b = numbers(*p), numbers(*q)
    g = numbers(*f(a, b).shape)
    value, adjoints = value_and_adjoints(f, a, b, weights=g)
    np.testing.assert_allclose(value, f(a, b), rtol=1e-14)
    for got, expected in zip(adjoints, derivative(a, b, g), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_design_matrix_is_data():
    x, b = numbers(20, 3), numbers(3)
    for design in (x, np.asfortranarray(x), x[::-1, ::-1], x[::2]):
        value, (adj,) = value_and_adjoints(lambda v, design=design: design @ v, b)
        np.testing.assert_allclose(value, design @ b, rtol=1e-14)
        np.testing.assert_allclose(adj, design.sum(0), rtol=1e-13)


# Steps of a recurrent network: each uses the same weights, once.
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
    monkeypatch.setattr(products, "add_outer", lambda *args: (added.append(args), add_outer(*args)))
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
    assert together == value
    # Of weights of their own every step makes a contribution of its own; of the same ones they are
    # added up on the way.
    np.testing.assert_allclose(gradient[0], sum(apart), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(gradient[1], of_start, rtol=1e-13, atol=1e-14)
    by_parts = len(shape) < 3 and 2 * start.size < weights.size
    if form is vm.recorded:
        assert not evaluated
        assert all(step.kernel.is_native for step in function.program.steps)
        whole = [
            step
            for step in function.program.steps
            if step.results and step.results[0].shape == weights.shape
        ]
        # One product of all steps, which is brought into place where the weights are used through a
        # view.
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
    assert value == pytest.approx(np.sum((a @ b) * w), rel=1e-12)
    for got, x, true in zip(gradients, (a, b), expected, strict=True):
        assert got.flags.c_contiguous
        np.testing.assert_allclose(got.T if x.ndim == 2 else got, true, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n", "turned"), [(4, False), (40, True)])
def test_contributions_to_transposes_are_made_as_these_lie_in_memory(n, turned):
    matrix, transpose, vector = numbers(n, n), numbers(n, n).T, numbers(n)
    for c in (
        products.left_factor(matrix, transpose, matrix),
        products.left_factor(vector, transpose, vector),
        products.right_factor(matrix, matrix, transpose),
        products.right_factor(vector, vector, transpose),
    ):
        assert c.flags.f_contiguous == turned
        assert c.flags.c_contiguous != turned


def test_contributions_of_products_are_added_to_others():
    weights, h = np.eye(8), np.arange(8.0)
    slopes = np.outer(np.cos(h), h)
    once = vm.gradient(lambda w: np.sum(np.sin(w @ h)) + np.sum(np.cos(h @ w)), weights)
    np.testing.assert_allclose(once, slopes - np.outer(h, np.sin(h)), rtol=1e-14)
    # The contribution of a sum is one number for all elements, into which nobody may write.
    beside = vm.gradient(
        lambda w: np.sum(np.sin(w @ h)) + np.sum(np.sin(w @ h)) + np.sum(w), weights
    )
    np.testing.assert_allclose(beside, 2 * slopes + 1.0, rtol=1e-14)
    # A part has no adjoint of its own.
    of_part = vm.gradient(lambda w: np.sum(np.sin(w[:4] @ h)) + np.sum(np.sin(w[:4] @ h)), weights)
    np.testing.assert_allclose(
        of_part, np.where(np.arange(8)[:, None] < 4, 2 * slopes, 0.0), rtol=1e-14
    )


def test_contributions_are_not_added_to_an_adjoint_that_is_shared():
    weights, h = np.zeros((200, 200)), np.ones(200)
    shared = vm.gradient(
        lambda p: np.sum(np.sin(p[0] @ h)) + np.sum((p[0] + p[1]) ** 2), (weights, weights + 1.0)
    )
    for mine, exact in zip(shared, (3.0, 2.0), strict=True):
        np.testing.assert_array_equal(mine, np.full_like(weights, exact))


def test_large_product():
    x, b = numbers(20_000, 2), numbers(2)
    residuals = x @ b - 1.0
    value, (adj,) = value_and_adjoints(lambda v: np.dot(x @ v - 1.0, x @ v - 1.0), b)
    np.testing.assert_allclose(value, residuals @ residuals, rtol=1e-13)
    np.testing.assert_allclose(adj, 2 * x.T @ residuals, rtol=1e-12)


def test_infinite_factors_do_not_spread():
    x = np.array([[np.inf, 1.0], [2.0, 3.0]])
    with np.errstate(all="ignore"):
        _, (adj,) = value_and_adjoints(lambda b: (x @ b)[1:], np.array([1.0, 1.0]))
    np.testing.assert_array_equal(adj[1], 3.0)


@pytest.mark.parametrize(("shapes", "results"), [
    (((2, 30), (30, 30), (30, 30), (30,)), [(30,), (30,), (2,)]),
    (((2, 30), (30, 30), (30, 20)), [(2, 30), (2, 20)]),
    (((20, 30), (30, 30), (30, 2)), [(30, 2), (20, 2)]),
    (((30,), (30, 30), (30, 2), (2, 30)), [(30,), (2,), (30,)]),
])  # fmt: skip
def test_multi_dot_takes_the_cheap_order(shapes, results):
    with vm.nested() as tape:
        np.linalg.multi_dot([vm.var(numbers(*shape)) for shape in shapes])
        assert [result.shape for _, result, _, _ in tape] == results


# --- Stan's values ---

REFERENCE = json.loads((Path(__file__).parents[2] / "data" / "products.json").read_text())
# A column times a row, which Stan can tell from other vectors.
OF_STAN = {"trace#1": np.trace, "multiply#10": np.outer}


@pytest.mark.parametrize("entry", REFERENCE["entries"], ids=lambda entry: entry["id"])
def test_stan(entry):
    f = OF_STAN.get(entry["id"]) or getattr(vm, entry["function"])
    args = [np.array(argument["value"], dtype=float)[()] for argument in entry["args"]]
    variable = [i for i, argument in enumerate(entry["args"]) if argument["is_var"]]

    def g(*variables):
        given = dict(zip(variable, variables, strict=True))
        return f(*(given.get(i, x) for i, x in enumerate(args)))

    if "throws" in entry:
        with pytest.raises(vm.ShapeError, match=entry["function"] + ": b has shape"):
            value_and_adjoints(g, *(args[i] for i in variable))
        return
    weights = 1.0 if entry["weights"] is None else np.array(entry["weights"])
    value, adjoints = value_and_adjoints(g, *(args[i] for i in variable), weights=weights)
    np.testing.assert_allclose(value, entry["output"], rtol=1e-13, atol=1e-15)
    for i, adjoint in zip(variable, adjoints, strict=True):
        np.testing.assert_allclose(adjoint, entry["args"][i]["grad"], rtol=1e-12, atol=1e-15)


# --- types and refusals ---


class Foreign:
    """An array type that knows varmat, of which varmat knows nothing."""

    __array_ufunc__ = lambda self, *args, **kwargs: "foreign"  # noqa: E731 - a method in one line

    def __rmatmul__(self, other):
        return "foreign"


def test_unknown_types_answer_for_themselves():
    x = vm.var([1.0, 2.0])
    assert x @ Foreign() == "foreign"
    assert np.matmul(x, Foreign()) == "foreign"


def test_in_place():
    a, b = vm.var(np.eye(2)), vm.var([[1.0, 2.0], [3.0, 4.0]])
    c = np.copy(a)
    d = c
    c @= b
    assert d is c
    np.sum(c * c).grad()
    np.testing.assert_allclose(b.adj, 2 * b.val)


def test_out_is_assigned():
    a, out = vm.var(np.ones((2, 2))), vm.var(np.zeros((2, 2)))
    for f in (np.dot, np.matmul, np.outer, np.linalg.multi_dot):
        args = ([a, a],) if f is np.linalg.multi_dot else (a[0], a[1]) if f is np.outer else (a, a)
        assert f(*args, out=out) is out
        np.testing.assert_array_equal(out.val, f(*(plain(x) for x in args)))
    out = vm.var(np.zeros((1, 2, 2)))
    assert np.outer(a[0], a[1], out=out) is out  # NumPy broadcasts the product
    np.testing.assert_array_equal(out.val, 1.0)


def plain(x):
    return [vm.value(item) for item in x] if isinstance(x, list) else vm.value(x)


REFUSALS = {
    "scalar": (lambda x: x @ 2.0,
     r"matmul: b is a scalar, but must be a vector, a matrix or a stack of matrices!"),
    "scalar on the left": (lambda x: vm.var(2.0) @ x,
     r"matmul: a is a scalar, but must be a vector"),
    "rows": (lambda x: x @ x,
     r"matmul: b has shape \(2, 3\), but must have 3 rows, for a has shape \(2, 3\)!"),
    "rows of data": (lambda x: x @ np.ones(2), r"matmul: b has shape \(2,\), but must have 3 rows"),
    "leading axes": (
        lambda x: np.ones((2, 2, 2)) @ np.broadcast_to(x, (3, 2, 3)),
        (r"matmul: b has shape \(3, 2, 3\), but must have leading axes that broadcast with those "
         r"of "
        r"\(2, 2, 2\)!"),
    ),
    "dot": (lambda x: np.dot(x, x), r"matmul: b has shape \(2, 3\), but must have 3 rows"),
    "multiply": (lambda x: vm.multiply(x, x),
     r"multiply: b has shape \(2, 3\), but must have 3 rows"),
    "tensordot": (lambda x: np.tensordot(x, x, 1),
     r"tensordot: b has shape \(2, 3\), but must fit a of shape \(2, 3\) along"),
    "multi_dot of one": (lambda x: np.linalg.multi_dot([x]),
     r"multi_dot: arrays has 1 items, but must have at least two!"),
    "multi_dot of stacks": (
        lambda x: np.linalg.multi_dot([x, x[None], x]),
        r"multi_dot: arrays\[1\] has shape \(1, 2, 3\), but must be a matrix",
    ),
    "linalg.outer": (lambda x: np.linalg.outer(x, x[0]),
     r"outer: x1 has shape \(2, 3\), but must be a vector!"),
    "cross": (lambda x: np.cross(x[:, :2], x),
     r"cross: a has shape \(2, 2\), but must have three elements along the axis"),
    "convolve": (lambda x: np.convolve(x, x),
     r"convolve: a has shape \(2, 3\), but must be a vector that is not empty!"),
    "convolve nothing": (lambda x: np.convolve(x[0], x[0, :0]),
     r"convolve: v has shape \(0,\), but must be a vector that is not"),
    "einsum, axes": (lambda x: np.einsum("i->", x),
     r"einsum: an operand has shape \(2, 3\), but must have one axis for each of"),
    "einsum, operands": (lambda x: np.einsum("ij,jk", x),
     r"einsum: the subscripts name 2 operands, but must name 1!"),
    "einsum, too few axes": (lambda x: np.einsum("...ijk", x),
     r"einsum: .* \(2, 3\), but must have one axis for each of 'ijk'!"),
    "einsum, ellipsis": (lambda x: np.einsum("i...->i", x),
     r"einsum: the result is 'i', but must have the ellipsis that the"),
    "einsum, letters": (lambda x: np.einsum("...->...", np.reshape(x, (2, 3, *(1,) * 50))),
     r"einsum: there are more axes than"),
    **({
        "matvec": (lambda x: np.matvec(x[0], x),
         r"matvec: x1 has shape \(3,\), but must be a matrix"),
        "vecmat": (lambda x: np.vecmat(x, x[0]),
         r"vecmat: x2 has shape \(3,\), but must be a matrix"),
    } if hasattr(np, "matvec") else {}),  # from NumPy 2.2
    "dot_product": (lambda x: vm.dot_product(x[0], x[1, :2]),
     r"dot_product: b has shape \(2,\), but must be a vector as long as"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    call, match = REFUSALS[case]
    with vm.nested() as tape:
        x = vm.var(np.ones((2, 3)))
        with pytest.raises(vm.ShapeError, match=match):
            call(x)
        assert [rule.name for rule, *_ in tape] in ([], ["broadcast_to"], ["getitem"])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda x: np.convolve(x[0], x[0], "some"),
            "convolve: mode is 'some', but must be 'full', 'same' or 'valid'!",
        ),
        (lambda x: np.trace(x, dtype=int), "trace: dtype is int64, but must be float64!"),
        (
            lambda x: np.einsum("ij", x, dtype=np.float32),
            "einsum: dtype is float32, but must be float64!",
        ),
        (
            lambda x: np.dot(x, x.T, out=np.zeros((2, 2))),
            "dot: a variable cannot be written into a plain array",
        ),
        (lambda x: x @ np.full((3, 2), "a"), "b has dtype <U1, but must be real numbers"),
    ],
)
def test_kinds_that_are_refused(call, match):
    x = vm.var(np.ones((2, 3)))
    with pytest.raises(TypeError, match=match):
        call(x)


def test_vectors_are_not_repeated_for_inner_products():
    with pytest.raises(
        vm.ShapeError,
        match=r"vecdot: x2 has shape \(2, 1\), but must have vectors as long as those of x1",
    ):
        np.vecdot(vm.var(np.ones((2, 3))), np.ones((2, 1)))


def test_settings_of_the_ufuncs_are_taken_or_refused():
    x = vm.var(np.ones((2, 3)))
    assert vm.value(np.vecdot(x, x, axis=-1, dtype=float, casting="safe")).tolist() == [3.0, 3.0]
    assert vm.value(np.matmul(x, x.T, dtype=float)).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(TypeError, match=r"^vecdot: axes is given, but must be left out!"):
        np.vecdot(x, x, axes=[-1, -1, ()])
    with pytest.raises(TypeError, match=r"^matmul: axes is given, but must be left out!"):
        np.matmul(x, x, axes=[(0, 1), (1, 0), (0, 1)])
    with pytest.raises(TypeError, match=r"^matmul: dtype is float32, but must be float64!"):
        np.matmul(x, x.T, dtype=np.float32)
    with pytest.raises(
        vm.DomainError,
        match=r"^einsum: casting is 'no', but must be one of safe, same_kind, unsafe!",
    ):
        np.einsum("ij->i", x, casting="no")


def dense(r: Any) -> Any:
    """A sum whose adjoint is an ordinary array."""
    return np.sum(np.ones(r.shape) * r)


# Below a sum the adjoint is the same number everywhere, and one product further the same along an
# axis.
@pytest.mark.parametrize(
    ("product", "args"),
    [
        (lambda a, b: a @ b, (A, B)),
        (lambda a, b, c: a @ b @ c, (A, B, C)),
        (lambda a, b, c: a @ (b @ c), (A, B, C)),
        (lambda a, b: a @ b.T, (A, RNG.normal(size=(60, 50)))),
        (lambda a, b: a @ b, (RNG.normal(size=(1, 50)), RNG.normal(size=(50, 2000)))),
        (lambda a, b: a @ b, (RNG.normal(size=(2000, 3)), RNG.normal(size=(3, 1)))),
        (lambda a, b: a @ b, (RNG.normal(size=(2000, 1)), RNG.normal(size=(1, 1)))),
        (lambda a, b: a @ b, (np.empty((40, 0)), np.empty((0, 50)))),
        (lambda a, b: a @ b, (np.empty((0, 3)), np.empty((3, 50)))),
    ],
)
def test_products_below_a_sum(product: Any, args: Any) -> None:
    every = tuple(range(len(args)))
    value, gradients = vm.value_and_grad(lambda *x: np.sum(product(*x)), every)(*args)
    expected, dense_gradients = vm.value_and_grad(lambda *x: dense(product(*x)), every)(*args)
    assert_allclose(value, expected, rtol=1e-12)
    for found, g in zip(gradients, dense_gradients, strict=True):
        assert found.flags.c_contiguous
        assert found.flags.writeable
        assert_allclose(found, g, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_products_below_a_sum_along_an_axis(axis: int) -> None:
    w = RNG.normal(size=(60, 40)[axis])
    found = vm.value_and_grad(lambda a, b: w @ np.sum(a @ b, axis=axis), (0, 1))(A, B)[1]
    g = np.broadcast_to(w if axis == 0 else w[:, None], (40, 60))
    for x, expected in zip(found, (g @ B.T, A.T @ g), strict=True):
        assert_allclose(x, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("p", "q", "subscripts"), [
    ((190, 180), (180, 190), "ij,jk->ik"),
    ((40_000, 2), (2,), "ij,j->i"),
    ((2, 100, 180), (180, 190), "hij,jk->hik"),
    ((1, 180, 190), (2, 190, 100), "...ij,...jk->...ik"),
])  # fmt: skip
def test_products_as_large_as_their_factors(p: Any, q: Any, subscripts: str) -> None:
    a, b = RNG.normal(size=p), RNG.normal(size=q)
    w = RNG.normal(size=(a @ b).shape)
    (value, gradients), (expected, others) = (
        vm.value_and_grad(lambda x, y, f=f: np.vdot(w, f(x, y)), (0, 1))(a, b)
        for f in (matmul, partial(np.einsum, subscripts))
    )
    assert_allclose(value, expected, rtol=1e-11)
    for g, other in zip(gradients, others, strict=True):
        assert_allclose(g, other, rtol=1e-10, atol=1e-10)
    with vm.nested():
        assert type(vm.var(a) @ b) is Large
        with pytest.raises(vm.ShapeError, match="matmul: b has shape"):
            vm.var(a[..., :-1]) @ b


def test_one_matrix_twice_and_what_is_not_finite() -> None:
    s = RNG.normal(size=(40, 40))
    assert_allclose(
        vm.gradient(lambda a: np.sum(a @ a), s),
        s.sum(axis=1) + s.sum(axis=0)[:, None],
        rtol=1e-12,
        atol=1e-12,
    )
    with np.errstate(invalid="ignore"):
        s[3, 5] = np.inf
        g = vm.gradient(lambda a: np.sum(a @ C[:40]), s)
        assert_allclose(g, np.broadcast_to(C[:40].sum(axis=1), g.shape), rtol=1e-12)


def test_inner_products_of_matrices() -> None:
    expect_ad(np.vdot, A[:2, :3], B[:3, :2])
    expect_ad(np.vdot, 2.0, np.array([[3.0]]))
    assert_array_equal(vm.gradient(lambda a: np.vdot(a, B), B + 1.0), B)
    with pytest.raises(
        vm.ShapeError,
        match=r"vdot: b has shape \(3,\), but must have as many elements as a, of shape \(2, 3\)!",
    ):
        np.vdot(vm.var(np.ones((2, 3))), np.ones(3))


MATRICES = {
    "matrix matrix": (BASE, BASE.T),
    "matrix vector": (BASE, VECTOR),
    "vector matrix": (VECTOR, BASE.T),
    "vector vector": (VECTOR, VECTOR[::-1]),
    "stack": (np.stack([BASE, BASE + 1]), BASE.T),
}


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
        "data": lambda v: v,
        "var": vm.var,
        "matvar": vm.matvar,
        "dual": lambda v: vm.Dual(v, np.ones_like(v)),
    }
    a, b = make[left](x), make[right](y)
    result = a @ b
    np.testing.assert_allclose(vm.value(result), x @ y, rtol=1e-14)
    if "dual" in (left, right):
        assert type(result) is vm.Dual
        tangent = (np.ones_like(x) @ y if left == "dual" else 0.0) + (
            x @ np.ones_like(y) if right == "dual" else 0.0
        )
        np.testing.assert_allclose(vm.value(result.tan), tangent, rtol=1e-14)
        return
    assert type(result) is expected_type(a, b, np.shape(x @ y))
    np.sum(result).grad()
    g = np.ones(np.shape(x @ y))
    if left != "data":
        expected = np.multiply.outer(g, y) if y.ndim == 1 else g @ np.swapaxes(y, -1, -2)
        np.testing.assert_allclose(a.adj, summed(expected, x.shape), rtol=1e-14)
    if right != "data":
        expected = np.swapaxes(x, -1, -2) @ g if x.ndim > 1 else np.multiply.outer(x, g)
        np.testing.assert_allclose(b.adj, summed(expected, y.shape), rtol=1e-14)
