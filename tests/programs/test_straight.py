"""Densities, transforms and functions of matrices whose gradients are programs without a call of
Python.

The harness compares each of them with eager gradients in tests of its own. Here every runner runs a
recording at one more point, and no run may end at a guard.
"""

import mpmath
import numpy as np
import pytest
from comparing import close, near, refuses
from densities.multivariate import ARGUMENTS
from densities.multivariate import DENSITIES as MULTIVARIATE
from densities.references import columns, continuous, given
from recordings import EVERY_RUNNER, RUNNERS, agree

import varmat as vm
from varmat.densities.univariate import Univariate
from varmat.functions.special.gamma_differences import zeta_difference_straight
from varmat.programs.build.factorisations import UNROLLED
from varmat.programs.ir.interpret import interpret

ROWS = np.random.default_rng(3).normal(size=(4, 3))
DESIGN = np.random.default_rng(4).normal(size=(4, 2))
TIMES = np.linspace(0.0, 1.0, 4)
TWELVE = 1e-12
ENDINGS = ("lpdf", "lpmf")
A = np.array([0.3, -0.8, 1.1, 0.4, 0.9, -0.2, 0.7, 1.3, -0.5])
B = np.array([-0.6, 0.5, 0.2, 1.2, -0.4, 0.8, 0.1, -0.9, 0.6])


def square(x):
    return np.reshape(x, (3, 3)) + 3.0 * np.eye(3)


def covariance(x):
    a = np.reshape(x, (3, 3))
    return a @ a.T + np.eye(3)


def factor(x):
    return vm.cholesky_factor_constrain(x[:6], 3)


def size(x):
    return np.exp(x[8])


def with_jacobian(transform, *settings):
    """Return a function that depends on the value and on the log-Jacobian of a transform."""

    def f(x):
        y, log_jacobian = transform(x, *settings, jacobian=True)
        return np.sum(np.sin(y)) + log_jacobian

    return f


# Variants that the sweeps below over all densities do not have.
DENSITIES = {
    "categorical, each its own": lambda x:
        vm.categorical_lpmf([1, 3, 2], vm.softmax(square(x), axis=1)),
    "categorical_logit, each its own": lambda x: vm.categorical_logit_lpmf([1, 3, 2], square(x)),
    "dirichlet, rows": lambda x: vm.dirichlet_lpdf(vm.softmax(square(x), axis=1), np.exp(x[:3])),
    "dirichlet, constant prior": lambda x: vm.dirichlet_lupdf(vm.softmax(x[:3]), [1.0, 2.0, 0.5]),
    "lkj_corr": lambda x: vm.lkj_corr_lpdf(vm.corr_matrix_constrain(x[:3], 3), size(x)),
    "log_mix of many": lambda x: np.sum(vm.log_mix(vm.softmax(x[:3]), square(x))),
    "multi_normal, rows": lambda x: vm.multi_normal_lpdf(ROWS, x[:3], covariance(x)),
    "multi_normal, observations": lambda x: vm.multi_normal_lpdf(square(x), 0.5, covariance(A)),
    "multi_normal_cholesky, rows": lambda x: vm.multi_normal_cholesky_lpdf(ROWS, x[:3], factor(x)),
    "multi_normal_prec, rows": lambda x: vm.multi_normal_prec_lupdf(ROWS, x[:3], covariance(x)),
    "multi_student_t, rows": lambda x: vm.multi_student_t_lpdf(ROWS, size(x), x[:3], covariance(x)),
    "multi_student_t_cholesky": lambda x:
        vm.multi_student_t_cholesky_lpdf(ROWS, 4.0, x[:3], factor(x)),
    "normal_id_glm, design": lambda x:
        vm.normal_id_glm_lpdf(TIMES, np.reshape(x[:8], (4, 2)), 0.5, DESIGN[0], size(x)),
    "ordered_logistic, cutpoints": lambda x:
        vm.ordered_logistic_lpmf([1, 3, 4, 2], x[0], vm.ordered_constrain(x[1:4])),
}  # fmt: skip

