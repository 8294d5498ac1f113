"""The harness catches what it is there to catch, and says so; and it lets pass what is right."""

from __future__ import annotations

import itertools
import math
import re
import sys
from math import inf

import mpmath
import numpy as np
import pytest

import varmat as vm
from varmat.core.errors import positive
from varmat.core.tape import current_tape
from varmat.core.variables import ARRAYS, ArrayMethods
from varmat.testing import Report, Tolerances, expect_ad, expect_ad_matvar, expect_value
from varmat.testing.differences import OutsideDomainError, sizes_at, slope

A = np.array([0.7, -1.3, 2.1])
B = np.array([1.9, 0.4, -0.6])
M = np.array([[0.5, 1.5, -2.5], [3.0, -0.25, 1.0]])


@pytest.fixture(autouse=True)
def own_tables(monkeypatch):
    """The operations of these tests are wrong: nobody else shall find them in the tables."""
    for path in ("operation.OPERATIONS", "elementwise.ROWS", "dispatch.SUPPORTED"):
        module, name = path.split(".")
        table = getattr(sys.modules[f"varmat.core.{module}"], name)
        monkeypatch.setattr(f"varmat.core.{path}", dict(table))


def make(value, reverse, tangent=None, **settings):
    """An operation called `op` from its rules."""
    value.__name__ = "op"
    op = vm.operation(**settings)(value)
    op.reverse(reverse)
    if tangent is not None:
        op.tangent(tangent)
    return op


def square_reverse(g, r, x):
    return 2.0 * g * x


def square_tangent(r, x):
    return lambda t: 2.0 * x * t


def square(reverse=square_reverse, tangent=square_tangent, value=lambda x: np.square(x), **settings):
    return make(value, reverse, tangent, **settings)


def product_reverse(g, r, x, y):
    return lambda: g * y, lambda: g * x


def product_tangent(r, x, y):
    return lambda t: t * y, lambda t: x * t


def product(reverse=product_reverse, tangent=product_tangent, value=lambda x, y: np.multiply(x, y)):
    return make(value, reverse, tangent)


def on_arrays(adjoint, value=np.square):
    """The square, with a callback of one's own where it is called on an array variable."""

    def f(x):
        if type(x) not in ARRAYS:
            return x * x
        return vm.make_callback_var(value(x.val), lambda result: adjoint(x, result))

    return f


def scaled_adjoint(x, result, factor=2.0):
    x.adj += factor * x.val * result.adj


# What is wrong, case by case: a maker of the function, its arguments, and what the failure says.


def wrong_sign():
    return square(lambda g, r, x: -2.0 * g * x)


def wrong_row():
    return vm.elementwise("wrong_row", np.frompyfunc(np.sin, 1, 1), "g * sin(x)", scalar=np.sin)


def assigned_not_added():
    def adjoint(x, result):
        x.adj = 2.0 * x.val * result.adj

    return on_arrays(adjoint)


def wrong_at_second_use():
    def adjoint(x, result):
        scaled_adjoint(x, result, 2.0 if not np.any(x.adj) else 2.5)

    return on_arrays(adjoint)


def wrong_at_second_pass():
    passes = []

    def adjoint(x, result):
        passes.append(1)
        scaled_adjoint(x, result, 1.0 + len(passes))

    return on_arrays(adjoint)


def missing_broadcast_sum():
    def f(a, b):
        if type(a) not in ARRAYS or type(b) not in ARRAYS:
            return a * b

        def adjoint(result):
            a.adj += result.adj * b.val
            b.adj += result.adj * a.val

        return vm.make_callback_var(a.val * b.val, adjoint)

    return f


def first_row_for_broadcast_sum():
    return product(lambda g, r, x, y: (lambda: g * y, lambda: (g * x)[0]))


def forgotten_operand():
    return product(lambda g, r, x, y: (lambda: g * y, lambda: np.zeros(y.shape)))


def wrong_if_other_is_constant():
    def f(a, b):
        row = wrong_sign() if not isinstance(b, ArrayMethods) and isinstance(a, ArrayMethods) else np.square
        return row(a) * b

    return f


def wrong_if_the_same():
    return product(lambda g, r, x, y: (lambda: g * y, lambda: 0.0 * g if x is y else g * x))


def wrong_tangent():
    return square(tangent=lambda r, x: lambda t: np.where(np.arange(3) == 1, 3.0, 2.0) * x * t)


