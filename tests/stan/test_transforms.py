"""Transforms and constraints of declared types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import refuses
from numpy.testing import assert_allclose

import varmat as vm

# A declaration, and a statement that makes the density depend on all elements.
DECLARED = [
    ("real<lower=1> x", "x ~ normal(0, 1);"),
    ("vector<lower=[0, 1]', upper=3>[2] x", "x ~ normal([0, 1]', 2);"),
    ("array[2] vector<upper=1>[2] x", "x[1] ~ normal([0, 1]', 2); x[2] ~ normal(1, 2);"),
    ("matrix[2, 3] x", "to_vector(x) ~ normal(linspaced_vector(6, 1, 6), 2);"),
    ("matrix<lower=0>[2, 3] x", "to_vector(x) ~ normal(linspaced_vector(6, 1, 6), 2);"),
    ("array[2] matrix<offset=1, multiplier=2>[2, 3] x",
     "for (i in 1:2) to_vector(x[i]) ~ normal(linspaced_vector(6, i, 6), 2);"),
    ("array[2, 3] real<lower=0> x", "to_array_1d(x) ~ normal({1, 2, 3, 4, 5, 6}, 2);"),
    ("array[2] simplex[3] x", "for (i in 1:2) x[i] ~ normal([i, 2, 4]', 2);"),
    ("unit_vector[3] x", "x ~ normal([0, 1, 2]', 1);"),
    ("array[2] ordered[3] x", "for (i in 1:2) x[i] ~ normal([i, 1, 2]', 1);"),
    ("positive_ordered[3] x", "x ~ normal([0, 1, 2]', 1);"),
    ("sum_to_zero_vector[3] x", "x ~ normal([0, 1, 2]', 1);"),
    # Weights that are no sum of one of the row and one of the column.
    ("sum_to_zero_matrix[3, 4] x", "to_vector(x) ~ normal(linspaced_vector(12, 1, 4)^3, 2);"),
    ("array[2] sum_to_zero_matrix[2, 3] x",
     "for (i in 1:2) to_vector(x[i]) ~ normal(linspaced_vector(6, i, 6)^3, 2);"),
    ("corr_matrix[3] x", "x[1, 2] ~ normal(1, 1); x[2, 3] ~ normal(2, 2); x[1, 3] ~ normal(0, 1);"),
    ("cov_matrix[2] x", "to_vector(x) ~ normal(linspaced_vector(4, 1, 4), 2);"),
    ("cholesky_factor_corr[3] x", "to_vector(x) ~ normal(linspaced_vector(9, 1, 9), 2);"),
    ("cholesky_factor_cov[3, 2] x", "to_vector(x) ~ normal(linspaced_vector(6, 1, 6), 2);"),
    ("array[2] cholesky_factor_cov[2] x",
     "for (i in 1:2) to_vector(x[i]) ~ normal(linspaced_vector(4, i, 4), 2);"),
]  # fmt: skip
MATRICES = [("column_stochastic_matrix[2, 3] x", (3,)), ("row_stochastic_matrix[2, 3] x", (4,))]


@pytest.mark.parametrize(("declared", "statement"), DECLARED)
def test_transforms_are_those_of_stan(declared: str, statement: str) -> None:
    stanli = pytest.importorskip("stanli")
    code = f"parameters {{ {declared}; }} model {{ {statement} }}"
    model, reference = vm.stan.Program(code).model(), stanli.Model(stan_code=code)
    q = np.random.default_rng(1).normal(size=(2, reference.n_unconstrained))
    values, gradients = zip(*map(vm.value_and_grad(_target(model)), q), strict=True)
    known = [reference.log_prob_grad(each) for each in q]
    assert_allclose(gradients, [each[1] for each in known], rtol=1e-11, atol=1e-11)
    change, same = values[1] - values[0], known[1][0] - known[0][0]
    assert_allclose(change, same, rtol=1e-11, atol=1e-14 * np.abs(values).max())


def _target(model: vm.Model) -> Any:
    return lambda q: model._target(q, True, True)


@pytest.mark.parametrize("declared", [each for each, _ in DECLARED] + [x for x, _ in MATRICES])
def test_unconstraining_is_the_inverse(declared: str) -> None:
    model = vm.stan.Program(f"parameters {{ {declared}; }}").model()
    q = 0.5 * np.random.default_rng(2).normal(size=model.param_unc_num())
    values = model.constrain(q)
    if not declared.startswith("unit_vector"):
        assert_allclose(model.param_unconstrain(values), q, rtol=1e-9, atol=1e-9)
    again = model.constrain(model.param_unconstrain(values))
    assert_allclose(again["x"], values["x"], rtol=1e-10, atol=1e-12)
    # The value satisfies the constraint as data, too.
    if "offset" not in declared:
        vm.stan.Program(f"data {{ {declared}; }}").model(values)


def test_stochastic_matrices_have_simplexes_by_columns_or_by_rows() -> None:
    for (declared, (size,)), axis in zip(MATRICES, (0, 1), strict=True):
        model = vm.stan.Program(f"parameters {{ {declared}; }}").model()
        assert model.param_unc_num() == size
        x = model.constrain(np.linspace(-1, 1, size))["x"]
        assert_allclose(x.sum(axis), 1.0)
        assert np.ptp(x) > 0.1


def test_a_simplex_has_the_log_jacobian_of_its_coordinates() -> None:
    model = vm.stan.Program("parameters { simplex[4] x; }").model()
    q = np.array([0.3, -0.2, 0.5])
    jacobian = vm.jacobian(lambda q: model.layout.unpack(q, False)[0]["x"][:3])(q)
    _, expected = np.linalg.slogdet(jacobian)
    assert_allclose(model.log_density(q), expected, rtol=1e-12)


def test_bounds_may_be_parameters() -> None:
    model = vm.stan.Program("""
        parameters {
          vector<lower=0>[2] a; real<lower=a[1], upper=a[1] + a[2]> class;
          matrix<lower=class>[2, 1] m;
        }
    """).model()
    values = model.constrain(np.zeros(5))
    assert (values["class"], values["m"].tolist()) == (1.5, [[2.5], [2.5]])
    assert_allclose(model.param_unconstrain(values), np.zeros(5), atol=1e-15)


def test_recordings_check_that_matrices_are_positive_definite() -> None:
    model = vm.stan.Program("""
        parameters { real x; }
        transformed parameters { cov_matrix[2] s = [[1, x], [x, 1]]; }
        model { x ~ normal(0, 1); }
    """).model()
    for x in (0.5, -0.25):
        assert_allclose(model.log_density_gradient(np.array([x]))[1], [-x], rtol=1e-14)
    assert not model._value_and_grad.program.python_steps()
    message = "s must be positive definite"
    refuses(vm.DomainError, message, model.log_density_gradient, np.array([1.5]))


def test_tuples_of_parameters_have_names_of_their_own() -> None:
    model = vm.stan.Program("""
        parameters { array[2] tuple(real<lower=0>, vector[2]) x; }
        model { for (i in 1:2) target += i * x[i].1 + x[i].2[1]; }
    """).model()
    assert model.param_names()[:4] == ["x.1:1", "x.1:2.1", "x.1:2.2", "x.2:1"]
    value, gradient = model.log_density_gradient(np.zeros(6), jacobian=False)
    assert value == 3.0
    assert gradient.tolist() == [1.0, 1.0, 0.0, 2.0, 1.0, 0.0]


@pytest.mark.parametrize(("declared", "value", "message"), [
    ("vector<lower=0>[2] x", "[1, -1]'", r"x\[2\] is -1.0, but must be greater than or equal"),
    ("real<upper=2> x", "3", "x is 3.0, but must be less than or equal to 2"),
    ("simplex[2] x", "[0.5, 0.6]'", "x must be with elements whose sum is 1"),
    ("ordered[2] x", "[2, 1]'", "x must be in ascending order"),
    ("cov_matrix[2] x", "[[1, 2], [2, 1]]", "x must be positive definite"),
    ("cholesky_factor_corr[2] x", "[[1, 0], [1, 1]]", "x must be of length 1 in each row"),
])  # fmt: skip
def test_constraints_of_transformed_parameters(declared: str, value: str, message: str) -> None:
    code = f"transformed parameters {{\n{declared} = {value}; }}"
    message = rf"{message}.*\(program, line 2\)"
    refuses(vm.DomainError, message, vm.stan.Program(code).model().log_density, np.empty(0))


def test_a_point_outside_of_a_constraint_is_refused_when_it_is_recorded() -> None:
    model = vm.stan.Program("""
        parameters { real u; }
        transformed parameters { real<lower=0> x = u; }
        model { u ~ normal(0, 1); }
    """).model()
    assert model.log_density_gradient(np.array([1.0]))[0] == -0.5
    assert model._value_and_grad.obstacle is None  # type: ignore[attr-defined]
    refuses(vm.DomainError, r"x is -1\.0", model.log_density_gradient, np.array([-1.0]))
