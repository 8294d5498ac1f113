"""Steps whose results nothing reads."""

import numpy as np
from layouts import with_arguments

from programs.verified import verify
from varmat.programs.ir.program import FLOAT
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.passes import without_dead_steps


def test_what_is_read_stays_in_order():
    """A step stays for a view of its result, for one of several results, and for an effect, with
    all that it reads.
    """
    builder, x = with_arguments((3,))
    first = builder.ufunc(np.exp, x)
    builder.ufunc(np.sin, builder.ufunc(np.cos, first))
    both = PythonCall("both", lambda a: (a, a), [((3,), FLOAT)] * 2, True)
    unread = PythonCall("unread", lambda a: (a, a), [((3,), FLOAT)] * 2, True)
    noted = PythonCall("noted", lambda a: (a,), [((3,), FLOAT)], False)
    builder.apply(unread, first)
    _, second = builder.apply(both, builder.ufunc(np.tanh, x))
    builder.apply(noted, builder.ufunc(np.sqrt, x))
    builder.guard(builder.compare(np.greater, builder.ufunc(np.square, x), builder.constant(0.0)))
    program = builder.program([builder.element(second, 1), builder.view(first, lambda a: a[1:])])
    kept = without_dead_steps(program)
    verify(kept)
    names = [step.kernel.name for step in kept.steps]
    assert names == ["exp", "tanh", "both", "sqrt", "noted", "square", "greater", "guard"]
    assert (kept.arguments, kept.outputs) == (program.arguments, program.outputs)
    assert len(program) == len(kept) + 3
