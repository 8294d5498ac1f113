"""Runge-Kutta methods with step control, as loops of a program.

The steps end at the output times. They and their control are those of `scipy.integrate.RK45` (E.
Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993,
section II.4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from varmat.programs.build.loops import loop
from varmat.programs.build.symbol import as_symbols, require
from varmat.solvers.equation import ENDLESS, Equation, least_step
from varmat.typing import Function, Operand


class RungeKutta(NamedTuple):
    """The equation and the method of a solution.

    Attributes
    ----------
    equation : Equation
    times, stages, weights, errors : ndarray
        The table of the method as in `scipy.integrate.RK45`: C, A, B and E. The error also takes
        the rates after the step.
    """

    equation: Equation
    times: np.ndarray
    stages: np.ndarray
    weights: np.ndarray
    errors: np.ndarray

    def solve(
        self, t0: Operand, y0: Operand, ts: Operand, given: Operand
    ) -> tuple[Operand, Function, Operand]:
        """The states at the times, a function that returns their rates of change there, and the
        first rates; the run ends if the solver stops.
        """
        t0, y0, ts, given = as_symbols(t0, y0, ts, given)
        first = self.equation.rate(t0, y0, given)
        ahead = self.equation.first_step(t0, y0, first, ts[0] - t0, given, 4)
        *_, states, rates = loop(self._to, len(ts), [t0, y0, first, ahead], [ts], [given])
        return states, lambda: rates, first

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
        rejected, least = rejected > 0.0, least_step(t)
        before = np.where(rejected, before, ahead)
        later = np.minimum(t + np.where(rejected, ahead, np.maximum(ahead, least)), end)
        h = later - t
        slopes, point = self._stages(t, y, rate, h, given)
        size = np.maximum(abs(y), abs(point))
        error = self.equation.norm(self.errors @ slopes * h, size)
        good, factor = error < 1.0, 0.9 * error**-0.2
        larger = np.minimum(factor, np.where(rejected, 1.0, 10.0))
        # The condition is false if the error is nan.
        smaller = np.where(factor > 0.2, factor, 0.2)
        ahead = h * np.where(good, larger, smaller)
        # A step that was cut short at the end says nothing against the step size before it.
        ahead = np.where(good & (later == end), np.maximum(before, ahead), ahead)
        steps = np.where(good, steps + 1.0, steps)
        goes_on = np.where(good, steps < self.equation.max_steps, ahead >= least)
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
            slope = self.equation.rate(t + time * h, point, given)
            return [np.where(np.reshape(place, (-1, 1)) > 0.0, slope, slopes), point], []

        slopes = np.concatenate([np.reshape(rate, (1, -1)), np.zeros((count, y.size))])
        return loop(stage, count, [slopes, y], [times, rows, places], [t, y, h, given])
