"""Runge-Kutta methods with step control, as loops of a program.

The steps end at the output times. They and their control are as in `scipy.integrate.RK45` (E.
Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993,
section II.4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from varmat.programs.build.loops import branch, loop
from varmat.programs.build.symbol import as_symbols, is_symbol, require
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
    unrolled : bool
        Whether the stages are written out, which is faster and takes longer to compile.
    """

    equation: Equation
    times: np.ndarray
    stages: np.ndarray
    weights: np.ndarray
    errors: np.ndarray
    unrolled: bool = False

    def solve(
        self, t0: Operand, y0: Operand, ts: Operand, parameters: Operand
    ) -> tuple[Operand, Function, Operand]:
        """Compute the states at the times, a function that returns their rates of change there, and
        the first rates; the run ends if the solver stops.
        """
        t0, y0, ts, parameters = as_symbols(t0, y0, ts, parameters)
        first = self.equation.rate(t0, y0, parameters)
        ahead = self.equation.first_step(t0, y0, first, ts[0] - t0, parameters, 4)
        *_, states, rates = loop(self._to, len(ts), [t0, y0, first, ahead], [ts], [parameters])
        return states, lambda: rates, first

    def go_on(
        self, t: Operand, y: Operand, ahead: Operand, end: Operand, parameters: Operand
    ) -> list[Operand]:
        """Return the state at the end of an interval, and the step size to try next; a size of zero
        is not known yet.
        """
        rate = self.equation.rate(t, y, parameters)

        def first(_: Operand, *point: Operand) -> list[Operand]:
            t, y, rate, end, arguments = point
            return [self.equation.first_step(t, y, rate, end - t, arguments, 4)]

        sizes = [first, lambda ahead, *_: [ahead]]
        (ahead,) = branch(ahead > 0.0, sizes, ahead, t, y, rate, end, parameters)
        (_, y, _, ahead), _ = self._to(t, y, rate, ahead, end, parameters)
        return [y, ahead]

    def _to(
        self,
        t: Operand,
        y: Operand,
        rate: Operand,
        ahead: Operand,
        end: Operand,
        parameters: Operand,
    ) -> tuple[list[Operand], list[Operand]]:
        """Integrate to an output time; the run ends if it is not reached."""
        zero = np.zeros(())
        carried = [t, y, rate, ahead, ahead, zero, zero]
        t, y, rate, ahead, *_ = loop(self._try, ENDLESS, carried, [], [end, parameters], ends=True)
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
        parameters: Operand,
    ) -> tuple[list[Operand], Operand]:
        """Try a step, which may be rejected.

        At the output time it has length zero and changes nothing. `ahead` is the size to try next
        and `before` the last size that was not cut short by a rejection or the output time.
        """
        rejected, least = rejected > 0.0, least_step(t)
        before = np.where(rejected, before, ahead)
        later = np.minimum(t + np.where(rejected, ahead, np.maximum(ahead, least)), end)
        h = later - t
        error, slope, point = self._stages(t, y, rate, h, parameters)
        error = self.equation.norm(h * error, np.maximum(abs(y), abs(point)))
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
        y, rate = np.where(good, point, y), np.where(good, slope, rate)
        return [t, y, rate, ahead, before, ~good, steps], (t < end) & goes_on

    def _stages(
        self, t: Operand, y: Operand, rate: Operand, h: Operand, parameters: Operand
    ) -> list[Operand]:
        """Return the error, the rates after a step, and the state after it, for a step of length
        `h`.

        Sums of the rates are carried, each with its weights: the first one gives the next stage,
        and the error is the last one left.
        """
        count = len(self.times)
        table = np.zeros((count + 1, count + 1))
        table[: count - 1, : self.stages.shape[1]] = self.stages[1:]
        table[count - 1, :-1], table[count] = self.weights, self.errors
        # The weights of the rates of a stage, in the sums of the stages after it.
        columns = np.stack([np.append(table[i:, i], np.zeros(i)) for i in range(count + 1)])
        times, shared = np.append(self.times[1:], 1.0), [t, y, h, parameters]

        def stage(*operands: Operand) -> tuple[list[Operand], list[Operand]]:
            *sums, _, _, time, column, t, y, h, arguments = operands
            point = y + h * sums[0]
            slope = self.equation.rate(t + time * h, point, arguments)
            # A weight of zero is a number only if the stages are unrolled.
            terms = zip(sums[1:], column, strict=False)
            left = [x if not is_symbol(c) and c == 0.0 else x + c * slope for x, c in terms]
            return [*left, column[-1] * slope, slope, point], []

        carried = [*(c * rate for c in columns[0]), rate, y]
        if not self.unrolled:
            carried = loop(stage, count, carried, [times, columns[1:]], shared)
        for time, column in zip(times, columns[1:], strict=True) if self.unrolled else ():
            carried, _ = stage(*carried, time, column, *shared)
        return [carried[0], *carried[-2:]]
