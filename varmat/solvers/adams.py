"""Adams formulas of orders 1 to 12, as loops of a program.

Each step predicts by the formula of Adams and Bashforth, evaluates the rates, corrects by the one
of Adams and Moulton of the next order, and evaluates them again; see Hairer, Norsett and Wanner,
Solving Ordinary Differential Equations I, sections III.1 and III.7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.polynomial import Polynomial

from varmat.solvers.multistep import Correction, Multistep, State, Trial, resampling
from varmat.typing import Operand

HIGHEST = 12
# The next step aims at this part of the error that is allowed, as CVODE's.
AIM = 1 / 6


def _rising(j: int) -> Polynomial:
    """Integrate s (s + 1) ... (s + j - 1) / j! from 0: multiplied by this, the rates' difference of
    order j adds to the state.
    """
    product = Polynomial([1.0])
    for i in range(j):
        product *= Polynomial([i, 1.0]) / (i + 1.0)
    return product.integ()


_INTEGRALS = [_rising(j) for j in range(HIGHEST + 2)]
# The coefficients of the explicit formulas, and their differences from the implicit ones.
_EXPLICIT = np.array([p(1.0) for p in _INTEGRALS])
_ERROR = np.abs(np.diff(_EXPLICIT, prepend=0.0))
_WEIGHTS = np.stack([np.append(p.coef[1:], np.zeros(HIGHEST - 1 - j))
                     for j, p in enumerate(_INTEGRALS[:HIGHEST])])  # fmt: skip


class Adams(Multistep):
    """The differences are differences of rates, times the step size, after the state itself."""

    highest = HIGHEST
    constants = np.array([
        _EXPLICIT, _ERROR, [0.0, *_ERROR[:-1]], [*_ERROR[1:], 0.0]
    ])  # fmt: skip
    added = np.column_stack([
        [1.0, *_EXPLICIT[:-1]], np.tri(HIGHEST + 2)[:, 1:], [0.0, *np.ones(HIGHEST + 1)]
    ])  # fmt: skip

    def memory(self, t: Operand, y: Operand, parameters: Operand) -> list[Operand]:
        return []

    def changes(self, factor: Operand, order: Operand) -> Operand:
        low, orders = np.where(order >= self.rows, 1.0, 0.0), self.rows[:-1]
        matrix = factor * resampling(factor, orders) @ resampling(1.0, orders)
        below = np.concatenate([np.zeros((orders.size, 1)), matrix], axis=1)
        first = np.eye(1, self.rows.size)
        return np.concatenate([first, below]) * np.reshape(low, (-1, 1)) * low

    def weights(self, s: Operand, h: Operand) -> Operand:
        return _WEIGHTS @ np.cumprod(np.ones(HIGHEST) * (s / h))

    def corrected(
        self, trial: Trial, parameters: object, cut: object, memory: Sequence[object]
    ) -> Correction:
        predicted, rates = trial.differences[0], trial.differences[-1]
        d = trial.h * self.equation.rate(trial.t, predicted, parameters) - rates
        y = predicted + trial.factor * d
        change = trial.h * self.equation.rate(trial.t, y, parameters) - rates
        safety = AIM ** (1.0 / (trial.order + 1.0))
        return Correction(d, change, y, np.isfinite(change).all(), safety, memory)

    def shortened(
        self, s: State, trial: Trial, c: Correction, factor: Operand
    ) -> tuple[Operand, Operand]:
        """Choose a lower order where it allows longer steps, and the lowest after three rejections,
        because steps that get shorter and shorter are rejected again and again at high orders.
        """
        here = np.where(s.order == self.rows, 1.0, 0.0)
        last = here @ trial.differences[:-1] + c.d
        lower = (self.constants[2] @ here) * self.equation.norm(last, abs(c.y))
        lower = np.where(s.order > 1.0, (lower / AIM) ** (-1.0 / s.order), 0.0)
        better = lower > factor
        factor = np.where(better, np.minimum(lower, 1.0), factor)
        order = np.where(s.rejected > 1.0, 1.0, np.where(better, s.order - 1.0, s.order))
        return order, np.where(s.rejected > 0.0, np.minimum(factor, 0.2), factor)