TRANSFORMS = {
    "cholesky_corr": with_jacobian(lambda x, k, jacobian: vm.cholesky_corr_constrain(x[:3], k,
        jacobian), 3),
    "cholesky_factor": with_jacobian(lambda x, *shape, jacobian: vm.cholesky_factor_constrain(x,
        *shape, jacobian), 4, 3),
    "corr_matrix": with_jacobian(lambda x, k, jacobian: vm.corr_matrix_constrain(x[:6], k,
        jacobian), 4),
    "cov_matrix": with_jacobian(lambda x, k, jacobian: vm.cov_matrix_constrain(x[:6], k, jacobian),
     3),
    "bounds of transforms": lambda x: np.sum(np.sin(vm.transforms.LowerUpper(x[0], x[0] + size(x),
        3).constrain(x[3:6]))),
    "bounds of the transform of a number": lambda x: np.sin(vm.transforms.LowerUpper(x[0],
        x[0] + size(x)).constrain(x[3])),
    "lower bound": lambda x: np.sum(np.sin(vm.lb_constrain(x[:3], x[3]))),
    "lower and upper bounds": lambda x: np.sum(np.sin(vm.lub_constrain(x[:3], x[3],
        x[3] + size(x)))),
    "ordered": with_jacobian(vm.ordered_constrain),
    "simplex": with_jacobian(vm.simplex_constrain),
    "sum to zero": with_jacobian(vm.sum_to_zero_constrain),
    "unit vector": with_jacobian(vm.unit_vector_constrain),
}  # fmt: skip

