"""Matrices for the tests of sparse functions."""

import numpy as np
import scipy.sparse

import varmat as vm

RNG = np.random.default_rng(7)


def random_sparse(shape, density=0.4, seed=7):
    return scipy.sparse.random_array(
        shape, density=density, rng=np.random.default_rng(seed), format="csr"
    )


def grid(k, extra=0.3):
    """Return the precision matrix of a Gaussian field on a grid."""
    path = scipy.sparse.diags_array(
        [-np.ones(k - 1), np.full(k, 2.0), -np.ones(k - 1)], offsets=[-1, 0, 1]
    )
    unit = scipy.sparse.eye_array(k)
    return (
        scipy.sparse.kron(path, unit)
        + scipy.sparse.kron(unit, path)
        + extra * scipy.sparse.eye_array(k * k)
    ).tocsr()


def covariance(n, density, seed=3):
    """Return a positive definite matrix without any structure."""
    x = random_sparse((n, n), density, seed)
    product = (x @ x.T + scipy.sparse.eye_array(n)).tocsr()
    product.sort_indices()
    return product


A = random_sparse((4, 5))
B = random_sparse((4, 5), seed=8)
DENSE = A.toarray()
LEFT, RIGHT = RNG.normal(size=4), RNG.normal(size=5)
LEFTS, RIGHTS = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 2))


def sparse(w, like=A):
    return vm.SparseVar(w, like)
