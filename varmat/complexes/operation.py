"""Complex operations: structured operations on the real and imaginary parts, written with complex
arrays.

    @complex_operation(np.linalg.inv)
    def complex_inv(a):                              # plain arrays to a complex array
        return np.linalg.inv(a)

    @complex_inv.pull
    def complex_inv_pull(g, r, a):                   # adjoint of the result, result, operands
        return lambda: -adjoint(r) @ g @ adjoint(r)  # contribution to the operand's adjoint

    @complex_inv.push
    def complex_inv_push(r, a):                      # written with differentiable functions
        return lambda t: -r @ t @ r                  # the operand's tangent to the result's

The operands are complex or real. A push is linear over the real numbers.

Adjoints are ``d/dRe + i d/dIm``, so that the contribution of a holomorphic function is the adjoint
of the result times the conjugate of the derivative. A real operand gets the real part of it.
Underneath is one `Operation` whose operands are the parts. Reverse and forward mode, second
derivatives and recordings are therefore those of the engine."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from varmat.complexes.variable import joined, parts
from varmat.core.dispatch import COMPLEX
from varmat.core.operation import is_differentiable, operation
from varmat.programs.record.conditions import Condition
from varmat.typing import Adjoint, Function, Operand, Result, Setting

__all__ = ["ComplexOperation", "adjoint", "complex_operation"]


def adjoint(a: Operand) -> Result:
    """Return the conjugate transpose of matrices; differentiable."""
    return np.conjugate(np.swapaxes(a, -1, -2))


class ComplexOperation:
    """A differentiable function of complex operands; made by `complex_operation`."""

    def __init__(self, function: Function, results: str) -> None:
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.function = function
        # For each result, whether it is complex ("c") or real ("r").
        self.results = results
        self.pull_rule: Any = None
        self.push_rule: Any = None
        self._takes_seen = False
        self.pattern: Function = tuple

        def of_parts(*args: Operand, kinds: str, **settings: Setting) -> Result:
            return self._split(function(*assembled(args, kinds), **settings))

        of_parts.__name__, of_parts.__qualname__, of_parts.__doc__ = (
            self.name,
            f"{self.name}.operation",
            function.__doc__,
        )
        of_parts.__module__ = __name__
        own = [p for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        kinds = Parameter("kinds", Parameter.KEYWORD_ONLY)
        parts = Parameter("given", Parameter.VAR_POSITIONAL)
        of_parts.__signature__ = Signature([parts, kinds, *own])  # type: ignore[attr-defined]
        self.operation = operation(variadic=True)(of_parts)
        self.operation.reverse(self._reverse)
        self.operation.tangent(self._tangent)

    def pull(self, rule: Function) -> Result:
        """Register the reverse rule, as a decorator. It returns a complex array for each operand,
        or a function without arguments that makes it. A rule that takes ``seen`` is told which
        parts of the results have an adjoint.
        """
        self.pull_rule, self._takes_seen = rule, "seen" in signature(rule).parameters
        return rule

    def push(self, rule: Function) -> Result:
        """Register the tangent rule, as a decorator."""
        self.push_rule = rule
        return rule

    def __repr__(self) -> str:
        return f"<varmat complex operation {self.name}>"

    def __call__(self, *operands: Operand, **settings: Setting) -> Result:
        flat: list[Operand] = []
        kinds = ""
        for i, x in enumerate(operands, 1):
            re, im = parts(x, f"{self.name.removeprefix('complex_')}: operand {i}")
            flat += [re] if im is None else [re, im]
            kinds += "r" if im is None else "c"
        if not any(type(x) is Condition or is_differentiable(x) for x in flat):
            return self.function(*assembled(flat, kinds), **settings)
        return self._whole(self.operation(*flat, kinds=kinds, **settings))

    def _flat(self, parts: Operand) -> Result:
        """Return the parts of the results as a tuple: a single real result has no other parts."""
        return (parts,) if self.results == "r" else parts

    def _whole(self, flat: Operand) -> Result:
        """Return the results, joined from their parts."""
        result = assembled(self._flat(flat), self.results)
        return tuple(result) if len(result) > 1 else result[0]

    def _split(self, value: Operand) -> Result:
        """Return the parts of the results as a flat tuple, or a single real result unchanged."""
        if self.results == "r":
            return value
        parts: list[Result] = []
        for x, kind in zip(value if len(self.results) > 1 else (value,), self.results, strict=True):
            parts += [np.real(x), np.imag(x)] if kind == "c" else [x]
        return tuple(parts)

    def _reverse(
        self, g: Adjoint, r: Operand, *args: Operand, kinds: str, **settings: Any
    ) -> Result:
        values = assembled(args, kinds)
        # A part on which nothing depends has the adjoint zero.
        pairs = zip(self._flat(g), self._flat(r), strict=True)
        adjoints = tuple(np.zeros(np.shape(x)) if item is None else item for item, x in pairs)
        if self._takes_seen:
            settings["seen"] = [x is not None for x in self._flat(g)]
        g = self._whole(adjoints[0] if self.results == "r" else adjoints)
        results = self._whole(r)
        result = self.pull_rule(g, results, *values, **settings)
        contributions: list[Any] = []
        for c, kind in zip(result if type(result) is tuple else (result,), kinds, strict=True):
            once = _Once(c)
            contributions += [lambda once=once: np.real(once())] + [
                lambda once=once: np.imag(once())
            ] * (kind == "c")
        return tuple(contributions)

    def _tangent(self, r: Operand, *args: Operand, kinds: str, **settings: Any) -> Result:
        result = self.push_rule(self._whole(r), *assembled(args, kinds), **settings)
        maps: list[Any] = []
        for push, kind in zip(result if type(result) is tuple else (result,), kinds, strict=True):
            maps.append(lambda t, push=push: self._split(push(t)))
            if kind == "c":
                maps.append(lambda t, push=push: self._split(push(_imaginary(t))))
        return tuple(maps)


class _Once:
    """A contribution that is computed once, when the first of the two parts of its operand needs
    it.
    """

    __slots__ = ("made", "make")

    def __init__(self, make: Function) -> None:
        self.make, self.made = make, None

    def __call__(self) -> Result:
        if self.made is None:
            self.made = self.make() if callable(self.make) else self.make
        return self.made


def _imaginary(t: Operand) -> Result:
    """Multiply a real tangent by `i`."""
    return joined(np.zeros(np.shape(t)) if np.shape(t) else 0.0, t)


def assembled(parts: Operand, kinds: str) -> list[Result]:
    """Join complex and real operands from their parts; plain numbers become NumPy's."""
    remaining = iter(parts)
    values = []
    for kind in kinds:
        x = next(remaining)
        x = joined(x, next(remaining)) if kind == "c" else x
        values.append(
            np.complex128(x)
            if type(x) is complex
            else np.float64(x)
            if type(x) in (float, int)
            else x
        )
    return values


def complex_operation(
    *answers: Operand, results: str = "c"
) -> Callable[[Function], ComplexOperation]:
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

    def make(function: Function) -> ComplexOperation:
        op = ComplexOperation(function, results)
        COMPLEX.update(dict.fromkeys(answers, op))
        return op

    return make
