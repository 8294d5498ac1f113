"""Distances between the rows of matrices: those of `scipy.spatial.distance`.

Differences are taken coordinate by coordinate. Near points far from the origin keep their digits,
and no array is larger than the matrix of distances. A distance of zero is a kink, with the
derivative zero."""

from __future__ import annotations

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import misfit, outside
from varmat.plain_arrays import special
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, array_valued

__all__ = ["cdist", "pdist", "squareform"]

_POWERS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski")
_OTHERS = (
    "seuclidean",
    "mahalanobis",
    "cosine",
    "correlation",
    "canberra",
    "braycurtis",
    "jensenshannon",
)
_WEIGHTED = ("euclidean", "sqeuclidean", "cityblock", "minkowski")


@operation()
def pairwise_distances(a: Operand, b: Operand, *, metric: str, p: float) -> Result:
    """Compute the matrix of distances between the rows of `a` and the rows of `b`."""
    from scipy.spatial.distance import cdist as distances

    if not a.size or not b.size:
        return np.zeros((a.shape[0], b.shape[0]))
    return distances(a, b, metric, p=p) if metric == "minkowski" else distances(a, b, metric)


def _shares(r: Operand, metric: str, p: float) -> Result:
    """Return the function that maps differences of a coordinate to the derivatives of the distances
    with respect to it; differentiable.
    """
    if metric == "sqeuclidean":
        return lambda d: 2.0 * d
    if metric == "cityblock":
        return np.sign
    if metric == "euclidean":
        inverse = np.where(r == 0.0, 0.0, 1.0 / np.where(r == 0.0, 1.0, r))
        return lambda d: d * inverse
    inverse = np.where(r == 0.0, 0.0, 1.0 / np.where(r == 0.0, 1.0, r))

    def share(d: Operand) -> Result:
        ratio = np.abs(d) * inverse
        return np.sign(d) * np.where(d == 0.0, 0.0, np.where(d == 0.0, 1.0, ratio) ** (p - 1.0))

    return share


