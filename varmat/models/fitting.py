"""Modes of a model by SciPy, and the normal approximation around one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from varmat import html
from varmat.core.errors import DomainError
from varmat.derivatives.jacobians import jacobian
from varmat.interrupts import Attempt
from varmat.models.at_draws import quantities_at
from varmat.models.functions import of_values, recoverable
from varmat.models.gradients import DensityModel
from varmat.models.layout import indexed
from varmat.models.results import (
    ArvizData,
    Dims,
    Groups,
    Labels,
    columns,
    coordinates,
    shapes_in,
    stacked,
    to_arviz,
)
from varmat.typing import Function, Linear, Operand, Settings

SomeModel = TypeVar("SomeModel", bound="DensityModel")

# SciPy's methods that take second derivatives, and in which form.
_WITH_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
_WITH_MATRIX = ("trust-exact", "dogleg")
# The search goes on until nothing can be gained, because the gradient is exact.
_TIGHT = {"l-bfgs-b": {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 100_000}}
# SciPy's words for a search that can go no further: the line search ended abnormally, or the
# quadratic model promises no gain.
_STUCK = dict.fromkeys(
    ("l-bfgs-b", "bfgs", "cg", "newton-cg", "trust-ncg", "trust-krylov", "trust-exact", "dogleg"), 2
)
_STUCK |= {"tnc": 4, "slsqp": 8}
# A gain in log density that counts as none, and one so small that a search which claims success is
# believed.
_NO_GAIN, _LITTLE_GAIN = 1e-8, 1e-3
# The most parameters for which the whole Hessian is computed; curvatures and slopes that count as
# none.
_FEW, _FLAT, _LEVEL = 100, 1e-10, 1e-6
# How often a search is started again if it ended at a point that the model refuses, or with
# something left to gain.
_RESTARTS = 10
# If a gradient takes at least this many seconds, a recording is made first.
_SLOW = 0.01
# Seconds for many points from which they are recorded, and the points that are evaluated first.
_LONG, _FIRST = 0.5, 3
# The most Newton steps that the approximation takes by itself.
_NEWTON_STEPS = 20


@dataclass(frozen=True, repr=False)
class Optimum:
    """A mode, as found by `Model.optimize`.

    Attributes
    ----------
    values : dict of str to float or ndarray
        The parameters, transformed parameters included.
    q : ndarray
        The unconstrained point.
    value : float
        The log density there.
    gradient : ndarray
        By the elements of `q`.
    success : bool
        Whether it is one: nothing is left to be gained by a parabola, which the Hessian of up to
        100 parameters tells where the optimiser does not.
    message : str
        The message of the optimiser.
    iterations : int
    jacobian : bool
        Whether the log-Jacobian belongs to the log density.
    """

    values: dict[str, Operand]
    q: np.ndarray
    value: float
    gradient: np.ndarray
    success: bool
    message: str
    iterations: int
    jacobian: bool

    def state(self) -> str:
        """Describe the mode in a line."""
        largest = np.max(np.abs(self.gradient), initial=0.0)
        kind = "of the density of q" if self.jacobian else "without Jacobian"
        state = "mode" if self.success else f"no mode found ({self.message})"
        return (
            f"{state} {kind}: log density {self.value:.10g}, largest gradient {largest:.1e}, "
            f"{self.iterations} iterations"
        )

    def __repr__(self) -> str:
        return "\n".join(
            [self.state(), *(f"{name} = {value!r}" for name, value in self.values.items())]
        )

    def _repr_html_(self) -> str:
        return html.paragraph(self.state()) + html.table(["", "value"], self.values.items())


class _Objective:
    """The negative log density for a minimiser.

    Where the model refuses a point, or the log density is not finite, a line search needs a number
    that tells it how far to go back. It gets the value of a parabola through the best point with
    its minimum at a quarter of the step.
    """

    def __init__(self, model: DensityModel, jacobian: bool) -> None:
        self.model = model
        self.jacobian = jacobian
        self.best: tuple[float, np.ndarray, np.ndarray] | None = None

    def __call__(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = density_at(self.model, q, self.jacobian)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))) and self.best is not None:
            least, slope, place = self.best
            return least + abs(float(slope @ (q - place))), -3.0 * slope
        if self.best is None or -value < self.best[0]:
            self.best = -value, -gradient, q.copy()
        return -value, -gradient

    def product(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        product = self.model.log_density_hessian_vector_product
        return np.asarray(-product(q, v, jacobian=self.jacobian)[1])

    def hessian(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(-self.model.log_density_hessian(q, jacobian=self.jacobian)[2])


def density_at(model: DensityModel, q: np.ndarray, jacobian: bool) -> tuple[float, np.ndarray]:
    """Return the log density and its gradient; -inf and zero where the model rejects the point."""
    with Attempt(recoverable), np.errstate(all="ignore"):
        return model.log_density_gradient(q, jacobian=jacobian)
    return -np.inf, np.zeros(q.shape)


def densities_at(model: DensityModel, points: np.ndarray, jacobian: bool) -> np.ndarray:
    """Return the log densities at many points, recorded if the others would take long."""
    values, start = [], time.perf_counter()
    for i, q in enumerate(points):
        if i == _FIRST and (time.perf_counter() - start) / i * (len(points) - i) > _LONG:
            model = model.for_many_calls()
        values.append(density_at(model, q, jacobian)[0])
    return np.array(values)


def recorded_if_slow(model: SomeModel, q: np.ndarray) -> SomeModel:
    """Return the model, with a recorded log density if the second of two evaluations is slow,
    because a recording takes some tenths of a second to make. A model with an explicit setting
    stays unchanged.
    """
    if model.recorded is not None:
        return model
    for _ in range(2):
        start = time.perf_counter()
        density_at(model, q, True)
    return model.for_many_calls() if time.perf_counter() - start > _SLOW else model


def maximise(
    model: DensityModel, start: np.ndarray, jacobian: bool, method: str, options: Settings
) -> Optimum:
    """Find a mode with one of SciPy's minimisers."""
    from scipy import optimize

    objective = _Objective(model, jacobian)
    kind = method.lower()
    second: dict[str, Operand] = {"hessp": objective.product} if kind in _WITH_PRODUCTS else {}
    if kind in _WITH_MATRIX:
        second = {"hess": objective.hessian}
    options = {**_TIGHT.get(kind, {}), **options}
    iterations = 0
    for _ in range(_RESTARTS):
        optimum = optimize.minimize(
            objective, start, jac=True, method=method, options=options, **second
        )
        iterations += int(optimum.get("nit", optimum.nfev))
        value, gradient = density_at(model, optimum.x, jacobian)
        gain = _gain(model, optimum.x, value, gradient, jacobian, optimum.get("hess_inv"))
        start = optimum.x
        if objective.best is not None and not np.isfinite(value):
            start = objective.best[2]
        elif not optimum.success or gain <= _LITTLE_GAIN:
            break
    stuck, message = optimum.status == _STUCK.get(kind), str(optimum.message)
    success = bool(optimum.success and gain <= _LITTLE_GAIN) or (stuck and gain <= _NO_GAIN)
    if optimum.success and not success:
        message = "the optimiser ended where the log density still grows along its gradient"
    return _optimum(model, optimum.x, jacobian, success, message, iterations)


