"""What a sampler calls, without a sampler: refusals, errors and the values at a draw."""

from __future__ import annotations

import datetime
import re
import sys
import traceback
import warnings
from typing import ClassVar

import numpy as np
import pytest
from comparing import equal, refuses
from models.small_models import broken, told

import varmat as vm
from varmat.models.callbacks import Callbacks

# The models here that look at their parameters give this warning, which has a test of its own.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Model.sample. the log density cannot be recorded:UserWarning"
)


def quantities(x, rng):
    return {"replicate": rng.normal(x, size=2)}


def small(x):
    if vm.value(x) > 1.0:
        raise vm.DomainError("too large")
    return -0.5 * x * x


def make(f=small, **settings):
    return Callbacks(
        vm.Model(f, x=vm.real(), **{"generated_quantities": quantities, **settings}), 1
    )


def test_refusal_is_recoverable_and_no_failure():
    calls = make()
    f = calls.log_density
    with pytest.raises(vm.DomainError, match="too large") as refusal:
        f(np.array([2.0]))
    assert refusal.value.is_recoverable
    assert not calls.failures
    assert f(np.array([0.0]))[0] == 0.0


def test_overflow_on_the_way_is_quiet():
    value, _ = make(lambda x: -np.exp(np.exp(x))).log_density(np.array([10.0]))
    assert value == -np.inf


def test_quantity_that_cannot_be_at_extreme_values():
    def replicate(x, rng):
        return {"replicate": rng.poisson(np.exp(30.0 * x), size=2)}

    model = vm.Model(lambda x: -0.5 * np.sum(x**2), x=vm.real(2), generated_quantities=replicate)
    calls = Callbacks(model, 1, tune=2)  # their shape is found near zero
    assert calls.shapes["replicate"] == (2,)
    expand = calls.make_expand()
    assert np.all(expand(np.zeros(2))["replicate"] >= 0.0)
    assert np.all(np.isnan(expand(np.array([2.0, 0.0]))["replicate"]))
    assert not calls.lost
    expand(np.array([2.0, 0.0]))
    assert "lam value too large" in str(calls.lost[0])
    assert not calls.failures


def test_quantity_that_can_be_nowhere():
    with pytest.raises(ValueError, match=r"shapes \(2,\) \(3,\)") as failure:
        make(lambda x: -0.5 * x * x, generated_quantities=lambda x: {"z": np.ones(2) + np.ones(3)})
    assert not isinstance(failure.value, vm.DomainError)


@pytest.mark.parametrize(("quantities", "message"), [
    (lambda x: {"z": np.ones(2 if x > 1.0 else 3)},
     r"z has shape \(2,\) at a draw, but has shape \(3,\) at another"),
    (lambda x: {"z": 1.0} if x < 1.0 else {},
     r"z is missing at a draw, but has shape \(\) at another"),
    (lambda x: {"z": 1.0} if x > 1.0 else {},
     r"z has shape \(\) at a draw, but is missing at another"),
])  # fmt: skip
def test_quantities_of_other_shapes_are_refused(quantities, message):
    calls = Callbacks(
        vm.Model(lambda x: -0.5 * x * x, x=vm.real(), generated_quantities=quantities), 1
    )
    values = calls.make_expand()(np.array([1.5]))  # the shapes are those at 0.5
    assert {name: value.shape for name, value in values.items()} == calls.shapes
    (error,) = calls.lost
    assert re.search(message, str(error))


class Sampler:
    """A chain that asks for a start, and calls Python at two points; it fails if one is refused."""

    given: ClassVar[list] = []

    def __init__(self, compiled, seed, settings):
        self.calls, self.start = compiled
        self.given.append((seed, settings))

    def wait(self, timeout):
        try:
            self.given[-1] += (self.start(1),)
            log_density = self.calls.log_density
            for x in (-0.5, 0.5):
                value, gradient = log_density(np.full(1, x))
                assert (value, gradient.tolist()) == (-0.125, [-x])
        except vm.DomainError as error:
            raise RuntimeError("All initialization points failed") from error
        values = self.calls.make_expand()(np.full(1, 0.5))
        none = np.zeros((1, 1))
        return {
            "posterior": {name: x[np.newaxis, np.newaxis] for name, x in values.items()},
            "sample_stats": {"diverging": none, "step_size": none, "n_steps": none},
        }

    def cancel(self):
        pass


@pytest.fixture
def nutpie(monkeypatch):
    """A sampler without llvmlite, in place of nutpie's.

    Several chains of a model that cannot be recorded are sampled in another way, see `test_chains`.
    """
    pytest.importorskip("nutpie._lib")
    monkeypatch.setattr("varmat.models.native_sampling.has_native", lambda: False)
    monkeypatch.setattr(Callbacks, "compiled", lambda calls, start: (calls, start))
    monkeypatch.setattr("varmat.models.chains.Chain", Sampler)
    monkeypatch.setattr(Sampler, "given", [])


