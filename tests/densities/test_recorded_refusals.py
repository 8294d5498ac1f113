"""Recordings refuse what the function refuses, also where nothing depends on the refused value."""

import itertools
import math

import numpy as np
import pytest
from comparing import close, refuses
from densities.multivariate import ARGUMENTS, DENSITIES
from densities.names_taken import UNIVARIATE
from recordings import RUNNERS

import varmat as vm

# What is done with a value beside a sum of the arguments, so that a bad value is hidden.
HIDDEN = {
    "unused": lambda value, s: s, "times zero": lambda value, s: 0.0 * value + s, "fmin": np.fmin,
    "fmax": np.fmax, "where": lambda value, s: np.where(s < 1e300, s, value),
    "compared": lambda value, s: np.where(value > 0.0, s, 2.0 * s), "rounded": lambda value,
    s: np.floor(value) + s,
}  # fmt: skip
BAD = (math.nan, math.inf, -1.5, 2.5)
# A function, its arguments, and the places of those that may be variables.
CASES = {}
for _name, _f in UNIVARIATE.items():
    _active = [i for i, each in enumerate(_f.arguments) if each not in _f.discrete]
    _points = [np.full(2, x) if i in _active and i % 2 else x for i, x in enumerate(_f.points[0])]
    if _active and _name.endswith(("_lpdf", "_lpmf")):
        CASES[_name] = _f, _points, _active
for _name, (_args, _others) in ARGUMENTS.items():
    CASES[_name] = DENSITIES[_name], _args, [i for i, x in enumerate(_others) if x is not None]
    if _name.startswith(("multi_normal", "multi_student")):
        CASES[f"{_name}, one"] = DENSITIES[_name], (_args[0][0], *_args[1:]), CASES[_name][2]
CASES |= {
    "normal_id_glm_lpdf": (lambda *args: vm.normal_id_glm_lpdf(args[0], np.ones((2, 1)), *args[1:]),
        (np.array([0.3, 1.2]), 0.2, np.array([0.1]), 1.5), [0, 1, 2, 3]),
    "poisson_log_glm_lpmf": (lambda *args: vm.poisson_log_glm_lpmf([1, 2], np.ones((2, 1)), *args),
        (0.2, np.array([0.1])), [0, 1]),
    "cholesky": (lambda a: np.sum(np.linalg.cholesky(a)), (2.0 * np.eye(2),), [0]),
    "inv": (lambda a: np.sum(np.linalg.inv(a)), (2.0 * np.eye(1),), [0]),
    "log_mix": (vm.log_mix, (0.3, -1.0, -2.0), [0, 1, 2]),
    "pointwise": (lambda *args: np.sum(vm.normal_lpdf.pointwise(*args)),
        (np.array([0.3, 1.2]), 0.2, 1.5), [0, 1, 2]),
}  # fmt: skip


def outcome(f, args):
    """What a function returns, or the error that it raises."""
    try:
        value, gradients = f(*args)
    except (ValueError, np.linalg.LinAlgError) as error:
        return type(error), str(error)
    return value, *map(np.asarray, gradients)


def worse(x, bad):
    """An argument with one bad element."""
    if not np.shape(x):
        return bad
    y = np.array(x, float)
    y.flat[0] = bad
    return y


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_hidden_value_is_refused_as_without_a_recording(name):
    """Ways to hide values take turns, and so do runners."""
    f, args, active = CASES[name]
    number = list(CASES).index(name)
    args = [float(x) if i in active and not np.shape(x) else x for i, x in enumerate(args)]
    runners = itertools.islice(itertools.cycle(RUNNERS), number // 2 % 2, None)
    for k in (number, number + 3):
        how = list(HIDDEN)[k % len(HIDDEN)]

        def g(*args, hide=HIDDEN[how]):
            return hide(f(*args), sum(np.sum(args[i]) for i in active))

        recorded = vm.recorded(g, tuple(active), runner=next(runners))
        recorded(*args)
        for i, bad in itertools.product(active, BAD):
            given = [*args[:i], worse(args[i], bad), *args[i + 1 :]]
            found, expected = (
                outcome(each, given) for each in (recorded, vm.value_and_grad(g, tuple(active)))
            )
            if isinstance(expected[0], type):
                assert found == expected, (how, i, bad)
            else:
                for a, b in zip(found, expected, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=f"{how} {i}")


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("hide", ["fmin", "unused", "times zero"])
@pytest.mark.parametrize(("f", "good", "bad"), [
    (lambda x: vm.normal_lpdf(np.ones(3), 0.0, x), 2.0, -1.0),
    (lambda x: vm.multi_normal_lpdf(np.ones(2), x, np.eye(2)), [0.0, 1.0], [math.nan, 1.0]),
    (lambda x: vm.normal_id_glm_lpdf(np.ones(2), np.ones((2, 1)), 0.0, x, 1.0), [0.5], [math.nan]),
    (lambda x: vm.gamma_lpdf(1.0, x, 2.0), 2.0, -1.0),
])  # fmt: skip
def test_second_derivatives_of_hidden_values_are_refused(f, good, bad, hide, runner):
    hessian = vm.hessian(lambda x: HIDDEN[hide](f(x), np.sum(x**2)))
    recorded = vm.recorded(hessian, runner=runner)
    good, bad = np.asarray(good)[()], np.asarray(bad)[()]
    close(recorded(good), hessian(good), 1e-13)
    for each in (hessian, recorded):
        refuses(vm.DomainError, None, each, bad)


def test_a_value_that_shows_in_the_sum_needs_no_guard():
    recorded = vm.recorded(
        lambda x: vm.normal_lpdf(x[0], 0.0, 1.0) + vm.normal_lpdf(x[1], x[0], 2.0)
    )
    recorded(np.ones(2))
    assert "guard" not in recorded.program.counts()
