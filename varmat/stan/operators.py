"""Stan's operators, chosen by the types of their operands."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

import varmat as vm
from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.stan import types
from varmat.stan.types import Type
from varmat.stan.values import MATRICES, ROWS, SCALARS, VECTORS, StanValue, check_same

BinaryFunction = Callable[[StanValue, StanValue], StanValue]


def divide_integers(a: int, b: int) -> int:
    """Divide integers, rounding towards zero."""
    if b == 0:
        raise DomainError("divide: Denominator is 0, but must not be 0!")
    quotient = abs(a) // abs(b)
    return quotient if (a >= 0) == (b >= 0) else -quotient


def modulus(a: int, b: int) -> int:
    """Return the remainder of the division of integers, with the sign of the dividend."""
    if b == 0:
        raise DomainError("modulus: Divisor is 0, but must not be 0!")
    return a - b * divide_integers(a, b)


def divide(a: StanValue, b: StanValue) -> StanValue:
    """Divide real or complex numbers, by IEEE arithmetic."""
    try:
        return a / b
    except ZeroDivisionError:
        return (
            (np.float64(a) / b).item() if type(a) is not complex else (np.complex128(a) / b).item()
        )


def power(a: StanValue, b: StanValue) -> StanValue:
    """Raise a scalar to a power; Python's `**` would raise, or return a complex number."""
    if is_differentiable(a) or is_differentiable(b):
        return a**b
    if type(a) is complex or type(b) is complex:
        return complex(a) ** b
    return np.power(float(a), float(b)).item()


def truth(x: object) -> StanValue:
    """Convert a comparison to a number. In a recording it may depend on variables: it is returned
    unchanged, so that reading its value is noticed.
    """
    return int(x) if isinstance(x, (bool, np.bool_)) else x


def _of_same_size(name: str, function: BinaryFunction) -> BinaryFunction:
    def checked(a: object, b: object) -> StanValue:
        check_same(name, a, b)
        return function(a, b)

    return checked


def add_integers(a: int, b: int) -> int:
    """Add integers or recorded comparisons, for which `+` alone would be "or"."""
    return a + 1 * b


_COMPARISONS: dict[str, BinaryFunction] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ELEMENTWISE: dict[str, tuple[str, BinaryFunction]] = {
    "+": ("add", operator.add),
    "-": ("subtract", operator.sub),
    ".*": ("elt_multiply", operator.mul),
    "./": ("elt_divide", operator.truediv),
}
_INTEGERS: dict[str, BinaryFunction] = {
    "+": add_integers,
    "-": operator.sub,
    "*": operator.mul,
    ".*": operator.mul,
    "/": divide_integers,
    "./": divide_integers,
    "%/%": divide_integers,
    "%": modulus,
}
_SCALARS: dict[str, BinaryFunction] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    ".*": operator.mul,
    "/": divide,
    "./": divide,
    "^": power,
    ".^": power,
}


def _product(left: Type, right: Type) -> BinaryFunction:
    if left in SCALARS or right in SCALARS:
        return operator.mul
    if left in VECTORS:
        return np.outer if right in ROWS else _column_times_matrix
    if left in ROWS and right in VECTORS:
        return _of_same_size("multiply", np.matmul)
    return np.matmul


def _column_times_matrix(a: StanValue, b: StanValue) -> StanValue:
    """Multiply a vector by a matrix of one row."""
    return np.reshape(a, (-1, 1)) @ b


def _quotient(left: Type, right: Type) -> BinaryFunction:
    if right in MATRICES:
        return vm.mdivide_right
    return operator.truediv if left not in SCALARS else divide


def powers(a: StanValue, b: StanValue) -> StanValue:
    """Raise the elements of containers to powers."""
    if np.ndim(a) and np.ndim(b):
        check_same("pow", a, b)
    if type(a) is int or (type(a) is np.ndarray and a.dtype.kind == "i"):
        a = np.asarray(a, float)
    return np.power(a, b)


def binary(name: str, left: Type, right: Type) -> BinaryFunction:
    """Find the function of an operator between operands of these types."""
    if name in _COMPARISONS:
        compare = _COMPARISONS[name]
        return lambda a, b: truth(compare(a, b))
    both_scalars = left in SCALARS and right in SCALARS
    if left == types.INT and right == types.INT and name in _INTEGERS:
        return _INTEGERS[name]
    if both_scalars:
        return _SCALARS[name]
    if name == "*":
        return _product(left, right)
    if name == "/":
        return _quotient(left, right)
    if name == "\\":
        return vm.mdivide_left
    if name in ("^", ".^"):
        return powers
    title, function = _ELEMENTWISE[name]
    return function if left in SCALARS or right in SCALARS else _of_same_size(title, function)


def negated(x: object) -> StanValue:
    """Compute `!x`."""
    return 1 - truth(x != 0)


def transposed(kind: Type) -> Callable[[StanValue], StanValue]:
    """Return the function of the operator `'`, which changes only matrices."""
    return np.transpose if kind in MATRICES else lambda x: x
