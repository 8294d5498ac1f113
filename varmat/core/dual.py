"""Dual numbers: a value and its tangent, for forward mode and, over variables, for exact second
derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core import dispatch
from varmat.core.array_methods import ArrayMethods, Container
from varmat.core.data import data
from varmat.core.errors import ShapeError
from varmat.core.operators import InPlaceOperators, Operators
from varmat.core.tape import current_tape
from varmat.core.variables import VARIABLES, like, make_leaf
from varmat.plain_arrays import apart, is_basic, scalar_item

if TYPE_CHECKING:
    from varmat.typing import Linear, Operand, Settings, Shape

__all__ = ["Dual"]


_numbers = count()


class Level:
    """One direction of derivatives: of a run of a functional in forward mode, or of the duals made
    explicitly in one function.

    An operation differentiates in the direction of the newest level among its operands. Duals of
    other levels are constants to it and become parts of the result: values and tangents of newer
    duals are older ones, or variables. Duals made explicitly are always the newest, because their
    user reads the tangent.

    Attributes
    ----------
    function : str or None
        The functional; None for duals made explicitly.
    is_over : bool
        Whether the functional has returned.
    """

    __slots__ = ("function", "is_over", "order")

    def __init__(self, function: str | None = None) -> None:
        self.function, self.is_over = function, False
        self.order = (function is None, next(_numbers))

    def __deepcopy__(self, _: object) -> Level:
        return self  # levels are compared by identity, and a copied dual keeps its level


class Dual(Operators, InPlaceOperators, Container, ArrayMethods):
    """A value together with its derivative in one direction, or in `k` directions at once.

    Parameters
    ----------
    val : scalar, array, Var, VarMat or Dual
        The value.
    tan : of the same kinds
        The tangent: of the shape of `val`, or with a leading axis of `k` directions.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    Duals made in one function go in one direction together; a dual whose value or tangent is such a
    dual goes in another. Functionals (`jvp`, `hessian`, ...) have separate directions, which are
    never mixed with these or with each other: a function that makes duals, and returns what it
    reads in their `tan`, can be differentiated.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = vm.Dual(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    >>> np.sum(x**2).tan
    2.0
    """

    __slots__ = ("level", "tan", "val")
    val: Operand
    tan: Operand
    level: Level

    def __init__(self, val: object, tan: object) -> None:
        self.val = _operand(val, "Dual: val")
        self.tan = _operand(tan, "Dual: tan")
        self.level = _made_by_hand(self.val, self.tan)
        if type(self.val) in VARIABLES and not isinstance(self.tan, ArrayMethods):
            # Results computed from the value are variables, and may be assigned into the tangent.
            self.tan = make_leaf(self.tan, self.val._tape.top)
        shape, tangent = np.shape(self.val), np.shape(self.tan)
        if tangent != shape and tangent[1:] != shape:
            raise ShapeError(
                f"Dual: tan has shape {tangent}, but must have the shape of val, {shape}, or "
                "one more leading axis"
            )

    @property
    def shape(self) -> Shape:
        return getattr(self.val, "shape", ())

    @property
    def directions(self) -> int | None:
        """The number of directions, or None for a single one without an axis."""
        tangent: Shape = getattr(self.tan, "shape", ())
        return tangent[0] if len(tangent) > len(self.shape) else None

    @property
    def _plain(self) -> Operand:
        return dispatch.plain(self.val)

    @property
    def _tape(self) -> Operand:
        # Exists over variables only: recordings look here for the outcome of a comparison.
        return self.val._tape

    def map(self, function: Linear) -> Dual:
        """Apply a linear function (a view, a gather) to the value and to each tangent."""
        return paired(function(self.val), _each(function, self.tan, self.directions), self.level)

    def __getitem__(self, index: object) -> Operand:
        if not self.shape:
            return scalar_item(self, index)
        if not is_basic(index):
            return self.map(lambda x: in_order(x[index]))
        if self.directions is None:
            return self.map(lambda x: x[index])
        # A view, so that an assignment to the part changes the whole.
        inside = index if type(index) is tuple else (index,)
        val, tan = self.val[index], self.tan[(slice(None), *inside)]
        return paired(val, tan if np.ndim(val) else np.copy(tan), self.level)

    def __setitem__(self, index: object, source: object) -> None:
        k = self.directions
        val, tan = source, None
        if isinstance(source, Dual) and newest((self, source)) is not self.level:
            raise TypeError(f"setitem: {_DEEPER}")
        if isinstance(source, Dual) and source.level is self.level:
            if source.directions != k:
                raise ShapeError(
                    f"setitem: a dual with {source.directions} directions cannot be assigned into "
                    f"one with {k}"
                )
            val, tan = apart(source.val, self.val), apart(source.tan, self.tan)
        if type(self.val) is np.ndarray and isinstance(val, ArrayMethods):
            raise TypeError(f"setitem: {_DEEPER}")
        self.val[index] = val
        if k is None:
            self.tan[index] = 0.0 if tan is None else tan
        else:
            for i in range(k):
                self.tan[i][index] = 0.0 if tan is None else tan[i]

    def __repr__(self) -> str:
        return f"Dual({self.val!r}, {self.tan!r})"


_DEEPER = (
    "what is assigned has derivatives that the array has no place for: make it of something that "
    "has them, with np.zeros_like(x * y) of all that goes into it, or write np.stack([...])"
)


def _made_by_hand(*parts: object) -> Level:
    """Return the level of a dual with such parts: one beyond the levels made in this function."""
    levels: list[Level] = current_tape().by_hand
    depth = max(
        levels.index(x.level) + 1 if isinstance(x, Dual) and x.level in levels else 0 for x in parts
    )
    if depth == len(levels):
        levels.append(Level())
    return levels[depth]


def _operand(x: object, name: str) -> Operand:
    if isinstance(x, dispatch.ComplexKind):
        raise TypeError(
            f"{name} is complex, but must be real; combine two duals into a complex variable with "
            "varmat.to_complex(re, im)"
        )
    x = x if isinstance(x, ArrayMethods) else data(x, name)
    return np.array(x, order="C") if isinstance(x, np.ndarray) else x


def value_now(x: Operand) -> Operand:
    """Return the plain value of an operand, to see its layout or for checks that the operation
    repeats in each run of a recording, so that the recording does not depend on the value.
    """
    while isinstance(x, Dual):
        x = x.val
    return x._val if type(x) in VARIABLES else dispatch.plain(x)


def in_order(x: Operand) -> Operand:
    """Copy an array of any kind unless it is in row-major order and writeable; return numbers
    unchanged.
    """
    plain = value_now(x)
    as_it_is = type(plain) is not np.ndarray or (plain.flags.c_contiguous and plain.flags.writeable)
    return x if as_it_is else np.copy(x, order="C")


def result_dual(val: object, tan: object, level: Level) -> Dual:
    """Make a dual of results that nothing else refers to. Both parts get one memory layout, because
    a reshape must be a view of both or of neither.
    """
    return paired(in_order(val), in_order(tan), level)


def paired(val: object, tan: object, level: Level) -> Dual:
    """Make a dual of parts that fit, without copying them."""
    dual: Dual = object.__new__(Dual)
    dual.val = _scalar(val)
    dual.tan = _scalar(tan)
    dual.level = level
    return dual


def newest(duals: Sequence[Dual]) -> Level:
    """Return the newest level of some duals, in whose direction an operation differentiates."""
    level: Level = duals[0].level
    for x in duals:
        if x.level is not level and x.level.order > level.order:
            level = x.level
    return level


def attached(val: object, tan: object, level: Level) -> Operand:
    """Make the dual of a level from a value and a tangent that may be duals of any level. Newer
    levels become the outer duals.
    """
    newer = [x for x in (val, tan) if type(x) is Dual and x.level.order > level.order]
    if not newer:
        return paired(val, tan, level)
    outer = newest(newer)
    (v, dv), (t, dt) = taken_apart(val, outer), taken_apart(tan, outer)
    if dv is None:
        dv = np.zeros_like(dt, shape=np.shape(dt)[:1] * (np.ndim(dt) > np.ndim(t)) + np.shape(v))
    if dt is None:
        dt = np.zeros_like(dv, shape=np.shape(t)[: np.ndim(t) - np.ndim(v)] + np.shape(dv))
    return paired(attached(v, t, level), attached(dv, dt, level), outer)


def taken_apart(x: object, level: Level) -> tuple[Operand, Operand]:
    """Return the value and the tangent of a level, through newer ones. The tangent may be None."""
    if not isinstance(x, Dual) or x.level.order < level.order:
        return x, None
    if x.level is level:
        return x.val, x.tan
    (v, t), (dv, dt) = taken_apart(x.val, level), taken_apart(x.tan, level)
    if t is None and dt is None:
        return x, None
    t = np.zeros_like(v) if t is None else t
    return paired(v, dv, x.level), paired(t, np.zeros_like(dv) if dt is None else dt, x.level)


def _scalar(x: Operand) -> Operand:
    is_number = isinstance(x, (np.generic, int)) or (type(x) is np.ndarray and not x.ndim)
    return float(x) if is_number else x


def _each(function: Linear, tangent: Operand, k: int | None, stacked: bool = False) -> Operand:
    """Apply a linear map to a tangent, one direction at a time unless it takes all at once."""
    if k is None or stacked:
        return function(tangent)
    parts = [function(tangent[i]) for i in range(k)]
    if isinstance(parts[0], tuple):
        return tuple(np.stack(part) for part in zip(*parts, strict=True))
    return np.stack(parts)


def _added(x: Operand, y: Operand) -> Operand:
    return tuple(a + b for a, b in zip(x, y, strict=True)) if isinstance(x, tuple) else x + y


def dual_call(op: Any, args: Sequence[Operand], settings: Settings) -> Operand:
    """Call an operation on operands that include duals."""
    duals = [x for x in args if isinstance(x, Dual)]
    level = duals[0].level
    if len(duals) > 1:
        level = newest(duals)
        duals = [x for x in duals if x.level is level]
    k = duals[0].directions
    if len(duals) > 1 and any(x.directions != k for x in duals):
        raise ShapeError(
            f"{op.name}: duals with {sorted({str(x.directions) for x in duals})} directions meet"
        )
    values = [x.val if isinstance(x, Dual) and x.level is level else x for x in args]
    saved: Settings = {}
    result = (op.saving(saved) if op.wanted else op)(*values, **settings)

    def by_rule() -> Operand:
        with np.errstate(all="ignore"):
            pairs = zip(args, op.push(result, values, {**settings, **saved}), strict=True)
            pushed = [
                _each(push, x.tan, k, op.stacked)
                for x, push in pairs
                if isinstance(x, Dual) and x.level is level
            ]
            return reduce(_added, pushed)

    first = result[0] if isinstance(result, tuple) else result
    is_recorded = type(first) in VARIABLES
    total = first._tape.top.tangent(by_rule, op, args, settings) if is_recorded else by_rule()
    if isinstance(result, tuple):
        pairs = zip(result, total, strict=True)
        return like(result, [_fitted(r, t, k, level, duals) for r, t in pairs])
    return _fitted(result, total, k, level, duals)


def _fitted(
    result: Operand, tangent: Operand, k: int | None, level: Level, operands: list[Dual]
) -> Dual:
    """Make a dual whose tangent has the right shape and shares no memory with operands, because
    results may be assigned to.
    """
    shape = getattr(result, "shape", ())
    shape = shape if k is None else (k, *shape)
    if getattr(tangent, "shape", ()) != shape:
        tangent = np.copy(np.broadcast_to(tangent, shape))
    if not shape:
        return paired(result, tangent, level)
    memory = value_now(tangent)
    if type(memory) is np.ndarray and any(
        np.may_share_memory(memory, value_now(x.tan)) for x in operands
    ):
        tangent = np.copy(tangent)
    return result_dual(result, tangent, level)
