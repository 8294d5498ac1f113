"""The observations of a `Model`, and the names and labels of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.data import data
from varmat.core.errors import DomainError, ShapeError
from varmat.functions.missing import refuse_missing, with_missing
from varmat.models.groups import code_names
from varmat.models.results import Labels
from varmat.typing import Function, Operand

if TYPE_CHECKING:
    from varmat.distributions.custom import Statement
    from varmat.transforms import Transform

__all__ = ["observed"]


def names_of(dims: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of dimensions as a tuple; a single name may be a string."""
    return (dims,) if isinstance(dims, str) else tuple(dims)


def labelled(x: Any) -> tuple[list[str | None], list[list[Any] | None]]:
    """Return names and labels of the dimensions of objects of xarray or pandas."""
    if hasattr(x, "dims") and hasattr(x, "coords"):
        return list(x.dims), [
            x.coords[d].values.tolist() if d in x.coords else None for d in x.dims
        ]
    if hasattr(x, "to_numpy") and hasattr(x, "iloc"):
        axes = [x.index, x.columns] if hasattr(x, "columns") else [x.index]
        return [axis.name for axis in axes], [axis.tolist() for axis in axes]
    return [], []


class Labelled:
    """The names and labels of the dimensions of a model: its own, and the ones of parameters,
    observations and data.
    """

    def __init__(
        self,
        data: dict[str, object],
        observed: Mapping[str, tuple[Sequence[object], list[list[object] | None]]],
        *parameters: Mapping[str, Transform],
        coords: Labels,
        dims: Mapping[str, str | Sequence[str]],
    ) -> None:
        # The labels of data that are names of groups, which become numbers.
        self.groups = code_names(data, coords)
        coords = {**self.groups, **coords}
        for name, x in data.items():
            refuse_missing(x, f"Model: {name}")
        result: dict[str, tuple[Sequence[Any], list[list[Any] | None]]]
        result = {name: labelled(x) for name, x in data.items()}
        result |= observed
        self.dims: dict[str, list[str]] = {
            name: list(names) for name, (names, _) in result.items() if names and all(names)
        }
        self.coords: dict[str, Sequence[Any]] = {}
        for name, names in self.dims.items():
            for dim, labels in zip(names, result[name][1], strict=False):
                if labels is not None:
                    self.coords[dim] = labels
        for name, item in {**parameters[0], **parameters[1]}.items():
            declaration = getattr(item, "declaration", None)
            if declaration and declaration.dims:
                self.dims[name] = list(declaration.dims)
        for name, some in coords.items():
            if not hasattr(some, "__iter__"):
                raise TypeError(
                    f"Model: coords of {name} is a {type(some).__name__}, but must be a sequence "
                    "of labels!"
                )
        self.coords |= {name: list(labels) for name, labels in coords.items()}
        self.dims |= {name: [*names_of(value)] for name, value in dims.items()}
        used = {dim for names in self.dims.values() for dim in names}
        for name in coords.keys() - used:
            # Labels that nothing has may be those of predictions, unless one misses some.
            for near in get_close_matches(name, used - self.coords.keys(), 1):
                raise TypeError(
                    f"Model: coords has {name!r}, which is not a dimension: did you mean {near!r}?"
                )

    def sized(self, parameters: Mapping[str, Transform]) -> dict[str, Transform]:
        """Return the parameters, with sizes where only names of dimensions were given."""
        result = dict(parameters)
        for name, parameter in parameters.items():
            declaration: Any = getattr(parameter, "declaration", None)
            outer = len(declaration.dims) - len(parameter.shape) if declaration else 0
            for dim in declaration.dims[:outer] if outer > 0 and not parameter.shape else ():
                if dim not in self.coords:
                    raise ShapeError(
                        f"Model: {name} has the dimension {dim} and no size, but must have one: "
                        f"give a size, or the labels of {dim}, as in coords={{{dim!r}: [...]}}!"
                    )
            if outer > 0 and all(dim in self.coords for dim in declaration.dims[:outer]):
                result[name] = declaration.make(
                    tuple(len(self.coords[d]) for d in declaration.dims[:outer])
                )
                result[name].declaration = declaration
        return result


# That missing observations are integrated out, by a distribution that can.
INTEGRATED = "integrated"


