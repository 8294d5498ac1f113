"""Pseudo-inverses and least squares: against 50-digit arithmetic and Stan Math, at deficient rank,
and refusals.
"""

from functools import partial

import mpmath as mp
import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, refuses, refuses_as
from functions.matrices import TALL, TALLS, WIDE, gradients, worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

pinv, lstsq = np.linalg.pinv, np.linalg.lstsq
RIGHT = np.array([1.0, -0.5, 2.0, 0.3])
RIGHTS = np.stack([RIGHT, RIGHT[::-1] ** 2], axis=1)


def tall_inverse(a):
    return (a.T * a) ** -1 * a.T


def squares(a, b):
    residual = b - a * (tall_inverse(a) * b)
    return [
        mp.fsum(residual[i, j] ** 2 for i in range(residual.rows)) for j in range(residual.cols)
    ]


# The cutoff lies between the singular values of TALL, 2.7, 2.1 and 1.6. PAIRS has two pairs of
# equal singular values, and the cutoff drops one pair.
CUT = 0.7
PAIRS = np.linalg.qr(np.cos(np.arange(25.0) ** 2).reshape(5, 5))[0][:, :4] * [2.0, 2.0, 0.5, 0.5]


def inverse_of_kept(a):
    u, s, vt = mp.svd_r(a)
    return vt.T * mp.diag([1 / x if x > CUT * s[0] else mp.mpf(0) for x in s]) * u.T


def solution(a, b, rcond=None):
    return lstsq(a, b, rcond)[0]


EXACT = [
    (pinv, tall_inverse, [TALL]), (pinv, lambda a: a.T * (a * a.T) ** -1, [WIDE]),
    (solution, lambda a, b: tall_inverse(a) * b, [TALL, RIGHT]),
    (solution, lambda a, b: tall_inverse(a) * b, [TALL, RIGHTS]),
    (solution, lambda a, b: a.T * (a * a.T) ** -1 * b, [WIDE, RIGHTS[:3]]),
    (partial(pinv, rcond=CUT), inverse_of_kept, [TALL]),
    (partial(pinv, rtol=CUT), inverse_of_kept, [WIDE]),
    (partial(solution, rcond=CUT), lambda a, b: inverse_of_kept(a) * b, [TALL, RIGHT]),
    (partial(solution, rcond=CUT), lambda a, b: inverse_of_kept(a) * b, [WIDE, RIGHTS[:3]]),
    (lambda a, b: lstsq(a, b)[1], squares, [TALL, RIGHTS]),
    (lambda a: lstsq(a, RIGHT)[3], lambda a: list(mp.svd_r(a, compute_uv=False)), [TALL]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "exact", "args"), EXACT)
def test_against_50_digits(f, exact, args):
    assert worst_error(f, exact, args) < 3e-14


def everything(a, b):
    x, residuals, _, s = lstsq(a, b)
    return x, residuals, s


CASES = [
    *((pinv, [a]) for a in (TALL, WIDE, TALLS, np.empty((0, 3)), np.empty((2, 3, 0)))),
    (partial(pinv, hermitian=True), [TALL[:3]]), (partial(pinv, rtol=1e-12), [TALL]),
    (partial(pinv, rtol=CUT), [TALL]), (partial(pinv, rcond=[CUT, 1e-12]), [TALLS]),
    (partial(pinv, hermitian=True, rtol=CUT), [TALL[:3]]), (partial(pinv, rtol=CUT), [PAIRS]),
    (lambda a: solution(a, RIGHT[:3], CUT), [WIDE]),
    (lambda a, b: lstsq(a, b, rcond=CUT)[::3], [TALL, RIGHTS]),
    (everything, [TALL, RIGHT]), (everything, [TALL, RIGHTS]), (solution, [WIDE, RIGHT[:3]]),
    (solution, [TALL[:3], RIGHTS[:3]]), (solution, [TALL[::-1, ::-1], RIGHT[::-1]]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), CASES)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


