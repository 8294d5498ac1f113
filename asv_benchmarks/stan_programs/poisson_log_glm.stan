// The density of a Poisson regression alone.
data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] x;
  array[N] int<lower=0> y;
}
parameters {
  real alpha;
  vector[K] beta;
}
model {
  y ~ poisson_log_glm(x, alpha, beta);
}
