"""The harness reports the mistakes that it is meant to catch, and accepts what is right."""

import itertools
import math
from math import inf

import numpy as np
import pytest
from comparing import refuses
from testing.operations import A, B, M, make, matvar_value_off, own_tables, square  # noqa: F401 - own_tables is a fixture

import varmat as vm
from varmat.core.dual import Dual
from varmat.core.tape import current_tape
from varmat.core.variables import ARRAYS, ArrayMethods
from varmat.testing import Tolerances, expect_ad, expect_ad_matvar, routes


def product_reverse(g, r, x, y):
    return lambda: g * y, lambda: g * x


def product_tangent(r, x, y):
    return lambda t: t * y, lambda t: x * t


def product(reverse=product_reverse, tangent=product_tangent, value=lambda x, y: np.multiply(x, y)):
    return make(value, reverse, tangent)


def on_arrays(adjoint, value=np.square):
    """Return the square, computed by a callback if the argument is an array variable."""

    def f(x):
        if type(x) not in ARRAYS:
            return x * x
        return vm.make_callback_var(value(x.val), lambda result: adjoint(x, result))

    return f


def scaled_adjoint(x, result, factor=2.0):
    x.adj += factor * x.val * result.adj


# Functions with one mistake each. WRONG lists their arguments and the expected message.


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
        is_constant = isinstance(a, ArrayMethods) and not isinstance(b, ArrayMethods)
        return (wrong_sign() if is_constant else np.square)(a) * b

    return f


def wrong_if_the_same():
    return product(lambda g, r, x, y: (lambda: g * y, lambda: 0.0 * g if x is y else g * x))


def wrong_tangent():
    return square(tangent=lambda r, x: lambda t: np.where(np.arange(3) == 1, 3.0, 2.0) * x * t)


def wrong_with_directions():
    def tangent(r, x):
        return lambda t: 2.0 * x * (t if np.ndim(t) == np.ndim(x) else t[:1] + 0.0 * t)

    return square(tangent=tangent, stacked=True)


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


def operand_written_by_the_rule():
    def reverse(g, r, x):
        c = 2.0 * g * x
        x += 1.0
        return c

    return square(reverse)


def operand_within_written_by_the_rule():
    op = operand_written_by_the_rule()
    return lambda x: op(2.0 * x)


def result_written_by_the_rule():
    def reverse(g, r, x):
        r *= g
        return 2.0 * r / x

    return square(reverse)


def adjoint_written_by_the_rule():
    def reverse(g, r, x):
        g *= 2.0 * x
        return g.copy()

    return square(reverse)


def adjoint_of_one_of_two_written():
    def reverse(g, r, x):
        if g[0] is None or g[1] is None:
            return 2.0 * x * g[0] if g[1] is None else g[1]
        g[1][...] = 2.0 * x * g[0] + g[1]
        return g[1].copy()

    return make(lambda x: (x * x, x + 1.0), reverse, lambda r, x: lambda t: (2.0 * x * t, t))


def tangent_written():
    def tangent(r, x):
        def push(t):
            t *= 2.0 * x
            return t

        return push

    return square(tangent=tangent)


def kept(function):
    """Return a version of `function` that always returns the same array."""
    arrays = {}

    def again(*args):
        c = function(*args)
        if type(c) is not np.ndarray:
            return c
        arrays.setdefault(c.shape, np.empty(c.shape))[...] = c
        return arrays[c.shape]

    return again


def value_kept():
    value = kept(lambda x: np.square(x))
    return square(value=lambda x: value(x))


def value_within_kept():
    op = value_kept()
    return lambda x: np.exp(-op(x))


def contribution_kept():
    return square(kept(lambda g, r, x: 2.0 * g * x))


def contribution_to_one_operand_kept():
    contribution = kept(lambda g, y: g * y)
    return product(lambda g, r, x, y: (lambda: contribution(g, y), lambda: g * x))


def tangent_kept():
    push = kept(lambda x, t: 2.0 * x * t)
    return square(tangent=lambda r, x: lambda t: push(x, t))


