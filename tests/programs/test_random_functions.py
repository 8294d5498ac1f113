"""Random functions: eager evaluation, every runner, the interpreter and `map` give the same values,
gradients and products with the Hessian.
"""

import pytest
from random_functions import check


@pytest.mark.parametrize("statements", [3, 6, 10, 20])
def test_small_arrays(statements):
    for seed in range(5 if statements == 20 else 8):
        check(1000 * statements + seed, statements=statements, second=seed % 3 == 0)


@pytest.mark.parametrize("seed", range(5))
def test_large_arrays(seed):
    check(seed, statements=8, large=True, second=False)


def test_steps_that_read_the_same():
    """Two products of the same matrices are one step, not a stack of two."""
    check(5000039, statements=8, second=True)
