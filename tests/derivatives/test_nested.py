"""Derivatives of derivatives: functionals inside functions that are differentiated, to any depth,
and in every order of forward and reverse mode.
"""

import gc
from functools import partial
from itertools import product

import mpmath
import numpy as np
import pytest
import rows_at_import
from comparing import close, equal, refuses

import varmat as vm
from varmat.core.elementwise import ROWS
from varmat.core.rules import OPERANDS
from varmat.core.tape import current_tape
from varmat.functions.rows import CONSTANT_OPERANDS
from varmat.testing import expect_ad, expect_ad_matvar, finite_diff_gradient


def by_hand(f, x):
    y = f(vm.Dual(x, 1.0))
    return y.tan if isinstance(y, vm.Dual) else 0.0


# Ways to take the derivative of a function of one number.
DERIVATIVES = {
    "grad": lambda f, x: vm.grad(f)(x),
    "value_and_grad": lambda f, x: vm.value_and_grad(f)(x)[1],
    "jacobian": lambda f, x: vm.jacobian(f, x),     "vjp": lambda f, x: vm.vjp(f, x)[1](1.0)[0],
    "jvp": lambda f, x: vm.jvp(f, (x,), (1.0,))[1],
    "gradient_dot_vector": lambda f, x: vm.gradient_dot_vector(f, x, 1.0),
    "derivative": lambda f, x: vm.derivative(f, x), "by hand": by_hand,
}  # fmt: skip
# The runner makes no difference here, and the one of NumPy compiles nothing.
recorded = partial(vm.recorded, runner="numpy")
RECORDED = {
    "recorded": lambda f, x: recorded(f)(x)[1],
    "recorded grad": lambda f, x: recorded(vm.grad(f))(x),
    "recorded jacobian": lambda f, x: recorded(vm.jacobian(f))(x),
    "recorded jvp": lambda f, x: recorded(vm.jvp(f))((x,), (1.0,))[1],
    "recorded vjp": lambda f, x: recorded(vm.vjp(f))(x)[1](1.0)[0],
}
ALL = {**DERIVATIVES, **RECORDED}
every_outer = pytest.mark.parametrize("outer", ALL.values(), ids=ALL)
FORWARD, REVERSE = partial(partial, DERIVATIVES["derivative"]), vm.grad
# Orders of forward and reverse mode in three nested derivatives.
MODES = {
    "fff": lambda f: FORWARD(FORWARD(FORWARD(f))), "rrr": lambda f: REVERSE(REVERSE(REVERSE(f))),
    "rfr": lambda f: REVERSE(FORWARD(REVERSE(f))), "frf": lambda f: FORWARD(REVERSE(FORWARD(f))),
}  # fmt: skip


# --- one inside the other ---


@every_outer
def test_confusion_of_perturbations(outer):
    """The example of Siskind and Pearlmutter (2005): ``d/dx x d/dy (x + y)`` is one. It would be
    two if the directions were confused.
    """
    for inner in ALL.values():
        # A recording refuses variables from outside, see `test_recordings_inside`. Duals that are
        # made by hand in one function share one direction.
        if inner not in RECORDED.values() and not inner is outer is by_hand:
            assert outer(lambda x, inner=inner: x * inner(lambda y: x + y, 2.0), 3.0) == 1.0
        close(outer(lambda x, inner=inner: x * inner(lambda y: x * y * y, x), 3.0), 54.0, 1e-15)


@every_outer
def test_three_levels(outer):
    """Each function uses the variables of all functions around it."""

    def whole(x):
        return x * mpmath.diff(lambda y: x * y * y * mpmath.exp(x * x * y * y) + y * y, x)

    expected = float(mpmath.diff(whole, 0.7))
    for second, third in product(
        (DERIVATIVES[name] for name in ("grad", "jacobian", "jvp", "by hand")), repeat=2
    ):

        def f(x, second=second, third=third):
            return x * second(lambda y: y * third(lambda z: np.exp(y * x * z) + z * y, y * x), x)

        close(outer(f, 0.7), expected, 1e-13)


@pytest.mark.parametrize("times", range(1, 7))
def test_one_after_the_other(times):
    forward = reverse = mixed = np.sin
    for i in range(times):
        forward, reverse, mixed = (
            FORWARD(forward), REVERSE(reverse), (FORWARD, REVERSE)[i % 2](mixed),
        )  # fmt: skip
    for f in (forward, reverse, mixed):
        close(f(0.3), np.sin(0.3 + times * np.pi / 2), 1e-14)


