"""Rows of the table of densities in programs.

The function of a row is run once on symbols, which gives its `RowGraph`. A `RowProgram` is that
graph in a program: the steps that a result needs are written when it is first wanted, for the sum
of the terms over all elements, for each element, or for a partial.

The program of a sum depends on which arguments are numbers and which are vectors. Summed over
elements, ``-0.5 * z * z - log(sigma)`` is an inner product and one logarithm times the number of
elements if sigma is a number, but an inner product and a sum of logarithms if sigma is a vector.
Numbers are taken out of sums, sums of products become inner products, and each value that a result
needs is computed once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

import numpy as np

from varmat.core.elementwise import ROWS, Elementwise, for_arrays
from varmat.functions.special.log_incomplete import SLOPES
from varmat.locks import Once
from varmat.programs.build.arithmetic import ADD, MULTIPLY, SUBTRACT, is_number
from varmat.programs.build.builder import Builder
from varmat.programs.build.expressions import apply_row
from varmat.programs.build.symbol import Symbol, apply_ufunc, lift
from varmat.programs.ir.kernel import Kernel
from varmat.programs.ir.program import Value
from varmat.programs.kernels import elementwise
from varmat.programs.kernels.counts import SUMS, TALLIED, TALLY, sum_of_counts
from varmat.programs.kernels.elementwise import SELECT, ufunc_kernel
from varmat.programs.kernels.reductions import Reduce
from varmat.typing import Function, Operand

# A stand-in for the length of vectors during tracing. The real number of elements is an argument of
# the program.
VECTOR = (7,)
# For numbers and variables these take less time than the ufuncs.
OPERATORS: dict[np.ufunc, Function] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.divide: operator.truediv, np.negative: operator.neg, np.power: operator.pow,
}  # fmt: skip


class RowGraph:
    """The steps of a density's function, run once on symbols of arrays.

    Parameters
    ----------
    form : callable
        Makes a `LogDensity`.
    names : sequence of str
        The names of its arguments.

    Attributes
    ----------
    symbols : dict
        Name of an argument -> its symbol.
    parts : LogDensity
        The log density of these symbols.
    """

    def __init__(self, form: Function, names: Iterable[str]) -> None:
        self.builder = _Elements()
        self.symbols = {name: Symbol(self.builder, self.builder.argument(VECTOR)) for name in names}
        self.parts = form(*self.symbols.values())

    def value(self, result: object) -> Value:
        return lift(self.builder, result)

    def names(self, result: object) -> frozenset[str]:
        """Return the arguments on which a result depends."""
        inside = cone([self.value(result)])
        return frozenset(name for name, x in self.symbols.items() if x.value in inside)

    def function(self, results: Iterable[object], names: Sequence[Value] = ()) -> Function:
        """Return a function from the arguments, of any kinds, and given values to a list of
        results.
        """
        arguments = [*(x.value for x in self.symbols.values()), *names]
        outputs = [self.value(x) for x in results]
        indices = {value: i for i, value in enumerate(arguments)}
        inside = cone(outputs, indices)
        cached: list[Operand] = [None] * len(arguments)
        for value in inside:
            if value.step is None and value not in indices:
                indices[value] = len(cached)
                cached.append(value.data.item())
        # In the order of the function: the sums of its derivatives are then taken in that order.
        plan = []
        for step in self.builder.steps:
            value = step.results[0]
            if value in inside and value not in indices:
                plan.append((self._called(step.kernel), [indices[v] for v in step.operands]))
                indices[value] = len(indices)
        result = [indices[v] for v in outputs]

        def every(*values: Operand) -> list[Operand]:
            output = [*values, *cached[len(values) :]]
            for function, operands in plan:
                output.append(function(*[output[i] for i in operands]))
            return [output[i] for i in result]

        return every

    def _called(self, kernel: Kernel) -> Function:
        """Return the function that computes a step for operands of any kinds."""
        if kernel is SELECT:
            return np.where
        if isinstance(kernel, elementwise.Ufunc) and kernel.ufunc in OPERATORS:
            return OPERATORS[kernel.ufunc]
        # The library's row, and not a user's that answers for the ufunc.
        row = self.builder.rows.get(kernel)
        return for_arrays(kernel.name if row is None else row.name)


def cone(values: Iterable[Value], ends: Container[Value] = ()) -> set[Value]:
    """Return these values and all from which they are computed, without the inputs of the ends."""
    result: set[Value] = set()
    left = [*values]
    while left:
        value = left.pop()
        if value not in result:
            result.add(value)
            left += value.step.operands if value.step is not None and value not in ends else ()
    return result


class RowProgram:
    """A row of the table in a program.

    Parameters
    ----------
    graph : RowGraph
    terms : sequence
        Symbols of the terms that are kept, see `Univariate.kept`.
    builder : Builder
        The builder of the program.
    values : dict of str to Value
        The arguments of the row.
    apply : callable
        Writes a function of the elementwise table.
    """

    def __init__(
        self,
        graph: RowGraph,
        terms: Sequence[object],
        builder: Builder,
        values: Mapping[str, Value],
        apply: Callable[[Builder, Elementwise, list[Value]], Value] = apply_row,
    ) -> None:
        self._apply, self._terms = apply, terms
        self.graph, self.builder, self.values = graph, builder, values
        self.parts = graph.parts
        self._made = {self.graph.symbols[name].value: value for name, value in values.items()}

    def each(self) -> Value:
        """Write the log density at each element."""
        return self.builder.add_all([*map(self.write, self._terms)])

    def sum(self) -> Value:
        """Write the sum over all elements."""
        return self.builder.add_all([self.total(self.write(term)) for term in self._terms])

    def partial(self, name: str) -> Value:
        """Write the derivative in an argument at each element."""
        return self.write(self.parts.partials[name])

    def slope(self, name: str) -> Value:
        """Write the derivative of the sum in an argument: of its shape, or one for all elements."""
        partial = self.partial(name)
        return partial if self.values[name].shape else self.total(partial)

    def total(self, x: Value) -> Value:
        """Sum a value over all elements."""
        return self.builder.sum(x)

    def apply(self, row: Elementwise, operands: list[Value]) -> Value:
        """Write a function of the elementwise table."""
        return self._apply(self.builder, row, operands)

    def write(self, result: object) -> Value:
        """Write a result of the graph."""
        return self._written(self.graph.value(result))

    def _written(self, value: Value) -> Value:
        if value not in self._made:
            self._made[value] = self._computed(value)
        return self._made[value]

    def _computed(self, value: Value) -> Value:
        builder, step = self.builder, value.step
        if step is None:
            return builder.constant(value.data)
        kernel, operands = step.kernel, [self._written(v) for v in step.operands]
        if kernel is SELECT:
            return builder.where(*operands)
        if isinstance(kernel, elementwise.Ufunc):
            return apply_ufunc(builder, kernel.ufunc, operands)
        row = self.graph.builder.rows[kernel]
        cached = SLOPES.get(row.name)
        if cached is None or not is_number(operands[0], 1.0):
            return self.apply(row, operands)
        # A slope is given the value of its function, which the program computes anyway.
        of, slope = cached
        return builder.call(_slope(row.name, slope), *operands, self.apply(of, operands[1:]))


def single_step(builder: Builder, row: Elementwise, operands: list[Value]) -> Value:
    """Write a function of the elementwise table as one step."""
    if isinstance(row.ufunc, np.ufunc):
        return apply_ufunc(builder, row.ufunc, operands)
    return builder.call(_function(row), *operands)


@Once
def _function(row: Elementwise) -> elementwise.PythonFunction:
    return elementwise.PythonFunction(row.name, row.ufunc)


@Once
def _slope(name: str, slope: Operand) -> elementwise.PythonFunction:
    return elementwise.PythonFunction(f"{name}_of_value", slope)


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
        # Counts that were tallied -> their tallies.
        self._tallies: dict[Value, Value] = {}

    def ufunc(self, ufunc: np.ufunc, *operands: Value) -> Value:
        """Write a step for a ufunc, in the order as written: products may overflow in another
        order.
        """
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
            number, remainder = x.step.operands
            return self.call(MULTIPLY, self.ufunc(np.negative, number), remainder)
        return self.call(ufunc_kernel(ufunc), *operands)

    def number(self, x: Value) -> Value:
        """Return truth values unchanged: NumPy and Python use them as numbers."""
        return x

    def sum(self, x: Value, axes: Sequence[int] | None = None) -> Value:
        return self.total(x)

    def total(self, x: Value) -> Value:
        if x.shape:
            return super().total(x)
        return x if self.size is None else self.ufunc(np.multiply, self.size, x)

    def _sum_of_sum(self, x: Value) -> Value:
        if (
            x.step is not None
            and x.step.kernel in (ADD, SUBTRACT)
            and any(map(is_computed, x.step.operands))
        ):
            ufunc = np.add if x.step.kernel is ADD else np.subtract
            return self.ufunc(ufunc, *map(self.total, x.step.operands))
        total = sum_of_counts(x, self.counts)
        if total is None:
            return self.call(Reduce(np.add, (0,)), x)
        kernel, (*others, n) = total
        if n.shape and others and not any(v.shape for v in others) and kernel.name in TALLIED:
            self._tallies[n] = self.call(TALLY, n)
            return self.call(kernel, *others, n, self._tallies[n])
        if kernel is SUMS["gammaln"] and n in self._tallies:
            return self.call(kernel, n, self._tallies[n])
        return self.call(kernel, *others, n)


class StableSums(Sums):
    """Sums with every element computed first: a sum with a number taken out might overflow."""

    def total(self, x: Value) -> Value:
        return self._sum_of_sum(x) if x.shape else super().total(x)


def is_computed(x: Value) -> bool:
    """Tell whether a value may be summed separately from its neighbour. A difference of arguments
    may not: two sums would lose its digits.
    """
    return x.step is not None and x.step.kernel not in (ADD, SUBTRACT)


class _Elements(Sums):
    """Builder of a graph.

    Attributes
    ----------
    rows : dict
        Kernels of functions of the elementwise table -> their rows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[Kernel, Elementwise] = {}

    def ufunc(self, ufunc: np.ufunc, *operands: Value) -> Value:
        """Write a step for a ufunc, or for the function that replaces it in the table."""
        name = ufunc.__name__
        row = ROWS.get(name)
        if row is not None and row.ufunc is not ufunc and getattr(np, name, None) is ufunc:
            return self.apply_row(self, row, [*operands])
        return super().ufunc(ufunc, *operands)

    def apply_row(self, builder: Builder, row: Elementwise, operands: list[Value]) -> Value:
        is_ufunc = isinstance(row.ufunc, np.ufunc)
        self.rows[ufunc_kernel(row.ufunc) if is_ufunc else _function(row)] = row
        return single_step(builder, row, operands)
