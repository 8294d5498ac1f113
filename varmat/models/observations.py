"""The observations of a `Model`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from varmat.models.labels import names_of
from varmat.models.stated import Observed
from varmat.typing import Function, Operand

if TYPE_CHECKING:
    from varmat.distributions import Distribution
    from varmat.transforms import Transform

__all__ = ["observed"]


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
