"""Draws as ArviZ data, of either kind of ArviZ, and the sentence for a package that is missing."""

import pickle
import sys
import types

import numpy as np
import pytest
from comparing import refuses
from models.small_models import GAUSSIAN, gaussian

import varmat as vm
import varmat.distributions as dist
from varmat.models import results


@pytest.mark.parametrize(("version", "nested"), [("0.23.4", False), ("1.0.0", True), ("1.2", True)])
def test_arviz_of_either_kind(monkeypatch, version, nested):
    arviz = types.ModuleType("arviz")
    arviz.__version__ = version
    arviz.from_dict = lambda *args, **kwargs: (args, kwargs)
    monkeypatch.setitem(sys.modules, "arviz", arviz)
    model = vm.Model(
        gaussian, mu=vm.real(1), sigma=vm.positive(), coords={"one": ["a"]}, dims={"mu": ("one",)}
    )
    args, kwargs = model.laplace(draws=7, seed=1).to_arviz()
    assert kwargs.pop("coords") == {"one": ["a"]}
    assert kwargs.pop("dims") == {"mu": ["one"]}
    assert (len(args), len(kwargs)) == ((1, 0) if nested else (0, 2))
    groups = args[0] if nested else kwargs
    assert groups["posterior"]["mu"].shape == (1, 7, 1)
    assert set(groups["sample_stats"]) == {"lp", "log_approximation"}


def test_package_that_cannot_be_imported_says_why_itself(monkeypatch, tmp_path):
    (tmp_path / "not_whole.py").write_text("import a_dependency_that_is_missing", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="No module named 'a_dependency_that_is_missing'"):
        results.optional("not_whole", "to_arviz")


def test_missing_package_is_said_with_the_command(monkeypatch):
    for module in ("arviz", "nutpie"):
        monkeypatch.setitem(sys.modules, module, None)
    how = r'which is not installed: in a clone .* -e "\.\[sample\]"'
    refuses(ImportError, f"to_arviz needs arviz, {how}", results.to_arviz, {}, {}, {})
    refuses(ImportError, f"Model.sample needs nutpie, {how}", GAUSSIAN.sample)


def test_another_interface_of_nutpie_is_said_with_its_version(monkeypatch):
    pytest.importorskip("nutpie._lib")
    module = types.ModuleType("nutpie._lib")
    monkeypatch.setitem(sys.modules, "nutpie._lib", module)
    text = r"the interface of nutpie 0\.\S+ is not the one that varmat calls \(LogpFunc"
    refuses(ImportError, text + " is missing", GAUSSIAN.sample)
    module.LogpFunc = types.SimpleNamespace(__text_signature__="(dim, ptr, user_data_ptr)")
    refuses(ImportError, text + r"\(dim, ptr, user_data_ptr\)\): .* pip install", GAUSSIAN.sample)


def test_draws_are_datasets_without_arviz(monkeypatch):
    arviz, xarray = pytest.importorskip("arviz"), pytest.importorskip("xarray")
    if not arviz.__version__.startswith("0."):
        pytest.skip("this ArviZ has no InferenceData")
    x = np.arange(12.0).reshape(2, 3, 2)
    groups = {
        "posterior": {"x": x, "y": x[..., 0]},
        "sample_stats": {"gradient": x, "draw": x[..., 0], "lp": x[..., 1]},
        "warmup_posterior": {"x": x[:, :2], "y": x[:, :2, 0]},
    }
    labels = {"k": ["a", "b"], "chain": [0, 3]}, {"x": ["k"]}
    draws = results.Sampled(groups, *labels)
    expected = results.to_arviz(groups, *labels)
    with monkeypatch.context() as context:
        context.setattr(results, "unimported_arviz", lambda: arviz.__version__)
        context.setattr(results, "to_arviz", None)
        for name in groups:
            found = draws[name]
            assert getattr(draws, name) is found
            assert found.attrs.keys() == expected[name].attrs.keys()
            assert found.attrs["arviz_version"] == arviz.__version__
            xarray.testing.assert_equal(found, expected[name])
        draws.posterior["z"] = 2.0 * draws.posterior.y
        arrays, dims, _ = results.groups_of(draws)
        np.testing.assert_array_equal(arrays["posterior"]["z"], 2.0 * x[..., 0])
        assert dims["x"] == ["k"]
    again = pickle.loads(pickle.dumps(draws))
    xarray.testing.assert_identical(again.posterior, draws.posterior)
    assert draws.whole().posterior is draws.posterior
    assert isinstance(draws, arviz.InferenceData)


def test_the_small_part_of_arviz_is_enough(monkeypatch):
    base = types.ModuleType("arviz_base")
    base.__version__, base.from_dict = "1.3.1", lambda groups, **_: groups
    monkeypatch.setitem(sys.modules, "arviz_base", base)
    monkeypatch.setattr(results, "unimported_arviz", lambda: "1.3.0")
    draws = results.Sampled({"posterior": {"x": np.ones((1, 2))}}, {}, {})
    assert draws["posterior"]["x"].shape == (1, 2)


@pytest.mark.parametrize("draws", [50, 800])
@pytest.mark.parametrize("recorded", [None, False])
def test_integers_and_truth_values_stay_what_they_are(draws, recorded):
    model = vm.Model(
        x=vm.real(prior=dist.Normal(0, 1)),
        recorded=recorded,
        generated_quantities=lambda x, rng: {
            "count": rng.poisson(3.0, 2), "above": rng.random() < 0.5, "half": 0.5 * x,
        },
    )  # fmt: skip
    values = model.constrain([0.3], include_gq=True)
    assert (type(values["above"]), values["count"].dtype.kind) == (bool, "i")
    fit = model.sample(draws, tune=50, chains=2, cores=1, seed=1, progress_bar=False)
    kinds = {name: x.dtype.kind for name, x in fit.posterior.items()}
    assert kinds == {"x": "f", "count": "i", "above": "b", "half": "f"}
    assert fit.warmup_posterior["above"].dtype == bool
    assert 0.0 < model.summary(fit, "above").table["mean"][0] < 1.0
    assert model.laplace(seed=1, draws=20).draws["count"].dtype.kind == "i"
