"""The right-hand sides of differential equations and of their sensitivities, recorded if
possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from varmat.core.errors import ShapeError, TapeError
from varmat.core.operation import is_differentiable
from varmat.core.tape import current_tape
from varmat.core.variables import data
from varmat.derivatives.inputs_and_outputs import lost
from varmat.derivatives.recorded_programs import record_values
from varmat.derivatives.structure import split, unit_rows
from varmat.interrupts import Attempt, from_signal
from varmat.programs.ir.program import ElsewhereError, Program
from varmat.programs.passes.either import either
from varmat.programs.record.conditions import Branches
from varmat.programs.run import runner_for
from varmat.solvers.inner import MANY, Inner, native_pays
from varmat.solvers.jumps import jumps
from varmat.typing import Function, Operand, Result

# Ways through a function that are recorded.
_MOST_BRANCHES = 8
# The name of a program: what it computes, and whether also along the initial state.
Key: TypeAlias = str | tuple[str, bool]
# Programs of derivatives only, which may jump.
_SLOPES: set[Key] = {"jacobian", "jacobians", ("slopes", False), ("slopes", True)}


class Leaves(tuple[Any, ...]):
    """Plain numbers for the leaves, and their elements as one vector."""

    elements: np.ndarray
    vectors: dict[int, tuple[np.ndarray, np.ndarray]]

    def __new__(cls, leaves: Sequence[Operand]) -> Leaves:
        result = super().__new__(cls, leaves)
        result.elements = np.concatenate([np.empty(0), *map(np.ravel, leaves)])
        result.vectors = {}
        return result

    def point(self, t: float, z: np.ndarray) -> np.ndarray:
        """Return time, state and elements as one vector, which the next call overwrites."""
        if z.size not in self.vectors:
            point = np.concatenate([(t,), z, self.elements])
            self.vectors[z.size] = point, point[1 : 1 + z.size]
        point, state = self.vectors[z.size]
        point[0], state[:] = t, z
        return point


class System:
    """The rates of a state and of its sensitivities, at plain numbers; programs if possible.

    Parameters
    ----------
    inner : Inner
        ``f(t, y, *args)``.
    n : int
        The size of the state.
    passive : int
        The number of last leaves that are data, which have no derivatives.
    """

    # Counts the evaluations of all systems in this process.
    evaluations = 0
    # The start of a message about the results of the function.
    returned = "f returns rates of shape {}, but must return one"

    def __init__(self, inner: Inner, n: int, passive: int = 0) -> None:
        self.inner, self.n, self.passive = inner, n, passive
        self._programs: dict[Key, Program | None] = {}
        self._runs: dict[Key, Function | None] = {}
        self._counts: dict[Key, int] = {}
        self._branches: dict[Key, int] = {}
        # The points where the rates were recorded: one for each branch that they took.
        self.vectors: dict[Key, list[tuple[float, np.ndarray, Leaves]]] = {}

    def rate(self, t: float, y: np.ndarray, leaves: Leaves) -> np.ndarray:
        """Evaluate the rates of the state."""
        return self._run(*self._rates_of(0, False), t, y, leaves)

    def _rate(self, t: Operand, y: Operand, leaves: Sequence[Operand]) -> Result:
        return self.checked(self.inner((t, y), leaves))

    def checked(self, result: Operand) -> Result:
        """Return the results of the user's function: a vector with one element for each state."""
        if isinstance(result, (list, tuple)):
            result = np.stack(result)
        if np.shape(result) != (self.n,):
            raise ShapeError(
                f"{self.inner.name}: {self.returned.format(np.shape(result))} for each state, "
                f"({self.n},)!"
            )
        return result

    def along(
        self,
        lead: Sequence[Operand],
        tangents: Sequence[Operand],
        leaves: Sequence[Operand],
        k: int = 1,
    ) -> tuple[Result, Result]:
        """Return the function's value, and its derivatives in `k` directions as one vector."""
        value, rates = self.inner.along(lead, tangents, leaves)
        size = k * self.n
        return self.checked(value), np.zeros(size) if rates is None else np.reshape(rates, (size,))

    def coupled(self, t: float, z: np.ndarray, leaves: Leaves, in_state: bool) -> np.ndarray:
        """Evaluate the rates of the state, then of its derivatives: in the initial state, if
        `in_state`, and in the leaves.
        """
        return self._run(*self._rates_of(z.size // self.n - 1, in_state), t, z, leaves)

    def _coupled(self, t: Operand, z: Operand, leaves: Sequence[Operand], in_state: bool) -> Result:
        k = np.size(z) // self.n - 1
        y, s = z[: self.n], np.reshape(z[self.n :], (k, self.n))
        active = [*leaves][: len(leaves) - self.passive]
        units = unit_rows(active, self.n * in_state)
        tangents = (None, s, *units, *[None] * self.passive)
        return np.concatenate(self.along((t, y), tangents, leaves, k))

    def jacobian(self, t: float, y: np.ndarray, leaves: Leaves) -> np.ndarray:
        """Differentiate the rates with respect to the state."""
        result: np.ndarray = self.slopes(t, y, leaves, False)[0]
        return result

    def _jacobian(self, t: Operand, y: Operand, leaves: Sequence[Operand]) -> Result:
        tangents = (None, np.eye(self.n), *[None] * len(leaves))
        return self.along((t, y), tangents, leaves, self.n)[1]

    def slopes(self, t: float, z: np.ndarray, leaves: Leaves, in_state: bool) -> np.ndarray:
        """Differentiate the rates of the state and of its `k` sensitivities with respect to the
        state, shape (1 + k, n, n).
        """
        k = z.size // self.n - 1
        flat = self._run(*self._slopes_of(k, in_state), t, z, leaves)
        return np.moveaxis(flat.reshape(self.n, 1 + k, self.n), 0, 2)

    def _slopes(self, t: Operand, z: Operand, leaves: Sequence[Operand], in_state: bool) -> Result:
        y, s = z[: self.n], z[self.n :]

        def coupled(t: Operand, y: Operand, s: Operand, *leaves: Operand) -> Result:
            return self._coupled(t, np.concatenate([y, s]), leaves, in_state)

        tape, tangents = current_tape(), (None, np.eye(self.n), *[None] * (1 + len(leaves)))
        size, lost = self.n * np.size(z), tape.lost
        with Attempt():
            _, result = Inner(self.inner.name, coupled, ()).along((t, y, s, *leaves), tangents, ())
            return np.zeros(size) if result is None else np.reshape(result, (size,))
        # Without second derivatives, Newton's method needs smaller steps.
        tape.lost = lost
        flat = np.reshape(self._jacobian(t, y, leaves), (self.n, self.n))
        others = np.zeros((self.n, np.size(s)))
        return np.reshape(np.concatenate([flat, others], axis=1), (size,))

    def _run(
        self, key: Key, function: Function, t: float, z: np.ndarray, leaves: Leaves
    ) -> np.ndarray:
        """Evaluate a function, by its program if it has one."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        System.evaluations += 1
        if count in (2, MANY):
            if key not in self._programs:
                self._programs[key] = self._program(key, function, t, z, leaves)
            self._prepare(key)
        run = self._runs.get(key)
        if run is not None:
            try:
                # 0, or nan if a guard fails in the native runner
                ended, result = run([leaves.point(t, z)])
            except (ArithmeticError, ValueError, ElsewhereError) as error:
                if from_signal(error):
                    raise
                ended = np.nan
            if ended == 0.0:
                return result  # type: ignore[no-any-return]
            self._branch(key, function, t, z, leaves)
        # Call the function as it is written, with a copy, because SUNDIALS overwrites the state.
        with np.errstate(all="ignore"):
            rates = function(t, z.copy(), leaves)
        if is_differentiable(rates):
            raise lost(self.inner.name, rates)
        return np.ravel(data(rates, f"{self.inner.name}: what f returns"))

    def _prepare(self, key: Key) -> None:
        program = self._programs[key]
        runner = "auto" if native_pays(self._counts[key]) else "numpy"
        self._runs[key] = None if program is None else runner_for(program, runner)

    def _branch(
        self, key: Key, function: Function, t: float, z: np.ndarray, leaves: Leaves
    ) -> None:
        """Extend a program to another point, where the function takes another branch."""
        cached, branches = self._programs[key], self._branches.get(key, 1)
        if cached is None or cached.python_steps() or branches == _MOST_BRANCHES:
            return
        self._branches[key] = branches + 1
        program = self._program(key, function, t, z, leaves)
        if program is not None and not program.python_steps():
            self._programs[key] = either(cached, program)
            self._prepare(key)

    def _program(
        self, key: Key, function: Function, t: float, z: np.ndarray, leaves: Leaves
    ) -> Program | None:
        """Record the program of a function of one vector; return None if it cannot be recorded."""
        shapes, point, followed = [np.shape(x) for x in leaves], leaves.point(t, z), Branches()

        def of_vector(v: Operand) -> list[Operand]:
            return [function(v[0], v[1 : 1 + z.size], [*split(v[1 + z.size :], shapes)])]

        program = None
        with Attempt(), np.errstate(all="ignore"):
            program, _ = record_values(of_vector, point.copy(), follows=followed)
        if program is not None and key not in _SLOPES:
            self.vectors.setdefault(key, []).append((t, z.copy(), leaves))
        if followed.margins and leaves.elements.size and key not in _SLOPES:
            # After the rates come the rates of derivatives, which may jump.
            rates = lambda v: np.ravel(of_vector(v)[0])[: self.n]  # noqa: E731
            if jumps(rates, point.copy(), 1 + z.size):
                raise TapeError(
                    f"{self.inner.name}: f jumps where the time or the state passes a variable "
                    "among its arguments, but the derivatives do not include the movement of the "
                    "jump: solve up to the time of the jump and continue from there, or make f "
                    "continuous"
                )
        return program

    def rates(self, k: int, in_state: bool) -> Program | None:
        """Return the program of the rates of the state and its derivatives in `k` directions; None
        if they have not been recorded, or call Python.
        """
        program = self._programs.get(self._rates_of(k, in_state)[0])
        return None if program is None or program.python_steps() else program

    def slope_program(self, k: int, in_state: bool) -> Program | None:
        """Return the program of `slopes`, which holds on all branches on which the rates' program
        does; None if it cannot be recorded, or calls Python.
        """
        key, function = self._slopes_of(k, in_state)
        combined = None
        for t, z, leaves in [*self.vectors.get(self._rates_of(k, in_state)[0], [])]:
            program = self._program(key, function, t, z, leaves)
            if program is None or program.python_steps():
                return None
            combined = program if combined is None else either(combined, program)
        return combined

    def _rates_of(self, k: int, in_state: bool) -> tuple[Key, Function]:
        """Return the key and the function of the rates of the state and its derivatives in `k`
        directions.
        """
        if not k:
            return "rate", self._rate
        return ("coupled", in_state), lambda t, z, leaves: self._coupled(t, z, leaves, in_state)

    def _slopes_of(self, k: int, in_state: bool) -> tuple[Key, Function]:
        """Return the same for the derivatives with respect to the state."""
        if not k:
            return "jacobian", self._jacobian
        return ("slopes", in_state), lambda t, z, leaves: self._slopes(t, z, leaves, in_state)


class SystemTangent:
    """The rates of a state and of its derivative: along the initial state (None) or along leaf
    `i`.
    """

    def __init__(self, system: System, i: int | None) -> None:
        self.system, self.i = system, i

    def __call__(
        self, t: Operand, z: Operand, leaves: Sequence[Operand], direction: Operand
    ) -> Result:
        tangents: list[Operand] = [None] * len(leaves)
        if self.i is not None:
            tangents[self.i] = direction
        y, s = z[: self.system.n], z[self.system.n :]
        return np.concatenate(self.system.along((t, y), (None, s, *tangents), leaves))
