// A chain of two states, which may start in either, with normal emissions.
data {
  int<lower=1> T;
  row_vector[T] y;
}
parameters {
  vector[2] stay;
  vector[2] mu;
}
model {
  vector[2] p = inv_logit(stay);
  matrix[2, 2] gamma = [[p[1], 1 - p[1]], [1 - p[2], p[2]]];
  matrix[2, T] log_omegas;
  for (t in 1 : T) {
    for (k in 1 : 2) {
      log_omegas[k, t] = normal_lpdf(y[t] | mu[k], 1);
    }
  }
  stay ~ normal(0, 5);
  mu ~ normal(0, 5);
  target += hmm_marginal(log_omegas, gamma, [0.5, 0.5]');
}
