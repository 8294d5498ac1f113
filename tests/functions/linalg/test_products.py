"""Products of vectors, matrices and stacks, small and large."""

import json
from operator import matmul
from pathlib import Path

import numpy as np
import pytest
from comparing import close, equal, refuses
from functions.factors import both, numbers
from functions.matrices import value_and_adjoints

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
    "einsum": (lambda a, b: np.einsum("ij,kj->ki", a, b), (2, 3), (4, 3),
               lambda a, b, g: (g.T @ b, g @ a)),
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
    close(value, f(a, b), 1e-14)
    close(adjoints, derivative(a, b, g), 1e-12, 1e-14)


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

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "data" / "products.json").read_text(encoding="utf-8")
)
# Stan distinguishes columns and rows from other vectors; here np.outer is a column times a row.
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
    close(value, entry["output"], 1e-13, 1e-15)
    for i, adjoint in zip(variable, adjoints, strict=True):
        close(adjoint, entry["args"][i]["grad"], 1e-12, 1e-15)


# --- types and refusals ---


class Foreign:
    """A type that knows varmat but is unknown to varmat."""

    __array_ufunc__ = lambda self, *args, **kwargs: "foreign"  # noqa: E731 - a method in one line

    def __rmatmul__(self, other):
        return "foreign"


def test_unknown_types_answer_for_themselves():
    x = vm.var([1.0, 2.0])
    assert x @ Foreign() == "foreign"
    assert np.matmul(x, Foreign()) == "foreign"


def test_out_is_assigned():
    a, out = vm.var(np.ones((2, 2))), vm.var(np.zeros((2, 2)))
    for f in (np.dot, np.matmul, np.outer, np.linalg.multi_dot):
        args = ([a, a],) if f is np.linalg.multi_dot else (a[0], a[1]) if f is np.outer else (a, a)
        assert f(*args, out=out) is out
        equal(out.val, f(*(plain(x) for x in args)))
    out = vm.var(np.zeros((1, 2, 2)))
    assert np.outer(a[0], a[1], out=out) is out  # NumPy broadcasts the product to the shape of out
    equal(out.val, 1.0)


def plain(x):
    return [vm.value(item) for item in x] if isinstance(x, list) else vm.value(x)


REFUSALS = {
    "scalar": (lambda x: x @ 2.0,
               r"matmul: b is a scalar, but must be a vector, a matrix or a stack of matrices!"),
    "scalar on the left": (lambda x: vm.var(2.0) @ x,
                           r"matmul: a is a scalar, but must be a vector"),
    "rows": (lambda x: x @ x,
             r"matmul: b has shape \(2, 3\), but must have 3 rows, because a has shape \(2, 3\)!"),
    "rows of data": (lambda x: x @ np.ones(2), r"matmul: b has shape \(2,\), but must have 3 rows"),
    "leading axes": (
        lambda x: np.ones((2, 2, 2)) @ np.broadcast_to(x, (3, 2, 3)),
        (r"matmul: b has shape \(3, 2, 3\), but must have leading axes that broadcast with the "
        r"leading axes of a, of shape \(2, 2, 2\)!"),
    ),
    "dot": (lambda x: np.dot(x, x), r"matmul: b has shape \(2, 3\), but must have 3 rows"),
    "multiply": (lambda x: vm.multiply(x, x),
                 r"multiply: b has shape \(2, 3\), but must have 3 rows"),
    "tensordot": (lambda x: np.tensordot(x, x, 1),
                  r"tensordot: b has shape \(2, 3\), but must fit a of shape \(2, 3\) along"),
    "multi_dot of one": (lambda x: np.linalg.multi_dot([x]),
                         r"multi_dot: arrays has 1 items, but must have at least two!"),
    "multi_dot of stacks": (lambda x: np.linalg.multi_dot([x, x[None], x]),
                            r"multi_dot: arrays\[1\] has shape \(1, 2, 3\), but must be a matrix"),
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
        refuses(vm.ShapeError, match, call, x)
        assert [rule.name for rule, *_ in tape] in ([], ["broadcast_to"], ["getitem"])


@pytest.mark.parametrize(("call", "match"), [
    (lambda x: np.convolve(x[0], x[0], "some"),
        "convolve: mode is 'some', but must be 'full', 'same' or 'valid'!"),
    (lambda x: np.trace(x, dtype=int), "trace: dtype is int64, but must be float64!"),
    (lambda x: np.einsum("ij", x, dtype=np.float32),
        "einsum: dtype is float32, but must be float64!"),
    (lambda x: np.dot(x, x.T, out=np.zeros((2, 2))),
        "dot: a variable cannot be written into a plain array"),
    (lambda x: x @ np.full((3, 2), "a"), "b has dtype <U1, but must be real numbers"),
])  # fmt: skip
def test_kinds_that_are_refused(call, match):
    x = vm.var(np.ones((2, 3)))
    refuses(TypeError, match, call, x)


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


def test_correlated_are_vectors():
    message = r"correlate: a has shape \(2, 3\), but must be a vector!"
    refuses(vm.ShapeError, message, np.correlate, vm.var(np.ones((2, 3))), np.ones(2))
    with pytest.raises(vm.ShapeError, match=r"correlate: v has shape \(\), but must be a vector!"):
        np.correlate(vm.var(np.ones(3)), 2.0)
