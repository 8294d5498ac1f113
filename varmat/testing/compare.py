"""What the harness demands, how it compares two routes, and how it says that they disagree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from varmat.typing import Index, Plain

__all__ = ["Report", "Tolerances"]

# An element below this fraction of the largest one of its array is compared on that scale.
SMALL = 1e-3


@dataclass(frozen=True)
class Tolerances:
    """Largest relative differences that `expect_ad` and `expect_ad_matvar` accept; ``inf`` leaves a
    comparison out.

    Attributes
    ----------
    value : float
        Values computed with variables against those of plain NumPy.
    finite_difference : float
        Reverse gradient against finite differences of the value, beyond the estimated error of
        these. Set it to ``inf`` at kinks.
    forward : float
        Forward against reverse mode, and several directions at once against one at a time; ``inf``
        leaves out forward mode and with it all second derivatives (for an operation without a
        tangent rule).
    rounding : float
        Gradients in reverse mode that agree but for rounding: fan-out, the same variable twice,
        other memory layouts, other mixtures, a second reverse pass.
    hessian : float
        Symmetry of the Hessian; ``inf`` leaves out all second derivatives.
    hessian_finite_difference : float
        Hessian times vector against finite differences of the reverse gradient, beyond their
        estimated error.
    matvar : float
        varmat against matvar, in values, gradients and Jacobians.
    """

    value: float = 1e-12
    finite_difference: float = 1e-6
    forward: float = 1e-10
    rounding: float = 1e-10
    hessian: float = 1e-10
    hessian_finite_difference: float = 1e-5
    matvar: float = 1e-8


@dataclass(frozen=True)
class Report:
    """The worst relative difference reached in each comparison.

    Attributes
    ----------
    errors : dict
        Name of the comparison -> worst relative difference.
    """

    errors: dict[str, float] = field(default_factory=dict)

    @property
    def worst(self) -> float:
        """The worst of all that should agree to rounding (finite differences left out)."""
        return max(
            (e for name, e in self.errors.items() if "finite difference" not in name), default=0.0
        )

    def __str__(self) -> str:
        width = max(map(len, self.errors), default=0)
        return "\n".join(f"{name:{width}}  {error:.1e}" for name, error in self.errors.items())


def difference(a: Plain, b: Plain, floor: Plain = 0.0, slack: Plain = 0.0) -> np.ndarray:
    """Compute the elementwise relative difference; zero for two nans or equal infinities, infinite
    if only one is not finite.

    `floor` is the smallest scale, `slack` an absolute difference that is forgiven.
    """
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        sizes = np.where(np.isfinite(b), np.abs(b), 0.0)
        scale = np.maximum(
            np.maximum(np.abs(a), np.abs(b)), np.maximum(SMALL * np.max(sizes, initial=0.0), floor)
        )
        gap = np.maximum(np.abs(a - b) - slack, 0.0)
        relative = np.where(gap == 0.0, 0.0, gap / np.where(scale == 0.0, 1.0, scale))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.where(finite, relative, np.where(same, 0.0, np.inf))


class Comparison:
    """Compares routes of one function, two at a time, and remembers the worst figures."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.errors: dict[str, float] = {}

    def report(self) -> Report:
        """Report the figures so far."""
        return Report(dict(self.errors))

    def close(
        self,
        pair: tuple[str, str],
        what: str,
        a: object,
        b: object,
        tolerance: float,
        floor: object = 0.0,
        slack: object = 0.0,
        hint: Callable[[Any], str] | None = None,
    ) -> None:
        """Demand that `a`, by the first of two routes, agrees with `b`, by the second.

        `what` says what is compared, for which arguments. `hint` may add something about the index
        where they disagree."""
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if a.shape != b.shape:
            self.fail(pair, f"{what} has shape {a.shape} against {b.shape}")
        if not a.size:
            return
        name = " / ".join(pair)
        if np.array_equal(a, b):
            self.errors.setdefault(name, 0.0)
            return
        errors = difference(a, b, floor, slack)
        index = tuple(int(i) for i in np.unravel_index(np.argmax(errors), errors.shape))
        error = float(errors[index])
        self.errors[name] = max(self.errors.get(name, 0.0), error)
        if error > tolerance:
            self.fail(
                pair,
                f"{what}{at(index)} is {a[index]:.17g} against {b[index]:.17g}, off by "
                f"{abs(a[index] - b[index]):.3g} (relative {error:.2g}, allowed "
                f"{tolerance:.2g}){hint(index) if hint else ''}",
            )

    def fail(self, pair: tuple[str, str], sentence: str) -> NoReturn:
        """Raise the `AssertionError` that names the two routes and says what is wrong."""
        raise AssertionError(f"{self.title}: {pair[0]} and {pair[1]} disagree: {sentence}")


def at(index: Index) -> str:
    """Format an index in brackets; nothing for a scalar."""
    return f"[{', '.join(map(str, index))}]" if index else ""
