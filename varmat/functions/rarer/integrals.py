"""Integrals of sampled functions: those of `scipy.integrate`."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.errors import DomainError
from varmat.core.operation import as_operand
from varmat.functions.checks import misfit
from varmat.typing import Operand, Result, array_valued, scalar_or_array_valued

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "romb", "simpson"]


def _samples(
    function: str, y: Operand, x: Operand, dx: Operand, axis: int
) -> tuple[Result, Result, int]:
    """Return the samples with the axis at the end, the distances between them, and the axis."""
    y = as_operand(y, f"{function}: y")
    if not np.ndim(y) or not np.shape(y)[axis]:
        raise misfit(function, "y", np.shape(y), "have samples along the axis")
    axis = normalize_axis_index(axis, np.ndim(y))
    n, moved = np.shape(y)[axis], np.moveaxis(y, axis, -1)
    if x is None:
        return moved, as_operand(dx, f"{function}: dx") * np.ones(n - 1), axis
    x = as_operand(x, f"{function}: x")
    if np.shape(x) not in ((n,), np.shape(y)):
        raise misfit(function, "x", np.shape(x), f"have shape {(n,)} or {np.shape(y)}")
    return moved, np.diff(x if np.ndim(x) == 1 else np.moveaxis(x, axis, -1)), axis


def _parabolas(y: Operand, h: Operand) -> Result:
    """Simpson's rule for an odd number of samples."""
    h0, h1 = h[..., 0::2], h[..., 1::2]
    both = h0 + h1
    first, middle, last = y[..., 0:-1:2], y[..., 1::2], y[..., 2::2]
    terms = (
        both
        / 6.0
        * (first * (2.0 - h1 / h0) + middle * (both * both / (h0 * h1)) + last * (2.0 - h0 / h1))
    )
    return np.sum(terms, axis=-1)


@scalar_or_array_valued
def simpson(y: Operand, x: Operand = None, *, dx: Operand = 1.0, axis: int = -1) -> Result:
    """Integrate samples by parabolas through three at a time: `scipy.integrate.simpson`.

    Parameters
    ----------
    y : array_like
        The samples, along `axis`.
    x : array_like, optional
        Where they are taken: a vector, or an array of the shape of `y`.
    dx : float
        Their distance, if `x` is not given.
    axis : int

    Returns
    -------
    Var or VarMat

    Raises
    ------
    ShapeError
        If `y` has no samples, or `x` has another shape.

    Notes
    -----
    For an even number of samples the last interval is integrated by the parabola through the last
    three [1]_. The derivative is had with respect to the samples and their places.

    References
    ----------
    .. [1] K. V. Cartwright, "Simpson's rule cumulative integration with MS Excel and
           irregularly-spaced data", Journal of Mathematical Sciences and Mathematics Education 12,
           2017.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda y: vm.simpson(y), np.zeros(5))
    array([0.33333333, 1.33333333, 0.66666667, 1.33333333, 0.33333333])
    """
    y, h, _ = _samples("simpson", y, x, dx, axis)
    n = np.shape(y)[-1]
    if n % 2:
        return _parabolas(y, h)
    if n == 2:
        return 0.5 * h[..., 0] * (y[..., 0] + y[..., 1])
    h0, h1 = h[..., -2], h[..., -1]
    remainder = (2.0 * h1**2 + 3.0 * h0 * h1) / (6.0 * (h0 + h1)) * y[..., -1] + (
        h1**2 + 3.0 * h0 * h1
    ) / (6.0 * h0) * y[..., -2]
    return (
        _parabolas(y[..., :-1], h[..., :-1])
        + remainder
        - h1**3 / (6.0 * h0 * (h0 + h1)) * y[..., -3]
    )


def _with_initial(function: str, r: Operand, initial: Operand, axis: int) -> Result:
    """Running integrals, preceded by a value at the start if one is given."""
    if initial is not None:
        initial = as_operand(initial, f"{function}: initial") + np.zeros((*np.shape(r)[:-1], 1))
        r = np.concatenate([initial, initial + r], axis=-1)
    return np.moveaxis(r, -1, axis)


