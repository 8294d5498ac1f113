"""Programs of products with Hessians and Jacobians, on functions whose derivatives are known."""

import numpy as np
from programs.verified import verify
from recordings import assert_same

import varmat as vm
from varmat.derivatives import recorded_programs
from varmat.derivatives.recorded_rows import Mapped
from varmat.derivatives.structure import structure_of
from varmat.programs.ir.interpret import interpret

# Programs are made at one point, and hold at others.
MADE_AT = (np.ones(2), 1.0)
X, S = np.array([2.0, 3.0]), 0.5
DIRECTION = (np.array([1.0, -1.0]), 2.0)


def outputs(program, *arguments):
    verify(program)
    zero, *found = interpret(program, *arguments)
    assert zero == 0.0
    return [x if np.ndim(x) else float(x) for x in found]


def test_a_hessian_times_a_vector():
    """The rows of the Hessian of s a² b are (2sb, 2sa, 2ab), (2sa, 0, a²) and (2ab, a², 0)."""

    def f(point, scale):
        (x, s) = point
        return scale * s * x[0] ** 2 * x[1]

    program = recorded_programs.product_program("f", f, ([*MADE_AT],), (Mapped(1.0),), {}).program
    found = outputs(program, X, S, 10.0, *DIRECTION)
    assert_same(found, [np.array([250.0, 100.0]), 80.0])
    constant = recorded_programs.product_program("f", lambda x: 2.0, ([np.ones(2)],)).program
    assert_same(outputs(constant, X, X), [np.zeros(2)])


def several(x, s, y=None, *, power=1):
    return {"a": s * x**power, "b": [x[0] * x[1] * (1.0 if y is None else y[0]), 4.0]}


def test_values_and_their_derivatives_in_a_direction():
    made = recorded_programs.tangent_program("f", several, MADE_AT, (Mapped([1.0]),), {"power": 2})
    assert structure_of(made.template) == structure_of({"a": X, "b": [0.0, 0.0]})
    values = [S * X**2, 6.0 * 3.0, 4.0]
    rates = [2.0 * S * X * DIRECTION[0] + X**2 * DIRECTION[1], (3.0 - 2.0) * 3.0, 0.0]
    found = outputs(made.program, X, S, 3.0, *DIRECTION)
    assert_same(found, [*values, *rates])
    part = recorded_programs.part_of(made.program, slice(None), slice(1 + 3, None))
    assert_same(outputs(part, X, S, 3.0, *DIRECTION), rates)
    assert len(part) < len(made.program)


def test_values_and_gradients_of_their_weighted_sum():
    made = recorded_programs.weighted_program("f", several, MADE_AT)
    weights = (np.array([1.0, 10.0]), 5.0, 7.0)
    gradients = [S * weights[0] + 5.0 * X[::-1], float(X @ weights[0])]
    assert_same(outputs(made.program, X, S, *weights), [S * X, 6.0, 4.0, *gradients])
    assert not made.only_reverse
    values = recorded_programs.part_of(made.program, slice(2), slice(1, 4))
    assert_same(outputs(values, X, S), [S * X, 6.0, 4.0])


def test_operations_without_a_forward_rule_are_noted():
    cubed = vm.operation()(lambda x: x**3)
    cubed.reverse(lambda g, r, x: 3.0 * g * x**2)
    assert recorded_programs.weighted_program("f", lambda x: cubed(x), (1.0,)).only_reverse


def test_entries_of_loops():
    """Forty sines, one after the other, become a loop; the sum before and the square after do
    not.
    """

    def f(x, tape):
        y = np.sum(x)
        for _ in range(40):
            y = np.sin(y)
        return y**2

    kept, rolled = recorded_programs.rolled_entries("f", f, np.ones(2))
    assert len(kept) == 42
    assert [entry[0].name for entry in rolled] == ["sin"] * 40
