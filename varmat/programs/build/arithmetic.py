"""Arithmetic of values in its simplest form.

Factors of one and terms of zero disappear; signs and numbers are taken out of products. Questions
about a value that the step behind it answers are asked here too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.program import FLOAT, Value
from varmat.programs.kernels.elementwise import ufunc_kernel

if TYPE_CHECKING:
    from varmat.programs.build.builder import Builder

MULTIPLY, DIVIDE, NEGATIVE = (
    ufunc_kernel(np.multiply),
    ufunc_kernel(np.divide),
    ufunc_kernel(np.negative),
)


ADD, SUBTRACT, SQUARE = ufunc_kernel(np.add), ufunc_kernel(np.subtract), ufunc_kernel(np.square)


AND = ufunc_kernel(np.logical_and)


def is_number(x: Value, number: float) -> bool:
    return x.is_constant and not x.shape and x.dtype is FLOAT and float(x.data) == number


def is_zero(x: Value, sign: float) -> bool:
    """Whether a value is the zero with a sign."""
    return is_number(x, 0.0) and math.copysign(1.0, float(x.data)) == sign


def is_product(x: Value) -> bool:
    return x.step is not None and not x.is_view and x.step.kernel in (MULTIPLY, SQUARE, NEGATIVE)


def peeled(x: Value) -> tuple[list[Value], list[Value], Value]:
    """An array as numbers above and below the bar, and an array of its shape."""
    above, below = [], []
    while x.step is not None and not x.is_view and x.shape:
        kernel, operands = x.step.kernel, x.step.operands
        if kernel is NEGATIVE:
            above.append(_MINUS_ONE)
            x = operands[0]
        elif kernel is MULTIPLY and not operands[0].shape and operands[1].shape == x.shape:
            above.append(operands[0])
            x = operands[1]
        elif kernel is DIVIDE and not operands[1].shape:
            below.append(operands[1])
            x = operands[0]
        else:
            break
    return above, below, x


_MINUS_ONE = Value((), data=np.asarray(-1.0))


def _negated(x: Value) -> Value | None:
    """The value whose negative a value is; None if it is no negative."""
    return x.step.operands[0] if x.step is not None and x.step.kernel is NEGATIVE else None


def _split_number(x: Value) -> tuple[Value, Value] | None:
    """The number and the array of which an array is the product; None if it is no such product."""
    if x.step is None or x.step.kernel is not MULTIPLY or not x.shape:
        return None
    left, right = x.step.operands
    if not left.shape:
        return left, right
    return (right, left) if not right.shape else None


def _add(builder: Builder, x: Value, y: Value) -> Value:
    x, y = builder.number(x), builder.number(y)
    if x is y:
        return _multiply(builder, builder.constant(2.0), x)
    for one, other in ((x, y), (y, x)):
        if is_zero(other, -1.0):  # adding 0.0 changes -0.0, and so must not be left out
            return one
        negated = _negated(other)
        if negated is not None:
            return _subtract(builder, one, negated)
    return builder.call(ADD, x, y)


def _subtract(builder: Builder, x: Value, y: Value) -> Value:
    x, y = builder.number(x), builder.number(y)
    negated = _negated(y)
    if negated is not None:
        return _add(builder, x, negated)
    if is_zero(y, 1.0):
        return x
    return builder.call(SUBTRACT, x, y)


def _negative(builder: Builder, x: Value) -> Value:
    x = builder.number(x)
    negated = _negated(x)
    if negated is not None:
        return negated
    pair = _split_number(x)
    if pair is not None and pair[0].is_constant:
        return _multiply(builder, builder.call(NEGATIVE, pair[0]), pair[1])
    return builder.call(NEGATIVE, x)


def _multiply(builder: Builder, x: Value, y: Value) -> Value:
    x, y = builder.number(x), builder.number(y)
    if x is y:
        return builder.call(SQUARE, x)
    for one, other in ((x, y), (y, x)):
        if is_number(other, 1.0):
            return one
        if is_number(other, -1.0):
            return _negative(builder, one)
    if x.shape and not y.shape:
        x, y = y, x
    if y.is_constant and not x.is_constant and not (y.shape and not x.shape):
        x, y = y, x
    negated = _negated(y)
    if negated is not None:
        x, y = (builder.call(NEGATIVE, x) if x.is_constant else x), negated
        return (
            _multiply(builder, x, y)
            if x.is_constant
            else _negative(builder, _multiply(builder, x, y))
        )
    if not x.shape:
        # Numbers meet numbers first.
        if y.shape:
            pair = _split_number(y)
            if pair is not None:
                return _multiply(builder, _multiply(builder, x, pair[0]), pair[1])
        elif (
            x.is_constant
            and y.step is not None
            and y.step.kernel is MULTIPLY
            and y.step.operands[0].is_constant
        ):
            first, second = y.step.operands
            return _multiply(builder, builder.call(MULTIPLY, x, first), second)
    return builder.call(MULTIPLY, x, y)


def _divide(builder: Builder, x: Value, y: Value) -> Value:
    x, y = builder.number(x), builder.number(y)
    if is_number(y, 1.0):
        return x
    if y.is_constant and not y.shape:
        reciprocal = 1.0 / float(y.data) if float(y.data) else math.nan
        if math.frexp(float(y.data))[0] in (0.5, -0.5) and math.isfinite(reciprocal):
            return _multiply(builder, builder.constant(reciprocal), x)
    return builder.call(DIVIDE, x, y)


def _square(builder: Builder, x: Value) -> Value:
    x = builder.number(x)
    negated = _negated(x)
    return builder.call(SQUARE, x if negated is None else negated)


SIMPLER = {
    np.add: _add, np.subtract: _subtract, np.negative: _negative, np.multiply: _multiply,
     np.divide: _divide,
    np.square: _square, np.positive: lambda builder, x: builder.number(x),
}  # fmt: skip
