"""Checks that functions of several families share."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.errors import ShapeError

__all__: list[str] = []


def check_square(function: str, name: str, shape: tuple[int, ...]) -> None:
    """Raise `ShapeError` unless `shape` is that of a square matrix or a stack of them."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"{function}: {name} has shape {shape}, but must be a square matrix (or a stack of them)!")


def check_matrix(function: str, name: str, x: Any) -> None:
    """Raise `ShapeError` unless `x` is a matrix or a stack of them."""
    if np.ndim(x) < 2:
        raise ShapeError(f"{function}: {name} has shape {np.shape(x)}, but must be a matrix (or a stack of them)!")


def broadcastable(*shapes: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes go together."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True
