"""The Python operators of variables: which operation answers for each.

`Operators` is a base of `Var`, `VarMat` and `Dual`. Comparisons are methods of `ArrayMethods`, and
``x[index]`` and ``x[index] = y`` are in `varmat.core.indexing`.

An operation has separate operators for every type (see `varmat.core.fast_calls`). Compiling them
takes longer than importing everything else, so it waits until an operator is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from varmat.core.dual import Dual
    from varmat.core.variables import VarMat
    from varmat.typing import Function


# By the names below: rows of the library's elementwise table, and `matmul` of
# `varmat.functions.linalg.matmul`. Until these are made there is None. Users' rows are their own
# keys.
ANSWERS: dict[Hashable, Any] = {}


# Python's names of the operators -> what answers for them.
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute"}
BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
    "floordiv": "floor_divide", "mod": "remainder", "matmul": "matmul",
}  # fmt: skip


class Operators:
    """The operators of `Var`, `VarMat` and `Dual`: `UNARY` and `BINARY`."""

    __slots__ = ()


class InPlaceOperators:
    """The in-place operators for assignable types; a `Var` is replaced, as numbers are."""

    __slots__ = ()


class ReflectedOperators:
    """The reflected operators of `MatVar`: NumPy's own would leave them to pandas, which would make
    a Series of variables.
    """

    __slots__ = ()


def _first_use(operator: str, name: Hashable, method: str) -> Function:
    """Make a method that puts operators into their types, and calls the one that was wanted."""
    ANSWERS.setdefault(name)

    def first_use(self: object, *other: object) -> object:
        for prefix, methods in zip(("", "r"), ANSWERS[name].operators, strict=True):
            for kind, function in methods.items():
                setattr(kind, f"__{prefix}{operator}__", function)
        return getattr(self, method)(*other)

    return first_use


def _in_place(name: Hashable) -> Function:
    def method(self: VarMat | Dual, other: object) -> object:
        result = ANSWERS[name].call(self, other)
        if result is NotImplemented or not self.shape:
            return result
        self[...] = result
        return self

    return method


def _reflected(name: Hashable) -> Function:
    return lambda self, other: ANSWERS[name].call(other, self)


def attach(operator: str, name: Hashable, arity: int, kinds: Iterable[type]) -> None:
    """Add an operator to kinds of variables, with the handler of a name."""
    for kind in kinds:
        setattr(kind, f"__{operator}__", _first_use(operator, name, f"__{operator}__"))
        if arity == 2:
            setattr(kind, f"__r{operator}__", _first_use(operator, name, f"__r{operator}__"))
    if arity == 2:
        setattr(InPlaceOperators, f"__i{operator}__", _in_place(name))
        setattr(ReflectedOperators, f"__r{operator}__", _reflected(name))


for _operator, _name in UNARY.items():
    attach(_operator, _name, 1, (Operators,))
for _operator, _name in BINARY.items():
    attach(_operator, _name, 2, (Operators,))
