"""The pointwise log-likelihood of a model, at one point and at draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.errors import ShapeError
from varmat.interrupts import Attempt
from varmat.models.at_draws import AtDraws
from varmat.models.blocks import Draws, of_blocks, rows_of
from varmat.models.functions import Named
from varmat.models.results import check_shapes, real_arrays
from varmat.programs.run.threads import one_blas_thread
from varmat.typing import Function, Operand, Shape

if TYPE_CHECKING:
    from concurrent.futures import Executor

NamedArrays = dict[str, np.ndarray]

# The name of a parameter of the log density, and of the group of ArviZ.
LOG_LIKELIHOOD = "log_likelihood"


def by_dimension(
    pointwise: Function, dims: Mapping[str, Sequence[str]], dim: str, /, **values: object
) -> dict[str, Operand]:
    """Return the log-likelihood of each label of a dimension, summed over all observations that
    have it.
    """
    total: Operand = 0.0
    for name, terms in pointwise(**values).items():
        names = dims.get(name, ())[: np.ndim(terms)]
        if dim not in names:
            raise TypeError(
                f"Model: log_likelihood is {dim!r}, but must be a dimension of all observations: "
                f"{name} has {', '.join(names) or 'none with a name'}!"
            )
        others = tuple(i for i, x in enumerate(names) if x != dim)
        total = total + (np.sum(terms, axis=others) if others else terms)
    return {LOG_LIKELIHOOD: total}


def chosen_terms(
    terms: Mapping[str, Operand], names: Sequence[str], data: Mapping[str, Operand]
) -> dict[str, Operand]:
    """Return the terms of a log density that are called after observations, which must not be
    sums.
    """
    for name in names:
        shape = np.shape(data[name])
        if shape and not np.shape(terms[name]):
            raise ShapeError(
                f"Model: the log density returned a number as its term {name}, but must return "
                f"the log density of each observation, so shape {shape}: a density such as "
                "varmat.normal_lpdf returns them by its attribute pointwise!"
            )
    return {name: terms[name] for name in names}


class LogLikelihood:
    """The pointwise terms of the log-likelihood of a model, at one point and at all draws.

    Parameters
    ----------
    function : callable
        Returns an array, or a dict of them.
    observed : sequence of str
        The data that are observations, if the user has named them.
    parameters, given : Mapping
        The parameters and the data of the model.
    title : str
        What the terms are, for messages: those of the log prior are computed in the same way.
    """

    def __init__(
        self,
        function: Function | bool,
        observed: Sequence[str],
        parameters: Mapping[str, object],
        data: Mapping[str, object],
        title: str = LOG_LIKELIHOOD,
    ) -> None:
        self.title = title
        for kind, names in (("a parameter", parameters), ("data", data)):
            if LOG_LIKELIHOOD in names:
                raise TypeError(
                    f"Model: {LOG_LIKELIHOOD} is {kind}, but must be the log-likelihood that is "
                    "given to the model alone!"
                )
        self.function = Named(title, function, data)  # type: ignore[arg-type]
        # In ArviZ a term has the name of the observations to which it belongs.
        self._name = observed[0] if len(observed) == 1 else LOG_LIKELIHOOD

    def at(self, values: dict[str, Operand]) -> dict[str, Operand]:
        """Return the terms by name."""
        result = self.function(values)
        if result is None:
            raise TypeError(
                "Model: log_likelihood returned None (is a return statement missing?), but must "
                "return an array!"
            )
        return dict(result) if isinstance(result, Mapping) else {self._name: result}

    @one_blas_thread()
    def of_draws(
        self,
        completed: Function,
        arrays: NamedArrays,
        shape: tuple[int, int],
        allows: Callable[[Exception], bool],
        executor: Executor | str | None = None,
    ) -> NamedArrays:
        """Return the terms at draws of the parameters, arrays of shape (chains, draws, ...); nan
        where an error is allowed. `completed` is that method of the model.
        """
        inner = {name: x.shape[2:] for name, x in arrays.items()}
        rows = rows_of(arrays)
        block = _Pointwise(self, completed, inner, allows, rows, executor is None)
        blocks = of_blocks(self.title, block, rows, executor)
        shapes = next(
            ({n: x.shape[1:] for n, x in value.items()} for value, _ in blocks if value), {}
        )
        terms: NamedArrays = {}
        for item, size in blocks:
            if not item:
                item.update((name, np.full((size, *s), np.nan)) for name, s in shapes.items())
            elif size:
                check_shapes(self.title, {n: x[0] for n, x in item.items()}, shapes)
        for name, s in shapes.items():
            # Each part is dropped as soon as it is joined, because terms may fill the memory.
            parts = [x.pop(name) for x, _ in blocks]
            joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
            terms[name] = joined.reshape(shape + s)
        return terms

    def plain(self, values: dict[str, object]) -> NamedArrays:
        """Return the terms at plain values; the function receives copies of them."""
        return real_arrays(f"Model: {self.title}", self.at(values))


class _Pointwise:
    """What workers have: the terms at the draws of a block, None where an error is allowed.

    Parameters
    ----------
    terms : LogLikelihood
    completed : callable
        Adds the transformed parameters to parameters.
    inner : dict of str to tuple of int
        The shapes of the parameters, which are in sequence in a row of a block.
    allows : callable
        Whether an error is allowed.
    rows : ndarray
        All draws. Where that pays, the terms are recorded, once for each worker.
    is_alone : bool
        Whether there is only one worker, so that threads may share a block.
    """

    def __init__(
        self,
        terms: LogLikelihood,
        completed: Function,
        inner: dict[str, Shape],
        allows: Callable[[Exception], bool],
        rows: np.ndarray,
        is_alone: bool,
    ) -> None:
        self._terms, self._completed, self._allows = terms, completed, allows
        self._at_draws = AtDraws(self._values, inner, None if is_alone else "serial")
        there = rows[~np.isnan(rows).all(axis=1)][:1]
        self._is_recorded = len(there) > 0 and self._at_draws.pays(there[0], len(rows))

    def _values(self, values: dict[str, Operand], _: Operand) -> dict[str, Operand]:
        return self._terms.at(self._completed(values))

    def __call__(self, block: Draws) -> tuple[NamedArrays, int]:
        """Return the terms in rows, nan where an error is allowed, and the number of rows."""
        points, result = block.rows, NamedArrays()
        # Where all are nan, the chain was interrupted.
        left = np.flatnonzero(~np.isnan(points).all(axis=1)).tolist()

        def once(i: int, _: object, first_terms: NamedArrays) -> NamedArrays:
            with Attempt(self._allows), block.noted(self._terms.title, left[i]):
                values = self._completed(self._at_draws.named(points[left[i]]))
                row = self._terms.plain(values)
                if first_terms:
                    check_shapes(
                        self._terms.title, row, {n: x.shape[1:] for n, x in first_terms.items()}
                    )
                return row
            return {}

        recorded = None
        if self._is_recorded and left:
            recorded = self._at_draws.everywhere(points[left], np.random.default_rng(0), once)
        if recorded is not None and len(left) < len(points):
            recorded = {name: _spread(x, left, len(points)) for name, x in recorded.items()}
        for i in range(len(left)) if recorded is None else ():
            for name, x in once(i, None, result).items():
                if name not in result:
                    result[name] = np.full((len(points), *x.shape), np.nan)
                result[name][left[i]] = x
        return result if recorded is None else recorded, len(points)


def _spread(rows: np.ndarray, indices: Sequence[int], count: int) -> np.ndarray:
    """Spread rows over an array of `count` rows; the others are nan."""
    result = np.full((count, *rows.shape[1:]), np.nan)
    result[indices] = rows
    return result