def cubic(x):
    return np.sum(np.exp(x[1:] * x[:-1])) * x[0] + x[2] ** 3


def stacked(f):
    """Return the results for each of three places."""
    return np.stack([f(i) for i in range(3)])


POINT = np.array([0.3, 0.7, 1.1])
UNITS = np.eye(3)


def test_second_and_third_derivatives_of_vectors():
    second, third = vm.hessian(cubic, POINT), vm.grad_hessian(cubic, POINT)
    gradient, hessian = vm.grad(cubic), vm.hessian(cubic)
    hessian_times = partial(vm.hessian_times_vector, cubic)
    columns = np.stack([vm.jvp(gradient, (POINT,), (unit,))[1] for unit in UNITS])
    for found in (
        vm.jacobian(gradient, POINT),
        columns,
        vm.jacobian(vm.jacobian(cubic), POINT),
        stacked(lambda i: vm.grad(lambda x: gradient(x)[i])(POINT)),
        stacked(lambda i: vm.vjp(gradient, POINT)[1](UNITS[i])[0]),
        stacked(lambda i: vm.grad(lambda x: vm.gradient_dot_vector(cubic, x, UNITS[i]))(POINT)),
        stacked(lambda i: vm.grad(lambda x: vm.partial_derivative(cubic, x, i))(POINT)),
    ):
        close(found, second, 1e-14)
    for found in (
        vm.jacobian(hessian, POINT),
        vm.jacobian(vm.jacobian(gradient), POINT),
        np.stack([vm.jvp(hessian, (POINT,), (unit,))[1] for unit in UNITS], -1),
        stacked(lambda i: vm.hessian(lambda x: gradient(x)[i], POINT)),
        stacked(lambda i: vm.jacobian(lambda x: hessian_times(x, UNITS[i]), POINT)),
        stacked(lambda j: stacked(lambda i: vm.grad(lambda x: hessian(x)[i, j])(POINT))),
        vm.recorded(vm.jacobian(hessian))(POINT),
    ):
        close(found, third, 1e-13)
    trace = vm.grad(lambda x: np.trace(vm.hessian(cubic, x)))(POINT)
    close(trace, vm.grad_tr_mat_times_hessian(cubic, POINT, np.eye(3)), 1e-14)


def test_hessians_of_functions_that_take_gradients():
    def norm_of_slope(x):
        return np.sum(vm.grad(cubic)(x) ** 2)

    h, t = vm.hessian(cubic, POINT), vm.grad_hessian(cubic, POINT)
    expected = 2.0 * (h @ h + np.einsum("i,ijk->jk", vm.gradient(cubic, POINT), t))
    close(vm.hessian(norm_of_slope, POINT), expected, 1e-14)
    product = vm.hessian_times_vector(norm_of_slope, POINT, UNITS[1])
    close(product, expected[1], 1e-14)
    expect_ad(norm_of_slope, POINT)


def test_hessian_and_jacobian_without_a_point_are_functions():
    for functional in (vm.hessian, vm.jacobian):
        equal(functional(cubic)(POINT), functional(cubic, POINT))


def test_duals_made_by_hand():
    assert vm.hessian(lambda p: (p**2 * vm.Dual(3.0, 1.0) ** 2).tan, 2.0) == 12.0
    assert vm.jvp(lambda p: (p**2 * vm.Dual(3.0, 1.0) ** 2).tan, (2.0,), (1.0,)) == (24.0, 24.0)
    d = vm.Dual(3.0, 1.0)
    assert vm.grad(lambda p: p**2 * (d * d).tan)(2.0) == 24.0
    # The derivative of a result that depends on a dual from outside is a dual, and so is the
    # derivative at a dual.
    for functional in (vm.grad, vm.jacobian, lambda f: lambda x: vm.jvp(f, (x,), (1.0,))[1]):
        found = functional(lambda p: p**2 * d**2)(2.0)
        assert (found.val, found.tan) == (36.0, 24.0)
        found = functional(lambda p: p**3)(vm.Dual(2.0, 5.0))
        assert (found.val, found.tan) == (12.0, 60.0)
    # In a dual of duals each tangent is a direction of its own. Other duals made by hand belong to
    # the direction of the inner ones.
    x = vm.Dual(vm.Dual(2.0, 1.0), 1.0)
    assert ((x**3).tan.tan, (x**2 * vm.Dual(5.0, 1.0)).tan.tan) == (12.0, 14.0)
    k = vm.Dual(np.ones(2), np.eye(2))
    found = vm.jvp(lambda p: p**2 * k, (np.array([1.0, 3.0]),), (np.ones(2),))[1]
    equal(found.val, [2.0, 6.0])
    equal(found.tan, np.diag([2.0, 6.0]))
    equal(vm.jacobian(lambda p: p * k, np.array([1.0, 3.0])).tan[1], [[0.0, 0.0], [0.0, 1.0]])


