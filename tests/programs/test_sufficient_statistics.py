"""Rows that enter by squares of affine functions: the same numbers from fewer rows."""

import contextlib

import mpmath as mp
import numpy as np
import pytest
from comparing import near, refuses
from recordings import EVERY_RUNNER

import varmat as vm
from varmat.derivatives.recorded_programs import record
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.passes import cross_products
from varmat.programs.passes.fewer_rows import LEAST
from varmat.programs.passes.sufficient_statistics import FOR_EACH

N = 211
RNG = np.random.default_rng(8)
X = np.column_stack([np.ones(N), RNG.normal(size=(N, 3)), RNG.integers(0, 2, N)])
Y, WEIGHTS, SCALES = RNG.normal(size=N), RNG.uniform(1, 2, N), RNG.uniform(1, 2, N)
Z, GROUPS = X[:, 1], RNG.integers(0, 4, N)
MANY_GROUPS = np.arange(N) // 3


def by_rows(q):
    total = 0.0
    for i in range(N):
        total = total + vm.normal_lpdf(Y[i], q[0] + q[1] * Z[i], np.exp(q[2]))
    return total


def residuals(q):
    return Y - q[0] - q[1] * Z


REGRESSIONS = {
    "a mean": lambda q: vm.normal_lpdf(Y, q[0], np.exp(q[1])),
    "a line": lambda q: vm.normal_lpdf(Y, q[0] + q[1] * Z, np.exp(q[2])),
    "a line and a number": lambda q: vm.normal_lpdf(Y, 0.3 + q[1] * Z * 2.0, 1.5),
    "a matrix": lambda q: vm.normal_lpdf(Y, X @ q[:5], np.exp(q[5])),
    "a matrix, transposed": lambda q: vm.normal_lpdf(Y, q[:5] @ X.T.copy(), np.exp(q[5])),
    "a matrix and a line": lambda q: vm.normal_lpdf(Y, q[5] + q[4] * Z + X @ q[:5], 2.0),
    "a GLM": lambda q: vm.normal_id_glm_lpdf(Y, X, q[0], q[:5], np.exp(q[5])),
    "a loop": by_rows,
    "sums of sums": lambda q: np.sum((SCALES - 2.0 * (Y - 3.0 * residuals(q))) ** 2) * q[3],
    "negative rows": lambda q: np.sum(-residuals(q) * WEIGHTS) * q[3],
    "squares": lambda q: -0.5 * np.sum((residuals(q) / q[3]) ** 2),
    "an inner product": lambda q: residuals(q) @ residuals(q) * q[3],
    "weights": lambda q: np.sum(WEIGHTS * residuals(q) ** 2),
    "a product with a matrix": lambda q: np.sum((q[0] * Z) @ X),
    "several lines": lambda q: np.sum((Y - q[:3, None] * Z) ** 2, axis=1) @ [1.0, 2.0, 3.0],
    "scales that are data": lambda q: vm.normal_lpdf(Y, q[0] + q[1] * Z, SCALES),
    "two likelihoods": lambda q: REGRESSIONS["a line"](q) + vm.normal_lpdf(Z, q[3], 1 + q[4] ** 2),
    "a sum of residuals": lambda q: np.sum(residuals(q)) * q[3] - np.sum(residuals(q) ** 2),
    "equal columns": lambda q: vm.normal_lpdf(Y, q[0] * Z + q[1] * Z + q[2] * (2 * Z), 1.0),
    "groups": lambda q: vm.normal_lpdf(Y, q[GROUPS], 1.3),
    "groups and a slope": lambda q: vm.normal_lpdf(Y, q[1:5][GROUPS] + q[0] * Z, np.exp(q[5])),
    "groups with slopes": lambda q: vm.normal_lpdf(Y, q[:4][GROUPS] + q[2:][GROUPS] * Z, 1.5),
    "groups by formula": lambda q: vm.normal_lpdf(Y, (q[0] + q[1] * q[2:])[GROUPS], np.exp(q[1])),
    "groups, scales and a loop": lambda q: sum(
        (vm.normal_lpdf(Y[i], q[g] + q[4] * Z[i], 1 + q[5] ** 2) for i, g in enumerate(GROUPS)), 0.0
    ) + vm.normal_lpdf(Y, q[GROUPS], SCALES),
    "lognormal": lambda q: vm.lognormal_lpdf(np.exp(Y), q[0] + q[1] * Z, np.exp(q[2])),
}  # fmt: skip
POINTS = [np.linspace(0.1, 0.9, 6), np.array([-1.3, 0.4, 0.2, 1.7, -0.6, 0.1])]


