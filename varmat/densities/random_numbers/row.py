"""Random numbers of a distribution: rows of a table, as the densities are.

    @random_numbers(normal_lpdf)
    def normal_rng(rng, shape, mu, sigma):
        "how the numbers are drawn"
        return rng.normal(mu, sigma, shape)

    @random_numbers(multi_normal_lpdf, "multivariate normal distribution", "k", mu="k", Sigma="kk")
    def multi_normal_rng(rng, shape, mu, Sigma): ...

The function that draws is called with a generator, the shape of the draws and the values of the
arguments, after all checks. Titles and domains of the arguments are the density's, but
infinite parameters are refused as well."""

from __future__ import annotations

import inspect
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from varmat.core.domains import Domain, finite, integers, positive, positive_finite
from varmat.core.errors import ShapeError
from varmat.core.operation import is_differentiable
from varmat.core.variables import data as plain_data
from varmat.densities.density import Density, Domains, not_nan, positional
from varmat.densities.domains import Matrix, ScalarDomain
from varmat.densities.sources import docstring_sections, references
from varmat.densities.univariate import Univariate
from varmat.functions.checks import misfit, outside
from varmat.typing import Function, Operand, Plain, Result, Setting, Shape

Generator = np.random.Generator

__all__ = ["RandomNumbers", "random_numbers"]

# The largest rate for which NumPy draws Poisson counts.
LARGEST_RATE = float(2**63 - 10 * math.isqrt(2**63))
countable = Domain(
    f"at most {LARGEST_RATE:.3g}, because counts have 64 bits", lambda x: x <= LARGEST_RATE
)
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SETTINGS = [inspect.Parameter(name, _KEYWORD, default=None) for name in ("rng", "size")]


class Source(ABC):
    """Stands for a generator, and is given the calls of functions that draw."""

    @abstractmethod
    def draw(self, function: Drawn, args: tuple[Operand, ...], **kwargs: Setting) -> Result:
        """Draw the numbers of a call."""


class Drawn(Protocol):
    """A function that draws, for one call or for many."""

    def __call__(self, *args: Operand, rng: Operand, size: Operand) -> Result: ...

    def stacks(self, varying: Sequence[int]) -> bool:
        """Tell whether the arguments at some positions may have a row for each call."""

    def rows(
        self,
        count: int,
        args: Sequence[Operand],
        varying: Sequence[int],
        rng: np.random.Generator,
        size: int | Shape | None = None,
    ) -> np.ndarray:
        """Draw for many calls. The arguments at the positions `varying` have a row for each."""


def aligned(
    args: Sequence[Operand], varying: Sequence[int], missing: Sequence[int]
) -> list[Operand]:
    """Add missing axes after the rows of arguments that have rows: broadcasting aligns the last
    axes, and the rows must stay the first.
    """
    return [
        x.reshape(len(x), *(1,) * missing[i], *x.shape[1:]) if i in varying else x
        for i, x in enumerate(args)
    ]


