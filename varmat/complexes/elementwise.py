"""Elementwise functions of complex variables, under the names of NumPy's ufuncs.

Sums, products, moduli and angles are compositions of real functions of the parts. Holomorphic
functions are rows of a table: a ufunc, which gives NumPy's value with NumPy's branch cuts, and the
derivative for each operand, a function of the operands and the result that is differentiable
itself. Derivatives are written so that nothing cancels near the branch points and nothing overflows
early."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from varmat.complexes.operation import ComplexOperation, complex_operation
from varmat.complexes.variable import ComplexVar, joined, paired, parts
from varmat.core.dispatch import COMPLEX, implements, plain
from varmat.core.operation import Saved
from varmat.plain_arrays import special
from varmat.programs.build.symbol import is_symbol
from varmat.typing import Adjoint, Function, Operand, Plain, Result

LN2, LN10 = math.log(2.0), math.log(10.0)


answers_for = partial(implements, tables=(COMPLEX,))


# --- arithmetic ---
# Where one operand is real the other has the signs of zeros that NumPy gives it, on which the
# branch cuts depend: NumPy takes the imaginary part of a real number for +0.


@answers_for(np.add)
def add(x: Operand, y: Operand) -> Result:
    (a, b), (c, d) = parts(x, "add: operand 1"), parts(y, "add: operand 2")
    return joined(a + c, d + 0.0 if b is None else b + 0.0 if d is None else b + d)


@answers_for(np.subtract)
def subtract(x: Operand, y: Operand) -> Result:
    (a, b), (c, d) = parts(x, "subtract: operand 1"), parts(y, "subtract: operand 2")
    return joined(a - c, 0.0 - d if b is None else b - 0.0 if d is None else b - d)


@answers_for(np.multiply)
def multiply(x: Operand, y: Operand) -> Result:
    (a, b), (c, d) = parts(x, "multiply: operand 1"), parts(y, "multiply: operand 2")
    b, d = (0.0 if item is None else item for item in (b, d))
    return joined(a * c - b * d, a * d + b * c)


@answers_for(np.divide)
def divide(x: Operand, y: Operand) -> Result:
    c, d = parts(y, "divide: operand 2")
    if d is None:
        a, b = parts(x, "divide: operand 1")
        return joined(a / c, b / c)
    return quotient(x, y)


@answers_for(np.square)
def square(x: Operand) -> Result:
    return multiply(x, x)


@answers_for(np.negative)
def negative(x: Operand) -> Result:
    a, b = parts(x, "negative: operand 1")
    return joined(-a, -b)


@answers_for(np.positive)
def positive(x: Operand) -> Result:
    a, b = parts(x, "positive: operand 1")
    return joined(np.positive(a), np.positive(b))


@answers_for(np.conjugate)
def conjugate(x: Operand) -> Result:
    a, b = parts(x, "conjugate: operand 1")
    return joined(np.positive(a), -b)


@answers_for(np.absolute)
def absolute(x: Operand) -> Result:
    return np.hypot(*parts(x, "absolute: operand 1"))


@answers_for(np.angle)
def angle(z: Operand, deg: bool = False) -> Result:
    a, b = parts(z, "angle: z")
    return np.arctan2(b, a) * (180.0 / math.pi) if deg else np.arctan2(b, a)


@answers_for(np.real)
def real(val: Operand) -> Result:
    return parts(val, "real: val")[0]


@answers_for(np.imag)
def imag(val: Operand) -> Result:
    return parts(val, "imag: val")[1]


@answers_for(np.sign)
def sign(x: Operand) -> Result:
    """Compute ``z / abs(z)``, as NumPy does since 2.0."""
    modulus = absolute(x)
    return divide(x, np.where(modulus == 0.0, 1.0, modulus))


# --- comparisons and tests ---


@answers_for(np.equal)
def equal(x: Operand, y: Operand) -> Result:
    (a, b), (c, d) = parts(x, "equal: operand 1"), parts(y, "equal: operand 2")
    return np.logical_and(a == c, (0.0 if b is None else b) == (0.0 if d is None else d))


@answers_for(np.not_equal)
def not_equal(x: Operand, y: Operand) -> Result:
    (a, b), (c, d) = parts(x, "not_equal: operand 1"), parts(y, "not_equal: operand 2")
    return np.logical_or(a != c, (0.0 if b is None else b) != (0.0 if d is None else d))


def _test(ufunc: Function, combine: Function) -> None:
    COMPLEX[ufunc] = lambda x: combine(*map(ufunc, parts(x, f"{ufunc.__name__}: operand 1")))


_test(np.isfinite, np.logical_and)
_test(np.isnan, np.logical_or)
_test(np.isinf, np.logical_or)


def _of_values(ufunc: Function) -> None:
    COMPLEX[ufunc] = lambda *x: ufunc(*plain(x))


for _ufunc in (np.logical_and, np.logical_or, np.logical_xor, np.logical_not):
    _of_values(_ufunc)


# --- holomorphic functions ---


def holomorphic(
    ufunc: Function,
    *derivatives: Function,
    value: Function | None = None,
    formulas: tuple[Function, Function] | None = None,
) -> Result:
    """Make a row: a function of complex numbers, with its derivative for each operand, a function
    of operands and result.

    Parameters
    ----------
    ufunc : ufunc
        For which the row answers.
    *derivatives : callable
    value : callable, optional
        What computes it, if it is not the ufunc.
    formulas : tuple of two callables, optional
        Real and imaginary part of the value, and of the derivative, of a function of one operand as
        formulas in its parts: with them a recording has no call of Python.
    """
    compute = ufunc if value is None else value

    def function(*operands: Operand) -> Result:
        with np.errstate(all="ignore"):
            return compute(*operands)

    function.__name__ = f"complex_{ufunc.__name__}"
    op = complex_operation(ufunc)(function)

    @op.pull
    def pull(g: Adjoint, r: Plain, *operands: Operand) -> Adjoint:
        return tuple(lambda d=d: g * np.conjugate(d(*operands, r)) for d in derivatives)

    @op.push
    def push(r: Plain, *operands: Operand) -> Result:
        return tuple(lambda t, d=d: d(*operands, r) * t for d in derivatives)

    if formulas is not None:
        _by_formulas(op, *formulas)
    return op


def _by_formulas(op: ComplexOperation, value: Function, derivative: Function) -> None:
    """Let formulas compute an operation of symbols."""
    compute = op.operation.function

    def function(x: Operand, y: Operand, kinds: str) -> Result:
        def contributions(g: Adjoint) -> Result:
            u, v = derivative(x, y)
            a, b = (0.0 if item is None else item for item in g)
            return lambda: a * u + b * v, lambda: b * u - a * v

        if is_symbol(x) or is_symbol(y):
            return Saved(value(x, y), pull=contributions)
        return compute(x, y, kinds=kinds)

    op.operation.function = function


def times_i(z: Operand) -> Result:
    """Multiply by ``i``, without the nan and the zeros that a product would make of infinities;
    differentiable.
    """
    return (
        joined(-np.imag(z), np.real(z))
        if isinstance(z, ComplexVar)
        else paired(-np.imag(z), np.real(z))
    )


def one_minus(z: Operand) -> Result:
    """Compute ``1 - z`` with the sign of a zero imaginary part that a branch cut needs: above, it
    is -0.
    """
    return -(z - 1.0)


def one_plus(z: Operand) -> Result:
    return z + 1.0 if isinstance(z, ComplexVar) else paired(np.real(z) + 1.0, np.imag(z))


def _exp(x: Operand, y: Operand) -> Result:
    return np.exp(x) * np.cos(y), np.exp(x) * np.sin(y)


def _sin(x: Operand, y: Operand) -> Result:
    return np.sin(x) * np.cosh(y), np.cos(x) * np.sinh(y)


def _cos(x: Operand, y: Operand) -> Result:
    return np.cos(x) * np.cosh(y), -np.sin(x) * np.sinh(y)


def _sinh(x: Operand, y: Operand) -> Result:
    return np.sinh(x) * np.cos(y), np.cosh(x) * np.sin(y)


def _cosh(x: Operand, y: Operand) -> Result:
    return np.cosh(x) * np.cos(y), np.sinh(x) * np.sin(y)


reciprocal: Function = holomorphic(np.reciprocal, lambda z, r: -(r * r))
quotient = holomorphic(np.divide, lambda x, y, r: reciprocal(y), lambda x, y, r: -(r / y))
COMPLEX[np.divide] = divide

holomorphic(np.exp, lambda z, r: r, formulas=(_exp, _exp))
holomorphic(np.exp2, lambda z, r: LN2 * r)
holomorphic(np.expm1, lambda z, r: np.exp(z))
log = holomorphic(np.log, lambda z, r: reciprocal(z))
holomorphic(np.log2, lambda z, r: reciprocal(z) * (1.0 / LN2))
holomorphic(np.log10, lambda z, r: reciprocal(z) * (1.0 / LN10))


# NumPy's log1p loses digits near 0.
holomorphic(np.log1p, lambda z, r: reciprocal(one_plus(z)), value=lambda z: special.log1p(z))
sqrt = holomorphic(np.sqrt, lambda z, r: 0.5 * reciprocal(r))

holomorphic(np.sin, lambda z, r: np.cos(z), formulas=(_sin, _cos))
holomorphic(
    np.cos,
    lambda z, r: -np.sin(z),
    formulas=(_cos, lambda x, y: (-np.sin(x) * np.cosh(y), -np.cos(x) * np.sinh(y))),
)
holomorphic(np.sinh, lambda z, r: np.cosh(z), formulas=(_sinh, _cosh))
holomorphic(np.cosh, lambda z, r: np.sinh(z), formulas=(_cosh, _sinh))


@complex_operation()
def complex_sech_squared(z: Operand) -> Result:
    """Compute ``1 / cosh(z)**2``, by the exponential where the real part is so large that the
    square would overflow.
    """
    with np.errstate(all="ignore"):
        q = np.exp(np.where(np.real(z) < 0.0, 2.0, -2.0) * z)
        return np.where(
            np.abs(np.real(z)) > 1.0, 4.0 * q / ((1.0 + q) * (1.0 + q)), 1.0 / np.square(np.cosh(z))
        )[()]


complex_sech_squared.pull(lambda g, r, z: lambda: g * np.conjugate(-2.0 * np.tanh(z) * r))
complex_sech_squared.push(lambda r, z: lambda t: -2.0 * np.tanh(z) * r * t)

holomorphic(np.tanh, lambda z, r: complex_sech_squared(z))
holomorphic(np.tan, lambda z, r: complex_sech_squared(times_i(z)))
holomorphic(np.arcsin, lambda z, r: reciprocal(np.sqrt(one_minus(z)) * np.sqrt(one_plus(z))))
holomorphic(np.arccos, lambda z, r: -reciprocal(np.sqrt(one_minus(z)) * np.sqrt(one_plus(z))))
holomorphic(np.arctan, lambda z, r: reciprocal(one_minus(times_i(z)) * one_plus(times_i(z))))
holomorphic(
    np.arcsinh,
    lambda z, r: reciprocal(np.sqrt(one_minus(times_i(z))) * np.sqrt(one_plus(times_i(z)))),
)
holomorphic(np.arccosh, lambda z, r: reciprocal(np.sqrt(z - 1.0) * np.sqrt(one_plus(z))))
holomorphic(np.arctanh, lambda z, r: reciprocal(one_minus(z) * one_plus(z)))


# --- powers ---


def _of_base(x: Operand, y: Operand, r: Operand) -> Result:
    return y * np.power(x, np.where(y == 0.0, y, y - 1.0))


def _of_exponent(x: Operand, y: Operand, r: Operand) -> Result:
    zero = x == 0.0
    return np.where(zero, 0.0, r * np.log(np.where(zero, 1.0, x) + 0j))


complex_power = holomorphic(np.power, _of_base, _of_exponent)


@answers_for(np.power, np.float_power)
def power(x: Operand, y: Operand) -> Result:
    """Compute powers, by a separate function of NumPy where one exists."""
    if type(y) in (int, float, np.float64) and y in _POWERS:
        return COMPLEX[_POWERS[y]](x)
    return complex_power(x, y)


_POWERS = {-1: np.reciprocal, 0.5: np.sqrt, 1: np.positive, 2: np.square}
