"""`expect_ad`: every route to the derivatives of a function, compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, repeat
from math import inf
from typing import Any

import numpy as np

from varmat.testing import coverage, routes
from varmat.testing.compare import Comparison, Report, Tolerances, at, difference
from varmat.testing.differences import OutsideDomainError, conclusive
from varmat.testing.refusals import (
    FORWARD,
    NUMPY,
    REVERSE,
    attempt,
    plain_values,
    variable_mixtures,
)
from varmat.typing import Function, Index, Operand, Plain

__all__ = ["expect_ad"]

Mixture = dict[int, str]

# Directions of forward mode at once.
DIRECTIONS = 3
# Whether machine code is made of the Hessian too, if no argument says so: a test suite sets it.
COMPILES_HESSIAN: Iterator[bool] = repeat(True)
# Smaller derivatives than this may have lost their digits to underflow.
TINY = 1e-200
# In place of an argument that is not finite.
SUBSTITUTE = 0.75
DIFFERENCE = "finite difference of the value"
HESSIAN = "Hessian times vector"
RECORDED = "a recording made elsewhere"
OTHER_POINT = "the point where comparisons go the other way"
HESSIAN_DIFFERENCE = "finite difference of the reverse gradient"


def expect_ad(
    f: Function,
    *args: Operand,
    tolerances: Tolerances | None = None,
    compile_hessian: bool | None = None,
) -> Report:
    """Demand that all routes to the derivatives of a function agree at a point.

    With all arguments variable, all but one, and each alone: the value is plain NumPy's; the
    gradient of a weighted sum of the results agrees with finite differences, and with the gradient
    where all arguments are variables; a second reverse pass gives the same.
    Where all are variables, and for the other mixtures: forward mode agrees with the gradient; a
    recording gives the same value and gradient; so do arguments in other memory layouts; the
    Hessian is a part of that where all are variables.
    Where all are variables: several directions at once agree with each alone; the Hessian is
    symmetric, and agrees with finite differences of the gradient; the recording gives the same at a
    point where comparisons go the other way; two uses of the arguments give the sum of their
    gradients; the recording gives the same as machine code, and one of the Hessian gives the same
    product, also as machine code if `compile_hessian`.
    Further: the same variable as two arguments, nothing changed that others hold
    (arguments, tangents, operands, results and their adjoints), nothing returned twice.
    Where plain NumPy raises, every route must raise likewise and leave nothing on the tape. Where
    something is not finite, finite differences are taken of the rest, and its derivatives must not
    suffer.

    Parameters
    ----------
    f : callable
        Takes the arguments; returns a scalar, an array or a tuple of them. It must not write into
        its arguments.
    *args : float, float array, or anything else
        The point. Floats and float arrays are differentiated, everything else (int, int arrays,
        None, ...) is static.
    tolerances : Tolerances, optional
    compile_hessian : bool, optional
        Whether the recorded Hessian is also compared as machine code, which takes long; true by
        default.

    Returns
    -------
    Report
        The worst relative difference of each comparison.

    Raises
    ------
    AssertionError
        If two routes disagree. It says which two, for which mixture of arguments, where, and by how
        much.
    AttributeError, NameError
        If plain NumPy raises them: that is a mistake in `f`, not a refusal.

    References
    ----------
    W. H. Press, S. A. Teukolsky, W. T. Vetterling and B. P. Flannery (2007), Numerical Recipes,
    third edition, Cambridge University Press, section 5.7.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import expect_ad
    >>> report = expect_ad(np.multiply, 2.0, np.array([1.0, -3.0]))
    >>> report.worst < 1e-12
    True
    """
    case = routes.Case(f, args)
    comparison = Comparison(f"expect_ad({case.name})")
    expected = plain_values(case, comparison)
    if expected is not None and case.active:
        compiles = next(COMPILES_HESSIAN) if compile_hessian is None else compile_hessian
        _Check(case, comparison, tolerances or Tolerances(), expected, compiles).run()
        coverage.note(f, args, **_by_column(comparison.errors))
    return comparison.report()


def _by_column(errors: dict[str, float]) -> dict[str, Any]:
    """Find the worst figures by column of the table of coverage, without finite differences."""
    columns, words = {"varmat": 0.0}, {"Hv": "hessian", FORWARD: "forward", RECORDED: "recorded"}
    for name, error in errors.items():
        if "finite difference" not in name:
            column = next((column for word, column in words.items() if word in name), "varmat")
            columns[column] = max(error, columns.get(column, 0.0))
    return columns


def floor_of(case: routes.Case, values: routes.ArrayList) -> float:
    """Return a scale not far below the values', on which derivatives are compared: where they
    cancel there is rounding.
    """
    largest = max(_largest(case.args[i]) for i in case.active)
    return 1e-3 * max(map(_largest, values), default=0.0) / max(1.0, largest)


@dataclass(eq=False)
class _Check:
    """The comparisons of `expect_ad` at a point where plain NumPy has a value."""

    case: routes.Case
    comparison: Comparison
    tolerances: Tolerances
    expected: routes.ArrayList
    compile_hessian: bool

    def __post_init__(self) -> None:
        case, expected = self.case, self.expected
        self.weights = routes.random_weights(expected)
        self.full: routes.Partials = {}
        self.estimates: tuple[routes.Partials, routes.Partials] | None = None
        self.finite = all(
            np.all(np.isfinite(x)) for x in (*expected, *(case.args[i] for i in case.active))
        )
        self.flipped = routes.flipped(case) if self.finite else None
        # The weights of the finite results.
        self.selected = [
            np.where(np.isfinite(x), w, 0.0) for x, w in zip(expected, self.weights, strict=True)
        ]
        self.differences = self.tolerances.finite_difference < inf
        self.floor = floor_of(case, expected)

    def run(self) -> None:
        mixtures = variable_mixtures(self.case)
        if self.differences:
            self.estimates = routes.difference_gradient(self.case, self.selected, self.finite)
        for mixture in mixtures:
            call = self.case.describe(mixture)
            gradient = self.reverse(mixture, call)
            self.full = self.full or gradient
            if self.finite:
                self.against_differences(mixture, call, gradient)
            else:
                self.beside_what_is_not_finite(mixture, call)
            self.same(
                "reverse mode with all arguments variable",
                call,
                gradient,
                {i: self.full[i] for i in mixture},
            )
            if self.is_whole(mixture):
                self.fan_out(mixture, call, gradient)
            if self.tolerances.forward < inf:
                self.forward(mixture, call, gradient)
                if self.tolerances.hessian < inf:
                    self.hessian(mixture, call, gradient)
            self.recorded(mixture, call, gradient)
        for i, j in combinations(self.case.active, 2):
            if np.shape(self.case.args[i]) == np.shape(self.case.args[j]):
                self.twice_the_same(i, j)
        if any(self.case.args[i].size > 1 for i in self.case.arrays):
            for layout in routes.LAYOUTS:
                self.layout(layout, mixtures)

    def is_whole(self, mixture: Mixture) -> bool:
        """Tell whether all arguments that may be variables are."""
        return len(mixture) == len(self.case.active)

    def attempt(
        self,
        route: str,
        call: str,
        function: Function,
        mixture: Mapping[int, object],
        *args: object,
        **kwargs: object,
    ) -> Any:
        return attempt(self.comparison, route, call, function, self.case, mixture, *args, **kwargs)

    def values(self, route: str, call: str, values: routes.ArrayList) -> None:
        pair = (f"value in {route}", NUMPY)
        if len(values) != len(self.expected):
            self.comparison.fail(
                pair, f"{call}: there are {len(values)} results against {len(self.expected)}"
            )
        for i, (a, b) in enumerate(zip(values, self.expected, strict=True)):
            self.comparison.close(
                pair, f"{call}: value {i}", a, b, self.tolerances.value, slack=1e-15
            )

    def same(
        self, route: str, call: str, gradient: routes.Partials, other: routes.Partials
    ) -> None:
        """Demand the same gradient but for rounding."""
        for i, g in other.items():
            what = f"{call}: the gradient with respect to argument {i}"
            self.comparison.close(
                (REVERSE, route), what, gradient[i], g, self.tolerances.rounding, self.floor
            )

    def reverse(self, mixture: Mixture, call: str) -> routes.Partials:
        _, values, (gradient, second) = self.attempt(
            REVERSE, call, routes.reverse, mixture, self.weights, watched=True
        )
        self.values(REVERSE, call, values)
        self.same("a second reverse pass", call, second, gradient)
        return gradient  # type: ignore[no-any-return]

    def against_differences(self, mixture: Mixture, call: str, gradient: routes.Partials) -> None:
        if self.estimates is None:
            return
        for i in mixture:
            estimate, error = (part[i] for part in self.estimates)
            what = f"{call}: the gradient with respect to argument {i}"
            # which may come of zero times infinity, of a result that does not count
            if not self.finite:
                estimate = np.where(np.isfinite(gradient[i]), estimate, np.nan)
            tolerance, hint = self.tolerances.finite_difference, partial(self.third_opinion, i)
            pair, result = (REVERSE, DIFFERENCE), gradient[i]
            self.against(pair, what, result, estimate, error, tolerance, self.floor, hint)

    def beside_what_is_not_finite(self, mixture: Mixture, call: str) -> None:
        """Check the gradient of the results that are finite."""
        call = f"of the finite results of {call}"
        gradient = self.attempt(REVERSE, call, routes.reverse, mixture, self.selected)[2][0]
        self.against_differences(mixture, call, gradient)
        # With something finite in place of what is not, results that were finite are the same, and
        # so must be the derivatives with respect to elements that have no part in the others.
        args = {i: np.asarray(self.case.args[i]) for i in self.case.active}
        case = self.case.at({i: np.where(np.isfinite(x), x, SUBSTITUTE) for i, x in args.items()})
        try:
            values = routes.numbers(case.plain())
        except (ArithmeticError, ValueError):
            return
        for x, y in zip(values, self.expected, strict=True):
            if (
                x.shape != y.shape
                or not np.all(np.isfinite(x))
                or np.any((x != y) & np.isfinite(y))
            ):
                return
        expected = attempt(
            self.comparison, REVERSE, call, routes.reverse, case, mixture, self.selected
        )[2][0]
        for i in mixture:
            apart = np.isfinite(args[i]) & ~self.reaches_what_is_not_finite(case, i, values)
            what = f"{call}: the gradient with respect to argument {i}"
            pair = (REVERSE, f"reverse mode with {SUBSTITUTE} for what is not finite")
            self.comparison.close(
                pair,
                what,
                np.where(apart, gradient[i], 0.0),
                np.where(apart, expected[i], 0.0),
                self.tolerances.rounding,
                self.floor,
            )

    def reaches_what_is_not_finite(
        self, case: routes.Case, i: int, values: routes.ArrayList
    ) -> np.ndarray:
        """Tell which elements of an argument have a part in results that are not finite, although
        they are in `case`: a nan shows it.
        """
        x = np.asarray(case.args[i])
        reaches = np.ones(x.shape, bool)
        for index in list(np.ndindex(x.shape))[: routes.MOST_ELEMENTS]:
            marked = x.copy()
            marked[index] = np.nan
            try:
                result = routes.numbers(case.at({i: marked}).plain())
            except (ArithmeticError, ValueError):
                continue
            parts = zip(result, values, self.expected, strict=True)
            reaches[index] = any(
                a.shape != b.shape or np.any((a != b) & ~np.isfinite(y)) for a, b, y in parts
            )
        return reaches

    def against(
        self,
        pair: tuple[str, str],
        what: str,
        exact: Plain,
        estimate: Plain,
        error: Plain,
        tolerance: float,
        floor: float,
        hint: Function | None,
    ) -> None:
        """Compare with finite differences, beyond their own error and where they tell something."""
        is_conclusive = conclusive(exact, estimate, error)
        exact, estimate, slack = (
            np.where(is_conclusive, x, 0.0) for x in (exact, estimate, 3.0 * error + TINY)
        )
        self.comparison.close(pair, what, exact, estimate, tolerance, floor, slack, hint)

    def third_opinion(self, i: int, index: object) -> str:
        try:
            third = f"forward mode gives {self.pushed(self.unit(i, index)):.10g}"
        except Exception as failure:
            third = f"forward mode raises {type(failure).__name__}"
        return f"; the second is the finite difference, {third}"

    def unit(self, i: int, index: Index) -> dict[int, np.ndarray]:
        """Return the direction of one element of one argument."""
        unit = np.zeros(np.shape(self.case.args[i]))
        unit[index] = 1.0
        return {i: unit}

    def pushed(self, tangents: routes.Partials) -> float:
        """Compute the weighted sum of the tangents of the results."""
        rates = routes.forward(self.case, tangents)[1]
        return float(sum(np.sum(w * t) for w, t in zip(self.weights, rates, strict=True)))

    def forward(self, mixture: Mixture, call: str, gradient: routes.Partials) -> None:
        tolerance = self.tolerances.forward
        directions = {
            i: routes.random((DIRECTIONS, *np.shape(self.case.args[i])), 100 + i) for i in mixture
        }
        values, together = self.attempt(FORWARD, call, routes.forward, directions, DIRECTIONS)
        self.values(FORWARD, call, values)
        for k in range(DIRECTIONS if self.is_whole(mixture) else 1):
            one = {i: v[k] for i, v in directions.items()}
            _, alone = self.attempt(FORWARD, call, routes.forward, one, twice=not k)
            with np.errstate(all="ignore"):
                left = [w * t for w, t in zip(self.weights, alone, strict=True)]
                right = [gradient[i] * one[i] for i in mixture]
            what, hint = (
                f"{call}: the derivative along a random direction",
                partial(self.worst, mixture, gradient),
            )
            self.inner_products((FORWARD, REVERSE), what, left, right, tolerance, self.floor, hint)
            pair = (f"forward mode in {DIRECTIONS} directions at once", "forward mode in one")
            for j, (t, s) in enumerate(zip(together, alone, strict=True)):
                self.comparison.close(
                    pair, f"{call}: tangent {k} of result {j}", t[k], s, tolerance, self.floor
                )

    def inner_products(
        self,
        pair: tuple[str, str],
        what: str,
        left: Sequence[Plain],
        right: Sequence[Plain],
        tolerance: float,
        floor: float,
        hint: Function | None = None,
    ) -> None:
        """Compare two sums, relative to the sizes of their terms."""
        with np.errstate(all="ignore"):
            a, b = (sum(float(np.sum(x)) for x in side) for side in (left, right))
            scales = [sum(float(np.sum(np.abs(x))) for x in side) for side in (left, right)]
        floor = max(floor, *(scale for scale in scales if np.isfinite(scale)), 0.0)
        self.comparison.close(pair, what, a, b, tolerance, floor, hint=hint)

    def worst(self, mixture: Mixture, gradient: routes.Partials, _: object) -> str:
        """Describe where forward and reverse mode disagree most."""
        errors = [(0.0, "")]
        for i in mixture:
            for index in list(np.ndindex(np.shape(self.case.args[i])))[: routes.MOST_ELEMENTS]:
                a, b = self.pushed(self.unit(i, index)), float(gradient[i][index])
                error = float(difference(np.asarray(a), np.asarray(b), self.floor))
                errors.append(
                    (
                        error,
                        (
                            f"; most for argument {i}{at(index)}: forward mode gives {a:.10g}, "
                            f"reverse mode {b:.10g}"
                        ),
                    )
                )
        return max(errors)[1]

    def fan_out(self, mixture: Mixture, call: str, gradient: routes.Partials) -> None:
        # Use different weights, because a rule that returns the same array again overwrites one
        # contribution with the other.
        call = f"two uses, f + 2 f, of {call}"
        both = self.attempt(REVERSE, call, routes.reverse, mixture, self.weights, uses=2)[2][0]
        self.same(
            "three times that of one use", call, both, {i: 3.0 * g for i, g in gradient.items()}
        )

    def recorded(
        self,
        mixture: Mixture,
        call: str,
        gradient: routes.Partials,
        v: routes.Partials | None = None,
        hv: Plain = None,
    ) -> None:
        """Check a recording made at another point, unless it is refused: the sum and its gradient,
        or with a vector the Hessian times that. It is run here, and where comparisons go the other
        way.
        """
        is_whole = self.is_whole(mixture)
        every = is_whole and (v is None or self.compile_hessian)
        runners = routes.RUNNERS[: None if every else 1]
        run = self.attempt(RECORDED, call, routes.recording, mixture, self.weights, v, runners)
        cases = [(self.case, call)]
        if self.flipped is not None and is_whole:  # data are kept
            cases.append((self.flipped, f"{call}, at {OTHER_POINT}"))
        for case, where in cases if run is not None else ():
            result = attempt(self.comparison, RECORDED, where, run, case)
            if result is None:
                continue
            if case is not self.case:
                more = (case, mixture, self.weights)
                with np.errstate(all="ignore"):
                    gradient = routes.reverse(*more)[2][0]
                    hv = None if v is None else routes.flat(routes.hessian_times_vector(*more, v))
            if v is None:
                value, other = result
                self.recorded_sum(where, case, value, other, gradient)
            elif np.all(np.isfinite(hv)):
                what = f"{where}: the Hessian times a vector"
                floor = 1e-2 * _largest(routes.flat(gradient))
                tolerance = self.tolerances.rounding
                self.comparison.close(
                    (RECORDED, HESSIAN), what, routes.flat(result[1]), hv, tolerance, floor
                )

    def recorded_sum(
        self,
        call: str,
        case: routes.Case,
        result: float,
        gradient: routes.Partials,
        expected: routes.Partials,
    ) -> None:
        values = routes.numbers(case.plain())
        with np.errstate(all="ignore"):
            terms = [
                float(np.sum(np.abs(w * x))) for w, x in zip(self.weights, values, strict=True)
            ]
        # Relative to the terms of the sum, not to what is left of them.
        what, full = f"{call}: the weighted sum", case.weighted(self.weights)
        tolerance = self.tolerances.rounding
        self.comparison.close((RECORDED, NUMPY), what, result, full, tolerance, sum(terms))
        floor = floor_of(case, values)
        for i, g in gradient.items():
            what = f"{call}: the gradient with respect to argument {i}"
            self.comparison.close((REVERSE, RECORDED), what, expected[i], g, tolerance, floor)

    def hessian(self, mixture: Mixture, call: str, gradient: routes.Partials) -> None:
        u, v = ({i: self.direction(i, seed) for i in mixture} for seed in (300, 400))
        product = partial(self.attempt, HESSIAN, call, routes.hessian_times_vector, mixture)
        hv = routes.flat(product(self.weights, v))
        floor = 1e-2 * _largest(routes.flat(gradient))
        if self.finite and not self.is_whole(mixture):  # a part of what is symmetric
            self.part_of_hessian(mixture, call, v, hv, floor)
            return
        hu = routes.flat(product(self.weights, u))
        if np.all(np.isfinite(hu)) and np.all(np.isfinite(hv)):
            what = f"{call}: the second derivative along two directions"
            left, right = routes.flat(u) * hv, routes.flat(v) * hu
            self.inner_products(
                ("<u, Hv>", "<v, Hu>"), what, [left], [right], self.tolerances.hessian, floor
            )
        if not self.finite:
            return
        self.recorded(mixture, call, gradient, v, hv)
        tolerance = self.tolerances.hessian_finite_difference
        if not self.differences or tolerance == inf:
            return
        try:
            estimate, error = routes.difference_hessian(self.case, mixture, self.weights, v)
        except OutsideDomainError:
            return
        what = f"{call}: the product, all arguments in one vector,"
        pair, hint = (HESSIAN, HESSIAN_DIFFERENCE), "; the second is the finite difference"
        self.against(pair, what, hv, estimate, error, tolerance, floor, lambda _: hint)

    def part_of_hessian(
        self, mixture: Mixture, call: str, v: routes.Partials, hv: Plain, floor: float
    ) -> None:
        """Check that the Hessian with some arguments constant is a part of the whole one, which is
        compared with finite differences.
        """
        all_of_them = dict.fromkeys(self.case.active, "varmat")
        along = {i: v.get(i, np.zeros(np.shape(self.case.args[i]))) for i in all_of_them}
        full = self.attempt(
            HESSIAN, call, routes.hessian_times_vector, all_of_them, self.weights, along
        )
        part, what = routes.flat({i: full[i] for i in mixture}), f"{call}: the product"
        if np.all(np.isfinite(hv)) and np.all(np.isfinite(part)):
            pair, tolerance = (HESSIAN, f"{HESSIAN} of all arguments"), self.tolerances.hessian
            self.comparison.close(pair, what, hv, part, tolerance, floor)

    def direction(self, i: int, seed: int) -> Plain:
        """Choose powers of two, not large against the elements of the argument, so that steps along
        them are exact.
        """
        x = np.abs(self.case.args[i])
        with np.errstate(all="ignore"):
            power = np.round(
                np.log2(
                    np.where((x > 0.0) & (x < 1.0), x, 1.0)
                    * np.abs(routes.random(x.shape, seed + i))
                )
            )
        return np.sign(routes.random(x.shape, seed + i)) * 2.0**power

    def twice_the_same(self, i: int, j: int) -> None:
        """Check one variable passed as two arguments."""
        case = self.case.at({j: self.case.args[i]})
        try:
            weights = routes.random_weights(routes.numbers(case.plain()))
        except (ArithmeticError, ValueError):
            return
        mixture = {i: "varmat", j: "varmat"}
        call = f"argument {i} passed as argument {j} too in {case.describe(mixture)}"
        apart = attempt(self.comparison, REVERSE, call, routes.reverse, case, mixture, weights)[2][
            0
        ]
        once = attempt(
            self.comparison,
            REVERSE,
            call,
            routes.reverse,
            case,
            {i: "varmat"},
            weights,
            same=(i, j),
        )[2][0]
        with np.errstate(all="ignore"):
            self.same("the sum of the two gradients", call, once, {i: apart[i] + apart[j]})

    def layout(self, layout: str, mixtures: list[Mixture]) -> None:
        """Check arguments, variable or constant, that are views in another layout."""
        for mixture in mixtures:
            call = f"{layout} views in {self.case.describe(mixture)}"
            _, values, (gradient,) = self.attempt(
                REVERSE, call, routes.reverse, mixture, self.weights, layout=layout
            )
            self.values("reverse mode with views", call, values)
            self.same(
                "reverse mode without views", call, gradient, {i: self.full[i] for i in mixture}
            )


def _largest(x: Plain) -> float:
    """Find the largest finite absolute value."""
    x = np.abs(x)
    return float(np.max(np.where(np.isfinite(x), x, 0.0), initial=0.0))