def programs(f):
    """The program with all rows, and that with what is left of them."""
    with vm.keep_rows():
        kept = record(f, (0,), (POINTS[0],), {})
    return kept, record(f, (0,), (POINTS[0],), {})


def rows_of(program):
    """How many values have a row for each of the data."""
    values = [v for step in program.steps for v in (*step.operands, *step.results)]
    return sum(not {N, N - 1}.isdisjoint(v.base.shape) for v in values)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_regression_needs_no_rows(name):
    kept, collapsed = programs(REGRESSIONS[name])
    assert rows_of(kept)
    assert not rows_of(collapsed), str(collapsed)
    for q in POINTS:
        near(interpret(collapsed, q), interpret(kept, q))
        near(interpret(collapsed, q), vm.value_and_grad(REGRESSIONS[name])(q))


@pytest.mark.parametrize("runner", EVERY_RUNNER)
def test_runners(runner):
    f = REGRESSIONS["a matrix"]
    near(vm.recorded(f, runner=runner)(POINTS[1]), vm.value_and_grad(f)(POINTS[1]))


@pytest.mark.parametrize("f", [
    lambda q: vm.student_t_lpdf(Y, 4.0, q[0] + q[1] * Z, 1.0),
    lambda q: np.sum(residuals(q) ** 4),
    lambda q: np.max(residuals(q)) + residuals(q) @ residuals(q),
    lambda q: residuals(q) @ (Y - q[2] * SCALES),
    lambda q: vm.normal_lpdf(Y, np.exp(q[0] * Z), 1.0),
    lambda q: vm.normal_lpdf(Y, np.repeat(q, 12)[MANY_GROUPS], 1.0),
    lambda q: np.sum(np.bincount(GROUPS) * np.exp(q[:4])) + vm.normal_lpdf(Y, q[GROUPS] ** 2, 1.0),
    lambda q: vm.normal_lpdf(Y, X.repeat(30, 1) @ np.tile(q[:5], 30), 1.0),
], ids=["Student", "fourth powers", "a maximum", "two functions", "not affine", "many groups",
        "squares of groups", "wide"])  # fmt: skip
def test_other_functions_keep_their_rows(f):
    kept, collapsed = programs(f)
    assert rows_of(collapsed) == rows_of(kept) > 0


def test_what_takes_long_to_factorise_stays(monkeypatch):
    f = REGRESSIONS["a matrix"]
    for name, most in (("MOST_COLUMNS", 5), ("MOST_IN_ROWS", 36 * N - 1)):
        with monkeypatch.context() as patch:
            patch.setattr(cross_products, name, most)
            kept, collapsed = programs(f)
            assert rows_of(collapsed) == rows_of(kept) > 0


def test_few_rows_stay():
    for n in (LEAST - 1, LEAST, 5 * FOR_EACH):
        y = Y[:n]
        program = record(lambda q, y=y: vm.normal_lpdf(y, q[0], 1.0), (0,), (POINTS[0],), {})
        assert any(n in v.shape for s in program.steps for v in s.results) == (n < LEAST)


def test_infinite_rows_end_the_run():
    """As they do row by row, so that the function itself says what is wrong."""
    f = REGRESSIONS["a line"]
    kept, collapsed = programs(f)
    for q in (np.array([0.0, np.inf, 0, 0, 0, 0]), np.array([np.nan, 0, 0.0, 0, 0, 0])):
        for program in (kept, collapsed):
            with contextlib.suppress(ElsewhereError):
                assert not np.isfinite(interpret(program, q)[0])
        refuses(vm.DomainError, "normal_lpdf: Location parameter", vm.recorded(f), q)


@pytest.mark.parametrize("size", [1e-16, 1e-12, 1e-8, 1e-4])
def test_columns_that_are_almost_combinations_of_others(size):
    """Their coefficients at the least-squares point would be huge."""
    almost = X[:, 1] + X[:, 2] + size * SCALES
    z = np.column_stack([X[:, :3], almost, 0.1 * X[:, 1] + 0.3 * X[:, 2]])
    f = lambda q: vm.normal_lpdf(Y, z @ q[:5], np.exp(q[5]))  # noqa: E731
    kept, collapsed = programs(f)
    assert not rows_of(collapsed)
    for q in POINTS:
        near(interpret(collapsed, q), interpret(kept, q))


