"""A point in each lane of vectors."""

import numpy as np
import pytest
from comparing import close, equal

import varmat as vm

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.derivatives.recorded_programs import record
from varmat.programs.run import native
from varmat.programs.run.native import NativeRunner
from varmat.programs.run.points import MOST

RNG = np.random.default_rng(5)
DATA, TRUE, GROUP = RNG.normal(size=60), RNG.uniform(size=60) < 0.5, RNG.integers(0, 5, 60)
MANY, LONG = RNG.integers(0, 36, 60), RNG.normal(size=MOST + 1)


def chosen(x):
    """Loops with truth values, of data and of parameters, and a maximum."""
    y = np.where(TRUE, DATA * x[0], np.exp(x[1] * DATA))
    return np.sum(np.where(y > 0.3, y, y * y)) + np.max(y)


FUNCTIONS = {
    "numbers": lambda x: np.sum(np.exp(x[:4])) * np.log1p(x[4] ** 2) - np.tanh(x[5]),
    "loops": lambda x: vm.normal_lpdf(DATA, x[0] + x[1] * DATA**2, np.exp(x[2])),
    "truth values": chosen,
    "groups": lambda x: vm.normal_lpdf(DATA, (x**2)[:5][GROUP] + np.repeat(x, 10), 1.5),
    "many groups": lambda x: vm.normal_lpdf(DATA, np.outer(x, x).ravel()[MANY], 1.5),
    "a guard": lambda x: vm.normal_lpdf(DATA, x[0], x[1]),
    "a guard of an array": lambda x: np.sum(np.sqrt(x[0] * DATA + 2.0)),
    "a matrix": lambda x: np.sum(np.outer(x, x) @ x),
    "rows in memory": lambda x: np.sum(np.sin(np.outer(x, DATA[:20])) @ DATA[:20]),
}
POINTS = RNG.normal(size=(43, 6))


def both(f, points):
    """The outputs of a map, one point after the other and in lanes, and the runner."""
    run = NativeRunner(record(f, (0,), (np.abs(points[0]),), {}))
    one, lanes = ([np.empty(len(points)), np.empty(points.shape)] for _ in range(2))
    run.map([points], one, 1)
    run.mapped = native.WORTH
    run.map([points], lanes, 1)
    return one, lanes, run


@pytest.mark.parametrize("count", [1, native.WIDTH, 3 * native.WIDTH + 1, 43])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lanes_have_what_single_points_have(name, count):
    """Also where runs end at some points: the others of a vector go on."""
    one, lanes, run = both(FUNCTIONS[name], POINTS[:count])
    assert run._in_lanes is not None
    values, gradients = one
    ends = np.isnan(values)
    if count > 1:
        assert ends.any() == ("guard" in name)
    equal(np.isnan(lanes[0]), ends)
    for x, y in ((values, lanes[0]), (gradients, lanes[1])):
        scale = np.max(np.abs(x[~ends]), initial=0.0)
        close(y[~ends], x[~ends], 1e-13, 1e-13 * scale)


def test_parameters_that_are_not_read_have_derivatives_of_zero():
    one, lanes, run = both(lambda x: np.sum(x[3:40] ** 2), RNG.normal(size=(19, 70)))
    assert run._in_lanes is not None
    for x, y in zip(one, lanes, strict=True):
        close(y, x, 1e-14)


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.exp(LONG * x[0])),
    lambda x: np.sum(vm.lgamma(np.exp(x))),
    lambda x: vm.log_determinant_spd(np.outer(x, x) + 6 * np.eye(6)),
], ids=["long loops", "a function of SciPy", "LAPACK"])  # fmt: skip
def test_other_programs_run_point_by_point(f):
    one, lanes, run = both(f, POINTS)
    assert run._in_lanes is None
    for x, y in zip(one, lanes, strict=True):
        equal(x, y)


def test_a_program_is_compiled_for_lanes_when_maps_have_run_at_many_points():
    g = vm.recorded(vm.value_and_grad(FUNCTIONS["numbers"]), runner="native")
    g.map(POINTS)
    (run,) = {each.run for each in g._recordings}
    assert run.mapped == 43
    assert "_in_lanes" not in vars(run)
    run.mapped = native.WORTH - 43
    g.map(POINTS)
    assert "_in_lanes" in vars(run)


def test_rows_may_share_their_memory_and_threads_take_slices():
    f = vm.recorded(vm.value_and_grad(lambda a, x: np.sum(np.exp(a * x)), 0), runner="native")
    a = np.linspace(0.0, 1.0, 5000)
    expected = f.map(a, POINTS[0], in_axes=(0, None))
    (run,) = {each.run for each in f._recordings}
    run.mapped = native.WORTH
    for executor in ("serial", "threads"):
        for x, y in zip(
            expected, f.map(a, POINTS[0], in_axes=(0, None), executor=executor), strict=True
        ):
            close(x, y, 1e-14)
    assert run._in_lanes is not None
