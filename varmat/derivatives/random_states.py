"""The states of generators of random numbers that a function may draw from: a recording would
always use the numbers that it drew once.
"""

from __future__ import annotations

import pickle
import random
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from types import FunctionType, MethodType, ModuleType

import numpy as np

from varmat.core.elementwise import ROWS, Elementwise
from varmat.core.operation import Operation
from varmat.programs.ir.program import RecordingError
from varmat.typing import Operand

# The most objects among which generators are looked for.
MOST = 1000
# Objects in which no generator is looked for.
LEAVES = (np.ndarray, ModuleType, type, str, float, int)


class RandomStates:
    """The states of the global generators of NumPy and Python, and of those that a function can
    reach, before it is called.
    """

    def __init__(self, *roots: object) -> None:
        generators = (np.random.Generator, np.random.RandomState, random.Random)
        self._generators = [x for x in islice(_reached(roots), MOST) if isinstance(x, generators)]
        self._before = self._states()

    def _states(self) -> list[tuple[str, bytes]]:
        return [
            ("numpy.random", pickle.dumps(np.random.get_state(legacy=False))),  # noqa: NPY002
            ("random", pickle.dumps(random.getstate())),
            *((f"a {type(x).__name__}", pickle.dumps(x)) for x in self._generators),
        ]

    def refuse_draws(self) -> None:
        """Raise if random numbers have been drawn since."""
        for (source, before), (_, after) in zip(self._before, self._states(), strict=True):
            if before != after:
                raise RecordingError(
                    f"recorded: the function draws random numbers from {source}, and a recording "
                    "would always use the numbers drawn now; draw them outside of the function "
                    "and pass them as an argument"
                )


def _reached(roots: tuple[object, ...]) -> Iterator[Operand]:
    """Yield objects that functions and containers refer to, the nearest first. Parts are listed
    only when their turn comes, because few are needed.
    """
    seen: set[int] = set()
    waiting = deque([iter(roots)])
    while waiting:
        for x in waiting.popleft():
            if id(x) not in seen and not isinstance(x, LEAVES) and not _is_ours(x):
                seen.add(id(x))
                waiting.append(_parts(x))
                yield x


def _is_ours(x: object) -> bool:
    """Return whether `x` is a function or an operation of the library: those draw only from
    generators that they are given, and refer to tables with many entries.
    """
    if isinstance(x, Elementwise):
        return x.rows is ROWS
    return (
        isinstance(x, (FunctionType, Operation))
        and (x.__module__ or "").startswith("varmat.")
        and not getattr(x, "__closure__", None)
    )


def _parts(x: object) -> Iterator[Operand]:
    if isinstance(x, FunctionType):
        yield from (item.cell_contents for item in x.__closure__ or () if _is_full(item))
        yield from (*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values())
        yield from (x.__globals__[name] for name in x.__code__.co_names if name in x.__globals__)
    elif isinstance(x, MethodType):
        yield from (x.__func__, x.__self__)
    elif isinstance(x, partial):
        yield from (x.func, *x.args, *x.keywords.values())
    elif isinstance(x, (list, tuple, dict)):
        yield from tuple(islice(x.values() if isinstance(x, dict) else x, MOST))
    else:
        attributes = getattr(x, "__dict__", None)  # some objects answer with any other attribute
        if isinstance(attributes, dict):
            yield from tuple(attributes.values())


def _is_full(cell: Operand) -> bool:
    """Return whether the variable of a cell has a value yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
