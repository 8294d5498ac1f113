// Radon in houses, with an intercept for each county, not centred: one house after the other.
data {
  int<lower=0> N;
  int<lower=0> J;
  array[N] real log_radon;
  array[N] real log_uppm;
  array[N] real floor_measure;
  array[N] int<lower=1, upper=J> county_idx;
}
parameters {
  vector[J] alpha_raw;
  vector[2] beta;
  real mu_alpha;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_y;
}
model {
  vector[J] alpha = mu_alpha + sigma_alpha * alpha_raw;
  sigma_alpha ~ std_normal();
  sigma_y ~ std_normal();
  mu_alpha ~ normal(0, 10);
  beta ~ normal(0, 10);
  alpha_raw ~ std_normal();
  for (n in 1 : N) {
    log_radon[n] ~ normal(alpha[county_idx[n]] + beta[1] * log_uppm[n] + beta[2] * floor_measure[n], sigma_y);
  }
}
