"""What the transforms share: the two results of a fused operation, sums over a stack, and
refusals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from varmat.core.array_methods import FLOAT64, ArrayMethods
from varmat.core.domains import Domain
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import TOLERANCE, check_values

zero = Domain(f"0 to within {TOLERANCE}", lambda x: abs(x) <= TOLERANCE)
# On a nan the transforms give nan, as in Stan.
not_zero = Domain("positive", lambda x: x != 0)


def operand(x: Any, function: str, name: str) -> Any:
    """A variable, a dual, a `MatVar`, a float or a float64 array."""
    return (
        x
        if type(x) is float or isinstance(x, ArrayMethods)
        else as_operand(x, f"{function}: {name}")
    )


def operands(function: str, **arguments: Any) -> Any:
    """Several operands."""
    return [operand(x, function, name) for name, x in arguments.items()]


def split(g: Any, r: Any, jacobian: bool) -> tuple[Any, Any, Any]:
    """The adjoints of the value and of the log-Jacobian, and the value, of an operation whose
    setting is `jacobian`.
    """
    if not jacobian:
        return g, 0.0, r
    value, log_jacobian = g
    return (
        np.zeros(np.shape(r[0])) if value is None else value,
        0.0 if log_jacobian is None else log_jacobian,
        r[0],
    )


def times_slope(g: Any, slope: Any) -> Any:
    """An adjoint times a slope, zero where the adjoint is: what nobody uses may be infinite."""
    if not isinstance(g, np.ndarray):
        return np.where(g != 0.0, g * slope, 0.0)
    return np.multiply(g, slope, out=np.zeros(np.shape(g)), where=g != 0.0)


def joined(maps: Callable[[Any], tuple[Any, Any]], jacobian: bool) -> Callable[[Any], Any]:
    """A tangent map of the value and the log-Jacobian, or of the value alone."""
    return maps if jacobian else lambda t: maps(t)[0]


def sum_over(v: Any, x: Any) -> Any:
    """Sum over the axes of `x`, not over a leading axis of directions; differentiable."""
    return np.sum(v, axis=tuple(range(-np.ndim(x), 0)))


def plain_sum(v: Any) -> Any:
    """The sum of a plain array, or of a float."""
    total: Any = np.add.reduce(v, None)
    return float(total) if isinstance(total, np.float64) else total


def exclusive_cumsum(v: Any, size: int) -> Any:
    """The first `size` sums along the last axis of all elements before; differentiable."""
    return np.concatenate(
        [np.zeros((*np.shape(v)[:-1], 1)), np.add.accumulate(v[..., : size - 1], axis=-1)], axis=-1
    )


def later_sums(v: Any) -> Any:
    """The sum along the last axis of each element and all after it; differentiable."""
    return np.add.accumulate(v[..., ::-1], axis=-1)[..., ::-1]


def check_vector(
    function: str, name: str, shape: tuple[int, ...], size: int | None = None, least: int = 0
) -> None:
    """Raise `ShapeError` unless `shape` is that of a vector, or a stack of them, of the right
    size.
    """
    if not shape or shape[-1] < least or (size is not None and shape[-1] != size):
        rule = (
            f"of size {size}"
            if size is not None
            else f"of size {least} or more"
            if least
            else "or a stack of them"
        )
        raise ShapeError(f"{function}: {name} has shape {shape}, but must be a vector {rule}!")


def check_within(function: str, name: str, shape: tuple[int, ...], whole: tuple[int, ...]) -> None:
    """Raise `ShapeError` unless an argument of `shape` broadcasts to the first one, which has the
    shape `whole`.
    """
    fits = len(shape) <= len(whole) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(whole), strict=False)
    )
    if not fits:
        raise ShapeError(
            f"{function}: {name} has shape {shape}, but must broadcast to the shape {whole}!"
        )


def check_inside(
    domain: Domain, function: str, name: str, value: Any, part: Callable[[Any], Any] | None = None
) -> None:
    """Raise `DomainError` unless a value, or what `part` makes of it, is in a domain: now, and
    whenever a recording is run.
    """
    check = partial(domain.check, function, name)
    whole: Any = check if part is None else lambda x: check(part(x))
    if type(value) is np.ndarray and value.dtype is FLOAT64:  # data is not checked again
        whole(value)
    else:
        check_values(whole, value)


def check_against(
    function: str, name: str, value: Any, phrase: str, holds: Callable[..., Any], *others: Any
) -> None:
    """Raise `DomainError` unless ``holds(value, *others)`` everywhere; the phrase may refer to the
    elements of the others.
    """

    def check(value: Any, *others: Any) -> None:
        inside = holds(value, *others)
        if inside is True or np.all(inside):
            return
        place = tuple(np.argwhere(~np.asarray(inside))[0])
        value, *others = np.broadcast_arrays(value, *others)  # type: ignore[assignment]
        Domain(phrase.format(*(float(other[place]) for other in others)), lambda _: inside).check(
            function, name, value
        )

    check_values(check, value, *others)