class Observed:
    """Observations and their distribution; made by `varmat.observed`.

    Attributes
    ----------
    y : ndarray
    distribution : Distribution or callable
    names, labels : sequence
        Names and labels of the dimensions; None for dimensions without.
    missing : callable, str or None
        Makes a parameter of a shape; or `INTEGRATED`.
    weights : ndarray or None
    """

    def __init__(
        self,
        y: Operand,
        distribution: Statement,
        dims: Sequence[str | None],
        missing: Function | str | None,
        weights: np.ndarray | None = None,
    ) -> None:
        if isinstance(missing, str) and missing != INTEGRATED:
            raise ValueError(
                f'observed: missing is {missing!r}, but must be "{INTEGRATED}" or a parameter such '
                "as varmat.real!"
            )
        if hasattr(y, "columns") and hasattr(y, "iloc") and np.shape(y)[1:] == (1,):
            y = y.iloc[:, 0]  # a table with one column
        self.weights = weights
        names, self.labels = labelled(y)
        self.names = list(dims) or names
        self.distribution, self.missing = distribution, missing
        try:
            self.y, _ = with_missing(y)
        except ValueError as error:
            raise ShapeError(
                f"observed: y is a {type(y).__name__} with parts of different shapes, but must be "
                "an array!"
            ) from error
        if self.y.dtype.kind not in "biuf":
            what, rule, remedy = f"an array of {self.y.dtype}", "one", ""
            if not self.y.ndim and not isinstance(y, (str, bytes)):
                what, rule = f"a {type(y).__name__}", "an array"
            if callable(y) or hasattr(y, "lpdf"):
                remedy = ": the distribution is the second argument"
            elif all(isinstance(x, str) for x in self.y.flat):
                remedy = ": varmat.groups(y).codes numbers the names of categories"
            raise TypeError(f"observed: y is {what}, but must be {rule} of real numbers{remedy}!")

    def replaced(self, y: object) -> Observed:
        """Return other observations of the same distribution. Dimensions keep their names, and
        their labels if the shape is the same and there are no others.
        """
        names = self.names if all(self.names) else ()
        result = Observed(y, self.distribution, names, self.missing, self.weights)
        if not result.labels and result.y.shape == self.y.shape:
            result.labels = self.labels
        return result


def observed(
    y: Operand,
    distribution: Statement,
    *,
    dims: str | Sequence[str] = (),
    missing: Callable[[int], Transform] | str | None = None,
    weights: Operand = None,
) -> Observed:
    """Declare observations of a `Model`, and their distribution.

    Parameters
    ----------
    y : array_like, pandas.Series, pandas.DataFrame or xarray.DataArray
        Labels and names of dimensions are taken from pandas and xarray. A table with one column is
        a vector.
    distribution : varmat.distributions.Distribution or callable
        The distribution, or a function that returns it and is called with the parameters, named
        values and data that its own parameters name. A density of your own is a distribution by
        `varmat.distributions.Custom`, or as the method `lpdf` of an object. A function may also
        return an array with the log density of each observation, which it gets under its name; such
        observations have a log-likelihood, but cannot be drawn.
    dims : str or sequence of str
        The names of the dimensions.
    missing : callable or str, optional
        Makes a parameter of the observations that are nan, masked, None or `NA`, from their number:
        `varmat.real`, or `varmat.positive`. It is called after them, ``y_missing``, and the results
        have ``y`` with the gaps filled, and the log-likelihood ``y_observed`` of each value that is
        there. Normal and Student t vectors count with their observed part; other vectors are
        left out if they have a gap. Or ``"integrated"``: the distribution
        integrates them out, as `LinearStateSpace` and `HiddenMarkov` do. By default they are
        refused.
    weights : array_like, optional
        Nonnegative numbers by which the log density of each observation is multiplied, also in the
        log-likelihood of results: how often it was made, or how much it counts. They broadcast with
        the observations. Simulated observations do not depend on them.

    Returns
    -------
    Observed

    Raises
    ------
    DomainError
        If a weight is below 0 or not finite.
    TypeError
        If `y` is not an array of real numbers, or there are both `weights` and `missing`.

    Examples
    --------
    >>> import numpy as np, varmat as vm, varmat.distributions as dist
    >>> model = vm.Model(
    ...     mu=vm.real(prior=dist.Normal(0.0, 5.0)),
    ...     y=vm.observed([2.0, np.nan, 4.0], lambda mu: dist.Normal(mu, 1.0), missing=vm.real),
    ... )
    >>> model.param_names()
    ['mu', 'y_missing.1']
    """
    if weights is not None:
        weights = np.asarray(data(weights, "observed: weights"))
        if not np.all((weights >= 0.0) & np.isfinite(weights)):
            raise DomainError(
                f"observed: weights are {weights!r}, but must be nonnegative finite numbers!"
            )
        if missing is not None:
            raise TypeError(
                "observed: weights and missing are both given, but must not be: weights belong "
                "to observations!"
            )
    return Observed(y, distribution, names_of(dims), missing, weights)
