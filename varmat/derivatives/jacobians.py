"""Jacobians, by rows or by columns, whichever is expected to take less time; and products of
vectors with them, by one recording and any number of reverse passes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from varmat.core.arena import Arena
from varmat.core.callbacks import CALLBACKS
from varmat.core.dual import Dual
from varmat.core.tape import Rule, Tape
from varmat.core.variables import make_leaf
from varmat.derivatives.forward import call_with_tangents, forward_scope, plain_parts
from varmat.derivatives.inputs_and_outputs import (
    bottom,
    holds_outer,
    leaf_tree,
    output,
    outputs,
    own,
    plain_copy,
    pulled_back,
    recording,
)
from varmat.derivatives.nested import Finish, gradients_of, is_outer_result, move
from varmat.derivatives.reverse import ABSENT, DerivedFunction, check_alone, named, of_structures
from varmat.derivatives.structure import (
    Arguments,
    derivative_block,
    derivative_tree,
    leaves_of,
    map_leaves,
    matching_leaves,
    plain_tree,
    rebuilt,
    size_of,
    template_of,
    unit_directions,
    unit_rows,
)
from varmat.locks import held
from varmat.typing import Entry, Function, Operand, Result, Settings

__all__ = ["jacobian", "vjp"]

# The rules of these joins have no tangent rule: they handle duals themselves.
_JOINS = ("concatenate", "stack")


@overload
def jacobian(f: Function, /) -> DerivedFunction[Any]: ...
@overload
def jacobian(f: Function, x: Operand, /, *args: object, **kwargs: object) -> Result: ...
def jacobian(f: Function, x: Operand = ABSENT, /, *args: object, **kwargs: object) -> Result:
    """Compute the Jacobian of a function: the derivatives of outputs with respect to inputs.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar, an array, or a structure of them.
    x : scalar, array_like or nested structure of them
        The point.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

    Returns
    -------
    float, ndarray or structure of them
        For arrays the shape of the output followed by the shape of `x`: ``(M, N)`` for vectors; for
        a scalar function it is the gradient. With structures: the structure of the output, with the
        structure of `x` in place of each output. Without a point: a function of the point and the
        further arguments, which `varmat.recorded` takes too.

    Raises
    ------
    TypeError, TapeError
        As `value_and_grad`.

    Notes
    -----
    `f` is recorded once. Then there is either a reverse pass for each output, or `f` is evaluated
    once more, at dual numbers that carry a direction for each input (unless it contains an
    operation that has no forward rule). The choice is whatever is likely to take less time:
    directions if there are more outputs than inputs, or about as many and more than some twenty.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.jacobian(lambda x: x[1:] * x[0], np.array([3.0, 4.0, 5.0]))
    array([[4., 3., 0.],
           [5., 0., 3.]])
    >>> j = vm.jacobian(lambda x: x[1:] * x[0])
    >>> j(np.array([1.0, 2.0]))
    array([[2., 1.]])
    """
    if x is ABSENT:
        check_alone("jacobian", kwargs)
        return named(DerivedFunction(_jacobian, f), f, "jacobian")
    return _jacobian(f, x, *args, **kwargs)


def _jacobian(f: Function, x: Operand, /, *args: object, **kwargs: object) -> Result:
    return jacobian_at("jacobian", f, x, args, kwargs)


def jacobian_at(name: str, f: Function, x: Operand, args: Arguments, kwargs: Settings) -> Result:
    """Compute the Jacobian; `name` is the functional in messages."""
    points = plain_tree(name, "x", x, outer_too=True)
    with recording() as tape:
        finish = _by_sweeps(name, f, points, args, kwargs, tape)
    return _by_directions(name, f, points, args, kwargs) if finish is None else finish()


def _by_sweeps(
    name: str, f: Function, points: object, args: Arguments, kwargs: Settings, tape: Tape
) -> Finish | None:
    """Make a function that computes the Jacobian, after the scope, by a reverse pass for each
    output; return None if forward mode will be faster.
    """
    tree = leaf_tree(name, "x", points, tape)
    variables = list(map(bottom, leaves_of(tree)))
    y = f(tree, *args, **kwargs)
    inputs, results = sum(x.size for x in variables), leaves_of(y)
    is_outer = any(is_outer_result(item, tape) for item in results)
    if is_outer:
        results = [x if isinstance(x, Dual) else output(name, x) for x in results]
        by_hand = any(isinstance(x, Dual) and x.level.function is None for x in results)
        size = sum(map(np.size, results))
        is_loop = bool(size) and tape.watch is not None  # of the program
        is_forward = 0 < inputs <= size - is_loop and not by_hand
    else:
        results = outputs(name, results, tape)
        is_forward = bool(inputs) and _forward_is_faster(tape, inputs, sum(map(size_of, results)))
    if is_forward and not any(map(has_no_tangent, tape)):
        return None
    if is_outer and is_loop:
        weights = [make_leaf(plain_copy(np.ones(np.shape(x))), tape) for x in results]
        weighted_sum = sum(np.sum(x * w) for x, w in zip(results, weights, strict=True))
        along = [*zip(weights, unit_rows(results), strict=True)]
        finish = gradients_of(name, weighted_sum, variables, tape, along)
        return lambda: derivative_tree(y, results, zip(*finish()[1:], strict=True), points)
    if is_outer:
        finishes = [
            gradients_of(name, item, variables, tape)
            for result in results
            for item in (np.ravel(result) if np.shape(result) else [result])
        ]
        return lambda: derivative_tree(y, results, (one()[1:] for one in finishes), points)
    rows = (
        pulled_back(tape, [result], cotangent, variables)
        for result in results
        for cotangent in unit_directions([result])
    )
    value = derivative_tree(y, results, rows, points)
    return lambda: value


def _forward_is_faster(tape: Tape, inputs: int, outputs: int) -> bool:
    """Return whether one evaluation with a direction for each input is expected to take less time
    than a reverse pass for each output.
    """
    # In microseconds. An entry costs 15 with duals, once, and less than one in each reverse pass; a
    # direction costs 0.8 by itself. Where an entry takes directions in sequence, each costs 8, and
    # each reverse pass 5.
    loops = sum(map(_takes_one_direction, tape))
    forward = 35.0 + 15.0 * len(tape) + (0.8 + 8.0 * loops) * inputs
    backward = outputs * (3.0 + 0.6 * len(tape) + 5.0 * loops)
    if forward >= 1.2 * backward:
        return False
    # The tangents of all directions together do not fit the cache. In products, on the other hand,
    # an operand is read once for all directions.
    results, operands = (
        sum(getattr(entry[1], "size", 1) for entry in tape),
        sum(map(_largest, tape)),
    )
    return forward + inputs * (2.0e-3 * results + 1.0e-4 * operands) < backward + outputs * (
        1.0e-3 * results + 1.5e-4 * operands
    )


def _largest(entry: Entry) -> int:
    """Return the size of the largest array of an entry, which may be data."""
    parts = [part for x in entry[1:] for part in (x if isinstance(x, (tuple, list)) else (x,))]
    return max(getattr(part, "size", 1) for part in parts)


def _is_join(rule: Rule) -> bool:
    """Return whether this is the rule of a join of the library, not of a user's of that name."""
    return rule.name in _JOINS and rule.op.is_traceable


