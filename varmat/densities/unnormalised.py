"""Densities without the terms that depend on data only, under Stan's names for them:
`normal_lupdf`, `poisson_lupmf`, ...
"""

from varmat.densities import (
    bernoulli,
    beta_counts,
    bounded,
    categorical,
    circular,
    counts,
    extreme_value,
    finite_populations,
    gaussian_dlm,
    glm,
    glm_categories,
    glm_counts,
    heavy_tails,
    inverse_chi_square,
    lkj,
    location_scale,
    matrix_normal,
    multi_normal,
    normal,
    ordered,
    poisson_binomial,
    positive,
    simplex,
    skewed,
    wiener,
    wishart,
    wishart_cholesky,
)

__all__ = [
    "bernoulli_logit_glm_lupmf", "bernoulli_logit_lupmf", "bernoulli_lupmf", "beta_binomial_lupmf",
    "beta_lupdf", "beta_neg_binomial_lupmf", "beta_proportion_lupdf", "binomial_logit_glm_lupmf",
    "binomial_logit_lupmf", "binomial_lupmf", "categorical_logit_glm_lupmf",
    "categorical_logit_lupmf", "categorical_lupmf", "cauchy_lupdf", "chi_square_lupdf",
    "dirichlet_lupdf", "dirichlet_multinomial_lupmf", "discrete_range_lupmf",
    "double_exponential_lupdf", "exp_mod_normal_lupdf", "exponential_lupdf", "frechet_lupdf",
    "gamma_lupdf", "gaussian_dlm_obs_lupdf", "generalized_extreme_value_lupdf",
    "generalized_pareto_lupdf", "geometric_lupmf", "gumbel_lupdf", "hypergeometric_lupmf",
    "inv_chi_square_lupdf", "inv_gamma_lupdf", "inv_gaussian_lupdf",
    "inv_wishart_cholesky_lupdf", "inv_wishart_lupdf",
    "lkj_corr_cholesky_lupdf", "lkj_corr_lupdf", "lkj_cov_lupdf", "logistic_lupdf",
    "loglogistic_lupdf", "lognormal_lupdf", "matrix_normal_prec_lupdf", "multi_gp_cholesky_lupdf",
    "multi_gp_lupdf", "multi_normal_cholesky_lupdf", "multi_normal_lupdf",
    "multi_normal_prec_lupdf", "multi_student_t_cholesky_lupdf", "multi_student_t_lupdf",
    "multinomial_logit_lupmf", "multinomial_lupmf", "neg_binomial_2_log_glm_lupmf",
    "neg_binomial_2_log_lupmf", "neg_binomial_2_lupmf", "neg_binomial_lupmf", "normal_id_glm_lupdf",
    "normal_lupdf", "normal_sufficient_lupdf", "ordered_logistic_glm_lupmf",
    "ordered_logistic_lupmf", "ordered_probit_lupmf", "pareto_lupdf", "pareto_type_2_lupdf",
    "poisson_binomial_lupmf", "poisson_log_glm_lupmf", "poisson_log_lupmf", "poisson_lupmf",
    "rayleigh_lupdf", "scaled_inv_chi_square_lupdf", "skew_double_exponential_lupdf",
    "skew_normal_lupdf", "std_normal_lupdf", "student_t_lupdf", "uniform_lupdf", "von_mises_lupdf",
    "weibull_lupdf", "wiener_lupdf", "wishart_cholesky_lupdf", "wishart_lupdf", "yule_simon_lupmf",
]  # fmt: skip

