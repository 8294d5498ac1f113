"""What is refused, and how it is said.

One grammar for the whole library: *function: argument[index] is value, but must be rule!*
Every name in such a sentence comes from the function that refuses.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Domain", "DomainError", "ShapeError", "TapeError"]


class _Refusals(threading.local):
    """How many refusals of values, and of looks at them, a thread has made.

    Whoever records a function asks whether it caught one, for it went on as it would not at other
    points."""

    of_values = of_looks = 0


refusals = _Refusals()


# What puts the name by which a function was called into a refusal; `varmat.functions.callers` fills
# it.
RENAME: list[Callable[[str], str]] = []


def called(text: str) -> str:
    """The text of a refusal, which begins with the name of a function, with the name by which that
    was called.
    """
    return RENAME[0](text) if RENAME else text


class DomainError(ValueError):
    """An argument has a value outside the domain of the function.

    Attributes
    ----------
    is_recoverable : bool
        True: a sampler may treat the point as one of density zero and go on.
    """

    is_recoverable = True

    def __init__(self, text: str = "") -> None:
        super().__init__(called(text))
        refusals.of_values += 1


class ShapeError(ValueError):
    """The shapes of the arguments do not fit the function or each other."""

    def __init__(self, text: str = "") -> None:
        super().__init__(called(text))


class TapeError(RuntimeError):
    """A variable is used where its tape cannot record it."""


class Domain:
    """A set of allowed argument values, as data: a phrase and a vectorised test.

    Parameters
    ----------
    phrase : str
        What follows "but must be" in the refusal.
    holds : callable
        Elementwise test of an array; nan must fail it.
    quick : callable, optional
        Test of a whole array that is not empty, which may fail although all elements are inside;
        for it takes half the time.

    Examples
    --------
    >>> positive = Domain("positive", lambda x: x > 0)
    >>> positive.check("normal_lpdf", "Scale parameter", np.array([1.0, 2.0, -1.0]))
    Traceback (most recent call last):
        ...
    varmat.core.errors.DomainError: normal_lpdf: Scale parameter[2] is -1.0, but must be positive!
    """

    __slots__ = ("holds", "phrase", "quick")

    def __init__(
        self, phrase: str, holds: Callable[[Any], Any], quick: Callable[[Any], Any] | None = None
    ) -> None:
        self.phrase, self.holds, self.quick = phrase, holds, quick

    def check(self, function: str, name: str, value: Any) -> None:
        """Raise `DomainError` naming the first element of `value` outside the domain."""
        if (
            self.quick is not None
            and type(value) is np.ndarray
            and value.size
            and self.quick(value)
        ):
            return
        inside = self.holds(value)
        if inside is True or (inside.all() if type(inside) is np.ndarray else inside):
            return
        array = np.asarray(value)
        place = ""
        if array.ndim:
            index = tuple(int(i) for i in np.argwhere(~np.broadcast_to(inside, array.shape))[0])
            array, place = array[index], f"[{', '.join(map(str, index))}]"
        raise DomainError(
            f"{function}: {name}{place} is {array.item()!r}, but must be {self.phrase}!"
        )


positive = Domain("positive", lambda x: x > 0, lambda x: x.min() > 0)
nonnegative = Domain("nonnegative", lambda x: x >= 0, lambda x: x.min() >= 0)
# Comparisons take floats as well as arrays, and are faster than NumPy's functions on floats. A sum
# of squares may overflow.
finite = Domain("finite", lambda x: abs(x) < math.inf, lambda x: np.vdot(x, x) < math.inf)
positive_finite = Domain(
    "positive finite",
    lambda x: (x > 0) & (x < math.inf),
    lambda x: x.min() > 0 and np.vdot(x, x) < math.inf,
)
