"""Periods of a recording: stretches of entries that repeat, because they come from a loop.

Two entries match if they have the same rule, settings and shapes. A stretch has a period if
each entry matches the one a period before it, and their operands correspond: made equally many
entries earlier, the same variable, or variables from before the stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.core.elementwise import Elementwise
from varmat.core.tape import ALWAYS
from varmat.core.variables import VARIABLES, Outputs, Var, Variable, View, root_of
from varmat.programs.record.tape_programs import operands_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from varmat.core.tape import Rule
    from varmat.programs.record.tape_programs import Operands
    from varmat.typing import Entry, Operand

# Repetitions from which a stretch becomes a loop, and one that is a recurrence.
LEAST, LONG = 16, 32
# Entries with more operands are in no loop.
_MOST_OPERANDS = 16
# Periods that are tried for a range of entries, and the distances that tell entries apart when
# periods are guessed.
_TRIED, _NEAR = 12, 64
_NUMBERS = frozenset({float, int, np.float64})
_NOTHING: tuple[tuple[()], None] = (), None
# Producers of variables from elsewhere: this number and lower ones, which are at no distance that
# entries may have.
OUTSIDE = -(1 << 40)
# Producers of operands that are not variables.
PLAIN = np.iinfo(np.int64).min


def variables_in(*things: object) -> Iterator[Operand]:
    """Yield the variables in nested tuples, lists and dicts."""
    for x in things:
        if type(x) in VARIABLES:
            yield x
        elif isinstance(x, (tuple, list)):
            yield from variables_in(*x)
        elif isinstance(x, dict):
            yield from variables_in(*x.values())


def setting_key(x: Operand) -> Hashable:
    """Return a key that is equal for settings that are the same."""
    kind = type(x)
    if isinstance(x, float):
        return kind, float(x).hex()  # 0.0 equals -0.0
    if kind in (tuple, list):
        return kind, *map(setting_key, x)
    if kind is dict:
        return tuple((name, setting_key(item)) for name, item in x.items())
    if kind is np.ndarray and x.dtype != object:
        return x.shape, x.dtype, x.tobytes()
    if kind is itemgetter or kind is methodcaller:
        return setting_key(x.__reduce__())
    if kind is slice:
        return kind, setting_key((x.start, x.stop, x.step))
    if kind is partial:
        return x.func, setting_key(x.args), setting_key(x.keywords)
    try:
        hash(x)
    except TypeError:
        return id(x)
    return kind, x


class Stretch(NamedTuple):
    """Entries that repeat: `trips` times `period` entries from `start` on."""

    start: int
    period: int
    trips: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.trips


class Periods:
    """The entries of a recording as numbers.

    Attributes
    ----------
    entries : list
    operands : list of sequence
        For each entry its operands; empty for an entry that no loop can have.
    codes : ndarray
        The same number for matching entries; negative for one that no loop can have.
    fine : ndarray
        The same number for matching entries that read results from as long before.
    producer : ndarray
        For each operand: the number of the entry that makes it, a negative number for a variable
        from elsewhere, `PLAIN` for other data. A view has its root's.
    part : ndarray
        For each operand: which part of a variable it is.
    searches : list of int
        How often iterations of several kinds were looked for, in all orders.
    item : dict
        By the id of a variable: which of several results of an entry it is.
    last_use : ndarray
        The last entry that reads a result of each entry; the number of entries for those returned.
    """

    def __init__(self, entries: Sequence[Entry], results: Sequence[object]) -> None:
        self.entries, n = list(entries), len(entries)
        self.operands: list[Sequence[Operand]] = []
        self.item: dict[int, int] = {}
        self.searches = [0]
        self._layouts: dict[Rule, Operands | None] = {}
        self._made_by: dict[int, int] = {}
        # The number 0 means no part of a variable.
        self._known: dict[Hashable, int] = {None: 0}
        self._view_parts: dict[int, int] = {}
        # For each variable that an entry reads: the entry, its index among the operands, or -1,
        # what makes it, and which part it is.
        self._read: list[tuple[int, int, int, int]] = []
        self.codes = np.array([self._code(i, *entry) for i, entry in enumerate(self.entries)])
        rows, columns, producers, parts = np.array(self._read).reshape(-1, 4).T
        shape = n, max(1, *map(len, self.operands))
        self.producer, self.part = np.full(shape, PLAIN), np.zeros(shape, np.int64)
        self.last_use = np.full(n, -1)
        inside = columns >= 0
        at = rows[inside], columns[inside]
        self.producer[at], self.part[at] = producers[inside], parts[inside]
        made_here = producers >= 0
        np.maximum.at(self.last_use, producers[made_here], rows[made_here])
        for x in variables_in(results):
            k = self._made_by.get(id(root_of(x)), -1)
            if k >= 0:
                self.last_use[k] = n
        self.compare()

    def compare(self) -> None:
        """Number the entries by what they read."""
        self._distance = np.arange(len(self.entries))[:, None] - self.producer
        self._is_plain = self.producer == PLAIN
        near = np.where(self.producer < 0, _NEAR, np.minimum(self._distance, _NEAR))
        self.fine = self.codes.copy()
        for column in near.T:
            self.fine = self.fine * 1_000_003 + column

    def reordered(self, low: int, order: np.ndarray) -> Periods:
        """Return the same with the entries of a range in another order, which can be written."""
        at = np.arange(len(self.entries))
        at[low : low + len(order)] = low + order
        result = copy(self)
        result.entries = [self.entries[i] for i in at.tolist()]
        result.operands = [self.operands[i] for i in at.tolist()]
        place, producer, last = np.argsort(at), self.producer[at], self.last_use[at]
        result.producer = np.where(producer < 0, producer, place[np.maximum(producer, 0)])
        # The number of entries marks those returned.
        result.last_use = np.where(last < 0, last, np.append(place, len(at))[last])
        result.codes, result.part = self.codes[at], self.part[at]
        result.compare()
        return result

    def _token(self, key: Hashable) -> int:
        return self._known.setdefault(key, len(self._known))

    def _code(self, i: int, rule: Rule, result: object, x: object, y: object) -> int:
        """Return a number that is the same for matching entries, and negative for an entry that no
        loop can have.
        """
        if type(rule.op) is not Elementwise or type(result) is not Var or rule.op.arity > 2:
            return self._code_of_any(i, rule, result, x, y)
        # Most entries of long recordings are of this kind, so it has a fast path.
        operands, made_by = (x, y)[: rule.op.arity], self._made_by
        key: list[Hashable] = [rule]
        for j, operand in enumerate(operands):
            if type(operand) is Var:
                number = made_by.get(id(operand))
                if number is None:
                    number = made_by[id(operand)] = OUTSIDE - len(made_by)
                self._read.append((i, j, number, 0))
                key.append(self.item.get(id(operand)))
            elif type(operand) in _NUMBERS:
                key.append("number")
            else:
                return self._code_of_any(i, rule, result, x, y)
        self.operands.append(operands)
        made_by[id(result)] = i
        return self._token(tuple(key))

    def _code_of_any(self, i: int, rule: Rule, result: object, x: object, y: object) -> int:
        try:
            layout = self._layouts[rule]
        except KeyError:
            layout = self._layouts[rule] = operands_of(rule)
        operands, settings = _NOTHING if layout is None else layout.split(rule, x, y)
        if layout is None or len(operands) > _MOST_OPERANDS:
            self.operands.append(())
            for operand in variables_in(x, y):
                self._note(i, -1, operand, 0)
            self._note_results(i, result)
            return -1 - i
        self.operands.append(operands)
        place = 0
        if layout.takes_part:
            place, settings = self._token(("place", type(settings), setting_key(settings))), None
        key: list[Hashable] = [rule]
        for j, operand in enumerate(operands):
            kind = type(operand)
            if kind in VARIABLES:
                key.append(self._note(i, j, operand, place))
            elif kind in _NUMBERS:
                key.append("number")
            elif kind is np.ndarray and operand.ndim:
                key.append((operand.dtype, operand.shape))
            else:
                key.append(setting_key(operand))
        if settings is not None:
            key.append(setting_key(settings))
        key.append(self._note_results(i, result))
        return self._token(tuple(key))

    def _note_results(self, i: int, result: Operand) -> Hashable:
        """Note which entry makes a result, and return its shape, or shapes."""
        if result is ALWAYS:
            return None
        if isinstance(result, Outputs):
            self._made_by.update((id(x), i) for x in result)
            self.item.update((id(x), number) for number, x in enumerate(result))
            return tuple([x.shape for x in result])
        self._made_by[id(result)] = i
        return result.shape  # type: ignore[no-any-return]

    def _note(self, i: int, j: int, x: Variable, place: int) -> Hashable:
        """Note what an operand is, and return what must be the same for matching entries."""
        part, root = place, x
        if isinstance(x, View):
            root = x.root
            values = self._view_parts.get(id(x))
            if values is None:
                values = self._view_parts[id(x)] = self._part_of(x)
            part = self._token((values, place)) if place else values
        made_by = self._made_by.get(id(root))
        if made_by is None:
            made_by = self._made_by[id(root)] = OUTSIDE - len(self._made_by)
        self._read.append((i, j, made_by, part))
        return (x.shape, self.item.get(id(root))) if x.shape or self.item else ()

    def _part_of(self, view: object) -> int:
        hows = []
        while isinstance(view, View):
            hows.append(setting_key(view.how))
            view = view.parent
        return self._token(("view", *hows))

    # --- stretches ---

    def stretches(self, low: int, high: int) -> Iterator[Stretch]:
        """Yield stretches in a range of entries, the longest first."""
        result = []
        for period in self._guesses(low, high):
            agree = np.concatenate([[False], self._agree(low, high, period), [False]])
            edges = np.flatnonzero(agree[1:] != agree[:-1]).reshape(-1, 2)
            lengths = edges[:, 1] - edges[:, 0]
            for i in np.flatnonzero(lengths >= (LEAST - 1) * period).tolist():
                result.append((-int(lengths[i]), period, low + int(edges[i, 0])))
        for less, period, start in sorted(result):
            stretch = self._uniform(self._phased(start, period, start + period - less))
            if stretch is not None:
                yield stretch

    def _guesses(self, low: int, high: int) -> list[int]:
        """Return the most frequent distances between matching entries."""
        fine = self.fine[low:high]
        order = np.argsort(fine, kind="stable")
        same = fine[order][1:] == fine[order][:-1]
        distances, counts = np.unique(np.diff(order)[same], return_counts=True)
        likely = (counts >= LEAST - 1) & (distances <= (high - low) // LEAST)
        best = np.argsort(-counts[likely], kind="stable")[:_TRIED]
        return distances[likely][best].tolist()  # type: ignore[no-any-return]

    def _agree(self, low: int, high: int, period: int) -> np.ndarray:
        """Return for each entry whether the one a period later corresponds to it."""
        now, then = slice(low, high - period), slice(low + period, high)
        distance, result = self._distance, self.producer
        same = result[now] == result[then]
        same |= (distance[now] == distance[then]) & (self.part[now] == self.part[then])
        far = 4 * period
        same |= (
            (np.minimum(distance[now], distance[then]) > far)
            & ~self._is_plain[now]
            & ~self._is_plain[then]
        )
        alike = (self.codes[now] == self.codes[then]) & (self.codes[now] >= 0)
        return alike & same.all(1)  # type: ignore[no-any-return]

    def _phased(self, start: int, period: int, end: int) -> Stretch:
        """Begin the iterations where the fewest values are carried from one to the next."""
        crossed = np.zeros(period, np.int64)
        last: dict[Hashable, tuple[int, int, int]] = {}
        first = start + (end - start) // period // 2 * period
        for i in range(first, first + period):
            for j, x in enumerate(self.operands[i]):
                k, distance = int(self.producer[i, j]), int(self._distance[i, j])
                if k >= start and k != self.producer[i - period, j]:
                    column, root = (k - start) % period, root_of(x)
                    key = column, self.item.get(id(root))
                    last[key] = max(last.get(key, (0, 0, 0)), (distance, root.size, column))
        for distance, size, column in last.values():
            # The boundaries between the maker of a value and its last reader.
            periods, remainder = divmod(distance, period)
            crossed += periods * size
            stop = column + 1 + remainder
            crossed[column + 1 : stop] += size
            crossed[: max(stop - period, 0)] += size
        shift = int(crossed.argmin())
        return Stretch(start + shift, period, (end - start - shift) // period)

    def _uniform(self, stretch: Stretch) -> Stretch | None:
        """Return the part of a stretch in which each operand is of one kind in all iterations: the
        same distance away, or from before the stretch.
        """
        start, period, trips = stretch
        for _ in range(_TRIED):
            if trips < LEAST:
                break
            result, distance, part = (
                x[start : start + period * trips].reshape(trips, period, -1)
                for x in (self.producer, self._distance, self.part)
            )
            # A result of the first iteration, which this one and all later ones read.
            fixed = (result == result[0]).all(0) & (result[0] >= start)
            moves = (distance != distance[-1]) | (part != part[-1])
            changes = np.flatnonzero((moves & ~(result < start).all(0)).any((1, 2)))
            if fixed.any():
                start, trips = start + period, trips - 1
            elif not len(changes):
                return Stretch(start, period, trips)
            elif trips - changes[-1] > LEAST:
                start, trips = start + (int(changes[-1]) + 1) * period, trips - int(changes[-1]) - 1
            else:
                trips = int(changes[-1]) + 1
        return None
