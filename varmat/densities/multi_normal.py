"""The multivariate normal distribution, in three parameterisations, and the multivariate Student t
distribution.

Each parameterisation is a class that whitens residuals and makes the derivatives with respect to
the residuals and the matrix. The densities of a family differ in nothing else: the docstring of
its function serves all of them, with words of the parameterisation in braces.

The residuals of N observations are N rows. They are whitened with a lower Cholesky factor L by a
triangular solve with N right-hand sides. If N is large, a product with the inverse of L takes half
the time."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.domains import Domain, finite, positive
from varmat.core.errors import ShapeError
from varmat.core.operation import Saved
from varmat.densities.density import (
    HALF_LOG_TWO_PI,
    ZERO,
    KeptTerms,
    StructuredDensity,
    member,
    not_nan,
    possible,
)
from varmat.densities.domains import ScalarDomain, lower_factor, possible_value
from varmat.densities.scale_matrices import (
    Cholesky,
    Covariance,
    Precision,
    Scale,
    tangents,
    weighted,
)
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import is_held, misfit
from varmat.functions.linalg.symmetric_arguments import check_symmetric
from varmat.functions.special.gamma_functions import log_rising_factorial
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.programs.build.symbol import Symbol, number
from varmat.typing import Adjoint, Function, Operand, Result

__all__ = [
    "multi_normal_cholesky_lpdf",
    "multi_normal_lpdf",
    "multi_normal_prec_lpdf",
    "multi_student_t_cholesky_lpdf",
    "multi_student_t_lpdf",
]

LOG_TWO = math.log(2.0)
HALF_LOG_PI = 0.5 * math.log(math.pi)


def residuals(function: str, y: Operand, mu: Operand, title: str, k: int) -> Result:
    """Check the shapes and return ``y - mu``, in the shape to which both broadcast."""
    for name, x in (("Random variable", y), ("Location parameter", mu)):
        shape = np.shape(x)
        if shape[-1:] != (k,) and (shape or x is y):
            rule = f"{k} elements along its last axis, as many as {title} has rows"
            raise misfit(function, name, shape, f"have {rule}")
    try:
        return y - mu
    except ValueError:
        shapes = f"{np.shape(mu)}, but must broadcast with Random variable, of shape {np.shape(y)}"
        raise ShapeError(f"{function}: Location parameter has shape {shapes}!") from None


def whitened(scale: Operand, rows: Operand) -> Result:
    return scale.whiten(rows) if rows.size else rows


def parts(
    g: float,
    y: Operand,
    mu: Operand,
    scale: Operand,
    z: Operand,
    shape: tuple[int, ...],
    w: Operand = None,
) -> Result:
    """Return functions that compute the contributions to `y` and `mu`, from whitened residuals and
    the weights of the observations.
    """

    def of(x: Operand, g: float) -> Result:
        # If all observations share an argument, sum before the solve. In a program the solve is
        # that for the matrix.
        if z.ndim > 1 and np.ndim(x) < 2 and type(z) is not Symbol:
            return scale.pull(g * add_reduce(weighted(w, z), axis=0, keepdims=True)).reshape(-1)
        c = g * weighted(w, scale.pulled(z))
        return c if z.ndim == 1 else c.reshape(shape)

    return lambda: of(y, -g), lambda: of(mu, g)


below_infinity = Domain("below infinity", lambda x: x != math.inf)


def is_empty(r: Operand, d: Operand) -> bool:
    """Tell whether the gradient is zero: there is no observation, or an infinite one, at which runs
    of programs end.
    """
    if type(r) is Symbol:
        return False
    return not np.size(d) or (not is_held(possible, r) and not np.isfinite(plain(d)).all())


class Form(NamedTuple):
    """A density of a family: its name, the kind of its matrix, and all its arguments."""

    function: str
    kind: type[Covariance]
    arguments: dict[str, tuple[str, Domain]]

    def check(self, *values: object) -> None:
        """Raise an error for arguments outside their domains. A run of a program ends where the
        value is not finite, and so where elements are not.
        """
        for (title, domain), x in zip(self.arguments.values(), values, strict=True):
            if type(x) is not Symbol or domain not in (not_nan, finite):
                domain.check(self.function, title, x)


def _is_one(y: Operand, mu: Operand, matrix: Operand) -> bool:
    """Tell whether there is a single observation and all shapes fit."""
    shape = np.shape(y)
    return (
        len(shape) == 1
        and shape != (0,)
        and np.shape(matrix) == shape * 2
        and np.shape(mu) in ((), shape)
    )


# A single observation stays a vector, and its arguments are checked only if the value is not
# finite: that saves 10 us for a short vector.
def _normal(y: Operand, mu: Operand, matrix: Operand, keep: KeptTerms, form: Form) -> Result:
    """Compute the log density of the multivariate normal distribution with a given {given}, summed
    over the observations.

    Parameters
    ----------
    y : array_like, shape (..., K)
        Random variable: one observation, or one in each row; not nan.
    mu : array_like, shape (..., K), or scalar
        Location parameter: finite. It broadcasts with `y`.
    {matrix} : array_like, shape (K, K)
        {title}: {domain}.
    {propto}

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is infinite.

    {raises}

    Notes
    -----
    With :math:`d = y - \\mu` the log density of an observation is :math:`-\\tfrac12 (d^T
    \\Sigma^{{-1}} d + \\log\\det \\Sigma + K \\log 2 \\pi)`. The derivatives are
    :math:`\\mp\\Sigma^{{-1}} d` with respect to y and mu, and :math:`\\tfrac12 \\Sigma^{{-1}} (d
    d^T - \\Sigma) \\Sigma^{{-1}}` with respect to the covariance :math:`\\Sigma`{where}. The
    derivative with respect to {matrix} lies in its lower triangle, the only one that is read (see
    `varmat.functions.linalg.symmetric_arguments`). In SciPy ``scipy.stats.multivariate_normal(mu,
    {covariance})``.

    References
    ----------
    {references}

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> y, matrix = np.array([4.0, 3.0]), np.array({example})
    >>> vm.gradient(lambda mu: vm.{name}(y, mu, matrix), np.zeros(2))
    array([{result}])
    """
    kind = form.kind
    if one := _is_one(y, mu, matrix):
        n, k = 1, len(y)
        if kind is not Cholesky:
            check_symmetric(form.function, matrix, kind.title)
    else:
        form.check(y, mu, matrix)
    with np.errstate(all="ignore"):  # an infinite observation may give nan
        if one:
            d = y - mu
        else:
            k = len(matrix)
            d = residuals(form.function, y, mu, kind.title, k)
            n = math.prod(d.shape[:-1])
        scale = kind(form.function, matrix, n)
        z = scale.whiten(d) if one else whitened(scale, d.reshape(n, k))
        value = -0.5 * number(np.vdot(z, z))
        if form.kind.name in keep:
            value -= n * scale.half_log_determinant()
    is_traced = type(value) is Symbol
    if one and not (is_traced or math.isfinite(value)):
        form.check(y, mu, matrix)
    elif (one and kind is Cholesky) and (
        is_traced or not (form.kind.name in keep and np.count_nonzero(z) == k)
    ):
        # A bad factor makes the value infinite or nan, unless it meets a zero or the determinant is
        # dropped.
        lower_factor.check(form.function, kind.title, matrix)
    if "constants" in keep:
        value -= d.size * HALF_LOG_TWO_PI
    return Saved(possible_value(value), scale=scale, z=z, d=d)


def _normal_reverse(
    g: Adjoint,
    r: Operand,
    y: Operand,
    mu: Operand,
    matrix: Operand,
    keep: KeptTerms,
    scale: Operand,
    z: Operand,
    d: Operand,
) -> Result:
    if not (type(r) is float and math.isfinite(r) and d.size) and is_empty(r, d):
        return (lambda: ZERO,) * 3
    return *parts(g, y, mu, scale, z, d.shape), lambda: scale.gradient(
        z, g, 1 if z.ndim == 1 else len(z)
    )


def _normal_tangent(
    r: Operand, y: Operand, mu: Operand, matrix: Operand, keep: KeptTerms, scale: Operand
) -> Result:
    d = y - mu
    if is_empty(r, d):
        return (lambda t: 0.0,) * 3
    _, along, of_matrix = tangents(scale, matrix, d)
    return lambda t: -along(t), along, of_matrix


def _student(
    y: Operand, nu: float, mu: Operand, matrix: Operand, keep: KeptTerms, form: Form
) -> Result:
    """Compute the log density of the multivariate Student t distribution with a given {given},
    summed over the observations.

    Parameters
    ----------
    y : array_like, shape (..., K)
        Random variable: one observation, or one in each row; not nan.
    nu : scalar
        Degrees of freedom parameter: positive; with inf the distribution is the normal one.
    mu : array_like, shape (..., K), or scalar
        Location parameter: finite. It broadcasts with `y`.
    {matrix} : array_like, shape (K, K)
        {title}: {domain}.
    {propto}

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is infinite.

    {raises}

    Notes
    -----
    With :math:`q = (y - \\mu)^T \\Sigma^{{-1}} (y - \\mu)` the log density of an observation is
    :math:`\\log\\Gamma(\\tfrac{{\\nu + K}}2) - \\log\\Gamma(\\tfrac\\nu2) - \\tfrac12 (K \\log
    \\nu\\pi + \\log\\det\\Sigma) - \\tfrac{{\\nu + K}}2 \\log(1 + q / \\nu)`{where}. The
    derivatives equal the normal density's with observations weighted by :math:`(\\nu + K) /
    (\\nu + q)`. The derivative with respect to {matrix} lies in its lower triangle, the only one
    that is read (see `varmat.functions.linalg.symmetric_arguments`). In SciPy
    ``scipy.stats.multivariate_t(mu, {covariance}, nu)``.

    References
    ----------
    {references}

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> y, matrix = np.array([4.0, 3.0]), np.array({example})
    >>> vm.gradient(lambda mu: vm.{name}(y, 1.0, mu, matrix), np.zeros(2))
    array([{result}])
    """
    form.check(y, nu, mu, matrix)
    k = len(matrix)
    d = residuals(form.function, y, mu, form.kind.title, k)
    n, heavy = math.prod(d.shape[:-1]), is_held(below_infinity, nu)
    scale = form.kind(form.function, matrix, n)
    with np.errstate(all="ignore"):
        z = whitened(scale, d.reshape(n, k))
        q = np.einsum("ij,ij->i", z, z)
        value = -0.5 * ((nu + k) * add_reduce(np.log1p(q / nu)) if heavy else add_reduce(q))
    if "nu" in keep:
        value += n * (
            log_rising_factorial(0.5 * nu, 0.5 * k) - 0.5 * k * np.log(nu)
            if heavy
            else -0.5 * k * LOG_TWO
        )
    if form.kind.name in keep:
        value -= n * scale.half_log_determinant()
    if "constants" in keep:
        value -= d.size * HALF_LOG_PI
    return Saved(possible_value(value), scale=scale, z=z, d=d, q=q)


# The gradients equal the normal density's with observations weighted by w = (nu + K) / (nu + q).
# With respect to nu the terms -K / nu and w q / nu add up to (q - K) / (nu + q).
def _student_reverse(
    g: Adjoint,
    r: Operand,
    y: Operand,
    nu: Operand,
    mu: Operand,
    matrix: Operand,
    keep: KeptTerms,
    scale: Operand,
    z: Operand,
    d: Operand,
    q: Operand,
) -> Result:
    if is_empty(r, d):
        return (lambda: ZERO,) * 4
    k = len(matrix)
    w = ((nu + k) / (nu + q))[:, None] if is_held(below_infinity, nu) else None
    of_y, of_mu = parts(g, y, mu, scale, z, d.shape, w)
    return (of_y, lambda: g * _nu_slope(nu, q, k), of_mu, lambda: scale.gradient(z, g, len(q), w))


def _nu_slope(nu: Operand, q: Operand, k: int) -> Result:
    """Compute the derivative with respect to nu, from the squared norms q of whitened residuals;
    differentiable.
    """
    if not is_held(below_infinity, nu):
        return 0.0 * np.sum(q)
    x = (q - k) / (nu + q) - np.log1p(q / nu)
    return 0.5 * (np.sum(x) + len(q) * zeta_difference(1.0, 0.5 * nu, 0.5 * k))


def _student_tangent(
    r: Operand,
    y: Operand,
    nu: Operand,
    mu: Operand,
    matrix: Operand,
    keep: KeptTerms,
    scale: Operand,
) -> Result:
    d = y - mu
    if is_empty(r, d):
        return (lambda t: 0.0,) * 4
    k, heavy = np.shape(d)[-1], is_held(below_infinity, nu)
    q, along, of_matrix = tangents(
        scale, matrix, d, lambda q: (nu + k) / (nu + q) if heavy else np.ones(np.shape(q))
    )
    return lambda t: -along(t), lambda t: t * _nu_slope(nu, q, k), along, of_matrix


def _density(
    name: str,
    kind: type[Covariance],
    title: str,
    result: str,
    value: Function,
    reverse: Function,
    tangent: Function,
    **others: tuple[str, Domain],
) -> StructuredDensity:
    """Make the density of a family for one kind of matrix."""
    arguments = {
        "y": ("Random variable", not_nan),
        **others,
        "mu": ("Location parameter", finite),
        kind.name: (kind.title, kind.domain),
    }
    words = {"given": title, "result": result, **kind.words()}
    output = member(value, name, arguments, words, form=Form(name, kind, arguments))
    output.operation.domains = {}  # The value function checks its arguments itself, where it must.
    output.reverse(reverse)
    output.tangent(tangent)
    return output


_normal_density = partial(_density, value=_normal, reverse=_normal_reverse, tangent=_normal_tangent)
_student_density = partial(
    _density,
    value=_student,
    reverse=_student_reverse,
    tangent=_student_tangent,
    nu=("Degrees of freedom parameter", ScalarDomain(positive)),
)
multi_normal_lpdf = _normal_density("multi_normal_lpdf", Covariance, "covariance", "0.5, 1. ")
multi_normal_cholesky_lpdf = _normal_density(
    "multi_normal_cholesky_lpdf", Cholesky, "Cholesky factor of the covariance", "0.5, 1. "
)
multi_normal_prec_lpdf = _normal_density(
    "multi_normal_prec_lpdf", Precision, "precision", "22., 14."
)
multi_student_t_lpdf = _student_density("multi_student_t_lpdf", Scale, "scale matrix", "0.25, 0.5 ")
multi_student_t_cholesky_lpdf = _student_density(
    "multi_student_t_cholesky_lpdf", Cholesky, "Cholesky factor of the scale matrix", "0.25, 0.5 "
)
