"""varmat: exact gradients of NumPy code, by reverse-mode automatic differentiation with matrix variables."""

from varmat import complexes, densities, functionals, functions, models, transforms
from varmat.complexes.fourier import *  # noqa: F403 - the names are listed there
from varmat.complexes.linear_algebra import *  # noqa: F403 - the names are listed there
from varmat.complexes.names import *  # noqa: F403 - the names are listed there
from varmat.core.callbacks import make_callback_var, reverse_pass_callback
from varmat.core.dual import Dual
from varmat.core.elementwise import elementwise
from varmat.core.errors import DomainError, ShapeError, TapeError
from varmat.core.matvar import MatVar, matvar, to_matvar, to_varmat
from varmat.core.operation import Saved, operation
from varmat.core.tape import keep_alive, nested, recover_memory, set_zero_all_adjoints
from varmat.core.variables import Var, VarMat, value, var
from varmat.densities.bernoulli import *  # noqa: F403 - the names are listed there
from varmat.densities.beta_counts import *  # noqa: F403 - the names are listed there
from varmat.densities.bounded import *  # noqa: F403 - the names are listed there
from varmat.densities.categorical import *  # noqa: F403 - the names are listed there
from varmat.densities.circular import *  # noqa: F403 - the names are listed there
from varmat.densities.counts import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.bounded import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.circular import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.counts import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.extreme_value import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.heavy_tails import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.incomplete_beta import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.incomplete_gamma import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.location_scale import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.positive import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.skewed import *  # noqa: F403 - the names are listed there
from varmat.densities.cumulative.sums import *  # noqa: F403 - the names are listed there
from varmat.densities.extreme_value import *  # noqa: F403 - the names are listed there
from varmat.densities.finite_populations import *  # noqa: F403 - the names are listed there
from varmat.densities.gaussian_dlm import *  # noqa: F403 - the names are listed there
from varmat.densities.glm import *  # noqa: F403 - the names are listed there
from varmat.densities.glm_categories import *  # noqa: F403 - the names are listed there
from varmat.densities.glm_counts import *  # noqa: F403 - the names are listed there
from varmat.densities.heavy_tails import *  # noqa: F403 - the names are listed there
from varmat.densities.hmm import *  # noqa: F403 - the names are listed there
from varmat.densities.inverse_chi_square import *  # noqa: F403 - the names are listed there
from varmat.densities.location_scale import *  # noqa: F403 - the names are listed there
from varmat.densities.matrix_normal import *  # noqa: F403 - the names are listed there
from varmat.densities.matrix_variate import *  # noqa: F403 - the names are listed there
from varmat.densities.mixture import *  # noqa: F403 - the names are listed there
from varmat.densities.multi_normal import *  # noqa: F403 - the names are listed there
from varmat.densities.normal import *  # noqa: F403 - the names are listed there
from varmat.densities.ordered import *  # noqa: F403 - the names are listed there
from varmat.densities.poisson_binomial import *  # noqa: F403 - the names are listed there
from varmat.densities.positive import *  # noqa: F403 - the names are listed there
from varmat.densities.random_numbers.continuous import *  # noqa: F403 - the names are listed there
from varmat.densities.random_numbers.discrete import *  # noqa: F403 - the names are listed there
from varmat.densities.random_numbers.matrices import *  # noqa: F403 - the names are listed there
from varmat.densities.random_numbers.processes import *  # noqa: F403 - the names are listed there
from varmat.densities.random_numbers.regressions import *  # noqa: F403 - the names are listed there
from varmat.densities.random_numbers.vectors import *  # noqa: F403 - the names are listed there
from varmat.densities.simplex import *  # noqa: F403 - the names are listed there
from varmat.densities.skewed import *  # noqa: F403 - the names are listed there
from varmat.densities.truncated import *  # noqa: F403 - the names are listed there
from varmat.densities.unnormalised import *  # noqa: F403 - the names are listed there
from varmat.densities.wiener import *  # noqa: F403 - the names are listed there
from varmat.densities.wishart_cholesky import *  # noqa: F403 - the names are listed there
from varmat.functionals import *  # noqa: F403 - the names are listed there
from varmat.functions.constant_arrays import *  # noqa: F403 - the names are listed there
from varmat.functions.constant_values import *  # noqa: F403 - the names are listed there
from varmat.functions.containers import *  # noqa: F403 - the names are listed there
from varmat.functions.covariances import *  # noqa: F403 - the names are listed there
from varmat.functions.cumulative import *  # noqa: F403 - the names are listed there
from varmat.functions.determinants import *  # noqa: F403 - the names are listed there
from varmat.functions.deviances import *  # noqa: F403 - the names are listed there
from varmat.functions.dot_products import *  # noqa: F403 - the names are listed there
from varmat.functions.exponentials import *  # noqa: F403 - the names are listed there
from varmat.functions.factorisations import *  # noqa: F403 - the names are listed there
from varmat.functions.forms import *  # noqa: F403 - the names are listed there
from varmat.functions.gathering import *  # noqa: F403 - the names are listed there
from varmat.functions.hypergeometric import *  # noqa: F403 - the names are listed there
from varmat.functions.inverse_forms import *  # noqa: F403 - the names are listed there
from varmat.functions.joining import *  # noqa: F403 - the names are listed there
from varmat.functions.lags import *  # noqa: F403 - the names are listed there
from varmat.functions.least_squares import *  # noqa: F403 - the names are listed there
from varmat.functions.log_incomplete import *  # noqa: F403 - the names are listed there
from varmat.functions.log_normal_tails import *  # noqa: F403 - the names are listed there
from varmat.functions.matrix_functions import *  # noqa: F403 - the names are listed there
from varmat.functions.orderings import *  # noqa: F403 - the names are listed there
from varmat.functions.products import *  # noqa: F403 - the names are listed there
from varmat.functions.recurrences import *  # noqa: F403 - the names are listed there
from varmat.functions.reductions import *  # noqa: F403 - the names are listed there
from varmat.functions.shaping import *  # noqa: F403 - the names are listed there
from varmat.functions.solves import *  # noqa: F403 - the names are listed there
from varmat.functions.sparse import *  # noqa: F403 - the names are listed there
from varmat.functions.sparse_solves import *  # noqa: F403 - the names are listed there
from varmat.functions.special import *  # noqa: F403 - the names are listed there
from varmat.functions.stirling import *  # noqa: F403 - the names are listed there
from varmat.inspection import print_stack, profile
from varmat.models.model import *  # noqa: F403 - the names are listed there
from varmat.models.parameters import *  # noqa: F403 - the names are listed there
from varmat.transforms.bounded import *  # noqa: F403 - the names are listed there
from varmat.transforms.matrices import *  # noqa: F403 - the names are listed there
from varmat.transforms.readers import *  # noqa: F403 - the names are listed there
from varmat.transforms.vectors import *  # noqa: F403 - the names are listed there

