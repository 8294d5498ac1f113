"""Solutions of ordinary differential equations as functions of initial states, times and
parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import Saved, is_differentiable, operation
from varmat.core.variables import VARIABLES, data
from varmat.derivatives.recorded import record_values
from varmat.derivatives.recording import lost
from varmat.derivatives.structure import leaves_of
from varmat.programs.program import ElsewhereError
from varmat.programs.runners import runner_for
from varmat.solvers.inner import MANY, Inner, value_now
from varmat.solvers.steppers import Problem, integrate

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


class Settings(NamedTuple):
    """How an equation is solved: the method, and tolerances of the state and of what is integrated
    backwards.
    """

    method: str
    rtol: float
    atol: float
    max_steps: int
    # Of the adjoint state and of the gradient, or None where sensitivities are integrated with the
    # state.
    backward: tuple[str, float, float] | None = None


class Leaves(tuple[Any, ...]):
    """Plain numbers for the leaves, with all of their elements as one vector."""

    elements: np.ndarray

    def __new__(cls, leaves: Sequence[Any]) -> Leaves:
        made = super().__new__(cls, leaves)
        made.elements = np.concatenate([np.empty(0), *map(np.ravel, leaves)])
        return made


class System:
    """The rates of a state and of its sensitivities, at plain numbers, as programs if they can be
    recorded.

    Parameters
    ----------
    inner : Inner
        ``f(t, y, *args)``.
    n : int
        The size of the state.
    """

    def __init__(self, inner: Inner, n: int) -> None:
        self.inner, self.n = inner, n
        self._programs: dict[Any, Any] = {}
        self._counts: dict[Any, int] = {}

    def rate(self, t: float, y: np.ndarray, leaves: Leaves) -> np.ndarray:
        """The rates of the state."""
        return self._run("rate", self._rate, t, y, leaves)

    def _rate(self, t: Any, y: Any, leaves: Sequence[Any]) -> Any:
        return checked_rates(self.inner, self.inner((t, y), leaves), self.n)

    def coupled(self, t: float, z: np.ndarray, leaves: Leaves, in_state: bool) -> np.ndarray:
        """The rates of the state and of its derivatives, one after the other: by initial state, if
        asked for, and by leaves.
        """
        return self._run(
            ("coupled", in_state),
            lambda t, z, leaves: self._coupled(t, z, leaves, in_state),
            t,
            z,
            leaves,
        )

    def _coupled(self, t: Any, z: Any, leaves: Sequence[Any], in_state: bool) -> Any:
        k = np.size(z) // self.n - 1
        y, s = z[: self.n], np.reshape(z[self.n :], (k, self.n))
        directions: list[Any] = []
        start = self.n if in_state else 0
        for x in leaves:
            units = np.zeros((k, np.size(x)))
            units[start : start + np.size(x)] = np.eye(np.size(x))
            directions.append(units.reshape((k, *np.shape(x))))
            start += np.size(x)
        value, rates = self.inner.along((t, y), (None, s, *directions), leaves)
        value = checked_rates(self.inner, value, self.n)
        rates = np.zeros((k, self.n)) if rates is None else rates
        return np.concatenate([value, np.reshape(rates, (k * self.n,))])

    def jacobian(self, t: float, y: np.ndarray, leaves: Leaves) -> np.ndarray:
        """Derivatives of the rates with respect to the state."""
        flat = self._run("jacobian", self._jacobian, t, y, leaves)
        return flat.reshape(self.n, self.n).T

    def _jacobian(self, t: Any, y: Any, leaves: Sequence[Any]) -> Any:
        value, rows = self.inner.along(
            (t, y), (None, np.eye(self.n), *[None] * len(leaves)), leaves
        )
        checked_rates(self.inner, value, self.n)
        return np.zeros(self.n**2) if rows is None else np.reshape(rows, (self.n**2,))

    def _run(
        self, key: Any, function: Callable[..., Any], t: float, z: np.ndarray, leaves: Leaves
    ) -> np.ndarray:
        """What a function returns, by its program where it has one."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        point = np.concatenate([(t,), z, leaves.elements])
        if count in (2, MANY):
            self._record(key, function, point, z.size, leaves, "numpy" if count < MANY else "auto")
        run = self._programs.get(key)
        if run is not None:
            try:
                found: np.ndarray = run([point])[1]
            except (ArithmeticError, ValueError, ElsewhereError):
                pass  # as it is written
            else:
                return found
        with np.errstate(all="ignore"):
            rates = function(t, z, leaves)
        if is_differentiable(rates):
            raise lost(self.inner.name, rates)
        return np.ravel(data(rates, f"{self.inner.name}: what f returns"))

    def _record(
        self,
        key: Any,
        function: Callable[..., Any],
        point: np.ndarray,
        size: int,
        leaves: Sequence[Any],
        runner: str,
    ) -> None:
        shapes = [np.shape(x) for x in leaves]

        def of_vector(v: Any) -> list[Any]:
            parts, start = [], 1 + size
            for shape in shapes:
                end = start + int(np.prod(shape))
                parts.append(np.reshape(v[start:end], shape) if shape else v[start])
                start = end
            return [function(v[0], v[1 : 1 + size], parts)]

        if runner == "auto" and self._programs.get(key) is None:
            return  # it could not be recorded
        try:
            with np.errstate(all="ignore"):
                program, _ = record_values(of_vector, point)
            self._programs[key] = runner_for(program, runner)
        except Exception:
            self._programs[key] = None  # what it does is said by calling it


