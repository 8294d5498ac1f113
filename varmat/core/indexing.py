"""Reading and assigning parts of a `VarMat`.

A basic index gives a view (no entry), any other one gather; an element is a `Var`. Assignment writes into the variable: its
entry keeps the overwritten values, and in the reverse pass hands the adjoint of the part to what was assigned, sets it to
zero and puts the old values back, so that rules of earlier entries see the values they were computed with.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.errors import ShapeError, TapeError
from varmat.core.tape import ALWAYS, Rule, join
from varmat.core.variables import VARIABLES, Borrowed, Var, VarMat, View, data, make_result, make_view, new

_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})


def is_basic(index: Any) -> bool:
    """Whether NumPy answers this index with a view."""
    items = index if type(index) is tuple else (index,)
    return all(type(i) in _BASIC or isinstance(i, np.integer) for i in items)


def getitem(self: VarMat, index: Any) -> Any:
    """NumPy's indexing: views for basic indices, one gather for others."""
    val = self._val[index]
    kind = type(index)
    if kind is slice or (type(val) is np.ndarray and val.ndim and is_basic(index)):
        return make_view(self, itemgetter(index), val)
    tape = self._tape.top
    if kind is int:  # an element of a vector
        result: Any = new(Var)
        result._val = float(val)
        result._adj = None
        result._tape = tape
        tape.append((_ELEMENT, result, self, index))
    else:
        result = make_result(val, tape)
        tape.append((_GATHER, result, self, _frozen(index)))
    return result


def _element_reverse(result: Any, x: Any, index: Any) -> None:
    a = x._adj
    if a is None or not a.flags.writeable:
        a = x._writable_adjoint()
    a[index] += result._adj


def _gather_reverse(result: Any, x: Any, index: Any) -> None:
    scatter_add(x._writable_adjoint(), index, result._adj)


def scatter_add(a: np.ndarray, index: Any, c: Any) -> None:
    """Add `c` to ``a[index]``, also where `index` names an element several times."""
    if type(index) is np.ndarray and index.dtype.kind in "iu" and a.ndim == 1:
        places = np.where(index < 0, index + a.size, index).ravel()
        a += np.bincount(places, weights=np.ravel(c), minlength=a.size)
    elif is_basic(index) or (type(index) is np.ndarray and index.dtype == bool):
        a[index] += c
    else:
        np.add.at(a, index, c)


_ELEMENT = Rule("getitem", _element_reverse)
_GATHER = Rule("getitem", _gather_reverse)


class Assignment:
    """One assignment into a variable: what it overwrote, and whether the reverse pass has put that back."""

    __slots__ = ("index", "other", "source", "target", "undone")

    def __init__(self, target: VarMat, index: Any, source: Any, overwritten: Any) -> None:
        self.target = target
        self.index = index
        self.source = source
        self.other = overwritten
        self.undone = False

    def swap(self) -> None:
        """Exchange the values in place with the other ones."""
        values = self.target._val
        there = np.array(values[self.index])
        values[self.index] = self.other
        self.other = there
        self.undone = not self.undone

    def redo(self) -> None:
        """Make the assignment again if the reverse pass undid it, so that the variable has the values the user gave it."""
        if self.undone:
            self.swap()


def setitem(self: VarMat, index: Any, source: Any) -> None:
    """NumPy's assignment, recorded: ``A[index] = source`` for variables and for data."""
    tape = self._tape.top
    if type(source) in VARIABLES:
        tape = join(self._tape, source._tape)
        new_values = source._val
    elif isinstance(source, ArrayMethods):
        raise TypeError(f"a {type(source).__name__} cannot be assigned into a VarMat; make both of one kind")
    else:
        new_values = data(source, "the assigned value")
    if tape is not self._tape:
        _ = tape.arena  # stale?
        raise TapeError("a variable of an outer scope cannot be assigned to in a nested scope; copy it first: x = x.copy()")
    root = self._root if isinstance(self, View) else self
    if type(root) is Borrowed:
        root.own()
    overwritten = np.array(self._val[index])
    index = _frozen(index)
    try:
        if np.ndim(new_values) > overwritten.ndim:
            raise ValueError
        self._val[index] = new_values
    except ValueError:
        raise ShapeError(
            f"setitem: the assigned value has shape {np.shape(new_values)}, but the part assigned to has shape {overwritten.shape}"
        ) from None
    assignment = Assignment(self, index, source if type(source) in VARIABLES else None, overwritten)
    tape.append((_ASSIGN, ALWAYS, assignment, None))
    tape.assignments.append(assignment)


def _frozen(index: Any) -> Any:
    """A copy of an index with arrays or lists in it, which the caller may change later."""
    if isinstance(index, tuple):
        return tuple(_frozen(i) for i in index)
    return np.array(index) if isinstance(index, (list, np.ndarray)) else index


def _assign_reverse(_: Any, assignment: Assignment, __: Any) -> None:
    target, index, source = assignment.target, assignment.index, assignment.source
    if target._adj is not None:
        a = target._writable_adjoint()
        if source is not None:
            c = np.array(a[index])
            if not is_basic(index):
                c = _last_writers(a.shape, index, c)
            a[index] = 0.0
            source._take(c)
        else:
            a[index] = 0.0
    assignment.swap()


def _last_writers(shape: tuple[int, ...], index: Any, c: np.ndarray) -> np.ndarray:
    """Zero for those elements of the source that a repeated index overwrote within the same assignment."""
    writer = np.empty(shape, dtype=np.intp)
    order = np.arange(c.size).reshape(c.shape)
    writer[index] = order
    return np.where(writer[index] == order, c, 0.0)


_ASSIGN = Rule("setitem", _assign_reverse)

VarMat.__getitem__ = getitem
VarMat.__setitem__ = setitem
