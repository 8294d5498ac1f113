"""Rates of change as a program, with the tolerances of a solution, for methods that are loops of
a program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from varmat.programs.build.symbol import Symbol, require
from varmat.programs.ir.program import Program
from varmat.typing import Operand

# The most steps that are tried on the way to an output time: as many as JAX counts.
ENDLESS = 2**31 - 1


class Equation(NamedTuple):
    """An equation y' = f(t, y) and the tolerances of its solution.

    Attributes
    ----------
    rates : Program
        Its argument is a vector of the time, the state and the parameters; its outputs are zero and
        the rates of change.
    rtol, atol : float
    max_steps : int
        The most steps from one output time to the next.
    """

    rates: Program
    rtol: float
    atol: float
    max_steps: int

    def rate(self, t: Operand, y: Operand, parameters: Operand) -> Operand:
        """Evaluate the rates of change."""
        return called(self.rates, t, y, parameters)

    def norm(self, x: Operand, size: Operand) -> Operand:
        """Return the norm of `x` relative to the tolerances at a state of magnitudes `size`."""
        return np.sqrt(np.sum(np.square(x / (self.atol + size * self.rtol))) / x.size)

    def first_step(
        self, t: Operand, y: Operand, rate: Operand, span: Operand, parameters: Operand, order: int
    ) -> Operand:
        """Choose the first step size for an error of the given order, as in SciPy; the run ends if
        it is not positive.

        See Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.4. A
        norm that is nan is ignored.
        """
        size = abs(y)
        d0, d1 = self.norm(y, size), self.norm(rate, size)
        h = np.minimum(np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1), span)
        d2 = self.norm(self.rate(t + h, y + h * rate, parameters) - rate, size) / h
        most = np.where(d2 > d1, d2, d1)
        far = np.where(
            most <= 1e-15, np.maximum(1e-6, h * 1e-3), (0.01 / most) ** (1 / (order + 1))
        )
        ahead = np.minimum(np.minimum(100.0 * h, far), span)
        require(ahead > 0.0)
        return ahead


def called(program: Program, t: Operand, y: Operand, parameters: Operand) -> Operand:
    """Call a program of the time, a state and the parameters; return its second output."""
    point: Operand = np.concatenate([np.reshape(t, (1,)), y, parameters])
    _, result = point.builder.inlined(program, point.value)
    return Symbol(point.builder, result)


def least_step(t: Operand) -> Operand:
    """Return the smallest step size at a time."""
    return 10.0 * abs(np.nextafter(t, np.inf) - t)