FUNCTIONS = {
    "chol2inv": lambda x: np.sum(np.sin(vm.chol2inv(factor(x)))),
    "cholesky": lambda x: np.sum(np.sin(np.linalg.cholesky(covariance(x)))),
    "cumprod": lambda x: np.sum(np.cumprod(square(x), axis=0)),
    "digamma": lambda x: np.sum(vm.digamma(np.exp(x))),
    "det": lambda x: np.linalg.det(square(x)),
    "det, stack": lambda x: np.sum(np.sin(np.linalg.det(np.stack([square(x), covariance(x)])))),
    "einsum, four": lambda x: np.sum(np.einsum("ki,ij,kj->k", ROWS, square(x), ROWS) ** 2),
    "einsum, products": lambda x: np.sum(np.einsum("ij,kj->ki", square(x), ROWS) ** 2),
    "einsum, stacks": lambda x:
        np.sum(np.einsum("nij,nj->ni", np.stack([square(x), covariance(x)]), ROWS[:2]) ** 2),
    "expit of an array": lambda x: np.sum(vm.inv_logit(np.concatenate([x] * 100))),
    "gp_periodic_cov": lambda x: np.sum(vm.gp_periodic_cov(TIMES, size(x), 0.5, np.exp(x[0]))),
    "inv": lambda x: np.sum(np.sin(np.linalg.inv(square(x)))),
    "inv, stack": lambda x: np.sum(np.sin(np.linalg.inv(np.stack([square(x), covariance(x)])))),
    "inverse_spd": lambda x: np.sum(np.sin(vm.inverse_spd(covariance(x)))),
    "lbeta": lambda x: np.sum(vm.lbeta(np.exp(x[:3]), size(x) * 200.0)),
    "log_determinant": lambda x: vm.log_determinant(square(x)),
    "log_determinant_spd": lambda x: vm.log_determinant_spd(covariance(x)),
    "log_inv_logit": lambda x:
        np.sum(vm.log_inv_logit(x) * vm.log1m_inv_logit(x)) + vm.log_inv_logit(x[0]),
    "log_rising_factorial": lambda x: np.sum(vm.log_rising_factorial(np.exp(3.0 * x), size(x))),
    "matern, points": lambda x: np.sum(vm.gp_matern32_cov(x, size(x), 0.5)),
    "mdivide_left_spd": lambda x: np.sum(np.sin(vm.mdivide_left_spd(covariance(x), x[:3]))),
    "mdivide_left_tri_low": lambda x: np.sum(np.sin(vm.mdivide_left_tri_low(factor(x), x[:3]))),
    "mdivide_right": lambda x: np.sum(np.sin(vm.mdivide_right(ROWS, square(x)))),
    "multiply_lower_tri_self_transpose": lambda x:
        np.sum(np.sin(vm.multiply_lower_tri_self_transpose(square(x)))),
    "lfilter, all variables": lambda x: sum(np.sum(np.sin(part)) for part in vm.lfilter(
        x[:2], np.append(2.0, x[2:3]), square(x), axis=0, zi=x[3:6][None, :])),
    "lfilter, one series": lambda x: np.sum(vm.lfilter(x[:3], [1.0, 0.5], x) ** 3),
    "norm": lambda x: np.linalg.norm(x),
    "norm of columns": lambda x: np.sum(np.linalg.norm(square(x), axis=0) ** 2),
    "norm, one": lambda x: np.linalg.norm(square(x), 1),
    "norm, infinite": lambda x: np.linalg.norm(x, np.inf),
    "norm, of order 3": lambda x: np.linalg.norm(x, 3.0),
    "powers": lambda x: np.sum(x**3 + x**4) + x[0] ** 3 + np.sum(x**-2),
    "prod": lambda x: np.prod(x) + np.sum(np.prod(square(x), axis=1)),
    "quad_form": lambda x: np.sum(np.sin(vm.quad_form(square(x), ROWS.T))),
    "quad_form_diag": lambda x: np.sum(np.sin(vm.quad_form_diag(covariance(x), x[:3]))),
    "quad_form_sym": lambda x: np.sum(np.sin(vm.quad_form_sym(covariance(x), square(x)))),
    "rows_dot_self": lambda x: np.sum(vm.rows_dot_self(square(x)) ** 2),
    "slogdet": lambda x: np.linalg.slogdet(square(x)).logabsdet,
    "solve": lambda x: np.sum(np.sin(np.linalg.solve(square(x), x[:3]))),
    "solve, columns": lambda x: np.sum(np.sin(np.linalg.solve(square(x), ROWS.T))),
    "solve, stack": lambda x:
        np.sum(np.sin(np.linalg.solve(np.stack([square(x), covariance(x)]), x[:3]))),
    "solve_triangular, upper": lambda x: np.sum(np.sin(vm.solve_triangular(square(x), x[:3]))),
    "squared exponential, a length scale for each dimension": lambda x:
        np.sum(vm.gp_exp_quad_cov(DESIGN, size(x), np.exp(x[:2]))),
    "std": lambda x: np.std(x) + np.sum(np.std(square(x), axis=0, ddof=1)),
    "logsumexp, weights": lambda x: np.sum(vm.logsumexp(square(x), axis=1, b=[1.0, 0.0, 3.0])),
    "logsumexp, variable weights": lambda x: vm.logsumexp(x[:3], b=np.exp(x[3:6])),
    "categories of a loop": lambda x: sum(
        vm.categorical_lpmf(1 + t % 3, vm.softmax(x[:3] * t))
        + vm.categorical_logit_lpmf(1 + t % 2, x[3:6] * t) for t in range(40)
    ),
    "sum of masses": lambda x: vm.beta_neg_binomial_lccdf([1, 2], *np.exp(x[:3])),
    "eigenvalues": lambda x: np.sum(ROWS[0] * vm.eigenvalues_sym(square(x) + square(x).T) ** 2),
    "eigenvectors": lambda x: np.sum(np.linalg.eigh(square(x), "U").eigenvectors[0] ** 4),
    "trace_quad_form": lambda x: vm.trace_quad_form(square(x), ROWS.T),
}  # fmt: skip
NATIVE = {**DENSITIES, **TRANSFORMS, **FUNCTIONS}


