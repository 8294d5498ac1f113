"""Differentiable solvers of algebraic equations and fixed points, under Stan's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from varmat.core.errors import DomainError
from varmat.functions.checks import outside
from varmat.functions.docstrings import F, filled
from varmat.solvers.implicit import check_size, jacobian_of, solved_with
from varmat.solvers.inner import Inner, checked_vector
from varmat.typing import Function, Operand, Result, array_valued

__all__ = [
    "algebra_solver",
    "algebra_solver_fp",
    "algebra_solver_newton",
    "fixed_point",
    "solve_newton",
    "solve_newton_tol",
    "solve_powell",
    "solve_powell_tol",
]


def _positive(name: str, **settings: float) -> None:
    for title, value in settings.items():
        if not value > 0.0:
            raise outside(name, title, value, "be positive")


def _residual(inner: Inner, y: np.ndarray) -> np.ndarray:
    result = inner.values((y,), ())
    check_size(inner, result.size, y.size)
    return result


def _newton(
    inner: Inner, y: np.ndarray, f_tol: float, max_steps: int, shortest: float
) -> np.ndarray:
    """Solve by Newton's method; halve a step until it makes the residual smaller.

    The search goes on below the tolerance until the residual stops falling: the derivatives assume
    the exact solution, so the solution should be as exact as possible.
    """
    f = _residual(inner, y)
    norm = float(np.linalg.norm(f))
    steps = 0
    while norm > 0.0 and steps < max_steps:
        try:
            step = np.linalg.solve(jacobian_of(inner, y, ()), f)
        except np.linalg.LinAlgError:
            break
        steps, part = steps + 1, 1.0
        while True:
            nearer = y - part * step
            f = _residual(inner, nearer)
            smaller = float(np.linalg.norm(f))
            if (
                smaller < norm
                or norm <= f_tol
                or part * np.linalg.norm(step) <= shortest * (1.0 + np.linalg.norm(y))
            ):
                break
            part *= 0.5
        if not smaller < norm:
            break
        y, norm = nearer, smaller
    _check_residual(inner, norm, f_tol, steps)
    return y


def _check_residual(inner: Inner, norm: float, f_tol: float, steps: int) -> None:
    if not norm <= f_tol:
        raise DomainError(
            f"{inner.name}: the norm of the residual is {norm!r} after {steps} steps, but must "
            f"be at most the function tolerance, {f_tol!r}; start nearer to a solution or allow "
            "more steps; "
            f"there may be no solution!"
        )


def _solution(
    name: str,
    f: Function,
    y_guess: Operand,
    args: Sequence[Operand],
    search: Callable[[Inner, np.ndarray], np.ndarray],
    **settings: float,
) -> Result:
    """Find a differentiable solution of f(y, *args) = 0 by `search` from the guess; settings must
    be positive.
    """
    y = checked_vector(name, "y_guess", y_guess, ndmin=1)
    _positive(name, **settings)
    return solved_with(Inner(name, f, args), lambda *operands: search(Inner(name, f, operands), y))


def _by_newton(
    name: str,
    f: Function,
    y_guess: Operand,
    args: Sequence[Operand],
    scaling_step: float,
    f_tol: float,
    max_steps: int,
) -> Result:
    def search(inner: Inner, y: np.ndarray) -> np.ndarray:
        return _newton(inner, y, f_tol, max_steps, 1e-12 * scaling_step)

    settings = {"scaling_step": scaling_step, "f_tol": f_tol, "max_steps": max_steps}
    return _solution(name, f, y_guess, args, search, **settings)


def _by_powell(
    name: str,
    f: Function,
    y_guess: Operand,
    args: Sequence[Operand],
    rel_tol: float,
    f_tol: float,
    max_steps: int,
) -> Result:
    def search(inner: Inner, y: np.ndarray) -> np.ndarray:
        from scipy.optimize import root

        result = root(
            lambda x: _residual(inner, x),
            y,
            jac=lambda x: jacobian_of(inner, x, ()),
            method="hybr",
            options={"xtol": rel_tol, "maxfev": max_steps},
        )
        norm = float(np.linalg.norm(result.fun))
        if not math.isnan(norm):
            _check_residual(inner, norm, f_tol, result.nfev)
        # Newton's method removes the remaining error, which would enter the derivatives too.
        return _newton(inner, result.x, f_tol, max_steps, 1e-15)

    settings = {"rel_tol": rel_tol, "f_tol": f_tol, "max_steps": max_steps}
    return _solution(name, f, y_guess, args, search, **settings)


def _solver(words: dict[str, str], settings: str = "", values: str = "") -> Callable[[F], F]:
    """Solve a system of algebraic equations, f(y, \\*args) = 0, by {method}.

    Parameters
    ----------
    f : callable
        ``f(y, *args)`` returns a vector with as many elements as `y`. Written in NumPy; what it
        depends on must be among `args`.
    y_guess : array_like, shape (n,)
        Where the search starts; finite. It has no derivative.
    {settings}*args
        Further arguments of `f`. Scalars and arrays in them may be variables, to any depth of
        lists, tuples and dicts.

    Returns
    -------
    ndarray or VarMat, shape (n,)

    Raises
    ------
    DomainError
        If the norm of the residual, which the message gives, is above the tolerance where the
        search ends; if `y_guess` is not finite, or a tolerance is not positive; if the Jacobian is
        singular where the derivative is wanted.
    ShapeError
        If `y_guess` has no elements, or `f` does not return as many elements as `y_guess` has.

    Notes
    -----
    The method is described in [1]_. The derivative is the exact solution's, by the implicit
    function theorem [2]_: see `implicit`. The search therefore goes on below the tolerance for as
    long as the residual falls.

    References
    ----------
    .. [1] {source}
    .. [2] A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, SIAM, 2008, chapter 15.
    .. [3] Stan Functions Reference, "Algebraic equation solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(y, a):
    ...     return np.stack([y[0] ** 2 + y[1] - a, y[0] - y[1]])
    >>> vm.{name}(f, np.ones(2) / 2, {values}2.0)
    array([1., 1.])
    >>> vm.gradient(lambda a: vm.{name}(f, np.ones(2) / 2, {values}a)[0], 2.0)
    0.3333333333333333
    """
    return filled("", _solver, settings=settings, values=values, **words)


_NEWTON = {
    "method": "Newton's method with a line search",
    "source": "J. Nocedal and S. J. Wright, Numerical Optimization, 2nd edition, Springer, 2006,\n"
    "       chapter 11.",
}
_POWELL = {
    "method": "Powell's hybrid method, as `scipy.optimize.root` has it",
    "source": "M. J. D. Powell, A hybrid method for nonlinear equations, in: Numerical Methods "
    "for\n       Nonlinear Algebraic Equations, Gordon and Breach, 1970.",
}
_SETTINGS = """{}
    f_tol : float
        The norm of the residual up to which the solution is accepted.
    max_steps : int
        The most {}.
    """.format
_NEWTON_SETTINGS = _SETTINGS(
    """scaling_step : float
        The line search gives up at steps below ``1e-12 * scaling_step``, relative to the norm of
        `y`.""",
    "steps",
)
_POWELL_SETTINGS = _SETTINGS(
    """rel_tol : float
        The relative change between two iterates at which the search ends.""",
    "evaluations of `f`",
)


@_solver(_NEWTON)
@array_valued
def solve_newton(f: Function, y_guess: Operand, *args: Operand) -> Result:
    return _by_newton("solve_newton", f, y_guess, args, 1e-3, 1e-6, 200)


@_solver(_NEWTON, _NEWTON_SETTINGS, "1e-3, 1e-6, 100, ")
@array_valued
def solve_newton_tol(
    f: Function, y_guess: Operand, scaling_step: float, f_tol: float, max_steps: int, *args: Operand
) -> Result:
    return _by_newton("solve_newton_tol", f, y_guess, args, scaling_step, f_tol, max_steps)


@_solver(_POWELL)
@array_valued
def solve_powell(f: Function, y_guess: Operand, *args: Operand) -> Result:
    return _by_powell("solve_powell", f, y_guess, args, 1e-10, 1e-6, 200)


@_solver(_POWELL, _POWELL_SETTINGS, "1e-10, 1e-6, 100, ")
@array_valued
def solve_powell_tol(
    f: Function, y_guess: Operand, rel_tol: float, f_tol: float, max_steps: int, *args: Operand
) -> Result:
    return _by_powell("solve_powell_tol", f, y_guess, args, rel_tol, f_tol, max_steps)


@array_valued
def algebra_solver(
    f: Function,
    y_guess: Operand,
    theta: Operand,
    x_r: Operand,
    x_i: Operand,
    rel_tol: float = 1e-10,
    f_tol: float = 1e-6,
    max_steps: int = 1000,
) -> Result:
    """Solve f(y) = 0 by `solve_powell_tol`, with the arguments of older Stan programs.

    Parameters
    ----------
    f : callable
        ``f(y, theta, x_r, x_i)`` returns a vector with as many elements as `y`.
    y_guess : array_like, shape (n,)
        Where the search starts.
    theta : array_like
        Parameters.
    x_r, x_i : array_like
        Data, real and integer.
    rel_tol, f_tol : float
        See `solve_powell_tol`.
    max_steps : int

    Returns
    -------
    ndarray or VarMat, shape (n,)

    Raises
    ------
    DomainError, ShapeError
        As in `solve_powell_tol`.

    Notes
    -----
    The derivative is as in `solve_powell_tol`.

    References
    ----------
    * Stan Functions Reference, "Deprecated functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.algebra_solver(lambda y, theta, x_r, x_i: y**2 - theta, [1.5], np.array([4.0]), [], [])
    array([2.])
    """
    return _by_powell("algebra_solver", f, y_guess, (theta, x_r, x_i), rel_tol, f_tol, max_steps)


@array_valued
def algebra_solver_newton(
    f: Function,
    y_guess: Operand,
    theta: Operand,
    x_r: Operand,
    x_i: Operand,
    scaling_step: float = 1e-3,
    f_tol: float = 1e-6,
    max_steps: int = 200,
) -> Result:
    """Solve f(y) = 0 by `solve_newton_tol`, with the arguments of older Stan programs.

    Parameters
    ----------
    f : callable
        ``f(y, theta, x_r, x_i)`` returns a vector with as many elements as `y`.
    y_guess : array_like, shape (n,)
        Where the search starts.
    theta : array_like
        Parameters.
    x_r, x_i : array_like
        Data, real and integer.
    scaling_step, f_tol : float
        See `solve_newton_tol`.
    max_steps : int

    Returns
    -------
    ndarray or VarMat, shape (n,)

    Raises
    ------
    DomainError, ShapeError
        As in `solve_newton_tol`.

    Notes
    -----
    The derivative is as in `solve_newton_tol`.

    References
    ----------
    * Stan Functions Reference, "Deprecated functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(y, theta, x_r, x_i):
    ...     return y**2 - theta
    >>> vm.algebra_solver_newton(f, [1.5], np.array([4.0]), [], [])
    array([2.])
    """
    return _by_newton(
        "algebra_solver_newton", f, y_guess, (theta, x_r, x_i), scaling_step, f_tol, max_steps
    )


@array_valued
def fixed_point(
    f: Function, y_guess: Operand, *args: Operand, f_tol: float = 1e-10, max_steps: int = 500
) -> Result:
    """Find the fixed point of a contraction, y = f(y, \\*args).

    Parameters
    ----------
    f : callable
        ``f(y, *args)`` returns a vector with as many elements as `y`. Written in NumPy; what it
        depends on must be among `args`.
    y_guess : array_like, shape (n,)
        Where the iteration starts; finite. It has no derivative.
    *args
        Further arguments of `f`. Scalars and arrays in them may be variables, to any depth of
        lists, tuples and dicts.
    f_tol : float
        The norm of f(y) - y up to which the solution is accepted.
    max_steps : int
        The most steps of the iteration.

    Returns
    -------
    ndarray or VarMat, shape (n,)

    Raises
    ------
    DomainError
        If the norm of f(y) - y is above `f_tol` where the iteration ends; if `y_guess` is not
        finite, or a setting is not positive; if the Jacobian of `f` has the eigenvalue 1 where the
        derivative is wanted.
    ShapeError
        If `y_guess` has no elements, or `f` does not return as many elements as `y_guess` has.

    Notes
    -----
    The iteration is as in `scipy.optimize.fixed_point`: Steffensen's method with Aitken's
    acceleration [1]_. The derivative is the exact solution's, by the implicit function theorem
    [2]_: see `implicit`.

    References
    ----------
    .. [1] R. L. Burden and J. D. Faires, Numerical Analysis, 5th edition, 1993.
    .. [2] A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, SIAM, 2008, chapter 15.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(y, a):
    ...     return a * np.cos(y)
    >>> vm.fixed_point(f, [0.5], 1.0).round(12)
    array([0.73908513])
    >>> round(vm.gradient(lambda a: vm.fixed_point(f, [0.5], a)[0], 1.0), 12)
    0.441610791705
    """
    return _fixed_point("fixed_point", f, y_guess, args, f_tol, max_steps)


@array_valued
def algebra_solver_fp(
    f: Function,
    y_guess: Operand,
    theta: Operand,
    x_r: Operand,
    x_i: Operand,
    u_scale: Operand = None,
    f_scale: Operand = None,
    f_tol: float = 1e-8,
    max_steps: int = 200,
) -> Result:
    """Find a `fixed_point`, with the arguments of Stan's function.

    Parameters
    ----------
    f : callable
        ``f(y, theta, x_r, x_i)`` returns a vector with as many elements as `y`.
    y_guess : array_like, shape (n,)
        Where the iteration starts.
    theta : array_like
        Parameters.
    x_r, x_i : array_like
        Data, real and integer.
    u_scale, f_scale : array_like, shape (n,), optional
        Scales of the unknowns and of the residual; positive. They are checked, but not used.
    f_tol : float
        The norm of f(y) - y up to which the solution is accepted.
    max_steps : int

    Returns
    -------
    ndarray or VarMat, shape (n,)

    Raises
    ------
    DomainError, ShapeError
        As in `fixed_point`; DomainError also for a scale that is not positive.

    Notes
    -----
    The derivative is as in `fixed_point`. In Stan Math the function has the same arguments.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(y, theta, x_r, x_i):
    ...     return theta * np.cos(y)
    >>> vm.algebra_solver_fp(f, [0.5], np.array([1.0]), [], []).round(12)
    array([0.73908513])
    """
    for title, scale in (("u_scale", u_scale), ("f_scale", f_scale)):
        if scale is not None and not np.all(np.greater(scale, 0.0)):
            raise outside("algebra_solver_fp", title, scale, "be positive")
    return _fixed_point("algebra_solver_fp", f, y_guess, (theta, x_r, x_i), f_tol, max_steps)


def _fixed_point(
    name: str, f: Function, y_guess: Operand, args: Sequence[Operand], f_tol: float, max_steps: int
) -> Result:
    def residual(unknowns: Operand, *operands: Operand) -> Result:
        return f(unknowns, *operands) - unknowns

    def search(inner: Inner, y: np.ndarray) -> np.ndarray:
        from scipy.optimize import fixed_point as iterate

        _residual(inner, y)  # raises for a function of another size
        try:
            result = iterate(lambda x: x + _residual(inner, x), y, xtol=1e-12, maxiter=max_steps)
        except RuntimeError:
            norm = float(np.linalg.norm(_residual(inner, y)))
            raise DomainError(
                f"{name}: no convergence after {max_steps} steps; the norm of f(y) - y is "
                f"{norm!r} at y_guess"
            ) from None
        return _newton(inner, result, f_tol, 5, 1e-15)

    return _solution(name, residual, y_guess, args, search, f_tol=f_tol, max_steps=max_steps)
