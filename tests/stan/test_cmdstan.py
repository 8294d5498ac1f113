"""CmdStanPy's interface: the scripts of its documentation, and posteriors with closed forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import refuses
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import varmat as vm
from varmat.stan import CmdStanModel
from varmat.stan.cmdstan_fits import CmdStanMCMC

pytest.importorskip("nutpie")
pd = pytest.importorskip("pandas")

PROGRAMS = {
    "bernoulli": """
data { int<lower=0> N; array[N] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> theta; }
model { theta ~ beta(1, 1); y ~ bernoulli(theta); }
""",
    "replicates": """
data { int<lower=0> N; array[N] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> theta; }
model { theta ~ beta(1, 1); y ~ bernoulli(theta); }
generated quantities { array[N] int y_rep = bernoulli_rng(rep_vector(theta, N)); }
""",
    "matrices": """
parameters { matrix[2, 3] m; tuple(real, vector[2]) t; vector[0] none; real<lower=0> s; }
transformed parameters { matrix[3, 2] r = m'; }
model { to_vector(m) ~ normal(to_vector([[11, 12, 13], [21, 22, 23]]), 0.1);
  t.1 ~ normal(0, 1); t.2 ~ normal(0, 1); s ~ exponential(1); }
""",
    "fixed": "generated quantities { real x = normal_rng(3, 1); }",
}
DATA = {"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}
QUIET: dict[str, Any] = {"show_progress": False, "seed": 20}
# Two successes in ten.
POSTERIOR = stats.beta(3, 9)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, CmdStanModel]:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        (folder / f"{name}.stan").write_text(text, encoding="utf-8")
    (folder / "bernoulli.data.json").write_text(json.dumps(DATA), encoding="utf-8")
    return {name: CmdStanModel(stan_file=folder / f"{name}.stan") for name in PROGRAMS}


@pytest.fixture(scope="module")
def fit(models) -> CmdStanMCMC:
    return models["bernoulli"].sample(data=DATA, save_warmup=True, iter_warmup=500, **QUIET)


def test_the_model(models) -> None:
    model = models["bernoulli"]
    assert model.name == "bernoulli"
    assert model.code() == PROGRAMS["bernoulli"]
    model.compile(force=True)
    named = CmdStanModel("b", stan_file=model.stan_file, cpp_options={"STAN_THREADS": True})
    assert named.name == "b"


def test_draws_of_the_posterior(fit) -> None:
    assert abs(fit.theta.mean() - POSTERIOR.mean()) < 4.0 * fit.summary().loc["theta", "MCSE"]
    assert (fit.chains, fit.chain_ids) == (4, [1, 2, 3, 4])
    assert (fit.num_draws_sampling, fit.num_draws_warmup, fit.thin) == (1000, 500, 1)
    assert fit.column_names == (
        "lp__", "accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__",
        "energy__", "theta",
    )  # fmt: skip
    assert fit.draws().shape == (1000, 4, 8)
    assert fit.draws(inc_warmup=True).shape == (1500, 4, 8)
    assert_array_equal(fit.draws(inc_warmup=True)[500:], fit.draws())
    joined = fit.draws(concat_chains=True)
    assert_array_equal(joined[1000:2000], fit.draws()[:, 1])
    assert_array_equal(fit.stan_variable("theta"), joined[:, 7])
    assert fit.stan_variable("theta", inc_warmup=True).shape == (6000,)
    assert [*fit.stan_variables()] == ["theta"]
    lp, theta = joined[:, 0], joined[:, 7]
    assert_allclose(lp, 3.0 * np.log(theta) + 9.0 * np.log1p(-theta), rtol=1e-10)
    assert fit.method_variables()["lp__"].shape == (1000, 4)
    assert_array_equal(fit.divergences, np.zeros(4))
    assert_array_equal(fit.max_treedepths, np.zeros(4))
    assert_array_equal(fit.step_size, fit.draws()[-1, :, 2])
    assert fit.metadata.cmdstan_config["iter_sampling"] == 1000
    assert fit.metadata.stan_vars == {"theta": ()}


def test_tables(fit) -> None:
    table = fit.draws_pd()
    assert [*table.columns] == ["chain__", "iter__", "draw__", *fit.column_names]
    assert [*table.loc[1500, ["chain__", "iter__", "draw__"]]] == [2, 501, 1501]
    assert [*fit.draws_pd(vars=["theta", "chain__"]).columns] == ["theta", "chain__"]
    assert len(fit.draws_pd("theta", inc_warmup=True)) == 6000
    data = fit.draws_xr("theta", inc_warmup=True)
    assert dict(data.sizes) == {"chain": 4, "draw": 1500}
    assert_array_equal(fit.draws_xr().theta.values, fit.draws()[:, :, 7].T)
    assert_array_equal(data.chain, [1, 2, 3, 4])


def test_the_summary(fit) -> None:
    table = fit.summary(percentiles=(10, 90), sig_figs=3)
    assert [*table.columns] == [
        "Mean", "MCSE", "StdDev", "MAD", "10%", "90%", "ESS_bulk", "ESS_tail", "R_hat",
    ]  # fmt: skip
    assert [*table.index] == ["lp__", "theta"]
    row, theta = table.loc["theta"], fit.theta
    assert_allclose(row["Mean"], theta.mean())
    assert_allclose(row["StdDev"], theta.std(ddof=1))
    assert_allclose(row["10%"], np.quantile(theta, 0.1))
    assert_allclose(row["MAD"], stats.median_abs_deviation(theta, scale="normal"), rtol=1e-4)
    assert_allclose(row["MCSE"], row["StdDev"] / np.sqrt(row["ESS_bulk"]), rtol=0.1)
    assert fit.diagnose() == "No problems detected."
    message = r"summary: percentiles is \(95, 5\), but must be incr"
    refuses(ValueError, message, fit.summary, percentiles=(95, 5))


def test_errors_of_means_are_those_of_arviz(fit) -> None:
    arviz = pytest.importorskip("arviz")
    if int(arviz.__version__.split(".")[0]):
        pytest.skip("the function has another name")
    expected = float(arviz.mcse(fit.theta.reshape(4, 1000)))
    assert_allclose(fit.summary().loc["theta", "MCSE"], expected, rtol=1e-6)


def test_problems_have_the_names_of_the_arguments(models) -> None:
    with pytest.warns(vm.SamplingWarning):
        short = models["matrices"].sample(iter_sampling=50, chains=2, max_treedepth=1, **QUIET)
    assert "ended at max_treedepth" in short.diagnose()
    assert "effective draws" in short.diagnose()
    assert short.max_treedepths.sum() > 0


def test_elements_stand_by_columns(models) -> None:
    found = models["matrices"].sample(iter_sampling=400, **QUIET)
    columns = [name for name in found.column_names if not name.endswith("__")]
    assert columns == [
        "m[1,1]", "m[2,1]", "m[1,2]", "m[2,2]", "m[1,3]", "m[2,3]", "t.1", "t.2[1]", "t.2[2]", "s",
        "r[1,1]", "r[2,1]", "r[3,1]", "r[1,2]", "r[2,2]", "r[3,2]",
    ]  # fmt: skip
    means = found.draws_pd().mean()
    for name in columns[:6]:
        i, j = int(name[2]), int(name[4])
        assert abs(means[name] - (10 * i + j)) < 0.1
        assert means[name] == means[f"r[{j},{i}]"]
    assert found.m.shape == (1600, 2, 3)
    assert found.none.shape == (1600, 0)
    assert_array_equal(found.m[:, 0, 2], found.draws_pd()["m[1,3]"])
    assert found.draws_xr("m").m.dims == ("chain", "draw", "m_dim_0", "m_dim_1")
    given = {"m": np.zeros((2, 3)).tolist(), "t": {"1": 0.0, "2": [0.0, 0.0]}, "none": [], "s": 1.0}
    table = models["matrices"].log_prob(given)
    assert [*table.columns[:4]] == ["lp__", "g_m.1.1", "g_m.2.1", "g_m.1.2"]
    assert_allclose(table["g_m.2.1"], 2100.0)


def test_draws_of_the_warmup_that_were_not_kept(models) -> None:
    short = models["bernoulli"].sample(data=DATA, iter_sampling=100, **QUIET)
    with pytest.warns(UserWarning, match="CmdStanMCMC: there are no draws of the warmup: save_w"):
        assert short.draws(inc_warmup=True).shape == (100, 4, 8)


def test_few_draws(models) -> None:
    table = models["bernoulli"].sample(data=DATA, iter_sampling=2, chains=1, **QUIET).summary()
    assert np.isnan(table.loc["theta", ["MCSE", "R_hat"]].astype(float)).all()


def test_thinning_keeps_every_third_draw(models) -> None:
    whole = models["bernoulli"].sample(data=DATA, iter_sampling=200, **QUIET)
    thin = models["bernoulli"].sample(data=DATA, iter_sampling=200, thin=3, **QUIET)
    assert thin.num_draws_sampling == 67
    assert_array_equal(thin.draws(), whole.draws()[::3])


def test_the_mode(models) -> None:
    model = models["bernoulli"]
    path = Path(model.stan_file).with_name("bernoulli.data.json")
    for algorithm in (None, "LBFGS", "bfgs", "Newton"):
        found = model.optimize(data=path, seed=1, algorithm=algorithm, inits={"theta": 0.6})
        assert found.converged
        assert_allclose(found.stan_variable("theta"), 0.2, rtol=1e-7)
    assert_allclose(found.optimized_params_dict["lp__"], 2 * np.log(0.2) + 8 * np.log(0.8))
    assert found.optimized_params_pd.shape == (1, 2)
    assert_array_equal(found.optimized_params_np, [*found.optimized_params_dict.values()])
    moved = model.optimize(data=str(path), seed=1, inits=0, jacobian=True, tol_obj=1e-12)
    assert_allclose(moved.theta, 0.25, rtol=1e-5)
    message = r"CmdStanModel.optimize: the optimizer did not converge to a mode"
    refuses(RuntimeError, message, model.optimize, data=DATA, seed=1, iter=1)
    assert not model.optimize(data=DATA, seed=1, iter=1, require_converged=False).converged


def test_approximations(models) -> None:
    model = models["bernoulli"]
    laplace = model.laplace_sample(data=DATA, draws=4000, seed=1, opt_args={"algorithm": "bfgs"})
    assert_allclose(laplace.mode.theta, 0.25, rtol=1e-7)
    assert laplace.draws().shape == (4000, 3)
    scores = np.log(laplace.theta / (1.0 - laplace.theta))
    # At the mode the second derivative is -12 * 0.25 * 0.75.
    assert_allclose(scores.std(), np.sqrt(1.0 / 2.25), rtol=0.05)
    densities = laplace.method_variables()
    theta = laplace.theta
    assert_allclose(densities["log_p__"], 3 * np.log(theta) + 9 * np.log1p(-theta), rtol=1e-10)
    given = model.optimize(data=DATA, jacobian=True, seed=1)
    again = model.laplace_sample(data=DATA, mode=given, draws=10, seed=1)
    assert again.mode is given
    paths = model.pathfinder(data=DATA, draws=4000, seed=1, num_paths=2, history_size=5)
    assert_allclose(paths.theta.mean(), POSTERIOR.mean(), atol=0.02)
    assert {*paths.method_variables()["path__"]} <= {1, 2}
    assert len(paths.create_inits(seed=1, chains=3)) == 3
    assert [*paths.create_inits(seed=1, chains=1)] == ["theta"]


def test_starts(models, fit) -> None:
    model, some = models["matrices"], {"s": 2.0}
    paths = models["bernoulli"].pathfinder(data=DATA, seed=1)
    for inits in (0, 0.5, {"theta": 0.3}, [{"theta": 0.1}, {"theta": 0.7}], fit, paths):
        settings = {"chains": 2, "metric": "diag_e", "step_size": 0.9, "adapt_delta": 0.9}
        found = models["bernoulli"].sample(data=DATA, inits=inits, **settings, **QUIET)
        assert abs(found.theta.mean() - POSTERIOR.mean()) < 0.03
    # The other parameters start at random.
    assert_allclose(model.optimize(inits=some, seed=1, jacobian=True).s, 1.0, rtol=1e-5)


def test_generated_quantities(models, fit) -> None:
    found = models["replicates"].generate_quantities(data=DATA, previous_fit=fit, seed=3)
    assert found.column_names[0] == "y_rep[1]"
    assert found.draws().shape == (1000, 4, 10)
    assert_array_equal(found.stan_variable("theta"), fit.theta)
    assert found.draws(inc_sample=True, concat_chains=True).shape == (4000, 18)
    assert_array_equal(found.draws_pd(["y_rep", "theta"])["theta"], fit.theta)
    assert found.draws_pd(inc_sample=True).shape == (4000, 21)
    assert found.draws_pd().shape == (4000, 13)
    # A replicate is one with the probability 0.25.
    assert_allclose(found.y_rep.mean(), POSTERIOR.mean(), atol=0.02)
    rates = found.y_rep.mean(axis=1)
    assert np.corrcoef(rates, fit.theta)[0, 1] > 0.5


def test_a_program_without_generated_quantities(models, fit) -> None:
    message = "generate_quantities: the program has no generated quantities, but must have some!"
    make = models["bernoulli"].generate_quantities
    refuses(TypeError, message, make, data=DATA, previous_fit=fit)


def test_draws_without_a_parameter(models) -> None:
    other = models["matrices"].optimize(seed=1, jacobian=True)
    message = "previous_fit has no theta, but must have all parameters"
    make = models["replicates"].generate_quantities
    refuses(ValueError, message, make, data=DATA, previous_fit=other)


def test_programs_without_parameters(models) -> None:
    found = models["fixed"].sample(fixed_param=True, iter_sampling=400, **QUIET)
    assert found.chains == 1
    assert [*found.summary().index] == ["x"]
    assert abs(found.x.mean() - 3.0) < 0.2


def test_the_log_density(models) -> None:
    model = models["bernoulli"]
    table = model.log_prob({"theta": 0.1}, data=DATA)
    assert [*table.columns] == ["lp__", "g_theta"]
    assert_allclose(table.loc[0], [3 * np.log(0.1) + 9 * np.log(0.9), 3 - 12 * 0.1])
    plain = model.log_prob({"theta": 0.1}, data=DATA, jacobian=False)
    assert_allclose(plain.loc[0], [2 * np.log(0.1) + 8 * np.log(0.9), 2 - 10 * 0.1])


@pytest.mark.parametrize(("method", "given", "kind", "message"), [
    ("sample", {"iter_sample": 3}, TypeError,
     "sample: iter_sample is not an argument! Did you mean `iter_sampling`?"),
    ("sample", {"output_dir": "a"}, TypeError,
     ("sample: output_dir is 'a', but must be None, because results are in memory: "
      "draws_pd().to_csv(path) saves them!")),
    ("sample", {"adapt_engaged": False}, TypeError,
     "sample: adapt_engaged is False, but must be True, because chains always adapt!"),
    ("sample", {"chain_ids": 3}, TypeError,
     ("sample: chain_ids is 3, but must be None, because chains are numbered from 1: give each "
      "run a seed of its own!")),
    ("sample", {"seed": [1, 2]}, TypeError,
     "sample: seed is a list, but must be an integer of at least 0!"),
    ("sample", {"iter_warmup": 0}, vm.DomainError,
     "sample: iter_warmup is 0, but must be an integer of at least 1!"),
    ("sample", {"metric": "dense_e"}, vm.DomainError,
     ("sample: metric is 'dense_e', but must be 'diag_e': for correlations, Model.sample has "
      "metric='low_rank'!")),
    ("sample", {"adapt_delta": 1.5}, vm.DomainError,
     "sample: adapt_delta is 1.5, but must be between 0 and 1!"),
    ("sample", {"fixed_param": True}, vm.DomainError,
     ("sample: fixed_param is True, but must be False: generate_quantities takes draws of a "
      "program with parameters!")),
    ("sample", {"inits": {"thta": 1.0}}, TypeError,
     "sample: inits has thta, but must have parameters: theta! Did you mean `theta`?"),
    ("sample", {"inits": [{"theta": 0.5}]}, vm.DomainError,
     "sample: inits is [{'theta': 0.5}], but must have 4 elements, one for each chain!"),
    ("sample", {"inits": {"theta": 2.0}}, vm.DomainError,
     ("sample: inits: theta: lub_free: Bounded variable is 2.0, but must be in the interval "
      "[0.0, 1.0]!")),
    ("sample", {"inits": [0.1, 0.2, 0.3, 0.4]}, TypeError,
     "sample: inits is 0.1, but must be a dict of parameters or the path of a JSON file!"),
    ("optimize", {"algorithm": "adam"}, vm.DomainError,
     "optimize: algorithm is 'adam', but must be 'lbfgs', 'bfgs' or 'newton'!"),
    ("optimize", {"inits": -1}, vm.DomainError,
     "optimize: inits is -1, but must be nonnegative finite!"),
    ("pathfinder", {"num_single_draws": 10}, TypeError,
     ("pathfinder: num_single_draws is 10, but must be None, because each path has as many "
      "draws as draws says, and up to 1000 steps!")),
    ("generate_quantities", {}, vm.DomainError,
     "generate_quantities: previous_fit is None, but must be a fit, such as sample returned!"),
    ("laplace_sample", {"mode": "mode.csv"}, vm.DomainError,
     "laplace_sample: mode is 'mode.csv', but must be what optimize(jacobian=True) returned!"),
    ("variational", {}, NotImplementedError,
     ("variational: ADVI is not supported: call pathfinder, which approximates the posterior "
      "faster!")),
])  # fmt: skip
def test_refused_arguments(models, method, given, kind, message) -> None:
    with pytest.raises(kind) as caught:
        getattr(models["bernoulli"], method)(data=DATA, **given)
    assert str(caught.value) == f"CmdStanModel.{message}"


def test_arguments_with_defaults_or_without_effect(models) -> None:
    found = models["bernoulli"].sample(
        DATA, 2, 1, iter_sampling=100, iter_warmup=300, sig_figs=9, refresh=10, show_console=False,
        threads_per_chain=4, output_dir=None, adapt_engaged=True, save_profile=False, **QUIET,
    )  # fmt: skip
    assert found.draws().shape[:2] == (100, 2)


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda _: CmdStanModel(exe_file="a"), TypeError,
     ("CmdStanModel: exe_file is 'a', but must be None, because nothing is compiled: give "
      "stan_file!")),
    (lambda _: CmdStanModel(stan_fil="a"), TypeError,
     "CmdStanModel: stan_fil is not an argument! Did you mean `stan_file`?"),
    (lambda _: CmdStanModel("name"), TypeError,
     "CmdStanModel: stan_file is missing, but must be a path!"),
    (lambda fit: fit.thta, AttributeError, "CmdStanMCMC has no thta! Did you mean `theta`?"),
    (lambda fit: fit.save_csvfiles("a"), AttributeError,
     "CmdStanMCMC has no save_csvfiles: draws_pd().to_csv(path) saves the draws!"),
    (lambda fit: fit.draws_pd("thta"), ValueError,
     ("CmdStanMCMC.draws_pd: the variable is 'thta', but must be one of theta, lp__, "
      "accept_stat__, stepsize__, treedepth__, n_leapfrog__, divergent__, energy__! Did you "
      "mean `theta`?")),
])  # fmt: skip
def test_refusals(fit, call, kind, message) -> None:
    with pytest.raises(kind) as caught:
        call(fit)
    assert str(caught.value) == message


def test_warnings_name_the_arguments_of_this_class(tmp_path):
    (tmp_path / "funnel.stan").write_text(
        "parameters { real v; vector[9] x; } model { v ~ normal(0, 3); x ~ normal(0, exp(v)); }",
        encoding="utf-8",
    )
    model = CmdStanModel(stan_file=tmp_path / "funnel.stan")
    with pytest.warns(vm.SamplingWarning, match=r"^CmdStanModel.sample: ") as said:
        model.sample(iter_warmup=200, iter_sampling=100, max_treedepth=3, adapt_delta=0.9, **QUIET)
    found = next(each.message for each in said if isinstance(each.message, vm.SamplingWarning))
    assert "try adapt_delta=0.95" in found.problems["divergences"]
    assert "ended at max_treedepth" in found.problems["max_depth"]
    assert "raise iter_sampling" in found.problems["ess"]
    for name in ("Model.sample:", "target_accept", "max_depth", "metric"):
        assert name not in str(found).removeprefix("CmdStanModel.sample:")
