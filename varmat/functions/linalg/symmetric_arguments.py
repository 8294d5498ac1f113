"""Functions of symmetric matrices: which elements they read, and where the adjoint lies.

A function of a symmetric matrix computes with the lower triangle, as LAPACK does. Its derivative is
that of exactly this function: the adjoint lies in the lower triangle, and an element off the
diagonal carries the derivative of both places it stands for. For a matrix that is symmetric by
construction (``b @ b.T``, a covariance function) the gradient of what it was made from is the same
as with any other convention. Functions with a name of NumPy (`numpy.linalg.cholesky`, `eigh`,
`eigvalsh`) never look at the upper triangle. Those with a name of Stan (``cholesky_decompose``,
``eigenvalues_sym``, ``inverse_spd``, ...) refuse a matrix that is not symmetric: elements that
should be equal may differ by 1e-8, or by 1e-8 of their size if they are larger than one."""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.checks import TOLERANCE, outside
from varmat.functions.linalg.triangles import (
    TILE,
    gapped,
    half_diagonal,
    lower_triangle,
    place_of,
    tiles,
    transposed,
    triangle_mask,
)
from varmat.programs.build.factorisations import triangle
from varmat.programs.build.symbol import is_symbol, require
from varmat.typing import Operand, Result


def to_triangle(c: np.ndarray, lower: bool = True) -> np.ndarray:
    """Fold a matrix onto one triangle: the adjoint of copying this triangle to the other."""
    folded: np.ndarray
    if is_symbol(c):
        folded = triangle(c + c.mT, half=True)
        return folded if lower else folded.mT
    folded = half_diagonal(
        lower_triangle(
            c.shape, lambda i, j, out: np.add(c[..., i:j, :j], gapped(c[..., :j, i:j]).mT, out=out)
        )
    )
    return folded if lower else transposed(folded)


def check_symmetric(function: str, a: np.ndarray, name: str = "a") -> None:
    """Raise `DomainError` unless the matrices `a` are finite and symmetric, to 1e-8 absolutely and
    relatively.
    """
    if is_symbol(a):
        require(abs(a - a.mT) <= TOLERANCE)
        return
    # No difference is larger than the square root of the sum of their squares. With finite squares
    # nothing overflows or is invalid; to find that out takes half as long as `errstate`.
    if a.shape[-1] <= TILE and np.vdot(a, a) < math.inf:
        difference = a.mT.copy()
        np.subtract(difference, a, difference)
        if np.vdot(difference, difference) <= TOLERANCE**2:
            return
    _look_for_asymmetry(function, a, name)


@np.errstate(all="ignore")
def _look_for_asymmetry(function: str, a: np.ndarray, name: str) -> None:
    squares = 0.0
    for i, j in tiles(a.shape[-1]):
        difference = np.subtract(a[..., :j, i:j], gapped(a[..., i:j, :j]).mT, order="C")
        squares += np.vdot(difference, difference)
    # Nan and inf are passed on by the sum.
    if squares <= TOLERANCE**2:
        return
    wrong = np.argwhere(~(np.abs(a - a.mT) <= TOLERANCE * np.maximum(1.0, np.abs(a))))
    if not len(wrong):
        return
    index = tuple(wrong[0])
    mirror = (*index[:-2], index[-1], index[-2])
    if np.isfinite(a[index]) and not np.isfinite(a[mirror]):
        index, mirror = mirror, index
    value, other = a[index].item(), a[mirror].item()
    rule = (
        f"{other!r}, as {name}{place_of(mirror)} is, for a symmetric matrix"
        if np.isfinite(value)
        else "finite"
    )
    raise outside(function, f"{name}{place_of(index)}", value, f"be {rule}")


def symmetric(t: Operand, lower: bool = True) -> Result:
    """Mirror one triangle of `t` to make a symmetric matrix."""
    return np.where(triangle_mask(np.shape(t), lower), t, t.mT)
