"""What the parameters of a `Model` may be: a set of numbers, vectors or matrices, and its shape."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, final

from varmat.core.errors import ShapeError
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
Shape = int | tuple[int, ...]


class BoundFunction:
    """A bound that is a function, called with the values that its parameters name.

    Attributes
    ----------
    needed, optional : list of str
        The names of its parameters without and with defaults.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters.values()
        self._function = function
        self.needed = [p.name for p in parameters if p.default is p.empty]
        self.optional = [
            p.name
            for p in parameters
            if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY
        ]
        self._in_place = [
            p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_ONLY
        ]
        self._by_name = [
            name for name in [*self.needed, *self.optional] if name not in self._in_place
        ]

    def at(self, values: Mapping[str, Any]) -> Any:
        """The bound where parameters and data have these values."""
        named = {name: values[name] for name in self._by_name if name in values}
        return self._function(*[values[name] for name in self._in_place], **named)


@final
class Dependent(Transform):
    """A transform of each element whose bounds are functions of parameters that come before it, or
    of data.

    Parameters
    ----------
    make : type
        The transform: takes the bounds, then the shape.
    bounds : sequence of array_like or callable
        A function is called with the values that its parameters name.
    shape : tuple of int
    """

    def __init__(
        self, make: Callable[..., Transform], bounds: tuple[Any, ...], shape: tuple[int, ...]
    ) -> None:
        super().__init__(shape, shape)
        self._make = make
        self._bounds = [BoundFunction(bound) if callable(bound) else bound for bound in bounds]
        self.functions = [bound for bound in self._bounds if isinstance(bound, BoundFunction)]

    def at(self, values: Mapping[str, Any]) -> Transform:
        """The transform where the parameters before it have these values."""
        bounds = (
            bound.at(values) if isinstance(bound, BoundFunction) else bound
            for bound in self._bounds
        )
        return self._make(*bounds, self.shape)

    def _constrain(self, x: Any, jacobian: bool) -> Any:
        names = ", ".join(name for function in self.functions for name in function.needed)
        raise TypeError(f"the bounds depend on {names}: use this transform in a varmat.Model")

    def _unconstrain(self, y: Any) -> Any:
        return self._constrain(y, False)


def _checked(function: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    if len(shape) == 1 and isinstance(shape[0], tuple):  # as NumPy's functions have it
        (shape,) = shape
    for n in shape:
        if isinstance(n, bool) or not hasattr(n, "__index__") or n.__index__() < 0:
            raise ShapeError(f"{function}: a size is {n!r}, but must be a nonnegative integer!")
    return tuple(n.__index__() for n in shape)


def _bounded(
    function: str, make: Callable[..., Transform], bounds: tuple[Any, ...], shape: tuple[Any, ...]
) -> Transform:
    checked = _checked(function, shape)
    return (
        Dependent(make, bounds, checked) if any(map(callable, bounds)) else make(*bounds, checked)
    )


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
    return Real(_checked("real", shape))


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
    return Positive(_checked("positive", shape))


def lower(bound: Any, *shape: Shape) -> Transform:
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
    return _bounded("lower", Lower, (bound,), shape)


def upper(bound: Any, *shape: Shape) -> Transform:
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
    return _bounded("upper", Upper, (bound,), shape)


def lower_upper(lower: Any, upper: Any, *shape: Shape) -> Transform:
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
    >>> model = vm.Model(lambda alpha, beta: 0.0, alpha=vm.interval(0, 1), beta=vm.interval(0, lambda alpha: 1 - alpha))
    >>> model.constrain(np.zeros(2))
    {'alpha': 0.5, 'beta': 0.25}
    """
    return _bounded("lower_upper", LowerUpper, (lower, upper), shape)


interval = lower_upper


def offset_multiplier(offset: Any, multiplier: Any, *shape: Shape) -> Transform:
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
    return _bounded("offset_multiplier", OffsetMultiplier, (offset, multiplier), shape)


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
    return Ordered(size, _checked("ordered", shape))


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
    return PositiveOrdered(size, _checked("positive_ordered", shape))


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
    return Simplex(size, _checked("simplex", shape))


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
    return SumToZero(size, _checked("sum_to_zero", shape))


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
    return UnitVector(size, _checked("unit_vector", shape))


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
    return CorrMatrix(size, _checked("corr_matrix", shape))


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
    return CovMatrix(size, _checked("cov_matrix", shape))


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
    return CholeskyFactorCorr(size, _checked("cholesky_corr", shape))


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
    return CholeskyFactorCov(rows, columns, _checked("cholesky_cov", shape))
