"""Choices between functions by a value, and loops that end at one: in programs too."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dual import Level, attached, taken_apart, value_now
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar, to_varmat
from varmat.core.operation import is_differentiable, operation
from varmat.core.tape import current_tape
from varmat.derivatives.inputs_and_outputs import lost
from varmat.derivatives.jacobians import vjp
from varmat.derivatives.recorded_programs import part_of, weighted_program
from varmat.derivatives.structure import map_leaves, structure_of
from varmat.functions.checks import misfit
from varmat.programs.build.builder import Builder
from varmat.programs.build.symbol import called, is_symbol
from varmat.programs.ir.program import Program, RecordingError, Value
from varmat.programs.kernels.branch import Branch
from varmat.programs.kernels.guards import GUARD
from varmat.programs.record.conditions import Condition, is_truth
from varmat.programs.run.constants import NotSharedError, Signature
from varmat.solvers.inner import Inner, filled, numbers_of, refilled, truths_of, zeros_like
from varmat.solvers.scan import scan
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result

__all__ = ["cond", "switch", "while_loop"]


class Choices:
    """Functions of the same leaves, which return lists of leaves of the same shapes, as programs.

    Parameters
    ----------
    name : str
        The name of the function that the user called.
    functions : sequence of callable
    points : sequence of floats and arrays
        The leaves.
    now : int
        The function that is chosen at these. If another one raises there, it has no program: a run
        that chooses it ends.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[Callable[..., Any]],
        points: Sequence[Operand],
        now: int,
    ) -> None:
        self.name, self.functions, self._points, self._now = name, functions, points, now
        self._along: dict[int, Choices] = {}
        written = {now: weighted_program(name, functions[now], [*points])}
        for i, f in enumerate(functions):
            if i != now:
                with suppress(DomainError):
                    written[i] = weighted_program(name, f, [*points])
        first, count = written[now], len(points)
        shapes = [*map(np.shape, first.template)]
        for i, x in written.items():
            if [*map(np.shape, x.template)] != shapes:
                raise ShapeError(
                    f"{name}: function {i + 1} returns shapes {[*map(np.shape, x.template)]}, "
                    f"but must return those of function {now + 1}, {shapes}!"
                )
        programs = [
            written[i].program if i in written else _ended(first.program)
            for i in range(len(functions))
        ]
        values, gradients = slice(1, 1 + len(shapes)), slice(1 + len(shapes), None)
        self.forward = Branch([_part(p, slice(count), values) for p in programs])
        self.backward = Branch([_part(p, slice(None), gradients) for p in programs])

    def along(self, which: int) -> Choices:
        """Return the derivatives of the functions along a leaf, as functions of the leaves and a
        tangent.
        """
        if which not in self._along:

            def tangent(function: Function, *leaves: Operand) -> list[Operand]:
                *points, t = leaves
                # A new level for each call, because it must be newer than the levels of its
                # arguments.
                level = Level(self.name)
                points[which] = attached(points[which], t, level)
                return [_tangent(x, level) for x in function(*points)]

            functions = [partial(tangent, f) for f in self.functions]
            points = [*self._points, self._points[which]]
            self._along[which] = Choices(self.name, functions, points, self._now)
        return self._along[which]


def _part(program: Program, arguments: slice, outputs: slice) -> Program:
    """Return the program of some of the outputs, without the zero."""
    part = part_of(program, arguments, outputs)
    return Program(part.arguments, part.steps, part.outputs[1:])


def _ended(like: Program) -> Program:
    """Make a program with the arguments and outputs of another one, whose runs end at once."""
    builder = Builder()
    builder.arguments = [Value(v.shape) for v in like.arguments]
    builder.apply(GUARD, builder.constant(False))
    zero = builder.constant(0.0)
    return builder.program([builder.broadcast(zero, v.shape) for v in like.outputs])


def _tangent(x: Operand, level: Level) -> Operand:
    t = taken_apart(x, level)[1]
    return zeros_like(x) if t is None else t


@operation(variadic=True)
def chosen(index: Plain, *leaves: Plain, choices: Choices) -> tuple[Plain, ...]:
    """Evaluate one of the functions."""
    if any(map(is_symbol, (index, *leaves))):
        return tuple(called(choices.forward, index, *leaves))
    result = choices.functions[_number(index, len(choices.functions))](*leaves)
    for x in result:
        if is_differentiable(x):
            raise lost(choices.name, x)
    return tuple(result)


@chosen.reverse
def chosen_reverse(
    g: Adjoint, r: Plain, index: Plain, *leaves: Plain, choices: Choices
) -> tuple[Operand, ...]:
    if any(map(is_symbol, (index, *leaves))):
        return 0.0, *called(choices.backward, index, *leaves, *filled(g, r))
    function = choices.functions[_number(index, len(choices.functions))]
    return 0.0, *vjp(function, *leaves)[1](filled(g, r))


