"""The Python functions made from programs: on whole vectors and by blocks, with floats and in IEEE
arithmetic, with guards and tracebacks.
"""

import linecache
import math
import traceback

import numpy as np
import pytest
from comparing import close, equal, refuses

from varmat.programs.build.builder import Builder
from varmat.programs.build.symbol import Symbol, lift
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.kernels.counts import Total
from varmat.programs.kernels.guards import Unless
from varmat.programs.run import emit
from varmat.programs.run.emit import function_of_program

FUNCTIONS = {"log": np.log, "exp": np.exp, "where": np.where, "maximum": np.maximum}
LET = {
    "z": "(a - x) / b", "s": "z * z", "w": "1.0 / (s + x)", "l": "log(b)", "u": "x + x",
    "h": "s * x",
}  # fmt: skip

# Elementwise results, and sums.
PROGRAMS = {
    "sums only": ([], ["z", "z * w", "-0.5 * s - l"]),
    "one result": (["z * w"], ["s"]),
    "several": (["-z * w", "z * w", "w * l"], ["s * w - l"]),
    "in the other order": (["l", "s", "z"], ["w"]),
    "the same twice": (["z", "z"], ["z"]),
    "an argument": (["a", "-a"], ["b"]),
    "an argument once": (["-a"], ["b"]),
    "of a number": (["a * u", "u * b"], []),
    "late sums": (["z"], ["exp(-s) * w", "exp(-s)", "l"]),
    "what cannot be written in place": (["where(a > x, z, l)", "z"], ["where(b > a, s, w)"]),
    "deep": (["((a + b) * (a - b) + (z + w) * (z - w)) / ((a * b) + (z * w))"], ["l"]),
    "truth values": (["maximum(a > x, b)"], ["where((a > x) & (b > x), a, 0.0)"]),
}


class Traced:
    """A program of two vectors and a number that is being built."""

    def __init__(self):
        self.builder = Builder()
        self.scope = dict(FUNCTIONS)
        for name in "abx":
            argument = self.builder.argument((7,) if name < "x" else ())
            self.scope[name] = Symbol(self.builder, argument)
        for name, expression in LET.items():
            self.scope[name] = eval(expression, self.scope)

    def value(self, expression):
        return lift(self.builder, eval(expression, self.scope))

    def functions(self, *outputs, title="test", by_blocks=False):
        return function_of_program(self.builder.program(outputs), ["a", "b", "x"], title, by_blocks)


def functions_of(name, by_blocks):
    elementwise, sums = PROGRAMS[name]
    traced = Traced()
    outputs = [traced.value(each) for each in elementwise]
    outputs += [traced.builder.sum(traced.value(each)) for each in sums]
    return traced.functions(traced.builder.constant(0.5), *outputs, title=name, by_blocks=by_blocks)


def text_of(name):
    function, _ = functions_of(name, True)
    assert function.__code__.co_filename.startswith(f"<varmat {name}, by blocks")
    return "".join(linecache.getlines(function.__code__.co_filename))


@pytest.mark.parametrize("by_blocks", [False, True], ids=["straight", "blocks"])
@pytest.mark.parametrize("size", [1, 7, 63, 64, 65, 1000])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, size, by_blocks, monkeypatch):
    monkeypatch.setattr(emit, "BLOCK", 16)
    rng = np.random.default_rng(size)
    arguments = {"a": rng.normal(size=size), "b": rng.uniform(0.5, 2.0, size=size), "x": 0.8}
    before = {key: np.copy(x) for key, x in arguments.items()}
    known = FUNCTIONS | arguments
    for key, abbreviated in LET.items():
        known[key] = eval(abbreviated, known)
    elementwise, sums = PROGRAMS[name]
    for function, number in zip(functions_of(name, by_blocks), (float, np.float64), strict=True):
        value, results = function(arguments["a"], arguments["b"], number(arguments["x"]))
        assert value == 0.5
        for expression, result in zip(elementwise, results, strict=False):
            close(result, eval(expression, known), 1e-13)
            others = [x for x in [*arguments.values(), *results] if x is not result]
            assert not any(np.may_share_memory(result, x) for x in others)
        for expression, result in zip(sums, results[len(elementwise) :], strict=True):
            assert type(result) is float
            terms = np.broadcast_to(eval(expression, known), size)
            assert math.isclose(result, math.fsum(terms), rel_tol=1e-11, abs_tol=1e-11)
    for key, x in arguments.items():
        equal(x, before[key])


