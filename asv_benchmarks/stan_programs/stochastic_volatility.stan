// Returns whose log volatility is an autoregressive series; the persistence is a hyperbolic tangent, as where it is compared.
data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  vector[T] raw;
  real mu;
  real atanh_phi;
  real<lower=0> sigma;
}
model {
  real phi = tanh(atanh_phi);
  vector[T] h = sigma * raw;
  h[1] /= sqrt(1 - square(phi));
  for (t in 2 : T) {
    h[t] += phi * h[t - 1];
  }
  raw ~ std_normal();
  mu ~ cauchy(0, 10);
  sigma ~ cauchy(0, 5);
  target += log1m(square(phi));
  y ~ normal(0, exp((mu + h) / 2));
}
