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
from varmat.functions.elementwise import CONSTANT_OPERANDS
from varmat.functions.special import further_names as special_names
from varmat.functions.special import further_rows as special_rows

PAGE = Path(__file__).parent / "scipy_functions.md"
START, END = "<!-- the table of scipy.special -->\n", "<!-- its end -->\n"
_ARRAYS = "refused: SciPy makes arrays of its arguments; "
_WHOLE = "refused: it counts, with whole numbers; "
_NO_TWIN = _ARRAYS + "varmat has nothing like it"
_OBJECTS = (
    "refused: it makes an object of plain numbers, of a degree and parameters; write with "
    "scipy.special.eval_legendre and "
    "its like"
)
_ZEROS = "refused: its arguments are whole numbers, how many zeros of what order"
_SPHERICAL = _ARRAYS + "write np.sqrt(np.pi / (2 * x)) * scipy.special.{}(n + 0.5, x)"
# What is no ufunc: what it does with a variable.
FUNCTIONS = {
    **dict.fromkeys(("geterr", "seterr", "errstate", "SpecialFunctionWarning",
        "SpecialFunctionError"),
        "not a function of numbers"),
    **dict.fromkeys(("jvp", "yvp", "ivp", "kvp"),
     "derivatives in `z`; `v` as in the function that it is a derivative of"),
    "assoc_laguerre": "derivatives in `x`; `n` and `k` are constant",
    "sinc": "derivatives in `x`",
    "softplus": "derivatives in `x`",
    "zeta": "derivatives in `q`, and in `x` if there is no `q`, for x > 1; beside `q` it is "
            "constant",
    "logsumexp": _ARRAYS + "write varmat.log_sum_exp",
    "softmax": _ARRAYS + "write varmat.softmax",
    "log_softmax": _ARRAYS + "write varmat.log_softmax",
    "multigammaln": _ARRAYS + "write varmat.multigammaln",
    "polygamma": _ARRAYS + "write varmat.polygamma",
    "lambertw": f"refused: {special_names.REFUSED['_lambertw']}",
    "spherical_jn": _SPHERICAL.format("jv"),
    "spherical_yn": _SPHERICAL.format("yv"),
    "spherical_in": _SPHERICAL.format("iv"),
    "spherical_kn": _ARRAYS + "write np.sqrt(np.pi / (2 * x)) * scipy.special.kv(n + 0.5, x)",
    "diric": _ARRAYS + "write np.sin(n * x / 2) / (n * np.sin(x / 2))",
    "comb": _WHOLE + "write varmat.binom for real ones",
    "perm": _WHOLE + "write scipy.special.poch(n - k + 1, k) for real ones",
    **dict.fromkeys(("factorial", "factorial2", "factorialk"),
     _WHOLE + "write varmat.gamma(x + 1) for real ones"),
    **dict.fromkeys(("stirling2", "bernoulli", "euler"), _WHOLE + "there is no derivative"),
    **dict.fromkeys(("h1vp", "h2vp"),
     "refused: its results are complex numbers; write with jvp and yvp"),
    **dict.fromkeys(("legendre_p", "legendre_p_all"),
     _ARRAYS + "write scipy.special.eval_legendre(n, x)"),
    **dict.fromkeys(("assoc_legendre_p", "assoc_legendre_p_all", "sph_legendre_p",
        "sph_legendre_p_all"),
    _ARRAYS + "write scipy.special.lpmv"),
    **dict.fromkeys(("sph_harm_y", "sph_harm_y_all"),
    "refused: its results are complex numbers; write with scipy.special.lpmv, np.cos and np.sin"),
    **dict.fromkeys(("ellip_harm", "ellip_harm_2", "ellip_normal", "lqn", "lqmn"), _NO_TWIN),
    **dict.fromkeys(
        ("lmbda", "riccati_jn", "riccati_yn", "pbdn_seq", "pbdv_seq", "pbvv_seq", "obl_cv_seq",
         "pro_cv_seq", "mathieu_even_coef",
         "mathieu_odd_coef"),
          "refused: SciPy takes plain numbers alone, and makes a whole sequence"),
}  # fmt: skip
_POLYNOMIALS = (
    "legendre chebyt chebyu chebyc chebys jacobi laguerre genlaguerre hermite hermitenorm "
    "gegenbauer sh_legendre sh_chebyt "
    "sh_chebyu sh_jacobi p t u c s j l la h he cg ps ts us js"
)


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
            objects = (
                name in _POLYNOMIALS.split() or name.endswith("_roots") or name.startswith("roots_")
            )
            text = FUNCTIONS.get(name) or (
                _OBJECTS if objects else _ZEROS if name.endswith("_zeros") else ""
            )
            table[name] = (name, text)
            continue
        own = thing.__name__
        names = signature(name, thing)
        if own in special_rows.ANSWERS:
            text = of_rows(special_rows.ROWS_OF[own], names, special_rows.NOTES[own])
        elif own in special_names.REFUSED:
            text = f"refused: {special_names.REFUSED[own]}"
        else:
            text = of_rows([row_of[id(SPECIAL[own])]], names, "") if own in SPECIAL else ""
        table[name] = (f"{name}({', '.join(names)})", text)
    return table


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
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(before + START + lines() + END + rest.split(END)[1])


if __name__ == "__main__":
    assert varmat.__version__
    main()