def _farthest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Find, for each pair, the first coordinate in which they differ most."""
    largest, place = (
        np.full((a.shape[0], b.shape[0]), -1.0),
        np.zeros((a.shape[0], b.shape[0]), dtype=int),
    )
    for k in range(a.shape[1]):
        d = np.abs(np.subtract.outer(a[:, k], b[:, k]))
        place[d > largest] = k
        np.maximum(largest, d, out=largest)
    return place


@pairwise_distances.reverse
def pairwise_distances_reverse(
    g: Adjoint, r: Plain, a: Plain, b: Plain, metric: str, p: float
) -> Adjoint:
    of_a, of_b = np.zeros(a.shape), np.zeros(b.shape)
    if metric in ("euclidean", "sqeuclidean"):
        c = _shares(r, metric, p)(g)
        for k in range(a.shape[1]):
            d = np.subtract.outer(a[:, k], b[:, k])
            d *= c
            of_a[:, k], of_b[:, k] = d.sum(1), -d.sum(0)
        return of_a, of_b
    place = _farthest(a, b) if metric == "chebyshev" else None
    share = np.sign if metric == "chebyshev" else _shares(r, metric, p)
    for k in range(a.shape[1]):
        c = g * share(np.subtract.outer(a[:, k], b[:, k]))
        if place is not None:
            c = np.where(place == k, c, 0.0)
        of_a[:, k], of_b[:, k] = c.sum(1), -c.sum(0)
    return of_a, of_b


@pairwise_distances.tangent
def pairwise_distances_tangent(
    r: Plain, a: Plain, b: Plain, metric: str, p: float
) -> tuple[Linear, Linear]:
    if metric == "chebyshev":
        # Only the coordinate that differs most has a derivative; which one it is, is not
        # differentiated.
        return lambda t: _chosen(a, b, t, np.zeros(np.shape(b))), lambda t: _chosen(
            a, b, np.zeros(np.shape(a)), t
        )
    share, count = _shares(r, metric, p), np.shape(a)[1]

    def of_a(t: Operand) -> Result:
        total: np.ndarray = np.zeros(np.shape(r))
        for k in range(count):
            total = total + share(a[:, k, None] - b[:, k]) * t[:, k, None]
        return total

    def of_b(t: Operand) -> Result:
        total: np.ndarray = np.zeros(np.shape(r))
        for k in range(count):
            total = total - share(a[:, k, None] - b[:, k]) * t[:, k]
        return total

    return of_a, of_b


def _chosen(a: Operand, b: Operand, ta: Operand, tb: Operand) -> Result:
    total: np.ndarray = np.zeros((np.shape(a)[0], np.shape(b)[0]))
    best: np.ndarray = np.full(np.shape(total), -1.0)
    for k in range(np.shape(a)[1]):
        d = a[:, k, None] - b[:, k]
        rate, size = np.sign(d) * (ta[:, k, None] - tb[:, k]), np.abs(d)
        total, best = np.where(size > best, rate, total), np.maximum(size, best)
    return total


@operation(linear=True)
def upper_elements(x: Operand) -> Result:
    """Return the elements above the diagonal, row by row."""
    return x[~np.tri(x.shape[0], dtype=bool)]


@upper_elements.reverse
def upper_elements_reverse(g: Adjoint, r: Plain, x: Plain) -> Adjoint:
    c = np.zeros(x.shape)
    c[~np.tri(x.shape[0], dtype=bool)] = g
    return c


def _root(x: Operand) -> Result:
    """Compute a square root, with the derivative zero at zero."""
    nothing = x <= 0.0
    return np.where(nothing, 0.0, np.sqrt(np.where(nothing, 1.0, x)))


def _matrix(function: str, name: str, x: Operand) -> Result:
    x = as_operand(x, f"{function}: {name}")
    if np.ndim(x) != 2:
        raise misfit(function, name, np.shape(x), "be a matrix with a point in each row")
    return x


def _standard(function: str, a: Operand, b: Operand, both: Operand, v: Operand) -> Result:
    v = np.var(both, axis=0, ddof=1) if v is None else as_operand(v, f"{function}: V")
    if np.shape(v) != (np.shape(a)[1],):
        raise misfit(function, "V", np.shape(v), f"have shape {(np.shape(a)[1],)}")
    scale = np.sqrt(v)
    return pairwise_distances(a / scale, b / scale, metric="euclidean", p=2.0)


def _mahalanobis(function: str, a: Operand, b: Operand, both: Operand, vi: Operand) -> Result:
    vi = np.linalg.inv(np.cov(both.T)) if vi is None else as_operand(vi, f"{function}: VI")
    n = np.shape(a)[1]
    vi = np.reshape(vi, (1, 1)) if np.ndim(vi) == 0 else vi
    if np.shape(vi) != (n, n):
        raise misfit(function, "VI", np.shape(vi), f"have shape {(n, n)}")
    d = a[:, None, :] - b
    return _root(np.sum((d @ vi) * d, axis=-1))


def _cosine(a: Operand, b: Operand) -> Result:
    # Rounding may make the cosine larger than one for points of the same direction.
    a, b = (x / np.sqrt(np.sum(x * x, axis=1, keepdims=True)) for x in (a, b))
    return 1.0 - a @ b.T


def _jensen_shannon(a: Operand, b: Operand) -> Result:
    p, q = (x / np.sum(x, axis=1, keepdims=True) for x in (a, b))
    p, q = p[:, None, :] + np.zeros((1, *np.shape(q))), q + np.zeros((np.shape(p)[0], 1, 1))
    m = 0.5 * (p + q)
    return _root(0.5 * np.sum(special.rel_entr(p, m) + special.rel_entr(q, m), axis=-1))


def _canberra(a: Operand, b: Operand) -> Result:
    d, size = np.abs(a[:, None, :] - b), np.abs(a)[:, None, :] + np.abs(b)
    return np.sum(np.where(size == 0.0, 0.0, d / np.where(size == 0.0, 1.0, size)), axis=-1)


def _distances(
    function: str,
    a: Operand,
    b: Operand,
    both: Operand,
    metric: Operand,
    p: Operand,
    w: Operand,
    v: Operand,
    vi: Operand,
) -> Result:
    if metric not in _POWERS + _OTHERS:
        names = ", ".join(map(repr, sorted(_POWERS + _OTHERS)))
        raise outside(function, "metric", metric, f"be one of {names}")
    if w is not None:
        if metric not in _WEIGHTED:
            raise DomainError(
                f"{function}: w is given, but must be left out for the metric {metric!r}!"
            )
        w = as_operand(w, f"{function}: w")
        if np.shape(w) != (np.shape(a)[1],):
            raise misfit(function, "w", np.shape(w), f"have shape {(np.shape(a)[1],)}")
        scale = (
            w if metric == "cityblock" else w ** (1.0 / p) if metric == "minkowski" else np.sqrt(w)
        )
        a, b = a * scale, b * scale
    if metric == "minkowski" and not p >= 1.0:
        raise DomainError(f"{function}: p is {p}, but must be at least 1!")
    if metric in _POWERS:
        return pairwise_distances(a, b, metric=metric, p=float(p))
    if metric == "seuclidean":
        return _standard(function, a, b, both, v)
    if metric == "mahalanobis":
        return _mahalanobis(function, a, b, both, vi)
    if metric == "correlation":
        return _cosine(*(x - np.mean(x, axis=1, keepdims=True) for x in (a, b)))
    if metric == "braycurtis":
        return np.sum(np.abs(a[:, None, :] - b), axis=-1) / np.sum(
            np.abs(a[:, None, :] + b), axis=-1
        )
    return {"cosine": _cosine, "jensenshannon": _jensen_shannon, "canberra": _canberra}[metric](
        a, b
    )


@array_valued
def cdist(
    XA: Operand,
    XB: Operand,
    metric: str = "euclidean",
    *,
    p: float = 2.0,
    w: Operand = None,
    V: Operand = None,
    VI: Operand = None,
) -> Result:
    """Compute the distances between the rows of one matrix and the rows of another:
    `scipy.spatial.distance.cdist`.

    Parameters
    ----------
    XA : array_like, shape (m, d)
    XB : array_like, shape (n, d)
    metric : str
        'euclidean', 'sqeuclidean', 'cityblock', 'chebyshev', 'minkowski', 'seuclidean',
        'mahalanobis', 'cosine', 'correlation', 'canberra', 'braycurtis' or 'jensenshannon'.
    p : float
        The power of 'minkowski', at least 1.
    w : array_like, shape (d,), optional
        Weights of the coordinates, for the metrics 'euclidean', 'sqeuclidean', 'cityblock' and
        'minkowski'.
    V : array_like, shape (d,), optional
        The variances of 'seuclidean'; by default those of all rows together.
    VI : array_like, shape (d, d), optional
        The inverse covariance matrix of 'mahalanobis'; by default that of all rows together.

    Returns
    -------
    VarMat, shape (m, n)

    Raises
    ------
    ShapeError
        If the matrices have different numbers of columns, or a weight another shape.
    DomainError
        If `metric` is unknown, or `p` is less than 1.

    Notes
    -----
    The derivative of a distance that is zero is zero, and so it is for a coordinate with no
    difference; of 'chebyshev' the first of several largest coordinates has it. `w`, `V` and `VI`
    may be variables.

    References
    ----------
    SciPy reference, `scipy.spatial.distance.cdist`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.cdist(x, np.zeros((1, 2)))[0, 0], np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    a, b = _matrix("cdist", "XA", XA), _matrix("cdist", "XB", XB)
    if np.shape(a)[1] != np.shape(b)[1]:
        raise misfit("cdist", "XB", np.shape(b), f"have {np.shape(a)[1]} columns, as XA")
    return _distances("cdist", a, b, np.concatenate([a, b]), metric, p, w, V, VI)


