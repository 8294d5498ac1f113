"""Stan's library: what its functions are in varmat.

Most have Stan's name there. The tables here hold the others: those whose arguments are places,
which Stan counts from 1, those that tell rows from columns, those whose results are integers, and
those that take functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import varmat as vm
from varmat.core.domains import positive_finite
from varmat.core.elementwise import ROWS as ELEMENTWISE
from varmat.core.elementwise import Elementwise
from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.density import probability
from varmat.stan import containers, operators, transforms, types
from varmat.stan import syntax as s
from varmat.stan.containers import *  # noqa: F403
from varmat.stan.running import Evaluation, proportional
from varmat.stan.types import ArrayType, Tuple, Type
from varmat.stan.values import (
    MATRICES,
    ROWS,
    SCALARS,
    VECTORS,
    StanValue,
    dtype_of,
    innermost,
    read,
    shape_of,
)

Kinds = tuple["Type", ...]
StanFunction = Callable[..., StanValue]


class Passed:
    """A function of the program that is an argument of one of the library."""

    def __init__(
        self, call: StanFunction, arguments: Sequence[s.ArgumentDeclaration], run: Evaluation
    ) -> None:
        self._call, self._run = call, run
        self._integers = [
            i for i, argument in enumerate(arguments) if innermost(argument.type) == types.INT
        ]

    def __call__(self, *arguments: StanValue) -> StanValue:
        if self._integers:  # solvers make floats of them
            values = list(arguments)
            for i in self._integers:
                x = values[i]
                values[i] = np.asarray(x, np.int64) if np.ndim(x) else int(x)
            return self._call(self._run, values)
        return self._call(self._run, arguments)


def library(
    name: str, kinds: Kinds, result: Type | None, saved: Sequence[bool] = ()
) -> Callable[..., StanValue]:
    """Find the library function for arguments of these types; it takes the run, then them."""
    if name.endswith("_rng"):
        function = _generator(implementation(name, kinds))
    elif name.endswith(("_lupdf", "_lupmf")):
        return proportional(implementation(name.replace("_lup", "_lp"), kinds), saved)
    elif name.endswith("_jacobian"):
        return _with_jacobian(name)
    else:
        function = _without_run(implementation(name, kinds))
    is_whole = result is not None and innermost(result) == types.INT
    return _result_of(function, result) if is_whole or result in SCALARS else function


def _without_run(function: StanFunction) -> Callable[..., StanValue]:
    return lambda run, *arguments: function(*arguments)


def _result_of(function: Callable[..., StanValue], kind: Type | None) -> Callable[..., StanValue]:
    """Make a function return Python numbers, or arrays of integers, as its type requires."""

    def call(run: Evaluation, *arguments: object) -> StanValue:
        result = function(run, *arguments)
        if kind not in SCALARS:
            return np.asarray(result, np.int64)
        result = result.item() if isinstance(result, (np.generic, np.ndarray)) else result
        return int(result) if kind == types.INT else result

    return call


def implementation(name: str, kinds: Kinds) -> StanFunction:
    """Find the function of a name for arguments of these types."""
    make = BY_TYPES.get(name)
    if make is not None:
        return make(kinds)
    if name.startswith("laplace_"):
        return _laplace(name, kinds)
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in _OPERATORS:
        return operators.binary(_OPERATORS[name], *kinds)
    if name in _NUMPY or name in _ELEMENTWISE:
        return _elementwise(name, kinds)
    if "_glm_" in name and kinds[_design(name)] in ROWS:
        return _with_design(getattr(vm, name), _design(name))
    return _of_varmat(name)


def _of_varmat(name: str) -> StanFunction:
    """Find the varmat function for a name of Stan."""
    set_name, _, direction = name.rpartition("_")
    if direction in ("constrain", "unconstrain"):
        result = _TRANSFORMS.get(set_name) or tuple(
            getattr(vm, f"{_SETS.get(set_name, set_name)}_{end}") for end in ("constrain", "free")
        )
        transform: StanFunction = result[direction == "unconstrain"]
        return transform
    function: StanFunction = getattr(containers, name, None) or getattr(vm, name)
    return function


def acts_by_element(name: str) -> bool:
    """Tell whether a function of numbers takes arrays of them element by element."""
    return name == "pow" or row_of(name) is not None


def truncated(name: str) -> Callable[..., StanValue]:
    """Return a density truncated to an interval, one of whose ends may be None."""
    density = getattr(vm, name)
    return lambda lower, upper, *values: vm.truncated(density, lower=lower, upper=upper)(*values)


def _generator(draw: StanFunction) -> Callable[..., StanValue]:
    return lambda run, *arguments: draw(*arguments, rng=run.rng)


def _with_jacobian(name: str) -> Callable[..., StanValue]:
    constrain = implementation(name.replace("_jacobian", "_constrain"), ())

    def call(run: Evaluation, *arguments: object) -> StanValue:
        value, term = constrain(*arguments, jacobian=True)
        if run.jacobian:
            run.terms.append(term)
        return value

    return call


# --- elementwise ---

_NUMPY = {
    "abs": "absolute", "fabs": "fabs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin",
    "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "atan2": "arctan2",
    "inv_logit": "expit", "logit": "logit", "lgamma": "gammaln", "tgamma": "gamma",
    "log_inv_logit": "log_expit", "inv": "reciprocal",
}  # fmt: skip
_ELEMENTWISE = frozenset({
    "Phi_approx", "cbrt", "ceil", "cos", "cosh", "digamma", "erf", "erfc", "exp", "exp2", "expm1",
    "fdim", "floor", "fmax", "fmin", "fmod", "hypot", "inv_cloglog", "inv_sqrt", "inv_square",
    "log", "log10", "log1m", "log1m_exp", "log1m_inv_logit", "log1p", "log1p_exp", "log2", "sin",
    "sinh", "sqrt", "square", "tan", "tanh", "trunc",
})  # fmt: skip


def row_of(name: str) -> Elementwise | None:
    """Find the row of the elementwise table behind a function; None if it is not elementwise."""
    if name in _NUMPY or name in _ELEMENTWISE:
        return ELEMENTWISE[_NUMPY.get(name, name)]
    result = ELEMENTWISE["logaddexp"] if name == "log_sum_exp" else None
    if result is None and name not in containers.__all__:
        result = getattr(vm, name, None)
    result = getattr(result, "alias_of", result)
    return result if isinstance(result, Elementwise) else None


def _elementwise(name: str, kinds: Kinds) -> StanFunction:
    if not kinds:  # log2() is a constant
        constant = getattr(np, name.rstrip("0123456789"))(float(name.lstrip("log")))
        return lambda: constant
    row: StanFunction = ELEMENTWISE[_NUMPY.get(name, name)].call
    integers = [innermost(kind) == types.INT for kind in kinds]
    if name == "abs" and all(integers):
        return np.abs
    if not any(integers):
        return row
    return lambda *xs: row(
        *(_real(x) if is_int else x for x, is_int in zip(xs, integers, strict=True))
    )


def _real(x: StanValue) -> StanValue:
    return x.astype(float) if type(x) is np.ndarray else float(x)


def _rounded(x: object) -> StanValue:
    """Round to integers, halves away from zero."""
    return np.trunc(x + np.where(np.asarray(vm.value(x)) < 0, -0.5, 0.5))


def _extreme(
    of_two: StanFunction, of_many: StanFunction, empty: float
) -> Callable[[Kinds], StanFunction]:
    def make(kinds: Kinds) -> StanFunction:
        if len(kinds) == 2:
            return of_two
        if innermost(kinds[0]) == types.INT:
            return of_many
        return lambda x: of_many(x) if np.size(x) else empty

    return make


def _log_sum_exp(kinds: Kinds) -> StanFunction:
    return vm.log_sum_exp if len(kinds) == 1 else ELEMENTWISE["logaddexp"].call


# --- shapes ---


def _rows(kinds: Kinds) -> StanFunction:
    return (lambda x: 1) if kinds[0] in ROWS else lambda x: x.shape[0]


def _cols(kinds: Kinds) -> StanFunction:
    return (lambda x: 1) if kinds[0] in VECTORS else lambda x: x.shape[-1]


def _size(kinds: Kinds) -> StanFunction:
    if kinds[0] in SCALARS:
        return lambda x: 1
    return len if isinstance(kinds[0], ArrayType) else lambda x: x.size


def _num_elements(kinds: Kinds) -> StanFunction:
    return lambda x: math.prod(shape_of(x))


def _dims(x: object) -> StanValue:
    return np.array(shape_of(x), np.int64)


def _column_major(x: StanValue) -> StanValue:
    return np.reshape(np.transpose(x), -1)


def _to_vector(kinds: Kinds) -> StanFunction:
    if kinds[0] in MATRICES:
        return _column_major
    return _real if innermost(kinds[0]) == types.INT else lambda x: x


def _to_array_1d(kinds: Kinds) -> StanFunction:
    return _column_major if kinds[0] in MATRICES else lambda x: np.reshape(x, -1)


def _to_matrix(kinds: Kinds) -> StanFunction:
    kind = kinds[0]
    real = _real if innermost(kind) == types.INT else lambda x: x
    if len(kinds) == 1:
        if kind in VECTORS:
            return lambda x: np.reshape(x, (-1, 1))
        return (lambda x: np.reshape(x, (1, -1))) if kind in ROWS else real

    def shaped(x: object, m: int, n: int, by_columns: int = 1) -> StanValue:
        flat = _column_major(x) if kind in MATRICES else real(x)
        if by_columns:
            return np.transpose(np.reshape(flat, (n, m)))
        return np.reshape(flat, (m, n))

    return shaped


def _append_row(kinds: Kinds) -> StanFunction:
    return lambda x, y: np.concatenate([_as_rows(x, kinds[0]), _as_rows(y, kinds[1])])


def _as_rows(x: StanValue, kind: Type) -> StanValue:
    """Return the rows of a matrix or row vector, or the elements of a column or number."""
    return np.reshape(x, (1, -1)) if kind in ROWS else np.reshape(x, -1) if kind in SCALARS else x


def _append_col(kinds: Kinds) -> StanFunction:
    def joined(x: object, y: object) -> StanValue:
        parts = [_as_columns(x, kinds[0]), _as_columns(y, kinds[1])]
        return np.concatenate(parts, axis=-1)

    return joined


def _as_columns(x: StanValue, kind: Type) -> StanValue:
    if kind in VECTORS:
        return np.reshape(x, (-1, 1))
    return np.reshape(x, -1) if kind in SCALARS else x


def _append_array(x: StanValue, y: StanValue) -> StanValue:
    if isinstance(x, list):
        return [*x, *y]
    if not x.size or not y.size:
        return y if not x.size else x
    return np.concatenate([x, y])


def _rep_matrix(kinds: Kinds) -> StanFunction:
    if kinds[0] in ROWS:
        return lambda x, m: np.transpose(containers.rep_matrix(x, m))
    return containers.rep_matrix


def _rep_array(kinds: Kinds) -> StanFunction:
    kind = kinds[0]
    if isinstance(innermost(kind), Tuple):

        def nested(x: object, count: int, *counts: int) -> StanValue:
            return [nested(x, *counts) if counts else x for _ in range(count)]

        return nested

    def repeated(x: StanValue, *counts: int) -> StanValue:
        if is_differentiable(x):
            return containers.rep_array(x, *counts)
        return np.full((*counts, *np.shape(x)), x, dtype_of(kind))

    return repeated


def _part(*indices: Callable[..., StanValue]) -> StanFunction:
    """Return a function that reads a part, whose indices are functions of the other arguments."""
    return lambda x, *args: read(x, [index(x, *args) for index in indices])


def _dot_products(axis: int, own: frozenset[Type]) -> Callable[[Kinds], StanFunction]:
    """Return a function that makes dot products of columns or of rows; `own` are vectors that are
    one of them.
    """

    def make(kinds: Kinds) -> StanFunction:
        if kinds[0] in MATRICES:
            return lambda x, y=None: np.sum(x * (x if y is None else y), axis)
        if kinds[0] in own:
            return lambda x, y=None: np.reshape(vm.dot_product(x, x if y is None else y), (1,))
        return lambda x, y=None: x * (x if y is None else y)

    return make


def _tail(x: StanValue, n: int) -> slice:
    return slice(len(x) - n + 1, len(x))


def _logical(compare: StanFunction) -> StanFunction:
    return lambda *xs: operators.truth(compare(*xs))


# --- models ---


def _design(name: str) -> int:
    """Return the position of the design matrix among the arguments."""
    return 2 if name.startswith("binomial") else 1


def _with_design(density: StanFunction, place: int) -> StanFunction:
    """Let a density of a generalised linear model take a row vector as its design matrix."""

    def call(*arguments: StanValue, **settings: Any) -> StanValue:
        x = np.reshape(arguments[place], (1, -1))
        return density(*arguments[:place], x, *arguments[place + 1 :], **settings)

    return call


_CORRELATIONS: dict[str, StanFunction] = {
    "exp_quad": lambda square: np.exp(-0.5 * square),
    "exponential": lambda square: np.exp(-np.sqrt(square)),
    "matern32": lambda square: (1 + np.sqrt(3 * square)) * np.exp(-np.sqrt(3 * square)),
    "matern52": lambda square: (
        (1 + np.sqrt(5 * square) + 5 / 3 * square) * np.exp(-np.sqrt(5 * square))
    ),
}


def _covariance(name: str) -> Callable[[Kinds], StanFunction]:
    """Return a function that selects a covariance function for one set of points, or for two."""
    alone: StanFunction = getattr(vm, f"gp_{name}_cov")

    def make(kinds: Kinds) -> StanFunction:
        if len(kinds) == 1 or not isinstance(kinds[1], ArrayType):
            return alone
        points = (
            (lambda x: x) if kinds[0] != ArrayType(types.REAL) else lambda x: np.reshape(x, (-1, 1))
        )
        if name == "dot_prod":
            return lambda x, y, sigma: sigma**2 + points(x) @ np.transpose(points(y))

        def between(
            x: object, y: object, sigma: StanValue, length: StanValue, *period: StanValue
        ) -> StanValue:
            difference = points(x)[:, None] - points(y)
            if period:
                distance = np.sqrt(np.sum(difference**2, -1))
                return sigma**2 * np.exp(
                    -2 * (np.sin(math.pi * distance / period[0]) / length) ** 2
                )
            return sigma**2 * _CORRELATIONS[name](np.sum((difference / length) ** 2, -1))

        return between

    return make


# --- functions of functions ---


def _reduce_sum(f: Passed, x: StanValue, grainsize: int, *shared: StanValue) -> StanValue:
    """Apply the function to all of `x`, because that is the sum over slices."""
    if grainsize < 1:
        raise DomainError(f"reduce_sum: grainsize is {grainsize}, but must be positive!")
    return f(x, 1, len(x), *shared) if len(x) else 0.0


def _map_rect(
    f: Passed, shared: StanValue, jobs: StanValue, x_r: StanValue, x_i: StanValue
) -> StanValue:
    parts = [f(shared, *job) for job in zip(jobs, x_r, x_i, strict=True)]
    return np.concatenate(parts) if parts else np.empty(0)


def _integrate_1d(f: Passed, a: StanValue, b: StanValue, *args: StanValue) -> StanValue:
    theta, x_r, x_i, *tolerance = args
    settings = {"relative_tolerance": tolerance[0]} if tolerance else {}
    return vm.integrate_1d(f, a, b, theta, x_r, x_i, **settings)


def _integral(f: Passed, a: object, b: object, *args: object) -> StanValue:
    return vm.integrate_1d(f, a, b, *args)


def _integral_tol(f: Passed, a: object, b: object, relative: float, *args: object) -> StanValue:
    return vm.integrate_1d(f, a, b, *args[2:], relative_tolerance=relative)


# Tolerance, steps, solver, halvings of a step, and whether other solvers are tried.
_OPTIONS = (1.5e-8, 500, 1, 1000, 1)


def _laplace(name: str, kinds: Kinds) -> StanFunction:
    """Return a marginal over latent normals; the argument before the covariance is the block size
    of the Hessian, or the first vector.
    """
    place = max(i for i, kind in enumerate(kinds) if isinstance(kind, types.FunctionType))
    is_general, ending = place == 3, "marginal" if "marginal" in name else "latent"
    with_tolerances = getattr(
        vm, name.replace(f"{ending}_tol", ending).replace(ending, f"{ending}_tol")
    )

    def call(*arguments: StanValue, propto: bool = False, **rng: Any) -> StanValue:
        first, (block, *covariance) = [*arguments[: place - 1]], arguments[place - 1 : place + 2]
        if not is_general:
            first[1] = first[1] - 1
            first[2:-1] = [x[0] if np.shape(x) == (1,) else x for x in first[2:-1]]
        start, *settings = arguments[-1] if "_tol" in name else (None, *_OPTIONS)
        if np.ndim(block):
            start, block = block, 1
        settings.insert(2, block if is_general else 1)
        return with_tolerances(*first, *covariance, (start, *settings), **rng)

    return call


def _student_t_qf(p: object, nu: object, mu: object, sigma: object) -> StanValue:
    from scipy.special import stdtrit  # SciPy takes half of the time of importing this module

    domains = (
        ("p", p, probability),
        ("nu", nu, positive_finite),
        ("sigma", sigma, positive_finite),
    )
    for title, x, domain in domains:
        domain.check("student_t_qf", title, vm.value(x))
    return mu + sigma * stdtrit(nu, p)


def _trace_dot(a: StanValue, b: StanValue) -> StanValue:
    if np.shape(a) != np.shape(b)[::-1]:
        raise ShapeError(
            f"trace_dot: the matrices have shapes {np.shape(a)} and {np.shape(b)}, but one must "
            "be the transpose of the other!"
        )
    return np.sum(a * np.transpose(b))


def _adjoint(f: Passed, *arguments: StanValue) -> StanValue:
    return vm.ode_adjoint_tol_ctl(f, *arguments)


BY_TYPES: dict[str, Callable[[Kinds], StanFunction]] = {
    "append_col": _append_col,
    "append_row": _append_row,
    "cols": _cols,
    "columns_dot_product": _dot_products(0, VECTORS),
    "columns_dot_self": _dot_products(0, VECTORS),
    "log_sum_exp": _log_sum_exp,
    "max": _extreme(max, np.max, -math.inf),
    "min": _extreme(min, np.min, math.inf),
    "num_elements": _num_elements,
    "rep_array": _rep_array,
    "rep_matrix": _rep_matrix,
    "rows": _rows,
    "rows_dot_product": _dot_products(1, ROWS),
    "rows_dot_self": _dot_products(1, ROWS),
    "size": _size,
    "to_array_1d": _to_array_1d,
    "to_matrix": _to_matrix,
    "to_row_vector": _to_vector,
    "to_vector": _to_vector,
    "transpose": lambda kinds: operators.transposed(kinds[0]),
    **{f"gp_{name}_cov": _covariance(name) for name in (*_CORRELATIONS, "periodic", "dot_prod")},
    "cov_exp_quad": _covariance("exp_quad"),
}
FUNCTIONS: dict[str, StanFunction] = {
    "append_array": _append_array,
    "block": _part(
        lambda x, i, j, m, n: slice(i, i + m - 1), lambda x, i, j, m, n: slice(j, j + n - 1)
    ),
    "bessel_first_kind": vm.bessel_first_kind,
    "col": _part(lambda x, j: slice(None), lambda x, j: j),
    "dims": _dims,
    "diagonal": np.diagonal,
    "generate_laplace_options": lambda x: (x if np.ndim(x) else np.zeros(x), *_OPTIONS),
    "head": _part(lambda x, n: slice(1, n)),
    "integrate_1d": _integrate_1d,
    "integrate_1d_double_exponential": _integral,
    "integrate_1d_double_exponential_tol": _integral_tol,
    "integrate_1d_gauss_kronrod": _integral,
    "integrate_1d_gauss_kronrod_tol": _integral_tol,
    "is_inf": lambda x: operators.truth(np.isinf(vm.value(x))),
    "is_nan": lambda x: operators.truth(np.isnan(vm.value(x))),
    "ldexp": np.ldexp,
    "logical_negation": operators.negated,
    "logical_and": _logical(np.logical_and),
    "logical_or": _logical(np.logical_or),
    "map_rect": _map_rect,
    "minus": lambda x: -x,
    "norm": vm.norm,
    "ode_adjoint_tol_ctl": _adjoint,
    "one_hot_array": lambda n, k: containers.one_hot_array(n, k - 1),
    "one_hot_int_array": lambda n, k: containers.one_hot_int_array(n, k - 1),
    "one_hot_row_vector": lambda n, k: containers.one_hot_row_vector(n, k - 1),
    "one_hot_vector": lambda n, k: containers.one_hot_vector(n, k - 1),
    "plus": lambda x: x,
    "pow": operators.powers,
    "quantile": np.quantile,
    "rank": lambda x, i: int(vm.rank(x, i - 1)),
    "reduce_sum": _reduce_sum,
    "reduce_sum_static": _reduce_sum,
    "round": _rounded,
    "row": _part(lambda x, i: i),
    "segment": _part(lambda x, i, n: slice(i, i + n - 1)),
    "sort_indices_asc": lambda x: np.asarray(vm.sort_indices_asc(x)) + 1,
    "sort_indices_desc": lambda x: np.asarray(vm.sort_indices_desc(x)) + 1,
    "student_t_qf": _student_t_qf,
    "sub_col": _part(lambda x, i, j, n: slice(i, i + n - 1), lambda x, i, j, n: j),
    "sub_row": _part(lambda x, i, j, n: i, lambda x, i, j, n: slice(j, j + n - 1)),
    "sum": np.sum,
    "tail": _part(_tail),
    "trace_dot": _trace_dot,
}
_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "elt_multiply": ".*",
    "elt_divide": "./", "modulus": "%", "logical_eq": "==", "logical_neq": "!=",
    "logical_lt": "<", "logical_lte": "<=", "logical_gt": ">", "logical_gte": ">=",
}  # fmt: skip
# Names of transforms in Stan and in varmat; simplexes have the transform of Stan 2.37.
_SETS = {
    "lower_bound": "lb",
    "upper_bound": "ub",
    "lower_upper_bound": "lub",
    "cholesky_factor_corr": "cholesky_corr",
    "cholesky_factor_cov": "cholesky_factor",
}
_TRANSFORMS: dict[str, tuple[StanFunction, StanFunction]] = {
    "simplex": (transforms.logarithmic_ratios, transforms.logarithmic_ratios_free),
    "stochastic_row": (transforms.logarithmic_ratios, transforms.logarithmic_ratios_free),
    "stochastic_column": (transforms.columns_of_ratios, transforms.columns_of_ratios_free),
}
