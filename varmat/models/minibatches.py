"""The log density of a model for minibatches: some rows of its data, that count for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.errors import ShapeError
from varmat.derivatives.recorded_batches import RecordedBatches
from varmat.functions.checks import misfit
from varmat.models.likelihood import LOG_LIKELIHOOD
from varmat.models.observations import names_of
from varmat.models.unpacking import sum_of_terms
from varmat.typing import Function, Operand, Result

if TYPE_CHECKING:
    from varmat.models.density import NamedDensity

_NAME = "Model.minibatch_gradient"


class MinibatchGradient:
    """Estimates of the log density of a model and its gradient from some rows of the data; made by
    `Model.minibatch_gradient`.

    Attributes
    ----------
    rows : tuple of str
        The names of the data that have rows.
    count : int
        The number of rows.
    recordings : int
        The number of programs that were recorded: one for each size of minibatch.
    obstacle : Exception or None
        Why minibatches cannot be recorded, if they cannot: then the functions of the model are
        evaluated at each call.
    """

    def __init__(
        self, model: NamedDensity, rows: str | Sequence[str] | None, jacobian: bool
    ) -> None:
        self._model, self._jacobian = model, jacobian
        self._data = dict(model._arguments["data"])
        self._data |= {name: part.y for name, part in model.stated.parts.items()}
        self.rows, self.count = self._rows(rows)
        self._check()
        self._recorded = RecordedBatches(self._of_rows, self.count, model.recorded is not False)

    @property
    def recordings(self) -> int:
        return self._recorded.recordings

    @property
    def obstacle(self) -> Exception | None:
        return self._recorded.obstacle

    def __repr__(self) -> str:
        return f"<minibatch gradient of {self.count} rows of {', '.join(self.rows)}>"

    def __call__(self, q: Operand, rows: Operand) -> tuple[float, np.ndarray]:
        """Estimate the log density and its gradient.

        Parameters
        ----------
        q : array_like, shape (N,)
            The unconstrained point.
        rows : array_like of int, shape (n,)
            The indices of the rows.

        Returns
        -------
        value : float
            The log-likelihood of the rows is multiplied by the number of all rows over `n`, so that
            the mean over random rows is the log density. All constant terms count.
        gradient : ndarray, shape (N,)

        Raises
        ------
        ShapeError
            If `q` or `rows` has another shape, or `rows` is empty.
        TypeError, IndexError
            If `rows` are not indices of rows.
        """
        point, index = self._model.point(_NAME, q), np.asarray(rows)
        if index.dtype.kind not in "iu":
            raise TypeError(f"{_NAME}: rows has dtype {index.dtype}, but must be integers!")
        if index.ndim != 1 or not index.size:
            raise misfit(_NAME, "rows", index.shape, "be a vector of at least one index")
        if not (index.min() >= 0 and index.max() < self.count):
            wrong = index[(index < 0) | (index >= self.count)][0]
            raise IndexError(
                f"{_NAME}: rows has {wrong}, but must have indices from 0 to {self.count - 1}!"
            )
        return self._recorded(np.ascontiguousarray(point), index)

    def _rows(self, rows: str | Sequence[str] | None) -> tuple[tuple[str, ...], int]:
        """Return the names of the data with rows, and the number of these."""
        observed = [x for x in self._model.observed if np.ndim(self._data[x])]
        observed += [x for x in self._model._named_terms if x not in observed]
        names = observed if rows is None else names_of(rows)
        for name in names:
            if name not in self._data or not np.ndim(self._data[name]):
                raise TypeError(
                    f"{_NAME}: rows has {name!r}, but must have observations or data: "
                    f"{', '.join(self._data) or 'there are none'}!"
                )
        if not names:
            raise TypeError(
                f"{_NAME}: the model has no observations with names, but must have varmat.observed "
                "or a log density that returns a dict!"
            )
        count = len(self._data[names[0]])
        for name in names:
            if len(self._data[name]) != count:
                raise ShapeError(
                    f"{_NAME}: {name} has {len(self._data[name])} rows, but must have as many as "
                    f"{names[0]}, {count}: name the data with rows, as in rows=[{names[0]!r}]!"
                )
        if rows is None:
            names = [name for name, x in self._data.items() if np.shape(x)[:1] == (count,)]
        return tuple(names), count

    def _check(self) -> None:
        """Refuse models whose log density is not a sum over rows, as far as is known."""
        model = self._model
        names = {*self.rows} & {*model.stated.incomplete}
        if model.stated.discrete or names:
            what = f"missing {names.pop()}" if names else "discrete parameters"
            raise TypeError(f"{_NAME}: the model has {what}, but must not have any!")
        if LOG_LIKELIHOOD in model._density.names:
            raise TypeError(
                f"{_NAME}: the log density takes log_likelihood, but must return a dict of terms "
                "instead!"
            )

    def _of_rows(self, index: np.ndarray, size: int) -> Function:
        """Return the log density for some rows, where `size` of them count for all."""
        data = {name: _chosen(self._data[name], index) for name in self.rows}
        part = self._model.with_data(**data)
        for name, stated in self._model.stated.parts.items():
            weights = stated.stated.weights
            if name in self.rows and weights is not None and np.shape(weights)[:1] == (self.count,):
                part.stated.parts[name].stated.weights = weights[index]
        return partial(self._log_density, part, self.count / size)

    def _log_density(self, model: NamedDensity, scale: float, q: Operand) -> Result:
        """Return the log density of a model, the log-likelihood of rows times a scale."""
        values, log_jacobians = model.layout.unpack(q, self._jacobian)
        values = model.completed(values)
        stated = model.stated.terms(values, False, self._jacobian, self.rows)
        rows = [
            part.stated.pointwise(values, part.y)
            for name, part in model.stated.parts.items()
            if name in self.rows
        ]
        own = model._density(values, propto=False)
        if isinstance(own, Mapping):
            rows += [x for name, x in own.items() if name in self.rows]
            stated += [x for name, x in own.items() if name not in self.rows]
        else:
            read = {*self.rows}.intersection(model._density.names)
            if read:
                raise TypeError(
                    f"{_NAME}: the log density reads {read.pop()} and returns no dict, but must "
                    "return a dict of terms, such as {'y': varmat.normal_lpdf.pointwise(y, mu, 1)}!"
                )
            stated += own if isinstance(own, (tuple, list)) else [own]
        return sum_of_terms(*stated, *log_jacobians, *(scale * np.sum(x) for x in rows))


def _chosen(x: Any, index: np.ndarray) -> Any:
    """Return some rows of data, also of pandas and xarray."""
    if hasattr(x, "iloc"):
        return x.iloc[index]
    if hasattr(x, "isel"):
        return x.isel({x.dims[0]: index})
    return np.asarray(x)[index]
