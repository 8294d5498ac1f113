"""Densities of generalised linear models, which go through the matrix of independent variables
once.

A family is a function of the observations and of a way to make the pass: for each block of rows it
is given the products with the weight vector and answers with the derivatives of the log density
with respect to the linear predictors; their product with the block is formed while the block is in
the cache. Value and gradient are thus made together. A call without variables leaves the second
product out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.domains import finite, positive_finite
from varmat.core.operation import Saved
from varmat.core.tape import Rule, Tape, join
from varmat.core.variables import VARIABLES, make_result
from varmat.densities.density import (
    HALF_LOG_TWO_PI,
    Density,
    Domains,
    KeptTerms,
    is_count,
    not_nan,
    typed,
    zero_or_one,
)
from varmat.densities.kinds import IS_ARRAY, IS_VARIABLE, KINDS, as_number
from varmat.densities.row_pass import Pass, PassSums, in_matrix, observations, part
from varmat.densities.sparse_glm import SparseGlm, call_with_sparse, check_elements
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import misfit
from varmat.functions.special.logistic_functions import expit
from varmat.plain_arrays import is_scipy_sparse
from varmat.programs.build.symbol import is_symbol, refuse
from varmat.programs.kernels.counts import log_factorials
from varmat.typing import Adjoint, Function, Operand, Plain, Propto, Result, Settings

__all__ = ["bernoulli_logit_glm_lpmf", "normal_id_glm_lpdf", "poisson_log_glm_lpmf"]


class Glm(Density):
    """The density of a generalised linear model; made by `glm`."""

    def __init__(
        self,
        family: Callable[..., PassSums],
        arguments: Domains,
        support: Operand,
        partials: Operand,
        discrete: Operand,
    ) -> None:
        super().__init__(family.__name__, arguments, discrete)
        update_wrapper(self, family)
        self.family, self.support, self.partials = family, support, partials
        self.names = tuple(arguments)
        self.places = [(i, name) for i, name in enumerate(self.names) if name in self.discrete]

        def value(
            *values: Operand, keep: KeptTerms | None = None, workspace: Function = np.empty
        ) -> Result:
            return self._value(values, keep, workspace)

        update_wrapper(value, family)
        # What makes the value infinite or nan if it is outside its domain is checked only if the
        # value is that.
        early = {name: arguments[name] for name in self.names[4:]}
        self.early = tuple(early.values())
        self.operation = self.made_of(value, early, keep=None, workspace=np.empty)
        self.operation.reverse(self._reverse)
        self.operation.tangent(self._tangent)
        self.operation.rule = Rule(self.name, self._chain, self.operation)
        self.with_sparse = SparseGlm(self, value, early)

    @typed
    def __call__(self, *args: Operand, propto: Propto = False, **named: Operand) -> Result:
        """The operation does the same for all kinds of arguments; floats, arrays and variables have
        a shorter way.
        """
        if propto or named or len(args) != len(self.arguments):
            return self._with_other_kinds(args, propto, named)
        tape: Tape | None = None
        operands, values = [], []
        for x in args:
            kind = KINDS.get(type(x))
            if kind is None or (kind == IS_ARRAY and x.dtype is not FLOAT64):
                number = as_number(x)
                if number is None:
                    return self._with_other_kinds(args, False, {})
                x, kind = number
            operands.append(x)
            if kind >= IS_VARIABLE:
                tape = x._tape if tape is None or tape is x._tape else join(tape, x._tape)
                x = x._val
            values.append(x)
        for i, name in self.places:
            if type(args[i]) in VARIABLES:
                self.refuse_variable(name)
        for (title, domain), x in zip(self.early, values[4:], strict=True):
            domain.check(self.name, title, x)
        top = None if tape is None else tape.top
        value, sums = self._evaluate(values, None, np.empty if top is None else top.workspace)
        if top is None:
            return value
        if value == -math.inf:
            self.refuse_data(values)
        result = make_result(value, top)
        top.append((self.operation.rule, result, operands, {"keep": None, "sums": sums}))
        return result

    def _with_other_kinds(self, args: Sequence[Operand], propto: Propto, named: Operand) -> Result:
        if any(map(is_scipy_sparse, (*args[1:2], *named.values()))):
            return call_with_sparse(self, args, propto, named)
        return super().__call__(*args, propto=propto, **named)

    def _value(
        self, values: tuple[Operand, ...], keep: KeptTerms | None, workspace: Function
    ) -> Result:
        if any(map(is_symbol, values)):  # a program has its own form, or calls this function
            refuse()
        value, sums = self._evaluate(values, keep, workspace)
        return Saved(value, sums=sums)

    def _evaluate(
        self, values: Operand, keep: KeptTerms | None, workspace: Function
    ) -> tuple[float, PassSums | None]:
        """The value, and what the reverse rule wants back: None if there are no rows, or an
        observation is impossible.
        """
        y, x, alpha, beta, *others = values
        size = _rows(x, beta, y, alpha, *others)
        if size < 2:
            size = self._size(values)
            y, alpha, others = _number(y), _number(alpha), [_number(v) for v in others]
        with np.errstate(all="ignore"):
            inside = self.support is None or bool(self.support(y, *others))
            if not size or not inside:
                self._check(values)
                return (0.0 if inside or keep == frozenset() else -math.inf), None
            one_pass = Pass(x, beta, size, workspace, workspace is not np.empty)
            sums = self.family(
                one_pass, y, alpha, *others, keep=self.all_terms if keep is None else keep
            )
        if not math.isfinite(sums.value):
            self._check(values)
        return (0.0 if keep is not None and not keep else sums.value), sums

    def _check(self, values: tuple[Plain, ...]) -> None:
        for (title, domain), x in zip(self.arguments.values(), values, strict=True):
            if is_scipy_sparse(x):
                check_elements(self.name, title, domain, x)
            else:
                domain.check(self.name, title, x)

    def _size(self, values: tuple[Plain, ...]) -> int:
        """The number of observations."""
        x, titles = values[1], [title for title, _ in self.arguments.values()]
        if np.ndim(x) in (1, 2) and np.shape(values[3]) != x.shape[-1:]:
            raise misfit(
                self.name, titles[3], np.shape(values[3]), f"have the shape {x.shape[-1:]}"
            )
        vectors = [(titles[i], value) for i, value in enumerate(values) if i not in (1, 3)]
        return observations(self.name, x, vectors)

    # Of the log density f(eta), summed, with eta = alpha + X @ beta and w = f'(eta):
    # d/dX = w beta', d/dalpha = w, d/dbeta = X' w.
    def _contribution(self, i: int, g: float, values: Operand, sums: PassSums | None) -> Result:
        """To the adjoint of an argument, a new array or a float."""
        if sums is None:
            return np.zeros(np.shape(values[i]))
        name, w, scale = self.names[i], sums.weights, g * sums.scale
        if name == "beta":
            return scale * sums.product
        if name == "alpha":
            return scale * float(add_reduce(w)) if type(values[i]) is float else scale * w
        if name == "X":
            return in_matrix(w, values[i], values[3], scale)
        c = scale * sums.partials[name](w)
        return (
            np.full(np.shape(values[i]), c)
            if type(c) is float and type(values[i]) is not float
            else c
        )

    def _reverse(
        self,
        g: Adjoint,
        r: Operand,
        *values: Operand,
        keep: KeptTerms | None,
        sums: PassSums | None,
    ) -> tuple[Result, ...]:
        return tuple(partial(self._contribution, i, g, values, sums) for i in range(len(values)))

    def _chain(self, result: Operand, operands: Operand, settings: Settings) -> None:
        """What the reverse pass does with an entry: as for every operation, but only for the
        variables.
        """
        values = [x._val if type(x) in VARIABLES else x for x in operands]
        g, sums = result._adj, settings["sums"]
        for i, x in enumerate(operands):
            if type(x) in VARIABLES:
                x._take(self._contribution(i, g, values, sums))

    def _tangent(self, r: Operand, *values: Operand, keep: KeptTerms | None) -> tuple[Result, ...]:
        y, x, alpha, beta, *others = values
        if not self._size(values) or (self.support is not None and not self.support(y, *others)):
            return (_no_tangent,) * len(values)
        rates = self.partials(y, alpha + x @ beta, *others)
        w = rates["eta"]
        maps = {
            "X": lambda t: np.sum(w * (t @ beta)),
            "alpha": partial(_inner, w),
            "beta": lambda t: np.sum(w * (x @ t)),
            **{name: partial(_inner, rate) for name, rate in rates.items()},
        }
        return tuple(maps.get(name) for name in self.arguments)


def _rows(x: Operand, beta: Operand, *others: Operand) -> int:
    """The number of observations if there is a row of `x` for each, and all others are floats or
    vectors; otherwise zero.
    """
    if type(x) is type(beta) is np.ndarray and x.ndim == 2 and beta.shape == x.shape[1:]:
        shape = x.shape[:1]
        for v in others:
            if type(v) is not float and np.shape(v) != shape:
                return 0
        return shape[0]  # type: ignore[no-any-return]
    return 0


def _number(x: Operand) -> Result:
    """A float instead of an array of one element."""
    return x if type(x) is np.ndarray and x.size != 1 else float(np.reshape(x, ()))


def _inner(rate: Operand, t: Operand) -> Result:
    return np.sum(rate * t)


def _no_tangent(t: Operand) -> float:
    return 0.0


def glm(
    partials: Operand, support: Operand = None, kind: Any = Glm, **arguments: Operand
) -> Callable[[Callable[..., PassSums]], Glm]:
    """Make a density of a family.

    Parameters
    ----------
    partials : callable
        Takes the observations, the linear predictors (with intercept) and the other parameters;
        returns the elementwise derivatives of the log density with respect to the linear predictors
        ("eta") and to what is named, written with differentiable functions.
    support : callable, optional
        Whether all observations are possible, given them and the other parameters; where it is
        given they are discrete.
    kind : type
        The class to make.
    **arguments : tuple of str and Domain
        For each argument, in order, its title in messages and its domain.

    Returns
    -------
    callable
        Decorator for the family, a function of a `Pass`, the observations, the intercept, other
        parameters, and ``keep``.
    """
    return lambda family: kind(
        family, arguments, support, partials, () if support is None else ("y",)
    )


def titles(y: Operand, **others: Operand) -> Domains:
    """Titles and domains of the arguments, in Stan's words."""
    return {
        "y": ("Vector of dependent variables", y),
        "X": ("Matrix of independent variables", finite),
        "alpha": ("Intercept", finite),
        "beta": ("Weight vector", finite),
        **others,
    }


