// Eight schools, not centred.
data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  vector[J] theta_trans;
  real mu;
  real<lower=0> tau;
}
model {
  theta_trans ~ std_normal();
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  y ~ normal(mu + tau * theta_trans, sigma);
}
