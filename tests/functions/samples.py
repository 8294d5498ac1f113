"""Sample arrays for the tests of composites and statistics."""

import numpy as np

VECTOR = np.array([0.7, -1.3, 2.9, 0.4, 1.8])
MATRIX = np.array([[0.3, 2.0, -1.1, 0.9], [1.7, -0.4, 0.8, 2.6], [-2.2, 1.2, 3.1, 0.1]])


def by_weight(x, weights, q=0.5, **settings):
    return np.quantile(x, q, weights=weights, method="inverted_cdf", **settings)
