"""Statements over numbers and arrays: on every runner, and their derivatives in both modes."""

import operator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose

from programs.verified import verify
from varmat.programs.build.builder import Builder
from varmat.programs.build.scalar_functions import ADD, MULTIPLY, SAME, ScalarFunction
from varmat.programs.ir import statements as s
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.passes import reverse
from varmat.programs.passes.reverse import Source
from varmat.programs.run import runner_for
from varmat.solvers.procedures import StatementCode, procedure

RUNNERS = ["interpreter", "numpy", "native", "jax"]
TANH, SIN = ScalarFunction(np.tanh, 1), ScalarFunction(np.sin, 1)
EXP = ScalarFunction(np.exp, 1, is_expensive=True, slopes=[lambda x, y: y])
FRACTION = ScalarFunction(lambda x, y: x / (1.0 + y * y), 2)
BELOW = ScalarFunction(lambda x, y: np.less(x, y) * 1.0, 2, is_discrete=True)
EVEN = ScalarFunction(
    lambda x: np.equal(x - 2.0 * np.trunc(x / 2.0), 0.0) * 1.0, 1, is_discrete=True
)


class Writer:
    """Writes statements about a vector `x` of four leaves and integers `n` that are data."""

    def __init__(self):
        self.block = []
        self.x, self.n = s.Storage((4,), "x"), s.Storage((5,), "n")
        self.out = s.Storage((4,), "out")

    def write(self, *statements):
        self.block += statements

    def apply(self, function, *x):
        out = s.Cell()
        self.write(s.Compute(out, function, x))
        return out

    def load(self, array, *i):
        out = s.Cell()
        self.write(s.Load(out, array, i))
        return out

    def variable(self, name, value, is_integer=False):
        cell = s.Cell(name, False, is_integer)
        self.write(s.Declare(cell), s.Compute(cell, SAME, (value,)))
        return cell

    @contextmanager
    def inside(self):
        outer, self.block = self.block, []
        yield self.block
        self.block = outer

    @contextmanager
    def loop(self, lower, upper, most=8):
        index = s.Cell("i", is_integer=True)
        with self.inside() as body:
            yield index
        self.write(s.For(index, lower, upper, body, most=most))


def recurrence(w):
    """A number is handed on, and counted in an array by an index that data decide."""
    m = w.variable("m", 0.1)
    with w.loop(0, 4) as i:
        k = w.load(w.n, i)
        x = w.load(w.x, k)
        w.write(s.Compute(m, FRACTION, (w.apply(ADD, m, w.apply(EXP, x)), m)))
        w.write(s.Store(w.out, (k,), w.apply(ADD, w.load(w.out, k), m)))
        w.write(s.Increment(w.apply(SIN, m)))


def ragged(w):
    """Loops of several lengths, whose passes hand on an index and a sum."""
    k, total = w.variable("k", 0, True), w.variable("total", 0.0)
    with w.loop(0, 4) as i, w.loop(1, w.load(w.n, i)) as j:
        x = w.load(w.x, s.Affine(((j, 1),), 0))
        w.write(s.Add(total, w.apply(MULTIPLY, w.apply(EXP, x), k)))
        w.write(s.Add(k, 1.0))
        w.write(s.Increment(w.apply(MULTIPLY, x, w.apply(TANH, x))))
    w.write(s.Store(w.out, (0,), total), s.Increment(w.apply(MULTIPLY, total, total)))


def branches(w):
    """A branch on parameters and one on data, which overwrite the same number twice."""
    m = w.variable("m", 0.3)
    with w.loop(0, 4) as i:
        holds = w.apply(BELOW, m, w.load(w.x, w.load(w.n, i)))
        with w.inside() as yes:
            w.write(s.Compute(m, FRACTION, (w.load(w.x, 1), m)), s.Compute(m, EXP, (m,)))
        with w.inside() as no:
            w.write(s.Add(m, w.apply(SIN, w.load(w.x, 2))))
        w.write(s.If(holds, yes, no))
        with w.inside() as no:
            w.write(s.Increment(w.apply(MULTIPLY, m, w.load(w.x, 0))))
        w.write(s.If(w.apply(EVEN, i), [], no))
        with w.inside() as no:
            w.write(s.Compute(m, TANH, (m,)))
        w.write(s.If(w.apply(EVEN, w.load(w.n, i)), [], no))
    w.write(s.Store(w.out, (3,), m))


def until(w):
    """A loop that ends when a parameter says so, inside of another one."""
    with w.loop(0, 4) as i:
        y = w.variable("y", w.load(w.x, w.load(w.n, i)))
        with w.inside() as condition:
            holds = w.apply(BELOW, y, 2.0)
        with w.inside() as body:
            w.write(s.Compute(y, ADD, (w.apply(EXP, w.apply(TANH, y)), w.load(w.x, 3))))
        w.write(s.While(condition, holds, body))
        w.write(s.Increment(y), s.Store(w.out, (w.load(w.n, i),), y))


