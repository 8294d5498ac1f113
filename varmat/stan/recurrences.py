"""Loops that carry numbers from iteration to iteration, as one `varmat.scan` of a recording.

Everything that does not depend on earlier iterations is computed for all of them at once; each
iteration is given its row. Outer variables that it assigns are the carry of the scan. The body
is written once, whatever the number of iterations, and may branch on parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np

import varmat as vm
from varmat.core.errors import DomainError, refusals
from varmat.core.matvar import to_varmat
from varmat.core.operation import is_differentiable
from varmat.core.tape import current_tape
from varmat.interrupts import from_signal
from varmat.stan import syntax as s
from varmat.stan import types
from varmat.stan.running import Executed, Frame, StanEvaluated, kept_arguments
from varmat.stan.translate import Expressions
from varmat.stan.values import StanValue, put, receiving
from varmat.stan.vectorized import FEW, WITH_STATE, VectorizedLoop, check_state, declared_in
from varmat.stan.vectorized_expressions import (
    DENSITIES,
    OF_ONE_AXIS,
    STACKED,
    BoundError,
    elementwise_density,
)


class Recurrence(VectorizedLoop):
    """Translates the body of a loop for one iteration, with a batch axis of length one."""

    def __init__(
        self,
        translator: Expressions,
        loop: s.For,
        count: int,
        carried: Collection[str],
        filled: Collection[str],
    ) -> None:
        super().__init__(translator, loop, count, {loop.name, *carried, *filled})
        self._carried, self._index = sorted(carried), loop.name
        # Arrays whose elements are filled, one in each iteration: the places of the element, and of
        # the elements before it that are read.
        self._filled = {
            name: (
                translator.declare(f" element {name}", types.REAL),
                translator.declare(f" before {name}", types.VECTOR),
            )
            for name in sorted(filled)
        }
        self._slots |= {place for indices in self._filled.values() for place in indices}
        self.most_lags = 0
        inner = {node.name for node in s.walk(loop.body) if isinstance(node, s.For)}
        self._inside = declared_in(loop.body) | {*carried, *filled} | inner
        self._own |= {*carried, *filled}
        self._of_all = VectorizedLoop(translator, loop, count, {loop.name})
        # By the text of an expression: the place of its row, and its values in all iterations.
        self._rows: dict[str, tuple[int, StanEvaluated]] = {}
        # Whether a condition is translated, in which integers may be those of rows.
        self._is_condition = False

    @classmethod
    def of_loop(
        cls, translator: Expressions, loop: s.For, count: int, collapsed: Sequence[s.For] = ()
    ) -> Self:
        own, carried, filled = declared_in(loop.body), set[str](), set[str]()
        for node in s.walk(loop.body):
            check_state(node, WITH_STATE)
            if isinstance(node, s.Assignment) and (name := s.root(node.target)) not in own:
                is_number = node.target.type == types.REAL
                if is_number and isinstance(node.target, s.VariableName):
                    carried.add(name)
                elif is_number and translator.place(name)[1] in OF_ONE_AXIS:
                    filled.add(name)
                else:
                    raise BoundError(f"an iteration hands on `{name}`", node.at)
        return cls(translator, loop, count, carried, filled)

    # --- expressions ---

    def expression(self, e: s.Expression) -> StanEvaluated:
        if not self.varies(e) or self._inside & {*s.names_in(e)}:
            return super().expression(e)
        if e.type == types.INT and not self._is_condition:
            raise BoundError("an integer of a row is a real number in the recording", e.at)
        if repr(e) not in self._rows:
            place = self._translator.declare(f" row {len(self._rows)}", e.type)
            self._rows[repr(e)] = place, self._of_all.expression(e)
        place, _ = self._rows[repr(e)]
        return lambda f: f[place]

    def _lag(self, e: s.Expression | s.Range) -> int:
        """Return how many elements before the iteration's own an index is."""
        if isinstance(e, s.VariableName) and e.name == self._index:
            return 0
        if isinstance(e, s.Binary) and e.operator == "-" and isinstance(e.right, s.Number):
            steps = e.right.value
            if isinstance(steps, int):
                return self._lag(e.left) + steps
        raise BoundError(
            "an iteration reads an element that is not a fixed number before its own", e.at
        )

    def variable(self, e: s.VariableName) -> StanEvaluated:
        if e.name in self._filled:
            raise BoundError(f"an iteration reads `{e.name}` as a whole", e.at)
        return super().variable(e)

    def index(self, e: s.Indexed) -> StanEvaluated:
        if not isinstance(e.base, s.VariableName) or e.base.name not in self._filled:
            return super().index(e)
        element, before = self._filled[e.base.name]
        lag = self._lag(e.indices[0])
        self.most_lags = max(self.most_lags, lag)
        return (lambda f: f[before][:, -lag]) if lag else lambda f: f[element]

    def slot(self, name: str) -> int:
        return self._filled[name][0] if name in self._filled else super().slot(name)

    def branches(self, e: s.Expression) -> Callable[[Frame], Iterator[tuple[StanValue, Frame]]]:
        before, self._is_condition = self._is_condition, True
        try:
            return super().branches(e)
        finally:
            self._is_condition = before

    def call(self, e: s.Call) -> StanEvaluated:
        if e.name.endswith(DENSITIES) and (e.definition is not None or "_lup" in e.name):
            raise BoundError(f"which terms of `{e.name}` are dropped depends on the call", e.at)
        return super().call(e)

    # --- statements ---

    def declaration(self, d: s.Declaration) -> Executed:
        if d.declared.unsized == types.INT and d.name in self._varying:
            raise BoundError(f"each iteration has an integer `{d.name}`", d.at)
        return super().declaration(d)

    def assignment(self, a: s.Assignment) -> Executed:
        name = s.root(a.target)
        if name not in self._filled:
            return super().assignment(a)
        if not isinstance(a.target, s.Indexed) or self._lag(a.target.indices[0]):
            raise BoundError(f"an iteration assigns to another element of `{name}`", a.at)
        combined = s.Binary(a.at, a.operator, a.target, a.value) if a.operator else a.value
        combined.type = types.REAL
        value, place = self.full(combined, types.REAL), self.slot(name)

        def run(f: Frame) -> None:
            f[place] = value(f)

        return run

    def distribution(self, d: s.Tilde) -> Executed:
        if d.definition is not None or d.lower is not None or d.upper is not None:
            raise BoundError("which terms of a density are dropped depends on the call", d.at)
        return super().distribution(d)

    def _density(
        self, name: str, full: Sequence[s.Expression], drops: bool, at: s.Position
    ) -> StanEvaluated:
        if name in STACKED:
            raise BoundError("an iteration has a density of several observations", at)
        density, arguments = elementwise_density(name, at), self.alike(full)
        pairs = [*zip(density.operands, full, strict=True)]
        if any(x in density.discrete and self.varies(e) for x, e in pairs):
            raise BoundError("a count of a row is a real number in the recording", at)
        if drops and not self._translator.in_block:
            raise BoundError("which terms of a density are dropped depends on the call", at)
        keep = kept_arguments(density, self._translator.of_variables(full))

        def summed(f: Frame) -> StanValue:
            terms = density.pointwise.operation(
                *[x(f) for x in arguments], keep=keep if drops and f[0].propto else None
            )
            return self._counted(f, np.sum(terms, -1) if np.ndim(terms) > 1 else terms)

        return summed

    # --- the loop ---

    def scanned(self, loop: s.For) -> Executed:
        """Translate the loop for recordings, from the first iteration whose lagged elements all
        exist.
        """
        body, count = self.block(loop), self._count
        carried = [self._translator.place(name)[0] for name in self._carried]
        arrays = [self._translator.place(name)[0] for name in self._filled]
        index, _ = self._translator.place(loop.name)
        outside = dict[str, int]()
        for name in {*s.names_in(loop.body)} - self._inside - {loop.name}:
            with suppress(KeyError):  # a function
                outside[name] = self._translator.place(name)[0]

        def run(f: Frame) -> None:
            lags, start = self.most_lags, int(f[index][0]) - 1
            own = slice(start, start + f[count])
            columns = [value(f) for _, value in self._rows.values()]
            columns += [f[array][own] for array in arrays]
            columns = [
                to_varmat(x) if is_differentiable(x) else np.asarray(x, float) for x in columns
            ]
            shared = {name: at for name, at in outside.items() if is_differentiable(f[at])}
            first = [f[place] for place in carried]
            if lags:
                first += [to_varmat(f[array])[start - lags : start] for array in arrays]
            step = self._step(f, body, carried, [*shared.values()])
            others = [f[at] for at in shared.values()]
            last, (totals, *result) = vm.scan(step, tuple(first), tuple(columns), *others)
            for place, x in zip(carried, last, strict=False):
                f[place] = x
            for array, x in zip(arrays, result, strict=True):
                f[array] = receiving(f[array], x, False)
                put(f[array], own, x)
            f[0].terms.append(np.sum(totals))

        return run

    def _step(
        self, f: Frame, body: Executed, carried: list[int], shared: list[int]
    ) -> Callable[..., tuple[tuple[StanValue, ...], tuple[StanValue, ...]]]:
        """Return the function of one iteration, which returns the carry, its target term, and
        elements.
        """
        elements = [element for element, _ in self._filled.values()]
        windows = [before for _, before in self._filled.values()] if self.most_lags else []
        arguments = [*carried, *windows, *(place for place, _ in self._rows.values()), *elements]

        def step(carry: Any, row: Any, *others: Any) -> Any:
            inner = f.copy()
            inner[self._count] = 1
            for place, x in zip(arguments, (*carry, *row), strict=True):
                inner[place] = np.reshape(x, (1, *np.shape(x)))
            for place, x in zip(shared, others, strict=True):
                inner[place] = x
            terms, f[0].terms = f[0].terms, [0.0]
            try:
                body(inner)
                total = f[0].target()
            finally:
                f[0].terms = terms
            after = [np.reshape(inner[place], ()) for place in carried]
            result = [np.reshape(inner[element], ()) for element in elements]
            for before, x in zip(windows, result, strict=False):
                after.append(np.concatenate([inner[before][0], np.reshape(x, (1,))])[1:])
            return tuple(after), (total, *result)

        return step


