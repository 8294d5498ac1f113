"""Sums of sums as one sum, as the terms of a density that is accumulated.

A term that is itself a sum, and that only one sum reads, is replaced by its own terms. Constants
are added up, and a term that occurs several times is multiplied. A sum with negative terms becomes
a difference of two sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from varmat.programs.build.arithmetic import ADD, SUBTRACT
from varmat.programs.ir.program import FLOAT, Program, Step, Value, read_values
from varmat.programs.kernels.reductions import SUM
from varmat.programs.passes.rewriter import Rewriter

_SUMS = (ADD, SUM, SUBTRACT)
# Additions in a row from which they are an accumulation.
MANY = 16
# A value, and whether it is subtracted.
Term = tuple[Value, bool]


def flattened(program: Program) -> Program:
    """Replace sums that only another sum reads by their terms."""
    reads = read_values(program.steps, program.outputs)
    long = _accumulations(program, reads)
    absorbed = {
        id(v)
        for step in program.steps
        for v, _ in _terms(step)
        if _is_inner(v, step, reads) and _is_absorbed(v, step.results[0], long)
    }
    return _Flattening(program, absorbed).program() if absorbed else program


def is_sum(v: Value) -> bool:
    return v.step is not None and v.step.kernel is SUM


def _terms(step: Step) -> list[Term]:
    """Return the terms that a step adds up."""
    if step.kernel not in _SUMS:
        return []
    last = len(step.operands) - 1 if step.kernel is SUBTRACT else -1
    return [(v, i == last) for i, v in enumerate(step.operands)]


def _is_inner(v: Value, reader: Step, reads: Counter[int]) -> bool:
    """Return whether a value is read only by a step that makes one of its shape."""
    return reads[id(v)] == 1 and v.shape == reader.results[0].shape


def _is_absorbed(v: Value, total: Value, long: set[int]) -> bool:
    """Return whether the terms of a value become terms of the sum that reads it.

    Terms of densities and contributions to adjoints do. Sums that the user wrote do only if they
    are long accumulations, because their order may matter, as in compensated sums.
    """
    return id(v) in long or (is_sum(v) and (is_sum(total) or id(total) in long))


def _accumulations(program: Program, reads: Counter[int]) -> set[int]:
    """Return the results of additions and subtractions in a chain, or a tree, of many."""
    sizes: Counter[int] = Counter()
    steps = [step for step in program.steps if step.kernel in (ADD, SUBTRACT)]
    for step in steps:
        inner = [v for v in step.operands if _is_inner(v, step, reads)]
        sizes[id(step.results[0])] = 1 + sum(sizes[id(v)] for v in inner)
    long: set[int] = set()
    for step in reversed(steps):
        result = id(step.results[0])
        if sizes[result] >= MANY or result in long:
            inner = [v for v in step.operands if _is_inner(v, step, reads)]
            long.update([result, *(id(v) for v in inner if id(v) in sizes)])
    return long


class _Flattening(Rewriter):
    """Writes the sums again."""

    def __init__(self, program: Program, absorbed: set[int]) -> None:
        super().__init__(program)
        self._absorbed = absorbed

    def program(self) -> Program:
        for step in self.old.steps:
            if step.results and id(step.results[0]) in self._absorbed:
                continue
            terms = _terms(step)
            if any(id(v) in self._absorbed for v, _ in terms):
                total = self.builder.broadcast(self._sum(terms), step.results[0].shape)
                self.replace(step.results, [total])
            else:
                self.keep(step)
        return super().program()

    def _sum(self, terms: Iterable[Term]) -> Value:
        """Sum values; those that are absorbed are replaced by their terms."""
        builder, counts = self.builder, Counter[Term]()
        constants: list[np.ndarray] = []
        for old, is_negative in self._leaves(terms):
            x = self.value(old)
            if x.is_constant and x.dtype is FLOAT:
                constants.append(-x.data if is_negative else x.data)
            else:
                counts[x, is_negative] += 1
        positive, negative = (
            [
                x if n == 1 else builder.ufunc(np.multiply, builder.constant(float(n)), x)
                for (x, is_negative), n in counts.items()
                if is_negative is sign
            ]
            for sign in (False, True)
        )
        if constants:
            positive.append(builder.constant(np.asarray(sum(constants[1:], constants[0]))))
        if not negative:
            return builder.add_all(positive)
        if not positive:
            return builder.ufunc(np.negative, builder.add_all(negative))
        return builder.ufunc(np.subtract, builder.add_all(positive), builder.add_all(negative))

    def _leaves(self, terms: Iterable[Term]) -> Iterable[Term]:
        stack = [*terms][::-1]
        while stack:
            v, is_negative = stack.pop()
            if id(v) in self._absorbed:
                stack += [(x, is_negative ^ sign) for x, sign in _terms(v.step)][::-1]  # type: ignore[arg-type]
            else:
                yield v, is_negative