def wrong_with_directions():
    return square(tangent=lambda r, x: lambda t: 2.0 * x * (t if np.ndim(t) == np.ndim(x) else t[:1] + 0.0 * t), stacked=True)


def derivative_lost_in_tangent():
    return square(tangent=lambda r, x: lambda t: 2.0 * vm.value(x) * t)


def asymmetric_second_derivative():
    return product(tangent=lambda r, x, y: (lambda t: t * vm.value(y), lambda t: x * t))


def no_tangent():
    return square(tangent=None)


def no_reverse():
    return vm.operation()(lambda x: x**2)


def raises_in_reverse():
    def reverse(g, r, x):
        raise KeyError("lost")

    return square(reverse)


def operand_written():
    def value(x):
        x += 1.0
        return x * x

    return square(value=value)


def result_is_view():
    return make(lambda x: x[:], lambda g, r, x: g, lambda r, x: lambda t: t)


def other_value_with_variables():
    return lambda x: x * x if not isinstance(x, ArrayMethods) else x * x + 1e-9


def other_shape_with_variables():
    return lambda x: x * x if type(x) not in ARRAYS else np.square(x)[:1]


def other_number_of_results():
    return lambda x: (x * x, x) if type(x) not in ARRAYS else (x * x,)


def variable_without_variables():
    return lambda x: vm.Dual(x, x)


def reads_memory_order():
    def value(x):
        return np.multiply(x.ravel("K").reshape(x.shape), 2.0) if x.ndim else 2.0 * x

    return make(value, lambda g, r, x: 2.0 * g, lambda r, x: lambda t: 2.0 * t)


def not_a_number_by_mask():
    return square(lambda g, r, x: 2.0 * g * x * (0.0 * np.log(np.maximum(x, 0.0)) + 1.0))


FD = "reverse mode and finite difference of the value disagree: "
WRONG = [
    (wrong_sign, (A,), FD + r"f\(VarMat \(3,\)\): the gradient with respect to argument 0\[\d\] is .* the second is the finite"),
    (wrong_sign, (0.5,), FD + r"f\(Var\): the gradient with respect to argument 0 is .*, forward mode gives 1"),
    (wrong_row, (A,), FD),
    (first_row_for_broadcast_sum, (M, B), FD + r".*respect to argument 1\["),
    (forgotten_operand, (A, B), FD + r".*respect to argument 1\["),
    (wrong_if_other_is_constant, (A, B), FD + r"f\(VarMat \(3,\), data \(3,\)\)"),
    (not_a_number_by_mask, (A,), FD + ".* is nan against"),
    (missing_broadcast_sum, (M, B), r"f\(VarMat \(2, 3\), VarMat \(3,\)\): it raises ValueError .* where there is a value"),
    (assigned_not_added, (A,), r"reverse mode and twice that of one use disagree: two uses, f \+ f, of f\(VarMat \(3,\)\)"),
    (wrong_at_second_use, (A,), "reverse mode and twice that of one use disagree"),
    (wrong_at_second_pass, (A,), "reverse mode and a second reverse pass disagree"),
    (wrong_if_the_same, (A, B), "the sum of the two gradients disagree: argument 0 passed as argument 1 too in f"),
    (wrong_tangent, (A,), r"forward mode and reverse mode disagree: f\(VarMat.*most for argument 0\[1\]: forward mode gives"),
    (wrong_with_directions, (A,), "forward mode in 3 directions at once and forward mode in one disagree.*tangent 1 of result 0"),
    (derivative_lost_in_tangent, (A,), "Hessian times vector and finite difference of the reverse gradient disagree"),
    (asymmetric_second_derivative, (A, B), "<u, Hv> and <v, Hu> disagree"),
    (no_tangent, (A,), "forward mode and plain NumPy disagree.*raises TypeError.*no tangent rule"),
    (no_reverse, (A,), "it raises TypeError .*has no reverse rule, so there is no gradient"),
    (raises_in_reverse, (A,), r"it raises KeyError \('lost'\) where there is a value"),
    (operand_written, (A,), "reverse mode.*argument 0 was changed by the call"),
    (result_is_view, (A,), "the result shares memory with argument 0, but is not a view of it"),
    (reads_memory_order, (M,), r"disagree: (reversed|transposed|strided) views in f\(VarMat \(2, 3\)\)"),
    (other_value_with_variables, (A,), r"value in reverse mode and plain NumPy disagree.*value 0\[\d\] is"),
    (other_shape_with_variables, (A,), r"the result has shape \(1,\), but that of plain NumPy has \(3,\)"),
    (other_number_of_results, (A,), "there are 2 results by plain NumPy, but 1 with variables"),
    (variable_without_variables, (A,), "without variables a result is a Dual, but must be plain"),
]


