"""`varmat.recorded`: running a recording again gives what `value_and_grad` gives."""

import gc
import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from comparing import close, equal, near, refuses
from recordings import LARGE, X, Y, on_numpy, vectors

import varmat as vm
from varmat.programs.ir.interpret import interpret
from varmat.programs.run import numpy as numpy_runner


def regression(theta):
    mean, scale = X @ theta[:3] + theta[3], np.exp(theta[4])
    return vm.normal_lpdf(Y, mean, scale) + vm.normal_lpdf(theta[:3], 0, 1)


def loop(theta):
    x = theta[0]
    for t in range(1, 5):
        x = 0.5 * x + theta[t] * np.sin(x)
    return x**2


def written(theta):
    """Write elements one after the other, and parts that read what was written before."""
    a = np.zeros((3, 2)) + theta[0]
    a[0, 0], a[0, 1], a[1, 1], a[0, 1] = theta[1], 2.0, theta[2] * theta[3], theta[4]
    a[1] = a[0]
    a[2, :1] = a[1, 1:]
    a[2] += theta[1]
    b = np.zeros(3) + theta[0]
    b[0] = theta[2]
    b[1:2] = b[:1]
    b[2] = 3
    b[:] = b[::-1]
    return np.sum(a**2) * np.sum(b**3)


def made_to_write_into(theta):
    a, b = np.zeros_like(theta[0], shape=6), vm.var(np.arange(3.0))
    a[0] = 0.7
    for t in range(1, 6):
        a[t] = np.sqrt(0.1 + theta[t - 1] ** 2 + 0.5 * a[t - 1] ** 2)
    b[1] = theta[0]
    b += theta[2:] * vm.var(2.0)
    c, square = np.empty_like(a), np.outer(b, b)
    c[:3], c[3:] = a[3:], b
    return np.sum(a * c * np.ones_like(a)) + np.sum(square[np.tril_indices_from(square)])


def broadcast(theta):
    a, b = theta[:2].reshape(2, 1), theta[2:5].reshape(1, 3)
    # The first two factors have fewer elements than the result.
    total = np.sum(vm.fma(theta[:1], theta[1:2], X))
    total = total + np.sum(np.where(b > 0.0, theta[0], X) * theta[3])
    total = total + np.sum(np.exp(a * b) + a) + np.sum((a + b).T @ a)
    return total + np.sum(a - np.sin(b)) ** 2 + np.sum(theta[:2] / a) * b[0, 1]


def gathered(theta):
    some = theta[[0, 0, 3]] * theta[np.array([True, False, True, True, False])]
    return np.sum(some) + np.sum(theta[::-2] ** 3) * np.sum(theta)


def structured(theta):
    m = np.outer(theta, theta) + 5.0 * np.eye(5)
    total = np.linalg.slogdet(m)[1] + np.sum(np.linalg.solve(m, theta)) + vm.logsumexp(theta)
    return total + np.mean(m) + m[1, 2] * (m @ m)[0, 3]


def fanned_out(theta):
    y = np.tanh(theta)
    return np.sum(y) * np.sum(y * theta) + y @ y + np.sum(theta / np.sum(theta**2))


def summed_with_numbers(theta):
    y, z = theta[0] + theta[1:], theta[0] * np.outer(theta, theta)
    total = np.sum(y * theta[1:]) + 0.5 * np.sum(y) + np.sum(y * theta[1:] * y / theta[0])
    return total + np.sum(z * z) - 0.25 * np.sum(z)


def many_terms(theta):
    total = 0.0
    x = theta
    for i in range(60):
        x = x * (1.0 + 0.001 * i) if i % 3 else np.sin(x) + theta
        total = total + np.sum(x) + theta[i % 5]
    return total


