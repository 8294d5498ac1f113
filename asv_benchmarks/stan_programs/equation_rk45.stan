// The states of hares and lynxes at all times.
functions {
  vector change(real t, vector z, vector theta) {
    return [(theta[1] - theta[2] * z[2]) * z[1], (-theta[3] + theta[4] * z[1]) * z[2]]';
  }
}
data {
  int<lower=0> N;
  array[N] real ts;
  vector[2] start;
}
parameters {
  vector[4] theta;
}
model {
  array[N] vector[2] z = ode_rk45_tol(change, start, 0, ts, 1e-6, 1e-6, 100000, theta);
  for (t in 1 : N) {
    target += sum(z[t]);
  }
}
