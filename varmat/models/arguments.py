"""The arguments of a `Model`: which of them are parameters, observations, functions or data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as Collection
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

if TYPE_CHECKING:
    from varmat.distributions.custom import Statement
    from varmat.transforms import Transform
    from varmat.typing import Shape


class Declarations(TypedDict, total=False):
    """What each parameter may state."""

    prior: Statement
    dims: str | Sequence[str]


class Declared(NamedTuple):
    """A parameter's statements in addition to its set.

    Attributes
    ----------
    prior : Distribution, callable or None
    dims : tuple of str
    make : callable
        The parameter of a shape, if the names of dimensions say what that is.
    """

    prior: Statement | None
    dims: tuple[str, ...]
    make: Callable[[Shape], Any]


# Keywords of other libraries, and what is written instead of them.
_KEYWORDS = {
    "a size is an argument without a name, as in varmat.real(3)": "shape size n length",
    "a bound makes another declaration: varmat.lower(0), varmat.upper(1) or varmat.interval(0, 1)":
        "lower upper bounds min max low high",
    "did you mean centred?": "centered noncentered non_centered noncentred",
    "did you mean prior?": "distribution dist priors prior_distribution",
    "did you mean dims?": "dim dimension dimensions coords labels",
    "observations are declared by varmat.observed(y, distribution)": "observed data y value",
    "starts belong to the sampler: Model.sample(inits=...)": "init initval inits start testval",
}  # fmt: skip


def check_declarations(function: str, names: Collection[str]) -> None:
    """Refuse keywords that a declaration does not take, with what to write instead."""
    for name in sorted(names - {"prior", "dims"}):
        hints = [hint for hint, others in _KEYWORDS.items() if name in others.split()]
        raise TypeError(
            f"{function}() got an unexpected keyword argument {name!r}"
            + "".join(f": {hint}" for hint in hints)
        )


def check_dicts(arguments: Mapping[str, object]) -> None:
    """Refuse what is neither a mapping nor None; the keys are titles."""
    for title, argument in arguments.items():
        if argument is not None and not isinstance(argument, Mapping):
            kind = type(argument).__name__
            raise TypeError(
                f"Model: {title} is a {kind}, but must be a dict; parameters have names, as in "
                "x=varmat.real(3)!"
            )


def declared_parameters(
    parameters: Mapping[str, Transform],
    by_name: Mapping[str, Transform],
    data: Mapping[str, object],
    observations: Mapping[str, object],
) -> dict[str, Transform]:
    """Join all parameters, from the second argument and by name; reject a name that is not a
    string, that data also have, or that occurs twice.
    """
    for name in observations:
        if name in data:
            raise TypeError(f"Model: {name} is both observed and data")
    declaration = {**parameters, **by_name}
    for name in declaration:
        if not isinstance(name, str):
            raise TypeError(f"Model: the name of a parameter is {name!r}, but must be a string!")
        if name in data:
            raise TypeError(f"Model: {name} is both a parameter and data")
        if name in by_name and name in parameters:
            raise TypeError(
                f"Model: {name} is declared twice, in the second argument and by itself"
            )
    return declaration


def observed_names(observed: str | Sequence[str] | None, data: Mapping[str, object]) -> list[str]:
    """Return the names of the observed data; reject one that is not among the data."""
    names = [observed] if isinstance(observed, str) else list(observed or ())
    for name in names:
        if name not in data:
            raise TypeError(
                f"Model: observed has {name!r}, but must have data: "
                f"{', '.join(data) or 'there are none'}!"
            )
    return names


def taken(
    by_name: Mapping[str, object], holds: Callable[[Any], bool]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split arguments into those for which a condition holds, and the others."""
    taken = {name: x for name, x in by_name.items() if holds(x)}
    return taken, {name: x for name, x in by_name.items() if name not in taken}