FUNCTIONS = [
    regression, loop, written, made_to_write_into, broadcast, gathered, structured,
    fanned_out, summed_with_numbers, many_terms,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("large", [numpy_runner.LARGE, 0])
def test_agrees_with_the_eager_gradient(agree, f, large, monkeypatch):
    """The NumPy runner does not copy large arguments and results."""
    monkeypatch.setattr(numpy_runner, "LARGE", large)
    agree(f, *vectors(5))


def test_arguments_of_another_structure_are_recorded_anew(agree):
    def f(p):
        if isinstance(p, dict):
            return p["a"] ** 2 * p["b"]
        return p[0] * (sum(p[1]) if isinstance(p[1], list) else p[1]) + 3.0 * sum(p[2:])

    points = [
        {"a": 2.0, "b": 3.0}, {"b": 3.0, "a": 2.0}, [2.0, 3.0, 4.0], (2.0, 3.0, 4.0),
        [2.0, [3.0, 4.0]],
    ]  # fmt: skip
    agree(f, *((p,) for p in points * 2))
    agree(lambda p, q: p[0] * sum(q), ([1.0, 2.0], [3.0]), ([1.0], [2.0, 3.0]), argnums=(0, 1))


def test_an_argument_twice(recorded, agree):
    """The other arguments count, and each gradient is an array of its own."""
    points = (np.ones(2), 3.0), (np.arange(2.0), 2.0)
    agree(lambda x, y: np.sum(x * x) * y, *points, argnums=(0, 1, 0, -2))
    agree(lambda x, y, a: a @ a * x / y, (2.0, 3.0, X[0]), (1.5, -0.5, X[1]), argnums=(1, 0, 2))
    for argnums in ((0, 0), (0, -2)):
        g = recorded(lambda x, y: np.sum(x) * y, argnums)
        for y in (2.0, 3.0):
            value, (first, second) = g(np.ones(2), y)
            first += 1.0
            assert (value, second.tolist()) == (2.0 * y, [y, y])


def test_gradients_are_the_callers_own(recorded):
    a = np.ones(3)
    for f in (np.sum, lambda x: x @ a, lambda x: np.sum(x * 1.0), lambda x: np.sum(x[:] + 0.0)):
        g = recorded(f)
        first = g(np.ones(3))[1]
        first += 7.0
        equal(g(np.ones(3))[1], 1.0)
    equal(a, 1.0)
    x, y = np.ones(3), np.ones(3)
    for f in (
        lambda x, y: np.sum(x * y), lambda x, y: np.sum((1.0 * x) * y),
        lambda x, y: np.sum(x[:] * y),
    ):  # fmt: skip
        for gradient in recorded(f, (0, 1))(x, y)[1]:
            assert not any(np.shares_memory(gradient, each) for each in (x, y))
    for zeros in (np.zeros(2), np.zeros((2, 2))):
        _, (gx, gy) = recorded(lambda x, y: np.sum(np.exp(x + y)), (0, 1))(zeros, zeros)
        gx += 1.0
        equal(gy, 1.0)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.exp(x)), lambda x: np.sum(np.exp(x) * x),
    lambda x: np.sum(np.sin(x) * np.cos(x)),
])  # fmt: skip
def test_gradients_that_are_made_by_the_program_are_not_copied(agree, f):
    g = agree(f, *vectors(3))
    assert not g.program.counts().keys() & {"copy", "assemble", "gather"}
    # With two dimensions the elements may lie in another order.
    agree(f, *((np.asfortranarray(np.outer(x, x)),) for (x,) in vectors(3)))


