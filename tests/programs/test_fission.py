"""Loop fission: random loops give what they gave before, and only recurrences stay in loops."""

import numpy as np
import pytest
from comparing import close, equal
from layouts import with_arguments

from programs.verified import verify
from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import BOOL, ElsewhereError
from varmat.programs.kernels.loop import Loop
from varmat.programs.passes import optimised
from varmat.programs.passes.fission import LONG, fissioned
from varmat.programs.run import runner_for

SHAPES = [(), (), (), (2,), (2, 2), (20,)]


def random_value(rng, builder, values):
    """A step, or a view, of values that are chosen at random."""
    x, y = (values[i] for i in rng.integers(len(values), size=2))
    kind = rng.integers(10)
    if kind < 2:
        x, y = together(builder, x, y)
        condition = builder.compare(np.less, x, y)
        return builder.where(condition, y, x) if kind else builder.number(condition)
    if kind == 2 and x.shape:
        return builder.view(x, lambda a: a[-1, ...] if rng.random() < 0.5 else a[::-1])
    if kind == 3:
        return builder.sum(x)
    if kind == 4 and x.shape == (2, 2) and y.shape in ((2,), (2, 2)):
        return builder.matmul(x, y)
    if kind == 5:
        where = ((16, ()), (), builder.sum(y)), ((0, (8,)), (2,), builder.sum(x))
        return builder.assemble((3,), where)
    if kind == 6:
        return builder.add_all(together(builder, x, y, x))
    if kind == 7:
        return builder.ufunc(np.tanh, x)
    ufunc = [np.add, np.multiply, np.subtract, np.maximum][rng.integers(4)]
    return builder.ufunc(ufunc, *together(builder, x, y))


def together(builder, *values):
    """Values that broadcast: some are replaced by their sums."""
    shapes = [v.shape for v in values]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return [values[0], *(builder.sum(v) for v in values[1:])]
    return [*values]


def random_loop(rng):
    """A program with a loop of random steps, and arguments for it."""
    body, trips = Builder(), LONG + int(rng.integers(3))
    carried, rows, shared = (
        [SHAPES[i] for i in rng.integers(len(SHAPES), size=rng.integers(least, 4))]
        for least in (0, 1, 0)
    )
    arguments = [body.argument(shape) for shape in (*carried, *rows, *shared)]
    values = [*arguments, body.constant(0.5), body.constant(np.array([0.3, -0.2]))]
    for _ in range(rng.integers(1, 15)):
        values.append(random_value(rng, body, values))
    for v in values[-2:]:
        if v.dtype != BOOL and rng.random() < 0.5:
            limit = float(rng.choice([0.9, 2.0]))
            body.guard(body.compare(np.less, body.ufunc(np.tanh, v), body.constant(limit)))
            body.guard_between(body.ufunc(np.tanh, body.sum(v)), -limit, limit)

    def handed(shape):
        """Bounded, so that recurrences do not grow."""
        fitting = [v for v in values if v.shape == shape]
        x = fitting[rng.integers(len(fitting))]
        return x if any(x is v for v in arguments) else body.ufunc(np.tanh, x)

    made = [values[i] for i in rng.integers(len(values), size=4)]
    stacked = int(rng.integers(5))
    outputs = body.program([*map(handed, carried), *made])
    backwards = bool(rng.integers(2))
    loop = Loop(outputs, trips, len(carried), len(rows), stacked, backwards=backwards)
    whole = Builder()
    shapes = [*carried, *((trips, *shape) for shape in rows), *shared]
    given = [0.5 * rng.normal(size=shape) for shape in shapes]
    operands = [whole.constant(x) if rng.random() < 0.2 else whole.argument(x.shape) for x in given]
    results = whole.apply(loop, *operands)
    read = [v for v in results if rng.random() < 0.8]
    program = whole.program([whole.constant(0.0), *read])
    return program, [x for x, v in zip(given, operands, strict=True) if not v.is_constant]


def outcome(run):
    """What a run returns; None if a guard ends it."""
    try:
        return run()
    except ElsewhereError:
        return None


@pytest.mark.parametrize("seed", range(100))
def test_random_loops_keep_their_values(seed):
    program, given = random_loop(np.random.default_rng(seed))
    expected = outcome(lambda: interpret(program, *given))
    for parts in (fissioned(program), optimised(program)):
        verify(parts)
        runner = runner_for(parts, "numpy")
        for found in (outcome(lambda: interpret(parts, *given)), outcome(lambda: runner(given))):  # noqa: B023
            assert (found is None) == (expected is None)
            for x, y in zip(found or (), expected or (), strict=True):
                close(x, y, 1e-12, 1e-13)


def whole_program(loop, *shapes):
    whole = Builder()
    operands = [whole.argument(shape) for shape in shapes]
    return whole.program([whole.constant(0.0), *whole.apply(loop, *operands)])


@pytest.mark.parametrize("backwards", [False, True])
def test_only_the_recurrence_stays(backwards):
    """x <- a x + r^2 in the loop; exp(a), r^2 before it; tanh(x) and the sum after it."""
    body = Builder()
    x, r, a = (body.argument(()) for _ in range(3))
    square = body.ufunc(np.square, r)
    after = body.ufunc(np.add, body.ufunc(np.multiply, body.ufunc(np.exp, a), x), square)
    result = body.ufunc(np.tanh, after)
    body.guard(body.compare(np.less, result, body.constant(2.0)))
    outputs = [after, result, body.ufunc(np.multiply, result, square)]
    loop = Loop(body.program(outputs), 50, 1, 1, 1, backwards=backwards)
    parts = fissioned(whole_program(loop, (), (50,), ()))
    (left,) = (step.kernel for step in parts.steps if isinstance(step.kernel, Loop))
    assert left.body.counts() == {"multiply": 1, "add": 1}
    assert {"exp", "square", "tanh", "guard", "matmul"} <= parts.counts().keys()


def test_a_loop_without_recurrence_becomes_arrays():
    """Lags of the rows, and an average of them."""
    body = Builder()
    first, second, r = (body.argument(()) for _ in range(3))
    outputs = [r, first, body.add_all([first, second, r])]
    program = whole_program(Loop(body.program(outputs), 40, 2, 1, 1), (), (), (40,))
    parts = fissioned(program)
    assert "loop" not in parts.counts()
    rows = np.arange(40.0)
    _, *last, lagged = interpret(parts, -1.0, -2.0, rows)
    assert last == [39.0, 38.0]
    expected = np.array([[-1.0, *rows[:-1]], [-2.0, -1.0, *rows[:-2]], rows])
    equal(lagged, np.sum(expected, axis=0))


def test_short_loops_stay():
    body, x, r = with_arguments((), ())
    outputs = [body.ufunc(np.add, x, body.ufunc(np.exp, r))]
    program = whole_program(Loop(body.program(outputs), LONG - 1, 1, 1), (), (LONG - 1,))
    assert fissioned(program) is program
