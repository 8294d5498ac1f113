"""The steps of functionals before and after they call a function: leaves for its arguments, checks
of its results, and the scope in between.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import ComplexKind, Standing, is_complex
from varmat.core.dual import Dual, paired, value_now
from varmat.core.errors import ShapeError, TapeError
from varmat.core.matvar import MatVar, to_varmat
from varmat.core.operation import is_differentiable
from varmat.core.tape import Tape, scope, start_sweep, sweep
from varmat.core.variables import (
    ARRAYS,
    VARIABLES,
    Var,
    borrow_leaf,
    data,
    outsiders,
    own_tape,
    var,
)
from varmat.derivatives.structure import Arguments, leaves_of, map_leaves, plain_tree
from varmat.typing import Operand, Plain, Result


@contextmanager
def recording(recorder: type[Tape] | None = None) -> Iterator[Tape]:
    """Open a nested scope with the cyclic collector paused.

    Entries live as long as the tape, so the collector finds nothing there. On a tape of 10^6
    entries it would still search them again and again, for several times as long as the recording
    takes."""
    collecting = gc.isenabled()
    try:
        gc.disable()
        with scope(recorder) as tape:
            tape.by_hand = []
            yield tape
    finally:
        if collecting:
            gc.enable()


def is_outer(x: object) -> bool:
    """Return whether a number or an array is a variable or dual."""
    return isinstance(x, (ArrayMethods, MatVar))


def holds_outer(args: Arguments) -> bool:
    """Return whether any leaf of the arguments is a variable or dual."""
    return any(map(is_outer, leaves_of(args)))


def stand_in(x: object, tape: Tape) -> Operand:
    """Make a leaf of the tape for a plain number or array; for a variable from outside, a copy that
    only this call uses.
    """
    if type(x) is float or type(x) is np.ndarray:
        return borrow_leaf(x, tape)
    if isinstance(x, Dual):
        return paired(stand_in(x.val, tape), stand_in(x.tan, tape), x.level)
    return np.positive(x) if type(x) is Var else own(x)


def own(x: Operand) -> Operand:
    """Copy an argument, so that a function may write into it."""
    if type(x) is np.ndarray:
        return np.array(x, order="C")
    if isinstance(x, Dual):
        return paired(own(x.val), own(x.tan), x.level)
    if isinstance(x, MatVar):
        x = to_varmat(x)
    return np.copy(x) if type(x) in ARRAYS else x


def bottom(x: object) -> Operand:
    """Return the innermost value of a dual, or of duals of duals."""
    while isinstance(x, Dual):
        x = x.val
    return x


def leaf_tree(
    function: str, title: str, tree: object, tape: Tape, complex_too: bool = False
) -> Result:
    """Replace the numbers of a tree by variables. `tape` must be the current one."""
    plain = plain_tree(function, title, tree, complex_too, outer_too=True)
    return map_leaves(lambda x, _: var(x) if is_complex(x) else stand_in(x, tape), plain)


def scalar_result(function: str, y: object, tape: Tape) -> Operand:
    """Return the scalar that a function returned: a `Var` on `tape`, or a float if it does not
    depend on the arguments.
    """
    (y,) = outputs(function, [y], tape)
    check_scalar(function, y)
    return y


def check_scalar(function: str, y: object, other: str = "jacobian or varmat.vjp") -> None:
    """Raise for an array where a scalar is needed."""
    shape = getattr(y, "shape", ())
    if shape:
        raise ShapeError(
            f"{function}: the result has shape {shape}, but must be a scalar: sum it, or use "
            f"varmat.{other}!"
        )


def outputs(function: str, results: Sequence[object], tape: Tape) -> list[Operand]:
    """Return the results of a function, each a variable of `tape`, a float or an array."""
    checked = [output(function, y) for y in results]
    for y in checked:
        if type(y) in VARIABLES and own_tape(y) is not tape:
            check_fresh([y])
            raise lost(function, y)
    check_closed(function, tape)
    return checked


def output(function: str, y: object) -> Operand:
    """Convert one result of a function to a variable, a float or an array."""
    y = y._settled if isinstance(y, Standing) else y
    if type(y) in VARIABLES:
        return y
    if isinstance(y, MatVar):
        return to_varmat(y)
    if isinstance(y, Dual):
        raise lost(function, y)
    if isinstance(y, ComplexKind):
        raise TypeError(
            f"{function}: the result is complex, but must be real numbers; take np.real, np.imag "
            "or np.abs of it"
        )
    if (
        y is None
        or isinstance(y, (dict, str))
        or callable(y)
        or (isinstance(y, (list, tuple)) and is_differentiable(y))
    ):
        kind = "None (is a return statement missing?)" if y is None else f"a {type(y).__name__}"
        raise TypeError(f"{function}: the result is {kind}, but must be real numbers!")
    return data(y, f"{function}: the result")


def check_caught(function: str, tape: Tape) -> None:
    """Raise the error of a plain number or array that a function has caught."""
    if tape.lost is not None:
        raise TypeError(
            f"{function}: the function caught this error, and so computes something else than for "
            f"plain numbers: {tape.lost}"
        ) from tape.lost


def check_closed(function: str, tape: Tape) -> None:
    """Raise if a recording uses variables of an outer scope: their derivatives would be lost
    silently.
    """
    check_caught(function, tape)
    if has_outside(tape):
        for operand in outsiders(tape):
            raise lost(function, operand)


def has_outside(tape: Tape) -> bool:
    """Return whether variables exist outside of a scope."""
    outer: Any = tape.parent
    return outer or outer.leaves or outer.parent is not None


def check_fresh(variables: Sequence[object]) -> None:
    """Raise if one of them is stale."""
    for x in variables:
        _ = own_tape(x).top.arena


def lost(function: str, outsider: Operand) -> TapeError:
    """Return the error for a function that depends on something differentiable from outside."""
    return TapeError(
        f"{function}: the function uses a {type(outsider).__name__} of shape {np.shape(outsider)} "
        "from outside, whose derivative would be lost: make it an argument of the function, or use "
        "varmat.value(x) if it is a constant here. (For second derivatives there are "
        "varmat.hessian and varmat.hessian_times_vector.)"
    )


def adjoint_of(leaf: Operand) -> Plain:
    """Return the adjoint of a leaf: a float, or a C-contiguous array that nothing else refers to;
    complex for a complex leaf.
    """
    g = leaf.adj
    if type(g) is not np.ndarray:
        return g if type(g) is complex else float(g)
    return g if g.base is None else np.array(g, order="C")


def plain_copy(y: object) -> Operand:
    """Return the value of a result: a float, or a new C-contiguous array."""
    value = y if type(y) is np.ndarray or type(y) is float else value_now(y)
    return (
        np.array(value, order="C") if isinstance(value, np.ndarray) and value.ndim else float(value)
    )


def pulled_back(
    tape: Tape, results: Sequence[Operand], cotangents: Sequence[Operand], leaves: Sequence[Operand]
) -> list[Plain]:
    """Compute the adjoints of leaves by a reverse pass from results with these cotangents, where
    None is zero.
    """
    start_sweep(tape)
    for y, c in zip(results, cotangents, strict=True):
        if type(y) in VARIABLES and c is not None:
            y._add(c)
    sweep(tape)
    return [adjoint_of(x) for x in leaves]
