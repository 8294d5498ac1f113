"""jvp, gradient_dot_vector, partial_derivative."""

import copy

import numpy as np
import pytest
from comparing import close, equal, refuses
from recordings import assert_same

import varmat as vm
from varmat.testing import expect_ad


def test_jvp_is_the_jacobian_times_a_vector():
    x, v = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, -1.0])
    value, tangent = vm.jvp(lambda x: np.sin(x) * x[0], (x,), (v,))
    close(value, np.sin(x) * 0.5, 1e-15)
    close(tangent, np.cos(x) * v * 0.5 + np.sin(x) * v[0], 1e-14)
    assert type(tangent) is np.ndarray
    assert tangent.base is None


def test_jvp_of_structures():
    primals = ({"a": 2, "b": [np.ones(2)]}, 3.0)
    tangents = ({"b": [np.array([1.0, 0.0])], "a": 1}, 0)

    def f(p, y):
        return {"out": (p["a"] * p["b"][0] * y, p["a"]), "constant": np.zeros(2), "one": 1}

    value, tangent = vm.jvp(f, primals, tangents)
    assert_same(value, {"out": (np.full(2, 6.0), 2.0), "constant": np.zeros(2), "one": 1.0})
    assert_same(tangent, {"out": (np.array([9.0, 3.0]), 1.0), "constant": np.zeros(2), "one": 0.0})


def test_jvp_and_vjp_are_adjoint():
    rng = np.random.default_rng(3)
    x, v, w = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(4, 3))

    def f(x):
        return np.exp(np.sin(x) - x[0]).T * np.sum(x)

    value, tangent = vm.jvp(f, (x,), (v,))
    other, pullback = vm.vjp(f, x)
    close(value, other, 1e-15)
    close(np.sum(w * tangent), np.sum(pullback(w)[0] * v), 1e-13)


def test_inputs_are_not_changed():
    x, v = np.ones(3), np.arange(3.0)

    def f(x):
        x[0] = x[1] * 5.0
        return x

    value, tangent = vm.jvp(f, (x,), (v,))
    equal(value, [5.0, 1.0, 1.0])
    equal(tangent, [5.0, 1.0, 2.0])
    equal(x, np.ones(3))
    equal(v, np.arange(3.0))


@pytest.mark.parametrize(("primals", "tangents", "error", "message"), [
    (np.ones(2), (np.ones(2),), TypeError,
        "jvp: primals is a ndarray, but must be a tuple or list of the arguments!"),
    ((np.ones(2),), (np.ones(3),), vm.ShapeError,
        r"jvp: tangents\[0\] has shape \(3,\), but must have shape \(2,\)!"),
    ((np.ones(2),), (), vm.ShapeError,
        "jvp: tangents is a sequence of length 0, but must be a sequence of length 1!"),
    (({"a": 1.0},), ({"b": 1.0},), vm.ShapeError,
        r"jvp: tangents\[0\] is a dict with the keys \[\"'b'\"\]"),
    ((1.0,), (1j,), TypeError, r"jvp: tangents\[0\] has dtype complex128"),
])  # fmt: skip
def test_jvp_refuses_what_does_not_fit(primals, tangents, error, message):
    refuses(error, f"^{message}", vm.jvp, lambda x: x, primals, tangents)


def test_gradient_dot_vector():
    x, v = np.array([0.5, -1.0]), np.array([2.0, 3.0])

    def f(x, a=1.0, *, b=0.0):
        return a * np.sum(np.exp(x)) + b

    close(vm.gradient_dot_vector(f, x, v, 2.0, b=1.0), 2 * np.exp(x) @ v, 1e-15)
    assert vm.gradient_dot_vector(lambda x: 1.0, x, v) == 0.0
    assert vm.gradient_dot_vector(lambda p: p[0] * p[1], (2.0, 3.0), (1.0, 10.0)) == 23.0
    for call, error, message in [
        (lambda: vm.gradient_dot_vector(np.sin, x, v), vm.ShapeError,
         r"^gradient_dot_vector: the result has shape \(2,\), but must be a scalar"),
        (lambda: vm.gradient_dot_vector(f, x, np.ones(3)), vm.ShapeError,
         r"^gradient_dot_vector: v has shape \(3,\), but must have shape \(2,\)!"),
    ]:  # fmt: skip
        refuses(error, message, call)


