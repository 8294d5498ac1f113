"""Densities of generalised linear models: a row of the table of densities, and a matrix.

The matrix is read block by block. The function of the row takes the linear predictors of a block
while the block is in the cache, and the derivatives that it returns are multiplied by the block at
once. A call without variables leaves the second product out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial, update_wrapper
from typing import NamedTuple

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.dispatch import plain
from varmat.core.domains import finite, positive_finite
from varmat.core.dual import Dual, dual_call
from varmat.core.matvar import MatVar, to_varmat
from varmat.core.operation import OPERATIONS, as_operand
from varmat.densities.bernoulli import bernoulli_logit_lpmf
from varmat.densities.counts import poisson_log_lpmf
from varmat.densities.density import Domains, KeptTerms, ieee, not_nan, possible
from varmat.densities.normal import normal_lpdf
from varmat.densities.row_pass import in_matrix, observations, part, pass_over, total
from varmat.densities.summed_density import (
    IS_ARRAY,
    IS_VARIABLE,
    Computed,
    SummedDensity,
    Use,
    as_number,
)
from varmat.densities.univariate import Univariate
from varmat.functions.checks import is_held, misfit
from varmat.functions.sparse.products import checked_matrix
from varmat.functions.sparse.variable import as_sparse
from varmat.plain_arrays import is_scipy_sparse
from varmat.programs.build.symbol import is_symbol, refuse
from varmat.programs.ir.program import ElsewhereError
from varmat.typing import Function, Linear, Operand, Plain, Result, Settings, Shape

__all__ = ["bernoulli_logit_glm_lpmf", "normal_id_glm_lpdf", "poisson_log_glm_lpmf"]

# The name of the linear predictors, which are not an argument.
PREDICTOR = "eta"
LINEAR = frozenset({"X", "alpha", "beta"})


class ModelUse(NamedTuple):
    """The plan of one specialisation of a model: see `Glm.evaluate`."""

    active: list[str]
    # The row's own use, and its partials in their order.
    use: Use
    wanted: list[str]
    # Whether the derivatives in single predictors are wanted, and not only sums of them.
    is_each: bool


class Glm(SummedDensity):
    """A density of the linear predictors ``alpha + X @ beta``; made by `glm`.

    Attributes
    ----------
    row : Univariate
        The density of each observation.
    names : dict
        Name of an argument of the row -> the name of the argument here, or `PREDICTOR`.
    """

    is_elementwise = False

    def __init__(
        self, family: Function, row: Univariate, predictor: str, arguments: Domains
    ) -> None:
        first, *others = (name for name in arguments if name not in LINEAR)
        self.names = {row.operands[0]: first, predictor: PREDICTOR}
        remainder = [name for name in row.operands if name not in self.names]
        result = self.names | dict(zip(remainder, others, strict=True))
        self.names = {name: result[name] for name in row.operands}
        super().__init__(family.__name__, arguments, [result[name] for name in row.discrete])
        update_wrapper(self, family)
        self.row, self.data_domain = row, row.data_domain
        # What makes the value infinite or nan if it is outside its domain is checked only if the
        # value is that.
        self.early = [(name, *arguments[name]) for name in others]
        self._tangent, self._plan = self._maps, cache(self._plan_of)

    def as_data(self, x: Operand) -> tuple[Operand, int] | None:
        """Convert a number, an array of integers or a sparse matrix, with its kind; else None."""
        if not is_scipy_sparse(x):
            return as_number(x)
        x = checked_matrix(self.name, "X", x)
        if x.shape[0] == 1:  # one row for all observations
            x = x.toarray()
        elif x.format not in ("csr", "csc", "coo"):  # SciPy converts these at every product
            x = x.tocsr()
        return x.astype(FLOAT64, copy=False), IS_ARRAY

    def general(self, args: Sequence[Operand], settings: Settings) -> Result:
        if any(map(is_symbol, args)):  # a program has its own form, or calls this function
            refuse()
        arguments = dict(zip(self.operands, args, strict=True))
        if not is_scipy_sparse(arguments["X"]):
            return super().general(args, settings)
        args = [
            self.as_data(x)[0] if name == "X" else as_operand(x, f"{self.name}: {name}")  # type: ignore[index]
            for name, x in arguments.items()
        ]
        if any(isinstance(x, Dual) for x in args):
            return dual_call(self, args, settings)
        return self(*(to_varmat(x) if isinstance(x, MatVar) else x for x in args), **settings)

    def evaluate(self, values: list[Operand], shape: Shape | None, use: Use) -> Computed:
        arguments = dict(zip(self.operands, values, strict=True))
        for name, title, domain in self.early:
            domain.check(self.name, title, arguments[name])
        size, numbers = _rows(**arguments), NO_NUMBERS
        if size < 2:
            size = self.size(values)
            arguments |= {
                name: _number(x) for name, x in arguments.items() if name not in ("X", "beta")
            }
            numbers = tuple(name for name, x in arguments.items() if type(x) is float)
        x = arguments["X"]
        plan = self._plan(use, numbers, x.ndim == 1 or x.shape[0] != size)
        keep = use[1] if isinstance(use, tuple) else LINEAR
        if not size or not keep & LINEAR:  # an argument outside its domain would not show
            self._check_domains(values)
        if not size or not keep:
            return 0.0, [0.0] * len(plan.active)
        try:
            with np.errstate(all="ignore"):
                try:
                    value, partials = self._evaluate(plan, arguments, size, False)
                # where Python's floats raise, IEEE arithmetic answers
                except (ArithmeticError, ValueError):
                    value, partials = self._evaluate(plan, arguments, size, True)
        except ElsewhereError:  # an observation is outside the support
            self._check_domains(values)
            return -np.inf, [0.0] * len(plan.active)
        if not -np.inf < value < np.inf:
            self._check_domains(values)
        return value, [partials[name] for name in plan.active]

    def _plan_of(self, use: Use, numbers: tuple[str, ...], has_one_row: bool) -> ModelUse:
        keep = use[1] if isinstance(use, tuple) else None
        kinds = dict(zip(self.operands, self.kinds_of(use), strict=True))
        active = [name for name, kind in kinds.items() if kind & IS_VARIABLE]
        for name in self.discrete.intersection(active):
            self.refuse_variable(name)
        arrays = {name for name, kind in kinds.items() if kind & IS_ARRAY and name not in numbers}
        if not has_one_row or "alpha" in arrays:
            arrays.add(PREDICTOR)
        variables = {*active} if LINEAR.isdisjoint(active) else {*active, PREDICTOR}
        packed = 1
        for name in self.names.values():
            packed = packed << 2 | IS_ARRAY * (name in arrays) | IS_VARIABLE * (name in variables)
        return ModelUse(
            active,
            packed if keep is None else (packed, self.kept_of_row(keep)),
            [name for name in self.names.values() if name in variables],
            "X" in active or ("alpha" in active and "alpha" in arrays),
        )

    # Derivatives of the summed log density f(eta), with eta = alpha + X @ beta and w = f'(eta):
    # d/dX = w beta', d/dalpha = w, d/dbeta = X' w.
    def _evaluate(
        self, plan: ModelUse, arguments: dict[str, Operand], size: int, exact: bool
    ) -> tuple[float, dict[str, Result]]:
        """Compute the value, and the partials by name."""
        x, alpha, beta = arguments["X"], arguments["alpha"], arguments["beta"]
        at = plan.wanted.index(PREDICTOR) if PREDICTOR in plan.wanted else None
        has_intercept = type(alpha) is not float or alpha != 0.0
        operands = [arguments.get(name) for name in self.names.values()]
        operands = ieee(operands) if exact else operands
        value, blocks = 0.0, []

        def weigh(t: Operand, here: slice) -> Plain | None:
            """Add the log density at predictors without intercept; the derivatives in them."""
            nonlocal value
            if has_intercept:
                t += part(alpha, here)
            count = len(t) if type(t) is np.ndarray else size
            function = self.row.of_vectors(plan.use, count)[exact]
            row = [t if v is None else part(v, here) for v in operands]
            share, partials = function(*row, count)
            value += share
            blocks.append(partials)
            if at is None:
                return None
            weights = partials[at]
            if not plan.is_each:
                partials[at] = total(weights)
            return weights

        product = pass_over(x, beta, size, weigh, at is not None)
        if len(blocks) > 1:
            blocks = [[*map(_joined, zip(*blocks, strict=True))]]
        result = dict(zip(plan.wanted, blocks[0], strict=True))
        if at is not None:
            w = result[PREDICTOR]
            if "X" in plan.active:
                result["X"] = in_matrix(w, x, beta)
            result["beta"], result["alpha"] = product, w if type(alpha) is not float else total(w)
        return value, result

    def kept_of_row(self, keep: KeptTerms) -> KeptTerms:
        """Return the arguments of the row whose terms are kept."""
        keep = keep | {PREDICTOR} if keep & LINEAR else keep
        return frozenset(name for name, own in self.names.items() if own in keep)

    def _check_domains(self, values: Sequence[Plain]) -> None:
        for (title, domain), x in zip(self.checks, values, strict=True):
            if not is_scipy_sparse(x):
                domain.check(self.name, title, x)
                continue
            coo = x.tocoo()
            for i in np.flatnonzero(~domain.holds(coo.data)):
                place = f"{title}[{coo.row[i]}, {coo.col[i]}]"
                domain.check(self.name, place, float(coo.data[i]))

    def size(self, values: Sequence[Operand]) -> int:
        """Return the number of observations."""
        arguments = {
            name: (title, x)
            for (name, (title, _)), x in zip(self.arguments.items(), values, strict=True)
        }
        (_, x), (title, beta) = arguments.pop("X"), arguments.pop("beta")
        if np.ndim(x) in (1, 2) and np.shape(beta) != x.shape[-1:]:
            raise misfit(self.name, title, np.shape(beta), f"have the shape {x.shape[-1:]}")
        return observations(self.name, x, arguments.values())

    def _maps(self, r: Operand, *values: Operand, keep: KeptTerms | None) -> tuple[Result, ...]:
        arguments = dict(zip(self.operands, values, strict=True))
        x, beta = arguments["X"], arguments["beta"]
        x = as_sparse(x) if is_scipy_sparse(x) else x
        arguments[PREDICTOR] = arguments["alpha"] + x @ beta
        operands = [arguments[name] for name in self.names.values()]
        inside = is_held(possible, r) or self.row.in_support([*map(plain, operands)])
        if not self.size(values) or not inside:
            return (_no_tangent,) * self.arity
        rates = {
            own: cache(lambda name=name: self.row.slopes[name](*ieee(operands))[0])
            for name, own in self.names.items()
        }
        along: dict[str, Linear] = {"X": lambda t: t @ beta, "beta": lambda t: x @ t}

        def push(name: str, t: Operand) -> Result:
            if name in self.discrete:
                self.refuse_variable(name)
            return np.sum(rates.get(name, rates[PREDICTOR])() * along.get(name, _same)(t))

        return tuple(partial(push, name) for name in self.operands)


NO_NUMBERS: tuple[str, ...] = ()


def _rows(*, X: Operand, beta: Operand, **vectors: Operand) -> int:
    """Return the number of observations if there is a row of `X` for each, and all others are
    floats or vectors; otherwise zero.
    """
    if type(X) is type(beta) is np.ndarray and X.ndim == 2 and beta.shape == X.shape[1:]:
        shape = X.shape[:1]
        for v in vectors.values():
            if type(v) is not float and v.shape != shape:
                return 0
        return shape[0]  # type: ignore[no-any-return]
    return 0


def _number(x: Operand) -> Result:
    """Return a float instead of an array of one element."""
    return x if type(x) is np.ndarray and x.size != 1 else float(np.reshape(x, ()))


def _joined(parts: Sequence[Operand]) -> Result:
    """Join the parts of a partial from all blocks."""
    return sum(parts) if type(parts[0]) is float else np.concatenate(parts)


def _same(t: Operand) -> Result:
    return t


def _no_tangent(t: Operand) -> float:
    return 0.0


def glm(row: Univariate, predictor: str, **arguments: Operand) -> Callable[[Function], Glm]:
    """Make the density of a generalised linear model.

    Parameters
    ----------
    row : Univariate
        The density of an observation.
    predictor : str
        The argument of the row for which the linear predictor stands.
    **arguments : tuple of str and Domain
        For each argument, in order, its title in messages and its domain: first the observations,
        then in any order `X`, `alpha`, `beta` and the other arguments of the row in its order.

    Returns
    -------
    callable
        Decorator for a function that gives the density its name and docstring.
    """

    def make(family: Function) -> Glm:
        result = OPERATIONS[family.__name__] = Glm(family, row, predictor, arguments)
        return result

    return make


def titles(y: Operand, **others: Operand) -> Domains:
    """Return titles and domains of the arguments, in Stan's words."""
    return {
        "y": ("Vector of dependent variables", y),
        "X": ("Matrix of independent variables", finite),
        "alpha": ("Intercept", finite),
        "beta": ("Weight vector", finite),
        **others,
    }


@glm(normal_lpdf, "mu", **titles(finite, sigma=("Scale vector", positive_finite)))
def normal_id_glm_lpdf() -> None:
    """Compute the log density of a linear regression: ``normal_lpdf(y, alpha + X @ beta, sigma)``
    in one pass through `X`.

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
        The sum over the observations; zero without any.

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


@glm(bernoulli_logit_lpmf, "alpha", **titles(not_nan))
def bernoulli_logit_glm_lpmf() -> None:
    """Compute the log mass of a logistic regression: ``bernoulli_logit_lpmf(y, alpha + X @ beta)``
    in one pass through `X`.

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
        The sum over the observations; zero without any, and -inf, with the gradient zero, if
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


@glm(poisson_log_lpmf, "alpha", **titles(not_nan))
def poisson_log_glm_lpmf() -> None:
    """Compute the log mass of a Poisson regression with logarithmic link: ``poisson_log_lpmf(y,
    alpha + X @ beta)`` in one pass through `X`.

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
        The sum over the observations; zero without any, and -inf, with the gradient zero, if
        one of them is not a count.

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
