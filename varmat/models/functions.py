"""The functions that a user gives to a model. They are called with the values that they name."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from varmat.core.data import data
from varmat.core.tape import nested
from varmat.core.variables import var
from varmat.functions.checks import check_integer
from varmat.interrupts import Attempt, Noted
from varmat.models.indices import refuse_index
from varmat.transforms import Transform
from varmat.typing import Function, Operand, Result

# Arguments that a function may take in addition to parameters and data.
OPTIONS = ("propto", "rng")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Named:
    """A function that is called with what its parameters name, or with a dict of everything if it
    takes one parameter of another name.

    Parameters
    ----------
    title : str
        What the function is, for messages.
    function : callable
    given : Mapping
        Data.
    by_dict : bool
        Whether a function of one parameter of another name gets the dict.
    is_last : bool
        Whether nothing reads the values after the function. Otherwise it is given copies of arrays,
        because it may sort or overwrite its arguments.
    """

    def __init__(
        self,
        title: str,
        function: Function,
        data: Mapping[str, object],
        by_dict: bool = True,
        is_last: bool = False,
    ) -> None:
        if not callable(function):
            remedy = ""
            if isinstance(function, (Mapping, Transform)) and title == "the log density":
                remedy = ": parameters are arguments by name, as in Model(mu=varmat.real())"
            raise TypeError(
                f"Model: {title} is a {type(function).__name__}, but must be a function{remedy}!"
            )
        parameters = inspect.signature(function).parameters.values()
        self.title, self.function, self._is_last = title, function, is_last
        self.names = tuple(p.name for p in parameters if p.kind in _NAMED)
        self._everything = any(p.kind is p.VAR_KEYWORD for p in parameters)
        kinds = {
            p.name: p.kind
            for p in parameters
            if p.kind in (p.POSITIONAL_ONLY, *_NAMED) and p.default is p.empty
        }
        self._required = [name for name in kinds if name not in OPTIONS]
        # The name of the parameter that may take the dict.
        self._dict: str | None = None
        if by_dict and len(self._required) == 1:
            (name,) = self._required
            self._dict = None if kinds[name] is inspect.Parameter.KEYWORD_ONLY else name
        self._data = dict(data)
        self._fixed = {n: x for n, x in data.items() if self._everything or n in self.names}
        self._varying = tuple(name for name in self.names if name not in data)

    def check(self, cached: Iterable[str]) -> None:
        """Raise `TypeError` if the function takes something that the model does not have."""
        cached = [*cached, *self._data]
        for name in OPTIONS if self._dict is None else ():
            if name in self.names and name in cached:
                raise TypeError(
                    f"Model: {self.title} takes {name!r}, which is the name of an argument "
                    f"that the model passes to functions: rename the parameter or the data {name}!"
                )
        for name in self._required:
            # One parameter of another name takes a dict, unless it looks like one of them.
            near = get_close_matches(name, cached, n=1, cutoff=0.6) if len(name) > 1 else []
            if name not in cached and (self._dict is None or near):
                names = ", ".join(cached) or "there are none"
                raise TypeError(
                    f"Model: {self.title} takes {name!r}, but must take parameters and data: "
                    f"{names}!" + "".join(f" Did you mean {x!r}?" for x in near)
                ) from None

    def is_ready(self, values: Mapping[str, object]) -> bool:
        """Return whether the values and the data include all that the function requires."""
        return all(name in values or name in self._data for name in self._required)

    def __call__(self, values: dict[str, Operand], **options: Any) -> Result:
        try:
            return self._called(values, options)
        except IndexError as error:
            refuse_index(self._data, error)
            # With plain values NumPy raised it, without saying for which index.
            with Attempt() as repeated, nested():
                self._called({name: var(data(x)) for name, x in values.items()}, options)
            if isinstance(repeated.error, IndexError):
                refuse_index(self._data, repeated.error)
            raise

    def _called(self, values: dict[str, object], options: dict[str, object]) -> Result:
        by_dict = self._takes_dict(values)
        if not (by_dict or self._everything):
            arguments = self._fixed.copy()
            for name in self._varying:
                if name in values:
                    arguments[name] = self._copied(values[name])
                elif name in options:
                    arguments[name] = options[name]
            try:
                return self.function(**arguments)
            except TypeError:
                # The names of transformed parameters are known only now.
                self.check(values)
                raise
        chosen = {name: option for name, option in options.items() if name in self.names}
        values = {name: self._copied(x) for name, x in values.items()}
        if not by_dict:
            return self.function(**{**chosen, **self._fixed, **values})
        with Noted(self._called_with(values), recoverable):
            return self.function({**self._data, **values}, **chosen)

    def _copied(self, x: Operand) -> Operand:
        return x if self._is_last or not getattr(x, "ndim", 0) else x.copy()

    def _takes_dict(self, values: Mapping[str, object]) -> bool:
        return self._dict is not None and self._dict not in values and self._dict not in self._fixed

    def explained(self, error: Exception, values: Mapping[str, object]) -> Exception:
        """Return the error, with a note if the function was called with a dict: perhaps it was
        meant for one of the values.
        """
        if self._takes_dict(values):
            error.add_note(self._called_with(values))
        return error

    def _called_with(self, values: Mapping[str, Operand]) -> str:
        names = ", ".join([*self._data, *values])
        return (
            f"{self.title} takes {self._dict!r}, none of {names}: it was called with a dict of "
            "them all"
        )

    def named_values(self, values: dict[str, object], **options: object) -> dict[str, Operand]:
        """Return the result of the function, which must be a dict."""
        result = self(values, **options)
        if not isinstance(result, Mapping):
            text = (
                f"Model: {self.title} returned a {type(result).__name__}, but must return a dict "
                "of named values!"
            )
            raise self.explained(TypeError(text), values)
        if not (result.keys().isdisjoint(values) and result.keys().isdisjoint(self._data)):
            name = next(name for name in result if name in values or name in self._data)
            kind = "data" if name in self._data else "a parameter or transformed parameter"
            text = (
                f"Model: {self.title} returned {name!r}, which is {kind}, but must return values "
                "of other names!"
            )
            raise self.explained(TypeError(text), values)
        return dict(result)


def generator(name: str, seed: Any) -> np.random.Generator:
    """Make the generator of a seed; an error about the seed names the function."""
    if isinstance(seed, (float, str, bool)) or (isinstance(seed, int) and seed < 0):
        check_integer(name, "seed", seed, 0)
    return np.random.default_rng(seed)


def recoverable(error: BaseException) -> bool:
    """Return whether an error means that the point is outside the domain: a sampler tries
    another.
    """
    return bool(getattr(error, "is_recoverable", False))


def never(error: BaseException) -> bool:
    """Return False: no error is expected."""
    return False


def of_values(error: BaseException) -> bool:
    """Return whether an error may be due to the values at one point: random number generators raise
    such errors far from the data.
    """
    return recoverable(error) or isinstance(error, (ValueError, ArithmeticError))
