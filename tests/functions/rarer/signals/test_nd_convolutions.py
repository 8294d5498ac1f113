"""Convolution and correlation of arrays of several axes, against SciPy and along all routes."""

import itertools

import numpy as np
import pytest
import scipy.signal
from comparing import DOMAIN, SHAPE, close, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(4)
A, V = RNG.normal(size=(3, 4)), RNG.normal(size=(2, 2))
MODES = ("full", "same", "valid")
SHAPES = [((5,), (4,)), ((3,), (6,)), ((4, 5), (3, 2)), ((2, 3), (4, 4))]


def agree(name, a, v, *settings):
    expected = getattr(scipy.signal, name)(a, v, *settings)
    close(getattr(vm, name)(vm.var(a), v, *settings).val, expected, 1e-12, 1e-14)


@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve", "oaconvolve"])
def test_modes(name):
    f = getattr(vm, name)
    for (m, n), mode in itertools.product(SHAPES, MODES):
        agree(name, RNG.normal(size=m), RNG.normal(size=n), mode)
    expect_ad(lambda a, v: tuple(f(a, v, mode) for mode in MODES), A, V)
    expect_ad(lambda a, v: f(a, v, "valid"), V, A)
    expect_ad_matvar(f, A[0], V[0])
    agree(name, np.array(2.0), np.array(3.0))


@pytest.mark.parametrize("method", ["direct", "fft"])
def test_methods(method):
    expect_ad(
        lambda a, v: (vm.convolve(a, v, "same", method), vm.correlate(a, v, "same", method)), A, V
    )


@pytest.mark.parametrize("name", ["fftconvolve", "oaconvolve"])
def test_some_axes(name):
    f = getattr(vm, name)
    expect_ad(lambda a, v: (
        f(a, v, axes=1), f(a, v, "same", axes=[1]), f(a[:1], v[:, :1], "valid", axes=1),
    ), A[:2], V)  # fmt: skip
    agree(name, A, V[:1], "full", 1)


@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_boundaries(name):
    f = getattr(vm, name)
    settings = [*itertools.product(MODES, ("fill", "wrap", "symm"), (0, 1.5))]
    for (m, n), each in itertools.product(
        [((4, 5), (3, 2)), ((2, 3), (4, 4)), ((2, 2), (5, 7))], settings
    ):
        agree(name, RNG.normal(size=m), RNG.normal(size=n), *each)
    expect_ad(lambda a, v: tuple(f(a, v, "same", b) for b in ("fill", "wrap", "symm")), A, V)
    expect_ad(lambda a, v: f(a, v, "full", "fill", 0.7), A, V)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda a: vm.convolve(a, a[0]), SHAPE,
     "in1 has shape (3, 4), in2 has shape (4,), but they must have the same number of axes!"),
    (lambda a: vm.correlate(a, a[:0]), SHAPE, "in2 has shape (0, 4), but must not be empty!"),
    (lambda a: vm.fftconvolve(a, a, "max"), DOMAIN,
     "mode is 'max', but must be 'full', 'same' or 'valid'!"),
    (lambda a: vm.convolve(a, a, method="no"), DOMAIN,
     "method is 'no', but must be 'auto', 'direct' or 'fft'!"),
    (lambda a: vm.correlate(a, a, method="no"), DOMAIN,
     "method is 'no', but must be 'auto', 'direct' or 'fft'!"),
    (lambda a: vm.convolve(a, a.T, "valid"), SHAPE,
     ("in1 has shape (3, 4), in2 has shape (4, 3), but with mode='valid' one must be at least "
     "as large along every axis!")),
    (lambda a: vm.oaconvolve(a, a[:2], axes=1), SHAPE,
     "in1 has shape (3, 4), in2 has shape (2, 4), which do not match!"),
    (lambda a: vm.convolve2d(a[0], a[0]), SHAPE, "in1 has shape (4,), but must be a matrix!"),
    (lambda a: vm.correlate2d(a, a, boundary="no"), DOMAIN,
     "boundary is 'no', but must be 'fill', 'wrap' or 'symm'!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(A))
