"""The transform of unit vectors, along the last axis of a stack."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import Saved, operation
from varmat.functions.checks import fixed, one
from varmat.programs.build.symbol import holds
from varmat.transforms.common import (
    check_inside,
    check_vector,
    joined,
    not_zero,
    operand,
    plain_sum,
    split,
    sum_over,
)
from varmat.typing import Adjoint, Operand, Result, elementwise_valued, transforming

__all__ = ["unit_vector_constrain", "unit_vector_free"]


# y = x / |x|, so the differential of y has no part along y. The length of x has the density
# exp(-|x|**2 / 2).
@operation(stacked=True)
@transforming
def unit_vector_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Map a vector to the unit vector of its direction: ``x / norm(x)``.

    Parameters
    ----------
    x : array_like, shape (..., K)
        Unconstrained, not zero.
    jacobian : bool
        Return what makes the distribution on the sphere uniform and proper too.

    Returns
    -------
    y : shape (..., K)
    log_jacobian : scalar
        If asked for: ``-sum(x**2) / 2``. There is one unconstrained element more than the sphere
        has dimensions, so this is not a Jacobian but the density of the length, under which `x` is
        standard normal.

    Raises
    ------
    DomainError
        If `x` is zero.
    ShapeError
        If `x` is empty or a scalar.

    Notes
    -----
    The derivative is the projection ``I - y @ y.T`` over the length of `x`.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Unit vector".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.unit_vector_constrain(np.array([3.0, 4.0]), jacobian=True)
    (array([0.6, 0.8]), -12.5)
    """
    check_vector("unit_vector_constrain", "x", np.shape(x), least=1)
    with np.errstate(over="ignore"):
        squared = np.add.reduce(x * x, axis=-1, keepdims=True)
    length = np.sqrt(squared)
    if not holds((squared > 1e-280) & (squared < np.inf)):
        # Divided by the largest element, the squares neither overflow nor underflow.
        unit = np.maximum.reduce(np.abs(x), axis=-1, keepdims=True)
        not_zero.check("unit_vector_constrain", "norm(x)", unit[..., 0])
        length = unit * np.sqrt(np.add.reduce(np.square(x / unit), axis=-1, keepdims=True))
    y = x / length
    return Saved((y, -0.5 * plain_sum(squared)) if jacobian else y, length=length)


@unit_vector_constrain.reverse
def unit_vector_reverse(
    g: Adjoint, r: Operand, x: Operand, jacobian: bool, length: Operand
) -> Result:
    g, h, r = split(g, r, jacobian)
    c = (g - r * np.add.reduce(g * r, axis=-1, keepdims=True)) / length
    return c - h * x if jacobian else c


@unit_vector_constrain.tangent
def unit_vector_tangent(r: Operand, x: Operand, jacobian: bool) -> Result:
    y = r[0] if jacobian else r
    unit = np.max(np.abs(fixed(x)), axis=-1, keepdims=True)
    length = unit * np.sqrt(np.sum(np.square(x / unit), axis=-1, keepdims=True))
    return joined(
        lambda t: ((t - y * np.sum(y * t, axis=-1, keepdims=True)) / length, -sum_over(x * t, x)),
        jacobian,
    )


@elementwise_valued
def unit_vector_free(y: Operand) -> Result:
    """Return a vector that `unit_vector_constrain` maps to `y`: `y` itself.

    Parameters
    ----------
    y : array_like, shape (..., K)
        With sum of squares 1, to within 1e-8.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If the sum of squares is not 1.
    ShapeError
        If `y` is empty or a scalar.

    Notes
    -----
    The function is the identity: the adjoint is passed through.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Unit vector".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.unit_vector_free([0.6, 0.8])
    array([0.6, 0.8])
    """
    y = operand(y, "unit_vector_free", "y")
    check_vector("unit_vector_free", "y", np.shape(y), least=1)
    check_inside(
        one,
        "unit_vector_free",
        "sum(Unit vector variable**2)",
        y,
        lambda y: np.sum(np.square(y), axis=-1),
    )
    return np.copy(y)
