"""Which public functions the tests exercise, along which routes, and the worst relative errors they
see.

In varmat's own test suite

    python -m pytest --coverage-table

prints the table after the run, and ``--coverage-table=FILE`` writes it as Markdown. A complete run
of the suite fails if a public function was never compared along the routes of `expect_ad`. Both
hold for a run in several processes (``-n auto``) as well.

The harness reports to a recorder, which is absent unless `start` was called. A tested function is
often a lambda: the recorder calls it once more, on variables, and looks which public functions it
calls. What these call in turn does not count. A test that computes its own figures reports them
with `note`:

    coverage.note(np.linalg.det, mpmath=3e-16)
    coverage.note(lambda a: np.linalg.det(a) ** 2, [matrix], mpmath=3e-16)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from types import CodeType, FrameType
from typing import Any, TypeAlias

import numpy as np

from varmat.core import dispatch
from varmat.core.elementwise import ROWS, Elementwise
from varmat.core.operation import OPERATIONS
from varmat.core.tape import Tape, nested
from varmat.testing import routes
from varmat.typing import Function, Operand

# By row: the worst error by column, and the count of refusals.
Notes: TypeAlias = Mapping[str, tuple[dict[str, float], int]]

__all__ = ["COLUMNS", "Recorder", "note", "note_refusal", "start", "stop"]

# "tails" are 50-digit comparisons that are not held to the bar of the bulk.
COLUMNS = (
    "varmat",
    "matvar",
    "forward",
    "hessian",
    "recorded",
    "reference",
    "mpmath",
    "tails",
    "errors",
)
# Modules without differentiable functions: the engine, derivatives, solvers, tools, and functions
# of plain values.
EXEMPT = (
    *(
        "core",
        "densities.random_numbers",
        "derivatives",
        "inspection",
        "models",
        "parallel",
        "programs",
        "solvers",
        "testing",
    ),
    "densities.hmm_paths",
    "functions.arrays.constant",
    "functions.refused",
)
# The start of a refusal: the name of a function.
REFUSAL = re.compile(r"([\w.]+): ")
DISPATCHERS = {
    f.__code__: name
    for f, name in ((dispatch.array_function, "function"), (dispatch.array_ufunc, "ufunc"))
}


def _is_discrete(row: Row) -> bool:
    """Tell whether no argument of a function can be a variable."""
    arguments, discrete = (getattr(row.function, name, ()) for name in ("arguments", "discrete"))
    return row.names[0] in ("csr_extract_u", "csr_extract_v") or bool(
        arguments and set(arguments) <= set(discrete)
    )


class Row:
    """A public function: its names, the module of varmat it comes from, and the worst error by
    column.
    """

    def __init__(self, function: Function, module: str) -> None:
        self.function = function
        self.module = module
        # The function itself, and the functions of NumPy that it implements for variables.
        self.callables = [function]
        self.names: list[str] = []
        self.errors: dict[str, float] = {}
        # For refusals, which are only counted.
        self.refusals = 0

    def note(self, column: str, error: float) -> None:
        """Remember the error if it is the worst so far."""
        if column not in COLUMNS:
            raise TypeError(f"note: column is {column!r}, but must be one of {COLUMNS}!")
        self.errors[column] = max(float(error), self.errors.get(column, 0.0))

    @property
    def worst(self) -> float:
        """The worst of all errors."""
        return max(self.errors.values(), default=0.0)

    def cells(self) -> list[str]:
        """Format the cells of the row: names, the worst error of each column and the worst of all.
        Refusals are counted.
        """
        marks = [
            _figure(self.errors[column]) if column in self.errors else "" for column in COLUMNS[:-1]
        ]
        return [
            ", ".join(self.names),
            *marks,
            str(self.refusals or ""),
            _figure(self.worst) if self.errors else "",
        ]


def public_functions() -> list[Row]:
    """Make a row for each differentiable function that has a public name; names of one function
    share a row.
    """
    rows: dict[int, Row] = {}
    row_of_call = {id(row.call): row for row in ROWS.values()}

    def add(called: Function, answer: Function, name: str) -> None:
        # A density without its constants, which knows the full one, is the same function.
        function = row_of_call.get(
            id(answer), getattr(answer, "density", getattr(answer, "alias_of", answer))
        )
        module = _home(function)
        if name and not module.startswith(EXEMPT):
            row = rows.setdefault(id(function), Row(function, module))
            row.callables.append(called)
            row.names.append(name)

    package = sys.modules["varmat"]
    for name in package.__all__:
        thing = getattr(package, name)
        if callable(thing) and not isinstance(thing, type):
            add(thing, thing, name)
    for key, answer in dispatch.SUPPORTED.items():
        if isinstance(key, str):
            module, _, attribute = key.rpartition(".")
            add(getattr(import_module(module), attribute), answer, key.replace("numpy", "np", 1))
        elif callable(key):
            add(key, answer, _public_name(key))
    for name, answer in dispatch.SPECIAL.items():
        add(answer, answer, f"scipy.special.{name}")
    return sorted(
        rows.values(), key=lambda row: (row.module, row.names[0].removeprefix("np.").lower())
    )


def _home(function: Function) -> str:
    """Return the module in which a function is defined, without the name of the package."""
    if isinstance(function, Elementwise):
        # The engine defines the class; the row is in a table.
        tables = (name for name in sys.modules if name.startswith("varmat.functions."))
        homes = (name for name in tables if vars(sys.modules[name]).get(function.name) is function)
        return next(homes, "varmat.functions.elementwise").partition(".")[2]
    return str(getattr(function, "__module__", None) or type(function).__module__).partition(".")[2]


def _public_name(function: Function) -> str:
    """Find the name under which users of NumPy find a function; empty without one."""
    name = function.__name__
    for place in (np, np.linalg, np.fft, np.lib.stride_tricks):
        if getattr(place, name, None) is function:
            return f"{place.__name__.replace('numpy', 'np', 1)}.{name}"
    return ""


class Recorder:
    """Collects what the tests report."""

    def __init__(self) -> None:
        self.rows = public_functions()
        self.by_identity = {id(x): row for row in self.rows for x in row.callables}
        self.by_rule = {
            name: self.by_identity.get(id(op))
            for table in (OPERATIONS, ROWS)
            for name, op in table.items()
        }
        self.by_code: dict[CodeType, list[Row]] = {}
        self.by_name: dict[str, list[Row]] = {}
        for row in self.rows:
            if hasattr(row.function, "__code__"):
                self.by_code.setdefault(row.function.__code__, []).append(row)
            own = getattr(row.function, "__name__", "")
            for name in {own, *row.names, *(name.rpartition(".")[2] for name in row.names)}:
                self.by_name.setdefault(name, []).append(row)

    def note(
        self,
        f: Function,
        args: Sequence[Operand],
        errors: Mapping[str, float],
        active: Iterable[int] | None = None,
    ) -> None:
        """Note errors, by column, for the public functions that `f` calls."""
        for row in self.called(f, args, active):
            for column, error in errors.items():
                row.note(column, error)

    def note_refusal(self, error: BaseException) -> None:
        """Count a refusal for the function that its text names."""
        if match := REFUSAL.match(str(error)):
            for row in self.by_name.get(match[1], ()):
                row.refusals += 1

    def notes(self) -> Notes:
        """Return the noted figures, in plain types, for the process that adds up all figures."""
        return {
            key: (dict(row.errors), row.refusals)
            for key, row in self._by_key().items()
            if row.errors or row.refusals
        }

    def add(self, notes: Notes) -> None:
        """Add what another process noted."""
        rows = self._by_key()
        for key, (errors, refusals) in notes.items():
            rows[key].refusals += refusals
            for column, error in errors.items():
                rows[key].note(column, error)

    def _by_key(self) -> dict[str, Row]:
        """Index the rows by a name that is the same in every process."""
        return {f"{row.module}: {row.names[0]}": row for row in self.rows}

    def called(
        self, f: Function, args: Sequence[Operand], active: Iterable[int] | None
    ) -> list[Row]:
        """Find the public functions that `f` is or calls itself; those that its public functions
        call in turn do not count.
        """
        if row := self.by_identity.get(id(f)):
            return [row]
        case = routes.Case(f, args)
        observer = Observer(self)
        with nested() as tape:
            call = routes.CallArguments(
                case, dict.fromkeys(case.active if active is None else active, "varmat")
            )
            observer.watch(f, call.args, tape)
        return list(observer.found.values())

    def missing(self) -> list[str]:
        """Name the functions that were never compared along the routes of `expect_ad`."""
        return [
            row.names[0]
            for row in self.rows
            if "varmat" not in row.errors and not _is_discrete(row)
        ]

    def table(self) -> list[list[str]]:
        """Return the cells of the table: a heading, a row for each function, and totals."""
        heading = ["function", *COLUMNS, "worst"]
        body = [
            [f"{row.module}: {cells[0]}", *cells[1:]]
            for row in self.rows
            for cells in [row.cells()]
        ]
        counts = [sum(column in row.errors for row in self.rows) for column in COLUMNS[:-1]]
        refused = sum(row.refusals > 0 for row in self.rows)
        worst = max((row.worst for row in self.rows), default=0.0)
        return [
            heading,
            *body,
            [f"{len(self.rows)} functions", *map(str, [*counts, refused]), _figure(worst)],
        ]

    def text(self) -> str:
        """Format the table for a terminal."""
        return _aligned([[cells[0][:70], *cells[1:]] for cells in self.table()], "  ", "")

    def markdown(self) -> str:
        """Format the table as Markdown."""
        heading, *body = self.table()
        rule = ["---", *["---:"] * (len(heading) - 1)]
        return _aligned([heading, rule, *body], " | ", "| ")


def _figure(error: float) -> str:
    return f"{error:.0e}" if error else "0"


def _aligned(table: list[list[str]], between: str, border: str) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        between.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        for cells in table
    ]
    return "\n".join(f"{border}{line}{border[::-1]}".rstrip() for line in lines)


class Observer:
    """Watches one call, with the interpreter's profiling hook, for the outermost public
    functions.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.found: dict[int, Row] = {}
        self.tape: Any = None
        # The frame of the public function that is running, and how many entries of the tape are
        # accounted for.
        self.inside: FrameType | None = None
        self.data = 0

    def watch(self, f: Function, args: Sequence[object], tape: Tape) -> None:
        """Call the function. If it raises, nothing is found."""
        self.tape, before = tape, sys.getprofile()
        self.data = len(tape)
        try:
            with np.errstate(all="ignore"):
                sys.setprofile(self)
                try:
                    f(*args)
                finally:
                    sys.setprofile(before)
        except Exception:
            self.found.clear()
        else:
            self.recorded_directly()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.inside is not None:
            if event == "return" and frame is self.inside:
                self.inside = None
                self.data = len(self.tape)
        elif event == "call" and (row := self.row_of(frame)) is not None:
            self.recorded_directly()
            self.found[id(row)] = row
            self.inside = frame

    def recorded_directly(self) -> None:
        """Note operators, which the profiling hook cannot see, by their entries on the tape."""
        for entry in self.tape[self.data :]:
            if row := self.recorder.by_rule.get(entry[0].name):
                self.found[id(row)] = row
        self.data = len(self.tape)

    def row_of(self, frame: FrameType) -> Row | None:
        """Find the public function to which a frame belongs."""
        code = frame.f_code
        if code in DISPATCHERS:
            names = frame.f_locals
            is_call = names.get("method", "__call__") == "__call__"
            return self.recorder.by_identity.get(id(names[DISPATCHERS[code]])) if is_call else None
        if code.co_name == "__call__":
            return self.recorder.by_identity.get(id(frame.f_locals.get("self")))
        # Functions made by one maker share their code and differ in what they close over.
        for row in self.recorder.by_code.get(code, ()):
            cells = zip(code.co_freevars, row.function.__closure__ or (), strict=True)
            if all(frame.f_locals.get(name) is cell.cell_contents for name, cell in cells):
                return row
        return None


_recorder: Recorder | None = None


def start() -> Recorder:
    """Begin to record; what was recorded before is dropped."""
    global _recorder
    _recorder = Recorder()
    return _recorder


def stop() -> None:
    """End recording."""
    global _recorder
    _recorder = None


def note(
    f: Function,
    args: Sequence[Operand] = (),
    /,
    *,
    active: Iterable[int] | None = None,
    **errors: float,
) -> None:
    """Note, if a recorder is there, that a test has found relative errors of a function.

    Parameters
    ----------
    f : callable
        A public function of varmat or NumPy, or one that calls such functions.
    args : sequence, optional
        Arguments for a call of `f`, if it is not itself a public function.
    active : iterable of int, optional
        Positions of the arguments that are variables; by default those of floats and float arrays.
    **errors : float
        Column of the table (one of ``coverage.COLUMNS``) -> worst relative error.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import coverage
    >>> coverage.note(np.exp, mpmath=1e-16)
    """
    if _recorder is not None:
        _recorder.note(f, args, errors, active)


def note_refusal(error: BaseException) -> None:
    """Count, if a recorder is there, an error for the function that its text names: ``name:
    ...``.
    """
    if _recorder is not None:
        _recorder.note_refusal(error)
