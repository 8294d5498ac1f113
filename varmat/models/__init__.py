"""Models: named, constrained parameters and a log density of them, ready for optimisers and
samplers.
"""

from varmat.models import model, parameters

__all__ = ["model", "parameters"]
