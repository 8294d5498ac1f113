"""Logistic functions, and sums and differences on the scale of logarithms, as a table."""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.aliases import alias
from varmat.functions.numpy_kernels import MANY, softplus
from varmat.functions.rows import LN10, formula, row
from varmat.plain_arrays import special
from varmat.typing import Function, Operand

__all__ = [
    "exp10",
    "expit",
    "exprel",
    "inv_cloglog",
    "inv_logit",
    "log1m",
    "log1m_exp",
    "log1m_inv_logit",
    "log1p_exp",
    "log_diff_exp",
    "log_expit",
    "log_inv_logit",
    "log_inv_logit_diff",
    "logit",
]


def _expit(x: Operand, out: Operand = None) -> Operand:
    """`scipy.special.expit`, and faster."""
    if np.size(x) < 2 * MANY:
        return special.expit(x, out=out)
    with np.errstate(over="ignore"):
        e = np.negative(x, out=out)
        np.exp(e, e)
    np.add(e, 1.0, e)
    return np.reciprocal(e, e)


_expit.formula = lambda x: special.expit(x)  # type: ignore[attr-defined]


def logistic_of_number(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def softplus_of_number(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _minus_softplus(sign: float) -> Function:
    def ufunc(x: Operand, out: Operand = None) -> Operand:
        return np.negative(softplus(x if sign > 0 else -x), out=out)

    ufunc.formula = lambda x: -softplus(sign * x)  # type: ignore[attr-defined]
    return ufunc


# Above this x, log(-expm1(x)) loses fewer digits of log(1 - exp(x)), and below it log1p(-exp(x)).
_LOG_HALF = -math.log(2.0)


def _log1m_exp_of_array(x: Operand) -> Operand:
    return np.where(x > _LOG_HALF, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _log1m_exp_of_number(x: float) -> float:
    return math.log(-math.expm1(x)) if x > _LOG_HALF else math.log1p(-math.exp(x))


_log1m_exp = formula(_log1m_exp_of_array)


@formula
def _log_diff_exp(x: Operand, y: Operand) -> Operand:
    return np.where((x == y) & (x == -np.inf), -np.inf, x + _log1m_exp(y - x))


# fmt: off
expit = row("expit", "g * r * expit(-x)", "Logistic function ``1 / (1 + exp(-x))``",
    logistic_of_number, "1 / (1 + exp(-x))", (0.5, -40.0, 40.0, -700.0, 1e-10), 0.235004,
    source="SciPy; Stan Link functions", ufunc=_expit, answers_for="expit")
inv_logit = alias("inv_logit", expit)
logit = row("logit", "g / (x * (1.0 - x))", "Log odds ``log(x / (1 - x))``",
    None, "log(x / (1 - x))", (0.25, 1e-100, 0.999999), 5.33333,
    source="SciPy; Stan Link functions", domain="0 < x < 1")
log_expit = row("log_expit", "g * expit(-x)", "Logarithm of the logistic function",
    lambda x: -softplus_of_number(-x), "-log1p(exp(-x))", (0.5, -40.0, 40.0, -700.0, 700.0),
    0.377541,
    source="SciPy; Stan Composed functions", ufunc=_minus_softplus(-1.0),
    answers_for="log_expit")
log_inv_logit = alias("log_inv_logit", log_expit)
log1p_exp = row("log1p_exp", "g * expit(x)", "``log(1 + exp(x))`` without overflow (softplus)",
    softplus_of_number, "log1p(exp(x))", (0.5, -40.0, 40.0, -700.0, 700.0), 0.622459,
    source="Stan Composed functions", ufunc=softplus)
log1m_inv_logit = row("log1m_inv_logit", "-g * expit(x)", "``log(1 - inv_logit(x))``",
    lambda x: -softplus_of_number(x), "-log1p(exp(x))", (0.5, -40.0, 40.0, -700.0, 700.0),
    -0.622459,
    source="Stan Composed functions", ufunc=_minus_softplus(1.0))
log1m = row("log1m", "-g / (1.0 - x)", "``log(1 - x)``, exact near 0",
    lambda x: math.log1p(-x), "log1p(-x)", (0.5, -1e100, 1e-10, 0.999), -2.0,
    source="Stan Composed functions", domain="x < 1", ufunc=formula(lambda x: np.log1p(-x)))
log1m_exp = row("log1m_exp", "-g * exp(x) / (0.0 - expm1(x))",
    "``log(1 - exp(x))`` without cancellation",
    _log1m_exp_of_number, "log1p(-exp(x))", (-0.5, -1e-12, -40.0, -700.0, -0.7), -1.54149,
    source=("Maechler (2012), Accurately computing ``log(1 - exp(-abs(a)))``, vignette of the R "
    "package Rmpfr; Stan Composed functions"), domain="x < 0", ufunc=_log1m_exp)
# exp(y) / (exp(x) - exp(y)). The difference is subtracted from 0 so that at x = y it is a positive
# zero, as for x > y nearby.
_ODDS = "exp(y - x) / (0.0 - expm1(y - x))"
log_diff_exp = row("log_diff_exp", ("g / (0.0 - expm1(y - x))", f"-g * ({_ODDS})"),
    "``log(exp(x) - exp(y))`` without overflow",
    None, "log(exp(x) - exp(y))",
    ((0.5, -1.0), (300.0, 299.0), (2.0, 1.999999999999), (800.0, -1.0)), 1.28722,
    source="Stan Composed functions", domain="x > y", ufunc=_log_diff_exp)
log_inv_logit_diff = row("log_inv_logit_diff",
    (f"g * (expit(-x) + {_ODDS})", f"-g * (expit(y) + {_ODDS})"),
    "``log(inv_logit(x) - inv_logit(y))``",
    None, "log(1 / (1 + exp(-x)) - 1 / (1 + exp(-y)))",
    ((0.5, -1.0), (20.0, 3.0), (-30.0, -31.0), (50.0, 49.0)), 0.664758,
    source="Stan Composed functions", domain="x > y",
    ufunc=formula(lambda x, y: _log1m_exp(y - x) - np.logaddexp(0.0, -x) - np.logaddexp(0.0, y)))
inv_cloglog = row("inv_cloglog", "g * exp(x - exp(x))", "``1 - exp(-exp(x))``",
    lambda x: -math.expm1(-math.exp(x)), "-expm1(-exp(x))", (0.5, -30.0, -1.3, 3.0), 0.317042,
    source="Stan Link functions", ufunc=formula(lambda x: -np.expm1(-np.exp(x))))
exprel = row("exprel", "0.5 * g * hyp1f1(2.0, 3.0, minimum(x, 1000.0))", "``(exp(x) - 1) / x``",
    None, "expm1(x) / x", (0.5, -30.0, 1e-8, 100.0), 0.702557, source="DLMF 13.6(i); SciPy")
exp10 = row("exp10", f"g * r * {LN10}", "``10**x``",
    None, "mpf(10)**x", (0.5, -300.0, 1e-10, 300.0), 7.28141, source="DLMF 4.2(iv), 4.7(ii); SciPy")
# fmt: on
