"""Loops over time as one operation, whose body is recorded once instead of at every step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dual import Level, attached, taken_apart, value_now
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar, to_varmat
from varmat.core.operation import Saved, is_differentiable, operation
from varmat.core.variables import data
from varmat.derivatives.inputs_and_outputs import lost
from varmat.derivatives.jacobians import vjp
from varmat.derivatives.recorded_gradients import depending_on
from varmat.derivatives.recorded_programs import Written, part_of, weighted_program
from varmat.derivatives.structure import map_leaves, structure_of
from varmat.functions.checks import misfit, outside
from varmat.interrupts import Noted
from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import Program
from varmat.programs.kernels.loop import Loop
from varmat.programs.record.conditions import as_number
from varmat.solvers.inner import (
    Inner,
    KernelRunners,
    filled,
    numbers_of,
    refilled,
    truths_of,
    zeros_like,
)
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result

__all__ = ["scan"]

LeafSequence = Sequence[Any]


class Body:
    """The body of a loop, recorded once, and the loops over it.

    Parameters
    ----------
    name : str
        The name of the function that the user called.
    function : callable
        Takes three lists of leaves: the carry, the step's row, and shared leaves. Returns two
        lists: the next carry, and the results of the step.
    carried, row, shared : sequences of floats and arrays
        The leaves of the first step.
    """

    def __init__(
        self,
        name: str,
        function: Function,
        carried: LeafSequence,
        row: LeafSequence,
        shared: LeafSequence,
    ) -> None:
        self.name, self.function = name, function
        self._points = [[*x] for x in (carried, row, shared)]
        self._written: Written = weighted_program(name, self._of_leaves, self._points)
        self.carried, self.rows, self.shared = map(len, self._points)
        self.stacked = len(self._written.template) - self.carried
        self._loops: dict[Any, Loop] = {}
        self._runners = KernelRunners()
        self._along: dict[int, Body] = {}

    def _of_leaves(
        self, carried: LeafSequence, row: LeafSequence, shared: LeafSequence
    ) -> list[Operand]:
        after, result = self.function(carried, row, shared)
        for i, (x, y) in enumerate(zip(carried, after, strict=True)):
            if np.shape(x) != np.shape(y):
                raise misfit(
                    self.name,
                    f"array {i + 1} of the carry returned by f",
                    np.shape(y),
                    f"have the shape of init, {np.shape(x)}",
                )
        return [*after, *result]

    def parts(self, operands: LeafSequence) -> tuple[LeafSequence, LeafSequence, LeafSequence]:
        """Split operands into the carry, the rows, and the shared leaves."""
        n, m = self.carried, self.carried + self.rows
        return operands[:n], operands[n:m], operands[m:]

    # --- loops ---

    def forward(self, count: int) -> Loop:
        """Return the loop of the values. It carries and stacks the carry, and stacks the results of
        the steps.
        """
        if count not in self._loops:
            n, values = self.carried, sum(map(len, self._points))
            program = part_of(self._written.program, slice(values), slice(1, 1 + n + self.stacked))
            arguments, (_, *result) = program.arguments, program.outputs
            body = Program(arguments, program.steps, [*result[:n], *arguments[:n], *result[n:]])
            self._loops[count] = Loop(body, count, n, self.rows, n + self.stacked)
        return self._loops[count]

    def backward(self, count: int, in_rows: bool, in_history: bool) -> Loop:
        """Return the loop of the adjoints. It carries the adjoints of the carry, stacks those for
        the rows if `in_rows`, and sums those for the shared leaves.

        Its rows are the carries, the rows, and the adjoints of the results of the steps and, if
        `in_history`, of the carries. It has only those guards that depend on adjoints, because all
        others have held forward.
        """
        key = count, in_rows, in_history
        if key not in self._loops:
            n, arguments = self.carried, sum(map(len, self._points))
            program = self._written.program
            zero, *outputs = program.outputs
            of_carried, of_rows, of_shared = self.parts(outputs[n + self.stacked :])
            of_rows = of_rows if in_rows else []
            depending = depending_on(program, program.arguments[arguments:])
            steps = [
                step for step in program.steps if id(step) in depending or not step.kernel.is_guard
            ]
            chosen = Program(program.arguments, steps, [zero, *of_carried, *of_rows, *of_shared])
            program = part_of(chosen, slice(None), slice(1, None))
            result, weights = program.outputs[1:], program.arguments[arguments:]
            carried, rows, shared = self.parts(program.arguments[:arguments])
            builder = Builder()
            more = [builder.argument(x.shape) for x in carried] if in_history else []
            builder.arguments = [*weights[:n], *carried, *rows, *weights[n:], *more, *shared]
            builder.steps = [*program.steps]
            for i, x in enumerate(more):
                result[i] = builder.ufunc(np.add, result[i], x)
            sliced = n + self.rows + self.stacked + len(more)
            self._loops[key] = Loop(
                builder.program(result), count, n, sliced, len(of_rows), backwards=True
            )
        return self._loops[key]

    def adjoint(
        self,
        operands: LeafSequence,
        results: LeafSequence,
        g: LeafSequence,
        count: int,
        in_rows: bool,
    ) -> list[Operand] | None:
        """Compute the contributions to the adjoints of the operands, from the adjoints of the
        results, where None is zero.
        """
        n, (_, rows, shared) = self.carried, self.parts(operands)
        weights, in_history = filled(g, results), any(x is not None for x in g[n : 2 * n])
        more = weights[n : 2 * n] if in_history else []
        arguments = [*weights[:n], *results[n : 2 * n], *rows, *weights[2 * n :], *more, *shared]
        result = self.run(self.backward(count, in_rows, in_history), *arguments)
        if result is None or in_rows:
            return result
        return [*result[:n], *[0.0] * self.rows, *result[n:]]

    def run(self, loop: Loop, *operands: Operand) -> list[Operand] | None:
        """Return the results of a loop; None where its program does not hold."""
        return self._runners.run(loop, loop.trips, *operands)

    def forward_as_written(self, operands: LeafSequence, count: int) -> list[Operand]:
        """Compute the results of the loop of the values."""
        now, rows, shared = self.parts(operands)
        steps = []
        for t in range(count):
            result = self._step(t, self._of_leaves, now, _row(rows, t), shared)
            if is_differentiable(result):
                raise lost(self.name, next(x for x in result if is_differentiable(x)))
            steps.append([*now, *result[self.carried :]])
            now = result[: self.carried]
        return [*now, *map(np.stack, zip(*steps, strict=True))]

    def backward_as_written(
        self, operands: LeafSequence, results: LeafSequence, g: LeafSequence, count: int
    ) -> list[Operand]:
        """Compute the contributions to the adjoints of the operands."""
        n, (_, rows, shared) = self.carried, self.parts(operands)
        weights = filled(g, results)
        now, of_rows, total = (
            weights[:n],
            filled([None] * self.rows, rows),
            [*map(zeros_like, shared)],
        )
        for t in reversed(range(count)):
            arguments = [*now, *_row(weights[2 * n :], t)]
            result = self._step(
                t,
                lambda *leaves, inputs=arguments: vjp(self._of_leaves, *leaves)[1](inputs),
                _row(results[n : 2 * n], t),
                _row(rows, t),
                shared,
            )
            more = _row(weights[n : 2 * n], t)
            now = [x + y for x, y in zip(result[0], more, strict=True)]
            for place, x in zip(of_rows, result[1], strict=True):
                place[t] = x
            total = [x + y for x, y in zip(total, result[2], strict=True)]
        return [*now, *of_rows, *total]

    def _step(self, t: int, function: Function, *leaves: LeafSequence) -> Result:
        """Run a step as it is written; errors name it."""
        with Noted(f"in step {t} of {self.name}"), np.errstate(all="ignore"):
            return function(*map(list, leaves))

    # --- derivatives ---

    def along(self, which: int) -> Body:
        """Return the body of the derivative of the loop along an operand.

        It carries the tangents of what the loop carries. Its rows are what the loop carried, the
        rows and, along an operand in rows, the tangent of the row; its shared leaves likewise.
        """
        n, q, m = map(len, self._points)
        which = max(which, n - 1)  # one body for all that are carried
        if which not in self._along:
            of_leaf = which >= n

            def tangents(
                carried: LeafSequence, row: LeafSequence, shared: LeafSequence
            ) -> tuple[list[Operand], list[Operand]]:
                # A new level for each call, because it must be newer than the levels of its
                # arguments.
                level = Level(self.name)
                dual = partial(attached, level=level)
                values = [*map(dual, row[:n], carried), *row[n : n + q], *shared[:m]]
                for t in (*row[n + q :], *shared[m:]):
                    values[which] = dual(values[which], t)
                return tuple(  # type: ignore[return-value]
                    [zeros_like(x) if (t := taken_apart(x, level)[1]) is None else t for x in item]
                    for item in self.function(*self.parts(values))
                )

            start, row, shared = self._points
            tangent = [*start, *row, *shared][which : which + of_leaf]
            of_row, of_shared = (tangent, []) if which < n + q else ([], tangent)
            self._along[which] = Body(
                self.name, tangents, start, [*start, *row, *of_row], [*shared, *of_shared]
            )
        return self._along[which]


def _number(x: Operand) -> Result:
    """Convert a row to a float or an array."""
    return np.array(x) if np.ndim(x) else float(x)


def _row(columns: LeafSequence, t: int) -> list[Operand]:
    return [_number(x[t]) for x in columns]


@operation(variadic=True)
def scan_history(*operands: object, body: Body, count: int, in_rows: bool) -> Saved:
    """Return the last carry, and in rows the carry into each step and the results of the step.

    `in_rows` says whether the rows are variables.
    """
    result = body.run(body.forward(count), *operands)
    is_written = result is None
    result = body.forward_as_written(operands, count) if result is None else result
    return Saved(tuple(result), is_written=is_written)


@scan_history.reverse
def scan_history_reverse(
    g: Adjoint, r: Plain, *operands: Plain, body: Body, count: int, in_rows: bool, is_written: bool
) -> tuple[Adjoint, ...]:
    # Backwards, the program lacks the guards that have held forward.
    result = None if is_written else body.adjoint(operands, r, g, count, in_rows)
    return tuple(body.backward_as_written(operands, r, g, count) if result is None else result)


# The derivative of a recursion is a linear one: t' = (dc'/dc) t + the slope along the direction.
@scan_history.tangent
def scan_history_tangent(
    r: Operand, *operands: Operand, body: Body, count: int, in_rows: bool
) -> tuple[Linear, ...]:
    start, rows, shared = body.parts(operands)
    n, m = len(start), len(start) + len(rows)

    def along(which: int, t: Operand) -> Result:
        first = [t if i == which else zeros_like(x) for i, x in enumerate(start)]
        of_row, of_shared = [t] if n <= which < m else [], [t] if which >= m else []
        arguments = [*first, *r[n : 2 * n], *rows, *of_row, *shared, *of_shared]
        return scan_history(*arguments, body=body.along(which), count=count, in_rows=True)

    return tuple(partial(along, which) for which in range(len(operands)))


# --- for users ---


def scan(
    f: Function,
    init: Operand,
    xs: Operand,
    *args: Operand,
    length: int | None = None,
    reverse: bool = False,
    checkpoints: int | None = None,
) -> tuple[Operand, Operand]:
    """Loop over rows, carrying something from step to step, as one operation.

    It computes, on structures of arrays::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x, *args)
            ys.append(y)
        return carry, np.stack(ys)

    Parameters
    ----------
    f : callable
        ``f(carry, x, *args)`` returns a pair: the next carry, with the structure and shapes of
        `init`, and the result of the step: a structure of numbers, or None. Written in NumPy; it
        must compute the same operations at every step, and all variables that it depends on must be
        among its arguments.
    init : structure of array_like
        The first carry: a scalar or an array, or lists, tuples, dicts and named tuples of them, to
        any depth.
    xs : structure of array_like, shape (T, ...)
        The arguments of the steps, in rows. If it is None, each step takes None, and `length` is
        the number of steps.
    *args
        Further arguments of `f`. Scalars and arrays in them may be variables, to any depth of
        lists, tuples and dicts.
    length : int, keyword only
        The number of steps T; at least 1.
    reverse : bool, keyword only
        Whether the last row of `xs` comes first; results of a step have its row's index.
    checkpoints : int, keyword only
        Keep the carry only after every `checkpoints` steps, and compute the steps between again on
        the way back [2]_. This saves memory, and takes about a third more time. The square root of
        T is a good choice. By default every step is kept.

    Returns
    -------
    carry : structure
        The carry after the last step; structured as `init`.
    ys : structure of ndarray or VarMat, shape (T, ...)
        The results of the steps, in rows; None if `f` returns None for them.

    Raises
    ------
    ShapeError
        If the carry from `f` has another structure or other shapes than `init`; if the rows of `xs`
        and `length` disagree.
    DomainError
        If the number of steps is 0. Errors of `f` get a note that names the step.
    TapeError
        If `f` uses variables that are not its arguments, or reads the value of one.
    TypeError
        If `f` does not return a pair, or truth values in the carry where `init` has numbers.

    Notes
    -----
    `f` is recorded at the first step, as by `varmat.recorded`: a program of its values, which runs
    forward, and one of its contributions to adjoints, which runs backwards. In long loops, what no
    step needs from the one before is computed for all steps at once. Where the recording is not
    valid, the loop is evaluated as it is written. All numbers of `init` and `xs` reach `f` as
    floating-point variables, elements of integer arrays too; truth values stay truth values. Second
    derivatives are loops over the derivative of `f`. Arguments and results are as in JAX's function
    of this name [1]_.

    Anything that `f` reads from elsewhere is read once for each call.

    References
    ----------
    .. [1] JAX documentation, ``jax.lax.scan``.
    .. [2] A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, SIAM, 2008, chapter 12.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def smoothed(level, y, gain):
    ...     return level + gain * (y - level), y - level
    >>> y = np.array([1.0, 2.0, 4.0])
    >>> level, errors = vm.scan(smoothed, 0.0, y, 0.5)
    >>> level, errors
    (2.625, array([1.  , 1.5 , 2.75]))
    >>> vm.gradient(lambda gain: np.sum(vm.scan(smoothed, 0.0, y, gain)[1] ** 2), 0.5)
    -14.0
    """
    name = "scan"
    if checkpoints is not None and not checkpoints > 0:
        raise outside(name, "checkpoints", checkpoints, "be positive")
    inner = Inner(name, f, args)
    carried = _leaves(name, "init", init)
    columns, count = _columns(name, xs, length)
    shared = [to_varmat(x) if isinstance(x, MatVar) else x for x in inner.leaves]
    row = [_number(x[-1 if reverse else 0]) for x in map(value_now, columns)]
    saved: list[Operand] = []

    def of_leaves(
        carried: LeafSequence, row: LeafSequence, shared: LeafSequence
    ) -> tuple[list[Operand], list[Operand]]:
        pair = inner((refilled(init, carried), None if xs is None else refilled(xs, row)), shared)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"{name}: f returns a {type(pair).__name__}, but must return a pair: the "
                "carry and the output!"
            )
        after, y = pair
        if _nesting(after) != _nesting(init):
            raise ShapeError(f"{name}: the carry returned by f must have the structure of init!")
        if truths_of(after) != truths_of(init):
            raise TypeError(
                f"{name}: the carry returned by f must have truth values where init has, and "
                "numbers elsewhere!"
            )
        saved[:] = [y]
        return numbers_of(after), [] if y is None else numbers_of(y)

    body = Body(name, of_leaves, [*map(value_now, carried)], row, [*map(value_now, shared)])
    columns = [x[::-1] for x in columns] if reverse else columns
    last, result = (
        _run(body, carried, columns, shared, count, checkpoints)
        if body.carried + body.stacked
        else ([], [])
    )
    (pattern,) = saved
    result = [x[::-1] for x in result] if reverse else result
    return refilled(init, last), None if pattern is None else refilled(pattern, result)


def _run(
    body: Body,
    start: LeafSequence,
    rows: LeafSequence,
    shared: LeafSequence,
    count: int,
    checkpoints: int | None,
) -> tuple[LeafSequence, LeafSequence]:
    """Return the carry after the last step, and the results of all steps, in rows."""
    n, in_rows = body.carried, is_differentiable([*rows])
    size = count if checkpoints is None else checkpoints
    pieces = count // size
    if pieces < 2:
        result = scan_history(*start, *rows, *shared, body=body, count=count, in_rows=in_rows)
        return result[:n], result[2 * n :]

    # A loop over pieces, each a loop.
    def piece(
        carried: LeafSequence, rows: LeafSequence, shared: LeafSequence
    ) -> tuple[LeafSequence, LeafSequence]:
        output = scan_history(*carried, *rows, *shared, body=body, count=size, in_rows=True)
        return output[:n], output[2 * n :]

    covered = pieces * size
    first = [[value_now(x) for x in item] for item in (start, [x[:size] for x in rows], shared)]
    outer = Body(body.name, piece, *[[*map(_number, x)] for x in first])
    blocks = [np.reshape(x[:covered], (pieces, size, *np.shape(x)[1:])) for x in rows]
    last, created = _run(outer, start, blocks, shared, pieces, None)
    created = [np.reshape(x, (covered, *np.shape(x)[2:])) for x in created]
    if covered < count:
        last, remainder = _run(
            body, last, [x[covered:] for x in rows], shared, count - covered, None
        )
        created = [np.concatenate(both) for both in zip(created, remainder, strict=True)]
    return last, created


def _nesting(tree: Any) -> Result:
    """Return the structure without the shapes."""
    return structure_of(map_leaves(lambda *_: 0.0, tree))


def _leaves(name: str, title: str, tree: Any) -> list[Operand]:
    """Return the leaves as variables, floats and float64 arrays; raise for other leaves."""
    result: list[Operand] = []

    def add(leaf: object, path: str) -> None:
        leaf = to_varmat(leaf) if isinstance(leaf, MatVar) else as_number(leaf)
        result.append(
            leaf if isinstance(leaf, ArrayMethods) else data(leaf, f"{name}: {title}{path}")
        )

    map_leaves(add, tree)
    return result


def _columns(name: str, xs: Operand, length: int | None) -> tuple[list[Operand], int]:
    """Return the leaves of `xs`, with time along the first axis, and the number of steps."""
    columns = [] if xs is None else _leaves(name, "xs", xs)
    counts = [] if length is None else [int(length)]
    for i, x in enumerate(columns):
        if not np.ndim(x):
            raise ShapeError(
                f"{name}: array {i + 1} of xs is a scalar, but must have a row for each step!"
            )
        counts.append(np.shape(x)[0])
    if not counts:
        raise ShapeError(
            f"{name}: xs has no arrays and length is not given, but one of them must say how many "
            "steps there are!"
        )
    if len({*counts}) > 1:
        raise ShapeError(f"{name}: length and the arrays of xs say {counts} steps, but must agree!")
    if counts[0] < 1:
        raise DomainError(f"{name}: there are {counts[0]} steps, but must be at least one!")
    return columns, counts[0]
