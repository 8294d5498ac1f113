"""The tape: scopes, stale variables, threads, repeated reverse passes, memory."""

import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from comparing import equal, refuses

import varmat as vm
from core.tapes import fresh_tape, state  # noqa: F401 - a fixture
from varmat.core.arena import LARGE
from varmat.core.tape import close_scope, current_tape, open_scope

SIZES = [3, LARGE + 5]


def test_entries_are_data():
    x = vm.var([1.0, 2.0])
    y = x * 3.0
    rule, result, a, b = current_tape()[-1]
    assert rule.name == "multiply"
    assert result is y
    assert a is x
    assert b == 3.0


@pytest.mark.parametrize("n", SIZES)
def test_nested_scope_differentiates_only_itself_and_recovers(n):
    x = vm.var(np.ones(n))
    y = np.sum(x * 2.0)
    before = state()
    with vm.nested():
        z = vm.var(np.full(n, 3.0))
        np.sum(z * z * x).grad()
        assert np.all(z.adj == 6.0)
    assert state()[:3] == before[:3]
    y.grad()
    assert np.all(x.adj == 2.0)


def fail_in_a_scope(made, x):
    with vm.nested():
        made.append(vm.var(7.0))
        assert (made[0] * x)._tape is current_tape()
        raise KeyError("out")


def test_a_pass_in_a_scope_forgets_what_earlier_ones_left_outside():
    a, x = vm.var(2.0), vm.var([1.0, 2.0])
    part = x[1:]
    (a * a * np.sum(x)).grad()
    with vm.nested():
        b = vm.var(3.0)
        for _ in range(2):
            assert (a * b).grad([a, b]) == [3.0, 2.0]
            (given,) = np.sum(np.concatenate([part, part]) * 2.0).grad([x])
            assert given.tolist() == [0.0, 4.0]
        with vm.nested():
            assert (a * b * b).grad([a, b]) == [9.0, 12.0]


def test_more_scopes_than_functions_can_call_each_other():
    """Waiting generators leave their scopes open, so open scopes can outnumber the stack frames."""

    def waiting():
        with vm.nested():
            yield

    x, depth = vm.var(2.0), 2 * sys.getrecursionlimit()
    generators = [waiting() for _ in range(depth)]
    for generator in generators:
        next(generator)
    assert len(current_tape().chain()) == depth + 1
    while generators:
        generators.pop().close()
    assert (x * x).grad(x) == 4.0


def test_three_scopes_deep_with_an_exception_out_of_the_innermost():
    x = vm.var(2.0)
    with vm.nested():
        y = vm.var(3.0)
        with vm.nested():
            z = vm.var(5.0)
            made = []
            refuses(KeyError, "out", fail_in_a_scope, made, z * y * x)
            (w,) = made
            (z * y * x).grad()
            assert (z.adj, y.adj, x.adj) == (6.0, 10.0, 15.0)
        assert (y * y).grad(y) == 6.0
    assert (x * x).grad(x) == 4.0
    for stale in (y, z, w):
        with pytest.raises(vm.TapeError, match="stale"):
            stale * x


def test_an_outer_scope_closes_those_left_open_inside():
    base = current_tape()
    outer, inner = open_scope(), open_scope()
    v = vm.var(1.0)
    close_scope(outer)
    assert current_tape() is base
    refuses(vm.TapeError, "stale", lambda: v + 1.0)
    for scope in (inner, outer):
        refuses(vm.TapeError, "closed before", close_scope, scope)


