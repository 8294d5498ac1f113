"""Initial value problems in programs: a Runge-Kutta method that runs the program of the rates.

The program takes one vector: the time, the state, its derivatives in k directions, and the
parameters. It returns the rates of the state, then those of its derivatives. The steps end at the
output times; they and their control are those of `scipy.integrate.RK45` (E. Hairer, S. P. Norsett
and G. Wanner, Solving Ordinary Differential Equations I, 2nd edition, 1993, section II.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.programs.ir.program import FLOAT, Layout, Shape, Value
from varmat.programs.kernels import Kernel

if TYPE_CHECKING:
    from varmat.programs.run.native import NativeRunner
    from varmat.typing import Operand

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]
# Why a solver stopped.
USED_UP_STEPS = "the steps that it may take are used up"
TOO_SMALL_STEP = "the next step would be too small for the time to change"


class Stop(NamedTuple):
    """Why and where there was no solution.

    Attributes
    ----------
    why : str
        Empty if a guard of the rates failed, or the first step is not finite.
    t : float
    steps : int
        Since the last output time; 0 if a guard failed.
    state : ndarray
        Where the rates failed, with the derivatives.
    """

    why: str
    t: float
    steps: int
    state: np.ndarray


class Method:
    """An embedded Runge-Kutta method that goes on with its higher order, 5, and its tolerances.

    Parameters
    ----------
    times, stages, weights, errors : ndarray
        Its table as in `scipy.integrate.RK45`: C, A, B and E. The error also takes the rates after
        the step.
    rtol, atol : float
    most : int
        The most steps from one output time to the next.
    """

    def __init__(
        self,
        times: np.ndarray,
        stages: np.ndarray,
        weights: np.ndarray,
        errors: np.ndarray,
        rtol: float,
        atol: float,
        most: int,
    ) -> None:
        self.stages, self.most = len(times), most
        rows = np.zeros((self.stages + 2, self.stages + 2))
        rows[:-2, 0], rows[:-2, 1 : 1 + stages.shape[1]] = times, stages
        rows[-2, 0], rows[-2, 1:-1] = 1.0, weights
        rows[-1, 1:] = errors
        # In the order of `compiled._attempt`: for each stage its time and coefficients, then those
        # of the state after the step, then those of the error.
        self.numbers = np.concatenate([[rtol, atol], rows.ravel()])


class NativeSteps:
    """All steps as one call of `compiled._one_step`.

    Its operands are a work array (the point, the state, the rates of all stages, the scratch memory
    of the rates), the initial state, the initial time, the output times, the parameters, the states
    at the output times, their derivatives, the rates of change at all times, and a number that says
    why it failed, zero if it did not.

    Parameters
    ----------
    runner : NativeRunner
        Of the rates.
    method : Method
    n, k, given : int
        How many states, directions and parameters there are.
    in_state : bool
        Whether the first directions are those of the initial state.
    """

    def __init__(
        self, runner: NativeRunner, method: Method, n: int, k: int, given: int, in_state: bool
    ) -> None:
        from varmat.programs.run import compiled

        self.runner, self.method, self.n, self.k, self.in_state = runner, method, n, k, in_state
        words = len(runner.table) - compiled.HEADER
        self._dims = [
            words,
            method.stages,
            n,
            k,
            given,
            int(in_state),
            math.ceil(min(method.most, 2**62)),
        ]
        size = n * (1 + k)
        self.work = 1 + size + given + size * (method.stages + 2) + runner.scratch_bytes // 8 + 9
        self._data = np.array([runner.table.ctypes.data, method.numbers.ctypes.data], np.int64)
        self.address = self._data.ctypes.data
        self.kernel = compiled.own_kernel("one_step")

    def dims(self, count: int) -> list[int]:
        """The dimensions for `count` output times."""
        return [*self._dims, count]

    def shapes(self, count: int) -> list[Shape]:
        """The shapes of the states, of their derivatives, and of their rates of change."""
        return [(count, self.n), (count, self.n, self.k), (count + 1, self.n)]

    def __call__(
        self, y0: np.ndarray, t0: float, ts: np.ndarray, given: np.ndarray
    ) -> Arrays | Stop:
        """The states, their derivatives, and their rates of change."""
        from varmat.programs.run.compiled import ENDED, USED_UP
        from varmat.programs.run.loops import call_loop

        count, flag = len(ts), np.empty(1)
        states, sensitivity, rates = map(np.empty, self.shapes(count))
        operands = [np.ascontiguousarray(x, FLOAT) for x in (y0, t0, ts, given)]
        arrays = [np.empty(self.work), *operands, states, sensitivity, rates, flag]
        call_loop(self.kernel, arrays, self.dims(count), (), self.address)
        if flag[0] == 0.0:
            return states, sensitivity, rates
        size, failed = self.n * (1 + self.k), flag[0] == ENDED
        point = arrays[0]
        why = "" if failed else USED_UP_STEPS if flag[0] == USED_UP else TOO_SMALL_STEP
        steps = 0 if failed else int(point[1 + size + len(given)])
        return Stop(why, float(point[0]), steps, point[1 : 1 + size])


class NativeRates:
    """The rates as a function of the time, the state, and the array that receives them.

    It raises if the run fails. Only one thread may use it at a time.
    """

    def __init__(self, runner: NativeRunner, size: int, given: np.ndarray) -> None:
        from varmat.programs.run import compiled

        point, scratch = (
            np.concatenate([np.empty(1 + size), given]),
            np.empty(runner.scratch_bytes // 8 + 16),
        )
        aligned = scratch[-(scratch.ctypes.data // 8) % 8 :]
        self._runner, self._run = runner, compiled.run_rates
        self._more = runner.table, point, aligned

    def __call__(self, t: float, state: np.ndarray, place: np.ndarray) -> None:
        self._run(t, state, place, *self._more)


class OneStep(Kernel):
    is_native = False

    """The solution of an initial value problem, as `NativeSteps` has it.

    Parameters
    ----------
    name : str
        What the user called.
    steps : NativeSteps
    solve : callable
        The same as a function of plain arrays, which raises if it fails.
    """

    def __init__(self, name: str, steps: NativeSteps, solve: Callable[..., Arrays]) -> None:
        self.name, self.steps, self.solve = name, steps, solve

    def results(self, *operands: Value) -> list[Layout]:
        shapes = [*self.steps.shapes(operands[2].shape[0]), (), (self.steps.work,)]
        return [(shape, FLOAT) for shape in shapes]

    def evaluate(self, *operands: np.ndarray) -> tuple[Operand, ...]:
        y0, t0, ts, given = operands
        return (*self.solve(y0, float(t0), ts, given), 0.0, np.zeros(self.steps.work))

