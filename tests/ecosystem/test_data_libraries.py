"""Data and results of pandas, xarray and ArviZ."""

from __future__ import annotations

import pytest

import varmat as vm
import varmat.numpy as np

rng = np.random.default_rng(5)
X = rng.normal(size=(12, 2))
Y = X @ np.array([1.0, -0.5]) + 0.3 * rng.normal(size=12)
GROUPS = np.repeat(["a", "b", "c"], 4)
BETA = np.array([0.2, 0.1, 0.3, 0.4])


@pytest.fixture(autouse=True)
def clean_tape():
    vm.recover_memory()


def expected():
    k = np.repeat(np.arange(3), 4)

    def f(beta):
        return np.sum((Y - X[:, 0] * beta[0] - beta[1:][k]) ** 2)

    return vm.gradient(f, BETA)


def test_pandas():
    pandas = pytest.importorskip(
        "pandas", reason='pandas is not installed: pip install "varmat[ecosystem]"'
    )
    frame = pandas.DataFrame({"y": Y, "x": X[:, 0], "group": GROUPS})

    def f(beta):
        effects = np.zeros(len(frame))
        for i, (_, rows) in enumerate(frame.groupby("group")):
            effects[rows.index] = beta[1 + i]
        return np.sum((np.asarray(frame["y"]) - np.asarray(frame["x"]) * beta[0] - effects) ** 2)

    gradient = pandas.Series(vm.gradient(f, BETA), index=["x", "a", "b", "c"])
    np.testing.assert_allclose(gradient, expected(), rtol=1e-13)
    with vm.nested():
        waiting = np.zeros((2, 2))
        assert pandas.DataFrame(waiting, columns=["a", "b"]).shape == (2, 2)
        waiting[0, 0] = vm.var(1.0)
        with pytest.raises(TypeError, match="its derivative would be lost"):
            pandas.DataFrame(waiting)


def test_xarray():
    xarray = pytest.importorskip(
        "xarray", reason='xarray is not installed: pip install "varmat[ecosystem]"'
    )
    data = xarray.Dataset(
        {"y": ("obs", Y), "x": ("obs", X[:, 0])}, coords={"group": ("obs", GROUPS)}
    )
    codes = np.unique(data["group"].values, return_inverse=True)[1]

    def f(beta):
        mu = np.array(
            [data["x"].values[i] * beta[0] + beta[1 + codes[i]] for i in range(data.sizes["obs"])]
        )
        return np.sum((np.asarray(data["y"]) - mu) ** 2)

    gradient = xarray.DataArray(vm.gradient(f, BETA), dims="parameter")
    np.testing.assert_allclose(gradient, expected(), rtol=1e-13)


def test_arviz():
    arviz = pytest.importorskip(
        "arviz", reason='ArviZ is not installed: pip install "varmat[ecosystem]"'
    )

    def log_density(mu, sigma):
        z = np.zeros(len(Y))
        for i in range(len(Y)):
            z[i] = (Y[i] - mu) / sigma
        return -0.5 * np.sum(z**2) - len(Y) * np.log(sigma)

    model = vm.Model(log_density, mu=vm.real(), sigma=vm.positive())
    draws = model.laplace(draws=400, seed=1).to_arviz()
    table = arviz.summary(draws, kind="stats", round_to="none")
    assert table["mean"]["mu"] == pytest.approx(np.mean(Y), abs=0.1)
    assert table["sd"]["mu"] == pytest.approx(np.std(Y) / np.sqrt(len(Y)), rel=0.2)
