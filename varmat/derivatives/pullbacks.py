"""Products of vectors with Jacobians, by one recording and any number of reverse passes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import overload

import numpy as np

from varmat.core.arena import Arena
from varmat.core.dual import Dual
from varmat.core.tape import Tape, start_sweep, sweep
from varmat.core.variables import Variable, make_leaf
from varmat.derivatives.inputs_and_outputs import output, outputs, plain_copy, recording
from varmat.derivatives.nested import holds_outer, is_outer_result
from varmat.derivatives.nested import own as own_copy
from varmat.derivatives.reverse import DerivedFunction, _of_structures, named
from varmat.derivatives.structure import (
    Arguments,
    leaves_of,
    map_leaves,
    matching_leaves,
    plain_tree,
    rebuilt,
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
    template = rebuilt(
        y, [np.broadcast_to(0.0, np.shape(x)) if np.shape(x) else 0.0 for x in results]
    )

    def pullback(cotangent: object) -> tuple[Operand, ...]:
        weights = matching_leaves("vjp", "the cotangent", cotangent, template, outer_too=True)

        def product(*given: Operand) -> Operand:
            return sum(
                np.sum(each * w) for each, w in zip(leaves_of(f(*given)), weights, strict=True)
            )

        return _of_structures("vjp", product, tuple(range(len(points))), points, {})[1]  # type: ignore[no-any-return]

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
    # The recording outlives the scope: its entries move to the tape of the pull-back. The arena
    # does not use memory again that somebody still refers to.
    own.extend(tape)
    for mine, theirs in (
        (own.leaves, tape.leaves),
        (own.kept, tape.kept),
        (own.assignments, tape.assignments),
    ):
        mine.extend(theirs)
    own.swept = tape.swept
    # Nothing more is recorded on it. If it referred to itself, its arrays would wait for the cyclic
    # collector.
    own.top = None
    return value, _Pullback(own, points, variables, value, results)


class _Pullback:
    """Maps a cotangent to those of the primals, by a reverse pass over its own recording."""

    __slots__ = ("_lock", "_points", "_results", "_tape", "_template", "_variables")

    def __init__(
        self,
        tape: Tape,
        points: Arguments,
        variables: list[Operand],
        value: Operand,
        results: list[Operand],
    ) -> None:
        self._tape = tape
        self._points = points
        self._variables = variables
        # The user may change the value, so its shapes are kept apart from it.
        self._template = map_leaves(
            lambda x, _: x if type(x) is float else np.broadcast_to(0.0, x.shape), value
        )
        self._results = results
        self._lock = threading.RLock()

    def __call__(self, cotangent: object) -> tuple[Operand, ...]:
        parts = matching_leaves("vjp", "the cotangent", cotangent, self._template)
        with held(self._lock):
            start_sweep(self._tape)
            for y, part in zip(self._results, parts, strict=True):
                if isinstance(y, Variable):
                    y._take(np.array(part, order="C") if type(part) is not float else part)  # type: ignore[attr-defined]
            sweep(self._tape)
            adjoints = [
                np.array(x.adj, order="C") if x.shape else float(x.adj) for x in self._variables
            ]
        result: tuple[Operand, ...] = rebuilt(self._points, adjoints)
        return result
