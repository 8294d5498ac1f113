"""Functions of named values at many draws, recorded in stages."""

import numpy as np
import pytest
from comparing import close, equal
from scipy import stats

import varmat as vm
from varmat.models.at_draws import MOST_CALLS, STANDARD, AtDraws

X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
SHAPES = {"b": (3,), "s": ()}


def points(count=300):
    rng = np.random.default_rng(1)
    return np.concatenate([rng.normal(size=(count, 3)), rng.uniform(0.2, 2.0, (count, 1))], axis=1)


def at_draws(function, rows, seed=3):
    found = AtDraws(function, SHAPES, executor="serial")(rows, np.random.default_rng(seed))
    assert found is not None
    return found


def test_values_are_those_of_the_function():
    def f(values, rng):
        return {"mean": X @ values["b"], "count": 3, "scale": values["s"] ** 2}

    rows = points()
    found, lost = at_draws(f, rows)
    assert not lost
    close(found["mean"], rows[:, :3] @ X.T, 1e-14)
    close(found["scale"], rows[:, 3] ** 2, 1e-15)
    assert found["count"].dtype.kind == "i"
    assert (found["count"] == 3).all()


@pytest.mark.parametrize("draw", [
    lambda b, s, rng: vm.normal_rng(X @ b, s, rng=rng),
    lambda b, s, rng: vm.normal_rng(b[:, None], s, rng=rng, size=(3, 2)),
    lambda b, s, rng: vm.multi_normal_cholesky_rng(b, np.eye(3), rng=rng),
    lambda b, s, rng: vm.multi_normal_rng(b, s * np.eye(3), rng=rng),
    lambda b, s, rng: vm.multi_normal_prec_rng(b, s * np.eye(3), rng=rng, size=2),
    lambda b, s, rng: vm.wishart_rng(5.0, s * np.eye(3), rng=rng),  # one matrix at a time
    lambda b, s, rng: vm.categorical_logit_rng(b, rng=rng),
    lambda b, s, rng: vm.normal_rng(0.0, 1.0, rng=rng, size=2),
    lambda b, s, rng: rng.random(3),
])  # fmt: skip
def test_shapes_and_kinds_are_those_of_a_call(draw):
    def f(values, rng):
        return {"y": draw(values["b"], values["s"], rng)}

    rows = points(50)
    found, lost = at_draws(f, rows)
    one = f({"b": rows[0, :3], "s": rows[0, 3]}, np.random.default_rng(1))["y"]
    assert not lost
    assert found["y"].shape == (50, *np.shape(one))
    assert found["y"].dtype == np.asarray(one).dtype
    assert len(np.unique(found["y"].reshape(50, -1)[:, 0])) > 1


def test_lost_rows_keep_the_numbers_that_were_drawn():
    def f(values, rng):
        z = vm.normal_rng(0.0, 1.0, rng=rng)
        return {"z": z, "root": np.sqrt(z), "more": rng.random()}

    rows = points(400)
    computed = AtDraws(f, SHAPES, executor="serial")
    with np.errstate(invalid="ignore"):
        found, lost = computed(rows, np.random.default_rng(5))
        # The root is nan for half of the numbers. Drawing again would leave fewer of them negative.
        for i, numbers in lost.items():
            for name, x in computed.once(rows[i], numbers).items():
                found[name][i] = x
    assert abs(np.mean(found["z"] < 0.0) - 0.5) < 0.1
    equal(np.isnan(found["root"]), found["z"] < 0.0)


@pytest.mark.parametrize("function", [
    lambda values, rng: {"y": values["s"] * 2.0 if values["s"] > 1.0 else values["s"]},
    lambda values, rng: {"y": X[vm.categorical_logit_rng(values["b"], rng=rng) - 1, 0]},
    lambda values, rng: {"y": sum(rng.random() for _ in range(MOST_CALLS + 1))},
    lambda values, rng: {"y": vm.normal_rng(0.0, values["b"][0], rng=rng)},  # not for all draws
    # Standard numbers for one shape are not those for another.
    lambda values, rng: {
        "y": sum(vm.gamma_rng(values["s"], 1.0, rng=rng) for _ in range(MOST_CALLS + 1))
    },
    lambda values, rng: {"y": np.random.default_rng(rng).random()},
    lambda values, rng: {"y": rng.standard_normal(out=np.zeros(3)) + values["s"]},
])  # fmt: skip
def test_what_cannot_be_recorded_is_left_to_python(function):
    assert AtDraws(function, SHAPES, executor="serial")(points(), np.random.default_rng(1)) is None


