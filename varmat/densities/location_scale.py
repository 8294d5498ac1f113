"""Families of a location and a scale: Student's t, Cauchy, double exponential, logistic."""

from __future__ import annotations

from varmat.core.domains import finite, positive_finite
from varmat.densities.density import not_nan
from varmat.densities.univariate import Quick, univariate

__all__ = ["cauchy_lpdf", "double_exponential_lpdf", "logistic_lpdf", "student_t_lpdf"]

LOCATION = ("Location parameter", finite)
SCALE = ("Scale parameter", positive_finite)

# With h**2 = d**2 + c**2 the logarithm of h / c is log1p(d / c * d / (c + h)), where nothing
# overflows; fmin is for an infinite d. Expressions with two forms use the smaller of the
# ratios d / h and c / h, because derivatives of a ratio near 1 cancel.
student_t_lpdf = univariate(
    "student_t_lpdf",
    "Student t distribution",
    y=("Random variable", not_nan),
    nu=("Degrees of freedom parameter", positive_finite),
    mu=LOCATION,
    sigma=SCALE,
    shown=("y", "mu"),
    let={
        "d": "y - mu",
        "a": "absolute(d)",
        "c": "sigma * sqrt(nu)",
        "h": "hypot(d, c)",
        "l": "2.0 * log1p(a / c * fmin(a / (c + h), 1.0))",
        "s": "(nu + 1.0) * (d / h) / h",
        "p": "square(d / h)",
        "q": "square(c / h)",
        "v": "where(a < c, (nu + 1.0) * p - 1.0, nu - (nu + 1.0) * q)",
        "w": "1.0 / sigma",
        "e": "(nu + 1.0) / nu * where(a < c, p, 1.0 - q)",
    },
    quick=Quick(
        {
            "root": "sqrt(nu)",
            "k": "1.0 / (sigma * root)",
            "t": "d * k",
            "r": "t * t",
            "l": "log1p(r)",
            "f": "(nu + 1.0) * k / (1.0 + r)",
            "s": "t * f",
            "v": "nu * r - 1.0",
            "w": "f * (root / (nu + 1.0))",
            "e": "r * f * (sigma / root)",
        }
    ),
    terms=(
        "log_rising_factorial(0.5 * nu, 0.5) - 0.5 * log(nu)",
        "-log(sigma)",
        "-0.5 * (nu + 1.0) * l",
        "-0.5723649429247001",
    ),
    partials={
        # The partial in sigma equals s z - inv, but that cancels where nu is small.
        "y": "-s",
        "mu": "s",
        "sigma": "v * w",
        "nu": "0.5 * (zeta_difference(1.0, 0.5 * nu, 0.5) - 1.0 / nu) + 0.5 * (e - l)",
    },
    reference="loggamma((nu + 1) / 2) - loggamma(nu / 2) - log(nu * pi) / 2 - log(sigma)"
    " - (nu + 1) / 2 * log1p(((y - mu) / sigma)**2 / nu)",
    points=[
        (0.3, 2.5, 0.1, 1.5),
        (-4.0, 1.0, 0.7, 0.3),
        (1e-9, 30.0, -1e-9, 1e3),
        (7.0, 4.0, 6.5, 1e-3),
    ],
    tails=[
        (1e8, 3.0, 0.0, 1.0),
        (0.3, 1e6, 0.1, 1.5),
        (-40.0, 1e4, 3.0, 1.5),
        (0.3, 1e-6, 0.1, 1.5),
        (40.0, 1e-11, 0.1, 1.5),
    ],
    notes="""With :math:`z = (y - \\mu) / \\sigma` the log density is
    :math:`\\log\\Gamma(\\frac{\\nu + 1}2) - \\log\\Gamma(\\frac\\nu2) - \\frac12 \\log \\nu\\pi -
    \\log\\sigma - \\frac{\\nu + 1}2 \\log(1 + z^2 / \\nu)`. In SciPy ``scipy.stats.t(nu, mu,
    sigma)``.""",
    examples="""
>>> import varmat as vm
>>> round(vm.student_t_lpdf(1.0, 3.0, 0.0, 1.0), 12)
-1.576252994527
""",
)

