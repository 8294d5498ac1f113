"""Triangular systems and Cholesky factors of symbols, and what has to hold for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.build.symbol import Symbol, builder_of, lift, refuse, require
from varmat.programs.kernels.matrices import SolveTriangular

if TYPE_CHECKING:
    from varmat.typing import Operand

# Rows up to which factorisations are steps of a program. For larger matrices functions that work
# block by block are called from Python.
UNROLLED = 128

# How far elements across a diagonal may be apart: see `varmat.functions.checks`.
TOLERANCE = 1e-8


def solve_lower(a: Operand, b: Operand, transposed: bool = False) -> Operand:
    """Solve a lower triangular system, or its transpose, for a vector or a matrix."""
    if np.ndim(a) != 2 or np.ndim(b) > 2 or not np.size(b) or np.shape(a)[-1] > UNROLLED:
        refuse()
    builder = builder_of(a, b)
    operands = (builder.contiguous(lift(builder, x)) for x in (a, b))
    return Symbol(builder, builder.call(SolveTriangular(transposed), *operands))


def inverse_lower(factor: Operand) -> Operand:
    """Invert the matrix whose lower Cholesky factor is `factor`."""
    return solve_lower(factor, solve_lower(factor, np.eye(np.shape(factor)[-1])), transposed=True)


def triangle(x: Operand, half: bool = False, k: int = 0, factor: float = 1.0) -> Operand:
    """Take the lower triangle times a factor, with zeros above; `half` halves the diagonal."""
    n = np.shape(x)[-1]
    return x * (factor * (np.tri(n) - 0.5 * np.eye(n) if half else np.tri(n, k=k)))


def unrolled(a: Operand) -> None:
    """Raise for empty matrices, and for matrices so large that functions are called from Python."""
    if not np.size(a) or np.shape(a)[-1] > UNROLLED:
        refuse()


def regular(x: object) -> Operand:
    """Return an inverse, a solution or a Cholesky factor; end the run where NumPy's loops fill it
    with nan, because it does not exist.
    """
    if isinstance(x, Symbol) and x.size:
        require(np.isfinite(x[..., 0, 0]))
    return x


def cholesky(a: Operand) -> Operand:
    """Factor one matrix: the lower Cholesky factor."""
    unrolled(a)
    return regular(np.linalg.cholesky(a)) if np.ndim(a) == 2 else refuse()
