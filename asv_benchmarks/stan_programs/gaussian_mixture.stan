// The objective of ADBench: a mixture by the factors of its inverse covariances, with a Wishart prior on these.
data {
  int<lower=1> N;
  int<lower=1> D;
  int<lower=1> K;
  matrix[D, N] x;
  real constant;
}
parameters {
  vector[K] alphas;
  array[K] vector[D] means;
  array[K] vector[(D * (D + 1)) %/% 2] factors;
}
model {
  matrix[K, N] terms;
  for (k in 1 : K) {
    vector[D] logs = head(factors[k], D);
    vector[D] diagonal = exp(logs);
    matrix[D, D] factor = diag_matrix(diagonal);
    int at = D;
    for (j in 1 : D) {
      for (i in j + 1 : D) {
        at += 1;
        factor[i, j] = factors[k, at];
      }
    }
    terms[k] = alphas[k] + sum(logs) - 0.5 * columns_dot_self(factor * x - rep_matrix(factor * means[k], N));
    target += 0.5 * (dot_self(diagonal) + dot_self(factors[k, D + 1 : ]));
  }
  for (n in 1 : N) {
    target += log_sum_exp(terms[, n]);
  }
  target += constant - N * log_sum_exp(alphas);
}
