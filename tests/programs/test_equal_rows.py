"""Equal rows of data are computed once, with a count."""

from types import SimpleNamespace

import numpy as np
import pytest
from comparing import near, refuses
from recordings import EVERY_RUNNER

import varmat as vm
from programs.test_sufficient_statistics import agree_for_seeds, programs
from varmat.programs.ir.interpret import interpret
from varmat.programs.passes.affine_rows import RowsNeededError
from varmat.programs.passes.equal_rows import distinct_rows

N = 211
RNG = np.random.default_rng(8)
X = RNG.integers(0, 2, (N, 3)).astype(float)
Y, COUNT, GROUP = RNG.integers(0, 2, N), RNG.integers(0, 3, N), RNG.integers(0, 4, N)
Z, TABLE = RNG.integers(0, 3, N) / 3, RNG.integers(0, 2, (N, 2))
FEW = 80  # rows that any of these functions has at most

MODELS = {
    "a logistic regression": lambda q: vm.bernoulli_logit_lpmf(Y, q[0] + q[1] * Z),
    "with a matrix": lambda q: vm.bernoulli_logit_lpmf(Y, q[0] + X @ q[1:4]),
    "its GLM": lambda q: vm.bernoulli_logit_glm_lpmf(Y, X, q[0], q[1:4]),
    "a Poisson regression": lambda q: vm.poisson_log_lpmf(COUNT, q[0] + q[1] * Z),
    "its GLM ": lambda q: vm.poisson_log_glm_lpmf(COUNT, X, q[0], q[1:4]),
    "groups": lambda q: vm.bernoulli_logit_lpmf(Y, q[1:5][GROUP] + q[0] * Z),
    "Student": lambda q: vm.student_t_lpdf(Z, 4.0, q[0] + q[1] * Y, np.exp(q[2])),
    "a formula": lambda q: np.sum(np.log1p(np.exp(q[0] * Z - q[1] * Y))) - np.sum(np.sin(q[GROUP])),
    "a choice": lambda q: np.sum(np.where(Y == 1, np.exp(q[0] * Z), q[1])),
    "rows of a matrix": lambda q: np.sum(np.sum(np.tanh(TABLE * q[:2] + q[2]), 1) ** 2 * Z),
    "rows that are added up": lambda q: np.sum(np.exp(np.sum(np.sin(TABLE * q[:2]), axis=1))),
    "a largest element": lambda q: np.max(np.cos(q[0] * Z)) + np.sum(np.cos(q[0] * Z)),
    "an inner product": lambda q: np.exp(q[0] * Z) @ np.sin(q[1] * Y),
    "weights": lambda q: Z @ np.exp(q[0] * X[:, 0]) + np.sum(X.T @ np.exp(q[0] * Z)),
    "a loop": lambda q:
        sum((vm.bernoulli_logit_lpmf(int(Y[i]), q[0] + q[1] * Z[i]) for i in range(N)), 0.0),
}  # fmt: skip
POINTS = [np.linspace(0.1, 0.9, 6), np.array([-1.3, 0.4, 0.2, 1.7, -0.6, 0.1])]


def longest(program):
    shapes = [v.shape for step in program.steps for v in step.results]
    return max((max(shape, default=1) for shape in shapes), default=1)


@pytest.mark.parametrize("name", MODELS)
def test_equal_rows_are_one(name):
    kept, fewer = programs(MODELS[name])
    assert longest(kept) >= N - 1
    assert longest(fewer) <= FEW, str(fewer)
    for q in POINTS:
        near(interpret(fewer, q), interpret(kept, q))
        near(interpret(fewer, q), vm.value_and_grad(MODELS[name])(q))


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize("name", ["groups", "with a matrix", "rows of a matrix"])
def test_runners(name, runner):
    f = MODELS[name]
    near(vm.recorded(f, runner=runner)(POINTS[1]), vm.value_and_grad(f)(POINTS[1]))


OTHER = np.linspace(0.0, 1.0, N)


def with_one_assigned(rows, x):
    rows[3] = x
    return rows