def test_large_gradients_are_made_where_they_are_returned(recorded):
    g, x = recorded(lambda x: np.sum(np.exp(x) * x)), np.linspace(0.0, 1.0, 800_000)
    g(x)
    tracemalloc.start()
    _, gradient = g(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert gradient.base is None
    assert peak < 1.5 * x.nbytes


@pytest.mark.parametrize("n", [3, 2_000])
def test_adjoints_with_equal_elements_are_not_handed_out(recorded, n):
    x, y = np.ones((n, 2)), np.ones(n)
    for f in (
        lambda x, y: np.sum(x + y[:, None]),
        lambda x, y: np.sum(np.cumsum(y)) + np.sum(np.copy(x)),
        lambda x, y: np.sum(x[1:]) + np.sum(y[::2]),
        lambda x, y: np.sum(x[[0, 1, 1]]) + np.sum(np.stack([y, y])),
    ):
        g, expected = recorded(f, (0, 1)), vm.value_and_grad(f, (0, 1))(x, y)[1]
        for _ in range(2):
            for gradient, same in zip(g(x, y)[1], expected, strict=True):
                equal(gradient, same)
                gradient += 1.0


def test_arguments_are_not_changed(recorded):
    def f(x):
        x[0] = 5.0
        return np.sum(x * x)

    x = np.array([1.0, 2.0])
    g = recorded(f)
    assert g(x)[0] == g(x)[0] == 29.0
    equal(x, [1.0, 2.0])


def test_refusals_of_the_function_itself_are_its_own(recorded):
    g = recorded(lambda x: vm.normal_lpdf(x[1:], 0.0, x[0]))
    assert np.isfinite(g(np.array([1.0, 2.0]))[0])
    message = r"normal_lpdf: Scale parameter is -1.0, but must be positive!"
    refuses(vm.DomainError, message, g, np.array([-1.0, 2.0]))
    assert g(np.array([1.0, 2.0])) is not None


@pytest.mark.parametrize(("f", "message"), [
    (lambda a: vm.gamma_lpdf(2.0, a, 1.0),
        "gamma_lpdf: Shape parameter is -0.5, but must be positive finite!"),
    (lambda a: vm.gamma_lpdf(Y**2, a, 1.0),
        "gamma_lpdf: Shape parameter is -0.5, but must be positive finite!"),
    (lambda a: vm.dirichlet_lpdf(np.full(3, 1.0 / 3.0), a * np.ones(3)),
        r"dirichlet_lpdf: .* is -0.5, but must be positive"),
])  # fmt: skip
def test_arguments_that_do_not_show_in_the_value_are_refused(recorded, f, message):
    """The logarithm of the gamma function is finite at the invalid argument too."""
    g = recorded(f)
    g(1.5)
    refuses(vm.DomainError, message, g, -0.5)


def test_checks_of_composites_are_part_of_the_program(agree):
    def f(x):
        m = x.reshape(2, 2)
        return np.sum(vm.eigenvalues_sym(m) ** 3) + m[0, 1]

    g = agree(f, (np.array([2.0, 0.5, 0.5, 1.0]),), (np.array([1.0, -0.5, -0.5, 3.0]),))
    with pytest.raises(vm.DomainError, match=r"eigenvalues_sym: a\[0, 1\] is 0.5, but must be 0.6"):
        g(np.array([2.0, 0.5, 0.6, 1.0]))


def test_covariances_with_checks(agree):
    def f(x):
        return np.sum(vm.gp_periodic_cov(x[:2], x[2], x[3], x[4]) * vm.gp_dot_prod_cov(x[:2], x[2]))

    g = agree(f, (np.arange(1.0, 6.0),), (np.linspace(0.5, 2.0, 5),))
    message = r"gp_periodic_cov: period is -1.0, but must be positive finite!"
    refuses(vm.DomainError, message, g, np.array([1.0, 2.0, 3.0, 4.0, -1.0]))


def test_bounds_that_are_variables(agree):
    def f(x):
        inside, above = vm.lub_constrain(x[:2], x[2], 1.0 / x[3]), vm.lb_constrain(x[0], x[2])
        return np.sum(inside) * above + np.sum(vm.offset_multiplier_constrain(x[:2], x[2], x[3]))

    x = np.array([0.5, 1.0, -0.3, 0.2])
    g = agree(f, (x,), (x + 0.1,))
    message = r"lub_constrain: lb is 6.0, but must be less than ub, which is 5.0!"
    refuses(vm.DomainError, message, g, np.array([0.5, 1.0, 6.0, 0.2]))
    # At the second point there is no bound, so other operations are needed.
    infinite = np.array([3.0, np.inf])
    agree(lambda x: vm.ub_constrain(x[0], x[1]), (np.ones(2),), (infinite,), elsewhere=1)


def test_where_floats_raise(agree):
    agree(lambda x: np.exp(x) + 1.0 / x, (1.0,), (1000.0,), (0.0,), elsewhere=2)


def test_nothing_to_differentiate_with_respect_to(agree):
    agree(np.sum, (np.ones(2),), (np.zeros(2),), argnums=())
    agree(lambda p: 2.0, ({},), ([],))


def test_a_constant(agree):
    agree(lambda x: 3.0, (np.ones(2),), (np.zeros(2),))
    agree(lambda x, y: np.sum(x), (np.ones(2), 1.0), (np.zeros(2), 2.0), argnums=(0, 1))


def scale(x):
    return vm.normal_lpdf(1.0, 0.0, x[0])


def root(x):
    return np.linalg.cholesky(np.reshape(x, (2, 2)))


@pytest.mark.parametrize(("unused", "bad", "message"), [
    (scale, -np.ones(4), "Scale parameter is -1.0"),
    (root, np.array([1.0, 2.0, 2.0, 1.0]), "cholesky: a has the eigenvalue -1"),
])  # fmt: skip
@pytest.mark.parametrize("result", [lambda x: 2.0, lambda x: 0.0 * x[1] + 2.0, np.sum])
def test_an_unused_result_may_still_refuse_the_point(recorded, unused, bad, message, result):
    def f(x):
        unused(x)
        return result(x)

    g = recorded(f)
    assert g(np.array([1.0, 0.0, 0.0, 1.0]))[0] == 2.0
    refuses(vm.DomainError, message, g, bad)


def gathered_twice(x):
    y = np.concatenate([np.exp(x[:100]), x[100:]])
    z = y[np.arange(40_000) % 300] * LARGE
    return np.sum(z**2) + np.sum(np.reshape(z, (200, 200)) @ y[:200])


def test_large_arrays_of_few_elements(agree):
    agree(gathered_twice, (np.linspace(0.0, 1.0, 300),), (np.linspace(1.0, 0.5, 300),))


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.log1p(np.exp(-((0.5 * x - 0.25) ** 2)))) + vm.logsumexp(x * LARGE),
    lambda x: np.sum(np.exp(x) / np.sum(np.exp(x)) * LARGE),
    lambda x: np.sum(np.exp(x.reshape(200, 200).T) @ x[:200]) * np.sum(x * LARGE) ** 2,
    lambda x: (np.mean((x - np.mean(x)) ** 2) + np.sum(np.maximum(x,
        LARGE) * x[0]) + x[1:] @ x[:-1]),
    lambda x: (vm.normal_lpdf(LARGE, x * 0.5, np.exp(x[0])) + np.sum(x[::2] * 2.0) + np.max(x * x)),
    lambda x: np.sum(np.cumsum(x) * np.tanh(x)) + np.sum((np.ones((3, 40_000)) * x) ** 2),
])  # fmt: skip
def test_large_arrays(agree, f):
    agree(f, (LARGE,), (LARGE[::-1] + 1.0,))


