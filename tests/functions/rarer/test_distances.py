"""Distances between points: against SciPy and 50 digits, and along all routes."""

import mpmath as mp
import numpy as np
import pytest
import scipy.spatial.distance
from comparing import close, equal, refuses_as
from functions.matrices import worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(14)
A, B = RNG.uniform(0.2, 2.0, size=(4, 3)), RNG.uniform(0.2, 2.0, size=(3, 3))
W = np.array([0.5, 1.0, 2.0])
METRICS = [
    "euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "seuclidean", "mahalanobis",
    "cosine", "correlation",
]  # fmt: skip
METRICS += ["canberra", "braycurtis", "jensenshannon"]


@pytest.mark.parametrize("metric", METRICS)
def test_values_of_scipy_and_all_routes(metric):
    settings = {"p": 2.5} if metric == "minkowski" else {}
    f, g = vm.cdist, scipy.spatial.distance.cdist
    close(f(vm.var(A), B, metric, **settings).val, g(A, B, metric, **settings), 1e-12)
    points = np.vstack([A, B])
    expected = scipy.spatial.distance.pdist(points, metric, **settings)
    close(vm.pdist(vm.var(points), metric, **settings).val, expected, 1e-12)
    expect_ad(
        lambda a, b: f(a, b, metric, **settings), A[:2], B[:2] if metric != "mahalanobis" else B
    )
    if metric in ("euclidean", "sqeuclidean", "cityblock", "minkowski"):
        close(f(A, B, metric, w=W, **settings), g(A, B, metric, w=W, **settings), 1e-12)


def test_weights_by_all_routes():
    expect_ad(lambda a, w: (
        vm.pdist(a, w=w), vm.pdist(a, "minkowski", p=3.0, w=w), vm.pdist(a, "cityblock", w=w),
    ), A[:3], W)  # fmt: skip
    expect_ad(
        lambda a, v, m: (vm.pdist(a, "seuclidean", V=v), vm.pdist(a, "mahalanobis", VI=m)),
        A[:3],
        W,
        np.eye(3) + 0.1,
    )
    expect_ad_matvar(vm.cdist, A[:2], B[:2])


def euclidean(a, b):
    return mp.matrix(
        [
            [mp.sqrt(sum((a[i, k] - b[j, k]) ** 2 for k in range(3))) for j in range(b.rows)]
            for i in range(a.rows)
        ]
    )


def test_near_points_far_from_the_origin_against_50_digits():
    a = 1e6 + A[:2]
    assert worst_error(vm.cdist, euclidean, [a, a + 1e-3 * B[:2]]) < 1e-14
    assert worst_error(vm.cdist, euclidean, [A, B]) < 1e-14


def test_a_distance_of_zero_has_the_derivative_zero():
    for metric in ("euclidean", "minkowski", "cityblock", "mahalanobis", "chebyshev"):
        settings = {"VI": np.eye(3)} if metric == "mahalanobis" else {"p": 1.5}
        total = vm.gradient(lambda a: np.sum(vm.cdist(a, a, metric, **settings)), A)  # noqa: B023
        pairs = vm.gradient(lambda a: np.sum(vm.pdist(a, metric, **settings)), A)  # noqa: B023
        assert np.isfinite(total).all()
        close(total, 2.0 * pairs, 1e-7, 1e-13)


def test_square_and_condensed():
    d = vm.pdist(A)
    equal(vm.squareform(vm.var(d)).val, scipy.spatial.distance.squareform(d))
    equal(vm.squareform(vm.squareform(d)), d)
    expect_ad(lambda d: (vm.squareform(d), vm.squareform(vm.squareform(d) ** 2)), d)
    assert vm.squareform(np.zeros(0)).shape == (1, 1)


@pytest.mark.parametrize(("call", "message"), [
    (lambda a: vm.cdist(a, a[0]),
     "XB has shape (3,), but must be a matrix with a point in each row!"),
    (lambda a: vm.cdist(a, a[:, :2]), "XB has shape (4, 2), but must have 3 columns, as XA!"),
    (lambda a: vm.pdist(a, "dice"),
     "metric is 'dice', but must be one of 'braycurtis', 'canberra', 'chebyshev',"),
    (lambda a: vm.pdist(a, "cosine", w=W),
     "w is given, but must be left out for the metric 'cosine'!"),
    (lambda a: vm.pdist(a, w=W[:2]), "w has shape (2,), but must have shape (3,)!"),
    (lambda a: vm.pdist(a, "minkowski", p=0.5), "p is 0.5, but must be at least 1!"),
    (lambda a: vm.pdist(a, "seuclidean", V=W[:2]), "V has shape (2,), but must have shape (3,)!"),
    (lambda a: vm.cdist(a, a, "mahalanobis", VI=W),
     "VI has shape (3,), but must have shape (3, 3)!"),
    (lambda a: vm.squareform(a[0, :2]),
     "X has shape (2,), but must be a square matrix, or a vector with an element for each pair!"),
])  # fmt: skip
def test_refusals(call, message):
    refuses_as(ValueError, message, call, vm.var(A))
