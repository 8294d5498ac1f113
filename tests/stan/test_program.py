"""Programs with data: data in all forms, models, functions from Python."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close, close_slopes, refuses
from numpy.testing import assert_allclose

import varmat as vm
from varmat.stan import syntax as s
from varmat.stan.data import from_dump

SCHOOLS = """
data { int<lower=0> J; vector[J] y; vector<lower=0>[J] sigma; }
parameters { real mu; real<lower=0> tau; vector[J] eta; }
transformed parameters { vector[J] theta = mu + tau * eta; }
model { mu ~ normal(0, 5); tau ~ cauchy(0, 5); eta ~ std_normal(); y ~ normal(theta, sigma); }
generated quantities {
  array[J] real again = normal_rng(theta, sigma);
  int n = categorical_rng([0, 1]');
}
"""
DATA = {"J": 3, "y": [28, 8, -3.0], "sigma": [15.0, 10.0, 16.0]}


def known(q: np.ndarray) -> Any:
    def log_density(mu: Any, tau: Any, eta: Any) -> Any:
        y, sigma = np.array(DATA["y"]), np.array(DATA["sigma"])
        return (
            vm.normal_lpdf(mu, 0.0, 5.0) + vm.cauchy_lpdf(tau, 0.0, 5.0)
            + vm.std_normal_lpdf(eta) + vm.normal_lpdf(y, mu + tau * eta, sigma)
        )  # fmt: skip

    model = vm.Model(log_density, mu=vm.real(), tau=vm.positive(), eta=vm.real(3))
    return model.log_density_gradient(q)


def test_a_model_is_an_ordinary_one() -> None:
    model = vm.stan.Program(SCHOOLS).model(DATA)
    assert isinstance(model, vm.Model)
    assert model.param_names() == ["mu", "tau", "eta.1", "eta.2", "eta.3"]
    q = np.linspace(-0.4, 0.5, 5)
    value, gradient = known(q)
    close_slopes(model.log_density_gradient(q, propto=False), (value, gradient), 1e-12)
    values, gradients = model.log_density_gradient.map(np.stack([q] * 9), propto=False)
    assert_allclose(values, value)
    assert_allclose(gradients[4], gradient)
    found = model.constrain(q, True, True, np.random.default_rng(1))
    assert_allclose(found["theta"], found["mu"] + found["tau"] * found["eta"])
    assert found["again"].shape == (3,)
    assert found["n"] == 2
    hessian, step = model.log_density_hessian(q, propto=False)[2], 1e-4 * np.eye(5)[0]
    ends = [model.log_density_gradient(q + each, propto=False)[1] for each in (step, -step)]
    assert_allclose(hessian[0], (ends[0] - ends[1]) / 2e-4, rtol=1e-6, atol=1e-8)


def test_data_in_all_forms(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    program = vm.stan.Program("""
        data { int N; array[N] int k; vector[N] y; array[2, 2] real m; tuple(int, real) t; }
        generated quantities { real x = sum(k) + sum(y) + m[1, 2] + t.2; }
    """)
    expected = 3 + 3.5 + 2 + 0.5
    given = {"N": 2, "k": [1, 2], "y": [1, 2.5], "m": [[1, 2], [3, 4]], "t": (1, 0.5)}
    table = pandas.DataFrame({"k": [1, 2], "y": [1, 2.5]})
    tables = {"N": len(table), "k": table["k"], "y": table["y"], "m": np.array(given["m"]),
              "t": given["t"]}  # fmt: skip
    (tmp_path / "a.json").write_text(
        json.dumps(given | {"t": {"1": 1, "2": 0.5}}), encoding="utf-8"
    )
    for data in (given, tables, tmp_path / "a.json", str(tmp_path / "a.json")):
        assert program.model(data).constrain(np.empty(0), include_gq=True)["x"] == expected
    small = vm.stan.Program("data { array[2] int k; } generated quantities { int s = sum(k); }")
    assert small.model(table).constrain(np.empty(0), include_gq=True)["s"] == 3
    (tmp_path / "a.R").write_text("k <- c(1L, 5L)\n", encoding="utf-8")
    assert small.model(tmp_path / "a.R").constrain(np.empty(0), include_gq=True)["s"] == 6


def test_the_dump_format() -> None:
    found = dict(
        from_dump("""
        N <- 3 # a comment
        'x' <- c(1, -2.5,
                 Inf)
        "m" = structure(c(1, 2, 3, 4, 5, 6), .Dim = c(2L, 3L))
        r <- 3:1; empty <- integer(0)
    """)
    )
    assert found["N"] == 3
    assert found["x"].tolist() == [1, -2.5, np.inf]
    assert found["m"].tolist() == [[1, 3, 5], [2, 4, 6]]
    assert found["r"].tolist() == [3, 2, 1]
    assert found["empty"].shape == (0,)


@pytest.mark.parametrize(("changed", "kind", "message"), [
    ({"y": None}, TypeError, r"data: y is missing, but must be given: data \{.*"),
    ({"y": [1.0, 2.0]}, vm.ShapeError, r"data: y has shape \(2,\), but must have shape \(3,\)"),
    ({"J": 2.5}, TypeError, "data: J contains 2.5, but must hold integers"),
    ({"J": -1}, vm.DomainError, "data: J is -1, but must be greater than or equal to 0"),
    ({"sigma": [1, 2, -3]}, vm.DomainError, r"data: sigma\[3\] is -3.0, but must be greater"),
    ({"y": "text"}, TypeError, "data: y is 'text', but must be numbers"),
    ({"y": [[1], [2, 3]]}, TypeError, "data: y is .* but must be numbers"),
])  # fmt: skip
def test_data_are_checked(changed: Any, kind: type[Exception], message: str) -> None:
    given = {name: x for name, x in (DATA | changed).items() if x is not None}
    refuses(kind, message, vm.stan.Program(SCHOOLS).model, given)


def test_functions_are_called_from_python() -> None:
    functions = vm.stan.Program("""functions {
        real f(vector x, int n) { return n * sum(square(x)); }
        real f(real x) { return x^3; }
        void add_lp(real x) { x ~ normal(0, 1); }
        real draw_rng(real x) { return normal_rng(x, 1); }
    }""").functions
    assert functions.f(np.array([1.0, 2.0]), 3) == 15.0
    assert_allclose(vm.gradient(lambda x: functions.f(x, 3), np.array([1.0, 2.0])), [6.0, 12.0])
    assert vm.gradient(functions.f, 2.0) == 12.0
    assert_allclose(functions.add_lp(2.0), vm.normal_lpdf(2.0, 0.0, 1.0))
    assert functions.draw_rng(1.0, rng=1) == functions.draw_rng(1.0, rng=1)
    assert dir(functions) == ["add_lp", "draw_rng", "f"]
    with pytest.raises(AttributeError, match="has no function 'g': it has add_lp, draw_rng, f"):
        functions.g  # noqa: B018
    message = "f: no overload takes these arguments: it takes 2"
    refuses(TypeError, message, functions.f, [[1.0]])


def test_words_of_python_are_names_like_others() -> None:
    program = vm.stan.Program("""
        data { real lambda; real self; real t_value; }
        parameters { real def; real<lower=def> None; }
        model { def ~ normal(lambda, 1); None ~ normal(self * t_value, 1); }
    """)
    model = program.model({"lambda": 1, "self": 1, "t_value": 2})
    assert_allclose(model.log_density(np.zeros(2), jacobian=False), -1.0)


def test_a_comparison_of_parameters_is_evaluated_at_each_point() -> None:
    model = vm.stan.Program("""
        parameters { real x; }
        model { if (x > 0) target += -x; else target += 2 * x; }
    """).model()
    assert model.log_density_gradient(np.array([2.0])) == (-2.0, [-1.0])
    assert model.log_density_gradient(np.array([-2.0])) == (-4.0, [2.0])
    # They are integers: two that hold are 2, also in a recording.
    model = vm.stan.Program(
        "parameters { real x; } model { target += x * ((x > 0) + (x < 3) + (x > 1)); }"
    ).model()
    for x, slope in ((2.0, 3.0), (0.5, 2.0), (4.0, 2.0)):
        assert model.log_density_gradient(np.array([x])) == (slope * x, [slope])


def test_programs_are_pickled_by_their_source() -> None:
    program = pickle.loads(pickle.dumps(vm.stan.Program(SCHOOLS)))
    assert repr(program) == "<varmat.stan.Program with the parameters mu, tau, eta>"
    assert program.model(DATA).param_unc_num() == 5


REPRESENTED = """
functions {
  vector walk(vector e, real a) {
    vector[rows(e)] x;
    x[1] = e[1];
    for (t in 2:rows(e)) x[t] = a * x[t - 1] + e[t];
    return x;
  }
}
data { int T; array[T] int g; vector[T] y; }
parameters { real<lower=0> a; vector[T] e; matrix[T, 2] m; vector[3] b; }
transformed parameters {
  vector[T] s;
  s[1] = a;
  for (t in 2:T) s[t] = sqrt(a + 0.2 * square(y[t - 1]) + 0.3 * s[t - 1]^2) + m[t, 1];
  s[2] += 1;
}
model {
  vector[T] x = walk(e, a);
  vector[T] z;
  for (t in 1:T) {
    z[t] = b[g[t]] * x[t];
  }
  z[1:2] = z[{2, 1}];
  for (t in 2:T) {
    row_vector[2] r = m[t];
    z[t] -= r[2] * z[t - 1] + sum(b);
  }
  y ~ normal(z, exp(s));
  to_vector(m) ~ normal(0, 2);
  b ~ normal(z[1], 1);
}
"""


def test_varmats_and_matvars_give_the_same_numbers() -> None:
    program = vm.stan.Program(REPRESENTED)
    data = {"T": 6, "g": [1, 2, 3, 3, 2, 1], "y": np.linspace(-1, 1, 6)}
    q = np.random.default_rng(1).uniform(-0.5, 0.5, 22)
    forms: list[Any] = [None, "varmat", "matvar", {"e": "matvar", "walk.x": "varmat"}]
    models = [program.model(data, representation=form) for form in forms]
    found = [vm.value_and_grad(model._target)(q, True, True) for model in models]
    found.append(models[2].log_density_gradient(q))
    for each in found:
        close_slopes(each, found[1], 1e-13, 1e-13)
    ours, known = models[2].constrain(q, True), models[1].constrain(q, True)
    assert_allclose(ours["s"], known["s"], rtol=1e-14)


def test_representations_are_explained() -> None:
    found = vm.stan.Program(REPRESENTED).representation()
    forms = {name: form for name, (form, _) in found.variables.items()}
    assert forms == {
        "T": "data", "g": "data", "y": "data", "a": "scalar", "e": "varmat", "m": "varmat",
        "b": "varmat", "s": "matvar", "x": "varmat", "z": "matvar", "r": "varmat",
        "walk.x": "matvar",
    }  # fmt: skip
    assert found.variables["s"].reason == (
        "the loop of line 15 takes its elements; 1 conversions outside of loops"
    )
    assert (
        found.variables["b"].reason
        == "no loop that is run iteration by iteration takes its elements"
    )
    assert found.loops[1].endswith(
        "  iteration by iteration: an iteration reads `s`, to which others assign (line 15)\n"
        "  recorded: one loop, whose body is written once"
    )
    assert found.loops[2].endswith("all passes at once")
    forced = vm.stan.Program(REPRESENTED).representation({"s": "varmat"})
    assert forced.variables["s"].form == "varmat"
    assert forced.variables["s"].reason.startswith("forced; chosen: matvar, the loop")


def test_a_model_says_what_its_recording_makes_of_loops() -> None:
    walk = vm.stan.Program("""
        functions {
          real decay(vector e, real a) {
            real s = 0;
            for (i in 2:num_elements(e)) s = a * s + e[i];
            return s;
          }
        }
        data { int T; int K; }
        parameters { real a; vector[T] e; vector[K] m; }
        model {
          vector[T] x;
          vector[K] z;
          x[1] = e[1];
          for (t in 2:T) x[t] = a * x[t - 1] + e[t];
          z[1] = m[1];
          for (k in 2:K) z[k] = m[k] * z[k - 1];
          for (t in 1:T) e[t] ~ normal(0, 1);
          target += decay(e, a);
          x ~ normal(sum(z), 1);
        }
    """)
    data = {"T": 100, "K": 5}
    inside, rolled, single, together = walk.model(data).representation().loops
    assert inside.endswith("recorded: one loop, whose body is written once")
    assert "an iteration reads `x`, to which others assign (line 15)" in rolled
    assert rolled.endswith("recorded: one loop, whose body is written once")
    assert single.endswith("4 passes, one by one: a loop takes 16 equal ones in sequence")
    assert together.endswith("all passes at once")
    forced = walk.model(data, representation="varmat").representation()
    assert forced.variables["x"].reason.startswith("forced; chosen: matvar")
    empty = vm.stan.Program("""
        data { int T; }
        parameters { real a; }
        model { vector[3] x = rep_vector(a, 3); for (t in 5:T) x[1] = a * x[1]; x ~ normal(0, 1); }
    """)
    (loop,) = empty.model({"T": 2}).representation().loops
    assert loop.endswith("recorded: 0 passes, no operations on parameters")
    branch = vm.stan.Program("""
        parameters { real a; }
        model {
          real s = 0;
          for (i in 1:20) { s += determinant([[a]]); if (s > 3) break; }
          target += s;
        }
    """)
    (loop,) = branch.model().representation().loops
    assert "not recorded: " in loop


@pytest.mark.parametrize(("forced", "message"), [
    ({"y": "matvar"}, "representation: 'y' has no choice of forms, but e, m, b, s"),
    ({"s": "soa"}, "representation: 'soa' is not a form, but must be varmat or matvar!"),
    ("aos", "representation: 'aos' is not a form"),
])  # fmt: skip
def test_representations_that_cannot_be_forced(forced: Any, message: str) -> None:
    model = vm.stan.Program(REPRESENTED).model
    refuses(ValueError, message, model, {}, representation=forced)


def test_variables_of_one_name_are_told_apart() -> None:
    """Scopes that have ended leave their names to others; variables of blocks keep theirs."""
    program = vm.stan.Program("""
      functions {
        real f(real x) { real z = 0; for (j in 1:2) { real y = j; z += x * y; } return z; }
      }
      data { int N; array[N] int n; }
      parameters { real mu; }
      transformed parameters { real s = 0; for (j in 1:N) s += f(mu) / j; }
      model {
        for (i in 1:N) for (j in 1:n[i]) target += mu * j;
        for (i in 1:N) { real t = i * mu; for (j in 1:3) target += t * j; }
        { real t = 2; real z = mu; target += f(t) * z * s; }
      }
      generated quantities { real t = mu; real j = 2; { real z = t; j += z; } }
    """)
    names = [node.name for node in s.walk([program.tree.transformed_parameters, program.tree.model])
             if isinstance(node, s.For | s.Declaration)]  # fmt: skip
    assert names == ["s", "j'", "i", "j''", "i'", "t'", "j'''", "t''", "z"]
    assert [d.name for d in program.tree.generated_quantities[:2]] == ["t", "j"]
    assert "'" not in program.to_python()
    model = program.model({"N": 4, "n": [3, 0, 2, 1]})
    mu = 0.3
    s_ = 3 * mu * sum(1 / j for j in range(1, 5))
    expected = mu * (6 + 3 + 1) + 6 * mu * 10 + 6 * mu * s_
    close(model.log_density(np.array([mu])), expected, 1e-13)