# --- what a function may do ---


def test_closures_in_loops_are_not_called_again():
    """A gradient depends on the values with which it was computed, whatever names mean later."""
    calls = []

    def f(x):
        total = 0.0
        for i in range(1, 4):

            def power(z):
                calls.append(i)  # noqa: B023 - that is what is tested
                return z**i * x  # noqa: B023

            total = total + vm.grad(power)(x)
        return total

    assert vm.grad(f)(2.0) == 1.0 + 4.0 * 2.0 + 9.0 * 4.0
    assert calls == [1, 2, 3]


def written(z, x):
    y = np.zeros_like(z * x)
    y[0] = z[1] * x[0]
    y[1:] = np.exp(z[:2] * x[2])
    part = y.reshape(3, 1)
    part[2, 0] = y[0] * z[2] ** 3 * x[1]
    y[:2] += z[1:] * x[1:]
    return np.sum(y * y * z)


def joined(z, x):
    y = np.stack([
        z[1] * x[0] + z[1] * x[1], np.exp(z[0] * x[2]) + z[2] * x[2],
        z[1] * x[0] * z[2] ** 3 * x[1],
    ])  # fmt: skip
    return np.sum(y * y * z)


@pytest.mark.parametrize("outer", [
    vm.grad, vm.hessian, lambda f: vm.recorded(vm.hessian(f)), vm.grad_hessian,
], ids=["grad", "hessian", "recorded", "grad_hessian"])  # fmt: skip
@pytest.mark.parametrize(
    "inner",
    [vm.grad, vm.jacobian, lambda f: lambda x: vm.vjp(f, x)[1](1.0)[0]],
    ids=["grad", "jacobian", "vjp"],
)
def test_assignments_and_views(outer, inner):
    def function(f):
        return lambda x: np.sum(inner(lambda z: f(z, x))(x * x) * x)

    found, expected = (
        partial(outer, f) if outer is vm.grad_hessian else outer(f)
        for f in map(function, (written, joined))
    )
    close(found(POINT), expected(POINT), 1e-13)


def test_an_assignment_into_an_argument_is_not_seen_outside():
    def inner(z, x):
        z[0] = z[1] * x
        return np.sum(z**3)

    def f(x):
        z = np.ones(2) * x
        slope = vm.grad(lambda z: inner(z, x))(z)
        return np.sum(slope) + z[0]  # which has not changed

    # At z[1] = x the derivative of z[1]³ (x³ + 1) is 3 x² (x³ + 1), and z[0] = x is added.
    close(vm.grad(f)(2.0), 15.0 * 16.0 + 12.0 + 1.0, 1e-15)
    close(vm.derivative(f, 2.0), 253.0, 1e-15)


def test_structures_and_several_arguments():
    def f(p, k):
        return np.sum(p["a"] ** 3) * k * p["b"][0]

    def outer(x):
        slopes, rate = vm.grad(f, argnums=(0, 1))({"a": np.ones(2) * x, "b": [x]}, x)
        return np.sum(slopes["a"]) * slopes["b"][0] + rate

    # The result is (6 x⁴) (2 x⁴) + 2 x⁴.
    for found in (vm.grad(outer)(1.5), vm.derivative(outer, 1.5)):
        close(found, 96.0 * 1.5**7 + 8.0 * 1.5**3, 1e-15)
    value, slopes = vm.value_and_grad(lambda x: sum(vm.value_and_grad(lambda z: z**3 * x)(x)))(2.0)
    assert (value, slopes) == (16.0 + 24.0, 32.0 + 36.0)

    def of_columns(x):
        columns = vm.jacobian(lambda p: {"u": p[0] * p[1], "v": x * p[0]}, [x, x * x])
        return np.sum(columns["u"][1] * x)

    assert vm.grad(of_columns)(3.0) == 6.0


