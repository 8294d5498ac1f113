"""Looking at a tape: the expression graph as text or as a picture, and the time that sections of a model take."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np

from varmat.core.tape import ALWAYS, Rule, current_tape
from varmat.core.variables import VARIABLES, Outputs, Var, View

__all__ = ["print_stack", "profile"]


def print_stack(*, dot: bool = False, file: TextIO | None = None) -> None:
    """Print what is on this thread's tape: leaves and operations in the order recorded, with values and adjoints.

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


def _nodes() -> Iterator[tuple[str, Any, list[Any]]]:
    """Name, results and operands of the leaves and entries of all open scopes, oldest first."""
    for tape in reversed(current_tape().chain()):
        for leaf in tape.leaves:
            yield "leaf", (leaf,), []
        for rule, result, x, y in tape:
            results = result if isinstance(result, Outputs) else (result,)
            yield rule.name, results, [_root(v) for v in _variables((x, y))]


def _variables(thing: Any) -> Iterator[Any]:
    if type(thing) in VARIABLES:
        yield thing
    elif isinstance(thing, (tuple, list)):
        for item in thing:
            yield from _variables(item)
    elif hasattr(thing, "target"):  # an assignment
        yield from _variables((thing.target, thing.source))


def _root(x: Any) -> Any:
    return x._root if isinstance(x, View) else x


def _describe(x: Any) -> str:
    if type(x) is Var:
        return f"Var  val {x.val:.6g}  adj {x.adj:.6g}"
    if type(x) not in VARIABLES:
        return ""
    adjoint = np.zeros(x.shape) if x._adj is None else x._adj
    with np.printoptions(threshold=6, edgeitems=2):
        text = f"VarMat {x.shape}  val {x._val}  adj {adjoint}"
    return " ".join(text.split("\n")) if x.ndim > 1 else text


def _numbered() -> Iterator[tuple[int, str, str, list[int]]]:
    """Number, name, description and operands' numbers of every node."""
    numbers: dict[int, int] = {}
    for number, (name, results, operands) in enumerate(_nodes()):
        yield number, name, ", ".join(filter(None, map(_describe, results))), [numbers[id(x)] for x in operands if id(x) in numbers]
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


class Timing:
    """Accumulated cost of one profiled section."""

    __slots__ = ("calls", "entries", "forward", "reverse")

    def __init__(self) -> None:
        self.calls = 0
        self.entries = 0
        self.forward = 0.0
        self.reverse = 0.0

    def __repr__(self) -> str:
        return (
            f"calls {self.calls}, entries {self.entries}, forward {self.forward:.3g} s, reverse {self.reverse:.3g} s"
        )


@contextmanager
def profile(name: str, timings: dict[str, Timing]) -> Iterator[None]:
    """Time a section of code, in the forward and in the reverse pass.

    Parameters
    ----------
    name : str
        The name of the section.
    timings : dict
        Where the `Timing` of each name is accumulated: number of calls, tape entries, seconds forward and in reverse.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> timings = {}
    >>> def f(x):
    ...     with vm.profile("inner", timings):
    ...         return np.sum(np.exp(x) * x)
    >>> gradient = vm.gradient(f, np.ones(3))
    >>> timings["inner"].calls, timings["inner"].entries
    (1, 3)
    """
    timing = timings.setdefault(name, Timing())
    tape = current_tape()
    clock = [0.0]

    def leave_reverse(*_: Any) -> None:
        timing.reverse += time.perf_counter() - clock[0]

    def enter_reverse(*_: Any) -> None:
        clock[0] = time.perf_counter()

    tape.append((Rule(f"profile({name}) begin", leave_reverse), ALWAYS, None, None))
    before, start = len(tape), time.perf_counter()
    try:
        yield
    finally:
        timing.forward += time.perf_counter() - start
        timing.calls += 1
        timing.entries += len(tape) - before
        tape.append((Rule(f"profile({name}) end", enter_reverse), ALWAYS, None, None))
