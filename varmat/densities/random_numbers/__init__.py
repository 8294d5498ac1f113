"""Random numbers of the distributions: one module for each kind of draw."""

from varmat.densities.random_numbers import (
    continuous,
    discrete,
    matrices,
    processes,
    regressions,
    vectors,
)

__all__ = ["continuous", "discrete", "matrices", "processes", "regressions", "vectors"]
