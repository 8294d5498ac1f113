"""The breadth of the library: one function from each family without derivatives by hand, compared
with its value alone.

A row has a function that takes a size. It returns the measured function and its arguments, all of
which are differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np
from peers import MissingError

import varmat as vm

Row = Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]
COLUMNS, CATEGORIES = 50, 3


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


class _Library:
    """Value, gradient, and gradient recorded for NumPy alone. A function that this revision lacks
    is skipped.
    """

    rows: dict[str, Row]
    param_names = ("function", "size")
    timeout = 120

    def setup(self, name: str, size: int) -> None:
        try:
            self.function, self.args = self.rows[name](size)
        except AttributeError as missing:
            raise MissingError(str(missing)) from None
        positions = tuple(range(len(self.args)))
        self.gradient = vm.value_and_grad(self.function, positions)
        self.recorded = vm.recorded(self.function, positions, runner="numpy")
        value, _ = self.gradient(*self.args)
        if not np.isclose(value, self.recorded(*self.args)[0]):
            raise AssertionError(f"{name} of size {size}: {value}")

    def time_plain(self, name: str, size: int) -> None:
        self.function(*self.args)

    def time_varmat(self, name: str, size: int) -> None:
        self.gradient(*self.args)

    def time_recorded(self, name: str, size: int) -> None:
        self.recorded(*self.args)


# --- densities ---


def of_data(name: str, data: Callable[[int], np.ndarray], *parameters: float) -> Row:
    """Return a row for a density of data and parameters, which are numbers."""

    def row(size: int) -> Any:
        function, y = getattr(vm, name), data(size)
        return lambda *args: function(y, *args), parameters

    return row


def real(size: int) -> np.ndarray:
    return rng().normal(size=size)


def positive(size: int) -> np.ndarray:
    return rng().gamma(3.0, size=size)


def above_two(size: int) -> np.ndarray:
    return 2.0 + rng().gamma(3.0, size=size)


def angles(size: int) -> np.ndarray:
    return rng().vonmises(0.3, 2.0, size=size)


def shares(size: int) -> np.ndarray:
    return rng().beta(2.0, 3.0, size=size)


def counts(size: int) -> np.ndarray:
    return rng().poisson(4.0, size=size)


def large_counts(size: int) -> np.ndarray:
    return rng().poisson(1e6, size=size)


CUMULATIVE: dict[str, Row] = {
    name: of_data(name, data, *parameters)
    for name, data, *parameters in (
        ("normal_lcdf", real, 0.2, 1.3), ("normal_lccdf", real, 0.2, 1.3),
         ("student_t_lcdf", real, 4.0, 0.2, 1.3),
        ("skew_normal_lcdf", real, 0.2, 1.3, 1.5), ("exponential_lccdf", positive, 0.7),
         ("weibull_lccdf", positive, 1.5, 3.0),
        ("gamma_lcdf", positive, 2.5, 0.9), ("gamma_lccdf", positive, 2.5, 0.9),
         ("beta_lcdf", shares, 2.0, 3.0),
        ("poisson_lccdf", counts, 4.0), ("neg_binomial_2_lcdf", counts, 4.0, 2.0),
    )
}  # fmt: skip


class Cumulative(_Library):
    """Log probabilities up to or above N observations."""

    rows = CUMULATIVE
    params = (tuple(CUMULATIVE), (1024, 1_000_000))


DENSITIES: dict[str, Row] = {
    name: of_data(name, data, *parameters)
    for name, data, *parameters in (
        ("gumbel_lpdf", real, 0.2, 1.3), ("frechet_lpdf", positive, 1.5, 3.0),
         ("pareto_lpdf", above_two, 1.5, 2.0),
        ("von_mises_lpdf", angles, 0.3, 2.0), ("skew_normal_lpdf", real, 0.2, 1.3, 1.5),
        ("exp_mod_normal_lpdf", real, 0.2, 1.3, 0.7), ("scaled_inv_chi_square_lpdf", positive, 4.0,
         1.5),
        ("beta_proportion_lpdf", shares, 0.4, 5.0), ("poisson_lpmf", large_counts, 1e6),
        ("neg_binomial_2_lpmf", counts, 4.0, 2.0),
    )
}  # fmt: skip


class MoreDensities(_Library):
    """Further densities of N observations."""

    rows = DENSITIES
    params = (tuple(DENSITIES), (1024, 1_000_000))


DIFFUSION: dict[str, Row] = {
    "wiener_lpdf": of_data("wiener_lpdf", lambda n: 0.3 + positive(n), 1.5, 0.2, 0.4, 0.7)
}


class Diffusion(_Library):
    """The first passage density of N times."""

    rows = DIFFUSION
    params = (tuple(DIFFUSION), (8, 1024))


def matrix_normal(size: int) -> Any:
    y = rng().normal(size=(size, size))
    identity = np.eye(size)
    return lambda mu, a: vm.matrix_normal_prec_lpdf(y, mu, a * identity + 1.0, identity), (
        np.zeros((size, size)),
        2.0,
    )


def gaussian_processes(size: int) -> Any:
    x, y = np.linspace(0.0, 1.0, size), rng().normal(size=(3, size))

    def function(scale: Any, w: Any) -> Any:
        return vm.multi_gp_lpdf(y, vm.gp_exp_quad_cov(x, scale, 0.3) + 0.1 * np.eye(size), w)

    return function, (1.3, np.array([0.7, 1.0, 1.6]))


def inverse_wishart(size: int) -> Any:
    identity = np.eye(size)
    return lambda a: vm.inv_wishart_lpdf(a * identity + 1.0, size + 3.0, identity), (2.0,)


MATRIX_DENSITIES: dict[str, Row] = {
    "matrix_normal_prec_lpdf": matrix_normal,
    "multi_gp_lpdf": gaussian_processes,
    "inv_wishart_lpdf": inverse_wishart,
}


class MatrixDensities(_Library):
    """Densities of matrices with N rows and columns."""

    rows = MATRIX_DENSITIES
    params = (tuple(MATRIX_DENSITIES), (2, 64))


# --- generalised linear models ---


def regression(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return independent variables and a linear predictor."""
    x = rng().normal(size=(size, COLUMNS))
    return x, 0.2 * x.sum(axis=1)


