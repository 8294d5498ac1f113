"""The function that a call means: among the program's own, overloaded, and those of Stan's library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from varmat.stan import types
from varmat.stan.signatures import Signature, signatures
from varmat.stan.syntax import FunctionDefinition
from varmat.stan.types import Argument, Function, Type, promotion

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Found", "definition_type", "library_name", "resolve"]

Found = tuple[Type | None, "FunctionDefinition | None"]


@dataclass(frozen=True, slots=True)
class Given:
    """Argument of a call: its type, whether it depends on data alone."""

    type: Type
    data: bool


def library_name(name: str) -> str:
    """Name under which a density without its constants stands."""
    return name.replace("_lupdf", "_lpdf").replace("_lupmf", "_lpmf") if "_lup" in name else name


def definition_type(definition: FunctionDefinition) -> Function:
    """Type of a function of the program."""
    arguments = tuple(Argument(argument.type, argument.data) for argument in definition.arguments)
    return Function(arguments, definition.result)


def resolve(name: str, given: Sequence[Given], own: Sequence[FunctionDefinition]) -> Found | str:
    """Find what a call means, or say why it means nothing.

    The function with the fewest promotions of arguments is meant, and there must be one alone.
    """
    found: list[tuple[int, Found]] = []
    for definition in own:
        arguments = definition_type(definition).arguments
        cost = _cost(tuple((argument,) for argument in arguments), tuple(given))
        if cost is not None:
            found.append((cost, (definition.result, definition)))
    library = _library(library_name(name), tuple(given))
    if library:
        found.append((library[0], (library[1], None)))
    if not found:
        return _refusal(name, given, own)
    least = min(cost for cost, _ in found)
    best = [meaning for cost, meaning in found if cost == least]
    if len(best) > 1:
        kinds = ", ".join(str(argument.type) for argument in given)
        return f"`{name}` of ({kinds}) is ambiguous: {len(best)} definitions fit equally well."
    return best[0]


@cache
def _library(name: str, given: tuple[Given, ...]) -> tuple[int, Type | None] | None:
    costs = [
        (cost, signature.result)
        for signature in signatures(name)
        if (cost := _cost(signature.arguments, given)) is not None
    ]
    return min(costs, key=lambda found: found[0], default=None)


def _cost(arguments: tuple[tuple[Argument, ...], ...], given: tuple[Given, ...]) -> int | None:
    if len(arguments) != len(given):
        return None
    total = 0
    for alternatives, argument in zip(arguments, given, strict=True):
        costs = [
            cost
            for wanted in alternatives
            if (argument.data or not wanted.data)
            and (cost := promotion(wanted.type, argument.type)) is not None
        ]
        if not costs:
            return None
        total += min(costs)
    return total


def _refusal(name: str, given: Sequence[Given], own: Sequence[FunctionDefinition]) -> str:
    known = [
        Signature(tuple((argument,) for argument in definition_type(one).arguments), one.result)
        for one in own
    ] + list(signatures(library_name(name)))
    sizes = sorted({len(signature.arguments) for signature in known})
    if len(given) not in sizes:
        count = " or ".join(map(str, sizes))
        return f"`{name}` takes {count} argument{'s' * (count != '1')}, not {len(given)}."
    fitting = [one.arguments for one in known if len(one.arguments) == len(given)]
    for position, argument in enumerate(given):
        wanted = dict.fromkeys(one for arguments in fitting for one in arguments[position])
        if not any(promotion(one.type, argument.type) is not None for one in wanted):
            kinds = " or ".join(dict.fromkeys(str(one.type) for one in wanted))
            return f"Argument {position + 1} of `{name}` is {argument.type}, but must be {kinds}."
        if not argument.data and all(one.data for one in wanted):
            return (
                f"Argument {position + 1} of `{name}` must be data, but depends on parameters or on"
                " local variables that could hold them."
            )
    kinds = ", ".join(str(argument.type) for argument in given)
    return f"`{name}` takes no arguments of the types ({kinds}) together."


def variadic(
    name: str, given: Sequence[Given], definition: FunctionDefinition, signature: Signature
) -> str | None:
    """Say why a function cannot be passed to one that takes any number of further arguments.

    `given` are the arguments behind the function; those behind the fixed ones go on to it.
    """
    (expected,) = signature.arguments[0]
    assert isinstance(expected.type, Function)
    mine = definition_type(definition)
    count = len(expected.type.arguments)
    if not types.callable_as(expected.type, Function(mine.arguments[:count], mine.result)):
        return (
            f"`{name}` calls {expected.type} and more arguments, but `{definition.name}` is {mine}."
        )
    controls = signature.arguments[1:]
    wanted = (*controls, *((argument,) for argument in mine.arguments[count:]))
    if _cost(wanted, tuple(given)) is None:
        kinds = ", ".join(str(alternatives[0]) for alternatives in wanted)
        got = ", ".join(str(argument.type) for argument in given)
        return f"`{name}` takes ({kinds}) after `{definition.name}`, not ({got})."
    return None