def normal_partials(y: Operand, eta: Operand, sigma: Operand) -> dict[str, Result]:
    z = (y - eta) / sigma
    w = z / sigma
    return {"eta": w, "y": -w, "sigma": (z * z - 1.0) / sigma}


# With z = (y - eta) / sigma:  log p = -z**2 / 2 - log(sigma) - log(2 pi) / 2,
# d/deta = z / sigma,  d/dy = -z / sigma,  d/dsigma = (z**2 - 1) / sigma.
@glm(normal_partials, **titles(finite, sigma=("Scale vector", positive_finite)))
def normal_id_glm_lpdf(
    one_pass: Pass, y: Operand, alpha: Operand, sigma: Operand, keep: KeptTerms
) -> PassSums:
    """Log density of a linear regression: ``normal_lpdf(y, alpha + X @ beta, sigma)`` in one pass
    through `X`.

    Parameters
    ----------
    y : array_like, shape (n,), or scalar
        Vector of dependent variables, finite.
    X : array_like, shape (n, m) or (m,)
        Matrix of independent variables, finite; a vector is one row for all observations.
    alpha : array_like, shape (n,), or scalar
        Intercept, or one for each observation, finite.
    beta : array_like, shape (m,)
        Weight vector, finite.
    sigma : array_like, shape (n,), or scalar
        Scale, or one for each observation, positive and finite.
    propto : bool, keyword only
        Drop the terms that depend on data only.

    Returns
    -------
    float or Var
        The sum over the observations; zero if there are none.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the arguments do not fit.

    Notes
    -----
    With :math:`z = (y - \\alpha - X \\beta) / \\sigma` and :math:`w = z / \\sigma` the derivatives
    are :math:`-w`, :math:`w \\beta^T`, :math:`w`, :math:`X^T w` and :math:`(z^2 - 1) / \\sigma`.
    `X` in C order is the quickest.

    References
    ----------
    Stan Functions Reference, "Normal-id generalized linear model (linear regression)"; P. McCullagh
    and J. A. Nelder, "Generalized Linear Models", 2nd edition, Chapman & Hall 1989, chapter 3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0])
    >>> vm.gradient(lambda beta: vm.normal_id_glm_lpdf(y, X, 0.5, beta, 1.0), np.zeros(2))
    array([5., 7.])
    """
    several, squares = type(sigma) is not float, 0.0
    # One scale is left for the end, unless squares of it, or of residuals like it, overflow or
    # underflow.
    each = several or not 1e-100 < sigma < 1e100

    def weigh(t: Operand, here: slice) -> None:
        nonlocal squares
        np.subtract(part(y, here), t, t)
        if alpha.__class__ is not float or alpha != 0.0:
            t -= part(alpha, here)
        if each:
            t /= part(sigma, here)
        squares += float(t.dot(t))
        if each:
            t /= part(sigma, here)

    one_pass.run(weigh)
    n, scale = one_pass.size, 1.0 if each else 1.0 / sigma**2
    squares *= scale
    value = -0.5 * squares
    if "sigma" in keep:
        value -= float(add_reduce(np.log(sigma))) if several else n * math.log(sigma)
    if "constants" in keep:
        value -= n * HALF_LOG_TWO_PI
    in_sigma = (
        (lambda w: w * w * sigma - 1.0 / sigma)
        if several
        else (lambda w: (squares - n) / (scale * sigma))
    )
    return PassSums(
        value, one_pass.weights, one_pass.product, scale, {"y": np.negative, "sigma": in_sigma}
    )


