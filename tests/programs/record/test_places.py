"""Parts of variables in recordings."""

import numpy as np
import pytest
from programs.verified import verify
from recordings import agree, vectors

import varmat as vm


def test_parts_and_elements_cost_no_steps():

    def f(x):
        parts = np.sum(x[1:3] * x[::2][:2]) + x.reshape(2, 3)[1, 0] + x[2:4] @ x[1:3]
        return x[1] * x[-2] + parts

    g = agree(f, *vectors(6))
    assert not g.program.counts().keys() & {"copy", "gather"}


def test_gathers_are_a_step_each_way():
    places = np.array([[3, 1], [0, 3]])
    g = agree(lambda x: np.sum(np.sin(x[places]) + x[[2, 5, 3]][0]), *vectors(6))
    counts = g.program.counts()
    assert (counts["gather"], counts["assemble"]) == (2, 1)
    # An index without axes selects a part, not a gather.
    g = agree(lambda x: x[np.array(2)] * x[np.int64(1)], *vectors(6))
    assert g.program.counts().keys() == {"multiply", "assemble"}


@pytest.mark.parametrize("join", [np.stack, np.concatenate])
def test_joining_many_arrays_is_linear(join):
    """The number of steps, of the values that they read, and of the elements that they make all
    grow linearly.
    """

    def measured(n):
        g = vm.recorded(lambda x: np.sum(join([np.sin(x[i]) for i in range(n)]) ** 2))
        g(np.linspace(0.0, 1.0, 2 * n).reshape(n, 2))
        verify(g.program)
        steps = g.program.steps
        operands, made = (
            [v for step in steps for v in getattr(step, name)] for name in ("operands", "results")
        )
        return len(steps), len(operands), sum(v.size for v in operands), sum(v.size for v in made)

    few, some, many = measured(10), measured(100), measured(200)
    for a, b, c in zip(few, some, many, strict=True):
        assert c <= 2.2 * b <= 2.2 * 11 * a


def test_parts_of_a_gradient_are_put_together_once():
    g = agree(lambda x: np.sum(np.exp(x[:2])) + np.sum(np.sin(x[2:])), *vectors(5))
    counts = g.program.counts()
    assert counts == {"exp": 1, "sin": 1, "add.reduce": 2, "add": 1, "cos": 1, "assemble": 1}
    g = agree(lambda x: sum(np.sin(x[i]) * (i + 1.0) for i in range(len(x))), *vectors(5))
    assert g.program.counts()["assemble"] == 1


WEIGHTS = np.arange(1.0, 7.0)


def overwritten(x):
    """Of the first array that is written, only the first two elements remain."""
    y = np.zeros(6) + x[0]
    y[:4] = np.sin(x[:4])
    y[2:] = np.cos(x[2:])
    return np.sum(y**2 * WEIGHTS)


def scattered(x):
    """Two parts at irregular places of an array, whose other elements remain."""
    y = x * 1.5
    y[[0, 3]] = np.sin(x[:2])
    y[[4, 1]] = x[2] * x[:2]
    return np.sum(y**2 * WEIGHTS)


def one_part(x):
    y = x * 1.5
    y[1:5:2] = np.sin(x[:2])
    return np.sum(y**2 * WEIGHTS) + np.sum(x)


@pytest.mark.parametrize("f", [overwritten, scattered, one_part])
def test_arrays_put_together_from_others(f):
    agree(f, *vectors(6))


def test_zeros_that_are_put_together_keep_their_signs():
    def f(x):
        y = np.zeros(5) + x[0]
        y[[0, 3, 1]] = x[:3] * 0.0
        y[[2, 4]] = x[:2]
        return np.sum(np.arctan2(y, -1.0) * WEIGHTS[:5])

    agree(f, (np.array([1.0, -2.0, -3.0]),), (np.array([-1.0, 2.0, -3.0]),))
