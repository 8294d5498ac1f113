"""Runs of Stan programs: frames, steps, and errors that name their line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from itertools import chain, compress, pairwise
from typing import Any

import numpy as np

from varmat.core.tape import Tape
from varmat.stan.syntax import For, Position
from varmat.stan.values import StanValue
from varmat.typing import Entry, Propto

Frame = list[Any]
StanEvaluated = Callable[[Frame], StanValue]
Setter = Callable[[Frame, StanValue], None]
# A statement returns None to go on, BREAK, CONTINUE, or a tuple with the result of a function.
Executed = Callable[[Frame], Any]
BREAK, CONTINUE = object(), object()


class Evaluation:
    """State of one evaluation.

    Attributes
    ----------
    propto, jacobian : bool
        As in `Model.log_density`.
    rng : numpy.random.Generator or None
    terms : list
        The terms added to the target.
    watch : callable or None
        Called with a loop, the number of its iterations, and the function that runs them.
    """

    __slots__ = ("jacobian", "propto", "rng", "terms", "watch")

    def __init__(
        self,
        propto: bool = False,
        jacobian: bool = True,
        rng: np.random.Generator | None = None,
        watch: Callable[[For, int, Callable[[], Any]], Any] | None = None,
    ) -> None:
        self.propto, self.jacobian, self.rng, self.watch = propto, jacobian, rng, watch
        self.terms: list[StanValue] = [0.0]

    def target(self) -> StanValue:
        """Sum all terms."""
        return sum(np.sum(term) for term in self.terms)


class FatalError(RuntimeError):
    """Raised by `fatal_error`: the program ends, also while sampling."""


def kept_arguments(density: Callable[..., StanValue], saved: Sequence[bool]) -> frozenset[str]:
    """Return the names of the arguments of a density whose terms are kept."""
    return frozenset(compress(inspect.signature(density).parameters, saved))


def dropping(density: Callable[..., StanValue], saved: Sequence[bool]) -> Propto:
    """Return `propto` for a density that drops terms, except those of some arguments."""
    return kept_arguments(density, saved) or True


def proportional(
    density: Callable[..., StanValue], saved: Sequence[bool]
) -> Callable[..., StanValue]:
    """Return a density that drops constants if the run does."""
    propto = dropping(density, saved)

    def call(run: Evaluation, *arguments: object) -> StanValue:
        return density(*arguments, propto=run.propto and propto)

    return call


def in_sequence(steps: Sequence[tuple[Executed, Position]]) -> Executed:
    """Return the function that runs steps in sequence, up to one that ends the loop or function."""

    def run(f: Frame) -> Any:
        for step, at in steps:
            try:
                signal = step(f)
            except Exception as error:  # any, to name the line of the program
                located(error, at)
                raise
            if signal is not None:
                return signal
        return None

    return run


def group_alike(tape: Tape, starts: Sequence[int]) -> None:
    """Sort the iterations of a loop, which begin at these entries and are independent, so that
    iterations of the same form are adjacent: recordings find loops in them.
    """
    groups: dict[Hashable, list[Entry]] = {}
    for start, end in pairwise([*starts, len(tape)]):
        entries = tape[start:end]
        groups.setdefault(tuple(map(_form, entries)), []).extend(entries)
    if len(groups) > 1:
        tape[starts[0] :] = chain.from_iterable(groups.values())


def _form(entry: Entry) -> Hashable:
    """Return the rule, the shapes, and the integer settings of an entry, to compare entries."""
    rule, *parts = entry
    settings = parts[-1].values() if isinstance(parts[-1], dict) else ()
    item = chain.from_iterable(x if isinstance(x, (tuple, list)) else (x,) for x in parts)
    return (
        rule,
        *(getattr(x, "shape", None) for x in item),
        *(n for n in settings if type(n) is int),
    )


def located(error: Exception, at: Position) -> None:
    """Name the line of the program in an error, once."""
    if getattr(error, "position", None) is not None:
        return
    error.position = at  # type: ignore[attr-defined]
    if error.args and isinstance(error.args[0], str) and not isinstance(error, KeyError):
        error.args = (f"{error.args[0]} ({at})", *error.args[1:])
    else:
        error.add_note(str(at))