def interrupted(job, n):
    """Run a job and raise KeyboardInterrupt at the n-th place where the interpreter looks for
    signals. Return whether the job got that far.
    """
    count, lost = 0, []

    def raise_there(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_return", "c_exception")
        if count == n:
            sys.setprofile(None)
            raise KeyboardInterrupt

    hook, sys.unraisablehook = sys.unraisablehook, lambda _: lost.append(n)
    sys.setprofile(raise_there)
    try:
        job()
        came_through = False
    except KeyboardInterrupt:
        came_through = True
    finally:
        sys.setprofile(None)
        sys.unraisablehook = hook
    # Python itself loses an interrupt that comes while a generator is being closed.
    assert came_through or lost or count < n
    return count >= n


def in_a_scope():
    with vm.nested():
        (vm.var(2.0) * 3.0).grad()


@pytest.mark.parametrize("job", [
    lambda: vm.value_and_grad(lambda x: np.sum(x * x))(np.ones(3)),
    lambda: vm.gradient(lambda p: p["a"] * np.sum(p["b"]), {"a": 2.0, "b": np.ones(3)}),
    lambda: vm.hessian(lambda x: x[0] ** 2 * x[1], np.ones(2)),
    in_a_scope,
])  # fmt: skip
def test_an_interrupt_at_any_place_leaves_the_thread_as_it_was(job):
    base = current_tape()
    job()
    errors = np.geterr()
    n = 1
    while interrupted(job, n):
        # NumPy's own context manager may have been interrupted between its entry and its block.
        np.seterr(**errors)
        assert gc.isenabled()
        assert current_tape() is base is base.top
        assert len(base) == len(base.leaves) == 0
        n += 1
    assert n > 50


def assigned_to(x):
    y = x * 2.0
    y[0] = x[1] * y[2]
    y[1] = y[0] * 3.0
    y[1:] = y[:-1] * x[1:]
    z = np.exp(0.1 * y)
    y[0] = z[1]
    return y * z


def test_an_interrupt_of_a_reverse_pass_leaves_assignments_as_they_were():
    x, g = np.array([0.5, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    v = vm.var(x)
    y = assigned_to(v)
    total = np.sum(y * g)
    _, pullback = vm.vjp(assigned_to, x)
    want, values, errors = pullback(g)[0], y.val, np.geterr()
    for job, result in (
        (lambda: pullback(g), lambda: pullback(g)[0]),
        (total.grad, lambda: total.grad([v])[0]),
    ):
        n = 1
        while interrupted(job, n):
            np.seterr(**errors)
            equal(y.val, values)
            equal(result(), want)
            n += 1
        assert n > 50


def test_a_scope_closed_out_of_turn_inside_a_gradient_leaves_the_collector_on():
    def numbers():
        with vm.nested():
            yield vm.var(2.0)

    suspended = numbers()
    next(suspended)

    def f(x):
        suspended.close()
        return x * 2.0

    refuses(vm.TapeError, "closed before", vm.gradient, f, 1.0)
    assert gc.isenabled()
    assert vm.gradient(lambda x: x * 2.0, 1.0) == 2.0


@pytest.mark.parametrize("use", [
    lambda x: x + 1.0, lambda x: 1.0 - x, lambda x: x * np.ones(3), lambda x: np.ones(3) * x,
    np.exp, np.sum, lambda x: x[0], lambda x: x[[0, 1]], lambda x: x[1:] + 1.0, vm.to_matvar,
    lambda x: x.__setitem__(0, 1.0), lambda x: x.reshape(3, 1) + 1.0,
])  # fmt: skip
def test_stale_variables_raise(use):
    with vm.nested():
        x = vm.var([1.0, 2.0, 3.0])
    before = state()
    message = "this variable is stale: its tape has been recovered"
    refuses(vm.TapeError, message, use, x)
    assert state() == before


def test_what_was_made_of_stale_variables_is_stale():
    with vm.nested():
        y = vm.var(1.0) * 2.0
    refuses(vm.TapeError, "stale", y.grad)
    view = vm.var([1.0, 2.0, 3.0])[1:]
    vm.recover_memory()
    refuses(vm.TapeError, "stale", np.multiply, view, 2.0)


def test_recover_memory_is_refused_in_a_nested_scope():
    with vm.nested(), pytest.raises(vm.TapeError, match="recover_memory: a nested scope is open"):
        vm.recover_memory()


@pytest.mark.parametrize("use", [
    np.multiply, lambda x, y: y * x, np.matmul, lambda x, y: np.concatenate([x, y]),
    lambda x, y: vm.fma(x, y, 3.0), lambda x, y: vm.fma(3.0, y, x),
])  # fmt: skip
def test_variables_of_two_threads_do_not_meet(use):
    x = vm.var([1.0, 2.0])
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(vm.var, [1.0, 2.0]).result()
    before = state()
    refuses(vm.TapeError, "one operation uses variables from two threads", use, x, other)
    assert state() == before


def test_only_its_own_thread_differentiates_a_variable():
    x = vm.var([1.0, 2.0])
    y = np.sum(x * x)
    y.grad()
    barrier = threading.Barrier(8)

    def work(i):
        barrier.wait()
        with vm.nested():
            own = vm.var(float(i))
            message = r"^grad: the variable belongs to another thread"
            for each in (y, np.sum(x * float(i))):  # also a result computed in this thread
                refuses(vm.TapeError, message, each.grad)
            refuses(vm.TapeError, message, vm.grad, y)
            return (own * own).grad(own)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [2.0 * i for i in range(8)]
    equal(x.adj, [2.0, 4.0])  # no other thread has added to it
    with vm.nested():
        np.sum(3.0 * x).grad()  # a reverse pass from inside, through a variable of the outer scope
        equal(x.adj, [3.0, 3.0])
        equal(y.grad(x), [2.0, 4.0])


def test_variables_of_one_new_thread_meet():
    def product():
        x, y = vm.var(2.0), vm.var(3.0)
        (x * y).grad()
        return x.adj, y.adj, x._tape is y._tape is current_tape()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(product).result() == (3.0, 2.0, True)


def test_grad_of_an_array_is_refused():
    message = r"grad: only a scalar has a gradient, this variable has shape \(2,\); sum it"
    refuses(vm.ShapeError, message, (vm.var([1.0, 2.0]) * 2.0).grad)


@pytest.mark.parametrize("n", SIZES)
def test_every_reverse_pass_starts_from_zero(n):
    x = vm.var(np.full(n, 2.0))
    view = x[1:]
    y = x * x
    s, t = np.sum(y), np.sum(view * 3.0)
    for _ in range(2):
        s.grad()
        assert np.all(x.adj == 4.0)
        t.grad()
        assert x.adj[0] == 0.0
        assert np.all(x.adj[1:] == 3.0)
        assert np.all(view.adj == 3.0)
        assert np.all(y.adj == 0.0)


def test_grad_returns_copies_of_the_adjoints_asked_for():
    x, c = vm.var([1.0, 2.0]), vm.var(3.0)
    y = np.sum(x * x) * c
    gx, gc_ = y.grad([x, c])
    assert (gx.tolist(), gc_) == ([6.0, 12.0], 5.0)
    x.adj[:] = 0.0
    assert gx.tolist() == [6.0, 12.0]
    assert (y.grad(x).tolist(), y.grad(x[1:]).tolist(), y.grad(c)) == ([6.0, 12.0], [12.0], 5.0)


def test_set_zero_all_adjoints():
    x = vm.var([1.0, 2.0])
    np.sum(x * x).grad()
    vm.set_zero_all_adjoints()
    assert x.adj.tolist() == [0.0, 0.0]


def test_reading_an_adjoint_before_any_contribution_gives_zeros():
    assert vm.var(1.0).adj == 0.0
    assert vm.var([[1.0, 2.0]]).adj.tolist() == [[0.0, 0.0]]
    assert vm.var([1.0, 2.0])[1:].adj.tolist() == [0.0]


def test_unused_results_are_not_differentiated():
    x = vm.var([0.0, 1.0])
    with np.errstate(divide="ignore"):
        np.log(x)  # the derivative at zero is infinite, but unused
    assert np.sum(x * 2.0).grad(x).tolist() == [2.0, 2.0]


def test_keep_alive_keeps_until_recovery():
    class Thing:
        alive = 0

        def __init__(self):
            Thing.alive += 1

        def __del__(self):
            Thing.alive -= 1

    with vm.nested():
        vm.keep_alive(Thing())
        gc.collect()
        assert Thing.alive == 1
    assert Thing.alive == 0


def test_many_gradients_leave_memory_flat():
    process = psutil.Process(os.getpid())
    small, large = np.linspace(0.1, 1.0, 10), np.linspace(0.1, 1.0, LARGE + 1)

    def some(count, x):
        f = vm.value_and_grad(lambda x: np.sum(x[1:] * x[:-1]) / np.sum(x * x))
        for _ in range(count):
            f(x)

    some(1_000, small)
    some(30, large)
    gc.collect()
    before = process.memory_info().rss
    some(10_000, small)
    some(300, large)
    gc.collect()
    assert process.memory_info().rss - before < 2**20


def test_a_long_tape():
    n = 200_000
    x = vm.var(1.0)
    y = x
    for _ in range(n // 2):
        y = y * 1.000001 + x
    assert len(current_tape()) == n
    y.grad()
    expected = 1.000001 ** (n // 2) + ((1.000001 ** (n // 2)) - 1) / 0.000001
    assert x.adj == pytest.approx(expected, rel=1e-9)
