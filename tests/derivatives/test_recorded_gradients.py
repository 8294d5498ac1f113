"""Derivatives inside functions that are recorded are steps of the program: each functional of each
function, in each place, has the values and gradients of an evaluation without a recording, and
calls no Python.
"""

import numpy as np
import pytest
from comparing import close, near
from random_functions import random_function
from scipy.special import digamma, polygamma

import varmat as vm
from varmat.derivatives.recorded_gradients import along_rows, depending_on
from varmat.derivatives.structure import leaves_of
from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.run import has_native

POINT = np.array([0.7, -0.3, 1.1])
OTHER = 1.1 * POINT + 0.05
V = np.array([1.0, 2.0, -0.5])
MATRIX = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]])
TIMES = np.linspace(0.1, 1.0, 40)


def assigned(x):
    y = np.zeros(3) * x
    y[0] = x[1] ** 2
    y[1:] = x[0] * x[1:]
    return np.sum(y * y[::-1])


def repeated(x):
    t = x[0]
    for _ in range(40):
        t = np.sin(t) + x[1] * t * x[2]
    return t


def scanned(x):
    def step(carry, t, x):
        return np.sin(carry) * x[0] + t * x[1], carry * x[2]

    last, terms = vm.scan(step, x[0], TIMES, x)
    return last + np.sum(terms**2)


def decay(x):
    return np.sum(vm.ode_rk45(lambda t, z, p: -p * z, np.ones(3), 0.0, [0.5, 1.0], x**2))


FUNCTIONS = {
    "elementwise": lambda x: np.sum(np.exp(x) * x[::-1] ** 2) + np.prod(x),
    "density": lambda x: (
        vm.normal_lpdf(TIMES, x[0], np.exp(x[1])) + vm.student_t_lpdf(x, 3.0, x[2], 2.0)
    ),
    "matrix": lambda x: (
        np.linalg.slogdet(MATRIX + np.outer(x, x))[1]
        + x @ np.linalg.solve(MATRIX + np.diag(x**2), V)
    ),
    "scan": scanned,
    "glm": lambda x: vm.poisson_log_glm_lpmf([1, 0, 2], MATRIX, x[0], x),
    "multi_normal": lambda x: vm.multi_normal_lpdf(x, np.zeros(3), MATRIX * np.exp(x[0])),
    "cholesky": lambda x: np.sum(np.linalg.cholesky(MATRIX + np.outer(x, x))),
    "eigh": lambda x: np.sum(np.linalg.eigvalsh(MATRIX + np.outer(x, x)) ** 3),
    "where": lambda x: np.sum(np.where(x > 0, x**3, np.exp(x))) + np.max(x) * x[0],
    "gather": lambda x: np.sum(x[[0, 1, 2, 0]] * x[[2, 2, 1, 0]] ** 2),
    "norm": np.linalg.norm,
    "cond": lambda x: vm.cond(x[0] > 0.0, lambda y: np.sum(y**3), np.prod, x),
    "assigned": assigned,
    "repeated": repeated,
    "ode": decay,
}  # fmt: skip


def pair(f):
    """A function with two results."""
    return lambda x: np.stack([f(x), f(x * x) + x[0]])


def of_two(f, x):
    by_first, by_second = vm.grad(lambda u, w: f(u * w), (0, 1))(x, x * x)
    return by_first @ by_second


def of_tree(f, x):
    gradients = vm.grad(lambda t: f(t["b"]) * t["a"])({"a": x[0], "b": x})
    return gradients["a"] * np.sum(gradients["b"])


def with_aux(f, x):
    gradient, aux = vm.grad(lambda y: (f(y), y[0] * x[1]), has_aux=True)(x)
    return np.sum(gradient) * aux


def value_too(f, x):
    value, gradient = vm.value_and_grad(f)(x)
    return value * np.sum(gradient**2)


