"""Callbacks: steps of the reverse pass that users write without making an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.data import data
from varmat.core.tape import ALWAYS, Rule, current_tape
from varmat.core.variables import make_result

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from varmat.typing import Function, Operand

__all__ = ["make_callback_var", "reverse_pass_callback"]


def make_callback_var(value: ArrayLike, function: Function) -> Operand:
    """Make a variable with a given value and a callback for its reverse pass.

    Parameters
    ----------
    value : scalar or array_like
        The value of the new variable.
    function : callable
        Called with the new variable in the reverse pass, if anything depends on it; it adds to the
        adjoints of the variables from which the value was computed, with ``x.adj += ...``.

    Returns
    -------
    Var or VarMat

    Raises
    ------
    TypeError
        If the value is not of real numbers.

    Notes
    -----
    It has a gradient only: for forward derivatives and Hessians make an `operation` with a tangent
    rule.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = vm.var([1.0, 2.0])
    >>> def square_adjoint(y):
    ...     x.adj += 2 * x.val * y.adj
    >>> y = vm.make_callback_var(x.val**2, square_adjoint)
    >>> np.sum(y).grad()
    >>> x.adj
    array([2., 4.])
    """
    tape = current_tape()
    result = make_result(np.array(data(value, "make_callback_var: the value"), order="C"), tape)
    tape.append((_CALLBACK_VAR, result, function, None))
    return result


_CALLBACK_VAR = Rule("make_callback_var", lambda result, function, _: function(result))


def reverse_pass_callback(function: Callable[[], None]) -> None:
    """Call `function` when the reverse pass reaches this position of the tape.

    The function reads the adjoints of later variables and adds to the adjoints of earlier ones,
    with ``x.adj += ...``.

    Parameters
    ----------
    function : callable
        Takes nothing; what it returns is ignored.

    Notes
    -----
    It has a gradient only, as `make_callback_var`.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var([1.0, 2.0])
    >>> y = vm.var(x.val**2)
    >>> def square_adjoint():
    ...     x.adj += 2 * x.val * y.adj
    >>> vm.reverse_pass_callback(square_adjoint)
    >>> y.sum().grad()
    >>> x.adj
    array([2., 4.])
    """
    current_tape().append((_CALLBACK, ALWAYS, function, None))


_CALLBACK = Rule("reverse_pass_callback", lambda result, function, _: function())
# Entries without a tangent rule.
CALLBACKS = (_CALLBACK_VAR, _CALLBACK)
