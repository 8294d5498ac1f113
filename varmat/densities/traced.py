"""Turn the expressions of a density into a program for the sum of its terms and for its
derivatives.

The program depends on which arguments are numbers and which are vectors. Summed over elements,
``-0.5 * z * z - log(sigma)`` is an inner product and one logarithm times the number of elements if
sigma is a number, but an inner product and a sum of logarithms if sigma is a vector. Numbers are
taken out of sums, sums of products become inner products, and each value that a result needs is
computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.elementwise import ROWS, Elementwise
from varmat.functions.special.log_incomplete import SLOPES
from varmat.programs.build.arithmetic import ADD, MULTIPLY, SUBTRACT, is_number
from varmat.programs.build.builder import Builder
from varmat.programs.build.expressions import Scope, compiled
from varmat.programs.build.symbol import Symbol, lift
from varmat.programs.ir.program import Program, Value
from varmat.programs.kernels.counts import TALLIED, TALLY, sum_of_counts
from varmat.programs.kernels.elementwise import Function, ufunc_kernel
from varmat.programs.kernels.guards import Unless
from varmat.programs.kernels.reductions import Reduce

if TYPE_CHECKING:
    from varmat.typing import Operand, Result

# A stand-in for the length of vectors during tracing. The real number of elements is an argument of
# the program.
VECTOR = (7,)


def abbreviations(expressions: Iterable[str], let: dict[str, str]) -> dict[str, str]:
    """The abbreviations that expressions use, directly or not, in an order of evaluation."""
    found: dict[str, str] = {}
    for expression in expressions:
        for name in compiled(expression).co_names:
            if name in let and name not in found:
                found |= abbreviations([let[name]], let)
                found[name] = let[name]
    return found


def names_in(expressions: Iterable[str], let: dict[str, str]) -> set[str]:
    """The names that expressions use, directly or by way of abbreviations."""
    expressions = [*expressions]
    return {
        name
        for text in (*expressions, *abbreviations(expressions, let).values())
        for name in compiled(text).co_names
    }


class Sums(Builder):
    """Builder of a program for a sum over elements, whose number is an argument.

    Attributes
    ----------
    size : Value, optional
        The number of elements; None if there are no vectors, and so nothing to add.
    counts : set of Value
    """

    def __init__(self) -> None:
        super().__init__()
        self.size: Value | None = None
        self.counts: set[Value] = set()

    def ufunc(self, ufunc: np.ufunc, *operands: Value) -> Value:
        """A step for a ufunc, in the order as written: products may overflow in another order."""
        x, *others = operands
        if ufunc is np.multiply and x.shape and not others[0].shape:
            return self.ufunc(ufunc, others[0], x)
        if (
            ufunc is np.negative
            and x.shape
            and x.step is not None
            and x.step.kernel is MULTIPLY
            and not x.step.operands[0].shape
        ):
            # Change the sign of the number, which saves a pass over the array.
            number, rest = x.step.operands
            return self.call(MULTIPLY, self.ufunc(np.negative, number), rest)
        return self.call(ufunc_kernel(ufunc), *operands)

    def number(self, x: Value) -> Value:
        """Leave truth values as they are: NumPy and Python use them as numbers."""
        return x

    def sum(self, x: Value, axes: Sequence[int] | None = None) -> Value:
        return self._total(x)

    def _total(self, x: Value) -> Value:
        if x.shape:
            return super()._total(x)
        return x if self.size is None else self.ufunc(np.multiply, self.size, x)

    def _sum_of_sum(self, x: Value) -> Value:
        if (
            x.step is not None
            and x.step.kernel in (ADD, SUBTRACT)
            and any(map(is_computed, x.step.operands))
        ):
            ufunc = np.add if x.step.kernel is ADD else np.subtract
            return self.ufunc(ufunc, *map(self._total, x.step.operands))
        known = sum_of_counts(x, self.counts)
        if known is None:
            return self.call(Reduce(np.add, (0,)), x)
        kernel, (*others, n) = known
        if n.shape and others and not any(v.shape for v in others) and kernel.name in TALLIED:
            return self.call(kernel, *others, n, self.call(TALLY, n))
        return self.call(kernel, *others, n)


class CarefulSums(Sums):
    """Sums with every element computed first: a sum with a number taken out might overflow."""

    def _total(self, x: Value) -> Value:
        return self._sum_of_sum(x) if x.shape else super()._total(x)


def is_computed(x: Value) -> bool:
    """Whether a value may be summed apart from its neighbour. A difference of arguments may not:
    two sums would lose its digits.
    """
    return x.step is not None and x.step.kernel not in (ADD, SUBTRACT)


class Names(Scope):
    """What the names in an expression mean; functions of the elementwise table are single steps."""

    def __missing__(self, name: str) -> Result:
        row, builder = ROWS.get(name), self.builder
        if row is None or isinstance(row.ufunc, np.ufunc):
            return super().__missing__(name)
        return lambda *args: Symbol(
            builder, with_value(builder, row, [lift(builder, x) for x in args], _single_step)
        )


def with_value(
    builder: Builder, row: Elementwise, operands: list[Value], apply: Callable[..., Value]
) -> Value:
    """Apply a function of the elementwise table. A slope is given the value of its function, which
    the program computes anyway.
    """
    known = SLOPES.get(row.name)
    if known is None or not is_number(operands[0], 1.0):
        return apply(builder, row, operands)
    of, slope = known
    return builder.call(_slope(row.name, slope), *operands, apply(builder, of, operands[1:]))


def _single_step(builder: Builder, row: Elementwise, operands: list[Value]) -> Value:
    return builder.call(_function(row), *operands)


@cache
def _function(row: Elementwise) -> Function:
    return Function(row.name, row.ufunc)


@cache
def _slope(name: str, slope: Operand) -> Function:
    return Function(f"{name}_of_value", slope)


def traced(
    density: Operand,
    vectors: set[str],
    active: Sequence[str],
    terms: Sequence[str],
    quick: Operand,
    careful: Callable[..., Any] | None,
) -> Program:
    """The program that computes the value, and the partials in the active arguments, from the
    arguments and the number of elements.

    The program calls `careful` instead where the conditions of a quick form fail or its value is
    not finite."""
    builder = Sums() if careful is not None or density.quick_for(vectors) is None else CarefulSums()
    letters = {
        name: Symbol(builder, builder.argument(VECTOR if name in vectors else ()))
        for name in density.operands
    }
    size = builder.argument(())
    builder.size = size if vectors else None
    builder.counts = {letters[name].value for name in density.discrete}
    scope = Names(builder, letters, density.lets(quick))
    if careful is not None:
        if quick.number is not None:
            number, (low, high) = letters[quick.number], quick.between
            builder.apply(Unless(careful), ((number > low) & (number < high)).value)
        for name in quick.counts:
            builder.apply(Unless(careful), (letters[name] <= density.moderate).value)
        if quick.when is not None:
            builder.apply(Unless(careful), scope.evaluate(quick.when))
    if density.support is not None and not density.support_is_shown:
        builder.guard(scope.evaluate(density.support))
    partials = [scope.evaluate(density.partials[name]) for name in active]
    partials = [
        p if name in vectors else builder.sum(p) for name, p in zip(active, partials, strict=True)
    ]
    value = builder.add_all([builder.sum(scope.evaluate(term)) for term in terms])
    if careful is not None:
        builder.apply(Unless(careful), builder.ufunc(np.isfinite, value))
    return builder.program([value, *partials])
