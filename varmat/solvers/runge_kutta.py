"""Runge-Kutta methods with step control, as loops of a program.

The steps end at the output times. They and their control are those of `scipy.integrate.RK45` (E.
Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993,
section II.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.programs.build.loops import loop
from varmat.programs.build.symbol import Symbol, as_symbols, require
from varmat.typing import Operand

if TYPE_CHECKING:
    from varmat.programs.ir.program import Program

__all__: list[str] = []

# The most steps that are tried on the way to an output time: as many as JAX counts.
ENDLESS = 2**31 - 1


class RungeKutta(NamedTuple):
    """The equation and the method of a solution.

    Attributes
    ----------
    rates : Program
        Its argument is a vector of the time, the state and the parameters; its outputs are zero and
        the rates of change.
    times, stages, weights, errors : ndarray
        The table of the method as in `scipy.integrate.RK45`: C, A, B and E. The error also takes
        the rates after the step.
    rtol, atol : float
    max_steps : int
        The most steps from one output time to the next.
    """

    rates: Program
    times: np.ndarray
    stages: np.ndarray
    weights: np.ndarray
    errors: np.ndarray
    rtol: float
    atol: float
    max_steps: int

    def solve(
        self, t0: Operand, y0: Operand, ts: Operand, given: Operand
    ) -> tuple[Operand, Operand, Operand]:
        """The states at the times, their rates of change there, and the first rates; the run ends
        if the solver stops.
        """
        t0, y0, ts, given = as_symbols(t0, y0, ts, given)
        first = self._rate(t0, y0, given)
        ahead = self._first_step(t0, y0, first, ts[0] - t0, given)
        require(ahead > 0.0)
        *_, states, rates = loop(self._to, len(ts), [t0, y0, first, ahead], [ts], [given])
        return states, rates, first

    def _rate(self, t: Operand, y: Operand, given: Operand) -> Operand:
        point: Operand = np.concatenate([np.reshape(t, (1,)), y, given])
        _, rate = point.builder.inlined(self.rates, point.value)
        return Symbol(point.builder, rate)

    def _norm(self, x: Operand, y: Operand) -> Operand:
        """The norm of an array relative to the tolerances at `y`."""
        return np.sqrt(np.sum(np.square(x / (self.atol + y * self.rtol))) / x.size)

    def _first_step(
        self, t: Operand, y: Operand, rate: Operand, span: Operand, given: Operand
    ) -> Operand:
        """The first step size; a norm that is nan has no say, as in SciPy."""
        size = abs(y)
        d0, d1 = self._norm(y, size), self._norm(rate, size)
        h = np.minimum(np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1), span)
        d2 = self._norm(self._rate(t + h, y + h * rate, given) - rate, size) / h
        most = np.where(d2 > d1, d2, d1)
        far = np.where(most <= 1e-15, np.maximum(1e-6, h * 1e-3), (0.01 / most) ** 0.2)
        return np.minimum(np.minimum(100.0 * h, far), span)

    def _to(
        self, t: Operand, y: Operand, rate: Operand, ahead: Operand, end: Operand, given: Operand
    ) -> tuple[list[Operand], list[Operand]]:
        """Go on to an output time; the run ends if it is not reached."""
        zero = np.zeros(())
        carried = [t, y, rate, ahead, ahead, zero, zero]
        t, y, rate, ahead, *_ = loop(self._try, ENDLESS, carried, [], [end, given], ends=True)
        require(t == end)
        return [t, y, rate, ahead], [y, rate]

    def _try(
        self,
        t: Operand,
        y: Operand,
        rate: Operand,
        ahead: Operand,
        before: Operand,
        rejected: Operand,
        steps: Operand,
        end: Operand,
        given: Operand,
    ) -> tuple[list[Operand], Operand]:
        """Try a step, which may be rejected.

        At the output time it has length zero and changes nothing. `ahead` is the size to try next
        and `before` the last size that was not cut short by a rejection or the output time.
        """
        rejected, least = rejected > 0.0, 10.0 * abs(np.nextafter(t, np.inf) - t)
        before = np.where(rejected, before, ahead)
        later = np.minimum(t + np.where(rejected, ahead, np.maximum(ahead, least)), end)
        h = later - t
        slopes, point = self._stages(t, y, rate, h, given)
        size = np.maximum(abs(y), abs(point))
        error = self._norm(self.errors @ slopes * h, size)
        good, factor = error < 1.0, 0.9 * error**-0.2
        larger = np.minimum(factor, np.where(rejected, 1.0, 10.0))
        # The condition is false if the error is nan.
        smaller = np.where(factor > 0.2, factor, 0.2)
        ahead = h * np.where(good, larger, smaller)
        # A step that was cut short at the end says nothing against the step size before it.
        ahead = np.where(good & (later == end), np.maximum(before, ahead), ahead)
        steps = np.where(good, steps + 1.0, steps)
        goes_on = np.where(good, steps < self.max_steps, ahead >= least)
        t = np.where(good, later, t)
        y, rate = np.where(good, point, y), np.where(good, slopes[-1], rate)
        return [t, y, rate, ahead, before, ~good, steps], (t < end) & goes_on

    def _stages(
        self, t: Operand, y: Operand, rate: Operand, h: Operand, given: Operand
    ) -> list[Operand]:
        """The rates at all stages and after a step of length `h`, and the state after it."""
        count = len(self.times)
        rows = np.zeros((count, count + 1))
        rows[:-1, : self.stages.shape[1]], rows[-1, :-1] = self.stages[1:], self.weights
        times, places = np.append(self.times[1:], 1.0), np.eye(count + 1)[1:]

        def stage(
            slopes: Operand,
            _: Operand,
            time: Operand,
            row: Operand,
            place: Operand,
            *shared: Operand,
        ) -> tuple[list[Operand], list[Operand]]:
            t, y, h, given = shared
            point = y + h * (row @ slopes)
            slope = self._rate(t + time * h, point, given)
            return [np.where(np.reshape(place, (-1, 1)) > 0.0, slope, slopes), point], []

        slopes = np.concatenate([np.reshape(rate, (1, -1)), np.zeros((count, y.size))])
        return loop(stage, count, [slopes, y], [times, rows, places], [t, y, h, given])
