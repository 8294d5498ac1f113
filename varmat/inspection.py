"""Looking at a tape: the graph as text or as a picture, and what every operation costs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ContextDecorator
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import numpy as np

from varmat.core.indexing import AssignmentBatch
from varmat.core.tape import Tape, current_tape, scope
from varmat.core.variables import VARIABLES, Outputs, Var, root_of

if TYPE_CHECKING:
    from varmat.typing import Entry, Operand, Plain

__all__ = ["print_stack", "profile"]


def print_stack(*, dot: bool = False, file: TextIO | None = None) -> None:
    """Print what is on this thread's tape: leaves and operations in the order recorded, with values
    and adjoints.

    Parameters
    ----------
    dot : bool
        Print the graph in the DOT language instead, for Graphviz to draw: ``dot -Tsvg``.
    file : text stream, optional
        Where to print; standard output by default.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> with vm.nested():
    ...     x = vm.var([1.0, 2.0])
    ...     y = np.sum(np.exp(x))
    ...     y.grad()
    ...     vm.print_stack()
    #0 leaf        VarMat (2,)  val [1. 2.]  adj [2.71828183 7.3890561 ]
    #1 exp         VarMat (2,)  val [2.71828183 7.3890561 ]  adj [1. 1.]  <- #0
    #2 sum         Var  val 10.1073  adj 1  <- #1
    """
    print(_dot() if dot else "\n".join(_lines()), file=file or sys.stdout)


def _nodes() -> Iterator[tuple[str, Sequence[Operand], list[Operand]]]:
    """Name, results and operands of the leaves and entries of all open scopes, oldest first."""
    for tape in reversed(current_tape().chain()):
        for leaf in tape.leaves:
            yield "leaf", (leaf,), []
        for rule, result, x, y in tape:
            results = result if isinstance(result, Outputs) else (result,)
            yield rule.name, results, [root_of(v) for v in _variables((x, y))]


def _variables(thing: object) -> Iterator[Operand]:
    if type(thing) in VARIABLES:
        yield thing
    elif isinstance(thing, (tuple, list)):
        for item in thing:
            yield from _variables(item)


def _describe(x: Operand) -> str:
    if type(x) is Var:
        return f"Var  val {x.val:.6g}  adj {x.adj:.6g}"
    if type(x) not in VARIABLES:
        return ""
    adjoint = np.zeros(x.shape) if x._adj is None else x._adj
    with np.printoptions(threshold=6, edgeitems=2):
        text = f"VarMat {x.shape}  val {x._val}  adj {adjoint}"
    return " ".join(text.split("\n"))


def _numbered() -> Iterator[tuple[int, str, str, list[int]]]:
    """Yield number, name, description and operands' numbers of every node."""
    numbers: dict[int, int] = {}
    for number, (name, results, operands) in enumerate(_nodes()):
        yield (
            number,
            name,
            ", ".join(filter(None, map(_describe, results))),
            [numbers[id(x)] for x in operands if id(x) in numbers],
        )
        numbers.update((id(x), number) for x in results)


def _lines() -> Iterator[str]:
    for number, name, description, operands in _numbered():
        sources = "  <- " + " ".join(f"#{i}" for i in operands) if operands else ""
        yield f"#{number} {name:<11} {description}{sources}".rstrip()


def _dot() -> str:
    lines = ["digraph tape {", "  rankdir=BT;", "  node [shape=box, fontname=monospace];"]
    for number, name, description, operands in _numbered():
        label = f"#{number} {name}\\n{description}".replace('"', "'")
        lines.append(f'  n{number} [label="{label}"{", style=rounded" if name == "leaf" else ""}];')
        lines += [f"  n{i} -> n{number};" for i in operands]
    return "\n".join([*lines, "}"])