class RandomNumbers:
    """A function that draws from a distribution; made by `random_numbers`.

    Attributes
    ----------
    name : str
    arguments : dict
        Name of an argument -> its title in messages and its domain.
    discrete : frozenset of str
        The arguments that are integers.
    family : Density or None
        The density or mass of the distribution, which refers to this function as its ``rng``.
    cores : dict
        Name of an argument -> one letter for each of its last axes, used by one draw. Letters
        after a slash are an alternative. An exclamation mark at the end forbids a stack.
    event : str
        The same for a draw.
    integer : bool
        Whether the draws are integers.
    """

    family: Setting = None
    demand: Setting = None

    def __init__(
        self,
        name: str,
        draw: Function,
        arguments: Domains,
        cores: dict[str, str],
        event: str,
        integer: bool,
        discrete: frozenset[str],
    ) -> None:
        self.__name__ = self.__qualname__ = self.name = name
        self.draw, self.arguments, self.cores = draw, arguments, cores
        self.event, self.integer, self.discrete = event, integer, discrete
        self.__signature__ = inspect.Signature([*positional(arguments), *_SETTINGS])

    def describe(self, module: str, density: Density | None, **words: str) -> None:
        """Set where the function is, and its docstring, and make it the ``rng`` of its density."""
        self.__module__, self.family = module, density
        if density is not None:
            density.rng = self
        kind = "int" if self.integer else "float"
        axes = f" Its last axes are ({', '.join(self.event.upper())})."
        if len(self.event) < 2:
            axes = " Its last axis is a draw." * len(self.event)
        self.__doc__ = _DOC.format(
            arguments=_argument_lines(self),
            kind=f"{kind}64",
            scalar="" if self.event else f" or {kind}",
            axes=axes,
            references=references(self.name),
            **words,
        )

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<varmat random numbers {self.name}{self.__signature__}>"

    def __call__(
        self,
        *args: Operand,
        rng: np.random.Generator | Source | int | None = None,
        size: int | Shape | None = None,
        **kwargs: Operand,
    ) -> Result:
        if kwargs or len(args) != len(self.arguments):
            try:
                args = self.__signature__.bind(*args, **kwargs).args
            except TypeError as error:
                raise TypeError(
                    f"{self.name}: {error}; the signature is {self.name}{self.__signature__}"
                ) from None
        if isinstance(rng, Source):
            return rng.draw(self, args, size=size)
        values = [self._value(name, x) for name, x in zip(self.arguments, args, strict=True)]
        if self.demand is not None:
            self.demand(
                self.name, [float(x) if not np.ndim(x) else x.astype(float) for x in values]
            )
        shape = self._shape(values, size)
        with np.errstate(all="ignore"):
            draws = self.draw(np.random.default_rng(rng), shape, *values)
        draws = np.asarray(draws, np.int64 if self.integer else np.float64)
        return draws if draws.ndim else draws.item()

    def stacks(self, varying: Sequence[int]) -> bool:
        """Tell whether the arguments at some positions may have a row for each call."""
        names = [name for i, name in enumerate(self.arguments) if i in varying]
        return not any(
            self.cores.get(name, "").endswith("!")
            or isinstance(self.arguments[name][1], (Matrix, ScalarDomain))
            for name in names
        )

    def rows(
        self,
        count: int,
        args: Sequence[Operand],
        varying: Sequence[int],
        rng: np.random.Generator,
        size: int | Shape | None = None,
    ) -> np.ndarray:
        """Draw for many calls. The arguments at the positions `varying` have a row for each."""
        first = [
            self._value(name, x[0] if i in varying else x)
            for i, (name, x) in enumerate(zip(self.arguments, args, strict=True))
        ]
        shape = self._shape(first, size)
        outer = [
            np.ndim(x) - len(self.core_of(name, x))
            for name, x in zip(self.arguments, first, strict=True)
        ]
        stacked = aligned(args, varying, [len(shape) - n for n in outer])
        return np.asarray(self(*stacked, rng=rng, size=(count, *shape)))

    def _value(self, name: str, x: Operand) -> Result:
        """Check an argument and return its plain value: floats, or 64-bit integers."""
        title, domain = self.arguments[name]
        if is_differentiable(x):
            raise TypeError(
                f"{self.name}: {title} is a variable, but a draw has no derivative: pass "
                "varmat.value of it!"
            )
        value = plain_data(x, f"{self.name}: {title}")
        core = self.core_of(name, value)
        alone = self.cores.get(name, "").endswith("!")
        if np.ndim(value) < len(core) or (alone and np.ndim(value) > len(core)):
            rule = {1: "a vector", 2: "a matrix"}[len(core)] + (
                "" if alone else " (or a stack of them)"
            )
            raise misfit(self.name, title, np.shape(value), f"be {rule}")
        domain.check(self.name, title, value)
        if name in self.discrete:
            integers.check(self.name, title, value)
            # Converted from the argument itself, large integers keep all digits.
            value = np.asarray(x).astype(np.int64)
        return value

    def cores_of(self, name: str) -> list[str]:
        return self.cores.get(name, "").removesuffix("!").split("/")

    def core_of(self, name: str, value: Operand) -> str:
        """Return the letters of the last axes of an argument."""
        first, *others = self.cores_of(name)
        return next((x for x in others if len(x) == np.ndim(value)), first)

    def _shape(self, values: Sequence[Plain], size: int | Shape | None) -> Shape:
        """Find the shape of the draws without the axes of a single draw."""
        lengths: dict[str, int] = {}
        owners: dict[str, str] = {}
        batch: Shape = ()
        for (name, (title, _)), value in zip(self.arguments.items(), values, strict=True):
            core, shape = self.core_of(name, value), np.shape(value)
            for letter, length in zip(core, shape[len(shape) - len(core) :], strict=True):
                if length == 1 and "" in self.cores_of(name)[1:]:  # one number for all of a vector
                    continue
                if lengths.setdefault(letter, length) != length:
                    rule = f"fit {owners[letter]}, which has {lengths[letter]}"
                    raise ShapeError(
                        f"{self.name}: {title} has shape {shape}, with {length} where it must "
                        f"{rule}!"
                    )
                owners.setdefault(letter, title)
            outer = shape[: len(shape) - len(core)]
            try:
                batch = np.broadcast_shapes(batch, outer)
            except ValueError:
                raise misfit(
                    self.name, title, shape, f"have a shape that broadcasts with {batch}"
                ) from None
        return wanted_shape(self.name, size, batch)


