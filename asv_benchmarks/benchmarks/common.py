"""What the benchmarks of several families share. asv takes no class for a benchmark whose name
begins with an underscore.
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
    """The reverse rules that run: entries with something to hand over."""
    with vm.nested() as tape:
        function(*map(vm.var, args)).grad()
        return sum(result._adj is not None for _, result, _, _ in tape)


def _calls(function: Callable[..., Any], *args: Any) -> int:
    """Calls of Python and C functions; operators, and ufuncs called by name, are none to the
    interpreter.
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
    """An implementation of a workload after a first call, which warms up; what this revision cannot
    do is skipped.
    """
    function = gradient_function(way, workload, size)
    try:
        function(*args)
    except (AttributeError, TypeError) as refused:
        raise MissingError(str(refused)) from None
    return function


def rows_of(family: str) -> dict[str, tuple[Workload, int]]:
    """The rows of the table of a family, by a text for each."""
    return {
        f"{workload.name}, {size}": (workload, size)
        for workload in FAMILIES[family]
        for size in workload.sizes
    }


class _Gradient:
    """A workload in each way."""

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
    """The timings of a workload; subclasses give `params` and `setup`."""

    timeout = 120

    def time_by_hand(self, *_: Any) -> None:
        self.by_hand(*self.args)

    def time_plain(self, *_: Any) -> None:
        self.plain(*self.args)

    def time_varmat(self, *_: Any) -> None:
        self.gradient(*self.args)


class _Counts(_Gradient):
    """What a gradient counts, whatever the machine; subclasses give `params` and `setup`."""

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
    """The rows of a table; subclasses give `rows`, and their texts as `params`."""

    rows: dict[str, tuple[Workload, int]]
    param_names = ("function",)

    def setup(self, row: str) -> None:
        self.prepare(*self.rows[row])