class Cost:
    """What the entries of one operation cost together.

    Attributes
    ----------
    name : str
        The name of the operation, as `print_stack` shows it; "leaf" for variables without an
        operation.
    line : str
        The line that recorded them, ``"model.py:12"``, in a profile by lines; otherwise empty.
    calls : int
        The number of entries.
    forward, reverse : float
        Seconds in the forward pass, with the Python that led to each entry, and in reverse passes.
    values, adjoints : int
        Bytes of the arrays that stay until the end of the scope; a number counts as 8.
    """

    __slots__ = ("adjoints", "calls", "forward", "line", "name", "reverse", "values")

    def __init__(self, name: str, line: str = "") -> None:
        self.name = name
        self.line = line
        self.calls = 0
        self.forward = 0.0
        self.reverse = 0.0
        self.values = 0
        self.adjoints = 0

    @property
    def seconds(self) -> float:
        """Forward and reverse."""
        return self.forward + self.reverse

    def hold(self, x: Operand) -> None:
        """Add what a variable holds."""
        if type(x) in VARIABLES:
            self.values += _bytes(x._val)
            self.adjoints += _bytes(x._adj)

    def __repr__(self) -> str:
        return f"<{self.name} {self.line}".rstrip() + f": calls {self.calls}, {self.seconds:.3g} s>"


def _bytes(x: Plain) -> int:
    """Return the memory of a value or an adjoint; read-only arrays are not counted, because others
    own them.
    """
    if type(x) is np.ndarray:
        return x.nbytes if x.flags.writeable else 0
    return 0 if x is None else 8


class Profile:
    """What `profile` measured: an iterable of `Cost`, dearest first; printed, a table."""

    def __init__(self, lines: bool) -> None:
        # When the last entry was recorded, or when the last thing ended that does not count.
        self.clock = time.perf_counter()
        self._lines = lines
        self._costs: dict[tuple[str, str], Cost] = {}
        # By id of an entry, which stays on its tape as long as it stays here.
        self._recorded: dict[int, Cost] = {}

    def __iter__(self) -> Iterator[Cost]:
        return iter(sorted(self._costs.values(), key=lambda cost: -cost.seconds))

    def __len__(self) -> int:
        return len(self._costs)

    def __repr__(self) -> str:
        return f"<profile of {len(self)} operations, {sum(cost.seconds for cost in self):.3g} s>"

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("operation", "line", "calls", "forward", "reverse", "values", "adjoints")
        ]
        total = Cost("total")
        for cost in self:
            rows.append(_cells(cost))
            for name in ("calls", "forward", "reverse", "values", "adjoints"):
                setattr(total, name, getattr(total, name) + getattr(cost, name))
        rows.append(_cells(total))
        if not self._lines:
            rows = [(name, *figures) for name, _, *figures in rows]
        texts = 2 if self._lines else 1
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                f"{cell:<{w}}" if i < texts else f"{cell:>{w}}"
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )

    def recorded(self, entry: Entry, seconds: float) -> None:
        """Count an entry that is new on a tape."""
        cost = self._cost(entry[0].name, _line() if self._lines else "")
        cost.calls += 1
        cost.forward += seconds
        self._recorded[id(entry)] = cost

    def swept(self, entry: Entry, seconds: float) -> None:
        """Count the reverse rule of an entry."""
        self._recorded[id(entry)].reverse += seconds

    def weigh(self, tape: Tape) -> None:
        """Count the memory of a tape that is about to be recovered."""
        for entry in tape:
            _, result, _, y = entry
            cost = self._recorded.pop(id(entry))
            for item in result if isinstance(result, Outputs) else (result,):
                cost.hold(item)
            if type(y) is AssignmentBatch:
                cost.values += sum(_bytes(overwritten) for _, _, overwritten in y)
        for leaf in tape.leaves:
            cost = self._cost("leaf", "")
            cost.calls += 1
            cost.hold(leaf)

    def _cost(self, name: str, line: str) -> Cost:
        key = (name, line)
        if key not in self._costs:
            self._costs[key] = Cost(name, line)
        return self._costs[key]


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def _line() -> str:
    """Return file and line of the innermost code outside varmat, NumPy and SciPy."""
    frame, made_from_text = sys._getframe(), ("<rule", "<varmat ")
    while frame.f_back and (
        _package(frame) in ("varmat", "numpy", "scipy")
        or frame.f_code.co_filename.startswith(made_from_text)
    ):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _cells(cost: Cost) -> tuple[str, ...]:
    times = (_scaled(seconds * 1e6, ("us", "ms", "s")) for seconds in (cost.forward, cost.reverse))
    sizes = (_scaled(size, ("B", "kB", "MB", "GB")) for size in (cost.values, cost.adjoints))
    return cost.name, cost.line, str(cost.calls), *times, *sizes


