"""Arguments at the edges of the domains: the library answers or refuses with its own messages, not
with NumPy's.
"""

import re

import mpmath
import numpy as np
import pytest
from comparing import close, equal, refuses

import varmat as vm
from varmat.stan import containers
from varmat.testing import expect_ad, expect_ad_matvar

M23, M32 = np.ones((2, 3)), np.ones((3, 2))

REFUSED = {
    "add": (lambda: vm.var(M23) + vm.var(M32), vm.ShapeError,
        "add: operands have shapes (2, 3) and (3, 2), but must broadcast!"),
    "subtract": (lambda: M23 - vm.var(M32), vm.ShapeError,
        "subtract: operands have shapes (2, 3) and (3, 2), but must broadcast!"),
    "large": (lambda: vm.var(np.ones(100_000)) * np.ones(3), vm.ShapeError,
        "multiply: operands have shapes (100000,) and (3,), but must broadcast!"),
    "data": (lambda: vm.beta(np.ones(3), np.ones(2)), vm.ShapeError,
        "beta: operands have shapes (3,) and (2,), but must broadcast!"),
    "three": (lambda: vm.fma(vm.var(np.ones(3)), np.ones(2), 1.0), vm.ShapeError,
        "fma: operands have shapes (3,) and (2,) and (), but must broadcast!"),
    "empty": (lambda: vm.lbeta(vm.var(np.ones(0)), np.ones(2)), vm.ShapeError,
        "lbeta: operands have shapes (0,) and (2,), but must broadcast!"),
    "stack": (lambda: np.stack([vm.var(np.ones(2)), np.ones(1)]), vm.ShapeError,
        "stack: arrays have shapes (2,) and (1,), but must go together!"),
    "concatenate": (lambda: np.concatenate([vm.var(M23), np.ones(3)]), vm.ShapeError,
        "concatenate: arrays have shapes (2, 3) and (3,), but must go together!"),
    "points": (lambda: vm.gp_exp_quad_cov([vm.var(np.ones(2)), vm.var(np.ones(1))], 1.0, 1.0),
        vm.ShapeError, "stack: arrays have shapes (2,) and (1,), but must go together!"),
    "small length": (lambda: vm.gp_periodic_cov(np.arange(3.0), 1.0, 1e-320, 1.0), vm.DomainError,
        "gp_periodic_cov: the square of length_scale is 0.0, but must be positive finite!"),
    "no interval, above": (lambda: vm.uniform_lccdf(0.5, 1.0, 1.0), vm.DomainError,
        "uniform_lccdf: Upper bound parameter is 1.0, but must be greater than the lower bound!"),
    "no interval, below": (lambda: vm.uniform_lcdf(vm.var(2.5), 2.0, 1.0), vm.DomainError,
        "uniform_lcdf: Upper bound parameter is 1.0, but must be greater than the lower bound!"),
    "no interval, product": (lambda: vm.uniform_cdf(vm.var([2.5, 3.0]), 2.0, 1.0), vm.DomainError,
        "uniform_cdf: Upper bound parameter is 1.0, but must be greater than the lower bound!"),
    "size": (lambda: containers.zeros_vector(2.0), TypeError,
        "zeros_vector: n is 2.0, but must be an integer!"),
    "place": (lambda: containers.one_hot_vector(3, 1.0), TypeError,
        "one_hot_vector: k is 1.0, but must be an integer!"),
    "count": (lambda: containers.rep_matrix(vm.var(1.0), 2, 1.5), TypeError,
        "rep_matrix: n is 1.5, but must be an integer!"),
    "counts": (lambda: containers.rep_array(1.0, [2, 3]), TypeError,
        "rep_array: counts[0] is [2, 3], but must be an integer!"),
    "rows": (lambda: vm.to_matrix(np.ones(4), 2.0, 2), TypeError,
        "to_matrix: m is 2.0, but must be an integer!"),
    "bound": (lambda: vm.linspaced_int_array(3, 0.5, 2), TypeError,
        "linspaced_int_array: lower is 0.5, but must be an integer!"),
    "rank": (lambda: vm.rank([1.0, 2.0], 0.0), TypeError,
        "rank: s is 0.0, but must be an integer!"),
    "head": (lambda: vm.head(np.ones(3), 1.0), TypeError,
        "head: n is 1.0, but must be an integer!"),
    "dimension": (lambda: vm.lmgamma([1, 0], 3.0), vm.DomainError,
        "lmgamma: k[1] is 0, but must be positive!"),
    "dimensions": (lambda: vm.lmgamma([1, 2], vm.var(np.ones(3))), vm.ShapeError,
        "lmgamma: x has shape (3,), but must broadcast with k, of shape (2,)!"),
    "whole dimension": (lambda: vm.lmgamma(np.array([1.0, 2.0]), 3.0), TypeError,
        "lmgamma: the dimensions k have dtype float64, but must be integers!"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    call, error, message = REFUSED[case]
    refuses(error, f"^{re.escape(message)}$", call)


def test_a_recorded_function_refuses_bounds_in_the_wrong_order():
    f = vm.recorded(lambda beta: vm.uniform_lcdf(2.5, 2.0, beta))
    assert f(4.0)[0] == np.log(0.25)
    refuses(vm.DomainError, "uniform_lcdf: Upper bound", f, 1.0)


def test_several_dimensions_of_the_multivariate_gamma_function():
    k, x = np.array([1, 2, 3]), np.array([0.5, 1.7, 6.0])
    with mpmath.workdps(50):
        exact = [
            mpmath.mpf(n * (n - 1)) / 4 * mpmath.log(mpmath.pi)
            + mpmath.fsum(mpmath.loggamma(v - mpmath.mpf(j) / 2) for j in range(n))
            for n, v in zip(k.tolist(), x.tolist(), strict=True)
        ]
    close(vm.lmgamma(k, x), np.array(exact, float), 1e-14)
    expect_ad(lambda x: vm.lmgamma(k, x), x)
    expect_ad_matvar(lambda x: vm.lmgamma(k, x), x)
    expect_ad(lambda x: vm.lmgamma(k, x), 2.5)
    assert vm.lmgamma(np.zeros(0, int), np.zeros(0)).shape == (0,)


@pytest.mark.parametrize(("x", "y"), [(1.2, 299.0), (-0.5, 0.5)])
def test_derivatives_where_a_logarithm_is_nan_are_those_of_the_formula(x, y):
    # The derivatives are 1 / (1 - exp(y - x)) and -1 / (exp(x - y) - 1). A sampler that uses the
    # gradient alone then goes the right way.
    partials = vm.gradient(lambda v: vm.log_diff_exp(v[0], v[1]), np.array([x, y]))
    close(partials, [-1.0 / np.expm1(y - x), -1.0 / np.expm1(x - y)], 1e-14)
    close(vm.gradient(vm.log1m_exp, y), -1.0 / np.expm1(-y), 1e-14)


def test_derivatives_at_the_end_have_the_sign_of_those_next_to_it():
    assert [vm.gradient(vm.log1m_exp, x) for x in (0.0, -0.0)] == [-np.inf, -np.inf]
    equal(vm.gradient(lambda v: vm.log_diff_exp(v[0], v[1]), np.ones(2)), [np.inf, -np.inf])


def test_nan_in_a_positive_difference_goes_on_into_the_derivative():
    equal(vm.gradient(lambda v: vm.fdim(v[0], v[1]), np.array([np.nan, 0.5])), [np.nan, np.nan])


def test_the_squared_distance_of_scalars():
    expect_ad(vm.squared_distance, 4.0, 2.0)
    expect_ad_matvar(vm.squared_distance, 4.0, 2.0)
    assert vm.squared_distance(4.0, 2.0) == 4.0


def test_an_argument_without_axes_is_a_scalar():
    assert vm.lkj_corr_lpdf(np.eye(2), np.array(2.0)) == vm.lkj_corr_lpdf(np.eye(2), 2.0)
    found = vm.lkj_corr_cholesky_lpdf(np.eye(2), np.array(2.0))
    assert found == vm.lkj_corr_cholesky_lpdf(np.eye(2), 2.0)


def test_a_huge_separation_of_a_diffusion_does_not_overflow_with_an_error():
    assert not vm.wiener_lpdf(1.7, 1e300, 0.3, 0.55, -1.2, 0.8, 0.1, 0.2) > -1e10
