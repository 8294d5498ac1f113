"""Distributions of your own: of plain functions, or of an object with their methods."""

from __future__ import annotations

import inspect
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.errors import ShapeError
from varmat.distributions.distribution import Distribution
from varmat.distributions.terms import DensityTerms, of_log, total

if TYPE_CHECKING:
    from typing import Protocol

    from varmat.typing import Function, Operand, Plain, Result, Shape

    class WithLpdf(Protocol):
        def lpdf(self, y: Any, /) -> Any: ...

    class WithLpmf(Protocol):
        def lpmf(self, y: Any, /) -> Any: ...

    # Types that a parameter or observations may state.
    Statement = Distribution | WithLpdf | WithLpmf | Function

__all__ = ["Custom", "as_distribution"]


class Custom(Distribution):
    """A distribution with a density of your own.

    Parameters
    ----------
    lpdf : callable
        The log density or log mass, called as ``lpdf(y, *parameters)``. It must return one number
        for each observation.
    *parameters : array_like
        May be variables.
    rng : callable, optional
        Draws, called as ``rng(*parameters, rng=generator, size=shape)``; `shape` is None or
        the shape of the draws. Needed by predictive draws.
    cdf, lcdf, lccdf : callable, optional
        The distribution function, its logarithm, and the logarithm of the probability above an
        observation, called as `lpdf` is. `lcdf` follows from `cdf`. Truncated and censored
        distributions need `lccdf` and one of the others.
    is_discrete : bool
        Whether the observations are integers.
    event : int
        The number of axes of one observation: 1 for a density of vectors, 0 for one of numbers.

    Raises
    ------
    TypeError
        If something that must be a function is not.
    ShapeError
        If the density, or `rng`, returns another shape than one number for each observation.

    Notes
    -----
    The functions are differentiated and recorded as any other, so they should use NumPy and varmat.
    They may be varmat's own, such as `varmat.normal_lpdf`. All terms of the density count, also
    where a model drops constant terms.

    Instead of a `Custom`, models take any object with a method ``lpdf(y)`` or ``lpmf(y)`` that
    returns one number for each observation. It may also have ``rng(generator, size)``, ``cdf(y)``,
    ``lcdf(y)``, ``lccdf(y)`` and the attribute `event`.

    Examples
    --------
    >>> import functools, numpy as np, varmat.distributions as dist
    >>> def lomax_lpdf(y, alpha, scale):
    ...     return np.log(alpha / scale) - (alpha + 1.0) * np.log1p(y / scale)
    >>> def lomax_rng(alpha, scale, rng, size):
    ...     return scale * rng.pareto(alpha, size)
    >>> Lomax = functools.partial(dist.Custom, lomax_lpdf, rng=lomax_rng)
    >>> round(Lomax(2.0, 3.0).lpdf([0.5, 4.0]), 12)
    -3.81527583686
    >>> Lomax(2.0, 3.0).rng(1, size=3).shape
    (3,)
    """

    def __init__(
        self, lpdf: Function, *parameters: Operand, rng: Function | None = None,
        cdf: Function | None = None, lcdf: Function | None = None, lccdf: Function | None = None,
        is_discrete: bool = False, event: int = 0,
    ) -> None:  # fmt: skip
        functions = {"lpdf": lpdf, "rng": rng, "cdf": cdf, "lcdf": lcdf, "lccdf": lccdf}
        for title, x in functions.items():
            if not callable(x) and (x is not None or title == "lpdf"):
                raise TypeError(
                    f"dist.Custom: {title} is a {type(x).__name__}, but must be a function!"
                )
        self.parameters = tuple(np.asarray(x) if isinstance(x, list) else x for x in parameters)
        if lcdf is None and cdf is not None:
            functions["lcdf"] = partial(_log_of, cdf)
        self.row = _Row(functions, is_discrete)
        self._rng, self._event = rng, event

    @property
    def is_discrete(self) -> bool:
        return bool(self.row.discrete)

    @property
    def event(self) -> int:
        return self._event

    def _each(self, y: Operand) -> Result:
        return self._terms(y, broadcasts=True)

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        return total(self._terms(y, broadcasts=False))

    def _terms(self, y: Operand, broadcasts: bool) -> Result:
        """Return the log density of each observation. Parameters may broadcast beyond observations
        only where a mixture or a hidden Markov model has them broadcast.
        """
        y = np.asarray(y) if isinstance(y, (list, tuple)) else y
        terms = self.row.pointwise(y, *self.parameters)
        shape, requested = np.shape(terms), np.shape(y)[: np.ndim(y) - self.event]
        if shape != requested and not (broadcasts and _broadcasts(shape, requested)):
            raise ShapeError(
                f"dist.Custom: {self.row.name} returns shape {shape} for y of shape {np.shape(y)}, "
                f"but must return one number for each observation, so shape {requested}: give "
                "event=1 if one observation is a vector!"
            )
        return terms

    def _missing(self, name: str, of: str) -> TypeError:
        return TypeError(f"dist.Custom: {name} is missing, but must be given for {of} of {self!r}!")

    def cumulative(self, name: str) -> DensityTerms:
        source = "lcdf" if name == "cdf" else name
        x = self.row.functions[source]
        if x is None:
            raise self._missing(name, "probabilities")
        return of_log(
            name, lambda y: x(np.asarray(y) if isinstance(y, list) else y, *self.parameters)
        )

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        if self._rng is None:
            raise self._missing("rng", "draws")
        x = self._rng(*self.parameters, rng=rng, size=size)
        shape = np.shape(x)
        if size is not None and shape[: len(shape) - self.event] != size:
            raise ShapeError(
                f"dist.Custom: rng returns shape {shape} for size {size}, but must return a draw "
                "for each!"
            )
        return x

    def as_density(self) -> tuple[_Row, tuple[Operand, ...]]:
        return self.row, self.parameters

    def parts(self) -> dict[str, Operand]:
        return {f"parameter {k}": x for k, x in enumerate(self.parameters, 1)}

    def __repr__(self) -> str:
        shown = (
            f"<{type(x).__name__} {np.shape(x)}>" if np.ndim(x) else repr(x)
            for x in self.parameters
        )
        return f"Custom({', '.join([self.row.name, *shown])})"


