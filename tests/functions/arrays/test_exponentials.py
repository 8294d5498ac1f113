"""Sums of exponentials: all routes, 400-digit arithmetic, and evaluation in blocks."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
from comparing import close
from functions.large import RNG
from functions.matrices import adjoint, value_and_adjoints
from functions.sums import NAME, A, M, both, partial

import varmat as vm
from varmat.functions.arrays import exponentials


@pytest.mark.parametrize("axis", [0, -1, (0, 2), None])
@pytest.mark.parametrize("f", [vm.softmax, vm.log_softmax], ids=NAME)
def test_softmax_axes(f, axis):
    both(partial(f, axis=axis), A)


@pytest.mark.parametrize("settings", [{}, {"axis": 1}, {"axis": 0, "keepdims": True}], ids=str)
@pytest.mark.parametrize("b", [
    np.array([0.5, 2.0, 1.0, 3.0]), np.array([[2.0], [0.0], [1.0]]),
], ids=["row", "column with zero"])  # fmt: skip
def test_weighted_logsumexp(settings, b):
    if settings.get("axis") != 1 or b.all():
        both(lambda a, b: vm.logsumexp(a, b=b, **settings), M, b)


EXPONENTIALS = [
    [-1.2, 0.4, 2.1, 0.4], [1000.0, 1001.0, 999.5], [-1000.0, -1001.0], [0.0, -40.0, -50.0],
    [-1e-20, -60.0], [1e-3, -0.5, -700.0], [-745.0, 0.25], [math.log(0.25), math.log(0.5), -3.0],
    [1e300, 0.0], [2.5],
]  # fmt: skip


def exact_logsumexp(x):
    return mpmath.log(sum(mpmath.exp(mpmath.mpf(v)) for v in x))


def exact_softmax(x):
    total = exact_logsumexp(x)
    return [mpmath.exp(mpmath.mpf(v) - total) for v in x]


@pytest.mark.parametrize("x", EXPONENTIALS, ids=str)
def test_exponentials_to_all_digits(x):
    with mpmath.workdps(400):
        total, p = exact_logsumexp(x), exact_softmax(x)
        logs = [float(mpmath.mpf(v) - total) for v in x]
        total, p = float(total), np.array([float(v) for v in p])
    value, (adj,) = value_and_adjoints(vm.logsumexp, np.array(x))
    close(value, total, 1e-15)
    close(adj, p, 1e-13)
    along = vm.logsumexp(np.array([x, x]), axis=1, keepdims=True)
    close(along, [[total], [total]], 1e-15)
    close(vm.softmax(np.array(x)), p, 1e-13)
    close(vm.log_softmax(np.array(x)), logs, 1e-14, 1e-320)
    weights = np.arange(1.0, len(x) + 1)
    close(adjoint(vm.softmax, np.array(x), weights), p * (weights - weights @ p), 1e-13, 1e-15)
    close(adjoint(vm.log_softmax, np.array(x), weights), weights - p * weights.sum(), 1e-7, 1e-14)


@pytest.mark.parametrize("b", [-1.0, [1.0, -3.0]])
def test_logsumexp_of_a_negative_sum_is_nan(b):
    assert np.isnan(vm.logsumexp(vm.var([0.0, 0.0]), b=b).val)


@pytest.mark.parametrize("shape", [(40_000,), (200, 200)])
def test_softmax_and_logsumexp_by_blocks(shape, monkeypatch):
    x, w = RNG.normal(size=shape), RNG.normal(size=shape)
    for block in (exponentials.BLOCK, 999):
        monkeypatch.setattr(exponentials, "BLOCK", block)
        value, g = vm.value_and_grad(vm.logsumexp)(x)
        p = scipy.special.softmax(x)
        close(value, scipy.special.logsumexp(x), 1e-14)
        close(g, p, 1e-12)
        value, g = vm.value_and_grad(lambda x: np.vdot(w, vm.softmax(x)))(x)
        close(value, np.vdot(w, p), 1e-12)
        close(g, p * (w - np.vdot(w, p)), 1e-11, 1e-20)


def test_memory_of_the_arena_is_not_handed_out():
    x = RNG.normal(size=40_000)
    with vm.nested():
        kept = vm.value(vm.softmax(vm.var(x)))
    with vm.nested():
        vm.softmax(vm.var(2.0 * x))
    close(kept, scipy.special.softmax(x), 1e-12)
    close(vm.jvp(vm.softmax, (x,), (np.ones_like(x),))[1], 0.0, 1e-7, 1e-18)
