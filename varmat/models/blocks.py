"""Draws and points in blocks: what is computed of each, here or by the workers of an executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

# Draws in a block that has random numbers of its own: they must not depend on how many workers
# there are.
RANDOM = 100
# How many blocks there are for each worker if there is no other rule.
FOR_EACH = 4


class Draws(NamedTuple):
    """A block of neighbouring draws.

    Attributes
    ----------
    start : int
        The number of the first.
    rows : ndarray or dict of ndarray
        What each draw is, along the first axis.
    seed : int
        Of the random numbers.
    """

    start: int
    rows: Any
    seed: int = 0

    def each(self) -> Any:
        """The draws of named values, with their numbers."""
        for i in range(_count(self.rows)):
            yield self.start + i, {name: x[i] for name, x in self.rows.items()}


def _count(rows: Any) -> int:
    return len(next(iter(rows.values())) if isinstance(rows, Mapping) else rows)


def of_blocks(
    name: str,
    function: Callable[[Draws], Any],
    rows: Any,
    executor: Any = None,
    rng: np.random.Generator | None = None,
) -> list[Any]:
    """The results of a function of `Draws` for all blocks, in order.

    Parameters
    ----------
    name : str
        What the user called, for messages.
    function : callable
        Sent once to each worker of another process, with what it holds.
    rows : ndarray or dict of ndarray
        Draws along the first axis.
    executor : Executor, str or None
        As in `varmat.map_rect`, but that None is this thread.
    rng : numpy.random.Generator, optional
        For seeds. The blocks are then the same whatever the executor.
    """
    if executor is not None:
        from varmat.parallel.executors import check, workers_of
        from varmat.parallel.tasks import on_workers

        check(name, executor)
    count = _count(rows)
    most = FOR_EACH * workers_of(executor) if executor is not None else 1
    blocks = -(-count // RANDOM) if rng is not None else min(count, most)
    seeds = [0] * blocks if rng is None else rng.integers(2**63, size=blocks).tolist()
    # With random numbers of their own blocks have a size of their own too.
    ends = (
        [*range(0, count, RANDOM), count]
        if rng is not None
        else np.linspace(0, count, blocks + 1).astype(int).tolist()
    )
    draws = []
    for start, end, seed in zip(ends[:-1], ends[1:], seeds, strict=True):
        here = (
            {each: x[start:end] for each, x in rows.items()}
            if isinstance(rows, Mapping)
            else rows[start:end]
        )
        draws.append(Draws(start, here, seed))
    return (
        [function(each) for each in draws]
        if executor is None
        else on_workers(name, function, draws, executor)
    )
