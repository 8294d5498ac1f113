"""Sums and vectors of many jobs: Stan's values, derivatives along all routes, what is sent and
kept, and refusals.
"""

import re
import threading
from collections import OrderedDict
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from comparing import close, equal, refuses
from stan import check, entries, number

import varmat as vm
from varmat.parallel import executors, mapped, shares
from varmat.parallel.tasks import on_workers
from varmat.testing import expect_ad, expect_ad_matvar

PHI, THETA = np.array([1.2, -0.4]), np.array([[0.5, 0.1], [-0.3, 0.2], [0.7, -0.6]])
REALS, INTEGERS = np.array([[0.1], [0.2], [0.3]]), np.array([[1], [2], [3]])
Y = np.array([0.1, -0.4, 1.2, 2.2, 0.7])


def job(phi, theta, x_r, x_i):
    return np.stack([phi[0] * theta[0] + x_r[0], phi[1] * np.exp(theta[1]) * x_i[0]])


def part(y, start, end, mu, sigma):
    return vm.normal_lpdf(y, mu, sigma)


FUNCTIONS = {"map_rect": job, "reduce_sum": part, "reduce_sum_static": part}


@pytest.mark.parametrize("executor", ["serial", "threads"])
@pytest.mark.parametrize("entry", entries("parallel"))
def test_agrees_with_stan(entry, executor):
    function = getattr(vm, entry["function"])
    check(partial(function, FUNCTIONS[entry["function"]], executor=executor), entry, rtol=1e-14)


@pytest.mark.parametrize("entry", entries("parallel", throws=True))
def test_what_stan_refuses(entry):
    arguments = [number(x) for x, _ in entry["args"]]
    with pytest.raises((vm.DomainError, vm.ShapeError), match=f"^{entry['function']}: "):
        getattr(vm, entry["function"])(FUNCTIONS[entry["function"]], *arguments)


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_all_routes_agree(executor):
    def jobs(phi, theta):
        return vm.map_rect(job, phi, theta, REALS, INTEGERS, executor=executor)

    def terms(y, mu, sigma):
        return vm.reduce_sum_static(part, y, 2, mu, sigma, executor=executor)

    expect_ad(jobs, PHI, THETA)
    expect_ad(terms, Y, 0.3, 1.2)
    expect_ad(lambda mu, sigma: vm.reduce_sum(part, Y, 2, mu, sigma, executor=executor), 0.3, 1.2)


def test_matvars():
    expect_ad_matvar(lambda phi, theta: vm.map_rect(job, phi, theta, REALS, INTEGERS), PHI, THETA)
    expect_ad_matvar(lambda y: vm.reduce_sum(part, y, 2, 0.3, 1.2), Y)


def test_structures():
    def of_dict(p, theta, k):
        return p["scale"] * np.sum(theta[0]) * theta[1] + p["shift"][0] * k

    def together(scale, shift, a, b):
        shared = {"scale": scale, "shift": [shift]}
        return vm.map_rect(of_dict, shared, [(a, 2.0), (np.ones(2), b)], [1, 2])

    def of_list(x, i, j):
        """A part of a list is a list, whose items may be variables or not."""
        return x[0] * (i + 1) + np.sum(x[-1]) ** 2

    close(together(2.0, 3.0, np.array([1.0, 2.0]), 5.0), [15.0, 26.0], 1e-7)
    expect_ad(together, 2.0, 3.0, np.array([1.0, 2.0]), 5.0)
    expect_ad(lambda a, b: vm.reduce_sum_static(of_list, [a, 2.0, b], 2), 1.5, -0.5)


def test_the_slices_are_those_of_python():
    seen = []

    def look(x, start, end):
        seen.append((start, end, x.tolist()))
        return float(np.sum(x))

    x = np.arange(7.0)
    assert vm.reduce_sum_static(look, x, 3, executor="serial") == 21.0
    assert seen == [(0, 3, [0.0, 1.0, 2.0]), (3, 6, [3.0, 4.0, 5.0]), (6, 7, [6.0])]
    seen.clear()
    with ThreadPoolExecutor(1) as pool:
        assert vm.reduce_sum(look, x, 3, executor=pool) == 21.0
        # Each part has at least grainsize terms.
        assert [each[:2] for each in seen] == [(0, 3), (3, 7)]
        seen.clear()
        assert vm.reduce_sum(look, x, 1, executor=pool) == 21.0
        assert len(seen) == mapped.CHUNKS


