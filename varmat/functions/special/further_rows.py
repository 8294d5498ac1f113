"""How a row of the further ufuncs of SciPy is made: their tables are imported when the first such
ufunc meets a variable.

A row reads as those of `varmat.functions.special.table`: name, contribution to each operand, what
it is, the same in mpmath, and points for the tests. Several results of one ufunc are a row each.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from varmat.core.dispatch import SPECIAL
from varmat.core.elementwise import ROWS, Elementwise, for_arrays, new_row
from varmat.core.rules import OPERANDS, names_in
from varmat.functions.elementwise import _hold_constant, formula
from varmat.functions.special.table import _special

__all__: list[str] = []

# SciPy's name -> what answers for it; the rows behind it, of several results one each; and what is
# said of it in the tables.
ANSWERS: dict[str, Callable[..., Any]] = {}
ROWS_OF: dict[str, tuple[Elementwise, ...]] = {}
NOTES: dict[str, str] = {}
# Of every row made here: whether a figure below the bar of the bulk is stated: the largest relative
# errors of value and derivatives, and of second derivatives.
REACHED: dict[str, tuple[float, float]] = {}
# A row whose reference is slow -> its digits.
DIGITS: dict[str, int] = {}
# The names of all rows made here, and those rows that are tested by themselves.
NAMES: set[str] = set()
MADE: list[Elementwise] = []


def row(
    name: str,
    partials: str | tuple[str | None, ...],
    about: str,
    reference: str,
    points: tuple[Any, ...],
    *,
    domain: str = "all real numbers",
    note: str = "",
    held: tuple[str, ...] = (),
    ufunc: Any = None,
    of: str | None = None,
    reached: tuple[float, float] | None = None,
    tested: bool = True,
    digits: int | None = None,
) -> Elementwise:
    """Make a row.

    A partial that is None belongs to an operand that must be constant; `held` names these operands.
    Without `ufunc` it is that of `scipy.special` of this name, for which the row then answers;
    otherwise it answers for `of`, if that is given. What is not `tested` by itself is tested with
    the rows that it is a part of."""
    partials = (partials,) if isinstance(partials, str) else partials
    points = tuple(p if isinstance(p, tuple) else (p,) for p in points)
    made = new_row(
        name,
        name if ufunc is None else ufunc,
        *(p or "nan * g" for p in partials),
        scalar=None,
        operator=None,
        shortcuts=None,
        with_itself=None,
        points=points,
        reference=reference,
        doc=_docstring(partials, about, domain, note),
    )
    NAMES.add(name)
    SPECIAL.pop(name, None)  # it answers by way of ANSWERS, where its constant operands are checked
    positions = [i for i, partial in enumerate(partials) if partial is None]
    answer = (
        _hold_constant(made, dict(zip(positions, held, strict=True))) if positions else made.call
    )
    if digits is not None:
        DIGITS[name] = digits
    if tested:
        MADE.append(made)
    if reached is not None:
        REACHED[name] = reached
    answers_for = name if ufunc is None else of
    if answers_for is not None:
        ANSWERS[answers_for], ROWS_OF[answers_for], NOTES[answers_for] = answer, (made,), note
    # Of this object, and not of its class: the process that unpickles it may have to import the
    # tables first.
    made.__reduce__ = lambda: (found, (name,))  # type: ignore[method-assign]
    return made


def found(name: str) -> Elementwise:
    """The row of a name."""
    importlib.import_module("varmat.functions.special.further_names")
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


def of_scipy(function: Callable[..., Any]) -> Any:
    """A formula with functions of `scipy.special`, which it gets as its first argument; in programs
    it is called.
    """
    ufunc: Any = formula(lambda *values: function(_special(), *values))
    del ufunc.formula  # it looks at numbers
    return ufunc


def results(name: str, *parts: Elementwise, note: str = "") -> None:
    """Let rows, one for each result, answer for a ufunc of SciPy."""
    arity = parts[0].arity

    def answer(*args: Any) -> tuple[Any, ...]:
        if len(args) != arity:
            raise TypeError(f"{name}: {len(args)} operands are given, but must be {arity}!")
        return tuple(part(*args) for part in parts)

    ANSWERS[name], ROWS_OF[name], NOTES[name] = answer, parts, note


def one_of(name: str, k: int) -> Any:
    """The result number k of a ufunc of SciPy that has several."""
    return of_scipy(lambda s, *values: getattr(s, name)(*values)[k])


def inverse(
    name: str,
    of: tuple[str | None, ...],
    place: int,
    about: str,
    reference: str,
    points: tuple[Any, ...],
    polish: Callable[..., Any] | None = None,
    **settings: Any,
) -> Elementwise:
    """The row of the solution of ``F(...) = p`` for the operand at `place`, where p stands in its
    place.

    `of` has the derivatives of F in its operands, as texts with ``{0}``, ``{1}``, ... for them. By
    the theorem of implicit functions the derivatives of the solution are their quotients. The
    reference is the solution in mpmath, or where that is slow the name of F. Where SciPy's search
    stops early, one step of Newton's method follows, with `polish` for F."""
    names = [*OPERANDS[: len(of)]]
    names[place] = "r"
    slope = of[place]
    assert slope is not None
    below = slope.format(*names)
    if polish is not None:
        settings |= {"ufunc": of_scipy(_polished(name, polish, place, slope)), "of": name}
    texts = [text if text is None else f"-g * ({text.format(*names)}) / ({below})" for text in of]
    texts[place] = f"g / ({below})"
    return row(name, tuple(texts), about, reference, points, **settings)


def _polished(
    name: str, function: Callable[..., Any], place: int, slope: str
) -> Callable[..., Any]:
    def value(special: Any, *values: Any) -> Any:
        names = [*OPERANDS[: len(values)]]
        names[place] = "r"
        text = slope.format(*names)
        functions = {each: for_arrays(each, True) for each in names_in(text) - {*OPERANDS, "r"}}
        start = getattr(special, name)(*values)
        operands = [start if i == place else v for i, v in enumerate(values)]
        change = (function(special, *operands) - values[place]) / eval(
            text, functions, dict(zip(names, operands, strict=True))
        )
        return start - np.where(
            np.isfinite(change) & (np.abs(change) < 1e-3 * np.abs(start)), change, 0.0
        )

    return value


def direct(of: tuple[str | None, ...], sign: str = "") -> tuple[str | None, ...]:
    """The contributions of F itself, or with a sign of its complement."""
    return tuple(text and f"{sign}g * ({text.format(*OPERANDS)})" for text in of)
