"""Sizes, orders and whole numbers under Stan's names, without a derivative.

They take variables, and look at their values: a recording of a function that calls them holds where
they give the same. Places are counted from 0, as everywhere in NumPy, where Stan counts them from
1."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.domains import Domain, nonnegative
from varmat.core.errors import DomainError
from varmat.core.operation import as_operand
from varmat.functions.arrays.orderings import descending_order, number, stable_order
from varmat.functions.checks import check_values, integer, misfit
from varmat.typing import ArrayLike, Operand, Plain, Result

__all__ = [
    "choose",
    "cols",
    "dims",
    "int_step",
    "num_elements",
    "rank",
    "rows",
    "sort_indices_asc",
    "sort_indices_desc",
    "to_int",
]


# --- sizes ---


def _shape_of(function: str, x: object) -> tuple[int, ...]:
    return tuple(np.shape(as_operand(x, f"{function}: x")))


def dims(x: Operand) -> tuple[int, ...]:
    """Return the lengths of the axes of an array: `numpy.shape`.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    tuple of int

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Array size and dimension function".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.dims([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    (2, 3)
    """
    return _shape_of("dims", x)


def num_elements(x: Operand) -> int:
    """Return the number of all elements: `numpy.size`.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    int

    Notes
    -----
    The result has no derivative. Stan's `size` of a matrix or a vector is the same, of an array of
    them it is ``len(x)``.

    References
    ----------
    Stan Functions Reference, "Array size and dimension function".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.num_elements([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    6
    """
    return math.prod(_shape_of("num_elements", x))


def _sides(function: str, x: object) -> tuple[int, int]:
    shape = _shape_of(function, x)
    if len(shape) not in (1, 2):
        raise misfit(function, "x", shape, "be a vector or a matrix")
    return shape[0], shape[1] if len(shape) == 2 else 1


def rows(x: Operand) -> int:
    """Return the number of rows of a matrix; a vector is a column.

    Parameters
    ----------
    x : array_like, shape (m, n) or (m,)

    Returns
    -------
    int

    Raises
    ------
    ShapeError
        If `x` is neither a matrix nor a vector.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Integer-valued matrix size functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.rows([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    2
    """
    return _sides("rows", x)[0]


def cols(x: Operand) -> int:
    """Return the number of columns of a matrix; a vector is a column.

    Parameters
    ----------
    x : array_like, shape (m, n) or (m,)

    Returns
    -------
    int

    Raises
    ------
    ShapeError
        If `x` is neither a matrix nor a vector.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Integer-valued matrix size functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cols([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    3
    """
    return _sides("cols", x)[1]


# --- orders ---


def _ordered(function: str, find: Callable[[np.ndarray], Result], x: Operand) -> Result:
    """Return the result of `find` for the values of a vector; refuse nan. A recording holds while
    the result is the same.
    """
    x = as_operand(x, f"{function}: x")
    if np.ndim(x) != 1:
        raise misfit(function, "x", np.shape(x), "be a vector")

    def found(values: Plain) -> Result:
        number.check(function, "x", np.asarray(values))
        return find(np.asarray(values))

    return check_values(found, x)


def sort_indices_asc(x: Operand) -> np.ndarray:
    """Return the indices that sort a vector in ascending order: `numpy.argsort`.

    Parameters
    ----------
    x : array_like, shape (n,)

    Returns
    -------
    ndarray of int, shape (n,)
        Counted from 0 (in Stan from 1), so that ``x[sort_indices_asc(x)]`` is sorted; equal
        elements stay in their order.

    Raises
    ------
    ShapeError
        If `x` is not a vector.
    DomainError
        If an element is nan.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Sorting functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sort_indices_asc([3.0, 1.0, 2.0, 1.0])
    array([1, 3, 2, 0])
    """
    order: np.ndarray = _ordered("sort_indices_asc", lambda values: stable_order(values, 0), x)
    return order


def sort_indices_desc(x: Operand) -> np.ndarray:
    """Return the indices that sort a vector in descending order.

    Parameters
    ----------
    x : array_like, shape (n,)

    Returns
    -------
    ndarray of int, shape (n,)
        Counted from 0 (in Stan from 1), so that ``x[sort_indices_desc(x)]`` is sorted; equal
        elements stay in their order.

    Raises
    ------
    ShapeError
        If `x` is not a vector.
    DomainError
        If an element is nan.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Sorting functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sort_indices_desc([3.0, 1.0, 2.0, 1.0])
    array([0, 2, 1, 3])
    """
    order: np.ndarray = _ordered("sort_indices_desc", lambda values: descending_order(values, 0), x)
    return order


def rank(x: Operand, s: int) -> int:
    """Count the elements of a vector that are less than one of them.

    Parameters
    ----------
    x : array_like, shape (n,)
    s : int
        The index of that one, counted from 0 (in Stan from 1).

    Returns
    -------
    int

    Raises
    ------
    ShapeError
        If `x` is not a vector.
    DomainError
        If the index is out of range, or an element is nan.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Sorting functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.rank([-1.2, 0.4, 2.1, 0.4], 2)
    3
    """
    s = integer("rank", "s", s)
    if np.ndim(x) == 1 and not 0 <= s < np.shape(x)[0]:
        raise DomainError(f"rank: s is {s}, but must be an index from 0 to {np.shape(x)[0] - 1}!")
    return int(_ordered("rank", lambda values: np.count_nonzero(values < values[s]), x))


# --- whole numbers ---


def choose(n: ArrayLike, k: ArrayLike) -> Result:
    """Compute the binomial coefficient of whole numbers, exactly.

    Parameters
    ----------
    n, k : int or array_like of int
        Nonnegative.

    Returns
    -------
    int or ndarray of int
        0 where `k` is greater than `n`.

    Raises
    ------
    TypeError
        If one of them is not a whole number.
    DomainError
        If one of them is negative, or the coefficient is greater than the largest 64-bit integer.

    Notes
    -----
    The result has no derivative; `binom` and `lchoose` are the differentiable functions of real
    numbers. `numpy.choose` is another function.

    References
    ----------
    Stan Functions Reference, "Combinatorial functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.choose(30, 15)
    155117520
    """
    integers = []
    for name, x in (("n", n), ("k", k)):
        array = np.asarray(plain(x))
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"choose: {name} has dtype {array.dtype}, but must be whole numbers!")
        nonnegative.check("choose", name, array)
        integers.append(array)
    coefficients = [math.comb(int(a), int(b)) for a, b in np.broadcast(*integers)]
    if coefficients and max(coefficients) > _LARGEST:
        raise DomainError(
            f"choose: the coefficient is {max(coefficients)}, but must be at most {_LARGEST}; see "
            "varmat.lchoose!"
        )
    shape = np.broadcast_shapes(*(array.shape for array in integers))
    return np.array(coefficients, dtype=np.int64).reshape(shape) if shape else coefficients[0]


_LARGEST = int(np.iinfo(np.int64).max)
# Floats in this range fit into a 64-bit integer.
_in_range = Domain("between -2**63 and 2**63", lambda x: abs(x) < 2.0**63)


def to_int(x: Operand) -> Result:
    """Drop the decimals of a number and return the whole number.

    Parameters
    ----------
    x : array_like of real numbers

    Returns
    -------
    int or ndarray of int

    Raises
    ------
    DomainError
        If an element is nan, infinite or too large for a 64-bit integer.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Integer-Valued Basic Functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.to_int([1.7, -2.2])
    array([ 1, -2])
    """
    result = check_values(_whole, as_operand(x, "to_int: x"))
    return int(result) if not np.ndim(result) else result


def _whole(x: Operand) -> Result:
    _in_range.check("to_int", "x", x)
    return np.trunc(x).astype(np.int64)


def int_step(x: Operand) -> Result:
    """Return 1 where a number is positive, 0 elsewhere.

    Parameters
    ----------
    x : array_like of real numbers

    Returns
    -------
    int or ndarray of int

    Raises
    ------
    TypeError
        If `x` holds anything but real numbers.

    Notes
    -----
    The result has no derivative. `step` is 1 at 0 as well, and a number that can go on into
    differentiable functions.

    References
    ----------
    Stan Functions Reference, "Integer-Valued Basic Functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.int_step([-1.0, 0.0, 2.0])
    array([0, 0, 1])
    """
    result = check_values(_is_positive, as_operand(x, "int_step: x"))
    return int(result) if not np.ndim(result) else result


def _is_positive(x: Operand) -> Result:
    return np.greater(x, 0.0).astype(np.int64)
