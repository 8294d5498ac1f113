// The density of a linear model alone; the scale is not constrained.
data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] x;
  vector[N] y;
}
parameters {
  real alpha;
  vector[K] beta;
  real sigma;
}
model {
  y ~ normal_id_glm(x, alpha, beta, sigma);
}
