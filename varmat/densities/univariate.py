"""Densities of one variable: rows of a table.

    @univariate(
        "normal distribution",
        y=("Random variable", not_nan),
        mu=("Location parameter", finite),
        sigma=("Scale parameter", positive),
        ...
    )
    def normal_lpdf(y, mu, sigma):
        "the formula, and an example"
        inv = 1.0 / sigma
        z = (y - mu) * inv
        s = z * inv
        return LogDensity(
            -0.5 * z * z, -np.log(sigma), -HALF_LOG_TWO_PI, y=-s, mu=s, sigma=z * s - inv
        )

The function uses NumPy's functions and functions of the elementwise table. It is run once, on
symbols (see `varmat.densities.row_program`). The log density is the sum of the terms over all
elements to which the arguments broadcast; a term is dropped with ``propto=True`` if all on which it
depends is data.

Value and partials are computed together, while the arguments are in the cache, by a function that
is compiled for each use: which arguments are arrays, which are variables, which terms are kept. The
reverse rule only multiplies by the adjoint of the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, cached_property, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.domains import Domain
from varmat.core.operation import OPERATIONS
from varmat.densities.density import Domains, KeptTerms, argument_lines, ieee, not_nan, possible
from varmat.densities.pointwise import Pointwise
from varmat.densities.row_program import VECTOR, RowGraph, RowProgram, StableSums, Sums, single_step
from varmat.densities.sources import LAST_SECTIONS, docstring_sections, reference_section
from varmat.densities.summed_density import IS_ARRAY, IS_VARIABLE, Computed, SummedDensity, Use
from varmat.functions.checks import check_values, is_held
from varmat.programs.build.symbol import Symbol
from varmat.programs.ir.program import ElsewhereError, Program, Value
from varmat.programs.kernels.guards import Unless
from varmat.programs.run.emit import function_of_program
from varmat.typing import Function, Operand, Result, Setting, Shape

# A function, the same in IEEE arithmetic, what makes these two for long arrays, the arguments to
# check first (None for all), and the number of partials.
Evaluators = tuple[Function, Function, Function, list[tuple[int, str, Domain]] | None, int]
# Elements from which value and partials are computed in place, block by block. At 4096 that takes
# as long as without, at 10^4 up to a tenth less, at 10^5 half to two thirds.
LONG = 8192
# Counts up to which the terms of a log mass, which are of the size of n log(n), may be added up as
# they are.
MODERATE = 1000.0


class LogDensity:
    """The result of the function of a row, element by element.

    Parameters
    ----------
    *terms
        Their sum is the log density.
    support : array of bool, optional
        Where it does not hold the log density is -inf, and the gradient zero.
    dropping : sequence, optional
        The terms with ``propto=True``, if others than `terms` are to be dropped one by one.
    when : array of bool, optional
        Where the fast form holds.
    **partials
        The derivatives of the log density, by name of the argument.
    """

    def __init__(
        self,
        *terms: object,
        support: object = None,
        dropping: Sequence[object] = (),
        when: object = None,
        **partials: object,
    ) -> None:
        self.terms, self.partials, self.support = terms, partials, support
        self.dropping, self.when = dropping or terms, when


class Demand(NamedTuple):
    """What several arguments together must fulfil: the argument that a refusal names, a condition
    on all of them, and the phrase that follows "but must be".
    """

    name: str
    holds: Callable[..., Any]
    phrase: str


class Fast(NamedTuple):
    """Settings of the fast form of a row's function (``fast=True``): other expressions of the same
    value, with which arrays take fewer steps, and numbers too, if there are counts.

    Use it where the value is finite, where the argument `number`, if named, is a number, and where
    the `counts` are at most `MODERATE`. Programs take it if there are counts or a
    number, or with `in_programs`: machine code of other rows is as fast on the stable path."""

    number: str | None = None
    counts: tuple[str, ...] = ()
    in_programs: bool = False

    @property
    def is_recorded(self) -> bool:
        """Whether programs take it."""
        return self.in_programs or bool(self.number or self.counts)

    @property
    def between(self) -> tuple[float, float]:
        """Where squares of numbers of this size neither overflow nor underflow."""
        return 1e-100, 1e100

    def fits(self, values: Mapping[str, Operand]) -> bool:
        """Tell whether the counts among these values are moderate."""
        return all(bool(np.max(values[name], initial=0.0) <= MODERATE) for name in self.counts)

    def fits_in(self, values: Mapping[str, Value]) -> bool:
        """Tell the same for the counts in a program, which are data."""
        counts = [values[name] for name in self.counts]
        return all(v.is_constant for v in counts) and self.fits(
            {name: v.data for name, v in zip(self.counts, counts, strict=True)}
        )


class Univariate(SummedDensity):
    """A density of one variable; made by `univariate`."""

    title: str
    points: tuple[Setting, ...]
    tails: tuple[Setting, ...]
    outside: tuple[Setting, ...]
    moderate = MODERATE
    # Whether an element that is -inf, also because it overflows, is without derivatives.
    vanishes = False
    cdf: Setting
    lcdf: Setting
    lccdf: Setting
    # Functions of the parameters, where they have a closed form.
    mean: Callable[..., Operand] | None
    variance: Callable[..., Operand] | None
    ends: Callable[..., tuple[Operand, Operand]]

    def __init__(
        self,
        name: str,
        form: Callable[..., LogDensity],
        arguments: Domains,
        discrete: Collection[str] = (),
        lazy: Collection[str] = (),
        demand: Demand | None = None,
        fast: Fast | None = None,
    ) -> None:
        super().__init__(name, arguments, discrete)
        self.form, self.fast, self.demand = form, fast, demand
        # These make the log density infinite or nan if they are outside their domain or the
        # support, and are validated only if it is that.
        self.lazy = frozenset(lazy)
        self._graphs: dict[bool, RowGraph] = {}
        self._uses: dict[Use, Evaluators] = {}
        self._tangent = self._maps

    def graph(self, fast: bool) -> RowGraph:
        """Return the graph of the function, on its fast or its stable path."""
        graph = self._graphs.get(fast)
        if graph is None:
            # Keep the first one, because another thread may have made a second, with other symbols.
            form = partial(self.form, fast=fast) if self.fast else self.form
            graph = self._graphs.setdefault(fast, RowGraph(form, self.operands))
        return graph

    @property
    def formula(self) -> LogDensity:
        """The result of the function, in symbols."""
        formula: LogDensity = self.graph(False).parts
        return formula

    @cached_property
    def guarded(self) -> frozenset[str]:
        """The arguments that can leave the support without making the value infinite or nan."""
        support = self.formula.support
        names = frozenset() if support is None else self.graph(False).names(support)
        return frozenset() if names <= self.lazy else names

    @cached_property
    def early(self) -> list[tuple[int, str, Domain]]:
        """The arguments that are validated before anything is computed: their places, titles and
        domains. A nan is not in the support either, and is refused when the support is checked.
        """
        return [
            (i, title, domain)
            for i, (name, (title, domain)) in enumerate(self.arguments.items())
            if name not in self.lazy and not (name in self.guarded and domain is not_nan)
        ]

    def __getattr__(self, name: str) -> Result:
        """Return `cdf`, `lcdf` and `lccdf`, or None where the family has none: their modules are
        imported at the first request.
        """
        if name not in ("cdf", "lcdf", "lccdf"):
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        import_module("varmat.densities.cumulative")
        return self.__dict__.get(name)

    def _broadcast(self, args: Sequence[Operand], keep: KeptTerms | None) -> Result:
        """Call with arrays of different shapes: they are expanded, which is recorded."""
        if any(type(x) in (list, tuple) for x in args):  # behind an array without axes
            return self.unless_impossible(args, self.general(args, {"keep": keep}))
        # Check domains before broadcasting, because the message shows the index.
        shape = self.shape_of(args)
        if self.demand is not None:
            check_values(lambda *values: self.check_demand(self.name, values), *args)
        args = [float(x) if type(x) is np.ndarray and not x.ndim else x for x in args]
        return self(
            *(x if np.shape(x) in ((), shape) else np.broadcast_to(x, shape) for x in args),
            keep=keep,
        )

    def evaluate(self, values: list[object], shape: Shape | None, use: Use) -> Computed:
        function, exact, long, early, count = self.compiled(use)
        if shape is not None and math.prod(shape) >= LONG:
            function, exact = long()
        if early is None:
            self._check_domains(values)
        else:
            for i, title, domain in early:
                domain.check(self.name, title, values[i])
        if shape is not None and 0 in shape:
            self._check_domains(values)
            return 0.0, [0.0] * count
        try:
            value, partials = self._compute(function, exact, values, shape)
        except ElsewhereError:  # an observation is outside the support
            self._check_domains(values)
            return -math.inf, [0.0] * count
        if -math.inf < value < math.inf:
            return value, partials
        self._check_domains(values)
        return (value, partials) if self.in_support(values) else (-math.inf, [0.0] * count)

    def of_vectors(self, use: Use, size: int) -> tuple[Function, Function]:
        """Return the function for one use, for vectors of about this size, and the same in IEEE
        arithmetic.
        """
        function, exact, long, _, _ = self.compiled(use)
        return (function, exact) if size < LONG else long()

    def _compute(
        self, function: Function, exact: Function, values: list[object], shape: Shape | None
    ) -> Computed:
        try:
            if shape is None:
                return function(*values, 1)  # type: ignore[no-any-return]
            if len(shape) == 1:
                with np.errstate(all="ignore"):
                    return function(*values, shape[0])  # type: ignore[no-any-return]
            return _of_arrays(function, values, shape)
        # where Python's floats raise, IEEE arithmetic answers
        except (ArithmeticError, ValueError):
            values = ieee(values)
            return _of_arrays(exact, values, () if shape is None else shape)

    def _check_domains(self, values: list[object]) -> None:
        for (title, domain), v in zip(self.checks, values, strict=True):
            domain.check(self.name, title, v)
        self.check_demand(self.name, values)

    def check_demand(self, function: str, values: Operand) -> None:
        """Reject values that are invalid only in combination."""
        if self.demand is not None:
            name, condition, phrase = self.demand
            holds = condition(*values)
            value = np.broadcast_to(values[self.operands.index(name)], np.shape(holds))
            Domain(phrase, lambda _: holds).check(function, self.arguments[name][0], value)

    def in_support(self, values: list[object]) -> bool:
        inside = self.inside
        if inside is None:
            return True
        with np.errstate(all="ignore"):
            return bool(np.all(inside(*values)[0]))

    @cached_property
    def inside(self) -> Function | None:
        """A function of the arguments to a list of the support; None if all is inside."""
        support = self.formula.support
        return None if support is None else self.graph(False).function([support])

    @cached_property
    def slopes(self) -> dict[str, Function]:
        """Functions of arguments of any kinds to lists of a partial."""
        function = self.graph(False).function
        return {name: function([partial]) for name, partial in self.formula.partials.items()}

    def safe(self, values: Sequence[Operand], outside: Operand) -> list[Operand]:
        """Replace arguments by a possible point where a mask holds, because selecting results would
        leave an infinite derivative.
        """
        return [np.where(outside, p, v) for p, v in zip(self.points[0], values, strict=True)]

    @cached_property
    def _depends(self) -> list[frozenset[str]]:
        """List for each term that may be dropped the arguments on which it depends."""
        return [self.graph(False).names(t) for t in self.formula.dropping]

    def kept(self, fast: bool, keep: KeptTerms | None) -> tuple[RowGraph, Sequence[Operand]]:
        """Return the steps, and the terms that depend on an argument in `keep` (None: all)."""
        graph = self.graph(fast)
        if keep is None:
            return graph, graph.parts.terms
        terms = zip(graph.parts.dropping, self._depends, strict=True)
        return graph, [term for term, names in terms if keep & names]

    @cached_property
    def pointwise(self) -> Pointwise:
        """The density at each element, instead of their sum."""
        return Pointwise(self)

    @cached_property
    def always_fast(self) -> bool:
        """Whether there is a fast path that is valid for arguments of any kind."""
        has_number = self.fast is None or self.fast.number is not None
        return not has_number and self.graph(True).parts.when is None

    def takes_fast_path(self, arrays: set[str]) -> bool:
        """Tell whether there is a fast path where these arguments are arrays."""
        fast = self.fast
        return fast is not None and bool(arrays or fast.counts) and fast.number not in arrays

    def compiled(self, use: Use) -> Evaluators:
        """Return the function for one use, compiled at the first call."""
        return self._uses.get(use) or self._compile(use)

    def _compile(self, use: Use) -> Evaluators:
        keep = use[1] if isinstance(use, tuple) else None
        kinds = self.kinds_of(use)
        arrays = {name for name, kind in zip(self.operands, kinds, strict=True) if kind & IS_ARRAY}
        active = [
            name for name, kind in zip(self.operands, kinds, strict=True) if kind & IS_VARIABLE
        ]
        for name in self.discrete.intersection(active):
            self.refuse_variable(name)
        is_fast = self.takes_fast_path(arrays)
        functions = self._functions(arrays, active, keep, is_fast)
        # Dropped terms hide bad arguments, so check all arguments first.
        self._uses[use] = *functions, self.early if keep is None else None, len(active)
        return self._uses[use]

    def _functions(
        self, arrays: set[str], active: list[str], keep: KeptTerms | None, is_fast: bool
    ) -> tuple[Function, Function, Function]:
        """Compile both functions for one use; the third result makes both for long arrays."""
        functions: Function = cache(lambda: self._functions(arrays, active, keep, False))

        def stable(*values: Operand) -> Computed:
            function, exact, _ = functions()
            return self._compute(function, exact, [*values[:-1]], values[-1:])

        program = self._program_of_sum(arrays, active, keep, stable if is_fast else None)
        kinds = [
            f"{name}{' array' * (name in arrays)}{' variable' * (name in active)}"
            for name in self.operands
        ]
        kinds += ["up to constants"] * (keep is not None)
        kinds += ["stable"] * (not is_fast and self.takes_fast_path(arrays))
        title = f"{self.name}: {', '.join(kinds)}"
        compiled = partial(function_of_program, program, [*self.operands, "size"], title)
        return *compiled(), cache(lambda: compiled(by_blocks=True))

    def _program_of_sum(
        self,
        vectors: set[str],
        active: Sequence[str],
        keep: KeptTerms | None,
        stable: Function | None,
    ) -> Program:
        """Write the program that computes the value, and the partials in the active arguments,
        from the arguments and the number of elements.

        With `stable` it takes the fast path, and calls that function instead where the conditions
        fail or the value is not finite."""
        fast = None if stable is None else self.fast
        builder = StableSums() if fast is None and self.takes_fast_path(vectors) else Sums()
        letters = {
            name: builder.argument(VECTOR if name in vectors else ()) for name in self.operands
        }
        size = builder.argument(())
        builder.size = size if vectors else None
        builder.counts = {letters[name] for name in self.discrete}
        program = RowProgram(*self.kept(fast is not None, keep), builder, letters, single_step)
        parts = program.parts
        if fast is not None and stable is not None:
            if fast.number is not None:
                number, (low, high) = Symbol(builder, letters[fast.number]), fast.between
                builder.apply(Unless(stable), ((number > low) & (number < high)).value)
            for name in fast.counts:
                few = Symbol(builder, letters[name]) <= self.moderate
                builder.apply(Unless(stable), few.value)
            if parts.when is not None:
                builder.apply(Unless(stable), program.write(parts.when))
        if self.guarded:
            builder.guard(program.write(parts.support))
        partials = [program.slope(name) for name in active]
        value = program.sum()
        if stable is not None:
            builder.apply(Unless(stable), builder.ufunc(np.isfinite, value))
        return builder.program([value, *partials])

    # The tangent rule of every density of one variable: the sum of partial times tangent.
    def _maps(self, r: Operand, *values: Operand, keep: KeptTerms | None) -> tuple[Result, ...]:
        size = math.prod(np.broadcast_shapes(*map(np.shape, values)))
        inside = is_held(possible, r) or self.in_support([plain(v) for v in values])

        def directional(name: str) -> Result:
            # Once for all directions.
            partial = cache(lambda: self.slopes[name](*ieee(values))[0])

            def push(t: Operand) -> Result:
                if name in self.discrete:
                    self.refuse_variable(name)
                if not inside or not size:
                    return 0.0
                rate = partial() * t
                shape = np.shape(rate)
                return (np.sum(rate) if shape else rate) * (size // math.prod(shape))

            return push

        return tuple(map(directional, self.operands))


def _of_arrays(function: Function, values: list[object], shape: tuple[int, ...]) -> Computed:
    """Compute value and partials for arrays of any shape."""
    values = [v.reshape(-1) if type(v) is np.ndarray else v for v in values]
    with np.errstate(all="ignore"):
        value, parts = function(*values, math.prod(shape))
    return value, [p.reshape(shape) if type(p) is np.ndarray else p for p in parts]


def univariate(
    title: str,
    *discrete: str,
    points: Sequence[tuple[float, ...]],
    tails: Sequence[tuple[float, ...]] = (),
    outside: Sequence[tuple[float, ...]] = (),
    lazy: Sequence[str] = (),
    demand: Demand | None = None,
    fast: Fast | None = None,
    mean: Callable[..., Operand] | None = None,
    variance: Callable[..., Operand] | None = None,
    ends: Callable[..., tuple[Operand, Operand]] | tuple[float, float] = (-math.inf, math.inf),
    **arguments: tuple[str, Domain],
) -> Callable[[Callable[..., LogDensity]], Univariate]:
    """Make a density of one variable: one row of the table.

    Parameters
    ----------
    title : str
        The name of the distribution.
    *discrete : str
        Names of the arguments without a derivative.
    points, tails, outside : sequence of tuples
        Arguments for the tests: in the bulk, where value and derivatives are right to 1e-12; in the
        tails, where they are right to 1e-7; with an observation outside the support.
    lazy : sequence of str
        Arguments that make the log density infinite or nan if they are outside their domain (or the
        support): they are checked only if it is that, which saves a pass over arrays.
    demand : Demand, optional
        A condition on several arguments that makes the log density infinite or nan where it does
        not hold.
    fast : Fast, optional
        If there is a fast form: its result is taken where the value is finite.
    mean, variance : callable, optional
        Functions of the parameters.
    ends : tuple of float or callable
        The least and the largest observation, or a function of the parameters that returns them.
    **arguments : tuple of str and Domain
        For each argument, in order, its title in messages and its domain.

    Returns
    -------
    callable
        Decorator for a function of the name of the density. The function takes the arguments, and
        ``fast`` if there is a fast form, and returns the terms, the partials and the support,
        element by element. Its docstring is the formula, with SciPy's equivalent, and an
        example: the docstring of the density has these as Notes and Examples.
    """

    def make(form: Callable[..., LogDensity]) -> Univariate:
        row = Univariate(form.__name__, form, arguments, discrete, lazy, demand, fast)
        # where it is found when it is unpickled
        row.__module__ = form.__module__
        row.points, row.tails, row.outside = tuple(points), tuple(tails), tuple(outside)
        row.title, row.mean, row.variance = title, mean, variance
        row.ends = ends if callable(ends) else lambda *_: ends
        OPERATIONS[row.name] = row
        row.__doc__ = _DOC.format(
            kind="mass" if row.name.endswith("pmf") else "density",
            title=title,
            full=row.name,
            name=row.proportional.name,
            arguments=argument_lines(arguments),
            references=reference_section(row.name),
            outside=" Outside the support the value is -inf and the gradient zero." * bool(outside),
            **docstring_sections(form),
        )
        return row

    return make


_DOC = """Compute the log {kind} of the {title}, summed over all elements.

    Parameters
    ----------
{arguments}
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``{name}`` does.

    Returns
    -------
    float or Var
        The sum over the elements to which the arguments broadcast; zero without any.{outside}
        ``{full}.pointwise`` is the density at each element.
"""
_DOC += LAST_SECTIONS
