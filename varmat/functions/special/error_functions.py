"""Error functions and the normal distribution, as a table. The ratio of the normal density and
distribution function is written with `erfcx`, which neither overflows nor cancels in the tail.
"""

from __future__ import annotations

import math

from varmat.functions.aliases import alias
from varmat.functions.rows import (
    ONE_OVER_ROOT_TWO_PI,
    ROOT_HALF,
    ROOT_HALF_PI,
    ROOT_PI,
    ROOT_PI_OVER_TWO,
    ROOT_TWO_OVER_PI,
    ROOT_TWO_PI,
    TWO_OVER_ROOT_PI,
    formula,
    row,
)
from varmat.functions.special.logistic_functions import logistic_of_number
from varmat.plain_arrays import special

__all__ = [
    "Phi",
    "Phi_approx",
    "dawsn",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfi",
    "erfinv",
    "inv_Phi",
    "inv_erfc",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "owens_t",
    "std_normal_log_qf",
    "std_normal_qf",
]

# fmt: off
erf = row("erf", f"{TWO_OVER_ROOT_PI} * g * exp(-x * x)", "Error function",
    math.erf, "erf(x)", (0.5, -3.0, 1e-10, 6.0, 20.0), 0.878783, source="DLMF 7.2.1, 7.10.1; SciPy")
erfc = row("erfc", f"-{TWO_OVER_ROOT_PI} * g * exp(-x * x)", "Complementary error function",
    math.erfc, "erfc(x)", (0.5, -3.0, 1e-10, 6.0, 20.0), -0.878783, source="DLMF 7.2.2; SciPy")
# From 20 on the derivative of erfcx is computed by its asymptotic series, the sum of
# (-1)**k (2 k + 1)!! / (2 x**2)**k, because the difference would cancel.
_SERIES = "1.0"
for _k in range(17, 1, -2):
    _SERIES = f"(1.0 - {_k}.0 * (0.5 / square(maximum(x, 20.0))) * {_SERIES})"
erfcx = row("erfcx",
    f"g * where(x > 20.0, -{_SERIES} / ({ROOT_PI} * square(maximum(x, 20.0))), (x + x) * r - "
    f"{TWO_OVER_ROOT_PI})",
    "Scaled complementary error function ``exp(x**2) erfc(x)``",
    None, "exp(x * x) * erfc(x)", (0.5, -5.0, 10.0, 25.0, 1e6), -0.512689,
    source="DLMF 7.2.3, 7.12.1; SciPy")
erfi = row("erfi", f"{TWO_OVER_ROOT_PI} * g * exp(x * x)", "Imaginary error function",
    None, "erfi(x)", (0.5, -3.0, 1e-10, 20.0), 1.44887, source="DLMF 7.2(i); SciPy")
erfinv = row("erfinv", f"{ROOT_PI_OVER_TWO} * g * exp(r * r)", "Inverse of `erf`",
    None, "erfinv(x)", (0.5, -0.999, 1e-10), 1.11258,
    source="DLMF 7.17(i); SciPy", domain="-1 < x < 1")
erfcinv = row("erfcinv", f"-{ROOT_PI_OVER_TWO} * g * exp(r * r)", "Inverse of `erfc`",
    None, "erfinv(1 - x)", (0.5, 1.999, 1e-10, 1e-40), -1.11258,
    source="DLMF 7.17(i); SciPy", domain="0 < x < 2")
inv_erfc = alias("inv_erfc", erfcinv)
dawsn = row("dawsn", "g * hyp1f1(1.0, 0.5, -x * x)", "Dawson's integral",
    None, "exp(-x * x) * erfi(x) * sqrt(pi) / 2", (0.5, -3.0, 1e-10, 1e4), 0.575564,
    source="DLMF 7.2.5; SciPy")
ndtr = row("ndtr", f"{ONE_OVER_ROOT_TWO_PI} * g * exp(-0.5 * x * x)",
    "Standard normal distribution function",
    None, "ncdf(x)", (0.5, -3.0, -20.0, 6.0), 0.352065, source="DLMF 7.20(iii); SciPy")
Phi = alias("Phi", ndtr)
log_ndtr = row("log_ndtr", f"{ROOT_TWO_OVER_PI} * g / erfcx(-{ROOT_HALF} * minimum(x, 37.0))",
    "Logarithm of `ndtr`",
    None, "log(erfc(-x / sqrt(2)) / 2)", (0.5, -3.0, -20.0, -1e4, 6.0, 20.0), 0.50916,
    source="DLMF 7.20(iii); SciPy")
ndtri = row("ndtri", f"{ROOT_TWO_PI} * g * exp(0.5 * r * r)",
    "Inverse of `ndtr`, the normal quantile",
    None, "sqrt(2) * erfinv(2 * x - 1)", (0.25, 0.999, 1e-10, 1e-40), 3.14687,
    source="DLMF 7.17(i), 7.20(iii); SciPy", domain="0 < x < 1")
inv_Phi = alias("inv_Phi", ndtri)  # noqa: N816 - Stan's name
std_normal_qf = alias("std_normal_qf", ndtri)
ndtri_exp = row("ndtri_exp", f"{ROOT_HALF_PI} * g * erfcx(-{ROOT_HALF} * r)",
    "Normal quantile of a probability given by its logarithm",
    None, "sqrt(2) * erfinv(2 * exp(x) - 1)", (-0.5, -1e-10, -20.0, -80.0), 1.57691,
    source="DLMF 7.17(i), 7.20(iii); SciPy", domain="x < 0")
std_normal_log_qf = alias("std_normal_log_qf", ndtri_exp)
Phi_approx = row("Phi_approx",
    "g * r * expit(-x * (0.07056 * x * x + 1.5976)) * (0.21168 * x * x + 1.5976)",
    "Approximation of `Phi` by a logistic function, to 1.4e-4",
    lambda x: logistic_of_number(x * (0.07056 * x * x + 1.5976)),
    "1 / (1 + exp(-x * (mpf(0.07056) * x * x + mpf(1.5976))))", (0.5, -3.0, -10.0, 6.0), 0.352037,
    source=("Bowling et al. (2009), A logistic approximation to the cumulative normal "
    "distribution, Journal of Industrial Engineering and Management 2, 114-127; Stan "
    "Probability-related functions"),
    ufunc=formula(lambda x: special.expit(x * (0.07056 * x * x + 1.5976))))
owens_t = row("owens_t",
    (f"-0.5 * {ONE_OVER_ROOT_TWO_PI} * g * exp(-0.5 * x * x) * erf({ROOT_HALF} * x * y)",
    "g * exp(-0.5 * x * x * (1.0 + y * y)) / (2.0 * pi * (1.0 + y * y))"),
    "Owen's T function",
    None, "quad(lambda t: exp(-x * x * (1 + t * t) / 2) / (1 + t * t), [0, y]) / (2 * pi)",
    ((0.5, 1.2), (3.0, -1.0)), -0.0794776,
    source=("Owen (1956), Tables for computing bivariate normal probabilities, Annals of "
    "Mathematical Statistics 27, 1075-1090; SciPy"))
# fmt: on
