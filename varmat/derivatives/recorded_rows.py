"""The arguments of recorded functions: copies, comparisons, and many calls in rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.errors import ShapeError
from varmat.core.variables import data
from varmat.derivatives.structure import (
    Arguments,
    ArgumentTree,
    leaves_of,
    map_leaves,
    plain_tree,
    structure_of,
)
from varmat.programs.ir.program import ElsewhereError
from varmat.typing import Function, Operand, Shape, Threads

# Bytes up to which a copy of them is compared faster than the array.
_FEW_BYTES = 1 << 16
# Rows up to which it costs less to run all again, if a value is not finite, than to look at the
# arguments first.
_FEW_ROWS = 16
_SAME_IF_EQUAL = (int, float, str, bool, type(None))


class Mapped(NamedTuple):
    """Stands for a tree of data that becomes arguments of a program. In the key of a recording, its
    structure stands for it.
    """

    tree: ArgumentTree

    @staticmethod
    def key(x: object) -> Operand:
        return Mapped(structure_of(x.tree)) if type(x) is Mapped else x


def copied(
    x: Operand, copies: dict[int, np.ndarray] | None = None, *, is_new: bool = True
) -> Operand:
    """Return an argument as it is now, because arrays, lists and dicts may be changed later. Copy
    an array once; unless `is_new`, replace it only if a copy exists.
    """
    copies = {} if copies is None else copies
    if type(x) in (tuple, list):
        return type(x)([copied(item, copies, is_new=is_new) for item in x])
    if type(x) is np.ndarray and not x.dtype.hasobject:
        if is_new and id(x) not in copies:
            copies[id(x)] = x.copy(order="K")
        return copies.get(id(x), x)
    if type(x) is dict:
        return {key: copied(item, copies, is_new=is_new) for key, item in x.items()}
    return x


def is_same(x: Operand, y: Operand) -> bool:
    if type(x) is np.ndarray and type(y) is np.ndarray and not x.dtype.hasobject:
        if x.nbytes <= _FEW_BYTES:
            return (x.shape, x.dtype, x.tobytes()) == (y.shape, y.dtype, y.tobytes())
        return bool(x.dtype == y.dtype and np.array_equal(_bits(x), _bits(y)))
    if x is y:
        return True
    if type(x) is Mapped and type(y) is np.ndarray:
        return bool(x.tree == y.shape and y.dtype == np.float64)
    if type(x) is not type(y):
        return False
    if type(x) in (tuple, list, Mapped):
        return len(x) == len(y) and all(map(is_same, x, y))
    if type(x) is dict:
        return list(x) == list(y) and all(map(is_same, x.values(), y.values()))
    # 0.0 equals -0.0, and a day equals 24 hours: equal values must look the same too.
    comparable = type(x) in _SAME_IF_EQUAL or (isinstance(x, np.generic) and x.dtype == y.dtype)
    return comparable and bool(x == y) and bool(x or repr(x) == repr(y))


def _bits(x: np.ndarray) -> np.ndarray:
    """View an array of floats as integers, because 0.0 equals -0.0 and nan equals nothing."""
    return x.view(np.int64) if x.dtype == np.float64 else x


def check_threads(name: str, executor: Threads) -> None:
    """Raise for executors with workers other than threads."""
    if executor in (None, "threads", "serial"):
        return
    from concurrent.futures import ThreadPoolExecutor

    if not isinstance(executor, ThreadPoolExecutor):
        raise TypeError(
            f"{name}: executor is {executor!r}, but must be a ThreadPoolExecutor, "
            '"threads" or "serial"!'
        )


class ArgumentRows:
    """The arguments of many calls: some have a row for each call, the others are the same for all.

    Parameters
    ----------
    name : str
        The name of the function that the user called.
    args : tuple
    in_axes : int, None or tuple of them
        As in ``jax.vmap``.

    Attributes
    ----------
    count : int
        The number of calls.
    mapped : dict
        From the positions of arguments with rows to trees whose leaves have the rows first, each in
        one piece.
    """

    def __init__(self, name: str, args: Arguments, in_axes: Any) -> None:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ValueError(
                f"{name}: in_axes has {len(axes)} entries, but must have {len(args)}, one for each "
                "argument!"
            )
        self.name, self.args, self.axes = name, args, axes
        self.mapped: dict[int, ArgumentTree] = {}
        lengths: dict[str, int] = {}

        def moved(axis: Any, title: str, leaf: Operand, path: str) -> np.ndarray:
            shape, title = np.shape(leaf), title + path
            if not -len(shape) <= axis < len(shape):
                raise ShapeError(
                    f"{name}: {title} has shape {shape}, but must have the axis {axis}, because "
                    f"in_axes is {in_axes!r}!"
                )
            lengths.setdefault(title, shape[axis])
            first, length = next(iter(lengths.items()))
            if shape[axis] != length:
                raise ShapeError(
                    f"{name}: {title} has length {shape[axis]} along the axis {axis}, but must "
                    f"have length {length}, as {first}!"
                )
            return np.ascontiguousarray(np.moveaxis(leaf, axis, 0))

        for i, axis in enumerate(axes):
            if axis is None:
                continue
            if not isinstance(axis, (int, np.integer)):
                raise TypeError(
                    f"{name}: in_axes is {in_axes!r}, but must be an integer, None or a tuple of "
                    "them!"
                )
            x, title = args[i], f"argument {i + 1}"
            is_list = isinstance(x, list) and not any(map(np.ndim, leaves_of(x)))
            plain = data(x, f"{name}: {title}") if is_list else plain_tree(name, title, x)
            self.mapped[i] = map_leaves(partial(moved, axis, title), plain)
        if not lengths:
            raise ValueError(
                f"{name}: in_axes is {in_axes!r}, but must name an axis of an argument that "
                "has a row for each call!"
            )
        (self.count, *_) = lengths.values()

    def call(self, k: int) -> list[Operand]:
        """Return the arguments of one call."""
        if not self.count:
            raise ShapeError(
                f"{self.name}: there are no rows, but there must be at least one, because a call "
                "determines the shapes of the results!"
            )
        rows = {i: row_of(tree, k) for i, tree in self.mapped.items()}
        return [rows.get(i, x) for i, x in enumerate(self.args)]

    def first(self, operands: Sequence[int]) -> tuple[list[Operand], list[np.ndarray]]:
        """Return the arguments of the first call, where data with rows are `Mapped`, and the rows
        of these. The arguments at the positions `operands` are not data.
        """
        data = [i for i in self.mapped if i not in operands]
        call = [Mapped(x) if i in data else x for i, x in enumerate(self.call(0))]
        return call, self.leaves(*data)

    def leaves(self, *positions: int) -> list[np.ndarray]:
        """Return the leaves of some arguments, with a row for each call."""
        result = []
        for i in positions:
            if i in self.mapped:
                result += leaves_of(self.mapped[i])
            else:
                plain = leaves_of(plain_tree(self.name, f"argument {i + 1}", self.args[i]))
                # Rows that are all the same memory, in one piece.
                result += [
                    np.broadcast_to(np.array(x, order="C"), (self.count, *np.shape(x)))
                    for x in plain
                ]
        return result

    def results(
        self, run: Callable[[ArgumentRows], tuple[ArgumentTree, np.ndarray]], function: Function
    ) -> ArgumentTree:
        """Compute the results of all calls, in rows.

        Parameters
        ----------
        run : callable
            Returns the results and for each call whether its result holds; raises `ElsewhereError`
            if no program exists.
        function : callable
            The function to call where a result does not hold.
        """
        try:
            result, holds = run(self)
        except ElsewhereError:
            result = rows_like(self.count, function(*self.call(0)))
            holds = np.zeros(self.count, bool)
        for k in np.flatnonzero(~holds).tolist():
            output = leaves_of(function(*self.call(k)))
            for rows, x in zip(leaves_of(result), output, strict=True):
                rows[k] = x
        return result


def run_rows(
    run: Any,
    arguments: list[np.ndarray],
    template: ArgumentTree,
    executor: Threads,
    only_first: bool = False,
) -> tuple[np.ndarray, Any, np.ndarray]:
    """Return the first output of a program at rows of arguments, the other outputs, and for each
    row whether the program reached its end and all outputs, or `only_first` the first, are finite.
    """
    count = len(arguments[0]) if arguments else 1
    first, result = np.empty(count), rows_like(count, template)
    run.map(arguments, [first, *leaves_of(result)], executor)
    holds = np.isfinite(first)
    for x in [] if only_first else leaves_of(result):
        holds &= np.isfinite(x).all(axis=tuple(range(1, x.ndim)))
    return first, result, holds


def at_points(
    runner_of: Callable[[Shape], Any], args: Arguments, executor: Threads
) -> tuple[np.ndarray, np.ndarray] | None:
    """Compute the values and gradients at a few rows of a single array; return None unless they
    were recorded, and all values are finite.
    """
    (x,) = args if len(args) == 1 else (None,)
    if not (type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim and x.flags.c_contiguous):
        return None
    if len(x) > _FEW_ROWS:
        return None
    run = runner_of(x.shape[1:])
    if run is None:
        return None
    values, gradients = np.empty(len(x)), np.empty(x.shape)
    run.map([x], [values, gradients], executor)
    return (values, gradients) if np.isfinite(values).all() else None


def rows_like(count: int, template: ArgumentTree) -> ArgumentTree:
    """Allocate memory for results of the shapes of `template`, in rows."""
    return map_leaves(lambda x, _: np.empty((count, *np.shape(x))), template)


def row_of(tree: ArgumentTree, k: int) -> ArgumentTree:
    """Take a row of all leaves, as floats and arrays."""
    return map_leaves(lambda x, _: x[k] if x.ndim > 1 else float(x[k]), tree)
