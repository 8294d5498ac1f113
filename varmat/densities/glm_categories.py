"""Generalised linear models of categories: one of K, and one of K in order, in one pass through the
independent variables.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import finite
from varmat.core.operation import Saved
from varmat.densities.categorical import categories
from varmat.densities.density import ZERO, KeptTerms, density, integer_to, not_nan
from varmat.densities.domains import finite_vector, ordered
from varmat.densities.ordered import Cells, ordered_logistic_lpmf, ordered_logistic_reverse
from varmat.densities.row_pass import MOST_ROWS, in_matrix, observations, pass_over
from varmat.functions.arrays.exponentials import softmax
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import misfit
from varmat.functions.special.logistic_functions import expit, log1m_exp
from varmat.plain_arrays import BLOCK, blocks
from varmat.programs.build.symbol import is_symbol, refuse, require
from varmat.typing import Adjoint, Function, Operand, Plain, Result, Setting

__all__ = ["categorical_logit_glm_lpmf", "ordered_logistic_glm_lpmf"]

# Elements of the matrix from which one pass over it, block by block, is worth a call of Python.
LARGE = 1 << 17
# Cutpoints up to which exponentials are taken of them, and what sums of these with the predictors
# may be.
FAR, LARGEST = 300.0, 1e150


def _check_shape(function: str, title: str, x: Operand, shape: tuple[int, ...]) -> None:
    if np.shape(x) != shape:
        raise misfit(function, title, np.shape(x), f"have the shape {shape}")


def _check(f: Setting, *values: Operand) -> None:
    """Refuse arguments outside their domains, but for those that are None.

    The matrix is not checked, because bad elements show in the value, and a check would take as
    long as a product."""
    for (title, domain), x in zip(f.arguments.values(), values, strict=True):
        if x is not None:
            domain.check(f.name, title, x)


def _each(which: Plain, size: int) -> Result:
    """Return the category of each observation."""
    return (
        which.reshape(-1)
        if which.size == size
        else np.full(size, which.reshape(-1)[0] if which.size else 0)
    )


def _require(x: Operand, size: int, *conditions: Operand) -> None:
    """Let a program take a matrix with a row for each observation, if it is finite and not large,
    and conditions hold.
    """
    if np.ndim(x) != 2 or len(x) != size or not 0 < np.size(x) <= LARGE:
        refuse()
    for condition in (np.isfinite(x), *conditions):
        require(condition)


def _known(y: Plain, k: int, size: int) -> Result:
    """Return the category of each observation, from 0; refuse others, which Python then handles."""
    which = categories(y, k)
    return refuse() if which is None else _each(which, size)


def _rows(x: Operand) -> Result:
    return x.reshape(1, -1) if x.ndim == 1 else x


# With eta = alpha + X @ beta and p = softmax(eta):  log p(y) = eta_y - log(sum(exp(eta))),
# d/deta_k = [k = y] - p_k = w_k,
# d/dX = w beta', d/dalpha = w, d/dbeta = X' w.
def _shapes_of_logits(y: Operand, x: Operand, alpha: Operand, beta: Operand) -> tuple[int, int]:
    """Return the numbers of observations and of categories."""
    function = "categorical_logit_glm_lpmf"
    size = observations(function, x, [("Vector of dependent variables", y)])
    if np.ndim(beta) != 2 or np.shape(beta)[0] != np.shape(x)[-1]:
        rule = f"a matrix with {np.shape(x)[-1]} rows and a column for each category"
        raise misfit(function, "Weight vector", np.shape(beta), f"be {rule}")
    k = np.shape(beta)[1]
    _check_shape(function, "Intercept", alpha, (k,))
    return size, k


@density(
    "y",
    y=("Vector of dependent variables", not_nan),
    X=("Matrix of independent variables", finite),
    alpha=("Intercept", finite_vector),
    beta=("Weight vector", finite),
)
def categorical_logit_glm_lpmf(
    y: Operand,
    x: Operand,
    alpha: Operand,
    beta: Operand,
    keep: KeptTerms | None,
    workspace: Function = np.empty,
) -> Result:
    """Compute the log mass of a multinomial logistic regression: ``categorical_logit_lpmf(y, alpha
    + X @ beta)`` in one pass through `X`.

    Parameters
    ----------
    y : array_like of int, shape (n,), or scalar
        Vector of dependent variables: the categories, from 1 to K as in Stan; not nan.
    X : array_like, shape (n, m) or (m,)
        Matrix of independent variables, finite; a vector is one row for all observations.
    alpha : array_like, shape (K,)
        Intercept of each category, finite.
    beta : array_like, shape (m, K)
        Weight vector of each category, a column, finite.
    propto : bool, keyword only
        Drop the terms that depend on data only.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is not among 1,
        ..., K.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for `y` only nan is.
    ShapeError
        If the arguments do not fit.
    TypeError
        If `y` is a variable.

    Notes
    -----
    With :math:`p` the `softmax` of :math:`\\alpha + X \\beta` and :math:`w_k = [k = y] - p_k` for
    each observation the derivatives are :math:`w \\beta^T`, the sum of :math:`w`, and :math:`X^T
    w`. `X` in C order is the quickest.

    References
    ----------
    Stan Functions Reference, "Categorical logit generalized linear model (softmax regression)"; P.
    McCullagh and J. A. Nelder, "Generalized Linear Models", 2nd edition, Chapman & Hall 1989,
    chapter 5.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 2])
    >>> f = lambda alpha: vm.categorical_logit_glm_lpmf(y, X, alpha, np.eye(2))
    >>> vm.gradient(f, np.zeros(2))
    array([ 0.46211716, -0.46211716])
    """
    if any(map(is_symbol, (x, alpha, beta))):
        return _logits_in_program(y, x, alpha, beta)
    _check(categorical_logit_glm_lpmf, y, None, alpha, beta)
    size, k = _shapes_of_logits(y, x, alpha, beta)
    which = categories(y, k)
    if which is None or not size:
        _check(categorical_logit_glm_lpmf, None, x, None, None)
        return Saved(-math.inf if which is None else 0.0, sums=None)
    with np.errstate(all="ignore"):
        value, in_alpha, in_beta = _pass(
            _each(which, size), _rows(x), alpha, beta, workspace is not np.empty
        )
    if not math.isfinite(value):
        _check(categorical_logit_glm_lpmf, None, x, None, None)
    return Saved(value, sums=(in_alpha, in_beta))


categorical_logit_glm_lpmf.data_domain = lambda y, x, alpha, beta: integer_to(beta.shape[-1])


def _rows_at_once(x: Operand, k: int) -> int:
    """Return how many rows to process together, so that they and their results stay in the cache:
    half a block, because products of matrices copy what they read.
    """
    return max(8, min(MOST_ROWS, BLOCK // 2 // int(x.shape[1] + 2 * k)))


def _pass(
    which: Plain,
    x: Operand,
    alpha: Operand,
    beta: Operand,
    recording: bool,
    weights: Operand = None,
) -> tuple[float, Result, Result]:
    """Compute the log mass, and its derivatives with respect to alpha and beta; in blocks of
    columns, because sums along columns are fast.
    """
    k, size = beta.shape[1], len(which)
    value, in_alpha, in_beta = 0.0, np.zeros(k), np.zeros((k, len(beta)))
    column = alpha[:, None]
    for here in blocks(size, _rows_at_once(x, k)):
        block = x[here] if len(x) == size else x
        t = np.empty((k, here.stop - here.start))
        np.add((block @ beta).T, column, t)
        value += _weigh(t, which[here])
        if recording:
            summed = add_reduce(t, axis=1)
            in_alpha += summed
            in_beta += t @ block if len(x) == size else summed[:, None] * block
        if weights is not None:
            weights[here] = t.T
    return value, in_alpha, in_beta.T


def _weigh(t: Operand, which: Plain) -> float:
    """Replace the linear predictors of a block, in columns, by their weights, in place; the log
    mass of its observations.
    """
    t -= np.maximum.reduce(t, axis=0)
    flat, chosen = t.reshape(-1), which * t.shape[1] + np.arange(t.shape[1])
    value = float(add_reduce(flat.take(chosen)))
    np.exp(t, t)
    total = add_reduce(t, axis=0)
    value -= float(add_reduce(np.log(total)))
    t /= np.negative(total, total)
    # One minus a probability, which may be nearly one, is the sum of the others.
    flat[chosen] = 0.0
    flat[chosen] = np.negative(add_reduce(t, axis=0, out=total), total)
    return value


@categorical_logit_glm_lpmf.reverse
def categorical_logit_glm_reverse(
    g: Adjoint,
    r: Operand,
    y: Operand,
    x: Operand,
    alpha: Operand,
    beta: Operand,
    keep: KeptTerms | None,
    sums: Operand,
) -> Result:
    if sums is None:
        return None, *(lambda: ZERO,) * 3
    if is_symbol(sums):
        w = g * sums
        return (
            None,
            lambda: np.matmul(w, beta.T),
            lambda: np.sum(w, axis=0),
            lambda: np.matmul(x.T, w),
        )
    in_alpha, in_beta = sums

    def of_x() -> Result:
        size, k = _shapes_of_logits(y, x, alpha, beta)
        weights = np.empty((size, k))
        _pass(_each(categories(y, k), size), _rows(x), alpha, beta, False, weights)
        c = g * (weights @ beta.T)
        return c if x.ndim == 2 and len(x) == size else add_reduce(c, axis=0).reshape(x.shape)

    return None, of_x, lambda: g * in_alpha, lambda: g * in_beta


@categorical_logit_glm_lpmf.tangent
def categorical_logit_glm_tangent(
    r: Operand, y: Operand, x: Operand, alpha: Operand, beta: Operand, keep: KeptTerms | None
) -> Result:
    size, k = _shapes_of_logits(y, x, alpha, beta)
    which = categories(y, k)
    if which is None or not size:
        return None, *(lambda t: 0.0,) * 3
    rows = np.reshape(x, (-1, np.shape(x)[-1]))
    w = _indicators(_each(which, size), k) - softmax(rows @ beta + alpha, axis=-1)
    return (
        None,
        lambda t: np.sum(w * (np.reshape(t, np.shape(rows)) @ beta)),
        lambda t: np.sum(w * t),
        lambda t: np.sum(w * (rows @ t)),
    )


def _logits_in_program(y: Operand, x: Operand, alpha: Operand, beta: Operand) -> Saved:
    """Compute the log mass in a program, and its derivatives in the linear predictors."""
    size, k = _shapes_of_logits(y, x, alpha, beta)
    which = _known(y, k, size)
    _require(x, size, np.isfinite(alpha), np.isfinite(beta))
    chosen, eta = _indicators(which, k), np.matmul(x, beta) + alpha
    eta = eta - np.max(eta, axis=1, keepdims=True)
    e = np.exp(eta)
    total = np.sum(e, axis=1, keepdims=True)
    value = np.vdot(chosen, eta) - np.sum(np.log(total))
    return Saved(value, sums=chosen - e / total)


def _indicators(which: Plain, k: int) -> Result:
    """Make a row for each observation, with a one for its category."""
    return (which[:, None] == np.arange(k)).astype(np.float64)


# With eta = X @ beta, F the logistic function, b = F(low - eta), a = F(eta - high), and
# odds = 1 / (exp(high - low) - 1):
# log p = log F(eta - low) + log F(high - eta) + log(1 - exp(low - high)),  d/deta = b - a = w,
# d/dlow = -b - odds,  d/dhigh = a + odds.
def _shapes_of_order(y: Operand, x: Operand, beta: Operand) -> int:
    function = "ordered_logistic_glm_lpmf"
    size = observations(function, x, [("Vector of dependent variables", y)])
    _check_shape(function, "Weight vector", beta, np.shape(x)[-1:])
    return size


@density(
    "y",
    y=("Vector of dependent variables", not_nan),
    X=("Matrix of independent variables", finite),
    beta=("Weight vector", finite),
    cutpoints=("Cut-points", ordered),
)
def ordered_logistic_glm_lpmf(
    y: Operand,
    x: Operand,
    beta: Operand,
    cutpoints: Operand,
    keep: KeptTerms | None,
    workspace: Function = np.empty,
) -> Result:
    """Compute the log mass of an ordered logistic regression: ``ordered_logistic_lpmf(y, X @ beta,
    cutpoints)`` in one pass through `X`.

    Parameters
    ----------
    y : array_like of int, shape (n,), or scalar
        Vector of dependent variables: the categories, from 1 to K as in Stan; not nan.
    X : array_like, shape (n, m) or (m,)
        Matrix of independent variables, finite; a vector is one row for all observations.
    beta : array_like, shape (m,)
        Weight vector, finite.
    cutpoints : array_like, shape (K - 1,)
        Cut-points: finite and strictly increasing.
    propto : bool, keyword only
        Drop the terms that depend on data only.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is not among 1,
        ..., K.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for `y` only nan is.
    ShapeError
        If the arguments do not fit.
    TypeError
        If `y` is a variable.

    Notes
    -----
    With :math:`\\eta = X \\beta`, F the logistic function and the cutpoints c below and above an
    observation, :math:`w = F(c_{y-1} - \\eta) - F(\\eta - c_y)` and the derivatives are :math:`w
    \\beta^T` and :math:`X^T w`; those with respect to the cutpoints are as for
    `ordered_logistic_lpmf`. An intercept is missing because the cutpoints contain it.

    References
    ----------
    Stan Functions Reference, "Ordered logistic generalized linear model (ordinal regression)"; P.
    McCullagh, "Regression models for ordinal data", Journal of the Royal Statistical Society B 42
    (1980), 109-142.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 3])
    >>> vm.gradient(lambda beta: vm.ordered_logistic_glm_lpmf(y, X, beta, [-1.0, 1.0]), np.zeros(2))
    array([1.46211716, 1.46211716])
    """
    if any(map(is_symbol, (x, beta, cutpoints))):
        return _order_in_program(y, x, beta, cutpoints)
    _check(ordered_logistic_glm_lpmf, y, None, beta, cutpoints)
    size = _shapes_of_order(y, x, beta)
    if cutpoints.ndim != 1:
        raise misfit("ordered_logistic_glm_lpmf", "Cut-points", cutpoints.shape, "be a vector")
    which = categories(y, len(cutpoints) + 1)
    if which is None or not size or not cutpoints.size:
        _check(ordered_logistic_glm_lpmf, None, x, None, None)
        return Saved(-math.inf if which is None else 0.0, sums=None)
    which, recording = _each(which, size), workspace is not np.empty
    with np.errstate(all="ignore"):
        below, above, value, product = _weigh_cells(x, beta, which, cutpoints, recording)
    in_bounds = np.zeros(len(cutpoints) + 2)
    if recording:
        in_bounds[:-1] -= np.bincount(which, below, len(cutpoints) + 1)
        in_bounds[1:] += np.bincount(which, above, len(cutpoints) + 1)
    counts, widths = _inner_counts(which, cutpoints), np.diff(cutpoints)
    value += float(counts.dot(log1m_exp(-widths)))
    odds = counts / np.expm1(widths)
    in_bounds[2:-1] += odds
    in_bounds[1:-2] -= odds
    return Saved(value, sums=(below - above, product, in_bounds[1:-1]))


# With a = exp(low - eta) and b = exp(eta - high), zero where there is no such end, F(low - eta) = a
# / (1 + a), F(eta - high) = b / (1 + b), their difference is (a - b) / (1 + d) with d = a + b + a
# b, and minus the remaining logarithms add up to log(1 + d). So a block takes one
# exponential, and all observations together one logarithm, unless one overflows or underflows.


ordered_logistic_glm_lpmf.data_domain = lambda y, x, beta, cutpoints: integer_to(
    cutpoints.shape[-1] + 1
)


def _order_in_program(y: Operand, x: Operand, beta: Operand, cutpoints: Operand) -> Saved:
    """Compute the density of the linear predictors in a program."""
    size = _shapes_of_order(y, x, beta)
    which = _known(y, np.shape(cutpoints)[0] + 1, size)
    _require(x, size, np.isfinite(beta), ordered.holds(cutpoints))
    mass = ordered_logistic_lpmf.operation.function(which + 1, np.matmul(x, beta), cutpoints)
    return Saved(mass.value, sums=mass.saved)


def _weigh_cells(
    x: Operand, beta: Operand, which: Plain, cutpoints: Operand, recording: bool
) -> tuple[Result, Result, float, Result]:
    """Compute F(low - eta) and F(eta - high) of all observations, their log mass but for the widths
    of the cells, and the product of the weights with the matrix.
    """
    size, bounds = len(which), np.concatenate([[-math.inf], cutpoints, [math.inf]])
    low, high = np.exp(bounds[:-1]), np.exp(-bounds[1:])
    a, b, d = low.take(which), high.take(which), np.exp(bounds[:-1] - bounds[1:]).take(which)

    def weigh(t: Operand, here: slice) -> Result:
        e, x, y, z = np.exp(t), a[here], b[here], d[here]
        x /= e
        y *= e
        z += x
        z += y
        return (x - y) / (z + 1.0)

    product = pass_over(x, beta, size, weigh, recording)
    if np.abs(cutpoints).max() < FAR and d.max() < LARGEST:
        value, total = -float(add_reduce(np.log1p(d))), 1.0 + d
        return a * (1.0 + b) / total, b * (1.0 + a) / total, value, product
    _check(ordered_logistic_glm_lpmf, None, x, None, None)
    value = 0.0

    def weigh_carefully(t: Operand, here: slice) -> Result:
        nonlocal value
        ends = bounds.take(which[here]) - t, t - bounds.take(which[here] + 1)
        value -= sum(
            float(add_reduce(np.maximum(item, 0.0)) + add_reduce(np.log1p(np.exp(-np.abs(item)))))
            for item in ends
        )
        a[here], b[here] = map(expit, ends)
        return a[here] - b[here]

    product = pass_over(x, beta, size, weigh_carefully, recording)
    return a, b, value, product


def _inner_counts(which: Plain, cutpoints: Operand) -> Result:
    """Count the observations in each cell between two cutpoints."""
    return np.bincount(which, minlength=np.shape(cutpoints)[0] + 1)[1:-1].astype(np.float64)


@ordered_logistic_glm_lpmf.reverse
def ordered_logistic_glm_reverse(
    g: Adjoint,
    r: Operand,
    y: Operand,
    x: Operand,
    beta: Operand,
    cutpoints: Operand,
    keep: KeptTerms | None,
    sums: Operand,
) -> Result:
    if sums is None:
        return None, *(lambda: ZERO,) * 3
    if type(sums) is dict:
        _, of_eta, of_cutpoints = ordered_logistic_reverse(g, r, y, None, cutpoints, keep, **sums)
        w = of_eta()
        return None, lambda: w[:, None] * beta, lambda: np.matmul(x.T, w), of_cutpoints
    weights, product, in_cutpoints = sums
    return (
        None,
        lambda: in_matrix(g * weights, x, beta),
        lambda: g * product,
        lambda: g * in_cutpoints,
    )


@ordered_logistic_glm_lpmf.tangent
def ordered_logistic_glm_tangent(
    r: Operand, y: Operand, x: Operand, beta: Operand, cutpoints: Operand, keep: KeptTerms | None
) -> Result:
    size = _shapes_of_order(y, x, beta)
    which = categories(y, np.shape(cutpoints)[0] + 1)
    if which is None or not size or not np.size(cutpoints):
        return None, *(lambda t: 0.0,) * 3
    which = _each(which, size)
    cells = Cells(which, np.shape(cutpoints), (size,))
    w, along = cells.logistic_tangent(x @ beta, cutpoints)
    return None, lambda t: np.sum(w * (t @ beta)), lambda t: np.sum(w * (x @ t)), along


for _density in (categorical_logit_glm_lpmf, ordered_logistic_glm_lpmf):
    _density.operation.domains = {}  # the functions look themselves, where they must
