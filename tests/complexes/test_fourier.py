"""Fourier transforms of real and complex variables."""

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, refuses_as
from complexes.pairs import of_pair, parts, recorded

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(5)
A, B = RNG.normal(size=(2, 4, 3))


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "irfft", "irfft2", "irfftn", "hfft"]
)
def test_transforms_of_complex_variables(name):
    recorded(expect_ad(of_pair(getattr(np.fft, name)), A, B))


def test_transforms_of_real_variables():
    recorded(expect_ad(lambda x: parts((
        np.fft.fft(x), np.fft.ifft(x), np.fft.rfft(x), np.fft.rfft(x, axis=0), np.fft.ihfft(x),
        np.fft.fft2(x), np.fft.rfft2(x), np.fft.rfftn(x), np.fft.irfft(x), np.fft.hfft(x),
        np.fft.fftn(x), np.fft.ifftn(x), np.fft.irfftn(x), np.fft.ifft2(x), np.fft.irfft2(x),
    )), A))  # fmt: skip


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
def test_lengths_axes_and_normalisations(norm):
    recorded(expect_ad(of_pair(lambda z, x: (
        np.fft.fft(z, 6, 0, norm), np.fft.ifft(z, 2, 0, norm), np.fft.irfft(z, 5, 0, norm),
        np.fft.irfft(z, 9, 0, norm), np.fft.hfft(z, 3, norm=norm), np.fft.rfft(x, 6, 0, norm),
        np.fft.rfft(x, 3, 0, norm), np.fft.ihfft(x, 2, norm=norm),
    )), A[:, :2], B[:, :2], A[:, :2]))  # fmt: skip


def test_several_axes():
    recorded(expect_ad(of_pair(lambda z: (
        np.fft.fft2(z, s=(2, 5)),
        np.fft.ifftn(z, axes=(0,)),
        np.fft.irfftn(z, s=(3, 2), axes=(0, 1)),
        np.fft.irfft2(z, axes=(1, 0)),
        np.fft.fftn(z, s=(2,), axes=(1,), norm="ortho"),
    )), A, B))  # fmt: skip
    recorded(
        expect_ad(
            lambda x: parts((np.fft.rfftn(x, s=(3, 4), axes=(1, 0)), np.fft.rfft2(x, s=(5, 2)))), A
        )
    )


def test_shifts():
    recorded(expect_ad(of_pair(lambda z: (np.fft.fftshift(z), np.fft.ifftshift(z, axes=0))), A, B))
    recorded(expect_ad(lambda x: (np.fft.fftshift(x, axes=(1,)), np.fft.ifftshift(x)), A))


@pytest.mark.parametrize(("f", "inverse", "axes"), [
    (vm.fft, vm.inv_fft, 1), (vm.fft2, vm.inv_fft2, 2),
], ids=["fft", "fft2"])  # fmt: skip
def test_names_of_stan(f, inverse, axes):
    x, y = (a if axes == 2 else a[:, 0] for a in (A, B))
    recorded(expect_ad(of_pair(lambda z: (f(z), inverse(z))), x, y))
    recorded(expect_ad(lambda x: parts((f(x), inverse(x))), x))
    expect_ad_matvar(of_pair(f), x, y)
    close(inverse(f(vm.var(x + 1j * y))).val, x + 1j * y, 1e-13)
    empty = np.zeros((0,) * axes, complex)
    assert f(empty).shape == f(vm.var(empty)).shape == f(vm.var(empty.real)).shape == empty.shape
    assert f(vm.var(empty.real)).dtype == f(empty).dtype == np.complex128


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda z: np.fft.rfft(z), TypeError, "a is complex, but must be real; use np.fft.fft"),
    (lambda z: np.fft.fft(z[0]), SHAPE, "a is a scalar, but must have at least one axis!"),
    (lambda z: np.fft.fft(z, 0), DOMAIN, "n is 0, but must be at least 1!"),
    (lambda z: np.fft.ifft(z, norm="orto"), DOMAIN,
     "norm is 'orto', but must be 'backward', 'ortho' or 'forward'!"),
    (lambda z: np.fft.fftn(z, s=(2, 2), axes=(0,)), SHAPE,
     "s has 2 lengths, but must have one for each of 1 axes!"),
    (lambda z: vm.fft(np.outer(z, z)), SHAPE,
     "the argument has shape (2, 2), but must be a vector!"),
    (lambda z: vm.inv_fft2(z), SHAPE, "the argument has shape (2,), but must be a matrix!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var([1.0 + 2.0j, 3.0]))
