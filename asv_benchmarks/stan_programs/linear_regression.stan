// Linear regression; stanc makes the density of a generalised linear model of it.
data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] x;
  vector[N] y;
}
parameters {
  real alpha;
  vector[K] beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 10);
  beta ~ std_normal();
  sigma ~ exponential(1);
  y ~ normal(x * beta + alpha, sigma);
}
