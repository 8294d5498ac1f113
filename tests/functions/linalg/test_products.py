"""Products of vectors, matrices and stacks, small and large."""

from operator import matmul

import numpy as np
import pytest
from comparing import equal, refuses_as
from functions.factors import both, numbers

import varmat as vm

# --- all routes agree ---

MATMUL = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 3), (3, 1)),
    ((2, 2, 3), (3, 4)), ((2, 3), (2, 3, 2)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 3), (2, 1, 3, 2)),
    ((2, 2, 3), (2, 1, 3, 2)), ((3,), (2, 3, 2)), ((2, 2, 3), (3,)), ((0,), (0,)), ((0, 3), (3, 2)),
    ((2, 0), (0, 2)), ((2, 3), (3, 0)), ((2, 0, 3), (3, 2)), ((0, 2, 3), (3, 2)), ((2, 3, 0), (0,)),
]  # fmt: skip
SCALARS = [((), ()), ((), (2,)), ((2, 3), ())]
VECTORS = [((3,), (3,)), ((2, 3), (3,))]
# Function -> shapes of its operands.
SHAPES = {
    matmul: MATMUL, np.linalg.matmul: MATMUL[3:5],
    vm.multiply: [*MATMUL[:5], *SCALARS],
    np.dot: [*SCALARS, *VECTORS, ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2)),
             ((3,), (2, 3, 2)), ((2, 2, 3), (3,))],
    np.inner: [*SCALARS, *VECTORS, ((3,), (2, 3)), ((2, 2, 3), (4, 3)), ((2, 3), (2, 2, 3))],
    np.vdot: [((), ()), ((3,), (3,)), ((2, 3), (3, 2)), ((2, 3), (6,))],
    np.outer: [*SCALARS, ((3,), (2,)), ((2, 3), (2, 2)), ((0,), (2,))],
    np.linalg.outer: [((3,), (2,))],
    np.kron: [*SCALARS, ((3,), (2,)), ((2, 3), (2, 2)), ((2, 2, 1), (3,)), ((0, 2), (2, 2))],
    np.cross: [((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3))],
    np.linalg.cross: [((2, 3), (2, 3))],
    np.linalg.vecdot: [((2, 3), (3,)), ((3,), (3,))],
    vm.dot_product: [((3,), (3,)), ((0,), (0,))],
}  # fmt: skip


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


@pytest.mark.parametrize("mode", ["full", "same", "valid", None])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 3), (5, 3), (5, 4), (2, 5), (3, 4)])
@pytest.mark.parametrize("f", [np.convolve, np.correlate], ids=["convolve", "correlate"])
def test_convolution_modes(f, m, n, mode):
    both(lambda a, v: f(a, v, mode) if mode else f(a, v), (m,), (n,))


