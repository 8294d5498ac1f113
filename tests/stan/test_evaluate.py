"""Statements and expressions of Stan programs, against the same written in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from comparing import close, close_slopes, equal
from numpy.testing import assert_allclose
from recordings import as_eager
from scipy import stats

import varmat as vm
from varmat.stan import evaluate, signatures
from varmat.stan.functions import library


def quantities(body: str, functions: str = "", given: Any = None, declared: str = "") -> Any:
    """What a block of generated quantities declares."""
    program = vm.stan.Program(
        f"functions {{ {functions} }} data {{ {declared} }} generated quantities {{ {body} }}"
    )
    return program.model(given).constrain(
        np.empty(0), include_gq=True, rng=np.random.default_rng(1)
    )


def log_density(body: str, q: Any, declared: str = "vector[3] x;", **settings: bool) -> Any:
    """Value and gradient of a model block, eagerly, and the same recorded."""
    model = vm.stan.Program(f"parameters {{ {declared} }} model {{ {body} }}").model()
    return as_eager(model, np.array(q, float), 1e-13, 1e-13, **settings)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("7 %/% 2", 3), ("-7 %/% 2", -3), ("-7 % 2", -1), ("7 / 2.0", 3.5), ("2 ^ 3", 8.0),
        ("1.0 / 0", math.inf), ("(-8.0) ^ 2", 64.0), ("!0 && 3 > 2 ? 1.5 : 2.5", 1.5),
        ("[1, 2] * [3, 4]'", 11.0), ("sum([1, 2]' * [3, 4])", 21.0),
        ("sum([[1, 2], [3, 4]] * [1, 1]')", 10.0), ("max({3, 1, 2})", 3), ("round(-2.5)", -3.0),
        ("sort_indices_desc({1.5, 3.5, 2.5})[3]", 1),
        ("sum(to_vector([[1, 2], [3, 4]])[2:3])", 5.0), ("rows([1, 2, 3])", 1),
        ("num_elements(rep_matrix(1.0, 2, 3))", 6), ("size({{1, 2, 3}, {4, 5, 6}})", 2),
        ("log_sum_exp(0, 0)", math.log(2)), ("to_matrix([1, 2, 3, 4]', 2, 2)[1, 2]", 3.0),
        ("append_row([1, 2], [3, 4])[2, 1]", 3.0), ("append_col([1, 2]', [3, 4]')[1, 2]", 3.0),
        ("columns_dot_product([[1, 2], [3, 4]], [[1, 1], [1, 1]])[2]", 6.0),
        ("quad_form([[2, 0], [0, 3]], [1, 1]')", 5.0), ("tail([1, 2, 3], 2)[1]", 2.0),
        ("gp_exp_quad_cov({0.0}, {0.0, 1.0}, 2, 1)[1, 2]", 4 * math.exp(-0.5)),
    ],
)  # fmt: skip
def test_expressions(expression: str, expected: float) -> None:
    found = quantities(f"real x = {expression};")["x"]
    assert_allclose(found, expected, rtol=1e-14)


def test_indices_count_from_one_and_select_an_outer_product() -> None:
    found = quantities("""
        matrix[3, 4] a = to_matrix(linspaced_vector(12, 1, 12), 3, 4);
        matrix[2, 2] b = a[{3, 1}, {2, 4}]; row_vector[4] c = a[2]; vector[2] d = a[2:, 3];
        a[{1, 3}, 2] = [-1, -3]';
        array[2] vector[2] e = {[1, 2]', [3, 4]'}; e[2, 1] = 7; e[1][2] += 10;
    """)
    a = np.arange(1.0, 13.0).reshape(4, 3).T
    assert_allclose(found["b"], a[np.ix_([2, 0], [1, 3])])
    assert_allclose(found["c"], a[1])
    assert_allclose(found["d"], a[1:, 2])
    assert_allclose(found["a"][:, 1], [-1, a[1, 1], -3])
    assert_allclose(found["e"], [[1, 12], [7, 4]])


def test_a_copy_does_not_change_with_its_source() -> None:
    found = quantities("""
        vector[2] a = [1, 2]'; vector[2] b = a;
        tuple(vector[2], real) c = (a, 1); tuple(vector[2], real) d = c;
        a[1] = 5; c.1[2] = 6; d.2 = 3;
    """)
    assert_allclose(found["b"], [1, 2])
    assert_allclose(found["c:1"], [1, 6])
    assert_allclose(found["d:1"], [1, 2])
    assert (found["c:2"], found["d:2"]) == (1, 3)


def test_loops_branches_and_recursion() -> None:
    functions = """
        int fibonacci(int n) { if (n < 2) return n; return fibonacci(n - 1) + fibonacci(n - 2); }
        real power_of(real x, int n) { real y = 1; for (i in 1:n) y *= x; return y; }
        real power_of(real x) { return power_of(x, 2); }
    """
    found = quantities(
        """
        int a = 0; int b = 0; real c = 0; int d = fibonacci(10);
        real e = power_of(3) + power_of(2, 3);
        for (i in 1:10) { if (i == 3) continue; if (i == 6) break; a += i; }
        while (b < 7) { b += 2; }
        for (x in [[1, 2], [3, 4]]) c = 10 * c + x;
        array[2] int f = {1, 2};
        for (x in f) { f[2] = 7; c += x; }
        vector[2] g = rep_vector(0, 2); row_vector[2] h = 1 - rep_row_vector(0, 2);
        matrix[1, 1] k = rep_matrix(0, 1, 1);
        g[2] = 0.5; h[1] /= 4; k[1, 1] += 0.75;
        c += g[2] + h[1] + k[1, 1];
        """,
        functions,
    )
    assert (found["a"], found["b"], found["c"], found["d"], found["e"]) == (12, 8, 1243.5, 55, 17)


@pytest.mark.parametrize("size", [3, 12])
def test_independent_loops_are_like_loops_pass_by_pass(size: int) -> None:
    body = """
        real eta = b[g[n]] + X[n] * beta;
        mu[n] = eta / 2;
        for (k in 1:2)
          target += log_mix(0.3, normal_lpdf(y[n] | mu[n], s), cauchy_lpdf(y[n] | beta[k], 2));
        if (N > 10) y[n] ~ normal(eta, s);
        if (g[n] > 1) { X[n] ~ normal(eta, s); mu[n] += g[n]; } else target += b[g[n]] * y[n];
        vector[3] parts = log(softmax(b));
        for (k in 1:3) parts[k] += normal_lpdf(y[n] | b[k], s);
        target += log_sum_exp(parts) + normal_lpdf(X[n] | mu[n], s);
        for (k in 1:2) scratch[k] = beta[k] * y[n];
        target += log_sum_exp(scratch);
        s ~ lognormal(0, 1);
        target += s * ((g[n] > 1) + (g[n] > 2) - -!(y[n] > 0) + (g[n] && g[n]) + (0 || g[n]));
        real held = mu[n]; real first = parts[1];
        mu[n] += g[n]; parts[1] = 2;
        target += held * y[n] + first * parts[1];
    """
    both_ways(size, body)


@pytest.mark.parametrize("body", [
    "real z = counted_lp(s); target += z * y[n];", "target += s * elt_divide(g[n], 2);",
    "target += y[n] * s; target += target() / N;",
    "target += sum(log_sum_exp(b * y[n], b / g[n]));",
])  # fmt: skip
def test_what_has_no_form_for_all_passes_is_run_pass_by_pass(body: str) -> None:
    both_ways(5, body)


LOOP = """
functions {{
  real counted_lp(real a) {{ target += a; return a * a; }}
  real bent(real x, real c, real a) {{
    if (x > c) return a * x; real y = a; if (x > a) {{ y += c; return y * 2; }} return y - x;
  }}
}}
data {{ int N; vector[N] y; array[N] int g; matrix[N, 2] X; }}
parameters {{ vector[3] b; vector[2] beta; real<lower=0> s; }}
model {{
  vector[N] mu = rep_vector(0, N); array[2] real scratch = {{0, 0}};
  for (n in 1:N) {{ {condition} {body} }}
  target += sum(mu) + scratch[2];
}}
"""


def both_ways(size: int, body: str) -> list[Any]:
    """Models of a loop, and of one that cannot be evaluated at once, whose gradients are equal."""
    rng = np.random.default_rng(1)
    given = {"N": size, "y": rng.normal(size=size), "g": rng.integers(1, 4, size),
             "X": rng.normal(size=(size, 2))}  # fmt: skip
    models = [
        vm.stan.Program(LOOP.format(condition=condition, body=body)).model(given)
        for condition in ("", "if (n < 1) continue;")
    ]
    q = np.linspace(-0.5, 0.6, 6)
    close(*(vm.value_and_grad(model._target)(q, False, True) for model in models), 1e-12)
    return models


def test_passes_that_are_alike_are_loops_of_a_recording() -> None:
    """The parts are of four lengths, so that the loop is run iteration by iteration."""
    program = vm.stan.Program("""
        data { int N; array[N] int k; vector[N] y; }
        parameters { vector[8] b; }
        model {
            for (n in 1:N) {
                vector[k[n]] part = segment(b, k[n], k[n]); part[1] += y[n];
                target += k[n] * log_sum_exp(part);
            }
        }
    """)
    rng = np.random.default_rng(1)
    data = {"N": 120, "k": rng.integers(1, 5, 120), "y": rng.normal(size=120)}
    target, q = program.model(data)._target, np.linspace(-1.0, 1.0, 8)
    recorded = vm.recorded(target)
    recorded(q, False, True)
    assert len(recorded.program.steps) < data["N"]
    expected = sum(
        k * vm.log_sum_exp(q[k - 1 : 2 * k - 1] + y * (np.arange(k) == 0))
        for k, y in zip(data["k"], data["y"], strict=True)
    )
    value, gradient = recorded(q, False, True)
    assert_allclose(value, expected, rtol=1e-13)
    close(gradient, vm.value_and_grad(target)(q, False, True)[1], 1e-12)


@pytest.mark.parametrize("body", [
    "acc = acc / 2 + log_sum_exp(segment(b, k[n], k[n]));",
    "target += log_sum_exp(segment(b, k[n], k[n])) - target() / 2;",
    "acc += noted_lp(segment(b, k[n], k[n]));",
])  # fmt: skip
def test_passes_that_read_earlier_ones_keep_their_order(body: str) -> None:
    program = vm.stan.Program(f"""
        functions {{
            real noted_lp(vector x) {{ target += log_sum_exp(x) - target() / 2; return 0; }}
        }}
        data {{ int N; array[N] int k; }}
        parameters {{ vector[8] b; }}
        model {{
            real acc = 0;
            for (n in 1:N) {{ {body} }}
            target += acc;
        }}
    """)
    k = np.random.default_rng(1).integers(1, 5, 40)

    def expected(b: Any) -> Any:
        total = 0.0
        for n in k:
            total = total / 2 + vm.log_sum_exp(b[n - 1 : 2 * n - 1])
        return total

    target, q = program.model({"N": len(k), "k": k})._target, np.linspace(-1.0, 1.0, 8)
    for f in (vm.value_and_grad(target), vm.recorded(target)):
        close_slopes(f(q, False, True), vm.value_and_grad(expected)(q), 1e-12)


def test_constants_are_dropped_by_tilde_alone() -> None:
    tilde, density = "x ~ normal(0, 2);", "target += normal_lpdf(x | 0, 2);"
    full = vm.normal_lpdf(np.ones(3), 0.0, 2.0)
    assert_allclose(log_density(tilde, np.ones(3))[0], -3 / 8)
    assert_allclose(log_density(tilde, np.ones(3), propto=False)[0], full)
    assert_allclose(log_density(density, np.ones(3))[0], full)


def test_truncation_divides_by_the_probability_of_the_interval() -> None:
    value, _ = log_density("x[1] ~ normal(0, 1) T[-1, 2];", [0.5, 0, 0], propto=False)
    assert_allclose(value, vm.truncated(vm.normal_lpdf, lower=-1.0, upper=2.0)(0.5, 0.0, 1.0))


def test_jacobian_counts_if_it_is_asked_for() -> None:
    program = vm.stan.Program("""
        parameters { real u; }
        transformed parameters { real x = exp(u); jacobian += u; }
        model { x ~ exponential(1); }
    """)
    model = program.model()
    assert_allclose(model.log_density_gradient(np.array([0.5]))[0], 0.5 - math.exp(0.5))
    without = model.log_density_gradient(np.array([0.5]), jacobian=False)
    assert_allclose(without[0], -math.exp(0.5))


def test_target_counts_the_jacobians_so_far() -> None:
    value, gradient = log_density("target += 2 * target();", [0.3], "real<lower=0> x;")
    assert_allclose([value, *gradient], [0.9, 3])


def test_functions_of_functions() -> None:
    functions = """
        vector decay(real t, vector y, real k) { return -k * y; }
        real partial(array[] real part, int start, int end, real s) {
          return normal_lpdf(part | start + end, s);
        }
        real bell(real x, real c, array[] real k, data array[] real x_r, data array[] int x_i) {
          return exp(-square(x) / k[1]) * x_i[1];
        }
    """
    program = vm.stan.Program(f"""functions {{ {functions} }}
        parameters {{ real<lower=0> k; }}
        model {{
          array[2] vector[1] z
            = ode_rk45_tol(decay, [1]', 0, {{1.0, 2.0}}, 1e-10, 1e-10, 10000, k);
          target += z[2, 1];
          target += reduce_sum(partial, {{0.5, 1.5}}, 1, k);
          target += integrate_1d(bell, negative_infinity(), positive_infinity(), {{k}},
                                 {{1.0}}, {{3}});
        }}""")
    found = vm.value_and_grad(program.model()._target)(np.array([0.2]), True, False)

    def expected(q: Any) -> Any:
        k = np.exp(q[0])
        ends = vm.normal_lpdf(np.array([0.5, 1.5]), 3.0, k)
        return np.exp(-2 * k) + ends + 3 * np.sqrt(np.pi * k)

    close_slopes(found, vm.value_and_grad(expected)(np.array([0.2])), 1e-7)


@pytest.mark.parametrize(("body", "kind", "message"), [
    ("x[1] ~ normal(0,\n-1);", vm.DomainError, r"Scale parameter is -1.*\(program, line 2\)"),
    ('reject("x is ", 2);', vm.DomainError, r"x is 2 \(program, line 2\)"),
    ('fatal_error("stop");', RuntimeError, r"stop \(program, line 2\)"),
    ("real y = x[4];", IndexError, r"index 4 of axis 1 is out of range.*between 1 and 3.*line 2"),
    ("vector[2] y = x;", vm.ShapeError, r"y: the value has shape \(3,\).*\(2,\).*line 2"),
    ("int n = 0; n = 1 %/% n;", vm.DomainError, "Denominator is 0.*line 2"),
    ("vector[2] y; target += sum(y + x);", vm.ShapeError, "add: the operands have shapes"),
])  # fmt: skip
def test_errors_name_the_line(body: str, kind: type[Exception], message: str) -> None:
    model = vm.stan.Program(f"parameters {{ vector[3] x; }} model {{\n{body} }}").model()
    with pytest.raises(kind, match=message):
        model.log_density(np.zeros(3))


def test_every_signature_has_an_implementation() -> None:
    for name in signatures.names():
        for signature in signatures.signatures(name):
            kinds = tuple(argument[0].type for argument in signature.arguments)
            assert callable(library(name, kinds, signature.result))


def test_quantiles_traces_and_yule_simon() -> None:
    found = quantities("""
        vector[2] a = student_t_qf([0.1, 0.7]', 3, 1, 2);
        real b = trace_dot([[1, 2, 3], [4, 5, 6]], [[1, 4], [2, 5], [3, 7]]);
        vector[2] c = [yule_simon_lpmf(3 | 1.5), yule_simon_lccdf(3 | 1.5)]';
        int d = yule_simon_rng(2);
    """)
    np.testing.assert_allclose(found["a"], stats.t(3, 1, 2).ppf([0.1, 0.7]), rtol=1e-12)
    assert found["b"] == 97.0
    yule = stats.yulesimon(1.5)
    np.testing.assert_allclose(found["c"], [yule.logpmf(3), yule.logsf(3)], rtol=1e-12)
    assert found["d"] >= 1


LAPLACE = """
functions {
  real ll(vector theta, array[] int y, real m) { return poisson_log_lpmf(y | theta + m); }
  matrix K(array[] real x, real length) { return gp_exp_quad_cov(x, 0.5, length); }
}
data { int n; array[n] int y; array[n] int at; array[n] real x; }
transformed data { vector[n] m = rep_vector(0.2, n); }
parameters { real<lower=0> length; }
model {
  target += laplace_marginal(ll, (y, 0.2), 1, K, (x, length));
  target += laplace_marginal_tol(ll, (y, 0.2), 2, K, (x, length), generate_laplace_options(n));
  y ~ laplace_marginal_poisson_log(at, m, 1, K, (x, length));
}
generated quantities {
  vector[n] theta = laplace_latent_poisson_log_rng(y, at, m, 1, K, (x, length));
}
"""


def test_laplace_approximations() -> None:
    x, y, at = np.arange(4.0), np.array([1, 0, 3, 2]), np.arange(4)
    program = vm.stan.Program(LAPLACE)
    model = program.model({"n": 4, "y": y, "at": at + 1, "x": x})

    def density(q: Any) -> Any:
        def covariance(length: Any) -> Any:
            return vm.gp_exp_quad_cov(x, 0.5, length)

        args = covariance, (np.exp(q[0]),)
        log_likelihood = vm.laplace_marginal(
            lambda theta: vm.poisson_log_lpmf(y, theta + 0.2), (), *args
        )
        built_in = vm.laplace_marginal_poisson_log_lpmf(y, at, 0.2, *args)
        return 2.0 * log_likelihood + built_in + q[0]

    q = np.array([0.3])
    found = model.log_density_gradient(q, propto=False)
    close_slopes(found, vm.value_and_grad(density)(q), 1e-8)
    assert model.constrain(q, True, True, np.random.default_rng(1))["theta"].shape == (4,)


def test_transforms_that_a_program_calls() -> None:
    found = quantities("""
        real a = lower_bound_constrain(0, 1);
        vector[3] b = simplex_constrain([0, 0]');
        vector[2] c = simplex_unconstrain(b);
    """)
    assert found["a"] == 2.0
    assert_allclose(found["b"], [1 / 3] * 3)
    assert_allclose(found["c"], [0.0, 0.0], atol=1e-15)


ON_PARAMETERS = [
    """real m = b[1]; if (y[n] > b[2]) m += s * (y[n] - b[2]); else m -= 0.1 * y[n];
    y[n] ~ normal(m, s);""",
    """real m = b[1] + b[2] * y[n];
    if (y[n] < b[3] && m > 0) target += normal_lcdf(b[3] | m, s);
    else { y[n] ~ student_t(4, m, s); target += -square(b[1]); }""",
    "y[n] ~ normal(y[n] > b[1] ? b[2] * y[n] : (y[n] < b[3] ? sqrt(1 + square(b[2])) : -b[2]), s);",
    """vector[3] w = b; if (b[g[n]] * y[n] > 0.1) { w[2] = y[n]; if (w[1] > y[n]) w[1] = -s; }
    target += log_sum_exp(w);""",
    "if (!(y[n] > b[1]) || g[n] > 2) X[n] ~ normal(b[g[n]], s); else target += s;",
    "target += bent(y[n], b[1], b[2]) * y[n];",
]


@pytest.mark.parametrize("body", ON_PARAMETERS)
def test_branches_on_parameters_are_masks_of_a_recording(body: str) -> None:
    """All passes are recorded at once; they give what they give one by one."""
    together, by_pass = both_ways(30, body)
    for q in np.random.default_rng(1).normal(size=(8, 6)) * 0.7:
        expected = vm.value_and_grad(by_pass._target)(q, False, True)
        assert np.isfinite(expected[0])
        close_slopes(together.log_density_gradient(q, propto=False), expected, 1e-11, 1e-12)
    recorder = together._value_and_grad
    assert recorder.obstacle is None
    assert not recorder.program.python_steps()
    assert len(recorder.program) < 8 * 30


def test_a_value_that_a_branch_on_parameters_does_not_choose_may_be_refused() -> None:
    """The logarithm of a negative number: then nothing is recorded."""
    body = "real m = b[1]; if (y[n] > b[2]) m = log(y[n] - b[2]); y[n] ~ normal(m, s);"
    model, _ = both_ways(30, body)
    q = np.linspace(-0.5, 0.6, 6)
    equal(model.log_density_gradient(q), vm.value_and_grad(model._target)(q, True, True))
    assert "does not choose is not finite" in str(model._value_and_grad.obstacle)


def test_print(capsys: Any) -> None:
    quantities('print("x = ", [1.5, 2], " ", 3);')
    assert capsys.readouterr().out == "x = [1.5,2] 3\n"


def test_long_sums_are_no_deep_recursion() -> None:
    terms = " + ".join(f"{i} * x" for i in range(1, 601))
    program = vm.stan.Program(f"parameters {{ real x; }} model {{ target += {terms}; }}")
    value, gradient = program.model().log_density_gradient(np.array([2.0]))
    assert (value, gradient[0]) == (601 * 600, 601 * 300)
    exec(program.to_python(), found := {})
    assert found["make_model"]({}).log_density(np.array([2.0])) == value


def test_loops_with_functions_choices_and_truncation_run_all_passes_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They give what they give iteration by iteration, which remains for what has no other form."""
    functions = """
        real shift(int k, real a, real b) {
          real r = a; if (k == 1) r += b; else if (k == 2) { r = b * b; } return r + k;
        }
        real early(int k, vector v) {
          if (k == 3) return sum(v); if (k == 2) { return v[k]; } else if (k == 4) return 1.5;
          return k > 0 ? v[1] : shift(k + 1, v[1], v[2]);
        }
        vector changed(int k, vector v) {
          vector[3] w = v; if (k > 1) w[k] = 1; for (i in 1:3) w[i] += i * v[1]; return w;
        }
        int next(int k) { if (k == 3) return 1; return k + 1; }
        real wide_lpdf(real y, real mu, real s) { return normal_lpdf(y | mu, s + 1); }
        real zero_lpmf(int n, real rate) {
          if (n == 0) return -rate; return poisson_lupmf(n | rate);
        }
        real power(int n, real a) { return n == 0 ? 1 : a * power(n - 1, a); }
        """
    loops = {
        "target += shift(k[n], m, y[n]) * early(next(k[n]) + (y[n] > 1), changed(k[n], b));": True,
        "y[n] ~ wide(m * (y[n] > 0 ? s : 1), s); k[n] - 1 ~ zero(s);": True,
        "y[n] ~ normal(m, s) T[-3, 4 + y[n]]; k[n] ~ poisson(s) T[1, ];": True,
        "{ real e = m; if (y[n] > 0.5) e += s; else if (y[n] < -1) e = b[k[n]];"
        "  target += wide_lpdf(y[n] | e, 2) + zero_lpmf(k[n] | exp(e)); }": True,
        "{ vector[3] w = b; int j = 1; if (y[n] > 0) { w[k[n]] += y[n]; j = 3; }"
        "  target += w[j] * dot_self(w); k[n] ~ categorical_logit(w); }": True,
        "k[n] ~ ordered_logistic(y[n] * m, b); target += ordered_probit_lupmf(k[n] | m, b);": True,
        "segment(x, 2 * n, 2) ~ multi_normal([m, s]', identity_matrix(2));": False,
        "target += m * power(k[n], s) * y[n];": False,
        "k ~ categorical(softmax(y[n] * b)); k ~ categorical_logit(b * y[n]);": False,
        "k ~ ordered_logistic(x[1:6] * y[n], b);": False,
        "{x[1:3]', x[4:6]', x[7:9]', x[1:3]', x[4:6]', x[7:9]'} ~ multi_normal(y[n] * b,"
        " identity_matrix(3));": False,
        "m ~ normal(0, s) T[-5 + y[n], ];": True,
        "if (k[n] == 1) y[n] ~ cauchy(m, s); else target += cauchy_lccdf(y[n] | m, s)"
        " + normal_lcdf(m | y[n], 1);": True,
        "k[n] ~ categorical(softmax(y[n] * b));"
        " b ~ multi_normal(y[n] * b, identity_matrix(3));": True,
    }
    y, k = np.array([-1.5, -0.3, 0.2, 0.7, 1.4, 2.0]), np.array([1, 3, 2, 1, 2, 3])
    data = {"y": y, "k": k, "x": np.linspace(0.0, 1.0, 14)}
    q = np.array([0.3, -0.2, 0.4, -0.5, 0.1])
    for loop, at_once in loops.items():
        found = []
        for few in (4, 100):
            monkeypatch.setattr(evaluate, "FEW", few)
            model = vm.stan.Program(
                f"functions {{ {functions} }}"
                "data { vector[6] y; array[6] int k; vector[14] x; }"
                "parameters { real m; real<lower=0> s; ordered[3] b; }"
                f"model {{ for (n in 1:6) {{ {loop} }} }}"
            ).model(data)
            found.append(vm.value_and_grad(lambda q, model=model: model._target(q, True, True))(q))
            if few == 4:
                assert (
                    "iteration by iteration" not in model.representation().loops[-1]
                ) is at_once, loop
        close_slopes(*found, 1e-12, 1e-13)


@pytest.mark.parametrize("statements", [
    "real mu = c > 0 ? 1 : 2; y ~ normal(mu, 1);",
    "real mu; real s; if (c > 0) { mu = c; s = 2; } else { mu = 2; s = 1; } y ~ normal(mu, s);",
    "real mu = 1; if (c > 0) mu = 3; target += student_t_lupdf(y | 5, mu, 1);",
    "vector[30] mu; for (t in 1:30) mu[t] = y[t] > c ? 1 : 2; y ~ normal(mu, 1);",
    "for (t in 1:30) { real mu = y[t] > c ? 1 : 2; y[t] ~ normal(mu, 1); }",
    "for (t in 1:30) { real mu = y[t] > c ? 1 : 2; target += normal_lupdf(y[t] | mu, 1); }",
    "real s = 1; for (t in 1:30) { if (s > 3 * c) s = 0.5; else s += 1; y[t] ~ normal(0, s); }",
    "vector[2] b = rep_vector(c > 0 ? 1 : 2, 2); k ~ bernoulli_logit_glm(x, 0.0, b);",
    "vector[2] m = rep_vector(c > 0 ? 1 : 2, 2); x[1] ~ multi_normal(m, identity_matrix(2));",
])  # fmt: skip
def test_terms_that_branches_on_parameters_choose_are_not_dropped(statements: str) -> None:
    """What a branch gives may be a number in a run; for Stan it is a variable."""
    rng = np.random.default_rng(3)
    x, k = rng.normal(size=(30, 2)), rng.integers(0, 2, 30).tolist()
    model: Any = vm.stan.Program(
        "data { vector[30] y; matrix[30, 2] x; array[30] int k; } parameters { real c; }"
        f"model {{ {statements} c ~ normal(0, 1); }}"
    ).model({"y": rng.normal(size=30), "x": x, "k": k})
    dropped = []
    for c in (-1.5, -0.2, 0.3, 1.1):
        q = np.array([c])
        whole = model._target(q, False, True)
        eager = vm.value_and_grad(model._target)(q, True, True)[0]
        assert_allclose(model.log_density_gradient(q)[0], eager, rtol=1e-13)
        dropped.append(whole - eager)
    assert_allclose(dropped, dropped[0], rtol=1e-12)


DRAWN = {
    # Of functions of the pass, of constants, in branches on data, of integers, in nested loops.
    "varying": ("y[i] = normal_rng(2.0 * x[i], 0.5);", lambda x: stats.norm(2.0 * x, 0.5)),
    "constant": ("y[i] = exponential_rng(3.0);", lambda x: stats.expon(scale=1 / 3 + 0 * x)),
    "a branch": (
        """if (x[i] > 0) { real m = normal_rng(0, 1); y[i] = m + x[i]; }
           else y[i] = uniform_rng(0, 1);""",
        None,
    ),
    "integers": ("k[i] = poisson_rng(exp(x[i])); y[i] = k[i];", lambda x: stats.poisson(np.exp(x))),
    "a loop inside": (
        "real u = 0; for (j in 1:4) u += normal_rng(0, 1); y[i] = u / 2 + x[i];",
        lambda x: stats.norm(x, 1.0),
    ),
    # Passes that hand something on draw one by one.
    "one by one": ("y[i] = t + normal_rng(x[i], 1); t = 0;", lambda x: stats.norm(x, 1.0)),
    "of the program": ("y[i] = shifted_rng(x[i]);", lambda x: stats.norm(x, 1.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_loops_that_draw_random_numbers(name: str) -> None:
    """Each iteration draws its own numbers, of the distribution that the program says."""
    body, expected = DRAWN[name]
    n = 5000
    x = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    found = quantities(
        f"vector[n] y; {{ array[n] int k; real t = 0; for (i in 1:n) {{ {body} }} }}",
        "real shifted_rng(real m) { return normal_rng(m, 1); }",
        {"n": n, "x": x},
        "int n; vector[n] x;",
    )["y"]
    if expected is None:
        assert stats.kstest(found[x <= 0], stats.uniform.cdf).pvalue > 1e-3
        assert stats.kstest((found - x)[x > 0], stats.norm.cdf).pvalue > 1e-3
        return
    of_place = expected(x)
    z = (found - of_place.mean()) / of_place.std()
    assert abs(np.mean(z)) < 4.0 / np.sqrt(n)
    assert np.std(z) == pytest.approx(1.0, abs=0.05)
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 4.0 / np.sqrt(n)


def test_generators_are_called_once_for_all_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    draw = type(vm.normal_rng).__call__
    monkeypatch.setattr(
        type(vm.normal_rng),
        "__call__",
        lambda self, *args, **named: sizes.append(named.get("size")) or draw(self, *args, **named),
    )
    quantities("vector[50] y; for (i in 1:50) y[i] = normal_rng(i, 1);")
    assert sizes == [50]
