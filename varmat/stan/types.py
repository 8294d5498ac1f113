"""Types of Stan's expressions, and which of them becomes which."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """Type of an expression, without sizes; equal to another of the same structure, hashable."""


@dataclass(frozen=True, slots=True)
class Basic(Type):
    """One of the nine types without parts: the constants of this module."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ArrayType(Type):
    """Array of one dimension; an array of more dimensions is an array of arrays."""

    element: Type

    def __str__(self) -> str:
        element, commas = self.element, ""
        while isinstance(element, ArrayType):
            element, commas = element.element, commas + ","
        return f"array[{commas}] {element}"


@dataclass(frozen=True, slots=True)
class Tuple(Type):
    """Tuple of two or more elements."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple({', '.join(map(str, self.elements))})"


@dataclass(frozen=True, slots=True)
class Argument:
    """Type of a function's argument; `data` if parameters may not occur in it."""

    type: Type
    data: bool = False

    def __str__(self) -> str:
        return f"data {self.type}" if self.data else str(self.type)


@dataclass(frozen=True, slots=True)
class FunctionType(Type):
    """Function of arguments to a result, which is None for a function that returns nothing."""

    arguments: tuple[Argument, ...]
    result: Type | None

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.arguments))}) => {self.result or 'void'}"


BASIC = (
    "int", "real", "complex", "vector", "row_vector", "matrix", "complex_vector",
    "complex_row_vector", "complex_matrix",
)  # fmt: skip
(
    INT, REAL, COMPLEX, VECTOR, ROW_VECTOR, MATRIX, COMPLEX_VECTOR, COMPLEX_ROW_VECTOR,
    COMPLEX_MATRIX,
) = map(Basic, BASIC)  # fmt: skip

_PROMOTIONS: dict[tuple[Type, Type], int] = {
    (REAL, INT): 1,
    (COMPLEX, REAL): 1,
    (COMPLEX, INT): 2,
    (COMPLEX_VECTOR, VECTOR): 1,
    (COMPLEX_ROW_VECTOR, ROW_VECTOR): 1,
    (COMPLEX_MATRIX, MATRIX): 1,
}


def promotion(expected: Type, actual: Type) -> int | None:
    """Count the steps from one type to an expected one, or None if it does not become that.

    A function fits if it takes exactly the expected arguments, gives the expected result, and does
    not require data where parameters may come.
    """
    if expected == actual:
        return 0
    if isinstance(expected, ArrayType) and isinstance(actual, ArrayType):
        return promotion(expected.element, actual.element)
    if isinstance(expected, Tuple) and isinstance(actual, Tuple):
        steps = [promotion(*pair) for pair in zip(expected.elements, actual.elements, strict=False)]
        if len(expected.elements) != len(actual.elements) or None in steps:
            return None
        return sum(step for step in steps if step)
    if isinstance(expected, FunctionType) and isinstance(actual, FunctionType):
        return 0 if callable_as(expected, actual) else None
    return _PROMOTIONS.get((expected, actual))


def callable_as(expected: FunctionType, actual: FunctionType) -> bool:
    """Tell whether a function can be called where another is expected."""
    return (
        expected.result == actual.result
        and len(expected.arguments) == len(actual.arguments)
        and all(
            requested.type == actual_argument.type and requested.data >= actual_argument.data
            for requested, actual_argument in zip(expected.arguments, actual.arguments, strict=True)
        )
    )


def common(first: Type, second: Type) -> Type | None:
    """Find the type that both become, or None."""
    if promotion(first, second) is not None:
        return first
    if promotion(second, first) is not None:
        return second
    if isinstance(first, ArrayType) and isinstance(second, ArrayType):
        element = common(first.element, second.element)
        return element and ArrayType(element)
    if isinstance(first, Tuple) and isinstance(second, Tuple):
        parts = [common(*pair) for pair in zip(first.elements, second.elements, strict=False)]
        if len(first.elements) == len(second.elements) and all(parts):
            return Tuple(tuple(part for part in parts if part))
    return None


def innermost(array: Type) -> Type:
    """Return the type of the elements of an array, however nested, or the type itself."""
    while isinstance(array, ArrayType):
        array = array.element
    return array


def discrete(value: Type) -> bool:
    """Tell whether a type holds only integers."""
    value = innermost(value)
    return value == INT or (isinstance(value, Tuple) and all(map(discrete, value.elements)))


def contains_int(value: Type) -> bool:
    """Tell whether a type contains integers, in tuples too."""
    value = innermost(value)
    return value == INT or (isinstance(value, Tuple) and any(map(contains_int, value.elements)))
