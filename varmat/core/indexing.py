"""Reading and assigning parts of a `VarMat`.

A basic index gives a view (no entry), any other one gather; an element is a `Var`. Assignment
writes into the variable: its entry keeps the overwritten values, and in the reverse pass hands the
adjoint of the part to what was assigned, sets it to zero and puts the old values back, so that
rules of earlier entries see the values they were computed with."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import Standing
from varmat.core.errors import ShapeError, TapeError
from varmat.core.tape import ALWAYS, Rule, join
from varmat.core.variables import (
    ARRAYS,
    VARIABLES,
    Var,
    VarMat,
    View,
    data,
    make_result,
    make_view,
    new,
)
from varmat.plain_arrays import apart, is_basic, last_writers, scatter_add

float64 = np.float64


def getitem(self: VarMat, index: Any) -> Any:
    """NumPy's indexing: views for basic indices, one gather for others."""
    val = self._val[index]
    kind = type(index)
    if kind is slice or (type(val) is not float64 and val.ndim and is_basic(index)):
        return make_view(self, itemgetter(index), val)
    tape = self._tape.top
    if kind is int:  # an element of a vector
        result: Any = new(Var)
        result._val, result._adj, result._tape = float(val), None, tape
        tape.append((ELEMENT, result, self, index))
    else:
        result = make_result(val, tape)
        tape.append((GATHER, result, self, frozen(index)))
    return result


def _element_reverse(result: Any, x: Any, index: Any) -> None:
    try:  # part of a read-only adjoint may be a copy
        (x._adj if type(x) is VarMat else x._writable_adjoint())[index] += result._adj
    except (TypeError, ValueError):  # there is none, or a read-only one
        x._writable_adjoint()[index] += result._adj


def _read_again(_: Any, x: Any, index: Any) -> Any:
    return x[index]


ELEMENT = Rule("getitem", _element_reverse, None, _read_again)
GATHER = Rule(
    "getitem",
    lambda result, x, index: scatter_add(x._writable_adjoint(), index, result._adj),
    None,
    _read_again,
)


class Assignment(list[Any]):
    """Assignments into one variable with nothing recorded in between: ``(index, source, overwritten
    values)`` of each.
    """

    __slots__ = ("target", "undone")

    def __init__(self, target: VarMat) -> None:
        self.target, self.undone = target, False

    def undo(self) -> None:
        """Put back what was overwritten; after an interruption all of it once more, which ends in
        the same.
        """
        self.undone, values = True, self.target._val
        for index, _, overwritten in reversed(self):
            values[index] = overwritten

    def redo(self) -> None:
        """Make the assignments again if the reverse pass undid them, so that the variable has the
        values the user gave it.
        """
        if self.undone:
            values = self.target._val
            for index, source, _ in self:
                new_values = source._val if type(source) in VARIABLES else source
                values[index] = apart(new_values, values) if type(source) in ARRAYS else new_values
            self.undone = False


def setitem(self: Any, index: Any, source: Any) -> None:
    """NumPy's assignment, recorded: ``A[index] = source`` for variables and for data."""
    tape, kind, values, new_values = self._tape, type(source), self._val, source
    if tape.top is not tape:
        _ = tape.top.arena  # stale?
        raise TapeError(
            "a variable of an outer scope cannot be assigned to in a nested scope; copy it first: "
            "x = x.copy()"
        )
    if kind is Var or kind in VARIABLES:
        if source._tape is not tape:
            join(tape, source._tape)
        new_values = source._val
    elif kind is not float and kind is not int:
        if isinstance(source, Standing):
            setitem(self, index, source._settled)
            return
        if isinstance(source, ArrayMethods):
            raise TypeError(
                f"a {kind.__name__} cannot be assigned into a VarMat; make both of one kind, with "
                "np.zeros_like(variable) for an "
                "array to write into"
            )
        source = new_values = np.copy(data(source, "the assigned value"))
    overwritten = values[index]
    if type(index) is not int or type(overwritten) is not float64:
        if not is_basic(index):
            index = frozen(index)
        elif isinstance(source, View) and source._parent is self and index_of(source._how) == index:
            return  # x[index] += ... ends so, and the values are there already
        overwritten = overwritten.copy()
        if isinstance(source, View) or isinstance(self, View):
            new_values = apart(new_values, values)
    try:
        values[index] = new_values
    except ValueError:
        if values.flags.writeable:
            text = (
                f"the assigned value has shape {np.shape(new_values)}, but the part assigned "
                "to "
                f"has shape {overwritten.shape}"
            )
            raise ShapeError(f"setitem: {text}") from None
        getattr(self, "_root", self).own()  # it was borrowed
        setitem(self, index, source)
        return
    last = tape[-1][3] if tape else None
    if type(last) is not Assignment or last.target is not self:
        last = Assignment(self)
        tape.append((ASSIGN, ALWAYS, self, last))
        tape.assignments.append(last)
    last.append((index, source, overwritten))


def index_of(how: Any) -> Any:
    """The index with which a view is taken from its parent, if it is."""
    return how.__reduce__()[1][0] if type(how) is itemgetter else NotImplemented


def frozen(index: Any) -> Any:
    """An index in which what is not basic, as lists and what other libraries have, is arrays that
    nobody else can change.
    """
    if is_basic(index):
        return index
    if isinstance(index, tuple):
        return tuple(map(frozen, index))
    # An empty list is one of places, of which NumPy would make an array of floats.
    return np.array(index, np.intp if isinstance(index, list) and not np.size(index) else None)


def _assign_reverse(_: Any, target: Any, assignment: Assignment) -> None:
    if target._adj is None:
        assignment.undo()
        return
    assignment.undone = True
    a, values = target._writable_adjoint(), target._val
    for index, source, overwritten in reversed(assignment):
        c, kind = a[index], type(source)
        if type(c) is not float64 and kind in VARIABLES:
            c = c.copy() if is_basic(index) else last_writers(a.shape, index, c)
        a[index] = 0.0
        values[index] = overwritten
        if kind is Var and type(c) is float64:
            b = source._adj
            source._adj = float(c) if b is None else b + float(c)
        elif kind in VARIABLES:
            source._take(c)


ASSIGN = Rule("setitem", _assign_reverse)

VarMat.__getitem__, VarMat.__setitem__ = getitem, setitem  # type: ignore[assignment]
