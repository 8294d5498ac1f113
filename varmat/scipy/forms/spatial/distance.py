"""Forms of `scipy.spatial.distance`: one distance, of two vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.functions.rarer.distances import cdist
from varmat.typing import Function, Operand, Result


def _between(metric: str, u: Operand, v: Operand, **settings: Any) -> Result:
    u, v = (np.reshape(x, (1, -1)) for x in (u, v))
    return cdist(u, v, metric, **settings)[0, 0]


def _weighted(metric: str) -> Function:
    return lambda u, v, w=None: _between(metric, u, v, w=w)


def _plain(metric: str) -> Function:
    return lambda u, v: _between(metric, u, v)


euclidean, sqeuclidean, cityblock = map(_weighted, ("euclidean", "sqeuclidean", "cityblock"))
braycurtis, canberra, chebyshev = map(_plain, ("braycurtis", "canberra", "chebyshev"))
cosine, correlation = map(_plain, ("cosine", "correlation"))


def minkowski(u: Operand, v: Operand, p: float = 2, w: Operand = None) -> Result:
    return _between("minkowski", u, v, p=p, w=w)


def seuclidean(u: Operand, v: Operand, V: Operand) -> Result:
    return _between("seuclidean", u, v, V=V)


def mahalanobis(u: Operand, v: Operand, VI: Operand) -> Result:
    return _between("mahalanobis", u, v, VI=VI)


def jensenshannon(p: Operand, q: Operand, base: float | None = None) -> Result:
    r = _between("jensenshannon", p, q)
    return r if base is None else r / np.sqrt(np.log(base))
