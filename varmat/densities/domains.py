"""Domains of the vectors and matrices of multivariate densities.

An argument is inside or outside such a domain as a whole, not element by element. A parameter
outside is refused. An observation outside is not an error: the log density there is -inf and the
gradient zero."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from varmat.core.domains import Domain, finite, nonnegative, positive
from varmat.core.errors import DomainError
from varmat.densities.density import not_nan
from varmat.functions.checks import TOLERANCE, misfit, one, outside
from varmat.functions.linalg.lapack import spd_factor
from varmat.functions.linalg.symmetric_arguments import check_symmetric
from varmat.functions.linalg.triangles import check_lower, place_of
from varmat.programs.build.symbol import Symbol, holds, require
from varmat.typing import Function, Operand, Plain, Result


def possible_value(value: Operand) -> Result:
    """Return a log density that is nan only for an infinite observation as -inf; a run of a program
    ends there.
    """
    if type(value) is Symbol:
        require(np.isfinite(value))
        return value
    return -math.inf if value != value else float(value)


def broadcast(
    function: str, shape: tuple[int, ...], *arguments: tuple[str, Operand]
) -> tuple[int, ...]:
    """Broadcast a shape with the shapes of arguments, given with titles."""
    for title, x in arguments:
        try:
            shape = np.broadcast_shapes(shape, np.shape(x))
        except ValueError:
            raise misfit(function, title, np.shape(x), f"broadcast with {shape}") from None
    return shape


class ScalarDomain(Domain):
    """A domain of single numbers: an array is refused."""

    __slots__ = ()

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain.phrase, domain.holds)

    def check(self, function: str, name: str, value: Operand) -> None:
        if np.ndim(value):
            raise misfit(function, name, np.shape(value), "be a scalar")
        super().check(function, name, value)


class Vector(Domain):
    """A domain of vectors and stacks of them: `explain` raises the error if `holds` is False."""

    __slots__ = ("explain",)

    def __init__(
        self, phrase: str, holds: Function, explain: Callable[[str, Plain, str], None]
    ) -> None:
        super().__init__(phrase, holds)
        self.explain = explain

    def check(self, function: str, name: str, value: Operand) -> None:
        if not np.ndim(value):
            raise misfit(function, name, (), "be a vector (or a stack of them)")
        if not holds(self.holds(value)):
            self.explain(function, value, name)


def vectors_of(domain: Domain) -> Vector:
    """Make the domain of vectors whose elements are in a domain."""
    return Vector(
        domain.phrase,
        lambda x: domain.holds(x).all(),
        lambda function, x, name: domain.check(function, name, x),
    )


class Matrix(Domain):
    """A domain of square matrices: `refuse` raises the error for a matrix outside.

    `refuse` makes the complete test. A program tests only `holds` beforehand: a matrix that fails
    the rest gives a value that is not finite."""

    __slots__ = ("refuse",)

    def __init__(
        self, phrase: str, refuse: Callable[[str, Plain, str], None], holds: Function
    ) -> None:
        super().__init__(phrase, holds)
        self.refuse = refuse

    def check(self, function: str, name: str, value: Operand) -> None:
        shape = np.shape(value)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise misfit(function, name, shape, "be a square matrix")
        self.refuse(function, value, name)


class Matrices(Domain):
    """A domain of square matrices and stacks of them, all of them in a domain of matrices."""

    __slots__ = ("refuse",)

    def __init__(self, each: Matrix) -> None:
        super().__init__(each.phrase, each.holds)
        self.refuse = each.refuse

    def check(self, function: str, name: str, value: Operand) -> None:
        shape = np.shape(value)
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise misfit(function, name, shape, "be a square matrix (or a stack of them)")
        self.refuse(function, value, name)


def check_simplex(function: str, x: Operand, name: str) -> None:
    """Raise `DomainError` unless vectors are nonnegative and sum to one."""
    nonnegative.check(function, name, x)
    one.check(function, f"sum({name})", np.add.reduce(x, axis=-1))


def _increases(x: Operand) -> Result:
    return x[..., 1:] > x[..., :-1]


def _explain_ordered(function: str, x: Operand, name: str) -> None:
    finite.check(function, name, x)
    *row, i = np.argwhere(~_increases(x))[0]
    above, below = ((place_of((*row, k)), float(x[*row, k])) for k in (i + 1, i))
    raise outside(
        function, f"{name}{above[0]}", above[1], f"be greater than {name}{below[0]}, {below[1]!r}"
    )


def _refuse_factor(function: str, x: Operand, name: str) -> None:
    if type(x) is Symbol:
        require(lower_factor.holds(x))
        return
    if not np.isfinite(x).all():
        finite.check(function, name, np.tril(x))
    if not (x.diagonal(0, -2, -1) > 0).all():
        positive.check(function, name, np.where(np.eye(x.shape[-1], dtype=bool), x, 1.0))


simplex = Vector(
    "a simplex",
    lambda x: (x >= 0).all() & one.holds(np.add.reduce(x, axis=-1)).all(),
    check_simplex,
)
finite_vector = vectors_of(finite)
ordered = Vector(
    "strictly increasing", lambda x: _increases(x).all() & np.isfinite(x).all(), _explain_ordered
)
# Positive definiteness is tested by the Cholesky factorisation.
symmetric_matrix = Matrix(
    "symmetric positive definite", check_symmetric, lambda x: abs(x - x.mT) <= TOLERANCE
)
lower_factor = Matrix(
    "lower triangular with a positive diagonal; what stands above it is not read",
    _refuse_factor,
    lambda x: (x.diagonal() > 0) & (x.diagonal() < np.inf),
)
# For observations: one outside the support has the log density -inf and is not refused.
square_matrix = Matrix(
    "not nan", lambda function, x, name: not_nan.check(function, name, x), not_nan.holds
)


def _factor(function: str, a: Operand, name: str) -> Result:
    return spd_factor(function, a, name=name)


def factor_or_none(a: Operand) -> Result:
    """Return the lower Cholesky factor of an observation, None unless it is symmetric positive
    definite.
    """
    try:
        return spd_factor("", a)
    except DomainError:
        return None


def _refuse_matrix(function: str, x: Operand, name: str) -> None:
    check_lower(function, x, name)
    _refuse_factor(function, x, name)


# For observations that are data: see `Density.data_domain`.
definite_matrix = Matrix("symmetric positive definite", _factor, symmetric_matrix.holds)
lower_matrix = Matrix(
    "lower triangular with a positive diagonal", _refuse_matrix, lower_factor.holds
)


def with_ones(domain: Matrix, ones: Callable[[Plain], Plain], title: str) -> Matrix:
    """Make a domain of matrices for which a function returns ones."""

    def refuse(function: str, x: object, name: str) -> None:
        one.check(function, f"{title} of {name}", ones(x))
        domain.refuse(function, x, name)

    return Matrix(domain.phrase, refuse, domain.holds)
