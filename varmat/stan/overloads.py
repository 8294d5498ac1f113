"""The function that a call means: one of the program's own or of Stan's library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from varmat.stan import types
from varmat.stan.signatures import Signature, signatures
from varmat.stan.syntax import FunctionDefinition
from varmat.stan.types import Argument, FunctionType, Type, promotion

__all__ = ["Found", "GivenArgument", "definition_type", "forward", "library_name", "resolve"]

Found = tuple[Type | None, "FunctionDefinition | None"]


@dataclass(frozen=True, slots=True)
class GivenArgument:
    """Argument of a call: its type, whether it depends only on data."""

    type: Type
    data: bool


def library_name(name: str) -> str:
    """Name under which a density without its constants stands."""
    return name.replace("_lupdf", "_lpdf").replace("_lupmf", "_lpmf") if "_lup" in name else name


def definition_type(definition: FunctionDefinition) -> FunctionType:
    """Return the type of a function of the program."""
    arguments = tuple(Argument(argument.type, argument.data) for argument in definition.arguments)
    return FunctionType(arguments, definition.result)


def resolve(
    name: str, argument_types: Sequence[GivenArgument], own: Sequence[FunctionDefinition]
) -> Found | str:
    """Find what a call means, or say why it means nothing.

    The function with the fewest promotions of arguments is meant, and only one may have so few.
    """
    candidates: list[tuple[int, Found]] = []
    for definition in own:
        arguments = definition_type(definition).arguments
        cost = _cost(tuple((argument,) for argument in arguments), tuple(argument_types))
        if cost is not None:
            candidates.append((cost, (definition.result, definition)))
    library = _library(library_name(name), tuple(argument_types))
    if library:
        candidates.append((library[0], (library[1], None)))
    if not candidates:
        return _refusal(name, argument_types, own)
    least = min(cost for cost, _ in candidates)
    best = [meaning for cost, meaning in candidates if cost == least]
    if len(best) > 1:
        return _ambiguous(name, argument_types, len(best))
    return best[0]


@cache
def _library(name: str, arguments: tuple[GivenArgument, ...]) -> tuple[int, Type | None] | None:
    costs = [
        (cost, signature.result)
        for signature in signatures(name)
        if (cost := _cost(signature.arguments, arguments)) is not None
    ]
    return min(costs, key=lambda result: result[0], default=None)


def _cost(
    arguments: tuple[tuple[Argument, ...], ...], argument_types: tuple[GivenArgument, ...]
) -> int | None:
    if len(arguments) != len(argument_types):
        return None
    total = 0
    for alternatives, argument in zip(arguments, argument_types, strict=True):
        costs = [
            cost
            for requested in alternatives
            if (argument.data or not requested.data)
            and (cost := promotion(requested.type, argument.type)) is not None
        ]
        if not costs:
            return None
        total += min(costs)
    return total


def _refusal(
    name: str, argument_types: Sequence[GivenArgument], own: Sequence[FunctionDefinition]
) -> str:
    names = [
        Signature(tuple((argument,) for argument in definition_type(one).arguments), one.result)
        for one in own
    ] + list(signatures(library_name(name)))
    sizes = sorted({len(signature.arguments) for signature in names})
    if len(argument_types) not in sizes:
        count = " or ".join(map(str, sizes))
        return f"`{name}` takes {count} argument{'s' * (count != '1')}, not {len(argument_types)}."
    fitting = [one.arguments for one in names if len(one.arguments) == len(argument_types)]
    for position, argument in enumerate(argument_types):
        requested = dict.fromkeys(one for arguments in fitting for one in arguments[position])
        if not any(promotion(one.type, argument.type) is not None for one in requested):
            kinds = " or ".join(dict.fromkeys(str(one.type) for one in requested))
            return f"Argument {position + 1} of `{name}` is {argument.type}, but must be {kinds}."
        if not argument.data and all(one.data for one in requested):
            return (
                f"Argument {position + 1} of `{name}` must be data, but depends on parameters or on"
                " local variables that could hold them."
            )
    return f"`{name}` takes no arguments of the types ({_kinds(argument_types)}) together."


def forward(
    name: str,
    arguments: Sequence[GivenArgument],
    own: Sequence[FunctionDefinition],
    signature_for: Callable[[FunctionDefinition], Signature],
) -> FunctionDefinition | str:
    """Find the function meant by the first argument of one that takes any number of others.

    `arguments` are the arguments behind the function; those behind the fixed ones go on to it. A
    function that does not fit is answered by the reason.
    """
    candidates, reason = [], ""
    for definition in own:
        mine, signature = definition_type(definition), signature_for(definition)
        (expected,) = signature.arguments[0]
        assert isinstance(expected.type, FunctionType)
        count = len(expected.type.arguments)
        first, remainder = mine.arguments[:count], mine.arguments[count:]
        if not types.callable_as(expected.type, FunctionType(first, mine.result)):
            reason = f"`{name}` calls {expected.type} or more, but `{definition.name}` is {mine}."
            continue
        requested = (*signature.arguments[1:], *((argument,) for argument in remainder))
        cost = _cost(requested, tuple(arguments))
        if cost is None:
            kinds = ", ".join(str(alternatives[0]) for alternatives in requested)
            called = f"`{name}` takes ({kinds}) after `{definition.name}`"
            reason = f"{called}, not ({_kinds(arguments)})."
        else:
            candidates.append((cost, definition))
    best = [one for cost, one in candidates if cost == min(cost for cost, _ in candidates)]
    if len(best) > 1:
        return _ambiguous(own[0].name, arguments, len(best))
    return best[0] if best else reason


def _kinds(arguments: Sequence[GivenArgument]) -> str:
    return ", ".join(str(argument.type) for argument in arguments)


def _ambiguous(name: str, arguments: Sequence[GivenArgument], count: int) -> str:
    return f"`{name}` of ({_kinds(arguments)}) is ambiguous: {count} definitions fit equally well."