CASES = {
    "tensordot 1": (lambda a, b: np.tensordot(a, b, 1), (2, 3), (3, 2)),
    "tensordot 2, a scalar": (np.tensordot, (2, 3), (2, 3)),
    "tensordot 0": (lambda a, b: np.tensordot(a, b, 0), (2, 3), (2,)),
    "tensordot of scalars": (lambda a, b: np.tensordot(a, b, 0), (), (2,)),
    "tensordot, crossed axes": (lambda a, b: np.tensordot(a, b, ([1, 2], [1, 0])), (2, 3, 4),
        (4, 3, 2)),
    "tensordot, inner axis": (lambda a, b: np.tensordot(a, b, (1, 0)), (2, 3, 4), (3, 2)),
    "tensordot, negative axes": (lambda a, b: np.linalg.tensordot(a, b, axes=([-1, 0], [-1, 0])),
        (2, 3), (2, 3)),
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
    "operators": (lambda a, b: (a.T @ a) @ b.T @ b[:, 0] + [1.0, 2.0, 3.0] @ (a.T @ b), (2, 3),
        (2, 3)),
    "transposed views": (lambda a, b: a.T[::-1] @ b[:, ::-1].T, (2, 3), (3, 2)),
    "einsum, operand lists": (lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [0, 2]), (2, 3), (3, 2)),
    "einsum, implied lists": (lambda a, b: np.einsum(a, [Ellipsis, 0, 1], b, [1, 2]), (2, 2, 3),
        (3, 2)),
    "einsum, optimised": (lambda a, b, c: np.einsum("ij,jk,kl", a, b, c, optimize=True), (2, 3),
        (3, 2), (2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    both(*CASES[case])


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


# --- types and refusals ---


def test_out_is_assigned():
    a, one = vm.var(np.ones((2, 2))), np.ones((2, 2))
    for f, args, plain in (
        (np.dot, (a, a), (one, one)),    (np.matmul, (a, a), (one, one)),
        (np.outer, (a[0], a[1]), one),   (np.linalg.multi_dot, ([a, a],), ([one, one],)),
    ):  # fmt: skip
        out = vm.var(np.zeros((2, 2)))
        assert f(*args, out=out) is out
        equal(out.val, f(*plain))
    out = vm.var(np.zeros((1, 2, 2)))
    assert np.outer(a[0], a[1], out=out) is out  # NumPy broadcasts the product to the shape of out
    equal(out.val, 1.0)


REFUSALS = [
    (lambda x: x @ 2.0,
     "matmul: b is a scalar, but must be a vector, a matrix or a stack of matrices!"),
    (lambda x: vm.var(2.0) @ x, "matmul: a is a scalar, but must be a vector"),
    (lambda x: x @ x, ("matmul: b has shape (2, 3), but must have 3 rows, because a has shape (2, "
    "3)!")),
    (lambda x: x @ np.ones(2), "matmul: b has shape (2,), but must have 3 rows"),
    (lambda x: np.ones((2, 2, 2)) @ np.broadcast_to(x, (3, 2, 3)),
     ("matmul: b has shape (3, 2, 3), but must have leading axes that broadcast with the leading "
     "axes of a, of shape (2, 2, 2)!")),
    (lambda x: np.dot(x, x), "matmul: b has shape (2, 3), but must have 3 rows"),
    (lambda x: np.vdot(x, np.ones(3)),
     "b has shape (3,), but must have as many elements as a, of shape (2, 3)!"),
    (lambda x: vm.multiply(x, x), "b has shape (2, 3), but must have 3 rows"),
    (lambda x: np.tensordot(x, x, 1), "b has shape (2, 3), but must fit a of shape (2, 3) along"),
    (lambda x: np.linalg.multi_dot([x]), "arrays has 1 items, but must have at least two!"),
    (lambda x: np.linalg.multi_dot([x, x[None], x]),
     "arrays[1] has shape (1, 2, 3), but must be a matrix"),
    (lambda x: np.linalg.outer(x, x[0]), "x1 has shape (2, 3), but must be a vector!"),
    (lambda x: np.cross(x[:, :2], x),
     "a has shape (2, 2), but must have three elements along the axis"),
    (lambda x: np.convolve(x, x), "a has shape (2, 3), but must be a vector that is not empty!"),
    (lambda x: np.convolve(x[0], x[0, :0]), "v has shape (0,), but must be a vector that is not"),
    (lambda x: np.correlate(x, x[0]), "a has shape (2, 3), but must be a vector!"),
    (lambda x: np.correlate(x[0], 2.0), "v has shape (), but must be a vector!"),
    (lambda x: np.einsum("i->", x),
     "an operand has shape (2, 3), but must have one axis for each of"),
    (lambda x: np.einsum("ij,jk", x), "the subscripts name 2 operands, but must name 1!"),
    (lambda x: np.einsum("...ijk", x),
     "an operand has shape (2, 3), but must have one axis for each of 'ijk'!"),
    (lambda x: np.einsum("i...->i", x), "the result is 'i', but must have the ellipsis that the"),
    (lambda x: np.einsum("...->...", np.reshape(x, (2, 3, *(1,) * 50))),
     "there are more axes than"),
    (lambda x: vm.dot_product(x[0], x[1, :2]), "b has shape (2,), but must be a vector as long as"),
    (lambda x: np.vecdot(x, np.ones((2, 1))),
     "x2 has shape (2, 1), but must have vectors as long as the vectors of x1"),
]  # fmt: skip
if hasattr(np, "matvec"):  # from NumPy 2.2
    REFUSALS += [
        (lambda x: np.matvec(x[0], x), "x1 has shape (3,), but must be a matrix"),
        (lambda x: np.vecmat(x, x[0]), "x2 has shape (3,), but must be a matrix"),
    ]


@pytest.mark.parametrize(("call", "text"), REFUSALS)
def test_refusals(call, text):
    with vm.nested() as tape:
        refuses_as(vm.ShapeError, text, call, vm.var(np.ones((2, 3))))
        assert [rule.name for rule, *_ in tape] in ([], ["broadcast_to"], ["getitem"])


@pytest.mark.parametrize(("call", "text"), [
    (lambda x: np.convolve(x[0], x[0], "some"),
     "mode is 'some', but must be 'full', 'same' or 'valid'!"),
    (lambda x: np.trace(x, dtype=int), "dtype is int64, but must be float64!"),
    (lambda x: np.einsum("ij", x, dtype=np.float32), "dtype is float32, but must be float64!"),
    (lambda x: np.matmul(x, x.T, dtype=np.float32), "dtype is float32, but must be float64!"),
    (lambda x: np.dot(x, x.T, out=np.zeros((2, 2))),
     "np.dot: a variable cannot be written into a plain array"),
    (lambda x: x @ np.full((3, 2), "a"), "matmul: b has dtype <U1, but must be real numbers"),
    (lambda x: np.vecdot(x, x, axes=[-1, -1, ()]), "axes is given, but must be left out!"),
    (lambda x: np.matmul(x, x, axes=[(0, 1)] * 3), "axes is given, but must be left out!"),
])  # fmt: skip
def test_kinds_that_are_refused(call, text):
    refuses_as(TypeError, text, call, vm.var(np.ones((2, 3))))


def test_settings_of_the_ufuncs():
    x = vm.var(np.ones((2, 3)))
    assert vm.value(np.vecdot(x, x, axis=-1, dtype=float, casting="safe")).tolist() == [3.0, 3.0]
    assert vm.value(np.matmul(x, x.T, dtype=float)).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    refuses_as(vm.DomainError, "casting is 'no', but must be one of safe, same_kind, unsafe!",
               lambda: np.einsum("ij->i", x, casting="no"))  # fmt: skip
