"""Models: named, constrained parameters and a log density of them, ready for optimisers and
samplers.
"""

from varmat.models import discrete, model, parameters

__all__ = ["discrete", "model", "parameters"]