@pytest.mark.parametrize(("x", "n", "expected"), [
    (np.array([2.0, 3.0]), 0, 6.0),
    (np.array([2.0, 3.0]), -1, 4.0),
    ([2, 3], 1, 4.0),
    (np.array([[2.0], [3.0]]), (1, 0), 4.0),
])  # fmt: skip
def test_partial_derivative(x, n, expected):
    found = vm.partial_derivative(lambda x, a, *, b: a * np.prod(x) + b, x, n, 2.0, b=1.0)
    assert found == expected


def test_partial_derivative_of_a_scalar_and_refusals():
    assert vm.partial_derivative(lambda x: x**3, 2.0, ()) == 12.0
    refuses(IndexError, None, vm.partial_derivative, np.sum, np.ones(2), 2)
    message = r"^partial_derivative: n is 0, but must be the index of one element in the shape"
    refuses(IndexError, message, vm.partial_derivative, np.sum, np.ones((2, 2)), 0)
    with pytest.raises(vm.ShapeError, match=r"^partial_derivative: the result has shape"):
        vm.partial_derivative(np.sin, np.ones(2), 0)


def test_results_must_be_numbers():
    refuses(TypeError, r"^jvp: the result is None", vm.jvp, lambda x: None, (1.0,), (1.0,))
    with vm.nested():
        assert type(vm.gradient_dot_vector(np.square, vm.var(3.0), 1.0)) is vm.Var


def test_recordings_of_the_function_itself_stay_in_a_scope():
    """A reverse pass inside the function does not touch the variables outside, and leaves nothing
    on their tape.
    """

    def f(x):
        z = vm.var(3.0)
        (z * z).grad()
        return np.sum(x) * z.adj * np.ones(40)

    with vm.nested() as tape:
        w, x = vm.var([1.0, 2.0]), np.ones(2)
        np.sum(w * w).grad()
        entries = len(tape)
        assert vm.jvp(f, (x,), (x,))[1].tolist() == [12.0] * 40
        assert vm.gradient_dot_vector(lambda x: f(x)[0], x, x) == 12.0
        assert vm.partial_derivative(lambda x: f(x)[0], x, 1) == 6.0
        assert vm.jacobian(f, x).tolist() == [[6.0, 6.0]] * 40
        assert (w.adj.tolist(), len(tape)) == ([2.0, 4.0], entries)


@pytest.mark.parametrize("functional", [
    lambda f, x: vm.jvp(f, (x,), (x,)), lambda f, x: vm.gradient_dot_vector(f, x, x),
    lambda f, x: vm.partial_derivative(f, x, 0),
])  # fmt: skip
def test_callbacks_of_the_reverse_pass_are_refused(functional):
    def f(x):
        y = x * 1.0
        vm.reverse_pass_callback(lambda: None)
        return np.sum(y)

    message = r"^\w+: the function uses reverse_pass_callback, which has no tangent rule"
    refuses(TypeError, message, functional, f, np.ones(2))


@pytest.mark.parametrize("f", [
    np.linalg.eigvalsh, lambda x: np.linalg.eigh(x)[0], lambda x: np.linalg.svd(x)[1],
    lambda x: np.full_like(x, x[0, 0])[0],
])  # fmt: skip
def test_results_of_one_element_can_be_assigned_to(f):
    """NumPy may return a read-only view, for example a diagonal. Our result can still be assigned
    to.
    """

    def doubled(x):
        e = f(x)
        e[0] = e[0] * 2.0
        return np.sum(e)

    expect_ad(doubled, np.array([[2.0]]))


def ones(x):
    return np.ones(np.shape(x))[()]


FORWARD = {
    "jvp": lambda f, x: vm.jvp(f, (x,), (ones(x),))[1],
    "gradient_dot_vector": lambda f, x: vm.gradient_dot_vector(f, x, ones(x)),
    "hessian": lambda f, x: vm.hessian(f, x),
    "hessian_times_vector": lambda f, x: vm.hessian_times_vector(f, x, ones(x)),
}  # fmt: skip
every_forward_functional = pytest.mark.parametrize("functional", FORWARD.values(), ids=FORWARD)