FUNCTIONALS = {
    "grad": lambda f, x: vm.grad(f)(x) @ V,
    "hessp": lambda f, x: vm.hessp(f)(x, V)[0],
    "hessian": lambda f, x: np.sum(vm.hessian(f, x) ** 2),
    "grad of a closure": lambda f, x: np.sum(vm.grad(lambda y: f(y * x))(np.ones(3)) ** 2),
    "value_and_grad": value_too,
    "jacobian": lambda f, x: np.sum(vm.jacobian(pair(f), x) ** 2),
    "jacobian of grad": lambda f, x: np.sum(vm.jacobian(vm.grad(f), x) ** 2),
    "jacobian of more outputs": lambda f, x: np.sum(
        vm.jacobian(lambda s: vm.grad(f)(s * x) * s, x[0]) ** 2
    ),
    "jvp": lambda f, x: vm.jvp(f, (x,), (V,))[1],
    "jvp of grad": lambda f, x: np.sum(vm.jvp(vm.grad(f), (x,), (x * V,))[1]),
    "vjp": lambda f, x: np.sum(vm.vjp(pair(f), x)[1](x[:2])[0] ** 2),
    "hessian_times_vector": lambda f, x: vm.hessian_times_vector(f, x, x) @ V,
    "gradient_dot_vector": lambda f, x: vm.gradient_dot_vector(f, x, x),
    "partial_derivative": lambda f, x: vm.partial_derivative(f, x, 1),
    "hessp of a closure": lambda f, x: np.sum(vm.hessp(lambda y: f(y * x))(np.ones(3), V) ** 2),
    "hessian of a closure": lambda f, x: np.sum(vm.hessian(lambda y: f(y * x), np.ones(3)) ** 2),
    "grad of grad": lambda f, x: np.sum(vm.grad(lambda y: np.sum(vm.grad(f)(y) ** 2))(x)),
    "grad by two arguments": of_two,
    "grad by a structure": of_tree,
    "grad with aux": with_aux,
}  # fmt: skip

SOME_FUNCTIONS = ["elementwise", "density", "matrix", "scan"]
SOME_FUNCTIONALS = ["grad", "hessp", "hessian", "grad of a closure"]
PAIRS = [(f, g) for f in FUNCTIONS for g in SOME_FUNCTIONALS]
PAIRS += [(f, g) for f in SOME_FUNCTIONS for g in FUNCTIONALS if g not in SOME_FUNCTIONALS]


def expect_steps(h, rtol=1e-9, runner="numpy", points=(POINT, OTHER)):
    """Compare a recording with evaluations at two points, and demand that no step calls Python."""
    recorded = vm.recorded(h, runner=runner)
    for x in points:
        for found, expected in zip(recorded(x), vm.value_and_grad(h)(x), strict=True):
            close(found, expected, rtol, 1e-9)
    assert not recorded.program.python_steps(), recorded.program.explain()
    return recorded.program


@pytest.mark.parametrize(("function", "functional"), PAIRS)
def test_functionals_of_functions(function, functional):
    f, g = FUNCTIONS[function], FUNCTIONALS[functional]
    # A solver makes other steps for other derivatives.
    expect_steps(lambda c: g(f, c), 1e-5 if f is decay else 1e-9)


# --- places ---


def in_scan(g):
    def step(carry, t, x):
        return carry + 0.1 * np.tanh(g(carry * t + x)), np.sum(np.tanh(g(x * t)))

    def h(c):
        last, terms = vm.scan(step, c, TIMES[:5], c)
        return np.sum(last) + np.sum(terms)

    return h


def in_while_loop(g):
    def h(c):
        def body(state):
            return state[0] + 0.1 * np.tanh(g(state[0])), state[1] + 1.0

        return np.sum(vm.while_loop(lambda state: state[1] < 3.0, body, (c, 0.0))[0])

    return h


def in_python_loop(g):
    def h(c):
        for _ in range(5):
            c = c - 0.1 * np.tanh(g(c))
        return np.sum(c**2)

    return h


def in_assignments(g):
    def h(c):
        z = 1.0 * c
        z[1:] = np.tanh(g(c))[1:]
        z[0] = np.sum(np.tanh(g(z)))
        return np.sum(z**2)

    return h


