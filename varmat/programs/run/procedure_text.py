"""Procedures as text of Python: cells are local variables, and arrays are lists of floats.

This takes a tenth of the time of running statement by statement. Procedures that keep values on
stacks, or that fill arrays, are not written in this way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.rules import function_of
from varmat.programs.ir import statements as s
from varmat.programs.ir.program import contiguous_strides
from varmat.programs.kernels.procedure import Line
from varmat.programs.run.emit import Straight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from varmat.programs.kernels.procedure import Procedure
    from varmat.typing import Function

_KINDS = (Line, s.Load, s.AddAt, s.For, s.If)


def functions_of(kernel: Procedure) -> tuple[Function, Function] | None:
    """Make a function of lists that writes into others, and the same in IEEE arithmetic, for where
    Python's floats raise; return None for statements that have no text.
    """
    for y in s.walk(kernel.body):
        if not (isinstance(y, _KINDS) or (isinstance(y, s.Store) and y.log is None)):
            return None
        if not isinstance(y, Line):
            continue
        if not y.is_of_numbers or any(step.kernel.otherwise for step in y.program.steps):
            return None
    text = _Text()
    names = [text.name(x) for x in (*kernel.inputs, *kernel.outputs)]
    body = [*text.block(kernel.body)]
    if text.is_ambiguous:
        return None
    cells = [text.name(x) for x in dict.fromkeys(s.variables(kernel.body)) if type(x) is s.Cell]
    body = [*(f"{name} = 0" for name in cells), *body, "return"]
    text.functions["float"], text.exact["float"] = float, np.float64
    result = function_of(", ".join(names), body, text.functions, "procedure")
    return result, FunctionType(result.__code__, text.functions | text.exact)


class _Text:
    """Writes statements, and collects what they call."""

    def __init__(self) -> None:
        self.functions: dict[str, object] = {"inf": math.inf, "nan": math.nan}
        self.exact: dict[str, object] = {}
        self._names: dict[object, str] = {}
        # Whether functions of one name are called.
        self.is_ambiguous = False

    def name(self, x: object) -> str:
        return self._names.setdefault(x, f"x{len(self._names)}")

    def block(self, statements: Sequence[s.Statement]) -> Iterator[str]:
        for x in statements:
            yield from getattr(self, f"_{s.name_of(x)}")(x)

    def _inner(self, statements: Sequence[s.Statement]) -> Iterator[str]:
        yield from (f"    {line}" for line in [*self.block(statements)] or ["pass"])

    def _number(self, x: s.Number) -> str:
        return self.name(x) if isinstance(x, s.Cell) else f"float({float(x)!r})"

    def _element(self, x: s.Load | s.Store | s.AddAt) -> str:
        terms = ["0"]
        for i, n in zip(x.indices, contiguous_strides(x.array.shape, 1), strict=True):
            i = s.Affine.of(i)
            parts = [f"{m} * int({self.name(cell)})" for cell, m in i.terms]
            terms.append(f"{n} * ({' + '.join([str(i.constant), *parts])})")
        return f"{self.name(x.array)}[{' + '.join(terms)}]"

    def _load(self, x: s.Load) -> Iterator[str]:
        yield f"{self.name(x.out)} = {self._element(x)}"

    def _store(self, x: s.Store) -> Iterator[str]:
        yield f"{self._element(x)} = {self._number(x.value)}"

    def _add_at(self, x: s.AddAt) -> Iterator[str]:
        yield f"{self._element(x)} += {self._number(x.value)}"

    def _line(self, x: Line) -> Iterator[str]:
        straight = Straight(x.program, [self.name(cell) for cell in x.inputs])
        result = straight.results()
        for i, cell in enumerate(x.sums, len(x.outputs)):
            result[i] = f"{self.name(cell)} + {result[i]}"
        yield from straight.lines
        if result:
            names = ", ".join(self.name(cell) for cell in (*x.outputs, *x.sums))
            yield f"{names} = {', '.join(result)}"
        for name, function in straight.functions.items():
            values = self.functions.get(name, function)
            self.is_ambiguous |= values is not function and values != function
        self.functions |= straight.functions
        self.exact |= straight.exact

    def _loop(self, x: s.For) -> Iterator[str]:
        low, high = (f"int({self._number(item)})" for item in (x.lower, x.upper))
        ends = f"{high}, {low} - 1, -1" if x.backwards else f"{low}, {high} + 1"
        yield f"for {self.name(x.index)} in range({ends}):"
        yield from self._inner(x.body)

    def _branch(self, x: s.If) -> Iterator[str]:
        yield f"if {self._number(x.holds)}:"
        yield from self._inner(x.yes)
        if x.no:
            yield "else:"
            yield from self._inner(x.no)


def run_text(
    kernel: Procedure, functions: tuple[Function, Function], operands: Sequence[np.ndarray]
) -> Sequence[np.ndarray]:
    """Run the text of a procedure on arrays."""
    for function in functions:
        # Elements of a list of an array are floats of NumPy, which do not raise.
        args = [
            np.ravel(x).tolist() if function is functions[0] else [*np.ravel(x)] for x in operands
        ]
        result = [[0.0] * int(np.prod(x.shape)) for x in kernel.outputs]
        try:
            with np.errstate(all="ignore"):
                function(*args, *result)
            break
        except (ArithmeticError, ValueError):
            if function is functions[1]:
                raise
    return [np.reshape(x, y.shape) for x, y in zip(result, kernel.outputs, strict=True)]