@every_forward_functional
@pytest.mark.parametrize(("mixed", "tangent"), [
    (lambda p, d: np.sum(p) ** 2 * d**2, lambda p: 6.0 * p**2),
    (lambda p, d: np.sum(p) ** 2 * np.sum(np.stack([d, np.sum(p)])) * d,
        lambda p: p**2 * (6.0 + p)),
    (lambda p, d: np.sum(p) ** 2 * np.where(p > 0.0, d, p), lambda p: p**2),
    (lambda p, d: np.sum(np.zeros_like(p) + d) * np.sum(p) ** 2, lambda p: p**2),
], ids=["product", "stack", "where", "zeros_like"])  # fmt: skip
def test_duals_made_by_hand_are_not_mixed_with_those_of_a_functional(functional, mixed, tangent):
    """What a function reads from the `tan` of such a dual is differentiated, wherever the dual was
    made.
    """
    from_outside = vm.Dual(3.0, 1.0)
    for d in (lambda: vm.Dual(3.0, 1.0), lambda: from_outside):
        found = functional(lambda p, d=d: mixed(p, d()).tan, 2.0)
        close(found, functional(tangent, 2.0), 1e-14)


@every_forward_functional
def test_assignments_for_which_a_dual_has_no_place_are_refused(functional):
    def f(p):
        d = vm.Dual(np.array([3.0, 1.0]), np.ones(2))
        d[0] = np.sum(p)
        return np.sum(d).tan

    message = r"^setitem: what is assigned has derivatives that the array has no place for: make "
    refuses(TypeError, message, functional, f, 2.0)


def test_duals_made_by_hand_are_not_mixed_with_those_of_a_jacobian():
    def f(p):
        return np.outer(p, p) * (p[0] * vm.Dual(3.0, 1.0)).tan

    x = np.linspace(1.0, 2.0, 30)
    close(vm.jacobian(f, x), vm.jacobian(lambda p: np.outer(p, p) * p[0], x), 1e-15)


@every_forward_functional
def test_duals_made_by_hand_as_a_result(functional):
    with pytest.raises(vm.TapeError, match=r"^\w+: the result is a Dual that the function created"):
        functional(lambda p: vm.Dual(3.0, 1.0), 2.0)


def test_duals_made_by_hand_beside_those_of_a_functional():
    """A value that is made from duals of the function's own is a constant. A dual whose parts are
    duals is a derivative of its own.
    """

    def slope():
        x = vm.Dual(3.0, 1.0)
        return (x * np.exp(x) / np.exp(x) * x).tan

    for functional, expected in (
        (vm.hessian, 12.0),
        (lambda f, x: vm.jvp(f, (x,), (1.0,))[1], 24.0),
    ):
        close(functional(lambda p: p**2 * slope(), 2.0), expected, 1e-14)
    close(vm.hessian(lambda p: (vm.Dual(p, 1.0) ** 4).tan, 2.0), 48.0, 1e-6)
    assert vm.jvp(lambda p: (vm.Dual(3.0, p) ** 2).tan, (2.0,), (1.0,))[1] == 6.0
    ones = np.ones(2)
    found = vm.jvp(lambda p: np.sum(copy.deepcopy(p) * p + np.zeros_like(p)), (ones,), (ones,))
    assert found == (2.0, 4.0)


def test_functionals_inside_each_other_call_the_function_once():
    calls = []

    def slope(f):
        return vm.jvp(f, (2.0,), (1.0,))[1]

    def cube(z):
        calls.append(z)
        return z**3

    assert vm.jvp(lambda x: x * slope(cube), (3.0,), (1.0,)) == (36.0, 12.0)
    assert len(calls) == 1
    assert vm.jvp(lambda x: slope(lambda z: z * x), (3.0,), (1.0,)) == (3.0, 1.0)
    assert vm.jvp(lambda x: slope(lambda z: x * 2.0), (3.0,), (1.0,)) == (0.0, 0.0)
