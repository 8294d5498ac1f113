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
        self.builder, self.places, self.shape = builder, places, before.shape
        while len(source.shape) > places.ndim:  # NumPy drops leading axes of length one
            source = builder.reshaped(source, source.shape[1:])
        # If an element is named several times, the last one stays.
        written, order = np.unique(places.reshape(-1)[::-1], return_index=True)
        self.last = places.size - 1 - order
        self.is_once = written.size == places.size
        chosen = np.zeros(before.size, np.int64)
        chosen[written] = self.last
        self.changed = np.zeros(before.size, bool)
        self.changed[written] = True
        self.changed = self.changed.reshape(before.shape)
        spread = builder.broadcast(source, places.shape) if source.shape else source
        if source.shape and places.size and places.shape:
            spread = builder.reshaped(builder.gather(spread, chosen), before.shape)
        if not places.size:
            self.value = before
        elif self.changed.all():
            self.value = builder.full(spread, before.shape)
        else:
            self.value = builder.where(builder.constant(self.changed), spread, before)

    def adjoint_before(self, g: Value) -> Value | None:
        """The contribution to the array as it was before; None if nothing of it is left."""
        if self.changed.all():
            return None
        return self.builder.where(
            self.builder.constant(self.changed), self.builder.constant(0.0), g
        )

    def adjoint_source(self, g: Value) -> Value:
        """The contribution to what was assigned, of the shape of the places."""
        builder, places = self.builder, self.places
        if not places.shape:
            return builder.element(builder.contiguous(g), int(places))
        taken = builder.gather(g, places)
        if self.is_once:
            return taken
        keep = np.zeros(places.size, bool)
        keep[self.last] = True
        return builder.where(
            builder.constant(keep.reshape(places.shape)), taken, builder.constant(0.0)
        )
