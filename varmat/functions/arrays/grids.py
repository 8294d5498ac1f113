"""Grids of numbers between variable ends.

Each answers for NumPy's function of the same name, with its arguments and values."""

from __future__ import annotations

import operator

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.domains import Domain, nonnegative
from varmat.core.operation import as_operand
from varmat.functions.arrays.composites import composite, nonzero
from varmat.functions.checks import check_settings
from varmat.typing import DTypeLike, Operand, Result


@composite(np.linspace)
def linspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Result:
    """Make evenly spaced numbers between variable ends."""
    check_settings(np.linspace, dtype=dtype, device=device)
    num = operator.index(num)
    nonnegative.check("linspace", "num", num)
    start, stop = as_operand(start, "linspace: start"), as_operand(stop, "linspace: stop")
    span = stop - start
    intervals = num - 1 if endpoint else num
    step = span / intervals if intervals > 0 else np.nan
    ticks = np.arange(float(num)).reshape((-1,) + (1,) * np.ndim(span))
    grid = start + ticks * (step if intervals > 0 else span)
    if endpoint and num > 1:
        grid = np.where(ticks == intervals, stop, grid)
    grid = np.moveaxis(grid, 0, axis)
    return (grid, step) if retstep else grid


@composite(np.logspace)
def logspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    base: Operand = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Result:
    """Raise `base` to evenly spaced exponents between variable ends."""
    check_settings(np.logspace, dtype=dtype)
    base = as_operand(base, "logspace: base")
    if np.ndim(base):
        start, stop = start + 0.0 * base, stop + 0.0 * base
    exponents = np.linspace(start, stop, num, endpoint)
    return np.moveaxis(np.power(base, exponents), 0, axis)


@composite(np.geomspace)
def geomspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Result:
    """Make a geometric progression between variable ends of one sign."""
    check_settings(np.geomspace, dtype=dtype)
    start, stop = as_operand(start, "geomspace: start"), as_operand(stop, "geomspace: stop")
    nonzero.check("geomspace", "start", plain(start))
    nonzero.check("geomspace", "stop", plain(stop))
    sign = np.sign(plain(start))
    Domain("of the sign of start", lambda x: np.sign(x) == sign).check(
        "geomspace", "stop", plain(stop)
    )
    start, stop = sign * start, sign * stop
    grid = np.power(10.0, np.linspace(np.log10(start), np.log10(stop), num, endpoint))
    count = np.shape(grid)[0]
    ticks = np.arange(count).reshape((-1,) + (1,) * (np.ndim(grid) - 1))
    grid = np.where(ticks == 0, start, grid)
    if endpoint and count > 1:
        grid = np.where(ticks == count - 1, stop, grid)
    return np.moveaxis(sign * grid, 0, axis)