bernoulli_logit_lupmf = bernoulli.bernoulli_logit_lpmf.proportional
bernoulli_lupmf = bernoulli.bernoulli_lpmf.proportional
binomial_logit_lupmf = bernoulli.binomial_logit_lpmf.proportional
binomial_lupmf = bernoulli.binomial_lpmf.proportional
beta_binomial_lupmf = beta_counts.beta_binomial_lpmf.proportional
beta_neg_binomial_lupmf = beta_counts.beta_neg_binomial_lpmf.proportional
yule_simon_lupmf = beta_counts.yule_simon_lpmf.proportional
beta_lupdf = bounded.beta_lpdf.proportional
beta_proportion_lupdf = bounded.beta_proportion_lpdf.proportional
uniform_lupdf = bounded.uniform_lpdf.proportional
categorical_logit_lupmf = categorical.categorical_logit_lpmf.proportional
categorical_lupmf = categorical.categorical_lpmf.proportional
von_mises_lupdf = circular.von_mises_lpdf.proportional
neg_binomial_2_log_lupmf = counts.neg_binomial_2_log_lpmf.proportional
neg_binomial_2_lupmf = counts.neg_binomial_2_lpmf.proportional
neg_binomial_lupmf = counts.neg_binomial_lpmf.proportional
poisson_log_lupmf = counts.poisson_log_lpmf.proportional
poisson_lupmf = counts.poisson_lpmf.proportional
frechet_lupdf = extreme_value.frechet_lpdf.proportional
generalized_extreme_value_lupdf = extreme_value.generalized_extreme_value_lpdf.proportional
generalized_pareto_lupdf = extreme_value.generalized_pareto_lpdf.proportional
geometric_lupmf = counts.geometric_lpmf.proportional
gumbel_lupdf = extreme_value.gumbel_lpdf.proportional
discrete_range_lupmf = finite_populations.discrete_range_lpmf.proportional
hypergeometric_lupmf = finite_populations.hypergeometric_lpmf.proportional
gaussian_dlm_obs_lupdf = gaussian_dlm.gaussian_dlm_obs_lpdf.proportional
bernoulli_logit_glm_lupmf = glm.bernoulli_logit_glm_lpmf.proportional
normal_id_glm_lupdf = glm.normal_id_glm_lpdf.proportional
poisson_log_glm_lupmf = glm.poisson_log_glm_lpmf.proportional
categorical_logit_glm_lupmf = glm_categories.categorical_logit_glm_lpmf.proportional
ordered_logistic_glm_lupmf = glm_categories.ordered_logistic_glm_lpmf.proportional
binomial_logit_glm_lupmf = glm_counts.binomial_logit_glm_lpmf.proportional
neg_binomial_2_log_glm_lupmf = glm_counts.neg_binomial_2_log_glm_lpmf.proportional
loglogistic_lupdf = heavy_tails.loglogistic_lpdf.proportional
pareto_lupdf = heavy_tails.pareto_lpdf.proportional
pareto_type_2_lupdf = heavy_tails.pareto_type_2_lpdf.proportional
inv_chi_square_lupdf = inverse_chi_square.inv_chi_square_lpdf.proportional
scaled_inv_chi_square_lupdf = inverse_chi_square.scaled_inv_chi_square_lpdf.proportional
cauchy_lupdf = location_scale.cauchy_lpdf.proportional
double_exponential_lupdf = location_scale.double_exponential_lpdf.proportional
logistic_lupdf = location_scale.logistic_lpdf.proportional
student_t_lupdf = location_scale.student_t_lpdf.proportional
matrix_normal_prec_lupdf = matrix_normal.matrix_normal_prec_lpdf.proportional
multi_gp_cholesky_lupdf = matrix_normal.multi_gp_cholesky_lpdf.proportional
multi_gp_lupdf = matrix_normal.multi_gp_lpdf.proportional
inv_wishart_lupdf = wishart.inv_wishart_lpdf.proportional
lkj_corr_cholesky_lupdf = lkj.lkj_corr_cholesky_lpdf.proportional
lkj_corr_lupdf = lkj.lkj_corr_lpdf.proportional
lkj_cov_lupdf = lkj.lkj_cov_lpdf.proportional
wishart_lupdf = wishart.wishart_lpdf.proportional
multi_normal_cholesky_lupdf = multi_normal.multi_normal_cholesky_lpdf.proportional
multi_normal_lupdf = multi_normal.multi_normal_lpdf.proportional
multi_normal_prec_lupdf = multi_normal.multi_normal_prec_lpdf.proportional
multi_student_t_cholesky_lupdf = multi_normal.multi_student_t_cholesky_lpdf.proportional
multi_student_t_lupdf = multi_normal.multi_student_t_lpdf.proportional
normal_lupdf = normal.normal_lpdf.proportional
normal_sufficient_lupdf = normal.normal_sufficient_lpdf.proportional
std_normal_lupdf = normal.std_normal_lpdf.proportional
ordered_logistic_lupmf = ordered.ordered_logistic_lpmf.proportional
poisson_binomial_lupmf = poisson_binomial.poisson_binomial_lpmf.proportional
ordered_probit_lupmf = ordered.ordered_probit_lpmf.proportional
chi_square_lupdf = positive.chi_square_lpdf.proportional
exponential_lupdf = positive.exponential_lpdf.proportional
gamma_lupdf = positive.gamma_lpdf.proportional
inv_gaussian_lupdf = positive.inv_gaussian_lpdf.proportional
inv_gamma_lupdf = positive.inv_gamma_lpdf.proportional
lognormal_lupdf = positive.lognormal_lpdf.proportional
rayleigh_lupdf = positive.rayleigh_lpdf.proportional
weibull_lupdf = positive.weibull_lpdf.proportional
dirichlet_lupdf = simplex.dirichlet_lpdf.proportional
dirichlet_multinomial_lupmf = simplex.dirichlet_multinomial_lpmf.proportional
multinomial_logit_lupmf = simplex.multinomial_logit_lpmf.proportional
multinomial_lupmf = simplex.multinomial_lpmf.proportional
exp_mod_normal_lupdf = skewed.exp_mod_normal_lpdf.proportional
skew_double_exponential_lupdf = skewed.skew_double_exponential_lpdf.proportional
skew_normal_lupdf = skewed.skew_normal_lpdf.proportional
wiener_lupdf = wiener.wiener_lpdf.proportional
inv_wishart_cholesky_lupdf = wishart_cholesky.inv_wishart_cholesky_lpdf.proportional
wishart_cholesky_lupdf = wishart_cholesky.wishart_cholesky_lpdf.proportional