def test_large_arrays_that_are_not_contiguous(agree):
    rng = np.random.default_rng(8)
    data = rng.normal(size=(250, 299)).T[:-2]

    def laplacian(x):
        d = x[1:-1] * 2.0 - x[:-2] - x[2:]
        return np.sum(d**2) + np.sum(np.sin(x[1:-1, 1:-1]) * data[:, 1:-1])

    g = agree(laplacian, *((rng.normal(size=(299, 250)),) for _ in range(3)), rtol=1e-11)
    assert "copy" not in g.program.counts()
    agree(
        lambda x: np.sum(np.sin(x[:, ::2]) ** 2),
        *((rng.normal(size=(2, 80_000)),) for _ in range(3)),
        rtol=1e-11,
    )


def test_large_arrays_are_not_copied(recorded):
    """The data lie in any order, and parts of them are used."""
    data = np.ones((60, LARGE.size))

    def f(x):
        columns = np.sum(data.T[:, ::2] @ np.exp(x[:30]) * x)
        return np.sum(data @ x) + columns + np.sum(data[7, ::2] * x[::2]) + data[3, 5:] @ x[5:]

    g = recorded(f)
    for factor in (1.0, 2.0):
        g(LARGE * factor)
    tracemalloc.start()
    g(LARGE)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < data.nbytes / 4


