"""Stan programs, run without a compiler."""

from varmat.stan.errors import StanError as StanError
from varmat.stan.errors import StanSemanticError as StanSemanticError
from varmat.stan.errors import StanSyntaxError as StanSyntaxError
from varmat.stan.program import Program as Program

__all__ = ["Program", "StanError", "StanSemanticError", "StanSyntaxError"]