# A parabola with the gradient g and the curvature h would gain g**2 / (2 h). This does not depend
# on the scale of the parameters, nor on constants of the log density, next to which any gradient
# would look small.
def _gain(
    model: DensityModel,
    q: np.ndarray,
    value: float,
    gradient: np.ndarray,
    jacobian: bool,
    inverse: Linear | np.ndarray | None = None,
) -> float:
    """Estimate how much the log density would grow if it were quadratic; infinite if that has no
    maximum.

    The Hessian is computed only if something seems left to gain by the optimiser's own inverse
    Hessian or along the gradient.
    """
    if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
        return np.inf
    guess = _gain_along(gradient, model, q, jacobian)
    if inverse is not None:
        guess = max(guess, 0.5 * float(gradient @ (inverse @ gradient)))
    if guess <= _NO_GAIN or q.size > _FEW:
        return guess
    try:
        h = -model.log_density_hessian(q, jacobian=jacobian)[2]
    except TypeError:  # an operation has no tangent rule
        return guess
    if not np.all(np.isfinite(h)):
        return guess
    # All curvatures are scaled to 1. Where the curvature is 0 the slope must be 0 too: such a
    # parameter has no influence.
    curved = np.diag(h) > 0.0
    scale = 1.0 / np.sqrt(np.diag(h)[curved])
    curvatures, axes = np.linalg.eigh(scale[:, None] * h[np.ix_(curved, curved)] * scale)
    slopes = axes.T @ (scale * gradient[curved])
    flat = curvatures < _FLAT
    if np.any(np.abs(np.concatenate([gradient[~curved], slopes[flat]])) > _LEVEL):
        return np.inf
    return float(0.5 * np.sum(slopes[~flat] ** 2 / curvatures[~flat]))


