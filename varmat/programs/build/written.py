"""Arrays into which something is written."""

from __future__ import annotations

import numpy as np

from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import Value


class Written:
    """An array into which something is written: each element is either kept or replaced by one of
    the source.

    Parameters
    ----------
    builder : Builder
    before : Value
    places : ndarray of int
        The places in the flattened array that are written to.
    source : Value
        What broadcasts to the shape of `places`.
    """

    def __init__(self, builder: Builder, before: Value, places: np.ndarray, source: Value) -> None:
        while len(source.shape) > places.ndim:  # NumPy drops leading axes of length one
            source = builder.reshaped(source, source.shape[1:])
        # If an element is named several times, the last one stays.
        written, order = np.unique(places.reshape(-1)[::-1], return_index=True)
        chosen = np.zeros(before.size, np.int64)
        chosen[written] = places.size - 1 - order
        changed = np.zeros(before.size, bool)
        changed[written] = True
        changed = changed.reshape(before.shape)
        spread = builder.broadcast(source, places.shape) if source.shape else source
        if source.shape and places.size and places.shape:
            spread = builder.reshaped(builder.gather(spread, chosen), before.shape)
        if not places.size:
            self.value = before
        elif changed.all():
            self.value = builder.full(spread, before.shape)
        else:
            self.value = builder.where(builder.constant(changed), spread, before)
