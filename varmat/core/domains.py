"""The domains of arguments as data: what a density requires of a scale, and the words of errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.errors import DomainError

if TYPE_CHECKING:
    from varmat.typing import Function, Plain

__all__ = ["Domain"]


class Domain:
    """A set of allowed argument values, as data: a phrase and a vectorised test.

    Parameters
    ----------
    phrase : str
        The words after "but must be" in the message.
    holds : callable
        Elementwise test of an array; nan must fail it.
    quick : callable, optional
        Test of a whole array that is not empty, in half the time. It may fail although all elements
        are inside; then `holds` decides.

    Examples
    --------
    >>> positive = Domain("positive", lambda x: x > 0)
    >>> positive.check("normal_lpdf", "Scale parameter", np.array([1.0, 2.0, -1.0]))
    Traceback (most recent call last):
        ...
    varmat.core.errors.DomainError: normal_lpdf: Scale parameter[2] is -1.0, but must be positive!
    """

    __slots__ = ("holds", "phrase", "quick")

    def __init__(self, phrase: str, holds: Function, quick: Function | None = None) -> None:
        self.phrase, self.holds, self.quick = phrase, holds, quick

    def check(self, function: str, name: str, value: Plain) -> None:
        """Raise `DomainError` naming the first element of `value` outside the domain."""
        is_array = type(value) is np.ndarray and value.size
        if self.quick is not None and is_array and self.quick(value):
            return
        inside = self.holds(value)
        if inside is True or _all_hold(inside):
            return
        array = np.asarray(value)
        place = ""
        if array.ndim:
            index = tuple(int(i) for i in np.argwhere(~np.broadcast_to(inside, array.shape))[0])
            array, place = array[index], f"[{', '.join(map(str, index))}]"
        raise DomainError(
            f"{function}: {name}{place} is {array.item()!r}, but must be {self.phrase}!"
        )


def _all_hold(inside: Plain) -> bool:
    if type(inside) is np.ndarray:
        return bool(inside.all())
    # A symbol of a program that is being made: the run ends where it does not hold.
    return bool(inside) if isinstance(inside, (bool, np.bool_)) else inside.require()


positive = Domain("positive", lambda x: x > 0, lambda x: x.min() > 0)


nonnegative = Domain("nonnegative", lambda x: x >= 0, lambda x: x.min() >= 0)


# Comparisons take floats as well as arrays, and on floats are faster than NumPy's functions. The
# sum of squares may overflow, and then the elements are tested one by one.
finite = Domain("finite", lambda x: abs(x) < math.inf, lambda x: np.vdot(x, x) < math.inf)


# With 64 bits.
integers = Domain("an integer", lambda x: (np.floor(x) == x) & (abs(x) < 2.0**63))


positive_finite = Domain(
    "positive finite",
    lambda x: (x > 0) & (x < math.inf),
    lambda x: x.min() > 0 and np.vdot(x, x) < math.inf,
)
