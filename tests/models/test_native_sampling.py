"""Sampling without Python, against sampling by way of Python: the same seed gives the same
draws.
"""

import os
import signal
import subprocess
import sys
import traceback
import warnings

import numpy as np
import pytest
import xarray as xr
from comparing import equal, refuses
from models.small_models import groups, told
from models.test_progress import Terminal

import varmat as vm
from varmat.models import native_sampling
from varmat.models.callbacks import Callbacks
from varmat.models.chains import SECONDS, Monitor
from varmat.models.results import joined_chains

pytest.importorskip("llvmlite")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("nutpie")
    xr = pytest.importorskip("xarray")

SETTINGS = {"draws": 60, "tune": 80, "chains": 2, "seed": 3, "progress_bar": False}


def normal(x, y):
    return -0.5 * x * x - 0.5 * np.sum(y**2)


def parameters(**settings):
    return vm.Model(normal, x=vm.real(), y=vm.positive(3), **settings)


def written_over(x, y):
    y *= 2.0
    y -= x
    return {"t": 1.0 * y}


def stepped(x):
    return vm.std_normal_lpdf(x) + vm.normal_lpdf(0.0, 0.0, 1.0 - x)


# What a model has besides its log density.
SETTINGS_OF = {
    "plain": {},
    "labels": {"coords": {"j": ["a", "b", "c"]}, "dims": {"y": ["j"]}},
    "transformed": {"transformed_parameters": lambda x, y: {
        "t": np.outer(y, y), "u": x + y[0], "none": y[:0]}},
    "written over": {"transformed_parameters": written_over,
                     "generated_quantities": lambda y, t: {"z": y + t}},
    "quantities": {"generated_quantities": lambda x, rng: {"z": rng.normal(x, size=2), "k": 2}},
    "quantities of an index": {
        "transformed_parameters": lambda y: {"i": 1, "t": 2.0 * y},
        "generated_quantities": lambda i, t, rng: {"z": t[i] + rng.normal()}},
    "quantities that sort": {"generated_quantities": lambda y: {"z": y.sort() or y}},
    "values in a list": {"transformed_parameters": lambda x: {"t": [x, 2.0 * x]}},
    "values that are infinite": {
        "transformed_parameters": lambda x: {"t": -np.log(np.maximum(x, 0.0))}},
}  # fmt: skip
DENSITIES = {"refusals": stepped, "flat": lambda x: -(np.maximum(np.abs(x) - 1.0, 0.0) ** 2)}
NAMES = [*SETTINGS_OF, *DENSITIES]


def make(name):
    if name in DENSITIES:
        return vm.Model(DENSITIES[name], x=vm.real())
    return parameters(**SETTINGS_OF[name])


def by_python(monkeypatch, model, **settings):
    with monkeypatch.context() as context:
        context.setattr(native_sampling, "has_native", lambda: False)
        return model.sample(**{**SETTINGS, **settings})


def is_native(model):
    calls = Callbacks(model, 1)
    return native_sampling.prepared(calls) is not None


def assert_same(result, expected, rtol=1e-13):
    """By default functions may be rounded in another way, as they are by NumPy and by LLVM."""
    made, known = groups(result), groups(expected)
    assert list(made) == list(known)
    for group in ("posterior", "warmup_posterior"):
        if group in known:
            xr.testing.assert_allclose(made[group], known[group], rtol=rtol, atol=1e-14)


@pytest.mark.parametrize("settings", [{}, {"keep_warmup": False}], ids=["", "without warmup"])
@pytest.mark.parametrize("name", NAMES)
def test_draws_are_those_of_sampling_by_python(monkeypatch, name, settings):
    settings |= {"inits": {"x": 2.0} if name == "flat" else None, "init_radius": 2.0}
    expected = by_python(monkeypatch, make(name), **settings)
    assert_same(make(name).sample(**{**SETTINGS, **settings}), expected)


def test_draws_do_not_depend_on_the_number_of_threads():
    model = make("quantities")
    expected = model.sample(**SETTINGS, cores=1)
    for cores in (2, 4):
        assert_same(model.sample(**SETTINGS, cores=cores), expected, rtol=0.0)


