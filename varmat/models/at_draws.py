"""A function of named values at many draws of them, recorded once and run natively.

A function that draws random numbers is recorded in stages, because a recording would always use the
numbers that it drew once. The first stage ends at the first call of a generator, and computes the
arguments of this call. The numbers are drawn for all draws together, and are arguments of the next
stage. Where the recording of a stage does not hold, Python calls the function with the numbers that
have been drawn already, because new ones would depend on their rejection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varmat.core.operation import is_differentiable
from varmat.densities.random_numbers.row import Drawn, Source
from varmat.derivatives.recorded import record_values
from varmat.derivatives.recorded_rows import run_rows
from varmat.derivatives.structure import split
from varmat.interrupts import Attempt
from varmat.programs.ir.program import RecordingError
from varmat.programs.run import runner_for
from varmat.typing import Operand, Plain, Shape

# From this number of draws on, a function is recorded, because compiling takes a while.
MANY = 1000
# A function is recorded once for each call of a generator, so those with many calls are not.
MOST_CALLS = 12
# Rows are computed in pieces of this number of elements, which bounds the memory.
PIECE = 2**22

Simulation = Callable[[dict[str, "Operand"], "Operand"], "Operand"]


class _Call(BaseException):
    """Leaves a function at a call of a generator."""

    def __init__(
        self, function: Drawn | str, args: tuple[Operand, ...], named: dict[str, Operand]
    ) -> None:
        self.function, self.args, self.named = function, args, named
        # A row of each of these is an argument; the others are the same for all calls.
        self.varying = [i for i, x in enumerate(args) if is_differentiable(x)]

    def at(self, rng: Operand, args: tuple[Operand, ...]) -> Plain:
        """The numbers of one call."""
        if isinstance(self.function, str):
            return getattr(rng, self.function)(*args, **self.named)
        return self.function(*args, rng=rng, **self.named)

    def rows(self, rng: np.random.Generator, count: int, rows: list[np.ndarray]) -> np.ndarray:
        """The numbers of `count` calls."""
        given = dict(zip(self.varying, rows, strict=True))
        args = tuple(given.get(i, x) for i, x in enumerate(self.args))
        if not isinstance(self.function, str) and self.function.stacks(self.varying):
            return self.function.rows(count, args, self.varying, rng, **self.named)
        each = (
            tuple(given[k][i] if k in given else x for k, x in enumerate(args))
            for i in range(count)
        )
        return np.stack([self.at(rng, one) for one in each])


class Numbers(Source):
    """A generator whose first numbers are known.

    Parameters
    ----------
    drawn : list
        The numbers of the first calls.
    rng : numpy.random.Generator, optional
        Makes the others. By default the next call raises `_Call`.
    """

    def __init__(self, drawn: list[Operand], rng: np.random.Generator | None = None) -> None:
        self._drawn, self._rng = iter(drawn), rng

    def __getattr__(self, name: str) -> Callable[..., Operand]:
        if name.startswith("_") or not callable(getattr(np.random.Generator, name, None)):
            raise AttributeError(f"random numbers of many draws have no attribute {name!r}")
        return partial(self._called, name)

    def _called(self, name: str, *args: Operand, **named: Operand) -> Operand:
        if self._rng is None and named.get("out") is not None:
            raise RecordingError(f"{name} writes into an array, but must return its numbers")
        return self.draw(name, args, **named)

    def draw(self, function: Operand, args: tuple[Operand, ...], **named: Operand) -> Operand:
        for x in self._drawn:
            return x
        call = _Call(function, args, named)
        if self._rng is None:
            raise call
        return call.at(self._rng, args)


class _Stage(NamedTuple):
    """A part of the function: the runner of its program, and the shapes of its outputs, which are
    the arguments of a call, or the results of the function by name. Results that are the numbers of
    a call themselves are not computed.
    """

    run: Any
    shapes: list[Shape]
    call: _Call | None
    names: list[str]
    drawn: dict[str, int]


class AtDraws:
    """A function of named values, at many draws.

    Parameters
    ----------
    function : callable
        Called with the values and a generator; returns a dict.
    shapes : dict of str to tuple of int
        The shapes of the values, which stand in sequence in the rows.
    workers : int, optional
        The number of threads; by default as many as there are cores.
    """

    def __init__(
        self, function: Simulation, shapes: Mapping[str, Shape], workers: int | None = None
    ) -> None:
        self._function, self._shapes, self._workers = function, dict(shapes), workers
        self._size = sum(map(math.prod, shapes.values()))
        self._stages: list[_Stage] = []
        self._kinds: dict[str, np.dtype] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_stages": [], "_kinds": {}}

    def named(self, point: Operand) -> dict[str, Operand]:
        """The values in a row."""
        return dict(zip(self._shapes, split(point, self._shapes.values()), strict=True))

    def once(self, point: np.ndarray, rng: Operand) -> dict[str, np.ndarray]:
        """The results at one row, by calling the function."""
        values = self._function(self.named(point.copy()), rng)
        return {name: np.asarray(x) for name, x in values.items()}

    def __call__(
        self, points: np.ndarray, rng: np.random.Generator
    ) -> tuple[dict[str, np.ndarray], dict[int, Numbers]] | None:
        """The results in rows; None if the function cannot be recorded.

        Parameters
        ----------
        points : ndarray, shape (draws, size)
        rng : numpy.random.Generator

        Returns
        -------
        results : dict of str to ndarray of shape (draws, ...)
        lost : dict of int to Numbers
            The rows where the recording does not hold, which are not filled in, and the generators
            with which to call the function there.
        """
        found: dict[str, np.ndarray] = {}
        lost: dict[int, Numbers] = {}
        with Attempt():
            if not self._kinds:
                first = self.once(points[0], np.random.default_rng(0))
                self._kinds = {name: x.dtype for name, x in first.items()}
            start = 0
            while start < len(points):
                width = sum(math.prod(s) for each in self._stages for s in each.shapes)
                end = start + max(1, PIECE // max(width, points.shape[1])) if start else 1
                self._piece(slice(start, end), points[start:end], rng, found, lost, len(points))
                start = end
            return found, lost
        return None

    def _piece(
        self, where: slice, rows: np.ndarray, rng: np.random.Generator,
        found: dict[str, np.ndarray], lost: dict[int, Numbers], count: int,
    ) -> None:  # fmt: skip
        """Fill in some rows of the results."""
        places, drawn = np.arange(count)[where], list[np.ndarray]()
        for k in range(MOST_CALLS + 1):
            if k == len(self._stages):
                self._stages.append(self._recorded(rows[0], [x.shape[1:] for x in drawn]))
            stage = self._stages[k]
            made, holds = run_rows(
                stage.run, [rows], list(map(np.empty, stage.shapes)), self._workers
            )
            for i in np.flatnonzero(~holds).tolist():
                lost[int(places[i])] = Numbers([x[i] for x in drawn], rng)
            rows, places, drawn, made = (
                rows[holds], places[holds], [x[holds] for x in drawn], [x[holds] for x in made],
            )  # fmt: skip
            if stage.call is None or not len(rows):
                break
            if k == MOST_CALLS:
                raise RecordingError("the function draws random numbers too many times")
            drawn.append(stage.call.rows(rng, len(rows), made))
            rows = np.concatenate([rows, drawn[-1].reshape(len(rows), -1)], axis=1)
        named = dict(zip(stage.names, made, strict=True))
        named |= {name: drawn[i] for name, i in stage.drawn.items()}
        for name, x in named.items():
            if name not in found:
                found[name] = np.empty((count, *x.shape[1:]), self._kinds[name])
            found[name][places] = x

    def _recorded(self, row: np.ndarray, shapes: list[Shape]) -> _Stage:
        """Record the function up to the call of a generator that comes after calls whose numbers
        have these shapes.
        """
        call: list[_Call] = []
        results: dict[str, Operand] = {}
        of_calls: dict[str, int] = {}

        def stage(point: Operand) -> list[Operand]:
            drawn = [*split(point[self._size :], shapes)]
            call.clear()
            try:
                values = self._function(self.named(point), Numbers(drawn))
            except _Call as next_one:
                call.append(next_one)
                return [next_one.args[i] for i in next_one.varying]
            results.update(values)
            # What the function wrote into its numbers is computed.
            written = [each.target for each in point._tape.assignments]
            if any(getattr(each, "_root", each) is point for each in written):
                return list(results.values())
            for name, x in values.items():
                for i, each in enumerate(drawn):
                    if x is each:
                        of_calls[name] = i
                        del results[name]
            return list(results.values())

        program, _ = record_values(stage, row.copy())
        made = [v.shape for v in program.outputs[1:]]
        return _Stage(runner_for(program), made, call[0] if call else None, [*results], of_calls)
