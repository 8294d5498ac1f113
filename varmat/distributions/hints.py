"""Names of distributions and of their methods in other libraries, and what they are here."""

from __future__ import annotations

from typing import Any

# Methods, and their names in other libraries.
_METHODS = {
    "lpdf": "logpdf logpmf logp log_prob log_pdf",
    "lpdf, which is its logarithm": "pdf pmf prob",
    "lcdf": "logcdf log_cdf",
    "lccdf": "logsf log_sf log_survival_function",
    "lccdf, which is its logarithm": "sf ccdf survival",
    "ppf": "icdf quantile inv_cdf",
    "rng": "rvs sample draw draws random simulate",
    "variance": "var std stddev sd",
}
# Distributions of other libraries, and what is written instead of them.
CLASSES = {
    "HalfNormal": "varmat.positive(prior=Normal(0, sigma))",
    "HalfCauchy": "varmat.positive(prior=Cauchy(0, sigma))",
    "HalfStudentT": "varmat.positive(prior=StudentT(nu, 0, sigma))",
    "HalfFlat": "varmat.positive() without a prior",
    "Flat": "varmat.real() without a prior",
    "ImproperUniform": "varmat.real() without a prior",
    "NegativeBinomial": "NegBinomial2(mu, phi) or NegBinomial(alpha, beta)",
    "MvNormal": "MultiNormal",
    "MultivariateNormal": "MultiNormal",
    "MvStudentT": "MultiStudentT",
    "MultivariateStudentT": "MultiStudentT",
    "TruncatedNormal": "Normal(mu, sigma).truncated(lower, upper)",
    "LogNormal": "Lognormal",
    "Laplace": "DoubleExponential",
    "Chi2": "ChiSquare",
    "DiscreteUniform": "DiscreteRange",
    "LKJCholesky": "LKJCorrCholesky",
    "LKJCholeskyCov": "LKJCorrCholesky",
    "ZeroInflatedPoisson": "Mixture(p, [DiscreteRange(0, 0), Poisson(rate)])",
    "ZeroInflatedNegativeBinomial": "Mixture(p, [DiscreteRange(0, 0), NegBinomial2(mu, phi)])",
    "Potential": "a log density as the first argument of varmat.Model",
    "Deterministic": "a function as an argument of varmat.Model",
}


class WithHints:
    """Names the method that is meant by the name of another library."""

    def __getattr__(self, name: str) -> Any:
        kind = type(self).__name__
        for ours, theirs in _METHODS.items():
            if name in theirs.split():
                raise AttributeError(f"{kind} has no {name}: did you mean {ours}?")
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