def checked_rates(inner: Inner, rates: Any, n: int) -> Any:
    """What the user's function returns as a vector of the length of the state."""
    if isinstance(rates, (list, tuple)):
        rates = np.stack(rates)
    if np.shape(rates) != (n,):
        raise ShapeError(
            f"{inner.name}: f returns rates of shape {np.shape(rates)}, but must return one for "
            f"each state, ({n},)!"
        )
    return rates


# --- the operation ---


def solution(
    name: str, f: Callable[..., Any], y0: Any, t0: Any, ts: Any, args: Sequence[Any], how: Settings
) -> Any:
    """The states at the times, shape (T, n), of which operands and arguments may be variables."""
    y0, ts = (
        np.stack(x) if isinstance(x, (list, tuple)) and is_differentiable(x) else x
        for x in (y0, ts)
    )
    inner = Inner(name, f, args)
    state, start, times = checked_start(name, y0, t0, ts, [*leaves_of(args)])
    system = System(inner, state.size)
    if not inner.leaves and not is_differentiable([y0, t0, ts]):
        return integrate(how.method, _problem(system, how, Leaves(())), start, state, times)[0]
    operands = [
        x if is_differentiable(x) else p for x, p in ((y0, state), (t0, start), (ts, times))
    ]
    return ode_solution(
        *operands, *inner.leaves, system=system, how=how, in_state=is_differentiable([y0, t0])
    )


def checked_start(
    name: str, y0: Any, t0: Any, ts: Any, args: Sequence[Any], title: str = "y0"
) -> tuple[np.ndarray, float, np.ndarray]:
    """The plain values of initial state, initial time and times, which must be possible."""
    state, times = (
        np.asarray(data(value_now(x), f"{name}: {what}")) for x, what in ((y0, title), (ts, "ts"))
    )
    start = data(value_now(t0), f"{name}: t0")
    for x, what in ((state, title), (times, "ts")):
        if x.ndim != 1:
            raise ShapeError(f"{name}: {what} has shape {x.shape}, but must be a vector!")
        if not x.size:
            raise ShapeError(f"{name}: {what} has no elements, but must have at least one!")
        if not np.isfinite(x).all():
            i = int(np.flatnonzero(~np.isfinite(x))[0])
            raise DomainError(f"{name}: {what}[{i}] is {float(x[i])!r}, but must be finite!")
    if type(start) is not float:
        raise ShapeError(f"{name}: t0 has shape {np.shape(start)}, but must be a scalar!")
    if not np.isfinite(start):
        raise DomainError(f"{name}: t0 is {start!r}, but must be finite!")
    late = np.flatnonzero(np.diff(times) < 0.0)
    if late.size:
        i = int(late[0]) + 1
        raise DomainError(
            f"{name}: ts[{i}] is {float(times[i])!r}, but must not be below ts[{i - 1}], "
            f"{float(times[i - 1])!r}!"
        )
    if not start < times[0]:
        raise DomainError(
            f"{name}: t0 is {start!r}, but must be less than ts[0], {float(times[0])!r}!"
        )
    for x in args:
        values = np.asarray(value_now(x)) if not callable(x) else np.zeros(())
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            found = float(values[~np.isfinite(values)][0])
            raise DomainError(
                f"{name}: an argument of f has an element {found!r}, but must be finite!"
            )
    return np.array(state), start, np.array(times)


