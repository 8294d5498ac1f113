"""Derivatives of the solutions of equations, by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, update_wrapper

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import operation
from varmat.core.variables import data
from varmat.derivatives.jacobians import jacobian
from varmat.solvers.inner import Inner
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result

__all__ = ["implicit"]


def implicit(solve: Function, residual: Function) -> Function:
    """Make a differentiable function of a solver.

    Parameters
    ----------
    solve : callable
        ``solve(*args)`` returns the solution for plain numbers, by whatever means; it is never
        differentiated.
    residual : callable
        ``residual(y, *args)`` is zero at the solution, and has as many elements as the solution.
        Written in NumPy. Everything it depends on must be among `args`: it must not read variables
        from outside.

    Returns
    -------
    callable
        Takes the arguments of `solve` and returns the solution: a float or an array, or a `Var` or
        `VarMat` of its shape. Scalars and arrays among the arguments may be variables, to any depth
        of lists, tuples and dicts.

    Raises
    ------
    DomainError
        By the reverse pass, if the Jacobian of the residual is singular at the solution.
    ShapeError
        By the reverse pass, if the residual does not have as many elements as the solution.
    TapeError
        By the reverse pass, if the residual uses a variable from outside.

    Notes
    -----
    With the residual F and the solution y of F(y, a) = 0, dy/da = -(dF/dy)^-1 dF/da [1]_. The
    reverse pass solves one linear system with the transpose of the Jacobian, and multiplies once by
    the derivative of the residual. Hessians follow from the same formula. The derivative is the
    exact solution's, so `solve` must be as accurate as the derivative should be.

    References
    ----------
    .. [1] A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, SIAM, 2008, chapter 15.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> from scipy.optimize import brentq
    >>> def solve(a):
    ...     return brentq(lambda y: y**3 + a * y - 1.0, 0.0, 1.0, xtol=1e-15)
    >>> root = vm.implicit(solve, lambda y, a: y**3 + a * y - 1.0)
    >>> round(vm.gradient(root, 1.0), 12)
    -0.284693079975
    """
    if not callable(solve):
        raise TypeError(f"implicit: solve is a {type(solve).__name__}, but must be a function!")

    def function(*args: Operand) -> Result:
        return solved_with(Inner("implicit", residual, args), solve)

    return update_wrapper(function, solve)


def solved_with(inner: Inner, solve: Function) -> Result:
    """Find the solution for the arguments of a residual."""
    if not inner.leaves:
        return _plain_solution(inner, solve, ())
    return implicit_solution(*inner.leaves, inner=inner, solve=solve)


def _plain_solution(inner: Inner, solve: Function, leaves: Sequence[Operand]) -> Result:
    y = data(solve(*inner.arguments(leaves)), f"{inner.name}: the solution")
    # A copy: the solver may overwrite the array that it returned.
    return np.array(y) if isinstance(y, np.ndarray) else y


@operation(variadic=True)
def implicit_solution(*leaves: Plain, inner: Inner, solve: Function) -> Plain:
    return _plain_solution(inner, solve, leaves)


@implicit_solution.reverse
def implicit_solution_reverse(
    g: Adjoint, r: Plain, *leaves: Plain, inner: Inner, solve: Function
) -> tuple[Adjoint, ...]:
    weights = _solve(inner, np.transpose(jacobian_of(inner, r, leaves)), np.ravel(g))
    value, pullback = inner.pullback((r,), leaves)
    weights = -weights.reshape(np.shape(value)) if np.shape(value) else -float(weights[0])
    contributions: tuple[Operand, ...] = pullback(weights)
    return contributions[1:]


@implicit_solution.tangent
def implicit_solution_tangent(
    r: Operand, *leaves: Operand, inner: Inner, solve: Function
) -> tuple[Linear, ...]:
    shape, n = np.shape(r), int(np.size(r))
    units = np.eye(n).reshape((n, *shape))
    value, tangent = inner.along((r,), (units, *[None] * len(leaves)), leaves)
    check_size(inner, np.size(value), n)
    rows = np.zeros((n, n)) if tangent is None else np.reshape(tangent, (n, n))

    def along(i: int, t: Operand) -> Result:
        rate = inner.rate((r,), leaves, i, t)
        if rate is None:
            return np.zeros(shape) if shape else 0.0
        return np.reshape(-_solve(inner, np.transpose(rows), np.reshape(rate, (n,))), shape)

    return tuple(partial(along, i) for i in range(len(leaves)))


def jacobian_of(inner: Inner, y: Operand, leaves: Sequence[Operand]) -> np.ndarray:
    """Compute the derivatives of the residual with respect to the unknowns, at plain numbers."""
    n = int(np.size(y))
    result = jacobian(lambda unknowns: inner((unknowns,), leaves), y)
    check_size(inner, np.size(result) // n, n)
    return np.reshape(result, (n, n))


def check_size(inner: Inner, result: int, n: int) -> None:
    """Raise unless the residual has as many elements as the unknowns."""
    if result != n:
        raise ShapeError(
            f"{inner.name}: the residual has {result} elements, but must have {n}, one for each "
            f"unknown!"
        )


def _solve(inner: Inner, matrix: Operand, b: Operand) -> Result:
    try:
        return np.linalg.solve(matrix, b)
    except np.linalg.LinAlgError as error:
        raise DomainError(
            f"{inner.name}: the Jacobian of the residual is singular at the solution, so the "
            "solution has no derivative!"
        ) from error