@pytest.mark.parametrize("f", [
    lambda q: np.sum(np.exp(q[0] * OTHER)),
    lambda q: vm.bernoulli_logit_lpmf(Y, np.repeat(q, 36)[:N] * Z),
    lambda q: np.sum(np.exp(np.cumsum(q[0] * Z))),
    lambda q: np.sum(np.diff(np.exp(q[0] * Z)) ** 2),
    lambda q: np.sum(np.exp(q[0] * Z)[::-1] * Z),
    lambda q: np.sum(np.sort(np.exp(q[0] * Z)) * Z),
    lambda q: np.sum(np.where(np.exp(q[0] * TABLE) @ np.exp(q[1] * TABLE).T > 3.0, q[2], q[3])),
    lambda q: np.sum(np.where(with_one_assigned(np.exp(q[0] * Z), q[1]) > 1.2, q[2], q[3])),
], ids=["different rows", "repeated parameters", "cumulative sums", "differences", "reversed",
        "sorted", "all pairs of rows", "an element that is assigned"])  # fmt: skip
def test_other_functions_keep_their_rows(f):
    kept, fewer = programs(f)
    assert longest(fewer) == longest(kept)
    for q in POINTS:
        near(interpret(fewer, q), vm.value_and_grad(f)(q))


def test_rows_of_one_key_are_compared(monkeypatch):
    """Without factors, the key of a row is that of the row with its elements exchanged."""
    one, other = np.tile([1.0, 2.0], 15), np.tile([2.0, 1.0], 15)
    data = [one[:, None], other[:, None]]
    first, counts = distinct_rows(data)
    assert (sorted(first), counts.tolist()) == ([0, 1], [15, 15])
    zeros = SimpleNamespace(integers=lambda *_, size, dtype: np.zeros(size, dtype))
    monkeypatch.setattr(np.random, "default_rng", lambda _: zeros)
    refuses(RowsNeededError, None, distinct_rows, data)


# --- random functions ---


def random_model(seed):
    """Sums of functions of rows, of which each is made of others in some way."""
    rng = np.random.default_rng(seed)
    columns = [Z, X[:, 0], Y.astype(float), COUNT.astype(float), np.ones(N), OTHER]
    functions = [np.sin, np.tanh, np.exp, lambda x: x * x, vm.inv_logit, np.negative]

    def rows(depth):
        c = columns[rng.choice(6, p=[0.198] * 5 + [0.01])]
        i, kind = rng.integers(6), rng.integers(8)
        if depth == 0 or kind == 0:
            return [
                lambda q: q[i] * c,         lambda q: q[:4][GROUP] * c, lambda q: X @ q[:3] + c,
                lambda q: (np.exp(0.1 * q))[COUNT],                     lambda q: TABLE @ q[1:3],
            ][rng.integers(5)]  # fmt: skip
        f, g, h = rows(depth - 1), rows(depth - 1), functions[rng.integers(6)]
        return [
            lambda q: h(0.3 * f(q)),    lambda q: f(q) + g(q),          lambda q: f(q) - q[i],
            lambda q: c * f(q),         lambda q: np.where(c > 0.5, f(q), q[i]),
            lambda q: f(q) / (2.0 + g(q) ** 2),
            lambda q: np.sum(np.tanh(TABLE * f(q)[:, None]), axis=1),
        ][kind - 1]  # fmt: skip

    def total():
        f, g, c = rows(2), rows(2), columns[rng.integers(5)]
        return [
            lambda q: np.sum(np.sin(f(q))),                 lambda q: np.tanh(f(q)) @ np.cos(g(q)),
            lambda q: c @ np.tanh(f(q)),                    lambda q: np.sum(X.T @ np.sin(f(q))),
            lambda q: vm.bernoulli_logit_lpmf(Y, f(q)),     lambda q: np.max(np.sin(f(q))) * q[0],
        ][rng.integers(6)]  # fmt: skip

    parts = [total() for _ in range(rng.integers(1, 3))]
    return lambda q: sum((p(q) for p in parts), 0.0)


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_models(first):
    agree_for_seeds(random_model, first, longest)
