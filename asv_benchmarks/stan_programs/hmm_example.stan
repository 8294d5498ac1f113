// A chain of two states with normal emissions, forward; the first state has no weights of its own.
data {
  int<lower=1> N;
  array[N] real y;
}
parameters {
  simplex[2] theta1;
  simplex[2] theta2;
  positive_ordered[2] mu;
}
model {
  mu[1] ~ normal(3, 1);
  mu[2] ~ normal(10, 1);
  {
    vector[2] log_theta1 = log(theta1);
    vector[2] log_theta2 = log(theta2);
    array[N] vector[2] forward;
    for (k in 1 : 2) {
      forward[1, k] = normal_lpdf(y[1] | mu[k], 1);
    }
    for (t in 2 : N) {
      for (k in 1 : 2) {
        forward[t, k] = log_sum_exp(forward[t - 1, 1] + log_theta1[k], forward[t - 1, 2] + log_theta2[k])
                        + normal_lpdf(y[t] | mu[k], 1);
      }
    }
    target += log_sum_exp(forward[N]);
  }
}