@chosen.tangent
def chosen_tangent(
    r: Operand, index: Operand, *leaves: Operand, choices: Choices
) -> tuple[Linear, ...]:
    zeros = tuple(map(zeros_like, r))

    def along(i: int, t: Operand) -> Result:
        return chosen(index, *leaves, t, choices=choices.along(i))

    return lambda t: zeros, *(partial(along, i) for i in range(len(leaves)))


def _choose(
    name: str, index: Operand, functions: Sequence[Function], operands: Sequence[Operand]
) -> Result:
    """Return the result of one of the functions; a branch if a recording depends on the index."""
    for i, f in enumerate(functions):
        if not callable(f):
            raise TypeError(
                f"{name}: function {i + 1} is a {type(f).__name__}, but must be a function!"
            )
    if np.size(index) != 1:
        raise misfit(name, "the choice", np.shape(index), "be one number or truth value")
    if not isinstance(index, ArrayMethods) or current_tape().watch is None:
        return functions[_number(value_now(index), len(functions))](*operands)
    with suppress(RecordingError, TypeError):
        return _recorded(name, index, [Inner(name, f, operands, with_data=True) for f in functions])
    # A function may look at data, but not at leaves.
    return _recorded(name, index, [Inner(name, f, operands) for f in functions])


def _recorded(name: str, index: Operand, inners: Sequence[Inner]) -> Result:
    leaves = [to_varmat(x) if isinstance(x, MatVar) else x for x in inners[0].leaves]
    patterns: list[Any] = []

    def of_leaves(inner: Inner, *leaves: Operand) -> list[Operand]:
        y = inner((), leaves)
        patterns.append(y)
        if truths_of(y) != truths_of(patterns[0]):
            raise TypeError(f"{name}: one function returns truth values where another does not!")
        if structure_of(y) != structure_of(patterns[0]):
            raise ShapeError(
                f"{name}: a function returns the structure {structure_of(y)}, but must return that "
                f"of the first, {structure_of(patterns[0])}!"
            )
        return numbers_of(y)

    points, functions = [*map(value_now, leaves)], [partial(of_leaves, inner) for inner in inners]
    now = _number(value_now(index), len(functions))
    choices = _shared(Choices(name, functions, points, now))
    result = chosen(np.reshape(index, ()), *leaves, choices=choices)
    return refilled(patterns[0], result)


def _shared(choices: Choices) -> Choices:
    """Return the first of the choices with equal programs, so that the choices in the iterations of
    a loop are equal settings.
    """
    key = choices.name, choices.forward, choices.backward
    with suppress(NotSharedError):
        return _CACHE.setdefault(Signature(key, with_data=True).key, choices)
    return choices


# Choices that recordings refer to, by signature.
_CACHE: WeakValueDictionary[tuple[Hashable, ...], Choices] = WeakValueDictionary()


def _number(index: Plain, count: int) -> int:
    """Return the number of one of several functions."""
    return sum(not float(np.reshape(index, ())) < i for i in range(1, count))


def cond(pred: Operand, true_fun: Function, false_fun: Function, *operands: Operand) -> Result:
    """Call one of two functions of the same arguments, by a truth value.

    Parameters
    ----------
    pred : bool, or a scalar
        The truth value, such as a comparison of variables; a number holds if it is not zero.
    true_fun, false_fun : callable
        Functions of `operands`. Their results have the same structure and shapes. In a recording
        they read no variables other than `operands`.
    *operands
        Scalars, arrays, and lists, tuples and dicts of them to any depth.

    Returns
    -------
    Var, VarMat, float, ndarray, or structure of them
        ``true_fun(*operands)`` or ``false_fun(*operands)``.

    Raises
    ------
    ShapeError
        If `pred` has more than one element; in a recording, if the functions return other
        structures or shapes.
    TapeError
        In a recording, if a function uses variables that are not among `operands`.
    TypeError
        If `true_fun` or `false_fun` is not a function.

    Notes
    -----
    The derivative is taken of the function that runs; how the choice depends on variables has no
    derivative. Outside of recordings this is
    ``true_fun(*operands) if pred else false_fun(*operands)``. In a recording both functions are
    recorded, and each run computes one, where `numpy.where` computes both. In a loop, pass data
    that change from iteration to iteration as operands: the iterations then match, and become
    one loop. If the function that is not chosen raises at the recorded point, runs that choose it
    are evaluated as the function is written. The arguments are as in JAX's function of this name
    [1]_.

    References
    ----------
    .. [1] JAX documentation, ``jax.lax.cond``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def huber(x):
    ...     return vm.cond(np.abs(x) < 1.0, lambda x: 0.5 * x**2, lambda x: np.abs(x) - 0.5, x)
    >>> f = vm.recorded(huber)
    >>> f(0.5), f(-3.0)
    ((0.125, 0.5), (2.5, -1.0))
    """
    if isinstance(pred, Condition):
        pred = pred.astype(np.float64)
    elif isinstance(pred, ArrayMethods) and current_tape().watch is not None:
        pred = (pred != 0.0).astype(np.float64)
    else:
        pred = value_now(pred) != 0
    return _choose("cond", pred, (false_fun, true_fun), operands)


