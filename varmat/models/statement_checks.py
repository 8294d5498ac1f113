"""The distributions of observations and of parameters: what they must be, and which of them is to
blame if the density is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.errors import DataError, ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.density import Density
from varmat.distributions import class_name
from varmat.distributions.custom import FromTerms, as_distribution
from varmat.distributions.distribution import Distribution
from varmat.distributions.rows import OfRow
from varmat.functions.checks import misfit
from varmat.models.functions import Named
from varmat.transforms import (
    CholeskyFactorCorr,
    CholeskyFactorCov,
    CorrMatrix,
    CovMatrix,
    Simplex,
    Transform,
)
from varmat.typing import Shape

if TYPE_CHECKING:
    from varmat.distributions.custom import Statement
    from varmat.typing import Operand, Result

# Distributions of vectors and matrices that satisfy a constraint, and what declares these.
_SETS: dict[str, tuple[str, tuple[type[Transform], ...]]] = {
    "Dirichlet": ("simplex", (Simplex,)),
    "LKJCorr": ("corr_matrix", (CorrMatrix,)),
    "LKJCorrCholesky": ("cholesky_corr", (CholeskyFactorCorr,)),
    "LKJCov": ("cov_matrix", (CovMatrix,)),
    "Wishart": ("cov_matrix", (CovMatrix, CorrMatrix)),
    "InvWishart": ("cov_matrix", (CovMatrix, CorrMatrix)),
    "WishartCholesky": ("cholesky_cov", (CholeskyFactorCov, CholeskyFactorCorr)),
    "InvWishartCholesky": ("cholesky_cov", (CholeskyFactorCov, CholeskyFactorCorr)),
}


def check_distribution(title: str, distribution: object) -> None:
    """Raise if `distribution` is not a distribution."""
    if isinstance(distribution, Distribution):
        return
    is_class = isinstance(distribution, type) and issubclass(distribution, Distribution)
    kind = f"the class {distribution.__name__}" if is_class else f"a {type(distribution).__name__}"  # type: ignore[attr-defined]
    raise TypeError(
        f"Model: {title} is {kind}, but must be a distribution such as "
        "varmat.distributions.Normal(0, 1), dist.Custom with a density of your own, or a function "
        "that returns one!"
    )


def refuse_distributions(result: Any) -> None:
    """Refuse a log density that returned distributions."""
    parts = result.values() if isinstance(result, Mapping) else result
    for x in parts if isinstance(result, (Mapping, tuple, list)) else (result,):
        if isinstance(x, Distribution):
            kind = type(x).__name__
            raise TypeError(
                f"Model: the log density returned a {kind}, but must return numbers: "
                f"{kind}(...).lpdf(y) of observations or parameters y!"
            )


def is_numeric(x: object) -> bool:
    """Return whether an object is a number or an array of numbers, also a variable."""
    return is_differentiable(x) or isinstance(x, (float, np.floating, np.ndarray))


def check_statement(
    title: str, distribution: Distribution, shape: Shape, transform: Transform | None = None
) -> None:
    """Refuse a distribution of another kind, or of more elements, than observations or a parameter.

    Parameters
    ----------
    title : str
    distribution : Distribution
    shape : tuple of int
        Shape of the observations, or of the parameter.
    transform : Transform, optional
        What declares the parameter.
    """
    if transform is not None:
        _check_set(title, distribution, transform)
    _check_factors(title, distribution)
    outer, event = distribution.extent()
    inner = shape[: max(0, len(shape) - event)]
    more = len(outer) - len(inner)
    for axis, size in enumerate(outer):
        there = inner[axis - more] if axis >= more else None
        if size in (1, there) and there is not None:
            continue
        counterpart = " and no counterpart" if there is None else f" instead of {there}"
        is_column = more and (1,) in (outer[1:], inner[1:])
        raise ShapeError(
            f"Model: {title} has shape {outer}, but must broadcast to shape {inner}: its axis "
            f"{axis} has length {size}{counterpart}!"
            + " A column x becomes a vector by np.ravel(x)."
            * bool(is_column)
        )


def _check_set(title: str, distribution: Distribution, transform: Transform) -> None:
    if distribution.is_discrete:
        raise TypeError(f"Model: {title} is {distribution!r}, but must be continuous!")
    name, transforms = _SETS.get(type(distribution).__name__, ("", ()))
    if transforms and not isinstance(transform, transforms):
        raise TypeError(
            f"Model: {title} is {distribution!r}, but must be one of a {type(transform).__name__}: "
            f"varmat.{name} declares parameters with this prior!"
        )


def _check_factors(title: str, distribution: Distribution) -> None:
    """Reject a covariance matrix in place of its Cholesky factor, because only a triangle would
    be read.
    """
    if type(distribution).__name__.endswith("Cholesky"):
        for name, x in distribution.parts().items():
            value: Any = getattr(x, "_val", x)
            if name.startswith("L") and np.ndim(value) > 1 and np.triu(value, 1).any():
                raise DataError(
                    f"Model: {title} has a matrix {name} with numbers above the diagonal, but must "
                    "have a Cholesky factor: declare it by varmat.cholesky_cov!"
                )


class Stated:
    """A distribution, or a function that makes it from parameters, named values and data.

    Parameters
    ----------
    title : str
        What it is, for messages.
    distribution : Distribution or callable
    given : Mapping
        Data.
    of : Transform or ndarray
        The parameter or the observations, whose kind and shape it must have.
    weights : ndarray, optional
        By which the log density of each observation is multiplied.
    """

    def __init__(
        self,
        title: str,
        distribution: Statement,
        data: Mapping[str, object],
        of: Transform | np.ndarray,
        weights: np.ndarray | None = None,
    ) -> None:
        self.weights = weights
        self.title: str = title
        self.fixed: Any = as_distribution(distribution)
        self.function: Named | None = None
        self._shape, self._transform = of.shape, of if isinstance(of, Transform) else None
        self._checked: set[tuple[Any, ...] | None] = set()
        if isinstance(self.fixed, Density):
            name = class_name(self.fixed.name.split("_")[:-1])
            raise TypeError(
                f"Model: {title} is the density {self.fixed.name}, but must be the distribution: "
                f"varmat.distributions.{name}!"
            )
        if callable(self.fixed) and not isinstance(self.fixed, type):
            self.function = Named(title, self.fixed, data, by_dict=False)
        else:
            self._check(self.fixed)

    def _check(self, distribution: Any) -> None:
        check_distribution(self.title, distribution)
        check_statement(self.title, distribution, self._shape, self._transform)

    @property
    def names(self) -> tuple[str, ...]:
        """On what it depends."""
        return self.function.names if self.function else ()

    def at(self, values: dict[str, Operand]) -> Distribution:
        """Return the distribution where parameters have these values."""
        if self.function is None:
            fixed: Distribution = self.fixed
            return fixed
        result: Distribution = self.function(values)
        # A check takes as long as a small density, so that it is not made again for equal shapes.
        seen = self._seen(result) if isinstance(result, OfRow) else None
        if seen is None or seen not in self._checked:
            result = as_distribution(result)
            if self._transform is None and is_numeric(result):
                return FromTerms(self.title, result, self._shape)
            self._check(result)
            self._checked.add(seen)
        return result

    def for_prediction(self, values: dict[str, object]) -> tuple[Distribution, Shape]:
        """Return the distribution for other data, and the shape of the observations that it has."""
        result = self.fixed if self.function is None else as_distribution(self.function(values))
        if is_numeric(result):
            result = FromTerms(self.title, result, np.shape(result))
        check_distribution(self.title, result)
        outer = result.extent()[0]
        return result, outer or self._shape[: len(self._shape) - result.event]

    @staticmethod
    def _seen(result: OfRow) -> tuple[Any, ...]:
        return (type(result), *[getattr(x, "shape", type(x)) for x in result.parameters.values()])

    def log_density(self, values: dict[str, object], y: object, propto: bool) -> Result:
        """Return the log density of observations or of a parameter.

        A function may choose by parameters what it makes, so all terms count.
        """
        distribution = self.at(values)
        if distribution.is_discrete and self._transform is None and is_differentiable(y):
            raise TypeError(
                f"Model: {self.title} is {distribution!r}, and some of the observations are "
                "missing, but must not be: discrete ones have no derivative. Leave them out, or "
                "sum over them with varmat.discrete!"
            )
        try:
            if self.weights is not None:
                return np.sum(self.weighted(distribution.lpdf.pointwise(y)))
            return distribution.lpdf(y, propto=propto and self.function is None)
        except DataError as error:
            raise DataError(f"Model: {self.title}: {error}") from None

    def pointwise(self, values: dict[str, object], y: object) -> Result:
        """Return the log density of each observation."""
        return self.weighted(self.at(values).lpdf.pointwise(y))

    def weighted(self, terms: Operand) -> Result:
        """Log densities times the weights of the observations."""
        w = self.weights
        if w is None:
            return terms
        shape = np.shape(terms)
        pairs = zip(w.shape[::-1], shape[::-1], strict=False)
        if w.ndim > len(shape) or any(n not in (1, size) for n, size in pairs):
            rule = f"broadcast to shape {shape}"
            raise misfit("Model", f"the weights in {self.title}", w.shape, rule)
        # A weight of 0 leaves out observations that are impossible too.
        return w * (terms if np.all(w) else np.where(w > 0.0, terms, 0.0))


# --- where the density is zero ---


def check_possible(name: str, distribution: Distribution, y: np.ndarray) -> None:
    """Refuse observations that a distribution without parameters never has: they would be dropped
    with all that is constant.
    """
    with np.errstate(all="ignore"):
        zero = np.isneginf(np.asarray(distribution.lpdf.pointwise(y)))
    if np.any(zero):
        raise DataError(f"Model: {named_element(name, y, zero)}, but must be possible!")


def named_element(name: str, y: np.ndarray, zero: np.ndarray) -> str:
    """Name the first element whose density is zero."""
    index = np.argwhere(zero)[0]
    place = f"[{', '.join(map(str, index))}]" if len(index) else ""
    return f"{name}{place} is {y[tuple(index)]!s:.60}, where the density is 0"


def better_declaration(prior: Distribution, x: np.ndarray) -> str:
    """Suggest how to declare a parameter in the set of its prior."""
    kind, parts = type(prior).__name__, prior.parts()
    if kind == "Uniform":
        return f": declare it by varmat.interval({parts['alpha']}, {parts['beta']})"
    if kind.startswith("Beta"):
        return ": declare it by varmat.interval(0, 1)"
    return ": declare it by varmat.positive()" if np.any(x < 0) else ""
