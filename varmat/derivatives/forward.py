"""Directional derivatives, by one pass with dual numbers. The functional itself records nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import overload

import numpy as np

from varmat.core.callbacks import CALLBACKS
from varmat.core.dual import Dual, Level, attached, taken_apart
from varmat.core.errors import ShapeError
from varmat.core.matvar import to_varmat
from varmat.core.tape import Tape, current_tape
from varmat.core.variables import VARIABLES, make_leaf, outsiders, own_tape
from varmat.derivatives.inputs_and_outputs import (
    check_caught,
    check_scalar,
    has_outside,
    is_outer,
    lost,
    output,
    own,
    plain_copy,
    recording,
)
from varmat.derivatives.nested import adopt, flattened, holds_variables, passed_by, refuse_finished
from varmat.derivatives.reverse import ABSENT, DerivedFunction, named
from varmat.derivatives.structure import Arguments, leaves_of, matching_leaves, plain_tree, rebuilt
from varmat.typing import Function, Operand, Result, Settings

__all__ = ["derivative", "gradient_dot_vector", "jvp", "partial_derivative"]


def _dual(x: object, t: object, level: Level) -> Operand:
    """Make the dual of a point and a direction; both may depend on variables from outside."""
    x, t = own(x), own(t)
    # A tangent is a variable where the value is one, so that variables can be assigned into it.
    return attached(
        x, make_leaf(t, own_tape(x).top) if type(x) in VARIABLES and not is_outer(t) else t, level
    )


def call_with_tangents(
    function: str,
    f: Function,
    points: Sequence[object],
    tangents: Sequence[object],
    args: Arguments = (),
    kwargs: Settings | None = None,
    make: Function = _dual,
) -> tuple[Result, list[tuple[Operand, Operand]]]:
    """Call `f` in a scope, at the duals that `make` makes of leaves, tangents and a new level.

    Returns the result of `f`, and a pair for each of its leaves: the value, and the tangent or None
    if the leaf is constant."""
    level, tape = Level(function), current_tape()
    before, tape.by_hand, start = tape.by_hand, [], len(tape)
    try:
        duals = [make(x, t, level) for x, t in zip(leaves_of(points), tangents, strict=True)]
        y = f(*rebuilt(points, duals), *args, **(kwargs or {}))
        check_caught(function, tape)
        parts = [_taken_apart(function, item, level, tape) for item in leaves_of(y)]
    finally:
        level.is_over, tape.by_hand = True, before
    for rule, _, _, _ in tape[start:] if start else tape:
        if rule in CALLBACKS:
            raise TypeError(
                f"{function}: the function uses {rule.name}, which has no tangent rule, so its "
                "part of the derivative would be lost: define it with a tangent rule, see "
                "varmat.operation"
            )
    return y, parts


def _taken_apart(function: str, y: object, level: Level, tape: Tape) -> tuple[Operand, Operand]:
    if not isinstance(y, Dual):
        return output(function, y), None
    if y.level is not level or type(y.val) is Dual or type(y.tan) is Dual:
        for part in (y, y.tan):
            refuse_finished(function, part, tape)
    return taken_apart(y, level)


_PLAIN = frozenset({float, np.ndarray, type(None)})


def plain_parts(
    function: str, parts: list[tuple[object, object]], tape: Tape, k: int | None = None
) -> list[tuple[Operand, Operand]]:
    """Return values and tangents as floats and new arrays; `k` directions are a first axis.

    A value or tangent that depends on variables from outside stays unchanged. The entries of the
    scope then move to the scope around it."""
    if not _PLAIN.issuperset([type(x) for pair in parts for x in pair]) and any(
        is_outer(x) for pair in parts for x in pair
    ):
        return _outer_parts(function, parts, tape, k)
    return [(plain_copy(value), plain_copy(_tangent(value, t, k))) for value, t in parts]


def scalar_parts(
    function: str,
    y: object,
    parts: list[tuple[object, object]],
    other: str = "jacobian or varmat.vjp",
) -> tuple[Operand, Operand]:
    """Return value and tangent of a result that must be one scalar."""
    if len(parts) != 1 or isinstance(y, (tuple, list, dict)):
        parts = [(output(function, y), None)]  # raises, or an array of numbers
    check_scalar(function, parts[0][0], other)
    return parts[0]


def _tangent(value: Operand, tangent: Operand, k: int | None) -> Operand:
    return (
        tangent
        if tangent is not None
        else np.zeros(np.shape(value) if k is None else (k, *np.shape(value)))
    )


def _outer_parts(
    function: str, parts: list[tuple[Operand, Operand]], tape: Tape, k: int | None
) -> list[tuple[Operand, Operand]]:
    parts = [(to_varmat(value), to_varmat(t)) for value, t in parts]
    variables = [x for pair in parts for x in pair if holds_variables(x)]
    if variables and tape.watch is None:  # otherwise no scope was opened, see `forward_scope`
        if not has_outside(tape) or any(
            passed_by(tape, x) for x in (*flattened(variables), *outsiders(tape))
        ):
            raise lost(function, variables[0])
        adopt(tape, variables)
    return [
        tuple(x if is_outer(x) else plain_copy(x) for x in (value, _tangent(value, t, k)))
        for value, t in parts
    ]


def forward_scope() -> AbstractContextManager[Tape]:
    """Open a scope for duals. A recording that becomes a program needs all entries, so it is itself
    the scope.
    """
    tape = current_tape()
    return recording() if tape.watch is None else nullcontext(tape)


@overload
def jvp(f: Function) -> DerivedFunction[tuple[Operand, Operand]]: ...
@overload
def jvp(f: Function, primals: object, tangents: object) -> tuple[Operand, Operand]: ...
def jvp(
    f: Function, primals: object = ABSENT, tangents: object = ABSENT
) -> DerivedFunction[tuple[Result, Result]] | tuple[Result, Result]:
    """Evaluate a function and its derivative in a direction: the Jacobian times a vector.

    Parameters
    ----------
    f : callable
        Takes ``*primals`` and returns a scalar, an array, or a structure of them.
    primals : tuple or list
        The point: one item per argument, a scalar, an array_like or a nested structure of them.
    tangents : tuple or list
        The direction, of the same structure and shapes.

    Returns
    -------
    value, tangent : float, ndarray or structure of them
        Without a point and a direction: a function of them, which `varmat.recorded` takes too.

    Raises
    ------
    TypeError
        If `primals` is not a tuple or a list.
    ShapeError
        If the tangents do not fit the primals.
    TapeError
        If the result is a dual made explicitly, or has a derivative of a functional that has
        returned.

    Notes
    -----
    Inside a function that is differentiated itself primals, tangents and what `f` uses from outside
    may be variables or duals; so are value and tangent then.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.jvp(np.multiply, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), 1.0))
    (array([3., 6.]), array([4., 2.]))
    >>> vm.jvp(np.sin)((0.0,), (2.0,))
    (0.0, 2.0)
    """
    if primals is ABSENT and tangents is ABSENT:
        return named(DerivedFunction(_jvp, f), f, "jvp", like=partial(_jvp, f))
    if primals is ABSENT or tangents is ABSENT:
        raise TypeError("jvp: only one of primals and tangents is given, but both must be!")
    return _jvp(f, primals, tangents)


def _jvp(f: Function, primals: object, tangents: object) -> tuple[Operand, Operand]:
    if not isinstance(primals, (tuple, list)):
        raise TypeError(
            f"jvp: primals is a {type(primals).__name__}, but must be a tuple or list of the "
            "arguments!"
        )
    points = plain_tree("jvp", "primals", primals, outer_too=True)
    directions = matching_leaves("jvp", "tangents", tangents, points, outer_too=True)
    with forward_scope() as tape:
        y, result = call_with_tangents("jvp", f, points, directions)
        parts = plain_parts("jvp", result, tape)
    return rebuilt(y, (value for value, _ in parts)), rebuilt(y, (tangent for _, tangent in parts))


def gradient_dot_vector(
    f: Function, x: Operand, v: object, /, *args: object, **kwargs: object
) -> float:
    """Compute the directional derivative of a scalar function, the gradient times a vector, without
    the gradient.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar, array_like or nested structure of them
        The point.
    v : like `x`
        The direction, of the same structure and shapes.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

    Returns
    -------
    float

    Raises
    ------
    ShapeError
        If `v` does not fit `x`, or `f` returns an array.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient_dot_vector(lambda x: np.sum(x**2), np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    42.0
    """
    return _directional("gradient_dot_vector", f, x, v, args, kwargs)


def _directional(
    name: str, f: Function, x: object, v: object, args: Arguments, kwargs: Settings
) -> float:
    points = (plain_tree(name, "x", x, outer_too=True),)
    tangents = matching_leaves(name, "v", v, points[0], outer_too=True)
    with forward_scope() as tape:
        y, parts = call_with_tangents(name, f, points, tangents, args, kwargs)
        ((_, tangent),) = plain_parts(name, [scalar_parts(name, y, parts, "jvp")], tape)
    return tangent  # type: ignore[no-any-return]


def partial_derivative(
    f: Function, x: Operand, n: int | tuple[int, ...], /, *args: object, **kwargs: object
) -> float:
    """Differentiate a scalar function with respect to one element of its argument.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : array_like
        The point.
    n : int or tuple of int
        The index of the element.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

    Returns
    -------
    float

    Raises
    ------
    IndexError
        If `x` has no such element.
    ShapeError
        If `f` returns an array.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.partial_derivative(lambda x: x[0] * x[1] ** 3, np.array([5.0, 2.0]), 1)
    60.0
    """
    point = plain_tree(
        "partial_derivative",
        "x",
        np.asarray(x) if isinstance(x, (list, tuple)) else x,
        outer_too=True,
    )
    point = point if is_outer(point) else np.asarray(point)
    direction = np.zeros(point.shape)
    if np.ndim(direction[n]):
        raise IndexError(
            f"partial_derivative: n is {n!r}, but must be the index of one element in the shape "
            f"{point.shape}!"
        )
    direction[n] = 1.0
    return _directional("partial_derivative", f, point, direction, args, kwargs)


def derivative(f: Function, x: float, /, *args: object, **kwargs: object) -> float:
    """Differentiate a scalar function of one number, in forward mode.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar
        The point.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

    Returns
    -------
    float

    Raises
    ------
    ShapeError
        If `x` is not a scalar, or `f` returns an array.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.derivative(np.exp, 0.0)
    1.0
    """
    point = plain_tree("derivative", "x", x, outer_too=True)
    if type(point) is not float and (isinstance(point, (tuple, list, dict)) or np.shape(point)):
        raise ShapeError(
            f"derivative: x has shape {np.shape(point)}, but must be a scalar; see varmat.gradient!"
        )
    return _directional("derivative", f, point, 1.0, args, kwargs)