def overwritten(w):
    """Elements of an array of each iteration that are read, overwritten and read again."""
    with w.loop(0, 4) as i:
        own = s.Storage((4,), "own")
        w.write(s.Declare(own))
        with w.loop(0, 3) as j:
            w.write(s.Store(own, (j,), w.load(w.x, j)))
        with w.loop(0, 2) as j:
            x, y = w.load(own, j), w.load(own, s.Affine(((j, 1),), 1))
            w.write(s.Store(own, (s.Affine(((j, 1),), 1),), w.apply(FRACTION, x, y)))
            w.write(s.Store(own, (j,), w.apply(SIN, w.apply(MULTIPLY, x, y))))
        k = w.load(w.n, i)
        with w.loop(0, k) as j:
            w.write(s.Store(own, (0,), w.apply(FRACTION, w.load(own, 0), w.load(w.x, j))))
        w.write(s.Increment(w.load(own, k)))
        w.write(s.Store(w.out, (k,), w.apply(MULTIPLY, w.load(w.out, k), w.load(own, 3))))
        with w.loop(0, 3) as j:
            w.write(s.Store(w.out, (j,), w.apply(ADD, w.load(own, j), w.load(w.out, j))))


def handed_on_by_loops(w):
    """Passes of an inner loop hand on what those of the outer one hand on too."""
    m, c = w.variable("m", 0.2), w.variable("c", 0, True)
    with w.loop(0, 4) as i:
        h = w.variable("h", m)
        with w.loop(0, w.load(w.n, i)) as j:
            w.write(s.Compute(h, FRACTION, (w.apply(EXP, h), w.load(w.x, j))))
            w.write(s.Add(c, j))
            with w.loop(1, j) as k:
                w.write(s.Add(h, w.apply(MULTIPLY, w.load(w.x, k), w.apply(SIN, h))))
        w.write(s.Compute(m, TANH, (w.apply(ADD, h, w.apply(MULTIPLY, m, c)),)))
        w.write(s.Increment(w.apply(MULTIPLY, m, m)))
    w.write(s.Store(w.out, (1,), m))


def series(w):
    """Each element depends on the one before, and is assigned once."""
    with w.loop(1, 3) as i:
        before = w.load(w.out, s.Affine(((i, 1),), -1))
        w.write(s.Store(w.out, (i,), w.apply(FRACTION, w.apply(EXP, before), w.load(w.x, i))))
        w.write(s.Increment(w.apply(TANH, w.load(w.out, i))))


def looks_ahead(w):
    """Elements are read that a later pass overwrites."""
    with w.loop(0, 2) as i:
        after = w.load(w.out, s.Affine(((i, 1),), 1))
        w.write(s.Increment(w.apply(MULTIPLY, after, w.load(w.out, i))))
        w.write(s.Store(w.out, (i,), w.apply(FRACTION, after, w.load(w.x, i))))


def declared_before(w):
    """A number and an array that each pass assigns before it reads them."""
    z, own = s.Cell("z", False), s.Storage((4,), "own")
    w.write(s.Compute(z, SAME, (0.5,)), s.Fill(own, w.x))
    with w.loop(0, 4) as i:
        w.write(s.Compute(z, EXP, (w.load(w.x, w.load(w.n, i)),)))
        with w.loop(1, 4) as j:
            at = s.Affine(((j, 1),), -1)
            w.write(s.Store(own, (at,), w.apply(MULTIPLY, z, w.load(w.x, at))))
        with w.loop(0, 2) as j:
            x = w.load(own, s.Affine(((j, 1),), 1))
            w.write(s.Increment(w.apply(FRACTION, x, w.load(own, j))))


SOURCES = [
    recurrence, ragged, branches, until, overwritten, handed_on_by_loops, series, looks_ahead,
    declared_before,
]  # fmt: skip
N = np.array([3.0, 0.0, 2.0, 3.0, 1.0])
POINTS = [np.array([0.4, -0.3, 0.8, 0.6]), np.array([-0.7, 1.1, 0.2, 0.9])]


def source(write, with_results=True):
    w = Writer()
    start = s.Storage((4,), "start")
    w.write(s.Fill(w.out, start))
    write(w)
    return Source([w.x, start], [w.n], [w.out] if with_results else [], w.block)


def program(kernel):
    b = Builder()
    arguments = [b.argument(x.shape) for x in kernel.inputs]
    return b.program([b.constant(0.0), *b.apply(kernel, *arguments)])


def run(kernel, runner, *given):
    """The results of a procedure."""
    p = program(kernel)
    verify(p)
    if runner == "interpreter":
        return interpret(p, *given)[1:]
    if runner == "jax":
        jax = pytest.importorskip("jax")
        from varmat.programs.run.jax import to_jax

        with jax.enable_x64(True):
            return [*map(np.asarray, jax.jit(to_jax(p))(*given)[1:])]
    ended, *found = runner_for(p, runner)([np.asarray(x, float) for x in given])
    assert ended == 0.0
    return found