@pytest.mark.parametrize(
    "settings", [{"cores": 1}, {"chains": 1}, {"executor": "threads"}], ids=str
)
@pytest.mark.parametrize("recorded", [None, False])
# Of ArviZ, before and from version 1.
@pytest.mark.filterwarnings("ignore:More chains:UserWarning", "ignore:Found chain dim:UserWarning")
def test_no_draws(recorded, settings):
    functions = {
        "log_likelihood": lambda mu, y: {"y": -0.5 * (y - mu) ** 2},
        "generated_quantities": lambda mu, rng: {"z": rng.normal(mu, size=2)},
    }
    density, data = lambda mu, y: np.sum(-0.5 * (y - mu) ** 2), {"y": np.ones(3)}
    model = vm.Model(density, mu=vm.real(), data=data, recorded=recorded, **functions)
    given = {"draws": 0, "tune": 20, "chains": 2, "seed": 1, "progress_bar": False, **settings}
    result = model.sample(**given)
    assert result.posterior["z"].shape == (given["chains"], 0, 2)
    assert result.warmup_posterior["z"].shape == (given["chains"], 20, 2)
    assert np.all(np.isfinite(result.warmup_posterior["z"]))
    message = r"^Model.summary: result has 0 draws, but must have at"
    refuses(vm.DomainError, message, model.summary, result)
    message = r"^Model.sample: tune is 0, but must be an integer of"
    refuses(vm.DomainError, message, model.sample, **{**given, "tune": 0})


def test_interrupted_chains_are_cut_to_one_length():
    """A chain without draws is left out if others have some."""

    def part(chain, draws, warmup):
        sizes = {"posterior": draws, "sample_stats": draws, "warmup_posterior": warmup}
        return {group: {"x": 100.0 * chain + np.arange(n)[None]} for group, n in sizes.items()}

    def joined(lengths, count):
        parts = {i: part(i, *each) for i, each in lengths.items()}
        if not isinstance(count, str):
            return joined_chains(parts, count)
        with pytest.warns(UserWarning, match=f"^Model.sample: interrupted: {count}$"):
            return joined_chains(parts, 3)

    cut = "the chains, which have up to 40 draws, are cut to the shortest, 7"
    cases = [
        ({0: (40, 9), 1: (7, 9), 2: (20, 9)}, cut, [0, 1, 2], (7, 9)),
        ({0: (40, 9), 2: (7, 9)}, f"the result is without the chains 1, which .*; {cut}", [0, 2],
         (7, 9)),
        ({0: (40, 9), 1: (0, 5), 2: (40, 9)},
         "the result is without the chains 1, which have no draws", [0, 2], (40, 9)),
        ({0: (0, 9), 1: (0, 5), 2: (0, 9)}, 3, [0, 1, 2], (0, 5)),
        ({0: (40, 9), 1: (40, 9)}, 2, [0, 1], (40, 9)),
    ]  # fmt: skip
    for lengths, said, chains, (draws, warmup) in cases:
        groups, numbers = joined(lengths, said)
        assert numbers == chains
        for group, size in (("posterior", draws), ("warmup_posterior", warmup)):
            expected = 100.0 * np.array(chains)[:, None] + np.arange(size)
            equal(groups[group]["x"], expected)
    refuses(KeyboardInterrupt, None, joined_chains, {}, 2)


def test_an_interrupt_of_the_threads_returns_the_draws_that_there_are(monkeypatch):
    def show(monitor, at_once=False):
        if monitor.status[:-1, SECONDS].all() and not interrupted:
            interrupted.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    interrupted = []
    monkeypatch.setattr(Monitor, "show", show)
    with told(r"up to \d+ draws, are cut to the shortest, \d+$"):
        result = parameters().sample(**{**SETTINGS, "draws": 10**6}, cores=2)
    x = result.posterior["x"].values
    assert x.shape[0] == 2
    assert 0 < x.shape[1] < 10**6
    assert np.all(np.isfinite(x))
    assert result.warmup_posterior.sizes["draw"] == 80