cauchy_lpdf = univariate(
    "cauchy_lpdf",
    "Cauchy distribution",
    y=("Random variable", not_nan),
    mu=LOCATION,
    sigma=SCALE,
    shown=("y", "mu"),
    let={
        "d": "y - mu",
        "a": "absolute(d)",
        "h": "hypot(d, sigma)",
        "l": "2.0 * log1p(a / sigma * fmin(a / (sigma + h), 1.0))",
        "inv": "1.0 / sigma",
        "s": "2.0 * (d / h) / h",
        "w": "2.0 * (sigma / h) / h",
    },
    quick=Quick(
        {
            "z": "(y - mu) * inv",
            "l": "log1p(z * z)",
            "p": "1.0 / (1.0 + z * z)",
            "s": "2.0 * inv * z * p",
            "w": "2.0 * inv * p",
        }
    ),
    terms=("-log(sigma)", "-l", "-1.1447298858494002"),
    # The partial in sigma equals s z - inv, but the derivative of that cancels where z is large.
    partials={"y": "-s", "mu": "s", "sigma": "inv - w"},
    reference="-log(pi * sigma) - log1p(((y - mu) / sigma)**2)",
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-9, -1e-9, 1e3), (7.0, 6.5, 1e-3)],
    tails=[(-1e8, 0.0, 1.0), (1.0, 2.0, 1e8)],
    notes="""With :math:`z = (y - \\mu) / \\sigma` the log density is :math:`-\\log \\pi\\sigma -
    \\log(1 + z^2)`. In SciPy ``scipy.stats.cauchy(mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.gradient(lambda mu: vm.cauchy_lpdf([1.0, 3.0], mu, 1.0), 2.0)
0.0
""",
)

double_exponential_lpdf = univariate(
    "double_exponential_lpdf",
    "double exponential (Laplace) distribution",
    y=("Random variable", not_nan),
    mu=LOCATION,
    sigma=SCALE,
    shown=("y", "mu"),
    let={"inv": "1.0 / sigma", "d": "y - mu", "a": "absolute(d) * inv", "s": "sign(d) * inv"},
    terms=("-log(sigma)", "-a", "-0.6931471805599453"),
    partials={"y": "-s", "mu": "s", "sigma": "a * inv - inv"},
    reference="-log(2 * sigma) - fabs(y - mu) / sigma",
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-3, -0.1, 1e3), (7.0, 6.5, 1e-3)],
    tails=[(1e8, 1.0, 1e-3), (-1e-20, 1.0, 1e5)],
    notes="""The log density is :math:`-\\log 2\\sigma - |y - \\mu| / \\sigma`; at the kink
    :math:`y = \\mu` the derivative in both is 0. In SciPy ``scipy.stats.laplace(mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.gradient(lambda mu: vm.double_exponential_lpdf([1.0, 3.0, 4.0], mu, 0.5), 2.0)
2.0
""",
)

# The density is symmetric. With e = exp(-|z|) its logarithm -|z| - 2 log(1 + e) never overflows.
logistic_lpdf = univariate(
    "logistic_lpdf",
    "logistic distribution",
    y=("Random variable", not_nan),
    mu=LOCATION,
    sigma=SCALE,
    shown=("y", "mu"),
    let={
        "inv": "1.0 / sigma",
        "z": "(y - mu) * inv",
        "a": "absolute(z)",
        "s": "tanh(0.5 * z) * inv",
    },
    terms=("-log(sigma)", "-a - 2.0 * log1p(exp(-a))"),
    partials={"y": "-s", "mu": "s", "sigma": "s * z - inv"},
    reference="-log(sigma) - (y - mu) / sigma - 2 * log1p(exp(-(y - mu) / sigma))",
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-9, -1e-9, 1e3), (6.51, 6.5, 1e-3)],
    tails=[(1000.0, 0.0, 1.0), (-1000.0, 0.0, 1.0)],
    notes="""With :math:`z = (y - \\mu) / \\sigma` the log density is :math:`-\\log\\sigma - z - 2
    \\log(1 + e^{-z})`, with the derivative :math:`-\\tanh(z / 2) / \\sigma` in y. In SciPy
    ``scipy.stats.logistic(mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.gradient(lambda mu: vm.logistic_lpdf([1.0, 3.0], mu, 1.0), 2.0)
0.0
""",
)
