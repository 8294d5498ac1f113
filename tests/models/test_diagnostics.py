"""R-hat and effective draws against ArviZ, and what sampling says at its end."""

import pickle
import sys
import warnings

import numpy as np
import pytest
from comparing import close
from models.schools import SCHOOLS
from models.small_models import told
from models.test_progress import Terminal

import varmat as vm
from varmat.models.diagnostics import SamplingWarning, diagnostics, problems

REPORTS = True

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    arviz = pytest.importorskip("arviz")


@pytest.mark.parametrize(("chains", "draws"), [(4, 200), (1, 104), (3, 7)])
def test_diagnostics_are_those_of_arviz(chains, draws):
    rng = np.random.default_rng(1)
    x = rng.standard_t(2, size=(chains, draws, 4))
    for i in range(1, draws):
        x[:, i] += np.array([-0.5, 0.0, 0.7, 0.99]) * x[:, i - 1]
    x[..., 1] = np.round(x[..., 1])  # with ties
    found = diagnostics(x)
    for i in range(4):
        each = x[..., i]
        close(found["ess_bulk"][i], arviz.ess(each), 1e-10)
        if i != 1:  # ArviZ rounds a quantile between equal numbers
            tail = arviz.ess(each, method="tail", prob=(0.05, 0.95))
            close(found["ess_tail"][i], tail, 1e-10)
        if chains > 1:
            close(found["r_hat"][i], arviz.rhat(each), 1e-10)


def test_constants_and_what_is_not_finite_have_none():
    x = np.random.default_rng(1).normal(size=(2, 10, 3))
    x[..., 1], x[0, 0, 2] = 3.0, np.inf
    for values in diagnostics(x).values():
        assert np.isnan(values).tolist() == [False, True, True]
    for few in (x[:, :3], x[:, :0]):
        assert np.isnan(diagnostics(few)["r_hat"]).all()


def test_problems():
    stats = {
        "diverging": np.eye(2, 50),
        "maxdepth_reached": np.eye(2, 50),
        "energy": np.cumsum(np.random.default_rng(1).normal(size=(2, 50)), axis=1),
    }
    columns = {"r_hat": [1.5, 1.0, np.nan], "ess_bulk": [20.0, 300.0, np.nan],
               "ess_tail": [30.0, 400.0, np.nan]}  # fmt: skip
    table = {name: np.array(column) for name, column in columns.items()}
    found = problems(["a", "b", "c"], table, 2, 50, stats, np.array([True, True, False]))
    begins = {
        "not_finite": "draws are inf or nan, or too large for a standard deviation: c; the",
        "divergences": "2 of 100 draws diverged, so the draws may miss a part of the posterior",
        "max_depth": "2 of 100 draws ended at max_depth, which is slow, but not wrong: scale",
        "e_bfmi": "E-BFMI is 0.24, below 0.3, in chains 0, 1, so the tails are explored slowly",
        "r_hat": "chains do not agree, r_hat is above 1.01: a 1.50; draw longer",
        "ess": "fewer than 200 effective draws, 100 for each chain: a 20; draw longer",
    }
    assert list(found) == list(begins)
    for name, begin in begins.items():
        assert found[name].startswith(begin)
    good = {name: column[1:2] for name, column in table.items()}
    stats = {"diverging": 0.0 * stats["diverging"], "energy": np.diff(stats["energy"], prepend=0.0)}
    assert problems(["b"], good, 2, 50, stats, np.array([True])) == {}
    warning = pickle.loads(pickle.dumps(SamplingWarning(found)))
    assert warning.problems == found
    assert str(warning).startswith("Model.sample: draws are inf or nan")


@pytest.mark.filterwarnings("always")
def test_what_sampling_says(monkeypatch):
    pytest.importorskip("nutpie._lib")
    settings = {"draws": 300, "tune": 300, "chains": 2, "seed": 1}
    with told("draws diverged, so", vm.SamplingWarning) as said:
        result = SCHOOLS.sample(**settings, target_accept=0.5, progress_bar=False)
    assert "divergences" in said[0].message.problems
    assert str(said[0].message.problems["divergences"]) in repr(result)

    easy = vm.Model(lambda x: -0.5 * np.sum(x**2), x=vm.real(2))
    for progress_bar in (True, False):
        monkeypatch.setattr(sys, "stderr", Terminal())
        easy.sample(**settings, progress_bar=progress_bar)
        last = sys.stderr.getvalue().splitlines()[-1:]
        assert bool(last) is progress_bar
        if progress_bar:
            assert last[0].startswith("2 chains of 300 draws, 0 divergences, r_hat up to 1.0")