class FromTerms(Distribution):
    """Observations whose log densities are known, but not their distribution.

    Parameters
    ----------
    title : str
        What they are, for messages.
    terms : array_like
        The log density of each observation.
    shape : tuple of int
        The shape of the observations: first the axes of the terms, then those of one observation.
    """

    def __init__(self, title: str, terms: Operand, shape: Shape) -> None:
        axes = np.ndim(terms)
        if np.shape(terms) != shape[:axes] or (shape and not axes):
            raise ShapeError(
                f"Model: {title} is a function that returns log densities of shape "
                f"{np.shape(terms)}, but must return one for each observation, so shape {shape}: "
                "a density such as varmat.normal_lpdf returns them by its attribute pointwise!"
            )
        self._title, self._terms, self._event = title, terms, len(shape) - axes

    @property
    def event(self) -> int:
        return self._event

    @property
    def is_discrete(self) -> bool:
        return False

    def _each(self, y: Operand) -> Result:
        return self._terms

    def cumulative(self, name: str) -> DensityTerms:
        raise TypeError(f"Model: {self._title} is a function of log densities, without a {name}!")

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        raise TypeError(
            f"Model: {self._title} is a function that returns log densities, but must return a "
            "distribution for draws, such as varmat.distributions.Custom with rng!"
        )

    def parts(self) -> dict[str, Operand]:
        return {"terms": self._terms}


class _Row:
    """Functions under the names that rows of the table of densities have, for truncation."""

    arguments = MappingProxyType({"y": ("Observations", None)})
    parameters = ()
    __signature__ = inspect.Signature()

    def __init__(self, functions: dict[str, Any], is_discrete: bool) -> None:
        lpdf = functions["lpdf"]
        self.functions = {name: f and partial(_each, f) for name, f in functions.items()}
        self.pointwise = self.functions["lpdf"]
        self.name = getattr(lpdf, "__qualname__", type(lpdf).__name__).rpartition(".<locals>.")[2]
        self.discrete = frozenset(self.arguments if is_discrete else ())
        tails = [self.functions[name] for name in ("lcdf", "lccdf")]
        if all(tails):
            self.lcdf, self.lccdf = (DensityTerms(partial(_summed, f), f) for f in tails)

    def __call__(self, *args: Operand) -> Result:
        return total(self.pointwise(*args))

    def __repr__(self) -> str:
        missing = [name for name in ("lcdf", "lccdf") if not self.functions[name]]
        return f"dist.Custom({self.name})" + f" without {' and '.join(missing)}" * bool(missing)


def _summed(function: Function, *args: Operand) -> Result:
    return total(function(*args))


def _log_of(function: Function, *args: Operand) -> Result:
    return np.log(_each(function, *args))


def _each(function: Function, *args: Operand) -> Result:
    """Return a number for each observation; varmat's functions are sums, but have `pointwise`."""
    return getattr(function, "pointwise", function)(*args)


def _broadcasts(shape: Shape, requested: Shape) -> bool:
    """Return whether one observation is wanted, or lengths differ only where `requested` has 1."""
    alike = all(n in (1, m) for m, n in zip(shape, requested, strict=False))
    return not requested or (len(shape) == len(requested) and alike)


def _drawn_by(method: Function, *, rng: Operand, size: Shape | None) -> Plain:
    return method(rng, size)


def as_distribution(result: Any) -> Any:
    """Make a distribution of an object with a log density as a method; others are returned."""
    if isinstance(result, (Distribution, type)):
        return result
    name = next((name for name in ("lpdf", "lpmf") if callable(getattr(result, name, None))), "")
    if not name:
        return result
    others = {x: getattr(result, x, None) for x in ("cdf", "lcdf", "lccdf")}
    draw = getattr(result, "rng", None)
    return Custom(
        getattr(result, name), rng=draw and partial(_drawn_by, draw), **others,
        is_discrete=name == "lpmf", event=getattr(result, "event", 0),
    )  # fmt: skip