def test_of_deficient_rank():
    # The derivative exists along directions that keep the rank, A(t) = (U + t E) V.
    u, v = TALL[:, :2], np.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.8]])
    e = np.cos(np.arange(8.0)).reshape(4, 2)
    for f in (pinv, lambda a: lstsq(a, RIGHT)[0], lambda a: lstsq(a, RIGHTS, rcond=1e-10)[0]):
        (value,), (adjoint,) = gradients(lambda u, f=f: f(u @ v), [u])
        weights = np.cos(1.7 * np.arange(1, 1 + value.size)).reshape(value.shape) + 0.3
        h = 1e-6
        difference = np.sum(weights * (f((u + h * e) @ v) - f((u - h * e) @ v))) / (2 * h)
        assert abs(np.sum(adjoint * e) - difference) < 1e-7
    assert lstsq(vm.var(u @ v), RIGHT)[1].shape == (0,)
    assert lstsq(vm.var(u @ v), RIGHT)[2] == 2


@pytest.mark.parametrize("rcond", [None, -1, 0.5])
def test_all_results_are_those_of_numpy(rcond):
    for a, b in ((TALL, RIGHT), (TALL, RIGHTS), (WIDE, RIGHTS[:3]), (TALL[:3], RIGHT[:3])):
        ours = lstsq(vm.var(a), b, rcond=rcond)
        for mine, theirs in zip(ours, lstsq(a, b, rcond=rcond), strict=True):
            close(vm.value(mine), theirs, 1e-12, 1e-14)


def test_a_long_matrix_is_not_squared():
    # A projection onto the residuals would be a matrix of 20000 x 20000.
    a = np.cos(np.arange(60000.0)).reshape(20000, 3)
    for f, x in ((pinv, a), (pinv, a.T), (lambda x: lstsq(x, a[:, 0])[0], a)):
        _, (adjoint,) = gradients(f, [x])
        assert adjoint.shape == x.shape
    assert pinv(vm.Dual(a, a)).shape == (3, 20000)


@pytest.mark.parametrize(("f", "args", "error", "text"), [
    (pinv, [np.ones(3)], SHAPE, "a has shape (3,), but must be a matrix"),
    (lambda a: np.linalg.pinv(a, hermitian=True), [TALL], SHAPE,
     "a has shape (4, 3), but must be a square matrix"),
    (lstsq, [TALL, np.ones(3)], SHAPE,
     "a and b have shapes (4, 3) and (3,), but must be a matrix and"),
    (lstsq, [TALLS, RIGHT], SHAPE, "a and b have shapes"),
    (lstsq, [[[np.inf, 1.0], [1.0, 1.0]], np.ones(2)], DOMAIN,
     "a has elements that are not finite"),
])  # fmt: skip
def test_refusals(f, args, error, text):
    refuses_as(error, text, f, *map(vm.var, args))


def test_cutoff_of_the_array_api():
    # The smaller singular value is above three times the machine precision and 1e-15, which is the
    # default cutoff, or between the two.
    a = np.diag([1.0, 2e-15]) @ np.array([[1.0, 2.0, 3.0], [1.0, -1.0, 0.5]])
    for settings in ({}, {"rtol": None}, {"rcond": 1e-3}, {"hermitian": False, "rtol": 1e-20}):
        close(vm.value(np.linalg.pinv(vm.var(a), **settings)), np.linalg.pinv(a, **settings), 1e-6)
    refuses(ValueError, "can't be both set", np.linalg.pinv, vm.var(a), 1e-3, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_a_relative_cutoff_does_not_depend_on_the_scale(scale):
    a = np.array([[1.0, 0.2], [0.1, 0.3], [0.0, 0.1]])

    def gradient(scale):
        return scale**2 * vm.gradient(
            lambda a: np.sum(np.linalg.pinv(a, rcond=0.5) * np.arange(6.0).reshape(2, 3)), scale * a
        )

    close(gradient(scale), gradient(1.0), 1e-12)