def _problem(
    system: System, how: Settings, leaves: Leaves, k: int = 0, in_state: bool = False
) -> Problem:
    """The equation of the state and of its derivatives in `k` directions."""
    n, name = system.n, system.inner.name
    # SciPy and SUNDIALS take no smaller one.
    limits = max(how.rtol, 2.3e-14), how.atol, how.max_steps
    if not k:
        return Problem(
            name,
            lambda t, y: system.rate(t, y, leaves),
            lambda t, y: system.jacobian(t, y, leaves)[None],
            *limits,
        )
    return Problem(
        name,
        lambda t, z: system.coupled(t, z, leaves, in_state),
        # Newton's method finds the state and the sensitivities with this alone; how the latter
        # depend on the state is left out.
        lambda t, z: np.repeat(system.jacobian(t, z[:n], leaves)[None], 1 + k, axis=0),
        *limits,
    )


@operation(variadic=True)
def ode_solution(
    y0: Any, t0: Any, ts: Any, *leaves: Any, system: System, how: Settings, in_state: bool
) -> Any:
    """`in_state` says whether derivatives with respect to the initial state or time will be asked
    for.
    """
    y0, t0, ts = np.asarray(y0), float(t0), np.asarray(ts)
    checked_start(system.inner.name, y0, t0, ts, leaves)  # a recording may bring others
    given = Leaves(leaves)
    if how.backward is not None:
        states, between = integrate(
            how.method, _problem(system, how, given), t0, y0, ts, dense=True
        )
        return Saved(np.ascontiguousarray(states), sensitivity=None, between=between)
    n = system.n
    k = n * in_state + sum(map(np.size, leaves))
    start = np.concatenate(
        [y0, *([np.eye(n).ravel()] if in_state else []), np.zeros((k - n * in_state) * n)]
    )
    states, _ = integrate(how.method, _problem(system, how, given, k, in_state), t0, start, ts)
    return Saved(
        np.ascontiguousarray(states[:, :n]),
        sensitivity=states[:, n:].reshape(ts.size, k, n),
        between=None,
    )


@ode_solution.reverse
def _(
    g: Any,
    r: Any,
    y0: Any,
    t0: Any,
    ts: Any,
    *leaves: Any,
    system: System,
    how: Settings,
    in_state: bool,
    sensitivity: Any,
    between: Any,
) -> tuple[Any, ...]:
    n, given = system.n, Leaves(leaves)
    if sensitivity is not None:
        weights = np.einsum("ti,tki->k", g, sensitivity)
        if not in_state:
            weights = np.concatenate([np.zeros(n), weights])
    else:
        weights = _backwards(g, y0, t0, ts, given, system, how, between)
    parts = np.split(weights, np.cumsum([n, *map(np.size, leaves)]))
    shaped = [
        part.reshape(np.shape(x)) if np.shape(x) else float(part[0])
        for part, x in zip(parts[1:], leaves, strict=False)
    ]

    def in_times() -> np.ndarray:
        return np.array(
            [row @ system.rate(float(t), y, given) for row, t, y in zip(g, ts, r, strict=True)]
        )

    return (parts[0], lambda: -float(parts[0] @ system.rate(t0, y0, given)), in_times, *shaped)


