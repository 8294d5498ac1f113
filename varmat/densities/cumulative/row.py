"""Cumulative distribution functions: rows of a table, as the densities are.

    def _normal(x, mu, sigma):
        "the formula, and an example"
        inv = 1.0 / sigma
        z = (x - mu) * inv
        ...
        return Tails(
            below=Tail(log_ndtr(z), y=..., mu=..., sigma=...),
            above=Tail(log_ndtr(-z), y=..., mu=..., sigma=...),
        )

    normal_cdf, normal_lcdf, normal_lccdf = cumulative(normal_lpdf, _normal, ...)

The function is given the observation, or a possible one where it is outside the support: nothing
that is computed there gets into a derivative. Arguments, titles and domains are the density's. The
two logarithms are written separately: neither is computed from the other where that would lose
digits, so that each is right in its own far tail. For several observations the logarithms are
summed and the probabilities multiplied, as in Stan."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.domains import Domain
from varmat.core.dual import value_now
from varmat.core.operation import Operation, is_differentiable
from varmat.core.variables import Var
from varmat.densities.density import LARGEST_EXPONENT, argument_lines, positional, typed
from varmat.densities.pointwise import Pointwise
from varmat.densities.sources import LAST_SECTIONS, docstring_sections, reference_section
from varmat.densities.univariate import Demand, Fast, LogDensity, Univariate
from varmat.functions.checks import is_held, is_watched
from varmat.functions.special.logistic_functions import exprel, log1m_exp
from varmat.programs.build.symbol import Symbol
from varmat.typing import Adjoint, Operand, Result, Setting

__all__ = ["Cumulative", "LogCumulative", "Tail", "Tails", "cumulative", "less", "scaled", "within"]


# Settings of `cumulative` for positive observations, and for counts.
POSITIVE: dict[str, Any] = {"start": lambda y, *_: y > 0.0, "before": (-1.0, 0.0)}
COUNTS: dict[str, Any] = {"start": lambda n, *_: n >= 0.0, "before": (-1,)}


# From here on exp(-t) is zero.
CERTAIN = 800.0


def less(t: Operand, fast: bool) -> tuple[Operand, Operand]:
    """Compute the logarithm of 1 - exp(-t), and t times its derivative.

    Use the fast form for all t that are neither tiny nor infinite (see `within`). Next to 1 the
    probability m has lost the digits of its logarithm; 1 - m - exp(-t) restores them, and is zero
    elsewhere. The other form is differentiated again, so nothing in it overflows."""
    if not fast:
        s = np.minimum(t, CERTAIN)
        return log1m_exp(-t), np.exp(-s) / exprel(-s)
    e, m = np.exp(-t), -np.expm1(-t)
    return np.log(m) + (1.0 - m - e) * m, t * e / m


def power_of(u: Operand, log_u: Operand, alpha: Operand, fast: bool) -> Operand:
    """Compute a power of a positive base for `less`: beyond `CERTAIN`, an infinite power has no
    derivative.
    """
    if fast:
        return np.exp(alpha * log_u)
    is_finite = alpha * log_u < LARGEST_EXPONENT
    return np.where(is_finite, np.power(np.where(is_finite, u, 1.0), alpha), math.inf)


def within(t: Operand) -> Operand:
    """Tell where the fast form of `less` is right."""
    return (t > 1e-300) & (t < math.inf)


def scaled(slope: Operand, inv: Operand, z: Operand) -> dict[str, Operand]:
    """Compute the partials of a function of ``z = (y - mu) / sigma``, from its partial in z."""
    return {"y": slope * inv, "mu": -slope * inv, "sigma": -slope * inv * z}


class Tail:
    """The logarithm of one of the two probabilities of an observation, and its derivatives, by name
    of the argument.
    """

    def __init__(self, term: Operand, **partials: Operand) -> None:
        self.term, self.partials = term, partials


class Tails(NamedTuple):
    """Both probabilities, and where a fast form of them holds."""

    below: Tail
    above: Tail
    when: Operand = None


class LogCumulative(Univariate):
    """The logarithm of a probability up to, or above, an observation; made by `cumulative`."""

    vanishes = True

    def __init__(
        self,
        name: str,
        density: Univariate,
        arguments: dict[str, tuple[str, Domain]],
        form: Callable[..., LogDensity],
    ) -> None:
        # Scales of the wrong sign and infinite locations give probabilities too: all domains are
        # checked beforehand.
        super().__init__(name, form, arguments, density.discrete, (), density.demand, Fast())
        # Nothing is dropped of a probability.
        self.__signature__ = inspect.Signature(self.parameters)
        del self.proportional

    @typed
    def __call__(self, *args: Operand, keep: Setting = None, **kwargs: Operand) -> Result:
        if "propto" in kwargs:
            raise TypeError(f"{self.name}() got an unexpected keyword argument 'propto'")
        return super().__call__(*args, **kwargs)


class Cumulative:
    """The probability up to an observation, multiplied over the observations; made by `cumulative`.

    Attributes
    ----------
    name : str
    log : LogCumulative
        Its logarithm, which refuses in the name of this function.
    density : Univariate
    at_zero : callable, optional
        The probability of each observation, of arrays and variables, used where one is zero and
        its derivative perhaps not.
    """

    def __init__(self, log: LogCumulative, density: Univariate, at_zero: Operand = None) -> None:
        self.log, self.density, self.at_zero = log, density, at_zero
        self.__name__ = self.__qualname__ = self.name = log.name
        self.__module__ = log.__module__
        self.arguments, self.discrete = log.arguments, log.discrete
        self.__signature__ = inspect.Signature(positional(log.arguments))

    @typed
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        log = self.log(*args, **kwargs)
        if type(log) is float:
            return math.exp(log)
        if type(log) is Var and not is_watched(log) and _LEAST < log.val < _MOST:
            return np.exp(log)
        if self.at_zero is not None and type(log) is Var and value_now(log) == -math.inf:
            # The logarithm has an infinite derivative there, or none.
            arguments = inspect.signature(self.at_zero).bind(*args, **kwargs).args
            return np.prod(
                self.at_zero(
                    *(np.asarray(x, float) if type(x) in (list, tuple) else x for x in arguments)
                )
            )
        if not is_held(_near, log):
            return self._far(*args, **kwargs)
        return np.exp(log)

    @cached_property
    def pointwise(self) -> Result:
        """The probability at each element, instead of their product."""
        log = Pointwise(self.log)

        def pointwise(*args: Operand, **kwargs: Operand) -> Result:
            logs = log(*args, **kwargs)
            if is_differentiable(logs) and not _is_bulk(logs) and not is_held(_near, logs):
                return self._far(*args, each=True, **kwargs)
            return np.exp(logs)

        return pointwise

    @cached_property
    def _far(self) -> Operation:
        """The same where a probability, or its complement, underflows and its derivative perhaps
        does not.
        """

        def function(*values: Operand, each: bool = False) -> Result:
            return np.exp(self.log.pointwise(*values) if each else self.log(*values))

        function.__name__ = self.name
        far = self.log.made_of(function, each=False)

        @far.reverse
        def reverse(g: Adjoint, r: Operand, *values: Operand, each: bool) -> Result:
            derivative = self._derivatives(values, each)
            return tuple(partial(derivative, name, g) for name in self.arguments)

        @far.tangent
        def tangent(r: Operand, *values: Operand, each: bool) -> Result:
            derivative = self._derivatives(values, each)

            def push(name: str, t: Operand) -> Result:
                rate = derivative(name, t)
                return rate if each else np.sum(rate)

            return tuple(partial(push, name) for name in self.arguments)

        return far

    @cached_property
    def _slopes(self) -> dict[str, Result]:
        """The partials of both logarithms as functions of arguments of any kinds."""
        return {
            name: [row.slopes[name] for row in (self.log, self.density.lccdf)]
            for name in self.log.slopes
        }

    def _derivatives(self, values: Sequence[Operand], each: bool) -> Result:
        """Return a function of the name of an argument and of a factor: the derivative of the
        probability at each element, from the logarithm of the smaller one of it and its complement.
        """
        below, above = self.log.pointwise, self.density.lccdf.pointwise
        values = [np.asarray(v, float) if type(v) in (list, tuple) else v for v in values]
        plain_values = [plain(v) for v in values]
        logs, complements = below(*plain_values), above(*plain_values)
        certain = complements == -math.inf
        lower = np.logical_or(certain, logs < -0.5)
        # Elements without a derivative: of these the logarithms may have an infinite one.
        gone = np.where(lower, logs, complements) < _GONE
        if not each:
            gone = gone | np.any(logs < _GONE)
        safe = [self.log.safe(values, gone | x) for x in (False, np.logical_not(lower), lower)]
        logs = np.where(gone, 0.0, below(*safe[0]))
        others = 0.0 if each else np.sum(logs) - logs
        # Twice the square root, with the factors that may be large in between.
        half = np.exp(0.5 * (np.where(lower, logs, above(*safe[2])) + others))

        def derivative(name: str, t: Operand) -> Result:
            if name in self.discrete:
                self.log.refuse_variable(name)
            if name == next(iter(self.arguments)):
                # The derivatives of the density do not overflow where those of the logarithm do.
                none = gone | certain
                density = self.density.pointwise(*self.log.safe(values, none))
                return np.where(none, 0.0, np.exp(density + others)) * t
            slopes = [f(*v)[0] for f, v in zip(self._slopes[name], safe[1:], strict=True)]
            rate = half * np.where(lower, slopes[0], -slopes[1])
            return np.where(gone, 0.0, rate) * (half * t)

        return derivative

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<varmat cumulative distribution function {self.name}{self.__signature__}>"


def _is_bulk(logs: Operand) -> bool:
    """Tell whether an array outside recordings is in `_near`, by its extremes, which is fast."""
    value = getattr(logs, "_val", None)
    if type(value) is not np.ndarray or not value.size or is_watched(logs):
        return False
    least, most = np.minimum.reduce(value, axis=None), np.maximum.reduce(value, axis=None)
    return bool(least > _LEAST and most < _MOST)


def _is_near(logs: Operand) -> Result:
    if isinstance(logs, Symbol) and not logs.shape:  # a guard ends runs of recordings
        logs.builder.guard_between(logs.value, _LEAST, _MOST)
        return True
    return np.logical_and(np.less(logs, _MOST), np.greater(logs, _LEAST))


# Logarithms of probabilities that do not underflow, and neither do their complements; and of those
# whose square root does.
_LEAST, _MOST, _GONE = -700.0, -1e-300, -1491.0
_near = Domain("the logarithm of a moderate probability", _is_near)


class _Inner(LogCumulative):
    """The logarithm within a `Cumulative`."""

    def __reduce__(self) -> Any:
        return getattr, (getattr(sys.modules[self.__module__], self.name), "log")


def _form_of(
    tails_of: Callable[..., Tails],
    side: int,
    support: Callable[..., Any],
    other: Callable[..., Any],
    inside: Callable[..., Any] | float,
    demand: Demand | None,
    has_quick: bool,
) -> Callable[..., LogDensity]:
    """Make the function of one row from the function of both tails; `other` says where the
    observation is not beyond the opposite end, at which the probability is 1.
    """

    def form(*values: Operand, fast: bool = False) -> LogDensity:
        x, *others = values
        before, after = other(*values), support(*values)
        if not fast:  # nothing that is differentiated is outside the support
            within = before & after
            x = np.where(within, x, inside(*others) if callable(inside) else inside)
        tails = tails_of(x, *others, **({"fast": fast} if has_quick else {}))
        tail: Tail = tails[side]
        term, partials = tail.term, tail.partials
        if fast:
            before = before if tails.when is None else before & tails.when
        else:
            term = np.where(before, term, 0.0)
            partials = {name: np.where(within, p, 0.0) for name, p in partials.items()}
        if demand is not None:  # a value that is not finite has all arguments looked at
            term = np.where(demand.holds(*values), term, math.nan)
        return LogDensity(term, support=after, when=before, **partials)

    return form


def _docstring(density: Univariate, function: Any, of: str, tails_of: Callable[..., Any]) -> str:
    """Write the docstring of one of the three functions."""
    product = isinstance(function, Cumulative)
    outside = " Of an impossible observation the value is -inf and the gradient zero."
    return _DOC.format(
        of=of,
        title=density.title,
        over="multiplied" if product else "summed",
        arguments=argument_lines(function.arguments),
        what="product" if product else "sum",
        neutral="one" if product else "zero",
        outside="" if product else outside,
        full=function.name,
        references=reference_section(function.name),
        **docstring_sections(tails_of),
    )


def cumulative(
    density: Univariate,
    tails_of: Callable[..., Tails],
    *,
    points: Sequence[tuple[float, ...]] = (),
    tails: Sequence[tuple[float, ...]] = (),
    before: Sequence[float | tuple[float, ...]] = (-math.inf,),
    after: Sequence[float | tuple[float, ...]] = (math.inf,),
    start: Callable[..., Any] = lambda y, *_: y > -math.inf,
    end: Callable[..., Any] = lambda y, *_: y < math.inf,
    inside: Callable[..., Any] | float = 1.0,
    fast: bool = False,
    at_zero: Operand = None,
    observed: Domain | None = None,
) -> tuple[Cumulative, LogCumulative, LogCumulative]:
    """Make the three cumulative functions of a density of one variable: one row of the table.

    Parameters
    ----------
    density : Univariate
        The density or mass, from which the names, the arguments and their domains come. It gets the
        three functions as its ``cdf``, ``lcdf`` and ``lccdf``.
    tails_of : callable
        Function of a possible observation and of the parameters, and of ``fast`` if it has a fast
        form, to the logarithms of the probability up to the observation (itself included), and of
        that above it. Its docstring is the formula, and an example: the docstrings have these as
        Notes and Examples.
    points, tails : sequence of tuples
        Arguments for the tests: in the bulk, where values and derivatives are right to 1e-12, those
        of the density by default; in the tails, where they are right to 1e-9.
    before, after : sequence of float or tuple
        Observations for the tests, for which `start`, or `end`, does not hold: with the parameters
        of the first point, or all arguments.
    start, end : callable
        Conditions on the arguments that hold above the smallest and below the largest possible
        observation. Where `start` does not hold the probability up to the observation is 0 and that
        above it 1, where `end` does not hold it is the other way round; the derivatives are 0.
    inside : callable or float
        A possible observation, which replaces observations outside; a function of the parameters
        if it depends on them.
    fast : bool
        Whether `tails_of` has a fast form, for arrays whose observations are all inside: its
        result is taken where the value is finite.
    at_zero : callable, optional
        The probability up to each observation, written with differentiable functions of the
        arguments: it is used where it is zero within the domain of a parameter and its
        derivative is not an exponential's.
    observed : Domain, optional
        Where observations may lie, if that is less than the density takes.

    Returns
    -------
    cdf : Cumulative
    lcdf, lccdf : LogCumulative
    """
    module = sys._getframe(1).f_globals["__name__"]
    family, _, _ = density.name.rpartition("_")
    arguments = dict(density.arguments)
    observation, points = next(iter(arguments)), tuple(points) or density.points
    if observed is not None:
        arguments[observation] = (arguments[observation][0], observed)

    def made(
        kind: type[LogCumulative], suffix: str, side: int, support: Setting, other: Setting
    ) -> LogCumulative:
        form = _form_of(tails_of, side, support, other, inside, density.demand, fast)
        row = kind(f"{family}_{suffix}", density, arguments, form)
        row.__module__, row.points, row.tails, row.outside = module, points, tuple(tails), ()
        return row

    inner = made(_Inner, "cdf", 0, start, end)
    lcdf, lccdf = (
        made(LogCumulative, "lcdf", 0, start, end),
        made(LogCumulative, "lccdf", 1, end, start),
    )
    inner.outside, lcdf.outside, lccdf.outside = (
        tuple(x if isinstance(x, tuple) else (x, *points[0][1:]) for x in item)
        for item in (before, before, after)
    )
    cdf = Cumulative(inner, density, at_zero)
    for function, of in (
        (cdf, "Compute the probability up to"),
        (lcdf, "Compute the log probability up to"),
        (lccdf, "Compute the log probability above"),
    ):
        function.__doc__ = _docstring(density, function, of, tails_of)
    density.cdf, density.lcdf, density.lccdf = cdf, lcdf, lccdf
    return cdf, lcdf, lccdf


_DOC = """{of} an observation, {title}; {over} over all elements.

    Parameters
    ----------
{arguments}

    Returns
    -------
    float or Var
        The {what} over the elements to which the arguments broadcast; {neutral} if there are
        none.{outside} ``{full}.pointwise`` has one for each element.
"""
_DOC += LAST_SECTIONS
