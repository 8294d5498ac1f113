"""Transforms as objects: a set with its shape, the way to it from all of R^n, and the way back."""

from __future__ import annotations

from typing import final

import numpy as np

from varmat.transforms import (
    bounded,
    correlation_matrices,
    covariance_matrices,
    elementwise,
    ordered,
    simplexes,
    sum_to_zero,
    unit_vectors,
)
from varmat.transforms.transform import (
    ElementwiseTransform,
    FromFunctions,
    Squares,
    Transform,
    Vectors,
    _shape,
)
from varmat.typing import Operand, Result, Shape

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
    "UnitVector",
    "Upper",
]


# --- elementwise ---


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

    def _constrain(self, x: Operand, jacobian: bool) -> Result:
        return (x, 0.0) if jacobian else x

    def _unconstrain(self, y: Operand) -> Result:
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

    _functions = elementwise.positive_constrain, elementwise.positive_free

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

    def __init__(self, lb: object, shape: int | Shape = ()) -> None:
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

    def __init__(self, ub: object, shape: int | Shape = ()) -> None:
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

    def __init__(self, lb: object, ub: object, shape: int | Shape = ()) -> None:
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

    _functions = elementwise.prob_constrain, elementwise.prob_free

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

    _functions = elementwise.offset_multiplier_constrain, elementwise.offset_multiplier_free
    _finite = staticmethod(elementwise.affine)

    def __init__(
        self, offset: object = 0.0, multiplier: object = 1.0, shape: int | Shape = ()
    ) -> None:
        super().__init__(shape, offset, multiplier)


# --- vectors ---


@final
class Ordered(Vectors):
    """Vectors with ascending elements, by `ordered_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import Ordered
    >>> Ordered(3).constrain(np.zeros(3))
    array([0., 1., 2.])
    """

    _functions = ordered.ordered_constrain, ordered.ordered_free


@final
class PositiveOrdered(Vectors):
    """Vectors with positive, ascending elements, by `positive_ordered_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import PositiveOrdered
    >>> PositiveOrdered(3).constrain(np.zeros(3))
    array([1., 2., 3.])
    """

    _functions = ordered.positive_ordered_constrain, ordered.positive_ordered_free


@final
class Simplex(Vectors):
    """Vectors of nonnegative numbers with sum 1, by `simplex_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import Simplex
    >>> Simplex(4).constrain(np.zeros(3)).round(12)
    array([0.25, 0.25, 0.25, 0.25])
    """

    _functions = simplexes.simplex_constrain, simplexes.simplex_free
    _least, _surplus = 1, 1


@final
class SumToZero(Vectors):
    """Vectors with sum zero, by `sum_to_zero_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import SumToZero
    >>> SumToZero(2).constrain(np.array([np.sqrt(2.0)])).round(12)
    array([ 1., -1.])
    """

    _functions = sum_to_zero.sum_to_zero_constrain, sum_to_zero.sum_to_zero_free
    _least, _surplus = 1, 1


@final
class UnitVector(Vectors):
    """Vectors of length 1, by `unit_vector_constrain`.

    Parameters
    ----------
    size : int
        Number of elements of a vector.
    shape : int or tuple of int
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import UnitVector
    >>> UnitVector(2).constrain(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    _functions = unit_vectors.unit_vector_constrain, unit_vectors.unit_vector_free
    _least = 1


# --- matrices ---


@final
class CorrMatrix(Squares):
    """Correlation matrices, by `corr_matrix_constrain`.

    Parameters
    ----------
    size : int
        Number of rows of a matrix.
    shape : int or tuple of int
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import CorrMatrix
    >>> CorrMatrix(2).constrain(np.array([np.arctanh(0.6)]))
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    _functions = correlation_matrices.corr_matrix_constrain, correlation_matrices.corr_matrix_free
    _diagonal = False


@final
class CovMatrix(Squares):
    """Covariance matrices, by `cov_matrix_constrain`.

    Parameters
    ----------
    size : int
        Number of rows of a matrix.
    shape : int or tuple of int
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import CovMatrix
    >>> CovMatrix(2).constrain(np.array([0.0, 5.0, 0.0]))
    array([[ 1.,  5.],
           [ 5., 26.]])
    """

    _functions = covariance_matrices.cov_matrix_constrain, covariance_matrices.cov_matrix_free
    _diagonal = True


@final
class CholeskyFactorCorr(Squares):
    """Cholesky factors of correlation matrices, by `cholesky_corr_constrain`.

    Parameters
    ----------
    size : int
        Number of rows of a matrix.
    shape : int or tuple of int
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import CholeskyFactorCorr
    >>> CholeskyFactorCorr(2).constrain(np.array([np.arctanh(0.6)]))
    array([[1. , 0. ],
           [0.6, 0.8]])
    """

    _functions = (
        correlation_matrices.cholesky_corr_constrain,
        correlation_matrices.cholesky_corr_free,
    )
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
        Shape of an array of them.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.transforms import CholeskyFactorCov
    >>> CholeskyFactorCov(2).constrain(np.array([0.0, 5.0, 0.0]))
    array([[1., 0.],
           [5., 1.]])
    """

    _functions = (
        covariance_matrices.cholesky_factor_constrain,
        covariance_matrices.cholesky_factor_free,
    )

    def __init__(self, rows: int, columns: int | None = None, shape: int | Shape = ()) -> None:
        rows = self._checked_size("rows", rows, 0)
        columns = rows if columns is None else self._checked_size("columns", columns, 0)
        self._checked_size("rows", rows, columns)
        free = columns * (columns + 1) // 2 + (rows - columns) * columns
        super().__init__((*_shape(shape), rows, columns), (*_shape(shape), free), M=rows, N=columns)
