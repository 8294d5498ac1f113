"""Stan's functions that solve ordinary differential equations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from varmat.functions.checks import check_choice, outside
from varmat.functions.docstrings import filled
from varmat.solvers.initial_values import Limits, SolverSettings, check_limits, solution
from varmat.typing import ArrayFunction, Function, Operand, Result, array_valued

__all__ = [
    "integrate_ode",
    "integrate_ode_adams",
    "integrate_ode_bdf",
    "integrate_ode_rk45",
    "ode_adams",
    "ode_adams_tol",
    "ode_adjoint_tol_ctl",
    "ode_bdf",
    "ode_bdf_tol",
    "ode_ckrk",
    "ode_ckrk_tol",
    "ode_rk45",
    "ode_rk45_tol",
]


# Stan's relative and absolute tolerance. Its limits of steps, 1e6 and 1e8, are not taken: see
# `varmat.solvers.initial_values.most_steps`.
ONE_STEP, MULTISTEP = (1e-6, 1e-6, None), (1e-10, 1e-10, None)


def _solved(
    name: str,
    method: str,
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    limits: Limits,
    args: Sequence[Operand],
) -> Result:
    """Solve an initial value problem, y' = f(t, y, ...), by {method}.

    Parameters
    ----------
    f : callable
        ``f(t, y, *args)`` returns the rates of change, one for each state. Written in NumPy; what
        it depends on must be among `args`.
    y0 : array_like, shape (n,)
        Initial state, finite.
    t0 : float or Var
        Initial time, finite, in the unit of time of `f`.
    ts : array_like, shape (T,)
        Times of the solution: finite, above `t0`, in ascending order.
    {settings}*args
        Further arguments of `f`; finite. Scalars and arrays in them may be variables, to any depth
        of lists, tuples and dicts.

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
        If `f` does not return one rate for each state; if `y0` or `ts` is not a vector, or is
        empty.

    Notes
    -----
    The method is described in [1]_.
    {notes}
    The derivatives with respect to the initial state and to `args` are further states of a larger
    system [2]_, whose right-hand side is `f` on dual numbers; the steps keep their errors to the
    same tolerances. The derivatives with respect to the times are the rates there. Second
    derivatives solve the system of a derivative in the same way. Where `f` jumps at a fixed state,
    the derivatives are wrong, because they leave out that the jump moves; a jump where the time or
    the state passes a variable raises an error. `f` is recorded at its second call, and once more
    for each branch that it takes, up to eight. If it cannot be recorded, it is called as it is
    written, which is slower.
    {native}{limit}

    References
    ----------
    .. [1] {source}
    .. [2] E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd
       edition, Springer, 1993, section I.14.
    .. [3] Stan Functions Reference, "Ordinary differential equation (ODE) solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def decay(t, y, rate):
    ...     return -rate * y
    >>> vm.{name}(decay, [1.0], 0.0, [1.0, 2.0], {given}0.5).round(4)
    array([[0.6065],
           [0.3679]])
    >>> def f(rate):
    ...     return vm.{name}(decay, [1.0], 0.0, [1.0, 2.0], {given}rate)[1, 0]
    >>> round(vm.gradient(f, 0.5), 4)
    -0.7358
    """
    check_limits(name, limits)
    return solution(name, f, y0, t0, ts, args, SolverSettings(method, *limits[:2], limits[2] or 0))


TOLERANCES = """rel_tol, abs_tol : float
        Tolerances of the error of one step; positive.
    max_num_steps : int
        The most steps from one output time to the next.
    """
# The paragraph about programs that run without Python.
_IN_PROGRAMS = (
    "In a recording the whole solution is one step of the program: with the native runner it calls "
    "no Python."
)
ONE_STEP_LIMIT, MULTISTEP_LIMIT = (
    f"\n    From one time to the next it takes at most {most} steps divided by the number of times,"
    f"\n    but {least} if that is more."
    for most, least in (("10,000", "1,000"), ("50,000", "5,000"))
)
_METHODS = {
    "rk45": ("the method of Dormand and Prince, of order 5",
     "The steps are as in `scipy.integrate.RK45`, and end at the times.",
             ("J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae, J.\n"
              "       Comput. Appl. Math. 6, 1980.")),
    "ckrk": ("the method of Cash and Karp, of order 5", "The steps end at the times.",
             ("J. R. Cash and A. H. Karp, A variable order Runge-Kutta method, ACM Trans. Math.\n"
              "       Softw. 16, 1990.")),
    "bdf": ("backward differentiation formulas, for stiff systems",
     ("The steps are as in `scipy.integrate.BDF`. Where they become too small, as for stiff\n"
      "    oscillators at small tolerances, SUNDIALS solves the equation again if it is installed\n"
      "    (the extra ``[ode]``)."),
            ("L. F. Shampine and M. W. Reichelt, The MATLAB ODE Suite, SIAM J. Sci. Comput. 18,\n"
             "       1997.")),
    "adams": ("the formulas of Adams and Moulton, for systems that are not stiff",
     ("Outside of recordings, and where a recording uses up its steps, the steps are CVODE's,\n"
      "    through scikit-sundae, if that is installed (the extra ``[ode]``), and else of\n"
      "    `scipy.integrate.LSODA`: the results agree within the tolerances."),
              ("E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations\n"
               "       I, section III.7, Springer, 1993.")),
}  # fmt: skip


def _solvers(method: str, limits: Limits) -> tuple[ArrayFunction[...], ArrayFunction[...]]:
    """Make the function of a method with these limits, and the one that takes them."""
    words = dict(zip(("method", "notes", "source"), _METHODS[method], strict=True))
    words["native"] = _IN_PROGRAMS
    limit = ONE_STEP_LIMIT if limits is ONE_STEP else MULTISTEP_LIMIT

    @filled(f"ode_{method}", _solved, settings="", given="", limit=limit, **words)
    @array_valued
    def solve(f: Function, y0: Operand, t0: Operand, ts: Operand, *args: Operand) -> Result:
        return _solved(f"ode_{method}", method, f, y0, t0, ts, limits, args)

    defaults = "1e-9, 1e-9, 10000, "

    @filled(f"ode_{method}_tol", _solved, settings=TOLERANCES, given=defaults, limit="", **words)
    @array_valued
    def solve_tol(
        f: Function,
        y0: Operand,
        t0: Operand,
        ts: Operand,
        rel_tol: float,
        abs_tol: float,
        max_num_steps: int,
        *args: Operand,
    ) -> Result:
        limits = (rel_tol, abs_tol, max_num_steps)
        return _solved(f"ode_{method}_tol", method, f, y0, t0, ts, limits, args)

    return solve, solve_tol


ode_rk45, ode_rk45_tol = _solvers("rk45", ONE_STEP)
ode_ckrk, ode_ckrk_tol = _solvers("ckrk", ONE_STEP)
ode_bdf, ode_bdf_tol = _solvers("bdf", MULTISTEP)
ode_adams, ode_adams_tol = _solvers("adams", MULTISTEP)


@array_valued
def ode_adjoint_tol_ctl(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    rel_tol_forward: float,
    abs_tol_forward: ArrayLike,
    rel_tol_backward: float,
    abs_tol_backward: ArrayLike,
    rel_tol_quadrature: float,
    abs_tol_quadrature: float,
    max_num_steps: int,
    num_steps_between_checkpoints: int,
    interpolation_polynomial: int,
    solver_forward: int,
    solver_backward: int,
    *args: Operand,
) -> Result:
    """Solve an initial value problem, y' = f(t, y, ...), with the gradient by the adjoint equation.

    This is for systems with many parameters. The gradient takes one integration backwards in time,
    of as many states again and one integral for each parameter; the other solvers integrate a copy
    of the states for each parameter.

    Parameters
    ----------
    f : callable
        ``f(t, y, *args)`` returns the rates of change, one for each state. Written in NumPy; what
        it depends on must be among `args`.
    y0 : array_like, shape (n,)
        Initial state, finite.
    t0 : float or Var
        Initial time, finite.
    ts : array_like, shape (T,)
        Times of the solution: finite, above `t0`, in ascending order.
    rel_tol_forward, abs_tol_forward : float, or array_like, shape (n,), for the absolute one
        Tolerances of the state; positive.
    rel_tol_backward, abs_tol_backward : float, or array_like, shape (n,), for the absolute one
        Tolerances of the adjoint state; positive.
    rel_tol_quadrature, abs_tol_quadrature : float
        Tolerances of the gradient; positive. It is integrated together with the adjoint state, to
        the smaller of the two tolerances.
    max_num_steps : int
        The most steps from one output time to the next.
    num_steps_between_checkpoints : int
        Checked, but not used: every step of the forward solution is kept.
    interpolation_polynomial : {1, 2}
        Checked, but not used: the method itself interpolates between its steps.
    solver_forward, solver_backward : {1, 2}
        1 for Adams, 2 for backward differentiation.
    *args
        Further arguments of `f`; finite. Scalars and arrays in them may be variables, to any depth
        of lists, tuples and dicts.

    Returns
    -------
    ndarray or VarMat, shape (T, n)

    Raises
    ------
    DomainError
        If an argument is outside its domain, or the solver cannot keep to the tolerances or has
        used up its steps.
    ShapeError
        If `f` does not return one rate for each state; if `y0` or `ts` is not a vector, or is
        empty.

    Notes
    -----
    The adjoint l(t) solves l' = -(df/dy)^T l backwards in time, and jumps at each output by the
    adjoint of that output. The gradient is the integral of (df/dp)^T l [1]_. It is wrong where `f`
    jumps at a fixed state, because it leaves out that the jump moves; a jump where the time or the
    state passes a variable raises an error. The forward methods are `scipy.integrate.LSODA` and
    `BDF`, which have dense output; the backward ones are from CVODES [2]_ where scikit-sundae is
    installed.

    References
    ----------
    .. [1] Y. Cao, S. Li, L. Petzold and R. Serban, Adjoint sensitivity analysis for
       differential-algebraic equations, SIAM J. Sci. Comput. 24, 2003.
    .. [2] A. C. Hindmarsh et al., SUNDIALS: Suite of nonlinear and differential/algebraic equation
       solvers, ACM Trans. Math. Softw. 31, 2005.
    .. [3] Stan Functions Reference, "Ordinary differential equation (ODE) solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def decay(t, y, rate):
    ...     return -rate * y
    >>> settings = (1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9, 10000, 100, 1, 1, 1)
    >>> def at_two(rate):
    ...     return vm.ode_adjoint_tol_ctl(decay, [1.0], 0.0, [2.0], *settings, rate)[0, 0]
    >>> round(vm.gradient(at_two, 0.5), 4)
    -0.7358
    """
    name = "ode_adjoint_tol_ctl"
    tolerances = {
        "rel_tol_forward": rel_tol_forward, "abs_tol_forward": abs_tol_forward,
         "rel_tol_backward": rel_tol_backward,
        "abs_tol_backward": abs_tol_backward, "rel_tol_quadrature": rel_tol_quadrature,
         "abs_tol_quadrature": abs_tol_quadrature,
        "max_num_steps": max_num_steps,
         "num_steps_between_checkpoints": num_steps_between_checkpoints,
    }  # fmt: skip
    for title, value in tolerances.items():
        if not np.all(np.isfinite(value) & np.greater(value, 0.0)):
            raise outside(name, title, value, "be positive and finite")
    choices = {
        "interpolation_polynomial": interpolation_polynomial, "solver_forward": solver_forward,
         "solver_backward": solver_backward,
    }  # fmt: skip
    for title, value in choices.items():
        check_choice(name, title, value, 1, 2)
    methods = ["adams", "bdf"]
    backward = (
        methods[solver_backward - 1],
        min(rel_tol_backward, rel_tol_quadrature),
        float(min(np.min(abs_tol_backward), abs_tol_quadrature)),
    )
    how = SolverSettings(
        methods[solver_forward - 1],
        rel_tol_forward,
        float(np.min(abs_tol_forward)),
        max_num_steps,
        backward,
    )
    return solution(name, f, y0, t0, ts, args, how)


def _older(name: str, method: str) -> ArrayFunction[...]:
    """Solve a differential equation by `{new}`, with the arguments of older Stan programs.

    Parameters
    ----------
    f : callable
        ``f(t, y, theta, x_r, x_i)`` returns the rates of change.
    y0 : array_like, shape (n,)
        Initial state.
    t0 : float or Var
        Initial time.
    ts : array_like, shape (T,)
        Times of the solution.
    theta : array_like
        Parameters.
    x_r, x_i : array_like
        Data, real and integer.
    relative_tolerance, absolute_tolerance : float
        Tolerances of the error of one step.
    max_num_steps : int, optional
        The most steps from one output time to the next; by default as many as `{short}` takes.

    Returns
    -------
    ndarray or VarMat, shape (T, n)

    Raises
    ------
    DomainError, ShapeError
        As in `{new}`.

    Notes
    -----
    The derivative is as in `{new}`.

    References
    ----------
    * Stan Functions Reference, "Removed functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def decay(t, y, theta, x_r, x_i):
    ...     return -theta[0] * y
    >>> vm.{name}(decay, [1.0], 0.0, [2.0], np.array([0.5]), [], []).round(4)
    array([[0.3679]])
    """
    new = f"ode_{method}_tol"

    @filled(name, _older, new=new, short=new.removesuffix("_tol"))
    @array_valued
    def function(
        f: Function,
        y0: Operand,
        t0: Operand,
        ts: Operand,
        theta: Operand,
        x_r: Operand,
        x_i: Operand,
        relative_tolerance: float = 1e-6,
        absolute_tolerance: float = 1e-6,
        max_num_steps: int | None = None,
    ) -> Result:
        limits = (relative_tolerance, absolute_tolerance, max_num_steps)
        return _solved(name, method, f, y0, t0, ts, limits, (theta, x_r, x_i))

    return function


integrate_ode = _older("integrate_ode", "rk45")
integrate_ode_rk45 = _older("integrate_ode_rk45", "rk45")
integrate_ode_bdf = _older("integrate_ode_bdf", "bdf")
integrate_ode_adams = _older("integrate_ode_adams", "adams")
