"""Transforms, filters and functions of matrices with arrays of scalar variables. Their own tests
use array variables only.
"""

import numpy as np
import pytest

import varmat as vm
from varmat.stan import containers
from varmat.testing import expect_ad_matvar

X, SERIES = np.array([0.3, -0.7, 1.2, 0.5]), np.linspace(0.1, 1.3, 25) + np.sin(np.arange(25.0))
A = np.array([[2.0, 0.3], [0.1, 1.5]])
S = np.array([[2.0, 0.3], [0.3, 1.5]])
W = np.array([[0.1, 0.9], [0.4, 0.2]])
B, D = np.array([0.5, 0.2]), np.array([1.0, -0.3])
KNOTS = np.array([0.0] * 4 + [0.5] + [1.0] * 4)
SPECTRUM = np.array([1.0, 0.4, -0.3])


def of_parts(f):
    return lambda re, im: f(vm.to_complex(re, im))


def parts(f):
    """Return the weighted sum of real and imaginary parts."""
    return lambda *args: np.sum(np.real(f(*args)) + 0.7 * np.imag(f(*args)))


CASES = {
    **{f"np.fft.{name}": (parts(getattr(np.fft, name)), X) for name in ["fft", "ifft", "rfft",
        "ihfft", "fftshift", "ifftshift"]},
    **{f"np.fft.{name}": (parts(getattr(np.fft, name)), W) for name in ["fft2", "ifft2", "fftn",
        "ifftn", "rfft2", "rfftn"]},
    **{f"np.fft.{name}": (getattr(np.fft, name), SPECTRUM) for name in ["irfft", "hfft"]},
    **{f"np.fft.{name}": (getattr(np.fft, name), W) for name in ["irfft2", "irfftn"]},
    **{name: (of_parts(parts(getattr(vm, name))), X, 2.0 * X) for name in ["inv_fft", "conj",
        "proj", "get_real", "get_imag"]},
    **{name: (of_parts(parts(getattr(vm, name))), X, 2.0 * X) for name in ["arg", "norm"]},
    "inv_fft2": (of_parts(parts(vm.inv_fft2)), A, W), "polar": (parts(vm.polar), 1.2, 0.4),
    "np.linalg.eig": (lambda a: np.abs(np.linalg.eig(a)[1]), A),
    "np.linalg.eigvals": (parts(np.linalg.eigvals), A),
    "eigendecompose": (lambda a: np.abs(vm.eigendecompose(a)[0]), A),
    "complex_schur_decompose": (lambda a: np.abs(vm.complex_schur_decompose(a)[1]), A),
    **{name: (lambda a, name=name: np.abs(getattr(vm, name)(a)), A) for name in ["eigenvectors",
        "complex_schur_decompose_t", "complex_schur_decompose_u"]},
    "np.around": (np.around, X), "np.astype": (lambda x: np.astype(x, np.float64), X),
    "np.divmod": (lambda a, b: np.divmod(a, b)[1], X, 0.4), "np.modf": (lambda a: np.modf(a)[0], X),
    "np.trim_zeros": (np.trim_zeros, np.array([0.0, 1.0, 2.0, 0.0])),
    "csr_to_dense_matrix": (lambda w: vm.csr_to_dense_matrix(2, 3, w, [1, 3, 2], [1, 3, 4]), X[:3]),
    "np.diagflat": (np.diagflat, X), "rep_vector": (lambda x: containers.rep_vector(x, 3), 0.3),
    "linspaced_array": (lambda a, b: containers.linspaced_array(3, a, b), 0.3, 1.2),
    **{name: (getattr(vm, name), X) for name in ["dct", "dst", "idct", "idst"]},
    **{name: (getattr(vm, name), A) for name in ["coshm", "sinhm", "sinm", "tanm"]},
    "funm": (lambda a: vm.funm(a, np.exp), A), "eigvalsh": (vm.eigvalsh, S),
    "fractional_matrix_power": (lambda a: vm.fractional_matrix_power(a, 0.3), S),
    "orthogonal_procrustes": (lambda a, b: vm.orthogonal_procrustes(a, b)[0], A, S),
    "pdist": (vm.pdist, np.array([[0.0, 1.0], [2.0, 0.5], [1.0, -1.0]])),
    "squareform": (vm.squareform, np.array([1.0, 2.0, 3.0])),
    "filtfilt": (vm.filtfilt, B, D, SERIES), "hilbert": (parts(vm.hilbert), X),
    "lfilter_zi": (vm.lfilter_zi, B, D),
    "sosfilt_zi": (vm.sosfilt_zi, np.array([[0.5, 0.2, 0.1, 1.0, -0.3, 0.1]])),
    "resample": (lambda x: vm.resample(x, 6), X),
    "savgol_filter": (lambda x: vm.savgol_filter(x, 5, 2), SERIES),
    "romb": (vm.romb, np.array([0.1, 0.4, 0.2, 0.7, 1.0])),
    "convolve2d": (vm.convolve2d, A, S), "correlate2d": (vm.correlate2d, A, S),
    "make_lsq_spline": (lambda y: vm.make_lsq_spline(np.linspace(0.0, 1.0, 9), y, KNOTS)(0.3),
                        np.sin(np.arange(9.0))),
    "matmul_toeplitz": (vm.matmul_toeplitz, np.array([1.0, 0.3, 0.1, 0.2]), X),
    "multigammaln": (lambda a: vm.multigammaln(a, 2), 2.3),
    "hmm_hidden_state_prob": (vm.hmm_hidden_state_prob, np.array([[-0.3, -1.0], [-0.2, -2.0]]),
                              np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([0.5, 0.5])),
    "truncated": (lambda y, mu: vm.truncated(vm.normal_lpdf, lower=0.0)(y, mu, 1.0), 0.5, 0.2),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_matvars(name):
    f, *args = CASES[name]
    expect_ad_matvar(f, *args)
