"""Functions of a Stan program, called from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from varmat.stan import syntax as s
from varmat.stan.evaluate import Translator
from varmat.stan.running import Evaluation
from varmat.stan.values import StanValue, from_python

__all__ = ["UserFunctions"]


class UserFunctions:
    """The functions of a program, by name; arguments may be variables."""

    def __init__(self, tree: s.ProgramTree) -> None:
        self._translator = Translator({}, set())
        self._definitions: dict[str, list[s.FunctionDefinition]] = {}
        for function in tree.functions:
            if function.body is not None:
                self._definitions.setdefault(function.name, []).append(function)

    def __dir__(self) -> list[str]:
        return sorted(self._definitions)

    def __getattr__(self, name: str) -> Callable[..., StanValue]:
        definitions = self.__dict__.get("_definitions", {}).get(name)
        if definitions is None:
            raise AttributeError(
                f"the program has no function {name!r}: it has {', '.join(dir(self)) or 'none'}"
            )

        def function(*arguments: StanValue, rng: np.random.Generator | None = None) -> StanValue:
            definition, values = _chosen(name, definitions, arguments)
            run = Evaluation(rng=np.random.default_rng(rng))
            with np.errstate(all="ignore"):
                result = self._translator.routine(definition)(run, values)
            if definition.result is None:  # a function that adds to the target
                return run.target()
            return result

        function.__name__ = function.__qualname__ = name
        return function


def _chosen(
    name: str, definitions: Sequence[s.FunctionDefinition], arguments: Sequence[object]
) -> tuple[s.FunctionDefinition, list[StanValue]]:
    """Find the overload that takes the arguments, and convert these to its types."""
    reasons = []
    for definition in definitions:
        if len(definition.arguments) != len(arguments):
            reasons.append(f"it takes {len(definition.arguments)} arguments")
            continue
        try:
            values = [
                from_python(x, argument.type)
                for x, argument in zip(arguments, definition.arguments, strict=True)
            ]
        except (TypeError, ValueError) as error:
            reasons.append(str(error))
        else:
            return definition, values
    raise TypeError(f"{name}: no overload takes these arguments: {'; '.join(reasons)}")
