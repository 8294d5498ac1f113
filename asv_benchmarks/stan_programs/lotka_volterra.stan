// Hares and lynxes: a differential equation observed with noise.
functions {
  vector change(real t, vector z, vector theta) {
    return [(theta[1] - theta[2] * z[2]) * z[1], (-theta[3] + theta[4] * z[1]) * z[2]]';
  }
}
data {
  int<lower=0> N;
  array[N] real ts;
  vector<lower=0>[2] y_init;
  array[N] vector<lower=0>[2] y;
}
parameters {
  vector<lower=0>[4] theta;
  vector<lower=0>[2] z_init;
  vector<lower=0>[2] sigma;
}
model {
  array[N] vector[2] z = ode_rk45_tol(change, z_init, 0, ts, 1e-5, 1e-3, 500, theta);
  theta[{1, 3}] ~ normal(1, 0.5);
  theta[{2, 4}] ~ normal(0.05, 0.05);
  sigma ~ lognormal(-1, 1);
  z_init ~ lognormal(log(10), 1);
  y_init ~ lognormal(log(z_init), sigma);
  for (t in 1 : N) {
    y[t] ~ lognormal(log(z[t]), sigma);
  }
}
