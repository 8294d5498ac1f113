"""Discrete cosine and sine transforms."""

import itertools

import numpy as np
import pytest
import scipy.fft
from comparing import DOMAIN, SHAPE, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

NAMES = ("dct", "idct", "dst", "idst")
X = np.random.default_rng(3).normal(size=(4, 3))
SETTINGS = [*itertools.product((1, 2, 3, 4), ("backward", "ortho", "forward"), (None, True, False))]


@pytest.mark.parametrize("name", NAMES)
def test_the_jacobian_of_every_type_is_the_matrix(name):
    for n, (kind, norm, orthogonalize) in itertools.product((2, 5), SETTINGS):
        settings = {"type": kind, "norm": norm, "orthogonalize": orthogonalize}
        matrix = getattr(scipy.fft, name)(np.eye(n), axis=0, **settings)
        np.testing.assert_allclose(
            vm.jacobian(lambda x: getattr(vm, name)(x, **settings), X[0, :1].repeat(n)),  # noqa: B023
            matrix,
            atol=1e-14,
        )


@pytest.mark.parametrize("name", NAMES)
def test_along_axes_and_of_other_lengths(name):
    f, several = getattr(vm, name), getattr(vm, name + "n")
    expect_ad(lambda x: (
        f(x), f(x, 3, 6, 0), f(x, 1, 2, norm="ortho"), several(x, 4, axes=(1,)),
        several(x, s=(2, 4)),
    ), X)  # fmt: skip
    expect_ad_matvar(lambda x: several(x, 2, norm="ortho"), X)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: vm.dct(x[0, 0]), SHAPE, "x is a scalar, but must have at least one axis!"),
    (lambda x: vm.dct(x, 5), DOMAIN, "type is 5, but must be 1, 2, 3 or 4!"),
    (lambda x: vm.idst(x, norm="no"), DOMAIN,
     "norm is 'no', but must be 'backward', 'ortho' or 'forward'!"),
    (lambda x: vm.dct(x, 1, 1), SHAPE,
     "there are 1 elements along the axis, but there must be at least 2!"),
    (lambda x: vm.dst(x, n=0), SHAPE,
     "there are 0 elements along the axis, but there must be at least 1!"),
    (lambda x: vm.dctn(x, s=(2,), axes=(0, 1)), SHAPE,
     "s has 1 lengths, but must have one for each of 2 axes!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(X))
