"""The abstract base of all transforms, and the base of transforms made from two functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import ClassVar

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import plain
from varmat.core.operation import as_operand
from varmat.core.variables import data
from varmat.functions.checks import check_integer, check_values, is_watched, misfit
from varmat.typing import Function, Operand, Result, Setting, Shape

__all__ = ["Transform"]


def _shape(shape: int | Shape) -> Shape:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


class Transform(ABC):
    """A differentiable map from all of R^n onto a set of arrays, and its inverse.

    Abstract: a subclass gives both shapes to ``__init__`` and defines `_constrain` and
    `_unconstrain`.

    Parameters
    ----------
    shape : tuple of int
        Shape of the constrained array.
    unconstrained_shape : tuple of int
        Shape of the unconstrained array.

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

    # Other properties of such a parameter that a model states.
    declaration: Setting = None

    def __init__(self, shape: Shape, unconstrained_shape: Shape) -> None:
        self.shape = shape
        self.unconstrained_shape = unconstrained_shape
        self.unconstrained_size = prod(unconstrained_shape)

    def constrain(self, x: Operand) -> Result:
        """Map an unconstrained value onto the set.

        Parameters
        ----------
        x : array_like or variable
            Its shape is ``unconstrained_shape``, or flat with ``unconstrained_size`` elements.

        Returns
        -------
        float or array, of shape ``shape``
        """
        return self._constrain(self._placed(x), False)

    def constrain_with_log_jacobian(self, x: Operand) -> tuple[Result, Result]:
        """Map an unconstrained value onto the set, and compute the logarithm of the absolute
        Jacobian determinant, a scalar.

        Parameters
        ----------
        x : array_like or variable
            Its shape is ``unconstrained_shape``, or flat with ``unconstrained_size`` elements.

        Returns
        -------
        y : of shape ``shape``
        log_jacobian : float or Var
        """
        result: tuple[Result, Result] = self._constrain(self._placed(x), True)
        return result

    def unconstrain(self, y: Operand) -> Result:
        """Map a plain constrained value to an unconstrained one.

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
            raise misfit(type(self).__name__, "y", np.shape(y), f"have shape {self.shape}")
        return self._unconstrain(y)

    @abstractmethod
    def _constrain(self, x: Operand, jacobian: bool) -> Result:
        """Map an `x` of the unconstrained shape, with the log-Jacobian if asked for."""

    @abstractmethod
    def _unconstrain(self, y: Operand) -> Result:
        """Invert the map at a plain `y` of the constrained shape; raise if it is not in the set."""

    def _placed(self, x: Operand) -> Result:
        """Return the argument, reshaped if it is flat."""
        if not isinstance(x, ArrayMethods):
            x = as_operand(x, f"{type(self).__name__}: x")
        shape = np.shape(x)
        if shape == self.unconstrained_shape:
            return x
        if shape == (self.unconstrained_size,):
            if self.unconstrained_shape:
                return np.reshape(x, self.unconstrained_shape)
            return float(x[0]) if type(x) is np.ndarray else x[0]
        flat = f"or be flat with {self.unconstrained_size} elements"
        raise misfit(
            type(self).__name__, "x", shape, f"have shape {self.unconstrained_shape}, {flat}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.shape}"


class FromFunctions(Transform):
    """A transform made from a pair of functions. Both take the bounds; the first takes sizes too.

    Abstract: a subclass names the functions.
    """

    _functions: tuple[Function, Function]

    def __init__(
        self, shape: Shape, unconstrained_shape: Shape, *bounds: object, **sizes: int
    ) -> None:
        super().__init__(shape, unconstrained_shape)
        self._bounds = bounds
        self._sizes = sizes

    @property
    def constraint(self) -> tuple[Result, tuple[Result, ...]]:
        """The function that constrains, and its bounds; sizes are not among them."""
        return self._functions[0], self._bounds

    def _constrain(self, x: Operand, jacobian: bool) -> Result:
        return self._functions[0](x, *self._bounds, **self._sizes, jacobian=jacobian)

    def _unconstrain(self, y: Operand) -> Result:
        return self._functions[1](y, *plain(self._bounds))

    def _checked_size(self, name: str, size: Operand, least: int) -> int:
        check_integer(type(self).__name__, name, size, least)
        # With NumPy's small integers the number of unconstrained elements could wrap around.
        return int(size)


class ElementwiseTransform(FromFunctions):
    """An elementwise transform; abstract."""

    # Replaces the first function if all bounds are finite.
    _finite: ClassVar[Function | None] = None

    def __init__(self, shape: int | Shape, *bounds: Operand) -> None:
        shape = _shape(shape)
        bounds = tuple(
            as_operand(bound, f"{type(self).__name__}: bound {i}")
            for i, bound in enumerate(bounds, 1)
        )
        super().__init__(shape, shape, *bounds)
        constrain = self._functions[0]

        def are_finite(*values: Operand) -> bool:
            return all(np.all(np.isfinite(value)) for value in values)

        # Bounds are checked here, not at each call. A recording checks them again in each run.
        constrain(data(np.zeros(shape)), *(bounds if is_watched(*bounds) else map(plain, bounds)))
        if check_values(are_finite, *bounds) and self._finite is not None:
            self._functions = self._finite, self._functions[1]

    def __repr__(self) -> str:
        shape = [f"shape={self.shape}"] if self.shape else []
        return f"{type(self).__name__}({', '.join([*map(repr, self._bounds), *shape])})"


class Vectors(FromFunctions):
    """Vectors, or an array of them along the last axis; abstract."""

    _least: ClassVar[int] = 0
    # The number of elements of a vector minus the number of free ones.
    _surplus: ClassVar[int] = 0

    def __init__(self, size: int, shape: int | Shape = ()) -> None:
        size = self._checked_size("size", size, self._least)
        super().__init__((*_shape(shape), size), (*_shape(shape), size - self._surplus))


class Squares(FromFunctions):
    """Square matrices, or an array of them along the last two axes; abstract."""

    # Whether the diagonal is free.
    _diagonal: ClassVar[bool]

    def __init__(self, size: int, shape: int | Shape = ()) -> None:
        size = self._checked_size("size", size, 0)
        free = size * (size + 1 if self._diagonal else size - 1) // 2
        super().__init__((*_shape(shape), size, size), (*_shape(shape), free), K=size)