def test_results_are_computed_in_their_places():
    assert "multiply(b_0, b_1, out=o_0)" in text_of("one result")
    assert "divide(b_0, b_, out=o_2)" in text_of("in the other order")
    assert "b_1" not in text_of("in the other order")


def test_numbers_are_floats_and_raise_as_they_do():
    traced = Traced()
    quick, exact = traced.functions(traced.value("x + where(x > 0.0, log(x), exp(x))"))
    arrays = np.zeros(1), np.zeros(1)
    # A branch that is not selected is not computed.
    assert quick(*arrays, -1.0) == (-1.0 + math.exp(-1.0), [])
    traced = Traced()
    quick, exact = traced.functions(traced.value("log(x) / x"))
    for bad, error in ((0.0, ValueError), (-1.0, ValueError)):
        with pytest.raises(error):
            quick(*arrays, bad)
    with np.errstate(all="ignore"):
        assert exact(*arrays, np.float64(0.0))[0] == -math.inf


@pytest.mark.parametrize("by_blocks", [False, True], ids=["straight", "blocks"])
def test_guards(by_blocks, monkeypatch):
    monkeypatch.setattr(emit, "BLOCK", 6)
    traced, builder = Traced(), Builder()
    builder = traced.builder
    handed = []
    builder.apply(Unless(lambda *values: handed.append(values)), traced.value("x < 10.0"))
    builder.guard(traced.value("(a >= 0.0) & (b != 1.0)"))
    total = builder.sum(traced.value("a * b"))
    builder.apply(Unless(lambda *values: handed.append(values)), builder.ufunc(np.isfinite, total))
    builder.guard(builder.compare(np.less, total, builder.constant(100.0)))
    function, _ = traced.functions(
        total, traced.value("a * x"), title="guards", by_blocks=by_blocks
    )
    a, b = np.ones(20), np.full(20, 2.0)
    assert function(a, b, 2.0)[0] == 40.0
    for bad in (-1.0, math.nan):
        refuses(ElsewhereError, None, function, np.append(a, bad), np.append(b, 2.0), 2.0)
    refuses(ElsewhereError, None, function, a, np.append(b[1:], 1.0), 2.0)
    refuses(ElsewhereError, None, function, a, 5.0 * b, 2.0)
    assert not handed
    for arguments in ((a, b, 20.0), (a, np.inf * b, 2.0)):
        assert function(*arguments) is None
        assert all(x is y for x, y in zip(handed.pop(), arguments, strict=True))


@pytest.mark.parametrize("by_blocks", [False, True], ids=["straight", "blocks"])
def test_sums_of_their_own(by_blocks):
    traced = Traced()
    calls = []

    def squares(x):
        calls.append(len(x))
        return np.vdot(x, x)

    function, _ = traced.functions(
        traced.builder.call(Total("squares", squares), traced.value("a")), by_blocks=by_blocks
    )
    assert function(np.arange(4.0), np.ones(4), 0.0) == (14.0, [])
    assert calls == [4]


def test_a_second_loop_is_refused():
    traced = Traced()
    total = Symbol(traced.builder, traced.builder.sum(traced.value("a")))
    scaled = (total * traced.scope["b"]).value
    function, _ = traced.functions(total.value, scaled)
    assert function(np.ones(3), np.ones(3), 0.0)[1][0].tolist() == [3.0] * 3
    refuses(ValueError, "takes two loops", traced.functions, total.value, scaled, by_blocks=True)


def test_tracebacks_show_the_text():
    traced = Traced()
    function, _ = traced.functions(traced.value("1.0 / x"), title="reciprocal: x")
    with pytest.raises(ZeroDivisionError) as caught:
        function(np.ones(1), np.ones(1), 0.0)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (frame.filename, frame.line) == ("<varmat reciprocal: x>", "return float((1.0 / x)), []")
