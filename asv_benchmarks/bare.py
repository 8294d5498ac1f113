"""The simplest possible tape in Python: no checks, no scopes, one type of variable, no dispatch
from NumPy.

Its time is a lower bound for every tape in Python that computes one operation after the other. A
variable is a value and an adjoint. An entry of the tape is a rule, the result of an operation and
its two operands. The tape can do only what the measured workloads need.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np

_new = object.__new__


class Bare:
    """A variable: a float or an array. The other operand of an operator is a variable or a
    constant.
    """

    __slots__ = ("adj", "tape", "val")
    val: Any
    adj: Any
    tape: list[Any]
    # NumPy must leave operators to this class.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Bare:
        if type(other) is Bare:
            return result(add, self.val + other.val, self, other)
        return result(same, self.val + other, self, None)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Bare:
        if type(other) is Bare:
            return result(subtract, self.val - other.val, self, other)
        return result(same, self.val - other, self, None)

    def __rsub__(self, other: Any) -> Bare:
        return result(negative, other - self.val, self, None)

    def __mul__(self, other: Any) -> Bare:
        if type(other) is Bare:
            return result(multiply, self.val * other.val, self, other)
        return result(times, self.val * other, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Bare:
        return result(divide, self.val / other, self, other)

    def __pow__(self, other: int) -> Bare:
        return result(power, self.val**other, self, other)

    def __getitem__(self, index: Any) -> Bare:
        val = self.val[index]
        return result(part, val if type(index) is slice else float(val), self, index)


def result(rule: Any, val: Any, x: Bare, y: Any) -> Bare:
    """Make a variable with an entry on the tape."""
    variable = _new(Bare)
    variable.val, variable.adj, variable.tape = val, None, x.tape
    x.tape.append((rule, variable, x, y))
    return variable


def give(x: Bare, c: Any) -> None:
    """Add a contribution to an adjoint."""
    if type(x.val) is float and type(c) is not float:
        c = float(np.add.reduce(c))
    x.adj = c if x.adj is None else x.adj + c


# The rules.


def same(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g)


def negative(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, -g)


def add(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g)
    give(y, g)


def subtract(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g)
    give(y, -g)


def multiply(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g * y.val)
    give(y, g * x.val)


def times(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g * y)


def divide(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g / y)


def power(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g * (y * x.val ** (y - 1)))


def part(g: Any, r: Bare, x: Bare, y: Any) -> None:
    if x.adj is None:
        x.adj = np.zeros(x.val.shape)
    x.adj[y] += g


def whole(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, np.full(x.val.shape, g))


def exponential(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g * r.val)


def log_of_one_plus(g: Any, r: Bare, x: Bare, y: Any) -> None:
    give(x, g / (1.0 + x.val))


class Namespace:
    """The functions that the workloads call, under NumPy's names."""

    asarray = staticmethod(np.asarray)

    @staticmethod
    def exp(x: Bare) -> Bare:
        return result(exponential, math.exp(x.val), x, None)

    @staticmethod
    def log1p(x: Bare) -> Bare:
        return result(log_of_one_plus, math.log1p(x.val), x, None)

    @staticmethod
    def sum(x: Bare) -> Bare:
        return result(whole, float(np.add.reduce(x.val)), x, None)


def gradient_function(f: Callable[[Bare], Bare]) -> Callable[[np.ndarray], Any]:
    """Turn a function of one array into a function that returns ``(value, (gradient,))``."""

    def gradient(x: np.ndarray) -> Any:
        leaf = _new(Bare)
        leaf.val, leaf.adj, leaf.tape = x.copy(), None, []
        y = f(leaf)
        y.adj = 1.0
        for rule, r, operand, other in reversed(leaf.tape):
            rule(r.adj, r, operand, other)
        return y.val, (leaf.adj,)

    return gradient
