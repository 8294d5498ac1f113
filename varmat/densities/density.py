"""What all densities share: arguments and their domains, dropped constants, broadcasting, sums of products.

    @density(y=("Random variable", not_nan), mu=("Location parameter", finite), sigma=("Scale parameter", positive))
    def normal_lpdf(y, mu, sigma, size, keep):          # floats and arrays, number of elements
        "docstring"
        z = standardised(y, mu, sigma)
        value = -0.5 * summed((z, z), size)
        if "sigma" in keep:                             # a term is dropped if all on which it depends is data
            value -= summed((log(sigma),), size)
        if "constants" in keep:
            value -= size * HALF_LOG_TWO_PI
        return Saved(value, z=z)

    @normal_lpdf.partials
    def normal_partials(y, mu, sigma, z=None):          # per argument the elementwise derivative: a sum of products
        z = standardised(y, mu, sigma) if z is None else z
        inv = 1.0 / sigma
        return (lambda: [(-1.0, z, inv)]), (lambda: [(z, inv)]), (lambda: [(z, z, inv), (-1.0, inv)])

A derivative is a list of terms and a term a tuple of factors, not their product, because who needs it knows what to make of
them: for a scalar parameter two arrays become one inner product, a number is applied after the sum, and a term without arrays is
multiplied by the number of elements; for an array the products are formed in place. The partials are written with differentiable
functions: on plain values they are the reverse rule, on variables and duals the tangent rule.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from varmat.core.errors import Domain, ShapeError
from varmat.core.operation import Operation, Saved, is_differentiable, operation

# In Stan's words; on floats and arrays alike.
not_nan = Domain("not nan", lambda x: x == x)

Factors = tuple[Any, ...]
Derivative = Callable[[], list[Factors]]
_sum = np.add.reduce


def log(x: Any) -> Any:
    """The logarithm of a positive float, or of an array or variable."""
    return math.log(x) if type(x) is float and x > 0 else np.log(x)


def standardised(y: Any, mu: Any, sigma: Any) -> Any:
    """``(y - mu) / sigma`` without a second array."""
    z = y - mu
    if type(z) is np.ndarray and (type(sigma) is float or (type(sigma) is np.ndarray and sigma.shape == z.shape)):
        return np.divide(z, sigma, z)
    return z / sigma


class Density:
    """A log density or log mass: a function of observations and parameters, summed over their elements; made by `density`.

    Attributes
    ----------
    operation : Operation
        The differentiable operation behind it.
    arguments : dict
        Name of an argument -> its title in messages and its domain.
    """

    def __init__(self, function: Callable[..., Any], arguments: dict[str, tuple[str, Domain]], value_shows_domain: bool) -> None:
        update_wrapper(self, function)
        self.name = function.__name__
        self.function = function
        self.arguments = arguments
        self.checks = tuple(arguments.values())
        self.all_terms = frozenset({*arguments, "constants"})
        self.value_shows_domain = value_shows_domain
        self._partials: Any = None
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in arguments]
        propto = inspect.Parameter("propto", inspect.Parameter.KEYWORD_ONLY, default=False)
        self.__signature__ = inspect.Signature([*parameters, propto])
        self.operation = self._operation(parameters)

    def _operation(self, parameters: list[inspect.Parameter]) -> Operation:
        def value(*values: Any, keep: frozenset[str] | None = None) -> Any:
            return self._value(values, keep)

        update_wrapper(value, self.function)
        keep = inspect.Parameter("keep", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
        value.__signature__ = inspect.Signature([*parameters, keep])  # type: ignore[attr-defined]
        op = operation()(value)
        op.reverse(self._reverse)
        op.tangent(self._tangent)
        return op

    def partials(self, rule: Any) -> Any:
        """Decorator: the elementwise derivatives, a function of the arguments and of what the value function saved."""
        self._partials = rule
        return rule

    def __reduce__(self) -> str:
        # Pickled by name, as functions are.
        return self.name

    def __repr__(self) -> str:
        return f"<varmat density {self.name}{self.__signature__}>"

    def __call__(self, *args: Any, propto: bool = False, **named: Any) -> Any:
        if not propto:
            return self.operation(*args, **named)
        if named:
            args = self.__signature__.bind(*args, **named).args
        variable = frozenset(name for name, x in zip(self.arguments, args, strict=False) if is_differentiable(x))
        return self.operation(*args, keep=variable)

    def _value(self, values: Any, keep: frozenset[str] | None) -> Any:
        """The sum of the terms; with `keep` only of those that depend on one of these arguments."""
        shape: tuple[int, ...] = ()
        for (title, domain), x in zip(self.checks, values, strict=True):
            if type(x) is float:
                if domain.holds(x) is not True:
                    domain.check(self.name, title, x)
            elif not np.ndim(x):
                return self._value(tuple(float(v) if not np.ndim(v) else v for v in values), keep)
            elif x.shape != shape:
                shape = self._broadcast(values) if shape else x.shape
        size = math.prod(shape)
        # A finite value may be proof enough that the arrays are inside their domains: that saves a pass over each.
        late = self.value_shows_domain and keep is None and size
        if shape and not late:
            self._check(values)
        if not size or (keep is not None and not keep):
            return Saved(0.0, shape=shape)
        if shape:
            with np.errstate(all="ignore"):
                value = self.function(*values, size, self.all_terms if keep is None else keep)
        else:
            value = self.function(*values, size, self.all_terms if keep is None else keep)
        if type(value) is not Saved:
            value = Saved(value)
        if late and not math.isfinite(value.value):
            self._check(values)
        value.saved["shape"] = shape
        return value

    def _check(self, values: Any) -> None:
        for (title, domain), x in zip(self.checks, values, strict=True):
            domain.check(self.name, title, x)

    def _broadcast(self, values: Any) -> tuple[int, ...]:
        shape: tuple[int, ...] = ()
        for (title, _), x in zip(self.checks, values, strict=True):
            try:
                shape = np.broadcast_shapes(shape, np.shape(x))
            except ValueError:
                raise ShapeError(
                    f"{self.name}: {title} has shape {x.shape}, but must be of a shape that broadcasts with {shape}!"
                ) from None
        return shape

    def _reverse(self, g: Any, r: Any, *values: Any, shape: Any, keep: Any, **saved: Any) -> tuple[Any, ...]:
        size = math.prod(shape)
        return tuple([
            partial(_to_array, g, part, shape) if type(x) is np.ndarray else partial(_to_scalar, g, part, size)
            for part, x in zip(self._partials(*values, **saved), values, strict=True)
        ])

    def _tangent(self, r: Any, *values: Any, keep: Any) -> tuple[Any, ...]:
        size = math.prod(np.broadcast_shapes(*map(np.shape, values)))
        return tuple(_directional(part, size) for part in self._partials(*values))


def _factors(factors: Factors) -> tuple[float, list[np.ndarray]]:
    """The product of the numbers among the factors, and the arrays."""
    scale, arrays = 1.0, []
    for factor in factors:
        if type(factor) is float:
            scale *= factor
        elif type(factor) is np.ndarray and factor.ndim:
            arrays.append(factor)
        else:
            scale *= float(factor)
    return scale, arrays


def _product(arrays: list[np.ndarray], scale: float) -> Any:
    """A new array: the product of the arrays and a number."""
    if len(arrays) == 1:
        return np.multiply(arrays[0], scale)
    product: Any = arrays[0] * arrays[1]
    rest: Any = (*arrays[2:], scale)
    for factor in rest:
        if type(factor) is not float and factor.shape != product.shape:
            product = product * factor
        elif type(factor) is not float or factor != 1.0:
            product *= factor
    return product


def summed(factors: Factors, size: int) -> float:
    """The sum over `size` elements of a product of numbers and arrays, which are broadcast."""
    scale, arrays = _factors(factors)
    if not arrays:
        return scale * size
    product = arrays[0]
    if len(arrays) == 1:
        total = _sum(product, None)
    elif len(arrays) == 2 and product.shape == arrays[1].shape:
        total = product.ravel().dot(arrays[1].ravel())
    else:
        product = _product(arrays, 1.0)
        total = _sum(product, None)
    # What is constant along some axes counts as often as they are long.
    return scale * float(total) * (size // product.size)


def _to_scalar(g: float, part: Derivative, size: int) -> float:
    """The contribution to the adjoint of a scalar argument."""
    total = 0.0
    for term in part() if size else ():
        total += summed(term, size)
    return g * total


def _to_array(g: float, part: Derivative, shape: tuple[int, ...]) -> Any:
    """The contribution to the adjoint of an array argument, broadcast to `shape`."""
    total: Any = None
    for term in part():
        scale, arrays = _factors(term)
        product = _product(arrays, g * scale) if arrays else g * scale
        if total is None:
            total = product
        elif np.shape(total) == shape:
            total += product
        else:
            total = total + product
    return total if np.shape(total) == shape else np.broadcast_to(total, shape)


def _directional(part: Derivative, size: int) -> Callable[[Any], Any]:
    """The linear map from the tangent of an argument to that of the sum."""

    def push(t: Any) -> Any:
        total: Any = 0.0
        for term in part() if size else ():
            product = t
            for factor in term:
                product = factor * product
            shape = np.shape(product)
            total = total + (np.sum(product) if shape else product) * (size // math.prod(shape))
        return total

    return push


def density(value_shows_domain: bool = False, **arguments: tuple[str, Domain]) -> Callable[[Callable[..., Any]], Density]:
    """Make a density of a function on plain arrays.

    Parameters
    ----------
    value_shows_domain : bool
        Whether the log density is never finite with an argument outside its domain. Arrays are then checked only if it is not.
    **arguments : tuple of str and Domain
        For each argument, in order, its title in messages and its domain.

    Returns
    -------
    callable
        Decorator that turns a function into a `Density`, whose ``partials`` is the decorator for its derivatives. The function
        is called with a float or a float64 array for each argument, the number of elements to which they broadcast, and the names
        of what is to be kept: a term belongs into the sum if it depends on an argument that is among them, or if it is constant
        and "constants" is. It returns the log density, summed; wrapped in `Saved`, with keywords, it hands intermediate values
        over to the partials.
    """
    return lambda function: Density(function, arguments, value_shows_domain)
