"""What the parameters of a `Model` may be: a set of numbers, vectors or matrices, and its shape."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import varmat.transforms as transforms
from varmat.functions.aliases import alias
from varmat.models.arguments import Declared, check_declarations
from varmat.models.bounds import checked_shape, with_bounds
from varmat.models.observations import names_of
from varmat.models.stated import Located
from varmat.transforms import Transform
from varmat.transforms.common import check_against

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from varmat.models.arguments import Declarations
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


def _declared(
    function: str,
    make: Callable[[Shape], Transform],
    shape: tuple[int | Shape, ...],
    declarations: Mapping[str, Any],
) -> Transform:
    """Make a parameter from its sizes, given as arguments or as one tuple, and its keywords."""
    result = make(checked_shape(function, shape))
    if declarations:
        check_declarations(function, declarations.keys())
        result.declaration = Declared(
            declarations.get("prior"), names_of(declarations.get("dims", ())), make
        )
    return result


# --- each element alone ---


def real(
    *shape: int | Shape, centred: bool = True, **declarations: Unpack[Declarations]
) -> Transform:
    """Declare a parameter of a `Model` that may be any real number.

    Parameters
    ----------
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, two for a matrix, and so on.
    centred : bool, keyword only
        With False the sampler moves in a standard variable z, and the parameter is ``location +
        scale * z``: the non-centred form. The prior must be of a location-scale family, such as
        `varmat.distributions.Normal`, `StudentT`, `Cauchy` or `MultiNormalCholesky`.
    prior : varmat.distributions.Distribution or callable, keyword only
        The distribution, or a function that returns it and is called with the parameters, named
        values and data that its own parameters name. The log density of a bounded parameter is not
        divided by the probability of its set, as in Stan.
        `varmat.distributions.Custom` makes a distribution of a density of your own.
    dims : str or sequence of str, keyword only
        The names of the dimensions. Sizes may be left out if `Model` knows the labels of them, from
        ``coords`` or from data of pandas or xarray.

    Returns
    -------
    Transform

    Raises
    ------
    ShapeError
        If a size is not a nonnegative integer.
    TypeError
        If a non-centred form is requested and does not exist.

    Examples
    --------
    >>> import varmat as vm, varmat.distributions as dist
    >>> vm.real(2, 3).shape
    (2, 3)
    >>> model = vm.Model(
    ...     mu=vm.real(prior=dist.Normal(0, 5)),
    ...     theta=vm.real(3, prior=lambda mu: dist.Normal(mu, 2.0), centred=False),
    ... )
    >>> model.constrain([10.0, -1.0, 0.0, 1.0])["theta"]
    array([ 8., 10., 12.])
    """
    if centred:
        return _declared("real", transforms.Real, shape, declarations)
    if declarations.get("prior") is None:
        raise TypeError("real: centred is False, but must be True where there is no prior!")
    return _declared(
        "real", partial(with_bounds, Located, (declarations["prior"],)), shape, declarations
    )


def positive(*shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a positive parameter of a `Model`, by `positive_constrain`.

    Parameters
    ----------
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.
    **stated
        The `prior`, and the `dims`: see `real`.

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
    return _declared("positive", transforms.Positive, shape, declarations)


def lower(bound: Operand, *shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a parameter of a `Model` above a bound, by `lb_constrain`.

    Parameters
    ----------
    bound : array_like or callable
        Broadcast to the shape; a function is called with the earlier parameters, or the data, that
        its own parameters name.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.
    **stated
        The `prior`, and the `dims`: see `real`.

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
    return _declared("lower", partial(with_bounds, transforms.Lower, (bound,)), shape, declarations)


def upper(bound: Operand, *shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a parameter of a `Model` below a bound, by `ub_constrain`.

    Parameters
    ----------
    bound : array_like or callable
        Broadcast to the shape; a function is called with the earlier parameters, or the data, that
        its own parameters name.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.
    **stated
        The `prior`, and the `dims`: see `real`.

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
    return _declared("upper", partial(with_bounds, transforms.Upper, (bound,)), shape, declarations)


def lower_upper(
    lower: Operand, upper: Operand, *shape: int | Shape, **declarations: Unpack[Declarations]
) -> Transform:
    """Declare a parameter of a `Model` between two bounds, by `lub_constrain`; also named
    `interval`.

    Parameters
    ----------
    lower, upper : array_like or callable
        Broadcast to the shape; a function is called with the earlier parameters, or the data, that
        its own parameters name.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.
    **stated
        The `prior`, and the `dims`: see `real`.

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
    if not (callable(lower) or callable(upper)):
        check_against("interval", "lower", lower, "less than upper, which is {}", np.less, upper)
    make = partial(with_bounds, transforms.LowerUpper, (lower, upper))
    return _declared("lower_upper", make, shape, declarations)


interval = alias("interval", lower_upper)


