"""Programs with some values replaced: what changes, and what is kept."""

import numpy as np
from layouts import with_arguments

from programs.verified import verify
from varmat.programs.ir.interpret import interpret
from varmat.programs.passes.rewriter import Rewriter


def test_a_value_is_replaced_in_steps_views_and_outputs():
    builder, x = with_arguments((2, 3))
    doubled = builder.ufunc(np.multiply, builder.constant(2.0), x)
    first = builder.view(doubled, lambda a: a[:, 0])
    apart = builder.ufunc(np.exp, x)
    program = builder.program(
        [builder.sum(builder.ufunc(np.sin, first)), builder.sum(apart), doubled]
    )
    rewriter = Rewriter(program)
    for step in program.steps:
        if step.results[0] is doubled:
            new = rewriter.builder
            tripled = new.ufunc(np.multiply, new.constant(3.0), x)
            turned = new.transposed(new.contiguous(new.transposed(tripled)))
            rewriter.replace([doubled], [turned])
        else:
            rewriter.keep(step)
    changed = rewriter.program()
    verify(changed)
    point = np.arange(6.0).reshape(2, 3)
    total, same, whole = interpret(changed, point)
    # The value that stands for the old one is not contiguous: views of it are taken of a copy.
    np.testing.assert_allclose(whole, 3.0 * point)
    assert total == np.sum(np.sin(3.0 * point[:, 0]))
    assert same == np.sum(np.exp(point))
    kept = {id(step) for step in program.steps} & {id(step) for step in changed.steps}
    assert kept == {id(step) for step in program.steps if step.operands[0] in (x, apart)}


def test_a_program_without_replacements_is_the_same():
    builder, x = with_arguments((3,))
    program = builder.program([builder.sum(builder.ufunc(np.exp, x)), x])
    rewriter = Rewriter(program)
    for step in program.steps:
        rewriter.keep(step)
    assert rewriter.program().steps == program.steps
    assert rewriter.program().outputs == program.outputs


def test_what_is_kept_is_not_computed_twice():
    builder, x = with_arguments((3,))
    program = builder.program(
        [builder.ufunc(np.divide, builder.constant(1.0), builder.element(x, 1))]
    )
    rewriter = Rewriter(program)
    new = rewriter.builder
    first = new.ufunc(np.divide, new.constant(1.0), new.element(x, 1))
    for step in program.steps:
        rewriter.keep(step)
    assert rewriter.program().outputs == [first]
    assert len(rewriter.program().steps) == 1
