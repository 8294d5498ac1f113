"""Transforms of matrices: how symmetric they must be."""

import numpy as np
from comparing import close

from varmat.transforms import covariance_matrices


def test_symmetric_to_rounding_is_enough():
    """Of a matrix with large elements as well, relatively."""
    y = covariance_matrices.cov_matrix_constrain(np.array([10.0, 3e4, 11.0]), 2)
    y[0, 1] *= 1.0 + 1e-9
    close(covariance_matrices.cov_matrix_free(y), [10.0, 3e4, 11.0], 1e-8)
