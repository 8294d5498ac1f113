"""Chains of models that Python evaluates at every point: in processes, and in this one."""

import os
import pickle
import re
import signal
import sys
import threading
import time
import warnings
from concurrent.futures import Future

import numpy as np
import pytest
from comparing import equal
from models.small_models import groups, told
from models.test_progress import Terminal

import varmat as vm
from varmat.models import chains as module
from varmat.models.chains import DRAWS, Monitor
from varmat.parallel import executors, shares
from varmat.parallel.tasks import on_workers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("nutpie")
loky = pytest.importorskip("loky")

SETTINGS = {"draws": 20, "tune": 30, "chains": 2, "seed": 3, "progress_bar": False}
HERE = os.getpid()
BY_PROCESSES = (
    "every point is evaluated in Python, each chain by a process of its own: the function looks at "
    "the value"
)


def assert_same(result, expected):
    made, known = groups(result), groups(expected)
    assert list(made) == list(known)
    for name, group in known.items():
        assert made[name].drop_attrs().identical(group.drop_attrs())


def refusing(x, y):
    """It looks at its parameters, and refuses some."""
    if vm.value(x) > 1.0:
        raise vm.DomainError("too large")
    return -0.5 * x * x - 0.5 * np.sum(y**2)


def process(x, rng):
    return {"z": rng.normal(x, size=2), "process": os.getpid()}


def make(f=refusing, **settings):
    return vm.Model(f, x=vm.real(), y=vm.positive(3), **settings)


def test_draws_of_processes_are_those_of_one_process():
    scale = np.array(2.0)  # processes get a copy of the closure

    def log_density(x, y):
        return refusing(x * scale, y)

    model = make(
        log_density, generated_quantities=process, coords={"j": ["a", "b", "c"]}, dims={"y": ["j"]}
    )
    with told(BY_PROCESSES):
        result = model.sample(**SETTINGS, cores=2)
    with told("every point is evaluated in Python: the function looks"):
        expected = model.sample(**SETTINGS, cores=1)
    numbers = result.posterior["process"].values
    assert len({HERE, *numbers[:, 0]}) == 3
    assert np.all(numbers == numbers[:, :1])
    for each in (result, expected):
        for group in ("posterior", "warmup_posterior"):
            each[group]["process"][...] = 0.0
    assert_same(result, expected)
    assert result.posterior.sizes == {"chain": 2, "draw": 20, "j": 3, "z_dim_0": 2}
    assert result.posterior.chain.values.tolist() == [0, 1]
    assert result.sample_stats["diverging"].dtype == bool
    assert not np.array_equal(result.posterior["x"][0], result.posterior["x"][1])
    with pytest.warns(UserWarning, match="every point"):
        (alone,) = groups(model.sample(**{**SETTINGS, "chains": 1}))["posterior"]["x"].values
    equal(alone, expected.posterior["x"].values[0])


@pytest.mark.parametrize("recorded", [None, False, True])
def test_models_can_be_sent_to_other_processes(recorded):
    """With functions that are defined here, and with their recordings, which are made anew
    there.
    """
    cloudpickle = pytest.importorskip("cloudpickle")
    density = vm.recorded(lambda y: vm.normal_lpdf(y, 0.5, 2.0))
    density(np.ones(3))
    target = lambda x, y: vm.gamma_lpdf(y, 2.0, 1.0) + vm.std_normal_lpdf(x)  # noqa: E731
    model = make(target, recorded=recorded, generated_quantities=lambda y: {"z": density(y)[0]})
    q = np.array([0.3, -0.2, 0.1, 0.4])
    value, gradient = model.log_density_gradient(q)
    there = pickle.loads(cloudpickle.dumps(model))
    assert there.log_density_gradient(q)[0] == value
    equal(there.log_density_gradient(q)[1], gradient)
    assert there.constrain(q, True, True)["z"] == model.constrain(q, True, True)["z"]


class OddError(Exception):
    """Made of something else than what it says, by which it cannot be pickled."""

    def __init__(self, count):
        super().__init__(f"there are {count}")


def test_which_errors_travel():
    class OwnError(Exception):
        """A class without a module, as those of a notebook."""

    class Elsewhere:
        def submit(self, _, process, request, parcel):
            future = Future()
            future.set_result(shares.run(("another machine", process[1]), request, parcel))
            return future

    def sample(chain):
        raise errors[chain]

    refusal = vm.DomainError("x: Scale is -1.0, but must be positive!")
    errors = [KeyError("column"), refusal, OwnError("own"), OddError(3)]
    for i, error in enumerate(errors):
        expected = RuntimeError if i == 3 else type(error)
        text = "OddError: there are 3" if i == 3 else str(error)
        with pytest.raises(expected, match=f"^{re.escape(text)}$") as failure:
            on_workers("Model.sample", sample, [i], Elsewhere(), "")
        assert type(failure.value) is expected
        assert not hasattr(failure.value, "__notes__")
        assert type(failure.value.__cause__) is executors.RemoteError
        assert "in sample" in str(failure.value.__cause__)


def test_a_process_that_is_killed():
    def log_density(x, y):
        if os.getpid() != HERE:
            os.kill(os.getpid(), signal.SIGKILL)
        return refusing(x, y)

    message = "chain was killed or crashed, .*; with cores=1, chains are sampled in this"
    with told(BY_PROCESSES), pytest.raises(RuntimeError, match=message) as failure:
        make(log_density).sample(**SETTINGS, cores=2)
    assert isinstance(failure.value.__cause__, loky.BrokenProcessPool)


