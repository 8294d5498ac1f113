"""A function of named values at many draws of them, recorded once and run natively.

A function that draws random numbers is recorded in stages, because a recording would always use the
numbers that it drew once. The first stage ends at the first call of a generator, and computes the
arguments of this call. The numbers are drawn for all draws together, and are arguments of the next
stage. Where the recording of a stage does not hold, Python calls the function with the numbers that
have been drawn already, because new ones would depend on their rejection.

A function that calls generators many times, as in a loop over time, is recorded once if these are
of distributions in `STANDARD`: standard numbers are drawn for all draws together, and the recording
scales and shifts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varmat.core.operation import is_differentiable
from varmat.core.tape import nested
from varmat.core.variables import own_tape, root_of, var
from varmat.densities.random_numbers.row import Drawn, RandomNumbers, Source
from varmat.derivatives.recorded_programs import record_values
from varmat.derivatives.recorded_rows import run_rows
from varmat.derivatives.structure import split
from varmat.interrupts import Attempt
from varmat.models.functions import Named
from varmat.programs.ir.program import RecordingError
from varmat.programs.record.conditions import Branches, all_hold
from varmat.programs.run import runner_for
from varmat.typing import Operand, Plain, Shape, Threads

# From this number of draws on, any function is recorded. A recording takes a while: about as long
# as evaluating `_OPERATIONS` operations, and a function of many operations `_FEW` times more.
MANY = 1000
_FEW, _OPERATIONS = 100, 9000
# A function is recorded once for each call of a generator, so those with many calls are not.
MOST_CALLS = 12
# Rows are computed in pieces of this number of elements, which bounds the memory.
PIECE = 2**22

Simulation = Callable[[dict[str, "Operand"], "Operand"], "Operand"]


class _Standard(NamedTuple):
    """A distribution as a function of standard numbers and its arguments.

    Attributes
    ----------
    method : str
        The method of NumPy's generators that draws the standard numbers.
    transform : callable
    positive : callable
        What must be positive, of the arguments.
    fixed : int
        The number of first arguments that go to the method; they must be data.
    """

    method: str
    transform: Callable[..., Operand]
    positive: Callable[..., tuple[Operand, ...]]
    fixed: int = 0


class _StandardCall(NamedTuple):
    """A call of a function in `STANDARD`: its fixed arguments, and the shape of its numbers."""

    name: str
    fixed: tuple[Operand, ...]
    shape: Shape

    def rows(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw the standard numbers of many calls."""
        size, method = (count, *self.shape), getattr(rng, STANDARD[self.name].method)
        result: np.ndarray = method(*self.fixed, size=size)
        return result


def _of_location_and_scale(method: str) -> _Standard:
    return _Standard(method, lambda z, mu, sigma: mu + sigma * z, lambda mu, sigma: (sigma,))


STANDARD = {
    "std_normal_rng": _Standard("standard_normal", lambda z: z, lambda: ()),
    "normal_rng": _of_location_and_scale("standard_normal"),
    "cauchy_rng": _of_location_and_scale("standard_cauchy"),
    "logistic_rng": _of_location_and_scale("logistic"),
    "double_exponential_rng": _of_location_and_scale("laplace"),
    "gumbel_rng": _of_location_and_scale("gumbel"),
    "lognormal_rng": _Standard(
        "standard_normal", lambda z, mu, sigma: np.exp(mu + sigma * z), lambda mu, sigma: (sigma,)
    ),
    "uniform_rng": _Standard(
        "random", lambda z, a, b: a + (b - a) * z, lambda a, b: (b - a,)
    ),
    "student_t_rng": _Standard(
        "standard_t", lambda z, nu, mu, sigma: mu + sigma * z, lambda nu, mu, sigma: (sigma,), 1
    ),
    "gamma_rng": _Standard(
        "standard_gamma", lambda z, alpha, beta: z / beta, lambda alpha, beta: (beta,), 1
    ),
    "exponential_rng": _Standard(
        "standard_exponential", lambda z, beta: z / beta, lambda beta: (beta,)
    ),
    "weibull_rng": _Standard(
        "standard_exponential",
        lambda z, alpha, sigma: sigma * z ** (1.0 / alpha),
        lambda alpha, sigma: (alpha, sigma),
    ),
}  # fmt: skip