def _gain_along(gradient: np.ndarray, model: DensityModel, q: np.ndarray, jacobian: bool) -> float:
    """Estimate the gain along only the gradient, from a difference of gradients."""
    length = float(np.linalg.norm(gradient))
    if length == 0.0:
        return 0.0
    step = 1e-5 * max(1.0, float(np.linalg.norm(q)))
    value, slope = density_at(model, q + step / length * gradient, jacobian)
    curvature = float((gradient - slope) @ gradient) / (length * step)
    return 0.5 * length**2 / curvature if np.isfinite(value) and curvature > 0.0 else np.inf


def _optimum(
    model: DensityModel, q: np.ndarray, jacobian: bool, success: bool, message: str, iterations: int
) -> Optimum:
    value, gradient = model.log_density_gradient(q, jacobian=jacobian)
    # A search that begins where the density is zero finds no way from there, and reports success.
    success = success and bool(np.isfinite(value) and np.all(np.isfinite(gradient)))
    values = model.constrain(q, include_tp=True)
    return Optimum(values, q, value, gradient, success, message, iterations, jacobian)


@dataclass(frozen=True, repr=False)
class LaplaceApproximation:
    """A normal distribution around a mode, as made by `Model.laplace`.

    Attributes
    ----------
    mode : Optimum
    covariance : ndarray, shape (N, N)
        For the unconstrained vector: the inverse of the negative Hessian of the log density.
    q : ndarray, shape (draws, N)
        Unconstrained draws.
    draws : dict of str to ndarray, shape (draws, ...)
        Parameters, transformed parameters and generated quantities at the draws; of a draw that the
        model refuses, or at which a quantity fails for its values, the parameters alone, and nan
        for the others.
    log_density, log_approximation : ndarray, shape (draws,)
        Log densities of the model and of the normal at the draws; their difference is the logarithm
        of the importance ratios. The first is -inf where the model refuses the draw.
    standard_errors : dict of str to float or ndarray
        For parameters and transformed parameters at the mode, by the delta method: the derivatives
        of a value times `covariance`. For a mode of the likelihood (``jacobian=False``, no priors)
        they are the errors of maximum likelihood.
    """

    mode: Optimum
    covariance: np.ndarray
    q: np.ndarray
    draws: dict[str, np.ndarray]
    log_density: np.ndarray
    log_approximation: np.ndarray
    coords: Labels = field(default_factory=dict)
    dims: Dims = field(default_factory=dict)
    # Log-likelihood and data, if the model has them.
    beside: Groups = field(default_factory=dict)
    # From the unconstrained vector to the named values.
    named_values: Function | None = None

    def __getstate__(self) -> Settings:
        # A model may have functions that cannot be pickled.
        return {**vars(self), "standard_errors": self.standard_errors, "named_values": None}

    @cached_property
    def standard_errors(self) -> dict[str, Operand]:
        if self.named_values is None:
            return {}
        slopes = jacobian(self.named_values, self.mode.q)
        result = {
            name: np.sqrt(np.einsum("...i,ij,...j", slope, self.covariance, slope))
            for name, slope in slopes.items()
        }
        return {name: x if np.ndim(x) else float(x) for name, x in result.items()}

    def __repr__(self) -> str:
        lines = [f"{len(self.q)} draws around the {self.mode!r}"]
        with np.errstate(all="ignore"):  # draws may be infinite
            for name, values in self.draws.items():
                lines.append(
                    f"{name}: mean {np.mean(values, axis=0)}, standard deviation "
                    f"{np.std(values, axis=0)}"
                )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = html.paragraph(f"{len(self.q)} draws around the {self.mode.state()}")
        if not (self.draws and len(self.q)):
            return title
        flat = np.concatenate([x.reshape(len(self.q), -1) for x in self.draws.values()], axis=1)
        names = [label for name, x in self.draws.items() for label in indexed(name, x.shape[1:])]
        result = columns(flat)
        rows = ((name, *(f"{x[i]:.4g}" for x in result.values())) for i, name in enumerate(names))
        return title + html.table(["", *result], rows)

    def groups(self) -> Groups:
        """Return the groups of ArviZ, with the draws as one chain."""
        posterior = {name: values[np.newaxis] for name, values in self.draws.items()}
        stats = {
            "lp": self.log_density[np.newaxis],
            "log_approximation": self.log_approximation[np.newaxis],
        }
        return {"posterior": posterior, "sample_stats": stats, **self.beside}

    def to_arviz(self) -> ArvizData:
        """Return the draws as one chain of ArviZ data: ``InferenceData`` or, from ArviZ 1,
        ``DataTree``.
        """
        groups = self.groups()
        return to_arviz(groups, coordinates(shapes_in(groups), self.coords, self.dims), self.dims)


