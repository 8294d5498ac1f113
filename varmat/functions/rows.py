"""Rows of the tables of elementwise functions.

The tables are `varmat.functions.elementwise`, with the functions of NumPy, the modules of
`varmat.functions.special`, and modules of `varmat.functions.rarer.special`, imported when
such a ufunc of SciPy first meets a variable. A row reads: name, contribution to the adjoint of each
operand, description, function for scalars, the same in mpmath, points for the tests,
derivative at the first point for the docstring, and sources. Rules, dispatch, docstrings and tests
are made from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, TypeAlias

import numpy as np

from varmat.core.dispatch import SPECIAL, SUPPORTED
from varmat.core.domains import integers
from varmat.core.elementwise import ROWS, Elementwise, new_row
from varmat.core.operation import as_operand, is_differentiable
from varmat.core.rules import OPERANDS
from varmat.plain_arrays import with_out
from varmat.typing import Function, Operand

Points: TypeAlias = Sequence[float | tuple[float, ...]]

# Constants, as expressions of rows name them: by their digits.
LN2 = repr(math.log(2.0))
LN10 = repr(math.log(10.0))
DEGREE = repr(math.pi / 180.0)
TWO_OVER_ROOT_PI = repr(2.0 / math.sqrt(math.pi))
ROOT_PI_OVER_TWO = repr(math.sqrt(math.pi) / 2.0)
ROOT_PI = repr(math.sqrt(math.pi))
ROOT_HALF = repr(math.sqrt(0.5))
ONE_OVER_ROOT_TWO_PI = repr(1.0 / math.sqrt(2.0 * math.pi))
ROOT_TWO_PI = repr(math.sqrt(2.0 * math.pi))
ROOT_TWO_OVER_PI = repr(math.sqrt(2.0 / math.pi))
ROOT_HALF_PI = repr(math.sqrt(math.pi / 2.0))

# Row -> {position of an operand that must be constant: its name}.
CONSTANT_OPERANDS: dict[str, dict[int, str]] = {}


class Rare(NamedTuple):
    """How a row of a rarer ufunc is tested.

    It may be tested with the rows that contain it instead of by itself. `reached` states figures
    below the usual bar: the largest relative errors of value and derivatives, and of second
    derivatives."""

    is_tested: bool
    reached: tuple[float, float] | None


class Answer(NamedTuple):
    """What answers for a rarer ufunc, the rows behind that, one for each result, and the note for
    the documentation.
    """

    function: Function
    rows: tuple[Elementwise, ...]
    note: str


# By the name of the row, and by SciPy's name.
RARE: dict[str, Rare] = {}
ANSWERS: dict[str, Answer] = {}

_DOC = """{about}.

Parameters
----------
{parameters}

Returns
-------
Var, VarMat or MatVar
    A float or an ndarray if no argument is a variable.

Notes
-----
Domain: {domain}.{note} With `g` the adjoint of the result `r`, the contribution to the adjoint of

{rules}
"""
_EXAMPLE = """
References
----------
{references}

