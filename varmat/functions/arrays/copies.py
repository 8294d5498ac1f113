"""Copies, and arrays made in the shape of others."""

from __future__ import annotations

import numpy as np

from varmat.core import dispatch
from varmat.core.array_methods import FLOAT64
from varmat.core.dual import Dual
from varmat.core.matvar import MatVar, matvar
from varmat.core.operation import is_differentiable, operation
from varmat.core.variables import VARIABLES, data, make_leaf
from varmat.functions.arrays.repeating import broadcast_to
from varmat.functions.checks import check_settings
from varmat.typing import (
    Adjoint,
    DTypeLike,
    Function,
    Linear,
    Operand,
    Plain,
    Result,
    Setting,
    Shape,
)


@operation(np.copy, native=True, stacked=True)
def copy(a: Plain, order: str = "K", subok: bool = False) -> Plain:
    """Copy an array; you may assign to the copy without changing the original.

    Parameters
    ----------
    a : array_like, any shape

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The adjoint is handed through.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(x):
    ...     y = np.copy(x)
    ...     y[0] = 5.0
    ...     return np.sum(x * y)
    >>> vm.gradient(f, np.array([1.0, 2.0]))
    array([5., 4.])
    """
    return np.copy(a, order="C")


@copy.reverse
def copy_reverse(g: Adjoint, r: Plain, a: Plain, **settings: Setting) -> Adjoint:
    return g


@copy.tangent
def copy_tangent(r: Result, a: Operand, **settings: Setting) -> Linear:
    return np.copy


def _to_be_filled(make: Function) -> Function:
    function = getattr(np, f"{make.__name__}_like")

    def like(
        a: Operand,
        dtype: DTypeLike | None = None,
        order: Setting = "K",
        subok: bool = True,
        shape: int | Shape | None = None,
        *,
        device: str | None = None,
    ) -> Result:
        check_settings(function, device=device)
        if dtype is not None and np.dtype(dtype) != FLOAT64:
            if np.dtype(dtype).kind == "c" and is_differentiable(a):
                return like(a, shape=shape) + 0j
            return make(np.shape(a) if shape is None else shape, dtype)
        values = make(np.shape(a) if shape is None else shape)
        if isinstance(a, Dual):
            tangent = values.shape if a.directions is None else (a.directions, *values.shape)
            result = Dual(like(a.val, shape=values.shape), np.zeros_like(a.tan, shape=tangent))
            result.level = a.level
            return result
        if type(a) in VARIABLES:
            return make_leaf(data(values), a._tape.top)
        return matvar(values) if isinstance(a, MatVar) else values

    like.__doc__ = (
        f"`np.{make.__name__}_like`: of a variable it makes one, an array into which variables may "
        "be assigned."
    )
    return like


# People write into these arrays element by element, and in a recording data would refuse that.
# np.ones_like, and np.full_like of a number, make data.
zeros_like = dispatch.implements(np.zeros_like)(_to_be_filled(np.zeros))
empty_like = dispatch.implements(np.empty_like)(_to_be_filled(np.empty))


@dispatch.implements(np.full_like)
def full_like(
    a: Operand,
    fill_value: Operand,
    dtype: DTypeLike | None = None,
    order: Setting = "K",
    subok: bool = True,
    shape: int | Shape | None = None,
    *,
    device: str | None = None,
) -> Result:
    """Implement `np.full_like`, for data and for variables to fill with."""
    check_settings(np.full_like, device=device)
    if not is_differentiable(fill_value):
        return np.full(
            np.shape(a) if shape is None else shape, fill_value, FLOAT64 if dtype is None else dtype
        )
    check_settings(np.full_like, dtype=dtype)
    if dispatch.is_complex(fill_value):
        raise TypeError("full_like: fill_value is complex, but must be real, as a is!")
    return broadcast_to(fill_value, shape=np.shape(a) if shape is None else shape)
