"""Gradients of real posteriors, if their data are available (see ``workloads/posteriors.py``)."""

from __future__ import annotations

from peers import gradient_function
from timing import arena_bytes
from workloads.posteriors import DEFINITIONS, Posterior, default_folder, find, operations_of

FOUND: dict[str, Posterior] = {each.name: each for each in find(default_folder())}


class Posteriors:
    """The gradient of a model, compared with the value alone. If this revision lacks a function of
    the model, the model is skipped.
    """

    params = tuple(each.title for each in DEFINITIONS.values())
    param_names = ("posterior",)
    implementation = "varmat"

    def setup(self, name: str) -> None:
        if name not in FOUND:
            raise NotImplementedError("there are no data")
        self.posterior = FOUND[name]
        size = self.posterior.sizes[0]
        (self.q,) = self.posterior.point(size)
        try:
            self.plain = gradient_function("plain", self.posterior, size)
            self.gradient = gradient_function(self.implementation, self.posterior, size)
            self.gradient(self.q)
        except AttributeError as missing:
            raise NotImplementedError(missing) from missing

    def time_plain(self, name: str) -> None:
        self.plain(self.q)

    def time_gradient(self, name: str) -> None:
        self.gradient(self.q)

    def track_gradient_error(self, name: str) -> float:
        """Return the largest difference from Stan's gradient, in units of 1 + the largest
        derivative.
        """
        return self.posterior.errors(self.gradient)[1]

    track_gradient_error.unit = "relative"  # type: ignore[attr-defined]


class Recorded(Posteriors):
    """The same figures for a recording."""

    implementation = "recorded"


class Tape:
    """The tape and memory that a gradient takes."""

    params = Posteriors.params
    param_names = Posteriors.param_names
    setup = Posteriors.setup
    implementation = Posteriors.implementation

    def track_entries(self, name: str) -> int:
        return operations_of(self.posterior, self.q)[1]

    track_entries.unit = "entries"  # type: ignore[attr-defined]

    def track_arena_bytes(self, name: str) -> int:
        return arena_bytes(self.gradient, self.q)

    track_arena_bytes.unit = "bytes"  # type: ignore[attr-defined]
