"""The gradient of a model against finite differences, as a report that names the parameters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from varmat import html
from varmat.derivatives.finite_differences import finite_diff_gradient
from varmat.interrupts import Attempt
from varmat.models.functions import recoverable
from varmat.models.gradients import DensityModel

# Evaluations for each derivative, and the seconds of all from which a recording pays.
_POINTS, _SLOW = 6, 0.5
# The most rows that are printed.
_MOST = 10
_HEAD = ("parameter", "q", "gradient", "finite differences", "error", "")


@dataclass(frozen=True, repr=False)
class GradientCheck:
    """What `Model.check_gradient` found; print it for a table.

    Attributes
    ----------
    names : list of str
        The names of the elements of the unconstrained vector.
    q : ndarray
        The point.
    value : float
        The log density there.
    gradient, finite_differences : ndarray
        The derivative by each element, exact and from function values.
    errors : ndarray
        Their difference, relative to the derivative or to one, whichever is larger.
    tolerance : float
        What the errors may be.
    passed : bool
        Whether all agree; elements that cannot be checked, because the density ends nearby,
        do not.
    """

    names: list[str]
    q: np.ndarray
    value: float
    gradient: np.ndarray
    finite_differences: np.ndarray
    tolerance: float

    @property
    def errors(self) -> np.ndarray:
        scale = np.maximum(np.abs(self.gradient), 1.0)
        return np.asarray(np.abs(self.gradient - self.finite_differences) / scale)

    @property
    def passed(self) -> bool:
        return bool(np.all(self.errors <= self.tolerance))

    def __bool__(self) -> bool:
        return self.passed

    def _verdict(self) -> str:
        unknown = self._outside()
        counts = {
            "could not be checked": int(np.sum(unknown)),
            "differ": int(np.sum(~(self.errors <= self.tolerance) & ~unknown)),
        }
        of = f"of {len(self.names)} derivatives"
        verdicts = [f"{count} {of} {text}" for text, count in counts.items() if count]
        verdict = ", ".join(verdicts) or "the gradient agrees with finite differences"
        return f"log density {self.value:.10g}; {verdict} (tolerance {self.tolerance:g})"

    def _outside(self) -> np.ndarray:
        return np.asarray(np.isfinite(self.gradient) & ~np.isfinite(self.finite_differences))

    def _shown(self) -> list[tuple[str, ...]]:
        """Return the rows of the table; the worst, if there are many."""
        rows: list[tuple[str, ...]] = [*self._rows()]
        errors = self.errors
        if len(rows) <= _MOST:
            return rows
        worst = np.argsort(np.where(np.isnan(errors), -np.inf, -errors), kind="stable")
        return [rows[i] for i in worst[:_MOST].tolist()]

    def _left(self) -> list[str]:
        left = len(self.names) - _MOST
        return [f"and {left} more with errors that are not larger"] if left > 0 else []

    def _rows(self) -> Iterator[tuple[str, str, str, str, str, str]]:
        exact_and_not = self.gradient, self.finite_differences
        columns = self.names, self.q, *exact_and_not, self.errors, self._outside()
        for name, x, exact, difference, error, outside in zip(*columns, strict=True):
            mark = "the density ends near it" if outside else "differs"
            mark = "" if error <= self.tolerance else mark
            yield name, f"{x:.6g}", f"{exact:.10g}", f"{difference:.10g}", f"{error:.1e}", mark

    def __repr__(self) -> str:
        width = max([9, *map(len, self.names)])
        lines = [
            f"{name:{width}} {x:>12} {exact:>18} {other:>18} {error:>9}{mark and '  <- ' + mark}"
            for name, x, exact, other, error, mark in (_HEAD, *self._shown())
        ]
        return "\n".join([self._verdict(), *lines, *self._left()])

    def _repr_html_(self) -> str:
        return (
            html.paragraph(self._verdict())
            + html.table(_HEAD, self._shown())
            + "".join(map(html.paragraph, self._left()))
        )


def compare_gradient(
    model: DensityModel, q: np.ndarray, tolerance: float, eps: float, jacobian: bool
) -> GradientCheck:
    """Evaluate a model and its derivatives in both ways."""
    value, gradient = model.log_density_gradient(q, jacobian=jacobian)
    start = time.perf_counter()
    model.log_density(q, jacobian=jacobian)
    is_slow = _POINTS * q.size * (time.perf_counter() - start) > _SLOW
    recorded = model.for_many_calls() if is_slow else None

    def at_point(x: np.ndarray) -> float:
        """Return the log density at a point of a difference; nan if the model rejects it, as it may
        near the border of its domain.
        """
        with Attempt(recoverable):
            if recorded is not None:
                return recorded.log_density_gradient(x, jacobian=jacobian)[0]
            return float(model.log_density(x, jacobian=jacobian))
        return np.nan

    differences = finite_diff_gradient(at_point, q, eps)
    return GradientCheck(model.param_unc_names(), q, value, gradient, differences, tolerance)