def switch(index: Operand, branches: Sequence[Function], *operands: Operand) -> Result:
    """Call one of several functions of the same arguments, by its number.

    Parameters
    ----------
    index : int, or a scalar
        The number of the function, counted from 0. Smaller numbers choose the first function,
        larger ones the last.
    branches : sequence of callable
        Functions of `operands`. Their results have the same structure and shapes. In a recording
        they read no variables other than `operands`.
    *operands
        Scalars, arrays, and lists, tuples and dicts of them to any depth.

    Returns
    -------
    Var, VarMat, float, ndarray, or structure of them
        ``branches[index](*operands)``.

    Raises
    ------
    ShapeError
        If `index` has more than one element; in a recording, if the functions return other
        structures or shapes.
    TapeError
        In a recording, if a function uses variables that are not among `operands`.
    TypeError
        If one of `branches` is not a function.
    ValueError
        If `branches` is empty.

    Notes
    -----
    As in `cond`. The arguments are as in JAX's function of this name [1]_.

    References
    ----------
    .. [1] JAX documentation, ``jax.lax.switch``.

    Examples
    --------
    The number of thresholds that a value has passed:

    >>> import numpy as np, varmat as vm
    >>> def rate(x):
    ...     steps = [lambda x: 0.1 * x, lambda x: 0.2 * x - 1.0, lambda x: 0.4 * x - 5.0]
    ...     return vm.switch(np.sum(x > np.array([10.0, 20.0])), steps, x)
    >>> f = vm.recorded(rate)
    >>> f(5.0), f(15.0), f(30.0)
    ((0.5, 0.1), (2.0, 0.2), (7.0, 0.4))
    """
    branches = tuple(branches)
    if not branches:
        raise ValueError("switch: branches is empty, but must have at least one function!")
    index = index.astype(np.float64) if isinstance(index, Condition) else index
    return _choose("switch", index, branches, operands)


def while_loop(
    cond_fun: Function,
    body_fun: Function,
    init: Operand,
    *args: Operand,
    max_iterations: int = 1000,
) -> Result:
    """Repeat a function as long as a condition holds.

    It computes::

        carry = init
        while cond_fun(carry, *args):
            carry = body_fun(carry, *args)

    Parameters
    ----------
    cond_fun : callable
        ``cond_fun(carry, *args)`` returns a truth value: whether there is another iteration.
    body_fun : callable
        ``body_fun(carry, *args)`` returns the next carry, with the structure and shapes of `init`.
    init : structure of array_like
        The first carry: a scalar or an array, or lists, tuples, dicts and named tuples of them.
    *args
        Further arguments of both functions. Scalars and arrays in them may be variables.
    max_iterations : int, keyword only
        The most iterations.

    Returns
    -------
    structure
        The last carry; structured as `init`.

    Raises
    ------
    DomainError
        If the condition still holds after `max_iterations` iterations.
    ShapeError, TapeError, TypeError
        In a recording, as by `scan` and `cond`.

    Notes
    -----
    The derivative is taken of the iterations that are made: how their number depends on variables
    has no derivative. In a recording this is a `scan` over `max_iterations` steps, and each step is
    a `cond`: the steps after the last iteration take little time, but some. So choose
    `max_iterations` of the order of what you expect. Functions and carry are as in JAX's function
    of this name [1]_, which has no gradient.

    References
    ----------
    .. [1] JAX documentation, ``jax.lax.while_loop``.

    Examples
    --------
    The square root by Newton's method:

    >>> import numpy as np, varmat as vm
    >>> def root(a):
    ...     far = lambda x, a: np.abs(x * x - a) > 1e-12 * a
    ...     return vm.while_loop(far, lambda x, a: 0.5 * (x + a / x), a, a, max_iterations=50)
    >>> f = vm.recorded(root)
    >>> [round(f(a)[0], 12) for a in (4.0, 9.0)], round(f(4.0)[1], 12)
    ([2.0, 3.0], 0.25)
    """
    name = "while_loop"
    if current_tape().watch is None or not is_differentiable(numbers_of([init, args])):
        carry = init
        for _ in range(max_iterations):
            if not value_now(cond_fun(carry, *args)):
                return carry
            carry = body_fun(carry, *args)
        if value_now(cond_fun(carry, *args)):
            raise DomainError(
                f"{name}: the condition holds after {max_iterations} iterations, but must end the "
                "loop; allow more by max_iterations!"
            )
        return carry

    def step(carry: Operand, _: None, *args: Operand) -> tuple[Operand, None]:
        return cond(cond_fun(carry, *args), body_fun, lambda c, *_: c, carry, *args), None

    carry, _ = scan(step, init, None, *args, length=max_iterations)
    goes_on = cond_fun(carry, *args)
    # A value that is not finite is computed as it is written, which raises the error.
    return map_leaves(lambda x, _: x if is_truth(x) else np.where(goes_on, np.nan, x), carry)
