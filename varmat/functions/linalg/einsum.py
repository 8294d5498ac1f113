"""`numpy.einsum`: sums of products over arbitrary axes."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable
from functools import lru_cache, partial

import numpy as np

from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.arrays.shaping import view
from varmat.functions.checks import check_settings, delivered, misfit
from varmat.plain_arrays import unbroadcast
from varmat.typing import (
    Adjoint,
    DTypeLike,
    Function,
    Index,
    Linear,
    Operand,
    Plain,
    Result,
    Setting,
)


def _terms(operands: tuple[Operand, ...]) -> tuple[list[str], str | None, list[Operand]]:
    """Subscripts of the operands and of the result (None where implied), and the operands, of
    either way to call.
    """
    if isinstance(operands[0], str):
        inputs, arrow, result = operands[0].replace(" ", "").partition("->")
        return inputs.split(","), result if arrow else None, list(operands[1:])
    letters = string.ascii_uppercase + string.ascii_lowercase

    def spelled(axes: Iterable[Index]) -> str:
        return "".join("..." if i is Ellipsis else letters[int(i)] for i in axes)

    count = len(operands) // 2
    output = spelled(operands[-1]) if len(operands) % 2 else None
    return (
        [spelled(axes) for axes in operands[1 : 2 * count : 2]],
        output,
        list(operands[0 : 2 * count : 2]),
    )


@lru_cache(1024)
def _explicit(terms: tuple[str, ...], output: str | None, *shapes: tuple[int, ...]) -> str:
    """Write the subscripts with a letter for every axis, including the result's."""
    if len(terms) != len(shapes):
        raise ShapeError(
            f"einsum: the subscripts name {len(terms)} operands, but must name {len(shapes)}!"
        )
    counts = [
        max(0, len(shape) - len(t.replace("...", ""))) if "..." in t else 0
        for t, shape in zip(terms, shapes, strict=True)
    ]
    most = max(counts)
    unused = [c for c in string.ascii_letters if c not in "".join(terms)]
    if len(unused) <= most:
        raise ShapeError("einsum: there are more axes than the 52 letters!")
    dots = "".join(unused[:most])
    named_letters = "".join(terms).replace(".", "")
    inputs = [term.replace("...", dots[most - n :]) for term, n in zip(terms, counts, strict=True)]
    if output is None:
        output = "..." * bool(most) + "".join(
            c for c in sorted(set(named_letters)) if named_letters.count(c) == 1
        )
    elif most and "..." not in output:
        raise ShapeError(
            f"einsum: the result is {output!r}, but must have the ellipsis that the operands have!"
        )
    for term, shape in zip(inputs, shapes, strict=True):
        if len(term) != len(shape) or not set(term) <= set(string.ascii_letters):
            raise misfit("einsum", "an operand", shape, f"have one axis for each of {term!r}")
    return ",".join(inputs) + "->" + output.replace("...", dots)


@dispatch.implements(np.einsum)
def _einsum(
    *operands: Operand,
    out: Operand = None,
    optimize: Setting = False,
    dtype: DTypeLike | None = None,
    order: str | None = "K",
    casting: str = "safe",
) -> Result:
    check_settings(np.einsum, out, dtype, casting)
    terms, output, arrays = _terms(operands)
    arrays = [as_operand(x, f"einsum: operand {i + 1}") for i, x in enumerate(arrays)]
    subscripts = _explicit(tuple(terms), output, *map(np.shape, arrays))
    inputs, _, output = subscripts.partition("->")
    if len(arrays) == 1 and set(inputs) == set(output):  # a view, as NumPy's result
        return delivered(np.einsum, out, view(arrays[0], partial(np.einsum, subscripts)))
    return delivered(np.einsum, out, einsum(*arrays, subscripts=subscripts, optimize=optimize))


