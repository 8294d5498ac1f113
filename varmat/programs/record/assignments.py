"""A recording without its assignments: entries read the values that were written, not the array.

A loop that fills an array, ``h[t] = f(h[t - 1])``, is recorded as writes and reads of one variable.
Here each read is replaced by what was last written where it reads. So a recurrence passes on
values, and an array is put together, by one entry, when it is read as a whole. Such an entry is
``(ASSIGN, result, sources, layout)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.dual import value_now
from varmat.core.indexing import ASSIGN, ELEMENT, GATHER
from varmat.core.variables import VARIABLES, Var, VarMat, View, make_view, new, own_tape, root_of

if TYPE_CHECKING:
    from varmat.core.indexing import AssignmentBatch
    from varmat.core.tape import Rule
    from varmat.core.variables import Variable
    from varmat.typing import Entry, Operand

# A part of an array with more sources than this is put together once, and then is a source itself.
_FEW = 16


def stand_in(x: Variable) -> Operand:
    """Make a variable like another one."""
    stand: Operand = new(VarMat if x.shape else Var)
    stand._val, stand._adj, stand._tape = value_now(x), None, own_tape(x)
    return stand


def rerooted(x: object, root: Operand) -> Operand:
    """Take the same view of another variable."""
    if not isinstance(x, View):
        return root
    return make_view(rerooted(x.parent, root), x.how, value_now(x))


class _Array:
    """A variable into which parts were written.

    Attributes
    ----------
    sources : list
        The variable as it was, and all sources that were assigned to it.
    source : ndarray of int
        For each element of the flattened array: the number of its source.
    place : ndarray of int
        And its index in that source, flattened.
    """

    def __init__(self, variable: Variable) -> None:
        self.numbers = np.arange(variable.size).reshape(variable.shape)
        self.reset(variable)

    def reset(self, variable: Variable) -> None:
        """Make one variable the source of all elements."""
        self.sources = [variable]
        self.source = np.zeros(variable.size, np.int64)
        self.place = np.arange(variable.size)

    def places(self, x: object) -> np.ndarray:
        """Return the indices of the elements of the variable, or of a view of it."""
        return x.how(self.places(x.parent)) if isinstance(x, View) else self.numbers

    def write(self, indices: np.ndarray, source: Operand) -> None:
        shape = source.shape if type(source) in VARIABLES else np.shape(source)
        # NumPy drops leading axes of length one.
        shape = shape[max(len(shape) - np.ndim(indices), 0) :]
        self.source[indices] = len(self.sources)
        self.place[indices] = np.arange(int(np.prod(shape))).reshape(shape)
        self.sources.append(source)

    def only_source(self, indices: np.ndarray) -> Operand | None:
        """Return the variable whose elements, in order, are at some indices, or None."""
        if not np.size(indices):
            return None
        source = self.sources[np.ravel(self.source[indices])[0]]
        if type(source) not in VARIABLES or source.shape != np.shape(indices):
            return None
        is_all = np.all(
            self.source[indices] == np.ravel(self.source[indices])[0]
        ) and np.array_equal(np.ravel(self.place[indices]), np.arange(source.size))
        return source if is_all else None


class Assignments:
    """The entries of a recording, rewritten.

    Parameters
    ----------
    entries : iterable of tuple
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: list[Entry] = []
        # Both by id of a variable: arrays that were written into, and what elements read from them
        # are.
        self._arrays: dict[int, _Array] = {}
        self._elements: dict[int, Operand] = {}
        for entry in entries:
            self._add(*entry)

    def _add(self, rule: Rule, result: Operand, x: Operand, y: Any) -> None:
        if rule is ASSIGN:
            self._assign(x, y)
        elif not self._arrays:
            self.entries.append((rule, result, x, y))
        elif (rule is ELEMENT or rule is GATHER) and id(root_of(x)) in self._arrays:
            self._read(rule, result, x, y)
        else:
            self.entries.append((rule, result, self.now(x), self.now(y)))

    def _assign(self, target: object, assignments: AssignmentBatch) -> None:
        root = root_of(target)
        for index, source, _ in assignments:
            written = self.now(source)
            array = self._arrays.get(id(root))
            if array is None:
                array = self._arrays[id(root)] = _Array(root)
            array.write(array.places(target)[index], written)

    def _read(self, rule: Rule, result: Variable, x: Variable, index: Any) -> None:
        """Read elements of an array."""
        array = self._arrays[id(root_of(x))]
        indices = array.places(x)[index]
        source = array.only_source(indices)
        if source is not None and type(result) is Var:
            self._elements[id(result)] = source
        elif self._is_old(array, indices):
            self.entries.append((rule, result, rerooted(x, array.sources[0]), index))
        elif part := self._part_of_one(array, indices):
            self.entries.append((rule, result, *part))
        else:
            self._collect(array, indices, result)

    def now(self, x: Any) -> Any:
        """Replace variables in operands and settings by the values that they have now."""
        kind = type(x)
        if kind in VARIABLES:
            array = self._arrays.get(id(root_of(x)))
            return self._elements.get(id(x), x) if array is None else self._array_now(x, array)
        if kind is tuple or kind is list:
            result = kind(map(self.now, x))
            return result if any(a is not b for a, b in zip(result, x, strict=True)) else x
        return dict(zip(x, map(self.now, x.values()), strict=True)) if kind is dict else x

    def _array_now(self, x: object, array: _Array) -> Operand:
        indices = array.places(x)
        source = array.only_source(indices)
        if source is not None:
            return source
        if not self._is_old(array, indices):
            if isinstance(x, View):
                part = self._collect(array, indices, stand_in(x))
                if np.unique(array.source[indices]).size > _FEW:
                    array.write(indices, part)
                return part
            root = root_of(x)
            array.reset(self._collect(array, array.numbers, stand_in(root)))
        return rerooted(x, array.sources[0])

    @staticmethod
    def _part_of_one(array: _Array, indices: np.ndarray) -> tuple[Operand, Any] | None:
        """Return the array variable that was assigned to all of some indices, and indices in it."""
        number = np.ravel(array.source[indices])[:1]
        source: Operand = array.sources[int(number[0])] if number.size else None
        if type(source) not in VARIABLES or not source.shape:
            return None
        if np.any(array.source[indices] != number):
            return None
        index = np.unravel_index(array.place[indices], source.shape)
        return source, index if np.ndim(indices) else tuple(map(int, index))

    @staticmethod
    def _is_old(array: _Array, indices: np.ndarray) -> bool:
        """Return whether nothing was assigned to some indices."""
        return not np.any(array.source[indices])

    def _collect(self, array: _Array, indices: np.ndarray, result: Variable) -> Variable:
        """Make an entry that puts parts together."""
        indices = np.ravel(indices)
        order = np.argsort(array.source[indices], kind="stable")
        numbers, starts = np.unique(array.source[indices][order], return_index=True)
        targets = np.split(order, starts[1:])
        layout = [(target, array.place[indices[target]]) for target in targets]
        sources = [array.sources[number] for number in numbers]
        self.entries.append((ASSIGN, result, sources, layout))
        return result
