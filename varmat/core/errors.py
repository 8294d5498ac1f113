"""Errors: their types, and how messages are written.

One grammar for the whole library: *function: argument[index] is value, but must be rule!*
Every name in such a sentence comes from the function that raises.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from varmat.typing import Plain

__all__ = ["DataError", "DomainError", "ShapeError", "TapeError"]


class _Refusals(threading.local):
    """The numbers of errors that a thread has raised for values, and for looks at them.

    A function that catches such an error continues in a way that holds at this point only. So a
    recording compares these numbers before and after.
    """

    of_values = of_looks = 0


refusals = _Refusals()


class DomainError(ValueError):
    """An argument has a value outside the domain of the function.

    Attributes
    ----------
    is_recoverable : bool
        True: a sampler may treat the point as one of density zero and go on.
    """

    is_recoverable = True

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        refusals.of_values += 1


class DataError(DomainError):
    """An observation has a density of zero whatever the parameters are.

    Attributes
    ----------
    is_recoverable : bool
        False: no other point is better, so samplers and optimisers end.
    """

    is_recoverable = False


def lost_derivative(text: str) -> TypeError:
    """Return the error for making a plain number or array of a variable."""
    error = TypeError(text)
    error.remedy = True  # type: ignore[attr-defined]
    return error


def raise_hidden(error: ValueError) -> None:
    """Raise the error that NumPy hides if a variable is assigned to an element of a plain array,
    because it says the remedy.
    """
    cause = error.__cause__
    if cause is not None and hasattr(cause, "remedy"):
        raise cause from None


class ShapeError(ValueError):
    """The shapes of the arguments do not fit the function or each other."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)


def mismatch(name: str, error: ValueError, *values: Plain) -> ValueError:
    """Return what to raise where operands do not broadcast; return any other error unchanged."""
    shapes = " and ".join(str(np.shape(v)) for v in values)
    if "broadcast" not in str(error):
        return error
    return ShapeError(f"{name}: operands have shapes {shapes}, but must broadcast!")


class TapeError(RuntimeError):
    """A variable is used where its tape cannot record it."""
