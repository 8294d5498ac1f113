"""Programs that differ in constants alone share their machine code."""

import numpy as np
import pytest
from comparing import near, refuses
from layouts import of_one_step

import varmat as vm

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.kernels.elementwise import PythonFunction
from varmat.programs.run import native


def long(rng, n=60):
    return rng.normal(size=n)


def walk(x, y):
    level = total = 0.0
    for each in y:
        level = x[0] * level + x[1] * each
        total = total + level * level
    return total


# A function of x and data, and what makes the data of a generator.
CASES = {
    "products": (lambda x, a, b: np.sum(np.exp(x[0] * a) * b), lambda r: (long(r), long(r))),
    "parts of one array": (lambda x, a: np.sum(np.tanh(x[0] * a[:60] + a[20:80])),
                           lambda r: (long(r, 80),)),
    "another order": (lambda x, a: np.sum(np.sin(a @ x[:4]) * a[:, 1] * a[::-1, 2]),
                      lambda r: (r.normal(size=(4, 70)).T,)),
    "backwards": (lambda x, a: np.sum(np.cos(x[1] * a)), lambda r: (long(r, 120)[::-2],)),
    "elements at places": (lambda x, g, y: np.sum((x[g] - y) ** 2),
                           lambda r: (r.integers(0, 5, 60), long(r))),
    "sorted places": (lambda x, g, y: np.sum((x[g] - y) ** 2),
                      lambda r: (np.sort(r.integers(0, 5, 60)), long(r))),
    "repeated": (lambda x, a: np.sum(np.exp(np.outer(a, x) + a[:, None])), lambda r: (long(r),)),
    "a loop, whose first turns stand before it": (walk, lambda r: (long(r, 90),)),
    "a table of few": (lambda x, a: np.sum(np.exp(x * a)), lambda r: (long(r, 5),)),
    "a number": (lambda x, a: np.sum(x) * a, lambda r: (float(r.normal()),)),
    "a whole number": (lambda x, a: np.sum(x) * a, lambda r: (float(r.integers(3, 1000)),)),
    "a number for each": (lambda x, a: np.sum(np.exp(np.full(60, a) * x[0])),
                          lambda r: (r.normal(),)),
    "truth values": (lambda x, m: np.sum(np.exp(np.where(m, x[0], x[1] ** 2))),
                     lambda r: (r.random(60) < 0.5,)),
    "whole numbers": (lambda x, k: np.sum(x[0] ** k), lambda r: (r.integers(1, 4, 60),)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_codes(monkeypatch):
    monkeypatch.setattr(native, "CODES", type(native.CODES)())


@pytest.fixture
def compiled(monkeypatch):
    """What is compiled."""
    made = []
    known = native._MachineCode
    monkeypatch.setattr(native, "_MachineCode", lambda *x: made.append(known(*x)) or made[-1])
    return made


@pytest.mark.parametrize("name", CASES)
def test_the_results_are_those_of_the_data(name, compiled):
    function, data = CASES[name]
    x = np.linspace(0.2, 0.6, 5)
    kept = []
    for seed in range(3):
        given = data(np.random.default_rng(seed))
        f = lambda x, given=given: function(x, *given)  # noqa: E731
        recorded = vm.recorded(f, runner="native")
        kept.append((recorded, vm.value_and_grad(f)(x)))
        with vm.keep_rows():  # how many of them differ depends on the data
            recorded(x)
    assert (len(compiled) == 1) == (name != "a whole number")
    for recorded, expected in kept:  # also after others were made
        for found in (recorded(x), [each[0] for each in recorded.map(x[None])]):
            near(found, expected, 1e-13)


def test_arrays_that_are_one_are_not_two(compiled):
    """An array that is read twice has one place, so two arrays need code of their own."""
    a, b = (np.random.default_rng(i).normal(size=60) for i in range(2))
    x = np.linspace(0.2, 0.6, 5)
    for p, q in ((a, a), (a, b), (b, a), (b, b), (a, a[::-1])):
        f = lambda x, p=p, q=q: np.sum(np.exp(x[0] * p) * q)  # noqa: E731
        near(vm.recorded(f, runner="native")(x), vm.value_and_grad(f)(x), 1e-13)
    assert len(compiled) == 3


def test_steps_that_call_python_call_those_of_their_program(compiled):
    """The function is the same, but what a run raises is the runner's own."""
    runs = [
        native.NativeRunner(of_one_step(PythonFunction("cubed", _cubed), (3,))) for _ in range(2)
    ]
    assert len(compiled) == 1
    del runs[0]
    assert runs[0]([np.full(3, 2.0)])[0] == 24.0
    refuses(ArithmeticError, r"^no$", runs[0], [np.full(3, -1.0)])


def _cubed(x):
    if np.any(x < 0.0):
        raise ArithmeticError("no")
    return x**3


def test_functions_with_values_of_their_own_are_not_shared(compiled):
    for power in (2, 3):
        program = of_one_step(PythonFunction("power", lambda x, p=power: x**p), (3,))
        assert native.NativeRunner(program)([np.full(3, 2.0)])[0] == 3 * 2.0**power
    assert len(compiled) == 2
    assert not native.CODES


def test_only_so_many_codes_are_kept(monkeypatch):
    monkeypatch.setattr(native, "MOST_CODES", 3)
    for n in range(20, 26):
        vm.recorded(lambda x: np.sum(np.exp(x)), runner="native")(np.ones(n))
    assert len(native.CODES) == 3
