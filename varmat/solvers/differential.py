"""Stan's functions that solve ordinary differential equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.errors import DomainError
from varmat.solvers.initial_values import Settings, solution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from varmat.typing import Function, Operand, Result

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


# The defaults of Stan: relative and absolute tolerance, and the most steps from one output time to
# the next.
ONE_STEP, MULTISTEP = (1e-6, 1e-6, 10**6), (1e-10, 1e-10, 10**8)


def _solved(
    name: str,
    method: str,
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    limits: tuple[float, float, int],
    args: Sequence[Operand],
) -> Result:
    for title, value in zip(("rel_tol", "abs_tol", "max_num_steps"), limits, strict=True):
        if not (0.0 < value < np.inf):
            raise DomainError(f"{name}: {title} is {value!r}, but must be positive and finite!")
    return solution(name, f, y0, t0, ts, args, Settings(method, *limits))


def ode_rk45(f: Function, y0: Operand, t0: Operand, ts: Operand, *args: Operand) -> Result:
    return _solved("ode_rk45", "rk45", f, y0, t0, ts, ONE_STEP, args)


def ode_rk45_tol(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Operand,
) -> Result:
    return _solved("ode_rk45_tol", "rk45", f, y0, t0, ts, (rel_tol, abs_tol, max_num_steps), args)


def ode_ckrk(f: Function, y0: Operand, t0: Operand, ts: Operand, *args: Operand) -> Result:
    return _solved("ode_ckrk", "ckrk", f, y0, t0, ts, ONE_STEP, args)


def ode_ckrk_tol(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Operand,
) -> Result:
    return _solved("ode_ckrk_tol", "ckrk", f, y0, t0, ts, (rel_tol, abs_tol, max_num_steps), args)


def ode_bdf(f: Function, y0: Operand, t0: Operand, ts: Operand, *args: Operand) -> Result:
    return _solved("ode_bdf", "bdf", f, y0, t0, ts, MULTISTEP, args)


def ode_bdf_tol(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Operand,
) -> Result:
    return _solved("ode_bdf_tol", "bdf", f, y0, t0, ts, (rel_tol, abs_tol, max_num_steps), args)


def ode_adams(f: Function, y0: Operand, t0: Operand, ts: Operand, *args: Operand) -> Result:
    return _solved("ode_adams", "adams", f, y0, t0, ts, MULTISTEP, args)


def ode_adams_tol(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Operand,
) -> Result:
    return _solved("ode_adams_tol", "adams", f, y0, t0, ts, (rel_tol, abs_tol, max_num_steps), args)


_DOC = """Solve an initial value problem, y' = f(t, y, ...), by {method}.

    Parameters
    ----------
    f : callable
        ``f(t, y, *args)`` returns the rates of change, as many as there are states. Written in
        NumPy; what it depends on must be among `args`.
    y0 : array_like, shape (n,)
        Initial state, finite.
    t0 : float or Var
        Initial time, finite, in the unit of time of `f`.
    ts : array_like, shape (T,)
        Times of the solution: finite, above `t0`, in ascending order.
{settings}    *args
        Whatever else `f` takes: finite. Scalars and arrays in it may be variables, to any depth of
        lists, tuples and dicts.

    Returns
    -------
    ndarray or VarMat, shape (T, n)
        A state for each time.

    Raises
    ------
    DomainError
        If an argument is outside its domain, or the solver cannot go on within the tolerances, or
        has used up its steps.
    ShapeError
        If `f` returns another number of rates than there are states; if `y0` or `ts` is no vector,
        or has no elements.

    Notes
    -----
    {notes} The derivatives with respect to the initial state and to `args` are states of a larger
    system, whose error is controlled with that of the state, to the same tolerances; its right-hand
    side is `f` on dual numbers. Those in the times are the rates there. `f` is recorded when it is
    called for the second time, so it must not branch on its arguments; if it does, it is called as
    it is, and slower. Second derivatives solve the system of a derivative in the same way. {native}

    References
    ----------
    .. [1] {source}

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def decay(t, y, rate):
    ...     return -rate * y
    >>> vm.{call}0.5).round(4)
    array([[0.6065],
           [0.3679]])
    >>> round(vm.gradient(lambda k: vm.{call}k)[1, 0], 0.5), 4)
    -0.7358
    """
_TOLERANCES = """    rel_tol, abs_tol : float
        Tolerances of the error of one step; positive.
    max_num_steps : int
        The most steps from one output time to the next.
