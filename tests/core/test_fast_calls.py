"""Operators between variables of all kinds, data and foreign types."""

import operator

import numpy as np
import pytest
from comparing import close, equal, refuses
from kinds import BASE, VARIABLES, VECTOR, expected_type, summed

import varmat as vm
from varmat.core.elementwise import ROWS

DATA = {
    "vector": lambda: VECTOR + 0.5,        "column": lambda: np.array([[1.5], [2.5]]),
    "matrix": lambda: BASE + 0.25,         "float32": lambda: np.float32([1.5, 2.25, 0.75]),
    "0-d": lambda: np.array(2.5),          "int array": lambda: np.array([1, 2, 3]),
    "reversed": lambda: VECTOR[::-1],      "bool array": lambda: np.array([True, True, True]),
    "np.float64": lambda: np.float64(2.5), "strided": lambda: np.repeat(VECTOR, 2)[::2],
    "np.float32": lambda: np.float32(2.5), "Fortran": lambda: np.asfortranarray(BASE),
    "np.int64": lambda: np.int64(2),       "np.bool": lambda: np.bool_(True),
    "int": lambda: 2, "float": lambda: 2.5, "bool": lambda: True, "list": lambda: [1.5, 2.5, 0.5],
}  # fmt: skip


# Operator -> derivatives with respect to its two operands.
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


def check(op, a, b, x, y):
    """Check one operation on `a` and `b`, whose plain float64 values are `x` and `y`."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    value = op(x, y)
    result = op(a, b)
    assert type(result) is expected_type(a, b, np.shape(value))
    close(vm.value(result), value, 1e-14)
    slopes = [np.broadcast_to(slope(x, y), np.shape(value)) for slope in OPERATORS[op]]
    if isinstance(result, vm.Dual):
        tangent = sum(
            slope * vm.value(v.tan)
            for slope, v in zip(slopes, (a, b), strict=True)
            if isinstance(v, vm.Dual)
        )
        close(vm.value(result.tan), tangent, 1e-13, 1e-14)
        return
    np.sum(result).grad()
    for v, slope in zip((a, b), slopes, strict=True):
        if isinstance(v, (vm.Var, vm.VarMat, vm.MatVar)):
            close(v.adj, summed(slope, np.shape(v)), 1e-13, 1e-15)


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
    for op, slopes in OPERATORS.items():
        a, x = VARIABLES[kind]()
        value, x = op(a, a), np.asarray(x)
        slope = sum(np.broadcast_to(each(x, x), x.shape) for each in slopes)
        if isinstance(value, vm.Dual):
            close(vm.value(value.tan), slope, 1e-13, 1e-15)
        else:
            close(np.sum(value).grad(a), slope, 1e-13, 1e-15)


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
        for other in (
            1.5, 2, BASE + 0.1 * (BASE > 1), vm.var(1.5), vm.var(BASE), vm.Dual(1.5, 0.0),
            np.float64(1.5),
        ):  # fmt: skip
            a, x = VARIABLES[kind]()
            y = vm.value(other)
            for result, expected in (
                (op(a, other), op(np.asarray(x), y)),
                (op(other, a), op(y, np.asarray(x))),
            ):
                assert np.array_equal(result, expected)
                assert np.array_equal(~result, ~expected)  # which is -2 of Python's True


def test_numbers_are_compared_with_32_bits_as_numbers_of_64():
    x, y = vm.var(0.1), np.array([0.1, 0.2], np.float32)
    for compare in (operator.lt, operator.ge, np.less, np.not_equal):
        equal(compare(x, y), compare(np.float64(0.1), y))
        equal(compare(y, x), compare(y, np.float64(0.1)))


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
        close(vm.value(y), expected, 1e-15)
        np.sum(y).grad()
        slope = np.broadcast_to(OPERATORS[op][0](BASE, vm.value(other)), BASE.shape)
        close(x.adj, slope, 1e-14, 1e-15)


@named
def test_in_place_on_scalars_matvars_and_parts(op):
    in_place = getattr(operator, f"i{op.__name__}")
    slope = OPERATORS[op][0]
    x = before = vm.var(1.3)
    x = in_place(x, 2.0)
    assert x is not before
    assert x.grad(before) == pytest.approx(float(slope(1.3, 2.0)))
    m = vm.matvar(VECTOR)
    items = m.copy()
    m = in_place(m, 2.0)
    np.sum(m).grad()
    assert type(m) is vm.MatVar
    np.testing.assert_allclose(
        [item.adj for item in items.tolist()], np.broadcast_to(slope(VECTOR, 2.0), 3)
    )
    x = vm.var(BASE)
    y = x + 0.0
    y[1] = in_place(y[1], VECTOR)
    y[0, 1:] = in_place(y[0, 1:], 3.0)
    np.sum(y).grad()
    expected = np.stack([np.ones(3), slope(BASE[1], VECTOR) * np.ones(3)])
    expected[0, 1:] = slope(BASE[0, 1:], 3.0)
    close(x.adj, expected, 1e-14, 1e-15)


def test_in_place_on_plain_data_is_refused():
    v, x = vm.var(1.0), vm.var(VECTOR)
    for other in (v, x):
        data = np.ones(3)
        with pytest.raises(
            TypeError,
            match=r"add: a variable cannot be written into a plain array .* write a = a \+ b",
        ):
            data += other
    message = r"write a = a \+ b, or make the array with np.zeros_like\(variable\)"
    refuses(TypeError, message, np.add, VECTOR, x, out=np.empty(3))


class Duck:
    """A foreign type whose operators accept anything."""

    __array_ufunc__ = None

    def __add__(self, other):
        return "duck"

    __radd__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __truediv__ = (
        __rtruediv__
    ) = __add__


class UfuncDuck:
    """A foreign type that implements ufuncs."""

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


def test_shift_and_bit_operators_are_refused():
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        refuses(TypeError, None, op, vm.var(VECTOR), 1)
    refuses(TypeError, None, operator.invert, vm.var(1.0))


def test_data_of_other_libraries_are_operands_of_a_call():
    """An operator defers to such data, which have an operator of their own. A function cannot
    defer, so it takes them as arrays.
    """

    class Data:
        __array_ufunc__ = None

        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0])

        def __rmul__(self, other):
            return "theirs"

    x = vm.var([3.0, 4.0])
    assert x * Data() == "theirs"
    equal(vm.fma(x, Data(), 1.0).val, [4.0, 9.0])
    equal(ROWS["multiply"](x, Data()).val, [3.0, 8.0])


@pytest.mark.parametrize("base", [2.0, [1.0, 2.0]], ids=["scalar", "vector"])
def test_powers_by_some_numbers_are_rows_of_their_own(base):
    """The derivatives of these powers need no logarithm."""
    with vm.nested() as tape:
        x = vm.var(base)
        for exponent, name in ((2, "square"), (0.5, "sqrt"), (-1, "reciprocal"), (2.5, "power")):
            assert x**exponent is tape[-1][1]
            assert tape[-1][0].name == name