def bernoulli_partials(y: Operand, eta: Operand) -> dict[str, Result]:
    sign = 2.0 * y - 1.0
    return {"eta": sign * expit(-sign * eta)}


# With s = 2 y - 1 and t = s eta:  log p = -log(1 + exp(-t)) = min(t, 0) - log(1 + exp(-abs(t))),
# d/deta = s / (1 + exp(t)).
@glm(bernoulli_partials, lambda y: np.all((y == 0.0) | (y == 1.0)), **titles(not_nan))
def bernoulli_logit_glm_lpmf(
    one_pass: Pass, y: Operand, alpha: Operand, keep: KeptTerms
) -> PassSums:
    """Log mass of a logistic regression: ``bernoulli_logit_lpmf(y, alpha + X @ beta)`` in one pass
    through `X`.

    Parameters
    ----------
    y : array_like, shape (n,), or scalar
        Vector of dependent variables, 0 or 1.
    X : array_like, shape (n, m) or (m,)
        Matrix of independent variables, finite; a vector is one row for all observations.
    alpha : array_like, shape (n,), or scalar
        Intercept, or one for each observation, finite.
    beta : array_like, shape (m,)
        Weight vector, finite.
    propto : bool, keyword only
        Drop the terms that depend on data only.

    Returns
    -------
    float or Var
        The sum over the observations; zero if there are none, and -inf, with the gradient zero, if
        one of them is not 0 or 1.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for `y` only nan is.
    ShapeError
        If the arguments do not fit.

    Notes
    -----
    With :math:`s = 2 y - 1`, :math:`\\eta = \\alpha + X \\beta` and :math:`w = s / (1 + \\exp(s
    \\eta))` the derivatives are :math:`w \\beta^T`, :math:`w` and :math:`X^T w`. Neither overflows
    nor cancels.

    References
    ----------
    Stan Functions Reference, "Bernoulli-logit generalized linear model (Logistic Regression)"; P.
    McCullagh and J. A. Nelder, "Generalized Linear Models", 2nd edition, Chapman & Hall 1989,
    chapter 4.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0])
    >>> vm.gradient(lambda beta: vm.bernoulli_logit_glm_lpmf(y, X, 0.0, beta), np.zeros(2))
    array([-1., -1.])
    """
    value, first, second = 0.0, np.empty(one_pass.rows), np.empty(one_pass.rows)
    # With half the sign there is one multiplication less: -t = (1/2 - y) (2 eta).
    half_sign, twice = 0.5 - y, 2.0 * alpha

    def weigh(t: Operand, here: slice) -> None:
        nonlocal value
        if alpha.__class__ is not float or alpha != 0.0:
            t += part(twice, here)
        sign = part(half_sign, here)
        t *= sign
        e, other = first[: len(t)], second[: len(t)]
        np.exp(t, e)
        share = float(add_reduce(np.log1p(e, other)))
        if not share < math.inf:  # an exponential overflows
            np.exp(-np.abs(t), e)
            share = float(add_reduce(np.maximum(t, 0.0)) + add_reduce(np.log1p(e)))
            np.add(e, 1.0, other)
            e[:] = np.where(t > 0.0, 1.0, e)
        else:
            np.add(e, 1.0, other)
        value -= share
        np.divide(e, other, t)
        t *= sign

    one_pass.beta = 2.0 * one_pass.beta
    one_pass.run(weigh)
    return PassSums(value, one_pass.weights, one_pass.product, -2.0)


