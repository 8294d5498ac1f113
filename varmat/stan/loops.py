"""Loops of Stan programs as procedures: their statements are written once, whatever their number.

Outer variables that a loop reads and assigns are the operands and results of one operation. Data
decide sizes. A loop that does more than compute numbers (a factorisation, complex numbers,
`print`, ...) runs iteration by iteration, and so does a short one, because recordings batch its
iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

from varmat.core.dual import value_now
from varmat.core.tape import current_tape
from varmat.programs.run import has_native
from varmat.solvers.procedures import procedure
from varmat.stan import syntax as s
from varmat.stan import types
from varmat.stan.lowering import Lowering
from varmat.stan.recurrences import attempted
from varmat.stan.running import Frame
from varmat.stan.translate import Expressions
from varmat.stan.values import innermost
from varmat.stan.vectorized import assigned_in, check_state, declared_in
from varmat.stan.vectorized_expressions import BoundError

# Expressions that a loop may evaluate and be traced, which takes 5 to 20 us for each of them.
TRACED = 80_000


class LoopCode:
    """A loop whose statements are lowered when it is first recorded.

    Parameters
    ----------
    translator : Expressions
    loop : For, ForEach or While
    read : set of str
        The variables that are read behind the loop.
    tracing : Tracing
    """

    def __init__(
        self,
        translator: Expressions,
        loop: s.For | s.ForEach | s.While,
        read: set[str],
        tracing: Tracing,
    ) -> None:
        self.translator, self.loop, self.tracing = translator, loop, tracing
        # How many expressions it evaluates if it may be traced, once that is known.
        self.traced: int | None = None
        for node in s.walk(loop):
            check_state(node, ("_rng", "_jacobian"))
            if type(node) in _REFUSED:
                kind = type(node).__name__.lower()
                raise BoundError(f"a loop has a statement of the kind {kind!r}", node.at)
        loops = (s.For, s.ForEach)
        inner = {x.name for x in s.walk(loop.body) if isinstance(x, loops)}
        inside = declared_in([loop]) | inner
        self.assigned = sorted(assigned_in([loop]) - inside)
        self.results = [name for name in self.assigned if name in read]
        # Where variables from outside lie, and their types.
        self.outside: dict[str, tuple[int, types.Type]] = {}
        for name in {*s.names_in(loop), *self.assigned} - inside - {getattr(loop, "name", None)}:
            with suppress(KeyError):  # a function, or a variable inside
                self.outside[name] = translator.place(name)

    @property
    def is_traced(self) -> bool:
        """Whether the loop is traced, because it is short enough and does not branch on
        parameters.
        """
        tracing = self.tracing
        # After a procedure, whose results are arrays, iterations have little in common.
        is_short = self.traced is not None and self.traced <= tracing.most
        return is_short and not tracing.left_out

    def run(self, f: Frame, first: int | None) -> None:
        """Record the loop as one operation; a loop over integers from `first` on."""
        lowered = Lowering(self.translator, f[0].propto)
        lowered.first = first
        values = {name: f[place] for name, (place, _) in self.outside.items()}
        code, leaves = lowered.loop(self.loop, values, self.outside, self.assigned, self.results)
        if not leaves:
            raise BoundError("a loop depends on data alone", self.loop.at)
        outputs = zip(self.results, code.source.outputs, strict=True)
        for name, x in outputs:
            if innermost(self.outside[name][1]) == types.INT and code.source.depends(x):
                raise BoundError(f"parameters decide the integer `{name}`", self.loop.at)
        self.traced = None if code.source.branches() else lowered.operations
        if self.is_traced:
            raise BoundError("a loop is traced", self.loop.at)
        if not code.is_native:
            raise BoundError("a loop has functions that are not machine code", self.loop.at)
        total, *outs = procedure(code, leaves)
        self.tracing.left_out[self.loop] = self.traced or 0
        for name, x in zip(self.results, outs, strict=True):
            place, kind = self.outside[name]
            if innermost(kind) == types.INT:
                plain = np.rint(np.asarray(value_now(x)))
                f[place] = plain.astype(np.int64) if plain.ndim else int(plain)
            else:
                f[place] = x
        f[0].terms.append(total)


class Tracing:
    """Which loops are traced iteration by iteration, though they could be procedures, because the
    recording batches their iterations.

    Attributes
    ----------
    most : int
        Loops that evaluate more expressions become procedures.
    left_out : dict of int
        How many expressions the loops evaluate that became procedures for that reason.
    """

    def __init__(self) -> None:
        self.most = TRACED
        self.left_out: dict[s.Statement, int] = {}

    @contextmanager
    def up_to(self, most: int) -> Iterator[None]:
        """Trace loops of more expressions."""
        before = self.most, self.left_out
        self.most, self.left_out = most, {}
        try:
            yield
        finally:
            self.most, self.left_out = before


def lowered_loop(
    translator: Expressions, loop: s.For | s.ForEach | s.While, read: set[str], tracing: Tracing
) -> Callable[..., bool]:
    """Return the function that records a loop as one procedure, if it can be; a loop over integers
    may start at a given one.
    """
    try:
        code: LoopCode | None = LoopCode(translator, loop, read, tracing)
    except BoundError:
        code = None

    def run(f: Frame, first: int | None = None) -> bool:
        nonlocal code
        now = code
        if now is None or current_tape().watch is None or not has_native():
            return False
        if now.is_traced:
            return False
        done = attempted(lambda f: now.run(f, first), f)
        if not done and not now.is_traced:
            code = None
        return done

    return run


_REFUSED = frozenset({s.JacobianIncrement, s.TupleExpression, s.Projection, s.Return})
