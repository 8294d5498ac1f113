"""What a variable is to Python and to NumPy: operators between all kinds, duck-array attributes, and refusals."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import re

import numpy as np
import pytest

import varmat as vm

BASE = np.array([[1.5, 0.7, 2.2], [0.4, 3.1, 1.9]])
VECTOR = BASE[0]

# Variables of each kind, made from plain values.
VARIABLES = {
    "Var": lambda: (vm.var(1.3), 1.3),
    "VarMat": lambda: (vm.var(BASE), BASE),
    "vector": lambda: (vm.var(VECTOR), VECTOR),
    "View": lambda: (vm.var(BASE.T).T, BASE),
    "reversed View": lambda: (vm.var(VECTOR)[::-1], VECTOR[::-1]),
    "element": lambda: (vm.var(VECTOR)[1], 0.7),
    "MatVar": lambda: (vm.matvar(BASE), BASE),
    "Dual": lambda: (vm.Dual(BASE, np.ones_like(BASE)), BASE),
    "scalar Dual": lambda: (vm.Dual(1.3, 1.0), 1.3),
    "Dual of VarMat": lambda: (vm.Dual(vm.var(VECTOR), np.ones(3)), VECTOR),
}
DATA = {
    "vector": lambda: VECTOR + 0.5,
    "matrix": lambda: BASE + 0.25,
    "column": lambda: np.array([[1.5], [2.5]]),
    "0-d": lambda: np.array(2.5),
    "int array": lambda: np.array([1, 2, 3]),
    "float32": lambda: np.array([1.5, 2.25, 0.75], np.float32),
    "bool array": lambda: np.array([True, True, True]),
    "reversed": lambda: VECTOR[::-1],
    "strided": lambda: np.repeat(VECTOR, 2)[::2],
    "Fortran": lambda: np.asfortranarray(BASE),
    "np.float64": lambda: np.float64(2.5),
    "np.float32": lambda: np.float32(2.5),
    "np.int64": lambda: np.int64(2),
    "np.bool": lambda: np.bool_(True),
    "int": lambda: 2,
    "float": lambda: 2.5,
    "bool": lambda: True,
    "list": lambda: [1.5, 2.5, 0.5],
}
# Operator -> derivatives with respect to both sides.
OPERATORS = {
    operator.add: (lambda a, b: 1.0, lambda a, b: 1.0),
    operator.sub: (lambda a, b: 1.0, lambda a, b: -1.0),
    operator.mul: (lambda a, b: b, lambda a, b: a),
    operator.truediv: (lambda a, b: 1 / b, lambda a, b: -a / b**2),
    operator.pow: (lambda a, b: b * a ** (b - 1), lambda a, b: a**b * np.log(a)),
    operator.floordiv: (lambda a, b: 0.0, lambda a, b: 0.0),
    operator.mod: (lambda a, b: 1.0, lambda a, b: -(a // b)),
}
COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt)
named = pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)


def is_array(x):
    return bool(np.shape(x))


def expected_type(a, b, shape):
    """Duals win, then varmats, then matvars; data changes nothing."""
    kinds = (type(a), type(b))
    if vm.Dual in kinds:
        return vm.Dual
    if not shape:
        return vm.Var
    return vm.MatVar if vm.MatVar in kinds and not any(isinstance(x, vm.VarMat) for x in (a, b)) else vm.VarMat


def summed(c, shape):
    """A contribution, summed over the axes along which its operand was broadcast."""
    extra = np.ndim(c) - len(shape)
    c = np.sum(c, axis=tuple(range(extra)))
    return np.sum(c, axis=tuple(i for i, n in enumerate(shape) if n == 1 != np.shape(c)[i]), keepdims=True)


def check(op, a, b, x, y):
    """One operation on `a` and `b`, whose plain float64 values are `x` and `y`."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    value = op(x, y)
    result = op(a, b)
    assert type(result) is expected_type(a, b, np.shape(value))
    np.testing.assert_allclose(vm.value(result), value, rtol=1e-14)
    slopes = [np.broadcast_to(slope(x, y), np.shape(value)) for slope in OPERATORS[op]]
    if isinstance(result, vm.Dual):
        tangent = sum(slope * vm.value(v.tan) for slope, v in zip(slopes, (a, b), strict=True) if isinstance(v, vm.Dual))
        np.testing.assert_allclose(vm.value(result.tan), tangent, rtol=1e-13, atol=1e-14)
        return
    np.sum(result).grad()
    for v, slope in zip((a, b), slopes, strict=True):
        if isinstance(v, (vm.Var, vm.VarMat, vm.MatVar)):
            np.testing.assert_allclose(v.adj, summed(slope, np.shape(v)), rtol=1e-13, atol=1e-15)