def scanned(
    translator: Expressions, w: s.For, body: Executed, place: int, count: int
) -> Callable[[Frame, int, int], int | None] | None:
    """Return the function that records a loop as one scan, or None if it cannot be.

    It returns the first value of the loop's variable for which the body has not been run.
    """
    try:
        recurrence = Recurrence.of_loop(translator, w, count)
        as_scan = recurrence.scanned(w)
    except BoundError:
        return None
    is_scan, lags = True, recurrence.most_lags

    def run(f: Frame, first: int, last: int) -> int | None:
        nonlocal is_scan
        start = first + lags
        if not is_scan or last - start < FEW or current_tape().watch is None:
            return first
        for f[place] in range(first, start):
            body(f)
        f[place], f[count] = np.arange(start, last + 1), last - start + 1
        is_scan = attempted(as_scan, f)
        return None if is_scan else start

    return run


def attempted(scanned: Executed, f: Frame) -> bool:
    """Try to record a loop in one piece, and return whether that worked; if not, undo it."""
    tape, terms = current_tape(), len(f[0].terms)
    entries, assignments, looks = len(tape), len(tape.assignments), refusals.of_looks
    lost = tape.lost
    try:
        scanned(f)
    except DomainError:
        raise
    # Any of the functions in it, which the loop as it is written may not raise.
    except Exception as error:
        if from_signal(error):
            raise
        del tape[entries:], tape.assignments[assignments:], f[0].terms[terms:]
        refusals.of_looks, tape.lost = looks, lost
        return False
    return True