def binomial_glm(size: int) -> Any:
    x, predictor = regression(size)
    n = rng().binomial(20, 1.0 / (1.0 + np.exp(-predictor)))
    return lambda alpha, beta: vm.binomial_logit_glm_lpmf(n, 20, x, alpha, beta), (
        0.1,
        np.full(COLUMNS, 0.1),
    )


def negative_binomial_glm(size: int) -> Any:
    x, predictor = regression(size)
    n = rng().poisson(np.exp(0.3 * predictor))
    return lambda alpha, beta, phi: vm.neg_binomial_2_log_glm_lpmf(n, x, alpha, beta, phi), (
        0.1,
        np.full(COLUMNS, 0.05),
        2.0,
    )


def categorical_glm(size: int) -> Any:
    x, _ = regression(size)
    n = rng().integers(1, CATEGORIES + 1, size=size)
    return lambda alpha, beta: vm.categorical_logit_glm_lpmf(n, x, alpha, beta), (
        np.zeros(CATEGORIES),
        0.1 * rng().normal(size=(COLUMNS, CATEGORIES)),
    )


def ordered_glm(size: int) -> Any:
    x, _ = regression(size)
    n = rng().integers(1, CATEGORIES + 1, size=size)
    return lambda beta, cuts: vm.ordered_logistic_glm_lpmf(n, x, beta, cuts), (
        np.full(COLUMNS, 0.1),
        np.array([-1.0, 1.0]),
    )


GLMS: dict[str, Row] = {
    "binomial_logit_glm_lpmf": binomial_glm, "neg_binomial_2_log_glm_lpmf": negative_binomial_glm,
    "categorical_logit_glm_lpmf": categorical_glm, "ordered_logistic_glm_lpmf": ordered_glm,
}  # fmt: skip


