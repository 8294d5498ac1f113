"""Transforms as objects: a set with its shape, the way to it from all of R^n, and the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Any, ClassVar, final

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import plain
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand
from varmat.core.variables import data
from varmat.functions.checks import check_integer, check_values, is_watched
from varmat.transforms import bounded, matrices, vectors

__all__ = [
    "CholeskyFactorCorr",
    "CholeskyFactorCov",
    "CorrMatrix",
    "CovMatrix",
    "Lower",
    "LowerUpper",
    "OffsetMultiplier",
    "Ordered",
    "Positive",
    "PositiveOrdered",
    "Probability",
    "Real",
    "Simplex",
    "SumToZero",
    "Transform",
    "UnitVector",
    "Upper",
]

Shape = tuple[int, ...]


def _shape(shape: int | Shape) -> Shape:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


class Transform(ABC):
    """A differentiable map from all of R^n onto a set of arrays, and its inverse.

    Abstract: a subclass gives both shapes to ``__init__`` and defines `_constrain` and
    `_unconstrain`.

    Parameters
    ----------
    shape : tuple of int
        Of the constrained array.
    unconstrained_shape : tuple of int
        Of the unconstrained array.

    Attributes
    ----------
    shape, unconstrained_shape : tuple of int
    unconstrained_size : int
        Number of unconstrained elements.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import Simplex
    >>> weights = Simplex(3, shape=2)
    >>> weights.shape, weights.unconstrained_size
    ((2, 3), 4)
    >>> y, log_jacobian = weights.constrain_with_log_jacobian(np.zeros(4))
    >>> y.round(3)
    array([[0.333, 0.333, 0.333],
           [0.333, 0.333, 0.333]])
    >>> weights.unconstrain(np.full((2, 3), [0.5, 0.25, 0.25])).round(3)
    array([[0.693, 0.   ],
           [0.693, 0.   ]])
    """

    def __init__(self, shape: Shape, unconstrained_shape: Shape) -> None:
        self.shape = shape
        self.unconstrained_shape = unconstrained_shape
        self.unconstrained_size = prod(unconstrained_shape)

    def constrain(self, x: Any) -> Any:
        """The constrained value.

        Parameters
        ----------
        x : array_like or variable
            Of shape ``unconstrained_shape``, or flat with ``unconstrained_size`` elements.

        Returns
        -------
        Of shape ``shape``
        """
        return self._constrain(self._placed(x), False)

    def constrain_with_log_jacobian(self, x: Any) -> tuple[Any, Any]:
        """The constrained value and the logarithm of the absolute Jacobian determinant, a scalar.

        Parameters
        ----------
        x : array_like or variable
            Of shape ``unconstrained_shape``, or flat with ``unconstrained_size`` elements.

        Returns
        -------
        y : of shape ``shape``
        log_jacobian : float or Var
        """
        result: tuple[Any, Any] = self._constrain(self._placed(x), True)
        return result

    def unconstrain(self, y: Any) -> Any:
        """The unconstrained value of a plain constrained one.

        Parameters
        ----------
        y : array_like, of shape ``shape``

        Returns
        -------
        float or ndarray, of shape ``unconstrained_shape``

        Raises
        ------
        DomainError
            If `y` is not in the set.
        ShapeError
            If it has another shape.
        """
        y = data(y, f"{type(self).__name__}: y")
        if np.shape(y) != self.shape:
            raise ShapeError(
                f"{type(self).__name__}: y has shape {np.shape(y)}, but must have shape "
                f"{self.shape}!"
            )
        return self._unconstrain(y)

    @abstractmethod
    def _constrain(self, x: Any, jacobian: bool) -> Any:
        """The value, together with the log-Jacobian if asked for, at an `x` of the unconstrained
        shape.
        """

    @abstractmethod
    def _unconstrain(self, y: Any) -> Any:
        """The inverse at a plain `y` of the constrained shape; refuses what is not in the set."""

    def _placed(self, x: Any) -> Any:
        """The argument, reshaped if it is flat."""
        if not isinstance(x, ArrayMethods):
            x = as_operand(x, f"{type(self).__name__}: x")
        shape = np.shape(x)
        if shape == self.unconstrained_shape:
            return x
        if shape == (self.unconstrained_size,):
            if self.unconstrained_shape:
                return np.reshape(x, self.unconstrained_shape)
            return float(x[0]) if type(x) is np.ndarray else x[0]
        raise ShapeError(
            f"{type(self).__name__}: x has shape {shape}, but must have shape "
            f"{self.unconstrained_shape}, "
            f"or be flat with {self.unconstrained_size} elements!"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.shape}"


class FromFunctions(Transform):
    """A transform that is a pair of functions, with bounds that both take and sizes for the first.

    Abstract: a subclass names the functions.
    """

    _functions: tuple[Any, Any]

    def __init__(
        self, shape: Shape, unconstrained_shape: Shape, *bounds: Any, **sizes: int
    ) -> None:
        super().__init__(shape, unconstrained_shape)
        self._bounds = bounds
        self._sizes = sizes

    @property
    def constraint(self) -> tuple[Any, tuple[Any, ...]]:
        """The function that constrains, and the bounds that it takes, beside sizes."""
        return self._functions[0], self._bounds

    def _constrain(self, x: Any, jacobian: bool) -> Any:
        return self._functions[0](x, *self._bounds, **self._sizes, jacobian=jacobian)

    def _unconstrain(self, y: Any) -> Any:
        return self._functions[1](y, *plain(self._bounds))

    def _checked_size(self, name: str, size: Any, least: int) -> int:
        check_integer(type(self).__name__, name, size, least)
        # with small integers of NumPy's, the number of unconstrained elements would wrap around
        return int(size)


class ElementwiseTransform(FromFunctions):
    """A transform of each element alone; abstract."""

    # What takes the place of the first function if all bounds are finite.
    _finite: ClassVar[Any] = None

    def __init__(self, shape: int | Shape, *bounds: Any) -> None:
        shape = _shape(shape)
        bounds = tuple(
            as_operand(bound, f"{type(self).__name__}: bound {i}")
            for i, bound in enumerate(bounds, 1)
        )
        super().__init__(shape, shape, *bounds)
        constrain = self._functions[0]

        def are_finite(*values: Any) -> bool:
            return all(np.all(np.isfinite(value)) for value in values)

        # What is wrong with the bounds is said now, not again at each call; a recording looks again
        # in every run.
        constrain(data(np.zeros(shape)), *(bounds if is_watched(*bounds) else map(plain, bounds)))
        if check_values(are_finite, *bounds) and self._finite is not None:
            self._functions = self._finite, self._functions[1]

    def __repr__(self) -> str:
        shape = [f"shape={self.shape}"] if self.shape else []
        return f"{type(self).__name__}({', '.join([*map(repr, self._bounds), *shape])})"


# --- each element alone ---


@final
class Real(Transform):
    """All real numbers: the identity.

    Parameters
    ----------
    shape : int or tuple of int

    Examples
    --------
    >>> from varmat.transforms import Real
    >>> Real().constrain_with_log_jacobian(3.0)
    (3.0, 0.0)
    """

    def __init__(self, shape: int | Shape = ()) -> None:
        super().__init__(_shape(shape), _shape(shape))

    def _constrain(self, x: Any, jacobian: bool) -> Any:
        return (x, 0.0) if jacobian else x

    def _unconstrain(self, y: Any) -> Any:
        return np.copy(y) if np.ndim(y) else y


@final
class Positive(ElementwiseTransform):
    """Positive numbers, by `positive_constrain`.

    Parameters
    ----------
    shape : int or tuple of int

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import Positive
    >>> Positive(2).constrain(np.zeros(2))
    array([1., 1.])
    """

    _functions = bounded.positive_constrain, bounded.positive_free

    def __init__(self, shape: int | Shape = ()) -> None:
        super().__init__(shape)


@final
class Lower(ElementwiseTransform):
    """Numbers above a lower bound, by `lb_constrain`.

    Parameters
    ----------
    lb : array_like or variable
        Broadcast to `shape`; -inf for none.
    shape : int or tuple of int

    Examples
    --------
    >>> from varmat.transforms import Lower
    >>> Lower(1.0).constrain(0.0)
    2.0
    """

    _functions = bounded.lb_constrain, bounded.lb_free
    _finite = staticmethod(bounded.above)

    def __init__(self, lb: Any, shape: int | Shape = ()) -> None:
        super().__init__(shape, lb)
        (self.bound,) = self._bounds


@final
class Upper(ElementwiseTransform):
    """Numbers below an upper bound, by `ub_constrain`.

    Parameters
    ----------
    ub : array_like or variable
        Broadcast to `shape`; inf for none.
    shape : int or tuple of int

    Examples
    --------
    >>> from varmat.transforms import Upper
    >>> Upper(1.0).constrain(0.0)
    0.0
    """

    _functions = bounded.ub_constrain, bounded.ub_free
    _finite = staticmethod(bounded.below)

    def __init__(self, ub: Any, shape: int | Shape = ()) -> None:
        super().__init__(shape, ub)
        (self.bound,) = self._bounds


@final
class LowerUpper(ElementwiseTransform):
    """Numbers between two bounds, by `lub_constrain`.

    Parameters
    ----------
    lb, ub : array_like or variable
        Broadcast to `shape`; infinite for none.
    shape : int or tuple of int

    Examples
    --------
    >>> from varmat.transforms import LowerUpper
    >>> LowerUpper(-1.0, 2.0).constrain(0.0)
    0.5
    """

    _functions = bounded.lub_constrain, bounded.lub_free
    _finite = bounded.interval_constrain

    def __init__(self, lb: Any, ub: Any, shape: int | Shape = ()) -> None:
        super().__init__(shape, lb, ub)


@final
class Probability(ElementwiseTransform):
    """Numbers between 0 and 1, by `prob_constrain`.

    Parameters
    ----------
    shape : int or tuple of int

    Examples
    --------
    >>> from varmat.transforms import Probability
    >>> Probability().constrain(0.0)
    0.5
    """

    _functions = bounded.prob_constrain, bounded.prob_free

    def __init__(self, shape: int | Shape = ()) -> None:
        super().__init__(shape)


@final
class OffsetMultiplier(ElementwiseTransform):
    """All real numbers, shifted and stretched by `offset_multiplier_constrain`.

    Parameters
    ----------
    offset, multiplier : array_like or variable
        Broadcast to `shape`; the multiplier is positive.
    shape : int or tuple of int

    Examples
    --------
    >>> from varmat.transforms import OffsetMultiplier
    >>> OffsetMultiplier(10.0, 2.0).constrain(3.0)
    16.0
    """

    _functions = bounded.offset_multiplier_constrain, bounded.offset_multiplier_free
    _finite = staticmethod(bounded.affine)

    def __init__(self, offset: Any = 0.0, multiplier: Any = 1.0, shape: int | Shape = ()) -> None:
        super().__init__(shape, offset, multiplier)


# --- vectors ---


class Vectors(FromFunctions):
    """Vectors, or an array of them along the last axis; abstract."""

    _least: ClassVar[int] = 0
    # How many elements a vector has more than are free.
    _surplus: ClassVar[int] = 0

    def __init__(self, size: int, shape: int | Shape = ()) -> None:
        size = self._checked_size("size", size, self._least)
        super().__init__((*_shape(shape), size), (*_shape(shape), size - self._surplus))


@final
class Ordered(Vectors):
    """Vectors with ascending elements, by `ordered_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import Ordered
    >>> Ordered(3).constrain(np.zeros(3))
    array([0., 1., 2.])
    """

    _functions = vectors.ordered_constrain, vectors.ordered_free


@final
class PositiveOrdered(Vectors):
    """Vectors with positive, ascending elements, by `positive_ordered_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import PositiveOrdered
    >>> PositiveOrdered(3).constrain(np.zeros(3))
    array([1., 2., 3.])
    """

    _functions = vectors.positive_ordered_constrain, vectors.positive_ordered_free


@final
class Simplex(Vectors):
    """Vectors of nonnegative numbers with sum 1, by `simplex_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import Simplex
    >>> Simplex(4).constrain(np.zeros(3)).round(12)
    array([0.25, 0.25, 0.25, 0.25])
    """

    _functions = vectors.simplex_constrain, vectors.simplex_free
    _least, _surplus = 1, 1


@final
class SumToZero(Vectors):
    """Vectors with sum zero, by `sum_to_zero_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import SumToZero
    >>> SumToZero(2).constrain(np.array([np.sqrt(2.0)])).round(12)
    array([ 1., -1.])
    """

    _functions = vectors.sum_to_zero_constrain, vectors.sum_to_zero_free
    _least, _surplus = 1, 1


@final
class UnitVector(Vectors):
    """Vectors of length 1, by `unit_vector_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import UnitVector
    >>> UnitVector(2).constrain(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    _functions = vectors.unit_vector_constrain, vectors.unit_vector_free
    _least = 1


# --- matrices ---


class Squares(FromFunctions):
    """Square matrices, or an array of them along the last two axes; abstract."""

    # Whether the diagonal is free.
    _diagonal: ClassVar[bool]

    def __init__(self, size: int, shape: int | Shape = ()) -> None:
        size = self._checked_size("size", size, 1)
        free = size * (size + 1 if self._diagonal else size - 1) // 2
        super().__init__((*_shape(shape), size, size), (*_shape(shape), free), K=size)


@final
class CorrMatrix(Squares):
    """Correlation matrices, by `corr_matrix_constrain`.

    Parameters
    ----------
    size : int
        Number of rows of a matrix.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import CorrMatrix
    >>> CorrMatrix(2).constrain(np.array([np.arctanh(0.6)]))
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    _functions = matrices.corr_matrix_constrain, matrices.corr_matrix_free
    _diagonal = False


@final
class CovMatrix(Squares):
    """Covariance matrices, by `cov_matrix_constrain`.

    Parameters
    ----------
    size : int
        Number of rows of a matrix.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import CovMatrix
    >>> CovMatrix(2).constrain(np.array([0.0, 5.0, 0.0]))
    array([[ 1.,  5.],
           [ 5., 26.]])
    """

    _functions = matrices.cov_matrix_constrain, matrices.cov_matrix_free
    _diagonal = True


@final
class CholeskyFactorCorr(Squares):
    """Cholesky factors of correlation matrices, by `cholesky_corr_constrain`.

    Parameters
    ----------
    size : int
        Number of rows of a matrix.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import CholeskyFactorCorr
    >>> CholeskyFactorCorr(2).constrain(np.array([np.arctanh(0.6)]))
    array([[1. , 0. ],
           [0.6, 0.8]])
    """

    _functions = matrices.cholesky_corr_constrain, matrices.cholesky_corr_free
    _diagonal = False


@final
class CholeskyFactorCov(FromFunctions):
    """Cholesky factors of covariance matrices, by `cholesky_factor_constrain`.

    Parameters
    ----------
    rows : int
    columns : int, optional
        At most `rows`; by default as many.
    shape : int or tuple of int
        Of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import CholeskyFactorCov
    >>> CholeskyFactorCov(2).constrain(np.array([0.0, 5.0, 0.0]))
    array([[1., 0.],
           [5., 1.]])
    """

    _functions = matrices.cholesky_factor_constrain, matrices.cholesky_factor_free

    def __init__(self, rows: int, columns: int | None = None, shape: int | Shape = ()) -> None:
        rows = self._checked_size("rows", rows, 1)
        columns = rows if columns is None else self._checked_size("columns", columns, 1)
        self._checked_size("rows", rows, columns)
        free = columns * (columns + 1) // 2 + (rows - columns) * columns
        super().__init__((*_shape(shape), rows, columns), (*_shape(shape), free), M=rows, N=columns)
