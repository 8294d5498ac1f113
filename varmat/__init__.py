"""varmat: exact gradients of NumPy code, by reverse-mode automatic differentiation with matrix
variables.
"""

import typing as _typing
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

from varmat import functions as functions
from varmat import transforms as transforms
from varmat import typing as typing
from varmat.core import dispatch as _dispatch
from varmat.core.callbacks import make_callback_var as make_callback_var
from varmat.core.callbacks import reverse_pass_callback as reverse_pass_callback
from varmat.core.dual import Dual as Dual
from varmat.core.elementwise import elementwise as elementwise
from varmat.core.errors import DataError as DataError
from varmat.core.errors import DomainError as DomainError
from varmat.core.errors import ShapeError as ShapeError
from varmat.core.errors import TapeError as TapeError
from varmat.core.matvar import MatVar as MatVar
from varmat.core.matvar import matvar as matvar
from varmat.core.matvar import to_matvar as to_matvar
from varmat.core.matvar import to_varmat as to_varmat
from varmat.core.operation import Saved as Saved
from varmat.core.operation import operation as operation
from varmat.core.tape import keep_alive as keep_alive
from varmat.core.tape import nested as nested
from varmat.core.tape import recover_memory as recover_memory
from varmat.core.tape import set_zero_all_adjoints as set_zero_all_adjoints
from varmat.core.variables import Var as Var
from varmat.core.variables import VarMat as VarMat
from varmat.core.variables import value as value
from varmat.core.variables import var as var
from varmat.derivatives import *  # noqa: F403
from varmat.functions.arrays.constant_arrays import *  # noqa: F403
from varmat.functions.arrays.constant_values import *  # noqa: F403
from varmat.functions.arrays.containers import *  # noqa: F403
from varmat.functions.arrays.cumulative import *  # noqa: F403
from varmat.functions.arrays.diagonals import *  # noqa: F403
from varmat.functions.arrays.exponentials import *  # noqa: F403
from varmat.functions.arrays.joining import *  # noqa: F403
from varmat.functions.arrays.orderings import *  # noqa: F403
from varmat.functions.arrays.reductions import *  # noqa: F403
from varmat.functions.arrays.repeating import *  # noqa: F403
from varmat.functions.arrays.shaping import *  # noqa: F403
from varmat.functions.arrays.spreads import *  # noqa: F403
from varmat.functions.arrays.sums import *  # noqa: F403
from varmat.functions.covariances import *  # noqa: F403
from varmat.functions.linalg.cholesky import *  # noqa: F403
from varmat.functions.linalg.determinants import *  # noqa: F403
from varmat.functions.linalg.diagonal_products import *  # noqa: F403
from varmat.functions.linalg.dot_products import *  # noqa: F403
from varmat.functions.linalg.eigenvalues import *  # noqa: F403
from varmat.functions.linalg.gram_matrices import *  # noqa: F403
from varmat.functions.linalg.inverse_forms import *  # noqa: F403
from varmat.functions.linalg.least_squares import *  # noqa: F403
from varmat.functions.linalg.matrix_functions import *  # noqa: F403
from varmat.functions.linalg.norms import *  # noqa: F403
from varmat.functions.linalg.products import *  # noqa: F403
from varmat.functions.linalg.qr import *  # noqa: F403
from varmat.functions.linalg.quadratic_forms import *  # noqa: F403
from varmat.functions.linalg.singular_values import *  # noqa: F403
from varmat.functions.linalg.solves import *  # noqa: F403
from varmat.functions.linalg.spd_solves import *  # noqa: F403
from varmat.functions.linalg.triangular_solves import *  # noqa: F403
from varmat.functions.signals.lags import *  # noqa: F403
from varmat.functions.signals.recurrences import *  # noqa: F403
from varmat.functions.sparse.solves import *  # noqa: F403
from varmat.functions.sparse.stan_form import *  # noqa: F403
from varmat.functions.sparse.variable import *  # noqa: F403
from varmat.functions.special import deviances as _deviances  # noqa: F401 - brings rows
from varmat.functions.special import log_normal_tails as _log_normal_tails  # noqa: F401
from varmat.functions.special import stirling as _stirling  # noqa: F401
from varmat.functions.special.bessel_functions import *  # noqa: F403
from varmat.functions.special.entropies_and_losses import *  # noqa: F403
from varmat.functions.special.error_functions import *  # noqa: F403
from varmat.functions.special.exponential_integrals import *  # noqa: F403
from varmat.functions.special.gamma_functions import *  # noqa: F403
from varmat.functions.special.generalised_hypergeometric import *  # noqa: F403
from varmat.functions.special.hypergeometric_functions import *  # noqa: F403
from varmat.functions.special.incomplete_functions import *  # noqa: F403
from varmat.functions.special.log_incomplete import *  # noqa: F403
from varmat.functions.special.logistic_functions import *  # noqa: F403
from varmat.functions.special.powers_and_arithmetic import *  # noqa: F403
from varmat.functions.special.zeta_functions import *  # noqa: F403
from varmat.inspection import print_stack as print_stack
from varmat.inspection import profile as profile
from varmat.programs.passes.fewer_rows import keep_rows as keep_rows
from varmat.transforms.bounded import *  # noqa: F403
from varmat.transforms.correlation_matrices import *  # noqa: F403
from varmat.transforms.covariance_matrices import *  # noqa: F403
from varmat.transforms.elementwise import *  # noqa: F403
from varmat.transforms.ordered import *  # noqa: F403
from varmat.transforms.readers import *  # noqa: F403
from varmat.transforms.simplexes import *  # noqa: F403
from varmat.transforms.sum_to_zero import *  # noqa: F403
from varmat.transforms.unit_vectors import *  # noqa: F403

