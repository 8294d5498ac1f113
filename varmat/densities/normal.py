"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from varmat.core.errors import finite, positive
from varmat.core.operation import Saved
from varmat.densities.density import density, log, not_nan, standardised, summed

__all__ = ["normal_lpdf", "std_normal_lpdf"]

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


# With z = (y - mu) / sigma:  log p = -z**2 / 2 - log(sigma) - log(2 pi) / 2,
# d/dy = -z / sigma,  d/dmu = z / sigma,  d/dsigma = (z**2 - 1) / sigma.
# (With sigma = inf the value is -inf, as in Stan.)
@density(
    value_shows_domain=True,
    y=("Random variable", not_nan), mu=("Location parameter", finite), sigma=("Scale parameter", positive),
)
def normal_lpdf(y: Any, mu: Any, sigma: Any, size: int, keep: frozenset[str]) -> Any:
    """Log density of the normal distribution, summed over all elements.

    Parameters
    ----------
    y : array_like
        Random variable: any number that is not nan.
    mu : array_like
        Location parameter (the mean), finite.
    sigma : array_like
        Scale parameter (the standard deviation), positive.
    propto : bool, keyword only
        Drop the terms that depend on data only.

    Returns
    -------
    float or Var
        The sum over the elements to which the arguments broadcast; zero if there are none.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the arguments do not broadcast.

    Notes
    -----
    With :math:`z = (y - \\mu) / \\sigma` the log density is :math:`-z^2 / 2 - \\log \\sigma - \\log(2 \\pi) / 2`, with the
    derivatives :math:`-z / \\sigma`, :math:`z / \\sigma` and :math:`(z^2 - 1) / \\sigma`.

    References
    ----------
    Stan Functions Reference, section "Normal distribution".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> y = np.array([1.0, 2.0, 4.0])
    >>> round(vm.normal_lpdf(y, 2.0, 1.0), 12)
    -5.256815599614
    >>> vm.gradient(lambda mu: vm.normal_lpdf(y, mu, 1.0), 2.0)
    1.0
    """
    z = standardised(y, mu, sigma)
    value = -0.5 * summed((z, z), size)
    if "sigma" in keep:
        value -= summed((log(sigma),), size)
    if "constants" in keep:
        value -= size * HALF_LOG_TWO_PI
    return Saved(value, z=z)


@normal_lpdf.partials
def normal_partials(y: Any, mu: Any, sigma: Any, z: Any = None) -> Any:
    z = standardised(y, mu, sigma) if z is None else z
    inv = 1.0 / sigma
    # With one sigma for all, the sum of squares takes no temporary array.
    in_sigma = (lambda: [(z, z, inv), (-1.0, inv)]) if type(inv) is float else (lambda: [(z * z - 1.0, inv)])
    return (lambda: [(-1.0, z, inv)]), (lambda: [(z, inv)]), in_sigma


@density(value_shows_domain=True, y=("Random variable", not_nan))
def std_normal_lpdf(y: Any, size: int, keep: frozenset[str]) -> Any:
    """Log density of the standard normal distribution, summed over all elements.

    Parameters
    ----------
    y : array_like
        Random variable: any number that is not nan.
    propto : bool, keyword only
        Drop the constant.

    Returns
    -------
    float or Var
        The sum over the elements; zero if there are none.

    Raises
    ------
    DomainError
        If an element is nan.

    Notes
    -----
    The log density is :math:`-y^2 / 2 - \\log(2 \\pi) / 2`, with the derivative :math:`-y`.

    References
    ----------
    Stan Functions Reference, section "Standard normal distribution".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.std_normal_lpdf(0.0)
    -0.9189385332046727
    >>> vm.gradient(vm.std_normal_lpdf, np.array([1.0, -2.0]))
    array([-1.,  2.])
    """
    value = -0.5 * summed((y, y), size) if "y" in keep else 0.0
    return value - size * HALF_LOG_TWO_PI if "constants" in keep else value


@std_normal_lpdf.partials
def std_normal_partials(y: Any) -> Any:
    return (lambda: [(-1.0, y)],)
