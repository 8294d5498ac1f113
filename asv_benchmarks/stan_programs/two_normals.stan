// A mixture of two normal distributions, all observations at once: log_mix takes them one by one, which takes twice as long.
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  ordered[2] mu;
  vector<lower=0>[2] sigma;
  real<lower=0, upper=1> theta;
}
model {
  vector[N] first = log(theta) - log(sigma[1]) - 0.5 * square((y - mu[1]) / sigma[1]);
  vector[N] second = log1m(theta) - log(sigma[2]) - 0.5 * square((y - mu[2]) / sigma[2]);
  sigma ~ normal(0, 2);
  mu ~ normal(0, 2);
  theta ~ beta(5, 5);
  target += sum(first + log1p_exp(second - first)) - 0.5 * N * log(2 * pi());
}
