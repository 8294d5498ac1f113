"""Arrays made of counts, and numbers, under Stan's names: data, without a derivative.

Places are counted from 0, as everywhere in NumPy, where Stan counts them from 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from varmat.functions.aliases import alias
from varmat.functions.checks import count, integer, outside, place
from varmat.functions.docstrings import filled
from varmat.typing import DTypeLike

__all__ = ["linspaced_int_array"]


# --- arrays ---


def zeros_vector(n: int) -> np.ndarray:
    """Make a vector of zeros: `numpy.zeros`.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    DomainError
        If `n` is negative.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import zeros_vector
    >>> zeros_vector(3)
    array([0., 0., 0.])
    """
    return np.zeros(count("zeros_vector", "n", n))


def zeros_int_array(n: int) -> np.ndarray:
    """Make an array of whole numbers, all of them 0.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    DomainError
        If `n` is negative.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import zeros_int_array
    >>> zeros_int_array(3)
    array([0, 0, 0])
    """
    return np.zeros(count("zeros_int_array", "n", n), dtype=np.int64)


def ones_vector(n: int) -> np.ndarray:
    """Make a vector of ones: `numpy.ones`.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    DomainError
        If `n` is negative.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import ones_vector
    >>> ones_vector(3)
    array([1., 1., 1.])
    """
    return np.ones(count("ones_vector", "n", n))


def ones_int_array(n: int) -> np.ndarray:
    """Make an array of whole numbers, all of them 1.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    DomainError
        If `n` is negative.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import ones_int_array
    >>> ones_int_array(3)
    array([1, 1, 1])
    """
    return np.ones(count("ones_int_array", "n", n), dtype=np.int64)


def one_hot_vector(K: int, k: int) -> np.ndarray:
    """Make a vector of zeros with a one at one index.

    Parameters
    ----------
    K : int
        The number of elements.
    k : int
        The index of the one, counted from 0 (in Stan from 1): the index of the category `n` of
        `categorical_lpmf` is ``n - 1``.

    Returns
    -------
    ndarray, shape (K,)

    Raises
    ------
    DomainError
        If `K` is not positive, or the index is out of range.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import one_hot_vector
    >>> one_hot_vector(3, 1)
    array([0., 1., 0.])
    """
    return _one_hot("one_hot_vector", K, k, float)


def one_hot_int_array(K: int, k: int) -> np.ndarray:
    """Make an array of whole numbers, 1 at one index and 0 elsewhere.

    Parameters
    ----------
    K : int
        The number of elements.
    k : int
        The index of the one, counted from 0 (in Stan from 1).

    Returns
    -------
    ndarray of int, shape (K,)

    Raises
    ------
    DomainError
        If `K` is not positive, or the index is out of range.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import one_hot_int_array
    >>> one_hot_int_array(3, 1)
    array([0, 1, 0])
    """
    return _one_hot("one_hot_int_array", K, k, np.int64)


def _one_hot(function: str, size: int, k: object, dtype: DTypeLike | None) -> np.ndarray:
    result = np.zeros(count(function, "K", size, 1), dtype)
    result[place(function, "k", k, result.size)] = 1
    return result


def linspaced_int_array(K: int, lower: int, upper: int) -> np.ndarray:
    """Make `K` whole numbers from `lower` to at most `upper`, as equally spaced as whole numbers
    can be.

    Parameters
    ----------
    K : int
        The number of elements.
    lower, upper : int
        The ends; a single number is `upper`.

    Returns
    -------
    ndarray of int, shape (K,)
        As in Stan: with at most as many numbers as there are from `lower` to `upper` the distance
        is rounded down to a whole number, and `upper` may not be reached; with more of them each is
        repeated a whole number of times.

    Raises
    ------
    DomainError
        If `K` is negative, or `upper` less than `lower`.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Eigen, "DenseBase::LinSpaced": of whole numbers.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.linspaced_int_array(6, 0, 3)
    array([0, 0, 1, 1, 2, 2])
    """
    n = count("linspaced_int_array", "K", K)
    low, high = _ends("linspaced_int_array", lower, upper)
    if n <= 1:
        return np.full(n, high, dtype=np.int64)
    span = high - low
    if n <= span + 1:
        return low + np.arange(n, dtype=np.int64) * (span // (n - 1))
    return low + np.arange(n, dtype=np.int64) // ((n + span) // (span + 1))


def _ends(function: str, lower: int, upper: int) -> tuple[int, int]:
    low, high = integer(function, "lower", lower), integer(function, "upper", upper)
    if high < low:
        raise outside(function, "upper", high, f"be at least lower, which is {low}")
    return low, high


def unitspaced_array(lower: int, upper: int) -> np.ndarray:
    """Make an array of all whole numbers from `lower` to `upper`, both included.

    Parameters
    ----------
    lower, upper : int

    Returns
    -------
    ndarray of int, shape (upper - lower + 1,)

    Raises
    ------
    DomainError
        If `upper` is less than `lower`.

    Notes
    -----
    The result has no derivative. ``numpy.arange(lower, upper + 1)``.

    References
    ----------
    Bob Carpenter et al., "The Stan Math Library: Reverse-Mode Automatic Differentiation in C++",
    arXiv:1509.07164, 2015.

    Examples
    --------
    >>> from varmat.stan.functions import unitspaced_array
    >>> unitspaced_array(2, 5)
    array([2, 3, 4, 5])
    """
    low, high = _ends("unitspaced_array", lower, upper)
    return np.arange(low, high + 1, dtype=np.int64)


def identity_matrix(n: int) -> np.ndarray:
    """Make the identity matrix: `numpy.eye`.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray, shape (n, n)

    Raises
    ------
    DomainError
        If `n` is negative.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import identity_matrix
    >>> identity_matrix(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return np.eye(count("identity_matrix", "n", n))


def uniform_simplex(n: int) -> np.ndarray:
    """Make the vector of equal probabilities, ``1 / n``.

    Parameters
    ----------
    n : int

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    DomainError
        If `n` is not positive.

    Notes
    -----
    The result has no derivative.

    References
    ----------
    Stan Functions Reference, "Container construction functions".

    Examples
    --------
    >>> from varmat.stan.functions import uniform_simplex
    >>> uniform_simplex(4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    n = count("uniform_simplex", "n", n, 1)
    return np.full(n, 1.0 / n)


# There are no row vectors, and arrays of numbers are vectors.
zeros_array = alias("zeros_array", zeros_vector, "varmat.stan.functions")
zeros_row_vector = alias("zeros_row_vector", zeros_vector, "varmat.stan.functions")
ones_array = alias("ones_array", ones_vector, "varmat.stan.functions")
ones_row_vector = alias("ones_row_vector", ones_vector, "varmat.stan.functions")
one_hot_array = alias("one_hot_array", one_hot_vector, "varmat.stan.functions")
one_hot_row_vector = alias("one_hot_row_vector", one_hot_vector, "varmat.stan.functions")


# --- numbers ---


def _constant(name: str, number: float, about: str, numpy: str) -> Callable[[], float]:
    @filled(name, value=repr(number), about=about, numpy=numpy)
    def constant() -> float:
        """{about}.

        Returns
        -------
        float

        Notes
        -----
        A function, as in Stan; NumPy writes ``{numpy}``.

        References
        ----------
        Stan Functions Reference, "Mathematical constants".

        Examples
        --------
        >>> from varmat.stan.functions import {name}
        >>> {name}()
        {value}
        """
        return number

    return constant


e = _constant("e", math.e, "Return the base of the natural logarithm", "np.e")
pi = _constant(
    "pi", math.pi, "Return the ratio of the circumference of a circle to its diameter", "np.pi"
)
sqrt2 = _constant("sqrt2", math.sqrt(2.0), "Return the square root of 2", "np.sqrt(2.0)")
machine_precision = _constant(
    "machine_precision",
    2.0**-52,
    "Return the distance from 1 to the next float64",
    "np.finfo(np.float64).eps",
)
positive_infinity = _constant("positive_infinity", math.inf, "Return infinity", "np.inf")
negative_infinity = _constant("negative_infinity", -math.inf, "Return minus infinity", "-np.inf")
not_a_number = _constant(
    "not_a_number", math.nan, "Return the float64 that is not a number", "np.nan"
)