@pytest.mark.parametrize("write", SOURCES, ids=operator.attrgetter("__name__"))
@pytest.mark.parametrize("runner", RUNNERS)
def test_runners_agree_and_reverse_is_tangent(runner, write):
    whole, of_total = source(write), source(write, False)
    seeds = [1.3, np.array([0.2, -0.5, 1.0, 0.7])]
    for x in POINTS[: 1 if runner == "jax" else 2]:
        leaves = [x, 0.1 * x**2]
        expected = run(whole.forward(), "interpreter", *leaves, N)
        found = run(whole.forward(), runner, *leaves, N)
        for a, b in zip(found, expected, strict=True):
            assert_allclose(a, b, rtol=1e-13)
        gradient = run(whole.backward(), runner, *leaves, N, *seeds)
        value, *alone = run(of_total.with_gradient(), runner, *leaves, N)
        assert_allclose(value, expected[0], rtol=1e-13)
        for which in range(2):
            direction = np.array([0.6, -1.0, 0.3, 0.8])
            rates = run(whole.along(which).forward(), runner, *leaves, direction, N)
            slope = sum(np.sum(g * t) for g, t in zip(seeds, rates, strict=True))
            assert_allclose(np.sum(gradient[which] * direction), slope, rtol=1e-12)
            assert_allclose(np.sum(alone[which] * direction), rates[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("write", SOURCES, ids=operator.attrgetter("__name__"))
def test_derivatives_are_differences(write):
    x, direction, h = POINTS[0], np.array([0.6, -1.0, 0.3, 0.8]), 1e-5
    of_total = source(write, False)

    def found(x):
        return run(of_total.with_gradient(), "numpy", x, np.zeros(4), N)[:2]

    along = of_total.along(0).with_gradient()
    slope, product, *_ = run(along, "native", x, np.zeros(4), direction, N)
    pairs = zip(found(x + h * direction), found(x - h * direction), strict=True)
    of_value, of_gradient = ((after - before) / (2 * h) for after, before in pairs)
    assert_allclose(slope, of_value, rtol=1e-7, atol=1e-8)
    assert_allclose(product, of_gradient, rtol=1e-6, atol=1e-7)
    assert_allclose(slope, np.sum(found(x)[1] * direction), rtol=1e-12)


@pytest.mark.parametrize("runner", RUNNERS)
def test_an_array_that_a_pass_declares_begins_with_nan(runner):
    w, own = Writer(), s.Storage((2,), "own")
    w.write(s.Fill(w.out, 1.0))
    with w.loop(0, 1) as i:
        w.write(s.Declare(own), s.Store(own, (i,), 1.0))
        w.write(s.Store(w.out, (i,), w.load(own, 0)))
    *_, out = run(Source([w.x], [w.n], [w.out], w.block).forward(), runner, np.ones(4), N)
    np.testing.assert_array_equal(out, [1.0, np.nan, 1.0, 1.0])


def test_sums_and_passes_apart_keep_nothing():
    body = source(ragged, False).with_gradient().body
    loops = [x for x in s.walk(body) if isinstance(x, s.For)]
    inner = next(x for loop in loops for x in loop.body if isinstance(x, s.For) and not x.backwards)
    pushed = [x for each in s.walk(inner.body) if isinstance(each, s.Push) for x in each.cells]
    assert "total" not in {cell.name for cell in pushed}


@pytest.mark.parametrize("runner", RUNNERS)
def test_runs_end(runner, monkeypatch):
    """At `End`, and where a stack is full."""
    w = Writer()
    w.write(s.If(w.apply(BELOW, w.load(w.x, 0), 0.0), [s.End()]), s.Increment(w.load(w.x, 1)))
    kernel = Source([w.x], [w.n], [], w.block).with_gradient()
    assert run(kernel, runner, POINTS[0], N)[0] == POINTS[0][1]
    monkeypatch.setattr(reverse, "ROOM", 3)
    full = source(recurrence, False).with_gradient()
    for each, given in ((kernel, [POINTS[1], N]), (full, [POINTS[0], np.zeros(4), N])):
        p = program(each)
        if runner == "native":
            assert np.isnan(runner_for(p, runner)(given)[0])
        elif runner == "jax":
            assert np.isnan(run(each, runner, *given)[0])
        elif each is kernel:  # lists of Python are never full
            with pytest.raises(ElsewhereError):
                run(each, runner, *given)


def test_an_operation_that_ends_is_refused():
    import varmat as vm

    w = Writer()
    w.write(s.If(w.apply(BELOW, w.load(w.x, 0), 0.0), [s.End()]), s.Increment(w.load(w.x, 1)))
    code = StatementCode(Source([w.x], [w.n], [], w.block), [N])
    assert vm.gradient(lambda x: procedure(code, [x])[0], POINTS[0])[1] == 1.0
    with pytest.raises(vm.TapeError, match="a loop ends here, and is run as it is written"):
        procedure(code, [POINTS[1]])


def test_branches_that_parameters_decide_are_known():
    decided = {write.__name__: source(write).branches() for write in SOURCES}
    assert [name for name, x in decided.items() if x] == ["branches", "until"]
