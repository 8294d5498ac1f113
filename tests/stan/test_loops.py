"""Loops of Stan programs as procedures, against their passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import close_slopes
from numpy.testing import assert_allclose
from recordings import as_eager

import varmat as vm
from varmat.programs.run import has_native
from varmat.stan import loops
from varmat.stan.stan_model import LONGEST

pytestmark = pytest.mark.skipif(not has_native(), reason="procedures are native")


def programs(text: str) -> dict[str, str]:
    """Bodies of model blocks by their titles."""
    parts = (each.partition("\n") for each in text.split("# ")[1:])
    return {title: body for title, _, body in parts}


FUNCTIONS = """
functions {
  real settle(real a, real b) {
    real x = 1;
    int k = 0;
    while (abs(x * x * x + b * x - a) > 1e-12) {
      x = x - (x * x * x + b * x - a) / (3 * x * x + b);
      k += 1;
      if (k > 60) return x;
    }
    return x;
  }
  real score(vector w, real a, int k) {
    vector[k] u = softmax(w[1:k] * a);
    real t = 0;
    for (i in 1:k) { if (u[i] > 0.6) return t + u[i]; t += i * u[i]; }
    return t;
  }
  vector steps(vector w, int k) { vector[k] u = cumulative_sum(w[1:k]); return tanh(u); }
  void add_lp(real x, real s) { target += normal_lpdf(x | 0, s); }
  real lower_lpdf(real x, real s) { return x > s ? -x : normal_lpdf(x | s, 1); }
}
"""
# What the model block does with data y, x (vectors), k, g (integers), M (matrix) and parameters
# a, b, v (vector), A (matrix), u (as long as y).
BODIES = programs("""
# counter
int c = 1; for (i in 1:N) { for (j in 1:k[i]) { target += v[c] * a; c = c % 4 + 1; } }
# flag
int z = 0; for (i in 1:N) { if (z) { target += exp(a) * i; z = 0; }
else { target += b * y[i]; z = 1; } }
# flag that data decide
int z = 1; real t = a; for (i in 1:N) { if (z) { t = b * x[i]; z = k[i] > 2; }
else { t = a * y[i]; z = k[i] < 2; } target += t * u[i]; }
# bound that is assigned
int m = N - 2; for (i in 1:m) { m = 3; target += (exp(a) - b * i) * m * y[i]; }
# counter read later
int c = 0; for (i in 1:N) if (k[i] > 2) { c += 1; target += v[k[i]]; } target += c * a;
# break
real m = 0; for (i in 1:N) { if (m > 1.5) break; m += 0.4 * exp(a) * y[i]^2; } target += m;
# continue
int c = 0; real t = 0; for (i in 1:N) { c += 1; real m = a * x[i] + 0.1 * t; if (m > b) continue;
if (k[i] == 2) continue; t += m; if (k[i] < 2) target += t * u[i] * c; }
# break out of two
for (i in 1:N) { int j = 1; while (1) { if (j > k[i]) break; target += v[j] * a; j += 1; } if (i >
20) break; }
# while
for (i in 1:N) target += settle(x[i] + a, 1 + b^2);
# early return
real m = 0.1; for (i in 1:N) { m = tanh(m + score(v, a * m, k[i])); target += m; }
# vector of a function
for (i in 1:N) { vector[k[i]] w = steps(v * a, k[i]); target += sum(w); }
# function with state
for (i in 1:N) { real m = a; add_lp(m * y[i] + b, 2); if (m > b) continue; }
# density of the program
for (i in 1:N) { if (k[i] > 9) break; target += lower_lpdf(u[i] | a); }
# elements
vector[4] z = v; for (i in 1:N) { int j = 1 + i % 4; int l = 1 + (i * 7) % 4; z[j] = tanh(0.5 *
z[l] * z[j] + b * y[i]); target += -square(sum(z)); }
# array of vectors
array[N] vector[2] h; h[1] = v[1:2]; for (i in 2:N) { vector[2] w = [a, b]'; for (j in 1:2) { w[j] =
h[i - 1, j] + A[j, 1]; h[i, j] = tanh(log_sum_exp(w) * a); } } target += sum(h[N]);
# rows and columns
matrix[2, 3] W = M; for (i in 1:N) { W[1] = tanh(W[2] * a + y[i]); W[2, 2:3] = W[1, 1:2]; W[, 1] =
0.5 * col(W, 2) + row(A, 1)'; target += sum(W); }
# arrays declared inside
for (i in 1:N) { int m = k[i]; vector[m] w = head(v, m); matrix[2, m] W; array[2, m] real z;
for (j in 1:m) { W[1, j] = w[j] * b; W[2, j] = a * j; z[1, j] = W[2, j]; z[2, j] = y[i]; }
if (a > 50) break; target += sum(w) + sum(W) * W[2, m] + sum(z[1]); }
# whole arrays
vector[2] h = v[1:2]; for (i in 1:N) { h = tanh(A * h + M * v[1:3] + y[i]); target +=
dot_product(h, head(v, 2)) + (h' * A) * h + max(h) - min(segment(v, 2, 2)); }
# windows
for (i in 2:N) y[i] ~ normal(dot_product(head(y, i - 1), reverse(head(u, i - 1))), exp(a));
# forwards
vector[N] z = u; for (i in 1:(N - 1)) z[i + 1] = tanh(z[i] * a + z[i + 1]); z ~ normal(0, 1);
# backwards
vector[N] z = u; for (i in 1:(N - 1)) z[N - i] = z[N - i] + a * sin(z[N - i + 1]); z ~ normal(0,
1);
# densities
real m = 0; for (i in 1:N) { m = 0.3 * m + a; k[i] ~ poisson_log(m); y[i] ~ student_t(4, m, 1);
g[i] ~ categorical_logit(v * m); g[i] ~ categorical(softmax(v + m)); k[i] ~ neg_binomial_2_log(m,
2); target += gamma_lpdf(exp(x[i]) | exp(m), 2) + bernoulli_logit_lpmf(1 | m); y[1:3] ~ normal(m,
2); }
# functions
int c = 0; real m = 0.2; for (i in 1:N) { c += 1; m = inv_logit(m + a) + fmin(m, b) *
log1p_exp(y[i] * b) + log_mix(0.3, m, a) + lgamma(exp(m)) + pow(exp(b), m) + fmax(a, m) +
lmultiply(2, 1 + m^2) + abs(m - 0.1) + hypot(m, a) + atan2(m, 2) + pi() * Phi(m); m = 0.1 *
tanh(m); target += m; }
# library
int c = 0; for (i in 1:8) { c += 1; if (a > 50) break; target += 0.1 * c * (fmax(a*y[i], b) +
fmin(a, b*y[i]) + log_mix(inv_logit(a), b, y[i]) + max({a, b*y[i]}) + log_sum_exp(a*y[i], b) +
softmax([a, b*y[i]]')[1] + categorical_logit_lpmf(1 | [a, b*y[i]]') + fdim(a, b) + abs(a*b) +
hypot(a, b) + fmod(a, b) + pow(exp(a), b*y[i]) + log_diff_exp(2+square(a), b) + Phi(a) +
lgamma(exp(a)) + inv_cloglog(a) + log1m_exp(-exp(b)) + trunc(a)*b + square(a)^b + inv_sqrt(exp(a))
+ student_t_lpdf(a | exp(b), a, 1) + skew_normal_lpdf(a | b, 1, a) + beta_lpdf(inv_logit(a) |
exp(b), 2) + gamma_lpdf(exp(a) | exp(b), 2) + weibull_lpdf(exp(a) | exp(b), 2) +
neg_binomial_2_lpmf(3 | exp(a), exp(b)) + binomial_logit_lpmf(2 | 5, a*b) + von_mises_lpdf(a | b,
exp(a)) + double_exponential_lpdf(a | b, exp(a)) + cauchy_lpdf(a | b, 2) + lognormal_lpdf(exp(a) |
b, 2) + normal_lcdf(a | b, 1) + logistic_lpdf(a | b, 1) + poisson_lpmf(3 | exp(a)) +
exp_mod_normal_lpdf(a | b, 1, 2) + beta_binomial_lpmf(2 | 5, exp(a), exp(b)) + lbeta(exp(a),
exp(b)) + lchoose(7.5, exp(a)) + atan2(a, b) + cbrt(exp(a)) + digamma(exp(a)) + erf(a) +
tgamma(exp(a)) + multiply_log(2, exp(a)) + owens_t(a, b) + bessel_first_kind(1, exp(a)) +
uniform_lpdf(inv_logit(a) | -1, 2) + pareto_lpdf(exp(a)+1 | 1, exp(b)) + inv_gamma_lpdf(exp(a) |
exp(b), 2) + rayleigh_lpdf(exp(a) | exp(b)) + frechet_lpdf(exp(a) | exp(b), 1) + gumbel_lpdf(a |
b, 1) + std_normal_lpdf(a) + chi_square_lpdf(exp(a) | exp(b)) + bernoulli_lpmf(1 | inv_logit(a)) +
int_step(a)*b + step(a)*b); }
# made of parts
for (i in 2:N) { vector[3] w = append_row(a, [b, y[i] * a]'); array[2] real z = {a, b * y[i]};
target += prod(w) + mean(z) + squared_distance(w, rep_vector(a, 3)) + sum(append_row(w,
v[1:k[i]])) + log_sum_exp(to_vector(A) * y[i]) + num_elements(w) * a; if (a > 50) break; }
# and, or, not
real m = a; for (i in 1:N) { if (!(m > b) || (k[i] > 1 && y[k[i]] > m)) m = 0.9 * m + 0.1 * y[i];
else m -= 0.1; target += (m > 0 ? m * b : -m) * (i == 3 || a < b); }
# integers
array[5] int c = rep_array(0, 5); real m = 0; for (i in 1:N) { int j = 1 + c[1 + i % 5] % 5; c[j]
+= i %/% 2; if (c[j] % 3 == 0 && i > 2) m = 0.3 * m + v[1 + c[j] % 4] * b; else m += v[1 + c[2] %
4]; target += normal_lpdf(m | max(j, 2), 3) + min({j, 3}) * a + size(c) * b + abs(j - 3); }
# elements until one is large
real m = a; for (w in v) { if (w > 0.4) break; for (j in k) { m = tanh(m + 0.1 * j * w);
if (j == 3) continue; target += m; } } target += m;
# each element
real m = a; for (w in v) { m = tanh(m + w); target += m; } for (j in k) target += j * m;
""")


def compiled(body: str, **settings: Any) -> Any:
    program = vm.stan.Program(
        FUNCTIONS
        + "data { int N; vector[N] y; vector[N] x; array[N] int k; array[N] int g;"
        + " matrix[2, 3] M; }\n"
        + "parameters { real a; real b; vector[4] v; matrix[2, 2] A; vector[N] u; }\n"
        + f"model {{ {body} }}"
    )
    rng, n = np.random.default_rng(7), 24
    data = {
        "N": n, "y": rng.normal(size=n), "x": rng.normal(size=n),
        "k": rng.integers(1, 5, n).tolist(), "g": rng.integers(1, 5, n).tolist(),
        "M": 0.4 * rng.normal(size=(2, 3)),
    }  # fmt: skip
    return program.model(data, **settings)


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Loops are lowered however short they are; the list says how many were."""
    monkeypatch.setattr(loops, "TRACED", -1)
    done: list[Any] = []
    run = loops.LoopCode.run

    def counted(self: loops.LoopCode, *args: Any) -> None:
        run(self, *args)
        done.append(self.loop)

    monkeypatch.setattr(loops.LoopCode, "run", counted)
    return done


@pytest.mark.parametrize("name", BODIES)
def test_procedures_are_their_passes(name: str, lowered: list[Any]) -> None:
    model = compiled(BODIES[name])
    rng = np.random.default_rng(3)
    for _ in range(3):
        q = 0.5 * rng.normal(size=model.param_unc_num())
        as_eager(model, q, 1e-11, 1e-13)
    assert model._value_and_grad.obstacle is None
    assert lowered
    direction = rng.normal(size=q.size)
    product = model.log_density_hessian_vector_product(q, direction)[-1]
    slopes = [model.log_density_gradient(q + h * direction)[1] for h in (1e-5, -1e-5)]
    assert_allclose(product, (slopes[0] - slopes[1]) / 2e-5, rtol=1e-5, atol=1e-6)


REFUSED = programs("""
# factorisation
for (i in 1:N) { if (a > 50) break; target += determinant(A * y[i]); }
# print
for (i in 1:N) { if (a > 50) break; print(i); target += a; }
# target
for (i in 1:N) { if (a > 50) break; target += 0.1 * a * target(); }
# array of a size that changes
for (i in 1:N) { int n = 1; if (a < 0) n = 3; vector[n] w = rep_vector(a, n); if (a > 50) break;
target += sum(w); }
# unbounded array
int n = 1; for (i in 1:3) { n *= 2; vector[n] w = rep_vector(a, n); if (a > 50) break; target +=
sum(w); }
""")


@pytest.mark.parametrize("name", REFUSED)
def test_other_loops_are_run_pass_by_pass(
    name: str, lowered: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    model = compiled(REFUSED[name])
    q = 0.3 * np.random.default_rng(0).normal(size=model.param_unc_num())
    as_eager(model, q, 1e-11, 1e-13)
    assert not lowered
    capsys.readouterr()


# What a pass does, and the error.
ERRORS = {
    "index": ("target += v[c] * a;", IndexError, "index 5 of axis 1"),
    "reject": ('if (a > 0 && c > 4) reject("c is ", c); target += a;', vm.DomainError, "c is 5"),
    "domain": ("target += normal_lpdf(y[i] | c, a - 0.01 * c);", vm.DomainError,
               "normal_lpdf: Scale parameter is"),
    "sizes": ("target += sum(head(v, 3) + head(v, c > 4 ? 2 : 3)) * a;", vm.ShapeError,
              "add: the operands have shapes"),
}  # fmt: skip


def counted(body: str) -> Any:
    """A model of a loop with a counter, which is not run at once."""
    return compiled(f"int c = 1; for (i in 1:N) {{ c += 1; {body} }}")


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_the_passes(name: str, lowered: list[Any]) -> None:
    body, kind, text = ERRORS[name]
    model = counted(body)
    q = np.full(model.param_unc_num(), 0.05)
    for _ in range(2):  # before and after it is recorded
        with pytest.raises(kind, match=text):
            model.log_density_gradient(q)


def test_a_recorded_loop_that_is_refused_elsewhere_raises_there(lowered: list[Any]) -> None:
    body, kind, text = ERRORS["reject"]
    model = counted(body)
    q = np.full(model.param_unc_num(), -0.3)
    value = model.log_density_gradient(q)[0]
    assert lowered
    assert_allclose(value, -0.3 * 24 - 0.0, rtol=1e-13)
    with pytest.raises(kind, match=text):
        model.log_density_gradient(-q)
    assert model.log_density_gradient(q)[0] == value


def test_stacks_that_are_full_leave_it_to_the_passes(
    lowered: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("varmat.programs.passes.reverse.ROOM", 8)
    model = compiled(BODIES["while"])
    as_eager(model, 0.3 * np.random.default_rng(1).normal(size=model.param_unc_num()))


def loop_of(model: vm.Model) -> str:
    """What is said of the outer loop of the model block."""
    return next(each for each in model.representation().loops if "for (i in 2:N)" in each)


def test_short_loops_are_traced_and_longer_ones_for_many_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = BODIES["array of vectors"]
    assert "recorded: 23 passes" in loop_of(compiled(body))
    monkeypatch.setattr(loops, "TRACED", 100)
    model = compiled(body)
    assert loop_of(model).endswith("recorded: one loop, whose body is written once")
    q = 0.3 * np.random.default_rng(1).normal(size=model.param_unc_num())
    before = model.log_density_gradient(q)
    tracing, recorded = model._blocks.translator.tracing, model._value_and_grad
    assert 100 < sum(tracing.left_out.values()) < LONGEST
    times = iter((1.0, 2.0))
    monkeypatch.setattr("varmat.stan.stan_model._seconds", lambda *_: next(times))
    assert model.for_many_calls() is model
    assert model._value_and_grad is not recorded
    close_slopes(model.log_density_gradient(q), before, 1e-11)
    assert not tracing.left_out


def test_gradients_at_many_points_pay_for_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as calls have taken as long as it will, whatever they were for."""
    monkeypatch.setattr(loops, "TRACED", 100)
    model = compiled(BODIES["array of vectors"])
    points = 0.3 * np.random.default_rng(1).normal(size=(9, model.param_unc_num()))
    before = model.log_density_gradient.map(points)
    lowered = model._value_and_grad
    times = iter((1.0, 2.0))
    monkeypatch.setattr("varmat.stan.stan_model._seconds", lambda *_: next(times))
    model.log_density_gradient._seconds = 1e-6
    model.log_density_gradient.map(points)
    assert model._value_and_grad is lowered
    model.log_density_gradient._seconds = 1e6
    for found, expected in zip(model.log_density_gradient.map(points), before, strict=True):
        assert_allclose(found, expected, rtol=1e-11)
    assert model._value_and_grad is not lowered


def test_loops_with_arrays_of_other_sizes_are_not_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "TRACED", 5000)
    found = loop_of(compiled(BODIES["windows"]))
    assert found.endswith("recorded: one loop, whose body is written once")
    assert "recorded: 23 passes" in loop_of(compiled(BODIES["array of vectors"]))


def test_variables_inside_are_none_from_outside(lowered: list[Any]) -> None:
    """Also where an attempt to run all passes at once has declared them."""
    program = vm.stan.Program("""
        functions { vector f(real x, vector z) {
          int L = rows(z);
          for (i in 1:L) {
            array[L] int k;
            for (j in 1:L) k[j] = min(4, j);
            int w = 0; real y = tanh(x);
            while (w != 3 && y < 0.9) { w += 1; y += inv_logit(mean(z) * k[2]); }
          }
          return tanh(z);
        } }
        parameters { real a; vector[6] u; }
        model { target += f(a, u); }
    """)
    model = program.model()
    value, _ = model.log_density_gradient(np.linspace(-1.0, 1.0, 7))
    assert model._value_and_grad.obstacle is None
    assert lowered
    assert_allclose(value, np.sum(np.tanh(np.linspace(-1.0, 1.0, 7)[1:])), rtol=1e-13)


def test_loops_of_transformed_parameters_return_what_they_assign(lowered: list[Any]) -> None:
    program = vm.stan.Program("""
        data { int N; array[N] int k; }
        parameters { real a; vector[N] e; }
        transformed parameters {
          vector[N] z; matrix[N, 2] W; real m = 0; real t = 0;
          {
            int c = 0;
            for (i in 1:N) {
              c += k[i];
              m = tanh(m + a * e[1 + c % N]);
              z[i] = m;
              for (j in 1:2) W[i, j] = m * j;
            }
            t = c * a;
          }
        }
        model { z ~ normal(0, 1); target += sum(W) * t; }
    """)
    model = program.model({"N": 9, "k": [1, 2, 3] * 3})
    q = 0.3 * np.random.default_rng(1).normal(size=10)
    as_eager(model, q)
    assert len(lowered) == 1
    assert_allclose(model.constrain(q, include_tp=True)["t"], 18 * q[0])


def test_passes_that_data_split_in_a_loop_inside_are_no_arrays_of_parts() -> None:
    """Recorded, there would be steps for each part and each pass of the loop inside."""
    source = """
data { int N; int J; array[N, J] int x; }
parameters { vector[N] a; vector[N] b; }
model {
  for (i in 1:N) for (j in 1:J) {
    if (x[i, j] > 0) target += log_inv_logit(a[i]) + x[i, j] * b[i];
    else target += log_sum_exp(log_inv_logit(a[i]) - b[i], log1m_inv_logit(a[i]));
  }
}"""
    rng = np.random.default_rng(0)
    data = {"N": 20, "J": 30, "x": rng.integers(0, 3, (20, 30))}
    model = vm.stan.Program(source).model(data)
    q = rng.normal(size=40)
    for _ in range(2):
        as_eager(model, q, atol=1e-13)
    program = model._value_and_grad.program
    assert program is not None
    assert len(program.steps) < 300


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("statement", [
    "u ~ normal(0, 1);", "u ~ student_t(4, v[1], exp(u));", "v[g] ~ normal(u, 1);",
    "target += normal_lpdf(u | v[2], 1);", "target += sum(u);", "v[1] ~ normal(v[2], 1);",
    "for (k in 1:2) u ~ normal(v[k], 1);", "u[i] ~ normal(u, 1);",
])  # fmt: skip
def test_statements_that_are_the_same_in_each_pass(statement: str, n: int) -> None:
    """A branch on parameters counts them once for each pass that takes it, however many passes and
    elements there are.
    """
    code = f"""data {{ int N; vector[N] y; array[5] int g; }}
    parameters {{ vector[5] u; vector[2] v; }}
    model {{ for (i in 1:N) {{ if (y[i] > 0.1 * v[1]) {{ }} else {{ {statement} }} }} }}"""
    data = {"N": n, "y": np.linspace(-1.0, 1.0, n), "g": [1, 2, 1, 1, 2]}
    model = vm.stan.Program(code).model(data)
    for q in (np.linspace(-1.0, 1.0, 7), np.linspace(3.0, 11.0, 7)):
        as_eager(model, q, atol=1e-13, propto=False)