def _scaled(
    function: RandomNumbers, call: _StandardCall, z: Operand, args: tuple[Operand, ...]
) -> Operand:
    """Return the numbers of a call, made from standard ones."""
    _, transform, positive, count = STANDARD[function.name]
    same = not any(map(is_differentiable, args[:count])) and all(
        map(np.array_equal, args[:count], call.fixed)
    )
    if function.name != call.name or not same:
        raise RecordingError(f"{function.name} is called where {call.name} was called before")
    if not any(map(is_differentiable, args)):
        function(*args, rng=0)  # raises what is wrong with them
    if not all(all_hold(x > 0.0) for x in positive(*args)):
        raise RecordingError(f"{function.name}: an argument is not positive")
    result = transform(z, *args)
    if np.shape(result) != np.shape(z):
        raise RecordingError(f"{function.name} is called with another shape")
    return result


class _Call(BaseException):
    """Leaves a function at a call of a generator."""

    def __init__(
        self, function: Drawn | str, args: tuple[Operand, ...], by_name: dict[str, Operand]
    ) -> None:
        self.function, self.args, self.named = function, args, by_name
        # A row of each of these is an argument; the others are the same for all calls.
        self.varying = [i for i, x in enumerate(args) if is_differentiable(x)]

    def at(self, rng: Operand, args: tuple[Operand, ...]) -> Plain:
        """Draw the numbers of one call."""
        if isinstance(self.function, str):
            return getattr(rng, self.function)(*args, **self.named)
        return self.function(*args, rng=rng, **self.named)

    def rows(self, rng: np.random.Generator, count: int, rows: list[np.ndarray]) -> np.ndarray:
        """Draw the numbers of `count` calls."""
        arguments = dict(zip(self.varying, rows, strict=True))
        args = tuple(arguments.get(i, x) for i, x in enumerate(self.args))
        if not isinstance(self.function, str) and self.function.stacks(self.varying):
            return self.function.rows(count, args, self.varying, rng, **self.named)
        item = (
            tuple(arguments[k][i] if k in arguments else x for k, x in enumerate(args))
            for i in range(count)
        )
        return np.stack([self.at(rng, one) for one in item])


