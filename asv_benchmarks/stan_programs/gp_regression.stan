// Gaussian process regression; sigma is the variance of the noise.
data {
  int<lower=1> N;
  array[N] real x;
  vector[N] y;
}
transformed data {
  vector[N] zero = rep_vector(0, N);
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  real<lower=0> sigma;
}
model {
  matrix[N, N] K = add_diag(gp_exp_quad_cov(x, alpha, rho), sigma);
  rho ~ gamma(25, 4);
  alpha ~ normal(0, 2);
  sigma ~ std_normal();
  y ~ multi_normal_cholesky(zero, cholesky_decompose(K));
}