def neighbour_of_infinity():
    """If some element is not finite, all others get twice the right derivative."""
    return square(lambda g, r, x: 2.0 * g * x * (1.0 if np.all(np.isfinite(x)) else 2.0))


def neighbour_of_pole():
    """The reciprocal, whose derivatives are wrong beside an infinite result of finite arguments."""
    return make(
        lambda x: 1.0 / x,
        lambda g, r, x: g * (1.0 if np.any(np.isinf(r)) else -1.0) / (x * x),
        lambda r, x: lambda t: -t / (x * x),
    )


def neighbours_by_mask():
    """One nan makes the whole adjoint nan."""
    return square(lambda g, r, x: 2.0 * g * x + 0.0 * np.sum(x))


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
GRADIENT = "the gradient with respect to argument 0"
TWO_USES = "reverse mode and three times that of one use disagree"
KEPT = "two results are in the same memory: a value function returns what it keeps"
RULE = "the reverse rule of op changes"
FINITE = FD + r"of the finite results of f.* argument 0\["
WRONG = [
    (wrong_sign, (A,),
     FD + rf"f\(VarMat \(3,\)\): {GRADIENT}\[\d\] is .* the second is the finite"),
    (wrong_sign, (0.5,), FD + rf"f\(Var\): {GRADIENT} is .*, forward mode gives 1"),
    (wrong_row, (A,), FD),
    (first_row_for_broadcast_sum, (M, B), FD + r".*respect to argument 1\["),
    (forgotten_operand, (A, B), FD + r".*respect to argument 1\["),
    (wrong_if_other_is_constant, (A, B), FD + r"f\(VarMat \(3,\), data \(3,\)\)"),
    (not_a_number_by_mask, (A,), FD + ".* is nan against"),
    (missing_broadcast_sum, (M, B),
     r"f\(VarMat \(2, 3\), VarMat \(3,\)\): it raises ValueError .* where there is a value"),
    (assigned_not_added, (A,), TWO_USES + r": two uses, f \+ 2 f, of f\(VarMat \(3,\)\)"),
    (wrong_at_second_use, (A,), TWO_USES),
    (wrong_at_second_pass, (A,), "reverse mode and a second reverse pass disagree"),
    (wrong_if_the_same, (A, B),
     "the sum of the two gradients disagree: argument 0 passed as argument 1 too in f"),
    (wrong_tangent, (A,),
     r"forward mode and reverse mode disagree: f\(VarMat.*most for argument 0\[1\]: forward mode"),
    (wrong_with_directions, (A,),
     "forward mode in 3 directions at once and forward mode in one disagree.*tangent 1 of result"),
    (derivative_lost_in_tangent, (A,),
     "Hessian times vector and finite difference of the reverse gradient disagree"),
    (asymmetric_second_derivative, (A, B), "<u, Hv> and <v, Hu> disagree"),
    (no_tangent, (A,), "forward mode and plain NumPy disagree.*raises TypeError.*no tangent rule"),
    (no_reverse, (A,), "it raises TypeError .*has no reverse rule, so there is no gradient"),
    (raises_in_reverse, (A,), r"it raises KeyError \('lost'\) where there is a value"),
    (operand_written, (A,), "reverse mode.*argument 0 was changed by the call"),
    (operand_written_by_the_rule, (A,), f"{RULE} operand 0 in place"),
    (operand_within_written_by_the_rule, (A,), f"{RULE} operand 0 in place"),
    (result_written_by_the_rule, (A,), f"{RULE} the result in place"),
    (adjoint_written_by_the_rule, (A,), f"{RULE} the adjoint of the result in place"),
    (adjoint_of_one_of_two_written, (A,), f"{RULE} the adjoint of the result 1 in place"),
    (tangent_written, (A,), "forward mode.*argument 0, or its tangent, was changed by the call"),
    (value_kept, (A,), KEPT), (value_within_kept, (A,), KEPT),
    (contribution_kept, (A,), TWO_USES), (contribution_to_one_operand_kept, (A, B), TWO_USES),
    (tangent_kept, (A,), "two calls return values or tangents in the same memory"),
    (neighbour_of_infinity, (np.array([np.inf, 1.0]),), FINITE + r"1\]"),
    (neighbour_of_infinity, (np.array([0.5, np.nan, 1.0]),), FINITE),
    (neighbour_of_pole, (np.array([0.0, 1.0]),), FINITE + r"1\]"),
    (neighbours_by_mask, (np.array([np.nan, 1.0]),),
     r"reverse mode with 0.75 for what is not finite disagree.*0\[1\] is nan"),
    (result_is_view, (A,), "the result shares memory with argument 0, but is not a view of it"),
    (reads_memory_order, (M,),
     r"disagree: (reversed|transposed|strided) views in f\(VarMat \(2, 3\)\)"),
    (other_value_with_variables, (A,),
     r"value in reverse mode and plain NumPy disagree.*value 0\[\d\] is"),
    (other_shape_with_variables, (A,),
     r"the result has shape \(1,\), but that of plain NumPy has \(3,\)"),
    (other_number_of_results, (A,), "there are 2 results by plain NumPy, but 1 with variables"),
    (variable_without_variables, (A,), "without variables a result is a Dual, but must be plain"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("maker", "args", "message"), WRONG, ids=[f"{row[0].__name__}-{len(row[1])}" for row in WRONG]
)
def test_wrong_operation_is_caught(maker, args, message):
    with pytest.raises(AssertionError, match=message), np.errstate(all="ignore"):
        expect_ad(maker(), *args)


RIGHT = [
    (np.multiply, (2.0, A)), (np.multiply, (M, A)),
    (np.divide, (M, np.array([[2.0], [0.5]]))),
    (np.power, (np.abs(A), 2.5)), (np.exp, (-0.3,)), (np.exp, (np.array(0.3),)),
    (np.log, (np.array([1e-10, 1e-3, 1e8]),)),
    (np.log, (np.array([0.0, 1.0]),)),
    (np.log, (np.array([np.nan, np.inf, -1.0]),)),
    (np.sqrt, (0.0,)),
    (np.add, (np.array([np.inf, 1.0]), A[:2])),
    (np.logaddexp, (np.array([-np.inf, 1.0]), A[:2])),
    (np.matmul, (np.array([[np.nan, 1.0], [0.5, 2.0]]), A[:2])),
    (np.maximum, (np.array([np.nan, 1.0]), A[:2])),
    (np.max, (np.array([np.nan, 1.0, 2.0]),)),
    (np.fmod, (np.array([np.nan, 1.3]), B[:2])),
    (np.cumsum, (np.array([1.0, np.nan, 2.0]),)),
    (np.reciprocal, (np.array([0.0, 1.0]),)),
    (np.sin, (1e3,)), (np.exp, (np.zeros((0, 3)),)),
    (np.multiply, (np.zeros((0, 3)), A)),
    (lambda x, n: x**n, (A, 3)),
    (lambda x, i: x[i] * x[i], (A, np.array([2, 0, 2]))),
    (lambda x, order: x if order is None else np.exp(x), (A, "name")),
    (lambda x, y: (x * y, np.exp(x), 2.0, x), (A, 1.5)),
    (lambda a, b, c, d, e: a * b + c * d * e, (0.1, A, B, M, 2.0)),
    (lambda x: np.shape(x), (A,)),
    (np.multiply, (np.linspace(0.5, 2.0, 40_000), 0.5)),
    (lambda x: np.where(x > 0.0, np.log(np.where(x > 0.0, x, 1.0)), x),
     (np.array([-1.0, 1e-300, 0.5]),)),
]  # fmt: skip


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
    expected = "VarMat Var, VarMat float, ndarray Var, View Var, Dual Dual"
    assert {tuple(each.split()) for each in expected.split(", ")} <= seen
    seen.clear()
    expect_ad_matvar(f, A, B, A)
    one_is_odd = itertools.product(range(3), ("MatVar", "VarMat", "ndarray"))
    assert {("MatVar",) * i + (odd,) + ("MatVar",) * (2 - i) for i, odd in one_is_odd} <= seen


def test_kinks_need_no_finite_difference():
    def right_sign(x):  # the right-hand derivative at zero
        return np.where(vm.value(x) >= 0.0, 1.0, -1.0)

    kinked = square(
        lambda g, r, x: g * right_sign(x),
        lambda r, x: lambda t: t * right_sign(x),
        lambda x: np.abs(x),
    )
    at_kink = np.array([0.0, 1.0])
    refuses(AssertionError, "finite difference of the value", expect_ad, kinked, at_kink)
    report = expect_ad(kinked, at_kink, tolerances=Tolerances(finite_difference=inf))
    assert not any("finite difference of the value" in name for name in report.errors)


@pytest.mark.parametrize(
    ("switch", "missing"), [("forward", "forward mode"), ("forward", "Hv"), ("hessian", "Hv")]
)
def test_infinite_tolerance_leaves_out(switch, missing):
    f = no_tangent() if switch == "forward" else np.exp
    report = expect_ad(f, A, tolerances=Tolerances(**{switch: inf}))
    assert not any(missing in name for name in report.errors)


def test_tolerances_are_those_that_are_given():
    assert expect_ad_matvar(matvar_value_off(), A, tolerances=Tolerances(matvar=1e-6)).worst > 1e-8
    tolerances = Tolerances(value=1e-7, rounding=1e-8)
    assert expect_ad(other_value_with_variables(), A, tolerances=tolerances).worst > 1e-10


def test_point_that_cannot_be_moved():
    def symmetric_only(a):
        plain = vm.value(a.val if isinstance(a, vm.Dual) else a)
        if not np.array_equal(plain, plain.T):
            raise vm.DomainError("a is not symmetric")
        return a * a

    message = r"move argument 0\[0, 1\] out of the domain \(a is not symmetric\)"
    refuses(AssertionError, message, expect_ad, symmetric_only, np.eye(2))


def test_second_derivatives_of_recordings_are_compared(monkeypatch):
    original = routes.recording

    def off(case, mixture, weights, directions=None, runners=()):
        run = original(case, mixture, weights, directions, runners)

        def scaled(there):
            value, gradient = run(there)
            return value, {i: 1.001 * g for i, g in gradient.items()}

        return run if directions is None else scaled

    expect_ad(np.sin, 0.3)
    monkeypatch.setattr(routes, "recording", off)
    message = "a recording made elsewhere and Hessian times vector disagree"
    refuses(AssertionError, message, expect_ad, np.sin, 0.3)


@pytest.mark.parametrize("compiles", [True, False])
def test_machine_code_of_the_hessian_is_an_argument(compiles, monkeypatch):
    original, found = routes.recording, []

    def noted(case, mixture, weights, directions=None, runners=()):
        if directions is not None:
            found.append(tuple(runners) == routes.RUNNERS)
        return original(case, mixture, weights, directions, runners)

    monkeypatch.setattr(routes, "recording", noted)
    expect_ad(np.multiply, 0.3, 0.7, compile_hessian=compiles)
    assert found == [compiles]


@pytest.mark.parametrize(("choice", "args"), [
    (lambda x: x > 0.2, (0.7,)),  # negated
    (lambda x, y: x > y, (0.7, 0.3)),
    (lambda x: x[0] > x[1], (np.array([0.7, 0.3]),)),
    (lambda x: x > 2.0, (np.float64(0.7) ** -2,)),
    (lambda x: x[0] > np.sum(x) / 2.0, (np.array([0.7, 0.3]),)),
])  # fmt: skip
def test_a_recording_that_freezes_a_choice_is_found(choice, args):
    def hidden(x):  # a look at a value that no recording sees
        x = x.val if isinstance(x, Dual) else x
        return getattr(x, "_val", x)

    def branches(x):
        first = x if np.ndim(x) == 0 else x[0]
        return first**2, 3.0 * first

    def frozen(*args):
        return branches(args[0])[0 if choice(*map(hidden, args)) else 1]

    expect_ad(lambda *args: np.where(choice(*args), *branches(args[0])), *args)
    with pytest.raises(AssertionError, match="at the point where comparisons go the other way"):
        expect_ad(frozen, *args)
