"""Sums of products of columns without rounding errors."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from comparing import close

from varmat.programs.passes import cross_products

RNG = np.random.default_rng(3)
Z = RNG.normal(size=(300, 4))
COLUMNS = {
    "standard": Z,
    "shifted": np.column_stack([np.ones(300), 1e6 + Z[:, 0], 1e-8 * Z[:, 1]]),
    "of many sizes": np.exp(10 * Z),
    "integers, and a column of zeros": np.column_stack([np.arange(300.0), np.zeros(300)]),
    "subnormal": np.full((30, 1), 5e-324),
}


def exact(x, y):
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


@pytest.mark.parametrize("block", [7, 1 << 13])
@pytest.mark.parametrize("name", COLUMNS)
def test_sums_of_products(name, block, monkeypatch):
    monkeypatch.setattr(cross_products, "BLOCK", block)
    columns = COLUMNS[name]
    with localcontext(Context(cross_products.DIGITS)):
        found = cross_products.cross_products(columns)
    for i, x in enumerate(columns.T):
        for j, y in enumerate(columns.T):
            sizes = exact(x, x) * exact(y, y)
            assert (Fraction(found[i][j]) - exact(x, y)) ** 2 <= sizes / 10**60


@pytest.mark.parametrize("name", ["standard", "shifted", "of many sizes"])
def test_the_factor_has_the_same_products(name):
    columns = COLUMNS[name]
    factor = cross_products.triangular_factor(columns)
    assert factor is not None
    k = columns.shape[1]
    assert all(factor[i][j] == 0 for i in range(k) for j in range(i))
    with localcontext(Context(cross_products.DIGITS)):
        for i in range(k):
            for j in range(k):
                found = sum(row[i] * row[j] for row in factor)
                true = exact(columns[:, i], columns[:, j])
                scale = exact(*[np.abs(columns[:, i])] * 2) + exact(*[np.abs(columns[:, j])] * 2)
                assert abs(Fraction(found) - true) <= scale / 10**30


def test_a_combination_of_earlier_columns_has_no_row():
    x = Z[:, 0]
    factor = cross_products.triangular_factor(
        np.column_stack([x, np.ones(300), 2 * x, np.zeros(300), x + 1])
    )
    assert [bool(row[i]) for i, row in enumerate(factor)][:4] == [True, True, False, False]
    # The last column is rounded, so that it is one of its own.
    assert 0 < abs(factor[4][4]) < Decimal("1e-13")


def test_least_squares():
    x, y = np.column_stack([np.ones(300), 1e5 + Z[:, 0]]), 3e5 + 2 * Z[:, 0] + 0.1 * Z[:, 1]
    factor = cross_products.triangular_factor(np.column_stack([x, y]))
    b = cross_products.least_squares(factor, 2, 2)
    expected = np.linalg.lstsq(x - [0.0, 1e5], -y, rcond=None)[0]
    close(b, [expected[0] - 1e5 * expected[1], expected[1]], 1e-9)
    left = cross_products.residual(factor, b, 2)
    with localcontext(Context(50)):
        rows = [Decimal(y) + sum(Decimal(a) * Decimal(w) for a, w in zip(row, b, strict=True))
                for row, y in zip(x.tolist(), y.tolist(), strict=True)]  # fmt: skip
        assert cross_products.inner(left, left) == pytest.approx(
            float(sum(r * r for r in rows)), rel=1e-15
        )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_has_no_factor(bad):
    assert cross_products.triangular_factor(np.array([[1.0, bad]])) is None
