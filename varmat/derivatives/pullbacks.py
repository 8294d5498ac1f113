"""Products of vectors with Jacobians, by one recording and any number of reverse passes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import overload

import numpy as np

from varmat.core.arena import Arena
from varmat.core.dual import Dual
from varmat.core.tape import Tape
from varmat.core.variables import make_leaf
from varmat.derivatives.inputs_and_outputs import (
    holds_outer,
    output,
    outputs,
    plain_copy,
    pulled_back,
    recording,
)
from varmat.derivatives.inputs_and_outputs import own as own_copy
from varmat.derivatives.nested import is_outer_result, move
from varmat.derivatives.reverse import DerivedFunction, named, of_structures
from varmat.derivatives.structure import (
    Arguments,
    leaves_of,
    map_leaves,
    matching_leaves,
    plain_tree,
    rebuilt,
    template_of,
)
from varmat.locks import held
from varmat.typing import Function, Operand, Result

__all__ = ["vjp"]


@overload
def vjp(
    f: Function, /
) -> DerivedFunction[tuple[Result, Callable[[Result], tuple[Result, ...]]]]: ...


@overload
def vjp(
    f: Function, x: object, /, *primals: object
) -> tuple[Result, Callable[[Result], tuple[Result, ...]]]: ...


def vjp(f: Function, /, *primals: object) -> object:
    """The value of a function, and the function that multiplies a vector with its Jacobian.

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
    made = None
    if not holds_outer(points):
        own = Tape(Arena())
        with recording() as tape:
            made = _recorded_pullback(f, points, tape, own)
    return _outer_pullback(f, points) if made is None else made


def _outer_pullback(f: Function, points: Arguments) -> tuple[Operand, Operand]:
    """Value and pull-back where the result depends on variables from outside. The pull-back calls
    the function again.
    """
    y = f(*map_leaves(lambda x, _: own_copy(x), points))
    results = [x if isinstance(x, Dual) else output("vjp", x) for x in leaves_of(y)]
    template = template_of(rebuilt(y, results))

    def pullback(cotangent: object) -> tuple[Operand, ...]:
        weights = matching_leaves("vjp", "the cotangent", cotangent, template, outer_too=True)

        def product(*given: Operand) -> Operand:
            return sum(
                np.sum(each * w) for each, w in zip(leaves_of(f(*given)), weights, strict=True)
            )

        return of_structures("vjp", product, tuple(range(len(points))), points, {})[1]  # type: ignore[no-any-return]

    return rebuilt(y, results), pullback


def _recorded_pullback(
    f: Function, points: Arguments, tape: Tape, own: Tape
) -> tuple[Operand, Operand] | None:
    given = map_leaves(
        lambda x, _: make_leaf(np.array(x, order="C") if type(x) is not float else x, tape), points
    )
    variables = leaves_of(given)
    y = f(*given)
    if any(
        is_outer_result(x if isinstance(x, Dual) else output("vjp", x), tape) for x in leaves_of(y)
    ):
        return None
    results = outputs("vjp", leaves_of(y), tape)
    value = rebuilt(y, map(plain_copy, results))
    # The recording outlives the scope: its entries move to the tape of the pull-back. Nothing more
    # is recorded there. If it referred to itself, its arrays would wait for the cyclic collector.
    own.swept, own.top = tape.swept, None
    move(tape, own)
    # The user may change the value, so its shapes are kept apart from it.
    template, lock = template_of(value), threading.RLock()

    def pullback(cotangent: object) -> tuple[Operand, ...]:
        parts = matching_leaves("vjp", "the cotangent", cotangent, template)
        with held(lock):
            adjoints = pulled_back(own, results, parts, variables)
        return rebuilt(points, adjoints)

    return value, pullback
