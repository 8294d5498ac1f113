"""Discrete parameters, which the log density sums over, because no gradient leads from one of their
values to another.

The functions of a model are called once for each value, with all elements of the parameter at that
value. If each observation depends on one element only, the sum is made element by element: its
terms are as many as elements times values. Evaluations at a few points find out which element that
is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.densities.random_numbers.row import Source
from varmat.densities.univariate import Univariate
from varmat.distributions.distribution import Distribution
from varmat.distributions.rows import OfRow
from varmat.functions.arrays.exponentials import logsumexp
from varmat.models.arguments import Declared, check_declarations
from varmat.models.bounds import checked_shape
from varmat.models.functions import Named
from varmat.models.observations import names_of

if TYPE_CHECKING:
    from typing import Unpack

    from varmat.models.arguments import Declarations
    from varmat.models.statement_checks import Stated
    from varmat.typing import Function, Operand, Plain, Result, Shape

__all__ = ["discrete"]

# The most terms of a sum over several parameters or elements jointly.
LARGEST = 1000
# Random values of all elements at which the elements of observations are verified.
_RANDOM = 8
# The log densities of observations that are certain, or impossible, whatever the parameters are, as
# detections where a species is absent. They are not evaluated, because recordings end at such
# parameters, and a derivative may be infinite there, times a probability of zero.
_KNOWN = (0.0, -np.inf)


@final
class Discrete:
    """A discrete parameter; made by `varmat.discrete`.

    Attributes
    ----------
    support : ndarray
        The values of an element.
    shape : tuple of int
    declaration : Declared
    """

    declaration: Declared

    def __init__(self, support: np.ndarray, shape: Shape) -> None:
        self.support, self.shape = support, shape

    def __repr__(self) -> str:
        return f"Discrete({np.array2string(self.support, threshold=6)}, shape={self.shape})"

    def draw(self, prior: Distribution | None, rng: np.random.Generator) -> Plain:
        """Draw from the prior, by default from all values with equal probability."""
        if prior is None:
            return rng.choice(self.support, self.shape)
        return prior.like(np.zeros(self.shape), rng)

    def check(self, function: str, name: str, x: np.ndarray) -> None:
        """Raise if numbers are not values of the parameter."""
        outside = ~np.isin(x, self.support)
        if np.any(outside):
            raise DomainError(
                f"{function}: {name} is {x[outside][0]} in a draw from its prior, but must be in "
                "its support: give more values, or restrict the prior by .truncated(lower, upper)!"
            )


def discrete(
    support: Operand, *shape: int | Shape, **declarations: Unpack[Declarations]
) -> Discrete:
    """Declare a discrete parameter of a `Model`, summed out: switch points, indicators, categories.

    Distributions and named values use it as if its values were known. The log density is the
    logarithm of the sum over all values. Results have draws of it, and the probability of each
    value given the other parameters and the data, in ``z_probability`` for a parameter ``z``.

    Parameters
    ----------
    support : array_like, shape (k,)
        The values that an element may have.
    *shape : int, or one tuple of int
        None for a scalar, one size for a vector, and so on.
    **stated
        The `prior`, by default the same for all values, and the `dims`: see `real`. The density is
        not divided by the probability of the support.

    Returns
    -------
    Discrete

    Raises
    ------
    DomainError
        If the support is not a vector of different finite numbers.
    ShapeError
        If a size is not a nonnegative integer.

    Notes
    -----
    The elements of a vector are summed out one by one, in ``n * k`` terms, if each observation
    depends on one of them, as by ``mu[z]`` or ``mu[z[group]]``. The model finds out which one.
    Otherwise all elements are summed out jointly, if these are 1,000 terms at most, and refused
    if they are more. So are several discrete parameters on which the same observations depend.

    Results have the log-likelihood of each observation, if each has a separate element.
    Otherwise they have the log-likelihood of each element, under the name of the parameter.

    Examples
    --------
    >>> import numpy as np, varmat as vm, varmat.distributions as dist
    >>> model = vm.Model(
    ...     z=vm.discrete([0, 1], 4, prior=dist.Bernoulli(0.3)),
    ...     mu=vm.ordered(2, prior=dist.Normal(0.0, 5.0)),
    ...     y=vm.observed([-2.1, 3.2, 2.9, -1.8], lambda mu, z: dist.Normal(mu[z], 1.0)),
    ... )
    >>> values = model.constrain([-2.0, np.log(5.0)], include_gq=True)
    >>> values["z"], values["z_probability"].round(3)[0]
    (array([0, 1, 1, 0]), array([1., 0.]))
    """
    values = np.asarray(support)
    if not (
        values.ndim == 1
        and values.size
        and values.dtype.kind in "biuf"
        and np.all(np.isfinite(values))
        and len(np.unique(values)) == values.size
    ):
        raise DomainError(
            f"discrete: support is {support!r}, but must be a vector of different finite numbers!"
        )
    check_declarations("discrete", declarations.keys())
    make = partial(Discrete, values)
    result = make(checked_shape("discrete", shape))
    result.declaration = Declared(
        declarations.get("prior"), names_of(declarations.get("dims", ())), make
    )
    return result


# --- statements ---


class Term(NamedTuple):
    """A distribution that depends on discrete parameters, or is the prior of one.

    Attributes
    ----------
    name : str
        The name of the observations or the parameter.
    stated : Stated
    y : ndarray or None
        The observations; None for the value of that name.
    where : ndarray or None
        The places of the observations that are not missing, if some are.
    is_observed : bool
    """

    name: str
    stated: Stated
    y: np.ndarray | None = None
    where: np.ndarray | None = None
    is_observed: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.name, *self.stated.names)

    def terms(self, values: dict[str, object], certain: np.ndarray | None = None) -> Result:
        """Return the log density of each observation; `certain` has the known ones, nan for the
        others.
        """
        if certain is None or self.y is None:
            return self.stated.pointwise(values, values[self.name] if self.y is None else self.y)
        return self.stated.weighted(_where_varying(self.stated.at(values), self.y, certain))

    def total(self, values: dict[str, object]) -> Result:
        """Return the log density of all observations."""
        y = values[self.name] if self.y is None else self.y
        return self.stated.log_density(values, y, False)


class OwnTerms(NamedTuple):
    """The terms of the log density of the user.

    Attributes
    ----------
    density : callable
        A function of the named values and of `propto`; returns a term, or several.
    needs : tuple of str
        What it depends on.
    """

    density: Function
    needs: tuple[str, ...]
    name: str = "the log density"
    where: np.ndarray | None = None
    is_observed: bool = False

    def terms(self, values: dict[str, object], certain: np.ndarray | None = None) -> Result:
        terms = self.density(values, False)
        parts = terms if isinstance(terms, (tuple, list)) else (terms,)
        result = [np.reshape(x, (-1,)) for x in parts]
        return np.concatenate(result) if result else np.zeros(0)

    def total(self, values: dict[str, object]) -> Result:
        return np.sum(self.terms(values))


def _where_varying(distribution: Distribution, y: np.ndarray, certain: np.ndarray) -> Result:
    """Return the log density of each observation, evaluated only where it is not known."""
    varying = np.isnan(certain)
    if not np.any(varying):
        return certain
    if not (isinstance(distribution, OfRow) and isinstance(distribution.row, Univariate)):
        return distribution.lpdf.pointwise(y)
    values = (
        np.broadcast_to(x, y.shape)[varying] if np.ndim(x) else x
        for x in distribution.parameters.values()
    )
    terms = type(distribution)(*values).lpdf.pointwise(y[varying])
    # The places of those that are evaluated, and of the two that follow.
    indices = np.where(varying, np.cumsum(varying).reshape(y.shape) - 1, np.where(certain, -1, -2))
    return np.concatenate([terms, _KNOWN])[indices]


# --- sums ---


class _Choice:
    """Draws the values of discrete parameters, in sequence in a vector.

    Parameters
    ----------
    tables : list of ndarray
        The values of each parameter at each term of the sum.
    """

    def __init__(self, tables: Sequence[np.ndarray]) -> None:
        self._tables = tables

    def __call__(self, *args: Operand, rng: Operand, size: Operand = None) -> Plain:
        (p,) = args
        ends = np.cumsum(p, axis=-1)
        u = rng.random((*p.shape[:-1], 1)) * ends[..., -1:]
        chosen = np.minimum(np.sum(u >= ends, axis=-1), p.shape[-1] - 1)
        outer = p.shape[:-2]
        return np.concatenate([x[chosen].reshape(*outer, -1) for x in self._tables], axis=-1)

    def stacks(self, varying: Sequence[int]) -> bool:
        return True

    def rows(
        self, count: int, args: Sequence[Operand], varying: Sequence[int],
        rng: np.random.Generator, size: int | Shape | None = None,
    ) -> np.ndarray:  # fmt: skip
        (p,) = args
        return np.asarray(self(p if varying else np.broadcast_to(p, (count, *p.shape)), rng=rng))


def _same(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.all(np.isclose(x, y, 1e-9, 1e-9, equal_nan=True)))


class SummedOut:
    """Discrete parameters on which the same statements depend, summed out together.

    Parameters
    ----------
    variables : dict of str to Discrete
    derived : dict of str to Named
        Named values that depend on them, in order.
    statements : sequence of Term or OwnTerms
    points : callable
        Calls a function with plain values at several points; returns these values and the results.
    """

    def __init__(
        self,
        variables: Mapping[str, Discrete],
        derived: Mapping[str, Named],
        statements: Sequence[Term | OwnTerms],
        points: Function,
    ) -> None:
        self.variables, self.derived, self.statements = dict(variables), derived, statements
        self._points = points
        shapes = {variable.shape for variable in variables.values()}
        # The log densities that are known, by term and statement; the others are nan.
        self._outcomes: dict[tuple[int, int], np.ndarray] = {}
        # For each statement the shape of its terms, and the indices of each element's terms; None
        # if these are its rows.
        self._shapes: list[Shape] = [()] * len(statements)
        self._places: list[np.ndarray | None] = [None] * len(statements)
        self._is_prepared = False
        if len(shapes) == 1:
            self._choose(shapes.pop(), dict.fromkeys(variables, 1))
        else:
            self._sum_jointly("have different shapes")

    def _sum_jointly(self, reason: str) -> None:
        self._choose((), {n: math.prod(x.shape) for n, x in self.variables.items()}, reason)

    def _choose(self, outer: Shape, sizes: Mapping[str, int], reason: str = "are several") -> None:
        """Set the shape of the elements that are summed out one by one, and the values of each
        parameter at each term.
        """
        counts = {name: len(x.support) for name, x in self.variables.items()}
        count = math.prod(counts[name] ** size for name, size in sizes.items())
        if count > LARGEST and sum(sizes.values()) > 1:
            raise TypeError(
                f"Model: {', '.join(sizes)} {reason}, so they are summed out jointly, in {count} "
                f"terms, but must have at most {LARGEST} terms: let each observation depend on one "
                "element of one discrete parameter! varmat.distributions.HiddenMarkov sums over a "
                "chain of states."
            )
        digits = np.array(
            [*product(*(range(counts[n]) for n, size in sizes.items() for _ in range(size)))], int
        ).reshape(count, -1)
        self.outer, self._count, self._elements = outer, count, math.prod(outer)
        self._tables: dict[str, np.ndarray] = {}
        start = 0
        for name, variable in self.variables.items():
            end = start + sizes[name]
            inner = variable.shape[len(outer) :]
            self._tables[name] = variable.support[digits[:, start:end]].reshape(count, *inner)
            start = end

    def _at(self, values: Mapping[str, object], terms: np.ndarray) -> dict[str, Operand]:
        """Return all values, with the elements as in some terms of the sum."""
        chosen = {name: table[terms] for name, table in self._tables.items()}
        return self._with_derived({**values, **chosen})

    def _with_derived(self, values: dict[str, object]) -> dict[str, Operand]:
        for name, function in self.derived.items():
            values[name] = function(values)
        return values

    # --- which observations belong to which element ---

    def _prepare(self) -> None:
        """Find out which observations depend on which element, and which are certain or impossible,
        by evaluations at several points.
        """
        with np.errstate(all="ignore"):
            points, logs = self._points(self._at_all_terms)
            if self._elements > 1 and (shared := self._find_elements(points, logs)):
                self._sum_jointly(f"have elements that share {shared}")
                logs = [self._at_all_terms(values) for values in points]
        for i, statement in enumerate(self.statements):
            self._shapes[i] = logs[0][i].shape[1:]
            if isinstance(statement, Term) and statement.is_observed:
                x = np.stack([item[i] for item in logs])
                is_known = np.all((x == x[0]) & np.isin(x, _KNOWN), axis=0)
                for k in np.flatnonzero(is_known.reshape(self._count, -1).any(axis=1)).tolist():
                    # A continuous distribution may have an end that depends on parameters.
                    at = self._at(points[0], np.full(self.outer, k))
                    if statement.stated.at(at).is_discrete:
                        self._outcomes[k, i] = np.where(is_known[k], x[0, k], np.nan)
        self._is_prepared = True

    def _pointwise(self, values: Mapping[str, object], terms: np.ndarray) -> list[np.ndarray]:
        at = self._at(values, terms)
        return [np.asarray(statement.terms(at)) for statement in self.statements]

    def _at_all_terms(self, values: Mapping[str, object]) -> list[np.ndarray]:
        """Return for each statement its log densities at each term, which all elements share."""
        rows = [self._pointwise(values, np.full(self.outer, k)) for k in range(self._count)]
        return [np.stack(row) for row in zip(*rows, strict=True)]

    def _find_elements(
        self, points: Sequence[Mapping[str, object]], logs: Sequence[list[np.ndarray]]
    ) -> str:
        """Find the element of each observation, and return a statement with an observation that
        depends on several; empty if none does.

        The number of an element is read bit by bit: an observation changes where the elements that
        have a bit get another value, if its element has it.
        """
        numbers = np.arange(self._elements).reshape(self.outer)
        bits = range((self._elements - 1).bit_length())
        # The first term that makes a difference to each observation; 0 if none does.
        firsts = [[np.argmax(x != x[:1], axis=0) for x in value] for value in logs]
        others = {1, *(k for value in firsts for x in value for k in np.unique(x).tolist())} - {0}
        index = [np.full(x.shape[1:], -1) for x in logs[0]]
        for values, base, first in zip(points, logs, firsts, strict=True):
            unread = [(x < 0) & (k > 0) for x, k in zip(index, first, strict=True)]
            if not any(map(np.any, unread)):
                continue
            read = [np.zeros(x.shape, int) for x in index]
            for bit, k in product(bits, others):
                now = self._pointwise(values, np.where(numbers >> bit & 1, k, 0))
                for i, x in enumerate(now):
                    read[i] += ((first[i] == k) & (x != base[i][0])).astype(int) << bit
            for i, x in enumerate(index):
                x[...] = np.where(unread[i], read[i], x)
        # Observations that depend on no element may be those of any.
        rows = [self._own_rows(x.shape) for x in index]
        index = [np.where(x < 0, row, x) for x, row in zip(index, rows, strict=True)]
        rng = np.random.default_rng(0)
        tried = [np.where(numbers >> b & 1, *pair) for b in bits for k in others
                 for pair in ((k, 0), (0, k))]  # fmt: skip
        tried += [rng.integers(self._count, size=self.outer) for _ in range(_RANDOM)]
        for values, base in zip(points, logs, strict=True):
            for terms in tried if values is points[0] else tried[-_RANDOM:]:
                now = self._pointwise(values, terms)
                for i, (x, item) in enumerate(zip(now, index, strict=True)):
                    term = terms.ravel()[np.minimum(item, self._elements - 1)][np.newaxis]
                    if not _same(x, np.take_along_axis(base[i], term, 0)[0]):
                        return f"an observation of {self.statements[i].name}"
        self._places = [
            None if np.array_equal(x, row) and row.shape[: len(self.outer)] == self.outer
            else self._padded(x)
            for x, row in zip(index, rows, strict=True)
        ]  # fmt: skip
        return ""

    def _own_rows(self, shape: Shape) -> np.ndarray:
        """Return the element of each observation if the observations of an element are a row."""
        axes = len(self.outer)
        if shape[:axes] != self.outer:
            return np.zeros(shape, int)
        rows = np.arange(self._elements).reshape(*self.outer, *(1,) * (len(shape) - axes))
        return np.broadcast_to(rows, shape)

    def _padded(self, index: np.ndarray) -> np.ndarray:
        """Return the indices of the observations of each element, padded with one behind the
        last.
        """
        counts = np.bincount(index.ravel(), minlength=self._elements)[:, np.newaxis]
        steps = np.arange(np.max(counts))
        indices = np.full((self._elements, steps.size), index.size)
        indices[steps < counts] = np.argsort(index, axis=None, kind="stable")
        return indices

    # --- densities ---

    def _logs(self, values: Mapping[str, object], priors_only: bool = False) -> Result:
        """Return the log density of each element at each term of the sum, of shape (terms,
        elements).
        """
        if not self._is_prepared:
            self._prepare()
        chosen = [i for i, x in enumerate(self.statements) if not (priors_only and x.is_observed)]
        rows = []
        for k in range(self._count):
            at = self._at(values, np.full(self.outer, k))
            parts = [self._by_element(i, at, self._outcomes.get((k, i))) for i in chosen]
            rows.append(sum(parts[1:], parts[0]) if parts else np.zeros(self._elements))
        return np.stack(rows)

    def _by_element(self, i: int, values: dict[str, object], certain: np.ndarray | None) -> Result:
        """Return the log density that a statement gives the observations of each element."""
        statement, indices, count = self.statements[i], self._places[i], self._elements
        if count == 1:
            if certain is None:
                return np.reshape(statement.total(values), (1,))
            return np.reshape(np.sum(statement.terms(values, certain)), (1,))
        terms = statement.terms(values, certain)
        if indices is not None:
            return np.sum(np.append(terms, 0.0)[indices], axis=1)
        return terms if np.shape(terms) == (count,) else np.sum(
            np.reshape(terms, (count, -1)), axis=1
        )  # fmt: skip

    def _uniform(self) -> float:
        """Return the log prior of all elements of parameters that state none."""
        return -sum(
            math.log(len(x.support)) * math.prod(x.shape)
            for x in self.variables.values()
            if x.declaration.prior is None
        )

    def log_density(self, values: Mapping[str, object]) -> Result:
        """Return the logarithm of the sum over all values of the discrete parameters."""
        return np.sum(logsumexp(self._logs(values), axis=0)) + self._uniform()

    def log_likelihood(self, values: Mapping[str, object]) -> dict[str, Operand]:
        """Return the log-likelihood of each element, or of each observation if all have separate
        elements.
        """
        observed = [i for i, x in enumerate(self.statements) if x.is_observed]
        if not observed:
            return {}
        terms = logsumexp(self._logs(values), axis=0)
        terms = terms - logsumexp(self._logs(values, priors_only=True), axis=0)
        (i, *others), (name, *_) = observed, self.variables
        if others or self._places[i] is not None or self._shapes[i] != self.outer:
            is_own = self.outer == self.variables[name].shape
            name = name if is_own else "_".join([*self.variables, "jointly"])
            return {name: np.reshape(terms, self.outer)}
        statement = self.statements[i]
        if statement.where is not None:
            return {f"{statement.name}_observed": terms[statement.where]}
        return {statement.name: np.reshape(terms, self.outer)}

    # --- draws ---

    def _drawn(
        self, values: Mapping[str, object], rng: object
    ) -> tuple[dict[str, Operand], Result]:
        """Draw the parameters, given all others and the data. Returns also the probability of each
        term, of shape (elements, terms).
        """
        logs = self._logs(values).T
        p = np.exp(logs - np.reshape(logsumexp(logs, axis=1), (-1, 1)))
        choice = _Choice([*self._tables.values()])
        drawn = rng.draw(choice, (p,)) if isinstance(rng, Source) else choice(p, rng=rng)
        result: dict[str, Operand] = {}
        start = 0
        for name, variable in self.variables.items():
            end = start + math.prod(variable.shape)
            result[name] = as_values(drawn[start:end], variable)
            start = end
        return result, p

    def completed(self, values: dict[str, object], rng: object) -> dict[str, Operand]:
        """Add the parameters, drawn if they are missing, and the values that depend on them."""
        if values.keys() >= self.variables.keys():
            drawn = {name: as_values(values[name], x) for name, x in self.variables.items()}
        else:
            drawn, _ = self._drawn(values, rng)
        return self._with_derived({**values, **drawn})

    def quantities(self, values: dict[str, object], rng: object) -> dict[str, Operand]:
        """Return draws of the parameters, the values that depend on them, and the probabilities."""
        drawn, p = self._drawn(values, rng)
        completed = self._with_derived({**values, **drawn})
        result = {name: completed[name] for name in (*drawn, *self.derived)}
        for name, variable in self.variables.items():
            result[f"{name}_probability"] = np.reshape(
                p @ self._indicator(name), (*variable.shape, len(variable.support))
            )
        return result

    def _indicator(self, name: str) -> np.ndarray:
        """Mark which values a parameter has at each term, one column for each element and value."""
        table, support = self._tables[name], self.variables[name].support
        shares: np.ndarray = table[..., np.newaxis] == support
        return shares.reshape(self._count, -1).astype(float)


def as_values(x: Operand, variable: Discrete) -> Operand:
    """Convert numbers to values of a discrete parameter, with its shape and dtype."""
    x = np.reshape(x, variable.shape)
    return x if is_differentiable(x) else x.astype(variable.support.dtype)


def summed_out(
    variables: Mapping[str, Discrete],
    derived: Mapping[str, Named],
    statements: Sequence[Term | OwnTerms],
    points: Function,
) -> list[SummedOut]:
    """Group discrete parameters by the statements that depend on several of them."""
    reach = {name: {name} for name in variables}
    for name, function in derived.items():
        reach[name] = set().union(*(reach.get(n, ()) for n in function.names))
    uses = [set().union(*(reach.get(n, ()) for n in statement.needs)) for statement in statements]
    groups = [{name} for name in variables]
    for item in [*uses, *reach.values()]:
        joined = [group for group in groups if group & item]
        groups = [group for group in groups if not group & item]
        groups += [set().union(*joined)] if joined else []
    return [
        SummedOut(
            {name: x for name, x in variables.items() if name in group},
            {name: f for name, f in derived.items() if reach[name] & group},
            [statement for statement, use in zip(statements, uses, strict=True) if use & group],
            points,
        )
        for group in groups
    ]
