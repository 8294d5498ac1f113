// Scores of children by education and IQ of their mothers, with interaction.
data {
  int<lower=0> N;
  vector[N] kid_score;
  vector[N] mom_hs;
  vector[N] mom_iq;
}
transformed data {
  matrix[N, 3] x = append_col(append_col(mom_hs, mom_iq), mom_hs .* mom_iq);
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  sigma ~ cauchy(0, 2.5);
  kid_score ~ normal_id_glm(x, beta[1], beta[2:4], sigma);
}
