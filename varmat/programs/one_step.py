"""Initial value problems in programs: the program of the rates, run at each stage of the steps of a
Runge-Kutta method.

The rates are those of a state and of its derivatives in k directions, one after the other, as a
function of one vector: the time, these, and the parameters. The steps and their control are those
of `scipy.integrate.RK45`, and end at the output times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.kernels import Kernel
from varmat.programs.program import FLOAT, Layout, Shape, Value

if TYPE_CHECKING:
    from varmat.programs.runners.native import NativeRunner
    from varmat.programs.runners.table import Table
    from varmat.typing import Operand

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


class Method:
    """An embedded Runge-Kutta method, of which the higher order, 5, goes on, and the tolerances
    that its steps keep.

    Parameters
    ----------
    times, stages, weights, errors : ndarray
        Its table as in `scipy.integrate.RungeKutta`: C, A, B and E, of s stages and, for the error,
        the rates after the step.
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
        # As `compiled._attempt` reads them: of each stage its time and what it is made of, then the
        # state after it, then its error.
        self.numbers = np.concatenate([[rtol, atol], rows.ravel()])


class NativeSteps:
    """All steps as one call of `compiled._one_step`.

    Its operands are an array to work in (the point, the state, the rates of all stages, the scratch
    memory of the rates), the initial state, the initial time, the output times, the parameters, the
    states at these times, their derivatives, the rates of change at the initial time and at the
    others, and a number that says why it ended, zero if it did not.

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
        from varmat.programs.runners import compiled

        self.runner, self.method, self.n, self.k = runner, method, n, k
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
        """The dimensions for so many output times."""
        return [*self._dims, count]

    def shapes(self, count: int) -> list[Shape]:
        """Those of the states, of their derivatives, and of their rates of change."""
        return [(count, self.n), (count, self.n, self.k), (count + 1, self.n)]

    def __call__(
        self, y0: np.ndarray, t0: float, ts: np.ndarray, given: np.ndarray
    ) -> Arrays | None:
        """The states, their derivatives, and their rates of change; None if it ended."""
        from varmat.programs.runners.loops import call_loop

        count, flag = len(ts), np.empty(1)
        states, sensitivity, rates = map(np.empty, self.shapes(count))
        operands = [np.ascontiguousarray(x, FLOAT) for x in (y0, t0, ts, given)]
        arrays = [np.empty(self.work), *operands, states, sensitivity, rates, flag]
        call_loop(self.kernel, arrays, self.dims(count), (), self.address)
        return (states, sensitivity, rates) if flag[0] == 0.0 else None


class NativeRates:
    """The rates as a function of a time, the state and the place where they are written, which
    raises where the run ends.

    It is for one thread at a time.
    """

    def __init__(self, runner: NativeRunner, size: int, given: np.ndarray) -> None:
        from varmat.programs.runners import compiled

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
    """The solution of an initial value problem, as `NativeSteps` has it.

    Parameters
    ----------
    name : str
        What the user called.
    steps : NativeSteps
    solve : callable
        The same as a function of plain arrays, which raises where it ends.
    """

    def __init__(self, name: str, steps: NativeSteps, solve: Callable[..., Arrays]) -> None:
        self.name, self.steps, self.solve = name, steps, solve

    def results(self, *operands: Value) -> list[Layout]:
        shapes = [*self.steps.shapes(operands[2].shape[0]), (), (self.steps.work,)]
        return [(shape, FLOAT) for shape in shapes]

    def evaluate(self, *operands: np.ndarray) -> tuple[Operand, ...]:
        y0, t0, ts, given = operands
        return (*self.solve(y0, float(t0), ts, given), 0.0, np.zeros(self.steps.work))

    def rows(self, table: Table, operands: Sequence[Value], results: Sequence[Value]) -> None:
        table.held.append(self.steps)
        *made, ended, work = results
        dims = self.steps.dims(operands[2].shape[0])
        table.call(
            (self.steps.kernel, self.steps.address), [work, *operands, *made, ended], dims, ()
        )
