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
class Array(Type):
    """Array of one dimension; an array of more dimensions is an array of arrays."""

    element: Type

    def __str__(self) -> str:
        element, commas = self.element, ""
        while isinstance(element, Array):
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
class Function(Type):
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