def test_a_regression_is_that_without_slices():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)

    def whole(q):
        return vm.bernoulli_logit_glm_lpmf(y, x, q[0], q[1:])

    def sliced(q, executor):
        def of_rows(rows, start, end, alpha, beta):
            return vm.bernoulli_logit_glm_lpmf(rows, x[start:end], alpha, beta)

        return vm.reduce_sum_static(of_rows, y, 17, q[0], q[1:], executor=executor)

    q, v = np.array([0.2, -0.4, 0.7, 0.1]), np.array([1.0, 0.5, -0.25, 2.0])
    value, gradient = vm.value_and_grad(whole)(q)
    with ThreadPoolExecutor(2) as two, ThreadPoolExecutor(1) as one:
        for _ in range(4):
            found = vm.value_and_grad(partial(sliced, executor=two))(q)
            close(found[0], value, 1e-13)
            close(found[1], gradient, 1e-12)
        product = vm.hessian_times_vector(partial(sliced, executor=two), q, v)
        close(product, vm.hessian_times_vector(whole, q, v), 1e-12)
        alone = vm.value_and_grad(partial(sliced, executor=one))(q)
    assert alone[0] == found[0]
    equal(alone[1], found[1])


@pytest.mark.parametrize("executor", ["threads", "serial"])
def test_the_last_digits_are_those_of_the_first_call(executor):
    """Numbers of many sizes, whose sum tells in which order and how they were added."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=300) * 10.0 ** rng.uniform(-3, 3, 300)
    q, v = np.array([0.3, 1.2]), np.array([1.0, -0.5])

    def f(q):
        return vm.reduce_sum_static(part, y, 29, q[0], np.exp(q[1]), executor=executor)

    def found():
        value, gradient = vm.value_and_grad(f)(q)
        rate = vm.jvp(f, (q,), (v,))
        return [value, *gradient, *rate, *vm.hessian_times_vector(f, q, v), f(vm.var(q)).val]

    first = found()
    for _ in range(12):
        assert found() == first
    assert first[0] == first[3] == first[-1]


def test_within_a_recording_the_jobs_are_shared_out_at_every_run():
    f = vm.recorded(lambda mu: vm.reduce_sum_static(part, Y, 2, mu, 1.2))
    for mu in (0.3, 0.3, -1.0):
        value, gradient = f(mu)
        expected = vm.value_and_grad(lambda mu: vm.normal_lpdf(Y, mu, 1.2))(mu)
        close([value, gradient], expected, 1e-14)


def test_other_combinations_of_the_results():
    """The gradient of the sum is sent with the values. Other weights need a second request."""

    def one_by_one(theta):
        jobs = zip(theta, REALS, INTEGERS, strict=True)
        return np.concatenate([job(PHI, *each) for each in jobs])

    def mapped(theta):
        return vm.map_rect(job, PHI, theta, REALS, INTEGERS)

    for w in (np.full(6, 2.0), np.arange(6.0)):
        found, expected = (
            vm.gradient(lambda x, f=f, w=w: w @ f(x), THETA) for f in (mapped, one_by_one)
        )
        close(found, expected, 1e-14)

    def of_sizes(_, a, n):
        return a * np.arange(1.0, n + 1)

    expect_ad(lambda a: vm.map_rect(of_sizes, 0.0, a, [3, 1, 2]), np.array([1.0, 2.0, 3.0]))


def test_results_of_one_element_are_recorded_as_numbers():
    x = np.linspace(-1.0, 1.0, 12).reshape(4, 3)

    def f(phi, theta, x, shape):
        return np.reshape(np.sum(np.exp(phi * theta * x)), shape)

    def total(q, weights, shapes):
        return weights @ vm.map_rect(f, q[0], q[1:], x, shapes)

    def directly(q, weights):
        return np.sum(weights * np.sum(np.exp(q[0] * q[1:][:, None] * x), axis=1))

    q = np.array([0.5, 1.0, -2.0, 0.3, 0.7])
    for weights in (np.full(4, 3.0), np.arange(4.0)):
        expected = vm.value_and_grad(directly)(q, weights)
        for _ in range(4):
            found = vm.value_and_grad(total)(q, weights, [(), (1,), (1, 1), ()])
            close(found[0], expected[0], 1e-14)
            close(found[1], expected[1], 1e-13)


def test_sizes_must_not_depend_on_parameters():
    def f(phi, theta):
        return theta * np.ones(1 if vm.value(phi) < 1.0 else 2)

    gradient = vm.grad(lambda phi: np.sum(vm.map_rect(f, phi, [1.0])))
    gradient(0.5)
    message = r"^map_rect: f returns an array of shape \(2,\), but one element before; "
    refuses(vm.ShapeError, message, gradient, 2.0)


def test_several_threads_may_call_at_once():
    gradient = vm.value_and_grad(lambda mu: vm.reduce_sum_static(part, Y, 2, mu, 1.2))
    points = np.linspace(-1.0, 1.0, 24).tolist()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(gradient, points))
    expected = [vm.value_and_grad(lambda mu: vm.normal_lpdf(Y, mu, 1.2))(x) for x in points]
    close(found, expected, 1e-13)


def test_in_a_model():
    def density(mu, likelihood):
        return vm.std_normal_lpdf(mu) + likelihood(mu)

    sums = partial(density, likelihood=lambda mu: vm.reduce_sum(part, Y, 2, mu, 1.2))
    model = vm.Model(lambda mu: sums(mu), {"mu": vm.real()}, recorded=True)
    whole = partial(density, likelihood=lambda mu: vm.normal_lpdf(Y, mu, 1.2))
    for _ in range(4):
        value, gradient = model.log_density_gradient(np.array([0.3]))
        close([value, *gradient], list(vm.value_and_grad(whole)(0.3)), 1e-13)


def test_no_jobs():
    assert vm.map_rect(job, PHI, [], [], []).shape == (0,)
    assert vm.gradient(lambda mu: vm.reduce_sum(part, [], 1, mu, 1.0) + mu, 0.5) == 1.0


def test_calls_within_jobs_are_not_shared_out_again():
    def outer(x, start, end, mu):
        return vm.reduce_sum_static(part, x, 1, mu, 1.2)

    assert executors.processors() >= 1
    with ThreadPoolExecutor(1) as pool:  # the inner sum would wait for the thread in which it runs
        f = lambda mu: vm.reduce_sum_static(outer, Y, 2, mu, executor=pool)  # noqa: E731
        close(vm.gradient(f, 0.3), 1.5972222222222223, 1e-14)


# --- what workers recognise ---


class Other(Executor):
    """Run tasks at once, like a process with its own memory, and count what is sent to it."""

    def __init__(self):
        self.known, self.works, self.jobs = {}, 0, 0

    def submit(self, function, process, request, parcel=None):
        future = Future()
        if parcel is not None:
            self.works += parcel[0] is not None
            self.jobs += 1
        mine, shares._CACHE = shares._CACHE, self.known
        try:
            future.set_result(function(("elsewhere", 0), request, parcel))
        except Exception as error:
            future.set_exception(error)
        finally:
            self.known, shares._CACHE = shares._CACHE, mine
        return future


@pytest.fixture
def other():
    executor = Other()
    executor.known, executor._max_workers = OrderedDict(), 1
    return executor


def test_data_that_a_worker_has_are_not_sent_again(other):
    data = np.arange(2000.0)

    def f(x, start, end, mu, k):
        return np.sum((x - mu) ** 2) * k

    def total(mu, k=1, x=data):
        return vm.reduce_sum_static(f, x, 500, mu, k, executor=other)

    expected = vm.value_and_grad(lambda mu: np.sum((data - mu) ** 2))(1.5)
    close(vm.value_and_grad(total)(1.5), expected, 1e-13)
    assert (other.works, other.jobs) == (1, 4)
    for mu in (1.0, 2.0, 3.0):
        vm.gradient(total, mu)
    vm.hessian(total, 1.0)
    assert (other.works, other.jobs) == (1, 4)
    vm.gradient(total, 1.0, 2)  # the data are new
    assert (other.works, other.jobs) == (2, 8)
    vm.gradient(total, 1.0, 2, data.copy())
    assert (other.works, other.jobs) == (3, 12)
    other.known.clear()  # a new worker knows nothing
    close(vm.value_and_grad(total)(1.5), expected, 1e-13)
    assert (other.works, other.jobs) == (4, 16)


def test_functions_that_are_made_anew_are_known_again(other):
    def total(mu, factor):
        def f(x, start, end, mu):
            return factor[0] * np.sum(x - mu)

        return vm.reduce_sum_static(f, Y, 5, mu, executor=other)

    for _ in range(3):
        assert vm.gradient(total, 1.0, np.array([2.0])) == -10.0
    assert other.works == 1
    assert vm.gradient(total, 1.0, np.array([3.0])) == -15.0
    assert other.works == 2
    changing = np.array([2.0])
    assert vm.gradient(total, 1.0, changing) == -10.0
    changing[0] = 4.0  # small arrays are compared by their contents
    assert vm.gradient(total, 1.0, changing) == -20.0


def test_works_are_forgotten_in_time(other):
    for k in range(shares.MOST_WORKS + 3):
        assert vm.reduce_sum_static(lambda x, i, j, k: float(k), Y, 5, k, executor=other) == k
    assert len(shares._CACHE) <= shares.MOST_WORKS
    assert len(mapped._CALLS) <= shares.MOST_WORKS


# --- errors ---


def test_errors_say_which_job():
    def f(x, start, end, sigma):
        return vm.normal_lpdf(x, 0.0, sigma - start)

    for executor in ("serial", "threads"):

        def total(sigma, executor=executor):
            return vm.reduce_sum_static(f, Y, 2, sigma, executor=executor)

        for call in (total, vm.grad(total)):
            with pytest.raises(
                vm.DomainError,
                match=r"^normal_lpdf: Scale parameter is -1.0, but must be positive!",
            ) as caught:
                call(1.0)
            assert "in job 1 of reduce_sum_static" in caught.value.__notes__
            assert any(entry.name == "f" for entry in caught.traceback)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vm.map_rect(job, PHI, THETA, REALS[:2], INTEGERS), vm.ShapeError,
     "map_rect: data argument 1 has 2 items, but must have one for each of the 3 jobs!"),
    (lambda: vm.map_rect(job, PHI, 3.0), vm.ShapeError,
     "map_rect: jobs is a scalar, but must be an array or a list!"),
    (lambda: vm.map_rect(3.0, PHI, THETA), TypeError,
     "map_rect: the function is a float, but must be a function!"),
    (lambda: vm.map_rect(job, PHI, THETA, executor=2), TypeError,
     ('map_rect: executor is 2, but must be an executor of concurrent.futures, "threads", '
     '"processes" or "serial"!')),
    (lambda: vm.reduce_sum(part, Y, 0, 0.0, 1.0), vm.DomainError,
     "reduce_sum: grainsize is 0, but must be positive!"),
    (lambda: vm.reduce_sum_static(part, Y, 1.5, 0.0, 1.0), TypeError,
     "reduce_sum_static: grainsize is 1.5, but must be an integer!"),
    (lambda: vm.reduce_sum(part, 3.0, 1, 0.0, 1.0), vm.ShapeError,
     "reduce_sum: x is a scalar, but must be an array or a list!"),
    (lambda: vm.reduce_sum(lambda x, i, j: x, Y, 5), vm.ShapeError,
     "reduce_sum: f returns an array of shape (5,), but must return a number!"),
    (lambda: vm.gradient(lambda y: vm.reduce_sum(lambda x, i, j: x, y, 5), Y), vm.ShapeError,
     "reduce_sum: f returns an array of shape (5,), but must return a number!"),
])  # fmt: skip
def test_errors(call, error, message):
    refuses(error, f"^{re.escape(message)}", call)


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_variables_from_outside_are_refused(executor):
    def alone(mu):
        return vm.reduce_sum_static(lambda x, i, j: np.sum(x) * mu, Y, 2, executor=executor)

    def beside(mu):
        def f(x, i, j, nu):
            return np.sum(x) * mu * nu

        return vm.reduce_sum_static(f, Y, 2, mu, executor=executor)

    def in_jobs(mu):
        return np.sum(vm.map_rect(lambda nu, x: x * mu * nu, mu, Y, executor=executor))

    for f in (alone, beside, in_jobs):
        refuses(vm.TapeError, None, vm.gradient, f, 1.0)


def test_busy_threads_are_known_by_their_numbers():
    """Python drops thread-local data of a sampler's thread between calls, so the flag is kept by
    thread number.
    """
    here = shares.Here()
    here.is_busy = True
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(lambda: here.is_busy).result()
        pool.submit(setattr, here, "is_busy", True).result()
        here.forget()  # as in a forked child, which has only this thread
        assert not pool.submit(lambda: here.is_busy).result()
    assert here.is_busy
    here.release(threading.get_ident())
    assert not here.is_busy


def test_a_task_is_known_until_its_results_are_there():
    """Its function may not be sendable, as that of chains with compiled functions is not."""
    lock = threading.Lock()

    def function(i):
        with lock:
            for k in range(shares.MOST_WORKS + 1):
                shares.keep(f"other {k}", shares.Work("other", abs, (), True, 0))
        return i

    try:
        with ThreadPoolExecutor(1) as pool:
            assert on_workers("function", function, range(3), pool) == [0, 1, 2]
        assert len(shares._CACHE) == shares.MOST_WORKS
    finally:
        for k in range(shares.MOST_WORKS + 1):
            shares.forget(f"other {k}")
