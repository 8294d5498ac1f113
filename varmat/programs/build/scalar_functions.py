"""Functions of numbers with all their derivatives, for statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.dual import Level, attached, taken_apart
from varmat.programs.build.builder import Builder
from varmat.programs.build.symbol import Symbol, lift

if TYPE_CHECKING:
    from varmat.typing import Operand


class ScalarFunction:
    """A function of numbers with derivatives.

    It is run on symbols when a procedure is made, and on duals of symbols for its derivatives,
    which are such functions again.

    Parameters
    ----------
    function : callable
        A function of symbols, and of duals over symbols.
    arity : int
    is_discrete : bool
        Whether the derivatives are zero.
    is_expensive : bool
        Whether a value is kept rather than computed again.
    slopes : sequence of callable, optional
        The derivatives as functions of the arguments and the value.
    """

    __slots__ = (
        "_partials", "_tangents", "arity", "function", "is_discrete", "is_expensive", "slopes",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[..., Operand],
        arity: int,
        *,
        is_discrete: bool = False,
        is_expensive: bool = False,
        slopes: Sequence[Callable[..., Operand]] = (),
    ) -> None:
        self.function, self.arity, self.is_discrete = function, arity, is_discrete
        self.is_expensive = is_expensive
        self.slopes = [ScalarFunction(f, arity + 1) for f in slopes]
        self._partials: dict[int, ScalarFunction | float] = {}
        self._tangents: dict[tuple[int, ...], ScalarFunction] = {}

    def partial(self, i: int) -> ScalarFunction | float:
        """Return the derivative with respect to an argument: a function of the same arguments, or a
        number if it is the same everywhere.
        """
        if i not in self._partials:
            ones = self.tangent((i,)).function
            partial = ScalarFunction(lambda *x: ones(*x, 1.0), self.arity)
            builder = Builder()
            value = lift(builder, partial.function(*_symbols(builder, self.arity)))
            self._partials[i] = float(value.data) if value.is_constant else partial
        return self._partials[i]

    def tangent(self, which: tuple[int, ...]) -> ScalarFunction:
        """Return the derivative along some of the arguments, as a function of all of them and of
        the tangents of these.
        """
        if which not in self._tangents:

            def along(*x: object) -> Operand:
                # A new level for each call, because the arguments must have older levels.
                level, values = Level("procedure"), [*x[: self.arity]]
                for i, t in zip(which, x[self.arity :], strict=True):
                    values[i] = attached(values[i], t, level)
                t = taken_apart(self.function(*values), level)[1]
                return 0.0 if t is None else t

            self._tangents[which] = ScalarFunction(
                along, self.arity + len(which), is_expensive=self.is_expensive
            )
        return self._tangents[which]


def _symbols(builder: Builder, count: int) -> list[Symbol]:
    return [Symbol(builder, builder.argument(())) for _ in range(count)]


SAME = ScalarFunction(lambda x: x, 1)
ADD, MULTIPLY = ScalarFunction(np.add, 2), ScalarFunction(np.multiply, 2)
FMA = ScalarFunction(lambda x, y, z: x + y * z, 3)
