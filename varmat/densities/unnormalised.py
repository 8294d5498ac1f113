"""Densities without the terms that depend on data only, under Stan's names for them: `normal_lupdf`, `poisson_lupmf`, ..."""

from varmat.densities import (
    bernoulli,
    bounded,
    categorical,
    counts,
    glm,
    location_scale,
    matrix_variate,
    multi_normal,
    normal,
    ordered,
    positive,
    simplex,
)

__all__ = [
    "bernoulli_logit_glm_lupmf",
    "bernoulli_logit_lupmf",
    "bernoulli_lupmf",
    "beta_lupdf",
    "binomial_logit_lupmf",
    "binomial_lupmf",
    "categorical_logit_lupmf",
    "categorical_lupmf",
    "cauchy_lupdf",
    "chi_square_lupdf",
    "dirichlet_lupdf",
    "double_exponential_lupdf",
    "exponential_lupdf",
    "gamma_lupdf",
    "inv_gamma_lupdf",
    "inv_wishart_lupdf",
    "lkj_corr_cholesky_lupdf",
    "lkj_corr_lupdf",
    "logistic_lupdf",
    "lognormal_lupdf",
    "multi_normal_cholesky_lupdf",
    "multi_normal_lupdf",
    "multi_normal_prec_lupdf",
    "multi_student_t_cholesky_lupdf",
    "multi_student_t_lupdf",
    "multinomial_lupmf",
    "neg_binomial_2_log_lupmf",
    "neg_binomial_2_lupmf",
    "normal_id_glm_lupdf",
    "normal_lupdf",
    "ordered_logistic_lupmf",
    "poisson_log_glm_lupmf",
    "poisson_log_lupmf",
    "poisson_lupmf",
    "std_normal_lupdf",
    "student_t_lupdf",
    "uniform_lupdf",
    "weibull_lupdf",
    "wishart_lupdf",
]

bernoulli_logit_lupmf = bernoulli.bernoulli_logit_lpmf.proportional
bernoulli_lupmf = bernoulli.bernoulli_lpmf.proportional
binomial_logit_lupmf = bernoulli.binomial_logit_lpmf.proportional
binomial_lupmf = bernoulli.binomial_lpmf.proportional
beta_lupdf = bounded.beta_lpdf.proportional
uniform_lupdf = bounded.uniform_lpdf.proportional
categorical_logit_lupmf = categorical.categorical_logit_lpmf.proportional
categorical_lupmf = categorical.categorical_lpmf.proportional
neg_binomial_2_log_lupmf = counts.neg_binomial_2_log_lpmf.proportional
neg_binomial_2_lupmf = counts.neg_binomial_2_lpmf.proportional
poisson_log_lupmf = counts.poisson_log_lpmf.proportional
poisson_lupmf = counts.poisson_lpmf.proportional
bernoulli_logit_glm_lupmf = glm.bernoulli_logit_glm_lpmf.proportional
normal_id_glm_lupdf = glm.normal_id_glm_lpdf.proportional
poisson_log_glm_lupmf = glm.poisson_log_glm_lpmf.proportional
cauchy_lupdf = location_scale.cauchy_lpdf.proportional
double_exponential_lupdf = location_scale.double_exponential_lpdf.proportional
logistic_lupdf = location_scale.logistic_lpdf.proportional
student_t_lupdf = location_scale.student_t_lpdf.proportional
inv_wishart_lupdf = matrix_variate.inv_wishart_lpdf.proportional
lkj_corr_cholesky_lupdf = matrix_variate.lkj_corr_cholesky_lpdf.proportional
lkj_corr_lupdf = matrix_variate.lkj_corr_lpdf.proportional
wishart_lupdf = matrix_variate.wishart_lpdf.proportional
multi_normal_cholesky_lupdf = multi_normal.multi_normal_cholesky_lpdf.proportional
multi_normal_lupdf = multi_normal.multi_normal_lpdf.proportional
multi_normal_prec_lupdf = multi_normal.multi_normal_prec_lpdf.proportional
multi_student_t_cholesky_lupdf = multi_normal.multi_student_t_cholesky_lpdf.proportional
multi_student_t_lupdf = multi_normal.multi_student_t_lpdf.proportional
normal_lupdf = normal.normal_lpdf.proportional
std_normal_lupdf = normal.std_normal_lpdf.proportional
ordered_logistic_lupmf = ordered.ordered_logistic_lpmf.proportional
chi_square_lupdf = positive.chi_square_lpdf.proportional
exponential_lupdf = positive.exponential_lpdf.proportional
gamma_lupdf = positive.gamma_lpdf.proportional
inv_gamma_lupdf = positive.inv_gamma_lpdf.proportional
lognormal_lupdf = positive.lognormal_lpdf.proportional
weibull_lupdf = positive.weibull_lpdf.proportional
dirichlet_lupdf = simplex.dirichlet_lpdf.proportional
multinomial_lupmf = simplex.multinomial_lpmf.proportional