__version__ = "0.1.0"

__all__ = [
    "DomainError",
    "Dual",
    "MatVar",
    "Saved",
    "ShapeError",
    "TapeError",
    "Var",
    "VarMat",
    "elementwise",
    "keep_alive",
    "make_callback_var",
    "matvar",
    "nested",
    "operation",
    "print_stack",
    "profile",
    "recover_memory",
    "reverse_pass_callback",
    "set_zero_all_adjoints",
    "to_matvar",
    "to_varmat",
    "value",
    "var",
]
__all__ += complexes.fourier.__all__
__all__ += complexes.linear_algebra.__all__
__all__ += complexes.names.__all__
__all__ += densities.bernoulli.__all__
__all__ += densities.beta_counts.__all__
__all__ += densities.bounded.__all__
__all__ += densities.categorical.__all__
__all__ += densities.circular.__all__
__all__ += densities.counts.__all__
__all__ += densities.cumulative.bounded.__all__
__all__ += densities.cumulative.circular.__all__
__all__ += densities.cumulative.counts.__all__
__all__ += densities.cumulative.extreme_value.__all__
__all__ += densities.cumulative.heavy_tails.__all__
__all__ += densities.cumulative.incomplete_beta.__all__
__all__ += densities.cumulative.incomplete_gamma.__all__
__all__ += densities.cumulative.location_scale.__all__
__all__ += densities.cumulative.positive.__all__
__all__ += densities.cumulative.skewed.__all__
__all__ += densities.cumulative.sums.__all__
__all__ += densities.extreme_value.__all__
__all__ += densities.finite_populations.__all__
__all__ += densities.gaussian_dlm.__all__
__all__ += densities.glm.__all__
__all__ += densities.glm_categories.__all__
__all__ += densities.glm_counts.__all__
__all__ += densities.heavy_tails.__all__
__all__ += densities.hmm.__all__
__all__ += densities.inverse_chi_square.__all__
__all__ += densities.location_scale.__all__
__all__ += densities.matrix_normal.__all__
__all__ += densities.matrix_variate.__all__
__all__ += densities.mixture.__all__
__all__ += densities.multi_normal.__all__
__all__ += densities.normal.__all__
__all__ += densities.ordered.__all__
__all__ += densities.poisson_binomial.__all__
__all__ += densities.positive.__all__
__all__ += densities.random_numbers.continuous.__all__
__all__ += densities.random_numbers.discrete.__all__
__all__ += densities.random_numbers.matrices.__all__
__all__ += densities.random_numbers.processes.__all__
__all__ += densities.random_numbers.regressions.__all__
__all__ += densities.random_numbers.vectors.__all__
__all__ += densities.simplex.__all__
__all__ += densities.skewed.__all__
__all__ += densities.truncated.__all__
__all__ += densities.unnormalised.__all__
__all__ += densities.wiener.__all__
__all__ += densities.wishart_cholesky.__all__
__all__ += functionals.__all__
__all__ += functions.constant_arrays.__all__
__all__ += functions.constant_values.__all__
__all__ += functions.containers.__all__
__all__ += functions.covariances.__all__
__all__ += functions.cumulative.__all__
__all__ += functions.determinants.__all__
__all__ += functions.deviances.__all__
__all__ += functions.dot_products.__all__
__all__ += functions.exponentials.__all__
__all__ += functions.factorisations.__all__
__all__ += functions.forms.__all__
__all__ += functions.gathering.__all__
__all__ += functions.hypergeometric.__all__
__all__ += functions.inverse_forms.__all__
__all__ += functions.joining.__all__
__all__ += functions.lags.__all__
__all__ += functions.least_squares.__all__
__all__ += functions.log_incomplete.__all__
__all__ += functions.log_normal_tails.__all__
__all__ += functions.matrix_functions.__all__
__all__ += functions.orderings.__all__
__all__ += functions.products.__all__
__all__ += functions.recurrences.__all__
__all__ += functions.reductions.__all__
__all__ += functions.shaping.__all__
__all__ += functions.solves.__all__
__all__ += functions.sparse.__all__
__all__ += functions.sparse_solves.__all__
__all__ += functions.special.__all__
__all__ += functions.stirling.__all__
__all__ += models.model.__all__
__all__ += models.parameters.__all__
__all__ += transforms.bounded.__all__
__all__ += transforms.matrices.__all__
__all__ += transforms.readers.__all__
__all__ += transforms.vectors.__all__
