"""Signatures of the functions of Stan's library.

The file `signatures.txt` has a line for each family of functions with the same signatures: the
names, a colon, the signatures. A signature lists its arguments, each with its alternatives, and the
result: `i|r,1v=r` takes an integer or a real and an array of vectors and gives a real. The letters:

    i int, r real, c complex, v vector, w row vector, m matrix, V W M the complex ones,

a digit before them is the number of dimensions of an array, `d` means that parameters must not
occur, `(v;m)` is a tuple, `<r;v=v>` a function, `*` any number of further arguments, `-` no result.
A number after a plus repeats the signature with up to that many more dimensions of all its arrays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from varmat.stan import types
from varmat.stan.types import Argument, Type

__all__ = ["Signature", "names", "signatures"]

_LETTERS = {
    letter: types.Basic(name) for letter, name in zip("ircvwmVWM", types.BASIC, strict=True)
}


@dataclass(frozen=True, slots=True)
class Signature:
    """Alternatives of each argument, and the result; `variadic` if any arguments may follow."""

    arguments: tuple[tuple[Argument, ...], ...]
    result: Type | None
    variadic: bool = False


@cache
def _table() -> dict[str, str]:
    text = Path(__file__).with_name("signatures.txt").read_text(encoding="utf-8")
    families = (line.split(": ", 1) for line in text.replace("\n  ", " ").splitlines())
    return {name: packed for names, packed in families for name in names.split()}


def names() -> frozenset[str]:
    """Return the names of the functions of Stan's library."""
    return frozenset(_table())


@cache
def signatures(name: str) -> tuple[Signature, ...]:
    """Return the signatures of a function of Stan's library; empty for other names."""
    result = []
    for packed in _table().get(name, "").split():
        text, _, more = packed.rpartition("+") if "+" in packed else (packed, "", "0")
        for depth in range(int(more) + 1):
            deeper = re.sub(r"\d", lambda digit, k=depth: str(int(digit[0]) + k), text)  # type: ignore[misc]
            result.append(_signature(deeper))
    return tuple(result)


def _signature(text: str) -> Signature:
    arguments, result = re.fullmatch(r"(.*)=([^>]*)", text).groups()  # type: ignore[union-attr]
    parts = [part for part in arguments.split(",") if part]
    return Signature(
        tuple(tuple(map(_argument, part.split("|"))) for part in parts if part != "*"),
        None if result == "-" else _type(result),
        "*" in parts,
    )


def _argument(text: str) -> Argument:
    return Argument(_type(text.removeprefix("d")), text.startswith("d"))


def _type(text: str) -> Type:
    if text[0].isdigit():
        element = _type(text[1:])
        for _ in range(int(text[0])):
            element = types.ArrayType(element)
        return element
    if text[0] == "(":
        return types.Tuple(tuple(map(_type, text[1:-1].split(";"))))
    if text[0] == "<":
        arguments, result = text[1:-1].split("=")
        parts = [_argument(part) for part in arguments.split(";") if part != "*"]
        return types.FunctionType(tuple(parts), _type(result))
    return _LETTERS[text]
