"""Backward differentiation formulas of variable order and step size, as loops of a program.

The steps and their control are those of `scipy.integrate.BDF`: numerical differentiation formulas
in backward differences with a quasi-constant step size (L. F. Shampine and M. W. Reichelt, The
MATLAB ODE Suite, SIAM J. Sci. Comput. 18, 1997). The control of Newton's method, the error and the
order is described in G. D. Byrne and A. C. Hindmarsh, A polyalgorithm for the numerical solution of
ordinary differential equations, ACM Trans. Math. Softw. 1, 1975.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.programs.build.loops import branch, loop
from varmat.programs.build.symbol import as_symbols, require
from varmat.solvers.equation import ENDLESS, Equation, called, least_step
from varmat.typing import Function, Operand

if TYPE_CHECKING:
    from varmat.programs.ir.program import Program

__all__: list[str] = []

HIGHEST = 5
ITERATIONS = 4
# The orders of the differences. The two above the order of the method estimate its error and the
# error of the next order.
ROWS = np.arange(HIGHEST + 2.0)
_KAPPA = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
_GAMMA = np.append(0.0, np.cumsum(1.0 / np.arange(1, HIGHEST + 1)))
_ERROR = _KAPPA * _GAMMA + 1.0 / np.arange(1, HIGHEST + 2)
# For each order: alpha and the error constant, then the error constants of the orders below and
# above.
CONSTANTS = np.array([
    [*(1.0 - _KAPPA) * _GAMMA, 0.0], [*_ERROR, 0.0], [0.0, *_ERROR], [*_ERROR[1:], 0.0, 0.0]
])  # fmt: skip
# Rows are differences before a step. The first columns say what they add to the differences after
# the step, apart from the correction, and the last one what they add to the sum in the formula. The
# difference above the order of the method is subtracted from the next one.
ADDED = np.column_stack([np.tri(HIGHEST + 2), [*_GAMMA, 0.0]])
SUBTRACTED = -np.eye(HIGHEST + 2, HIGHEST + 3, 1) * (ROWS < HIGHEST + 1)[:, None]


class _State(NamedTuple):
    """The state of the solver between trials of a step.

    Attributes
    ----------
    t : Operand
    differences : Operand, shape (7, m)
        Backward differences of the state and its sensitivities.
    order, h : Operand
        The order of the method, and the spacing of the differences.
    factor : Operand
        The next step size, in units of `h`.
    equal : Operand
        The number of steps of this size and order.
    slopes : Operand, shape (n, m)
        The derivatives of all rates with respect to the state, transposed.
    inverse, c : Operand, shapes (n, n) and ()
        The inverse of the transposed matrix of Newton's method for the state, and the factor of the
        Jacobian in that matrix.
    stale, current : Operand
        Whether the inverse is out of date, and whether the slopes are those of this step.
    rejected, steps : Operand
        Whether the last step was rejected, and the number of steps from the last output time.
    """

    t: Operand
    differences: Operand
    order: Operand
    h: Operand
    factor: Operand
    equal: Operand
    slopes: Operand
    inverse: Operand
    c: Operand
    stale: Operand
    current: Operand
    rejected: Operand
    steps: Operand


CARRIED = len(_State._fields)


class BackwardDifferentiation(NamedTuple):
    """The equation of a state and its sensitivities, and how their rates depend on the state.

    Attributes
    ----------
    equation : Equation
    slopes : Program
        Instead of the rates it returns their derivatives with respect to each element of the state,
        in sequence. The rates of a sensitivity depend on it as those of the state on the state.
    n : int
        The size of the state.
    """

    equation: Equation
    slopes: Program
    n: int

    def solve(
        self, t0: Operand, y0: Operand, ts: Operand, given: Operand
    ) -> tuple[Operand, Function, Operand]:
        """The states at the times, a function that returns their rates of change there, and the
        first rates; the run ends if the solver stops.
        """
        t0, y0, ts, given = as_symbols(t0, y0, ts, given)
        first = self.equation.rate(t0, y0, given)
        h = self.equation.first_step(t0, y0, first, ts[-1] - t0, given, 1)
        higher = np.zeros((HIGHEST, y0.size))
        differences = np.concatenate([np.stack([y0, h * first]), higher])
        matrices = self._slopes(t0, y0, given), np.zeros((self.n, self.n)), 0.0
        state = _State(t0, differences, 1.0, h, 1.0, 0.0, *matrices, 1.0, 0.0, 0.0, 0.0)
        *_, states = loop(self._to, len(ts), state, [ts], [ts[-1], given])

        def at(t: Operand, y: Operand, given: Operand) -> tuple[list[Operand], list[Operand]]:
            return [], [self.equation.rate(t, y, given)]

        return states, lambda: loop(at, len(ts), [], [ts, states], [given])[0], first

    def _slopes(self, t: Operand, y: Operand, given: Operand) -> Operand:
        """The slopes; elements that are not finite are zero, as predictions may be bad."""
        flat = called(self.slopes, t, y, given)
        return np.reshape(np.where(np.isfinite(flat), flat, 0.0), (self.n, y.size))

    def _to(self, *operands: Operand) -> tuple[list[Operand], list[Operand]]:
        """Step to an output time or past it, and interpolate; the run ends if it is not reached."""
        state, (time, *shared) = _State(*operands[:CARRIED]), operands[CARRIED:]

        def stay(*operands: Operand) -> Sequence[Operand]:
            return operands[:CARRIED]

        def go_on(*operands: Operand) -> Sequence[Operand]:
            return loop(self._try, ENDLESS, operands[:CARRIED], [], operands[CARRIED:], ends=True)

        carried = state._replace(steps=0.0)
        state = _State(*branch(state.t < time, [stay, go_on], *carried, time, *shared))
        require(state.t >= time)
        numbers = np.arange(float(HIGHEST))
        past = (time - (state.t - state.h * numbers)) / (state.h * (1.0 + numbers))
        weights = np.where(numbers < state.order, np.cumprod(past), 0.0)
        y = state.differences[0] + weights @ state.differences[1 : 1 + HIGHEST]
        require(np.isfinite(y))
        return [*state], [y]

    def _try(self, *operands: Operand) -> tuple[list[Operand], Operand]:
        """Try a step, which may be rejected. It may go past the output time `end`, but not past
        the last one, `bound`.
        """
        s, (end, bound, given) = _State(*operands[:CARRIED]), operands[CARRIED:]
        least, ahead = least_step(s.t), s.h * s.factor
        short = (ahead < least) & ~(s.rejected > 0.0)
        ahead = np.where(short, least, ahead)
        cut = s.t + ahead > bound
        later = np.where(cut, bound, s.t + ahead)
        h = later - s.t
        factor = np.where(cut, h / s.h, np.where(short, least / s.h, s.factor))
        equal = np.where(short | cut, 0.0, s.equal) + 1.0
        alpha, *constants = CONSTANTS @ np.where(s.order == ROWS, 1.0, 0.0)
        (how,) = branch(factor != 1.0, [_advanced, _resampled], s.order, factor)
        made = how.T @ s.differences
        carried = [s.slopes, s.inverse, s.c, np.where(cut, 1.0, s.stale), s.current]
        shared = [later, made[0], made[-1] / alpha, h / alpha, given]
        *matrices, stale, current, converged, count, d = loop(
            self._solve, 2, [*carried, 0.0, 0.0, 0.0 * made[0]], [], shared, ends=True
        )
        converged = converged > 0.0
        size, safety = abs(made[0] + d), 8.1 / (8.0 + count)
        error = constants[0] * self.equation.norm(d, size)
        good = converged & ~(error > 1.0)
        smaller = np.where(converged, np.maximum(0.2, safety * error ** (-1 / (s.order + 1))), 0.5)
        places = np.reshape(np.where(s.order + 2.0 >= ROWS, 1.0, 0.0), (-1, 1))
        differences = np.where(good, made[:-1] + places * d, s.differences)
        adapts = good & (equal > s.order)
        order, factor = branch(
            adapts, [lambda *x: x[:2], self._adapted],
            s.order, np.where(good, 1.0, factor * smaller), differences, size, error, safety,
            *constants[1:]
        )  # fmt: skip
        steps = np.where(good, s.steps + 1.0, s.steps)
        goes_on = np.where(good, steps < self.equation.max_steps, s.h * factor >= least)
        t, h = np.where(good, later, s.t), np.where(good, h, s.h)
        return [
            t, differences, order, h, factor, np.where(good & ~adapts, equal, 0.0),
            *matrices, np.where(adapts, 1.0, stale), np.where(good, 0.0, current), ~good, steps,
        ], (t < end) & goes_on  # fmt: skip

    def _solve(self, *operands: Operand) -> tuple[list[Operand], Operand]:
        """Solve the equations of a step. If Newton's method does not converge with older slopes,
        `stale` becomes 2: they have to be solved again with those at the prediction.
        """
        slopes, inverse, used, stale, current, _, _, d, *shared = operands
        t, y, _, c, given = shared
        (slopes,) = branch(
            stale > 1.0,
            [lambda known, *_: [known], lambda _, *point: [self._slopes(*point)]],
            slopes, t, y, given,
        )  # fmt: skip
        (inverse,) = branch(
            stale > 0.0,
            [lambda known, *_: [known], lambda _, a, c: [np.linalg.inv(np.eye(self.n) - c * a)]],
            inverse, slopes[:, : self.n], c,
        )  # fmt: skip
        used = np.where(stale > 0.0, c, used)
        start = [0.0 * d, np.nan, 0.0, 0.0]
        d, _, count, converged = loop(
            self._iterate, ITERATIONS, start, [], [*shared, slopes, inverse, used], ends=True
        )
        fails = ~(converged > 0.0)
        again = fails & ~(current > 0.0)
        stale = np.where(again, 2.0, np.where(fails, 1.0, 0.0))
        current = np.where(again, 1.0, current)
        return [slopes, inverse, used, stale, current, converged, count, d], again

    def _iterate(self, *operands: Operand) -> tuple[list[Operand], Operand]:
        """An iteration of the simplified Newton's method. The last norm is nan at the first."""
        d, before, count, _, t, y, past, c, given, *matrices = operands
        rate = self.equation.rate(t, y + d, given)
        change = self._change(c * rate - past - d, *matrices)
        norm, rtol = self.equation.norm(change, abs(y)), self.equation.rtol
        tolerance = max(10.0 * np.finfo(float).eps / rtol, min(0.03, rtol**0.5))
        ratio = norm / before
        left = ratio / (1.0 - ratio) * norm
        diverges = (ratio >= 1.0) | (left * ratio ** (ITERATIONS - 1.0 - count) > tolerance)
        diverges = diverges | ~np.isfinite(rate).all()
        converged = ~diverges & ((norm == 0.0) | (left < tolerance))
        return [d + change, norm, count + 1.0, converged], ~diverges & ~converged

    def _change(self, rest: Operand, slopes: Operand, inverse: Operand, c: Operand) -> Operand:
        """The solution of the equations of Newton's method: first for the state, because its change
        also changes the rates of the sensitivities.
        """
        n, size = self.n, rest.size
        first = rest[:n] @ inverse
        if size == n:
            return first
        others = np.reshape(rest[n:] + c * (first @ slopes[:, n:]), (-1, n)) @ inverse
        return np.concatenate([first, np.reshape(others, (size - n,))])

    def _adapted(self, order: Operand, *operands: Operand) -> list[Operand]:
        """The order and size of the next step, which is as large as possible."""
        _, differences, size, error, safety, below, above = operands
        lower, upper = (
            constant * self.equation.norm(np.where(row == ROWS, 1.0, 0.0) @ differences, size)
            for constant, row in ((below, order), (above, order + 2.0))
        )
        lower = np.where(order > 1.0, lower ** (-1.0 / order), 0.0)
        same = error ** (-1.0 / (order + 1.0))
        upper = np.where(order < HIGHEST, upper ** (-1.0 / (order + 2.0)), 0.0)
        most = np.maximum(np.maximum(lower, same), upper)
        change = np.where(lower == most, -1.0, np.where(same == most, 0.0, 1.0))
        return [order + change, np.minimum(10.0, safety * most)]


def _advanced(order: Operand, _: Operand) -> list[Operand]:
    """The matrix that advances the differences by a step, with a column for the formula's sum."""
    rows = np.reshape(ROWS, (-1, 1))
    above = np.where(rows == order + 1.0, SUBTRACTED, 0.0)
    return [np.where(rows <= order, ADDED, above)]


def _resampled(order: Operand, factor: Operand) -> list[Operand]:
    """The same for differences whose step size changes first."""
    low = np.where(order >= ROWS, 1.0, 0.0)
    changes = _changes(factor) @ _changes(1.0) * np.reshape(low, (-1, 1)) * low
    return [changes @ _advanced(order, factor)[0]]


def _changes(factor: Operand) -> Operand:
    """The matrix R of Shampine and Reichelt, for a step size that is multiplied by a factor."""
    rows = [np.ones(ROWS.size)]
    for i in range(1, ROWS.size):
        rows.append(rows[-1] * ((i - 1.0 - factor * ROWS) / i))
    return np.stack(rows)