bernoulli_logit_glm_lpmf.data_domain = lambda *_: zero_or_one


def poisson_partials(y: Operand, eta: Operand) -> dict[str, Result]:
    return {"eta": y - np.exp(eta)}


# log p = y eta - exp(eta) - log(y!),  d/deta = y - exp(eta).
@glm(poisson_partials, lambda y: np.all(is_count(y)), **titles(not_nan))
def poisson_log_glm_lpmf(one_pass: Pass, y: Operand, alpha: Operand, keep: KeptTerms) -> PassSums:
    """Log mass of a Poisson regression with logarithmic link: ``poisson_log_lpmf(y, alpha + X @
    beta)`` in one pass through `X`.

    Parameters
    ----------
    y : array_like, shape (n,), or scalar
        Vector of dependent variables: counts.
    X : array_like, shape (n, m) or (m,)
        Matrix of independent variables, finite; a vector is one row for all observations.
    alpha : array_like, shape (n,), or scalar
        Intercept, or one for each observation, finite.
    beta : array_like, shape (m,)
        Weight vector, finite.
    propto : bool, keyword only
        Drop the terms that depend on data only.

    Returns
    -------
    float or Var
        The sum over the observations; zero if there are none, and -inf, with the gradient zero, if
        one of them is no count.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for `y` only nan is.
    ShapeError
        If the arguments do not fit.

    Notes
    -----
    With :math:`\\eta = \\alpha + X \\beta` and :math:`w = y - \\exp(\\eta)` the derivatives are
    :math:`w \\beta^T`, :math:`w` and :math:`X^T w`.

    References
    ----------
    Stan Functions Reference, "Poisson-log generalized linear model (Poisson regression)"; P.
    McCullagh and J. A. Nelder, "Generalized Linear Models", 2nd edition, Chapman & Hall 1989,
    chapter 6.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([3, 0])
    >>> vm.gradient(lambda beta: vm.poisson_log_glm_lpmf(y, X, 0.0, beta), np.zeros(2))
    array([-1.,  0.])
    """
    value = 0.0

    def weigh(t: Operand, here: slice) -> None:
        nonlocal value
        if alpha.__class__ is not float or alpha != 0.0:
            t += part(alpha, here)
        counts = part(y, here)
        value += counts * float(add_reduce(t)) if type(counts) is float else float(counts.dot(t))
        np.exp(t, t)
        value -= float(add_reduce(t))
        np.subtract(counts, t, t)

    one_pass.run(weigh)
    if "constants" in keep:
        value -= (
            one_pass.size * math.lgamma(y + 1.0) if type(y) is float else float(log_factorials(y))
        )
    return PassSums(value, one_pass.weights, one_pass.product)
