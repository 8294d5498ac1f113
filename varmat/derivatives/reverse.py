"""Gradients and vector-Jacobian products, by one recording and one reverse pass."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from inspect import signature
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.dual import Dual, value_now
from varmat.core.errors import raise_hidden
from varmat.core.tape import Tape, close_scope, current_tape, open_scope, sweep
from varmat.core.variables import VARIABLES, Var, Variable, borrow_leaf, own_tape
from varmat.derivatives.inputs_and_outputs import (
    adjoint_of,
    bottom,
    check_caught,
    check_scalar,
    has_outside,
    leaf_tree,
    output,
    outputs,
    own,
    recording,
    scalar_result,
)
from varmat.derivatives.nested import (
    Finish,
    gradients_of,
    is_outer_result,
    refuse_complex,
    set_aside,
)
from varmat.derivatives.structure import Argnums, Arguments, leaves_of, rebuilt
from varmat.typing import Derivative, Function, Operand, Result, Settings, ValueAndGrad

__all__ = ["grad", "gradient", "value_and_grad"]


@overload
def value_and_grad(f: Function) -> ValueAndGrad: ...
@overload
def value_and_grad(f: Function, argnums: Argnums) -> Callable[..., tuple[float, Result]]: ...
@overload
def value_and_grad(f: Function, argnums: Argnums = ..., *, has_aux: bool) -> Function: ...
def value_and_grad(f: Function, argnums: Argnums = 0, *, has_aux: bool = False) -> Function:
    """Make the function that computes a scalar function together with its gradient.

    Parameters
    ----------
    f : callable
        Takes numbers (and anything else) and returns a scalar. Written in NumPy.
    argnums : int or tuple or list of int
        The positional arguments to differentiate with respect to. For a method in a class ``self``
        counts.
    has_aux : bool
        Whether `f` returns a tuple of its scalar and anything else (the parts of the scalar, say),
        which is not differentiated.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns ``(value, gradient)``: a float and the derivatives
        with respect to argument `argnums`, or a tuple of them. An argument may be a scalar, an
        array, or a dict, list, tuple or named tuple of them, to any depth; the gradient has the
        same structure, with a float for each scalar and a new float64 array for each array. For
        complex numbers it is complex: the derivative with respect to the real part, plus `i` times
        the derivative with respect to the imaginary part. The other arguments, also keywords, are
        passed unchanged. With `has_aux` it is ``((value, aux), gradient)``, where `aux` has plain
        numbers in place of variables, in dicts, lists, tuples and dataclasses too.

    Raises
    ------
    ShapeError
        If `f` returns an array. Sum it, or use `jacobian` or `vjp`.
    TypeError
        If the result is complex, or an argument or the result is not a number; with `has_aux`, if
        the result is not a tuple of two.
        Also if `f` uses variables from outside and an operation that cannot be differentiated
        twice.
    TapeError
        If the result is a dual made explicitly, or has a derivative of a functional that has
        returned;
        if `f` uses variables from outside in a callback of a reverse pass.

    Notes
    -----
    Inside a function that is differentiated itself arguments may be variables, and `f` may use
    variables from outside: value and gradient are variables then, or duals in forward mode, so that
    derivatives of derivatives are right to any depth. Numbers in `aux` that depend on
    variables from outside are variables or duals then too; the operations that make them run twice,
    while `f` is called once.

    Where `f` returns a plain number, which does not depend on the arguments, the gradient is zero.
    What `f` assigns into its argument does not change the caller's array. Nothing remains on the
    tape, also when `f` raises.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    B. Carpenter and others (2015), "The Stan Math Library: Reverse-mode automatic differentiation
    in C++", arXiv:1509.07164.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(x, y):
    ...     return np.sum(x**2) * y
    >>> vm.value_and_grad(f)(np.array([1.0, 2.0]), 3.0)
    (15.0, array([ 6., 12.]))
    >>> vm.value_and_grad(f, argnums=(0, 1))(np.array([1.0, 2.0]), 3.0)
    (15.0, (array([ 6., 12.]), 5.0))
    >>> def g(x):
    ...     terms = x**2
    ...     return np.sum(terms), {"terms": terms}
    >>> vm.value_and_grad(g, has_aux=True)(np.array([1.0, 2.0]))
    ((5.0, {'terms': array([1., 4.])}), array([2., 4.]))
    """
    argnums = fixed_positions(argnums)
    how = with_aux if has_aux else _differentiated
    function: DerivedFunction[Any] = DerivedFunction(how, "value_and_grad", f, argnums)
    return named(function, f, "value_and_grad", argnums)


T = TypeVar("T")


class DerivedFunction(partial[T]):
    """A functional of a function: a partial that becomes a method in a class, as functions do (and
    all partials from Python 3.14 on).

    Attributes
    ----------
    functional : str
        The name of the functional.
    argnums : int or tuple of int
        The arguments with respect to which it differentiates.
    """

    functional: str
    argnums: Argnums
    __name__: str
    __wrapped__: Function

    def __get__(self, instance: object, owner: type | None = None) -> Function:
        return self if instance is None else MethodType(self, instance)


if TYPE_CHECKING:

    class Gradient(DerivedFunction[object]):
        """A gradient, or a functional like it, as a function of the point: the first argument."""

        __call__: Derivative


class Absent:
    """A marker for the missing point of a functional that is given only a function."""

    def __repr__(self) -> str:
        return "<none>"


ABSENT: Any = Absent()


def named(
    function: DerivedFunction[T],
    f: Function,
    functional: str,
    argnums: Argnums = 0,
    like: Function | None = None,
) -> DerivedFunction[T]:
    """Give a `DerivedFunction` its name and the signature of `f`, or of `like`."""
    if not callable(f):
        raise TypeError(
            f"{functional}: the argument is a {type(f).__name__}, but must be a function!"
        )
    update_wrapper(function, f)
    function.__name__ = f"{functional}({getattr(f, '__name__', 'function')})"
    function.functional, function.argnums = functional, argnums
    if like is not None:
        function.__signature__ = signature(like)  # type: ignore[attr-defined]
    return function


def check_alone(functional: str, *others: object) -> None:
    """Raise if a function that is given without a point has other arguments."""
    if any(others):
        raise TypeError(
            f"{functional}: there are arguments, but no point: the first one after the function "
            "must be the point!"
        )


def _differentiated(
    name: str, f: Function, argnums: Argnums, /, *args: object, **kwargs: object
) -> tuple[float, Result]:
    """Compute value and gradients with respect to some arguments: the fast path for floats and
    plain arrays.
    """
    positions: tuple[int, ...] = argnums if type(argnums) is tuple else (argnums,)  # type: ignore[assignment]
    for i in positions:
        if not (type(i) is int and 0 <= i < len(args) and is_plain(args[i])) or len(
            {*positions}
        ) < len(positions):
            return of_structures(name, f, argnums, args, kwargs)
    finish: Finish | None = None
    collecting = gc.isenabled()
    try:
        gc.disable()  # as in `recording`
        tape = open_scope()
        tape.by_hand = []
        try:
            inputs = list(args)
            for i in positions:
                inputs[i] = borrow_leaf(args[i], tape)
            y = f(*inputs, **kwargs)
            check_caught(name, tape)
            if type(y) is Terms:
                y = Terms(outputs(name, y, tape))
            elif type(y) is not Var or own_tape(y) is not tape or has_outside(tape):
                finish = finish_of(name, y, [inputs[i] for i in positions], tape)
            if finish is None:
                value = swept(y, tape)
                gradients = [adjoint_of(inputs[i]) for i in positions]
            # The memory of the tape is used again only once nothing refers to its variables.
            del y, inputs
        except ValueError as error:
            raise_hidden(error)
            raise
        finally:
            try:
                close_scope(tape)
            # The handler of a signal may raise before the scope is closed.
            except BaseException:
                close_scope(tape)
                raise
        if finish is not None:
            value, *gradients = finish()
        return value, tuple(gradients) if type(argnums) is tuple else gradients[0]
    finally:
        if collecting:
            gc.enable()


def with_aux(
    name: str, f: Function, argnums: Argnums, /, *args: object, **kwargs: object
) -> tuple[tuple[float, Result], Result]:
    """Compute value, gradients and the other item of a function that returns a tuple of two."""
    finishes: list[Finish] = []

    def scalar(*operands: object, **by_name: object) -> Operand:
        tape, result = current_tape(), f(*operands, **by_name)
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            kind = type(result).__name__
            of = f" of length {len(result)}" if isinstance(result, (tuple, list)) else ""
            raise TypeError(
                f"{name}: the result is a {kind}{of}, but must be a tuple of two, the scalar and "
                "anything else, because has_aux is given!"
            )
        finishes.append(set_aside(name, result[1], tape))
        return result[0]

    value, gradients = _differentiated(name, scalar, argnums, *args, **kwargs)
    return (value, finishes[0]()), gradients


def finish_of(name: str, y: object, leaves: Sequence[object], tape: Tape) -> Finish:
    """Make a function that returns, after the scope, the value of a result and its gradients."""
    if not isinstance(y, Dual):
        y = output(name, y)
    if is_outer_result(y, tape):
        check_scalar(name, y)
        for x in leaves:
            refuse_complex(name, x)
        return gradients_of(name, y, [bottom(x) for x in leaves], tape)
    value = swept(scalar_result(name, y, tape), tape)
    results = value, *(adjoint_of(bottom(x)) for x in leaves)
    return lambda: results


def is_plain(x: object) -> bool:
    """Return whether an argument needs no conversion: a float, or an array of them."""
    return type(x) is float or (type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim > 0)


class Terms(tuple[Any, ...]):
    """A result that a function may return instead of the sum of its terms. The sum need not be
    recorded:
    every term has the adjoint one.
    """

    __slots__ = ()


def swept(y: Operand, tape: Tape) -> Result:
    """Run the reverse pass from a scalar result, or the sum of terms, and return its value."""
    if tape.swept:  # by the function itself
        tape.drop_adjoints()
    if y.__class__ is float:
        return y
    if y.__class__ is Terms:
        value = _seeded(y)
    else:
        # Not by properties, because this is a part of every gradient.
        y._adj, value = 1.0, float(y._val)
    del y
    sweep(tape)
    return value


def _seeded(terms: Terms) -> float:
    """Set the adjoints of all elements of all terms to one, and return their sum."""
    total = 0.0
    for y in terms:
        is_variable = type(y) in VARIABLES
        value = value_now(y)
        total += value if type(value) is float else float(np.add.reduce(value, None))
        if is_variable:
            y._add(1.0 if type(value) is float else np.broadcast_to(1.0, value.shape))
    return total


def of_structures(
    name: str, f: Function, argnums: Argnums, args: Arguments, kwargs: Settings
) -> tuple[float, Result]:
    """Compute value and gradients with respect to any arguments of any structure."""
    chosen = positions_of(name, argnums, len(args))
    with recording() as tape:
        finish = _recorded(name, f, [*dict.fromkeys(chosen)], args, kwargs, tape)
    value, *leaves = finish()
    following = iter(leaves)
    result = {i: [next(following) for _ in leaves_of(args[i])] for i in dict.fromkeys(chosen)}
    if len(result) < len(chosen):  # each gradient has separate arrays
        parts = [[*map(own, result[i])] for i in chosen]
    else:
        parts = [*result.values()]
    gradients = tuple(rebuilt(args[i], part) for i, part in zip(chosen, parts, strict=True))
    return value, gradients if isinstance(argnums, tuple) else gradients[0]


def _recorded(
    name: str, f: Function, chosen: list[int], args: Arguments, kwargs: Settings, tape: Tape
) -> Finish:
    inputs, variables = list(args), list[Operand]()
    for i in chosen:
        inputs[i] = leaf_tree(name, f"argument {i + 1}", args[i], tape, complex_too=True)
        # The function may change the containers, so the leaves are kept here too.
        variables += leaves_of(inputs[i])
    return finish_of(name, f(*inputs, **kwargs), variables, tape)


def fixed_positions(argnums: Any) -> Argnums:
    """Return positions of arguments: a list, as autograd has it, becomes a tuple."""
    return tuple(argnums) if isinstance(argnums, list) else argnums


def positions_of(name: str, argnums: Argnums, count: int) -> list[int]:
    positions = []
    for i in argnums if isinstance(argnums, tuple) else (argnums,):
        if not isinstance(i, (int, np.integer)):
            raise TypeError(
                f"{name}: argnums is {argnums!r}, but must be an integer or a tuple of integers!"
            )
        if not -count <= i < count:
            raise TypeError(
                f"{name}: argnums is {argnums!r}, but the function was called with {count} "
                "positional arguments"
            )
        positions.append(int(i) % count)
    return positions


@overload
def gradient(f: Function, x: float, /, *args: object, **kwargs: object) -> float: ...
@overload
def gradient(f: Function, x: np.ndarray, /, *args: object, **kwargs: object) -> np.ndarray: ...
@overload
def gradient(f: Function, x: object, /, *args: object, **kwargs: object) -> Result: ...
def gradient(f: Function, x: object, /, *args: object, **kwargs: object) -> Result:
    """Compute the gradient of a scalar function at a point.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar, array_like or nested structure of them
        The point.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

    Returns
    -------
    float, ndarray or structure like `x`
        See `value_and_grad`.

    Raises
    ------
    ShapeError, TypeError, TapeError
        As by `value_and_grad`.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(x**2), np.array([1.0, 2.0]))
    array([2., 4.])
    >>> vm.gradient(lambda p: p["a"] * np.sum(p["b"]), {"a": 2.0, "b": np.array([1.0, 3.0])})
    {'a': 4.0, 'b': array([2., 2.])}
    """
    return _differentiated("gradient", f, 0, x, *args, **kwargs)[1]


@overload
def grad(f: Variable) -> None: ...
@overload
def grad(f: Function) -> Gradient: ...
@overload
def grad(
    f: Function, argnums: Argnums = ..., *, has_aux: bool = ...
) -> DerivedFunction[Result]: ...
def grad(
    f: Function | Variable, argnums: Argnums = 0, *, has_aux: bool = False
) -> Gradient | DerivedFunction[Result] | None:
    """Make the gradient function of a function; for a scalar variable run the reverse pass.

    Parameters
    ----------
    f : callable or Var
        With a function `f`, ``grad(f)(x, ...)`` is ``value_and_grad(f)(x, ...)[1]``. With a
        variable, ``grad(y)`` is ``y.grad()``: afterwards ``x.adj`` is the derivative of `y` with
        respect to any variable `x`.
    argnums : int or tuple of int
        The positional arguments to differentiate with respect to, for a function.
    has_aux : bool
        Whether the function returns a tuple of its scalar and anything else, as in
        `value_and_grad`. Then the gradient function returns ``(gradient, aux)``.

    Returns
    -------
    callable or None

    Raises
    ------
    TypeError
        If `f` is neither a function nor a scalar variable.
    ShapeError
        If `f` is a variable with more than one element.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.grad(np.sin)(0.0)
    1.0
    >>> vm.grad(lambda x: (np.sin(x), {"cosine": np.cos(x)}), has_aux=True)(0.0)
    (1.0, {'cosine': 1.0})
    >>> x = vm.var(3.0)
    >>> vm.grad(x * x)
    >>> x.adj
    6.0
    """
    if isinstance(f, Variable):
        return f.grad()  # type: ignore[no-any-return]
    if not callable(f):
        raise TypeError(
            f"grad: the argument is a {type(f).__name__}, but must be a function or a scalar "
            "variable!"
        )
    argnums = fixed_positions(argnums)
    how = gradients_with_aux if has_aux else _gradients
    return named(DerivedFunction(how, f, argnums), f, "grad", argnums)


def gradients_with_aux(
    f: Function, argnums: Argnums, /, *args: object, **kwargs: object
) -> tuple[Result, Result]:
    (_, aux), gradients = with_aux("grad", f, argnums, *args, **kwargs)
    return gradients, aux


def _gradients(f: Function, argnums: Argnums, /, *args: object, **kwargs: object) -> Result:
    return _differentiated("grad", f, argnums, *args, **kwargs)[1]
