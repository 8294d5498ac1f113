"""Iterations of several kinds in a recording: loops whose iterations branch on data.

Entries on numbers are split where one of them, the anchor, repeats. Iterations are of one kind if
their entries match and read each other's results in the same positions. Results of earlier
iterations are read from *cells*: an iteration that makes a value for a cell moves the earlier value
to the next cell. So each iteration finds a value in the same cell, however many iterations ago it
was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.core.tape import ALWAYS
from varmat.core.variables import VARIABLES, Var, root_of
from varmat.programs.record.periods import LEAST, PLAIN, Periods, Stretch
from varmat.programs.record.tape_programs import operands_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from varmat.typing import Operand

# Entries from which a range is searched, because writing fewer one by one takes less time.
LONG = 1000
# Kinds and cells that a loop has at most, and the entries of an iteration.
_MOST_KINDS, _MOST_CELLS, _MOST_ENTRIES = 32, 64, 1 << 12
# Entries in which anchors are compared, those that are compared in all of a range, and how often
# kinds are split.
_SAMPLE, _TRIED, _SPLITS = 4096, 4, 8
# How often a recording is searched.
_SEARCHES = 16
# How many iterations, for each number they carry, are worth an entry that is written.
_RUNS = 200
# A loop has at least this many times as many entries as its bodies, and this part of the range,
# because the rest is searched again.
_TIMES, _PART = 8, 16
# A kind that is found less often does not begin or end a loop.
_FREQUENT = 4
# Entry of a kind, and the number of its operand.
Place = tuple[int, int, int]
# The values that are written to cells, as bodies' entries, and how many newer ones there are.
CellKey = tuple[frozenset[int], int]


class First(NamedTuple):
    """The first value of a cell: what makes it, and the variable."""

    made_by: Hashable
    variable: Operand


def moved_ahead(periods: Periods, low: int, high: int) -> tuple[Periods, int]:
    """Move entries of arrays that only depend on variables from outside, and all that these read,
    to the beginning of a range; return also how many these are.
    """
    is_ahead = ~_of_numbers(periods, low, high) & (periods.codes[low:high] >= 0)
    if high - low < LONG or not is_ahead.any():
        return periods, 0
    result = [[x - low for x in row if x >= low] for row in periods.producer[low:high].tolist()]
    is_outside: list[bool] = []
    for code, row in zip(periods.codes[low:high].tolist(), result, strict=True):
        is_outside.append(code >= 0 and all(is_outside[x] for x in row))
    is_ahead &= is_outside
    for i in range(high - low - 1, -1, -1):
        if is_ahead[i]:
            is_ahead[result[i]] = True
    count = int(is_ahead.sum())
    if is_ahead[:count].all():
        return periods, 0
    return periods.reordered(low, np.argsort(~is_ahead, kind="stable")), count


def _of_numbers(periods: Periods, low: int, high: int) -> np.ndarray:
    """Return for each entry whether a loop over numbers can have it."""
    codes, first = np.unique(periods.codes[low:high], return_index=True)
    good = [
        c for c, i in zip(codes.tolist(), first.tolist(), strict=True)
        if c >= 0 and _is_of_numbers(periods, low + i)
    ]  # fmt: skip
    return np.isin(periods.codes[low:high], good)


def _is_of_numbers(periods: Periods, i: int) -> bool:
    rule, result, *_ = periods.entries[i]
    layout = operands_of(rule)
    if layout is None or not (result is ALWAYS or type(result) is Var):
        return False
    return layout.takes_part or not any(
        x.shape if type(x) in VARIABLES else np.ndim(x) for x in periods.operands[i]
    )


def _shapes(periods: Periods, bounds: np.ndarray) -> np.ndarray:
    """Return equal numbers for segments that may be of one kind."""
    low, high = bounds[[0, -1]]
    lengths = np.diff(bounds)
    first = np.repeat(bounds[:-1], lengths)[:, None]
    i = np.arange(low, high)[:, None]
    result, part = periods.producer[low:high], periods.part[low:high]
    where = np.where(result >= first, i - result + (part << 20), np.where(result == PLAIN, -1, 0))
    codes = periods.codes[low:high].copy()
    for column in where.T:
        codes = codes * 1_000_003 + column
    weights = np.random.default_rng(0).integers(1 << 62, size=_MOST_ENTRIES)
    return np.add.reduceat(codes * weights[(i - first)[:, 0] % _MOST_ENTRIES], bounds[:-1] - low)


class Run(NamedTuple):
    """Segments that follow each other.

    Attributes
    ----------
    bounds : ndarray
        The first entry of each, and the end.
    kinds : ndarray
    cost : float
        About how many entries are written if this is a loop, and what running it is worth of them.
    """

    bounds: np.ndarray
    kinds: np.ndarray
    cost: float

    @property
    def entries(self) -> int:
        return int(self.bounds[-1] - self.bounds[0])

    @property
    def bodies(self) -> int:
        """The entries of one segment of each kind."""
        _, examples = np.unique(self.kinds, return_index=True)
        return int(np.diff(self.bounds)[examples].sum())

    def trimmed(self) -> Run:
        """Leave out segments of rare kinds at both ends."""
        often = np.flatnonzero(np.bincount(self.kinds)[self.kinds] >= _FREQUENT)
        if not len(often):
            return Run(self.bounds[:1], self.kinds[:0], 0)
        first, last = int(often[0]), int(often[-1]) + 1
        return Run(self.bounds[first : last + 1], _numbered(self.kinds[first:last]), self.cost)


def _numbered(kinds: np.ndarray) -> np.ndarray:
    """Number kinds from 0 on, the most frequent first."""
    _, inverse, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    ranks = np.empty(len(counts), np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return ranks[inverse.reshape(-1)]


def _longest(periods: Periods, bad: np.ndarray, low: int, bounds: np.ndarray) -> Run:
    """Find the longest run of segments of the most frequent kinds."""
    lengths = np.diff(bounds)
    _, inverse = np.unique(_shapes(periods, bounds), return_inverse=True)
    inverse = inverse.reshape(-1)
    is_good = (bad[bounds[1:] - low] == bad[bounds[:-1] - low]) & (lengths < _MOST_ENTRIES)
    covered = np.bincount(inverse, lengths * is_good)
    often = np.argsort(-covered, kind="stable")[:_MOST_KINDS]
    is_good &= np.isin(inverse, often)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_good, [0]]))).reshape(-1, 2)
    if not len(edges):
        return Run(bounds[:1], inverse[:0], len(bad))
    first, last = edges[np.argmax(bounds[edges[:, 1]] - bounds[edges[:, 0]])]
    run = Run(bounds[first : last + 1], _numbered(inverse[first:last]), 0)
    running = len(run.kinds) * (2 + _handed_on(periods, run)) / _RUNS
    return Run(run.bounds, run.kinds, len(bad) - run.entries + run.bodies + running)


def _handed_on(periods: Periods, run: Run) -> int:
    """Estimate how many entries of the bodies make what later segments read."""
    low, high = run.bounds[[0, -1]]
    lengths = np.diff(run.bounds)
    first = np.repeat(run.bounds[:-1], lengths)
    result = periods.producer[low:high]
    read = np.unique(result[(result < first[:, None]) & (result >= low)]) - low
    offsets = np.arange(high - low) - (first - low)
    return len(np.unique(np.repeat(run.kinds, lengths)[read] * _MOST_ENTRIES + offsets[read]))


def runs(periods: Periods, low: int, high: int) -> Iterator[Run]:
    """Yield runs of segments of few kinds, first those that write the fewest entries."""
    bad = np.concatenate([[0], np.cumsum(~_of_numbers(periods, low, high))])
    start = low + max(0, high - low - _SAMPLE) // 2
    stop = min(start + _SAMPLE, high)
    tried = []
    for number, tokens in enumerate((periods.codes, periods.fine)):
        values, counts = np.unique(tokens[start:stop], return_counts=True)
        for token in values[counts >= LEAST].tolist():
            for shift in (0, 1):
                run = _cut(
                    periods, bad[start - low : stop - low + 1], start, stop, tokens == token, shift
                )
                tried.append((run.cost, number, token, shift))
    result = []
    for _, number, token, shift in sorted(tried)[:_TRIED]:
        tokens = (periods.codes, periods.fine)[number]
        result.append(_cut(periods, bad, low, high, tokens == token, shift))
    yield from sorted(result, key=lambda run: run.cost)[:2]


def _cut(
    periods: Periods, bad: np.ndarray, low: int, high: int, is_anchor: np.ndarray, shift: int
) -> Run:
    """Find the longest run of segments of a range that begin with an anchor, or after one."""
    bounds = np.flatnonzero(is_anchor[low : high - shift]) + low + shift
    bounds = np.unique(np.concatenate([[low], bounds, [high]]))
    return _longest(periods, bad, low, bounds)


class Kinds:
    """Segments as iterations of a loop: what each kind reads.

    Parameters
    ----------
    periods : Periods
    run : Run

    Attributes
    ----------
    members : list of ndarray
        For each kind its segments.
    rows : list of ndarray
        For each kind its entries, one row for each segment.
    cells : dict of Place to CellKey
        For each operand that an earlier iteration makes.
    first : dict of CellKey to First
    """

    def __init__(self, periods: Periods, run: Run) -> None:
        self.periods, self.bounds, self.kinds = periods, run.bounds, run.kinds
        self.start, self.end = int(run.bounds[0]), int(run.bounds[-1])
        lengths = np.diff(self.bounds)
        self.members = [np.flatnonzero(self.kinds == k) for k in range(self.kinds.max() + 1)]
        self.lengths = [int(lengths[member[0]]) for member in self.members]
        self.rows = [
            self.bounds[member][:, None] + np.arange(n)
            for member, n in zip(self.members, self.lengths, strict=True)
        ]
        # The entries of the bodies have numbers; these are the first numbers of the bodies.
        self.base = np.cumsum([0, *self.lengths])
        offsets = np.arange(self.end - self.start) - np.repeat(
            self.bounds[:-1] - self.start, lengths
        )
        self.entry_of = np.repeat(self.base[self.kinds], lengths) + offsets
        self.cells: dict[Place, CellKey] = {}
        self.first: dict[CellKey, First] = {}
        self._writes: dict[frozenset[int], np.ndarray] = {}

    def has(self, stretch: Stretch) -> bool:
        """Return whether a stretch is elsewhere, or its kinds of iterations also are elsewhere."""
        if stretch.end <= self.start or self.end <= stretch.start:
            return True
        is_inside = (self.bounds[:-1] >= stretch.start) & (self.bounds[1:] <= stretch.end)
        outside = np.isin(self.kinds[~is_inside], self.kinds[is_inside])
        return bool(4 * outside.sum() >= is_inside.sum())

    def is_alike(self) -> bool:
        """Return whether the segments of each kind match; equal hashes do not ensure it."""
        return all(
            len(np.unique(x)) == 1 if x.ndim == 1 else bool((x == x[0]).all())
            for member, rows in zip(self.members, self.rows, strict=True)
            for x in (np.diff(self.bounds)[member], self.periods.codes[rows])
        )

    def writes(self, result: frozenset[int]) -> np.ndarray:
        """Return the entries that write to a cell, by the numbers in the bodies."""
        if result not in self._writes:
            self._writes[result] = self.start + np.flatnonzero(np.isin(self.entry_of, [*result]))
        return self._writes[result]

    def _carried(self) -> dict[Place, np.ndarray]:
        """Return the operands that earlier segments make in some iterations, and their entries."""
        result = {}
        for k, rows in enumerate(self.rows):
            output = self.periods.producer[rows]
            for o, j in np.argwhere(
                ((output >= self.start) & (output < rows[:, :1, None])).any(0)
            ).tolist():
                result[k, o, j] = output[:, o, j]
        return result

    def split(self) -> np.ndarray | None:
        """Assign a cell to each operand that earlier iterations make; where that is impossible,
        return kinds that may do better.
        """
        carried = self._carried()
        results_of = {
            place: frozenset(
                np.unique(self.entry_of[output[output >= self.start] - self.start]).tolist()
            )
            for place, output in carried.items()
        }
        groups = _united(results_of.values())
        labels: dict[int, list[np.ndarray]] = {}
        for place, result in carried.items():
            for group in (groups[min(results_of[place])], results_of[place]):
                depth, label = self._depths(place, result, group)
                if (label == depth).all():
                    self._enter(place, result, (group, depth))
                    break
            else:
                labels.setdefault(place[0], []).append(label)
        if not labels:
            return None
        kinds = self.kinds.copy()
        for k, columns in labels.items():
            _, inverse = np.unique(np.stack(columns), axis=1, return_inverse=True)
            kinds[self.members[k]] = k + len(self.members) * inverse.reshape(-1)
        return _numbered(kinds)

    def _depths(
        self, place: Place, output: np.ndarray, group: frozenset[int]
    ) -> tuple[int, np.ndarray]:
        """Count the values newer than the one read: mostly, and in each iteration."""
        writes, rows = self.writes(group), self.rows[place[0]]
        before = np.searchsorted(writes, rows[:, 0])
        is_inside = output >= self.start
        label = before - 1 - np.searchsorted(writes, output)
        depth = int(np.bincount(label[is_inside]).argmax())
        result = dict(self.first)
        for t in np.flatnonzero(~is_inside).tolist():
            # After this many writes a cell holds the first value of the cell as many before it.
            key, values = (group, depth - int(before[t])), self._made(place, t)
            agrees = key[1] >= 0 and result.setdefault(key, values).made_by == values.made_by
            label[t] = depth if agrees else -1
        return depth, label

    def _enter(self, place: Place, result: np.ndarray, cell: CellKey) -> None:
        self.cells[place] = cell
        writes, rows = self.writes(cell[0]), self.rows[place[0]]
        for t in np.flatnonzero(result < self.start).tolist():
            before = int(np.searchsorted(writes, rows[t, 0]))
            self.first.setdefault((cell[0], cell[1] - before), self._made(place, t))

    def _made(self, place: Place, t: int) -> First:
        k, o, j = place
        i = int(self.rows[k][t, o])
        x = self.periods.operands[i][j]
        item = self.periods.item.get(id(root_of(x)), 0)
        result, part = int(self.periods.producer[i, j]), int(self.periods.part[i, j])
        return First((result, part, item), x)

    def is_plain(self) -> bool:
        """Return whether the carries are results of entries, and not too many."""
        depths: dict[frozenset[int], int] = {}
        for group, depth in self.cells.values():
            depths[group] = max(depths.get(group, 0), depth + 1)
        is_part = any(self.periods.part[self.rows[k][:, o], j].any() for k, o, j in self.cells)
        return sum(depths.values()) <= _MOST_CELLS and not is_part


def _united(sets: Iterable[frozenset[int]]) -> dict[int, frozenset[int]]:
    """Unite sets that have elements in common: the whole of each element."""
    full: dict[int, frozenset[int]] = {}
    for item in sets:
        united = item.union(*(full[x] for x in item if x in full))
        full.update(dict.fromkeys(united, united))
    return full


def kinds_in(periods: Periods, low: int, high: int) -> Iterator[Kinds]:
    """Yield loops whose iterations are of several kinds in a range of entries."""
    if high - low < LONG or periods.searches[0] >= _SEARCHES:
        return
    periods.searches[0] += 1
    for run in runs(periods, low, high):
        for _ in range(_SPLITS):
            run = run.trimmed()
            least = max(LONG // 2, (high - low) // _PART, _TIMES * run.bodies)
            if not 0 < least <= run.entries or run.kinds.max() >= _MOST_KINDS:
                break
            kinds = Kinds(periods, run)
            if not kinds.is_alike():
                break
            split = kinds.split()
            if split is None:
                if kinds.is_plain():
                    yield kinds
                break
            run = Run(run.bounds, split, run.cost)
