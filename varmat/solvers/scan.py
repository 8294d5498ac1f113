"""Loops over time as one operation, whose body is recorded once instead of at every step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dual import Dual, Level
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar, to_varmat
from varmat.core.operation import is_differentiable, operation
from varmat.core.variables import data
from varmat.derivatives.inputs_and_outputs import lost
from varmat.derivatives.pullbacks import vjp
from varmat.derivatives.recorded_programs import Written, part_of, weighted_program
from varmat.derivatives.structure import leaves_of, map_leaves, rebuilt, structure_of
from varmat.interrupts import from_signal
from varmat.programs.build import called, require
from varmat.programs.ir.program import ElsewhereError, Program
from varmat.programs.kernels.scans import (
    Loop,
    NativeLoop,
    Sizes,
    has_guards,
    with_guards,
    without_guards,
)
from varmat.programs.kernels.split_scans import (
    Split,
    SplitLoop,
    blocks_of,
    written_backward,
    written_forward,
)
from varmat.programs.run import has_native, native_runner, runner_for
from varmat.solvers.inner import Inner, native_pays, value_now

if TYPE_CHECKING:
    from varmat.typing import Adjoint, Function, Linear, Operand, Result, Thunk, Value

__all__ = ["scan"]

Leaves = Sequence[Any]
# Loops of at least so many steps gain from computing on all steps at once where possible.
LONG = 32


class Body:
    """The body of a loop, as two programs of its leaves: its results, and its contributions to
    adjoints.

    Parameters
    ----------
    name : str
        What the user called.
    function : callable
        Takes three lists of leaves: those carried, those of the step, and those shared. Returns two
        lists: what is carried on, and what the step makes.
    carried, row, shared : sequences of floats and arrays
        The leaves of the first step.
    """

    def __init__(
        self, name: str, function: Function, carried: Leaves, row: Leaves, shared: Leaves
    ) -> None:
        self.name, self.function = name, function
        self._points = [[*each] for each in (carried, row, shared)]
        self._written: Written = weighted_program(name, self._of_leaves, self._points)
        template = [np.shape(x) for x in self._written.template]
        given = [[np.shape(x) for x in each] for each in self._points]
        self.sizes = Sizes(given[0], given[1], template[len(carried) :], given[2])
        self._programs: dict[bool | None, Program] = {}
        self._runners: dict[Any, Any] = {}
        self._loops: dict[tuple[bool | None, int, bool], NativeLoop] = {}
        self._along: dict[int, Body] = {}
        self._splits: dict[bool | None, SplitLoop | None] = {}
        self.kernels = {in_rows: Loop(self, in_rows) for in_rows in (None, False, True)}

    def _of_leaves(self, carried: Leaves, row: Leaves, shared: Leaves) -> list[Operand]:
        after, made = self.function(carried, row, shared)
        for i, (x, y) in enumerate(zip(carried, after, strict=True)):
            if np.shape(x) != np.shape(y):
                raise ShapeError(
                    f"{self.name}: array {i + 1} of what f carries on has shape {np.shape(y)}, but "
                    f"must have that of init, {np.shape(x)}!"
                )
        return [*after, *made]

    def leaves(self, which: int, numbers: Operand, *leading: int) -> list[Operand]:
        """The leaves of one of the four kinds, from their numbers along the last axis."""
        leaves, at = [], 0
        for shape in self.sizes.shapes[which]:
            end = at + int(np.prod(shape))
            part = (*[slice(None)] * len(leading), slice(at, end) if shape else at)
            leaf = np.reshape(numbers[part], (*leading, *shape)) if shape else numbers[part]
            leaves.append(float(leaf) if isinstance(leaf, np.floating) else leaf)
            at = end
        return leaves

    # --- programs ---

    def _program(self, in_rows: bool | None) -> Program:
        """The program of the values (None), or of the contributions with or without the rows'."""
        if in_rows not in self._programs:
            n, q, k, m = (
                len(x)
                for x in (self.sizes.carried, self.sizes.rows, self.sizes.made, self.sizes.shared)
            )
            program = self._written.program
            if in_rows is None:
                made = part_of(
                    without_guards(program, n + q + m, of_others=False),
                    slice(n + q + m),
                    slice(1, 1 + n + k),
                )
            else:
                if not in_rows:
                    first = 1 + n + k + n
                    kept = [*program.outputs[:first], *program.outputs[first + q :]]
                    program = type(program)(program.arguments, program.steps, kept)
                made = part_of(program, slice(None), slice(1 + n + k, None))
            self._programs[in_rows] = with_guards(made)
        return self._programs[in_rows]

    def program(self, in_rows: bool | None) -> Program:
        """The same: forward with all guards, backwards without those that have held forward."""
        made = self._program(in_rows)
        if in_rows is None:
            return made
        return without_guards(made, sum(map(len, self._points)), of_others=True)

    def _numpy(self, in_rows: bool | None) -> Result:
        if in_rows not in self._runners:
            self._runners[in_rows] = runner_for(self._program(in_rows), "numpy")
        return self._runners[in_rows]

    def native(self, in_rows: bool | None, count: int, guarded: bool = True) -> NativeLoop | None:
        """The loop as one native call; None without the native runner or if the body calls Python.

        The way back needs no guards if all steps were run forward by the program.
        """
        if not has_native():
            return None
        if (in_rows, guarded) not in self._runners:
            program = self._program(in_rows) if guarded else self.program(in_rows)
            self._runners[in_rows, guarded] = native_runner()(program, numbers=True)
        runner = self._runners[in_rows, guarded]
        if runner.calls_python:
            return None
        if (in_rows, count, guarded) not in self._loops:
            self._loops[in_rows, count, guarded] = NativeLoop(runner, self.sizes, count, in_rows)
        return self._loops[in_rows, count, guarded]

    def split(self, in_rows: bool | None, count: int) -> SplitLoop | None:
        """The loop of only what each step needs from the one before, if the rest can be computed
        for all steps at once and the loop is long enough.
        """
        if count < LONG or not has_native():
            return None
        if in_rows not in self._splits:
            split = Split(self.program(in_rows), self.sizes, in_rows)
            self._splits[in_rows] = (
                SplitLoop(split, native_runner()(split.runs, numbers=True))
                if split.is_possible
                else None
            )
        return self._splits[in_rows]

    def _loop(self, in_rows: bool | None, count: int) -> NativeLoop | None:
        """The loop as one native call, if it has enough steps."""
        return self.native(in_rows, count) if native_pays(count) else None

    # --- on plain arrays ---

    def forward(self, start: np.ndarray, rows: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """The history."""
        sizes, count = self.sizes, len(rows)
        history = np.zeros((count + 1, sizes.width))
        given = [np.ascontiguousarray(x) for x in (rows, shared)]
        loop = self._loop(None, count)
        if loop is not None and loop(np.ascontiguousarray(start), history, *given):
            return history
        history[0, : sizes.n] = start
        last = self._split(2, given[1])
        for t in range(count):
            leaves = [self._split(0, history[t, : sizes.n]), self._split(1, given[0][t]), last]
            history[t + 1] = self._run(None, leaves, [], partial(self._values, leaves), t)
        return history

    def backward(
        self,
        history: np.ndarray,
        rows: np.ndarray,
        shared: np.ndarray,
        g: np.ndarray,
        in_rows: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The adjoints of the history and of what is shared, in one vector, and those of the rows
        if `in_rows`.
        """
        sizes, count, n = self.sizes, len(rows), self.sizes.n
        whole, of_rows = (
            np.empty((count + 1) * sizes.width + sizes.m),
            np.empty((count * in_rows, sizes.q)),
        )
        given = [np.ascontiguousarray(x) for x in (rows, shared, history, g)]
        loop = self._loop(in_rows, count)
        if loop is not None and loop(given[3], whole, *given[:2], given[2], of_rows):
            return whole, of_rows
        adjoint, total = (
            whole[: whole.size - sizes.m].reshape(history.shape),
            whole[whole.size - sizes.m :],
        )
        adjoint[...], total[...] = g, 0.0
        last = self._split(2, given[1])
        for t in reversed(range(count)):
            leaves = [self._split(0, history[t, :n]), self._split(1, given[0][t]), last]
            weights = [*self._split(0, adjoint[t + 1, :n]), *self._split(3, adjoint[t + 1, n:])]
            found = self._run(
                in_rows, leaves, weights, partial(self._contributions, leaves, weights, in_rows), t
            )
            adjoint[t, :n] += found[:n]
            if in_rows:
                of_rows[t] = found[n : n + sizes.q]
            total += found[len(found) - sizes.m :]
        return whole, of_rows

    def _split(self, which: int, numbers: np.ndarray) -> list[Operand]:
        leaves, at = [], 0
        for shape in self.sizes.shapes[which]:
            end = at + int(np.prod(shape))
            leaves.append(numbers[at:end].reshape(shape) if shape else float(numbers[at]))
            at = end
        return leaves

    def _run(
        self,
        in_rows: bool | None,
        leaves: Sequence[Leaves],
        weights: Leaves,
        otherwise: Thunk,
        t: int,
    ) -> np.ndarray:
        """The results of the program or, if a guard fails, of the function as it is written."""
        try:
            zero, *found = self._numpy(in_rows)([*(x for each in leaves for x in each), *weights])
        except (ArithmeticError, ValueError, ElsewhereError) as error:
            if from_signal(error):
                raise
            zero = np.nan
        if zero != 0.0:
            try:
                with np.errstate(all="ignore"):
                    found = otherwise()
            except Exception as error:
                error.add_note(f"in step {t} of {self.name}")
                raise
        return np.concatenate([np.empty(0), *map(np.ravel, found)])

    def _values(self, leaves: Sequence[Leaves]) -> list[Operand]:
        found = self._of_leaves(*leaves)
        if is_differentiable(found):
            raise lost(self.name, next(x for x in found if is_differentiable(x)))
        return found

    def _contributions(
        self, leaves: Sequence[Leaves], weights: Leaves, in_rows: bool
    ) -> list[Operand]:
        found = vjp(self._of_leaves, *map(list, leaves))[1]([*weights])
        return [*found[0], *(found[1] if in_rows else []), *found[2]]

    # --- derivatives ---

    def along(self, which: int) -> Body:
        """The body of the derivative of the loop along its start (0), the rows (1) or what is
        shared (2).

        It carries the tangents of what the loop carries. Its rows hold what the loop carried, the
        row and, along the rows, the tangent of the row; its shared leaves likewise.
        """
        if which not in self._along:
            n, q, m = (
                len(each) for each in (self.sizes.carried, self.sizes.rows, self.sizes.shared)
            )
            name, function = self.name, self.function

            def tangents(
                carried: Leaves, row: Leaves, shared: Leaves
            ) -> tuple[list[Operand], list[Operand]]:
                level = Level(name)

                def dual(x: Operand, t: Operand) -> Result:
                    made = Dual(x, t)
                    made.level = level
                    return made

                values = [row[:n], row[n : n + q], shared[:m]]
                values[0] = [*map(dual, values[0], carried)]
                if which:
                    values[which] = [
                        *map(dual, values[which], row[n + q :] if which == 1 else shared[m:])
                    ]
                return tuple(  # type: ignore[return-value]
                    [x.tan if isinstance(x, Dual) else np.zeros(np.shape(x))[()] for x in each]
                    for each in function(*values)
                )

            start, row, shared = self._points
            of_row, of_shared = row if which == 1 else [], shared if which == 2 else []
            self._along[which] = Body(
                name, tangents, start, [*start, *row, *of_row], [*shared, *of_shared]
            )
        return self._along[which]


@operation()
def scan_history(start: Value, rows: Value, shared: Value, *, body: Body, in_rows: bool) -> Value:
    """A row for each step, of what is carried and what the step made; row 0 is the start.

    `in_rows` says whether the rows are variables.
    """
    return body.forward(start, rows, shared)


@scan_history.reverse
def _(
    g: Adjoint, r: Value, start: Value, rows: Value, shared: Value, *, body: Body, in_rows: bool
) -> tuple[Adjoint, ...]:
    whole, of_rows = body.backward(r, rows, shared, g, in_rows)
    return whole[: body.sizes.n].copy(), of_rows, whole[r.size :].copy()


# The adjoints of the history begin with those of the start, which is its first row.
@scan_history.straight
def _(start: Operand, rows: Operand, shared: Operand, *, body: Body, in_rows: bool) -> Result:
    count = np.shape(rows)[0]
    blocks = blocks_of(start, rows, shared)
    forward, backward = body.split(None, count), body.split(in_rows, count)
    if forward is None:
        history, ended, _ = called(body.kernels[None], start, rows, shared)
        require(np.equal(ended, 0.0))
        carried = history
    else:
        history, carried = written_forward(forward, *blocks)

    def pull(g: Adjoint) -> tuple[Operand, ...]:
        if backward is not None:
            return written_backward(backward, carried, blocks[1], blocks[2], g)
        whole, of_rows, ended, _ = called(body.kernels[in_rows], carried, rows, shared, g)
        if has_guards(body.program(in_rows)):  # its own guards: all others have held forward
            require(np.equal(ended, 0.0))
        return whole[: body.sizes.n], of_rows, whole[history.size :]

    return history, pull


# The derivative of a recursion is a linear one: t' = (dc'/dc) t + the slope along the direction.
@scan_history.tangent
def _(
    r: Operand, start: Operand, rows: Operand, shared: Operand, *, body: Body, in_rows: bool
) -> tuple[Linear, ...]:
    before = r[:-1, : body.sizes.n]

    def along(which: int, t: Operand) -> Result:
        given = [before, rows, t] if which == 1 else [before, rows]
        begin = t if which == 0 else np.zeros(body.sizes.n)
        both = np.concatenate([shared, t]) if which == 2 else shared
        return scan_history(
            begin, np.concatenate(given, axis=1), both, body=body.along(which), in_rows=True
        )

    return tuple(partial(along, which) for which in range(3))


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
    """A loop that carries something from step to step, as one operation.

    It computes, on structures of arrays::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x, *args)
            ys.append(y)
        return carry, np.stack(ys)

    Parameters
    ----------
    f : callable
        ``f(carry, x, *args)`` returns a pair: what is carried on, with the structure and shapes of
        `init`, and what is kept of the step: a structure of numbers, or None. Written in NumPy; it
        must compute the same operations at every step, and all variables that it depends on must be
        among its arguments.
    init : structure of array_like
        What is carried into the first step: a scalar or an array, or lists, tuples, dicts and named
        tuples of them, to any depth.
    xs : structure of array_like, shape (T, ...)
        What the steps take, in rows. If it is None, each step takes None, and `length` is the
        number of steps.
    *args
        Further arguments of `f`. Scalars and arrays in them may be variables, to any depth of
        lists, tuples and dicts.
    length : int, keyword only
        The number of steps T; at least 1.
    reverse : bool, keyword only
        Whether the last row of `xs` comes first; what is kept stands beside its row.
    checkpoints : int, keyword only
        Keep what is carried only after every so many steps, and compute the steps between again on
        the way back [2]_. This saves memory, and takes about a third more time. The square root of
        T is a good choice. By default every step is kept.

    Returns
    -------
    carry : structure
        What is carried after the last step; structured as `init`.
    ys : structure of ndarray or VarMat, shape (T, ...)
        What was kept of the steps, in rows; None if `f` keeps None.

    Raises
    ------
    ShapeError
        If `f` carries on another structure or other shapes than those of `init`; if the rows of
        `xs` and `length` disagree.
    DomainError
        If there is no step. Errors of `f` get a note that names the step.
    TapeError
        If `f` uses variables besides its arguments, or reads the value of one.
    TypeError
        If `f` does not return a pair.

    Notes
    -----
    `f` is recorded at the first step, as by `varmat.recorded`: a program of its values, which runs
    forward, and one of its contributions to adjoints, which runs backwards. With the native runner
    there is no Python between the steps. A step for which the recording is not valid is evaluated
    as it is written. All numbers of `init` and `xs` reach `f` as floating-point variables, those of
    integer arrays too. Second derivatives are loops over the derivative of `f`. Arguments and
    results are those of JAX's function of this name [1]_.

    Whatever `f` reads besides its arguments is read once for each call.

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
        raise DomainError(f"{name}: checkpoints is {checkpoints!r}, but must be positive!")
    inner = Inner(name, f, args)
    carried = _leaves(name, "init", init)
    columns, count = _columns(name, xs, length)
    shared = [to_varmat(x) if isinstance(x, MatVar) else x for x in inner.leaves]
    row = [_number(x[-1 if reverse else 0]) for x in map(value_now, columns)]
    kept: list[Operand] = []

    def of_leaves(
        carried: Leaves, row: Leaves, shared: Leaves
    ) -> tuple[list[Operand], list[Operand]]:
        pair = inner((rebuilt(init, carried), None if xs is None else rebuilt(xs, row)), shared)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"{name}: f returns a {type(pair).__name__}, but must return a pair: what is "
                "carried on, and what is kept of the step!"
            )
        after, y = pair
        if _nesting(after) != _nesting(init):
            raise ShapeError(
                f"{name}: what f carries on is nested in another way than init, but must be nested "
                "alike!"
            )
        kept[:] = [y]
        return leaves_of(after), [] if y is None else leaves_of(y)

    body = Body(name, of_leaves, [*map(value_now, carried)], row, [*map(value_now, shared)])
    start = _joined([np.reshape(x, (np.size(value_now(x)),)) for x in carried])
    rows = _joined(
        [np.reshape(x, (count, n)) for x, n in zip(columns, body.sizes.rows, strict=True)], count
    )
    given = _joined([np.reshape(x, (np.size(value_now(x)),)) for x in shared])
    last, steps = _run(
        body, start, rows[::-1] if reverse else rows, given, is_differentiable(columns), checkpoints
    )
    (pattern,) = kept
    ys = (
        None
        if pattern is None
        else rebuilt(pattern, body.leaves(3, steps[::-1] if reverse else steps, count))
    )
    return rebuilt(init, body.leaves(0, last)), ys


