"""BridgeStan's interface: values against formulas, orders against index arithmetic."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from comparing import refuses
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit, log_expit

import varmat as vm
from varmat.stan import BridgeStanModel

BERNOULLI = """
data { int<lower=0> N; array[N] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> theta; }
model { theta ~ beta(1, 1); y ~ bernoulli(theta); }
"""
DATA = {"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}
SHAPES = """
parameters {
  matrix[2, 3] m;
  array[2] vector[3] v;
  array[2] matrix<lower=0>[3, 2] p;
  simplex[3] s;
  cov_matrix[2] C;
  array[2] cholesky_factor_corr[3] L;
  tuple(real, matrix[2, 2]) t;
  array[2] tuple(vector[2], real) a;
}
transformed parameters { matrix[3, 2] r = m'; }
model { to_vector(m) ~ normal(0, 1); to_vector(p[1]) ~ exponential(1); t.1 ~ normal(0, 1); }
generated quantities { array[2, 2] real g; for (i in 1:2) g[i] = normal_rng({i, i}, 1); }
"""


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    (tmp_path / "bernoulli.stan").write_text(BERNOULLI, encoding="utf-8")
    (tmp_path / "bernoulli.data.json").write_text(json.dumps(DATA), encoding="utf-8")
    program, data = str(tmp_path / "bernoulli.stan"), tmp_path / "bernoulli.data.json"
    for given in (str(data), data, json.dumps(DATA), DATA):
        model = BridgeStanModel(program, given, seed=3)
        assert model.name() == "bernoulli_model"
        assert (model.param_num(), model.param_unc_num()) == (1, 1)
        q = np.array([0.4])
        value, gradient = model.log_density_gradient(q)
        theta = expit(0.4)
        likelihood = stats.binom.logpmf(2, 10, theta) - np.log(45.0)
        jacobian = log_expit(0.4) + log_expit(-0.4)
        assert_allclose(value, likelihood + jacobian, rtol=1e-13)
        assert model.log_density(q) == value
        assert_allclose(model.log_density(q, jacobian=False), likelihood, rtol=1e-13)
        assert_allclose(gradient, [3.0 - 12.0 * theta], rtol=1e-12)
        curvature = -12.0 * theta * (1.0 - theta)
        assert_allclose(model.log_density_hessian(q)[2], [[curvature]], rtol=1e-12)
        again, product_ = model.log_density_hessian_vector_product(q, [2.0])
        assert_allclose((again, *product_), (value, 2.0 * curvature), rtol=1e-12)
        assert_allclose(model.param_constrain(q), [theta], rtol=1e-14)
        assert_allclose(model.param_unconstrain(np.array([theta])), q, rtol=1e-13)
        assert_allclose(model.param_unconstrain_json(json.dumps({"theta": theta})), q, rtol=1e-13)
    assert BridgeStanModel.from_stan_file(program, str(data)).param_names() == ["theta"]


def by_columns(name: str, *sizes: int) -> list[str]:
    """Name elements with the first index fastest, by index arithmetic."""
    indices = sorted(product(*(range(1, n + 1) for n in sizes)), key=lambda index: index[::-1])
    return [".".join(map(str, (name, *index))) for index in indices]


def test_names_and_values_stand_by_columns() -> None:
    model = BridgeStanModel(SHAPES)
    names = model.param_names(include_tp=True, include_gq=True)
    assert names == [
        *by_columns("m", 2, 3), *by_columns("v", 2, 3), *by_columns("p", 2, 3, 2),
        *by_columns("s", 3), *by_columns("C", 2, 2), *by_columns("L", 2, 3, 3),
        "t:1", *by_columns("t:2", 2, 2), "a.1:1.1", "a.1:1.2", "a.1:2", "a.2:1.1", "a.2:1.2",
        "a.2:2", *by_columns("r", 3, 2), *by_columns("g", 2, 2),
    ]  # fmt: skip
    assert model.param_names() == names[: model.param_num()]
    q = np.random.default_rng(1).normal(size=model.param_unc_num())
    rng = model.new_rng(4)
    theta = model.param_constrain(q, include_tp=True, include_gq=True, rng=rng)
    assert len(theta) == len(names) == model.param_num(include_tp=True, include_gq=True)
    at = dict(zip(names, theta, strict=True))
    values = vm.stan.Program(SHAPES).model().constrain(q, True, True, np.random.default_rng(4))
    for name, x in values.items():
        for index in np.ndindex(*np.shape(x)):
            label = ".".join([name, *(str(i + 1) for i in index)])
            assert at[label] == np.asarray(x)[index]
    assert all(at[f"r.{j}.{i}"] == at[f"m.{i}.{j}"] for i in (1, 2) for j in (1, 2, 3))
    assert_allclose(at["C.1.2"], at["C.2.1"])
    assert at["L.1.1.2"] == 0.0 != at["L.1.2.1"]
    assert_allclose(sum(at[f"s.{i}"] for i in (1, 2, 3)), 1.0)
    back = model.param_unconstrain(theta[: model.param_num()])
    assert_allclose(back, q, rtol=1e-9, atol=1e-12)


def test_unconstrained_names_name_their_elements() -> None:
    """If the transform is elementwise, an element changes only the value of its name."""
    model = BridgeStanModel(SHAPES)
    names, known = model.param_unc_names(), model.param_names()
    assert len(names) == model.param_unc_num()
    assert names[6:12] == ["v.1.1", "v.1.2", "v.1.3", "v.2.1", "v.2.2", "v.2.3"]
    at = np.zeros(len(names))
    start = model.param_constrain(at)
    for i, name in enumerate(names):
        if name[0] in "mvpta":
            moved = model.param_constrain(np.where(np.arange(len(names)) == i, 1.0, at))
            assert [known[j] for j in np.flatnonzero(moved != start)] == [name]


def test_values_in_json() -> None:
    model = BridgeStanModel(SHAPES)
    q = np.random.default_rng(2).normal(size=model.param_unc_num())
    found = {
        k: np.asarray(x).tolist() for k, x in vm.stan.Program(SHAPES).model().constrain(q).items()
    }
    given = {name: found[name] for name in "mvpsCL"}
    given["t"] = {"1": found["t:1"], "2": found["t:2"]}
    given["a"] = [{"1": found[f"a.{i}:1"], "2": found[f"a.{i}:2"]} for i in (1, 2)]
    assert_allclose(model.param_unconstrain_json(json.dumps(given)), q, rtol=1e-9, atol=1e-12)


def test_results_go_where_the_caller_says() -> None:
    model = BridgeStanModel("parameters { vector[2] x; } model { x ~ normal(0, 1); }")
    q, out, square = np.array([1.0, 2.0]), np.empty(2), np.empty((2, 2))
    assert model.log_density_gradient(q, out=out)[1] is out
    assert_array_equal(out, [-1.0, -2.0])
    assert model.log_density_hessian(q, out_grad=out, out_hess=square)[2] is square
    assert_array_equal(square, -np.eye(2))
    assert model.param_constrain(q, out=out) is out
    assert model.param_unconstrain(q + 1.0, out=out) is out
    assert_array_equal(out, [2.0, 3.0])


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda m: m.log_density([1.0, 2.0]), vm.ShapeError,
     r"BridgeStanModel.log_density: theta_unc has shape \(2,\), but must have shape \(1,\)!"),
    (lambda m: m.log_density_hessian_vector_product([1.0], [1.0, 2.0]), vm.ShapeError,
     r"BridgeStanModel.log_density_hessian_vector_product: v has shape \(2,\), but must"),
    (lambda m: m.param_unconstrain([2.0]), RuntimeError,
     "BridgeStanModel.param_unconstrain: theta: .* is 2.0, but must be in the interval"),
    (lambda m: m.param_unconstrain_json("{}"), TypeError,
     "BridgeStanModel.param_unconstrain_json: the dict has no theta, but must have the param"),
    (lambda m: m.param_constrain([2.0], out=np.empty(3)), vm.ShapeError,
     r"BridgeStanModel.param_constrain: out has shape \(3,\), but must have shape \(1,\)!"),
    (lambda m: m.param_constrain([2.0], include_gq=True), ValueError,
     r"param_constrain: rng is None, but must be what new_rng\(seed\) returned, because"),
    (lambda m: m.new_rng(-1), vm.DomainError, "new_rng: seed is -1, but must be an integer"),
    (lambda _: BridgeStanModel("a_model.so"), TypeError,
     "model_lib is 'a_model.so', but must be the path of a Stan program, because nothing"),
])  # fmt: skip
def test_refusals(call, kind, message) -> None:
    refuses(kind, message, call, BridgeStanModel(BERNOULLI, DATA))


def test_a_point_that_the_model_rejects() -> None:
    model = BridgeStanModel('parameters { real x; } model { if (x > 0) reject("no"); }')
    assert model.log_density([-1.0]) == 0.0
    message = r"BridgeStanModel.log_density_gradient: .*no"
    refuses(RuntimeError, message, model.log_density_gradient, [1.0])


def test_a_program_without_parameters() -> None:
    model = BridgeStanModel("parameters { vector[0] x; } generated quantities { real y = 2; }")
    assert model.param_names(include_gq=True) == ["y"]
    assert model.param_constrain([], include_gq=True, rng=model.new_rng(1)) == [2.0]
    assert model.param_unconstrain([]).shape == (0,)
    nothing = BridgeStanModel("model { target += 1; }")
    assert nothing.param_constrain([]).shape == nothing.param_unconstrain([]).shape == (0,)
    assert nothing.log_density([]) == 1.0


def test_included_files(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "p.stan").write_text("parameters { real x; }\n", encoding="utf-8")
    (tmp_path / "a.stan").write_text(
        "#include p.stan\nmodel { x ~ normal(0, 1); }", encoding="utf-8"
    )
    options = [f"--include-paths={tmp_path / 'parts'}", "--O1"]
    assert BridgeStanModel(tmp_path / "a.stan", stanc_args=options).param_names() == ["x"]
