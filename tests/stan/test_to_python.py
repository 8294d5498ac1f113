"""Stan programs written as Python: the text of one, and the numbers of many."""

from __future__ import annotations

import types as python

import numpy as np
import pytest

from varmat.stan import Program
from varmat.stan.errors import StanError
from varmat.stan.to_python import renamed, to_python

SCHOOLS = """
data { int<lower=0> J; vector[J] y; vector<lower=0>[J] sigma; }
parameters { real mu; real<lower=0> tau; vector[J] z; }
transformed parameters { vector[J] theta = mu + tau * z; }
model {
  tau ~ cauchy(0, 5);
  z ~ std_normal();
  y ~ normal(theta, sigma);
}
generated quantities { array[J] real replicate = normal_rng(theta, sigma); }
"""
SCHOOLS_IN_PYTHON = '''"""The model of a Stan program, in NumPy and varmat."""

import numpy as np
import varmat as vm


def make_model(data):
    """The model with data, a dict of the names of the program."""
    J = data["J"]
    y = np.asarray(data["y"])
    sigma = np.asarray(data["sigma"])

    def log_density(tau, z, theta):
        return (
            vm.cauchy_lpdf(tau, 0, 5),
            vm.std_normal_lpdf(z),
            vm.normal_lpdf(y, theta, sigma),
        )

    def transformed_parameters(mu, tau, z):
        theta = mu + tau * z
        return {"theta": theta}

    def generated_quantities(theta, rng):
        replicate = vm.normal_rng(theta, sigma, rng=rng)
        return {"replicate": replicate}

    return vm.Model(
        log_density,
        mu=vm.real(),
        tau=vm.positive(),
        z=vm.real(J),
        transformed_parameters=transformed_parameters,
        generated_quantities=generated_quantities,
    )
'''
Y = [0.3, -1.2, 2.0, 0.4, 1.1]
PROGRAMS = {
    "schools": (SCHOOLS, {"J": 3, "y": [28.0, 8.0, -3.0], "sigma": [15.0, 10.0, 16.0]}),
    "indices": ("""
        data { int N; array[N] int g; vector[N] y; }
        parameters { vector[3] a; real<lower=0> lambda; }
        model {
          a[2:3] ~ normal(a[1], 1);
          a[{3, 1}] ~ normal(0, 2);
          for (i in 2:N) y[i] ~ normal(a[g[i]] + a[g[i - 1]] * i, lambda);
          target += sum(a[g]) - y[N] * a[3] + a[3 - 1];
        }""", {"N": 5, "g": [1, 3, 2, 2, 1], "y": Y}),
    "recurrence": ("""
        data { int T; array[T] real y; }
        parameters { real mu; real<lower=-1, upper=1> phi; real<lower=0> s; }
        transformed parameters {
          vector[T] h;
          h[1] = mu;
          for (t in 2:T) h[t] = mu + phi * (h[t - 1] - mu) + 0.1 * t;
        }
        model {
          if (T > 100) s ~ exponential(1); else if (T % 2 == 1) s ~ gamma(2, 1.5); else { }
          for (t in 1:T) target += normal_lpdf(y[t] | h[t], s);
        }""", {"T": 5, "y": Y}),
    "matrices": ("""
        data { int N; matrix[N, 2] X; vector[N] y; }
        transformed data {
          matrix[2, 2] G = X' * X + diag_matrix(rep_vector(1, 2));
          int half = N / 2;
        }
        parameters { vector[2] b; matrix[2, 3] B; cov_matrix[2] S; row_vector[2] r; }
        model {
          y ~ normal(X * b + X[, 1] * r[2], 1);
          b ~ multi_normal(rep_vector(0, 2), S);
          target += -0.5 * b' * G * b + r * b - 2 ^ 3 ^ half * sum(square(to_vector(B)));
          target += log_determinant(S) + (r * S)[1] + sum(b * r) + (b .* b)[2];
          target += -dot_product(b, B[, 3]);
          to_vector(B) ~ normal(0, 2);
        }""", {"N": 3, "X": [[1.0, 0.5], [1.0, -0.3], [1.0, 2.0]], "y": Y[:3]}),
    "functions": ("""
        functions {
          real trend(real t, vector b) { if (t > 2) { return b[1] * t; } return b[2]; }
          real bump_lpdf(real y, real m) { return -abs(y - m); }
          void push_lp(real x) { target += -x * x; }
        }
        data { int N; vector[N] y; }
        parameters { vector[2] b; simplex[3] p; ordered[2] c; }
        model {
          real total = 0;
          int k = 1;
          while (k <= N) { total += trend(k, b); k += 1; if (k == 4) break; }
          push_lp(total);
          y[1] ~ bump(b[1]);
          target += bump_lpdf(y[2] | b[2]);
          p ~ dirichlet([1.5, 2, 3]');
          for (x in y) target += log_mix(p[1], normal_lpdf(x | c[1], 1), normal_lpdf(x | c[2], 2));
          y[3] ~ normal(c[1], 1) T[0, ];
        }""", {"N": 5, "y": Y}),
    "arrays": ("""
        data { int K; array[K] int n; array[K] vector[2] x; }
        parameters { array[K] vector[2] a; array[2] real<lower=0> s; }
        model {
          array[K, 2] real z;
          for (k in 1:K) for (j in 1:2) z[k, j] = a[k][j] > 0 ? a[k, j] * s[j] : a[k][j] / s[j];
          for (k in 1:K) { x[k] ~ normal(a[k], s); n[k] ~ poisson_log(z[k, 1] + k); }
          target += log_sum_exp(to_array_1d(z)) + log_sum_exp(z[1, 1], z[K, 2]);
          target += segment(s, 2, 1)[1];
        }""", {"K": 2, "n": [3, 0], "x": [[0.1, 0.2], [0.5, -1.0]]}),
    # Arrays are copied, integers divided, comparisons added up and axes put in order.
    "values": ("""
        functions {
          vector same(vector x) { return x; }
          real bump_lp(real x) { target += x; return 3 * x; }
        }
        data { int N; array[N] int g; matrix[2, 3] X; array[2] matrix[2, 2] A; }
        parameters { real p; }
        model {
          vector[3] a = p * [1, 2, 3]';
          matrix[2, 3] m = X;
          row_vector[2] r = [0, 1];
          r[2] = 0.5;
          target += r[2] * p;
          vector[3] b = a; vector[2] c = a[1:2]; vector[3] d = same(a); matrix[3, 2] n = m';
          tuple(vector[3], real) both = (a, p);
          a[1] = 5;
          m[1, 1] = 7;
          target += b[1] + c[1] ^ 2 + d[1] ^ 3 + n[1, 1] * p + both.1[1] * 2;
          if (N > 1) target += a;
          a[2] = 9;
          for (e in a) { a[3] = 11; target += e * p; }
          int i = 7;
          i /= 2;
          target += i * p + size(X) * p^2 + cols(X[1]) * p^3 + rows(a') * p + cols(a) * p;
          p ~ normal(bump_lp(p), 1);
          target += p * ((g[1] > 0) + (g[2] > 0) - -(g[3] > 0)) + p^2 * (N && 4) + p * (0 || N);
          target += 0.5 * target();
          matrix[2, 2] B = A[2, 1:2, g[1:2]];
          B[{2, 1}, {2}] = [[p], [1]];
          target += p * B[1, 2] + p^2 * B[2, 1] + A[1, {2, 1}, {1, 2}][1, 2] * p + g[2] ^ (-N) * p;
          target += sum(append_row(a, p) .* linspaced_vector(4, 1, 4));
        }""", {"N": 3, "g": [2, 1, 2], "X": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
               "A": [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]}),
    "containers": ("""
        data { int N; int k; vector[2] v; }
        parameters { real p; vector[2] w; }
        transformed parameters {
          vector[N] x = p * zeros_vector(N) + w[1] * ones_vector(N) + p * one_hot_vector(N, k);
          row_vector[N] r = rep_row_vector(p, N) + ones_row_vector(N) - zeros_row_vector(N);
          matrix[2, N] M = rep_matrix(w, N) + rep_matrix(r, 2) + rep_matrix(p, 2, N);
          vector[N] l = p * linspaced_vector(N, -1, 2) + w[2] * uniform_simplex(N);
          vector[1] one = p * linspaced_vector(1, -1, 2);
          matrix[N, N] D = p * identity_matrix(N) + rep_matrix(v, N) * rep_matrix(v', N)';
          row_vector[3] s = p * linspaced_row_vector(3, 0, 1) .* one_hot_row_vector(3, k);
        }
        model {
          array[N] int z = one_hot_int_array(N, k);
          array[N] real a = linspaced_array(N, 0.5, 1.5);
          target += sum(x) + sum(r) + sum(M) + sum(l .* rep_vector(w[1], N)) + one[1] + sum(D);
          target += z[k] * p + a[k] * p - p^2 + sum(s) + sum(zeros_int_array(N)) * p;
          target += sum(ones_array(N)) * p + sum(ones_int_array(N)) + one_hot_array(N, k)[k] * p;
          w ~ normal(rep_vector(0, 2), ones_vector(2));
          target += sum(rep_matrix(v, 2)) + sum(zeros_array(N));
        }""", {"N": 2, "k": 2, "v": [0.5, -1.5]}),
}  # fmt: skip


