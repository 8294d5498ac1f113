"""Signals: their errors reach the caller, whatever runs when they come, and all else stays."""

import gc
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from itertools import cycle

import numpy as np
import pytest
from comparing import close, refuses

import varmat as vm
from varmat.interrupts import (
    Interrupts,
    from_signal,
    kept_from_callbacks,
    mark_from_signal,
    uninterrupted,
)


def press():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0)  # the handler runs between two instructions


class Limit:
    """Handlers of every form, each of which raises."""

    def method(self, number, frame):
        raise TimeoutError("limit")

    def __call__(self, *_):
        return self.deeper()

    def deeper(self):
        raise TimeoutError("limit")


# For long runs there may be more.
ROUNDS = int(os.environ.get("ROUNDS", "4"))
HANDLERS = {
    "method": Limit().method, "object": Limit(), "lambda": lambda *_: Limit().deeper(),
    "one argument more": lambda number, frame, *, more=(): Limit().deeper(),
}  # fmt: skip


@contextmanager
def handled(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("kind", HANDLERS)
def test_errors_of_handlers_are_known(kind):
    def interrupted():
        os.kill(os.getpid(), signal.SIGVTALRM)
        for _ in range(100):
            time.sleep(0)

    with handled(signal.SIGVTALRM, HANDLERS[kind]), pytest.raises(TimeoutError) as caught:
        interrupted()
    assert from_signal(caught.value)


def test_errors_of_functions_are_known():
    def look(frame):
        return look_again(frame, 3)

    def look_again(frame, number):
        raise TimeoutError("of the function")

    def asked():
        frame = sys._getframe()
        look(frame)

    for job in (asked, lambda: look_again(None, 1), lambda: {}["x"]):
        with pytest.raises((TimeoutError, KeyError)) as caught:
            job()
        assert not from_signal(caught.value)
    assert not from_signal(ValueError())
    assert all(map(from_signal, (KeyboardInterrupt(), SystemExit(), GeneratorExit())))
    mark_from_signal(caught.value)
    assert from_signal(caught.value)


def test_presses_are_counted_and_none_is_lost():
    with Interrupts() as pressed:
        assert pressed.count == 0
        press()
        press()
        assert pressed.count == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def press_again():
        with Interrupts() as pressed:
            press()
            assert pressed.count == 1
            press()

    for job in (press_again, press):
        refuses(KeyboardInterrupt, None, job)


def test_signals_wait_for_the_end_of_an_import():
    def imported():
        with uninterrupted():
            press()
            with uninterrupted():
                press()
            seen.append(True)

    seen = []
    refuses(KeyboardInterrupt, None, imported)
    assert seen
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_the_user_and_other_threads_are_left_alone():
    def look():
        with Interrupts() as pressed:
            seen.append((pressed.count, signal.getsignal(signal.SIGINT)))

    seen = []
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    for handler in (signal.SIG_IGN, HANDLERS["method"]):
        with handled(signal.SIGINT, handler):
            look()
    handlers = [signal.default_int_handler, signal.SIG_IGN, HANDLERS["method"]]
    assert seen == [(0, each) for each in handlers]


def test_what_callbacks_cannot_catch_is_kept(monkeypatch):
    kept, printed = [], []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    with kept_from_callbacks(press, kept.append):
        for each, text in [(press, None), (object(), None), (None, f"in {press!r}"), (None, "")]:
            made = {"object": each, "err_msg": text, "exc_value": ValueError(str(each))}
            sys.unraisablehook(type("Args", (), made))
    assert [str(each) for each in kept] == [str(press), "None"]
    assert len(printed) == 2
    assert sys.unraisablehook == printed.append


# What runs when the signal comes.


def rates(t, y, a):
    return np.stack([y[1], a * (1.0 - y[0] ** 2) * y[1] - y[0]])


def looking(t, y, a):
    return rates(t, y, a) if vm.value(y[0]) < 100.0 else 0.0 * y


TIMES, START = np.linspace(0.1, 2.0, 3), np.array([2.0, 0.0])


def of_ode(solver, f=rates):
    return lambda a: np.sum(getattr(vm, solver)(f, START, 0.0, TIMES, a))


def system(y, a):
    return np.stack([y[0] ** 2 + y[1] ** 2 - a, y[0] - y[1] ** 3])


def integral(a):
    return vm.integrate_1d(lambda x, xc, a: np.exp(-a * x * x) * np.cos(x), 0.0, 3.0, a)


def density(b, s):
    return vm.normal_lpdf(RESPONSE, DESIGN @ b, s)


def chosen(b, s):
    assert vm.value(s) > 0.0
    return density(b, s)


DESIGN = np.random.default_rng(1).normal(size=(300, 3))
RESPONSE = DESIGN @ [1.0, 2.0, 3.0]
POINTS = np.random.default_rng(2).normal(size=(4000, 4))
MODELS = [vm.Model(f, b=vm.real(3), s=vm.positive()) for f in (density, chosen)]
FUNCTIONS = {
    **{solver: of_ode(solver) for solver in ("ode_bdf", "ode_adams", "ode_rk45")},
    "rates that look": of_ode("ode_bdf", looking),
    "integrate_1d": integral,
    "solve_powell": lambda a: np.sum(vm.solve_powell(system, np.ones(2), a)),
}
JOBS = {name: lambda f=f: vm.value_and_grad(f)(1.5) for name, f in FUNCTIONS.items()}
RECORDED = {
    name: vm.recorded(FUNCTIONS[name])
    for name in ("ode_bdf", "ode_adams", "ode_rk45", "integrate_1d", "solve_powell")
}
JOBS |= {f"{name}, recorded": lambda f=f: f(1.5) for name, f in RECORDED.items()}
JOBS |= {
    "map": lambda: MODELS[0].log_density_gradient.map(POINTS),
    "map in Python": lambda: MODELS[1].log_density_gradient.map(POINTS[:40]),
}


def flat(found):
    return np.concatenate([np.ravel(x) for x in found])


@pytest.mark.parametrize("name", JOBS)
def test_a_signal_at_any_time_reaches_the_caller(monkeypatch, name):
    """The timer counts processor time, so that a busy machine changes little. An error that comes
    while Python itself finalises an object cannot leave, so this is tried again.
    """

    def handler(number, frame):
        called.append(number)
        raise type(raised)(*raised.args)

    def repeat():
        while not called or type(raised) in dropped:
            if called:
                called.clear()
                dropped.clear()
                signal.setitimer(signal.ITIMER_PROF, 0.5 * delay)
            close(flat(job()), expected, 1e-6)

    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: dropped.append(args.exc_type))

    gc.collect()  # no error can leave __del__, as of an object that another test has left
    job, called = JOBS[name], []
    job()
    begun = time.process_time()
    expected = flat(job())
    took = time.process_time() - begun
    rng = np.random.default_rng(len(name) + ROUNDS)
    with handled(signal.SIGPROF, handler):
        delays = rng.uniform(1e-4, 1.2 * took + 4e-3, size=ROUNDS)
        for delay, raised in zip(delays, cycle([TimeoutError("limit"), SystemExit(3)])):
            called.clear()
            dropped.clear()
            signal.setitimer(signal.ITIMER_PROF, delay)
            refuses(type(raised), str(raised), repeat)
            close(flat(job()), expected, 1e-6)