@pytest.mark.parametrize("name", [name for name in DERIVATIVES if name != "by hand"])
def test_constant_results(name):
    """By hand, a constant result has no `tan`."""
    inner = DERIVATIVES[name]
    assert vm.grad(lambda x: x * inner(lambda z: 5.0, x))(2.0) == 0.0
    assert vm.grad(lambda x: x * inner(lambda z: x * x, 1.0))(2.0) == 0.0
    assert vm.derivative(lambda x: x * inner(lambda z: x * x, x), 2.0) == 0.0
    assert vm.hessian(lambda x: vm.grad(lambda z: z * 3.0)(x) * x**2, 2.0) == 6.0


def test_variables_and_matvars_on_the_tape():
    with vm.nested():
        x, m = vm.var(POINT), vm.matvar([2.0, 3.0])
        y = np.sum(vm.grad(cubic)(x) * vm.grad(lambda z: np.sum(z**3 * m))(m)[0])
        y.grad()
        slope = 6.0 * 2.0**2 * 1.5  # 3 m³ has the derivative 9 m²
        close(x.adj, vm.hessian(cubic, POINT) @ np.ones(3) * 3.0 * 2.0**3, 1e-15)
        close(m.adj, [np.sum(vm.gradient(cubic, POINT)) * slope, 0.0], 1e-15)


# --- hazards ---

TIMES = np.array([0.5, 1.2, 2.0, 0.3])
THETA = np.array([0.3, 0.2])


def log_survival(t, theta):
    return -((t / np.exp(theta[1])) ** np.exp(theta[0]))


def likelihood(hazard):
    def function(theta):
        return np.sum(np.log(hazard(TIMES, theta))) + np.sum(log_survival(TIMES, theta))

    return function


@likelihood
def exact(t, theta):
    shape, scale = np.exp(theta[0]), np.exp(theta[1])
    return shape / scale * (t / scale) ** (shape - 1.0)


HAZARDS = {
    "jvp": lambda t, theta: -vm.jvp(lambda s: log_survival(s, theta), (t,), (np.ones(t.shape),))[1],
    "gradient of a sum": lambda t, theta: -vm.grad(lambda s: np.sum(log_survival(s, theta)))(t),
    "by hand": lambda t, theta: -log_survival(vm.Dual(t, np.ones(t.shape)), theta).tan,
    "each": lambda t, theta: (
        -np.stack([vm.derivative(lambda s: log_survival(s, theta), one) for one in t])
    ),
}
every_hazard = pytest.mark.parametrize("hazard", HAZARDS.values(), ids=HAZARDS)


@every_hazard
def test_hazards_by_differentiation(hazard):
    f = likelihood(hazard)
    for functional in (vm.gradient, vm.hessian, vm.grad_hessian):
        close(functional(f, THETA), functional(exact, THETA), 1e-14, 1e-14)
    # The harness makes duals by hand too, and they would be mixed with those of the function.
    if hazard is not HAZARDS["by hand"]:
        expect_ad(f, THETA)
        expect_ad_matvar(f, THETA)


@every_hazard
@pytest.mark.parametrize("runner", ["numpy", "native"])
def test_hazards_in_recordings(hazard, runner):
    if runner == "native":
        pytest.importorskip("llvmlite")
    f = likelihood(hazard)
    gradient, hessian = vm.recorded(f, runner=runner), vm.recorded(vm.hessian(f), runner=runner)
    for theta in (THETA, THETA + 0.1, -THETA):
        close(gradient(theta)[1], vm.gradient(exact, theta), 1e-13, 1e-13)
        close(hessian(theta), vm.hessian(exact, theta), 1e-13, 1e-13)
    assert gradient.program is not None


