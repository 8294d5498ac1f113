"""Orderings: the elements of an array, sorted or in part, gathered in the order of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core import dispatch
from varmat.core.domains import Domain
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import check_array, check_choice, check_values, outside
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Setting, array_valued

__all__ = ["sort_asc", "sort_desc"]

number = Domain("a number", lambda x: ~np.isnan(x))


@dispatch.implements(np.sort)
def sort(
    a: Operand,
    axis: int | None = -1,
    kind: str | None = None,
    order: str | Sequence[str] | None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Result:
    """Sort elements; equal ones stay in their order.

    Parameters
    ----------
    a : array_like, one or more axes
    axis : int, optional
        Axis along which to sort; None for all elements, flattened.
    kind, stable
        Accepted; the order is stable in any case.
    order : None
        Variables have no fields.
    descending : bool
        Whether the largest element comes first, where NumPy's function has this argument (since
        2.5).

    Returns
    -------
    VarMat
        Ascending unless told otherwise, nan at the end.

    Notes
    -----
    The adjoint of an element is the adjoint at its new index: where elements are equal this is one
    of the directional derivatives.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sort(x)[0], np.array([3.0, 1.0, 2.0]))
    array([0., 1., 0.])
    """
    _refuse_fields("sort", order)
    return _in_order(descending_order if descending else stable_order, a, axis)


def stable_order(x: np.ndarray, axis: int) -> Result:
    """Compute `numpy.argsort`, with equal elements kept in their order. If there are no equal
    elements, use its faster algorithm.
    """
    order = np.argsort(x, axis)
    ordered = np.moveaxis(_taken(x, order, axis), axis, 0) if x.ndim > 1 else x[order]
    return order if np.all(ordered[1:] > ordered[:-1]) else np.argsort(x, axis, kind="stable")


def _taken(x: Operand, order: Setting, axis: int) -> Result:
    """Take the elements in an order; for a vector, twice as fast as `numpy.take_along_axis`."""
    return x[order] if np.ndim(x) == 1 else np.take_along_axis(x, order, axis)


def descending_order(x: np.ndarray, axis: int) -> Result:
    """Sort the negatives: nan stays at the end, and equal elements stay in their order."""
    return stable_order(np.negative(x), axis)


def _refuse_fields(function: str, order: str | Sequence[str] | None) -> None:
    if order is not None:
        raise outside(function, "order", order, "be None: variables have no fields")


def _in_order(
    argsort: Callable[[Operand, int], np.ndarray], a: Operand, axis: int | None
) -> Result:
    """Put the elements in the order that `argsort` gives to their values."""
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = normalize_axis_index(axis, np.ndim(a))
    return ordered(a, argsort=argsort, axis=axis - np.ndim(a))


@operation(stacked=True)
def ordered(a: Plain, *, argsort: Callable[[Plain, int], np.ndarray], axis: int) -> Saved:
    """Put the elements in the order from a function like `numpy.argsort`, along an axis counted
    from the last.
    """
    order = argsort(a, axis)
    return Saved(_taken(a, order, axis), order=order)


@ordered.reverse
def ordered_reverse(
    g: Adjoint, r: Plain, a: Plain, argsort: Function, axis: int, order: Setting
) -> Adjoint:
    c = np.empty(np.shape(a))
    np.put_along_axis(c, order, g, axis)
    return c


@ordered.tangent
def ordered_tangent(r: Result, a: Operand, argsort: Function, axis: int) -> Linear:
    # The order is found again: in a recording the saved one would be that of the recorded point.
    order = argsort(dispatch.plain(a), axis)
    return lambda t: np.take_along_axis(t, np.broadcast_to(order, np.shape(t)), axis)


@dispatch.implements(np.partition)
def partition(
    a: Operand,
    kth: Setting,
    axis: int | None = -1,
    kind: str = "introselect",
    order: str | Sequence[str] | None = None,
) -> Result:
    """Implement `np.partition`; elements on either side of the `kth` may be in a different order
    than NumPy's.
    """
    _refuse_fields("partition", order)
    check_choice("partition", "kind", kind, "introselect")
    return _in_order(lambda x, along: np.argpartition(x, kth, along), a, axis)


def _checked(function: str, x: Operand) -> Result:
    x = as_operand(x, f"{function}: x")
    check_array(function, "x", x)
    check_values(partial(number.check, function, "x"), x)
    return x


@array_valued
def sort_asc(x: Operand) -> Result:
    """Sort the elements in ascending order, along the last axis: `np.sort`.

    Parameters
    ----------
    x : array_like, one or more axes

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If an element is nan.

    Notes
    -----
    Each element receives the adjoint of the element it became.

    References
    ----------
    Stan Functions Reference, "Sorting functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sort_asc([3.0, 1.0, 2.0])
    array([1., 2., 3.])
    """
    return np.sort(_checked("sort_asc", x))


@array_valued
def sort_desc(x: Operand) -> Result:
    """Sort the elements in descending order, along the last axis.

    Parameters
    ----------
    x : array_like, one or more axes

    Returns
    -------
    VarMat

    Raises
    ------
    DomainError
        If an element is nan.

    Notes
    -----
    Each element receives the adjoint of the element it became.

    References
    ----------
    Stan Functions Reference, "Sorting functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sort_desc([3.0, 1.0, 2.0])
    array([3., 2., 1.])
    """
    return np.flip(np.sort(_checked("sort_desc", x)), -1)
