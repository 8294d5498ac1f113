"""Models on executors: chains, points, log-likelihoods and predictive draws, equal to those without
one.
"""

import os
import re
import signal
import sys
import traceback
import warnings
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from comparing import close, close_slopes, equal, refuses
from models.small_models import groups, told
from models.test_progress import Terminal

import varmat as vm
from varmat.models import chains as module
from varmat.models.chains import DRAWS, SECONDS, STOP, Job, Monitor
from varmat.parallel import executors

loky = pytest.importorskip("loky", reason="loky is not installed")
# loky restarts a worker that grows, as one does that imports nutpie late.
pytestmark = pytest.mark.filterwarnings("ignore:A worker was restarted:UserWarning")

HERE = os.getpid()
SETTINGS = {"draws": 20, "tune": 30, "chains": 3, "seed": 3, "progress_bar": False}
Y = np.array([0.3, -0.5, 1.1])


@pytest.fixture(scope="module")
def pool():
    with loky.ProcessPoolExecutor(
        2, initializer=executors.begin, initargs=(executors.LARGE,)
    ) as executor:
        yield executor


@pytest.fixture
def nutpie():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("nutpie", reason="nutpie is not installed")


def density(mu, sigma, y):
    return vm.normal_lpdf(y, mu, sigma) + vm.std_normal_lpdf(mu) + vm.exponential_lpdf(sigma, 1.0)


def refusing(mu, sigma, y):
    """It looks at a parameter."""
    if vm.value(mu) > 1.5:
        raise vm.DomainError("too large")
    return density(mu, sigma, y)


def terms(mu, sigma, y):
    return {"y": vm.normal_lpdf.pointwise(y, mu, sigma)}


def quantity(mu, rng):
    return {"z": rng.normal(mu)}


def make(f=density, **settings):
    given = {"generated_quantities": quantity, "log_likelihood": terms, **settings}
    return vm.Model(f, mu=vm.real(), sigma=vm.positive(), data={"y": Y}, **given)


def assert_same(result, expected, names=("warmup_posterior", "posterior", "log_likelihood")):
    made, known = groups(result), groups(expected)
    assert set(made) == set(known)
    for name in names:
        assert made[name].drop_attrs().identical(known[name].drop_attrs())


# --- chains ---


@pytest.mark.usefixtures("nutpie")
@pytest.mark.parametrize("settings", [{}, {"recorded": False}], ids=["recorded", "in Python"])
def test_the_draws_are_those_without_an_executor(pool, settings):
    model = make(**settings)
    expected = model.sample(**SETTINGS, cores=1)
    with ThreadPoolExecutor(2) as threads:
        for executor in ("serial", threads, pool):
            assert_same(model.sample(**SETTINGS, executor=executor), expected)
    assert len(np.unique(expected.posterior["mu"])) > 50


@pytest.mark.usefixtures("nutpie")
def test_a_model_that_cannot_be_recorded_is_told_of_once(pool):
    with told("every point is evaluated in Python: the function looks"):
        make(refusing).sample(**SETTINGS, executor=pool)


@pytest.mark.usefixtures("nutpie")
def test_what_a_chain_would_share_out_is_computed_by_its_worker():
    """One thread: a second request to it would wait for ever."""

    def part(y, start, end, mu, sigma):
        return vm.normal_lpdf(y, mu, sigma)

    with ThreadPoolExecutor(1) as pool:

        def log_density(mu, sigma, y):
            return vm.reduce_sum(part, y, 1, mu, sigma, executor=pool) - mu**2 - sigma

        settings = {**SETTINGS, "draws": 5, "tune": 10, "chains": 2}
        for recorded in (True, False):
            model = make(log_density, recorded=recorded)
            assert_same(model.sample(**settings, executor=pool), model.sample(**settings, cores=1))


