// An autoregressive series, all times at once.
data {
  int<lower=0> K;
  int<lower=K> T;
  vector[T] y;
}
transformed data {
  int N = T - K;
  matrix[N, K] lags;
  for (k in 1 : K) {
    lags[, k] = segment(y, K + 1 - k, N);
  }
}
parameters {
  real alpha;
  vector[K] beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 10);
  beta ~ normal(0, 10);
  sigma ~ cauchy(0, 2.5);
  tail(y, N) ~ normal_id_glm(lags, alpha, beta, sigma);
}
