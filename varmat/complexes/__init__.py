"""Complex variables, as pairs of real ones, and their functions. Importing this package fills the
table of complex answers.
"""

from varmat.complexes import (
    arrays,
    elementwise,
    fourier,
    linear_algebra,
    names,
    operation,
    variable,
)

__all__ = ["arrays", "elementwise", "fourier", "linear_algebra", "names", "operation", "variable"]
