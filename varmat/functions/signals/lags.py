"""Autocovariances and autocorrelations of series, by fast Fourier transforms.

Two products are each other's adjoints, for ``k = 0, ..., n - 1``: the lagged products ``sum over i
of x[i] y[i + k]``, and the convolution ``sum over i <= k of x[i] y[k - i]``."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import Domain
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_values, misfit
from varmat.typing import Adjoint, Operand, Plain, Result, array_valued

__all__ = ["autocorrelation", "autocovariance"]


def _transformed(x: Operand, y: Operand, conjugate: bool) -> Result:
    """Invert the product of two Fourier transforms, padded so that nothing wraps around."""
    n = x.shape[-1]
    size = 1 << (2 * n - 1).bit_length()
    first = np.fft.rfft(x, size)
    return np.fft.irfft((first.conj() if conjugate else first) * np.fft.rfft(y, size), size)[
        ..., :n
    ]


@operation(linear=True)
def lagged_products(x: Operand, y: Operand) -> Result:
    """Sum ``x[i] * y[i + k]`` over `i`, for ``k = 0, ..., n - 1``, for two vectors of `n`
    elements.
    """
    return _transformed(x, y, True)


@operation(linear=True)
def causal_convolution(x: Operand, y: Operand) -> Result:
    """Sum ``x[i] * y[k - i]`` over ``i <= k``, for ``k = 0, ..., n - 1``, for two vectors of `n`
    elements.
    """
    return _transformed(x, y, False)


@lagged_products.reverse
def lagged_products_reverse(g: Adjoint, r: Plain, x: Plain, y: Plain) -> Adjoint:
    return lambda: lagged_products.function(g, y), lambda: causal_convolution.function(g, x)


@causal_convolution.reverse
def causal_convolution_reverse(g: Adjoint, r: Plain, x: Plain, y: Plain) -> Adjoint:
    return lambda: lagged_products.function(y, g), lambda: lagged_products.function(x, g)


_finite = Domain("finite", np.isfinite)


@array_valued
def autocovariance(y: Operand) -> Result:
    """Compute the autocovariances of a series, for all lags.

    Parameters
    ----------
    y : array_like, shape (n,)
        The series; not empty.

    Returns
    -------
    VarMat, shape (n,)
        For the lag `k` the mean over ``n - k`` values of `i` of ``(y[i] - m) * (y[i + k] - m)``,
        with the mean `m` of the series. (Where all sums are divided by `n`, as spectra have it,
        that is this times ``1 - np.arange(n) / n``.)

    Raises
    ------
    ShapeError
        If `y` is not a vector, or empty.
    DomainError
        If an element is not finite.

    Notes
    -----
    By fast Fourier transforms, so in a time of order ``n * log(n)``; the error of a sum is about
    1e-16 times the sum of lag 0. For the adjoint `g` of the result, ``y[i] - m`` has the sum
    over the lags `k` of ``g[k] / (n - k)`` times the sum of the neighbours ``y[i + k] - m`` and
    ``y[i - k] - m`` as its adjoint.

    References
    ----------
    Stan's `autocovariance`.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.autocovariance([1.0, 2.0, 4.0, 1.0])
    array([ 1.5       , -0.66666667, -1.        ,  1.        ])
    """
    return _autocovariance("autocovariance", y)


def _autocovariance(function: str, y: Operand) -> Result:
    y = as_operand(y, f"{function}: y")
    shape = np.shape(y)
    if len(shape) != 1 or not shape[0]:
        raise misfit(function, "y", shape, "be a vector that is not empty")
    check_values(lambda values: _finite.check(function, "y", values), y)
    centred = y - np.mean(y)
    return lagged_products(centred, centred) / (shape[0] - np.arange(shape[0]))


@array_valued
def autocorrelation(y: Operand) -> Result:
    """Compute the autocorrelations of a series: `autocovariance`, divided by its value for lag 0.

    Parameters
    ----------
    y : array_like, shape (n,)
        The series; not empty, and not constant.

    Returns
    -------
    VarMat, shape (n,)
        The first is 1.

    Raises
    ------
    ShapeError
        If `y` is not a vector, or empty.
    DomainError
        If an element is not finite.

    Notes
    -----
    nan for a constant series. The derivative is the derivative of the quotient.

    References
    ----------
    Stan's `autocorrelation`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.round(vm.autocorrelation([1.0, 2.0, 4.0, 1.0]), 6) + 0.0
    array([ 1.      , -0.444444, -0.666667,  0.666667])
    """
    covariances = _autocovariance("autocorrelation", y)
    with np.errstate(invalid="ignore"):
        return covariances / covariances[0]
