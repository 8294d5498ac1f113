"""Functionals inside each other, in scopes and in threads; what they leave behind; their results;
and variables from outside.
"""

import gc
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

FUNCTIONALS = {
    "gradient": lambda f, x: vm.gradient(f, x),
    "value_and_grad": lambda f, x: vm.value_and_grad(f)(x)[1],
    "argnums": lambda f, x: vm.value_and_grad(f, (0,))(x)[1][0],
    "jacobian": lambda f, x: vm.jacobian(f, x),
    "jacobian, tall": lambda f, x: vm.jacobian(lambda x: np.stack([f(x)] * (np.size(x) + 1)), x)[0],
    "hessian": lambda f, x: vm.hessian(f, x),
    "hessian_times_vector": lambda f, x: vm.hessian_times_vector(f, x,
        np.ones(np.shape(x)) if np.ndim(x) else 1.0),
    "jvp": lambda f, x: vm.jvp(f, (x,), (np.ones(np.shape(x)) if np.ndim(x) else 1.0,))[1],
    "gradient_dot_vector": lambda f, x: vm.gradient_dot_vector(f, x,
        np.ones(np.shape(x)) if np.ndim(x) else 1.0),
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
    copy = gradient.copy()
    blocks = current_tape().arena._free + current_tape().arena._used
    assert not np.shares_memory(gradient, x)
    assert not any(
        np.shares_memory(gradient, part)
        for block in blocks
        for part in (block.values, block.adjoints)
    )
    assert gradient.flags.owndata
    again = vm.value_and_grad(f)(x)
    assert value == again[0]
    equal(gradient, again[1])
    gradient[:] = -1.0
    vm.gradient(big, 0.1)
    equal(x, original)
    equal(vm.gradient(f, x), copy)


def test_a_gradient_inside_a_gradient_over_other_variables():
    def outer(x):
        step = vm.gradient(lambda z: z**3, 2.0)
        inner = vm.hessian(lambda z: np.sum(z**3), np.array([1.0, vm.value(x)[0]]))
        return np.sum(x * x) * step * inner[1, 1]

    close(vm.gradient(outer, np.array([3.0, 4.0])), np.array([6.0, 8.0]) * 12 * 18, 1e-15)


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
    with vm.nested():
        c = outside()
        if functional is FUNCTIONALS["recorded"]:
            refusal = (
                r"^\w+: (the function uses a \w+ of shape .* from outside|to_varmat cannot "
                r"be written as a program)"
            )
            refuses(vm.TapeError, refusal, functional, lambda x: use(x, c), 0.5)
        else:
            found = functional(lambda x: use(x, c), 0.5)
            close(vm.value(found), functional(lambda x: use(x, vm.value(c)), 0.5), 1e-15)
            before = [item.adj for item in (np.ravel(c) if isinstance(c, vm.MatVar) else [c])]
            assert all(np.all(a == 0.0) for a in before)
            if isinstance(found, vm.Var):
                found.grad()
                gradient = np.ravel(c.adj)

                def slope(v):
                    return functional(lambda x: use(x, v if np.ndim(vm.value(c)) else v[0]), 0.5)

                expected = finite_diff_gradient(slope, np.ravel(vm.value(c)))
                close(gradient, expected, 1e-6, 1e-9)
        # The plain value of such a variable is a constant, and the outer tape does not interfere.
        assert np.isfinite(functional(lambda x: np.sum(x * vm.value(c)), 0.5))


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
    order = (
        2
        if "hessian" in next(name for name, each in FUNCTIONALS.items() if each is functional)
        else 1
    )
    for name, outer in FUNCTIONALS.items():
        expected = {1: 12.0, 2: 6.0}[order] * 1.5**2
        if "hessian" in name:
            expected = {1: 24.0, 2: 12.0}[order] * 1.5

        def f(x):
            return np.sum(functional(lambda z: np.sum(z * z * x * x), 2.0) * x)

        if functional is FUNCTIONALS["recorded"]:
            refuses((vm.TapeError, TypeError), r"lost|looks at the value", outer, f, 1.5)
        else:
            assert outer(f, 1.5) == pytest.approx(expected, rel=1e-14), name


def test_a_stale_variable_as_the_result():
    with vm.nested():
        old = vm.var(1.0)
    for functional in (vm.gradient, vm.jacobian):
        refuses(vm.TapeError, "stale", functional, lambda x: old, 1.0)


def test_three_scopes_deep_with_exceptions():
    before = state()
    with vm.nested():
        x = vm.var([1.0, 2.0])
        y = np.sum(x * x)
        with vm.nested():
            z = vm.var(3.0)
            w = z * z
            with pytest.raises(ZeroDivisionError), vm.nested():
                np.sum(np.exp(vm.var(np.ones(40_000)))) / (1 // 0)
            assert vm.gradient(lambda t: t**3, 2.0) == 12.0
            with pytest.raises(vm.DomainError):
                vm.gradient(lambda s: vm.normal_lpdf(0.0, 0.0, s), -1.0)
            w.grad()
            assert z.adj == 6.0
        y.grad()
        equal(x.adj, [2.0, 4.0])
    assert state() == before


def test_eight_threads():
    rng = np.random.default_rng(5)
    points = rng.normal(size=(8, 200))
    functions = [
        lambda x, k=k: (
            np.sum(np.exp(np.sin(x) * (k + 1)))
            + vm.normal_lpdf(x, 0.1 * k, 1.0 + k)
            + k * np.sum(x[1:] * x[:-1])
        )
        for k in range(8)
    ]

    def work(k):
        f, x = functions[k], points[k]
        return [
            vm.value_and_grad(f)(x)[1],
            vm.hessian_times_vector(f, x, np.ones(200)),
            vm.jvp(f, (x,), (x,))[1],
            vm.vjp(f, x)[1](2.0)[0],
            vm.gradient(lambda z: np.sum(np.exp(z) * z), np.linspace(0.0, 0.1 * k, 40_000)),
        ]

    serial = [work(k) for k in range(8)]
    parallel = [[] for _ in range(8)]
    barrier = threading.Barrier(8)

    def loop(k):
        barrier.wait()
        parallel[k] = [work(k) for _ in range(4)]

    in_threads(loop, range(8))
    for k in range(8):
        assert len(parallel[k]) == 4
        for repetition in parallel[k]:
            equal(repetition, serial[k])


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


@pytest.mark.parametrize(("result", "message"), [
    (lambda x: x, (r"the result has shape \(3,\), but must be a scalar: sum it, or use "
        r"varmat.jacobian or varmat.vjp!")),
    (lambda x: x[:1], r"the result has shape \(1,\), but must be a scalar"),
    (lambda x: x.reshape(3, 1) * 2, r"the result has shape \(3, 1\), but must be a scalar"),
    (lambda x: np.zeros(2), r"the result has shape \(2,\), but must be a scalar"),
])  # fmt: skip
def test_results_that_are_arrays(result, message):
    for functional in (vm.gradient, lambda f, x: vm.value_and_grad(f, (0,))(x)):
        refuses(vm.ShapeError, message, functional, result, np.ones(3))


@pytest.mark.parametrize(("result", "message"), [
    (lambda x: None,
        (r"^gradient: the result is None \(is a return statement missing\?\), but must be real "
        r"numbers!")),
    (lambda x: 1j, "^gradient: the result has dtype complex128, but must be real numbers"),
    (lambda x: "text", "^gradient: the result is a str, but must be real numbers!"),
    (lambda x: {"a": x[0]}, "^gradient: the result is a dict, but must be real numbers!"),
    (lambda x: np.sum, "^gradient: the result is a function|_ArrayFunctionDispatcher"),
    (lambda x: (x[0], x[1]), "^gradient: the result is a tuple, but must be real numbers!"),
])  # fmt: skip
def test_results_that_are_no_numbers(result, message):
    refuses(TypeError, message, vm.gradient, result, np.ones(3))


@pytest.mark.parametrize("constant", [3, 2.0, np.float64(2.0), np.array(2.0)])
def test_value_and_tangent_of_a_constant_are_floats(constant):
    value, tangent = vm.jvp(lambda x: constant, (1.0,), (1.0,))
    assert (type(value), type(tangent), tangent) == (float, float, 0.0)
