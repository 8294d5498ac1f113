"""Functionals inside each other, in scopes and in threads; what they leave behind; their results;
and variables from outside.
"""

import gc
import operator
import threading
import weakref

import numpy as np
import pytest
from comparing import close, equal, refuses
from core.tapes import state
from recordings import in_threads

import varmat as vm
from varmat.core.tape import current_tape
from varmat.testing import finite_diff_gradient


def ones(x):
    return np.ones(np.shape(x))[()]


FUNCTIONALS = {
    "gradient": lambda f, x: vm.gradient(f, x),
    "value_and_grad": lambda f, x: vm.value_and_grad(f)(x)[1],
    "argnums": lambda f, x: vm.value_and_grad(f, (0,))(x)[1][0],
    "jacobian": lambda f, x: vm.jacobian(f, x),
    "jacobian, tall": lambda f, x: vm.jacobian(lambda x: np.stack([f(x)] * (np.size(x) + 1)), x)[0],
    "hessian": lambda f, x: vm.hessian(f, x),
    "hessian_times_vector": lambda f, x: vm.hessian_times_vector(f, x, ones(x)),
    "jvp": lambda f, x: vm.jvp(f, (x,), (ones(x),))[1],
    "gradient_dot_vector": lambda f, x: vm.gradient_dot_vector(f, x, ones(x)),
    "vjp": lambda f, x: vm.vjp(f, x)[1](1.0)[0],
    "recorded": lambda f, x: vm.recorded(f, runner="numpy")(x)[1],
}  # fmt: skip
every_functional = pytest.mark.parametrize("functional", FUNCTIONALS.values(), ids=FUNCTIONALS)


def big(x):
    return np.sum(np.exp(np.sin(np.broadcast_to(x, (40_000,)) + 0.0)))


@every_functional
def test_nothing_remains(functional):
    def fails(x):
        big(x)
        raise ZeroDivisionError

    def fails_deep_inside(x):
        vm.gradient(lambda z: vm.gradient(fails, 1.0), 1.0)

    with vm.nested():
        vm.var(np.ones(40_000))  # uses the arena, so that the functional starts in the middle of it
        before = state()
        functional(big, 0.5)
        assert state() == before
        for f in (fails, fails_deep_inside):
            refuses(ZeroDivisionError, None, functional, f, 0.5)
            assert state() == before


def test_blocks_are_used_again():
    x = np.linspace(0.0, 1.0, 30_000)
    f = vm.value_and_grad(lambda x: np.sum(np.exp(np.sin(x) * x)))
    f(x)
    arena = current_tape().arena
    blocks = list(map(id, arena._free))
    kept = [f(x) for _ in range(5)]
    assert list(map(id, arena._free)) == blocks
    expected = np.exp(np.sin(x) * x) * (np.cos(x) * x + np.sin(x))
    for _, gradient in kept:
        close(gradient, expected, 1e-13)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(x),                        lambda x: np.sum(x * x),
    lambda x: np.sum(np.exp(x) + x),            lambda x: x[3],
    lambda x: np.sum(x[10:] * 2.0),             lambda x: np.sum(x.reshape(2, -1).T * 3.0),
    lambda x: np.sum(x + np.sum(x)),
])  # fmt: skip
def test_large_results_share_memory_with_nobody(f):
    x = np.linspace(0.0, 1.0, 40_000)
    original = x.copy()
    value, gradient = vm.value_and_grad(f)(x)
    copy, arena = gradient.copy(), current_tape().arena
    parts = [part for b in arena._free + arena._used for part in (b.values, b.adjoints)]
    assert not any(np.shares_memory(gradient, part) for part in (x, *parts))
    assert gradient.flags.owndata
    equal(vm.value_and_grad(f)(x), (value, gradient))
    gradient[:] = -1.0
    vm.gradient(big, 0.1)
    equal(x, original)
    equal(vm.gradient(f, x), copy)


@every_functional
@pytest.mark.parametrize("inner", FUNCTIONALS.values(), ids=FUNCTIONALS)
def test_every_functional_inside_every_other(functional, inner):
    """A functional of plain values inside a function is a constant of the function."""

    def cubic(z):
        return np.sum(z * z * z) / 3.0

    plain = np.sum(inner(cubic, np.array([2.0])))

    def f(x):
        return cubic(x) * np.sum(inner(cubic, np.array([2.0])))

    x = np.array([1.5])
    close(functional(f, x), np.asarray(functional(cubic, x)) * plain, 1e-14)