def slow(x, y):
    time.sleep(2e-3)
    return refusing(x, y)


@pytest.mark.parametrize("cores", [1, 2])
def test_an_interrupt_returns_the_draws_that_there_are(cores, monkeypatch):
    def show(monitor, at_once=False):
        if not (monitor.status[0, DRAWS] < 40 or at_once or interrupted):
            interrupted.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    interrupted = []
    monkeypatch.setattr(Monitor, "show", show)
    begun = time.monotonic()
    with (
        pytest.warns(UserWarning, match="every point is evaluated in Python"),
        pytest.warns(UserWarning, match="interrupted: ") as said,
    ):
        result = make(slow).sample(**{**SETTINGS, "draws": 10**6, "chains": 3}, cores=cores)
    assert {each.filename for each in said} == {__file__}
    assert time.monotonic() - begun < 100.0
    assert result.warmup_posterior.sizes["draw"] == 30
    x = result.posterior["x"].values
    assert 1 <= len(x) <= cores
    assert 1 <= x.shape[1] < 10**6
    assert np.all(np.isfinite(x))
    assert result.sample_stats["diverging"].dtype == bool


def test_an_interrupt_before_there_is_a_draw(monkeypatch):
    monkeypatch.setattr(module, "run_chains", lambda *_: {})
    with pytest.warns(UserWarning, match="every point"), pytest.raises(KeyboardInterrupt):
        make().sample(**SETTINGS, cores=1)


# Reasons why there are no processes.


@pytest.mark.parametrize("recorded", [None, False])
def test_without_loky_chains_run_one_after_the_other(monkeypatch, recorded):
    monkeypatch.setitem(sys.modules, "loky", None)
    text = r'after the other.*loky is not installed: in a clone, pip install -e "\.\[sample]"'
    with told(text) as said:
        result = make(recorded=recorded, generated_quantities=process).sample(**SETTINGS)
    assert ("the function looks" in str(said[0].message)) is (recorded is None)
    assert np.all(result.posterior["process"] == HERE)


def test_one_core_needs_no_loky(monkeypatch):
    monkeypatch.setitem(sys.modules, "loky", None)
    make(recorded=False).sample(**SETTINGS, cores=1)


LOCK = threading.Lock()


def with_a_global(x, y):
    with LOCK:
        return refusing(x, y)


def test_what_cannot_be_pickled_is_named(monkeypatch):
    lock = threading.Lock()

    def of_a_closure(x, y):
        with lock:
            return refusing(x, y)

    class Callable:
        def __call__(self, x, y):
            return refusing(x, y)

        def __reduce__(self):
            raise TypeError("no")

    with_a_global_here = type(with_a_global)(
        with_a_global.__code__, {**globals(), "__name__": "__main__"}
    )
    fault = "cannot be pickled: cannot pickle '_thread.lock' object"
    counted = make(generated_quantities=lambda x: {"z": float(lock.locked())})
    cases = [
        (make(of_a_closure), f"lock, which the log density reads, {fault}"),
        (make(with_a_global_here), f"LOCK, which the log density reads, {fault}"),
        (make(Callable()), "the log density cannot be pickled: no"),
        (make(data={"lock": lock}), f"the data lock {fault}"),
        (counted, f"lock, which generated_quantities reads, {fault}"),
    ]
    monkeypatch.setattr(module, "run_chains", lambda *_: {})
    for model, text in cases:
        said = re.escape(f"one chain after the other ({text}): the function looks")
        with pytest.warns(UserWarning, match=said), pytest.raises(KeyboardInterrupt):
            model.sample(**SETTINGS, cores=2)


def test_processes_that_cannot_start_or_load(monkeypatch):
    monkeypatch.setattr(module, "run_chains", lambda *_: {})

    class Daemon:
        daemon = True

    with monkeypatch.context() as context:
        context.setattr("multiprocessing.current_process", Daemon)
        said = "one after the other, for this process may not start others"
        with pytest.warns(UserWarning, match=said), pytest.raises(KeyboardInterrupt):
            make(recorded=False).sample(**SETTINGS, cores=2)

    class Elsewhere:
        def __init__(self, *_, **__):
            pass

        def submit(self, *_):
            return self

        def result(self):
            return module._loads(b"cno_such_module\nname\n.")

        def shutdown(self, **_):
            pass

    monkeypatch.setattr(loky, "ProcessPoolExecutor", Elsewhere)
    said = "another process cannot have the model: ModuleNotFoundError: No module named 'no_su"
    with pytest.warns(UserWarning, match=said), pytest.raises(KeyboardInterrupt):
        make(recorded=False).sample(**SETTINGS, cores=2)


def test_what_is_shown_of_chains(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    make(slow, recorded=False).sample(**{**SETTINGS, "progress_bar": True}, cores=1)
    shown = sys.stderr.getvalue()
    assert shown.count("Progress") == shown.count("\x1b[4F") + 1
    heading, _, *chains = sys.stderr.table()
    assert heading[:2] == ["Progress", "Draws"]
    assert [line[:2] for line in chains] == [["━" * 35, "50"]] * 2
    sys.stderr.truncate(0)
    make(recorded=False).sample(**SETTINGS, cores=1)
    assert not sys.stderr.getvalue().strip("\0")
