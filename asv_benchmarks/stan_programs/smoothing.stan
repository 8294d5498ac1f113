// Exponential smoothing: one time after the other.
data {
  int<lower=1> T;
  array[T] real y;
}
parameters {
  real level;
  real<lower=0, upper=1> gain;
  real<lower=0> sigma;
}
model {
  real now = level;
  level ~ std_normal();
  sigma ~ std_normal();
  for (t in 1 : T) {
    y[t] ~ normal(now, sigma);
    now += gain * (y[t] - now);
  }
}