def _run(
    body: Body,
    start: Operand,
    rows: Operand,
    shared: Operand,
    in_rows: bool,
    checkpoints: int | None,
) -> tuple[Operand, Operand]:
    """What is carried after the last step, and what is kept of all steps, in rows."""
    n, k, count = body.sizes.n, body.sizes.k, np.shape(rows)[0]
    pieces = 0 if checkpoints is None else count // checkpoints
    if checkpoints is None or pieces < 2:
        history = scan_history(start, rows, shared, body=body, in_rows=in_rows)
        return history[-1, :n], history[1:, n:]

    # A loop over pieces, each of which is a loop.
    def piece(carried: Leaves, rows: Leaves, shared: Leaves) -> tuple[list[Operand], list[Operand]]:
        history = scan_history(carried[0], rows[0], shared[0], body=body, in_rows=True)
        return [history[-1, :n]], [np.reshape(history[1:, n:], (size * k,))]

    size, q = checkpoints, body.sizes.q
    whole = pieces * size
    first = [np.array(value_now(x)) for x in (start, rows[:size], shared)]
    outer = Body(body.name, piece, *[[x] for x in first])
    blocks = np.reshape(rows[:whole], (pieces, size * q))
    history = scan_history(start, blocks, shared, body=outer, in_rows=in_rows)
    last, steps = history[-1, :n], np.reshape(history[1:, n:], (whole, k))
    if whole < count:
        last, rest = _run(body, last, rows[whole:], shared, in_rows, None)
        steps = np.concatenate([steps, rest])
    return last, steps


def _number(x: Operand) -> Result:
    """A row as a float or an array."""
    return np.array(x) if np.ndim(x) else float(x)


def _nesting(tree: Any) -> Result:
    """The structure without the shapes."""
    return structure_of(map_leaves(lambda *_: 0.0, tree))


def _leaves(name: str, title: str, tree: Any) -> list[Operand]:
    """The leaves as variables, floats and float64 arrays; other leaves are refused."""
    found: list[Operand] = []

    def add(leaf: Operand, path: str) -> None:
        leaf = to_varmat(leaf) if isinstance(leaf, MatVar) else leaf
        found.append(
            leaf if isinstance(leaf, ArrayMethods) else data(leaf, f"{name}: {title}{path}")
        )

    map_leaves(add, tree)
    return found


def _columns(name: str, xs: Operand, length: int | None) -> tuple[list[Operand], int]:
    """The leaves of `xs`, with time along the first axis, and the number of steps."""
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


def _joined(parts: list[Operand], count: int | None = None) -> Result:
    """Join vectors end to end, or matrices of `count` rows side by side."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0) if count is None else np.empty((count, 0))
    return np.concatenate(parts, axis=-1) if parts else nothing
