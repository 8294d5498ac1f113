"""Distributions made of others agree with SciPy's."""

import pytest
from random_distributions import check


@pytest.mark.parametrize("first", [0, 20])
def test_random_distributions(first):
    for seed in range(first, first + 20):
        check(seed)