@named
@pytest.mark.parametrize("kind", VARIABLES)
def test_operators_with_data(op, kind):
    for make in DATA.values():
        data = make()
        a, x = VARIABLES[kind]()
        check(op, a, data, x, data)
        a, x = VARIABLES[kind]()
        check(op, data, a, data, x)


@named
@pytest.mark.parametrize("kind", VARIABLES)
def test_operators_between_variables(op, kind):
    for make in VARIABLES.values():
        (a, x), (b, y) = VARIABLES[kind](), make()
        check(op, a, b, x, y)


@pytest.mark.parametrize("kind", VARIABLES)
def test_operand_twice(kind):
    for op in OPERATORS:
        a, x = VARIABLES[kind]()
        value = op(a, a)
        slope = sum(np.broadcast_to(s(np.asarray(x), np.asarray(x)), np.shape(x)) for s in OPERATORS[op])
        if isinstance(value, vm.Dual):
            np.testing.assert_allclose(vm.value(value.tan), slope, rtol=1e-13, atol=1e-15)
        else:
            np.sum(value).grad()
            np.testing.assert_allclose(a.adj, slope, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", VARIABLES)
def test_unary_operators(kind):
    for op, slope in ((operator.neg, -1.0), (operator.pos, 1.0), (abs, 1.0)):
        a, x = VARIABLES[kind]()
        result = op(a)
        np.testing.assert_allclose(vm.value(result), op(np.asarray(x)))
        if isinstance(result, vm.Dual):
            np.testing.assert_allclose(vm.value(result.tan), slope * np.ones(np.shape(x)))
        else:
            np.sum(result).grad()
            np.testing.assert_allclose(a.adj, slope * np.ones(np.shape(x)))


@pytest.mark.parametrize("kind", VARIABLES)
def test_comparisons_compare_values(kind):
    for op in COMPARISONS:
        for other in (1.5, 2, BASE + 0.1 * (BASE > 1), vm.var(1.5), vm.var(BASE), vm.Dual(1.5, 0.0), np.float64(1.5)):
            a, x = VARIABLES[kind]()
            y = vm.value(other)
            for result, expected in ((op(a, other), op(np.asarray(x), y)), (op(other, a), op(y, np.asarray(x)))):
                assert np.array_equal(result, expected)
                assert type(result) in (bool, np.bool_) if not np.shape(expected) else result.dtype == bool


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
    if ("matvar" in (left, right) and ("dual" in (left, right) or x.ndim > 2)) or left == right == "data":
        return
    make = {"data": lambda v: v, "var": vm.var, "matvar": vm.matvar, "dual": lambda v: vm.Dual(v, np.ones_like(v))}
    a, b = make[left](x), make[right](y)
    result = a @ b
    np.testing.assert_allclose(vm.value(result), x @ y, rtol=1e-14)
    if "dual" in (left, right):
        assert type(result) is vm.Dual
        tangent = (np.ones_like(x) @ y if left == "dual" else 0.0) + (x @ np.ones_like(y) if right == "dual" else 0.0)
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


@named
def test_in_place_on_an_array_variable(op):
    in_place = getattr(operator, f"i{op.__name__}")
    for other in (2.0, VECTOR, vm.var(VECTOR), vm.var(1.5)):
        x = vm.var(BASE)
        y = x * 1.0
        same = y
        y = in_place(y, other)
        assert y is same
        expected = op(BASE, vm.value(other))
        np.testing.assert_allclose(vm.value(y), expected, rtol=1e-15)
        np.sum(y).grad()
        slope = np.broadcast_to(OPERATORS[op][0](BASE, vm.value(other)), BASE.shape)
        np.testing.assert_allclose(x.adj, slope, rtol=1e-14, atol=1e-15)


@named
def test_in_place_on_scalars_matvars_and_parts(op):
    in_place = getattr(operator, f"i{op.__name__}")
    slope = OPERATORS[op][0]
    x = before = vm.var(1.3)
    x = in_place(x, 2.0)
    assert x is not before
    x.grad()
    assert before.adj == pytest.approx(float(slope(1.3, 2.0)))
    m = vm.matvar(VECTOR)
    items = m.copy()
    m = in_place(m, 2.0)
    np.sum(m).grad()
    assert type(m) is vm.MatVar
    np.testing.assert_allclose([item.adj for item in items.tolist()], np.broadcast_to(slope(VECTOR, 2.0), 3))
    x = vm.var(BASE)
    y = x + 0.0
    y[1] = in_place(y[1], VECTOR)
    y[0, 1:] = in_place(y[0, 1:], 3.0)
    np.sum(y).grad()
    expected = np.stack([np.ones(3), slope(BASE[1], VECTOR) * np.ones(3)])
    expected[0, 1:] = slope(BASE[0, 1:], 3.0)
    np.testing.assert_allclose(x.adj, expected, rtol=1e-14, atol=1e-15)


def test_in_place_on_plain_data_is_refused():
    v, x = vm.var(1.0), vm.var(VECTOR)
    for other in (v, x):
        data = np.ones(3)
        with pytest.raises(TypeError, match=r"add: a variable cannot be written into a plain array .* write a = a \+ b"):
            data += other
    with pytest.raises(TypeError, match=r"write a = a \+ b, or make the array with np.zeros_like\(variable\)"):
        np.add(VECTOR, x, out=np.empty(3))


PLAIN_ARRAY = (
    r"cannot become a plain array, its derivative would be lost: use np.stack\(\[...\]\) or .* varmat.value\(x\) "
    r"for the plain numbers, y.to_numpy\(\) for data of pandas or xarray"
)
PLAIN_NUMBER = r"cannot become a plain number, its derivative would be lost: use NumPy's function instead of math's"
REFUSALS = [
    (np.asarray, PLAIN_ARRAY),
    (np.array, PLAIN_ARRAY),
    (lambda x: np.array(x, dtype=float), PLAIN_ARRAY),
    (lambda x: np.array(x, dtype=object), PLAIN_ARRAY),
    (lambda x: np.asarray([x, x]), PLAIN_ARRAY),
    (lambda x: np.array([x, 1.0], dtype=float), PLAIN_ARRAY),
    (lambda x: np.full(3, x), r"plain"),
    (float, PLAIN_NUMBER),
    (int, PLAIN_NUMBER),
    (complex, PLAIN_NUMBER),
    (math.exp, PLAIN_NUMBER),
    (math.floor, PLAIN_NUMBER),
    (lambda x: [1, 2, 3][x], PLAIN_NUMBER),
    (lambda x: range(x), PLAIN_NUMBER),
    (lambda x: VECTOR.copy().__setitem__(0, x), r"plain (array|number)"),
    (lambda x: VECTOR.copy().__setitem__(Ellipsis, x), r"plain (array|number)"),
    (lambda x: VECTOR.copy().fill(x), r"plain (array|number)"),
    (pickle.dumps, r"belongs to its tape and cannot be pickled; pickle varmat.value\(x\)"),
    (lambda x: x.astype(int), r"astype: variables are float64 only, not int64; varmat.value\(x\) gives plain numbers"),
    (lambda x: x.astype(np.float32), r"astype: variables are float64 only, not float32"),
    (lambda x: x + (1 + 2j), r"complex128, but must be real numbers"),
    (lambda x: (1 + 2j) * x, r"complex128, but must be real numbers"),
    (lambda x: x * np.array([1j, 2j, 3j]), r"complex128, but must be real numbers"),
    (lambda x: x + "a", r"must be real numbers|unsupported operand"),
    (lambda x: x + np.array(["a", "b", "c"]), r"<U1, but must be real numbers"),
    (lambda x: x - None, r"must be real numbers|unsupported operand"),
    (lambda x: x + np.array(["2020-01-01"], "M8[D]"), r"datetime64\[D\], but must be real numbers"),
    (lambda x: vm.var(x), r"var: the argument is a variable already; varmat.value\(x\) gives its values"),
    (lambda x: vm.matvar(x), r"matvar: the argument is a variable already; varmat.to_matvar\(x\) converts it"),
]


@pytest.mark.parametrize("kind", ["Var", "vector", "reversed View", "element", "Dual", "scalar Dual"])
@pytest.mark.parametrize("case", range(len(REFUSALS)))
def test_refusals_say_what_to_write(case, kind):
    f, match = REFUSALS[case]
    x, _ = VARIABLES[kind]()
    with pytest.raises((TypeError, ValueError)) as raised:
        f(x)
    # NumPy wraps what it hears when it asks an item for a number.
    reason = raised.value if isinstance(raised.value, TypeError) else raised.value.__cause__
    assert isinstance(reason, TypeError)
    assert re.search(match, str(reason))


@pytest.mark.parametrize("value", [1 + 2j, np.array([1j]), "text", ["a"], None, np.array([object()]), {"a": 1.0}])
def test_what_has_no_float64_value_is_refused(value):
    with pytest.raises(TypeError, match=r"var: the argument has dtype .*, but must be real numbers"):
        vm.var(value)


class Duck:
    """A type of somebody else, which knows how to work with anything."""

    __array_ufunc__ = None

    def __add__(self, other):
        return "duck"

    __radd__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __truediv__ = __rtruediv__ = __add__


class UfuncDuck:
    """A type that answers for ufuncs."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return f"duck {ufunc.__name__}"

    def __radd__(self, other):
        return "reflected"


@pytest.mark.parametrize("kind", VARIABLES)
def test_unknown_types_are_asked(kind):
    a, _ = VARIABLES[kind]()
    for op in (operator.add, operator.mul, operator.pow, operator.truediv, operator.matmul):
        assert op(a, Duck()) == "duck"
        assert op(Duck(), a) == "duck"
    assert np.multiply(a, UfuncDuck()) == "duck multiply"
    assert a + UfuncDuck() in ("reflected", "duck add")
    assert a.__class__.__eq__(a, UfuncDuck()) is not None


@pytest.mark.parametrize("kind", ["Var", "vector", "element", "scalar Dual", "Dual of VarMat"])
def test_data_of_pandas_is_refused(kind):
    # It goes by labels, which a variable has not: what it gave would depend on the order of the operations.
    import pandas
    a, x = VARIABLES[kind]()
    series = pandas.Series(np.ones(np.size(x)))
    for op in (operator.add, operator.mul):
        for left, right in ((a, series), (series, a)):
            with pytest.raises(TypeError, match=r"y.to_numpy\(\) for data of pandas"):
                op(left, right)


def test_functions_take_data_of_pandas_as_data():
    import pandas
    x, series = np.array([4.0, 3.0]), pandas.Series([1.5, 2.5])
    for f in (vm.beta, lambda x, y: vm.beta(y, x), lambda x, y: vm.fma(y, x, y), lambda x, y: vm.normal_lpdf(y, x, 1.0)):
        with vm.nested() as tape:
            f(vm.var(x), series.to_numpy())
            count = len(tape)
            f(vm.var(x), series)
            assert len(tape) == 2 * count
        np.testing.assert_array_equal(vm.jacobian(f, x, series), vm.jacobian(f, x, series.to_numpy()))


ATTRIBUTES = ("shape", "ndim", "size", "dtype", "nbytes", "itemsize")


@pytest.mark.parametrize("kind", [name for name in VARIABLES if name != "MatVar"])
def test_duck_array_attributes(kind):
    a, x = VARIABLES[kind]()
    x = np.asarray(x)
    for name in ATTRIBUTES:
        assert getattr(a, name) == getattr(x, name), name
    for name in ("T", "real"):
        np.testing.assert_array_equal(vm.value(getattr(a, name)), getattr(x, name), err_msg=name)
    assert type(a.real) is type(a)
    np.testing.assert_array_equal(a.imag, np.zeros(x.shape)[()], strict=True)
    for name in ("conj", "conjugate", "copy", "ravel", "flatten", "squeeze", "transpose"):
        np.testing.assert_array_equal(vm.value(getattr(a, name)()), getattr(x, name)(), err_msg=name)
    np.testing.assert_array_equal(vm.value(a.astype(float)), x)
    assert a.astype(float, copy=False) is a
    assert [vm.value(item) for item in a.flat] == list(x.flat)
    if x.size == 1:
        assert vm.value(a.item()) == x.item()
    else:
        with pytest.raises(ValueError, match="size"):
            a.item()
    if x.ndim:
        assert vm.value(a.ravel()[:1].item()) == x.item(0)
        assert vm.value(a.item(1)) == x.item(1)
        assert vm.value(a.tolist()) == x.tolist()
    if x.ndim == 2:
        np.testing.assert_array_equal(vm.value(a.mT), x.mT)
        assert vm.value(a.item(1, 2)) == vm.value(a.item((1, 2))) == x[1, 2]


# Method -> arguments; each is NumPy's function of the same name.
METHODS = {
    "sum": [(), (0,), (-1,)],
    "prod": [(), (0,)],
    "mean": [(), (1,)],
    "var": [(), (0,)],
    "std": [(), (0,)],
    "min": [(), (0,)],
    "max": [(), (1,)],
    "cumsum": [(), (1,)],
    "cumprod": [(), (0,)],
    "argmax": [(), (0,)],
    "argmin": [(), (1,)],
    "argsort": [(), (0,)],
    "any": [(), (0,)],
    "all": [(), (1,)],
    "clip": [(1.0, 2.0)],
    "round": [(), (1,)],
    "reshape": [((3, 2),), (3, 2), (-1,)],
    "transpose": [(), (1, 0), ((1, 0),)],
    "swapaxes": [(0, 1)],
    "ravel": [(), ("F",)],
    "flatten": [(), ("F",)],
    "repeat": [(2,), (2, 0)],
    "take": [([0, 2],), ([1], 0)],
    "compress": [([True, False, True], 1)],
    "diagonal": [(), (1,)],
    "trace": [(), (1,)],
    "squeeze": [()],
    "dot": [(VECTOR,)],
    "nonzero": [()],
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["VarMat", "View", "MatVar", "Dual"])
def test_methods_are_functions(name, kind):
    for args in METHODS[name]:
        a, x = VARIABLES[kind]()
        result, expected = getattr(a, name)(*args), getattr(x, name)(*args)
        np.testing.assert_allclose(vm.value(result), expected, rtol=1e-14)


def test_methods_that_change_the_array():
    x = vm.var([3.0, 1.0, 2.0])
    y = x * 1.0
    y.sort()
    (y[0] * 10 + y[1] * 100).grad()
    assert x.adj.tolist() == [0.0, 10.0, 100.0]
    y.fill(2.5)
    np.sum(y).grad()
    assert vm.value(y).tolist() == [2.5] * 3
    assert x.adj.tolist() == [0.0] * 3
    assert vm.var([1.0, 3.0]).searchsorted(2.0) == 1


def test_scalars_in_python():
    v = vm.var(1.5)
    assert v > 0
    assert bool(v)
    assert not vm.var(0.0)
    assert {v: 1}[v] == 1
    assert hash(v) == hash(v)
    assert repr(v) == "Var(1.5)"
    assert str(v) == "Var(1.5)"
    assert f"{v:.3f}" == "1.500"
    assert f"{v}" == "Var(1.5)"
    assert v.item() is not None
    assert max(v, vm.var(2.0)).val == 2.0
    assert min(v, 1.0) == 1.0
    assert [x.val for x in sorted([vm.var(2.0), v, vm.var(-1.0)])] == [-1.0, 1.5, 2.0]
    assert round(v).val == round(v, 0).val == 2.0
    assert round(vm.var(1.26), 1).val == 1.3
    assert vm.var([1.5, 2.5, 3.5])[1] in [vm.var(2.5)]
    for scalar in (v, vm.Dual(1.0, 1.0)):
        with pytest.raises(TypeError):
            len(scalar)
        with pytest.raises(TypeError):
            iter(scalar)


@pytest.mark.parametrize("f", [
    np.exp, np.log1p, vm.inv_logit, vm.lgamma, lambda v: np.float64(2.0) * v, lambda v: v**2.5, lambda v: np.arctan2(v, 2.0),
    lambda v: np.where(v > 0, v, 1.0), lambda v: np.sum(v), lambda v: vm.normal_lpdf(v, 0.0, 1.0), lambda v: vm.fma(v, v, v),
])  # fmt: skip
def test_values_and_adjoints_of_scalars_are_floats(f):
    v = vm.var(1.5)
    y = f(v)
    assert type(y.val) is float
    y.grad()
    assert type(v.adj) is float


def test_arrays_in_python():
    x = vm.var([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2
    assert 3.0 in x
    assert 5.0 not in x
    assert [row.shape for row in x] == [(2,), (2,)]
    first, second = x
    assert sum(x).shape == (2,)
    (sum(first * second) + max(x[0]) * 10).grad()
    assert x.adj.tolist() == [[3.0, 14.0], [1.0, 2.0]]
    assert repr(x) == "VarMat([[1., 2.],\n        [3., 4.]])"
    assert f"{x[0]}" == "VarMat([1., 2.])"
    assert hash(x) == hash(x)
    assert [item.val for item in sorted(vm.var([3.0, 1.0]))] == [1.0, 3.0]
    assert bool(vm.var([2.0]))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
    with pytest.raises(TypeError):
        f"{x:.3f}"
    assert round(x, 1).shape == (2, 2)


@pytest.mark.parametrize("kind", ["VarMat", "View", "Dual"])
def test_containers_iterate(kind):
    a, x = VARIABLES[kind]()
    assert len(a) == 2
    assert [vm.value(row).tolist() for row in a] == x.tolist()
    assert 0.7 in a
    assert 7.0 not in a
    first, second = a
    np.testing.assert_array_equal(vm.value(first * second), x[0] * x[1])


@pytest.mark.parametrize("kind", ["Var", "VarMat", "View", "Dual"])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, np.copy])
def test_copies_keep_the_derivative(kind, duplicate):
    a, x = VARIABLES[kind]()
    b = duplicate(a)
    assert b is not a
    np.testing.assert_array_equal(vm.value(b), x)
    if kind == "Dual":
        np.testing.assert_array_equal(b.tan, a.tan)
    else:
        np.sum(b * b).grad()
        np.testing.assert_allclose(a.adj, 2 * np.asarray(x))


def test_divmod_agrees_with_its_parts():
    x = vm.var(VECTOR)
    quotient, remainder = divmod(x, 0.6)
    expected = divmod(VECTOR, 0.6)
    np.testing.assert_allclose(vm.value(quotient), expected[0])
    np.testing.assert_allclose(vm.value(remainder), expected[1])
    np.sum(remainder).grad()
    assert x.adj.tolist() == [1.0, 1.0, 1.0]
    q, r = divmod(vm.var(7.5), vm.var(2.0))
    assert (q.val, r.val) == (3.0, 1.5)
    q, r = divmod(7.5, vm.var(2.0))
    assert (q.val, r.val) == (3.0, 1.5)


def test_shift_and_bit_operators_are_refused():
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        with pytest.raises(TypeError):
            op(vm.var(VECTOR), 1)
    with pytest.raises(TypeError):
        operator.invert(vm.var(1.0))


def test_xarray_holds_variables():
    import xarray as xr

    x = vm.var(BASE)
    array = xr.DataArray(x, dims=("row", "column"), coords={"row": [10, 20]})
    assert array.data is x
    assert array.dtype == np.float64
    total = (array * 2.0 + array.T).sum("column")
    assert isinstance(total.data, vm.VarMat)
    weights = xr.DataArray([0.5, 0.25, 0.25], dims="column")
    mixed = (weights * array).isel(column=slice(1, 3)).mean("column")
    result = np.exp(0.1 * total) * mixed
    np.sum(result.data).grad()
    scale, means = np.exp(0.3 * BASE.sum(1)), BASE[:, 1:].mean(1) / 4
    np.testing.assert_allclose(vm.value(result.data), scale * means, rtol=1e-14)
    expected = (0.3 * scale * means)[:, None] + (scale / 8)[:, None] * [0.0, 1.0, 1.0]
    np.testing.assert_allclose(x.adj, expected, rtol=1e-13)
    np.testing.assert_array_equal(vm.value(array.sel(row=20).data), BASE[1])
    assert "VarMat" in repr(array)


def test_values_are_read_only():
    x = vm.var(VECTOR)
    with pytest.raises(ValueError, match="read-only"):
        x.val[0] = 1.0
    value = vm.value(x)
    value[0] = 100.0
    assert x.val[0] == VECTOR[0]
