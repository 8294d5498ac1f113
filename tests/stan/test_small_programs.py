"""Small programs of the kinds that packages have: sizes, branches, generators, includes and
truncated functions, in the model and as Python.
"""

from __future__ import annotations

import numpy as np
import pytest
from comparing import close

import varmat as vm
from varmat.stan.errors import StanSemanticError

Program = vm.stan.Program


def translated(program, data):
    scope: dict = {}
    exec(program.to_python(), scope)
    return scope["make_model"](data)


def assert_same(source, data):
    program = Program(source)
    model = program.model(data)
    written = translated(program, data)
    size = model.param_unc_num()
    assert type(size) is int
    assert written.param_unc_num() == size
    q = np.linspace(0.1, 0.4, size)
    close(*(each.log_density_gradient(q, propto=False) for each in (model, written)), 1e-12)
    named = [each.constrain(q, True, True, np.random.default_rng(0)) for each in (model, written)]
    for x, y in zip(*(each.values() for each in named), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


SIZED = (
    "data {{ int N; array[N] int k; }} transformed data {{ int n = {}; }} "
    "parameters {{ vector<lower=0>[n] x; real a; }} model {{ x ~ gamma(1, 1); a ~ normal(0, 1); }}"
)


@pytest.mark.parametrize("k", [[], [1, 0, 1], [2.0, 1.0]])
@pytest.mark.parametrize(
    "size",
    ["sum(k)", "sum(k[2:1])", "prod(k)", "sum(k) * 2 - sum(k)", "N > 0 ? max(k) : 0",
     "choose(N, 2)", "sum(rep_array(1, N))", "N %/% 2", "abs(-N)"],
)  # fmt: skip
def test_sizes_are_integers(size, k):
    assert_same(SIZED.format(size), {"N": len(k), "k": k})


def test_results_that_are_integers():
    source = "functions {{ {} f({} k) {{ return {}(k); }} }}"
    for function, kind in (("prod", "int"), ("sum", "int"), ("sort_asc", "array[] int")):
        call = Program(source.format(kind, "array[] int", function)).functions.f
        found = call(np.array([3, 1, 2]))
        assert np.asarray(found).dtype == np.int64
        assert type(found) is (int if kind == "int" else np.ndarray)


BRANCHES = {
    "a branch": ("real s; if (J > 1) s = 2 * a; a ~ normal(0, 1); target += is_nan(s) ? 1.0 : s;",
        ""),
    "two branches": ("real s; if (J > 1) s = 2 * a; else s = a; a ~ normal(s, 1);", ""),
    "a loop": ("real s; for (j in 2:J) s = j * a; a ~ normal(0, 1); if (J > 1) target += s;", ""),
    "a while": (
        "real s; int k = 1; while (k < J) { s = a; k += 1; } a ~ normal(is_nan(s) ? 0 : 1, 1);",
        ""),
    "integers": ("int s; if (J > 1) s = 2; a ~ normal(s < 0 ? 1 : s, 1);", ""),
    "a sum": ("real s; s += a; a ~ normal(is_nan(s) ? 1 : 0, 1);", ""),
    "containers": ("a ~ normal(0, 1);",
        ("generated quantities { real s; vector[2] v; matrix[2, 3] m; array[2] int k; array[2] "
         "real w; if (J > 1) { s = a; v = [a, a]'; m = rep_matrix(a, 2, 3); k = {1, 2}; w = "
         "{a, 2 * a}; } else k = {3, 4}; }")),
}  # fmt: skip


@pytest.mark.parametrize("J", [1, 3])
@pytest.mark.parametrize("name", BRANCHES)
def test_variables_that_some_branches_assign(name, J):
    model, more = BRANCHES[name]
    source = f"data {{ int J; }} parameters {{ real a; }} model {{ {model} }} {more}"
    assert_same(source, {"J": J})


@pytest.mark.parametrize("J", [-1, 0, 1])
def test_functions_that_assign_in_branches(J):
    source = (
        "functions { real f(real x, int j) { real y; if (j > 0) y = x; else if (j < 0) y = -x; "
        "if (j == 0) return x; return y; } } data { int J; } parameters { real a; } "
        "model { target += -a^2 + f(a, J); }"
    )
    assert_same(source, {"J": J})


@pytest.mark.parametrize("data", [
    "real s = normal_rng(0, 1); vector[3] v; for (i in 1:3) v[i] = gamma_rng(2, 1);",
    "real s = f_rng(2.0); vector[2] v = [f_rng(1), f_rng(1)]';",
    "int s = poisson_rng(3); vector[s] v = rep_vector(1, s);",
])  # fmt: skip
def test_random_numbers_in_transformed_data(data):
    source = (
        "functions { real f_rng(real m) { return normal_rng(m, 1); } } "
        f"transformed data {{ {data} }} parameters {{ real a; }} "
        "model { a ~ normal(s + sum(v), 1); } generated quantities { real z = f_rng(a); }"
    )
    assert_same(source, {})


def test_a_parameter_named_rng():
    assert_same("parameters { real rng; } model { rng ~ normal(0, 1); }", {})
    model = Program(
        "parameters { real rng; } model { } generated quantities { real z = rng; }"
    ).model()
    assert model.constrain([0.5], include_gq=True) == {"rng": 0.5, "z": 0.5}


def test_includes_of_packages(tmp_path):
    (tmp_path / "functions" / "deep").mkdir(parents=True)
    (tmp_path / "functions" / "one.stan").write_text("#include deep/two.stan\n", encoding="utf-8")
    (tmp_path / "functions" / "deep" / "two.stan").write_text(
        "real two(real x) { return 2 * x; }\n", encoding="utf-8"
    )
    for written in ("/functions/one.stan", '"functions/one.stan"', "<functions/one.stan>"):
        path = tmp_path / "program.stan"
        path.write_text(
            f"functions {{\n#include {written}\n}}\nparameters {{ real a; }} "
            "model { target += -two(a)^2; }",
            encoding="utf-8",
        )
        assert Program(path).model().log_density([1.5]) == -9.0
    with pytest.raises(vm.stan.StanError, match=r"There is no file `/functions/three.stan` in"):
        Program("functions {\n#include /functions/three.stan\n}", [tmp_path])


OWN = """functions {
  real my_lpdf(real y, real m) { return normal_lpdf(y | m, 1); }
  real my_lcdf(real y, real m) { return normal_lcdf(y | m, 1); }
  real my_lccdf(real y, real m) { return normal_lccdf(y | m, 1); }
  real all_lpdf(vector y, real m) { return normal_lpdf(y | m, 1); }
  real all_lcdf(real y, real m) { return normal_lcdf(y | m, 1); }
  real all_lccdf(real y, real m) { return normal_lccdf(y | m, 1); }
  real ks_lpmf(int y, real m) { return poisson_lpmf(y | exp(m)); }
  real ks_lcdf(int y, real m) { return poisson_lcdf(y | exp(m)); }
  real ks_lccdf(int y, real m) { return poisson_lccdf(y | exp(m)); }
}
data { real y; int k; vector[2] v; } parameters { real m; } model { STATEMENT }"""


@pytest.mark.parametrize("ends", ["T[0, ]", "T[ , 3]", "T[0, 3]", "T[1, ]", "T[m - 9, m + 9]"])
@pytest.mark.parametrize(
    ("own", "known"),
    [("y ~ my(m)", "y ~ normal(m, 1)"), ("v ~ all(m)", "v ~ normal(m, 1)"),
     ("for (i in 1:2) v[i] ~ my(m)", "for (i in 1:2) v[i] ~ normal(m, 1)")],
)  # fmt: skip
def test_functions_that_are_truncated(own, known, ends):
    data = {"y": 0.7, "k": 2, "v": [0.8, 2.1]}
    program, same = (Program(OWN.replace("STATEMENT", f"{s} {ends};")) for s in (own, known))
    expected = same.model(data).log_density_gradient([0.3], propto=False)
    for model in (program.model(data), translated(program, data)):
        if not np.isfinite(expected[0]):
            assert model.log_density([0.3], propto=False) == -np.inf
            continue
        value, gradient = model.log_density_gradient([0.3], propto=False)
        close(value, expected[0], 1e-12)
        close(gradient, expected[1], 1e-9)


@pytest.mark.parametrize("ends", ["T[1, ]", "T[ , 4]", "T[1, 4]", "T[2, 2]", "T[3, ]"])
def test_masses_that_are_truncated(ends):
    data = {"y": 0.7, "k": 2, "v": [0.8, 2.1]}
    program, same = (
        Program(OWN.replace("STATEMENT", f"k ~ {s} {ends};")) for s in ("ks(m)", "poisson(exp(m))")
    )
    expected = same.model(data).log_density([0.3], propto=False)
    for model in (program.model(data), translated(program, data)):
        close(model.log_density([0.3], propto=False), expected, 1e-9, 1e-12)


EMPTY = ["cov_matrix[n]", "corr_matrix[n]", "cholesky_factor_corr[n]", "cholesky_factor_cov[n]",
         "cholesky_factor_cov[n + 2, n]", "array[2] cov_matrix[n]", "ordered[n]"]  # fmt: skip


@pytest.mark.parametrize("kind", EMPTY)
def test_matrices_of_size_zero(kind):
    array, _, kind = kind.rpartition("] ") if kind.startswith("array") else ("", "", kind)
    declared = f"{array}] {kind} x;" if array else f"{kind} x;"
    source = f"data {{ int n; }} parameters {{ real a; {declared} }} model {{ a ~ normal(0, 1); }}"
    assert_same(source, {"n": 0})
    model = Program(source).model({"n": 0})
    assert model.param_unc_num() == 1
    assert np.size(model.constrain([0.5])["x"]) == 0
    np.testing.assert_array_equal(model.param_unconstrain(model.constrain([0.5])), [0.5])


@pytest.mark.parametrize(("source", "error", "text"), [
    ("parameters { complex a; }", TypeError,
     ("parameters: a parameter is declared as complex, but must be real: declare its real and "
      "imaginary parts, and join them by to_complex!")),
    ("parameters { array[2] complex_vector[3] a; }", TypeError,
     "parameters: a parameter is declared as complex_vector, but must be real"),
    ("parameters { real a; } model { real t = t + a; }", StanSemanticError,
     "program, line 1, column 41: There is no `t`."),
    ("functions { real f(real x) { real y = y + x; return y; } }", StanSemanticError,
     "There is no `y`."),
    ("parameters { simplex[0] p; }", vm.DomainError,
     "parameters: a size of a simplex is 0, but must be at least 1!"),
    ("parameters { sum_to_zero_matrix[2, 0] p; }", vm.DomainError,
     "parameters: a size of a sum_to_zero_matrix is 0, but must be at least 1!"),
])  # fmt: skip
def test_what_is_refused(source, error, text):
    with pytest.raises(error) as caught:
        Program(source).model()
    assert text in str(caught.value)
