"""From a tape to a program: the value of what was recorded, and its adjoint.

The entries are visited once forward and once backward. Forward, each becomes steps. Backward,
contributions to adjoints are values too, kept until all of them are known: one number for all
elements of an array stays a number, and parts of an array are put together once. A function
registered with `writes` says how the entries of a rule become steps; where possible it is defined
next to the rule. Elementwise and structured operations are traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from varmat.core.errors import TapeError
from varmat.core.tape import Rule
from varmat.core.variables import VARIABLES, View
from varmat.programs.build.arithmetic import is_number
from varmat.programs.build.builder import Builder, is_partition
from varmat.programs.build.symbol import Symbol
from varmat.programs.ir.program import PackedPart, RecordingError, Shape, Value, contiguous_strides
from varmat.programs.kernels.elementwise import ufunc_kernel

if TYPE_CHECKING:
    from collections.abc import Hashable

    from varmat.typing import Entry, Linear, Operand

Writer = Callable[["TapeProgram", Rule, Any, Any, Any], None]
# From a rule, or from the type of the operation behind it -> the function that writes an entry.
WRITERS: dict[Any, Writer] = {}


class Operands(NamedTuple):
    """The positions of the operands of an entry.

    Attributes
    ----------
    split : callable
        From a rule and what its entry keeps, ``x`` and ``y``, to the operands, variables and data,
        and the settings.
    join : callable
        From the same and other operands to the ``x`` and ``y`` of an entry that has these.
    takes_part : bool
        Whether the settings are an index that takes a part of the only operand.
    """

    split: Callable[[Rule, Any, Any], tuple[Sequence[Any], Any]]
    join: Callable[[Rule, Any, Any, Sequence[Any]], tuple[Any, Any]]
    takes_part: bool = False


# From the same keys -> where the operands are.
OPERANDS: dict[Any, Operands] = {}


def writes(*keys: Rule | type, operands: Operands | None = None) -> Callable[[Writer], Writer]:
    """Register the function that writes the entries of a rule, or of all rules whose operation is
    of a type. An entry can be in a loop only if it is said where its operands are.
    """

    def register(function: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(keys, function))
        if operands is not None:
            OPERANDS.update(dict.fromkeys(keys, operands))
        return function

    return register


def operands_of(rule: Rule) -> Operands | None:
    """Return where the operands of an entry of a rule are; None if unknown."""
    return OPERANDS.get(rule) or next(
        (OPERANDS[kind] for kind in type(rule.op).__mro__ if kind in OPERANDS), None
    )


def writer_of(rule: Rule) -> Writer:
    """Return the function that writes the entries of a rule; raise if it has none."""
    writer = (
        WRITERS.get(rule)
        or WRITERS.get(type(rule.op))
        or next((WRITERS[kind] for kind in type(rule.op).__mro__ if kind in WRITERS), None)
    )
    if writer is None:
        raise RecordingError(f"recorded: {rule.name} cannot be recorded; use varmat.value_and_grad")
    return writer


class RecordedVariable:
    """A variable of the recording.

    Attributes
    ----------
    value : Value
    contributions : list of Value
        To its adjoint: each is of the shape of the node, or a number, which represents equal
        elements.
    parts : list of tuple
        Contributions to a part of it: ``(place, shape there, value)``, see `Builder.assemble`.
    """

    __slots__ = ("contributions", "parts", "products", "value")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.contributions: list[Value] = []
        self.parts: list[PackedPart] = []
        # Contributions that are products of two matrices with fewer elements than the node has: ``p
        # @ q``.
        self.products: list[tuple[Value, Value]] = []

    @property
    def shape(self) -> Shape:
        return self.value.shape

    @property
    def is_reached(self) -> bool:
        """Whether its adjoint has contributions."""
        return bool(self.contributions or self.parts or self.products)


class RecordedLoop(Protocol):
    """A loop instead of entries."""

    @property
    def rolled(self) -> list[Entry]:
        """The entries that it replaces."""

    def guard_finite(self) -> None:
        """Do the same as `TapeProgram.guard_finite`, inside the loop."""


class TapeProgram:
    """Writes the program of a tape.

    Attributes
    ----------
    builder : Builder
    backs : list
        For each entry its nodes and the function that writes its part of the reverse pass.
    """

    def __init__(self) -> None:
        self.builder = Builder()
        self.backs: list[tuple[Sequence[RecordedVariable], Callable[[], None]]] = []
        # Results that are finite unless an argument is invalid, or the density is zero.
        self.finite: list[RecordedVariable] = []
        # By id, which is safe: the tape keeps the variables alive.
        self._nodes: dict[int, RecordedVariable] = {}
        # A node, and how a part of it is taken -> the node of the part.
        self._parts: dict[Hashable, RecordedVariable] = {}
        # Id of a variable -> the node of the array with the variable as a row, and the row's
        # number.
        self.rows: dict[int, tuple[RecordedVariable, int]] = {}
        self._places: dict[RecordedVariable, np.ndarray] = {}
        # Id of plain data -> its placeholder among the arguments of the body of a loop.
        self.inputs: dict[int, Value] = {}
        # Id of such an argument -> the data of all iterations.
        self.data: dict[int, Value] = {}
        # Entries with separate variables, which `_nodes` knows by id.
        self.entries: list[Entry] = []
        self.loops: list[RecordedLoop] = []

    # --- variables ---

    def node(self, variable: object, value: Value) -> RecordedVariable:
        """Make a new node for a variable: a leaf, or the result of what is being written."""
        node = self._nodes[id(variable)] = RecordedVariable(value)
        return node

    def find(self, variable: object) -> RecordedVariable:
        """Return the node of a variable operand; views get theirs when they are first used."""
        node: Any = self._nodes.get(id(variable))
        if node is None:
            unknown = [variable]
            while isinstance(unknown[-1], View) and id(unknown[-1].parent) not in self._nodes:
                unknown.append(unknown[-1].parent)
            for view in reversed(unknown):
                node = self._view(view)
        return node  # type: ignore[no-any-return]

    def _view(self, view: object) -> RecordedVariable:
        if id(view) in self.rows:
            return self._row(view, *self.rows[id(view)])
        if not isinstance(view, View):
            raise TapeError("an operation uses a variable that the recording does not know")
        parent, how = self.find(view.parent), view.how
        # A part that is taken again is the same node, so that a loop which takes it at every step
        # has one product with it.
        key = (parent, repr(how.__reduce__())) if type(how) in (itemgetter, methodcaller) else None
        if key in self._parts:
            self._nodes[id(view)] = self._parts[key]
            return self._parts[key]
        # A reshape of an array that does not lie in one piece would be a copy.
        full = parent.value if type(how) is itemgetter else self.builder.contiguous(parent.value)
        value = self.builder.view(full, how)
        if value.is_constant:  # made of plain numbers: it has no adjoint
            return self.node(view, value)
        node = self.node(view, value)
        if key is not None:
            self._parts[key] = node
        if type(how) is partial and how.func is np.broadcast_to:
            self.back((node,), lambda: self.contribute(parent, self._adjoint(node), node.shape))
            return node
        place = place_of(parent.shape, how)
        self.back((node,), lambda: parent.parts.append((place, node.shape, self._adjoint(node))))
        return node

    def _row(self, variable: Operand, rows: RecordedVariable, number: int) -> RecordedVariable:
        place = contiguous_strides(rows.shape)[0] * number, contiguous_strides(variable.shape)
        node = self.node(variable, self.builder.part(rows.value, variable.shape, *place))
        self.back((node,), lambda: rows.parts.append((place, node.shape, self._adjoint(node))))
        return node

    def place(self, variable: Operand) -> tuple[RecordedVariable, np.ndarray]:
        """Return the node that an operand is a part of, and the indices of its elements in that."""
        if type(variable) not in VARIABLES:
            value, _ = self.operand(variable)
            return RecordedVariable(value), np.arange(value.size).reshape(value.shape)
        if isinstance(variable, View):
            node, indices = self.place(variable.parent)
            return node, variable.how(indices)
        node, number = self.rows.get(id(variable)) or (self.find(variable), 0)
        if node not in self._places:
            self._places[node] = np.arange(node.value.size)
        start = number * variable.size
        return node, self._places[node][start : start + variable.size].reshape(variable.shape)

    def operand(self, x: object) -> tuple[Value, RecordedVariable | None]:
        """Return an operand as a value, and its node if it is a variable with an adjoint."""
        if type(x) in VARIABLES:
            node = self.find(x)
            return node.value, (None if node.value.is_constant else node)
        return self.inputs.get(id(x)) or self.builder.constant(x), None

    def alias(self, variable: object, node: RecordedVariable) -> None:
        """Set the node of a variable to the node of another one."""
        self._nodes[id(variable)] = node

    def symbol(self, value: Value) -> Symbol:
        return Symbol(self.builder, value)

    # --- adjoints ---

    def back(self, nodes: Sequence[RecordedVariable], function: Callable[[], None]) -> None:
        """Register a function that writes the reverse part of an entry, if contributions reach its
        results.
        """
        self.backs.append((nodes, function))

    def _adjoint(self, node: RecordedVariable) -> Value:
        adjoint = self.adjoint(node)
        assert adjoint is not None
        return adjoint

    def adjoint(self, node: RecordedVariable) -> Value | None:
        """Return the adjoint of a node, once it has all contributions: of its shape, or a number;
        None if it has none.
        """
        if not node.is_reached:
            return None
        builder = self.builder
        if node.products:
            node.contributions.append(builder.sum_of_products(node.products))
            node.products = []
        total = builder.add_all(node.contributions) if node.contributions else None
        if node.parts:
            total = self._assembled(node, total)
        node.contributions, node.parts = [total], []  # type: ignore[list-item]
        return total

    def _assembled(self, node: RecordedVariable, remainder: Value | None) -> Value:
        builder = self.builder
        if remainder is not None and is_number(remainder, 0.0):
            remainder = None
        parts: list[PackedPart] = []
        # Add up contributions to the same part first.
        groups: dict[tuple[tuple[int, Shape], Shape], list[Value]] = {}
        for place, shape, part in node.parts:
            if isinstance(place, np.ndarray):
                parts.append((place, shape, part))
            else:
                groups.setdefault((place, shape), []).append(part)
        for (place, shape), result in groups.items():
            part, strides = builder.add_all(result), place[1]
            if (
                remainder is None
                and len(groups) == 1
                and not parts
                and (is_partition(node.shape, [(place, shape)]) and min(strides, default=1) > 0)
            ):  # all of the array, in some order
                if not part.shape:
                    return part
                order = sorted(range(len(shape)), key=lambda i: -strides[i])
                full = builder.transposed(builder.broadcast(part, shape), order)
                return builder.reshaped(full, node.shape)
            parts.append((place, shape, builder.broadcast(part, shape)))
        return builder.assemble(node.shape, parts, remainder)

    def full(self, x: Value, shape: Shape) -> Value:
        """Return an adjoint as an array of its whole shape, which may be a view that repeats it."""
        return self.builder.broadcast(x, shape) if x.shape != shape else x

    def contribute(self, operand: RecordedVariable | None, c: Value, full_shape: Shape) -> None:
        """Add a contribution to the adjoint of an operand that was broadcast to `full_shape`.
        A smaller contribution represents its broadcast.
        """
        if operand is None or is_number(c, 0.0):
            return
        if c.shape != full_shape and c.shape:
            c = self.builder.broadcast(c, full_shape)
        if operand.shape != full_shape:
            c = self.builder.unbroadcast(c, full_shape, operand.shape)
        factors = self.builder.factors.get(c)
        if factors is not None and sum(x.size for x in factors) < c.size:
            operand.products.append(factors)  # the sum of many of them is one product
        else:
            operand.contributions.append(c)

    # --- all of it ---

    def entry(self, rule: Rule, result: object, x: object, y: object) -> None:
        """Write the forward part of an entry, and note what writes its reverse part."""
        writer_of(rule)(self, rule, result, x, y)

    def write_reverse(self) -> None:
        """Write the reverse parts of all entries that contributions reach, the last one first."""
        while self.backs:
            nodes, back = self.backs.pop()
            if any(node.is_reached for node in nodes):
                back()

    def guard_finite(self) -> None:
        """End the run where a result that must be finite is not, unless that shows in the output,
        as it does below a sum.
        """
        for node in self.finite:
            g = self.adjoint(node)
            if g is None or not g.is_constant or is_number(g, 0.0):
                self.builder.guard(self.builder.call(ufunc_kernel(np.isfinite), node.value))
        for loop in self.loops:
            loop.guard_finite()


def place_of(shape: Shape, how: Linear) -> tuple[int, Shape]:
    """Return where a view of an array of a shape lies in it: ``(offset, strides)``."""
    part = Builder().view(Value(shape), how)
    return part.offset, part.strides
