"""The observations of a `Model`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from varmat.core.errors import ShapeError
from varmat.functions.missing import with_missing
from varmat.models.labels import labelled, names_of
from varmat.typing import Function, Operand

if TYPE_CHECKING:
    from varmat.distributions import Distribution
    from varmat.transforms import Transform

__all__ = ["observed"]


class Observed:
    """Observations and their distribution; made by `varmat.observed`.

    Attributes
    ----------
    y : ndarray
    distribution : Distribution or callable
    names, labels : sequence
        Of the dimensions; None for those without.
    missing : callable or None
        Makes a parameter of a shape.
    """

    def __init__(
        self,
        y: Operand,
        distribution: Distribution | Function,
        dims: Sequence[str | None],
        missing: Function | None,
    ) -> None:
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
            raise TypeError(
                f"observed: y is an array of {self.y.dtype}, but must be one of real numbers!"
            )

    def replaced(self, y: Operand) -> Observed:
        """Other observations of the same distribution. Dimensions keep their names, and their
        labels if the shape is the same and there are no others.
        """
        made = Observed(y, self.distribution, self.names if all(self.names) else (), self.missing)
        if not made.labels and made.y.shape == self.y.shape:
            made.labels = self.labels
        return made


def observed(
    y: Operand,
    distribution: Distribution | Function,
    *,
    dims: str | Sequence[str] = (),
    missing: Callable[[int], Transform] | None = None,
) -> Observed:
    """Observations of a `Model`, and their distribution.

    Parameters
    ----------
    y : array_like, pandas.Series, pandas.DataFrame or xarray.DataArray
        Labels and names of dimensions are taken from pandas and xarray.
    distribution : varmat.distributions.Distribution or callable
        The distribution, or a function that returns it and is called with the parameters, named
        values and data that its own parameters name.
    dims : str or sequence of str
        The names of the dimensions.
    missing : callable, optional
        Makes a parameter of the observations that are nan, masked, None or `NA`, from their number:
        `varmat.real`, or `varmat.positive`. It is called after them, ``y_missing``. By default
        these are refused.

    Returns
    -------
    Observed

    Raises
    ------
    TypeError
        If `y` is not an array of real numbers.

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
    return Observed(y, distribution, names_of(dims), missing)