@operation(variadic=True, stacked=True)
def einsum(*arrays: Plain, subscripts: str, optimize: Setting) -> Plain:
    """Sum of products over named axes: `numpy.einsum` with explicit subscripts.

    Parameters
    ----------
    *arrays : array_like
    subscripts : str
        One letter for every axis of every operand, and of the result: ``"ij,jk->ik"``.
    optimize : bool or str
        As for `numpy.einsum`; large products of three and more operands are optimised in any case.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The adjoint of an operand is the Einstein sum of the result's adjoint with all other operands.
    Of a single operand without a sum (``"ij->ji"``, ``"ii->i"``) `numpy.einsum` returns a view, of
    variables too.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> vm.gradient(lambda b: np.einsum("i,ij,j->", b, X, b), np.ones(2))
    array([ 7., 13.])
    """
    return _einstein_sum(subscripts, optimize, *arrays)


def _einstein_sum(subscripts: str, optimize: Setting, *arrays: Operand) -> Result:
    """`numpy.einsum`. Large sums are taken in a good order, which takes 50 us to find, once."""
    if not optimize and len(arrays) > 1 and math.prod(map(np.size, arrays)) > LARGE:
        optimize = _summation_order(subscripts, *map(np.shape, arrays))
    return np.einsum(subscripts, *arrays, optimize=optimize)


@lru_cache(1024)
def _summation_order(subscripts: str, *shapes: tuple[int, ...]) -> Result:
    return np.einsum_path(
        subscripts, *(np.broadcast_to(0.0, shape) for shape in shapes), optimize=True
    )[0]


@lru_cache(1024)
def _adjoint_sum(subscripts: str, k: int) -> tuple[str, str, str, str]:
    """Return the subscripts of operand `k`, its different letters, those that also occur elsewhere,
    and the subscripts of the sum over all others.
    """
    inputs, _, output = subscripts.partition("->")
    terms = inputs.split(",")
    sources = [output, *(t for i, t in enumerate(terms) if i != k)]
    letters = "".join(dict.fromkeys(terms[k]))
    shared_letters = "".join(c for c in letters if any(c in source for source in sources))
    return terms[k], letters, shared_letters, f"{','.join(sources)}->{shared_letters}"


def _contribution(
    k: int, g: Adjoint, arrays: Operand, subscripts: str, optimize: Setting
) -> Result:
    """Compute the Einstein sum of the adjoint `g` with all operands except number `k`, in the shape
    of that operand.
    """
    term, letters, shared_letters, text = _adjoint_sum(subscripts, k)
    shape = np.shape(arrays[k])
    c = _einstein_sum(text, optimize, g, *arrays[:k], *arrays[k + 1 :])
    if shared_letters != letters:  # axes that only this operand has were summed over
        c = np.reshape(
            c, [c.shape[shared_letters.index(x)] if x in shared_letters else 1 for x in letters]
        )
    if letters == term:
        return (
            np.broadcast_to(c, np.broadcast_shapes(c.shape, shape))
            if shared_letters != letters
            else c
        )
    full = np.zeros(shape)
    diagonal = np.einsum(f"{term}->{letters}", full)  # a view of what repeated letters name
    diagonal[...] = unbroadcast(c, diagonal.shape)
    return full


@einsum.reverse
def einsum_reverse(
    g: Adjoint, r: Plain, *arrays: Plain, subscripts: str, optimize: Setting
) -> Adjoint:
    return tuple(
        partial(_contribution, k, g, arrays, subscripts, optimize) for k in range(len(arrays))
    )


@einsum.tangent
def einsum_tangent(
    r: Result, *arrays: Operand, subscripts: str, optimize: Setting
) -> tuple[Linear, ...]:
    inputs, _, output = subscripts.partition("->")
    terms = inputs.split(",")
    direction = next(c for c in string.ascii_letters if c not in subscripts)

    def push(k: int) -> Function:
        def apply(t: Operand) -> Result:
            lead = direction * (np.ndim(t) - len(terms[k]))
            text = (
                ",".join(lead * (i == k) + term for i, term in enumerate(terms))
                + "->"
                + lead
                + output
            )
            return einsum(*arrays[:k], t, *arrays[k + 1 :], subscripts=text, optimize=optimize)

        return apply

    return tuple(push(k) for k in range(len(arrays)))