def wanted_shape(name: str, size: Setting, batch: Shape) -> Shape:
    """Find the shape of draws, from `size` and the shape of the arguments, which must fit it."""
    if size is None:
        return batch
    try:
        requested = tuple(operator.index(n) for n in (size if np.iterable(size) else (size,)))
    except TypeError:
        raise TypeError(
            f"{name}: size is {size!r}, but must be an integer or a tuple of integers!"
        ) from None
    if any(n < 0 for n in requested):
        raise outside(name, "size", size, "not be negative")
    try:
        fits = np.broadcast_shapes(batch, requested) == requested
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{name}: size is {requested}, but must be a shape to which the shape of the "
            f"arguments, {batch}, broadcasts!"
        )
    return requested


def without_infinities(domain: Domain) -> Domain:
    """Exclude infinities from a domain: densities have limits there, but draws do not."""
    if domain in (positive, not_nan):
        return positive_finite if domain is positive else finite
    if type(domain) is Domain and (domain.holds(math.inf) or domain.holds(-math.inf)):
        return Domain(f"{domain.phrase} finite", lambda x: domain.holds(x) & finite.holds(x))
    return domain


def poisson_counts(function: str, rng: Generator, rate: Operand, shape: Shape) -> Result:
    """Draw Poisson counts. Rates for which they do not fit into 64 bits are refused."""
    countable.check(function, "the rate of a count", rate)
    return rng.poisson(rate, shape)


def log_gamma(rng: Generator, alpha: Operand, shape: Shape) -> Result:
    """Draw logarithms of standard gamma numbers, even where these underflow: a draw of shape alpha
    + 1 is multiplied by U**(1 / alpha).
    """
    return np.log(rng.standard_gamma(alpha + 1.0, shape)) - rng.standard_exponential(shape) / alpha


