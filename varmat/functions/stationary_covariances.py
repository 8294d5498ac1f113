"""The operation behind the stationary covariance functions of Gaussian processes.

A kernel is the correlation as a function of a multiple of the squared distance in units of the
length scale, and its derivative; one operation serves all of them. Distances are computed once and
kept. Differences are taken before anything else, so that close points lose no digits and the matrix
is exactly symmetric. Matrices are gone through by blocks of rows that stay in the cache from the
difference to the covariance; the reverse pass needs only products with vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from varmat.core.arena import LARGE
from varmat.core.domains import finite, positive_finite
from varmat.core.operation import Saved, operation
from varmat.functions.checks import check_values, misfit
from varmat.plain_arrays import BLOCK, blocks, ones
from varmat.programs.build.symbol import is_symbol, number, refuse, require
from varmat.typing import Adjoint, Linear, Operand, Plain, Result


class CovarianceFunction(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
        Name of the public function.
    unit : float
        Factor of the squared distances in units of the length scale, which makes the argument `z`
        of the other two.
    correlation : callable
        A function of `z` and of the array that it writes to.
    slope : callable
        The derivative of the covariance, a function of `z`, of the covariance and of the variance;
        differentiable. It must be finite at ``z = 0``, where the distance of two points does not
        depend on them to first order.
    """

    name: str
    unit: float
    correlation: Callable[[Operand, Operand], Result]
    slope: Callable[[Operand, Operand, Operand], Result]


# From this number of columns on a product of matrices is faster than differences of vectors.
WIDE = 100
# Bounds for length scales below 1e-100, where covariances of distinct points are zero. They keep
# everything from becoming nan: the largest factor of squared distances, and their largest multiple.
SHORT, LARGEST, FAR = 1e200, 1e250, 1e300


def as_rows(x: Operand) -> Result:
    """Return points as rows; differentiable."""
    return x[:, None] if np.ndim(x) == 1 else x


