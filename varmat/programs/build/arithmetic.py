"""Arithmetic of values in its simplest form.

Factors of one and terms of zero disappear; signs and numbers are taken out of products. Questions
about a value that the step behind it answers are asked here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.program import FLOAT, Value
from varmat.programs.kernels.elementwise import SELECT, ufunc_kernel

if TYPE_CHECKING:
    from varmat.programs.build.builder import Builder

ADD, SUBTRACT, NEGATIVE, MULTIPLY, DIVIDE, SQUARE, AND = map(
    ufunc_kernel,
    (np.add, np.subtract, np.negative, np.multiply, np.divide, np.square, np.logical_and),
)
_MINUS_ONE = Value((), data=np.asarray(-1.0))


def is_number(x: Value, number: float) -> bool:
    return x.is_constant and not x.shape and x.dtype is FLOAT and float(x.data) == number


def is_zero(x: Value, sign: float) -> bool:
    """Return whether a value is the zero with a sign."""
    return is_number(x, 0.0) and math.copysign(1.0, float(x.data)) == sign


def is_indicator(x: Value) -> bool:
    """Return whether a value is 1 where a condition holds and 0 elsewhere, or the reverse."""
    return x.kernel is SELECT and any(
        is_number(x.operands[1], n) and is_number(x.operands[2], 1.0 - n) for n in (0.0, 1.0)
    )


def is_product(x: Value) -> bool:
    return x.kernel in (MULTIPLY, SQUARE, NEGATIVE)


def split_number(x: Value) -> tuple[Value, Value] | None:
    """Split a product into a number and an array; return None if `x` is not a product."""
    if x.kernel is NEGATIVE:
        return _MINUS_ONE, x.operands[0]
    if x.kernel is MULTIPLY and x.shape:
        left, right = x.operands
        if not left.shape:
            return left, right
        if not right.shape:
            return right, left
    return None


def peeled(x: Value) -> tuple[list[Value], list[Value], Value]:
    """Split an array into numbers above and below the bar, and an array of its shape."""
    above, below = [], []
    while x.shape:
        pair = split_number(x)
        if pair is not None:
            above.append(pair[0])
            x = pair[1]
        elif x.kernel is DIVIDE and not x.operands[1].shape:
            below.append(x.operands[1])
            x = x.operands[0]
        else:
            break
    return above, below, x


def _add(builder: Builder, x: Value, y: Value) -> Value:
    if x is y:
        return _multiply(builder, builder.constant(2.0), x)
    for one, other in ((x, y), (y, x)):
        if is_zero(other, -1.0):  # adding 0.0 changes -0.0, and so must not be left out
            return one
        if other.kernel is NEGATIVE:
            return _subtract(builder, one, other.operands[0])
    return builder.call(ADD, x, y)


def _subtract(builder: Builder, x: Value, y: Value) -> Value:
    if y.kernel is NEGATIVE:
        return _add(builder, x, y.operands[0])
    if is_number(x, 1.0) and is_indicator(y):
        return builder.where(y.operands[0], *y.operands[:0:-1])
    return x if is_zero(y, 1.0) else builder.call(SUBTRACT, x, y)


def _negative(builder: Builder, x: Value) -> Value:
    if x.kernel is NEGATIVE:
        return x.operands[0]
    pair = split_number(x)
    if pair is not None and pair[0].is_constant:
        return _multiply(builder, builder.call(NEGATIVE, pair[0]), pair[1])
    return builder.call(NEGATIVE, x)


def _multiply(builder: Builder, x: Value, y: Value) -> Value:
    if x is y:
        return builder.call(SQUARE, x)
    for one, other in ((x, y), (y, x)):
        if is_number(other, 1.0):
            return one
        if is_number(other, -1.0):
            return _negative(builder, one)
    # Numbers come first, and constants come before what has the same shape.
    if (x.shape and not y.shape) or (
        y.is_constant and not x.is_constant and bool(x.shape) >= bool(y.shape)
    ):
        x, y = y, x
    if y.kernel is NEGATIVE:
        if x.is_constant:
            return _multiply(builder, builder.call(NEGATIVE, x), y.operands[0])
        return _negative(builder, _multiply(builder, x, y.operands[0]))
    # Numbers meet numbers before they meet arrays, and constants before other numbers.
    pair = split_number(y)
    if pair is not None and not x.shape:
        return _multiply(builder, _multiply(builder, x, pair[0]), pair[1])
    if not x.shape and x.is_constant and y.kernel is MULTIPLY and y.operands[0].is_constant:
        first, second = y.operands
        return _multiply(builder, builder.call(MULTIPLY, x, first), second)
    return builder.call(MULTIPLY, x, y)


def _divide(builder: Builder, x: Value, y: Value) -> Value:
    if is_number(y, 1.0):
        return x
    if y.is_constant and not y.shape:
        reciprocal = 1.0 / float(y.data) if float(y.data) else math.nan
        if math.frexp(float(y.data))[0] in (0.5, -0.5) and math.isfinite(reciprocal):
            return _multiply(builder, builder.constant(reciprocal), x)
    return builder.call(DIVIDE, x, y)


def _square(builder: Builder, x: Value) -> Value:
    return builder.call(SQUARE, x.operands[0] if x.kernel is NEGATIVE else x)


# Ufuncs of numbers, no truth values, that have simpler forms.
SIMPLER: dict[np.ufunc, Callable[..., Value]] = {
    np.add: _add,
    np.subtract: _subtract,
    np.negative: _negative,
    np.multiply: _multiply,
    np.divide: _divide,
    np.square: _square,
    np.positive: lambda builder, x: x,
}