def made(text):
    module = python.ModuleType("translated")
    exec(compile(text, "translated", "exec"), vars(module))
    return module


def test_the_text_reads_as_a_colleague_would_write_it():
    assert to_python(Program(SCHOOLS).tree) == SCHOOLS_IN_PYTHON


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_those_of_the_program(name):
    source, data = PROGRAMS[name]
    program = Program(source)
    text = to_python(program.tree)
    model, translated = program.model(data), made(text).make_model(data)
    # The two have different coordinates for matrices and simplexes, so parameters are compared.
    for seed in range(2):
        q = np.random.default_rng(seed).normal(size=model.param_unc_num()) * 0.5
        values = model.constrain(q, include_tp=True)
        parameters = {renamed(d.name): values[d.name] for d in program.tree.parameters}
        point = translated.param_unconstrain(parameters)
        expected = model.log_density(q, propto=False, jacobian=False)
        np.testing.assert_allclose(
            translated.log_density(point, jacobian=False), expected, rtol=1e-11, err_msg=text
        )
        found = translated.constrain(point, include_tp=True)
        for each, x in values.items():
            np.testing.assert_allclose(found[renamed(each)], x, rtol=1e-11, atol=1e-12)
        translated.check_gradient(point)


@pytest.mark.parametrize(("source", "what"), [
    ("parameters { complex z; } model { }", "a parameter of type complex"),
    ("functions { real f(real x) { return x; } real f(vector x) { return x[1]; } }",
     "several functions f"),
    ("parameters { real<lower=0> x; } model { target += target(); }",
     r"`target\(\)`, which counts Jacobians of parameters"),
])  # fmt: skip
def test_what_cannot_be_written_is_named(source, what):
    with pytest.raises(StanError, match=f"to_python cannot write {what}"):
        to_python(Program(source).tree)
