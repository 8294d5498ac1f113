// Switching wells: logistic regression on distance, in hundreds of metres, and arsenic.
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] dist;
  vector[N] arsenic;
}
transformed data {
  matrix[N, 2] x = append_col(dist / 100, arsenic);
}
parameters {
  real alpha;
  vector[2] beta;
}
model {
  switched ~ bernoulli_logit_glm(x, alpha, beta);
}
