"""The table of `scipy.special` in docs/scipy_functions.md: what is answered, by the list of names
that SciPy itself has.

``python docs/scipy_special.py`` writes it anew; a test holds it to what the library answers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

import varmat
from varmat.core.dispatch import SPECIAL
from varmat.core.elementwise import ROWS
from varmat.core.rules import ZERO
from varmat.functions.rarer.special import further_names as special_names
from varmat.functions.rows import ANSWERS, CONSTANT_OPERANDS
from varmat.functions.scipy_names import answer, is_differentiable

PAGE = Path(__file__).parent / "scipy_functions.md"
START, END = "<!-- the table of scipy.special -->\n", "<!-- its end -->\n"


def signature(name: str, ufunc: Any) -> list[str]:
    """The names of the operands, from SciPy's docstring where it has them."""
    found = re.findall(rf"\b{re.escape(ufunc.__name__)}\(([^)]*)\)", ufunc.__doc__)
    texts = [text for text in found if not re.match(r"x1|x,? ?[\[/]", text)]
    names = [each.strip() for each in (texts[0] if texts else "x").split(",")]
    return [each for each in names if each != "out=None"][: ufunc.nin]


def of_rows(rows: Any, names: list[str], note: str) -> str:
    """What is said of a ufunc that is answered."""
    row = rows[0]
    arguments = list(range(row.arity))
    # of spheroidal functions the modes are one operand, and the last one is the argument
    if len(names) != row.arity:
        return f"derivatives in `{names[-1]}`; `{'`, `'.join(names[:-1])}` are constant. {note}"
    held = CONSTANT_OPERANDS.get(row.name, {})
    zero = [i for i in arguments if row.partials[i] == ZERO]
    free = [i for i in arguments if i not in held and i not in zero]
    parts = (
        [f"derivatives in {_listed(names, free)}"] if free else ["a constant: the derivative is 0"]
    )
    if zero and free:
        parts.append(f"0 in {_listed(names, zero)}")
    if held:
        parts.append(f"{_listed(names, list(held))} {'is' if len(held) == 1 else 'are'} constant")
    text = "; ".join(parts)
    return f"{text}. {note}" if note else text


def _listed(names: list[str], places: list[int]) -> str:
    return ", ".join(f"`{names[i]}`" for i in places)


def answers() -> dict[str, tuple[str, str]]:
    """Name in SciPy's list -> what is called, and what is said of it."""
    row_of = {id(row.call): row for row in ROWS.values()}
    table = {}
    for name in sorted(scipy.special.__all__, key=str.lower):
        thing = getattr(scipy.special, name)
        if not isinstance(thing, np.ufunc):
            table[name] = (name, said(answer("scipy.special", name) or "", name))
            continue
        own = thing.__name__
        names = signature(name, thing)
        if own in ANSWERS:
            text = of_rows(ANSWERS[own].rows, names, ANSWERS[own].note)
        elif own in special_names.REFUSED:
            text = f"refused: {special_names.REFUSED[own]}"
        else:
            text = of_rows([row_of[id(SPECIAL[own])]], names, "") if own in SPECIAL else ""
        table[name] = (f"{name}({', '.join(names)})", text)
    return table


def said(text: str, name: str) -> str:
    """What is said of a function that is no ufunc."""
    own = text.replace("vm.", "varmat.")
    return f"`{own}`" if is_differentiable(text, name) else own


def lines() -> str:
    """The table as it stands in the page."""
    rows = [f"| `{called}` | {text} |\n" for called, text in answers().values()]
    version = ".".join(scipy.__version__.split(".")[:2])
    return (
        f"\nThe names are those of SciPy {version}.\n\n| function | answer "
        f"|\n|---|---|\n{''.join(rows)}\n"
    )


def main() -> None:
    """Write the table anew."""
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    PAGE.write_text(before + START + lines() + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    assert varmat.__version__
    main()