def test_the_program_can_be_read():
    g = on_numpy(lambda x: np.sum(2.0 * np.exp(x)))
    assert g.program is None
    g(np.ones(2))
    assert str(g.program).splitlines() == [
        "program(a0[2])",
        "    v0[2] = exp(a0)",
        "    v1[2] = multiply(2.0, v0)",
        "    v2 = add.reduce(v0)",
        "    v3 = multiply(2.0, v2)",
        "    return v3, v1",
    ]
    value, gradient = interpret(g.program, np.zeros(2))
    assert (value, gradient.tolist()) == (4.0, [2.0, 2.0])
    before = g.program
    g(np.ones(3))
    assert g.program is not before


def test_pickling(recorded):
    """A pickle holds no program; the program is made anew on the other side."""
    g = recorded(regression)
    x = np.linspace(0.1, 0.5, 5)
    expected = g(x)
    copy = pickle.loads(pickle.dumps(g))
    assert copy.program is None
    assert copy.runner == g.runner
    value, gradient = copy(x)
    assert value == expected[0]
    equal(gradient, expected[1])
    assert len(copy.program) == len(g.program)


def test_errors_of_the_function_are_its_own():
    """The function may raise while it is recorded, or when it is evaluated because the run of the
    program has ended.
    """

    class MineError(Exception):
        pass

    def raises(x):
        raise MineError

    def where_evaluated(x):
        if len(evaluations) > 1:
            raise MineError
        evaluations.append(x)
        return vm.normal_lpdf(x, 0.0, x[0])

    refuses(MineError, None, lambda: on_numpy(raises)(np.ones(2)))
    evaluations = []
    g = on_numpy(where_evaluated)
    g(np.ones(2))
    evaluations.append(None)
    assert np.isfinite(g(np.ones(2))[0])
    refuses(MineError, None, g, -np.ones(2))


def test_values_that_are_not_finite_are_computed_as_the_function_says(agree):
    """The program is run first, and then the function is evaluated."""
    infinite = np.array([np.inf, 1.0, 2.0, 3.0, 4.0])
    with np.errstate(all="ignore"):
        agree(lambda x: np.sum(np.log(x)), (Y**2,), (np.zeros(5),), (Y,), elsewhere=2)
        agree(lambda x: np.sum(x * x), (Y,), (1e200 * Y,), (infinite,), elsewhere=2)
        # The value is finite, and only the gradient is not.
        agree(lambda x: np.sum(np.sqrt(x)), (Y**2,), (np.zeros(5),))


def test_memory_stays_flat(recorded):
    g = recorded(structured)
    points = [p[0] for p in vectors(5, 4)]

    def held_after(calls):
        for k in range(calls):
            g(points[k % 4])
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    held_after(4)
    tracemalloc.start()
    before, after = held_after(20), held_after(1_000)
    tracemalloc.stop()
    # one matrix for each call would be four times that
    assert after - before < 50_000


@pytest.mark.parametrize("argnums", ["x", 1.0, (0, 1.0)])
def test_argnums_are_integers(argnums):
    message = r"^recorded: argnums is .*, but must be an integer or a tuple of integers!"
    refuses(TypeError, message, lambda: on_numpy(lambda x, y: x * y, argnums)(2.0, 3.0))


def _caught_number(x):
    try:
        return float(x) * x
    except Exception:
        return -96.0 * x


def _caught_array(x):
    try:
        return np.sum(np.asarray([x])) * x
    except TypeError:
        return x


@pytest.mark.parametrize("f", [_caught_number, _caught_array])
@pytest.mark.parametrize("derivative", [
    vm.value_and_grad, vm.grad, vm.hessian, vm.jacobian, vm.recorded,
    lambda f: lambda x: vm.derivative(f, x),
])  # fmt: skip
def test_a_refusal_that_the_function_catches_is_raised(derivative, f):
    """Plain numbers would take another path, so the derivative would be that of something else."""
    refuses(TypeError, "the function caught this error", lambda: derivative(f)(3.0))


def test_a_refusal_that_numpy_shares_may_be_caught():
    def f(x):
        try:
            return float(x)
        except TypeError:
            return np.sum(x**2)

    assert f(np.array([1.0, 2.0])) == 5.0
    assert vm.value_and_grad(f)(np.array([1.0, 2.0]))[0] == 5.0


def _loss(b, x, y):
    return np.mean((y - y.mean() - x @ b) ** 2)