"""
_SUNDIALS = (
    "The method is that of CVODE, through scikit-sundae, where that is installed (``pip install "
    "'varmat[ode]'``), and `{scipy}` "
    "where it is not: this takes more steps at small tolerances."
)
# What there is of the two kinds of methods without Python.
_IN_PROGRAMS = (
    "In a recording the whole solution is one step of the program: with the native "
    "runner it calls no Python."
)
_BY_CALLS = (
    "With the native runner each call of it runs without Python, but the solver between "
    "the calls does not."
)
_METHODS = {
    "rk45": ("the method of Dormand and Prince, of order 5",
     "The steps are those of `scipy.integrate.RK45`, and end at the times.",
             ("J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae, J. "
             "Comput. Appl. Math. 6, 1980.")),
    "ckrk": ("the method of Cash and Karp, of order 5", "The steps end at the times.",
             ("J. R. Cash and A. H. Karp, A variable order Runge-Kutta method, ACM Trans. Math. "
             "Softw. 16, 1990.")),
    "bdf": ("backward differentiation formulas, for stiff systems",
     _SUNDIALS.format(scipy="scipy.integrate.BDF"),
            "A. C. Hindmarsh et al., SUNDIALS, ACM Trans. Math. Softw. 31, 2005."),
    "adams": ("the formulas of Adams and Moulton, for systems that are not stiff",
     _SUNDIALS.format(scipy="scipy.integrate.LSODA"),
              "A. C. Hindmarsh et al., SUNDIALS, ACM Trans. Math. Softw. 31, 2005."),
}  # fmt: skip


def _document(function: Function) -> None:
    method, notes, source = _METHODS[function.__name__.split("_")[1]]
    with_settings = function.__name__.endswith("_tol")
    call = f"{function.__name__}(decay, [1.0], 0.0, [1.0, 2.0], " + (
        "1e-9, 1e-9, 10000, " if with_settings else ""
    )
    settings = _TOLERANCES if with_settings else ""
    native = _IN_PROGRAMS if "rk" in function.__name__ else _BY_CALLS
    function.__doc__ = _DOC.format(
        method=method, notes=notes, source=source, call=call, settings=settings, native=native
    )


for _function in (
    ode_rk45,
    ode_rk45_tol,
    ode_ckrk,
    ode_ckrk_tol,
    ode_bdf,
    ode_bdf_tol,
    ode_adams,
    ode_adams_tol,
):
    _document(_function)


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
    """Solve an initial value problem, y' = f(t, y, ...), whose gradient comes from an equation that
    is solved backwards.

    This is for systems with many parameters: the gradient costs one integration, of as many states
    again and as many integrals as there are parameters, and not one for each parameter.

    Parameters
    ----------
    f : callable
        ``f(t, y, *args)`` returns the rates of change, as many as there are states. Written in
        NumPy; what it depends on must be among `args`.
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
        Tolerances of the gradient; positive. It is integrated with the adjoint state: the smaller
        tolerances are taken for both.
    max_num_steps : int
        The most steps from one output time to the next.
    num_steps_between_checkpoints : int
        Checked, and not needed: every step of the forward solution is kept.
    interpolation_polynomial : {1, 2}
        Checked, and not needed: the state between steps is that of the method.
    solver_forward, solver_backward : {1, 2}
        1 for Adams, 2 for backward differentiation.
    *args
        Whatever else `f` takes: finite. Scalars and arrays in it may be variables, to any depth of
        lists, tuples and dicts.

    Returns
    -------
    ndarray or VarMat, shape (T, n)

    Raises
    ------
    DomainError
        If an argument is outside its domain, or the solver cannot go on within the tolerances, or
        has used up its steps.
    ShapeError
        If `f` returns another number of rates than there are states; if `y0` or `ts` is no vector,
        or has no elements.

    Notes
    -----
    With the state y(t) and the adjoint l(t), l' = -(df/dy)^T l, which jumps by the adjoint of each
    output; the gradient is the integral of (df/dp)^T l [1]_. The methods are
    `scipy.integrate.LSODA` and `BDF`, which have dense output; going back, CVODE where
    scikit-sundae is installed.

    References
    ----------
    .. [1] Y. Cao, S. Li, L. Petzold and R. Serban, Adjoint sensitivity analysis for
       differential-algebraic equations, SIAM J. Sci. Comput. 24, 2003.

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
            raise DomainError(f"{name}: {title} is {value!r}, but must be positive and finite!")
    choices = {
        "interpolation_polynomial": interpolation_polynomial, "solver_forward": solver_forward,
         "solver_backward": solver_backward,
    }  # fmt: skip
    for title, value in choices.items():
        if value not in (1, 2):
            raise DomainError(f"{name}: {title} is {value!r}, but must be 1 or 2!")
    methods = ["adams", "bdf"]
    backward = (
        methods[solver_backward - 1],
        min(rel_tol_backward, rel_tol_quadrature),
        float(min(np.min(abs_tol_backward), abs_tol_quadrature)),
    )
    how = Settings(
        methods[solver_forward - 1],
        rel_tol_forward,
        float(np.min(abs_tol_forward)),
        max_num_steps,
        backward,
    )
    return solution(name, f, y0, t0, ts, args, how)


def _older(name: str, method: str) -> Function:
    new = f"ode_{method}_tol"

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
        max_num_steps: int = 10**6,
    ) -> Result:
        limits = (relative_tolerance, absolute_tolerance, max_num_steps)
        return _solved(name, method, f, y0, t0, ts, limits, (theta, x_r, x_i))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`{new}` with the arguments of older Stan programs.

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
    max_num_steps : int
        The most steps from one output time to the next.

    Returns
    -------
    ndarray or VarMat, shape (T, n)

    Raises
    ------
    DomainError, ShapeError
        As in `{new}`.

    Notes
    -----
    The derivative is that of `{new}`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def decay(t, y, theta, x_r, x_i):
    ...     return -theta[0] * y
    >>> vm.{name}(decay, [1.0], 0.0, [2.0], np.array([0.5]), [], []).round(4)
    array([[0.3679]])
    """
    return function


integrate_ode = _older("integrate_ode", "rk45")
integrate_ode_rk45 = _older("integrate_ode_rk45", "rk45")
integrate_ode_bdf = _older("integrate_ode_bdf", "bdf")
integrate_ode_adams = _older("integrate_ode_adams", "adams")
