"""The Python operators of variables: which operation answers for each.

`Operators` is a base of `Var`, `VarMat` and `Dual`. Comparisons are methods of `ArrayMethods`, and
``x[index]`` and ``x[index] = y`` are in `varmat.core.indexing`.

An operation has operators of its own for every type (see `varmat.core.fast_calls`). Compiling them
takes longer than importing everything else, so it waits until an operator is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from varmat.core.elementwise import Elementwise
    from varmat.typing import Function, Operand


class Answer(NamedTuple):
    """What answers for an operator; the rows of the elementwise table offer the same.

    Attributes
    ----------
    call : callable
        Of operands of any kinds.
    operators : tuple of two dicts
        The methods for the operator and for its reflection, by type of the variable.
    """

    call: Function
    operators: tuple[dict[type, Function], dict[type, Function]]


# By the names below: rows of the library's elementwise table, and `matmul` of
# `varmat.functions.linalg.products`. Until these are made there is None. Users' rows are their own
# keys.
ANSWERS: dict[Hashable, Any] = {}


def _first_use(operator: str, name: Hashable, method: str) -> Function:
    """A method that puts the operators of an operation into their types, and calls the one that was
    wanted.
    """
    ANSWERS.setdefault(name)

    def first_use(self: Operand, *other: Operand) -> Operand:
        for prefix, methods in zip(("", "r"), ANSWERS[name].operators, strict=True):
            for kind, function in methods.items():
                setattr(kind, f"__{prefix}{operator}__", function)
        return getattr(self, method)(*other)

    return first_use


def unary(operator: str, name: Hashable) -> Function:
    return _first_use(operator, name, f"__{operator}__")


def binary(operator: str, name: Hashable) -> tuple[Function, Function]:
    """An operator and its reflection."""
    return unary(operator, name), _first_use(operator, name, f"__r{operator}__")


def in_place(name: Hashable) -> Function:
    def method(self: Operand, other: Operand) -> Operand:
        result = ANSWERS[name].call(self, other)
        if result is NotImplemented or not self.shape:
            return result
        self[...] = result
        return self

    return method


def reflected(name: Hashable) -> Function:
    return lambda self, other: ANSWERS[name].call(other, self)


class Operators:
    """The operators of `Var`, `VarMat` and `Dual`, by the name of what answers."""

    __slots__ = ()
    __add__, __radd__ = binary("add", "add")
    __sub__, __rsub__ = binary("sub", "subtract")
    __mul__, __rmul__ = binary("mul", "multiply")
    __truediv__, __rtruediv__ = binary("truediv", "divide")
    __pow__, __rpow__ = binary("pow", "power")
    __floordiv__, __rfloordiv__ = binary("floordiv", "floor_divide")
    __mod__, __rmod__ = binary("mod", "remainder")
    __matmul__, __rmatmul__ = binary("matmul", "matmul")
    __neg__ = unary("neg", "negative")
    __pos__ = unary("pos", "positive")
    __abs__ = unary("abs", "absolute")


class InPlaceOperators:
    """The in-place operators of what is assigned to; a `Var` is replaced, as numbers are."""

    __slots__ = ()
    __iadd__ = in_place("add")
    __isub__ = in_place("subtract")
    __imul__ = in_place("multiply")
    __itruediv__ = in_place("divide")
    __ipow__ = in_place("power")
    __ifloordiv__ = in_place("floor_divide")
    __imod__ = in_place("remainder")
    __imatmul__ = in_place("matmul")


class ReflectedOperators:
    """The reflected operators of `MatVar`: NumPy's own would leave them to pandas, which would make
    a Series of variables.
    """

    __slots__ = ()
    __radd__ = reflected("add")
    __rsub__ = reflected("subtract")
    __rmul__ = reflected("multiply")
    __rtruediv__ = reflected("divide")
    __rpow__ = reflected("power")
    __rfloordiv__ = reflected("floor_divide")
    __rmod__ = reflected("remainder")
    __rmatmul__ = reflected("matmul")


def attach(
    operator: str, row: Elementwise, arity: int, kinds: Iterable[type], reflecting: type
) -> None:
    """Let an operation that a user made answer for an operator."""
    ANSWERS[row] = row
    for kind in kinds:
        setattr(kind, f"__{operator}__", unary(operator, row))
        if arity == 2:
            setattr(kind, f"__r{operator}__", binary(operator, row)[1])
            if issubclass(kind, InPlaceOperators):
                setattr(kind, f"__i{operator}__", in_place(row))
    if arity == 2:
        setattr(reflecting, f"__r{operator}__", reflected(row))