def random_numbers(
    density: Density | None,
    title: str = "",
    event: str = "",
    integer: bool = False,
    **arguments: str | tuple[str, Domain] | tuple[str, Domain, str],
) -> Callable[[Function], RandomNumbers]:
    """Make the random numbers of a distribution: one row of the table.

    Parameters
    ----------
    density : Density or None
        The density or mass, from which titles and domains of the arguments come. It gets the
        function as its ``rng``.
    title : str
        The name of the distribution, if it has several variables.
    event : str
        One letter for each axis of a draw.
    integer : bool
        Whether draws are integers, if no density is given; draws for a mass are.
    **arguments : str or tuple
        One letter for each of the last axes of an argument, after "#" if it has integers; and its
        domain, if not that of the density without infinities; and its title, if the density has no
        such argument. The numbers that a distribution of one variable has need not be given.

    Returns
    -------
    callable
        Decorator for the function that draws. Its docstring says how the numbers are drawn, and
        shows an example if the distribution has several variables: the docstring of the random
        numbers has these as Notes and Examples.
    """

    row = density if isinstance(density, Univariate) else None

    def make(draw: Function) -> RandomNumbers:
        names = dict.fromkeys([*row.arguments][1:], "") | arguments if row else arguments
        domains, letters = {}, {}
        for name, x in names.items():
            parts = (x,) if isinstance(x, str) else x
            letters[name], domain, words = (*parts, None, None)[:3]
            if density is not None and words is None:
                words, cached = density.arguments[name]
                domain = domain or without_infinities(cached)
            domains[name] = words, domain
        discrete = {name for name, letter in letters.items() if letter.startswith("#")}
        result = RandomNumbers(
            draw.__name__,
            draw,
            domains,
            {name: core for name, letter in letters.items() if (core := letter.removeprefix("#"))},
            event,
            integer or (density is not None and density.name.endswith("_lpmf")),
            frozenset(discrete | (row.discrete & names.keys() if row else set())),
        )
        told_of = {"title": title, **docstring_sections(draw)}
        if row:
            told_of |= {"title": row.title, "examples": _example(result, row)}
            result.demand = row.demand and (
                # It does not depend on the observation, so any number may replace it.
                lambda function, values: row.check_demand(function, [0.0, *values])
            )
        result.describe(draw.__module__, density, **told_of)
        return result

    return make


def _example(result: RandomNumbers, density: Univariate) -> str:
    """Write the lines of a doctest."""
    values = [repr(x) for x in density.points[0][1:]]
    call, recompute = ", ".join([*values, "rng=1"]), ", ".join(["draws", *values])
    return f""">>> import varmat as vm
    >>> draws = vm.{result.name}({call}, size=100)
    >>> draws.shape
    (100,)
    >>> vm.{density.name}({recompute}) > float("-inf")
    True"""


def _argument_lines(result: RandomNumbers) -> str:
    """Format the arguments for a docstring."""
    lines = []
    for name, (title, domain) in result.arguments.items():
        core, *others = result.cores_of(name)
        # Matrices that are factorised are taken one at a time.
        stack = (
            ""
            if isinstance(domain, Matrix) or result.cores.get(name, "").endswith("!")
            else "..., "
        )
        shape = " of int" * (name in result.discrete)
        shape += f", shape ({stack}{', '.join(core.upper())})" if core else ""
        shape += "".join(f" or ({x.upper()},)" if x else " or a number" for x in others)
        kind = (
            ("int" if name in result.discrete else "float")
            if isinstance(domain, ScalarDomain)
            else f"array_like{shape}"
        )
        lines.append(f"    {name} : {kind}\n        {title}: {domain.phrase}.")
    return "\n".join(lines)


_DOC = """Draw from the {title}.

    Parameters
    ----------
{arguments}
    rng : numpy.random.Generator, optional
        The source of random numbers, or what `numpy.random.default_rng` makes one of: a seed, which
        gives the same draws again. By default it is a new one.
    size : int or tuple of int, optional
        The shape of the draws, to which the arguments broadcast; by default that to which they
        broadcast with each other.

    Returns
    -------
    ndarray of {kind}{scalar}
        Independent draws.{axes}

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the shapes do not fit.
    TypeError
        If an argument is a variable: a draw has no derivative.

    Notes
    -----
    {notes}

    References
    ----------
{references}

    Examples
    --------
    {examples}
"""