def _scaled(x: float, units: tuple[str, ...]) -> str:
    """Format a quantity in the unit that leaves at most three digits before the point."""
    for unit in units[:-1]:
        if x < 999.5:
            return f"{x:.3g} {unit}"
        x /= 1000.0
    return f"{x:.3g} {units[-1]}"


def _tape_class(profile: Profile) -> type[Tape]:
    """Make the class of tapes that report to a profile."""
    clock = time.perf_counter

    class ProfiledTape(Tape):
        __slots__ = ()

        def inner(self) -> Tape:
            profile.clock = clock()
            return ProfiledTape(self.arena, self)

        def append(self, entry: Entry) -> None:
            seconds = clock() - profile.clock
            list.append(self, entry)
            profile.recorded(entry, seconds)
            profile.clock = clock()

        def __reversed__(self) -> Iterator[Any]:
            for entry in list.__reversed__(self):
                start = clock()
                yield entry
                profile.swept(entry, clock() - start)
            profile.clock = clock()

        def recover(self) -> None:
            profile.weigh(self)
            super().recover()
            profile.clock = clock()

    return ProfiledTape


class Profiling(ContextDecorator):
    """What `profile` returns: to be entered, which gives a `Profile`."""

    def __init__(self, lines: bool) -> None:
        self._lines = lines
        self._scopes: list[Any] = []

    def __enter__(self) -> Profile:
        measured = Profile(self._lines)
        opened = scope(_tape_class(measured))
        opened.__enter__()
        self._scopes.append(opened)
        measured.clock = time.perf_counter()
        return measured

    def __exit__(self, *raised: Any) -> Any:
        return self._scopes.pop().__exit__(*raised)

    def __repr__(self) -> str:
        return (
            f"<varmat.profile(lines={self._lines}), to be entered: with varmat.profile() as costs>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "profile: what is pickled is what varmat.profile() returns, which holds no "
            "measurements; write `with varmat.profile() as costs:`, and pickle costs"
        )


def profile(*, lines: bool = False) -> Profiling:
    """Measure what every operation costs that is recorded inside: calls, time forward and in
    reverse, memory.

    Parameters
    ----------
    lines : bool
        Keep the operations of different lines of the model apart.

    Returns
    -------
    Profiling
        A context manager, which yields a `Profile`. Printed, that is a table, dearest first;
        iterated over, objects with ``name``, ``line``, ``calls`` (entries on the tape), ``forward``
        and ``reverse`` (seconds), ``values`` and ``adjoints`` (bytes).

    Notes
    -----
    It is a nested scope: variables made inside are stale afterwards. Gradients, Hessians and
    optimisers that run inside, in this thread, are measured too, and what several of them cost is
    summed. Call what is to be measured once before: the first call compiles rules and touches new
    memory.

    The forward time of an operation begins where that of the one before ended: the model's own
    Python, slices and computations with plain data in between belong to it. The clock adds about
    0.1 microseconds to each figure of each entry. Reverse passes of a pull-back (`vjp`) are not
    seen, because it owns its recording, and neither is what `recorded` or a `Model` with
    ``recorded=True`` computes, which puts nothing on a tape: profile the function as it is written.

    Bytes count results, leaves, and values that assignments overwrote. An adjoint that
    shares the memory of another one, and a large argument, which is read where it lies, hold
    nothing; what densities and matrix functions save for the reverse pass is not counted.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> y = np.linspace(0.0, 1.0, 100)
    >>> with vm.profile() as costs:
    ...     gradient = vm.gradient(lambda mu: vm.normal_lpdf(y, mu, 1.0), y)
    >>> print(costs)  # doctest: +ELLIPSIS
    operation    calls  forward  reverse  values  adjoints
    normal_lpdf      1  ...                  8 B       8 B
    leaf             1     0 us     0 us   800 B     800 B
    total            2  ...                808 B     808 B
    >>> [(cost.name, cost.calls) for cost in costs]
    [('normal_lpdf', 1), ('leaf', 1)]
    """
    return Profiling(lines)