def offset_multiplier(
    offset: Operand, multiplier: Operand, *shape: int | Shape, **declarations: Unpack[Declarations]
) -> Transform:
    """Declare a real parameter of a `Model`, shifted and stretched by
    `offset_multiplier_constrain`: the non-centred form.

    Parameters
    ----------
    offset, multiplier : array_like or callable
        Broadcast to the shape; a function is called with the earlier parameters, or the data, that
        its own parameters name.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.
    **stated
        The `prior`, and the `dims`: see `real`.

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
    make = partial(with_bounds, transforms.OffsetMultiplier, (offset, multiplier))
    return _declared("offset_multiplier", make, shape, declarations)


# --- vectors ---


def ordered(size: int, *shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a vector with ascending elements as a parameter of a `Model`, by `ordered_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Shape of an array of such vectors.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.ordered(3).constrain([0.0, 0.0, 0.0])
    array([0., 1., 2.])
    """
    return _declared("ordered", partial(transforms.Ordered, size), shape, declarations)


def positive_ordered(
    size: int, *shape: int | Shape, **declarations: Unpack[Declarations]
) -> Transform:
    """Declare a vector with positive, ascending elements as a parameter of a `Model`, by
    `positive_ordered_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Shape of an array of such vectors.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.positive_ordered(3).constrain([0.0, 0.0, 0.0])
    array([1., 2., 3.])
    """
    return _declared(
        "positive_ordered", partial(transforms.PositiveOrdered, size), shape, declarations
    )


def simplex(size: int, *shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a vector of nonnegative numbers with sum 1 as a parameter of a `Model`, by
    `simplex_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Shape of an array of such vectors.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.simplex(2).constrain([0.0])
    array([0.5, 0.5])
    """
    return _declared("simplex", partial(transforms.Simplex, size), shape, declarations)


def sum_to_zero(size: int, *shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a vector with sum zero as a parameter of a `Model`, by `sum_to_zero_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Shape of an array of such vectors.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sum_to_zero(3).unconstrained_size
    2
    """
    return _declared("sum_to_zero", partial(transforms.SumToZero, size), shape, declarations)


def unit_vector(size: int, *shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a vector of length 1 as a parameter of a `Model`, by `unit_vector_constrain`.

    Parameters
    ----------
    size : int
        Number of elements.
    *shape : int, or one tuple of int
        Shape of an array of such vectors.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.unit_vector(2).constrain([3.0, 4.0])
    array([0.6, 0.8])
    """
    return _declared("unit_vector", partial(transforms.UnitVector, size), shape, declarations)


# --- matrices ---


def corr_matrix(size: int, *shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a correlation matrix as a parameter of a `Model`, by `corr_matrix_constrain`.

    Parameters
    ----------
    size : int
        Number of rows.
    *shape : int, or one tuple of int
        Shape of an array of such matrices.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.corr_matrix(2).constrain([0.0])
    array([[1., 0.],
           [0., 1.]])
    """
    return _declared("corr_matrix", partial(transforms.CorrMatrix, size), shape, declarations)


def cov_matrix(size: int, *shape: int | Shape, **declarations: Unpack[Declarations]) -> Transform:
    """Declare a covariance matrix as a parameter of a `Model`, by `cov_matrix_constrain`.

    Parameters
    ----------
    size : int
        Number of rows.
    *shape : int, or one tuple of int
        Shape of an array of such matrices.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cov_matrix(2).unconstrained_size
    3
    """
    return _declared("cov_matrix", partial(transforms.CovMatrix, size), shape, declarations)


def cholesky_corr(
    size: int, *shape: int | Shape, **declarations: Unpack[Declarations]
) -> Transform:
    """Declare the lower Cholesky factor of a correlation matrix as a parameter of a `Model`, by
    `cholesky_corr_constrain`.

    Parameters
    ----------
    size : int
        Number of rows.
    *shape : int, or one tuple of int
        Shape of an array of such matrices.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cholesky_corr(3).unconstrained_size
    3
    """
    return _declared(
        "cholesky_corr", partial(transforms.CholeskyFactorCorr, size), shape, declarations
    )


def cholesky_cov(
    rows: int, columns: int | None = None, *shape: int | Shape, **declarations: Unpack[Declarations]
) -> Transform:
    """Declare the lower Cholesky factor of a covariance matrix as a parameter of a `Model`, by
    `cholesky_factor_constrain`.

    Parameters
    ----------
    rows : int
    columns : int, optional
        At most `rows`; by default as many.
    *shape : int, or one tuple of int
        Shape of an array of such matrices.
    **stated
        The `prior`, and the `dims`: see `real`.

    Returns
    -------
    Transform

    Raises
    ------
    TypeError, DomainError, ShapeError
        If a size is not an integer, or too small.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cholesky_cov(2).constrain([0.0, 5.0, 0.0])
    array([[1., 0.],
           [5., 1.]])
    """
    make = partial(transforms.CholeskyFactorCov, rows, columns)
    return _declared("cholesky_cov", make, shape, declarations)
