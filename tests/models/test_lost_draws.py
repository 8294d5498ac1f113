"""Draws are kept whatever happens after sampling, and a warning says what is missing."""

import tracemalloc
import warnings

import numpy as np
import pytest
from comparing import close, equal
from models.small_models import told

import varmat as vm
import varmat.distributions as dist
from varmat.models import inference_data
from varmat.models.functions import never

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("nutpie")
    pytest.importorskip("arviz")

SETTINGS = {"draws": 50, "tune": 50, "chains": 2, "seed": 3, "progress_bar": False}
Y = np.array([1.0, 2.0, 4.0])


def make(**settings):
    return vm.Model(
        mu=vm.real(prior=dist.Normal(0, 5)),
        y=vm.observed(Y, lambda mu: dist.Normal(mu, 1.0)),
        **settings,
    )


def out_of_memory(*_, **__):
    raise MemoryError("Unable to allocate 8.94 GiB")


def check(model, result, said, text):
    assert text in str(said[0].message)
    expected = make().sample(**SETTINGS)
    equal(result.posterior["mu"], expected.posterior["mu"])
    equal(result.observed_data["y"], Y)
    assert "log_likelihood" not in result
    found = model.to_arviz(result).log_likelihood["y"]
    close(found, expected.log_likelihood["y"], 1e-13)


def test_no_memory_for_the_log_likelihood(monkeypatch):
    model = make()
    with monkeypatch.context() as patch:
        patch.setattr(model.likelihood, "of_draws", out_of_memory)
        with told("^Model.sample: after sampling") as said:
            result = model.sample(**SETTINGS)
    check(
        model, result, said,
        "log_likelihood raised MemoryError: Unable to allocate 8.94 GiB: the result is without it. "
        "model.to_arviz(result) computes it",
    )  # fmt: skip


def test_a_large_log_likelihood_is_not_made_unasked(monkeypatch):
    model = make()
    with monkeypatch.context() as patch:
        patch.setattr(inference_data, "LARGEST", 8 * 3 * 100 - 1)
        with told("^Model: the log-likelihood of 3 observ") as said:
            result = model.sample(**SETTINGS)
    check(model, result, said, "100 draws takes 0.0 GiB, more than")
    monkeypatch.setattr(inference_data, "LARGEST", 8 * 3 * 100)
    assert "log_likelihood" in make().sample(**SETTINGS)


def test_no_memory_for_the_diagnostics(monkeypatch):
    monkeypatch.setattr("varmat.models.model.report", out_of_memory)
    with pytest.warns(UserWarning, match="could not be diagnosed: MemoryError: Unable to"):
        result = make().sample(**SETTINGS)
    assert result.posterior["mu"].shape == (2, 50)


@pytest.mark.filterwarnings("ignore:Model.sample. the log density cannot be recorded:UserWarning")
@pytest.mark.parametrize("executor", [None, "serial"])
@pytest.mark.parametrize("recorded", [None, False])
def test_errors_of_quantities_at_draws(recorded, executor):
    def quantities(mu):
        if mu > 2.5:
            raise ValueError("too large")
        return {"z": mu}

    model = make(generated_quantities=quantities, recorded=recorded)
    where = {"executor": executor} if executor else {"cores": 1}
    with pytest.warns(UserWarning, match="the functions of the model raised an error") as said:
        result = model.sample(**SETTINGS, **where)
    found = result.posterior
    far = found["mu"].values > 2.5
    assert 0 < far.sum() < 100
    equal(np.isnan(found["z"]), far)
    assert f"at {far.sum()} draws" in str(said[0].message)
    assert "the first ValueError: too large; transformed parameters" in str(said[0].message)


@pytest.mark.parametrize("draws", [500, 2000])
def test_the_memory_of_a_log_likelihood_is_little_more_than_itself(draws):
    y = np.zeros(2000)
    model = vm.Model(mu=vm.real(), y=vm.observed(y, lambda mu: dist.Normal(mu, 1.0)))
    arrays = {"mu": np.linspace(-1.0, 1.0, draws).reshape(1, draws)}
    model.likelihood.of_draws(model.completed, arrays, (1, draws), never)
    tracemalloc.start()
    made = model.likelihood.of_draws(model.completed, arrays, (1, draws), never)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A recording is run for pieces, whose terms are copied.
    assert peak < made["y"].nbytes + 8 * 3 * 2**22
    assert draws > 500 or peak < 1.2 * made["y"].nbytes