def killing(path, times):
    """A log density that kills another process that evaluates it so often, once."""
    count = [0]

    def log_density(mu, sigma, y):
        count[0] += 1
        if count[0] == times and os.getpid() != HERE and not os.path.exists(path):
            with open(path, "w", encoding="utf-8"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return density(mu, sigma, y)

    return log_density


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.usefixtures("nutpie")
def test_a_worker_that_is_killed_while_it_samples_loses_nothing(tmp_path, monkeypatch):
    """All chains go to one process, and those that it has not sampled to a fresh one."""
    monkeypatch.setattr(executors, "processors", lambda: 1)
    path = tmp_path / "was here"
    result = make(killing(str(path), 500), recorded=False).sample(**SETTINGS, executor="processes")
    assert path.exists()
    assert_same(result, make(recorded=False).sample(**SETTINGS, cores=1))


class Breaking:
    """An executor that runs what it is given at once, and is broken by the second chain that
    samples.
    """

    _max_workers = 1

    def __init__(self):
        self.count = 0

    def submit(self, f, *args):
        future = Future()
        self.count += 1
        if self.count == 2:
            future.set_exception(BrokenExecutor("lost"))
        else:
            future.set_result(f(*args))
        return future


@pytest.mark.usefixtures("nutpie")
def test_only_the_chains_of_a_lost_worker_are_sampled_again(monkeypatch):
    model, ran = make(log_likelihood=None), []
    run = Job.__call__
    monkeypatch.setattr(Job, "__call__", lambda job, chain: ran.append(chain) or run(job, chain))
    text = r"is broken; the chains 1 are computed in this process$"
    with pytest.warns(RuntimeWarning, match=text):
        result = model.sample(**SETTINGS, executor=Breaking())
    assert ran == [0, 2, 1]
    assert_same(result, model.sample(**SETTINGS), ("warmup_posterior", "posterior"))


@pytest.mark.usefixtures("nutpie")
def test_errors_come_with_their_chain_and_their_line(pool):
    def log_density(mu, sigma, y):
        if os.getpid() != HERE:
            raise KeyError("column")
        return density(mu, sigma, y)

    with pytest.raises(KeyError, match=r"^'column'") as failure:
        make(log_density, recorded=False).sample(**SETTINGS, executor=pool)
    # The chain whose error comes first is named.
    where = r"in chain \d of Model.sample, in another process"
    assert re.fullmatch(where, failure.value.__notes__[-1])
    assert "in log_density" in "".join(traceback.format_exception(failure.value))


@pytest.mark.usefixtures("nutpie")
def test_progress_of_another_process(pool, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    make().sample(**{**SETTINGS, "progress_bar": True}, executor=pool)
    heading, _, *chains = sys.stderr.table()
    assert heading[:2] == ["Progress", "Draws"]
    assert [line[:2] for line in chains] == [["━" * 35, "50"]] * 3


@pytest.mark.usefixtures("nutpie")
def test_an_interrupt_returns_the_draws_that_there_are(monkeypatch):
    def show(monitor, at_once=False):
        if not at_once and monitor.status[0, DRAWS] >= 60 and not interrupted:
            interrupted.append(True)
            os.kill(HERE, signal.SIGINT)

    interrupted = []
    monkeypatch.setattr(Monitor, "show", show)
    settings = {**SETTINGS, "draws": 10**6}
    with ThreadPoolExecutor(1) as one, told("the result is without the chains 1, 2"):
        result = make(recorded=False, log_likelihood=None).sample(**settings, executor=one)
    x = result.posterior["mu"].values
    assert 30 <= x.shape[1] < 10**6
    assert np.all(np.isfinite(x[0, :30]))


def test_a_chain_that_is_not_seen_is_given_up_after_an_interrupt(monkeypatch):
    """A worker of another machine does not know that it is to stop."""
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setattr(module, "BETWEEN", 0.0)
    job = Job(None, 1, None, {**SETTINGS, "thin": 1}, is_shared=True)
    monitor = Monitor(job, np.zeros((4, 5)))
    monitor.pressed.add()
    running = Future()
    running.set_running_or_notify_cancel()
    assert monitor.result(0, running) is None
    assert monitor.status[STOP, 0]
    monitor.status[1, SECONDS] = 1.0
    running.set_result("draws")
    assert monitor.result(1, running) == "draws"
    assert monitor.result(2, Future()) is None  # it has not begun, so it is cancelled
    for machine, path in (("another machine", ""), (executors.identity()[0], "/no/such/file")):
        elsewhere = replace(job, machine=machine, path=path).status()
        assert elsewhere.shape == (4, 5)
        assert not elsewhere[STOP, 0]


@pytest.mark.usefixtures("nutpie")
def test_what_cannot_be_together_is_refused():
    for settings, message in [
        ({"cores": 2, "executor": "threads"},
         "cores is 2 with an executor, but must be left out: the exec"),
        ({"executor": 3}, "executor is 3, but must be an executor of concurrent.futures"),
    ]:  # fmt: skip
        refuses(TypeError, f"^Model.sample: {message}", make().sample, **SETTINGS, **settings)


# --- points ---


@pytest.mark.parametrize("recorded", [None, True, False])
def test_many_points_are_as_one_by_one(pool, recorded):
    # It refuses small scales.
    model = make(lambda mu, sigma, y: density(mu, sigma - 0.5, y), recorded=recorded)
    points = np.random.default_rng(1).uniform(-2.0, 2.0, (20, 2))
    values, gradients = model.log_density_gradient.map(points)
    refused = 0
    for q, *found in zip(points, values, gradients, strict=True):
        try:
            expected = model.log_density_gradient(q)
        except vm.DomainError:
            refused += 1
            assert found[0] == -np.inf
            assert np.isnan(found[1]).all()
            continue
        close_slopes(found, expected, 1e-12)
    assert 3 < refused < 17
    for executor in ("serial", "threads", pool):
        found = model.log_density_gradient.map(points, executor)
        equal(found[0], values)
        equal(found[1], gradients)
    without = model.log_density_gradient.map(points.tolist(), propto=False, jacobian=False)[0]
    for q, value in zip(points[without > -np.inf], without[without > -np.inf], strict=True):
        close(value, model.log_density(q, False, False), 1e-13)
    none = model.log_density_gradient.map(np.empty((0, 2)), "threads")
    assert (none[0].shape, none[1].shape) == ((0,), (0, 2))


@pytest.mark.parametrize("recorded", [None, False])
def test_errors_at_a_point(pool, recorded):
    def log_density(mu, sigma, y):
        if vm.value(mu) > 1.0:
            raise KeyError("column")
        return density(mu, sigma, y)

    points = np.zeros((30, 2))
    points[17, 0] = 2.0
    for executor in (None, pool):
        with pytest.raises(KeyError, match=r"^'column'") as failure:
            make(log_density, recorded=recorded).log_density_gradient.map(points, executor)
        assert failure.value.__notes__[0] == "log_density_gradient.map: at point 17, counted from 0"
        # Newer versions of cloudpickle drop the file, and with it the text of the line.
        assert "in log_density" in "".join(traceback.format_exception(failure.value))


def test_points_that_do_not_fit():
    gradient = make().log_density_gradient
    said = "^log_density_gradient.map: "
    for points, shape in (([0.0, 1.0], r"\(2,\)"), (np.zeros((4, 3)), r"\(4, 3\)"), (1.0, r"\(\)")):
        message = rf"{said}points has shape {shape}, but must have shape \(m, 2\)!$"
        refuses(vm.ShapeError, message, gradient.map, points)
    message = f"{said}executor is 1, but must be an executor"
    refuses(TypeError, message, gradient.map, np.zeros((1, 2)), 1)


def test_a_copy_has_a_gradient_of_its_own():
    import copy
    import pickle

    model = make(log_likelihood=None, generated_quantities=None)
    assert model.log_density_gradient is model.log_density_gradient
    assert repr(model.log_density_gradient) == f"{model!r}.log_density_gradient"
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.log_density_gradient._model is other


# --- draws ---


def simulate(mu, sigma, rng):
    return {"y": vm.normal_rng(mu, sigma, rng=rng, size=2)}


def assert_equal_draws(made, expected):
    assert list(made) == list(expected)
    for name, x in expected.items():
        equal(made[name], x)


def test_predictive_draws_on_executors(pool):
    model, rng = make(), np.random.default_rng(2)
    draws = {"mu": rng.normal(size=(2, 130)), "sigma": rng.gamma(2.0, size=(2, 130))}
    expected = model.sample_posterior_predictive(draws, simulate, seed=1)["posterior_predictive"]
    assert len(np.unique(expected["y"])) == 520

    def prior(rng):
        return {"mu": rng.normal(), "sigma": rng.gamma(2.0)}

    drawn = model.sample_prior_predictive(prior, simulate, draws=130, seed=1)
    for executor in ("threads", pool):
        where = {"seed": 1, "executor": executor}
        found = model.sample_posterior_predictive(draws, simulate, **where)
        assert_equal_draws(found["posterior_predictive"], expected)
        others = model.sample_prior_predictive(prior, simulate, draws=130, **where)
        for group in ("prior", "prior_predictive"):
            assert_equal_draws(others[group], drawn[group])


def test_an_error_of_a_simulation_says_at_which_draw(pool):
    def failing(mu, rng):
        if mu == 200.0:
            raise KeyError("column")
        return {"y": mu}

    draws = {"mu": np.arange(260.0).reshape(2, 130), "sigma": np.ones((2, 130))}
    for executor in (None, pool):
        with pytest.raises(KeyError, match="column") as failure:
            make().sample_posterior_predictive(draws, failing, executor=executor)
        where = "sample_posterior_predictive: at draw 200, counted from 0 through all chains"
        assert failure.value.__notes__[0] == where


@pytest.mark.parametrize("count", [130, 600])
def test_quantities_and_log_likelihoods_of_other_draws(pool, count):
    """Of few draws they are evaluated one by one, of many by a program."""
    pytest.importorskip("arviz", reason="ArviZ is not installed")
    model, rng = make(), np.random.default_rng(2)
    q = rng.normal(size=(2, count, 2))
    expected = model.to_arviz(q, seed=1)
    names = ("posterior", "sample_stats", "log_likelihood")
    for executor in ("threads", pool):
        assert_same(model.to_arviz(q, seed=1, executor=executor), expected, names)
    by_name = {name: expected.posterior[name].values for name in ("mu", "sigma")}
    found, expected = (model.to_arviz(by_name, seed=1, executor=each) for each in (pool, None))
    assert_same(found, expected, ("posterior", "log_likelihood"))


@pytest.fixture(scope="module", autouse=True)
def no_processes_remain():
    yield
    left = executors.pools._pools.pop("processes", None)
    if left is not None:
        left.shutdown(wait=True, kill_workers=True)