@pytest.mark.parametrize(("maker", "args", "message"), WRONG, ids=[f"{row[0].__name__}-{len(row[1])}" for row in WRONG])
def test_wrong_operation_is_caught(maker, args, message):
    with pytest.raises(AssertionError, match=message), np.errstate(all="ignore"):
        expect_ad(maker(), *args)


def matvar_value_off():
    return lambda x: x * x if not isinstance(x, vm.MatVar) else x * x * (1.0 + 1e-7)


def matvar_gradient_off():
    return lambda x: x * x if not isinstance(x, vm.MatVar) else x * x + (x - x.val) * 1e-7


def varmat_from_matvar():
    return lambda x: vm.to_varmat(x) * 2.0


def varmat_from_matvar_and_scalar():
    return lambda x, y: (vm.to_varmat(x) if isinstance(x, vm.MatVar) and isinstance(y, vm.Var) else x) * y


def matvar_from_varmat():
    return lambda x, y: vm.to_matvar(vm.to_varmat(x) * vm.to_varmat(y))


def raises_for_matvar():
    return square(value=lambda x: x * x if x.dtype == float else [][0], native=True)


WRONG_MATVAR = [
    (matvar_value_off, (A,), r"value with matvar and plain NumPy disagree: f\(MatVar \(3,\)\): value 0\[\d\]"),
    (matvar_gradient_off, (A,), "gradient with matvar and varmat disagree.*respect to argument 0"),
    (varmat_from_matvar, (A,), r"the rule that with matvars only it is a MatVar disagree: f\(MatVar.*: result 0 is a VarMat"),
    (varmat_from_matvar_and_scalar, (A, 2.0), r"only it is a MatVar disagree: f\(MatVar \(3,\), Var\): result 0 is a VarMat"),
    (matvar_from_varmat, (A, B), r"with a varmat among the arguments it is a VarMat disagree: f\(VarMat \(3,\), MatVar \(3,\)\)"),
    (raises_for_matvar, (A,), "matvar and plain NumPy disagree.*raises IndexError"),
]


@pytest.mark.parametrize(("maker", "args", "message"), WRONG_MATVAR, ids=[row[0].__name__ for row in WRONG_MATVAR])
def test_wrong_matvar_is_caught(maker, args, message):
    with pytest.raises(AssertionError, match=message):
        expect_ad_matvar(maker(), *args)


def checked(check):
    """The square of a positive argument, checked as told."""

    def f(x):
        check(x)
        return x * x

    return f


def refuse(x):
    positive.check("f", "x", vm.value(x))


def refuse_data_only(x):
    if isinstance(x, np.ndarray) and x.dtype == float:
        refuse(x)


def refuse_otherwise(x):
    if isinstance(x, np.ndarray) and x.dtype == float:
        refuse(x)
    raise RuntimeError("otherwise")


def refuse_in_other_words(x):
    positive.check("f" if isinstance(x, np.ndarray) else "g", "x", vm.value(x))


def refuse_too_late(x):
    np.square(x)
    refuse(x)


REFUSALS = [
    (refuse_data_only, r"disagree: f\(VarMat \(3,\)\): it gives a result where DomainError must be raised \(f: x"),
    (refuse_otherwise, r"it raises RuntimeError \(otherwise\) and not DomainError \(f: x\[1\] is -1.3, but must be positive!\)"),
    (refuse_in_other_words, r"it says 'g: x\[1\] is -1.3, but must be positive!' and not 'f: x"),
    (refuse_too_late, r"the failed call left \['square'\] on the tape"),
]


@pytest.mark.parametrize(("check", "message"), REFUSALS, ids=[row[0].__name__ for row in REFUSALS])
def test_wrong_refusal_is_caught(check, message):
    with pytest.raises(AssertionError, match=message):
        expect_ad(checked(check), A)


@pytest.mark.parametrize("expect", [expect_ad, expect_ad_matvar])
def test_same_refusal_everywhere_passes(expect):
    assert expect(checked(refuse), A).errors == {}
    assert expect(np.add, A, M[:, :2]).errors == {}


