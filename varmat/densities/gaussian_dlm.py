"""Gaussian dynamic linear models: the likelihood by the Kalman filter, and its derivatives by one
backward pass.

The filter and the backward pass use functions that take both plain arrays and variables. The value
and the reverse rule run them on arrays, forward derivatives run them on directions, and in programs
they are loops over the times."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from varmat.core.domains import Domain, finite
from varmat.core.operation import Saved
from varmat.densities.density import HALF_LOG_TWO_PI, KeptTerms, density, not_nan
from varmat.densities.domains import Matrix, Vector, possible_value, symmetric_matrix
from varmat.functions.checks import TOLERANCE, check_values, misfit
from varmat.functions.linalg.lapack import MatrixError, cholesky_factor
from varmat.functions.linalg.symmetric_arguments import check_symmetric, symmetric
from varmat.programs.build.factorisations import inverse_lower
from varmat.programs.build.loops import each_trip
from varmat.programs.build.symbol import is_symbol, number, refuse, require
from varmat.typing import Adjoint, Function, Operand, Plain, Result

__all__ = ["gaussian_dlm_obs_lpdf"]


def _check_semidefinite(function: str, x: Operand, name: str) -> None:
    check_symmetric(function, x, name)
    smallest = float(np.linalg.eigvalsh(x)[0]) if x.size else 0.0
    # Stan allows for rounding in the same way.
    if smallest < -TOLERANCE:
        raise MatrixError(
            f"{function}: {name} has the eigenvalue {smallest:.4g}, but must be positive "
            "semidefinite!"
        )


def _check_noise(function: str, x: Operand, name: str) -> None:
    if x.ndim == 1:
        Domain("nonnegative and finite", lambda x: (x >= 0) & (x < math.inf)).check(
            function, name, x
        )
    else:
        semidefinite.check(function, name, x)


def _holds(x: Operand) -> Result:
    """Tell whether variances, or a covariance, are valid, within a program."""
    if x.ndim == 1:
        return (x >= 0.0) & (x < math.inf)
    # The covariance may be singular, so a little is added to its diagonal. In a program a matrix
    # without a Cholesky factor has one of nan.
    factor = np.linalg.cholesky(x + TOLERANCE * np.eye(x.shape[0]))
    return (np.abs(x - x.mT) <= TOLERANCE).all() & (np.diagonal(factor) > 0.0).all()


semidefinite = Matrix("symmetric positive semidefinite", _check_semidefinite, _holds)


class Noise(Vector):
    """A vector of variances, or a matrix."""

    __slots__ = ()

    def check(self, function: str, name: str, value: Operand) -> None:
        if np.ndim(value) not in (1, 2):
            raise misfit(function, name, np.shape(value), "be a matrix, or a vector: its diagonal")
        _check_noise(function, value, name)


noise = Noise("nonnegative or symmetric positive semidefinite", _holds, _check_noise)


class Moments(NamedTuple):
    """Results of the filter, stacked by time: moments of the state before an observation, its
    predicted moments, and the effect of the observation.
    """

    mean: Plain
    covariance: Plain
    # G m, and G C G' + W
    predicted: Plain
    variance: Plain
    # spread @ F, inv(Q), the gain cross @ inv(Q), and inv(Q) e
    cross: Plain
    precision: Plain
    gain: Plain
    surprise: Plain


# West and Harrison (1997), section 4.2. Let a = G m and R = G C G' + W be the predicted mean and
# covariance, e = y - F' a the forecast error with the covariance Q = F' R F + V, and K = R F inv(Q)
# the gain. Then
#     m <- a + K e,  C <- R - K (R F)',
#     log p = -sum(log det Q + e' inv(Q) e) / 2 - r T log(2 pi) / 2.
def _forward(
    factorise: Function,
    mean: Operand,
    covariance: Operand,
    y: Operand,
    f: Plain,
    g: Plain,
    v: Operand,
    w: Operand,
) -> tuple[list[Result], list[Result]]:
    """Run one step of the filter: return the moments after an observation; and its log density
    without the constant, with the moments.
    """
    predicted = g @ mean
    variance = g @ covariance @ g.T + w
    cross = variance @ f
    precision, half_log_determinant = factorise(f.T @ cross + v)
    gain = cross @ precision
    error = y - f.T @ predicted
    surprise = precision @ error
    term = -half_log_determinant - 0.5 * np.sum(error * surprise)
    moments = Moments(mean, covariance, predicted, variance, cross, precision, gain, surprise)
    return [predicted + gain @ error, variance - gain @ cross.T], [term, *moments]


def _filtered(factorise: Function, y: Operand, *model: Operand) -> tuple[Result, Moments]:
    """Compute the log likelihood without its constant, and the moments at all times."""
    *shared, mean, covariance = model
    step, times = partial(_forward, factorise), np.shape(y)[1]
    _, _, terms, *moments = each_trip(step, times, [mean, covariance], [y.T], shared)
    return np.sum(terms), Moments(*moments)


# One step of the backward pass, with the adjoint M of m, the symmetric adjoint S of C, the cross
# covariance B = R F and u = inv(Q) e:
#     e~ = K' M - u,  Q~ = (u u' - inv(Q)) / 2 + K' S K - sym(K' M u'),
#     B~ = M u' - 2 S K,  R~ = S + F Q~ F' + sym(B~ F'),
#     F~ = 2 B Q~ + R B~ - a e~',  a~ = M - F e~,  G~ = a~ m' + 2 R~ G C,
# and then M <- G' a~,  S <- G' R~ G.
def _backward(
    mean: Operand,
    covariance: Operand,
    in_f: Operand,
    in_g: Operand,
    in_v: Operand,
    in_w: Operand,
    *args: Operand,
) -> tuple[list[Result], list[Result]]:
    now, (f, g) = Moments(*args[:-2]), args[-2:]
    u = now.surprise
    pulled = now.gain.T @ mean
    error = pulled - u
    of_q = 0.5 * (u[:, None] * u - now.precision) + now.gain.T @ covariance @ now.gain
    of_q = of_q - 0.5 * (pulled[:, None] * u + u[:, None] * pulled)
    of_cross = mean[:, None] * u - 2.0 * (covariance @ now.gain)
    through = of_cross @ f.T
    of_spread = covariance + f @ of_q @ f.T + 0.5 * (through + through.T)
    of_predicted = mean - f @ error
    in_f = (
        in_f + 2.0 * (now.cross @ of_q) + now.variance @ of_cross - now.predicted[:, None] * error
    )
    in_g = in_g + of_predicted[:, None] * now.mean + 2.0 * (of_spread @ g @ now.covariance)
    after = [g.T @ of_predicted, g.T @ of_spread @ g, in_f, in_g, in_v + of_q, in_w + of_spread]
    return after, [error]


def _derivatives(f: Plain, g: Plain, moments: Moments) -> list[Result]:
    """Compute the derivatives with respect to all arguments; symmetric for symmetric matrices."""
    times, n, r = np.shape(moments.cross)
    zeros = [np.zeros(shape) for shape in ((n,), (n, n), (n, r), (n, n), (r, r), (n, n))]
    mean, covariance, *inside, errors = each_trip(
        _backward, times, zeros, moments, [f, g], backwards=True
    )
    return [errors.T, *inside, mean, covariance]


def _check_shapes(
    y: Operand, f: Plain, g: Adjoint, v: Operand, w: Operand, m0: Operand, c0: Operand
) -> None:
    function = "gaussian_dlm_obs_lpdf"
    if np.ndim(f) != 2 or np.ndim(y) != 2:
        title, x = ("F", f) if np.ndim(f) != 2 else ("y", y)
        raise misfit(function, title, np.shape(x), "be a matrix")
    n, r = np.shape(f)
    for title, x, shapes in (
        ("G", g, [(n, n)]),
        ("V", v, [(r, r), (r,)]),
        ("W", w, [(n, n)]),
        ("m0", m0, [(n,)]),
        ("C0", c0, [(n, n)]),
        ("y", y, [(r, np.shape(y)[1])]),
    ):
        if np.shape(x) not in shapes:
            rule = " or ".join(map(str, shapes))
            raise misfit(function, title, np.shape(x), f"have the shape {rule}, as F has {(n, r)}")


def _factorised(q: Operand) -> tuple[Result, Result]:
    """Compute the inverse of the covariance of an observation, and half its log determinant."""
    factor = np.linalg.cholesky(q)
    inverse = inverse_lower(factor) if is_symbol(q) else np.linalg.inv(q)
    return inverse, np.sum(np.log(np.diagonal(factor)))


def _factorised_plain(q: Operand) -> tuple[Result, Result]:
    factor = cholesky_factor("gaussian_dlm_obs_lpdf", q, name="F.T @ (G @ C @ G.T + W) @ F + V")
    half = np.linalg.inv(factor)
    return half.T @ half, float(np.sum(np.log(factor.diagonal())))


def _covariance(v: Operand) -> Result:
    """Return the covariance matrix; a vector of variances becomes its diagonal."""
    return v * np.eye(np.shape(v)[0]) if np.ndim(v) == 1 else v


@density(
    y=("y", not_nan),
    F=("F", finite),
    G=("G", finite),
    V=("V", noise),
    W=("W", semidefinite),
    m0=("m0", finite),
    C0=("C0", symmetric_matrix),
)
def gaussian_dlm_obs_lpdf(
    y: Operand,
    f: Plain,
    g: Adjoint,
    v: Operand,
    w: Operand,
    m0: Operand,
    c0: Operand,
    keep: KeptTerms,
) -> Result:
    """Compute the log density of the observations of a Gaussian dynamic linear model, the states
    integrated out.

    Parameters
    ----------
    y : array_like, shape (r, T)
        The observations, a column for each time; not nan.
    F : array_like, shape (n, r)
        The design matrix: the observation at time t is normal with the mean ``F.T @ state`` and the
        covariance `V`.
    G : array_like, shape (n, n)
        The transition matrix: the next state is normal with mean ``G @ state`` and covariance `W`.
    V : array_like, shape (r, r) or (r,)
        Covariance of the observations, symmetric positive semidefinite, or the variances of
        independent ones, nonnegative.
    W : array_like, shape (n, n)
        Covariance of the states, symmetric positive semidefinite.
    m0 : array_like, shape (n,)
        Mean of the state before the first time.
    C0 : array_like, shape (n, n)
        Covariance of this state, symmetric positive definite.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``gaussian_dlm_obs_lupdf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is infinite.

    Raises
    ------
    DomainError
        If an argument is outside its domain, or the covariance of an observation is singular; for
        matrices that are not positive definite also a `numpy.linalg.LinAlgError`.
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    The Kalman filter computes the likelihood, and one backward pass its derivatives. Those with
    respect to V, W and C0 lie in the lower triangles.

    References
    ----------
    Stan Functions Reference, "Gaussian dynamic linear models"; M. West and J. Harrison, "Bayesian
    Forecasting and Dynamic Models", 2nd edition, Springer 1997, section 4.2.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> y, one = np.array([[1.0, 2.0]]), np.ones((1, 1))
    >>> f = lambda m0: vm.gaussian_dlm_obs_lpdf(y, one, one, one, one, m0, one)
    >>> vm.gradient(f, np.zeros(1))
    array([0.5])
    """
    _check_shapes(y, f, g, v, w, m0, c0)
    (n, r), times = np.shape(f), np.shape(y)[1]
    is_traced = any(map(is_symbol, (y, f, g, v, w, m0, c0)))
    if is_traced and 0 in (times, n, r):
        refuse()
    factor = cholesky_factor("gaussian_dlm_obs_lpdf", c0, name="C0")
    if is_traced:
        require(factor.diagonal() > 0.0)
    elif not (y.size and np.isfinite(y).all()):
        return Saved(-math.inf if y.size else 0.0, moments=None)
    factorise = _factorised if is_traced else _factorised_plain
    value, moments = _filtered(factorise, y, f, g, _covariance(v), w, m0, c0)
    value = number(value) - (y.size * HALF_LOG_TWO_PI if "constants" in keep else 0.0)
    return Saved(possible_value(value), moments=moments)


@gaussian_dlm_obs_lpdf.gradient
def gaussian_dlm_obs_gradient(
    r: Operand,
    y: Operand,
    F: Operand,
    G: Operand,
    V: Operand,
    W: Operand,
    m0: Operand,
    C0: Operand,
    moments: Operand = None,
) -> Result:
    if moments is None:
        if not np.size(y) or not check_values(lambda y: bool(np.isfinite(y).all()), y):
            return None
        v, w, c = (symmetric(x) for x in (_covariance(V), W, C0))
        _, moments = _filtered(_factorised, y, F, G, v, w, m0, c)
    parts = _derivatives(F, G, moments)
    # Of `V` as a vector, the elements on the diagonal; otherwise of one triangle, as of W and C0.
    parts[3] = np.diagonal(parts[3]) if np.ndim(V) == 1 else _folded(parts[3])
    parts[4], parts[6] = _folded(parts[4]), _folded(parts[6])
    return tuple((lambda part=part: part) for part in parts)


def _folded(x: Operand) -> Result:
    """Fold a symmetric matrix onto its lower triangle."""
    k = np.shape(x)[0]
    return x * (2.0 * np.tri(k) - np.eye(k))
