"""Logarithms of the incomplete gamma and beta functions, as a table; the logarithms of distribution
functions are made of them.
"""

from __future__ import annotations

from functools import partial

from varmat.functions.rows import formula, row
from varmat.functions.special.log_tails import (
    log_beta,
    log_beta_derivative,
    log_beta_slope,
    log_gamma,
    log_gamma_derivative,
    log_gamma_slope,
)

__all__ = ["log_betainc", "log_betaincc", "log_gammainc", "log_gammaincc"]

_NOTE = (
    "Where the function is small, value and derivatives come from one integral over its own tail, "
    "in which nothing underflows: worst relative error 1e-13, of second derivatives in the shapes "
    "up to 1e-12, for shapes of 1e10 1e-11"
)
_ORDERS = ("the order x",)
_GAMMA = "x > 0, y >= 0"
_GAMMAS = ((7.5, 6.0), (0.7, 3.0), (2.5, 0.01), (50.0, 60.0))
_BETA = "x > 0, y > 0, 0 <= z <= 1"
_BETAS = ((5.0, 6.5, 0.4), (0.5, 0.7, 0.8), (20.0, 30.0, 0.05), (3.0, 2.0, 0.99))
_IN_GAMMA = ("g * {0}(10.0, x, y)", "g * {0}(1.0, x, y)")
_MORE_GAMMA = (None, "g * {0}(x + 10.0, y, z)", "g * {0}(x + 1.0, y, z)")
_IN_BETA = ("g * {0}(100.0, x, y, z)", "g * {0}(10.0, x, y, z)", "g * {0}(1.0, x, y, z)")
_MORE_BETA = (
    None,
    "g * {0}(x + 100.0, y, z, w)",
    "g * {0}(x + 10.0, y, z, w)",
    "g * {0}(x + 1.0, y, z, w)",
)


def _partials(texts: tuple[str | None, ...], name: str) -> tuple[str | None, ...]:
    return tuple(text and text.format(name) for text in texts)


# fmt: off
log_gammainc = row("log_gammainc", _partials(_IN_GAMMA, "log_gammainc_derivative"),
    "Logarithm of the regularised lower incomplete gamma function of shape x",
    None, "log(gammainc(x, 0, y, regularized=True))", _GAMMAS, -0.43042,
    source="DLMF 8.2.4", domain=_GAMMA, note=_NOTE,
    ufunc=formula(partial(log_gamma, False)))
log_gammainc_derivative = row("log_gammainc_derivative",
    _partials(_MORE_GAMMA, "log_gammainc_derivative"),
    "Derivative of `log_gammainc` at y and z; the two digits of x are the orders, 10 for once in y",
    None, "diff(lambda s, t: log(gammainc(s, 0, t, regularized=True)), (y, z), divmod(int(x), 10))",
    ((10, 7.5, 6.0), (1, 0.7, 3.0), (11, 7.5, 6.0)), -0.0874876,
    source="DLMF 8.2.4", domain=f"x = 0, 1, 10, 11, ..., {_GAMMA}", note=_NOTE, constant=_ORDERS,
    ufunc=formula(partial(log_gamma_derivative, False)), module=__name__)
log_gammaincc = row("log_gammaincc", _partials(_IN_GAMMA, "log_gammaincc_derivative"),
    "Logarithm of the regularised upper incomplete gamma function of shape x",
    None, "log(gammainc(x, y, inf, regularized=True))", _GAMMAS, 0.203456,
    source="DLMF 8.2.4", domain=_GAMMA, note=_NOTE, ufunc=formula(partial(log_gamma, True)))
log_gammaincc_derivative = row("log_gammaincc_derivative",
    _partials(_MORE_GAMMA, "log_gammaincc_derivative"),
    "Derivative of `log_gammaincc` at y and z; the two digits of x are the orders, 10 for once "
    "in y",
    None,
    "diff(lambda s, t: log(gammainc(s, t, inf, regularized=True)), (y, z), divmod(int(x), 10))",
    ((10, 7.5, 6.0), (1, 0.7, 3.0), (11, 7.5, 6.0)), -0.0876108,
    source="DLMF 8.2.4", domain=f"x = 0, 1, 10, 11, ..., {_GAMMA}", note=_NOTE, constant=_ORDERS,
    ufunc=formula(partial(log_gamma_derivative, True)), module=__name__)
log_betainc = row("log_betainc", _partials(_IN_BETA, "log_betainc_derivative"),
    "Logarithm of the regularised incomplete beta function of shapes x and y",
    None, "log(betainc(x, y, 0, z, regularized=True))", _BETAS, -0.338557,
    source="DLMF 8.17.1, 8.17.2", domain=_BETA, note=_NOTE,
    ufunc=formula(partial(log_beta, False)))
log_betainc_derivative = row("log_betainc_derivative",
    _partials(_MORE_BETA, "log_betainc_derivative"),
    "Derivative of `log_betainc` at y, z and w; the three digits of x are the orders, 100 for once "
    "in y",
    None,
    "diff(lambda s, t, u: log(betainc(s, t, 0, u, regularized=True)), (y, z, w), (int(x) // 100, "
    "int(x) // 10 % 10, int(x) % 10))", ((100, 5.0, 6.5, 0.4), (11, 0.5, 0.7, 0.8)), -0.0542039,
    source="DLMF 8.17.1, 8.17.2", domain=f"x = 0, 1, 10, 100, 11, ..., {_BETA}", note=_NOTE,
    constant=_ORDERS, ufunc=formula(partial(log_beta_derivative, False)), module=__name__)
log_betaincc = row("log_betaincc", _partials(_IN_BETA, "log_betaincc_derivative"),
    "Logarithm of the complement of the regularised incomplete beta function",
    None, "log(betainc(x, y, z, 1, regularized=True))", _BETAS, 0.242623,
    source="DLMF 8.17.2, 8.17.4", domain=_BETA, note=_NOTE,
    ufunc=formula(partial(log_beta, True)))
log_betaincc_derivative = row("log_betaincc_derivative",
    _partials(_MORE_BETA, "log_betaincc_derivative"),
    "Derivative of `log_betaincc` at y, z and w; the three digits of x are the orders, 100 for "
    "once in y",
    None,
    "diff(lambda s, t, u: log(betainc(s, t, u, 1, regularized=True)), (y, z, w), (int(x) // 100, "
    "int(x) // 10 % 10, int(x) % 10))", ((100, 5.0, 6.5, 0.4), (11, 0.5, 0.7, 0.8)), -0.102163,
    source="DLMF 8.17.2, 8.17.4", domain=f"x = 0, 1, 10, 100, 11, ..., {_BETA}", note=_NOTE,
    constant=_ORDERS, ufunc=formula(partial(log_beta_derivative, True)), module=__name__)

# The name of the derivatives -> the function, and its first derivative in the argument as a
# function of the operands and the value. Where both are wanted, as in the gradient of a density,
# the value is then computed only once.
SLOPES = {
    f"{x.name}_derivative": (x, formula(partial(slope, upper)))
    for x, slope, upper in (
        (log_gammainc, log_gamma_slope, False), (log_gammaincc, log_gamma_slope, True),
        (log_betainc, log_beta_slope, False), (log_betaincc, log_beta_slope, True),
    )
}  # fmt: skip
# fmt: on
