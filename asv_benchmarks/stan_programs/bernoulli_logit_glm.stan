// The density of a logistic regression alone.
data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  vector[K] beta;
}
model {
  y ~ bernoulli_logit_glm(x, alpha, beta);
}
