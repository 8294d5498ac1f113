"""Discrete cosine and sine transforms."""

import itertools
import re

import numpy as np
import pytest
import scipy.fft
from comparing import close, refuses

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


def test_the_definition_of_the_second_cosine_transform():
    """The definition follows Rao and Yip, Discrete Cosine Transform, 1990."""
    x, n = X[:, 0], 4
    k, i = np.ogrid[:n, :n]
    close(vm.dct(vm.var(x)).val, 2 * np.cos(np.pi * k * (2 * i + 1) / (2 * n)) @ x, 1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_along_axes_and_of_other_lengths(name):
    f, several = getattr(vm, name), getattr(vm, name + "n")
    expect_ad(lambda x: (
        f(x), f(x, 3, 6, 0), f(x, 1, 2, norm="ortho"), several(x, 4, axes=(1,)),
        several(x, s=(2, 4)),
    ), X)  # fmt: skip
    expect_ad_matvar(lambda x: several(x, 2, norm="ortho"), X)
    for settings in ({"n": 6, "axis": 0}, {"n": 2}, {"type": 1}):
        close(f(vm.var(X), **settings).val, getattr(scipy.fft, name)(X, **settings), 1e-13)
    for settings in ({"s": (5, 2)}, {"axes": (0,)}, {"type": 3, "norm": "forward"}):
        expected = getattr(scipy.fft, name + "n")(X, **settings)
        close(several(vm.var(X), **settings).val, expected, 1e-13)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: vm.dct(x[0, 0]), vm.ShapeError,
     "dct: x is a scalar, but must have at least one axis!"),
    (lambda x: vm.dct(x, 5), vm.DomainError, "dct: type is 5, but must be 1, 2, 3 or 4!"),
    (lambda x: vm.idst(x, norm="no"), vm.DomainError,
     "idst: norm is 'no', but must be 'backward', 'ortho' or 'forward'!"),
    (lambda x: vm.dct(x, 1, 1), vm.ShapeError,
     "dct: there are 1 elements along the axis, but there must be at least 2!"),
    (lambda x: vm.dst(x, n=0), vm.ShapeError,
     "dst: there are 0 elements along the axis, but there must be at least 1!"),
    (lambda x: vm.dctn(x, s=(2,), axes=(0, 1)), vm.ShapeError,
     "dctn: s has 1 lengths, but must have one for each of 2 axes!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses(error, f"^{re.escape(message)}$", call, vm.var(X))
