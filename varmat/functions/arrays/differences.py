"""Differences of neighbours, and functions computed with them: integrals, slopes, interpolation.

Each answers for NumPy's function of the same name, with its arguments and values."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from varmat.core.dispatch import plain
from varmat.core.domains import nonnegative
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand, is_differentiable
from varmat.functions.arrays.composites import composite, nonzero
from varmat.functions.arrays.constant import named
from varmat.functions.checks import check_choice
from varmat.typing import Axis, Operand, Result


def _along(axis: int, *limits: int | None) -> tuple[slice, ...]:
    """Return the index of a slice along one axis."""
    return (slice(None),) * axis + (slice(*limits),)


@composite(np.diff)
def diff(
    a: Operand, n: int = 1, axis: int = -1, prepend: Operand = None, append: Operand = None
) -> Result:
    """Take differences of neighbours, `n` times over."""
    nonnegative.check("diff", "n", n)
    a = as_operand(a, "diff: a")
    if n == 0:
        return a  # as NumPy does, without what is to be put before and after
    axis = normalize_axis_index(axis, np.ndim(a))
    if prepend is not None or append is not None:
        edge = (*np.shape(a)[:axis], 1, *np.shape(a)[axis + 1 :])
        parts = [
            part if part is None or np.ndim(part) else np.broadcast_to(part, edge)
            for part in (prepend, a, append)
        ]
        a = np.concatenate([part for part in parts if part is not None], axis)
    for _ in range(n):
        a = a[_along(axis, 1, None)] - a[_along(axis, 0, -1)]
    return a


@composite(np.ediff1d)
def ediff1d(ary: Operand, to_end: Operand = None, to_begin: Operand = None) -> Result:
    """Take differences of neighbours of the flattened array, between given ends."""
    parts = (to_begin, np.diff(np.ravel(as_operand(ary, "ediff1d: ary"))), to_end)
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


@composite(*named("trapezoid trapz"))
def trapezoid(y: Operand, x: Operand = None, dx: Operand = 1.0, axis: int = -1) -> Result:
    """Integrate by the trapezoidal rule."""
    y = as_operand(y, "trapezoid: y")
    along = normalize_axis_index(axis, np.ndim(y))
    if x is not None:
        x = as_operand(x, "trapezoid: x")
        dx = (
            np.diff(x, axis=axis)
            if np.ndim(x) > 1
            else np.diff(x)[(..., *(None,) * (np.ndim(y) - 1 - along))]
        )
    return np.sum(dx * (y[_along(along, 1, None)] + y[_along(along, 0, -1)]) / 2.0, axis=axis)


@composite(np.gradient)
def gradient(f: Operand, *varargs: Operand, axis: Axis = None, edge_order: int = 1) -> Result:
    """Take second-order differences inside, one-sided ones of first or second order at the ends."""
    check_choice("gradient", "edge_order", edge_order, 1, 2)
    f = as_operand(f, "gradient: f")
    axes = tuple(range(np.ndim(f))) if axis is None else normalize_axis_tuple(axis, np.ndim(f))
    spacings = varargs or (1.0,)
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"gradient: {len(spacings)} spacings are given, but must be one, or one for each of "
            f"{len(axes)} axes!"
        )
    results = [_gradient_along(f, i, h, edge_order) for i, h in zip(axes, spacings, strict=True)]
    return results[0] if len(axes) == 1 else tuple(results)


def _gradient_along(f: Operand, axis: int, spacing: Operand, edge_order: int) -> Result:
    x = np.moveaxis(f, axis, -1)
    n = np.shape(x)[-1]
    if n <= edge_order:
        raise ShapeError(
            f"gradient: axis {axis} has length {n}, but must have at least {edge_order + 1}!"
        )
    spacing = as_operand(spacing, "gradient: the spacing")
    if np.ndim(spacing) and np.shape(spacing) != (n,):
        raise ShapeError(
            f"gradient: the coordinates have shape {np.shape(spacing)}, but must have shape {(n,)} "
            f"along axis {axis}!"
        )
    h = np.diff(spacing) if np.ndim(spacing) else spacing
    # The slopes of the two neighbouring intervals, weighted so that a parabola is differentiated
    # exactly. Where these are equal the value between them does not count, and may be nan.
    slopes = np.diff(x) / h
    bend = slopes[..., 1:] - slopes[..., :-1]
    share = h[:-1] / (h[:-1] + h[1:]) if np.ndim(spacing) else np.array([0.5])
    first, last = slopes[..., :1], slopes[..., -1:]
    inner = (
        slopes[..., :-1] + share * bend
        if np.ndim(spacing)
        else (x[..., 2:] - x[..., :-2]) / (2.0 * h)
    )
    if edge_order == 2:
        first = first - share[:1] * bend[..., :1]
        last = last + (1.0 - share[-1:]) * bend[..., -1:]
    return np.moveaxis(np.concatenate((first, inner, last), axis=-1), -1, axis)


@composite(np.interp)
def interp(
    x: Operand,
    xp: Operand,
    fp: Operand,
    left: Operand = None,
    right: Operand = None,
    period: float | None = None,
) -> Result:
    """Interpolate linearly, differentiable in all of `x`, `xp` and `fp`; at a knot the slope is the
    one to its right.
    """
    x, xp, fp = (
        as_operand(item, f"interp: {name}") for name, item in (("x", x), ("xp", xp), ("fp", fp))
    )
    if np.ndim(xp) != 1 or np.shape(xp) != np.shape(fp) or not np.size(xp):
        raise ShapeError(
            f"interp: xp has shape {np.shape(xp)} and fp {np.shape(fp)}, but both must be vectors "
            "of one length!"
        )
    if period is not None:
        if is_differentiable(period):
            raise TypeError("interp: period is a variable, but must be data!")
        nonzero.check("interp", "period", period)
        period = abs(period)
        x, xp = (item - np.floor(plain(item) / period) * period for item in (x, xp))
        order = np.argsort(plain(xp))
        xp, fp = xp[order], fp[order]
        xp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = np.concatenate((fp[-1:], fp, fp[:1]))
        left = right = None
    left = fp[0] if left is None else left
    right = fp[-1] if right is None else right
    points, knots = plain(x), plain(xp)
    if np.size(knots) == 1:
        inside = fp[0] + 0.0 * x
    else:
        i = np.clip(np.searchsorted(knots, points, side="right") - 1, 0, np.size(knots) - 2)
        width = xp[i + 1] - xp[i]
        # Two knots in one place are a jump, which only points at and beyond the last knot meet: the
        # slope is zero, and the value is the one behind the jump.
        jump = plain(width) == 0
        slope = np.where(jump, 0.0, (fp[i + 1] - fp[i]) / np.where(jump, 1.0, width))
        # The slope is not used for points beyond the knots, which may be infinite.
        near = np.where((points < knots[0]) | (points > knots[-1]), xp[i], x)
        inside = fp[i + jump] + slope * (near - xp[i])
    return np.where(points < knots[0], left, np.where(points > knots[-1], right, inside))