def _factor(precision: np.ndarray) -> np.ndarray | None:
    """Return the Cholesky factor; None if the matrix is not positive definite, or is singular to
    rounding.
    """
    try:
        factor = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        return None
    # Each pivot is compared with the diagonal element it came from, so scales do not matter.
    pivots = np.diag(factor) ** 2
    return factor if np.all(pivots > 1e-14 * np.diag(precision)) else None


def _newton(model: DensityModel, mode: Optimum) -> tuple[Optimum, np.ndarray]:
    """Improve the mode by Newton's method while the gradient becomes smaller. Return it with the
    Cholesky factor of the precision there.
    """
    q, jacobian = mode.q, mode.jacobian
    _, gradient, hessian = model.log_density_hessian(q, jacobian=jacobian)
    factor = _factor(-hessian)
    for _ in range(_NEWTON_STEPS):
        if factor is None:
            break
        moved = q + np.linalg.solve(factor.T, np.linalg.solve(factor, gradient))
        better = None
        with Attempt(recoverable):
            _, slope, curvature = model.log_density_hessian(moved, jacobian=jacobian)
            better = _factor(-curvature)
        if better is None or not np.max(np.abs(slope), initial=0.0) < np.max(
            np.abs(gradient), initial=0.0
        ):
            break
        q, gradient, factor = moved, slope, better
    else:
        if mode.success:  # nothing is left to gain
            raise DomainError(
                f"laplace: {_NEWTON_STEPS} steps of Newton's method from the best point did not "
                "converge, so there is no normal approximation: the density has no mode"
            )
    if factor is None:
        raise DomainError(
            "laplace: the Hessian of the log density is not negative definite at the best point, "
            "so there is no normal approximation: a parameter has no influence, or the density "
            "has no mode"
        )
    step = np.linalg.solve(factor, gradient)
    success = mode.success or bool(0.5 * step @ step <= _NO_GAIN)
    return _optimum(model, q, jacobian, success, mode.message, mode.iterations), factor


def named_draws(
    function: str, model: DensityModel, q: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return all named values at draws. Where a function fails at a draw its values are nan;
    parameters are kept if they can be computed.
    """

    generated = model.generated
    if generated is not None and len(q):
        with Attempt(of_values):
            rows = [model.constrain(x, True) for x in q]
            values = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
            recorded = quantities_at(generated, values, rng)
            if recorded is not None:
                return {**values, **recorded}

    def at(x: np.ndarray, complete: bool) -> dict[str, Operand] | None:
        with Attempt(of_values):
            return model.constrain(x, complete, complete, rng)
        return None

    result = [at(x, True) for x in q]
    complete = [row for row in result if row is not None]
    shapes = (
        {n: np.shape(x) for n, x in complete[0].items()} if complete else model.shapes(True, True)
    )
    nans = {name: np.full(shape, np.nan) for name, shape in shapes.items()}
    rows = [
        {**nans, **(at(x, False) or {})} if row is None else row
        for x, row in zip(q, result, strict=True)
    ]
    return stacked(f"Model.{function}", rows, (len(q),), shapes)


def approximate(
    model: DensityModel, mode: Optimum, draws: int, seed: int | None
) -> LaplaceApproximation:
    """Make the normal approximation around a mode, and draw from it."""
    mode, factor = _newton(model, mode)
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((draws, mode.q.size))
    # The precision is L L', so L'^-1 z has its inverse as covariance.
    back = np.linalg.inv(factor)
    q = mode.q + z @ back
    constant = np.sum(np.log(np.diag(factor))) - 0.5 * mode.q.size * np.log(2.0 * np.pi)
    with np.errstate(all="ignore"):
        by_name = named_draws("laplace", model, q, rng)
    log_density = densities_at(model, q, mode.jacobian)
    log_normal, covariance = constant - 0.5 * np.sum(z * z, axis=1), back.T @ back
    of_draws, labels = (q, by_name, log_density, log_normal), (model.coords, model.dims)

    def named_values(q: object) -> dict[str, Operand]:
        return model.completed(model.layout.unpack(q, False)[0])

    return LaplaceApproximation(mode, covariance, *of_draws, *labels, named_values=named_values)