Examples
--------
>>> import numpy as np, varmat as vm
{imports}>>> {x} = vm.var({at!r})
>>> {call}.grad()
>>> print(f"{{{x}.adj:.6g}}")
{slope:.6g}
"""


def row(
    name: str,
    partials: str | tuple[str | None, ...],
    about: str,
    scalar: str | Callable[..., float] | None,
    reference: str,
    points: Points,
    slope: float | None = None,
    *,
    source: str = "",
    domain: str = "all real numbers",
    note: str = "",
    constant: tuple[str, ...] = (),
    ufunc: Function | str | None = None,
    answers_for: str | None = None,
    shortcuts: dict[float, str] | None = None,
    with_itself: str | None = None,
    call: str | None = None,
    module: str | None = None,
    reached: tuple[float, float] | None = None,
    tested: bool = True,
) -> Elementwise:
    """Make a row, with its docstring. A row without `slope`, and with `reached` and `tested` as in
    `Rare`, is one of the rarer ufuncs.

    A partial that is None belongs to an operand that must be constant; `constant` names these
    operands. Without `ufunc` it is NumPy's or SciPy's ufunc of this name, the latter imported when
    it is first used; `answers_for` names a ufunc of SciPy for which the row answers although it
    computes with another function. `source` is written as `references_of` reads it. `call` is how
    a row without a separate name is called, `module` the module of a row that is not a public
    name of `varmat`."""
    if isinstance(partials, str):
        partials = (partials,)
    if ufunc is None:
        ufunc = getattr(np, name) if isinstance(getattr(np, name, None), np.ufunc) else name
    module = module or ("vm" if isinstance(ufunc, str) or not hasattr(np, name) else "np")
    tuples = tuple(p if isinstance(p, tuple) else (p,) for p in points)
    result = new_row(
        name,
        ufunc,
        # The derivative in a constant operand is never asked for; it would be nan.
        *(p or "nan * g" for p in partials),
        scalar=scalar,
        shortcuts=shortcuts,
        with_itself=with_itself,
        points=tuples,
        reference=reference,
        doc=_docstring(name, partials, about, domain, note, source, tuples[0], slope, module, call),
    )
    answer = result.call
    if constant:
        positions = [i for i, partial in enumerate(partials) if partial is None]
        answer = hold_constant(result, dict(zip(positions, constant, strict=True)))
    # The row also answers for a function of NumPy that has its name but does not compute it.
    if callable(like := getattr(np, name, None)):
        SUPPORTED[like] = answer if isinstance(like, np.ufunc) else result
    for special in (ufunc, answers_for):
        if isinstance(special, str) and slope is not None:
            SPECIAL[special] = answer
        elif isinstance(special, str):
            SPECIAL.pop(special, None)
            ANSWERS[special] = Answer(answer, (result,), note)
    if slope is None:
        RARE[name] = Rare(tested, reached)
        # Set on this object, not on its class: the process that unpickles it may have to import the
        # tables first.
        result.__reduce__ = lambda: (_found, (name,))  # type: ignore[method-assign]
    return result


def _found(name: str) -> Elementwise:
    """Find the row of a rarer ufunc."""
    import_module("varmat.functions.rarer.special.further_names")
    return ROWS[name]


def _docstring(
    name: str,
    partials: tuple[str | None, ...],
    about: str,
    domain: str,
    note: str,
    source: str,
    point: tuple[float, ...],
    slope: float | None,
    module: str,
    call: str | None,
) -> str:
    names = OPERANDS[: len(partials)]
    kinds = [
        "array_like of real numbers" + (", not a variable" if p is None else "") for p in partials
    ]
    first = next(i for i, partial in enumerate(partials) if partial is not None)
    arguments = [*map(repr, point[:first]), names[first], *map(repr, point[first + 1 :])]
    doc = _DOC.format(
        about=about,
        parameters="\n".join(f"{x} : {kind}" for x, kind in zip(names, kinds, strict=True)),
        domain=domain,
        note=f" {note}." if note else "",
        rules="\n".join(
            f"* `{x}` is ``{p}``" for x, p in zip(names, partials, strict=True) if p is not None
        ),
    )
    if slope is None:
        return doc
    call = call or f"{module}.{name}({', '.join(arguments)})"
    imports = ""
    if "." in module:
        call, imports = call.removeprefix(f"{module}."), f">>> from {module} import {name}\n"
    return doc + _EXAMPLE.format(
        references=references_of(source, name), x=names[first], at=point[first], call=call,
        imports=imports, slope=slope,
    )  # fmt: skip


def references_of(source: str, name: str) -> str:
    """Write the section References of a docstring. In a source, entries are separated by
    semicolons; "DLMF 7.2.1" is an equation or a section, "SciPy" and "NumPy" are the page of the
    function, and "Stan Link functions" is a section of Stan's reference.
    """
    return "\n".join(f"* {_reference(entry, name)}." for entry in source.split("; "))


def _reference(entry: str, name: str) -> str:
    work, _, place = entry.partition(" ")
    if work == "DLMF":
        return f"NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, {place}"
    if work == "Stan":
        return f'Stan Functions Reference, "{place}"'
    if work in ("NumPy", "SciPy"):
        return f"{work} reference, `{'numpy' if work == 'NumPy' else 'scipy.special'}.{name}`"
    return entry


# Where SciPy truncates an order, a sample size or a number of trials to an integer.
TRUNCATED = {"bdtr", "bdtrc", "bdtri", "expn", "kn", "nbdtr", "nbdtrc", "nbdtri"}
TRUNCATED |= {"smirnov", "smirnovi", "yn"}


def hold_constant(result: Elementwise, names: dict[int, str]) -> Function:
    """Refuse variables where there is no derivative, and numbers that SciPy would truncate, before
    anything is recorded.
    """
    name = result.name
    CONSTANT_OPERANDS[name] = names
    call = result.call

    def checked(*args: Operand) -> Operand:
        for position, title in names.items():
            if is_differentiable(args[position]):
                kind = type(args[position]).__name__
                text = (
                    f"{name}: {title} is a {kind}, but must be a constant (varmat.value gives "
                    "one): "
                )
                raise TypeError(text + "there is no derivative with respect to it here!")
            if name in TRUNCATED:
                integers.check(name, title, as_operand(args[position], f"{name}: {title}"))
        return call(*args)

    result.call = checked
    return checked


def formula(function: Function, straight: Function | None = None) -> Function:
    """Give a NumPy expression the calling convention of a ufunc, without warnings about values that
    `np.where` drops.

    `straight` stands for it in programs. It is needed where `function` chooses by the values
    between two ways, and each would take too long for all elements."""
    ufunc = with_out(np.errstate(all="ignore")(function))
    if straight is not None:
        ufunc.formula = straight  # type: ignore[attr-defined]
    return ufunc