class Numbers(Source):
    """A generator whose first numbers are known.

    Parameters
    ----------
    drawn : list
        The numbers of the first calls.
    rng : numpy.random.Generator, optional
        Makes the others. By default the next call raises `_Call`.
    standard : sequence of tuple, optional
        The calls of functions in `STANDARD`, and their standard numbers.

    Attributes
    ----------
    calls : list of _StandardCall or None
        For each call that `rng` was used for; None for those of other functions.
    """

    def __init__(
        self,
        drawn: Sequence[Operand],
        rng: np.random.Generator | None = None,
        standard: Iterable[tuple[_StandardCall, Operand]] = (),
    ) -> None:
        self._drawn, self._rng, self._standard = iter(drawn), rng, iter(standard)
        self.calls: list[_StandardCall | None] = []

    def __getattr__(self, name: str) -> Callable[..., Operand]:
        if name.startswith("_") or not callable(getattr(np.random.Generator, name, None)):
            raise AttributeError(f"random numbers of many draws have no attribute {name!r}")
        return partial(self._called, name)

    def _called(self, name: str, *args: Operand, **by_name: Operand) -> Operand:
        if self._rng is None and by_name.get("out") is not None:
            raise RecordingError(f"{name} writes into an array, but must return its numbers")
        return self.draw(name, args, **by_name)

    def draw(self, function: Operand, args: tuple[Operand, ...], **by_name: Operand) -> Operand:
        name = function.name if isinstance(function, RandomNumbers) else ""
        if name in STANDARD:
            for cached, z in self._standard:
                return _scaled(function, cached, z, args)
        for x in self._drawn:
            return x
        call = _Call(function, args, by_name)
        if self._rng is None:
            raise call
        result = call.at(self._rng, args)
        fixed = args[: STANDARD[name].fixed] if name in STANDARD else ()
        cached = _StandardCall(name, fixed, np.shape(result))
        self.calls.append(cached if name in STANDARD else None)
        return result


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
        The shapes of the values, which are in sequence in the rows.
    executor : ThreadPoolExecutor or str, optional
        As for `Recorded.map`.
    """

    def __init__(
        self, function: Simulation, shapes: Mapping[str, Shape], executor: Threads = None
    ) -> None:
        self._function, self._shapes, self._executor = function, dict(shapes), executor
        self._size = sum(map(math.prod, shapes.values()))
        self._stages: list[_Stage] = []
        self._kinds: dict[str, np.dtype] = {}
        # The calls whose standard numbers are drawn beforehand.
        self._standard: list[_StandardCall] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_stages": [], "_kinds": {}}

    def named(self, point: Operand) -> dict[str, Operand]:
        """Return the values in a row by name."""
        return dict(zip(self._shapes, split(point, self._shapes.values()), strict=True))

    def once(self, point: np.ndarray, rng: Operand) -> dict[str, np.ndarray]:
        """Return the results at one row, by calling the function."""
        values = self._function(self.named(point.copy()), rng)
        return {name: np.asarray(x) for name, x in values.items()}

    def pays(self, row: np.ndarray, count: int) -> bool:
        """Return whether to record the function for this number of draws. It depends on the number
        of operations up to a call of a generator, not on time: the random numbers would otherwise
        depend on it too.

        Parameters
        ----------
        row : ndarray, shape (size,)
            A draw.
        count : int
        """
        if not _FEW < count < MANY:
            return count >= MANY
        with nested() as tape:
            with Attempt(), np.errstate(all="ignore"), suppress(_Call):
                self._function(self.named(var(row)), Numbers(()))
            return (count - _FEW) * len(tape) >= _OPERATIONS

    def __call__(
        self, points: np.ndarray, rng: np.random.Generator
    ) -> tuple[dict[str, np.ndarray], dict[int, Numbers]] | None:
        """Return the results in rows; None if the function cannot be recorded.

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
        result: dict[str, np.ndarray] = {}
        lost: dict[int, Numbers] = {}
        with Attempt():
            if not self._kinds:
                numbers = Numbers((), np.random.default_rng(0))
                first = self.once(points[0], numbers)
                self._kinds = {name: x.dtype for name, x in first.items()}
                if len(numbers.calls) > MOST_CALLS:
                    self._standard = [x for x in numbers.calls if x is not None]
            start = 0
            while start < len(points):
                width = sum(math.prod(s) for stage in self._stages for s in stage.shapes)
                width += sum(math.prod(x.shape) for x in self._standard)
                end = start + max(1, PIECE // max(width, points.shape[1])) if start else 1
                self._piece(slice(start, end), points[start:end], rng, result, lost, len(points))
                start = end
            return result, lost
        return None

    def everywhere(
        self,
        points: np.ndarray,
        rng: np.random.Generator,
        once: Callable[[int, Operand, dict[str, np.ndarray]], Mapping[str, Operand]] | None = None,
    ) -> dict[str, np.ndarray] | None:
        """Return the results in rows; None if the function cannot be recorded. Where a recording
        does not hold, call `once` with the number of the row, a generator and the results; they are
        nan if it returns nothing. By default call the function.
        """
        if once is None:
            once = lambda i, numbers, _: self.once(points[i], numbers)  # noqa: E731
        output = self(points, rng)
        if output is None:
            return None
        result, lost = output
        for i, numbers in lost.items():
            for name, x in (once(i, numbers, result) or dict.fromkeys(result, np.nan)).items():
                result[name][i] = x
        return result

    def _piece(
        self, where: slice, rows: np.ndarray, rng: np.random.Generator,
        result: dict[str, np.ndarray], lost: dict[int, Numbers], count: int,
    ) -> None:  # fmt: skip
        """Fill in some rows of the results."""
        indices, drawn = np.arange(count)[where], list[np.ndarray]()
        standard, shapes = self._standard, [item.shape for item in self._standard]
        numbers = [item.rows(rng, len(rows)).reshape(len(rows), -1) for item in standard]
        rows = np.concatenate([rows, *numbers], axis=1)
        end = rows.shape[1]
        for k in range(MOST_CALLS + 1):
            if k == len(self._stages):
                self._stages.append(self._recorded(rows[0], [x.shape[1:] for x in drawn]))
            stage = self._stages[k]
            _, output, holds = run_rows(
                stage.run, [rows], list(map(np.empty, stage.shapes)), self._executor
            )
            for i in np.flatnonzero(~holds).tolist():
                pairs = zip(standard, split(rows[i, self._size : end], shapes), strict=True)
                lost[int(indices[i])] = Numbers([x[i] for x in drawn], rng, pairs)
            rows, indices, drawn, output = (
                rows[holds], indices[holds], [x[holds] for x in drawn], [x[holds] for x in output],
            )  # fmt: skip
            if stage.call is None or not len(rows):
                break
            if k == MOST_CALLS:
                raise RecordingError("the function draws random numbers too often")
            drawn.append(stage.call.rows(rng, len(rows), output))
            rows = np.concatenate([rows, drawn[-1].reshape(len(rows), -1)], axis=1)
        by_name = dict(zip(stage.names, output, strict=True))
        by_name |= {name: drawn[i] for name, i in stage.drawn.items()}
        for name, x in by_name.items():
            if name not in result:
                result[name] = np.empty((count, *x.shape[1:]), self._kinds[name])
            result[name][indices] = x

    def _recorded(self, row: np.ndarray, shapes: list[Shape]) -> _Stage:
        """Record the function up to the call of a generator that comes after calls whose numbers
        have these shapes.
        """
        call: list[_Call] = []
        results: dict[str, Operand] = {}
        of_calls: dict[str, int] = {}

        def stage(point: Operand) -> list[Operand]:
            cached = [value.shape for value in self._standard]
            data = [*split(point[self._size :], [*cached, *shapes])]
            drawn = data[len(cached) :]
            pairs = zip(self._standard, data, strict=False)
            call.clear()
            try:
                values = self._function(self.named(point), Numbers(drawn, None, pairs))
            except _Call as next_one:
                call.append(next_one)
                return [next_one.args[i] for i in next_one.varying]
            results.update(values)
            # Elements that the function assigned to its numbers are computed.
            written = [assignment.target for assignment in own_tape(point).assignments]
            if any(root_of(value) is point for value in written):
                return list(results.values())
            for name, x in values.items():
                for i, item in enumerate(drawn):
                    if x is item:
                        of_calls[name] = i
                        del results[name]
            return list(results.values())

        program, _ = record_values(stage, row.copy(), follows=Branches(0))
        result = [v.shape for v in program.outputs[1:]]
        return _Stage(runner_for(program), result, call[0] if call else None, [*results], of_calls)


def quantities_at(
    generated: Named, values: Mapping[str, np.ndarray], rng: np.random.Generator
) -> dict[str, np.ndarray] | None:
    """Return generated quantities at draws of named values, in rows; None if a recording does not
    pay, or an error arises.
    """
    count = len(next(iter(values.values()), ()))
    shapes = {name: x.shape[1:] for name, x in values.items()}
    at_draws = AtDraws(partial(quantities, generated), shapes)
    if not count:
        return None
    rows = np.concatenate([x.reshape(count, -1) for x in values.values()], axis=1)
    if at_draws.pays(rows[0], count):
        with Attempt(), np.errstate(all="ignore"):
            return at_draws.everywhere(rows, rng)
    return None


def quantities(generated: Named, values: dict[str, Operand], rng: Operand) -> dict[str, Operand]:
    """Return generated quantities at one draw."""
    return dict(generated.named_values(values, rng=rng))
