"""The public names by family, in the order of the reference: what `conf.py` prints, and a test demands of every name."""

from __future__ import annotations

import importlib
import pkgutil
import re
from fnmatch import fnmatchcase

import varmat

# Part -> heading -> patterns of names. A pattern is a module below varmat, and after a colon patterns of names in it. A name
# belongs to the first heading with a pattern that it fits.
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "Densities": {
        "Continuous, of one variable": (
            "densities.normal", "densities.location_scale", "densities.positive", "densities.bounded", "densities.heavy_tails",
            "densities.extreme_value", "densities.skewed", "densities.circular", "densities.inverse_chi_square",
        ),
        "Discrete, of one variable": (
            "densities.bernoulli", "densities.beta_counts", "densities.counts", "densities.finite_populations",
            "densities.poisson_binomial", "densities.categorical", "densities.ordered",
        ),
        "Vectors, matrices and vectors of counts": (
            "densities.multi_normal", "densities.matrix_normal", "densities.simplex", "densities.matrix_variate",
            "densities.wishart_cholesky",
        ),
        "Generalised linear models": ("densities.glm*:*_lpdf *_lpmf",),
        "Time series and hidden states": ("densities.gaussian_dlm", "densities.hmm", "densities.wiener*"),
        "Truncated densities and mixtures": ("densities.truncated", "densities.mixture"),
        "Cumulative functions": ("densities.cumulative.*",),
        "Without constant terms": ("densities.unnormalised",),
        "Random numbers": ("densities.*:*_rng",),
    },
    "Functions": {
        "Logarithms, exponentials, logistic functions": (
            "functions.special:boxcox* inv_boxcox* exprel exp10 cosm1 log1m* log1p_exp log_diff_exp lmultiply multiply_log",
            "functions.special:xlog1py xlogy expit log_expit logit inv_logit inv_cloglog log_inv_logit* powm1",
            "transforms.bounded:log_cosh",
        ),
        "Arithmetic and losses": (
            "functions.special:inv inv_sqrt inv_square fma fdim step huber pseudo_huber kl_div rel_entr entr binary_log_loss",
            "functions.forms:plus minus elt_divide elt_multiply",
        ),
        "Normal probabilities and error functions": (
            "functions.special:Phi* inv_Phi ndtr* log_ndtr owens_t std_normal_* erf* inv_erfc dawsn",
            "functions.log_normal_tails",
        ),
        "Bessel functions": (
            "functions.special:bessel_* *modified_bessel_* i[0-9]* iv* j[0-9v]* k[0-9v] k[0-9v]e y[0-9v] log_iv_* log_kv_*",
        ),
        "Hypergeometric functions": ("functions.special:hyp*", "functions.hypergeometric"),
        "Exponential integrals, zeta and other special functions": (
            "functions.special:exp1 expi expn lambert* wrightomega spence zeta*",
        ),
        "Gamma and beta functions, factorials": (
            "functions.special", "functions.log_incomplete", "functions.stirling", "functions.deviances",
            "functions.constant_values:choose",
        ),
        "Constants and constant arrays": ("functions.constant_arrays", "functions.containers:linspaced_*"),
        "Sums, means, norms": ("functions.reductions", "functions.exponentials", "functions.cumulative", "functions.lags"),
        "Arrays and containers": (
            "functions.containers", "functions.constant_values", "functions.gathering", "functions.joining", "functions.shaping",
            "functions.orderings",
        ),
        "Products and forms": (
            "functions.products", "functions.dot_products", "functions.forms", "functions.inverse_forms:trace_*",
        ),
        "Linear systems, inverses and determinants": (
            "functions.solves", "functions.banded", "functions.toeplitz_systems", "functions.matrix_equations",
            "functions.riccati", "functions.inverse_forms", "functions.determinants", "functions.least_squares",
        ),
        "Factors, eigenvalues and matrix functions": (
            "functions.factorisations", "functions.decompositions", "functions.matrix_functions", "functions.matrix_roots",
            "functions.matrix_trigonometry",
        ),
        "Structured matrices": ("functions.structured_matrices",),
        "Interpolation and splines": ("functions.interpolation", "functions.splines"),
        "Distances": ("functions.distances",),
        "Integrals of samples": ("functions.integrals",),
        "Covariances of Gaussian processes": ("functions.covariances",),
        "Convolutions and filters": ("functions.nd_convolutions", "functions.recurrences", "functions.filters"),
        "Loops over time": ("solvers.scan",),
        "Sparse matrices": ("functions.sparse*",),
        "Differential equations": ("solvers.differential", "solvers.algebraic_differential"),
        "Equations and integrals": ("solvers.implicit", "solvers.quadrature"),
        "Jobs of several workers": ("parallel.mapped",),
        "Latent Gaussian variables": ("solvers.laplace_marginal", "solvers.laplace_likelihoods"),
        "Complex numbers": ("complexes.names", "complexes.linear_algebra"),
        "Fourier, cosine and sine transforms": ("complexes.fourier", "functions.cosine_transforms"),
    },
    "Transforms": {
        "Numbers and bounds": ("transforms.bounded",),
        "Vectors": ("transforms.vectors",),
        "Matrices": ("transforms.matrices", "transforms.readers"),
    },
    "Derivatives": {
        "Gradients, Jacobians, Hessians": (
            "functionals.reverse", "functionals.jacobians", "functionals.hessians", "functionals.forward", "functionals.third",
        ),
        "Recordings": ("functionals.recorded",),
        "Finite differences": ("functionals.finite_differences",),
    },
    "Models": {
        "Models": ("models.*:Model *predictive*",),
        "Parameters": ("models.parameters",),
    },
    "Variables": {
        "Variables": ("core.variables", "core.matvar", "core.dual"),
        "The tape": ("core.tape", "inspection"),
        "Operations of your own": ("core.operation", "core.elementwise", "core.callbacks"),
        "Errors": ("core.errors",),
    },
}  # fmt: skip