@pytest.mark.parametrize("rows", [50, 20_000])
def test_data_that_are_refilled_in_place_or_new_are_seen(rows):
    rng = np.random.default_rng(0)
    x, y, b = rng.normal(size=(rows, 3)), rng.normal(size=rows), rng.normal(size=3)
    recorded = vm.recorded(_loss)
    for k in range(6):
        if k % 2:
            y *= 1.5
            x[0] = 3.0 + k
        else:
            x, y = rng.normal(size=(rows, 3)), rng.normal(size=rows)
        expect_same(lambda b, x=x, y=y: recorded(b, x, y), partial(_loss, x=x, y=y), [b, b])
    # One of the data at first, unless they are large, and one for all data.
    assert len(recorded._recordings) == (1 if rows > 50 else 2)


def test_a_density_of_data_without_constants_keeps_its_terms_dropped():
    """A density of data alone is zero without constants, but not if data were variables."""

    def f(b, y):
        return vm.normal_lupdf(y, 0.0, 1.0) + vm.normal_lupdf(b, np.mean(y), 1.0)

    recorded, eager = vm.recorded(f), vm.value_and_grad(f)
    for k in range(5):
        y = np.array([1.0, 2.0, 4.0 + k])
        close(recorded(0.5, y), eager(0.5, y), 1e-14)


def test_data_that_cannot_be_arguments_are_not_recorded_for_ever():
    def f(b, y):
        return np.sum(b * y) if float(y[0]) > 0.0 else np.sum(b)

    recorded = vm.recorded(f)
    for k in range(12):
        y = np.array([(-1.0) ** k, 2.0, k])
        found, expected = recorded(np.ones(3), y), vm.value_and_grad(f)(np.ones(3), y)
        assert found[0] == expected[0]
        equal(found[1], expected[1])
    assert len(recorded._recordings) == 3


def test_a_program_does_not_hold_the_data_of_its_caller():
    def f(b, y):
        return np.sum(b * np.exp(y))

    recorded, y = vm.recorded(f), np.array([0.0, 1.0])
    recorded(np.ones(2), y)
    y[:] = 5.0
    close(recorded(np.ones(2), np.array([0.0, 1.0]))[0], 1.0 + np.e, 1e-6)


# --- branches on values ---


def _ways(x):
    if x[0] > 0.0:
        return np.sum(np.exp(x))
    if x[1] > 0.0:
        return np.sum(x**2)
    return np.sum(np.sin(x)) * x[0]


def test_a_function_that_branches_is_recorded_for_each_way(recorded):
    calls = []

    def f(x):
        calls.append(x)
        return _ways(x)

    g = recorded(f)
    expect_same(g, _ways, np.random.default_rng(0).normal(size=(40, 3)))
    # The first way once, each of the others once as it is written and once recorded.
    assert len(calls) == 5
    assert not g.program.python_steps()


def expect_same(g, f, points):
    """Demand that a recording has the values and gradients of a function at all points."""
    for x in points:
        near(g(x), vm.value_and_grad(f)(x), 1e-13)


def test_many_calls_of_a_function_that_branches(recorded):
    points = np.random.default_rng(1).normal(size=(60, 3))
    many = zip(*recorded(_ways).map(points), strict=True)
    expect_same(lambda _: next(many), _ways, points)


def test_points_that_are_refused_are_no_new_way(recorded):
    calls = []

    def f(x):
        calls.append(x)
        return np.log(x) if x < 1.0 else x

    g = recorded(f)
    assert g(2.0) == (2.0, 1.0)
    for _ in range(30):
        with np.errstate(all="ignore"):
            assert g(0.0)[0] == -np.inf
    # As it is written each time, and recorded a few times.
    assert len(calls) <= 1 + 30 + 8


def test_functions_with_too_many_ways_stay_right(recorded):
    """Sixteen ways, of which eight are recorded."""

    def f(x):
        total = 0.0
        for y in x:
            total = total + (y**2 if y > 0.0 else np.sin(y))
        return total

    g = recorded(f)
    expect_same(g, f, np.random.default_rng(2).normal(size=(60, 4)))
    assert len(g._recordings[0].paths) == 8
