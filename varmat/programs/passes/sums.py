"""Sums of sums as one sum: the terms of a density that is accumulated, contributions to one place.

A term that is itself a sum, and that only one sum reads, is replaced by its own terms. Constants
are added up, and a term that occurs several times is multiplied. A sum with negative terms becomes
a difference of two sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from varmat.programs.build.arithmetic import ADD, SUBTRACT
from varmat.programs.ir.program import FLOAT, Program, Shape, Step, Value, read_values
from varmat.programs.kernels.reductions import SUM
from varmat.programs.passes.rewriter import Rewriter

_SUMS = (ADD, SUM, SUBTRACT)
# Additions in a row from which they are an accumulation.
MANY = 16
# A value, and whether it is subtracted.
Term = tuple[Value, bool]


def flattened(program: Program) -> Program:
    """Replace sums that only another sum reads by their terms, and add up what comes to one
    place.
    """
    reads = read_values(program.steps, program.outputs)
    repeated = {id(step): groups for step in program.steps if (groups := _repeated(step))}
    long = _accumulations(program, reads)
    absorbed = {
        id(v)
        for step in program.steps
        for v, _ in _terms(step)
        if _is_absorbed(v, step, reads, long)
    }
    for groups in repeated.values():
        parts = [(v, shape) for (_, shape), group in groups.items() for v in group]
        absorbed.update(
            id(v) for v, shape in parts if is_sum(v) and reads[id(v)] == 1 and v.shape == shape
        )
    return _Flattening(program, absorbed, repeated).program() if absorbed or repeated else program


def is_sum(v: Value) -> bool:
    return v.step is not None and v.step.kernel is SUM


def _terms(step: Step) -> list[Term]:
    """What a step adds up."""
    if step.kernel not in _SUMS:
        return []
    last = len(step.operands) - 1 if step.kernel is SUBTRACT else -1
    return [(v, i == last) for i, v in enumerate(step.operands)]


def _is_absorbed(v: Value, reader: Step, reads: Counter[int], long: set[int]) -> bool:
    """Whether the terms of a value become those of the sum that reads it.

    Terms of densities and contributions to adjoints do. Sums that the user wrote do only if they
    are long accumulations, because their order may matter, as in compensated sums.
    """
    if v.step is None or reads[id(v)] != 1 or v.shape != reader.results[0].shape:
        return False
    return id(v) in long or (is_sum(v) and (reader.kernel is SUM or id(reader.results[0]) in long))


def _accumulations(program: Program, reads: Counter[int]) -> set[int]:
    """The results of additions and subtractions that belong to a chain, or a tree, of many."""
    sizes: dict[int, int] = {}
    for step in program.steps:
        if step.kernel in (ADD, SUBTRACT):
            shape = step.results[0].shape
            inner = [
                sizes.get(id(v), 0) for v in step.operands if reads[id(v)] == 1 and v.shape == shape
            ]
            sizes[id(step.results[0])] = 1 + sum(inner)
    long: set[int] = set()
    for step in reversed(program.steps):
        result = id(step.results[0]) if step.results else 0
        if step.kernel in (ADD, SUBTRACT) and (sizes[result] >= MANY or result in long):
            long.add(result)
            members = [
                v for v in step.operands if reads[id(v)] == 1 and v.shape == step.results[0].shape
            ]
            long.update(id(v) for v in members if id(v) in sizes)
    return long


def _repeated(step: Step) -> dict[tuple[object, Shape], list[Value]]:
    """The parts of an assembled array that come to the same place, several to each, by place and
    shape.
    """
    groups: dict[tuple[object, Shape], list[Value]] = {}
    for place, shape, part, _ in step.kernel.parts(step.operands)[1]:
        if place is not None and part.shape == shape:
            groups.setdefault((place, shape), []).append(part)
    return {key: group for key, group in groups.items() if len(group) > 1}


class _Flattening(Rewriter):
    """Writes the sums anew."""

    def __init__(
        self,
        program: Program,
        absorbed: set[int],
        repeated: dict[int, dict[tuple[object, Shape], list[Value]]],
    ) -> None:
        super().__init__(program)
        self._absorbed, self._repeated = absorbed, repeated

    def program(self) -> Program:
        for step in self.old.steps:
            if step.results and id(step.results[0]) in self._absorbed:
                continue
            terms = _terms(step)
            if any(id(v) in self._absorbed for v, _ in terms):
                total = self.builder.broadcast(self._sum(terms), step.results[0].shape)
                self.replace(step.results, [total])
            elif id(step) in self._repeated:
                self.replace(step.results, [self._assembled(step)])
            else:
                self.keep(step)
        return super().program()

    def _sum(self, terms: Iterable[Term]) -> Value:
        """The sum of values, of which those that are absorbed stand for their terms."""
        builder, signed = self.builder, ({}, {})  # type: ignore[var-annotated]
        values: dict[int, Value] = {}
        constants: list[np.ndarray] = []
        for old, is_negative in self._leaves(terms):
            x = self.value(old)
            if x.data is not None and x.dtype is FLOAT:
                constants.append(-x.data if is_negative else x.data)
            else:
                values[id(x)] = x
                signed[is_negative][id(x)] = signed[is_negative].get(id(x), 0) + 1
        positive, negative = (
            [
                values[i]
                if n == 1
                else builder.ufunc(np.multiply, builder.constant(float(n)), values[i])
                for i, n in counts.items()
            ]
            for counts in signed
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

    def _assembled(self, step: Step) -> Value:
        """An array of parts with what comes to one place added up beforehand."""
        base, given = step.kernel.parts(step.operands)
        groups, parts = dict(self._repeated[id(step)]), []
        for place, shape, part, index in given:
            if index is not None:
                parts.append((index.data, shape, self.value(part)))
                continue
            key = (place, shape)
            if part.shape != shape or key not in self._repeated[id(step)]:
                parts.append((place, shape, self.builder.broadcast(self.value(part), shape)))
            elif key in groups:  # this place has not had its sum
                total = self._sum((v, False) for v in groups.pop(key))
                parts.append((place, shape, self.builder.broadcast(total, shape)))
        whole = None if base is None else self.value(base)
        return self.builder.assemble(step.results[0].shape, parts, whole)
