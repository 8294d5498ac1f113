"""Classes that the benchmarks of several families share. asv ignores classes whose names begin with
an underscore.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from peers import MissingError, gradient_function, namespace
from timing import arena_bytes, entries
from workloads.workload import FAMILIES, Workload

import varmat as vm


def _callbacks(function: Callable[..., Any], *args: Any) -> int:
    """Count the reverse rules that run: entries whose result has an adjoint."""
    with vm.nested() as tape:
        function(*map(vm.var, args)).grad()
        return sum(result._adj is not None for _, result, _, _ in tape)


def _calls(function: Callable[..., Any], *args: Any) -> int:
    """Count the calls of Python and C functions. The interpreter does not count operators, nor
    ufuncs called by name.
    """
    count = 0

    def event(_: Any, kind: str, __: Any) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(event)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


def ready(way: str, workload: Workload, size: int, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return an implementation of a workload after a first call, which warms up. A workload that
    this revision cannot compute is skipped.
    """
    function = gradient_function(way, workload, size)
    try:
        function(*args)
    except (AttributeError, TypeError) as refused:
        raise MissingError(str(refused)) from None
    return function


def rows_of(family: str) -> dict[str, tuple[Workload, int]]:
    """Return the rows of the table of a family, each with its text."""
    return {
        f"{workload.name}, {size}": (workload, size)
        for workload in FAMILIES[family]
        for size in workload.sizes
    }


class _Gradient:
    """A workload in each implementation."""

    def prepare(self, workload: Workload, size: int) -> None:
        if size not in workload.sizes:
            raise NotImplementedError
        self.args = workload.point(size)
        self.variables = self.args[: workload.variables]
        self.data = self.args[workload.variables :]
        self.function = workload.expression(namespace("varmat"), size)
        self.gradient, self.plain, self.by_hand = (
            ready(way, workload, size, self.args) for way in ("varmat", "plain", "by hand")
        )

    def of_variables(self, *variables: Any) -> Any:
        return self.function(*variables, *self.data)


class _Times(_Gradient):
    """The times of a workload; subclasses define `params` and `setup`."""

    timeout = 120

    def time_by_hand(self, *_: Any) -> None:
        self.by_hand(*self.args)

    def time_plain(self, *_: Any) -> None:
        self.plain(*self.args)

    def time_varmat(self, *_: Any) -> None:
        self.gradient(*self.args)


class _Counts(_Gradient):
    """Counts of a gradient that do not depend on the machine; subclasses define `params` and
    `setup`.
    """

    def track_tape_entries(self, *_: Any) -> int:
        return entries(self.of_variables, *self.variables)

    def track_callbacks(self, *_: Any) -> int:
        return _callbacks(self.of_variables, *self.variables)

    def track_calls(self, *_: Any) -> int:
        return _calls(self.gradient, *self.args)

    def track_arena_bytes(self, *_: Any) -> int:
        return arena_bytes(self.gradient, *self.args)

    track_tape_entries.unit = "entries"  # type: ignore[attr-defined]
    track_callbacks.unit = "callbacks"  # type: ignore[attr-defined]
    track_calls.unit = "calls"  # type: ignore[attr-defined]
    track_arena_bytes.unit = "bytes"  # type: ignore[attr-defined]


class _Rows(_Gradient):
    """The rows of a table; subclasses define `rows`, and their texts as `params`."""

    rows: dict[str, tuple[Workload, int]]
    param_names = ("function",)

    def setup(self, row: str) -> None:
        self.prepare(*self.rows[row])