def slug(heading: str) -> str:
    """The name of the page of a family."""
    return re.sub(r"[^a-z0-9]+", "_", heading.lower()).strip("_")


def homes() -> dict[str, str]:
    """Public name -> the module below varmat that lists it."""
    found: dict[str, str] = {}
    for info in sorted(pkgutil.walk_packages(varmat.__path__, "varmat."), key=lambda info: info.name):
        if not info.ispkg and not info.name.startswith("varmat.testing."):
            for name in getattr(importlib.import_module(info.name), "__all__", []):
                if name in varmat.__all__:
                    found.setdefault(name, info.name.removeprefix("varmat."))
    # Of classes, where others list them before.
    return found | {"ComplexVar": "complexes.names"}


def fits(name: str, home: str, pattern: str) -> bool:
    """Whether a name of a module fits a pattern."""
    module, _, names = pattern.partition(":")
    return fnmatchcase(home, module) and any(fnmatchcase(name, each) for each in names.split() or ["*"])


def family(name: str, home: str) -> tuple[str, str]:
    """Part and heading of a public name."""
    for part, headings in PARTS.items():
        for heading, patterns in headings.items():
            if any(fits(name, home, pattern) for pattern in patterns):
                return part, heading
    raise LookupError(f"docs/families.py: no heading has a pattern for {name}, of varmat.{home}")


def families() -> dict[str, dict[str, list[str]]]:
    """Part -> heading -> its names, in the order of the alphabet."""
    found: dict[str, dict[str, list[str]]] = {part: {heading: [] for heading in headings} for part, headings in PARTS.items()}
    for name, home in homes().items():
        part, heading = family(name, home)
        found[part][heading].append(name)
    return {part: {heading: sorted(names, key=str.lower) for heading, names in each.items()} for part, each in found.items()}
