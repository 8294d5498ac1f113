"""Solutions of differential-algebraic equations as functions of initial states and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dual import value_now
from varmat.core.operation import Saved, is_differentiable, operation
from varmat.core.variables import VARIABLES, data
from varmat.derivatives.structure import leaves_of, shaped, unit_rows
from varmat.functions.checks import misfit
from varmat.functions.docstrings import filled
from varmat.solvers import steppers, sundials
from varmat.solvers.differential import MULTISTEP, MULTISTEP_LIMIT, TOLERANCES
from varmat.solvers.initial_values import Limits, check_limits, checked_start, most_steps, stacked
from varmat.solvers.inner import Inner, check_finite
from varmat.solvers.systems import Leaves, System
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, array_valued

__all__ = ["dae", "dae_tol"]


class Residual(System):
    """A residual F(t, y, y') and its derivatives, at plain numbers; programs if possible."""

    returned = "the residual has shape {}, but must have one element"

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray, leaves: Leaves) -> np.ndarray:
        """Evaluate the residual of the state."""
        return self._run("residual", self._residual, t, np.concatenate([y, yp]), leaves)

    def _residual(self, t: Operand, z: Operand, leaves: Sequence[Operand]) -> Result:
        return self.checked(self.inner((t, z[: self.n], z[self.n :]), leaves))

    def with_derivatives(
        self, t: float, y: np.ndarray, yp: np.ndarray, leaves: Leaves, in_state: bool
    ) -> np.ndarray:
        """Evaluate the residual of the state, then of its derivatives: F_y S + F_y' S' + F_p.

        T. Maly and L. R. Petzold, Appl. Numer. Math. 20, 1996.
        """
        written = lambda t, z, leaves: self._with_derivatives(t, z, leaves, in_state)  # noqa: E731
        return self._run(("derivatives", in_state), written, t, np.concatenate([y, yp]), leaves)

    def _with_derivatives(
        self, t: Operand, z: Operand, leaves: Sequence[Operand], in_state: bool
    ) -> Result:
        n = self.n
        k = np.size(z) // (2 * n) - 1
        y, yp = z[: (1 + k) * n], z[(1 + k) * n :]
        states = np.reshape(y[n:], (k, n)), np.reshape(yp[n:], (k, n))
        tangents = (None, *states, *unit_rows(leaves, n * in_state))
        return np.concatenate(self.along((t, y[:n], yp[:n]), tangents, leaves, k))

    def jacobians(
        self, t: float, y: np.ndarray, yp: np.ndarray, leaves: Leaves
    ) -> tuple[np.ndarray, np.ndarray]:
        """Differentiate the residual with respect to the state and to its rates."""
        n = self.n
        rows = self._run("jacobians", self._jacobians, t, np.concatenate([y, yp]), leaves).reshape(
            2 * n, n
        )
        return rows[:n].T, rows[n:].T

    def _jacobians(self, t: Operand, z: Operand, leaves: Sequence[Operand]) -> Result:
        n = self.n
        units = np.eye(2 * n)
        directions = (None, units[:, :n], units[:, n:], *[None] * len(leaves))
        return self.along((t, z[:n], z[n:]), directions, leaves, 2 * n)[1]


# --- the operation ---


@operation(variadic=True)
def dae_solution(
    yy0: Plain,
    yp0: Plain,
    *leaves: Plain,
    system: Residual,
    times: np.ndarray,
    limits: tuple[float, float, int],
    in_state: bool,
) -> Plain:
    """Compute the states at `times` but the first, the initial one; `in_state`: whether derivatives
    in the initial state are wanted.
    """
    y, yp, parameters, n = np.asarray(yy0), np.asarray(yp0), Leaves(leaves), system.n
    k = n * in_state + sum(map(np.size, leaves))
    if k:
        s, sp = _initial_derivatives(system, times[0], y, yp, parameters, in_state, k)
        y, yp = np.concatenate([y, s.ravel()]), np.concatenate([yp, sp.ravel()])
    states = _integrated(system, times, y, yp, parameters, limits, in_state)
    return Saved(
        np.ascontiguousarray(states[:, :n]), sensitivity=states[:, n:].reshape(len(times) - 1, k, n)
    )


