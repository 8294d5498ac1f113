"""The arguments of many calls of a recorded function, and their results in rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

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
from varmat.typing import Function, Operand


class Mapped(NamedTuple):
    """Stands for a tree of data that becomes arguments of a program. In the key of a recording, its
    structure stands for it.
    """

    tree: ArgumentTree

    @staticmethod
    def key(x: Operand) -> Operand:
        return Mapped(structure_of(x.tree)) if type(x) is Mapped else x


class ArgumentRows:
    """The arguments of many calls: some have a row for each call, the others are the same for all.

    Parameters
    ----------
    name : str
        What the user called.
    args : tuple
    in_axes : int, None or tuple of them
        As in ``jax.vmap``.

    Attributes
    ----------
    count : int
        Of calls.
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

        def moved(leaf: Operand, title: str, axis: int) -> np.ndarray:
            shape = np.shape(leaf)
            if not -len(shape) <= axis < len(shape):
                raise ShapeError(
                    f"{name}: {title} has shape {shape}, but must have the axis {axis}, because "
                    f"in_axes is {in_axes!r}!"
                )
            first, length = next(iter(lengths.items()), (title, shape[axis]))
            if shape[axis] != length:
                raise ShapeError(
                    f"{name}: {title} has length {shape[axis]} along the axis {axis}, but must "
                    f"have length {length}, as {first}!"
                )
            lengths.setdefault(title, length)
            return np.ascontiguousarray(np.moveaxis(leaf, axis, 0))

        for i, axis in enumerate(axes):
            if axis is None:
                continue
            if not isinstance(axis, (int, np.integer)):
                raise TypeError(
                    f"{name}: in_axes is {in_axes!r}, but must be an integer, None or a tuple of "
                    "them!"
                )
            title = f"argument {i + 1}"
            self.mapped[i] = map_leaves(
                lambda x, path, title=title, axis=axis: moved(x, title + path, axis),  # type: ignore[misc]
                _plain(name, title, args[i]),
            )
        if not lengths:
            raise ValueError(
                f"{name}: in_axes is {in_axes!r}, but must have an axis of an argument, along "
                "which there is a row for each call!"
            )
        (self.count, *_) = lengths.values()

    def call(self, k: int) -> list[Operand]:
        """The arguments of one call."""
        if not self.count:
            raise ShapeError(
                f"{self.name}: there is no row, but must be one at least, because the shapes of "
                "the results are those of a call!"
            )
        given = list(self.args)
        for i, tree in self.mapped.items():
            given[i] = row_of(tree, k)
        return given

    def first(self, operands: Sequence[int]) -> tuple[list[Operand], list[np.ndarray]]:
        """The arguments of the first call, those that are data with rows as `Mapped`, and the rows
        of these. The arguments at the positions `operands` are not data.
        """
        data = [i for i in self.mapped if i not in operands]
        call = [Mapped(x) if i in data else x for i, x in enumerate(self.call(0))]
        return call, self.leaves(*data)

    def leaves(self, *positions: int) -> list[np.ndarray]:
        """The leaves of some arguments, with a row for each call."""
        found = []
        for i in positions:
            if i in self.mapped:
                found += leaves_of(self.mapped[i])
            else:
                plain = leaves_of(plain_tree(self.name, f"argument {i + 1}", self.args[i]))
                found += [repeated(x, self.count) for x in plain]
        return found

    def results(
        self, run: Callable[[ArgumentRows], tuple[ArgumentTree, np.ndarray]], function: Function
    ) -> ArgumentTree:
        """The results of all calls, in rows.

        Parameters
        ----------
        run : callable
            Returns the results and for each call whether its result holds; raises `ElsewhereError`
            if there is no program.
        function : callable
            What to call where a result does not hold.
        """
        try:
            found, holds = run(self)
        except ElsewhereError:
            found = rows_like(self.count, function(*self.call(0)))
            holds = np.zeros(self.count, bool)
        for k in np.flatnonzero(~holds).tolist():
            made = leaves_of(function(*self.call(k)))
            for place, x in zip(leaves_of(found), made, strict=True):
                place[k] = x
        return found


def _plain(name: str, title: str, x: Operand) -> ArgumentTree:
    """An argument with rows, of plain numbers: a list of numbers is an array."""
    if isinstance(x, list) and not any(map(np.ndim, leaves_of(x))):
        return data(x, f"{name}: {title}")
    return plain_tree(name, title, x)


def repeated(x: Operand, count: int) -> np.ndarray:
    """Rows that are all the same memory."""
    return np.broadcast_to(np.ascontiguousarray(x).reshape(np.shape(x)), (count, *np.shape(x)))


def run_rows(
    run: Any, arguments: list[np.ndarray], template: ArgumentTree, workers: int | None
) -> tuple[Any, np.ndarray]:
    """The outputs of a program at rows of arguments, for each output but the first, which is zero;
    and for each row whether the program reached its end and all outputs are finite.
    """
    count = len(arguments[0])
    status, found = np.empty(count), rows_like(count, template)
    run.map(arguments, [status, *leaves_of(found)], workers)
    holds = np.isfinite(status)
    for x in leaves_of(found):
        holds &= np.isfinite(x).all(axis=tuple(range(1, x.ndim)))
    return found, holds


def rows_like(count: int, template: ArgumentTree) -> ArgumentTree:
    """Memory for results of the shapes of `template`, in rows."""
    return map_leaves(lambda x, _: np.empty((count, *np.shape(x))), template)


def row_of(tree: ArgumentTree, k: int) -> ArgumentTree:
    """Floats and arrays: a row of all leaves."""
    return map_leaves(lambda x, _: x[k] if x.ndim > 1 else float(x[k]), tree)
