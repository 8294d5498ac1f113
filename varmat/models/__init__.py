"""Models: named, constrained parameters and a log density of them, ready for optimisers and samplers."""

from varmat.models import parameters
from varmat.models.model import Model
from varmat.models.parameters import *  # noqa: F403 - the names are listed there

__all__ = ["Model", *parameters.__all__]
