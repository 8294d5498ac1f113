"""What the parameters of a `Model` may be: a set of numbers, vectors or matrices, and its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from varmat.models.bounds import checked_shape, with_bounds
from varmat.transforms import (
    CholeskyFactorCorr,
    CholeskyFactorCov,
    CorrMatrix,
    CovMatrix,
    Lower,
    LowerUpper,
    OffsetMultiplier,
    Ordered,
    Positive,
    PositiveOrdered,
    Real,
    Simplex,
    SumToZero,
    Transform,
    UnitVector,
    Upper,
)

if TYPE_CHECKING:
    from varmat.typing import Operand, Shape

__all__ = [
    "cholesky_corr",
    "cholesky_cov",
    "corr_matrix",
    "cov_matrix",
    "interval",
    "lower",
    "lower_upper",
    "offset_multiplier",
    "ordered",
    "positive",
    "positive_ordered",
    "real",
    "simplex",
    "sum_to_zero",
    "unit_vector",
    "upper",
]

# Each of the sizes, or all of them in one tuple.

# --- each element alone ---


def real(*shape: Shape) -> Transform:
    """A parameter of a `Model` that may be any real number.

    Parameters
    ----------
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, two for a matrix, and so on.

    Returns
    -------
    Transform

    Raises
    ------
    ShapeError
        If a size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.real(2, 3).shape
    (2, 3)
    """
    return Real(checked_shape("real", shape))


def positive(*shape: Shape) -> Transform:
    """A positive parameter of a `Model`, by `positive_constrain`.

    Parameters
    ----------
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.

    Returns
    -------
    Transform

    Raises
    ------
    ShapeError
        If a size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.positive().constrain(0.0)
    1.0
    """
    return Positive(checked_shape("positive", shape))


def lower(bound: Operand, *shape: Shape) -> Transform:
    """A parameter of a `Model` above a bound, by `lb_constrain`.

    Parameters
    ----------
    bound : array_like or callable
        Broadcast to the shape; a function is called with the earlier parameters, or the data, that
        its own parameters name.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.

    Returns
    -------
    Transform

    Raises
    ------
    DomainError
        If the bound is inf or nan; of a function this is said when the model is evaluated.
    ShapeError
        If a size is not a nonnegative integer, or the bound does not broadcast to the shape.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.lower(2.0).constrain(0.0)
    3.0
    """
    return with_bounds("lower", Lower, (bound,), shape)


def upper(bound: Operand, *shape: Shape) -> Transform:
    """A parameter of a `Model` below a bound, by `ub_constrain`.

    Parameters
    ----------
    bound : array_like or callable
        Broadcast to the shape; a function is called with the earlier parameters, or the data, that
        its own parameters name.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.

    Returns
    -------
    Transform

    Raises
    ------
    DomainError
        If the bound is -inf or nan; of a function this is said when the model is evaluated.
    ShapeError
        If a size is not a nonnegative integer, or the bound does not broadcast to the shape.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.upper(2.0).constrain(0.0)
    1.0
    """
    return with_bounds("upper", Upper, (bound,), shape)


def lower_upper(lower: Operand, upper: Operand, *shape: Shape) -> Transform:
    """A parameter of a `Model` between two bounds, by `lub_constrain`; also named `interval`.

    Parameters
    ----------
    lower, upper : array_like or callable
        Broadcast to the shape; a function is called with the earlier parameters, or the data, that
        its own parameters name.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.

    Returns
    -------
    Transform

    Raises
    ------
    DomainError
        If `lower` is not less than `upper`; of a function this is said when the model is evaluated.
    ShapeError
        If a size is not a nonnegative integer, or one of the two does not broadcast to the shape.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> beta = vm.interval(0, lambda alpha: 1 - alpha)
    >>> model = vm.Model(lambda alpha, beta: 0.0, alpha=vm.interval(0, 1), beta=beta)
    >>> model.constrain(np.zeros(2))
    {'alpha': 0.5, 'beta': 0.25}
    """
    return with_bounds("lower_upper", LowerUpper, (lower, upper), shape)


interval = lower_upper


def offset_multiplier(offset: Operand, multiplier: Operand, *shape: Shape) -> Transform:
    """A real parameter of a `Model`, shifted and stretched by `offset_multiplier_constrain`: the
    non-centred form.

    Parameters
    ----------
    offset, multiplier : array_like or callable
        Broadcast to the shape; a function is called with the earlier parameters, or the data, that
        its own parameters name.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.

    Returns
    -------
    Transform

    Raises
    ------
    DomainError
        If the offset is not finite, or the multiplier not positive finite; of a function this is
        said when the model is evaluated.
    ShapeError
        If a size is not a nonnegative integer, or one of the two does not broadcast to the shape.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.offset_multiplier(10.0, 2.0).constrain(3.0)
    16.0
    """
    return with_bounds("offset_multiplier", OffsetMultiplier, (offset, multiplier), shape)


# --- vectors ---


def ordered(size: int, *shape: Shape) -> Transform:
    """A vector with ascending elements as a parameter of a `Model`, by `ordered_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Of an array of such vectors.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `size` is not an integer.
    DomainError
        If `size` is less than 0.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.ordered(3).constrain([0.0, 0.0, 0.0])
    array([0., 1., 2.])
    """
    return Ordered(size, checked_shape("ordered", shape))


def positive_ordered(size: int, *shape: Shape) -> Transform:
    """A vector with positive, ascending elements as a parameter of a `Model`, by
    `positive_ordered_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Of an array of such vectors.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `size` is not an integer.
    DomainError
        If `size` is less than 0.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.positive_ordered(3).constrain([0.0, 0.0, 0.0])
    array([1., 2., 3.])
    """
    return PositiveOrdered(size, checked_shape("positive_ordered", shape))


def simplex(size: int, *shape: Shape) -> Transform:
    """A vector of nonnegative numbers with sum 1 as a parameter of a `Model`, by
    `simplex_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Of an array of such vectors.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `size` is not an integer.
    DomainError
        If `size` is less than 1.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.simplex(2).constrain([0.0])
    array([0.5, 0.5])
    """
    return Simplex(size, checked_shape("simplex", shape))


def sum_to_zero(size: int, *shape: Shape) -> Transform:
    """A vector with sum zero as a parameter of a `Model`, by `sum_to_zero_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Of an array of such vectors.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `size` is not an integer.
    DomainError
        If `size` is less than 1.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sum_to_zero(3).unconstrained_size
    2
    """
    return SumToZero(size, checked_shape("sum_to_zero", shape))


def unit_vector(size: int, *shape: Shape) -> Transform:
    """A vector of length 1 as a parameter of a `Model`, by `unit_vector_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Of an array of such vectors.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `size` is not an integer.
    DomainError
        If `size` is less than 1.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.unit_vector(2).constrain([3.0, 4.0])
    array([0.6, 0.8])
    """
    return UnitVector(size, checked_shape("unit_vector", shape))


# --- matrices ---


def corr_matrix(size: int, *shape: Shape) -> Transform:
    """A correlation matrix as a parameter of a `Model`, by `corr_matrix_constrain`.

    Parameters
    ----------
    size : int
        Number of rows.
    *shape : int, or one tuple of int
        Of an array of such matrices.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `size` is not an integer.
    DomainError
        If `size` is less than 1.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.corr_matrix(2).constrain([0.0])
    array([[1., 0.],
           [0., 1.]])
    """
    return CorrMatrix(size, checked_shape("corr_matrix", shape))


def cov_matrix(size: int, *shape: Shape) -> Transform:
    """A covariance matrix as a parameter of a `Model`, by `cov_matrix_constrain`.

    Parameters
    ----------
    size : int
        Number of rows.
    *shape : int, or one tuple of int
        Of an array of such matrices.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `size` is not an integer.
    DomainError
        If `size` is less than 1.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cov_matrix(2).unconstrained_size
    3
    """
    return CovMatrix(size, checked_shape("cov_matrix", shape))


def cholesky_corr(size: int, *shape: Shape) -> Transform:
    """The lower Cholesky factor of a correlation matrix as a parameter of a `Model`, by
    `cholesky_corr_constrain`.

    Parameters
    ----------
    size : int
        Number of rows.
    *shape : int, or one tuple of int
        Of an array of such matrices.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `size` is not an integer.
    DomainError
        If `size` is less than 1.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cholesky_corr(3).unconstrained_size
    3
    """
    return CholeskyFactorCorr(size, checked_shape("cholesky_corr", shape))


def cholesky_cov(rows: int, columns: int | None = None, *shape: Shape) -> Transform:
    """The lower Cholesky factor of a covariance matrix as a parameter of a `Model`, by
    `cholesky_factor_constrain`.

    Parameters
    ----------
    rows : int
    columns : int, optional
        At most `rows`; by default as many.
    *shape : int, or one tuple of int
        Of an array of such matrices.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError
        If `rows` or `columns` is not an integer.
    DomainError
        If `columns` is less than 1, or `rows` less than `columns`.
    ShapeError
        If another size is not a nonnegative integer.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cholesky_cov(2).constrain([0.0, 5.0, 0.0])
    array([[1., 0.],
           [5., 1.]])
    """
    return CholeskyFactorCov(rows, columns, checked_shape("cholesky_cov", shape))
