"""Where the formulas stand: for each distribution the section of Stan's reference, and a book or
paper.

The docstrings of densities, cumulative functions and random numbers are given these by
`source_of`, and their notes and examples by `docstring_sections`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

from varmat.functions.docstrings import indented

__all__ = ["docstring_sections", "reference_section", "references", "source_of"]

# --- the works ---

_BOOK = '{}, "{}", {}, chapter {{}}'.format
_JOHNSON_KOTZ = "N. L. Johnson, S. Kotz and N. Balakrishnan"
CONTINUOUS_1 = _BOOK(
    _JOHNSON_KOTZ, "Continuous Univariate Distributions", "volume 1, 2nd edition, Wiley 1994"
).format
CONTINUOUS_2 = _BOOK(
    _JOHNSON_KOTZ, "Continuous Univariate Distributions", "volume 2, 2nd edition, Wiley 1995"
).format
DISCRETE = _BOOK(
    "N. L. Johnson, A. W. Kemp and S. Kotz",
    "Univariate Discrete Distributions",
    "3rd edition, Wiley 2005",
).format
DISCRETE_VECTORS = _BOOK(_JOHNSON_KOTZ, "Discrete Multivariate Distributions", "Wiley 1997").format
CONTINUOUS_VECTORS = _BOOK(
    "S. Kotz, N. Balakrishnan and N. L. Johnson",
    "Continuous Multivariate Distributions",
    "volume 1, 2nd edition, Wiley 2000",
).format
MULTIVARIATE = _BOOK(
    "T. W. Anderson",
    "An Introduction to Multivariate Statistical Analysis",
    "3rd edition, Wiley 2003",
).format
MATRICES = _BOOK(
    "A. K. Gupta and D. K. Nagar", "Matrix Variate Distributions", "Chapman & Hall/CRC 2000"
).format
GENERALIZED = _BOOK(
    "P. McCullagh and J. A. Nelder", "Generalized Linear Models", "2nd edition, Chapman & Hall 1989"
).format
GELMAN = (
    'A. Gelman et al., "Bayesian Data Analysis", 3rd edition, Chapman & Hall/CRC 2013, appendix A'
)
STUDENT_VECTORS = (
    'S. Kotz and S. Nadarajah, "Multivariate t Distributions and Their Applications", '
    "Cambridge University Press 2004, chapter 1"
)
ANGLES = 'K. V. Mardia and P. E. Jupp, "Directional Statistics", Wiley 2000, section 3.5'
LAPLACE = (
    'S. Kotz, T. J. Kozubowski and K. Podgórski, "The Laplace Distribution and Generalizations", '
    "Birkhäuser 2001, chapter 3"
)
SKEW_NORMAL = (
    'A. Azzalini, "A class of distributions which includes the normal ones", Scandinavian Journal '
    "of Statistics 12 (1985), 171-178"
)
MODIFIED_NORMAL = (
    'E. Grushka, "Characterization of exponentially modified Gaussian peaks in chromatography", '
    "Analytical Chemistry 44 (1972), 1733-1738"
)
BETA_REGRESSION = (
    'S. Ferrari and F. Cribari-Neto, "Beta regression for modelling rates and proportions", '
    "Journal of Applied Statistics 31 (2004), 799-815"
)
ORDINAL = (
    'P. McCullagh, "Regression models for ordinal data", Journal of the Royal Statistical Society '
    "B 42 (1980), 109-142"
)
COUNTS = (
    'A. C. Cameron and P. K. Trivedi, "Regression Analysis of Count Data", 2nd edition, Cambridge '
    "University Press 2013, chapter 3"
)
LKJ = (
    'D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on '
    'vines and extended onion method", Journal of Multivariate Analysis 100 (2009), 1989-2001'
)
PROCESSES = (
    'C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press '
    "2006, chapter 2"
)
BERNOULLI_SUMS = (
    'S. X. Chen and J. S. Liu, "Statistical applications of the Poisson-binomial and conditional '
    'Bernoulli distributions", Statistica Sinica 7 (1997), 875-892'
)
HIDDEN = (
    'L. R. Rabiner, "A tutorial on hidden Markov models and selected applications in speech '
    'recognition", Proceedings of the IEEE 77 (1989), 257-286'
)
DYNAMIC = (
    'M. West and J. Harrison, "Bayesian Forecasting and Dynamic Models", 2nd edition, Springer '
    "1997, section 4.2"
)

# --- the distributions ---

# Name of a function without its ending -> section of the Stan Functions Reference (None: Stan has
# the function only in its library), and a work or None.
SOURCES: dict[str, tuple[str | None, str | None]] = {
    # of one continuous variable
    "beta": ("Beta distribution", CONTINUOUS_2(25)),
    "beta_proportion": ("Beta proportion distribution", BETA_REGRESSION),
    "cauchy": ("Cauchy distribution", CONTINUOUS_1(16)),
    "chi_square": ("Chi-square distribution", CONTINUOUS_1(18)),
    "double_exponential": ("Double exponential (Laplace) distribution", CONTINUOUS_2(24)),
    "exp_mod_normal": ("Exponentially modified normal distribution", MODIFIED_NORMAL),
    "exponential": ("Exponential distribution", CONTINUOUS_1(19)),
    "frechet": ("Frechet distribution", CONTINUOUS_2(22)),
    "gamma": ("Gamma distribution", CONTINUOUS_1(17)),
    "generalized_extreme_value": (None, CONTINUOUS_2(22)),
    "generalized_pareto": (None, CONTINUOUS_1(20)),
    "gumbel": ("Gumbel distribution", CONTINUOUS_2(22)),
    "inv_chi_square": ("Inverse chi-square distribution", GELMAN),
    "inv_gamma": ("Inverse gamma Distribution", GELMAN),
    "inv_gaussian": (None, CONTINUOUS_1(15)),
    "logistic": ("Logistic distribution", CONTINUOUS_2(23)),
    "loglogistic": ("Log-logistic distribution", CONTINUOUS_2(23)),
    "lognormal": ("Lognormal distribution", CONTINUOUS_1(14)),
    "normal": ("Normal distribution", CONTINUOUS_1(13)),
    "normal_sufficient": (None, CONTINUOUS_1(13)),
    "pareto": ("Pareto distribution", CONTINUOUS_1(20)),
    "pareto_type_2": ("Pareto type 2 distribution", CONTINUOUS_1(20)),
    "rayleigh": ("Rayleigh distribution", CONTINUOUS_1(18)),
    "scaled_inv_chi_square": ("Scaled inverse chi-square distribution", GELMAN),
    "skew_double_exponential": ("Skew double exponential distribution", LAPLACE),
    "skew_normal": ("Skew normal distribution", SKEW_NORMAL),
    "std_normal": ("Standard normal distribution", CONTINUOUS_1(13)),
    "student_t": ("Student-t distribution", CONTINUOUS_2(28)),
    "uniform": ("Uniform distribution", CONTINUOUS_2(26)),
    "von_mises": ("Von Mises distribution", ANGLES),
    "weibull": ("Weibull distribution", CONTINUOUS_1(21)),
    # of one count
    "bernoulli": ("Bernoulli distribution", DISCRETE(3)),
    "bernoulli_logit": ("Bernoulli distribution, logit parameterization", DISCRETE(3)),
    "beta_binomial": ("Beta-binomial distribution", DISCRETE(6)),
    "beta_neg_binomial": ("Beta negative binomial distribution", DISCRETE(6)),
    "binomial": ("Binomial distribution", DISCRETE(3)),
    "binomial_logit": ("Binomial distribution, logit parameterization", DISCRETE(3)),
    "categorical": ("Categorical distribution", GENERALIZED(5)),
    "categorical_logit": ("Categorical distribution", GENERALIZED(5)),
    "discrete_range": ("Discrete range distribution", None),
    "geometric": (None, DISCRETE(5)),
    "hypergeometric": ("Hypergeometric distribution", DISCRETE(6)),
    "yule_simon": ("Yule-Simon distribution", DISCRETE(6)),
    "neg_binomial": ("Negative binomial distribution", DISCRETE(5)),
    "neg_binomial_2": (
        "Negative binomial distribution (alternative parameterization)",
        DISCRETE(5),
    ),
    "neg_binomial_2_log": (
        "Negative binomial distribution (log alternative parameterization)",
        DISCRETE(5),
    ),
    "ordered_logistic": ("Ordered logistic distribution", ORDINAL),
    "ordered_probit": ("Ordered probit distribution", ORDINAL),
    "poisson": ("Poisson distribution", DISCRETE(4)),
    "poisson_binomial": (None, BERNOULLI_SUMS),
    "poisson_log": ("Poisson distribution, log parameterization", DISCRETE(4)),
    # of vectors
    "dirichlet": ("Dirichlet distribution", CONTINUOUS_VECTORS(49)),
    "dirichlet_multinomial": ("Dirichlet-multinomial distribution", DISCRETE_VECTORS(35)),
    "multi_gp": ("Multivariate Gaussian process distribution", PROCESSES),
    "multi_gp_cholesky": (
        "Multivariate Gaussian process distribution, Cholesky parameterization",
        PROCESSES,
    ),
    "multi_normal": ("Multivariate normal distribution", CONTINUOUS_VECTORS(45)),
    "multi_normal_cholesky": (
        "Multivariate normal distribution, Cholesky parameterization",
        CONTINUOUS_VECTORS(45),
    ),
    "multi_normal_prec": (
        "Multivariate normal distribution, precision parameterization",
        CONTINUOUS_VECTORS(45),
    ),
    "multi_student_t": ("Multivariate Student-t distribution", STUDENT_VECTORS),
    "multi_student_t_cholesky": (
        "Multivariate Student-t distribution, Cholesky parameterization",
        STUDENT_VECTORS,
    ),
    "multinomial": ("Multinomial distribution", DISCRETE_VECTORS(35)),
    "multinomial_logit": ("Multinomial distribution, logit parameterization", DISCRETE_VECTORS(35)),
    # of matrices
    "inv_wishart": ("Inverse Wishart distribution", MULTIVARIATE(7)),
    "inv_wishart_cholesky": (
        "Inverse Wishart distribution, Cholesky Parameterization",
        MULTIVARIATE(7),
    ),
    "lkj_corr": ("LKJ correlation distribution", LKJ),
    "lkj_corr_cholesky": ("Cholesky LKJ correlation distribution", LKJ),
    "lkj_cov": (None, LKJ),
    "matrix_normal_prec": (None, MATRICES(2)),
    "wishart": ("Wishart distribution", MULTIVARIATE(7)),
    "wishart_cholesky": ("Wishart distribution, Cholesky Parameterization", MULTIVARIATE(7)),
    # of observations with predictors
    "bernoulli_logit_glm": (
        "Bernoulli-logit generalized linear model (Logistic Regression)",
        GENERALIZED(4),
    ),
    "binomial_logit_glm": (
        "Binomial-logit generalized linear model (Logistic Regression)",
        GENERALIZED(4),
    ),
    "categorical_logit_glm": (
        "Categorical logit generalized linear model (softmax regression)",
        GENERALIZED(5),
    ),
    "neg_binomial_2_log_glm": (
        "Negative-binomial-2-log generalized linear model (negative binomial regression)",
        COUNTS,
    ),
    "normal_id_glm": ("Normal-id generalized linear model (linear regression)", GENERALIZED(3)),
    "ordered_logistic_glm": (
        "Ordered logistic generalized linear model (ordinal regression)",
        ORDINAL,
    ),
    "poisson_log_glm": (
        "Poisson-log generalized linear model (Poisson regression)",
        GENERALIZED(6),
    ),
    # of series
    "gaussian_dlm_obs": ("Gaussian dynamic linear models", DYNAMIC),
    "hmm_hidden_state_prob": ("Hidden Markov Models", HIDDEN),
    "hmm_latent": ("Hidden Markov Models", HIDDEN),
    "hmm_marginal": ("Hidden Markov Models", HIDDEN),
}

_ENDING = re.compile(r"_(lpdf|lpmf|cdf|lcdf|lccdf|rng)$")

# How the docstrings of densities and cumulative functions of one variable end.
LAST_SECTIONS = """
    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the arguments do not broadcast.

    Notes
    -----
    {notes}
{references}
    Examples
    --------
    {examples}
"""


def source_of(function: str) -> str:
    """Write a sentence for a docstring that says where the formulas of a function are from."""
    stem = _ENDING.sub("", function)
    section, work = SOURCES[stem]
    stan = (
        f"Stan Math Library, ``{stem}``"
        if section is None
        else f'Stan Functions Reference, "{section}"'
    )
    return "; ".join(filter(None, (stan, work))) + "."


def references(function: str) -> str:
    """Wrap the sentence of `source_of` for a docstring that is indented by four blanks."""
    indent = " " * 4
    return textwrap.fill(
        source_of(function),
        100,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def reference_section(function: str) -> str:
    """Write the References section of a docstring; empty for functions not in the table."""
    if _ENDING.sub("", function) not in SOURCES:
        return ""
    return f"\n    References\n    ----------\n{references(function)}\n"


def docstring_sections(function: Callable[..., Any]) -> dict[str, str]:
    """Return the notes and the examples in the docstring of a row's function, for a docstring whose
    text is indented by four blanks.
    """
    notes, _, examples = indented(function).partition("\n\n    >>>")
    return {"notes": notes, "examples": f">>>{examples}"}