@array_valued
def pdist(
    X: Operand,
    metric: str = "euclidean",
    *,
    p: float = 2.0,
    w: Operand = None,
    V: Operand = None,
    VI: Operand = None,
) -> Result:
    """Compute the distances of the rows of a matrix from each other, each pair once:
    `scipy.spatial.distance.pdist`.

    Parameters
    ----------
    X : array_like, shape (m, d)
    metric, p, w, V, VI
        As for `cdist`.

    Returns
    -------
    VarMat, shape (m * (m - 1) / 2,)
        Those of the first row from all others, then of the second from those after it, and so on;
        see `squareform`.

    Raises
    ------
    ShapeError
        If `X` is not a matrix, or a weight has another shape.
    DomainError
        If `metric` is unknown, or `p` is less than 1.

    Notes
    -----
    The derivative is the same as for `cdist`.

    References
    ----------
    SciPy reference, `scipy.spatial.distance.pdist`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(vm.pdist(x, "sqeuclidean")), np.array([[0.0], [1.0], [3.0]]))
    array([[-8.],
           [-2.],
           [10.]])
    """
    x = _matrix("pdist", "X", X)
    return upper_elements(_distances("pdist", x, x, x, metric, p, w, V, VI))


@array_valued
def squareform(X: Operand) -> Result:
    """Turn the distances that `pdist` gives into a symmetric matrix, or back:
    `scipy.spatial.distance.squareform`.

    Parameters
    ----------
    X : array_like, shape (m * (m - 1) / 2,) or (m, m)
        Only the upper triangle of a matrix is read.

    Returns
    -------
    VarMat, shape (m, m) or (m * (m - 1) / 2,)

    Raises
    ------
    ShapeError
        If a vector has not as many elements as there are pairs, or a matrix is not square.

    Notes
    -----
    The derivative of an element of the vector is the sum of the two of the matrix.

    References
    ----------
    SciPy reference, `scipy.spatial.distance.squareform`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda d: vm.squareform(d)[0] @ np.array([1.0, 10.0, 100.0]), np.zeros(3))
    array([ 10., 100.,   0.])
    """
    x = as_operand(X, "squareform: X")
    if np.ndim(x) == 2 and np.shape(x)[0] == np.shape(x)[1]:
        return upper_elements(x)
    size = int(np.size(x))
    m = int(np.ceil(np.sqrt(2.0 * size))) if size else 1
    if np.ndim(x) != 1 or m * (m - 1) != 2 * size:
        rule = "a square matrix, or a vector with an element for each pair"
        raise misfit("squareform", "X", np.shape(x), f"be {rule}")
    place = np.zeros((m, m), dtype=int)
    place[np.triu_indices(m, 1)] = np.arange(1, size + 1)
    return np.concatenate([np.zeros(1), x])[place + place.T]