@every_functional
@pytest.mark.parametrize("outside", [
    lambda: vm.var(2.0), lambda: vm.var(np.ones(3)), lambda: vm.var(np.ones(3))[1:],
    lambda: vm.var(np.ones(3))[1], lambda: vm.matvar([2.0]),
], ids=["Var", "VarMat", "View", "element", "MatVar"])  # fmt: skip
@pytest.mark.parametrize("use", [
    lambda x, c: np.sum(x * c),
    lambda x, c: np.sum(c),
    lambda x, c: np.sum(np.concatenate([np.ravel(x), np.ravel(c)])),
    lambda x, c: np.sum(np.exp(c)) * x,
], ids=["product", "constant", "concatenate", "chain"])  # fmt: skip
def test_variables_from_outside(functional, outside, use):
    """The derivative is a variable that depends on the outer variables. A recording holds constants
    only, so it refuses them.
    """

    def slope(c):
        return functional(lambda x: use(x, c), 0.5)

    with vm.nested():
        c = outside()
        plain = vm.value(c)
        # The plain value of such a variable is a constant.
        expected = slope(plain)
        assert np.isfinite(expected)
        if functional is FUNCTIONALS["recorded"]:
            refusal = (
                r"^\w+: (the function uses a \w+ of shape .* from outside|to_varmat cannot "
                r"be recorded)"
            )
            refuses(vm.TapeError, refusal, slope, c)
            return
        found = slope(c)
        close(vm.value(found), expected, 1e-15)
        assert np.all(np.asarray(c.adj) == 0.0)
        if isinstance(found, vm.Var):
            found.grad()
            flat = finite_diff_gradient(
                lambda v: slope(v.reshape(np.shape(plain))[()]), np.ravel(plain)
            )
            close(np.ravel(c.adj), flat, 1e-6, 1e-9)


@every_functional
def test_variables_from_further_outside(functional):
    with vm.nested():
        c = vm.var(2.0)
        with vm.nested():
            if functional is FUNCTIONALS["recorded"]:
                refuses(vm.TapeError, "from outside", functional, lambda x: np.sum(x * c), 0.5)
            else:
                y = functional(lambda x: np.sum(x**2 * c**3), 0.5)
                y.grad()
                close(c.adj, functional(lambda x: np.sum(x**2 * 12.0), 0.5), 1e-15)
            assert np.isfinite(
                functional(lambda x: np.sum(np.concatenate([np.ravel(x), np.ones(2)])), 0.5)
            )


def test_assigning_a_variable_from_outside():
    with vm.nested():
        c = vm.var(2.0)

        def f(x):
            x[0] = c
            return np.sum(x**2) * x[0]

        y = vm.gradient(f, np.ones(2))
        assert y[1].val == 4.0
        y[1].grad()
        assert c.adj == 2.0


def test_a_variable_from_outside_that_is_no_leaf():
    vm.recover_memory()
    c = vm.make_callback_var(2.0, lambda y: None)
    assert vm.gradient(lambda x: x * c, 1.0).val == 2.0
    vm.recover_memory()


@every_functional
def test_a_functional_that_depends_on_outer_variables(functional):
    """The derivative in x of ``x d/dz (z² x²)`` at ``z = 2``, and the same with a second derivative
    in z.
    """

    def f(x):
        return np.sum(functional(lambda z: np.sum(z * z * x * x), 2.0) * x)

    second = [each for name, each in FUNCTIONALS.items() if "hessian" in name]
    factor = 6.0 if functional in second else 12.0
    for name, outer in FUNCTIONALS.items():
        if functional is FUNCTIONALS["recorded"]:
            refuses((vm.TapeError, TypeError), r"lost|looks at the value", outer, f, 1.5)
        else:
            expected = 2.0 * factor * 1.5 if outer in second else factor * 1.5**2
            assert outer(f, 1.5) == pytest.approx(expected, rel=1e-14), name