class MoreGlms(_Library):
    """Further linear models with N observations and 50 columns, compared with one product with the
    matrix.
    """

    rows = GLMS
    params = (tuple(GLMS), (1000, 100_000))

    def setup(self, name: str, size: int) -> None:
        super().setup(name, size)
        self.x, _ = regression(size)

    def time_product_alone(self, name: str, size: int) -> None:
        self.x @ self.x[0]


# --- sparse matrices ---


def sparse_design(size: int) -> Any:
    """Return a matrix with 1000 columns and ten non-zeros in each row."""
    import scipy.sparse

    places = rng().integers(0, 1000, size=(size, 10))
    rows = np.repeat(np.arange(size), 10)
    return scipy.sparse.csr_array(
        (rng().normal(size=10 * size), (rows, places.ravel())), shape=(size, 1000)
    )


def sparse_product(size: int) -> Any:
    x = sparse_design(size)
    return lambda beta: np.sum(np.square(x @ beta)), (np.ones(1000),)


def product_of_non_zeros(size: int) -> Any:
    x, beta = sparse_design(size), np.ones(1000)
    w, v, u = vm.csr_extract(x)
    return lambda w: np.sum(np.square(vm.csr_matrix_times_vector(size, 1000, w, v, u, beta))), (
        np.asarray(w),
    )


def sparse_glm(size: int) -> Any:
    x, n = sparse_design(size), rng().integers(0, 2, size=size)
    return lambda alpha, beta: vm.bernoulli_logit_glm_lpmf(n, x, alpha, beta), (
        0.1,
        np.full(1000, 0.1),
    )


SPARSE: dict[str, Row] = {
    "X @ beta": sparse_product,
    "csr_matrix_times_vector": product_of_non_zeros,
    "bernoulli_logit_glm_lpmf": sparse_glm,
}


class Sparse(_Library):
    """Sparse matrices with N rows."""

    rows = SPARSE
    params = (tuple(SPARSE), (1000, 100_000))


def grid_determinant(size: int) -> Any:
    """Return the determinant of a precision matrix that couples neighbours on a square grid."""
    import scipy.sparse

    steps = scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(size, size))
    identity = scipy.sparse.eye_array(size)
    precision = (
        scipy.sparse.kron(steps, identity)
        + scipy.sparse.kron(identity, steps)
        + scipy.sparse.eye_array(size**2)
    ).tocsc()
    return lambda scale: vm.sparse_log_determinant_spd(scale * vm.var(precision)), (1.3,)


DETERMINANTS: dict[str, Row] = {"sparse_log_determinant_spd": grid_determinant}


class SparseDeterminant(_Library):
    """The determinant for a grid of N times N points."""

    rows = DETERMINANTS
    params = (tuple(DETERMINANTS), (10, 60))


# --- complex numbers ---


def power_spectrum(size: int) -> Any:
    return lambda x: np.sum(np.square(np.abs(np.fft.fft(x)))), (real(size),)


def complex_exponential(size: int) -> Any:
    w = rng().normal(size=size) + 1j * rng().normal(size=size)
    return lambda x: np.sum(np.abs(np.exp(1j * x) + w)), (real(size),)


def complex_product(size: int) -> Any:
    w = rng().normal(size=size) + 1j * rng().normal(size=size)
    return lambda x, y: np.sum(((x + 1j * y) * w).real), (real(size), positive(size))


COMPLEX: dict[str, Row] = {
    "np.fft.fft": power_spectrum,
    "np.exp": complex_exponential,
    "product": complex_product,
}


class Complex(_Library):
    """Functions of N complex elements."""

    rows = COMPLEX
    params = (tuple(COMPLEX), (1024, 1_000_000))


def moduli_of_eigenvalues(size: int) -> Any:
    return lambda a: np.sum(np.abs(np.linalg.eigvals(a))), (rng().normal(size=(size, size)),)


COMPLEX_MATRICES: dict[str, Row] = {"np.linalg.eigvals": moduli_of_eigenvalues}


class ComplexMatrices(_Library):
    """Functions of complex matrices with N rows and columns."""

    rows = COMPLEX_MATRICES
    params = (tuple(COMPLEX_MATRICES), (2, 64))
