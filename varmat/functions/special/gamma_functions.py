"""Gamma and beta functions, factorials and binomial coefficients, as a table."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import positive
from varmat.core.errors import DomainError
from varmat.core.operation import as_operand, is_differentiable
from varmat.core.rules import ZERO
from varmat.functions.aliases import alias
from varmat.functions.checks import broadcastable, misfit
from varmat.functions.rows import formula, row
from varmat.functions.special import gamma_differences
from varmat.plain_arrays import special
from varmat.typing import Operand, elementwise_valued

__all__ = [
    "beta",
    "betaln",
    "binom",
    "binomial_coefficient_log",
    "falling_factorial",
    "gamma",
    "gammaln",
    "gammasgn",
    "lbeta",
    "lchoose",
    "lgamma",
    "lmgamma",
    "log_falling_factorial",
    "log_rising_factorial",
    "loggamma",
    "multigammaln",
    "poch",
    "rgamma",
    "rising_factorial",
    "tgamma",
]

# fmt: off
gammaln = row("gammaln", "g * digamma(x)", "Logarithm of the absolute value of the gamma function",
    lambda x: math.lgamma(x) if x > -math.inf else x, "log(abs(gamma(x)))",
    (0.5, 1e-10, 3.7, 150.0, 1e8, -2.3), -1.96351,
    source="DLMF 5.2.1, 5.2.2; SciPy", domain="not 0, -1, -2, ...")
lgamma = alias("lgamma", gammaln)
loggamma = row("loggamma", "g * digamma(x)", "Logarithm of the gamma function of a positive number",
    None, "log(gamma(x))", (0.5, 1e-10, 3.7, 150.0, 1e8), -1.96351,
    source="DLMF 5.2.1, 5.2.2; SciPy", domain="x > 0")
gamma = row("gamma", "g * r * digamma(x)", "Gamma function",
    math.gamma, "gamma(x)", (0.5, 1e-10, 3.7, 150.0, -2.3), -3.48023,
    source="DLMF 5.2.1, 5.2.2; SciPy", domain="not 0, -1, -2, ...")
tgamma = alias("tgamma", gamma)
rgamma = row("rgamma",
    "g * where(x < 0.5, gamma(1.0 - minimum(x, 0.5)) * (cos(pi * x) - sin(pi * x) * digamma(1.0 "
    "- minimum(x, 0.5)) / pi), -r * digamma(maximum(x, 0.5)))",
    "Reciprocal of the gamma function",
    None, "rgamma(x)", (0.5, 3.7, 150.0, -2.3, 1e-10), 1.10779, source="DLMF 5.2.1, 5.5.3; SciPy")
gammasgn = row("gammasgn", ZERO, "Sign of the gamma function",
    None, "sign(gamma(x))", (0.5, -2.3), 0.0, source="SciPy")
beta = row("beta", ("-g * r * zeta_difference(1.0, x, y)", "-g * r * zeta_difference(1.0, y, x)"),
    "Beta function ``gamma(x) gamma(y) / gamma(x + y)``",
    None, "beta(x, y)", ((0.5, 2.0), (3.0, 4.5), (1e-5, 1.0), (100.0, 2.5), (9e5, 0.3)), -3.55556,
    source="DLMF 5.12.1, 5.2.2; SciPy", domain="x > 0, y > 0",
    ufunc=formula(gamma_differences.beta), answers_for="beta")
betaln = row("betaln", ("-g * zeta_difference(1.0, x, y)", "-g * zeta_difference(1.0, y, x)"),
    "Logarithm of the absolute value of the beta function",
    gamma_differences.log_beta_of_numbers, "log(beta(x, y))", ((0.5, 2.0), (3.0, 4.5), (1e-5, 1.0),
    (100.0, 2.5), (9e5, 0.3), (3e4, 7e4), (1e8, 2.0), (2.0, 1e10)), -2.66667,
    source="DLMF 5.12.1, 5.2.2; SciPy", domain="x > 0, y > 0",
    ufunc=formula(gamma_differences.log_beta), answers_for="betaln")
lbeta = alias("lbeta", betaln)
poch = row("poch", ("g * r * zeta_difference(1.0, x, y)", "g * r * digamma(x + y)"),
    "Rising factorial ``gamma(x + y) / gamma(x)``",
    None, "gamma(x + y) / gamma(x)", ((0.5, 2.0), (3.5, 1.5), (20.0, 0.3)), 2.0,
    source="DLMF 5.2(iii); SciPy", domain="x > 0, x + y > 0")
rising_factorial = alias("rising_factorial", poch)
binom = row("binom", ("g * r * zeta_difference(1.0, x - y + 1.0, y)",
    "g * r * (digamma(x - y + 1.0) - digamma(y + 1.0))"),
    "Binomial coefficient, of real numbers",
    None, "binomial(x, y)", ((5.5, 2.0), (7.5, 3.25), (100.0, 4.5), (1e5, 3.3), (1e5, 30.0)), 5.0,
    source="DLMF 1.2(i), 5.2.2; SciPy", domain="x > -1, y > -1, x - y > -1",
    ufunc=formula(gamma_differences.binomial), answers_for="binom")
_FACTORIAL = "x > -1, x - y > -1"
lchoose = row("lchoose",
    ("g * zeta_difference(1.0, x - y + 1.0, y)", "g * (digamma(x - y + 1.0) - digamma(y + 1.0))"),
    "Logarithm of the binomial coefficient, of real numbers",
    None, "log(binomial(x, y))", ((5.5, 2.0), (7.5, 3.25), (100.0, 1.5), (1e5, 3.0), (1e8, 2.0)),
    0.40404,
    source="DLMF 1.2(i), 5.2.2; Stan Combinatorial functions", domain=_FACTORIAL + ", y > -1",
    ufunc=formula(gamma_differences.log_binomial))
binomial_coefficient_log = alias("binomial_coefficient_log", lchoose)
falling_factorial = row("falling_factorial",
    ("g * r * zeta_difference(1.0, x - y + 1.0, y)", "g * r * digamma(x - y + 1.0)"),
    "Falling factorial ``gamma(x + 1) / gamma(x - y + 1)``",
    None, "gamma(x + 1) / gamma(x - y + 1)", ((5.5, 2.0), (7.5, 3.25), (3.0, 0.0)), 10.0,
    source="DLMF 5.2(iii); Stan Combinatorial functions", domain=_FACTORIAL,
    ufunc=formula(lambda x, y: special.poch(x - y + 1.0, y)))
log_rising_factorial = row("log_rising_factorial",
    ("g * zeta_difference(1.0, x, y)", "g * digamma(x + y)"),
    "Logarithm of the rising factorial ``gamma(x + y) / gamma(x)``",
    gamma_differences.log_rising_of_numbers, "log(gamma(x + y) / gamma(x))",
    ((5.5, 2.0), (0.5, 3.25), (1e8, 2.0)), 0.335664,
    source="DLMF 5.2(iii); Stan Combinatorial functions", domain="x > 0, x + y > 0, y > -1",
    ufunc=formula(gamma_differences.log_rising))
log_falling_factorial = row("log_falling_factorial",
    ("g * zeta_difference(1.0, x - y + 1.0, y)", "g * digamma(x - y + 1.0)"),
    "Logarithm of the falling factorial ``gamma(x + 1) / gamma(x - y + 1)``",
    None, "log(gamma(x + 1) / gamma(x - y + 1))", ((5.5, 2.0), (7.5, 3.25), (1e8, 2.0)), 0.40404,
    source="DLMF 5.2(iii); Stan Combinatorial functions", domain=_FACTORIAL + ", y > -1",
    ufunc=formula(lambda x, y: gamma_differences.log_rising(x - y + 1.0, y)))
# fmt: on


@elementwise_valued
def multigammaln(a: Operand, d: int) -> Operand:
    """Logarithm of the multivariate gamma function of dimension d.

    Parameters
    ----------
    a : array_like of real numbers
        Greater than ``(d - 1) / 2``.
    d : int
        Dimension, 1 or more.

    Returns
    -------
    Var, VarMat or MatVar

    Raises
    ------
    DomainError
        If `d` is less than 1.
    TypeError
        If `d` is not an integer.

    Notes
    -----
    ``d (d - 1) / 4 log(pi) + sum over j = 0, ..., d - 1 of gammaln(a - j / 2)``, with the
    derivative of this sum. Stan's `lmgamma` takes the dimension first.

    References
    ----------
    * NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 35.3.
    * SciPy reference, `scipy.special.multigammaln`.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(2.5)
    >>> vm.multigammaln(x, 3).grad()
    >>> print(f"{x.adj:.6g}")
    1.16243
    """
    return _multigamma("multigammaln: the dimension d", a, d)


def _multigamma(title: str, a: Operand, d: Operand) -> Operand:
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)):
        raise TypeError(f"{title} is {d!r}, but must be an integer!")
    if d < 1:
        raise DomainError(f"{title} is {d!r}, but must be positive!")
    d = int(d)  # NumPy's integers wrap around
    total = d * (d - 1) / 4.0 * math.log(math.pi) + gammaln(a)
    for j in range(1, d):
        total = total + gammaln(a - 0.5 * j)
    return total


@elementwise_valued
def lmgamma(k: int, x: Operand) -> Operand:
    """Logarithm of the multivariate gamma function of dimension k: `multigammaln` with the
    dimension first.

    Parameters
    ----------
    k : int, or array_like of int
        Dimension, 1 or more; dimensions broadcast with `x`.
    x : array_like of real numbers
        Greater than ``(k - 1) / 2``.

    Returns
    -------
    Var, VarMat or MatVar

    Raises
    ------
    DomainError
        If `k` is less than 1.
    TypeError
        If `k` is not an integer.

    Notes
    -----
    The derivative is the sum of ``digamma(x - j / 2)`` over ``j = 0, ..., k - 1``.

    References
    ----------
    * NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 35.3.
    * Stan Functions Reference, "Combinatorial functions".

    Examples
    --------
    >>> import varmat as vm
    >>> print(f"{vm.lmgamma(3, 2.5):.6g}")
    1.881
    """
    if not np.ndim(k):
        return _multigamma("lmgamma: the dimension k", x, k)
    if is_differentiable(k):
        raise TypeError(
            f"lmgamma: the dimension k is a {type(k).__name__}, but must be an integer, or an "
            "array of them!"
        )
    dimensions, x = np.asarray(k), as_operand(x, "lmgamma: x")
    if dimensions.dtype.kind not in "iu" and dimensions.size:
        raise TypeError(
            f"lmgamma: the dimensions k have dtype {dimensions.dtype}, but must be integers!"
        )
    positive.check("lmgamma", "k", dimensions)
    if not broadcastable(dimensions.shape, np.shape(x)):
        raise misfit("lmgamma", "x", np.shape(x), f"broadcast with k, of shape {dimensions.shape}")
    total = dimensions * (dimensions - 1.0) / 4.0 * math.log(math.pi) + gammaln(x)
    for j in range(1, int(np.max(dimensions, initial=1))):
        within = dimensions > j
        total = total + np.where(within, gammaln(np.where(within, x - 0.5 * j, 1.0)), 0.0)
    return total
