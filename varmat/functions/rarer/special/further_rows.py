"""Rows for the rarer ufuncs of SciPy that have several results, or are inverses of others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from varmat.core.elementwise import ROWS, Elementwise
from varmat.core.rules import OPERANDS
from varmat.functions.rows import ANSWERS, Answer, formula, row
from varmat.plain_arrays import special
from varmat.typing import Function, Operand, Result, Setting

# The note of a row with `polish`.
POLISHED = (
    "The value of a variable is SciPy's and a step of Newton's method beyond where its search ends"
)


def of_scipy(function: Function) -> Result:
    """Make a formula with functions of `scipy.special`. Programs call it unchanged."""
    ufunc: Any = formula(function)
    del ufunc.formula  # a formula must not look at values, and this one may
    return ufunc


def rows(*args: tuple[Any, ...], **shared: Setting) -> None:
    """Make rows with the same settings."""
    for name, partials, about, *others in args:
        row(name, partials, about, None, *others, **shared)


def results(name: str, *args: tuple[Any, ...], note: str = "", **shared: Setting) -> None:
    """Make the rows for a ufunc of SciPy with several results, and let them answer for it.

    Each is given by its own part of the name, and what a row begins with. A dictionary at the end
    has settings that the others do not share.
    """
    parts = []
    for k, (letters, partials, about, reference, *own) in enumerate(args):
        settings = {"ufunc": one_of(name, k), "note": note, **shared, **(own[0] if own else {})}
        parts.append(row(f"{name}_{letters}", partials, about, None, reference, **settings))
    answer_with(name, tuple(parts), note)


def answer_with(name: str, parts: tuple[Elementwise, ...], note: str) -> None:
    """Let rows answer for a ufunc of SciPy, one row for each result."""
    arity = parts[0].arity

    def answer(*args: Operand) -> tuple[Result, ...]:
        if len(args) != arity:
            raise TypeError(f"{name}: {len(args)} operands are given, but must be {arity}!")
        return tuple(part(*args) for part in parts)

    ANSWERS[name] = Answer(answer, parts, note)


def one_of(name: str, k: int) -> Result:
    """Make a function of the result number k of a ufunc of SciPy that has several."""
    return of_scipy(lambda *values: getattr(special, name)(*values)[k])


def inverse(
    name: str,
    of: tuple[str | None, ...],
    place: int,
    about: str,
    reference: str,
    points: tuple[Operand, ...],
    polish: Function | None = None,
    **settings: Setting,
) -> Elementwise:
    """Make the row of the solution of ``F(...) = p`` for the operand at `place`, which p replaces.

    `of` has the derivatives of F in its operands, with ``{0}``, ``{1}``, ... for these. By the
    implicit function theorem the derivatives of the solution are their quotients. The reference is
    the solution in mpmath, or, where that is slow, the name of F. If SciPy's search stops early,
    `polish` is F, with which one step of Newton's method follows."""
    names = [*OPERANDS[: len(of)]]
    names[place] = "r"
    slope = of[place]
    assert slope is not None
    below = slope.format(*names)
    if polish is not None:
        settings |= {"ufunc": of_scipy(_polished(name, polish, place)), "answers_for": name}
    texts = [text if text is None else f"-g * ({text.format(*names)}) / ({below})" for text in of]
    texts[place] = f"g / ({below})"
    return row(name, tuple(texts), about, None, reference, points, **settings)


def _polished(name: str, function: Function, place: int) -> Function:
    def value(*values: Operand) -> Result:
        start = getattr(special, name)(*values)
        operands = [start if i == place else v for i, v in enumerate(values)]
        # The row's own derivative along the value of F is one over the slope of F.
        excess = function(*operands) - values[place]
        change = ROWS[name].pushes[place](excess, *values, start)
        return start - np.where(
            np.isfinite(change) & (np.abs(change) < 1e-3 * np.abs(start)), change, 0.0
        )

    return value


class Invertible(NamedTuple):
    """A probability that has inverses in its operands.

    Texts have ``{0}``, ``{1}``, ... for the operands: the derivatives, and the probability in
    mpmath. `conditions` say what each operand is where it is not what the others are solved for."""

    slopes: tuple[str | None, ...]
    reference: str
    conditions: tuple[str, ...]
    # Minus for the probability beyond, which has the same derivatives but for their sign.
    sign: str = ""
    held: tuple[str, ...] = ()

    def row(
        self, name: str, about: str, points: tuple[Operand, ...], **settings: Setting
    ) -> Elementwise:
        """Make the row of the probability itself."""
        texts = tuple(text and f"{self.sign}g * ({text.format(*OPERANDS)})" for text in self.slopes)
        reference = self.reference.format(*OPERANDS)
        shared: dict[str, Any] = {
            "domain": ", ".join(filter(None, self.conditions)),
            "constant": self.held,
        }
        return row(name, texts, about, None, reference, points, **(shared | settings))

    def inverse(
        self,
        name: str,
        place: int,
        about: str,
        start: str,
        points: tuple[Operand, ...],
        **settings: Setting,
    ) -> Elementwise:
        """Make the row of the solution for the operand at `place`, which mpmath searches from
        `start`; if that is the name of a function, the test searches for its value.
        """
        letters, conditions = [*OPERANDS[: len(self.slopes)]], [*self.conditions]
        conditions[place] = f"0 < {letters[place]} < 1"
        settings |= {"domain": ", ".join(filter(None, conditions)), "constant": self.held}
        if not start.isidentifier():
            letter, letters[place] = letters[place], "t"
            start = f"findroot(lambda t: {self.reference.format(*letters)} - {letter}, {start})"
        slopes = tuple(text and self.sign + text for text in self.slopes)
        return inverse(name, slopes, place, about, start, points, **settings)