RIGHT = [
    (np.multiply, (2.0, A)),
    (np.multiply, (M, A)),
    (np.divide, (M, np.array([[2.0], [0.5]]))),
    (np.power, (np.abs(A), 2.5)),
    (np.exp, (-0.3,)),
    (np.exp, (np.array(0.3),)),
    (np.log, (np.array([1e-10, 1e-3, 1e8]),)),
    (np.log, (np.array([0.0, 1.0]),)),
    (np.log, (np.array([np.nan, np.inf, -1.0]),)),
    (np.sqrt, (0.0,)),
    (np.sin, (1e3,)),
    (np.exp, (np.zeros((0, 3)),)),
    (np.multiply, (np.zeros((0, 3)), A)),
    (lambda x, n: x**n, (A, 3)),
    (lambda x, i: x[i] * x[i], (A, np.array([2, 0, 2]))),
    (lambda x, order: x if order is None else np.exp(x), (A, "name")),
    (lambda x, y: (x * y, np.exp(x), 2.0, x), (A, 1.5)),
    (lambda a, b, c, d, e: a * b + c * d * e, (0.1, A, B, M, 2.0)),
    (lambda x: np.shape(x), (A,)),
    (np.multiply, (np.linspace(0.5, 2.0, 40_000), 0.5)),
    (lambda x: np.where(x > 0.0, np.log(np.where(x > 0.0, x, 1.0)), x), (np.array([-1.0, 1e-300, 0.5]),)),
]


@pytest.mark.parametrize(("f", "args"), RIGHT, ids=range(len(RIGHT)))
def test_right_operations_pass(f, args):
    entries = len(current_tape())
    assert expect_ad(f, *args).worst < 1e-12
    assert expect_ad_matvar(f, *args).worst < 1e-12
    assert len(current_tape()) == entries


def test_every_mixture_is_run():
    seen = set()

    def f(*args):
        seen.add(tuple(type(x).__name__ for x in args))
        return math.prod(args)

    expect_ad(f, A, 2.0)
    assert {("VarMat", "Var"), ("VarMat", "float"), ("ndarray", "Var"), ("View", "Var"), ("Dual", "Dual")} <= seen
    seen.clear()
    expect_ad_matvar(f, A, B, A)
    assert {kinds for kinds in itertools.product(("MatVar", "VarMat", "ndarray"), repeat=3) if "MatVar" in kinds} <= seen


def test_kinks_need_no_finite_difference():
    def right_sign(x):  # the right derivative at zero
        return np.where(vm.value(x) >= 0.0, 1.0, -1.0)

    kinked = square(lambda g, r, x: g * right_sign(x), lambda r, x: lambda t: t * right_sign(x), lambda x: np.abs(x))
    at_kink = np.array([0.0, 1.0])
    with pytest.raises(AssertionError, match="finite difference of the value"):
        expect_ad(kinked, at_kink)
    report = expect_ad(kinked, at_kink, tolerances=Tolerances(finite_difference=inf))
    assert not any("finite difference of the value" in name for name in report.errors)


@pytest.mark.parametrize(("switch", "missing"), [("forward", "forward mode"), ("forward", "Hv"), ("hessian", "Hv")])
def test_infinite_tolerance_leaves_out(switch, missing):
    f = no_tangent() if switch == "forward" else np.exp
    assert not any(missing in name for name in expect_ad(f, A, tolerances=Tolerances(**{switch: inf})).errors)


def test_tolerances_are_those_that_are_given():
    assert expect_ad_matvar(matvar_value_off(), A, tolerances=Tolerances(matvar=1e-6)).worst > 1e-8
    assert expect_ad(other_value_with_variables(), A, tolerances=Tolerances(value=1e-7, rounding=1e-8)).worst > 1e-10


def test_point_that_cannot_be_moved():
    def symmetric_only(a):
        plain = vm.value(a.val if isinstance(a, vm.Dual) else a)
        if not np.array_equal(plain, plain.T):
            raise vm.DomainError("a is not symmetric")
        return a * a

    with pytest.raises(AssertionError, match=r"move argument 0\[0, 1\] out of the domain \(a is not symmetric\)"):
        expect_ad(symmetric_only, np.eye(2))


def test_large_arrays_are_sampled():
    calls = []

    def f(x):
        calls.append(1)
        return x * x

    expect_ad(f, np.linspace(0.5, 2.0, 1000), tolerances=Tolerances(hessian_finite_difference=inf))
    assert len(calls) < 2500  # and not 16 for every element


def test_report_prints_its_figures():
    report = Report({"a / b": 1e-14, "a / finite difference of b": 1e-7})
    assert report.worst == 1e-14
    assert re.search(r"a / b +1\.0e-14", str(report))


