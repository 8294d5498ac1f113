"""Matrices made of vectors and of smaller matrices: against SciPy and along all routes."""

import numpy as np
import pytest
import scipy.linalg
from comparing import equal, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(8)
C, R = RNG.normal(size=4), RNG.normal(size=3)
MATRIX = RNG.normal(size=(2, 3))

CALLS = {
    "toeplitz": [(C,), (C, R), (R, C)], "hankel": [(C,), (C, R), (R, C)],
    "circulant": [(C,), (C[:1],)], "companion": [(C,), (R,)],
    "block_diag": [(C, MATRIX), (C, MATRIX, np.array(2.0)), (MATRIX, np.zeros((0, 2)), R), ()],
    "khatri_rao": [(MATRIX, RNG.normal(size=(4, 3)))],
    "convolution_matrix": [
        (C, n, mode) for n in (1, 3, 4, 6) for mode in ("full", "same", "valid")
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_values_of_scipy_and_all_routes(name):
    f = getattr(vm, name)
    for args in CALLS[name]:
        variables = [vm.var(x) if isinstance(x, np.ndarray) else x for x in args]
        equal(vm.value(f(*variables)), getattr(scipy.linalg, name)(*args))
    expect_ad(f, *CALLS[name][0])
    expect_ad_matvar(f, *CALLS[name][0])


@pytest.mark.parametrize(("call", "message"), [
    (lambda c: vm.toeplitz(c[:0]), "c has shape (0,), but must be a vector of at least 1 element!"),
    (lambda c: vm.hankel(c, np.ones((2, 2))),
     "r has shape (2, 2), but must be a vector of at least 1 element!"),
    (lambda c: vm.circulant(c[0]), "c has shape (), but must be a vector!"),
    (lambda c: vm.companion(c[:1]),
     "a has shape (1,), but must be a vector of at least 2 elements!"),
    (lambda c: vm.block_diag(c, np.ones((1, 1, 1))),
     "block 1 has shape (1, 1, 1), but must be a matrix, a vector or a scalar!"),
    (lambda c: vm.khatri_rao(c, c),
     ("a has shape (4,), b has shape (4,), but they must be matrices with the same number of "
     "columns!")),
    (lambda c: vm.convolution_matrix(c, 0), "n is 0, but must be at least 1!"),
    (lambda c: vm.convolution_matrix(c, 2, "no"),
     "mode is 'no', but must be 'full', 'same' or 'valid'!"),
])  # fmt: skip
def test_refusals(call, message):
    refuses_as(ValueError, message, call, vm.var(C))
