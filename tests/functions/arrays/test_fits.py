"""Histograms with variable weights, and polynomials fitted to variable data."""

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(16)
DATA = np.append(RNG.normal(size=20), [-1.0, 0.0, 2.0, 3.0])
WEIGHTS = RNG.uniform(0.5, 2.0, size=24)
X, Y = np.linspace(-1.0, 2.0, 6), RNG.normal(size=6)


@pytest.mark.parametrize("bins", [5, [-1.0, 0.0, 0.5, 2.0], np.linspace(-1.0, 1.0, 4)], ids=str)
@pytest.mark.parametrize("density", [False, True])
def test_histograms_of_weights(bins, density):
    found, edges = np.histogram(DATA, bins, weights=vm.var(WEIGHTS), density=density)
    expected, expected_edges = np.histogram(DATA, bins, weights=WEIGHTS, density=density)
    close(found.val, expected, 1e-13)
    equal(edges, expected_edges)
    expect_ad(
        lambda w: np.histogram(DATA[:6], bins, weights=w, density=density, range=(-1.0, 2.0))[0],
        WEIGHTS[:6],
    )
    whole, weights = DATA.reshape(2, 12), WEIGHTS.reshape(2, 12)
    expect_ad_matvar(lambda w: np.histogram(whole, bins, weights=w)[0], weights)


def test_polynomials_through_data():
    for settings in ({}, {"w": Y**2 + 0.5}):
        close(np.polyfit(X, vm.var(Y), 2, **settings).val, np.polyfit(X, Y, 2, **settings), 1e-12)
    two = np.stack([Y, Y**2], 1)
    close(np.polyfit(X, vm.var(two), 2).val, np.polyfit(X, two, 2), 1e-12)
    for cov in (True, "unscaled"):
        for y in (Y, two):
            for a, b in zip(
                np.polyfit(X, vm.var(y), 2, cov=cov), np.polyfit(X, y, 2, cov=cov), strict=True
            ):
                close(vm.value(a), b, 1e-11)
    expect_ad(lambda x, y, w: np.polyfit(x, y, 2, w=w), X, Y, Y**2 + 0.5)
    expect_ad(lambda y: np.polyfit(X, y, 1, cov=True), Y)
    expect_ad_matvar(lambda y: np.polyfit(X, y, 1), Y)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: np.histogram(x), TypeError,
     "the data or the bins are variables, and counts have no derivative; pass the plain"),
    (lambda x: np.histogram(DATA, weights=x), SHAPE,
     "weights has shape (6,), but must have as many elements as the data, 24!"),
    (lambda x: np.polyfit(X, x, 2, full=True), TypeError,
     "full or rcond is given, but must be left out for variables!"),
    (lambda x: np.polyfit(x, Y, -1), DOMAIN, "deg is -1, but must not be negative!"),
    (lambda x: np.polyfit(x, Y[:3], 1), SHAPE,
     "x has shape (6,), y has shape (3,), but they must have the same number of rows!"),
    (lambda x: np.polyfit(x, Y, 6), SHAPE,
     "there are 6 points, but there must be more than the degree, 6!"),
    (lambda x: np.polyfit(x, Y, 1, w=Y[:2]), SHAPE,
     "w has shape (2,), but must have shape (6,), as x!"),
    (lambda x: np.polyfit(x, Y, 5, cov=True), SHAPE,
     "there are 6 points, but for a covariance there must be more than 6!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(X))
