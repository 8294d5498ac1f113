"""Guards: they end a run where what was assumed does not hold."""

import math

import numpy as np
import pytest
from comparing import refuses
from layouts import laid_out, shape, with_arguments
from recordings import RUNNERS

from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.kernels.guards import GUARD
from varmat.programs.passes import optimised
from varmat.programs.run import runner_for


def is_ended(run, arguments):
    """Return whether a guard ends the run. The native runner returns nan in that case."""
    try:
        return math.isnan(run(arguments)[0])
    except ElsewhereError:
        return True


@pytest.mark.parametrize("runner", RUNNERS)
def test_guards(runner):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        builder, at = Builder(), shape(rng)
        base, how = laid_out(rng, at)
        x = builder.argument(base)
        condition = builder.compare(np.greater, x, builder.constant(0.0))
        builder.apply(GUARD, builder.view(condition, how) if base else condition)
        run = runner_for(builder.program([builder.constant(1.0), x]), runner)
        given = rng.uniform(0.1, 1.0, base)
        for _ in range(2):
            assert run([given if base else float(given)])[0] == 1.0
        for bad in (-1.0, np.nan, 0.0):
            point = np.array(given)
            part = how(point)
            if part.size:
                place = tuple(int(rng.integers(n)) for n in part.shape)
                where = np.zeros(base, bool)
                view = how(where)
                view.flags.writeable = True
                view[place] = True
                point[where] = bad
                assert is_ended(run, [point if base else float(point)])
        assert run([given if base else float(given)])[0] == 1.0


@pytest.mark.parametrize("runner", RUNNERS)
def test_guards_of_a_number(runner):
    builder, x = with_arguments((3,))
    builder.guard_between(builder.element(x, 1), -1.0, 2.0)
    run = runner_for(builder.program([builder.sum(x)]), runner)
    for middle in (-0.9, 0.0, 1.9):
        assert run([np.array([5.0, middle, 0.0])])[0] == pytest.approx(5.0 + middle, rel=1e-15)
    for middle in (-1.0, 2.0, 2.5, math.nan, math.inf):
        assert is_ended(run, [np.array([5.0, middle, 0.0])])


def test_guards_of_a_batch_are_one():
    builder, x = with_arguments((40,))
    for i in range(40):
        builder.guard(builder.compare(np.greater, builder.element(x, i), builder.constant(0.0)))
    total = builder.sum(x)
    program = optimised(builder.program([total]))
    assert program.counts()["guard"] == program.counts()["greater"] == 1
    assert interpret(program, np.ones(40)) == [40.0]
    refuses(ElsewhereError, None, interpret, program, np.where(np.arange(40) == 17, -1.0, 1.0))


def test_a_conjunction_becomes_several_guards():
    builder, x = with_arguments((3,))
    above, below = (
        builder.compare(ufunc, x, builder.constant(0.5)) for ufunc in (np.greater, np.less)
    )
    both = builder.logical(np.logical_and, above, builder.reduce(np.logical_and, below, (0,)))
    builder.guard(both)
    guards = [step.operands[0] for step in builder.steps if step.kernel.name == "guard"]
    assert guards == [above, below]
