// Radon in houses, with an intercept for each county, not centred.
data {
  int<lower=0> N;
  int<lower=0> J;
  vector[N] log_radon;
  vector[N] log_uppm;
  vector[N] floor_measure;
  array[N] int<lower=1, upper=J> county_idx;
}
transformed data {
  matrix[N, 2] x = append_col(log_uppm, floor_measure);
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
  log_radon ~ normal_id_glm(x, alpha[county_idx], beta, sigma_y);
}
