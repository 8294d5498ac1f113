// Gaussian process regression by the logarithms of its parameters.
data {
  int<lower=1> N;
  array[N] real x;
  vector[N] y;
}
transformed data {
  vector[N] zero = rep_vector(0, N);
}
parameters {
  real log_sigma;
  real log_scale;
  real log_noise;
}
model {
  matrix[N, N] K = add_diag(gp_exp_quad_cov(x, exp(log_sigma), exp(log_scale)), exp(2 * log_noise));
  y ~ multi_normal_cholesky(zero, cholesky_decompose(K));
}
