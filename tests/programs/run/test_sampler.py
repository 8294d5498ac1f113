"""Programs as C functions for a sampler."""

import ctypes
import math

import numpy as np
import pytest
from layouts import with_arguments

from varmat.programs.run import has_native

if not has_native():
    pytest.skip("llvmlite is not installed", allow_module_level=True)


from varmat.programs.run.native import NativeRunner
from varmat.programs.run.sampler import FLAT, SamplerFunctions, doubles

ADDRESS, COUNT = ctypes.c_void_p, ctypes.c_int64
DENSITY = ctypes.CFUNCTYPE(ctypes.c_int32, COUNT, ADDRESS, ADDRESS, ADDRESS, ADDRESS)
EXPAND = ctypes.CFUNCTYPE(ctypes.c_int32, COUNT, COUNT, ADDRESS, ADDRESS, ADDRESS)


def address(x):
    return x.ctypes.data


class Sampler:
    """Calls the functions for log x + y, whose values at a draw are x and log x."""

    def __init__(self, has_values=True, keeps_point=False):
        builder, x = with_arguments((3,))
        first, second = builder.element(x, 0), builder.element(x, 1)
        logarithm = builder.ufunc(np.log, first)
        slope = builder.ufunc(np.divide, builder.constant(1.0), first)
        value = builder.ufunc(np.add, logarithm, second)
        parts = [((8 * i, ()), (), v) for i, v in enumerate((slope, builder.constant(1.0)))]
        self.density = NativeRunner(builder.program([value, builder.assemble((3,), parts)]))
        zero = builder.constant(0.0)
        values = NativeRunner(builder.program([zero, builder.full(first, (2,)), logarithm]))
        self.calls = []
        self.data = SamplerFunctions(
            self.density, values if has_values else None, self.elsewhere, self.values, keeps_point
        )
        self.point = np.array([2.0, 0.5, 7.0])

    def elsewhere(self, point, gradient, value):
        self.calls.append(doubles(point, 3).tolist())
        doubles(gradient, 3)[...] = [5.0, 0.0, -0.0]
        doubles(value, 1)[...] = -3.0
        return int(doubles(point, 3)[1] > 100.0)

    def values(self, point, draw, _):
        self.calls.append(doubles(point, 3).tolist())
        doubles(draw, 3)[...] = 9.0
        return 0

    def log_density(self):
        gradient, value = np.full(3, np.nan), np.full(1, np.nan)
        arrays = map(address, (self.point, gradient, value, self.data.user))
        return DENSITY(self.data.log_density)(3, *arrays), value.item(), gradient.tolist()

    def expand(self, size):
        draw = np.full(size, -1.0)
        arrays = map(address, (self.point, draw, self.data.user))
        assert EXPAND(self.data.expand)(3, size, *arrays) == 0
        return draw.tolist()


def test_density_and_gradient():
    """A sampler is not told that a derivative is zero."""
    sampler = Sampler()
    assert sampler.log_density() == (0, pytest.approx(math.log(2.0) + 0.5), [0.5, 1.0, FLAT])
    assert not sampler.calls


def test_python_is_asked_where_the_density_is_not_finite():
    sampler = Sampler()
    sampler.point[0] = -1.0
    assert sampler.log_density() == (0, -3.0, [5.0, 0.0, 0.0])
    sampler.point[1] = 200.0
    assert sampler.log_density()[0] == 1
    assert sampler.calls == [[-1.0, 0.5, 7.0], [-1.0, 200.0, 7.0]]


def test_every_point_is_refused():
    sampler = Sampler()
    sampler.data.refuse()
    sampler.point[0] = -1.0
    assert sampler.log_density()[0] == 1
    assert not sampler.calls


@pytest.mark.parametrize("keeps_point", [False, True])
def test_values_at_a_draw(keeps_point):
    """What Python makes later is nan, and the point comes last."""
    sampler = Sampler(keeps_point=keeps_point)
    *made, first, second, third = sampler.expand(8)
    assert made[:3] == [2.0, 2.0, pytest.approx(math.log(2.0))]
    assert np.isnan(made[3:]).all()
    if keeps_point:
        assert [first, second, third] == [2.0, 0.5, 7.0]
    else:
        assert np.isnan([first, second, third]).all()
    assert not sampler.calls
    sampler.point[0] = -1.0
    assert sampler.expand(8)[:3] == [9.0] * 3
    assert sampler.calls == [[-1.0, 0.5, 7.0]]


def test_no_values():
    draw = Sampler(has_values=False, keeps_point=True).expand(4)
    assert np.isnan(draw[0])
    assert draw[1:] == [2.0, 0.5, 7.0]