# Arguments of draws, and of SciPy's distribution.
CALLS = {
    "std_normal_rng": ((), lambda: stats.norm()),
    "normal_rng": (("m", "s"), stats.norm),
    "cauchy_rng": (("m", "s"), stats.cauchy),
    "logistic_rng": (("m", "s"), stats.logistic),
    "double_exponential_rng": (("m", "s"), stats.laplace),
    "gumbel_rng": (("m", "s"), stats.gumbel_r),
    "lognormal_rng": (("m", "s"), lambda m, s: stats.lognorm(s, scale=np.exp(m))),
    "uniform_rng": (("m", "m + s"), lambda a, b: stats.uniform(a, b - a)),
    "exponential_rng": (("s",), lambda s: stats.expon(scale=1.0 / s)),
    "weibull_rng": (("s", "2.0"), lambda s, scale: stats.weibull_min(s, scale=scale)),
    "student_t_rng": (("4.0", "m", "s"), stats.t),
    "gamma_rng": (("2.5", "s"), lambda a, s: stats.gamma(a, scale=1.0 / s)),
}


@pytest.mark.parametrize("name", STANDARD)
def test_functions_with_many_calls_are_recorded_once(name):
    """Each number depends on the one before."""
    args, law = CALLS[name]
    names = [compile(each, "", "eval") for each in args]
    calls = []

    def arguments(m, s):
        return [eval(each, {"m": m, "s": s}) for each in names]

    def f(values, rng):
        calls.append(0)
        y, drawn = values["b"][0], []
        for _ in range(MOST_CALLS + 3):
            y = getattr(vm, name)(*arguments(0.5 * np.tanh(y), values["s"]), rng=rng)
            drawn.append(y)
        return {"y": np.stack(drawn)}

    rows = points(400)
    found, lost = at_draws(f, rows)
    assert not lost
    assert len(calls) < 10
    before = np.concatenate([rows[:, :1], found["y"][:, :-1]], axis=1)
    given = arguments(0.5 * np.tanh(before), rows[:, 3:])
    u = np.broadcast_to(law(*given).cdf(found["y"]), before.shape)
    assert stats.kstest(u.ravel(), stats.uniform.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(u[:, 1:].ravel(), u[:, :-1].ravel())[0, 1]) < 0.06


def test_many_calls_among_others_and_refused_arguments():
    def f(values, rng):
        total = 0.0
        for i in range(20):
            total = total + np.sum(vm.normal_rng(values["b"], values["s"] - 0.3, rng=rng))
            if i == 10:
                total = total + vm.poisson_rng(3.0 * values["s"], rng=rng)
        return {"total": total, "two": vm.uniform_rng(0.0, 1.0, rng=rng, size=(2, 2))}

    rows = points(400)
    rows[-1, 3] = 0.3  # a scale of exactly zero
    found, lost = at_draws(f, rows)
    assert sorted(lost) == np.flatnonzero(rows[:, 3] <= 0.3).tolist()
    kept = np.setdiff1d(np.arange(400), [*lost])
    mean = 20.0 * rows[:, :3].sum(1) + 3.0 * rows[:, 3]
    variance = 60.0 * (rows[:, 3] - 0.3) ** 2 + 3.0 * rows[:, 3]
    z = ((found["total"] - mean) / np.sqrt(variance))[kept]
    assert abs(z.mean()) < 0.2
    close(z.std(), 1.0, 0.0, 0.15)
    assert len(np.unique(found["two"][kept])) == 4 * len(kept)
    i = next(iter(lost))
    with pytest.raises(vm.DomainError, match=r"^normal_rng: Scale parameter is -"):
        AtDraws(f, SHAPES).once(rows[i], lost[i])


def added(z):
    z += 100.0
    return z


def one_set(z):
    z[0] = 7.0
    return z


def a_part_sorted(z):
    z[1:].sort()
    return z


def kept_apart(z):
    y = z.copy()
    y[0] = 7.0
    return z


@pytest.mark.parametrize("write", [added, one_set, a_part_sorted, kept_apart])
def test_numbers_may_be_overwritten(write):
    def f(values, rng):
        z = rng.normal(values["b"], 1.0)
        return {"z": write(z), "twice": 2.0 * z, "again": z}

    rows, drawn = points(), []
    found, lost = at_draws(lambda values, rng: drawn.append(0) or f(values, rng), rows)
    assert not lost
    assert len(drawn) < 10  # it was recorded
    z = found["z"] * 1.0
    expected = rows[:, :3] + np.random.default_rng(3).normal(size=(len(rows), 3))
    close(z, [write(each) for each in expected], 1e-12)
    close(found["twice"], 2.0 * z, 1e-12)
    equal(found["again"], z)