def _backwards(
    g: np.ndarray,
    y0: np.ndarray,
    t0: float,
    ts: np.ndarray,
    leaves: Leaves,
    system: System,
    how: Settings,
    between: Any,
) -> np.ndarray:
    """The adjoint of the initial state and the gradient in the leaves, by integrating the adjoint
    state back in time.
    """
    n, inner = system.n, system.inner
    method, rtol, atol = how.backward  # type: ignore[misc]
    size = n + sum(map(np.size, leaves))

    def rate(t: float, w: np.ndarray) -> np.ndarray:
        value, pullback = inner.pullback((t, between(t)), leaves)
        weights = w[:n] if isinstance(value, np.ndarray) else type(value)(w[:n].tolist())
        _, *parts = pullback(weights)
        return -np.concatenate([np.ravel(part) for part in parts])

    def jacobian(t: float, w: np.ndarray) -> np.ndarray:
        matrix = np.zeros((1, size, size))
        matrix[0, :n, :n] = -system.jacobian(t, between(t), leaves).T
        return matrix

    problem = Problem(inner.name, rate, jacobian, max(rtol, 2.3e-14), atol, how.max_steps)
    w = np.zeros(size)
    for i in range(len(ts) - 1, -1, -1):
        w[:n] += g[i]
        end = ts[i - 1] if i else t0
        if end != ts[i]:
            w = np.array(integrate(method, problem, float(ts[i]), w, np.array([end]))[0][0])
    return w


@ode_solution.tangent
def _(
    r: Any,
    y0: Any,
    t0: Any,
    ts: Any,
    *leaves: Any,
    system: System,
    how: Settings,
    in_state: bool,
    sensitivity: Any,
) -> tuple[Any, ...]:
    inner, n = system.inner, system.n
    ready = sensitivity is not None and not any(
        type(x) in VARIABLES or isinstance(x, ArrayMethods) for x in (y0, t0, ts, *leaves)
    )

    def rate(t: Any, y: Any) -> Any:
        return checked_rates(inner, inner((t, y), leaves), n)

    def along(i: int | None, start: Any, t: Any) -> Any:
        """The derivative of the states along one of initial state (None) and leaves: that of a
        larger equation.
        """
        states = solution(
            inner.name,
            Along(inner, n, i),
            np.concatenate([y0, start]),
            t0,
            ts,
            [list(leaves), t],
            how,
        )
        return states[:, n:]

    def in_state_of(t: Any) -> Any:
        return (
            np.tensordot(t, sensitivity[:, :n], (0, 1))
            if ready and in_state
            else along(None, t, 0.0)
        )

    def in_leaf(i: int) -> Callable[[Any], Any]:
        first = n * in_state + sum(map(np.size, leaves[:i]))
        part: Any = (
            None if sensitivity is None else sensitivity[:, first : first + np.size(leaves[i])]
        )

        def push(t: Any) -> Any:
            return np.tensordot(np.ravel(t), part, (0, 1)) if ready else along(i, np.zeros(n), t)

        return push

    def in_times(t: Any) -> Any:
        return np.stack([rate(ts[i], r[i]) * t[i] for i in range(np.size(ts))])

    return (
        in_state_of,
        lambda t: in_state_of(-t * rate(t0, y0)),
        in_times,
        *map(in_leaf, range(len(leaves))),
    )


class Along:
    """The rates of a state and of its derivative along the initial state (None), or along one of
    the leaves of its equation.
    """

    def __init__(self, inner: Inner, n: int, i: int | None) -> None:
        self.inner, self.n, self.i = inner, n, i

    def __call__(self, t: Any, z: Any, leaves: Sequence[Any], direction: Any) -> Any:
        tangents: list[Any] = [None] * len(leaves)
        if self.i is not None:
            tangents[self.i] = direction
        value, rate = self.inner.along((t, z[: self.n]), (None, z[self.n :], *tangents), leaves)
        value = checked_rates(self.inner, value, self.n)
        return np.concatenate([value, np.zeros(self.n) if rate is None else rate])


# --- Stan's functions ---

# The defaults of Stan: relative and absolute tolerance, and the most steps from one output time to
# the next.
ONE_STEP, MULTISTEP = (1e-6, 1e-6, 10**6), (1e-10, 1e-10, 10**8)


