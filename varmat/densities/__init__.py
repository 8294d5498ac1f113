"""Probability functions: log densities and masses with Stan's names, one module per family of distributions."""

from varmat.densities import (
    bernoulli,
    bounded,
    categorical,
    counts,
    glm,
    hmm,
    location_scale,
    matrix_variate,
    mixture,
    multi_normal,
    normal,
    ordered,
    positive,
    programs,
    simplex,
    unnormalised,
)

__all__ = [
    "bernoulli",
    "bounded",
    "categorical",
    "counts",
    "glm",
    "hmm",
    "location_scale",
    "matrix_variate",
    "mixture",
    "multi_normal",
    "normal",
    "ordered",
    "positive",
    "programs",
    "simplex",
    "unnormalised",
]
