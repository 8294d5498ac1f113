"""Multistep methods of variable order and step size, as loops of a program.

A method keeps backward differences with a quasi-constant step size: where the size changes, the
polynomial through them is sampled again (F. T. Krogh, Algorithms for changing the step size, SIAM
J. Numer. Anal. 10, 1973). The control of the error and the order is as in `scipy.integrate.BDF`;
see G. D. Byrne and A. C. Hindmarsh, A polyalgorithm for the numerical solution of ordinary
differential equations, ACM Trans. Math. Softw. 1, 1975.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from varmat.programs.build.loops import branch, loop
from varmat.programs.build.symbol import as_symbols, require
from varmat.solvers.equation import ENDLESS, Equation, least_step
from varmat.typing import Function, Operand


class State(NamedTuple):
    """The state of a method between trials of a step.

    Attributes
    ----------
    t : Operand
    differences : Operand, shape (highest + 2, m)
        The state with its sensitivities, then differences.
    order, h : Operand
        The order of the method, and the spacing of the differences.
    factor : Operand
        The next step size, in units of `h`.
    equal : Operand
        The number of steps of this size and order.
    rejected, steps : Operand
        The numbers of rejections since the last step, and of steps from the last output time.
    """

    t: Operand
    differences: Operand
    order: Operand
    h: Operand
    factor: Operand
    equal: Operand
    rejected: Operand
    steps: Operand


CARRIED = len(State.__annotations__)


class Trial(NamedTuple):
    """A step that is tried.

    Attributes
    ----------
    t, h : Operand
        Its end and its length.
    differences : Operand, shape (highest + 3, m)
        The differences predicted at its end, and the sum in the formula.
    order, factor : Operand
        The order of the method, and the factor of the correction in the formula.
    """

    t: Operand
    h: Operand
    differences: Operand
    order: Operand
    factor: Operand


class Correction(NamedTuple):
    """The correction of a trial by a formula.

    Attributes
    ----------
    d, change : Operand
        The difference that estimates the error, and what is added to the predicted differences.
    y : Operand
        The state after the step.
    converged, safety : Operand
        Whether the equations are solved, and a safety factor of the next step size.
    memory : list of Operand
        The values that the method keeps.
    """

    d: Operand
    change: Operand
    y: Operand
    converged: Operand
    safety: Operand
    memory: Sequence[Operand]


class Multistep(ABC):
    """The equation of a state and its sensitivities, solved by a method of variable order.

    Parameters
    ----------
    equation : Equation

    Attributes
    ----------
    highest : int
        The highest order.
    constants : ndarray, shape (4, highest + 2)
        For each order: the factor of the correction, and the constants of the error at this order,
        the one below and the one above.
    added : ndarray, shape (highest + 2, highest + 3)
        Rows are differences before a step. The first columns say what they add to the differences
        after the step, apart from the correction, and the last one what they add to the sum in the
        formula.
    """

    highest: ClassVar[int]
    constants: ClassVar[np.ndarray]
    added: ClassVar[np.ndarray]

    def __init__(self, equation: Equation) -> None:
        self.equation = equation
        # The orders of the differences. The two above the order of the method estimate its error
        # and the error of the next order.
        self.rows = np.arange(self.highest + 2.0)

    @abstractmethod
    def memory(self, t: Operand, y: Operand, parameters: Operand) -> list[Operand]:
        """Return what the method keeps from trial to trial, at the first time."""

    @abstractmethod
    def corrected(
        self, trial: Trial, parameters: object, cut: object, memory: Sequence[object]
    ) -> Correction:
        """Correct a trial, which may be `cut` short at the last time."""

    @abstractmethod
    def changes(self, factor: Operand, order: Operand) -> Operand:
        """Return the matrix that resamples differences for a step size multiplied by a factor."""

    @abstractmethod
    def weights(self, s: Operand, h: Operand) -> Operand:
        """Return the weights of the differences (but the state) in the state a time `s` later."""

    def shortened(
        self, s: State, trial: Trial, c: Correction, factor: Operand
    ) -> tuple[Operand, Operand]:
        """Return the order after a rejection, and the factor of the next step size."""
        return s.order, factor

    def remembered(self, good: Operand, adapts: Operand, c: Correction) -> Sequence[Operand]:
        """Return what the method keeps after a trial."""
        return c.memory

    def solve(
        self, t0: Operand, y0: Operand, ts: Operand, parameters: Operand
    ) -> tuple[Operand, Function, Operand]:
        """Compute the states at the times, a function that returns their rates of change there, and
        the first rates; the run ends if the solver stops.
        """
        t0, y0, ts, parameters = as_symbols(t0, y0, ts, parameters)
        first = self.equation.rate(t0, y0, parameters)
        h = self.equation.first_step(t0, y0, first, ts[-1] - t0, parameters, 1)
        higher = np.zeros((self.highest, y0.size))
        differences = np.concatenate([np.stack([y0, h * first]), higher])
        state = State(t0, differences, 1.0, h, 1.0, 0.0, 0.0, 0.0)
        carried = [*state, *self.memory(t0, y0, parameters)]
        *_, states = loop(self._to, len(ts), carried, [ts], [ts[-1], parameters])

        def at(t: Operand, y: Operand, arguments: Operand) -> tuple[list[Operand], list[Operand]]:
            return [], [self.equation.rate(t, y, arguments)]

        return states, lambda: loop(at, len(ts), [], [ts, states], [parameters])[0], first

    def go_on(
        self, t: Operand, y: Operand, ahead: Operand, end: Operand, parameters: Operand
    ) -> list[Operand]:
        """Return the state at the end of an interval, where the method restarts, and `ahead`."""
        return [self.solve(t, y, np.reshape(end, (1,)), parameters)[0][0], ahead]

    def _to(self, *operands: Operand) -> tuple[list[Operand], list[Operand]]:
        """Step to an output time or past it, and interpolate; the run ends if it is not reached."""
        *carried, time, bound, parameters = operands
        count = len(carried)
        carried[CARRIED - 1] = 0.0

        def stay(*operands: Operand) -> Sequence[Operand]:
            return operands[:count]

        def go_on(*operands: Operand) -> Sequence[Operand]:
            return loop(self._try, ENDLESS, operands[:count], [], operands[count:], ends=True)

        carried = branch(carried[0] < time, [stay, go_on], *carried, time, bound, parameters)
        state, span = State(*carried[:CARRIED]), slice(1, 1 + self.highest)
        require(state.t >= time)
        weights = self.weights(time - state.t, state.h)
        weights = np.where(self.rows[span] <= state.order, weights, 0.0)
        y = state.differences[0] + weights @ state.differences[span]
        require(np.isfinite(y))
        return carried, [y]

    def _try(self, *operands: Operand) -> tuple[list[Operand], Operand]:
        """Try a step, which may be rejected. It may go past the output time `end`, but not past
        the last one, `bound`.
        """
        s, (*memory, end, bound, parameters) = State(*operands[:CARRIED]), operands[CARRIED:]
        least, ahead = least_step(s.t), s.h * s.factor
        short = (ahead < least) & ~(s.rejected > 0.0)
        ahead = np.where(short, least, ahead)
        cut = s.t + ahead > bound
        later = np.where(cut, bound, s.t + ahead)
        h = later - s.t
        factor = np.where(cut, h / s.h, np.where(short, least / s.h, s.factor))
        equal = np.where(short | cut, 0.0, s.equal) + 1.0
        correction, *constants = self.constants @ np.where(s.order == self.rows, 1.0, 0.0)
        (how,) = branch(factor != 1.0, [self._advanced, self._resampled], s.order, factor)
        trial = Trial(later, h, how.T @ s.differences, s.order, correction)
        c = self.corrected(trial, parameters, cut, memory)
        size = abs(c.y)
        error = constants[0] * self.equation.norm(c.d, size)
        good = c.converged & ~(error > 1.0)
        shorter = np.maximum(0.2, c.safety * error ** (-1 / (s.order + 1)))
        order, shorter = self.shortened(s, trial, c, np.where(c.converged, shorter, 0.5))
        mask = np.reshape(np.where(s.order + 2.0 >= self.rows[1:], 1.0, 0.0), (-1, 1))
        after = np.concatenate(
            [np.reshape(c.y, (1, -1)), trial.differences[1:-1] + mask * c.change]
        )
        differences = np.where(good, after, s.differences)
        adapts = good & (equal > s.order)
        order, factor = branch(
            adapts, [lambda *x: x[:2], self._adapted],
            np.where(good, s.order, order), np.where(good, 1.0, factor * shorter), differences,
            size, error, c.safety, *constants[1:]
        )  # fmt: skip
        steps = np.where(good, s.steps + 1.0, s.steps)
        goes_on = np.where(good, steps < self.equation.max_steps, s.h * factor >= least)
        t, h = np.where(good, later, s.t), np.where(good, h, s.h)
        return [
            t, differences, order, h, factor, np.where(good & ~adapts, equal, 0.0),
            np.where(good, 0.0, s.rejected + 1.0), steps, *self.remembered(good, adapts, c),
        ], (t < end) & goes_on  # fmt: skip

    def _adapted(self, order: Operand, *operands: Operand) -> list[Operand]:
        """Choose the order and size of the next step, which is as large as possible."""
        _, differences, size, error, safety, below, above = operands
        lower, upper = (
            constant * self.equation.norm(np.where(row == self.rows, 1.0, 0.0) @ differences, size)
            for constant, row in ((below, order), (above, order + 2.0))
        )
        lower = np.where(order > 1.0, lower ** (-1.0 / order), 0.0)
        same = error ** (-1.0 / (order + 1.0))
        upper = np.where(order < self.highest, upper ** (-1.0 / (order + 2.0)), 0.0)
        most = np.maximum(np.maximum(lower, same), upper)
        change = np.where(lower == most, -1.0, np.where(same == most, 0.0, 1.0))
        return [order + change, np.minimum(10.0, safety * most)]

    def _advanced(self, order: Operand, _: Operand) -> list[Operand]:
        """Return the matrix that advances the differences by a step, with a column for the
        formula's sum: the difference above the order of the method is subtracted from the next one.
        """
        rows = np.reshape(self.rows, (-1, 1))
        height, width = self.added.shape
        subtracted = -np.eye(height, width, 1) * (rows <= self.highest)
        above = np.where(rows == order + 1.0, subtracted, 0.0)
        return [np.where(rows <= order, self.added, above)]

    def _resampled(self, order: Operand, factor: Operand) -> list[Operand]:
        """Return the same matrix for differences whose step size changes first."""
        return [self.changes(factor, order) @ self._advanced(order, factor)[0]]


def resampling(factor: Operand, orders: np.ndarray) -> Operand:
    """Compute the matrix R of Shampine and Reichelt, for a step size multiplied by a factor."""
    rows = [np.ones(orders.size)]
    for i in range(1, orders.size):
        rows.append(rows[-1] * ((i - 1.0 - factor * orders) / i))
    return np.stack(rows)
