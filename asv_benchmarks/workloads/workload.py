"""A measured function, written once, and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np

# Family -> its workloads, in the order of the tables.
FAMILIES: dict[str, list[Workload]] = {}


@dataclass(frozen=True)
class Workload:
    """A function of arrays whose value and gradients are measured at several sizes.

    Attributes
    ----------
    family, name : str
        The table and the row.
    sizes : tuple of int
        The arguments for `point`.
    point : callable
        Takes a size and returns the arguments: NumPy arrays and floats.
    expression : callable
        Takes a namespace of array functions (`peers.Namespace`: the functions of NumPy by name, and
        some more) and the size, and returns the function of the arguments, which returns a scalar.
        It is written once for all libraries.
    by_hand : callable, optional
        Takes the arguments and returns ``(value, gradients)``, where the gradients are a tuple of
        new C-contiguous arrays or floats. It is the code of an expert in NumPy and SciPy, with
        buffers for intermediate results that are used again.
    variables : int
        How many arguments are variables, counted from the first one.
    matvar : tuple of int
        The sizes at which an array of scalar variables is measured too.
    without : tuple of str
        Peers that cannot compute it.
    limits : dict
        Size from which the limit holds -> the limit, as a multiple of the time by hand.
    dispatch : bool
        Whether calls take most of the time, and not arithmetic, at all sizes.
    stan : callable, optional
        Takes a size and returns the name of a program in ``stan_programs/`` and its data. The
        unconstrained unknowns of the program are the variables, in order.
    rtol : float
        The relative tolerance between the values of all implementations; gradients have ten times
        this tolerance.
    """

    family: str
    name: str
    sizes: tuple[int, ...]
    point: Callable[[int], tuple[Any, ...]]
    expression: Callable[[Any, int], Callable[..., Any]]
    by_hand: Callable[..., tuple[float, tuple[Any, ...]]] | None = None
    variables: int = 1
    matvar: tuple[int, ...] = ()
    without: tuple[str, ...] = ()
    limits: dict[int, float] = field(default_factory=dict)
    dispatch: bool = False
    stan: Callable[[int], tuple[str, dict[str, Any]]] | None = None
    rtol: float = 1e-9

    def __post_init__(self) -> None:
        FAMILIES.setdefault(self.family, []).append(self)


def check(
    found: tuple[float, tuple[Any, ...]],
    expected: tuple[float, tuple[Any, ...]],
    title: str,
    rtol: float = 1e-9,
) -> None:
    """Raise `AssertionError` unless values and gradients agree."""
    (value, gradients), (true_value, true_gradients) = found, expected
    np.testing.assert_allclose(value, true_value, rtol=rtol, atol=rtol, err_msg=f"{title}: value")
    for i, (g, true) in enumerate(zip(gradients, true_gradients, strict=True)):
        scale = float(np.max(np.abs(true), initial=0.0))
        np.testing.assert_allclose(
            g, true, rtol=10.0 * rtol, atol=rtol * scale, err_msg=f"{title}: gradient {i}"
        )
