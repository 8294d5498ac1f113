"""How a row for the rarer ufuncs of SciPy is made. Their tables are imported when the first such
ufunc meets a variable.

A row reads as those of `varmat.functions.rows`: name, contribution to each operand, what the
function is, the same in mpmath, and points for the tests. A ufunc with several results has a row
for each."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from varmat.core.dispatch import SPECIAL
from varmat.core.elementwise import ROWS, Elementwise, new_row
from varmat.core.rules import OPERANDS
from varmat.functions.rows import formula, hold_constant, scipy_special
from varmat.typing import Function, Operand, Result, Setting

# By SciPy's name: what answers for it, the rows behind that (one for each result), and the note for
# the documentation.
ANSWERS: dict[str, Function] = {}
ROWS_OF: dict[str, tuple[Elementwise, ...]] = {}
NOTES: dict[str, str] = {}
# The rows for which a figure below the usual bar is stated: the largest relative errors of value
# and derivatives, and of second derivatives.
REACHED: dict[str, tuple[float, float]] = {}
# The note of a row with `polish`.
POLISHED = (
    "The value of a variable is SciPy's and a step of Newton's method beyond where its search ends"
)
# The names of all rows made here, and the rows that have a test of their own.
NAMES: set[str] = set()
MADE: list[Elementwise] = []


def row(
    name: str,
    partials: str | tuple[str | None, ...],
    about: str,
    reference: str,
    points: tuple[Operand, ...],
    *,
    domain: str = "all real numbers",
    note: str = "",
    held: tuple[str, ...] = (),
    ufunc: Function | None = None,
    of: str | None = None,
    reached: tuple[float, float] | None = None,
    tested: bool = True,
) -> Elementwise:
    """Make a row.

    A partial that is None belongs to an operand that must be constant; `held` names these operands.
    Without `ufunc` the row computes with the ufunc of `scipy.special` of this name, and answers for
    it; otherwise it answers for `of`, if given. A row that is not `tested` by itself is tested with
    the rows that contain it."""
    partials = (partials,) if isinstance(partials, str) else partials
    points = tuple(p if isinstance(p, tuple) else (p,) for p in points)
    made = new_row(
        name,
        name if ufunc is None else ufunc,
        *(p or "nan * g" for p in partials),
        points=points,
        reference=reference,
        doc=_docstring(partials, about, domain, note),
    )
    NAMES.add(name)
    SPECIAL.pop(name, None)  # ANSWERS answers for it, and checks its constant operands
    positions = [i for i, partial in enumerate(partials) if partial is None]
    answer = (
        hold_constant(made, dict(zip(positions, held, strict=True))) if positions else made.call
    )
    if tested:
        MADE.append(made)
    if reached is not None:
        REACHED[name] = reached
    answers_for = name if ufunc is None else of
    if answers_for is not None:
        ANSWERS[answers_for], ROWS_OF[answers_for], NOTES[answers_for] = answer, (made,), note
    # Set on this object, not on its class: the process that unpickles it may have to import the
    # tables first.
    made.__reduce__ = lambda: (found, (name,))  # type: ignore[method-assign]
    return made


def found(name: str) -> Elementwise:
    """The row of a name."""
    importlib.import_module("varmat.functions.rarer.special.further_names")
    return ROWS[name]


def _docstring(partials: tuple[str | None, ...], about: str, domain: str, note: str) -> str:
    rules = "\n".join(
        f"* `{x}` is ``{p}``" for x, p in zip(OPERANDS, partials, strict=False) if p is not None
    )
    return (
        f"{about}.\n\nDomain: {domain}.{' ' + note + '.' if note else ''} With `g` the adjoint of "
        "the result `r`, the contribution "
        f"to the adjoint of\n\n{rules}\n"
    )


def of_scipy(function: Function) -> Result:
    """A formula with functions of `scipy.special`, which `function` gets as its first argument.
    Programs call it as it is.
    """
    ufunc: Any = formula(lambda *values: function(scipy_special(), *values))
    del ufunc.formula  # a formula must not look at values, and this one may
    return ufunc


def rows(*given: tuple[Any, ...], **shared: Setting) -> None:
    """Make rows with the same settings."""
    for each in given:
        row(*each, **shared)


def results(name: str, *given: tuple[Any, ...], note: str = "", **shared: Setting) -> None:
    """Make the rows for a ufunc of SciPy with several results, and let them answer for it.

    Each is given by its own part of the name, and what a row begins with. A dictionary at the end
    has settings that the others do not share.
    """
    parts = []
    for k, (letters, partials, about, reference, *own) in enumerate(given):
        settings = {"ufunc": one_of(name, k), "note": note, **shared, **(own[0] if own else {})}
        parts.append(row(f"{name}_{letters}", partials, about, reference, **settings))
    answer_with(name, tuple(parts), note)


def answer_with(name: str, parts: tuple[Elementwise, ...], note: str) -> None:
    """Let rows answer for a ufunc of SciPy, one row for each result."""
    arity = parts[0].arity

    def answer(*args: Operand) -> tuple[Result, ...]:
        if len(args) != arity:
            raise TypeError(f"{name}: {len(args)} operands are given, but must be {arity}!")
        return tuple(part(*args) for part in parts)

    ANSWERS[name], ROWS_OF[name], NOTES[name] = answer, parts, note


def one_of(name: str, k: int) -> Result:
    """The result number k of a ufunc of SciPy that has several."""
    return of_scipy(lambda s, *values: getattr(s, name)(*values)[k])


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
    """The row of the solution of ``F(...) = p`` for the operand at `place`, which p replaces.

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
        settings |= {"ufunc": of_scipy(_polished(name, polish, place)), "of": name}
    texts = [text if text is None else f"-g * ({text.format(*names)}) / ({below})" for text in of]
    texts[place] = f"g / ({below})"
    return row(name, tuple(texts), about, reference, points, **settings)


def _polished(name: str, function: Function, place: int) -> Function:
    def value(special: ModuleType, *values: Operand) -> Result:
        start = getattr(special, name)(*values)
        operands = [start if i == place else v for i, v in enumerate(values)]
        # The row's own derivative along the value of F is one over the slope of F.
        excess = function(special, *operands) - values[place]
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
        """The row of the probability itself."""
        texts = tuple(text and f"{self.sign}g * ({text.format(*OPERANDS)})" for text in self.slopes)
        reference = self.reference.format(*OPERANDS)
        shared: dict[str, Any] = {
            "domain": ", ".join(filter(None, self.conditions)),
            "held": self.held,
        }
        return row(name, texts, about, reference, points, **(shared | settings))

    def inverse(
        self,
        name: str,
        place: int,
        about: str,
        start: str,
        points: tuple[Operand, ...],
        **settings: Setting,
    ) -> Elementwise:
        """The row of the solution for the operand at `place`, which mpmath searches from `start`;
        if that is the name of a function, the test searches for its value.
        """
        letters, conditions = [*OPERANDS[: len(self.slopes)]], [*self.conditions]
        conditions[place] = f"0 < {letters[place]} < 1"
        settings |= {"domain": ", ".join(filter(None, conditions)), "held": self.held}
        if not start.isidentifier():
            letter, letters[place] = letters[place], "t"
            start = f"findroot(lambda t: {self.reference.format(*letters)} - {letter}, {start})"
        slopes = tuple(text and self.sign + text for text in self.slopes)
        return inverse(name, slopes, place, about, start, points, **settings)
