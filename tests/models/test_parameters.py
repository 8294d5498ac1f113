"""The parameters a model can have: their sets, their shapes, and that their log-Jacobians make a
change of variables.
"""

import functools
from math import gamma, pi

import numpy as np
import pytest
from comparing import close, equal, refuses

import varmat as vm
from varmat import transforms

FACTORIES = [
    (vm.real(2, 3), transforms.Real, (2, 3), 6),
    (vm.real(), transforms.Real, (), 1),
    (vm.positive(4), transforms.Positive, (4,), 4),
    (vm.lower(-1.0, 2), transforms.Lower, (2,), 2),
    (vm.upper([1.0, 2.0], 2), transforms.Upper, (2,), 2),
    (vm.lower_upper(0, 1), transforms.LowerUpper, (), 1),
    (vm.interval(0, [1.0, 2.0], 3, 2), transforms.LowerUpper, (3, 2), 6),
    (vm.offset_multiplier(1.0, 2.0, 2), transforms.OffsetMultiplier, (2,), 2),
    (vm.ordered(3), transforms.Ordered, (3,), 3),
    (vm.positive_ordered(3, 2), transforms.PositiveOrdered, (2, 3), 6),
    (vm.simplex(3, 2), transforms.Simplex, (2, 3), 4),
    (vm.sum_to_zero(3), transforms.SumToZero, (3,), 2),
    (vm.unit_vector(3), transforms.UnitVector, (3,), 3),
    (vm.corr_matrix(3), transforms.CorrMatrix, (3, 3), 3),
    (vm.cov_matrix(3, 2), transforms.CovMatrix, (2, 3, 3), 12),
    (vm.cholesky_corr(3), transforms.CholeskyFactorCorr, (3, 3), 3),
    (vm.cholesky_cov(3), transforms.CholeskyFactorCov, (3, 3), 6),
    (vm.cholesky_cov(3, 2), transforms.CholeskyFactorCov, (3, 2), 5),
    (vm.cholesky_cov(3, 2, 4, 5), transforms.CholeskyFactorCov, (4, 5, 3, 2), 100),
]


@pytest.mark.parametrize(("parameter", "kind", "shape", "size"), FACTORIES)
def test_factories(parameter, kind, shape, size):
    """Of the stated kind and sizes, and the way back from values to the vector."""
    assert type(parameter) is kind
    assert parameter.shape == shape
    assert parameter.unconstrained_size == size
    model = vm.Model(lambda x: 0.0, x=parameter)
    q = np.random.default_rng(1).uniform(-1.5, 1.5, size)
    q = q / np.linalg.norm(q) if kind is transforms.UnitVector else q
    values = model.constrain(q)
    assert np.shape(values["x"]) == shape
    close(model.param_unconstrain(values), q, 1e-10, 1e-12)
    close(model.param_unconstrain(model.param_constrain(q)), q, 1e-10, 1e-12)


def test_interval_is_lower_upper():
    message = r"^interval: lower\[1\] is 3.0, but must be less than upper, which is 1.0!$"
    refuses(vm.DomainError, message, vm.interval, [0.0, 3.0], 1.0, 2)


def test_a_shape_may_be_one_tuple():
    for made, expected in (
        (vm.real((2, 3)), (2, 3)), (vm.positive(()), ()), (vm.lower(0.0, (2,)), (2,)),
        (vm.interval(0, lambda a: a, (2, 1)), (2, 1)),
        (vm.simplex(3, (2,)), (2, 3)),
    ):  # fmt: skip
        assert made.shape == expected


@pytest.mark.parametrize("size", [-1, 2.0, "a", True, (2, -1), (2, (3,))])
def test_sizes_are_refused(size):
    message = r"positive: a size is .*, but must be a nonnegative integer!"
    refuses(vm.ShapeError, message, vm.positive, size)


def beta_density(p, a, b):
    return dirichlet(np.stack([p, 1 - p]), [a, b])


def dirichlet(p, a):
    constant = np.log(gamma(sum(a)) / np.prod([gamma(x) for x in a]))
    return np.sum((np.asarray(a) - 1) * np.log(p)) + constant


def normal(x):
    return np.sum(-0.5 * x * x - 0.5 * np.log(2 * pi))


def gamma_3(x):
    return 2 * np.log(x) - x - np.log(2)


def triangle(alpha, beta):
    """Of a point in the triangle alpha + beta < 1."""
    return np.log(alpha) + 2 * np.log(beta) + 3 * np.log(1 - alpha - beta) + np.log(gamma(9) / 12)


