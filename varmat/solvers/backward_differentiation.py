"""Backward differentiation formulas, as loops of a program.

The steps and their control are as in `scipy.integrate.BDF`: numerical differentiation formulas
(L. F. Shampine and M. W. Reichelt, The MATLAB ODE Suite, SIAM J. Sci. Comput. 18, 1997), solved by
the simplified Newton's method.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from varmat.programs.build.loops import branch, loop
from varmat.programs.ir.program import Program
from varmat.solvers.equation import Equation, called
from varmat.solvers.multistep import Correction, Multistep, Trial, resampling
from varmat.typing import Operand

HIGHEST = 5
ITERATIONS = 4
_KAPPA = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
_GAMMA = np.append(0.0, np.cumsum(1.0 / np.arange(1, HIGHEST + 1)))
_ERROR = _KAPPA * _GAMMA + 1.0 / np.arange(1, HIGHEST + 2)


class BackwardDifferentiation(Multistep):
    """The equation of a state and its sensitivities, and how their rates depend on the state.

    The memory of the method is, in sequence: the derivatives of all rates with respect to the
    state, transposed; the inverse of the transposed matrix of Newton's method for the state, and
    the factor of the Jacobian in that matrix; whether the inverse is out of date, and whether the
    derivatives belong to this step.

    Parameters
    ----------
    equation : Equation
    slopes : Program
        Instead of the rates it returns their derivatives with respect to each element of the state,
        in sequence. The rates of a sensitivity depend on it as the rates of the state on the state.
    n : int
        The size of the state.
    """

    highest = HIGHEST
    constants = np.array([
        [*(1.0 - _KAPPA) * _GAMMA, 0.0], [*_ERROR, 0.0], [0.0, *_ERROR], [*_ERROR[1:], 0.0, 0.0]
    ])  # fmt: skip
    added = np.column_stack([np.tri(HIGHEST + 2), [*_GAMMA, 0.0]])

    def __init__(self, equation: Equation, slopes: Program, n: int) -> None:
        super().__init__(equation)
        self.slopes, self.n = slopes, n

    def memory(self, t: Operand, y: Operand, parameters: Operand) -> list[Operand]:
        return [self._slopes(t, y, parameters), np.zeros((self.n, self.n)), 0.0, 1.0, 0.0]

    def changes(self, factor: Operand, order: Operand) -> Operand:
        low = np.where(order >= self.rows, 1.0, 0.0)
        matrix = resampling(factor, self.rows) @ resampling(1.0, self.rows)
        return matrix * np.reshape(low, (-1, 1)) * low

    def weights(self, s: Operand, h: Operand) -> Operand:
        numbers = np.arange(float(HIGHEST))
        return np.cumprod((s + h * numbers) / (h * (1.0 + numbers)))

    def corrected(
        self, trial: Trial, parameters: Operand, cut: Operand, memory: Sequence[Operand]
    ) -> Correction:
        *matrices, stale, current = memory
        y, past = trial.differences[0], trial.differences[-1] / trial.factor
        shared = [trial.t, y, past, trial.h / trial.factor, parameters]
        carried = [*matrices, np.where(cut, 1.0, stale), current, 0.0, 0.0, 0.0 * y]
        *memory, converged, count, d = loop(self._solve, 2, carried, [], shared, ends=True)
        return Correction(d, d, y + d, converged > 0.0, 8.1 / (8.0 + count), memory)

    def remembered(self, good: Operand, adapts: Operand, c: Correction) -> Sequence[Operand]:
        *matrices, stale, current = c.memory
        return [*matrices, np.where(adapts, 1.0, stale), np.where(good, 0.0, current)]

    def _slopes(self, t: Operand, y: Operand, parameters: Operand) -> Operand:
        """Evaluate the slopes; set elements that are not finite to 0, as predictions may be bad."""
        flat = called(self.slopes, t, y, parameters)
        return np.reshape(np.where(np.isfinite(flat), flat, 0.0), (self.n, y.size))

    def _solve(self, *operands: Operand) -> tuple[list[Operand], Operand]:
        """Solve the equations of a step. If Newton's method does not converge with older slopes,
        `stale` becomes 2: they have to be solved again with those at the prediction.
        """
        slopes, inverse, used, stale, current, _, _, d, *shared = operands
        t, y, _, c, parameters = shared
        (slopes,) = branch(
            stale > 1.0,
            [lambda cached, *_: [cached], lambda _, *point: [self._slopes(*point)]],
            slopes, t, y, parameters,
        )  # fmt: skip
        (inverse,) = branch(
            stale > 0.0,
            [lambda cached, *_: [cached], lambda _, a, c: [np.linalg.inv(np.eye(self.n) - c * a)]],
            inverse, slopes[:, : self.n], c,
        )  # fmt: skip
        used = np.where(stale > 0.0, c, used)
        start = [0.0 * d, np.nan, 0.0, 0.0]
        d, _, count, converged = loop(
            self._iterate, ITERATIONS, start, [], [*shared, slopes, inverse, used], ends=True
        )
        fails = ~(converged > 0.0)
        repeated = fails & ~(current > 0.0)
        stale = np.where(repeated, 2.0, np.where(fails, 1.0, 0.0))
        current = np.where(repeated, 1.0, current)
        return [slopes, inverse, used, stale, current, converged, count, d], repeated

    def _iterate(self, *operands: Operand) -> tuple[list[Operand], Operand]:
        """Iterate the simplified Newton's method once. The last norm is nan at the first."""
        d, before, count, _, t, y, past, c, parameters, *matrices = operands
        rate = self.equation.rate(t, y + d, parameters)
        change = self._change(c * rate - past - d, *matrices)
        norm, rtol = self.equation.norm(change, abs(y)), self.equation.rtol
        tolerance = max(10.0 * np.finfo(float).eps / rtol, min(0.03, rtol**0.5))
        ratio = norm / before
        left = ratio / (1.0 - ratio) * norm
        diverges = (ratio >= 1.0) | (left * ratio ** (ITERATIONS - 1.0 - count) > tolerance)
        diverges = diverges | ~np.isfinite(rate).all()
        converged = ~diverges & ((norm == 0.0) | (left < tolerance))
        return [d + change, norm, count + 1.0, converged], ~diverges & ~converged

    def _change(self, remainder: Operand, slopes: Operand, inverse: Operand, c: Operand) -> Operand:
        """Solve the equations of Newton's method: first for the state, because its change also
        changes the rates of the sensitivities.
        """
        n, size = self.n, remainder.size
        first = remainder[:n] @ inverse
        if size == n:
            return first
        others = np.reshape(remainder[n:] + c * (first @ slopes[:, n:]), (-1, n)) @ inverse
        return np.concatenate([first, np.reshape(others, (size - n,))])
