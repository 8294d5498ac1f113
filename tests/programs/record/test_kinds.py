"""Loops in Python whose iterations branch on data become one procedure."""

import numpy as np
import pytest
from comparing import near, refuses
from programs.verified import verify

import varmat as vm
from varmat.programs.ir.interpret import interpret

N = 240
Y = np.random.default_rng(3).normal(size=N).tolist()
X = np.random.default_rng(4).normal(size=(N, 2))
G = np.random.default_rng(5).integers(0, 3, N).tolist()
Q = np.array([0.4, -0.3, 0.7, 0.2])
OTHER = np.array([0.1, 0.5, -0.2, 0.6])


def missing(q):
    mean, total = 0.0, 0.0
    for t in range(N):
        mean = q[0] * mean + q[1]
        if G[t]:
            z = (Y[t] - mean) * np.exp(q[2])
            total = total - 0.5 * z * z + q[2]
            mean = Y[t] - 0.2 * mean
    return total


def interrupted(q):
    """By an entry of many operands, so that the loop begins after it. A part of a sum is read, and
    data that an array of variables has.
    """
    mean, total, y = 0.0, 0.0, np.zeros_like(q, shape=N)
    y[:] = Y
    for t in range(N):
        mean = np.tanh(q[0] * mean + q[1])
        if t == 5:
            mean = 0.1 * np.sum(np.stack([mean] * 20))
        elif G[t]:
            part = total - (y[t] - mean) ** 2
            total, mean = part + q[2], mean + 0.1 * np.sin(part)
    return total


def kalman(q):
    m, p, total, means = q[3], np.exp(q[0]), 0.0, []
    for t in range(N):
        p = p + np.exp(q[1])
        if G[t]:
            s = p + np.exp(q[2])
            total = total + vm.normal_lpdf(Y[t], m, np.sqrt(s))
            m, p = m + p / s * (Y[t] - m), p - p * p / s
        means.append(m)
    return total + 0.1 * np.sum(np.stack(means[10:]) ** 2) + means[N // 2] * m


def lags(q):
    """Of two lags, with two values that change places, and one that begins anew."""
    h, k, total = [q[0], q[1]], q[2], 0.1
    for t in range(N):
        x = np.tanh(0.5 * h[-1] - 0.3 * h[-2] * k + 0.1 * q[t % 4])
        if G[t] == 1:
            x, k = k, x
        elif t % 50 == 7:
            k = q[3]
        else:
            total = total + x * k
        h.append(x * Y[t])
    return total - h[-3] ** 2


def regression(q):
    """With products of arrays, and an iteration that is like no other."""
    e, total = 0.0, 0.0
    for t in range(N):
        mean = X[t] @ q[:2] + e * q[2]
        if t == N // 3:
            mean = mean + np.sin(q[3])
        if G[t] == 2:
            continue
        if G[t] == 1:
            e = Y[t] - mean
            total = total - e * e
        else:
            e = 0.5 * np.tanh(mean)
    return total


def procedures(program):
    return [str(step.kernel) for step in program.steps if step.kernel.name == "procedure"]


@pytest.mark.parametrize("runner", ["native", "numpy"])
@pytest.mark.parametrize("f", [missing, interrupted, kalman, lags, regression])
def test_iterations_of_several_kinds(f, runner):
    recorded = vm.recorded(f, runner=runner)
    for q in (Q, OTHER):
        for found in (recorded(q), interpret(recorded.program, q)):
            near(found, vm.value_and_grad(f)(q))
    verify(recorded.program)
    assert len(procedures(recorded.program)) == 2
    assert len(recorded.program) < N


@pytest.mark.parametrize("f", [missing, lags])
def test_other_derivatives(f):
    direction = np.array([0.3, -1.0, 0.2, 0.5])
    product = vm.recorded(vm.hessian_times_vector(f))(Q, direction)
    near(product, vm.hessian_times_vector(f, Q, direction), 1e-11)
    near(vm.recorded(vm.hessian(missing))(Q), vm.hessian(missing, Q), 1e-11)

    def along(t):
        return f(Q + t * direction)

    near(vm.recorded(along)(0.1)[1], vm.derivative(along, 0.1))
    found = zip(*vm.recorded(f).map(np.stack([Q, OTHER])), strict=True)
    near([*found], [vm.value_and_grad(f)(q) for q in (Q, OTHER)])


def test_statements():
    recorded = vm.recorded(missing)
    recorded(Q)
    forward, _ = procedures(recorded.program)
    assert "branch kind" in forward
    assert forward.count("\n") < 30


def test_a_point_that_is_refused():
    """Scales are checked in every iteration; a density that is not finite ends the run."""

    def f(q):
        x, total = q[0], 0.0
        for t in range(2 * N):
            if G[t % N]:
                x = 0.5 * x + q[1]
                total = total + vm.normal_lpdf(Y[t % N], 0.0, x)
            else:
                x = x + 0.01
        return total

    recorded, good, bad = vm.recorded(f), np.array([1.0, 0.5]), np.array([1.0, -2.0])
    near(recorded(good)[1], vm.value_and_grad(f)(good)[1])
    assert procedures(recorded.program)
    refuses(vm.DomainError, None, recorded, bad)
    near(recorded(good)[1], vm.value_and_grad(f)(good)[1])


def test_loops_that_only_add_stay_sums_of_arrays():
    def f(q):
        total = 0.0
        for t in range(4 * N):
            total = total + (np.log(q[0] * (t + 1.0)) if G[t % N] else np.exp(q[1] * Y[t % N]))
        return total

    recorded = vm.recorded(f)
    near(recorded(np.abs(Q))[1], vm.value_and_grad(f)(np.abs(Q))[1])
    assert not procedures(recorded.program)
    assert len(recorded.program) < 100


def test_values_from_before_the_loop_that_are_read_after_others_were_written():
    rng = np.random.default_rng(0)
    kinds, y = rng.integers(0, 2, 600), rng.normal(size=600)

    def f(x):
        z = [x[0], x[1], x[2]]
        for kind, u in zip(kinds, y, strict=True):
            z.append(
                np.sin(z[-3]) * x[2] + z[-1] * 0.3 if kind else np.tanh(z[-2]) * x[1] + z[-3] * u
            )
        return sum(v * v for v in z)

    recorded, eager, x = vm.recorded(f), vm.value_and_grad(f), np.array([0.3, -0.2, 0.5])
    for _ in range(2):
        near(recorded(x), eager(x), 1e-12)
        x = x + 0.1
    assert len(recorded.program.steps) < 100