if _typing.TYPE_CHECKING:
    from varmat.complexes.fourier import *  # noqa: F403
    from varmat.complexes.linear_algebra import *  # noqa: F403
    from varmat.complexes.names import *  # noqa: F403
    from varmat.complexes.schur import *  # noqa: F403
    from varmat.densities.bernoulli import *  # noqa: F403
    from varmat.densities.beta_counts import *  # noqa: F403
    from varmat.densities.bounded import *  # noqa: F403
    from varmat.densities.categorical import *  # noqa: F403
    from varmat.densities.circular import *  # noqa: F403
    from varmat.densities.counts import *  # noqa: F403
    from varmat.densities.cumulative.bounded import *  # noqa: F403
    from varmat.densities.cumulative.circular import *  # noqa: F403
    from varmat.densities.cumulative.counts import *  # noqa: F403
    from varmat.densities.cumulative.extreme_value import *  # noqa: F403
    from varmat.densities.cumulative.heavy_tails import *  # noqa: F403
    from varmat.densities.cumulative.incomplete_beta import *  # noqa: F403
    from varmat.densities.cumulative.incomplete_gamma import *  # noqa: F403
    from varmat.densities.cumulative.location_scale import *  # noqa: F403
    from varmat.densities.cumulative.positive import *  # noqa: F403
    from varmat.densities.cumulative.skewed import *  # noqa: F403
    from varmat.densities.cumulative.sums import *  # noqa: F403
    from varmat.densities.extreme_value import *  # noqa: F403
    from varmat.densities.finite_populations import *  # noqa: F403
    from varmat.densities.gaussian_dlm import *  # noqa: F403
    from varmat.densities.glm import *  # noqa: F403
    from varmat.densities.glm_categories import *  # noqa: F403
    from varmat.densities.glm_counts import *  # noqa: F403
    from varmat.densities.heavy_tails import *  # noqa: F403
    from varmat.densities.hmm import *  # noqa: F403
    from varmat.densities.hmm_paths import *  # noqa: F403
    from varmat.densities.inverse_chi_square import *  # noqa: F403
    from varmat.densities.lkj import *  # noqa: F403
    from varmat.densities.location_scale import *  # noqa: F403
    from varmat.densities.matrix_normal import *  # noqa: F403
    from varmat.densities.mixture import *  # noqa: F403
    from varmat.densities.multi_normal import *  # noqa: F403
    from varmat.densities.normal import *  # noqa: F403
    from varmat.densities.ordered import *  # noqa: F403
    from varmat.densities.poisson_binomial import *  # noqa: F403
    from varmat.densities.positive import *  # noqa: F403
    from varmat.densities.random_numbers.continuous import *  # noqa: F403
    from varmat.densities.random_numbers.discrete import *  # noqa: F403
    from varmat.densities.random_numbers.matrices import *  # noqa: F403
    from varmat.densities.random_numbers.processes import *  # noqa: F403
    from varmat.densities.random_numbers.regressions import *  # noqa: F403
    from varmat.densities.random_numbers.vectors import *  # noqa: F403
    from varmat.densities.simplex import *  # noqa: F403
    from varmat.densities.skewed import *  # noqa: F403
    from varmat.densities.truncated import *  # noqa: F403
    from varmat.densities.unnormalised import *  # noqa: F403
    from varmat.densities.wiener import *  # noqa: F403
    from varmat.densities.wiener_cumulative import *  # noqa: F403
    from varmat.densities.wishart import *  # noqa: F403
    from varmat.densities.wishart_cholesky import *  # noqa: F403
    from varmat.functions.rarer.distances import *  # noqa: F403
    from varmat.functions.rarer.integrals import *  # noqa: F403
    from varmat.functions.rarer.interpolation import *  # noqa: F403
    from varmat.functions.rarer.linalg.banded import *  # noqa: F403
    from varmat.functions.rarer.linalg.decompositions import *  # noqa: F403
    from varmat.functions.rarer.linalg.matrix_equations import *  # noqa: F403
    from varmat.functions.rarer.linalg.matrix_roots import *  # noqa: F403
    from varmat.functions.rarer.linalg.matrix_trigonometry import *  # noqa: F403
    from varmat.functions.rarer.linalg.riccati import *  # noqa: F403
    from varmat.functions.rarer.linalg.structured_matrices import *  # noqa: F403
    from varmat.functions.rarer.linalg.toeplitz_systems import *  # noqa: F403
    from varmat.functions.rarer.piecewise_polynomials import *  # noqa: F403
    from varmat.functions.rarer.signals.cosine_transforms import *  # noqa: F403
    from varmat.functions.rarer.signals.filters import *  # noqa: F403
    from varmat.functions.rarer.signals.nd_convolutions import *  # noqa: F403
    from varmat.functions.rarer.signals.smoothing import *  # noqa: F403
    from varmat.functions.rarer.splines import *  # noqa: F403
    from varmat.models.diagnostics import *  # noqa: F403
    from varmat.models.discrete import *  # noqa: F403
    from varmat.models.groups import *  # noqa: F403
    from varmat.models.model import *  # noqa: F403
    from varmat.models.observations import *  # noqa: F403
    from varmat.models.parameters import *  # noqa: F403
    from varmat.parallel.mapped import *  # noqa: F403
    from varmat.solvers.algebra import *  # noqa: F403
    from varmat.solvers.algebraic_differential import *  # noqa: F403
    from varmat.solvers.choices import *  # noqa: F403
    from varmat.solvers.differential import *  # noqa: F403
    from varmat.solvers.events import *  # noqa: F403
    from varmat.solvers.implicit import *  # noqa: F403
    from varmat.solvers.laplace_likelihoods import *  # noqa: F403
    from varmat.solvers.laplace_marginal import *  # noqa: F403
    from varmat.solvers.quadrature import *  # noqa: F403
    from varmat.solvers.scan import *  # noqa: F403