@pytest.mark.usefixtures("nutpie")
def test_what_the_sampler_gets():
    model = vm.Model(small, x=vm.real(), generated_quantities=quantities)
    result = model.sample(10, 1, seed=3, inits={"x": -3.0}, init_radius=0.5, metric="low_rank")
    assert result.posterior["replicate"].shape == (1, 1, 2)
    ((seed, settings, start),) = Sampler.given
    assert seed == 3
    assert -3.5 < start[0] < -2.5
    expected = {"target_accept": 0.8, "max_depth": 10, "metric": "low_rank", "draws": 10}
    of_all = {"chains": 1, "cores": None, "progress_bar": True}  # nutpie is not given these
    assert settings == {**expected, **of_all, "tune": 1000, "thin": 1, "keep_warmup": True}


@pytest.mark.usefixtures("nutpie")
def test_labels_of_dates_and_dimensions_without_labels():
    instants = [datetime.datetime(2020, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]
    model = vm.Model(
        small,
        x=vm.real(),
        generated_quantities=lambda x: {"z": np.ones((2, 3))},
        coords={"t": instants},
        dims={"z": ["t", "k"]},
    )
    z = model.sample(chains=1).posterior["z"]
    assert z.dims == ("chain", "draw", "t", "k")
    assert z["k"].values.tolist() == [0, 1, 2]
    assert z["t"].values[1] == np.datetime64("2020-01-02") or z["t"].values[1] == instants[1]


@pytest.mark.usefixtures("nutpie")
@pytest.mark.parametrize(("settings", "error", "message"), [
    ({"target_acept": 0.9}, TypeError, "there is no setting target_acept: did you mean target"),
    ({"maxdepth": 9}, TypeError, "there is no setting maxdepth: did you mean max_depth[?]"),
    ({"qqq": 9}, TypeError, "there is no setting qqq: there are chains, check_turning, cores,"),
    ({"metric": "dense"}, vm.DomainError, "metric is 'dense', but must be one of diag, diag_"),
    ({"target_accept": 1.0}, vm.DomainError, "target_accept is 1.0, but must be between 0"),
    ({"max_depth": 0}, vm.DomainError, "max_depth is 0, but must be an integer of at least 1"),
    ({"initial_step": "a"}, TypeError, "initial_step is 'a', which nutpie refuses: "),
    ({"init_radius": -1.0}, vm.DomainError, "init_radius is -1.0, but must be nonnegative fin"),
    ({"inits": [{"x": 1.0}] * 3}, vm.ShapeError, "inits has 3 points, but must have one, or"),
])  # fmt: skip
def test_settings_that_do_not_exist_or_fit(settings, error, message):
    refuses(error, message, vm.Model(lambda x: -0.5 * x * x, x=vm.real()).sample, 10, 2, **settings)


@pytest.mark.usefixtures("nutpie")
@pytest.mark.parametrize(("labels", "error", "message"), [
    ({"dims": {"X": ["k"]}}, TypeError,
     "dims has 'X', but must have parameters and quantities: x, replicate!"),
    ({"dims": {"replicate": ["j", "k"]}}, vm.ShapeError,
     r"the dims of replicate are j, k, but must be those of the shape \(2,\)!"),
    ({"coords": {"k": "abc"}, "dims": {"replicate": ["k"]}}, vm.ShapeError,
     r"coords has 3 labels of k, but must have 2: replicate has shape \(2,\)!"),
    ({"generated_quantities": lambda x: {"k": x, "z": np.ones(2)}, "dims": {"z": ["k"]}}, TypeError,
     "Model: k has the name of a dimension of z, but must have a different name!"),
    ({"generated_quantities": lambda x: {"chain": x}}, TypeError,
     "Model: chain has the name of a dimension of all draws, but must have a different name!"),
])  # fmt: skip
def test_labels_that_do_not_fit_are_refused(labels, error, message):
    model = vm.Model(small, x=vm.real(), **{"generated_quantities": quantities, **labels})
    refuses(error, message, model.sample)


@pytest.mark.parametrize(("settings", "error", "given", "least"), [
    ({"tune": 0}, vm.DomainError, "0", 1),     ({"draws": -1}, vm.DomainError, "-1", 0),
    ({"chains": 0}, vm.DomainError, "0", 1),   ({"cores": 0}, vm.DomainError, "0", 1),
    ({"seed": -1}, vm.DomainError, "-1", 0),   ({"draws": 1e3}, TypeError, "a float", 0),
    ({"tune": None}, TypeError, "a NoneType", 1), ({"chains": True}, TypeError, "a bool", 1),
])  # fmt: skip
@pytest.mark.usefixtures("nutpie")
def test_numbers_that_the_sampler_cannot_take(settings, error, given, least):
    model, (name,) = vm.Model(small, x=vm.real()), settings
    message = f"Model.sample: {name} is {given}, but must be an integer of at least {least}!"
    refuses(error, f"^{message}$", model.sample, **settings)
    assert model.sample(np.int32(10), np.uint8(1), np.int64(3), tune=1, cores=1)


@pytest.mark.usefixtures("nutpie")
def test_sampling_stops_with_the_error_of_the_model():
    with pytest.raises(KeyError, match="column") as failure:
        vm.Model(broken, x=vm.real()).sample()
    assert 'return x * {}["column"]' in "".join(traceback.format_exception(failure.value))


@pytest.mark.usefixtures("nutpie")
def test_sampling_stops_with_the_error_of_a_quantity():
    calls = iter(range(1, 100))
    model = vm.Model(
        small,
        x=vm.real(),
        generated_quantities=lambda x: {"z": 1.0 if next(calls) < 2 else {}["z"]},
    )
    refuses(KeyError, "z", model.sample, chains=1)


@pytest.mark.usefixtures("nutpie")
def test_errors_of_the_sampler_itself_are_raised(monkeypatch):
    monkeypatch.setattr(Sampler, "wait", lambda sampler, timeout: {}["settings"])
    refuses(KeyError, "settings", vm.Model(small, x=vm.real()).sample, chains=1)


@pytest.mark.usefixtures("nutpie")
def test_sampler_that_finds_no_start_says_so():
    model = vm.Model(lambda x: vm.normal_lpdf(x, 0.0, -1.0), x=vm.real())
    message = r"the last refusal: normal_lpdf: Scale parameter is -1.0"
    refuses(vm.DomainError, message, model.sample)


@pytest.mark.usefixtures("nutpie")
@pytest.mark.parametrize(
    ("recorded", "branches", "evaluations"),
    [(None, False, 1), (None, True, 5), (False, False, 3), (False, True, 3), (True, False, 1)],
)
def test_sampling_evaluates_once_what_can_be_recorded(recorded, branches, evaluations):
    count = []

    def log_density(x):
        count.append(x)
        if branches and vm.value(x) > 0.0:
            return -0.5 * x * x
        return -0.5 * np.square(x)

    model = vm.Model(log_density, x=vm.real(), recorded=recorded)
    model.sample(chains=1)
    assert len(count) == evaluations
    if recorded is None:  # otherwise a model sees the change
        model.log_density_gradient(np.zeros(1))
        model.log_density_gradient(np.zeros(1))
        assert len(count) == evaluations + 2


@pytest.mark.usefixtures("nutpie")
def test_what_cannot_be_recorded_is_said_once_with_the_reason():
    with told("cannot be recorded, so that every point .*: the function looks at the value"):
        vm.Model(small, x=vm.real()).sample(chains=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vm.Model(lambda x: -0.5 * x * x, x=vm.real()).sample(chains=1)
        vm.Model(small, x=vm.real(), recorded=False).sample(chains=1)


@pytest.mark.usefixtures("nutpie")
def test_sampling_what_only_a_recording_refuses():
    side = np.array([1.0, 2.0])

    def log_density(x):  # in a recording the index is a variable
        return -0.5 * np.square(x) + np.sum(side[np.where(side < x - 10.0, 1, 0)]) - 2.0

    vm.Model(log_density, x=vm.real()).sample(chains=1)


@pytest.mark.usefixtures("nutpie")
def test_sampling_what_was_to_be_recorded_and_cannot_be():
    model = vm.Model(small, x=vm.real(), recorded=True)
    message = "the function looks at the value of a variable here"
    refuses(vm.TapeError, message, model.sample)


def test_a_derivative_of_zero_is_handed_on_as_almost_zero():
    """nutpie panics at exact zeros, which a density that is flat somewhere has."""
    calls = make(lambda x: -(np.maximum(x - 1.0, 0.0) ** 2))
    value, gradient = calls.log_density(np.array([0.5]))
    assert value == 0.0
    assert 0.0 < gradient[0] < 1e-9


def test_what_ends_a_program_ends_the_sampling():
    calls = make(lambda x: sys.exit(3))
    refuses(vm.DomainError, "the model has failed", lambda: calls.log_density(np.array([0.5])))
    assert type(calls.failures[0]) is SystemExit


def test_draws_of_no_parameters_differ_between_chains():
    model = vm.Model(lambda: 1.0, generated_quantities=lambda rng: {"z": rng.normal()})
    draws = []
    for _ in range(2):
        calls = Callbacks(model, 1)
        chains = calls.make_expand(), calls.make_expand()
        draws.append([float(chain(np.empty(0))["z"]) for chain in chains for _ in range(2)])
    assert draws[0] == draws[1]
    assert len(set(draws[0])) == 4


def test_quantities_in_another_order_keep_their_names():
    def quantities(x):
        return {"k": 1.0, "j": 2.0} if x > 0 else {"j": 2.0, "k": 1.0}

    model = vm.Model(lambda x: -x * x, x=vm.real(), generated_quantities=quantities)
    assert list(Callbacks(model, 1).make_expand()(np.array([-1.0]))) == ["x", "k", "j"]
    for x in (1.0, -1.0):
        equal(model.param_constrain([x], False, True), [x, 1.0, 2.0])
    shapes = vm.Model(
        lambda x: -x * x,
        x=vm.real(),
        generated_quantities=lambda x: {"k": np.ones(2 + (vm.value(x) > 0))},
    )
    with pytest.raises(vm.ShapeError, match=r"^param_constrain: k has shape"):
        [shapes.param_constrain([x], False, True) for x in (1.0, -1.0)]
