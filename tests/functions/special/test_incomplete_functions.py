"""Incomplete gamma and beta functions over all shapes, in both tails: values, logarithms and first
derivatives. The exact numbers are those of `incomplete_table`.
"""

import json

import mpmath
import numpy as np
import pytest
from comparing import close, equal
from functions.partials import gradient
from functions.special import incomplete_table
from recordings import EVERY_RUNNER

import varmat as vm

TABLE = json.loads(incomplete_table.TABLE.read_text(encoding="utf-8"))
FUNCTIONS = {
    "gamma": [(vm.gammainc, vm.log_gammainc), (vm.gammaincc, vm.log_gammaincc)],
    "beta": [(vm.betainc, vm.log_betainc), (vm.betaincc, vm.log_betaincc)],
}
# Below these numbers the rounding of a denormal number would count.
LEAST, LARGEST = 1e-290, 1e300


def errors(found, exact):
    """Return relative errors, 0 where the exact number is next to the end of the range."""
    fits = (np.abs(exact) > LEAST) & (np.abs(exact) < LARGEST)
    with np.errstate(all="ignore"):
        return np.where(fits, np.abs(found - exact) / np.abs(exact), 0.0)


def bounds(name, columns):
    """Return the largest errors accepted. The argument of a beta function determines its distance
    from the mean with fewer digits, the larger the shapes are.
    """
    if name == "gamma":
        return np.full(columns[0].shape, 1e-12)
    largest, least = np.maximum(*columns[:2]), np.minimum(*columns[:2])
    return np.where((largest > 1e6) | (least < 1e-2), 1e-9, 1e-12)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_shapes_and_both_tails(name, upper):
    columns = [np.array(column) for column in zip(*(row[0] for row in TABLE[name]), strict=True)]
    exact = np.array([row[1 + upper] for row in TABLE[name]]).T
    value, log = FUNCTIONS[name][upper]
    accepted = bounds(name, columns)
    for function, truth in (
        (log, exact),
        (value, np.array([np.exp(exact[0]), *(np.exp(exact[0]) * exact[1:])])),
    ):
        # The exponential of a large logarithm has lost digits of its own.
        slack = accepted + (0.0 if function is log else 4e-16 * np.abs(exact[0]))
        with np.errstate(all="ignore"):
            found = np.array([function(*columns), *gradient(function, columns)])
        for i, (ours, true) in enumerate(zip(found, truth, strict=True)):
            excess = errors(ours, true) / slack
            worst = int(np.argmax(excess))
            assert excess[worst] <= 1.0, (i, TABLE[name][worst][0], ours[worst], true[worst])


def test_the_table_is_that_of_its_script():
    """Some of the entries are computed again, and compared with mpmath's own functions."""
    gammas, betas = incomplete_table.points(1, len(TABLE["gamma"]))
    assert [tuple(row[0]) for row in TABLE["gamma"]] == gammas
    assert [tuple(row[0]) for row in TABLE["beta"]] == betas
    with mpmath.workdps(50):
        moderate = [row for row in TABLE["gamma"] if 1e-3 < row[0][0] < 50.0][:4]
        assert len(moderate) == 4
        for (a, x), lower, upper in moderate:
            p, q = (
                float(mpmath.log(mpmath.gammainc(a, *ends, regularized=True)))
                for ends in ((0, x), (x, mpmath.inf))
            )
            close(lower[0], p, 1e-15)
            close(upper[0], q, 1e-15)


LARGE = [(4e5, 4e5 - 5.0 * 4e5**0.5), (1e7, 1e7 - 8.0 * 1e7**0.5), (1e10, 1e10 + 3e5), (2.5, 3.0)]


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "log_gammainc"])
def test_large_shapes_by_all_routes(name, runner):
    """Numbers, arrays and recordings made at moderate shapes agree."""
    function = getattr(vm, name)
    a, x = map(np.array, zip(*LARGE, strict=True))
    whole = function(a, x)
    for i, point in enumerate(LARGE):
        close(function(*point), whole[i], 1e-14)
    recorded = vm.recorded(lambda x: np.sum(function(a, x)), runner=runner)
    recorded(a)
    value, slope = recorded(x)
    expected = vm.value_and_grad(lambda x: np.sum(function(a, x)))(x)
    close(value, expected[0], 1e-14)
    close(slope, expected[1], 1e-13)


def test_ends_of_large_shapes():
    inf = np.inf
    for function, at_zero in ((vm.gammainc, 0.0), (vm.gammaincc, 1.0)):
        found = function(np.array([1e6, 1e6, inf]), np.array([0.0, inf, 3.0]))
        equal(found, [at_zero, 1.0 - at_zero, at_zero])
        assert np.isnan(function(1e6, np.nan))


def test_a_tiny_argument_of_a_tiny_shape():
    """The complement is small although one minus the argument is rounded to 1."""
    a, b, x = 1e-7, 0.07, 2.5e-24
    with mpmath.workdps(60):
        # The power series, whose second term is smaller by 1e-24.
        log = a * mpmath.log(x) - mpmath.log(a) - mpmath.log(mpmath.beta(a, b))
    close(vm.log_betainc(a, b, x), float(log), 1e-13)
    close(vm.beta_lcdf(x, a, b), float(log), 1e-13)
