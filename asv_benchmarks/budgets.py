"""The bounds on speed that the project has set itself, and whether a run meets them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import environment  # noqa: F401 - one thread, before NumPy is imported
from timing import Timing, duration, mean_ratio
from workloads.workload import Workload

from varmat.programs.run import has_native

# At most so many of the rows that break a bound are named.
NAMED = 6
# A model is tiny if it has at most so many unknowns and its value alone, in plain NumPy, takes less
# than so many seconds.
FEW, TINY = 200, 50e-6


@dataclass(frozen=True)
class Budget:
    """A bound, its figure, and whether it is met: None if this run has no such figure.

    Figures without a bound have an infinite limit.
    """

    number: int
    title: str
    figure: float
    limit: float
    met: bool | None
    note: str = ""

    def __str__(self) -> str:
        verdict = {True: "met", False: "missed", None: "not measured"}[self.met]
        figure = "" if self.met is None else f"{self.figure:.4g}"
        note = f"\n           {self.note}" if self.note else ""
        if self.limit == math.inf:
            return (
                f"  {self.number}  {'' if self.met else verdict:<13}{figure:>8} (no limit)  "
                f"{self.title}{note}"
            )
        return (
            f"  {self.number}  {verdict:<13}{figure:>8} (limit {self.limit:g})  {self.title}{note}"
        )


@dataclass(frozen=True)
class Row:
    """A workload at one size: the number of elements of its variables, the seconds of each
    implementation, and the seconds of first calls.
    """

    workload: Workload
    size: int
    unknowns: int
    times: dict[str, Timing]
    first_seconds: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.workload.name} [{self.size}]"

    @property
    def base(self) -> str:
        """The implementation to which ratios refer."""
        return "by hand" if "by hand" in self.times else "varmat"

    def has(self, *names: str) -> bool:
        return all(name in self.times for name in names)

    def ratio(self, name: str, to: str) -> Timing:
        return self.times[name].over(self.times[to])


Rows = list[Row]
Choice = Callable[[Row], bool]


def ratios(
    rows: Rows, name: str, to: str, choice: Choice = lambda _: True
) -> list[tuple[str, float]]:
    """Return the ratios of `name` to `to` for the rows that have both."""
    return [
        (row.title, float(row.ratio(name, to))) for row in rows if row.has(name, to) and choice(row)
    ]


def named(found: Iterable[tuple[str, float]]) -> str:
    found = list(found)
    rest = f", and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return ", ".join(f"{title} {ratio:.3g}" for title, ratio in found[:NAMED]) + rest


def each(
    number: int, title: str, found: list[tuple[str, float]], limit: float, most: bool
) -> Budget:
    """Make a budget: every ratio is at most, or at least, the limit. The figure is the worst
    ratio.
    """
    if not found:
        return Budget(number, title, float("nan"), limit, None)
    worst_first = sorted(found, key=lambda pair: pair[1], reverse=most)
    missed = [pair for pair in worst_first if (pair[1] > limit if most else pair[1] < limit)]
    note = (
        f"{len(missed)} of {len(found)} missed: {named(missed)}"
        if missed
        else f"all {len(found)}; closest: {worst_first[0][0]}"
    )
    return Budget(number, title, worst_first[0][1], limit, not missed, note)


def on_average(
    number: int, title: str, found: list[tuple[str, float]], limit: float, most: bool
) -> Budget:
    """Make a budget: the geometric mean of the ratios is at most, or at least, the limit."""
    if not found:
        return Budget(number, title, float("nan"), limit, None)
    mean = mean_ratio(ratio for _, ratio in found)
    worst = sorted(found, key=lambda pair: pair[1], reverse=most)[:NAMED]
    return Budget(
        number,
        title,
        mean,
        limit,
        mean <= limit if most else mean >= limit,
        f"of {len(found)}; worst: {named(worst)}",
    )


def in_family(*names: str) -> Choice:
    return lambda row: row.workload.family in names


def limit_of(row: Row) -> float | None:
    """Return the limit at the size of this row, as a multiple of the time by hand, or None."""
    reached = [size for size in row.workload.limits if row.size >= size]
    return row.workload.limits[max(reached)] if reached else None


def by_hand(rows: Rows, ours: str) -> list[Budget]:
    grouped: dict[float, Rows] = {}
    for row in rows:
        limit = limit_of(row)
        if limit is not None:
            grouped.setdefault(limit, []).append(row)
    title = "{} / by hand at most {:g}, N >= 10^5, K >= 256"
    return [
        each(1, title.format(ours, limit), ratios(group, ours, "by hand"), limit, most=True)
        for limit, group in sorted(grouped.items())
    ]


def eager_peers(rows: Rows, ours: str) -> list[Budget]:
    found = []
    for peer, average in (("torch", 3.0), ("autograd", 8.0)):
        calls = ratios(rows, peer, ours, lambda row: row.workload.dispatch)
        models = ratios(rows, peer, ours, in_family("models"))
        found += [
            each(
                2,
                f"{peer} / {ours} at least 1, everywhere",
                ratios(rows, peer, ours),
                1.0,
                most=False,
            ),
            on_average(
                2,
                f"{peer} / {ours} at least {average:g}, mean of models",
                models,
                average,
                most=False,
            ),
        ]
        # Models of many small operations are usually recorded.
        if ours == "recorded":
            found.append(
                each(2, f"{peer} / {ours} at least 5 where calls dominate", calls, 5.0, most=False)
            )
    return found


def is_tiny(row: Row) -> bool:
    small = row.unknowns <= FEW and row.has("plain") and row.times["plain"] < TINY
    return small and row.workload.family in ("models", "posteriors")


def is_large_glm(row: Row) -> bool:
    return row.workload.family == "densities" and "glm" in row.workload.name and row.size == 100_000


def is_large_matrix(row: Row) -> bool:
    return row.workload.family == "matrices" and row.size >= 128


def compiled_peer(rows: Rows, ours: str) -> list[Budget]:
    posteriors, tiny = (
        ratios(rows, ours, "jax", choice) for choice in (in_family("posteriors"), is_tiny)
    )
    glms, matrices = (
        ratios(rows, "jax", ours, choice) for choice in (is_large_glm, is_large_matrix)
    )
    found = [
        on_average(3, f"{ours} / jax at most 1.3, mean of posteriors", posteriors, 1.3, most=True)
    ]
    if ours == "recorded":
        found.append(
            each(
                3,
                f"{ours} / jax at most 3, models whose value takes less than {duration(TINY)}",
                tiny,
                3.0,
                most=True,
            )
        )
    return [
        *found,
        each(3, f"jax / {ours} at least 1.5, linear models of 10^5 x 50", glms, 1.5, most=False),
        each(3, f"jax / {ours} at least 1, matrices of K >= 128", matrices, 1.0, most=False),
    ]


def compiled_models(rows: Rows) -> list[Budget]:
    """Compare recordings with Stan, which compiles each model. There is one bound for a start and
    one as the final aim.
    """
    found = ratios(rows, "recorded", "stan", in_family("posteriors")) if has_native() else []
    return [
        on_average(
            8,
            f"recorded, native runner / stan at most {limit:g}, mean of posteriors",
            found,
            limit,
            most=True,
        )
        for limit in (1.0, 0.5)
    ]


def scalar_variables(rows: Rows) -> list[Budget]:
    def product(row: Row) -> bool:
        return row.workload.family == "matrices" and "@" in row.workload.name and row.size >= 64

    def other(row: Row) -> bool:
        return row.size >= 64 and not product(row)

    def small(row: Row) -> bool:
        return row.size == 2

    parts = (
        ("N = 1024, K = 64", other, 50.0),
        ("matrix products, K = 64", product, 100.0),
        ("size 2", small, 1.0),
    )
    return [
        each(
            4,
            f"matvar / varmat at least {limit:g}, {title}",
            ratios(rows, "matvar", "varmat", choice),
            limit,
            most=False,
        )
        for title, choice, limit in parts
    ]


def of_rows(rows: Rows) -> list[Budget]:
    """Return the budgets about times of workloads. The other budgets are in the modules of the
    families.
    """
    ways = [ours for ours in ("varmat", "recorded") if any(row.has(ours) for row in rows)]
    parts = (by_hand, eager_peers, compiled_peer)
    return [budget for part in parts for ours in ways for budget in part(rows, ours)] + [
        *scalar_variables(rows),
        *compiled_models(rows),
    ]