SLOPES = [
    (np.sin, 0.3, np.cos(0.3)),
    (np.exp, 1e-10, 1.0),
    (np.log, 1e-10, 1e10),
    (np.log, 1e8, 1e-8),
    (lambda x: np.sin(100.0 * x), 0.2, 100.0 * np.cos(20.0)),
    (lambda x: 1e4 + np.sin(200.0 * x), 0.2, 200.0 * np.cos(40.0)),
    (np.abs, 1e-300, 1.0),
    (np.reciprocal, 1e-100, -1e200),
    (lambda x: np.remainder(x, 0.7), 1e6, 1.0),
    (lambda x: np.log(1.0 - x), 0.9999999, -1.0 / (1.0 - 0.9999999)),
    (lambda x: 3.0, 0.5, 0.0),
    (lambda x: np.array([x * x, x**3]), 2.0, np.array([4.0, 12.0])),
]


@pytest.mark.parametrize(("f", "x", "derivative"), SLOPES, ids=range(len(SLOPES)))
def test_slope_knows_its_error(f, x, derivative):
    estimate, error = slope(lambda h: f(x + h), sizes_at(x))
    assert np.all(np.abs(estimate - derivative) <= 3.0 * error)
    assert np.all(error <= 1e-6 * np.abs(derivative) + 1e-10)


def test_slope_refuses_outside_domain():
    def refuse_all(h):
        raise ValueError("outside")

    with pytest.raises(OutsideDomainError, match="outside"):
        slope(refuse_all, (1.0,))


VALUES = [
    (np.log1p, "log1p(x)", [1e-10, 0.5, 3.0]),
    (np.multiply, "x * y", [(0.1, -3.0), (2.0, 1e-200)]),
    (np.exp, lambda x: mpmath.exp(x), [-700.0, 0.0, 700.0]),
    (lambda x, n: x**n, "x ** y", [(1.5, 3), (-0.2, 3)]),
    (np.log, "log(x)", []),
]


@pytest.mark.parametrize(("f", "reference", "points"), VALUES, ids=range(len(VALUES)))
def test_expect_value_passes(f, reference, points):
    report = expect_value(f, reference, points)
    assert report.worst < 1e-15 * 3
    assert set(report.errors) == ({"Var / 50-digit reference", "VarMat / 50-digit reference"} if points else set())


def wrong_for_arrays(x):
    return np.exp(x) if isinstance(x, vm.Var) else np.exp(x) * (1.0 + 1e-11)


WRONG_VALUES = [
    (lambda x: np.exp(x) - 1.0, "expm1(x)", 1e-10, r"Var and 50-digit reference disagree: <lambda>\(1e-10\): the value is"),
    (lambda x: x * vm.value(x), "x * x", 1.5, "the derivative with respect to argument 0 is 1.5 against 3, off by 1.5"),
    (wrong_for_arrays, "exp(x)", 1.0, r"VarMat and 50-digit reference disagree: arrays of 1 points: the value\[0\] is"),
]


@pytest.mark.parametrize(("f", "reference", "point", "message"), WRONG_VALUES, ids=range(len(WRONG_VALUES)))
def test_expect_value_catches(f, reference, point, message):
    with pytest.raises(AssertionError, match=message):
        expect_value(f, reference, [point])


def test_expect_value_of_a_sum():
    total = make(lambda x: np.add.reduce(np.ravel(np.square(x))), lambda g, r, x: 2.0 * g * x)
    assert expect_value(total, "x * x", [0.1, 0.2, 0.3]).worst < 1e-15


def test_expect_value_refuses_complex_reference():
    with pytest.raises(ValueError, match="the reference is complex there"):
        expect_value(np.exp, "log(x)", [-1.0])


def test_expect_value_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpmath", None)
    with pytest.raises(ImportError, match=r"pip install varmat\[test\]"):
        expect_value(np.exp, "exp(x)", [1.0])


@pytest.mark.parametrize("expect", [expect_ad, expect_ad_matvar])
def test_mistakes_in_the_function_are_no_refusals(expect):
    with pytest.raises(AttributeError, match="sinn"):
        expect(lambda x: np.sinn(x), np.ones(2))
    with pytest.raises(NameError, match="undefined"):
        expect(lambda x: undefined(x), np.ones(2))  # noqa: F821
    with pytest.raises(TypeError, match="not callable"):
        expect(3.0, np.ones(2))
