"""Declared types of Stan: their transforms to unconstrained vectors, and their constraints.

Stan keeps matrices by columns, so the unconstrained vector has their elements by columns, and
since version 2.37 a simplex is the softmax of a vector with sum zero.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import final

import numpy as np

import varmat as vm
from varmat import transforms as t
from varmat.core.errors import DomainError
from varmat.functions.checks import check_values
from varmat.models.bounds import Dependent
from varmat.stan.values import StanValue
from varmat.transforms.transform import FromFunctions, Transform
from varmat.typing import Operand, Result, Shape

# Stan's tolerance for sums, norms and symmetry.
TOLERANCE = 1e-8


# --- transforms ---


def logarithmic_ratios(x: Operand, jacobian: bool = False) -> Result:
    """Compute a simplex from the coordinates `x` of its centred logarithms."""
    logs = vm.log_softmax(vm.sum_to_zero_constrain(x), axis=-1)
    y = np.exp(logs)
    if not jacobian:
        return y
    count = np.size(x) // max(1, np.shape(x)[-1]) if np.ndim(x) else 1
    return y, np.sum(logs) + 0.5 * count * np.log(np.shape(y)[-1])


def logarithmic_ratios_free(y: Operand) -> Result:
    """Compute the coordinates of a simplex: invert `logarithmic_ratios`."""
    check("simplex", SIMPLEX, y)
    logs = np.log(y)
    return vm.sum_to_zero_free(logs - np.mean(logs, -1, keepdims=True))


def columns_of_ratios(x: Operand, jacobian: bool = False) -> Result:
    """Compute matrices whose columns are simplexes."""
    result = logarithmic_ratios(np.swapaxes(x, -1, -2), jacobian)
    return (np.swapaxes(result[0], -1, -2), result[1]) if jacobian else np.swapaxes(result, -1, -2)


def columns_of_ratios_free(y: Operand) -> Result:
    """Compute the coordinates of matrices whose columns are simplexes."""
    return np.swapaxes(logarithmic_ratios_free(np.swapaxes(y, -1, -2)), -1, -2)


@final
class IsometricSimplex(FromFunctions):
    """Simplexes by isometric log ratios, along the last axis."""

    _functions = logarithmic_ratios, logarithmic_ratios_free

    def __init__(self, size: int, shape: Shape) -> None:
        super().__init__((*shape, size), (*shape, size - 1))


@final
class ByColumns(Transform):
    """Matrices whose elements are ordered by columns in the unconstrained vector.

    Parameters
    ----------
    inner : Transform
        The transform of the transposed matrices.
    columns : bool
        Whether the unconstrained matrix of `inner` is transposed, too.
    transposed : bool
        Whether `inner` gives transposed matrices.
    """

    def __init__(self, inner: Transform, columns: bool = False, transposed: bool = True) -> None:
        self._inner, self._columns, self._transposed = inner, columns, transposed
        shape = _turned(inner.shape) if transposed else inner.shape
        *outer, m, n = inner.unconstrained_shape
        super().__init__(shape, (*outer, m * n))

    def _constrain(self, x: Operand, jacobian: bool) -> Result:
        shape = self._inner.unconstrained_shape
        x = np.reshape(x, _turned(shape) if self._columns else shape)
        result = self._inner._constrain(np.swapaxes(x, -1, -2) if self._columns else x, jacobian)
        if not self._transposed:
            return result
        if jacobian:
            return np.swapaxes(result[0], -1, -2), result[1]
        return np.swapaxes(result, -1, -2)

    def _unconstrain(self, y: Operand) -> Result:
        x = self._inner._unconstrain(np.swapaxes(y, -1, -2) if self._transposed else y)
        return np.reshape(np.swapaxes(x, -1, -2) if self._columns else x, self.unconstrained_shape)


def _turned(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


@final
class SumToZeroMatrix(FromFunctions):
    """Matrices whose rows and columns sum to zero."""

    _functions = vm.sum_to_zero_matrix_constrain, vm.sum_to_zero_matrix_free

    def __init__(self, m: int, n: int, shape: Shape) -> None:
        super().__init__((*shape, m, n), (*shape, m - 1, n - 1))


def _bounded(
    make: Callable[..., Transform], bounds: Sequence[StanValue], shape: Shape, is_matrix: bool
) -> Transform:
    """Make an elementwise transform; bounds are numbers, arrays, or functions of parameters."""
    if not is_matrix:
        return Dependent(make, tuple(bounds), shape) if _vary(bounds) else make(*bounds, shape)
    size = (*shape[:-2], shape[-2] * shape[-1])

    def by_columns(*values: StanValue) -> Transform:
        turned = [np.swapaxes(b, -1, -2) if np.ndim(b) > 1 else b for b in values[:-1]]
        return ByColumns(make(*turned, _turned(shape)))

    if _vary(bounds):
        return Dependent(by_columns, tuple(bounds), shape, size)
    return by_columns(*bounds, shape)


def _vary(bounds: Sequence[object]) -> bool:
    return any(map(callable, bounds))


def transform_of(
    name: str, dimensions: Shape, sizes: Shape, bounds: Mapping[str, object]
) -> Transform:
    """Make the transform of a declared parameter.

    Parameters
    ----------
    name : str
        The word of the program, as ``vector`` or ``simplex``.
    dimensions, sizes : tuple of int
    bounds : mapping
        Any of `lower`, `upper`, `offset` and `multiplier`; each a number, an
        array, or a function as bounds of `Model` are.
    """
    shape, is_matrix = (*dimensions, *sizes), name == "matrix"
    if "lower" in bounds and "upper" in bounds:
        return _bounded(t.LowerUpper, [bounds["lower"], bounds["upper"]], shape, is_matrix)
    if "lower" in bounds:
        return _bounded(t.Lower, [bounds["lower"]], shape, is_matrix)
    if "upper" in bounds:
        return _bounded(t.Upper, [bounds["upper"]], shape, is_matrix)
    if bounds:
        pair = [bounds.get("offset", 0.0), bounds.get("multiplier", 1.0)]
        return _bounded(t.OffsetMultiplier, pair, shape, is_matrix)
    if name in ("real", "vector", "row_vector", "matrix"):
        return _bounded(t.Real, [], shape, is_matrix)
    if name.startswith("complex"):
        raise TypeError(
            f"parameters: a parameter is declared as {name}, but must be real: declare its real "
            "and imaginary parts, and join them by to_complex!"
        )
    if name in _NEVER_EMPTY and 0 in sizes:
        raise DomainError(f"parameters: a size of a {name} is 0, but must be at least 1!")
    return _CONSTRAINED[name](*sizes, shape=dimensions)


def _stochastic_columns(m: int, n: int, shape: Shape) -> Transform:
    return ByColumns(IsometricSimplex(m, (*shape, n)))


def _stochastic_rows(m: int, n: int, shape: Shape) -> Transform:
    return ByColumns(IsometricSimplex(n, (*shape, m)), columns=True, transposed=False)


def _sum_to_zero_matrix(m: int, n: int, shape: Shape) -> Transform:
    return ByColumns(SumToZeroMatrix(m, n, shape), columns=True, transposed=False)


_CONSTRAINED: dict[str, Callable[..., Transform]] = {
    "simplex": IsometricSimplex,
    "unit_vector": t.UnitVector,
    "ordered": t.Ordered,
    "positive_ordered": t.PositiveOrdered,
    "sum_to_zero_vector": t.SumToZero,
    "sum_to_zero_matrix": _sum_to_zero_matrix,
    "column_stochastic_matrix": _stochastic_columns,
    "row_stochastic_matrix": _stochastic_rows,
    "corr_matrix": t.CorrMatrix,
    "cov_matrix": t.CovMatrix,
    "cholesky_factor_corr": t.CholeskyFactorCorr,
    "cholesky_factor_cov": lambda m, n=None, shape=(): t.CholeskyFactorCov(m, n, shape),
}


_NEVER_EMPTY = {
    "simplex", "unit_vector", "sum_to_zero_vector", "sum_to_zero_matrix",
    "column_stochastic_matrix", "row_stochastic_matrix",
}  # fmt: skip


def bound_function(
    names: Sequence[str], evaluate: Callable[[Mapping[str, StanValue]], StanValue]
) -> StanValue:
    """Make a bound as `Model` takes it, of parameters with these names."""

    def bound(*values: object) -> StanValue:
        return evaluate(dict(zip(names, values, strict=True)))

    # Positional-only, so that words of Python may be names of the program.
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    bound.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return bound


def places(dimensions: Shape) -> list[tuple[int, ...]]:
    """Return the indices of all elements of an array, the last axis fastest."""
    return [*product(*map(range, dimensions))]


# --- constraints of values that are not transformed ---

Part = tuple[str, Callable[[StanValue], StanValue], Callable[[StanValue], StanValue]]


_NONNEGATIVE: Part = ("nonnegative", lambda y: y, lambda y: y >= 0)
_SUM_IS_ONE: Part = (
    "with elements whose sum is 1",
    lambda y: np.sum(y, -1),
    lambda total: np.abs(total - 1) <= TOLERANCE,
)
_ASCENDING: Part = ("in ascending order", lambda y: y[..., 1:] - y[..., :-1], lambda d: d > 0)
_SYMMETRIC: Part = (
    "symmetric",
    lambda y: y - np.swapaxes(y, -1, -2),
    lambda d: np.abs(d) <= TOLERANCE,
)
_LOWER: Part = (
    "lower triangular",
    lambda y: y * np.triu(np.ones(y.shape[-2:]), 1),
    lambda u: u == 0,
)
_DIAGONAL: Part = (
    "with a positive diagonal",
    lambda y: np.diagonal(y, axis1=-2, axis2=-1),
    lambda d: d > 0,
)


def _pivots(y: StanValue) -> StanValue:
    """Compute Cholesky diagonals, because programs compute these natively, unlike eigenvalues."""
    try:
        return np.diagonal(np.linalg.cholesky(y), axis1=-2, axis2=-1)
    except np.linalg.LinAlgError:
        return np.full(1, np.nan)


_DEFINITE: Part = ("positive definite", _pivots, lambda d: d > 0)
_SUM_IS_ZERO: Part = (
    "with sum zero",
    lambda y: np.sum(y, -1),
    lambda total: np.abs(total) <= TOLERANCE,
)
_OF_LENGTH_ONE: Part = (
    "of length 1",
    lambda y: np.sum(np.square(y), -1),
    lambda total: np.abs(total - 1) <= TOLERANCE,
)
_UNIT_DIAGONAL: Part = (
    "with a diagonal of ones",
    lambda y: np.diagonal(y, axis1=-2, axis2=-1),
    lambda d: np.abs(d - 1) <= TOLERANCE,
)


def _of_transposed(part: Part) -> Part:
    phrase, make, holds = part
    return phrase, lambda y: make(np.swapaxes(y, -1, -2)), holds


SIMPLEX = (_NONNEGATIVE, _SUM_IS_ONE)
CONSTRAINTS: dict[str, tuple[Part, ...]] = {
    "simplex": SIMPLEX,
    "ordered": (_ASCENDING,),
    "positive_ordered": (_NONNEGATIVE, _ASCENDING),
    "unit_vector": (_OF_LENGTH_ONE,),
    "sum_to_zero_vector": (_SUM_IS_ZERO,),
    "sum_to_zero_matrix": (_SUM_IS_ZERO, _of_transposed(_SUM_IS_ZERO)),
    "column_stochastic_matrix": (_NONNEGATIVE, _of_transposed(_SUM_IS_ONE)),
    "row_stochastic_matrix": SIMPLEX,
    "cov_matrix": (_SYMMETRIC, _DEFINITE),
    "corr_matrix": (_SYMMETRIC, _UNIT_DIAGONAL, _DEFINITE),
    "cholesky_factor_cov": (_LOWER, _DIAGONAL),
    "cholesky_factor_corr": (
        _LOWER,
        _DIAGONAL,
        (_OF_LENGTH_ONE[0] + " in each row", *_OF_LENGTH_ONE[1:]),
    ),
}


def check(name: str, parts: Sequence[Part], value: StanValue) -> None:
    """Raise `DomainError` unless a value satisfies the constraint of its declared type."""
    if not np.size(value):
        return
    for part in parts:
        check_values(partial(_check_part, name, part), value)


def _check_part(name: str, part: Part, y: object) -> None:
    phrase, make, holds = part
    if not np.all(holds(make(y))):
        raise DomainError(f"{name} must be {phrase}, but is {np.asarray(y).tolist()}!")


def check_bound(name: str, value: StanValue, bound: StanValue, is_lower: bool) -> None:
    """Raise `DomainError` unless all elements are at or inside of a bound."""
    relation = "greater than or equal to" if is_lower else "less than or equal to"

    def check_plain(y: StanValue, b: StanValue) -> None:
        inside = y >= b if is_lower else y <= b
        if np.all(inside):
            return
        index = tuple(np.argwhere(~np.asarray(inside))[0])
        y, b = np.broadcast_arrays(y, b)
        place = f"[{', '.join(str(i + 1) for i in index)}]" if index else ""
        raise DomainError(
            f"{name}{place} is {y[index].item()!r}, but must be {relation} {b[index].item()!r}!"
        )

    if np.size(value):
        check_values(check_plain, value, bound)
