"""Where `varmat.numpy.patched` finds what it replaces in modules, and what it puts there."""

import sys
import types

import numpy as np
import pytest
from comparing import close, equal, refuses

import varmat as vm
import varmat.numpy as vnp

CODE = """
import functools
import numpy as np
import numpy.ma
import scipy.linalg as la
from scipy import special
from scipy.linalg import inv as inverse

def by_default(x, make=np.array, *, factor=la.cholesky):
    return factor(make([[x, 0.0], [1.0, x]]))

def with_namespace(f):
    xp = np
    @functools.wraps(f)
    def given(*args):
        return f(*args, xp=xp)
    return given

@with_namespace
def in_closure(x, xp):
    z = xp.zeros(2)
    z[0] = x
    return z

class Model:
    def method(self, x, make=np.asarray):
        return make([x, 2.0 * x])

    @staticmethod
    def fixed(x, invert=inverse):
        return invert(np.array([[x, 1.0], [0.0, 2.0]]))

def masked(x):
    return np.ma.atleast_2d([1.0, 2.0]) * x

def missing(x):
    return np.ma.asarray(np.ma.array([1.0, 2.0], mask=[True, False])) * x

def attribute(x):
    return special.logsumexp(np.array([x, 1.0])) + la.norm(np.array([x, 1.0]), 1)
"""


@pytest.fixture
def library(monkeypatch):
    module = types.ModuleType("somebody")
    monkeypatch.setitem(sys.modules, "somebody", module)
    exec(CODE, vars(module))
    return module


def calls(library):
    return {
        "by_default": library.by_default, "in_closure": library.in_closure,
        "method": library.Model().method, "fixed": library.Model.fixed, "masked": library.masked,
        "attribute": library.attribute,
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["by_default", "in_closure", "method", "fixed", "masked", "attribute"]
)
def test_functions_are_found_and_put_back(library, name):
    def f(x):
        return np.sum(calls(library)[name](x) ** 2)

    before = {key: vars(library)[key] for key in vars(library)}
    defaults, cell = library.by_default.__defaults__, library.in_closure.__closure__
    with vm.numpy.patched(library), vm.numpy.patched(library):
        value, slope = vm.value_and_grad(f)(1.3)
        assert cell is library.in_closure.__closure__
    close(value, f(1.3), 1e-14)
    close(slope, (f(1.3 + 1e-5) - f(1.3 - 1e-5)) / 2e-5, 1e-8)
    assert {key: vars(library)[key] for key in vars(library)} == before
    assert library.by_default.__defaults__ is defaults
    assert defaults == (np.array,)
    assert np in [each.cell_contents for each in cell]
    refuses((TypeError, ValueError), None, vm.gradient, f, 1.3)


def test_masked_elements_are_refused(library):
    with vm.numpy.patched(library), pytest.raises(TypeError, match="masked array"):
        vm.gradient(lambda x: np.sum(library.missing(x)), 1.3)


def test_functions_of_other_packages_are_left_alone(library):
    """A module holds functions of others, whose defaults are seen by everybody."""
    other = types.ModuleType("other")
    exec("import numpy as np\ndef f(x, make=np.array): return make([x])", vars(other))
    library.f = other.f
    with vm.numpy.patched(library):
        assert other.f.__defaults__ == (np.array,)


def test_modes_of_copying_are_those_of_numpy():
    def f(x):
        same = vnp.array(x, copy=np._CopyMode.IF_NEEDED)
        assert same is x
        other = vnp.array(x, copy=np._CopyMode.ALWAYS)
        other[0] = 0.0
        assert vnp.array(x, copy=np._CopyMode.NEVER) is x
        refuses(ValueError, "copy is False", lambda: vnp.array([x[0]], copy=np._CopyMode.NEVER))
        return np.sum(same * other)

    equal(vm.gradient(f, np.array([2.0, 3.0])), [0.0, 6.0])


def test_variables_are_in_the_memory_of_the_processor():
    assert vm.var(1.0).device == np.ones(2).device == vm.Dual(1.0, 1.0).device