def _takes_one_direction(entry: Entry) -> bool:
    return not _is_join(entry[0]) and not getattr(entry[0].op, "stacked", True)


def has_no_tangent(entry: Entry) -> bool:
    """Return whether an entry of the tape has no forward rule."""
    rule = entry[0]
    return rule in CALLBACKS or (not _is_join(rule) and getattr(rule.op, "_tangent", rule) is None)


def _by_directions(
    name: str, f: Function, points: object, args: Arguments, kwargs: Settings
) -> Result:
    """Compute the Jacobian by one evaluation with all unit directions."""
    leaves = leaves_of(points)
    bounds = np.cumsum([0, *map(size_of, leaves)])
    columns = [slice(*pair) for pair in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
    with forward_scope() as tape:
        y, result = call_with_tangents(name, f, (points,), [*unit_rows(leaves)], args, kwargs)
        parts = plain_parts(name, result, tape, int(bounds[-1]))
    blocks = []
    for value, tangent in parts:
        rows = np.moveaxis(tangent, 0, -1)
        blocks.append(
            [
                derivative_block(rows[..., column], np.shape(value), x)
                for column, x in zip(columns, leaves, strict=True)
            ]
        )
    return rebuilt(y, (rebuilt(points, row) for row in blocks))


# --- products of vectors with Jacobians ---


@overload
def vjp(
    f: Function, /
) -> DerivedFunction[tuple[Result, Callable[[Result], tuple[Result, ...]]]]: ...


@overload
def vjp(
    f: Function, x: object, /, *primals: object
) -> tuple[Result, Callable[[Result], tuple[Result, ...]]]: ...


def vjp(f: Function, /, *primals: object) -> object:
    """Evaluate a function, and return the function that multiplies a vector by its Jacobian.

    Parameters
    ----------
    f : callable
        Takes `primals` and returns a scalar, an array, or a structure of them.
    *primals : scalar, array_like or nested structure of them
        The point. Without it a function of the point is returned, which `varmat.recorded` takes
        too.

    Returns
    -------
    value : float, ndarray or structure of them
    pullback : callable
        Takes a cotangent, of the structure and shapes of `value`, and returns a tuple with one item
        per primal: the cotangent times the Jacobian. It may be called any number of times, from any
        thread.

    Raises
    ------
    ShapeError
        In `pullback`, if the cotangent does not fit the value.

    Notes
    -----
    The pull-back owns the recording of `f`, apart from the tape of the thread, until it is
    collected. The primals are copied; other arrays that `f` reads must not be changed before the
    last call. Inside a function that is differentiated itself the pull-back calls `f` again.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> value, pullback = vm.vjp(np.cumsum, np.array([1.0, 2.0, 4.0]))
    >>> value
    array([1., 3., 7.])
    >>> pullback(np.array([1.0, 1.0, 1.0]))
    (array([3., 2., 1.]),)
    >>> value, pullback = vm.vjp(np.cumsum)(np.array([1.0, 2.0, 4.0]))
    >>> pullback(np.array([0.0, 0.0, 1.0]))
    (array([1., 1., 1.]),)
    """
    return (
        _pulled_back(f, *primals) if primals else named(DerivedFunction(_pulled_back, f), f, "vjp")
    )


def _pulled_back(f: Function, /, *primals: object) -> tuple[Operand, Operand]:
    points = plain_tree("vjp", "primals", primals, outer_too=True)
    result = None
    if not holds_outer(points):
        recorded = Tape(Arena())
        with recording() as tape:
            result = _recorded_pullback(f, points, tape, recorded)
    return _outer_pullback(f, points) if result is None else result


def _outer_pullback(f: Function, points: Arguments) -> tuple[Operand, Operand]:
    """Return value and pull-back where the result depends on variables from outside. The pull-back
    calls the function again.
    """
    y = f(*map_leaves(lambda x, _: own(x), points))
    results = [x if isinstance(x, Dual) else output("vjp", x) for x in leaves_of(y)]
    template = template_of(rebuilt(y, results))

    def pullback(cotangent: object) -> tuple[Operand, ...]:
        weights = matching_leaves("vjp", "the cotangent", cotangent, template, outer_too=True)

        def product(*args: Operand) -> Operand:
            return sum(np.sum(x * w) for x, w in zip(leaves_of(f(*args)), weights, strict=True))

        return of_structures("vjp", product, tuple(range(len(points))), points, {})[1]  # type: ignore[no-any-return]

    return rebuilt(y, results), pullback


def _recorded_pullback(
    f: Function, points: Arguments, tape: Tape, recorded: Tape
) -> tuple[Operand, Operand] | None:
    tree = map_leaves(
        lambda x, _: make_leaf(np.array(x, order="C") if type(x) is not float else x, tape), points
    )
    variables = leaves_of(tree)
    y = f(*tree)
    if any(
        is_outer_result(x if isinstance(x, Dual) else output("vjp", x), tape) for x in leaves_of(y)
    ):
        return None
    results = outputs("vjp", leaves_of(y), tape)
    value = rebuilt(y, map(plain_copy, results))
    # The recording outlives the scope: its entries move to the tape of the pull-back. Nothing more
    # is recorded there. If it referred to itself, its arrays would wait for the cyclic collector.
    recorded.swept, recorded.top = tape.swept, None
    move(tape, recorded)
    # The user may change the value, so its shapes are kept apart from it.
    template, lock = template_of(value), threading.RLock()

    def pullback(cotangent: object) -> tuple[Operand, ...]:
        parts = matching_leaves("vjp", "the cotangent", cotangent, template)
        with held(lock):
            adjoints = pulled_back(recorded, results, parts, variables)
        return rebuilt(points, adjoints)

    return value, pullback
