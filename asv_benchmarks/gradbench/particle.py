"""The place of a charge at which a charged particle meets the origin."""

import numpy as np
from descent import GRADIENTS, argmin
from gradbench import wrap

import varmat as vm

STEP = 0.1


def potential(x, w):
    """Sum the inverse distances to the charges, which are at (10, 0) and (10, 10 - w)."""
    across = (x[0] - 10.0) ** 2
    return 1.0 / np.sqrt(across + x[1] ** 2) + 1.0 / np.sqrt(across + (x[1] - 10.0 + w) ** 2)


def squared_distance(w, gradient, while_loop):
    """Integrate the path until it crosses the x-axis, and square the place where it does."""

    def is_above(state):
        x, v, _ = state
        return x[1] + STEP * v[1] >= 0.0

    def move(state):
        x, v, w = state
        return x + STEP * v, v - STEP * gradient(x, w), w

    start = np.array([0.0, 8.0]), np.array([0.75, 0.0]), w[0]
    x, v, _ = while_loop(is_above, move, start)
    return (x[0] - x[1] / v[1] * v[0]) ** 2


def while_in_python(condition, body, state):
    while condition(state):
        state = body(state)
    return state


def variant(modes):
    outer, inner = modes
    gradient = GRADIENTS[inner](potential)
    # A reverse pass within the loop is not recorded, because it would be called from Python.
    is_recorded = inner == "f"
    while_loop = vm.while_loop if is_recorded else while_in_python

    def objective(w):
        return squared_distance(w, gradient, while_loop)

    if is_recorded:
        value = vm.recorded(objective)
        slope = GRADIENTS[outer](objective, vm.recorded)
    else:
        slope = GRADIENTS[outer](objective)

    @wrap.multiple_runs(pre=lambda input: np.array([input["w"]]), post=lambda w: float(w[0]))
    def place(w):
        return argmin(lambda w: value(w)[0] if is_recorded else objective(w), slope, w)

    return place


ff, fr, rf, rr = map(variant, ("ff", "fr", "rf", "rr"))
