"""The public names by family, in the order of the reference: what `conf.py` prints, and a test
demands of every name.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from fnmatch import fnmatchcase
from functools import cache

import varmat

# Part -> heading -> patterns of names. A pattern is a module below varmat, and after a colon
# patterns of names in it. A name belongs to the first heading with a pattern that it fits.
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "Densities": {
        "Continuous, of one variable": (
            "densities.normal", "densities.location_scale", "densities.positive",
             "densities.bounded", "densities.heavy_tails",
            "densities.extreme_value", "densities.skewed", "densities.circular",
             "densities.inverse_chi_square",
        ),
        "Discrete, of one variable": (
            "densities.bernoulli", "densities.beta_counts", "densities.counts",
             "densities.finite_populations",
            "densities.poisson_binomial", "densities.categorical", "densities.ordered",
        ),
        "Vectors, matrices and vectors of counts": (
            "densities.multi_normal", "densities.matrix_normal", "densities.simplex",
             "densities.lkj", "densities.wishart",
            "densities.wishart_cholesky",
        ),
        "Generalised linear models": ("densities.glm*:*_lpdf *_lpmf",),
        "Time series and hidden states": ("densities.gaussian_dlm", "densities.hmm",
         "densities.hmm_paths", "densities.wiener*"),
        "Truncated densities and mixtures": ("densities.truncated", "densities.mixture"),
        "Cumulative functions": ("densities.cumulative.*",),
        "Without constant terms": ("densities.unnormalised",),
        "Random numbers": ("densities.*:*_rng",),
    },
    "Functions": {
        "Logarithms, exponentials, logistic functions": (
            "functions.special.logistic_functions", "transforms.bounded:log_cosh",
            "functions.special.powers_and_arithmetic:boxcox* inv_boxcox* cosm1 powm1",
            "functions.special.entropies_and_losses:lmultiply multiply_log xlog1py xlogy",
        ),
        "Arithmetic and losses": (
            "functions.special.powers_and_arithmetic", "functions.special.entropies_and_losses",
            "functions.linalg.products:plus minus elt_divide elt_multiply",
        ),
        "Normal probabilities and error functions": (
            "functions.special.error_functions",
        ),
        "Bessel functions": ("functions.special.bessel_functions",),
        "Hypergeometric functions": (
            "functions.special.hypergeometric_functions",
            "functions.special.generalised_hypergeometric",
        ),
        "Exponential integrals, zeta and other special functions": (
            "functions.special.exponential_integrals", "functions.special.zeta_functions:zeta*",
        ),
        "Gamma and beta functions, factorials": (
            "functions.special.gamma_functions", "functions.special.zeta_functions",
            "functions.special.incomplete_functions", "functions.special.log_incomplete",
            "functions.arrays.constant_values:choose",
        ),
        "Constants and constant arrays": ("functions.arrays.constant_arrays",
         "functions.arrays.containers:linspaced_*"),
        "Sums, means, norms": ("functions.arrays.reductions", "functions.arrays.sums",
         "functions.arrays.spreads",
         "functions.linalg.norms", "functions.arrays.exponentials",
         "functions.arrays.cumulative", "functions.signals.lags"),
        "Arrays and containers": (
            "functions.arrays.containers", "functions.arrays.constant_values",
             "functions.arrays.diagonals", "functions.arrays.repeating",
             "functions.arrays.joining", "functions.arrays.shaping",
            "functions.arrays.orderings",
        ),
        "Products and forms": (
            "functions.linalg.products", "functions.linalg.dot_products",
             "functions.linalg.quadratic_forms", "functions.linalg.gram_matrices",
             "functions.linalg.diagonal_products",
             "functions.linalg.matrix_functions:*_multiply",
             "functions.linalg.inverse_forms:trace_*",
        ),
        "Linear systems, inverses and determinants": (
            "functions.linalg.solves", "functions.linalg.triangular_solves",
             "functions.linalg.spd_solves", "functions.rarer.linalg.banded",
             "functions.rarer.linalg.toeplitz_systems", "functions.rarer.linalg.matrix_equations",
            "functions.rarer.linalg.riccati", "functions.linalg.inverse_forms",
             "functions.linalg.determinants", "functions.linalg.least_squares",
        ),
        "Factors, eigenvalues and matrix functions": (
            "functions.linalg.cholesky", "functions.linalg.qr", "functions.linalg.eigenvalues",
             "functions.linalg.singular_values", "functions.rarer.linalg.decompositions",
             "functions.linalg.matrix_functions", "functions.rarer.linalg.matrix_roots",
            "functions.rarer.linalg.matrix_trigonometry",
        ),
        "Structured matrices": ("functions.rarer.linalg.structured_matrices",),
        "Interpolation and splines": (
            "functions.rarer.interpolation", "functions.rarer.piecewise_polynomials",
            "functions.rarer.splines",
        ),
        "Distances": ("functions.rarer.distances",),
        "Integrals of samples": ("functions.rarer.integrals",),
        "Covariances of Gaussian processes": ("functions.covariances",),
        "Convolutions and filters": ("functions.rarer.signals.nd_convolutions",
         "functions.signals.recurrences", "functions.rarer.signals.filters",
         "functions.rarer.signals.smoothing"),
        "Loops and choices": ("solvers.scan", "solvers.choices"),
        "Sparse matrices": ("functions.sparse*",),
        "Differential equations": (
            "solvers.differential", "solvers.events", "solvers.algebraic_differential",
        ),
        "Equations and integrals": ("solvers.algebra", "solvers.implicit", "solvers.quadrature"),
        "Jobs of several workers": ("parallel.mapped",),
        "Latent Gaussian variables": ("solvers.laplace_marginal", "solvers.laplace_likelihoods"),
        "Complex numbers": ("complexes.names", "complexes.linear_algebra", "complexes.schur"),
        "Fourier, cosine and sine transforms": ("complexes.fourier",
         "functions.rarer.signals.cosine_transforms"),
    },
    "Transforms": {
        "Numbers and bounds": ("transforms.bounded", "transforms.elementwise"),
        "Vectors": (
            "transforms.ordered", "transforms.simplexes", "transforms.sum_to_zero",
            "transforms.unit_vectors",
        ),
        "Matrices": (
            "transforms.correlation_matrices", "transforms.covariance_matrices",
            "transforms.readers",
        ),
    },
    "Derivatives": {
        "Gradients, Jacobians, Hessians": (
            "derivatives.reverse", "derivatives.jacobians",
            "derivatives.hessians", "derivatives.forward", "derivatives.structure",
        ),
        "Recordings": ("derivatives.recorded", "programs.passes.fewer_rows"),
    },
    "Models": {
        "Models": ("models.*:Model *predictive* SamplingWarning",),
        "Parameters and observations": (
            "models.parameters", "models.discrete", "models.observations", "models.groups",
        ),
    },
    "Variables": {
        "Variables": ("core.variables", "core.matvar", "core.dual"),
        "The tape": ("core.tape", "inspection"),
        "Operations of your own": ("core.operation", "core.elementwise", "core.callbacks"),
        "Errors": ("core.errors",),
    },
}  # fmt: skip

# The names to meet first, about 60 of them.
EVERYDAY = {
    "Derivatives": "value_and_grad grad gradient jacobian hessian hessp jvp vjp recorded",
    "Models": """
        Model real positive interval lower upper ordered simplex cholesky_corr discrete observed
        groups
    """,
    "Densities": """
        normal_lpdf student_t_lpdf cauchy_lpdf exponential_lpdf gamma_lpdf beta_lpdf lognormal_lpdf
        bernoulli_logit_lpmf binomial_logit_lpmf poisson_log_lpmf neg_binomial_2_log_lpmf
        multi_normal_cholesky_lpdf lkj_corr_cholesky_lpdf dirichlet_lpdf
    """,
    "Regressions": "normal_id_glm_lpdf bernoulli_logit_glm_lpmf poisson_log_glm_lpmf",
    "Mixtures, truncation, hidden states": "log_mix truncated hmm_marginal",
    "Functions": "expit logit logsumexp softmax gammaln",
    "Matrices": "cholesky_decompose mdivide_left_spd log_determinant quad_form gp_exp_quad_cov",
    "Loops and branches": "scan cond switch while_loop",
    "Differential equations, equations, integrals": """
        solve_ode ode_rk45 ode_bdf solve_newton integrate_1d
    """,
    "Variables and operations of your own": "var value nested operation",
    "Errors": "DataError DomainError ShapeError",
}


def slug(heading: str) -> str:
    """The name of the page of a family."""
    return re.sub(r"[^a-z0-9]+", "_", heading.lower()).strip("_")


def homes() -> dict[str, str]:
    """Public name -> the module below varmat that lists it."""
    found: dict[str, str] = {}
    # A set made once, because `varmat` collects its names each time that they are read.
    public = set(varmat.__all__)
    for info in sorted(
        pkgutil.walk_packages(varmat.__path__, "varmat."), key=lambda info: info.name
    ):
        if not info.ispkg and not info.name.startswith("varmat.testing."):
            for name in getattr(importlib.import_module(info.name), "__all__", []):
                if name in public:
                    found.setdefault(name, info.name.removeprefix("varmat."))
    # Of classes, where others list them before.
    return found | {"ComplexVar": "complexes.names"}


def fits(name: str, home: str, pattern: str) -> bool:
    """Whether a name of a module fits a pattern."""
    module, _, names = pattern.partition(":")
    return fnmatchcase(home, module) and any(
        fnmatchcase(name, each) for each in names.split() or ["*"]
    )


def family(name: str, home: str) -> tuple[str, str]:
    """Part and heading of a public name."""
    for part, headings in PARTS.items():
        for heading, patterns in headings.items():
            if any(fits(name, home, pattern) for pattern in patterns):
                return part, heading
    raise LookupError(f"docs/families.py: no heading has a pattern for {name}, of varmat.{home}")


@cache
def families() -> dict[str, dict[str, list[str]]]:
    """Part -> heading -> its names, in the order of the alphabet."""
    found: dict[str, dict[str, list[str]]] = {
        part: {heading: [] for heading in headings} for part, headings in PARTS.items()
    }
    for name, home in homes().items():
        part, heading = family(name, home)
        found[part][heading].append(name)
    return {
        part: {heading: sorted(names, key=str.lower) for heading, names in each.items()}
        for part, each in found.items()
    }
