"""Complex operations: structured operations on the real and imaginary parts, written with complex
arrays.

    @complex_operation(np.linalg.inv)
    def complex_inv(a):                              # plain arrays, complex or real, in; complex arrays out
        return np.linalg.inv(a)

    @complex_inv.pull
    def complex_inv_pull(g, r, a):                   # the adjoint of the result, the result, the operands
        return lambda: -adjoint(r) @ g @ adjoint(r)  # the contribution to the adjoint of the operand

    @complex_inv.push
    def complex_inv_push(r, a):                      # written with differentiable functions
        return lambda t: -r @ t @ r                  # the map of the operand's tangent, linear over the real numbers

Adjoints are ``d/dRe + i d/dIm``, so that the contribution of a holomorphic function is the adjoint
of the result times the conjugate of the derivative. To an operand that is real goes the real part.
Underneath stands one `Operation`, of which the operands are the parts: so reverse and forward mode,
second derivatives and recordings are the engine's."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from varmat.complexes.variable import joined, paired, parts
from varmat.core.dispatch import COMPLEX
from varmat.core.operation import is_differentiable, operation

__all__ = ["ComplexOperation", "adjoint", "complex_operation"]


def adjoint(a: Any) -> Any:
    """The conjugate transpose of matrices; differentiable."""
    return np.conjugate(np.swapaxes(a, -1, -2))


class ComplexOperation:
    """A differentiable function of complex operands; made by `complex_operation`."""

    def __init__(self, function: Callable[..., Any], results: str) -> None:
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.function = function
        # For each result, whether it is complex ("c") or real ("r").
        self.results = results
        self.pull_rule: Any = None
        self.push_rule: Any = None
        self.pattern: Any = tuple

        def of_parts(*given: Any, kinds: str, **settings: Any) -> Any:
            return self._split(function(*assembled(given, kinds), **settings))

        of_parts.__name__, of_parts.__qualname__, of_parts.__doc__ = (
            self.name,
            f"{self.name}.operation",
            function.__doc__,
        )
        of_parts.__module__ = __name__
        own = [p for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        kinds = Parameter("kinds", Parameter.KEYWORD_ONLY)
        given = Parameter("given", Parameter.VAR_POSITIONAL)
        of_parts.__signature__ = Signature([given, kinds, *own])  # type: ignore[attr-defined]
        self.operation = operation(variadic=True)(of_parts)
        self.operation.reverse(self._reverse)
        self.operation.tangent(self._tangent)

    def pull(self, rule: Any) -> Any:
        """Decorator: the reverse rule; its items are complex arrays, or functions of nothing that
        make them, one per operand.
        """
        self.pull_rule = rule
        return rule

    def push(self, rule: Any) -> Any:
        """Decorator: the tangent rule."""
        self.push_rule = rule
        return rule

    def __repr__(self) -> str:
        return f"<varmat complex operation {self.name}>"

    def __call__(self, *operands: Any, **settings: Any) -> Any:
        flat: list[Any] = []
        kinds = ""
        for i, x in enumerate(operands, 1):
            re, im = parts(x, f"{self.name.removeprefix('complex_')}: operand {i}")
            flat += [re] if im is None else [re, im]
            kinds += "r" if im is None else "c"
        if not any(map(is_differentiable, flat)):
            return self.function(*assembled(flat, kinds), **settings)
        return self._joined(self.operation(*flat, kinds=kinds, **settings))

    def _split(self, value: Any) -> Any:
        """The parts of the results as a flat tuple, or the only real result."""
        if self.results == "r":
            return value
        if type(value) is not tuple and isinstance(value, tuple):
            value = tuple(value)
        found: list[Any] = []
        for x, kind in zip(value if len(self.results) > 1 else (value,), self.results, strict=True):
            found += [np.real(x), np.imag(x)] if kind == "c" else [x]
        return tuple(found)

    def _joined(self, flat: Any) -> Any:
        """The results of their parts."""
        if self.results == "r":
            return flat
        remaining = iter(flat)
        found = [
            joined(next(remaining), next(remaining) if kind == "c" else None)
            for kind in self.results
        ]
        return tuple(found) if len(found) > 1 else found[0]

    def _adjoints(self, g: Any, r: Any) -> Any:
        """Complex adjoints of the results; zeros for one that nothing depends on, beside others."""
        if self.results == "r":
            return g
        remaining = iter(zip(g, r, strict=True))
        found: list[Any] = []
        for kind in self.results:
            pair = [next(remaining) for _ in range(2 if kind == "c" else 1)]
            filled = [np.zeros(np.shape(value)) if each is None else each for each, value in pair]
            found.append(paired(*filled) if kind == "c" else filled[0])
        return tuple(found) if len(found) > 1 else found[0]

    def _reverse(self, g: Any, r: Any, *given: Any, kinds: str, **settings: Any) -> Any:
        values = assembled(given, kinds)
        results = r if self.results == "r" else assembled(r, self.results)
        results = results if self.results == "r" or len(self.results) > 1 else results[0]
        found = self.pull_rule(self._adjoints(g, r), results, *values, **settings)
        contributions: list[Any] = []
        for c, kind in zip(found if type(found) is tuple else (found,), kinds, strict=True):
            once = _Once(c)
            contributions += [lambda once=once: np.real(once())] + [
                lambda once=once: np.imag(once())
            ] * (kind == "c")
        return tuple(contributions)

    def _tangent(self, r: Any, *given: Any, kinds: str, **settings: Any) -> Any:
        values = list(_pairs(given, kinds))
        results = r if self.results == "r" else list(_pairs(r, self.results))
        results = (
            results
            if self.results == "r"
            else tuple(results)
            if len(self.results) > 1
            else results[0]
        )
        found = self.push_rule(results, *values, **settings)
        maps: list[Any] = []
        for push, kind in zip(found if type(found) is tuple else (found,), kinds, strict=True):
            maps.append(lambda t, push=push: self._split(push(t)))
            if kind == "c":
                maps.append(lambda t, push=push: self._split(push(_imaginary(t))))
        return tuple(maps)


class _Once:
    """A contribution that is made when it is first wanted, of the two parts of an operand."""

    __slots__ = ("made", "make")

    def __init__(self, make: Any) -> None:
        self.make, self.made = make, None

    def __call__(self) -> Any:
        if self.made is None:
            self.made = self.make() if callable(self.make) else self.make
        return self.made


def _imaginary(t: Any) -> Any:
    """A real tangent times `i`."""
    return joined(np.zeros(np.shape(t)) if np.shape(t) else 0.0, t)


def assembled(given: Any, kinds: str) -> list[Any]:
    """Plain complex arrays, or numbers of NumPy, of plain parts."""
    remaining = iter(given)
    values = []
    for kind in kinds:
        x = next(remaining)
        x = paired(x, next(remaining)) if kind == "c" else x
        values.append(
            np.complex128(x)
            if type(x) is complex
            else np.float64(x)
            if type(x) in (float, int)
            else x
        )
    return values


def _pairs(given: Any, kinds: str) -> Any:
    """The same of parts of any kind."""
    remaining = iter(given)
    for kind in kinds:
        x = next(remaining)
        x = joined(x, next(remaining)) if kind == "c" else x
        yield np.complex128(x) if type(x) is complex else np.float64(x) if type(x) is float else x


def complex_operation(
    *answers: Any, results: str = "c"
) -> Callable[[Callable[..., Any]], ComplexOperation]:
    """Make a differentiable operation of a function on plain complex arrays.

    Parameters
    ----------
    *answers : callable
        Functions for which the operation answers when an operand is complex.
    results : str
        For each result "c" if it is complex and "r" if it is real.

    Returns
    -------
    callable
        Decorator that turns the function into a `ComplexOperation`, whose ``pull`` and ``push`` are
        decorators for the rules.
    """

    def make(function: Callable[..., Any]) -> ComplexOperation:
        op = ComplexOperation(function, results)
        COMPLEX.update(dict.fromkeys(answers, op))
        return op

    return make
