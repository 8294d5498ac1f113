"""What functions of matrices do differently where arrays are large: adjoints not written out, blocks, memory of the arena."""

from __future__ import annotations

from functools import partial
from operator import matmul
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose, assert_array_equal

import varmat as vm
from varmat.core.variables import Large
from varmat.functions import covariances, exponentials
from varmat.testing import expect_ad

RNG = np.random.default_rng(8)
A, B, C = RNG.normal(size=(40, 50)), RNG.normal(size=(50, 60)), RNG.normal(size=(60, 45))


def dense(r: Any) -> Any:
    """A sum whose adjoint is an ordinary array."""
    return np.sum(np.ones(r.shape) * r)


# Below a sum the adjoint is the same number everywhere, and one product further the same along an axis.
@pytest.mark.parametrize(
    ("product", "args"),
    [
        (lambda a, b: a @ b, (A, B)),
        (lambda a, b, c: a @ b @ c, (A, B, C)),
        (lambda a, b, c: a @ (b @ c), (A, B, C)),
        (lambda a, b: a @ b.T, (A, RNG.normal(size=(60, 50)))),
        (lambda a, b: a @ b, (RNG.normal(size=(1, 50)), RNG.normal(size=(50, 2000)))),
        (lambda a, b: a @ b, (RNG.normal(size=(2000, 3)), RNG.normal(size=(3, 1)))),
        (lambda a, b: a @ b, (RNG.normal(size=(2000, 1)), RNG.normal(size=(1, 1)))),
        (lambda a, b: a @ b, (np.empty((40, 0)), np.empty((0, 50)))),
        (lambda a, b: a @ b, (np.empty((0, 3)), np.empty((3, 50)))),
    ],
)
def test_products_below_a_sum(product: Any, args: Any) -> None:
    every = tuple(range(len(args)))
    value, gradients = vm.value_and_grad(lambda *x: np.sum(product(*x)), every)(*args)
    expected, dense_gradients = vm.value_and_grad(lambda *x: dense(product(*x)), every)(*args)
    assert_allclose(value, expected, rtol=1e-12)
    for found, g in zip(gradients, dense_gradients, strict=True):
        assert found.flags.c_contiguous
        assert found.flags.writeable
        assert_allclose(found, g, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_products_below_a_sum_along_an_axis(axis: int) -> None:
    w = RNG.normal(size=(60, 40)[axis])
    found = vm.value_and_grad(lambda a, b: w @ np.sum(a @ b, axis=axis), (0, 1))(A, B)[1]
    g = np.broadcast_to(w if axis == 0 else w[:, None], (40, 60))
    for x, expected in zip(found, (g @ B.T, A.T @ g), strict=True):
        assert_allclose(x, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("p", "q", "subscripts"), [
    ((190, 180), (180, 190), "ij,jk->ik"),
    ((40_000, 2), (2,), "ij,j->i"),
    ((2, 100, 180), (180, 190), "hij,jk->hik"),
    ((1, 180, 190), (2, 190, 100), "...ij,...jk->...ik"),
])  # fmt: skip
def test_products_as_large_as_their_factors(p: Any, q: Any, subscripts: str) -> None:
    a, b = RNG.normal(size=p), RNG.normal(size=q)
    w = RNG.normal(size=(a @ b).shape)
    (value, gradients), (expected, others) = (
        vm.value_and_grad(lambda x, y, f=f: np.vdot(w, f(x, y)), (0, 1))(a, b) for f in (matmul, partial(np.einsum, subscripts))
    )
    assert_allclose(value, expected, rtol=1e-11)
    for g, other in zip(gradients, others, strict=True):
        assert_allclose(g, other, rtol=1e-10, atol=1e-10)
    with vm.nested():
        assert type(vm.var(a) @ b) is Large
        with pytest.raises(vm.ShapeError, match="matmul: b has shape"):
            vm.var(a[..., :-1]) @ b


def test_one_matrix_twice_and_what_is_not_finite() -> None:
    s = RNG.normal(size=(40, 40))
    assert_allclose(vm.gradient(lambda a: np.sum(a @ a), s), s.sum(axis=1) + s.sum(axis=0)[:, None], rtol=1e-12, atol=1e-12)
    with np.errstate(invalid="ignore"):
        s[3, 5] = np.inf
        g = vm.gradient(lambda a: np.sum(a @ C[:40]), s)
        assert_allclose(g, np.broadcast_to(C[:40].sum(axis=1), g.shape), rtol=1e-12)


def test_inner_products_of_matrices() -> None:
    expect_ad(np.vdot, A[:2, :3], B[:3, :2])
    expect_ad(np.vdot, 2.0, np.array([[3.0]]))
    assert_array_equal(vm.gradient(lambda a: np.vdot(a, B), B + 1.0), B)
    with pytest.raises(vm.ShapeError, match=r"vdot: b has shape \(3,\), but must have as many elements as a, of shape \(2, 3\)!"):
        np.vdot(vm.var(np.ones((2, 3))), np.ones(3))


KERNELS = ["gp_exp_quad_cov", "gp_exponential_cov", "gp_matern32_cov", "gp_matern52_cov"]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    ("points", "scale"), [((A[:, 0],), 0.8), ((A[:7, :2], B[:30, :2]), 0.8), ((A[:, :3], B[:9, :3]), np.array([0.8, 1.7, 2.2]))]
)
def test_covariances_by_blocks(name: str, points: Any, scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    args = (*points, 1.3, scale)
    count = tuple(range(len(args)))
    weights = RNG.normal(size=(len(points[0]), len(points[-1])))
    differentiated = vm.value_and_grad(lambda *x: np.vdot(weights, getattr(vm, name)(*x)), count)
    value, gradients = differentiated(*args)
    for block in (1, 64):
        monkeypatch.setattr(covariances, "BLOCK", block)
        found, others = differentiated(*args)
        assert_allclose(found, value, rtol=1e-12)
        for g, other in zip(gradients, others, strict=True):
            assert_allclose(other, g, rtol=1e-11, atol=1e-12)


def test_a_large_covariance() -> None:
    x = RNG.normal(size=200)
    w = RNG.normal(size=(200, 200))
    d = x[:, None] - x
    k = 1.69 * np.exp(-0.5 * (d / 0.8) ** 2)
    value, (of_x, of_sigma, of_scale) = vm.value_and_grad(lambda *a: np.vdot(w, vm.gp_exp_quad_cov(*a)), (0, 1, 2))(x, 1.3, 0.8)
    assert_allclose(value, np.sum(w * k), rtol=1e-12)
    assert_allclose(of_x, -np.sum((w + w.T) * k * d, axis=1) / 0.64, rtol=1e-10, atol=1e-11)
    assert_allclose([of_sigma, of_scale], [2 / 1.3 * np.sum(w * k), np.sum(w * k * d * d) / 0.8**3], rtol=1e-12)


@pytest.mark.parametrize("shape", [(40_000,), (200, 200)])
def test_softmax_and_logsumexp_by_blocks(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = RNG.normal(size=shape), RNG.normal(size=shape)
    for block in (exponentials.BLOCK, 999):
        monkeypatch.setattr(exponentials, "BLOCK", block)
        value, g = vm.value_and_grad(vm.logsumexp)(x)
        p = scipy.special.softmax(x)
        assert_allclose(value, scipy.special.logsumexp(x), rtol=1e-14)
        assert_allclose(g, p, rtol=1e-12)
        value, g = vm.value_and_grad(lambda x: np.vdot(w, vm.softmax(x)))(x)
        assert_allclose(value, np.vdot(w, p), rtol=1e-12)
        assert_allclose(g, p * (w - np.vdot(w, p)), rtol=1e-11, atol=1e-20)


def test_memory_of_the_arena_is_not_handed_out() -> None:
    x = RNG.normal(size=40_000)
    with vm.nested():
        kept = vm.value(vm.softmax(vm.var(x)))
    with vm.nested():
        vm.softmax(vm.var(2.0 * x))
    assert_allclose(kept, scipy.special.softmax(x), rtol=1e-12)
    assert_allclose(vm.jvp(vm.softmax, (x,), (np.ones_like(x),))[1], 0.0, atol=1e-18)
