"""Parts of vectors and matrices under Stan's names: views, as slices are, so that translated
programs read as they did.

Places are counted from 0, as everywhere in NumPy, where Stan counts them from 1. A negative one,
which NumPy would count from the end, is refused, and so is what lies outside: a Stan program that
was translated without the shift fails at the edges, as it would there."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import Domain
from varmat.core.errors import DomainError
from varmat.core.operation import as_operand
from varmat.functions.aliases import alias
from varmat.functions.arrays.repeating import rep_vector
from varmat.functions.arrays.shaping import to_vector
from varmat.functions.checks import check_array, check_values, count, misfit, place
from varmat.typing import Operand, Result, array_valued

__all__ = [
    "block",
    "col",
    "head",
    "row",
    "segment",
    "sub_col",
    "sub_row",
    "tail",
    "to_array_1d",
    "to_array_2d",
    "to_row_vector",
]

# There are no row vectors, and arrays of numbers are vectors.
rep_row_vector = alias("rep_row_vector", rep_vector, "varmat.stan.functions")
to_row_vector = alias("to_row_vector", to_vector)
to_array_1d = alias("to_array_1d", to_vector)


def _slice(
    function: str, start: object, length: object, size: int, names: tuple[str, str] = ("i", "n")
) -> slice:
    """Return the slice of `length` elements from `start`; any start is valid if the length is 0."""
    n = count(function, names[1], length)
    if not n:
        return slice(0, 0)
    i = place(function, names[0], start, size)
    if i + n > size:
        raise DomainError(
            f"{function}: {names[1]} is {n}, but must be at most {size - i}, because {names[0]} is "
            f"{i} and there are {size} elements!"
        )
    return slice(i, i + n)


def _matrix(function: str, x: Operand) -> Result:
    x = as_operand(x, f"{function}: x")
    if np.ndim(x) != 2:
        raise misfit(function, "x", np.shape(x), "be a matrix")
    return x


def _listing(function: str, x: Operand) -> Result:
    x = as_operand(x, f"{function}: x")
    check_array(function, "x", x, "have at least one axis")
    return x


@array_valued
def block(x: Operand, i: int, j: int, n_rows: int, n_cols: int) -> Result:
    """Return a rectangular part of a matrix, ``x[i : i + n_rows, j : j + n_cols]``, as a view.

    Parameters
    ----------
    x : array_like, shape (m, n)
    i, j : int
        Its first row and column, counted from 0 (in Stan from 1).
    n_rows, n_cols : int
        The numbers of rows and columns.

    Returns
    -------
    VarMat, shape (n_rows, n_cols)

    Raises
    ------
    ShapeError
        If `x` is not a matrix.
    DomainError
        If a part of the block lies outside, or a count is negative.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded. `numpy.block`, which joins parts, is
    another function.

    References
    ----------
    Stan Functions Reference, "Slicing and blocking functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.block(np.arange(12.0).reshape(3, 4), 1, 0, 2, 2)
    array([[4., 5.],
           [8., 9.]])
    """
    x = _matrix("block", x)
    rows = _slice("block", i, n_rows, np.shape(x)[0], ("i", "n_rows"))
    return x[rows, _slice("block", j, n_cols, np.shape(x)[1], ("j", "n_cols"))]


@array_valued
def row(x: Operand, i: int) -> Result:
    """Return a row of a matrix, ``x[i]``, as a view.

    Parameters
    ----------
    x : array_like, shape (m, n)
    i : int
        Index of the row, counted from 0 (in Stan from 1).

    Returns
    -------
    VarMat, shape (n,)

    Raises
    ------
    ShapeError
        If `x` is not a matrix.
    DomainError
        If the row is out of range.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Slicing and blocking functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.row([[1.0, 2.0], [3.0, 4.0]], 1)
    array([3., 4.])
    """
    x = _matrix("row", x)
    return x[place("row", "i", i, np.shape(x)[0])]


@array_valued
def col(x: Operand, j: int) -> Result:
    """Return a column of a matrix, ``x[:, j]``, as a view.

    Parameters
    ----------
    x : array_like, shape (m, n)
    j : int
        Index of the column, counted from 0 (in Stan from 1).

    Returns
    -------
    VarMat, shape (m,)

    Raises
    ------
    ShapeError
        If `x` is not a matrix.
    DomainError
        If the column is out of range.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Slicing and blocking functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.col([[1.0, 2.0], [3.0, 4.0]], 1)
    array([2., 4.])
    """
    x = _matrix("col", x)
    return x[:, place("col", "j", j, np.shape(x)[1])]


@array_valued
def sub_row(x: Operand, i: int, j: int, n_cols: int) -> Result:
    """Return part of a row of a matrix, ``x[i, j : j + n_cols]``, as a view.

    Parameters
    ----------
    x : array_like, shape (m, n)
    i, j : int
        The row, and the first column, counted from 0 (in Stan from 1).
    n_cols : int
        The number of columns.

    Returns
    -------
    VarMat, shape (n_cols,)

    Raises
    ------
    ShapeError
        If `x` is not a matrix.
    DomainError
        If a part lies outside, or the count is negative.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Slicing and blocking functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sub_row(np.arange(12.0).reshape(3, 4), 2, 1, 2)
    array([ 9., 10.])
    """
    x = _matrix("sub_row", x)
    columns = _slice("sub_row", j, n_cols, np.shape(x)[1], ("j", "n_cols"))
    return x[place("sub_row", "i", i, np.shape(x)[0]), columns]


@array_valued
def sub_col(x: Operand, i: int, j: int, n_rows: int) -> Result:
    """Return part of a column of a matrix, ``x[i : i + n_rows, j]``, as a view.

    Parameters
    ----------
    x : array_like, shape (m, n)
    i, j : int
        The first row, and the column, counted from 0 (in Stan from 1).
    n_rows : int
        The number of rows.

    Returns
    -------
    VarMat, shape (n_rows,)

    Raises
    ------
    ShapeError
        If `x` is not a matrix.
    DomainError
        If a part lies outside, or the count is negative.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Slicing and blocking functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sub_col(np.arange(12.0).reshape(3, 4), 1, 3, 2)
    array([ 7., 11.])
    """
    x = _matrix("sub_col", x)
    rows = _slice("sub_col", i, n_rows, np.shape(x)[0], ("i", "n_rows"))
    return x[rows, place("sub_col", "j", j, np.shape(x)[1])]


@array_valued
def segment(x: Operand, i: int, n: int) -> Result:
    """Return `n` elements (or slices) along the first axis, ``x[i : i + n]``, as a view.

    Parameters
    ----------
    x : array_like, one or more axes
    i : int
        The first element, counted from 0 (in Stan from 1).
    n : int
        The number of elements.

    Returns
    -------
    VarMat, shape (n, ...)

    Raises
    ------
    ShapeError
        If `x` is a scalar.
    DomainError
        If a part lies outside, or the count is negative.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Slicing and blocking functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.segment([1.0, 2.0, 3.0, 4.0], 1, 2)
    array([2., 3.])
    """
    x = _listing("segment", x)
    return x[_slice("segment", i, n, np.shape(x)[0])]


def _end(function: str, n: object, size: int) -> int:
    """Check a count, which must be at most `size`."""
    result = count(function, "n", n)
    if result > size:
        raise DomainError(
            f"{function}: n is {result}, but must be at most {size}, the number of elements!"
        )
    return result


@array_valued
def head(x: Operand, n: int) -> Result:
    """Return the first `n` elements (or slices) along the first axis, ``x[:n]``, as a view.

    Parameters
    ----------
    x : array_like, one or more axes
    n : int

    Returns
    -------
    VarMat, shape (n, ...)

    Raises
    ------
    ShapeError
        If `x` is a scalar.
    DomainError
        If `n` is negative, or more than there are.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Slicing and blocking functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.head([1.0, 2.0, 3.0], 2)
    array([1., 2.])
    """
    x = _listing("head", x)
    return x[: _end("head", n, np.shape(x)[0])]


@array_valued
def tail(x: Operand, n: int) -> Result:
    """Return the last `n` elements (or slices) along the first axis, as a view.

    Parameters
    ----------
    x : array_like, one or more axes
    n : int

    Returns
    -------
    VarMat, shape (n, ...)

    Raises
    ------
    ShapeError
        If `x` is a scalar.
    DomainError
        If `n` is negative, or more than there are.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Slicing and blocking functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.tail([1.0, 2.0, 3.0], 2)
    array([2., 3.])
    """
    x = _listing("tail", x)
    size = np.shape(x)[0]
    return x[size - _end("tail", n, size) :]


@array_valued
def to_array_2d(x: Operand) -> Result:
    """Return a matrix unchanged: here a matrix is an array with two axes.

    Parameters
    ----------
    x : array_like, shape (m, n)

    Returns
    -------
    VarMat, shape (m, n)

    Raises
    ------
    ShapeError
        If `x` is not a matrix.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Mixed Operations".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.to_array_2d([[1.0, 2.0], [3.0, 4.0]])
    array([[1., 2.],
           [3., 4.]])
    """
    return _matrix("to_array_2d", x)


@array_valued
def linspaced_vector(K: int, lower: Operand, upper: Operand) -> Result:
    """Make `K` equally spaced numbers from `lower` to `upper`; one of them is `upper`.

    Parameters
    ----------
    K : int
        The number of elements.
    lower, upper : scalar
        The ends.

    Returns
    -------
    VarMat, shape (K,)

    Raises
    ------
    DomainError
        If `K` is negative, or `upper` less than `lower`.
    ShapeError
        If an end is not a scalar.

    Notes
    -----
    `numpy.linspace`, but for a single number, which is `lower` there. Element `k` is ``lower + k /
    (K - 1) * (upper - lower)``, and hands on its adjoint to the ends in these shares.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import linspaced_vector
    >>> linspaced_vector(5, -1.0, 2.0)
    array([-1.  , -0.25,  0.5 ,  1.25,  2.  ])
    """
    n = count("linspaced_vector", "K", K)
    ends = (
        as_operand(lower, "linspaced_vector: lower"),
        as_operand(upper, "linspaced_vector: upper"),
    )
    for name, end in zip(("lower", "upper"), ends, strict=True):
        if np.ndim(end):
            raise misfit("linspaced_vector", name, np.shape(end), "be a scalar")
    check_values(_check_ends, *ends)
    return np.linspace(*ends, n) if n != 1 else np.stack([ends[1]])


def _check_ends(lower: object, upper: object) -> None:
    Domain(f"at least lower, which is {lower!r}", lambda x: x >= lower).check(
        "linspaced_vector", "upper", upper
    )


linspaced_array = alias("linspaced_array", linspaced_vector, "varmat.stan.functions")
linspaced_row_vector = alias("linspaced_row_vector", linspaced_vector, "varmat.stan.functions")
