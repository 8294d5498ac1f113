"""Loops that hand numbers on from iteration to iteration, as one `varmat.scan` of a recording.

Everything that does not depend on earlier iterations is computed for all of them at once; each
iteration is given its row. What it assigns to variables from outside is what it hands on. Its body
is written once, whatever the number of iterations, and may branch on parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import varmat as vm
from varmat.core.errors import DomainError, refusals
from varmat.core.operation import is_differentiable
from varmat.core.tape import current_tape
from varmat.interrupts import from_signal
from varmat.stan import syntax as s
from varmat.stan import types
from varmat.stan.lane_expressions import DENSITIES, STACKED, BoundError, elementwise_density
from varmat.stan.lanes import WITH_STATE, Lanes, assigned_in, declared_in

if TYPE_CHECKING:
    from varmat.stan.evaluate import Translator
    from varmat.stan.running import Executed, Frame, StanEvaluated
    from varmat.stan.values import StanValue

__all__: list[str] = []


class Recurrence(Lanes):
    """Translates the body of a loop for one iteration, with one lane."""

    def __init__(
        self, translator: Translator, loop: s.For, count: int, carried: Collection[str]
    ) -> None:
        super().__init__(translator, loop, count, {loop.name, *carried})
        self._carried = sorted(carried)
        inner = {each.name for each in s.walk(loop.body) if isinstance(each, s.For)}
        self._inside = declared_in(loop.body) | {*carried} | inner
        self._own |= {*carried}
        self._of_all = Lanes(translator, loop, count, {loop.name})
        # By the text of an expression: the place of its row, and its values in all iterations.
        self._rows: dict[str, tuple[int, StanEvaluated]] = {}
        # Whether a condition is translated, in which integers may be those of rows.
        self._is_condition = False
        # The variables that depend on parameters in a run.
        self._active: set[str] = set()

    @classmethod
    def of_loop(cls, translator: Translator, loop: s.For, count: int) -> Self:
        own, carried = declared_in(loop.body), set[str]()
        for each in s.walk(loop.body):
            if isinstance(each, s.Call) and (
                each.name == "target" or each.name.endswith(WITH_STATE)
            ):
                raise BoundError(f"`{each.name}` does more than to return a value", each.at)
            if isinstance(each, s.Assignment) and s.root(each.target) not in own:
                if not isinstance(each.target, s.VariableName) or each.target.type != types.REAL:
                    raise BoundError(f"an iteration hands on `{s.root(each.target)}`", each.at)
                carried.add(each.target.name)
        return cls(translator, loop, count, carried)

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

    def distribution(self, d: s.Tilde) -> Executed:
        if d.definition is not None or d.lower is not None or d.upper is not None:
            raise BoundError("which terms of a density are dropped depends on the call", d.at)
        return super().distribution(d)

    def _density(
        self, name: str, whole: Sequence[s.Expression], drops: bool, at: s.Position
    ) -> StanEvaluated:
        if name in STACKED:
            raise BoundError("an iteration has a density of several observations", at)
        density, arguments = elementwise_density(name, at), self.alike(whole)
        pairs = [*zip(density.operands, whole, strict=True)]
        if any(each in density.discrete and self.varies(e) for each, e in pairs):
            raise BoundError("a count of a row is a real number in the recording", at)

        def summed(f: Frame) -> StanValue:
            # Rows are variables of the body, also those of data.
            names = {each for each, e in pairs if self._active & {*s.names_in(e)}}
            keep = frozenset(names) if drops and f[0].propto else None
            terms = density.pointwise.operation(*[x(f) for x in arguments], keep=keep)
            return self._counted(f, np.sum(terms, -1) if np.ndim(terms) > 1 else terms)

        return summed

    # --- the loop ---

    def scanned(self, loop: s.For) -> Executed:
        """The function of the loop, for recordings."""
        body, count = self.block(loop), self._count
        carried = [self._translator.place(name)[0] for name in self._carried]
        outside = dict[str, int]()
        for name in {*s.names_in(loop.body)} - self._inside - {loop.name}:
            with suppress(KeyError):  # a function
                outside[name] = self._translator.place(name)[0]

        def run(f: Frame) -> None:
            rows = [place for place, _ in self._rows.values()]
            columns = [value(f) for _, value in self._rows.values()]
            columns = [x if is_differentiable(x) else np.asarray(x, float) for x in columns]
            shared = {name: at for name, at in outside.items() if is_differentiable(f[at])}
            first = dict(zip(self._carried, (f[place] for place in carried), strict=True))
            self._active = _depending(
                loop, {*shared, *(name for name, x in first.items() if is_differentiable(x))}
            )

            def step(carry: Any, row: Any, *given: Any) -> tuple[Any, StanValue]:
                inner = f.copy()
                inner[count] = 1
                for place, x in zip((*carried, *rows), (*carry, *row), strict=True):
                    inner[place] = np.reshape(x, (1, *np.shape(x)))
                for place, x in zip(shared.values(), given, strict=True):
                    inner[place] = x
                before, f[0].terms = f[0].terms, [0.0]
                try:
                    body(inner)
                    return tuple(np.reshape(inner[place], ()) for place in carried), f[0].target()
                finally:
                    f[0].terms = before

            given = [f[at] for at in shared.values()]
            last, terms = vm.scan(step, tuple(first.values()), tuple(columns), *given)
            for place, x in zip(carried, last, strict=True):
                f[place] = x
            f[0].terms.append(np.sum(terms))

        return run


def attempted(scanned: Executed, f: Frame) -> bool:
    """Whether a loop could be recorded as a scan; if not, nothing of it is left."""
    tape, terms = current_tape(), len(f[0].terms)
    entries, assignments, looks = len(tape), len(tape.assignments), refusals.of_looks
    try:
        scanned(f)
    except DomainError:
        raise
    # Any of the functions in it, which the loop as it is written may not raise.
    except Exception as error:
        if from_signal(error):
            raise
        del tape[entries:], tape.assignments[assignments:], f[0].terms[terms:]
        refusals.of_looks = looks
        return False
    return True


def _depending(loop: s.For, active: set[str]) -> set[str]:
    """Variables that depend on some others, by what the body of a loop assigns."""
    before = -1
    while before != len(active):
        before = len(active)
        for each in s.walk(loop.body):
            if isinstance(each, s.Declaration) and active & {*s.names_in(each.value)}:
                active.add(each.name)
            elif isinstance(each, s.Assignment) and active & {
                *s.names_in([each.target, each.value])
            }:
                active.add(s.root(each.target))
            elif isinstance(each, s.If) and active & {*s.names_in(each.condition)}:
                active |= assigned_in([each.body, each.otherwise])
    return active