__version__ = "0.2.0"

# What is imported when it is first needed: how names of it end, the package, and its modules.
# Together they take nearly half of the time of importing everything, and a program needs few of
# them.
_LATER: dict[str, tuple[tuple[str, ...], str]] = {
    "varmat.models": ((), "diagnostics discrete groups model observations parameters"),
    "varmat.densities.random_numbers": (("_rng",),
     "continuous discrete matrices processes regressions vectors"),
    "varmat.densities.cumulative": (("_cdf", "_lcdf", "_lccdf"), """
        bounded circular counts extreme_value heavy_tails incomplete_beta incomplete_gamma
        location_scale positive skewed sums
    """),
    "varmat.densities": (("_lpdf", "_lpmf", "_lupdf", "_lupmf", "_unnorm"), """
        bernoulli beta_counts bounded categorical circular counts extreme_value finite_populations
        gaussian_dlm glm glm_categories glm_counts heavy_tails hmm hmm_paths inverse_chi_square
        location_scale lkj matrix_normal mixture multi_normal normal ordered poisson_binomial
        positive simplex skewed truncated unnormalised wiener wiener_cumulative wishart
        wishart_cholesky
    """),
    "varmat.complexes": ((), "fourier linear_algebra names schur"),
    "varmat.solvers": ((), """
        algebra algebraic_differential choices differential events implicit laplace_likelihoods
        laplace_marginal quadrature scan
    """),
    "varmat.functions.rarer": ((), """
        distances integrals interpolation piecewise_polynomials splines linalg.banded
        linalg.decompositions linalg.matrix_equations linalg.matrix_roots linalg.matrix_trigonometry
        linalg.riccati linalg.structured_matrices linalg.toeplitz_systems signals.cosine_transforms
        signals.filters signals.nd_convolutions signals.smoothing
    """),
    "varmat.parallel": ((), "mapped"),
}  # fmt: skip

_dispatch.LATER.append("varmat.complexes")

# The subpackages that users import. The first five are imported when they are first needed.
_SUBPACKAGES = ("distributions", "numpy", "scipy", "stan", "testing", "transforms", "typing")

