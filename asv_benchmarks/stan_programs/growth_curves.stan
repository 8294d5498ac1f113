// A line for the weight of each rat.
data {
  int<lower=0> N;
  int<lower=0> J;
  array[N] int<lower=1, upper=J> rat;
  vector[N] age;
  vector[N] weight;
}
parameters {
  vector[J] alpha;
  vector[J] beta;
  real mu_alpha;
  real mu_beta;
  real<lower=0> sigma_alpha;
  real<lower=0> sigma_beta;
  real<lower=0> sigma;
}
model {
  mu_alpha ~ normal(250, 100);
  mu_beta ~ normal(0, 10);
  sigma_alpha ~ normal(0, 50);
  sigma_beta ~ normal(0, 5);
  sigma ~ normal(0, 50);
  alpha ~ normal(mu_alpha, sigma_alpha);
  beta ~ normal(mu_beta, sigma_beta);
  weight ~ normal(alpha[rat] + beta[rat] .* age, sigma);
}
