"""Large arrays, for the tests that need them."""

import numpy as np

RNG = np.random.default_rng(8)
A, B, C = RNG.normal(size=(40, 50)), RNG.normal(size=(50, 60)), RNG.normal(size=(60, 45))
