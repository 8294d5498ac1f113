"""Laplace's approximation of likelihoods with latent Gaussian variables integrated out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from varmat.core.dual import value_now
from varmat.core.errors import DomainError
from varmat.core.operation import Saved, is_differentiable, operation
from varmat.core.variables import data
from varmat.functions.checks import check_choice, outside
from varmat.functions.docstrings import filled
from varmat.functions.linalg.determinants import log_determinant
from varmat.solvers.inner import Inner
from varmat.solvers.latent_modes import Control, DirectionalRate, Mode, blocks_of, find_mode, units
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Scalar

__all__ = [
    "laplace_latent_rng",
    "laplace_latent_tol_rng",
    "laplace_marginal",
    "laplace_marginal_tol",
]


Density: TypeAlias = Callable[..., Scalar]
Draws: TypeAlias = Callable[..., np.ndarray]


# --- the operation ---


@operation(variadic=True)
def laplace_density(covariance: Plain, *leaves: Plain, inner: Inner, control: Control) -> Plain:
    """Compute the approximate log density; `leaves` are the variables in the log likelihood."""
    mode = find_mode(inner, np.asarray(covariance), leaves, control)
    return Saved(mode.log_density, mode=mode)


@laplace_density.reverse
def laplace_density_reverse(
    g: Adjoint,
    r: Plain,
    covariance: Plain,
    *leaves: Plain,
    inner: Inner,
    control: Control,
    mode: Mode,
) -> tuple[Adjoint, ...]:
    """Differentiate as Margossian et al. (2020), with blocks of the covariance of the mode.

    Let a = K^-1 theta, W minus the Hessian of the log likelihood f, S = (K^-1 + W)^-1,
    R = W (I + K W)^-1, and s the derivative of -log det(I + K W) / 2 in theta. The mode moves by
    S K^-1 (dK a + K d grad f), so s' d theta = r' (dK a + K d grad f) with r = (I - R K) s.
    """
    theta, a = mode.theta, mode.a
    spread, curvature = mode.factor.spread()  # S and R
    held = 0.5 * g * blocks_of(spread, control.block)
    second = DirectionalRate(DirectionalRate(inner))
    slope: Operand = 0.0
    parts: list[Operand] = [0.0] * len(leaves)
    for k, unit in enumerate(units(len(theta), control.block)):
        # The trace of `held` times the Hessian is a sum of derivatives along columns k of the
        # blocks.
        column = held if control.block == 1 else np.ascontiguousarray(held[:, :, k]).ravel()
        _, pullback = second.pullback((theta, unit, column), leaves)
        ahead, _, _, *others = pullback(1.0)
        slope = slope + ahead
        parts = [p + q for p, q in zip(parts, others, strict=True)]
    moved = slope - curvature @ (covariance @ slope)
    _, pullback = DirectionalRate(inner).pullback((theta, covariance @ moved), leaves)
    parts = [p + q for p, q in zip(parts, pullback(1.0)[2:], strict=True)]
    _, pullback = inner.pullback((theta,), leaves)
    parts = [p + q for p, q in zip(parts, pullback(g)[1:], strict=True)]
    in_covariance = 0.5 * g * (np.outer(a, a) - curvature)
    across = 0.5 * np.outer(moved, a)
    return (in_covariance + across + across.T, *parts)


@laplace_density.tangent
def laplace_density_tangent(
    r: Operand, covariance: Operand, *leaves: Operand, inner: Inner, control: Control
) -> tuple[Linear, ...]:
    composed = Inner(inner.name, lambda *operands: _written(inner, control, *operands), ())
    operands = (covariance, *leaves)

    def along(i: int, t: Operand) -> Result:
        rate = composed.rate((), operands, i, t)
        return 0.0 if rate is None else rate

    return tuple(partial(along, i) for i in range(len(operands)))


def _written(inner: Inner, control: Control, covariance: Operand, *leaves: Operand) -> Result:
    """Compute the approximate log density by functions that are differentiable again; slower."""
    theta = laplace_mode(covariance, *leaves, inner=inner, control=control)
    a, matrix = (
        _gradient(inner, theta, leaves),
        _with_curvature(inner, control.block, covariance, theta, leaves),
    )
    return inner((theta,), leaves) - 0.5 * (a @ theta) - 0.5 * log_determinant(matrix)


def _gradient(inner: Inner, theta: Operand, leaves: Sequence[Operand]) -> Result:
    """Compute the gradient of the log likelihood in theta, which may be a variable."""
    n = np.shape(theta)[0]
    _, result = inner.along((theta,), (np.eye(n), *[None] * len(leaves)), leaves)
    return np.zeros(n) if result is None else result


def _with_curvature(
    inner: Inner, block: int, covariance: Operand, theta: Operand, leaves: Sequence[Operand]
) -> Result:
    """Compute I + K W."""
    n = np.shape(theta)[0]
    slope = Inner(inner.name, lambda theta, *args: _gradient(inner, theta, args), ())
    matrix = np.eye(n)
    for k, unit in enumerate(units(n, block)):
        _, column = slope.along((theta, *leaves), (unit, *[None] * len(leaves)), ())
        if column is None:
            continue
        if block == 1:
            return matrix - covariance * column
        # Column k of every block, at its index.
        place = np.kron(np.eye(n // block), np.eye(block)[k : k + 1])
        own = np.kron(np.eye(n // block), np.ones((block, 1)))
        matrix = matrix - covariance @ (own * column[:, None]) @ place
    return matrix


@operation(variadic=True)
def laplace_mode(covariance: Plain, *leaves: Plain, inner: Inner, control: Control) -> Plain:
    """Find the mode only, which solves theta = K grad f(theta)."""
    mode = find_mode(inner, np.asarray(covariance), leaves, control)
    return Saved(mode.theta, mode=mode)


@laplace_mode.reverse
def laplace_mode_reverse(
    g: Adjoint,
    r: Plain,
    covariance: Plain,
    *leaves: Plain,
    inner: Inner,
    control: Control,
    mode: Mode,
) -> tuple[Adjoint, ...]:
    moved = g - mode.factor.curvature_times(covariance @ g)
    _, pullback = DirectionalRate(inner).pullback((mode.theta, covariance @ moved), leaves)
    across = 0.5 * np.outer(moved, mode.a)
    return (across + across.T, *pullback(1.0)[2:])


@laplace_mode.tangent
def laplace_mode_tangent(
    r: Operand, covariance: Operand, *leaves: Operand, inner: Inner, control: Control
) -> tuple[Linear, ...]:
    matrix = _with_curvature(inner, control.block, covariance, r, leaves)
    slope = Inner(inner.name, lambda theta, *args: _gradient(inner, theta, args), ())

    def along(i: int, t: Operand) -> Result:
        rate = slope.rate((r,), leaves, i, t)
        if rate is None:
            return np.zeros(np.shape(r))
        return np.linalg.solve(matrix, covariance @ rate)

    return (
        lambda t: np.linalg.solve(matrix, t @ _gradient(inner, r, leaves)),
        *(partial(along, i) for i in range(len(leaves))),
    )


# --- Stan's functions ---


def control_of(name: str, tolerances: object) -> Control:
    """Check the settings of a ``_tol`` form."""
    if not isinstance(tolerances, (list, tuple)) or not 6 <= len(tolerances) <= 7:
        raise TypeError(
            f"{name}: tolerances is {tolerances!r}, but must be a tuple (theta_0, tolerance, "
            "max_num_steps, hessian_block_size, solver, max_steps_line_search, allow_fallthrough), "
            "whose last element may be left out!"
        )
    return _checked(name, Control(*tolerances))


def _checked(name: str, control: Control) -> Control:
    if not 0.0 < control.tolerance < np.inf:
        raise outside(name, "tolerance", control.tolerance, "be positive and finite")
    for title, value, least in (
        ("max_num_steps", control.max_num_steps, 1),
        ("hessian_block_size", control.block, 1),
        ("max_steps_line_search", control.max_steps_line_search, 0),
    ):
        if value != int(value) or value < least:
            raise outside(name, title, value, f"be an integer that is at least {least}")
    check_choice(name, "solver", control.solver, 1, 2, 3)
    if control.theta_0 is None:
        return control
    start = np.asarray(data(value_now(control.theta_0), f"{name}: theta_0"))
    if not np.isfinite(start).all():
        raise DomainError(
            f"{name}: theta_0 has the element {float(start[~np.isfinite(start)][0])!r}, but must "
            "be finite!"
        )
    return control._replace(theta_0=start)


def covariance_of(name: str, function: Function, args: Sequence[Operand]) -> Result:
    if not callable(function):
        raise TypeError(
            f"{name}: the covariance function is a {type(function).__name__}, but must be a "
            "function!"
        )
    return function(*args)


def draws(
    inner: Inner,
    k: object,
    control: Control,
    rng: np.random.Generator | int | None,
    size: int | None,
) -> np.ndarray:
    if inner.leaves or is_differentiable(k):
        raise TypeError(
            f"{inner.name}: an argument carries derivatives, but must be plain numbers, because "
            "draws have no derivative!"
        )
    mode = find_mode(inner, np.asarray(data(k, f"{inner.name}: the covariance")), (), control)
    values, axes = np.linalg.eigh(mode.factor.spread()[0])
    z = np.random.default_rng(rng).standard_normal(
        (*(() if size is None else (size,)), len(values))
    )
    drawn: np.ndarray = mode.theta + (z * np.sqrt(np.maximum(values, 0.0))) @ axes.T
    return drawn


def laplace_functions(
    family: str, names: Sequence[str], problem: Callable[..., tuple[Function, Sequence[Operand]]]
) -> tuple[Density, Density, Draws, Draws]:
    """Make the log density of a family, the one with tolerances, and the draws of both.

    Parameters
    ----------
    family : str
        The end of the names of the functions, empty for likelihoods that the caller passes.
    names : sequence of str
        The arguments before the covariance.
    problem : callable
        Takes the name of the function, the covariance and the values of these arguments, and
        returns the log likelihood with what it is called with.
    """
    ending = f"_{family}" if family else ""
    marginal, latent = f"{ending}_lpmf" if family else "", f"{ending}_rng"

    def variant(name: str) -> Function:
        return _laplace_function(name, names, problem)

    return (
        variant(f"laplace_marginal{marginal}"),
        variant(f"laplace_marginal_tol{marginal}"),
        variant(f"laplace_latent{latent}"),
        variant(f"laplace_latent_tol{latent}"),
    )


def _laplace_function(
    name: str, inputs: Sequence[str], problem: Callable[..., tuple[Function, Sequence[Operand]]]
) -> Function:
    """{title}

    Parameters
    ----------
    {before}
    covariance_function : callable
        ``covariance_function(*covariance_args)`` returns the covariance of the latent variables,
        shape (n, n).
    covariance_args : tuple{after}

    Returns
    -------
    {returns}

    Raises
    ------
    DomainError
        If an argument is outside its domain; if the search does not find a maximum; if the Hessian
        has elements outside its blocks.
    ShapeError
        If the covariance is not square, the log likelihood is not a scalar, or an argument has a
        wrong shape.
    TypeError
        If a function is not callable{draws}.

    Notes
    -----
    The latent variables theta are normal with mean zero and covariance K. With them
    integrated out, the log density of the observations is approximately
    log p(y | theta) - theta' K^-1 theta / 2 - log det(I + K W) / 2 at the mode of theta, where W is
    minus the Hessian of the log likelihood in theta. Newton's method with a line search finds the
    mode [1]_. It goes on to the last digits, because an error of the mode would enter the
    derivatives. The gradient takes third derivatives of the log likelihood along as many directions
    as a block of its Hessian has columns [2]_; the derivative in K is one matrix, which the reverse
    pass of the covariance function takes over. Second derivatives differentiate the formula at the
    mode, with dense matrices; each direction takes about ten times as long.{latent}

    References
    ----------
    .. [1] C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine
       Learning, MIT Press, 2006, algorithms 3.1 and 5.1.
    .. [2] C. Margossian, A. Vehtari, D. Simpson and R. Agrawal, Hamiltonian Monte Carlo using an
       adjoint-differentiated Laplace approximation, NeurIPS 33, 2020.
    .. [3] Stan Functions Reference, "Embedded Laplace Approximation".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x, y = np.arange(4.0), np.array({y})
    {example}
    """
    names = [*inputs, "covariance_function", "covariance_args"]
    parameters = [inspect.Parameter(x, inspect.Parameter.POSITIONAL_OR_KEYWORD) for x in names]
    if "_tol" in name:
        parameters.append(parameters[0].replace(name="tolerances"))
    elif "log_likelihood" in inputs:
        parameters.append(parameters[0].replace(name="hessian_block_size", default=1))
    settings = ("rng", "size") if name.endswith("_rng") else ()
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters += [inspect.Parameter(setting, kind, default=None) for setting in settings]
    signature = inspect.Signature(parameters)

    def function(*args: Operand, **kwargs: Operand) -> Result:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}: {error}; the signature is {name}{signature}") from None
        bound.apply_defaults()
        values = bound.arguments
        if "tolerances" in values:
            control = control_of(name, values["tolerances"])
        else:
            control = _checked(name, Control(block=values.get("hessian_block_size", 1)))
        covariance = covariance_of(name, values["covariance_function"], values["covariance_args"])
        likelihood, arguments = problem(name, covariance, *(values[x] for x in inputs))
        inner = Inner(name, likelihood, arguments)
        if settings:
            return draws(inner, covariance, control, values["rng"], values["size"])
        return laplace_density(covariance, *inner.leaves, inner=inner, control=control)

    function.__name__ = function.__qualname__ = name
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


laplace_marginal, laplace_marginal_tol, laplace_latent_rng, laplace_latent_tol_rng = (
    laplace_functions(
        "",
        ("log_likelihood", "likelihood_args"),
        lambda name, covariance, likelihood, arguments: (likelihood, arguments),
    )
)


TOLERANCES = """
    tolerances : tuple
        ``(theta_0, tolerance, max_num_steps, hessian_block_size, solver, max_steps_line_search,
        allow_fallthrough)``: where the search starts (None for zero); the change of the log density
        at which it may end; the most steps; the size of the blocks of the Hessian; how I + K W is
        factored, by the root of W (1), by the root of K (2), or by LU (3); the most halvings of a
        step (0 for steps without a check); and whether the next solver is tried if one fails, by
        default True."""
BLOCK = """
    hessian_block_size : int
        The size of the diagonal blocks of the Hessian: the log likelihood is a sum of functions of
        this many consecutive latent variables each."""
DRAWS = """
    rng : int or numpy.random.Generator, optional
        The generator, or its seed.
    size : int, optional
        How many draws; by default one, without an axis for draws."""
GENERAL = """log_likelihood : callable
        ``log_likelihood(theta, *likelihood_args)`` returns a scalar. Written in NumPy; what it
        depends on must be among its arguments.
    likelihood_args : tuple
        Scalars and arrays in it may be variables, to any depth of lists, tuples and dicts."""


def document(
    function: Function, title: str, parameters: str, example: str, y: str = "[1, 0, 3, 2]"
) -> None:
    """Give a function of this family its docstring."""
    name = function.__name__
    latent, tol = name.endswith("_rng"), "_tol" in name
    before, _, after = parameters.partition("|")
    filled(
        "",
        _laplace_function,
        title=title,
        y=y,
        example=example,
        latent=LATENT if latent else "",
        before=before,
        after=(TOLERANCES if tol else after) + (DRAWS if latent else ""),
        returns="ndarray, shape (n,) or (size, n)" if latent else "float or Var",
        draws=", or an argument of a draw carries derivatives" if latent else "",
    )(function)


LATENT = " A draw is normal, with the mode as its mean and the covariance (K^-1 + W)^-1."
_TITLE = "Compute the log likelihood of a latent Gaussian model, by Laplace's approximation."
_LATENT_TITLE = "Draw the latent variables of a latent Gaussian model, by Laplace's approximation."
_FUNCTIONS = """>>> def log_likelihood(theta, y):
    ...     return vm.poisson_log_lpmf(y, theta)
    >>> def covariance(amplitude, length):
    ...     return vm.gp_exp_quad_cov(x, amplitude, length)
    """
_MARGINAL = """>>> def f(length):
    ...     return vm.{name}(log_likelihood, (y,), covariance, (0.5, length){more})
    >>> round(f(1.0), 6), round(vm.gradient(f, 1.0), 6)
    (-6.464066, -0.146759)"""
_DRAW = """>>> vm.{name}(log_likelihood, (y,), covariance, (0.5, 1.0){more}, rng=1, size=10).shape
    (10, 4)"""
EXAMPLE_TOLERANCES = ", (np.zeros(4), 1e-8, 100, 1, 1, 20)"

for _function in (
    laplace_marginal,
    laplace_marginal_tol,
    laplace_latent_rng,
    laplace_latent_tol_rng,
):
    _name = _function.__name__
    _example = _DRAW if "latent" in _name else _MARGINAL
    document(
        _function,
        _LATENT_TITLE if "latent" in _name else _TITLE,
        GENERAL + "|" + BLOCK,
        _FUNCTIONS
        + _example.format(name=_name, more=EXAMPLE_TOLERANCES if "_tol" in _name else ""),
    )