def _step(columns: int) -> int:
    """Return the number of rows of a block of matrices with this many columns."""
    return max(1, BLOCK // max(1, columns))


def _blocks(*matrices: Operand) -> Iterator[tuple[Result, ...]]:
    """Yield ranges of rows that make up the matrices, each with these rows of every matrix."""
    count, columns = matrices[0].shape
    step = _step(columns)
    if count <= step or is_symbol(matrices[0]):
        yield slice(None), *matrices
        return
    for rows in blocks(count, step):
        yield rows, *(matrix[rows] for matrix in matrices)


def _dimensions(
    x1: Operand, x2: Operand, length_scale: Operand, unit: float
) -> list[tuple[Result, Result, float]]:
    """Return for each dimension the coordinates of both sets, and the factor of the squares of
    their differences.
    """
    if x1.ndim == 1:
        return [(x1, x2, _factor(length_scale, unit))]
    scales = [length_scale] * x1.shape[1] if type(length_scale) is float else length_scale.tolist()
    return [(x1[:, k], x2[:, k], _factor(scale, unit)) for k, scale in enumerate(scales)]


def _factor(scale: Operand, unit: float) -> Result:
    """Return the factor of squared differences: a number, or one for each dimension."""
    if is_symbol(scale):
        return unit / (scale * scale)
    # The difference of points that coincide must not become nan, however short the scale.
    if type(scale) is float:
        return math.copysign(min(abs(unit) / scale / scale, LARGEST), unit)
    return np.array([_factor(x, unit) for x in scale.tolist()])


def _squared_differences(
    u: Operand, v: Operand, factor: float, out: np.ndarray | None, scratch: Operand
) -> Result:
    """Compute the squared differences along one dimension, times the factor; the array that is
    overwritten may be `out`.
    """
    if len(v) < WIDE:
        np.subtract(u[:, None], v, scratch)
    else:
        # In ``u * 1 + 1 * (-v)`` only the sum is rounded.
        left, right = np.empty((len(u), 2)), np.empty((2, len(v)))
        left[:, 0], left[:, 1], right[0] = u, 1.0, 1.0
        np.negative(v, right[1])
        np.dot(left, right, scratch)
    np.multiply(scratch, scratch, scratch)
    return np.multiply(scratch, factor, out)


def _ndim(x: object) -> int:
    """Return `numpy.ndim` of a number, an array or a variable, without the cost of an exception."""
    return getattr(x, "ndim", 0)


def check_points(
    function: str, x1: Operand, x2: Operand, sigma: Operand, length_scale: Operand = 1.0
) -> None:
    for name, x in (("x", x1), ("x2", x2))[: 1 if x2 is x1 else 2]:
        if _ndim(x) not in (1, 2):
            raise misfit(function, name, np.shape(x), "have one row (or number) per point")
        check_values(partial(finite.check, function, name), x)
    point = x1.shape[1:]
    if x2.shape[1:] != point:
        raise misfit(function, "x2", np.shape(x2), f"have points of shape {point}, as x has")
    if _ndim(sigma):
        raise misfit(function, "sigma", np.shape(sigma), "be a scalar")
    if _ndim(length_scale) and np.shape(length_scale) != point:
        shape = np.shape(length_scale)
        raise misfit(function, "length_scale", shape, f"be a scalar or have shape {point}")


@operation()
def gp_stationary_cov(
    x1: Operand,
    x2: Operand,
    sigma: Operand,
    length_scale: Operand,
    *,
    kernel: CovarianceFunction,
    workspace: Operand = np.empty,
) -> Result:
    """Compute the covariances between two sets of points for a row of the table: what the public
    functions record.
    """
    if any(map(is_symbol, (x1, x2, sigma, length_scale))):
        return _of_symbols(x1, x2, sigma, length_scale, kernel)
    check_points(kernel.name, x1, x2, sigma, length_scale)
    positive_finite.check(kernel.name, "sigma", sigma)
    positive_finite.check(kernel.name, "length_scale", length_scale)
    shape = (len(x1), len(x2))
    dimensions = _dimensions(x1, x2, length_scale, kernel.unit)
    # as a workspace would be, but earlier
    make = np.empty if shape[0] * shape[1] <= LARGE else workspace
    r, z, scratch = make(shape), make(shape), make((min(_step(shape[1]), shape[0]), shape[1]))
    far = any(abs(factor) > SHORT for *_, factor in dimensions)
    for rows, out, sum_ in _blocks(r, z):
        if not dimensions:
            sum_.fill(0.0)
        for k, (u, v, factor) in enumerate(dimensions):
            if k:
                np.add(sum_, _squared_differences(u[rows], v, factor, out, out), sum_)
            else:
                _squared_differences(u[rows], v, factor, sum_, out)
        if far:
            np.clip(sum_, -FAR, FAR, sum_)
        np.multiply(kernel.correlation(sum_, out), sigma * sigma, out)
    return Saved(r, z=z, scratch=scratch, squares=None)


@gp_stationary_cov.reverse
def gp_stationary_cov_reverse(
    g: Adjoint,
    r: Plain,
    x1: Plain,
    x2: Plain,
    sigma: Plain,
    length_scale: Plain,
    kernel: CovarianceFunction,
    z: Plain,
    scratch: Operand,
    squares: Operand,
) -> Adjoint:
    def weights() -> Iterator[tuple[slice, Result, Result]]:
        """Yield the adjoint of z, and z, by blocks of rows."""
        for rows, z_, r_, g_ in _blocks(z, r, g):
            out = None if scratch is None else scratch[: len(z_)]
            yield rows, np.multiply(kernel.slope(z_, r_, sigma * sigma), g_, out), z_

    result: list[Plain] = []

    def of_points(i: int) -> Result:
        if not result:
            result.extend(_of_points(weights(), x1, x2, _factor(length_scale, 2.0 * kernel.unit)))
        return result[i]

    def of_scale() -> Result:
        # One pass through the matrices serves points and a single scale.
        if not _ndim(length_scale):
            total = result[2] if result else _total([np.vdot(w, z_) for _, w, z_ in weights()])
        elif squares is not None:
            ((_, w, _),) = weights()
            total = np.reshape(w, (-1,)) @ squares * _factor(length_scale, kernel.unit)
        else:
            total = np.zeros(length_scale.shape)
            dimensions = _dimensions(x1, x2, length_scale, kernel.unit)
            for rows, w, _ in weights():
                part = np.empty(w.shape)
                for k, (u, v, factor) in enumerate(dimensions):
                    total[k] += np.vdot(w, _squared_differences(u[rows], v, factor, part, part))
        return -2.0 / length_scale * total

    return (
        lambda: of_points(0),
        lambda: of_points(1),
        lambda: 2.0 / sigma * number(np.vdot(g, r)),
        of_scale,
    )


def _of_symbols(
    x1: Operand, x2: Operand, sigma: Operand, length_scale: Operand, kernel: CovarianceFunction
) -> Saved:
    """Compute the covariances in a program, all differences at once."""
    if not np.size(x1) * np.size(x2) or len(x1) * len(x2) > LARGE:
        refuse()
    for parameter in (sigma, length_scale):
        require((parameter > 1e-100) & (parameter < 1e100))
    squares, shape = np.square(as_rows(x1)[:, None, :] - as_rows(x2)), (len(x1), len(x2))
    factor = _factor(length_scale, kernel.unit)
    if _ndim(length_scale):  # a column for each of them
        squares = np.reshape(squares, (-1, squares.shape[-1]))
        z = np.reshape(squares @ factor, shape)
    else:
        z = np.sum(squares, axis=-1) * factor
    r = kernel.correlation(z * 1.0, z * 1.0) * (sigma * sigma)
    return Saved(r, z=z, scratch=None, squares=squares)


def _of_points(
    weights: Iterator[tuple[slice, Operand, Operand]], x1: Operand, x2: Operand, factor: Operand
) -> tuple[Result, Result, Result]:
    """Compute for the points of both sets the weighted sums of differences, ``sum_j w_ij (u_i -
    v_j)``, times the factor, and the weighted sum of `z`.
    """
    # The sums do not depend on the mean of the points; without it the differences lose less.
    # Products with ones are the fastest sums.
    other = ones(len(x2))
    centre = x2.T.dot(other) / max(1, len(x2))
    u = (x1 - centre) * factor
    v = u if x2 is x1 else (x2 - centre) * factor
    blocks = [_weighted_sums(w, z, u[rows], v, other) for rows, w, z in weights]
    if len(blocks) == 1:
        c, d, of_columns, total = blocks[0]
    else:
        c, d, of_columns, totals = zip(*blocks, strict=True)
        c, d, of_columns, total = np.concatenate(c), sum(d), sum(of_columns), _total(totals)
    return c, (v.T * of_columns).T - d, number(total)


def _weighted_sums(
    w: Operand, z: Operand, u: Operand, v: Operand, other: Operand
) -> tuple[Result, Result, Result, Result]:
    transposed = w.T
    c = (u.T * w.dot(other)).T - w.dot(v)
    return c, transposed.dot(u), transposed.dot(ones(len(u))), np.vdot(w, z)


def _total(parts: Sequence[Operand]) -> Result:
    """Sum numbers, exactly if there are several."""
    return number(parts[0]) if len(parts) == 1 else math.fsum(parts)


@gp_stationary_cov.tangent
def gp_stationary_cov_tangent(
    r: Plain, x1: Plain, x2: Plain, sigma: Plain, length_scale: Plain, kernel: CovarianceFunction
) -> tuple[Linear, ...]:
    # Here the differences must be differentiable themselves, so all are taken at once: shape (n1,
    # n2, d).
    u = (as_rows(x1)[:, None, :] - as_rows(x2)[None, :, :]) / length_scale
    w = 2.0 * kernel.unit * kernel.slope(kernel.unit * np.sum(u * u, axis=-1), r, sigma * sigma)
    return (
        lambda t: w * np.sum(u * (as_rows(t)[:, None, :] / length_scale), axis=-1),
        lambda t: -w * np.sum(u * (as_rows(t)[None, :, :] / length_scale), axis=-1),
        lambda t: 2.0 * t / sigma * r,
        lambda t: -w * np.sum(u * u * t / length_scale, axis=-1),
    )