@pytest.mark.parametrize("name", NATIVE)
def test_no_step_calls_python(name):
    recorded = agree(NATIVE[name], (A,), (B,), rtol=TWELVE, runners=RUNNERS[-1:])
    steps = f"{len(recorded.program)} steps"
    assert recorded.program.explain() == f"{steps}; none calls Python"
    near(interpret(recorded.program, B), vm.value_and_grad(NATIVE[name])(B))


DENSITIES_OF_ONE_VARIABLE = [
    x for x in (getattr(vm, name) for name in vm.__all__)
    if isinstance(x, Univariate) and x.name[-4:] in ENDINGS
]  # fmt: skip


def test_densities_call_no_python_whichever_arguments_are_variables():
    """Gradients, and second derivatives but for those of beta functions in their shapes."""
    found = set()
    for row in DENSITIES_OF_ONE_VARIABLE:
        for args, of in ((given(row, row.points[0]), lambda f: f), (columns(row), vm.hessian)):
            for i in continuous(row):
                f = lambda x, i=i, row=row, args=args: row(*args[:i], x, *args[i + 1 :])  # noqa: E731 - a function of one argument
                recorded = vm.recorded(of(f), runner="numpy")
                recorded(args[i])
                steps = recorded.program.python_steps()
                found.update((row.name, step.kernel.name) for step in steps)
    assert len(DENSITIES_OF_ONE_VARIABLE) > 40
    assert {kernel for _, kernel in found} == {"zeta_difference"}, found


def test_densities_of_vectors_and_matrices_call_no_python():
    found = set()
    for name, (args, others) in ARGUMENTS.items():
        for i in (i for i, other in enumerate(others) if other is not None):

            def f(x, i=i, name=name, args=args):
                return MULTIVARIATE[name](*args[:i], x, *args[i + 1 :])

            recorded = vm.recorded(f, runner="numpy")
            recorded(args[i])
            found.update(name for _ in recorded.program.python_steps())
    assert found == {"lkj_cov_lpdf"}


@pytest.mark.parametrize(("f", "inside", "outside"), [
    (lambda x: vm.dirichlet_lpdf(x, [2.0, 3.0]), [0.3, 0.7], [0.3, 0.8]),
    (lambda x: vm.lkj_corr_cholesky_lpdf(np.reshape(x, (2, 2)), 2.0), [1.0, 0.0, 0.6, 0.8],
     [1.0, 0.0, 0.6, 0.9]),
    (lambda x: vm.lkj_corr_lpdf(np.reshape(x, (2, 2)), 2.0), [1.0, 0.5, 0.5, 1.0],
     [1.0, 2.0, 2.0, 1.0]),
    (lambda x: vm.wishart_lpdf(np.reshape(x, (2, 2)), 3.0, np.eye(2)), [1.0, 0.5, 0.5, 1.0],
     [1.0, 2.0, 2.0, 1.0]),
    (lambda x: vm.multi_student_t_lpdf(ROWS[0], x[0], 0.0, np.eye(3)), [3.0], [np.inf]),
    (lambda x: vm.multi_normal_lpdf(x, 0.0, np.eye(2)), [0.3, 0.7], [0.3, -np.inf]),
    (lambda x: np.linalg.norm(x), [0.3, 0.7], [0.0, 0.0]),
    (lambda x: np.linalg.norm(x, 3.0), [0.3, 0.7], [1e-200, 2e-200]),
    (lambda x: np.std(x), [0.3, 0.7, 0.2], [0.1, 0.1, 0.1]),
    (lambda x: np.linalg.det(np.reshape(x, (2, 2))), [0.3, 0.7, 0.2, 0.1], [1.0, 2.0, 2.0, 4.0]),
    (lambda x: np.sum(np.cumprod(x)), [0.3, 0.7], [0.0, 0.7]),
])  # fmt: skip
def test_the_function_is_evaluated_where_the_program_ends(f, inside, outside):
    """The program cannot compute the value of a density outside its support, a limit, or a point
    that needs the careful form.
    """
    recorded = agree(f, (np.array(inside),), (np.array(outside),), rtol=TWELVE, elsewhere=1)
    assert not recorded.program.python_steps()


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize(
    "f", [np.linalg.inv, lambda a: np.linalg.solve(a, np.ones(2)), lambda a: vm.inverse_spd(a)]
)
def test_singular_matrices_are_refused(f, runner):
    recorded = vm.recorded(lambda x: np.sum(f(np.reshape(x, (2, 2)))), runner=runner)
    recorded(np.array([2.0, 1.0, 1.0, 3.0]))
    assert not recorded.program.python_steps()
    with pytest.raises(vm.DomainError, match=r"is singular|has the eigenvalue"):
        recorded(np.array([1.0, 1.0, 1.0, 1.0]))


