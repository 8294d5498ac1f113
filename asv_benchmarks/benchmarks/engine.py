"""The engine: one operation, scalars, long tapes, large arrays, and what the tape and the arena hold."""

from __future__ import annotations

from typing import Any

import models
import numpy as np

import varmat as vm

COUNT = 1000


class Multiply:
    """A chain of multiplications of arrays of length 8."""

    def setup(self) -> None:
        self.a, self.b = np.linspace(1, 2, 8), np.linspace(0.999, 1.001, 8)

    def _chain(self, reverse: bool) -> None:
        with vm.nested():
            x, y = vm.var(self.a), vm.var(self.b)
            for _ in range(COUNT):
                x = x * y
            if reverse:
                np.sum(x).grad()

    def time_numpy(self) -> None:
        for _ in range(COUNT):
            np.multiply(self.a, self.b)

    def time_forward(self) -> None:
        self._chain(reverse=False)

    def time_forward_and_reverse(self) -> None:
        self._chain(reverse=True)


class Scalars:
    """Chains of operations on `Var`, forward and reverse."""

    params = (1_000, 1_000_000)
    param_names = ("entries",)
    timeout = 300

    def time_chain(self, entries: int) -> None:
        with vm.nested():
            models.scalar_chain(vm.var(1.5), entries).grad()


class Large:
    """Value and gradient at arrays of length 10^6."""

    params = tuple(models.LARGE)
    param_names = ("function",)

    def setup(self, name: str) -> None:
        self.x = models.large_point()
        self.f, self.by_hand = models.LARGE[name]
        self.gradient = vm.value_and_grad(self.f)
        self.gradient(self.x)

    def time_by_hand(self, name: str) -> None:
        self.by_hand(self.x)

    def time_varmat(self, name: str) -> None:
        self.gradient(self.x)

    def track_arena_bytes(self, name: str) -> int:
        return models.bytes_from_arena(self.f, self.x)

    track_arena_bytes.unit = "bytes"  # type: ignore[attr-defined]


class EightSchools:
    """The non-centred eight-schools density."""

    def setup(self) -> None:
        self.x = models.SCHOOLS_POINT
        self.log_density: Any = models.eight_schools()
        self.gradient = vm.value_and_grad(self.log_density)

    def time_plain(self) -> None:
        self.log_density(self.x)

    def time_by_hand(self) -> None:
        models.eight_schools_by_hand(self.x)

    def time_varmat(self) -> None:
        self.gradient(self.x)

    def track_tape_entries(self) -> int:
        return models.entries(self.log_density, self.x)

    track_tape_entries.unit = "entries"  # type: ignore[attr-defined]


def track_entries_of_views() -> int:
    return models.entries(lambda a: a.reshape(6, 4)[1:, ::2].T[None], np.ones((4, 6)))


track_entries_of_views.unit = "entries"  # type: ignore[attr-defined]
