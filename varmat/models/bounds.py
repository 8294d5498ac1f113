"""Bounds of a parameter that depend on other parameters or on data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import final

from varmat.core.errors import ShapeError
from varmat.distributions.distribution import Distribution
from varmat.functions.missing import refuse_missing
from varmat.transforms import Transform
from varmat.typing import Function, Index, Operand, Result, Shape


class BoundFunction:
    """A bound that is a function, called with the values that its parameters name.

    Attributes
    ----------
    needed, optional : list of str
        The names of its parameters without and with defaults.
    """

    def __init__(self, function: Function) -> None:
        parameters = inspect.signature(function).parameters.values()
        self._function = function
        self.needed = [p.name for p in parameters if p.default is p.empty]
        self._by_name = [p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY]
        self.optional = [name for name in self._by_name if name not in self.needed]
        self._in_place = [name for name in self.needed if name not in self._by_name]

    def at(self, values: Mapping[str, Operand]) -> Result:
        """Return the bound where parameters and data have these values."""
        by_name = {name: values[name] for name in self._by_name if name in values}
        return self._function(*[values[name] for name in self._in_place], **by_name)


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
    unconstrained_shape : tuple of int, optional
        By default the same.
    """

    def __init__(
        self,
        make: Callable[..., Transform],
        bounds: tuple[object, ...],
        shape: Shape,
        unconstrained_shape: Shape | None = None,
    ) -> None:
        super().__init__(shape, shape if unconstrained_shape is None else unconstrained_shape)
        self.make = make
        self._bounds = [BoundFunction(bound) if callable(bound) else bound for bound in bounds]
        self.functions = [bound for bound in self._bounds if isinstance(bound, BoundFunction)]

    def at(self, values: Mapping[str, Operand]) -> Transform:
        """Return the transform where the parameters before it have these values."""
        bounds = (
            bound.at(values) if isinstance(bound, BoundFunction) else bound
            for bound in self._bounds
        )
        return self.make(*bounds, self.shape)

    def _constrain(self, x: object, jacobian: bool) -> Result:
        names = ", ".join(name for function in self.functions for name in function.needed)
        raise TypeError(f"the bounds depend on {names}: use this transform in a varmat.Model")

    def _unconstrain(self, y: object) -> Result:
        return self._constrain(y, False)


def checked_shape(function: str, shape: tuple[Index, ...]) -> Shape:
    if len(shape) == 1 and isinstance(shape[0], tuple):  # one tuple, as NumPy's functions take it
        (shape,) = shape
    for n in shape:
        if isinstance(n, bool) or not hasattr(n, "__index__") or n.__index__() < 0:
            is_prior = isinstance(n, Distribution) or callable(n)
            raise ShapeError(
                f"{function}: a size is {n!r}, but must be a nonnegative integer"
                + ("!" if not is_prior else ": the prior has a name, as in prior=...!")
            )
    return tuple(n.__index__() for n in shape)


def with_bounds(
    make: Callable[..., Transform], bounds: tuple[object, ...], shape: Shape
) -> Transform:
    """Make a transform of this shape whose bounds may be functions."""
    for bound in bounds:
        refuse_missing(bound, f"{make.__name__}: a bound")
    return Dependent(make, bounds, shape) if any(map(callable, bounds)) else make(*bounds, shape)