def _initial_derivatives(
    system: Residual,
    t: float,
    y: np.ndarray,
    yp: np.ndarray,
    leaves: Leaves,
    in_state: bool,
    k: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Find consistent derivatives S of the initial state and S' of its rates, each of shape (k, n).

    Components in the null space of F_y' are not free: the equation itself determines them, whatever
    the initial state is. That part of the given S is replaced, and S' is sought in the rest of the
    space.
    """
    n = system.n
    s = np.zeros((k, n))
    if in_state:
        s[:n] = np.eye(n)
    start, remainder = np.concatenate([y, s.ravel()]), np.concatenate([yp, np.zeros(k * n)])
    missing = system.with_derivatives(t, start, remainder, leaves, in_state)[n:].reshape(k, n)
    in_y, in_yp = system.jacobians(t, y, yp, leaves)
    _, values, axes = np.linalg.svd(in_yp)
    moving = values > n * np.finfo(float).eps * values[0]
    free, fixed = axes[moving].T, axes[~moving].T
    solution = np.linalg.lstsq(np.hstack([in_yp @ free, in_y @ fixed]), -missing.T, rcond=None)[0]
    count = free.shape[1]
    return s + (fixed @ solution[count:]).T, (free @ solution[:count]).T


def _integrated(
    system: Residual,
    times: np.ndarray,
    y: np.ndarray,
    yp: np.ndarray,
    leaves: Leaves,
    limits: tuple[float, float, int],
    in_state: bool,
) -> np.ndarray:
    """Compute the states at all times but the first, by IDA of SUNDIALS."""
    from sksundae.ida import IDA

    n, parts, first = system.n, len(y) // system.n, sundials.FirstError()
    moves = steppers.Progress(system.inner.name, float(times[0]))

    def residual(t: float, y: np.ndarray, yp: np.ndarray, residuals: np.ndarray) -> None:
        moves(t)
        if parts == 1:
            residuals[:] = system.residual(t, y.copy(), yp.copy(), leaves)
        else:
            residuals[:] = system.with_derivatives(t, y.copy(), yp.copy(), leaves, in_state)

    def jacobian(
        t: float, y: np.ndarray, yp: np.ndarray, _: np.ndarray, cj: float, matrix: np.ndarray
    ) -> None:
        # How the derivatives depend on the state is left out: Newton's method converges without.
        in_y, in_yp = system.jacobians(t, y[:n].copy(), yp[:n].copy(), leaves)
        sundials.fill(matrix, np.tile(in_y + cj * in_yp, (parts, 1, 1)))

    rtol, atol, most = limits
    settings = sundials.limits(max(rtol, 1e-15), atol, most) | sundials.pattern(parts, n)
    solver = sundials.instance(IDA, first.kept(residual), jacfn=first.kept(jacobian), **settings)
    report, states = sundials.solve(solver, first, times, y, yp)
    if states is None:
        raise steppers.stopped(
            system.inner.name, report.t[-1], f"{report.nfev} evaluations", report.message
        )
    return states


@dae_solution.reverse
def dae_solution_reverse(
    g: Adjoint,
    r: Plain,
    yy0: Plain,
    yp0: Plain,
    *leaves: Plain,
    system: Residual,
    in_state: bool,
    sensitivity: Plain,
    **_: Any,
) -> tuple[Adjoint, ...]:
    weights = np.einsum("ti,tki->k", g, sensitivity)
    if not in_state:
        weights = np.concatenate([np.zeros(system.n), weights])
    of_state, *of_leaves = shaped(weights, [(system.n,), *map(np.shape, leaves)])
    return (of_state, np.zeros(system.n), *of_leaves)


@dae_solution.tangent
def dae_solution_tangent(
    r: Operand,
    yy0: Operand,
    yp0: Operand,
    *leaves: Operand,
    system: Residual,
    in_state: bool,
    sensitivity: Plain,
    **_: Any,
) -> tuple[Linear, ...]:
    if any(type(x) in VARIABLES or isinstance(x, ArrayMethods) for x in (yy0, yp0, *leaves)):
        raise TypeError(
            f"{system.inner.name}: solutions of differential-algebraic equations "
            "have no second derivatives!"
        )
    starts = np.cumsum([0, system.n * in_state, *map(np.size, leaves)])

    def along(i: int) -> Linear:
        part = sensitivity[:, starts[i] : starts[i + 1]]
        return lambda t: np.tensordot(np.ravel(t), part, (0, 1))

    return (along(0), lambda t: np.zeros(np.shape(r)), *(along(1 + i) for i in range(len(leaves))))


# --- Stan's functions ---


def _solved(
    name: str,
    residual: Function,
    yy0: Operand,
    yp0: Operand,
    t0: Operand,
    ts: Operand,
    limits: Limits,
    args: Sequence[Operand],
) -> Result:
    """Solve a system of differential-algebraic equations, F(t, y, y', ...) = 0, by backward
    differentiation formulas.

    Parameters
    ----------
    residual : callable
        ``residual(t, yy, yp, *args)``, of the state and its rates of change, is zero along the
        solution and has one element for each state. Written in NumPy; what it depends on must be
        among `args`.
    yy0 : array_like, shape (n,)
        Initial state, finite.
    yp0 : array_like, shape (n,)
        Initial rates of change, finite. Both together must fit the equations.
    t0 : float
        Initial time, finite.
    ts : array_like, shape (T,)
        Times of the solution: finite, above `t0`, in ascending order.
    {settings}*args
        Further arguments of `residual`; finite. Scalars and arrays in them may be variables, to
        any depth of lists, tuples and dicts.

    Returns
    -------
    ndarray or VarMat, shape (T, n)
        A state for each time.

    Raises
    ------
    DomainError
        If an argument is outside its domain, or the solver cannot keep to the tolerances or has
        used up its steps.
    ShapeError
        If `residual` does not have one element for each state; if `yy0`, `yp0` or `ts` has a wrong
        shape.
    TypeError
        If a time carries derivatives; if second derivatives are wanted.
    ImportError
        If scikit-sundae is not installed: it is in the extra ``[ode]``.

    Notes
    -----
    The method is IDA's [1]_, for equations of index one. The derivatives S with respect to the
    initial state and to `args` are further states of a larger system, F_y S + F_y' S' + F_p = 0
    [2]_; the steps keep their errors to the same tolerances. They fit the equations at `t0`: a
    state whose rate does not occur in the equations follows from the others, so its initial value
    has the derivative zero, as `yp0` has. Where the equations jump at a fixed state, the
    derivatives are wrong, because they leave out that the jump moves; a jump where the time or the
    state passes a variable raises an error. Second derivatives do not exist.{limit}

    References
    ----------
    .. [1] A. C. Hindmarsh et al., SUNDIALS: Suite of nonlinear and differential/algebraic equation
       solvers, ACM Trans. Math. Softw. 31, 2005.
    .. [2] T. Maly and L. R. Petzold, Numerical methods and software for sensitivity analysis of
       differential-algebraic systems, Appl. Numer. Math. 20, 1996.
    .. [3] Stan Functions Reference, "Differential-Algebraic equation (DAE) solver".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def residual(t, yy, yp, rate):
    ...     return np.stack([yp[0] + rate * yy[0], yy[0] + yy[1] - 1.0])
    >>> def f(rate):
    ...     return vm.{name}(residual, [1.0, 0.0], [-0.5, 0.5], 0.0, [2.0], {given}rate)
    >>> f(0.5).round(4)
    array([[0.3679, 0.6321]])
    >>> round(vm.gradient(lambda rate: f(rate)[0, 0], 0.5), 4)
    -0.7358
    """
    check_limits(name, limits)
    if is_differentiable([t0, ts]):
        raise TypeError(
            f"{name}: t0 or ts carries derivatives, but must be plain numbers, because the "
            "solution has no derivatives in the times!"
        )
    yy0, yp0 = stacked(yy0), stacked(yp0)
    inner = Inner(name, residual, args)
    state, start, times = checked_start(name, yy0, t0, ts, [*leaves_of(args)], "yy0")
    rates = np.asarray(data(value_now(yp0), f"{name}: yp0"))
    if rates.shape != state.shape:
        raise misfit(name, "yp0", rates.shape, f"have the shape of yy0, {state.shape}")
    check_finite(name, "yp0", rates)
    if not sundials.has_sundials():
        raise ImportError(
            f'{name}: scikit-sundae is not installed: in a clone of varmat, pip install -e ".[ode]"'
        )
    operands = [x if is_differentiable(x) else p for x, p in ((yy0, state), (yp0, rates))]
    return dae_solution(
        *operands,
        *inner.leaves,
        system=Residual(inner, state.size),
        times=np.concatenate([[start], times]),
        limits=(*limits[:2], limits[2] or most_steps("bdf", times.size)),
        in_state=is_differentiable(yy0),
    )


@filled("", _solved, settings="", given="", limit=MULTISTEP_LIMIT)
@array_valued
def dae(
    residual: Function, yy0: Operand, yp0: Operand, t0: float, ts: Operand, *args: Operand
) -> Result:
    return _solved("dae", residual, yy0, yp0, t0, ts, MULTISTEP, args)


@filled("", _solved, settings=TOLERANCES, given="1e-9, 1e-9, 10000, ", limit="")
@array_valued
def dae_tol(
    residual: Function,
    yy0: Operand,
    yp0: Operand,
    t0: float,
    ts: Operand,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Operand,
) -> Result:
    return _solved("dae_tol", residual, yy0, yp0, t0, ts, (rel_tol, abs_tol, max_num_steps), args)