# The largest error of a gradient relative to its element, at points near the maximum: sums of rows
# have 1e-14, 6e-12 and 1e-10.
SHIFTS = {0.0: 2e-15, 1e2: 4e-15, 1e4: 1e-14, 1e6: 2e-11}


@pytest.mark.parametrize("shift", SHIFTS)
def test_small_residuals_of_large_numbers(shift):
    x = shift + Z
    y = 3 * shift + 2.0 * x + 0.1 * Y
    f = vm.recorded(lambda q: vm.normal_lpdf(y, q[0] + q[1] * x, np.exp(q[2])))
    for d in (0.01, -0.3):
        q = np.array([3 * shift + d, 2.0 + 0.1 * d / max(shift, 1), -2.0])
        with mp.workdps(50):
            a, b, s = map(mp.mpf, q.tolist())
            rows = list(zip(map(mp.mpf, x.tolist()), map(mp.mpf, y.tolist()), strict=True))
            left = [v - a - b * u for u, v in rows]
            squares = mp.fsum(r * r for r in left)
            slope = mp.fsum(r * u for r, (u, _) in zip(left, rows, strict=True))
            true = [mp.fsum(left), slope, squares - N * mp.exp(2 * s)]
            true = [float(t * mp.exp(-2 * s)) for t in true]
        error = np.max(np.abs(f(q)[1] - true) / np.abs(true))
        assert error < SHIFTS[shift], error


# --- random functions ---


def random_regression(seed):
    """A sum of products of affine functions, each written in some way."""
    rng = np.random.default_rng(seed)
    columns = [*X.T, Y, WEIGHTS, SCALES]

    def pick():
        return columns[rng.integers(len(columns))]

    def affine():
        parts = []
        for _ in range(rng.integers(1, 5)):
            c, i, j, k = pick(), *rng.integers(0, 6, 3)
            parts.append([
                lambda q, c=c: c, lambda q, i=i: q[i], lambda q, c=c, i=i: q[i] * c,
                lambda q, c=c, i=i, j=j: np.exp(0.1 * q[i]) * (c * 0.5) / (1 + q[j] ** 2),
                lambda q, k=k: X[:, :k] @ q[:k] + q[k],
                lambda q, c=c, i=i: -(c / 3.0) - q[i],
                lambda q, c=c, i=i: c * (q[i] + WEIGHTS),
                lambda q, c=c: q[1:5][GROUPS] * c,
                lambda q, i=i: np.exp(0.2 * q[i]) * np.tanh(q)[GROUPS],
            ][rng.integers(9)])  # fmt: skip
        signs = rng.choice([-1, 1], len(parts))
        return lambda q: sum(
            (p(q) if s > 0 else -p(q) for s, p in zip(signs, parts, strict=True)), np.zeros(N)
        )

    def statement():
        f, c, i = affine(), pick(), rng.integers(6)
        return [
            lambda q: vm.normal_lpdf(Y, f(q), np.exp(0.3 * q[i])),
            lambda q: vm.normal_lpdf(f(q), q[i], SCALES),
            lambda q: (r := f(q)) @ r * q[i],
            lambda q: np.sum(np.square(f(q) / np.exp(q[i]))),
            lambda q: c @ f(q) - np.sum(f(q)),
            lambda q: np.sum(c * f(q) * q[i]) + np.sum(X.T @ (q[i] * f(q))),
            lambda q: np.sum((r := q[i] * f(q)) * r),
        ][rng.integers(7)]

    parts = [statement() for _ in range(rng.integers(1, 4))]
    return lambda q: sum((p(q) for p in parts), 0.0)


def agree_for_seeds(make, first, size):
    """Demand the same numbers of 20 random functions, of which some lose rows."""
    shorter = 0
    for f in map(make, range(first, first + 20)):
        kept, fewer = programs(f)
        shorter += size(fewer) < size(kept)
        for q in POINTS:
            near(interpret(fewer, q), interpret(kept, q))
            near(interpret(kept, q), vm.value_and_grad(f)(q))
    assert shorter > 5


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_regressions(first):
    agree_for_seeds(random_regression, first, rows_of)
