"""Convolution and correlation of vectors."""

from __future__ import annotations

import numpy as np

from varmat.core import dispatch
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import misfit
from varmat.typing import Adjoint, Operand, Plain, Result, Setting


def _numpy_window(m: int, n: int, mode: str) -> slice:
    """Return the part of the full convolution that a mode of NumPy keeps: by the longer operand."""
    short, long = sorted((m, n))
    match mode:
        case "full" | 2:
            return slice(0, m + n - 1)
        case "same" | 1:
            return slice((short - 1) // 2, (short - 1) // 2 + long)
        case "valid" | 0:
            return slice(short - 1, long)
    raise TypeError(f"convolve: mode is {mode!r}, but must be 'full', 'same' or 'valid'!")


@operation(linear=True)
def convolve(a: Operand, v: Operand, mode: Setting = "full") -> Result:
    """Convolve two vectors.

    Parameters
    ----------
    a, v : array_like, vectors that are not empty
    mode : {'full', 'same', 'valid'}
        Part to return, as in `numpy.convolve`.

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If an operand is empty, or not a vector.

    Notes
    -----
    The adjoint of an operand is the correlation of the result's adjoint with the other operand.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.convolve(a, np.array([1.0, 2.0]))[1], np.array([3.0, 4.0]))
    array([2., 1.])
    """
    for name, x in (("a", a), ("v", v)):
        if np.ndim(x) > 1 or not np.size(x):
            raise misfit("convolve", name, np.shape(x), "be a vector that is not empty")
    _numpy_window(np.size(a), np.size(v), mode)
    return np.convolve(a, v, mode)


@convolve.reverse
def convolve_reverse(g: Adjoint, r: Plain, a: Plain, v: Plain, mode: str) -> Adjoint:
    full = np.zeros(np.size(a) + np.size(v) - 1)
    full[_numpy_window(np.size(a), np.size(v), mode)] = g

    def correlation(x: Operand, shape: tuple[int, ...]) -> Result:
        return np.convolve(full, np.ravel(x)[::-1], "valid").reshape(shape)

    # NumPy exchanges the operands of 'valid' if the second is longer; `full` never is the shorter
    # one.
    return lambda: correlation(v, np.shape(a)), lambda: correlation(a, np.shape(v))


dispatch.SUPPORTED[np.convolve] = convolve


@dispatch.implements(np.correlate)
def _correlate(a: Operand, v: Operand, mode: str = "valid") -> Result:
    a, v = as_operand(a, "correlate: a"), as_operand(v, "correlate: v")
    for name, x in (("a", a), ("v", v)):
        if np.ndim(x) != 1:
            raise misfit("correlate", name, np.shape(x), "be a vector")
    if np.size(a) < np.size(v):  # in NumPy's order, which decides what 'same' means
        return convolve(v, a[::-1], mode)[::-1]
    return convolve(a, v[::-1], mode)
