"""`numpy.einsum` of symbols: views, sums, and products of matrices."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from varmat.typing import Operand

    # An operand: a letter for each of its axes, all different, and the symbol.
    EinsumTerm = tuple[str, Operand]


def contracted(subscripts: str, operands: Sequence[Operand]) -> Operand:
    """Sum products of symbols as the subscripts say; make a view if a single operand is not summed.
    Return None for axes of length one and others, and without an arrow.
    """
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow or len(terms) != len(operands):
        return None
    spare = [c for c in string.ascii_letters if c not in subscripts]
    most = max(
        (x.ndim - len(term) + 3 for term, x in zip(terms, operands, strict=True) if "..." in term),
        default=0,
    )
    dots = "".join(spare[:most])
    terms = [
        t.replace("...", dots[most - (x.ndim - len(t) + 3) :])
        for t, x in zip(terms, operands, strict=True)
    ]
    output = output.replace("...", dots)
    lengths: dict[str, int] = {}
    if any(
        lengths.setdefault(c, n) != n
        for t, x in zip(terms, operands, strict=True)
        for c, n in zip(t, x.shape, strict=True)
    ):
        return None
    parts = [_without_repeats(term, x) for term, x in zip(terms, operands, strict=True)]
    likes = (np.broadcast_to(0.0, x.shape) for x in operands)
    path = np.einsum_path(f"{','.join(terms)}->{output}", *likes, optimize="greedy")[0]
    for chosen in path[1:]:
        taken = [parts.pop(i) for i in sorted(chosen, reverse=True)]
        result = taken.pop()
        while taken:
            other = taken.pop()
            remainder = "".join(letters for letters, _ in (*parts, *taken))
            result = _product(result, other, output + remainder)
        parts.append(result)
    letters, x = _summed(*parts[0], output)
    return x.transpose([letters.index(c) for c in output]) if letters != output else x


def _without_repeats(term: str, x: Operand) -> EinsumTerm:
    """Take the diagonal of axes that have one letter."""
    letters = "".join(dict.fromkeys(term))
    if letters == term:
        return term, x
    return letters, x.viewed(lambda a: np.einsum(f"{term}->{letters}", a))


def _summed(term: str, x: Operand, requested: str) -> EinsumTerm:
    """Sum over axes that nothing else names."""
    axes = tuple(i for i, c in enumerate(term) if c not in requested)
    return "".join(c for c in term if c in requested), (x.sum(axis=axes) if axes else x)


def _product(one: EinsumTerm, other: EinsumTerm, requested: str) -> EinsumTerm:
    """Multiply two terms, and sum over what only they have in common."""
    (a, x), (b, y) = _summed(*one, requested + other[0]), _summed(*other, requested + one[0])
    common = [c for c in a if c in b]
    saved, gone = (
        "".join(c for c in common if c in requested),
        "".join(c for c in common if c not in requested),
    )
    rows, columns = "".join(c for c in a if c not in b), "".join(c for c in b if c not in a)
    x = x.transpose([a.index(c) for c in saved + rows + gone])
    y = y.transpose([b.index(c) for c in saved + gone + columns])
    n, many, m = len(saved), len(rows), len(columns)
    if not gone:
        return saved + rows + columns, x.reshape((*x.shape, *(1,) * m)) * y.reshape(
            (*y.shape[:n], *(1,) * many, *y.shape[n:])
        )
    if not rows and not columns:
        return saved, (x * y).sum(axis=tuple(range(n, n + len(gone))))
    shape = (*x.shape[: n + many], *y.shape[n + len(gone) :])
    size = math.prod(x.shape[n + many :])
    left = x.reshape(
        (*x.shape[:n], *((math.prod(x.shape[n : n + many]),) if rows or saved else ()), size)
    )
    right = y.reshape(
        (*y.shape[:n], size, *((math.prod(y.shape[n + len(gone) :]),) if columns or saved else ()))
    )
    return saved + rows + columns, (left @ right).reshape(shape)
