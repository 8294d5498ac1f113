"""Programs as functions of JAX: every kernel, random programs, refusals."""

import numpy as np
import pytest
from comparing import close, refuses
from scipy import sparse

import varmat as vm
from varmat.programs.run.jax import scalar_to_jax

jax = pytest.importorskip("jax", reason="JAX is not installed")
X = np.array([0.3, -1.2, 0.7, 2.1, -0.4, 1.5])
COUNTS = np.array([3, 0, 2])
PATTERN = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))


@pytest.fixture(autouse=True)
def double():
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)  # which take most of the time
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def spd(x):
    return np.eye(2) + np.outer(x[:2], x[:2])


CASES = {
    "arithmetic": lambda x: np.sum((x[1:] - x[:-1]) ** 2 / (1.0 + x[1:] ** 2)),
    "choices": lambda x:
        np.sum(np.where(x > 0.0, np.sqrt(np.abs(x)), np.expm1(x))) + np.max(x) + np.min(x[2:]),
    "densities": lambda x:
        vm.normal_lpdf(x[:3], x[3], np.exp(x[4])) + vm.student_t_lpdf(x[1:], 4.0, 0.1, 2.0),
    "masses": lambda x:
        vm.poisson_log_lpmf(COUNTS, x[:3]) + vm.bernoulli_logit_lpmf([1, 0, 1], x[3:]),
    "gamma": lambda x:
        vm.gamma_lpdf(np.exp(x), 2.5, np.exp(x[0]))
        + vm.beta_lpdf(1.0 / (1.0 + np.exp(-x)), 2.0, np.exp(x[1])),
    "special functions": lambda x:
        np.sum(vm.lgamma(np.exp(x))) + np.sum(vm.Phi(x)) + np.sum(vm.log_ndtr(x)),
    "matrices": lambda x: vm.multi_normal_lpdf(x[2:4], x[4:], spd(x)),
    "factors": lambda x:
        np.sum(np.log(np.diag(np.linalg.cholesky(spd(x))))) + np.linalg.det(spd(x)),
    "systems": lambda x: np.sum(np.linalg.solve(spd(x), x[2:4])) + np.sum(np.linalg.inv(spd(x))),
    "running sums": lambda x: np.sum(np.cumsum(x) ** 2) + vm.log_sum_exp(x),
    "transposes and steps": lambda x:
        np.sum(np.reshape(x, (2, 3)).T[::-1] * np.arange(6.0).reshape(3, 2)) + np.sum(x[::2] ** 3),
    "indices": lambda x: np.sum(x[[0, 0, 3]] * x[[1, 2, 5]] ** 2),
    "a product of three": lambda x: np.sum(np.reshape(x, (2, 3)) @ np.reshape(x, (3, 2)) @ x[:2]),
    "sparse": lambda x: np.sum((vm.SparseVar(x[:3], PATTERN) @ x[3:]) ** 2),
}  # fmt: skip


def written(x):
    y = np.zeros_like(x)
    for i in range(1, 6):
        y[i] = 0.5 * y[i - 1] + x[i] ** 2
    return np.sum(y * x)


CASES["assignments"] = written


def test_values_and_gradients_are_ours():
    recorded = {name: vm.recorded(f, runner="numpy") for name, f in CASES.items()}
    expected = {name: f(X) for name, f in recorded.items()}
    functions = {name: f.program.to_jax() for name, f in recorded.items()}
    found = jax.jit(lambda x: {name: f(x) for name, f in functions.items()})(X)
    for name, (value, gradient) in expected.items():
        other, slope = found[name]
        assert float(other) == pytest.approx(value, rel=1e-12), name
        np.testing.assert_allclose(slope, gradient, rtol=1e-12, atol=1e-13, err_msg=name)


SPECIAL = {
    "log beta": lambda x: vm.betaln(x[0], x[1]),
    "gamma": lambda x: vm.tgamma(x[0]),
    "normal tails": lambda x: vm.log_ndtr(8.0 - x[0]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_have_all_digits(name):
    """JAX's own betaln is wrong from the sixth digit on, its log_ndtr in both tails."""
    points = np.array([[0.4, 1.3], [8.8, 0.4], [5.0, 7.5], [28.5, 30.0], [97.0, 60.0]])
    f = vm.recorded(SPECIAL[name], runner="numpy")
    f(points[0])
    of_jax = jax.jit(f.program.to_jax())
    for point in points:
        close(of_jax(point), f(point), 1e-12)


def test_many_points_at_once():
    f = vm.recorded(CASES["densities"], runner="numpy")
    f(X)
    points = X + np.linspace(-0.1, 0.1, 5)[:, None]
    found = jax.jit(jax.vmap(f.program.to_jax()))(points)
    close(found, f.map(points), 1e-12, 1e-12)


def test_the_gradient_is_that_of_the_program():
    f = vm.recorded(CASES["matrices"], runner="numpy")
    value, gradient = f(X)
    of_jax = scalar_to_jax(f.program)
    found, slope = jax.jit(jax.value_and_grad(lambda x: of_jax(2.0 * x)))(0.5 * X)
    close(slope, 2.0 * gradient, 1e-12)
    assert float(found) == pytest.approx(value, rel=1e-12)


def test_the_result_is_nan_where_a_run_would_end():
    f = vm.recorded(lambda x: vm.normal_lpdf(0.0, 0.0, x[0]), runner="numpy")
    f(np.array([1.0]))
    value, gradient = f.program.to_jax()(np.array([-1.0]))
    assert np.isnan(value)
    assert np.isnan(gradient).all()


def test_steps_that_jax_cannot_run_are_named():
    @vm.operation()
    def cube(x):
        return x**3

    @cube.reverse
    def _(g, r, x):
        return 3.0 * x**2 * g

    f = vm.recorded(lambda x: np.sum(cube(x)) + vm.owens_t(x[0], x[1]), runner="numpy")
    f(X)
    message = "to_jax: JAX cannot run the steps cube, cube.reverse, owens_t of this program"
    refuses(TypeError, message, f.program.to_jax)


def test_a_ufunc_of_another_library_with_a_name_of_jax_is_refused():
    builders = pytest.importorskip("numba.np.ufunc.ufuncbuilder", reason="numba is not installed")

    def expit(x):
        return 2.0 * x

    builder = builders.UFuncBuilder(expit)
    builder.add("f8(f8)")
    double = vm.elementwise("my_double", builder.build_ufunc(), "2.0 * g")
    f = vm.recorded(lambda x: np.sum(double(x)), runner="numpy")
    assert f(X)[0] == 2.0 * np.sum(X)
    assert "expit" in f.program.counts()
    refuses(TypeError, r"^to_jax: JAX cannot run the steps expit of this program", f.program.to_jax)
