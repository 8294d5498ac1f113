"""Reading and assigning parts of a `VarMat`.

A basic index gives a view, which adds no entry to the tape; any other index gives one gather. An
element is a `Var`. Assignment writes into the variable, and its entry keeps the overwritten values.
In the reverse pass the entry hands the adjoint of the part to the source, sets it to zero, and puts
the old values back, so that rules of earlier entries see the values they were computed with.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.data import data, refuse_masks_and_matrices
from varmat.core.dispatch import Standing
from varmat.core.errors import ShapeError, TapeError
from varmat.core.tape import ALWAYS, Rule, join
from varmat.core.variables import ARRAYS, VARIABLES, Var, VarMat, View, make_result, make_view, new
from varmat.plain_arrays import apart, is_basic, last_writers

if TYPE_CHECKING:
    from varmat.typing import Function, Index, Operand

float64 = np.float64


def getitem(self: VarMat, index: object) -> Operand:
    """Index like NumPy: return views for basic indices, one gather for others."""
    val = self._val[index]
    kind = type(index)
    if kind is slice or (type(val) is not float64 and val.ndim and is_basic(index)):
        return make_view(self, itemgetter(index), val)
    tape = self._tape.top
    if kind is int:  # an element of a vector
        result: Operand = new(Var)
        result._val, result._adj, result._tape = float(val), None, tape
        tape.append((ELEMENT, result, self, index))
    else:
        result = make_result(val, tape)
        tape.append((GATHER, result, self, frozen(index)))
    return result


def _element_reverse(result: Var, x: VarMat, index: Index) -> None:
    try:  # a part of a read-only adjoint may be a copy
        (x._adj if type(x) is VarMat else x._writable_adjoint())[index] += result._adj
    except (TypeError, ValueError):  # the adjoint is None or read-only
        x._writable_adjoint()[index] += result._adj


def _read_again(_: object, x: Operand, index: Index) -> Operand:
    return x[index]


ELEMENT = Rule("getitem", _element_reverse, None, _read_again)
GATHER = Rule("getitem", lambda result, x, index: x._scatter(index, result._adj), None, _read_again)


class AssignmentBatch(list[Any]):
    """Assignments into one variable with nothing recorded in between, each as ``(index, source,
    overwritten values)``.
    """

    __slots__ = ("target", "undone")

    def __init__(self, target: VarMat) -> None:
        self.target, self.undone = target, False

    def undo(self) -> None:
        """Put back what was overwritten. Doing it again, after an interruption, changes nothing."""
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


def setitem(self: VarMat, index: Index, source: Operand) -> None:
    """Assign like NumPy, recorded: ``A[index] = source`` for variables and for data."""
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
                f"a {kind.__name__} cannot be assigned into a VarMat; make both of the same "
                "kind, with np.zeros_like(variable) for an array to write into"
            )
        source = new_values = np.copy(data(source, "the assigned value"))
    overwritten = values[index]
    if type(index) is not int or type(overwritten) is not float64:
        if not is_basic(index):
            index = frozen(index)
        elif isinstance(source, View) and source.parent is self and index_of(source.how) == index:
            return  # x[index] += ... ends so, and the values are there already
        overwritten = overwritten.copy()
        if isinstance(source, View) or isinstance(self, View):
            new_values = apart(new_values, values)
    try:
        values[index] = new_values
    except ValueError:
        if values.flags.writeable:
            raise ShapeError(
                f"setitem: the assigned value has shape {np.shape(new_values)}, but the part "
                f"assigned to has shape {overwritten.shape}"
            ) from None
        borrowed: Any = self.root if isinstance(self, View) else self
        if borrowed._val.flags.writeable:  # a view that NumPy makes read-only
            raise
        borrowed.own()
        setitem(self, index, source)
        return
    last = tape[-1][3] if tape else None
    if type(last) is not AssignmentBatch or last.target is not self:
        last = AssignmentBatch(self)
        tape.append((ASSIGN, ALWAYS, self, last))
        tape.assignments.append(last)
    last.append((index, source, overwritten))


def index_of(how: Function) -> Index:
    """Return the index that `how` takes of the parent; NotImplemented if it is not an index."""
    return how.__reduce__()[1][0] if type(how) is itemgetter else NotImplemented


def frozen(index: object) -> Index:
    """Copy arrays and lists in an index, so that nothing else can change them."""
    if is_basic(index):
        return index
    if isinstance(index, tuple):
        return tuple(map(frozen, index))
    refuse_masks_and_matrices(index, "getitem: the index")
    # An empty list holds indices; NumPy would make an array of floats of it.
    return np.array(index, np.intp if isinstance(index, list) and not np.size(index) else None)


def _assign_reverse(_: Any, target: VarMat, assignment: AssignmentBatch) -> None:
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