@array_valued
def cumulative_trapezoid(
    y: Operand, x: Operand = None, dx: Operand = 1.0, axis: int = -1, initial: Operand = None
) -> Result:
    """Compute the running integral of samples by straight lines:
    `scipy.integrate.cumulative_trapezoid`.

    Parameters
    ----------
    y : array_like
        The samples, along `axis`.
    x : array_like, optional
        Where they are taken: a vector, or an array of the shape of `y`.
    dx : float
        Their distance, if `x` is not given.
    axis : int
    initial : float, optional
        With 0, the result begins with it, and has as many elements as `y` along the axis; otherwise
        one less.

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If `y` has no samples, or `x` has another shape.
    DomainError
        If `initial` is neither None nor 0.

    Notes
    -----
    The derivative is had with respect to the samples and their places; the adjoint is a sum that
    runs back.

    References
    ----------
    * NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 3.5(i).
    * SciPy reference, `scipy.integrate.cumulative_trapezoid`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda y: vm.cumulative_trapezoid(y)[1], np.zeros(4))
    array([0.5, 1. , 0.5, 0. ])
    """
    if initial is not None and initial != 0:
        raise DomainError(f"cumulative_trapezoid: initial is {initial}, but must be 0 or None!")
    y, h, axis = _samples("cumulative_trapezoid", y, x, dx, axis)
    r = np.cumsum(0.5 * h * (y[..., 1:] + y[..., :-1]), axis=-1)
    return _with_initial("cumulative_trapezoid", r, initial, axis)


def _first_intervals(y: Operand, h: Operand) -> Result:
    """Integrate over the first of two intervals, by the parabola through three samples, for all
    triples at once.
    """
    h0, h1 = h[..., :-1], h[..., 1:]
    share, ratio = h0 / (h0 + h1), h0 / h1
    product = share * ratio
    return (
        h0
        / 6.0
        * (
            (3.0 - share) * y[..., :-2]
            + (3.0 + product + share) * y[..., 1:-1]
            - product * y[..., 2:]
        )
    )


@array_valued
def cumulative_simpson(
    y: Operand, *, x: Operand = None, dx: Operand = 1.0, axis: int = -1, initial: Operand = None
) -> Result:
    """Compute the running integral of samples by parabolas: `scipy.integrate.cumulative_simpson`.

    Parameters
    ----------
    y : array_like
        The samples, along `axis`.
    x : array_like, optional
        Where they are taken, increasing: a vector, or an array of the shape of `y`.
    dx : float
        Their distance, if `x` is not given.
    axis : int
    initial : float, optional
        With it the result begins with it, it is added to the rest, and there are as many elements
        as samples; otherwise one less.

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If `y` has no samples, or `x` has another shape.

    Notes
    -----
    Each interval is integrated by the parabola through its ends and a neighbour: that after it for
    every other interval, and that before it for those between and the last one. Of two samples it
    is the straight line. The derivative is had with respect to the samples and their places.

    References
    ----------
    * NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 3.5(ii).
    * SciPy reference, `scipy.integrate.cumulative_simpson`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda y: vm.cumulative_simpson(y)[0], np.zeros(3))
    array([ 0.41666667,  0.66666667, -0.08333333])
    """
    y, h, axis = _samples("cumulative_simpson", y, x, dx, axis)
    n = np.shape(y)[-1]
    if n < 3:
        return _with_initial(
            "cumulative_simpson",
            np.cumsum(0.5 * h * (y[..., 1:] + y[..., :-1]), axis=-1),
            initial,
            axis,
        )
    after = _first_intervals(y, h)
    before = _first_intervals(y[..., ::-1], h[..., ::-1])[..., ::-1]
    forward = np.arange(n - 1) % 2 == 0
    forward[-1] = False
    one, other = np.minimum(np.arange(n - 1), n - 3), np.maximum(np.arange(n - 1) - 1, 0)
    parts = np.where(forward, after[..., one], before[..., other])
    return _with_initial("cumulative_simpson", np.cumsum(parts, axis=-1), initial, axis)


@scalar_or_array_valued
def romb(y: Operand, dx: Operand = 1.0, axis: int = -1) -> Result:
    """Integrate ``2**k + 1`` samples by Romberg's extrapolation: `scipy.integrate.romb`.

    Parameters
    ----------
    y : array_like
        The samples, along `axis`.
    dx : float
        Their distance.
    axis : int

    Returns
    -------
    Var or VarMat

    Raises
    ------
    ShapeError
        If there are not ``2**k + 1`` samples.

    Notes
    -----
    A sum with fixed weights, and so is the derivative.

    References
    ----------
    * NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 3.5(iii).
    * SciPy reference, `scipy.integrate.romb`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda y: vm.romb(y), np.zeros(3))
    array([0.33333333, 1.33333333, 0.33333333])
    """
    y = as_operand(y, "romb: y")
    n = np.shape(y)[axis] - 1 if np.ndim(y) else 0
    if n < 1 or n & (n - 1):
        raise misfit("romb", "y", np.shape(y), "have 2**k + 1 samples along the axis")
    # The integral is linear in the samples; the extrapolated sums of unit samples are its weights.
    rows, step = [], n
    while step:
        row = np.zeros(n + 1)
        row[::step] = step
        row[[0, -1]] *= 0.5
        rows.append(row)
        step //= 2
    for j in range(1, len(rows)):
        rows[j:] = [rows[i] + (rows[i] - rows[i - 1]) / (4.0**j - 1.0) for i in range(j, len(rows))]
    return np.moveaxis(y, axis, -1) @ rows[-1] * dx
