// Returns with conditional variances, GARCH(1, 1): one time after the other.
data {
  int<lower=1> T;
  array[T] real y;
}
parameters {
  real mu;
  real<lower=0> omega;
  real<lower=0, upper=1> alpha;
  real<lower=0, upper=1> beta;
}
model {
  real variance = 1;
  mu ~ std_normal();
  omega ~ std_normal();
  alpha ~ beta(2, 5);
  beta ~ beta(5, 2);
  y[1] ~ normal(mu, 1);
  for (t in 2 : T) {
    variance = omega + alpha * square(y[t - 1] - mu) + beta * variance;
    y[t] ~ normal(mu, sqrt(variance));
  }
}
