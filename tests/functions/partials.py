"""Central differences, and the distance from them, for the tests of shape derivatives."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

import varmat as vm


def exact(function: Any, point: tuple[float, ...], *axes: int) -> float:
    """Return the partial derivative along the axes, by central differences. The steps leave 19
    digits of a third derivative.
    """
    with mpmath.workdps(64):
        xs = [mpmath.mpf(x) for x in point]

        def difference(f: Any, axis: int) -> Any:
            h = (abs(xs[axis]) or 1) * mpmath.mpf(10) ** -15

            def slope(*ts: Any) -> Any:
                low, high = (f(*ts[:axis], ts[axis] + k * h, *ts[axis + 1 :]) for k in (-1, 1))
                return (high - low) / (2 * h)

            return slope

        for axis in axes:
            function = difference(function, axis)
        return float(mpmath.re(function(*xs)))


def gradient(function: Any, columns: list[Any]) -> list[Any]:
    with vm.nested(), np.errstate(all="ignore"):
        xs = [vm.var(x) for x in columns]
        np.sum(function(*xs)).grad()
        return [x.adj for x in xs]


def relative(ours: Any, truth: Any, scale: Any = 0.0) -> float:
    truth = np.asarray(truth)
    return float(
        np.max(np.abs(ours - truth) / np.maximum(np.maximum(np.abs(truth), scale), 1e-290))
    )