def test_hazards_in_models():
    def log_density(shape, scale):
        def log_survived(t):
            return vm.weibull_lccdf(t, shape, scale)

        hazard = -vm.grad(lambda t: np.sum(log_survived(t)))(TIMES)
        return np.sum(np.log(hazard)) + np.sum(log_survived(TIMES))

    def densities(shape, scale):
        return vm.weibull_lpdf(TIMES, shape, scale)

    q = np.array([0.2, -0.3])
    models = (
        vm.Model(f, shape=vm.positive(), scale=vm.positive()) for f in (log_density, densities)
    )
    found, expected = (model.log_density_gradient(q, propto=False) for model in models)
    close(found[0], expected[0], 1e-14)
    close(found[1], expected[1], 1e-13)


def test_a_gradient_inside_a_log_density_is_differentiated_again():
    """The parameters, which the model computes together, are computed again as well."""
    model = vm.Model(
        lambda a, b: vm.normal_lpdf(b, 0.0, a) + vm.gamma_lpdf(a, 2.0, 1.0),
        a=vm.positive(),
        b=vm.real(2),
    )
    q = np.array([0.2, -0.3, 0.7])
    found = vm.jacobian(vm.grad(lambda q: model._target(q, False, True)), q)
    close(found, model.log_density_hessian(q, propto=False)[2], 1e-14)


@pytest.mark.parametrize("hazard", [HAZARDS["jvp"], HAZARDS["gradient of a sum"]])
def test_hazards_of_large_arrays(hazard):
    t = np.linspace(0.1, 3.0, 40_000)
    shape, scale = np.exp(THETA)
    found = vm.gradient(lambda theta: np.sum(np.log(hazard(t, theta))), THETA)
    close(found, [np.sum(1.0 + shape * np.log(t / scale)), -shape * t.size], 1e-12)


# --- functions of the library ---


