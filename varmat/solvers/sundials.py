"""The solvers of SUNDIALS on plain arrays, through scikit-sundae if that is installed."""

from __future__ import annotations

import importlib.util
import warnings
from functools import cache, wraps
from typing import Any

import numpy as np

from varmat.interrupts import mark_from_signal
from varmat.typing import Function

# Block-diagonal matrices with more rows than this are sparse: measured for blocks of 8, a solution
# takes as long either way at 90 rows, and dense takes 1.6 times as long at 250 and 5 times at 400.
LARGEST_DENSE = 128


@cache
def has_sundials() -> bool:
    """Return whether scikit-sundae, which wraps SUNDIALS, is installed."""
    return importlib.util.find_spec("sksundae") is not None


class FirstError:
    """Keeps the first error of functions that SUNDIALS calls; SUNDIALS says only that one failed.

    Attributes
    ----------
    error : BaseException or None
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def kept(self, function: Function) -> Function:
        """Wrap a function to keep its errors."""

        @wraps(function)
        def called(*args: object) -> None:
            try:
                function(*args)
            # Any: SUNDIALS drops it.
            except BaseException as error:
                self.error = self.error or error
                raise

        return called


def fill(matrix: np.ndarray, blocks: np.ndarray) -> None:
    """Write a block-diagonal matrix in place: into a dense one, or into the entries of a sparse
    one.

    Parameters
    ----------
    matrix : ndarray, shape (parts * n, parts * n) or (parts * n * n,)
    blocks : ndarray, shape (parts, n, n)
    """
    if matrix.ndim == 1:
        matrix[:] = np.swapaxes(blocks, 1, 2).ravel()  # by columns
        return
    n = blocks.shape[1]
    for i, block in enumerate(blocks):
        matrix[i * n : (i + 1) * n, i * n : (i + 1) * n] = block


def instance(kind: type, *functions: Function, **settings: Any) -> Any:
    """Make a solver, without its warning that a sparse matrix given with its pattern is not
    approximated.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Custom sparse Jacobian", UserWarning)
        return kind(*functions, **settings)


def limits(rtol: float, atol: float, max_steps: int) -> dict[str, Any]:
    """Return the settings of a solver's tolerances and steps; it counts at most 2**31 - 1 steps."""
    return {"rtol": rtol, "atol": atol, "max_num_steps": min(max_steps, 2**31 - 1)}


def pattern(parts: int, n: int) -> dict[str, Any]:
    """Return the settings of a block-diagonal Jacobian: a sparse one, if it is large."""
    if parts == 1 or parts * n <= LARGEST_DENSE:
        return {}
    return {"linsolver": "sparse", "sparsity": np.kron(np.eye(parts), np.ones((n, n)))}


def solve(
    solver: Any, first: FirstError, times: np.ndarray, *start: np.ndarray
) -> tuple[Any, np.ndarray | None]:
    """Run a solver from the first time to all others, which may repeat.

    Returns
    -------
    report : SUNDIALS' result
    states : ndarray, shape (T - 1, n), or None
        None if the solver stopped before the last time.
    """
    ahead = 1.0 if times[-1] >= times[0] else -1.0
    saved, where = np.unique(ahead * times, return_inverse=True)
    saved = ahead * saved
    # Given only two times, a solver returns all its steps and ignores their limit: ask for three.
    asked = (
        saved if len(saved) > 2 else np.array([saved[0], 0.5 * saved[0] + 0.5 * saved[1], saved[1]])
    )
    try:
        report = solver.solve(asked, *start)
    # One of the functions, or of the handler of a signal: neither rates in native code nor the
    # solver raise others than these two. With Python 3.11 the solver drops the traceback, by which
    # a handler would be known.
    except BaseException as error:
        if first.error is not None:
            raise first.error from None
        if not isinstance(error, (ArithmeticError, RuntimeError)):
            mark_from_signal(error)
        raise
    if first.error is not None:
        raise first.error
    if not report.success or len(report.t) < len(asked):
        return report, None
    states = np.asarray(report.y)
    states = states[[0, -1]] if len(saved) == 2 else states
    chosen: np.ndarray = states[where[1:]]
    return report, chosen
