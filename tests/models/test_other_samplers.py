"""The page about other samplers, block by block where their packages are installed."""

import importlib.util
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "howto_samplers.md").read_text(encoding="utf-8")
BLOCKS = [
    code
    for _, code in re.findall(
        r"^```(python|{code-block} python)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
]


def block(word):
    (found,) = (code for code in BLOCKS if word in code)
    return found


def namespace(*words):
    """What blocks leave behind; those of the model come first."""
    found = {"__name__": "howto_samplers"}
    for code in (
        *(block(word) for word in ("def log_likelihood(", "except vm.DomainError")),
        *map(block, words),
    ):
        exec(compile(code, "howto_samplers.md", "exec"), found)
    return found


def exact():
    """Mean and standard deviation of the parameters, by sums over a grid."""
    found = namespace()
    mu, log_sigma = np.meshgrid(
        np.linspace(-2.0, 4.0, 61), np.linspace(-2.5, 2.5, 61), indexing="ij"
    )
    points = np.stack([mu.ravel(), log_sigma.ravel()], axis=1)
    w = np.exp([found["model"].log_density(q) for q in points])
    w /= np.sum(w)
    values = np.stack([points[:, 0], np.exp(points[:, 1])])
    means = values @ w
    return means, np.sqrt(values**2 @ w - means**2)


@pytest.fixture(scope="module")
def moments():
    return exact()


def test_scipy():
    assert namespace("import minimize")["found"].fun < 20.0


@pytest.mark.parametrize(("package", "words"), [
    ("emcee", ["import emcee"]),
    ("dynesty", ["import dynesty"]),
    ("blackjax", ["import jax\n", "import blackjax"]),
    ("numpyro", ["import jax\n", "from numpyro"]),
])  # fmt: skip
def test_sampler(package, words, moments):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install {package}")
    np.random.seed(1)  # noqa: NPY002 - emcee's and dynesty's own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these packages warn about others
        found = namespace(*words)
        q, model = np.asarray(found["q"]), found["model"]
        assert q.shape[2] == 2
        values = np.stack([q[..., 0], np.exp(q[..., 1])])
        means, deviations = moments
        # There are some hundred effective draws.
        np.testing.assert_array_less(np.abs(np.mean(values, axis=(1, 2)) - means), 0.5 * deviations)
        np.testing.assert_array_less(np.abs(np.std(values, axis=(1, 2)) / deviations - 1.0), 0.6)
        if importlib.util.find_spec("arviz") is not None:
            data = {"model": model, "q": q[:, :50]}
            exec(block("model.to_arviz(q)"), data)
            assert data["data"]["log_likelihood"]["y"].shape == (len(q), 50, 8)


def test_a_point_outside_is_a_density_of_zero():
    found = namespace()
    value, gradient = found["log_density_gradient"](np.array([np.nan, 0.0]))
    assert (value, gradient.tolist()) == (-np.inf, [0.0, 0.0])
