"""Draws and points in blocks, computed in this thread or by the workers of an executor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.interrupts import Noted
from varmat.typing import Result

if TYPE_CHECKING:
    from concurrent.futures import Executor

# The number of draws in a block with separate random numbers. It is fixed, so that the numbers do
# not depend on how many workers there are.
RANDOM = 100
# The number of blocks for each worker otherwise.
FOR_EACH = 4


class Draws(NamedTuple):
    """A block of neighbouring draws.

    Attributes
    ----------
    start : int
        The number of the first.
    rows : ndarray
        What each draw is, along the first axis.
    seed : int
        Seed for the random numbers.
    """

    start: int
    rows: np.ndarray
    seed: int = 0

    def noted(self, name: str, i: int) -> Noted:
        """Add to errors at which draw of the block they arose."""
        return Noted(f"{name}: at draw {self.start + i}, counted from 0 through all chains")


def rows_of(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Put named arrays of shape (chains, draws, ...) into rows, one for each draw."""
    sizes = [(math.prod(x.shape[:2]), math.prod(x.shape[2:])) for x in arrays.values()]
    parts = [x.reshape(size) for x, size in zip(arrays.values(), sizes, strict=True)]
    return np.concatenate(parts, axis=1)


def of_blocks(
    name: str,
    function: Callable[[Draws], Result],
    rows: np.ndarray,
    executor: Executor | str | None = None,
    rng: np.random.Generator | None = None,
) -> list[Result]:
    """Return the results of a function of `Draws` for all blocks, in order.

    Parameters
    ----------
    name : str
        What the user called, for messages.
    function : callable
        Sent once to each worker of another process, with what it holds.
    rows : ndarray
        Draws along the first axis.
    executor : Executor, str or None
        As in `varmat.map_rect`, but that None is this thread.
    rng : numpy.random.Generator, optional
        For seeds. The blocks are then the same whatever the executor.
    """
    if rng is None and executor in (None, "serial"):
        return [function(Draws(0, rows))] if len(rows) else []
    if executor is not None:
        from varmat.parallel.executors import check, workers_of
        from varmat.parallel.tasks import on_workers

        check(name, executor)
    count = len(rows)
    most = FOR_EACH * workers_of(executor) if executor is not None else 1
    blocks = -(-count // RANDOM) if rng is not None else min(count, most)
    seeds = [0] * blocks if rng is None else rng.integers(2**63, size=blocks).tolist()
    # Blocks with separate random numbers have a fixed size.
    shared = np.linspace(0, count, blocks + 1).astype(int).tolist()
    ends = shared if rng is None else [*range(0, count, RANDOM), count]
    draws = [
        Draws(start, rows[start:end], seed)
        for (start, end), seed in zip(pairwise(ends), seeds, strict=True)
    ]
    if executor is None:
        return [function(draw) for draw in draws]
    return on_workers(name, function, draws, executor)