PLACES = {
    "scan": in_scan,
    "while_loop": in_while_loop,
    "loop of Python": in_python_loop,
    "assignments": in_assignments,
    "cond": lambda g: lambda c: np.sum(
        vm.cond(c[0] > 0.75, g, lambda x: x * g(x * x), c)
    ),
    "switch": lambda g: lambda c: np.sum(vm.switch(1, [g, lambda x: x * g(x * x)], c)),
    "function that is differentiated": lambda g: lambda c: np.sum(
        vm.grad(lambda x: np.sum(g(x) ** 2))(c)
    ),
    "recorded function": lambda g: lambda c: np.sum(vm.recorded(lambda x: np.sum(g(x)))(c)[1]),
    "ode": lambda g: lambda c: np.sum(
        vm.ode_rk45(lambda t, z, p: -0.1 * g(p) * z, np.ones(3), 0.0, [0.5], c)
    ),
}  # fmt: skip
INNER = {
    "grad": lambda f: vm.grad(f),
    "hessp": lambda f: lambda x: vm.hessp(f)(x, V),
    "hessian": lambda f: lambda x: vm.hessian(f)(x) @ x,
    "recorded grad": lambda f: vm.recorded(vm.grad(f)),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("function", ["elementwise", "matrix"])
def test_places(function, inner, place):
    g = INNER[inner](FUNCTIONS[function])
    expect_steps(PLACES[place](g), 1e-5 if place == "ode" else 1e-9)


@pytest.mark.parametrize("function", ["density", "matrix"])
@pytest.mark.parametrize("functional", ["grad", "hessian of a closure"])
def test_functionals_around(function, functional):
    """Third and fourth derivatives, products and Jacobians."""
    f, g = FUNCTIONS[function], FUNCTIONALS[functional]

    def h(c):
        return g(f, c)

    for outer in (vm.grad, vm.jacobian, vm.hessian):
        recorded = vm.recorded(outer(h), runner="numpy")
        for x in (POINT, OTHER):
            close(recorded(x), outer(h)(x), 1e-8, 1e-8)
        assert not recorded.program.python_steps()
    product = vm.recorded(vm.hessp(h), runner="numpy")
    close(product(POINT, V), vm.hessp(h)(POINT, V), 1e-8, 1e-8)


# --- against closed forms ---


def quartic(x):
    return np.sum(x**4) + x[0] * x[1] * x[2]


@pytest.mark.parametrize(("f", "value", "gradient"), [
    (lambda c: vm.hessp(quartic)(c, V)[0],
     12.0 * POINT[0] ** 2 + V[1] * POINT[2] + V[2] * POINT[1], [24.0 * POINT[0], V[2], V[1]]),
    (lambda c: np.trace(vm.hessian(quartic, c)), 12.0 * np.sum(POINT**2), 24.0 * POINT),
    (lambda c: vm.grad(lambda x: np.sum(vm.lgamma(x + 2.0)))(c) @ V, digamma(POINT + 2.0) @ V,
     polygamma(1, POINT + 2.0) * V),
])  # fmt: skip
def test_closed_forms(f, value, gradient):
    """The Hessian has 12 x_i^2 on its diagonal, and x_k beside it."""
    recorded = vm.recorded(f)
    close(recorded(POINT), (value, np.array(gradient)), 1e-14)
    assert not recorded.program.python_steps()


# --- runners, loops, JAX ---


@pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")
@pytest.mark.parametrize("functional", SOME_FUNCTIONALS)
def test_native_code(functional):
    g = FUNCTIONALS[functional]

    def h(c):
        return g(FUNCTIONS["density"], c)

    recorded = vm.recorded(h)
    points = np.stack([POINT, OTHER, POINT + 0.1])
    found = zip(*recorded.map(points), strict=True)
    near([*found], [vm.value_and_grad(h)(x) for x in points], 1e-10)
    assert not recorded.program.python_steps()


@pytest.mark.parametrize("functional", [
    lambda c: vm.hessian(lambda x: np.sum(np.exp(x[1:] * x[:-1])), c),
    lambda c: vm.jacobian(lambda x: np.cumsum(np.exp(x))[1:], c),
    lambda c: vm.jacobian(vm.grad(lambda x: np.sum(x**4) ** 2), c),
])  # fmt: skip
def test_hessians_and_jacobians_are_loops(functional):
    """The program is about as long for more elements."""
    lengths = []
    for n in (4, 40):
        x = np.linspace(0.1, 0.5, n)
        program = expect_steps(lambda c: np.sum(functional(c) ** 2), points=(x, x[::-1]))
        lengths.append(len(program))
    assert lengths[1] < lengths[0] + 9


@pytest.mark.parametrize("functional", ["hessian", "jacobian of grad"])
def test_in_jax(functional):
    jax = pytest.importorskip("jax")
    recorded = vm.recorded(lambda c: FUNCTIONALS[functional](FUNCTIONS["elementwise"], c))
    value, gradient = recorded(POINT)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        found = jax.jit(recorded.program.to_jax())(POINT)
    close(np.asarray(found[0]), value, 1e-12)
    close(np.asarray(found[1]), gradient, 1e-12)


def test_rows_of_a_program():
    """The last outputs are summed, and what does not depend on the rows is computed once."""
    builder = Builder()
    a, b = builder.argument(()), builder.argument((2,))
    c = builder.ufunc(np.exp, a)
    product = builder.ufunc(np.multiply, c, b)
    program = builder.program([builder.constant(0.0), product, product])
    assert id(c) not in depending_on(program, [b])
    assert id(product) in depending_on(program, [b])
    along = along_rows(program, 1, 3, 1)
    assert along.counts() == {"exp": 1, "loop": 1}
    rows = np.arange(6.0).reshape(3, 2)
    zero, stacked, summed = interpret(along, np.array(0.5), rows)
    assert zero == 0.0
    close(stacked, np.exp(0.5) * rows, 1e-15)
    close(summed, np.exp(0.5) * rows.sum(0), 1e-15)
    _, stacked = along_rows(builder.program([builder.constant(0.0), product]), 1, 0).outputs
    assert stacked.shape == (0, 2)


# --- what looks at values ---


@vm.operation()
def cube(x):
    return vm.Saved(x**3, slope=3.0 * x**2)


@cube.reverse
def cube_reverse(g, r, x, slope):
    return slope * g


@cube.tangent
def cube_tangent(r, x, slope):
    return lambda t: slope * t


def test_a_rule_that_uses_what_it_saved_is_called_again():
    """Not with what it saved where the function was recorded."""

    def h(c):
        return np.sum(vm.grad(lambda x: x[0] * vm.jvp(cube_sum, (x,), (np.ones(3),))[1])(c))

    def cube_sum(x):
        return np.sum(cube(x))

    recorded = vm.recorded(h, runner="numpy")
    for x in (POINT, OTHER):
        assert recorded(x)[0] == vm.value_and_grad(h)(x)[0]


@pytest.mark.parametrize("f", [
    lambda x: np.median(x) ** 2, lambda x: np.sum(np.sort(x) ** 2 * V),
    lambda x: np.quantile(x, 0.3) ** 2, lambda x: np.interp(x[0], np.arange(3.0), x**2),
])  # fmt: skip
@pytest.mark.parametrize("functional", SOME_FUNCTIONALS)
def test_functions_that_look_at_values_are_called(f, functional):
    def h(c):
        return FUNCTIONALS[functional](f, c)

    recorded = vm.recorded(h, runner="numpy")
    for x in (POINT, OTHER, np.array([1.2, 0.9, 0.1])):
        near(recorded(x), vm.value_and_grad(h)(x))
    assert recorded.program.python_steps()


# --- arguments ---


def product_of(x):
    return vm.grad(FUNCTIONS["elementwise"])(x) * x


def test_products_around():
    recorded = vm.recorded(vm.jvp(product_of), runner="numpy")
    close(recorded((POINT,), (V,))[1], vm.jvp(product_of, (POINT,), (V,))[1], 1e-13)
    pullback = vm.recorded(vm.vjp(product_of), runner="numpy")(POINT)[1]
    close(pullback(V)[0], vm.vjp(product_of, POINT)[1](V)[0], 1e-13)


def test_data_and_structures():
    """Data that are mapped are arguments of the inner programs too."""

    def loss(theta, y):
        return np.sum((theta * y) ** 4) + np.prod(theta) * np.sum(y)

    def h(theta, y):
        return vm.grad(lambda t: loss(t, y))(theta) @ theta

    rows = np.stack([POINT, OTHER, V])
    recorded = vm.recorded(h, runner="numpy")
    values, gradients = recorded.map(POINT, rows, in_axes=(None, 0))
    for y, *found in zip(rows, values, gradients, strict=True):
        near(found, vm.value_and_grad(h)(POINT, y), 1e-13)

    def of_tree(t):
        return np.sum(vm.hessian(FUNCTIONS["matrix"], t["a"] * t["b"]) ** 2)

    tree = {"a": POINT, "b": 0.5}
    recorded = vm.recorded(of_tree, runner="numpy")
    found, expected = recorded(tree)[1], vm.grad(of_tree)(tree)
    close(found["a"], expected["a"], 1e-12)
    close(found["b"], expected["b"], 1e-12)
    assert not recorded.program.python_steps()


def test_matrices_and_numbers():
    def of_matrix(a):
        return np.sum(vm.hessian(lambda b: np.sum(np.linalg.inv(b) ** 2), a) ** 2)

    expect_steps(of_matrix, points=(MATRIX, MATRIX + 0.1))
    expect_steps(lambda s: vm.hessian(lambda t: np.sin(t) * s * t**2, s), points=(0.7, 1.3))


def test_nothing_to_differentiate():
    """No elements, constants, and functions that do not depend on what is recorded."""
    for h in (
        lambda c: np.sum(vm.hessian(lambda x: np.sum(x**2), c[:0])) + np.sum(c),
        lambda c: np.sum(vm.jacobian(lambda x: x[:0] * x[0], c)) + np.sum(c),
        lambda c: np.sum(vm.hessian(lambda x: 3.0, c)) + np.sum(c),
        lambda c: np.sum(vm.hessian(lambda x: c[0], c)) + np.sum(c),
        lambda c: np.sum(vm.hessian(lambda x: np.sum(x) * c[0], np.ones(2))) + np.sum(c),
        lambda c: np.sum(vm.hessian(lambda x: np.sum(x**3), np.ones(2))) * np.sum(c),
        lambda c: np.sum(vm.jacobian(lambda x: c[:2] * 1.0, np.ones(3))) + np.sum(c),
    ):
        expect_steps(h)


# --- random functions ---


def total(tree):
    return sum(np.sum(np.tanh(1.3 * x)) for x in leaves_of(tree))


OF_ARGUMENTS = {
    "grad": lambda f, p: vm.grad(lambda q: f(*q))(p),
    "hessian_times_vector": lambda f, p: vm.hessian_times_vector(
        lambda q: f(*q), p, [np.cos(x) for x in p]
    ),
    "hessian": lambda f, p: vm.hessian(lambda q: f(*q), p),
    "grad of a closure": lambda f, p: vm.grad(lambda s: f(*[x * s for x in p]))(1.1),
    "jacobian of grad": lambda f, p: vm.jacobian(vm.grad(lambda q: f(*q)), p),
    "vjp": lambda f, p: vm.vjp(lambda q: f(*q), p)[1](0.7),
}  # fmt: skip


@pytest.mark.parametrize("functional", OF_ARGUMENTS)
@pytest.mark.parametrize("seed", [110, 118, 129, 158, 160, 169, 187, *range(300, 312)])
def test_random_functions(functional, seed):
    """The first seeds assign into arguments, or choose otherwise at the second point."""
    f = random_function(seed, statements=2 + seed % 7)
    points = [[np.copy(x) if np.ndim(x) else float(x) for x in p] for p in f.points(2)]
    if sum(map(np.size, points[0])) > 12 and functional in ("hessian", "jacobian of grad"):
        pytest.skip("this takes long without a recording")

    def h(p):
        return total(OF_ARGUMENTS[functional](f, p))

    with np.errstate(all="ignore"):
        recorded = vm.recorded(h, runner="numpy")
        for p in points:
            found, expected = (leaves_of(f(p)) for f in (recorded, vm.value_and_grad(h)))
            for x, y in zip(found, expected, strict=True):
                close(x, y, 1e-8, 1e-9 * (1.0 + np.max(np.abs(y))))