def test_what_is_shown_of_threads(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    parameters().sample(**{**SETTINGS, "progress_bar": True})
    assert [line[1] for line in sys.stderr.table()[2:]] == ["140", "140"]


def test_steps_that_call_python(monkeypatch):
    def log_density(x):
        return vm.std_normal_lpdf(x) + np.sum(
            np.log(np.linalg.svdvals(np.diag([1.0, 2.0]) + np.outer(x, x)))
        )

    def make():
        return vm.Model(log_density, x=vm.real(2), recorded=True)

    model = make()
    expected = by_python(monkeypatch, make(), chains=4)
    # The steps pass objects to each other: no point may need the density in Python for that.
    monkeypatch.setattr(Callbacks, "log_density", None)
    assert_same(model.sample(**{**SETTINGS, "chains": 4}, cores=4), expected)
    assert model._value_and_grad.known(np.zeros(2), True, True).run.calls_python


def test_error_where_the_recording_does_not_hold():
    def log_density(x):
        if count:  # only where the recording does not hold
            raise KeyError("later")
        count.append(x)
        return vm.std_normal_lpdf(x) + vm.normal_lpdf(0.0, 0.0, 0.5 - x)

    count = []
    starts = {"target_accept": 0.5, "inits": {"x": 0.0}, "init_radius": 2.0}
    with pytest.raises(KeyError, match="later") as failure:
        vm.Model(log_density, x=vm.real()).sample(**SETTINGS, **starts)
    assert 'raise KeyError("later")' in "".join(traceback.format_exception(failure.value))


@pytest.mark.parametrize(("of", "error"), [
    ("generated_quantities", IndexError),
    ("generated_quantities", ValueError),
    ("transformed_parameters", IndexError),
])  # fmt: skip
def test_errors_at_draws_lose_no_draws(of, error):
    def values(x):
        if isinstance(x, float) and x > 1.0:  # a float is no variable
            raise error("far out")
        return {"t": [x]}

    def whole(x):
        return {"t": [x]}

    def make(function):
        return vm.Model(lambda x: -0.5 * x * x, x=vm.real(), **{of: function})

    with told(rf"draws the .* the first {error.__name__}: far out") as said:
        result = make(values).sample(**SETTINGS)
    expected = make(whole).sample(**SETTINGS)
    count = 0
    for group in ("posterior", "warmup_posterior"):
        found = result[group]
        equal(found["x"], expected[group]["x"])
        far = found["x"].values > 1.0
        equal(np.isnan(found["t"].values[..., 0]), far)
        # A ValueError is forgiven during the adaptation.
        count += far.sum() if group == "posterior" or error is IndexError else 0
    assert f"at {count} draws" in str(said[0].message)
    made = make(whole).to_arviz(dict(result.posterior)).posterior
    equal(made["t"], expected.posterior["t"])


def test_values_that_are_refused_during_adaptation_only(monkeypatch):
    def make(**settings):
        return vm.Model(lambda x: -0.5 * (x + 10.0) ** 2, x=vm.real(), **settings)

    def quantities(x):
        if x > 0.0:
            raise ValueError("far out")
        return {"z": x}

    for settings in (
        {"transformed_parameters": lambda x: {"t": vm.normal_lpdf(x, 0.0, -x)}},
        {"generated_quantities": quantities},
    ):
        starts = {"inits": {"x": -1.0}, "init_radius": 2.0}
        expected = by_python(monkeypatch, make(**settings), **starts)
        assert_same(make(**settings).sample(**SETTINGS, **starts), expected)


@pytest.mark.parametrize("quantities", [None, lambda t: {"z": t}])
def test_values_that_are_refused_at_draws_that_are_kept(quantities):
    def values(x):  # its recording does not see that a logarithm is nan
        if isinstance(x, float) and x < 0.0:
            raise vm.DomainError(f"{x} has no logarithm")
        return {"t": np.log(x)}

    functions = {"transformed_parameters": values, "generated_quantities": quantities}
    model = vm.Model(lambda x: -0.5 * x * x, x=vm.real(), **functions)
    with pytest.warns(UserWarning, match="draws the .* the first DomainError: .* has no logarithm"):
        found = model.sample(**SETTINGS, inits={"x": 3.0}, init_radius=2.0).posterior
    equal(np.isnan(found["t"]), found["x"] < 0.0)
    assert np.isfinite(found["x"]).all()


def test_python_is_called_where_a_value_is_not_finite(monkeypatch):
    def make():
        return parameters(
            transformed_parameters=lambda x: {"t": np.log(np.maximum(x, 0.0))},
            generated_quantities=lambda t: {"z": -t},
        )

    result = make().sample(**SETTINGS)
    assert np.isinf(result.posterior["t"].values).any()
    assert_same(result, by_python(monkeypatch, make()))


@pytest.mark.parametrize("recordable", [True, False])
def test_an_interrupt_while_quantities_are_made_loses_no_draws(recordable):
    """The parameters are there even if they are not made by the sampler, because the values cannot
    be recorded.
    """

    def transformed(x, y):
        return {"t": x + y if recordable else [x + y[0], x + y[1], x + y[2]]}

    def quantities(t):
        count.append(t)
        if len(count) == 50:
            os.kill(os.getpid(), signal.SIGINT)
        return {"z": 2.0 * np.asarray(t)}

    count = [None] * 1000
    settings = {"transformed_parameters": transformed, "generated_quantities": quantities}
    expected = parameters(**settings).sample(**SETTINGS)
    count = []
    text = r"^Model.sample: interrupted after sampling: of 280 draws (\d+) lack quantities"
    with told(text) as said:
        result = parameters(**settings).sample(**SETTINGS)
    assert f"({'z' if recordable else 't, z'}), which are nan" in str(said[0].message)
    for group in ("posterior", "warmup_posterior"):
        made, known = result[group], expected[group]
        assert set(made.variables) == set(known.variables)
        for name in ("x", "y"):
            equal(made[name], known[name])
    assert len(np.unique(result.posterior["x"])) > 60
    # A call finds the shapes, and an interrupt is raised between one instruction of Python and a
    # later one.
    done = np.isfinite(result.posterior["z"].values).all(axis=2).ravel()
    number = int(done.sum())
    assert 40 < number <= 50
    assert done[:number].all()
    assert f"of 280 draws {280 - number} lack" in str(said[0].message)
    made, known = (each.posterior["z"].values.reshape(-1, 3)[done] for each in (result, expected))
    equal(made, known)
    assert np.isnan(result.warmup_posterior["z"]).all()
    assert np.isnan(result.posterior["t"]).values.any() is np.bool_(not recordable)


def test_what_is_shown_while_quantities_are_made(monkeypatch):
    model = parameters(generated_quantities=lambda x, rng: {"z": rng.normal(x)})
    for progress_bar in (False, True):
        monkeypatch.setattr(sys, "stderr", Terminal())
        model.sample(**{**SETTINGS, "progress_bar": progress_bar})
        shown = sys.stderr.getvalue()
        assert ("Generated quantities" in shown) is progress_bar
        if progress_bar:
            assert shown.splitlines()[-1].split()[:2] == ["━" * 35, "280"]


def test_models_that_go_by_python():
    assert is_native(vm.Model(lambda x: -x * x, x=vm.real(), recorded=True))
    assert not is_native(vm.Model(lambda x: -x * x, x=vm.real(), recorded=False))
    assert not is_native(vm.Model(lambda: 1.0, recorded=True))


def test_quantities_of_draws_in_warmup_are_computed_with_the_others():
    """Fewer than would be recorded for their own sake."""
    calls = []

    def quantities(values, rng):
        calls.append(values)
        return {"z": values["x"] ** 2 + rng.normal()}

    model = vm.Model(
        lambda x: vm.normal_lpdf(x, 0.0, 1.0), generated_quantities=quantities, x=vm.real()
    )
    result = model.sample(draws=500, tune=100, chains=2, seed=1, progress_bar=False)
    assert len(calls) < 20
    for group in ("posterior", "warmup_posterior"):
        draws = result[group]
        z = np.ravel(draws["z"]) - np.ravel(draws["x"]) ** 2
        assert len(np.unique(z.round(9))) == z.size


def test_sampling_imports_nothing_that_is_slow_and_unused():
    """The first sampling of a process waits for imports, which take longer than the draws."""
    script = """
import sys, varmat as vm, varmat.distributions as dist
model = vm.Model(
    x=vm.real(prior=dist.Normal(0, 1)), y=vm.observed([1.0, 2.0], lambda x: dist.Normal(x, 1))
)
model.sample(200, 2, seed=1, tune=200, progress_bar=False)
print(*sys.modules)
"""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True, text=True, check=True, timeout=250,
    )  # fmt: skip
    slow = "arviz xarray pandas scipy.special scipy.optimize multiprocessing.context"
    slow += " varmat.solvers.differential varmat.programs.record.kinds varmat.functions.rarer"
    assert not {*slow.split()} & {*found.stdout.split()}
