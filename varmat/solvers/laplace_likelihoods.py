"""Laplace's approximation for Stan's built-in likelihoods of counts and trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from varmat.core.dual import value_now
from varmat.core.errors import ShapeError
from varmat.core.variables import data
from varmat.functions.checks import misfit, outside
from varmat.functions.special.gamma_functions import lgamma, log_rising_factorial
from varmat.functions.special.logistic_functions import log1p_exp
from varmat.solvers.laplace_marginal import EXAMPLE_TOLERANCES, document, laplace_functions
from varmat.typing import Function, Operand, Result

__all__ = [
    "laplace_latent_bernoulli_logit_rng",
    "laplace_latent_neg_binomial_2_log_rng",
    "laplace_latent_poisson_log_rng",
    "laplace_latent_tol_bernoulli_logit_rng",
    "laplace_latent_tol_neg_binomial_2_log_rng",
    "laplace_latent_tol_poisson_log_rng",
    "laplace_marginal_bernoulli_logit_lpmf",
    "laplace_marginal_neg_binomial_2_log_lpmf",
    "laplace_marginal_poisson_log_lpmf",
    "laplace_marginal_tol_bernoulli_logit_lpmf",
    "laplace_marginal_tol_neg_binomial_2_log_lpmf",
    "laplace_marginal_tol_poisson_log_lpmf",
]


# --- the likelihoods: `sums` are the totals of groups of observations, `counts` their sizes ---


def _poisson_log(theta: Operand, m: Operand, sums: Operand, counts: Operand, y: Operand) -> Result:
    eta = theta + m
    return np.sum(sums * eta) - np.sum(counts * np.exp(eta)) - np.sum(lgamma(y + 1.0))


def _bernoulli_logit(
    theta: Operand, m: Operand, sums: Operand, counts: Operand, y: Operand
) -> Result:
    eta = theta + m
    return np.sum(sums * eta) - np.sum(counts * log1p_exp(eta))


def _neg_binomial_2_log(
    theta: Operand, m: Operand, sums: Operand, counts: Operand, y: Operand, eta: Operand
) -> Result:
    """Compute the log likelihood: the sum of sums t - (sums + counts eta) log(1 + exp(t)), plus
    coefficients, with t = theta + m - log eta."""
    t = theta + m - np.log(eta)
    coefficients = np.sum(log_rising_factorial(eta, y)) - np.sum(lgamma(y + 1.0))
    return np.sum(sums * t) - np.sum((sums + counts * eta) * log1p_exp(t)) + coefficients


def _grouped(
    name: str,
    likelihood: Function,
    y: Operand,
    y_index: ArrayLike,
    m: Operand,
    k: Operand,
    *eta: Operand,
) -> tuple[Operand, ...]:
    """Check the arguments of the log likelihood, and return them by groups."""
    y, y_index = np.asarray(y), np.asarray(y_index)
    if np.ndim(k) != 2:
        raise misfit(name, "the covariance", np.shape(k), "be a square matrix")
    n = np.shape(k)[0]
    for title, x in (("y", y), ("y_index", y_index)):
        if x.ndim != 1:
            raise misfit(name, title, x.shape, "be a vector")
        if x.size and x.dtype.kind not in "iub":
            raise TypeError(
                f"{name}: {title} has elements of dtype {x.dtype}, but must have integers!"
            )
    if y.shape != y_index.shape:
        raise ShapeError(
            f"{name}: y has {y.size} elements, but must have {y_index.size}, one for each "
            "element of y_index!"
        )
    largest, rule = (1, "0 or 1") if likelihood is _bernoulli_logit else (np.inf, "nonnegative")
    for title, x, end, what in (
        ("y", y, largest, rule),
        ("y_index", y_index, n - 1, f"in 0, ..., {n - 1}"),
    ):
        wrong = np.flatnonzero((x < 0) | (x > end))
        if wrong.size:
            raise outside(name, f"{title}[{wrong[0]}]", int(x[wrong[0]]), f"be {what}")
    for title, x, shapes in (("m", m, [(), (n,)]), *(("eta", x, [()]) for x in eta)):
        values = (
            np.asarray(data(value_now(x), f"{name}: {title}"))
            if not isinstance(x, (list, tuple))
            else None
        )
        if np.shape(x) not in shapes:
            raise misfit(name, title, np.shape(x), f"have shape {' or '.join(map(str, shapes))}")
        if (
            values is not None
            and not (np.isfinite(values) & (values > (0.0 if title == "eta" else -np.inf))).all()
        ):
            what = "positive finite" if title == "eta" else "finite"
            raise outside(name, title, values.tolist(), f"be {what}")
    m = np.stack(m) if isinstance(m, (list, tuple)) else m
    sums = np.bincount(y_index, weights=y, minlength=n)
    return (m, sums, np.bincount(y_index, minlength=n).astype(float), y.astype(float), *eta)


# --- Stan's functions ---


def _problem(likelihood: Function) -> Callable[..., tuple[Function, Sequence[Operand]]]:
    def problem(
        name: str, covariance: Operand, y: Operand, y_index: ArrayLike, *args: Operand
    ) -> tuple[Function, Sequence[Operand]]:
        *eta, m = args
        return likelihood, _grouped(name, likelihood, y, y_index, m, covariance, *eta)

    return problem


_COUNTS = ("y", "y_index", "m")
(
    laplace_marginal_poisson_log_lpmf,
    laplace_marginal_tol_poisson_log_lpmf,
    laplace_latent_poisson_log_rng,
    laplace_latent_tol_poisson_log_rng,
) = laplace_functions("poisson_log", _COUNTS, _problem(_poisson_log))
(
    laplace_marginal_bernoulli_logit_lpmf,
    laplace_marginal_tol_bernoulli_logit_lpmf,
    laplace_latent_bernoulli_logit_rng,
    laplace_latent_tol_bernoulli_logit_rng,
) = laplace_functions("bernoulli_logit", _COUNTS, _problem(_bernoulli_logit))
(
    laplace_marginal_neg_binomial_2_log_lpmf,
    laplace_marginal_tol_neg_binomial_2_log_lpmf,
    laplace_latent_neg_binomial_2_log_rng,
    laplace_latent_tol_neg_binomial_2_log_rng,
) = laplace_functions(
    "neg_binomial_2_log", ("y", "y_index", "eta", "m"), _problem(_neg_binomial_2_log)
)


_PARAMETERS = """y : array_like of int, shape (N,)
        {counts}.
    y_index : array_like of int, shape (N,)
        For each observation the number of its latent variable, from 0.{eta}
    m : scalar or array_like, shape (n,)
        Offset that is added to the latent variables, whose mean is zero; finite."""
_ETA = """
    eta : scalar
        The dispersion: the variance is mean + mean**2 / eta; positive."""
_EXAMPLE = """>>> def covariance(amplitude, length):
    ...     return vm.gp_exp_quad_cov(x, amplitude, length)
    """
_MARGINAL = """>>> def f(length):
    ...     return vm.{name}(y, [0, 1, 2, 3], {eta}0.2, covariance, (0.5, length){more})
    >>> round(f(1.0), 6), round(vm.gradient(f, 1.0), 6)
    {values}"""
_DRAW = """>>> args = y, [0, 1, 2, 3], {eta}0.2, covariance, (0.5, 1.0){more}
    >>> vm.{name}(*args, rng=1, size=10).shape
    (10, 4)"""
# Family: what is observed, its values, an example, and the results of the example.
_FAMILIES = {
    "poisson_log": (
        "counts of a Poisson distribution with the log rates", "Counts; nonnegative",
         "[1, 0, 3, 2]", "(-6.32963, -0.16797)",
    ),
    "bernoulli_logit": ("zeros and ones with the log odds", "Zeros and ones", "[1, 0, 1, 1]",
     "(-2.645809, -0.042075)"),
    "neg_binomial_2_log": (
        "negative binomial counts with the log means", "Counts; nonnegative", "[1, 0, 3, 2]",
         "(-6.656348, -0.059252)",
    ),
}  # fmt: skip


def _document(function: Function) -> None:
    name = function.__name__
    what, counts, y, values = next(row for family, row in _FAMILIES.items() if family in name)
    latent = "latent" in name
    verb = "Draw the latent variables of" if latent else "Compute the log likelihood of"
    dispersed = "neg_binomial" in name
    example = (_DRAW if latent else _MARGINAL).format(
        name=name,
        eta="2.0, " if dispersed else "",
        more=EXAMPLE_TOLERANCES if "_tol" in name else "",
        values=values,
    )
    document(
        function,
        f"{verb} {what} ``theta[y_index] + m[y_index]``, by Laplace's approximation.",
        _PARAMETERS.format(counts=counts, eta=_ETA if dispersed else ""),
        _EXAMPLE + example,
        y,
    )


for _name in __all__:
    globals()[_name].__module__ = __name__
    _document(globals()[_name])