# Names that moved from here to these modules. For one release they are found here too, with a
# warning.
_MOVED = {
    "varmat.functions.special.bessel_functions": "log_iv_derivative log_kv_derivative",
    "varmat.functions.special.deviances": """
        binomial_deviance binomial_logit_deviance neg_binomial_2_deviance
        neg_binomial_2_log_deviance poisson_log_deviance
    """,
    "varmat.functions.special.hypergeometric_functions": "hyp2f1_da hyp2f1_db hyp2f1_dc",
    "varmat.functions.special.incomplete_functions": """
        beta_density_derivative betainc_derivative gamma_density_derivative gammainc_derivative
    """,
    "varmat.functions.special.log_incomplete": """
        log_betainc_derivative log_betaincc_derivative log_gammainc_derivative
        log_gammaincc_derivative
    """,
    "varmat.functions.special.log_normal_tails": """
        log_exp_mod_normal log_skew_normal log_von_mises_integral von_mises_moment
    """,
    "varmat.functions.special.stirling": """
        digamma_excess log_factorial_excess log_gamma_excess log_gamma_excess_derivative
    """,
    "varmat.functions.special.zeta_functions": "zeta_difference",
    "varmat.stan.functions": """
        e machine_precision negative_infinity not_a_number pi positive_infinity sqrt2
        identity_matrix linspaced_array linspaced_row_vector linspaced_vector one_hot_array
        one_hot_int_array one_hot_row_vector one_hot_vector ones_array ones_int_array
        ones_row_vector ones_vector rep_array rep_matrix rep_row_vector
        rep_vector uniform_simplex unitspaced_array zeros_array zeros_int_array
        zeros_row_vector zeros_vector
    """,
    "varmat.testing": """
        finite_diff_grad_hessian finite_diff_grad_hessian_auto finite_diff_gradient
        finite_diff_gradient_auto finite_diff_hessian finite_diff_hessian_auto
        finite_diff_hessian_times_vector_auto finite_diff_stepsize
    """,
}  # fmt: skip

# Names of other libraries, and what is written instead of them.
_THEIRS = {
    "sample": "Model(...).sample", "optimize": "Model(...).optimize",
    "find_MAP": "Model(...).optimize", "summary": "Model(...).summary",
    "sample_prior_predictive": "Model(...).sample_prior_predictive",
    "sample_posterior_predictive": "Model(...).sample_posterior_predictive",
    "Deterministic": "a function as an argument of Model", "Data": "Model(..., data={...})",
    "Potential": "a log density as the first argument of Model", "backward": "gradient",
    "Variable": "var", "tensor": "var", "Parameter": "real", "half": "positive",
}  # fmt: skip

# The names of this module from the start; `__all__` has the names of the later modules too.
_NAMES = [
    name
    for name, thing in globals().items()
    if not name.startswith("_") and not isinstance(thing, _ModuleType)
]


if _typing.TYPE_CHECKING:
    from varmat import distributions as distributions
    from varmat import numpy as numpy
    from varmat import scipy as scipy
    from varmat import stan as stan
    from varmat import testing as testing

    __all__: list[str]


def _import_later(package: str) -> None:
    """Import the later modules of a package, and take their names."""
    for name in _LATER[package][1].split():
        module = _import_module(f"{package}.{name}")
        globals().update((x, getattr(module, x)) for x in module.__all__)


def _moved(name: str, module: str) -> _typing.Any:
    """Return an object that moved to a module, with a warning that shows the caller's line."""
    from warnings import warn

    text = f"varmat.{name} is deprecated: import {name} from {module}"
    warn(text, DeprecationWarning, stacklevel=3)
    return getattr(_import_module(module), name)


def _attribute(name: str) -> _typing.Any:
    """Return a name of a later module, a subpackage, or a moved name, with a warning."""
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _SUBPACKAGES:
        return _import_module(f"varmat.{name}")
    for module, names in _MOVED.items():
        if name in names.split():
            return _moved(name, module)
    likely = [package for package, (endings, _) in _LATER.items() if name.endswith(endings)]
    for package in dict.fromkeys([*likely, *_LATER]):
        _import_later(package)
        if name in globals():
            return globals()[name]
    if name == "__all__":
        later = [
            _import_module(f"{package}.{x}")
            for package, (_, names) in _LATER.items()
            for x in names.split()
        ]
        return [*_NAMES, *(x for module in later for x in module.__all__)]
    from difflib import get_close_matches

    near = get_close_matches(name, globals(), n=3, cutoff=0.75)
    distributions = _import_module("varmat.distributions") if name[:1].isupper() else None
    if hasattr(distributions, name):
        near = [f"varmat.distributions.{name}"]
    near = [_THEIRS[name]] if name in _THEIRS else near
    hint = f". Did you mean {' or '.join(near)}?" if near else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


if not _typing.TYPE_CHECKING:  # To a type checker a misspelt name is an error.
    __getattr__ = _attribute


def __dir__() -> list[str]:
    special = [name for name in globals() if name.startswith("__")]
    return sorted({*_attribute("__all__"), *_SUBPACKAGES, *special})
