"""Intrinsic conditional autoregressions: effects of areas that resemble those of neighbours."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.density import HALF_LOG_TWO_PI
from varmat.distributions.distribution import Distribution
from varmat.distributions.terms import DensityTerms
from varmat.functions.checks import misfit
from varmat.typing import Operand, Plain, Result, Shape


class _Spectrum(NamedTuple):
    """The eigenvectors of the Laplacian of a graph but the constant one, and their eigenvalues."""

    vectors: np.ndarray
    values: np.ndarray

    @property
    def typical_variance(self) -> float:
        """The geometric mean of the variances of the elements at scale 1."""
        variances = np.sum(self.vectors**2 / self.values, axis=1)
        return float(np.exp(np.mean(np.log(variances))))


@lru_cache(maxsize=16)
def _spectrum(count: int, pairs: bytes) -> _Spectrum:
    """Check a graph, and decompose it: once for many evaluations of a model."""
    edges = np.frombuffer(pairs, np.int64).reshape(-1, 2)
    _check_edges(edges, count)
    first, second = edges.T
    laplacian = np.zeros((count, count))
    np.add.at(laplacian, (first, second), -1.0)
    np.add.at(laplacian, (second, first), -1.0)
    laplacian -= np.diag(laplacian.sum(axis=1))
    values, vectors = np.linalg.eigh(laplacian)
    if count > 1 and values[1] < 1e-10 * count:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        _, labels = connected_components(csr_array(laplacian != 0.0))
        other = int(np.argmax(labels != labels[0]))
        raise DomainError(
            f"ICAR: no path of neighbours leads from area 0 to area {other}, but all areas must be "
            "connected: give each connected part a distribution of its own!"
        )
    return _Spectrum(vectors[:, 1:], values[1:])


class ICAR(Distribution):
    """An intrinsic conditional autoregression: each element is normal around the mean of
    its neighbours. Its elements sum to zero.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Pairs of neighbours, counted from 0, each once.
    count : int
        How many areas there are. All must be connected by neighbours.
    scale : float or variable, positive
        The standard deviation of the difference of two neighbours given all others.
    scaled : bool, keyword only
        Whether `scale` is instead the typical standard deviation of an element: the geometric mean
        of their variances is ``scale**2``. So it means the same for all maps, as BYM2 wants it.

    Raises
    ------
    ShapeError
        If `edges` are not pairs.
    DomainError
        If an edge does not connect two different areas, or occurs twice, or areas are not
        connected.

    Notes
    -----
    The log density is ``-sum((y[i] - y[j])**2) / (2 * scale**2)`` over the edges, with the constant
    that makes it a density of the vectors with sum zero: declare the parameter by
    ``varmat.sum_to_zero(count, prior=...)``.

    References
    ----------
    J. Besag (1974), Spatial interaction and the statistical analysis of lattice systems, Journal of
    the Royal Statistical Society B 36. A. Riebler, S. H. Sørbye, D. Simpson and H. Rue (2016), An
    intuitive Bayesian spatial model for disease mapping that accounts for scaling, Statistical
    Methods in Medical Research 25.

    Examples
    --------
    Four areas in a row:

    >>> import numpy as np, varmat.distributions as dist
    >>> areas = dist.ICAR([(0, 1), (1, 2), (2, 3)], 4, 1.0)
    >>> round(areas.lpdf(np.array([-1.0, 0.0, 0.0, 1.0])), 9)
    -3.063668419
    """

    is_discrete = False

    def __init__(
        self, edges: Operand, count: int, scale: Operand = 1.0, *, scaled: bool = False
    ) -> None:
        self.edges = np.asarray(edges)
        if self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise misfit("ICAR", "edges", np.shape(edges), "have shape (m, 2)")
        if self.edges.dtype.kind not in "iu" and self.edges.size:
            raise DomainError(f"ICAR: edges are of {self.edges.dtype}, but must be integers!")
        self.edges = self.edges.astype(np.int64)
        self.count, self.scale, self.scaled = count, scale, scaled
        _spectrum(count, self.edges.tobytes())  # refuses anything but a graph of this size
        if not is_differentiable(scale) and not np.all(np.asarray(scale) > 0.0):
            raise DomainError(f"ICAR: scale is {scale}, but must be positive!")
        if np.ndim(scale):
            raise ShapeError(f"ICAR: scale has shape {np.shape(scale)}, but must be a number!")

    @property
    def _spectrum(self) -> _Spectrum:
        return _spectrum(self.count, self.edges.tobytes())

    @property
    def _step(self) -> Result:
        """The standard deviation of the differences."""
        if not self.scaled:
            return self.scale
        return self.scale / np.sqrt(self._spectrum.typical_variance)

    @property
    def event(self) -> int:
        return 1

    def extent(self) -> tuple[Shape, int]:
        return (self.count,), 0

    def _each(self, y: Operand) -> Result:
        if np.shape(y)[-1:] != (self.count,):
            raise misfit(
                "ICAR", "y", np.shape(y), f"have {self.count} elements along its last axis"
            )
        values, step = self._spectrum.values, self._step
        first, second = self.edges.T
        squares = np.sum((y[..., first] - y[..., second]) ** 2, axis=-1)
        constant = 0.5 * float(np.sum(np.log(values))) - len(values) * HALF_LOG_TWO_PI
        return constant - len(values) * np.log(step) - 0.5 * squares / step**2

    def cumulative(self, name: str) -> DensityTerms:
        raise TypeError(f"ICAR has no {name}!")

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        outer = () if size is None else size
        if outer[-1:] == (self.count,):  # of a parameter, which is one vector
            outer = outer[:-1]
        vectors, values = self._spectrum
        z = rng.standard_normal((*outer, len(values))) / np.sqrt(values)
        return self._step * (z @ vectors.T)


def _check_edges(edges: np.ndarray, count: int) -> None:
    wrong = (edges < 0) | (edges >= count)
    if wrong.any():
        i, k = np.argwhere(wrong)[0]
        raise DomainError(
            f"ICAR: edges[{i}, {k}] is {edges[i, k]}, but must be the number of an area, below "
            f"{count}!"
        )
    if np.any(same := edges[:, 0] == edges[:, 1]):
        i = int(np.argmax(same))
        raise DomainError(f"ICAR: edges[{i}] is from area {edges[i, 0]} to itself!")
    pairs = np.sort(edges, axis=1)
    _, firsts = np.unique(pairs, axis=0, return_index=True)
    if len(firsts) < len(pairs):
        i = int(np.setdiff1d(np.arange(len(pairs)), firsts)[0])
        raise DomainError(f"ICAR: edges[{i}] occurs twice, but each pair must occur once!")
