"""The densities and gradients of the examples' models. .ci/run runs the scripts, since it installs
what they plot with.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from comparing import close
from models.schools import SCHOOLS
from scipy import stats

import varmat as vm

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def load(monkeypatch):
    """Return a function that imports an example. Data that come with scikit-learn are replaced by
    random data of the same shape.
    """
    rng = np.random.default_rng(3)
    measurements = rng.normal(size=(442, 10)) * rng.uniform(1, 50, size=10)
    diabetes = SimpleNamespace(
        data=measurements,
        target=100 + measurements @ rng.normal(size=10) + 30 * rng.normal(size=442),
    )
    nuclei = rng.normal(size=(569, 30))
    benign = (nuclei[:, 0] + rng.normal(size=569) > 0).astype(int)
    cancer = SimpleNamespace(
        data=nuclei, target=benign, feature_names=np.array([f"n{i}" for i in range(30)])
    )
    datasets = ModuleType("sklearn.datasets")
    datasets.load_diabetes = lambda scaled: diabetes
    datasets.load_breast_cancer = lambda: cancer
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", datasets)

    def load_example(name):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load_example


def test_eight_schools_are_those_of_the_tests(load):
    """The same unknowns in another order, whose derivatives `test_model` has by hand."""
    model = load("eight_schools").make_model()
    for q in np.random.default_rng(1).normal(size=(2, 10)):
        value, gradient = SCHOOLS.log_density_gradient(np.roll(q, -2))
        close(model.log_density_gradient(q, propto=False), (value, np.roll(gradient, 2)), 1e-12)


MODELS = {
    "glm": lambda example: example.make_model(),
    "hierarchical": lambda example: example.make_model(),
    "gaussian_process": lambda example: example.constant_model(),
    "gaussian_process with noise that changes": lambda example: example.changing_model(),
    "hidden_markov": lambda example: example.make_model(example.log_posterior),
    "arma": lambda example: example.make_model(),
}


@pytest.mark.parametrize("name", MODELS)
def test_gradient_of_the_model(load, name):
    model = MODELS[name](load(name.split()[0]))
    point = 0.3 * np.random.default_rng(1).normal(size=model.param_unc_num())
    check = model.check_gradient(point)
    assert check, str(check)
    close(model.log_density_gradient(point)[0], model.log_density(point), 1e-13)


def test_gradient_and_hessian_of_the_regression(load):
    example = load("linear_regression")
    for seed in range(3):
        point = 0.5 * np.random.default_rng(seed).normal(size=11)
        value, gradient = vm.value_and_grad(example.log_posterior)(point)
        close(value, example.log_posterior(point), 1e-14)
        close(gradient, example.gradient_by_hand(point), 1e-11, 1e-10)
    point = np.append(np.linspace(-0.2, 0.2, 10), -0.3)
    hessian, exact = vm.hessian(example.log_posterior, point), example.gradient_by_hand
    differences = [(exact(point + e) - exact(point - e)) / 2e-6 for e in 1e-6 * np.eye(11)]
    close(hessian, np.array(differences), 1e-6, 1e-5)
    linear = example.X.T @ example.X * np.exp(0.6) + np.eye(10)
    close(hessian[:10, :10], -linear, 1e-12)


def test_growth_curves_are_those_of_least_squares(load):
    example = load("hierarchical")
    intercepts, slopes, residual = example.least_squares()
    design = np.column_stack([np.ones(5), example.AGES - 22])
    lines, squares, *_ = np.linalg.lstsq(design, example.WEIGHTS.reshape(30, 5).T)
    close([intercepts, slopes], lines, 1e-12)
    close(residual, np.sqrt(squares.sum() / 90), 1e-12)


def test_gaussian_process_against_scipy(load):
    example = load("gaussian_process")
    t, noise = example.TIMES, 5.0 + np.linspace(0, 10, 133)
    covariance = 40.0**2 * np.exp(-0.5 * (np.subtract.outer(t, t) / 5.0) ** 2) + np.diag(noise**2)
    expected = stats.multivariate_normal(np.zeros(133), covariance).logpdf(example.ACCELERATIONS)
    close(example.log_likelihood(40.0, 5.0, noise), expected, 1e-11)
    # Linear functions are interpolated exactly.
    close(example.between_knots(t) @ (2 * example.KNOTS - 1), 2 * t - 1, 1e-12)
    mean, spread = example.predict(t[:3], 40.0, 5.0, noise)
    smoother = np.linalg.solve(covariance, covariance - np.diag(noise**2)).T
    close(mean, (smoother @ example.ACCELERATIONS)[:3], 1e-9)
    assert np.all(spread < noise[:3])


def test_hidden_markov_model_has_the_published_maximum(load):
    example = load("hidden_markov")
    start = {"rates": [10.0, 20.0, 30.0], "transitions": np.full((3, 3), 0.1) + 0.7 * np.eye(3)}
    fit = example.make_model(example.log_likelihood).optimize(start)
    close(-fit.value, example.PUBLISHED_LOSS, 0.0, 5e-5)
    close(fit.values["rates"], example.PUBLISHED_RATES, 1e-7, 5e-4)
    weights = example.stationary(fit.values["transitions"])
    close(weights @ fit.values["transitions"], weights, 1e-12)


def test_shocks_of_the_airline_model_give_the_series_back(load):
    example = load("arma")
    before = np.linspace(-0.02, 0.02, 13)

    def series(e):
        return e[13:] - 0.4 * e[12:-1] - 0.6 * e[1:-12] + 0.24 * e[:-13]

    e = example.shocks(0.4, 0.6, before)
    close(series(e), example.differences(example.SERIES), 1e-7, 1e-15)
    # Without new shocks the forecast is the series without shocks.
    quiet = SimpleNamespace(normal=lambda mean, scale, size: np.zeros(size))
    forecast = example.forecast(0.4, 0.6, 0.02, before, quiet)["forecast"]
    y = np.append(example.SERIES, np.log10(forecast))
    close(example.differences(y), series(np.append(e, np.zeros(24))), 1e-7, 1e-14)


def test_concentrations_of_repeated_doses(load):
    """Those of the solver are those of the matrix exponential."""
    example = load("pharmacokinetics")
    close(example.concentrations(*example.TRUTH.values()), example.exact(**example.TRUTH), 1e-7)
