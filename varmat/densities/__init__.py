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
    programs,  # noqa: F401 - registers itself
    simplex,
)
from varmat.densities.density import Density

_FAMILIES = (
    bernoulli, bounded, categorical, counts, glm, hmm, location_scale, matrix_variate, mixture,
    multi_normal, normal, ordered, positive, simplex,
)

__all__ = [name for family in _FAMILIES for name in family.__all__]
globals().update({name: getattr(family, name) for family in _FAMILIES for name in family.__all__})
# Stan's names for the densities without the terms that depend on data only: normal_lupdf, poisson_lupmf, ...
_UNNORMALISED = {each.proportional.name: each.proportional for name in __all__ if isinstance(each := globals()[name], Density)}
globals().update(_UNNORMALISED)
__all__ += list(_UNNORMALISED)