def test_products_of_zeros_have_derivatives():
    agree(np.prod, (np.array([0.3, 0.7, 2.0]),), (np.array([0.0, 0.7, 2.0]),))


@pytest.mark.parametrize("runner", RUNNERS)
def test_bounds_are_looked_at_in_every_run(runner):
    """Checks of arguments become guards, and do not call Python."""
    recorded = vm.recorded(lambda x: vm.lub_constrain(x[2], x[0], x[1]), runner=runner)
    recorded(np.array([0.0, 1.0, 0.3]))
    assert not recorded.program.python_steps()
    message = r"lb is 0\.0, but must be less than ub, which is -1\.0"
    refuses(vm.DomainError, message, recorded, np.array([0.0, -1.0, 0.3]))


def test_systems_of_a_loop_are_one_stack():
    def f(x):
        pairs = [(x[i : i + 2], x[i + 1 : i + 3]) for i in range(40)]
        return sum(np.sum(np.linalg.solve(np.diag(a) + 1.0, b)) for a, b in pairs)

    points = [np.linspace(0.5, 2.0, 42), np.linspace(0.7, 1.5, 42)]
    recorded = agree(f, *((x,) for x in points), rtol=TWELVE)
    assert recorded.program.counts()["solve"] == 2


@pytest.mark.parametrize("f", [
    lambda a: np.sum(np.sin(np.linalg.cholesky(a))),
    lambda a: vm.multi_normal_lpdf(np.ones((2, len(a))), 0.5, a),
])  # fmt: skip
def test_larger_systems_are_steps(f):
    rng, n = np.random.default_rng(0), 73
    a, b = (x @ x.T + n * np.eye(n) for x in rng.normal(size=(2, n, n)))
    recorded = agree(f, (a,), (b,), rtol=TWELVE)
    assert not recorded.program.python_steps()
    assert recorded.program.counts()["solve_triangular"]


@pytest.mark.parametrize("f", [
    np.linalg.inv, np.linalg.cholesky, lambda a: np.linalg.solve(a, np.ones(len(a))),
    vm.inverse_spd,
])  # fmt: skip
def test_large_matrices_call_python(f):
    """For large matrices LAPACK works block by block, and keeps its factors for the reverse
    pass.
    """
    recorded = vm.recorded(lambda a: np.sum(f(a)))
    recorded(2.0 * np.eye(UNROLLED + 1))
    assert recorded.program.python_steps()


def test_differences_of_digamma_functions_by_one_formula():
    points = [
        (1e-8, 1.0), (0.3, 0.2), (0.5, 1e-9), (3.0, 4.5), (7.0, -6.5), (11.9, 0.2), (50.0, 1e8),
        (1e8, 2.0), (1e-3, 1e10),
    ]  # fmt: skip
    with mpmath.workdps(50):
        pairs = [(mpmath.mpf(y), mpmath.mpf(z)) for y, z in points]
        exact = [float(mpmath.psi(0, y + z) - mpmath.psi(0, y)) for y, z in pairs]
    y, z = np.array(points).T
    close(zeta_difference_straight(1.0, y, z), exact, 1e-15 * 8)
