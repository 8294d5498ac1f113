"""Programs of whole tapes: values, weighted gradients, and the conditions under which they hold."""

import numpy as np
from comparing import refuses

import varmat as vm
from varmat.core.tape import nested
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.record.programs import program_of


def recorded(point, *, weighted=False):
    """Return the program of two values, and of the gradient of their sum, where x[0] < 1."""
    with nested() as tape:
        x = vm.var(point)
        results, below = [np.exp(x), np.sum(x * x)], np.heaviside(1.0 - x[0], 0.0)
        ways = [(below, True)]
        return program_of(tape, [x], results, results, [x], weighted=weighted, decisions=ways)


def test_values_and_gradients():
    program, x = recorded(np.array([0.5, -1.0])), np.array([0.25, 2.0])
    values, total, gradient = interpret(program, x)
    np.testing.assert_allclose(values, np.exp(x))
    np.testing.assert_allclose(total, np.sum(x * x))
    np.testing.assert_allclose(gradient, np.exp(x) + 2.0 * x)
    refuses(ElsewhereError, None, interpret, program, np.array([1.5, 2.0]))


def test_weights_are_further_arguments():
    program, x = recorded(np.array([0.5, -1.0]), weighted=True), np.array([0.25, 2.0])
    w = np.array([3.0, -1.0])
    gradient = interpret(program, x, w, np.array(0.5))[-1]
    np.testing.assert_allclose(gradient, w * np.exp(x) + x)
