"""Helpers of the transforms: the value and log-Jacobian of one operation, sums over a stack, and
checks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from varmat.core.array_methods import FLOAT64, ArrayMethods
from varmat.core.domains import Domain
from varmat.core.operation import as_operand
from varmat.functions.checks import TOLERANCE, check_values, misfit
from varmat.programs.build.symbol import Symbol
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Shape

zero = Domain(f"0 to within {TOLERANCE}", lambda x: abs(x) <= TOLERANCE)
# A nan is let through, and the transform of it is nan, as in Stan.
not_zero = Domain("positive", lambda x: x != 0)


def operand(x: Operand, function: str, name: str) -> Result:
    """Convert an argument to a variable, a dual, a `MatVar`, a float or a float64 array."""
    return (
        x
        if type(x) is float or isinstance(x, ArrayMethods)
        else as_operand(x, f"{function}: {name}")
    )


def operands(function: str, **arguments: Operand) -> Result:
    """Convert several arguments to operands."""
    return [operand(x, function, name) for name, x in arguments.items()]


def split(g: Adjoint, r: Operand, jacobian: bool) -> tuple[Result, Result, Result]:
    """Return the adjoints of the value and of the log-Jacobian, and the value itself. With
    `jacobian` the result `r` is a pair of both.
    """
    if not jacobian:
        return g, 0.0, r
    value, log_jacobian = g
    if value is None:
        value = np.zeros(np.shape(r[0]))
        if type(r[0]) is Symbol:
            value = r[0].of(r[0].builder.constant(value))
    return value, 0.0 if log_jacobian is None else log_jacobian, r[0]


def times_slope(g: Adjoint, slope: Operand) -> Result:
    """Multiply an adjoint by a slope; 0 where the adjoint is 0, even if the slope is infinite
    there.
    """
    if not isinstance(g, np.ndarray):
        return np.where(g != 0.0, g * slope, 0.0)
    return np.multiply(g, slope, out=np.zeros(np.shape(g)), where=g != 0.0)


def joined(maps: Linear, jacobian: bool) -> Linear:
    """Return a tangent map of the value and the log-Jacobian, or of only the value."""
    return maps if jacobian else lambda t: maps(t)[0]


def sum_over(v: Operand, x: Operand) -> Result:
    """Sum over the axes of `x`, but not over axes of directions before them; differentiable."""
    return np.sum(v, axis=tuple(range(-np.ndim(x), 0)))


def plain_sum(v: Plain) -> Plain:
    """Sum a plain array, or a float."""
    total: Plain = np.add.reduce(v, None)
    return float(total) if isinstance(total, np.float64) else total


def exclusive_cumsum(v: Operand, size: int) -> Result:
    """Compute the first `size` sums of earlier elements, along the last axis; differentiable."""
    return np.concatenate(
        [np.zeros((*np.shape(v)[:-1], 1)), np.add.accumulate(v[..., : size - 1], axis=-1)], axis=-1
    )


def later_sums(v: Operand) -> Result:
    """Sum each element and all after it along the last axis; differentiable."""
    return np.add.accumulate(v[..., ::-1], axis=-1)[..., ::-1]


def check_vector(
    function: str, name: str, shape: Shape, size: int | None = None, least: int = 0
) -> None:
    """Raise `ShapeError` unless `shape` fits a vector of the right size, or a stack of them."""
    if not shape or shape[-1] < least or (size is not None and shape[-1] != size):
        rule = (
            f"of size {size}"
            if size is not None
            else f"of size {least} or more"
            if least
            else "or a stack of them"
        )
        raise misfit(function, name, shape, f"be a vector {rule}")


def check_within(function: str, name: str, shape: Shape, full_shape: Shape) -> None:
    """Raise `ShapeError` unless `shape` broadcasts to `full_shape`, as the first argument."""
    fits = len(shape) <= len(full_shape) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(full_shape), strict=False)
    )
    if not fits:
        raise misfit(function, name, shape, f"broadcast to the shape {full_shape}")


def check_inside(
    domain: Domain,
    function: str,
    name: str,
    value: Operand,
    part: Callable[[Operand], Operand] | None = None,
) -> None:
    """Raise `DomainError` unless a value, or `part` of it, is in a domain: now, and in each run of
    a recording.
    """
    check = partial(domain.check, function, name)
    check_all: Function = check if part is None else lambda x: check(part(x))
    if type(value) is np.ndarray and value.dtype is FLOAT64:  # data is not checked again
        check_all(value)
    else:
        check_values(check_all, value)


def check_against(
    function: str,
    name: str,
    value: Operand,
    phrase: str,
    holds: Callable[..., Operand],
    *others: Operand,
) -> None:
    """Raise `DomainError` unless ``holds(value, *others)`` everywhere. The phrase is formatted with
    the elements of the others.
    """

    def check(value: Operand, *others: Operand) -> None:
        inside = holds(value, *others)
        if inside is True or np.all(inside):
            return
        place = tuple(np.argwhere(~np.asarray(inside))[0])
        value, *others = np.broadcast_arrays(value, *others)  # type: ignore[assignment]
        Domain(phrase.format(*(float(other[place]) for other in others)), lambda _: inside).check(
            function, name, value
        )

    check_values(check, value, *others)
