"""Polynomials as vectors of coefficients, the highest power first.

Each answers for NumPy's function of the same name, with its arguments and values."""

from __future__ import annotations

import operator

import numpy as np

from varmat.core.domains import nonnegative
from varmat.core.operation import as_operand
from varmat.functions.arrays.composites import composite
from varmat.functions.checks import check_values, misfit
from varmat.typing import Operand, Result


@composite(np.polyval)
def polyval(p: Operand, x: Operand) -> Result:
    """Evaluate a polynomial by Horner's rule, the highest power first."""
    p, x = as_operand(p, "polyval: p"), as_operand(x, "polyval: x")
    result: Result = np.zeros(np.shape(x))
    for coefficient in p:
        result = result * x + coefficient
    return result


@composite(np.vander)
def vander(x: Operand, N: int | None = None, increasing: bool = False) -> Result:
    """Make a matrix with the powers of `x` as columns, the highest first."""
    if np.ndim(x) != 1:
        raise misfit("vander", "x", np.shape(x), "be a vector")
    powers = np.arange(float(np.size(x) if N is None else N))
    return np.power(x[:, None], powers if increasing else powers[::-1])


def _polynomials(a: Operand, b: Operand) -> tuple[Result, Result]:
    """Pad both coefficient vectors with leading zeros to one length."""
    a, b = (
        np.atleast_1d(as_operand(a, "a polynomial")),
        np.atleast_1d(as_operand(b, "a polynomial")),
    )
    length = max(np.size(a), np.size(b))
    padded = [
        np.concatenate((np.zeros(length - np.size(p)), p)) if np.size(p) < length else p
        for p in (a, b)
    ]
    return padded[0], padded[1]


@composite(np.polyadd)
def polyadd(a1: Operand, a2: Operand) -> Result:
    """Add two polynomials."""
    return operator.add(*_polynomials(a1, a2))


@composite(np.polysub)
def polysub(a1: Operand, a2: Operand) -> Result:
    """Subtract two polynomials."""
    return operator.sub(*_polynomials(a1, a2))


@composite(np.polymul)
def polymul(a1: Operand, a2: Operand) -> Result:
    """Multiply two polynomials, without their leading zeros."""
    p, q = (
        np.atleast_1d(as_operand(x, f"polymul: {name}")) for name, x in (("a1", a1), ("a2", a2))
    )
    return np.convolve(p[check_values(_leading_zeros, p) :], q[check_values(_leading_zeros, q) :])


def _leading_zeros(p: Operand) -> int:
    """Count the zeros before the first other coefficient, or before the last one."""
    return int(np.argmax(np.append(p[:-1] != 0, True)))


@composite(np.poly)
def poly(seq_of_zeros: Operand) -> Result:
    """Make the polynomial with given real zeros."""
    if np.ndim(seq_of_zeros) > 1:
        raise TypeError(
            "poly: the characteristic polynomial of a matrix is not supported; use "
            "np.poly(np.linalg.eigvalsh(a))"
        )
    result: Result = np.ones(1)
    for zero in np.atleast_1d(seq_of_zeros):
        result = np.concatenate((result, np.zeros(1))) - np.concatenate(
            (np.zeros(1), result * zero)
        )
    return result


@composite(np.polyder)
def polyder(p: Operand, m: int = 1) -> Result:
    """Differentiate a polynomial `m` times."""
    nonnegative.check("polyder", "m", m)
    for _ in range(m):
        p = p[:-1] * np.arange(np.size(p) - 1.0, 0.0, -1.0)
    return p


@composite(np.polyint)
def polyint(p: Operand, m: int = 1, k: Operand = None) -> Result:
    """Integrate a polynomial `m` times, with constants of integration `k`."""
    nonnegative.check("polyint", "m", m)
    p = as_operand(p, "polyint: p")
    constants = np.broadcast_to(
        np.zeros(1) if k is None else np.atleast_1d(as_operand(k, "polyint: k"))[:m], (m,)
    )
    for i in range(m):
        p = np.concatenate((p / np.arange(float(np.size(p)), 0.0, -1.0), constants[i : i + 1]))
    return p