@pytest.mark.parametrize(("convert", "x", "is_lost"), [
    (np.asarray, np.ones(3), True), (float, 2.0, True), (float, np.ones(1), True),
    (float, np.ones(3), False), (operator.index, 2.0, False),
])  # fmt: skip
def test_a_conversion_to_plain_numbers_that_the_function_catches(convert, x, is_lost):
    """It is an error, unless plain numbers would not be converted either."""

    def f(x):
        try:
            return np.sum(convert(x))
        except TypeError:
            return np.sum(x)

    if is_lost:
        refuses(TypeError, "^gradient: the function caught this error", vm.gradient, f, x)
    else:
        equal(vm.gradient(f, x), ones(x))


def test_a_stale_variable_as_the_result():
    with vm.nested():
        old = vm.var(1.0)
    for functional in (vm.gradient, vm.jacobian):
        refuses(vm.TapeError, "stale", functional, lambda x: old, 1.0)


def test_eight_threads():
    rng = np.random.default_rng(5)
    points = rng.normal(size=(8, 200))

    def work(k):
        def f(x):
            steep = np.sum(np.exp(np.sin(x) * (k + 1))) + k * np.sum(x[1:] * x[:-1])
            return steep + vm.normal_lpdf(x, 0.1 * k, 1.0 + k)

        x = points[k]
        return [
            vm.value_and_grad(f)(x)[1],
            vm.hessian_times_vector(f, x, np.ones(200)),
            vm.jvp(f, (x,), (x,))[1],
            vm.vjp(f, x)[1](2.0)[0],
            vm.gradient(lambda z: np.sum(np.exp(z) * z), np.linspace(0.0, 0.1 * k, 40_000)),
        ]

    serial, parallel, barrier = [work(k) for k in range(8)], {}, threading.Barrier(8)

    def loop(k):
        barrier.wait()
        parallel[k] = [work(k) for _ in range(4)]
        assert len(current_tape()) == 0

    in_threads(loop, range(8))
    for k in range(8):
        equal(parallel[k], [serial[k]] * 4)


def in_a_scope(f, x):
    with vm.nested():
        f(vm.var(x)).grad()


@pytest.mark.parametrize("use", [*FUNCTIONALS.values(), in_a_scope])
def test_no_array_waits_for_the_collector(use):
    data = np.ones(3)
    alive = weakref.ref(data)
    gc.collect()
    gc.disable()
    try:
        use(lambda x, data=data: np.sum(np.exp(x) * (x + data)), np.zeros(3))
        del data
        assert alive() is None
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(("result", "shape"), [
    (lambda x: x, r"\(3,\)"), (lambda x: x[:1], r"\(1,\)"), (lambda x: np.zeros(2), r"\(2,\)"),
    (lambda x: x.reshape(3, 1) * 2, r"\(3, 1\)"),
])  # fmt: skip
@pytest.mark.parametrize("functional", [vm.grad, lambda f: vm.value_and_grad(f, (0,))])
def test_results_that_are_arrays(result, shape, functional):
    message = f"the result has shape {shape}, but must be a scalar: sum it, or use varmat.jacobian"
    refuses(vm.ShapeError, f"{message} or varmat.vjp!", functional(result), np.ones(3))


@pytest.mark.parametrize(("result", "message"), [
    (lambda x: None, r"is None \(is a return statement missing\?\), but must be real numbers!"),
    (lambda x: 1j, "has dtype complex128, but must be real numbers"),
    (lambda x: "text", "is a str, but must be real numbers!"),
    (lambda x: {"a": x[0]}, "is a dict, but must be real numbers!"),
    (lambda x: len, "is a builtin_function_or_method, but must be real numbers!"),
    (lambda x: (x[0], x[1]), "is a tuple, but must be real numbers!"),
])  # fmt: skip
def test_results_that_are_no_numbers(result, message):
    refuses(TypeError, f"^gradient: the result {message}", vm.gradient, result, np.ones(3))


@pytest.mark.parametrize("constant", [3, 2.0, np.float64(2.0), np.array(2.0)])
def test_value_and_tangent_of_a_constant_are_floats(constant):
    value, tangent = vm.jvp(lambda x: constant, (1.0,), (1.0,))
    assert (type(value), type(tangent), tangent) == (float, float, 0.0)