NAMES = [
    name for name in rows_at_import.NAMES
    if ROWS[name].points and ROWS[name].reference and name not in ("owens_t", "pseudo_huber")
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_third_derivatives_of_elementwise_functions(name):
    """Four orders of forward and reverse mode are compared at the first point, two of them for
    further operands, and mpmath where that is quick.
    """
    row, point = ROWS[name], [float(x) for x in next(iter(ROWS[name].points))]
    with np.errstate(all="ignore"):
        for i in range(row.arity):
            if i in CONSTANT_OPERANDS.get(name, {}):
                continue

            def f(x, i=i):
                return row(*point[:i], x, *point[i + 1 :])

            try:
                expected = MODES["fff"](f)(point[i])
            # The derivative of the row is a row without this derivative.
            except TypeError:
                message = r"must be a constant .* there is no derivative with respect to it"
                refuses(TypeError, message, MODES["rrr"](f), point[i])
                continue
            orders = ("rrr", "rfr", "frf")
            for modes in orders if not i else orders[i % 3 :][:1]:
                np.testing.assert_allclose(
                    MODES[modes](f)(point[i]), expected, rtol=1e-12, atol=1e-14, err_msg=modes
                )
            if name not in SLOW:
                close(expected, third_by_mpmath(name, point, i), 1e-11, 1e-13)


# Rows for which mpmath takes longer than a second. Only the orders of modes are compared for these.
SLOW = {
    "betaincinv", "betainccinv", "gammaincinv", "gammainccinv", "betainc_derivative",
    "log_betainc_derivative", "log_betaincc_derivative", "log_gammaincc_derivative", "hyp2f1_da",
    "hyp2f1_db", "hyp2f1_dc", "k0", "k0e", "k1", "k1e", "kv", "y1", "yv", "log_von_mises_integral",
    "von_mises_moment", "log_skew_normal",
}  # fmt: skip


def third_by_mpmath(name, point, i):
    code = compile(ROWS[name].reference or "", f"<reference of {name}>", "eval")

    def along(x):
        operands = zip(OPERANDS, [*xs[:i], x, *xs[i + 1 :]], strict=False)
        return mpmath.re(eval(code, {**vars(mpmath), **dict(operands)}))

    with mpmath.workdps(40):
        xs = list(map(mpmath.mpf, point))
        return float(mpmath.diff(along, xs[i], 3))


def matrix_of(x, stack, sin, cos):
    first, second = [2 + x[0] ** 2, sin(x[1]), x[2] * x[0]], [cos(x[2]), 3 + x[1], x[0] * x[1]]
    return stack([first, second, [x[1], x[2] ** 2, 4 - x[0]]])


def a(x):
    return matrix_of(x, lambda rows: np.stack([np.stack(row) for row in rows]), np.sin, np.cos)


def b(x):
    return matrix_of(x, mpmath.matrix, mpmath.sin, mpmath.cos)


def weighted(values):
    return values[0] + values[1] ** 2 + values[2] ** 3


WEIGHTS = np.array([1.0, 2.0, 3.0])
mp = mpmath
# Name -> the function, and the same function for numbers of mpmath.
STRUCTURED = {
    "matmul": (lambda x: np.sum(a(x) @ a(x) @ x), lambda x: sum(b(x) * b(x) * mp.matrix(x))),
    "solve": (lambda x: np.sum(np.linalg.solve(a(x), x)),
              lambda x: sum(mp.lu_solve(b(x), mp.matrix(x)))),
    "inv": (lambda x: np.sum(np.linalg.inv(a(x))), lambda x: sum(mp.inverse(b(x)))),
    "det": (lambda x: np.linalg.det(a(x)), lambda x: mp.det(b(x))),
    "slogdet": (lambda x: np.linalg.slogdet(a(x))[1], lambda x: mp.log(mp.det(b(x)))),
    "cholesky": (lambda x: np.sum(np.sin(np.linalg.cholesky(a(x) @ a(x).T))),
                 lambda x: sum(map(mp.sin, mp.cholesky(b(x) * b(x).T)))),
    "eigh": (lambda x: np.sum(np.linalg.eigh(a(x) @ a(x).T)[0] ** WEIGHTS),
             lambda x: weighted(mp.eigsy(b(x) * b(x).T, eigvals_only=True))),
    "logsumexp": (lambda x: vm.log_sum_exp(x * x), lambda x: mp.log(sum(mp.exp(y * y) for y in x))),
    "softmax": (lambda x: vm.softmax(x * x)[1],
                lambda x: mp.exp(x[1] ** 2) / sum(mp.exp(y * y) for y in x)),
    "sort": (lambda x: np.sum(np.sort(np.sin(3 * x)) ** WEIGHTS),
             lambda x: weighted(sorted(mp.sin(3 * y) for y in x))),
    "indexing": (lambda x: np.sum(np.exp(x)[[2, 0, 0]] * x[::-1] * x[1]),
                 lambda x: x[1] * (mp.exp(x[2]) * x[2] + mp.exp(x[0]) * (x[0] + x[1]))),
    "norm": (lambda x: np.linalg.norm(x * x), lambda x: mp.sqrt(sum(y**4 for y in x))),
    "cumprod": (lambda x: np.sum(np.cumprod(np.exp(x))),
                lambda x: sum(mp.exp(sum(x[:i])) for i in (1, 2, 3))),
    "std": (lambda x: np.std(x * x),
            lambda x: mp.sqrt(sum((y * y - sum(z * z for z in x) / 3) ** 2 for y in x) / 3)),
    "einsum": (lambda x: np.einsum("i,ij,j->", x, a(x), np.exp(x)),
               lambda x: sum(x[i] * b(x)[i, j] * mp.exp(x[j]) for i in range(3) for j in range(3))),
    "where": (lambda x: np.sum(np.where(x > 0.5, x**3, np.exp(x) * x[1])),
              lambda x: x[1] ** 3 + x[2] ** 3 + mp.exp(x[0]) * x[1]),
    "max": (lambda x: np.max(np.sin(x) * x), lambda x: max(mp.sin(y) * y for y in x)),
    "normal": (
        lambda x: vm.normal_lpdf(x, x[0] * x[1], np.exp(x[2])),
        lambda x: sum(
            -mp.log(2 * mp.pi) / 2 - x[2] - ((y - x[0] * x[1]) / mp.exp(x[2])) ** 2 / 2 for y in x
        ),
    ),
    "gamma": (
        lambda x: vm.gamma_lpdf(x, np.exp(x[0]), x[1] + x[2]),
        lambda x: sum(
            mp.exp(x[0]) * mp.log(x[1] + x[2]) - mp.loggamma(mp.exp(x[0]))
            + (mp.exp(x[0]) - 1) * mp.log(y) - (x[1] + x[2]) * y
            for y in x
        ),
    ),
    "multi_normal": (
        lambda x: vm.multi_normal_lpdf(x, x * x, a(x) @ a(x).T),
        lambda x: -mp.log(2 * mp.pi) * 3 / 2 - mp.log(mp.det(b(x))) - mp.norm(mp.lu_solve(b(x),
            [y - y * y for y in x])) ** 2 / 2,
    ),
    "quadratic form": (lambda x: vm.quad_form_sym(a(x) @ a(x).T, x),
                       lambda x: mp.norm(b(x).T * mp.matrix(x)) ** 2),
}  # fmt: skip
DIRECTION = np.array([1 / 3, -0.5, 0.2])


@pytest.mark.parametrize(("f", "reference"), STRUCTURED.values(), ids=STRUCTURED)
def test_third_derivatives_of_structured_operations(f, reference):
    def along(s):
        return f(POINT + DIRECTION * s)

    with mpmath.workdps(30):
        x, u = (list(map(mpmath.mpf, v.tolist())) for v in (POINT, DIRECTION))
        expected = float(
            mpmath.diff(lambda s: reference([p + d * s for p, d in zip(x, u, strict=True)]), 0, 3)
        )
    for modes in MODES.values():
        close(modes(along)(0.0), expected, 1e-12)
    third = vm.jacobian(vm.jacobian(vm.grad(f)), POINT)
    close(np.einsum("ijk,i,j,k", third, DIRECTION, DIRECTION, DIRECTION), expected, 1e-12)


# --- recordings, memory, refusals ---


def test_recordings_inside():
    """Called with variables, a recording evaluates the function as it is written. Other variables
    that the function uses are refused.
    """
    for name, inner in RECORDED.items():
        with pytest.raises(
            vm.TapeError, match=r"from outside, whose derivative would be lost: make it an argument"
        ):
            vm.grad(lambda x, inner=inner: inner(lambda y: x * y, 2.0))(3.0)
        assert vm.grad(lambda x, inner=inner: x * inner(lambda y: y**3, x))(2.0) == 36.0, name
    recorded = vm.recorded(lambda y, k: y**3 * k)
    assert vm.grad(lambda x: recorded(x, x)[1])(2.0) == 9.0 * 2.0**2
    product = vm.recorded(vm.hessian_times_vector(lambda x: np.sum(x**3)))
    assert vm.grad(lambda x: product(x, x * x)[0])(np.array([2.0]))[0] == 18.0 * 4.0
    assert vm.grad(lambda x: vm.recorded(vm.hessian(lambda z: z**4))(x))(2.0) == 48.0


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_function_that_branches_inside_a_recording(name):
    """An inner function in reverse mode cannot branch on a copy of the recording's variables."""
    inner = DERIVATIVES[name]

    def branching(x):
        return x * inner(lambda y: y * y if y > 1.0 else 3.0 * y, x)

    if name in ("jvp", "gradient_dot_vector", "derivative", "by hand"):
        recorded = vm.recorded(branching)
        for x in (2.0, 0.5, 3.0, 0.2):
            close(recorded(x), vm.value_and_grad(branching)(x), 1e-14)
    else:
        refuses(vm.TapeError, "looks at the value of a variable", vm.recorded(branching), 2.0)
    constant = vm.recorded(lambda x: x * inner(lambda y: y * y if y > 1.0 else y, 2.0))
    assert constant(3.0)[1] == 4.0
    selecting = vm.recorded(lambda x: x * inner(lambda y: np.where(y * x > 1.0, y * y, y), x))
    assert [selecting(x)[1] for x in (2.0, 0.5, 3.0)] == [8.0, 1.0, 12.0]


def test_nothing_remains():
    def f(x):
        return np.sum(vm.grad(cubic)(x) * vm.jvp(np.sin, (x,), (x,))[1])

    def fails(x):
        inner = vm.grad(lambda y: y * x * (1 / 0))
        return vm.jvp(lambda z: inner(x) * z, (1.0,), (1.0,))[1]

    def stacks():
        tape = current_tape()
        return tape, tuple(map(len, (tape, tape.leaves, tape.kept, tape.assignments, tape.by_hand)))

    before = stacks()
    gc.collect()
    gc.disable()
    try:
        for functional in (vm.gradient, vm.hessian, vm.jacobian, vm.grad_hessian):
            functional(f, POINT)
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert stacks() == before
    refuses(ZeroDivisionError, None, vm.gradient, fails, 2.0)
    assert stacks() == before


def test_an_adjoint_from_outside_is_left_alone():
    with vm.nested():
        c = vm.var(3.0)
        (c * 2.0).grad()
        vm.grad(lambda x: x * x * c)(2.0)
        assert c.adj == 2.0


def test_operations_without_what_it_takes():
    @vm.operation()
    def one_way(x):
        return x**2

    one_way.reverse(lambda g, r, x: 2.0 * x * g)

    def squared(x):
        y = vm.make_callback_var(vm.value(x) ** 2, lambda y: None)
        return y + x

    for f, name in ((one_way, "one_way"), (squared, "make_callback_var")):
        refusal = f"^grad: the function uses {name}, which has no tangent rule, and variables from"
        refuses(TypeError, refusal, vm.grad(lambda x, f=f: vm.grad(lambda z: f(z) * x)(2.0)), 3.0)
        forward = vm.grad(lambda x, f=f: vm.derivative(lambda z: f(z) * x, 2.0))
        refuses(TypeError, rf"{name},? (which )?has no tangent rule", forward, 3.0)
    assert vm.grad(lambda x: x * vm.grad(one_way)(2.0))(3.0) == 4.0


def test_in_a_reverse_pass():
    with vm.nested():
        c, x = vm.var(3.0), vm.var(2.0)

        def callback():
            message = r"^grad: the function uses a Var of shape \(\) from outside and is called"
            refuses(vm.TapeError, message, lambda: vm.grad(lambda z: z * c)(1.0))
            refuses(vm.TapeError, "from outside", vm.jvp, lambda z: z * c, (1.0,), (1.0,))
            x.adj += vm.grad(lambda z: z**3)(2.0)

        vm.reverse_pass_callback(callback)
        (x * 1.0).grad()
        assert x.adj == 13.0


@pytest.mark.parametrize("inner", [
    lambda x: vm.grad(lambda z: x * z**3)(2.0),
    lambda x: vm.jvp(lambda z: x * z**3, (2.0,), (1.0,))[1],
])  # fmt: skip
def test_functionals_inside_functionals_in_a_reverse_rule(inner):
    """They differentiate variables that the rule makes itself, so the pass loses nothing."""

    @vm.operation()
    def cube(x):
        return x**3

    @cube.reverse
    def cube_reverse(g, r, x):
        return g * vm.grad(lambda x: inner(x) * x**2 / 12.0)(x)

    close(vm.gradient(cube, 5.0), 75.0, 1e-14)


@pytest.mark.parametrize(
    "functional", [vm.grad, vm.jacobian, lambda f: lambda x: vm.jvp(f, (x,), (1.0,))]
)
def test_duals_of_others_are_refused(functional):
    kept = []
    vm.jvp(lambda x: kept.append(x) or x, (1.0,), (1.0,))
    message = "has a derivative of varmat.jvp, which has returned"
    refuses(vm.TapeError, message, functional(lambda x: x * kept[0]), 2.0)
    message = "the result is a Dual that the function created, .*: return x.val or x.tan"
    refuses(vm.TapeError, message, functional(lambda x: x * vm.Dual(1.0, 1.0)), 2.0)


def assigned_inside(x):
    def inner(z):
        y = np.zeros_like(z)
        y[0] = x * z[0]
        return np.sum(y)

    return vm.jvp(inner, (np.ones(2),), (np.ones(2),))[1]


@pytest.mark.parametrize(("f", "x", "error", "message"), [
    (lambda x: vm.grad(lambda z: np.abs(z) ** 2 * x)(1.0 + 2.0j), 2.0, TypeError,
     "grad: an argument is complex, but must be real where the function uses variables"),
    (assigned_inside, 2.0, TypeError,
     "setitem: what is assigned has derivatives that the array has no place for"),
    (lambda x: vm.grad(lambda z: np.ones(2) * z * x)(1.0), 2.0, vm.ShapeError,
     r"grad: the result has shape \(2,\), but must be a scalar"),
    (lambda x: np.sum(finite_diff_gradient(np.sum, x)), np.ones(2), TypeError,
     "finite_diff_gradient: x is a VarMat, but must be plain numbers"),
    (lambda x: np.sum(vm.grad_hessian(np.sum, x)), np.ones(2), TypeError,
     "grad_hessian: x is a VarMat, but must be plain numbers"),
])  # fmt: skip
def test_refusals(f, x, error, message):
    refuses(error, f"^{message}", vm.grad(f), x)