# A normalised density of the parameters. As a density of the unconstrained vector it must integrate
# to 1 too.
DENSITIES = {
    "real": (lambda x: normal(x), {"x": vm.real(2)}),
    "positive": (lambda x: gamma_3(x), {"x": vm.positive()}),
    "lower": (lambda x: gamma_3(x + 3), {"x": vm.lower(-3)}),
    "upper": (lambda x: gamma_3(3 - x), {"x": vm.upper(3)}),
    "interval": (lambda x: beta_density((x - 1) / 4, 2, 3) - np.log(4), {"x": vm.interval(1, 5)}),
    "offset_multiplier": (lambda x: normal((x - 5) / 3) - np.log(3),
                          {"x": vm.offset_multiplier(1, 2)}),
    "ordered": (lambda x: normal(x[0]) + gamma_3(x[1] - x[0]), {"x": vm.ordered(2)}),
    "positive_ordered": (lambda x: gamma_3(x[0]) + gamma_3(x[1] - x[0]),
                         {"x": vm.positive_ordered(2)}),
    "simplex": (lambda x: dirichlet(x, [3, 4, 2]), {"x": vm.simplex(3)}),
    "sum_to_zero": (lambda x: normal(x) + 0.5 * np.log(2 * pi), {"x": vm.sum_to_zero(3)}),
    "unit_vector": (lambda x: -np.log(2 * pi), {"x": vm.unit_vector(2)}),
    "corr_matrix": (lambda x: beta_density((1 + x[1, 0]) / 2, 2, 3) - np.log(2),
                    {"x": vm.corr_matrix(2)}),
    "cholesky_corr": (lambda x: beta_density((1 + x[1, 0]) / 2, 2, 3) - np.log(2),
                      {"x": vm.cholesky_corr(2)}),
    "cov_matrix": (lambda x: gamma_3(x[0, 0]), {"x": vm.cov_matrix(1)}),
    "cholesky_cov": (lambda x: gamma_3(x[0, 0]), {"x": vm.cholesky_cov(1)}),
    "two": (lambda x, y: normal(x) + gamma_3(y), {"x": vm.real(), "y": vm.positive()}),
    "dependent": (triangle,
                  {"alpha": vm.interval(0, 1), "beta": vm.lower_upper(0, lambda alpha: 1 - alpha)}),
    "chain": (lambda a, b: gamma_3(-a) + gamma_3(b - 2 * a),
              {"a": vm.upper(0), "b": vm.lower(lambda a: 2 * a)}),
    "centred": (lambda tau, x: gamma_3(tau) + normal(x / tau) - np.log(tau),
                {"tau": vm.positive(), "x": vm.offset_multiplier(0, lambda tau: tau)}),
}  # fmt: skip


@pytest.mark.parametrize("name", DENSITIES)
def test_change_of_variables(name):
    density, parameters = DENSITIES[name]
    model = vm.Model(density, **parameters)
    # The trapezoidal rule converges exponentially for analytic functions that decay at both ends.
    dimensions = model.param_unc_num()
    step = 0.1 if dimensions == 1 else 0.3
    axes = np.meshgrid(*[step * (np.arange(-14 / step, 14 / step) + 0.25)] * dimensions)
    points = np.stack([axis.ravel() for axis in axes], axis=-1)
    with np.errstate(all="ignore"):
        values, _ = model.log_density_gradient.map(points)
        some = slice(7, None, max(1, len(points) // 50))
        direct = [model.log_density(q) for q in points[some]]
    near = np.abs(points[some]).max(axis=1) < 9.0  # farther away, digits of a bound are lost
    close(values[some][near], np.array(direct)[near], 1e-9, 1e-9)
    # There is no mass where a parameter is rounded to its bound.
    mass = np.sum(np.exp(values), where=~np.isnan(values)) * step**dimensions
    assert abs(mass - 1) < 1e-9


@pytest.mark.parametrize("bound", [
    lambda lo, k=1: lo[k],                       lambda lo, *, k=1: lo[k],
    lambda lo, /, k=1: lo[k],                    lambda lo, y, unknown=0: lo[y],
    lambda lo, y=0: lo[y],  # a default is replaced by what is known
    lambda unknown=0, *, lo: lo[1 + unknown],    functools.partial(lambda lo, k: lo[k], k=1),
    functools.partial(lambda k, lo: lo[k], 1),
])  # fmt: skip
def test_bound_with_a_default(bound):
    model = vm.Model(lambda x: -x, lo=vm.real(2), x=vm.lower(bound), data={"y": 1})
    q = np.array([5.0, -3.0, 0.0])
    assert model.constrain(q)["x"] == -2.0
    equal(model.log_density_gradient(q)[1], [0.0, -1.0, 0.0])
    equal(model.param_unconstrain({"lo": q[:2], "x": -2.0}), q)


def test_bound_that_depends_needs_a_model():
    message = r"the bounds depend on a: use this transform in a varmat.Model"
    refuses(TypeError, message, lambda: vm.lower(lambda a: a).constrain(0.0))
    refuses(TypeError, message, lambda: vm.lower(lambda a: a).unconstrain(1.0))


def test_bound_refused_at_a_point():
    model = vm.Model(lambda a, b: a + b, a=vm.real(), b=vm.lower_upper(0.0, lambda a: a))
    refuses(vm.DomainError, "but must be less than ub", model.log_density, np.array([-1.0, 0.0]))


@pytest.mark.parametrize("make", [
    vm.simplex, vm.cholesky_corr, vm.corr_matrix, vm.cov_matrix, vm.cholesky_cov,
])  # fmt: skip
def test_sizes_may_be_small_integers(make):
    """Numbers of elements that are computed of those of NumPy would wrap around."""
    transform, same = make(np.uint8(20)), make(20)
    assert (transform.shape, transform.unconstrained_size) == (same.shape, same.unconstrained_size)
    assert repr(transform) == repr(same)