def _solved(
    name: str,
    method: str,
    f: Callable[..., Any],
    y0: Any,
    t0: Any,
    ts: Any,
    limits: Sequence[Any],
    args: Sequence[Any],
) -> Any:
    for title, value in zip(("rel_tol", "abs_tol", "max_num_steps"), limits, strict=True):
        if not (0.0 < value < np.inf):
            raise DomainError(f"{name}: {title} is {value!r}, but must be positive and finite!")
    return solution(name, f, y0, t0, ts, args, Settings(method, *limits))


def ode_rk45(f: Callable[..., Any], y0: Any, t0: Any, ts: Any, *args: Any) -> Any:
    return _solved("ode_rk45", "rk45", f, y0, t0, ts, ONE_STEP, args)


def ode_rk45_tol(
    f: Callable[..., Any],
    y0: Any,
    t0: Any,
    ts: Any,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Any,
) -> Any:
    return _solved("ode_rk45_tol", "rk45", f, y0, t0, ts, (rel_tol, abs_tol, max_num_steps), args)


def ode_ckrk(f: Callable[..., Any], y0: Any, t0: Any, ts: Any, *args: Any) -> Any:
    return _solved("ode_ckrk", "ckrk", f, y0, t0, ts, ONE_STEP, args)


def ode_ckrk_tol(
    f: Callable[..., Any],
    y0: Any,
    t0: Any,
    ts: Any,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Any,
) -> Any:
    return _solved("ode_ckrk_tol", "ckrk", f, y0, t0, ts, (rel_tol, abs_tol, max_num_steps), args)


def ode_bdf(f: Callable[..., Any], y0: Any, t0: Any, ts: Any, *args: Any) -> Any:
    return _solved("ode_bdf", "bdf", f, y0, t0, ts, MULTISTEP, args)


def ode_bdf_tol(
    f: Callable[..., Any],
    y0: Any,
    t0: Any,
    ts: Any,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Any,
) -> Any:
    return _solved("ode_bdf_tol", "bdf", f, y0, t0, ts, (rel_tol, abs_tol, max_num_steps), args)


def ode_adams(f: Callable[..., Any], y0: Any, t0: Any, ts: Any, *args: Any) -> Any:
    return _solved("ode_adams", "adams", f, y0, t0, ts, MULTISTEP, args)


def ode_adams_tol(
    f: Callable[..., Any],
    y0: Any,
    t0: Any,
    ts: Any,
    rel_tol: float,
    abs_tol: float,
    max_num_steps: int,
    *args: Any,
) -> Any:
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
    it is, and slower. Second derivatives solve the system of a derivative in the same way.

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


def _document(function: Callable[..., Any]) -> None:
    method, notes, source = _METHODS[function.__name__.split("_")[1]]
    with_settings = function.__name__.endswith("_tol")
    call = f"{function.__name__}(decay, [1.0], 0.0, [1.0, 2.0], " + (
        "1e-9, 1e-9, 10000, " if with_settings else ""
    )
    settings = _TOLERANCES if with_settings else ""
    function.__doc__ = _DOC.format(
        method=method, notes=notes, source=source, call=call, settings=settings
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
    f: Callable[..., Any],
    y0: Any,
    t0: Any,
    ts: Any,
    rel_tol_forward: float,
    abs_tol_forward: Any,
    rel_tol_backward: float,
    abs_tol_backward: Any,
    rel_tol_quadrature: float,
    abs_tol_quadrature: float,
    max_num_steps: int,
    num_steps_between_checkpoints: int,
    interpolation_polynomial: int,
    solver_forward: int,
    solver_backward: int,
    *args: Any,
) -> Any:
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
           differential-algebraic equations, SIAM J. Sci.
       Comput. 24, 2003.

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


def _older(name: str, method: str) -> Callable[..., Any]:
    new = f"ode_{method}_tol"

    def function(
        f: Callable[..., Any],
        y0: Any,
        t0: Any,
        ts: Any,
        theta: Any,
        x_r: Any,
        x_i: Any,
        relative_tolerance: float = 1e-6,
        absolute_tolerance: float = 1e-6,
        max_num_steps: int = 10**6,
    ) -> Any:
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
